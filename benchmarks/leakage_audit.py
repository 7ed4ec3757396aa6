"""The audit of real query logs: the same pairs as a plain comparison, and how much faster.

    python benchmarks/leakage_audit.py exact     the pairs of all five logs, against sentence-transformers
    python benchmarks/leakage_audit.py speed [--rounds 3] [--sample 20000]
    python benchmarks/leakage_audit.py speed --device cuda [--sample 146000] [--json FILE]

Both use the packaged encoder, the titles and descriptions of robust04, core17 and core18, and a threshold of 0.91.
Baseline: `SentenceTransformer.encode` with default settings and `faiss.IndexFlatIP`, on the lines as they stand.
Throughput is lines of the log per second of the whole audit, report included, model opening excluded on both sides.
With a device, both run there: the baseline compares all vectors in torch on it, audits have the torch backend, and
encoding alone is timed, too. The pairs above the threshold of each way are counted: they should be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shared_data import LOGS, TOPICS, log_path, rate_table, require_shared, table, topic_path
from truerank import leakage
from truerank.records import Query
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.vectors.encoders import open_encoder
from truerank.vectors.encoders.model_folder import packaged_folder

THRESHOLD = 0.91
#: Pairs this near the threshold may fall on either side.
NEAR = 0.0005
#: Lines that are timed on a device in batches of 32.
SMALL_BATCHES = 20000
#: Operations per token of MiniLM-L6's matrix products, in millions.
MFLOP_PER_TOKEN = 21.3


def topic_texts() -> list[tuple[str, str, str, str]]:
    """(test, topic, field, text) of all titles and descriptions."""
    found = []
    for name in TOPICS:
        for topic in read_topics(str(topic_path(name))).topics:
            found += [(name, topic.topic_id, field, getattr(topic, field)) for field in ("title", "description")]
    return found


def queries(name: str) -> list[Query]:
    """The queries of a log."""
    return list(open_queries(str(log_path(name))))


def audited(train: list[str], out: Path, names: Sequence[str] = TOPICS, **options: object) -> leakage.AuditResult:
    """The audit under test."""
    tests = [str(topic_path(name)) for name in names]
    return leakage.audit(train, tests, out=out, encoder="packaged", threshold=THRESHOLD, **options)  # type: ignore[call-arg]


def exact(skip_core: bool) -> None:
    """Compares the audit's pairs, in every way of running it, with those of sentence-transformers and NumPy.

    The figures of the sensitivity check do not depend on the log in exhaustive mode: they are compared with those of an
    audit of a few lines in full precision.
    """
    from sentence_transformers import SentenceTransformer

    texts = topic_texts()
    model = SentenceTransformer(str(packaged_folder()), device="cpu")
    topics = model.encode([text for *_, text in texts], normalize_embeddings=True)
    sure: set[tuple[str, ...]] = set()
    possible: set[tuple[str, ...]] = set()
    for log in LOGS:
        first: dict[str, str] = {}
        for query in queries(log):
            first.setdefault(normalise(query.text), query.query_id)
        ids, vectors = list(first.values()), model.encode(list(first), normalize_embeddings=True)
        similarity = topics @ vectors.T
        for bar, pairs in ((THRESHOLD + NEAR, sure), (THRESHOLD - NEAR, possible)):
            pairs.update((*texts[row][:3], log, ids[column]) for row, column in np.argwhere(similarity > bar))
    rows = []
    ways: dict[str, dict[str, object]] = {
        "core (ONNX Runtime)": {"backend": "onnx"},
        "[fast] (first pass, then fp32)": {},
        "prefilter": {"mode": "prefilter"},
    }
    with tempfile.TemporaryDirectory() as folder:
        if skip_core:
            del ways["core (ONNX Runtime)"]
        few = Path(folder) / "few.tsv"
        few.write_text("".join(f"{place}\t{query.text}\n" for place, query in enumerate(queries(LOGS[0])[:100])))
        planted = sensitivity(audited([str(few)], Path(folder) / "few", precision="full"))
        for name, options in ways.items():
            print(name, file=sys.stderr, flush=True)
            result = audited([str(log_path(log)) for log in LOGS], Path(folder) / name, **options)
            leaks = result.leaking()
            leaks = leaks.filter(leaks["evidence"].str.contains("encoder"))
            found = set(leaks.select("test", "topic_id", "field", "source", "query_id").iter_rows())
            own = sensitivity(result)
            differ = 0 if "mode" in options else sum(own[key] != value for key, value in planted.items())
            passes = {check["way"] for check in result.summary.get("first_pass", {}).values()}
            counts = (len(found), len(sure), len(sure - found), len(found - possible), differ)
            rows.append((name, ", ".join(sorted(passes)), *counts))
    by = f"pairs by sentence-transformers (±{NEAR} left out)"
    print(table(("way", "first pass", "pairs", by, "missing", "too many", "other figures of the check"), rows))
    if any(any(row[4:]) for row in rows):
        sys.exit("the pairs or the figures differ")


def sensitivity(result: leakage.AuditResult) -> dict[tuple[str, ...], object]:
    """The figures of the sensitivity check by test set, field and kind."""
    return {
        (test, row["field"], row["kind"]): row
        for test, summary in result.summary["tests"].items()
        for row in summary["sensitivity"]
    }


def matrix_rate() -> float:
    """What this machine's fp32 matrix products reach, in GFLOP/s (best of five)."""
    left, right = (np.random.default_rng(0).standard_normal((3072, 3072), np.float32) for _ in range(2))
    best = min(_seconds(lambda: left @ right) for _ in range(5))
    return 2 * 3072**3 / best / 1e9


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speed(rounds: int, sample: int, only: list[str]) -> None:
    """Times the baseline and the audit in turn, and prints medians and ratios."""
    import faiss
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(packaged_folder()), device="cpu")
    for backend in ("onnx", "openvino"):
        open_encoder("packaged", backend=backend)  # type: ignore[arg-type]
    every = [query for log in LOGS for query in queries(log)]
    some = random.Random(1).sample(every, sample)
    topics = model.encode([text for *_, text in topic_texts()], normalize_embeddings=True)

    def baseline() -> None:
        index = faiss.IndexFlatIP(topics.shape[1])
        index.add(model.encode([query.text for query in some], normalize_embeddings=True))
        index.search(topics, 100)
        index.range_search(topics, THRESHOLD)

    with tempfile.TemporaryDirectory() as folder:
        part, whole = Path(folder) / "part.tsv", [str(log_path(log)) for log in LOGS]
        part.write_text("".join(f"{place}\t{query.text}\n" for place, query in enumerate(some)), encoding="utf-8")
        number = iter(range(1000))
        ways: dict[str, tuple[int, Callable[[], object]]] = {
            "sentence-transformers + faiss": (sample, baseline),
            "core, exhaustive": (
                sample,
                lambda: audited([str(part)], Path(folder) / str(next(number)), backend="onnx"),
            ),
            "[fast], exhaustive": (len(every), lambda: audited(whole, Path(folder) / str(next(number)))),
            "[fast], prefilter": (
                len(every),
                lambda: audited(whole, Path(folder) / str(next(number)), mode="prefilter"),
            ),
        }
        ways = {name: way for name, way in ways.items() if not only or any(word in name for word in (*only, "faiss"))}
        # Models are opened (and quantised, the first time) outside the clock.
        audited([str(part)], Path(folder) / "warm")
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, (lines, work) in ways.items():
                rates[name].append(lines / _seconds(work))
                print(f"{name}: {rates[name][-1]:,.0f} lines/s", file=sys.stderr, flush=True)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    slowest = medians["sentence-transformers + faiss"]
    rows = [
        (
            name,
            f"{ways[name][0]:,}",
            f"{rate:,.0f}",
            f"{min(rates[name]):,.0f} to {max(rates[name]):,.0f}",
            f"{rate / slowest:.1f}×",
        )
        for name, rate in medians.items()
    ]
    print(table(("way", "lines", "lines/s (median)", "range", "ratio"), rows))
    _print_share(some, medians)


def speed_on(device: str, rounds: int, sample: int) -> dict[str, list[float]]:
    """Lines a second on a device, each round of each way, ways in turn."""
    from sentence_transformers import SentenceTransformer

    every = [query for log in LOGS for query in queries(log)]
    lines = [query.text for query in random.Random(1).sample(every, min(sample, len(every)))]
    # Small batches are slow on a GPU: fewer lines show how slow.
    some = lines[:SMALL_BATCHES]
    distinct = list(dict.fromkeys(filter(None, map(normalise, lines))))
    topics = [text for *_, text in topic_texts()]
    peer = SentenceTransformer(str(packaged_folder()), device=device)
    precisions = ("fp32",) if device == "cpu" else ("fp32", "fp16", "bf16")
    own = {name: open_encoder("packaged", backend="torch", device=device, precision=name) for name in precisions}

    def encoded(texts: list[str], batch: int) -> Any:
        return peer.encode(
            texts, batch_size=batch, normalize_embeddings=True, convert_to_tensor=True, show_progress_bar=False
        )

    def baseline(texts: list[str], batch: int) -> int:
        similarity = encoded(topics, batch) @ encoded(texts, batch).T
        similarity.topk(min(100, len(texts)), dim=1)
        return int((similarity > THRESHOLD).sum())

    with tempfile.TemporaryDirectory() as folder:
        log, number = Path(folder) / "log.tsv", iter(range(1000))
        log.write_text("".join(f"{place}\t{text}\n" for place, text in enumerate(lines)), encoding="utf-8")

        def audit(**options: object) -> int:
            out = Path(folder) / str(next(number))
            return len(audited([str(log)], out, backend="torch", device=device, **options).leaking())

        ways: dict[str, tuple[int, Callable[[], int]]] = {
            "sentence-transformers + torch": (len(some), lambda: baseline(some, 32)),
            "sentence-transformers + torch, batches of 512": (len(lines), lambda: baseline(lines, 512)),
            "truerank, exhaustive": (len(lines), audit),
            "truerank, exhaustive, full precision": (len(lines), lambda: audit(precision="full")),
            "truerank, prefilter": (len(lines), lambda: audit(mode="prefilter")),
            "encoding: sentence-transformers": (len(some), lambda: len(encoded(some, 32).cpu())),
            "encoding: sentence-transformers, batches of 512": (len(lines), lambda: len(encoded(lines, 512).cpu())),
            **{
                f"encoding: truerank, {name}": (len(lines), lambda encoder=encoder: len(encoder.encode(distinct)))
                for name, encoder in own.items()
            },
        }
        rates: dict[str, list[float]] = {name: [] for name in ways}
        # The first round warms up: models are compiled, ways of running them measured.
        for number_of_round in range(rounds + 1):
            for name, (count, work) in ways.items():
                begun = time.perf_counter()
                result = work()
                rate = count / (time.perf_counter() - begun)
                print(f"{name}: {rate:,.0f} lines/s, {result:,}", file=sys.stderr, flush=True)
                rates[name] += [rate] if number_of_round else []
    return rates


def _print_share(some: list[Query], medians: dict[str, float]) -> None:
    tokens = model_tokens([query.text for query in some])
    rate = matrix_rate()
    print(f"\nfp32 matrix products: {rate:.0f} GFLOP/s on {os.cpu_count()} cores; {tokens:.1f} tokens per line")
    for name in ("sentence-transformers + faiss", "core, exhaustive", "[fast], exhaustive"):
        if name not in medians:
            continue
        used = medians[name] * tokens * MFLOP_PER_TOKEN / 1000
        print(f"{name}: {used:.0f} GFLOP/s of the model's operations, {used / rate:.0%} of the fp32 rate")


def model_tokens(texts: list[str]) -> float:
    """Mean number of tokens of a text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    return float(np.mean([len(found.ids) for found in tokenizer.encode_batch(texts)]))


def main() -> None:
    """Runs one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("exact", "speed"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--skip-core", action="store_true", help="leave out the slowest way of running the audit")
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="WORD", help="time ways with such a word in their name"
    )
    parser.add_argument("--device", help="time everything there, such as cuda")
    parser.add_argument("--json", type=Path, help="write the rates of all rounds, too")
    options = parser.parse_args()
    require_shared()
    if options.device:
        rates = speed_on(options.device, options.rounds, options.sample or 20000)
        print(rate_table(rates, "lines/s (median)"))
        if options.json:
            options.json.write_text(json.dumps(rates, indent=1))
        return
    if options.what == "exact":
        exact(options.skip_core)
    else:
        speed(options.rounds, options.sample or 20000, options.only)


if __name__ == "__main__":
    main()
