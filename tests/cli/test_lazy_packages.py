"""Packages that import their public names on first use."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

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


@pytest.mark.parametrize("name", LAZY)
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
