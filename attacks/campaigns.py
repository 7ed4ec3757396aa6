"""A campaign: cases drawn from a seed until the time is over, each within bounds of time and memory."""

from __future__ import annotations

import argparse
import json
import re
import resource
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

__all__ = ["campaign", "peak_megabytes"]


def campaign(
    description: str | None,
    tried: Callable[[int, int, list[str]], str],
    *,
    most_seconds: float,
    most_megabytes: int = 500,
) -> int:
    """Runs cases until the time is over, and prints what became of them.

    Args:
        description: of the attack, for `--help`.
        tried: runs one case of a seed, notes what the server did in the list, and returns what became of it; raises
            what should not be raised.
        most_seconds: that one case may take.
        most_megabytes: that the process may hold.

    Returns:
        The exit status: 1 after the first case that broke something.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--most-seconds", type=float, default=most_seconds, help="of one case (default: %(default)s)")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    end, case, slowest, memory = time.monotonic() + options.seconds, options.case or 0, 0.0, 0
    while time.monotonic() < end:
        begun, told = time.monotonic(), list[str]()
        try:
            counts[tried(options.seed, case, told)] += 1
            seconds, memory = time.monotonic() - begun, peak_megabytes()
            if seconds > options.most_seconds or memory > most_megabytes:
                raise ValueError(f"{seconds:.1f} s, {memory} MB")
        except Exception as error:
            what = f"{' '.join(told)}): {type(error).__name__}: {str(error)[:2000]}"
            print(f"broken: --seed {options.seed} --case {case} ({what}")
            return 1
        slowest = max(slowest, seconds)
        case += 1
        if options.case is not None:
            break
    print(json.dumps({"cases": sum(counts.values()), **counts, "slowest_s": round(slowest, 2), "memory_mb": memory}))
    return 0


def peak_megabytes() -> int:
    """The most memory that this process has held, in MB.

    Linux hands `ru_maxrss` of the process that forks on to the new program, so that one started by a large process
    seems large. VmHWM is its own.
    """
    status = Path("/proc/self/status")
    kilobytes = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    return (int(kilobytes[1]) if kilobytes else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) >> 10
