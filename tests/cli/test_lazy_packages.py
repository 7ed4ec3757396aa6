"""Packages that import their public names on first use."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

LAZY = (
    "truerank.audits.pool",
    "truerank.audits.survivorship",
    "truerank.audits.transfer",
    "truerank.lab",
    "truerank.lab.grid",
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


@pytest.mark.parametrize(("words", "more"), [("check", ()), ("compare", ("truerank.judging", "truerank.audits"))])
def test_a_small_command_imports_nothing_heavy(words: str, more: tuple[str, ...], tmp_path: Path) -> None:
    draw = Random(1)
    found = [[[f"d{one}" for one in draw.sample(range(400), 10)] for _ in "ab"] for _ in range(40)]
    rows = [f"how is {at},{draw.choice(a + b)},{';'.join(a)},{';'.join(b)}" for at, (a, b) in enumerate(found)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(("question,expected,retrieved_a,retrieved_b", *rows)))
    end = f"print(*(name for name in {HEAVY + more} if name in sys.modules))"
    code = f"import atexit, sys; from truerank.cli import main; atexit.register(lambda: {end}); main([*sys.argv[1:]])"
    shown = subprocess.run([sys.executable, "-c", code, words, table], check=True, capture_output=True, text=True)
    assert shown.stdout.splitlines()[-1] == ""
