"""Planted leaks by a second hand: other texts, other changes and other look-alikes than those of `tools.py`.

    python benchmarks/second_hand.py develop             # the half of texts and wordings to work with
    python benchmarks/second_hand.py report              # the other half: look at it once
    python benchmarks/second_hand.py develop --missed 3  # and what was missed of each kind

The changes were written before the code of the detector was read. Texts are those that `tools.py report` does not use:
documentation in Python's standard library, posts of BRIGHT, topic statements of Common Core and Web tracks, questions
of MIRACL in six languages (ten at a time as a document), queries of MS MARCO and the million-query log. The two halves
share no text, no boilerplate, no OCR confusion and no new sentence. The real command reads the lines, and a leak counts
where the planted text is named, not any text.
"""

from __future__ import annotations

import argparse
import html
import importlib
import inspect
import json
import pkgutil
import random
import re
import tempfile
import textwrap
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import polars as pl
from shared_data import SHARED, log_path, require_shared, table, topic_path
from truerank import leakage
from truerank.audits.leakage.training_examples.options import ExampleOptions
from truerank.measures.intervals import proportion
from truerank.sources import read_topics
from truerank.text.normalising import normalise

LANGUAGES = ("ar", "en", "fi", "ja", "ru", "sw")
LENGTHS = ((12, "to 11 words"), (41, "12-40"), (121, "41-120"), (10**9, "121 and more"))
PACKAGES = ("email", "asyncio", "logging", "unittest", "multiprocessing", "http", "json", "urllib", "xml", "concurrent")
MODULES = ("decimal", "argparse", "optparse", "random", "statistics", "pickle", "subprocess", "threading", "difflib",
           "tarfile", "zipfile", "shutil", "ssl", "socket", "string", "textwrap", "typing", "turtle", "ast", "codecs",
           "collections", "contextlib", "csv", "dataclasses", "datetime", "dis", "enum", "fractions", "ftplib", "gzip",
           "heapq", "inspect", "io", "ipaddress", "itertools", "locale", "mailbox", "os", "pathlib", "pdb", "sched",
           "pprint", "selectors", "sqlite3", "tempfile", "timeit", "trace", "traceback", "unicodedata", "uuid")  # fmt: skip


class Line(NamedTuple):
    """A training text: the changed test text `test`, or a harmless one where that is empty."""

    text: str
    kind: str
    test: str


class Bench(NamedTuple):
    """Documents and queries of the test side, and the lines that are positives and queries of the training side."""

    documents: dict[str, str]
    queries: dict[str, str]
    positives: list[Line]
    asked: list[Line]


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


# -- changes; each takes the text, a generator and the half, and returns None where it does not apply ------------------

Change = Callable[[str, random.Random, int], str | None]
MARK = re.compile(r"(?<=[.!?؟。])\s+")
BOILERPLATE = (
    ("We value your privacy. Some of our partners process data on the basis of legitimate interest. Accept all | Manage choices",
     "Home > Archive > Articles | Log in | Basket (0) | Help centre",
     "This work is distributed under the terms of the Open Archive Licence 2.1; see the file COPYING for details.",
     "Read also: The ten best hikes of the season. Get our letter every Friday!"),
    ("By browsing this portal you agree that we store small files on your device. Learn more. OK, got it",
     "Skip to main content Menu Search Subscribe Sign up Contact us Imprint",
     "Copyright (c) the contributors. Redistribution in source and binary forms is permitted provided this notice is kept.",
     "Advertisement - scroll down to continue. Share this on your favourite network. 14 comments"),
)  # fmt: skip
SENTENCES = (
    ("Nobody at the town hall wanted to comment on this yesterday.", "A second study with more people is planned.",
     "Prices for olive oil rose again in the same quarter.", "The older edition describes this in appendix B."),
    ("Critics say the opposite is true and ask for proof.", "The bridge will stay closed until the paint is dry.",
     "Our correspondent could not reach the owner by phone.", "Users of earlier releases should skip this paragraph."),
)  # fmt: skip
CONFUSED = (
    {
        "m": "rn",
        "w": "vv",
        "cl": "d",
        "e": "c",
        "l": "1",
        "o": "0",
        "h": "b",
        "g": "q",
        "S": "5",
        "fi": "h",
        "и": "н",
        "о": "0",
    },
    {
        "rn": "m",
        "li": "h",
        "a": "o",
        "I": "l",
        "t": "f",
        "u": "ii",
        "B": "8",
        "y": "v",
        "n": "ri",
        "i": "j",
        "л": "п",
        "е": "c",
    },
)
SYNONYMS = (
    "show display|use employ|large big|small little|begin start|find locate|help assist|need require|make create|get obtain|"
    "change modify|way method|fast quick|many numerous|important significant|problem issue|give provide|keep retain|"
    "return yield|contain include|remove delete|allow permit|choose select|explain clarify|information details|people persons|"
    "about concerning|because since|also additionally|only solely|however but|each every|must should|called named|"
    "what which|best top|cost price|car automobile|city town|country nation|doctor physician|movie film|job occupation"
)  # fmt: skip
WORDS = {a: b for pair in SYNONYMS.split("|") for one, two in [pair.split()] for a, b in ((one, two), (two, one))}
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()


def words_of(text: str) -> list[str]:
    """Words; the signs of a text without blanks."""
    words = text.split()
    return words if len(words) > 2 or text.isascii() else list(text)


def joined(words: Sequence[str], text: str) -> str:
    """Words as in the text they come from."""
    return (" " if len(text.split()) > 2 or text.isascii() else "").join(words)


def sentences(text: str, least: int = 3) -> list[str] | None:
    """Sentences, where there are enough."""
    found = [one for one in MARK.split(text) if one]
    return found if len(found) >= least else None


def excerpt(place: float) -> Change:
    """30 to 80% of the words, from the beginning, the middle or the end."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        words = words_of(text)
        size = round(len(words) * draw.uniform(0.3, 0.8))
        start = round((len(words) - size) * place)
        return joined(words[start : start + size], text) if size >= 8 else None

    return change


def rewrapped(text: str, draw: random.Random, side: int) -> str:
    lead = draw.choice(("> ", "    ", "| ", ""))
    return "\n".join(lead + line for line in textwrap.wrap(text, draw.randint(24, 90)))


def boilerplate(place: str) -> Change:
    """Foreign text before, after or between."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        notes = list(BOILERPLATE[side])
        draw.shuffle(notes)
        if place == "between":
            words = words_of(text)
            cut = draw.randint(len(words) // 4, 3 * len(words) // 4)
            return joined(words[:cut], text) + "\n\n" + notes[0] + "\n\n" + joined(words[cut:], text)
        return "\n".join((*notes[:2], text) if place == "before" else (text, *notes[:3]))

    return change


def as_html(text: str, draw: random.Random, side: int) -> str:
    tags = ("b", "em") if side else ("strong", "a href='/wiki/x?id=3'")
    body = " ".join(
        f"<{tag}>{html.escape(word)}</{tag.split()[0]}>" if draw.random() < 0.08 else html.escape(word)
        for word in words_of(text)
        for tag in [draw.choice(tags)]
    )
    body = body.replace(". ", ".</p>\n<p class='t'>").replace(" and ", "&nbsp;and ")
    return f"<html><head><style>p {{margin: 0}}</style></head><body><div id='c'><p>{body}</p></div></body></html>"


def as_markdown(text: str, draw: random.Random, side: int) -> str:
    marks = ("**{}**", "[{}](https://example.org/a)") if side else ("_{}_", "`{}`", "{}[^2]")
    parts = [draw.choice(marks).format(word) if draw.random() < 0.1 else word for word in words_of(text)]
    return "## Notes\n\n- " + joined(parts, text).replace(". ", ".\n- ")


def one_sentence(way: str) -> Change:
    """One sentence is exchanged, taken out, put in or moved."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        parts = sentences(text)
        if parts is None:
            return None
        place = draw.randrange(len(parts))
        if way == "inserted":
            parts.insert(place, draw.choice(SENTENCES[side]))
        elif way == "changed":
            parts[place] = draw.choice(SENTENCES[side])
        else:
            moved = parts.pop(place)
            if way == "moved":
                parts.insert((place + 1 + draw.randrange(len(parts))) % (len(parts) + 1), moved)
        return " ".join(parts)

    return change


def truncated(tokens: int) -> Change:
    """Cut at so many tokens of 4.3 signs, inside a word."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        size = int(tokens * 4.3)
        return text[:size] if size < len(text) <= 4 * size else None

    return change


def ocr(rate: float) -> Change:
    """Confused signs, words that are broken at the end of a line, split and joined words."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        out, at, table_ = [], 0, CONFUSED[side]
        while at < len(text):
            one = next(
                (key for key in (text[at : at + 2], text[at]) if key in table_ and draw.random() < 3 * rate), None
            )
            if one:
                out.append(table_[one])
                at += len(one)
                continue
            sign, chance = text[at], draw.random()
            if sign == " " and chance < rate:
                sign = ""
            elif sign.isalpha() and chance < rate / 4:
                sign += draw.choice((" ", "-\n"))
            out.append(sign)
            at += 1
        changed = "".join(out)
        return changed if changed != text else None

    return change


def typed(text: str, draw: random.Random, side: int) -> str:
    signs = list(text)
    for _ in range(max(1, len(text) // 45)):
        at = draw.randrange(1, len(signs) - 1)
        if draw.random() < 0.5:
            signs[at], signs[at - 1] = signs[at - 1], signs[at]
        else:
            signs.pop(at)
    return "".join(signs)


def full_width(text: str, draw: random.Random, side: int) -> str | None:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text) if text.isascii() else None


def typographic(text: str, draw: random.Random, side: int) -> str | None:
    changed = re.sub(r"\B'|'\B", "’", re.sub(r'"(\S[^"]*)"', "“\\1”", text)).replace("'", "’").replace(" - ", " — ")
    changed = (
        changed.replace("fi", "ﬁ").replace("fl", "ﬂ").replace("...", "…").replace(" ", "\u00a0" if side else "\u2009")
    )
    return changed if changed != text else None


def invisible(text: str, draw: random.Random, side: int) -> str:
    sign = "\u00ad" if side else "\u200b"
    return "".join(one + sign if one.isalpha() and draw.random() < 0.12 else one for one in text)


def bare(text: str, draw: random.Random, side: int) -> str:
    return " ".join(re.sub(r"[^\w\s]|_", " ", text.upper() if draw.random() < 0.3 else text.lower()).split())


def numerals(text: str, draw: random.Random, side: int) -> str | None:
    changed = re.sub(r"(?<![\d.])(\d|1[0-2])(?![\d.])", lambda found: NUMBERS[int(found[1])], text)
    changed = re.sub(r"\b(" + "|".join(NUMBERS[2:]) + r")\b", lambda found: str(NUMBERS.index(found[1])), changed)
    changed = re.sub(r"(\d),(\d{3})\b", r"\1\2", changed)
    if not text.isascii():
        changed = changed.translate({48 + digit: 0x660 + digit for digit in range(10)})
    return changed if changed != text else None


def two_in_one(other: str) -> Change:
    """The text behind another one."""
    return lambda text, draw, side: f"{other}\n\n{text}"


def paraphrased(text: str, draw: random.Random, side: int) -> str | None:
    changed = re.sub(r"[A-Za-z]+", lambda found: WORDS.get(found[0], found[0]), text)
    parts = [re.sub(r"^(.{12,}?), (.{12,})\.$", r"\2, \1.", one) for one in MARK.split(changed)]
    changed = " ".join(parts)
    return changed if len(set(text.split()) - set(changed.split())) > len(text.split()) / 20 else None


def shuffled(text: str, draw: random.Random, side: int) -> str | None:
    words = text.split()
    cut = draw.randrange(1, len(words)) if len(words) > 2 else 0
    return " ".join(words[cut:] + words[:cut]) if cut else None


def inflected(text: str, draw: random.Random, side: int) -> str | None:
    if not text.isascii():
        return None
    words = text.split()
    long = [at for at, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    for at in draw.sample(long, min(2, len(long))):
        words[at] = (
            words[at][:-1]
            if words[at].endswith("s")
            else words[at] + ("es" if words[at].endswith(("x", "ch")) else "s")
        )
    return " ".join(words) if long else None


def keywords(text: str, draw: random.Random, side: int) -> str | None:
    small = set(
        "what is are was were the a an of in on to for who how does do did when where which why can i you it and".split()
    )
    words = [word for word in re.findall(r"[\w'-]+", text) if word.lower() not in small]
    return " ".join(words) if text.isascii() and 2 <= len(words) < len(text.split()) else None


def question(text: str, draw: random.Random, side: int) -> str | None:
    frames = (
        ("Can you tell me about {}?", "What do we know about {}?")
        if side
        else ("I would like to know: {}", "Please explain {}")
    )
    return draw.choice(frames).format(text.rstrip("?"))


def instructed(text: str, draw: random.Random, side: int) -> str:
    return (f"Instruct: Retrieve passages that answer the request.\nQuery: {text}", f"search_query: {text}")[side]


def inside(text: str, draw: random.Random, side: int) -> str:
    return f"{SENTENCES[side][0]} {SENTENCES[side][1]} {text} {SENTENCES[side][2]}"


DOCUMENT_KINDS: Mapping[str, Change] = {
    "excerpt, beginning": excerpt(0), "excerpt, middle": excerpt(0.5), "excerpt, end": excerpt(1),
    "re-wrapped": rewrapped, "boilerplate before": boilerplate("before"), "boilerplate after": boilerplate("after"),
    "boilerplate between": boilerplate("between"), "HTML": as_html, "Markdown": as_markdown,
    "sentence changed": one_sentence("changed"), "sentence removed": one_sentence("removed"),
    "sentence inserted": one_sentence("inserted"), "sentence moved": one_sentence("moved"),
    "100 tokens": truncated(100), "256 tokens": truncated(256), "512 tokens": truncated(512),
    "OCR, light": ocr(0.01), "OCR, heavy": ocr(0.04), "typing errors": typed,
    "decomposed": lambda text, draw, side: unicodedata.normalize("NFD", text), "full width": full_width,
    "typographic": typographic, "invisible signs": invisible, "case and marks": bare, "numerals": numerals,
    "behind another text": two_in_one("The ferry to the island runs twice a day in winter. Bicycles travel free of charge, dogs do not."),
    "paraphrased": paraphrased,
}  # fmt: skip
QUERY_KINDS: Mapping[str, Change] = {
    "query: reordered": shuffled, "query: inflected": inflected, "query: keywords": keywords, "query: question": question,
    "query: typing errors": typed, "query: case and marks": bare, "query: full width": full_width,
    "query: invisible signs": invisible, "query: numerals": numerals, "query: instructed": instructed,
    "query: OCR, light": ocr(0.02), "query: paraphrased": paraphrased,
}  # fmt: skip
#: Looked for in the training side's documents.
INSIDE = {"query: inside a document": inside}

# -- look-alikes: frames whose facts differ; each frame has several texts on both sides, as in real collections ---------

FRAMES = (
    ("same template", (
        "Listing {n}: a {a} flat with {m} rooms near the {b} market. Heating by {c}. Viewing on request; please quote the number when you write.",
        "Match report. {A} beat {B} by {m} goals to {k} in front of {n} people. The {c} side had more of the ball but lost it near the goal too often.",
        "Recall notice: the {a} {b}, batch {n}, may contain traces of {c}. Customers should return it to the shop. No other batch is affected.",
        "Vacancy {n}: the {a} department seeks a {b} for {m} months. You know {c} well and speak two languages. Apply with a letter by the end of the month.",
    )),
    ("news on other events", (
        "{A} ({B}) - {n} people were brought to safety after a {a} broke out in a {b} on {c} street, police said on Monday. No one was hurt. The cause is being looked into.",
        "Shares in {A} fell {m} percent on Tuesday after the maker of {a} and {b} said that it would miss its goal for the year. Analysts had expected a profit of {n} million.",
        "A {a} of magnitude {m}.{k} struck {n} km south of {A} early on Friday, the {b} institute said. There were no reports of damage from {B} at first.",
    )),
    ("definitions in one frame", (
        "{A} is a term from {b}. It means the state in which a {a} has no {c} left. See also: {B}.",
        "In {b}, {A} refers to any {a} that can be told from a {c} by its {d}. The word was first used in {n}.",
        "{A} (plural {A}s): a small {a} of the {b} family, with a {c} {d}; found in the hills of {B}.",
    )),
    ("topics of one series", (
        "Find documents that discuss {a} in connection with {b}. A relevant document names at least one {c}. Documents on {d} alone are not relevant.",
        "I look for experiences with {a} and {b} from people who own a {c}. General remarks on {d} do not help me.",
    )),
)  # fmt: skip
FACTS = (
    "amber barley cedar delta ember fossil granite harvest indigo jasmine kettle lantern marble nickel orchid pepper quartz "
    "ribbon saddle timber umbrella velvet walnut yogurt zipper anchor basket candle dagger engine feather glacier hammer island "
    "jacket kernel ladder magnet needle oyster palace quiver rocket silver tunnel urchin valley window"
).split()
FOOTERS = (
    "The author taught botany in Graz for thirty years, keeps bees, and writes about gardens, wine and slow trains for several papers. "
    "Her last book was about hedges. She lives with two dogs on a former dairy farm.",
    "About the writer: he sailed as a ship's cook before he turned to translating crime novels from Danish. He reads the proofs of this column "
    "on a ferry, likes strong tea, and answers letters on the first Sunday of each month.",
)  # fmt: skip


def framed(frame: str, draw: random.Random) -> str:
    """A text of the frame with facts of its own."""
    names = draw.sample(FACTS, 6)
    given = dict(zip("abcd", names, strict=False)) | {"A": names[4].title(), "B": names[5].title()}
    return frame.format(**given, n=draw.randint(20, 900), m=draw.randint(2, 12), k=draw.randint(1, 9))


def make(side: int, per_cell: int) -> Bench:
    """The test side and the training side of one half."""
    draw = random.Random(90 + side)
    texts, short = long_texts(side, draw), short_texts(side, draw)
    spared, texts = texts[: len(texts) // 3], texts[len(texts) // 3 :]
    other, short = short[: len(short) // 3], short[len(short) // 3 :]
    documents = {f"d{at}": text for at, text in enumerate(texts)}
    queries = {f"q{at}": text for at, text in enumerate(short)}
    positives = [*planted(documents, DOCUMENT_KINDS, per_cell, side), *planted(queries, INSIDE, per_cell, side)]
    asked = planted(queries, QUERY_KINDS, per_cell, side)
    for kind, frames in FRAMES:
        for number, frame in enumerate(frames):
            documents |= {f"{kind} {number} {at}": framed(frame, draw) for at in range(8)}
            positives += [Line(framed(frame, draw), kind, "") for _ in range(40)]
    footers = FOOTERS[side]
    documents = {name: f"{text}\n\n{footers}" if name.endswith("7") else text for name, text in documents.items()}
    positives += [Line(f"{text}\n\n{footers}", "same biography", "") for text in spared[:200]]
    positives += [Line(text, "another text", "") for text in spared[200:1200]]
    asked += [Line(text, "another query", "") for text in other[:1200]]
    draw.shuffle(positives)
    draw.shuffle(asked)
    return Bench(documents, queries, positives, asked)


def length(text: str) -> str:
    """The group of lengths; a sign of a text without blanks is half a word."""
    size = len(words_of(text)) // (1 if len(text.split()) > 2 or text.isascii() else 2)
    return next(name for limit, name in LENGTHS if size < limit)


def planted(texts: Mapping[str, str], kinds: Mapping[str, Change], per_cell: int, side: int) -> list[Line]:
    """So many lines of each kind and length."""
    groups = defaultdict(list)
    for name, text in texts.items():
        groups[length(text)].append(name)
    lines = []
    for kind, change in kinds.items():
        for group in groups.values():
            draw, count = random.Random(f"{kind} {side}"), 0
            for name in draw.sample(group, len(group)):
                changed = change(texts[name], draw, side) if count < per_cell else None
                if changed is not None and changed.strip():
                    lines.append(Line(changed, kind, name))
                    count += 1
    return lines


def found(bench: Bench, semantic: str) -> tuple[dict[tuple[str, str], list[tuple[Line, bool]]], pl.DataFrame]:
    """The lines by kind and length with whether they are named; and all pairs."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)

        def write(name: str, records: Sequence[Mapping[str, str]]) -> str:
            path = place / name
            path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
            return str(path)

        topics = write("topics.jsonl", [{"_id": name, "text": text} for name, text in bench.queries.items()])
        corpus = write("docs.jsonl", [{"_id": name, "text": text} for name, text in bench.documents.items()])
        trained = [
            write(
                "p.jsonl",
                [{"_id": f"p{at}", "query": "", "positive": line.text} for at, line in enumerate(bench.positives)],
            ),
            write(
                "a.jsonl",
                [{"_id": f"a{at}", "query": line.text, "positive": ""} for at, line in enumerate(bench.asked)],
            ),
        ]
        options = ExampleOptions(docs=corpus, roles="query=query,positive=positive", semantic=semantic, sample=20)
        leakage.examples(trained, topics, options=options, out=place / "out")
        pairs = pl.read_parquet(place / "out" / "leaks.parquet")
    tests: dict[tuple[str, str], set[str]] = defaultdict(set)
    for kind, topic, document, text in pairs.select("kind", "topic_id", "doc_id", "training_text").iter_rows():
        tests["a" if kind == "query-query" else "p", normalise(text)].add(topic or document)
    cells = defaultdict(list)
    for side, lines in (("p", bench.positives), ("a", bench.asked)):
        for line in lines:
            named = tests[side, normalise(line.text)]
            names = {**bench.documents, **bench.queries}
            cell = line.kind, length(names[line.test]) if line.test else "all"
            cells[cell].append((line, line.test in named if line.test else bool(named)))
    return cells, pairs


def share(hits: Sequence[tuple[Line, bool]]) -> str:
    """A share with its exact 95% interval (Clopper and Pearson)."""
    if not hits:
        return ""
    one = proportion(sum(hit for _, hit in hits), len(hits), method="exact")
    return f"{one.share:.2f} ({one.low:.2f}–{one.high:.2f})"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", choices=("develop", "report"))
    parser.add_argument("--per-cell", type=int, default=40, help="plants for each kind and length")
    parser.add_argument("--semantic", choices=("none", "all"), default="none", help="with the packaged encoder")
    parser.add_argument("--missed", type=int, default=0, help="show so many lines of each kind that went wrong")
    given = parser.parse_args()
    require_shared()
    bench = make(("develop", "report").index(given.half), given.per_cell)
    cells, pairs = found(bench, given.semantic)
    names = [name for _, name in LENGTHS]
    kinds = dict.fromkeys(kind for kind, _ in cells)
    ordered = [kind for kind in (*DOCUMENT_KINDS, *INSIDE, *QUERY_KINDS) if kind in kinds]
    rows_ = [
        (
            kind,
            share([hit for name in names for hit in cells[kind, name]]),
            *(share(cells[kind, name]) for name in names),
        )
        for kind in ordered
    ]
    print(table(("kind", "found (95%)", *names), rows_) + "\n")
    harmless = sorted(kinds.keys() - set(ordered))
    print(table(("look-alike", "named (95%)"), [(kind, share(cells[kind, "all"])) for kind in harmless]) + "\n")
    true = [hit for kind in ordered for name in names for _, hit in cells[kind, name]]
    false = [hit for kind in harmless for _, hit in cells[kind, "all"]]
    precision = proportion(sum(true), sum(true) + sum(false), method="exact")
    print(
        f"{len(bench.documents):,} documents, {len(bench.queries):,} queries, {len(true):,} planted and {len(false):,} harmless lines"
    )
    print(
        f"recall {sum(true) / len(true):.3f}, precision {precision.share:.3f} ({precision.low:.3f}–{precision.high:.3f})"
    )
    texts = {**bench.documents, **bench.queries}
    for (kind, name), hits in cells.items():
        wrong = [line for line, hit in hits if hit != (kind in ordered)]
        for line in wrong[: given.missed]:
            print(f"\n--- {kind}, {name}: {line.test}\nLINE {line.text[:700]}\nTEST {texts.get(line.test, '')[:700]}")
            for pair in (
                pairs.filter(pl.col("training_text") == line.text).head(2).to_dicts() if kind in harmless else ()
            ):
                print(
                    "NAMED",
                    pair["kind"],
                    pair["evidence"],
                    pair["jaccard"],
                    pair["containment"],
                    pair["test_text"][:500],
                )


if __name__ == "__main__":
    main()
