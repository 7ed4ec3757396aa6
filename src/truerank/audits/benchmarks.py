"""Benchmarks that the gallery knows, recognised by hashes of their topic ids and judgments; how a copy differs.

`benchmarks.json` has no data: for each set of ids a hash of all, and the smallest hashes of judgments as a sample
(Bar-Yossef et al., 2002). `studies/gallery.py` writes it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Hashes
from truerank.core.plain import picked
from truerank.loading import whole_number

_FILE: Final = "benchmarks.json"
#: Judgments of a sample.
_SAMPLE: Final = 128
_DRAWN: Final = np.dtype([("pair", "<u4"), ("grade", "u1")])
#: The lowest byte of a judgment's hash is its grade.
_GRADE: Final = np.uint64(0xFF)
#: The share of a copy's judgments, and the fewest of a sample, by which a benchmark is recognised.
_SHARE, _FEWEST = 0.5, 8


class CopyDifference(NamedTuple):
    """How a copy differs from what the gallery has.

    Attributes:
        missing: rows of the gallery that the copy lacks.
        added: rows that only the copy has.
        changed: judgments with another grade.
        exact: whether there is no difference; otherwise these are estimates from a sample, or of topics the least that
            there can be.
    """

    missing: int
    added: int
    changed: int = 0
    exact: bool = True


class KnownBenchmark(NamedTuple):
    """A benchmark of the gallery that was recognised.

    Attributes:
        version: of its judgments; empty where there is one.
        page: what it is called in the gallery of the documentation.
        topics: how the topic ids differ; None where they were not compared.
        judgments: how the judgments differ; None where they were not compared.
    """

    name: str
    version: str
    page: str
    topics: CopyDifference | None = None
    judgments: CopyDifference | None = None

    def note(self) -> str:
        """One sentence that names the benchmark, and says how the copy differs."""
        named = f"This is {self.name}" + (f" ({self.version})" if self.version else "")
        parts = [
            text
            for noun, found in (("topic", self.topics), ("judgment", self.judgments))
            if found is not None and (text := _differs(noun, found))
        ]
        if parts:
            return f"{named}, but not as {self.page} in the documentation's gallery ({'; '.join(parts)})."
        nouns = {"topics": "topic ids", "judgments": "judgments"}
        compared = [noun for name, noun in nouns.items() if getattr(self, name) is not None]
        if compared:
            named = f"The {' and '.join(compared)} are those of {named.removeprefix('This is ')}"
        return f"{named}. The documentation's gallery has a page on it: {self.page}."

    def json(self) -> dict[str, Any]:
        """The recognised benchmark as plain values."""
        return picked(self, "name, version, page, topics, judgments, note")


def recognised(
    topics: Iterable[str] | None, judgments: pl.DataFrame | None, gallery: Sequence[Mapping[str, Any]] | None = None
) -> KnownBenchmark | None:
    """The benchmark that topics and judgments are of; None where the gallery knows none.

    Judgments decide; where the gallery knows none like them, topic ids do for benchmarks without judgments. Topic ids
    alone need a single benchmark that has them, and must not be merely numbered through, as those of many sets are.

    Args:
        topics: ids; None where there are none.
        judgments: columns topic_id, doc_id, relevance; None where there are none.
        gallery: the benchmarks that can be recognised, as `fingerprint` gives them, with page, name and version; by
            default those of the gallery.
    """
    gallery = _known() if gallery is None else gallery
    ids = None if topics is None else sorted(set(topics))
    keys = None if judgments is None else judgment_keys(judgments)
    found = None if keys is None else _by_judgments(keys, gallery)
    if found is None and ids:
        found = _by_topics(ids, [one for one in gallery if keys is None or not one["judgments"]])
    if found is None:
        return None
    known, difference = found
    own = _topic_difference(known, ids) if ids is not None and known["topics"] else None
    return KnownBenchmark(known["name"], known["version"], known["page"], own, difference)


def benchmark_of_task(task: str, items: Iterable[str] = ()) -> KnownBenchmark | None:
    """The benchmark that a task of a leaderboard is: by its name in MTEB, or by the ids of its questions.

    Args:
        items: ids of its questions, where there are scores of these.
    """
    ids = sorted(set(items))
    known = next((one for one in _known() if task in one["tasks"]), None)
    if known is None:
        return recognised(ids, None) if ids else None
    own = _topic_difference(known, ids) if ids and known["topics"] else None
    return KnownBenchmark(known["name"], known["version"], known["page"], own)


def fingerprint(topics: Iterable[str] | None, judgments: pl.DataFrame | None) -> dict[str, Any]:
    """What `benchmarks.json` has of a benchmark."""
    ids = None if topics is None else topic_keys(sorted(set(topics)))
    keys = None if judgments is None else judgment_keys(judgments)
    found: dict[str, Any] = {
        name: None if hashes is None else {"count": len(hashes), "hash": _digest(hashes)}
        for name, hashes in (("topics", ids), ("judgments", keys))
    }
    if keys is not None:
        found["judgments"]["sample"] = base64.b64encode(_drawn(keys)[:_SAMPLE].tobytes()).decode()
    return found


def topic_keys(ids: Sequence[str]) -> Hashes:
    """64-bit hashes of ids, the same for every version of every library."""
    digests = (hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in ids)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def judgment_keys(judgments: pl.DataFrame) -> Hashes:
    """Hashes of pairs of topic and document, with the grade in the lowest byte; sorted, of several grades the last."""
    rows = judgments.unique(["topic_id", "doc_id"], keep="last", maintain_order=True)
    pairs = topic_keys([f"{topic}\0{doc}" for topic, doc in rows.select("topic_id", "doc_id").iter_rows()])
    grades = (rows["relevance"].to_numpy().astype(np.int64) & 0xFF).astype(np.uint64)
    return np.sort((pairs & ~_GRADE) | grades)


def _digest(keys: Hashes) -> str:
    return hashlib.sha256(np.sort(keys).astype("<u8").tobytes()).hexdigest()[:32]


def _drawn(keys: Hashes) -> Any:
    """Pairs with their grades, the smallest hashes first."""
    found = np.empty(len(keys), _DRAWN)
    found["pair"], found["grade"] = keys >> np.uint64(32), keys & _GRADE
    return np.sort(found, order="pair")


def _samples(known: Mapping[str, Any], drawn: Any) -> tuple[Any, Any]:
    """The sample of a benchmark's judgments, and what would be that of others."""
    sample = np.frombuffer(base64.b64decode(known["judgments"]["sample"]), _DRAWN)
    return sample, drawn[: int(np.searchsorted(drawn["pair"], sample["pair"][-1], side="right"))]


@functools.cache
def _known() -> tuple[Mapping[str, Any], ...]:
    text = resources.files("truerank.audits").joinpath(_FILE).read_text(encoding="utf-8")
    return tuple(json.loads(text)["benchmarks"])


Found = tuple[Mapping[str, Any], CopyDifference | None]


def _by_judgments(keys: Hashes, gallery: Sequence[Mapping[str, Any]]) -> Found | None:
    """The benchmark that most judgments are of."""
    own, whole = [one for one in gallery if one["judgments"]], _digest(keys)
    for one in own:
        if one["judgments"]["hash"] == whole:
            return one, CopyDifference(0, 0)
    drawn = _drawn(keys)
    best: tuple[float, Mapping[str, Any]] | None = None
    for one in own:
        sample, mine = _samples(one, drawn)
        hits = int(np.isin(sample["pair"], mine["pair"]).sum())
        every = len(sample) + len(mine) - hits
        if hits >= _FEWEST and hits >= _SHARE * len(mine) and (best is None or hits / every > best[0]):
            best = hits / every, one
    return None if best is None else (best[1], _judgment_difference(best[1], drawn))


def _judgment_difference(known: Mapping[str, Any], drawn: Any) -> CopyDifference:
    about, (sample, mine) = known["judgments"], _samples(known, drawn)
    both = np.isin(sample["pair"], mine["pair"])
    grades = dict(zip(mine["pair"].tolist(), mine["grade"].tolist(), strict=True))
    other = sum(grades[pair] != grade for pair, grade in sample[both].tolist())
    each, more = about["count"] / len(sample), len(drawn) - about["count"]
    # How many more one side has is known exactly; what each has beside it is taken from the sample.
    beside = round((min(len(sample), len(mine)) - int(both.sum())) * each)
    missing, added = beside + max(0, -more), beside + max(0, more)
    return CopyDifference(_rounded(missing), _rounded(added), _rounded(other * each), exact=False)


def _rounded(value: float) -> int:
    """Two digits: a sample tells no more."""
    return int(float(f"{value:.2g}"))


def _by_topics(ids: Sequence[str], gallery: Sequence[Mapping[str, Any]]) -> Found | None:
    """The one benchmark with these topic ids."""
    numbers = [whole_number(one) for one in ids]
    if None not in numbers and max(numbers) - min(numbers) < len(ids):  # type: ignore[type-var,operator]
        return None
    own = [one for one in gallery if one["topics"]]
    whole = _digest(topic_keys(ids))
    same = [one for one in own if one["topics"]["hash"] == whole]
    return (same[0], None) if len(same) == 1 else None


def _topic_difference(known: Mapping[str, Any], ids: Sequence[str]) -> CopyDifference:
    about, keys = known["topics"], topic_keys(ids)
    if about["hash"] == _digest(keys):
        return CopyDifference(0, 0)
    more = len(keys) - about["count"]
    return CopyDifference(max(0, -more), max(0, more), exact=False)


def _differs(noun: str, found: CopyDifference) -> str:
    """The difference in a few words; empty where there is none."""
    counts = {"missing": found.missing, "added": found.added, "with another grade": found.changed}
    named = [f"{count:,d} {what}" for what, count in counts.items() if count]
    if not named:
        return "" if found.exact else f"other {noun}s"
    about = "" if found.exact else "about " if noun == "judgment" else "at least "
    return f"{noun}s: {about}{', '.join(named)}"
