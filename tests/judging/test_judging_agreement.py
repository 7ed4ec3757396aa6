"""How far annotators agree: formulas against other implementations, definitions against the authors' data."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import cohen_kappa_score

from judging_example import pair_item, store_of, written_csv
from places import real
from truerank.errors import InputError
from truerank.judging import Annotator, Store, load_scheme
from truerank.judging.agreement import agreement
from truerank.judging.coefficients import Coefficients, drawn_weights, interval
from truerank.judging.ratings import read_ratings

#: Four annotators, twelve items, grades 0 to 3, -1 where nothing was said; made up.
SPARSE = np.array([
    [0, 0, 0, -1], [1, 1, 2, 1], [2, 2, 2, 2], [3, 3, 2, 3], [-1, 1, 1, 0], [0, -1, -1, 0],
    [2, 1, -1, 2], [3, 3, 3, 3], [1, -1, -1, -1], [0, 1, 0, 0], [2, 3, 3, -1], [1, 1, 1, 1],
])  # fmt: skip
FULL = np.array([
    [0, 0, 1], [1, 1, 1], [2, 2, 0], [3, 3, 3], [1, 0, 1], [0, 0, 0], [2, 2, 2], [3, 1, 3], [0, 2, 1], [1, 1, 1],
])  # fmt: skip


@pytest.fixture
def agreement_files() -> list[str]:
    folder = real("spire22/annotations")
    return [f"{name}={next(folder.glob(f'agreement-*-by-{name}.jsonl'))}" for name in ("cakiki", "maik")]


def labels_of(files: list[str]) -> list[list[list[str]]]:
    """The labels of each file's pairs, read without the code under test."""
    texts = [Path(file.partition("=")[2]).read_text(encoding="utf-8") for file in files]
    return [[json.loads(line)["label"] for line in text.splitlines()] for text in texts]


def once(part: Coefficients) -> np.ndarray:
    return np.ones((1, part.units))


# Formulas


def test_fleiss_and_krippendorff_are_those_of_other_packages() -> None:
    # statsmodels 0.15 (fleiss_kappa) and krippendorff 0.9 (alpha) on the same arrays.
    full, ordered = Coefficients(FULL, 4), Coefficients(FULL, 4, "ordinal")
    assert full.fleiss(once(full))[0] == pytest.approx(0.4954128440366972, abs=1e-12)
    assert full.krippendorff(once(full))[0] == pytest.approx(0.5122324159021406, abs=1e-12)
    assert ordered.krippendorff(once(ordered))[0] == pytest.approx(0.5588531592520953, abs=1e-12)
    complete = Coefficients(SPARSE[(SPARSE >= 0).all(axis=1)], 4)
    assert complete.fleiss(once(complete))[0] == pytest.approx(0.6555023923444976, abs=1e-12)
    sparse, graded = Coefficients(SPARSE, 4), Coefficients(SPARSE, 4, "ordinal")
    assert sparse.units == 11
    assert sparse.krippendorff(once(sparse))[0] == pytest.approx(0.5888888888888888, abs=1e-12)
    assert graded.krippendorff(once(graded))[0] == pytest.approx(0.8721321354560604, abs=1e-12)


def naive_alpha(codes: np.ndarray, ordinal: bool) -> float:
    """Observed over expected disagreement, pair by pair."""
    units = [[code for code in row if code >= 0] for row in codes.tolist()]
    units = [row for row in units if len(row) > 1]
    values = [code for row in units for code in row]
    size = {code: values.count(code) for code in range(max(values, default=0) + 1)}

    def distance(a: int, b: int) -> float:
        if not ordinal:
            return float(a != b)
        low, high = min(a, b), max(a, b)
        return (sum(size[g] for g in range(low, high + 1)) - (size[low] + size[high]) / 2) ** 2

    observed = sum(distance(a, b) / (len(row) - 1) for row in units for a, b in itertools.permutations(row, 2))
    expected = sum(distance(a, b) for a, b in itertools.permutations(values, 2)) / (len(values) - 1 or 1)
    return 1 - observed / expected if expected else math.nan


def naive_fleiss(codes: np.ndarray) -> float:
    units = [[code for code in row if code >= 0] for row in codes.tolist()]
    units = [row for row in units if len(row) > 1]
    if not units:
        return math.nan
    agreed = np.mean([np.mean([a == b for a, b in itertools.permutations(row, 2)]) for row in units])
    shares = [np.mean([row.count(code) / len(row) for row in units]) for code in range(4)]
    chance = sum(share**2 for share in shares)
    return float((agreed - chance) / (1 - chance)) if chance < 1 - 1e-12 else math.nan


tables = arrays.arrays(np.int64, st.tuples(st.integers(1, 12), st.integers(2, 5)), elements=st.integers(-1, 3))


@settings(max_examples=60)
@given(tables)
def test_coefficients_are_their_definitions(codes: np.ndarray) -> None:
    for level in ("nominal", "ordinal"):
        part = Coefficients(codes, 4, level)
        found = part.krippendorff(once(part))[0]
        assert found == pytest.approx(naive_alpha(codes, level == "ordinal"), abs=1e-9, nan_ok=True)
    assert part.fleiss(once(part))[0] == pytest.approx(naive_fleiss(codes), abs=1e-9, nan_ok=True)
    both = codes[(codes[:, :2] >= 0).all(axis=1), :2]
    pair = Coefficients(codes[:, :2], 4)
    assert pair.units == len(both)
    if len(both) and len(np.unique(both)) > 1:
        assert pair.cohen(once(pair))[0] == pytest.approx(cohen_kappa_score(both[:, 0], both[:, 1]), abs=1e-9)
        assert pair.percentage(once(pair))[0] == pytest.approx((both[:, 0] == both[:, 1]).mean())
    elif len(both):
        assert np.isnan(pair.cohen(once(pair))[0])


@settings(max_examples=30)
@given(tables, st.integers(0, 1000))
def test_a_resample_is_the_data_it_stands_for(codes: np.ndarray, seed: int) -> None:
    part = Coefficients(codes, 4, "ordinal")
    for weights in drawn_weights(None, part.units, 3, seed):
        for row in weights:
            repeated = Coefficients(np.repeat(part.codes, row.astype(int), axis=0), 4, "ordinal")
            for name in ("percentage", "fleiss", "krippendorff"):
                expected = getattr(repeated, name)(once(repeated))[0]
                assert getattr(part, name)(row[None, :])[0] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_topics_are_drawn_whole() -> None:
    groups = np.array([0, 0, 1, 2, 2, 2])
    (weights,) = drawn_weights(groups, 6, 50, 4)
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 3] == weights[:, 5]).all()
    assert (weights[:, [0, 2, 3]].sum(axis=1) == 3).all()
    (again,) = drawn_weights(groups, 6, 50, 4)
    assert (weights == again).all()
    assert interval(0.5, np.array([np.nan, 0.2, 0.8]), 0.5, "").low == pytest.approx(0.35)


def test_the_interval_covers() -> None:
    """A kappa whose true value is known lies in the interval about as often as promised."""
    generator = np.random.default_rng(1)
    inside = 0
    for trial in range(100):
        first = generator.integers(0, 2, 150)
        second = np.where(generator.random(150) < 0.8, first, 1 - first)
        part = Coefficients(np.column_stack([first, second]), 2)
        drawn = np.concatenate([part.cohen(weights) for weights in drawn_weights(None, 150, 300, trial)])
        score = interval(part.cohen(once(part))[0], drawn, 0.95, "")
        inside += score.low <= 0.6 <= score.high
    assert inside >= 88


# The authors' data


@pytest.mark.shared
@pytest.mark.parametrize(
    ("definition", "kappa"),
    [
        ("title-type", 0.44),
        ("title-type-by-rule", 0.42),
        ("leak", 0.559),
        ("variant-type", 0.74),
        ("variant-type-by-rule", 0.67),
        ("variant-type-and-topic", 0.66),
        ("mean-label", 0.597),
    ],
)
def test_the_kappas_of_the_paper_by_their_names(agreement_files: list[str], definition: str, kappa: float) -> None:
    result = agreement(agreement_files, definition=definition, resamples=0)
    digits = 3 if kappa * 100 != round(kappa * 100) else 2
    (part,) = result.compared
    assert round(part.scores["cohen"].value, digits) == kappa
    assert (part.units, part.ratings) == (103, 206)
    assert definition in repr(result)


@pytest.mark.shared
def test_nine_labels_of_the_paper(agreement_files: list[str]) -> None:
    result = agreement(agreement_files, definition="mean-label", drawing="topics", seed=3)
    (part,) = result.compared
    rows = labels_of(agreement_files)
    assert len(part.labels) == 9
    for label in part.labels:
        given_to = [[label.label in labels for labels in side] for side in rows]
        assert label.scores["cohen"].value == pytest.approx(cohen_kappa_score(*given_to))
        assert label.given == sum(map(sum, given_to))
    score = part.scores["cohen"]
    assert score.value == pytest.approx(np.mean([label.scores["cohen"].value for label in part.labels]))
    assert score.low < score.value < score.high
    assert agreement(agreement_files, definition="mean-label", drawing="topics", seed=3).json() == result.json()


@pytest.mark.shared
def test_label_sets_and_the_matrix(agreement_files: list[str]) -> None:
    rows = labels_of(agreement_files)
    sets = [[" ".join(sorted(labels)) for labels in side] for side in rows]
    result = agreement(agreement_files, definition="label-set", resamples=0)
    assert result.compared[0].scores["cohen"].value == pytest.approx(cohen_kappa_score(*sets))
    (part,) = agreement(agreement_files, definition="leak", resamples=0).compared
    leaks = [["Different Topic" not in labels for labels in side] for side in rows]
    assert part.answers == ("leak", "no leak")
    assert part.matrix.tolist() == [
        [sum((a, b) == pair for a, b in zip(*leaks, strict=True)) for pair in ((x, True), (x, False))]
        for x in (True, False)
    ]


# Sources, annotators, models


def labelled(path: Path, rows: list[tuple[object, ...]], columns: str = "topic_id query_text label annotator") -> str:
    return str(written_csv(path, columns.split(), rows))


def test_three_annotators_with_gaps(tmp_path: Path) -> None:
    rows = [
        (1, f"query {unit}", str(grade), f"person {at}")
        for unit, row in enumerate(SPARSE.tolist())
        for at, grade in enumerate(row)
        if grade >= 0
    ]
    result = agreement(
        labelled(tmp_path / "a.csv", rows), definition="grade", scheme="relevance-passages", resamples=50
    )
    (part,) = result.compared
    assert part.scores["krippendorff"].value == pytest.approx(0.8721321354560604)
    assert list(part.scores) == ["percentage", "fleiss", "krippendorff"]
    assert len(part.pairs) == 6
    shared = {(one, two): (SPARSE[:, [one, two]] >= 0).all(axis=1) for one, two in itertools.combinations(range(4), 2)}
    assert [pair.units for pair in part.pairs] == [rows.sum() for rows in shared.values()]
    for pair, (columns, both) in zip(part.pairs, shared.items(), strict=True):
        kappa = pair.scores["cohen"]
        if both.sum() < 10:
            assert (kappa.value, kappa.reason) == (None, f"too few: {both.sum()} shared items, 10 needed")
            assert pair.scores["percentage"].value is not None
        else:
            assert kappa.value == pytest.approx(cohen_kappa_score(*SPARSE[both][:, columns].T))
    assert "too few" in repr(result)
    # Every ordered pair of ratings of an item is in the matrix.
    each = (SPARSE >= 0).sum(axis=1)
    assert part.matrix.sum() == (each * (each - 1)).sum()
    assert (part.matrix == part.matrix.T).all()
    assert [annotator.name for annotator, _ in result.annotators] == [f"person {at}" for at in range(4)]
    two = agreement(
        labelled(tmp_path / "a.csv", rows), definition="grade", scheme="relevance-passages",
        annotators=["person 2", "person 0"], resamples=0,
    )  # fmt: skip
    assert list(two.compared[0].scores) == ["percentage", "cohen", "krippendorff"]
    with pytest.raises(InputError, match=r"no annotator 'person 9'\. there are person 0, person 1"):
        agreement(labelled(tmp_path / "a.csv", rows), annotators=["person 9"])


def test_one_class_only_has_no_kappa(tmp_path: Path) -> None:
    rows = [(1, f"q{unit}", "leak", who) for unit in range(12) for who in "ab"]
    result = agreement(labelled(tmp_path / "a.csv", rows), definition="leak")
    score = result.compared[0].scores
    assert score["percentage"].value == 1
    assert score["cohen"] == (None, None, None, "undefined, since all gave one answer")
    assert score["krippendorff"].value is None
    assert "leak, Cohen's kappa: undefined, since all gave one answer." in repr(result)
    mean = agreement(labelled(tmp_path / "a.csv", rows), definition="mean-label").compared[0].scores["cohen"]
    assert mean.reason == "no label was given to some items only"
    apart = [(1, "x", "leak", "a"), (1, "y", "leak", "b")]
    nothing = agreement(labelled(tmp_path / "b.csv", apart), definition="leak").compared[0]
    assert (nothing.units, nothing.scores["percentage"].reason) == (0, "no item has two ratings")


def test_who_is_compared(tmp_path: Path) -> None:
    alone = labelled(tmp_path / "a.csv", [(1, "x", "leak", "a"), (1, "y", "no leak", "a")])
    with pytest.raises(InputError, match="agreement needs two annotators; there is a"):
        agreement(alone)
    with pytest.raises(InputError, match=r"no definition 'title' for the scheme 'leak'\. one of leak, label-set"):
        agreement([alone, f"b={alone}"], definition="title")
    with pytest.raises(InputError, match=r"'a' on topic 1, 'x': leak \(.*b.csv:2\), no leak") as caught:
        agreement(labelled(tmp_path / "b.csv", [(1, "x", "leak", "a"), (1, "x", "no leak", "a")]))
    assert caught.value.line == 3
    own = labelled(tmp_path / "c.csv", [(1, "x", "odd", "a"), (1, "x", "even", "b"), (1, "y", "odd", "a")])
    assert [part.definition.name for part in agreement(own).compared] == ["label-set", "mean-label"]
    assert agreement(own).settings["scheme"] is None


def test_files_that_know_unequally_much_meet(tmp_path: Path) -> None:
    """A file without query ids names the same units as one that has them, where only one fits."""
    full = labelled(
        tmp_path / "full.csv",
        [(1, "a", 7, "leak"), (1, "b", 8, "leak"), (2, "b", 8, "no leak"), (1, "c", 1, "leak"), (1, "c", 2, "leak")],
        "topic_id query_text query_id label",
    )
    bare = labelled(
        tmp_path / "bare.csv",
        [(1, "a ", "no leak"), (2, "b", "no leak"), (1, "c", "leak")],
        "topic_id query_text label",
    )
    ratings = read_ratings([full, bare])
    assert [a.name for a in ratings.annotators] == ["full", "bare"]
    # "c" has two query ids in the one file, so that in the other it is a unit of its own.
    assert [rating.unit for rating in ratings.ratings] == [0, 1, 2, 3, 4, 0, 2, 5]
    assert agreement([full, bare], definition="leak", resamples=0).compared[0].units == 2


def test_models_are_never_mixed_in_silently(tmp_path: Path) -> None:
    items = [pair_item("1", f"query {number}", number) for number in range(16)]
    people = {
        "ann": {item.item_id: ["leak" if at < 9 else "no leak"] for at, item in enumerate(items)},
        "bob": {item.item_id: ["leak" if at < 8 else "no leak"] for at, item in enumerate(items)},
    }
    robot = {item.item_id: ["leak" if at % 2 or at == 4 else "no leak"] for at, item in enumerate(items)}
    model = Annotator("robot", "model", "tiny-1, prompt 12ab")
    path = store_of(tmp_path / "s.judged", load_scheme("leak"), items, {**people, "robot": robot}, [model])
    alone = agreement(path, definition="leak", resamples=0)
    a, b, r = ([("leak" in labels) for labels in side.values()] for side in (people["ann"], people["bob"], robot))
    assert alone.compared[0].scores["cohen"].value == pytest.approx(cohen_kappa_score(a, b))
    assert [(pair.first, pair.second) for pair in alone.models] == [
        ("robot", "ann"),
        ("robot", "bob"),
        ("robot", "people"),
    ]
    assert alone.models[0].scores["cohen"].value == pytest.approx(cohen_kappa_score(r, a))
    # On item 8 the two people are tied, and nobody settled it: fifteen are left.
    both = [at for at in range(16) if a[at] == b[at]]
    assert alone.models[2].units == 15
    decided = cohen_kappa_score([r[at] for at in both], [a[at] for at in both])
    assert alone.models[2].scores["cohen"].value == pytest.approx(decided)
    assert "not part of those above" in repr(alone)
    assert "robot: tiny-1, prompt 12ab." in repr(alone)
    mixed = agreement(path, definition="leak", resamples=0, include_models=True)
    assert [annotator.role for annotator, _ in mixed.annotators] == ["person", "person", "model"]
    assert "Not only people: these figures include the model robot." in repr(mixed)
    assert mixed.settings["include_models"] is True
    with Store.open(path) as store:
        store.add_annotator("judge", "adjudicator")
        store.record(items[8].item_id, "judge", "adjudicate", ["leak"])
        store.record(items[0].item_id, "bob", "skip", reason="unclear")
        settled = agreement(store, definition="leak", resamples=0)
    assert settled.models[2].units == 16
    assert settled.compared[0].units == 15
    assert len(settled.annotators) == 2
    only = agreement(path, annotators=["robot", "ann"], definition="leak", resamples=0)
    assert only.compared == ()
    assert only.json()["definitions"] == []
    assert [pair.second for pair in only.models] == ["ann", "people"]
    assert "Models against people.\n" in repr(only)
    assert "leak: Leak or no leak" in repr(only)
    with pytest.raises(InputError, match="there is nobody, and the model robot"):
        agreement(path, annotators=["robot"])


def test_versions_of_the_transfer_scheme(tmp_path: Path) -> None:
    rows = [("q1", "d1", "both", "V1 better"), ("q2", "d2", "only V1", "both"), ("q3", "d3", "neither", "only V2")]
    said = [(query, doc, label, who) for query, doc, *pair in rows for label, who in zip(pair, "ab", strict=True)]
    path = written_csv(tmp_path / "t.csv", ["query_id", "doc_id", "label", "annotator"], said)
    shares = {part.definition.name: part.scores["percentage"].value for part in agreement(path, resamples=0).compared}
    assert shares == pytest.approx({"label-set": 0, "V1": 1, "V2": 1 / 3, "mean-label": shares["mean-label"]})


@pytest.mark.parametrize("form", ["beside", "below"])
def test_labels_of_people_and_models_beside_each_other(form: str, tmp_path: Path) -> None:
    names = ("NONE", "PARTIAL", "FULL")
    labels = [(f"a{n:03d}", names[n % 3], names[n % 3 if n % 7 else (n + 1) % 3]) for n in range(42)]
    rows = ["answer_id,human,llm_judge", *(",".join(row) for row in labels)]
    if form == "below":
        long = (f"{item},{who},{label}" for item, *own in labels for who, label in zip("mj", own, strict=True))
        rows = ["item,annotator,label", *long]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
    ratings = read_ratings([tmp_path / "labels.csv"])
    assert len(ratings.units) == 42 and len(ratings.ratings) == 84
    if form == "beside":
        assert [(one.name, one.role) for one in ratings.annotators] == [("human", "person"), ("llm_judge", "model")]
    # Texts that only one column has are no labels.
    (tmp_path / "texts.csv").write_text(
        "answer_id,mood,topic_type\n" + "".join(f"a{n},m{n % 3},k{n % 2}\n" for n in range(9))
    )
    with pytest.raises(InputError, match="no column or key 'label'"):
        read_ratings([tmp_path / "texts.csv"])
