"""What the commands on training sets print."""

from __future__ import annotations

from typing import Any, Final

from truerank.core.verdict import Verdict
from truerank.experiments.instances.built import TABLE, Built, Export
from truerank.experiments.instances.checking import InstanceStats, LoadedSet
from truerank.experiments.instances.document_queries import QueryFile
from truerank.reports.results import Summary, summarises
from truerank.reports.tables import Cell, Column, Table

_VERDICTS: Final = {True: "holds", False: "BROKEN", None: "not checked"}
_NUMBER: Final[dict[str, Any]] = {"align": "right", "format": ",d"}


@summarises(Built)
def _built(built: Built) -> Summary:
    about = built.about
    counts = about["counts"]["by_size"]
    groups = list(dict.fromkeys(group for own in counts.values() for group in own))
    table = Table(
        f"Training set of the kind {built.kind}, seed {built.seed}: rows by size",
        (
            *Column.numbers(",d", "instances", "rows"),
            *Column.numbers(",d", *groups),
        ),
        tuple((int(size), int(size) // 2, *(own.get(group, 0) for group in groups)) for size, own in counts.items()),
        notes=(
            "An instance is a pair of a query and a document; a row is a query with a relevant and a non-relevant one. "
            "Each size is the beginning of the next.",
            *about["notes"],
            *(f"Not used: {number:,} {reason}." for reason, number in about["skipped"].items()),
        ),
    )
    facts = {"folder": str(built.folder), **about, "artifacts": dict(built.artifacts)}
    return Summary((table, f"written: {built.folder / TABLE}"), facts)


@summarises(QueryFile)
def _query_file(found: QueryFile) -> Summary:
    made = found.read - found.skipped
    text = f"{made:,} queries of {found.read:,} documents; {found.skipped:,} have a title only\nwritten: {found.out}"
    facts = {"out": str(found.out), "documents": found.read, "queries": made, "title_only": found.skipped}
    return Summary((text,), facts)


@summarises(Export)
def _export(found: Export) -> Summary:
    facts = {"out": str(found.out), "file_format": found.file_format, "size": found.size}
    return Summary((f"written: {found.out}",), facts, notes=(f"format: {found.file_format}",))


@summarises(InstanceStats)
def _stats(found: InstanceStats) -> Summary:
    tables = [_counts_table(found), _proofs_table(found), *([_pairs_table(found)] if found.pairs else [])]
    sets = [
        {
            "set": one.label,
            "kind": one.built.kind,
            "seed": one.built.seed,
            "sizes": list(one.sizes),
            "rows": len(one.rows),
            "counts": {f"{role}: {source}": number for role, source, number in _counts(one)},
            "properties": [each._asdict() for each in own],
        }
        for one, own in zip(found.sets, found.properties, strict=True)
    ]
    pairs = [{**pair._asdict(), "same_fill": pair.same_fill._asdict()} for pair in found.pairs]
    verdicts = () if found.holds else (Verdict("broken", "A property of a set is broken."),)
    return Summary(tuple(tables), {"holds": found.holds, "sets": sets, "pairs": pairs}, verdicts)


def _counts(one: LoadedSet) -> list[tuple[str, str, int]]:
    return list(one.rows.group_by("role", "source", maintain_order=True).len().iter_rows())


def _counts_table(found: InstanceStats) -> Table:
    """The rows of each set by role and source."""
    rows: list[tuple[Cell, ...]] = [
        (one.label, one.built.kind, role, source, number) for one in found.sets for role, source, number in _counts(one)
    ]
    columns = (
        Column("set"),
        Column("kind"),
        Column("role"),
        Column("source"),
        Column("rows", align="right", format=",d"),
    )
    return Table("Rows by role and source", columns, tuple(rows))


def _proofs_table(found: InstanceStats) -> Table:
    """What each set promises, and whether it holds."""
    rows = [
        (one.label, each.name, _VERDICTS[each.holds], each.numbers)
        for one, own in zip(found.sets, found.properties, strict=True)
        for each in own
    ]
    every = [each.holds for own in found.properties for each in own]
    note = f"{len(rows):,} properties: {every.count(False)} broken, {every.count(None)} not checked."
    columns = (Column("set"), Column("property"), Column("verdict"), Column("numbers"))
    return Table("What the sets promise", columns, tuple(rows), notes=(note,))


def _pairs_table(found: InstanceStats) -> Table:
    """What every two sets share."""
    rows: list[tuple[Cell, ...]] = [
        (*pair[:5], _VERDICTS[pair.same_fill.holds], pair.same_fill.numbers) for pair in found.pairs
    ]
    numbers = [Column(name, **_NUMBER) for name in ("rows", "queries", "documents")]
    columns = (Column("set"), Column("next to"), *numbers, Column("same rows without a leak"), Column("numbers"))
    return Table("What two sets share", columns, tuple(rows))
