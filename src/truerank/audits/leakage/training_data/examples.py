"""The command `leakage examples`: which texts of a test collection stand in whole training examples, and where."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.leakage.encoders import Models
from truerank.audits.leakage.results import VerdictWord
from truerank.audits.leakage.training_data.comparison import (
    ComparedTexts,
    ComparingTexts,
    KeptSides,
    apart,
    compare_plants,
    compare_sides,
    keep_sides,
)
from truerank.audits.leakage.training_data.results import KINDS, LEAKS, RULES, ExampleAudit, ExampleOptions
from truerank.audits.leakage.training_data.sensitivity import ExampleSensitivity, ExampleSight, PlantMaterial, check
from truerank.audits.leakage.training_data.texts import TestTexts, TrainingTexts, counted, hashed
from truerank.audits.leakage.training_data.verdicts import ExampleEvidence, verdicts
from truerank.errors import InputError
from truerank.options import Encoding, Flag, Out, Workers, command
from truerank.overlaps import OverlapRules
from truerank.sources import open_examples
from truerank.sources.columns import ROLES
from truerank.sources.distinct import text_hashes
from truerank.sources.examples import ExampleText
from truerank.sources.inputs import inputs_of
from truerank.text.normalising import normalise
from truerank.version import __version__
from truerank.work.artifacts import digest
from truerank.work.engines import open_engine
from truerank.work.jobs import Job
from truerank.work.kept import keep_json, kept_json
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import plain
from truerank.work.runs import run as started

#: Leaking training texts by source and role.
PLACES: Final[dict[str, Any]] = frame_schema(
    "training_id source role example_id: String, examples: Int64, training_text: String"
)
#: A query and a relevant document of it in one example.
TOGETHER: Final[dict[str, Any]] = frame_schema(
    "topic_id doc_id query_training_id document_training_id source example_id: String, examples: Int64"
)


@dataclass(frozen=True)
class AnswerTexts:
    """What makes two texts of one example an answer that was seen: by training text the topics and the relevant
    documents that it leaks, and the topics of each relevant document.
    """

    topics: Mapping[str, Set[str]]
    documents: Mapping[str, Set[str]]
    relevant: Mapping[str, frozenset[str]]


class ExamplePlaces(NamedTuple):
    """Where leaking texts stand (columns as in `PLACES`, `TOGETHER`); counts of examples and texts by source."""

    places: pl.DataFrame
    together: pl.DataFrame
    counts: Mapping[str, Mapping[str, int]]


def locate(training: TrainingTexts, wanted: Collection[str], answers: AnswerTexts) -> ExamplePlaces:
    """Reads the examples once more and says where leaking texts stand: the first example with each text or pair, and
    the number of examples that have it.
    """
    hashes = np.sort(np.array([int(text, 16) for text in wanted], np.uint64))
    places: dict[tuple[str, ...], list[Any]] = {}
    together: dict[tuple[str, ...], list[Any]] = {}
    counts = {}
    for name, source in training.sources:
        roles: Counter[str] = Counter()
        examples = 0
        for block in source.batches():
            roles.update(text.role for text in block)
            examples += sum(1 for _ in groupby(text.example_id for text in block))
            for leaking in _examples(block, hashes):
                for text in {(text.training_id, text.role): text for text in reversed(leaking)}.values():
                    key = (text.training_id, name, text.role)
                    places.setdefault(key, [text.example_id, 0, text.text])[1] += 1
                for pair in sorted(set(_answered(leaking, answers))):
                    together.setdefault((*pair, name), [leaking[0].example_id, 0])[1] += 1
        counts[name] = {"examples": examples, **{f"{role}_texts": roles[role] for role in ROLES if roles[role]}}
    where, pairs = (
        pl.DataFrame([(*key, *values) for key, values in rows.items()], schema=schema, orient="row")
        for rows, schema in ((places, PLACES), (together, TOGETHER))
    )
    return ExamplePlaces(where, pairs, counts)


class _Text(NamedTuple):
    example_id: str
    role: str
    training_id: str
    text: str


def _examples(block: Sequence[ExampleText], hashes: Any) -> Iterator[list[_Text]]:
    """The examples of a block with a leaking text, by those of their texts."""
    if not len(hashes):
        return
    own = text_hashes([normalise(text.text) for text in block])
    at = np.minimum(np.searchsorted(hashes, own), len(hashes) - 1)
    leaking = [
        _Text(block[place].example_id, block[place].role, hashed(int(own[place])), block[place].text)
        for place in np.flatnonzero(hashes[at] == own).tolist()
    ]
    for _, members in groupby(leaking, key=lambda text: text.example_id):
        yield list(members)


def _answered(leaking: Sequence[_Text], answers: AnswerTexts) -> Iterator[tuple[str, str, str, str]]:
    """Topic, document, and the texts that they stand in."""
    for query, document in product(leaking, leaking):
        if query.role == "query" and document.role == "positive":
            for doc_id in answers.documents.get(document.training_id, ()):
                for topic in answers.relevant[doc_id] & answers.topics.get(query.training_id, frozenset()):
                    yield topic, doc_id, query.training_id, document.training_id


def joined(test: TestTexts, found: ComparedTexts, located: ExamplePlaces, texts: Mapping[str, str]) -> pl.DataFrame:
    """The leaks of all kinds, columns as in `LEAKS`, in a stable order."""
    queries = pl.DataFrame(
        [(str(place), text.topic_id, text.field, text.text) for place, text in enumerate(test.texts)],
        schema={"test_id": pl.String, "topic_id": pl.String, "field": pl.String, "test_text": pl.String},
        orient="row",
    )
    documents = pl.DataFrame(
        {"test_id": list(texts), "doc_id": list(texts), "test_text": list(texts.values())},
        schema={"test_id": pl.String, "doc_id": pl.String, "test_text": pl.String},
    )
    relevant = list(test.relevant or ())
    asked, inside, answered = (frame.drop("test_text", "training_text") for frame in found[:3])
    found = found._replace(queries=asked, query_documents=inside, documents=answered)
    frames = []
    for kind in KINDS:
        if kind.name == "pair":
            frames.append(_together(found, located, queries, documents))
            continue
        if kind.test == "query":
            pairs = (found.queries if "query" in kind.training else found.query_documents).join(queries, on="test_id")
        else:
            pairs = found.documents.join(documents, on="test_id")
            pairs = pairs.filter(pl.col("doc_id").is_in(relevant)) if kind.test == "relevant" else pairs
        places = located.places.filter(pl.col("role").is_in(kind.training))
        frames.append(pairs.join(places, on="training_id").with_columns(kind=pl.lit(kind.name)))
    order = {kind.name: place for place, kind in enumerate(KINDS)}
    # Columns that a frame lacks are null.
    whole = pl.concat([pl.DataFrame(schema=LEAKS), *frames], how="diagonal_relaxed")
    whole = whole.select(pl.col(name).cast(kind) for name, kind in LEAKS.items())
    return whole.sort(
        pl.col("kind").replace_strict(order, return_dtype=pl.Int32),
        *("topic_id", "field", "doc_id", "source", "role", "training_text", "training_document", "example_id"),
        nulls_last=True,
        maintain_order=True,
    )


def _together(
    found: ComparedTexts, located: ExamplePlaces, queries: pl.DataFrame, documents: pl.DataFrame
) -> pl.DataFrame:
    """The pairs that leak together: the evidence of the query's best text, and that of the answer."""
    first = located.places.unique(["training_id", "source"], keep="first", maintain_order=True)
    text_of = first.select("training_id", "source", "training_text")
    asked = found.queries.join(queries, on="test_id").rename({"training_id": "query_training_id"})
    asked = asked.unique(["topic_id", "query_training_id"], keep="first", maintain_order=True)
    answered = found.documents.join(documents, on="test_id").select(
        "doc_id",
        document_training_id="training_id",
        document_text="test_text",
        document_evidence="evidence",
    )
    return (
        located.together.join(asked, on=["topic_id", "query_training_id"])
        .join(answered, on=["doc_id", "document_training_id"])
        .join(text_of, left_on=["query_training_id", "source"], right_on=["training_id", "source"])
        .join(
            text_of.rename({"training_text": "training_document"}),
            left_on=["document_training_id", "source"],
            right_on=["training_id", "source"],
        )
        .with_columns(kind=pl.lit("pair"), role=pl.lit("query+positive"))
    )


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
        progress: receives progress updates.

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
    sources = [str(one) for one in ([train] if isinstance(train, str | Path) else train)]
    training = TrainingTexts.of(sources, options.roles, options.texts, strict=options.strict)
    collection = TestTexts.of(
        str(test), options.qrels, options.docs, fields=options.fields, rel=options.rel, strict=options.strict
    )
    prepared = PreparedExamples(
        collection.bare(training, options.fields),
        training,
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
    """An audit before it begins: everything is open, and no option is at fault."""

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
        ways = ComparingTexts(self.rules, self.options.semantic, lambda: Models.of(self.encoding).encoder)
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
            self.test, leaks, templates, sources, seen, self.options, self.rules, documents, semantic, unread,
            found.crowded,
        )  # fmt: skip
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
        topics, documents = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for place, training_id in found.queries.select("test_id", "training_id").iter_rows():
            topics[training_id].add(self.test.texts[int(place)].topic_id)
        for doc_id, training_id in found.documents.select("test_id", "training_id").iter_rows():
            if doc_id in relevant:
                documents[training_id].add(doc_id)
        return AnswerTexts(topics, documents, relevant)

    def _compared(self, kept: KeptSides, documents: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The queries and some documents by id, as they are compared."""
        return dict(self.test.queries(kept.form)), {doc_id: kept.form(text) for doc_id, text in documents.items()}

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

        looked = None if kept.documents is None else of_documents
        sight = ExampleSight(of_queries, looked, self.rules.contained_words, kept.form)
        found = check(material, sight, sample=self.options.sample, seed=self.options.seed)
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
    overlaps, templates = (
        found._replace(queries=each[0], query_documents=each[1], documents=each[2]) for each in zip(*split, strict=True)
    )
    return overlaps, templates


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


#: Kinds of leak that change what a score of these topics means; that of documents counts for relevant ones only.
SCORED_KINDS: Final = ("pair", "query-query", "positive-relevant", "negative-relevant", "document-corpus")


@dataclass(frozen=True)
class TouchedTexts:
    """The topics and relevant documents of a test set that stand in training examples, with the kinds of leak.

    `word` is CONTAMINATED where there are any; UNKNOWN where a kind that the data can have is; else CLEAN. `topics`
    include those that a document is relevant for; `audited` are the sources that hold more than queries.
    """

    word: VerdictWord
    why: str
    verdicts: Mapping[str, str]
    topics: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, tuple[str, ...]]
    audited: tuple[str, ...]


def with_documents(train: Sequence[str]) -> tuple[str, ...]:
    """The training sources that hold more than queries."""
    found = []
    for source in train:
        with suppress(InputError):
            found += [source] if any(role != "query" for _, role in open_examples(source).roles.columns) else []
    return tuple(found)


def touched_texts(
    train: Sequence[str],
    test: str,
    *,
    options: ExampleOptions = ExampleOptions(),
    out: Path | None = None,
    progress: Progress | None = None,
) -> TouchedTexts | None:
    """Audits whole training examples for what they hold of a test set."""
    whole = with_documents(train)
    if not whole:
        return None
    found = examples(whole, test, options=options, out=out, progress=progress)
    opened = TestTexts.of(
        test, options.qrels, options.docs, fields=options.fields, rel=options.rel, strict=options.strict
    )
    return touched_by(found, opened.relevant or {}, whole)


def touched_by(found: ExampleAudit, relevant: Mapping[str, frozenset[str]], audited: tuple[str, ...]) -> TouchedTexts:
    """What an audit of whole examples says of the topics and relevant documents of its test set."""
    topics, documents = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    rows = found.leaks.filter(pl.col("kind").is_in(list(SCORED_KINDS)))
    for kind, topic, doc in rows.select("kind", "topic_id", "doc_id").iter_rows():
        if topic:
            topics[topic].add(kind)
        if doc in relevant:
            documents[doc].add(kind)
            for name in () if topic else relevant[doc]:
                topics[name].add(kind)
    asked = [one for one in found.kinds if one.kind in SCORED_KINDS]
    hit = {kind for kinds in topics.values() for kind in kinds}
    roles = {role for source in found.sources.values() for role in ROLES if source.get(f"{role}_texts")}
    # A kind whose role the data do not have is no gap: there is nothing that could leak in this way.
    # Texts of a file without queries that are read as queries are the audit of queries' to compare.
    lacking = {"pair": "positive", "query-query": "query", "positive-relevant": "positive"}
    lacking["negative-relevant"] = "negative"
    possible = [one for one in asked if lacking.get(one.kind, "") in {*roles, ""}]
    open_ = [one for one in possible if one.verdict == "UNKNOWN"]
    word: VerdictWord = "CONTAMINATED" if hit else "UNKNOWN" if open_ or not possible else "CLEAN"
    decisive = [one for one in asked if one.kind in hit] or open_ or possible or asked
    return TouchedTexts(
        word,
        " ".join(dict.fromkeys(f"{one.kind}: {one.why}" for one in decisive)),
        {one.kind: one.verdict for one in asked},
        {name: tuple(kind for kind in SCORED_KINDS if kind in topics[name]) for name in sorted(topics)},
        {name: tuple(kind for kind in SCORED_KINDS if kind in documents[name]) for name in sorted(documents)},
        audited,
    )
