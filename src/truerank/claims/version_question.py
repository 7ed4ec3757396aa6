"""Do the judgments still fit the documents? A scan of both versions, and the claim on judgments that were carried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.audits.transfer.carrying import carry
from truerank.audits.transfer.cleaning import Removal
from truerank.audits.transfer.cleaning import clean as transfer_clean
from truerank.audits.transfer.matching.finding import MatchOptions, match
from truerank.audits.transfer.matching.links import Route
from truerank.audits.transfer.scanning.scan import scan
from truerank.claims.claim import Claim, Repair
from truerank.claims.data_questions import repaired_answer
from truerank.claims.inquiry import Inquiry
from truerank.claims.results import ClaimAnswer
from truerank.claims.steps import AuditSteps
from truerank.errors import OptionError
from truerank.measures.placebo import edits_between
from truerank.records import Document
from truerank.sources import open_documents, read_qrels_frame
from truerank.work.progress import Progress

_BEFORE, _NOW = "judged", "now"
#: The judgments of documents that are there, and those of them that the scan does not doubt.
_QRELS: Final = ("carried.qrels", "clean.qrels")
#: Documents that are looked at to see whether versions are matched by URL.
_LOOKED_AT: Final = 100


def versions_answer(given: Inquiry, claim: Claim, steps: AuditSteps) -> ClaimAnswer:
    """(g) The judgments carried to the new documents: without lost ones, and without those that the scan doubts."""
    sources = given.sources
    depends = {
        "previous": steps.inputs("previous", [sources.previous]), "docs": steps.inputs("docs", [sources.docs]),
        "qrels": steps.inputs("qrels", [sources.qrels]), "topics": steps.inputs("topics", [sources.test]),
        "rel": given.scoring.rel,
    }  # fmt: skip

    qrels: list[pl.DataFrame | None] = []

    def run(folder: Path | None, told: Progress) -> dict[str, Any]:
        """Scans, carries and cleans; `qrels` keeps both judgments for a check without a folder."""
        versions = {_BEFORE: str(sources.previous), _NOW: str(sources.docs)}
        by = "url" if _has_urls(str(sources.previous)) else "id"
        rel, matching = given.scoring.rel, MatchOptions(match_by="url" if by == "url" else "id")
        # A scan that is kept matches the versions by itself, while it reads them, and writes what it found.
        links = match(versions, sources.qrels, matching=matching, progress=told) if folder is None else None
        found = scan(
            versions, sources.qrels, str(sources.test), model="bm25", rel=rel, matched=links, matching=matching,
            out=folder, progress=told,
        )  # fmt: skip
        files = (None, None) if folder is None else tuple(folder / name for name in _QRELS)
        route = Route(matched=links if folder is None else folder / "matched", to=_NOW)
        carried = carry(sources.qrels, route=route, rel=rel, out=files[0])
        kept: Any = carried.qrels if files[0] is None else str(files[0])
        cleaned = transfer_clean(
            kept, scan=found, version_name=_NOW, removal=Removal(ids="version"), rel=rel, out=files[1]
        )  # fmt: skip
        qrels.extend((carried.qrels, cleaned.qrels))
        return {
            "compared": found.summary["compared"], "lost": carried.lost, "ambiguous": carried.ambiguous,
            "flagged": sum(cleaned.removed.values()), "reasons": dict(cleaned.removed), "by": by,
        }  # fmt: skip

    try:
        found = steps.once("versions", depends, run)
    except OptionError as error:
        # The other questions have an answer even where BM25 cannot tell the judged documents from others.
        if error.option != "model":
            raise
        why = f"BM25 cannot compare the versions: {error.fault}."
        told = "Run `transfer scan` with another `model`, and give its judgments as `qrels`."
        return ClaimAnswer("versions", "UNKNOWN", why, "unknown", "", settles=told)
    if (folder := steps.place("versions")) is not None:
        qrels = [read_qrels_frame(str(folder / name)) for name in _QRELS]
    carried, clean = (frame for frame in qrels if frame is not None)
    word = "CHANGED" if found["lost"] + found["ambiguous"] + found["flagged"] else "UNCHANGED"
    evidence = (
        f"Of {found['compared']:,d} judged documents in both versions, {found['flagged']:,d} relevant ones may have "
        f"lost what answered (BM25 and texts); {found['lost']:,d} judgments are of documents that are gone."
    )
    settles = "Let people judge the doubtful documents (items.jsonl of the scan)." if found["flagged"] else ""
    told = "The judgments fit the documents: the difference stays as it is."
    answer = ClaimAnswer(
        "versions", word, evidence, claim.base.effect, told, (), settles, "versions", facts=found
    )  # fmt: skip
    edits = edits_between(claim.qrels, carried)
    if len(edits):
        repair = Repair(f"without the {len(edits):,d} judgments of documents that are gone", edits=edits)
        answer = repaired_answer(claim, answer, repair, given.resampling, "no judged document is left")
    return _with_doubtful(claim, answer, clean)


def _with_doubtful(claim: Claim, answer: ClaimAnswer, clean: pl.DataFrame) -> ClaimAnswer:
    """The answer with the claim without doubtful documents: they are no errors yet, and can only leave it open."""
    if not answer.facts["flagged"]:
        return answer
    row = claim.estimate(claim.differences(claim.scored(clean)), "without doubtful documents")
    possible = (
        f"{answer.facts['flagged']:,d} judged documents may have lost what answered; without them the difference is "
        f"{row.figures()}."
    )
    turns = (row.effect == "stands") != (claim.base.effect == "stands") and row.effect != "unknown"
    return replace(
        answer, estimates=(*answer.estimates, row), possible=possible, plausible=turns,
        exception="without the documents that may have changed" if turns else "",
    )  # fmt: skip


def _has_urls(source: str) -> bool:
    """Whether the first documents have URLs."""
    documents: Iterable[Document] = (
        one for block in open_documents(source, keep_empty=True).batches() for one in block
    )
    return all(one.url for one in islice(documents, _LOOKED_AT))
