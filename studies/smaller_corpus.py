"""What removing documents does to runs, beside removing as many random ones of the same judged state.

    python studies/smaller_corpus.py [--simulations 200] [--seed 1]

Eight runs over Vaswani, and core17's two of the leakage paper; nDCG@10. Removed are: a fifth or two fifths of all
documents at random; a fifth of the relevant ones and a tenth of the others at random, as near-duplicates or documents
of training sets may be; or, of the same numbers, documents that one run has in its first ten for a topic to which they
are not relevant (a half of these). The first three are chance, and should be told from it in 5% at most; the last one
is what one system gains by. Printed: how often the change is more than chance (0.05, over all runs of a set).
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from common import require_shared, table
from placebo import MEASURE, Data, all_data
from truerank.measures.document_placebo import Unseen, document_placebos
from truerank.measures.magnitudes import proportion
from truerank.options import Resampling

KINDS = ("a fifth", "two fifths", "relevant ones more often", "what one run confuses")


def removed(data: Data, kind: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The documents that go, shape (documents,)."""
    ranked = data.ranked
    draw = rng.random(len(ranked.documents))
    if kind in ("a fifth", "two fifths"):
        return draw < (0.2 if kind == "a fifth" else 0.4)
    if kind == "relevant ones more often":
        return draw < np.where(ranked.relevant, 0.2, 0.1)
    rows = ranked.results(data.profiting)
    confusing = np.zeros(len(draw), np.bool_)
    confusing[rows.document[(rows.rank < 10) & (rows.grade < 1)]] = True
    found: NDArray[np.bool_] = confusing & ~ranked.relevant & (draw < 0.5)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    require_shared()
    given = parser.parse_args()
    rows = []
    for data in all_data():
        for kind in KINDS:
            found = {False: 0, True: 0}
            for number in range(given.simulations):
                gone = removed(data, kind, np.random.default_rng([given.seed, KINDS.index(kind), number]))
                names = data.ranked.documents.filter(gone.tolist()).to_list()
                for by_state in found:
                    # The collection is what is judged or in a run: no others.
                    (one,) = document_placebos(
                        data.ranked, names, MEASURE, by_state=Unseen() if by_state else None,
                        resampling=Resampling(199, 0.95, number),
                    )  # fmt: skip
                    found[by_state] += one.p <= 0.05
            ends = proportion(found[True], given.simulations, method="exact")
            state = f"{found[True] / given.simulations:.1%} ({ends.low:.1%} to {ends.high:.1%})"
            rows.append((data.name, kind, state, f"{found[False] / given.simulations:.1%}"))
    print(table(("set", "removed", "more than chance, by judged state", "beside documents of the same topics"), rows))


if __name__ == "__main__":
    main()
