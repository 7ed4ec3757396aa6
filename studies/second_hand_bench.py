"""The test side and the training side of `second_hand.py`: planted leaks, look-alikes and harmless lines."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from second_hand_plants import DOCUMENT_KINDS, INSIDE, QUERY_KINDS, Change
from second_hand_texts import long_texts, short_texts, words_of

LENGTHS = ((12, "to 11 words"), (41, "12-40"), (121, "41-120"), (10**9, "121 and more"))
#: Frames whose facts differ; each has several texts on both sides, as in real collections.
FRAMES = {
    "same template": (
        "Listing {n}: a {a} flat with {m} rooms near the {b} market. Heating by {c}. Viewing on request; please "
        "quote the number when you write.",
        "Match report. {A} beat {B} by {m} goals to {k} in front of {n} people. The {c} side had more of the ball "
        "but lost it near the goal too often.",
        "Recall notice: the {a} {b}, batch {n}, may contain traces of {c}. Customers should return it to the shop. "
        "No other batch is affected.",
        "Vacancy {n}: the {a} department seeks a {b} for {m} months. You know {c} well and speak two languages. "
        "Apply with a letter by the end of the month.",
    ),
    "news on other events": (
        "{A} ({B}) - {n} people were brought to safety after a {a} broke out in a {b} on {c} street, police said on"
        " Monday. No one was hurt. The cause is being looked into.",
        "Shares in {A} fell {m} percent on Tuesday after the maker of {a} and {b} said that it would miss its goal "
        "for the year. Analysts had expected a profit of {n} million.",
        "A {a} of magnitude {m}.{k} struck {n} km south of {A} early on Friday, the {b} institute said. There were "
        "no reports of damage from {B} at first.",
    ),
    "definitions in one frame": (
        "{A} is a term from {b}. It means the state in which a {a} has no {c} left. See also: {B}.",
        "In {b}, {A} refers to any {a} that can be told from a {c} by its {d}. The word was first used in {n}.",
        "{A} (plural {A}s): a small {a} of the {b} family, with a {c} {d}; found in the hills of {B}.",
    ),
    "topics of one series": (
        "Find documents that discuss {a} in connection with {b}. A relevant document names at least one {c}. "
        "Documents on {d} alone are not relevant.",
        "I look for experiences with {a} and {b} from people who own a {c}. General remarks on {d} do not help me.",
    ),
}
FACTS = """
amber barley cedar delta ember fossil granite harvest indigo jasmine kettle lantern marble nickel orchid pepper quartz
ribbon saddle timber umbrella velvet walnut yogurt zipper anchor basket candle dagger engine feather glacier hammer
island jacket kernel ladder magnet needle oyster palace quiver rocket silver tunnel urchin valley window
""".split()
FOOTERS = (
    "The author taught botany in Graz for thirty years, keeps bees, and writes about gardens, wine and slow trains "
    "for several papers. Her last book was about hedges. She lives with two dogs on a former dairy farm.",
    "About the writer: he sailed as a ship's cook before he turned to translating crime novels from Danish. He "
    "reads the proofs of this column on a ferry, likes strong tea, and answers letters on the first Sunday of each "
    "month.",
)


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
    for kind, frames in FRAMES.items():
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
