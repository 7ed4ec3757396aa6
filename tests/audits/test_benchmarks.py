"""Benchmarks of the gallery are recognised by hashes, and what differs in a copy is counted."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank
from places import ROOT, real
from truerank.audits.benchmarks import CopyDifference, fingerprint, recognised
from truerank.cli import main
from truerank.core.result import gallery_notes

Rows = dict[tuple[str, str], int]


def rows_of(topics: int = 60, each: int = 40, seed: int = 1) -> Rows:
    draw = random.Random(seed)
    return {
        (f"q{7 * topic}", f"d{doc}"): draw.choice((0, 0, 1, 2))
        for topic in range(topics)
        for doc in draw.sample(range(5000), each)
    }


def frame(rows: Rows) -> pl.DataFrame:
    schema = {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
    return pl.DataFrame([(*pair, grade) for pair, grade in rows.items()], schema, orient="row")


def entry(topics: set[str] | None, rows: Rows | None, page: str = "made") -> dict[str, Any]:
    judged = None if rows is None else frame(rows)
    return {"page": page, "name": page.title(), "version": "", "tasks": [], **fingerprint(topics, judged)}


def command(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0


BASE = rows_of()
TOPICS = {topic for topic, _ in BASE}
#: What is known here: the benchmark, and others that it must not be taken for.
GALLERY = [entry(TOPICS, BASE), entry({"x1", "x5"}, rows_of(seed=2), "other"), entry({"a", "b", "zz"}, None, "topics")]


def test_an_equal_copy_in_any_order() -> None:
    pairs = [*BASE.items()]
    random.Random(3).shuffle(pairs)
    found = recognised(sorted(TOPICS, reverse=True), frame(dict(pairs)), GALLERY)
    assert found is not None and found.page == "made"
    assert found.topics == found.judgments == CopyDifference(0, 0)
    assert found.page in found.note() and "not as in" not in found.note()


@pytest.mark.parametrize(("what", "keep"), [("missing", 0.6), ("added", 1.5), ("changed", 1.0)])
def test_many_differences_are_estimated(what: str, keep: float) -> None:
    base = rows_of(200, 100)
    copy = base
    if what == "missing":
        copy = dict([*base.items()][: int(keep * len(base))])
    elif what == "added":
        copy = base | {(topic, f"n{doc}"): 0 for topic, doc in [*base][: int((keep - 1) * len(base))]}
    else:
        copy = {pair: min(grade, 1) for pair, grade in base.items()}
    truth = {
        "missing": len(base.keys() - copy.keys()), "added": len(copy.keys() - base.keys()),
        "changed": sum(copy[pair] != grade for pair, grade in base.items() if pair in copy),
    }  # fmt: skip
    found = recognised(None, frame(copy), [entry(None, base)])
    assert found is not None and found.judgments is not None and not found.judgments.exact
    for name, count in truth.items():
        # Four standard errors of a share in a sample of 128 judgments.
        assert abs(getattr(found.judgments, name) - count) <= 4 * (0.25 / 128) ** 0.5 * len(base)
        assert (getattr(found.judgments, name) > 0) == (count > 0)
    assert "about" in found.note()


def test_others_are_not_recognised() -> None:
    assert recognised(None, frame(rows_of(seed=9)), GALLERY) is None
    assert recognised(TOPICS, frame({(topic, f"z{doc}"): 1 for topic, doc in BASE}), GALLERY) is None
    assert recognised({f"mine{number}" for number in range(60)}, None, GALLERY) is None
    assert recognised(None, None, GALLERY) is None
    assert recognised((), frame({}), GALLERY) is None
    few = dict([*BASE.items()][:4])
    assert recognised(None, frame(few), GALLERY) is None


def test_topic_ids_alone() -> None:
    def name(topics: set[str], gallery: list[dict[str, Any]] = GALLERY) -> str | None:
        found = recognised(topics, None, gallery)
        return None if found is None else found.name

    assert name(TOPICS) == "Made"
    assert name(TOPICS - {"q7"}) is None
    # Ids that are numbered through are those of many sets, and so are those of two benchmarks.
    numbered = {str(number) for number in range(1, 51)}
    assert name(numbered, [entry(numbered, None)]) is None
    assert name(TOPICS, [*GALLERY, entry(TOPICS, None, "twin")]) is None
    # Judgments that the gallery does not have: of a benchmark without any, the ids decide.
    found = recognised({"a", "b", "zz"}, frame(rows_of(seed=8)), GALLERY)
    assert found is not None and found.name == "Topics" and found.judgments is None


def test_the_file_holds_hashes_and_counts_only() -> None:
    text = (ROOT / "src/truerank/audits/benchmarks.json").read_text(encoding="utf-8")
    known = json.loads(text)["benchmarks"]
    assert len(text) < 100_000
    assert {key for one in known for key in one} == {"page", "name", "version", "tasks", "topics", "judgments"}
    parts = [part for one in known for part in (one["topics"], one["judgments"]) if part]
    assert {key for part in parts for key in part} <= {"count", "hash", "sample"}
    gallery = json.loads((ROOT / "docs/gallery/gallery.json").read_text(encoding="utf-8"))["benchmarks"]
    assert {one["page"] for one in known} <= {one["page"] for one in gallery}


@pytest.mark.shared
@pytest.mark.parametrize(
    ("qrels", "topics", "page"),
    [
        ("beir/nfcorpus.qrels.gz", "beir/nfcorpus.tsv.gz", "nfcorpus"),
        ("bright/sustainable-living.fixed.qrels.gz", "bright/sustainable-living.tsv.gz", "bright-sustainable-living"),
        ("dl20-passage.qrels.gz", "dl20.tsv", "dl20-passage"),
    ],
)
def test_real_sets_are_recognised(qrels: str, topics: str, page: str, tmp_path: Path) -> None:
    files = {"qrels": str(real("qrels", qrels)), "topics": str(real("topics", topics))}
    found = truerank.collection.audit(**files)
    (known,) = found.facts["gallery"]
    assert known["page"] == page
    assert known["topics"] == known["judgments"] == CopyDifference(0, 0)._asdict()
    assert gallery_notes(found.facts) == (known["note"],) and known["page"] in known["note"]
    # A copy with some lines less.
    with gzip.open(files["qrels"], "rt", encoding="utf-8") as lines:
        kept = [*lines][3:]
    (tmp_path / "copy.qrels").write_text("".join(kept), encoding="utf-8")
    (known,) = truerank.collection.audit(qrels=tmp_path / "copy.qrels").facts["gallery"]
    assert known["judgments"]["missing"] == 3 and not known["judgments"]["exact"] and known["topics"] is None


@pytest.mark.shared
def test_check_names_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels, topics = real("qrels", "dl19-passage.qrels.gz"), real("topics", "dl19-passage.tsv")
    runs = [f"--run={real('survivorship', 'runs', name)}" for name in ("monot5.dl19.run.gz", "monot5-sim1.dl19.run.gz")]
    command(["check", "--test", str(topics), "--qrels", str(qrels), *runs, "--out", str(tmp_path / "out")])
    assert "has a page on it: dl19-passage" in " ".join("".join(capsys.readouterr()).split())
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in summary["gallery"]] == ["TREC Deep Learning 2019, passages"]
    assert "has a page on it: dl19-passage" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_check_of_other_data_names_none(tmp_path: Path) -> None:
    judged = frame(rows_of(12, 12))
    runs = {
        name: judged.select("topic_id", "doc_id", score=pl.int_range(pl.len()).cast(pl.Float64) * sign)
        for name, sign in (("a", 1), ("b", -1))
    }
    found = truerank.check(qrels=judged, run=runs)
    assert found.benchmark is None and "gallery" not in found.json()


def board(tasks: Mapping[str, list[str]]) -> pl.DataFrame:
    rows = [
        (system, task, item, 0.1 * number + 0.01 * place)
        for number, system in enumerate(("a", "b", "c"))
        for task, items in tasks.items()
        for place, item in enumerate(items)
    ]
    return pl.DataFrame(rows, ["system", "task", "item", "score"], orient="row")


def test_a_leaderboard_names_the_pages_of_its_tasks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = tmp_path / "scores.csv"
    place.write_text("system,NFCorpus,SciFact,Mine\na,0.1,0.2,0.3\nb,0.2,0.1,0.3\n", encoding="utf-8")
    command(["leaderboard", str(place)])
    shown = "".join(capsys.readouterr())
    assert "NFCorpus (nfcorpus)" in shown and "SciFact (scifact)" in shown
    found = truerank.leaderboard(str(place))
    assert [one["name"] for one in found.facts["gallery"]] == ["NFCorpus", "SciFact"]
    assert [one["topics"] for one in found.facts["gallery"]] == [None, None]
    # With scores of questions, their ids are compared.
    ids = [f"PLAIN-{number}" for number in range(9)]
    (known,) = truerank.leaderboard(board({"NFCorpus": ids, "Mine": ["1", "2", "3"]})).facts["gallery"]
    assert known["topics"]["missing"] > 300 and known["page"] in known["note"]
    assert "gallery" not in truerank.leaderboard(board({"Mine": ids, "Yours": ids})).facts
