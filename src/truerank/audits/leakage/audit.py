"""The leakage audit: which test queries are in the training data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Final

import polars as pl

import truerank
from truerank.audits.leakage.baseline import since_baseline
from truerank.audits.leakage.calibration import calibrate
from truerank.audits.leakage.calibration_results import Calibration
from truerank.audits.leakage.estimating import TestEvidence, summarise_test
from truerank.audits.leakage.options import Options
from truerank.audits.leakage.proposing import DistinctQueries, Proposed, propose, topic_texts
from truerank.audits.leakage.redaction import open_key, redact
from truerank.audits.leakage.reformulations import with_types
from truerank.audits.leakage.report import ReportExtras, render
from truerank.audits.leakage.results import (
    CANDIDATE_SCHEMA,
    NEIGHBOUR_SCHEMA,
    AuditResult,
    FormRecall,
    PrefilterRecall,
    Sensitivity,
    Summary,
    load_audit,
)
from truerank.audits.leakage.sensitivity import Sight, check
from truerank.audits.leakage.wording import EVIDENCE, LETTERS, WORDS, WordingProbe
from truerank.errors import InputError
from truerank.judging.labels import Judgments, annotate, open_judgments, scope_notes
from truerank.records import TopicText
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
from truerank.sources.sample import SAMPLE
from truerank.text.normalising import normalise
from truerank.vectors.encoders import CachedEncoder, Encoder, EncoderSpec, Vectors, open_spec
from truerank.vectors.prefilter import DEFAULT_CUTS, Filtered, FilterPlan, estimate_recall, would_pass
from truerank.vectors.search import SearchPlan
from truerank.work.artifacts import Artifacts, digest, installed_versions, write_text
from truerank.work.engines import open_engine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet

__all__ = ["audit", "publish"]

#: Options that change where and how fast the pairs are found, or what is made of them, but not which are found.
_NOT_OF_THE_RESULT: Final = ("cache", "engine", "labels", "votes", "baseline", "redact", "redact_key")
#: Queries of the embedded sample from which the int8 encoder learns its ranges.
_CALIBRATION_TEXTS: Final = 300
_PACKAGES: Final = (
    "truerank",
    "numpy",
    "scipy",
    "polars",
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


def audit(
    train: Sequence[str],
    test: Sequence[str],
    out: str | Path,
    options: Options | None = None,
    *,
    progress: Progress | None = None,
) -> AuditResult:
    """Finds the training queries that are near-duplicates of test topics.

    Args:
        train: training sources, in the order of the cumulative columns.
        test: test sets, each with a verdict of its own.
        out: the folder for candidates.parquet, neighbours.parquet, summary.json and manifest.json; a run that was
            killed continues from there.
        options: how to look.
        progress: is told what happens.

    Returns:
        The candidates and the verdicts.

    Raises:
        InputError: a source, topic file or option is at fault.
    """
    options, progress = options or Options(), progress or Quiet()
    sources = _sources(train, options)
    tests = _tests(test, options)
    texts = topic_texts(tests, options.fields)
    if not texts:
        raise InputError("no topic has a text in these fields", "choose others with --fields", where=", ".join(test))
    judgments = _checked_side_inputs(options)
    models = _Models.of(options)
    artifacts = Artifacts(out)
    plan = models.plan(texts, options)
    identity = {**_identity(sources, texts, models, options), "test": _test_inputs(tests, test)}
    folder = _work_folder(artifacts, identity)
    artifacts.log("start", work=folder.name, engine=options.engine)
    job = Job(folder, open_engine(options.engine), progress)
    proposed = _with_columns(propose(sources, texts, plan, job), sources)
    progress.start("sensitivity check")
    checked = _checked(folder, sources, texts, plan, models=models, options=options)
    progress.start("reformulation types")
    result = _estimate(proposed, tests, options, models=models, judgments=judgments, checked=checked)
    provenance = _provenance(identity, proposed, options)
    calibration = _calibration(judgments, options)
    result = publish(artifacts, result, provenance, options, ReportExtras(calibration=calibration))
    shutil.rmtree(folder, ignore_errors=True)
    artifacts.tidy()
    artifacts.log("end")
    for other, size in artifacts.work_folders():
        artifacts.log("unfinished work of another audit", work=other.name, bytes=size)
    return result


def publish(
    artifacts: Artifacts, result: AuditResult, provenance: Mapping[str, Any], options: Options, extras: ReportExtras
) -> AuditResult:
    """Compares with the baseline, redacts, and writes all artifacts.

    Args:
        artifacts: the folder to write to.
        result: the audit.
        provenance: what the manifest says.
        options: names the baseline and says whether to redact.
        extras: what else the report shows.

    Returns:
        The audit as it was written.
    """
    if options.redact:
        result = redact(result, open_key(options.redact_key))
    if options.baseline is not None:
        news = since_baseline(result, options.baseline)
        result = news.apply(result)
        extras = replace(extras, baseline=news.table())
    artifacts.parquet("candidates.parquet", result.candidates)
    artifacts.parquet("neighbours.parquet", result.neighbours)
    artifacts.json("summary.json", result.summary)
    artifacts.text("report.html", render(result, extras=replace(extras, provenance=provenance)))
    artifacts.manifest(provenance)
    return replace(result, folder=artifacts.folder)


def _checked_side_inputs(options: Options) -> Judgments | None:
    """Opens what is only needed at the end, so that a fault in it does not cost a scan; returns the labels."""
    if options.redact:
        open_key(options.redact_key)
    if options.baseline is not None:
        load_audit(options.baseline)
    return open_judgments(options.labels, votes=options.votes) if options.labels else None


def _sources(specs: Sequence[str], options: Options) -> list[tuple[str, QuerySource]]:
    if not specs:
        raise InputError("no training source", "name at least one with --train", where="--train")
    parsed = [parse(spec) for spec in specs]
    if options.all_columns:
        parsed = [part for spec in parsed for part in by_column(spec, strict=options.strict)]
    names = unique_names(parsed)
    return [(name, open_queries(spec, strict=options.strict)) for name, spec in zip(names, parsed, strict=True)]


def _with_columns(proposed: Proposed, sources: Sequence[tuple[str, QuerySource]]) -> Proposed:
    """Adds to the counts of each source which of its text columns was read and which were not compared."""
    read: dict[str, set[str]] = {}
    for _, source in sources:
        read.setdefault(source.spec.location, set()).update(filter(None, [source.columns.query]))
    counts = dict(proposed.counts)
    for name, source in sources:
        column, others, _ = source.columns
        if others:
            left_out = [other for other in others if other not in read[source.spec.location]]
            counts[name] = {**counts[name], "column": column, "not_compared": left_out}
    return replace(proposed, counts=counts)


def _tests(specs: Sequence[str], options: Options) -> list[TopicSet]:
    if not specs:
        raise InputError("no test set", "name at least one with --test", where="--test")
    names = unique_names([parse(spec) for spec in specs])
    unknown = [name for name in options.variants if name not in names]
    if unknown:
        raise InputError(
            f"variants for {unknown[0]!r}, which is no test set", f"use one of {', '.join(names)}", where="--variants"
        )
    tests = []
    for name, spec in zip(names, specs, strict=True):
        topics = replace(read_topics(spec, strict=options.strict), name=name)
        if name in options.variants:
            topics = with_variants(topics, read_variants(options.variants[name]))
        tests.append(topics)
    return tests


@dataclass(frozen=True)
class _Models:
    """The encoder in full precision and, where the backend has one, the low-precision one for the first pass."""

    exact: EncoderSpec
    screen: EncoderSpec | None
    cache: str | None
    encoder: Encoder

    @classmethod
    def of(cls, options: Options) -> _Models:
        exact = EncoderSpec(options.encoder, backend=options.backend, device=options.device)
        encoder = _open(exact, options.cache)
        return cls(exact, low_precision(exact) if options.precision == "auto" else None, options.cache, encoder)

    def plan(self, texts: Sequence[TopicText], options: Options) -> SearchPlan:
        """What to look for with these models; the topic texts are encoded from now on, while the log is read."""
        normalised = tuple(normalise(text.text) for text in texts)
        prefilter, probe = None, WordingProbe(normalised)
        if options.mode == "prefilter":
            cuts = {**DEFAULT_CUTS, **options.cuts}
            prefilter = FilterPlan(normalised, tuple(text.field for text in texts), cuts, probe)
        return SearchPlan(
            open_exact=partial(_open, self.exact, self.cache),
            open_screen=None if self.screen is None else partial(_open, self.screen, self.cache),
            topic_vectors=_begun(partial(self.encoder.encode, normalised)),
            floor=options.lowest,
            top_k=options.top_k,
            probe=probe,
            prefilter=prefilter,
            block_size=options.block_size,
        )


def low_precision(exact: EncoderSpec) -> EncoderSpec | None:
    """The int8 encoder for a first pass, where this machine has what it takes (the `[fast]` extra, no GPU).

    It learns its ranges from the embedded sample, so it is the same whatever is audited; its error is measured on the
    data at hand.
    """
    if exact.backend not in ("auto", "openvino") or exact.device not in (None, "cpu"):
        return None
    if find_spec("openvino") is None or find_spec("nncf") is None:
        return None
    resolved = getattr(_open(exact, None), "spec", exact)
    if (resolved.backend, resolved.precision) != ("openvino", "fp32"):
        return None
    texts = [query.text for query in islice(open_queries(str(SAMPLE.train[0])), _CALIBRATION_TEXTS)]
    return replace(exact, backend="openvino", precision="int8", calibration=tuple(texts))


def _begun(work: Callable[[], Vectors]) -> Callable[[], Vectors]:
    """Begins the work in a thread; what comes back waits for its result."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    return future.result


@lru_cache(maxsize=4)
def _open(spec: EncoderSpec, cache: str | None) -> Encoder:
    # Each process opens a model once, however many passes it works on.
    encoder = open_spec(spec)
    return encoder if cache is None else CachedEncoder(encoder, Path(cache))


def _identity(
    sources: Sequence[tuple[str, QuerySource]],
    texts: Sequence[TopicText],
    models: _Models,
    options: Options,
) -> dict[str, Any]:
    """All that the result depends on; the provenance in the manifest."""
    chosen = {name: value for name, value in asdict(options).items() if name not in _NOT_OF_THE_RESULT}
    return {
        "truerank": truerank.__version__,
        "command": "leakage audit",
        "options": chosen,
        "train": [{"name": name, "source": source.spec.spec, "hash": source.fingerprint} for name, source in sources],
        "topic_texts": digest([list(text) for text in texts]),
        "encoder": {
            "name": models.encoder.name,
            "fingerprint": models.encoder.fingerprint,
            "precision": models.encoder.precision,
            "first_pass": None if models.screen is None else models.screen.precision,
        },
        "versions": installed_versions(*_PACKAGES),
    }


def _test_inputs(tests: Sequence[TopicSet], specs: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"name": test.name, "source": spec, "topics": len(test.topics), "hash": digest([list(t) for t in test.topics])}
        for test, spec in zip(tests, specs, strict=True)
    ]


def _work_folder(artifacts: Artifacts, identity: Mapping[str, Any]) -> Path:
    """Where this very audit continues; unfinished work of audits with other inputs or options stays beside it."""
    folder = artifacts.work / digest(identity)[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _checked(
    folder: Path,
    sources: Sequence[tuple[str, QuerySource]],
    texts: Sequence[TopicText],
    plan: SearchPlan,
    *,
    models: _Models,
    options: Options,
) -> dict[str, Sensitivity]:
    """The sensitivity check, or what an interrupted run has of it."""
    path = folder / "sensitivity.json"
    if path.is_file():
        known: dict[str, Sensitivity] = json.loads(path.read_text(encoding="utf-8"))
        return known
    passes = None
    if plan.prefilter is not None:
        passes = partial(would_pass, DistinctQueries(sources[0][1]), plan.prefilter)
    probe = WordingProbe([normalise(text.text) for text in texts])
    sight = Sight(models.encoder.encode, probe, options.threshold, passes)
    found = check(texts, plan.topic_vectors(), sight)
    write_text(path, json.dumps(found) + "\n")
    return found


def _estimate(
    proposed: Proposed,
    tests: Sequence[TopicSet],
    options: Options,
    *,
    models: _Models,
    judgments: Judgments | None,
    checked: Mapping[str, Sensitivity],
) -> AuditResult:
    pairs = _with_evidence(proposed.pairs, options.threshold)
    above_floor = pl.col("similarity") > pl.lit(options.lowest, pl.Float32)
    candidates = with_types(pairs.filter(above_floor | (pl.col("evidence") != "")), tests, models.encoder)
    judged = None if judgments is None else annotate(pairs, judgments)
    above = pl.col("similarity") > pl.lit(options.threshold, pl.Float32)
    unsettled = (pairs if judged is None else judged.filter(pl.col("judged").fill_null(value=True))).filter(
        ~above & (pl.col("evidence") != "")
    )
    prefilter = _recall(proposed, topic_texts(tests, options.fields), options)
    nothing = Sensitivity(kinds=[], other_topics={})
    summary = Summary(
        threshold=options.threshold,
        floor=options.lowest,
        calibrated_for=options.calibrated_for,
        calibrated=models.encoder.name == options.calibrated_for,
        encoder=models.encoder.name,
        mode=options.mode,
        top_k=options.top_k,
        sources=proposed.counts,
        tests={
            test.name: summarise_test(
                test,
                TestEvidence(
                    candidates.filter(above, test=test.name),
                    unsettled.filter(test=test.name),
                    checked.get(test.name, nothing),
                    None if judged is None else _confirmed(judged.filter(test=test.name), options.threshold),
                    _silent(test, options),
                    models.encoder.name == options.calibrated_for,
                ),
                proposed.counts,
                prefilter=prefilter,
                fields=tuple(name for name in (*options.fields, "variant") if name in test.fields),
            )
            for test in tests
        },
        prefilter=prefilter,
    )
    if judgments is not None and judged is not None:
        summary["labels"] = _judged_counts(judged, options.threshold)
        scope = scope_notes({test.name: [topic.topic_id for topic in test.topics] for test in tests}, judgments)
        summary["labels"] |= {"test_sets": " ".join(scope)} if scope else {}
    neighbours = proposed.pairs.filter(pl.col("rank") <= options.top_k).select(list(NEIGHBOUR_SCHEMA))
    return AuditResult(summary, candidates.select(list(CANDIDATE_SCHEMA)), neighbours)


def _with_evidence(pairs: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Pairs with the column `evidence` in the place of `probed`."""
    proposed = (
        pl.col("similarity") > pl.lit(threshold, pl.Float32),
        pl.col("probed") == WORDS,
        pl.col("probed") == LETTERS,
    )
    names = [pl.when(by).then(pl.lit(name)) for name, by in zip(EVIDENCE, proposed, strict=True)]
    return pairs.with_columns(pl.concat_str(names, separator="+", ignore_nulls=True).alias("evidence")).drop("probed")


def _confirmed(judged: pl.DataFrame, threshold: float) -> tuple[set[str], set[str]]:
    """Topics with a confirmed leak, and topics with a pair above the threshold that nobody judged."""
    above = pl.col("similarity") > pl.lit(threshold, pl.Float32)
    sure = judged.filter("judged")["topic_id"].unique()
    open_ = judged.filter(above & pl.col("judged").is_null())["topic_id"].unique()
    return set(sure), set(open_)


def _judged_counts(judged: pl.DataFrame, threshold: float) -> dict[str, Any]:
    above = judged.filter(pl.col("similarity") > pl.lit(threshold, pl.Float32))
    leaks, others = int((above["judged"] == True).sum()), int((above["judged"] == False).sum())  # noqa: E712
    return {
        "above": {"leaks": leaks, "not_leaks": others, "unjudged": len(above) - leaks - others},
        "precision_above": round(leaks / (leaks + others), 6) if leaks + others else None,
        "leaks_at_or_below": int((judged["judged"] == True).sum()) - leaks,  # noqa: E712
    }


def _silent(test: TopicSet, options: Options) -> int:
    spoken = {text.topic_id for text in topic_texts([test], options.fields)}
    return sum(topic.topic_id not in spoken for topic in test.topics)


def _recall(proposed: Proposed, texts: Sequence[TopicText], options: Options) -> PrefilterRecall | None:
    parts = [
        (found.filtered, found.pairs.filter(pl.col("similarity") > pl.lit(options.threshold, pl.Float32)))
        for found in proposed.found.values()
        if found.filtered is not None
    ]
    if not parts:
        return None
    recall = estimate_recall(parts)
    return PrefilterRecall(
        cuts={**DEFAULT_CUTS, **options.cuts},
        passed=sum(filtered.passed_count for filtered, _ in parts),
        sampled=recall.sampled,
        true_pairs=recall.true_pairs,
        missed_in_sample=recall.missed_in_sample,
        recall=recall.recall,
        low=recall.low,
        high=recall.high,
        unmodelled_low=recall.unmodelled_low,
        by=list(_recall_by_form(parts, [text.field for text in texts])),
    )


def _recall_by_form(parts: Sequence[tuple[Filtered, pl.DataFrame]], fields: Sequence[str]) -> Iterator[FormRecall]:
    """The recall by field, questions and keyword queries apart."""
    for field in dict.fromkeys(fields):
        own = pl.col("topic_no").is_in([number for number, name in enumerate(fields) if name == field])
        some = [
            (filtered.with_sample(filtered.sample_pairs.filter(own)), pairs.filter(own)) for filtered, pairs in parts
        ]
        for form, question in (("keywords", False), ("question", True)):
            found = estimate_recall(some, question=question)
            yield FormRecall(
                field=field,
                form=form,
                true_pairs=found.true_pairs,
                missed_in_sample=found.missed_in_sample,
                recall=found.recall if found.true_pairs else None,
                low=found.low,
                high=found.high,
            )


def _provenance(identity: Mapping[str, Any], proposed: Proposed, options: Options) -> dict[str, Any]:
    screens = {name: asdict(found.screen) for name, found in proposed.found.items() if found.screen is not None}
    judged = [{"source": spec} for spec in options.labels]
    return {**identity, "rows": proposed.counts, "first_pass_check": screens, "labels": judged, "seed": 0}


def _calibration(judgments: Judgments | None, options: Options) -> Calibration | None:
    """The precision curve of the labels, where they carry similarities."""
    if judgments is None or not any(pair.similarity is not None for pair in judgments.pairs):
        return None
    return calibrate(judgments, encoder=options.calibrated_for)
