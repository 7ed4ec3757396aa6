"""Everything that a check reads once: judgments, runs and teams, and where the other inputs are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from truerank.claims.options import ClaimSources
from truerank.errors import InputError, OptionError
from truerank.judging.ratings import named_source
from truerank.measures.scoring import named_runs
from truerank.sources import beir, grammar, irds, open_documents, open_queries
from truerank.sources.notebook import frame_of
from truerank.sources.runs import RUN_SCHEMA, read_run_frame


@dataclass(frozen=True, eq=False)
class ClaimMaterial:
    """What was read.

    Attributes:
        sources: what was given, with what the test set brings.
        qrels: the judgments; None where there are none.
        runs: by name.
        teams: by run, where the metadata say it.
        models: judgments of models by name: sources, or values of a program.
        test: the name of the test set.
    """

    sources: ClaimSources
    qrels: pl.DataFrame | None
    runs: Mapping[str, pl.DataFrame]
    teams: Mapping[str, str]
    models: Mapping[str, Any]
    test: str


def completed(sources: ClaimSources) -> ClaimSources:
    """The sources with the judgments and documents that the test set brings."""
    if sources.test is None:
        return sources
    spec = grammar.parse(sources.test)
    found: dict[str, Any] = {}
    if spec.scheme == "irds":
        if sources.qrels is None and _has_qrels(spec.location):
            found["qrels"] = sources.test
    elif spec.path.is_dir():
        if sources.qrels is None and beir.qrels_file(spec.path) is not None:
            found["qrels"] = sources.test
        if sources.docs is None and beir.corpus_file(spec.path, missing_ok=True) is not None:
            found["docs"] = sources.test
    return replace(sources, **found)


def _has_qrels(dataset: str) -> bool:
    irds.check(dataset)
    try:
        irds.check(dataset, "qrels")
    except InputError:
        return False
    return True


def read_material(sources: ClaimSources) -> ClaimMaterial:
    """Reads judgments, runs and teams."""
    # Imported here, as in `check`.
    from truerank.audits.collection.judgments import read_judgments, usable
    from truerank.audits.track.inputs import RowFilter, read_metadata

    if not any(map(sources.has, ("test", "qrels", "run", "docs"))):
        raise OptionError("test", "nothing to check", "give `test`, `qrels` or `docs`, and `run` for a claim")
    _look_at(sources)
    if sources.has("run") and not sources.has("qrels"):
        raise OptionError("qrels", "runs need judgments", "give the judgments, or a test set that brings them")
    runs = {}
    for name, one in (named_runs(sources.run) if sources.has("run") else {}).items():
        frame = read_run_frame(one) if isinstance(one, str | Path) else frame_of(one, RUN_SCHEMA, "score")
        if "rank" not in frame.columns:
            ranks = pl.col("score").rank("ordinal", descending=True).over("topic_id")
            frame = frame.with_columns(ranks.cast(pl.Int64).alias("rank"))
        runs[name] = frame.select("topic_id", "doc_id", "rank", "score")
    teams = {}
    if sources.metadata is not None:
        known = read_metadata([sources.metadata], RowFilter({})).runs
        teams = {name: info.group for name, info in known.items() if info.group}
    # With their faults, as most programs read them: the audit of the collection says what is wrong with them.
    qrels = usable(read_judgments(sources.qrels)) if sources.has("qrels") else None
    named = sources.test or (sources.qrels if isinstance(sources.qrels, str) else None) or sources.docs or "the data"
    return ClaimMaterial(
        sources, qrels, runs, teams, _models(sources.model_judgments), grammar.parse(str(named)).name
    )  # fmt: skip


def _look_at(sources: ClaimSources) -> None:
    """Opens what the audits will read, so that a source that is not there is told before any work."""
    for each in (sources.test, *sources.train):
        if each is not None:
            open_queries(each)
    for each in (sources.docs, sources.previous):
        if each is not None:
            open_documents(each)


def _models(given: Any) -> dict[str, Any]:
    """Judgments of models by name."""
    if isinstance(given, Mapping):
        return {str(name): one for name, one in given.items()}
    found: dict[str, Any] = {}
    for one in [given] if isinstance(given, str | Path) else given:
        name, spec = named_source(str(one))
        name = name or spec.name
        if name in found:
            raise OptionError("model_judgments", f"two models are called {name}", "give them as NAME=SRC")
        found[name] = spec.spec
    return found
