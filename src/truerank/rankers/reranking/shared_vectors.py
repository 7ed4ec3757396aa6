"""Vectors of the texts that several blocks of a job need, so that each is encoded once in a run.

A ranker that encodes queries and documents apart scores a pair by comparing two vectors. Within a block it encodes each
distinct text once; a document that is a candidate of topics in several blocks would be encoded in each of them. Those
are encoded first, in blocks of their own, and kept beside the scores: so a killed job finds them again, any engine may
run them, and the same texts are always encoded together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.rankers.base import Ranker, RankerSpec, device_of_ranker
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.jobs import Job

Matrix = NDArray[np.float32]
#: Gives the vectors of those of the texts that are known.
Lookup = Callable[[Sequence[str]], Mapping[str, Matrix]]

_TEXTS_IN_A_BLOCK: Final = 1024
_SCHEMA: Final[dict[str, Any]] = {"key": pl.Binary, "rows": pl.UInt32, "vectors": pl.Binary}


@runtime_checkable
class TextEncoder(Protocol):
    """A ranker that encodes documents by themselves."""

    known: Lookup | None

    def encode_documents(self, texts: Sequence[str]) -> Mapping[str, Matrix]:
        """The vector or vectors of each text, shape (vectors, dimension) or (dimension,)."""


class _TextsBlock(NamedTuple):
    """Some texts to encode."""

    number: int
    texts: list[str]


@dataclass(frozen=True)
class _EncodeTask:
    ranker: Ranker | RankerSpec

    @property
    def device(self) -> str | None:
        """Where the ranker runs."""
        return device_of_ranker(self.ranker)

    def open(self) -> Callable[[_TextsBlock], pl.DataFrame]:
        """Opens the ranker."""
        ranker = self.ranker.open() if isinstance(self.ranker, RankerSpec) else self.ranker

        def work(block: _TextsBlock) -> pl.DataFrame:
            if not isinstance(ranker, TextEncoder):
                raise TypeError(f"{ranker.name} encodes no documents by themselves")
            made = ranker.encode_documents(block.texts)
            values = [np.ascontiguousarray(made[text], np.float32) for text in block.texts]
            return pl.DataFrame(
                {
                    "key": [_key(text) for text in block.texts],
                    # A vector alone has no rows.
                    "rows": [0 if value.ndim == 1 else len(value) for value in values],
                    "vectors": [value.tobytes() for value in values],
                },
                schema=_SCHEMA,
            )

        return work


class SharedVectors:
    """The vectors that were kept; memory holds a key of 16 bytes and a place for each text, and a few blocks.

    Args:
        folder: where the blocks lie.
        count: how many there are.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._store = BlockStore(folder)
        keys = [self._store.load(number, ["key"])["key"].to_list() for number in range(count)]
        every = np.array([key for part in keys for key in part], "V16")
        self._order = np.argsort(every, kind="stable")
        self._keys = every[self._order]
        self._block = np.repeat(np.arange(count), [len(part) for part in keys])
        self._row = np.concatenate([np.arange(len(part)) for part in keys]) if keys else self._block
        self._loaded = lru_cache(maxsize=8)(self._store.load)

    def __call__(self, texts: Sequence[str]) -> dict[str, Matrix]:
        """The vectors of those of the texts that are kept."""
        asked = np.array([_key(text) for text in texts], "V16")
        at = np.searchsorted(self._keys, asked)
        wanted: dict[int, list[tuple[str, int]]] = {}
        for text, key, place in zip(texts, asked, at.tolist(), strict=True):
            if place < len(self._keys) and self._keys[place] == key:
                found = self._order[place]
                wanted.setdefault(int(self._block[found]), []).append((text, int(self._row[found])))
        vectors: dict[str, Matrix] = {}
        for block in sorted(wanted):
            frame = self._loaded(block)
            rows, values = frame["rows"].to_list(), frame["vectors"]
            for text, row in wanted[block]:
                vector = np.frombuffer(values[row], np.float32)
                vectors[text] = vector.reshape(rows[row], -1) if rows[row] else vector
        return vectors


def encode_shared(
    ranker: Ranker, opened: Ranker | RankerSpec, blocks: Iterable[Iterable[str]], job: Job
) -> tuple[Path, int] | None:
    """Encodes the documents that more than one block needs."""
    if not isinstance(ranker, TextEncoder):
        return None
    texts = _repeated(blocks)
    if not texts:
        return None
    job.progress.start("encoding documents", len(texts))
    store = BlockStore(job.folder)

    def settle(frame: pl.DataFrame) -> pl.DataFrame:
        job.progress.advance(len(frame))
        return frame

    return job.folder, run_blocks(_EncodeTask(opened), _cut(texts), store, job.engine, settle)


def with_vectors(ranker: Ranker, shared: tuple[Path, int] | None) -> Ranker:
    """The ranker, which looks among the shared vectors first; None takes them away."""
    if isinstance(ranker, TextEncoder):
        ranker.known = None if shared is None else SharedVectors(*shared)
    return ranker


def _repeated(blocks: Iterable[Iterable[str]]) -> list[str]:
    """The texts of more than one block, by length: those of a like length are encoded together."""
    first: dict[bytes, int] = {}
    found: dict[bytes, str] = {}
    for number, texts in enumerate(blocks):
        for text in texts:
            key = _key(text)
            if first.setdefault(key, number) != number and key not in found:
                found[key] = text
    return sorted(found.values(), key=lambda text: (len(text), text))


def _cut(texts: Sequence[str]) -> Iterator[_TextsBlock]:
    for number, start in enumerate(range(0, len(texts), _TEXTS_IN_A_BLOCK)):
        yield _TextsBlock(number, list(texts[start : start + _TEXTS_IN_A_BLOCK]))


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
