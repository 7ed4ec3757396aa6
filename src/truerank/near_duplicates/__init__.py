"""Duplicates, near-duplicates and containment, within a collection or between two.

    found = within(open_documents("corpus.jsonl"), Shingles(similarity=0.8), Job(folder))
    found.pairs, found.groups, found.boilerplate, found.counts

    leaks = between(test_documents, training_documents, Shingles(), Job(folder))

- `Shingles` are the options; a command takes them as a group.
- `within` and `between` read documents (`Document`, or pairs of id and text) once and return `Equivalents`: frames with
  the columns `PAIRS`, `GROUPS` and `BOILERPLATE`.
- Kinds of pairs: *exact* (the same text after `text.normalising.normalise`), *reformatted* (the same words in the same
  order; case, punctuation and line breaks differ), *near* (Jaccard similarity of the sets of shingles from
  `similarity` on), *contains* (the larger one has `containment` of the shingles of the smaller one).

- `keep` stores what one collection is compared by (`Sketches`), which `within` and `between` take in place of
  documents; `open_sketches` opens it again.
- `Equivalents.rethreshold` raises thresholds without comparing again.

Similarities are computed from all shingles, not estimated from a sketch.
"""

from truerank.near_duplicates.comparison import between, within
from truerank.near_duplicates.results import BOILERPLATE, GROUPS, KINDS, PAIRS, Equivalents
from truerank.near_duplicates.shingles import Shingles
from truerank.near_duplicates.sketches import Documents, ExtraColumns, Sketches, keep, open_sketches

__all__ = [
    "BOILERPLATE", "GROUPS", "KINDS", "PAIRS", "Documents", "Equivalents", "ExtraColumns", "Shingles", "Sketches",
    "between", "keep", "open_sketches", "within",
]  # fmt: skip
