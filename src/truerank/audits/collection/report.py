"""How the results of the collection commands are shown, on the page and in the terminal, and written."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import polars as pl

from truerank.audits.collection.repairs import CollectionCleaning, clean_lines
from truerank.audits.collection.results import CollectionAudit, CollectionFinding, kinds
from truerank.core.figures.export import Picture
from truerank.core.figures.forest import ChangeRow, change_rows
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Facts, Part, Prose
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, gallery_notes, page_note, place_note, reports, summarises, writes
from truerank.core.rules import SEVERITIES, Finding
from truerank.core.sarif import MOST_FINDINGS, sarif
from truerank.core.tables import Cell, Column, Table, card, escape_markdown
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.measures.equivalence import COMBINE
from truerank.records import Input, Qrel
from truerank.sources.grammar import parse
from truerank.sources.qrels import qrel_lines
from truerank.text.printable import listed
from truerank.work.publishing import publish
from truerank.work.runs import Run

#: Instances of one kind that the page lists.
_LISTED: Final = 1000
_HEADINGS: Final = {
    "judgments": "The judgments",
    "documents": "The documents",
    "topics": "The topics",
    "together": "Judgments, documents and topics together",
    "versions": "What changed between two versions of the judgments",
}
_MEANINGS: Final[dict[str, str]] = {
    "FAULTY": "Scores computed with this collection are affected. 'truerank collection clean' removes what is certain "
    "and lists every change.",
    "FAULTY IN PART": "Each kind of fault touches less than 5% of what it could touch; scores of these topics are "
    "affected. 'truerank collection clean' removes what is certain and lists every change.",
    "UNKNOWN": "Nobody can call this collection sound yet: a person should look, or something could not be checked.",
    "SOUND": "Nothing that this audit looks for was found. It cannot see wrong grades, or duplicates in other words.",
}


def _shown(verdict: Verdict, *, meaning: bool = False) -> Verdict:
    """One verdict with its sign, a document that is whole, torn or unknown; what its word means is said once."""
    change = " ".join(part for part in (_MEANINGS[verdict.word] if meaning else "", verdict.settles) if part)
    subject = "the whole collection" if verdict.subject == "collection" else verdict.subject
    torn = '<path d="M16 14l4 3 4-4 4 3" fill="none" stroke="currentColor" stroke-width="2"/>'
    dashes = ' stroke-dasharray="3 2.7"' if verdict.word == "UNKNOWN" else ""
    sign = (
        '<svg viewBox="0 0 44 24" aria-hidden="true"><rect x="14" y="2" width="16" height="20" fill="none" '
        f'stroke="currentColor" stroke-width="2"{dashes}/>{torn if verdict.word.startswith("FAULTY") else ""}</svg>'
    )
    return replace(verdict, settles=change, subject=subject, sign=sign)


def _sections(result: CollectionAudit) -> tuple[ReportSection, ...]:
    """The sections in reading order; those without parts are left out of the page."""
    facts = result.facts
    sections: list[tuple[str, str, Iterable[Part | Picture]]] = [
        *((part, heading, _of_part(result, part)) for part, heading in _HEADINGS.items()),
        ("effect", "What cleaning does to the runs", _effect(facts.get("effect"), "cleaning")),
        ("versions-effect", "What the new judgments do to the runs", _effect(facts.get("versions"), "versions")),
        ("smaller", "What the smaller corpus does to the runs", _smaller(facts.get("smaller"))),
        ("ceilings", "What a perfect system reaches", _ceilings(facts.get("ceilings"))),
        ("noise", "What wrong judgments allow", _noise(facts.get("noise"))),
        ("floors", "What needs no query", _floors(facts.get("floors"))),
        ("echo", "Topics and the words of documents", _echo(facts.get("echo"))),
        ("similarity", "How alike the documents are", _bands(facts.get("similarity"))),
        ("suspects", "Judgments that the runs contradict", _suspects(facts.get("suspects"))),
        ("list", "Every instance", _listing(result)),
        ("looked", "What was looked for", (Facts(part, one) for part, one in facts["looked_for"].items())),
    ]
    return tuple(ReportSection(name, heading, tuple(parts)) for name, heading, parts in sections)


def _suspects(about: Mapping[str, Any] | None) -> Iterator[Part]:
    if not about:
        return
    if about["refused"]:
        yield Prose((f"Not looked for. {about['refused']}",))
        return
    words = ", and by the words of documents and topics" if about["texts"] else ""
    yield Prose((
        f"{len(about['families'])} families of runs, {about['topics']:,d} topics. Nothing here says how many judgments "
        "are wrong: ranks cannot tell a wrong judgment from a right one of a document that systems do not find. What "
        "is expected is what flips of random documents would show if so many relevant judgments were wrong; in a "
        f"collection without errors all proposals are right. Ranked by the runs{words}.",
    ))  # fmt: skip
    names = {"relevant": "judged relevant, ranked like others", "others": "ranked like relevant ones, not so judged"}
    rates = (about["share"], about["share"] / 5)
    rows = (
        (names[name], one["proposed"], one["of"], one["rate"], one["expected"],
         *(one["expected"] and one["expected"] * min(1.0, rate / one["rate"]) for rate in rates), one["allowed"],
         one["detected"])
        for name, one in about.items() if name in names
    )  # fmt: skip
    wrong = (f"if {rate:.0%} are=wrong{at}:.0%" for at, rate in enumerate(rates))
    yield Table(
        "Proposals, and the share of them expected to be wrong if so many of the relevant judgments are. The runs "
        "allow: how many would be wrong if all that is ranked so were. Detected: the share of flips that is proposed.",
        heads(f"documents, proposed:,d, of:,d, taken to be wrong=rate:.1%, expected:.0%, {', '.join(wrong)}, "
              "the runs allow=allowed:.1%, detected:.0%"), tuple(rows),
    )  # fmt: skip


def _severity(one: CollectionFinding) -> str:
    return "accepted" if one.accepted else one.kind.severity


def _of_part(result: CollectionAudit, part: str) -> Iterator[Part]:
    own = [one for one in result.findings if one.kind.part == part]
    if not own:
        return
    rows = ((one.kind.code, one.kind.title, _severity(one), one.count, one.of, one.share) for one in own)
    yield Table("", heads("Code, Finding, Severity, Count:,d, Of:,d, Share:.2%"), tuple(rows), addressed=True)
    for one in own:
        about: dict[str, Any] = {"Effect on scores": one.kind.effect}
        if one.here:
            about["In this collection"] = one.here
        about |= {"Accepted": one.accepted} if one.accepted else {"Remedy": one.kind.remedy}
        if one.examples:
            about["Examples"] = [{name: str(value) for name, value in example.items()} for example in one.examples]
        yield Facts(f"{one.kind.title} ({one.counted})", about)


def _effect(effect: Mapping[str, Any] | None, name: str) -> Iterator[Part | Picture]:
    if not effect:
        return
    edits = effect["edits"]
    lost = edits.get("dropped", 0)
    dropped = f"; {lost:,d} results of the runs repeat a document of the same group and are dropped" if lost else ""
    changes = f"{edits['removed']:,d} judgments removed, {edits['regraded']:,d} regraded, {edits['added']:,d} added"
    what = "Intervals are Student's t over topics. Random changes do the same to as many random judgments and results."
    yield Prose((f"{changes}{dropped}. {what}",))
    yield from effect_tables(effect)
    yield from _pictures(effect["placebos"], name)


def _pictures(placebos: Sequence[Mapping[str, Any]], name: str) -> Iterator[Picture]:
    """The change of each run beside random ones, by measure."""
    for place, placebo in enumerate(placebos):
        rows = [ChangeRow(one["system"], one["change"], one["low"], one["high"]) for one in placebo["systems"]]
        caption = (
            f"Change of {placebo['measure']} by run (dots), and where {placebo['draws']:,d} random changes of the same "
            f"size lie (hatched, {placebo['confidence']:.0%}). {placebo['verdict'].capitalize()}: {placebo['reason']}"
        )
        figure = change_rows(rows, x_label=f"change of {placebo['measure']}")
        yield Picture(f"{name}-{place}", caption, figure)


def _smaller(facts: Mapping[str, Any] | None) -> Iterator[Part | Picture]:
    if not facts:
        return
    yield Prose((
        f"{facts['before']:,d} documents before, {facts['now']:,d} now; {facts['counted']:,d} of those that are gone "
        f"are judged or in a run, {facts['relevant']:,d} of them relevant. Their results leave the runs that were "
        "given, and topics that lose every relevant document leave the means. As many random documents of the same "
        "judged state do, too: relevant to a topic; judged, and relevant to none; not judged.",
    ))  # fmt: skip
    names = ("system", "before", "after", "change", "low", "high", "p_corrected")
    rows = [
        (one["measure"], *(system[name] for name in names))
        for one in facts["placebos"] for system in one["systems"]
    ]  # fmt: skip
    if rows:
        columns = heads("Measure, Run, Before:.4f, After:.4f, Change:+.4f")
        random = Column.numbers("+.4f", "from", "to", above=("Random removals",))
        yield Table("Scores without these documents.", (*columns, *random, *heads("p:.3f")), tuple(rows))
    yield from _pictures(facts["placebos"], "smaller")


def effect_tables(effect: Mapping[str, Any]) -> Iterator[Table]:
    """Scores before and after, the order of systems, and the verdict of the placebo."""
    rows: list[tuple[Cell, ...]] = []
    for one in effect["scores"]:
        ends = (one["difference"][name] for name in ("mean", "low", "high"))
        rows.append((one["run"], one["measure"], one["before"]["mean"], one["after"]["mean"], *ends))
    columns = heads("Run, Measure, Before:.4f, After:.4f, Change:+.4f")
    interval = Column.numbers("+.4f", "from", "to", above=("Interval",))
    yield Table("Scores before and after.", (*columns, *interval), tuple(rows))
    orders: list[tuple[Cell, ...]] = []
    for one in effect["orders"]:
        drop = one["largest_drop"]
        tau, swaps = one["kendall"]["tau"], len(one["swaps"])
        orders.append((one["measure"], tau, swaps, drop["system"] or "none", drop["ranks"]))
    if orders:
        columns = heads("Measure, τ:.3f, Swaps:,d, Largest loss=system, Ranks:,d")
        yield Table("The order of the runs before and after.", columns, tuple(orders))
    placebos = [
        (one["measure"], one["verdict"], one["p"], one["order"]["tau"], one["order"]["low"], one["order"]["p"])
        for one in effect["placebos"]
    ]
    if placebos:
        yield Table(
            "The change beside random changes of the same size.",
            (*heads("Measure, Verdict"), *Column.numbers(".3f", "p", "τ", "τ, random, from", "p of τ")),
            tuple(placebos),
            notes=tuple(f"{one['measure']}: {one['reason']}" for one in effect["placebos"]),
        )


def _ceilings(lines: Sequence[Mapping[str, Any]] | None) -> Iterator[Part]:
    if lines:
        yield Table(
            "The score of the ranking of all judged documents that exist, by grade: the mean over topics, the mean if "
            "every text is returned once (where two relevant documents of a topic have the same), and the lowest.",
            heads("Measure, Ceiling:.4f, Each text once=once:.4f, Topics below 1=below:,d, Lowest:.4f, Topic"),
            tuple(
                tuple(one[name] for name in ("measure", "mean", "once", "below", "lowest", "topic")) for one in lines
            ),
        )


def _noise(facts: Mapping[str, Any] | None) -> Iterator[Part]:
    if not facts:
        return
    rows = ((one["grade"], one["judgments"], one["again"], one["relevant"], one["share"], one["low"], one["high"])
            for one in facts["grades"])  # fmt: skip
    yield Table(
        "Judgments that were judged again, and the share that got the same grade.",
        heads("Grade, Judgments:,d, Judged again=again:,d, Relevant then=relevant:,d, Same grade=same:.3f, "
              "from:.3f, to:.3f"), tuple(rows),
        notes=(
            "The second judgment is taken to be right, and the pairs as if drawn at random. The intervals are Clopper "
            "and Pearson's.",
            *([f"{facts['beside']:,d} further pairs, {facts['beside_relevant']:,d} of them relevant, have no judgment "
               "here; they are left out."] if facts["beside"] else []),
        ),
    )  # fmt: skip
    if facts["ceilings"]:
        yield Table(
            "What a ranking by the second judgments scores by the first, on topics whose relevant documents were all "
            "judged again: without those that are called wrong, and at most, with them behind the relevant ones. Above "
            "that, systems differ by wrong judgments alone.",
            heads("Measure, Topics:,d, Without wrong ones=least:.4f, At most=most:.4f, from:.4f, to:.4f"),
            tuple(
                tuple(one[name] for name in ("measure", "n", "least", "mean", "low", "high"))
                for one in facts["ceilings"]
            ),
        )
    ends = ("corrected", "corrected_low", "corrected_high")
    scores = [(one["measure"], one["run"], one["model"], *(one[end] for end in ends)) for one in facts["scores"]]
    if not scores and facts["remarks"]:
        yield Prose((" ".join(facts["remarks"]),))
    if scores:
        yield Table(
            "Scores of these topics by the judgments, and by the second judgments, as far as the sample shows.",
            heads("Measure, Run, By the judgments=first:.4f, Corrected:.4f, from:.4f, to:.4f"), tuple(scores),
            notes=tuple(facts["remarks"]),
        )  # fmt: skip
    apart = [(one["measure"], f"{one['first']} − {one['second']}", one["model"], *(one[end] for end in ends))
             for one in facts["differences"]]  # fmt: skip
    if apart:
        yield Table(
            "Differences: an interval that holds 0 says that wrong judgments alone can be what is seen.",
            heads("Measure, Runs, By the judgments=first:+.4f, Corrected:+.4f, from:+.4f, to:+.4f"),
            tuple(apart),
        )


_ONE_CLUSTER: Final = (
    ": here half of them or more are one cluster, so that the intervals are for other topics of the same kind."
)


def _floors(lines: Sequence[Mapping[str, Any]] | None) -> Iterator[Part]:
    if not lines:
        return
    what = {
        "collection": "the collection", "candidates": "what all runs rank for a topic",
        "judged": "the judged documents of a topic",
    }  # fmt: skip
    rows = (
        (one["measure"], what[one["of"]], one["name"], *(one["floor"][end] for end in ("mean", "low", "high")),
         one["floor"]["topics"], one["above_random"])
        for one in lines
    )  # fmt: skip
    shared = all(one["floor"]["drawn"] == "clusters" for one in lines if one["of"] == "collection")
    yield Table(
        "What rankings score that never read the query. The best fixed list is made on half of the topics, and scored "
        "on the other half.",
        heads("Measure, Ranked, By, Score:.4f, from:.4f, to:.4f, Topics:,d, Above random order=above:+.4f"),
        tuple(rows),
        notes=(
            "The intervals are for other topics; of lists over the collection, for other clusters of topics that share "
            f"relevant documents{'.' if shared else _ONE_CLUSTER}",
            "Where all scores are equal, the order of ties is the ranking. Relevant ones first, or last: what a rule "
            "for ties scores at most, or at least.",
        ),
    )


def _echo(facts: Mapping[str, Any] | None) -> Iterator[Part]:
    if not facts:
        return
    names = {
        "share": "share of a topic's words in a relevant document",
        "run": "share of them in the longest stretch that both have in one piece",
        "reciprocal": "reciprocal place of a relevant document by the number of these words",
        "first": "relevant documents that are first by it",
        "echo": "relevant documents that echo the topic",
    }
    rows: list[tuple[Cell, ...]] = [(name, *facts[key]) for key, name in names.items()]
    rows.insert(1, ("share of them in any document", facts["others"], None, None))
    for of, own in facts["people"].items():
        rows += [(f"{names[key]}, above people's topics in {of}", *own[key]) for key in ("share", "echo")]
    note = f"Of {facts['topics']:,d} topics with four different content words or more; means over topics."
    yield Table(
        "A document echoes a topic where it holds 70% of its content words, or at "
        "least three of them, and half of all, in one piece.",
        heads("What, Mean:.3f, from:.3f, to:.3f"), tuple(rows), notes=(note,),
    )  # fmt: skip


def _bands(bands: Sequence[Mapping[str, Any]] | None) -> Iterator[Part]:
    if not bands:
        return
    rows: list[tuple[Cell, ...]] = []
    for one in bands:
        _, judged, share, *ends = one["share"].values()
        rows.append((one["kind"], one["low"], one["pairs"], judged, share, *(ends if judged else (None, None))))
    columns = heads("Kind, Jaccard from=low:.2f, Pairs:,d, Judged:,d, Share the same=share:.3f")
    yield Table(
        "Pairs of documents by kind and Jaccard similarity, and what people said of those that they judged.",
        (*columns, *Column.numbers(".3f", "from", "to", above=("Interval",))),
        tuple(rows),
        notes=("Similarity is that of all shingles, not of a sketch. The intervals are Clopper and Pearson's.",),
    )
    if not any(one["share"]["n"] for one in bands):
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
    shown = rows.group_by("kind", maintain_order=True).head(_LISTED)
    if len(shown) < len(rows):
        yield Prose((f"Of each kind the first {_LISTED:,d} are listed here; findings.parquet has all {len(rows):,d}.",))

    def texts(name: str) -> Sequence[str]:
        return shown[name].cast(pl.String).to_list()

    found = shown["kind"].to_list()
    severities = [kinds()[kind].severity for kind in found]
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


_WIDTH: Final = 100
#: Turns what would break a line of TSV into blanks.
_BREAKS: Final = str.maketrans("\t\r\n", "   ")


@summarises(CollectionAudit)
def _summary(result: CollectionAudit) -> Summary:
    verdict = _shown(result.verdicts[0])
    # A few faults fail what faults fail.
    failing = replace(verdict, word="FAULTY") if verdict.word == "FAULTY IN PART" else verdict
    notes = (*page_note(result.folder), *gallery_notes(result.facts))
    return Summary(tuple(_parts(result)), result.json(), (failing,), notes, width=_WIDTH)


@writes(CollectionAudit)
def _write(result: CollectionAudit, job: Run) -> None:
    for name, frame in (("findings", result.instances), ("pairs", result.pairs), ("groups", result.groups)):
        job.parquet(f"{name}.parquet", frame)
    if result.items:
        job.text("items.jsonl", "".join(result.items))
    if result.suspects:
        job.text("suspects.run", result.suspects)
    job.text("findings.sarif", review(result, job.inputs))
    job.text("card.md", collection_card(result))
    publish(_report(result), job)


def _findings_table(result: CollectionAudit) -> Table:
    """The findings with their counts and their first example."""
    rows: list[tuple[Cell, ...]] = []
    for one in result.findings:
        first: Mapping[str, Any] = one.examples[0] if one.examples else {}
        ids = [str(first[name]) for name in ("topic_id", "doc_id", "other") if name in first]
        place = " · ".join([*([f"line {first['line']}"] if "line" in first else []), *ids])
        example = ": ".join(part for part in (place, str(first.get("detail", ""))) if part)
        rows.append((one.kind.code, one.kind.title, one.kind.part, _severity(one), one.count, one.of, example))
    columns = heads("Code, Finding, Part, Severity, Count:,d, Of:,d, Example")
    return Table("What was found." if rows else "Nothing was found.", columns, tuple(rows))


def _parts(result: CollectionAudit) -> Iterator[Table | str]:
    for verdict in result.verdicts:
        sentences = " ".join(part for part in (verdict.sentence, verdict.rests_on, verdict.settles) if part)
        lines = textwrap.wrap(sentences, _WIDTH - 4)
        yield "\n".join([f"{verdict.word}: {verdict.subject}", *(f"    {line}" for line in lines)])
    yield _findings_table(result)
    for name, heading in (("effect", "cleaning would"), ("versions", "the new judgments")):
        if effect := result.facts.get(name):
            yield f"What {heading} do to the runs:"
            yield from effect_tables(effect)


@reports(CollectionAudit)
def _report(result: CollectionAudit) -> Report:
    names = [about["name"] for part in ("docs", "topics", "qrels") if (about := result.read.get(part))]
    counts = (("docs", "documents"), ("topics", "topics"), ("qrels", "judgments"))
    read = [f"{result.read[part][noun]:,d} {noun}" for part, noun in counts if part in result.read]
    kinds_of = Counter(one.kind.severity for one in result.findings if not one.accepted)
    found = [f"{kinds_of[name]} kind{'s' if kinds_of[name] != 1 else ''} of {name}" for name in SEVERITIES]
    tables = {"findings": _findings_table(result)}
    if effect := result.facts.get("effect"):
        tables |= dict(zip(("scores", "order", "placebo"), effect_tables(effect), strict=False))
    return Report(
        title=f"Is this test set sound? {', '.join(dict.fromkeys(names))}".rstrip(),
        lead=" ".join((f"{listed(read)}: {listed(found)}.", *gallery_notes(result.facts))),
        verdicts=tuple(_shown(each, meaning=each.subject == "collection") for each in result.verdicts),
        sections=_sections(result),
        tables=tables,
        json=result.json(),
        footer=("A note is not a fault, but users of the collection should know it. This page needs no network.",),
    )


@summarises(CollectionCleaning)
def _cleaning_summary(result: CollectionCleaning) -> Summary:
    counts = result.counts()
    rows: list[tuple[str, str, int]] = [("judgments read", "", counts["read"])]
    rows += [(f"judgments {action}", reason, number) for action, reason, number in result.reasons()]
    rows += [
        ("rows that are not judgments, left out", "", counts["broken"]),
        ("judgments written", "", counts["written"]),
        ("contradictions listed", "", counts["contradictions"]),
        ("duplicates in the map", "", counts["duplicates"]),
        ("documents that are their topic's own text", "", counts["exclusions"]),
    ]
    notes = (f"Several judgments of one document: {COMBINE[result.combine]}.", *result.warnings)
    table = Table("What cleaning did.", heads("what, because, number:,d"), tuple(rows), notes)
    return Summary((table,), result.json(), notes=place_note("judgments", result.out, result.file), width=_WIDTH)


@writes(CollectionCleaning)
def _write_cleaning(result: CollectionCleaning, job: Run) -> None:
    with job.output(result.file) as stream:
        stream.writelines(clean_lines(result))
    for name in ("changes", "contradictions", "duplicates", "exclusions"):
        frame = getattr(result, name)
        cells = (["" if cell is None else str(cell).translate(_BREAKS) for cell in row] for row in frame.iter_rows())
        job.text(f"{name}.tsv", "".join("\t".join(row) + "\n" for row in (frame.columns, *cells)))
    # Where it lies is not what was found: the same input has the same bytes in every folder.
    job.json("summary.json", {name: value for name, value in result.json().items() if name != "out"})


def collection_card(result: CollectionAudit) -> str:
    """What the audit says, for the README of the collection."""
    whole, *others = result.verdicts
    parts = ", ".join(f"{verdict.subject} {verdict.word}" for verdict in others)
    rows = tuple(
        (one.kind.code, one.kind.title, one.kind.severity, one.counted, one.kind.effect) for one in result.findings
    )
    columns = heads("Code, Finding, Severity, Count, Effect on scores=effect")
    return card(
        "Collection audit",
        f": **{whole.word}** ({escape_markdown(parts)}).",
        Table("What was found.", columns, rows) if rows else "",
    )


#: Judgments that are read once more for their lines; a larger file is not part of a change.
_LARGEST: Final = 16 << 20
#: The input in which the instances of a part lie, the likeliest first.
_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "judgments": ("qrels", "topics", "docs"),
    "documents": ("docs", "qrels", "topics"),
    "topics": ("topics", "qrels", "docs"),
    "together": ("qrels", "topics", "docs"),
    "versions": ("qrels", "previous_qrels", "previous"),
}


def review(result: CollectionAudit, inputs: Sequence[Input]) -> str:
    """The audit as SARIF: faults are errors, doubts warnings; a note is said once for each kind."""
    roles: dict[str, str] = {}
    for one in inputs:
        roles.setdefault(one.role, one.source or one.name)
    listed = [len(result.rows(one.kind.name)) for one in result.findings if one.kind.severity != "note"]
    unlisted = sum(max(rows - MOST_FINDINGS, 0) for rows in listed)
    audited = [one.source or one.name for one in inputs if one.role in ("qrels", "docs", "topics")]
    return sarif(
        f"collection audit of {', '.join(audited)}", [*kinds().values()], _findings(result, roles), unlisted=unlisted
    )


def _judged_lines(source: str | None, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The last line of each wanted pair, and the first of each topic (without a document), of a file of judgments."""
    found: dict[tuple[str, str], int] = {}
    spec = parse(source) if source else None
    if spec is None or spec.scheme != "file" or not spec.path.is_file() or spec.path.stat().st_size > _LARGEST:
        return found
    for line in qrel_lines(spec):
        if isinstance(line.said, Qrel):
            topic, document = line.said.topic_id, line.said.doc_id
            if (topic, "") in wanted:
                found.setdefault((topic, ""), line.number)
            if (topic, document) in wanted:
                found[topic, document] = line.number
    return found


def _findings(result: CollectionAudit, roles: Mapping[str, str]) -> Iterator[Finding]:
    shown = {
        one.kind.name: result.rows(one.kind.name).head(MOST_FINDINGS)
        for one in result.findings
        if one.kind.severity != "note"
    }
    wanted = {pair for rows in shown.values() for pair in rows.select("topic_id", "doc_id").iter_rows()}
    lines = _judged_lines(roles.get("qrels"), wanted) if wanted else {}
    for finding in result.findings:
        kind = finding.kind
        source = next((roles[role] for role in _INPUTS[kind.part] if role in roles), kind.part)
        if kind.severity == "note":
            yield Finding(kind, f"{kind.title}: {finding.counted}", source, 0, kind.name, accepted=finding.accepted)
            continue
        for row in shown[kind.name].iter_rows(named=True):
            key = "\0".join(str(row[name]) for name in ("topic_id", "doc_id", "other", "detail"))
            known = lines.get((row["topic_id"], row["doc_id"]), 0) if source == roles.get("qrels") else 0
            # `judged twice with different grades: topic 1, document a (grades 1 and 0)`
            named = (("topic", "topic_id"), ("document", "doc_id"), ("and", "other"))
            place = ", ".join(f"{word} {row[name]}" for word, name in named if row[name])
            detail = f" ({row['detail']})" if row["detail"] else ""
            yield Finding(
                kind,
                f"{kind.title}{': ' if place else ''}{place}{detail}",
                source,
                row["line"] or known,
                key,
                accepted=finding.accepted,
            )
