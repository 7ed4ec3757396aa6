"""Scores and vectors that are kept, so that no pair or text is scored twice by the same ranker."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.rankers.base import Pair, Ranker, RankerSpec, Scores, device_of_ranker
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.engines import Numbered
from truerank.work.jobs import Job

B = TypeVar("B", bound=Numbered)

_SCHEMA: Final = "CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, score REAL NOT NULL) WITHOUT ROWID"
#: Keys in one question: SQLite takes some 32,000 at most.
_AT_ONCE: Final = 1 << 14
_WAIT_SECONDS: Final = 120.0


class ScoreCache:
    """Scores by what they follow from: the ranker's fingerprint, the query, and the text of the passage.

    The text stands for the version of the document and the passage policy: another version or another cut is another
    text, and the same text has the same score wherever it comes from. Several processes may use one SQLite file at a
    time; of two scores for one key, the first stays.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connection() as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"no score cache ({error})", "give another file with `cache`", where=path) from error

    def __len__(self) -> int:
        with self._connection() as connection:
            return int(connection.execute("SELECT count(*) FROM scores").fetchone()[0])

    def get(self, fingerprint: str, pairs: Sequence[Pair]) -> dict[Pair, float]:
        """Those of the scores that are known."""
        keys = {_key(fingerprint, pair): pair for pair in pairs}
        listed = list(keys)
        found: dict[Pair, float] = {}
        with self._connection() as connection:
            for start in range(0, len(listed), _AT_ONCE):
                some = listed[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = connection.execute(f"SELECT key, score FROM scores WHERE key IN ({marks})", some)
                found.update((keys[key], score) for key, score in rows)
        return found

    def put(self, fingerprint: str, pairs: Sequence[Pair], scores: Scores) -> None:
        """Keeps scores, all of them or none."""
        rows = sorted((_key(fingerprint, pair), float(score)) for pair, score in zip(pairs, scores, strict=True))
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?)", rows)
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # One connection for each use: it must not travel to another process or thread.
        connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous=NORMAL")
            yield connection
        except sqlite3.DatabaseError as error:
            remedy = "remove it if it is damaged, make room, or give another file with `cache`"
            raise InputError(f"the score cache cannot be used ({error})", remedy, where=self.path) from error
        finally:
            connection.close()


class CachedScores:
    """A ranker in front of which a cache stands, or none.

    `asked` counts pairs, each distinct one of a call once; `hits` those of them that the cache knew.
    """

    def __init__(self, ranker: Ranker, cache: ScoreCache | None) -> None:
        self._ranker = ranker
        self._cache = cache
        self._fingerprint = "" if cache is None else ranker.fingerprint
        self.asked = 0
        self.hits = 0

    def score(self, pairs: Sequence[Pair]) -> Scores:
        distinct = sorted(set(pairs))
        known = {} if self._cache is None else self._cache.get(self._fingerprint, distinct)
        self.asked += len(distinct)
        self.hits += len(known)
        missing = [pair for pair in distinct if pair not in known]
        if missing:
            scores = self._ranker.score(missing)
            if not np.isfinite(scores).all():
                fault = f"{int((~np.isfinite(scores)).sum())} scores of {self._ranker.name} are not finite numbers"
                raise OptionError("model", fault, "use fp32 or bf16, and check the checkpoint")
            if self._cache is not None:
                self._cache.put(self._fingerprint, missing, scores)
            known.update(zip(missing, scores.tolist(), strict=True))
        return np.fromiter((known[pair] for pair in pairs), np.float32, len(pairs))


def _key(fingerprint: str, pair: Pair) -> bytes:
    found = hashlib.blake2b(digest_size=16, person=b"truerank score")
    for part in (fingerprint, *pair):
        data = part.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.digest()


Matrix = NDArray[np.float32]
#: Gives the vectors of those of the texts that are known.
Lookup = Callable[[Sequence[str]], Mapping[str, Matrix]]

_TEXTS_IN_A_BLOCK: Final = 1024
_VECTORS: Final[dict[str, Any]] = {"key": pl.Binary, "rows": pl.UInt32, "vectors": pl.Binary}


@runtime_checkable
class TextEncoder(Protocol):
    """A ranker that encodes documents by themselves."""

    known: Lookup | None

    def encode_documents(self, texts: Sequence[str]) -> Mapping[str, Matrix]:
        """The vector or vectors of each text, shape (vectors, dimension) or (dimension,)."""


class _TextsBlock(NamedTuple):
    number: int
    texts: list[str]


@dataclass(frozen=True)
class _EncodeTask:
    ranker: Ranker | RankerSpec

    @property
    def device(self) -> str | None:
        return device_of_ranker(self.ranker)

    def open(self) -> Callable[[_TextsBlock], pl.DataFrame]:
        ranker = self.ranker.open() if isinstance(self.ranker, RankerSpec) else self.ranker

        def work(block: _TextsBlock) -> pl.DataFrame:
            if not isinstance(ranker, TextEncoder):
                raise TypeError(f"{ranker.name} encodes no documents by themselves")
            made = ranker.encode_documents(block.texts)
            values = [np.ascontiguousarray(made[text], np.float32) for text in block.texts]
            return pl.DataFrame(
                {
                    "key": [_vector_key(text) for text in block.texts],
                    # A vector alone has no rows.
                    "rows": [0 if value.ndim == 1 else len(value) for value in values],
                    "vectors": [value.tobytes() for value in values],
                },
                schema=_VECTORS,
            )

        return work


class SharedVectors:
    """The vectors that were kept; memory holds a key of 16 bytes and a place for each text, and a few blocks."""

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
        asked = np.array([_vector_key(text) for text in texts], "V16")
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


def counted_scores(
    ranker: Ranker | RankerSpec,
    vectors: tuple[Path, int] | None,
    cache: str | Path | None,
    scored: Callable[[B, CachedScores], pl.DataFrame],
    columns: Mapping[str, Any],
) -> Callable[[B], pl.DataFrame]:
    """What a task does with each block: `scored`, with its number, how many scores it asked for, and those it knew."""
    opened = ranker.open() if isinstance(ranker, RankerSpec) else ranker
    scores = CachedScores(with_vectors(opened, vectors), None if cache is None else ScoreCache(cache))

    def work(block: B) -> pl.DataFrame:
        asked, hits = scores.asked, scores.hits
        found = scored(block, scores)
        counts = {"block": block.number, "asked": scores.asked - asked, "hits": scores.hits - hits}
        return found.with_columns(pl.lit(count).alias(name) for name, count in counts.items()).cast(pl.Schema(columns))

    return work


def encode_shared(
    ranker: Ranker, opened: Ranker | RankerSpec, blocks: Iterable[Iterable[str]], job: Job
) -> tuple[Path, int] | None:
    if not isinstance(ranker, TextEncoder):
        return None
    # The texts of more than one block, by length: those of a like length are encoded together.
    first: dict[bytes, int] = {}
    found: dict[bytes, str] = {}
    for number, texts in enumerate(blocks):
        for text in texts:
            key = _vector_key(text)
            if first.setdefault(key, number) != number and key not in found:
                found[key] = text
    repeated = sorted(found.values(), key=lambda text: (len(text), text))
    if not repeated:
        return None
    job.progress.start("encoding documents", len(repeated))
    store = BlockStore(job.folder)

    def settle(frame: pl.DataFrame) -> pl.DataFrame:
        job.progress.advance(len(frame))
        return frame

    return job.folder, run_blocks(_EncodeTask(opened), _cut(repeated), store, job.engine, settle)


def with_vectors(ranker: Ranker, shared: tuple[Path, int] | None) -> Ranker:
    """The ranker, which looks among the shared vectors first; None takes them away."""
    if isinstance(ranker, TextEncoder):
        ranker.known = None if shared is None else SharedVectors(*shared)
    return ranker


def _cut(texts: Sequence[str]) -> Iterator[_TextsBlock]:
    for number, start in enumerate(range(0, len(texts), _TEXTS_IN_A_BLOCK)):
        yield _TextsBlock(number, list(texts[start : start + _TEXTS_IN_A_BLOCK]))


def _vector_key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
