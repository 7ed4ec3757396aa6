"""What the sizes of batches on the CPU cost: tokens in a batch of scoring, and the padding that training allows.

    python benchmarks/batch_sizes.py [vaswani|cacm] [--topics 5] [--instances 64] [--repeats 3] [--threads N]
        [--pairs N] [--part scoring|training|both]

A MiniLM cross-encoder with a head drawn from a seed scores the BM25 top 100 of some topics with torch and with
OpenVINO, and is trained on instances of the same topics; pairs a second, the median of several rounds in turn. The
rows marked * are what the library uses (`CPU_TOKENS`, `BATCH_TOKENS`, `CPU_TRAINING_WASTE`).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from reranking import candidates
from shared_data import require_shared, table
from truerank.rankers.base import Pair, Ranker, open_ranker
from truerank.rankers.monobert import MonoBert
from truerank.rankers.pretrained import openvino_ranker, torch_ranker
from truerank_lab.rankers.recipes import RECIPES
from truerank.sources.instances import Instance

TOKENS = (256, 512, 1024, 2048, 4096, 8192)
WASTES = (0.0, 0.1, 0.25, 0.5, 0.9)


def scoring(pairs: list[Pair], start: Path, backend: str, threads: int) -> dict[int, Callable[[], object]]:
    """Scores all pairs in batches of so many tokens."""
    module, name = (torch_ranker, "CPU_TOKENS") if backend == "torch" else (openvino_ranker, "BATCH_TOKENS")
    ranker: Ranker = open_ranker(str(start), backend=backend, device="cpu", threads=threads)

    def way(tokens: int) -> Callable[[], object]:
        def score() -> object:
            setattr(module, name, tokens)
            return ranker.score(pairs)

        return score

    return {tokens: way(tokens) for tokens in TOKENS}


def training(pairs: list[Pair], count: int, start: Path, threads: int) -> dict[float, Callable[[], object]]:
    """Trains on some instances, with so much padding allowed."""
    texts = [pair.document for pair in pairs]
    given = [
        Instance(str(number), pairs[number].query, "", texts[number], "", texts[-1 - number]) for number in range(count)
    ]
    recipe = RECIPES["monobert"].changed({"batch": 16, "accumulate": 1})

    def way(waste: float) -> Callable[[], object]:
        def train() -> object:
            torch_ranker.CPU_TRAINING_WASTE = waste  # type: ignore[misc]
            ranker = open_ranker(str(start), backend="torch", device="cpu", threads=threads)
            assert isinstance(ranker, MonoBert)
            with tempfile.TemporaryDirectory() as folder:
                return ranker.fit(given, recipe, seed=0, folder=Path(folder))

        return train

    return {waste: way(waste) for waste in WASTES}


def medians(ways: dict[float, Callable[[], object]] | dict[int, Callable[[], object]], repeats: int) -> list[float]:
    """Seconds of each way; the first round warms up."""
    seconds: list[list[float]] = [[] for _ in ways]
    for turn in range(repeats + 1):
        for place, way in enumerate(ways.values()):
            begun = time.perf_counter()
            way()
            if turn:
                seconds[place].append(time.perf_counter() - begun)
    return [statistics.median(values) for values in seconds]


def shown(what: str, values: Sequence[float], seconds: Sequence[float], pairs: int, used: float) -> None:
    """Prints one table."""
    rows = [
        (f"{value:g}{' *' if value == used else ''}", f"{pairs / taken:.1f}")
        for value, taken in zip(values, seconds, strict=True)
    ]
    print("\n" + table((what, "pairs/s"), rows), flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", nargs="?", default="vaswani", choices=("vaswani", "cacm"))
    parser.add_argument("--topics", type=int, default=5)
    parser.add_argument("--instances", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, help="only the first pairs")
    parser.add_argument("--part", choices=("scoring", "training", "both"), default="both")
    given = parser.parse_args()
    require_shared()
    torch.set_num_threads(given.threads)
    used = torch_ranker.CPU_TOKENS, openvino_ranker.BATCH_TOKENS, torch_ranker.CPU_TRAINING_WASTE
    with tempfile.TemporaryDirectory() as temporary:
        pairs = candidates(given.collection, given.topics, Path(temporary))[: given.pairs]
        start = Path(temporary) / "model"
        first = open_ranker("monobert:packaged", backend="torch", device="cpu", labels=1, seed=1)
        assert isinstance(first, MonoBert)
        first.save(start)
        print(f"{given.collection}: {len(pairs)} pairs, {given.instances} instances, {given.threads} threads")
        for backend, usual in (("torch", used[0]), ("openvino", used[1])) if given.part != "training" else ():
            seconds = medians(scoring(pairs, start, backend, given.threads), given.repeats)
            shown(f"scoring, {backend}: tokens in a batch", TOKENS, seconds, len(pairs), usual)
        if given.part == "scoring":
            return
        seconds = medians(training(pairs, given.instances, start, given.threads), given.repeats)
        shown("training: padding allowed", WASTES, seconds, 2 * given.instances, used[2])


if __name__ == "__main__":
    main()
