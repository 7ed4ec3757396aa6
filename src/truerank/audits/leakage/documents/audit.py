"""Documents: what a test set has in the documents of training data, and where leaking texts stand."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import groupby, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.leakage.documents.plants import DocumentSensitivity, DocumentSight, PlantMaterial, check
from truerank.audits.leakage.documents.texts import TestTexts, TrainingSource, distinct_documents, hashed
from truerank.audits.leakage.documents.verdicts import DocumentEvidence, verdict_of
from truerank.audits.leakage.kinds import KINDS, RULES, DocumentOptions, KindVerdict, with_kinds
from truerank.audits.leakage.results import LEAKS, AuditResult
from truerank.overlaps import KeptTexts, compare, keep, kept_before
from truerank.overlaps.kept_texts import ComparedForm, keep_without, shared_passages
from truerank.overlaps.results import contrasting, without_parts
from truerank.overlaps.templates import USUAL, same_templates
from truerank.sources.columns import ROLES
from truerank.sources.distinct import text_hashes
from truerank.sources.examples import ExampleText
from truerank.text.normalising import mended, normalise
from truerank.text.wording import WordingProbe
from truerank.work.jobs import Job
from truerank.work.kept import keep_json, kept_json

_QUERIES: Final = "queries"
_DOCUMENTS: Final = "documents"
#: Evidence that a frame can be, too.
_OF_FRAMES: Final = ("ngram", "near", "contains")


class KeptSides(NamedTuple):
    """All texts of both sides as they are compared, each training document once; `passages` is boilerplate of the test
    collection, which the form leaves out.
    """

    form: ComparedForm
    passages: pl.DataFrame
    queries: KeptTexts
    documents: KeptTexts | None
    training: KeptTexts


class ComparedTexts(NamedTuple):
    """Pairs of test queries, and of test documents, with training documents, columns as in `overlaps.OVERLAPS`.

    `crowded` counts word sequences that too many training documents have to compare all pairs.
    """

    queries: pl.DataFrame
    documents: pl.DataFrame
    crowded: int


def keep_sides(test: TestTexts, training: Sequence[TrainingSource], job: Job) -> KeptSides:
    """Reads all texts and keeps what they are compared by; a killed job continues."""

    def kept(name: str, make: Callable[[Job], KeptTexts]) -> KeptTexts:
        part = job.part(name)
        before = kept_before(part.folder, RULES)
        return make(part) if before is None else before

    def read(name: str, stream: Iterable[tuple[str, str]]) -> KeptTexts:
        return kept(name, partial(keep, stream, RULES))

    plain = ComparedForm()
    own = [(_QUERIES, read(_QUERIES, test.queries(plain)), test.queries)]
    if test.docs is not None:
        own.append((_DOCUMENTS, read(_DOCUMENTS, test.documents(plain)), test.documents))
    # What fewer texts share is told from their own words, pair by pair: see `apart`.
    passages = pl.concat([shared_passages(one) for _, one, _ in own]).filter(pl.col("documents") > USUAL)
    form = ComparedForm(tuple(passages["passage"]))
    sides = [base for _, base, _ in own]
    for place, (name, base, texts) in enumerate(own if form.passages else ()):
        make = partial(keep_without, base, texts(str), form)
        sides[place] = kept(f"{name}-without-boilerplate", make)
    theirs = read("training", distinct_documents(training, form))
    return KeptSides(form, passages, sides[0], sides[1] if len(sides) > 1 else None, theirs)


def compare_sides(kept: KeptSides, job: Job) -> ComparedTexts:
    """Compares the queries and the documents of a test set with training documents."""
    inside = compare(kept.queries, kept.training, RULES, job.part("queries-inside"), holders=USUAL)
    found = inside._replace(frame=inside.frame.clear(), crowded=0)
    if kept.documents is not None:
        found = compare(kept.documents, kept.training, RULES, job.part("documents-inside"), holders=USUAL)
    # What is as short is looked for as a text, not inside others.
    whole = pl.col("exact") | pl.col("wording").is_not_null() | (pl.col("test_words") >= RULES.contained_words)
    crowded = max(inside.crowded, found.crowded)
    return ComparedTexts(_pairs(inside.frame.filter(whole)), _pairs(found.frame), crowded)


def _pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs that say something, each once."""
    return without_parts(pairs.unique(["test_id", "training_id"], keep="first", maintain_order=True))


def apart(
    pairs: pl.DataFrame, texts: tuple[Mapping[str, str], Mapping[str, str]], sides: Sequence[KeptTexts]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The pairs that are overlaps, and those whose texts are of the same template or differ in what decides."""
    shared = pl.col("evidence").str.split("+").list.set_intersection(list(_OF_FRAMES)).list.len() > 0
    doubtful = pairs.select(~pl.col("exact") & pl.col("wording").is_null() & shared).to_series()
    asked = pairs.filter(doubtful).select("test_id", "training_id")
    held = [part.shingles for side in sides for part in side.parts]
    found = same_templates(list(asked.iter_rows()), texts, held, RULES.shingles)
    related = pairs.filter(contrasting(pairs))
    templates = pl.concat([asked.filter(pl.Series(found, dtype=pl.Boolean)), related.select(asked.columns)])
    on = ["test_id", "training_id"]
    kept = pairs.join(templates, on=on, how="anti", maintain_order="left")
    return kept, pairs.join(templates, on=on, how="semi", maintain_order="left")


def compare_plants(
    sides: tuple[KeptTexts, KeptTexts],
    texts: Mapping[str, str],
    plants: Iterable[tuple[str, str]],
    *,
    job: Job,
) -> pl.DataFrame:
    """Compares changed texts with the queries or documents of the test collection as training texts are compared."""
    made = dict(plants)
    with TemporaryDirectory() as folder:
        own = replace(job, folder=Path(folder))
        found = _pairs(compare(sides[0], made.items(), RULES, own, holders=USUAL).frame)
    return apart(found, (texts, made), sides)[0]


#: Leaking training texts by source and role.
PLACES: Final[dict[str, Any]] = frame_schema(
    "training_id source role example_id: String, examples: Int64, training_text: String"
)
#: A query and a relevant document of it in one example.
TOGETHER: Final[dict[str, Any]] = frame_schema(
    "test topic_id doc_id query_training_id document_training_id source example_id: String, examples: Int64"
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


def locate(
    training: Sequence[TrainingSource], wanted: Collection[str], answers: Mapping[str, AnswerTexts]
) -> ExamplePlaces:
    """Reads the training data once more and says where leaking texts stand: the first example with each text or pair,
    and the number of examples that have it.
    """
    hashes = _sorted_hashes(wanted)
    places: dict[tuple[str, ...], list[Any]] = {}
    together: dict[tuple[str, ...], list[Any]] = {}
    counts = {}
    for source in training:
        name = source.name
        roles: Counter[str] = Counter()
        examples = 0
        for block in source.texts():
            roles.update(text.role for text in block)
            examples += sum(1 for _ in groupby(text.example_id for text in block))
            for leaking in _examples(block, hashes):
                for text in {(text.training_id, text.role): text for text in reversed(leaking)}.values():
                    key = (text.training_id, name, text.role)
                    places.setdefault(key, [text.example_id, 0, text.text])[1] += 1
                for test, known in answers.items():
                    for pair in sorted(set(_answered(leaking, known))):
                        together.setdefault((test, *pair, name), [leaking[0].example_id, 0])[1] += 1
        texts = {f"{role}_texts": roles[role] for role in ROLES if roles[role]}
        counts[name] = {"examples": examples, **texts, **source.counted()}
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


def _sorted_hashes(wanted: Collection[str]) -> Any:
    return np.sort(np.array([int(text, 16) for text in wanted], np.uint64))


def _examples(block: Sequence[ExampleText], hashes: Any) -> Iterator[list[_Text]]:
    """The examples of a block with a leaking text, by those of their texts."""
    for _, members in groupby(_leaking(block, hashes), key=lambda text: text.example_id):
        yield list(members)


def _leaking(block: Sequence[ExampleText], hashes: Any) -> Iterator[_Text]:
    """The texts of a block that leak."""
    if not len(hashes):
        return
    # Queries come to the audit with damaged characters mended.
    own = text_hashes([(mended if text.role == "query" else normalise)(text.text) for text in block])
    at = np.minimum(np.searchsorted(hashes, own), len(hashes) - 1)
    for place in np.flatnonzero(hashes[at] == own).tolist():
        yield _Text(block[place].example_id, block[place].role, hashed(int(own[place])), block[place].text)


def _answered(leaking: Sequence[_Text], answers: AnswerTexts) -> Iterator[tuple[str, str, str, str]]:
    """Topic, document, and the texts that they stand in."""
    for query, document in product(leaking, leaking):
        if query.role == "query" and document.role == "positive":
            for doc_id in answers.documents.get(document.training_id, ()):
                for topic in answers.relevant[doc_id] & answers.topics.get(query.training_id, frozenset()):
                    yield topic, doc_id, query.training_id, document.training_id


def joined(
    test: TestTexts,
    found: ComparedTexts | None,
    located: ExamplePlaces,
    queries: pl.DataFrame,
    texts: Mapping[str, str],
) -> pl.DataFrame:
    """The leaks of all kinds of one test set, columns as in `LEAKS`, in a stable order.

    Args:
        test: its texts.
        found: what documents have in common; None where they were not compared.
        located: where leaking texts stand.
        queries: the pairs of queries, as in `query_pairs`. One that is in doubt leaks with its answer: an example that
            holds both is no chance.
        texts: the documents that leak, by id.
    """
    frames = []
    asked = pl.DataFrame(
        [(str(place), text.topic_id, text.field, text.text) for place, text in enumerate(test.texts)],
        schema={"test_id": pl.String, "topic_id": pl.String, "field": pl.String, "test_text": pl.String},
        orient="row",
    )
    documents = pl.DataFrame(
        {"test_id": list(texts), "doc_id": list(texts), "test_text": list(texts.values())},
        schema={"test_id": pl.String, "doc_id": pl.String, "test_text": pl.String},
    )
    relevant = list(test.relevant or ())
    for kind in KINDS:
        if kind.name == "query-query":
            pairs = queries.filter(standing="leak")
        elif found is None:
            continue
        elif kind.name == "pair":
            both = located._replace(together=located.together.filter(test=test.topics.name))
            frames.append(_together(found, both, queries, documents))
            continue
        elif kind.test == "query":
            pairs = found.queries.drop("test_text", "training_text").join(asked, on="test_id")
        else:
            pairs = found.documents.drop("test_text", "training_text").join(documents, on="test_id")
            pairs = pairs.filter(pl.col("doc_id").is_in(relevant)) if kind.test == "relevant" else pairs
        places = located.places.filter(pl.col("role").is_in(kind.training))
        frames.append(pairs.join(places, on="training_id").with_columns(kind=pl.lit(kind.name)))
    order = {kind.name: place for place, kind in enumerate(KINDS)}
    # Columns that a frame lacks are null.
    whole = pl.concat([pl.DataFrame(schema=LEAKS), *frames], how="diagonal_relaxed")
    whole = whole.with_columns(test=pl.lit(test.topics.name))
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
    asked = queries.rename({"training_id": "query_training_id"})
    asked = asked.unique(["topic_id", "query_training_id"], keep="first", maintain_order=True)
    answered = (
        found.documents.drop("test_text", "training_text")
        .join(documents, on="test_id")
        .select(
            "doc_id",
            document_training_id="training_id",
            document_text="test_text",
            document_evidence="evidence",
        )
    )
    return (
        located.together.drop("test")
        .join(asked, on=["topic_id", "query_training_id"])
        .join(answered, on=["doc_id", "document_training_id"])
        .join(text_of, left_on=["query_training_id", "source"], right_on=["training_id", "source"])
        .join(
            text_of.rename({"training_text": "training_document"}),
            left_on=["document_training_id", "source"],
            right_on=["training_id", "source"],
        )
        .with_columns(kind=pl.lit("pair"), role=pl.lit("query+positive"))
    )


@dataclass(frozen=True)
class DocumentLeaks:
    """What an audit found of the documents of one test set.

    Attributes:
        found: the pairs of texts, without those of a template.
        templates: the pairs whose texts have a frame in common and say other things.
        texts: the documents that leak, by id, and samples of all and of the relevant ones.
        seen: what was found of planted changes.
        documents: how many test documents were compared.
        passages: boilerplate of the test set, which was left out of both sides.
    """

    found: ComparedTexts
    templates: ComparedTexts
    texts: _Texts
    seen: DocumentSensitivity
    documents: int
    passages: tuple[dict[str, Any], ...]

    def answers(self, relevant: Mapping[str, frozenset[str]], queries: pl.DataFrame) -> AnswerTexts:
        """What makes two texts of one example an answer that was seen; `queries` as in `joined`."""
        topics, documents = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for topic, training_id in queries.select("topic_id", "training_id").iter_rows():
            topics[training_id].add(topic)
        for doc_id, training_id in self.found.documents.select("test_id", "training_id").iter_rows():
            if doc_id in relevant:
                documents[training_id].add(doc_id)
        return AnswerTexts(topics, documents, relevant)


def with_documents(
    result: AuditResult, tests: Sequence[TestTexts], training: Sequence[TrainingSource],
    options: DocumentOptions, job: Job,
) -> AuditResult:  # fmt: skip
    """An audit of queries with where its leaks stand, and with the leaks of documents where training data hold some."""
    holds = any(source.roles != {"query"} for source in training)
    queries = query_pairs(result)
    found: dict[str, DocumentLeaks] = {}
    for place, test in enumerate(tests if holds else ()):
        found[test.topics.name] = compare_documents(test, training, options, job.part(f"documents-{place}"))
    own = {test.topics.name: queries.filter(test=test.topics.name).drop("test") for test in tests}
    answers = {test.topics.name: found[test.topics.name].answers(test.relevant or {}, own[test.topics.name])
               for test in tests if test.topics.name in found}  # fmt: skip
    texts = (frame["training_id"] for one in found.values() for frame in (*one.found[:2], *one.templates[:2]))
    located = locate(training, set(queries["training_id"]).union(*texts), answers)
    leaks, templates = [pl.DataFrame(schema=LEAKS)], [pl.DataFrame(schema=LEAKS)]
    kinds: dict[str, tuple[KindVerdict, ...]] = {}
    for test in tests:
        name, one = test.topics.name, found.get(test.topics.name)
        named = {} if one is None else one.texts.named
        leaks.append(joined(test, None if one is None else one.found, located, own[name], named))
        if one is not None:
            apart = joined(test, one.templates, located, own[name].clear(), named)
            templates.append(apart.filter(pl.col("kind") != "pair"))
            known = DocumentEvidence(
                test, leaks[-1], templates[-1], located.counts, one.seen, (one.documents, one.texts.present),
                one.found.crowded,
            )  # fmt: skip
            kinds[name] = tuple(verdict_of(kind, known) for kind in options.wanted)
    summary = with_kinds(result.summary, kinds, pl.concat(leaks), located.counts)
    for name, one in found.items():
        summary["tests"][name] |= {"documents": {"read": one.documents, "relevant": one.texts.present}}
        summary["tests"][name] |= {"other_documents": one.seen.others, "boilerplate": list(one.passages)}
    return replace(result, summary=summary, leaks=pl.concat(leaks), templates=pl.concat(templates))


def query_pairs(result: AuditResult) -> pl.DataFrame:
    """The leaks of queries, and the doubts where nothing differs: `test`, `topic_id`, `field`, `test_text`,
    `training_id`, `evidence`, `cosine` and `standing`.
    """
    undecided = (pl.col("standing") == "doubt") & (pl.col("differs") == "")
    held = result.candidates.filter((pl.col("standing") == "leak") | undecided)
    ids = [hashed(number) for number in text_hashes([normalise(text) for text in held["query_text"]]).tolist()]
    rows = held.select(
        "test", "topic_id", "field", "evidence", "standing", pl.col("similarity").cast(pl.Float64).alias("cosine"),
        test_text="topic_text", training_id=pl.Series(ids, dtype=pl.String),
    )  # fmt: skip
    return rows.unique(["test", "topic_id", "field", "training_id"], keep="first", maintain_order=True)


def compare_documents(
    test: TestTexts, training: Sequence[TrainingSource], options: DocumentOptions, job: Job
) -> DocumentLeaks:
    """Compares the queries and documents of a test set with the documents of training data; a killed job continues."""
    kept = keep_sides(test, training, job)
    found = compare_sides(kept, job)
    texts = _texts(test, options.sample, found.documents["test_id"].unique())
    job.progress.start("sensitivity check")
    seen = _checked(test, kept, texts, options.sample, job)
    theirs = _training_texts(training, {one for frame in found[:2] for one in frame["training_id"].unique()}, kept)
    queries, documents = dict(test.queries(kept.form)), {name: kept.form(text) for name, text in texts.named.items()}
    split = (
        apart(found.queries, (queries, theirs), (kept.queries, kept.training)),
        apart(found.documents, (documents, theirs), (kept.documents or kept.queries, kept.training)),
    )
    overlaps, templates = (found._replace(queries=each[0], documents=each[1]) for each in zip(*split, strict=True))
    count = 0 if kept.documents is None else len(kept.documents)
    return DocumentLeaks(overlaps, templates, texts, seen, count, tuple(kept.passages.iter_rows(named=True)))


def _training_texts(training: Sequence[TrainingSource], wanted: Collection[str], kept: KeptSides) -> dict[str, str]:
    """Some training documents by id, as they are compared."""
    hashes, found = _sorted_hashes(wanted), dict[str, str]()
    for source in training if len(hashes) else ():
        for block in source.texts():
            for text in _leaking(block, hashes):
                found.setdefault(text.training_id, kept.form(text.text))
    return found


def _texts(test: TestTexts, size: int, wanted: Iterable[str]) -> _Texts:
    """Reads the documents once more: the texts of those that leak, and a sample of all and of the relevant."""
    named, relevant = set(wanted), test.relevant or {}
    found: dict[str, str] = {}
    samples = _Sample(size), _Sample(size)
    present = 0
    for document in test.docs or ():
        doc_id, text = document.doc_id, document.text
        if doc_id in named:
            found[doc_id] = text
        samples[0].add(doc_id, text)
        if doc_id in relevant:
            present += 1
            samples[1].add(doc_id, text)
    return _Texts(found, samples[0].texts(), samples[1].texts(), present)


def _checked(test: TestTexts, kept: KeptSides, texts: _Texts, sample: int, job: Job) -> DocumentSensitivity:
    """The sensitivity check, or what an interrupted run has of it."""
    path = job.folder / "sensitivity.json"
    if (known := kept_json(path)) is not None:
        changes, others = known
        return DocumentSensitivity(changes, others)
    relevant = test.relevant or {}
    material = PlantMaterial(
        test.texts, texts.documents, texts.relevant, {name: relevant[name] for name in texts.relevant}
    )
    queries = dict(test.queries(kept.form))
    documents = {doc_id: kept.form(text) for doc_id, text in (texts.documents | texts.relevant).items()}
    probe = WordingProbe([normalise(text.text) for text in test.texts], inside=True)

    def worded(plants: Sequence[str]) -> list[set[str]]:
        found: list[set[str]] = [set() for _ in plants]
        for place, number, _ in probe([normalise(plant) for plant in plants]):
            found[place].add(str(number))
        return found

    of_queries = partial(compare_plants, (kept.queries, kept.training), queries, job=job)
    of_documents = None
    if kept.documents is not None:
        of_documents = partial(compare_plants, (kept.documents, kept.training), documents, job=job)
    sight = DocumentSight(worded, of_queries, of_documents, RULES.contained_words, kept.form)
    found = check(material, sight, sample=sample)
    keep_json(path, list(found))
    return found


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
