"""The result of a comparison as one value: its differences, and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from truerank.measures.grammar import lower_is_better
from truerank.measures.method import Significance
from truerank.measures.significance import CORRECTIONS, TESTS
from truerank.options import Scoring
from truerank.reports.results import Result

#: Stands at a significant difference.
MARK: Final = "†"
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


@dataclass(frozen=True, repr=False)
class Comparison(Result, shown_in="truerank.measures.report"):
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

    method: Significance
    baseline: str | None
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    left_out: tuple[str, ...]
    differences: tuple[Difference, ...]
    policies: Mapping[str, Scoring] = field(default_factory=dict)
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

    def sentences(self) -> tuple[str, ...]:
        """What survived the correction, one sentence or two by measure."""
        return tuple(sentence for measure in self.measures for sentence in self._sentences(measure))

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

    def _sentences(self, measure: str) -> Iterator[str]:
        rows = [row for row in self.differences if row.measure == measure]
        survivors = [row for row in rows if row.significant]
        corrected = self.method.correction != "none"
        family = self.method.family if isinstance(self.method.family, int) else len(rows)
        family = len(self.differences) if self.method.family == "all" else family
        over = f"{CORRECTIONS[self.method.correction]} over {family:,} comparison{'s' if family != 1 else ''}"
        how = f"{TESTS[self.method.significance]}, {over if corrected else 'no correction'}, α = {self.method.alpha:g}"
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
