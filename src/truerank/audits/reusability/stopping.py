"""When a topic has been judged enough: rules that look at what was found so far, and what a rule makes of a topic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

from truerank.arrays import Ints
from truerank.errors import OptionError

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


@runtime_checkable
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
        step = self._step(progress)
        if enough := self._enough(progress, step):
            return Decision.stop(enough)
        if step == 1:
            return self._until(2 * relevant + MARGIN, "2R + 100")
        if relevant > self.bound * judged:
            return Decision.drop(f"relevant/judged above {self.bound:g}")
        return self._until(judged + max(1, math.ceil(self.increment * relevant)), "increment")

    def _step(self, progress: TopicProgress) -> int:
        """The step of the procedure that ends here; where 2R = P the second one asks for no judgment at all."""
        first = progress.pool + MARGIN
        skipped = progress.judged >= first and 2 * int(progress.found[first - 1]) == progress.pool
        return min(3, progress.steps + skipped)

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
