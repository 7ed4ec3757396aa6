"""Tests, intervals, effect sizes and corrections: against SciPy, by hand, by enumeration, and without an answer."""

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from truerank.errors import InputError
from truerank.measures import magnitudes, resampling, significance
from truerank.measures.magnitudes import difference_interval, effect_size, mean_interval
from truerank.measures.significance import correct, difference_test

RNG = np.random.default_rng(20221110)
FIRST = RNG.beta(2, 3, 43)
SECOND = np.clip(FIRST + RNG.normal(0.03, 0.12, 43), 0, 1)
OTHER = RNG.beta(2.5, 3, 60)
#: Scores as P@10 gives them: many ties and zeros.
COARSE = RNG.integers(0, 11, 43) / 10
COARSE_2 = np.clip(COARSE + RNG.integers(-2, 3, 43) / 10, 0, 1)


def test_t_tests_are_scipys():
    paired = significance.paired_t(FIRST, SECOND)
    expected = stats.ttest_rel(FIRST, SECOND)
    assert (paired.statistic, paired.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert (paired.n, paired.freedom, paired.case) == ((43,), 42, "")
    for test, equal in ((significance.welch, False), (significance.equal_variance_t, True)):
        found, expected = test(FIRST, OTHER), stats.ttest_ind(FIRST, OTHER, equal_var=equal)
        assert (found.statistic, found.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
        assert (found.n, found.freedom) == ((43, 60), pytest.approx(expected.df))


def test_paired_t_by_hand():
    # Differences 1, 2, 3: mean 2, s = 1, t = 2 / (1 / √3); Student's t with two degrees of freedom has a closed form.
    found = significance.paired_t(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    t = 2 * math.sqrt(3)
    assert found.statistic == pytest.approx(t)
    assert found.p == pytest.approx(1 - t / math.sqrt(2 + t * t))


@pytest.mark.parametrize("zeros", ["wilcox", "pratt", "zsplit"])
def test_wilcoxon_is_scipys(zeros):
    exact = significance.wilcoxon(FIRST, SECOND, zeros=zeros)
    expected = stats.wilcoxon(FIRST, SECOND, zero_method=zeros, method="exact")
    assert (exact.statistic, exact.p, exact.how) == (expected.statistic, pytest.approx(expected.pvalue), "exact")
    tied = significance.wilcoxon(COARSE, COARSE_2, zeros=zeros)
    expected = stats.wilcoxon(np.round(COARSE - COARSE_2, 12), zero_method=zeros, method="asymptotic")
    assert (tied.statistic, tied.p) == (expected.statistic, pytest.approx(expected.pvalue))
    assert tied.how == "normal approximation"


@pytest.mark.parametrize("zeros", ["wilcox", "pratt", "zsplit"])
def test_wilcoxon_with_ties_and_few_topics_counts_all_signs(zeros):
    differences = np.array([0.1, -0.1, 0.2, 0.2, 0.2, 0.0, 0.3, -0.1, 0.0, 0.4])
    found = significance.wilcoxon(differences + 0.5, np.full(10, 0.5), zeros=zeros)
    signed = differences[differences != 0]
    ranks = stats.rankdata(np.abs(signed)) if zeros == "wilcox" else stats.rankdata(np.abs(differences))
    ranks = ranks if zeros == "wilcox" else ranks[differences != 0]
    observed = abs(np.sign(signed) @ ranks)
    sums = [abs(np.array(signs) @ ranks) for signs in itertools.product((-1, 1), repeat=8)]
    assert found.p == pytest.approx(np.mean([total >= observed for total in sums]))
    assert found.how == "exact over all signs"
    assert found.p == pytest.approx(stats.wilcoxon(differences, zero_method=zeros, method="auto").pvalue)


def test_differences_that_only_rounding_tells_apart_are_tied():
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit.
    first, second = np.array([0.3, 0.2, 0.9, 0.4]), np.array([0.2, 0.1, 0.2, 0.8])
    assert (first - second)[0] != (first - second)[1]
    assert significance.wilcoxon(first, second).how == "exact over all signs"


def test_randomisation_counts_all_signs_where_they_are_few():
    first, second = FIRST[:10], SECOND[:10]
    found = significance.randomisation(first, second)
    differences = first - second
    sums = [abs(np.array(signs) @ differences) for signs in itertools.product((-1, 1), repeat=10)]
    assert found.p == np.mean([total >= abs(differences.sum()) - 1e-12 for total in sums])
    assert found.how == "all 1,024 permutations"
    assert found.statistic == pytest.approx(differences.mean())


def test_randomisation_agrees_with_scipy_and_with_its_exact_distribution():
    found = significance.randomisation(FIRST, SECOND, seed=3)
    assert found.how == "100,000 permutations"
    expected = stats.permutation_test(
        (FIRST - SECOND,), lambda x, axis: x.mean(axis), permutation_type="samples", n_resamples=50_000, rng=1
    )
    assert found.p == pytest.approx(expected.pvalue, abs=0.005)
    # Differences of P@10 are whole tenths: the distribution of their signed sum is a product of polynomials.
    steps = np.round((COARSE - COARSE_2) * 10).astype(int)
    ways = {0: 1}
    for step in steps[steps != 0]:
        following: dict[int, int] = {}
        for total, count in ways.items():
            for signed in (total - step, total + step):
                following[signed] = following.get(signed, 0) + count
        ways = following
    exact = sum(count for total, count in ways.items() if abs(total) >= abs(steps.sum())) / sum(ways.values())
    assert significance.randomisation(COARSE, COARSE_2).p == pytest.approx(exact, abs=0.005)


def test_randomisation_is_seeded_and_never_says_zero():
    first = np.linspace(0.5, 1.0, 40)
    found = [significance.randomisation(first, first - 0.5, permutations=999, seed=seed).p for seed in (1, 1, 2)]
    assert found == [1 / 1000] * 3
    p = [significance.randomisation(FIRST, SECOND, permutations=999, seed=seed).p for seed in (1, 1, 2)]
    assert p[0] == p[1] != p[2]


def test_columns_do_not_depend_on_each_other():
    first = np.stack([FIRST, COARSE, FIRST, FIRST], axis=1)
    second = np.stack([SECOND, COARSE_2, FIRST, SECOND], axis=1)
    first[5, 3] = np.nan
    together = significance.randomisation_columns(first, second)
    assert together[0] == significance.randomisation(FIRST, SECOND)
    assert together[1] == significance.randomisation(COARSE, COARSE_2)
    assert (together[2].p, together[2].case) == (1.0, "no-difference")
    without = significance.randomisation(np.delete(FIRST, 5), np.delete(SECOND, 5))
    assert together[3].n == (42,) and together[3].p == pytest.approx(without.p, abs=0.005)


def test_memory_of_the_permutations_is_bounded(monkeypatch):
    whole = significance.randomisation(FIRST, SECOND, permutations=20_000).p
    monkeypatch.setattr(resampling, "_CELLS_AT_ONCE", 43 * 1024)
    seen = []
    original = np.unpackbits
    monkeypatch.setattr(resampling.np, "unpackbits", lambda *a, **k: seen.append(a[0].shape) or original(*a, **k))
    parts = significance.randomisation(FIRST, SECOND, permutations=20_000).p
    assert max(rows for rows, _ in seen) == 1024 and sum(rows for rows, _ in seen) == 20_000
    assert parts == pytest.approx(whole, abs=0.01)


def test_scores_of_few_values_are_drawn_by_value_with_the_same_distribution(monkeypatch):
    steps = np.array([0, *(1 / rank for rank in range(1, 11))])
    first, second = steps[RNG.integers(0, 11, 600)], steps[RNG.integers(0, 11, 600)]
    third = np.concatenate([second[:500], steps[RNG.integers(5, 11, 50)]])
    tests = (significance.randomisation, (first, second)), (significance.unpaired_randomisation, (first, third))
    for test, sides in tests:
        one_by_one = test(*sides, permutations=20_000)
        monkeypatch.setattr(resampling, "_MANY_TOPICS", 100)
        monkeypatch.setattr(resampling, "_TOPICS_PER_VALUE", 2)
        by_value = test(*sides, permutations=20_000)
        monkeypatch.undo()
        assert by_value.p != one_by_one.p
        assert by_value[:4] == one_by_one[:4]
        assert 0.01 < by_value.p < 0.9 and by_value.p == pytest.approx(one_by_one.p, abs=0.015)
        assert test(*sides, permutations=20_000).p == one_by_one.p


def test_unpaired_randomisation():
    found = significance.unpaired_randomisation(FIRST[:6], OTHER[:7])
    both = np.concatenate([FIRST[:6], OTHER[:7]])
    means = []
    for members in itertools.combinations(range(13), 6):
        inside = np.isin(np.arange(13), members)
        means.append(abs(both[inside].mean() - both[~inside].mean()))
    assert found.p == pytest.approx(np.mean([m >= abs(found.statistic) - 1e-12 for m in means]))
    assert (found.how, found.n) == ("all 1,716 permutations", (6, 7))
    drawn = significance.unpaired_randomisation(FIRST, OTHER, permutations=20_000)
    expected = stats.permutation_test(
        (FIRST, OTHER), lambda x, y, axis: x.mean(axis) - y.mean(axis), n_resamples=20_000, rng=1, vectorized=True
    )
    assert drawn.p == pytest.approx(expected.pvalue, abs=0.01)


@pytest.mark.parametrize("test", sorted(significance.TESTS))
def test_cases_without_an_answer_are_named(test):
    one, some = np.array([0.5]), np.array([0.1, 0.2, 0.3])
    assert difference_test(one, one + 0.1, test)[4:] == (None, "", "few-topics")
    assert difference_test(np.array([]), np.array([]), test).case == "few-topics"
    infinite = difference_test(np.array([0.1, np.inf, 0.3]), some, test)
    assert (infinite.p, infinite.case) == (None, "infinite")
    same = np.array([0.3, 0.3, 0.3])
    equal = difference_test(same, same.copy(), test)
    assert (equal.p, equal.case) == (1.0, "no-difference")


def test_constant_differences():
    first = np.array([0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    found = significance.paired_t(first, first - 0.1)
    assert (found.p, found.case) == (None, "constant-difference")
    # The other paired tests have an answer: all six signs are equal, twice.
    assert significance.randomisation(first, first - 0.1).p == pytest.approx(2 / 64)
    assert significance.wilcoxon(first, first - 0.1).p == pytest.approx(2 / 64)


def test_constant_sides():
    ones, zeros = np.ones(5), np.zeros(4)
    for test in (significance.welch, significance.equal_variance_t):
        assert (test(ones, zeros).p, test(ones, zeros).case) == (None, "constant-sides")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = test(ones, FIRST)
        with pytest.warns(RuntimeWarning):
            expected = stats.ttest_ind(ones, FIRST, equal_var=test is significance.equal_variance_t)
        assert found.p == pytest.approx(expected.pvalue)
    assert significance.unpaired_randomisation(ones, zeros).p == pytest.approx(1 / math.comb(9, 4))


def test_equal_scores_summed_in_another_order_do_not_differ():
    first, second = np.full(20, 0.1 + 0.2), np.full(20, 0.3)
    assert first[0] != second[0]
    for test in significance.TESTS:
        assert difference_test(first, second, test).case == "no-difference", test


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda: difference_test(FIRST, SECOND, "t-test"), "unknown test 't-test'. one of paired-t, welch"),
        (lambda: difference_test(FIRST, OTHER, "paired-t"), "same topics on both sides, here are 43 and 60"),
        (lambda: difference_test(FIRST, np.full(43, np.nan), "paired-t"), "a score is not a number"),
        (lambda: difference_test(FIRST, SECOND, "randomisation", permutations=0), "resamples: 0 is too few"),
        (lambda: significance.wilcoxon(FIRST, SECOND, zeros="drop"), "unknown policy for zeros 'drop'"),
        (lambda: correct([0.1, 0.2], "sidak"), "unknown correction 'sidak'"),
        (lambda: correct([0.1, 0.2], family=1), "a family of 1 is smaller than the 2 comparisons"),
        (lambda: effect_size(FIRST, SECOND, "d"), "unknown effect size 'd'"),
    ],
)
def test_faults(call, fault):
    with pytest.raises(InputError, match=fault.replace("(", r"\(")):
        call()


P = [0.01, 0.04, 0.03, None, 0.005, 0.2]


def test_corrections_by_hand():
    assert correct(P, "none") == tuple(P)
    assert correct(P, "bonferroni") == pytest.approx((0.06, 0.24, 0.18, None, 0.03, 1.0))
    # In order 0.005 0.01 0.03 0.04 0.2, times 6 5 4 3 2, never falling.
    assert correct(P, "holm") == pytest.approx((0.05, 0.12, 0.12, None, 0.03, 0.4))
    # Times 6 / rank, never rising from the largest down.
    assert correct(P, "bh") == pytest.approx((0.03, 0.06, 0.06, None, 0.03, 0.24))
    assert correct([0.01], "bonferroni", family=10) == pytest.approx((0.1,))
    assert correct([], "holm") == () and correct([None], "bh") == (None,)


@settings(max_examples=60)
@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=12), st.integers(0, 5))
def test_corrections_are_those_of_independent_definitions(p, more):
    size = len(p) + more
    padded = [*p, *[1.0] * more]
    assert correct(p, "bh", family=size) == pytest.approx(tuple(stats.false_discovery_control(padded)[: len(p)]))
    # Holm: reject the smallest while it is at most alpha over the number of those that are left.
    holm = correct(p, "holm", family=size)
    for alpha in (0.01, 0.05, 0.3):
        rejected = set()
        for place, index in enumerate(sorted(range(size), key=lambda i: padded[i])):
            if padded[index] * (size - place) > alpha:
                break
            rejected.add(index)
        assert {i for i in range(len(p)) if holm[i] <= alpha} == {i for i in rejected if i < len(p)}
    bonferroni = correct(p, "bonferroni", family=size)
    assert all(b >= h - 1e-15 >= raw - 1e-12 for b, h, raw in zip(bonferroni, holm, p, strict=True))


def test_intervals_are_scipys():
    found, expected = mean_interval(FIRST), stats.ttest_1samp(FIRST, 0).confidence_interval(0.95)
    assert found == (43, pytest.approx(FIRST.mean()), pytest.approx(expected.low), pytest.approx(expected.high))
    paired = difference_interval(FIRST, SECOND, confidence=0.9)
    expected = stats.ttest_rel(FIRST, SECOND).confidence_interval(0.9)
    assert paired[2:] == (pytest.approx(expected.low), pytest.approx(expected.high))
    for method in ("welch", "equal-variance-t"):
        found = difference_interval(FIRST, OTHER, method=method)
        expected = stats.ttest_ind(FIRST, OTHER, equal_var=method != "welch").confidence_interval(0.95)
        assert found[2:] == (pytest.approx(expected.low), pytest.approx(expected.high))
        assert found.n == 103


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_intervals_are_scipys(method):
    skewed = RNG.exponential(1.0, 30) ** 2
    name = {"percentile": "percentile", "bca": "BCa"}[method]
    found = resampling.bootstrap_interval([skewed], method=method, resamples=20_000, seed=1)
    expected = stats.bootstrap((skewed,), np.mean, method=name, n_resamples=20_000, rng=2).confidence_interval
    assert found == (pytest.approx(expected.low, abs=0.05), pytest.approx(expected.high, abs=0.12))
    two = resampling.bootstrap_interval([skewed, OTHER], method=method, resamples=20_000, seed=1)
    expected = stats.bootstrap(
        (skewed, OTHER), lambda x, y, axis: x.mean(axis) - y.mean(axis), method=name, n_resamples=20_000, rng=2
    ).confidence_interval
    assert two == (pytest.approx(expected.low, abs=0.05), pytest.approx(expected.high, abs=0.12))


def test_bootstrap_is_seeded_and_bca_differs_from_percentile():
    skewed = RNG.exponential(1.0, 25) ** 2
    first, again, other = (resampling.bootstrap_interval([skewed], resamples=500, seed=s) for s in (1, 1, 2))
    assert first == again != other
    percentile = resampling.bootstrap_interval([skewed], method="percentile", resamples=500, seed=1)
    # The mean of a sample that leans to the right has its interval further right than the percentiles say.
    assert first[0] > percentile[0] and first[1] > percentile[1]
    assert resampling.bootstrap_interval([np.full(5, 0.25)]) == (0.25, 0.25)
    found = difference_interval(FIRST, SECOND, bootstrap="bca", resamples=2_000)
    assert found.low < (FIRST - SECOND).mean() < found.high


def test_bca_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(5)
    covered = 0
    for seed in range(200):
        low, high = resampling.bootstrap_interval([rng.beta(2, 5, 40)], resamples=400, seed=seed)
        covered += low <= 2 / 7 <= high
    assert 180 <= covered <= 199


def test_intervals_without_an_answer():
    none, one = np.array([]), np.array([0.4])
    assert mean_interval(none) == (0, None, None, None)
    assert mean_interval(one) == (1, 0.4, None, None)
    assert difference_interval(none, one, method="welch") == (1, None, None, None)
    assert difference_interval(one, FIRST, method="welch")[2:] == (None, None)
    assert difference_interval(np.array([np.inf, 1.0]), np.array([1.0, 1.0])) == (2, None, None, None)
    flat = difference_interval(np.ones(3), np.zeros(3), method="welch")
    assert flat == (6, 1.0, 1.0, 1.0)


def test_effect_sizes_by_hand():
    first, second = np.array([1.0, 2.0, 3.0, 6.0]), np.array([0.0, 2.0, 1.0, 3.0])
    # Differences 1, 0, 2, 3: mean 1.5, variance 5/3. Variances 14/3 and 5/3.
    assert effect_size(first, second) == pytest.approx(1.5 / math.sqrt(5 / 3))
    assert effect_size(first, second, "dav") == pytest.approx(1.5 / math.sqrt(19 / 6))
    assert effect_size(first, second, "ds") == pytest.approx(1.5 / math.sqrt(19 / 6))
    # Hedges' factor at 3 degrees of freedom: Γ(3/2) / (√(3/2) Γ(1)).
    factor = math.gamma(1.5) / math.sqrt(1.5)
    assert effect_size(first, second, "gz") == pytest.approx(1.5 / math.sqrt(5 / 3) * factor)
    assert effect_size(first, second, "gav") == pytest.approx(1.5 / math.sqrt(19 / 6) * factor)
    assert effect_size(first, second, "gs") == pytest.approx(
        1.5 / math.sqrt(19 / 6) * math.gamma(3) / (math.sqrt(3) * math.gamma(2.5))
    )
    pooled = math.sqrt((3 * np.var(first, ddof=1) + 59 * np.var(OTHER, ddof=1)) / 62)
    assert effect_size(first, OTHER, "ds") == pytest.approx((first.mean() - OTHER.mean()) / pooled)


def test_effect_sizes_without_an_answer():
    first = np.array([0.4, 0.5, 0.6])
    assert effect_size(first, first - 0.1) is None
    assert effect_size(first, first) == 0.0
    assert effect_size(first[:1], first[:1]) is None
    assert effect_size(first[:2], np.array([0.1, 0.3]), "gz") is None
    assert effect_size(np.array([np.inf, 0.5, 0.6]), first) is None


def test_detectable_difference_is_where_the_power_is_reached():
    difference = magnitudes.detectable_difference(43, 0.12, power=0.8, alpha=0.05)
    rng = np.random.default_rng(8)
    drawn = rng.normal(difference, 0.12, (4000, 43))
    found = stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)
    assert magnitudes.detectable_difference(1, 0.12) is None
    assert magnitudes.detectable_difference(43, 0.12, alpha=1 - 1e-9) == 0
    assert magnitudes.detectable_difference(2, 0.12, alpha=1e-17) is None
