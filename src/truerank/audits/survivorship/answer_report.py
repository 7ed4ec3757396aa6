"""How answers of discarded queries are shown and written: pools, counts, rescued queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from truerank.audits.survivorship.answers import Answerable, CorpusAnswers
from truerank.audits.survivorship.pooling import ITEMS, POOL, REASONS, AnswerPool
from truerank.audits.survivorship.queries import fault_notes, percent
from truerank.audits.survivorship.report import FOOTER
from truerank.audits.survivorship.rescuing import RESCUED, Rescued
from truerank.core.figures.export import Picture
from truerank.core.figures.forest import ForestRow, forest_plot
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, page_note, place_note, reports, summarises, writes
from truerank.core.tables import Cell, Column, Table
from truerank.core.verdict import Verdict
from truerank.judging import Item
from truerank.judging.report import label_tables
from truerank.sources.qrels import qrel_text
from truerank.work.publishing import write_tables
from truerank.work.runs import Run


@summarises(AnswerPool)
def _pool_summary(result: AnswerPool) -> Summary:
    return Summary((pool_table(result),), result.json(), notes=place_note("items", result.out, ITEMS), width=120)


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


@summarises(Rescued)
def _rescued_summary(result: Rescued) -> Summary:
    return Summary(
        (rescued_table(result),), result.json(), notes=place_note("judgments", result.out, "qrels"), width=120
    )


@writes(Rescued)
def _rescued_files(result: Rescued, job: Run) -> None:
    for corpus in result.judged:
        own = result.judgments.filter(pl.col("corpus") == corpus)
        job.text(f"qrels/{(corpus or RESCUED).replace('/', '-')}.qrels", qrel_text(own, RESCUED))
    if len(result.instances):
        job.parquet("instances.parquet", result.instances)
    if result.merged is not None:
        job.text("merged.qrels", qrel_text(result.merged) + qrel_text(result.judgments, RESCUED))
    write_tables(job, {"rescued": rescued_table(result)})
    job.json("summary.json", result.json())


@reports(Answerable)
def _answerable_report(result: Answerable) -> Report:
    sections: list[ReportSection] = []
    for number, corpus in enumerate(result.corpora, start=1):
        name = corpus.name or "answers"
        parts: tuple[Any, ...] = (
            _picture(corpus, number),
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


def _picture(corpus: CorpusAnswers, number: int) -> Picture:
    rows = [
        ForestRow(f"{one.system}, top {cutoff}", found.share, found.low, found.high, f"{found.share:.1%}")
        for one in corpus.shares
        for cutoff, found in one.within.items()
        if found.share is not None
    ]
    caption = f"Share of {len(corpus.queries):,} discarded queries with an answer among the first results."
    figure = forest_plot(rows, x_label="share of discarded queries", percent=True)
    return Picture(f"answers-{number}", caption, figure)


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
    columns = (
        Column("system"),
        Column("answer"),
        Column("n", align="right", format=",d"),
        *Column.numbers(".1%", "share", "low", "high"),
    )
    rows: list[tuple[Cell, ...]] = []
    rules = []
    for one in corpus.shares:
        rules.append(len(rows))
        named = [("none", one.none), *((f"top {cutoff}", share) for cutoff, share in one.within.items())]
        rows += [(one.system, name, share.k, share.share, share.low, share.high) for name, share in named]
    note = f"{result.options.confidence:.0%} intervals are Wilson's; they hold for a random sample of queries."
    return Table(f"{_of(corpus)}shares with intervals", columns, tuple(rows), (note,), tuple(rules[1:]))


def overlap_table(corpus: CorpusAnswers) -> Table:
    columns = (
        Column("first"),
        Column("second"),
        *Column.numbers(",d", "both", "only first", "only second", "neither"),
        Column("Jaccard", align="right", format=".2f"),
        Column("p", align="right", format=".3g"),
    )
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


def pool_table(result: AnswerPool) -> Table:
    columns = (Column("corpus"), Column("system"), *Column.numbers(",d", "queries", "passages", "only here"))
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
    yield "Passages stand in an order that does not tell who retrieved them, or where."
    for where, number in result.lacking.items():
        if number:
            yield f"{where} has no result for {number:,} of the queries."
    yield from fault_notes(result.counts)


def rescued_table(result: Rescued) -> Table:
    columns = (
        Column("corpus"),
        *Column.numbers(",d", "judged queries", "rescued"),
        Column("share", align="right", format=".1%"),
        *Column.numbers(",d", "answers", "no answers", "instances"),
    )
    rows = tuple(tuple(row.values()) for row in result.counts())
    notes = [f"Judgments are marked '{RESCUED}' in the second column, instances in the column 'rescued'."]
    if result.lone:
        notes.append(f"{result.lone:,} rescued queries have no passage judged to be no answer: no instance of them.")
    return Table("Rescued queries", columns, rows, (*notes, *result.notes))


def _lines(items: Sequence[Item]) -> str:
    return "".join(json.dumps(item.json(), ensure_ascii=False) + "\n" for item in items)
