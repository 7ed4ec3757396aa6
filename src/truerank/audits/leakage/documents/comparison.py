"""Both sides as they are compared: kept once, without the boilerplate of the test collection, and their pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import polars as pl

from truerank.audits.leakage.documents.texts import TestTexts, TrainingSource, distinct_documents
from truerank.audits.leakage.kinds import RULES
from truerank.overlaps import KeptTexts, compare, keep, kept_before
from truerank.overlaps.kept_texts import ComparedForm, keep_without, shared_passages
from truerank.overlaps.results import contrasting, without_parts
from truerank.overlaps.templates import USUAL, same_templates
from truerank.work.jobs import Job

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
