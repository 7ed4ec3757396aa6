"""The rule for several voices: how what was said about one thing becomes one answer, for all commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

from truerank.errors import OptionError
from truerank.options import Votes

__all__ = ["VOTES", "Votes", "checked_votes", "decide"]

_Answer = TypeVar("_Answer", bound=Hashable)

#: What each rule says, for help and reports.
VOTES: Final[dict[str, str]] = {
    "majority": "the answer of more than half of the annotators; somebody who contradicts himself is an error",
    "unanimous": "the answer that every voice gave",
    "any": "the first of the possible answers, such as a leak before none, that any voice gave",
    "first": "what was said first",
    "last": "what was said last",
}


def checked_votes(votes: str) -> None:
    """Checks the name of a rule."""
    if votes not in VOTES:
        raise OptionError("votes", f"'{votes}' is not one of the choices", f"choose one of {', '.join(VOTES)}")


def decide(said: Sequence[tuple[Hashable, _Answer]], votes: Votes, order: Sequence[_Answer] = ()) -> _Answer | None:
    """The answer that holds after all voices were heard."""
    answers = [answer for _, answer in said]
    if len(set(answers)) < 2:
        return answers[0] if answers else None
    if votes == "unanimous":
        return None
    if votes == "any":
        return next((answer for answer in order if answer in answers), None)
    if votes in ("first", "last"):
        return answers[0 if votes == "first" else -1]
    # Whoever gave two answers has none that counts, but remains one of the voices.
    given: dict[Hashable, set[_Answer]] = {}
    for voice, answer in said:
        given.setdefault(voice, set()).add(answer)
    counts = Counter(answer for own in given.values() if len(own) == 1 for answer in own)
    return next((answer for answer, count in counts.items() if 2 * count > len(given)), None)
