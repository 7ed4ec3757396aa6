"""Kinds of queries by their ids, from any table, and lists of ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from truerank.errors import InputError
from truerank.sources import columns, formats
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import numbered_lines
from truerank.sources.rows import rows
from truerank.sources.tables import as_text

__all__ = ["read_ids", "read_labels_by_id"]

_LABELS: Final = ("label", "category", "kind", "type", "query_type", "class")


def read_labels_by_id(spec: SourceSpec) -> Mapping[str, str]:
    """The label of each query id.

    TSV without a header (`id TAB label`), or CSV, TSV, JSONL, JSON and Parquet with a column of ids and one called
    label, category, kind, type or class (or named with `#COLUMN`).

    Raises:
        InputError: not a file, no such columns, an id with two different labels, or nothing in it.
    """
    if spec.scheme != "file":
        raise InputError("labels are read from files", "give a path", where=spec.spec)
    form = formats.detect(spec.path, spec.format)
    labels: dict[str, str] = {}
    plain = form in ("tsv", "lines") and not _has_names(spec)
    found = _of_lines(spec) if plain else _of_rows(spec, "tsv" if form == "lines" else form)
    for line, identifier, label in found:
        if labels.setdefault(identifier, label) != label:
            raise InputError(
                f"the query '{identifier}' has the labels '{labels[identifier]}' and '{label}'",
                "keep one of them",
                where=spec.location,
                line=line,
            )
    if not labels:
        raise InputError("no labels in it", "give lines of an id, a tab and a label", where=spec.location)
    return labels


def read_ids(spec: SourceSpec) -> list[str]:
    """Query ids, the first column of each line; repeated ones count once.

    Raises:
        InputError: not a file, or nothing in it.
    """
    if spec.scheme != "file":
        raise InputError("lists of ids are read from files", "give a path", where=spec.spec)
    formats.detect(spec.path, spec.format)
    ids = dict.fromkeys(cells[0] for line in numbered_lines(spec.path) if (cells := line.text.split()))
    return list(ids)


def _has_names(spec: SourceSpec) -> bool:
    first = next(numbered_lines(spec.path)).text.split("\t")
    labelled = spec.column is not None or columns.named(first, _LABELS) is not None
    return labelled and columns.named(first, columns.ID_NAMES) is not None


def _of_lines(spec: SourceSpec) -> Iterator[tuple[int, str, str]]:
    for line in numbered_lines(spec.path):
        if not line.text.strip():
            continue
        identifier, tab, label = line.text.partition("\t")
        label = label.split("\t")[0].strip()
        if not tab or not identifier.strip() or not label:
            raise InputError("not an id, a tab and a label", "correct the line", where=spec.path, line=line.number)
        yield line.number, identifier.strip(), label


def _of_rows(spec: SourceSpec, form: str) -> Iterator[tuple[int, str, str]]:
    for row in rows(spec.path, form):
        names = list(row.values)
        key = columns.named(names, columns.ID_NAMES)
        wanted = spec.column if spec.column in row.values else columns.named(names, _LABELS)
        if key is None or wanted is None:
            fault = f"no column of ids and labels; there are {', '.join(names[:12]) or 'none'}"
            raise InputError(fault, "call them query_id and label", where=spec.path, line=row.line)
        identifier, label = as_text(row.values.get(key)), as_text(row.values.get(wanted))
        if identifier and label:
            yield row.line, identifier.strip(), label.strip()
