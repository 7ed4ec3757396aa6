"""What the commands of the survivorship audit read in common: named sources, logs, kinds of queries, lists of ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from truerank.errors import InputError, OptionError
from truerank.loading import signed_number
from truerank.records import Input
from truerank.sources import columns, formats, grammar
from truerank.sources.annotation_logs import FAULTS, AnnotationLog, LogCounts
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import numbered_lines
from truerank.sources.query_files import as_text
from truerank.sources.rows import rows

#: Sources, perhaps with names: `NAME=SRC` or `SRC`; in Python also by name.
NamedSources = str | Path | Sequence[str | Path] | Mapping[str, str | Path]
#: What makes a query survive: a shown document was selected, or somebody wrote an answer.
Survival = Literal["selected", "answered"]

_LABELS: Final = ("label", "category", "kind", "type", "query_type", "class")


def named_source(given: str | Path) -> tuple[str, SourceSpec]:
    """`NAME=SRC` or `SRC` as a name and a source; a path that holds the sign and exists is a path."""
    text = str(given)
    name, separator, spec = text.partition("=")
    named = bool(separator and name and spec) and not {"?", ":"} & set(name) and not Path(text).exists()
    if named and not name.startswith(("/", ".")):
        return name, grammar.parse(spec)
    parsed = grammar.parse(text)
    return parsed.name, parsed


def named_sources(given: NamedSources, option: str) -> dict[str, SourceSpec]:
    """Several sources by their names, in the order given."""
    if isinstance(given, Mapping):
        return {name: grammar.parse(str(source)) for name, source in given.items()}
    found: dict[str, SourceSpec] = {}
    for one in [given] if isinstance(given, str | Path) else given:
        name, spec = named_source(one)
        if name in found:
            raise OptionError(option, f"two sources are called '{name}'", "name them: NAME=FILE")
        found[name] = spec
    return found


def whole_numbers(given: str | Sequence[int], option: str) -> tuple[int, ...]:
    """Different numbers from 1, in ascending order; on the command line separated by commas."""
    parts = given.split(",") if isinstance(given, str) else given
    read = [signed_number(str(part).strip()) for part in parts if str(part).strip()]
    numbers = [number for number in read if number is not None]
    if len(numbers) < len(read):
        raise OptionError(option, f"'{given}' is not a list of whole numbers", "write them like 1,2,5")
    wrong = next((number for number in numbers if number < 1), None)
    if wrong is not None:
        raise OptionError(option, f"must be at least 1, got {wrong}", "correct the value")
    if len(set(numbers)) < len(numbers):
        raise OptionError(option, "a number stands there twice", "give each once")
    return tuple(sorted(numbers))


def input_of_log(name: str, log: AnnotationLog) -> Input:
    """An annotation log in a manifest."""
    sha256 = log.fingerprint.removeprefix("sha256:").partition(";")[0]
    return Input(name, log.spec.spec, "log", log.counts.read, sha256)


def left_out(counts: LogCounts) -> dict[str, int]:
    """The records of a log that are in no result, for the manifest."""
    return {kind: counts.faults[kind] for kind in ("repeated-query",) if kind in counts.faults}


def fault_notes(counts: LogCounts) -> list[str]:
    """What was wrong with a log's records, one sentence for each kind."""
    return [
        f"{counts.faults[kind]:,} times {kind}: {text} (e.g. {', '.join(counts.examples[kind][:3])})."
        for kind, text in FAULTS.items()
        if kind in counts.faults
    ]


def percent(share: float | None, digits: int = 1) -> str:
    """A share for a sentence."""
    return "no share" if share is None else f"{share:.{digits}%}"


def read_kinds(spec: SourceSpec) -> Mapping[str, str]:
    """The label of each query id.

    TSV without a header (`id TAB label`), or CSV, TSV, JSONL, JSON and Parquet with a column of ids and one called
    label, category, kind, type or class (or named with `#COLUMN`).
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
    """Query ids, the first column of each line; repeated ones count once."""
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
