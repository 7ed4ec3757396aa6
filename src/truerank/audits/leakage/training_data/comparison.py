"""Both sides as they are compared: kept once, without the boilerplate of the test collection, and their pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.leakage.training_data.results import ANY_DOCUMENT
from truerank.audits.leakage.training_data.texts import SuiteSet, TestTexts, TextSource, TrainingTexts
from truerank.overlaps import KeptTexts, OverlapRules, compare, compare_all, keep, kept_before, open_kept
from truerank.overlaps.kept_texts import ComparedForm, holds_any, keep_without, shared_passages
from truerank.overlaps.results import contrasting, without_parts
from truerank.overlaps.templates import USUAL, same_templates
from truerank.vectors.encoders import Encoder
from truerank.work.artifacts import digest
from truerank.work.jobs import Job
from truerank.work.kept import is_whole, keep_json, keep_text, kept_json, kept_text

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
    sides = [kept.queries, *([] if kept.documents is None else [kept.documents])]
    inside, *documents = compare_all(
        sides, kept.training_documents, rules, job.part("in-training-documents"), holders=USUAL
    )
    found = (
        documents[0] if documents else replace(inside, frame=inside.frame.clear(), semantic="not asked", unread=(0, 0))
    )
    long = pl.col("test_words") >= rules.contained_words
    return ComparedTexts(
        _pairs(queries.frame),
        _pairs(inside.frame.filter(long)),
        _pairs(found.frame),
        (queries.semantic, inside.semantic, found.semantic),
        (queries.unread, inside.unread, found.unread),
        (queries.crowded, inside.crowded),
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


_FORMAT: Final = 6
#: Beside the texts of a source: the passages that many of them hold; written last.
_PASSAGES: Final = "passages.json"
#: Beside those in another form: that they are whole.
_WHOLE: Final = "formed"


class TextUnit(NamedTuple):
    """Texts of one source, and the key under which they are kept."""

    source: TextSource
    key: str


@dataclass(frozen=True)
class KeptSources:
    """All texts of a suite as they are compared; `read` are the sources that were read now, `again` those that were
    read once more because boilerplate of a test set is in them.
    """

    rules: OverlapRules
    encoder: Encoder | None
    job: Job
    read: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    _keys: dict[TextSource, str] = field(default_factory=dict)
    _opened: dict[str, KeptTexts] = field(default_factory=dict)
    _about: dict[str, dict[str, Any]] = field(default_factory=dict)
    _formed: dict[tuple[str, ComparedForm], TextUnit] = field(default_factory=dict)
    _forms: dict[str, ComparedForm] = field(default_factory=dict)

    def units(self, one: SuiteSet, part: str | None = None) -> list[TextUnit]:
        """The sources of a set, or those of queries or documents; their texts as they are without a test set."""
        found = []
        for source in one.sources if part is None else one.of_part(part):
            if source not in self._keys:
                encoder = None if self.encoder is None else self.encoder.fingerprint
                self._keys[source] = digest([_FORMAT, source.fingerprint, self.rules.ngram, encoder])[:20]
            found.append(TextUnit(source, self._keys[source]))
        return found

    def units_for(self, test: SuiteSet, one: SuiteSet, part: str) -> list[TextUnit]:
        """The sources of a set as they are compared with a test set: without its boilerplate."""
        form = self.form(test)
        return [self._in_form(unit, form) for unit in self.units(one, part)]

    def form(self, test: SuiteSet) -> ComparedForm:
        """The form in which the texts of a test set, and others with them, are compared."""
        if test.name not in self._forms:
            rows = self.boilerplate(test)
            self._forms[test.name] = ComparedForm(tuple(row["passage"] for row in rows))
        return self._forms[test.name]

    def boilerplate(self, test: SuiteSet) -> list[dict[str, Any]]:
        """The passages that many texts of a test set hold, with their counts."""
        return [row for unit in self.units(test) for row in self._known(unit)["passages"]]

    def texts(self, unit: TextUnit) -> KeptTexts:
        """The texts of a source; they are read where nothing is kept of them."""
        if unit.key not in self._opened:
            folder = self._folder(unit.key)
            before = kept_before(folder, self.rules)
            if before is None or not (is_whole(folder / _PASSAGES) or is_whole(folder / _WHOLE)):
                self._keep(unit, folder)
                before = open_kept(folder, self.rules)
            self._opened[unit.key] = before
        return self._opened[unit.key]

    def unread(self, unit: TextUnit) -> int:
        """Records of a source that could not be read."""
        return int(self._known(TextUnit(unit.source, self._keys[unit.source]))["unread"])

    def items(self, unit: TextUnit) -> int:
        """The number of topics or documents: several texts may have one id."""
        known = self._known(unit)
        if "items" not in known:
            blocks = [(part, block) for part in self.texts(unit).parts for block in range(len(part.shingles.sizes))]
            ids = [part.shingles.ids(block).alias("id") for part, block in blocks]
            known["items"] = pl.concat([pl.Series("id", [], pl.String), *ids]).n_unique()
            keep_json(self._folder(unit.key) / _PASSAGES, known)
        return int(known["items"])

    def _known(self, unit: TextUnit) -> dict[str, Any]:
        """What is known of the texts of a source beside themselves."""
        if unit.key not in self._about:
            self.texts(unit)
            known = kept_json(self._folder(unit.key) / _PASSAGES)
            self._about[unit.key] = {"unread": 0, "passages": []} if known is None else known
        return self._about[unit.key]

    def _folder(self, key: str) -> Path:
        return self.job.folder / "texts" / key

    def _keep(self, unit: TextUnit, folder: Path) -> None:
        self.read.append(unit.source.spec)
        stream = unit.source.texts()
        plain = ComparedForm()
        formed = ((text_id, plain(text)) for text_id, text in stream)
        made = keep(formed, self.rules, replace(self.job, folder=folder), self.encoder)
        known = {"unread": stream.unread, "passages": shared_passages(made).to_dicts()}
        keep_json(folder / _PASSAGES, known)

    def _in_form(self, unit: TextUnit, form: ComparedForm) -> TextUnit:
        """The texts of a source in another form: the same ones where this changes none."""
        if not form.passages:
            return unit
        if (unit.key, form) not in self._formed:
            made = TextUnit(unit.source, digest([unit.key, form.passages])[:20])
            folder = self._folder(made.key)
            state = kept_text(folder / _WHOLE)
            if state is None or (state == "1" and kept_before(folder, self.rules) is None):
                changes = holds_any(self.texts(unit), form)
                if changes:
                    self.again.append(unit.source.spec)
                    texts: Iterator[tuple[str, str]] = iter(unit.source.texts())
                    keep_without(self.texts(unit), texts, form, replace(self.job, folder=folder), self.encoder)
                state = str(int(changes))
                keep_text(folder / _WHOLE, state)
            self._formed[unit.key, form] = made if state == "1" else unit
        return self._formed[unit.key, form]
