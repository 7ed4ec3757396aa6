"""What people's labels say about a pair: does the training query leak the topic or not."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import polars as pl

from truerank.errors import InputError
from truerank.judging.ratings import Ratings, read_ratings
from truerank.judging.store import Store, is_store
from truerank.records import Label
from truerank.sources import read_labels
from truerank.text.normalising import normalise

__all__ = ["JudgedPair", "Judgments", "LabelSource", "adjudicate", "annotate", "is_leak", "open_judgments"]

_TYPES: Final = ("identical", "generalization", "generalisation", "specialization", "specialisation", "reformulation")
_LEAK_WORDS: Final = frozenset(["leak", "yes", "true", "1", *_TYPES])
_CLEAN_WORDS: Final = frozenset(["different topic", "no leak", "not a leak", "no", "false", "0"])
_PREFIX: Final = re.compile(r"^(?:title|variant) ")
_JOINTS: Final = re.compile(r"[\s_-]+")
_SAME_PROBABILITY: Final = 1e-9


class JudgedPair(NamedTuple):
    """One pair of a topic and a training query after all its annotators were heard.

    `leak` is the adjudicator's answer, or else the majority's, and None where the annotators are tied; `yes` and `no`
    count the annotators.
    `text` is the query's normalised text, empty if the labels carried an id only.
    """

    topic_id: str
    query_id: str
    text: str
    leak: bool | None
    yes: int
    no: int
    similarity: float | None
    probability: float


@dataclass(frozen=True)
class Judgments:
    """All judged pairs, in the order in which the labels name them first.

    Attributes:
        pairs: one entry per pair.
        unlabelled: rows of the labels that carry no label at all.
        models: labels of models among the rows.
        models_count: whether they have votes; otherwise they were left out.
    """

    pairs: tuple[JudgedPair, ...]
    unlabelled: int = 0
    models: int = 0
    models_count: bool = False

    @property
    def model_note(self) -> str:
        """A sentence on what became of the labels of models; empty if there are none."""
        if not self.models:
            return ""
        labels = f"{self.models:,} label{'s' if self.models > 1 else ''} of models"
        verb = "are" if self.models > 1 else "is"
        return f"Not only people: {labels} {verb} counted." if self.models_count else f"{labels} {verb} left out."

    @property
    def unresolved(self) -> int:
        """Number of pairs on which the annotators are tied."""
        return sum(pair.leak is None for pair in self.pairs)

    def find(self, topic_id: str, query_text: str, query_id: str = "") -> JudgedPair | None:
        """The judgment of a pair, found by the topic and the query's normalised text.

        The query id decides only where the labels carry no text: ids of different logs collide.

        Args:
            topic_id: the topic.
            query_text: the query as it was read.
            query_id: the query's id in its training source.

        Returns:
            The pair, or None if nobody judged it.
        """
        found = self._by_text.get((topic_id, normalise(query_text)))
        return found if found is not None or not query_id else self._by_id.get((topic_id, query_id))

    @cached_property
    def _by_text(self) -> dict[tuple[str, str], JudgedPair]:
        return {(pair.topic_id, pair.text): pair for pair in self.pairs if pair.text}

    @cached_property
    def _by_id(self) -> dict[tuple[str, str], JudgedPair]:
        return {(pair.topic_id, pair.query_id): pair for pair in self.pairs if not pair.text}


LabelSource: TypeAlias = str | Path | Store | Ratings | Sequence[str | Path] | Iterable[Label] | Judgments


def is_leak(labels: Iterable[str]) -> bool | None:
    """Whether one person's labels call a pair a leak.

    "Different Topic" means no leak whatever else the pair carries. Otherwise a reformulation type (identical,
    generalization, specialization, reformulation; bare or with the prefix "Title-" or "Variant-") means a leak, as do
    "leak", "yes", "true" and "1"; "no leak", "no", "false" and "0" mean none. Case, blanks, hyphens and
    underscores do not matter.

    Args:
        labels: the labels of one pair by one person.

    Returns:
        True for a leak, False for none, None if there is no label at all.

    Raises:
        InputError: a label is unknown, or the labels contradict each other.

    Source: the leakage paper, section 3 (Table 2 counts by the same rule).
    """
    words = [_word(label) for label in labels if label.strip()]
    unknown = sorted({label.strip() for label in labels if label.strip() and _meaning(_word(label)) is None})
    if unknown:
        raise _unknown(unknown)
    if not words:
        return None
    if "different topic" in words:
        return False
    meanings = {_meaning(word) for word in words}
    if len(meanings) > 1:
        raise InputError(
            f"labels that contradict each other on one pair: {', '.join(labels)}", "keep one of them in the label file"
        )
    return meanings.pop()


def adjudicate(labels: Iterable[Label], *, include_models: bool = False) -> Judgments:
    """Brings the labels of several annotators together, pair by pair.

    A pair is a topic and a normalised query text (the query id where there is no text). Each annotator has one vote
    per pair, the majority of what they said about it; rows without an annotator's name are one vote each. The
    majority of the votes decides; a tie leaves the pair unresolved. Where somebody adjudicated a pair, the last
    adjudication decides. What models said counts only where the caller says so.

    Args:
        labels: the labels of all annotators.
        include_models: give models a vote too.

    Returns:
        The judged pairs.

    Raises:
        InputError: labels are unknown or contradict each other, a row has neither text nor id, or the rows of a pair
            carry different sampling probabilities.
    """
    rows: defaultdict[tuple[str, str, str], list[Label]] = defaultdict(list)
    unlabelled = models = 0
    unknown: dict[str, None] = {}
    for label in labels:
        if label.role == "model":
            models += 1
            if not include_models:
                continue
        words = [text for text in label.labels if text.strip()]
        unknown.update(dict.fromkeys(text.strip() for text in words if _meaning(_word(text)) is None))
        unlabelled += not words
        if words:
            rows[_key(label)].append(label)
    if unknown:
        raise _unknown(list(unknown))
    return Judgments(tuple(_judged(key, group) for key, group in rows.items()), unlabelled, models, include_models)


def open_judgments(labels: LabelSource, *, include_models: bool = False) -> Judgments:
    """Judgments from whatever a caller has: label files, judging stores, labels, ratings or judgments.

    Args:
        labels: one label source or several (as `--labels`: label files and judging stores), an open store, `Ratings`,
            `Label` records, or `Judgments` (returned as they are).
        include_models: give models a vote like people; without it their labels are counted and left out.

    Returns:
        The judged pairs of all of them together.

    Raises:
        InputError: a source cannot be read, a store is not about pairs of a topic and a query, or labels are unknown.
    """
    if isinstance(labels, Judgments):
        return labels
    if isinstance(labels, Store | Ratings):
        items: list[str | Path | Label] = list(_labels_of(read_ratings(labels)))
    else:
        items = [labels] if isinstance(labels, str | Path) else list(labels)
    specs = [str(item) for item in items if isinstance(item, str | Path)]
    if specs and len(specs) < len(items):
        raise InputError("label files and labels mixed in one list", "give the files or the labels")
    found = [label for spec in specs for label in _labels_at(spec)] or [i for i in items if isinstance(i, Label)]
    judgments = adjudicate(found, include_models=include_models)
    if judgments.models and not judgments.pairs:
        raise InputError(
            "only models labelled these pairs",
            "let people judge, or ask for models by name",
            where=", ".join(specs) or None,
        )
    return judgments


def _labels_at(spec: str) -> Iterable[Label]:
    return _labels_of(read_ratings(spec)) if is_store(spec) else read_labels([spec])


def _labels_of(ratings: Ratings) -> list[Label]:
    """The ratings as labels of pairs; an adjudication has the role "adjudicator", whoever made it."""
    where = ", ".join(ratings.sources) or None
    if ratings.scheme is not None and ratings.scheme.name not in ("leakage", "leak"):
        raise InputError(
            f"a store of the scheme '{ratings.scheme.name}' says nothing about leaks",
            "give a store of the scheme leakage or leak",
            where=where,
        )
    labels = []
    for rating in ratings.ratings:
        unit, annotator = ratings.units[rating.unit], ratings.annotators[rating.annotator]
        labels.append(
            Label(
                topic_id=unit.topic_id,
                query_id=unit.query_id,
                query_text=unit.text,
                labels=rating.labels,
                title=unit.title,
                description=unit.description,
                variant=unit.variant,
                similarity=unit.similarity,
                annotator=annotator.name,
                probability=unit.probability,
                role="adjudicator" if rating.adjudicated else annotator.role,
            )
        )
    if not labels:
        raise InputError("nothing is labelled yet", "judge some items first", where=where)
    return labels


def annotate(candidates: pl.DataFrame, judgments: Judgments) -> pl.DataFrame:
    """Adds what people said to the candidates.

    Args:
        candidates: pairs with the columns topic_id, query_text and query_id.
        judgments: what was judged. A judgment holds for every test set that has a topic of that id.

    Returns:
        The candidates with a column `judged`: True for a leak, False for none, null where nobody judged the pair or
        the annotators are tied.
    """
    found = (
        judgments.find(topic, text, query)
        for topic, text, query in candidates.select("topic_id", "query_text", "query_id").iter_rows()
    )
    judged = [None if pair is None else pair.leak for pair in found]
    return candidates.with_columns(pl.Series("judged", judged, dtype=pl.Boolean))


def _word(label: str) -> str:
    return _PREFIX.sub("", _JOINTS.sub(" ", label.strip().casefold()))


def _meaning(word: str) -> bool | None:
    return True if word in _LEAK_WORDS else False if word in _CLEAN_WORDS else None


def _unknown(labels: Sequence[str]) -> InputError:
    shown = ", ".join(f"'{label}'" for label in labels[:5]) + (f" and {len(labels) - 5} more" if labels[5:] else "")
    return InputError(
        f"unknown label{'s' if len(labels) > 1 else ''} {shown}",
        "use a reformulation type (Title-Identical, Variant-Specialization, ...), Different Topic, leak or no leak",
    )


def _key(label: Label) -> tuple[str, str, str]:
    text = normalise(label.query_text)
    if not text and not label.query_id:
        raise InputError(f"a label of topic {label.topic_id} has neither query text nor query id", "add one of them")
    return label.topic_id, text, "" if text else label.query_id


def _judged(key: tuple[str, str, str], rows: Sequence[Label]) -> JudgedPair:
    probabilities = [row.probability for row in rows]
    if max(probabilities) - min(probabilities) > _SAME_PROBABILITY:
        raise InputError(
            f"topic {key[0]}, query '{rows[0].query_text or rows[0].query_id}' has two sampling probabilities",
            "give the same probability in every row of a pair",
        )
    votes: defaultdict[str, int] = defaultdict(int)
    settled = None
    for number, row in enumerate(rows):
        if row.role == "adjudicator":
            settled = is_leak(row.labels)
            continue
        votes[row.annotator or f"\0{number}"] += 1 if is_leak(row.labels) else -1
    yes, no = (sum(vote > 0 for vote in votes.values()), sum(vote < 0 for vote in votes.values()))
    similarities = [row.similarity for row in rows if row.similarity is not None]
    return JudgedPair(
        topic_id=key[0],
        query_id=next((row.query_id for row in rows if row.query_id), ""),
        text=key[1],
        leak=settled if settled is not None else None if yes == no else yes > no,
        yes=yes,
        no=no,
        similarity=max(similarities, default=None),
        probability=probabilities[0],
    )
