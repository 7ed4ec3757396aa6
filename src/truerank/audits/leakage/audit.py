"""The leakage audit: which test queries are in the training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

from truerank.audits.leakage.baseline import since_baseline
from truerank.audits.leakage.calibration import calibrate
from truerank.audits.leakage.encoders import Models
from truerank.audits.leakage.options import AuditOptions, Redaction, opened_labels
from truerank.audits.leakage.proposing import DistinctQueries, Proposed, held_words, propose, topic_texts
from truerank.audits.leakage.redaction import hash_text, key_mark, open_key, redact
from truerank.audits.leakage.results import AuditResult, Sensitivity, load_audit
from truerank.audits.leakage.sensitivity import check
from truerank.audits.leakage.summarising import Known, summarise
from truerank.errors import InputError, OptionError
from truerank.judging.labels import Judgments
from truerank.judging.ratings import label_inputs
from truerank.options import Encoding, Flag, Labels, Out, command
from truerank.records import Input, TopicText
from truerank.sources import (
    QuerySource,
    TopicSet,
    by_column,
    open_queries,
    parse,
    read_topics,
    read_variants,
    unique_names,
    with_variants,
)
from truerank.sources.inputs import input_of, pinned, shown_source
from truerank.sources.run_metadata import trained_on
from truerank.vectors.encoders.measuring import ChosenWay, processor_name
from truerank.vectors.prefilter import would_pass
from truerank.vectors.search import SearchPlan
from truerank.version import __version__
from truerank.work.artifacts import digest, hash_file, installed_versions
from truerank.work.engines import check_kept, open_engine
from truerank.work.jobs import Job
from truerank.work.kept import keep_json, kept_json
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import Run
from truerank.work.runs import run as started

PACKAGES: Final = (
    "scipy",
    "tokenizers",
    "onnx",
    "onnxruntime",
    "openvino",
    "nncf",
    "torch",
    "sentence-transformers",
    "ir-datasets",
    "PyStemmer",
)
#: Fields of `AuditOptions` that change where pairs are found, or what is made of them, but not which are found.
_NOT_OF_THE_PAIRS: Final = ("engine", "topic", "baseline")


@command
def audit(
    train: Annotated[Sequence[str], Flag(metavar="SRC", reads=list[str])],
    test: Annotated[Sequence[str], Flag(metavar="SRC", reads=list[str])],
    *,
    options: AuditOptions = AuditOptions(),
    encoding: Encoding = Encoding(),
    judged: Labels = Labels(),
    redaction: Redaction = Redaction(),
    out: Out = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Finds the training queries that are near-duplicates of test topics.

    Every training query is compared with every text of every topic; pairs whose cosine similarity is above the
    threshold are candidates, and so are pairs with the same content words or nearly the same letters. Each test set
    gets a verdict: CONTAMINATED, UNKNOWN or CLEAN. A run that was killed continues when it is started again.

    Args:
        train: training queries, a path, irds:ID or hf:ORG/NAME[@REVISION]; repeat in the order of the cumulative
            columns. A run with an ir_metadata header stands for the training data of ir_datasets that it names.
        test: test topics, a path, irds:ID or hf:ORG/NAME; repeat for several test sets, each with a verdict of its own.
        options: what is compared, and what counts as a candidate.
        encoding: what turns texts into vectors.
        judged: judged pairs; the verdict then rests on confirmed leaks.
        redaction: whether texts are written.
        out: a folder for candidates, report, summary and manifest.
        progress: is told what happens.

    Returns:
        The candidates and the verdicts.

    Raises:
        InputError: a source, topic file or option is at fault.

    Examples:

        truerank leakage audit --train queries.tsv.gz --test topics.trec --out audit/

        truerank leakage audit --train irds:msmarco-document/train --train irds:msmarco-document/orcas
        --test irds:disks45/nocr/trec-robust-2004 --out audit/

        truerank leakage audit --train log.parquet#query --test beir/scifact --mode prefilter --out audit/

    Source: Fröbe et al., How Train–Test Leakage Affects Zero-shot Retrieval (SPIRE 2022), section 3.
    """
    check_kept(options.engine, out)
    prepared = Audit.of(train, test, options, encoding, judged=judged, redaction=redaction)
    if out is None:
        with TemporaryDirectory() as temporary:
            return prepared.result(Path(temporary), progress)
    with started("leakage audit", (), prepared.options(), out, packages=PACKAGES) as job:
        job.keeps_others = True
        folder = job.unfinished(prepared.identity())
        job.log("start", work=folder.name, engine=options.engine)
        told = partial(_log_choice, job)
        result = replace(prepared.result(folder, progress, told), folder=job.folder)
        job.read(*prepared.inputs(result))
        if passes := result.summary.get("first_pass"):
            job.options |= {"first_pass": {name: check["way"] for name, check in passes.items()}}
        publish(result, job)
        job.log("end")
    return replace(result, left_over=tuple(_left_over(job)))


@dataclass(frozen=True)
class Audit:
    """An audit before it begins: everything is open, and no option is at fault.

    Attributes:
        sources: name and source, in the order of the cumulative columns.
        tests: the test sets, and what the user named them by.
        texts: the topic texts that are compared.
        models: the encoders.
        judgments: what people said; None without labels.
        given: the groups of options: audit, encoding, labels, redaction.
    """

    sources: Sequence[tuple[str, QuerySource]]
    tests: Sequence[tuple[str, TopicSet]]
    texts: Sequence[TopicText]
    models: Models
    judgments: Judgments | None
    given: tuple[AuditOptions, Encoding, Labels, Redaction]

    @classmethod
    def of(
        cls,
        train: Sequence[str],
        test: Sequence[str],
        options: AuditOptions,
        encoding: Encoding,
        *,
        judged: Labels = Labels(),
        redaction: Redaction = Redaction(),
    ) -> Audit:
        """Opens everything, also what is needed at the end only: a fault in it should not cost a scan."""
        train, test = ([one] if isinstance(one, str) else list(one) for one in (train, test))
        sources, tests = _sources(train, options), read_tests(test, options)
        texts = topic_texts(tests, options.fields)
        if not texts:
            raise InputError(
                "no topic has a text in these fields", "choose others with --fields", where=", ".join(test)
            )
        if redaction.redact:
            open_key(redaction.redact_key)
        if options.baseline is not None:
            load_audit(options.baseline)
        judgments = opened_labels(judged)
        named = list(zip(test, tests, strict=True))
        return cls(sources, named, texts, Models.of(encoding), judgments, (options, encoding, judged, redaction))

    def options(self) -> dict[str, Any]:
        """What the manifest says of the options: all that the result depends on."""
        options, encoding, judged, redaction = self.given
        chosen = {name: value for name, value in asdict(options).items() if name not in _NOT_OF_THE_PAIRS}
        encoder = {name: value for name, value in asdict(encoding).items() if name != "cache"}
        voices = {"annotators": judged.annotators, "votes": judged.votes}
        return {**chosen, **encoder, **(voices if self.judgments else {}), "redact": redaction.redact}

    def identity(self) -> str:
        """A hash of all that the unfinished work depends on; labels and baseline come after it.

        Redacted work is kept under its key.
        """
        options, encoding, _, redaction = self.given
        chosen = {name: value for name, value in asdict(options).items() if name not in _NOT_OF_THE_PAIRS}
        return digest(
            {
                "version": __version__,
                "options": {**chosen, "device": encoding.device, "backend": encoding.backend},
                "train": [(name, source.fingerprint) for name, source in self.sources],
                "topic_texts": [list(text) for text in self.texts],
                "encoder": (self.models.encoder.name, self.models.encoder.fingerprint, encoding.precision),
                "packages": installed_versions(*PACKAGES),
                **({"redacted": key_mark(hash_text("", open_key(redaction.redact_key)))} if redaction.redact else {}),
            }
        )

    def inputs(self, result: AuditResult) -> tuple[Input, ...]:
        """What was read, with the numbers of queries and topics."""
        options, encoding, judged, _ = self.given
        counts, encoder = result.summary["sources"], self.models.encoder
        train = [_train_input(name, source, counts[name]["read"]) for name, source in self.sources]
        tests = [input_of("test", spec, test.name, len(test.topics)) for spec, test in self.tests]
        variants = [input_of("variants", spec, name) for name, spec in options.variants.items()]
        used = Input(encoder.name, encoding.encoder, "encoder", None, encoder.fingerprint)
        labels = () if self.judgments is None else label_inputs(judged)
        before = [
            Input(Path(folder).name, str(folder), "baseline", None, hash_file(Path(folder) / "candidates.parquet"))
            for folder in [options.baseline]
            if folder is not None
        ]
        return (*train, *tests, *variants, used, *labels, *before)

    def result(
        self, folder: Path, progress: Progress | None, told: Callable[[ChosenWay], None] = lambda choice: None
    ) -> AuditResult:
        """Compares everything."""
        options, _, _, redaction = self.given
        progress = progress or Quiet()
        held = held_words([source for _, source in self.sources])
        plan = self.models.plan(self.texts, options, len(self.sources), folder, told, held=held)
        key = open_key(redaction.redact_key) if redaction.redact else b""
        proposed = propose(self.sources, self.texts, plan, Job(folder, open_engine(options.engine), progress, key))
        progress.start("sensitivity check")
        checked = self._checked(folder, plan.after(proposed.found.values()))
        progress.start("reformulation types")
        tests = [test for _, test in self.tests]
        proposed = _with_columns(proposed, self.sources)
        result = summarise(Known(proposed, tests, self.models.encoder, self.judgments, checked), options)
        if redaction.redact:
            result = redact(result, key)
        if options.baseline is not None:
            result = since_baseline(result, options.baseline).apply(result)
        calibration = None
        if self.judgments is not None and any(pair.similarity is not None for pair in self.judgments.pairs):
            calibration = calibrate(self.judgments, encoder=options.calibrated_for)
        return replace(result, calibration=calibration, topics=options.topic)

    def _checked(self, folder: Path, plan: SearchPlan) -> dict[str, Sensitivity]:
        """The sensitivity check, or what an interrupted run has of it."""
        path = folder / "sensitivity.json"
        known: dict[str, Sensitivity] | None = kept_json(path)
        if known is not None:
            return known
        passes = None
        if plan.prefilter is not None:
            passes = partial(would_pass, DistinctQueries(self.sources[0][1]), plan.prefilter)
        options = self.given[0]
        # What other machines encode with may not be here, and the figures do not depend on it.
        screens = plan.choose_screen if options.engine in ("local", "ray") else None
        exact = self.models.encoder
        plan = replace(plan, open_exact=lambda: exact, choose_screen=screens, floor=options.threshold)
        found = check(self.texts, plan, passes)
        keep_json(path, found)
        return found


def _sources(specs: Sequence[str], options: AuditOptions) -> list[tuple[str, QuerySource]]:
    if not specs:
        raise OptionError("train", "no training source", "name at least one")
    parsed = [parse(part) for spec in specs for part in trained_on(spec)]
    if options.all_columns:
        parsed = [part for spec in parsed for part in by_column(spec, strict=options.strict)]
    names = unique_names(parsed)
    return [(name, open_queries(spec, strict=options.strict)) for name, spec in zip(names, parsed, strict=True)]


def read_tests(specs: Sequence[str], options: AuditOptions) -> list[TopicSet]:
    """The test sets, under names by which they can be told apart, with their variants."""
    if not specs:
        raise OptionError("test", "no test set", "name at least one")
    names = unique_names([parse(spec) for spec in specs])
    unknown = [name for name in options.variants if name not in names]
    if unknown:
        fault = f"variants for '{unknown[0]}', which is not a test set"
        raise OptionError("variants", fault, f"use one of {', '.join(names)}")
    tests = []
    for name, spec in zip(names, specs, strict=True):
        topics = replace(read_topics(spec, strict=options.strict), name=name)
        if name in options.variants:
            topics = with_variants(topics, read_variants(options.variants[name]))
        tests.append(topics)
    return tests


def _with_columns(proposed: Proposed, sources: Sequence[tuple[str, QuerySource]]) -> Proposed:
    """Adds to the counts of each source its fingerprint, which of its text columns was read and which were not."""
    read: dict[str, set[str]] = {}
    for _, source in sources:
        read.setdefault(source.spec.location, set()).update(filter(None, [source.columns.query]))
    counts = dict(proposed.counts)
    for name, source in sources:
        counts[name] = {**counts[name], "fingerprint": source.fingerprint}
        column, others, _ = source.columns
        if others:
            left_out = [other for other in others if other not in read[source.spec.location]]
            counts[name] = {**counts[name], "column": column, "not_compared": left_out}
    return replace(proposed, counts=counts)


def _train_input(name: str, source: QuerySource, rows: int) -> Input:
    """The input of a source; its bytes were hashed for the fingerprint already."""
    kind, _, rest = source.fingerprint.partition(":")
    shown = pinned(source.spec, source.fingerprint) if kind == "hf" else shown_source(source.spec)
    return Input(name, shown, "train", rows, rest.partition(";")[0] if kind == "sha256" else None)


def _log_choice(job: Run, choice: ChosenWay) -> None:
    """Figures of this machine go to the log, the only file that differs from run to run."""
    measured = {"ways": choice.json()["ways"]} if choice.measured else {}
    job.log("first pass", processor=processor_name(), taken=asdict(choice.way), **measured)


def _left_over(job: Run) -> list[str]:
    """Unfinished work of audits with other inputs or options in the same folder, in sentences."""
    found = []
    for folder, size in job.work_folders():
        job.log("unfinished work of another audit", work=folder.name, bytes=size)
        remedy = "run that audit again to continue it, or remove the folder"
        found.append(f"{folder}: unfinished work of another audit ({size / 1e6:.1f} MB); {remedy}")
    return found
