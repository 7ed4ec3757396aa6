"""Times the pass of the collection audit over the documents, which runs in one process.

    python benchmarks/collection_documents.py [--collection cacm|vaswani] [--times N …]

The collection is written N times into one file, with ids of their own, and read by `read_document_table`, as the audit
does. Printed are microseconds of processor time for each document, the lowest of three, and what Python holds at its
peak, measured in a round of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import tracemalloc
from pathlib import Path

import shared_data  # noqa: F401 - the modules of studies/ can be imported after it
from planted.collections import read_collection
from shared_data import SHARED, require_shared, table
from truerank.audits.collection.documents import read_document_table

ROUNDS = 3


def write(name: str, times: int, path: Path) -> int:
    """Writes a collection so many times into one file and returns how many documents that is."""
    docs = [(doc, text) for doc, text in read_collection(name, SHARED / "collections" / name, seed=1).docs if text]
    with path.open("w", encoding="utf-8") as stream:
        for number in range(times):
            stream.writelines(
                json.dumps({"doc_id": f"{number}-{doc}", "text": text}) + "\n"
                for doc, text in docs
                if isinstance(text, str)
            )
    with path.open(encoding="utf-8") as stream:
        return sum(1 for _ in stream)


def seconds(path: Path) -> float:
    """The processor time of one pass."""
    begin = time.process_time()
    read_document_table(str(path))
    return time.process_time() - begin


def peak(path: Path) -> int:
    """What Python holds at its peak in one pass, in bytes."""
    tracemalloc.start()
    read_document_table(str(path))
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held


def main() -> None:
    """Writes, reads, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--collection", choices=("cacm", "vaswani"), default="cacm")
    parser.add_argument("--times", nargs="*", type=int, default=[1, 4])
    given = parser.parse_args()
    require_shared()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "docs.jsonl"
        for times in given.times:
            count = write(given.collection, times, path)
            lowest = min(seconds(path) for _ in range(ROUNDS))
            held = peak(path) / 2**20
            rows.append((f"{count:,d}", f"{lowest / count * 1e6:.0f}", f"{held:.1f}"))
    print(table(("documents", "microseconds a document", "peak, MiB"), rows))


if __name__ == "__main__":
    main()
