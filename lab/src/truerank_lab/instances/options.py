"""The options of `truerank-lab build`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from truerank.errors import OptionError
from truerank.options import Flag, Options, Range, Sources
from truerank.work.runs import plain

Kind = Literal["none", "leak", "test", "by-depth"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_Folder = Annotated[str | None, Flag(metavar="DIR", reads=str)]
_Source = Annotated[str | None, Flag(metavar="SRC", reads=str)]


@dataclass(frozen=True)
class BuildOptions(Options):
    """What a set is built from.

    Attributes:
        queries: training queries; repeat the option: the sources get equal shares of the rows without a leak.
        train_qrels: their judgments: one source for all of them, or one for each in order; an ir_datasets id among the
            queries carries its own.
        docs: the training documents.
        queries_from_documents: a collection whose own documents make the queries, in place of queries and judgments.
        ends: a regular expression; what stands behind its first match counts neither as query nor as text.
        audit: folders that `leakage audit` wrote; none of their queries gets into a row without a leak.
        fill: a built set of the kind none that gives the rows without a leak.
        index: an index of the training documents to search; without it one is made.
        k: results of BM25 that the non-relevant document is drawn from.
        leaks: how many rows leak (the kinds leak and test).
        labels: judged pairs: label files or judging stores; they verify what leaks.
        topics: test topics; for the kind leak only leaks of these count.
        qrels: test judgments.
        test_docs: the test documents; by default those of training.
        rows: a Parquet table of instances with a column depth.
        annotation_depth: rows are kept down to this depth of annotation.
        allow_fewer: takes what there is where it is less than what was asked for.
    """

    queries: Sources = ()
    train_qrels: Sources = ()
    docs: _Source = None
    queries_from_documents: _Source = None
    ends: Annotated[str, Flag(metavar="REGEX")] = ""
    audit: Annotated[tuple[str, ...], Flag(metavar="DIR", reads=list[str])] = ()
    fill: _Folder = None
    index: _Folder = None
    k: Annotated[int, Range(at_least=1)] = 100
    leaks: Annotated[int | None, Range(at_least=1)] = None
    labels: Sources = ()
    topics: _Source = None
    qrels: _Source = None
    test_docs: _Source = None
    rows: _Source = None
    annotation_depth: Annotated[int | None, Range(at_least=0)] = None
    allow_fewer: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            re.compile(self.ends)
        except re.error as error:
            raise OptionError("ends", f"'{self.ends}' is not a regular expression ({error})", "correct it") from error

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(vars(self))
        return found

    def changed(self) -> dict[str, Any]:
        """The options that are not as they are by default."""
        usual = BuildOptions().json()
        return {name: value for name, value in self.json().items() if value != usual[name]}

    def check(self, kind: str) -> None:
        """Refuses options that do not go with a kind of set, or with each other."""
        if kind == "by-depth":
            _need(self.rows, "rows", f"{kind} sets are made of a table of rows")
            _need(self.annotation_depth, "annotation_depth", "say down to which depth rows are kept")
            return
        if self.rows is not None:
            raise OptionError("rows", "a table of rows makes no such set", "use `kind` by-depth")
        self._check_sources(kind)
        if kind == "none" and self.leaks is not None:
            raise OptionError("leaks", "no row of this set leaks", "leave `leaks` out")
        if kind == "leak":
            _need(
                self.queries or self.queries_from_documents, "queries", "leaking queries are looked up in their source"
            )
            _need(self.labels or None, "labels", "leaks are verified by labels")
        elif kind == "test":
            docs = self.test_docs or self.docs or self.queries_from_documents
            for value, option in ((self.topics, "topics"), (self.qrels, "qrels"), (docs, "docs")):
                _need(value, option, "test leakage is made of test topics, their judgments and documents")
        if kind != "none":
            _need(self.leaks, "leaks", "say how many rows leak")

    def _check_sources(self, kind: str) -> None:
        made = self.queries_from_documents
        if made is not None and (self.queries or self.train_qrels):
            raise OptionError("queries", "documents that make queries go with no other queries", "give either")
        if self.fill is not None and kind == "none":
            raise OptionError("fill", "a set of this kind is not filled with another one", "give `queries`")
        if self.fill is None and made is None:
            _need(self.queries or None, "queries", "rows without a leak need training queries")
        if made is None and self.queries:
            _need(self.docs, "docs", "the texts of the training documents are needed")
        if len(self.train_qrels) not in (0, 1, max(1, len(self.queries))):
            fault = f"{len(self.train_qrels)} sources for {len(self.queries)} sources of queries"
            raise OptionError("train_qrels", fault, "give one for all, or one for each, in the same order")

    def sizes(self, kind: str, asked: Sequence[int]) -> tuple[int, ...]:
        """The sizes in ascending order, each once; the first one has room for all rows that leak."""
        sizes, lead = tuple(sorted(set(asked))), self.leaks or 0
        for size in sizes:
            if size < 2 or size % 2:
                remedy = "give an even number: every query has one relevant and one non-relevant document"
                raise OptionError("size", f"{size} is not a size", remedy)
        if kind == "by-depth":
            return sizes
        if not sizes:
            raise OptionError("size", "is missing", "give one size or several, in instances: 1000 are 500 queries")
        if sizes[0] // 2 < lead:
            fault = f"the size {sizes[0]:,} has {sizes[0] // 2:,} rows, fewer than the {lead:,} that leak"
            raise OptionError("size", fault, f"begin with a size of {2 * lead:,}")
        return sizes


def _need(value: object, option: str, why: str) -> None:
    if value is None or value == ():
        raise OptionError(option, "is missing", why)
