"""The papers' experiments in small, from the data to the report: `make reproduce-pilot` and its like.

    python -m truerank_lab.papers.reproduce pilot|leakage|transfer|survivorship [--out FOLDER] [--full]
                                [--set KEY=VALUE …]
                                [--models NAME,…] [--dry-run] [--workers N] [--max-hours N]

Prepares the training sets (this package), says what the grid will cost, runs it, and writes the report. Ended
anywhere and called again, it goes on. The sizes are those of the pages of results; --full takes more seeds, candidates,
training sizes and models, and hours; --set changes a value of the design, --models takes some of its models. What is
trained already is not trained again. TRUERANK_SHARED is the folder that holds data/collections.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import truerank_lab
from truerank.errors import TruerankError
from truerank_lab.grid import read_design
from truerank_lab.grid.design import Design
from truerank_lab.papers import leakage, pilot, survivorship, versions
from truerank_lab.ready import designs

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("TRUERANK_SHARED", ROOT.parent / "shared"))


class Study(NamedTuple):
    """How the data are prepared, the small design, what `--full` changes of it, and what follows the report."""

    prepare: Callable[[Path, Path], None]
    design: str
    full: Mapping[str, str]
    follow: Callable[[Path], None] | None = None


#: `--full`: five seeds, 100 candidates and larger training sets; for the BERT-like models, too.
STUDIES = {
    "pilot": Study(
        pilot.prepare,
        "pilot-small",
        {
            "collections.vaswani.depth": "100",
            "collections.cacm.depth": "100",
            "sets.none.sizes": "[2000]",
            "sets.shuffled.sizes": "[2000]",
            **{f"models.{name}.model": f"{name}:packaged" for name in ("cedr", "parade", "monobert")},
            **{f"models.{name}.seeds": "[0, 1, 2, 3, 4]" for name in ("cedr", "parade", "monobert")},
            "seeds": "[0, 1, 2, 3, 4]",
        },
    ),
    "leakage": Study(
        leakage.prepare,
        "leakage-small",
        {
            f"models.{name}.{key}": value
            for name in ("monobert", "monot5", "colbert", "ance")
            for key, value in (
                ("depth", "100"),
                ("seeds", "[0, 1, 2, 3, 4]"),
                ("sizes", "[500, 1000, 2000, 4000, 8000]"),
                ("sets", "[vaswani-none, vaswani-leak, vaswani-test, cacm-none, cacm-leak, cacm-test]"),
            )
        },
    ),
    "transfer": Study(
        versions.prepare,
        "versions-small",
        {
            **{f"collections.{name}.depth": "100" for name in ("vaswani", "cacm")},
            "models.first.seeds": "[0, 1, 2, 3, 4]",
            "models.best.seeds": "[5, 6, 7, 8, 9]",
        },
    ),
    "survivorship": Study(
        survivorship.prepare,
        "survivorship-small",
        {**{f"collections.{name}.depth": "100" for name in ("dev", "vaswani", "cacm")}, "seeds": "[0, 1, 2, 3, 4]"},
        survivorship.by_depth,
    ),
}


def main() -> None:
    """Runs one study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--out", type=Path, help="by default STUDY-reproduction")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--models", default="", help="some of the design's models, separated by commas; by default all")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--max-hours", type=float)
    options = parser.parse_args()
    if not (SHARED / "data" / "collections").is_dir():
        sys.exit(f"no collections at {SHARED}: set TRUERANK_SHARED to the folder that holds data/")
    started, spent = time.monotonic(), os.times()
    try:
        reproduce(STUDIES[options.study], options)
    except TruerankError as error:
        sys.exit(str(error))
    ended = os.times()
    processor = sum(ended[:4]) - sum(spent[:4])
    print(f"{time.monotonic() - started:,.0f} seconds in all, {processor:,.0f} of them of a processor")


def reproduce(study: Study, options: argparse.Namespace) -> None:
    """Data, grid, report."""
    out: Path = options.out or Path(f"{options.study}-reproduction")
    prepared = out / "prepared"
    study.prepare(SHARED / "data" / "collections", prepared)
    os.environ.update(TRUERANK_SHARED=str(SHARED.absolute()), PREPARED=str(prepared.absolute()))
    file = out / f"{study.design}.yaml"
    file.unlink(missing_ok=True)
    designs(study.design, out=file)
    settings = dict(study.full) if options.full else {}
    for setting in options.settings:
        key, sign, value = setting.partition("=")
        if not sign:
            sys.exit(f"--set {setting}: write KEY=VALUE")
        settings[key] = value
    design = narrowed(read_design(file, settings=settings), tuple(filter(None, options.models.split(","))))
    how = {"workers": options.workers, "max_hours": options.max_hours, "dry_run": options.dry_run}
    print(truerank_lab.run(design, out=out / "grid", view="terminal", **how))
    if options.dry_run:
        return
    # The papers break ties by document id, ascending.
    print(truerank_lab.report(out / "grid", ties="ascending", out=out / "report"))
    if study.follow is not None:
        study.follow(out)
    print(f"report: {out / 'report' / 'report.html'}")


def narrowed(design: Design, names: Sequence[str]) -> Design:
    """The design with some of its models, and the sets and collections that they need."""
    if unknown := set(names) - {model.name for model in design.models}:
        sys.exit(f"--models: the design has no {', '.join(sorted(unknown))}")
    models = tuple(model for model in design.models if not names or model.name in names)
    taken = tuple(each for each in design.sets if any(not one.sets or each.name in one.sets for one in models))
    tested = {name for each in taken for name in each.collections}
    collections = tuple(one for one in design.collections if one.name in tested)
    return replace(design, models=models, sets=taken, collections=collections)


if __name__ == "__main__":
    main()
