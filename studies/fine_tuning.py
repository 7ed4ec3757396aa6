"""What leaks do to an embedding model: MiniLM fine-tuned on training sets of one size that differ in what leaks.

    python studies/fine_tuning.py --out DIR                     trains what is missing, then reports
    python studies/fine_tuning.py --out DIR --collections cacm  one collection
    python studies/fine_tuning.py --out DIR --report            reports what there is

Five sets for each collection (`instances build`): pairs made of the collection's own documents, none of them relevant
to a topic; and the same with rows of a random half of the topics in front: their queries with documents that nobody
judged, their relevant documents with queries made of these, pairs of both, and pairs with the query reworded. Each set
is trained on with several seeds. A finished training is a file, so that a killed run goes on.

All documents of the pool are scored for every topic: the first fifty of BM25 and of the model before training, judged
documents, and the positives of the rows that leak.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bi_encoder import FineTuning, fine_tune, open_bi_encoder
from common import SHARED, require_shared, table
from truerank import lexical
from truerank.core.figures import IntervalPanel, IntervalValue, interval_panels, to_svg_file
from truerank_lab.instances import CutRule, build, open_built
from truerank_lab.instances.options import LeakOptions, TopicOptions, TrainingOptions
from truerank_lab.reporting.memorisation import memorisation
from truerank.measures import evaluate
from truerank.measures.placebo import Placebo, difficulty_classes, placebo_removal
from truerank.measures.resampling import crossed_interval
from truerank.rankers.base import Pair
from truerank.sources import open_documents, read_topics
from truerank.sources.qrels import read_qrels_frame
from truerank.text.normalising import normalise
from truerank.vectors.encoders.model_folder import packaged_folder
from truerank.work.artifacts import atomic_path

Floats = NDArray[np.float32]

KINDS: Final = ("none", "test-queries", "test-documents", "test", "test-reworded")
BEFORE: Final = "before"
SEEDS: Final = 5
MEASURES: Final = "nDCG@10 RR R@100"
DEPTH: Final = 100
_POOLED: Final = 50
#: Two epochs: the training overview has one, for sets of hundreds of thousands of pairs.
PLAN: Final = FineTuning(epochs=2, precision="bf16")
ROWS: Final = 192
_ENCODED: Final = 32


class Spread(NamedTuple):
    """A mean over topics and seeds with its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.shown(".3f")

    def shown(self, form: str) -> str:
        """With so many decimals."""
        return f"{self.mean:+{form}} [{self.low:+{form}}, {self.high:+{form}}]"


class RankChange(NamedTuple):
    """Mean ranks with and without the leak, and the ranks that documents rise by."""

    with_leak: float
    without: float
    gain: Spread


class Collection(NamedTuple):
    """A test collection, and how many rows leak; `ends` says where the bibliographic data of a document begins."""

    name: str
    docs: str
    topics: str
    qrels: str
    leaks: int
    ends: str = ""


def collections() -> dict[str, Collection]:
    """The two collections."""
    root = SHARED / "collections"
    found = (
        Collection("cacm", "cacm.tar.gz", "topics.txt", "qrels.txt", 40, "CACM [A-Z][a-z]+,? +[0-9]{4}"),
        Collection("vaswani", "docs.trec.gz", "topics.trec.txt", "qrels.txt", 64),
    )
    return {
        one.name: one._replace(
            docs=str(root / one.name / one.docs),
            topics=str(root / one.name / one.topics),
            qrels=str(root / one.name / one.qrels),
        )
        for one in found
    }


@dataclass(frozen=True)
class Bench:
    """A collection with its sets, its pool and what is scored."""

    collection: Collection
    out: Path

    @cached_property
    def topics(self) -> dict[str, str]:
        """Texts of the topics that have a relevant document."""
        judged = set(self.qrels.filter(pl.col("relevance") > 0)["topic_id"])
        found = {one.topic_id: normalise(one.title) for one in read_topics(self.collection.topics).topics}
        return {topic: text for topic, text in found.items() if text and topic in judged}

    @cached_property
    def qrels(self) -> pl.DataFrame:
        """All judgments."""
        return read_qrels_frame(self.collection.qrels)

    @cached_property
    def documents(self) -> dict[str, Any]:
        """All documents by id."""
        return {one.doc_id: one for block in open_documents(self.collection.docs).batches(1024) for one in block}

    @cached_property
    def leaked(self) -> tuple[str, ...]:
        """A random half of the topics, of those that have a relevant document which makes a query: they can leak in
        any way."""
        rule = CutRule(ends=self.collection.ends)
        relevant = self.qrels.filter(pl.col("relevance") > 0)
        whole = {doc_id for doc_id in relevant["doc_id"].unique() if doc_id in self.documents}
        whole = {doc_id for doc_id in whole if rule(self.documents[doc_id]) is not None}
        can = sorted(set(relevant.filter(pl.col("doc_id").is_in(sorted(whole)))["topic_id"]) & set(self.topics))
        return tuple(sorted(random.Random(0).sample(can, len(self.topics) // 2)))

    @property
    def leaked_file(self) -> Path:
        """The leaked topics as a source."""
        path = self.out / "topics-leaked.tsv"
        if not path.is_file():
            with atomic_path(path) as temporary:
                temporary.write_text("".join(f"{topic}\t{self.topics[topic]}\n" for topic in self.leaked))
        return path

    def sets(self) -> None:
        """Builds the sets that are missing."""
        one, cut = self.collection, CutRule(ends=self.collection.ends)
        for kind in KINDS:
            folder = self.out / "sets" / kind
            if (folder / "manifest.json").is_file():
                continue
            if kind == "none":
                training = TrainingOptions(queries_from_documents=one.docs, exclude_qrels=one.qrels)
                build(kind, (2 * ROWS,), training=training, cut=cut, out=folder)
                continue
            training = TrainingOptions(fill=str(self.out / "sets" / "none"), docs=one.docs)
            testing = TopicOptions(topics=str(self.leaked_file), qrels=one.qrels)
            leak = LeakOptions(leaks=one.leaks)
            build(kind, (2 * ROWS,), training=training, cut=cut, leak=leak, testing=testing, out=folder)

    def rows(self, kind: str) -> pl.DataFrame:
        """The rows of a set."""
        return open_built(self.out / "sets" / kind).lazy().collect()

    @cached_property
    def bm25(self) -> pl.DataFrame:
        """The first stage: topic_id, doc_id, score and rank."""
        path = self.out / "bm25.parquet"
        if not path.is_file():
            index, model = self.out / "index", lexical.model_of("anserini", "bm25")
            lexical.build_index(self.collection.docs, index, analyser=lexical.analyser_of("anserini"))
            queries = [lexical.TopicQuery(topic, text) for topic, text in self.topics.items()]
            found = lexical.search(str(index), queries, model, k=DEPTH).run
            with atomic_path(path) as temporary:
                found.write_parquet(temporary)
        return pl.read_parquet(path)

    @cached_property
    def pool(self) -> list[str]:
        """The documents that are scored, in the order of their ids."""
        path = self.out / "pool.json"
        if not path.is_file():
            model = open_bi_encoder(packaged_folder(), PLAN.tokens)
            every = sorted(self.documents)
            scores = scored(model, list(self.topics.values()), [self.documents[one].text for one in every])
            best = np.argsort(-scores, axis=1, kind="stable")[:, :_POOLED]
            chosen = {every[place] for place in np.unique(best).tolist()}
            chosen |= set(self.bm25.filter(pl.col("rank") <= _POOLED)["doc_id"]) | (
                set(self.qrels["doc_id"]) & self.documents.keys()
            )
            for kind in KINDS[1:]:
                rows = self.rows(kind)
                chosen |= set(rows.filter(pl.col("role") == "test")["relevant_id"])
            with atomic_path(path) as temporary:
                temporary.write_text(json.dumps(sorted(chosen)))
        found: list[str] = json.loads(path.read_text())
        return found

    def place(self, kind: str, seed: int) -> Path:
        """The scores of one training."""
        return self.out / "scores" / f"{kind}.{seed}.npz"

    def cell(self, kind: str, seed: int) -> dict[str, Any] | None:
        """Trains once and scores the pool; None where that is done."""
        path = self.place(kind, seed)
        if path.is_file():
            return None
        began, used = time.perf_counter(), time.process_time()
        model = open_bi_encoder(packaged_folder(), PLAN.tokens)
        losses: list[float] = []
        if kind != BEFORE:
            pairs = [Pair(*row) for row in self.rows(kind).select("query", "relevant").rows()]
            losses = fine_tune(model, pairs, PLAN, seed=seed)
        trained = time.process_time() - used
        scores = scored(model, list(self.topics.values()), [self.documents[one].text for one in self.pool])
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, scores=scores, losses=np.array(losses))
        return {
            "kind": kind,
            "seed": seed,
            "loss": [round(losses[0], 3), round(float(np.mean(losses[-8:])), 3)] if losses else None,
            "seconds": round(time.perf_counter() - began, 1),
            "processor": round(time.process_time() - used, 1),
            "training": round(trained, 1),
        }


def scored(model: Any, topics: Sequence[str], documents: Sequence[str]) -> Floats:
    """The cosine of each topic and document, shape (topics, documents); vectors are computed in bf16."""
    import torch

    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=PLAN.precision == "bf16"):
        queries, texts = (
            model.encode(list(some), batch_size=_ENCODED, convert_to_tensor=True, show_progress_bar=False).float()
            for some in (topics, documents)
        )
    unit = [torch.nn.functional.normalize(one, dim=1).double() for one in (queries, texts)]
    found: Floats = (unit[0] @ unit[1].T).float().numpy()
    return found


def trainings(bench: Bench, seeds: int) -> Iterator[tuple[str, int]]:
    """The cells; a seed is done with all sets before the next begins."""
    yield BEFORE, 0
    for seed in range(seeds):
        for kind in KINDS:
            yield kind, seed


def counted(seeds: Sequence[int]) -> str:
    """How many seeds there are, in words."""
    return f"{len(seeds)} seed{'s' if len(seeds) != 1 else ''}"


@dataclass(frozen=True)
class Results:
    """What was trained of a collection: the scores of all documents of the pool, by model and seed."""

    bench: Bench
    seeds: tuple[int, ...]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, bench: Bench, seeds: int) -> Results:
        """The sets that the first seed has, and the seeds that all of these have."""
        kinds = tuple(kind for kind in KINDS if bench.place(kind, 0).is_file())
        done = [seed for seed in range(seeds) if all(bench.place(kind, seed).is_file() for kind in kinds)]
        return cls(bench, tuple(done) if "none" in kinds and len(kinds) > 1 else (), kinds)

    def run(self, kind: str, seed: int) -> pl.DataFrame:
        """The whole pool ranked by a model: topic_id, doc_id and score."""
        with np.load(self.bench.place(kind, seed)) as stored:
            scores = stored["scores"]
        topics, pool = list(self.bench.topics), self.bench.pool
        return pl.DataFrame(
            {"topic_id": np.repeat(topics, len(pool)), "doc_id": np.tile(pool, len(topics)), "score": scores.ravel()}
        ).with_columns(pl.col("score").cast(pl.Float64).round(6))

    @cached_property
    def values(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """By model and measure the scores, shape (topics, seeds); BM25 and the model before training have one seed."""
        found: dict[tuple[str, str], list[Floats]] = {}
        for kind in ("bm25", BEFORE, *self.kinds):
            for seed in self.seeds if kind in self.kinds else (0,):
                frame = self.bench.bm25 if kind == "bm25" else self.run(kind, seed)
                first = frame.sort("topic_id", "score", "doc_id", descending=[False, True, False])
                first = first.group_by("topic_id", maintain_order=True).head(1000)
                made = evaluate(self.bench.qrels, {kind: first.select("topic_id", "doc_id", "score")}, MEASURES)
                rows = [made.topics.index(topic) for topic in self.bench.topics]
                for name, measure in zip(MEASURES.split(), made.measures, strict=True):
                    found.setdefault((kind, name), []).append(made.of(kind, measure)[rows])
        return {key: np.stack(columns, axis=1) for key, columns in found.items()}

    @cached_property
    def is_leaked(self) -> NDArray[np.bool_]:
        """Which topics leak, shape (topics,)."""
        return np.array([topic in set(self.bench.leaked) for topic in self.bench.topics])

    def change(self, kind: str, measure: str, base: str = "none") -> dict[str, Spread]:
        """A model minus another one on leaked topics, on clean ones, the difference of the two, and on all topics."""
        both = self.values[kind, measure] - self.values[base, measure]
        parts = both[self.is_leaked], both[~self.is_leaked]
        leaked, clean, every = (Spread(float(part.mean()), *crossed_interval([part])) for part in (*parts, both))
        apart = Spread(leaked.mean - clean.mean, *crossed_interval(parts))
        return {"leaked": leaked, "clean": clean, "apart": apart, "all": every}

    def documents(self, kind: str, *, trained: bool) -> pl.DataFrame:
        """Documents of leaked topics: those that were trained on, or the other relevant ones."""
        rows = self.bench.rows(kind).filter(pl.col("role") == "test")
        own = rows.select("topic_id", pl.col("relevant_id").alias("doc_id")).unique()
        if not trained:
            judged = self.bench.qrels.filter(pl.col("relevance") > 0, pl.col("topic_id").is_in(list(self.bench.leaked)))
            judged = judged.filter(pl.col("doc_id").is_in(self.bench.pool)).select("topic_id", "doc_id")
            own = judged.join(own, on=["topic_id", "doc_id"], how="anti")
        return own.with_columns(relevant=pl.lit(True)).sort("topic_id", "doc_id")

    def ranks(self, kind: str, documents: pl.DataFrame) -> RankChange:
        """How much higher documents rank with the leak, among the first fifty of BM25; each is inserted by itself.

        Source: leakage paper, section 4 (memorisation of leaked instances), with 50 documents in place of 100.
        """
        best = self.bench.bm25.filter(pl.col("rank") <= _POOLED)
        first = best.select("topic_id", "doc_id", pl.lit(True).alias("candidate"))
        wanted = documents.select("topic_id", "doc_id").join(first, on=["topic_id", "doc_id"], how="anti")
        every = pl.concat([first, wanted.with_columns(candidate=pl.lit(False))])
        sides: list[list[NDArray[np.float64]]] = [[], []]
        for seed in self.seeds:
            frames = [
                self.run(one, seed).join(every, on=["topic_id", "doc_id"]).with_columns(seed=pl.lit(seed))
                for one in (kind, "none")
            ]
            found = memorisation(frames[0], frames[1], documents)
            for side, name in zip(sides, ("rank_with", "rank_without"), strict=True):
                side.append(found.values(name)[1])
        with_leak, without = (np.stack(side, axis=1) for side in sides)
        gain = without - with_leak
        return RankChange(
            float(with_leak.mean()), float(without.mean()), Spread(float(gain.mean()), *crossed_interval([gain]))
        )

    def placebo(self, measure: str) -> Placebo:
        """The removal of the leaked topics beside that of as many random ones that are as hard without a leak."""
        means = {kind: self.values[kind, measure].mean(axis=1) for kind in ("bm25", BEFORE, *self.kinds)}
        strata = difficulty_classes({"none": means["none"]})
        return placebo_removal(means, self.is_leaked, strata=strata, measure=measure)

    def report(self) -> str:
        """All tables."""
        count = f"{counted(self.seeds)}, {int(self.is_leaked.sum())} leaked and {int((~self.is_leaked).sum())} clean"
        parts = [f"## {self.bench.collection.name}: {count} topics, {len(self.bench.pool):,} documents of the pool"]
        rows = []
        for kind in ("bm25", BEFORE, *self.kinds):
            cells = []
            for measure in MEASURES.split():
                table_of = self.values[kind, measure]
                cells += [f"{table_of[self.is_leaked].mean():.3f}", f"{table_of[~self.is_leaked].mean():.3f}"]
            own = self.values[kind, "nDCG@10"].mean(axis=0)
            rows.append([kind, *cells, f"{own.mean():.3f}", f"{own.std(ddof=1):.4f}" if len(own) > 1 else "–"])
        header = [f"{measure} {side}" for measure in MEASURES.split() for side in ("leaked", "clean")]
        parts.append(table(["model", *header, "nDCG@10 all", "sd of seeds"], rows))
        changes = [(measure, "none") for measure in MEASURES.split()]
        changes += [("nDCG@10", base) for base in (BEFORE, "bm25", *self.kinds) if base in (BEFORE, "bm25", "test")]
        for measure, base in changes:
            kinds = [kind for kind in self.kinds if kind != base]
            rows = [[kind, *map(str, self.change(kind, measure, base).values())] for kind in kinds]
            parts.append(f"{measure}, minus {base}")
            parts.append(table(["set", "leaked topics", "clean topics", "leaked minus clean", "all topics"], rows))
        parts.append("Ranks of documents of leaked topics among the first fifty of BM25")
        rows = []
        for kind in self.kinds[1:]:
            for trained in (True, False):
                one = self.ranks(kind, self.documents(kind, trained=trained))
                what = "trained on" if trained else "other relevant ones"
                rows.append([kind, what, f"{one.without:.2f}", f"{one.with_leak:.2f}", one.gain.shown(".2f")])
        parts.append(table(["set", "documents", "without", "with", "rise"], rows))
        parts.append("Order by nDCG@10")
        for side, where in (("leaked", self.is_leaked), ("clean", ~self.is_leaked)):
            means = {kind: float(self.values[kind, "nDCG@10"][where].mean()) for kind in ("bm25", BEFORE, *self.kinds)}
            order = sorted(means, key=lambda kind: -means[kind])
            parts.append(f"{side}: " + " > ".join(f"{kind} {means[kind]:.3f}" for kind in order))
        for kind in self.kinds:
            own = self.values[kind, "nDCG@10"].mean(axis=0)
            beats = [int((own > self.values[one, "nDCG@10"].mean(axis=0)).sum()) for one in ("bm25", BEFORE, "none")]
            parts.append(f"{kind}: above BM25, before, none in {beats[0]}, {beats[1]}, {beats[2]} of {len(own)} seeds")
        for measure in MEASURES.split():
            made = self.placebo(measure)
            parts.append(f"Placebo, {measure}: {made.word}. {made.reason}")
            rows = [
                [one.system, f"{one.change:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}", f"{one.p:.3f}"]
                for one in made.systems
            ]
            parts.append(table(["model", "change", "random removals", "p"], rows))
        return "\n\n".join(parts)


def summary(results: Sequence[Results]) -> str:
    """The table of docs/fine-tuning.md: nDCG@10, its changes, and the ranks that trained documents rise by."""
    header = (
        "collection",
        "model",
        "leaked topics",
        "clean topics",
        "change, leaked",
        "change, clean",
        "rise in ranks",
    )
    rows = []
    for one in results:
        for kind in ("bm25", BEFORE, *one.kinds):
            values = one.values[kind, "nDCG@10"]
            cells = [f"{values[where].mean():.3f}" for where in (one.is_leaked, ~one.is_leaked)]
            if kind in one.kinds[1:]:
                made = one.change(kind, "nDCG@10")
                rise = one.ranks(kind, one.documents(kind, trained=True)).gain.shown(".1f")
                cells += [str(made["leaked"]), str(made["clean"]), rise]
            rows.append([one.bench.collection.name, kind, *cells, *["–"] * (5 - len(cells))])
    return table(header, rows)


def figure(results: Sequence[Results], path: Path) -> None:
    """The changes of nDCG@10 by set, on leaked and on clean topics."""
    groups = ("leaked topics", "clean topics")
    rows = [f"{kind}, {group}" for kind in KINDS[1:] for group in groups]
    panels = []
    for one in results:
        values = []
        for kind in KINDS[1:]:
            if kind not in one.kinds:
                values += [IntervalValue(None, None, None, group) for group in groups]
                continue
            made = one.change(kind, "nDCG@10")
            for group in groups:
                spread = made[group.split()[0]]
                values.append(IntervalValue(spread.mean, spread.low, spread.high, group))
        title = f"{one.bench.collection.name}, {counted(one.seeds)}"
        panels.append(IntervalPanel(title, "change of nDCG@10", tuple(values), {0.0: ""}))
    drawn = interval_panels(rows, panels, groups=groups)
    told = "Change of nDCG@10 of fine-tuned MiniLM by what leaks, on leaked and clean topics, with 95% intervals"
    path.write_text(to_svg_file(drawn, name="fine-tuning", description=told), encoding="utf-8")


def main() -> None:
    """Trains and reports."""
    require_shared()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--collections", default="cacm,vaswani")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="train nothing")
    given = parser.parse_args()
    benches = [Bench(collections()[name], given.out / name) for name in given.collections.split(",")]
    if not given.report:
        import torch

        torch.set_num_threads(given.threads)
        for bench in benches:
            bench.sets()
            for kind, seed in trainings(bench, given.seeds):
                if (done := bench.cell(kind, seed)) is not None:
                    print(json.dumps({"collection": bench.collection.name, **done}), flush=True)
    results = [Results.of(bench, given.seeds) for bench in benches]
    done = [one for one in results if one.seeds]
    print("\n\n".join([summary(done), *(one.report() for one in done)]))
    figure(done, given.out / "fine-tuning.svg")


if __name__ == "__main__":
    main()
