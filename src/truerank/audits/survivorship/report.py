"""How mapped passages, simulated depths and logs, and training triples are shown and written."""

from __future__ import annotations

from collections.abc import Iterator

from truerank.audits.survivorship.depths import Depths
from truerank.audits.survivorship.filtering import Triples
from truerank.audits.survivorship.mapping import PassageMap
from truerank.audits.survivorship.profile_report import FOOTER, kinds_table
from truerank.audits.survivorship.queries import fault_notes, percent
from truerank.audits.survivorship.simulating import Simulated
from truerank.core.verdict import Verdict
from truerank.reports.figures.export import Picture
from truerank.reports.figures.lines import LinePanel, LineSeries, line_panels
from truerank.reports.report import Report, ReportSection
from truerank.reports.results import Summary, page_note, place_note, reports, summarises, writes
from truerank.reports.tables import Column, Table
from truerank.work.runs import Run


@summarises(Depths)
def _depths_summary(result: Depths) -> Summary:
    return Summary((depths_table(result),), result.json(), notes=page_note(result.out), width=120)


@summarises(PassageMap)
def _map_summary(result: PassageMap) -> Summary:
    tables = [map_table(result)]
    if result.later is not None and result.later.kinds is not None:
        tables.append(kinds_table(result.later.kinds))
    return Summary(tuple(tables), result.json(), notes=place_note("mapping", result.out, "mapping.parquet"), width=120)


@writes(PassageMap)
def _map_files(result: PassageMap, job: Run) -> None:
    if result.lost is not None:
        job.parquet("mapping.parquet", result.mapping)
        job.text("duplicates.tsv", "".join("\t".join(group) + "\n" for group in result.duplicates))
    if result.later is not None:
        keeps = result.survival["overlap"] >= result.options.overlap
        for name, kept in (("survived", result.survival.filter(keeps)), ("discarded", result.survival.filter(~keeps))):
            job.text(f"later-{name}.txt", "".join(f"{one}\n" for one in kept["query_id"]))
    job.parquet("survival.parquet", result.survival)
    job.json("summary.json", result.json())


@summarises(Simulated)
def _simulated_summary(result: Simulated) -> Summary:
    return Summary((simulated_table(result),), result.json(), notes=place_note("log", result.out), width=120)


@summarises(Triples)
def _triples_summary(result: Triples) -> Summary:
    return Summary(
        (triples_table(result),), result.json(), notes=place_note("triples", result.out, "triples.parquet"), width=120
    )


@writes(Triples)
def _triples_files(result: Triples, job: Run) -> None:
    job.json("summary.json", result.json())


@reports(Depths)
def _depth_report(result: Depths) -> Report:
    levels = result.levels
    shallow, whole = levels[0], levels[-1]
    lost = 1 - shallow.queries / whole.queries if whole.queries else 0.0
    conditions = tuple(one.label for one in levels)
    counts = (("qrels", [one.qrels for one in levels]), ("queries", [one.queries for one in levels]))
    lines = tuple(LineSeries(name, tuple((float(n), None, None) for n in numbers)) for name, numbers in counts)
    added = LineSeries("new queries", tuple((float(one.new_queries), None, None) for one in levels))
    figure = line_panels(
        [LinePanel("judgments and queries left", conditions, lines), LinePanel("queries gained", conditions, (added,))],
        x_label="documents shown",
        y_label="number",
    )
    caption = (
        f"Judgments and surviving queries of {result.name} by the number of documents that would have been shown; "
        "beside them, how many queries each depth adds."
    )
    verdict = Verdict(
        subject=result.name,
        word=f"{lost:.1%} fewer queries",
        level="bad" if lost > 0 else "good",
        sentence=f"At depth {shallow.label} {shallow.queries:,} of {whole.queries:,} queries have a judgment.",
        rests_on=f"The whole log judges {whole.queries:,} of {result.queries:,} queries.",
        share=lost,
    )
    parts = (Picture("depths", caption, figure), depths_table(result))
    return Report(
        title=f"Simulated annotation depths: {result.name}",
        lead=f"{whole.qrels:,} judgments of {whole.queries:,} queries, had fewer documents been shown.",
        verdicts=(verdict,),
        sections=(ReportSection("depths", "What is left at each depth", parts),),
        tables={"depths": depths_table(result)},
        json=result.json(),
        footer=(FOOTER,),
    )


def depths_table(result: Depths) -> Table:
    """Judgments and queries by depth."""
    columns = (
        Column("depth", align="right"),
        *Column.numbers(",d", "qrels", "queries", "new queries", "first only"),
        Column("discarded", align="right", format=".1%"),
    )
    rows = tuple(
        (one.label, one.qrels, one.queries, one.new_queries, one.first_qrels, result.discarded(one))
        for one in result.levels
    )
    return Table(f"{result.name}: judgments by simulated annotation depth", columns, rows, tuple(_depths_notes(result)))


def _depths_notes(result: Depths) -> Iterator[str]:
    """What a reader of the table has to know."""
    yield (
        "A judgment survives depth k if its document stood among the first k shown. First only: one judgment a "
        "query, that of the document shown first. Simulated: with fewer documents to see, a person might have "
        "selected others."
    )
    yield f"Discarded is the share of the log's {result.queries:,} queries without a judgment."
    if result.repeated:
        yield f"{result.repeated:,} documents stand again for the same query; their first position counts."
    if result.unplaced:
        yield f"{result.unplaced:,} judgments are for documents that the log did not show; they belong to 'all' only."
    if result.unmapped:
        kept = "named by the key of their text" if result.options.unmapped == "keep" else "left out"
        yield f"{result.unmapped:,} selected documents have no passage id; they are {kept}."
    yield from fault_notes(result.counts)


def map_table(result: PassageMap) -> Table:
    """What became of the passages."""
    columns = (
        Column("passages"),
        *Column.numbers(",d", "mapped", "unmatched", "ambiguous", "without text"),
    )
    rows = (("shown", *result.shown), ("selected", *result.selected))
    return Table("Passages of the log in the collection", columns, rows, tuple(_map_notes(result)))


def _map_notes(result: PassageMap) -> Iterator[str]:
    """What a reader of the table has to know."""
    if result.lost is not None:
        yield (
            "Texts are equal after repairing bytes read as latin-1 and joining blanks. Every passage that is not "
            "mapped stands in unmatched.jsonl, every text that several passages have in duplicates.tsv."
        )
        read = result.table_counts
        yield (
            f"The collection holds {read['passages']:,} passages, {read['distinct']:,} distinct texts; "
            f"{read['texts_repeated']:,} texts stand there more than once."
        )
        yield (
            f"{result.lost.k:,} of {result.survivors:,} queries with a selected passage have none in the collection."
        )
    if result.later is not None:
        lost = result.later.discarded
        levels = ", ".join(f"{level:g}: {share:.1%}" for level, share in result.later.levels.items())
        yield (
            f"Later corpus: {lost.k:,} of {lost.n:,} queries ({percent(lost.share)}, {lost.low:.1%} to "
            f"{lost.high:.1%}) have no selected passage of which {result.options.overlap:.0%} of the sequences "
            f"of {result.options.words} words stand in one document. Discarded by required overlap: {levels}."
        )
    yield from fault_notes(result.counts)


def simulated_table(result: Simulated) -> Table:
    """What the annotators would have found."""
    columns = (
        Column("log"),
        *Column.numbers(",d", "queries", "selected documents", "discarded"),
        Column("share", align="right", format=".1%"),
    )
    row = (
        "log" if result.out is None else result.out.name,
        result.queries,
        result.selected,
        result.discarded.k,
        result.discarded.share,
    )
    notes = (
        f"Each annotator saw the best {result.options.shown} documents and selected "
        f"{'every relevant one' if result.options.select == 'all' else 'the first relevant one'}.",
        f"Of the discarded queries {result.unjudged:,} have no known relevant document and {result.unranked:,} no "
        "ranking.",
        "These annotators miss nothing that is judged relevant, and find nothing that is not judged: people would "
        "discard other queries, more or fewer.",
    )
    return Table("Simulated annotation", columns, (row,), notes)


def triples_table(result: Triples) -> Table:
    """Triples, pairs and queries by depth."""
    columns = (
        Column("depth", align="right"),
        Column("triples", align="right", format=",d"),
        Column("share", align="right", format=".1%"),
        *Column.numbers(",d", "distinct pairs", "queries"),
    )
    rows = tuple(
        (one.label, one.triples, one.triples / result.read if result.read else None, one.pairs, one.queries)
        for one in result.levels
    )
    notes = (
        f"Of {result.read:,} triples, in their order and with their non-relevant documents; looked up by {result.by}.",
        *_limit_notes(result),
        f"Left out: {result.unknown:,} whose relevant pair the log does not judge, {result.unplaced:,} whose relevant "
        "document it did not show.",
    )
    return Table("Training triples by simulated annotation depth", columns, rows, notes)


def _limit_notes(result: Triples) -> tuple[str, ...]:
    limit, label = result.options.limit, result.levels[0].label
    if limit is None:
        return ()
    if result.levels[0].triples < limit:
        return (f"The stream ended before depth {label} had the {limit:,} triples that were asked for.",)
    return (f"Reading stopped when depth {label} had {limit:,} triples.",)
