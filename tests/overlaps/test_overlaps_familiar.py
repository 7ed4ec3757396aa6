"""Familiar shingles, damaged words and the form in which texts are compared."""

from __future__ import annotations

import random
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from truerank.near_duplicates import Shingles, keep
from truerank.near_duplicates.shingles import CommonShingles, shingled
from truerank.overlaps import OverlapRules, compare
from truerank.overlaps.kept_texts import ComparedForm
from truerank.overlaps.wording import Common, familiar, without_familiar
from truerank.work.jobs import Job

WORDS = [f"{first}{second}" for first in "barn copper delta ember fossil granite harbour island".split() for second in
         "ed ing er wise ly ship ful ness".split()]  # fmt: skip
RULES = OverlapRules(ngram_share=0.2, similarity=0.2, containment=0.3)
TEMPLATE = (
    "The {} department of our town looks for a {} who can start before the end of {}; please write to the desk for "
    "{} and name the number of this offer in your letter and tell us why you like {} so much"
)


def sentence(draw: random.Random, size: int) -> str:
    return " ".join(draw.sample(WORDS, size))


def found(test: dict[str, str], training: dict[str, str]) -> set[tuple[str, str]]:
    pairs = compare(test.items(), training.items(), RULES).frame
    return set(pairs.select("test_id", "training_id").iter_rows())


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text),
        "\u00ad".join,
        lambda text: text.replace("e", "e\u200b"),
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: text.replace("fi", "\ufb01"),
        lambda text: text.translate({48 + digit: 0x660 + digit for digit in range(10)}),
        lambda text: text.replace("configured", "con-\n  figured"),
    ],
)
def test_a_text_is_compared_as_it_is_read(change: object) -> None:
    text = "The café was first configured in 1998, with 20 seats"
    changed = change(text)  # type: ignore[operator]
    assert changed != text
    assert ComparedForm()(changed) == ComparedForm()(text) == text


def test_another_text_of_a_template_is_no_copy_but_a_damaged_one_is() -> None:
    draw = random.Random(1)
    facts = draw.sample(WORDS, 60)
    texts = [TEMPLATE.format(*facts[at : at + 5]) for at in range(0, 60, 5)]
    test, others = (
        {f"{name}{at}": text for at, text in enumerate(some)} for name, some in (("t", texts[:6]), ("o", texts[6:]))
    )
    damaged = {"copy": test["t3"].replace("before the end", "until the last day").replace("your letter", "an e-mail")}
    assert found(test, {**others, **damaged}) == {("t3", "copy")}
    # Of two texts nothing says that they have a template.
    assert ("t0", "o0") in found({"t0": test["t0"], "t1": test["t1"]}, others)


def test_copies_of_each_other_in_the_test_side_all_leak() -> None:
    draw = random.Random(2)
    text = sentence(draw, 40)
    test = {f"t{at}": f"{text} {WORDS[at]}" for at in range(6)}
    assert found(test, {"x": text}) == {(name, "x") for name in test}


def test_familiar_shingles_are_those_that_four_texts_hold(tmp_path: Path) -> None:
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS[:9], k=30)) for _ in range(40)]
    side = keep(((str(at), text) for at, text in enumerate(texts)), Shingles(), Job(tmp_path))
    every = shingled(texts, Shingles())
    holders: dict[int, int] = {}
    for at in range(len(texts)):
        for one in every.of(at).tolist():
            holders[one] = holders.get(one, 0) + 1
    expected = sorted(one for one, count in holders.items() if count >= 4)
    assert 0 < len(expected) < len(holders)
    assert familiar(every.shingles, side).tolist() == expected


def test_familiar_shingles_count_where_a_damaged_copy_has_lost_both_kinds() -> None:
    counts = Common(np.array([20, 20, 20]), np.array([40, 40, 40]), np.array([40, 40, 40]))
    # Of 40 shingles 20 are familiar; the pairs share 10, 19 and 20 of these.
    usual = Common(np.array([10, 19, 20]), np.array([20, 20, 39]), np.array([20, 20, 20]))
    left = without_familiar(counts, usual)
    assert left.both.tolist() == [20, 1, 20]
    assert left.left.tolist() == [40, 20, 40]


def test_common_shingles_are_those_of_sets() -> None:
    draw = np.random.default_rng(4)
    sides = [[np.unique(draw.integers(0, 90, 40).astype(np.uint64) << np.uint64(50)) for _ in range(9)] for _ in "ab"]
    values = np.concatenate([one for side in sides for one in side])
    owner = np.concatenate([np.full(len(one), at) for side in sides for at, one in enumerate(side)])
    marked = values % np.uint64(7) == 0
    common = CommonShingles.of(9, values, owner, marked)
    both = [set(one.tolist()) & set(other.tolist()) for one, other in zip(*sides, strict=True)]
    assert common.every.tolist() == [len(one) for one in both]
    assert common.marked.tolist() == [sum(value % 7 == 0 for value in one) for one in both]


TEXT = "the committee will decrease its quarterly budget for northern harbours"


@pytest.mark.parametrize(
    ("changed", "leaks"),
    [
        ("the cornmittee will decrease its quartcrly budget for northern harb0urs", True),
        ("thecommittee will decrease its quarterly bud get for northem harbours", True),
        ("the committee will decrease its quarterly salary for northern painters", False),
        ("the committee will increase its quarterly budget for northern harbour", False),
    ],
)
def test_damaged_words_are_found_and_other_words_are_not(changed: str, leaks: bool) -> None:
    others = {f"n{at}": f"{one} increase {other}" for at, (one, other) in enumerate(pairwise(WORDS))}
    assert (("t", "x") in found({"t": TEXT}, {"x": changed, **others})) == leaks


def test_another_number_is_no_damage() -> None:
    test = {"t": "minutes of the council of the northern harbour towns in 1990 and after"}
    assert not found(test, {"x": "minutes of the council of the northem harbour towns in 1991 and aftcr"})
    assert found(test, {"x": "minutes of the council of the northem harbour towns in l990 and aftcr"})


@pytest.mark.parametrize(
    ("test", "training", "leaks"),
    [
        ("Milloin Chongqingin pommitukset alkoivat?", "MilloinChongqinginpommituksetalkoivat", True),
        ("ఐరోపా ఖండం యొక్క విస్తీర్ణం ఎంత?", "ఐరోపాఖండంయొక్కవిస్తీర్ణంఎంత", True),
        ("Kuka Väinö Vuori oli?", "Kuka Väinöö Vuor oli", True),
        ("సీతారామనగర్ గ్రామ విస్తీర్ణం ఎంత?", "సీతారామనగర గ్రామమ విస్తీర్ణం ఎంత", True),
        ("Kuka Väinö Vuori oli?", "Kuka Väinö Vuorinen on nyt", False),
        ("Laki vuodelta 2011 mopoista", "Laki vuodelta 2012 mopoista", False),
    ],
)
def test_lost_blanks_and_other_endings_are_seen_in_any_script(test: str, training: str, *, leaks: bool) -> None:
    others = {str(at): f"{WORDS[at]} {WORDS[at + 1]} {WORDS[at + 2]}" for at in range(20)}
    pairs = compare([("t", test)], [("x", training), *others.items()], RULES).frame
    assert (pairs.filter(training_id="x")["evidence"].to_list() == ["letters"]) == leaks
