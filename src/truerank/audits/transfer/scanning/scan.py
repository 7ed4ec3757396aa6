"""Scan: every version of every judged document scored for its query, and where the scores fall apart."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from truerank.audits.transfer.matching.finding import match_versions
from truerank.audits.transfer.matching.versions import Matched, Version, load_matched, read_versions
from truerank.audits.transfer.provenance import file_record, provenance
from truerank.audits.transfer.scanning.comparing import Setting, compare_versions
from truerank.audits.transfer.scanning.judging_items import write_items
from truerank.audits.transfer.scanning.options import ScanOptions
from truerank.audits.transfer.scanning.report import figures, render
from truerank.audits.transfer.scanning.results import Scan
from truerank.audits.transfer.scanning.rows import judged_rows, other_documents
from truerank.audits.transfer.scanning.scoring import Scoring, id_column, sample_pairs, score_rows
from truerank.errors import InputError
from truerank.lexical import analyser_of, build_index
from truerank.rankers.base import Ranker, RankerSpec, Runtime, spec_of
from truerank.rankers.kinds import default_model
from truerank.rankers.reranking.agreement import agreement, calibrated
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.reports.figures import page_svg
from truerank.reports.pages import Drawing
from truerank.sources import grammar
from truerank.text.passages import policy_named
from truerank.work.artifacts import Artifacts, digest, installed_versions
from truerank.work.engines import open_engine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import write_pictures

__all__ = ["default_ranker", "scan_versions"]

_DEFAULT: Final = ScanOptions()
_RUNTIME: Final = Runtime()
_NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})
_LARGE: Final = "castorini/monot5-3b-msmarco"
_PACKAGES: Final = ("truerank", "numpy", "scipy", "polars", "torch", "transformers", "openvino", "PyStemmer")


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


def scan_versions(
    versions: Mapping[str, str] | Sequence[str],
    qrels: str,
    topics: str,
    out: str | Path,
    options: ScanOptions = _DEFAULT,
    *,
    matched: str | Path | Matched | None = None,
    progress: Progress | None = None,
) -> Scan:
    """Finds judged documents that are, it seems, no longer relevant in one of their versions.

    Args:
        versions: sources of documents by name, or `NAME=SRC` each; the first is the one that was judged.
        qrels: the judgments.
        topics: the topics, see `sources.read_topics`.
        out: the folder for scores, candidates, data sets, figures, report and manifest; a run that was killed
            continues from there.
        options: how to look.
        matched: the folder that `match_versions` wrote, or what it returned; None matches into `out`/matched.
        progress: is told what happens.

    Returns:
        Scores, candidates and data sets.

    Raises:
        InputError: a source or an option is at fault, or nothing is left to compare.
        MissingExtraError: what runs the ranker is not installed.

    Source: the transfer paper, sections 3 and 4.
    """
    told = progress or Quiet()
    opened = read_versions(versions, strict=options.match.strict)
    names = tuple(version.name for version in opened)
    pairs = _pairs(names, options)
    artifacts = Artifacts(out)
    engine = open_engine(options.engine)
    if not isinstance(matched, Matched):
        matched = _matched(versions, qrels, artifacts, options, told) if matched is None else load_matched(matched)
    links = matched
    if links.versions != names:
        fault = f"the versions were matched as {', '.join(links.versions)}, not {', '.join(names)}"
        raise InputError(fault, "give the same versions in the same order", where="--matched")
    rows, skipped = judged_rows(qrels, topics, links, options)
    rows = pl.concat([rows, other_documents(rows, qrels, options, names[0])])
    identity = {**_inputs(opened, qrels, topics, links, options), "rows": _content(rows)}
    folder = artifacts.work / f"scan-{digest(identity)[:16]}"
    texts = _collect(opened, rows, folder, told)
    artifacts.log("start", work=folder.name, engine=options.engine)
    specs = [_with_index(spec, opened[0], folder, told) for spec in (options.ranker or default_ranker(), *options.also)]
    prepared = [_prepared(spec, rows, texts, options) for spec in specs]
    found = []
    for one in prepared:
        scoring = Scoring(one.opened if engine.in_process else one.spec, texts, one.policy, options.cache)
        job = Job(folder / one.opened.fingerprint[:16], engine, told)
        found.append(score_rows(rows, scoring, job, options.block_size))
        artifacts.log("scored", ranker=one.opened.name, **_counts(found[-1]))
    agreed = tuple(one.agreed for one in prepared)
    setting = Setting(names, pairs, texts, options, tuple(one.opened for one in prepared), agreed)
    scan = compare_versions(found, rows, skipped, setting)
    about = {
        **identity,
        "rankers": [_ranker_record(one) for one in prepared],
        "options": _options_record(options, pairs),
    }
    scan = _publish(scan, artifacts, about, options, texts)
    shutil.rmtree(folder, ignore_errors=True)
    artifacts.tidy()
    artifacts.log("end")
    return scan


@dataclass(frozen=True)
class _Prepared:
    """The ranker, how it was opened, and how documents are cut for it."""

    spec: RankerSpec
    opened: Ranker
    policy: Any
    agreed: Mapping[str, float]


def _pairs(names: tuple[str, ...], options: ScanOptions) -> tuple[tuple[str, str], ...]:
    for name in (
        *(name for pair in options.pairs for name in pair),
        *(n for some in options.best.values() for n in some),
    ):
        if name not in names:
            raise InputError(f"no version '{name}'", f"there are {', '.join(names)}", where="--pair")
    for first, second in options.pairs:
        if first == second:
            raise InputError(f"'{first}' is compared with itself", "name two versions", where="--pair")
    for name in options.best:
        if name in names:
            raise InputError(f"'{name}' is a version's name", "choose another", where="--best")
    every = ((a, b) for place, a in enumerate(names) for b in names[place + 1 :])
    return options.pairs or tuple(every)


def _matched(
    versions: Mapping[str, str] | Sequence[str], qrels: str, artifacts: Artifacts, options: ScanOptions, told: Progress
) -> Matched:
    return match_versions(versions, qrels, artifacts.folder / "matched", options.match, progress=told)


def _inputs(
    versions: tuple[Version, ...], qrels: str, topics: str, links: Matched, options: ScanOptions
) -> dict[str, Any]:
    """What the scores depend on, for the folder of unfinished work and for the manifest."""
    return {
        "versions": [
            {"name": one.name, "source": one.source.spec.spec, "hash": one.source.fingerprint} for one in versions
        ],
        "qrels": file_record(qrels),
        "topics": {"name": grammar.parse(topics).name, "source": topics},
        "matched": {"by": links.by, "documents": len(links.frame), "complete": len(links.complete())},
        "scoring": options.identity(),
    }


def _collect(versions: tuple[Version, ...], rows: pl.DataFrame, folder: Path, told: Progress) -> dict[str, Path]:
    texts: dict[str, Path] = {}
    for number, version in enumerate(versions):
        wanted = frozenset(rows[id_column(version.name)].drop_nulls().unique().to_list())
        texts[version.name] = folder / f"texts-{number}.sqlite"
        DocumentTexts.collect(texts[version.name], version.source.spec.spec, wanted, told)
    return texts


def _with_index(spec: RankerSpec, judged: Version, folder: Path, told: Progress) -> RankerSpec:
    """BM25 without an index takes its statistics from the judged version."""
    if spec.name != "bm25":
        return spec
    index = folder / "index"
    if not index.is_dir():
        preset = str(dict(spec.settings).get("preset", "anserini"))
        build_index(judged.source.spec.spec, index, analyser=analyser_of(preset), progress=told)
    return replace(spec, name=f"bm25:{index}")


def _prepared(spec: RankerSpec, rows: pl.DataFrame, texts: Mapping[str, Path], options: ScanOptions) -> _Prepared:
    policy = policy_named(options.policy)
    sample = partial(sample_pairs, rows, Scoring(spec, texts, policy, None))
    spec = calibrated(spec, sample)
    opened = spec.open()
    return _Prepared(spec, opened, policy, agreement(spec, opened, sample))


def _publish(
    scan: Scan, artifacts: Artifacts, about: Mapping[str, Any], options: ScanOptions, texts: Mapping[str, Path]
) -> Scan:
    artifacts.parquet("scores.parquet", scan.scores)
    artifacts.parquet("candidates.parquet", scan.candidates)
    artifacts.parquet("sets.parquet", scan.sets)
    artifacts.parquet("skipped.parquet", scan.skipped)
    judged = scan.scores.unique("row", keep="first", maintain_order=True).select("topic_id", "doc_id", "relevance")
    for name in scan.set_names:
        inside = scan.sets.filter(pl.col("set") == name).join(judged, on=["topic_id", "doc_id"], maintain_order="left")
        lines = inside.select("topic_id", pl.lit("0").alias("iteration"), "doc_id", "relevance")
        artifacts.text(
            f"sets/{file_name(name)}.qrels", lines.write_csv(separator=" ", include_header=False, quote_style="never")
        )
    write_items(artifacts, scan, texts, options.items, options.seed)
    content = provenance("scan", **about, packages=installed_versions(*_PACKAGES))
    artifacts.json("summary.json", scan.summary)
    pictures = tuple(figures(scan, options.best))
    svgs = write_pictures(artifacts, pictures, folder="")
    drawings = [Drawing(page_svg(svgs[one.name]), one.caption) for one in pictures]
    artifacts.text("report.html", render(scan, drawings, texts, content))
    artifacts.manifest(content)
    return replace(scan, folder=artifacts.folder)


def file_name(name: str) -> str:
    """A data set's name as a file's: "V1-over-V2.MaxP"."""
    plain = name.replace(">>", "-over-").replace(" ", ".")
    return "".join(sign if sign.isalnum() or sign in "-._" else "_" for sign in plain)


def _ranker_record(prepared: _Prepared) -> dict[str, Any]:
    runtime = prepared.spec.runtime
    return {
        "name": prepared.opened.name,
        "fingerprint": prepared.opened.fingerprint,
        "precision": runtime.precision,
        "backend": runtime.backend,
        "settings": dict(prepared.spec.settings),
    }


def _options_record(options: ScanOptions, pairs: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return {
        "probability": options.probability,
        "given": options.given,
        "cut_off": options.cut_off,
        "floor": options.floor,
        "evidence": options.evidence,
        "percentile": options.percentile,
        "pairs": [list(pair) for pair in pairs],
        "best": {name: list(some) for name, some in options.best.items()},
        "first_stage": None if options.first_stage is None else file_record(options.first_stage),
        "sampled": options.sampled,
        "items": options.items,
        "seed": options.seed,
    }


def _counts(found: pl.DataFrame) -> dict[str, int]:
    """Pairs that were asked for, and those of them that the cache knew."""
    blocks = found.unique("block")
    return {name: int(blocks[name].sum()) for name in ("asked", "hits")}


def _content(rows: pl.DataFrame) -> str:
    found = hashlib.sha256()
    for part in rows.iter_slices(1 << 16):
        found.update(part.write_csv().encode("utf-8", "surrogatepass"))
    return f"sha256:{found.hexdigest()}"
