"""Whether judgments that were moved among topics, or turned around, are noticed; and sound ones left alone.

    python studies/collection_fit.py [--only NAME …] [--draws 20] [--halves 500]

CACM and Vaswani by the words of their documents; Common Core 2017 and 2018 (BM25) and the passages of TREC 2019
(monoT5) by one run. Prints how often each plant gets its word, then the words of random halves of the topics, where
nothing was moved: a third with all their judgments, a third with relevant rows only, a third with 30% of the judgments.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from common import SHARED, require_shared, table
from truerank.audits.collection.fit import Fit, judgment_fit, natural
from truerank.audits.collection.judgments import read_judgments, usable
from truerank.audits.collection.topics import read_topic_table
from truerank.sources.documents import open_documents
from truerank.sources.runs import read_run_frame

Names = dict[str, str]

COLLECTIONS = {"cacm": ("cacm.tar.gz", "topics.txt"), "vaswani": ("docs.trec.gz", "topics.trec.txt")}
RUNS = {
    "core17": ("core17", "spire22/runs/nyt-common-core-2017-bm25-anserini.run.gz"),
    "core18": ("core18", "spire22/runs/wapo-v2-common-core-2018-bm25-anserini.run.gz"),
    "core17, judged": ("core17", "spire22/runs/nyt-ac-common-core-2017.run.gz"),
    "core18, judged": ("core18", "spire22/runs/wapo-v2-common-core-2018.run.gz"),
    "dl19": ("dl19-passage", "survivorship/runs/monot5.dl19.run.gz"),
}


class Data(NamedTuple):
    """Judgments, topics in order, their texts and those of documents; or a run."""

    qrels: pl.DataFrame
    topics: list[str]
    texts: dict[str, str] | None
    docs: dict[str, str]
    run: pl.DataFrame | None

    def fit(self, qrels: pl.DataFrame, names: Names, seed: int, only: Sequence[str] = ()) -> Fit:
        """The answer for other judgments, with other ids of topics, for some topics."""
        topics = [one for one in self.topics if one in only or not only]
        if self.run is not None:
            run = self.run.filter(pl.col("topic_id").is_in(topics)).with_columns(pl.col("topic_id").replace(names))
            return judgment_fit(qrels, {"run": run}, seed=seed)
        texts = {names.get(one, one): (self.texts or {})[one] for one in topics}
        docs = self.docs
        return judgment_fit(
            qrels, topics=texts, texts=lambda ids: {one: docs[one] for one in ids if one in docs}, seed=seed
        )


def read(name: str) -> Data:
    """One of the sets."""
    if name in RUNS:
        qrels, run = RUNS[name]
        frame = read_run_frame(SHARED / run)
        topics = sorted(frame["topic_id"].unique().to_list(), key=natural)
        return Data(usable(read_judgments(str(SHARED / "qrels" / f"{qrels}.qrels.gz"))), topics, None, {}, frame)
    folder = SHARED / "collections" / name
    docs, topics = (str(folder / file) for file in COLLECTIONS[name])
    texts = {one.topic.topic_id: one.text for one in read_topic_table(topics).distinct()}
    found = {one.document.doc_id: one.document.text for block in open_documents(docs).records() for one in block}
    if name == "cacm":  # CACM-0001.html in the documents, CACM-1 in the judgments
        found = {f"CACM-{int(one.removesuffix('.html').partition('-')[2])}": text for one, text in found.items()}
    return Data(usable(read_judgments(str(folder / "qrels.txt"))), list(texts), texts, found, None)


def renamed(qrels: pl.DataFrame, names: Names) -> pl.DataFrame:
    """Judgments with other ids; those of topics without one are gone."""
    ids = pl.col("topic_id").replace_strict(names, default=None, return_dtype=pl.String)
    return qrels.with_columns(ids).drop_nulls().unique(["topic_id", "doc_id"], keep="first", maintain_order=True)


def plants(data: Data, rng: np.random.Generator) -> dict[str, tuple[str, Callable[[], tuple[pl.DataFrame, Names]]]]:
    """By what is done: the word that is right, and the judgments with new ids of topics."""
    qrels, order = data.qrels, sorted(data.topics, key=natural)
    place = {one: at for at, one in enumerate(order)}
    judged = sorted(qrels["topic_id"].unique().to_list(), key=natural)
    by = int(rng.choice([1, -1, 2, -2, 3, -5, 7]))
    moved = {one: order[(place[one] + by) % len(order)] for one in judged}
    half = set(rng.permutation(judged)[: len(judged) // 2].tolist())
    gaps = dict(zip(data.topics, map(str, np.cumsum(rng.integers(1, 4, len(order)))), strict=True))
    count = {one: str(at + 1) for at, one in enumerate(data.topics)}
    later = {one: order[place[one] + (2 * place[one] >= len(order))] for one in judged if one != order[-1]}
    docs = list(data.docs) or (data.run["doc_id"].unique().sort().to_list() if data.run is not None else [])
    grade, top = pl.col("relevance"), qrels["relevance"].max()
    mixed = dict(zip(judged, rng.permutation(judged).tolist(), strict=True))
    one_on = {one: order[(place[one] + (one in half)) % len(order)] for one in judged}
    # Judgments of the moved half first: a topic that gets them keeps its own too.
    halves = qrels.sort(~pl.col("topic_id").is_in(list(half)), maintain_order=True)
    other = dict(zip(docs, rng.permutation(docs).tolist(), strict=True))
    found: dict[str, tuple[str, Any]] = {
        "number changed by a constant": (
            "shifted", lambda: (renamed(qrels, {one: str(int(one) + by) for one in judged}), {})
        ),
        "moved by places in the order of topics": ("shifted", lambda: (renamed(qrels, moved), {})),
        "topics numbered with gaps, judgments by their place": ("shifted", lambda: (renamed(qrels, count), gaps)),
        "the second half of the topics moved": ("shifted", lambda: (renamed(qrels, later), {})),
        "a random half moved by one": ("shifted", lambda: (renamed(halves, one_on), {})),
        "shuffled": ("shuffled", lambda: (renamed(qrels, mixed), {})),
        "documents permuted": (
            "other collection", lambda: (qrels.with_columns(pl.col("doc_id").replace(other)), {})
        ),
    }  # fmt: skip
    if int((qrels["relevance"] == 0).sum()):
        found |= {
            "relevant and not relevant swapped": (
                "inverted", lambda: (qrels.with_columns((grade < 1).cast(pl.Int32).alias("relevance")), {})
            ),
            "scale turned around": ("inverted", lambda: (qrels.with_columns((top - grade).alias("relevance")), {})),
        }  # fmt: skip
    return found


def halves(data: Data, draws: int) -> Counter[str]:
    """The words of random halves of the topics, nothing moved."""
    words: Counter[str] = Counter()
    judged = data.qrels["topic_id"].unique().sort().to_list()
    for draw in range(draws):
        rng = np.random.default_rng(10_000 + draw)
        some = rng.permutation(judged)[: len(judged) // 2].tolist()
        qrels = data.qrels.filter(pl.col("topic_id").is_in(some))
        if draw % 3 == 1:
            qrels = qrels.filter(pl.col("relevance") > 0)
        elif draw % 3:
            qrels = qrels.sample(fraction=0.3, seed=draw)
        words[data.fit(qrels, {}, draw, some if draw % 2 else ()).word] += 1
    return words


def main() -> None:
    """Plants, asks, and prints the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[*COLLECTIONS, *RUNS], help="names of sets")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--halves", type=int, default=500)
    given = parser.parse_args()
    require_shared()
    rows: dict[str, dict[str, str]] = {}
    nothing = []
    for name in given.only:
        data = read(name)
        hits: Counter[str] = Counter()
        for draw in range(0 if "," in name else given.draws):
            for what, (word, planted) in plants(data, np.random.default_rng(draw)).items():
                qrels, names = planted()
                hits[what] += data.fit(qrels, names, draw).word == word
                rows.setdefault(what, {})[name] = str(hits[what])
        nothing.append((name, given.halves, dict(halves(data, given.halves))))
    planted_sets = [one for one in given.only if "," not in one]
    print(
        table(
            ("planted", *planted_sets),
            [(what, *(by.get(one, "") for one in planted_sets)) for what, by in rows.items()],
        )
    )
    print(table(("nothing planted", "halves", "words"), nothing))


if __name__ == "__main__":
    main()
