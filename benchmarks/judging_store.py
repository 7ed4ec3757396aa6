"""How many labels a second a store acknowledges, each on the disk before the answer.

python benchmarks/judging_store.py [--threads 8] [--events 4000] [--items 2000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import threading
import time
from pathlib import Path

from truerank.judging import Item, Store, Text, load_scheme

LABELS = ("Title-Identical", "Title-Specialization", "Different Topic")


def flushes_per_second(folder: Path, seconds: float = 1.0) -> float:
    """What the disk gives a single writer: one row and one flush per transaction."""
    connection = sqlite3.connect(folder / "flush.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (a)")
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        connection.execute("INSERT INTO t VALUES (1)")
        count += 1
    connection.close()
    return count / (time.perf_counter() - start)


def work(store: Store, name: str, count: int, times: list[float]) -> None:
    """One annotator: takes the next item, says something, and again."""
    for number in range(count):
        item = store.next_item(name)
        begin = time.perf_counter()
        if item is None:
            break
        store.record(item.item_id, name, "label", [LABELS[number % 3]], seconds=1.0, token=f"{name}-{number}")
        times.append(time.perf_counter() - begin)


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--events", type=int, default=4000)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        each = min(options.items, options.events // options.threads)
        names = [f"annotator-{number}" for number in range(options.threads)]
        items = [
            Item(f"i{number}", str(number // 5), "a title", texts=(Text("query", f"query {number}"),))
            for number in range(options.items)
        ]
        assignments = {name: [item.item_id for item in items] for name in names}
        store = Store.create(Path(folder) / "a.judged", load_scheme("leakage"), items, assignments)
        times: list[list[float]] = [[] for _ in names]
        threads = [
            threading.Thread(target=work, args=(store, name, each, mine))
            for name, mine in zip(names, times, strict=True)
        ]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - start
        taken = sorted(value for mine in times for value in mine)
        kept = sum(1 for _ in store.events())
        store.close()
        print(json.dumps({
            "threads": options.threads,
            "events": kept,
            "events_per_second": round(kept / seconds),
            "median_ms": round(statistics.median(taken) * 1e3, 2),
            "p99_ms": round(taken[int(len(taken) * 0.99)] * 1e3, 2),
            "flushes_per_second_of_one_writer": round(flushes_per_second(Path(folder))),
        }))  # fmt: skip
        assert kept == len(taken), "an acknowledged label is missing"


if __name__ == "__main__":
    main()
