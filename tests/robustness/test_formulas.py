"""Exported CSV and spreadsheets: cells that would run are counted, and made texts where the user asks for it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from truerank import judge
from truerank.core.tables import Column, Table
from truerank.judging import Store, load_scheme
from truerank.judging.items import Item, Text

_COMMAND = '=HYPERLINK("http://a";"x")'
_TEXTS = [_COMMAND, "+1+1", "-2+3", "@SUM(A1)", "\t=1", "-0.5", "+1e3", "plain", "a=b"]


def _store(path: Path, texts: Sequence[str] = _TEXTS) -> Store:
    items = [
        Item(f"i{n}", f"{n}", texts=(Text("query", "q", f"q{n}"), Text("document", text, f"d{n}")))
        for n, text in enumerate(texts)
    ]
    return Store.create(path, load_scheme("relevance-documents"), items, {"ann": [item.item_id for item in items]})


def test_formulas_are_counted_and_escaped_where_asked_for(tmp_path: Path) -> None:
    with _store(tmp_path / "s") as store:
        for n in range(len(_TEXTS)):
            store.record(f"i{n}", "ann", "label", ["1"], comment="-1+2" if n == 7 else "")
        exact = judge.export(store, tmp_path / "a.csv")
        escaped = judge.export(store, tmp_path / "b.csv", escape_formulas=True)
    assert exact.formulas == escaped.formulas == 6
    assert "take 6 cells for formulas; --escape-formulas puts an apostrophe" in repr(exact)
    assert "take 6 cells for formulas; an apostrophe is put before each" in repr(escaped)
    first, second = (list(csv.DictReader((tmp_path / name).open(newline=""))) for name in ("a.csv", "b.csv"))
    key = next(name for name, value in first[0].items() if value == _COMMAND)
    assert [row[key] for row in first] == _TEXTS
    assert [row[key] for row in second] == [f"'{text}" for text in _TEXTS[:5]] + _TEXTS[5:]
    assert [row["comment"] for row in second][7] == "'-1+2"


def test_a_file_without_formulas_is_not_warned_about(tmp_path: Path) -> None:
    with _store(tmp_path / "s", ["-0.5", "plain"]) as store:
        store.record("i1", "ann", "label", ["1"])
        found = judge.export(store, tmp_path / "a.csv")
    assert found.formulas == 0 and "spreadsheet" not in repr(found).lower()


def test_a_table_has_an_apostrophe_before_what_a_spreadsheet_would_run() -> None:
    rows = [("=cmd|' /C calc'!A1", -0.5), ("-1e-3", None), ("@a", 2), ("a=b", 3)]
    table = Table("", (Column("=name"), Column("value")), tuple(rows))
    assert table.csv().splitlines() == ["'=name,value", "'=cmd|' /C calc'!A1,-0.5", "-1e-3,", "'@a,2", "a=b,3"]
