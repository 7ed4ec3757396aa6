"""Makes two versions of a collection in which known documents lost what made them relevant.

    python benchmarks/plant_faults.py FOLDER [--collection vaswani|cacm] [--seed N] [--half development|report]

Pages are built from 5 to 10 abstracts each; one of them is relevant to some topics (and stands anywhere on the page),
the others are relevant to nothing. In one of the two versions some pages became error pages, other documents (half of
them near ones, by BM25), were cut, lost or changed their content, or say the same in other words; all the others
changed harmlessly. Same seed, same bytes. `--half` says which half of the texts of error pages, notices and
boilerplate is used: thresholds and rules are looked at with `development` and its seed only.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from planted.abstracts import read_abstracts
from planted.writing import Plan, plant
from shared_data import SHARED, require_shared

#: The seed that everything was developed with, and the one that figures are reported for.
SEEDS = {"development": 20220905, "report": 20220908}


def main() -> None:
    """Reads the arguments and writes the two versions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--collection", choices=("vaswani", "cacm"), default="vaswani")
    parser.add_argument("--half", choices=tuple(SEEDS), default="development")
    parser.add_argument("--seed", type=int, help="instead of the half's own")
    parser.add_argument("--unjudged", type=int, default=500)
    given = parser.parse_args()
    require_shared()
    source = read_abstracts(given.collection, SHARED / "collections" / given.collection)
    seed = SEEDS[given.half] if given.seed is None else given.seed
    made = plant(source, given.folder, Plan(seed, given.half, given.unjudged))
    print(f"{made.pages:,} pages, {made.judged:,} of them judged, {made.harmful:,} of these lost what was relevant")


if __name__ == "__main__":
    main()
