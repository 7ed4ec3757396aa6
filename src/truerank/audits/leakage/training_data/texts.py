"""The texts of the test collection and of the training examples, each with an id that says where it stands; how they
are kept to be compared, and their pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.leakage.proposing import topic_texts
from truerank.audits.leakage.training_data.results import ANY_DOCUMENT
from truerank.errors import InputError, OptionError
from truerank.overlaps import KeptTexts, OverlapRules, compare, compare_all, keep, kept_before
from truerank.overlaps.keeping import ComparedForm, keep_without, shared_passages
from truerank.overlaps.results import without_parts
from truerank.overlaps.templates import USUAL, same_templates
from truerank.records import TopicText
from truerank.sources import (
    DocumentSource,
    ExampleSource,
    TopicSet,
    formats,
    open_documents,
    open_examples,
    parse,
    read_qrels_frame,
    read_topics,
    unique_names,
)
from truerank.sources.columns import Roles
from truerank.sources.distinct import DistinctTexts, text_hashes
from truerank.sources.examples import ExampleTexts
from truerank.text.normalising import normalise
from truerank.text.wording import LABELS
from truerank.vectors.encoders import Encoder
from truerank.work.jobs import Job

PromptPattern = re.Pattern[str]
#: A prompt stands before one in so many texts of a source, and before so many; its signs, and the colons in it.
_ONE_IN: Final = 100
_FEWEST: Final = 20
_LONGEST_PROMPT: Final = 400
_COLONS: Final = 3


@dataclass(frozen=True)
class TestTexts:
    """Topics with the texts that are compared, documents where they were given, and the topics of each relevant
    document.

    `given` has the sources by option: test, docs, qrels.
    """

    __test__ = False

    topics: TopicSet
    texts: tuple[TopicText, ...]
    docs: DocumentSource | None
    relevant: Mapping[str, frozenset[str]] | None
    given: Mapping[str, str]

    @classmethod
    def of(
        cls, test: str, qrels: str | None, docs: str | None, *, fields: Collection[str], rel: int, strict: bool
    ) -> TestTexts:
        """Opens the test collection; a BEIR folder brings its documents and judgments along."""
        spec = parse(test)
        if spec.scheme == "file" and spec.path.is_dir():
            qrels = qrels or (test if formats.qrels_file(spec.path) is not None else None)
            docs = docs or (test if formats.corpus_file(spec.path, missing_ok=True) is not None else None)
        topics = read_topics(test, strict=strict)
        texts = topic_texts([topics], tuple(fields))
        if not texts:
            raise InputError("no topic has a text in these fields", "choose others with `fields`", where=test)
        relevant = None if qrels is None else _relevant(qrels, {topic.topic_id for topic in topics.topics}, rel)
        opened = None if docs is None else open_documents(docs, strict=strict)
        named = {"test": test, "docs": docs, "qrels": qrels}
        return cls(topics, tuple(texts), opened, relevant, {role: one for role, one in named.items() if one})

    def queries(self, form: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """The texts of topics as they are compared, with their places as ids."""
        return ((str(place), form(text.text)) for place, text in enumerate(self.texts))

    def documents(self, form: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """The documents as they are compared, by their ids; none without documents."""
        return ((document.doc_id, form(document.text)) for document in self.docs or ())

    def fingerprint(self) -> list[Any]:
        """The identity of all that is compared."""
        documents = None if self.docs is None else self.docs.fingerprint
        judged = sorted(self.relevant) if self.relevant else None
        return [[list(text) for text in self.texts], documents, judged]


def _relevant(qrels: str, topics: Collection[str], rel: int) -> dict[str, frozenset[str]]:
    frame = read_qrels_frame(qrels)
    found: dict[str, set[str]] = {}
    for topic, doc, grade in frame.iter_rows():
        if grade >= rel and topic in topics:
            found.setdefault(doc, set()).add(topic)
    if not found:
        fault = f"no document has a grade of {rel} or more for a topic of the test set"
        raise InputError(fault, "give the judgments of these topics, or another `rel`", where=qrels)
    return {doc: frozenset(names) for doc, names in found.items()}


@dataclass(frozen=True)
class TrainingTexts:
    """Sources of examples by name, in the order given."""

    sources: tuple[tuple[str, ExampleSource], ...]

    @classmethod
    def of(
        cls, train: Sequence[str], roles: str | None, texts: ExampleTexts | None = None, *, strict: bool
    ) -> TrainingTexts:
        """Opens the sources and tells the roles of their columns."""
        if not train:
            raise OptionError("train", "no training data", "name at least one source")
        given = None if roles is None else Roles.parse(roles)
        names = unique_names([parse(spec) for spec in train])
        sources = tuple(
            (name, open_examples(spec, roles=given, texts=texts, strict=strict))
            for name, spec in zip(names, train, strict=True)
        )
        for _, source in sources:
            _ = source.roles
        return cls(sources)

    def distinct(self, roles: Collection[str], form: ComparedForm) -> Iterator[tuple[str, str]]:
        """The texts of some roles, each once, with a hash of the normalised text as id.

        Memory is bounded: beyond some millions of distinct texts, one may come again, with the same id.
        """
        seen = DistinctTexts()
        for _, source in self.sources:
            without: PromptPattern | None = None
            for block in source.batches():
                # In their own lines: the form joins words that are cut at the end of one.
                texts = [text for role, text in zip(block.roles, block.texts, strict=True) if role in roles]
                normal = [normalise(text) for text in texts]
                without = without or prompts(texts)
                new = seen.new(normal)
                ids = map(hashed, text_hashes([normal[place] for place in new]).tolist())
                kept = [texts[place] for place in new]
                bare = (form(without.sub("", text, count=1)) for text in kept)
                yield from zip(ids, bare, strict=True)

    def fingerprint(self) -> list[list[str]]:
        """The identity of all sources and their roles."""
        return [[name, source.fingerprint] for name, source in self.sources]


def prompts(texts: Sequence[str]) -> PromptPattern:
    """What stands before many texts of a source, up to a colon, such as an instruction and "Query:" below it; and
    labels of embedding models ("query:").
    """
    counts = Counter(
        text[: colon.end()]
        for text in texts
        for colon in islice(re.compile(":").finditer(text, 0, _LONGEST_PROMPT), _COLONS)
    )
    least = max(_FEWEST, len(texts) // _ONE_IN)
    usual = sorted((prompt for prompt, count in counts.items() if count >= least), key=len, reverse=True)
    return re.compile("|".join(rf"\A{prompt}\s*(?=\S)" for prompt in (*map(re.escape, usual), LABELS)))


def hashed(number: int) -> str:
    """The id of a training text: the hash of its normalised text."""
    return f"{number:016x}"


def counted(source: ExampleSource) -> dict[str, Any]:
    """What the last reading of a source counted, with its roles and the identity of its content."""
    counts = source.counts
    return {
        "roles": str(source.roles),
        "given": source.roles.given,
        "read": counts.read,
        "empty": counts.empty,
        "repaired": counts.repaired,
        "skipped": counts.skipped,
        "absent": source.absent.json(),
        "train_queries": source.texts.queries,
        "train_docs": source.texts.docs,
        "fingerprint": source.fingerprint,
    }


_QUERIES: Final = "queries"
_DOCUMENTS: Final = "documents"
#: Evidence that a frame can be, too.
_OF_FRAMES: Final = ("ngram", "near", "contains")


class Semantic(NamedTuple):
    """The encoder's part: which texts it compares ("none", "queries", "all"), and how it is opened."""

    texts: str
    open: Callable[[], Encoder]

    def encoder(self, *, document: bool) -> Encoder | None:
        """The encoder of queries, or of documents; None where it is not asked."""
        return self.open() if self.texts == "all" or (self.texts == "queries" and not document) else None


@dataclass(frozen=True)
class ComparingTexts:
    rules: OverlapRules
    semantic: Semantic


class KeptSides(NamedTuple):
    """All texts of both sides as they are compared, each training text once; `passages` is boilerplate of the test
    collection, which the form leaves out.
    """

    form: ComparedForm
    passages: pl.DataFrame
    queries: KeptTexts
    documents: KeptTexts | None
    training_queries: KeptTexts
    training_documents: KeptTexts


class ComparedTexts(NamedTuple):
    """Pairs of texts, columns as in `overlaps.OVERLAPS`; for each kind of pair what became of the encoder, and the
    texts of both sides that it could not read.

    `crowded` counts word sequences that too many training queries, or documents, have to compare all pairs.
    """

    queries: pl.DataFrame
    query_documents: pl.DataFrame
    documents: pl.DataFrame
    semantic: tuple[str, str, str]
    unread: tuple[tuple[int, int], ...]
    crowded: tuple[int, int]


def keep_sides(test: TestTexts, training: TrainingTexts, ways: ComparingTexts, job: Job) -> KeptSides:
    """Reads all texts and keeps what they are compared by; a killed job continues."""

    def kept(name: str, stream: Iterable[tuple[str, str]]) -> KeptTexts:
        part = job.part(name)
        if (before := kept_before(part.folder, ways.rules)) is not None:
            return before
        return keep(stream, ways.rules, part, ways.semantic.encoder(document=_DOCUMENTS in name))

    def without(name: str, base: KeptTexts, stream: Iterable[tuple[str, str]], form: ComparedForm) -> KeptTexts:
        part = job.part(f"{name}-without-boilerplate")
        if (before := kept_before(part.folder, ways.rules)) is not None:
            return before
        return keep_without(base, stream, form, part, ways.semantic.encoder(document=name == _DOCUMENTS))

    plain = ComparedForm()
    own = [(_QUERIES, kept(_QUERIES, test.queries(plain)), test.queries)]
    if test.docs is not None:
        own.append((_DOCUMENTS, kept(_DOCUMENTS, test.documents(plain)), test.documents))
    # What fewer texts share is told from their own words, pair by pair: see `apart`.
    passages = pl.concat([shared_passages(one) for _, one, _ in own]).filter(pl.col("documents") > USUAL)
    form = ComparedForm(tuple(passages["passage"]))
    sides = [one for _, one, _ in own]
    if form.passages:
        sides = [without(name, one, texts(str), form) for name, one, texts in own]
    return KeptSides(
        form,
        passages,
        sides[0],
        sides[1] if len(sides) > 1 else None,
        kept(f"training-{_QUERIES}", training.distinct(("query",), form)),
        kept(f"training-{_DOCUMENTS}", training.distinct(ANY_DOCUMENT, form)),
    )


def compare_sides(kept: KeptSides, rules: OverlapRules, job: Job) -> ComparedTexts:
    """Compares queries with queries, and queries and documents with documents."""
    queries = compare(kept.queries, kept.training_queries, rules, job.part("in-training-queries"), holders=USUAL)
    sides = [kept.queries, *([] if kept.documents is None else [kept.documents])]
    inside, *documents = compare_all(
        sides, kept.training_documents, rules, job.part("in-training-documents"), holders=USUAL
    )
    found = (
        documents[0] if documents else replace(inside, frame=inside.frame.clear(), semantic="not asked", unread=(0, 0))
    )
    long = pl.col("test_words") >= rules.contained_words
    return ComparedTexts(
        _told(queries.frame),
        _told(inside.frame.filter(long)),
        _told(found.frame),
        (queries.semantic, inside.semantic, found.semantic),
        (queries.unread, inside.unread, found.unread),
        (queries.crowded, inside.crowded),
    )


def _told(pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs that say something, each once."""
    return without_parts(pairs.unique(["test_id", "training_id"], keep="first", maintain_order=True))


def apart(
    pairs: pl.DataFrame, texts: tuple[Mapping[str, str], Mapping[str, str]], sides: Sequence[KeptTexts]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The pairs that are overlaps, and those whose texts are of the same template."""
    shared = pl.col("evidence").str.split("+").list.set_intersection(list(_OF_FRAMES)).list.len() > 0
    doubtful = pairs.select(~pl.col("exact") & pl.col("wording").is_null() & shared).to_series()
    asked = pairs.filter(doubtful).select("test_id", "training_id")
    held = [part.shingles for side in sides for part in side.parts]
    found = same_templates(list(asked.iter_rows()), texts, held, sides[0].rules.shingles)
    templates = asked.filter(pl.Series(found, dtype=pl.Boolean))
    on = ["test_id", "training_id"]
    kept = pairs.join(templates, on=on, how="anti", maintain_order="left")
    return kept, pairs.join(templates, on=on, how="semi", maintain_order="left")


def compare_plants(
    sides: tuple[KeptTexts, KeptTexts],
    texts: Mapping[str, str],
    plants: Iterable[tuple[str, str]],
    ways: ComparingTexts,
    job: Job,
    *,
    document: bool,
) -> pl.DataFrame:
    """Compares changed texts with the queries or documents of the test collection as training texts are compared."""
    made = dict(plants)
    with TemporaryDirectory() as folder:
        own = replace(job, folder=Path(folder))
        encoder = ways.semantic.encoder(document=document)
        found = _told(compare(sides[0], made.items(), ways.rules, own, encoder=encoder, holders=USUAL).frame)
    return apart(found, (texts, made), sides)[0]
