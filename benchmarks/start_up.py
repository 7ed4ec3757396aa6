"""Processor time of what people start most: helps, `import truerank`, and a check of two systems on 40 questions.

    python benchmarks/start_up.py [--rounds 5] [--beside ../before/src]    in turn with another version

Each runs in a process of its own, with modules that are compiled. `compare` in a notebook is `truerank.compare`, called
for the second time in one process. Modules are counted, for they do not depend on the machine: all, and those of
truerank.
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

#: What `import truerank` must not load.
HEAVY = ("matplotlib", "scipy", "polars", "numpy", "onnxruntime", "torch", "ray")
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
    if NOTEBOOK in words:
        return float(done.stdout.split()[-1])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def modules(words: Sequence[str], environment: dict[str, str]) -> str:
    """How many modules a command has loaded when its help is shown, and how many of these are truerank's."""
    count = "print(len(sys.modules), sum(name.startswith('truerank') for name in sys.modules))"
    code = f"import atexit, sys; atexit.register(lambda: {count}); from truerank.cli import main; main(sys.argv[1:])"
    words = [sys.executable, "-c", code, *words]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.splitlines()[-1].replace(" ", ", ")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each command and version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", type=Path, metavar="SRC", help="the src folder of another version")
    options = parser.parse_args(arguments)
    sources = {"now": Path(truerank.__file__).parents[1], **({"before": options.beside} if options.beside else {})}
    environments = {name: os.environ | {"PYTHONPATH": str(source.resolve())} for name, source in sources.items()}
    for source in sources.values():
        compileall.compile_dir(source, quiet=2)
    taken: dict[tuple[str, str], list[float]] = {}
    helps = {f"truerank {name} --help".replace("  ", " "): [*name.split(), "--help"] for name in ("", *COMMANDS)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.csv"
        write(path)
        works = {
            "truerank check TABLE": ["-m", "truerank", "check", str(path)],
            "truerank compare TABLE": ["-m", "truerank", "compare", str(path)],
            "compare in a notebook, again": ["-c", NOTEBOOK, str(path)],
            "import truerank": ["-c", "import truerank"],
            **{name: ["-m", "truerank", *words] for name, words in helps.items()},
        }
        for _ in range(options.rounds):
            for name, words in works.items():
                for version, environment in environments.items():
                    taken.setdefault((name, version), []).append(seconds(words, environment))
    rows = [
        (name, version, f"{statistics.median(values):.2f}", f"{min(values):.2f} to {max(values):.2f}",
         modules(helps[name], environments[version]) if name in helps else "")
        for (name, version), values in taken.items()
    ]  # fmt: skip
    print(table(("command", "version", "seconds (median)", "range", "modules, of truerank"), rows))
    for version in sources:
        middle = sorted(statistics.median(taken[name, version]) for name in helps)
        print(f"helps, {version}: median {statistics.median(middle):.2f} s, slowest {middle[-1]:.2f} s")
    check = f"import sys, truerank; print(*[name for name in {HEAVY} if name in sys.modules] or ['none'])"
    finished = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    print(f"loaded by `import truerank` of {', '.join(HEAVY)}: {finished.stdout.strip()}")


if __name__ == "__main__":
    main()
