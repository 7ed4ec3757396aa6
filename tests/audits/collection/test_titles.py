"""Whether titles belong to the bodies below them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from truerank import collection

_WORDS = [f"{a}{b}{c}" for a in "bcdfghklmn" for b in "aeiou" for c in ("lor", "min", "tas", "ver", "dun", "pek")]


def _documents(count: int = 260) -> list[tuple[str, str]]:
    """Titles and bodies of their own subjects."""
    draw = random.Random(5)
    rows = []
    for _ in range(count):
        subject = draw.sample(_WORDS, 4)
        body = [draw.choice(subject if draw.random() < 0.3 else _WORDS) for _ in range(40)]
        rows.append((" ".join(subject), " ".join(body) + "."))
    return rows


def _kinds(folder: Path, titles: Sequence[str], bodies: Sequence[str]) -> dict[str, tuple[int, str]]:
    rows = [
        {"_id": f"d{at}", "title": title, "text": body}
        for at, (title, body) in enumerate(zip(titles, bodies, strict=True))
    ]
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = collection.audit(docs=str(folder / "docs.jsonl"))
    named = {one.kind.name: one for one in found.findings if "title" in one.kind.name}
    return {name: (one.count, str(one.examples[0]["detail"])) for name, one in named.items()}


@pytest.mark.parametrize("start", [0, 120])
@pytest.mark.parametrize(("step", "where"), [(1, "just before them in the file"), (-1, "just after them in the file")])
def test_titles_of_neighbours(tmp_path: Path, start: int, step: int, where: str) -> None:
    titles, bodies = zip(*_documents(), strict=True)
    moved = [titles[at] if at < start else titles[(at - step) % len(titles)] for at in range(len(titles))]
    found = _kinds(tmp_path, moved, bodies)
    assert [*found] == ["displaced-title"]
    count, said = found["displaced-title"]
    assert where in said and abs(count - (len(titles) - start)) <= 25


def test_titles_of_other_documents(tmp_path: Path) -> None:
    titles, bodies = zip(*_documents(), strict=True)
    mixed = random.Random(1).sample(titles, len(titles))
    assert [*_kinds(tmp_path, mixed, bodies)] == ["unrelated-title"]


def _innocent() -> dict[str, tuple[list[str], list[str]]]:
    titles, bodies = map(list, zip(*_documents(), strict=True))
    pieces = [
        (title, piece)
        for title, body in zip(titles, bodies, strict=True)
        for piece in (body[:90], body[90:180], body[180:])
    ]
    answers = [
        pair
        for title, body in zip(titles, bodies, strict=True)
        for pair in (("", f"Who knows {title}?"), (title, body))
    ]
    given = {
        "as they are": (titles, bodies),
        "numbers": ([f"Post {at}" for at in range(len(bodies))], bodies),
        "parts of papers": ([("Introduction", "Methods", "Results")[at % 3] for at in range(len(bodies))], bodies),
        "another language": ([" ".join(word[::-1] for word in title.split()) for title in titles], bodies),
        "no bodies": (titles, [""] * len(titles)),
        "few": (random.Random(1).sample(titles[:30], 30), bodies[:30]),
    }
    for name, rows in (("pieces of one whole", pieces), ("only answers have titles", answers)):
        given[name] = ([title for title, _ in rows], [body for _, body in rows])
    return given


@pytest.mark.parametrize("name", [*_innocent()])
def test_titles_that_say_little_or_stand_often_are_no_fault(tmp_path: Path, name: str) -> None:
    assert not _kinds(tmp_path, *_innocent()[name])
