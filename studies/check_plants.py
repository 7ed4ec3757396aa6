"""Data whose claims are known: the runs of a collection, and faults that make or hide a claim on them."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
import make_runs
from common import log_path
from truerank.claims.claim import Claim, chosen_claim
from truerank.options import Scoring
from truerank.sources import open_queries, read_run_frame

NAMES = (
    "fused-sum", "expand-rm3", "okapi-bm25", "likely-500", "dense-whole", "latent-200", "words-knrm", "odd-overlap",
)  # fmt: skip
POOL, DEEPEST = 20, 100
KEYS = ["topic_id", "doc_id"]
#: How strong a fault is: the weakest one that makes or hides the claim is taken.
STEPS = (0.2, 0.35, 0.5, 0.65, 0.8, 1.0)


@dataclass(frozen=True)
class Data:
    """What a check reads: judgments and runs as frames, texts by id."""

    qrels: pl.DataFrame
    runs: Mapping[str, pl.DataFrame]
    topics: Mapping[str, str]
    docs: Mapping[str, str]
    train: tuple[str, ...] = ()
    previous: Mapping[str, str] | None = None
    models: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def made_runs(folder: Path, name: str) -> Data:
    """The collection with its eight runs, which are made at the first call."""
    collection, judged = make_runs.read(name, make_runs.SHARED)
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    if not all((place / f"{run}.run").is_file() for run in NAMES):
        with tempfile.TemporaryDirectory() as work:
            ranker = make_runs.Ranker(collection, Path(work))
            ranker.lexical(make_runs.BM25())
            for run in make_runs.runs(ranker):
                if run.name in NAMES:
                    lines = (
                        f"{topic} Q0 {key} {rank} {score:.6f} {run.name}\n"
                        for topic, scored in run.rank().items()
                        for rank, (key, score) in enumerate(scored.items(), start=1)
                    )
                    (place / f"{run.name}.run").write_text("".join(lines))
    # No measure of the check looks further.
    runs = {run: read_run_frame(place / f"{run}.run").drop("tag").filter(pl.col("rank") <= DEEPEST) for run in NAMES}
    topics = set(judged["topic_id"])
    pool = pl.concat([run.filter(pl.col("rank") <= POOL).select(KEYS) for run in runs.values()]).unique(
        maintain_order=True
    )
    zeros = pool.filter(pl.col("topic_id").is_in(list(topics))).join(judged, on=KEYS, how="anti")
    qrels = pl.concat([judged, zeros.with_columns(pl.lit(0, pl.Int32).alias("relevance"))])
    return Data(qrels, runs, collection.topics, collection.documents, background())


def background() -> tuple[str, ...]:
    """Training queries that have nothing to do with the topics."""
    found: list[str] = []
    for block in open_queries(str(log_path("nq-dev"))).batches():
        found += block.texts
        if len(found) >= 400:
            break
    return tuple(found[:400])


def claim_of(data: Data, system: str, baseline: str) -> Claim:
    """The claim, corrected for one comparison as the checks here are."""
    pair = {name: data.runs[name] for name in (system, baseline)}
    return chosen_claim(
        pair, data.qrels, "nDCG@10", Scoring(), (system, baseline), comparisons=1, confidence=0.95
    )  # fmt: skip


def lifted(data: Data, run: str, pairs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The runs, one of which has these documents first."""
    frame = data.runs[run]
    top = frame.group_by("topic_id").agg(pl.col("score").max().alias("top"))
    ahead = pairs.select(KEYS).unique(maintain_order=True).join(top, on="topic_id", how="inner", maintain_order="left")
    places = pl.int_range(pl.len()).over("topic_id")
    ahead = ahead.with_columns((pl.col("top") + 100 - places).alias("score"), pl.lit(0, pl.Int64).alias("rank"))
    kept = frame.join(ahead, on=KEYS, how="anti")
    both = pl.concat([ahead.select(frame.columns), kept])
    ranks = pl.col("score").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64)
    return {**data.runs, run: both.with_columns(ranks.alias("rank"))}


def relevant(data: Data, topics: list[str], each: int) -> pl.DataFrame:
    """Some relevant documents of topics."""
    found = data.qrels.filter((pl.col("relevance") > 0) & pl.col("topic_id").is_in(topics))
    return found.group_by("topic_id", maintain_order=True).head(each)


def some_topics(data: Data, share: float, draw: random.Random) -> list[str]:
    """A share of the judged topics."""
    topics = sorted(set(data.qrels["topic_id"]))
    return sorted(draw.sample(topics, max(1, round(share * len(topics)))))


# -- plants: each takes the data, the run that gains by it, the other one, a strength and a generator ------------------


def leak(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """Topics are in the training data, and a run has learnt their documents."""
    topics = some_topics(data, 0.6 * share, draw)
    train = [*data.train, *(data.topics[key] for key in topics)]
    draw.shuffle(train)
    return replace(data, runs=lifted(data, gains, relevant(data, topics, 5)), train=tuple(train))


def ghosts(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """A run returns documents that do not exist, and they are judged relevant."""
    topics = some_topics(data, share, draw)
    pairs = [(topic, f"ghost-{topic}-{n}") for topic in topics for n in range(4)]
    frame = pl.DataFrame(pairs, schema=KEYS, orient="row")
    judged = frame.with_columns(pl.lit(1, pl.Int32).alias("relevance"))
    return replace(data, runs=lifted(data, gains, frame), qrels=pl.concat([data.qrels, judged]))


def copies(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """Relevant documents are there several times, judged relevant each time, and a run returns all of them."""
    topics = some_topics(data, share, draw)
    docs, rows = dict(data.docs), []
    for topic, key, _ in relevant(data, topics, 1).iter_rows():
        if key in docs:
            for number in range(4):
                docs[f"{key}-copy{number}"] = docs[key]
                rows.append((topic, f"{key}-copy{number}"))
    frame = pl.DataFrame(rows, schema=KEYS, orient="row")
    judged = frame.with_columns(pl.lit(1, pl.Int32).alias("relevance"))
    return replace(data, runs=lifted(data, gains, frame), qrels=pl.concat([data.qrels, judged]), docs=docs)


def unjudged(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """Judgments of the other run's documents are lost."""
    own = data.runs[other].filter(pl.col("rank") <= POOL).select(KEYS)
    theirs = data.runs[gains].filter(pl.col("rank") <= POOL).select(KEYS)
    alone = own.join(theirs, on=KEYS, how="anti").join(data.qrels, on=KEYS, how="semi").sort(KEYS)
    gone = alone.sample(fraction=share, seed=draw.randrange(1 << 30), shuffle=True)
    return replace(data, qrels=data.qrels.join(gone, on=KEYS, how="anti"))


def unpooled(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """The other run was not pooled, nor were runs that found the same documents."""
    kept = [name for name in data.runs if name not in (other, gains)]
    draw.shuffle(kept)
    pooled = [gains, *kept[: max(1, round((1 - share) * len(kept)))]]
    pool = pl.concat([data.runs[name].filter(pl.col("rank") <= POOL).select(KEYS) for name in pooled]).unique()
    return replace(data, qrels=data.qrels.join(pool, on=KEYS, how="semi"))


def changed(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """The other run's relevant documents are gone or emptied in the new version; the judgments are of the old one."""
    first = data.runs[other].filter(pl.col("rank") <= 10).select(KEYS)
    theirs = data.runs[gains].filter(pl.col("rank") <= 10).select(KEYS)
    alone = first.join(theirs, on=KEYS, how="anti").join(
        data.qrels.filter(pl.col("relevance") > 0), on=KEYS, how="semi"
    )
    keys = sorted(set(alone["doc_id"]) & set(data.docs))
    chosen = draw.sample(keys, round(share * len(keys)))
    docs = dict(data.docs)
    for place, key in enumerate(chosen):
        if place % 2:
            del docs[key]
        else:
            docs[key] = "Page not found. The page was moved or does not exist."
    return replace(data, docs=docs, previous=data.docs)


def biased(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """A model calls relevant what one run ranks first."""
    first = data.runs[gains].filter(pl.col("rank") <= 5).select(*KEYS, pl.lit(True).alias("first"))
    both = data.qrels.join(first, on=KEYS, how="left", maintain_order="left")
    raised = pl.Series([draw.random() < share for _ in range(len(both))])
    grade = pl.when(pl.col("first").fill_null(False) & raised).then(1).otherwise(pl.col("relevance"))
    return replace(data, models={"model": both.with_columns(grade.cast(pl.Int32).alias("relevance")).drop("first")})


def missing(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """The other run lacks topics on which it does well."""
    claim = claim_of(data, other, gains)
    better = claim.differences(claim.evaluation)
    order = sorted(range(len(better)), key=lambda at: -better[at])
    gone = [claim.evaluation.topics[at] for at in order[: round(0.4 * share * len(order))]]
    return replace(data, runs={**data.runs, other: data.runs[other].filter(~pl.col("topic_id").is_in(gone))})


Plant = Callable[[Data, str, str, float, random.Random], Data]
#: By kind: the plants, the inputs that the check is given, and the questions that see it.
KINDS: dict[str, tuple[tuple[Plant, ...], set[str], tuple[str, ...]]] = {
    "leakage": ((leak,), {"leakage"}, ("leakage",)),
    "collection": ((ghosts, copies), {"collection"}, ("collection",)),
    "unjudged": ((unjudged,), set(), ("unjudged", "pools")),
    "pools": ((unpooled,), set(), ("pools", "unjudged")),
    "models": ((biased,), {"models"}, ("models",)),
    "versions": ((changed,), {"versions"}, ("versions",)),
    "missing topics": ((missing,), set(), ("files",)),
}


def stands(data: Data, system: str, baseline: str) -> bool:
    """Whether the claim is shown on these data, taken for themselves."""
    return claim_of(data, system, baseline).base.effect == "stands"


def planted(data: Data, kind: str, count: int, way: str, draw: random.Random) -> Iterator[tuple[Data, str, str]]:
    """Data with a fault that makes or hides a claim, the system and the baseline of the claim."""
    pairs = [(one, other) for one in NAMES for other in NAMES if one != other]
    pairs = [pair for pair in pairs if stands(data, *pair) == (way == "hidden")]
    draw.shuffle(pairs)
    yielded = 0
    for system, baseline in pairs * 3:
        if yielded == count:
            return
        gains, other = (system, baseline) if way == "made" else (baseline, system)
        plants = KINDS[kind][0]
        seed = draw.randrange(1 << 30)
        for share in STEPS:
            faulty = plants[yielded % len(plants)](data, gains, other, share, random.Random(seed))
            after = faulty
            if kind == "models":
                after = replace(data, qrels=faulty.models["model"])
            if kind == "versions":
                # The judgments still say the old order: what a claim on the new documents would be is what differs.
                kept = {key for key, text in faulty.docs.items() if text == data.docs[key]}
                after = replace(data, qrels=data.qrels.filter(pl.col("doc_id").is_in(list(kept))))
            if stands(after, system, baseline) == (way == "made"):
                yielded += 1
                yield faulty, system, baseline
                break
