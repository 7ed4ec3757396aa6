"""Processor time of what people start most: a check and a comparison of two systems on 40 questions, and helps.

    python benchmarks/small_case.py [--rounds 7] [--beside ../before/src]    in turn with another version

Each runs in a process of its own, with modules that are compiled. `compare` in a notebook is `truerank.compare`, called
for the second time in one process. Of the helps of all commands, the median and the slowest are printed.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import truerank
from shared_data import table
from truerank.cli.commands import COMMANDS

QUESTIONS, RESULTS, DOCUMENTS = 40, 10, 400
NOTEBOOK = """
import sys, time, truerank
truerank.compare(table=sys.argv[1])
begun = time.process_time()
truerank.compare(table=sys.argv[1])
print(time.process_time() - begun)
"""


def write(path: Path, seed: int = 1) -> None:
    """A table of questions, what was expected, and the results of two systems."""
    draw = Random(seed)
    lines = ["question,expected,retrieved_a,retrieved_b"]
    for number in range(QUESTIONS):
        found = [[f"d{one}" for one in draw.sample(range(DOCUMENTS), RESULTS)] for _ in "ab"]
        lines.append(f"how is {number},{draw.choice(found[0] + found[1])},{';'.join(found[0])},{';'.join(found[1])}")
    path.write_text("\n".join(lines))


def seconds(words: Sequence[str], environment: dict[str, str]) -> float:
    """Processor seconds of a process, or what it prints where it measures itself."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if words[0] == "-c":
        return float(done.stdout.split()[-1])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beside", type=Path, metavar="SRC", help="the src folder of another version")
    options = parser.parse_args(arguments)
    sources = {"now": Path(truerank.__file__).parents[1], **({"before": options.beside} if options.beside else {})}
    for source in sources.values():
        compileall.compile_dir(source, quiet=2)
    taken: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.csv"
        write(path)
        works = {
            "check TABLE": ["-m", "truerank", "check", str(path)],
            "compare TABLE": ["-m", "truerank", "compare", str(path)],
            "compare in a notebook, again": ["-c", NOTEBOOK, str(path)],
            **{f"{name} --help": ["-m", "truerank", *name.split(), "--help"] for name in COMMANDS},
        }
        for _ in range(options.rounds):
            for name, words in works.items():
                for version, source in sources.items():
                    environment = os.environ | {"PYTHONPATH": str(source.resolve())}
                    taken.setdefault((name, version), []).append(seconds(words, environment))
    rows = []
    for version in sources:
        own = {name: values for (name, of), values in taken.items() if of == version}
        helps = sorted((statistics.median(values), name) for name, values in own.items() if name.endswith("--help"))
        for name in (*list(own)[:3], helps[len(helps) // 2][1], helps[-1][1]):
            values = own[name]
            shown = f"{min(values):.2f} to {max(values):.2f}"
            rows.append((name, version, f"{statistics.median(values):.2f}", shown))
    print(table(("command", "version", "seconds (median)", "range"), rows))
    print("\nThe last two of a version are the median and the slowest of the helps.")


if __name__ == "__main__":
    main()
