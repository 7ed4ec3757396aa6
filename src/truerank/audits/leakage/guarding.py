"""A guard for training data: rows with a test query are dropped while the data are read, and told.

The evidence is that of `leakage audit`: similarity under the encoder, the same content words, nearly the same letters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.audits.leakage.audit import read_tests
from truerank.audits.leakage.encoders import Models
from truerank.audits.leakage.options import AuditOptions
from truerank.audits.leakage.proposing import topic_texts
from truerank.errors import InputError, OptionError
from truerank.options import Encoding, Flag, command
from truerank.records import TopicText
from truerank.reports.results import Result
from truerank.sources.roles import roles_of, texts_of
from truerank.text.normalising import normalise
from truerank.text.wording import EVIDENCE, WORDS, WordingProbe
from truerank.vectors.encoders import Encoder, Vectors

_BATCH: Final = 1024
#: Records from which the columns are told apart.
_FIRST: Final = 64
#: Dropped rows that are kept as examples; all are counted.
_KEPT: Final = 10_000


class DroppedRow(NamedTuple):
    """A row that was dropped, with the strongest of its evidence.

    `row` is its place among the rows that were read, from 0; `evidence` joins what speaks for it with "+".
    """

    row: int
    column: str
    text: str
    test: str
    topic_id: str
    topic_text: str
    similarity: float
    evidence: str


@dataclass(frozen=True, eq=False, repr=False)
class GuardReport(Result, shown_in="truerank.audits.leakage.summaries"):
    """What a guard has dropped so far.

    Attributes:
        read: rows that were read.
        dropped: rows that were dropped.
        topics: by test set, the ids of the topics that they leak.
        rows: the first dropped rows, columns as in `DroppedRow`.
        columns: the columns that were compared.
        threshold: the similarity above which the encoder speaks for a leak.
        encoder: its name.
        unread: texts that the encoder could not read: they were compared by words and letters only.
    """

    read: int
    dropped: int
    topics: Mapping[str, tuple[str, ...]]
    rows: pl.DataFrame
    columns: tuple[str, ...]
    threshold: float
    encoder: str
    unread: int = 0

    def json(self) -> dict[str, Any]:
        """The counts, and the first dropped rows."""
        return {
            "read": self.read,
            "dropped": self.dropped,
            "topics": {test: list(ids) for test, ids in self.topics.items()},
            "columns": list(self.columns),
            "threshold": self.threshold,
            "encoder": self.encoder,
            "unread": self.unread,
            "rows": self.rows.to_dicts(),
        }


class LeakageGuard:
    """The rows of a data set without those that hold a test query.

    Attributes:
        dataset: the rows that are kept: a data set of the type that was given.
    """

    dataset: Any

    def __init__(self, tests: _TestQueries, columns: Sequence[str]) -> None:
        self._tests = tests
        self._columns = tuple(columns)
        self._counts = _Counts()

    def keeps(self, rows: Mapping[str, Sequence[Any]]) -> list[bool]:
        """Which rows of a batch are kept, and counts the others.

        Args:
            rows: columns by name, as `datasets` hands on a batch.
        """
        texts = [(row, column, text) for column in self._columns for row, value in enumerate(rows[column])
                 for text in texts_of(value)]  # fmt: skip
        found = self._tests.found([text for _, _, text in texts])
        dropped: dict[int, DroppedRow] = {}
        for place, number, similarity, evidence in found:
            row, column, text = texts[place]
            topic = self._tests.texts[number]
            one = DroppedRow(self._counts.read + row, column, text, topic.test, topic.topic_id, topic.text,
                             round(similarity, 6), evidence)  # fmt: skip
            self._counts.topics.setdefault(topic.test, {})[topic.topic_id] = None
            if row not in dropped or similarity > dropped[row].similarity:
                dropped[row] = one
        size = len(next(iter(rows.values())))
        self._counts.read += size
        self._counts.dropped += len(dropped)
        self._counts.rows += [dropped[row] for row in sorted(dropped)][: _KEPT - len(self._counts.rows)]
        return [row not in dropped for row in range(size)]

    def report(self) -> GuardReport:
        """What was dropped so far; of a stream, what was read of it in this process."""
        counts = self._counts
        return GuardReport(
            counts.read,
            counts.dropped,
            {test: tuple(ids) for test, ids in counts.topics.items()},
            pl.DataFrame(counts.rows, schema=_SCHEMA, orient="row"),
            self._columns,
            self._tests.threshold,
            self._tests.encoder.name,
            self._tests.unread.total(),
        )


@command
def guard(
    dataset: Any,
    test: Annotated[Sequence[str], Flag(metavar="SRC", reads=list[str])],
    *,
    columns: Sequence[str] = (),
    options: AuditOptions = AuditOptions(),
    encoding: Encoding = Encoding(),
) -> LeakageGuard:
    """Drops the rows of a training set that hold a query of a test set.

    A `datasets.Dataset` is filtered at once. Of an `IterableDataset` rows are dropped while it is read, and the report
    grows with it; with several workers each of them counts its own.

    Args:
        dataset: a `datasets.Dataset` or `IterableDataset`, or a list of mappings.
        test: test sets, as in `leakage audit`.
        columns: the columns to compare; by default those that hold queries (`anchor`, `query`, `sentence1`, …).
        options: fields of the topics, variants and threshold; what concerns the training source is not used.
        encoding: what turns texts into vectors.

    Returns:
        The guard: `.dataset` for the trainer, `.report()` for what was dropped.

    Raises:
        InputError: a test set or column is at fault, or the data set is of no known type.
    """
    tests = _TestQueries.of(test, options, encoding)
    watch = LeakageGuard(tests, columns)
    if hasattr(dataset, "select_columns") and hasattr(dataset, "select"):
        watch._columns = _chosen(list(islice(iter(dataset), _FIRST)), columns)
        compared = dataset.select_columns(list(watch._columns))
        kept: list[int] = []
        for start in range(0, len(dataset), _BATCH):
            keeps = watch.keeps(compared[start : start + _BATCH])
            kept += [start + row for row, keep in enumerate(keeps) if keep]
        watch.dataset = dataset.select(kept)
    elif hasattr(dataset, "take") and hasattr(dataset, "filter"):
        watch._columns = _chosen(list(dataset.take(_FIRST)), columns)
        watch.dataset = dataset.filter(watch.keeps, batched=True, batch_size=_BATCH)
    elif isinstance(dataset, list | tuple) and all(isinstance(row, Mapping) for row in dataset):
        watch._columns = _chosen(dataset[:_FIRST], columns)
        watch.dataset = list(chain.from_iterable(_kept(dataset, watch)))
    else:
        fault = f"cannot read a {type(dataset).__name__}"
        raise OptionError("dataset", fault, "give a datasets.Dataset, an IterableDataset, or a list of mappings")
    return watch


@dataclass
class _Counts:
    """What a guard has seen."""

    read: int = 0
    dropped: int = 0
    topics: dict[str, dict[str, None]] = field(default_factory=dict)
    rows: list[DroppedRow] = field(default_factory=list)


_SCHEMA: Final[dict[str, Any]] = {
    "row": pl.Int64, "column": pl.String, "text": pl.String, "test": pl.String, "topic_id": pl.String,
    "topic_text": pl.String, "similarity": pl.Float64, "evidence": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class _TestQueries:
    """The texts of test topics, ready to be compared."""

    texts: tuple[TopicText, ...]
    vectors: Vectors
    encoder: Encoder
    probe: WordingProbe
    threshold: float
    unread: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, test: Any, options: AuditOptions, encoding: Encoding) -> _TestQueries:
        tests = read_tests([test] if isinstance(test, str) else list(test), options)
        texts = tuple(topic_texts(tests, options.fields))
        if not texts:
            raise InputError("no topic has a text in these fields", "choose others with `fields`", where="test")
        encoder = Models.of(encoding).encoder
        normalised = [normalise(text.text) for text in texts]
        return cls(texts, encoder.encode(normalised), encoder, WordingProbe(normalised), options.threshold)

    def found(self, texts: Sequence[str]) -> Iterator[tuple[int, int, float, str]]:
        """Place in `texts`, number of the topic text, similarity and evidence of each pair that speaks for a leak."""
        normalised = [normalise(text) for text in texts]
        distinct = list(dict.fromkeys(text for text in normalised if text))
        if not distinct:
            return
        vectors = self.encoder.encode(distinct)
        self.unread.update(text=int((~vectors.any(axis=1)).sum()))
        similarities = vectors @ self.vectors.T
        rows, numbers = (side.tolist() for side in np.nonzero(similarities > np.float32(self.threshold)))
        pairs: dict[tuple[int, int], list[str]] = {(row, number): [EVIDENCE[0]] for row, number in
                                                   zip(rows, numbers, strict=True)}  # fmt: skip
        for row, number, what in self.probe(distinct):
            pairs.setdefault((row, number), []).append(EVIDENCE[1 if what == WORDS else 2])
        by_text: dict[str, list[tuple[int, float, str]]] = {}
        for (row, number), evidence in sorted(pairs.items()):
            one = (number, float(similarities[row, number]), "+".join(evidence))
            by_text.setdefault(distinct[row], []).append(one)
        for place, text in enumerate(normalised):
            for number, similarity, evidence_of in by_text.get(text, ()):
                yield place, number, similarity, evidence_of


def _chosen(first: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns to compare, told from the first rows where they are not given."""
    if not first:
        return tuple(columns)
    there = list(first[0])
    chosen = tuple(columns) or roles_of(first).of("query")
    missing = [column for column in chosen if column not in there]
    if missing or not chosen:
        fault = f"no column '{missing[0]}'" if missing else "no column is known to hold queries"
        raise OptionError("columns", fault, f"choose among {', '.join(there)}")
    return chosen


def _kept(rows: Sequence[Mapping[str, Any]], watch: LeakageGuard) -> Iterator[Iterable[Mapping[str, Any]]]:
    for start in range(0, len(rows), _BATCH):
        some = rows[start : start + _BATCH]
        keeps = watch.keeps({column: [row.get(column) for row in some] for column in watch._columns})
        yield [row for row, keep in zip(some, keeps, strict=True) if keep]
