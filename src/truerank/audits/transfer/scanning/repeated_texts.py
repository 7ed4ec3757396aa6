"""Texts that other documents have, too: pages that redirects lead to, lists of other pages, what all pages show."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from truerank.records import Document
from truerank.text.losses import NO_BODY, WordWeights
from truerank.text.page_faults import PageWords

__all__ = ["REPEATED_SCHEMA", "NewText", "new_text", "repeated_texts", "word_runs"]

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
_END: Final = re.compile(r"\n|(?<=[.!?])\s")


class NewText(NamedTuple):
    """What only one version of a document has.

    Attributes:
        runs: hashes of some of its runs of words.
        asked: likewise, of the lines that match the query best.
        ids: of the document in each version, which is not another one; None where a version lacks it.
        version: the place of the version.
        size: how many runs the document has, those too that the other version has.
        lengths: of its runs, in words.
    """

    runs: frozenset[int]
    asked: frozenset[int]
    ids: tuple[str | None, ...]
    version: int = 0
    size: int = 0
    lengths: frozenset[int] = frozenset(range(_LINE, _RUN + 1))


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
    """What a version has that another lacks.

    Args:
        one: the version; its title counts only where there is no body.
        other: the other one.
        query: the forms of the query's words.
        weights: of words.
        ids: see `NewText`.
        version: the place of the version.
    """
    there = set(word_runs(other))
    lines = list(_lines(one.body))
    if sum(map(len, lines)) < NO_BODY:
        lines = list(_lines(f"{one.title}\n{one.body}"))
    new = [(words, runs) for words in lines if (runs := [run for run in _runs(words) if run not in there])]
    asked = [weights.of(sorted(query.intersection(PageWords("", " ".join(words)).forms))).sum() for words, _ in new]
    least = _MATCH * max(asked, default=0.0)
    best = [runs for match, (_, runs) in zip(asked, new, strict=True) if match >= least]
    chosen, asked_for = _some(runs for _, runs in new), _some(best)
    lengths = frozenset(map(len, (*chosen, *asked_for)))
    size = len(set(word_runs(one)))
    return NewText(frozenset(map(hash, chosen)), frozenset(map(hash, asked_for)), ids, version, size, lengths)


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


def _may_have(document: Document, wanted: Mapping[int, object], lengths: Iterable[int]) -> bool:
    """Whether a document has a run that is looked for, or would without ends of lines; most documents end here."""
    words = _WORD.findall(f"{document.title}\n{document.body}".lower())
    return not all(
        wanted.keys().isdisjoint(map(hash, zip(*(words[start:] for start in range(length)), strict=False)))
        for length in lengths
    )


def repeated_texts(texts: Sequence[NewText], versions: Sequence[Iterable[Sequence[Document]]]) -> pl.DataFrame:
    """How much of each text other documents have, in any version.

    Each version is read once, as a stream; memory grows with the texts that are looked for.

    Args:
        texts: what is looked for.
        versions: the documents of each version, in blocks.

    Returns:
        Columns as in `REPEATED_SCHEMA`, one row per text: copies are counted in the version that has most of them. None
        has little else where some document has it in two versions: then it is a page of the collection.
    """
    copies = np.zeros((max(1, len(versions)), len(texts)), np.int64)
    alone = np.zeros(len(texts), np.int64)
    standing = np.zeros(len(texts), np.bool_)
    having: defaultdict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(texts):
        for run in one.runs | one.asked:
            having[run].append(number)
    lengths = sorted({length for one in texts for length in one.lengths}, reverse=True)
    found: list[set[int]] = [set() for _ in texts]
    seen: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for place, blocks in enumerate(versions):
        for document in (document for block in blocks for document in block):
            if not _may_have(document, having, lengths):
                continue
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
    alone[standing] = 0
    return pl.DataFrame({"elsewhere": shares, "copies": copies.max(axis=0), "alone": alone}, schema=REPEATED_SCHEMA)
