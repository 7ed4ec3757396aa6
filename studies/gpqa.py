"""A published comparison with repetitions: two models on 198 questions of GPQA Diamond, five epochs each.

    pip download --no-deps --no-binary :all: evalconfidence==0.1.1 && tar xzf evalconfidence-0.1.1.tar.gz
    python studies/gpqa.py evalconfidence-0.1.1/examples/data/gpqa_diamond_scores.csv

The package reports p = .036 paired and .149 unpaired (inspect_ai 4206). The third row is the difference for other
repetitions, which the package does not compute.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import truerank
from common import table
from truerank.measures import Significance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    file = parser.parse_args().file
    rows: list[tuple[object, ...]] = []
    for name, test in (("paired", "paired-t"), ("unpaired", "welch")):
        found = truerank.compare(table=file, testing=Significance(significance=test))
        assert found.comparison is not None
        (row,) = found.comparison.differences
        rows.append((name, f"{row.difference:+.4f}", f"{row.low:+.4f} to {row.high:+.4f}", f"{row.p:.4f}"))
    (pair,) = found.repeated
    again = pair.found
    rows.append(("when run again", f"{again.mean:+.4f}", f"{again.low:+.4f} to {again.high:+.4f}", ""))
    print(f"{pair.run} − {pair.baseline}\n\n" + table(("", "difference", "95% interval", "p"), rows))
    print(f"\nsd between repetitions: {again.system.by_repeat:.4f} and {again.baseline.by_repeat:.4f}")


if __name__ == "__main__":
    main()
