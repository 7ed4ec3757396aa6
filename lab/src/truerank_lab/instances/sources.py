"""What a set is built from: sources of queries with their judgments, first stages, texts of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank import lexical
from truerank.errors import OptionError
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Document
from truerank.sources import compressed
from truerank.sources.documents import open_documents
from truerank.sources.grammar import parse, unique_names
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.queries import open_queries
from truerank.text.normalising import normalise
from truerank.work.artifacts import digest, hash_file
from truerank.work.progress import Progress
from truerank_lab.instances.document_queries import CutRule, DocumentQueries, MadeQuery
from truerank_lab.instances.draws import FirstStage, IndexStage, Queries, RowDraft, RunStage
from truerank_lab.instances.options import BuildOptions
from truerank_lab.instances.training_queries import Lane

_BLOCK: Final = 1000


class CollectionTexts:
    """The texts of one collection's documents, kept in `folder`; `docs` is None where no row needs it.

    `rule` says what is left of a document that makes a query.
    """

    def __init__(self, docs: str | None, folder: Path, rule: CutRule, progress: Progress) -> None:
        self._docs, self._folder, self._rule, self._progress = docs, folder, rule, progress
        self._store: DocumentTexts | None = None
        self._there: frozenset[str] = frozenset()

    def collect(self, doc_ids: Iterable[str]) -> None:
        wanted = frozenset(doc_ids)
        if not wanted or self._docs is None:
            return
        path = self._folder / f"texts-{digest(sorted(wanted))[:32]}.sqlite"
        DocumentTexts.collect(path, self._docs, wanted, self._progress)
        self._store = DocumentTexts(path)
        there: set[str] = set()
        ids = self._store.ids()
        while some := list(islice(ids, _BLOCK)):
            there.update(doc_id for doc_id, text in self.of(some, cut=False).items() if normalise(text))
        self._there = frozenset(there)

    def has(self, doc_id: str) -> bool:
        """Whether the collection holds this document, and a text in it."""
        return doc_id in self._there

    def made(self, doc_id: str) -> MadeQuery | None:
        """The query that a document that was collected makes; None where it has a title only."""
        return next((self._rule(document) for document in self._documents([doc_id])), None)

    def of(self, doc_ids: Sequence[str], *, cut: bool) -> dict[str, str]:
        """The texts of documents that were collected; `cut` says without the words that make the query."""
        documents = {document.doc_id: document for document in self._documents(doc_ids)}
        made = {doc_id: self._rule(document) if cut else None for doc_id, document in documents.items()}
        return {doc_id: documents[doc_id].text if one is None else one.rest for doc_id, one in made.items()}

    def _documents(self, doc_ids: Sequence[str]) -> Iterator[Document]:
        if self._store is not None:
            for doc_id, (title, body) in self._store.texts(list(doc_ids)).items():
                yield Document(doc_id, "", title, body)


def filled(drafts: Sequence[RowDraft], training: CollectionTexts, testing: CollectionTexts) -> list[tuple[str, str]]:
    """The texts of the relevant and the non-relevant document of each row."""
    texts = {}
    for key in sorted({(one.of_test, one.cut) for one in drafts}):
        own = [one for one in drafts if (one.of_test, one.cut) == key]
        ids = [doc_id for one in own for doc_id in (one.relevant_id, one.nonrelevant_id)]
        texts[key] = (testing if key[0] else training).of(ids, cut=key[1])
    found = [texts[one.of_test, one.cut] for one in drafts]
    return [(text[one.relevant_id], text[one.nonrelevant_id]) for one, text in zip(drafts, found, strict=True)]


@dataclass(frozen=True)
class Opened:
    """What a set is built from, opened when it is asked for; what is kept in `work` belongs to the seed."""

    options: BuildOptions
    seed: int
    work: Path
    progress: Progress

    @cached_property
    def docs(self) -> str | None:
        return self.options.queries_from_documents or self.options.docs

    @cached_property
    def testing_docs(self) -> str | None:
        return self.options.test_docs or self.docs

    @cached_property
    def barred_documents(self) -> frozenset[str]:
        """Training documents that must not be in a row without a leak."""
        if self.options.exclude_qrels is None:
            return frozenset()
        return relevant_documents(self.options.exclude_qrels, self.options.test_rel)

    @cached_property
    def sources(self) -> tuple[tuple[Queries, str], ...]:
        """The sources of training queries with names that differ."""
        if self.options.queries_from_documents is not None:
            made = DocumentQueries(self.options.queries_from_documents, self._rule)
            return ((made, made.name),)
        opened = [open_queries(spec) for spec in self.options.queries]
        return tuple(zip(opened, unique_names([one.spec for one in opened]), strict=True))

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """The sources of training queries, each with its judgments and its first stage."""
        return tuple(
            Lane(source, name, self._qrels(place), self._stage(place))
            for place, (source, name) in enumerate(self.sources)
        )

    @cached_property
    def testing_stage(self) -> FirstStage:
        options = self.options
        if options.test_run is not None:
            return RunStage(options.test_run, options.k)
        if options.test_index is not None:
            return self._searched(Path(options.test_index), "test")
        if self.testing_docs == self.docs:
            return self._index_stage
        if self.testing_docs is None:
            raise OptionError("test_docs", "is missing", "the texts of the test documents are needed")
        return self._searched(self._made_index(self.testing_docs, "test-index"), "test")

    @cached_property
    def training_texts(self) -> CollectionTexts:
        return CollectionTexts(self.docs, self.work, self._rule, self.progress)

    @cached_property
    def testing_texts(self) -> CollectionTexts:
        """The texts of the test documents; the same object where the collections are the same."""
        same = self.testing_docs == self.docs
        return self.training_texts if same else CollectionTexts(self.testing_docs, self.work, self._rule, self.progress)

    def inputs(self) -> dict[str, Any]:
        """Documents, judgments and first stages, for provenance."""
        options = self.options
        found: dict[str, Any] = {}
        for name, docs in (("docs", self.docs), ("test_docs", options.test_docs)):
            if docs is not None:
                opened = open_documents(docs)
                found[name] = {"name": opened.name, "source": docs, "fingerprint": opened.fingerprint}
        files = {"train_qrels": options.train_qrels, "run": options.run, "labels": options.labels}
        single = ("qrels", "topics", "test_run", "exclude_qrels")
        files |= {name: (spec,) for name in single if (spec := getattr(options, name))}
        found |= {name: [described_file(spec) for spec in specs] for name, specs in files.items() if specs}
        if (options.queries or options.queries_from_documents) and options.negatives == "first-stage":
            found["first_stage"] = self._first_stage
        return found

    @property
    def _rule(self) -> CutRule:
        return self.options.cut

    @cached_property
    def _first_stage(self) -> Mapping[str, Any]:
        about: dict[str, Any] = {"k": self.options.k}
        if self.options.run:
            return about
        opened = lexical.open_index(self._index_folder)
        return {**about, **self._model.json(), "preset": self.options.preset, "index": opened.fingerprint}

    @cached_property
    def _model(self) -> lexical.Model | lexical.Expansion:
        return lexical.model_of(self.options.preset, self.options.model)

    def _qrels(self, place: int) -> str | None:
        options = self.options
        if options.queries_from_documents is not None:
            return None
        if options.train_qrels:
            return options.train_qrels[place if len(options.train_qrels) > 1 else 0]
        spec = parse(options.queries[place])
        if spec.scheme != "irds":
            raise OptionError("train_qrels", "is missing", f"name the judgments of {spec.name}")
        return spec.spec

    def _stage(self, place: int) -> FirstStage | None:
        options = self.options
        if options.negatives == "judged":
            return None
        if options.run:
            return RunStage(options.run[place if len(options.run) > 1 else 0], options.k)
        return self._index_stage

    @cached_property
    def _index_folder(self) -> Path:
        if self.options.index is not None:
            return Path(self.options.index)
        if self.docs is None:
            raise OptionError("docs", "is missing", "the texts of the training documents are needed")
        return self._made_index(self.docs, "index")

    @cached_property
    def _index_stage(self) -> IndexStage:
        return self._searched(self._index_folder, "training")

    def _made_index(self, docs: str, name: str) -> Path:
        folder = self.work / name
        lexical.kept_index(docs, folder, lexical.analyser_of(self.options.preset), self.progress)
        return folder

    def _searched(self, folder: Path, purpose: str) -> IndexStage:
        index = lexical.open_index(folder)
        lexical.require_analyser(index, self.options.preset)
        # What was found is kept under a name that stands for all it depends on.
        about = [purpose, index.fingerprint, self._model.json(), self.options.k, self.seed, self._rule.words,
                 self._rule.rest, self._rule.ends]  # fmt: skip
        cache = self.work / digest(about)[:16]
        options = self.options
        return IndexStage(folder, self._model, options.k, cache=cache, workers=options.workers, progress=self.progress)


def relevant_documents(qrels: str, rel: int) -> frozenset[str]:
    judged = read_qrels_frame(qrels)
    return frozenset(judged.filter(pl.col("relevance") >= rel)["doc_id"].to_list())


def described_file(spec: str) -> dict[str, Any]:
    """A source, and where it is a file the hash of its bytes."""
    parsed = parse(spec)
    if parsed.scheme != "file" or compressed.is_folder(parsed.path):
        return {"source": spec}
    return {"source": spec, "sha256": hash_file(parsed.path)}
