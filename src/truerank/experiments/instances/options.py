"""The options of `instances build`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from truerank.errors import InputError
from truerank.judging.votes import Votes

__all__ = ["FORMATS", "KINDS", "BuildOptions", "Kind", "checked_sizes"]

Kind = Literal["none", "leak", "test", "by-depth", "by-version"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
#: What a built set can be written as besides its own table.
FORMATS: Final = ("jsonl", "parquet", "sentence-transformers", "triples")
_FIELDS: Final = ("title", "description", "narrative")


@dataclass(frozen=True)
class BuildOptions:
    """What a training set is built from.

    Args:
        queries: sources of training queries; they get equal shares of the rows without a leak.
        train_qrels: their judgments: one source for all of them, or one for each in order; an ir_datasets id among the
            queries carries its own.
        docs: the training documents.
        queries_from_documents: a collection whose own documents make the queries, in place of queries and train_qrels.
        words: words that make a query where a document has no title.
        rest: words that must be left of a document then; records with fewer have a title only.
        ends: a regular expression; what stands behind its first match is no text of the record (bibliographic data).
        candidates: folders that `leakage audit` wrote; none of their queries gets into a row without a leak.
        labels: judged pairs: what leaks, verified.
        votes: how one answer is made of several voices, see `judging.VOTES`.
        relevant_from: lowest grade of a relevant document in the training judgments.
        negatives: "first-stage", or "judged": documents whose grade is below `relevant_from`.
        runs: the first stage of the training queries: one run for all sources, or one for each in order.
        index: an index of the training documents to search; without it and without a run one is made.
        preset: of the first stage.
        model: of the first stage; empty for the preset's usual one.
        top_k: from how many of the first stage's documents the non-relevant one is drawn.
        fill: a built set of the kind "none" that gives the rows without a leak.
        leaks: how many rows leak (kinds "leak" and "test").
        topics: the test topics; for the kind "leak" only leaks of these count.
        field: of the test topics.
        test: of the candidates, the test set that they leak.
        threshold: takes candidates above it for leaks, although nobody verified them.
        qrels: the test judgments.
        test_docs: the test documents; default: `docs`.
        test_run: a first stage of the test topics, for judgments that hold relevant documents only.
        test_index: an index of the test documents to search for the same purpose.
        test_relevant_from: lowest grade of a relevant document in the test judgments.
        per_topic: rows of each test topic.
        rows: a table of instances with a column `depth` or `version` (or `strategy`).
        depth: rows of a greater depth are left out.
        version: rows of another version are left out.
        write: also write each size in these formats, see `FORMATS`.
        allow_fewer: take what there is where it is less than what was asked for.
        workers: processes that search.
    """

    queries: tuple[str, ...] = ()
    train_qrels: tuple[str, ...] = ()
    docs: str | None = None
    queries_from_documents: str | None = None
    words: int = 8
    rest: int = 20
    ends: str = ""
    candidates: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    votes: Votes = "majority"
    relevant_from: int = 1
    negatives: Literal["first-stage", "judged"] = "first-stage"
    runs: tuple[str, ...] = ()
    index: str | None = None
    preset: str = "anserini"
    model: str = ""
    top_k: int = 100
    fill: str | None = None
    leaks: int | None = None
    topics: str | None = None
    field: str = "title"
    test: str | None = None
    threshold: float | None = None
    qrels: str | None = None
    test_docs: str | None = None
    test_run: str | None = None
    test_index: str | None = None
    test_relevant_from: int = 1
    per_topic: int = 2
    rows: str | None = None
    depth: int | None = None
    version: str | None = None
    write: tuple[str, ...] = ()
    allow_fewer: bool = False
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("words", "rest", "top_k", "per_topic", "workers"):
            if getattr(self, name) < 1:
                fault = f"{getattr(self, name)} is not possible"
                raise InputError(fault, "give 1 or more", where=f"--{name.replace('_', '-')}")
        for form in self.write:
            if form not in FORMATS:
                raise InputError(f"no format called '{form}'", f"one of {', '.join(FORMATS)}", where="--write")
        if self.field not in _FIELDS:
            raise InputError(f"topics have no '{self.field}'", f"one of {', '.join(_FIELDS)}", where="--field")
        if self.negatives not in ("first-stage", "judged"):
            raise InputError(f"no negatives called '{self.negatives}'", "first-stage or judged", where="--negatives")
        try:
            re.compile(self.ends)
        except re.error as error:
            fault = f"'{self.ends}' is no regular expression ({error})"
            raise InputError(fault, "correct it", where="--ends") from error

    def check(self, kind: str) -> None:
        """Refuses options that do not go with a kind of set, or with each other.

        Raises:
            InputError: the kind is unknown, or an option is missing or says nothing here.
        """
        if kind not in KINDS:
            raise InputError(f"no kind of training set called '{kind}'", f"one of {', '.join(KINDS)}", where="--kind")
        if kind in ("by-depth", "by-version"):
            self._check_table(kind)
            return
        if self.rows is not None:
            raise InputError("a table of rows makes no such set", "use --kind by-depth or by-version", where="--rows")
        self._check_sources(kind)
        if kind == "leak":
            self._check_leak()
        elif kind == "test":
            for value, option in ((self.topics, "--topics"), (self.qrels, "--qrels"), (self._all_test_docs, "--docs")):
                _need(value, option, "test leakage is made of test topics, their judgments and documents")
            _need(self.leaks, "--leaks", "say how many rows come from the test topics")
        if self.leaks is not None and (kind == "none" or self.leaks < 1):
            fault = "no row of this set leaks" if kind == "none" else f"{self.leaks} rows cannot leak"
            raise InputError(fault, "leave --leaks out" if kind == "none" else "give 1 or more", where="--leaks")

    @property
    def _all_test_docs(self) -> str | None:
        return self.test_docs or self.docs or self.queries_from_documents

    def _check_table(self, kind: str) -> None:
        _need(self.rows, "--rows", f"{kind} sets are made of a table of rows")
        if kind == "by-depth":
            _need(self.depth, "--depth", "say down to which depth rows are kept")
        elif self.depth is not None:
            raise InputError("depths belong to by-depth sets", "leave it out", where="--depth")
        if kind == "by-depth" and self.version is not None:
            raise InputError("versions belong to by-version sets", "leave it out", where="--version")

    def _check_sources(self, kind: str) -> None:
        made = self.queries_from_documents
        if made is not None and (self.queries or self.train_qrels):
            raise InputError("documents that make queries go with no other queries", "give either", where="--queries")
        if self.fill is not None and kind == "none":
            raise InputError("a set of this kind is not filled with another one", "give --queries", where="--fill")
        if self.fill is None and made is None:
            _need(self.queries or None, "--queries", "rows without a leak need training queries")
        if made is None and self.queries:
            _need(self.docs, "--docs", "the texts of the training documents are needed")
        for values, option in ((self.train_qrels, "--train-qrels"), (self.runs, "--run")):
            if len(values) not in (0, 1, max(1, len(self.queries))):
                fault = f"{len(values)} sources for {len(self.queries)} sources of queries"
                raise InputError(fault, "give one for all, or one for each, in the same order", where=option)
        if self.index is not None and self.runs:
            raise InputError("a run and an index are two first stages", "give one of them", where="--run")
        if self.test_index is not None and self.test_run is not None:
            raise InputError("a run and an index are two first stages", "give one of them", where="--test-run")
        if self.negatives == "judged" and made is not None:
            raise InputError("queries made from documents have no judgments", "draw from the first stage",
                             where="--negatives")  # fmt: skip

    def _check_leak(self) -> None:
        _need(self.queries or self.queries_from_documents, "--queries", "leaking queries are looked up in their source")
        _need(self.leaks, "--leaks", "say how many rows leak")
        if self.threshold is None:
            _need(self.labels or None, "--labels", "leaks are verified by labels; --threshold takes unverified ones")
        else:
            _need(self.candidates or None, "--candidates", "unverified leaks are candidates of an audit")


def checked_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes in ascending order, each once.

    Args:
        sizes: instances, that is pairs of a query and a document: twice the number of rows.

    Raises:
        InputError: one is odd or below 2.
    """
    for size in sizes:
        if size < 2 or size % 2:
            fault = f"{size} is no size"
            remedy = "give an even number: every query has one relevant and one non-relevant document"
            raise InputError(fault, remedy, where="--size")
    return tuple(sorted(set(sizes)))


def _need(value: object, option: str, why: str) -> None:
    if value is None:
        raise InputError("is missing", why, where=option)
