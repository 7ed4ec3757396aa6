"""A ranker: the share of the query's words that a document holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from truerank.rankers.base import Pair, Runtime, Scores, rounded, write_description

HERE = Runtime()


class Overlap:
    kind: ClassVar[str] = "overlap"
    default_model: ClassVar[str] = "words"

    def __init__(self, weight: float) -> None:
        self.weight = weight

    @classmethod
    def open(cls, place: str, runtime: Runtime = HERE, *, weight: float = 1.0) -> Self:
        return cls(float(weight))

    @property
    def name(self) -> str:
        return f"overlap ({self.weight:g})"

    @property
    def fingerprint(self) -> str:
        return self.name

    def score(self, pairs: Sequence[Pair]) -> Scores:
        shares = [
            len(set(pair.query.split()) & set(pair.document.split())) / max(len(set(pair.query.split())), 1)
            for pair in pairs
        ]
        return rounded(self.weight * np.array(shares, dtype=np.float64))

    def save(self, folder: Path) -> None:
        write_description(folder, self.kind, {"weight": self.weight})
