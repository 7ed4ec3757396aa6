"""What runs show of how they were made: with the judgments in sight, for other topics, or on another index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Ints
from truerank.audits.collection.crossings import Crossing, block, natural, shifted
from truerank.audits.collection.run_faults import Files
from truerank.measures.run_faults import RunFault
from truerank.measures.topic_lists import TopicLists
from truerank.sources.lines import repeated_pair
from truerank.text.printable import and_more

#: Results of a topic that are looked at.
DEEPEST: Final = 100
_KEYS: Final = ["topic_id", "doc_id"]
#: A finding has to be this unlikely by chance.
_CHANCE: Final = 0.001
#: Fewer topics, results, or relevant documents tell nothing.
_TOPICS, _RESULTS, _RELEVANT = 5, 20, 10
#: First results that are compared with the first `_RESULTS` of others.
_HIGH: Final = 10
#: So many relevant results begin a list, down to so many others that follow; where it nearly does, so few are between.
_LEAD, _GAP, _BETWEEN = 4, 15, 3
#: Of such lists few are without others between; that more are is so rare; so much fewer have few than none, or many.
_CLEAN, _RARE, _FEW, _MOST = 1 / 3, 0.01, 4, 50
#: The highest results of others, that end a list which is written worst first.
_SHALLOWEST: Final = 3
#: Where a list has an order, what is good stands so much further up on average.
_UPPER: Final = 0.1
#: A mean is not one of no order where it is so many of its errors away; errors that tell the two apart.
_SURE, _SMALL, _SMALL_RELEVANT = 3.1, 0.02, 0.06
#: Results that are those of another topic: so many, and so many times as many as of the own one.
_OTHER, _FAR = 3, 4
#: A run whose own topics lie certainly below that place, of topics by so many results or more, fits none.
_NO_FIT, _ENOUGH = 0.65, 200
#: Of two runs, one is wrong where it meets the judgments so much less.
_WORSE: Final = 0.5
#: Offsets of numbered documents that are tried.
_OFFSETS: Final = (-2, -1, 1, 2)
#: Documents are lost of a run that shares so much of the rest, and so much of a topic.
_SHARES, _SOME = 0.75, 0.25


def run_origins(files: Files, rel: int, names: Iterable[str] = ()) -> tuple[RunFault, ...]:
    """What runs show of how they were made, beside all others."""
    first = {name: _first(lists) for name, lists in files.judged_lists.items()}
    relevant = files.qrels.filter(pl.col("relevance") >= rel).select(_KEYS).unique()
    numbers = _Numbers.of([*first.values(), relevant])
    pairs = numbers.beside(relevant)
    marked = {
        name: numbers.beside(lists).with_columns(relevant=pl.col("pair").is_in(pairs["pair"].implode()))
        for name, lists in first.items()
    }
    found: list[RunFault] = []
    for name in names or files.pair:
        others, own = [each for each in first if each != name], marked[name].sort("topic_id", "place")
        if not len(own):
            continue
        found += _in_sight(name, marked, relevant)
        if not others:
            continue
        every = np.sort(np.concatenate([marked[each]["pair"].to_numpy() for each in others]))
        every = every[np.diff(every, prepend=-1) > 0]  # `np.unique` is ten times as slow
        own = own.with_columns(shared=pl.col("pair").is_in(pl.lit(every).implode()))  # `np.isin` takes far longer
        ranked = numbers.beside(_ranked(files.judged_lists[name]))
        found += _order(name, ranked, [marked[each] for each in others], pairs)
        beside = _beside(name, marked, files.judged_lists[others[0]].topics.to_list())
        # Results of other numbers fit other topics as well.
        faults = list(_offset(name, own, every, pairs, numbers)) or list(_other_topics(beside))
        faults = faults or list(_no_topic(beside, own, every, pairs, numbers))
        found += faults
        if not any(fault.weight == "fault" for fault in faults):
            left = frozenset[str]().union(*(fault.topics for fault in faults))
            found += _lost(name, ranked, [marked[each] for each in others], numbers)
            found += _failed(beside, own.filter(~pl.col("topic_id").is_in(left)), every, numbers)
    return tuple(found)


class _Numbers(NamedTuple):
    """Numbers of topics and documents, which are compared several times as fast as ids.

    Attributes:
        documents: the ids of the documents, by number.
        shape: how many topics and documents there are.
        number: the numbers of columns of ids; null for what has none. From millions of ids, making these takes longer
            than using them.
    """

    documents: pl.Series
    shape: tuple[int, int]
    number: tuple[pl.Expr, pl.Expr]

    @classmethod
    def of(cls, frames: Sequence[pl.DataFrame]) -> _Numbers:
        """Numbers of all topics and documents of some frames."""
        columns = (pl.concat([frame[key] for frame in frames]) for key in _KEYS)
        topics, documents = (column.unique(maintain_order=True).drop_nulls() for column in columns)
        kinds = pl.Enum(topics), pl.Enum(documents)
        topic, document = (
            pl.col(key).cast(kind, strict=False).to_physical().cast(pl.Int64)
            for key, kind in zip(_KEYS, kinds, strict=True)
        )
        return cls(documents, (len(topics), len(documents)), (topic, document))

    def beside(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with columns topic and pair, one number for topic and document."""
        topic, document = self.number
        return rows.with_columns(topic=topic, pair=topic * self.shape[1] + document)


def _first(lists: TopicLists) -> pl.DataFrame:
    """The first results of judged topics with their place."""
    rows = lists.first(DEEPEST, _KEYS)
    repeated = repeated_pair(rows["topic_id"], rows["doc_id"])
    return _ranked(lists).filter(pl.col("place") <= DEEPEST) if repeated else rows


def _ranked(lists: TopicLists) -> pl.DataFrame:
    """All results of judged topics with their place, from 1 on."""
    rows = lists.select(*_KEYS, "rank")
    if repeated_pair(rows["topic_id"], rows["doc_id"]):
        lists = TopicLists(rows.unique(_KEYS, maintain_order=True))
    return lists.select(*_KEYS).with_columns(lists.places)


# -- with the judgments in sight --------------------------------------------------------------------------------------


def _in_sight(name: str, lists: Mapping[str, pl.DataFrame], relevant: pl.DataFrame) -> Iterable[RunFault]:
    """Relevant results that stand before all others and end at once, of some topics, where hardly any nearly do so.

    A ranker for which several relevant documents stand out has lists in which few others are between them, too, and
    topics for which it succeeds are such for others.
    """
    counts = lists[name].group_by("topic_id").len()["len"].to_numpy()
    if np.median(counts) < _RESULTS:
        return
    every = _leads(lists[name], relevant)
    leads = every.filter(pl.col("len") >= _LEAD)["between"].to_numpy()
    seen, far = int((leads == 0).sum()), int((leads > _BETWEEN).sum())
    near = len(leads) - seen - far
    if not _apart(seen, near) or (_FEW * near > far and _MOST * near > seen):
        return
    alike = every.filter(pl.col("between") == 0)
    others = (_leads(rows, relevant) for other, rows in lists.items() if other != name)
    shared = (rows.join(alike.filter(pl.col("len") >= _LEAD), on=["topic_id", "between"]) for rows in others)
    if _FEW * max(map(len, shared), default=0) > seen:
        return
    topics = frozenset[str]() if 2 * seen > len(counts) else frozenset(alike["topic_id"])
    yield RunFault(
        "judgments-in-sight", name, "doubt", topics,
        f"On {seen:,d} of {len(counts):,d} topics {name} puts {_LEAD} or more relevant results first and none in the "
        f"{_GAP} after them, as if it had seen the judgments ({near:,d} topics are nearly so).",
        f"Find out whether {name} was made or tuned with these judgments.",
        exception="without these topics",
    )  # fmt: skip


def _leads(rows: pl.DataFrame, relevant: pl.DataFrame) -> pl.DataFrame:
    """How many others stand between the relevant results with which lists begin, down to a gap: topic_id, len, between.

    A lead has two results at least.
    """
    topic, place = pl.col("topic_id"), pl.col("place")
    hits = rows.with_columns(size=pl.len().over(topic)).filter("relevant").sort(topic, place)
    below = (place - place.shift(fill_value=0).over(topic) > _GAP).cum_sum().over(topic)
    lead = hits.filter(below == 0).group_by(topic).agg(pl.len(), place.max(), pl.col("size").first())
    lead = lead.join(relevant.group_by(topic).len("all"), on="topic_id").filter(pl.col("len") > 1)
    whole = (pl.col("len") == pl.min_horizontal("all", DEEPEST)) & (place == pl.col("size"))
    return lead.filter(whole | (pl.col("size") >= place + _GAP)).select(topic, "len", between=place - pl.col("len"))


# -- in no order, of other topics, on another index ------------------------------------------------------------------


def _depth(there: pl.DataFrame) -> tuple[float, float, int]:
    """Of some results the mean depth in their lists, from 0 to 1, its error were there no order, and their topics."""
    if not len(there):
        return 0.0, 1.0, 0
    depth = there.select((pl.col("place") - 0.5) / pl.col("size")).to_numpy()
    return float(depth.mean()), (12 * len(there)) ** -0.5, there["topic"].n_unique()


def _order(name: str, own: pl.DataFrame, others: Sequence[pl.DataFrame], relevant: pl.DataFrame) -> Iterable[RunFault]:
    """Lists that end with what others rank highest, or have it anywhere, and what is relevant, too.

    A weak run has in its lists what others rank high, and not in their upper part. It counts only where its lists hold
    at least half of it, and are long.
    """
    sizes = own.group_by("topic").agg(pl.len().alias("size")).filter(pl.col("size") >= _TOPICS)
    high = [
        pl.concat([each.filter(pl.col("place") <= to)["pair"] for each in others]) for to in (_SHALLOWEST, _RESULTS)
    ]
    # Few of all results are looked at, or this would take longer than all else.
    highest, good, wanted = (
        own.filter(pl.col("pair").is_in(which.implode())).join(sizes, on="topic") for which in (*high, relevant["pair"])
    )
    seen = [_depth(highest), _depth(wanted)]
    if all(depth >= 0.5 + max(_UPPER, _SURE * error) and topics >= _RELEVANT for depth, error, topics in seen):
        yield RunFault(
            "no-order", name, "fault", frozenset(),
            f"{name}'s lists run worst first: they end with what other runs rank highest and with what is relevant.",
            f"Sort {name}'s lists best first, with scores that fall from rank to rank.",
        )  # fmt: skip
        return
    long = (pl.col("size") >= 2 * _RESULTS) & (pl.len() >= _RESULTS / 2) & (2 * pl.len() <= pl.col("size"))
    good = good.filter(long.over("topic"))
    unlike, (depth, error, topics) = _depth(good), _depth(wanted.join(good, on="topic", how="semi"))
    middle = all(abs(one[0] - 0.5) <= _SURE * one[1] for one in (unlike, (depth, error)))
    if middle and unlike[1] <= _SMALL and error <= _SMALL_RELEVANT and topics >= _RELEVANT:
        yield RunFault(
            "no-order", name, "fault", frozenset(),
            f"{name}'s order is no better than random on {unlike[2]:,d} topics; perhaps its scores belong to "
            "other documents.",
            f"Export {name} again, each id with its own score.",
        )  # fmt: skip


def _met(lists: pl.DataFrame) -> Mapping[str, float]:
    """The discounted gain of each topic's relevant results."""
    gain = (1 / (pl.col("place") + 1).log(2)).sum()
    return dict(lists.filter("relevant").group_by("topic_id").agg(gain).iter_rows())


class _Beside(NamedTuple):
    """A run beside all others.

    Attributes:
        crossing: the share of the first results of each topic that others have for each.
        sizes: how many first results each topic has.
        met: what it has of what is relevant for each topic.
        others: what each of the others has.
    """

    name: str
    crossing: Crossing
    sizes: Ints
    met: Mapping[str, float]
    others: Sequence[Mapping[str, float]]

    def worse(self, topics: Iterable[str]) -> bool:
        """Whether another run meets the judgments of some topics, and this one far less."""
        asked = [*topics]
        mine, *others = (sum(met.get(topic, 0.0) for topic in asked) for met in (self.met, *self.others))
        return mine < _WORSE * max(others)

    def named(self, rows: Ints) -> list[str]:
        """The topics of some rows."""
        return [self.crossing.rows[int(row)] for row in rows]


def _beside(name: str, lists: Mapping[str, pl.DataFrame], columns: Sequence[str]) -> _Beside:
    """A run beside all others, whose topics come in that order."""
    high = lists[name].filter(pl.col("place") <= _HIGH).sort("topic_id", "place")
    theirs = pl.concat(
        [each.filter(pl.col("place") <= _RESULTS).select(_KEYS) for other, each in lists.items() if other != name]
    ).unique()
    columns = [*columns, *sorted(frozenset(theirs["topic_id"]).difference(columns), key=natural)]
    mine = high.with_columns(gain=1 / pl.len().over("topic_id"))
    crossing = Crossing.of(mine, theirs.with_columns(gain=1.0), columns, "run")
    counts = dict(high.group_by("topic_id").len().iter_rows())
    sizes = np.array([counts[topic] for topic in crossing.rows], np.int64)
    met = {each: _met(rows) for each, rows in lists.items()}
    return _Beside(name, crossing, sizes, met.pop(name), [*met.values()])


def _other_topics(beside: _Beside) -> Iterable[RunFault]:
    """Results that other runs have for another topic: by one rule for all or for a block, or a different one each time.

    That lists are exchanged is shown by the runs: the judgments only say in which of them.
    """
    name, crossing = beside.name, beside.crossing
    remedy = f"Give {name} the ids of the topics that it answers."
    for shift in filter(None, (shifted(crossing), block(crossing))):
        topics = beside.named(shift.moved)
        if beside.worse(topics):
            here, there = (float(crossing.by(leads)[shift.moved].mean()) for leads in (crossing.own, shift.leads))
            some = "" if shift.p is not None else f", from {topics[0]} to {topics[-1]},"
            reason = (
                f"For {len(topics):,d} of {len(crossing.rows):,d} topics{some} {name} returns what other runs return "
                f"for {shift.where} ({there:.0%} of its first results; {here:.0%} for the same topic)."
            )
            yield _of_topics("misplaced-run", beside, shift.moved, reason, remedy)
            return
    rows = _exchanged(crossing, beside.sizes)
    if len(rows) and beside.worse(beside.named(rows)):
        reason = (
            f"For {len(rows):,d} of {len(crossing.rows):,d} topics {name} returns what other runs return for another "
            "topic, and hardly anything that they return for the same one."
        )
        yield _of_topics("misplaced-run", beside, rows, reason, remedy)


def _exchanged(crossing: Crossing, sizes: Ints) -> Ints:
    """Topics with the results of others, a different one each time, which have strange results in turn.

    A system that misreads a query returns what others return for one like it, for which it returns that, too.
    """
    here, own, size = crossing.by(crossing.own), crossing.own, len(crossing.rows)
    row = np.repeat(np.arange(size), np.diff(crossing.values.indptr))
    entries = pl.DataFrame({"row": row, "column": crossing.values.indices, "share": crossing.values.data})
    entries = entries.filter(pl.col("column") != pl.Series(own).gather(row)).sort("share", descending=True)
    best = entries.group_by("row").agg(pl.col("column").first(), "share").sort("row")
    at, other = best["row"].to_numpy(), best["column"].to_numpy()
    most = best["share"].list.first().to_numpy()
    next_one = best["share"].list.get(1, null_on_oob=True).fill_null(0.0).to_numpy()
    shared = np.rint(most * sizes[at])
    touched = (shared >= _OTHER - 1) & (_FAR * here[at] <= most)
    clear = touched & (shared >= _OTHER) & (2 * next_one <= most)
    owner = np.full(len(crossing.columns), 1.0)
    owner[own[own >= 0]] = here[own >= 0]
    moved = clear & (_FAR * owner[other] <= most)
    several, every = (len(np.unique(other[one])) for one in (moved, clear))
    chance = scipy.special.bdtrc(several - 1, clear.sum(), touched.sum() / size) if several else 1.0
    whole = 2 * clear.sum() >= size and every >= max(_RELEVANT, clear.sum() / 2)
    return at[touched] if whole or (several >= _TOPICS and chance <= _CHANCE) else at[:0]


def _no_topic(
    beside: _Beside, own: pl.DataFrame, every: Ints, pairs: pl.DataFrame, numbers: _Numbers
) -> Iterable[RunFault]:
    """Results of which other runs have no more for the same topic than for any, and the judgments neither."""
    name, crossing = beside.name, beside.crossing
    rows = np.flatnonzero(crossing.own >= 0)
    if not len(rows) or own.filter(pl.col("place") == 1)["doc_id"].n_unique() < len(rows) / 2:
        return
    mean, error = float(crossing.kept(rows).places().mean()), (12 * len(rows)) ** -0.5
    theirs = pl.DataFrame({"pair": every}).with_columns(relevant=pl.col("pair").is_in(pairs["pair"].implode()))
    if beside.sizes.sum() < _ENOUGH or mean > 0.5 + _SURE * error or mean + _SURE * error > _NO_FIT:
        return
    if _meets(own, pairs, numbers) or not _meets(theirs, pairs, numbers):
        return
    yield RunFault(
        "other-index", name, "doubt", frozenset(),
        f"{name}'s results fit no topic: they share no more with other runs' results for the same topic than for any "
        "other. Its ids may be of another index.",
        f"Write the ids of {name} as the collection has them.",
        exception="without it",
    )  # fmt: skip


def _offset(name: str, own: pl.DataFrame, every: Ints, relevant: pl.DataFrame, numbers: _Numbers) -> Iterable[RunFault]:
    """Numbers of documents that are off by a fixed step: with it, other runs have the results, and judgments do."""
    shared = int(own["shared"].sum())
    if 2 * shared > len(own):
        return
    parts = own.select("topic_id", pl.col("doc_id").str.extract_groups(r"^(\D*)(\d{1,15})$").alias("parts"))
    stem, digits = (parts["parts"].struct.field(which) for which in ("1", "2"))
    if digits.null_count():
        return
    width, found = digits.str.len_chars(), list[tuple[int, int, int]]()
    for step in _OFFSETS:
        moved = (digits.cast(pl.Int64) + step).cast(pl.String)
        padded = pl.select(
            pl.when(digits.str.starts_with("0")).then(moved.str.zfill(width)).otherwise(moved)
        ).to_series()
        there = numbers.beside(parts.select("topic_id", doc_id=stem + padded))["pair"]
        more, hits = (int(there.is_in(one.implode()).sum()) for one in (pl.Series(every), relevant["pair"]))
        found.append((more, step, hits))
    more, by, hits = max(found)
    gap = more - shared
    if gap <= 3 * (more + shared) ** 0.5 or more < 2 * shared or more < _RESULTS or hits < own["relevant"].sum():
        return
    yield RunFault(
        "other-numbers", name, "fault", frozenset(),
        f"{name}'s document numbers are off by {abs(by)}: other runs have {shared:,d} of its {len(own):,d} first "
        f"results, and with {by:+d} {more:,d}.",
        f"Write the ids of {name} as the collection has them.",
    )  # fmt: skip


def _lost(name: str, ranked: pl.DataFrame, others: Sequence[pl.DataFrame], numbers: _Numbers) -> Iterable[RunFault]:
    """Documents that most others return for several topics and the run for none, though it shares the rest.

    Where it merely ranks otherwise, more documents are such that it returns for few of these topics.
    """
    alike = pl.concat([rows["pair"] for rows in others]).value_counts()
    asked = alike.filter(pl.col("count") > len(others) / 2).select(
        "pair", document=pl.col("pair") % numbers.shape[1], topic=pl.col("pair") // numbers.shape[1]
    )
    asked = asked.with_columns(shared=pl.col("pair").is_in(ranked["pair"].implode()))
    # What one has for topics that the other one answers otherwise is not what this one lost.
    asked = asked.filter(pl.col("shared").mean().over("topic") >= _SOME)
    shown = pl.col("document").is_in((ranked["pair"] % numbers.shape[1]).unique().implode())
    counts = asked.group_by("document").agg(pl.len(), pl.col("shared").sum()).with_columns(shown=shown)
    rest = counts.filter("shown")
    share = float(rest["shared"].sum()) / max(1.0, float(rest["len"].sum()))
    often = pl.col("len") >= _TOPICS
    lost = counts.filter(often & ~pl.col("shown"))
    near = len(rest.filter(often & (2 * pl.col("shared") < share * pl.col("len"))))
    if share < _SHARES or not _apart(len(lost), near):
        return
    ids = numbers.documents.gather(lost["document"]).sort().to_list()
    yield RunFault(
        "lost-documents", name, "doubt", frozenset(),
        f"{name} never returns {len(lost):,d} documents that others return for {_TOPICS} topics or more "
        f"({and_more(ids[:3], 3)}): its index lacks documents.",
        f"Make {name} anew on an index of the whole collection.",
        exception="without it",
    )  # fmt: skip


def _apart(many: int, near: int) -> bool:
    """Whether so many are too many, beside those that are nearly so, to be the end of what varies."""
    return many >= max(_TOPICS, _FEW * near) and bool(scipy.special.bdtrc(many - 1, many + near, _CLEAN) <= _RARE)


def _failed(beside: _Beside, own: pl.DataFrame, every: Ints, numbers: _Numbers) -> Iterable[RunFault]:
    """Topics with results that fit them no better than any topic, apart from all others of the run.

    How many results other runs have, too, differs by topic; fewer have what chance gives than something above it.
    Tested is whether more have that than a density which falls by the root of the number allows, from 0 to half of what
    is usual: a failure of some topics is a peak there with nothing behind it.
    """
    name, width = beside.name, numbers.shape[1]
    often = np.bincount(every % width, minlength=width)[own["pair"].to_numpy() % width]
    lists = own.with_columns(often=often).group_by("topic", "topic_id").agg(pl.len(), pl.col("shared", "often").sum())
    shown = np.bincount(every // width, minlength=numbers.shape[0])
    lists = lists.filter((pl.col("len") >= _TOPICS) & pl.Series(shown[lists["topic"].to_numpy()] > 0))
    size, met, of = lists.select("len", "shared", "often").to_numpy().astype(np.float64).T
    theirs = shown[lists["topic"].to_numpy()]
    chance = (of - met) * theirs / np.maximum(1, len(every) - theirs)
    least, most = chance + 3 * np.sqrt(chance), np.minimum(size, theirs)
    low = met <= least
    if low.sum() < _TOPICS or low.all():
        return
    half = chance + np.median(((met - chance) / most)[~low]) / 2 * most
    # Where the two are too near, a topic says nothing.
    near = (low | (met <= half)) & (2 * least <= half)
    peak = int((low & near).sum())
    share = ((np.floor(least) + 1) / (np.floor(half) + 1))[near]
    topics = lists.filter(low)["topic_id"].sort().to_list()
    if peak < _TOPICS or scipy.special.bdtrc(peak - 1, near.sum(), share.mean() ** 0.5) > _CHANCE:
        return
    if beside.worse(topics):
        yield RunFault(
            "failed-topics", name, "doubt", frozenset(topics),
            f"For {len(topics):,d} of {len(lists):,d} topics {name}'s results fit no topic: other runs have "
            f"{met[low].sum() / size[low].sum():.0%} of them, and {met[~low].sum() / size[~low].sum():.0%} elsewhere.",
            f"Find out why {name} failed for these topics, and make it anew there: {and_more(topics, 5)}.",
            exception=f"without the {len(topics):,d} topics where {name}'s results fit none",
        )  # fmt: skip


def _of_topics(kind: str, beside: _Beside, rows: Ints, reason: str, remedy: str) -> RunFault:
    """A fault of some topics, which have to be left out, or of so many that the whole run is at fault."""
    whole = 2 * len(rows) > len(beside.crossing.rows)
    topics = frozenset[str]() if whole else frozenset(beside.named(rows))
    return RunFault(kind, beside.name, "fault" if whole else "topics", topics, reason, remedy)


def _meets(own: pl.DataFrame, relevant: pl.DataFrame, numbers: _Numbers) -> bool:
    """Whether more results are relevant than would be with the topics exchanged."""
    shown, wanted = (
        np.bincount(pairs["pair"].to_numpy() % numbers.shape[1], minlength=numbers.shape[1]).astype(np.float64)
        for pairs in (own, relevant)
    )
    hits, topics = own["relevant"].sum(), (own["pair"] // numbers.shape[1]).n_unique()
    by_chance = float(shown @ wanted) / max(1, topics)
    return bool(hits) and float(scipy.special.gammainc(hits, by_chance)) <= _CHANCE
