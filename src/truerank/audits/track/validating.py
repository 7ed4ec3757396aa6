"""Are these runs fit to be submitted? Every fault with its line, without stopping at the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, NamedTuple

from truerank.audits.track.checking import Allowed, Fault, Ledger, Level, Limits, RunChecker, levels_of, read_allowed
from truerank.audits.track.grouping import ScatteredError, grouped_topics, scattered_topics
from truerank.audits.track.scanning import run_path
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.options import Flag, Range, command
from truerank.sources import compressed, parse, unique_names
from truerank.work.progress import Progress, Quiet


@dataclass(frozen=True)
class RunCheck:
    """What was found in one run.

    Attributes:
        name: of the run.
        file: as it was given.
        results: lines with six columns.
        topics: topics among them.
        tag: of the first line; None without one.
        tied: results whose score, as a 32-bit number, equals that of the rank before; no fault, but their order is
            the evaluation's choice.
        counts: how many faults of each kind there are.
        faults: the first ones of each kind.
        broken: why the file could not be read (further); None where it could.
    """

    name: str
    file: str
    results: int
    topics: int
    tag: str | None
    tied: int
    counts: Mapping[str, int]
    faults: tuple[Fault, ...]
    broken: InputError | None = None


class Totals(NamedTuple):
    """How many faults there are."""

    errors: int
    warnings: int


@dataclass(frozen=True, repr=False)
class Validation(Result, shown_in="truerank.audits.track.page"):
    """What `validate` found.

    Attributes:
        runs: in the order given.
        levels: the level of each kind of fault.
        limits: what the runs had to keep to.
        checked: the lists that the runs were checked against, by option ("topics", "candidates", …).
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("error", "warning")
    fails_on: ClassVar[str] = "error"

    runs: tuple[RunCheck, ...]
    levels: Mapping[str, Level]
    limits: Limits
    checked: Mapping[str, str]

    @property
    def errors(self) -> int:
        """Errors in all runs, also those that are counted only."""
        return sum(self.totals(run).errors for run in self.runs)

    @property
    def warnings(self) -> int:
        """Warnings in all runs, also those that are counted only."""
        return sum(self.totals(run).warnings for run in self.runs)

    @property
    def valid(self) -> bool:
        """Whether no run has an error."""
        return not self.errors

    def totals(self, run: RunCheck) -> Totals:
        """Errors and warnings of one run."""
        errors = sum(count for kind, count in run.counts.items() if self.levels[kind] == "error")
        return Totals(errors, sum(run.counts.values()) - errors)


@command
def validate(
    run: Annotated[Sequence[str | Path], Flag(metavar="FILE", reads=list[str])],
    *,
    topics: Annotated[str | None, Flag(metavar="SRC")] = None,
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    candidates: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None,
    docs_ids: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None,
    cap: Annotated[int, Range(at_least=0)] = 20,
    level: Annotated[Mapping[str, str], Flag(metavar="KIND=LEVEL")] = MappingProxyType({}),
    limits: Limits = Limits(),
    progress: Progress | None = None,
) -> Validation:
    """Checks runs as a track would before it accepts them, and names every fault with its line.

    Each fault is one line, `file:line: fault. remedy. [level kind]`. Exit code: 0 if there is no error, 1 if there is
    (see --fail-on), 2 where a file cannot be read to its end. A run is read once where the rows of each topic stand
    together, otherwise twice, the second time over temporary files.

    Args:
        run: TREC runs, compressed or not; repeat the option for several.
        topics: the track's topics: others are a fault, and so are topics without results.
        qrels: judgments; without topics their topics are the ones expected.
        candidates: what a rerank run may hold: a run, lines of topic TAB document, or JSON lines.
        docs_ids: the ids of the collection, one a line.
        cap: faults shown of each kind and run; all are counted; 0 shows all.
        level: count a kind of fault as error, warning or off.
        limits: what a run has to keep to.
        progress: is told of the lines read.

    Returns:
        Every fault, by run.

    Raises:
        InputError: an option or list is at fault, or none of the runs can be read at all.

    Examples:

        truerank track validate --run mine.run --topics topics.tsv

        truerank track validate --run rerank.run.gz --candidates top100.run.gz --max-results 100 --json

        truerank track validate --run a.run --run b.run --docs-ids ids.txt.gz --level missing-topic=warning
    """
    runs = run
    if not runs:
        raise OptionError("run", "no runs", "give one or more")
    all_levels = levels_of(level)
    allowed = read_allowed(topics, qrels, candidates, docs_ids)
    names = unique_names([parse(str(run)) for run in runs])
    work = _Work(limits, allowed, all_levels, cap or None, progress or Quiet())
    checks = tuple(_checked(str(run), name, work) for run, name in zip(runs, names, strict=True))
    result = Validation(
        runs=checks,
        levels=all_levels,
        limits=limits,
        checked={
            what: str(source)
            for what, source in (
                ("topics", topics), ("qrels", qrels), ("candidates", candidates), ("docs_ids", docs_ids)
            )
            if source is not None
        },
    )  # fmt: skip
    if all(run.broken is not None and not run.results for run in checks):
        raise next(run.broken for run in checks if run.broken is not None)
    return result


class _Work(NamedTuple):
    """What the check of each run needs."""

    limits: Limits
    allowed: Allowed
    levels: Mapping[str, Level]
    cap: int | None
    progress: Progress


def _checked(run: str, name: str, work: _Work) -> RunCheck:
    work.progress.start(f"checking {name}")
    try:
        path = run_path(run)
        if not compressed.head(path).removeprefix(b"\xef\xbb\xbf").strip():
            ledger = Ledger(run, work.levels, work.cap)
            ledger.add("empty", None, "the file is empty", "write topic, Q0, document, rank, score, tag, one a line")
            return RunCheck(name, run, 0, 0, None, 0, ledger.counts(), ledger.faults())
    except InputError as error:
        ledger = Ledger(run, work.levels, work.cap)
        ledger.add("unreadable", error.line, error.fault, error.remedy)
        return RunCheck(name, run, 0, 0, None, 0, ledger.counts(), ledger.faults(), error)
    try:
        return _passed(path, run, name, work, grouped=True)
    except ScatteredError:
        return _passed(path, run, name, work, grouped=False)


def _passed(path: Path, run: str, name: str, work: _Work, *, grouped: bool) -> RunCheck:
    ledger = Ledger(run, work.levels, work.cap, ordered=grouped)
    checker = RunChecker(path, work.limits, work.allowed, ledger, work.progress)
    for frame in (grouped_topics if grouped else scattered_topics)(checker.frames()):
        checker.check_topics(frame)
    checker.finish()
    return RunCheck(
        name=name,
        file=run,
        results=checker.rows,
        topics=checker.topics,
        tag=checker.tag,
        tied=checker.tied,
        counts=ledger.counts(),
        faults=ledger.faults(),
        broken=checker.broken,
    )
