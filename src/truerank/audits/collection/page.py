"""The page of a collection audit: its lead, its verdicts and its sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from truerank.audits.collection.catalogue import PARTS, kinds
from truerank.audits.collection.results import CollectionAudit, CollectionFinding, PartVerdict, Word
from truerank.core.verdict import Verdict
from truerank.reports.figures.export import Picture
from truerank.reports.figures.forest import ChangeRow, change_rows
from truerank.reports.listings import Listing, ListingColumn
from truerank.reports.pages import Facts, Part, Prose
from truerank.reports.report import ReportSection
from truerank.reports.tables import Cell, Column, Table
from truerank.text.printable import listed

#: Instances of one kind that the page lists.
_LISTED: Final = 1000
_HEADINGS: Final = {
    "judgments": "What is wrong with the judgments",
    "documents": "What is wrong with the documents",
    "topics": "What is wrong with the topics",
    "together": "What they show together",
    "versions": "What changed between two versions of the judgments",
}
_MEANINGS: Final[dict[Word, str]] = {
    "FAULTY": "Scores that were computed with this collection are affected. What each fault does is named below; "
    "'truerank collection clean' removes what is certain and lists every change.",
    "FAULTY IN PART": "Each kind of fault touches less than 5% of what it could touch. Scores of the topics concerned "
    "are affected; 'truerank collection clean' removes what is certain and lists every change.",
    "UNKNOWN": "This is no sound collection yet: something has to be looked at, or could not be looked for.",
    "SOUND": "Nothing that this audit looks for was found. It cannot see grades that are wrong, and duplicates in "
    "other words.",
}


def title(result: CollectionAudit) -> str:
    """The heading of the page."""
    names = [about["name"] for part in ("docs", "topics", "qrels") if (about := result.read.get(part))]
    return f"Collection audit of {', '.join(dict.fromkeys(names)) or 'a collection'}"


def lead(result: CollectionAudit) -> str:
    """The sentence below the heading."""
    counts = (("docs", "documents"), ("topics", "topics"), ("qrels", "judgments"))
    read = [f"{result.read[part][noun]:,d} {noun}" for part, noun in counts if part in result.read]
    severities: list[str] = [one.kind.severity for one in result.findings]
    found = [
        f"{severities.count(severity)} kind{'s' if severities.count(severity) != 1 else ''} of {noun}"
        for severity, noun in (("fault", "fault"), ("doubt", "doubt"), ("note", "note"))
    ]
    return f"{listed(read)}: {listed(found)}."


def verdicts_shown(result: CollectionAudit) -> Iterator[Verdict]:
    """The verdicts as the page shows them, that on the whole first."""
    for verdict in result.verdicts:
        yield shown(verdict, meaning=verdict.part == "collection")


def shown(verdict: PartVerdict, *, meaning: bool = False) -> Verdict:
    """One verdict; what its word means is said once."""
    change = " ".join(part for part in (_MEANINGS[verdict.word] if meaning else "", verdict.settle) if part)
    return Verdict(
        word=verdict.word,
        sentence=verdict.reason,
        rests_on=verdict.evidence,
        settles=change,
        subject="the whole collection" if verdict.part == "collection" else verdict.part,
        sign=_sign(verdict.word),
    )


def _sign(word: Word) -> str:
    """A document that is whole, torn or unknown."""
    torn = (
        '<path d="M16 14l4 3 4-4 4 3" fill="none" stroke="currentColor" stroke-width="2"/>'
        if word.startswith("FAULTY")
        else ""
    )
    dashes = ' stroke-dasharray="3 2.7"' if word == "UNKNOWN" else ""
    return (
        '<svg viewBox="0 0 44 24" aria-hidden="true"><rect x="14" y="2" width="16" height="20" fill="none" '
        f'stroke="currentColor" stroke-width="2"{dashes}/>{torn}</svg>'
    )


def sections(result: CollectionAudit) -> tuple[ReportSection, ...]:
    """The sections in reading order."""
    found = [
        ReportSection(part, _HEADINGS[part], tuple(_of_part(result, part)))
        for part in PARTS
        if any(one.kind.part == part for one in result.findings)
    ]
    return (
        *found,
        ReportSection(
            "effect", "What cleaning does to the runs", tuple(_effect(result.facts.get("effect"), "cleaning"))
        ),
        ReportSection(
            "versions-effect",
            "What the new judgments do to the runs",
            tuple(_effect(result.facts.get("versions"), "versions")),
        ),
        ReportSection("ceilings", "What a perfect system reaches", tuple(_ceilings(result))),
        ReportSection("similarity", "How alike the documents are", tuple(_bands(result))),
        ReportSection("list", "Every instance", tuple(_listing(result))),
        ReportSection(
            "looked", "What was looked for", tuple(Facts(part, one) for part, one in result.facts["looked_for"].items())
        ),
    )


def _of_part(result: CollectionAudit, part: str) -> Iterator[Part]:
    own = [one for one in result.findings if one.kind.part == part]
    yield Table(
        "",
        (
            Column("Finding"),
            Column("Severity"),
            *Column.numbers(",d", "Count", "Of"),
            Column("Share", align="right", format=".2%"),
        ),
        tuple((one.kind.title, one.kind.severity, one.count, one.of, one.count / max(1, one.of)) for one in own),
    )
    for one in own:
        yield Facts(f"{one.kind.title} ({one.counted})", _about(one))


def _about(one: CollectionFinding) -> Mapping[str, Any]:
    examples = [{name: str(value) for name, value in example.items()} for example in one.examples]
    about: dict[str, Any] = {"Effect on scores": one.kind.effect}
    if one.here:
        about["In this collection"] = one.here
    about["Remedy"] = one.kind.remedy
    return {**about, "Examples": examples} if examples else about


def _effect(effect: Mapping[str, Any] | None, name: str) -> Iterator[Part | Picture]:
    if not effect:
        return
    edits = effect["edits"]
    yield Prose(
        (
            f"{edits['removed']:,d} judgments removed, {edits['regraded']:,d} regraded, {edits['added']:,d} added"
            f"{_dropped(edits)}. "
            "Intervals are Student's t over topics. Random changes do the same to as many random judgments and "
            "results.",
        )
    )
    yield from effect_tables(effect)
    for place, placebo in enumerate(effect["placebos"]):
        rows = [ChangeRow(one["system"], one["change"], one["low"], one["high"]) for one in placebo["systems"]]
        caption = (
            f"Change of {placebo['measure']} by run (dots), and where {placebo['draws']:,d} random changes of the same "
            f"size lie (hatched, {placebo['confidence']:.0%}). {placebo['verdict'].capitalize()}: {placebo['reason']}"
        )
        figure = change_rows(rows, x_label=f"change of {placebo['measure']}")
        yield Picture(f"{name}-{place}", caption, figure)


def _dropped(edits: Mapping[str, int]) -> str:
    """What the runs lose, where they lose something."""
    lost = edits.get("dropped", 0)
    return f"; {lost:,d} results of the runs repeat a document of the same group and are dropped" if lost else ""


def effect_tables(effect: Mapping[str, Any]) -> Iterator[Table]:
    """Scores before and after, the order of systems, and the verdict of the placebo."""
    rows: list[tuple[Cell, ...]] = [
        (
            one["run"], one["measure"], one["before"]["mean"], one["after"]["mean"], one["difference"]["mean"],
            one["difference"]["low"], one["difference"]["high"],
        )
        for one in effect["scores"]
    ]  # fmt: skip
    yield Table(
        "Scores before and after.",
        (
            Column("Run"),
            Column("Measure"),
            *Column.numbers(".4f", "Before", "After"),
            Column("Change", align="right", format="+.4f"),
            *Column.numbers("+.4f", "from", "to", above=("Interval",)),
        ),
        tuple(rows),
    )
    orders = [
        (
            order["measure"], order["kendall"]["tau"], len(order["swaps"]), order["largest_drop"]["system"] or "none",
            order["largest_drop"]["ranks"],
        )
        for order in effect["orders"]
    ]  # fmt: skip
    if orders:
        yield Table(
            "The order of the runs before and after.",
            (
                Column("Measure"),
                Column("τ", align="right", format=".3f"),
                Column("Swaps", align="right", format=",d"),
                Column("Largest loss"),
                Column("Ranks", align="right", format=",d"),
            ),
            tuple(orders),
        )
    placebos = [
        (one["measure"], one["verdict"], one["p"], one["order"]["tau"], one["order"]["low"], one["order"]["p"])
        for one in effect["placebos"]
    ]
    if placebos:
        yield Table(
            "The change beside random changes of the same size.",
            (
                Column("Measure"),
                Column("Verdict"),
                *Column.numbers(".3f", "p", "τ", "τ, random, from", "p of τ"),
            ),
            tuple(placebos),
            notes=tuple(f"{one['measure']}: {one['reason']}" for one in effect["placebos"]),
        )


def _ceilings(result: CollectionAudit) -> Iterator[Part]:
    lines = result.facts.get("ceilings") or ()
    if not lines:
        return
    yield Table.of(
        [(one["measure"], one["mean"], one["below"], one["lowest"], one["topic"]) for one in lines],
        (
            Column("Measure"),
            Column("Ceiling", align="right", format=".4f"),
            Column("Topics below 1", align="right", format=",d"),
            Column("Lowest", align="right", format=".4f"),
            Column("Topic"),
        ),
        "The score of the ranking of all judged documents that exist, by grade: the mean over topics, and the lowest.",
    )


def _bands(result: CollectionAudit) -> Iterator[Part]:
    bands = result.facts.get("similarity") or ()
    if not bands:
        return
    rows: list[tuple[Cell, ...]] = []
    for one in bands:
        _, judged, share, low, high = one["share"].values() if isinstance(one["share"], dict) else one["share"]
        ends = (None, None) if not judged else (low, high)
        rows.append((one["kind"], one["low"], one["pairs"], judged, share, *ends))
    yield Table(
        "Pairs of documents by kind and Jaccard similarity, and what people said of those that they judged.",
        (
            Column("Kind"),
            Column("Jaccard from", align="right", format=".2f"),
            *Column.numbers(",d", "Pairs", "Judged"),
            Column("Share the same", align="right", format=".3f"),
            *Column.numbers(".3f", "from", "to", above=("Interval",)),
        ),
        tuple(rows),
        notes=("Similarity is that of all shingles, not of a sketch. The intervals are Clopper and Pearson's.",),
    )
    if not any(one["share"]["n"] if isinstance(one["share"], dict) else one["share"][1] for one in bands):
        yield Prose(
            (
                "Nobody has judged these pairs yet. 'truerank judge new pairs.judged --scheme duplicates --items "
                "AUDIT' takes the sample in items.jsonl to the judging page; 'truerank collection audit … --labels "
                "pairs.judged' brings the answers back.",
            )
        )


def _listing(result: CollectionAudit) -> Iterator[Part]:
    rows = result.instances
    if rows.is_empty():
        yield Prose(("Nothing was found.",))
        return
    names = kinds()
    shown = rows.group_by("kind", maintain_order=True).head(_LISTED)
    if len(shown) < len(rows):
        whole = f"findings.parquet has all {len(rows):,d}"
        yield Prose((f"Of each kind the first {_LISTED:,d} are listed here; {whole}.",))

    def texts(name: str) -> Sequence[str]:
        return shown[name].cast(pl.String).to_list()

    found = shown["kind"].to_list()
    severities = [names[kind].severity for kind in found]
    lines = [str(line) if line else "" for line in shown["line"]]
    yield Listing(
        name="instances",
        title="Every instance of every finding.",
        columns=(
            ListingColumn("severity", "Severity", severities, kind="label", filter="choose"),
            ListingColumn("part", "Part", texts("part"), kind="label", filter="choose"),
            ListingColumn("kind", "Finding", found, kind="label", filter="choose"),
            ListingColumn("topic_id", "Topic", texts("topic_id"), kind="code", searched=True),
            ListingColumn("doc_id", "Document", texts("doc_id"), kind="code", searched=True),
            ListingColumn("other", "Other", texts("other"), kind="code", searched=True),
            ListingColumn("line", "Line", lines, kind="code"),
            ListingColumn("detail", "What was seen", texts("detail"), searched=True),
        ),
        nouns=("instance", "instances"),
        whole="findings.parquet",
    )
