"""The command `leakage examples`: which texts of a test collection stand in whole training examples."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import polars as pl

from truerank.audits.leakage.encoders import Models
from truerank.audits.leakage.training_examples.comparing import (
    ComparedTexts,
    ComparingTexts,
    KeptSides,
    Semantic,
    apart,
    compare_plants,
    compare_sides,
    keep_sides,
)
from truerank.audits.leakage.training_examples.joining import joined
from truerank.audits.leakage.training_examples.locating import AnswerTexts, locate
from truerank.audits.leakage.training_examples.options import RULES, ExampleOptions
from truerank.audits.leakage.training_examples.reading import TestTexts, TrainingTexts, counted
from truerank.audits.leakage.training_examples.results import ExampleAudit
from truerank.audits.leakage.training_examples.sensitivity import ExampleSensitivity, ExampleSight, PlantMaterial, check
from truerank.audits.leakage.training_examples.verdicts import ExampleEvidence, verdicts
from truerank.options import Encoding, Flag, Out, Workers, command
from truerank.overlaps import OverlapRules
from truerank.sources.inputs import inputs_of
from truerank.version import __version__
from truerank.work.artifacts import digest
from truerank.work.engines import check_kept, open_engine
from truerank.work.jobs import Job
from truerank.work.kept import keep_json, kept_json
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import plain
from truerank.work.runs import run as started


@command
def examples(
    train: Annotated[str | Path | Sequence[str | Path], Flag(metavar="SRC", reads=list[str])],
    test: Annotated[str | Path, Flag(metavar="SRC", reads=str)],
    *,
    options: ExampleOptions = ExampleOptions(),
    rules: OverlapRules = RULES,
    encoding: Encoding = Encoding(),
    work: Workers = Workers(),
    out: Out = None,
    progress: Progress | None = None,
) -> ExampleAudit:
    """Finds the queries, documents and answers of a test collection in whole training examples.

    Each kind of leak has a verdict of its own, CONTAMINATED, UNKNOWN or CLEAN: query and relevant document in one
    example (the answer was seen), query in a training query, relevant document in a positive, relevant document in a
    negative (training taught the opposite), query in a training document, document in a training document. What the
    audit can see is measured with changed copies of these very texts. A run that was killed continues when it is
    started again.

    Args:
        train: training examples: a file, a folder, irds:ID or hf:ORG/NAME; repeat for several.
        test: test topics; a BEIR folder brings its documents and judgments along.
        options: what is compared.
        rules: what counts as an overlap.
        encoding: what turns texts into vectors, where the encoder is asked.
        work: where the comparison runs.
        out: a folder for the pairs, the report, the summary and the manifest.
        progress: is told what happens.

    Returns:
        The pairs and the verdicts.

    Raises:
        InputError: a source or option is at fault.

    Examples:

        truerank leakage examples --train triples.jsonl --test scifact/ --out audit/

        truerank leakage examples --train train.jsonl --roles query=anchor,positive=pos --test topics.tsv
        --docs corpus.jsonl --qrels test.qrels --out audit/

    Source: Fröbe et al. (SPIRE 2022) for queries; Brown et al., Language Models are Few-Shot Learners (NeurIPS 2020),
        appendix C, for 13-grams.
    """
    check_kept(work.engine, out)
    sources = [str(one) for one in ([train] if isinstance(train, str | Path) else train)]
    prepared = PreparedExamples(
        TestTexts.of(
            str(test), options.qrels, options.docs, fields=options.fields, rel=options.rel, strict=options.strict
        ),
        TrainingTexts.of(sources, options.roles, options.texts, strict=options.strict),
        options,
        rules,
        encoding,
    )
    engine, progress = open_engine(work.engine, work.workers), progress or Quiet()
    if out is None:
        with TemporaryDirectory() as temporary:
            return prepared.result(Job(Path(temporary), engine, progress))
    asked = {} if options.semantic == "none" else {"encoding": encoding}
    texts = {"train_queries": options.train_queries, "train_docs": options.train_docs}
    inputs = inputs_of(train=sources, **{role: one for role, one in texts.items() if one}, **prepared.test.given)
    with started("leakage examples", inputs, {"options": options, "rules": rules, **asked}, out) as job:
        folder = job.unfinished(prepared.identity())
        found = replace(prepared.result(Job(folder, engine, progress)), folder=job.folder)
        job.skipped = {name: source["skipped"] for name, source in found.sources.items() if source["skipped"]}
        publish(found, job)
    return found


@dataclass(frozen=True)
class PreparedExamples:
    """An audit before it begins: everything is open, and no option is at fault.

    Attributes:
        test: the test collection.
        training: the training examples.
        options: what is compared.
        rules: what counts as an overlap.
        encoding: what turns texts into vectors, where the encoder is asked.
    """

    test: TestTexts
    training: TrainingTexts
    options: ExampleOptions
    rules: OverlapRules
    encoding: Encoding

    def identity(self) -> str:
        """A hash of all that the unfinished work depends on."""
        known = {"test": self.test.fingerprint(), "training": self.training.fingerprint()}
        given = {"options": plain(self.options), "rules": plain(self.rules), "encoding": plain(self.encoding)}
        return digest({**known, **given, "version": __version__})

    def result(self, job: Job) -> ExampleAudit:
        """Compares everything."""
        ways = ComparingTexts(self.rules, Semantic(self.options.semantic, lambda: Models.of(self.encoding).encoder))
        kept = keep_sides(self.test, self.training, ways, job)
        found = compare_sides(kept, self.rules, job)
        wanted = {one for frame in found[:3] for one in frame["training_id"].unique()}
        job.progress.start("finding the examples")
        located = locate(self.training, wanted, self._answers(found))
        job.progress.start("sensitivity check")
        texts = self._texts(found.documents["test_id"].unique())
        seen = self._checked(kept, texts, ways, job)
        found, frames = _apart(found, kept, self._compared(kept, texts.named), located.places)
        leaks, templates = (joined(self.test, each, located, texts.named) for each in (found, frames))
        sources = {name: {**counted(one), **located.counts[name]} for name, one in self.training.sources}
        documents = (0 if kept.documents is None else len(kept.documents), texts.present)
        kinds = ("query-query", "query-document", "document")
        semantic, unread = dict(zip(kinds, found.semantic, strict=True)), dict(zip(kinds, found.unread, strict=True))
        known = ExampleEvidence(
            self.test,
            leaks,
            templates,
            sources,
            seen,
            self.options,
            self.rules,
            documents,
            semantic,
            unread,
            found.crowded,
        )
        return ExampleAudit(
            kinds=tuple(verdicts(known)),
            leaks=leaks,
            templates=templates.filter(pl.col("kind") != "pair"),
            test=known.counts(),
            sources=sources,
            rules=plain(self.rules),
            others=seen.others,
            boilerplate=tuple(kept.passages.iter_rows(named=True)),
        )

    def _answers(self, found: ComparedTexts) -> AnswerTexts:
        relevant = self.test.relevant or {}
        topics: dict[str, set[str]] = {}
        for place, training_id in found.queries.select("test_id", "training_id").iter_rows():
            topics.setdefault(training_id, set()).add(self.test.texts[int(place)].topic_id)
        documents: dict[str, set[str]] = {}
        for doc_id, training_id in found.documents.select("test_id", "training_id").iter_rows():
            if doc_id in relevant:
                documents.setdefault(training_id, set()).add(doc_id)
        return AnswerTexts(
            {name: frozenset(members) for name, members in topics.items()},
            {name: frozenset(members) for name, members in documents.items()},
            relevant,
        )

    def _compared(self, kept: KeptSides, documents: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The queries and some documents by id, as they are compared."""
        return (
            dict(self.test.queries(kept.form)),
            {doc_id: kept.form(text) for doc_id, text in documents.items()},
        )

    def _texts(self, wanted: Iterable[str]) -> _Texts:
        """Reads the documents once more: the texts of those that leak, and a sample of all and of the relevant."""
        named, relevant = set(wanted), self.test.relevant or {}
        found: dict[str, str] = {}
        samples = (_Sample(self.options.sample), _Sample(self.options.sample))
        present = 0
        for document in self.test.docs or ():
            doc_id, text = document.doc_id, document.text
            if doc_id in named:
                found[doc_id] = text
            samples[0].add(doc_id, text)
            if doc_id in relevant:
                present += 1
                samples[1].add(doc_id, text)
        return _Texts(found, samples[0].texts(), samples[1].texts(), present)

    def _checked(self, kept: KeptSides, texts: _Texts, ways: ComparingTexts, job: Job) -> ExampleSensitivity:
        """The sensitivity check, or what an interrupted run has of it."""
        path = job.folder / "sensitivity.json"
        if (known := kept_json(path)) is not None:
            changes, others = known
            return ExampleSensitivity(changes, others)
        relevant = self.test.relevant or {}
        material = PlantMaterial(
            self.test.texts, texts.documents, texts.relevant, {name: relevant[name] for name in texts.relevant}
        )

        queries, documents = self._compared(kept, texts.documents | texts.relevant)

        def of_queries(document: bool, plants: Iterable[tuple[str, str]]) -> pl.DataFrame:
            theirs = kept.training_documents if document else kept.training_queries
            return compare_plants((kept.queries, theirs), queries, plants, ways, job, document=document)

        def of_documents(plants: Iterable[tuple[str, str]]) -> pl.DataFrame:
            if kept.documents is None:
                raise ValueError("no documents were kept")
            sides = kept.documents, kept.training_documents
            return compare_plants(sides, documents, plants, ways, job, document=True)

        found = check(
            material,
            ExampleSight(
                of_queries,
                None if kept.documents is None else of_documents,
                self.rules.contained_words,
                kept.form,
            ),
            sample=self.options.sample,
            seed=self.options.seed,
        )
        keep_json(path, list(found))
        return found


def _apart(
    found: ComparedTexts, kept: KeptSides, texts: tuple[dict[str, str], dict[str, str]], places: pl.DataFrame
) -> tuple[ComparedTexts, ComparedTexts]:
    """The pairs that are overlaps, and those whose texts are of the same template."""
    names = places.unique("training_id", keep="first", maintain_order=True).select("training_id", "training_text")
    theirs = {name: kept.form(text) for name, text in names.iter_rows()}
    queries, documents = texts
    split = (
        apart(found.queries, (queries, theirs), (kept.queries, kept.training_queries)),
        apart(found.query_documents, (queries, theirs), (kept.queries, kept.training_documents)),
        apart(found.documents, (documents, theirs), (kept.documents or kept.queries, kept.training_documents)),
    )
    one, other = (
        found._replace(queries=each[0], query_documents=each[1], documents=each[2]) for each in zip(*split, strict=True)
    )
    return one, other


class _Texts(NamedTuple):
    """Texts of documents by id: of those that leak, and samples of all and of the relevant ones; and how many relevant
    documents are there."""

    named: dict[str, str]
    documents: dict[str, str]
    relevant: dict[str, str]
    present: int


class _Sample:
    """The documents with the smallest hashes of their ids: a sample that does not depend on their order."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[int, str, str]] = []

    def add(self, doc_id: str, text: str) -> None:
        """Takes notice of a document."""
        number = -int.from_bytes(blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        if len(self._heap) < self._size:
            heapq.heappush(self._heap, (number, doc_id, text))
        elif number > self._heap[0][0]:
            heapq.heapreplace(self._heap, (number, doc_id, text))

    def texts(self) -> dict[str, str]:
        """The texts by id, in the order of their hashes."""
        return {doc_id: text for _, doc_id, text in sorted(self._heap, reverse=True)}
