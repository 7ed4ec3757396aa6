"""How profiles, mapped passages, simulated depths, answers, and training triples are shown and written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from truerank.audits.survivorship.answer_pools import ITEMS, POOL, REASONS, AnswerPool
from truerank.audits.survivorship.answers import Answerable, CorpusAnswers
from truerank.audits.survivorship.depths import Depths
from truerank.audits.survivorship.mapping import PassageMap
from truerank.audits.survivorship.profiles import DepthCurve, Profile, Split
from truerank.audits.survivorship.queries import FEWEST_EXPECTED, Kinds, fault_notes, percent
from truerank.audits.survivorship.training_triples import Triples
from truerank.core.figures.export import Picture
from truerank.core.figures.forest import ForestRow, forest_plot
from truerank.core.figures.lines import LinePanel, LineSeries, line_panels
from truerank.core.report import Report, ReportSection, found_section
from truerank.core.result import Summary, page_note, place_note, reports, shows, summarises, writes
from truerank.core.rules import Rule, rules_of
from truerank.core.tables import Cell, Column, Table
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.judging import Item
from truerank.judging.report import label_tables
from truerank.work.runs import Run

_RULES: Final = rules_of("truerank.audits.survivorship", Rule)
#: The end of every page of this audit.
FOOTER: Final = "This page needs no network."


@summarises(Profile)
def _profile_summary(result: Profile) -> Summary:
    return Summary(
        tuple(table for _, table in _profile_tables(result)), result.json(), notes=page_note(result.out), width=120
    )


@reports(Profile)
def _profile_report(result: Profile) -> Report:
    sections = [ReportSection("splits", "What was discarded", (split_table(result),))]
    for number, kinds in enumerate(result.kinds, start=1):
        title = f"{kinds.split}: by {kinds.labelling}"
        sections.append(ReportSection(f"kinds-{number}", title, (_kinds_picture(kinds, number), kinds_table(kinds))))
    for number, split in enumerate(result.splits, start=1):
        if split.ranks:
            parts = (_ranks_picture(split, number), rank_table(split))
            sections.append(ReportSection(f"ranks-{number}", f"{split.name}: rank of what was selected", parts))
            curve: tuple[Any, ...] = (_curve_picture(split, number), curve_table(split))
            sections.append(ReportSection(f"depths-{number}", f"{split.name}: had fewer, or more, been shown", curve))
    return Report(
        title="Which queries did labelling drop?",
        lead="Queries for which nobody found an answer among the documents shown are not in the test collection.",
        verdicts=tuple(_split_verdict(result, split) for split in result.splits),
        sections=tuple(sections),
        tables=dict(_profile_tables(result)),
        json=result.json(),
        footer=("What is extrapolated is marked as such everywhere; it is not a measurement.", FOOTER),
    )


def _split_verdict(result: Profile, split: Split) -> Verdict:
    share = split.discarded
    standing = [
        f"{one.kind} ({one.of_survivors:.1%} of survivors, {one.of_all:.1%} of all)"
        for kinds in result.kinds
        if kinds.split == split.name
        for one in kinds.counts
        if one.standing == "over"
    ]
    return Verdict(
        subject=split.name,
        word=f"{percent(share.share)} discarded",
        level="bad" if share.k else "good",
        sentence=f"{share.k:,} of {share.n:,} queries were dropped ({share.low:.1%} to {share.high:.1%}).",
        rests_on=f"More frequent among the survivors: {', '.join(standing[:4])}." if standing else "",
        share=share.share,
    )


def _kinds_picture(kinds: Kinds, number: int) -> Picture:
    rows = [
        ForestRow(f"{one.kind} (n = {one.discarded.n:,})", share, one.discarded.low, one.discarded.high, f"{share:.1%}")
        for one in kinds.counts
        if (share := one.discarded.share) is not None
    ]
    caption = (
        f"Discarded share of the queries of {kinds.split} by {kinds.labelling}, with intervals; the dashed line is the "
        f"share over all {kinds.total.n:,} labelled queries."
    )
    total = kinds.total.share
    label = "" if total is None else f"all {total:.1%}"
    figure = forest_plot(rows, x_label="share discarded", line=total, line_label=label, percent=True)
    return Picture(f"kinds-{number}", caption, figure)


def _ranks_picture(split: Split, number: int) -> Picture:
    survivors = max(1, sum(one.first for one in split.ranks))
    selected = max(1, sum(one.selected for one in split.ranks))
    lines = (
        LineSeries("first selected", tuple((one.first / survivors, None, None) for one in split.ranks)),
        LineSeries("any selected", tuple((one.selected / selected, None, None) for one in split.ranks)),
    )
    panel = LinePanel(f"n = {survivors:,} queries", tuple(str(one.position) for one in split.ranks), lines)
    figure = line_panels([panel], x_label="rank at which it was shown", y_label="share", columns=1)
    return Picture(
        f"ranks-{number}", f"Where the selected documents of {split.name} stood when they were shown.", figure
    )


def _curve_picture(split: Split, number: int) -> Picture:
    curve = split.curve
    points = () if curve is None else curve.points
    beyond = () if curve is None else curve.beyond
    depths = sorted({one.depth for one in points} | {one.depth for one in beyond})
    cut = {
        one.depth: (share, one.discarded.low, one.discarded.high)
        for one in points
        if (share := one.discarded.share) is not None
    }
    future = {one.depth: (one.share, one.low, one.high) for one in beyond}
    lines = [LineSeries("cut at this depth", tuple(cut.get(depth) for depth in depths))]
    if future:
        lines.append(LineSeries("EXTRAPOLATED, no measurement", tuple(future.get(depth) for depth in depths)))
    panel = LinePanel(f"n = {split.discarded.n:,} queries", tuple(map(str, depths)), tuple(lines))
    caption = f"Discarded share of {split.name} by the number of documents shown."
    if future:
        caption += " Dashed and hollow: extrapolated, with an interval that spans three shapes of the trend."
    figure = line_panels([panel], x_label="documents shown", y_label="share discarded", columns=1)
    return Picture(f"depths-{number}", caption, figure)


def split_table(result: Profile) -> Table:
    columns = heads("split, queries:,d, survived:,d, discarded:,d, share:.1%, low:.1%, high:.1%")
    rows = tuple(
        (one.name, d.n, d.n - d.k, d.k, d.share, d.low, d.high) for one in result.splits for d in (one.discarded,)
    )
    rule = "no shown document was selected" if result.options.survival == "selected" else "nobody wrote an answer"
    notes = [f"Discarded: {rule}. Intervals: Wilson's, {result.resampling.confidence:.0%}."]
    notes += [f"{one.name}: {note}" for one in result.splits for note in fault_notes(one.counts)]
    return Table("Discarded queries", columns, rows, tuple(notes))


def rank_table(split: Split) -> Table:
    columns = heads("rank:, shown_so_many:,d, first_selected:,d, share:.1%, selected:,d")
    survivors = sum(one.first for one in split.ranks)
    rows = tuple(
        (str(one.position), one.reached, one.first, one.first / survivors if survivors else None, one.selected)
        for one in split.ranks
    )
    return Table(f"{split.name}: rank of the selected documents", columns, rows)


def curve_table(split: Split) -> Table:
    columns = heads("depth:, how, discarded:.1%, low:.1%, high:.1%, if_all_were_shown_so_many:.1%")
    curve = split.curve
    rows: list[tuple[Any, ...]] = []
    notes = ["Cut at depth k: a query is discarded unless one of the first k shown was selected."]
    rules = (len(curve.points),) if curve is not None and curve.beyond else ()
    if curve is not None:
        rows += [
            (str(p.depth), "cut", p.discarded.share, p.discarded.low, p.discarded.high, p.adjusted)
            for p in curve.points
        ]
        rows += [(str(f.depth), "EXTRAPOLATED", f.share, f.low, f.high, None) for f in curve.beyond]
        notes.append(_trend(curve))
    return Table(f"{split.name}: discarded share by depth", columns, tuple(rows), tuple(notes), rules)


def _profile_tables(result: Profile) -> Iterator[tuple[str, Table]]:
    yield "splits", split_table(result)
    for number, kinds in enumerate(result.kinds, start=1):
        yield f"kinds-{number}", kinds_table(kinds)
    for number, split in enumerate(result.splits, start=1):
        if split.ranks:
            yield f"ranks-{number}", rank_table(split)
            yield f"depths-{number}", curve_table(split)


def kinds_table(kinds: Kinds) -> Table:
    columns = heads(
        "kind, total:,d, discarded:,d, share:.1%, low:.1%, high:.1%, of_all:.1%, of_survivors:.1%, ratio:.3f, "
        "residual:+.1f, among_survivors"
    )
    words = {"over": "over-represented", "under": "under-represented", "": "as expected"}
    rows: list[tuple[Any, ...]] = [
        (
            one.kind, d.n, d.k, d.share, d.low, d.high, one.of_all, one.of_survivors, one.ratio, one.residual,
            words[one.standing],
        )
        for one in kinds.counts
        for d in (one.discarded,)
    ]  # fmt: skip
    whole = kinds.total
    rows.append(("all", whole.n, whole.k, whole.share, whole.low, whole.high, None, None, None, None, ""))
    return Table(
        f"{kinds.split}: discarded queries by {kinds.labelling}",
        columns,
        tuple(rows),
        tuple(_kinds_notes(kinds)),
        rules=(len(kinds.counts),),
    )


def _kinds_notes(kinds: Kinds) -> list[str]:
    notes = []
    if kinds.chi2 is None or kinds.p is None:
        notes.append("Nothing to test: fewer than two kinds, or nothing discarded, or nothing left.")
    else:
        p = "p < 0.001" if kinds.p < 0.001 else f"p = {kinds.p:.3f}"
        notes.append(
            f"Independence of kind and survival: χ² = {kinds.chi2:,.1f}, {kinds.freedom} degrees of freedom, {p}, "
            f"Cramér's V = {kinds.cramers_v:.3f}. A residual is adjusted and standardised, that of the survivors; "
            f"beyond ±{kinds.critical:.2f} (level {kinds.alpha:g}, Bonferroni over {len(kinds.counts)} kinds) a kind "
            "is over- or under-represented among them."
        )
    if kinds.sparse:
        notes.append(f"Fewer than {FEWEST_EXPECTED} queries expected, so roughly: {', '.join(kinds.sparse)}.")
    if kinds.unlabelled:
        notes.append(f"{kinds.unlabelled:,} queries have no {kinds.labelling}; they are in no row.")
    return notes


def _trend(curve: DepthCurve) -> str:
    if not curve.beyond:
        return f"No extrapolation. {curve.why_not}"
    shapes = "; ".join(f"{name} {values[-1]:.1%}" for name, values in curve.shapes.items())
    return (
        f"EXTRAPOLATED rows are not measurements: they carry on the chance of a selection at depths 1 to {curve.shown} "
        f"in three ways (at depth {curve.beyond[-1].depth}: {shapes}). The interval spans all three; it holds only if "
        "annotators had gone on as they did, and says nothing about other rankings."
    )


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
        sentence=f"At depth {shallow.label}, {shallow.queries:,} of {whole.queries:,} queries keep a judgment.",
        rests_on=f"The whole log judges {whole.queries:,} of {result.queries:,} queries.",
        share=lost,
    )
    parts = (Picture("depths", caption, figure), depths_table(result))
    return Report(
        title=f"How many queries does each depth of annotation keep? {result.name}",
        lead=f"{whole.qrels:,} judgments of {whole.queries:,} queries, had fewer documents been shown.",
        verdicts=(verdict,),
        sections=(ReportSection("depths", "What is left at each depth", parts),),
        tables={"depths": depths_table(result)},
        json=result.json(),
        footer=(FOOTER,),
    )


@shows(Depths, ("report", "report.html"), width=120)
def depths_table(result: Depths) -> Table:
    columns = heads("depth:, qrels:,d, queries:,d, new_queries:,d, first_only:,d, discarded:.1%")
    rows = tuple(
        (one.label, one.qrels, one.queries, one.new_queries, one.first_qrels, result.discarded(one))
        for one in result.levels
    )
    return Table(f"{result.name}: judgments by simulated annotation depth", columns, rows, tuple(_depths_notes(result)))


def _depths_notes(result: Depths) -> Iterator[str]:
    yield (
        "A judgment survives depth k if its document stood among the first k shown. First only: one judgment a "
        "query, that of the document shown first. Simulated: with fewer documents to see, a person might have "
        "selected others."
    )
    yield f"Discarded is the share of the log's {result.queries:,} queries without a judgment."
    if result.repeated:
        yield f"{result.repeated:,} documents appear again for the same query; their first position counts."
    if result.unplaced:
        yield f"{result.unplaced:,} judgments are for documents that the log did not show; they belong to 'all' only."
    if result.unmapped:
        kept = "named by the key of their text" if result.options.unmapped == "keep" else "left out"
        yield f"{result.unmapped:,} selected documents have no passage id; they are {kept}."
    yield from fault_notes(result.counts)


def map_table(result: PassageMap) -> Table:
    columns = heads("passages, mapped:,d, unmatched:,d, ambiguous:,d, without_text:,d")
    rows = (("shown", *result.shown), ("selected", *result.selected))
    return Table("Passages of the log in the collection", columns, rows, tuple(_map_notes(result)))


def _map_notes(result: PassageMap) -> Iterator[str]:
    if result.lost is not None:
        yield (
            "Texts are equal after repairing bytes read as latin-1 and joining blanks. Every passage that is not "
            "mapped is in unmatched.jsonl, every text that several passages have in duplicates.tsv."
        )
        read = result.table_counts
        yield (
            f"The collection holds {read['passages']:,} passages, {read['distinct']:,} distinct texts; "
            f"{read['texts_repeated']:,} texts are there more than once."
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
            f"of {result.options.words} words are in one document. Discarded by required overlap: {levels}."
        )
    yield from fault_notes(result.counts)


@shows(Triples, ("triples", "triples.parquet"), width=120)
def triples_table(result: Triples) -> Table:
    columns = heads("depth:, triples:,d, share:.1%, distinct_pairs:,d, queries:,d")
    rows = tuple(
        (one.label, one.triples, one.triples / result.read if result.read else None, one.pairs, one.queries)
        for one in result.levels
    )
    limit, shallow = result.options.limit, result.levels[0]
    limited = [] if limit is None else [f"Reading stopped when depth {shallow.label} had {limit:,} triples."]
    if limit is not None and shallow.triples < limit:
        limited = [f"The stream ended before depth {shallow.label} had the {limit:,} triples that were asked for."]
    notes = (
        f"Of {result.read:,} triples, in their order and with their non-relevant documents; looked up by {result.by}.",
        *limited,
        f"Left out: {result.unknown:,} whose relevant pair the log does not judge, {result.unplaced:,} whose relevant "
        "document it did not show.",
    )
    return Table("Training triples by simulated annotation depth", columns, rows, notes)


@writes(AnswerPool)
def _pool_files(result: AnswerPool, job: Run) -> None:
    job.parquet(POOL, result.results)
    job.text(ITEMS, _lines(result.items))
    if result.reasons:
        job.text(REASONS, _lines(result.reasons))
    job.text("queries.tsv", "".join(f"{one}\t{' '.join(text.split())}\n" for one, text in result.queries.items()))
    job.json("summary.json", result.json())


@summarises(Answerable)
def _answerable_summary(result: Answerable) -> Summary:
    return Summary(tuple(_tables(result).values()), result.json(), notes=page_note(result.out), width=120)


@reports(Answerable)
def _answerable_report(result: Answerable) -> Report:
    sections: list[ReportSection] = []
    for number, corpus in enumerate(result.corpora, start=1):
        name = corpus.name or "answers"
        rows = [
            ForestRow(f"{one.system}, top {cutoff}", found.share, found.low, found.high, f"{found.share:.1%}")
            for one in corpus.shares
            for cutoff, found in one.within.items()
            if found.share is not None
        ]
        caption = f"Share of {len(corpus.queries):,} discarded queries with an answer among the first results."
        figure = forest_plot(rows, x_label="share of discarded queries", percent=True)
        parts: tuple[Any, ...] = (
            Picture(f"answers-{number}", caption, figure),
            answer_table(result, corpus),
            interval_table(result, corpus),
        )
        sections.append(ReportSection(f"answers-{number}", f"{name}: which rankers find an answer", parts))
        if corpus.overlaps:
            overlap = (overlap_table(corpus),)
            sections.append(ReportSection(f"overlap-{number}", f"{name}: what they have in common", overlap))
    if result.reasons is not None:
        sections.append(
            ReportSection(
                "reasons", "Why queries were left without an answer", tuple(label_tables(result.reasons).values())
            )
        )
        counts = result.reasons.parts["counts"].row(-1, named=True)
        sections.append(found_section({rule: counts[name.replace("-", "_")] for name, rule in _RULES.items()}))
    return Report(
        title="Can the discarded queries be answered?",
        lead="Queries were discarded because nobody found an answer among the documents shown; rankers look further.",
        verdicts=tuple(_verdict(corpus) for corpus in result.corpora),
        sections=tuple(sections),
        tables=_tables(result),
        json=result.json(),
        footer=(
            "A query that none of the rankers answers may be answerable: its answer may not have been retrieved.",
            FOOTER,
        ),
    )


def _verdict(corpus: CorpusAnswers) -> Verdict:
    lost = corpus.unanswerable
    answered = lost.n - lost.k
    best = max(corpus.shares[: len(corpus.systems)], key=lambda one: one.within[corpus.cutoffs[0]].k)
    share = answered / lost.n if lost.n else 0.0
    return Verdict(
        subject=corpus.name or "discarded queries",
        word=f"{share:.0%} answerable",
        level="bad" if answered else "good",
        sentence=(
            f"{answered:,} of {lost.n:,} discarded queries have an answer in the collection "
            f"({1 - lost.high:.0%} to {1 - lost.low:.0%})."
        ),
        rests_on=f"{best.system} alone answers {best.within[corpus.cutoffs[0]].k:,} in its first {corpus.cutoffs[0]}.",
        share=share,
    )


def answer_table(result: Answerable, corpus: CorpusAnswers) -> Table:
    """Queries with and without an answer by system, the paper's Table 2."""
    columns = [Column("")]
    for one in corpus.shares:
        columns += [Column("n", (one.system,), "right", ",d"), Column("share", (one.system,), "right", ".0%")]
    rows: list[tuple[Cell, ...]] = []
    cells = [cell for one in corpus.shares for cell in (one.none.k, one.none.share)]
    rows.append(("no answer present", *cells))
    for cutoff in corpus.cutoffs:
        cells = [cell for one in corpus.shares for cell in (one.within[cutoff].k, one.within[cutoff].share)]
        rows.append((f"answer in top {cutoff}", *cells))
    title = f"{_of(corpus)}discarded queries that rankers answer, n = {len(corpus.queries):,}"
    return Table(title, tuple(columns), tuple(rows), tuple(_notes(result, corpus)))


def interval_table(result: Answerable, corpus: CorpusAnswers) -> Table:
    columns = heads("system, answer, n:,d, share:.1%, low:.1%, high:.1%")
    rows: list[tuple[Cell, ...]] = []
    rules = []
    for one in corpus.shares:
        rules.append(len(rows))
        named = [("none", one.none), *((f"top {cutoff}", share) for cutoff, share in one.within.items())]
        rows += [(one.system, name, share.k, share.share, share.low, share.high) for name, share in named]
    note = f"{result.options.confidence:.0%} intervals are Wilson's; they hold for a random sample of queries."
    return Table(f"{_of(corpus)}shares with intervals", columns, tuple(rows), (note,), tuple(rules[1:]))


def overlap_table(corpus: CorpusAnswers) -> Table:
    columns = heads("first, second, both:,d, only_first:,d, only_second:,d, neither:,d, Jaccard:.2f, p:.3g")
    rows = tuple((*one[:6], one.jaccard, one.p) for one in corpus.overlaps)
    counted = ", ".join(f"{many} by {n}" for n, many in enumerate(corpus.by_count))
    notes = (f"Queries by how many systems answer them: {counted}.", "p: McNemar's exact test, not corrected.")
    return Table(f"{_of(corpus)}queries answered by two systems", columns, rows, notes)


def _tables(result: Answerable) -> dict[str, Table]:
    found: dict[str, Table] = {}
    for corpus in result.corpora:
        end = f"-{corpus.name.replace('/', '-')}" if len(result.corpora) > 1 else ""
        found[f"answerable{end}"] = answer_table(result, corpus)
        found[f"intervals{end}"] = interval_table(result, corpus)
        if corpus.overlaps:
            found[f"overlap{end}"] = overlap_table(corpus)
    if result.reasons is not None:
        found |= {f"reasons-{name}": table for name, table in label_tables(result.reasons).items()}
    return found


def _notes(result: Answerable, corpus: CorpusAnswers) -> Iterator[str]:
    lost = corpus.unanswerable
    yield (
        f"{lost.k:,} of {lost.n:,} queries ({percent(lost.share)}, {lost.low:.1%} to {lost.high:.1%}) are "
        "answered by none of the systems: an upper bound, since other systems may find more."
    )
    if (anywhere := result.anywhere) is not None:
        yield f"Answered in one of the corpora: {anywhere.k:,} of {anywhere.n:,} ({percent(anywhere.share)})."
    yield from result.notes


def _of(corpus: CorpusAnswers) -> str:
    return f"{corpus.name}: " if corpus.name else ""


@shows(AnswerPool, ("items", ITEMS), width=120)
def pool_table(result: AnswerPool) -> Table:
    columns = heads("corpus, system, queries:,d, passages:,d, only_here:,d")
    alone = result.results.group_by("corpus", "query_id", "doc_id").agg(
        pl.len().alias("systems"), pl.col("system").first()
    )
    rows: list[tuple[str | int, ...]] = []
    rules = []
    for (corpus,), part in result.results.group_by("corpus", maintain_order=True):
        own = alone.filter(pl.col("corpus") == corpus)
        for (system,), found in part.group_by("system", maintain_order=True):
            only = len(own.filter((pl.col("systems") == 1) & (pl.col("system") == system)))
            rows.append((str(corpus), str(system), found["query_id"].n_unique(), len(found), only))
        rules.append(len(rows))
        rows.append((str(corpus), "pool", part["query_id"].n_unique(), len(own), len(own)))
    title = f"Pools of the first {result.options.k} results for {len(result.queries):,} discarded queries"
    return Table(title, columns, tuple(rows), tuple(_pool_notes(result)), tuple(rules))


def _pool_notes(result: AnswerPool) -> Iterator[str]:
    if len(result.queries) < result.discarded:
        yield f"Drawn at random from {result.discarded:,} discarded queries, seed {result.options.seed}."
    else:
        yield f"All {result.discarded:,} discarded queries."
    yield "The order of the passages does not show who retrieved them, or at which rank."
    for where, number in result.lacking.items():
        if number:
            yield f"{where} has no result for {number:,} of the queries."
    yield from fault_notes(result.counts)


def _lines(items: Sequence[Item]) -> str:
    return "".join(json.dumps(item.json(), ensure_ascii=False) + "\n" for item in items)
