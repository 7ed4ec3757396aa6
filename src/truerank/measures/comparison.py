"""The result of a comparison as one value: its differences, tables, sentences and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.measures.grammar import lower_is_better
from truerank.measures.method import Method
from truerank.measures.policy import Policy
from truerank.measures.significance import CASES, CORRECTIONS, TESTS
from truerank.reports.tables import Cell, Column, Table
from truerank.work.artifacts import Artifacts, installed_versions

__all__ = ["Comparison", "Difference", "write_results"]

_MARK: Final = "†"
_NAMED: Final = 10


class Difference(NamedTuple):
    """One run compared with one baseline by one measure.

    Attributes:
        measure: its name.
        run: the run.
        baseline: what it is compared with.
        n: topics; those of the run and of the baseline where the test is unpaired.
        skipped: topics that were left out because one of the two was not scored on them.
        mean: of the run over these topics; None where there are none or a score is infinite.
        baseline_mean: of the baseline.
        difference: run minus baseline, in the unit of the measure.
        low: lower end of the difference's interval.
        high: upper end.
        statistic: of the test.
        freedom: degrees of freedom of a t-test.
        p: two-sided.
        p_corrected: corrected for the number of comparisons.
        significant: whether that is below the level.
        better: whether the run is the better one; None where the means are equal.
        effect: the effect size.
        wins: topics on which the run is better; None, like the next two, where the test is unpaired.
        ties: topics on which both are as good.
        losses: topics on which the run is worse.
        detectable: the smallest true difference that a t-test would find.
        how: how p was found, where there are several ways.
        case: empty, or why there is no p, see `significance.CASES`.
    """

    measure: str
    run: str
    baseline: str
    n: tuple[int, ...]
    skipped: int
    mean: float | None
    baseline_mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    statistic: float | None
    freedom: float | None
    p: float | None
    p_corrected: float | None
    significant: bool
    better: bool | None
    effect: float | None
    wins: int | None
    ties: int | None
    losses: int | None
    detectable: float | None
    how: str
    case: str


@dataclass(frozen=True)
class Comparison:
    """Runs compared with a baseline or with each other.

    Attributes:
        method: test, correction, level.
        baseline: the run or evaluation that the others are compared with; None for all pairs.
        runs: the runs that take part, baselines first.
        measures: what they are compared by.
        left_out: measures that are no means over topics.
        differences: by measure and pair.
        policies: by evaluation, how its runs were scored.
        remarks: what has to be said of single measures.
    """

    method: Method
    baseline: str | None
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    left_out: tuple[str, ...]
    differences: tuple[Difference, ...]
    policies: Mapping[str, Policy] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def of(self, run: str, measure: str, baseline: str | None = None) -> Difference:
        """One difference.

        Args:
            run: the run.
            measure: the measure.
            baseline: what the run is compared with; needed where that are several.

        Raises:
            KeyError: there is none, or there are several.
        """
        found = [
            row
            for row in self.differences
            if (row.run, row.measure) == (run, measure) and baseline in (None, row.baseline)
        ]
        if len(found) != 1:
            raise KeyError(f"{len(found)} differences of {run} by {measure}")
        return found[0]

    def table(self) -> Table:
        """One row per measure and pair."""
        several = self.baseline is None or len({row.baseline for row in self.differences}) > 1
        number: dict[str, Any] = {"align": "right", "format": ".4f"}
        difference: dict[str, Any] = {"align": "right", "format": "+.4f"}
        columns = [Column("run"), Column("measure"), *([Column("baseline")] if several else [])]
        columns += [Column("topics", align="right"), Column("run", ("mean",), **number)]
        columns += [Column("baseline", ("mean",), **number)]
        columns += [Column(title, ("difference",), **difference) for title in ("mean", "low", "high")]
        columns += [Column(title, ("p",), align="right", format=".4g") for title in ("raw", "corrected")]
        columns += [Column(_MARK, ("p",)), Column("effect", align="right", format="+.3f")]
        if self.method.paired:
            columns.append(Column("win / tie / loss", align="right"))
        columns.append(Column("detectable", **number))
        rows = tuple(self._row(row, several) for row in self.differences)
        firsts = [place for place, row in enumerate(rows) if place and rows[place - 1][1] != row[1]]
        title = "Runs compared with each other." if self.baseline is None else f"Runs compared with {self.baseline}."
        notes = (*self.sentences(), *self.method.sentences(), *self._cautions())
        return Table(title, tuple(columns), rows, notes=notes, rules=tuple(firsts))

    def score_table(self) -> Table:
        """One row per run and one column per measure, with a mark at each significant difference to the baseline."""
        means: dict[tuple[str, str], str] = {}
        for row in self.differences:
            means.setdefault((row.baseline, row.measure), _shown(row.baseline_mean))
            marked = _MARK if row.significant and self.baseline is not None else ""
            means[row.run, row.measure] = _shown(row.mean) + marked
        columns = (Column("run"), *(Column(measure, align="right") for measure in self.measures))
        rows = tuple((run, *(means.get((run, measure)) for measure in self.measures)) for run in self.runs)
        if self.baseline is None:
            return Table("Scores.", columns, rows)
        note = (
            f"{_MARK} differs from {self.baseline}: {TESTS[self.method.test]}, {self.method.corrected()}, "
            f"α = {self.method.alpha:g}."
        )
        return Table("Scores.", columns, rows, notes=(note,))

    def sentences(self) -> tuple[str, ...]:
        """What survived the correction, one sentence or two by measure."""
        return tuple(sentence for measure in self.measures for sentence in self._sentences(measure))

    def text(self) -> str:
        """The tables for a terminal."""
        return f"{self.score_table().text()}\n{self.table().text()}"

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "baseline": self.baseline,
            "runs": list(self.runs),
            "measures": list(self.measures),
            "left_out": list(self.left_out),
            "method": self.method.json(),
            "policies": {name: policy.json() for name, policy in self.policies.items()},
            "differences": [{**row._asdict(), "n": list(row.n)} for row in self.differences],
            "sentences": list(self.sentences()),
        }

    def save(self, folder: str | Path) -> Path:
        """Writes `comparison.json`, the table as `comparison.csv`, `.md` and `.tex`, and `manifest.json`.

        Args:
            folder: made if it does not exist.

        Returns:
            The folder.

        Raises:
            InputError: the folder cannot be written to.
        """
        return write_results(folder, {"comparison": (self.json(), self.table())}, {"method": self.method.json()})

    def _row(self, row: Difference, several: bool) -> tuple[Cell, ...]:
        cells: list[Cell] = [row.run, row.measure, *([row.baseline] if several else [])]
        cells += [" + ".join(f"{n:,}" for n in row.n), row.mean, row.baseline_mean]
        cells += [
            row.difference,
            row.low,
            row.high,
            row.p,
            row.p_corrected,
            _MARK if row.significant else "",
            row.effect,
        ]
        if self.method.paired:
            cells.append(f"{row.wins} / {row.ties} / {row.losses}")
        return (*cells, row.detectable)

    def _sentences(self, measure: str) -> Iterator[str]:
        rows = [row for row in self.differences if row.measure == measure]
        survivors = [row for row in rows if row.significant]
        corrected = self.method.correction != "none"
        family = self.method.family if isinstance(self.method.family, int) else len(rows)
        family = len(self.differences) if self.method.family == "all" else family
        over = f"{CORRECTIONS[self.method.correction]} over {family:,} comparison{'s' if family != 1 else ''}"
        how = f"{TESTS[self.method.test]}, {over if corrected else 'no correction'}, α = {self.method.alpha:g}"
        against = " between runs" if self.baseline is None else f" to {self.baseline}"
        if survivors:
            verb = "survives" if len(survivors) == 1 else "survive"
            named = "; ".join(self._named(row) for row in survivors[:_NAMED])
            more = f"; and {len(survivors) - _NAMED:,} more" if len(survivors) > _NAMED else ""
            yield (
                f"{measure}: {len(survivors):,} of {len(rows):,} difference{'s' if len(rows) != 1 else ''}{against} "
                f"{verb} ({how}): {named}{more}."
            )
        else:
            yield f"{measure}: no difference{against} survives, 0 of {len(rows):,} ({how}).{self._nearest(rows)}"
        raw = sum(row.p is not None and row.p < self.method.alpha for row in rows)
        if corrected and raw > len(survivors):
            yield f"{measure}: without the correction {raw:,} would."

    def _named(self, row: Difference) -> str:
        name = f"{row.run} − {row.baseline}" if self.baseline is None else row.run
        direction = "" if not lower_is_better(row.measure) else ", lower is better"
        return f"{name} ({row.difference:+.4f}, p = {row.p_corrected:.3g}{direction})"

    def _nearest(self, rows: Sequence[Difference]) -> str:
        """How far the data are from showing anything."""
        known = [row for row in rows if row.p is not None]
        reach = [row.detectable for row in rows if row.detectable is not None]
        found = f" The smallest p is {min(row.p for row in known if row.p is not None):.3g}." if known else ""
        if reach:
            ends = f"{min(reach):.4f}" if len(reach) == 1 else f"{min(reach):.4f} to {max(reach):.4f}"
            found += f" Even uncorrected, differences below {ends} are too small for these topics to show reliably."
        return found

    def _cautions(self) -> tuple[str, ...]:
        """What else a reader has to know."""
        found = []
        for case, meaning in CASES.items():
            rows = [row for row in self.differences if row.case == case]
            names = ", ".join(dict.fromkeys(f"{row.run} by {row.measure}" for row in rows[:_NAMED]))
            if rows:
                more = f" and {len(rows) - _NAMED:,} more" if len(rows) > _NAMED else ""
                found.append(f"No test of {names}{more}: {meaning}.")
        skipped = max((row.skipped for row in self.differences), default=0)
        if skipped:
            found.append(f"Up to {skipped:,} topics are left out of a comparison because a run was not scored on them.")
        if self.left_out:
            found.append(f"Not compared, because they are no means over topics: {', '.join(self.left_out)}.")
        if len({tuple(policy.sentences()) for policy in self.policies.values()}) > 1:
            found.append("The evaluations were made under different policies; see 'policies' in the JSON.")
        else:
            found += next((policy.sentences() for policy in self.policies.values()), ())
        # A remark begins with the name of its measure.
        found += [remark for remark in self.remarks if remark.partition(": ")[0] in self.measures]
        return tuple(found)


def write_results(
    folder: str | Path, results: Mapping[str, tuple[Mapping[str, Any], Table]], manifest: Mapping[str, Any]
) -> Path:
    """Writes results as JSON and their tables as CSV, Markdown and LaTeX, and `manifest.json`.

    Args:
        folder: made if it does not exist.
        results: JSON and table by the name of their files.
        manifest: what else the manifest says.

    Returns:
        The folder.

    Raises:
        InputError: the folder cannot be written to.
    """
    artifacts = Artifacts(folder)
    for name, (value, table) in results.items():
        artifacts.json(f"{name}.json", value)
        artifacts.text(f"{name}.csv", table.csv())
        artifacts.text(f"{name}.md", table.markdown())
        artifacts.text(f"{name}.tex", table.latex())
    versions = installed_versions("truerank", "numpy", "scipy", "polars", "ir-measures", "pytrec-eval-terrier")
    artifacts.manifest({"command": "compare", **manifest, "versions": versions})
    return artifacts.folder


def _shown(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.4f}"
