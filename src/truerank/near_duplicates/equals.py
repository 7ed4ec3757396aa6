"""Documents with the same text, or with the same words in the same order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.near_duplicates.plan import ComparisonPlan
from truerank.near_duplicates.shingling import Numbers, runs_of
from truerank.near_duplicates.shuffling import Piece, Shuffle, run_pieces
from truerank.work.jobs import Job

_KEYS: Final = (("key", "<u8"), ("text", "<u8"), ("document", "<u4"))
#: Of a document: the first of its collection with these words; the first with this text, or else with these words,
#: that it is paired with; the first with these words in the other collection; 0 for exact, 1 for reformatted.
_EQUALS: Final = (("document", "<u4"), ("first", "<u4"), ("twin", "<u4"), ("match", "<u4"), ("kind", "u1"))
NO_TWIN: Final = 0xFFFFFFFF


def find_equals(plan: ComparisonPlan, job: Job) -> Shuffle:
    """Finds documents that repeat others."""
    keys = Shuffle(plan.folder / "keys", len(plan.places), _KEYS)
    equals = Shuffle(plan.folder / "equals", plan.parts, _EQUALS)
    run_pieces("sorting texts", _SortTexts(plan, keys), len(plan.places), job)
    run_pieces("comparing texts", _CompareTexts(plan, keys, equals), plan.parts, job)
    keys.drop()
    return equals


def not_first(equals: Shuffle, block: int) -> Numbers:
    """The documents of a block that are not the first of their collection with these words, ascending."""
    found = equals.read(block)
    return np.sort(found["document"][found["first"] != found["document"]]).astype(np.int64)


@dataclass(frozen=True)
class _SortTexts:
    plan: ComparisonPlan
    keys: Shuffle

    def done(self, piece: int) -> bool:
        return self.keys.done(piece)

    def open(self) -> Callable[[Piece], None]:
        return self._sort

    def _sort(self, piece: Piece) -> None:
        sketches, block = self.plan.places[piece.number]
        text, sequence = (sketches.column(block, name) for name in ("text", "sequence"))
        records = np.zeros(len(text), list(_KEYS))
        # Signs without words only equal themselves.
        records["key"], records["text"] = np.where(sequence == 0, text, sequence), text
        records["document"] = self.plan.firsts[piece.number] + np.arange(len(text))
        records = records[text != 0]
        records = records[np.argsort(records["key"], kind="stable")]
        self.keys.write(piece.number, records, self.plan.part_bounds(records["key"]))


@dataclass(frozen=True)
class _CompareTexts:
    plan: ComparisonPlan
    keys: Shuffle
    equals: Shuffle

    def done(self, piece: int) -> bool:
        return self.equals.done(piece)

    def open(self) -> Callable[[Piece], None]:
        return self._compare

    def _compare(self, piece: Piece) -> None:
        records = self.keys.read(piece.number)
        records = records[np.argsort(records["key"], kind="stable")]
        bounds = runs_of(records["key"])
        records = records[np.repeat(np.diff(bounds) > 1, np.diff(bounds))]
        found = _equals(records, self.plan.border)
        found = found[np.argsort(found["document"], kind="stable")]
        self.equals.write(piece.number, found, self.plan.block_bounds(found["document"]))


def _equals(records: NDArray[Any], border: int | None) -> NDArray[Any]:
    """The documents that repeat another one, of records by key and document."""
    by_text = np.lexsort((records["document"], records["text"], records["key"]))
    text_of = np.empty(len(records), np.int64)
    texts = runs_of(records[["key", "text"]][by_text])
    text_of[by_text] = np.repeat(np.arange(len(texts) - 1), np.diff(texts))
    words = runs_of(records["key"])
    words_of = np.repeat(np.arange(len(words) - 1), np.diff(words))
    document = records["document"].astype(np.int64)
    found = np.zeros(len(records), list(_EQUALS))
    found["document"], found["match"] = document, NO_TWIN
    if border is None:
        found["first"] = document[words[:-1]][words_of]
        exact = document[by_text][texts[:-1]][text_of]
        twin = np.where(exact != document, exact, found["first"])
        found["kind"] = twin != exact
        found["twin"] = np.where(twin != document, twin, NO_TWIN)
    else:
        ours = document < border
        first_left = _first(document, words_of, len(words) - 1, ours)
        first_right = _first(document, words_of, len(words) - 1, ~ours)
        found["first"] = np.where(ours, first_left[words_of], first_right[words_of])
        exact = _first(document, text_of, len(texts) - 1, ~ours)[text_of]
        found["match"] = np.where(ours, first_right[words_of], NO_TWIN)
        found["kind"] = exact == NO_TWIN
        found["twin"] = np.where(ours, np.where(exact != NO_TWIN, exact, found["match"]), NO_TWIN)
    repeats: NDArray[Any] = found[(found["first"] != document) | (found["twin"] != NO_TWIN)]
    return repeats


def _first(document: Numbers, group: Numbers, groups: int, chosen: NDArray[np.bool_]) -> Numbers:
    """The first of the chosen documents of each group, or `NO_TWIN`."""
    first = np.full(groups, NO_TWIN, np.int64)
    np.minimum.at(first, group[chosen], document[chosen])
    return first
