"""What the audit can see: rewordings of its own topics are planted, and the share that it would have found counted.

A plant is compared with the encoder, the threshold and the evidence of the audit, against every text of its topic. It
is written nowhere. The converse is measured, too: how often the audit would take one topic of a test set for another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

import numpy as np

from truerank.audits.leakage.options import FIELDS
from truerank.audits.leakage.results import UNDECIDED, UNDECIDED_ORDER, KindFound, OtherTopics, Sensitivity
from truerank.measures.magnitudes import exact_interval
from truerank.records import TopicText
from truerank.text.contrasts import contrast
from truerank.text.normalising import normalise
from truerank.text.rewordings import KINDS, SEEN_KINDS, Kind, reword
from truerank.text.wording import EVIDENCE
from truerank.text.words import words
from truerank.vectors.neighbours import rounded
from truerank.vectors.search import SearchPlan, reach_floor

#: Plants for each kind, field and test set: one for each topic within these bounds, where the topics allow so many;
#: rounds over the topics to get them.
FEWEST_PLANTS: Final = 20
MOST_PLANTS: Final = 100
#: Of kinds that CLEAN does not ask for.
_MOST_OTHERS: Final = 40
_ROUNDS: Final = 30
#: A text that cannot be reworded so often is not tried again: most have no word for it.
_MISSES: Final = 3
_ROWS_AT_ONCE: Final = 1024
#: Other topics whose difference from a topic is read.
_ALIKE: Final = 20
#: Says which texts the prefilter lets through to the encoder.
Passes = Callable[[Sequence[str]], Sequence[bool]]


class _Plant(NamedTuple):
    """A rewording and the numbers of the texts of its topic."""

    test: str
    field: str
    kind: Kind
    text: str
    own: tuple[int, ...]


def check(
    texts: Sequence[TopicText], plan: SearchPlan, passes: Passes | None = None, *, seed: int = 0
) -> dict[str, Sensitivity]:
    """Plants rewordings of the topic texts and counts those that the audit would have found."""
    tests = dict.fromkeys(text.test for text in texts)
    plants = [plant for test in tests for plant in _plants(texts, test, seed)]
    seen = defaultdict[tuple[str, ...], list[frozenset[str]]](list)
    for plant, by in zip(plants, _seen(plants, texts, plan, passes), strict=True):
        seen[plant[:3]].append(by)
    result: dict[str, Sensitivity] = {}
    for test in tests:
        fields = [name for name in FIELDS if any(text.test == test and text.field == name for text in texts)]
        kinds = [counted(field, kind, seen[test, field, kind]) for field in fields for kind in KINDS]
        other_topics = {field: _others(texts, plan, test, field) for field in fields}
        result[test] = Sensitivity(kinds=kinds, other_topics=other_topics)
    return result


def counted(field: str, kind: str, seen: Sequence[frozenset[str]], evidence: Sequence[str] = EVIDENCE) -> KindFound:
    """How many of the plants of one kind were found, by the evidence that found each."""
    planted, found = len(seen), sum(map(bool, seen))
    low, high = exact_interval(found, planted)
    return KindFound(
        field=field,
        kind=kind,
        planted=planted,
        found=found,
        share=round(found / planted, 6) if planted else None,
        low=round(low, 6),
        high=round(high, 6),
        by={name: sum(name in by for by in seen) for name in evidence},
    )


def _plants(texts: Sequence[TopicText], test: str, seed: int) -> list[_Plant]:
    own: dict[str, list[int]] = {}
    fields: dict[str, list[TopicText]] = {}
    for number, text in enumerate(texts):
        if text.test == test:
            own.setdefault(text.topic_id, []).append(number)
            fields.setdefault(text.field, []).append(text)
    plants: list[_Plant] = []
    wanted = min(MOST_PLANTS, max(FEWEST_PLANTS, len(own)))
    for field, members in fields.items():
        for kind in KINDS:
            order = Random(f"{seed} {test} {field} {kind}").sample(members, len(members))
            taken, misses = set[str](), Counter[TopicText]()
            for turn in range(_ROUNDS * len(order)):
                text = order[turn % len(order)]
                if misses[text] == _MISSES:
                    continue
                made = reword(kind, text.text, Random(f"{seed} {turn // len(order)} {kind} {field} {text.text}"))
                misses[text] += made is None
                if made is None or made in taken or made == " ".join(words(text.text)):
                    continue
                taken.add(made)
                plants.append(_Plant(test, field, kind, made, tuple(own[text.topic_id])))
                if len(taken) == (wanted if kind in SEEN_KINDS else min(wanted, _MOST_OTHERS)):
                    break
    return plants


def _seen(
    plants: Sequence[_Plant], topics: Sequence[TopicText], plan: SearchPlan, passes: Passes | None
) -> list[frozenset[str]]:
    """What would have found each plant."""
    texts = [normalise(plant.text) for plant in plants]
    by: list[set[str]] = [set() for _ in plants]
    for place, number, what in plan.probe(texts) if plan.probe is not None else ():
        if number in plants[place].own:
            by[place].add(EVIDENCE[what])
    # What words, letters or shingles find is found: only of the rest an encoder says more.
    left = [place for place, names in enumerate(by) if not names]
    if passes is not None:
        left = [place for place, let in zip(left, passes([texts[place] for place in left]), strict=True) if let]
    reached = reach_floor([texts[place] for place in left], [plants[place].own for place in left], plan)
    for at in np.flatnonzero(reached).tolist():
        by[left[at]].add(EVIDENCE[0])
    for plant, text, found in zip(plants, texts, by, strict=True):
        undecided = UNDECIDED_ORDER if EVIDENCE[1] in found else UNDECIDED
        if found and all(contrast(normalise(topics[number].text), text) not in undecided for number in plant.own):
            found.clear()
    return [frozenset(names) for names in by]


def _others(texts: Sequence[TopicText], plan: SearchPlan, test: str, field: str) -> OtherTopics:
    """How many topic texts another topic of the set would be a candidate for, by evidence."""
    vectors = plan.topic_vectors()
    numbers = [number for number, text in enumerate(texts) if (text.test, text.field) == (test, field)]
    topics = np.array([texts[number].topic_id for number in numbers])
    named = [normalise(texts[number].text) for number in numbers]
    by: Mapping[str, set[int]] = {name: set() for name in EVIDENCE}
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        rows = numbers[start : start + _ROWS_AT_ONCE]
        above = rounded(vectors[rows] @ vectors[numbers].T) > np.float32(plan.floor)
        above &= topics[start : start + _ROWS_AT_ONCE, None] != topics
        by[EVIDENCE[0]].update(
            start + at
            for at, row in enumerate(above)
            if any(
                contrast(named[start + at], named[other]) in UNDECIDED
                for other in np.flatnonzero(row)[:_ALIKE].tolist()
            )
        )
    place_of = {number: place for place, number in enumerate(numbers)}
    for place, number, what in plan.probe(named) if plan.probe is not None else ():
        other = place_of.get(number)
        if other is not None and topics[other] != topics[place] and contrast(named[place], named[other]) in UNDECIDED:
            by[EVIDENCE[what]].add(place)
    together = set[int]().union(*by.values())
    return OtherTopics(
        texts=len(numbers),
        proposed=len(together),
        share=round(len(together) / len(numbers), 6),
        by={name: len(members) for name, members in by.items()},
    )
