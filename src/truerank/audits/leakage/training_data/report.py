"""The audit of training examples for people: a short text for the terminal, one page, and its files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.report import SIGNS, no_picture
from truerank.audits.leakage.training_data.results import KINDS, ExampleAudit, kind_named
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Facts, Part, Prose
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, reports, summarises, writes
from truerank.core.tables import Cell, Column, Table
from truerank.core.verdict import Verdict
from truerank.overlaps.results import BRIEF_SHARE, BRIEF_WORDS, PART_SHARE, PART_WORDS
from truerank.text.normalising import normalise
from truerank.work.publishing import write_tables
from truerank.work.runs import Run

_WIDTH: Final = 100
#: Pairs of one kind that the page lists, and characters of a text that it shows.
_LISTED: Final = 1000
_SHOWN: Final = 300
_NUMBER: Final[dict[str, Any]] = {"align": "right", "format": ",d"}
#: Kinds whose training texts have more than one role.
_SEVERAL_ROLES: Final = tuple(kind.name for kind in KINDS if len(kind.training) > 1 and kind.name != "pair")
_MEANINGS: Final = {
    "CONTAMINATED": "Scores of a model that was trained on these examples say less about new queries.",
    "CLEAN": "Everything was read, and nothing that this audit can see was found. What it can see is measured with "
    "changed copies of these very texts.",
    "UNKNOWN": "This is no clean result: something was not given, not read, or cannot be seen.",
}


@summarises(ExampleAudit)
def _summary(result: ExampleAudit) -> Summary:
    notes = () if result.folder is None else (f"report: {result.folder / 'report.html'}",)
    return Summary(tuple(_parts(result)), result.json(), tuple(_verdicts(result)), notes, width=_WIDTH)


@writes(ExampleAudit)
def _write(result: ExampleAudit, job: Run) -> None:
    job.parquet("leaks.parquet", result.leaks)
    job.parquet("templates.parquet", result.templates)
    report = _report(result)
    write_tables(job, report.tables)
    job.text("report.html", report.page(no_picture, job.provenance()).html())
    job.json("summary.json", result.json())


@reports(ExampleAudit)
def _report(result: ExampleAudit) -> Report:
    kinds = kinds_table(result)
    listed = [one.kind for one in result.kinds if one.pairs]
    meanings = tuple(f"{kind.title.capitalize()}: {kind.meaning}" for kind in KINDS)
    return Report(
        title=f"Training examples against {result.test['name']}",
        lead=_lead(result),
        verdicts=tuple(_verdicts(result)),
        sections=(
            ReportSection(
                "kinds",
                "What leaks",
                (kinds, Prose(meanings)),
            ),
            ReportSection("rule", "What counts as an overlap", tuple(_rule(result))),
            ReportSection("sensitivity", "What this audit can see", tuple(_sensitivity(result))),
            ReportSection("sources", "What was read", (sources_table(result), Facts("Test collection", result.test))),
            *(ReportSection(name, f"Pairs: {kind_named(name).title}", (_listing(result, name),)) for name in listed),
        ),
        tables={"kinds": kinds, "sources": sources_table(result), "sensitivity": sensitivity_table(result)},
        json=result.json(),
        footer=("This page asks the network for nothing.",),
    )


def _parts(result: ExampleAudit) -> Iterator[Table | str]:
    told: set[str] = set()
    for one in result.kinds:
        new = [sentence for sentence in one.settle if sentence not in told]
        told.update(new)
        lines = textwrap.wrap(normalise(" ".join((one.why, *new))), _WIDTH - 4)
        yield "\n".join([f"{one.verdict}: {kind_named(one.kind).title}", *(f"    {line}" for line in lines)])
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
            subject=kind_named(one.kind).title.capitalize(),
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
        rows.append((kind_named(one.kind).title, one.verdict, *cells))
    return Table(
        "Leaks by kind.",
        (
            Column("Kind"),
            Column("Verdict"),
            *Column.numbers(",d", "Leaked", "Of"),
            *Column.numbers(".1%", "Share"),
            *Column.numbers(".1%", "from", "to", above=("95% interval",)),
            *Column.numbers(",d", "Topics", "Pairs", "Examples"),
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
        yield Table.of(
            result.boilerplate,
            (
                Column("Passage", source="passage"),
                Column("Texts", source="documents", **_NUMBER),
                Column("Share", source="share", align="right", format=".1%"),
            ),
            "Boilerplate of the test collection, which was left out of both sides.",
        )


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
        (kind_named(one.kind).title, row["kind"], row["planted"], row["found"], row["share"], row["low"], row["high"])
        for one in result.kinds
        for row in one.sensitivity
    ]
    return Table(
        "Planted changes of the test collection's texts that the audit would have found.",
        (
            Column("Kind"),
            Column("Change"),
            *Column.numbers(",d", "Planted", "Found"),
            *Column.numbers(".2f", "Share"),
            *Column.numbers(".2f", "from", "to", above=("95% interval",)),
        ),
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
        (
            Column("Source"),
            Column("Roles"),
            *(Column(name.removesuffix("_texts").capitalize(), **_NUMBER) for name in (*counted, "absent")),
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

    def texts(name: str) -> list[str]:
        return [text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …" for text in shown[name].fill_null("").to_list()]

    columns = [
        ListingColumn(
            "topic", "Topic", texts("topic_id"), kind="label", filter="choose", shown=_has(shown, "topic_id")
        ),
        ListingColumn("document", "Document", texts("doc_id"), kind="code", shown=_has(shown, "doc_id")),
        ListingColumn("test_text", "Test text", texts("test_text"), searched=True),
        ListingColumn("training_text", "Training text", texts("training_text"), searched=True),
    ]
    if kind == "pair":
        columns += [
            ListingColumn("document_text", "Relevant document", texts("document_text"), searched=True),
            ListingColumn("training_document", "Training positive", texts("training_document"), searched=True),
            ListingColumn("document_evidence", "Evidence of the answer", texts("document_evidence"), kind="label"),
        ]
    columns += [
        ListingColumn("evidence", "Evidence", texts("evidence"), kind="label", filter="choose"),
        ListingColumn("examples", "Examples", shown["examples"].to_list(), kind="number", digits=0),
        ListingColumn("example", "Example", texts("example_id"), kind="code"),
        ListingColumn(
            "source", "Source", texts("source"), kind="label", filter="choose", shown=len(result.sources) > 1
        ),
        ListingColumn("role", "Role", texts("role"), kind="label", filter="choose", shown=kind in _SEVERAL_ROLES),
        *(
            ListingColumn(name, title, shown[name].fill_null(0.0).to_list(), kind="number", digits=2, shown=False)
            for name, title in (
                ("ngram_test", "N-grams of the test text"),
                ("ngram_training", "N-grams of the training text"),
                ("jaccard", "Jaccard"),
                ("containment", "Containment"),
                ("cosine", "Cosine"),
            )
        ),
        *(
            ListingColumn(name, title, shown[name].to_list(), kind="number", digits=0, shown=False)
            for name, title in (("test_words", "Words, test"), ("training_words", "Words, training"))
        ),
    ]
    return Listing(
        name=kind,
        title=f"{kind_named(kind).title.capitalize()}.{more}",
        columns=tuple(columns),
        nouns=("pair", "pairs"),
        sort="-examples",
        compared=("test_text", "training_text"),
        whole="leaks.parquet",
    )


def _has(rows: pl.DataFrame, name: str) -> bool:
    return bool(rows[name].is_not_null().any())
