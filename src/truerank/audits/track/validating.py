"""Are these runs fit to be submitted? Every fault with its line, without stopping at the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from truerank.audits.track.allowed import Allowed, read_allowed
from truerank.audits.track.checking import Limits, RunChecker
from truerank.audits.track.faults import Fault, Ledger, Level, levels_of
from truerank.audits.track.grouping import ScatteredError, grouped_topics, scattered_topics
from truerank.audits.track.scanning import run_path
from truerank.errors import InputError
from truerank.reports.tables import Column, Table
from truerank.sources import compressed, parse, unique_names
from truerank.work.progress import Progress, Quiet

__all__ = ["FailOn", "RunCheck", "Validation", "validate"]

FailOn = Literal["error", "warning", "never"]

_CAP: Final = 20


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


class _Totals(NamedTuple):
    errors: int
    warnings: int


@dataclass(frozen=True)
class Validation:
    """What `validate` found.

    Attributes:
        runs: in the order given.
        levels: the level of each kind of fault.
        limits: what the runs had to keep to.
        checked: the lists that the runs were checked against, by option ("topics", "candidates", …).
    """

    runs: tuple[RunCheck, ...]
    levels: Mapping[str, Level]
    limits: Limits
    checked: Mapping[str, str]

    @property
    def errors(self) -> int:
        """Errors in all runs, also those that are counted only."""
        return sum(self._totals(run).errors for run in self.runs)

    @property
    def warnings(self) -> int:
        """Warnings in all runs, also those that are counted only."""
        return sum(self._totals(run).warnings for run in self.runs)

    @property
    def valid(self) -> bool:
        """Whether no run has an error."""
        return not self.errors

    def fails(self, on: FailOn = "error") -> bool:
        """Whether there is a fault of this level or a worse one.

        Raises:
            InputError: there is no such level.
        """
        if on not in get_args(FailOn):
            raise InputError(f"no level called '{on}'", f"one of {', '.join(get_args(FailOn))}", where="--fail-on")
        return on != "never" and bool(self.errors or (on == "warning" and self.warnings))

    def require(self) -> None:
        """Raises the InputError of the first run that could not be read to its end."""
        for run in self.runs:
            if run.broken is not None:
                raise run.broken

    def table(self) -> Table:
        """One row per run."""
        columns = (
            Column("run"),
            *(Column(name, align="right", format=",d") for name in ("results", "topics", "tied")),
            Column("tag"),
            *(Column(name, align="right", format=",d") for name in ("errors", "warnings")),
            Column("verdict"),
        )
        rows = tuple(
            (run.name, run.results, run.topics, run.tied, run.tag, *self._totals(run), self._verdict(run))
            for run in self.runs
        )
        against = ", ".join(f"{what.replace('_', '-')} {name}" for what, name in self.checked.items())
        return Table(
            f"{sum(not self._totals(run).errors for run in self.runs):,d} of {len(self.runs):,d} runs are valid.",
            columns,
            rows,
            notes=(
                f"At most {self.limits.max_results:,d} results for each topic; checked against: "
                f"{against or 'no list of topics, candidates or documents'}.",
                "Tied: results with the score of the rank before (as 32-bit numbers); the evaluation orders them.",
            ),
        )

    def text(self) -> str:
        """One line for each fault, how many more there are, and the table."""
        lines: list[str] = []
        for run in self.runs:
            for kind, count in run.counts.items():
                faults = [fault for fault in run.faults if fault.kind == kind]
                lines += [fault.text() for fault in faults]
                if count > len(faults):
                    lines.append(
                        f"{run.file}: {count - len(faults):,d} more of this kind. [{self.levels[kind]} {kind}]"
                    )
        return "\n".join([*lines, *([""] if lines else []), self.table().text()])

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "valid": self.valid,
            "errors": self.errors,
            "warnings": self.warnings,
            "limits": asdict(self.limits),
            "levels": dict(self.levels),
            "checked": dict(self.checked),
            "runs": [
                {
                    "run": run.name,
                    "file": run.file,
                    "results": run.results,
                    "topics": run.topics,
                    "tied": run.tied,
                    "tag": run.tag,
                    **self._totals(run)._asdict(),
                    "counts": dict(run.counts),
                    "faults": [
                        {name: value for name, value in fault._asdict().items() if name != "file"}
                        for fault in run.faults
                    ],
                }
                for run in self.runs
            ],
        }

    def _totals(self, run: RunCheck) -> _Totals:
        errors = sum(count for kind, count in run.counts.items() if self.levels[kind] == "error")
        return _Totals(errors, sum(run.counts.values()) - errors)

    def _verdict(self, run: RunCheck) -> str:
        return "not readable" if run.broken else "valid" if not self._totals(run).errors else "not valid"


def validate(
    runs: Sequence[str | Path],
    *,
    topics: str | None = None,
    qrels: str | None = None,
    candidates: str | Path | None = None,
    docs_ids: str | Path | None = None,
    limits: Limits | None = None,
    cap: int = _CAP,
    levels: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Checks runs as a track would before it accepts them.

    A run is read once where the rows of each topic stand together, otherwise twice, the second time over temporary
    files. Memory grows with the largest topic, the number of topics, and 8 bytes for each candidate and collection id.

    Args:
        runs: TREC runs, compressed or not.
        topics: the track's topics: others are a fault, and so are topics without results.
        qrels: judgments; without `topics` their topics are the ones expected.
        candidates: what a rerank run may hold: a run, lines of topic TAB document, or JSONL.
        docs_ids: the ids of the collection, one a line.
        limits: results for each topic, and what tags look like.
        cap: how many faults of each kind and run are kept; all are counted; 0 keeps all.
        levels: kinds of faults (`faults.KINDS`) that are to count as "error", "warning" or "off".
        progress: told of the lines read.

    Returns:
        Every fault, by run.

    Raises:
        InputError: an option or list is at fault, or none of the runs can be read at all.
    """
    if not runs:
        raise InputError("no runs", "give one or more", where="--run")
    if cap < 0:
        raise InputError(f"{cap} faults", "give how many to show of each kind, 0 for all", where="--cap")
    all_levels, limits = levels_of(levels or {}), limits or Limits()
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
        result.require()
    return result


class _Work(NamedTuple):
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
