"""Words of short texts: what is left out of the probe beforehand changes no pair."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from truerank.overlaps import OverlapRules, keep, wording
from truerank.overlaps.wording import same_words
from truerank.text.rewordings import KINDS, reword
from truerank.text.wording import WordingProbe
from truerank.work.jobs import Job

CONTENT = (
    "jupiter moon galaxy children women catalogue color colour nasa ussr usa bookshop book shop notebook note engine "
    "search define meaning rabies berlin vitamin c u s n a fire london sleeping sleep data base database the of in a "
    "what is does how not use used knew form from past paste"
).split()


RARE = [f"{one}{other}{last}{one}" for one in "bcdfgh" for other in "aeiou" for last in "klmnprst"]


def _texts(draw: random.Random, count: int) -> list[str]:
    """Texts of frequent words, with rare ones in most."""
    return [
        " ".join(
            (*draw.choices(CONTENT, k=draw.choice([1, 2, 3, 4])), *draw.choices(RARE, k=draw.choice([0, 1, 2, 3])))
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_those_of_a_probe_with_all_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    draw = random.Random(seed)
    tests = _texts(draw, 400)
    training = _texts(draw, 30)
    for kind in KINDS:
        for text in draw.sample(tests, 3):
            if made := reword(kind, text, draw):
                training.append(made)
    training += ["u s a fire", "n a s a moon", "data base search", "note book", "bookshop london", "londn fire"]
    rules = OverlapRules()
    numbered = [[(str(n), text) for n, text in enumerate(texts)] for texts in (tests, training)]
    left, right = (keep(side, rules, Job(tmp_path / name)) for side, name in zip(numbered, "lr", strict=True))
    asked: list[int] = []

    class Recorded(WordingProbe):
        def __init__(self, texts: tuple[str, ...]) -> None:
            asked.append(len(texts))
            super().__init__(texts)

    monkeypatch.setattr(wording, "WordingProbe", Recorded)
    pairs = same_words(left.parts[0], right.parts[0], Job(tmp_path / "pairs"))
    says = {1: "words", 2: "letters"}
    wanted = {(number, place, says[what]) for place, number, what in WordingProbe(tests)(training)}
    assert set(pairs.iter_rows()) == wanted
    assert len(wanted) > 10
    assert asked[0] < 0.8 * len(tests)
    # From the words that were kept, too.
    assert same_words(left.parts[0], right.parts[0], Job(tmp_path / "again")).equals(pairs)
