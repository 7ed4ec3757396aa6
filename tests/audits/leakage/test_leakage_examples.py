"""The audit of whole training examples, against leaks that are planted by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import truerank
from truerank import leakage
from truerank.audits.leakage.documents.plants import CHANGES, changed
from truerank.audits.leakage.kinds import KINDS, RULES, KindVerdict
from truerank.audits.leakage.results import LEAKS
from truerank.errors import InputError
from truerank.overlaps import OVERLAPS, compare

QUERIES = {
    "t1": "how do coral reefs recover from bleaching events",
    "t2": "effects of caffeine on sleep quality in adults",
    "t3": "history of suspension bridges in northern europe",
    "t4": "treatment of chronic kidney disease at home",
}
WORDS = [
    f"{start}{middle}{end}" for start in "bdklmnprst" for middle in ("ari", "elo", "ino", "ude") for end in "mnrsx"
]
OF_DOCUMENTS = tuple(kind.name for kind in KINDS if kind.name != "query-query")


def audited(train: Path, test: Path, **options: Any) -> leakage.AuditResult:
    """An audit without an encoder."""
    return leakage.audit([str(train)], [str(test)], **{"encoder": "words", "sample": 20, **options})


def of(audit: leakage.AuditResult, kind: str) -> KindVerdict:
    """What was found of one kind of leak of the only test set."""
    (test,) = audit.summary["tests"]
    return next(one for one in leakage.kinds_of(audit, test) if one.kind == kind)


def prose(name: str, size: int = 60) -> str:
    """Words in an order of their own."""
    draw = random.Random(name)
    return " ".join(draw.choice(WORDS) for _ in range(size))


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BEIR folder: t1 to t4 with one relevant document each, d1 to d4 of 40."""
    folder = tmp_path_factory.mktemp("collection") / "reefs"
    (folder / "qrels").mkdir(parents=True)
    write_lines(folder / "corpus.jsonl", [{"_id": f"d{n}", "text": prose(f"d{n}")} for n in range(1, 41)])
    write_lines(folder / "queries.jsonl", [{"_id": name, "text": text} for name, text in QUERIES.items()])
    rows = "".join(f"{name}\td{name[1:]}\t1\n" for name in QUERIES)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def example(query: str, positive: str, negative: str) -> dict[str, Any]:
    return {"anchor": query, "positive": positive, "negative": negative}


LEAKING = [
    # The answer was seen: the query in other words, and its document with a header.
    example("how do coral reefs recover after bleaching events", f"Home. {prose('d1')} Contact.", prose("other 1")),
    # The query alone.
    example("sleep quality in adults: effects of caffeine", prose("other 2"), prose("other 3")),
    # A relevant document as a negative, for a query of its own, and that of another topic as a positive.
    example("where do eagles build nests", prose("d3"), prose("d2")),
    # A query in a document, and a document that is relevant to nothing.
    example("what is a fjord", f"{prose('other 4', 20)} {QUERIES['t4']} {prose('other 5', 20)}", prose("d30")),
]  # fmt: skip
HARMLESS = [example(f"{prose(f'q{n}', 5)}", prose(f"p{n}"), prose(f"n{n}")) for n in range(30)]


@pytest.fixture(scope="module")
def audit(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> leakage.AuditResult:
    folder = tmp_path_factory.mktemp("audit")
    train = write_lines(folder / "train.jsonl", [*HARMLESS[:15], *LEAKING, *HARMLESS[15:], LEAKING[0]])
    return audited(train, collection, out=folder / "out")


def leaked(audit: leakage.AuditResult, kind: str) -> set[str]:
    rows = audit.leaks.filter(kind=kind)
    names = {"pair": "topic_id", "query-query": "topic_id", "query-document": "topic_id"}
    return set(rows[names.get(kind, "doc_id")])


def test_each_kind_is_found_and_nothing_else(audit: leakage.AuditResult) -> None:
    assert [one.kind for one in leakage.kinds_of(audit, "reefs")] == list(OF_DOCUMENTS)
    assert leaked(audit, "pair") == {"t1"}
    assert leaked(audit, "query-query") == {"t1", "t2"}
    assert leaked(audit, "positive-relevant") == {"d1", "d3"}
    assert leaked(audit, "negative-relevant") == {"d2"}
    assert leaked(audit, "query-document") == {"t4"}
    assert leaked(audit, "document-corpus") == {"d1", "d2", "d3", "d30"}
    assert {one.verdict for one in leakage.kinds_of(audit, "reefs")} == {"CONTAMINATED"}
    assert audit.summary["tests"]["reefs"]["verdict"] == "CONTAMINATED"
    # The first example appears twice.
    (pair,) = audit.leaks.filter(kind="pair").iter_rows(named=True)
    assert pair["examples"] == 2
    assert (pair["doc_id"], pair["document_text"]) == ("d1", prose("d1"))
    assert pair["training_document"] == f"Home. {prose('d1')} Contact."
    assert of(audit, "query-document").of == 4


def test_cells_have_each_kind(audit: leakage.AuditResult) -> None:
    cells = {cell["kind"]: cell for cell in audit.summary["cells"]}
    assert list(cells) == ["query-query", *OF_DOCUMENTS]
    figures = ("looked_for", "leaked", "texts", "records")
    assert [cells["query-query"][name] for name in figures] == [4, 2, 2, 3]
    assert [cells["document-corpus"][name] for name in figures] == [40, 4, 4, 5]


def test_roles_are_detected_and_shown(audit: leakage.AuditResult) -> None:
    source = audit.summary["sources"]["train"]
    assert source["roles"] == "query=anchor, positive=positive, negative=negative"
    assert (source["examples"], source["positive_texts"]) == (35, 35)  # type: ignore[typeddict-item]
    assert audit.folder is not None and "query=anchor" in (audit.folder / "report.html").read_text()


def test_a_folder_is_opened_again(audit: leakage.AuditResult) -> None:
    assert audit.folder is not None
    again = leakage.load_audit(audit.folder)
    assert again.summary == json.loads((audit.folder / "summary.json").read_text())
    assert again.leaks.equals(audit.leaks) and again.templates.equals(audit.templates)
    assert leakage.kinds_of(again, "reefs") == leakage.kinds_of(audit, "reefs")
    assert dict(again.leaks.schema) == LEAKS
    assert {name for name in OVERLAPS if not name.endswith("_id")} <= LEAKS.keys()


def test_what_is_not_given_is_not_looked_for_with_the_remedy(tmp_path: Path) -> None:
    topics = write_lines(tmp_path / "topics.jsonl", [{"_id": name, "text": text} for name, text in QUERIES.items()])
    rows = [{"query": prose(f"q{n}", 6), "positive": prose(f"p{n}")} for n in range(20)]
    found = audited(write_lines(tmp_path / "train.jsonl", rows), topics)
    verdicts = {one.kind: one for one in leakage.kinds_of(found, "topics")}
    asked = {name for name, one in verdicts.items() if one.of}
    assert asked == {"query-document"}
    assert "--docs" in " ".join(verdicts["positive-relevant"].settle)
    assert "--qrels" in " ".join(verdicts["positive-relevant"].settle)
    assert "--docs" in " ".join(verdicts["document-corpus"].settle)
    # What was not asked speaks neither for nor against the test set.
    assert found.summary["tests"]["topics"]["verdict"] == "CLEAN"


def test_long_queries_with_another_number_or_denial_are_no_copies(tmp_path: Path) -> None:
    claim = " ".join(f"{word}" for word in prose("claim", 24).split())
    texts = {"1": f"{claim} in 40 percent of the cases", "2": f"zinc increases {prose('zinc', 20)}"}
    topics = write_lines(tmp_path / "topics.jsonl", [{"_id": name, "text": text} for name, text in texts.items()])
    changed = [texts["1"].replace("40", "60"), texts["2"].replace("increases", "decreases")]
    copies = [texts["1"].replace(" percent", "%"), f"{texts['2']} again"]
    for queries, leaks in ((changed, 0), (copies, 2)):
        rows = [{"query": text} for text in [*queries, *(prose(f"q{n}", 9) for n in range(20))]]
        found = audited(write_lines(tmp_path / "train.jsonl", rows), topics)
        assert found.leaks.height == leaks


def test_clean_names_what_was_found_of_planted_changes(collection: Path, tmp_path: Path) -> None:
    train = write_lines(tmp_path / "train.jsonl", HARMLESS)
    found = audited(train, collection, kinds=("document-corpus",), sample=40)
    (verdict,) = leakage.kinds_of(found, "reefs")
    assert verdict.verdict == "CLEAN"
    assert "boilerplate added" in " ".join(verdict.evidence)
    shares = {row["kind"]: row["share"] for row in verdict.sensitivity}
    assert shares["re-wrapped"] == shares["markup"] == 1
    blind = [kind for kind, share in shares.items() if share < 0.95]
    said = " ".join(verdict.evidence).partition("blind to these")[2]
    assert all(f"{kind} (" in said for kind in blind)
    assert not any(f"{kind} (" in said for kind in shares.keys() - set(blind))


def test_same_bytes_and_killed_runs_continue(
    audit: leakage.AuditResult, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audit.folder is not None
    train = audit.folder.parent / "train.jsonl"
    place = "truerank.audits.leakage.documents.audit.locate"

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(place, dies)
        audited(train, collection, out=tmp_path / "out")
    assert not (tmp_path / "out" / "leaks.parquet").exists()
    audited(train, collection, out=tmp_path / "out")
    assert "EXAM03" in (tmp_path / "out" / "report.html").read_text()
    for name in ("leaks.parquet", "summary.json", "report.html", "manifest.json"):
        one, other = (folder / name for folder in (audit.folder, tmp_path / "out"))
        assert one.read_bytes() == other.read_bytes(), name


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_repeatable_and_change_something(change: Any) -> None:
    text = " ".join(f"{prose(f's{n}', 12).capitalize()}." for n in range(6))
    made = [changed(change, text, prose("foreign"), random.Random(7)) for _ in range(2)]
    assert made[0] == made[1] != text
    assert changed("excerpt", "five words are not an excerpt", "", random.Random(1)) is None


def test_kinds_fail_as_asked(audit: leakage.AuditResult) -> None:
    assert [verdict.word for verdict in truerank.summary(audit).verdicts] == ["CONTAMINATED"]
    with pytest.raises(InputError, match="query-query"):
        leakage.DocumentOptions(kinds=("everything",))


def test_clean_drops_the_examples_that_leak(audit: leakage.AuditResult, tmp_path: Path) -> None:
    assert audit.folder is not None
    train = audit.folder.parent / "train.jsonl"
    done = leakage.clean(audit.folder, train, out=tmp_path / "clean.jsonl")
    assert "Removed: the examples that hold a text" in str(done) and "earlier cleaning" not in str(done)
    assert isinstance(done, leakage.TrainCleaning)
    left = (tmp_path / "clean.jsonl").read_text().splitlines()
    # The query in a document, and the document of no topic, are no reason unless asked for.
    assert [json.loads(line) for line in left] == [*HARMLESS[:15], LEAKING[3], *HARMLESS[15:]]
    assert (done.read, done.kept, done.removed, done.not_found) == (35, 31, 4, 0)
    listed = done.removed_file.read_text().splitlines()
    assert listed[0].split("\t") == ["example_id", "kinds", "topics", "documents", "line"]
    assert {line.split("\t")[1] for line in listed[1:]} >= {"query-query", "negative-relevant;positive-relevant"}
    wider = leakage.clean(audit.folder, train, out=tmp_path / "wider.jsonl", kinds=("query-document",))
    assert isinstance(wider, leakage.TrainCleaning)
    assert wider.removed == 1
    pairs = leakage.clean(audit, train, out=tmp_path / "pairs.jsonl", kinds=("pair",))
    assert isinstance(pairs, leakage.TrainCleaning)
    assert pairs.removed == 2


def test_clean_heeds_what_people_said_of_the_examples(audit: leakage.AuditResult, tmp_path: Path) -> None:
    assert audit.folder is not None
    train = audit.folder.parent / "train.jsonl"
    (row, *_) = audit.leaks.filter(kind="query-query").iter_rows(named=True)
    said = {"topic_id": row["topic_id"], "query_text": row["training_text"]}
    counts = {}
    for name, label, basis in (("no", 0, "labels-first"), ("yes", 1, "labels-only")):
        labels = write_lines(tmp_path / f"{name}.jsonl", [{**said, "label": label}])
        asked = {"kinds": ("query-query",), "labels": (str(labels),), "basis": basis}
        done = leakage.clean(audit, train, out=tmp_path / f"{name}-clean.jsonl", **asked)
        counts[name] = (done.removed_queries, done.left)  # type: ignore[attr-defined]
    texts = audit.leaks.filter(kind="query-query")["training_text"].n_unique()
    assert counts["no"] == (texts - 1, {"judged no leak": 1})
    assert counts["yes"] == (1, {"judged by nobody": texts - 1})


def test_clean_drops_the_topics_that_leak(audit: leakage.AuditResult, collection: Path, tmp_path: Path) -> None:
    topics = write_lines(tmp_path / "topics.jsonl", [{"_id": name, "text": text} for name, text in QUERIES.items()])
    assert audit.folder is not None
    for given, name in ((audit.folder, "a"), (audit, "b")):
        left = leakage.clean(given, out=tmp_path / f"{name}.jsonl", test=topics, remove="test")
        assert isinstance(left, leakage.TestReduction)
        assert left.removed == ("t1", "t2")
    assert "t3" in (tmp_path / "a.jsonl").read_text()


@pytest.mark.parametrize("holders", [30, 70])
def test_what_several_test_texts_share_is_no_leak(tmp_path: Path, holders: int) -> None:
    footer = prose("footer", 16)
    docs = [{"_id": f"d{n}", "text": f"{prose(f'd{n}', 30)} {footer}"} for n in range(holders)]
    topics = write_lines(tmp_path / "topics.jsonl", [{"_id": "t1", "text": "where do eagles build their nests"}])
    rows = [example("q", f"{prose('p1', 20)} {footer}", "n"), example("q", f"{prose('d7', 30)} {footer}", "n")]
    given = {"docs": str(write_lines(tmp_path / "docs.jsonl", docs)), "kinds": ("document-corpus",), "sample": 20}
    found = audited(write_lines(tmp_path / "train.jsonl", rows), topics, **given)
    assert leaked(found, "document-corpus") == {"d7"}
    if holders > 64:
        (passage,) = found.summary["tests"]["topics"]["boilerplate"]
        assert passage["passage"] == footer
        assert passage["documents"] >= 69
        return
    apart = set(found.templates.select("doc_id", "example_id").iter_rows())
    assert ("d7", "1") in apart
    assert ("d7", "2") not in apart
    assert f"{len(apart)} pairs" in " ".join(of(found, "document-corpus").evidence)


@pytest.mark.slow
def test_pairs_that_were_not_compared_make_no_clean_result(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = prose("d1").split()
    parts = [" ".join(words[at : at + 12]) for at in range(0, 48, 10)]
    # Each part is too little of the document; two texts have each of them.
    rows = [{"positive": f"{part} {prose(f'{part} {n}', 60)}"} for part in parts for n in range(2)]
    given = {"kinds": ("document-corpus",), "sample": 20}
    train = write_lines(tmp_path / "train.jsonl", rows)
    said = "not all pairs with them were compared"
    assert said not in of(audited(train, collection, **given), "document-corpus").why
    monkeypatch.setattr("truerank.overlaps.comparison._CROWD", 1)
    verdict = of(audited(train, collection, **given), "document-corpus")
    assert verdict.verdict == "UNKNOWN"
    assert said in verdict.why


def test_brief_texts_need_more_in_common_than_long_ones() -> None:
    brief, long = prose("brief", 16).split(), prose("long", 45).split()
    another_word = [*brief[:8], "zebra", *brief[9:]]
    another_sentence = [*long[:15], *prose("sentence", 14).split(), *long[29:]]
    tests = [("brief", " ".join(brief)), ("long", " ".join(long))]
    lines = [("word", " ".join(another_word)), ("sentence", " ".join(another_sentence))]
    found = compare(tests, lines, RULES).frame
    assert found.select("test_id", "training_id").rows() == [("long", "sentence")]


def test_words_of_queries_are_counted_as_they_are_where_texts_are_compared(tmp_path: Path) -> None:
    queries = ("state-of-the-art coral-reefs", "day-to-day self-care at-home", "suspension bridges")
    (tmp_path / "topics.tsv").write_text("".join(f"{n}\t{text}\n" for n, text in enumerate(queries)))
    rows = [
        example(f"what is a fjord {n}", f"{prose(f'x{n}', 20)} {q} {prose('y', 9)}", prose("z"))
        for n, q in enumerate(queries)
    ]
    found = audited(write_lines(tmp_path / "train.jsonl", rows), tmp_path / "topics.tsv")
    kind = of(found, "query-document")
    assert (kind.leaked, kind.of) == (2, 3)
    assert "1 texts of fewer than 5 words" in " ".join(kind.evidence)


def test_a_document_in_one_piece_is_no_other_text_of_a_template(collection: Path, tmp_path: Path) -> None:
    title, *body = prose("d9").split()[:3], *prose("d9").split()[3:]
    site = "Home Archive Contact. Follow Martin Kowalski and Julia Brandt on the pages of Northern Review."
    rows = [example("what is a fjord", f"{' '.join(body)} {site}", prose("n"))]
    rows += [example(f"what is fjord {n}", f"{prose(f'other {n}')} {site}", prose(f"n{n}")) for n in range(9)]
    found = audited(write_lines(tmp_path / "train.jsonl", rows), collection, kinds=("document-corpus",))
    assert title and leaked(found, "document-corpus") == {"d9"}
