"""What `survivorship.answerable` found: answers by system, queries that none answers, what systems share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import bdtr

from truerank.audits.survivorship.answers.options import AnswerableOptions
from truerank.audits.survivorship.answers.report import answerable_draft
from truerank.audits.survivorship.page import write_page
from truerank.audits.survivorship.results import Share, provenance, share_of
from truerank.judging import LabelTables
from truerank.reports.tables import Cell, Column, Table
from truerank.work.artifacts import Artifacts
from truerank.work.publishing import write_tables

__all__ = ["Answerable", "Corpus", "Overlap", "SystemShares"]

_ANY = "any of them"


class SystemShares(NamedTuple):
    """One system: for how many queries it has no answer, and an answer among so many first results."""

    system: str
    none: Share
    within: Mapping[int, Share]


class Overlap(NamedTuple):
    """Two systems: how many queries both, only one, or neither answers; p of McNemar's exact test."""

    first: str
    second: str
    both: int
    only_first: int
    only_second: int
    neither: int
    p: float

    @property
    def jaccard(self) -> float | None:
        """Queries that both answer, of those that one of them answers."""
        union = self.both + self.only_first + self.only_second
        return self.both / union if union else None


@dataclass(frozen=True, eq=False)
class Corpus:
    """The answers found in one corpus.

    Attributes:
        name: of the corpus, may be empty.
        systems: their names.
        queries: ids.
        ranks: rank of the first answer, shape (systems, queries), 0 where there is none.
        cutoffs: the largest first.
        confidence: of all intervals.
    """

    name: str
    systems: tuple[str, ...]
    queries: tuple[str, ...]
    ranks: NDArray[np.int64]
    cutoffs: tuple[int, ...]
    confidence: float

    @cached_property
    def answered(self) -> NDArray[np.bool_]:
        """Whether a system has an answer within the largest cutoff, shape (systems, queries)."""
        return (self.ranks > 0) & (self.ranks <= self.cutoffs[0])

    @cached_property
    def shares(self) -> tuple[SystemShares, ...]:
        """By system; with several systems, the last one is any of them."""
        rows = [(name, self.ranks[place]) for place, name in enumerate(self.systems)]
        if len(self.systems) > 1:
            far = np.iinfo(np.int64).max
            best = np.where(self.ranks > 0, self.ranks, far).min(axis=0)
            rows.append((_ANY, np.where(best == far, 0, best)))
        return tuple(self._shares(name, ranks) for name, ranks in rows)

    @property
    def unanswerable(self) -> Share:
        """Queries that no system answers."""
        return share_of(int((~self.answered.any(axis=0)).sum()), len(self.queries), self.confidence)

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Every pair of systems."""
        return tuple(self._overlap(a, b) for a, b in itertools.combinations(range(len(self.systems)), 2))

    @property
    def by_count(self) -> tuple[int, ...]:
        """How many queries are answered by 0, 1, … all of the systems."""
        counts = np.bincount(self.answered.sum(axis=0), minlength=len(self.systems) + 1)
        return tuple(counts.tolist())

    def _shares(self, name: str, ranks: NDArray[np.int64]) -> SystemShares:
        total, found = len(self.queries), ranks > 0
        within = {
            cutoff: share_of(int((found & (ranks <= cutoff)).sum()), total, self.confidence) for cutoff in self.cutoffs
        }
        return SystemShares(name, share_of(total - within[self.cutoffs[0]].found, total, self.confidence), within)

    def _overlap(self, a: int, b: int) -> Overlap:
        first, second = self.answered[a], self.answered[b]
        only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
        differ = only_first + only_second
        p = min(1.0, 2 * float(bdtr(min(only_first, only_second), differ, 0.5))) if differ else 1.0
        both, neither = int((first & second).sum()), int((~first & ~second).sum())
        return Overlap(self.systems[a], self.systems[b], both, only_first, only_second, neither, p)


@dataclass(frozen=True, eq=False)
class Answerable:
    """The result of `survivorship.answerable`.

    Attributes:
        first: the first answer of each system for each query, columns as in `judged.FIRST_SCHEMA`; None
            where only reasons were given.
        options: the choices.
        notes: what was left out.
        reasons: why queries were left without an answer, the paper's Table 1.
        inputs: for the manifest.
    """

    first: pl.DataFrame | None
    options: AnswerableOptions
    notes: tuple[str, ...] = ()
    reasons: LabelTables | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def corpora(self) -> tuple[Corpus, ...]:
        """The answers by corpus."""
        found: list[Corpus] = []
        if self.first is None:
            return ()
        for (name,), part in self.first.group_by("corpus", maintain_order=True):
            queries = part["query_id"].unique(maintain_order=True)
            systems = part["system"].unique(maintain_order=True)
            places = pl.DataFrame({"query_id": queries}).with_row_index("place")
            ranks = np.zeros((len(systems), len(queries)), np.int64)
            for row, system in enumerate(systems):
                own = part.filter((pl.col("system") == system) & pl.col("rank").is_not_null())
                at = own.join(places, on="query_id", maintain_order="left")
                ranks[row, at["place"].to_numpy()] = at["rank"].to_numpy()
            cutoffs, confidence = self.options.cutoffs, self.options.confidence
            found.append(Corpus(str(name), tuple(systems), tuple(queries), ranks, cutoffs, confidence))
        return tuple(found)

    @property
    def anywhere(self) -> Share | None:
        """Queries that some system answers in some corpus, of those judged in every corpus; None for one corpus."""
        if len(self.corpora) < 2:
            return None
        shared = set(self.corpora[0].queries).intersection(*(corpus.queries for corpus in self.corpora[1:]))
        answered = {
            query
            for corpus in self.corpora
            for query, found in zip(corpus.queries, corpus.answered.max(axis=0, initial=False).tolist(), strict=True)
            if found
        }
        return share_of(len(answered & shared), len(shared), self.options.confidence)

    def table(self, corpus: Corpus | None = None) -> Table:
        """Queries with and without an answer by system, the paper's Table 2."""
        corpus = corpus or self.corpora[0]
        columns = [Column("")]
        for one in corpus.shares:
            columns += [Column("n", (one.system,), "right", ",d"), Column("share", (one.system,), "right", ".0%")]
        rows: list[tuple[Cell, ...]] = []
        cells = [cell for one in corpus.shares for cell in (one.none.found, one.none.value)]
        rows.append(("no answer present", *cells))
        for cutoff in corpus.cutoffs:
            cells = [cell for one in corpus.shares for cell in (one.within[cutoff].found, one.within[cutoff].value)]
            rows.append((f"answer in top {cutoff}", *cells))
        title = f"{_of(corpus)}discarded queries that rankers answer, n = {len(corpus.queries):,}"
        return Table(title, tuple(columns), tuple(rows), tuple(self._notes(corpus)))

    def interval_table(self, corpus: Corpus | None = None) -> Table:
        """The same shares with their intervals."""
        corpus = corpus or self.corpora[0]
        columns = (
            Column("system"),
            Column("answer"),
            Column("n", align="right", format=",d"),
            Column("share", align="right", format=".1%"),
            Column("low", align="right", format=".1%"),
            Column("high", align="right", format=".1%"),
        )
        rows: list[tuple[Cell, ...]] = []
        rules = []
        for one in corpus.shares:
            rules.append(len(rows))
            named = [("none", one.none), *((f"top {cutoff}", share) for cutoff, share in one.within.items())]
            rows += [(one.system, name, share.found, share.value, share.low, share.high) for name, share in named]
        note = f"{self.options.confidence:.0%} intervals are Wilson's; they hold for a random sample of queries."
        return Table(f"{_of(corpus)}shares with intervals", columns, tuple(rows), (note,), tuple(rules[1:]))

    def overlap_table(self, corpus: Corpus | None = None) -> Table:
        """What every two systems have in common."""
        corpus = corpus or self.corpora[0]
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        columns = (
            Column("first"),
            Column("second"),
            Column("both", **number),
            Column("only first", **number),
            Column("only second", **number),
            Column("neither", **number),
            Column("Jaccard", align="right", format=".2f"),
            Column("p", align="right", format=".3g"),
        )
        rows = tuple((*one[:6], one.jaccard, one.p) for one in corpus.overlaps)
        counted = ", ".join(f"{many} by {n}" for n, many in enumerate(corpus.by_count))
        notes = (f"Queries by how many systems answer them: {counted}.", "p: McNemar's exact test, not corrected.")
        return Table(f"{_of(corpus)}queries answered by two systems", columns, rows, notes)

    def tables(self) -> dict[str, Table]:
        """Every table by the name of its files."""
        found: dict[str, Table] = {}
        for corpus in self.corpora:
            end = f"-{corpus.name.replace('/', '-')}" if len(self.corpora) > 1 else ""
            found[f"answerable{end}"] = self.table(corpus)
            found[f"intervals{end}"] = self.interval_table(corpus)
            if corpus.overlaps:
                found[f"overlap{end}"] = self.overlap_table(corpus)
        if self.reasons is not None:
            found |= {f"reasons-{name}": table for name, table in self.reasons.parts.items()}
        return found

    def text(self) -> str:
        """The tables for a terminal."""
        return "\n".join(table.text(120) for table in self.tables().values())

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        anywhere = self.anywhere
        return {
            "options": self.options.json(),
            "corpora": {corpus.name: _corpus_json(corpus) for corpus in self.corpora},
            "answerable_anywhere": None if anywhere is None else anywhere.json(),
            "reasons": None if self.reasons is None else self.reasons.json(),
            "notes": list(self.notes),
        }

    def save(self, folder: str | Path) -> Path:
        """Writes tables, the first answers, figures, report, summary and manifest.

        Args:
            folder: made if it does not exist.

        Raises:
            InputError: it cannot be written to.
        """
        artifacts = Artifacts(folder)
        write_tables(artifacts, self.tables())
        if self.first is not None:
            artifacts.text("first_answers.tsv", self.first.write_csv(separator="\t", null_value="NA"))
        write_page(artifacts, answerable_draft(self))
        artifacts.json("summary.json", self.json())
        artifacts.manifest(self.provenance())
        return artifacts.folder

    def provenance(self) -> dict[str, Any]:
        """Inputs with hashes, options and versions."""
        return provenance("answerable", self.inputs, self.options.json())

    def _notes(self, corpus: Corpus) -> Iterator[str]:
        lost = corpus.unanswerable
        yield (
            f"{lost.found:,} of {lost.total:,} queries ({lost.value:.1%}, {lost.low:.1%} to {lost.high:.1%}) are "
            "answered by none of the systems: an upper bound, since other systems may find more."
        )
        if (anywhere := self.anywhere) is not None:
            yield f"Answered in one of the corpora: {anywhere.found:,} of {anywhere.total:,} ({anywhere.value:.1%})."
        yield from self.notes


def _of(corpus: Corpus) -> str:
    return f"{corpus.name}: " if corpus.name else ""


def _corpus_json(corpus: Corpus) -> dict[str, Any]:
    return {
        "queries": len(corpus.queries),
        "systems": {
            one.system: {
                "none": one.none.json(),
                "within": {str(cutoff): share.json() for cutoff, share in one.within.items()},
            }
            for one in corpus.shares
        },
        "unanswerable": corpus.unanswerable.json(),
        "answered_by": list(corpus.by_count),
        "overlaps": [one._asdict() | {"jaccard": one.jaccard} for one in corpus.overlaps],
    }
