"""Speed of the encoders against `SentenceTransformer.encode` with default settings; error of the low precisions.

Every round runs every way once on the same queries, so that what else the machine does falls on all alike; the table
shows medians over the rounds of the ratio within a round, on the clock and in seconds of processor time.

    TRUERANK_SHARED=../shared python benchmarks/encoders.py --queries 4000 --rounds 5
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from truerank.vectors.encoders import Encoder, open_encoder
from truerank.vectors.encoders.model_folder import packaged_folder
from truerank.vectors.encoders.openvino import bf16_is_native

SHARED = Path(os.environ.get("TRUERANK_SHARED", Path(__file__).parents[1] / ".." / "shared")) / "data"
BASE = "SentenceTransformer.encode"


def read_queries() -> list[str]:
    """All distinct queries of the logs, in a fixed random order."""
    queries = set()
    for file in sorted((SHARED / "query-logs").glob("*.tsv.gz")):
        with gzip.open(file, "rt", encoding="latin-1") as lines:
            queries.update(line.rstrip("\n").partition("\t")[2].strip() for line in lines)
    ordered = sorted(queries - {""})
    random.Random(0).shuffle(ordered)
    return ordered


def read_topics() -> list[str]:
    """Titles and descriptions of robust04."""
    text = (SHARED / "topics" / "robust04.trec.txt").read_text(encoding="latin-1")
    parts = re.findall(r"<title>(.*?)(?=<)", text, re.DOTALL) + re.findall(r"<desc>(.*?)(?=<)", text, re.DOTALL)
    return [cleaned for part in parts if (cleaned := " ".join(part.replace("Description:", "").split()))]


def speed(ways: dict[str, Callable[[Sequence[str]], object]], texts: list[str], rounds: int) -> None:
    """Prints texts per second and the ratios to the base."""
    for encode in ways.values():
        encode(texts)  # the first time compiles
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, encode in ways.items():
            clock, processor = time.perf_counter(), time.process_time()
            encode(texts)
            seconds[way].append((time.perf_counter() - clock, time.process_time() - processor))
    print("\n| way | texts/s | fastest round | times the base | by processor time | fastest by fastest |")
    print("|---|---|---|---|---|---|")
    quickest = min(taken[0] for taken in seconds[BASE])
    for way, taken in seconds.items():
        pairs = list(zip(seconds[BASE], taken, strict=True))
        clock = median(base[0] / own[0] for base, own in pairs)
        processor = median(base[1] / own[1] for base, own in pairs)
        rate = len(texts) / median(own[0] for own in taken)
        best = min(own[0] for own in taken)
        ratios = f"{clock:.2f} | {processor:.2f} | {quickest / best:.2f}"
        print(f"| {way} | {rate:.0f} | {len(texts) / best:.0f} | {ratios} |", flush=True)


def near_queries(queries: list[str], topics: list[str], per_topic: int) -> list[str]:
    """The queries whose character 3-grams are most like a topic text's."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), sublinear_tf=True, dtype=np.float32)
    matrix = grams.fit_transform(queries + topics)
    log, near = matrix[: len(queries)], set()
    for start in range(len(queries), len(queries) + len(topics), 50):
        scores = (matrix[start : min(start + 50, len(queries) + len(topics))] @ log.T).toarray()
        near.update(np.argpartition(-scores, per_topic, axis=1)[:, :per_topic].ravel().tolist())
    return [queries[row] for row in sorted(near)]


def error(encoders: dict[str, Encoder], queries: list[str], topics: list[str]) -> None:
    """Prints how far the cosines of the low precisions are from full precision's, for the pairs above 0.85."""
    near = near_queries(queries, topics, 30)
    exact = encoders["OpenVINO fp32"]
    full_log, full_topics = exact.encode(near), exact.encode(topics)

    def pairs(log: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.concatenate([(log @ other.T)[topic_pairs], (log @ log.T)[query_pairs]])

    topic_pairs = np.nonzero(full_log @ full_topics.T > 0.85)
    query_pairs = np.nonzero(np.triu(full_log @ full_log.T, 1) > 0.85)
    wanted = pairs(full_log, full_topics)
    print(f"\n{len(near)} queries, {len(topics)} topic texts; pairs above 0.85: {len(topic_pairs[0])} of a query and a")
    print(
        f"topic text, {len(query_pairs[0])} of two queries. |cosine - full precision's|, and the lowest difference:\n"
    )
    print("| precision | pairs | median | 99% | 99.9% | largest | lowest difference |\n|---|---|---|---|---|---|---|")
    for way, encoder in encoders.items():
        if encoder is exact:
            continue
        log, other = encoder.encode(near), encoder.encode(topics)
        for name, some in (("topic-query", slice(0, len(topic_pairs[0]))), ("all", slice(None))):
            gap = (pairs(log, other) - wanted)[some]
            cuts = " | ".join(f"{np.quantile(np.abs(gap), share):.5f}" for share in (0.5, 0.99, 0.999, 1))
            print(f"| {way} | {name} | {cuts} | {gap.min():.5f} |", flush=True)


def main() -> None:
    """Runs what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-tokens", type=int, nargs="*", default=[], help="also measure these batch sizes")
    parser.add_argument("--no-error", action="store_true", help="measure speed only")
    options = parser.parse_args()
    from sentence_transformers import SentenceTransformer

    queries = read_queries()
    texts, calibration = queries[: options.queries], tuple(queries[-300:])
    encoders = {
        "ONNX Runtime fp32": open_encoder("packaged", backend="onnx"),
        "OpenVINO fp32": open_encoder("packaged", backend="openvino"),
        "OpenVINO int8": open_encoder("packaged", backend="openvino", precision="int8", calibration=calibration),
    }
    if bf16_is_native():
        encoders["OpenVINO bf16"] = open_encoder("packaged", backend="openvino", precision="bf16")
    base = SentenceTransformer(str(packaged_folder()), device="cpu")
    ways: dict[str, Callable[[Sequence[str]], object]] = {BASE: lambda texts: base.encode(list(texts))}
    for way, encoder in encoders.items():
        ways[way] = encoder.encode
        for size in options.batch_tokens:
            ways[f"{way}, {size} tokens"] = _sized(encoder, size)
    print(
        f"{len(texts)} of {len(queries)} distinct queries, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    )
    speed(ways, texts, options.rounds)
    if not options.no_error:
        error({way: encoder for way, encoder in encoders.items() if way.startswith("OpenVINO")}, queries, read_topics())


def _sized(encoder: Encoder, size: int) -> Callable[[Sequence[str]], object]:
    def encode(texts: Sequence[str]) -> object:
        before = encoder.batch_tokens  # type: ignore[attr-defined]
        encoder.batch_tokens = size  # type: ignore[attr-defined]
        try:
            return encoder.encode(texts)
        finally:
            encoder.batch_tokens = before  # type: ignore[attr-defined]

    return encode


if __name__ == "__main__":
    main()
