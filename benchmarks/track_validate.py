"""How long `track validate` and `track candidates` take, and how much memory.

    python benchmarks/track_validate.py [--rows 1000000]

The run is made from a seed: 1,000 results a topic, ids as in MS MARCO documents. Each line of the table is a process of
its own; the memory is its peak, and that of an interpreter which has imported the package is in the first line.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shared_data import table

COLLECTION = 3_213_835
PER_TOPIC = 1000
SEED = 2019


def blocks(rows: int) -> Iterator[list[str]]:
    """The lines of a sound run, a hundred topics at a time."""
    draw = np.random.default_rng(SEED)
    for first in range(0, rows // PER_TOPIC, 100):
        lines = []
        for topic in range(first, min(first + 100, rows // PER_TOPIC)):
            documents = draw.choice(COLLECTION, PER_TOPIC, replace=False)
            scores = np.sort(draw.gamma(2.0, 5.0, PER_TOPIC))[::-1]
            lines += [
                f"{topic} Q0 D{document} {rank} {score:.6f} bm25\n"
                for rank, (document, score) in enumerate(zip(documents, scores, strict=True), 1)
            ]
        yield lines


def make(folder: Path, rows: int) -> None:
    """Writes the run as it should be, packed, with topics mixed, and with a fault in every line; and the ids."""
    with (
        (folder / "sound.run").open("w") as sound,
        (folder / "mixed.run").open("w") as mixed,
        (folder / "faulty.run").open("w") as faulty,
        gzip.open(folder / "packed.run.gz", "wt", compresslevel=1) as packed,
    ):
        shuffled = np.random.default_rng(SEED)
        for lines in blocks(rows):
            sound.writelines(lines)
            packed.writelines(lines)
            mixed.writelines(lines[place] for place in shuffled.permutation(len(lines)))
            faulty.writelines(line.replace(" Q0 ", " 0  ").replace(".", ",") for line in lines)
    (folder / "ids.txt").write_text("".join(f"D{number}\n" for number in range(COLLECTION)))


def measured(command: str, folder: Path) -> tuple[float, float, str]:
    """Seconds and peak MB of a piece of code in a process of its own, and what it printed."""
    code = f"""
import json, time
from truerank.audits.track import candidates, validate
begun = time.perf_counter()
result = {command}
seconds = time.perf_counter() - begun
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([seconds, int(peak.split()[1]) / 1024, str(result)]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    seconds, memory, printed = json.loads(done.stdout)
    return seconds, memory, printed


def main() -> None:
    """Makes the runs, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    cases = {
        "nothing but the imports": "0",
        "validate": "validate(['sound.run']).errors",
        "validate, gzip": "validate(['packed.run.gz']).errors",
        "validate, topics mixed": "validate(['mixed.run']).errors",
        "validate, two faults in every line": "validate(['faulty.run']).errors",
        "validate against ids and candidates": (
            "validate(['sound.run'], docs_ids='ids.txt', candidates='packed.run.gz').errors"
        ),
        "candidates, k = 100": "candidates('sound.run', 'top.run', k=100).results",
        "candidates, topics mixed": "candidates('mixed.run', 'top-mixed.run', k=100).results",
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun = time.perf_counter()
        make(folder, rows)
        size = (folder / "sound.run").stat().st_size / 1e6
        print(f"{rows:,d} lines, {size:,.0f} MB (made in {time.perf_counter() - begun:.0f} s)\n")
        found = []
        for what, command in cases.items():
            seconds, memory, printed = measured(command, folder)
            found.append((what, f"{seconds:.2f}", f"{memory:,.0f}", f"{int(printed):,d}"))
        print(table(("what", "seconds", "peak MB", "errors or results"), found))


if __name__ == "__main__":
    main()
