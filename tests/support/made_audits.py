"""Audits that are made by hand, for what follows an audit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from truerank.audits.leakage.kinds import KindVerdict
from truerank.audits.leakage.results import CANDIDATE_SCHEMA, LEAKS, NEIGHBOUR_SCHEMA, AuditResult


def made_audit(
    rows: Sequence[Mapping[str, Any]],
    kinds: Sequence[KindVerdict],
    documents: int,
    sources: Mapping[str, Mapping[str, Any]],
    folder: Path | None = None,
) -> AuditResult:
    """An audit of the test set "reefs" with these leaks and verdicts."""
    topics = sorted({row["topic_id"] for row in rows if row["kind"] == "query-query"})
    about = {"topics": 30, "looked_for": 30, "noun": "topics", "verdict": "CONTAMINATED", "leaked_topics": topics}
    about |= {"document_kinds": [one.json() for one in kinds], "documents": {"read": documents, "relevant": 5}}
    about |= {"doubts": {"topics": 0, "queries": 0, "pairs": 0, "fields": {}}, "sensitivity": [], "other_topics": {}}
    about |= {"sentence": "", "settle": [], "notes": [], "fields": {}}
    summary: Any = {
        "threshold": 0.91, "floor": 0.91, "calibrated_for": "", "calibrated": False, "encoder": "words", "top_k": 0,
        "mode": "exhaustive", "sources": sources, "tests": {"reefs": about}, "cells": [], "prefilter": None,
    }  # fmt: skip
    leaks = pl.DataFrame([{"test": "reefs", **row} for row in rows], schema=LEAKS)
    candidates, neighbours = pl.DataFrame(schema=CANDIDATE_SCHEMA), pl.DataFrame(schema=NEIGHBOUR_SCHEMA)
    if folder is not None:
        folder.mkdir()
        (folder / "summary.json").write_text(json.dumps(summary))
        frames = {"leaks": leaks, "templates": leaks.clear(), "candidates": candidates, "neighbours": neighbours}
        for name, frame in frames.items():
            frame.write_parquet(folder / f"{name}.parquet")
    return AuditResult(summary, candidates, neighbours, folder, leaks=leaks)
