"""Finds planted faults in a real collection: found, kind right, and false alarms, by kind.

    python studies/collection_planted.py [--collection vaswani|cacm] [--only NAME …] [--work FOLDER]

Each of the kinds in `planted/collection_faults.py` is planted twenty times, a kind at a time, into a collection that
also holds harmless look-alikes (`planted/collections.py`): the same title over another text, numbered series, quoted
passages, a form letter in five languages, inequalities, accents, texts about errors, capitals, code, ids that are
nearly alike, topics with some relevant documents in common. A planted fault is found if a finding that was not there
before names it, and its kind is right if that is the kind that it should be. False alarms are findings (faults and
doubts) that were not there before and name nothing that was planted; those among the look-alikes are counted once, in
the last line. Thresholds were chosen with `--collection vaswani`; the figures of the docs are those of `--collection
cacm`, with wordings of notices that come from other projects, and were not used to change anything.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from common import SHARED, require_shared, table
from planted.collection_faults import FAULTS, Fault
from planted.collections import TIMES, Collection, Planted, read_collection
from truerank import collection
from truerank.audits.collection.results import kinds
from truerank.measures import proportion

#: What a finding says of one instance: part of it, and whether it is more than a note.
Row = tuple[str, str, str, str, str]


class Score(NamedTuple):
    """What became of one kind of planted fault."""

    planted: int
    found: int
    right: int
    alarms: list[Row]
    missed: list[Planted]


def findings(given: Collection, parts: tuple[str, ...], folder: Path) -> set[Row]:
    """All instances that an audit finds: kind, topic, document, other, detail."""
    paths = given.write(folder)
    named = {part: [paths[part]] if part == "train" else paths[part] for part in parts}
    found = collection.audit(**named, measures="P@1")
    columns = ["kind", "topic_id", "doc_id", "other", "detail"]
    return set(found.instances.filter(pl.col("kind") != "low-ceiling").select(columns).iter_rows())


def names(row: Row, planted: Planted) -> bool:
    """Whether an instance names a planted fault: by its ids, or by what it shows."""
    _, topic, doc, other, detail = row
    if planted.text:
        return planted.text in detail
    return bool(planted.ids & {topic, doc, other, f"{topic} {doc}"})


def score(base: Collection, fault: Fault, folder: Path, before: set[Row]) -> Score:
    """Plants one kind and audits: all at once, or one after the other."""
    rounds = [1] * TIMES if fault.alone else [TIMES]
    total, found, right = 0, 0, 0
    alarms: list[Row] = []
    missed: list[Planted] = []
    for number, times in enumerate(rounds):
        copy = base.copy(100 + number)
        planted = list(fault.plant(copy, times))
        new = findings(copy, fault.parts, folder) - before
        for one in planted:
            hits = {row[0] for row in new if names(row, one)}
            total, found, right = total + 1, found + bool(hits), right + (fault.kind in hits)
            if fault.kind not in hits:
                missed.append(one)
        loud = [row for row in new if kinds()[row[0]].severity != "note"]
        alarms += [row for row in loud if not any(names(row, one) for one in planted)]
    return Score(total, found, right, alarms, missed)


def lines(base: Collection, only: list[str], folder: Path) -> Iterator[tuple[object, ...]]:
    """The rows of the table; findings before planting are looked for once for each choice of parts."""
    known: dict[tuple[str, ...], set[Row]] = {}
    for name, fault in FAULTS.items():
        if only and not any(part in name for part in only):
            continue
        if fault.parts not in known:
            known[fault.parts] = findings(base, fault.parts, folder)
        got = score(base, fault, folder, known[fault.parts])
        interval = proportion(got.right, got.planted, method="exact")
        print(f"{name}: {got.found} found, {got.right} right of {got.planted}, {len(got.alarms)} alarms", flush=True)
        for one in got.missed[:3]:
            print(f"    missed: {sorted(one.ids)} {one.text}", flush=True)
        for row in got.alarms[:3]:
            print(f"    alarm: {row}", flush=True)
        yield name, fault.kind, got.planted, got.found, got.right, f"{interval.low:.2f}", len(got.alarms)


def main() -> None:
    """Plants, audits, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--collection", choices=("vaswani", "cacm"), default="vaswani")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of faults")
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    require_shared()
    base = read_collection(given.collection, SHARED / "collections" / given.collection, seed=1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.work or Path(temporary)
        rows = list(lines(base, given.only, folder))
        loud = [
            row
            for row in findings(base, ("docs", "topics", "qrels", "train"), folder)
            if kinds()[row[0]].severity != "note" and base.harmless & {row[2], row[3]}
        ]
    print()
    print(table(("planted", "right kind", "times", "found", "kind right", "at least", "false alarms"), rows))
    total = [sum(int(str(row[place])) for row in rows) for place in (2, 3, 4, 6)]
    print(f"\n{len(rows)} kinds, {total[0]} planted: {total[1]} found, {total[2]} with the right kind")
    print(f"{total[3]} false alarms")
    print(f"{len(base.harmless)} look-alikes: {len({row[2] for row in loud})} false alarms")
    for row in sorted(loud)[:10]:
        print("   ", row)


if __name__ == "__main__":
    main()
