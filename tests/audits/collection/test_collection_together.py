"""Groups of equal documents, their judgments, cleaning, the judging page and back, runs, the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from collection_example import docs, text

from truerank import collection, evaluate, report
from truerank.audits.collection.judgments import Closing, closed
from truerank.cli import main
from truerank.errors import InputError
from truerank.judging.schemes import BUILT_IN, load_scheme
from truerank.judging.store import Store
from truerank.version import __version__


def _files(tmp_path: Path) -> dict[str, str]:
    """A collection with copies: of a relevant document, judged otherwise, alike and not at all; and a near copy."""
    changed = text(2, 60).split()
    changed[30] = "different"
    records = [(f"d{n}", text(n, 60)) for n in range(20)]
    records += [("d0-copy", text(0, 60).upper()), ("d1-copy", text(1, 60)), ("d3-copy", text(3, 60))]
    records += [("d2-near", " ".join(changed)), ("asked", text(900, 9))]
    (tmp_path / "topics.tsv").write_text(f"t1\t{text(900, 9)}\nt2\t{text(901, 9)}\n")
    rows = [
        "t1 0 d0 1", "t1  0  d0-copy  0", "t1 0 d1 1", "t1 0 d1-copy 1", "t2 0 d2 2", "t2 0 d2-near 0",
        "t2\t0\td3\t1", "t2 0 d9 0", "t2 0 gone 1", "t2 0 D10 1",
    ]  # fmt: skip
    (tmp_path / "some.qrels").write_text("\n".join(rows) + "\n")
    return {
        "docs": docs(tmp_path / "docs.jsonl", records),
        "topics": str(tmp_path / "topics.tsv"),
        "qrels": str(tmp_path / "some.qrels"),
    }


def test_groups_and_their_grades(tmp_path: Path) -> None:
    found = collection.audit(**_files(tmp_path))
    assert found.rows("exact-duplicate")["doc_id"].to_list() == ["d0-copy", "d1-copy", "d3-copy"]
    assert found.rows("near-duplicate")["doc_id"].to_list() == ["d2-near"]
    contradicted = found.rows("contradicted-group").row(0, named=True)
    assert (contradicted["topic_id"], contradicted["detail"]) == ("t1", "d0 1 · d0-copy 0")
    assert found.rows("redundant-relevant").select("doc_id", "other").rows() == [("d1-copy", "d1")]
    assert found.rows("unjudged-twin").select("topic_id", "doc_id").rows() == [("t2", "d3-copy")]
    assert found.rows("doubtful-contradiction").select("topic_id", "other").rows() == [("t2", "d2-near")]
    assert found.rows("self-retrieval").select("topic_id", "doc_id").rows() == [("t1", "asked")]
    assert found.rows("respelt-document").select("doc_id", "other").rows() == [("D10", "d10")]


def test_cleaning_keeps_what_is_sound_and_lists_the_rest(tmp_path: Path) -> None:
    files = _files(tmp_path)
    audited = collection.audit(**files, out=tmp_path / "audit")
    before = Path(files["qrels"]).read_bytes().splitlines(keepends=True)
    found = collection.clean(files["qrels"], tmp_path / "audit", out=tmp_path / "clean")
    after = (tmp_path / "clean" / "some.qrels").read_bytes().splitlines(keepends=True)
    # The copies and the missing document go; the respelt id is written as the document has it; the rest is as it was.
    assert after == [*before[:1], before[2], *before[4:8], b"t2 0 d10 1\n"]
    changes = pl.read_csv(tmp_path / "clean" / "changes.tsv", separator="\t", infer_schema=False)
    assert changes.select("doc_id", "action", "reason").rows() == [
        ("d0-copy", "removed", "a copy of a document that is judged already"),
        ("d1-copy", "removed", "a copy of a document that is judged already"),
        ("gone", "removed", "no such document"),
        ("D10", "changed", "spelt as the document is"),
    ]
    listed = (tmp_path / "clean" / "contradictions.tsv").read_text().splitlines()
    assert listed[1].split("\t") == ["t1", "d0", "d0 d0-copy", "1 0", "1"]
    assert (tmp_path / "clean" / "exclusions.tsv").read_text() == "topic_id\tdoc_id\nt1\tasked\n"
    assert found.counts()["written"] == len(after) and not found.warnings
    again = collection.clean(files["qrels"], audited)
    assert again.qrels.equals(found.qrels)
    run = {"t1": {"d0-copy": 3.0, "d0": 2.0, "d1": 1.0}, "t2": {"d3-copy": 1.0}}
    scores = evaluate(
        str(tmp_path / "clean" / "some.qrels"), run, "R@5", equivalent=tmp_path / "clean" / "duplicates.tsv"
    )
    assert scores.of("run", "R@5").tolist() == [1.0, pytest.approx(1 / 3)]


@pytest.mark.parametrize(("combine", "kept"), [("max", [1]), ("min", [0]), ("majority", [0]), ("agree", [])])
def test_contradictions_are_combined(combine: str, kept: list[int]) -> None:
    rows = [(n, 0, "t", doc, grade) for n, (doc, grade) in enumerate([("a", 1), ("a2", 0), ("a3", 0)])]
    frame = pl.DataFrame(rows, schema=["row", "line", "topic_id", "doc_id", "relevance"], orient="row")
    rules = Closing(representatives={"a2": "a", "a3": "a"}, combine=combine)  # type: ignore[arg-type]
    found, changes = closed(frame, rules)
    assert found["relevance"].to_list() == kept and set(found["doc_id"]) <= {"a"}
    # Every row is written as it was, or stands among the changes.
    assert {*changes["row"], *found["row"]} == {0, 1, 2}


def test_pairs_go_to_the_judging_page_and_back(tmp_path: Path) -> None:
    files = _files(tmp_path)
    collection.audit(**files, out=tmp_path / "audit")
    with pytest.raises(SystemExit) as ended:
        source = ["--scheme", "duplicates", "--items", str(tmp_path / "audit"), "--annotators", "ann"]
        main(["judge", "new", str(tmp_path / "pairs.judged"), *source])
    assert not ended.value.code
    with Store.open(tmp_path / "pairs.judged") as store:
        items = {item.dataset: item for item in store.items()}
    assert {"contradictions", "near 0.9"} <= set(items)
    near = items["near 0.9"]
    assert [part.id for part in near.texts] == ["d2", "d2-near"] and near.probability == 1.0
    contradictions = [json.loads(line) for line in (tmp_path / "audit" / "items.jsonl").read_text().splitlines()]
    assert contradictions[0]["title"] == text(900, 9)
    for label, kind in (("same", "exact-duplicate"), ("different", "")):
        said = tmp_path / f"{label}.jsonl"
        record = {"item_id": near.item_id, "topic_id": near.topic_id, "left": "d2", "right": "d2-near"}
        said.write_text(json.dumps({**record, "label": [label], "annotator": "ann"}) + "\n")
        found = collection.audit(**files, labels=str(said))
        assert found.finding("near-duplicate") is None and found.finding("doubtful-contradiction") is None
        assert ("d2-near" in found.rows("exact-duplicate")["doc_id"].to_list()) == bool(kind)
        band = next(one for one in found.facts["similarity"] if one["kind"] == "near")
        assert (band["share"]["k"], band["share"]["n"]) == (int(label == "same"), 1)
        assert found.pairs.filter(pl.col("kind") == "near")["answer"].to_list() == [label]


def test_the_scheme_asks_what_is_needed() -> None:
    scheme = load_scheme("duplicates")
    assert scheme.check(["holds"]) == ("holds",) and scheme.check(["same", "first grade"]) == ("same", "first grade")
    with pytest.raises(InputError, match="no label of the group"):
        scheme.check(["both grades"])
    assert "duplicates" in BUILT_IN


def test_runs_before_and_after_and_beside_chance(tmp_path: Path) -> None:
    files = _files(tmp_path)
    runs = {
        "copies": {"t1": {"d0-copy": 3.0, "d1": 2.0, "zz": 1.0}, "t2": {"d3-copy": 2.0, "d2": 1.0}},
        "firsts": {"t1": {"d5": 3.0, "d0": 2.0}, "t2": {"d9": 3.0, "d3": 2.0}},
    }
    found = collection.audit(**files, run=runs, measures="P@1 R@5", resamples=40, out=tmp_path / "audit")
    scores = {(one["run"], one["measure"]): one for one in found.facts["effect"]["scores"]}
    assert scores["copies", "P@1"]["before"]["mean"] == 0.0 and scores["copies", "P@1"]["after"]["mean"] == 1.0
    assert scores["firsts", "P@1"]["difference"]["mean"] == 0.0
    (order, _) = found.facts["effect"]["orders"]
    assert order["measure"] == "P@1"
    placebo = {one["measure"]: one for one in found.facts["effect"]["placebos"]}["P@1"]
    assert placebo["verdict"] in ("moved more than chance", "no more than chance", "cannot tell")
    assert placebo["draws"] == 40 and len(placebo["systems"]) == 2
    assert found.rows("run-of-other-documents")["doc_id"].to_list() == ["zz"]
    assert found.finding("relevant-not-retrieved") is not None
    page = (tmp_path / "audit" / "report.html").read_text()
    assert "What cleaning does to the runs" in page and "<svg" in page and "random changes" in page
    loaded = collection.load_audit(tmp_path / "audit")
    written = json.loads((tmp_path / "audit" / "summary.json").read_text())
    assert {"version": __version__, "command": "collection audit", **loaded.json()} == written
    assert report(found).title == "Is this test set sound? docs, topics, some"


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    files = _files(tmp_path)
    for name in ("one", "two"):
        collection.audit(**files, out=tmp_path / name)
    names = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert Path("items.jsonl") in names and Path("report.html") in names
    for name in names:
        if name.name != "run.log":
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_the_card_states_what_was_found(tmp_path: Path) -> None:
    collection.audit(**_files(tmp_path), out=tmp_path / "audit")
    card = (tmp_path / "audit" / "card.md").read_text()
    assert card.startswith("## Collection audit\n\nChecked with truerank") and ": **FAULTY** (judgments FAULTY" in card
    assert "| Documents with the same text as another one | fault | 3 of 25 documents |" in card


def _plain(folder: Path, said: list[str], extra: tuple[str, ...] = ()) -> collection.CollectionAudit:
    """A sound collection of these texts, with one copy."""
    records = [(f"d{at}", one) for at, one in enumerate(said)] + [("copy", said[0])]
    rows = [f"t{at} 0 d{at} 1" for at in range(60)]
    (folder / "some.qrels").write_text("\n".join([*rows, *extra]) + "\n")
    return collection.audit(qrels=str(folder / "some.qrels"), docs=docs(folder / "docs.jsonl", records))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cut-document", lambda at: text(at, 40 + at % 30)[:250]),
        (
            "boilerplate",
            lambda at: f"all the usual words stand above each of our texts here no{at} {text(at, 40 + at % 30)}",
        ),
        ("", lambda at: text(at, 40 + at % 30)),
    ],
)
def test_what_touches_most_comes_first(tmp_path: Path, kind: str, said: Callable[[int], str]) -> None:
    found = _plain(tmp_path, [said(at) for at in range(400)])
    whole, part = found.verdicts[0], next(one for one in found.verdicts if one.subject == "documents")
    fault = found.finding("exact-duplicate")
    assert (whole.word, fault and fault.count) == ("FAULTY IN PART", 1)
    if kind:
        first = found.finding(kind)
        assert first is not None and first.count > 300 and first.of == 401
        for verdict in (whole, part):
            assert verdict.sentence.index(first.kind.code) < verdict.sentence.index("DOCS18")
        assert whole.settles.startswith(f"{first.kind.code}: {first.kind.remedy}") and "DOCS18: " in whole.settles
    else:
        assert whole.sentence.count("DOCS") == 1 and not whole.sentence.startswith("Look")


def test_one_of_few_groups_of_copies_is_not_the_greatest_fault(tmp_path: Path) -> None:
    found = _plain(tmp_path, [text(at) for at in range(400)], ("t0 0 copy 0", "t5 0 d5 0", "t7 0 d7 0"))
    group, pairs = found.finding("contradicted-group"), found.finding("contradicted-pair")
    assert group is not None and pairs is not None and (group.count, group.of, pairs.count) == (1, 60, 2)
    assert found.verdicts[0].word == "FAULTY IN PART"
    assert found.verdicts[0].sentence.index("QREL12") < found.verdicts[0].sentence.index("COLL01")
