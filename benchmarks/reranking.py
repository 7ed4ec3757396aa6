"""Reranking throughput of a MiniLM cross-encoder against `sentence_transformers.CrossEncoder.predict`.

    python benchmarks/reranking.py [vaswani|cacm] [--topics 20] [--repeats 3] [--int8] [--bi-encoder]
        [--pairs N] [--shape LAYERSxWIDTH]
    python benchmarks/reranking.py [vaswani|cacm] --run [--topics 45] [--repeats 3]
    python benchmarks/reranking.py [vaswani|cacm] --device cuda [--shape LAYERSxWIDTH] [--json FILE]

The encoder is the packaged MiniLM with a head drawn from a seed, or with `--shape` a BERT of so many layers and units
with weights drawn from a seed; the pairs are the BM25 top 100 of the collection's topics. `--bi-encoder`: the packaged
MiniLM itself, against `SentenceTransformer.encode` of the distinct texts. All ways score the same pairs in turn,
several times; the median by processor time is printed, and how far the scores are from those of the first way. Each has
one thread, for threads that wait use processor time, and other work on the machine hardly shows. Loading and compiling
are not counted; the first round warms every way up.

`--run`: a whole run by the bi-encoder, with the vectors that blocks share and with each block by itself, in turn;
median processor time, and how many documents were encoded.

`--device cuda`: pairs a second by the clock on that device in fp32, fp16 and bf16, against `CrossEncoder.predict`
there, and the largest difference of a score from truerank's on the CPU in fp32, of every so many pairs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shared_data import SHARED, rate_table, require_shared, table
from truerank.lexical import build_index, model_of, search, topic_queries
from truerank.lexical.searching import write_run
from truerank.rankers.base import Pair, Ranker, open_ranker
from truerank.sources import read_documents
from truerank.vectors.encoders.openvino import bf16_is_native
from truerank.vectors.encoders.speed import processor_name

DEPTH = 100
#: Pairs whose scores on a device are compared with those on the CPU.
COMPARED = 1000


def collection(name: str) -> tuple[str, str]:
    """Documents and topics of a collection."""
    folder = SHARED / "collections" / name
    docs = next(path for path in sorted(folder.iterdir()) if path.name.startswith(("docs", "cacm.tar", "corpus")))
    topics = next(path for path in sorted(folder.iterdir()) if path.name.startswith("topics"))
    return str(docs), str(topics)


def candidates(name: str, topics: int, folder: Path) -> list[Pair]:
    """Query and document of the BM25 top 100."""
    docs, source = collection(name)
    index = build_index(docs, folder / "index")
    queries = topic_queries(source)[:topics]
    run = search(index, queries, model_of("anserini", "bm25", {}), k=DEPTH).run
    texts = {document.doc_id: document.text for document in read_documents(docs)}
    asked = {query.topic_id: query.text for query in queries}
    return [Pair(asked[topic], texts[doc]) for topic, doc in run.select("topic_id", "doc_id").iter_rows()]


def random_bert(shape: str, folder: Path) -> str:
    """The name of a ranker of so many layers and units, such as 12x768, with heads as MiniLM has."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    layers, width = map(int, shape.split("x"))
    torch.manual_seed(0)
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": 4 * width}
    module = BertForSequenceClassification(BertConfig(**sizes, num_attention_heads=12, num_labels=1))
    module.save_pretrained(folder / "drawn")
    open_ranker("monobert:packaged", backend="torch", device="cpu").tokenizer.save_pretrained(folder / "drawn")  # type: ignore[attr-defined]
    return f"monobert:{folder / 'drawn'}"


def cross_encoder(
    pairs: list[Pair], folder: Path, shape: str | None = None
) -> tuple[str, str, Callable[[], np.ndarray]]:
    """The name of our model, what it is compared with, and how that scores."""
    import torch
    from sentence_transformers import CrossEncoder

    if shape is None:
        start = open_ranker("monobert:packaged", backend="torch", device="cpu", labels=1, seed=1)
    else:
        start = open_ranker(random_bert(shape, folder), backend="torch", device="cpu")
    start.save(folder / "model")
    peer = CrossEncoder(str(folder / "model"), device="cpu", activation_fn=torch.nn.Identity())
    plain = [tuple(pair) for pair in pairs]
    return str(folder / "model"), "CrossEncoder.predict", lambda: peer.predict(plain, show_progress_bar=False)


def bi_encoder(pairs: list[Pair]) -> tuple[str, str, Callable[[], np.ndarray]]:
    """The same of a bi-encoder."""
    from sentence_transformers import SentenceTransformer

    from truerank.vectors.encoders.model_folder import packaged_folder

    peer = SentenceTransformer(str(packaged_folder()), device="cpu")

    def score() -> np.ndarray:
        texts = [list(dict.fromkeys(column)) for column in zip(*pairs, strict=True)]
        vectors = [dict(zip(some, peer.encode(some, show_progress_bar=False), strict=True)) for some in texts]
        return np.array([vectors[0][pair.query] @ vectors[1][pair.document] for pair in pairs])

    return "ance:packaged", "SentenceTransformer.encode", score


def ways(
    pairs: list[Pair], folder: Path, *, int8: bool, bi: bool, shape: str | None = None
) -> dict[str, Callable[[], np.ndarray]]:
    """What is timed; the first is what the others are compared with."""
    model, name, peer = bi_encoder(pairs) if bi else cross_encoder(pairs, folder, shape)

    def opened(**options: object) -> Callable[[], np.ndarray]:
        ranker: Ranker = open_ranker(model, device="cpu", threads=1, **options)
        return lambda: ranker.score(pairs)

    found = {
        name: peer,
        "truerank, torch": opened(backend="torch"),
        "truerank, OpenVINO": opened(backend="openvino"),
    }
    if bf16_is_native():
        for precision in ("bf16x3", "bf16"):
            found[f"truerank, OpenVINO {precision}"] = opened(precision=precision)
    if int8:
        some = tuple(pairs[:: max(1, len(pairs) // 256)][:256])
        found["truerank, OpenVINO int8"] = opened(precision="int8", calibration=some)
    return found


def speed_on(
    device: str, pairs: list[Pair], folder: Path, repeats: int, shape: str | None
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Pairs a second on a device by the clock, each round of each way; and how far scores are from fp32 on the CPU."""
    import torch
    from sentence_transformers import CrossEncoder

    model, _, _ = cross_encoder(pairs, folder, shape)
    plain = [tuple(pair) for pair in pairs]
    kinds = {"fp32": torch.float32} | ({} if device == "cpu" else {"fp16": torch.float16, "bf16": torch.bfloat16})

    def peer(kind: Any, batch: int) -> Callable[[], np.ndarray]:
        opened = CrossEncoder(model, device=device, activation_fn=torch.nn.Identity(), model_kwargs={"dtype": kind})
        return lambda: opened.predict(plain, batch_size=batch, show_progress_bar=False)

    def own(precision: str) -> Callable[[], np.ndarray]:
        ranker = open_ranker(model, device=device, backend="torch", precision=precision)
        return lambda: ranker.score(pairs)

    timed = {"CrossEncoder.predict fp32": peer(torch.float32, 32)}
    timed |= {f"CrossEncoder.predict {name}, batches of 256": peer(kind, 256) for name, kind in kinds.items()}
    timed |= {f"truerank {name}": own(name) for name in kinds}
    some = list(range(0, len(pairs), max(1, len(pairs) // COMPARED)))
    exact = open_ranker(model, device="cpu", backend="torch").score([pairs[place] for place in some])
    # The first call of each warms it up, with the sizes of batches that are timed.
    differences = {name: f"{np.abs(np.asarray(way()).ravel()[some] - exact).max():.1e}" for name, way in timed.items()}
    rates: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(repeats):
        for name, way in timed.items():
            begun = time.perf_counter()
            way()
            rates[name].append(len(pairs) / (time.perf_counter() - begun))
            print(f"{name}: {rates[name][-1]:,.0f} pairs/s", file=sys.stderr, flush=True)
    return rates, differences


def whole_run(name: str, topics: int, repeats: int) -> None:
    """Reranks one run with shared vectors and without."""
    import truerank
    from truerank.rankers.reranking import rerank as reranking
    from truerank.rankers.reranking.score_cache import encode_shared

    docs, source = collection(name)
    ranker = open_ranker("ance:packaged", device="cpu")
    encoded: list[int] = []
    encode = ranker.all_vectors  # type: ignore[attr-defined]

    def counted(rows: list[object], *, queries: bool) -> object:
        encoded.append(0 if queries else len(rows))
        return encode(rows, queries=queries)

    ranker.all_vectors = counted  # type: ignore[attr-defined]
    shares = {"each block by itself": lambda *given: None, "shared between blocks": encode_shared}
    seconds: dict[str, list[float]] = {way: [] for way in shares}
    counts, runs = {}, {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        index = build_index(docs, folder / "index")
        queries = topic_queries(source)[:topics]
        found = search(index, queries, model_of("anserini", "bm25", {}), k=DEPTH).run
        write_run(found, folder / "bm25.run")
        for _ in range(repeats):
            for way, share in shares.items():
                reranking.encode_shared = share
                encoded.clear()
                begun = time.process_time()
                made = truerank.rerank(folder / "bm25.run", ranker, source, docs, depth=DEPTH)
                seconds[way].append(time.process_time() - begun)
                counts[way], runs[way] = sum(encoded), made.run
    first, second = runs.values()
    both = first.join(second, on=["topic_id", "doc_id"])
    difference = float((both["score"] - both["score_right"]).abs().max())  # type: ignore[arg-type]
    print(
        f"{name}: {len(found):,} pairs, {found['doc_id'].n_unique():,} documents; largest difference {difference:.1e}\n"
    )
    rows = [(way, f"{counts[way]:,}", f"{statistics.median(values):.1f}") for way, values in seconds.items()]
    print(table(("documents are encoded", "documents encoded", "processor s"), rows))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", nargs="?", default="vaswani", choices=("vaswani", "cacm"))
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pairs", type=int, help="only the first pairs")
    parser.add_argument("--shape", metavar="LAYERSxWIDTH", help="a BERT with drawn weights in place of MiniLM")
    parser.add_argument("--int8", action="store_true", help="also eight bits; calibrating takes a minute")
    parser.add_argument("--bi-encoder", action="store_true", help="a bi-encoder in place of the cross-encoder")
    parser.add_argument("--run", action="store_true", help="a whole run by the bi-encoder")
    parser.add_argument("--device", help="time everything there by the clock, such as cuda")
    parser.add_argument("--json", type=Path, help="with a device: write the rates of all rounds, too")
    given = parser.parse_args()
    require_shared()
    if given.device:
        with tempfile.TemporaryDirectory() as temporary:
            pairs = candidates(given.collection, given.topics, Path(temporary))[: given.pairs]
            rates, differences = speed_on(given.device, pairs, Path(temporary), given.repeats, given.shape)
        print(f"{given.collection}: {len(pairs)} pairs\n\n{rate_table(rates, 'pairs/s (median)', differences)}")
        if given.json:
            given.json.write_text(json.dumps({"rates": rates, "differences": differences}, indent=1))
        return
    if given.run:
        whole_run(given.collection, given.topics, given.repeats)
        return
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        pairs = candidates(given.collection, given.topics, Path(temporary))[: given.pairs]
        timed = ways(pairs, Path(temporary), int8=given.int8, bi=given.bi_encoder, shape=given.shape)
        scores = {name: np.asarray(way()) for name, way in timed.items()}
        seconds: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(given.repeats):
            for name, way in timed.items():
                begun = time.process_time()
                way()
                seconds[name].append(time.process_time() - begun)
    first = next(iter(timed))
    usual = statistics.median(seconds[first])
    rows = []
    for name, values in seconds.items():
        median = statistics.median(values)
        difference = float(np.abs(scores[name] - scores[first]).max())
        rows.append((name, f"{len(pairs) / median:.0f}", f"{usual / median:.2f}", f"{difference:.1e}"))
    print(f"{processor_name()}; {given.collection}: {len(pairs)} pairs, median of {given.repeats} by processor time\n")
    print(table(("way", "pairs/s of a processor", "ratio", "largest difference of a score"), rows))


if __name__ == "__main__":
    main()
