"""Kills an audit at random moments and starts it again: the bytes must be those of an audit that was left alone.

python benchmarks/kill_and_resume.py [--kills 10] [--lines 20000] [--seed 1]
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared_data import LOGS, log_path, require_shared, topic_path

TEST = topic_path("robust04")


def command(train: Path, out: Path, mode: str) -> list[str]:
    """The audit to be killed."""
    return [
        sys.executable, "-m", "truerank", "leakage", "audit", "--train", str(train), "--test", str(TEST),
        "--encoder", "packaged", "--mode", mode, "--block-size", "1024", "--out", str(out), "--json",
    ]  # fmt: skip


def digests(folder: Path) -> dict[str, str]:
    """Hashes of all artifacts but the log."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != "run.log"
    }


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--lines", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    require_shared()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "log.tsv"
        with train.open("wb") as target:
            share = options.lines // len(LOGS)
            for name in LOGS:
                with gzip.open(log_path(name)) as lines:
                    target.writelines(line for line, _ in zip(lines, range(share), strict=False))
        failed = 0
        for mode in ("exhaustive", "prefilter"):
            whole = Path(folder) / f"whole-{mode}"
            start = time.perf_counter()
            first = subprocess.run(command(train, whole, mode), check=True, capture_output=True).stdout
            duration = time.perf_counter() - start
            wanted = digests(whole)
            for kill in range(options.kills):
                out = Path(folder) / f"killed-{mode}-{kill}"
                moments = sorted(draw.uniform(0, duration) for _ in range(draw.randint(1, 3)))
                for moment in moments:
                    process = subprocess.Popen(
                        command(train, out, mode), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                    )
                    time.sleep(moment)
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                again = subprocess.run(command(train, out, mode), check=True, capture_output=True).stdout
                same = digests(out) == wanted and again == first
                failed += not same
                shown = ", ".join(f"{moment:.1f}" for moment in moments)
                print(
                    f"{mode}: killed at {shown} of {duration:.1f} s, restarted: {'same bytes' if same else 'DIFFERENT'}"
                )
        sys.exit(f"{failed} restarts gave other bytes" if failed else 0)


if __name__ == "__main__":
    main()
