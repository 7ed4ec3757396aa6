"""A folder is taken as its files are, if each is named; what is skipped or not understood is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import truerank
from truerank.errors import InputError
from truerank.sources.folders import folder_content
from truerank.sources.recognition import read_as_given

TOPICS = [f"q{number}" for number in range(12)]
RUNS = {
    name: {topic: [f"d{at if at % step else 90 + at}", "d77", f"d{at + 40}"] for at, topic in enumerate(TOPICS)}
    for name, step in (("one", 5), ("two", 2))
}


def halves(folder: Path) -> None:
    rows = [(topic, f"how to do {topic}", f"d{at}") for at, topic in enumerate(TOPICS)]
    pl.DataFrame(rows, ["id", "question", "expected"], orient="row").write_csv(folder / "gold.csv")
    for name, run in RUNS.items():
        lists = [(topic, ";".join(docs)) for topic, docs in run.items()]
        pl.DataFrame(lists, ["id", "retrieved"], orient="row").write_csv(folder / f"{name}.csv")


def trec(folder: Path) -> None:
    (folder / "judged.txt").write_text("".join(f"{topic} 0 d{at} 1\n" for at, topic in enumerate(TOPICS)))
    for name, run in RUNS.items():
        lines = (f"{t} Q0 {doc} {at + 1} {9 - at} x\n" for t, docs in run.items() for at, doc in enumerate(docs))
        (folder / f"{name}.run").write_text("".join(lines))


def by_topic(folder: Path) -> None:
    (folder / "qrels.json").write_text(json.dumps({topic: {f"d{at}": 1} for at, topic in enumerate(TOPICS)}))
    for name, run in RUNS.items():
        (folder / f"{name}.json").write_text(
            json.dumps({topic: {doc: 9.5 - at for at, doc in enumerate(docs)} for topic, docs in run.items()})
        )


def scores(folder: Path) -> None:
    for name, run in RUNS.items():
        rows = [(topic, float(docs[0] == f"d{at}")) for at, (topic, docs) in enumerate(run.items())]
        pl.DataFrame(rows, ["question", "score"], orient="row").write_csv(folder / f"{name}.csv")


@pytest.mark.parametrize("layout", [halves, trec, by_topic, scores])
def test_a_folder_says_what_its_files_say(layout: Callable[[Path], None], tmp_path: Path) -> None:
    layout(tmp_path)
    files = sorted(tmp_path.iterdir())
    named, whole = truerank.check(files), truerank.check(tmp_path)
    assert whole.base is not None and whole.base.value is not None and whole.base.value > 0
    assert whole.base == named.base and whole.conclusion == named.conclusion
    assert [(one.path, one.kind) for one in whole.readings] == [(one.path, one.kind) for one in named.readings]


def test_what_is_skipped_is_counted_and_what_is_broken_is_named(tmp_path: Path) -> None:
    halves(tmp_path)
    value = truerank.check(tmp_path).base
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "one.run").write_text("q1 Q0 d1 1 1 x\n")
    (tmp_path / "README.md").write_text("# Ours\n")
    (tmp_path / "cut.json").write_text('{"q1": [1, 2')
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "gone.csv").symlink_to("nowhere.csv")
    (tmp_path / "latest.csv").symlink_to("one.csv")
    (tmp_path / "loop").symlink_to(".")
    found = truerank.check(tmp_path)
    unread = {Path(one.path).name: one.why for one in found.readings if one.kind in ("nothing known", "left out")}
    assert found.base == value and set(unread) == {"cut.json", "empty.csv", tmp_path.name}
    assert "JSON" in unread["cut.json"] and "empty" in unread["empty.csv"]
    for part in ("hidden folders (1)", ".md files (1)", "broken links (1)", "second links to a file (1)"):
        assert part in unread[tmp_path.name]
    assert "cut.json" in str(found)


def test_a_folder_without_anything_to_check_names_its_files(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"q1": [1, 2')
    (tmp_path / "notes.txt").write_text("Remember the milk\n")
    with pytest.raises(InputError, match=r"cut\.json.*no valid JSON.*notes\.txt"):
        truerank.check(tmp_path)
    trec(tmp_path)
    (tmp_path / "judged.txt").unlink()
    with pytest.raises(InputError, match=r"runs need judgments.*cut\.json.*one\.run"):
        truerank.check(tmp_path)


def test_a_beir_folder_with_results_of_systems(tmp_path: Path) -> None:
    trec(tmp_path)
    (tmp_path / "judged.txt").unlink()
    (tmp_path / "qrels").mkdir()
    rows = "".join(f"{topic}\td{at}\t1\n" for at, topic in enumerate(TOPICS))
    (tmp_path / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    queries = (json.dumps({"_id": topic, "text": f"how to do {topic}"}) for topic in TOPICS)
    (tmp_path / "queries.jsonl").write_text("\n".join(queries))
    (tmp_path / "metrics.json").write_text('{"ndcg": {"NDCG@1": 0.3, "NDCG@10": 0.4}, "map": {"MAP@1": 0.3}}')
    found = truerank.check(tmp_path)
    assert found.claim is not None and set(found.claim.runs) == {"one", "two"}
    kinds = {Path(one.path).name: one.kind for one in found.readings}
    assert kinds == {
        tmp_path.name: "test set", "metrics.json": "nothing known", "one.run": "run", "two.run": "run",
    }  # fmt: skip
    (tmp_path / "other.qrels").write_text("q1 0 d1 1\n")
    with pytest.raises(InputError, match=r"two readings.*`qrels`"):
        truerank.check(tmp_path)


def test_scores_beside_results_are_left_out_of_a_folder_and_refused_by_name(tmp_path: Path) -> None:
    trec(tmp_path)
    pl.DataFrame({"question": TOPICS, "three": [0.5] * 12, "four": [0.25] * 12}).write_csv(tmp_path / "scores.csv")
    kinds = {Path(one.path).name: one.kind for one in read_as_given([tmp_path])}
    assert kinds["scores.csv"] == "left out" and kinds["one.run"] == "run"
    with pytest.raises(InputError, match=r"two readings.*scores\.csv"):
        read_as_given(sorted(tmp_path.iterdir()))


def test_parts_of_a_data_set(tmp_path: Path) -> None:
    trec(tmp_path)
    (tmp_path / "judged.txt").unlink()
    frames = {
        "queries": pl.DataFrame({"_id": TOPICS, "text": [f"how to do {topic}" for topic in TOPICS]}),
        "corpus": pl.DataFrame({"_id": ["d1"], "title": ["d1"], "text": ["text"]}),
        "data": pl.DataFrame({"query-id": TOPICS, "corpus-id": [f"d{at}" for at in range(12)], "score": [1] * 12}),
    }
    for name, frame in frames.items():
        (tmp_path / name).mkdir()
        frame.write_parquet(tmp_path / name / "test-00000-of-00001.parquet")
    readings = read_as_given([tmp_path])
    kinds = {Path(one.path).parent.name: one.kind for one in readings if one.kind != "run"}
    assert kinds == {"queries": "questions", "corpus": "documents", "data": "judgments"}


def test_an_empty_folder_and_one_of_hidden_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty folder"):
        folder_content(tmp_path)
    (tmp_path / ".env").write_text("A=1\n")
    with pytest.raises(InputError, match=r"hidden files \(1\)"):
        folder_content(tmp_path)


def test_topics_and_judgments_of_a_track(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("1 0 d1 1\n2 0 d2 1\n")
    (tmp_path / "topics.txt").write_text("<top>\n<num>1</num><title>how is one\n</title>\n</top>\n")
    (tmp_path / "notes.txt").write_text("see the wiki\nfor more\n")
    kinds = {Path(one.path).name: one.kind for one in read_as_given([tmp_path])}
    assert kinds == {"qrels.txt": "judgments", "topics.txt": "questions", "notes.txt": "nothing known"}
