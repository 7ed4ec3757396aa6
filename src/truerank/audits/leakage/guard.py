"""A guard for training data: rows with a test query are dropped while the data are read, and counted.

With an audit, these are the rows that `leakage clean` removes by it. Without one, each row is looked at on its own,
with the evidence of `leakage audit`: similarity under the encoder, the same content words, nearly the same letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.leakage.audit import read_tests
from truerank.audits.leakage.clean import (
    LeakingExamples,
    LeakPair,
    LeakRules,
    leaking_examples,
    leaking_texts,
    open_audit,
)
from truerank.audits.leakage.encoders import Models, QueryProbe, read_vectors, unread, unread_share
from truerank.audits.leakage.options import AuditOptions, opened_labels
from truerank.audits.leakage.proposals import topic_texts
from truerank.audits.leakage.results import UNDECIDED, UNDECIDED_ORDER, AuditResult, UnreadShare
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.options import Encoding, Flag, Labels, command
from truerank.records import TopicText
from truerank.sources.columns import Roles, roles_of, texts_of
from truerank.text.contrasts import contrast
from truerank.text.normalising import mended, normalise
from truerank.text.wording import EVIDENCE
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
    similarity: float | None
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
        unread: how many of a sample of the first texts the encoder cannot read: such texts were compared by words and
            letters only. None without an encoder.
        basis: "audit", or "rows" where each row was looked at on its own.
        left: with an audit, texts that it lists and that stay, by the reason.
    """

    read: int
    dropped: int
    topics: Mapping[str, tuple[str, ...]]
    rows: pl.DataFrame
    columns: tuple[str, ...]
    threshold: float | None
    encoder: str
    unread: UnreadShare | None = None
    basis: str = "rows"
    left: Mapping[str, int] = field(default_factory=dict)


class LeakageGuard:
    """The rows of a data set without those that hold a test query.

    Attributes:
        dataset: the rows that are kept: a data set of the type that was given.
    """

    dataset: Any

    def __init__(self, evidence: _TestQueries | _Audited, columns: Sequence[str]) -> None:
        self._evidence = evidence
        self._columns = tuple(columns)
        self._read = self._dropped = 0
        self._topics: dict[str, dict[str, None]] = {}
        self._rows: list[DroppedRow] = []

    def __repr__(self) -> str:
        return f"<LeakageGuard: {self._dropped:,} of {self._read:,} rows dropped, {self._evidence.about()}>"

    def look_at(self, first: Sequence[Mapping[str, Any]]) -> None:
        """Tells the columns to compare from the first rows, where they are not given."""
        self._columns = self._evidence.columns(first, self._columns)

    def keeps(self, rows: Mapping[str, Sequence[Any]]) -> list[bool]:
        """Which rows of a batch are kept, and counts the others.

        Args:
            rows: columns by name, as `datasets` hands on a batch.
        """
        texts = [_RowText(row, column, text) for column in self._columns for row, value in enumerate(rows[column])
                 for text in texts_of(value)]  # fmt: skip
        dropped: dict[int, DroppedRow] = {}
        for leak in self._evidence.dropped(texts):
            if leak.topic_id:
                self._topics.setdefault(leak.test, {})[leak.topic_id] = None
            if leak.row not in dropped or (leak.similarity or 0) > (dropped[leak.row].similarity or 0):
                dropped[leak.row] = leak._replace(row=self._read + leak.row)
        size = len(next(iter(rows.values())))
        self._read += size
        self._dropped += len(dropped)
        self._rows += [dropped[row] for row in sorted(dropped)][: _KEPT - len(self._rows)]
        return [row not in dropped for row in range(size)]

    def report(self) -> GuardReport:
        """What was dropped so far; of a stream, what was read of it in this process."""
        return GuardReport(
            self._read,
            self._dropped,
            {test: tuple(ids) for test, ids in self._topics.items()},
            pl.DataFrame(self._rows, schema=_SCHEMA, orient="row"),
            self._columns,
            *self._evidence.means(),
        )


@command
def guard(
    dataset: Any,
    test: Annotated[Sequence[str], Flag(metavar="SRC", reads=list[str])] = (),
    *,
    audit: Annotated[AuditResult | str | Path | None, Flag(metavar="DIR", reads=str)] = None,
    columns: Sequence[str] = (),
    options: AuditOptions = AuditOptions(),
    encoding: Encoding = Encoding(),
    rules: LeakRules = LeakRules(),
    judged: Labels = Labels(),
) -> LeakageGuard:
    """Drops the rows of a training set that hold a query of a test set.

    With an audit of the training data, they are the rows that `leakage clean` removes by it. Without one, each row is
    looked at on its own: what an audit tells from the whole source (which words are rare in it, which evidence is too
    weak) is not known, so that a few rows more or less go.

    A `datasets.Dataset` is filtered at once. Of an `IterableDataset` rows are dropped while it is read, and the report
    grows with it; with several workers each of them counts its own.

    Args:
        dataset: a `datasets.Dataset` or `IterableDataset`, or a list of mappings.
        test: test sets, as in `leakage audit`; not needed with an audit.
        audit: what `leakage audit` found in the training data, or its folder.
        columns: the columns to compare; by default those that hold queries (`anchor`, `query`, `sentence1`, …), and
            with an audit of training examples all that hold texts.
        options: fields of the topics, variants and threshold; what concerns the training source is not used.
        encoding: what turns texts into vectors; without an audit.
        rules: which pairs of an audit count as leaks.
        judged: judged pairs of an audit.

    Returns:
        The guard: `.dataset` for the trainer, `.report()` for what was dropped.

    Raises:
        InputError: a test set or column is at fault, or the data set is of no known type.
    """
    if audit is None and not test:
        raise OptionError("test", "neither a test set nor an audit", "give one of them")
    if audit is not None and options != AuditOptions():
        fault = "with an audit, these options have no use"
        raise OptionError("options", fault, "give rules=LeakRules(…) for its kinds")
    evidence = _TestQueries.of(test, options, encoding) if audit is None else _Audited.of(audit, rules, judged)
    watch = LeakageGuard(evidence, columns)
    if hasattr(dataset, "select_columns") and hasattr(dataset, "select"):
        watch.look_at(list(islice(iter(dataset), _FIRST)))
        compared = dataset.select_columns(list(watch._columns))
        kept: list[int] = []
        for start in range(0, len(dataset), _BATCH):
            keeps = watch.keeps(compared[start : start + _BATCH])
            kept += [start + row for row, keep in enumerate(keeps) if keep]
        watch.dataset = dataset.select(kept)
    elif hasattr(dataset, "take") and hasattr(dataset, "filter"):
        watch.look_at(list(dataset.take(_FIRST)))
        watch.dataset = dataset.filter(watch.keeps, batched=True, batch_size=_BATCH)
    elif isinstance(dataset, list | tuple) and all(isinstance(row, Mapping) for row in dataset):
        watch.look_at(dataset[:_FIRST])
        watch.dataset = []
        for start in range(0, len(dataset), _BATCH):
            some = dataset[start : start + _BATCH]
            keeps = watch.keeps({column: [row.get(column) for row in some] for column in watch._columns})
            watch.dataset += [row for row, keep in zip(some, keeps, strict=True) if keep]
    else:
        fault = f"cannot read a {type(dataset).__name__}"
        raise OptionError("dataset", fault, "give a datasets.Dataset, an IterableDataset, or a list of mappings")
    return watch


_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "row: Int64, column text test topic_id topic_text: String, similarity: Float64, evidence: String"
)


class _RowText(NamedTuple):
    row: int
    column: str
    text: str


@dataclass(frozen=True)
class _TestQueries:
    """The texts of test topics, ready to be compared with one row at a time."""

    texts: tuple[TopicText, ...]
    vectors: Vectors
    encoder: Encoder
    probe: QueryProbe
    threshold: float
    unread: list[UnreadShare] = field(default_factory=list)

    @classmethod
    def of(cls, test: Any, options: AuditOptions, encoding: Encoding) -> _TestQueries:
        tests = read_tests([test] if isinstance(test, str) else list(test), options)
        texts = tuple(topic_texts(tests, options.fields))
        if not texts:
            raise InputError("no topic has a text in these fields", "choose others with `fields`", where="test")
        encoder = Models.of(encoding).encoder
        normalised = [normalise(text.text) for text in texts]
        return cls(texts, read_vectors(normalised, encoder), encoder, QueryProbe.of(normalised), options.threshold)

    def columns(self, first: Sequence[Mapping[str, Any]], chosen: Sequence[str]) -> tuple[str, ...]:
        return _chosen(first, chosen, ("query",))

    def about(self) -> str:
        """What rows are compared with, and how, in words."""
        tests = ", ".join(dict.fromkeys(text.test for text in self.texts))
        return f"{len(self.texts):,} texts of {tests}, {self.encoder.name} above {self.threshold:g}"

    def means(self) -> tuple[float | None, str, UnreadShare | None, str, Mapping[str, int]]:
        """Threshold, encoder, texts that it could not read, basis, and what is left."""
        return self.threshold, self.encoder.name, next(iter(self.unread), None), "rows", {}

    def dropped(self, texts: Sequence[_RowText]) -> Iterator[DroppedRow]:
        """The rows of a batch that hold a test query, once for each piece of evidence."""
        for place, number, similarity, evidence in self.found([one.text for one in texts]):
            topic = self.texts[number]
            rest = topic.text, round(similarity, 6), evidence
            yield DroppedRow(*texts[place], topic.test, topic.topic_id, *rest)

    def found(self, texts: Sequence[str]) -> Iterator[tuple[int, int, float, str]]:
        """Place in `texts`, number of the topic text, similarity and evidence of each pair that speaks for a leak."""
        normalised = [mended(text) for text in texts]
        distinct = list(dict.fromkeys(text for text in normalised if text))
        if not distinct:
            return
        asked = partial(unread, encoder=self.encoder)
        if not self.unread:
            self.unread.append(unread_share(distinct, asked))
        similarities = self.encoder.encode(distinct) @ self.vectors.T
        above = np.flatnonzero((similarities > np.float32(self.threshold)).any(axis=1))
        similarities[above[asked([distinct[row] for row in above.tolist()])]] = 0
        rows, numbers = (side.tolist() for side in np.nonzero(similarities > np.float32(self.threshold)))
        pairs: dict[tuple[int, int], list[str]] = {(row, number): [EVIDENCE[0]] for row, number in
                                                   zip(rows, numbers, strict=True)}  # fmt: skip
        for row, number, what in self.probe(distinct):
            pairs.setdefault((row, number), []).append(EVIDENCE[what])
        pairs = {(row, number): by for (row, number), by in pairs.items()
                 if contrast(normalise(self.texts[number].text), distinct[row])
                 in (UNDECIDED_ORDER if EVIDENCE[1] in by else UNDECIDED)}  # fmt: skip
        by_text: dict[str, list[tuple[int, float, str]]] = {}
        for (row, number), evidence in sorted(pairs.items()):
            one = (number, float(similarities[row, number]), "+".join(evidence))
            by_text.setdefault(distinct[row], []).append(one)
        for place, text in enumerate(normalised):
            for number, similarity, evidence_of in by_text.get(text, ()):
                yield place, number, similarity, evidence_of


@dataclass
class _Audited:
    """What an audit of the training data says, as `leakage clean` reads it."""

    audit: AuditResult
    queries: Mapping[str, Sequence[LeakPair]]
    examples: LeakingExamples | None
    left: Mapping[str, int]
    roles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, audit: AuditResult | str | Path, rules: LeakRules, judged: Labels) -> _Audited:
        judgments, opened = opened_labels(judged), open_audit(audit)
        if any("roles" in source for source in opened.summary["sources"].values()):
            leaking, left = leaking_examples(opened, judgments, rules)
            return cls(opened, {}, leaking, left)
        queries = leaking_texts(opened, judgments, rules)
        return cls(opened, queries.by_text, None, queries.left)

    def columns(self, first: Sequence[Mapping[str, Any]], chosen: Sequence[str]) -> tuple[str, ...]:
        """The columns to compare; with whole examples, the roles of all are told."""
        if self.examples is None or not first:
            return _chosen(first, chosen, ("query",))
        read = [str(source["roles"]) for source in self.audit.summary["sources"].values() if source.get("given")]
        self.roles = dict((Roles.parse(read[0].replace(", ", ",")) if read else roles_of(first)).columns)
        return _chosen(first, chosen or tuple(self.roles), ())

    def about(self) -> str:
        """What rows are compared with, and how, in words."""
        return "by an audit"

    def means(self) -> tuple[float | None, str, UnreadShare | None, str, Mapping[str, int]]:
        """Threshold, encoder, texts that it could not read, basis, and what is left."""
        threshold = None if self.examples else self.audit.summary["threshold"]
        return threshold, "", None, "audit", self.left

    def dropped(self, texts: Sequence[_RowText]) -> Iterator[DroppedRow]:
        """The rows of a batch that leak, once for each reason."""
        for text in texts if self.queries else ():
            for leak in self.queries.get(mended(text.text), ()):
                yield DroppedRow(*text, leak.test, leak.topic_id, "", leak.similarity, leak.why)
        if self.examples is None:
            return
        for _, group in groupby(sorted(texts, key=lambda text: text.row), key=lambda text: text.row):
            members = list(group)
            keys = {(self.roles[text.column], normalise(text.text)): text for text in members}
            for reason in self.examples.reasons(keys.keys()):
                for topic in sorted(reason.topics) or [""]:
                    why = "+".join(sorted(reason.kinds))
                    yield DroppedRow(*members[0], next(iter(self.audit.summary["tests"])), topic, "", None, why)


def _chosen(first: Sequence[Mapping[str, Any]], columns: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    """The columns to compare, told from the first rows where they are not given."""
    if not first:
        return tuple(columns)
    there = list(first[0])
    chosen = tuple(columns) or tuple(name for role in roles for name in roles_of(first).of(role))
    missing = [column for column in chosen if column not in there]
    if missing or not chosen:
        fault = f"no column '{missing[0]}'" if missing else "no column is known to hold queries"
        raise OptionError("columns", fault, f"choose among {', '.join(there)}")
    return chosen
