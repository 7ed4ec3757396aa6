"""The papers' experiments in small, from the data to the report: `make reproduce-pilot` and its like.

    python -m truerank_lab.papers.reproduce pilot|leakage|transfer|survivorship [--out FOLDER] [--full]
                                [--set KEY=VALUE …] [--dry-run] [--workers N]

Prepares the training sets (this package), runs the grid, and writes the report; --dry-run says what the grid costs, and
prepares nothing. Ended anywhere and called again, it goes on: what is trained already is not trained again. The sizes
are those of the pages of results; --full takes more seeds, candidates, training sizes and models, and hours; --set
changes a value of the design. TRUERANK_SHARED is the folder that holds
data/collections.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from truerank.errors import TruerankError
from truerank_lab.grid.design import read_design
from truerank_lab.grid.execution import RunOptions, run
from truerank_lab.papers import leakage, pilot, survivorship, versions
from truerank_lab.ready import ready
from truerank_lab.reporting.report import report

SHARED = Path(os.environ.get("TRUERANK_SHARED", "../shared"))
SEEDS = (0, 1, 2, 3, 4)
#: The models of the pilot and of the leakage paper that take hours.
BERTS = ("cedr", "parade", "monobert")
LARGE = ("monobert", "monot5", "colbert", "ance")


class Study(NamedTuple):
    """How the data are prepared, what `--full` changes of the small design, and what follows the report."""

    prepare: Callable[[Path, Path], None]
    full: Mapping[str, Any]
    follow: Callable[[Path], None] | None = None


def _depths(*names: str) -> dict[str, Any]:
    return {f"collections.{name}.depth": 100 for name in names}


#: `--full`: five seeds, 100 candidates and larger training sets; for the BERT-like models, too.
STUDIES = {
    "pilot": Study(
        pilot.prepare,
        _depths("vaswani", "cacm")
        | {f"sets.{name}.sizes": [2000] for name in ("none", "shuffled")}
        | {f"models.{name}.model": f"{name}:packaged" for name in BERTS}
        | {f"models.{name}.seeds": SEEDS for name in BERTS}
        | {"seeds": SEEDS},
    ),
    "leakage": Study(
        leakage.prepare,
        {
            f"models.{name}.{key}": value
            for name in LARGE
            for key, value in (
                ("depth", 100),
                ("seeds", SEEDS),
                ("sizes", (500, 1000, 2000, 4000, 8000)),
                ("sets", [f"{each}-{kind}" for each in ("vaswani", "cacm") for kind in ("none", "leak", "test")]),
            )
        },
    ),
    "transfer": Study(
        versions.prepare,
        _depths("vaswani", "cacm") | {"models.first.seeds": SEEDS, "models.best.seeds": (5, 6, 7, 8, 9)},
    ),
    "survivorship": Study(
        survivorship.prepare, _depths("dev", "vaswani", "cacm") | {"seeds": SEEDS}, survivorship.by_depth
    ),
}


def main() -> None:
    """Runs one study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--out", type=Path, help="by default STUDY-reproduction")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    if not (SHARED / "data" / "collections").is_dir():
        sys.exit(f"no collections at {SHARED}: set TRUERANK_SHARED to the folder that holds data/")
    try:
        reproduce(options.study, options)
    except TruerankError as error:
        sys.exit(str(error))


def reproduce(name: str, options: argparse.Namespace) -> None:
    """Data, grid, report."""
    study = STUDIES[name]
    out: Path = options.out or Path(f"{name}-reproduction")
    os.environ.update(TRUERANK_SHARED=str(SHARED.absolute()), PREPARED=str((out / "prepared").absolute()))
    if not options.dry_run:
        study.prepare(SHARED / "data" / "collections", out / "prepared")
    settings = dict(study.full) if options.full else {}
    for setting in options.settings:
        key, sign, value = setting.partition("=")
        if not sign:
            sys.exit(f"--set {setting}: write KEY=VALUE")
        settings[key] = yaml.safe_load(value)
    design = read_design(ready(f"{name}-small"), settings=settings)
    print(run(design, out=out / "grid", dry_run=options.dry_run, options=RunOptions(workers=options.workers)))
    if options.dry_run:
        return
    print(report(out / "grid", out=out / "report"))
    if study.follow is not None:
        study.follow(out)
    print(f"report: {out / 'report' / 'report.html'}")


if __name__ == "__main__":
    main()
