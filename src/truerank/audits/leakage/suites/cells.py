"""One cell of the matrix: what was found, what that bounds, and the verdict."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.estimating import claimed, kinds_seen, not_asked
from truerank.audits.leakage.results import Sensitivity
from truerank.measures.intervals import exact_interval
from truerank.overlaps.results import SemanticState
from truerank.text.rewordings import SEEN_KINDS, UNPLANTED

#: The columns of a cell by the kinds of evidence that they count.
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "exact": ("exact",),
    "ngram": ("ngram", "near", "contains"),
    "words": ("words", "letters"),
    "semantic": ("encoder",),
}
_WEAK: Final = COLUMNS["words"]
_CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Compared:
    """What was compared for one cell.

    Attributes:
        part: "query" or "document".
        items: topics or documents of the test set.
        training_texts: texts of the training set and of those whose data it inherits.
        pairs: the pairs, with the columns of `OVERLAPS`.
        states: what the encoder did, for each two sources that were compared.
        itself: whether the test set is compared with itself.
        check: which planted rewordings would have been found; None where none were planted.
        unread: records of both sides that hold no text that could be read.
        crowded: sequences of words that so many texts have that not all pairs with them were compared.
        silent: texts of the test set, and of the training data, that the encoder could not read.
    """

    part: str
    items: int
    training_texts: int
    pairs: pl.DataFrame
    states: tuple[SemanticState, ...]
    itself: bool
    check: Sensitivity | None
    unread: int
    crowded: int
    silent: tuple[int, int]


def cell_of(one: Compared) -> dict[str, Any]:
    """The columns of `CELLS` but the names."""
    by = {name: _items(_with(one.pairs, kinds), one.itself) for name, kinds in COLUMNS.items()}
    strong = by["exact"] | by["ngram"] | by["semantic"]
    weak = by["words"] - strong
    compared = all(state == "compared" for state in one.states)
    verdict, reason, upper = _verdict(one, strong, weak)
    return {
        "part": one.part,
        "items": one.items,
        "training_texts": one.training_texts,
        **{name: len(found) for name, found in by.items() if name != "semantic"},
        "semantic": len(by["semantic"]) if compared or by["semantic"] else None,
        "leaking": len(strong),
        "proposed": len(weak),
        "pairs": len(one.pairs),
        "verdict": verdict,
        "upper": upper,
        "reason": reason,
    }


def pair_cell(pairs: pl.DataFrame, items: int, examples: int) -> dict[str, Any]:
    """The columns of `CELLS` but the names, of topics whose query and relevant document stand in one example."""
    found = pairs["topic_id"].n_unique()
    reason = f"{found} of {items:,} topics have their query and a relevant document in one training example."
    if not found:
        reason = "No query with a relevant document was found in one example; rewordings of documents were not planted."
    return {
        "part": "pair",
        "items": items,
        "training_texts": examples,
        **dict.fromkeys(COLUMNS),
        "leaking": found,
        "proposed": 0,
        "pairs": len(pairs),
        "verdict": "CONTAMINATED" if found else "UNKNOWN",
        "upper": None,
        "reason": reason,
    }


def upper_bound(found: int, items: int, seen: int, planted: int) -> int:
    """The most items that can leak, with 95% confidence, where each leak is found with the chance that plants are.

    The chance is the lower end of a one-sided 97.5% interval of the plants that were found, and the bound is the
    largest number of leaks of which so few are found with a probability of at least 2.5%.
    """
    from scipy.special import bdtr

    low, _ = exact_interval(seen, planted, confidence=_CONFIDENCE)
    # The more leaks, the less probable it is that so few are found.
    return bisect_left(
        range(items), True, lo=min(found, items), key=lambda most: bdtr(found, most + 1, low) < (1 - _CONFIDENCE) / 2
    )


def _with(pairs: pl.DataFrame, kinds: Sequence[str]) -> pl.DataFrame:
    if pairs.is_empty():
        return pairs
    return pairs.filter(pl.col("evidence").str.split("+").list.set_intersection(list(kinds)).list.len() > 0)


def _items(pairs: pl.DataFrame, itself: bool) -> set[str]:
    return {*pairs["test_id"].to_list(), *(pairs["training_id"].to_list() if itself else ())}


def _verdict(one: Compared, strong: set[str], weak: set[str]) -> tuple[str, str, int | None]:
    noun = {"query": "topics", "document": "documents"}[one.part]
    seen, planted = _planted(one.check) if one.part == "query" else (0, 0)
    compared = all(state == "compared" for state in one.states)
    upper = upper_bound(len(strong | weak), one.items, seen, planted) if planted and compared else None
    bound = "" if upper is None else f" At most {upper:,} leak in the same words (95%)."
    if compared and any(one.silent):
        bound += f" {not_asked(*one.silent)}"
    if strong:
        other = "another of them" if one.itself else "a training text"
        return (
            "CONTAMINATED",
            f"{len(strong):,} of {one.items:,} {noun} have {other} with the same text, n-grams or meaning.{bound}",
            upper,
        )
    gaps = list(_not_compared(one))
    if weak:
        gaps.append(f"{len(weak):,} of {one.items:,} {noun} have a training text with the same content words, unjudged")
    if "unknown language" in one.states:
        gaps.append(f"the encoder cannot read one of the sides ({one.silent[0]:,} and {one.silent[1]:,} texts)")
    if "not asked" in one.states:
        gaps.append("no encoder compared meanings")
    if one.part == "document":
        gaps.append("no changed documents were planted, so that nothing tells what would be found")
    elif not planted:
        gaps.append("no rewordings were planted, so that nothing tells what would be found")
    else:
        found, blind, few = kinds_seen(one.check["kinds"]) if one.check is not None else ([], {}, {})
        if missed := [kind for kind in blind if kind in SEEN_KINDS]:
            gaps.append(f"planted rewordings were not found often enough ({', '.join(missed)})")
        if not gaps:
            return (
                "CLEAN",
                f"All texts were compared and nothing was found. Of planted rewordings at least 95% were found: "
                f"{claimed(found)}; not: {', '.join(blind) or 'none'}; not planted: {UNPLANTED}"
                f"{'; too few to say: ' if few else ''}{', '.join(few)}.{bound}",
                upper,
            )
    return "UNKNOWN", f"Nothing above the thresholds, but {'; '.join(gaps)}.{bound}", upper


def _not_compared(one: Compared) -> Iterator[str]:
    """What was not read, or not compared with everything."""
    if not one.training_texts:
        yield f"the training data has no {one.part}"
    if one.unread:
        yield f"{one.unread:,} record{'' if one.unread == 1 else 's'} could not be read"
    if one.crowded:
        yield f"{one.crowded:,} word sequences stand in so many texts that not all pairs with them were compared"


def _planted(check: Sensitivity | None) -> tuple[int, int]:
    """Plants in the same words that were found, and all of them."""
    kinds = [] if check is None else [kind for kind in check["kinds"] if kind["kind"] in SEEN_KINDS]
    return sum(kind["found"] for kind in kinds), sum(kind["planted"] for kind in kinds)
