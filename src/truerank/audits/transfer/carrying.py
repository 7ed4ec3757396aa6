"""Carry: judgments of passages, or of one version, as judgments of documents, or of another version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl

from truerank.audits.outputs import refuse_overwrite, written
from truerank.audits.transfer.experts import Comparison, compare_with_experts
from truerank.audits.transfer.matching.links import Route, links_of
from truerank.audits.transfer.provenance import file_record, provenance, write_tsv
from truerank.errors import InputError
from truerank.reports.tables import Column, Table
from truerank.sources import grammar
from truerank.sources.qrels import QREL_SCHEMA, read_qrels_frame
from truerank.work.artifacts import hash_file, write_text
from truerank.work.progress import Progress, Quiet

__all__ = ["COMBINE", "CarryOptions", "Carrying", "carry_judgments", "write_qrels"]

Combine = Literal["max", "min", "majority", "agree"]

#: What several judgments of one topic become that go to the same document.
COMBINE: Final[dict[str, str]] = {
    "max": "the highest grade",
    "min": "the lowest grade",
    "majority": "the grade that most of them have, of equally many the higher",
    "agree": "the grade, where they agree; the others are ambiguous",
}
#: What becomes of judgments that are not carried.
_LEFT_OUT: Final = ("lost", "ambiguous")
#: Topics that are named in a sentence.
_NAMED: Final = 10


@dataclass(frozen=True)
class CarryOptions:
    """How judgments are carried.

    Args:
        combine: what several judgments of one topic become that go to the same document, see `COMBINE`.
        relevant: from this grade on a carried judgment counts as relevant.
        expert: judgments of experts on the documents that are carried to.
        expert_relevant: from this grade on an expert's judgment counts as relevant.
        confidence: of the intervals.
    """

    combine: Combine = "max"
    relevant: int = 1
    expert: str | None = None
    expert_relevant: int = 1
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.combine not in COMBINE:
            raise InputError(f"no rule '{self.combine}'", f"one of {', '.join(COMBINE)}", where="--combine")
        if not 0 < self.confidence < 1:
            raise InputError(f"a confidence of {self.confidence:g}", "give one between 0 and 1", where="--confidence")


@dataclass(frozen=True)
class Carrying:
    """What `carry_judgments` did.

    Attributes:
        out: the new judgments.
        files: what stands beside them, by what it holds: lost, ambiguous, merged, disagreements, manifest.
        read: judgments read.
        carried: judgments that found a document, before several of one document were put together.
        written: judgments written.
        merged: documents of a topic that several judgments were put together for.
        differing: those among them whose grades differ.
        lost: judgments that found none.
        ambiguous: judgments that found several, or (`combine="agree"`) contradict one another.
        topics: topics read and written; those that had a relevant document and have none left.
        reasons: status, reason and number of judgments, the most frequent first.
        combine: the rule.
        experts: what experts say of the carried labels, where they were given.
        warnings: what a user must know, one sentence each.
    """

    out: Path
    files: Mapping[str, Path]
    read: int
    carried: int
    written: int
    merged: int
    differing: int
    lost: int
    ambiguous: int
    topics: Mapping[str, int]
    reasons: tuple[tuple[str, str, int], ...]
    combine: Combine
    experts: Comparison | None
    warnings: tuple[str, ...]

    def counts(self) -> dict[str, Any]:
        """The counts alone."""
        names = ("read", "carried", "written", "merged", "differing", "lost", "ambiguous")
        return {**{name: getattr(self, name) for name in names}, "topics": dict(self.topics)}

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "out": str(self.out),
            "files": {name: str(path) for name, path in self.files.items()},
            **self.counts(),
            "combine": self.combine,
            "reasons": [{"status": status, "reason": reason, "judgments": n} for status, reason, n in self.reasons],
            "experts": None if self.experts is None else self.experts.json(),
            "warnings": list(self.warnings),
        }

    def table(self) -> Table:
        """The counts."""
        reasons = {state: [(reason, n) for of, reason, n in self.reasons if of == state] for state in _LEFT_OUT}
        rows: list[tuple[str, str, int]] = [
            ("judgments read", "", self.read),
            ("carried", "", self.carried),
            ("lost", "", self.lost),
            *(("", reason, n) for reason, n in reasons["lost"]),
            ("ambiguous", "", self.ambiguous),
            *(("", reason, n) for reason, n in reasons["ambiguous"]),
            ("documents with several judgments, put together", "", self.merged),
            ("", "their grades differ", self.differing),
            ("judgments written", "", self.written),
            ("topics read", "", self.topics["read"]),
            ("topics written", "", self.topics["written"]),
            ("topics whose relevant documents are all gone", "", self.topics["without_relevant"]),
        ]
        return Table(
            title=f"{self.out.name}: judgments carried over.",
            columns=(Column("what"), Column("of these, because"), Column("number", align="right", format=",d")),
            rows=tuple(rows),
            notes=(f"Several judgments of one document: {COMBINE[self.combine]}.", *self.warnings),
        )

    def text(self) -> str:
        """The tables for a terminal."""
        tables = [self.table()] if self.experts is None else [self.table(), self.experts.table()]
        return "\n".join(table.text() for table in tables)


_DEFAULT: Final = CarryOptions()


def carry_judgments(
    qrels: str,
    out: str | Path,
    route: Route,
    options: CarryOptions = _DEFAULT,
    *,
    progress: Progress | None = None,
) -> Carrying:
    """Writes judgments again for the documents that the judged ones are in another version or collection.

    Beside the file stand `OUT.lost.tsv` and `OUT.ambiguous.tsv` (each judgment that was not carried, and why),
    `OUT.merged.tsv` (documents that several judgments were put together for), with experts
    `OUT.disagreements.tsv`, and `OUT.manifest.json`.

    Args:
        qrels: the judgments.
        out: the file to write, TREC qrels; its name says the compression.
        route: where judgments go.
        options: how they are put together, and experts to compare with.
        progress: is told what is read.

    Returns:
        The counts, and how often experts disagree.

    Raises:
        InputError: a source or option is at fault, nothing is left to be written, or the output cannot be written.
    """
    out = Path(out)
    spec = grammar.parse(qrels)
    refuse_overwrite(spec.path if spec.scheme == "file" else None, out)
    frame = read_qrels_frame(spec)
    links = links_of(route, frame["doc_id"].unique(maintain_order=True), progress or Quiet())
    rows = frame.with_row_index("row").join(links, on="doc_id", how="left", maintain_order="left")
    rows, merged = _combined(rows, options.combine)
    kept = _kept(merged)
    if not len(kept):
        raise InputError("no judgment was carried, nothing would be written", _first_reason(rows), where=spec.location)
    experts = None
    if options.expert is not None:
        experts = compare_with_experts(
            kept, options.expert, (options.relevant, options.expert_relevant), options.confidence
        )
    return _written(out, _Carried(qrels, frame, rows, merged, kept), route, options, experts)


def write_qrels(stream: Any, frame: pl.DataFrame) -> None:
    """Writes judgments (columns as in `QREL_SCHEMA`) as TREC lines."""
    for part in frame.iter_slices(1 << 16):
        lines = part.select(pl.format("{} 0 {} {}\n", "topic_id", "doc_id", "relevance").alias("line"))["line"]
        stream.write("".join(lines).encode("utf-8", "replace"))


@dataclass(frozen=True)
class _Carried:
    """The judgments as read, with what became of each row, put together by document, and as they are written."""

    qrels: str
    frame: pl.DataFrame
    rows: pl.DataFrame
    merged: pl.DataFrame
    kept: pl.DataFrame


def _combined(rows: pl.DataFrame, combine: Combine) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with their last status, and those that were carried, put together by topic and document."""
    grade = pl.col("relevance")
    rule = {
        "max": grade.max(), "min": grade.min(), "agree": grade.max(), "majority": grade.mode().max(),
    }[combine]  # fmt: skip
    merged = (
        rows.filter(pl.col("status") == "matched")
        .group_by("topic_id", "found", maintain_order=True)
        .agg(
            rule.cast(pl.Int32).alias("grade"),
            pl.len().alias("judgments"),
            grade.n_unique().alias("grades"),
            pl.col("doc_id").str.join(" ").alias("from"),
            grade.cast(pl.String).str.join(" ").alias("were"),
        )
    )
    if combine != "agree":
        return rows, merged
    apart = merged.filter(pl.col("grades") > 1).select("topic_id", "found", pl.lit(True).alias("apart"))
    rows = rows.join(apart, on=["topic_id", "found"], how="left", maintain_order="left")
    contradicted = pl.col("apart").fill_null(False)
    rows = rows.with_columns(
        pl.when(contradicted).then(pl.lit("ambiguous")).otherwise("status").alias("status"),
        pl.when(contradicted).then(pl.lit("several judgments of one document, with different grades"))
        .otherwise("reason").alias("reason"),
        pl.when(contradicted).then("found").otherwise("listed").alias("listed"),
    ).drop("apart")  # fmt: skip
    return rows, merged.filter(pl.col("grades") == 1)


def _kept(merged: pl.DataFrame) -> pl.DataFrame:
    kept = merged.select("topic_id", pl.col("found").alias("doc_id"), pl.col("grade").alias("relevance"))
    return kept.cast(QREL_SCHEMA)  # type: ignore[arg-type]


def _first_reason(rows: pl.DataFrame) -> str:
    reasons = rows["reason"].value_counts(sort=True)
    return f"{reasons['reason'][0]} ({reasons['count'][0]:,d} of {len(rows):,d} judgments)"


def _written(out: Path, carried: _Carried, route: Route, options: CarryOptions, experts: Comparison | None) -> Carrying:
    rows, merged = carried.rows, carried.merged
    parts = {
        "lost": rows.filter(pl.col("status") == "lost").select("topic_id", "doc_id", "relevance", "key", "reason"),
        "ambiguous": rows.filter(pl.col("status") == "ambiguous").select(
            "topic_id", "doc_id", "relevance", "key", "candidates", "listed", "reason"
        ),
        "merged": merged.filter(pl.col("judgments") > 1).select(
            "topic_id", pl.col("found").alias("doc_id"), pl.col("grade").alias("relevance"), "judgments", "from", "were"
        ),
    }
    if experts is not None:
        parts["disagreements"] = experts.disagreements
    files = {name: out.with_name(f"{out.name}.{name}.tsv") for name in parts}
    result = _result(out, {**files, "manifest": out.with_name(f"{out.name}.manifest.json")}, carried, options, experts)
    hashes: dict[str, str] = {}
    for name, part in parts.items():
        with written(files[name]) as target:
            with target.open() as stream:
                write_tsv(stream, part)
            hashes[files[name].name] = hash_file(target.path)
    with written(out) as target:
        with target.open() as stream:
            write_qrels(stream, carried.kept)
        hashes[out.name] = hash_file(target.path)
        manifest = provenance(
            "carry",
            qrels=file_record(carried.qrels),
            route=route.json(),
            options={
                "combine": options.combine,
                "relevant": options.relevant,
                "expert": None if options.expert is None else file_record(options.expert),
                "expert_relevant": options.expert_relevant,
                "confidence": options.confidence,
            },
            counts=result.counts(),
            warnings=list(result.warnings),
            artifacts=dict(sorted(hashes.items())),
        )
        write_text(result.files["manifest"], json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    return result


def _result(
    out: Path, files: Mapping[str, Path], carried: _Carried, options: CarryOptions, experts: Comparison | None
) -> Carrying:
    frame, rows, merged, kept = carried.frame, carried.rows, carried.merged, carried.kept
    status = dict(rows["status"].value_counts().iter_rows())
    before = frame.filter(pl.col("relevance") >= options.relevant)["topic_id"].unique(maintain_order=True)
    after = kept.filter(pl.col("relevance") >= options.relevant)["topic_id"].unique()
    bare = [topic for topic in before if topic not in set(after)]
    reasons = (
        rows.filter(pl.col("status") != "matched")
        .group_by("status", "reason", maintain_order=True)
        .len()
        .sort("status", "len", "reason", descending=[False, True, False])
    )
    warnings: list[str] = []
    if bare:
        more = f" and {len(bare) - _NAMED:,d} more" if len(bare) > _NAMED else ""
        warnings.append(f"No relevant document is left for topic {', '.join(bare[:_NAMED])}{more}.")
    return Carrying(
        out=out,
        files=files,
        read=len(rows),
        carried=int(status.get("matched", 0)),
        written=len(kept),
        merged=int((merged["judgments"] > 1).sum()),
        differing=int((merged["grades"] > 1).sum()),
        lost=int(status.get("lost", 0)),
        ambiguous=int(status.get("ambiguous", 0)),
        topics={
            "read": frame["topic_id"].n_unique(),
            "written": kept["topic_id"].n_unique(),
            "without_relevant": len(bare),
        },
        reasons=tuple((str(state), str(reason), int(n)) for state, reason, n in reasons.iter_rows()),
        combine=options.combine,
        experts=experts,
        warnings=tuple(warnings),
    )
