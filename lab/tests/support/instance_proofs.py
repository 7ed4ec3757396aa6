"""What training sets promise, checked on a built table against the world that it was built from."""

from __future__ import annotations

import polars as pl

from instances_example import World
from truerank.text.normalising import normalise
from truerank_lab.instances import Built


def broken(built: Built, world: World, *, sources: tuple[str, ...] = ("alpha", "beta")) -> set:
    """The names of the promises that do not hold."""
    frame = pl.read_parquet(built.folder / "instances.parquet")
    promises = {
        "sizes": _sizes(built, frame),
        "texts": all((frame[name].str.strip_chars().str.len_bytes() > 0).all() for name in _TEXTS),
        "apart": _apart(frame, world),
        "balance": _balance(built, frame, sources),
        "repeats": _no_repeats(frame),
        "candidates": _no_candidate(frame, world),
        "leaks": _leaks(built, frame, world),
    }
    return {name for name, holds in promises.items() if not holds}


_TEXTS = ("query", "relevant", "nonrelevant")


def _sizes(built: Built, frame: pl.DataFrame) -> bool:
    """Numbered in order, and all rows that leak are at the beginning of every size."""
    leaking = frame["role"] != "none"
    count = int(leaking.sum())
    whole = frame["number"].to_list() == list(range(max(built.sizes) // 2))
    asked = built.about["options"].get("leaks", 0)
    return whole and bool(leaking.head(count).all()) and count == asked <= min(built.sizes) // 2


def _judged(world: World, row: dict) -> set[str]:
    """The documents that are relevant to the query of a row, as far as anybody says so."""
    if row["role"] == "test":
        return {doc_id for doc_id, grade in world.judged[row["topic_id"]].items() if grade}
    return world.relevant.get(row["query_id"], {row["query_id"].removeprefix("doc-")})


def _apart(frame: pl.DataFrame, world: World) -> bool:
    """No non-relevant document was judged relevant, or is the relevant one of its query elsewhere."""
    pairs = set(frame.select("query", "relevant_id").rows()) & set(frame.select("query", "nonrelevant_id").rows())
    return not pairs and all(row["nonrelevant_id"] not in _judged(world, row) for row in frame.iter_rows(named=True))


def _balance(built: Built, frame: pl.DataFrame, sources: tuple[str, ...]) -> bool:
    """In every size the sources have equal shares of the rows without a leak, the first ones one more."""
    for size in built.sizes:
        found = frame.head(size // 2).filter(role="none")["source"].to_list()
        share, more = divmod(len(found), len(sources))
        if [found.count(name) for name in sources] != [share + (place < more) for place in range(len(sources))]:
            return False
    return True


def _no_repeats(frame: pl.DataFrame) -> bool:
    texts = [normalise(text) for text in frame.filter(pl.col("role") != "test")["query"]]
    return len(set(texts)) == len(texts)


def _no_candidate(frame: pl.DataFrame, world: World) -> bool:
    """No candidate of the audit in a row without a leak, by text or by id."""
    texts = {normalise(text) for _, _, _, text, _ in world.candidates}
    ids = {(source, query_id) for _, source, query_id, _, _ in world.candidates}
    fill = frame.filter(role="none").select("query", "source", "query_id").rows()
    return not any(normalise(text) in texts or (source, query_id) in ids for text, source, query_id in fill)


def _leaks(built: Built, frame: pl.DataFrame, world: World) -> bool:
    """Rows that leak are verified leaks, or have the text of their topic and a document that is relevant to it."""
    if built.kind == "leak":
        return set(frame.filter(role="leak").select("topic_id", "query_id").rows()) <= set(world.leaks)
    rows = frame.filter(role="test").rows(named=True)
    for row in rows:
        text = normalise(row["query"]) == normalise(world.topics[row["topic_id"]])
        if not text or row["relevant_id"] not in _judged(world, row):
            return False
    documents = {(row["topic_id"], row["relevant_id"]) for row in rows}
    return len(documents) == len(rows)
