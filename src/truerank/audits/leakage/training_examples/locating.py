"""Where leaking texts stand in the training data: one more pass over the examples, and the pairs that leak together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.audits.leakage.training_examples.reading import TrainingTexts, hashed
from truerank.sources.distinct import text_hashes
from truerank.sources.examples import ExampleBlock
from truerank.sources.roles import ROLES
from truerank.text.normalising import normalise

#: Leaking training texts by source and role.
PLACES: Final[dict[str, Any]] = {
    "training_id": pl.String,
    "source": pl.String,
    "role": pl.String,
    "example_id": pl.String,
    "examples": pl.Int64,
    "training_text": pl.String,
}
#: A query and a relevant document of it in one example.
TOGETHER: Final[dict[str, Any]] = {
    "topic_id": pl.String,
    "doc_id": pl.String,
    "query_training_id": pl.String,
    "document_training_id": pl.String,
    "source": pl.String,
    "example_id": pl.String,
    "examples": pl.Int64,
}


@dataclass(frozen=True)
class AnswerTexts:
    """What makes a pair of texts of one example an answer that was seen.

    Attributes:
        topics: by id of a training query, the topics that it leaks.
        documents: by id of a training document, the relevant documents that it leaks.
        relevant: by relevant document, its topics.
    """

    topics: Mapping[str, frozenset[str]]
    documents: Mapping[str, frozenset[str]]
    relevant: Mapping[str, frozenset[str]]


class ExamplePlaces(NamedTuple):
    """Where leaking texts stand.

    Attributes:
        places: columns as in `PLACES`; the first example of a text in a source, and how many have it.
        together: columns as in `TOGETHER`.
        counts: examples and texts by source.
    """

    places: pl.DataFrame
    together: pl.DataFrame
    counts: Mapping[str, Mapping[str, int]]


def locate(training: TrainingTexts, wanted: Collection[str], answers: AnswerTexts) -> ExamplePlaces:
    """Reads the examples once more and says where leaking texts stand."""
    hashes = np.sort(np.array([int(one, 16) for one in wanted], np.uint64))
    found, counts = _Found(answers), {}
    for name, source in training.sources:
        roles: Counter[str] = Counter()
        examples = 0
        for block in source.batches():
            roles.update(block.roles)
            examples += sum(1 for _ in groupby(block.ids))
            for leaking in _examples(block, hashes):
                found.note(name, leaking)
        counts[name] = {"examples": examples, **{f"{role}_texts": roles[role] for role in ROLES if roles[role]}}
    return ExamplePlaces(_frame(found.places, PLACES), _frame(found.together, TOGETHER), counts)


class _Text(NamedTuple):
    """A leaking text of an example."""

    example_id: str
    role: str
    training_id: str
    text: str


def _examples(block: ExampleBlock, hashes: Any) -> Iterator[list[_Text]]:
    """The examples of a block with a leaking text, by those of their texts."""
    if not len(hashes):
        return
    own = text_hashes([normalise(text) for text in block.texts])
    at = np.minimum(np.searchsorted(hashes, own), len(hashes) - 1)
    leaking = [
        _Text(block.ids[place], block.roles[place], hashed(int(own[place])), block.texts[place])
        for place in np.flatnonzero(hashes[at] == own).tolist()
    ]
    for _, members in groupby(leaking, key=lambda text: text.example_id):
        yield list(members)


class _Found:
    """What is known so far: a text or pair with its first example and the number of examples that have it."""

    def __init__(self, answers: AnswerTexts) -> None:
        self.places: dict[tuple[str, ...], list[Any]] = {}
        self.together: dict[tuple[str, ...], list[Any]] = {}
        self._answers = answers

    def note(self, source: str, leaking: list[_Text]) -> None:
        """Adds the leaking texts of one example."""
        for text in {(one.training_id, one.role): one for one in reversed(leaking)}.values():
            key = (text.training_id, source, text.role)
            self.places.setdefault(key, [text.example_id, 0, text.text])[1] += 1
        for pair in sorted(set(self._answered(leaking))):
            self.together.setdefault((*pair, source), [leaking[0].example_id, 0])[1] += 1

    def _answered(self, leaking: list[_Text]) -> Iterator[tuple[str, str, str, str]]:
        """Topic, document, and the texts that they stand in."""
        topics, documents = self._answers.topics, self._answers.documents
        for query, document in product(leaking, leaking):
            if query.role == "query" and document.role == "positive":
                for doc_id in documents.get(document.training_id, ()):
                    for topic in self._answers.relevant[doc_id] & topics.get(query.training_id, frozenset()):
                        yield topic, doc_id, query.training_id, document.training_id


def _frame(found: Mapping[tuple[str, ...], list[Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([(*key, *values) for key, values in found.items()], schema=dict(schema), orient="row")
