"""The designs of the papers at their smallest, from the data that they ask for to the report."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import tiny_models
import transfer_example
from grid_example import WORDS, write_example
from truerank import leakage, transfer
from truerank.lexical import TopicQuery, build_index, model_of, search, write_run
from truerank.options import Encoding
from truerank_lab.cli import main
from truerank_lab.grid import costs, open_results
from truerank_lab.grid.execution import status

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def short_trials() -> Iterator[None]:
    """A trial ends with the first rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "_TRIAL_SECONDS", 0.0)
        yield


def called(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 0, words


def run_design(name: str, folder: Path, settings: dict[str, str]) -> Path:
    """Copies a ready design, runs it with settings, and makes the report; returns the folder of the report."""
    called("designs", "--copy", name, "--out", str(folder))
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    design, grid = str(folder / f"{name}.yaml"), str(folder / "grid")
    called("run", design, *given, "--workers", "1", "--device", "cpu", "--out", grid)
    found = status(grid)
    assert found.cells["done"] == found.cells["all"] > 0, found.failed
    called("report", grid, "--resamples", "200", "--out", str(folder / "report"))
    return folder / "report"


def tsv(path: Path, rows: Sequence[tuple[object, ...]]) -> Path:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    return path


def test_pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_example(tmp_path)
    draw = random.Random(3)
    queries = {f"q{number}": draw.sample(WORDS, 4) for number in range(60)}
    tsv(tmp_path / "queries.tsv", [(key, " ".join(words)) for key, words in queries.items()])
    documents = [
        {"doc_id": f"m{key}", "text": " ".join([*words, *draw.choices(WORDS, k=9)])} for key, words in queries.items()
    ]
    (tmp_path / "training.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    (tmp_path / "training.qrels").write_text("".join(f"{key} 0 m{key} 1\n" for key in queries))
    train = str(tmp_path / "queries.tsv")
    audited = tmp_path / "audit" / "robust04"
    leakage.audit([train], [str(tmp_path / "topics.tsv")], encoding=Encoding(encoder="packaged"), out=audited)
    for kind in ("cedr", "parade", "monobert"):
        tiny_models.save_bert(tmp_path / kind, labels=2 if kind == "monobert" else None)
    tiny_models.save_t5(tmp_path / "monot5")
    monkeypatch.setenv("AUDIT", str(tmp_path / "audit"))
    monkeypatch.setenv("GLOVE", str(tmp_path / "vectors.txt"))
    set_, collection = "sets.robust04-none", "collections.robust04"
    settings = {
        **{f"{collection}.{key}": str(tmp_path / name) for key, name in
           (("docs", "docs.jsonl"), ("topics", "topics.tsv"), ("qrels", "qrels.txt"))},
        **{f"{collection}.{key}": value for key, value in (("depth", "8"), ("folds", "2"), ("topic_count", "6"))},
        f"{set_}.sizes": "[24]",
        f"{set_}.build.queries": train,
        f"{set_}.build.train_qrels": str(tmp_path / "training.qrels"),
        f"{set_}.build.docs": str(tmp_path / "training.jsonl"),
        **{f"models.{kind}.model": f"{kind}:{tmp_path / kind}" for kind in ("cedr", "parade", "monobert", "monot5")},
        "seeds": "[0, 1]",
    }  # fmt: skip
    report = run_design("pilot", tmp_path, settings)
    summary = json.loads((report / "summary.json").read_text())
    assert len(open_results(tmp_path / "grid").cells) == 18
    assert (report / "report.html").is_file() and "pilot" in json.dumps(summary)


def test_leakage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two logs with judgments and documents (MS MARCO, ORCAS), labelled leaks, and three test collections."""
    write_example(tmp_path)
    draw = random.Random(5)
    topics = [line.split("\t") for line in (tmp_path / "topics.tsv").read_text().splitlines()]
    queries = {f"q{number}": " ".join(draw.sample(WORDS, 4)) for number in range(80)}
    leaks = {f"leak-{topic}": (topic, f"{text} {draw.choice(WORDS)}") for topic, text in topics}
    every = {**queries, **{key: text for key, (_, text) in leaks.items()}}
    logs = [
        tsv(tmp_path / name, list(every.items())[start::2]) for start, name in enumerate(("train.tsv", "orcas.tsv"))
    ]
    documents = [
        {"doc_id": f"m{key}", "text": f"{text} {' '.join(draw.choices(WORDS, k=9))}"} for key, text in every.items()
    ]
    (tmp_path / "training.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    (tmp_path / "training.qrels").write_text("".join(f"{key} 0 m{key} 1\n" for key in every))
    header = ("topic_id", "query_id", "query_text", "label")
    labels = [(topic, key, text, "reformulation") for key, (topic, text) in leaks.items()]
    tsv(tmp_path / "labels.tsv", [header, *labels])
    for kind in ("monobert",):
        tiny_models.save_bert(tmp_path / kind, labels=2)
    tiny_models.save_t5(tmp_path / "monot5")
    settings = {
        "seeds": "[0]",
        "report.memorisation_size": "24",
        **{f"models.{kind}.model": f"{kind}:{tmp_path / kind}" for kind in ("monobert", "monot5")},
    }
    logged = [str(log) for log in logs]
    for name in ("robust04", "cc17", "cc18"):
        own, audited = tmp_path / f"{name}.tsv", tmp_path / "audit" / name
        # Collections with the same texts would have the same cells.
        tsv(own, [(topic, f"{text} {name}") for topic, text in topics])
        leakage.audit(logged, [str(own)], encoding=Encoding(encoder="packaged"), out=audited)
        collection = {"docs": str(tmp_path / "docs.jsonl"), "topics": str(own), "qrels": str(tmp_path / "qrels.txt")}
        collection |= {"depth": "8", "folds": "2", "topic_count": "6"}
        settings |= {f"collections.{name}.{key}": value for key, value in collection.items()}
        judged = {"topics": str(own), "qrels": collection["qrels"], "test_docs": collection["docs"], "leaks": "4"}
        log = {"queries": json.dumps(logged), "train_qrels": str(tmp_path / "training.qrels")}
        docs = {"docs": str(tmp_path / "training.jsonl")}
        built = {"none": log | docs, "leak": log | docs | {"topics": str(own), "leaks": "4"}, "test": docs | judged}
        for kind, values in built.items():
            settings |= {f"sets.{name}-{kind}.build.{key}": value for key, value in values.items()}
            settings[f"sets.{name}-{kind}.sizes"] = "[16, 24]"
    for name, file in (("AUDIT", "audit"), ("GLOVE", "vectors.txt"), ("LABELS", "labels.tsv")):
        monkeypatch.setenv(name, str(tmp_path / file))
    report = run_design("leakage", tmp_path, settings)
    results = open_results(tmp_path / "grid")
    # 72 sets become 18; five models, one seed.
    assert len(results.cells) == 90 and set(results.leaked("cc17")["set"]) == {"cc17-leak", "cc17-test"}
    summary = json.loads((report / "summary.json").read_text())
    assert {one["collection"] for one in summary["memorisation"]} == {"robust04", "cc17", "cc18"}


def test_survivorship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of annotations, official triples, four initial rankings, and a checkpoint that is not trained."""
    write_example(tmp_path)
    draw = random.Random(6)
    docs = {line["doc_id"]: line["text"] for line in map(json.loads, (tmp_path / "docs.jsonl").open())}
    log, triples, topics = [], [], []
    for number in range(60):
        shown = draw.sample(sorted(docs), 10)
        query = " ".join(draw.sample(docs[shown[0]].split(), 3))
        log.append({"query_id": f"q{number}", "query": query, "shown": shown, "selected": [shown[number % 10]]})
        triples.append((f"q{number}", shown[number % 10], shown[(number + 1) % 10]))
        topics.append((f"q{number}", query))
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in log))
    tsv(tmp_path / "train.tsv", topics)
    tsv(tmp_path / "qidpidtriples.tsv", triples)
    called("survivorship", "depth", "--log", str(tmp_path / "log.jsonl"), "--out", str(tmp_path / "depths"))
    called(
        "survivorship", "triples", "--instances", str(tmp_path / "qidpidtriples.tsv"), "--depths",
        str(tmp_path / "depths"), "--limit", "6", "--out", str(tmp_path / "triples"),
    )  # fmt: skip
    build_index(str(tmp_path / "docs.jsonl"), tmp_path / "index")
    asked = [TopicQuery(*line.split("\t")) for line in (tmp_path / "topics.tsv").read_text().splitlines()]
    run = search(tmp_path / "index", asked, model_of("anserini", "bm25", {}), k=8).run
    settings = {"models.monot5.model": f"monot5:{tiny_models.save_t5(tmp_path / 'monot5')}"}
    settings["sets.all.checkpoint"] = settings["models.monot5.model"]
    for name in ("dev-small", "dl19", "dl20", "robust04"):
        files = {"docs": "docs.jsonl", "topics": "topics.tsv", "qrels": "qrels.txt"}
        settings |= {f"collections.{name}.{key}": str(tmp_path / file) for key, file in files.items()}
        settings |= {
            f"collections.{name}.depth": "8",
            f"collections.{name}.topic_count": "6",
            f"collections.{name}.rel": "1",
        }
        if name != "robust04":
            write_run(run, tmp_path / f"{name}.run.gz")
    settings["collections.robust04.field"] = "title"
    for name in ("r1", "r5"):
        build = {"topics": str(tmp_path / "train.tsv"), "docs": str(tmp_path / "docs.jsonl")}
        settings |= {f"sets.{name}.build.{key}": value for key, value in build.items()} | {f"sets.{name}.sizes": "[12]"}
    monkeypatch.setenv("TRIPLES", str(tmp_path / "triples"))
    monkeypatch.setenv("RUNS", str(tmp_path))
    report = run_design("survivorship", tmp_path, settings)
    assert len(open_results(tmp_path / "grid").cells) == 3
    rows = [line.split(",") for line in (report / "tables" / "depths.csv").read_text().splitlines()]
    assert {row[3] for row in rows[1:]} >= {"1", "5", "all"} and (report / "figures" / "depths.svg").is_file()


def test_transfer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = transfer_example.write(tmp_path / "versions")
    old, new = files.versions.values()
    scanned = {"model": "bm25", "split": "sliding:30:15", "items": 0}
    two = transfer.scan({"V1": old, "V2": new}, files.qrels, files.topics, out=tmp_path / "scan", **scanned)
    years = {"V1": old, "V2": new, "2015": new}
    wayback = transfer.scan(years, files.qrels, files.topics, out=tmp_path / "wayback", **scanned)
    for name, data_set in (
        ("v1-over-v2-first", "V1>>V2 FirstP"), ("v1-over-v2-max", "V1>>V2 MaxP"), ("v2-over-v1-first", "V2>>V1 FirstP"),
        ("v2-over-v1-max", "V2>>V1 MaxP"), ("random", None), ("wayback", None),
    ):  # fmt: skip
        strategies = ("max", "min", "bm25", *(("version:V1", "version:V2") if name == "wayback" else ()))
        for part, seed in (("first", 0), ("best", 5)):
            options = transfer.SelectOptions(strategies, data_set, size=2, part=part)
            place = tmp_path / "selected" / name / part
            transfer.select(wayback if name == "wayback" else two, place, options=options, seed=seed, seeds=2)
    monkeypatch.setenv("SELECTED", str(tmp_path / "selected"))
    monkeypatch.setenv("CLUEWEB", str(tmp_path / "clueweb"))
    tiny_models.save_t5(tmp_path / "monot5")
    settings = small_collections(tmp_path, files) | {
        f"models.{kind}.model": f"monot5:{tmp_path / 'monot5'}" for kind in ("first", "best")
    }
    settings |= {"models.first.seeds": "[0, 1]", "models.best.seeds": "[5, 6]"}
    text = (Path(transfer.__file__).parents[2] / "lab" / "ready" / "transfer.yaml").read_text()
    names = [line.strip().rstrip(":") for line in text.splitlines() if line.startswith("  ") and line.endswith(":")]
    settings |= {f"sets.{name}.sizes": "[2]" for name in names if name.endswith(("bm25", "min", "max", "V1", "V2"))}
    report = run_design("transfer", tmp_path, settings)
    assert len(open_results(tmp_path / "grid").cells) == 80
    assert (report / "report.html").is_file()


def small_collections(folder: Path, files: transfer_example.Files) -> dict[str, str]:
    """The old version with some of the topics, for each collection of the design."""
    old = next(iter(files.versions.values()))
    topics = [line.split("\t") for line in Path(files.topics).read_text().splitlines()]
    build_index(old, folder / "index")
    found: dict[str, str] = {}
    for number, name in enumerate(("clueweb12", "dl19", "dl20", "robust04")):
        place = folder / ("clueweb" if name == "clueweb12" else name)
        place.mkdir()
        some = topics[4 + 6 * number : 10 + 6 * number]
        tsv(place / "topics.tsv", some)
        keys = {topic for topic, _ in some}
        lines = [line for line in Path(files.qrels).read_text().splitlines() if line.split()[0] in keys]
        (place / "qrels.txt").write_text("\n".join(lines) + "\n")
        prefix = f"collections.{name}"
        found |= {f"{prefix}.docs": old, f"{prefix}.topics": str(place / "topics.tsv"), f"{prefix}.topic_count": "6"}
        found |= {f"{prefix}.qrels": str(place / "qrels.txt"), f"{prefix}.depth": "5"}
        if name in ("clueweb12", "robust04"):
            found[f"{prefix}.folds"] = "2"
        if name == "clueweb12":
            asked = [TopicQuery(*topic) for topic in sorted(map(tuple, some))]
            run = search(folder / "index", asked, model_of("anserini", "bm25", {}), k=5).run
            write_run(run, place / "bm25.run")
            found[f"{prefix}.first_stage.run"] = str(place / "bm25.run")
    return found | {"benchmarks.dl19-20.folds": "2"}
