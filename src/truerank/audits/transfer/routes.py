"""Carry: judgments of passages, of one version, or of experts, as judgments of documents, or of another version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl

from truerank.audits.transfer.matching.links import Route, links_of
from truerank.audits.transfer.matching.versions import matched_input
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.measures import Proportion, proportion
from truerank.measures.equivalence import COMBINE, Combine, combined_grade
from truerank.options import Confidence, Flag, Options, OutFile, Range, Source, command
from truerank.sources import grammar
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import QREL_SCHEMA, read_qrels_frame
from truerank.text.printable import and_more
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import check_origins
from truerank.work.runs import run as started

__all__ = ["COMBINE", "Carrying", "Experts", "carry"]


@dataclass(frozen=True, eq=False)
class ExpertComparison:
    """Carried labels beside experts' labels.

    Attributes:
        relevant: carried as relevant, and judged not relevant by experts.
        non_relevant: carried as not relevant, and judged relevant by experts.
        topics: topics with a document of the first kind, out of those with one that was carried as relevant and
            judged by experts.
        unjudged: carried judgments of the experts' topics that experts say nothing about.
        other_topics: topics of the carried judgments that experts did not judge.
        grades: the grades from which a carried and an expert's judgment count as relevant.
        confidence: of the intervals.
        disagreements: topic_id, doc_id, carried, expert.
    """

    relevant: Proportion
    non_relevant: Proportion
    topics: Proportion
    unjudged: int
    other_topics: int
    grades: tuple[int, int]
    confidence: float
    disagreements: pl.DataFrame

    def json(self) -> dict[str, Any]:
        """The counts and shares."""
        names = "relevant_judged_non_relevant=relevant, non_relevant_judged_relevant=non_relevant"
        known = picked(self, f"{names}, topics_with_such_a_relevant=topics, unjudged, other_topics")
        carried, expert = self.grades
        return {**known, "relevant_from": {"carried": carried, "expert": expert}, "confidence": self.confidence}


def compare_with_experts(
    carried: pl.DataFrame, expert: str, grades: tuple[int, int], confidence: float = 0.95
) -> ExpertComparison:
    """Counts where carried judgments and those of experts differ, on the documents that both judged.

    Source:
        Section 3 of the paper: the same count on 46 queries of TREC 2020.
    """
    said = read_qrels_frame(expert)
    joined = carried.join(said, on=["topic_id", "doc_id"], how="left", maintain_order="left", suffix="_expert")
    both = joined.drop_nulls("relevance_expert").with_columns(
        (pl.col("relevance") >= grades[0]).alias("ours"), (pl.col("relevance_expert") >= grades[1]).alias("theirs")
    )
    relevant, others = both.filter("ours"), both.filter(~pl.col("ours"))
    wrong = relevant.filter(~pl.col("theirs"))
    share = partial(proportion, confidence=confidence, method="exact")
    of_topics = carried["topic_id"].is_in(said["topic_id"].unique().implode())
    return ExpertComparison(
        relevant=share(len(wrong), len(relevant)),
        non_relevant=share(int(others["theirs"].sum()), len(others)),
        topics=share(wrong["topic_id"].n_unique(), relevant["topic_id"].n_unique()),
        unjudged=int(of_topics.sum()) - len(both),
        other_topics=carried.filter(~of_topics)["topic_id"].n_unique(),
        grades=grades,
        confidence=confidence,
        disagreements=both.filter(pl.col("ours") != pl.col("theirs")).select(
            "topic_id", "doc_id", pl.col("relevance").alias("carried"), pl.col("relevance_expert").alias("expert")
        ),
    )


#: Topics that are named in a sentence.
_NAMED: Final = 10


@dataclass(frozen=True)
class Experts(Options):
    """How often experts disagree with the carried judgments.

    Attributes:
        expert_qrels: judgments of experts on the documents that are carried to.
        expert_rel: the lowest grade of an expert that counts as relevant.
        confidence: of the intervals.
    """

    expert_qrels: Annotated[str | None, Flag(metavar="SRC")] = None
    expert_rel: Annotated[int, Range(at_least=1)] = 1
    confidence: Confidence = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class Carrying(Result, shown_in="truerank.audits.transfer.report"):
    """What `carry` did.

    Attributes:
        qrels: the new judgments, columns as in `QREL_SCHEMA`.
        parts: what was not carried, or put together, by what it is: lost, ambiguous, merged, disagreements.
        read: judgments read.
        carried: judgments that found a document, before several of one document were put together.
        written: the new judgments.
        merged: documents of a topic that several judgments were put together for.
        differing: those among them whose grades differ.
        lost: judgments that found none.
        ambiguous: judgments that found several, or (`combine="agree"`) contradict one another.
        topics: topics read and written; those that had a relevant document and have none left.
        reasons: status, reason and number of judgments, the most frequent first.
        combine: the rule.
        experts: what experts say of the carried labels, where they were given.
        warnings: what a user must know, one sentence each.
        out: the file of the new judgments; the others stand beside it.
        doubtful: of chunks: topic_id, doc_id and score of new chunks that hold a part of a relevant one, to be judged.
        by: of chunks: offsets or text, by which they were found; "" otherwise.
        inside: of the doubtful ones, those of which `min_overlap` or more was judged relevant.
    """

    qrels: pl.DataFrame
    parts: Mapping[str, pl.DataFrame]
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
    experts: ExpertComparison | None
    warnings: tuple[str, ...]
    out: Path | None = None
    doubtful: pl.DataFrame | None = None
    by: str = ""
    inside: int = 0

    @property
    def files(self) -> dict[str, Path]:
        """What stands beside the new judgments, by what it holds."""
        if self.out is None:
            return {}
        run = {} if self.doubtful is None else {"doubtful": "doubtful.run"}
        endings = {**{name: f"{name}.tsv" for name in self.parts}, **run, "manifest": "manifest.json"}
        return {name: self.out.with_name(f"{self.out.name}.{ending}") for name, ending in endings.items()}

    def counts(self) -> dict[str, Any]:
        """The counts alone."""
        names = ("read", "carried", "written", "merged", "differing", "lost", "ambiguous")
        return {**{name: getattr(self, name) for name in names}, "topics": dict(self.topics)}

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            **picked(self, "out, files"),
            **self.counts(),
            **({} if self.doubtful is None else {"by": self.by, "doubtful": len(self.doubtful), "inside": self.inside}),
            "combine": self.combine,
            "reasons": [{"status": status, "reason": reason, "judgments": n} for status, reason, n in self.reasons],
            **picked(self, "experts, warnings"),
        }


@command
def carry(
    qrels: Source,
    *,
    route: Route = Route(),
    combine: Combine = "max",
    rel: Annotated[int, Range(at_least=1)] = 1,
    experts: Experts = Experts(),
    out: OutFile = None,
    progress: Progress | None = None,
) -> Carrying:
    """Writes judgments of passages as judgments of documents, or those of one version for another.

    Each judgment that was not carried or was put together with others is listed, with the reason. Judgments of chunks
    go to the chunks of another cutting with `spans`; what holds a part of a relevant chunk is listed for judging.

    Args:
        qrels: the judgments to carry over.
        route: where judgments go.
        combine: what several judgments of one topic become that go to the same document.
        rel: the lowest grade of a carried judgment that counts as relevant.
        experts: how often experts disagree.
        out: the new judgments, TREC qrels; the name says the compression. Beside the file stand FILE.lost.tsv,
            FILE.ambiguous.tsv, FILE.merged.tsv, with experts FILE.disagreements.tsv, with spans FILE.doubtful.run, and
            FILE.manifest.json.
        progress: receives progress updates.

    Returns:
        The new judgments, the counts, and how often experts disagree.

    Raises:
        InputError: a source or option is at fault, nothing is left to be written, or the output cannot be written.

    Examples:

        truerank transfer carry --qrels train.qrels --matched matched/ --to V2 --out train-v2.qrels

        truerank transfer carry --qrels passages.qrels --mapping passage-to-doc.tsv --docs docs.tsv.gz
        --expert-qrels nist.qrels --out docs.qrels

        truerank transfer carry --qrels cast.qrels --pattern cast --out docs.qrels.gz

        truerank transfer carry --qrels golden.qrels --spans chunks-200.jsonl --docs chunks-500.jsonl --out new.qrels
    """
    way, spec = route.checked(), grammar.parse(qrels)
    frame = read_qrels_frame(spec)
    judged, doubtful, by, inside = frame["doc_id"].unique(maintain_order=True), None, "", 0
    if way.spans is not None and way.docs is not None:
        # Here: it takes time to load what reads chunks, and few judgments are of chunks.
        from truerank.audits.transfer.matching.spans import pieces, spanned

        found, by = pieces(way.spans, way.docs, frozenset(judged), progress or Quiet())
        rows, doubtful, inside = spanned(frame.with_row_index("row"), found, rel, way.min_overlap)
    else:
        links = links_of(way, judged, progress or Quiet())
        rows = frame.with_row_index("row").join(links, on="doc_id", how="left", maintain_order="left")
    rows, merged = _combined(rows, combine)
    kept = merged.select("topic_id", pl.col("found").alias("doc_id"), pl.col("grade").alias("relevance"))
    kept = kept.cast(QREL_SCHEMA)  # type: ignore[arg-type]
    if not len(kept):
        reasons = rows["reason"].value_counts(sort=True)
        most = f"{reasons['reason'][0]} ({reasons['count'][0]:,d} of {len(rows):,d} judgments)"
        raise InputError("no judgment was carried, nothing would be written", most, where=spec.location)
    compared = None
    if experts.expert_qrels is not None:
        grades = (rel, experts.expert_rel)
        compared = compare_with_experts(kept, experts.expert_qrels, grades, experts.confidence)
    result = _result(frame, rows, merged, kept, combine=combine, rel=rel, experts=compared)
    if doubtful is not None and len(doubtful) > (relevant := int((kept["relevance"] >= rel).sum())):
        fault = (
            f"{len(doubtful):,d} new chunks hold a part of a relevant one and have to be judged, and {relevant:,d} are "
            "relevant so far: scores by these alone say little."
        )
        result = replace(result, warnings=(*result.warnings, fault))
    result = replace(result, doubtful=doubtful, by=by, inside=inside)
    named = {"mapping": way.mapping, "spans": way.spans, "docs": way.docs, "expert_qrels": experts.expert_qrels}
    inputs = (*inputs_of(qrels=qrels, **named), *matched_input(way.matched))
    check_origins("transfer carry", inputs)
    if out is None:
        return result
    result = replace(result, out=Path(out))
    options = {
        "to": way.to, "pattern": way.pattern, "min_overlap": way.min_overlap, "combine": combine,
        "rel": rel, "expert_rel": experts.expert_rel,
        "confidence": experts.confidence,
    }  # fmt: skip
    with started("transfer carry", inputs, options, out, file=True) as job:
        job.skipped = {"lost": result.lost, "ambiguous": result.ambiguous}
        publish(result, job)
    return result


def _combined(rows: pl.DataFrame, combine: Combine) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with their last status, and those that were carried, put together by topic and document."""
    grade = pl.col("relevance")
    carried = rows.filter(pl.col("status") == "matched").group_by("topic_id", "found", maintain_order=True)
    merged = carried.agg(
        combined_grade(combine).alias("grade"),
        pl.len().alias("judgments"),
        grade.n_unique().alias("grades"),
        pl.col("doc_id").str.join(" ").alias("from"),
        grade.cast(pl.String).str.join(" ").alias("were"),
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


def _result(
    frame: pl.DataFrame,
    rows: pl.DataFrame,
    merged: pl.DataFrame,
    kept: pl.DataFrame,
    *,
    combine: Combine,
    rel: int,
    experts: ExpertComparison | None,
) -> Carrying:
    """The result of judgments as read, what became of each, what was put together, and what is written."""
    of_row = ("topic_id", "doc_id", "relevance", "key")
    several = merged.filter(pl.col("judgments") > 1).rename({"found": "doc_id", "grade": "relevance"})
    parts = {
        "lost": rows.filter(pl.col("status") == "lost").select(*of_row, "reason"),
        "ambiguous": rows.filter(pl.col("status") == "ambiguous").select(*of_row, "candidates", "listed", "reason"),
        "merged": several.select("topic_id", "doc_id", "relevance", "judgments", "from", "were"),
        **({} if experts is None else {"disagreements": experts.disagreements}),
    }
    status = dict(rows["status"].value_counts().iter_rows())
    before = frame.filter(pl.col("relevance") >= rel)["topic_id"].unique(maintain_order=True)
    after = kept.filter(pl.col("relevance") >= rel)["topic_id"].unique()
    bare = [topic for topic in before if topic not in set(after)]
    left = rows.filter(pl.col("status") != "matched").group_by("status", "reason", maintain_order=True)
    reasons = left.len().sort("status", "len", "reason", descending=[False, True, False])
    warning = f"No relevant document is left for topic {and_more(bare, _NAMED)}."
    return Carrying(
        qrels=kept,
        parts=parts,
        read=len(frame),
        carried=rows.filter(pl.col("status") == "matched")["row"].n_unique(),
        written=len(kept),
        merged=len(several),
        differing=int((merged["grades"] > 1).sum()),
        lost=int(status.get("lost", 0)),
        ambiguous=int(status.get("ambiguous", 0)),
        topics={
            "read": frame["topic_id"].n_unique(),
            "written": kept["topic_id"].n_unique(),
            "without_relevant": len(bare),
        },
        reasons=tuple((str(state), str(reason), int(n)) for state, reason, n in reasons.iter_rows()),
        combine=combine,
        experts=experts,
        warnings=(warning,) if bare else (),
    )
