"""Every training set of a suite against every test set: the comparison, what is kept of it, and its result."""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

import polars as pl

from truerank.audits.leakage.estimating import claimed, kinds_seen, not_asked
from truerank.audits.leakage.options import CALIBRATED_FOR
from truerank.audits.leakage.results import Sensitivity
from truerank.audits.leakage.sensitivity import check
from truerank.audits.leakage.training_data.suites import PARTS, Suite, SuiteSet, TextSource, read_suite
from truerank.core.result import Result
from truerank.loading import json_file
from truerank.measures.magnitudes import exact_interval
from truerank.options import Flag, Out, Processes, command
from truerank.overlaps import OVERLAPS, KeptTexts, OverlapRules, compare_all, keep, kept_before, open_kept
from truerank.overlaps.comparing import semantic_state
from truerank.overlaps.keeping import ComparedForm, holds_any, keep_without, shared_passages
from truerank.overlaps.meaning import ReadTexts
from truerank.overlaps.results import SemanticState, without_parts
from truerank.records import TopicText
from truerank.sources import read_topics
from truerank.text.normalising import normalise
from truerank.text.rewordings import SEEN_KINDS, UNPLANTED
from truerank.text.wording import WordingProbe
from truerank.vectors.encoders import Encoder, EncoderSpec, open_spec
from truerank.vectors.search import SearchPlan
from truerank.work.artifacts import digest
from truerank.work.engines import LocalEngine
from truerank.work.jobs import Job
from truerank.work.kept import is_whole, keep_json, keep_text, kept_json, kept_path, kept_text
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

CELLS: Final[dict[str, Any]] = {
    "training": pl.String,
    "test": pl.String,
    "part": pl.String,
    "items": pl.Int64,
    "training_texts": pl.Int64,
    "exact": pl.Int64,
    "ngram": pl.Int64,
    "words": pl.Int64,
    "semantic": pl.Int64,
    "leaking": pl.Int64,
    "proposed": pl.Int64,
    "pairs": pl.Int64,
    "verdict": pl.String,
    "upper": pl.Int64,
    "reason": pl.String,
}
MATRIX_PAIRS: Final[dict[str, Any]] = {
    "training": pl.String,
    "source": pl.String,
    "test": pl.String,
    "part": pl.String,
    **OVERLAPS,
}


@dataclass(frozen=True, repr=False)
class LeakageMatrix(Result, shown_in="truerank.audits.leakage.training_data.matrix_report"):
    """Every training set against every test set.

    Attributes:
        suite: the sets.
        rules: what counts as an overlap.
        encoder: the name of the encoder; empty where none was asked.
        cells: columns as in `CELLS`, by training set, test set and part (query, document, pair). `items` are topics or
            documents of the test set; `exact`, `ngram` (n-grams, near-duplicates, containment), `words` (the same
            content words, or one letter apart) and `semantic` count those with that evidence, null where it was not
            asked or the encoder can read no text of a side; `leaking` those with any but words, `proposed` those with
            words only; `upper` bounds the items that leak in the same words, null where nothing bounds them.
        pairs: columns as in `MATRIX_PAIRS`; `source` is the training set that holds the text, the row's own or one
            whose data it inherits.
        checks: by test set, which planted rewordings would have been found.
        texts: by name of set, how many texts were compared, by part.
        boilerplate: by test set, passages that many of its texts hold, with their counts; they were left out of both
            sides of its cells.
        folder: where the artifacts are.
        work: what this run did and what it found done: for people, not part of the artifacts.
    """

    suite: Suite
    rules: OverlapRules
    encoder: str
    cells: pl.DataFrame
    pairs: pl.DataFrame
    checks: Mapping[str, Sensitivity]
    texts: Mapping[str, Mapping[str, int]]
    boilerplate: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    folder: Path | None = None
    work: tuple[str, ...] = ()

    verdict_words: ClassVar[tuple[str, ...]] = ("CONTAMINATED", "UNKNOWN", "CLEAN")

    def json(self) -> dict[str, Any]:
        """All but the pairs as plain values."""
        return {
            "encoder": self.encoder,
            "threshold": self.rules.threshold,
            "training": [
                {
                    "name": one.name,
                    "license": one.license,
                    "parents": list(one.parents),
                    "texts": dict(self.texts.get(f"training {one.name}", {})),
                }
                for one in self.suite.training
            ],
            "tests": [
                {
                    "name": one.name,
                    "license": one.license,
                    "texts": dict(self.texts.get(f"test {one.name}", {})),
                    "sensitivity": list(self.checks[one.name]["kinds"]) if one.name in self.checks else [],
                    "boilerplate": [dict(row) for row in self.boilerplate.get(one.name, ())],
                }
                for one in self.suite.tests
            ],
            "cells": self.cells.to_dicts(),
        }


#: The columns of a cell by the kinds of evidence that they count.
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "exact": ("exact",),
    "ngram": ("ngram", "near", "contains"),
    "words": ("words", "letters"),
    "semantic": ("encoder",),
}
_CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Compared:
    """What was compared for one cell; `states` has what the encoder did for each two sources.

    `itself`: the test set is compared with itself. `unread` counts records of both sides that hold no readable text,
    `crowded` word sequences that too many texts have to compare all pairs, `silent` texts of either side that the
    encoder cannot read.
    """

    part: str
    items: int
    training_texts: int
    pairs: pl.DataFrame
    states: tuple[SemanticState, ...]
    itself: bool
    check: Sensitivity | None
    unread: int
    crowded: int
    silent: tuple[int, int]


def cell_of(one: Compared) -> dict[str, Any]:
    """The columns of `CELLS` but the names."""
    by = {name: _items(one, kinds) for name, kinds in COLUMNS.items()}
    strong = by["exact"] | by["ngram"] | by["semantic"]
    weak = by["words"] - strong
    compared = all(state == "compared" for state in one.states)
    verdict, reason, upper = _verdict(one, strong, weak)
    return {
        "part": one.part,
        "items": one.items,
        "training_texts": one.training_texts,
        **{name: len(found) for name, found in by.items() if name != "semantic"},
        "semantic": len(by["semantic"]) if compared or by["semantic"] else None,
        "leaking": len(strong),
        "proposed": len(weak),
        "pairs": len(one.pairs),
        "verdict": verdict,
        "upper": upper,
        "reason": reason,
    }


def pair_cell(pairs: pl.DataFrame, items: int, examples: int) -> dict[str, Any]:
    """The columns of `CELLS` but the names, of topics whose query and relevant document stand in one example."""
    found = pairs["topic_id"].n_unique()
    reason = f"{found} of {items:,} topics have their query and a relevant document in one training example."
    if not found:
        reason = "No query with a relevant document was found in one example; rewordings of documents were not planted."
    return {
        "part": "pair",
        "items": items,
        "training_texts": examples,
        **dict.fromkeys(COLUMNS),
        "leaking": found,
        "proposed": 0,
        "pairs": len(pairs),
        "verdict": "CONTAMINATED" if found else "UNKNOWN",
        "upper": None,
        "reason": reason,
    }


def upper_bound(found: int, items: int, seen: int, planted: int) -> int:
    """The most items that can leak, with 95% confidence, where each leak is found with the chance that plants are.

    The chance is the lower end of a one-sided 97.5% interval of the plants that were found, and the bound is the
    largest number of leaks of which so few are found with a probability of at least 2.5%.
    """
    from scipy.special import bdtr

    low, _ = exact_interval(seen, planted, confidence=_CONFIDENCE)
    # The more leaks, the less probable it is that so few are found.
    return bisect_left(
        range(items), True, lo=min(found, items), key=lambda most: bdtr(found, most + 1, low) < (1 - _CONFIDENCE) / 2
    )


def _items(one: Compared, kinds: Sequence[str]) -> set[str]:
    """The texts of the test set with some kinds of evidence."""
    pairs = one.pairs
    if len(pairs):
        pairs = pairs.filter(pl.col("evidence").str.split("+").list.set_intersection(list(kinds)).list.len() > 0)
    return {*pairs["test_id"].to_list(), *(pairs["training_id"].to_list() if one.itself else ())}


def _verdict(one: Compared, strong: set[str], weak: set[str]) -> tuple[str, str, int | None]:
    noun = {"query": "topics", "document": "documents"}[one.part]
    seen, planted = _planted(one.check) if one.part == "query" else (0, 0)
    compared = all(state == "compared" for state in one.states)
    upper = upper_bound(len(strong | weak), one.items, seen, planted) if planted and compared else None
    bound = "" if upper is None else f" At most {upper:,} leak in the same words (95%)."
    if compared and any(one.silent):
        bound += f" {not_asked(*one.silent)}"
    if strong:
        other = "another of them" if one.itself else "a training text"
        return (
            "CONTAMINATED",
            f"{len(strong):,} of {one.items:,} {noun} have {other} with the same text, n-grams or meaning.{bound}",
            upper,
        )
    gaps = list(_not_compared(one))
    if weak:
        gaps.append(f"{len(weak):,} of {one.items:,} {noun} have a training text with the same content words, unjudged")
    if "unknown language" in one.states:
        gaps.append(f"the encoder cannot read one of the sides ({one.silent[0]:,} and {one.silent[1]:,} texts)")
    if "not asked" in one.states:
        gaps.append("no encoder compared meanings")
    if one.part == "document":
        gaps.append("no changed documents were planted, so that nothing tells what would be found")
    elif not planted:
        gaps.append("no rewordings were planted, so that nothing tells what would be found")
    else:
        found, blind, few = kinds_seen(one.check["kinds"]) if one.check is not None else ([], {}, {})
        if missed := [kind for kind in blind if kind in SEEN_KINDS]:
            gaps.append(f"planted rewordings were not found often enough ({', '.join(missed)})")
        if not gaps:
            return (
                "CLEAN",
                f"All texts were compared and nothing was found. Of planted rewordings at least 95% were found: "
                f"{claimed(found)}; not: {', '.join(blind) or 'none'}; not planted: {UNPLANTED}"
                f"{'; too few to say: ' if few else ''}{', '.join(few)}.{bound}",
                upper,
            )
    return "UNKNOWN", f"Nothing above the thresholds, but {'; '.join(gaps)}.{bound}", upper


def _not_compared(one: Compared) -> Iterator[str]:
    """What was not read, or not compared with everything."""
    if not one.training_texts:
        yield f"the training data has no {one.part}"
    if one.unread:
        yield f"{one.unread:,} record{'' if one.unread == 1 else 's'} could not be read"
    if one.crowded:
        yield f"{one.crowded:,} word sequences stand in so many texts that not all pairs with them were compared"


def _planted(check: Sensitivity | None) -> tuple[int, int]:
    """Plants in the same words that were found, and all of them."""
    kinds = [] if check is None else [kind for kind in check["kinds"] if kind["kind"] in SEEN_KINDS]
    return sum(kind["found"] for kind in kinds), sum(kind["planted"] for kind in kinds)


_FORMAT: Final = 5
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
    read once more because boilerplate of a test set stands in them.
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


_KEPT: Final = "kept"
#: Topics whose rewordings are planted; six kinds in the same words of each are enough for the bound.
_TOPICS_CHECKED: Final = 40
_PACKAGES: Final = ("scipy", "tokenizers", "onnx", "onnxruntime", "openvino", "torch", "PyStemmer")


@command
def matrix(
    suite: Annotated[str | Path, Flag(metavar="FILE", reads=str, positional=True)],
    *,
    rules: OverlapRules = OverlapRules(),
    encoder: Annotated[str, Flag(metavar="NAME")] = CALIBRATED_FOR,
    backend: Literal["auto", "onnx", "openvino", "torch"] = "auto",
    device: str | None = None,
    workers: Processes = 1,
    out: Out = None,
    progress: Progress | None = None,
) -> LeakageMatrix:
    """Compares every training set with every test set: queries, documents, and pairs of both.

    Each cell says how many test queries or documents stand in the training set: as the same text, with the same
    n-grams, in the same words, with the same meaning. What sets are compared by is kept in the output folder: a further
    set costs only its own reading and comparisons, and the result has the same bytes as one from nothing.

    Args:
        suite: a YAML file that names the training sets and the test sets.
        rules: what counts as an overlap.
        encoder: a Hugging Face id, a local folder, packaged, or none for no semantic evidence.
        backend: what runs the encoder; auto takes OpenVINO, ONNX Runtime or torch, the first that is installed.
        device: where the torch backend runs, such as cuda:0.
        workers: how many processes read and compare.
        out: a folder for the matrix, the pairs and the page; it keeps what the sets are compared by, too.
        progress: is told what happens.

    Returns:
        The cells with their verdicts, and the pairs.

    Raises:
        InputError: the suite, a source or an option is at fault.

    Examples:

        truerank leakage matrix suite.yaml --encoder packaged --out matrix/

        truerank leakage matrix suite.yaml --encoder none --out matrix/ --fail-on contaminated
    """
    sets = read_suite(suite)
    opened = None if encoder == "none" else ReadTexts(open_spec(EncoderSpec(encoder, backend, device)))
    engine = LocalEngine(workers if workers > 1 else 0)
    given = {"rules": rules, "encoder": encoder, "backend": backend, "device": device}
    if out is None:
        with TemporaryDirectory() as folder:
            return _Comparison.of(sets, rules, opened, Job(Path(folder), engine, progress or Quiet())).result()
    with started("leakage matrix", tuple(sets.inputs()), given, out, packages=_PACKAGES) as job:
        kept = Job(job.claim_folder(_KEPT), engine, progress or Quiet())
        found = replace(_Comparison.of(sets, rules, opened, kept).result(), folder=job.folder)
        for line in found.work:
            job.log(line)
        publish(found, job)
    return found


@dataclass(frozen=True)
class _Comparison:
    suite: Suite
    rules: OverlapRules
    encoder: Encoder | None
    job: Job
    kept: KeptSources
    done: dict[str, list[str]] = field(default_factory=lambda: {"compared": [], "before": []})

    @classmethod
    def of(cls, suite: Suite, rules: OverlapRules, encoder: Encoder | None, job: Job) -> _Comparison:
        return cls(suite, rules, encoder, job, KeptSources(rules, encoder, job))

    def result(self) -> LeakageMatrix:
        """Compares what was not compared before, and makes the cells of all."""
        for one in (*self.suite.training, *self.suite.tests):
            for unit in self.kept.units(one):
                self.kept.texts(unit)
        checks = {one.name: found for one in self.suite.tests if (found := self._checked(one)) is not None}
        cells, pairs = [], [pl.DataFrame(schema=MATRIX_PAIRS)]
        for row in self.suite.training:
            for part in PARTS:
                self._compare(row, part)
            for test in self.suite.tests:
                for cell, of_cell in self._cells(row, test, checks.get(test.name)):
                    cells.append({"training": row.name, "test": test.name, **cell})
                    pairs += [of_cell.select(MATRIX_PAIRS.keys())] if len(of_cell) else []
        return LeakageMatrix(
            self.suite,
            self.rules,
            "" if self.encoder is None else self.encoder.name,
            pl.DataFrame(cells, schema=CELLS, orient="row"),
            pl.concat(pairs),
            checks,
            dict(self._counted()),
            {one.name: rows for one in self.suite.tests if (rows := tuple(self.kept.boilerplate(one)))},
            work=tuple(self._work()),
        )

    def _pair_file(self, training: TextUnit, test: TextUnit, itself: bool) -> Path:
        rules = digest(asdict(self.rules))[:8]
        return self.job.folder / "pairs" / f"{training.key}-{test.key}-{rules}{'-itself' if itself else ''}.parquet"

    def _compare(self, row: SuiteSet, part: str) -> None:
        """Compares the own texts of a training set with those test sets that they were not compared with."""
        open_: dict[tuple[TextUnit, bool], dict[str, TextUnit]] = {}
        for test in self.suite.tests:
            for training in self.kept.units_for(test, row, part):
                for unit in self.kept.units_for(test, test, part):
                    itself = _is_itself(row, test.name, training, unit)
                    file = self._pair_file(training, unit, itself)
                    there = is_whole(_known_of(file)) and is_whole(file)
                    self.done["before" if there else "compared"].append(f"{row.name} {test.name}")
                    if not there:
                        open_.setdefault((training, itself), {})[unit.key] = unit
        for (training, itself), units in open_.items():
            self._compare_now(training, list(units.values()), itself)

    def _compare_now(self, training: TextUnit, tests: Sequence[TextUnit], itself: bool) -> None:
        files = [self._pair_file(training, unit, itself) for unit in tests]
        work = replace(self.job, folder=self.job.folder / "work" / digest([file.name for file in files])[:20])
        sides = [self.kept.texts(unit) for unit in tests]
        every = compare_all(sides, self.kept.texts(training), self.rules, work, in_full=not itself)
        if crowded := max(found.crowded for found in every):
            self.job.progress.note(
                f"{training.source.spec}: {crowded} n-grams stand in so many texts that pairs may lack"
            )
        for file, found in zip(files, every, strict=True):
            # Compared with itself, a set has the longer text on both sides, too.
            frame = found.frame if itself else without_parts(found.frame)
            with kept_path(file) as temporary:
                frame.write_parquet(temporary, compression="zstd")
            keep_json(_known_of(file), {"pairs": len(frame), "crowded": found.crowded})
        shutil.rmtree(work.folder, ignore_errors=True)

    def _cells(
        self, row: SuiteSet, test: SuiteSet, checked: Sensitivity | None
    ) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
        found: dict[str, pl.DataFrame] = {}
        for part in PARTS:
            one = self._compared(row, test, part, checked)
            if one is not None:
                found[part] = one.pairs
                yield cell_of(one), one.pairs
        if (
            len(found) == len(PARTS)
            and test.relevant
            and any(source.kind in _ROLES for one in self.suite.line(row) for source in one.sources)
        ):
            yield self._pair_cell(row, test, found)

    def _compared(self, row: SuiteSet, test: SuiteSet, part: str, checked: Sensitivity | None) -> Compared | None:
        states: list[SemanticState] = []
        frames, texts, itself = list[pl.DataFrame](), 0, False
        tests, crowded = self.kept.units_for(test, test, part), 0
        read = {unit.key: unit for unit in tests}
        for holder in self.suite.line(row):
            for training in self.kept.units_for(test, holder, part):
                kept = self.kept.texts(training)
                texts += len(kept)
                read[training.key] = training
                for unit in tests:
                    other = self.kept.texts(unit)
                    same = _is_itself(holder, test.name, training, unit)
                    itself = itself or same
                    states.append(semantic_state(other, kept))
                    file = self._pair_file(training, unit, same)
                    known = json_file(_known_of(file))
                    crowded += int(known["crowded"])
                    if not known["pairs"]:
                        continue
                    frame = pl.read_parquet(file)
                    names = {"training": row.name, "source": holder.name, "test": test.name, "part": part}
                    frames.append(
                        frame.with_columns(
                            **{name: pl.lit(value) for name, value in names.items()},
                            example_of=pl.lit(training.source.spec if training.source.kind in _ROLES else None),
                        ).select(_WITH_EXAMPLES.keys())
                    )
        if not states:
            return None
        items = sum(self.kept.items(unit) for unit in self.kept.units(test, part))
        unread = sum(map(self.kept.unread, read.values()))
        ours = {unit.key for unit in tests}
        silent = [(unit.key in ours, self.kept.texts(unit).unread) for unit in read.values()]
        unread_by_encoder = sum(n for own, n in silent if own), sum(n for own, n in silent if not own)
        pairs = pl.concat(frames) if frames else _no_pairs()
        return Compared(part, items, texts, pairs, tuple(states), itself, checked, unread, crowded, unread_by_encoder)

    def _pair_cell(
        self, row: SuiteSet, test: SuiteSet, found: Mapping[str, pl.DataFrame]
    ) -> tuple[dict[str, Any], pl.DataFrame]:
        """Topics whose query and relevant document stand in one training example."""
        keys = ["source", "example_of", "training_id"]
        query = found["query"].filter(pl.col("example_of").is_not_null())
        query = query.select(*keys, topic_id="test_id").unique()
        relevant = pl.DataFrame(sorted(test.relevant), schema=["topic_id", "test_id"], orient="row")
        both = found["document"].join(query, on=keys).join(relevant, on=["topic_id", "test_id"], how="semi")
        examples = sum(
            len(self.kept.texts(unit))
            for one in self.suite.line(row)
            for unit in self.kept.units(one, "query")
            if unit.source.kind in _ROLES
        )
        topics = len({topic for topic, _ in test.relevant})
        return pair_cell(both, topics, examples), both.with_columns(part=pl.lit("pair"))

    def _checked(self, test: SuiteSet) -> Sensitivity | None:
        """The sensitivity check on a sample of the topics; None where the encoder cannot compare them."""
        units = [unit for unit in self.kept.units(test, "query") if self.kept.texts(unit).encoder is not None]
        if not units or self.encoder is None:
            return None
        path = self.job.folder / "checks" / f"{digest([units[0].key, self.rules.threshold])[:20]}.json"
        known: Sensitivity | None = kept_json(path)
        if known is not None:
            return known
        self.job.progress.start(f"sensitivity check of {test.name}")
        topics = read_topics(units[0].source.spec).topics
        chosen = Random(f"0 {len(topics)}").sample(topics, min(_TOPICS_CHECKED, len(topics)))
        # Under one name for all sets, so that equal topics have equal plants.
        texts = [
            TopicText("", topic.topic_id, name, 0, text)
            for topic in chosen
            for name, text in (("title", topic.title), ("description", topic.description))
            if text.strip()
        ]
        normalised = [normalise(text.text) for text in texts]
        encoder, vectors = self.encoder, self.encoder.encode(normalised)
        plan = SearchPlan(lambda: encoder, lambda: vectors, self.rules.threshold, 0, probe=WordingProbe(normalised))
        found = check(texts, plan)[""]
        keep_json(path, found)
        return found

    def _counted(self) -> Iterator[tuple[str, dict[str, int]]]:
        for role, sets in (("training", self.suite.training), ("test", self.suite.tests)):
            for one in sets:
                counts = {
                    part: sum(len(self.kept.texts(unit)) for unit in self.kept.units(one, part)) for part in PARTS
                }
                yield f"{role} {one.name}", {part: count for part, count in counts.items() if count}

    def _work(self) -> Iterator[str]:
        read, again = list(dict.fromkeys(self.kept.read)), list(dict.fromkeys(self.kept.again))
        every = {source.spec for one in (*self.suite.training, *self.suite.tests) for source in one.sources}
        yield f"read: {len(read)} of {len(every)} sources; the others were kept from before"
        if again:
            yield f"read again, because boilerplate of a test set stands in them: {', '.join(again)}"
        yield f"compared: {len(self.done['compared'])} of {len(self.done['compared']) + len(self.done['before'])} cells"


_ROLES: Final = ("query", "positive")
#: Pairs with the source of the examples that hold the training text.
_WITH_EXAMPLES: Final = {**MATRIX_PAIRS, "example_of": pl.String}


@cache
def _no_pairs() -> pl.DataFrame:
    return pl.DataFrame(schema=_WITH_EXAMPLES)


def _known_of(pairs: Path) -> Path:
    """Beside the pairs of two sources, written last: how many there are, and how many word sequences are crowded."""
    return pairs.with_suffix(".json")


def _is_itself(row: SuiteSet, test: str, training: TextUnit, unit: TextUnit) -> bool:
    """Whether a set is compared with itself: it stands under both headings with one name and the same texts."""
    return row.name == test and training.key == unit.key
