"""Small collections for tests of the collection audit."""

from __future__ import annotations

import json
import random
from pathlib import Path

__all__ = ["docs", "text"]

WORDS = (
    "river bridge copper engine window garden letter winter signal paper valley market number doctor silver castle "
    "planet violin harbour lantern meadow thunder compass orchard"
).split()


def text(seed: int, length: int = 40) -> str:
    """A text of its own."""
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) + draw.choice("abcdefgh") for _ in range(length)) + "."


def docs(path: Path, records: list[tuple[str, str]]) -> str:
    """Writes documents."""
    path.write_text("".join(json.dumps({"_id": one, "text": said}) + "\n" for one, said in records))
    return str(path)
