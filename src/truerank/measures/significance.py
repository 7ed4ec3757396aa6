"""Tests of the difference between two sets of scores, and what many of them at once ask for.

Cases in which a test has no answer are named, never NaN: see `CASES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import scipy

from truerank.arrays import Floats
from truerank.errors import InputError, OptionError
from truerank.measures.resampling import Resampled, shuffle_p, sign_flip_p

Test = Literal["paired-t", "welch", "equal-variance-t", "wilcoxon", "randomisation", "unpaired-randomisation"]
Correction = Literal["none", "bonferroni", "holm", "bh"]
Zeros = Literal["wilcox", "pratt", "zsplit"]

#: The tests in words.
TESTS: Final[dict[str, str]] = {
    "paired-t": "paired t-test",
    "welch": "unpaired t-test (Welch)",
    "equal-variance-t": "unpaired t-test (equal variances)",
    "wilcoxon": "Wilcoxon signed-rank test",
    "randomisation": "paired randomisation test (sign flips)",
    "unpaired-randomisation": "unpaired randomisation test",
}
#: The tests that compare the scores of the same topics.
PAIRED_TESTS: Final = frozenset({"paired-t", "wilcoxon", "randomisation"})
#: The corrections in words.
CORRECTIONS: Final[dict[str, str]] = {
    "none": "no correction",
    "bonferroni": "Bonferroni",
    "holm": "Holm",
    "bh": "Benjamini–Hochberg",
}
#: What Wilcoxon's test does with differences of zero.
ZEROS: Final[dict[str, str]] = {
    "wilcox": "differences of zero are left out",
    "pratt": "differences of zero are ranked, then left out (Pratt)",
    "zsplit": "differences of zero are ranked and count half for each side",
}
#: The cases in which a test has no p-value, or 1 without a test.
CASES: Final[dict[str, str]] = {
    "few-topics": "fewer than two topics",
    "infinite": "a score is infinite",
    "no-difference": "no topic differs (p is 1)",
    "constant-difference": "every topic differs by the same amount, a t-test has no error to compare it with",
    "constant-sides": "neither side varies, a t-test has no error to compare the difference with",
}

# Equal scores that were summed in another order differ in the last bits: differences are rounded before ranking.
_DECIMALS: Final = 12
_EXACT_WILCOXON: Final = 50
_ALL_RANKS: Final = 2**16


class Outcome(NamedTuple):
    """What a test says of the difference first minus second.

    Attributes:
        test: its name.
        n: topics; those of the first and of the second side where the test is unpaired.
        statistic: t, Wilcoxon's smaller rank sum, or the difference of the means; None where there is none.
        freedom: degrees of freedom of a t-test.
        p: two-sided; None where the case has none.
        how: how p was found where there are several ways ("exact", "normal approximation", "100,000 permutations").
        case: empty, or one of `CASES`.
    """

    test: str
    n: tuple[int, ...]
    statistic: float | None = None
    freedom: float | None = None
    p: float | None = None
    how: str = ""
    case: str = ""


def difference_test(
    first: Floats,
    second: Floats,
    test: Test = "paired-t",
    *,
    zeros: Zeros = "wilcox",
    permutations: int = 100_000,
    seed: int = 0,
) -> Outcome:
    """A test by its name.

    Args:
        first: scores of the one side, shape (topics,).
        second: scores of the other; for a paired test of the same topics in the same order.
        test: one of `TESTS`.
        zeros: see `wilcoxon`.
        permutations: see `randomisation`.
        seed: see `randomisation`.

    Raises:
        InputError: an unknown test, scores that are NaN, or a paired test of sides of different length.
    """
    check_name(test, Test, "test", "significance")
    if test == "wilcoxon":
        return wilcoxon(first, second, zeros=zeros)
    if test == "randomisation":
        return randomisation(first, second, permutations=permutations, seed=seed)
    if test == "unpaired-randomisation":
        return unpaired_randomisation(first, second, permutations=permutations, seed=seed)
    return {"paired-t": paired_t, "welch": welch, "equal-variance-t": equal_variance_t}[test](first, second)


def paired_t(first: Floats, second: Floats) -> Outcome:
    """Student's t-test of the per-topic differences.

    Args:
        first: scores of the one side, shape (topics,).
    """
    differences = _differences(first, second)
    n = (len(differences),)
    if case := _paired_case(first, second, differences):
        return _without_test("paired-t", n, case)
    if _constant(differences, first, second):
        return Outcome("paired-t", n, case="constant-difference")
    freedom, mean = len(differences) - 1, differences.mean()
    with np.errstate(all="ignore"):  # nearly equal differences
        # Bit for bit SciPy's ttest_rel, which takes half a second to load.
        variance = np.square(differences - mean).mean() * (len(differences) / freedom)
        t = mean / np.sqrt(variance / len(differences))
    return Outcome("paired-t", n, float(t), float(freedom), float(2 * scipy.special.stdtr(freedom, -np.abs(t))))


def paired_t_columns(first: Floats, second: Floats) -> Floats:
    """The p-values of `paired_t` for many comparisons at once.

    Args:
        first: scores of the one side, shape (topics, comparisons); finite.
        second: scores of the other, the same shape.

    Returns:
        Shape (comparisons,): 1 where no topic differs, not a number where the test has no answer.
    """
    differences = first - second
    topics = len(differences)
    margin = 10.0**-_DECIMALS * np.maximum(np.abs(first), np.abs(second)).max(axis=0, initial=0.0)
    same = np.abs(differences).max(axis=0, initial=0.0) <= margin
    if topics < 2:
        return np.full(differences.shape[1], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = differences.mean(axis=0) / (differences.std(axis=0, ddof=1) / np.sqrt(topics))
    p = 2 * scipy.special.stdtr(topics - 1, -np.abs(t))
    return np.where(same, 1.0, np.where(np.ptp(differences, axis=0) <= margin, np.nan, p))


def welch(first: Floats, second: Floats) -> Outcome:
    """The t-test of two samples that need not have equal variances.

    Args:
        first: scores of the one side, shape (topics,).

    Source: Welch (1947).
    """
    return _unpaired_t(first, second, "welch")


def equal_variance_t(first: Floats, second: Floats) -> Outcome:
    """Student's t-test of two samples, with one variance for both.

    Args:
        first: scores of the one side, shape (topics,).
    """
    return _unpaired_t(first, second, "equal-variance-t")


def wilcoxon(first: Floats, second: Floats, *, zeros: Zeros = "wilcox") -> Outcome:
    """Wilcoxon's signed-rank test of the per-topic differences, rounded to 12 decimals.

    p is exact up to 50 topics where no differences are tied or zero, and over all signs where at most 16 differences
    are not zero; else it comes from the normal distribution, without a correction for continuity.

    Args:
        first: scores of the one side, shape (topics,).

    Source: Wilcoxon (1945); Pratt (1959).
    """
    check_name(zeros, Zeros, "policy for zeros", "zeros")
    differences = np.round(_differences(first, second), _DECIMALS)
    n = (len(differences),)
    if case := _paired_case(first, second, differences):
        return _without_test("wilcoxon", n, case)
    sizes, signed = np.abs(differences), differences[differences != 0]
    tied = len(signed) < len(differences) or len(np.unique(sizes)) < len(sizes)
    if not tied and len(differences) <= _EXACT_WILCOXON:
        found = scipy.stats.wilcoxon(differences, zero_method=zeros, method="exact")
        return Outcome("wilcoxon", n, float(found.statistic), None, float(found.pvalue), "exact")
    found = scipy.stats.wilcoxon(differences, zero_method=zeros, correction=False, method="asymptotic")
    if 2 ** len(signed) <= _ALL_RANKS:
        ranks = scipy.stats.rankdata(np.abs(signed) if zeros == "wilcox" else sizes)
        signed_ranks = np.sign(signed) * (ranks if zeros == "wilcox" else ranks[differences != 0])
        p = float(sign_flip_p(signed_ranks[:, None], permutations=_ALL_RANKS).p[0])
        return Outcome("wilcoxon", n, float(found.statistic), None, p, "exact over all signs")
    return Outcome("wilcoxon", n, float(found.statistic), None, float(found.pvalue), "normal approximation")


def randomisation(first: Floats, second: Floats, *, permutations: int = 100_000, seed: int = 0) -> Outcome:
    """The paired randomisation test: each topic's scores could as well belong to the other side.

    Args:
        first: scores of the one side, shape (topics,).

    Source: Smucker, Allan, Carterette (CIKM 2007), section 2.3.
    """
    return randomisation_columns(first[:, None], second[:, None], permutations=permutations, seed=seed)[0]


def randomisation_columns(
    first: Floats, second: Floats, *, permutations: int = 100_000, seed: int = 0
) -> tuple[Outcome, ...]:
    """The paired randomisation test of many comparisons at once; the draws are the same for all of them.

    Args:
        first: scores of the one side, shape (topics, comparisons).
        second: scores of the other, the same shape. A topic that is NaN on either side is left out of the comparison.
    """
    if first.shape != second.shape:
        fault = "a paired test needs the same topics on both sides"
        raise OptionError("significance", fault, "choose an unpaired test")
    check_count(permutations, "resamples")
    known = ~(np.isnan(first) | np.isnan(second))
    finite = np.isfinite(first) & np.isfinite(second)
    differences = np.where(finite, np.where(finite, first, 0) - np.where(finite, second, 0), 0.0)
    scale = np.where(finite, np.maximum(np.abs(first), np.abs(second)), 0).max(axis=0, initial=0.0)
    differences[np.abs(differences) <= 10.0**-_DECIMALS * scale] = 0.0
    found = sign_flip_p(differences, permutations=permutations, seed=seed)
    outcomes = []
    for column in range(first.shape[1]):
        n = (int(known[:, column].sum()),)
        case = "few-topics" if n[0] < 2 else "infinite" if (known & ~finite)[:, column].any() else ""
        case = case or ("" if differences[:, column].any() else "no-difference")
        mean = float(differences[:, column].sum()) / max(1, n[0])
        outcomes.append(
            _without_test("randomisation", n, case) if case else _resampled("randomisation", n, mean, found, column)
        )
    return tuple(outcomes)


def unpaired_randomisation(first: Floats, second: Floats, *, permutations: int = 100_000, seed: int = 0) -> Outcome:
    """The randomisation test of two samples: each topic could as well be on the other side.

    Args:
        first: scores of the one side, shape (topics,).

    Source: Pitman (1937).
    """
    check_count(permutations, "resamples")
    n = len(first), len(second)
    if case := _unpaired_case(first, second):
        return _without_test("unpaired-randomisation", n, case)
    values = np.concatenate([first, second])[:, None]
    found = shuffle_p(values, np.arange(sum(n)) < n[0], permutations=permutations, seed=seed)
    return _resampled("unpaired-randomisation", n, float(first.mean() - second.mean()), found, 0)


def correct(
    p: Sequence[float | None], method: Correction = "bonferroni", *, family: int | None = None
) -> tuple[float | None, ...]:
    """The p-values of a family of comparisons, corrected for their number.

    Args:
        p: the p-values; None where a comparison has none, which still counts as one of the family.
        method: "none", "bonferroni", "holm" (both keep the chance of any false finding) or "bh"
            (Benjamini–Hochberg: keeps the expected share of false ones among the findings).
        family: the number of comparisons, where more were made than are given; those count with a p of 1.

    Returns:
        The corrected values in the same order, None where there was none; at most 1.

    Raises:
        InputError: an unknown method, or a family that is smaller than the number of p-values.

    Source: Holm (1979); Benjamini, Hochberg (1995).
    """
    check_name(method, Correction, "correction", "correction")
    size = len(p) if family is None else family
    if size < len(p):
        raise OptionError("family", f"a family of {size} is smaller than the {len(p)} comparisons", "give their number")
    known = np.array([value for value in p if value is not None], dtype=np.float64)
    corrected = iter(_corrected(known, method, size).tolist())
    return tuple(None if value is None else next(corrected) for value in p)


def check_name(name: str, kind: object, what: str, option: str) -> None:
    """Refuses a name that is not among those of a Literal."""
    if name not in get_args(kind):
        raise OptionError(option, f"unknown {what} '{name}'", f"one of {', '.join(get_args(kind))}")


def check_count(number: int, option: str) -> None:
    """Refuses a number of draws below 1."""
    if number < 1:
        raise OptionError(option, f"{number} is too few", "give 1 or more")


def _corrected(p: Floats, method: Correction, size: int) -> Floats:
    if method == "none" or not len(p):
        return p
    if method == "bonferroni":
        return np.minimum(1.0, p * size)
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    if method == "holm":
        stepped = np.maximum.accumulate(p[order] * (size - ranks + 1))
    else:
        stepped = np.minimum.accumulate((p[order] * size / ranks)[::-1])[::-1]
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(1.0, stepped)
    return corrected


def _unpaired_t(first: Floats, second: Floats, test: Literal["welch", "equal-variance-t"]) -> Outcome:
    n = len(first), len(second)
    if case := _unpaired_case(first, second):
        return _without_test(test, n, case)
    if _constant(first, first, second) and _constant(second, first, second):
        return Outcome(test, n, case="constant-sides")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one side may be constant
        found = scipy.stats.ttest_ind(first, second, equal_var=test == "equal-variance-t")
    return Outcome(test, n, float(found.statistic), float(found.df), float(found.pvalue))


def _differences(first: Floats, second: Floats) -> Floats:
    if len(first) != len(second):
        fault = f"a paired test needs the same topics on both sides, here are {len(first):,} and {len(second):,}"
        raise OptionError("significance", fault, "choose an unpaired test")
    _check_numbers(first, second)
    with np.errstate(invalid="ignore"):
        return np.asarray(first - second)


def _paired_case(first: Floats, second: Floats, differences: Floats) -> str:
    if len(differences) < 2:
        return "few-topics"
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return "infinite"
    return "no-difference" if float(np.abs(differences).max()) <= _margin(first, second) else ""


def _unpaired_case(first: Floats, second: Floats) -> str:
    _check_numbers(first, second)
    if min(len(first), len(second)) < 2:
        return "few-topics"
    both = np.concatenate([first, second])
    if not np.isfinite(both).all():
        return "infinite"
    return "no-difference" if float(np.ptp(both)) <= _margin(first, second) else ""


def _check_numbers(first: Floats, second: Floats) -> None:
    if np.isnan(first).any() or np.isnan(second).any():
        raise InputError("a score is not a number", "leave out the topics that have no score")


def _constant(values: Floats, first: Floats, second: Floats) -> bool:
    return float(np.ptp(values)) <= _margin(first, second)


def _margin(first: Floats, second: Floats) -> float:
    """Differences up to this size are rounding."""
    return 10.0**-_DECIMALS * max(float(np.abs(first).max()), float(np.abs(second).max()))


def _without_test(test: Test, n: tuple[int, ...], case: str) -> Outcome:
    return Outcome(test, n, p=1.0 if case == "no-difference" else None, case=case)


def _resampled(test: Test, n: tuple[int, ...], difference: float, found: Resampled, column: int) -> Outcome:
    number = int(found.counts[column])
    how = f"all {number:,} permutations" if found.exact[column] else f"{number:,} permutations"
    return Outcome(test, n, difference, None, float(found.p[column]), how)
