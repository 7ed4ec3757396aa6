"""Cells: each training source against each test set, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from truerank import leakage
from truerank.options import Encoding

FILES = {
    "log.tsv": "a\thow many moons does jupiter have\nb\tcauses of the great london fire\nc\tred wine\n",
    "old.tsv": "x\thow many moons does jupiter have\nz\tHow many  moons does jupiter have\ny\tsomething else\n",
    "topics.tsv": "1\thow many moons does jupiter have\n2\tgreat london fire causes\n3\tbest pasta recipes\n",
    "other.tsv": "p\twho painted the mona lisa\nq\tvolcanoes of iceland\n",
}


@pytest.fixture
def found(tmp_path: Path) -> leakage.AuditResult:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    train, test = (
        [str(tmp_path / name) for name in names] for names in (("log.tsv", "old.tsv"), ("topics.tsv", "other.tsv"))
    )
    return leakage.audit(train, test, encoding=Encoding(encoder="words"), out=tmp_path / "out")


def test_each_source_and_test_set_has_its_figures(found: leakage.AuditResult) -> None:
    rows = {(row["train"], row["test"]): row for row in found.summary["cells"]}
    assert list(rows) == [("log", "topics"), ("log", "other"), ("old", "topics"), ("old", "other")]
    figures = ("looked_for", "leaked", "texts")
    assert [rows["log", "topics"][name] for name in figures] == [3, 2, 2]
    assert [rows["old", "topics"][name] for name in figures] == [3, 1, 2]
    assert [rows["log", "other"][name] for name in figures] == [2, 0, 0]
    assert rows["log", "topics"]["verdict"] == "CONTAMINATED" and rows["log", "other"]["verdict"] != "CONTAMINATED"


def test_the_page_lists_them(found: leakage.AuditResult) -> None:
    assert found.folder is not None and "What matches, by training source" in (found.folder / "report.html").read_text()
