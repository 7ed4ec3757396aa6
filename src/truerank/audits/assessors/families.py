"""Does a model favour a family of systems? Circularity as a number: what the family gains under the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.audits.assessors.bootstrapping import bootstrap
from truerank.audits.assessors.ordering import SystemScores
from truerank.audits.track.inputs import RowFilter, read_metadata
from truerank.errors import InputError, OptionError
from truerank.judging.coefficients import Floats
from truerank.measures.significance import Correction, correct
from truerank.options import Resampling

FamilySource = str | Path | Mapping[str, str] | None
#: Outside a family, so many runs are needed to say what a run of some score gains.
_FEWEST_OTHERS: Final = 3


def read_families(source: FamilySource, runs: tuple[str, ...]) -> dict[str, str]:
    """The family of each run: the column family (or category) of a table of runs, or else its column group."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        found = {str(run): str(family) for run, family in source.items()}
    else:
        known = read_metadata([source], RowFilter({})).runs
        by_category = any(info.category for info in known.values())
        found = {run: info.category if by_category else info.group for run, info in known.items()}
    found = {run: family for run, family in found.items() if run in runs and family}
    if not found:
        there = ", ".join(runs[:3])
        raise OptionError("families", "no run has a family", f"write the columns run and family; runs are {there}")
    if len(set(found.values())) == 1 and len(found) == len(runs):
        raise InputError("all runs are of one family", "leave some runs without a family", where="families")
    return found


def families_frame(
    scores: SystemScores, families: Mapping[str, str], resampling: Resampling, correction: Correction
) -> pl.DataFrame:
    """What the runs of each family gain under each model.

    The gain is the mean over a family's runs of model minus people, less the same mean over the other runs. A model
    that stretches the scale gives good runs more than weak ones, whatever their family. So there is an adjusted gain
    too: the other runs say by a straight line what a run of some score under people gains, and the family is compared
    with that. Its interval allows for topics (bootstrap) and for runs (the scatter of runs around the line).
    """
    member = np.array([families.get(run, "") for run in scores.runs])
    names = [name for name in dict.fromkeys(member.tolist()) if name]
    rows = []
    for judge, measure, sign, people, model in scores.each():
        inside = [member == name for name in names]
        found = [_family_gain(sign * people, sign * model, own, resampling) for own in inside]
        corrected = correct([one["p"] for one in found], correction)
        for name, own, one, p in zip(names, inside, found, corrected, strict=True):
            counts = int(own.sum()), int((~own).sum())
            rows.append({"judge": judge, "measure": measure, "family": name, "runs": counts[0], "others": counts[1]})
            rows[-1] |= {**one, "corrected": p}
    numbers = ("value", "low", "high", "adjusted", "adjusted_low", "adjusted_high", "p", "corrected")
    schema = {
        "judge": pl.String, "measure": pl.String, "family": pl.String, "runs": pl.Int64, "others": pl.Int64,
        **dict.fromkeys(numbers, pl.Float64),
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _family_gain(people: Floats, model: Floats, own: NDArray[np.bool_], resampling: Resampling) -> dict[str, Any]:
    others = ~own
    gaps = model - people
    enough = int(others.sum()) >= _FEWEST_OTHERS

    def statistic(weights: Floats) -> Floats:
        drawn = weights.sum(axis=1, keepdims=True)
        gap, score = weights @ gaps.T / drawn, weights @ people.T / drawn
        plain = gap[:, own].mean(axis=1) - gap[:, others].mean(axis=1)
        rest = _residuals(score, gap, others)[:, own].mean(axis=1) if enough else np.full(len(weights), np.nan)
        return np.stack([plain, rest], axis=1)

    found = bootstrap(statistic, people.shape[1], resampling)
    none: dict[str, Any] = dict.fromkeys(("adjusted", "adjusted_low", "adjusted_high", "p"))
    gain = dict(zip(("value", "low", "high"), (float(part[0]) for part in found[:3]), strict=True))
    if not enough or np.isnan(found.value[1]):
        return {**gain, **none}
    rest = _residuals(people.mean(axis=1)[None], gaps.mean(axis=1)[None], others)[0]
    freedom = max(1, int(others.sum()) - 2)
    scatter = float((rest[others] ** 2).sum() / freedom)
    error = float(np.sqrt(found.error[1] ** 2 + scatter * (1 / own.sum() + 1 / others.sum())))
    value = float(found.value[1])
    least = max(1, min(freedom, people.shape[1] - 1))
    reach = float(scipy.special.stdtrit(least, (1 + resampling.confidence) / 2)) * error
    p = float(2 * scipy.special.stdtr(least, -abs(value) / error)) if error > 0 else None
    return {**gain, "adjusted": value, "adjusted_low": value - reach, "adjusted_high": value + reach, "p": p}


def _residuals(score: Floats, gap: Floats, others: NDArray[np.bool_]) -> Floats:
    """Gains less what the straight line through the other runs says of a run with this score; shape (n, runs)."""
    x, y = score[:, others], gap[:, others]
    centre, level = x.mean(axis=1, keepdims=True), y.mean(axis=1, keepdims=True)
    spread = ((x - centre) ** 2).sum(axis=1, keepdims=True)
    slope = np.divide(
        ((x - centre) * (y - level)).sum(axis=1, keepdims=True), spread, out=np.zeros_like(spread), where=spread > 1e-12
    )
    return np.asarray(gap - level - slope * (score - centre))
