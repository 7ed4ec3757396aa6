"""Packages that import their public names on first use."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from truerank.cli.commands import COMMANDS

LAZY = (
    "truerank.audits.pool",
    "truerank.audits.survivorship",
    "truerank.audits.transfer",
    "truerank.lexical",
    "truerank.measures",
)


@pytest.mark.parametrize("name", (*LAZY, "truerank.judging"))
def test_every_public_name_is_there(name: str) -> None:
    package = importlib.import_module(name)
    assert set(package.__all__) == set(dir(package))
    for one in package.__all__:
        assert getattr(package, one) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("name", LAZY)
def test_no_module_hides_a_name(name: str) -> None:
    package = importlib.import_module(name)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert not modules & set(dir(package))


def test_an_import_of_measures_brings_no_provider() -> None:
    code = "import sys, truerank.measures, truerank.audits.transfer; print('ir_measures' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "False"


#: What no small command needs: they would take most of its time.
HEAVY = ("matplotlib", "scipy.stats", "onnxruntime", "torch", "cryptography", "asyncio", "truerank.audits.leakage")


#: Of a check: the page, and what connected components and solvers of SciPy bring.
PAGES = ("jinja2", "truerank.audits.collection.report", "scipy.linalg", "scipy.sparse.csgraph")


@pytest.mark.parametrize(
    ("words", "more", "own"), [("check", PAGES, 175), ("compare", ("truerank.judging", "truerank.audits", "yaml"), 90)]
)
def test_a_small_command_imports_nothing_heavy(words: str, more: tuple[str, ...], own: int, tmp_path: Path) -> None:
    draw = Random(1)
    found = [[[f"d{one}" for one in draw.sample(range(400), 10)] for _ in "ab"] for _ in range(40)]
    rows = [f"how is {at},{draw.choice(a + b)},{';'.join(a)},{';'.join(b)}" for at, (a, b) in enumerate(found)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(("question,expected,retrieved_a,retrieved_b", *rows)))
    count = "sum(name.startswith('truerank.') for name in sys.modules)"
    end = f"print({count}, *(name for name in {HEAVY + more} if name in sys.modules))"
    code = f"import atexit, sys; from truerank.cli import main; atexit.register(lambda: {end}); main([*sys.argv[1:]])"
    shown = subprocess.run([sys.executable, "-c", code, words, table], check=True, capture_output=True, text=True)
    count, *heavy = shown.stdout.splitlines()[-1].split()
    # A budget: what needs more modules says what for.
    assert not heavy and int(count) <= own


def test_no_help_waits_for_what_the_work_needs() -> None:
    code = "import contextlib, io, sys; from truerank.cli import main; from truerank.cli.commands import COMMANDS\n"
    code += "for name in COMMANDS:\n"
    code += "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
    code += "        main([*name.split(), '--help'])\n"
    code += "print(len(COMMANDS), *{'numpy', 'polars', 'yaml', 'truerank.claims.checking'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(len(COMMANDS))]


def test_no_command_waits_for_numerical_functions() -> None:
    """SciPy's special functions bring a quarter of a second of NumPy's Fortran compiler and test tools."""
    code = "import sys; from importlib import import_module as bring; from truerank.cli.commands import COMMANDS; "
    code += "[bring(path.partition(':')[0]) for path in COMMANDS.values()]; print('scipy.special' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
