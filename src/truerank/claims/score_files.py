"""Are scores what they seem? Splits, scales, copies, zeros, main scores that contradict their files, topics apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Floats
from truerank.claims.claim import Claim, Repair, became, beyond_chance, signed
from truerank.claims.file_questions import LUCK, harder
from truerank.claims.results import ClaimAnswer
from truerank.sources.golden_rows import first_names
from truerank.sources.mteb_results import one_score_each
from truerank.sources.recognition import Reading
from truerank.text.printable import capital, counted, listed

#: Tasks of a split that a sentence names.
_NAMED: Final = 4


def pair_of_results(claim: Claim, readings: Sequence[Reading]) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """The results of MTEB, all splits, of both systems and of the others; None where one of the two has none."""
    tables = [one.table.cells for one in readings if one.table is not None and one.table.cells is not None]
    if not tables:
        return None
    cells, pair = pl.concat(tables), pl.col("system").is_in([claim.system, claim.baseline])
    own = cells.filter(pair)
    return (own, cells.filter(~pair)) if own["system"].n_unique() > 1 else None


def apart(claim: Claim) -> ClaimAnswer | None:
    """The answer where no topic has a score of both systems; None where one has."""
    own = [~np.isnan(claim.evaluation.of(name, claim.measure)) for name in (claim.system, claim.baseline)]
    if (own[0] & own[1]).any():
        return None
    unit = claim.unit[:-1]
    system, baseline = (counted(int(known.sum()), unit) for known in own)
    reason = f"{claim.system} has scores of {system}, {claim.baseline} of {baseline}, and no {unit} has both."
    return ClaimAnswer.at_fault(reason, f"Give scores of the same {claim.unit}, with the same ids.", {})


_GIVE: Final = "Give the missing scores, 0 where a system failed. `missing` skip is for what was never asked."


def missing_scores(claim: Claim) -> ClaimAnswer | None:
    """The answer where topics lack the score of one system: what they are as 0, and at the ends of the measure."""
    scores = {name: claim.evaluation.of(name, claim.measure) for name in (claim.system, claim.baseline)}
    system, baseline = scores.values()
    lacks = {
        claim.system: np.isnan(system) & ~np.isnan(baseline),
        claim.baseline: np.isnan(baseline) & ~np.isnan(system),
    }
    counts = {name: int(own.sum()) for name, own in lacks.items()}
    if not any(counts.values()):
        return None
    known, either = claim.evaluation.values, ~np.isnan(system) | ~np.isnan(baseline)
    low, high = (0.0, 1.0) if np.nanmin(known) >= 0 and np.nanmax(known) <= 1 else (np.nanmin(known), np.nanmax(known))

    def filled(of_system: float, of_baseline: float) -> Floats:
        pair = np.where(np.isnan(system), of_system, system) - np.where(np.isnan(baseline), of_baseline, baseline)
        return np.where(either, pair, np.nan)

    means = [float(np.where(np.isnan(own), low, own)[either].mean()) for own in (system, baseline)]
    zero = claim.estimate(filled(low, low), f"with {low:g} for missing scores")
    zero = replace(zero, scores=(means[0], means[1]))
    worst, best = (float(np.nanmean(filled(*ends))) for ends in ((low, high), (high, low)))
    every = int(either.sum())
    whose = [f"{name} has no score for {n:,d} of {counted(every, claim.unit[:-1])}" for name, n in counts.items() if n]
    found = f"{listed(whose)}."
    says = f"{capital(zero.label)}, {became(claim, claim.base, zero, moved=True)}."
    ends = f"Whatever these would be, the difference lies between {signed(worst)} and {signed(best)}."
    # Where both lack some by chance, zeros only add noise.
    chance = scipy.stats.binomtest(counts[claim.system], sum(counts.values())).pvalue
    one_sided = chance <= LUCK or not all(counts.values())
    apart = bool((zero.value or 0.0) <= 0 or (one_sided and zero.effect != "stands"))
    apart &= claim.scoring.missing != "skip"  # these were not asked
    lacking = {topic for topic, own in zip(claim.evaluation.topics, lacks[claim.system], strict=True) if own}
    hard = bool(lacking) and harder(claim, claim.system, lacking)
    harder_ones = f"{claim.system} lacks {claim.unit} that are harder than others."
    exception = (found, *([says] * apart), *([harder_ones] * hard)) if apart or hard else ()
    weak = claim.base.effect == "stands" and bool(exception)
    return ClaimAnswer(
        "files", "FAULTS", f"{found} Left out. {ends}", claim.base.effect, says, settles=_GIVE, estimates=(zero,),
        remark="" if weak else f"{found} {ends}", facts={"only_without": apart and (zero.value or 0.0) <= 0},
        exception=exception, plausible=weak, found=found,
    )  # fmt: skip


def results_answer(claim: Claim, cells: pl.DataFrame, others: pl.DataFrame) -> ClaimAnswer:
    """What results of MTEB show of how they were made.

    Args:
        claim: the claim.
        cells: of both systems, see `pair_of_results`.
        others: of the others.
    """
    # Here: few checks have results of MTEB.
    from truerank.audits.leaderboard.comparability import odd_scales

    splits = " ".join(_splits(cells))
    chosen = one_score_each(cells)
    both = chosen.filter(pl.col("system").n_unique().over("task") > 1)
    scales = odd_scales(both)
    named = both.filter(pl.col("fingerprint").is_not_null())
    twice = named.filter(pl.col("system").n_unique().over("task", "fingerprint") > 1)
    unlike = both.filter(pl.col("main_measure") == "")
    faults = [
        f"Scores of {name} on {_tasks(own)} are on another scale than the others: 0 to 1, or 0 to 100."
        for name, own in _by_system(scales)
    ]
    if len(twice):
        faults.append(f"Both have one result, in all measures, on {_tasks(twice)}: a copy, or one model made both.")
    lent = _lent(named, others)
    for (name, other), own in lent.partition_by("system", "other", as_dict=True, maintain_order=True).items():
        faults.append(
            f"{name} has the result of {other}, in all measures, on {_tasks(own)}: a copy, or one model made both."
        )
    faults += [
        f"The main score of {name} on {_tasks(own)} is no measure of its file ({own['place'][0]})."
        for name, own in _by_system(unlike)
    ]
    # A mean over many questions is hardly 0.
    zero = both.filter((pl.col("score") == 0) & (pl.col("score").max().over("task") > 0))
    faults += [f"{name} scores exactly 0 on {_tasks(own)}, as a failed job would." for name, own in _by_system(zero)]
    touched = pl.concat([twice, unlike])["task"].n_unique()
    facts = {"faults": faults, "touched": touched}
    remedy = "Write all scores on one scale." if len(scales) else "Evaluate these tasks again." if touched else ""
    if len(scales) or 2 * touched >= both["task"].n_unique():
        return ClaimAnswer.at_fault(faults[0], remedy, facts, " ".join(faults))
    evidence = " ".join((*faults, splits))
    answer = ClaimAnswer(
        "files", "FAULTS" if faults else "AS THEY SEEM", evidence, claim.base.effect,
        "" if faults else "No fault was found in the files.", settles=remedy, remark=evidence, facts=facts,
        found=faults[0] if faults else "",
    )  # fmt: skip
    if len(unlike):
        answer = replace(answer, repair=Repair(f"without {_tasks(unlike)}", frozenset(unlike["task"])))
    # One model may have made both results: these tasks then say that there is no difference.
    doubted = pl.concat([twice.select("task"), lent.select("task"), zero.select("task")])
    label = f"without {_tasks(doubted)}"
    gone = frozenset(doubted["task"])
    left = claim.repaired((Repair(label, gone),)) if gone else None
    if left is None:
        return answer
    row = replace(left.base, label=label)
    weak = claim.base.effect == "stands" != row.effect
    consequence = f"W{label[1:]}, {became(claim, claim.base, row, moved=beyond_chance(claim, gone))}."
    return replace(
        answer, estimates=(row,), consequence=consequence, remark=f"{' '.join(faults)} {consequence} {splits}",
        exception=(faults[0], consequence) if weak else (), plausible=weak,
    )  # fmt: skip


def _lent(cells: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Results that other systems have, too, by column `other`; where these are most results, it is a second name."""
    keys = ["task", "fingerprint"]
    found = cells.join(others.select(*keys, other="system").unique(), on=keys).sort("system", "other", "task")
    return found.filter(2 * pl.len().over("system", "other") < cells["task"].n_unique())


def _by_system(cells: pl.DataFrame) -> Iterable[tuple[str, pl.DataFrame]]:
    parts = cells.sort("system").partition_by("system", as_dict=True, maintain_order=True)
    return ((str(name), own) for (name,), own in parts.items())


def _tasks(cells: pl.DataFrame) -> str:
    own = cells["task"].unique().sort()
    return f"{len(own)} task{'s' * (len(own) != 1)} ({first_names(own)})"


def _splits(cells: pl.DataFrame) -> Iterable[str]:
    """Which splits count, which do not, and on which tasks the two have none in common."""
    chosen = one_score_each(cells)
    both = chosen.filter(pl.col("system").n_unique().over("task") > 1)
    left = cells.join(chosen, on=["task", "split"], how="anti", nulls_equal=True)
    yield f"The scores are of the split {_by_split(both)}."
    if len(left):
        yield f"Not counted: {_by_split(left)}."
    if len(apart := chosen.join(both, on="task", how="anti")):
        yield f"Left out, as no split has scores of both: {first_names(apart['task'].unique().sort())}."


def _by_split(cells: pl.DataFrame) -> str:
    """Splits with their tasks, that of most tasks first: "test (15 tasks) and dev (MSMARCO)"."""
    tasks = cells.group_by("split").agg(pl.col("task").unique().sort())
    tasks = tasks.sort(pl.col("task").list.len(), "split", descending=[True, False])
    rows = [(split, listed(own) if len(own) <= _NAMED else f"{len(own)} tasks") for split, own in tasks.iter_rows()]
    return listed([f"{split} ({own})" for split, own in rows])
