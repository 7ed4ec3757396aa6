"""When a topic has been judged enough: rules that look at what was found so far, and what a rule makes of a topic."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol

from truerank.arrays import Ints
from truerank.errors import OptionError
from truerank.loading import decimal_number, signed_number, whole_number

Action = Literal["stop", "continue", "drop"]

#: Relevant documents that a topic needs, and the largest share of them among its judged ones, in the track.
MIN_RELEVANT: Final = 3
MAX_RATIO: Final = 0.6
#: How many judgments the procedure adds to the pool, and to twice the relevant ones.
MARGIN: Final = 100
#: The cap of the heuristic criterion.
HEURISTIC_CAP: Final = 1000


class Decision(NamedTuple):
    """What a rule says of a topic: end it, judge on until there are `until` judgments, or give it up.

    `reason` is a few words for tables.
    """

    action: Action
    reason: str = ""
    until: int = 0

    @classmethod
    def stop(cls, reason: str = "") -> Decision:
        """The topic is judged enough."""
        return cls("stop", reason)

    @classmethod
    def go_on(cls, until: int, reason: str = "") -> Decision:
        """Judge on until there are that many judgments, those of before included."""
        return cls("continue", reason, until)

    @classmethod
    def drop(cls, reason: str) -> Decision:
        """The topic does not get into the collection; what was judged is spent."""
        return cls("drop", reason)


class TopicProgress(NamedTuple):
    """How far a topic is when a rule is asked.

    `pool` is P, the size of its pool; `judged` is J; `relevant` is R by the labels as they stand now; `found` holds
    after each judgment how many of the judged documents are relevant, shape (judged,); `steps` counts how often the
    rule said of this topic that it goes on.
    """

    topic_id: str
    pool: int
    judged: int
    relevant: int
    found: Ints
    steps: int = 0

    @property
    def ratio(self) -> float:
        """The share of relevant documents among the judged ones; 0 before the first."""
        return self.relevant / self.judged if self.judged else 0.0


class Keeping(NamedTuple):
    """Which topics get into the evaluation set: with enough relevant documents, and not too large a share of them.

    `max_ratio` is None where the share does not matter.
    """

    min_relevant: int = MIN_RELEVANT
    max_ratio: float | None = MAX_RATIO

    def why_not(self, relevant: int, judged: int) -> str:
        """Why a topic is left out; empty for one that is kept. A ratio that equals the bound keeps it."""
        if relevant < self.min_relevant:
            return f"fewer than {self.min_relevant} relevant"
        if self.max_ratio is not None and judged and relevant > self.max_ratio * judged:
            return f"relevant/judged above {self.max_ratio:g}"
        return ""


#: How the track keeps topics; and the same whatever the share of relevant documents.
AS_THE_TRACK: Final = Keeping()
ANY_RATIO: Final = Keeping(MIN_RELEVANT, None)


class StoppingRule(Protocol):
    """Decides topic by topic when enough is judged. It is asked first before anything is judged."""

    @property
    def name(self) -> str:
        """For tables."""
        ...

    @property
    def keeping(self) -> Keeping:
        """Which of the topics that it ends are kept."""
        ...

    def stop(self, progress: TopicProgress) -> Decision:
        """What to do with a topic that is as far as this."""
        ...


@dataclass(frozen=True)
class TrackProcedure:
    """The track's procedure: the pool and 100 more; 2R + 100; then increments until fewer than half are relevant.

    Step 1: P + 100 judgments; the topic ends if 2R < P. Step 2: 2R + 100 judgments; it ends if 2R* + 100 < J, and is
    dropped if R*/J is above the bound. Step 3, again and again: `increment` times R* more; it ends once R* < J/2, and
    is dropped if R*/J is above the bound. 2R* + 100 < J, as printed, cannot hold at the end of step 2 unless labels
    were changed, since R* is at least R; with `reached` a topic ends there also where 2R* + 100 = J.

    Attributes:
        increment: of step 3, as a multiple of the known relevant documents.
        bound: the ratio R*/J above which a topic is dropped.
        cap: judgments of a topic at most; None for no bound.
        reached: end step 2 also at 2R* + 100 = J.
        keeping: which topics are kept.
        name: for tables.

    Raises:
        InputError: an increment or bound that is not above 0, or a cap below 1.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5.
    """

    increment: float = 1.0
    bound: float = MAX_RATIO
    cap: int | None = None
    reached: bool = False
    keeping: Keeping = AS_THE_TRACK
    name: str = "Track"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.increment) and self.increment > 0):
            raise OptionError("stopping", f"the increment is {self.increment:g}", "give more than 0")
        if not 0 < self.bound <= 1:
            raise OptionError("stopping", f"the bound is {self.bound:g}", "give more than 0 and at most 1")
        if self.cap is not None and self.cap < 1:
            raise OptionError("stopping", f"the cap is {self.cap}", "give 1 or more")

    def stop(self, progress: TopicProgress) -> Decision:
        """The next step of the procedure."""
        judged, relevant = progress.judged, progress.relevant
        if progress.steps == 0:
            return self._until(progress.pool + MARGIN, "pool and 100 more")
        first = progress.pool + MARGIN
        skipped = progress.judged >= first and 2 * int(progress.found[first - 1]) == progress.pool
        step = min(3, progress.steps + skipped)
        if enough := self._enough(progress, step):
            return Decision.stop(enough)
        if step == 1:
            return self._until(2 * relevant + MARGIN, "2R + 100")
        if relevant > self.bound * judged:
            return Decision.drop(f"relevant/judged above {self.bound:g}")
        return self._until(judged + max(1, math.ceil(self.increment * relevant)), "increment")

    def _enough(self, progress: TopicProgress, step: int) -> str:
        """Why the topic is judged enough; empty where it is not."""
        judged, relevant = progress.judged, progress.relevant
        goal = 2 * relevant + MARGIN
        if self.cap is not None and judged >= self.cap:
            return f"cap of {self.cap:,} judgments"
        if step == 1 and 2 * relevant < progress.pool:
            return "2R < P"
        if step == 2 and (goal < judged or (self.reached and goal == judged)):
            return "2R + 100 ≤ J" if self.reached else "2R + 100 < J"
        # A bound below one half drops such a topic instead.
        rarer = 2 * relevant < judged and relevant <= self.bound * judged
        return "R < J/2" if step == 3 and rarer else ""

    def _until(self, judgments: int, reason: str) -> Decision:
        return Decision.go_on(judgments if self.cap is None else min(self.cap, judgments), reason)


def heuristic(cap: int = HEURISTIC_CAP, **options: Any) -> TrackProcedure:
    """The heuristic criterion: the track's procedure, strictly, with a cap on the judgments of a topic.

    Args:
        cap: judgments of a topic at most.
        **options: as for `TrackProcedure`.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5.2.
    """
    return TrackProcedure(cap=cap, **{"name": "Heuristic", **options})


@dataclass(frozen=True)
class ConstantBudget:
    """The same number of judgments for every topic; kept with enough relevant documents, whatever their share.

    Attributes:
        judgments: of each topic; where the pool is larger, its first ones.
        keeping: which topics are kept.

    Raises:
        InputError: fewer than one judgment.
    """

    judgments: int
    keeping: Keeping = ANY_RATIO

    def __post_init__(self) -> None:
        if self.judgments < 1:
            raise OptionError("stopping", f"a budget of {self.judgments} judgments", "give 1 or more")

    @property
    def name(self) -> str:
        """The budget in words."""
        return f"Budget {self.judgments}"

    def stop(self, progress: TopicProgress) -> Decision:
        """Goes on to the budget, then stops."""
        if progress.judged < self.judgments:
            return Decision.go_on(self.judgments, "budget")
        return Decision.stop(f"{self.judgments:,} judgments")


@dataclass(frozen=True)
class OriginalSize:
    """As many judgments for each topic as the official qrels have.

    Attributes:
        sizes: judgments by topic, also of topics that were judged and left out.
        topics: the topics of the official evaluation set; None to keep by `keeping`.
        keeping: which topics are kept where `topics` is None.
        name: for tables.
    """

    sizes: Mapping[str, int]
    topics: frozenset[str] | None = None
    keeping: Keeping = AS_THE_TRACK
    name: str = "Original Size"

    def stop(self, progress: TopicProgress) -> Decision:
        """Goes on to the topic's size, then stops; drops a topic that the official set lacks."""
        size = self.sizes.get(progress.topic_id, 0)
        if progress.judged < size:
            return Decision.go_on(size, "original size")
        if not size or (self.topics is not None and progress.topic_id not in self.topics):
            return Decision.drop("not in the official set")
        return Decision.stop(f"{size:,} judgments")


_REMEDY: Final = "one of track, heuristic, budget:N, original"
_NUMBERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "increment": decimal_number, "bound": decimal_number, "cap": signed_number, "min_relevant": signed_number,
    "max_ratio": decimal_number,
}  # fmt: skip


def load_rule(
    spec: str, *, sizes: Mapping[str, int] | None = None, topics: frozenset[str] | None = None
) -> StoppingRule:
    """A rule by its name.

    `track` and `heuristic` take options: `track:increment=0.5,bound=0.6,reached=yes`, `heuristic:cap=1000`; all but
    `original` take `min_relevant=3` and `max_ratio=0.6` (or `none`). `budget:400` judges 400 documents of every topic.

    Args:
        spec: the name with its options.
        sizes: judgments by topic, for `original`.
        topics: the official evaluation set, for `original`.

    Raises:
        InputError: no such rule or option; `original` without sizes.
    """
    name, _, rest = spec.partition(":")
    if name == "original":
        if sizes is None:
            raise OptionError("stopping", "the rule 'original' needs official judgments", "give them")
        return OriginalSize(sizes, topics)
    if name in ("track", "heuristic"):
        options = _options(rest)
        return heuristic(**options) if name == "heuristic" else TrackProcedure(**options)
    if name == "budget":
        number, _, more = rest.partition(",")
        judgments = whole_number(number)
        if judgments is None:
            raise OptionError("stopping", f"'{spec[:80]}' names no number of judgments", "write budget:400")
        found = ConstantBudget(judgments)
        keeping = _options(more).get("keeping")
        return found if keeping is None else dataclasses.replace(found, keeping=keeping)
    raise OptionError("stopping", f"no stopping rule '{spec}'", _REMEDY)


def _options(text: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name == "reached" and value in ("yes", "no"):
            given[name] = value == "yes"
            continue
        given[name] = _NUMBERS[name](value) if name in _NUMBERS else None
        if given[name] is None and not (name in ("cap", "max_ratio") and value == "none"):
            known = ", ".join((*_NUMBERS, "reached (yes or no)"))
            raise OptionError("stopping", f"'{part}' is not an option of a rule", f"options are {known}")
    kept = {name: given.pop(name) for name in ("min_relevant", "max_ratio") if name in given}
    return {**given, "keeping": AS_THE_TRACK._replace(**kept)} if kept else given


#: How an outcome came about: the rule ended or dropped the topic; it wanted more than there is; the budget was spent.
Ending = Literal["stop", "drop", "trace", "budget"]


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
    def __init__(self, rule: StoppingRule, topic: TopicJudgments) -> None:
        self._rule, self._topic = rule, topic
        self.judged = 0
        self.ending: Ending | None = None
        self._steps, self._reason, self._until = 0, "", 0

    def step(self, left: int | None) -> None:
        """Asks the rule once and goes as far as it says; `left` judgments can still be paid for."""
        topic = self._topic
        progress = TopicProgress(
            topic.topic_id, topic.pool, self.judged, self._relevant(), topic.found[: self.judged], self._steps
        )
        decision = self._rule.stop(progress)
        if decision.action != "continue":
            self.ending, self._reason, self._until = decision.action, decision.reason, 0
            return
        self._steps += 1
        self._until = decision.until
        paid = len(topic.found) if left is None else self.judged + left
        reached = min(decision.until, len(topic.found), paid)
        if reached < decision.until:
            self.ending = "budget" if reached == paid and left is not None else "trace"
            if self.ending == "budget":
                self._reason = f"the assessors' budget was spent at {reached:,} judgments"
            elif topic.whole:
                self._reason = f"all {reached:,} documents are judged"
            else:
                self._reason = f"not stopped by the end of the trace, {reached:,} judgments"
        self.judged = reached

    def outcome(self) -> TopicOutcome:
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
