"""Leaks in training examples, for people: short texts, a page, files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.card import example_card
from truerank.audits.leakage.report import SIGNS, no_picture
from truerank.audits.leakage.training_data.results import ExampleAudit, kind_named
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Facts, Part, Prose
from truerank.core.report import Report, ReportSection, found_section
from truerank.core.result import Summary, page_note, report, reports, summarises, writes
from truerank.core.tables import Cell, Table
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.overlaps.results import BRIEF_SHARE, BRIEF_WORDS, PART_SHARE, PART_WORDS
from truerank.text.normalising import normalise
from truerank.work.publishing import write_tables
from truerank.work.runs import Run

_WIDTH: Final = 100
#: Pairs of one kind that the page lists, and characters of a text that it shows.
_LISTED: Final = 1000
_SHOWN: Final = 300
_MEANINGS: Final = {
    "CONTAMINATED": "Scores of a model that was trained on these examples say less about new queries.",
    "CLEAN": "Everything was read, and nothing that this audit can see was found. What it can see is measured with "
    "changed copies of these very texts.",
    "UNKNOWN": "This is not a clean result: something was not given, not read, or cannot be seen.",
}


@summarises(ExampleAudit)
def _summary(result: ExampleAudit) -> Summary:
    return Summary(tuple(_parts(result)), result.json(), tuple(_verdicts(result)), page_note(result.folder), _WIDTH)


@writes(ExampleAudit)
def _write(result: ExampleAudit, job: Run) -> None:
    found = report(result)
    for name, frame in found.frames.items():
        job.parquet(f"{name}.parquet", frame)
    write_tables(job, found.tables)
    for name, text in found.texts.items():
        job.text(name, text)
    job.text("report.html", found.page(no_picture, job.provenance()).html())
    job.json("summary.json", found.json)


@reports(ExampleAudit)
def _report(result: ExampleAudit) -> Report:
    kinds = kinds_table(result)
    listed = [one.kind for one in result.kinds if one.pairs]
    return Report(
        title=f"Training examples against {result.test['name']}",
        lead=_lead(result),
        verdicts=tuple(_verdicts(result)),
        sections=(
            ReportSection("kinds", "What leaks", (kinds,)),
            found_section({kind_named(one.kind): one.pairs for one in result.kinds}),
            ReportSection("rule", "What counts as an overlap", tuple(_rule(result))),
            ReportSection("sensitivity", "What this audit can see", tuple(_sensitivity(result))),
            ReportSection("sources", "What was read", (sources_table(result), Facts("Test collection", result.test))),
            *(ReportSection(name, f"Pairs: {kind_named(name).phrase}", (_listing(result, name),)) for name in listed),
        ),
        tables={"kinds": kinds, "sources": sources_table(result), "sensitivity": sensitivity_table(result)},
        json=result.json(),
        frames={"leaks": result.leaks, "templates": result.templates},
        texts={"card.md": example_card(result)},
        footer=("This page needs no network.",),
    )


def _parts(result: ExampleAudit) -> Iterator[Table | str]:
    known: set[str] = set()
    for one in result.kinds:
        new = [sentence for sentence in one.settle if sentence not in known]
        known.update(new)
        lines = textwrap.wrap(normalise(" ".join((one.why, *new))), _WIDTH - 4)
        yield "\n".join([f"{one.verdict}: {kind_named(one.kind).phrase}", *(f"    {line}" for line in lines)])
    yield kinds_table(result)
    yield sources_table(result)
    if (table := sensitivity_table(result)).rows:
        yield table


def _verdicts(result: ExampleAudit) -> Iterator[Verdict]:
    explained: set[str] = set()
    for one in result.kinds:
        change = " ".join(("" if one.verdict in explained else _MEANINGS[one.verdict], *one.settle)).strip()
        explained.add(one.verdict)
        yield Verdict(
            word=one.verdict,
            sentence=one.why,
            rests_on=" ".join(one.evidence),
            settles=change,
            subject=kind_named(one.kind).title,
            share=one.leaked / one.of if one.of and one.verdict != "UNKNOWN" else None,
            sign=SIGNS[one.verdict],
        )


def _lead(result: ExampleAudit) -> str:
    examples = sum(source["examples"] for source in result.sources.values())
    words: list[str] = [one.verdict for one in result.kinds]
    tally = ", ".join(f"{words.count(word)} {word.lower()}" for word in dict.fromkeys(words))
    test = result.test
    documents = f" and {test['documents']:,d} documents" if test["documents"] else ""
    against = f"{test['topics']:,d} {test['noun']}{documents}"
    return f"{examples:,d} training examples against {against}. Kinds of leak: {tally}."


def kinds_table(result: ExampleAudit) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in result.kinds:
        cells: tuple[Cell, ...] = (None,) * 8
        if one.of:
            share = one.leaked / one.of
            cells = (one.leaked, one.of, share, one.low, one.high, one.topics, one.pairs, one.examples)
        rows.append((kind_named(one.kind).phrase, one.verdict, *cells))
    return Table(
        "Leaks by kind.",
        heads(
            "Kind, Verdict, Leaked:,d, Of:,d, Share:.1%, 95% interval|from:.1%, 95% interval|to:.1%, Topics:,d, "
            "Pairs:,d, Examples:,d"
        ),
        tuple(rows),
        notes=(
            "Leaked and of: queries or documents of the test collection. Examples: training texts that leak, counted "
            "once for each example that holds them. The interval takes the queries or documents for a sample.",
        ),
    )


def _rule(result: ExampleAudit) -> Iterator[Part]:
    yield Prose(tuple(rule_sentences(result.rules)))
    if result.boilerplate:
        title = "Boilerplate of the test collection, which was left out of both sides."
        yield Table(title, heads(_PASSAGE), tuple(map(_passage, result.boilerplate)))


_PASSAGE: Final = "Passage, Texts:,d, Share:.1%"


def _passage(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return row["passage"], row["documents"], row["share"]


def rule_sentences(rules: Any) -> Iterator[str]:
    """The rule by which evidence makes a pair of texts an overlap."""
    n = rules["ngram"]
    yield "Any one kind of evidence is enough; the list of pairs has the values of all of them."
    yield "Tags and entities of HTML are taken off both texts before they are compared."
    yield "Exact: the same text; blanks, letter case and marks at the end do not count."
    yield (
        f"N-gram: the text with fewer of them shares at least {rules['ngram_share']:.0%} of its runs of {n} words with "
        f"the other one; texts of fewer than {n} words have none. The list has the shares of both texts, and their "
        "lengths."
    )
    yield f"Near: the sets of three-word shingles have a Jaccard similarity of at least {rules['similarity']:g}."
    yield (
        f"Contains: the larger text has at least {rules['containment']:.0%} of the three-word shingles of the smaller "
        f"one. Test texts of fewer than {rules['contained_words']} words are not looked for in others, nor training "
        f"texts of fewer than {PART_WORDS} that are less than {PART_SHARE:.0%} of a test text. Where one text has "
        f"fewer than {n} words, near and contains ask for all shingles; with fewer than {BRIEF_WORDS}, for at least "
        f"{BRIEF_SHARE:.0%}, and n-gram for at least a half."
    )
    yield (
        "Words and letters: texts of at most 32 words have the same content words, in any order and inflection, or "
        "these are one letter apart."
    )
    yield f"Encoder: the cosine similarity is above {rules['threshold']:g}, where an encoder was asked."


def sensitivity_table(result: ExampleAudit) -> Table:
    """What was found of planted changes, by kind of leak."""
    rows = [
        (kind_named(one.kind).phrase, row["kind"], row["planted"], row["found"], row["share"], row["low"], row["high"])
        for one in result.kinds
        for row in one.sensitivity
    ]
    return Table(
        "Planted changes of the test collection's texts that the audit would have found.",
        heads("Kind, Change, Planted:,d, Found:,d, Share:.2f, 95% interval|from:.2f, 95% interval|to:.2f"),
        tuple(rows),
    )


def _sensitivity(result: ExampleAudit) -> Iterator[Part]:
    table = sensitivity_table(result)
    if not table.rows:
        return
    yield Prose(
        (
            "Texts of the test collection were changed, compared like training texts, and written nowhere. A planted "
            "pair counts as found where both its query, in other words, and its changed answer are found.",
        )
    )
    yield table
    for noun, row in result.others.items():
        if row["texts"]:
            yield Prose(
                (
                    f"The converse: {row['proposed']:,d} of {row['texts']:,d} {noun} of this collection "
                    f"({row['share']:.1%}) would be taken for another one of it.",
                )
            )


def sources_table(result: ExampleAudit) -> Table:
    """What was read of each training source, and what its columns were taken for."""
    counted = ("examples", "query_texts", "positive_texts", "negative_texts", "document_texts", "empty", "skipped")
    return Table(
        "Training examples by source.",
        heads(
            "Source, Roles, Examples:,d, Query:,d, Positive:,d, Negative:,d, Document:,d, Empty:,d, "
            "Skipped:,d, Absent:,d"
        ),
        tuple(
            (
                name,
                f"{source['roles']}{' (given)' if source['given'] else ''}",
                *(source.get(one, 0) for one in counted),
                source.get("absent", {}).get("ids", 0),
            )
            for name, source in result.sources.items()
        ),
        notes=("Absent: ids that the given queries and documents lack.",),
    )


def _listing(result: ExampleAudit, kind: str) -> Listing:
    rows = result.rows(kind)
    shown = rows.sort("examples", descending=True, maintain_order=True).head(_LISTED)
    more = f" The first {_LISTED:,d} of {rows.height:,d}." if rows.height > _LISTED else ""
    title = f"{kind_named(kind).title}.{more}"
    compared = ("test_text", "training_text")
    columns = tuple(_columns(shown, several=len(result.sources) > 1))
    return Listing(kind, title, columns, ("pair", "pairs"), "-examples", compared=compared, whole="leaks.parquet")


def _columns(shown: pl.DataFrame, *, several: bool) -> Iterator[ListingColumn]:
    kind = shown.item(0, "kind")

    def texts(name: str, title: str, key: str = "", **how: Any) -> ListingColumn:
        cut = [text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …" for text in shown[name].fill_null("").to_list()]
        return ListingColumn(key or name, title, cut, **how)

    def there(name: str) -> bool:
        return bool(shown[name].is_not_null().any())

    chosen: dict[str, Any] = {"kind": "label", "filter": "choose"}
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
        values = shown[name].fill_null(0.0).to_list() if digits else shown[name].to_list()
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
