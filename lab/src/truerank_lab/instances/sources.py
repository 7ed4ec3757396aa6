"""What a set is built from: sources of queries with their judgments, first stages, texts of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from truerank import lexical
from truerank.errors import OptionError
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Document
from truerank.sources.grammar import parse, unique_names
from truerank.sources.queries import open_queries
from truerank.text.normalising import normalise
from truerank.work.artifacts import digest
from truerank.work.progress import Progress
from truerank_lab.instances.document_queries import DocumentQueries, divided
from truerank_lab.instances.draws import FirstStage, RowDraft
from truerank_lab.instances.options import BuildOptions
from truerank_lab.instances.training_queries import Lane

_BLOCK: Final = 1000


class CollectionTexts:
    """The texts of one collection's documents, kept in `folder`; `docs` is None where no row needs it.

    `ends` says where the text of a document that makes a query ends.
    """

    def __init__(self, docs: str | None, folder: Path, ends: str, progress: Progress) -> None:
        self._docs, self._folder, self._ends, self._progress = docs, folder, ends, progress
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

    def of(self, doc_ids: Sequence[str], *, cut: bool) -> dict[str, str]:
        """The texts of documents that were collected; `cut` says without the words that make the query."""
        documents = {document.doc_id: document for document in self._documents(doc_ids)}
        made = {doc_id: divided(document, self._ends) if cut else None for doc_id, document in documents.items()}
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


#: BM25 as the papers have it.
_PRESET: Final = "anserini"


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
    def lanes(self) -> tuple[Lane, ...]:
        """The sources of training queries with names that differ, each with its judgments."""
        if self.options.queries_from_documents is not None:
            made = DocumentQueries(self.options.queries_from_documents, self.options.ends)
            return (Lane(made, made.name, None),)
        opened = [open_queries(spec) for spec in self.options.queries]
        names = unique_names([one.spec for one in opened])
        return tuple(
            Lane(source, name, self._qrels(place))
            for place, (source, name) in enumerate(zip(opened, names, strict=True))
        )

    @cached_property
    def training_stage(self) -> FirstStage:
        return self._searched(self._index, "training")

    @cached_property
    def testing_stage(self) -> FirstStage:
        if self.testing_docs == self.docs:
            return self.training_stage
        return self._searched(self._made_index(self.testing_docs, "test-index"), "test")

    @cached_property
    def training_texts(self) -> CollectionTexts:
        return CollectionTexts(self.docs, self.work, self.options.ends, self.progress)

    @cached_property
    def testing_texts(self) -> CollectionTexts:
        """The texts of the test documents; the same object where the collections are the same."""
        if self.testing_docs == self.docs:
            return self.training_texts
        return CollectionTexts(self.testing_docs, self.work, self.options.ends, self.progress)

    @cached_property
    def _model(self) -> lexical.Model | lexical.Expansion:
        return lexical.model_of(_PRESET)

    def _qrels(self, place: int) -> str:
        specs = self.options.train_qrels
        if specs:
            return specs[place if len(specs) > 1 else 0]
        spec = parse(self.options.queries[place])
        if spec.scheme != "irds":
            raise OptionError("train_qrels", "is missing", f"name the judgments of {spec.name}")
        return spec.spec

    @cached_property
    def _index(self) -> Path:
        return self._made_index(self.docs, "index") if self.options.index is None else Path(self.options.index)

    def _made_index(self, docs: str | None, name: str) -> Path:
        if docs is None:
            raise OptionError("docs", "is missing", "the texts of the documents are needed")
        folder = self.work / name
        lexical.kept_index(docs, folder, lexical.analyser_of(_PRESET), self.progress)
        return folder

    def _searched(self, folder: Path, purpose: str) -> FirstStage:
        index = lexical.open_index(folder)
        lexical.require_analyser(index, _PRESET)
        # What was found is kept under a name that stands for all it depends on.
        about = [purpose, index.fingerprint, self._model.json(), self.options.k, self.seed, self.options.ends]
        cache = self.work / digest(about)[:16]
        return FirstStage(folder, self._model, self.options.k, cache=cache, progress=self.progress)
