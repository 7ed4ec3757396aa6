"""What the audit of training examples found, as immutable values, and the folder that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import polars as pl

from truerank.audits.leakage.results import KindFound, OtherTopics, VerdictWord
from truerank.audits.leakage.training_examples.kinds import KINDS
from truerank.loading import json_file
from truerank.records import Input
from truerank.reports.results import Result
from truerank.work.artifacts import hash_file, read_table, written_by

#: `leaks.parquet`: one row for each pair of texts and kind of leak. `examples` counts the training examples of the
#: source that hold the text in this role, `example_id` is the first of them. A row of the kind "pair" has the query in
#: `test_text` and `training_text`, and the answer in `document_text` and `training_document`; its evidence is that of
#: the queries, `document_evidence` that of the answer. The columns of evidence are those of `overlaps.OVERLAPS`, whose
#: package is not imported here: `leakage clean` does not compare.
LEAKS: Final[dict[str, Any]] = {
    "kind": pl.String,
    "topic_id": pl.String,
    "field": pl.String,
    "doc_id": pl.String,
    "test_text": pl.String,
    "source": pl.String,
    "role": pl.String,
    "example_id": pl.String,
    "examples": pl.Int64,
    "training_text": pl.String,
    "exact": pl.Boolean,
    "ngram_test": pl.Float64,
    "ngram_training": pl.Float64,
    "jaccard": pl.Float64,
    "containment": pl.Float64,
    "wording": pl.String,
    "cosine": pl.Float64,
    "test_words": pl.Int64,
    "training_words": pl.Int64,
    "evidence": pl.String,
    "document_text": pl.String,
    "training_document": pl.String,
    "document_evidence": pl.String,
}


@dataclass(frozen=True)
class KindVerdict:
    """What was found of one kind of leak.

    Attributes:
        kind: its name, as in `kinds.KINDS`.
        verdict: CONTAMINATED, CLEAN or UNKNOWN.
        why: the reason, with its figures.
        evidence: what it rests on.
        settle: what would settle or change it.
        leaked: how many queries or documents leak.
        of: how many were looked for.
        low, high: the 95% interval of their share, were they a sample.
        topics: how many topics they belong to; None where no judgment tells.
        pairs: rows of `leaks.parquet`.
        examples: training texts, counted once for each example that holds them.
        sensitivity: what was found of planted changes.
    """

    kind: str
    verdict: VerdictWord
    why: str
    evidence: tuple[str, ...] = ()
    settle: tuple[str, ...] = ()
    leaked: int = 0
    of: int = 0
    low: float = 0.0
    high: float = 1.0
    topics: int | None = None
    pairs: int = 0
    examples: int = 0
    sensitivity: tuple[KindFound, ...] = ()

    def json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        share = round(self.leaked / self.of, 6) if self.of else None
        return {
            "verdict": self.verdict,
            "why": self.why,
            "evidence": list(self.evidence),
            "settle": list(self.settle),
            "leaked": self.leaked,
            "of": self.of,
            "share": share,
            "low": round(self.low, 6),
            "high": round(self.high, 6),
            "topics": self.topics,
            "pairs": self.pairs,
            "examples": self.examples,
            "sensitivity": list(self.sensitivity),
        }


@dataclass(frozen=True, repr=False, eq=False)
class ExampleAudit(Result, shown_in="truerank.audits.leakage.training_examples.report"):
    """The result of `leakage.examples`.

    Attributes:
        kinds: what was found, by kind of leak, in the order of `kinds.KINDS`.
        leaks: every pair, columns as in `LEAKS`.
        test: the name of the test set, and how many topics, texts, documents and relevant documents were compared.
        sources: what was read of each training source, with the roles of its columns.
        rules: the thresholds of the evidence.
        others: how often a text of the test collection is taken for another one, for queries and documents.
        boilerplate: passages that many texts of the test collection hold; they were left out of both sides.
        folder: where it was written; None where it was not.
        templates: pairs whose texts have a frame in common and say other things, which are no leaks; columns as in
            `LEAKS`.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("CONTAMINATED", "UNKNOWN", "CLEAN")

    kinds: tuple[KindVerdict, ...]
    leaks: pl.DataFrame
    test: Mapping[str, Any]
    sources: Mapping[str, Mapping[str, Any]]
    rules: Mapping[str, Any]
    others: Mapping[str, OtherTopics]
    boilerplate: tuple[Mapping[str, Any], ...] = ()
    folder: Path | None = None
    templates: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LEAKS))

    def of(self, kind: str) -> KindVerdict:
        """What was found of one kind of leak."""
        return next(one for one in self.kinds if one.kind == kind)

    def rows(self, kind: str) -> pl.DataFrame:
        """The pairs of one kind of leak."""
        return self.leaks.filter(pl.col("kind") == kind)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "test": dict(self.test),
            "sources": {name: dict(source) for name, source in self.sources.items()},
            "rules": dict(self.rules),
            "kinds": {one.kind: one.json() for one in self.kinds},
            "templates": {kind: rows.height for (kind,), rows in self.templates.group_by("kind", maintain_order=True)},
            "other_texts": dict(self.others),
            "boilerplate": [dict(passage) for passage in self.boilerplate],
        }


def load_examples(folder: str | Path) -> ExampleAudit:
    """Opens the folder that `leakage examples --out` wrote.

    Raises:
        InputError: no such audit there, or it cannot be read.
    """
    folder = Path(folder)
    with written_by("leakage examples", folder, "summary.json", "leaks.parquet"):
        summary = json_file(folder / "summary.json")
        leaks = read_table(folder / "leaks.parquet", LEAKS)
        path = folder / "templates.parquet"
        templates = read_table(path, LEAKS) if path.is_file() else leaks.clear()
        kinds = tuple(_kind(kind.name, summary["kinds"][kind.name]) for kind in KINDS if kind.name in summary["kinds"])
        parts = {name: summary[name] for name in ("test", "sources", "rules")}
        others, passages = summary["other_texts"], tuple(summary["boilerplate"])
        audit = ExampleAudit(kinds, leaks, **parts, others=others, boilerplate=passages, folder=folder)
        return replace(audit, templates=templates)


def audited_input(found: ExampleAudit) -> Input:
    """An audit as the manifest names it, with the hash of its pairs where they are a file."""
    if found.folder is None:
        return Input("audit", "", "audit", found.leaks.height)
    path = found.folder / "leaks.parquet"
    return Input(found.folder.name, str(found.folder), "audit", found.leaks.height, hash_file(path))


def _kind(name: str, values: Mapping[str, Any]) -> KindVerdict:
    known: dict[str, Any] = {key: value for key, value in values.items() if key != "share"}
    for key in ("evidence", "settle", "sensitivity"):
        known[key] = tuple(known[key])
    return KindVerdict(name, **known)
