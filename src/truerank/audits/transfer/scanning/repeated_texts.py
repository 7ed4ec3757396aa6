"""Texts that other documents have, too: pages that redirects lead to, lists of other pages, what all pages show."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import gammainc

from truerank.records import Document
from truerank.text.page_faults import NO_BODY, PageWords, WordWeights

#: One row per text: the share of what was asked for that other documents have, how many have nearly all of it, and how
#: many of the same version have little else.
REPEATED_SCHEMA: Final = {"elsewhere": pl.Float64, "copies": pl.Int64, "alone": pl.Int64}
#: Words of a run: shorter ones stand in other documents by chance. A line of at least so few words is a run itself.
_RUN: Final = 5
_LINE: Final = 3
#: Runs that stand for a text, at even distances.
_RUNS: Final = 32
#: A document has nearly all of a text with so large a share of its runs.
_SAME: Final = 0.8
#: Less where it is about all that the document has: notices name addresses and times. "About all": not more than so
#: many times the runs of the text, and some.
_NEARLY: Final = 0.6
_LITTLE_ELSE: Final = 1.5
_SOME: Final = 10
#: Documents of one text that are remembered, to know them again in the next version.
_REMEMBERED: Final = 64
#: Of the lines of a text, those that match the query at least so well as this share of the best match.
_MATCH: Final = 0.5
_WORD: Final = re.compile(r"\w+")
#: In ASCII, blanks for all that `_WORD` leaves out.
_BLANKS: Final = "".join(chr(code) if _WORD.match(chr(code)) else " " for code in range(128))
_LENGTHS: Final = range(_LINE, _RUN + 1)
#: A word is rare where fewer than one of fifty documents has it; by chance, a notice is on a subject this often.
_RARE: Final = math.log(50)
_BY_CHANCE: Final = 0.01
#: An odd number that mixes hashes: 2 ** 64 over the golden ratio.
_FACTOR: Final = np.int64(-7046029254386353131)
_END: Final = re.compile(r"\n|(?<=[.!?])\s")


class NewText(NamedTuple):
    """What only one version of a document has.

    Attributes:
        runs: hashes of some of its runs of words.
        asked: likewise, of the lines that match the query best.
        ids: of the document in each version, which is not another one; None where a version lacks it.
        version: the place of the version.
        size: how many runs the document has, those too that the other version has.
        keys: of `runs` and `asked` by their length, in words, see `_keys`.
        on_subject: its body has rare words of the other version or of the query, more than chance explains.
    """

    runs: frozenset[int]
    asked: frozenset[int]
    ids: tuple[str | None, ...]
    version: int = 0
    size: int = 0
    keys: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    on_subject: bool = False


def word_runs(document: Document) -> Iterator[tuple[str, ...]]:
    """The runs of words of a document, line by line and sentence by sentence: a list of titles has those of them."""
    for words in _lines(f"{document.title}\n{document.body}"):
        yield from _runs(words)


def new_text(
    one: Document,
    other: Document,
    query: frozenset[str],
    weights: WordWeights,
    ids: tuple[str | None, ...],
    *,
    version: int = 0,
) -> NewText:
    """What a version has that another lacks."""
    there = set(word_runs(other))
    lines = list(_lines(one.body))
    if sum(map(len, lines)) < NO_BODY:
        lines = list(_lines(f"{one.title}\n{one.body}"))
    new = [(words, runs) for words in lines if (runs := [run for run in _runs(words) if run not in there])]
    asked = [weights.of(sorted(query.intersection(PageWords("", " ".join(words)).forms))).sum() for words, _ in new]
    least = _MATCH * max(asked, default=0.0)
    best = [runs for match, (_, runs) in zip(asked, new, strict=True) if match >= least]
    chosen, asked_for = _some(runs for _, runs in new), _some(best)
    size = len(set(word_runs(one)))
    by_length = {length: [run for run in (*chosen, *asked_for) if len(run) == length] for length in _LENGTHS}
    keys = {length: tuple(_keys([word for run in some for word in run], length)[::length].tolist())
            for length, some in by_length.items() if some}  # fmt: skip
    subject = query.union(PageWords(other.title, other.body).whole.forms)
    about = _on_subject(set(PageWords("", one.body).forms), subject, weights)
    return NewText(frozenset(map(hash, chosen)), frozenset(map(hash, asked_for)), ids, version, size, keys, about)


def _on_subject(forms: set[str], subject: frozenset[str], weights: WordWeights) -> bool:
    """Whether a text has more rare words of a subject than a text of anything else would have by chance.

    A weight is the negative logarithm of the share of documents that have the word: the sum of the shares is how many
    words are there by chance. So names and numbers tell a translation from a notice in another language.
    """
    known = sorted(forms)
    values = weights.of(known)
    rare = values >= _RARE
    both = sum(form in subject for form, is_rare in zip(known, rare.tolist(), strict=True) if is_rare)
    return both > 1 and float(gammainc(both, np.exp(-values[rare]).sum())) < _BY_CHANCE


def _some(lines: Iterable[Sequence[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """Runs at even distances."""
    runs = list(dict.fromkeys(run for line in lines for run in line))
    return runs[:: -(-len(runs) // _RUNS)] if runs else []


def _lines(text: str) -> Iterator[list[str]]:
    return (words for line in _END.split(text.lower()) if len(words := _WORD.findall(line)) >= _LINE)


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    if len(words) < _RUN:
        return iter((tuple(words),))
    return zip(*(words[start:] for start in range(_RUN)), strict=False)


def _keys(words: Sequence[str], length: int) -> NDArray[np.int64]:
    """A number for each run of so many words, whatever lines they stand in; shape (words - length + 1,)."""
    hashes = np.fromiter(map(hash, words), np.int64, len(words))
    count = max(0, len(words) - length + 1)
    keys = np.zeros(count, np.int64)
    for place in range(length):
        # Overflow is part of it.
        keys = keys * _FACTOR + hashes[place : place + count]
    return keys


def _words(document: Document) -> list[str]:
    """All words of a document; of ASCII in a third of the time."""
    text = f"{document.title}\n{document.body}".lower()
    return text.translate(_BLANKS).split() if text.isascii() else _WORD.findall(text)


class _Filter:
    """Passes on the documents that may have a run that is looked for; most have none, and need no more than this.

    Args:
        texts: what is looked for.
    """

    def __init__(self, texts: Sequence[NewText]) -> None:
        self.keys: dict[int, NDArray[np.int64]] = {}
        self.some: dict[int, NDArray[np.bool_]] = {}
        for length in _LENGTHS:
            keys = np.unique(np.array([key for one in texts for key in one.keys.get(length, ())], np.int64))
            if len(keys):
                self.keys[length] = keys
                self.some[length] = np.zeros(1 << max(16, (8 * len(keys)).bit_length()), np.bool_)
                self.some[length][self._places(keys, length)] = True

    def _places(self, keys: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """Where a key stands in the table that tells most keys that are not looked for from the others."""
        mixed = keys * _FACTOR
        return (mixed >> 20) & (len(self.some[length]) - 1)

    def passed(self, documents: Sequence[Document]) -> Iterator[Document]:
        """The documents in their order, without those that have nothing."""
        words = [_words(document) for document in documents]
        ends = np.cumsum([len(some) for some in words])
        every = [word for some in words for word in some]
        may = np.zeros(len(documents), np.bool_)
        for length, wanted in self.keys.items():
            # Runs from one document into the next are no runs; the document is then looked at in vain.
            keys = _keys(every, length)
            at = np.flatnonzero(self.some[length][self._places(keys, length)])
            nearest = wanted[np.minimum(np.searchsorted(wanted, keys[at]), len(wanted) - 1)]
            may[np.searchsorted(ends, at[nearest == keys[at]], side="right")] = True
        return itertools.compress(documents, may.tolist())


def repeated_texts(texts: Sequence[NewText], versions: Sequence[Iterable[Sequence[Document]]]) -> pl.DataFrame:
    """How much of each text other documents have, in any version.

    Each version is read once, as a stream; memory grows with the texts that are looked for.
    """
    copies = np.zeros((max(1, len(versions)), len(texts)), np.int64)
    alone = np.zeros(len(texts), np.int64)
    standing = np.zeros(len(texts), np.bool_)
    having: defaultdict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(texts):
        for run in one.runs | one.asked:
            having[run].append(number)
    filtered = _Filter(texts)
    found: list[set[int]] = [set() for _ in texts]
    seen: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for place, blocks in enumerate(versions):
        for document in (document for block in blocks for document in filtered.passed(block)):
            shared: Counter[int] = Counter()
            runs = set(map(hash, word_runs(document)))
            for run in having.keys() & runs:
                for number in having[run]:
                    if document.doc_id != texts[number].ids[place]:
                        shared[number] += run in texts[number].runs
                        found[number].add(run)
            for number, count in shared.items():
                one = texts[number]
                copies[place, number] += count >= _SAME * len(one.runs)
                if count and count >= _NEARLY * len(one.runs) and len(runs) <= _LITTLE_ELSE * one.size + _SOME:
                    alone[number] += place == one.version
                    key = document.url or document.doc_id
                    standing[number] |= seen[number].get(key, place) != place
                    if len(seen[number]) < _REMEMBERED:
                        seen[number].setdefault(key, place)
    shares = [len(some & one.asked) / max(1, len(one.asked)) for some, one in zip(found, texts, strict=True)]
    alone[standing | np.fromiter((one.on_subject for one in texts), np.bool_, len(texts))] = 0
    return pl.DataFrame({"elsewhere": shares, "copies": copies.max(axis=0), "alone": alone}, schema=REPEATED_SCHEMA)
