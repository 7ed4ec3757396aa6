"""What the audit of assessors compares, and by which rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from truerank.audits.assessors.sampling_designs import Design
from truerank.errors import OptionError
from truerank.loading import signed_number
from truerank.measures.significance import Correction
from truerank.options import Flag, Options, Range, Votes

Outside = Literal["nearest", "drop", "fail"]
#: The rules for grades outside the scale, in words.
OUTSIDE: Final[dict[str, str]] = {
    "nearest": "a grade outside the scale counts as the nearest grade of the scale",
    "drop": "a pair with a grade outside the scale is left out",
    "fail": "a grade outside the scale is an error",
}
_SPAN: Final = re.compile(r"\s*(-?\d{1,9})\s*(?:-|\.\.)\s*(-?\d{1,9})\s*", re.ASCII)


@dataclass(frozen=True)
class AssessorRules(Options):
    """What is compared, and by which rules.

    Attributes:
        scale: the grades, such as 0-3 or 0,1,2; by default 0 to the highest grade of people.
        outside: a grade outside the scale counts as the nearest one, its pair is dropped, or it is an error.
        votes: how the grades of several people become one; a pair without one is left out of the comparison.
        correction: for the number of comparisons, between judges and between systems.
        margin: a difference of scores that you can accept, in the unit of the measure.
        people_sample: where a model graded more pairs than people: how people's pairs were drawn from them, for
            corrected scores; uniform, grade-rank, disagreement or topics (whole ones).
    """

    scale: Annotated[str, Flag(metavar="GRADES")] = ""
    outside: Outside = "nearest"
    votes: Votes = "majority"
    correction: Correction = "bonferroni"
    margin: Annotated[float, Range(above=0)] = 0.02
    people_sample: Design = "uniform"

    def __post_init__(self) -> None:
        """A scale that cannot be read is found before anything else is."""
        super().__post_init__()
        scale_of(self.scale, (1,))


def scale_of(text: str, seen: tuple[int, ...]) -> tuple[int, ...]:
    """The grades of a scale, the lowest first."""
    if not text:
        return tuple(range(max(1, *seen) + 1))
    if match := _SPAN.fullmatch(text):
        grades = list(range(int(match[1]), int(match[2]) + 1))
    else:
        read = [signed_number(part.strip()) for part in text.split(",")]
        grades = sorted({grade for grade in read if grade is not None})
        if None in read:
            raise OptionError("scale", f"'{text}' is not a scale", "write 0-3, or grades such as 0,1,2")
    if len(grades) < 2:
        raise OptionError("scale", f"'{text}' has fewer than two grades", "write 0-3, or grades such as 0,1,2")
    return tuple(grades)
