"""The command `collection audit`: reads what is given, looks for faults, and says what they do to scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, cast

import numpy as np
import polars as pl

from truerank.audits.benchmarks import recognised
from truerank.audits.collection.crossings import FEWEST
from truerank.audits.collection.displacement import Neighbours, displacement
from truerank.audits.collection.documents import DocumentScan, DocumentTable
from truerank.audits.collection.duplicates import CERTAIN, Answer, Duplicates, no_duplicates, representatives
from truerank.audits.collection.echo import WordOverlap, astray, shared_words
from truerank.audits.collection.effects import CollectionChange, measured_effect, told_removal
from truerank.audits.collection.fit import Fit, fit_instances, judgment_fit
from truerank.audits.collection.floors import candidate_instances, floors, shared_candidates, tied_runs
from truerank.audits.collection.instances import INSTANCE_SCHEMA, Instances, instances
from truerank.audits.collection.judgments import (
    JudgmentTable,
    closed,
    closing_of,
    judgment_instances,
    read_judgments,
    upright,
    usable,
    version_instances,
)
from truerank.audits.collection.options import CollectionOptions, Parts
from truerank.audits.collection.references import (
    asked_for,
    reference_instances,
    run_fault_instances,
    run_instances,
    swapped_rows,
    unreachable,
)
from truerank.audits.collection.results import CollectionAudit, CollectionFinding, kinds
from truerank.audits.collection.suspects import KINDS, Suspects, suspects
from truerank.audits.collection.titles import Titles
from truerank.audits.collection.together import (
    VERBATIM,
    ceiling_instances,
    ceilings,
    group_instances,
    verbatim_instances,
)
from truerank.audits.collection.topics import TopicTable, other_splits, read_topic_table, topic_instances
from truerank.audits.collection.verdicts import effect_here, looked_for, verdicts
from truerank.core.plain import plain
from truerank.core.rules import SEVERITIES, RuleChoice
from truerank.errors import OptionError
from truerank.measures.document_placebo import RankedDocuments, Unseen, document_placebos
from truerank.measures.magnitudes import proportion
from truerank.measures.scoring import has_runs, named_runs, ranked_runs
from truerank.near_duplicates import Sketches, keep, within
from truerank.near_duplicates.shingles import Shingles
from truerank.options import Columns, Flag, Labels, Out, Resampling, Scoring, Workers, command
from truerank.records import Document
from truerank.sources.documents import open_documents
from truerank.sources.inputs import inputs_of
from truerank.work.engines import LocalEngine, open_engine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: Bands of Jaccard similarity from which a sample is drawn, by their lower ends.
_BANDS: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
_ANSWERS: Final = ("same", "holds", "different")
#: Characters of a text that are shown, and examples of a finding.
_SHOWN, _EXAMPLES = 20_000, 5


def _answers(judged: Labels) -> dict[tuple[str, str], Answer]:
    """What people said, by pair of document ids."""
    if not judged:
        return {}
    # Here: without labels an audit need not load what reads them.
    from truerank.judging.ratings import read_ratings

    def answer_of(labels: tuple[str, ...]) -> str | None:
        return next((label for label in labels if label in _ANSWERS), None)

    ratings = read_ratings(judged, scheme="duplicates")
    answers: dict[tuple[str, str], Answer] = {}
    for at, answer in ratings.decided(answer_of, include_models=judged.include_models, order=_ANSWERS).items():
        data = ratings.units[at].data
        left, right = data.get("left"), data.get("right")
        if answer is not None and left and right:
            answers[str(left), str(right)] = cast(Answer, answer)
    return answers


def _bands(duplicates: Duplicates, confidence: float) -> list[dict[str, Any]]:
    """How many pairs there are of each kind and similarity, how many were judged, and how many of these say the same.

    The interval of that share is exact; without judgments it is from 0 to 1.
    """
    groups = _banded(duplicates.answered).group_by("kind", "band").agg(
        pl.len().alias("pairs"),
        pl.col("answer").is_not_null().sum().alias("judged"),
        (pl.col("answer") == "same").sum().alias("same"),
    )  # fmt: skip
    bands = []
    for kind, low, pairs, judged, same in groups.sort("kind", "band").iter_rows():
        share = proportion(same, judged, confidence=confidence, method="exact")._asdict()
        bands.append({"kind": str(kind), "low": low, "pairs": pairs, "judged": judged, "share": share})
    return bands


def _banded(pairs: pl.DataFrame) -> pl.DataFrame:
    low = np.array(_BANDS)[np.searchsorted(_BANDS, pairs["jaccard"].to_numpy(), side="right") - 1]
    return pairs.with_columns(pl.Series("band", low.tolist(), pl.Float64))


def _drawn_pairs(duplicates: Duplicates, sample: int, seed: int) -> pl.DataFrame:
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


def _item_lines(
    pairs: pl.DataFrame, contradictions: pl.DataFrame, texts: Mapping[str, str], topics: Mapping[str, str]
) -> Iterator[str]:
    """Lines of `items.jsonl`, for `judge new --scheme duplicates`."""
    items: list[tuple[str, str, str, str, dict[str, Any]]] = []
    for row in contradictions.iter_rows(named=True):
        topic, left, right = row["topic_id"], row["doc_id"], row["other"]
        data = {"grades": row["detail"], "left": left, "right": right}
        about = {"title": topics.get(topic, topic), "dataset": "contradictions", "data": data}
        items.append((f"{topic} {left} {right}", topic, left, right, about))
    for row in pairs.iter_rows(named=True):
        left, right = row["left"], row["right"]
        data = {"kind": str(row["kind"]), "left": left, "right": right}
        about = {"dataset": f"{row['kind']} {row['band']:g}", "score": round(row["jaccard"], 6)}
        items.append((f"{left} {right}", left, left, right, about | {"probability": row["probability"], "data": data}))
    for item_id, topic_id, left, right, about in items:
        if left in texts and right in texts:
            shown = [
                {"name": f"document {number}", "text": texts[doc_id][:_SHOWN], "id": doc_id}
                for number, doc_id in enumerate((left, right), start=1)
            ]
            item = {"item_id": item_id, "topic_id": topic_id, "texts": shown, **about}
            yield json.dumps(item, ensure_ascii=False) + "\n"


@command
def audit(
    parts: Parts = Parts(),
    *,
    paths: Annotated[Any, Flag(metavar="PATH…", positional=True, reads=list[str])] = (),
    columns: Columns = "",
    options: CollectionOptions = CollectionOptions(),
    choice: RuleChoice = RuleChoice(),
    shingles: Shingles = Shingles(),
    scoring: Scoring = Scoring(),
    judged: Labels = Labels(),
    work: Workers = Workers(),
    out: Out = None,
    progress: Progress | None = None,
) -> CollectionAudit:
    """Looks for faults in the documents, topics and judgments of a test collection, and says what they do to scores.

    Each part works alone; together they show more. Each part and the whole get a verdict: FAULTY, FAULTY IN PART,
    UNKNOWN or SOUND. Judgments that the runs contradict are looked for where --select names COLL14 or COLL15.

    Args:
        parts: what is audited.
        paths: beside options: what `check` takes, such as a BEIR folder, a table of questions with what was expected,
            or judgments, topics, documents and runs in any form.
        columns: what the columns of tables are, where their names do not say; see `check`.
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

        truerank collection audit questions.csv --docs corpus.jsonl

        truerank collection audit --docs corpus.jsonl --topics queries.jsonl --qrels test.tsv --out audit/

        truerank collection audit --qrels new.qrels --previous-qrels old.qrels --run bm25.run --run dense.run
        --fail-on faulty

    Source: Bernstein and Zobel (CIKM 2005); Fröbe et al. (ECIR 2020).
    """
    files = None
    if has_runs(paths):
        from truerank.sources.recognition import opened

        files = opened(
            paths, columns, options.measures, qrels=parts.qrels, run=parts.run, docs=parts.docs, test=parts.topics
        )
        sources = dict(files.sources)
        parts = replace(parts, topics=sources.pop("test", None), **sources)
    if not {"qrels", "docs", "topics"} & parts.given:
        raise OptionError("qrels", "nothing to audit", "give `qrels`, `docs` or `topics`")
    choice.check(kinds())
    audited = partial(
        _audited, parts, options=options, choice=choice, shingles=shingles, scoring=scoring, judged=judged
    )
    progress = progress or Quiet()
    if out is None:
        with TemporaryDirectory() as folder:
            found = audited(Job(Path(folder), open_engine(work.engine, work.workers), progress))
            return found if files is None else found.read_from(files.readings)
    inputs = inputs_of(
        table=files and files.paths, qrels=parts.qrels, docs=parts.docs, topics=parts.topics, train=parts.train,
        previous=parts.previous,
        judged_again=parts.judged_again or None,
        previous_qrels=parts.previous_qrels,
        run=list(named_runs(parts.run).values()) if "run" in parts.given else None, labels=judged.labels,
    )  # fmt: skip
    given: dict[str, Any] = {"options": options, "shingles": shingles, "scoring": scoring, "votes": judged.votes}
    if choice != RuleChoice():
        given["choice"] = choice
    with started("collection audit", inputs, given, out) as job:
        found = audited(Job(job.unfinished(), open_engine(work.engine, work.workers), progress))
        found = replace(found, folder=job.folder)
        publish(found, job)
    return found if files is None else found.read_from(files.readings)


@dataclass(frozen=True, eq=False)
class _Material:
    """Everything that was read; None for what was not given.

    Attributes:
        judgments: as they are in their source.
        upright: with topics and documents in their places, so that what follows from swapped ids is no other fault.
        pairs: these, one row for each pair.
    """

    judgments: JudgmentTable | None
    upright: JudgmentTable | None
    pairs: pl.DataFrame | None
    topics: TopicTable | None
    documents: DocumentTable | None
    duplicates: Duplicates
    runs: Mapping[str, pl.DataFrame]
    previous: pl.DataFrame | None
    options: CollectionOptions
    scoring: Scoring


def _displaced(material: _Material, around: Neighbours | None, fit: Fit | None) -> tuple[Fit | None, list[Instances]]:
    """The fit of judgments, and texts that stand beside their documents, where neighbouring texts fit better."""
    documents, topics = material.documents, material.topics
    if documents is None or topics is None or around is None:
        return fit, []
    if (moved := displacement(around, topics.texts(), documents.places)) is None:
        return fit, []
    fit = replace(moved[0], sources=() if fit is None else fit.sources)
    return fit, [replace(instances("displaced-text", moved[1], len(around.relevant)), here=fit.evidence)]


def _audited(
    parts: Parts,
    job: Job,
    *,
    options: CollectionOptions,
    choice: RuleChoice,
    shingles: Shingles,
    scoring: Scoring,
    judged: Labels,
) -> CollectionAudit:
    # Everything small is opened first, so that a fault in it costs no pass over the documents.
    said = _answers(judged)
    judgments = None if parts.qrels is None else read_judgments(parts.qrels)
    previous = None if parts.previous_qrels is None else usable(read_judgments(parts.previous_qrels))[0]
    topics = None if parts.topics is None else read_topic_table(parts.topics)
    runs = ranked_runs(parts.run)[0]
    pairs = None if judgments is None else usable(judgments)[0]
    wanted = any(choice.takes(kinds()[kind]) for kind in ("echo", "random-judgments"))
    overlap = _overlap(parts, topics, pairs, scoring.rel) if wanted else None
    relevant = None if pairs is None or topics is None else pairs.filter(pl.col("relevance") >= scoring.rel)
    around = None if relevant is None else Neighbours(relevant, options.seed)
    documents, duplicates, echo = None, no_duplicates(), None
    if parts.docs is not None:
        asked = asked_for(None if judgments is None else judgments.frame, runs, topics)
        compared = job.part("duplicates")
        documents, echo = _read(parts.docs, asked, overlap, shingles, compared, around=around, topics=topics)
        same = within(documents.compared(shingles), shingles, compared)
        notices = {row["doc_id"] for kind in ("error-page", "placeholder") for row in documents.found[kind]}
        duplicates = Duplicates(same.pairs, same.boilerplate, same.documents[0], said).without(notices)
    turned, pairs = _upright(judgments, topics, documents)
    material = _Material(judgments, turned, pairs, topics, documents, duplicates, runs, previous, options, scoring)
    found = [one for one in _instances(parts.train, material, job.progress) if one.count]
    job.progress.start("fit of judgments")
    fit = _fit(material, found)
    fit, displaced = _displaced(material, around, fit)
    found += displaced
    if fit is not None and pairs is not None:
        found += [one for one in fit_instances(fit, pairs["topic_id"].n_unique(), len(runs)) if one.count]
    job.progress.start("suspect judgments")
    contradicted = _suspects(material, fit, choice)
    if contradicted is not None:
        found += [one for one in contradicted.instances() if one.count]
    job.progress.start("scores")
    facts, low = _facts(material, found)
    repeats = strayed = None
    if echo is not None:
        repeats, repeated = shared_words(echo, options.confidence)
        strayed = astray(echo)
        low += [*repeated, *filter(None, [strayed])]
    job.progress.start("other judgments and versions")
    smaller, gone = _smaller(material, parts.previous)
    noise, wrong = _noise(material, parts)
    found += [one for one in (*low, *gone, *wrong) if one.count]
    found = [one for one in found if choice.takes(kinds()[one.kind])]
    job.progress.start("findings")
    findings = _findings(found, pairs, scoring.rel, choice)
    benchmark = recognised(None if topics is None else topics.ids, pairs)
    frames = [
        one.rows.with_columns(pl.lit(kinds()[one.kind].part).alias("part"), pl.lit(one.kind).alias("kind"))
        for one in found
    ]
    columns = list(INSTANCE_SCHEMA)
    rows = pl.concat([pl.DataFrame(schema=INSTANCE_SCHEMA), *(frame.select(columns) for frame in frames)])
    return CollectionAudit(
        verdicts=verdicts(findings, parts.given, choice, _unasked(strayed, around)),
        findings=findings,
        instances=rows,
        pairs=duplicates.answered,
        groups=duplicates.groups(),
        read=_counts(material),
        facts={
            **facts,
            **({} if repeats is None else {"echo": repeats}),
            **({} if smaller is None else {"smaller": smaller}),
            **({} if noise is None else {"noise": noise}),
            **({} if fit is None else {"fit": fit.json()}),
            **({} if contradicted is None else {"suspects": contradicted.facts()}),
            "looked_for": looked_for(parts.given, choice),
            **({} if benchmark is None else {"gallery": [benchmark.json()]}),
        },
        items=_items(material, rows),
        suspects="" if contradicted is None else contradicted.run(),
    )


def _unasked(strayed: Instances | None, around: Neighbours | None) -> set[str]:
    """The kinds of which so few topics show nothing."""
    few = around is None or around.relevant["topic_id"].n_unique() < FEWEST
    return {*["random-judgments"] * (strayed is None), *["displaced-text"] * few}


def _upright(
    judgments: JudgmentTable | None, topics: TopicTable | None, documents: DocumentTable | None
) -> tuple[JudgmentTable | None, pl.DataFrame | None]:
    """The judgments with swapped ids in their places, and one row for each pair."""
    if judgments is None:
        return None, None
    if len(swapped := swapped_rows(judgments.frame, topics, documents)):
        pairs = frozenset(swapped.select("topic_id", "doc_id").iter_rows())
        judgments = replace(judgments, frame=upright(judgments.frame, pairs).drop("turned"))
    return judgments, usable(judgments)[0]


def _instances(train: Sequence[str], material: _Material, progress: Progress) -> Iterator[Instances]:
    judgments, pairs, topics, documents = material.judgments, material.pairs, material.topics, material.documents
    options, rel, runs = material.options, material.scoring.rel, material.runs
    progress.start("judgments")
    if judgments is not None and material.upright is not None:
        yield from judgment_instances(material.upright, rel, options.grades)
        yield from reference_instances(judgments.frame, topics, documents)
    if documents is not None:
        yield from documents.instances()
        yield from material.duplicates.instances()
    if topics is not None:
        progress.start("topics")
        yield from topic_instances(topics, options.topic_similarity)
        if train:
            yield from other_splits(topics, train, options.topic_similarity)
        if documents is not None:
            progress.start("topics in documents")
            yield from verbatim_instances(topics.texts(), documents.compared(VERBATIM), pairs)
    if pairs is not None:
        if documents is not None:
            yield from group_instances(material.duplicates, pairs, rel)
        if runs:
            progress.start("runs")
            yield from run_instances(runs, pairs, rel, documents)
            yield from run_fault_instances(runs, pairs, material.scoring)
        if material.previous is not None:
            yield from version_instances(material.previous, pairs)


def _fit(material: _Material, found: Sequence[Instances]) -> Fit | None:
    """Whether the judgments fit their topics; ids that are spelt otherwise count as those that they mean."""
    pairs, documents, topics = material.pairs, material.documents, material.topics
    if pairs is None or not (material.runs or (documents is not None and topics is not None)):
        return None
    for one in found:
        for column, kind in (("doc_id", "respelt-document"), ("topic_id", "respelt-topic")):
            if one.kind == kind:
                meant = dict(one.rows.select(column, "other").iter_rows())
                pairs = pairs.with_columns(pl.col(column).replace(meant))
    return judgment_fit(
        pairs.unique(["topic_id", "doc_id"], keep="last", maintain_order=True),
        material.runs,
        topics=None if topics is None else topics.texts(),
        texts=None if documents is None else documents.texts,
        rel=material.scoring.rel,
        seed=material.options.seed,
    )


def _overlap(
    parts: Parts, topics: TopicTable | None, pairs: pl.DataFrame | None, rel: int
) -> Callable[[], WordOverlap] | None:
    """Makes what counts the words that topics have in common with documents; None where there is nothing to count."""
    if topics is None or pairs is None or parts.docs is None:
        return None
    relevant = pairs.filter(pl.col("relevance") >= rel).group_by("topic_id").agg("doc_id")
    return partial(WordOverlap, topics.texts(), dict(relevant.iter_rows()))


def _read(
    source: str,
    asked: Collection[str],
    overlap: Callable[[], WordOverlap] | None,
    shingles: Shingles,
    job: Job,
    *,
    around: Neighbours | None,
    topics: TopicTable | None,
) -> tuple[DocumentTable, WordOverlap | None]:
    """All that has to be known of every document, in one pass.

    Where ids come twice, another pass follows, in which only the first document of each id counts.
    """

    def kept(documents: Iterator[Document], folder: str) -> tuple[Sketches, WordOverlap | None]:
        counted = None if overlap is None else overlap()
        stream = documents if counted is None else counted.passing(documents)
        # What is asked of every document is computed while it is read.
        engine = replace(job.engine, ahead=False) if isinstance(job.engine, LocalEngine) else job.engine
        return keep(stream, shingles, replace(job.part(folder), engine=engine)), counted

    titles = Titles()
    beside = [titles.add] if around is None else [titles.add, around.add]
    texts = None if topics is None else [*topics.texts().values()]
    scan = DocumentScan(source, asked, beside, texts, frozenset() if around is None else {*around.relevant["doc_id"]})
    sketches, counted = kept(scan.documents(), "sketches")
    table = scan.finish()
    if table.repeated:
        sketches, counted = kept(table.distinct(), "sketches-of-first")
    table.sketches, table.titles = sketches, tuple(titles.instances())
    return table, counted


def _smaller(material: _Material, previous: str | None) -> tuple[dict[str, Any] | None, list[Instances]]:
    """What the documents that only an earlier version has do to runs."""
    documents, pairs, options = material.documents, material.pairs, material.options
    if previous is None or documents is None or pairs is None or not material.runs:
        return None, []
    wanted, now = asked_for(pairs, material.runs, None), frozenset(documents.ids())
    before = [one.document.doc_id for block in open_documents(previous, keep_empty=True).records() for one in block]
    distinct = dict.fromkeys(before)
    removed = [one for one in distinct if one in wanted and one not in now]
    unseen = [one in now for one in distinct if one not in wanted]
    relevant = set(pairs.filter(pl.col("relevance") >= material.scoring.rel)["doc_id"])
    resampling = Resampling(options.resamples, options.confidence, options.seed)
    ranked = RankedDocuments.of(pairs, dict(material.runs), material.scoring)
    placebos = document_placebos(
        ranked, removed, options.measures, by_state=Unseen(unseen.count(False), unseen.count(True)),
        resampling=resampling,
    )  # fmt: skip
    rows = [{"doc_id": one, "detail": "relevant" if one in relevant else ""} for one in removed]
    here = told_removal(placebos[0]) if removed else ""
    facts = {
        "before": len(before), "now": documents.count, "counted": len(removed), "relevant": len(relevant & {*removed}),
        "placebos": [one.json() for one in placebos],
    }  # fmt: skip
    return facts, [replace(instances("smaller-corpus", rows, len(asked_for(pairs, material.runs, None))), here=here)]


def _noise(material: _Material, parts: Parts) -> tuple[dict[str, Any] | None, list[Instances]]:
    """What wrong judgments allow, by pairs that were judged again."""
    if material.pairs is None or "judged_again" not in parts.given:
        return None, []
    # Here: without them an audit need not load what corrects scores.
    from truerank.audits.collection.label_noise import label_noise, read_again
    from truerank.audits.collection.second_grades import again_fault, best_cut

    options, pairs, again = material.options, material.pairs, read_again(parts.judged_again)
    remark, rel = "", material.scoring.rel
    if (cut := best_cut(pairs, again, rel)) is not None:
        again, remark = cut.at(cut.grade), f"{cut.sentence('the second')} "
    word, fault, remedy = again_fault(pairs, again, rel, options.confidence)
    if word == "NOT USABLE":
        return None, [instances("unfit-second-grades", [{"detail": f"{remark}{fault} {remedy}"}], 1)]
    resampling = Resampling(options.resamples, options.confidence, options.seed)
    facts, found = label_noise(
        pairs, again, material.runs, options.measures, scoring=material.scoring, resampling=resampling
    )
    return {**facts, "remarks": [*facts["remarks"], *filter(None, [f"{remark}{fault}".strip()])]}, found


def _suspects(material: _Material, fit: Fit | None, choice: RuleChoice) -> Suspects | None:
    """The judgments that the runs contradict; None where --select does not name them, or where they fit no topic."""
    asked = any(choice.names(kinds()[kind]) for kind in KINDS)
    if material.pairs is None or not material.runs or not asked or (fit and fit.word not in ("fits", "not asked")):
        return None
    options, documents, topics = material.options, material.documents, material.topics
    return suspects(
        material.runs, material.pairs, texts=None if documents is None else documents.texts,
        topics=None if topics is None else topics.texts(), rel=material.scoring.rel, share=options.suspect_share,
        seed=options.seed,
    )  # fmt: skip


def _facts(material: _Material, found: Sequence[Instances]) -> tuple[dict[str, Any], list[Instances]]:
    """Figures that are not findings by themselves; and the findings that need them."""
    facts: dict[str, Any] = {}
    pairs, options, scoring = material.pairs, material.options, material.scoring
    low: list[Instances] = []
    if pairs is not None:
        copies = representatives(material.duplicates.groups())
        frame, facts["ceilings"] = ceilings(pairs, options.measures, scoring, unreachable(found), copies)
        low.append(ceiling_instances(frame))
        resampling = Resampling(options.resamples, options.confidence, options.seed)
        candidates = shared_candidates(material.runs)
        facts["floors"], high = floors(
            pairs, options.measures, scoring, resampling, material.documents, candidates=candidates,
            tied=tied_runs(material.runs),
        )  # fmt: skip
        known = None if material.documents is None else material.documents.count
        low += [*high, candidate_instances(pairs, options.measures, candidates, known)]
    if material.documents is not None:
        facts["similarity"] = _bands(material.duplicates, options.confidence)
    if pairs is not None and material.runs:
        changes = {"effect": _cleaned(material, found)}
        if material.previous is not None:
            changes["versions"] = CollectionChange(material.previous, pairs)
        for name, change in changes.items():
            if change is not None:
                effect = measured_effect(
                    material.runs, change, options.measures, scoring,
                    draws=options.resamples, confidence=options.confidence, seed=options.seed,
                )  # fmt: skip
                facts[name] = plain(effect)
    return facts, low


def _cleaned(material: _Material, found: Sequence[Instances]) -> CollectionChange | None:
    """What cleaning would change; None where there is nothing to clean."""
    if material.judgments is None or material.pairs is None:
        return None
    rows = {one.kind: one.rows for one in found}
    empty = pl.DataFrame(schema=INSTANCE_SCHEMA)
    rules = closing_of(lambda kind: rows.get(kind, empty), representatives(material.duplicates.groups()))
    after, changes = closed(material.judgments.frame, rules)
    if not len(changes) and not rules.representatives:
        return None
    return CollectionChange(
        usable(material.judgments)[0], after.select("topic_id", "doc_id", "relevance"), rules.representatives
    )


def _findings(
    found: Sequence[Instances], pairs: pl.DataFrame | None, rel: int, choice: RuleChoice
) -> tuple[CollectionFinding, ...]:
    """Faults first, then doubts, then notes; within them in the order of the catalogue."""
    by_kind = {one.kind: one for one in found}
    ordered = []
    for name, kind in kinds().items():
        if (own := by_kind.get(name)) is not None:
            rows = own.rows.head(_EXAMPLES).iter_rows(named=True)
            examples = tuple({key: value for key, value in row.items() if value not in ("", 0)} for row in rows)
            here, reason = effect_here(own, pairs, rel), choice.reason(kind)
            ordered.append(CollectionFinding(kind, own.count, own.of, examples, here, reason))
    return tuple(sorted(ordered, key=lambda one: SEVERITIES.index(one.kind.severity)))


def _items(material: _Material, instances: pl.DataFrame) -> tuple[str, ...]:
    """Lines of pairs for the judging page."""
    if material.documents is None:
        return ()
    drawn = _drawn_pairs(material.duplicates, material.options.sample, material.options.seed)
    contradicted = instances.filter(pl.col("kind").is_in(["contradicted-group", "doubtful-contradiction"]))
    wanted = {*drawn["left"], *drawn["right"], *contradicted["doc_id"], *contradicted["other"]}
    topics = {} if material.topics is None else material.topics.texts()
    return tuple(_item_lines(drawn, contradicted, material.documents.texts(wanted), topics))


def _counts(material: _Material) -> dict[str, Any]:
    read: dict[str, Any] = {}
    if material.judgments is not None:
        frame, spec = material.judgments.frame, material.judgments.spec
        read["qrels"] = {
            "name": "the program" if spec is None else spec.name,
            "judgments": len(frame),
            "topics": frame["topic_id"].n_unique(),
            "documents": frame["doc_id"].n_unique(),
            "relevant": int((frame["relevance"] >= material.scoring.rel).sum()),
            "grades": {str(grade): count for grade, count in sorted(frame["relevance"].value_counts().iter_rows())},
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
