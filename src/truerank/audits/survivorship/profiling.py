"""`truerank survivorship profile`: what was discarded, by split, kind of query, rank of the selection, and depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from truerank.audits.survivorship.extrapolating import DepthCurve, depth_curve
from truerank.audits.survivorship.kinds import Kinds, independence
from truerank.audits.survivorship.queries import (
    NamedSources,
    Survival,
    input_of_log,
    left_out,
    named_source,
    named_sources,
    read_ids,
    read_kinds,
)
from truerank.errors import InputError, OptionError
from truerank.measures.magnitudes import Proportion, proportion
from truerank.options import Flag, Options, Out, Range, Resampling, command
from truerank.records import Input
from truerank.reports.results import Result
from truerank.sources.annotation_logs import Annotation, AnnotationLog, LogCounts, open_annotations
from truerank.sources.grammar import SourceSpec
from truerank.sources.inputs import input_of
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: The labelling that a log brings along.
QUERY_TYPE: Final = "query type"
_STEP: Final = 1 << 10
_NamedList = Annotated[NamedSources, Flag(metavar="[NAME=]SRC", reads=list[str])]


@dataclass(frozen=True)
class ProfileOptions(Options):
    """What counts as discarded, and how far the depths go.

    Attributes:
        survival: what makes a query of a log survive: selected (a shown document was selected, as for MS MARCO's
            rankings) or answered (somebody wrote an answer).
        extrapolate_to: the last depth; by default twice the depth that most queries were shown, 0 for none.
    """

    survival: Survival = "selected"
    extrapolate_to: Annotated[int | None, Range(at_least=0, at_most=1000)] = None


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
    discarded: Proportion
    ranks: tuple[RankCount, ...] = ()
    curve: DepthCurve | None = None
    counts: LogCounts = field(default_factory=LogCounts)

    def json(self) -> dict[str, Any]:
        """All figures by name."""
        return {
            "split": self.name,
            "queries": self.discarded.n,
            "survived": self.discarded.n - self.discarded.k,
            "discarded": self.discarded.json(),
            "ranks": [one._asdict() for one in self.ranks],
            "depths": None if self.curve is None else self.curve.json(),
            "log": self.counts.json() if self.counts.read else None,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Result, shown_in="truerank.audits.survivorship.profile_report"):
    """Which queries were discarded.

    Attributes:
        options: what counts as discarded.
        resampling: confidence of all intervals, and the draws of the extrapolation.
        splits: in the order given, logs before lists.
        kinds: by split and labelling.
        out: the folder that it was written to.
    """

    options: ProfileOptions
    resampling: Resampling
    splits: tuple[Split, ...]
    kinds: tuple[Kinds, ...]
    out: Path | None = None

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "rule": self.options.survival,
            "splits": [split.json() for split in self.splits],
            "kinds": [kinds.json() for kinds in self.kinds],
        }


@command
def profile(
    log: _NamedList = (),
    *,
    survived: _NamedList = (),
    discarded: _NamedList = (),
    kinds: _NamedList = (),
    options: ProfileOptions = ProfileOptions(),
    resampling: Resampling = Resampling(resamples=2000),
    out: Out = None,
    progress: Progress | None = None,
) -> Profile:
    """Describes which queries were discarded because nobody found an answer among the documents shown.

    Discarded share of each split; by query type and any other labelling, with a test of independence and the kinds that
    are over- or under-represented among the survivors, Bonferroni-corrected at 1 − confidence; the rank at which
    selected documents stood; the discarded share at each depth, and, marked as such, extrapolated beyond. Without a
    log, lists of ids give the shares and the kinds.

    Args:
        log: annotation logs, one for each split: MS MARCO QnA, JSONL, CSV or TSV, irds:msmarco-qna/dev; repeat the
            option for several. In Python also sources by name.
        survived: ids of queries that survived, in place of a log.
        discarded: ids of those that did not, as many lists, in the same order or under the same names.
        kinds: kinds of queries: id TAB label, or a table.
        options: what counts as discarded, and how far the depths go.
        resampling: draws of the extrapolation's uncertainty, and the confidence of all intervals.
        out: a folder for page, tables, figures and manifest.
        progress: is told about the work.

    Returns:
        Shares, kinds, ranks and depths by split.

    Raises:
        InputError: a fault in a file, with its line; lists without their counterpart; nothing to look at.

    Examples:

        truerank survivorship profile --log dev=dev_v2.1.json.gz --kinds category=categories.tsv --out profile/

        truerank survivorship profile --survived dev=survived.txt --discarded dev=discarded.txt --kinds kinds.tsv

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), sections 2 and 3.
    """
    labelled = named_sources(kinds, "kinds")
    labellings = {name: read_kinds(spec) for name, spec in labelled.items()}
    logs, pairs = named_sources(log, "log"), _paired(survived, discarded)
    if not logs and not pairs:
        raise InputError(
            "nothing to look at", "give `log`, or `survived` and `discarded`", where="survivorship profile"
        )
    if twice := sorted(logs.keys() & pairs.keys()):
        raise OptionError("log", f"two splits are called '{twice[0]}'", "name them: NAME=FILE")
    splits, found, inputs = _splits(logs, pairs, _Counting(labellings, options, resampling), progress or Quiet())
    inputs += [input_of("kinds", spec, name) for name, spec in labelled.items()]
    result = Profile(options, resampling, tuple(splits), tuple(found), None if out is None else Path(out))
    if out is not None:
        chosen = {"options": options, "resampling": resampling}
        with started("survivorship profile", inputs, chosen, out, packages=("scipy", "matplotlib")) as job:
            job.skipped = {split.name: counts for split in splits if (counts := left_out(split.counts))}
            publish(result, job)
    return result


def _splits(
    logs: Mapping[str, SourceSpec],
    pairs: Mapping[str, tuple[SourceSpec, SourceSpec]],
    counting: _Counting,
    told: Progress,
) -> tuple[list[Split], list[Kinds], list[Input]]:
    """What is in logs and in pairs of lists, and what the manifest says of them."""
    splits: list[Split] = []
    found: list[Kinds] = []
    inputs: list[Input] = []
    for name, spec in logs.items():
        opened = open_annotations(spec)
        tally = _counted(name, opened, counting, told)
        splits.append(tally.split(name, opened))
        found += tally.kinds(name)
        inputs.append(input_of_log(name, opened))
    for name, (kept, lost) in pairs.items():
        split, several = _of_lists(name, kept, lost, counting)
        splits.append(split)
        found += several
        inputs += [input_of("survived", kept, name), input_of("discarded", lost, name)]
    return splits, found, inputs


class _Counting(NamedTuple):
    """What is counted how: kinds by labelling and query, what survives, the confidence."""

    labellings: Mapping[str, Mapping[str, str]]
    options: ProfileOptions
    resampling: Resampling


def _counted(name: str, log: AnnotationLog, counting: _Counting, told: Progress) -> _Tally:
    told.start(f"queries of {name}")
    tally = _Tally(counting)
    for number, one in enumerate(log, start=1):
        tally.add(one)
        if number % _STEP == 0:
            told.advance(_STEP)
    return tally


class _Tally:
    """Counts over one log, a few bytes for each query."""

    def __init__(self, counting: _Counting) -> None:
        self._counting = counting
        self._by_kind: dict[str, Counter[tuple[str, bool]]] = {QUERY_TYPE: Counter()}
        self._by_kind |= {name: Counter() for name in counting.labellings}
        self._firsts = Counter[tuple[int, int]]()
        self._selected = Counter[int]()
        self._discarded = self._total = 0

    def add(self, one: Annotation) -> None:
        """Counts a query."""
        positions = one.positions
        survived = bool(positions) if self._counting.options.survival == "selected" else bool(one.answers)
        self._total += 1
        self._discarded += not survived
        self._firsts[positions[0] if positions else -1, len(one.shown)] += 1
        self._selected.update(positions)
        self._by_kind[QUERY_TYPE][one.query_type, survived] += 1
        for name, labels in self._counting.labellings.items():
            self._by_kind[name][labels.get(one.query_id, ""), survived] += 1

    def split(self, name: str, log: AnnotationLog) -> Split:
        """What was counted, under a name."""
        resampling = self._counting.resampling
        pairs = np.array(list(self._firsts), np.int64).reshape(-1, 2)
        times = np.fromiter(self._firsts.values(), np.int64, len(pairs))
        first, shown = (np.repeat(pairs[:, column], times) for column in (0, 1))
        curve = depth_curve(
            first,
            shown,
            to=self._counting.options.extrapolate_to,
            confidence=resampling.confidence,
            resamples=resampling.resamples,
            seed=resampling.seed,
        )
        firsts = Counter(first.tolist())
        ranks = tuple(
            RankCount(point.depth, point.reached, firsts[point.depth - 1], self._selected[point.depth - 1])
            for point in curve.points
        )
        discarded = proportion(self._discarded, self._total, confidence=resampling.confidence)
        return Split(name, discarded, ranks, curve, log.counts)

    def kinds(self, split: str) -> list[Kinds]:
        """The discarded queries by each labelling that has any of them."""
        return [
            _kinds(counts, labelling, split, self._counting.resampling)
            for labelling, counts in self._by_kind.items()
            if any(kind for kind, _ in counts)
        ]


def _kinds(counts: Counter[tuple[str, bool]], labelling: str, split: str, resampling: Resampling) -> Kinds:
    names = {kind for kind, _ in counts if kind}
    return independence(
        {kind: (counts[kind, True] + counts[kind, False], counts[kind, False]) for kind in names},
        labelling=labelling,
        split=split,
        unlabelled=counts["", True] + counts["", False],
        confidence=resampling.confidence,
        alpha=round(1 - resampling.confidence, 12),
    )


def _paired(survived: NamedSources, discarded: NamedSources) -> dict[str, tuple[SourceSpec, SourceSpec]]:
    """The two lists of each split: by their names where both sides have the same ones, else in order."""
    kept, lost = _lists(survived, "survived"), _lists(discarded, "discarded")
    if len(kept) != len(lost):
        fault = f"{len(kept)} lists of survivors and {len(lost)} of discarded queries"
        raise OptionError("discarded", fault, "give one of each for every split")
    by_name = dict(lost)
    same = by_name.keys() == {name for name, _ in kept}
    pairs: dict[str, tuple[SourceSpec, SourceSpec]] = {}
    for (name, spec), (_, other) in zip(kept, lost, strict=True):
        if name in pairs:
            raise OptionError("survived", f"two splits are called '{name}'", "name them: NAME=FILE")
        pairs[name] = (spec, by_name[name] if same else other)
    return pairs


def _lists(given: NamedSources, option: str) -> list[tuple[str, SourceSpec]]:
    """Lists of ids by the name given, or by the part of the file's name before its first dot."""
    if isinstance(given, Mapping):
        return list(named_sources(given, option).items())
    pairs = [named_source(one) for one in ([given] if isinstance(given, str | Path) else given)]
    return [(name if name != spec.name else name.partition(".")[0] or name, spec) for name, spec in pairs]


def _of_lists(name: str, kept: SourceSpec, lost: SourceSpec, counting: _Counting) -> tuple[Split, list[Kinds]]:
    survived, discarded = read_ids(kept), read_ids(lost)
    both = set(survived).intersection(discarded)
    if both:
        raise InputError(
            f"{len(both):,} queries stand in both lists, '{min(both)}' among them", "correct the lists", where=lost.path
        )
    confidence = counting.resampling.confidence
    split = Split(name, proportion(len(discarded), len(survived) + len(discarded), confidence=confidence))
    kinds = []
    for labelling, labels in counting.labellings.items():
        counts = Counter((labels.get(one, ""), True) for one in survived)
        counts.update((labels.get(one, ""), False) for one in discarded)
        if any(kind for kind, _ in counts):
            kinds.append(_kinds(counts, labelling, name, counting.resampling))
    return split, kinds
