"""A stopping rule applied to what was found: how many judgments each topic gets, which are kept, why not the others.

A rule that never stops is bounded by the end of the trace, and the outcome says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from truerank.arrays import Ints
from truerank.audits.reusability.stopping import Decision, StoppingRule, TopicProgress
from truerank.errors import OptionError

#: How an outcome came about: the rule ended or dropped the topic; it wanted more than there is; the budget was spent.
Ending = Literal["stop", "drop", "trace", "budget"]
_STUCK: Final = "asks to go on, but not for more judgments than there are"


class TopicJudgments(NamedTuple):
    """What a topic's judgments, in their order, found: `found` counts the relevant ones after each, shape (judgments,).

    `pool` is the number of those that are the pool, the first ones; `whole` says that no document is left to judge.
    """

    topic_id: str
    pool: int
    found: Ints
    whole: bool = False


class TopicOutcome(NamedTuple):
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


def follow(rule: StoppingRule, found: TopicJudgments) -> TopicOutcome:
    """One topic as far as the rule, or the judgments, go.

    Args:
        rule: the rule.
        found: the topic's judgments; all the rule may use.

    Raises:
        InputError: the rule fails, answers something else than a decision, or makes no progress.
    """
    return apply_rule(rule, [found])[0]


def apply_rule(
    rule: StoppingRule, topics: Sequence[TopicJudgments], *, budget: int | None = None
) -> tuple[TopicOutcome, ...]:
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
    walks = [_Walk(rule, topic) for topic in topics]
    spent, live = 0, list(walks)
    while live:
        for walk in live:
            walk.step(None if budget is None else budget - spent)
            spent = sum(one.judged for one in walks) if budget is not None else 0
        live = [walk for walk in live if walk.ending is None]
    return tuple(walk.outcome() for walk in walks)


class _Walk:
    """One topic on its way."""

    def __init__(self, rule: StoppingRule, topic: TopicJudgments) -> None:
        self._rule, self._topic = rule, topic
        self.judged = 0
        self.ending: Ending | None = None
        self._steps, self._reason, self._until = 0, "", 0

    def step(self, left: int | None) -> None:
        """Asks the rule once and goes as far as it says; `left` judgments can still be paid for."""
        topic = self._topic
        decision = self._asked()
        if decision.action != "continue":
            self.ending, self._reason, self._until = decision.action, decision.reason, 0
            return
        self._steps += 1
        self._until = decision.until
        paid = len(topic.found) if left is None else self.judged + left
        reached = min(decision.until, len(topic.found), paid)
        if reached < decision.until:
            self.ending = "budget" if reached == paid and left is not None else "trace"
            self._reason = self._cut_short(reached)
        self.judged = reached

    def outcome(self) -> TopicOutcome:
        """What became of the topic."""
        topic, relevant = self._topic, self._relevant()
        why_not = self._rule.keeping.why_not(relevant, self.judged)
        if self.ending == "drop":
            why_not = self._reason
        return TopicOutcome(
            topic.topic_id, topic.pool, self.judged, relevant, not why_not, why_not, self.ending or "stop",
            self._reason, self._steps, self._until,
        )  # fmt: skip

    def _relevant(self) -> int:
        return int(self._topic.found[self.judged - 1]) if self.judged else 0

    def _asked(self) -> Decision:
        topic = self._topic
        progress = TopicProgress(
            topic.topic_id, topic.pool, self.judged, self._relevant(), topic.found[: self.judged], self._steps
        )
        decision = self._rule.stop(progress)
        if decision.action == "continue" and decision.until <= self.judged:
            raise OptionError(
                "stopping",
                f"the rule {self._rule.name} {_STUCK} ({decision.until:,} of topic {topic.topic_id}, which has "
                f"{self.judged:,})",
                "let it answer a larger number, or stop",
            )
        return decision

    def _cut_short(self, reached: int) -> str:
        if self.ending == "budget":
            return f"the assessors' budget was spent at {reached:,} judgments"
        if self._topic.whole:
            return f"all {reached:,} documents are judged"
        return f"not stopped by the end of the trace, {reached:,} judgments"
