"""What was discarded: the share of each split, by kind of query, by the rank of what was selected, and by depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from truerank.audits.survivorship.extrapolating import DepthCurve, depth_curve
from truerank.audits.survivorship.kinds import Kinds, independence
from truerank.audits.survivorship.options import ProfileOptions
from truerank.audits.survivorship.page import write_page
from truerank.audits.survivorship.query_labels import read_ids, read_labels_by_id
from truerank.audits.survivorship.report import profile_draft
from truerank.audits.survivorship.results import (
    Share,
    fault_notes,
    file_input,
    log_input,
    named_source,
    provenance,
    share_of,
)
from truerank.errors import InputError
from truerank.reports.tables import Column, Table
from truerank.sources.annotation_logs import Annotation, AnnotationLog, LogCounts, open_annotations
from truerank.sources.grammar import SourceSpec
from truerank.work.artifacts import Artifacts
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import write_tables

__all__ = ["Profile", "RankCount", "Split", "profile"]

#: The labelling that a log brings along.
QUERY_TYPE: Final = "query type"
_DEFAULTS: Final = ProfileOptions()
_STEP: Final = 1 << 10


class RankCount(NamedTuple):
    """One position, from 1: queries that were shown so many, queries whose first selected one stood there, and all
    selected ones that did."""

    position: int
    reached: int
    first: int
    selected: int


@dataclass(frozen=True)
class Split:
    """One split of a data set.

    Attributes:
        name: the split.
        discarded: of its queries.
        ranks: where selected documents stood; empty for lists of ids.
        curve: discarded share by depth; None for lists of ids.
        counts: what was read of a log.
    """

    name: str
    discarded: Share
    ranks: tuple[RankCount, ...] = ()
    curve: DepthCurve | None = None
    counts: LogCounts = field(default_factory=LogCounts)

    def json(self) -> dict[str, Any]:
        """All figures by name."""
        return {
            "split": self.name,
            "queries": self.discarded.total,
            "survived": self.discarded.total - self.discarded.found,
            "discarded": self.discarded.json(),
            "ranks": [one._asdict() for one in self.ranks],
            "depths": None if self.curve is None else self.curve.json(),
            "log": self.counts.json() if self.counts.read else None,
        }


@dataclass(frozen=True, eq=False)
class Profile:
    """The result of `survivorship.profile`.

    Attributes:
        options: the choices.
        splits: in the order given, logs before lists.
        kinds: by split and labelling.
        inputs: for the manifest.
    """

    options: ProfileOptions
    splits: tuple[Split, ...]
    kinds: tuple[Kinds, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> Table:
        """The discarded share of each split."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        share: dict[str, Any] = {"align": "right", "format": ".1%"}
        columns = (
            Column("split"),
            Column("queries", **number),
            Column("survived", **number),
            Column("discarded", **number),
            Column("share", **share),
            Column("low", **share),
            Column("high", **share),
        )
        rows = tuple(
            (one.name, d.total, d.total - d.found, d.found, d.value, d.low, d.high)
            for one in self.splits
            for d in (one.discarded,)
        )
        rule = "no shown document was selected" if self.options.rule == "selected" else "nobody wrote an answer"
        notes = [f"Discarded: {rule}. Intervals: Wilson's, {self.options.confidence:.0%}."]
        notes += [f"{one.name}: {note}" for one in self.splits for note in fault_notes(one.counts)]
        return Table("Discarded queries", columns, rows, tuple(notes))

    def rank_table(self, split: Split) -> Table:
        """Where the selected documents of a split stood."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        columns = (
            Column("rank", align="right"),
            Column("shown so many", **number),
            Column("first selected", **number),
            Column("share", align="right", format=".1%"),
            Column("selected", **number),
        )
        survivors = sum(one.first for one in split.ranks)
        rows = tuple(
            (str(one.position), one.reached, one.first, one.first / survivors if survivors else None, one.selected)
            for one in split.ranks
        )
        return Table(f"{split.name}: rank of the selected documents", columns, rows)

    def depth_table(self, split: Split) -> Table:
        """The discarded share of a split by depth; what is extrapolated says so."""
        share: dict[str, Any] = {"align": "right", "format": ".1%"}
        columns = (
            Column("depth", align="right"),
            Column("how"),
            Column("discarded", **share),
            Column("low", **share),
            Column("high", **share),
            Column("if all were shown so many", **share),
        )
        curve = split.curve
        rows: list[tuple[Any, ...]] = []
        notes = ["Cut at depth k: a query is discarded unless one of the first k shown was selected."]
        if curve is not None:
            rows += [
                (str(p.depth), "cut", p.discarded.value, p.discarded.low, p.discarded.high, p.adjusted)
                for p in curve.points
            ]
            rows += [(str(f.depth), "EXTRAPOLATED", f.share, f.low, f.high, None) for f in curve.beyond]
            notes.append(_trend(curve))
        return Table(f"{split.name}: discarded share by depth", columns, tuple(rows), tuple(notes), rules=_rule(curve))

    def tables(self) -> Iterator[tuple[str, Table]]:
        """All tables by file name, in reading order."""
        yield "splits", self.table()
        for number, kinds in enumerate(self.kinds, start=1):
            yield f"kinds-{number}", kinds.table()
        for number, split in enumerate(self.splits, start=1):
            if split.ranks:
                yield f"ranks-{number}", self.rank_table(split)
                yield f"depths-{number}", self.depth_table(split)

    def text(self) -> str:
        """The tables for a terminal."""
        return "\n".join(table.text(120) for _, table in self.tables())

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "rule": self.options.rule,
            "splits": [split.json() for split in self.splits],
            "kinds": [kinds.json() for kinds in self.kinds],
        }

    def save(self, folder: str | Path) -> Path:
        """Writes `report.html`, `summary.json`, `manifest.json`, `tables/` and `figures/` (SVG, PDF).

        Args:
            folder: made if it does not exist.

        Returns:
            The folder.

        Raises:
            InputError: it cannot be written to.
        """
        artifacts = Artifacts(folder)
        write_tables(artifacts, dict(self.tables()))
        write_page(artifacts, profile_draft(self))
        artifacts.json("summary.json", self.json())
        artifacts.manifest(self.provenance())
        return artifacts.folder

    def provenance(self) -> dict[str, Any]:
        """Inputs with hashes, options and versions."""
        return provenance("profile", self.inputs, self.options.json())


def profile(
    out: str | Path | None = None,
    *,
    logs: Sequence[str] = (),
    survived: Sequence[str] = (),
    discarded: Sequence[str] = (),
    labels: Sequence[str] = (),
    options: ProfileOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> Profile:
    """Describes which queries annotation discarded.

    Args:
        out: the folder to write; None to write nothing.
        logs: annotation logs, `[NAME=]SRC`, one for each split; see `open_annotations`.
        survived: lists of the ids of queries that survived, `[NAME=]SRC`, where there is no log.
        discarded: as many lists of those that did not, in the same order or under the same names.
        labels: kinds of the queries, `[NAME=]SRC`; see `read_labels_by_id`.
        options: all other choices.
        progress: told about the work.

    Returns:
        The profile.

    Raises:
        InputError: a fault in a file, with its line; lists without their counterpart; nothing to look at.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), sections 2 and 3.
    """
    labellings = {name: read_labels_by_id(spec) for name, spec in map(named_source, labels)}
    pairs = _paired(survived, discarded)
    if not logs and not pairs:
        raise InputError("nothing to look at", "give --log, or --survived and --discarded", where="profile")
    names = [named_source(given)[0] for given in logs] + list(pairs)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two splits are called '{twice}'", "name them: NAME=FILE", where="--log")
    shown = progress or Quiet()
    splits: list[Split] = []
    kinds: list[Kinds] = []
    inputs: dict[str, Any] = {"logs": [], "labels": [file_input(_source(one)) for one in labels]}
    for given in logs:
        name, spec = named_source(given)
        log = open_annotations(spec)
        shown.start(f"queries of {name}")
        tally = _Tally(labellings, options)
        for number, one in enumerate(log, start=1):
            tally.add(one)
            if number % _STEP == 0:
                shown.advance(_STEP)
        splits.append(tally.split(name, log))
        kinds += tally.kinds(name)
        inputs["logs"].append({"name": name, **log_input(log)})
    for name, (kept, lost) in pairs.items():
        split, found = _of_lists(name, kept, lost, labellings, options)
        splits.append(split)
        kinds += found
    inputs["lists"] = [file_input(spec.spec) for pair in pairs.values() for spec in pair]
    result = Profile(options, tuple(splits), tuple(kinds), inputs)
    if out is not None:
        result.save(out)
    return result


class _Tally:
    """Counts over one log, a few bytes for each query."""

    def __init__(self, labellings: Mapping[str, Mapping[str, str]], options: ProfileOptions) -> None:
        self._labellings = labellings
        self._options = options
        self._by_kind: dict[str, Counter[tuple[str, bool]]] = {QUERY_TYPE: Counter()}
        self._by_kind |= {name: Counter() for name in labellings}
        self._firsts = Counter[tuple[int, int]]()
        self._selected = Counter[int]()
        self._discarded = self._total = 0

    def add(self, one: Annotation) -> None:
        """Counts a query."""
        positions = one.positions
        survived = bool(positions) if self._options.rule == "selected" else bool(one.answers)
        self._total += 1
        self._discarded += not survived
        self._firsts[positions[0] if positions else -1, len(one.shown)] += 1
        self._selected.update(positions)
        self._by_kind[QUERY_TYPE][one.query_type, survived] += 1
        for name, labels in self._labellings.items():
            self._by_kind[name][labels.get(one.query_id, ""), survived] += 1

    def split(self, name: str, log: AnnotationLog) -> Split:
        """What was counted, under a name."""
        options = self._options
        pairs = np.array(list(self._firsts), np.int64).reshape(-1, 2)
        times = np.fromiter(self._firsts.values(), np.int64, len(pairs))
        first, shown = (np.repeat(pairs[:, column], times) for column in (0, 1))
        curve = depth_curve(
            first,
            shown,
            to=options.extrapolate_to,
            confidence=options.confidence,
            draws=options.draws,
            seed=options.seed,
        )
        firsts = Counter(first.tolist())
        ranks = tuple(
            RankCount(point.depth, point.reached, firsts[point.depth - 1], self._selected[point.depth - 1])
            for point in curve.points
        )
        discarded = share_of(self._discarded, self._total, options.confidence)
        return Split(name, discarded, ranks, curve, log.counts)

    def kinds(self, split: str) -> list[Kinds]:
        return [
            _kinds(counts, labelling, split, self._options)
            for labelling, counts in self._by_kind.items()
            if any(kind for kind, _ in counts)
        ]


def _kinds(counts: Counter[tuple[str, bool]], labelling: str, split: str, options: ProfileOptions) -> Kinds:
    names = {kind for kind, _ in counts if kind}
    return independence(
        {kind: (counts[kind, True] + counts[kind, False], counts[kind, False]) for kind in names},
        labelling=labelling,
        split=split,
        unlabelled=counts["", True] + counts["", False],
        confidence=options.confidence,
        alpha=options.alpha,
    )


def _paired(survived: Sequence[str], discarded: Sequence[str]) -> dict[str, tuple[SourceSpec, SourceSpec]]:
    """The two lists of each split: by their names where both sides have the same ones, else in order."""
    if len(survived) != len(discarded):
        fault = f"{len(survived)} lists of survivors and {len(discarded)} of discarded queries"
        raise InputError(fault, "give one of each for every split", where="--discarded")
    kept, lost = ([(_short(one), named_source(one)[1]) for one in given] for given in (survived, discarded))
    by_name = dict(lost)
    pairs: dict[str, tuple[SourceSpec, SourceSpec]] = {}
    same = len(by_name) == len(lost) and set(by_name) == {name for name, _ in kept}
    for (name, spec), (_, other) in zip(kept, lost, strict=True):
        if name in pairs:
            raise InputError(f"two splits are called '{name}'", "name them: NAME=FILE", where="--survived")
        pairs[name] = (spec, by_name[name] if same else other)
    return pairs


def _short(given: str) -> str:
    """The name given, or the part of the file's name before its first dot."""
    name, spec = named_source(given)
    return name.partition(".")[0] or name if name == spec.name else name


def _source(given: str) -> str:
    return named_source(given)[1].spec


def _of_lists(
    name: str,
    kept: SourceSpec,
    lost: SourceSpec,
    labellings: Mapping[str, Mapping[str, str]],
    options: ProfileOptions,
) -> tuple[Split, list[Kinds]]:
    survived, discarded = read_ids(kept), read_ids(lost)
    both = set(survived).intersection(discarded)
    if both:
        raise InputError(
            f"{len(both):,} queries stand in both lists, '{min(both)}' among them", "correct the lists", where=lost.path
        )
    split = Split(name, share_of(len(discarded), len(survived) + len(discarded), options.confidence))
    kinds = []
    for labelling, labels in labellings.items():
        counts = Counter((labels.get(one, ""), True) for one in survived)
        counts.update((labels.get(one, ""), False) for one in discarded)
        if any(kind for kind, _ in counts):
            kinds.append(_kinds(counts, labelling, name, options))
    return split, kinds


def _rule(curve: DepthCurve | None) -> tuple[int, ...]:
    return (len(curve.points),) if curve is not None and curve.beyond else ()


def _trend(curve: DepthCurve) -> str:
    if not curve.beyond:
        return f"No extrapolation. {curve.why_not}"
    shapes = "; ".join(f"{name} {values[-1]:.1%}" for name, values in curve.shapes.items())
    return (
        f"EXTRAPOLATED rows are no measurement: they carry on the chance of a selection at depths 1 to {curve.shown} "
        f"in three ways (at depth {curve.beyond[-1].depth}: {shapes}). The interval spans all three; it holds only if "
        "annotators had gone on as they did, and says nothing about other rankings."
    )
