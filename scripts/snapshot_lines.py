"""Small generated data, and the command lines over them that `snapshots.py` runs."""

# Command lines are not wrapped.
# ruff: noqa: E501, PLR0917

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

LEFT_OUT: Final = {"judge serve": "waits for people", "machine": "measures times of a model that is downloaded"}
_LETTERS: Final = "--encoder letters --threshold 0.95"
_SAMPLE: Final = "--qrels in/sample/collection/people.qrels" + "".join(
    f" --run in/sample/collection/{name}.run.gz" for name in ("bm25", "expanded", "late-run", "tuned-encoder")
)
_RUNS: Final = "--run in/a1.run --run in/b1.run --run in/c1.run"
_POOL: Final = "".join(f" --run in/pool/{name}.run" for name in ("north1", "south1", "south2", "east1"))
_VERSIONS: Final = (
    "--version old=in/transfer/old.jsonl --version new=in/transfer/new.jsonl --qrels in/transfer/old.qrels"
)
_SCAN: Final = f"{_VERSIONS} --topics in/transfer/topics.tsv --model bm25 --split sliding:30:15 --block-size 7"
_WORLD: Final = (
    "--queries in/world/alpha.tsv --queries in/world/beta.tsv --train-qrels in/world/train.qrels -k 20"
    " --docs in/world/docs.tsv --index in/world/index --audit in/world/audit --labels in/world/labels.tsv"
)
_TEST: Final = "--leaks 12 --topics in/world/topics.tsv --qrels in/world/test.qrels --size 40 --size 100 --out OUT/x"
_JUDGES: Final = "--people in/judges/people.qrels --model good=in/judges/good.qrels --rel 2 --resamples 100"
_SYSTEMS: Final = "".join(f" --run in/judges/s{number:02d}.run" for number in range(6))
_LOG: Final = "--log dev=in/log/log.jsonl"
_LOGRUNS: Final = "--run in/log/r0.run --run in/log/r1.run --run in/log/r2.run"
_ANSWERS: Final = "".join(
    f" --run {corpus}/{system}=in/answers/{corpus}-{system}.run"
    for corpus in ("web", "wiki")
    for system in ("sparse", "dense")
)
_CORPORA: Final = "--docs web=in/answers/web.jsonl --docs wiki=in/answers/wiki.jsonl"
_SCHEMES: Final = "leakage leak transfer transfer:2 survivorship answerability relevance-documents relevance-passages duplicates".split()
#: By command and label. OUT is where the line writes, COMMAND/LABEL/out; others may read it there. What stands before
#: "; " is a step. "! " stands before what is too slow to be printed in each form, where "--out OUT" at the end is left out.
LINES: Final[dict[str, dict[str, str]]] = {
    "check": {
        "sample": "! sample --encoder letters --out OUT",
        "files": f"! --test in/topics.tsv --docs in/repeated.jsonl --trials 5 --baseline a1 --qrels in/qrels {_RUNS} --out OUT",
        "few": "--qrels in/qrels --run in/a1.run --run in/b1.run --judged-by model --out OUT",
        "one": "--qrels in/qrels --run in/a1.run --out OUT",
        "broken": "--qrels in/qrels --run in/a1.run --run in/broken.run --out OUT",
        "plan": "sample --dry-run",
    },
    "leakage audit": {
        "exhaustive": f"! --train in/train.tsv --test in/topics.trec {_LETTERS} --topic 301 --out OUT",
        "prefilter": f"! --train in/train.tsv --test in/topics.trec {_LETTERS} --mode prefilter --out OUT",
        "later": f"! --train in/later.tsv --test in/topics.trec {_LETTERS} --baseline leakage-audit/exhaustive/out --out OUT",
        "redacted": f"! --train in/train.tsv --test in/topics.trec {_LETTERS} --redact --redact-key in/key --out OUT",
        "sample": "! --train in/sample/sample-clicks.tsv.gz --train in/sample/sample-questions.tsv.gz --encoder letters"
        " --test in/sample/sample-news.trec --test in/sample/sample-heritage.trec --threshold 0.85 --floor 0.8 -k 20"
        " --variants sample-news=in/sample/sample-news.variants.tsv --labels in/sample/labels.jsonl --out OUT",
        "columns": f"! --train in/table.csv --all-columns --test in/topics.tsv {_LETTERS} --out OUT",
        "shard": f"! --train in/train.tsv --test in/topics.trec {_LETTERS} --block-size 64 --engine shard:1/2 --out OUT/s",
        "shard 2": f"! --train in/train.tsv --test in/topics.trec {_LETTERS} --block-size 64 --engine shard:2/2 --out OUT/s",
    },
    "leakage examples": {
        "queries": "! --train in/examples.jsonl --test in/topics.tsv --docs in/repeated.jsonl --qrels in/qrels --workers 1"
        " --semantic queries --encoder letters --sample 20 --out OUT",
        "few": "! --train in/examples.jsonl --test in/topics.tsv --kinds query-query --workers 1 --sample 20 --out OUT",
    },
    "leakage matrix": {"suite": "! in/suite.yaml --encoder letters --out OUT"},
    "leakage calibrate": {
        "sample": "--labels in/sample/labels.jsonl --min-precision 0.8 --encoder packaged",
        "audit": "--labels in/sample/labels.jsonl --audit leakage-audit/sample/out --drawing topics",
        "none": "--labels in/judged/leak.judged --min-precision 0.99",
    },
    "leakage clean": {
        "train": "--audit leakage-audit/exhaustive/out --train in/train.tsv --out OUT/clean.tsv",
        "ids": "--audit leakage-clean/train/out/clean.tsv.removed.tsv --match id --train in/ids.tsv#1 --out OUT/clean.tsv",
        "test": "--remove test --test in/sample/sample-news.trec --audit leakage-audit/sample/out --resamples 100"
        f" {_SAMPLE} --out OUT/clean.trec",
        "no runs": "--remove test --test in/topics.trec --audit leakage-audit/exhaustive/out --out OUT/clean.trec",
        "docs": "--remove docs --docs in/repeated.jsonl --qrels in/qrels --audit leakage-examples/queries/out"
        f" {_RUNS} --resamples 100 --out OUT/clean.jsonl",
        "examples": "--train in/examples.jsonl --audit leakage-examples/queries/out --out OUT/clean.jsonl",
    },
    "leakage effect": {
        "queries": f"--audit leakage-audit/sample/out --test-set sample-news --resamples 100 {_SAMPLE}",
        "matched": f"--audit leakage-audit/sample/out --test-set sample-news --matched-by bm25 --resamples 100 {_SAMPLE}",
        "kinds": f"--audit leakage-examples/queries/out --qrels in/qrels {_RUNS} --resamples 100",
    },
    "leakage card": {
        **{name: f"leakage-audit/exhaustive/out --for {name} --called topics=A/b --called train=C/d --model E/f"
           for name in ("mteb", "conda", "dataset-card", "model-card")},
        "audit": "leakage-audit/sample/out --pairs --labels in/sample/labels.jsonl",
        "redacted": "leakage-audit/exhaustive/out --pairs --redact --redact-key in/key",
        "eval-results": "leakage-audit/sample/out --for eval-results --called sample-news=A/b:c --model bm25"
        " --effect leakage-effect/queries/stdout.json",
        "into": "leakage-audit/exhaustive/out --for dataset-card --called topics=A/b --into in/README.md",
        "examples": "leakage-examples/queries/out --date 2024-05-06",
        "examples-conda": "leakage-examples/queries/out --for conda --called topics=A/b --called examples=C/d",
        "matrix": "leakage-matrix/suite/out",
    },
    "transfer match": {
        "url": f"{_VERSIONS} --drop-tracking --out OUT",
        "mapping": f"{_VERSIONS} --match-by mapping --mapping in/transfer/ids.tsv --out OUT",
    },
    "transfer snapshots": {
        "cdx": "--docs in/archive.jsonl --years 2015,2016 --base-url ARCHIVE --settings in/archive.toml"
        " --search-rate 0 --page-rate 0 --out OUT/x",
    },
    "transfer scan": {
        "both": f"! {_SCAN} --out OUT",
        "percentile": f"! {_SCAN} --percentile 90 --evidence scores --matched transfer-match/url/out --best best=old,new --out OUT",
    },
    "transfer describe": {"both": "transfer-scan/both/out"},
    "transfer estimate": {
        "labels": "labelled transfer-scan/both/out/items.jsonl OUT/l.jsonl;"
        " transfer-scan/both/out --labels transfer-estimate/labels/out/l.jsonl",
        "counts": "--counts in/counts.csv",
    },
    "transfer carry": {
        "matched": "--qrels in/transfer/old.qrels --matched transfer-match/url/out --to new --expert-qrels in/transfer/new.qrels"
        " --out OUT/x.qrels",
        "pattern": "--qrels in/cast.qrels --pattern cast --out OUT/x.qrels",
        "mapping": "--qrels in/transfer/old.qrels --mapping in/transfer/ids.tsv --docs in/transfer/new.jsonl --out OUT/x.qrels",
    },
    "transfer clean": {
        "scan": "--qrels in/transfer/old.qrels --scan transfer-scan/both/out --out OUT/x.qrels",
        "labels": "--qrels in/transfer/old.qrels --scan transfer-scan/both/out --trust labels-only"
        " --labels transfer-estimate/labels/out/l.jsonl --out OUT/x.qrels",
    },
    "transfer select": {
        "all": "transfer-scan/both/out --out OUT/x",
        "seeds": "transfer-scan/both/out --strategy random --strategy version:new --seeds 2 --part best --size 10 --out OUT/x",
    },
    "transfer card": {
        "scan": "transfer-scan/both/out --date 2024-05-06",
        "labels": "transfer-scan/both/out --labels transfer-estimate/labels/out/l.jsonl",
    },
    "survivorship profile": {
        "log": f"! {_LOG} --kinds in/log/kinds.tsv --resamples 200 --out OUT",
        "lists": "--survived a=in/log/survived.txt --discarded a=in/log/discarded.txt --kinds in/log/kinds.tsv --out OUT",
    },
    "survivorship map": {
        "docs": f"{_LOG} --docs in/log/docs.jsonl --out OUT",
        "later": f"{_LOG} --docs in/log/docs.jsonl --later in/log/later.jsonl --duplicates first --out OUT",
    },
    "survivorship depth": {
        "log": f"{_LOG} --shown 1,3,5 --out OUT",
        "qrels": f"{_LOG} --shown 1,3,5 --qrels in/log/qrels --out OUT",
        "mapped": f"{_LOG} --shown 1,3 --mapping survivorship-map/docs/out --out OUT",
    },
    "survivorship simulate": {
        "run": "--topics in/log/topics.tsv --qrels in/log/qrels --run in/log/r0.run --out OUT/log.jsonl",
        "index": "--topics in/topics.tsv --qrels in/qrels --index index/docs/out/index --select first --out OUT/log.jsonl",
    },
    "survivorship triples": {
        "ids": "--instances in/log/triples.tsv --depths survivorship-depth/log/out --tsv --out OUT",
    },
    "survivorship evaluate": {
        "depths": f"! --depths survivorship-depth/log/out {_LOGRUNS} --measures 'RR_MSMARCO@10 nDCG@10' --out OUT",
        "nested": "! --qrels 1=survivorship-depth/log/out/qrels/dev-1.qrels --qrels all=survivorship-depth/log/out/qrels/dev-all.qrels"
        f" {_LOGRUNS} --significance nested --out OUT",
        "depths of training": "! --depths survivorship-depth/log/out --run in/log/m-1.run --run in/log/m-5.run --run in/log/m-all.run"
        " --out OUT",
    },
    "survivorship answerable": {
        "pool": f"--log in/answers/log.jsonl {_CORPORA} -k 5 --out OUT{_ANSWERS}",
        "judged": "! --pool in/answers/pool --labels in/answers/answers.db --out OUT",
        "qrels": "! --run in/log/r0.run --run in/log/r1.run --qrels in/log/discarded.qrels --discarded in/log/discarded.txt --out OUT",
        "reasons": "! --pool in/answers/pool --labels in/answers/answers.db --reasons in/judged/survivorship.judged --out OUT",
    },
    "survivorship rescue": {
        "pool": "--pool in/answers/pool --labels in/answers/answers.db --negatives 2 --out OUT",
        "firsts": "--firsts survivorship-answerable/judged/out/firsts.parquet --qrels in/log/qrels --out OUT",
    },
    "collection audit": {
        "full": "! --docs in/repeated.jsonl --topics in/topics.tsv --qrels in/qrels --workers 1 --out OUT",
        "sample": "! --docs in/sample/collection/docs.jsonl.gz --topics in/sample/sample-news.trec --workers 1"
        f" --resamples 100 --previous-qrels in/sample/collection/model.qrels {_SAMPLE} --train in/topics.tsv --out OUT",
        "qrels": "--qrels in/faulty.qrels --grades 0,1,2 --out OUT",
    },
    "collection clean": {
        "full": "--qrels in/qrels --audit collection-audit/full/out --out OUT",
        "sample": "--qrels in/sample/collection/people.qrels --audit collection-audit/sample/out --out OUT",
    },
    "collection card": {
        "full": "collection-audit/sample/out --date 2024-05-06",
        "into": "collection-audit/sample/out --into in/README.md",
    },
    "pool build": {
        "depth": f"--topics in/pool/topics.tsv --docs in/pool/docs.tsv --metadata in/pool/runs.tsv --sparse-qrels in/pool/sparse.qrels"
        f" --annotators ann,bob --depth 5 --out OUT{_POOL}",
        "judged": f"--qrels in/pool/all.qrels --method maxmean --depth 5 --out OUT{_POOL}",
    },
    "pool topics": {
        "qrels": "in/pool/all.qrels --max-ratio none --min-relevant 17",
        "table": "in/judged.csv --qrels in/few.qrels",
        "tasks": "in/tasks.csv --qrels doc=in/few.qrels --out OUT/kept.tsv",
    },
    "pool simulate": {
        "small": "! --qrels in/pool/all.qrels --topics in/pool/topics.tsv --docs in/pool/docs.tsv --metadata in/pool/runs.tsv"
        f" --depth 5 --trials 2 --length 60 --workers 1 --stopping budget:30 --official-rule budget:20 --unlike lexical{_POOL} --out OUT",
    },
    "judge new": {
        "audit": "OUT/x.judged --scheme leakage --items leakage-audit/exhaustive/out --sample top:5@0.95 --annotators ann,bob"
        " --overlap 3 --topics in/topics.trec",
        "strata": "OUT/x.judged --scheme leak --items leakage-audit/sample/out --sample strata:0.8-1:5",
        "run": "OUT/x.judged --scheme relevance-passages --items in/a1.run --topics in/topics.tsv --docs in/docs.jsonl --sample top:3"
        " --checkers carl --spot-check 4 --adjudicators judy",
    },
    "judge import": {
        "labels": "copy in/judged/empty.judged OUT/x.judged; OUT/x.judged ann=in/judged/leakage.csv --file-format csv",
        "qrels": "copy judge-new/run/out/x.judged OUT/x.judged; OUT/x.judged nist=in/qrels",
    },
    "judge export": {
        **{form: f"in/judged/leakage.judged OUT/x.{ending} --file-format {form}"
           for form, ending in {"jsonl": "jsonl", "csv": "csv", "doccano": "jsonl", "labelstudio": "json"}.items()},
        "events": "in/judged/leakage.judged OUT/x.jsonl --which events",
        "qrels": "in/judged/relevance-passages.judged OUT/x.qrels --which majority",
    },
    "judge agreement": {
        **{scheme: f"in/judged/{scheme}.judged --resamples 50 --out OUT" for scheme in _SCHEMES},
        "one": "in/judged/leakage.judged --definition title-type --resamples 50 --drawing topics --out OUT",
        "models": "in/judged/leakage.judged --include-models --resamples 0 --out OUT",
    },
    "judge table": {
        **{scheme: f"in/judged/{scheme}.judged --out OUT" for scheme in _SCHEMES},
        "groups": "in/judged/leakage.judged --group-by topic_id",
    },
    "judge model": {
        "encoder": "copy in/judged/leakage.judged OUT/x.judged; OUT/x.judged --encoder letters --threshold 0.5",
        "chat": "copy in/judged/relevance-passages.judged OUT/x.judged; OUT/x.judged --endpoint CHAT --model tiny --concurrency 1",
        "probes": "! copy in/judged/relevance-passages.judged OUT/x.judged; OUT/x.judged --endpoint CHAT --model tiny --probe all"
        " --concurrency 1",
    },
    "judge audit": {
        "models": f"! {_JUDGES} --model bad=in/judges/bad.qrels --families in/judges/families.csv{_SYSTEMS} --out OUT",
        "people": f"! {_JUDGES} --people second=in/judges/second.qrels{_SYSTEMS} --out OUT",
        "sample": f"! {_JUDGES} --model more=in/judges/more.qrels --people-sample uniform{_SYSTEMS} --out OUT",
        "alone": f"{_JUDGES} --out OUT",
    },
    "track candidates": {
        "run": "--run in/a1.run -k 5 --topics in/topics.tsv --out OUT/x.run",
        "pairs": "--run in/a1.run -k 5 --topics in/topics.tsv --file-format pairs --out OUT/x.tsv",
    },
    "track validate": {
        "runs": f"{_RUNS} --topics in/topics.tsv --candidates in/first.run --max-results 50",
        "broken": "--run in/broken.run --topics in/topics.tsv --docs-ids in/ids.txt",
    },
    "track select-topics": {"sparse": f"{_POOL} --qrels in/pool/sparse.qrels -n 3 --high 0.9 --out OUT/x.tsv"},
    "track report": {
        "runs": f"! --qrels in/pool/all.qrels --sparse-qrels in/pool/sparse.qrels --metadata in/track.csv --collection in/pool/docs.tsv"
        f" --queries in/pool/topics.tsv --topics in/pool/topics.tsv --stated in/stated.csv{_POOL} --out OUT",
        "means": "! --means in/means.csv --out OUT",
    },
    "instances build": {
        "none": f"--kind none {_WORLD} --size 40 --size 200 --write triples --out OUT/x",
        "leak": f"--kind leak {_WORLD} --leaks 12 --topics in/world/topics.tsv --size 40 --out OUT/x",
        **{kind: f"--kind {kind} {_WORLD} {_TEST}" for kind in ("test", "test-queries", "test-documents", "test-reworded")},
        "own": "--kind none --size 40 --queries-from-documents in/untitled.jsonl --out OUT/x",
        "by-depth": "--kind by-depth --rows survivorship-triples/ids/out/triples.parquet --annotation-depth 3 --out OUT/x",
        "by-version": "--kind by-version --rows transfer-select/all/out/x/max.parquet --strategy max --out OUT/x",
    },
    "instances stats": {
        "sets": "instances-build/none/out/x instances-build/leak/out/x instances-build/test/out/x",
    },
    "instances queries": {"docs": "in/untitled.jsonl --out OUT/queries.tsv"},
    "instances export": {
        form: f"instances-build/none/out/x --size 40 --file-format {form} --out OUT/x.{form}"
        for form in ("jsonl", "parquet", "sentence-transformers", "triples")
    },
    "experiment run": {
        "dry": "in/example/design.yaml --workers 1 --dry-run --out OUT/x",
        "tiny": "! in/example/design.yaml --workers 1 --out OUT/x",
    },
    "experiment status": {"tiny": "experiment-run/tiny/out/x", "part": "in/grids/part"},
    "experiment designs": {"all": "", "copy": "--copy leakage-small --out OUT/x.yaml"},
    "experiment report": {
        "tiny": "! experiment-run/tiny/out/x --out OUT",
        **{name: f"! in/grids/{name} --ties ascending --out OUT" for name in ("part", "transfer", "survivorship")},
        "leakage": "! in/grids/leakage --measures 'nDCG@10 MFR' --memorisation-size 1000 --ties ascending --out OUT",
        "pilot": "! in/grids/leakage --kind pilot --ties ascending --out OUT",
    },
    "index": {
        "docs": "in/docs.jsonl --out OUT/index",
        "fields": "in/docs.jsonl --fields title,body --preset terrier --stopwords none --out OUT/index",
    },
    "search": {
        model: f"--index index/docs/out/index --topics in/topics.tsv --model {model} -k 20 --out OUT/x.run"
        for model in ("bm25", "ql", "rm3", "axiomatic", "prf")
    },
    "tune": {
        "bm25": "--index index/docs/out/index --topics in/topics.tsv --qrels in/qrels --grid k1=0.5,2 --folds 2 -k 50 --out OUT/x",
    },
    "rerank": {
        "bm25": "--run in/first.run --topics in/topics.tsv --docs in/docs.jsonl --model bm25:index/docs/out/index --out OUT/x.run",
        "knrm": "--run in/first.run --topics in/topics.tsv --docs in/docs.jsonl --model train/knrm/out/x --depth 5 --out OUT/x.run",
    },
    "train": {
        "knrm": "--model knrm --instances in/example/none.jsonl --vectors in/example/vectors.txt --set batch=4 --set max_document=20"
        " --out OUT/x",
    },
    "evaluate": {
        "runs": f"--qrels in/qrels {_RUNS} --measures 'nDCG@10 P@1 AP MFR' --sort AP --per-topic --out OUT",
        "plot": f"! --qrels in/qrels {_RUNS} --plot --out OUT/x",
        "equivalent": f"--qrels in/qrels {_RUNS} --equivalent collection-clean/full/out/duplicates.tsv --out OUT",
        "sample": f"{_SAMPLE} --out OUT",
        "unlike": "--qrels in/qrels --run in/broken.run --run in/a1.run --missing skip",
    },
    "compare": {
        "runs": f"--qrels in/qrels {_RUNS} --out OUT",
        "plot": f"! --qrels in/qrels {_RUNS} --baseline a1 --topics-of b1 --plot --out OUT/x",
        "orders": "--evaluation evaluate/runs/out --evaluation evaluate/equivalent/out --measures nDCG@10 --out OUT",
        "also": "--evaluation evaluate/runs/out --also evaluate/equivalent/out --baseline equivalent",
        "test": f"{_SAMPLE} --significance randomisation --correction holm --resamples 500 --interval bca --baseline bm25",
        "wilcoxon": f"{_SAMPLE} --significance wilcoxon --correction bh --effect-size gav",
        "welch": f"{_SAMPLE} --significance welch --measures 'P@5 AP'",
    },
    "merge": {"shards": "copy leakage-audit/shard/out/s OUT/1; copy 'leakage-audit/shard 2/out/s' OUT/2; OUT/1 OUT/2"},
    "demo": {"sample": "! --out OUT/x"},
}  # fmt: skip


@contextlib.contextmanager
def inputs(folder: Path) -> Iterator[dict[str, str]]:
    """Writes what the lines read, and runs the servers that they ask; their addresses by name."""
    import answerable_example
    import archive_server
    import assessors_example
    import chat_server
    import grid_example
    import instances_example
    import pool_collection
    import small_data
    import transfer_example
    from truerank.sources.sample import sample_folder

    small_data.write_inputs(folder)
    shutil.copytree(sample_folder(), folder / "sample")
    grid_example.write_example(folder / "example", grid_example.DESIGN.replace("24, 60", "24").replace("0, 1", "0"))
    instances_example.make(folder / "world")
    pool_collection.make(folder / "pool")
    transfer_example.write(folder / "transfer")
    (folder / "answers").mkdir()
    example = answerable_example.example(folder / "answers")
    answerable_example.pooled(example)
    answerable_example.judged(example, wrong=True)
    (folder / "judges").mkdir()
    human = assessors_example.people()
    few = {topic: dict(list(grades.items())[:12]) for topic, grades in human.items()}
    judges = {
        "people": few,
        "second": assessors_example.erring(few, 0.2, 9),
        "more": assessors_example.erring(human, 0.3),
    }
    judges |= {"good": assessors_example.erring(few, 0.1), "bad": assessors_example.erring(few, 0.9)}
    for name, grades in judges.items():
        assessors_example.write_qrels(grades, folder / "judges" / f"{name}.qrels")
    for name, run in assessors_example.runs(human, 6).items():
        assessors_example.write_run(run, folder / "judges" / f"{name}.run")
    draw = random.Random(3)
    _log(folder / "log", draw)
    _stores(folder / "judged", draw)
    _grids(folder / "grids")
    _texts(folder, draw)
    archive = archive_server.WebArchive()
    page = b"<html><head><title>t</title></head><body><main><p>The page says what it says in many words.</p></main></body></html>"
    for number, behaviour in enumerate(("plain", "gzip", "robots", "excluded", "not-memento")):
        archive.add(f"http://a.org/{number}", archive_server.Snapshot("20150702120000", page, behaviour=behaviour))

    def reply(seen: chat_server.Seen, _: int) -> chat_server.Reply:
        return chat_server.answered({"labels": [str(len(chat_server.item_of(seen)["texts"][-1]["text"]) % 4)]})

    with archive_server.serve(archive), chat_server.chat_server(reply) as (chat, _):
        yield {"ARCHIVE": archive.url, "CHAT": chat}


def copy(source: str, target: str) -> None:
    """Copies a file or folder."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if Path(source).is_dir() else shutil.copy)(source, target)


def labelled(source: str, target: str) -> None:
    """Items of a scan, with one label each of scheme transfer."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    names = ("only V1", "both", "V1 better", "neither", "only V2")
    items = [json.loads(line) for line in Path(source).read_text().splitlines()]
    _jsonl(Path(target), [{**item, "label": [names[place % 5]]} for place, item in enumerate(items)])


def _log(folder: Path, draw: random.Random) -> None:
    """An annotation log with texts, what was judged of it, runs of its documents, triples of its pairs."""
    folder.mkdir()
    rows: list[dict[str, Any]] = []
    for number in range(120):
        shown = [
            {"doc_id": f"d{number}-{place}", "text": f"Text {number} of {place} " * 3}
            for place in range(draw.choice((10, 10, 7)))
        ]
        selected = [one["doc_id"] for one in shown if draw.random() < 0.1]
        kind = draw.choice(("PERSON", "ENTITY", ""))
        rows.append(
            {
                "query_id": f"q{number}",
                "query": f"query {number}",
                "query_type": kind,
                "shown": shown,
                "selected": selected,
            }
        )
    _jsonl(folder / "log.jsonl", rows)
    texts = [one for row in rows for one in row["shown"]]
    _jsonl(folder / "docs.jsonl", [*texts[5:], {"doc_id": "twin", "text": texts[9]["text"]}])
    _jsonl(folder / "later.jsonl", texts[::2])
    pairs = [(row["query_id"], one) for row in rows for one in row["selected"]]
    lost = [row["query_id"] for row in rows if not row["selected"]]
    _lines(folder / "qrels", [f"{query} 0 {one} 1" for query, one in pairs])
    _lines(folder / "discarded.qrels", [f"{query} 0 d{query[1:]}-3 {draw.randrange(2)}" for query in lost])
    _lines(folder / "discarded.txt", lost)
    _lines(folder / "survived.txt", [row["query_id"] for row in rows if row["selected"]])
    _lines(folder / "kinds.tsv", [f"q{number}\t{'even' if number % 2 == 0 else 'odd'}" for number in range(110)])
    _lines(folder / "topics.tsv", [f"{row['query_id']}\t{row['query']}" for row in rows])
    _lines(folder / "triples.tsv", ["\t".join((*draw.choice(pairs), f"n{number}")) for number in range(200)])
    for name in ("r0", "r1", "r2", "m-1", "m-5", "m-all"):
        ranked = ((row["query_id"], draw.sample(row["shown"], len(row["shown"]))) for row in rows)
        _lines(
            folder / f"{name}.run",
            [
                f"{query} Q0 {one['doc_id']} {rank} {20 - rank} x"
                for query, some in ranked
                for rank, one in enumerate(some, 1)
            ],
        )


def _stores(folder: Path, draw: random.Random) -> None:
    """A judging store of each scheme, in which two people and a model labelled items; an empty one, and its labels."""
    from judging_example import store_of
    from truerank import judge
    from truerank.judging import Annotator, Item, Store, Text, load_scheme

    folder.mkdir()
    for name in _SCHEMES:
        scheme = load_scheme(name)
        items = []
        for number in range(24):
            views = {
                "pair": ("query",),
                "versions": ("query", "V1", "V2"),
                "document": ("query", "document"),
                "passages": ("query", "passage 1", "passage 2"),
            }
            texts = [
                Text(part, f"{part} words {number} about slate roofs. It costs {number}%.", f"{part}-{number}")
                for part in views[scheme.view]
            ]
            items.append(
                Item(f"i{number}", str(number % 4), title=f"slate roofs {number % 4}", variant="roofs" * (number % 2),
                     texts=tuple(texts), score=0.8 + number / 120, dataset=("news", "web")[number % 2], probability=0.5)
            )  # fmt: skip
        said: dict[str, dict[str, list[str]]] = {"ann": {}}
        kinds = [one.name for one in scheme.groups if one.required] or [""]
        for item in items:
            some = [[one.name for one in scheme.choices if one.group == kind and not one.alone] for kind in kinds]
            some[0] += [text.name for text in item.texts[1:] if scheme.per_text]
            alone = [one.name for one in scheme.choices if one.alone]
            chosen = alone[:1] if draw.random() < 0.3 else []
            said["ann"][item.item_id] = chosen or [draw.choice(names) for names in some]
        for other in ("bob", "robot"):
            said[other] = {one: draw.choice((labels, said["ann"]["i3"])) for one, labels in said["ann"].items()}
        annotators = [Annotator("robot", "model", "tiny at 0"), Annotator("judy", "adjudicator")]
        path = store_of(folder / f"{name}.judged", scheme, items, said, annotators)
        with Store.open(path) as store:
            store.record("i5", "judy", "adjudicate", said["ann"]["i5"])
            store.record("i6", "bob", "skip", reason="too hard")
        if name == "leakage":
            store_of(folder / "empty.judged", scheme, items, {"ann": {}})
            judge.export(path, folder / "leakage.csv", annotators=("ann",))


def _grids(folder: Path) -> None:
    """Results of experiments for the reports of each kind, one of them unfinished."""
    import small_grid
    from truerank.experiments.grid.design import ModelDesign, ReportDesign, SetDesign

    small_grid.leakage(folder / "leakage", topics=8)
    small_grid.leakage(folder / "part", topics=8, unfinished=lambda cell: ("done", "open", "failed")[cell.seed])
    gains = {"T5_Max": 1.0, "BM25": 0.5, "T5_Min": 0.0, "r = 1": 0.0, "r = 5": 0.9, "all": 1.0}

    def strength(collection: str, one: Any, model: str, size: int, seed: int, variant: str) -> float:
        return gains[one.label.rpartition(" | ")[2]]

    versions = [
        SetDesign(f"{block}-{name}", "by-version", ("north", "south"), (200,), "rows.jsonl", label=f"{title} | {name}")
        for block, title in (("v1", "V1≫V2"), ("random", "Random"))
        for name in list(gains)[:3]
    ]
    depths = [
        SetDesign(f"d{place}", "by-depth", ("north",), (200,), "rows.jsonl", label=name)
        for place, name in enumerate(list(gains)[3:])
    ]
    ways = [
        ModelDesign(f"monot5-{way}", "monot5:t5-base", aggregates=(way,), policy="sliding:150:75")
        for way in ("first", "max")
    ]
    plan = small_grid.design(versions, ways, report=ReportDesign(kind="transfer", baseline="V1≫V2 | T5_Min"))
    small_grid.write_grid(folder / "transfer", plan, strength, topics=8)
    models = [ModelDesign("monot5", "monot5:t5-base", seeds=(0, 1))]
    plan = small_grid.design(depths, models, ("north",), ReportDesign(kind="survivorship", baseline="all"))
    small_grid.write_grid(folder / "survivorship", plan, strength, topics=8)


def _texts(folder: Path, draw: random.Random) -> None:
    """Tables and files for single lines, many of them with faults."""
    train = (folder / "train.tsv").read_text().splitlines()
    written = {
        "later.tsv": "\n".join(
            [*train[:1500], *(f"x{number}\t{line.partition(chr(9))[2]}" for number, line in enumerate(train[-900:]))]
        ),
        "ids.tsv": "\n".join(f"{number}\t{line.partition(chr(9))[0]}" for number, line in enumerate(train)),
        "table.csv": "id,first,second\n"
        + "\n".join(line.replace("\t", ",") + f",{train[0][5:]} {place}" for place, line in enumerate(train[:300])),
        "broken.run": "1 Q0 d0001 1 9 x\n1 Q0 d0001 2 8 x\n2 Q0 d0002 1 nan x\n77 Q0 zz 1 3 x\n3 Q0 d0003 1 1 a-very-long-tag-of-a-run\n",
        "ids.txt": "d0001\nd0002\n",
        "faulty.qrels": "1 0 a 1\n1 0 a 2\n1 0 b 7\n2 0 c 0\n2 0 d 0\n3 0 e -1\n3 0 f 1\n",
        "cast.qrels": "1 0 CAR_a-1 1\n1 0 MARCO_D1-2 2\n1 0 MARCO_D1-3 0\n2 0 MARCO_D2-1 1\n",
        "few.qrels": "".join(f"7 0 d{number} {int(number < 4)}\n" for number in range(10)) + "9 0 x 1\n",
        "judged.csv": "topic,relevant,judged\n7,3,10\n8,2,10\n9,7,10\n10,6,10\n",
        "tasks.csv": "topic,doc_relevant,doc_judged,passage_relevant,passage_judged\n7,3,10,5,9\n8,2,10,4,5\n9,7,10,1,30\n",
        "counts.csv": 'set,00,01,10,11,21,12,documents,error\nV1>>V2 MaxP,5,3,73,11,7,1,17969,10\nV2>>V1 MaxP,0,25,5,51,0,19,"15,817",01\n',
        "track.csv": "run,group,subtask,category\nnorth1,n,fullrank,nnlm\nsouth1,s,fullrank,trad\nsouth2,s,rerank,nn\neast1,e,rerank,nnlm\n",
        "stated.csv": "statement,value\nruns,4\nbest nn over best trad,24.9\n",
        "means.csv": "run,group,subtask,category,NDCG@10,MRR\na,n,fullrank,nnlm,0.6,0.4\nb,n,rerank,nnlm,0.55,0.45\nc,s,fullrank,nn,0.5,0.3\n"
        "d,s,rerank,trad,0.3,0.2\ne,e,fullrank,trad,0.4,0.1\n",
        "README.md": "---\nlicense: mit\n---\n# A data set\n",
        "archive.toml": "retries = 1\nbackoff = 0.01\nmax_wait = 0.02\n",
        "archive.jsonl": "".join(
            json.dumps({"doc_id": f"d{n}", "url": f"http://a.org/{n}", "body": "b"}) + "\n" for n in range(6)
        ),
        "transfer/ids.tsv": "old\tnew\n" + "".join(f"old{number}\tn{30 - number}\n" for number in range(1, 28)),
        "transfer/new.qrels": "".join(f"{number} 0 n{30 - number} {draw.randrange(2)}\n" for number in range(1, 25)),
        "pool/sparse.qrels": "".join(
            f"{topic} 0 d{draw.randrange(400):03d} 1\n" for topic in range(1, 7) for _ in range(9)
        ),
        "judges/families.csv": "run,family\n" + "".join(f"s{number:02d},{'ab'[number % 2]}\n" for number in range(6)),
    }
    for name, text in written.items():
        (folder / name).write_text(text)


def _lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    _lines(path, [json.dumps(row) for row in rows])
