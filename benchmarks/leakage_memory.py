"""Peak memory and time per line as the log grows.

    python benchmarks/leakage_memory.py [--exhaustive 146000 500000] [--prefilter 500000 5000000]

The lines are made from the real logs by recombination (beginning of one query, end of another), so that nearly all are
distinct. Each audit is a process of its own; its peak resident memory is the operating system's figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared_data import LOGS, log_path, recombined, require_shared, table, topic_path
from truerank.sources import open_queries

TEST = str(topic_path("robust04"))


def measured(log: Path, mode: str, out: Path) -> tuple[float, float, dict[str, int]]:
    """Seconds, peak memory in MB, and what was read."""
    command = [
        sys.executable, "-m", "truerank", "leakage", "audit", "--train", str(log), "--test", TEST,
        "--encoder", "packaged", "--mode", mode, "--out", str(out), "--json",
    ]  # fmt: skip
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"the audit of {log} failed")
    counts = json.loads((out / "summary.json").read_text())["sources"][log.stem]
    return seconds, usage.ru_maxrss / 1024, counts


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exhaustive", type=int, nargs="*", default=[146_000, 500_000])
    parser.add_argument("--prefilter", type=int, nargs="*", default=[500_000, 5_000_000])
    options = parser.parse_args()
    require_shared()
    lines = [query.text for name in LOGS for query in open_queries(str(log_path(name)))]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for mode, sizes in (("exhaustive", options.exhaustive), ("prefilter", options.prefilter)):
            for size in sizes:
                log = Path(folder) / f"{mode}-{size}.tsv"
                with log.open("w", encoding="utf-8") as target:
                    target.writelines(f"{place}\t{text}\n" for place, text in enumerate(recombined(lines, size)))
                seconds, peak, counts = measured(log, mode, Path(folder) / f"out-{mode}-{size}")
                about = "about " if counts["distinct_estimated"] else ""
                rows.append(
                    (
                        mode, f"{size:,}", f"{about}{counts['distinct'] / counts['read']:.1%}", f"{seconds:.1f}",
                        f"{seconds / size * 1e6:.1f}", f"{peak:,.0f}",
                    )
                )  # fmt: skip
                print(rows[-1], file=sys.stderr, flush=True)
                log.unlink()
    print(table(("mode", "lines", "distinct", "seconds", "µs per line", "peak MB"), rows))


if __name__ == "__main__":
    main()
