"""Where studies and benchmarks find the real data, and how they print."""

from __future__ import annotations

import os
import random
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("TRUERANK_SHARED", ROOT.parent / "shared")) / "data"
LOGS = ("million-query", "terabyte05-efficiency", "msmarco-dev-test", "nq-dev", "trivia-dev")
TOPICS = ("robust04", "core17", "core18")


def log_path(name: str) -> Path:
    """A query log."""
    return SHARED / "query-logs" / f"{name}.tsv.gz"


def topic_path(name: str) -> Path:
    """A TREC topic file."""
    return SHARED / "topics" / f"{name}.trec.txt"


def require_shared() -> None:
    """Ends with a message where the data is missing."""
    if not SHARED.is_dir():
        sys.exit(f"no data at {SHARED}: set TRUERANK_SHARED to the folder that holds data/")


def recombined(lines: Sequence[str], count: int, seed: int = 20221110) -> Iterator[str]:
    """New queries from real ones: the beginning of one and the end of another.

    Nearly all are distinct; lengths, words and their frequencies stay those of the logs.
    """
    draw = random.Random(seed)
    split = [line.split() for line in lines]
    for number in range(count):
        first, second = split[draw.randrange(len(split))], split[draw.randrange(len(split))]
        words = first[: max(1, len(first) // 2)] + second[len(second) // 2 :]
        if draw.random() < 0.5:
            words.insert(draw.randrange(len(words) + 1), split[draw.randrange(len(split))][0])
        yield " ".join(words) if words else f"query {number}"


def peak_memory() -> float:
    """The most memory that this process has held, in MiB; its `ru_maxrss` would be no less than that of its parent."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return float("nan")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def rate_table(rates: Mapping[str, Sequence[float]], what: str, more: Mapping[str, str] | None = None) -> str:
    """Median, range, and ratio to the first way, of rates by way; `more` is a column of its own, empty for none."""
    medians = {name: statistics.median(values) for name, values in rates.items()}
    first = next(iter(medians.values()))
    rows = [
        (name, f"{rate:,.0f}", f"{min(rates[name]):,.0f} to {max(rates[name]):,.0f}", f"{rate / first:.2f}×")
        + (() if more is None else (more.get(name, ""),))
        for name, rate in medians.items()
    ]
    return table(("way", what, "range", "ratio") + (() if more is None else ("largest difference",)), rows)
