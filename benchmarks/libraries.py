"""What two libraries would cost in the place of code of truerank: ruamel.yaml for designs, lazy_loader for packages.

    nice python benchmarks/libraries.py [--repeats 20]

A library is measured where it is installed (`pip install ruamel.yaml lazy_loader`). Times are processor time; an import
is measured in a process of its own. For ijson see `json_reading.py`.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import truerank
from truerank.sources.yaml_tree import read_tree

_TIMED = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"


def median(work: Callable[[], object], repeats: int) -> float:
    """Milliseconds of processor time."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return 1000 * statistics.median(taken)


def imported(name: str, repeats: int, folder: Path | None = None) -> float:
    """Milliseconds that a new process takes to import a module."""
    words = [sys.executable, "-c", _TIMED.format(name)]
    found = [float(subprocess.check_output(words, cwd=folder)) for _ in range(repeats)]
    return 1000 * statistics.median(found)


def designs(repeats: int) -> None:
    """Reading the packaged designs, with the line of every value."""
    paths = sorted(Path(str(resources.files("truerank.lab.ready"))).rglob("*.yaml"))
    kinds: dict[str, Callable[[], object]] = {
        "yaml_tree over PyYAML": lambda: [read_tree(path, {}, variables=False) for path in paths]
    }
    if importlib.util.find_spec("ruamel.yaml") is not None:
        from ruamel.yaml import YAML

        kinds["ruamel.yaml, round trip"] = lambda: [YAML(typ="rt").load(path) for path in paths]
    for name, work in kinds.items():
        print(f"{len(paths)} designs, {name:<24}{median(work, repeats):8.1f} ms")
    for name in ("yaml", *(["ruamel.yaml"] if len(kinds) > 1 else [])):
        print(f"import {name:<33}{imported(name, repeats):8.1f} ms")


def packages(repeats: int) -> None:
    """Opening a package with the public names of truerank, none of which is used."""
    source = Path(truerank.__file__ or "")
    print(f"import truerank, lazy.py{'':<17}{imported('truerank', repeats):8.1f} ms")
    if importlib.util.find_spec("lazy_loader") is None:
        return
    lines = [
        line for node in ast.walk(ast.parse(source.read_text())) for line in [node] if isinstance(node, ast.ImportFrom)
    ]
    named = [(line.module or "", alias.name) for line in lines for alias in line.names if line.module != "__future__"]
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "stubbed"
        package.mkdir()
        code = "import lazy_loader\n__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)\n"
        (package / "__init__.py").write_text(code)
        # It takes relative imports only.
        stub = "".join(f"from .{module.partition('.')[2] or module} import {name}\n" for module, name in named)
        (package / "__init__.pyi").write_text(stub)
        taken = imported("stubbed", repeats, Path(folder))
        print(f"import of {len(named)} names, lazy_loader{'':<6}{taken:8.1f} ms, and a stub of {len(named)} lines")


def main() -> None:
    """Prints the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    designs(repeats)
    packages(repeats)


if __name__ == "__main__":
    main()
