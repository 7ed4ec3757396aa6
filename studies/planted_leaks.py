"""Leaks of twelve kinds, planted in real texts of five lengths, and harmless look-alikes; `tools.py` looks for them.

The changes are made by another hand than those of the audit's own sensitivity check: no word list is shared.
"""

from __future__ import annotations

import html
import random
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from common import SHARED, log_path, topic_path
from truerank.sources import open_documents, open_queries, read_topics

SEED = 20261122
#: Words of the texts of each length.
LENGTHS: Mapping[str, tuple[int, int]] = {
    "3-8": (3, 8), "9-16": (9, 16), "17-40": (17, 40), "41-120": (41, 120), "121+": (121, 600),
}  # fmt: skip
KINDS = (
    "case and marks", "re-wrapped", "boilerplate", "markup", "excerpt", "truncated", "one sentence changed",
    "reordered", "inflected", "OCR damage", "typing errors", "paraphrase",
)  # fmt: skip
#: The kinds of which at least 95% should be found.
TARGET = ("re-wrapped", "boilerplate", "excerpt", "one sentence changed", "reordered", "inflected")
HARMLESS = ("another text", "nearest text", "one word exchanged", "the same footer")
#: The shortest text, in words, that has an excerpt or an end to cut off; the fewest sentences of one that loses one.
CUTTABLE, FEWEST_SENTENCES = 17, 3

_SIGNS = re.compile(r"(?<=[.!?])\s+(?=[\"'(\[]?[A-Z0-9])")
_CACM = re.compile(r"\s+CACM\s+(?=[A-Z][a-z]+,?\s+19\d\d)")
_FOOTER = (
    "Reproduced with permission from the publisher who holds all rights in this text and may be reached at the address "
    "given on the first page"
)
_FRAMES = (
    ("Menu Search Log in Subscribe. Published online by the editors, reading time four minutes.", "Back to top."),
    ("Archive » Volume index » Item. Download as PDF or cite this entry.", "See also the next entry. Send feedback."),
    ("Loading, please wait. Your browser settings block some parts of this site.", "Follow us for more stories."),
)
_SUFFIXES = (("ies", "y"), ("ing", "ed"), ("ed", "ing"), ("ses", "s"), ("s", ""))
_CONFUSED = {
    "c": "e", "e": "c", "n": "u", "h": "li", "d": "cl", "1": "l", "0": "O", "b": "6", "f": "t", "v": "y", "w": "vv",
}  # fmt: skip
_SAME = dict(
    pair.split("=")
    for pair in """
    show=indicate shows=indicates method=approach methods=approaches result=outcome results=outcomes use=usage big=huge
    used=utilised using=with make=produce makes=produces effect=influence effects=influences study=examination
    problem=difficulty problems=difficulties system=arrangement systems=arrangements cause=trigger causes=triggers
    increase=rise increases=rises reduce=diminish reduces=diminishes important=crucial children=youngsters
    people=individuals country=state countries=states treatment=cure disease=ailment best=finest way=manner
    good=fine bad=poor new=recent old=former large=sizeable small=tiny work=labour help=support find=locate
    get=obtain buy=acquire start=commence stop=cease computer=machine computers=machines language=tongue
    should=ought because=as however=though therefore=hence also=likewise many=countless some=certain
    discussed=considered described=outlined given=supplied obtained=gained measured=gauged theory=account
    different=dissimilar between=among need=want learn=discover change=alter changes=alters risk=hazard
    """.split()
)


class Line(NamedTuple):
    """A training text.

    Attributes:
        text: the text.
        kind: of change, or of harmless look-alike.
        length: that of the test text, as in `LENGTHS`.
        test: the test text that leaks; empty for a harmless one.
    """

    text: str
    kind: str
    length: str
    test: str


class Bench(NamedTuple):
    """Test texts by id, and training lines, leaking and harmless ones in one order."""

    tests: dict[str, str]
    lines: list[Line]


def collection_texts(name: str) -> list[str]:
    """The distinct texts of a collection.

    `vaswani`; `cacm`; `beir` (topics of 22 sets); `arguana` (arguments); `bright` (topics of six tasks); `trec`
    (descriptions and narratives of robust04); `logs` (questions of NQ and TriviaQA).
    """
    if name == "vaswani":
        folder = SHARED / "collections" / "vaswani"
        texts = [document.text for document in open_documents(str(folder / "docs.trec.gz"))]
        texts += [topic.title for topic in read_topics(str(folder / "topics.trec.txt")).topics]
    elif name == "cacm":
        records = open_documents(str(SHARED / "collections" / "cacm" / "cacm.tar.gz"))
        # Without the line of date, authors and reference numbers that ends each record.
        texts = [_CACM.split(record.text)[0] for record in records]
    elif name == "trec":
        topics = read_topics(str(topic_path("robust04"))).topics
        # One text of a topic: its others ask for the same.
        texts = [(topic.narrative, topic.description)[place % 2] for place, topic in enumerate(topics)]
    elif name == "logs":
        texts = [query.text for one in ("nq-dev", "trivia-dev") for query in open_queries(str(log_path(one)))]
    else:
        folder, part = {"bright": ("bright", ""), "arguana": ("beir", "arguana"), "beir": ("beir", "")}[name]
        paths = sorted((SHARED / "topics" / folder).glob(f"{part}*.tsv.gz"))
        chosen = [path for path in paths if part or not path.name.startswith("arguana")]
        texts = [topic.title for path in chosen for topic in read_topics(str(path)).topics]
    return list(dict.fromkeys(" ".join(text.split()) for text in texts))


def sentences(text: str) -> list[str]:
    """The sentences of a text; runs of eleven words where it has no signs."""
    found = _SIGNS.split(text)
    if len(found) >= FEWEST_SENTENCES:
        return found
    every = text.split()
    return [" ".join(every[at : at + 11]) for at in range(0, len(every), 11)]


def planted(kind: str, text: str, other: str, draw: random.Random) -> str | None:
    """A text after one kind of change; None where it has none of the kind."""
    made = _CHANGES[kind](text, other, draw)
    return None if made is None or made == text else made


def _case(text: str, other: str, draw: random.Random) -> str:
    every = draw.choice((str.upper, str.lower, str.title))(text)
    return re.sub(r"[,.;:]", lambda found: draw.choice(("", found[0], " -")), every) + draw.choice(("", ".", "!", " …"))


def _wrapped(text: str, other: str, draw: random.Random) -> str:
    every, made, width = text.split(), [], draw.randrange(3, 12)
    for at in range(0, len(every), width):
        made.append(" ".join(every[at : at + width]))
    return draw.choice(("\n", "\n    ", "\t\n", " \u00a0\n")).join(made) if len(made) > 1 else "\n ".join(every)


def _framed(text: str, other: str, draw: random.Random) -> str:
    before, after = draw.choice(_FRAMES)
    return draw.choice((f"{before}\n\n{text}\n\n{after}", f"{before} {text}", f"{text} {after}"))


def _marked(text: str, other: str, draw: random.Random) -> str:
    every = html.escape(text, quote=False).split()
    for at in draw.sample(range(len(every)), max(1, len(every) // 6)):
        every[at] = draw.choice(("<em>{}</em>", "<span class='x'>{}</span>", '<a href="/p/1">{}</a>')).format(every[at])
    return f"<div>\n<p>{' '.join(every)}</p>\n</div>"


def _excerpt(text: str, other: str, draw: random.Random) -> str | None:
    every = text.split()
    if len(every) < CUTTABLE:
        return None
    size = max(10, round(len(every) * draw.uniform(0.35, 0.65)))
    start = draw.randrange(len(every) - size + 1)
    return " ".join(every[start : start + size])


def _cut(text: str, other: str, draw: random.Random) -> str | None:
    every = text.split()
    return None if len(every) < CUTTABLE else " ".join(every[: max(10, round(len(every) * draw.uniform(0.4, 0.8)))])


def _one_sentence(text: str, other: str, draw: random.Random) -> str | None:
    own, foreign = sentences(text), sentences(other)
    if len(own) < FEWEST_SENTENCES:
        return None
    own[draw.randrange(len(own))] = draw.choice(foreign)
    return " ".join(own)


def _reordered(text: str, other: str, draw: random.Random) -> str | None:
    every = text.split()
    parts = every if len(every) <= 16 else sentences(text)
    if len(parts) < 3:
        return None
    return " ".join(draw.sample(parts, len(parts)))


def _inflected(text: str, other: str, draw: random.Random) -> str | None:
    every = text.split()
    places = [at for at, word in enumerate(every) if len(word) > 4 and word.isalpha() and word.islower()]
    if not places:
        return None
    for at in draw.sample(places, min(len(places), max(1, len(every) // 12))):
        every[at] = _other_form(every[at], draw)
    return " ".join(every)


def _other_form(word: str, draw: random.Random) -> str:
    for end, new in _SUFFIXES:
        if word.endswith(end) and not word.endswith(("ss", "us", "is")) and len(word) - len(end) >= 3:
            return word.removesuffix(end) + new
    if word[-1] in "sxz" or word.endswith(("ch", "sh", "us", "is")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"


def _scanned(text: str, other: str, draw: random.Random) -> str:
    """One letter in forty misread, one blank in fifty lost."""
    made = [_CONFUSED[sign] if sign in _CONFUSED and draw.random() < 0.05 else sign for sign in text]
    return "".join("" if sign == " " and draw.random() < 0.02 else sign for sign in made)


def _typed(text: str, other: str, draw: random.Random) -> str | None:
    """A letter lost, doubled or swapped in one word of fifteen."""
    every = text.split()
    places = [at for at, word in enumerate(every) if len(word) > 3 and word.isalpha()]
    if not places:
        return None
    for at in draw.sample(places, min(len(places), max(1, len(every) // 15))):
        word = every[at]
        place = draw.randrange(1, len(word) - 1)
        ways = (
            word[:place] + word[place + 1 :],
            word[:place] + word[place] + word[place:],
            word[:place] + word[place + 1] + word[place] + word[place + 2 :],
        )
        every[at] = draw.choice(ways)
    return " ".join(every)


def _paraphrased(text: str, other: str, draw: random.Random) -> str | None:
    """Other words where the list has some, other articles, and the parts of sentences the other way round."""
    parts = []
    for part in sentences(text):
        every = [_SAME.get(word, word) for word in part.split()]
        every = [{"the": "this", "a": "one", "is": "was", "are": "were"}.get(word, word) for word in every]
        cut = draw.randrange(len(every)) if len(every) > 3 else 0
        parts.append(" ".join(every[cut:] + every[:cut]))
    changed = " ".join(parts)
    other_words = sum((Counter(text.split()) - Counter(changed.split())).values())
    return changed if other_words * 8 >= len(text.split()) else None


_CHANGES: Mapping[str, Callable[[str, str, random.Random], str | None]] = dict(
    zip(
        KINDS,
        (
            _case, _wrapped, _framed, _marked, _excerpt, _cut, _one_sentence, _reordered, _inflected, _scanned, _typed,
            _paraphrased,
        ),
        strict=True,
    )
)  # fmt: skip


def make(names: Sequence[str], per_cell: int, seed: int = SEED) -> Bench:
    """Plants leaks in the texts of some collections.

    One half of the texts is the test side, the other one gives foreign sentences and harmless look-alikes. A harmless
    text that has half of the three-word runs of a test text, or more, is left out: collections have duplicates.

    Args:
        names: of collections.
        per_cell: plants for each kind and length, and about as many harmless lines in all.
        seed: of all choices.
    """
    draw = random.Random(seed)
    pool = [text for name in names for text in collection_texts(name)]
    draw.shuffle(pool)
    sides = pool[: len(pool) // 2], pool[len(pool) // 2 :]
    by_length = [_by_length(side) for side in sides]
    tests: dict[str, str] = {}
    lines: list[Line] = []
    for length in LENGTHS:
        own, spare = by_length[0][length], by_length[1][length]
        if len(own) < 20 or len(spare) < 20:
            continue
        named = [(f"{length}/{number}", text) for number, text in enumerate(own[: 20 * per_cell])]
        tests |= dict(named)
        for kind in KINDS:
            lines += _plants(kind, length, named, spare, wanted=per_cell, seed=seed)
        lines += _harmless(length, named, spare, per_cell * len(KINDS) // len(HARMLESS), seed)
    lines = _without_real_copies(tests, lines)
    draw.shuffle(lines)
    return Bench(tests, lines)


def _by_length(texts: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {length: [] for length in LENGTHS}
    for text in texts:
        size = len(text.split())
        for length, (low, high) in LENGTHS.items():
            if low <= size <= high:
                found[length].append(text)
    return found


def _draw(*names: object) -> random.Random:
    return random.Random(zlib.crc32(" ".join(map(str, names)).encode()))


def _plants(
    kind: str, length: str, named: Sequence[tuple[str, str]], spare: Sequence[str], *, wanted: int, seed: int
) -> Iterator[Line]:
    order = _draw(seed, kind, length).sample(list(named), len(named))
    found = 0
    for name, text in order:
        draw = _draw(seed, kind, name)
        made = planted(kind, text, draw.choice(spare), draw)
        if made is not None:
            yield Line(made, kind, length, name)
            found += 1
        if found == wanted:
            return


def _harmless(
    length: str, named: Sequence[tuple[str, str]], spare: Sequence[str], wanted: int, seed: int
) -> Iterator[Line]:
    draw = _draw(seed, length, "harmless")
    for text in draw.sample(list(spare), min(wanted, len(spare))):
        yield Line(text, "another text", length, "")
    nearest = _nearest([text for _, text in draw.sample(list(named), min(wanted, len(named)))], spare)
    yield from (Line(text, "nearest text", length, "") for text in nearest)
    words = [word for text in spare for word in text.split() if len(word) > 4 and word.isalpha()]
    rare = Counter(words)
    words = [word for word in words if rare[word] <= 20] or words
    # In a long text with another word here and there, the rest would be a leak.
    for _, text in draw.sample(list(named), min(wanted, len(named)) if len(named[0][1].split()) < CUTTABLE else 0):
        yield Line(_exchanged(text, words, draw), "one word exchanged", length, "")
    for text in draw.sample(list(spare), min(wanted, len(spare))):
        yield Line(f"{text} {_FOOTER}", "the same footer", length, "")


def _exchanged(text: str, words: Sequence[str], draw: random.Random) -> str:
    """Another question in the same frame: the longest word is another one."""
    every = text.split()
    every[max(range(len(every)), key=lambda place: len(every[place]))] = draw.choice(words)
    return " ".join(every)


def _nearest(texts: Sequence[str], spare: Sequence[str]) -> list[str]:
    """For each text, that of the other half with which it shares the most rare words."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(spare):
        for word in {*text.lower().split()}:
            holders[word].append(number)
    found = []
    for text in texts:
        scores: Counter[int] = Counter()
        for word in {*text.lower().split()}:
            if 0 < len(holders[word]) <= len(spare) // 20 + 1:
                for number in holders[word]:
                    scores[number] += 1 / len(holders[word])
        if scores:
            found.append(spare[max(scores, key=lambda number: (scores[number], -number))])
    return list(dict.fromkeys(found))


def _runs(text: str) -> set[str]:
    every = re.findall(r"\w+", text.lower())
    return {" ".join(every[at : at + 3]) for at in range(max(1, len(every) - 2))}


def _without_real_copies(tests: Mapping[str, str], lines: Sequence[Line]) -> list[Line]:
    """The lines without texts of the other half that really are nearly a test text."""
    holders: defaultdict[str, list[str]] = defaultdict(list)
    sizes = {}
    for name, text in tests.items():
        runs = _runs(text)
        sizes[name] = len(runs)
        for run in runs:
            holders[run].append(name)
    kept = []
    for line in lines:
        if line.kind in HARMLESS[:2]:
            runs = _runs(line.text)
            common = Counter(name for run in runs for name in holders.get(run, ()))
            if any(2 * count >= min(sizes[name], len(runs)) for name, count in common.items()):
                continue
        kept.append(line)
    return kept


def with_footers(tests: Mapping[str, str]) -> dict[str, str]:
    """The test texts, one in ten of those from 17 words on with a footer that harmless lines have, too."""
    return {
        name: f"{text} {_FOOTER}" if number % 10 == 0 and len(text.split()) >= CUTTABLE else text
        for number, (name, text) in enumerate(tests.items())
    }
