"""A statement about many training sets and test sets that machines can read, and its Markdown for a README."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from truerank.audits.leakage.exports.contamination import worst
from truerank.audits.leakage.redaction import hash_text
from truerank.audits.leakage.suites.results import CELLS
from truerank.reports.cards import card_head
from truerank.reports.tables import Table, escape_markdown
from truerank.work.artifacts import hash_file, read_table, written_by

MATRIX_SCHEMA: Final = "truerank/leakage-matrix-card/1"
_FILE: Final = "matrix.parquet"
_COLUMNS: Final = ("training", "test", "part", "items", "leaking", "verdict")
_COUNTS: Final = {"query": "queries", "document": "documents", "pair": "pairs of query and answer"}


def holds_matrix(audit: object) -> bool:
    """Whether this is the folder of a matrix."""
    return isinstance(audit, str | Path) and (Path(audit) / _FILE).is_file()


def matrix_statement(folder: str | Path, date: str | None, key: bytes | None) -> dict[str, Any]:
    """The statement, as plain values; `matrix_card.schema.json` describes it."""
    path = Path(folder) / _FILE
    with written_by("leakage matrix", path.parent, path.name):
        frame = read_table(path, {name: CELLS[name] for name in _COLUMNS})
    names = {name: name if key is None else hash_text(name, key) for name in frame["training"].unique().to_list()}
    cells = [
        {
            "training": names[row["training"]],
            "test": row["test"],
            "kind": row["part"],
            "verdict": row["verdict"],
            "leaking": row["leaking"],
            "of": row["items"],
            "share": round(row["leaking"] / row["items"], 6) if row["items"] and row["leaking"] is not None else None,
        }
        for row in frame.iter_rows(named=True)
    ]
    return {
        **card_head(MATRIX_SCHEMA, date),
        "verdict": worst(cell["verdict"] for cell in cells),
        "redacted": key is not None,
        "training": list(dict.fromkeys(cell["training"] for cell in cells)),
        "tests": list(dict.fromkeys(cell["test"] for cell in cells)),
        "cells": cells,
        **({} if key is not None else {"matrix": f"sha256:{hash_file(path)}"}),
    }


def matrix_markdown(content: Mapping[str, Any]) -> str:
    """A section for a README, as GitHub and Hugging Face show it: a row for each cell that is not CLEAN."""
    date = f" on {content['date']}" if "date" in content else ""
    rows = tuple(
        (
            cell["training"], cell["test"], _COUNTS.get(cell["kind"], cell["kind"]), cell["leaking"], cell["of"],
            None if cell["share"] is None else f"{cell['share']:.1%}", cell["verdict"],
        )
        for cell in content["cells"]
        if cell["verdict"] != "CLEAN"
    )  # fmt: skip
    clean = len(content["cells"]) - len(rows)
    columns = ("training data", "test set", "what leaks", "leaking", "of", "share", "verdict")
    parts = [
        "## Train–test leakage",
        f"Checked with truerank {content['truerank']}{date}: {_several(content['training'], 'training set')} against "
        f"{_several(content['tests'], 'test set')}. {clean:,d} of {len(content['cells']):,d} cells are CLEAN.",
        *([Table.of(rows, columns).markdown().strip()] if rows else []),
        "CONTAMINATED: at least one query, document or pair was found. CLEAN: everything was read, none was found, and "
        "planted changes of these texts were found at the rates that the matrix gives. UNKNOWN: anything else.",
    ]
    return "\n\n".join(parts) + "\n"


def _several(names: list[str], noun: str) -> str:
    return f"{len(names):,d} {noun}{'s' if len(names) != 1 else ''} ({', '.join(map(escape_markdown, names))})"
