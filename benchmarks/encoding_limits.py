"""How near encoding is to what this machine can do: products of matrices, memory, tokens; and the ways side by side.

    python benchmarks/encoding_limits.py [--queries 1500] [--rounds 3] [--pairs 200]
    python benchmarks/encoding_limits.py --audit [--rounds 3] [--lines N] [--only WORD…] [--tests NAME…]   whole audits
    python benchmarks/encoding_limits.py --stages [--rounds 3] [--lines 3000]    what an audit's stages take

Everything runs in turn, several times; medians by processor time of this process, so that other work on the machine
hardly shows. `rate` is what the processors would do without other work. The work of the model is 21.3 MFLOP a token
(matrix products of MiniLM-L6), and its weights of 10.6 million numbers are read once for a batch.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer

from leakage_audit import MFLOP_PER_TOKEN, THRESHOLD, TOPICS, audited, queries, topic_texts
from reranking import candidates, ways
from shared_data import LOGS, log_path, require_shared, table
from truerank.errors import InputError
from truerank.rankers.base import open_ranker
from truerank.sources import open_queries
from truerank.vectors.encoders import EncoderSpec, open_encoder, open_spec
from truerank.vectors.encoders.model_folder import packaged_folder, read_model_folder
from truerank.vectors.encoders.speed import first_passes, instruction_sets, processor_name
from truerank.vectors.encoders.tokenizing import TextTokenizer
from truerank.work.engines import processors
from truerank.work.progress import Quiet

SIZE = 1536


def in_turn(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median processor seconds of each, divided by the processors."""
    for work in works.values():
        work()
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            begun = time.process_time()
            work()
            taken[name].append(time.process_time() - begun)
    return {name: statistics.median(values) / processors() for name, values in taken.items()}


def limits(texts: list[str], rounds: int) -> dict[str, float]:
    """GFLOP/s of products of matrices, GB/s of memory, texts a second of the tokenizer and of transformers' call."""
    left = torch.randn(SIZE, SIZE)
    half = left.to(torch.bfloat16)
    space = np.ones(1 << 26, np.float32)
    tokenizer = TextTokenizer.of(read_model_folder(packaged_folder(), "packaged"))
    theirs = AutoTokenizer.from_pretrained(packaged_folder())
    # Threads that wait for one another use processor time: one thread, times the processors.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    seconds = in_turn(
        {
            "fp32 matrix products": lambda: left @ left,
            "bf16 matrix products": lambda: half @ half,
            "memory, copying": space.copy,
            "tokens": lambda: tokenizer.ids(texts),
            "tokens by transformers": lambda: theirs(texts, truncation=True),
        },
        2 * rounds + 1,
    )
    torch.set_num_threads(threads)
    work = 2 * SIZE**3 / 1e9
    return {
        "fp32 matrix products": work / seconds["fp32 matrix products"],
        "bf16 matrix products": work / seconds["bf16 matrix products"],
        "memory, copying": 2 * space.nbytes / 1e9 / seconds["memory, copying"],
        **{name: len(texts) / seconds[name] for name in ("tokens", "tokens by transformers")},
    }


def encoding(texts: list[str], tokens: int, rounds: int, rates: dict[str, float]) -> list[tuple[object, ...]]:
    """The ways of encoding, their ratio to sentence-transformers, and their share of the matrix rate."""
    from sentence_transformers import SentenceTransformer

    base = SentenceTransformer(str(packaged_folder()), device="cpu")
    exact = open_encoder("packaged", backend="openvino")
    works: dict[str, Callable[[], object]] = {"SentenceTransformer.encode": lambda: base.encode(texts)}
    low = first_passes(exact.spec)  # type: ignore[attr-defined]
    unpacked = (replace(spec, packed=False) for spec in low if spec.packed)
    full = EncoderSpec("packaged", backend="openvino")
    split = replace(full, precision="bf16x3", packed=True)
    for spec in (
        replace(full, backend="torch", device="cpu"),
        full,
        replace(full, packed=True),
        split,
        *unpacked,
        *low,
    ):
        try:
            encoder = open_spec(spec)
        except InputError as fault:
            print(f"{spec.backend} {spec.precision}: {fault}")
            continue
        name = f"{spec.backend} {spec.precision}{', several texts in a row' if spec.packed else ''}"
        works[name] = lambda encoder=encoder: encoder.encode(texts)  # type: ignore[misc]
    seconds = in_turn(works, rounds)
    slowest = seconds["SentenceTransformer.encode"]
    rows = []
    for name, value in seconds.items():
        done = tokens * MFLOP_PER_TOKEN / 1000 / value
        share = done / _limit(name, rates)
        rows.append((name, f"{len(texts) / value:,.0f}", f"{slowest / value:.2f}×", f"{done:.0f}", f"{share:.0%}"))
    return rows


def _limit(way: str, rates: dict[str, float]) -> float:
    return rates["bf16 matrix products" if "bf16" in way else "fp32 matrix products"]


def audits(
    sample: int, lines: int | None, rounds: int, only: list[str], tests: tuple[str, ...]
) -> list[tuple[object, ...]]:
    """Whole audits by processor time of this process, report included, beside sentence-transformers with faiss.

    The peer encodes a sample and searches it: its time grows with the lines, so its rate stands for any number of them.
    What an audit does once (topics, rewordings, the page) counts the less the more lines it reads; so audits with a
    first pass and with the prefilter read all five logs, each line once, or so many lines of them. The core's read a
    sample of three times the peer's, which favours the peer.
    """
    import faiss
    from sentence_transformers import SentenceTransformer

    peer = SentenceTransformer(str(packaged_folder()), device="cpu")
    faiss.omp_set_num_threads(1)
    every = [query.text for name in LOGS for query in queries(name)]
    every = every if lines is None else random.Random(2).sample(every, lines)
    some = random.Random(1).sample(every, 3 * sample)
    topics = peer.encode([text for name, _, _, text in topic_texts() if name in tests], normalize_embeddings=True)

    def baseline() -> None:
        index = faiss.IndexFlatIP(topics.shape[1])
        index.add(peer.encode(some[:sample], normalize_embeddings=True))
        index.search(topics, 100)
        index.range_search(topics, THRESHOLD)

    with tempfile.TemporaryDirectory() as temporary:

        def written(texts: list[str]) -> str:
            path = Path(temporary) / f"{len(texts)}.tsv"
            path.write_text("".join(f"{place}\t{text}\n" for place, text in enumerate(texts)), encoding="utf-8")
            return str(path)

        part = written(some)
        whole = [str(log_path(name)) for name in LOGS] if lines is None else [written(every)]
        number = iter(range(1000))
        passes: set[str] = set()

        def audit(train: list[str], **options: object) -> Callable[[], object]:
            def work() -> None:
                found = audited(train, Path(temporary) / str(next(number)), tests, **options)
                passes.update(check["way"] for check in found.summary.get("first_pass", {}).values())

            return work

        works = {
            "sentence-transformers + faiss": (sample, baseline),
            "core, exhaustive": (len(some), audit([part], backend="onnx")),
            "[fast], exhaustive": (len(every), audit(whole)),
            "[fast], prefilter": (len(every), audit(whole, mode="prefilter")),
        }
        works = {name: way for name, way in works.items() if not only or any(word in name for word in (*only, "faiss"))}
        # Models are opened, and the first pass is chosen, outside the clock.
        few = written(some[:3000])
        for name, options in (("fast", {}), ("core", {"backend": "onnx"})):
            if any(name in work for work in works):
                audit([few], **options)()
        rates: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(rounds):
            for name, (size, work) in works.items():
                begun = time.process_time()
                work()
                rates[name].append(processors() * size / (time.process_time() - begun))
                print(f"{name}: {rates[name][-1]:,.0f} lines/s", file=sys.stderr, flush=True)
    print(f"first passes: {', '.join(sorted(passes))}\n")
    first = rates["sentence-transformers + faiss"]
    return [
        (name, f"{works[name][0]:,}", f"{statistics.median(own):,.0f}", f"{min(own):,.0f} to {max(own):,.0f}",
         f"{statistics.median(one / other for one, other in zip(own, first, strict=True)):.1f}×")
        for name, own in rates.items()
    ]  # fmt: skip


class Stages(Quiet):
    """Processor seconds of each stage, by what an audit tells of its progress."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.begun, self.what = time.process_time(), "opening"

    def start(self, what: str, total: int | None = None) -> None:
        """Ends the stage before."""
        now = time.process_time()
        self.seconds[self.what] = self.seconds.get(self.what, 0.0) + now - self.begun
        self.begun, self.what = now, what


def stages(lines: int, rounds: int) -> list[tuple[object, ...]]:
    """Median processor seconds of the stages of an audit of so many lines, divided by the processors."""
    texts = random.Random(1).sample([query.text for name in LOGS for query in queries(name)], lines)
    taken: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "log.tsv"
        path.write_text("".join(f"{place}\t{text}\n" for place, text in enumerate(texts)), encoding="utf-8")
        for number in range(rounds + 1):
            own = Stages()
            audited([str(path)], Path(temporary) / str(number), progress=own)
            own.start("")
            # The first opens models, and chooses the first pass.
            taken += [{**own.seconds, "all": sum(own.seconds.values())}] if number else []
    return [
        (name, f"{statistics.median(each.get(name, 0.0) for each in taken) / processors():.2f}") for name in taken[0]
    ]


def reranking(count: int, rounds: int, rates: dict[str, float]) -> list[tuple[object, ...]]:
    """The ways of reranking beside `CrossEncoder.predict`, with the largest difference of a score."""
    with tempfile.TemporaryDirectory() as temporary:
        pairs = candidates("vaswani", -(-count // 100), Path(temporary))[:count]
        works = dict(ways(pairs, Path(temporary), int8=False, bi=False))
        rows = open_ranker(str(Path(temporary) / "model"), device="cpu", backend="torch").rows(sorted(set(pairs)))  # type: ignore[attr-defined]
        tokens = sum(len(row.ids) for row in rows)
        scores = {name: np.asarray(work()) for name, work in works.items()}
        seconds = in_turn(works, rounds)
    first = next(iter(works))
    return [
        (name, f"{count / value:.0f}", f"{seconds[first] / value:.2f}×",
         f"{float(np.abs(scores[name] - scores[first]).max()):.1e}",
         f"{tokens * MFLOP_PER_TOKEN / 1000 / value / _limit(name, rates):.0%}")
        for name, value in seconds.items()
    ]  # fmt: skip


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--audit", action="store_true", help="whole audits instead")
    parser.add_argument("--stages", action="store_true", help="the stages of one audit instead")
    parser.add_argument("--sample", type=int, default=6000, help="lines that sentence-transformers encodes")
    parser.add_argument("--lines", type=int, help="lines that [fast] audits; by default all five logs")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="audits with such a word in their name")
    parser.add_argument("--tests", nargs="*", default=list(TOPICS), choices=TOPICS, help="by default all three")
    given = parser.parse_args()
    require_shared()
    print(f"{processor_name()}, {processors()} processors ({', '.join(instruction_sets())})\n")
    # OpenMP's threads wait by spinning, which is processor time: one thread is what they cost without waiting.
    torch.set_num_threads(1)
    if given.stages:
        print(table(("stage", "processor s"), stages(given.lines or 3000, given.rounds)))
        return
    if given.audit:
        header = ("way", "lines", "lines/s (median)", "range", "ratio (median)")
        print(table(header, audits(given.sample, given.lines, given.rounds, given.only, tuple(given.tests))))
        return
    every = sorted({query.text for name in LOGS for query in open_queries(str(log_path(name)))})
    texts = random.Random(0).sample(every, given.queries)
    tokenizer = TextTokenizer.of(read_model_folder(packaged_folder(), "packaged"))
    tokens = int(tokenizer.ids(texts).lengths.sum())
    rates = limits(texts, given.rounds)
    units = ("GFLOP/s", "GFLOP/s", "GB/s", "texts/s", "texts/s")
    print(table(("limit", "rate", ""), [(name, f"{rate:,.0f}", unit)
                                        for (name, rate), unit in zip(rates.items(), units, strict=True)]))  # fmt: skip
    print(f"\n{len(texts):,} queries of {tokens / len(texts):.1f} tokens:\n")
    header = ("way", "texts/s", "ratio", "GFLOP/s", "share of the matrix rate")
    print(table(header, encoding(texts, tokens, given.rounds, rates)))
    print(f"\nMiniLM as a cross-encoder, {given.pairs} pairs:\n")
    header = ("way", "pairs/s", "ratio", "largest difference", "share of the matrix rate")
    print(table(header, reranking(given.pairs, given.rounds, rates)))


if __name__ == "__main__":
    main()
