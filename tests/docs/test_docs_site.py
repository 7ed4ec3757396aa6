"""The documentation site: it builds without a warning, and its reference shows the real signatures."""

from __future__ import annotations

import ast
import dataclasses
import html
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import ROOT

sys.path.append(str(ROOT / "scripts"))
MODULES = pytest.importorskip("make_reference", reason="the scripts are not here").MODULES


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocstrings", reason="not installed: 'make docs' installs what the site needs")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-4000:]
    return folder


def public(module: str) -> Iterator[object]:
    home = importlib.import_module(module)
    for name in home.__all__:
        value = getattr(home, name)
        if inspect.isfunction(value) or dataclasses.is_dataclass(value):
            yield value


def signature(page: str, path: str) -> str:
    """The signature as a reader sees it."""
    start = page.index(f'id="{path}"')
    shown = re.search(r'<div class="[^"]*doc-signature[^"]*"><pre>(.*?)</pre>', page[start:], flags=re.DOTALL)
    assert shown is not None, path
    return html.unescape(re.sub(r"<[^>]+>", "", shown[1])).strip()


def default(parameter: inspect.Parameter, owner: object) -> object:
    if repr(parameter.default) == "<factory>":
        field = next(field for field in dataclasses.fields(owner) if field.name == parameter.name)  # type: ignore[arg-type]
        return field.default_factory()  # type: ignore[misc]
    return parameter.default


def test_reference_shows_the_real_signatures(site: Path) -> None:
    pages = {one: (site / "reference/python" / one / "index.html").read_text(encoding="utf-8") for one in MODULES}
    for page, value in ((page, value) for module, page in pages.items() for value in public(module)):
        path = f"{value.__module__}.{value.__qualname__}"  # type: ignore[attr-defined]
        real = [one for one in inspect.signature(value).parameters.values() if one.name != "self"]  # type: ignore[arg-type]
        if not real:
            continue
        function = ast.parse(f"def {signature(page, path)}: ...").body[0]
        assert isinstance(function, ast.FunctionDef)
        given = function.args
        starred = [one.arg for one in (given.vararg, given.kwarg) if one is not None]
        assert [one.arg for one in (*given.args, *given.kwonlyargs)] + starred == [one.name for one in real], path
        shown = dict(zip([one.arg for one in given.args][::-1], given.defaults[::-1], strict=False))
        shown |= {one.arg: kept for one, kept in zip(given.kwonlyargs, given.kw_defaults, strict=True) if kept}
        assert set(shown) == {one.name for one in real if one.default is not one.empty}, path
        names = vars(sys.modules[value.__module__])
        for one in real:
            if one.default is not one.empty:
                # By their text: defaults may hold frames, which have no truth value.
                assert repr(eval(ast.unparse(shown[one.name]), dict(names))) == repr(default(one, value)), (
                    f"{path}: {one.name}"
                )
