"""What people's labels say about a pair: does the training query leak the topic or not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import polars as pl

from truerank.errors import InputError
from truerank.judging.definitions import leak_answer
from truerank.judging.ratings import (
    Ratings,
    RatingSource,
    Unit,
    contradiction_error,
    decide,
    label_rules,
    label_source,
    listed,
    read_ratings,
)
from truerank.judging.store import Store, is_store
from truerank.options import Labels, Votes
from truerank.records import Judgment
from truerank.text.normalising import normalise

_SAME_PROBABILITY = 1e-9


class JudgedPair(NamedTuple):
    """One pair of a topic and a training query after all its annotators were heard.

    `leak` is the adjudicator's answer, or else what the rule for several voices gives, and None where it gives none;
    `yes` and `no` count the annotators.
    `text` is the query's normalised text, empty if the labels carried an id only.
    `datasets` are the test sets that the labels name; without one the judgment holds for every set with this topic id.
    """

    topic_id: str
    query_id: str
    text: str
    leak: bool | None
    yes: int
    no: int
    similarity: float | None
    probability: float
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgments:
    """All judged pairs, in the order in which the labels name them first.

    Attributes:
        pairs: one entry per pair.
        unlabelled: rows of the labels that carry no label at all.
        models: labels of models among the rows.
        models_count: whether they have votes; otherwise they were left out.
        votes: how one answer was made of several voices.
        contradictions: who said two things of one pair, and where.
        unnamed: what labels without a test set say of pairs of which others name one; for the sets that nobody names.
    """

    pairs: tuple[JudgedPair, ...]
    unlabelled: int = 0
    models: int = 0
    models_count: bool = False
    votes: Votes = "majority"
    contradictions: tuple[str, ...] = ()
    unnamed: tuple[JudgedPair, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know: what became of the labels of models, and of contradictions."""
        notes = [self.model_note] if self.models else []
        if self.contradictions:
            shown = listed(self.contradictions)
            notes.append(f"Annotators contradict themselves, decided by '{self.votes}': {shown}.")
        return tuple(notes)

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
        """Number of pairs on which the voices give no answer, such as ties."""
        return sum(pair.leak is None for pair in self.pairs)

    def find(self, topic_id: str, query_text: str, query_id: str = "", dataset: str = "") -> JudgedPair | None:
        """The judgment of a pair, found by the topic and the query's normalised text.

        The query id decides only where the labels carry no text: ids of different logs collide.

        Args:
            topic_id: the topic.
            query_text: the query as it was read.
            query_id: the query's id in its training source.
            dataset: the test set of the topic: labels that name another one do not count. Without it, labels of all
                sets count; where those of two sets contradict each other, there is no answer.

        Returns:
            The pair, or None if nobody judged it.
        """
        found = _of_set(self._by_text.get((topic_id, normalise(query_text)), []), dataset)
        if found is not None or not query_id:
            return found
        return _of_set(self._by_id.get((topic_id, query_id), []), dataset)

    @cached_property
    def _by_text(self) -> dict[tuple[str, str], list[JudgedPair]]:
        return self._by(lambda pair: pair.text)

    @cached_property
    def _by_id(self) -> dict[tuple[str, str], list[JudgedPair]]:
        return self._by(lambda pair: "" if pair.text else pair.query_id)

    def _by(self, name: Callable[[JudgedPair], str]) -> dict[tuple[str, str], list[JudgedPair]]:
        """The pairs that have a name, by topic and name."""
        found: defaultdict[tuple[str, str], list[JudgedPair]] = defaultdict(list)
        for pair in (*self.pairs, *self.unnamed):
            if called := name(pair):
                found[pair.topic_id, called].append(pair)
        return dict(found)


def _called(dataset: str, names: Collection[str]) -> bool:
    return dataset.casefold() in {name.casefold() for name in names}


def _of_set(pairs: Sequence[JudgedPair], dataset: str) -> JudgedPair | None:
    """Of the judgments of one topic id and query the one that counts for a test set."""
    if dataset:
        named = next((pair for pair in pairs if _called(dataset, pair.datasets)), None)
        return named or next((pair for pair in pairs if not pair.datasets), None)
    if len({pair.leak for pair in pairs}) > 1:
        return pairs[0]._replace(leak=None)
    return pairs[0] if pairs else None


LabelSource: TypeAlias = RatingSource | Judgments


def open_judgments(
    labels: LabelSource | Labels,
    *,
    votes: Votes = "majority",
    include_models: bool = False,
    annotators: Sequence[str] = (),
) -> Judgments:
    """Judgments from whatever a caller has: label files, judging stores, judgments or ratings.

    A pair is a topic and a normalised query text (the query id where there is no text). Everybody has one vote per
    pair. Where somebody adjudicated a pair, the last adjudication decides. What models said counts only where the
    caller says so.

    Args:
        labels: one label source or several (as `--labels`: label files and judging stores), an open store, `Ratings`,
            records of judgments, `Judgments` (returned as they are), or the options `Labels`, which bring the other
            three along.
        votes: how one answer is made of several voices, see `votes.VOTES`.
        include_models: give models a vote like people; without it their labels are counted and left out.
        annotators: whose labels count; by default everybody's.

    Returns:
        The judged pairs of all of them together.

    Raises:
        InputError: a source cannot be read, a store is not about pairs of a topic and a query, labels are unknown, or
            annotators contradict themselves (unless `votes` decides that).
    """
    if isinstance(labels, Labels):
        return open_judgments(label_source(labels), **label_rules(labels))
    if isinstance(labels, Judgments):
        return labels
    if isinstance(labels, Sequence) and not isinstance(labels, str) and not labels:
        return Judgments(())
    parts = [_of_leaks(part, votes) for part in _parts(labels)]
    parts = _by(parts, annotators) if annotators else parts
    judgments = _judged(parts, votes, include_models)
    where = ", ".join(name for part in parts for name in part.sources) or None
    if not judgments.pairs and judgments.models:
        raise InputError("only models labelled these pairs", "let people judge, or ask for models by name", where=where)
    if not judgments.pairs and where:
        raise InputError("nothing is labelled yet", "judge some items first", where=where)
    return judgments


def _parts(labels: RatingSource) -> list[RatingSource]:
    """The sources that are read together: each store for itself, all files in one."""
    if isinstance(labels, str | Path | Store | Ratings) or isinstance(labels[0], Judgment):
        return [labels]
    given = cast("Sequence[str | Path]", labels)
    stores: list[RatingSource] = [one for one in given if isinstance(one, str | Path) and is_store(Path(one))]
    files = [one for one in given if one not in stores]
    return [*([files] if files else []), *stores]


def _by(parts: Sequence[Ratings], names: Sequence[str]) -> list[Ratings]:
    """What annotators of these names said; each has to be in one source at least."""
    there = dict.fromkeys(annotator.name for part in parts for annotator in part.annotators)
    for name in names:
        if name not in there:
            where = ", ".join(source for part in parts for source in part.sources) or None
            raise InputError(f"no annotator '{name}'", f"there are {', '.join(there) or 'nobody'}", where=where)
    return [part.by([at for at, annotator in enumerate(part.annotators) if annotator.name in names]) for part in parts]


def _of_leaks(source: RatingSource, votes: Votes) -> Ratings:
    ratings = read_ratings(source, scheme=("leakage", "leak"), votes=votes)
    if ratings.scheme is not None and ratings.scheme.name not in ("leakage", "leak"):
        fault = f"a store of the scheme '{ratings.scheme.name}' says nothing about leaks"
        raise InputError(fault, "give a store of the scheme leakage or leak", where=", ".join(ratings.sources) or None)
    return ratings


class _Voice(NamedTuple):
    """What one annotator said of a pair; `unit` is its place in `Ratings`."""

    ratings: Ratings
    unit: int
    name: str
    leak: bool
    adjudicated: bool


def _judged(parts: Sequence[Ratings], votes: Votes, include_models: bool) -> Judgments:
    voices: defaultdict[tuple[str, str, str], list[_Voice]] = defaultdict(list)
    models = 0
    for part in parts:
        keys: dict[int, tuple[str, str, str]] = {}
        for rating in part.ratings:
            annotator = part.annotators[rating.annotator]
            models += annotator.role == "model"
            if annotator.role == "model" and not include_models:
                continue
            answer = leak_answer(rating.labels)
            if answer is not None:
                unit = part.units[rating.unit]
                text = normalise(unit.text)
                where = ", ".join(part.sources) or None
                if not text and not unit.query_id:
                    fault = f"a label of topic {unit.topic_id} has neither query text nor query id"
                    raise InputError(fault, "add one of them", where=where)
                key = keys.setdefault(rating.unit, (unit.topic_id, text, "" if text else unit.query_id))
                voice = _Voice(part, rating.unit, annotator.name, answer == "leak", rating.adjudicated)
                voices[key].append(voice)
    contradictions = [line for part in parts for line in part.contradictions]
    subjects = [(key, group) for key, said in voices.items() for group in _subjects(said)]
    # A text that stands under several query ids, or in several test sets with this topic, is one pair.
    across = [line for _, said in subjects if len({voice.unit for voice in said}) > 1 for line in _twice(said)]
    if across and votes == "majority":
        raise contradiction_error(across)
    unnamed = {key: [voice for voice in said if not _unit(voice).dataset] for key, said in voices.items()}
    pairs = tuple(_pair(key, said, votes) for key, said in subjects)
    of_no_set = tuple(_pair(key, said, votes) for key, said in unnamed.items() if 0 < len(said) < len(voices[key]))
    skipped, noted = sum(part.skipped for part in parts), (*contradictions, *dict.fromkeys(across))
    return Judgments(pairs, skipped, models, include_models, votes, noted, of_no_set)


def _unit(voice: _Voice) -> Unit:
    return voice.ratings.units[voice.unit]


def _subjects(said: Sequence[_Voice]) -> list[list[_Voice]]:
    """The voices by the topic that they are about: topic ids mean different topics in different test sets.

    Sets whose topic has the same title have the same topic. Who names no set speaks of each.
    """
    of_voice: list[tuple[str, str] | None] = []
    for voice in said:
        unit = _unit(voice)
        title = normalise(unit.title)
        of_voice.append((("title", title) if title else ("set", unit.dataset)) if unit.dataset else None)
    names = dict.fromkeys(name for name in of_voice if name is not None)
    if len(names) < 2:
        return [list(said)]
    return [[voice for voice, about in zip(said, of_voice, strict=True) if about in (None, name)] for name in names]


def _twice(said: Sequence[_Voice]) -> list[str]:
    """Who said two things of a pair in different records."""
    found = []
    for name in dict.fromkeys(voice.name for voice in said):
        own = [voice for voice in said if voice.name == name and not voice.adjudicated]
        if len({voice.leak for voice in own}) > 1 and len({voice.unit for voice in own}) > 1:
            units = dict.fromkeys(voice.ratings.units[voice.unit].unit_id for voice in own)
            found.append(f"'{name}' on {' and '.join(units)}: leak and no leak")
    return found


def _pair(key: tuple[str, str, str], said: Sequence[_Voice], votes: Votes) -> JudgedPair:
    units = [voice.ratings.units[voice.unit] for voice in said]
    probabilities = [unit.probability for unit in units]
    if max(probabilities) - min(probabilities) > _SAME_PROBABILITY:
        fault = f"topic {key[0]}, query '{units[0].text or units[0].query_id}' has two sampling probabilities"
        raise InputError(fault, "give the same probability in every row of a pair")
    heard = [(voice.name, voice.leak) for voice in said if not voice.adjudicated]
    settled = [voice.leak for voice in said if voice.adjudicated]
    similarities = [unit.similarity for unit in units if unit.similarity is not None]
    query_id = next((unit.query_id for unit in units if unit.query_id), "")
    leak = settled[-1] if settled else decide(heard, votes, (True, False))
    yes, no = (len({name for name, answer in heard if answer is wanted}) for wanted in (True, False))
    similarity, datasets = max(similarities, default=None), dict.fromkeys(one.dataset for one in units if one.dataset)
    return JudgedPair(key[0], query_id, key[1], leak, yes, no, similarity, probabilities[0], tuple(datasets))


def annotate(candidates: pl.DataFrame, judgments: Judgments) -> pl.DataFrame:
    """Adds what people said to the candidates."""
    columns = ["topic_id", "query_text", "query_id", *(["test"] if "test" in candidates.columns else [])]
    found = (judgments.find(*row) for row in candidates.select(columns).iter_rows())
    judged = [None if pair is None else pair.leak for pair in found]
    return candidates.with_columns(pl.Series("judged", judged, dtype=pl.Boolean))


def scope_notes(topics: Mapping[str, Collection[str]], judgments: Judgments) -> tuple[str, ...]:
    """What a reader must know of the test sets for which labels count."""
    notes = []
    in_sets = Counter(topic for ids in topics.values() for topic in set(ids))
    open_pairs = (pair for pair in (*judgments.pairs, *judgments.unnamed) if not pair.datasets)
    several = sum(in_sets[pair.topic_id] > 1 for pair in open_pairs)
    if several:
        notes.append(
            f"{several:,} judged pair{'s name' if several > 1 else ' names'} no test set and a topic id that several "
            "have: the judgment counts for each of them. Name the set in a column 'test'."
        )
    away = [
        pair for pair in judgments.pairs if pair.datasets and not any(_called(name, topics) for name in pair.datasets)
    ]
    if away:
        names = ", ".join(sorted({name for pair in away for name in pair.datasets})[:5])
        many = f"{len(away):,} judged pairs are of test sets that are not here ({names}) and do not count."
        one = f"1 judged pair is of a test set that is not here ({names}) and does not count."
        notes.append(many if len(away) > 1 else one)
    return tuple(notes)
