"""The command `collection audit`: reads what is given, looks for faults, and says what they do to scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, cast

import numpy as np
import polars as pl

from truerank.audits.collection.documents import DocumentTable, read_document_table
from truerank.audits.collection.duplicates import CERTAIN, Answer, Duplicates, no_duplicates, representatives
from truerank.audits.collection.effects import CollectionChange, CollectionEffect, measured_effect
from truerank.audits.collection.fit import Fit, fit_instances, judgment_fit
from truerank.audits.collection.instances import INSTANCE_SCHEMA, Instances
from truerank.audits.collection.judgments import (
    JudgmentTable,
    closed,
    closing_of,
    judgment_instances,
    read_judgments,
    usable,
    version_instances,
)
from truerank.audits.collection.options import CollectionOptions, Parts
from truerank.audits.collection.references import (
    asked_for,
    reference_instances,
    run_fault_instances,
    run_instances,
    unreachable,
)
from truerank.audits.collection.results import CollectionAudit, CollectionFinding, kinds
from truerank.audits.collection.together import (
    Ceiling,
    ceiling_instances,
    ceilings,
    group_instances,
    verbatim_instances,
)
from truerank.audits.collection.topics import TopicTable, other_splits, read_topic_table, topic_instances
from truerank.audits.collection.verdicts import effect_here, looked_for, verdicts
from truerank.errors import OptionError
from truerank.judging.ratings import read_ratings
from truerank.measures.magnitudes import Proportion, proportion
from truerank.measures.scoring import named_runs
from truerank.near_duplicates import within
from truerank.near_duplicates.shingles import Shingles
from truerank.options import Labels, Out, Scoring, Workers, command
from truerank.sources.inputs import inputs_of
from truerank.sources.notebook import frame_of
from truerank.sources.runs import RUN_SCHEMA, read_run_frame
from truerank.work.engines import check_kept, open_engine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: Bands of Jaccard similarity from which a sample is drawn, by their lower ends.
_BANDS: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
_ANSWERS: Final = ("same", "holds", "different")
#: Characters of a text that are shown.
_SHOWN: Final = 20_000


class Band(NamedTuple):
    """Pairs of one kind and similarity: how many there are, how many were judged, and how many say the same.

    `share` has the exact interval of the share that says the same; without judgments it is from 0 to 1.
    """

    kind: str
    low: float
    pairs: int
    judged: int
    share: Proportion


def read_answers(judged: Labels) -> dict[tuple[str, str], Answer]:
    """What people said, by pair of document ids."""
    if not judged:
        return {}
    ratings = read_ratings(judged, scheme="duplicates")
    found: dict[tuple[str, str], Answer] = {}
    for at, answer in ratings.decided(_answer, include_models=judged.include_models, order=_ANSWERS).items():
        data = ratings.units[at].data
        left, right = data.get("left"), data.get("right")
        if answer is not None and left and right:
            found[str(left), str(right)] = cast(Answer, answer)
    return found


def _answer(labels: tuple[str, ...]) -> str | None:
    return next((label for label in labels if label in _ANSWERS), None)


def bands(duplicates: Duplicates, confidence: float = 0.95) -> tuple[Band, ...]:
    """How many pairs there are of each kind and similarity, and the share of those judged that say the same."""
    rows = _banded(duplicates.answered)
    groups = rows.group_by("kind", "band").agg(
        pl.len().alias("pairs"),
        pl.col("answer").is_not_null().sum().alias("judged"),
        (pl.col("answer") == "same").sum().alias("same"),
    )
    found = []
    for kind, band, pairs, judged, same in groups.sort("kind", "band").iter_rows():
        share = proportion(same, judged, confidence=confidence, method="exact")
        found.append(Band(str(kind), band, pairs, judged, share))
    return tuple(found)


def _banded(pairs: pl.DataFrame) -> pl.DataFrame:
    jaccard = pairs["jaccard"].to_numpy()
    low = np.array(_BANDS)[np.searchsorted(_BANDS, jaccard, side="right") - 1]
    return pairs.with_columns(pl.Series("band", low.tolist(), pl.Float64))


def drawn_pairs(duplicates: Duplicates, sample: int, seed: int) -> pl.DataFrame:
    """A sample of the pairs that nobody judged: as many of each band, as far as there are so many."""
    open_ones = _banded(duplicates.answered.filter(pl.col("answer").is_null() & ~pl.col("kind").is_in(CERTAIN)))
    groups = open_ones.partition_by("kind", "band", maintain_order=True)
    groups.sort(key=lambda group: (str(group["kind"][0]), group["band"][0]))
    rng = np.random.default_rng(seed)
    chosen = []
    for group in groups:
        size = min(len(group), -(-sample // len(groups)))
        places = np.sort(rng.choice(len(group), size, replace=False))
        chosen.append(group[places].with_columns(pl.lit(size / len(group)).alias("probability")))
    empty = open_ones.clear().with_columns(pl.lit(0.0).alias("probability"))
    return pl.concat([empty, *chosen])


def item_lines(
    pairs: pl.DataFrame, contradictions: pl.DataFrame, texts: Mapping[str, str], topics: Mapping[str, str]
) -> Iterator[str]:
    """Lines of `items.jsonl`, for `judge new --scheme duplicates`."""
    for row in contradictions.iter_rows(named=True):
        left, right = row["doc_id"], row["other"]
        if left in texts and right in texts:
            about = {"grades": row["detail"], "left": left, "right": right}
            extra = {"title": topics.get(row["topic_id"], row["topic_id"]), "dataset": "contradictions"}
            yield _line(
                f"{row['topic_id']} {left} {right}", row["topic_id"], (left, right), texts, {**extra, "data": about}
            )
    for row in pairs.iter_rows(named=True):
        left, right = row["left"], row["right"]
        if left in texts and right in texts:
            about = {"kind": str(row["kind"]), "left": left, "right": right}
            extra = {
                "dataset": f"{row['kind']} {row['band']:g}",
                "score": round(row["jaccard"], 6),
                "probability": row["probability"],
                "data": about,
            }
            yield _line(f"{left} {right}", left, (left, right), texts, extra)


def _line(item_id: str, topic_id: str, ids: tuple[str, str], texts: Mapping[str, str], extra: Mapping[str, Any]) -> str:
    shown = [
        {"name": f"document {number}", "text": texts[one][:_SHOWN], "id": one}
        for number, one in enumerate(ids, start=1)
    ]
    return json.dumps({"item_id": item_id, "topic_id": topic_id, "texts": shown, **extra}, ensure_ascii=False) + "\n"


@command
def audit(
    parts: Parts = Parts(),
    *,
    options: CollectionOptions = CollectionOptions(),
    shingles: Shingles = Shingles(),
    scoring: Scoring = Scoring(),
    judged: Labels = Labels(),
    work: Workers = Workers(),
    out: Out = None,
    progress: Progress | None = None,
) -> CollectionAudit:
    """Looks for faults in the documents, topics and judgments of a test collection, and says what they do to scores.

    Each part works alone; together they show more. Each part and the whole get a verdict: FAULTY, FAULTY IN PART,
    UNKNOWN or SOUND.

    Args:
        parts: what is audited.
        options: what is looked for.
        shingles: what counts as nearly the same text.
        scoring: how runs are scored.
        judged: judged pairs of documents, of the scheme duplicates.
        work: where the comparison of documents runs.
        out: a folder for findings, duplicates, items to judge, summary, report and manifest.
        progress: receives progress updates.

    Returns:
        The findings and the verdicts.

    Raises:
        InputError: nothing is given, or a source or option is at fault.

    Examples:

        truerank collection audit --qrels robust04.qrels

        truerank collection audit --docs corpus.jsonl --topics queries.jsonl --qrels test.tsv --out audit/

        truerank collection audit --qrels new.qrels --previous-qrels old.qrels --run bm25.run --run dense.run
        --fail-on faulty

    Source: Bernstein and Zobel (CIKM 2005); Fröbe et al. (ECIR 2020).
    """
    if not {"qrels", "docs", "topics"} & parts.given:
        raise OptionError("qrels", "nothing to audit", "give `qrels`, `docs` or `topics`")
    check_kept(work.engine, out)
    ways = Ways(options, shingles, scoring, judged)
    if out is None:
        with TemporaryDirectory() as folder:
            return _audited(parts, ways, Job(Path(folder), open_engine(work.engine, work.workers), progress or Quiet()))
    inputs = inputs_of(
        qrels=parts.qrels, docs=parts.docs, topics=parts.topics, train=parts.train, previous_qrels=parts.previous_qrels,
        run=list(named_runs(parts.run).values()) if "run" in parts.given else None, labels=judged.labels,
    )  # fmt: skip
    given = {"options": options, "shingles": shingles, "scoring": scoring, "votes": judged.votes}
    with started("collection audit", inputs, given, out) as job:
        engine = open_engine(work.engine, work.workers)
        found = _audited(parts, ways, Job(job.unfinished(), engine, progress or Quiet()))
        found = replace(found, folder=job.folder)
        publish(found, job)
    return found


@dataclass(frozen=True)
class Ways:
    """The groups of options."""

    options: CollectionOptions
    shingles: Shingles
    scoring: Scoring
    judged: Labels


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that was read.

    Attributes:
        judgments: None where they were not given, like the others.
        topics: the topics.
        documents: what a pass over the documents found.
        duplicates: documents that say the same.
        runs: by name.
        previous: earlier judgments.
    """

    judgments: JudgmentTable | None
    topics: TopicTable | None
    documents: DocumentTable | None
    duplicates: Duplicates
    runs: Mapping[str, pl.DataFrame]
    previous: pl.DataFrame | None

    @property
    def pairs(self) -> pl.DataFrame | None:
        """The judgments, one row for each pair."""
        return None if self.judgments is None else usable(self.judgments)


def _audited(parts: Parts, ways: Ways, job: Job) -> CollectionAudit:
    material = _read(parts, ways, job)
    found = [one for one in _instances(parts, material, ways) if one.count]
    fit = _fit(material, found, ways)
    if fit is not None and material.pairs is not None:
        judged = material.pairs["topic_id"].n_unique()
        found += [one for one in fit_instances(fit, judged, len(material.runs)) if one.count]
    facts, extra = _facts(material, found, ways)
    found += [one for one in extra if one.count]
    findings = _findings(found, material.pairs, ways.scoring.rel)
    instances = _table(found)
    items = _items(material, instances, ways)
    return CollectionAudit(
        verdicts=verdicts(findings, parts.given),
        findings=findings,
        instances=instances,
        pairs=material.duplicates.answered,
        groups=material.duplicates.groups(),
        read=_counts(material, ways.scoring.rel),
        facts={**facts, **({} if fit is None else {"fit": fit.json()}), "looked_for": looked_for(parts.given)},
        items=items,
    )


def _read(parts: Parts, ways: Ways, job: Job) -> Material:
    """Opens everything small first, so that a fault in it costs no pass over the documents."""
    said = read_answers(ways.judged)
    judgments = None if parts.qrels is None else read_judgments(parts.qrels)
    previous = None if parts.previous_qrels is None else usable(read_judgments(parts.previous_qrels))
    topics = None if parts.topics is None else read_topic_table(parts.topics)
    runs = _runs(parts.run) if "run" in parts.given else {}
    if parts.docs is None:
        return Material(judgments, topics, None, no_duplicates(), runs, previous)
    asked = asked_for(None if judgments is None else judgments.frame, runs, topics)
    documents = read_document_table(parts.docs, asked, job.progress)
    job.progress.start("duplicates")
    same = within(documents.distinct(), ways.shingles, job.part("duplicates"))
    duplicates = Duplicates(same.pairs, same.boilerplate, same.documents[0], said)
    return Material(judgments, topics, documents, duplicates, runs, previous)


def _runs(given: Any) -> dict[str, pl.DataFrame]:
    wanted = ["topic_id", "doc_id", "rank", "score"]
    found = {}
    for name, one in named_runs(given).items():
        frame = read_run_frame(one) if isinstance(one, str | Path) else frame_of(one, RUN_SCHEMA, "score")
        if "rank" not in frame.columns:
            frame = frame.with_columns(
                pl.col("score").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64).alias("rank")
            )
        found[name] = frame.select(wanted)
    return found


def _instances(parts: Parts, material: Material, ways: Ways) -> Iterator[Instances]:
    options, rel = ways.options, ways.scoring.rel
    if material.judgments is not None:
        yield from judgment_instances(material.judgments, rel, options.grades)
        yield from reference_instances(material.judgments.frame, material.topics, material.documents)
    if material.documents is not None:
        yield from material.documents.instances()
        yield from material.duplicates.instances()
    if material.topics is not None:
        yield from topic_instances(material.topics, options.topic_similarity)
        if parts.train:
            yield from other_splits(material.topics, parts.train, options.topic_similarity)
        if material.documents is not None:
            texts = {record.topic.topic_id: record.text for record in material.topics.distinct()}
            yield from verbatim_instances(texts, material.documents.distinct(), material.pairs)
    pairs = material.pairs
    if pairs is not None and material.documents is not None:
        yield from group_instances(material.duplicates, pairs, rel)
    if pairs is not None and material.runs:
        yield from run_instances(material.runs, pairs, rel, material.documents)
        yield from run_fault_instances(material.runs, pairs, ways.scoring)
    if pairs is not None and material.previous is not None:
        yield from version_instances(material.previous, pairs)


def _fit(material: Material, found: Sequence[Instances], ways: Ways) -> Fit | None:
    """Whether the judgments fit their topics; ids that are spelt otherwise count as those that they mean."""
    pairs, documents, topics = material.pairs, material.documents, material.topics
    if pairs is None or not (material.runs or (documents is not None and topics is not None)):
        return None
    for one in found:
        for column, kind in (("doc_id", "respelt-document"), ("topic_id", "respelt-topic")):
            if one.kind == kind:
                meant = dict(one.rows.select(column, "other").iter_rows())
                pairs = pairs.with_columns(pl.col(column).replace(meant))
    texts = None if topics is None else {one.topic.topic_id: one.text for one in topics.distinct()}
    said = None if documents is None else documents.texts
    pairs = pairs.unique(["topic_id", "doc_id"], keep="last", maintain_order=True)
    return judgment_fit(pairs, material.runs, topics=texts, texts=said, rel=ways.scoring.rel, seed=ways.options.seed)


def _facts(material: Material, found: Sequence[Instances], ways: Ways) -> tuple[dict[str, Any], list[Instances]]:
    """Figures that are no findings by themselves; and the findings that need them."""
    facts: dict[str, Any] = {}
    extra: list[Instances] = []
    pairs, scoring, options = material.pairs, ways.scoring, ways.options
    if pairs is not None:
        frame, lines = ceilings(pairs, options.measures, scoring, unreachable(found))
        facts["ceilings"] = [_plain_ceiling(line) for line in lines]
        extra.append(ceiling_instances(frame))
    if material.documents is not None:
        facts["similarity"] = [_plain_band(band) for band in bands(material.duplicates, options.confidence)]
    if pairs is not None and material.runs:
        effect = _effect(material, found, ways)
        if effect is not None:
            facts["effect"] = effect.json()
        if material.previous is not None:
            change = CollectionChange(material.previous, pairs)
            facts["versions"] = _measured(material, change, ways).json()
    return facts, extra


def _plain_ceiling(line: Ceiling) -> dict[str, Any]:
    return line._asdict()


def _plain_band(band: Band) -> dict[str, Any]:
    return {**band._asdict(), "share": band.share._asdict()}


def _effect(material: Material, found: Sequence[Instances], ways: Ways) -> CollectionEffect | None:
    """What cleaning would do to the runs; None where there is nothing to clean."""
    if material.judgments is None or material.pairs is None:
        return None
    rows = {one.kind: one.rows for one in found}
    empty = pl.DataFrame(schema=INSTANCE_SCHEMA)
    rules = closing_of(lambda kind: rows.get(kind, empty), representatives(material.duplicates.groups()))
    after, changes = closed(material.judgments.frame, rules)
    if not len(changes) and not rules.representatives:
        return None
    change = CollectionChange(material.pairs, after.select("topic_id", "doc_id", "relevance"), rules.representatives)
    return _measured(material, change, ways)


def _measured(material: Material, change: CollectionChange, ways: Ways) -> CollectionEffect:
    return measured_effect(
        material.runs,
        change,
        ways.options.measures,
        ways.scoring,
        draws=ways.options.resamples,
        confidence=ways.options.confidence,
        seed=ways.options.seed,
    )


def _findings(found: Sequence[Instances], pairs: pl.DataFrame | None, rel: int) -> tuple[CollectionFinding, ...]:
    """Faults first, then doubts, then notes; within them in the order of the catalogue."""
    by_kind = {one.kind: one for one in found}
    ordered = [
        CollectionFinding.of_instances(kind, by_kind[name], effect_here(by_kind[name], pairs, rel))
        for name, kind in kinds().items()
        if name in by_kind
    ]
    severities = ("fault", "doubt", "note")
    return tuple(sorted(ordered, key=lambda one: severities.index(one.kind.severity)))


def _table(found: Sequence[Instances]) -> pl.DataFrame:
    frames = [
        one.rows.with_columns(pl.lit(kinds()[one.kind].part).alias("part"), pl.lit(one.kind).alias("kind"))
        for one in found
    ]
    empty = pl.DataFrame(schema=INSTANCE_SCHEMA)
    return pl.concat([empty, *(frame.select(list(INSTANCE_SCHEMA)) for frame in frames)])


def _items(material: Material, instances: pl.DataFrame, ways: Ways) -> tuple[str, ...]:
    """Lines of pairs for the judging page."""
    if material.documents is None:
        return ()
    drawn = drawn_pairs(material.duplicates, ways.options.sample, ways.options.seed)
    contradicted = instances.filter(pl.col("kind").is_in(["contradicted-group", "doubtful-contradiction"]))
    wanted = {*drawn["left"], *drawn["right"], *contradicted["doc_id"], *contradicted["other"]}
    if not wanted:
        return ()
    topics = {} if material.topics is None else {one.topic.topic_id: one.text for one in material.topics.distinct()}
    return tuple(item_lines(drawn, contradicted, material.documents.texts(wanted), topics))


def _counts(material: Material, rel: int) -> dict[str, Any]:
    read: dict[str, Any] = {}
    if material.judgments is not None:
        frame, spec = material.judgments.frame, material.judgments.spec
        grades = sorted(frame["relevance"].value_counts().iter_rows())
        read["qrels"] = {
            "name": "the program" if spec is None else spec.name,
            "judgments": len(frame),
            "topics": frame["topic_id"].n_unique(),
            "documents": frame["doc_id"].n_unique(),
            "relevant": int((frame["relevance"] >= rel).sum()),
            "grades": {str(grade): count for grade, count in grades},
        }
    if material.documents is not None:
        read["docs"] = {"name": material.documents.source.name, "documents": material.documents.count}
    if material.topics is not None:
        read["topics"] = {"name": material.topics.spec.name, "topics": len(material.topics.records)}
    if material.runs:
        read["runs"] = {name: len(run) for name, run in material.runs.items()}
    if material.previous is not None:
        read["previous"] = {"judgments": len(material.previous)}
    return read
