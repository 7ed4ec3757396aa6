"""Near-duplicates: recall against all pairs, and time, peak memory and recall by kind as collections grow.

    python benchmarks/near_duplicates.py recall
    python benchmarks/near_duplicates.py generate 1000000 FOLDER
    python benchmarks/near_duplicates.py scale FOLDER [--workers 2] [--out FILE]
    python benchmarks/near_duplicates.py datatrove FOLDER
    python benchmarks/near_duplicates.py text-dedup FOLDER

`recall` compares all pairs of documents of Vaswani and CACM, and counts which are found, beside MinHash with bands
(datasketch, where it is installed). `generate` writes a collection with planted duplicates of five kinds, `scale` and
the other two look for them. Time is that of the processors (user and system) and that of the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 20261122
SHARE = 0.05
KINDS = ("reformatted", "sentence changed", "words changed", "header added", "cut", "merged")
SENTENCES, WORDS = 5, 12
VOCABULARY = 150_000
#: Documents that are generated at a time.
CHUNK = 10_000


def vocabulary() -> list[str]:
    """Words that can be spoken, the frequent ones short."""
    starts = [*"bcdfghklmnprstvw", "br", "ch", "cl", "dr", "gr", "pl", "pr", "sh", "st", "th", "tr"]
    syllables = [start + vowel for start in starts for vowel in ("a", "e", "i", "o", "u", "ai", "ou")]
    ends = ["", "n", "r", "s", "t", "l"]
    base = len(syllables)
    found = []
    for number in range(VOCABULARY):
        parts, rest = [], number
        while True:
            parts.append(syllables[rest % base])
            rest = rest // base
            if not rest:
                break
        found.append("".join(parts) + ends[number % len(ends)])
    return found


def chains(draw: np.random.Generator, documents: int) -> NDArray[np.int64]:
    """Words of documents by rank, shape (documents, words): frequencies as Zipf's law has them, and set phrases.

    With a probability that `phrases` names, the next word is one of the few that usually follow the one before, so that
    texts share runs of words as real ones do.
    """
    phrases = 0.55
    ranks = np.exp(draw.random((documents, SENTENCES * WORDS)) * np.log(VOCABULARY)).astype(np.int64) - 1
    follows = draw.random(ranks.shape) < phrases
    choice = np.minimum(draw.geometric(0.35, ranks.shape), 12)
    for place in range(1, ranks.shape[1]):
        before = ranks[:, place - 1].astype(np.uint64)
        mixed = (before * np.uint64(0x9E3779B97F4A7C15)) ^ (
            choice[:, place].astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
        )
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        usual = np.exp((mixed >> np.uint64(11)) / 2.0**53 * np.log(VOCABULARY)).astype(np.int64) - 1
        ranks[:, place] = np.where(follows[:, place], usual, ranks[:, place])
    return ranks


def texts(draw: np.random.Generator, words: Sequence[str], documents: int) -> Iterator[list[str]]:
    """Documents as lists of sentences."""
    for row in chains(draw, documents).tolist():
        every = [words[rank] for rank in row]
        yield [" ".join(every[at : at + WORDS]).capitalize() + "." for at in range(0, len(every), WORDS)]


def planted(kind: str, sentences: list[str], other: list[str], draw: random.Random) -> str:
    """A duplicate of one kind of a document.

    Args:
        kind: one of `KINDS`.
        sentences: of the document.
        other: the sentences of an unrelated document.
        draw: chooses.
    """
    if kind == "reformatted":
        every = " ".join(sentences).replace(".", " –").upper().split()
        return "\n".join("  ".join(every[at : at + 9]) for at in range(0, len(every), 9))
    if kind == "sentence changed":
        place = draw.randrange(len(sentences))
        return " ".join([*sentences[:place], other[0], *sentences[place + 1 :]])
    if kind == "words changed":
        place = draw.randrange(len(sentences))
        inside = sentences[place].split()
        at = draw.randrange(1, len(inside) - 2)
        inside[at : at + 2] = other[1].split()[2:4]
        return " ".join([*sentences[:place], " ".join(inside), *sentences[place + 1 :]])
    if kind == "header added":
        return " ".join([*other[:2], *sentences])
    if kind == "cut":
        return " ".join(sentences[: len(sentences) - 2])
    return " ".join([*sentences, *other])


def generate(documents: int, folder: Path) -> None:
    """Writes `corpus.jsonl`, and `truth.tsv`: original, duplicate, kind.

    A duplicate stands in a random place behind its original. The other parts of a changed, prefixed or merged document
    are new text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers, draw, words = np.random.default_rng(SEED), random.Random(SEED), vocabulary()
    waiting: list[tuple[str, str, str]] = []
    written = made = 0
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as corpus, (folder / "truth.tsv").open("w") as truth:

        def write(name: str, text: str) -> None:
            nonlocal written
            corpus.write(json.dumps({"_id": name, "text": text}, ensure_ascii=False) + "\n")
            written += 1

        def release() -> None:
            at = draw.randrange(len(waiting))
            waiting[at], waiting[-1] = waiting[-1], waiting[at]
            original, kind, text = waiting.pop()
            name = f"x{written}"
            truth.write(f"{original}\t{name}\t{kind}\n")
            write(name, text)

        total = round(documents * SHARE)
        while written + len(waiting) < documents:
            size = min(CHUNK, documents - written - len(waiting))
            spare = texts(numbers, words, 2 * round(size * SHARE) + 10)
            for sentences in texts(numbers, words, size):
                if written + len(waiting) >= documents:
                    break
                name = f"d{written}"
                write(name, " ".join(sentences))
                if made < total and draw.random() < SHARE / (1 - SHARE):
                    other = next(spare)
                    kind = KINDS[made % len(KINDS)]
                    waiting.append((name, kind, planted(kind, sentences, other, draw)))
                    made += 1
                if waiting and draw.random() < SHARE and len(waiting) > documents * SHARE / 4:
                    release()
        while waiting:
            release()
    print(f"{written:,} documents, {made:,} of them planted, {(folder / 'corpus.jsonl').stat().st_size / 1e6:,.0f} MB")


class Watch:
    """Time of the processors and of the clock, and the peak memory of this process and its children together."""

    def __enter__(self) -> Watch:
        self.peak, self._ended = 0.0, threading.Event()
        self._clock, self._processor = time.perf_counter(), self._used()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.seconds, self.processor = time.perf_counter() - self._clock, self._used() - self._processor

    def row(self) -> tuple[str, str, str]:
        """Seconds of the processors, of the clock, and megabytes."""
        return f"{self.processor:,.0f}", f"{self.seconds:,.0f}", f"{self.peak / 1e6:,.0f}"

    @staticmethod
    def _used() -> float:
        usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def _look(self) -> None:
        while not self._ended.wait(0.25):
            self.peak = max(self.peak, sum(proportional(pid) for pid in family(os.getpid())))


def family(process: int) -> list[int]:
    """A process and all its children."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


def proportional(process: int) -> float:
    """The memory of a process in bytes; what several share counts in parts."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(float(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def scale(folder: Path, workers: int, size: int) -> None:
    """Looks for the planted duplicates with truerank and prints recall by kind at three thresholds."""
    from truerank.near_duplicates import Shingles, within
    from truerank.sources import open_documents
    from truerank.work.engines import LocalEngine
    from truerank.work.jobs import Job

    class Stages:
        """Prints what each stage took."""

        name, began = "", time.perf_counter()

        def start(self, what: str, total: int | None = None) -> None:
            now = time.perf_counter()
            print(f"  {self.name or 'start':22s} {now - self.began:7.1f} s", file=sys.stderr, flush=True)
            self.name, self.began = what, now

        def advance(self, items: int) -> None:
            pass

        status = note = advance  # type: ignore[assignment]

    with tempfile.TemporaryDirectory(dir=folder) as work, Watch() as watch:
        stages = Stages()
        job = Job(Path(work), LocalEngine(workers), stages)
        found = within(open_documents(str(folder / "corpus.jsonl")), Shingles(similarity=0.6, shingle_size=size), job)
        stages.start("end")
        disk = sum(path.stat().st_size for path in Path(work).rglob("*") if path.is_file())
    print("documents | pairs | crowded | processor s | clock s | peak MB | disk at the end MB")
    print(f"{found.documents[0]:,} | {found.counts} | {found.crowded} | {' | '.join(watch.row())} | {disk / 1e6:,.0f}")
    print(found.boilerplate.head(3))
    known = truth(folder)
    unplanted = found.pairs.filter(found.pairs["kind"] != "contains")
    planted_ids = {duplicate for _, duplicate in known}
    extra = sum(
        left not in planted_ids and right not in planted_ids
        for left, right in unplanted.select("left", "right").iter_rows()
    )
    print(f"equivalent pairs without a planted document: {extra}")
    for similarity in (0.6, 0.7, 0.8, 0.9):
        pairs = found.rethreshold(similarity=similarity).pairs
        by_pair = {frozenset(row[:2]): row[2] for row in pairs.select("left", "right", "kind").iter_rows()}
        kinds = {
            kind: Counter(by_pair.get(frozenset(pair)) for pair, own in known.items() if own == kind) for kind in KINDS
        }
        for kind, counts in kinds.items():
            total = counts.total()
            shares = ", ".join(
                f"{name} {counts[name] / total:.3f}"
                for name in ("exact", "reformatted", "near", "contains")
                if counts[name]
            )
            print(f"{similarity} | {kind} | {total} | {1 - counts[None] / total if total else 0:.4f} | {shares}")


def truth(folder: Path) -> dict[tuple[str, str], str]:
    """The kind of each planted pair."""
    rows = (line.split("\t") for line in (folder / "truth.tsv").read_text().splitlines())
    return {(original, duplicate): kind for original, duplicate, kind in rows}


def main() -> None:
    """Does what the first argument says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("generate")
    one.add_argument("documents", type=int)
    one.add_argument("folder", type=Path)
    one = commands.add_parser("scale")
    one.add_argument("folder", type=Path)
    one.add_argument("--workers", type=int, default=2)
    one.add_argument("--size", type=int, default=3)
    options = parser.parse_args()
    if options.command == "generate":
        generate(options.documents, options.folder)
    elif options.command == "scale":
        scale(options.folder, options.workers, options.size)


if __name__ == "__main__":
    main()
