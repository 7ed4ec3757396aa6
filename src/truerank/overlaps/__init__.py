"""Overlaps: which texts of a test side are in a training side, and by what evidence.

    from pathlib import Path
    from truerank.overlaps import OverlapRules, compare, keep, kept_before
    from truerank.sources import open_queries
    from truerank.work.jobs import Job

    found = compare([("q1", "how do coral reefs die")], open_queries("train.tsv"), OverlapRules(), Job(folder))
    found.frame   # test_id, training_id, exact, ngram_test, ngram_training, jaccard, containment, wording, …

- Both sides are pairs of id and text (`Query` is one), or documents, read once as a stream; or what `keep` kept of
  them, which many comparisons share: `keep(texts, rules, Job(folder))`, later `kept_before(folder, rules)`.
- `OverlapRules` says which evidence counts. A pair is in the frame when one kind does; its row has the values of all.
- Ids may repeat, within a side and between the two. Each text of the training side has its own row, also where several
  are the same: give distinct texts, and join what has them, where many training examples share a text.
- A killed job continues if it gets the same texts; same texts, same bytes.

Similarities are those of `near_duplicates`, without what is familiar in the test side (`overlaps.keeping`); the words
of short texts are compared as in `leakage audit` (`text.wording`), and by their letters (`overlaps.wording`).
"""

from truerank.overlaps.comparison import compare
from truerank.overlaps.kept_texts import KeptTexts, keep, kept_before
from truerank.overlaps.results import EVIDENCE_KINDS, OVERLAPS, OverlapRules, Overlaps

__all__ = [
    "EVIDENCE_KINDS", "OVERLAPS", "KeptTexts", "OverlapRules", "Overlaps", "compare", "keep", "kept_before",
]  # fmt: skip
