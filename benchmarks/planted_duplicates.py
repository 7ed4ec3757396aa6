"""Collections with planted duplicates of six kinds, as large as asked for; `near_duplicates.py` looks for them."""

from __future__ import annotations

import json
import random
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

    A duplicate is in a random place behind its original. The other parts of a changed, prefixed or merged document
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


def truth(folder: Path) -> dict[tuple[str, str], str]:
    """The kind of each planted pair."""
    rows = (line.split("\t") for line in (folder / "truth.tsv").read_text().splitlines())
    return {(original, duplicate): kind for original, duplicate, kind in rows}
