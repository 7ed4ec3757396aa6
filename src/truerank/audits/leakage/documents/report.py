"""Leaks of documents for people: tables, and lists of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.kinds import RULES, KindVerdict, kind_named, kinds_of
from truerank.audits.leakage.results import AuditResult
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Part, Prose
from truerank.core.report import ReportSection
from truerank.core.tables import Cell, Table
from truerank.core.views import heads
from truerank.overlaps.results import BRIEF_SHARE, BRIEF_WORDS, PART_SHARE, PART_WORDS

#: Pairs of one kind that the page lists, and characters of a text that it shows.
_LISTED: Final = 1000
_SHOWN: Final = 300
_NOT_DECISIVE: Final = "Queries, and any documents, in training documents do not decide the verdict."
_PASSAGE: Final = "Passage, Texts:,d, Share:.1%"


def document_sections(result: AuditResult) -> Iterator[ReportSection]:
    """What the page says of documents; nothing where none were compared."""
    kinds = _kinds(result)
    if not kinds:
        return
    yield ReportSection("documents", "What leaks of documents", (kinds_table(result), sources_table(result)))
    yield ReportSection("documents-rule", "What counts as an overlap of documents", tuple(_rule(result)))
    yield ReportSection("documents-seen", "What this audit can see of documents", tuple(_sensitivity(result)))
    for name in dict.fromkeys(one.kind for _, one in kinds if one.pairs):
        yield ReportSection(name, f"Pairs: {kind_named(name).phrase}", (_listing(result, name),))


def _kinds(result: AuditResult) -> list[tuple[str, KindVerdict]]:
    return [(test, one) for test in result.summary["tests"] for one in kinds_of(result, test)]


def kinds_table(result: AuditResult) -> Table:
    """The verdict on each kind of leak of documents."""
    rows: list[tuple[Cell, ...]] = []
    for test, one in _kinds(result):
        cells: tuple[Cell, ...] = (None,) * 6
        if one.of:
            cells = (one.leaked, one.of, one.leaked / one.of, one.topics, one.pairs, one.examples)
        rows.append((test, kind_named(one.kind).phrase, one.verdict, *cells, one.why))
    return Table(
        "Documents, by kind of leak.",
        heads("Test_set, Kind, Verdict, Leaked:,d, Of:,d, Share:.1%, Topics:,d, Pairs:,d, Examples:,d, Why"),
        tuple(rows),
        notes=(
            "Leaked and of: queries or documents of the test set. Examples: training texts that leak, counted once for "
            "each example that holds them.",
            _NOT_DECISIVE,
        ),
    )


def short_kinds_table(result: AuditResult) -> Table:
    """The same for a terminal."""
    rows = ((test, kind_named(one.kind).phrase, one.verdict, *((one.leaked, one.of) if one.of else (None, None)))
            for test, one in _kinds(result))  # fmt: skip
    columns = heads("Test_set, Kind, Verdict, Leaked:,d, Of:,d")
    return Table("Documents, by kind of leak.", columns, tuple(rows), notes=(_NOT_DECISIVE,))


def _rule(result: AuditResult) -> Iterator[Part]:
    yield Prose(tuple(_rule_sentences()))
    for test, about in result.summary["tests"].items():
        if passages := about.get("boilerplate"):
            title = f"Boilerplate of {test}, which was left out of both sides."
            rows = tuple((row["passage"], row["documents"], row["share"]) for row in passages)
            yield Table(title, heads(_PASSAGE), rows)


def _rule_sentences() -> Iterator[str]:
    """The rule by which evidence makes a pair of texts an overlap."""
    n = RULES.ngram
    yield "Documents: any one kind of evidence is enough; leaks.parquet has the values of all of them."
    yield "Tags and entities of HTML are taken off both texts before they are compared."
    yield "Exact: the same text; blanks, letter case and marks at the end do not count."
    yield (
        f"N-gram: the text with fewer of them shares at least {RULES.ngram_share:.0%} of its runs of {n} words with "
        f"the other one; texts of fewer than {n} words have none. The list has the shares of both texts, and their "
        "lengths."
    )
    yield f"Near: the sets of three-word shingles have a Jaccard similarity of at least {RULES.similarity:g}."
    yield (
        f"Contains: the larger text has at least {RULES.containment:.0%} of the three-word shingles of the smaller "
        f"one. Test texts of fewer than {RULES.contained_words} words are not looked for in others, nor training "
        f"texts of fewer than {PART_WORDS} that are less than {PART_SHARE:.0%} of a test text. Where one text has "
        f"fewer than {n} words, near and contains ask for all shingles; with fewer than {BRIEF_WORDS}, for at least "
        f"{BRIEF_SHARE:.0%}, and n-gram for at least a half."
    )
    yield (
        "Words and letters: texts of at most 32 words have the same content words, in any order and inflection, or "
        "these are one letter apart."
    )


def _sensitivity(result: AuditResult) -> Iterator[Part]:
    rows = [
        (
            test,
            kind_named(one.kind).phrase,
            *(row[name] for name in ("kind", "planted", "found", "share", "low", "high")),
        )
        for test, one in _kinds(result)
        for row in one.sensitivity
    ]
    if not rows:
        return
    yield Prose(
        (
            "Documents of the test set were changed, compared like training texts, and written nowhere. A planted pair "
            "counts as found where both its query, in other words, and its changed answer are found.",
        )
    )
    yield Table(
        "Planted changes of documents that the audit would have found.",
        heads("Test_set, Kind, Change, Planted:,d, Found:,d, Share:.2f, 95% interval|from:.2f, 95% interval|to:.2f"),
        tuple(rows),
    )
    for test, about in result.summary["tests"].items():
        for noun, row in about.get("other_documents", {}).items():
            if row["texts"]:
                yield Prose(
                    (
                        f"The converse: {row['proposed']:,d} of {row['texts']:,d} {noun} of {test} "
                        f"({row['share']:.1%}) would be taken for another one of it.",
                    )
                )


def sources_table(result: AuditResult) -> Table:
    """What was read of each training source, and what its columns were taken for."""
    counted = ("examples", "query_texts", "positive_texts", "negative_texts", "document_texts", "skipped")
    sources: Mapping[str, Mapping[str, Any]] = result.summary["sources"]
    return Table(
        "Training examples by source.",
        heads("Source, Roles, Examples:,d, Query:,d, Positive:,d, Negative:,d, Document:,d, Skipped:,d, Absent:,d"),
        tuple(
            (
                name,
                f"{source.get('roles', 'queries')}{' (given)' if source.get('given') else ''}",
                *(source.get(one, 0) for one in counted),
                source.get("absent", {}).get("ids", 0),
            )
            for name, source in sources.items()
        ),
        notes=("Absent: ids that the given queries and documents lack.",),
    )


def _listing(result: AuditResult, kind: str) -> Listing:
    rows = result.leaks.filter(kind=kind)
    shown = rows.sort("examples", descending=True, maintain_order=True).head(_LISTED)
    more = f" The first {_LISTED:,d} of {rows.height:,d}." if rows.height > _LISTED else ""
    title = f"{kind_named(kind).title}.{more}"
    compared = ("test_text", "training_text")
    columns = tuple(_columns(shown, several=len(result.summary["sources"]) > 1))
    return Listing(kind, title, columns, ("pair", "pairs"), "-examples", compared=compared, whole="leaks.parquet")


def _columns(shown: pl.DataFrame, *, several: bool) -> Iterator[ListingColumn]:
    kind = shown.item(0, "kind")

    def texts(name: str, title: str, key: str = "", **how: Any) -> ListingColumn:
        cut = [text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …" for text in shown[name].fill_null("").to_list()]
        return ListingColumn(key or name, title, cut, **how)

    def there(name: str) -> bool:
        return bool(shown[name].is_not_null().any())

    chosen: dict[str, Any] = {"kind": "label", "filter": "choose"}
    yield texts("test", "Test set", shown=shown["test"].n_unique() > 1, **chosen)
    yield texts("topic_id", "Topic", "topic", shown=there("topic_id"), **chosen)
    yield texts("doc_id", "Document", "document", kind="code", shown=there("doc_id"))
    yield texts("test_text", "Test text", searched=True)
    yield texts("training_text", "Training text", searched=True)
    if kind == "pair":
        yield texts("document_text", "Relevant document", searched=True)
        yield texts("training_document", "Training positive", searched=True)
        yield texts("document_evidence", "Evidence of the answer", kind="label")
    yield texts("evidence", "Evidence", **chosen)
    yield ListingColumn("examples", "Examples", shown["examples"].to_list(), kind="number", digits=0)
    yield texts("example_id", "Example", "example", kind="code")
    yield texts("source", "Source", shown=several, **chosen)
    yield texts("role", "Role", shown=kind != "pair" and len(kind_named(kind).training) > 1, **chosen)
    for name, heading in _MEASURED.items():
        digits = 0 if name.endswith("words") else 2
        values = shown[name].fill_null(0).to_list()
        yield ListingColumn(name, heading, values, kind="number", digits=digits, shown=False)


_MEASURED: Final = {
    "ngram_test": "N-grams of the test text",
    "ngram_training": "N-grams of the training text",
    "jaccard": "Jaccard",
    "containment": "Containment",
    "cosine": "Cosine",
    "test_words": "Words, test",
    "training_words": "Words, training",
}
