"""Attacks truerank in every way that is known here, within bounds of time. `make attack` calls it.

    python attacks/run.py                  every part, a few minutes each
    python attacks/run.py --parts fuzz kills --times 10

`--times` multiplies how often each part attacks. The exit code is 1 where a part found a fault.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
#: The command line of each part; `{N}` becomes a number of attacks.
PARTS: Final[dict[str, tuple[str, int]]] = {
    "fuzz": ("fuzz.py --runs {N}", 1000),
    "options": ("options.py --runs {N}", 800),
    "damage": ("damage.py --runs {N}", 300),
    "kills": ("running.py kills --times {N}", 24),
    "disk": ("running.py disk --times {N}", 16),
    "readonly": ("running.py readonly --times {N}", 8),
    "two": ("running.py two --times {N}", 1),
    "repeat": ("running.py repeat", 0),
    "kept": ("running.py kept --times {N}", 40),
    "workers": ("running.py workers", 0),
    "redaction": ("running.py redaction --times {N}", 4),
    "server": ("server.py", 0),
    "archive": ("archive.py", 0),
    "endpoint": ("endpoint.py", 0),
    "surroundings": ("surroundings.py --seconds {N}", 60),
    "plugins": ("plugins.py --seconds {N}", 60),
    "tars": ("tars.py --seconds {N}", 30),
}


def main() -> int:
    """Reads the command line and runs the parts one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--times", type=float, default=1.0, help="multiplies the number of attacks")
    parser.add_argument("--minutes", type=float, default=15.0, help="for each part at most")
    given = parser.parse_args()
    bad = []
    for name in given.parts:
        line, number = PARTS[name]
        words = line.format(N=max(1, round(number * given.times))).split()
        if not (HERE / words[0]).is_file():
            print(f"== {name}: SKIPPED, there is no {words[0]}", flush=True)
            continue
        print(f"== {name}: python attacks/{' '.join(words)}", flush=True)
        begun = time.monotonic()
        try:
            code = subprocess.run(
                [sys.executable, str(HERE / words[0]), *words[1:]], check=False, timeout=60 * given.minutes
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
        print(
            f"== {name}: {'no fault' if code == 0 else 'FAULTS' if code == 1 else f'ended with {code}'}, "
            f"{time.monotonic() - begun:.0f} s",
            flush=True,
        )
        if code != 0:
            bad.append(name)
    print(f"faults in: {', '.join(bad)}" if bad else "no faults")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
