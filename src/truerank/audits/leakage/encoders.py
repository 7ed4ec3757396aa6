"""How an audit compares: encoders, one in full precision and perhaps a faster one before it, what they can read, how
alike two words are, and the evidence of words, letters and shingles beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import compress, islice
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Hashes, among
from truerank.audits.leakage.options import AuditOptions
from truerank.audits.leakage.results import UnreadShare
from truerank.errors import InputError
from truerank.near_duplicates import Shingles
from truerank.near_duplicates.shingles import Numbers, TextShingles, shingled
from truerank.options import Encoding
from truerank.overlaps import OverlapRules
from truerank.overlaps.results import BRIEF_SHARE, BRIEF_WORDS, PART_SHARE, PART_WORDS
from truerank.records import TopicText
from truerank.text.normalising import normalise
from truerank.text.wording import INSIDE, SHINGLES, WordingProbe
from truerank.text.words import script_of, stem
from truerank.vectors.encoders import WORDS, CachedEncoder, Encoder, EncoderSpec, Vectors, chosen, open_spec
from truerank.vectors.encoders.speed import (
    ChosenWay,
    Way,
    choose_first_pass,
    first_passes,
    spec_of_way,
    usual_first_pass,
    way_of,
)
from truerank.vectors.neighbours import Rows
from truerank.vectors.prefilter import DEFAULT_CUTS, FilterPlan
from truerank.vectors.search import SearchPlan
from truerank.work.engines import give_back
from truerank.work.kept import keep_json, kept_json


@dataclass(frozen=True)
class ShingleProbe:
    """Names the pairs of texts that are near-duplicates (`SHINGLES`), or of which one holds the other (`SHINGLES` for
    texts of 13 words or more, else `INSIDE`: a word more may make another question).

    In a text of fewer than 13 words all shingles of one must be in the other.

    Args:
        texts: of topics, normalised.
        rules: the shares of shingles from which on a pair counts.
    """

    texts: tuple[str, ...]
    rules: OverlapRules = OverlapRules()

    @cached_property
    def _topics(self) -> tuple[TextShingles, Hashes, Numbers]:
        """The shingles of topics, all of them ascending, and the topic of each."""
        found = shingled(self.texts, self.rules.shingles, measured=True)
        owner = np.repeat(np.arange(len(self.texts)), np.diff(found.starts))
        order = np.argsort(found.shingles, kind="stable")
        return found, found.shingles[order], owner[order]

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """Triples of place in `texts`, number of the topic text, and what proposes the pair."""
        topics, hashes, owner = self._topics
        shingles = shingled(texts, self.rules.shingles, measured=True)
        place = np.repeat(np.arange(len(texts)), np.diff(shingles.starts))
        there = among(shingles.shingles, hashes) & (shingles.measured[place] >= self.rules.contained_words)
        first = np.searchsorted(hashes, shingles.shingles[there], side="left")
        holders = np.searchsorted(hashes, shingles.shingles[there], side="right") - first
        begins = np.repeat(np.cumsum(holders) - holders, holders)
        topic = owner[np.repeat(first, holders) + np.arange(holders.sum()) - begins]
        pair, both = np.unique(np.repeat(place[there], holders) * len(self.texts) + topic, return_counts=True)
        at, number = np.divmod(pair, max(1, len(self.texts)))
        sizes = np.diff(shingles.starts)[at], np.diff(topics.starts)[number]
        words = shingles.measured[at], topics.measured[number]
        jaccard, inside = both / (sizes[0] + sizes[1] - both), both / np.minimum(*sizes)
        fewest = np.minimum(*words)
        short = fewest < self.rules.ngram
        least = [
            np.where(short, 1.0, np.where(fewest < BRIEF_WORDS, max(share, BRIEF_SHARE), share))
            for share in (self.rules.similarity, self.rules.containment)
        ]
        # A changed word is no part; a name in a topic is no leak of it.
        unequal = (words[0] != words[1]) | ((sizes[0] != sizes[1]) & (jaccard < 1))
        part = (words[0] < PART_WORDS) & (words[0] <= words[1]) & (jaccard < PART_SHARE)
        held = (fewest >= self.rules.contained_words) & (inside >= least[1]) & unequal & ~part
        near = jaccard >= least[0]
        what = np.where(near | ~short, SHINGLES, INSIDE)
        columns = (column[near | held].tolist() for column in (at, number, what))
        return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class QueryProbe:
    """Names pairs by their words, letters and shingles."""

    words: WordingProbe
    shingles: ShingleProbe

    @classmethod
    def of(cls, texts: Sequence[str], held: Mapping[str, int] | None = None) -> QueryProbe:
        """The probe of normalised topic texts; `held` as in `WordingProbe`."""
        return cls(WordingProbe(texts, held, inside=True), ShingleProbe(tuple(texts)))

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """Triples of place in `texts`, number of the topic text, and what proposes the pair, each pair once."""
        found = {(place, number): what for place, number, what in self.shingles(texts)}
        found |= {
            (place, number): what for place, number, what in self.words(texts) if found.get((place, number)) != SHINGLES
        }
        return [(*pair, what) for pair, what in sorted(found.items())]


#: Texts of a source from which the sample is taken that ways of encoding are measured on.
_SAMPLE_TEXTS: Final = 512


@dataclass(frozen=True)
class Models:
    """The encoder in full precision, asked for as `exact` and `opened` with the backend and device that were found
    (None: of another package); `precision` is that of a first pass before it: auto for the fastest, full for none.
    """

    exact: EncoderSpec
    opened: EncoderSpec | None
    precision: str
    cache: str | None
    encoder: Encoder

    @classmethod
    def of(cls, encoding: Encoding) -> Models:
        exact = EncoderSpec(
            chosen(encoding.encoder, encoding.backend), backend=encoding.backend, device=encoding.device
        )
        opened = getattr(_open(exact, None), "spec", None)
        return cls(exact, opened, encoding.precision, encoding.cache, _open(exact, encoding.cache))

    def plan(
        self,
        texts: Sequence[TopicText],
        options: AuditOptions,
        sources: int = 1,
        folder: Path | None = None,
        chosen: Callable[[ChosenWay], None] = lambda choice: None,
        *,
        held: Mapping[str, int] | None = None,
    ) -> SearchPlan:
        """What to look for with these models; the topic texts are encoded from now on, while the log is read."""
        normalised = tuple(normalise(text.text) for text in texts)
        prefilter, probe = None, QueryProbe.of(normalised, held)
        if options.mode == "prefilter":
            cuts = {**DEFAULT_CUTS, **options.prefilter_cut}
            prefilter = FilterPlan(normalised, tuple(text.field for text in texts), cuts, probe, sources=sources)
        # Other processes open what was found here, whatever they would find themselves.
        exact, opened = self.exact, self.opened
        if opened is not None and options.engine.startswith("ray"):
            # A process with a GPU of its own, or a part of one: to it, that is the first.
            cuda = (opened.device or "").startswith("cuda:")
            exact = opened = replace(opened, device="cuda") if cuda else opened
        # What the machines of a cluster have is not known here: the pass is one that all of them can run.
        precision = "int8" if self.precision == "auto" and options.engine.startswith("ray:") else self.precision
        return SearchPlan(
            open_exact=partial(_open, exact, self.cache),
            choose_screen=_FirstPass(self, opened, folder and folder / "first-pass.json", precision, chosen),
            topic_vectors=_begun(partial(read_vectors, normalised, self.encoder)),
            floor=options.lowest,
            # To what reads nothing, all texts are equally near.
            top_k=0 if self.exact.name == WORDS else options.k,
            probe=probe,
            prefilter=prefilter,
            block_size=options.block_size,
            device=exact.device,
            unread=partial(unread, encoder=self.encoder),
        )


@dataclass
class _FirstPass:
    """Chooses the first pass when a source is first worth one, and keeps the choice for the others.

    What an unfinished audit has begun with is what it goes on with, whatever is chosen today.
    """

    models: Models
    spec: EncoderSpec | None
    choice: Path | None
    precision: str
    chosen: Callable[[ChosenWay], None]

    def __call__(self, rows: Rows) -> tuple[Callable[[], Encoder], str] | None:
        """What opens the encoder of the first pass, and how that is called; None where there is better none."""
        models, spec = self.models, self.spec
        if spec is None or self.precision == "full" or not (others := first_passes(spec)):
            return None
        way = self._begun_with(spec, others) or self._chosen(spec, rows)
        chosen = spec_of_way(way, spec, others)
        return None if chosen == spec else (partial(_open, chosen, models.cache), way.name)

    def _begun_with(self, spec: EncoderSpec, others: Sequence[EncoderSpec]) -> Way | None:
        known = None if self.choice is None else kept_json(self.choice)
        if known is None:
            return None
        try:
            way = way_of(known)
            spec_of_way(way, spec, others)
        except (InputError, OSError, TypeError, ValueError, KeyError):
            return None
        return way

    def _chosen(self, spec: EncoderSpec, rows: Rows) -> Way:
        if self.precision == "auto":
            texts = [row[3] for row in islice(rows(), _SAMPLE_TEXTS)]
            choice = choose_first_pass(_open(self.models.exact, None), spec, texts)
            give_back()
        else:
            choice = usual_first_pass(spec, self.precision)
        if self.choice is not None:
            keep_json(self.choice, asdict(choice.way))
        self.chosen(choice)
        return choice.way


def _begun(work: Callable[[], Vectors]) -> Callable[[], Vectors]:
    """Begins the work in a thread; what comes back waits for its result."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    return future.result


@lru_cache(maxsize=4)
def _open(spec: EncoderSpec, cache: str | None) -> Encoder:
    # Each process opens a model once, however many passes it works on.
    return open_spec(spec) if cache is None else CachedEncoder(_open(spec, None), Path(cache))


def same_stems(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
    """1 where two words have the same stem, else 0, shape (left, right): what is known without an encoder."""
    stems = [np.array([stem(word) for word in side], dtype=np.str_) for side in (left, right)]
    same: NDArray[np.float32] = (stems[0][:, None] == stems[1]).astype(np.float32)
    return same


class WordVectors:
    """Cosines of words, each encoded once.

    Args:
        encoder: encodes the words.
        vocabulary: all words that will be asked for; others are encoded when they come.
    """

    def __init__(self, encoder: Encoder, vocabulary: Iterable[str] = ()) -> None:
        self._encoder = encoder
        self._rows: dict[str, int] = {}
        self._vectors = np.empty((0, encoder.dimension), np.float32)
        self._add(vocabulary)

    def __call__(self, left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        """Cosines of every word on the left with every word on the right, shape (left, right)."""
        self._add([*left, *right])
        rows = [self._rows[word] for word in left]
        columns = [self._rows[word] for word in right]
        cosines: NDArray[np.float32] = self._vectors[rows] @ self._vectors[columns].T
        return cosines

    def _add(self, words: Iterable[str]) -> None:
        new = sorted({word for word in words if word not in self._rows})
        if new:
            self._rows |= {word: row for row, word in enumerate(new, start=len(self._rows))}
            self._vectors = np.concatenate([self._vectors, self._encoder.encode(new)])


# Which texts an encoder can read, so that a cosine of them says something.
#
# A text is doubtful where the tokenizer has no piece for a part of it, or cuts its words into many pieces. Whether
# the encoder reads a doubtful text is then measured with that very text: its words are written backwards, and its
# letters are exchanged for each other. That leaves nothing of what it says, so an encoder that reads the text gives
# other vectors; one that sees unknown pieces, letters and endings gives nearly the same. No list of languages or
# scripts has a say. It takes a few times as long as encoding: a scan asks it about a sample and about what it names.

#: Pieces for each word up to which a text is not doubtful. English questions have 1.1 to 1.3.
_FEW_PIECES: Final = 1.5
#: How far towards itself, from what unrelated texts have, a text's cosine with its words backwards and with its letters
#: exchanged, may lie: the first number, and the second for each word, because chance has more to say of few words.
_MOST_ALIKE: Final = ((0.2, 0.3), (0.3, 0.6))
#: Texts on nothing in common: their cosines are where an encoder's scale begins.
_UNRELATED: Final = (
    "how to repair a bicycle chain", "symptoms of low blood sugar", "history of the roman senate", "chess openings",
    "growing tomatoes on a balcony", "price of crude oil in winter", "the painter of mona lisa", "jazz guitar scales",
    "tax on rented apartments", "why do whales sing", "install a printer driver", "recipe for onion soup",
)  # fmt: skip
#: Texts of a sample that says which share of a source an encoder cannot read.
_SAMPLE: Final = 512


def unread(texts: Sequence[str], encoder: Encoder) -> NDArray[np.bool_]:
    """Which texts an encoder cannot read, shape (len(texts),); only doubtful ones are encoded.

    Args:
        encoder: in full precision. One without a method `pieces` is taken to read everything.
    """
    blind = np.zeros(len(texts), np.bool_)
    pieces: Any = getattr(encoder, "pieces", None)
    if pieces is None or not len(doubtful := _doubtful(texts, pieces)):
        return blind
    asked = [texts[place] for place in doubtful.tolist()]
    vectors = encoder.encode([*_UNRELATED, *asked, *map(_backwards, asked), *map(_exchanged, asked)])
    few, theirs, *others = np.split(vectors, len(_UNRELATED) + len(asked) * np.arange(3))
    start = float((few @ few.T)[~np.eye(len(few), dtype=np.bool_)].mean())
    for senseless, most in zip(others, _MOST_ALIKE, strict=True):
        bars = most[0] + most[1] / np.array([max(1, len(text.split())) for text in asked])
        alike = (np.einsum("ij,ij->i", theirs, senseless) - start) / max(1e-6, 1 - start)
        blind[doubtful] |= alike > bars
    return blind


def read_vectors(texts: Sequence[str], encoder: Encoder) -> Vectors:
    """Unit vectors, and zeros for texts that the encoder cannot read, shape (len(texts), dimension), float32; of texts
    that stand several times, one is encoded."""
    row = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    vectors = np.array(encoder.encode(list(row)))
    vectors[unread(list(row), encoder)] = 0
    return vectors[[row[text] for text in texts]]


def unread_share(texts: Sequence[str], unread: Callable[[Sequence[str]], NDArray[np.bool_]]) -> UnreadShare:
    """What is true of the texts that a source begins with; the scripts with most texts that are not read come first."""
    sample = Random(0).sample(texts, min(_SAMPLE, len(texts)))
    scripts = Counter(map(script_of, compress(sample, unread(sample))))
    return UnreadShare(texts=len(sample), unread=dict(scripts.most_common()))


def _doubtful(texts: Sequence[str], pieces: Callable[[Sequence[str]], Sequence[tuple[int, int]]]) -> NDArray[np.intp]:
    """Places of texts with unknown pieces or many pieces for each word, as a reader counts words."""
    counts = np.array(pieces(texts), np.int64).reshape(-1, 2)
    fewest = np.array([len(text.split()) for text in texts], np.int64)
    unknown = counts[:, 1] > 0
    many = np.flatnonzero(~unknown & (counts[:, 0] > _FEW_PIECES * fewest))
    if len(many):
        measured = shingled([texts[place] for place in many.tolist()], Shingles(), measured=True).measured
        many = many[counts[many, 0] > _FEW_PIECES * np.maximum(measured, fewest[many])]
    return np.union1d(np.flatnonzero(unknown), many).astype(np.intp)


def _backwards(text: str) -> str:
    """A text whose words are written backwards; signs that stand alone are left out, since they have no direction."""
    return " ".join(word[::-1] for word in text.split() if any(map(str.isalnum, word)))


def _exchanged(text: str) -> str:
    """A text in which each letter is another one of its letters, the same one everywhere."""
    letters = sorted({letter for letter in text if letter.isalpha()})
    half = len(letters) // 2
    return text.translate(str.maketrans("".join(letters), "".join(letters[half:] + letters[:half])))
