"""Are the files what they seem? Ids, ranks, scores, topics, and how the system's list was made, before any score."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Floats
from truerank.audits.collection.fit import judgment_fit
from truerank.audits.collection.floors import shared_candidates
from truerank.audits.collection.run_faults import Files, result_counts, run_faults
from truerank.audits.collection.run_origins import run_origins
from truerank.claims.claim import Claim, ClaimEstimate, Repair, became, beyond_chance, change_by
from truerank.claims.inquiry import ClaimMaterial, Inquiry, refuse_other_version
from truerank.claims.results import ClaimAnswer
from truerank.claims.unjudged import cutoff_of, judged_results
from truerank.measures import difference_interval, evaluate
from truerank.measures.floors import Floor, fixed_list
from truerank.measures.grammar import lower_is_better, parse_measures
from truerank.measures.null_rankers import NullRanker, null_rankers, random_order
from truerank.measures.rankings import on_topics
from truerank.measures.run_faults import RunFault
from truerank.measures.topic_lists import TopicLists
from truerank.sources import open_documents, read_topics
from truerank.text.identifiers import likely_cause, natural
from truerank.text.printable import and_more, capital, counted

#: So large a share of the topics that are at fault leaves no claim as it was, whatever the others show.
LARGE: Final = 0.1
#: How much of a lead is left at least without a share of the topics, those in which two runs are least alike.
_LEFT: Final[Mapping[float, float]] = {0.25: 0.4, 0.5: 0.1}
#: Lists that are shorter do not tell how alike they are.
_SHORT: Final = 20
#: So seldom are the topics that a system lacks as much harder by chance.
LUCK: Final = 0.05


#: How the headline names what is left out, by kind of fault.
_WITHOUT: Final[Mapping[str, str]] = {
    "misplaced-judgments": "whose judgments belong to another topic",
    "misplaced-run": "with the results of another topic",
    "foreign-results": "whose results have ids that nothing else has",
    "copied-topics": "that are copies of another one",
    "rising-scores": "whose scores contradict their ranks",
    "constant-scores": "whose scores are all the same",
    "constant-ranks": "whose ranks are all the same",
}
_MISPLACED: Final[Mapping[str, str]] = {
    "shifted": "belong to other topics",
    "shuffled": "fit other topics as well as their own",
    "inverted": "rank documents the wrong way round",
    "other collection": "do not fit their topics",
}
#: Kinds of topics that one system failed on.
_FAILED: Final = ("failed-topics", "lacking-topics")
#: Notes that the answer says in any case.
_SAID: Final = (
    "repeated-pairs", "unjudged-topics", "unanswered-topics", "nearly-identical-runs",
    "shared-lists", "lacking-topics",
)  # fmt: skip
#: Null rankers by what they rank; one that scores less is none to speak of.
_FLOORS: Final = {
    "collection": "One list for all topics",
    "candidates": "A random order of the documents that both rank",
    "judged": "An order of the judged documents that never reads the query",
}
_RERANKED: Final = ("random order", "often relevant elsewhere")
_LOW: Final = 0.01
#: Of what both runs hold, so few unjudged documents are those of rerankers of judged ones.
_UNJUDGED: Final = 0.01
_DEPTH: Final = 10
#: Of the first results of a run so many are documents, or it was made on others.
_MANY: Final = 0.5
#: To so many other topics each list is given, at most.
_EXCHANGES: Final = 20


def files_answer(given: Inquiry, material: ClaimMaterial, qrels: pl.DataFrame, claim: Claim | None) -> ClaimAnswer:
    """What is wrong with the files, what can be allowed for, and the scores of both runs."""
    refuse_other_version(material)
    files = _files(given, material, qrels, claim)
    pair = files.pair
    faults = run_faults(files)
    if not any(fault.weight == "fault" for fault in faults):
        # Results of topics with the judgments of others are in no order, either.
        origins = tuple(_misplaced(given, files)) or run_origins(files, given.scoring.rel)
        faults += origins
    # A run that is alone is looked at as both of a pair.
    faults = tuple(dict.fromkeys(faults))
    faults += tuple(RunFault("repeated-pairs", "", "note", frozenset(), one, "") for one in material.repeated)
    left_out = {(fault.run, topic) for fault in faults if fault.weight == "topics" for topic in fault.topics}
    # Results of a form that is no document's fit no topic, either.
    faults = tuple(
        one
        for one in faults
        if one.kind != "failed-topics"
        or 2 * sum((one.run, topic) in left_out for topic in one.topics) < len(one.topics)
    )
    grave = [fault for fault in faults if fault.weight == "fault" and fault.run in ("", *pair)]
    facts: dict[str, Any] = {"faults": [_plain(fault) for fault in faults]}
    if claim is not None:
        results = judged_results(claim)
        facts["scores"] = {
            name: {
                "score": float(np.nanmean(claim.evaluation.of(name, claim.measure))),
                "judged": float(results.judged[results.within(name)].mean()) if results.within(name).any() else 0.0,
                "results": list(result_counts(claim.runs[name], claim.evaluation.topics)),
            }
            for name in claim.pair
        }
        null = _null_ranker(claim, qrels, given)
        facts["floor"] = {**null.floor.json(), "ranks": null.of, "by": null.name}
    if grave:
        remedies = " ".join(dict.fromkeys(fault.remedy for fault in grave))
        return ClaimAnswer.at_fault(grave[0].reason, remedies, facts, " ".join(fault.reason for fault in grave))
    evidence = _sentence(claim, facts)
    named = " ".join(fault.reason for fault in faults)
    own = [fault.reason for fault in faults if fault.weight != "note" and fault.run in ("", *pair)]
    answer = ClaimAnswer(
        "files", "FAULTS" if faults else "AS THEY SEEM", f"{named} {evidence}".strip(), "unknown", "",
        settles=" ".join(dict.fromkeys(fault.remedy for fault in faults if fault.weight != "note")), facts=facts,
        remark=" ".join(material.repeated), found=own[0] if own else "",
    )  # fmt: skip
    return answer if claim is None else _where_alike(claim, _allowed_for(claim, answer, faults, given, null), files)


def _null_ranker(claim: Claim, qrels: pl.DataFrame, given: Inquiry) -> NullRanker:
    """The best ranking that never reads the query: a list for all topics, or what rerankers got in another order."""
    fixed = fixed_list(qrels, claim.measure, claim.scoring, seed=given.resampling.seed)
    own = NullRanker("the best fixed list", "collection", fixed)
    if not claim.runs:
        return own
    topics, keys = qrels["topic_id"].unique(), ["topic_id", "doc_id"]
    pair = {name: on_topics(run.select(keys), topics) for name, run in claim.pair.items()}
    ranked = sum(map(len, pair.values()))
    unjudged = ranked - sum(len(run.join(qrels, on=keys, how="semi")) for run in pair.values())
    if not ranked or unjudged > _UNJUDGED * ranked:
        # Where both rank the same documents, their order is what they did.
        both = shared_candidates(pair)
        random = None if both is None else random_order(qrels, claim.measure, claim.scoring, both)
        if both is None or not random:
            return own
        mean = float(np.mean([*random.values()]))
        floor = Floor(mean, None, None, len(both), len(random), len(random), random, "topics")
        return max(own, NullRanker("random order", "candidates", floor), key=lambda one: one.floor.mean or 0.0)
    # Judged documents were reranked.
    others = null_rankers(qrels, claim.measure, claim.scoring, seed=given.resampling.seed)
    # Orders by id are left to the collection audit: no ranker is known to rank by them.
    judged = [
        one
        for one in others
        if one.of == "judged" and one.name in _RERANKED and one.floor.topics == qrels["topic_id"].n_unique()
    ]
    return max((own, *judged), key=lambda one: one.floor.mean or 0.0)


def _above(claim: Claim, null: NullRanker) -> ClaimEstimate:
    """What the system has above a null ranker, on the topics that it answers."""
    by_topic, topics = null.floor.by_topic, claim.evaluation.topics
    answered = set(claim.runs[claim.system]["topic_id"].unique() if claim.runs else topics)
    lowest = np.array([by_topic.get(one, np.nan) if one in answered else np.nan for one in topics])
    return claim.estimate(claim.evaluation.of(claim.system, claim.measure) - lowest, "above the floor")


def reads_queries(claim: Claim, name: str) -> bool:
    """Whether a run scores more than its own lists do, each given to other topics, by more than chance."""
    run = claim.runs[name].select("topic_id", "doc_id", "rank", "score")
    topics = sorted(frozenset(run["topic_id"]) & frozenset(claim.evaluation.topics))
    steps = range(1, min(len(topics), _EXCHANGES + 1))
    moved = {
        f"{step}": run.with_columns(
            pl.col("topic_id").replace_strict(topics, topics[step:] + topics[:step], default=None)
        ).drop_nulls("topic_id")
        for step in steps
    }
    if not moved:
        return False
    found = evaluate(claim.qrels, moved, claim.measure, claim.scoring)
    others: Floats = np.nanmean(found.values[:, 0], axis=0)
    own = claim.evaluation.of(name, claim.measure)
    apart = difference_interval(own[known := ~np.isnan(own)], others[known], confidence=claim.confidence)
    return apart.low is not None and apart.low > 0


_RULED_OUT: Final = "you can rule that out"


class _Objection(NamedTuple):
    """What the files show against a claim, the difference under it, and where it may be relied on all the same."""

    says: tuple[str, ...]
    row: ClaimEstimate
    unless: str = _RULED_OUT


def _allowed_for(
    claim: Claim, answer: ClaimAnswer, faults: tuple[RunFault, ...], given: Inquiry, null: NullRanker
) -> ClaimAnswer:
    """The answer with what leaving out the topics that a fault touches does, and with what else changes the claim."""
    own = [_counting(claim, fault) for fault in faults if fault.run in ("", claim.system, claim.baseline)]
    touched = [fault for fault in own if fault.weight == "topics"]
    objections = [*_objections(claim, own), *_no_more(claim, null)]
    remarks = [fault.reason for fault in own if fault.kind in _SAID]
    effect, estimates, repair = claim.base.effect, [one.row for one in objections if one.row is not claim.base], None
    consequence = "No fault was found in the files." if not own else "The files do not change the difference."
    found, split = next((one.reason for one in own if one.weight != "note"), ""), tuple[ClaimEstimate, ...]()
    found = objections[0].says[0] if objections else found
    for fault in own:
        if not (told := _told(claim, fault)):
            continue
        row = told[-1]
        estimates += [] if any(one.label == row.label for one in estimates) else [row]
        moved = fault.kind == "short-lists" or beyond_chance(claim, fault.topics)
        says = f"{capital(row.label)}, {became(claim, claim.base, row, moved=moved)}."
        remarks.append(says)
        less = moved and row.effect == claim.base.effect == "stands" and _is_less(claim, fault, row)
        if not split or (less and effect != "smaller"):
            consequence = says
            split = (told[0], replace(row, label=f"{row.topics:,d} other {claim.unit}")) if len(told) > 1 else ()
        if less:
            effect, found = "smaller", fault.reason
    if objections:
        consequence = " ".join(part for one in objections for part in one.says)
    facts = dict(answer.facts)
    if touched:
        topics = frozenset(topic for fault in touched for topic in fault.topics)
        for one in touched:
            named = ", ".join([*sorted(one.topics, key=natural)[:5], *["…"] * (len(one.topics) > 5)])
            remarks.append(f"Left out: {counted(len(one.topics), 'topic')} {_WITHOUT[one.kind]} ({named}).")
        kinds = list(dict.fromkeys(_WITHOUT[fault.kind] for fault in touched))
        found = touched[0].reason
        which = ("that repeat another one", "copies") if touched[0].kind == "copied-topics" else ("at fault", kinds[0])
        where = "With each counted once" if kinds == [_WITHOUT["copied-topics"]] else ""
        what = f"without the {counted(len(topics), 'topic')} {' or '.join(kinds)}"
        repair = Repair(what, topics, which=which, where=where)
        change = change_by(claim, (repair,), repair.what, given.resampling)
        if change is None:
            return replace(
                answer, effect="unknown", consequence="No topic is left without these faults.", repair=repair
            )
        effect, estimates = change.effect, [change.after, *estimates]
        facts |= {"change": change.size, "moved": change.moved, "beside": change.beside}
        says = became(claim, claim.base, change.after, moved=change.moved)
        consequence = f"{capital(repair.what)}, {says}. {change.beside}".strip()
    return replace(
        answer, effect=effect, consequence=consequence, estimates=tuple(estimates), repair=repair, facts=facts,
        exception=tuple(part for one in objections for part in one.says), plausible=bool(objections), split=split,
        remark=" ".join(remarks), found=found, unless=objections[0].unless if objections else answer.unless,
    )  # fmt: skip


def _counting(claim: Claim, fault: RunFault) -> RunFault:
    """The fault, which says what counts."""
    fault = fault._replace(reason=fault.reason.replace("the measure counts", f"{claim.measure} counts"))
    zero = fault.kind == "lacking-topics" and claim.scoring.missing != "skip"
    return fault._replace(reason=f"{fault.reason[:-1]}; these count 0.") if zero else fault


def _is_wide(claim: Claim, fault: RunFault) -> bool:
    return len(fault.topics) >= LARGE * len(claim.evaluation.topics)


def _is_less(claim: Claim, fault: RunFault, row: ClaimEstimate) -> bool:
    """Whether so much less of a lead is left, or so many answers of the baseline lack, that its size is another one."""
    size, lacks = claim.base.value or 0.0, fault.kind == "lacking-topics" and fault.run == claim.baseline
    return (row.high is not None and row.high < size) or (lacks and _is_wide(claim, fault) and (row.value or 0) < size)


def _no_more(claim: Claim, null: NullRanker) -> Iterable[_Objection]:
    """What a system says that scores no more than a ranking which never reads the query."""
    floor = null.floor.mean or 0.0
    low = not lower_is_better(claim.measure) and floor >= _LOW and _above(claim, null).effect != "stands"
    if low and not (null.of == "collection" and reads_queries(claim, claim.system)):
        says = f"{_FLOORS[null.of]} scores {floor:.3f}{claim.measured}."
        yield _Objection(
            (says, f"{claim.system} does not score more than that, as far as chance lets see."), claim.base
        )


def _objections(claim: Claim, faults: Iterable[RunFault]) -> Iterable[_Objection]:
    """Faults that nothing repairs, where the claim changes without what they touch, or that touch many topics."""
    for fault in faults:
        other = claim.baseline if fault.run == claim.system else claim.system
        if fault.kind == "fixed-list" and not reads_queries(claim, fault.run):
            yield _Objection((fault.reason, f"{fault.run} does not read the query."), claim.base)
        skipped = fault.kind == "lacking-topics" and claim.scoring.missing == "skip"
        if skipped and harder(claim, fault.run, fault.topics):
            says = f"These are harder than others: {other} does worse on them, too."
            yield _Objection((fault.reason, says), claim.base, "these do not matter to you")
        if claim.base.effect != "stands":
            continue
        if fault.kind == "short-lists" and (row := _as_deep(claim, fault)).effect != "stands":
            says = f"{capital(row.label)}, {became(claim, claim.base, row, moved=True)}."
            yield _Objection((fault.reason, says), row, "its longer lists are what you want")
        if fault.exception:
            yield from _doubted(claim, fault)
        if fault.weight == "topics" and fault.kind != "copied-topics" and _is_wide(claim, fault):
            says = f"With so many {claim.unit} at fault, others may be at fault too."
            yield _Objection((fault.reason, says), claim.base, f"the other {claim.unit} are sound")


def _where_alike(claim: Claim, answer: ClaimAnswer, files: Files) -> ClaimAnswer:
    """The answer with the difference where the two runs are most alike, if hardly any lead is left there.

    How alike they are, no score says: a topic counts by how far down one has what the other ranks first, or lacks it.
    A fault in a part of a run, or of the index that it was made on, is in topics where they are not.
    """
    if answer.exception or answer.repair is not None or claim.base.effect != "stands":
        return answer
    pair = [files.judged_lists[name] for name in claim.pair]
    if min(float(np.median(lists.lengths)) for lists in pair) < _SHORT:
        return answer
    keys, depth = ["topic_id", "doc_id"], (pl.col("place") - 0.5) / pl.col("size")
    depths = list[pl.DataFrame]()
    for mine, other in (pair, pair[::-1]):
        first, sizes = mine.first(_DEPTH, keys).select(keys), {"topic_id": other.names, "size": other.lengths}
        # Of all results few are looked at, or this would take several times as long.
        there = other.select(*keys).with_columns(other.places).join(first, on=keys, how="semi")
        there = there.join(pl.DataFrame(sizes).group_by("topic_id").sum(), on="topic_id").select(*keys, depth=depth)
        rows = first.join(there, on=keys, how="left")
        depths.append(rows.group_by("topic_id").agg(pl.col("depth").fill_null(1.0).mean()))
    farthest = dict(pl.concat(depths).group_by("topic_id").agg(pl.col("depth").max()).iter_rows())
    gaps = {topic: gap for topic, gap in zip(claim.evaluation.topics, claim.gaps, strict=True) if not np.isnan(gap)}
    topics, size = sorted(gaps, key=lambda topic: -farthest.get(topic, 0.0)), np.mean([*gaps.values()])
    for share, least in _LEFT.items():
        unlike, alike = topics[: (few := round(share * len(topics)))], topics[few:]
        what = f"on the {len(alike):,d} topics where both return the most similar results"
        row = claim.of(claim.evaluation, what, frozenset(alike))
        if row.value is None or row.effect == "stands" or row.value >= least * size:
            continue
        found = f"The lead comes from {few:,d} of {len(topics):,d} topics, where the two return different results."
        says = f"{capital(what)}, {became(claim, claim.base, row, moved=False)}."
        return replace(
            answer, estimates=(*answer.estimates, row), exception=(found, says), plausible=True, consequence=says,
            settles=f"Look whether a file is wrong on these topics: {and_more(unlike, 5)}.", found=found,
        )  # fmt: skip
    return answer


def harder(claim: Claim, name: str, topics: Collection[str]) -> bool:
    """Whether the other system does worse on the topics that one lacks than on its others, by more than chance."""
    other = claim.baseline if name == claim.system else claim.system
    scores = claim.evaluation.of(other, claim.measure) * (-1 if lower_is_better(claim.measure) else 1)
    within = np.array([topic in topics for topic in claim.evaluation.topics])
    parts = [scores[mask & ~np.isnan(scores)] for mask in (within, ~within)]
    return all(map(len, parts)) and bool(scipy.stats.mannwhitneyu(*parts, alternative="less").pvalue <= LUCK)


def _told(claim: Claim, fault: RunFault) -> tuple[ClaimEstimate, ...]:
    """What is told in any case: the difference with lists of one length, or on topics that failed and on the others."""
    if fault.kind == "short-lists":
        return (_as_deep(claim, fault),)
    every, what = frozenset(claim.answered), fault.exception
    if fault.kind not in _FAILED or not every & fault.topics or every <= fault.topics:
        return ()
    touched = claim.of(claim.evaluation, what.removeprefix("without the "), fault.topics)
    return touched, claim.of(claim.evaluation, what, every - fault.topics)


def _as_deep(claim: Claim, fault: RunFault) -> ClaimEstimate:
    """The difference where both runs have as few results as the one whose lists end above the cutoff."""
    return claim.of(claim.scored(runs=ended_with(claim, fault.run)), f"with both lists as short as {fault.run}'s")


def ended_with(claim: Claim, shorter: str) -> dict[str, pl.DataFrame]:
    """Both runs with, topic by topic, no more results than one of them has."""
    ends = claim.pair[shorter].group_by("topic_id").agg(pl.len().alias("end"))
    runs = dict[str, pl.DataFrame]()
    for name, run in claim.pair.items():
        end = run.select("topic_id").join(ends, on="topic_id", how="left", maintain_order="left")["end"]
        runs[name] = run.filter((TopicLists(run).places <= end).fill_null(True))
    return runs


def _doubted(claim: Claim, fault: RunFault) -> Iterable[_Objection]:
    """What a run shows of how it was made, where the claim is not shown without what that touches."""
    if not fault.topics and not fault.documents:
        # A baseline that knows the judgments speaks for the system.
        if fault.run == claim.system or fault.kind in ("lost-documents", "other-index"):
            yield _Objection((fault.reason,), claim.base)
        return
    left = claim.repaired((Repair(fault.exception, fault.topics, fault.documents),))
    seen = fault.kind == "judgments-in-sight" and _is_wide(claim, fault)
    if left is None or (seen and fault.run == claim.system):
        yield _Objection((fault.reason,), claim.base)
    elif left.base.effect != "stands":
        row = replace(left.base, label=fault.exception)
        says = f"{capital(row.label)}, {became(claim, claim.base, row, moved=beyond_chance(claim, fault.topics))}."
        unless = f"{fault.run} would fail there again" if fault.kind in _FAILED else _RULED_OUT
        yield _Objection((fault.reason, says), row, unless)


def _pair(given: Inquiry, material: ClaimMaterial, claim: Claim | None) -> tuple[str, str]:
    if claim is not None:
        return claim.system, claim.baseline
    named = [name for name in (given.sources.system, given.sources.baseline) if name and name in material.runs]
    names = [*named, *(name for name in material.runs if name not in named)]
    return names[0], names[min(1, len(names) - 1)]


def _files(given: Inquiry, material: ClaimMaterial, qrels: pl.DataFrame, claim: Claim | None) -> Files:
    pair = _pair(given, material, claim)
    depth = int(parse_measures(given.options.measure)[0].params.get("cutoff") or _DEPTH) if claim is None else (
        cutoff_of(claim)
    )  # fmt: skip
    runs = {name: material.runs[name] for name in (*pair, *(name for name in material.runs if name not in pair))}
    topics = None
    if given.sources.test is not None:
        topics = {
            topic.topic_id: topic.title.strip() or topic.description for topic in read_topics(given.sources.test).topics
        }
    results = None if given.opened is None else given.opened.results
    empty = {} if results is None else results.empty
    files = Files(runs, pair, qrels, material.held, topics, depth, given.scoring.ties == "rank", empty, material.before)
    left = ~pl.col("doc_id").is_in(material.gone.implode())
    if len(material.gone) and all(files.first[name].select(left.mean()).item() >= _MANY for name in pair):
        # What the documents lost is the question of the versions.
        files = replace(files, runs={name: run.filter(left) for name, run in runs.items()})
    return files


def _sentence(claim: Claim | None, facts: Mapping[str, Any]) -> str:
    if claim is None:
        return "" if facts["faults"] else "Ids, ranks, scores and topics fit each other."
    scores, floor = facts["scores"], facts["floor"]
    both = ", ".join(f"{name} {row['score']:.3f}" for name, row in scores.items())
    ends = [row["results"] for row in scores.values()]
    lengths = [f"{low:,d} to {high:,d}" if low < high else f"{high:,d}" for low, _, high in ends]
    every = "both" if ends[0] == ends[1] else f"{claim.system} {lengths[0]}, {claim.baseline}"
    lowest = "" if floor["mean"] is None else f" {_FLOORS[floor['ranks']]} scores {floor['mean']:.3f}."
    return f"Scores{claim.measured}: {both}. Results per topic: {every} {lengths[1]}.{lowest}"


def _misplaced(given: Inquiry, files: Files) -> Iterable[RunFault]:
    """Judgments that belong to other topics than those whose ids they have."""

    def texts(wanted: Collection[str]) -> dict[str, str]:
        found = [*open_documents(str(given.sources.docs), keep_empty=True).chosen(wanted)]
        return {each.doc_id: each.text for each in reversed(found)}

    reader = None if given.sources.docs is None else texts
    fit = judgment_fit(
        files.qrels, files.lists, topics=files.topics, texts=reader, rel=given.scoring.rel, seed=given.resampling.seed,
        enough=files.pair,
    )  # fmt: skip
    judged = files.qrels["topic_id"].n_unique()
    if fit.word in _MISPLACED:
        astray = frozenset(topic for topic, _ in fit.topics)
        whole = fit.of_all(judged)
        cause = ""
        if fit.word == "other collection":
            shown = pl.concat([run["doc_id"] for run in files.runs.values()]).unique()
            unknown = files.qrels["doc_id"].unique(maintain_order=True)
            cause = likely_cause(unknown.filter(~unknown.is_in(shown.implode())), shown)
        yield RunFault(
            "misplaced-judgments", "", "fault" if whole else "topics", frozenset() if whole else astray,
            f"The judgments {_MISPLACED[fit.word]}{cause}: {fit.evidence}",
            "Give judgments and topics of one collection, with the same ids, and grades that rise with relevance.",
        )  # fmt: skip


def _plain(fault: RunFault) -> dict[str, Any]:
    return {**fault._asdict(), "topics": sorted(fault.topics), "documents": len(fault.documents)}
