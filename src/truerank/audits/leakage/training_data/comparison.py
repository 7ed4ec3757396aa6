"""Both sides as they are compared: kept once, without the boilerplate of the test collection, and their pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import polars as pl

from truerank.audits.leakage.training_data.results import ANY_DOCUMENT
from truerank.audits.leakage.training_data.texts import TestTexts, TrainingTexts
from truerank.overlaps import KeptTexts, OverlapRules, compare, keep, kept_before
from truerank.overlaps.kept_texts import ComparedForm, keep_without, shared_passages
from truerank.overlaps.results import contrasting, without_parts
from truerank.overlaps.templates import USUAL, same_templates
from truerank.vectors.encoders import Encoder
from truerank.work.jobs import Job

_QUERIES: Final = "queries"
_DOCUMENTS: Final = "documents"
#: Evidence that a frame can be, too.
_OF_FRAMES: Final = ("ngram", "near", "contains")


@dataclass(frozen=True)
class ComparingTexts:
    """How texts are compared: by a rule, and `semantic` ones ("none", "queries", "all") by an encoder, too."""

    rules: OverlapRules
    semantic: str = "none"
    open: Callable[[], Encoder | None] = lambda: None

    def encoder(self, *, document: bool) -> Encoder | None:
        """The encoder of queries, or of documents; None where it is not asked."""
        return self.open() if self.semantic == "all" or (self.semantic == "queries" and not document) else None


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

    def kept(name: str, make: Callable[[Job, Encoder | None], KeptTexts]) -> KeptTexts:
        part = job.part(name)
        before = kept_before(part.folder, ways.rules)
        return make(part, ways.encoder(document=_DOCUMENTS in name)) if before is None else before

    def read(name: str, stream: Iterable[tuple[str, str]]) -> KeptTexts:
        return kept(name, partial(keep, stream, ways.rules))

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
    return KeptSides(
        form,
        passages,
        sides[0],
        sides[1] if len(sides) > 1 else None,
        read(f"training-{_QUERIES}", training.distinct(("query",), form)),
        read(f"training-{_DOCUMENTS}", training.distinct(ANY_DOCUMENT, form)),
    )


def compare_sides(kept: KeptSides, rules: OverlapRules, job: Job) -> ComparedTexts:
    """Compares queries with queries, and queries and documents with documents."""
    queries = compare(kept.queries, kept.training_queries, rules, job.part("in-training-queries"), holders=USUAL)
    inside = compare(kept.queries, kept.training_documents, rules, job.part("in-training-documents"), holders=USUAL)
    found = replace(inside, frame=inside.frame.clear(), semantic="not asked", unread=(0, 0), crowded=0)
    if kept.documents is not None:
        found = compare(kept.documents, kept.training_documents, rules, job.part("documents"), holders=USUAL)
    long = pl.col("test_words") >= rules.contained_words
    return ComparedTexts(
        _pairs(queries.frame),
        _pairs(inside.frame.filter(long)),
        _pairs(found.frame),
        (queries.semantic, inside.semantic, found.semantic),
        (queries.unread, inside.unread, found.unread),
        (queries.crowded, max(inside.crowded, found.crowded)),
    )


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
    found = same_templates(list(asked.iter_rows()), texts, held, sides[0].rules.shingles)
    related = pairs.filter(contrasting(pairs))
    templates = pl.concat([asked.filter(pl.Series(found, dtype=pl.Boolean)), related.select(asked.columns)])
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
        encoder = ways.encoder(document=document)
        found = _pairs(compare(sides[0], made.items(), ways.rules, own, encoder=encoder, holders=USUAL).frame)
    return apart(found, (texts, made), sides)[0]
