"""Are the files of a comparison what they seem? What runs, judgments and topics show of each other before any score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from truerank.measures.run_faults import RunFault, score_faults
from truerank.measures.topic_lists import TopicLists
from truerank.text.identifiers import likely_cause, natural, respelt
from truerank.text.normalising import spoken
from truerank.text.printable import counted

#: A topic has no results of this collection where fewer of its first results are documents.
_HALF: Final = 0.5
#: By chance, what lacks is the end of an order so seldom.
_CHANCE: Final = 0.001
#: Lists that are the same for so many results, over so many topics at least, do not depend on the topic.
FIXED, _FIXED_TOPICS = 0.8, 5
#: So many identifiers that have a counterpart, or topics, are no accident: few documents may be in two files.
_FEW, _SOME = 3, 0.05
#: So many topics, results of each, and such a share of the topics with the same lists are no accident.
_SAME, _TENTH = 5, 0.1
#: Ids that other files have, written otherwise: such a share of the results, and of those that may be.
_PART, _MET = 0.01, 0.25
#: Lists are far shorter than is usual where they are so many times shorter.
_FAR: Final = 10
#: A run hardly meets the judgments where it does so for such a share of what another one does.
HARDLY: Final = 0.05


@dataclass(frozen=True, eq=False)
class Files:
    """What is looked at.

    Attributes:
        runs: by name, columns topic_id, doc_id, rank, score; those of the comparison first.
        pair: the two runs that are compared.
        qrels: the judgments, columns topic_id, doc_id, relevance.
        documents: of the results and judgments, the ids that the collection has, in its order; None where no documents
            were given.
        topics: the text of each topic; None where no topics were given.
        depth: the ranks that the measure looks at.
        by_rank: whether ties are broken by the rank column.
        empty: by run, the topics for which its system was asked, and retrieved nothing.
        before: of the same ids, those that an earlier version of the collection has, in its order.
    """

    runs: Mapping[str, pl.DataFrame]
    pair: tuple[str, str]
    qrels: pl.DataFrame
    documents: pl.Series | None
    topics: Mapping[str, str] | None
    depth: int
    by_rank: bool = False
    empty: Mapping[str, frozenset[str]] = field(default_factory=dict)
    before: pl.Series | None = None

    @cached_property
    def judged(self) -> pl.Series:
        """The judged topics."""
        return self.qrels["topic_id"].unique()

    @cached_property
    def lists(self) -> dict[str, TopicLists]:
        """The runs by topic."""
        return {name: TopicLists(run) for name, run in self.runs.items()}

    @cached_property
    def judged_lists(self) -> dict[str, TopicLists]:
        """The runs on judged topics."""
        return {name: lists.on(self.judged) for name, lists in self.lists.items()}

    @cached_property
    def first(self) -> dict[str, pl.DataFrame]:
        """The first results of each run on judged topics, with their place."""
        return {name: lists.first(max(self.depth, 10)) for name, lists in self.judged_lists.items()}

    @cached_property
    def met(self) -> dict[str, int]:
        """How many first results of each run are judged."""
        keys = ["topic_id", "doc_id"]
        return {name: len(rows.join(self.qrels, on=keys, how="semi")) for name, rows in self.first.items()}

    @cached_property
    def held(self) -> pl.Series | None:
        """The documents of the collection among them: looking each run's up in the whole one takes far longer."""
        if self.documents is None:
            return None
        shown = pl.concat([rows["doc_id"] for rows in self.first.values()]).unique()
        return self.documents.filter(self.documents.is_in(shown.implode()))


def run_faults(files: Files) -> tuple[RunFault, ...]:
    """What is wrong with the files of a comparison, the gravest first."""
    found = [fault for name in files.runs for fault in _of_run(files, name)]
    found += [*_other_set(files), *_lacking(files), *_alike(files), *_copies(files)]
    found += [*_unjudged(files), *_no_relevant(files)]
    order = ("fault", "topics", "doubt", "note")
    return tuple(sorted(found, key=lambda fault: order.index(fault.weight)))


def result_counts(run: pl.DataFrame, judged: Collection[str]) -> tuple[int, int, int]:
    """The smallest, the median and the largest number of results of a judged topic; 0 for one that the run lacks."""
    counts = _counts(TopicLists(run).on(pl.Series([*judged], dtype=pl.String)))["count"].sort().to_list()
    counts = [*[0] * (len({*judged}) - len(counts)), *counts]
    return (counts[0], counts[len(counts) // 2], counts[-1]) if counts else (0, 0, 0)


def _counts(lists: TopicLists) -> pl.DataFrame:
    """How many results each topic has: topic_id, count."""
    return pl.DataFrame({"topic_id": lists.names, "count": lists.lengths}).group_by("topic_id").sum()


def _of_run(files: Files, name: str) -> Iterable[RunFault]:
    own = files.judged_lists[name]
    if not len(own):
        wanted = files.lists[name].topics
        yield RunFault(
            "other-topics", name, "fault", frozenset(),
            f"None of the {len(wanted):,d} topics of {name} is judged{likely_cause(wanted, files.judged)}.",
            "Give the run and the judgments of the same topics, with the same ids.",
        )  # fmt: skip
        return
    yield from _foreign(files, name)
    yield from score_faults(name, own, by_rank=files.by_rank)
    yield from _fixed(files, name)


def _foreign(files: Files, name: str) -> Iterable[RunFault]:
    """Results that are in no collection: with documents by their ids, without them by the form of the ids."""
    first = files.first[name]
    if files.documents is None and first["place"].max() == 1:
        return  # an answer that nobody expected is no id in another form
    if files.held is not None:
        known = files.held
    else:
        # One of the ids alone is looked for in all other files.
        alone = first["doc_id"].unique()
        for other in (files.qrels, *(run for other, run in files.runs.items() if other != name)):
            shown = other["doc_id"].filter(other["doc_id"].is_in(alone.implode()))
            alone = alone.filter(~alone.is_in(shown.unique().implode()))
            if not len(alone):
                break
        known = alone
    held = pl.col("doc_id").is_in(known.implode())
    first = first.with_columns((held if files.documents is not None else ~held).alias("known"))
    unknown = first.filter(~pl.col("known"))["doc_id"].unique(maintain_order=True)
    if not len(unknown):
        return
    # Of two runs whose ids do not meet, the one that meets the judgments is right.
    keys = ["topic_id", "doc_id"]
    others = [
        run.select(keys)
        for other, run in files.runs.items()
        if other != name and files.met[other] >= HARDLY * files.met[name]
    ]
    if files.documents is None and len(files.runs) > 1 and not others:
        return
    pairs = pl.concat([files.qrels.select(keys), *others])
    shown = pl.concat([rows["doc_id"] for rows in files.first.values()])
    last = "" if files.held is None else cut_short(files.held, _ordered(shown, files.before))
    cause = likely_cause(unknown, pairs["doc_id"].unique() if files.documents is None else files.documents, last)
    shares = first.group_by("topic_id").agg(pl.col("known").mean())
    # Without the documents, half of the results may honestly be in no other file.
    least = _HALF if files.documents is not None else 1e-9
    touched = frozenset(shares.filter(pl.col("known") < least)["topic_id"])
    # Where some results of all topics are written otherwise, leaving some topics out repairs nothing.
    rest = first.filter(~pl.col("topic_id").is_in([*touched]))
    spelling = _otherwise(rest, pairs, files.judged_lists[name].select(*keys), files.qrels["doc_id"])
    cause = cause or spelling
    # Without the documents, an unknown id may be a document that no other run found: its form has to be another one.
    if files.documents is None and not cause:
        return
    unmet = int((~first["known"]).sum())
    where = (
        "have ids that the collection lacks" if files.documents is not None else "have ids that are in no other file"
    )
    counted = f"{unmet:,d} of {len(first):,d} top results of {name} {where}{cause}"
    mend = "Give the whole file of documents, or the one"
    if "cut short" not in cause:
        mend = "Write the ids of the run as the collection has them, or give the collection"
    remedy = f"{mend} that the run was made on."
    if len(touched) >= _HALF * len(shares) or spelling:
        yield RunFault("foreign-results", name, "fault", frozenset(), f"{counted}.", remedy)
    elif touched:
        reason = f"{counted}: all of them or most, for {len(touched):,d} of {len(shares):,d} topics."
        yield RunFault("foreign-results", name, "topics", touched, reason, remedy)
    elif files.documents is not None:
        yield RunFault("foreign-results", name, "doubt", frozenset(), f"{counted}.", remedy)


def _otherwise(first: pl.DataFrame, pairs: pl.DataFrame, own: pl.DataFrame, judged: pl.Series) -> str:
    """How many unknown results other files have for the same topic, written otherwise, and which; empty where few.

    The right spelling is that of the judgments, or what the run itself has at other places.
    """
    rows = first.filter(~pl.col("known"))
    unknown = rows["doc_id"].unique(maintain_order=True)
    right = pl.concat([own["doc_id"], judged]).unique()
    spelt = respelt(unknown, right.filter(~right.is_in(unknown.implode())))
    meant = pl.col("doc_id").replace_strict(spelt, default=None, return_dtype=pl.String)
    rows = rows.select("topic_id", meant).drop_nulls()
    met, both = (len(rows.join(each, on=own.columns, how="semi")) for each in (pairs, own))
    # Two documents whose ids are alike may both be returned; one that is written twice is returned once.
    if met < max(_FEW, _PART * len(first), _MET * len(rows)) or _FAR * both > met:
        return ""
    return f", {met:,d} of them other files have, written otherwise ({', '.join(min(spelt.items()))})"


def cut_short(held: pl.Series, order: pl.Series) -> str:
    """The last id of an order that is held, where most of what lacks is behind it, and more than chance puts there."""
    there = order.is_in(held.implode()).to_numpy()
    places = np.flatnonzero(there)
    lacking = len(there) - len(places)
    behind = np.arange(len(there) - 1 - places[-1] if len(places) else 0)
    if not len(behind) or 2 * len(behind) < lacking:
        return ""
    chance = np.log((lacking - behind) / (len(there) - behind)).sum()
    return str(order[int(places[-1])]) if chance <= np.log(_CHANCE) else ""


def _ordered(ids: pl.Series, before: pl.Series | None) -> pl.Series:
    """Ids in the order of an earlier version, or with their numbers in order."""
    ids = ids.unique()
    if before is not None:
        return before.filter(before.is_in(ids.implode()))
    return pl.Series(sorted(ids, key=natural), dtype=pl.String)


def _fixed(files: Files, name: str) -> Iterable[RunFault]:
    """A list that hardly depends on the topic: each topic has the documents with the most topics, as far as it goes."""
    first = files.first[name].filter(pl.col("place") <= files.depth)
    best = first.filter(pl.col("place") == 1)["doc_id"]
    # Of a small collection, every system returns nearly all documents, and one that reads the query orders them.
    if len(best) < _FIXED_TOPICS or best.value_counts()["count"].to_numpy().max() < _HALF * len(best):
        return
    often = first["doc_id"].value_counts().sort("count", "doc_id", descending=[True, False]).with_row_index("order")
    rows = first.join(often, on="doc_id").with_columns(pl.len().over("topic_id").alias("length"))
    lengths = rows["length"].to_numpy()
    same, longest = np.mean(rows["order"].to_numpy() < lengths), lengths.max()
    if same < FIXED:
        return
    reason = f"{name} returns nearly the same {longest} documents for every topic."
    yield RunFault("fixed-list", name, "doubt", frozenset(), reason, "Give a run of a system that reads the query.")


def _other_set(files: Files) -> Iterable[RunFault]:
    """A run of other topics, of whose ids some are those of judged topics by accident: it finds nothing there."""
    judged = frozenset(files.judged)
    relevant = files.qrels.filter(pl.col("relevance") > 0).select("topic_id", "doc_id")
    lists = {name: files.lists[name] for name in files.pair}
    own = {name: frozenset(found.topics) for name, found in lists.items()}
    for name, other in (files.pair, files.pair[::-1]):
        both = own[name] & judged & own[other]
        if 2 * len(own[name] & judged) >= min(len(own[name]), len(own[other] & judged)) or not both:
            continue
        rows = (lists[one].on(pl.Series([*both])).select(*relevant.columns) for one in (name, other))
        # Of two runs that rank the same topics, the worse one finds something, too.
        found, usual = (one.join(relevant, on=relevant.columns, how="semi")["topic_id"].n_unique() for one in rows)
        if usual >= _FEW and found <= HARDLY * usual:
            yield RunFault(
                "other-topics", name, "fault", frozenset(),
                f"{name} answers other topics, of which {len(own[name] & judged):,d} have ids of judged ones: it finds "
                f"hardly anything relevant there, {other} does.",
                "Give the run and the judgments of the same topics, with the same ids.",
            )  # fmt: skip


def _lacking(files: Files) -> Iterable[RunFault]:
    """Judged topics that one of the two runs lacks, and lists of one run that end above the cutoff of the measure."""
    judged = frozenset(files.judged)
    own = {name: judged & frozenset(files.lists[name].topics) for name in files.pair}
    answered = [topics | files.empty.get(name, frozenset()) for name, topics in own.items()]
    if all(own.values()) and not frozenset.intersection(*answered):
        split = " and ".join(f"{len(topics):,d} are in {name}" for name, topics in own.items())
        yield RunFault(
            "no-common-topics", "", "fault", frozenset(), f"No topic is in both: {split}.",
            "Give results of the same topics, with the same ids.",
        )  # fmt: skip
        return
    for name, other in (files.pair, files.pair[::-1]):
        every, nothing = own[other] | own[name], own[other] & files.empty.get(name, frozenset())
        skip = f"Run {name} on these topics. `missing` skip is for topics that it was never asked."
        for topics, did, which, remedy in (
            (own[other] - own[name] - nothing, "gave no answer to", f"that {name} did not answer", skip),
            (nothing, "returned nothing for", f"for which {name} returned nothing", "Find out why nothing came back."),
        ):
            if topics and own[name]:
                yield RunFault(
                    "lacking-topics", name, "doubt", topics,
                    f"{name} {did} {len(topics):,d} of {len(every):,d} topics.", remedy,
                    exception=f"without the {counted(len(topics), 'topic')} {which}",
                )  # fmt: skip
    neither = judged.difference(*own.values(), *(files.empty.get(name, ()) for name in files.pair))
    if neither and any(own.values()):
        yield RunFault(
            "unanswered-topics", "", "note", frozenset(),
            f"Neither system answers {len(neither):,d} of {len(judged):,d} judged topics; as 0 for both, they make the "
            "difference smaller.",
            "Complete the runs, or give judgments of the topics that they answer.",
        )  # fmt: skip
    counts = {name: _counts(files.judged_lists[name]) for name in files.pair}
    for name, other in (files.pair, files.pair[::-1]):
        both = counts[name].join(counts[other], on="topic_id", suffix="_other")
        ends = both.filter(pl.col("count") < pl.min_horizontal("count_other", files.depth))
        if 2 * len(ends) > len(own[name]):
            # Of lists that are cut for most topics, the others say nothing.
            usual = int(ends["count"].quantile(0.5, "lower") or 0)
            alike = len(ends) == len(own[name]) and ends["count"].n_unique() == 1
            where = "per topic" if alike else f"in the median of {len(ends):,d} of {len(own[name]):,d} topics"
            yield RunFault(
                "short-lists", name, "doubt", frozenset(),
                f"{name} returns {usual:,d} results {where}, {other} returns more; the measure counts {files.depth}.",
                "Retrieve the same number of results with both systems.",
            )  # fmt: skip
        elif len(ends) > max(_FEW, _SOME * len(judged)):
            yield RunFault(
                "cut-lists", name, "doubt", frozenset(ends["topic_id"]),
                f"{name} returns fewer than {files.depth} results for {len(ends):,d} of {len(judged):,d} topics; "
                f"{other} returns more there.",
                f"Find out why these lists of {name} are short.",
                exception=f"without the {len(ends):,d} topics where {name} returns too few",
            )  # fmt: skip


def _by_score(files: Files, name: str) -> dict[str, list[str]]:
    """The first results of each topic as trec_eval orders them."""
    rows = files.judged_lists[name].select("topic_id", "doc_id", "score")
    keys = ["topic_id", pl.col("score").cast(pl.Float32), "doc_id"]
    ordered = rows.sort(keys, descending=[False, True, True]).group_by("topic_id", maintain_order=True)
    return dict(ordered.agg(pl.col("doc_id").head(files.depth)).iter_rows())


def _alike(files: Files) -> Iterable[RunFault]:
    """Two runs whose first results are the same for all topics, or for nearly all."""
    lists = []
    for name in files.pair:
        own = files.judged_lists[name].by_rank()
        first = (own.first(files.depth) if own.ordered else own.select("topic_id", "doc_id")).group_by(
            "topic_id", maintain_order=True
        )
        lists.append(dict(first.agg(pl.col("doc_id").head(files.depth)).iter_rows()))
    shared = [topic for topic in lists[0] if topic in lists[1]]
    differing = [topic for topic in shared if lists[0][topic] != lists[1][topic]]
    if not shared:
        return
    one, other = files.pair
    if one == other:
        return
    if not differing:
        ways = [_by_score(files, name) for name in files.pair]
        unlike = sum(ways[0].get(topic) != ways[1].get(topic) for topic in shared)
        ties = ", but for the order of ties"
        yield RunFault(
            "identical-runs", "", "fault", frozenset(),
            f"{one} and {other} return identical results for all {len(shared):,d} topics{ties if unlike else ''}. Was "
            "one file given twice?",
            "Give the results of two systems.",
        )  # fmt: skip
    elif len(differing) < len(shared) / 2:
        yield RunFault(
            "nearly-identical-runs", "", "note", frozenset(differing),
            f"{one} and {other} return different results for only {len(differing):,d} of {len(shared):,d} topics.",
            "",
        )  # fmt: skip
    elif len(same := {t for t in {*shared}.difference(differing) if len(lists[0][t]) >= _SAME}) >= max(
        _SAME, _TENTH * len(shared)
    ):
        # What two systems of a kind share of the other topics explains lists that are the same.
        rest = [lists[0][t] for t in differing], [lists[1][t] for t in differing]
        common = float(np.mean([len({*a} & {*b}) / max(1, len({*a} | {*b})) for a, b in zip(*rest, strict=True)]))
        if common < _HALF:
            yield RunFault(
                "shared-lists", "", "doubt", frozenset(same),
                f"{one} and {other} return the same results in the same order for {len(same):,d} of {len(shared):,d} "
                f"topics, and share {common:.0%} for the others: does one fall back on the other?",
                "Give both runs as their systems made them.",
                exception=f"without the {len(same):,d} topics where both return the same",
            )  # fmt: skip


def _copies(files: Files) -> Iterable[RunFault]:
    """Judged topics that ask what another one asks; all but the first of each.

    Their texts are the same but for case, marks and blanks, or their judgments and results are.
    """
    judged, topics = sorted(files.judged), files.topics or {}
    texts = {topic: spoken(topics[topic]) for topic in judged if topics.get(topic, "").strip()}
    # What is returned is looked at where the judgments are those of another topic, and where there is something.
    answered = {topic for name in files.pair for topic in files.lists[name].topics}
    marks = files.qrels.group_by("topic_id").agg(pl.struct("doc_id", "relevance").hash().sum(), pl.len())
    alike = marks.filter(pl.struct("doc_id", "len").is_duplicated() & pl.col("topic_id").is_in(answered))
    results = {topic: f"{mark}" for topic, mark, _ in alike.iter_rows()}
    counts = Counter({topic: count for topic, _, count in alike.iter_rows()})
    for frame in (files.runs[name] for name in files.pair):
        own = frame.filter(pl.col("topic_id").is_in(pl.Series([*results], dtype=pl.String).implode()))
        lists = own.sort("topic_id", "rank").group_by("topic_id", maintain_order=True)
        held = {topic: (text, count) for topic, text, count in lists.agg(_JOINED, pl.len()).iter_rows()}
        counts = Counter({topic: counts[topic] + held.get(topic, ("", 0))[1] for topic in results})
        results = {topic: f"{text}\n{held.get(topic, ('',))[0]}" for topic, text in results.items()}
        often = Counter(results.values())
        results = {topic: text for topic, text in results.items() if often[text] > 1}
    # Short lists may be the same by chance, of some questions with one answer.
    several = sum(counts[topic] > _SAME for topic in results)
    least = 0 if not texts else _SAME if 4 * several >= len(judged) else 2 * _SAME
    # So are those that hold most documents of a small collection.
    pair = [files.runs[name] for name in files.pair] if results and texts else []
    if any(2 * len(run) > run["topic_id"].n_unique() * run["doc_id"].n_unique() for run in pair):
        results = {}
    results = {topic: text for topic, text in results.items() if counts[topic] > least}
    keys = {
        topic: [key for key in (("text", texts.get(topic)), ("results", results.get(topic))) if key[1]]
        for topic in sorted(judged, key=natural)
    }
    first: dict[tuple[str, str | None], str] = {}
    copies = [topic for topic in keys if {first.setdefault(key, topic) for key in keys[topic]} - {topic}]
    same = sum(topic in texts and first["text", texts[topic]] != topic for topic in copies)
    if copies:
        how = "" if same == len(copies) else f", {len(copies) - same:,d} of them in judgments and results"
        yield RunFault(
            "copied-topics", "", "topics", frozenset(copies),
            f"{len(copies):,d} of {len(judged):,d} topics repeat another one{how}.",
            "Add topics that do not repeat another one.",
        )  # fmt: skip


_JOINED: Final = pl.col("doc_id").str.join(" ")


def _unjudged(files: Files) -> Iterable[RunFault]:
    """Topics that both runs answer, or that the test set has, and that nobody judged."""
    judged = frozenset(files.judged)
    answered = frozenset.intersection(*(frozenset(files.lists[name].topics) for name in files.pair))
    every = answered | frozenset(files.topics or ())
    lacking = every - judged
    if lacking and judged & every:
        yield RunFault(
            "unjudged-topics", "", "note", frozenset(),
            f"{len(lacking):,d} of {len(every):,d} topics have no judgment.",
            "Judge them, or say how the judged ones were chosen before anybody saw a score.",
        )  # fmt: skip


def _no_relevant(files: Files) -> Iterable[RunFault]:
    if not (files.qrels["relevance"] > 0).any():
        yield RunFault(
            "no-relevant", "", "fault", frozenset(), "The judgments name no relevant document: every score is 0.",
            "Give judgments with grades above 0.",
        )  # fmt: skip
