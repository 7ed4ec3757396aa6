"""Tables 2 to 7 of the track paper and its pools, as a miniature on a generated collection."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

from places import DATA
from truerank.audits.pool.page import simulation_tables
from truerank.audits.pool.standings import RANDOM
from truerank.audits.track.page import counts_table
from truerank.cli import main
from truerank.measures import evaluate
from truerank.sources import read_qrels_frame, read_run_frame
from truerank.sources.qrels import QREL_SCHEMA
from truerank_lab.papers import track, track_runs
from truerank_lab.papers.track_runs import Collection

TOPICS = 3
RUNS = ("okapi-bm25", "okapi-short", "likely-50", "expand-rm3", "dense-whole", "dense-rerank", "odd-overlap")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collection, pl.DataFrame, Path]:
    """A collection about three subjects, each of them one topic."""
    folder, draw = tmp_path_factory.mktemp("track"), random.Random(4)
    words = [f"word{number}" for number in range(40)]
    documents, rows = {}, []
    for number in range(120):
        subject = number % (2 * TOPICS)
        documents[f"d{number}"] = " ".join([*draw.choices(words, k=20), *[f"subject{subject}"] * draw.randint(0, 3)])
        if subject < TOPICS:
            rows.append((f"t{subject}", f"d{number}", int(draw.random() < 0.5)))
    topics = {f"t{number}": f"subject{number} {words[number]} {words[number + 9]}" for number in range(TOPICS)}
    lines = (json.dumps({"_id": key, "text": text}) + "\n" for key, text in documents.items())
    (folder / "docs.jsonl").write_text("".join(lines))
    collection = Collection(str(folder / "docs.jsonl"), documents, topics)
    return collection, pl.DataFrame(rows, schema=QREL_SCHEMA, orient="row"), folder


def test_tables_and_pools(made: tuple[Collection, pl.DataFrame, Path], capsys: pytest.CaptureFixture[str]) -> None:
    collection, qrels, folder = made
    out = folder / "out"
    found, statistics, simulated = track.reproduce("cacm", collection, qrels, out, track.Size(3, 1, RUNS, "none", 0.4))
    shown = capsys.readouterr().out
    assert all(name in shown for name in RUNS)
    # Table 2: category, rerank, fullrank, all, groups. Tables 3 and 4: the means of the runs.
    counts = {row[0]: row[1:] for row in counts_table(found.analysis).rows}
    assert counts == {"nnlm": (1, 1, 2, 1), "trad": (5, 0, 5, 4), "all": (6, 1, 7, 5)}
    runs = sorted((out / "runs").glob("*.run"))
    scores = evaluate(str(out / "judged.qrels"), runs, "nDCG@10")
    means = dict(zip((run.run for run in found.analysis.scores.runs), found.analysis.scores.of("nDCG@10"), strict=True))
    assert means == pytest.approx(dict(zip(scores.runs, scores.mean[:, 0], strict=True)))
    # What the rerank subtask starts from: all that BM25 found, equal scores as trec_eval orders them.
    order = {"by": ["topic_id", "score", "doc_id"], "descending": [False, True, True]}
    lists = {path.stem: read_run_frame(path).sort(**order) for path in runs}
    candidates = pl.read_csv(out / "candidates.tsv", separator="\t", infer_schema=False)
    assert candidates["doc_id"].to_list() == lists["okapi-bm25"]["doc_id"].to_list()
    # The pools: the first ten documents of every run, and the sparse judgments.
    sparse = read_qrels_frame(str(out / "runs" / "sparse.qrels")).select("topic_id", "doc_id").rows()
    best = [frame.group_by("topic_id", maintain_order=True).head(10) for frame in lists.values()]
    tops = [pair for frame in best for pair in frame.select("topic_id", "doc_id").rows()]
    pool = pl.read_csv(out / "pool" / "pool.csv", infer_schema=False)
    pairs = set(pool.select("topic_id", "doc_id").rows())
    assert pairs == {*sparse, *tops}
    # Table 5: the procedure judged the pools and more, and counts what the assessors call relevant.
    official = read_qrels_frame(str(out / "simulation" / "official.qrels"))
    grades = {(topic, doc_id): grade for topic, doc_id, grade in qrels.iter_rows()}
    judged = {(topic, doc_id): grade for topic, doc_id, grade in official.iter_rows()}
    assert pairs < judged.keys() and all(grades.get(pair, 0) == grade for pair, grade in judged.items())
    table5 = {topic.topic_id: (topic.relevant, topic.judged) for topic in statistics.tasks[0].topics}
    assert table5 == {
        topic: (int((own["relevance"] > 0).sum()), len(own)) for (topic,), own in official.group_by("topic_id")
    }
    # Table 6: every team left out. Table 7: the rules beside the original size, and no better than complete judgments.
    tables = simulation_tables(simulated)
    assert {row[0] for row in tables["teams"].rows} == {"okapi", "likely", "expand", "dense", "odd"}
    rules = {row[0]: row for row in tables["table7"].rows}
    assert {"Official", "Original Size", "Budget 200", "Budget 300", "Heuristic"} <= rules.keys()
    relevant = int((qrels["relevance"] > 0).sum())
    assert (rules["Official"][1], rules["Complete judgments"][3]) == (str(len(official)), str(relevant))


@pytest.mark.shared
def test_what_it_would_make(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not DATA.is_dir():
        pytest.skip(f"no shared data at {DATA}")
    track.main(["--dry-run", "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    assert "vaswani for the documents: 33 runs of 8 teams over 12 topics; 2 trials" in shown
    assert "216 traces" in shown and not (tmp_path / "out").exists()


def test_there_are_33_runs_of_8_teams(made: tuple[Collection, pl.DataFrame, Path], tmp_path: Path) -> None:
    every = list(track_runs.runs(track_runs.Ranker(made[0], tmp_path)))
    assert len(every) == len({run.name for run in every}) == 33 and len({run.team for run in every}) == 8
    assert {run.category for run in every} == {"trad", "nn", "nnlm"}
    assert {run.subtask for run in every} == {"fullrank", "rerank"}


@pytest.mark.slow
@pytest.mark.shared
def test_cacm_with_runs_of_two_teams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    collection, qrels = track_runs.read("cacm", DATA / "collections")
    chosen = dict(list(collection.topics.items())[10:16])
    judged = tmp_path / "few.qrels"
    rows = [row for row in qrels.rows() if row[0] in chosen]
    judged.write_text("".join(f"{topic} 0 {doc_id} {grade}\n" for topic, doc_id, grade in rows))
    every = track_runs.runs(track_runs.Ranker(collection, tmp_path))
    wanted = [run.name for run in every if run.team in ("okapi", "likely")]
    paths = track_runs.write(collection._replace(topics=chosen), qrels, tmp_path / "runs", wanted=wanted)
    capsys.readouterr()
    words = [word for path in paths for word in ("--run", str(path))]
    words += [
        *f"--team-prefix=- --qrels {judged} --topics {tmp_path}/runs/topics.tsv --docs {collection.source}".split()
    ]
    words += [*f"--share 0.1 --trials 1 --sparse-qrels {tmp_path}/runs/sparse.qrels --workers 1".split()]
    words += ["--stopping", "budget:150"]
    # Without the encoder, which takes most of a minute here.
    words += ["--unlike", "latent,feedback"]
    with pytest.raises(SystemExit) as ended:
        main(["pool", "simulate", *words, "--out", str(tmp_path / "out"), "--json"])
    assert ended.value.code == 0
    summary = json.loads(capsys.readouterr().out)
    rules = {rule["rule"]: rule for rule in summary["rules"]}
    assert summary["length"] == 320
    assert min(rules["Original Size"]["relevant"]) > max(rules[RANDOM]["relevant"])
    assert {run["team"] for run in summary["runs"].values()} == {"okapi", "likely"}
    assert all(test["tau"] > 0.5 for measure in summary["verdict"]["measures"] for test in measure["evidence"])
    assert {one["name"] for one in summary["unlike"]} == {"latent", "feedback"}
