"""How often the intervals of `measures.repeats` cover the truth, by simulation.

    python studies/repeats.py [--draws 1500]

Two systems are equal: their scores are those of a topic, of a system on a topic (0.1), of a repetition, and of one
topic in one repetition (0.06).
"""

from __future__ import annotations

import argparse

import numpy as np

from common import table
from truerank.measures.repeats import repeated_difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1500)
    draws = parser.parse_args().draws
    rng, rows = np.random.default_rng(0), []

    def system(base: np.ndarray, repeats: int, noise: float) -> np.ndarray:
        own = base + rng.normal(0, 0.1, base.shape) + rng.normal(0, noise, (1, repeats))
        found: np.ndarray = own + rng.normal(0, 0.06, (len(base), repeats))
        return found

    for topics, repeats, noise in ((t, r, n) for t in (30, 100) for r in (2, 3, 5) for n in (0.0, 0.01, 0.03)):
        counts, widths = np.zeros(3), []
        for _ in range(draws):
            base = rng.normal(0.4, 0.2, (topics, 1))
            found = repeated_difference(system(base, repeats, noise), system(base, repeats, noise))
            high = np.inf if found.system.high is None else found.system.high
            counts += [
                found.low <= 0 <= found.high,
                found.topics_only[0] <= 0 <= found.topics_only[1],
                found.system.low <= noise <= high,
            ]
            widths.append(found.high - found.low)
        shares = (f"{count / draws:.1%}" for count in counts)
        rows.append((topics, repeats, noise, *shares, f"{np.median(widths):.3f}"))
    heads = "topics,repetitions,noise,difference covered,by topics only,noise covered,median width"
    print(table(heads.split(","), rows))


if __name__ == "__main__":
    main()
