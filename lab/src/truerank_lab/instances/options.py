"""The options of `instances build`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Final, Literal, get_args

from truerank.errors import OptionError
from truerank.lexical.presets import PresetName
from truerank.options import Flag, Options, Range, Sources, Votes
from truerank.work.runs import plain
from truerank_lab.instances.document_queries import CutRule

Kind = Literal["none", "leak", "test", "test-queries", "test-documents", "test-reworded", "by-depth", "by-version"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
#: Kinds whose leaking rows are made of test topics and their judgments.
TEST_KINDS: Final[tuple[Kind, ...]] = ("test", "test-queries", "test-documents", "test-reworded")
#: What a built set can be written as besides its own table.
Format = Literal["jsonl", "parquet", "sentence-transformers", "triples"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

_Folder = Annotated[str | None, Flag(metavar="DIR", reads=str)]
_Folders = Annotated[tuple[str, ...], Flag(metavar="DIR", reads=list[str])]
_File = Annotated[str | None, Flag(metavar="FILE", reads=str)]
_Source = Annotated[str | None, Flag(metavar="SRC", reads=str)]
_Count = Annotated[int, Range(at_least=1)]


@dataclass(frozen=True)
class TrainingOptions(Options):
    """Training data; rows without a leak are made of it.

    Attributes:
        queries: training queries; repeat the option: the sources get equal shares of the rows without a leak.
        train_qrels: their judgments: one source for all of them, or one for each in order; an ir_datasets id among the
            queries carries its own.
        docs: the training documents.
        rel: lowest grade of a relevant document in the training judgments.
        queries_from_documents: a collection whose own documents make the queries, in place of queries and judgments.
        audit: folders that `leakage audit` wrote; none of their queries gets into a row without a leak.
        fill: a built set of the kind none that gives the rows without a leak.
        exclude_qrels: judgments over the training documents; what they call relevant gets into no row without a leak.
    """

    queries: Sources = ()
    train_qrels: Sources = ()
    docs: _Source = None
    rel: _Count = 1
    queries_from_documents: _Source = None
    audit: _Folders = ()
    fill: _Folder = None
    exclude_qrels: _Source = None


@dataclass(frozen=True)
class FirstStageOptions(Options):
    """Non-relevant training documents.

    Attributes:
        negatives: where they come from: the first stage, or documents whose grade is below `rel`.
        run: first stage of the training queries: one run for all sources, or one for each in order.
        index: an index of the training documents to search; without it and without a run one is made.
        preset: of the first stage.
        model: of the first stage; by default the preset's usual one.
        k: results of the first stage that the non-relevant document is drawn from.
        workers: processes that search.
    """

    negatives: Literal["first-stage", "judged"] = "first-stage"
    run: Annotated[tuple[str, ...], Flag(metavar="FILE", reads=list[str])] = ()
    index: _Folder = None
    preset: PresetName = "anserini"
    model: str = ""
    k: _Count = 100
    workers: _Count = 1


@dataclass(frozen=True)
class LeakOptions(Options):
    """Rows that leak.

    Attributes:
        leaks: how many rows leak (the kind leak, and those of test topics).
        labels: judged pairs: label files or judging stores; they verify what leaks.
        votes: how several voices make one answer.
        threshold: takes candidates above this similarity for leaks, verified or not.
        test_set: of the candidates, the test set that they leak.
    """

    leaks: Annotated[int | None, Range(at_least=1)] = None
    labels: Sources = ()
    votes: Votes = "majority"
    threshold: float | None = None
    test_set: Annotated[str | None, Flag(metavar="NAME")] = None


@dataclass(frozen=True)
class TopicOptions(Options):
    """Test data.

    Attributes:
        topics: test topics; for the kind leak only leaks of these count.
        field: of the topics: title, description or narrative.
        qrels: test judgments.
        test_docs: the test documents; by default those of training.
        test_run: first stage of the topics, for judgments that hold relevant documents only.
        test_index: an index of the test documents to search for the same purpose.
        test_rel: lowest grade of a relevant document in the test judgments.
        rows_per_topic: rows of each test topic, with different documents.
    """

    topics: _Source = None
    field: Literal["title", "description", "narrative"] = "title"
    qrels: _Source = None
    test_docs: _Source = None
    test_run: _File = None
    test_index: _Folder = None
    test_rel: _Count = 1
    rows_per_topic: _Count = 2


@dataclass(frozen=True)
class TableOptions(Options):
    """Rows of a table, for sets by depth and by version.

    Attributes:
        rows: a table of instances with a column depth, or version or strategy.
        annotation_depth: rows are kept down to this depth of annotation.
        strategy: rows of this version or strategy are kept.
    """

    rows: _Source = None
    annotation_depth: Annotated[int | None, Range(at_least=0)] = None
    strategy: Annotated[str | None, Flag(metavar="NAME")] = None


@dataclass(frozen=True)
class BuildOptions(TableOptions, TopicOptions, LeakOptions, FirstStageOptions, TrainingOptions):
    """All options of a set together.

    Attributes:
        cut: how documents make queries.
        write: each size is also written in these formats.
        allow_fewer: takes what there is where it is less than what was asked for.
    """

    cut: CutRule = field(default_factory=CutRule)
    write: tuple[Format, ...] = ()
    allow_fewer: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for form in self.write:
            if form not in FORMATS:
                raise OptionError("write", f"no format called '{form}'", f"choose one of {', '.join(FORMATS)}")

    @classmethod
    def of(cls, *groups: Options, **others: Any) -> BuildOptions:
        """Puts the groups, and what belongs to none, together."""
        values = {name: value for group in groups for name, value in vars(group).items()}
        return cls(**values, **others)

    @classmethod
    def flat(cls, values: Mapping[str, Any]) -> BuildOptions:
        """The options by their own names, as a design has them."""
        cut = {part.name: values[part.name] for part in fields(CutRule) if part.name in values}
        return cls(cut=CutRule(**cut), **{name: value for name, value in values.items() if name not in cut})

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(vars(self))
        return found

    def changed(self) -> dict[str, Any]:
        """The options that are not as they are by default."""
        given, usual = self.json(), BuildOptions().json()
        return {name: value for name, value in given.items() if value != usual[name]}

    def check(self, kind: str) -> None:
        """Refuses options that do not go with a kind of set, or with each other."""
        if kind in ("by-depth", "by-version"):
            _need(self.rows, "rows", f"{kind} sets are made of a table of rows")
            if kind == "by-depth":
                _need(self.annotation_depth, "annotation_depth", "say down to which depth rows are kept")
            elif self.annotation_depth is not None:
                raise OptionError("annotation_depth", "depths belong to by-depth sets", "leave it out")
            if kind == "by-depth" and self.strategy is not None:
                raise OptionError("strategy", "versions belong to by-version sets", "leave it out")
            return
        if self.rows is not None:
            raise OptionError("rows", "a table of rows makes no such set", "use `kind` by-depth or by-version")
        self._check_sources(kind)
        if kind == "leak":
            asked = self.queries or self.queries_from_documents
            _need(asked, "queries", "leaking queries are looked up in their source")
            _need(self.leaks, "leaks", "say how many rows leak")
            if self.threshold is None:
                _need(self.labels or None, "labels", "leaks are verified by labels; `threshold` takes unverified ones")
            else:
                _need(self.audit or None, "audit", "unverified leaks are candidates of an audit")
        elif kind in TEST_KINDS:
            docs = self.test_docs or self.docs or self.queries_from_documents
            for value, option in ((self.topics, "topics"), (self.qrels, "qrels"), (docs, "docs")):
                _need(value, option, "test leakage is made of test topics, their judgments and documents")
            _need(self.leaks, "leaks", "say how many rows come from the test topics")
        if self.leaks is not None and kind == "none":
            raise OptionError("leaks", "no row of this set leaks", "leave `leaks` out")

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
        for values, option in ((self.train_qrels, "train_qrels"), (self.run, "run")):
            if len(values) not in (0, 1, max(1, len(self.queries))):
                fault = f"{len(values)} sources for {len(self.queries)} sources of queries"
                raise OptionError(option, fault, "give one for all, or one for each, in the same order")
        if self.index is not None and self.run:
            raise OptionError("run", "a run and an index are two first stages", "give one of them")
        if self.test_index is not None and self.test_run is not None:
            raise OptionError("test_run", "a run and an index are two first stages", "give one of them")
        if self.negatives == "judged" and made is not None:
            raise OptionError("negatives", "queries made from documents have no judgments", "draw from the first stage")


def checked_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes in ascending order, each once."""
    for size in sizes:
        if size < 2 or size % 2:
            remedy = "give an even number: every query has one relevant and one non-relevant document"
            raise OptionError("size", f"{size} is not a size", remedy)
    return tuple(sorted(set(sizes)))


def _need(value: object, option: str, why: str) -> None:
    if value is None:
        raise OptionError(option, "is missing", why)
