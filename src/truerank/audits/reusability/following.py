"""A stopping rule applied to what was found: how many judgments each topic gets, which are kept, and why not the others.

A rule that never stops is bounded by the end of the trace, and the outcome says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.audits.reusability.stopping import StoppingRule

__all__ = ["Found", "Outcome", "apply_rule", "follow"]

Ints = NDArray[np.int64]
#: How an outcome came about: the rule ended or dropped the topic; it wanted more than there is; the budget was spent.
Ending = Literal["stop", "drop", "trace", "budget"]
#: A rule that asks for one judgment at a time still ends with the trace; this is for one that asks for none.
_STUCK: Final = "asks to go on, but not for more judgments than there are"


class Found(NamedTuple):
    """What a topic's judgments, in their order, found: `found` counts the relevant ones after each, shape (judgments,).

    `pool` is the number of those that are the pool, the first ones; `whole` says that no document is left to judge.
    """

    topic_id: str
    pool: int
    found: Ints
    whole: bool = False


class Outcome(NamedTuple):
    """What a rule made of a topic.

    `judged` and `relevant` are those of the prefix; `kept` says whether the topic is in the evaluation set, and
    `why_not` why it is not; `ending` and `reason` say what ended it; `steps` how often the rule said to go on; `until`
    is the number of judgments that the rule still wants, 0 where it wants none.
    """

    topic_id: str
    pool: int
    judged: int
    relevant: int
    kept: bool
    why_not: str
    ending: Ending
    reason: str
    steps: int
    until: int = 0


def follow(rule: StoppingRule, found: Found) -> Outcome:
    """One topic as far as the rule, or the judgments, go.

    Args:
        rule: the rule.
        found: the topic's judgments; all the rule may use.

    Raises:
        InputError: the rule fails, answers something else than a decision, or makes no progress.
    """
    return apply_rule(rule, [found])[0]


def apply_rule(rule: StoppingRule, topics: Sequence[Found], *, budget: int | None = None) -> tuple[Outcome, ...]:
    """All topics as far as the rule, the judgments and the assessors' time go.

    The topics advance together, one step of the rule at a time in the order given, since one budget serves all. Where
    it runs out in the middle of a step, the step is cut there.

    Args:
        rule: the rule.
        topics: their judgments.
        budget: judgments over all topics; None for no bound.

    Returns:
        The outcomes in the order of the topics.

    Raises:
        InputError: as `follow`.
    """
    raise NotImplementedError
