"""The sensitivity check says the same whether a low-precision pass goes before the full one or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from toy_encoder import TrigramEncoder
from truerank.audits.leakage.sensitivity import check
from truerank.records import TopicText
from truerank.text.normalising import normalise
from truerank.text.wording import WordingProbe
from truerank.vectors.encoders import Encoder, Vectors, WordsOnly
from truerank.vectors.search import SearchPlan

TITLES = (
    "international organized crime", "poliomyelitis and post-polio", "hubble telescope achievements",
    "endangered species of mammals", "african civilian deaths", "new hydroelectric projects", "parkinsons disease",
    "tropical storms in the gulf", "women in parliaments", "magnetic levitation maglev trains",
)  # fmt: skip
DESCRIPTIONS = tuple(f"what is known about {title} and who is affected by it" for title in TITLES)
TEXTS = tuple(
    TopicText("set", str(number), name, 0, text)
    for name, every in (("title", TITLES), ("description", DESCRIPTIONS))
    for number, text in enumerate(every)
)


@dataclass
class Counting:
    """An encoder that remembers what it was asked for."""

    encoder: Encoder
    asked: Counter[str] = field(default_factory=Counter)

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked.update(texts)
        return self.encoder.encode(texts)


def plan_of(
    exact: Counting, screen: Counting | None = None, error: float | None = None, *, worded: bool = False
) -> SearchPlan:
    texts = [normalise(text.text) for text in TEXTS]
    vectors = exact.encoder.encode(texts)
    return SearchPlan(
        lambda: exact,  # type: ignore[arg-type, return-value]
        lambda: vectors,
        floor=0.85,
        top_k=0,
        probe=WordingProbe(texts) if worded else None,
        open_screen=None if screen is None else lambda: screen,  # type: ignore[arg-type, return-value]
        error=error,
    )


# The last two errors are below what the encoder shows: the margin is widened.
@pytest.mark.parametrize(("noise", "error"), [(0.01, None), (0.01, 0.02), (0.05, None), (0.05, 0.004), (0.1, 0.01)])
def test_figures_do_not_depend_on_the_first_pass(
    noise: float, error: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truerank.vectors.search._WORTH_A_PILOT", 1)
    exact, again, screen = (Counting(TrigramEncoder(noise=each)) for each in (0.0, 0.0, noise))
    whole = check(TEXTS, plan_of(exact))
    assert check(TEXTS, plan_of(again, screen, error)) == whole
    by_encoder = [row["by"]["encoder"] / row["planted"] for row in whole["set"]["kinds"] if row["planted"]]
    assert min(by_encoder) < 0.5 < max(by_encoder)
    # Each distinct rewording goes once through full precision, or through the first pass and some of them again.
    assert len(exact.asked) > 250
    assert set(exact.asked.values()) == {1}
    assert set(again.asked) <= set(screen.asked) == set(exact.asked)
    if noise == 0.01 and error:
        assert set(screen.asked.values()) == {1}
        assert len(again.asked) < len(exact.asked) / 3


def test_a_first_pass_that_errs_more_than_it_says_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail: without the second pass the figures differ."""
    monkeypatch.setattr("truerank.vectors.neighbours.TRUSTED", float("inf"))
    whole = check(TEXTS, plan_of(Counting(TrigramEncoder())))
    trusted = check(TEXTS, plan_of(Counting(TrigramEncoder()), Counting(TrigramEncoder(noise=0.3)), 1e-6))
    assert trusted != whole


def test_the_encoder_is_asked_only_about_what_words_and_letters_do_not_find() -> None:
    everything, rest, nothing = Counting(TrigramEncoder()), Counting(TrigramEncoder()), Counting(WordsOnly())
    by_encoder, both, by_words = (
        check(TEXTS, plan_of(counting, worded=worded))["set"]["kinds"]
        for counting, worded in ((everything, False), (rest, True), (nothing, True))
    )
    assert set(rest.asked) < set(everything.asked)
    assert set(rest.asked) == set(nothing.asked)
    for whole, alone, more in zip(both, by_encoder, by_words, strict=True):
        assert whole["found"] == more["found"] + whole["by"]["encoder"]
        assert max(alone["found"], more["found"]) <= whole["found"] <= alone["found"] + more["found"]
