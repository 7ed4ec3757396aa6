"""The encoders of an audit, one in full precision and perhaps a faster one before it, and how alike two words are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from truerank.audits.leakage.options import AuditOptions
from truerank.audits.leakage.shingles import QueryProbe
from truerank.audits.leakage.unread import read_vectors, unread
from truerank.errors import InputError
from truerank.options import Encoding
from truerank.records import TopicText
from truerank.text.normalising import normalise
from truerank.text.words import stem
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
