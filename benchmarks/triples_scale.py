"""`survivorship triples` at the size of the paper's data: time and memory over generated judgments and triples.

    python benchmarks/triples_scale.py [--pairs 8069749] [--triples 500000 2000000]

MS MARCO's training log has 808,731 queries with some ten passages each; its triples of ids are lines of three numbers.
Both are generated, and the log knows the pair of every second triple. Each run is a process of its own, which says its
processor time and its VmHWM.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from shared_data import table
from truerank.audits.survivorship.depths import DEPTH_SCHEMA

_RUN = """
import json, re, sys, time
from pathlib import Path
from truerank import survivorship
begun = time.process_time()
found = survivorship.triples(sys.argv[1], sys.argv[2], out=sys.argv[3])
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([time.process_time() - begun, peak, found.levels[-1].triples]))
"""


def write_depths(pairs: int, folder: Path) -> None:
    """What `survivorship depth` writes for so many judged pairs."""
    number = np.arange(pairs)
    key = pl.select(pl.lit(pl.Series(number)).hash(1).cast(pl.String).str.pad_start(32, "0")).to_series()
    columns = {"topic_id": number // 10, "doc_id": number, "position": number % 10, "topic_key": key, "doc_key": key}
    nothing = pl.repeat(None, pairs, eager=True)
    frame = pl.DataFrame(
        [pl.Series(name, columns.get(name, nothing)).cast(kind) for name, kind in DEPTH_SCHEMA.items()]
    )
    folder.mkdir()
    frame.write_parquet(folder / "depths.parquet")


def write_triples(count: int, pairs: int, path: Path) -> None:
    """Lines of three ids; the relevant pair of every second one is judged."""
    draw = np.random.default_rng(count)
    with path.open("w", encoding="ascii") as target:
        for first in range(0, count, 1 << 18):
            chosen = draw.integers(0, pairs, min(1 << 18, count - first))
            other = np.where(np.arange(len(chosen)) % 2, chosen, chosen + pairs)
            rest = draw.integers(0, pairs, len(chosen))
            rows = zip((chosen // 10).tolist(), other.tolist(), rest.tolist(), strict=True)
            target.writelines("\t".join(map(str, row)) + "\n" for row in rows)


def main() -> None:
    """Prints a row for each number of triples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=8_069_749)
    parser.add_argument("--triples", type=int, nargs="*", default=[500_000, 2_000_000])
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_depths(given.pairs, folder / "depths")
        for count in given.triples:
            write_triples(count, given.pairs, folder / "triples.tsv")
            call = [sys.executable, "-c", _RUN, *(str(folder / part) for part in ("triples.tsv", "depths", "out"))]
            done = subprocess.run(call, check=True, capture_output=True, text=True)
            seconds, peak, kept = json.loads(done.stdout.splitlines()[-1])
            rows.append((f"{given.pairs:,}", f"{count:,}", f"{seconds:.0f}", f"{peak:,.0f}", f"{kept:,}"))
            print(rows[-1], file=sys.stderr, flush=True)
    print(table(("judged pairs", "triples", "processor s", "peak MiB", "triples kept"), rows))


if __name__ == "__main__":
    main()
