"""What runs show of how they were made: from another run, with the judgments in sight, or on another index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Flags, Floats, Ints
from truerank.audits.collection.run_faults import FIXED, HARDLY, Files
from truerank.measures.run_faults import RunFault, Weight
from truerank.measures.topic_lists import TopicLists
from truerank.sources.lines import repeated_pair
from truerank.text.printable import and_more

#: Results of a topic that are looked at.
DEEPEST: Final = 100
_KEYS: Final = ["topic_id", "doc_id"]
#: A finding has to be this unlikely by chance.
_CHANCE: Final = 0.001
#: The level at which one of two runs is at fault, where one of them is.
_WHICH: Final = 0.05
#: Fewer topics, results, or relevant documents tell nothing.
_TOPICS, _RESULTS, _RELEVANT = 5, 20, 10
#: The share of the topics from which on lists that are the same are no accident, and on which two runs are one.
_SOME, _NEARLY_ALL = 0.1, 0.95
#: How many times larger the odds of relevance may be before the first irrelevant result than after it.
_CLIFF: Final = 8.0
_CLIFF_TOPICS, _CLIFF_RELEVANT = 15, 3
_DRAWS: Final = 1000
#: A run adds to other lists where it shares so many times as many results; of what it adds, less is relevant in good
#: runs. More relevant documents that are first than they manage. Lists are short where so few of a topic are expected.
_ADDED, _NEARLY_ALL_ADDED, _PERFECT, _EXPECTED = 3, 0.75, 30, 5
#: Where a list has an order, what is good stands so much further up on average.
_UPPER: Final = 0.1
#: A mean is not one of no order where it is so many of its errors away.
_SURE: Final = 4.0
#: Mean and spread of what is normal and not among the lowest 5%.
_ABOVE: Final = (0.11, 0.9)
#: Down to a rank, every result is relevant; the share of topics, and how far it falls at the next rank.
_EVERY, _FALL, _SHALLOWEST = 0.97, 0.75, 3
#: Offsets of numbered documents that are tried.
_OFFSETS: Final = (-2, -1, 1, 2)
#: Topics whose likeness is compared.
_COMPARED: Final = 400
#: So many results are those of another topic.
_SHARED: Final = 3
#: A document that more topics have does not tell them apart.
_RARE: Final = 50
#: Topics that are compared with all others at once.
_AT_ONCE: Final = 1000
#: Of topics with results of others, so many tell whose; of all topics, so many with another's list are no accident.
_CLEAR, _REPEATED = 0.03, 0.02
#: A stretch of the collection that a run never shows has at least this share of what other runs show.
_STRETCH: Final = 0.1
#: What explains that results fit no topic; where it names no topic, it explains all of them.
_FAILURES: Final = ("no-order", "other-numbers", "other-index", "misplaced-run", "fixed-list")
_NUMBERED: Final = r"^(\D*)(\d+)(\D*)$"


def run_origins(files: Files, rel: int, names: Iterable[str] = ()) -> tuple[RunFault, ...]:
    """What runs show of how they were made, beside all others."""
    first = {name: _first(lists) for name, lists in files.judged_lists.items()}
    heads = {name: heads_of(lists, max(files.depth, _RESULTS)) for name, lists in first.items()}
    relevant = files.qrels.filter(pl.col("relevance") >= rel).select(_KEYS).unique()
    numbers = _Numbers.of([*first.values(), relevant])
    first = {name: numbers.beside(lists) for name, lists in first.items()}
    pairs = numbers.beside(relevant)
    hits = {name: int(lists["pair"].is_in(pairs["pair"].implode()).sum()) for name, lists in first.items()}
    found: list[RunFault] = []
    for name in names or files.pair:
        others = [each for each in first if each != name]
        own = first[name].join(relevant.with_columns(relevant=True), on=_KEYS, how="left")
        own = own.with_columns(pl.col("relevant").fill_null(False)).sort("topic_id", "place")
        if not len(own):
            continue
        for other in others:
            # What two runs of a comparison share is looked at with their scores.
            if {name, other} != {*files.pair}:
                found += _same_lists(name, other, heads, max(files.depth, _RESULTS))
        found += _every_result(name, own)
        found += _cliff(name, own, relevant)
        if others:
            every = np.sort(np.concatenate([first[each]["pair"].to_numpy() for each in others]))
            every = every[np.diff(every, prepend=-1) > 0]  # `np.unique` is ten times as slow
            own = own.with_columns(shared=pl.col("pair").is_in(pl.lit(every).implode()))  # `np.isin` takes far longer
            found += _with_judgments(files, name, own, first, (every, pairs, numbers))
            best = [first[each].filter(pl.col("place") <= _RESULTS)["pair"] for each in others]
            good = pl.concat([*best, pairs["pair"]])
            ranked = numbers.beside(_ranked(files.judged_lists[name]))
            highest = pl.concat([first[each].filter(pl.col("place") <= _SHALLOWEST)["pair"] for each in others])
            backwards = list(_backwards(name, ranked, highest, pairs["pair"]))
            found += backwards or _no_order(name, ranked, good, pairs["pair"])
            shifted = _offset(name, own, every, pairs, numbers)
            # A run whose results are relevant has the right ids.
            meets = _meets(own, pairs, numbers)
            found += shifted if shifted or meets else _other_index(name, own, every, numbers)
            fits = _Fits.of(own, every, pairs, numbers)
            # Of two runs, one is right.
            found += _other_topics(name, fits, hits[name] < max(hits[each] for each in others))
            found += _repeated(name, own, fits)
            known = [fault for fault in found if fault.run == name and fault.kind in _FAILURES]
            if all(fault.topics for fault in known):
                left = ~pl.col("topic_id").is_in(frozenset[str]().union(*(fault.topics for fault in known)))
                found += _failed(name, own.filter(left), every, pairs, numbers)
            if files.documents is not None:
                found += _stretch(name, own, numbers.documents_of(every), files.documents)
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

    def documents_of(self, pairs: Ints) -> pl.Series:
        """The ids of the documents of some pairs, each once."""
        return self.documents.gather(np.flatnonzero(np.bincount(pairs % self.shape[1])))

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


# -- from another run -------------------------------------------------------------------------------------------------


def heads_of(lists: pl.DataFrame, depth: int) -> pl.DataFrame:
    """The first documents of each topic in their order, as one list."""
    return lists.filter(pl.col("place") <= depth).sort("place").group_by("topic_id").agg("doc_id")


def same_topics(one: pl.DataFrame, other: pl.DataFrame) -> tuple[frozenset[str], int]:
    """The topics whose first results, as of `heads_of`, are the same, and how many topics both runs have."""
    both = one.join(other, on="topic_id")
    # A list of a few results may be the same by accident.
    same = both.filter((pl.col("doc_id") == pl.col("doc_id_right")) & (pl.col("doc_id").list.len() >= _TOPICS))
    return frozenset(same["topic_id"]), len(both)


def _same_lists(name: str, other: str, heads: Mapping[str, pl.DataFrame], depth: int) -> Iterable[RunFault]:
    """Topics whose results are another run's."""
    same, both = same_topics(heads[name], heads[other])
    if len(same) < max(_TOPICS, _SOME * both):
        return
    whole = len(same) >= _NEARLY_ALL * both
    yield RunFault(
        "rows-of-another-run", name, "doubt", frozenset() if whole else same,
        f"The first {depth} results of {name} are those of {other}, in the same order, for {len(same):,d} of {both:,d} "
        "topics.",
        f"Give {name} as its system made it, or leave {other} out if the two are one.",
        exception=f"that {name} returns the results of {other}" + ("" if whole else f" for {len(same):,d} topics"),
    )  # fmt: skip


# -- with the judgments in sight --------------------------------------------------------------------------------------


def _every_result(name: str, own: pl.DataFrame) -> Iterable[RunFault]:
    """A depth down to which everything that the run returns was judged relevant."""
    by_rank = own.group_by("place").agg(pl.col("relevant").mean().alias("share"), pl.len()).sort("place")
    shares = by_rank.filter(pl.col("len") >= _RELEVANT)["share"].to_numpy()
    below = np.flatnonzero(shares < _EVERY)
    depth = int(below[0]) if len(below) else 0
    if depth >= _SHALLOWEST and shares[depth] <= _FALL:
        yield RunFault(
            "relevant-by-rank", name, "doubt", frozenset(),
            f"{shares[:depth].min():.0%} of {name}'s results at each of the first {depth} ranks were judged "
            f"relevant, and {shares[depth]:.0%} at the next: the judgments look like a list of what it returned.",
            "Give the judgments with those that say not relevant.",
            exception=f"that every one of {name}'s first {depth} results was judged relevant",
        )  # fmt: skip


def _cliff(name: str, own: pl.DataFrame, relevant: pl.DataFrame) -> Iterable[RunFault]:
    """Relevant results that stand before all others, far more often than what follows them explains.

    The odds that a result is relevant are taken before the first irrelevant one, and among the five after it. A good
    ranker has more of them before it too, since topics differ; eight times as many is more than those that we know do.
    Of the five, only as many are looked at as relevant documents are left, or good runs would have too few of them.
    """
    many = relevant.group_by("topic_id").len().filter(pl.col("len") >= _CLIFF_RELEVANT)
    lists = own.join(many, on="topic_id").sort("topic_id", "place").group_by("topic_id", maintain_order=True)
    rows = lists.agg("relevant", pl.col("len").first()).select("relevant", "len").iter_rows()
    counts = np.array([_around_first_irrelevant(*row) for row in rows if any(row[0])], np.float64).reshape(-1, 4)
    if len(counts) < _CLIFF_TOPICS:
        return

    def odds(sums: Floats) -> Floats:
        lead, ends, after, no = (sums[..., at] + 0.5 for at in range(4))
        found: Floats = np.log(lead / ends) - np.log(after / no)
        return found

    draw = np.random.default_rng(0)
    weights = draw.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=_DRAWS)
    low = float(np.quantile(odds(weights @ counts), 0.025))
    sums = counts.sum(axis=0)
    if low <= np.log(_CLIFF):
        return
    lead, after = sums[0] / max(1, sums[0] + sums[1]), sums[2] / max(1, sums[2] + sums[3])
    yield RunFault(
        "judgments-in-sight", name, "doubt", frozenset(),
        f"{name} has its relevant results before all others: {lead:.0%} of its results down to the first "
        f"irrelevant one are relevant, and {after:.0%} of the up to five after it; rankers that know no judgments have "
        "no such step.",
        f"Find out whether {name} was made or tuned with these judgments.",
        exception=f"that {name} ranks as if it had seen the judgments",
    )  # fmt: skip


def _around_first_irrelevant(flags: Sequence[bool], relevant: int) -> tuple[int, int, int, int]:
    """Relevant results before the first irrelevant one, whether there is one, and among those after it: yes and no.

    Args:
        flags: whether each result is relevant.
        relevant: how many documents are.
    """
    lead = next((at for at, flag in enumerate(flags) if not flag), len(flags))
    # Behind the last relevant result nothing is left that could be found.
    if lead == len(flags) or not any(flags[lead:]):
        return lead, 0, 0, 0
    after = flags[lead + 1 : lead + 1 + min(5, relevant - lead)]
    return lead, 1, sum(after), len(after) - sum(after)


def _with_judgments(
    files: Files,
    name: str,
    own: pl.DataFrame,
    first: Mapping[str, pl.DataFrame],
    beside: tuple[Ints, pl.DataFrame, _Numbers],
) -> Iterable[RunFault]:
    """What shows that run and judgments were made from each other, beside the other runs."""
    every, pairs, numbers = beside
    # Of topics on which others find nothing, and of those that it does not answer, nothing is known.
    there = pairs.filter(pl.col("pair").is_in(pl.lit(every).implode()))["topic"]
    top = own.filter((pl.col("place") <= files.depth) & pl.col("topic").is_in(there.implode()))
    alone = list(_own_documents(name, top, "no other run has"))
    if not alone and len({*files.pair}) > 1:
        (other,) = {*files.pair} - {name}
        shown = first[other].filter(pl.col("place") <= files.depth)
        top = top.with_columns(shared=pl.col("pair").is_in(shown["pair"].implode()))
        alone = list(_own_documents(name, top, f"{other} has not among its own"))
    yield from alone
    asked = pairs.filter(pl.col("topic").is_in(own["topic"].unique().implode()))
    yield from _made_of(name, own, every, asked, numbers.shape[1])


def _own_documents(name: str, top: pl.DataFrame, which: str) -> Iterable[RunFault]:
    """First results that others lack (not `shared`), and that are relevant more often than shared ones of their ranks.

    What several runs return is relevant more often than what one alone does. Finding something where others find
    nothing is an improvement, and says nothing; so is a relevant document among the few that a run adds to another's
    list, unless nearly all that it adds are.

    Args:
        top: first results on the topics on which others find something relevant, too.
    """
    alone, counts = top.filter(~pl.col("shared")), (pl.col("relevant").mean().alias("usual"), pl.len())
    ranks = top.filter("shared").group_by("place").agg(*counts)
    mine, mine_of, shared_of = int(alone["relevant"].sum()), len(alone), int(ranks["len"].sum())
    if min(mine_of, shared_of) < _RELEVANT:
        return
    added = _ADDED * mine_of < shared_of
    usual = float(
        ranks.filter(pl.col("len") >= _RELEVANT)["usual"].max() or 0.0  # type: ignore[arg-type]
        if added
        else alone.join(ranks, on="place", how="left")["usual"].fill_null(1.0).mean()
    )
    if mine <= (max(usual, _NEARLY_ALL_ADDED) if added else usual) * mine_of:
        return
    shared = round(usual * shared_of)
    table = [[mine, mine_of - mine], [shared, shared_of - shared]]
    if scipy.stats.fisher_exact(table, alternative="greater").pvalue > _CHANCE:
        return
    yield RunFault(
        "own-relevant", name, "doubt", frozenset(),
        f"Of {name}'s first results that {which}, {mine / mine_of:.0%} "
        f"({mine:,d} of {mine_of:,d}) were judged relevant, and {usual:.0%} of the others at their ranks; what one "
        "run alone returns is relevant less often, unless run and judgments were made from each other.",
        f"Find out how {name} and the judgments came about.",
        exception=f"that {name}'s own documents were judged relevant more often than those that other runs share",
        documents=frozenset(alone.filter("relevant")["doc_id"]),
    )  # fmt: skip


def _made_of(name: str, own: pl.DataFrame, others: Ints, relevant: pl.DataFrame, shown: int) -> Iterable[RunFault]:
    """Relevant documents that are all in one run's lists, as if chosen from these, and that others lack.

    A run that finds so many in the lower half of its lists misses some, too. Where all are exactly its first results,
    on more topics than good runs manage, that is told and doubts nothing.

    Args:
        own: its results.
        others: pairs of all others.
        relevant: pairs of topic and document.
        shown: the documents in all lists.
    """
    many, lacking = len(relevant), int((~relevant["pair"].is_in(pl.Series(others).implode())).sum())
    length, wanted = pl.len().over("topic"), pl.col("relevant").sum().over("topic")
    found = own.with_columns(length=length, wanted=wanted).filter("relevant")
    if len(found) < many or many < _RELEVANT or 2 * lacking < many:
        return
    late = int((2 * found["place"] > found["length"]).filter(found["length"] > _SHALLOWEST).sum())
    few = many <= _EXPECTED * relevant["topic"].n_unique()
    chosen = few and late >= _RELEVANT and 2 * int(found["length"].max() or 0) < shown  # type: ignore[arg-type]
    first = many > _PERFECT and bool((found["place"] <= found["wanted"]).all())
    if not chosen and not first:
        return
    where = f"{late:,d} of them in the lower half of its lists" if chosen else "before all others"
    yield RunFault(
        "judgments-of-one-run", name, "doubt" if chosen else "note", frozenset(),
        f"All {many:,d} relevant documents are among the results of {name}, {where}, and {lacking:,d} in no other "
        f"list: were they chosen from what {name} returned?",
        f"Find out how the judgments were made; judge documents that {name} does not return, too.",
        exception=f"that all relevant documents are among {name}'s results, as if chosen from them" if chosen else "",
    )  # fmt: skip


# -- on another index -------------------------------------------------------------------------------------------------


def _depths(lists: pl.DataFrame, which: pl.Series) -> tuple[float, float, int]:
    """Of some pairs in a run's lists the mean depth, from 0 to 1, its error were there no order, and their topics."""
    there = lists.filter(pl.col("pair").is_in(which.implode()))
    if not len(there):
        return 0.0, 1.0, 0
    depth = there.select((pl.col("place") - 0.5) / pl.col("size")).to_numpy()
    return float(depth.mean()), (12 * len(there)) ** -0.5, there["topic"].n_unique()


def _backwards(name: str, own: pl.DataFrame, highest: pl.Series, relevant: pl.Series) -> Iterable[RunFault]:
    """Lists that end with what others rank highest, and with what is relevant."""
    lists = own.with_columns(pl.len().over("topic").alias("size")).filter(pl.col("size") >= _TOPICS)
    for which in (highest, relevant):
        depth, error, topics = _depths(lists, which)
        if depth < 0.5 + max(_UPPER, _SURE * error) or topics < _RELEVANT:
            return
    yield RunFault(
        "no-order", name, "fault", frozenset(),
        f"The lists of {name} end with what other runs rank highest and with what is relevant: they are written worst "
        "first.",
        f"Write the lists of {name} best first, with scores that fall from rank to rank.",
    )  # fmt: skip


def _no_order(name: str, own: pl.DataFrame, good: pl.Series, relevant: pl.Series) -> Iterable[RunFault]:
    """Topics on which the run has what others rank high, and what is relevant (`good`), at any rank of its list.

    Even a weak run has such documents in the upper part of its list.
    """
    size = pl.len().over("topic")
    lists = own.with_columns(((pl.col("place") - 0.5) / size).alias("depth"), size.alias("size"))
    known = lists.filter(pl.col("pair").is_in(good.implode())).group_by("topic_id")
    depths = known.agg(pl.col("depth").mean(), pl.len(), pl.col("size").first())
    # A list of little else than such documents, as of a run that was filtered, has them everywhere.
    depths = depths.filter((pl.col("len") >= _TOPICS) & (pl.col("size") >= 2 * _RESULTS))
    depths = depths.filter(pl.col("size") >= 2 * pl.col("len"))
    if 2 * len(depths) < own["topic_id"].n_unique():
        return
    depths = depths.with_columns(((pl.col("depth") - 0.5) * (12 * pl.col("len")).sqrt()).alias("away"))
    lacking = depths.filter(pl.col("away") > scipy.special.ndtri(0.05))
    if len(lacking) < max(_TOPICS, 2 * _SOME * len(depths)) or not _apart(depths["away"].to_numpy(), len(lacking)):
        return
    middle = np.average(lacking["depth"].to_numpy(), weights=lacking["len"].to_numpy())
    rest = depths.join(lacking, on="topic_id", how="anti")["depth"].mean()
    if rest is not None and rest > middle - _UPPER:
        return
    depth, by_chance, _ = _depths(lists.join(lacking, on="topic_id", how="semi"), relevant)
    # Where what is relevant stands above, it is the others that have no order.
    if 0 < depth < 0.5 - _SURE * by_chance:
        return
    touched = frozenset(lacking["topic_id"])
    yield RunFault(
        "no-order", name, *_weighed(touched, len(depths)),
        f"For {len(lacking):,d} of {len(depths):,d} topics {name} has what other runs rank high and what is relevant "
        "anywhere in its list: its order has nothing to do with theirs, nor with relevance, as if ids and scores were "
        "of other rows.",
        f"Write {name} anew: each id with the score of its own row.",
    )  # fmt: skip


def _apart(away: Floats, lacking: int) -> bool:
    """Whether topics of no order stand apart, or are merely those of an ordered run that show its order least.

    Without an order, a topic is as often below the middle of the list as above it. Ordered topics differ, too: the
    better half of those that seem ordered shows how much. Tested is whether more are below the middle than that puts
    there, and whether those that show none are, on average, where topics of no order are.

    Args:
        away: of each topic, how many of its errors what is good stands away from the middle of the list.
        lacking: how many topics show no order by themselves.
    """
    away = np.sort(away)
    if away[-lacking:].mean() < _ABOVE[0] - 2 * _ABOVE[1] / np.sqrt(lacking):
        return False
    below = int((away > 0).sum())
    ordered = away[: max(0, len(away) - 2 * below)]
    if len(ordered) < _TOPICS:
        return True
    low, middle = np.quantile(ordered, (0.16, 0.5))
    usual = scipy.special.ndtr(middle / max(1.0, middle - low))
    return bool(scipy.special.bdtrc(below - 1, len(away), usual) <= _CHANCE)


def _offset(name: str, own: pl.DataFrame, every: Ints, relevant: pl.DataFrame, numbers: _Numbers) -> list[RunFault]:
    """Topics on which the numbers of the documents are off by a fixed step."""
    base = own.group_by("topic_id").agg(pl.len().alias("size"), pl.col("shared").sum().alias("len"))
    fewest = max(_TOPICS, _SOME * len(base))
    # Most runs share so many documents with others that no step could bring more.
    most = pl.col("size").cast(pl.Int64) - pl.col("len").cast(pl.Int64)
    if len(base.filter(most > 3 * (pl.col("len") + pl.col("size")).sqrt())) < fewest:
        return []
    parts = own.select(
        *_KEYS, pl.col("doc_id").str.extract_groups(_NUMBERED).struct.rename_fields(["a", "n", "z"]).alias("parts")
    ).unnest("parts")
    if parts["n"].null_count():
        return []
    number = pl.col("n").cast(pl.Int64, strict=False)
    parts = parts.with_columns(number, pl.col("n").str.len_chars().alias("width"))
    if parts["n"].null_count():
        return []

    def moved_by(step: int) -> pl.DataFrame:
        moved = (pl.col("n") + step).cast(pl.String)
        padded = (
            pl.when(pl.col("n").cast(pl.String).str.len_chars() < pl.col("width"))
            .then(moved.str.zfill(pl.col("width")))
            .otherwise(moved)
        )
        ids = parts.select("topic_id", pl.concat_str("a", padded, "z").alias("doc_id"))
        return numbers.beside(ids)

    topics: frozenset[str] = frozenset()
    by, best, every_topic = 0, base, False
    for step in _OFFSETS:
        shared = moved_by(step).filter(pl.col("pair").is_in(pl.lit(every).implode())).group_by("topic_id").len()
        both = base.join(shared, on="topic_id", how="left", suffix="_moved").fill_null(0)
        gap = pl.col("len_moved").cast(pl.Int64) - pl.col("len").cast(pl.Int64)
        more = both.filter((gap > 3 * (pl.col("len") + pl.col("len_moved")).sqrt()) & (pl.col("len_moved") >= _TOPICS))
        if len(more) > len(topics):
            topics, by, best = frozenset(more["topic_id"]), step, more
            given, moved = both.join(more, on="topic_id", how="anti").select("len", "len_moved").sum().row(0)
            every_topic = bool(scipy.special.bdtr(given, given + moved, 0.5) <= _CHANCE)
    if len(topics) < fewest:
        return []
    # Neighbours of relevant documents are relevant by accident: right numbers meet more of them.
    here, there = (rows.join(best, on="topic_id", how="semi") for rows in (own, moved_by(by)))
    hits, after = here["relevant"].sum(), int(there["pair"].is_in(relevant["pair"].implode()).sum())
    if _meets(here, relevant, numbers) and scipy.special.bdtr(hits, hits + after, 0.5) > _CHANCE:
        return []
    reason = (
        f"For {len(topics):,d} of {len(base):,d} topics the numbers of {name}'s document ids are off by {abs(by)}: "
        f"its results are hardly any that other runs have, and with {by:+d} they are."
    )
    if every_topic and len(topics) < len(base):
        reason += " The other topics, taken together, have more in common with that step, too."
    remedy = f"Write the ids of {name} as the collection has them."
    # The others have too few results in common to say so each, and say so together.
    weight, touched = _weighed(topics, len(topics) if every_topic else len(base))
    return [RunFault("other-numbers", name, weight, touched, reason, remedy)]


def _meets(own: pl.DataFrame, relevant: pl.DataFrame, numbers: _Numbers) -> bool:
    """Whether more results are relevant than would be with the topics exchanged."""
    shown, wanted = (
        np.bincount(pairs["pair"].to_numpy() % numbers.shape[1], minlength=numbers.shape[1]).astype(np.float64)
        for pairs in (own, relevant)
    )
    hits, topics = own["relevant"].sum(), (own["pair"] // numbers.shape[1]).n_unique()
    by_chance = float(shown @ wanted) / max(1, topics)
    return bool(hits) and float(scipy.special.gammainc(hits, by_chance)) <= _CHANCE


def _other_index(name: str, own: pl.DataFrame, every: Ints, numbers: _Numbers) -> list[RunFault]:
    """Results that no other run has, of topics that are like each other as in the other runs: ids of another index."""
    names = own.select("topic", "topic_id").unique().sort("topic_id")
    topics = names["topic"].to_numpy()
    topics = topics[np.isin(topics, every // numbers.shape[1])]
    topics = topics[:: max(1, len(topics) // _COMPARED)]
    if len(topics) < _RELEVANT:
        return []
    pairs = own["pair"].to_numpy(), every
    mine, theirs = (
        scipy.sparse.csr_array((np.ones(len(each)), np.divmod(each, numbers.shape[1])), shape=numbers.shape)[topics]
        for each in pairs
    )
    # Of each topic the documents that both have, for the same topic and for any.
    here, across = mine.multiply(theirs).sum(axis=1), mine @ theirs.sum(axis=0)
    elsewhere = (across - here) / (len(topics) - 1)
    gap = here - elsewhere
    # Runs of one collection share documents of a topic.
    if gap.mean() > 2 * gap.std(ddof=1) / np.sqrt(len(gap)) and gap.mean() > _SOME * theirs.sum(axis=1).mean() ** 0.5:
        return []
    likeness = [(each @ each.T).toarray() for each in (mine, theirs)]
    if _structure(*likeness) > _CHANCE:
        return []
    reason = (
        f"{name} returns hardly any document that other runs return for the same topic, and yet topics that are "
        "alike by its results are alike by theirs: its document ids are those of another index."
    )
    remedy = f"Write the ids of {name} as the collection has them."
    return [RunFault("other-index", name, "fault", frozenset(), reason, remedy)]


class _Fits(NamedTuple):
    """What each topic's first results are among other runs' results, of all topics; arrays of shape (topics,).

    Attributes:
        here: how many of the results other runs have for the same topic.
        most: how many they have for the other topic that has the most.
        following: how many for the one after it.
        owner: how many of that other topic's own results other runs have for it.
        other: that topic's number.
        met: whether the run has a relevant document.
        met_by_others: whether other runs have one.
    """

    names: pl.Series
    here: Ints
    most: Ints
    following: Ints
    owner: Ints
    other: Ints
    met: Flags
    met_by_others: Flags

    @classmethod
    def of(cls, own: pl.DataFrame, every: Ints, relevant: pl.DataFrame, numbers: _Numbers) -> _Fits:
        """The fits of a run whose results have numbers, beside the pairs of all others."""
        names = own.select("topic", "topic_id").unique().sort("topic")
        topics = names["topic"].to_numpy()
        first = own.filter(pl.col("place") <= _RESULTS)["pair"].to_numpy()
        # What many topics have tells none of them.
        often = np.bincount(every % numbers.shape[1], minlength=numbers.shape[1])
        mine, theirs = (
            scipy.sparse.csr_array((np.ones(len(each), np.int32), np.divmod(each, numbers.shape[1])), numbers.shape)
            for each in (first, every[often[every % numbers.shape[1]] <= _RARE])
        )
        found = np.zeros((4, numbers.shape[0]), np.int64)
        for start in range(0, len(topics), _AT_ONCE):
            part = topics[start : start + _AT_ONCE]
            common = mine[part] @ theirs.T
            for topic, begin, end in zip(part, common.indptr, common.indptr[1:], strict=False):
                counts, others = common.data[begin:end], common.indices[begin:end]
                same = others == topic
                counts, others = np.append(counts[~same], (0, 0)), np.append(others[~same], (topic, topic))
                best = int(np.argmax(counts))
                found[:, topic] = common.data[begin:end][same].sum(), counts[best], 0, others[best]
                counts[best] = 0
                found[2, topic] = counts.max()
        here, most, following, other = found[:, topics]
        asked = np.isin(np.arange(numbers.shape[0]), topics)
        owner = np.where(asked[other], found[0, other], _RESULTS)
        met = np.isin(topics, own.filter("relevant")["topic"].to_numpy())
        there = relevant.filter(pl.col("pair").is_in(pl.lit(every).implode()))["topic"].to_numpy()
        return cls(names["topic_id"], here, most, following, owner, other, met, np.isin(topics, there))

    def missed(self, topics: Flags, level: float = _CHANCE) -> bool:
        """Whether on some topics other runs meet the judgments, and this one hardly ever does."""
        mine = int((topics & self.met & ~self.met_by_others).sum())
        theirs = int((topics & self.met_by_others & ~self.met).sum())
        return mine <= HARDLY * theirs and scipy.special.bdtr(mine, mine + theirs, 0.5) <= level

    def named(self, topics: Flags) -> frozenset[str]:
        """The ids of some topics."""
        return frozenset(self.names.filter(topics))


def _other_topics(name: str, fits: _Fits, worse: bool) -> Iterable[RunFault]:
    """Results that other runs have for another topic, a different one each time, and hardly any for the same one.

    A system that misreads a query returns what others return for a topic like it, for which it returns that, too. Where
    the results of topics are exchanged, it does not.
    """
    strange = (fits.most >= _SHARED) & (4 * fits.here <= fits.most)
    # By chance, or where topics are alike, several have as many.
    clear = strange & (2 * fits.following <= fits.most)
    moved = clear & (4 * fits.owner <= fits.most)
    touched = (fits.most >= _SHARED - 1) & (4 * fits.here <= fits.most)
    several = len(np.unique(fits.other[moved]))
    # Where fewer tell whose results they are, most of all miss the judgments, too.
    most = 2 * clear.sum() >= len(clear) or (2 * touched.sum() >= len(touched) and fits.missed(touched))
    whole = most and clear.sum() >= _RELEVANT and 2 * len(np.unique(fits.other[clear])) >= clear.sum()
    if not (worse and whole):
        # By chance, the other topic has strange results as often as any.
        weak = (4 * fits.here <= np.maximum(fits.most, _SHARED)).mean()
        chance = scipy.special.bdtrc(several - 1, several + (clear & ~moved).sum(), weak)
        # That lists are exchanged is shown: the judgments only say in which of the runs.
        if several < max(_TOPICS, _CLEAR * touched.sum()) or chance > _CHANCE or not fits.missed(touched, _WHICH):
            return
        whole = False
    counted = clear if whole and 2 * clear.sum() >= len(clear) else touched
    reason = (
        f"For {counted.sum():,d} of {len(counted):,d} topics {name} returns what other runs return "
        "for another topic, and hardly anything that they return for the same one."
    )
    remedy = f"Give {name} the ids of the topics that it answers."
    weighed = ("fault", frozenset()) if whole else _weighed(fits.named(touched), len(touched))
    yield RunFault("misplaced-run", name, *weighed, reason, remedy)


def _repeated(name: str, own: pl.DataFrame, fits: _Fits) -> Iterable[RunFault]:
    """Topics that have the list of another one, result by result, which fits that one only."""
    lists = own.filter(pl.col("place") <= _RESULTS).sort("topic", "place").group_by("topic", maintain_order=True)
    heads = lists.agg(pl.col("doc_id").str.join("\n").alias("list"), pl.len().alias("size"))
    heads = heads.with_columns(pl.Series("here", fits.here))
    best, often = pl.col("here").max().over("list"), pl.len().over("list")
    copies = (often > 1) & (pl.col("size") >= _RESULTS / 2) & (4 * pl.col("here") <= best)
    copied, clear = (heads.select(each).to_series().to_numpy() for each in (copies, copies & (best >= _SHARED)))
    if clear.sum() < max(_TOPICS, _REPEATED * len(copied)) or not (fits.missed(copied) and fits.missed(clear)):
        return
    several = heads.filter(copied)["list"].n_unique()
    how = "one list" if several == 1 else f"{several:,d} lists"
    reason = (
        f"For {copied.sum():,d} of {len(copied):,d} topics {name} returns, result by result, what it returns for "
        f"another topic ({how}): by the results of other runs and the judgments it fits that topic and not these."
    )
    if several == 1 and 2 * copied.sum() > len(copied):
        remedy = "Give a run of a system that reads the query."
        # Of nearly all topics, it is told with the files.
        if copied.sum() < FIXED * len(copied):
            yield RunFault("fixed-list", name, "doubt", frozenset(), reason, remedy)
        return
    remedy = f"Make {name} anew for the topics that have the list of another one."
    yield RunFault("misplaced-run", name, *_weighed(fits.named(copied), len(copied)), reason, remedy)


def _failed(name: str, own: pl.DataFrame, every: Ints, relevant: pl.DataFrame, numbers: _Numbers) -> Iterable[RunFault]:
    """Topics with results that fit them no better than any topic, apart from all others of the run.

    How many results other runs have, too, differs by topic. Where most topics have many, some have hardly any, and
    fewer have what chance gives. Tested is whether more have that than a density which falls by the root of the
    number allows, from 0 to half of what is usual: a failure of some topics is a peak there with nothing behind it.
    """
    width = numbers.shape[1]
    of_topic, of_document = np.divmod(every, width)
    often = np.bincount(of_document, minlength=width)[own["pair"].to_numpy() % width]
    columns = pl.len().alias("size"), pl.col("shared").sum(), pl.col("often").sum()
    lists = own.with_columns(often=often).group_by("topic", "topic_id").agg(*columns)
    shown_of = np.bincount(of_topic, minlength=numbers.shape[0])
    lists = lists.filter((pl.col("size") >= _TOPICS) & pl.Series(shown_of[lists["topic"].to_numpy()] > 0))
    size, met, of = (lists[column].to_numpy().astype(np.float64) for column in ("size", "shared", "often"))
    theirs = shown_of[lists["topic"].to_numpy()]
    chance = (of - met) * theirs / np.maximum(1, len(every) - theirs)
    least, most = chance + 3 * np.sqrt(chance), np.minimum(size, theirs)
    low = met <= least
    if low.sum() < _TOPICS or low.all():
        return
    half = chance + np.median(((met - chance) / most)[~low]) / 2 * most
    # Where the two are too near, a topic says nothing.
    near = (low | (met <= half)) & (2 * least <= half)
    share = ((np.floor(least) + 1) / (np.floor(half) + 1))[near]
    peak = int((low & near).sum())
    if peak < _TOPICS or scipy.special.bdtrc(peak - 1, near.sum(), np.sqrt(share.mean())) > _CHANCE:
        return
    there = pl.col("pair") // width
    there = there.is_in(pl.lit(lists["topic"].to_numpy()[low]).implode())
    wanted = relevant.filter(there)
    shown = (
        pl.DataFrame({"pair": every})
        .filter(there)
        .with_columns(relevant=pl.col("pair").is_in(wanted["pair"].implode()))
    )
    # Of two runs that differ, the one that meets the judgments is right.
    if _meets(own.filter(there), wanted, numbers) or not _meets(shown, wanted, numbers):
        return
    topics = lists.filter(low)["topic_id"].sort()
    few, many = (met[which].sum() / size[which].sum() for which in (low, ~low))
    yield RunFault(
        "failed-topics", name, "doubt", frozenset(topics),
        f"For {len(topics):,d} of {len(lists):,d} topics the results of {name} fit no topic: other runs have {few:.0%} "
        f"of them, as chance explains, and {many:.0%} of those for the other topics; nor do they meet the judgments, "
        "which results of other runs do.",
        f"Find out why {name} failed for these topics, and make it anew there: {and_more(topics.to_list(), 5)}.",
        exception=f"without the {len(topics):,d} topics for which the results of {name} fit no topic",
    )  # fmt: skip


def mean_ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values share their mean rank; SciPy's rankdata would take half a second to load."""
    ordered = np.sort(values)
    return np.asarray((np.searchsorted(ordered, values) + np.searchsorted(ordered, values, "right") + 1) / 2)


def _structure(one: Floats, other: Floats) -> float:
    """The p-value of the likeness of two matrices of topics by topics, by permutation of the topics (Mantel's test)."""
    size = len(one)
    above = np.triu_indices(size, 1)
    first = mean_ranks(one[above])
    first = first - first.mean()
    draw = np.random.default_rng(0)

    def fit(order: Ints) -> float:
        return float(first @ ranked[np.ix_(order, order)][above])

    ranked = np.zeros((size, size))
    ranked[above] = mean_ranks(other[above])
    ranked += ranked.T
    seen = fit(np.arange(size))
    more = sum(fit(draw.permutation(size)) >= seen for _ in range(_DRAWS))
    return (more + 1) / (_DRAWS + 1)


def _stretch(name: str, own: pl.DataFrame, others: pl.Series, order: pl.Series) -> Iterable[RunFault]:
    """A stretch of the collection that the run never shows, though others do."""
    known = order.to_frame("doc_id").with_row_index("at")
    shown = others.to_frame("doc_id").join(known, on="doc_id").sort("at")
    mine = shown["doc_id"].is_in(own["doc_id"].unique().implode()).to_numpy()
    if len(mine) < _RESULTS or not mine.any():
        return
    # The collection is a circle, so that a stretch may lie around its end.
    hits = np.flatnonzero(mine)
    gaps = np.diff(np.append(hits, hits[0] + len(mine))) - 1
    at = int(np.argmax(gaps))
    length, share = int(gaps[at]), float(mine.mean())
    # Elsewhere, the run shows this share of what others show.
    rest = float(mine.sum() / max(1, len(mine) - length))
    if length < _STRETCH * len(mine) or len(mine) * (1 - rest) ** length > _CHANCE**2 or share >= 1:
        return
    stretch = [(hits[at] + 1 + step) % len(mine) for step in range(length)]
    ids = shown["doc_id"].gather(stretch)
    yield RunFault(
        "part-of-collection", name, "doubt", frozenset(),
        f"{name} never returns one of {length:,d} documents that follow each other in the collection and that other "
        f"runs return ({and_more(ids.head(3).to_list(), 3)}): it seems to have searched a part of the collection.",
        f"Make {name} anew on an index of the whole collection.",
        exception=f"without the {length:,d} documents of a part of the collection that {name} never returns",
        documents=frozenset(ids),
    )  # fmt: skip


def _weighed(topics: frozenset[str], of: int) -> tuple[Weight, frozenset[str]]:
    """Whether topics have to be left out, or whether they are so many that the whole run is at fault."""
    return ("fault", frozenset()) if len(topics) > of / 2 else ("topics", topics)
