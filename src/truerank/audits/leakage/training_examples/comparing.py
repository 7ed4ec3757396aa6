"""All texts of an audit of training examples, kept as they are compared, and their pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import polars as pl

from truerank.audits.leakage.training_examples.kinds import ANY_DOCUMENT
from truerank.audits.leakage.training_examples.reading import TestTexts, TrainingTexts
from truerank.overlaps import KeptTexts, OverlapRules, compare, compare_all, keep, kept_before
from truerank.overlaps.keeping import ComparedForm, keep_without, shared_passages
from truerank.overlaps.results import without_parts
from truerank.overlaps.templates import USUAL, same_templates
from truerank.vectors.encoders import Encoder
from truerank.work.jobs import Job

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
    """How texts are compared.

    Attributes:
        rules: what counts as an overlap.
        semantic: the encoder's part.
    """

    rules: OverlapRules
    semantic: Semantic


class KeptSides(NamedTuple):
    """All texts as they are compared.

    Attributes:
        form: their form.
        passages: the boilerplate of the test collection that the form leaves out, with its counts.
        queries: of the test collection.
        documents: of the test collection; None without any.
        training_queries: each once.
        training_documents: positives, negatives and documents, each once.
    """

    form: ComparedForm
    passages: pl.DataFrame
    queries: KeptTexts
    documents: KeptTexts | None
    training_queries: KeptTexts
    training_documents: KeptTexts


class ComparedTexts(NamedTuple):
    """Pairs of texts, columns as in `overlaps.OVERLAPS`.

    Attributes:
        queries: of test queries and training queries.
        query_documents: of test queries and training documents.
        documents: of test documents and training documents.
        semantic: what became of the encoder's evidence, for each of them.
        unread: texts of the two sides that the encoder could not read, for each of them.
        crowded: shingles and n-grams that so many texts have that not all pairs with them were compared: of training
            queries, and of training documents.
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
