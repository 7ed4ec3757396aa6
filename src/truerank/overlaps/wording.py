"""Evidence of the words of short texts: which have the same content words, or nearly the same letters.

A probe holds all short texts of a test side. Where the training side is small, most of them cannot match it, and
only those that can are put into the probe: `_candidates` leaves out a text only where no text of the training side
can match it, and keeps the texts by which the probe decides how letters that stand alone are read. So the pairs are
those of the whole probe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.near_duplicates.shingling import Numbers
from truerank.overlaps.parts import TextPart
from truerank.text.normalising import normalise
from truerank.text.wording import (
    FORM_WORDS,
    LETTERS,
    LETTERS_HEARD,
    WORDS,
    WordingProbe,
    core,
    folded,
    key,
    letter_rests,
    sound,
    tokens,
)
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.jobs import Job
from truerank.work.kept import keep_frame, kept_frame

_PAIRS: Final[dict[str, Any]] = {"left": pl.Int64, "right": pl.Int64, "wording": pl.String}
_SAYS: Final = {WORDS: "words", LETTERS: "letters"}
#: Up to so many texts of the training side, and up to half as many as all test sides have that meet it, those of a test
#: side that can match are looked for first.
_FEW: Final = 1 << 13
#: Of short texts: place, all words, the keys of the core, and the keys of all content words.
_CORES: Final[dict[str, Any]] = {
    "number": pl.Int64,
    "words": pl.List(pl.String),
    "core": pl.List(pl.String),
    "content": pl.List(pl.String),
}
#: Beside kept texts; another version has another name.
_FILE: Final = "cores-1.arrow"


class _ShortTexts(NamedTuple):
    """A block of short texts of the training side, and the place of its first one."""

    number: int
    first: int
    texts: pl.Series


@dataclass(frozen=True)
class _WordingTask:
    """Compares short texts of the training side with those of the test side by their content words."""

    numbers: tuple[int, ...]
    texts: tuple[str, ...]

    def open(self) -> Callable[[_ShortTexts], pl.DataFrame]:
        probe = _probe(self.texts)

        def compare_block(block: _ShortTexts) -> pl.DataFrame:
            places = block.texts.is_not_null().arg_true().to_list()
            found = probe(block.texts.drop_nulls().to_list())
            rows = [(self.numbers[test], block.first + places[at], _SAYS[what]) for at, test, what in found]
            return pl.DataFrame(rows, _PAIRS, orient="row")

        return compare_block


@lru_cache(maxsize=1)
def _probe(texts: tuple[str, ...]) -> WordingProbe:
    """The probe of some texts; those of a test side meet several training sides one after the other."""
    return WordingProbe(texts)


def same_words(left: TextPart, right: TextPart, job: Job, texts: int | None = None) -> pl.DataFrame:
    """The pairs of short texts with the same content words, or nearly the same letters."""
    ours = [left.short(block) for block in range(len(left.shingles.sizes))]
    short = pl.concat([pl.Series("short", [], pl.String), *ours])
    numbers = short.is_not_null().arg_true().to_numpy().astype(np.int64)
    if len(right) <= min(_FEW, (len(left) if texts is None else texts) // 2) and len(numbers):
        theirs = [right.short(block).drop_nulls() for block in range(len(right.shingles.sizes))]
        numbers = _candidates(_cores(left, short, numbers), [text for texts in theirs for text in texts])
    if not len(numbers):
        return pl.DataFrame(schema=_PAIRS)
    task = _WordingTask(tuple(numbers.tolist()), tuple(normalise(text) for text in short.gather(numbers)))

    def blocks() -> Iterator[_ShortTexts]:
        for block in range(len(right.shingles.sizes)):
            yield _ShortTexts(block, int(right.firsts[block]), right.short(block))
            job.progress.advance(right.shingles.sizes[block])

    job.progress.start("comparing words")
    store = BlockStore(job.folder)
    count = run_blocks(task, blocks(), store, job.engine)
    return pl.concat([pl.DataFrame(schema=_PAIRS), *(store.load(block) for block in range(count))])


def _cores(part: TextPart, short: pl.Series, numbers: Numbers) -> pl.DataFrame:
    """The words of the short texts of a part, columns as in `_CORES`; kept beside them."""
    path = part.shingles.folder / _FILE
    frame = kept_frame(path)
    if frame is None:
        rows = []
        for number, text in zip(numbers.tolist(), short.gather(numbers), strict=True):
            found = core(normalise(text))
            inside = dict(zip(found.places, found.keys, strict=True))
            content = {
                inside.get(at) or key(word)
                for at, word in enumerate(found.words)
                if at in inside or word not in FORM_WORDS
            }
            rows.append((number, list(found.words), sorted({*found.keys}), sorted(content)))
        frame = pl.DataFrame(rows, _CORES, orient="row")
        keep_frame(path, frame)
    return frame


@dataclass(frozen=True)
class _Vocabulary:
    """The words of some texts, what they share with words one letter apart, and two neighbours written as one.

    Attributes:
        words: all of them.
        keys: of all of them.
        rests: what is left of each one without one letter.
        joined: neighbours written as one.
        sounds: of all words that have one.
        whole: all words of a text as one.
        holders: the places of the texts that have a key.
        spelled: letters that stand alone, one after the other, as one word.
    """

    words: frozenset[str]
    keys: frozenset[str]
    rests: frozenset[str]
    joined: frozenset[str]
    sounds: frozenset[str]
    whole: frozenset[str]
    spelled: frozenset[str]
    holders: Mapping[str, frozenset[int]]

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Vocabulary:
        words, joined, spelled, entire = set[str](), set[str](), set[str](), set[str]()
        holders: defaultdict[str, set[int]] = defaultdict(set)
        for place, text in enumerate(texts):
            every = [word for token in tokens(text) for word in folded(token)]
            whole = []
            for alone, run in groupby(every, key=lambda word: len(word) == 1):
                letters = list(run)
                whole += ["".join(letters)] if alone else letters
                if alone and len(letters) > 1:
                    spelled.add(whole[-1])
            # A probe reads such letters as one word or not: each neighbour stands in one of the two forms.
            for form in (every, whole):
                words.update(form)
                joined.update(one + other for one, other in pairwise(form))
                entire.add("".join(form))
                for word in form:
                    holders[key(word)].add(place)
        rests = {rest for word in words for rest in letter_rests(word)}
        sounds = filter(None, map(sound, words))
        return cls(
            words=frozenset(words),
            keys=frozenset(map(key, words)),
            rests=frozenset(rests),
            joined=frozenset(joined),
            sounds=frozenset(sounds),
            whole=frozenset(entire),
            spelled=frozenset(spelled),
            holders={name: frozenset(places) for name, places in holders.items()},
        )

    def may_match(self, written: Sequence[str], bag: Sequence[str]) -> bool:
        """Whether a text with these words and this bag of keys can have a match.

        Of a match, all keys agree but those of two words with another letter, or of one that is written as two here, or
        those of two neighbours that are written as one here.
        """
        lacking = {name for name in bag if name not in self.keys}
        if not lacking:
            return True
        if len(lacking) == 1 and any(word in self.joined for word in written if key(word) in lacking):
            return True
        if len(lacking) <= 2 and self._may_be_near(written, lacking, {name for name in bag if name not in lacking}):
            return True
        return len(lacking) <= 2 and any(
            one + other in self.words and lacking <= {key(one), key(other)} for one, other in pairwise(written)
        )

    def _may_be_near(self, written: Sequence[str], lacking: set[str], rest: set[str]) -> bool:
        """Whether words that no text has may be damaged in one that has the rest; one of the rest may be damaged, too,
        where one word is lacking: other texts have it."""
        short = 0 if rest or len(lacking) == 1 else LETTERS_HEARD
        if not lacking <= {key(word) for word in written if len(word) >= short and self._near(word)}:
            return False
        return self._one_has(rest) or (len(lacking) == 1 and any(self._one_has(rest - {name}) for name in rest))

    def _one_has(self, names: Iterable[str]) -> bool:
        """Whether one of the texts has all of some keys."""
        holders = [self.holders[name] for name in names]
        return not holders or bool(frozenset.intersection(*holders))

    def _near(self, word: str) -> bool:
        """Whether a word may be one letter from one of these, or sound like it."""
        return not self.rests.isdisjoint(letter_rests(word)) or sound(word) in self.sounds


@lru_cache(maxsize=1)
def _vocabulary(texts: tuple[str, ...]) -> _Vocabulary:
    """The words of some texts, which are compared with several test sides one after the other."""
    return _Vocabulary.of(texts)


def _candidates(cores: pl.DataFrame, texts: Sequence[str]) -> Numbers:
    """The numbers of the texts that can match one of some others, and of those that decide how letters are read."""
    there = _vocabulary(tuple(texts))
    known = pl.Series(sorted(there.keys), dtype=pl.String)
    near = np.zeros(len(cores), np.bool_)
    for name in ("core", "content"):
        sizes = cores[name].list.len().to_numpy().astype(np.int64)
        flat = cores[name].filter(pl.Series(sizes > 0)).explode()
        owner = np.repeat(np.arange(len(cores)), sizes)
        lacking = np.bincount(owner[~flat.is_in(known.implode()).to_numpy()], minlength=len(cores))
        near |= (sizes > 0) & (lacking <= 2)
    chosen = [
        number
        for number, written, *bags in cores.filter(pl.Series(near)).iter_rows()
        if any(there.may_match(written, bag) for bag in bags)
    ]
    whole = cores["words"].list.join("").is_in(pl.Series(sorted(there.whole), dtype=pl.String).implode())
    chosen += cores["number"].filter(whole).to_list()
    if there.spelled:
        reading = cores["words"].list.set_intersection(sorted(there.spelled)).list.len() > 0
        chosen += cores["number"].filter(reading).to_list()
    return np.unique(np.array(chosen, np.int64))
