"""The texts in which `second_hand.py` plants leaks, in two halves that share none.

They are others than those of `tools.py report`: documentation in Python's standard library, posts of BRIGHT, topic
statements of the Common Core tracks, questions of MIRACL in six languages (ten at a time as a document), and queries of
MS MARCO and the million-query log.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import polars as pl

from common import SHARED, log_path, topic_path
from truerank.sources import read_topics

LANGUAGES = ("ar", "en", "fi", "ja", "ru", "sw")
PACKAGES = "email asyncio logging unittest multiprocessing http json urllib xml concurrent".split()
MODULES = """
decimal argparse optparse random statistics pickle subprocess threading difflib tarfile zipfile shutil ssl socket string
textwrap typing turtle ast codecs collections contextlib csv dataclasses datetime dis enum fractions ftplib gzip heapq
inspect io ipaddress itertools locale mailbox os pathlib pdb sched pprint selectors sqlite3 tempfile timeit trace
traceback unicodedata uuid
""".split()


def half(text: str) -> int:
    """To which half a text belongs."""
    return crc32(text.encode()) % 2


def docstrings() -> Iterator[str]:
    """Documentation of Python's standard library."""
    names = list(MODULES)
    for package in PACKAGES:
        found = importlib.import_module(package)
        names += [package, *(f"{package}.{one.name}" for one in pkgutil.iter_modules(found.__path__))]
    for name in names:
        if name.endswith(("__main__", "windows_events", "windows_utils", "popen_spawn_win32")):
            continue
        module = importlib.import_module(name)
        holders = [module, *(thing for _, thing in inspect.getmembers(module, inspect.isclass))]
        for holder in holders:
            members = [thing for _, thing in inspect.getmembers(holder) if callable(thing)]
            for one in (holder, *members):
                text = getattr(one, "__doc__", None)
                if isinstance(text, str):
                    yield inspect.cleandoc(text)


def rows(path: Path) -> list[str]:
    """The texts of a file of ids and texts."""
    frame = pl.read_csv(path, separator="\t", has_header=False, quote_char=None, encoding="utf8-lossy")
    return [text for text in frame[:, 1].to_list() if text]


def runs(text: str, size: int = 6) -> set[str]:
    """Runs of signs by which texts that share much are kept out of the test side."""
    words = re.findall(r"\w", text.lower()) if re.search("[぀-ヿ]", text) else re.findall(r"\w+", text.lower())
    return {" ".join(words[at : at + size]) for at in range(max(1, len(words) - size + 1))}


def unlike(texts: Sequence[str]) -> list[str]:
    """The texts, without those that share a run of six words with one before."""
    known: set[str] = set()
    kept = []
    for text in texts:
        if not (mine := runs(text)) & known:
            kept.append(text)
            known |= mine
    return kept


def long_texts(side: int, draw: random.Random) -> list[str]:
    """Documents: documentation, posts, topic statements, and questions in six languages."""
    bright = [text for file in sorted((SHARED / "topics" / "bright").glob("*.gz")) for text in rows(file)]
    topics = [one for name in ("core17", "core18") for one in read_topics(str(topic_path(name))).topics]
    stated = [f"{one.description} {one.narrative}" for one in topics]
    python = sorted({text for text in docstrings() if len(text.split()) >= 20})
    draw.shuffle(python)
    texts = [text for text in (*stated, *bright, *python[:4000]) if half(text) == side]
    for language in LANGUAGES:
        asked = [text for text in rows(SHARED / "topics" / "miracl" / f"{language}-train.tsv.gz") if half(text) == side]
        draw.shuffle(asked)
        asked = unlike(asked)
        texts += [" ".join(asked[at : at + 10]) for at in range(0, 600, 10)]
    draw.shuffle(texts)
    return unlike([text.strip() for text in texts if 20 <= len(text.split()) <= 1500 or not text.isascii()])


def short_texts(side: int, draw: random.Random) -> list[str]:
    """Queries."""
    texts = [
        one for name in LANGUAGES for one in draw.sample(rows(SHARED / "topics" / "miracl" / f"{name}-dev.tsv.gz"), 300)
    ]
    texts += [one for name in ("msmarco-dev-test", "million-query") for one in draw.sample(rows(log_path(name)), 2000)]
    texts = [text for text in texts if half(text) == side and len(text) > 14]
    draw.shuffle(texts)
    return unlike(texts)


def words_of(text: str) -> list[str]:
    """Words; the signs of a text without blanks."""
    words = text.split()
    return words if len(words) > 2 or text.isascii() else list(text)
