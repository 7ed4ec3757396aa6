"""Texts of the same template and true copies among them: what `leakage examples` calls copies.

    python studies/look_alikes.py develop              # the half of families to work with
    python studies/look_alikes.py report --draws 20    # the other half: look at it once

In each draw, each family has 1, 2, 4, 8 or 16 members in the test set among texts of other kinds; the training data
hold as many others of it, or one, and copies of members with edits. A member in the training data is wrong where it
leaks. A copy counts where it is named with its text.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from common import require_shared, table
from second_hand_plants import SENTENCES, typed
from second_hand_texts import long_texts
from template_families import FAMILIES, fill
from truerank import leakage
from truerank.audits.leakage.training_data.results import ExampleOptions
from truerank.measures.magnitudes import proportion
from truerank.text.normalising import normalise

SIZES = (1, 2, 4, 8, 16)
HALVES = ("develop", "report")
MARK = re.compile(r"(?<=[.!?:])\s+|\n+")


class Line(NamedTuple):
    """A text of the training side: of which family, how many members that has, what it is, and the text it copies."""

    text: str
    family: str
    size: int
    what: str
    test: str


def edited(text: str, draw: random.Random, side: int) -> str:
    """Some words left out, doubled or put in, as in a quick edit."""
    words = text.split(" ")
    for _ in range(max(1, len(words) // 20)):
        at = draw.randrange(len(words))
        words[at : at + 1] = draw.choice(([], [words[at], words[at]], ["really", words[at]], [words[at], "also"]))
    return " ".join(words)


def cut(text: str, draw: random.Random, side: int) -> str:
    """The first or last two thirds."""
    words = text.split(" ")
    size = 2 * len(words) // 3
    return " ".join(words[:size] if draw.random() < 0.5 else words[-size:])


def one_changed(text: str, draw: random.Random, side: int) -> str | None:
    """A sentence exchanged, in texts of four and more."""
    parts = MARK.split(text)
    if len(parts) < 4:
        return None
    parts[draw.randrange(len(parts))] = draw.choice(SENTENCES[side])
    return " ".join(parts)


def wrapped(text: str, draw: random.Random, side: int) -> str:
    """Another text around it, in lower case."""
    return f"{SENTENCES[side][0]} {text.lower()} {SENTENCES[side][1]}"


CHANGES: Mapping[str, Callable[[str, random.Random, int], str | None]] = {
    "typing errors": typed,
    "edited": edited,
    "cut": cut,
    "sentence changed": one_changed,
    "inside another text": wrapped,
}


def draw_of(side: int, number: int, texts: list[str]) -> tuple[dict[str, str], list[Line]]:
    """The test documents and the training lines of one draw; sizes take turns among the families."""
    draw = random.Random(f"{side} {number}")
    some = draw.sample(texts, 400)
    documents = {f"other{at}": text for at, text in enumerate(some[:200])}
    lines = [Line(text, "other", 0, "other", "") for text in some[200:]]
    for at, (family, halves) in enumerate(FAMILIES.items()):
        frames = halves[side]
        frame, size = frames[number // len(SIZES) % len(frames)], SIZES[(number + at) % len(SIZES)]
        members = {f"{family} {member}": fill(frame, draw) for member in range(size)}
        documents |= members
        others = 1 if draw.random() < 0.5 else size
        lines += [Line(fill(frame, draw), family, size, "other member", "") for _ in range(others)]
        for what, change in CHANGES.items():
            name = draw.choice(list(members))
            if text := change(members[name], draw, side):
                lines.append(Line(text, family, size, what, name))
    draw.shuffle(lines)
    return documents, lines


def named(documents: Mapping[str, str], lines: list[Line]) -> Iterator[tuple[Line, set[str]]]:
    """The test documents that each line is called a copy of."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)

        def write(name: str, rows: list[dict[str, str]]) -> str:
            (place / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            return str(place / name)

        topics = write("topics.jsonl", [{"_id": "1", "text": "which of the harbours closed before the storm"}])
        corpus = write("docs.jsonl", [{"_id": name, "text": text} for name, text in documents.items()])
        rows = [{"_id": f"e{at}", "query": "", "positive": line.text} for at, line in enumerate(lines)]
        options = ExampleOptions(docs=corpus, roles="query=query,positive=positive", sample=20)
        leaks = leakage.examples(write("t.jsonl", rows), topics, options=options).leaks.filter(kind="document-corpus")
        found = defaultdict(set)
        for text, document in leaks.select("training_text", "doc_id").iter_rows():
            found[normalise(text)].add(document)
        for line in lines:
            yield line, found[normalise(line.text)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", choices=HALVES)
    parser.add_argument("--draws", type=int, default=5, help="five give each family each size once")
    parser.add_argument("--wrong", type=int, default=0, help="show so many lines that went wrong")
    given = parser.parse_args()
    require_shared()
    side = HALVES.index(given.half)
    texts = [text for text in long_texts(side, random.Random(3)) if len(text) < 1500]
    seen = defaultdict[tuple[str, object], list[bool]](list)
    for number in range(given.draws):
        documents, lines = draw_of(side, number, texts)
        for line, names in named(documents, lines):
            copy = bool(line.test)
            hit = line.test in names if copy else bool(names)
            for key in (line.family, line.size, line.what, *([f"{line.what}, {line.size}"] * (line.size == 1))):
                seen["copies" if copy else "look-alikes", key].append(hit)
            if hit != copy and given.wrong > 0:
                given.wrong -= 1
                other = documents[line.test if copy else min(names)]
                print(f"--- {line.what}, {line.family}, {line.size}\nLINE {line.text}\nTEST {other}\n")
    for what in ("look-alikes", "copies"):
        rows = [(str(key), len(hits), _share(hits)) for (kind, key), hits in seen.items() if kind == what]
        print(table((what, "lines", "called copies (95%)"), rows) + "\n")


def _share(hits: list[bool]) -> str:
    one = proportion(sum(hits), len(hits), method="exact")
    return f"{sum(hits) / len(hits):.3f} ({one.low:.3f}–{one.high:.3f})"


if __name__ == "__main__":
    main()
