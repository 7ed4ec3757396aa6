"""Compares every training set of a suite with every test set."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal, NamedTuple

import polars as pl

from truerank.audits.leakage.options import CALIBRATED_FOR
from truerank.audits.leakage.results import Sensitivity
from truerank.audits.leakage.sensitivity import Sight, check
from truerank.audits.leakage.suites.cells import Compared, cell_of, pair_cell
from truerank.audits.leakage.suites.reading import PARTS, Suite, SuiteSet, TextSource, read_suite
from truerank.audits.leakage.suites.results import CELLS, MATRIX_PAIRS, LeakageMatrix
from truerank.loading import json_file
from truerank.options import Flag, Out, Processes, command
from truerank.overlaps import KeptTexts, OverlapRules, compare_all, keep, open_kept
from truerank.overlaps.comparing import semantic_state
from truerank.overlaps.results import SemanticState
from truerank.records import TopicText
from truerank.sources import read_topics
from truerank.text.normalising import normalise
from truerank.text.wording import WordingProbe
from truerank.vectors.encoders import Encoder, EncoderSpec, open_spec
from truerank.work.artifacts import atomic_path, digest, write_text
from truerank.work.engines import LocalEngine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

__all__ = ["matrix"]

_FORMAT: Final = 2
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
    opened = None if encoder == "none" else open_spec(EncoderSpec(encoder, backend, device))
    engine = LocalEngine(workers if workers > 1 else 0)
    given = {"rules": rules, "encoder": encoder, "backend": backend, "device": device}
    if out is None:
        with TemporaryDirectory() as folder:
            return _Comparison(sets, rules, opened, Job(Path(folder), engine, progress or Quiet())).result()
    with started("leakage matrix", tuple(sets.inputs()), given, out, packages=_PACKAGES) as job:
        kept = Job(job.folder / _KEPT, engine, progress or Quiet())
        found = replace(_Comparison(sets, rules, opened, kept).result(), folder=job.folder)
        for line in found.work:
            job.log(line)
        publish(found, job)
    return found


class _Unit(NamedTuple):
    """Texts of one source, and the key under which they are kept."""

    source: TextSource
    key: str


@dataclass(frozen=True)
class _Comparison:
    suite: Suite
    rules: OverlapRules
    encoder: Encoder | None
    job: Job
    done: dict[str, list[str]] = field(default_factory=lambda: {"read": [], "compared": [], "before": []})
    keys: dict[TextSource, str] = field(default_factory=dict)
    opened: dict[str, KeptTexts] = field(default_factory=dict)
    items: dict[str, int] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)

    def result(self) -> LeakageMatrix:
        """Compares what was not compared before, and makes the cells of all."""
        for one in (*self.suite.training, *self.suite.tests):
            for unit in self._units(one):
                self._texts(unit)
        checks = {one.name: found for one in self.suite.tests if (found := self._checked(one)) is not None}
        cells, pairs = [], [pl.DataFrame(schema=MATRIX_PAIRS)]
        for row in self.suite.training:
            for part in PARTS:
                self._compare(row, part)
            for test in self.suite.tests:
                for cell, of_cell in self._cells(row, test, checks.get(test.name)):
                    cells.append({"training": row.name, "test": test.name, **cell})
                    pairs.append(of_cell)
        return LeakageMatrix(
            self.suite,
            self.rules,
            "" if self.encoder is None else self.encoder.name,
            pl.DataFrame(cells, schema=CELLS, orient="row"),
            pl.concat(pairs),
            checks,
            dict(self._counted()),
            work=tuple(self._work()),
        )

    def _key(self, source: TextSource) -> str:
        encoder = None if self.encoder is None else self.encoder.fingerprint
        return digest([_FORMAT, source.fingerprint, self.rules.ngram, encoder])[:20]

    def _units(self, one: SuiteSet, part: str | None = None) -> list[_Unit]:
        found = []
        for source in one.sources if part is None else one.of_part(part):
            if source not in self.keys:
                self.keys[source] = self._key(source)
            found.append(_Unit(source, self.keys[source]))
        return found

    def _texts(self, unit: _Unit) -> KeptTexts:
        if unit.key not in self.opened:
            folder = self.job.folder / "texts" / unit.key
            unread = folder / "unread"
            if not unread.is_file():
                self.done["read"].append(unit.source.spec)
                stream = unit.source.texts()
                keep(stream, self.rules, replace(self.job, folder=folder), self.encoder)
                write_text(unread, str(stream.unread))
            self.unread[unit.key] = int(unread.read_text(encoding="ascii"))
            self.opened[unit.key] = open_kept(folder, self.rules)
        return self.opened[unit.key]

    def _pair_file(self, training: _Unit, test: _Unit, itself: bool) -> Path:
        rules = digest(asdict(self.rules))[:8]
        return self.job.folder / "pairs" / f"{training.key}-{test.key}-{rules}{'-itself' if itself else ''}.parquet"

    def _compare(self, row: SuiteSet, part: str) -> None:
        """Compares the own texts of a training set with those test sets that they were not compared with."""
        tests = [(test.name, unit) for test in self.suite.tests for unit in self._units(test, part)]
        for training in self._units(row, part):
            for itself in (False, True):
                open_: dict[str, _Unit] = {}
                for name, unit in tests:
                    if itself == _is_itself(row, name, training, unit):
                        file = self._pair_file(training, unit, itself)
                        self.done["before" if file.is_file() else "compared"].append(f"{row.name} {name}")
                        if not file.is_file():
                            open_[unit.key] = unit
                if open_:
                    self._compare_now(training, list(open_.values()), itself)

    def _compare_now(self, training: _Unit, tests: Sequence[_Unit], itself: bool) -> None:
        files = [self._pair_file(training, unit, itself) for unit in tests]
        work = replace(self.job, folder=self.job.folder / "work" / digest([file.name for file in files])[:20])
        sides = [self._texts(unit) for unit in tests]
        every = compare_all(sides, self._texts(training), self.rules, work, in_full=not itself)
        if crowded := max(found.crowded for found in every):
            self.job.progress.note(
                f"{training.source.spec}: {crowded} n-grams stand in so many texts that pairs may lack"
            )
        for file, found in zip(files, every, strict=True):
            write_text(_crowd_file(file), str(found.crowded))
            with atomic_path(file) as temporary:
                found.frame.write_parquet(temporary, compression="zstd")
        shutil.rmtree(work.folder, ignore_errors=True)

    def _cells(
        self, row: SuiteSet, test: SuiteSet, checked: Sensitivity | None
    ) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
        found: dict[str, pl.DataFrame] = {}
        for part in PARTS:
            one = self._compared(row, test, part, checked)
            if one is not None:
                found[part] = one.pairs
                yield cell_of(one), one.pairs.select(MATRIX_PAIRS.keys())
        if len(found) == len(PARTS) and test.relevant and any(_has_examples(one) for one in self.suite.line(row)):
            yield self._pair_cell(row, test, found)

    def _compared(self, row: SuiteSet, test: SuiteSet, part: str, checked: Sensitivity | None) -> Compared | None:
        states: list[SemanticState] = []
        frames, texts, itself = [pl.DataFrame(schema={**MATRIX_PAIRS, "example_of": pl.String})], 0, False
        read, crowded = {unit.key for unit in self._units(test, part)}, 0
        for holder in self.suite.line(row):
            for training in self._units(holder, part):
                kept = self._texts(training)
                texts += len(kept)
                read.add(training.key)
                for unit in self._units(test, part):
                    other = self._texts(unit)
                    same = _is_itself(holder, test.name, training, unit)
                    itself = itself or same
                    states.append(semantic_state(other, kept))
                    file = self._pair_file(training, unit, same)
                    crowded += int(_crowd_file(file).read_text(encoding="ascii"))
                    frame = pl.read_parquet(file)
                    names = {"training": row.name, "source": holder.name, "test": test.name, "part": part}
                    frames.append(
                        frame.with_columns(
                            **{name: pl.lit(value) for name, value in names.items()},
                            example_of=pl.lit(training.source.spec if training.source.kind in _ROLES else None),
                        ).select({**MATRIX_PAIRS, "example_of": pl.String}.keys())
                    )
        if not states:
            return None
        items = sum(self._items(unit) for unit in self._units(test, part))
        unread = sum(self.unread[key] for key in read)
        return Compared(part, items, texts, pl.concat(frames), tuple(states), itself, checked, unread, crowded)

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
            len(self._texts(unit))
            for one in self.suite.line(row)
            for unit in self._units(one, "query")
            if unit.source.kind in _ROLES
        )
        topics = len({topic for topic, _ in test.relevant})
        pairs = both.with_columns(part=pl.lit("pair")).select(MATRIX_PAIRS.keys())
        return pair_cell(both, topics, examples), pairs

    def _items(self, unit: _Unit) -> int:
        """The number of topics or documents: several texts may have one id."""
        if unit.key not in self.items:
            blocks = [(part, block) for part in self._texts(unit).parts for block in range(len(part.shingles.sizes))]
            ids = [part.shingles.ids(block).alias("id") for part, block in blocks]
            self.items[unit.key] = pl.concat([pl.Series("id", [], pl.String), *ids]).n_unique()
        return self.items[unit.key]

    def _checked(self, test: SuiteSet) -> Sensitivity | None:
        """The sensitivity check on a sample of the topics; None where the encoder cannot compare them."""
        units = [unit for unit in self._units(test, "query") if self._texts(unit).encoder is not None]
        if not units or self.encoder is None:
            return None
        path = self.job.folder / "checks" / f"{digest([units[0].key, self.rules.threshold])[:20]}.json"
        if path.is_file():
            found: Sensitivity = json_file(path)
            return found
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
        sight = Sight(self.encoder.encode, WordingProbe(normalised), self.rules.threshold)
        found = check(texts, self.encoder.encode(normalised), sight)[""]
        write_text(path, json.dumps(found) + "\n")
        return found

    def _counted(self) -> Iterator[tuple[str, dict[str, int]]]:
        for role, sets in (("training", self.suite.training), ("test", self.suite.tests)):
            for one in sets:
                counts = {part: sum(len(self._texts(unit)) for unit in self._units(one, part)) for part in PARTS}
                yield f"{role} {one.name}", {part: count for part, count in counts.items() if count}

    def _work(self) -> Iterator[str]:
        read = list(dict.fromkeys(self.done["read"]))
        every = {source.spec for one in (*self.suite.training, *self.suite.tests) for source in one.sources}
        yield f"read: {len(read)} of {len(every)} sources; the others were kept from before"
        yield f"compared: {len(self.done['compared'])} of {len(self.done['compared']) + len(self.done['before'])} cells"


_ROLES: Final = ("query", "positive")


def _crowd_file(pairs: Path) -> Path:
    """Beside the pairs of two sources: how many sequences of words are crowded."""
    return pairs.with_suffix(".crowded")


def _is_itself(row: SuiteSet, test: str, training: _Unit, unit: _Unit) -> bool:
    """Whether a set is compared with itself: it stands under both headings with one name and the same texts."""
    return row.name == test and training.key == unit.key


def _has_examples(one: SuiteSet) -> bool:
    return any(source.kind in _ROLES for source in one.sources)
