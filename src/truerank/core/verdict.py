"""A verdict: one type, and one table of words, for all audits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

#: How good or bad a verdict is. Each level has one colour and one sign everywhere; "unknown" is never good.
Level = Literal["good", "unknown", "doubt", "bad"]
#: From the best to the worst.
ORDER: Final[tuple[Level, ...]] = ("good", "unknown", "doubt", "bad")

#: The level of every word that an audit concludes with.
LEVELS: Final[Mapping[str, Level]] = {
    "CLEAN": "good",
    "SOUND": "good",
    "USABLE": "good",
    "HELD": "good",
    "HOLDS": "good",
    "SAME": "good",
    "EXPLAINED": "good",
    "COMPARABLE": "good",
    "FIRST": "good",
    "UNKNOWN": "unknown",
    "CANNOT TELL": "unknown",
    "AMBIGUOUS": "unknown",
    "NOT EXPLAINED": "doubt",
    "DIFFERENT": "doubt",
    "MIXED": "doubt",
    "TIED": "doubt",
    "WITH CARE": "doubt",
    "HOLDS EXCEPT": "doubt",
    "HOLDS SMALLER": "doubt",
    "warning": "doubt",
    "CONTAMINATED": "bad",
    "FAULTY": "bad",
    "FAULTY IN PART": "bad",
    "NOT USABLE": "bad",
    "NOT COMPARABLE": "bad",
    "NOT HELD": "bad",
    "DOES NOT HOLD": "bad",
    "FILES AT FAULT": "bad",
    "error": "bad",
    "broken": "bad",
    "failed": "bad",
}


@dataclass(frozen=True)
class Verdict:
    """What an audit concluded about one thing.

    Attributes:
        word: the verdict in one word of the audit ("CONTAMINATED", "UNKNOWN"), in capitals, or a figure.
        sentence: the verdict in one sentence, with its figures.
        settles: what the verdict means, and what would settle or change it.
        subject: the thing ("robust04").
        level: of a figure; that of a word is in `LEVELS`.
        share: a share between 0 and 1 that is drawn as a bar; None for no bar.
        sign: an inert SVG element, drawn with `currentColor`, that shows the verdict without words.
    """

    word: str
    sentence: str
    rests_on: str = ""
    settles: str = ""
    subject: str = ""
    level: Level = "unknown"
    share: float | None = None
    sign: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", LEVELS.get(self.word, self.level))

    @property
    def badge(self) -> bool:
        """Whether the word is a verdict and not a figure or a remark."""
        return self.word.isupper()
