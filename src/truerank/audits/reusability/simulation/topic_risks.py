"""Which topics carry the risk of a left-out team, and what the next judgments find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from truerank.audits.reusability.simulation.outcomes import ALL_TEAMS, found_by
from truerank.audits.reusability.simulation.results import Simulation

#: Judgments for each topic that the next gain is told for.
MORE: Final = 100


class TopicRisk(NamedTuple):
    """How much a topic changes when its pool lacks the team of the run that is scored.

    `change` is the mean absolute difference of the topic's score, over all trials and the runs of the team left out;
    `share` is its part of the sum over topics; `ratio` is relevant by judged in the official judgments.
    """

    topic_id: str
    change: float
    share: float
    relevant: int
    judged: int

    @property
    def ratio(self) -> float:
        """Relevant by judged."""
        return self.relevant / self.judged if self.judged else 0.0


class NextGain(NamedTuple):
    """What the next judgments find: so many for each kept topic beyond the official ones, by the official seed."""

    each: int
    judgments: int
    relevant: int
    found_before: int
    judged_before: int

    @property
    def price(self) -> float | None:
        """Judgments for one relevant document; None where none is found."""
        return self.judgments / self.relevant if self.relevant else None


def topic_risks(simulation: Simulation) -> tuple[TopicRisk, ...]:
    """By topic, how much the scores of left-out runs change by the first measure."""
    scorer, official = simulation.standing.scorer, simulation.standing.official
    values = scorer.values()[:, 0, :]
    before = {scorer.judged(int(number)).topic: int(number) for number in official.qrels.sets}
    changed = dict.fromkeys(before, 0.0)
    counted = 0
    for judging in simulation.judgings:
        if judging.left_out == ALL_TEAMS:
            continue
        own = simulation.standing.teams[judging.left_out]
        counted += len(own)
        for number in judging.qrels.sets:
            topic = scorer.judged(int(number)).topic
            changed[topic] += float(np.abs(values[number, own] - values[before[topic], own]).sum())
    total = sum(changed.values())
    statistics = {row.topic_id: row for row in simulation.judged_topics()}
    risks = [
        TopicRisk(
            scorer.ranks.topics[topic],
            round(change / max(1, counted), 12),
            round(change / total, 12) if total else 0.0,
            statistics[scorer.ranks.topics[topic]].relevant,
            statistics[scorer.ranks.topics[topic]].judged,
        )
        for topic, change in changed.items()
    ]
    return tuple(sorted(risks, key=lambda risk: (-risk.change, risk.topic_id)))


def next_gain(simulation: Simulation) -> NextGain:
    """What the next judgments of the kept topics find, by the official seed."""
    kept = {row.topic_id for row in simulation.judged_topics() if not row.why_not}
    found = [traced.found for traced in simulation.traces.official if traced.found.topic_id in kept]
    sizes: Mapping[str, int] = simulation.standing.official.sizes
    judged, relevant = found_by(found, sizes)
    more, then = found_by(found, sizes, MORE)
    return NextGain(MORE, more - judged, then - relevant, relevant, judged)
