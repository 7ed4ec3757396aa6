"""Scores that are kept, so that no pair is scored twice by the same ranker."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import polars as pl

from truerank.errors import InputError, OptionError
from truerank.rankers.base import Pair, Ranker, RankerSpec, Scores
from truerank.work.engines import Numbered

B = TypeVar("B", bound=Numbered)

_SCHEMA: Final = "CREATE TABLE scores (key BLOB PRIMARY KEY, score BLOB NOT NULL) WITHOUT ROWID"
#: A score and the checksum of its key and itself.
_KEPT: Final = struct.Struct("<dI")
#: Keys in one question: SQLite takes some 32,000 at most.
_AT_ONCE: Final = 1 << 14
_WAIT_SECONDS: Final = 120.0


class ScoreCache:
    """Scores by what they follow from: the ranker's fingerprint, the query, and the text of the passage.

    The text stands for the version of the document and the passage policy: another version or another cut is another
    text, and the same text has the same score wherever it comes from. Several processes may use one SQLite file at a
    time; of two scores for one key, the first stays. One that is not as it was written is as if it were not there.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_file():
                self._check_file()
            with self._connection() as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute(_SCHEMA.replace("TABLE", "TABLE IF NOT EXISTS"))
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"no score cache ({error})", "give another file with `cache`", where=path) from error

    def _check_file(self) -> None:
        # It is looked at as it lies, and nothing is made beside it; another process may be in the midst of writing.
        address = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        other = None
        with (
            contextlib.closing(sqlite3.connect(address, uri=True)) as connection,
            contextlib.suppress(sqlite3.DatabaseError),
        ):
            other = connection.execute("SELECT name FROM sqlite_master WHERE sql <> ?", (_SCHEMA,)).fetchone()
        if other is not None:
            fault = "scores of another version" if other == ("scores",) else "a database of something else"
            raise InputError(fault, "give another file with `cache`", where=self.path)

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
                rows = connection.execute(f"SELECT key, score FROM scores WHERE key IN ({marks})", some).fetchall()
                for key, kept in rows:
                    score = _score(key, kept)
                    if score is None:
                        connection.execute("DELETE FROM scores WHERE key = ?", (key,))
                    else:
                        found[keys[key]] = score
        return found

    def put(self, fingerprint: str, pairs: Sequence[Pair], scores: Scores) -> None:
        """Keeps scores, all of them or none."""
        rows = sorted((_key(fingerprint, pair), score) for pair, score in zip(pairs, map(float, scores), strict=True))
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT OR IGNORE INTO scores VALUES (?, ?)", ((key, _kept(key, score)) for key, score in rows)
            )
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


def _kept(key: bytes, score: float) -> bytes:
    return _KEPT.pack(score, zlib.crc32(struct.pack("<d", score), zlib.crc32(key)))


def _score(key: bytes, kept: bytes) -> float | None:
    """The score that is kept; None where it is not as it was written."""
    score = float(_KEPT.unpack(kept)[0]) if isinstance(kept, bytes) and len(kept) == _KEPT.size else 0.0
    return score if kept == _kept(key, score) else None


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


def counted_scores(
    ranker: Ranker | RankerSpec,
    cache: str | Path | None,
    scored: Callable[[B, CachedScores], pl.DataFrame],
    columns: Mapping[str, Any],
) -> Callable[[B], pl.DataFrame]:
    """What a task does with each block: `scored`, with its number, how many scores it asked for, and those it knew."""
    opened = ranker.open() if isinstance(ranker, RankerSpec) else ranker
    scores = CachedScores(opened, None if cache is None else ScoreCache(cache))

    def work(block: B) -> pl.DataFrame:
        asked, hits = scores.asked, scores.hits
        found = scored(block, scores)
        counts = {"block": block.number, "asked": scores.asked - asked, "hits": scores.hits - hits}
        return found.with_columns(pl.lit(count).alias(name) for name, count in counts.items()).cast(pl.Schema(columns))

    return work
