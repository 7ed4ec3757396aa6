"""Building training sets that differ only in their fault (leakage paper, section 4)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from truerank.errors import InputError
from truerank.experiments.instances.assembling import Assembled, assemble
from truerank.experiments.instances.built import (
    COMMAND,
    TABLE,
    Built,
    export_instances,
    export_name,
    open_built,
    write_rows,
)
from truerank.experiments.instances.opening import Opened
from truerank.experiments.instances.options import BuildOptions, checked_sizes
from truerank.experiments.instances.tables import EXTRA, TableRows
from truerank.work.artifacts import Artifacts, digest, installed_versions
from truerank.work.progress import Progress, Quiet

__all__ = ["build_instances"]

_EXPORTS: Final = "exports"


def build_instances(
    kind: str,
    sizes: Sequence[int],
    out: str | Path,
    options: BuildOptions | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Built:
    """Builds a training set, in several sizes at once, each the beginning of the next.

    Rows that leak come first, then those that do not, in the order of the `none` set of the same sources and seed: sets
    of one seed and size differ only in the fault. Everything is chosen by hashes keyed with the seed; the same input
    gives the same bytes. Killed and called again, searching for non-relevant documents continues.

    Args:
        kind: "none": no row leaks; "leak": so many rows are of training queries that leak test topics; "test": so many
            rows are of the test topics and their judgments; "by-depth" and "by-version": rows of a table that
            `survivorship triples` or `transfer select` wrote.
        sizes: in instances, that is pairs of a query and a document: a size of 1,000 has 500 rows, each with one
            relevant and one non-relevant document. By depth and by version there may be none: then all rows.
        out: the folder.
        options: where everything comes from, see `BuildOptions`.
        seed: of all choices.
        progress: is told how far it is.

    Returns:
        The set; the folder holds `instances.parquet`, `manifest.json` and what `write` asks for.

    Raises:
        InputError: a fault in a source or an option; fewer rows than asked for, with how many there are.

    Source: leakage paper, section 4, "Training Datasets".
    """
    given, told = options or BuildOptions(), progress or Quiet()
    given.check(kind)
    wanted = checked_sizes(sizes)
    artifacts = Artifacts(out)
    if kind in EXTRA:
        return _from_table(kind, artifacts, wanted, given, seed)
    if not wanted:
        raise InputError("is missing", "give one size or several, in instances: 1000 are 500 queries", where="--size")
    lead = given.leaks or 0
    if wanted[0] // 2 < lead:
        fault = f"the size {wanted[0]:,} has {wanted[0] // 2:,} rows, fewer than the {lead:,} that leak"
        raise InputError(fault, f"begin with a size of {2 * lead:,}", where="--size")
    work = artifacts.work / digest({"kind": kind, "seed": seed, **asdict(given)})[:32]
    work.mkdir(parents=True, exist_ok=True)
    assembled = assemble(kind, wanted[-1] // 2, Opened(given, seed, work, told))
    told.start("writing")
    _forget(artifacts)
    rows = write_rows(artifacts, assembled.blocks(), work / "rows", {})
    built = _finished(artifacts, (kind, seed), wanted, given, _described(assembled, rows))
    shutil.rmtree(work)
    artifacts.tidy()
    return built


def _from_table(kind: str, artifacts: Artifacts, sizes: tuple[int, ...], options: BuildOptions, seed: int) -> Built:
    table = TableRows(kind, options)
    wanted = sizes[-1] // 2 if sizes else None
    _forget(artifacts)
    rows = write_rows(artifacts, table.blocks(wanted), artifacts.work / "rows", EXTRA[kind])
    if not rows or (wanted is not None and rows < wanted and not options.allow_fewer):
        (artifacts.folder / TABLE).unlink(missing_ok=True)
        artifacts.tidy()
        fault = f"{rows:,} rows fit, not {wanted or 1:,}; {table.left_out:,} have another {next(iter(EXTRA[kind]))}"
        raise InputError(fault, "ask for a smaller size, or --allow-fewer", where=options.rows)
    kept = tuple(size for size in sizes if size <= 2 * rows)
    skipped = {
        f"rows of another {next(iter(EXTRA[kind]))}": table.left_out,
        "rows without the text of a query or document": table.empty,
    }
    notes = [] if wanted is None or rows >= wanted else [f"There are only {rows:,} rows."]
    if wanted is not None and rows == wanted:
        notes.append(f"The table was read as far as its row {table.read:,}.")
    described = {
        "rows": rows,
        "inputs": {"rows": table.inputs},
        "leaks": None,
        "skipped": {reason: number for reason, number in skipped.items() if number},
        "notes": notes,
    }
    built = _finished(artifacts, (kind, seed), kept or (2 * rows,), options, described)
    artifacts.tidy()
    return built


def _forget(artifacts: Artifacts) -> None:
    """Without its manifest an earlier set of this folder is none: a killed build leaves no mixture of two."""
    (artifacts.folder / "manifest.json").unlink(missing_ok=True)


def _described(assembled: Assembled, rows: int) -> dict[str, Any]:
    return {
        "rows": rows,
        "inputs": assembled.inputs,
        "leaks": assembled.leaks,
        "skipped": assembled.skipped,
        "notes": list(assembled.notes),
    }


def _finished(
    artifacts: Artifacts,
    drawn: tuple[str, int],
    sizes: tuple[int, ...],
    options: BuildOptions,
    described: Mapping[str, Any],
) -> Built:
    """Counts, exports and the manifest; `drawn` are kind and seed."""
    kind, seed = drawn
    rows = int(described["rows"])
    kept = tuple(size for size in sizes if size <= 2 * rows) or (2 * rows,)
    built = Built(artifacts.folder, kind, kept, seed, {"rows": rows})
    by_size = {str(size): _counts(built, size) for size in kept}
    shutil.rmtree(artifacts.folder / _EXPORTS, ignore_errors=True)
    exports = {}
    for form in options.write:
        for size in kept:
            name = f"{_EXPORTS}/{export_name(form, size)}"
            export_instances(built, form, artifacts.folder / name, size)
            artifacts.note(name)
            exports[name] = {"format": form, "size": size}
    manifest = {
        "command": COMMAND,
        "versions": installed_versions("truerank", "polars"),
        "kind": kind,
        "seed": seed,
        "sizes": list(kept),
        "counting": "an instance is a pair of a query and a document: a size of 1,000 has 500 rows",
        "options": _changed(options),
        **described,
        "counts": {"by_size": by_size},
        "exports": exports,
    }
    artifacts.manifest(manifest)
    artifacts.log("built", kind=kind, rows=rows)
    return open_built(artifacts.folder)


def _counts(built: Built, size: int) -> dict[str, int]:
    """Rows of a size by role and source, as `role: source`."""
    frame = built.lazy().head(size // 2).select("role", "source").collect()
    counts = Counter(f"{role}: {source}" for role, source in frame.iter_rows())
    return dict(sorted(counts.items(), key=lambda item: (item[0].startswith("none:"), item[0])))


def _changed(options: BuildOptions) -> dict[str, Any]:
    """The options that are not as they are by default."""
    plain = BuildOptions()
    changed = {part.name: getattr(options, part.name) for part in fields(options)}
    return {name: value for name, value in changed.items() if value != getattr(plain, name)}
