"""The planter of faults: the halves of the wordings share none, and the same draw writes the same bytes."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

STUDIES = str(Path(__file__).parents[3] / "studies")
WORDS = "array buffer cipher deque entropy filter grammar heap index join kernel lexer matrix node orbit parser".split()
#: Keys of notices.toml whose entries are titles with texts.
NOTICES = ("error", "login", "paywall", "metered", "consent", "removed", "robot", "maintenance", "parked")
FURTHER = (*NOTICES, "script")


@pytest.fixture(scope="module", autouse=True)
def studies() -> Iterator[None]:
    before = set(sys.modules)
    sys.path.insert(0, STUDIES)
    yield
    sys.path.remove(STUDIES)
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("planted", "common"):
            del sys.modules[name]


def _writing() -> ModuleType:
    from planted import writing

    return writing


def _collection(name: str, count: int = 240) -> object:
    """Abstracts of random words, every second one relevant to a topic."""
    from planted.abstracts import Abstract, Abstracts

    draw = random.Random(name)

    def sentence() -> str:
        return " ".join(draw.choices(WORDS, k=12)).capitalize() + "."

    made = [
        Abstract(f"{name}{number}", f"On the {' '.join(draw.sample(WORDS, 3))}", tuple(sentence() for _ in range(5)))
        for number in range(count)
    ]
    relevant = {one.doc_id: (f"q{number % 7}",) for number, one in enumerate(made) if number % 2}
    return Abstracts(name, {one.doc_id: one for one in made}, {f"q{n}": WORDS[n] for n in range(7)}, relevant)


def _sentences(half: str) -> set[str]:
    from planted.records import notices

    part = notices()[half]
    pairs = {text for kind in FURTHER if kind in part for pair in part[kind] for text in pair if text}
    lines = ("banners", "menus", "comments", "cite", "licence", "footers", "front", "two_words")
    return {text.casefold() for text in pairs} | {text.casefold() for key in lines for text in part.get(key, ())}


@pytest.mark.parametrize("half", ["fourth", "fifth", "sixth"])
def test_later_draws_share_no_wording_with_those_before(half: str) -> None:
    from planted.pages import texts

    pages = {text.casefold() for part in ("errors", "boilerplate", "notices") for half in texts()[part].values()
             for entry in half for text in ([entry] if isinstance(entry, str) else entry)}  # fmt: skip
    halves = ("development", "report", "third", "fourth", "fifth", "sixth")
    earlier = pages.union(*(_sentences(one) for one in halves[: halves.index(half)]))
    assert not _sentences(half) & earlier


@pytest.mark.parametrize("half", ["fourth", "fifth"])
def test_later_draws_have_eight_wordings_of_every_kind_and_the_shares_of_the_third(half: str) -> None:
    from planted.draws import DRAWS
    from planted.records import kinds, notices

    assert all(len({tuple(pair) for pair in notices()[half][kind]}) >= 8 for kind in NOTICES)
    assert kinds(half) == kinds("third")  # type: ignore[arg-type]
    assert len({draw.seed for draw in DRAWS.values()}) == len(DRAWS)


@pytest.mark.parametrize("half", ["third", "fourth", "fifth"])
def test_same_draw_same_bytes(half: str, tmp_path: Path) -> None:
    writing = _writing()
    source, outside = _collection("a"), _collection("b")
    plan = writing.Plan(5, half, family="records", outside=outside)
    folders = [tmp_path / name for name in ("one", "two")]
    made = [writing.plant(source, folder, plan) for folder in folders]
    assert made[0].harmful > 0
    assert [path.read_bytes() for path in sorted(folders[0].iterdir())] == [
        path.read_bytes() for path in sorted(folders[1].iterdir())
    ]
    faults = {row["fault"] for row in writing.read_truth(folders[0])}
    assert {"paywall", "consent wall", "parked", "reworded", "sentences in another order", "menu above"} <= faults
