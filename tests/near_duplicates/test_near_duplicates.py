"""Near-duplicates against all pairs, compared by sets of words in plain Python."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError, OptionError
from truerank.near_duplicates import Shingles, between, keep, open_sketches, plan, sketches, within
from truerank.near_duplicates.shingling import shingled
from truerank.text.normalising import normalise
from truerank.work.jobs import Job

Texts = Sequence[tuple[str, str]]
Pair = tuple[str, str, str, float, float, float]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def shingle_set(text: str, options: Shingles) -> frozenset[object]:
    units: Sequence[str] = words(text) if options.shingle_unit == "words" else " ".join(words(text))
    size = min(options.shingle_size, len(units))
    return frozenset(tuple(units[at : at + size]) for at in range(len(units) - size + 1)) if units else frozenset()


def related(left: str, right: str, options: Shingles) -> tuple[str, float, float, float] | None:
    if not (normalise(left) and normalise(right)):
        return None
    if normalise(left) == normalise(right):
        return "exact", 1.0, 1.0, 1.0
    one, other = shingle_set(left, options), shingle_set(right, options)
    if not one or not other:
        return None
    if words(left) == words(right):
        return "reformatted", 1.0, 1.0, 1.0
    common = len(one & other)
    shares = common / len(one | other), common / len(one), common / len(other)
    if shares[0] >= options.similarity:
        return "near", *shares
    smaller = min((len(one), len(words(left))), (len(other), len(words(right))))
    if common / smaller[0] >= options.containment and smaller[1] >= options.contained_words:
        return "contains", *shares
    return None


def all_pairs(texts: Texts, options: Shingles) -> list[Pair]:
    """All related pairs, of repeated texts the one with their first only."""
    found = []
    firsts: list[tuple[str, str]] = []
    for right_id, right in texts:
        twins = [
            (left_id, relation)
            for left_id, left in firsts
            if (relation := related(left, right, options)) and relation[0] in ("exact", "reformatted")
        ]
        if twins:
            left_id, relation = min(twins, key=lambda twin: twin[1][0])
            found.append((left_id, right_id, *relation))
            # A reformatted one is the first of its text: later ones with that text are exact duplicates of it.
            if relation[0] == "reformatted":
                firsts.append((right_id, right))
            continue
        firsts.append((right_id, right))
    first_words = {}
    for name, text in texts:
        first_words.setdefault(tuple(words(text)) or normalise(text), (name, text))
    for (left_id, left), (right_id, right) in itertools.combinations(first_words.values(), 2):
        if (relation := related(left, right, options)) and relation[0] in ("near", "contains"):
            found.append((left_id, right_id, *relation))
    return sorted(found)


def rows(frame: pl.DataFrame) -> list[Pair]:
    return sorted(frame.drop("left_words", "right_words").iter_rows())


@pytest.fixture
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few documents and parts of a few shingles, so that there are many."""
    monkeypatch.setattr(sketches, "_DOCUMENTS", 3)
    monkeypatch.setattr(plan, "_PART", 20)


signs = st.sampled_from([" ", " ", " ", ", ", ". ", "\n", " - ", "  "])
some_words = st.sampled_from("the a cat dog sat on mat and Ran home Straße naïve x1 2020".split())


@st.composite
def collections(draw: st.DrawFn) -> Texts:
    """Texts of few different words, and texts made of them: reformatted, cut, changed, merged, repeated."""
    texts = draw(st.lists(st.lists(st.tuples(some_words, signs), max_size=14).map(joined), min_size=1, max_size=8))
    for _ in range(draw(st.integers(0, 8))):
        text = draw(st.sampled_from(texts))
        change = draw(st.sampled_from(["same", "case", "signs", "cut", "word", "merged", "spaces"]))
        parts = text.split()
        at = draw(st.integers(0, max(0, len(parts) - 1)))
        texts.append(
            {
                "same": text,
                "case": text.upper(),
                "signs": " ".join(f"{part};" for part in parts),
                "cut": " ".join(parts[at:]),
                "word": " ".join([*parts[:at], draw(some_words), *parts[at + 1 :]]),
                "merged": f"{text} {draw(st.sampled_from(texts))}",
                "spaces": f" \t{text} \n",
            }[change]
        )
    return [(f"d{number:02d}", text) for number, text in enumerate(draw(st.permutations(texts)))]


def joined(parts: Sequence[tuple[str, str]]) -> str:
    return "".join(word + sign for word, sign in parts)


option_values = st.builds(
    Shingles,
    shingle_unit=st.sampled_from(["words", "letters"]),
    shingle_size=st.integers(1, 4),
    similarity=st.sampled_from([0.3, 0.5, 0.7, 0.8, 1.0]),
    containment=st.sampled_from([0.4, 0.6, 0.8, 1.0]),
    contained_words=st.integers(1, 5),
)


@settings(max_examples=40, deadline=None)
@given(texts=collections(), options=option_values)
def test_pairs_within_are_all_pairs(texts: Texts, options: Shingles) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketches, "_DOCUMENTS", 3)
        patch.setattr(plan, "_PART", 20)
        found = within(texts, options)
    assert rows(found.pairs) == all_pairs(texts, options)
    assert found.crowded == 0


@settings(max_examples=40, deadline=None)
@given(texts=collections(), options=option_values, cut=st.integers(0, 16))
def test_pairs_between_are_all_pairs(texts: Texts, options: Shingles, cut: int) -> None:
    left, right = texts[:cut], texts[cut:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketches, "_DOCUMENTS", 3)
        patch.setattr(plan, "_PART", 20)
        found = between(left, right, options)
    expected = []
    firsts: dict[object, tuple[str, str]] = {}
    for name, text in right:
        firsts.setdefault(tuple(words(text)) or normalise(text), (name, text))
    for name, text in left:
        related_to = [(other, related(text, there, options)) for other, there in right]
        same = [(other, relation) for other, relation in related_to if relation and relation[0] == "exact"]
        same = same or [(other, relation) for other, relation in related_to if relation and relation[0] == "reformatted"]
        expected += [(name, other, *relation) for other, relation in same[:1]]
        for other, there in firsts.values():
            if (relation := related(text, there, options)) and relation[0] in ("near", "contains"):
                expected.append((name, other, *relation))
    assert rows(found.pairs) == sorted(expected)


@settings(max_examples=15, deadline=None)
@given(texts=collections(), options=option_values, more=st.floats(0, 1))
def test_higher_thresholds_without_comparing_again(texts: Texts, options: Shingles, more: float) -> None:
    similarity = options.similarity + more * (1 - options.similarity)
    containment = options.containment + more * (1 - options.containment)
    raised = within(texts, options).rethreshold(similarity, containment)
    again = within(texts, raised.options)
    assert rows(raised.pairs) == rows(again.pairs)
    assert raised.groups.equals(again.groups)
