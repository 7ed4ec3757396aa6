"""Every training set of a suite against every test set: the comparison, what is kept of it, and its result."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal

import polars as pl

from truerank.audits.leakage.options import CALIBRATED_FOR
from truerank.audits.leakage.results import Sensitivity
from truerank.audits.leakage.sensitivity import check
from truerank.audits.leakage.training_data.comparison import KeptSources, TextUnit
from truerank.audits.leakage.training_data.results import CELLS, MATRIX_PAIRS, LeakageMatrix
from truerank.audits.leakage.training_data.texts import PARTS, Suite, SuiteSet, read_suite
from truerank.audits.leakage.training_data.verdicts import Compared, cell_of, pair_cell
from truerank.loading import json_file
from truerank.options import Flag, Out, Processes, command
from truerank.overlaps import OverlapRules, compare_all
from truerank.overlaps.comparison import semantic_state
from truerank.overlaps.meaning import read_vectors
from truerank.overlaps.results import SemanticState, contrasting, without_parts
from truerank.records import TopicText
from truerank.sources import read_topics
from truerank.text.normalising import normalise
from truerank.text.wording import WordingProbe
from truerank.vectors.encoders import Encoder, EncoderSpec, open_spec
from truerank.vectors.search import SearchPlan
from truerank.work.artifacts import digest
from truerank.work.engines import LocalEngine
from truerank.work.jobs import Job
from truerank.work.kept import is_whole, keep_json, kept_json, kept_path
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

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

    Each cell says how many test queries or documents are in the training set: as the same text, with the same
    n-grams, in the same words, with the same meaning. The output folder keeps what the comparison needs: another set
    costs only its own reading and comparisons, and the result has the same bytes as a run from scratch.

    Args:
        suite: a YAML file that names the training sets and the test sets.
        rules: what counts as an overlap.
        encoder: a Hugging Face id, a local folder, packaged, or none for no semantic evidence.
        backend: what runs the encoder; auto takes OpenVINO, ONNX Runtime or torch, the first that is installed.
        device: where the torch backend runs, such as cuda:0.
        workers: how many processes read and compare.
        out: a folder for the matrix, the pairs and the page; it keeps what the sets are compared by, too.
        progress: receives progress updates.

    Returns:
        The cells with their verdicts, and the pairs.

    Raises:
        InputError: the suite, a source or an option is at fault.

    Examples:

        truerank leakage matrix suite.yaml --encoder packaged --out matrix/

        truerank leakage matrix suite.yaml --encoder none --out matrix/ --fail-on contaminated
    """
    sets = read_suite(suite)
    opened = None if encoder == "none" else open_spec(EncoderSpec(encoder, backend, device))
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
        texts = {
            f"{role} {one.name}": {part: count for part in PARTS if (count := self._size(one, part))}
            for role, sets in (("training", self.suite.training), ("test", self.suite.tests))
            for one in sets
        }
        return LeakageMatrix(
            self.suite,
            self.rules,
            "" if self.encoder is None else self.encoder.name,
            pl.DataFrame(cells, schema=CELLS, orient="row"),
            pl.concat(pairs),
            checks,
            texts,
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
                f"{training.source.spec}: {crowded} n-grams are in so many texts that pairs may lack"
            )
        for file, found in zip(files, every, strict=True):
            # Compared with itself, a set has the longer text on both sides, too.
            frame = found.frame if itself else without_parts(found.frame)
            frame = frame.filter(~contrasting(frame))
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
        pairs = pl.concat([pl.DataFrame(schema=_WITH_EXAMPLES), *frames])
        return Compared(part, items, texts, pairs, tuple(states), itself, checked, unread, crowded, unread_by_encoder)

    def _pair_cell(
        self, row: SuiteSet, test: SuiteSet, found: Mapping[str, pl.DataFrame]
    ) -> tuple[dict[str, Any], pl.DataFrame]:
        """Topics whose query and relevant document are in one training example."""
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
        encoder, vectors = self.encoder, read_vectors(normalised, self.encoder)
        plan = SearchPlan(lambda: encoder, lambda: vectors, self.rules.threshold, 0, probe=WordingProbe(normalised))
        found = check(texts, plan)[""]
        keep_json(path, found)
        return found

    def _size(self, one: SuiteSet, part: str) -> int:
        return sum(len(self.kept.texts(unit)) for unit in self.kept.units(one, part))

    def _work(self) -> Iterator[str]:
        read, again = list(dict.fromkeys(self.kept.read)), list(dict.fromkeys(self.kept.again))
        every = {source.spec for one in (*self.suite.training, *self.suite.tests) for source in one.sources}
        yield f"read: {len(read)} of {len(every)} sources; the others were kept from before"
        if again:
            yield f"read again, because boilerplate of a test set is in them: {', '.join(again)}"
        yield f"compared: {len(self.done['compared'])} of {len(self.done['compared']) + len(self.done['before'])} cells"


_ROLES: Final = ("query", "positive")
#: Pairs with the source of the examples that hold the training text.
_WITH_EXAMPLES: Final = {**MATRIX_PAIRS, "example_of": pl.String}


def _known_of(pairs: Path) -> Path:
    """Beside the pairs of two sources, written last: how many there are, and how many word sequences are crowded."""
    return pairs.with_suffix(".json")


def _is_itself(row: SuiteSet, test: str, training: TextUnit, unit: TextUnit) -> bool:
    """Whether a set is compared with itself: it stands under both headings with one name and the same texts."""
    return row.name == test and training.key == unit.key
