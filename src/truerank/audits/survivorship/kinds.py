"""Are some kinds of query discarded more often than others? A test of independence, and which kinds stand out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import scipy

from truerank.measures.magnitudes import Proportion, proportion

Standing = Literal["over", "under", ""]
#: Below this number of expected queries, a test of a kind is rough.
FEWEST_EXPECTED: Final = 5


class KindCount(NamedTuple):
    """One kind of query.

    `residual` is the adjusted standardised residual of its survivors; `ratio` its share among the survivors over its
    share among all queries, with an interval; `standing` says whether the residual stands out.
    """

    kind: str
    discarded: Proportion
    of_all: float
    of_survivors: float
    ratio: float
    ratio_low: float
    ratio_high: float
    residual: float
    standing: Standing


@dataclass(frozen=True)
class Kinds:
    """Discarded queries by kind.

    Attributes:
        labelling: what the kinds are.
        split: whose queries.
        counts: the kinds, the most frequent first.
        total: all labelled queries.
        unlabelled: queries without a kind; they are not in the test.
        chi2: Pearson's statistic of kind by survival, None where there is nothing to test.
        freedom: its degrees of freedom.
        p: its p-value.
        cramers_v: the effect, 0 to 1.
        sparse: kinds that expect fewer than five queries in a cell, for which p and residuals are rough.
        alpha: level of `standing`, before the correction for the number of kinds.
    """

    labelling: str
    split: str
    counts: tuple[KindCount, ...]
    total: Proportion
    unlabelled: int
    chi2: float | None
    freedom: int
    p: float | None
    cramers_v: float | None
    sparse: tuple[str, ...]
    alpha: float

    @property
    def critical(self) -> float:
        """The residual beyond which a kind stands out."""
        return float(-scipy.special.ndtri(self.alpha / (2 * max(1, len(self.counts)))))

    def json(self) -> dict[str, Any]:
        """All figures by name."""
        return {
            "labelling": self.labelling,
            "split": self.split,
            "unlabelled": self.unlabelled,
            "chi2": self.chi2,
            "freedom": self.freedom,
            "p": self.p,
            "cramers_v": self.cramers_v,
            "sparse": list(self.sparse),
            "kinds": [
                {
                    "kind": one.kind,
                    "total": one.discarded.n,
                    "discarded": one.discarded.k,
                    **{name: one.discarded.json()[name] for name in ("share", "low", "high")},
                    "share_of_all": one.of_all,
                    "share_of_survivors": _known(one.of_survivors),
                    "ratio": _known(one.ratio),
                    "ratio_low": _known(one.ratio_low),
                    "ratio_high": _known(one.ratio_high),
                    "residual": _known(one.residual),
                    "standing": one.standing,
                }
                for one in self.counts
            ],
        }


def independence(
    counts: Mapping[str, tuple[int, int]],
    *,
    labelling: str = "kind",
    split: str = "",
    unlabelled: int = 0,
    confidence: float = 0.95,
    alpha: float = 0.05,
) -> Kinds:
    """Discarded shares by kind, with Pearson's test of independence and the kinds that stand out.

    Args:
        counts: by kind, all its queries and the discarded ones among them.
        labelling: what the kinds are.
        split: whose queries.
        unlabelled: queries without a kind.
        confidence: of the intervals.
        alpha: level at which a kind stands out, corrected for their number.

    Returns:
        The result; kinds in the order of their frequency, equal ones by name.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 3; Haberman, The analysis of
    residuals in cross-classified tables (1973).
    """
    names = sorted((kind for kind, (total, _) in counts.items() if total), key=lambda kind: (-counts[kind][0], kind))
    totals = np.array([counts[kind][0] for kind in names], np.float64)
    lost = np.array([counts[kind][1] for kind in names], np.float64)
    kept = totals - lost
    whole, gone = totals.sum(), lost.sum()
    left = whole - gone
    testable = len(names) > 1 and gone > 0 and left > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = totals * left / whole
        residuals = (kept - expected) / np.sqrt(expected * (1 - totals / whole) * (1 - left / whole))
        ratios = (kept / totals) / (left / whole)
        terms = (kept - expected) ** 2 / expected + (kept - expected) ** 2 / (totals - expected)
    statistic = float(terms.sum()) if testable else None
    critical = float(-scipy.special.ndtri(alpha / (2 * max(1, len(names)))))
    found = []
    for row, kind in enumerate(names):
        low, high = _ratio_interval(kept, totals, row, float(-scipy.special.ndtri((1 - confidence) / 2)))
        residual = float(residuals[row]) if testable else math.nan
        standing: Standing = "over" if residual > critical else "under" if residual < -critical else ""
        found.append(
            KindCount(
                kind,
                proportion(int(lost[row]), int(totals[row]), confidence=confidence),
                float(totals[row] / whole),
                float(kept[row] / left) if left else math.nan,
                float(ratios[row]) if left else math.nan,
                low,
                high,
                residual,
                standing,
            )
        )
    few = testable & (np.minimum(expected, totals - expected) < FEWEST_EXPECTED)
    return Kinds(
        labelling,
        split,
        tuple(found),
        proportion(int(gone), int(whole), confidence=confidence),
        unlabelled,
        statistic,
        max(0, len(names) - 1),
        None if statistic is None else float(scipy.special.chdtrc(len(names) - 1, statistic)),
        None if statistic is None else math.sqrt(statistic / whole),
        tuple(kind for kind, is_few in zip(names, few.tolist(), strict=True) if is_few),
        alpha,
    )


def _ratio_interval(kept: Any, totals: Any, row: int, z: float) -> tuple[float, float]:
    """An interval of a kind's share of the survivors over its share of all, on the scale of logarithms."""
    whole, left = totals.sum(), kept.sum()
    rest = whole - totals[row]
    if not left or not rest or not kept[row]:
        return math.nan, math.nan
    own, other = kept[row] / totals[row], (left - kept[row]) / rest
    weight, overall = totals[row] / whole, left / whole
    variance = (1 / own - weight / overall) ** 2 * own * (1 - own) / totals[row]
    variance += ((1 - weight) / overall) ** 2 * other * (1 - other) / rest
    spread = math.exp(z * math.sqrt(variance))
    ratio = own / overall
    return float(ratio / spread), float(ratio * spread)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
