"""Near-duplicates within a collection and between two."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import polars as pl

from truerank.near_duplicates.options import Shingles
from truerank.near_duplicates.results import BOILERPLATE, GROUPS, PAIRS, Equivalents, groups_of
from truerank.near_duplicates.shingling import shingled
from truerank.records import Document
from truerank.text.normalising import normalise
from truerank.work.jobs import Job

__all__ = ["between", "within"]


def within(
    documents: Iterable[Document | tuple[str, str]], options: Shingles = Shingles(), job: Job | None = None
) -> Equivalents:
    """Finds documents of one collection that say the same.

    Args:
        documents: the documents, or pairs of id and text; a stream that is read once. Ids are distinct.
        options: what counts as nearly the same.
        job: where unfinished work lies, what runs it, and whom it tells; by default a temporary folder and this
            process. A killed job continues if it is given the same documents and options.

    Returns:
        Pairs, groups and boilerplate.
    """
    side = _Side(documents, options)
    pairs = pl.DataFrame(list(_pairs(side, side, options)), PAIRS, orient="row")
    groups = groups_of(pairs, side.ids)
    return Equivalents(options, (len(side.ids), 0), side.empty, pairs, groups, pl.DataFrame(schema=BOILERPLATE))


def between(
    left: Iterable[Document | tuple[str, str]],
    right: Iterable[Document | tuple[str, str]],
    options: Shingles = Shingles(),
    job: Job | None = None,
) -> Equivalents:
    """Finds documents of two collections that say the same; pairs within one of them are not looked for.

    Args:
        left: documents, or pairs of id and text; a stream that is read once.
        right: the same of the other collection.
        options: what counts as nearly the same.
        job: as in `within`.

    Returns:
        Pairs of a document of `left` and one of `right`.
    """
    ours, theirs = _Side(left, options), _Side(right, options)
    pairs = pl.DataFrame(list(_pairs(ours, theirs, options)), PAIRS, orient="row")
    none = pl.DataFrame(schema=GROUPS), pl.DataFrame(schema=BOILERPLATE)
    return Equivalents(options, (len(ours.ids), len(theirs.ids)), ours.empty + theirs.empty, pairs, *none)


#: Rows of `PAIRS`.
_Row = tuple[str, str, str, float, float, float]


class _Side:
    """The documents of one collection: texts, words and shingles; documents with the same words share a number."""

    def __init__(self, documents: Iterable[Document | tuple[str, str]], options: Shingles) -> None:
        self.ids: list[str] = []
        texts = []
        for document in documents:
            self.ids.append(document[0])
            texts.append(document.text if isinstance(document, Document) else document[1])
        found = shingled(texts, options)
        normalised = [normalise(text) for text in texts]
        self.digests = [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in normalised
        ]
        self.words = found.words
        self.empty = int((found.words == 0).sum())
        self.shingles = [frozenset(found.of(text).tolist()) for text in range(len(texts))]
        #: What texts with the same words have in common; signs without words only equal themselves.
        self.keys = [int(key) if key else digest for key, digest in zip(found.sequences, self.digests, strict=True)]
        self.compared = [bool(text) for text in normalised]
        self.by_digest: dict[bytes, int] = {}
        self.by_key: dict[int | bytes, int] = {}
        for number, (digest, key) in enumerate(zip(self.digests, self.keys, strict=True)):
            if self.compared[number]:
                self.by_digest.setdefault(digest, number)
                self.by_key.setdefault(key, number)

    def sizes(self, number: int) -> tuple[int, int]:
        """The shingles and the words of a document."""
        return len(self.shingles[number]), int(self.words[number])


def _pairs(left: _Side, right: _Side, options: Shingles) -> Iterator[_Row]:
    """The pairs in the order of the left documents, then of the right ones."""
    within_one = left is right
    holders: dict[int, list[int]] = defaultdict(list)
    for number in right.by_key.values():
        for shingle in right.shingles[number]:
            holders[shingle].append(number)
    rows: list[tuple[int, int, str, float, float, float]] = []
    for number, (digest, key) in enumerate(zip(left.digests, left.keys, strict=True)):
        first = right.by_digest.get(digest), right.by_key.get(key)
        if left.compared[number] and first[1] is not None and not (within_one and first[1] == number):
            twin = first[1] if first[0] is None or (first[0] == number and within_one) else first[0]
            kind = "exact" if right.digests[twin] == digest else "reformatted"
            rows.append((twin, number, kind, 1.0, 1.0, 1.0) if within_one else (number, twin, kind, 1.0, 1.0, 1.0))
        if within_one and left.by_key.get(key) != number:
            continue
        common = Counter(other for shingle in left.shingles[number] for other in holders.get(shingle, ()))
        for other, size in common.items():
            if right.keys[other] == key or (within_one and other < number):
                continue
            compared = relation(size, left.sizes(number), right.sizes(other), options)
            if compared is not None:
                rows.append((number, other, *compared))
    for one, other, *rest in sorted(rows):
        yield (left.ids[one], right.ids[other], *rest)  # type: ignore[misc]


def relation(
    common: int, left: tuple[int, int], right: tuple[int, int], options: Shingles
) -> tuple[str, float, float, float] | None:
    """What two documents with different words are to each other.

    Args:
        common: shingles of both.
        left: the shingles and words of one.
        right: those of the other.
        options: the thresholds.

    Returns:
        Kind, Jaccard similarity, containment of the left one in the right one and the reverse; None for no relation.
    """
    jaccard = common / (left[0] + right[0] - common)
    shares = common / left[0], common / right[0]
    if jaccard >= options.similarity:
        return ("near", jaccard, *shares)
    smaller = min(left, right)
    if common / smaller[0] >= options.containment and smaller[1] >= options.contained_words:
        return ("contains", jaccard, *shares)
    return None
