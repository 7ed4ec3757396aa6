"""Processor time and modules until a command has shown its help, and until `import truerank` is done.

    python benchmarks/start_up.py [--repeats N]

Byte code is compiled in a first run that does not count. The smallest of the repeats is shown: what else the machine
does only adds to it. Modules are counted, for they do not depend on the machine: all, and those of truerank.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys

from truerank.cli.commands import COMMANDS

#: What `import truerank` must not load.
HEAVY = ("matplotlib", "scipy", "polars", "numpy", "onnxruntime", "torch", "ray")


def seconds(words: list[str], repeats: int) -> float:
    """Processor time of a process and its children, in seconds."""
    found = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found[1:])


def modules(words: list[str]) -> str:
    """How many modules a command has loaded when its help is shown."""
    count = "print(len(sys.modules), sum(name.startswith('truerank') for name in sys.modules))"
    code = f"import atexit, sys; atexit.register(lambda: {count}); from truerank.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, text=True)
    every, own = done.stdout.splitlines()[-1].split()
    return f"{every:>5} modules, {own:>3} of truerank"


def main() -> None:
    """Prints one line for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    names = ["", *COMMANDS]
    for name in names:
        taken = seconds(["-m", "truerank", *name.split(), "--help"], repeats)
        counts = modules([*name.split(), "--help"])
        print(f"{taken:6.2f} s  {counts}  truerank {name + ' ' if name else ''}--help")
    print(f"{seconds(['-c', 'import truerank'], repeats):6.2f} s  import truerank")
    check = f"import sys, truerank; print(*[name for name in {HEAVY} if name in sys.modules] or ['none'])"
    finished = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    print(f"loaded by `import truerank` of {', '.join(HEAVY)}: {finished.stdout.strip()}")


if __name__ == "__main__":
    main()
