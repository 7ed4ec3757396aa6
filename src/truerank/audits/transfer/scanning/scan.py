"""Scan: every version of every judged document scored for its query, and where the scores fall apart."""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import numpy as np
import polars as pl

from truerank.audits.transfer.matching.matches import MatchOptions, Texts, matched_into
from truerank.audits.transfer.matching.versions import (
    Matched,
    Version,
    VersionSources,
    load_matched,
    matched_input,
    read_versions,
    version_inputs,
)
from truerank.audits.transfer.scanning.differences import Setting, compare_versions
from truerank.audits.transfer.scanning.options import Samples, ScanOptions, ScanPlan, ScanScoring
from truerank.audits.transfer.scanning.results import Scan
from truerank.audits.transfer.scanning.scores import RowScoring, id_column, score_rows
from truerank.errors import InputError, OptionError
from truerank.lexical import analyser_of, kept_index
from truerank.lexical.searching import topic_queries
from truerank.options import Flag, Out, Range, Runtime, Source, command
from truerank.rankers.base import RankerSpec, default_model, placed, spec_of
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Input
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.runs import read_run_frame
from truerank.text.normalising import normalise
from truerank.text.passages import policy_named
from truerank.text.urls import UrlRules
from truerank.work.artifacts import digest
from truerank.work.engines import open_engine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import Run, plain
from truerank.work.runs import run as started

_RUNTIME: Final = Runtime()
_NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})
#: Documents of a first stage that calibrate, for each topic.
_FIRST_STAGE_DEPTH: Final = 100
_LARGE: Final = "castorini/monot5-3b-msmarco"
_PACKAGES: Final = ("scipy", "torch", "transformers", "PyStemmer")


def default_ranker(runtime: Runtime = _RUNTIME, settings: Mapping[str, str] = _NO_SETTINGS) -> RankerSpec:
    """monoT5: the 3B model of the paper where there is a GPU, else the base one.

    Args:
        runtime: what runs it.
        settings: of the kind, as texts.
    """
    checkpoint = default_model("monot5")
    if runtime.device != "cpu" and importlib.util.find_spec("torch") is not None:
        import torch

        checkpoint = _LARGE if torch.cuda.is_available() else checkpoint
    return spec_of(f"monot5:{checkpoint}", runtime, settings)


@command
def scan(
    version: VersionSources,
    qrels: Source,
    topics: Source,
    *,
    model: Annotated[RankerSpec | str | None, Flag(metavar="NAME|DIR", reads=str)] = None,
    set_: Annotated[Mapping[str, Any], Flag(metavar="NAME=VALUE")] = _NO_SETTINGS,
    rel: Annotated[int, Range(at_least=1)] = 1,
    field: str = "title",
    matched: Annotated[Matched | str | Path | None, Flag(metavar="DIR", reads=Path)] = None,
    scoring: ScanScoring = ScanScoring(),
    options: ScanOptions = ScanOptions(),
    samples: Samples = Samples(),
    matching: MatchOptions = MatchOptions(),
    urls: UrlRules = UrlRules(),
    runtime: Runtime = Runtime(),
    out: Out = None,
    progress: Progress | None = None,
) -> Scan:
    """Finds judged documents that answer the topic in one version and not in another.

    Documents are cut into passages; a document scores like its first passage (FirstP) and like its best one (MaxP).
    Candidates are versions that score far lower, or lack the text that answered the query.
    They get a class of reasons from the two texts: error page, repeated text, redirect, truncated, content
    missing, content changed, boilerplate only, empty. A run that was killed continues when it is started again.

    Args:
        version: a version of the collection: a path, irds:ID or hf:ORG/NAME; the judged one first. In Python also a
            mapping of names to sources.
        qrels: the judgments.
        topics: a path, irds:ID or hf:ORG/NAME.
        model: as for `rerank`; bm25 alone takes the judged version's statistics; by default monoT5, 3B with a GPU.
        set_: a setting of the model's kind.
        rel: only judgments with at least this grade are looked at.
        field: of the topics: title, description, narrative, or several joined by +.
        matched: the folder that `transfer match` wrote; by default the versions are matched into OUT/matched. In
            Python also what it returned.
        scoring: how documents are scored.
        options: what makes a candidate.
        samples: what is drawn.
        matching: without `matched`: how a document is found again.
        urls: without `matched`: which differences between URLs count.
        runtime: what runs the model.
        out: a folder for scores, candidates, data sets, figures and report.
        progress: receives progress updates.

    Returns:
        Scores, candidates and data sets.

    Raises:
        InputError: a source or an option is at fault, or nothing is left to compare.
        MissingExtraError: what runs the ranker is not installed.

    Examples:

        truerank transfer scan --version V1=docs-2018.tsv.gz --version V2=docs-2021.jsonl.gz --qrels train.qrels
        --topics queries.tsv --out scan/

        truerank transfer scan --version old=old.jsonl --version new=new.jsonl --qrels qrels.txt --topics topics.trec
        --model bm25 --percentile 95 --out scan/

        truerank transfer scan --version old=old.jsonl --version new=new.jsonl --qrels qrels.txt --topics topics.trec
        --model bm25 --with ance:packaged --split sliding:60:30 --out scan/

    Source: the transfer paper, sections 3 and 4.
    """
    opened = read_versions(version, strict=matching.strict)
    rankers = (_first(model, runtime, set_), *(_further(one, runtime) for one in scoring.with_))
    plan = ScanPlan(rankers, scoring.split, rel, field, options, samples)
    # Faults of options show before anything is read.
    options.pairs(tuple(one.name for one in opened))
    how = {
        "split": scoring.split, "rel": rel, "field": field, "block_size": scoring.block_size, "options": options,
        "samples": samples, "matching": matching, "urls": urls,
    }  # fmt: skip
    links = load_matched(matched) if isinstance(matched, str | Path) else matched
    inputs = (
        *version_inputs(opened),
        *matched_input(links),
        *inputs_of(qrels=qrels, topics=topics, first_stage=samples.first_stage, mapping=matching.mapping),
    )
    with (
        tempfile.TemporaryDirectory(prefix="truerank-") if out is None else nullcontext(out) as place,
        started("transfer scan", inputs, how, place, packages=_PACKAGES) as job,
    ):
        # Scores do not depend on what makes a candidate.
        scored = {name: value for name, value in how.items() if name != "options"}
        folder = job.unfinished(digest({"inputs": [one._asdict() for one in inputs], **plain(scored)}))
        progress = progress or Quiet()
        texts: Texts | None = None
        if links is None:
            # The texts of judged documents are kept while versions are matched.
            judged = read_qrels_frame(qrels).filter(pl.col("relevance") >= rel)["doc_id"]
            texts = Texts(folder, frozenset(judged), but_first=samples.first_stage is not None)
            links = matched_into(job.folder / "matched", (opened, qrels), (matching, urls), progress, texts)
        work = _Work(opened, (qrels, topics), plan, job, folder, progress)
        found = work.compared(links, texts, scoring)
        found = replace(found, links=links if out is not None else replace(links, folder=None))
        if out is not None:
            found = replace(found, folder=job.folder)
            publish(found, job)
            job.log("end")
    return replace(found, texts={})


def _first(model: RankerSpec | str | None, runtime: Runtime, settings: Mapping[str, Any]) -> RankerSpec:
    if isinstance(model, RankerSpec):
        return model
    return default_ranker(runtime, settings) if model is None else spec_of(model, runtime, settings)


def _further(given: RankerSpec | str, runtime: Runtime) -> RankerSpec:
    """A further ranker from its name and settings; in full precision, on the same device."""
    if isinstance(given, RankerSpec):
        return given
    name, *settings = given.split(",")
    pairs = dict(one.partition("=")[::2] for one in settings)
    if not (name and all(pairs) and all(pairs.values())):
        raise OptionError("with_", f"'{given}' is not of the form NAME,SETTING=VALUE", "write NAME,SETTING=VALUE")
    return spec_of(name, Runtime(runtime.device, threads=runtime.threads), pairs)


@dataclass(frozen=True)
class _Work:
    """A scan: versions, judgments and topics, choices, and the run."""

    versions: tuple[Version, ...]
    sources: tuple[str, str]
    plan: ScanPlan
    job: Run
    folder: Path
    progress: Progress

    def compared(self, links: Matched, kept: Texts | None, scoring: ScanScoring) -> Scan:
        """Scores the versions of the judged documents and compares them."""
        names = tuple(version.name for version in self.versions)
        if links.versions != names:
            fault = f"the versions were matched as {', '.join(links.versions)}, not {', '.join(names)}"
            raise OptionError("matched", fault, "give the same versions in the same order")
        plan, (qrels, topics), job = self.plan, self.sources, self.job
        engine = open_engine(scoring.engine)
        cache = None if scoring.cache is None else str(scoring.cache)
        rows, skipped = _judged_rows(qrels, topics, links, plan)
        rows = pl.concat([rows, _other_documents(rows, qrels, plan, names[0])])
        # What is scored depends on how versions were matched and on whether documents calibrate.
        folder = self.folder / _content(rows)[:16]
        texts = self._collected(rows, folder, kept)
        job.log("start", work=self.folder.name, engine=scoring.engine)
        indexed = [_with_index(spec, self.versions[0], folder, self.progress) for spec in plan.rankers]
        rankers = tuple(spec.open() for spec in indexed)
        found = []
        for spec, ranker, named in zip(indexed, rankers, plan.rankers, strict=True):
            opened = ranker if engine.in_process else placed(spec, ranker)
            scores = RowScoring(opened, texts, policy_named(plan.split), cache)
            blocks = Job(folder / ranker.fingerprint[:16], engine, self.progress)
            found.append(score_rows(rows, scores, blocks, scoring.block_size))
            # Pairs that were asked for, and those of them that the cache knew.
            counted = found[-1].unique("block")
            job.log("scored", ranker=ranker.name, **{name: int(counted[name].sum()) for name in ("asked", "hits")})
            job.read(Input(ranker.name, named.name, "model", None, ranker.fingerprint))
        models = [{"precision": spec.runtime.precision, "settings": dict(spec.settings)} for spec in indexed]
        job.options |= {"models": models}
        pairs = plan.options.pairs(names)
        sources = tuple(version.source.spec.spec for version in self.versions)
        setting = Setting(names, pairs, texts, plan, rankers, sources)
        return replace(compare_versions(found, rows, skipped, setting), texts=texts)

    def _collected(self, rows: pl.DataFrame, folder: Path, kept: Texts | None) -> dict[str, Path]:
        """The texts of each version: those that were kept while it was matched, or else read now."""
        texts: dict[str, Path] = {}
        for number, version in enumerate(self.versions):
            path = None if kept is None else kept.path(number)
            texts[version.name] = path or folder / f"texts-{number}.sqlite"
            wanted = frozenset(rows[id_column(version.name)].drop_nulls().unique().to_list())
            DocumentTexts.collect(texts[version.name], version.source.spec.spec, wanted, self.progress)
        return texts


def _judged_rows(qrels: str, topics: str, links: Matched, plan: ScanPlan) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The judged documents to score, and those that are left out, with a reason."""
    judged = read_qrels_frame(qrels).filter(pl.col("relevance") >= plan.rel)
    if judged.is_empty():
        raise InputError(f"no judgment of grade {plan.rel} or more", "lower `rel`", where=qrels)
    asked = [query for query in topic_queries(topics, plan.field) if normalise(query.text)]
    schema = {"topic_id": pl.String, "query": pl.String}
    queries = pl.DataFrame([(query.topic_id, query.text) for query in asked], schema=schema, orient="row")
    queries = queries.unique("topic_id", keep="first", maintain_order=True)
    ids = links.frame.select("doc_id", *(pl.col(name).alias(id_column(name)) for name in links.versions))
    joined = judged.join(queries, on="topic_id", how="left", maintain_order="left").join(
        ids, on="doc_id", how="left", maintain_order="left"
    )
    there = pl.sum_horizontal(pl.col(id_column(name)).is_not_null().cast(pl.Int32) for name in links.versions)
    no_query = pl.when(pl.col("query").is_null()).then(pl.lit(f"the topic has no {plan.field}"))
    nowhere = no_query.when(there == 0).then(pl.lit("in no version"))
    joined = joined.with_columns(nowhere.when(there == 1).then(pl.lit("in one version only")).alias("why"))
    rows = joined.filter(pl.col("why").is_null()).drop("why").with_row_index("row")
    if rows.is_empty():
        counted = "; ".join(f"{count:,d} {why}" for why, count in joined["why"].value_counts(sort=True).iter_rows())
        raise InputError(
            f"no judged document can be compared ({counted})", "check how versions are matched", where=qrels
        )
    skipped = joined.drop_nulls("why").select("topic_id", "doc_id", pl.col("why").alias("reason"))
    return rows.with_columns(pl.lit(False).alias("sampled")), skipped


def _other_documents(rows: pl.DataFrame, qrels: str, plan: ScanPlan, judged: str) -> pl.DataFrame:
    """Documents that are not judged relevant to the topic, for the curve; none where no curve is fitted."""
    empty = rows.clear()
    if plan.fits_curve == "no":
        return empty
    draw = np.random.default_rng(plan.samples.seed)
    relevant = read_qrels_frame(qrels).filter(pl.col("relevance") >= plan.rel).select("topic_id", "doc_id")
    asked = rows.unique("topic_id", maintain_order=True).select("topic_id", "query")
    if plan.samples.first_stage is not None:
        run = read_run_frame(plan.samples.first_stage).sort(
            "topic_id", "score", "doc_id", descending=[False, True, False]
        )
        run = run.group_by("topic_id", maintain_order=True).head(_FIRST_STAGE_DEPTH)
        pool = run.select("topic_id", "doc_id").join(asked, on="topic_id", how="inner", maintain_order="left")
        pool = pool.with_columns(pl.col("doc_id").alias(id_column(judged)))
    else:
        ids = rows.drop_nulls(id_column(judged)).unique("doc_id", maintain_order=True)
        if ids.is_empty():
            return empty
        topics, other = (
            frame.sample(2 * plan.samples.sampled, with_replacement=True, seed=int(draw.integers(1 << 31)))
            for frame in (rows.select("topic_id", "query"), ids.select("doc_id", id_column(judged)))
        )
        pool = pl.concat([topics, other], how="horizontal").unique(["topic_id", "doc_id"], maintain_order=True)
    pool = pool.join(relevant, on=["topic_id", "doc_id"], how="anti", maintain_order="left")
    if len(pool) > plan.samples.sampled:
        pool = pool[np.sort(draw.permutation(len(pool))[: plan.samples.sampled])]
    pool = pool.with_row_index("row", offset=len(rows)).with_columns(
        pl.lit(True).alias("sampled"), pl.lit(0, pl.Int32).alias("relevance")
    )
    return pl.concat([empty, pool], how="diagonal").select(rows.columns)


def _with_index(spec: RankerSpec, judged: Version, folder: Path, progress: Progress) -> RankerSpec:
    """BM25 without an index takes its statistics from the judged version."""
    if spec.name != "bm25":
        return spec
    index = folder / "index"
    preset = str(dict(spec.settings).get("preset", "anserini"))
    kept_index(judged.source.spec.spec, index, analyser_of(preset), progress)
    return replace(spec, name=f"bm25:{index}")


def _content(rows: pl.DataFrame) -> str:
    found = hashlib.sha256()
    for part in rows.iter_slices(1 << 16):
        found.update(part.write_csv().encode("utf-8", "surrogatepass"))
    return found.hexdigest()
