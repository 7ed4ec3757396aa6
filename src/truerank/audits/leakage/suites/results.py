"""What the comparison of a suite found: cells, pairs, and what the comparison can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import polars as pl

from truerank.audits.leakage.results import Sensitivity
from truerank.audits.leakage.suites.reading import Suite
from truerank.overlaps import OVERLAPS, OverlapRules
from truerank.reports.results import Result

CELLS: Final[dict[str, Any]] = {
    "training": pl.String,
    "test": pl.String,
    "part": pl.String,
    "items": pl.Int64,
    "training_texts": pl.Int64,
    "exact": pl.Int64,
    "ngram": pl.Int64,
    "words": pl.Int64,
    "semantic": pl.Int64,
    "leaking": pl.Int64,
    "proposed": pl.Int64,
    "pairs": pl.Int64,
    "verdict": pl.String,
    "upper": pl.Int64,
    "reason": pl.String,
}
MATRIX_PAIRS: Final[dict[str, Any]] = {
    "training": pl.String,
    "source": pl.String,
    "test": pl.String,
    "part": pl.String,
    **OVERLAPS,
}


@dataclass(frozen=True, repr=False)
class LeakageMatrix(Result, shown_in="truerank.audits.leakage.suites.report"):
    """Every training set against every test set.

    Attributes:
        suite: the sets.
        rules: what counts as an overlap.
        encoder: the name of the encoder; empty where none was asked.
        cells: columns as in `CELLS`, by training set, test set and part (query, document, pair). `items` are topics or
            documents of the test set; `exact`, `ngram` (n-grams, near-duplicates, containment), `words` (the same
            content words, or one letter apart) and `semantic` count those with that evidence, null where it was not
            asked or the encoder can read no text of a side; `leaking` those with any but words, `proposed` those with
            words only; `upper` bounds the items that leak in the same words, null where nothing bounds them.
        pairs: columns as in `MATRIX_PAIRS`; `source` is the training set that holds the text, the row's own or one
            whose data it inherits.
        checks: by test set, which planted rewordings would have been found.
        texts: by name of set, how many texts were compared, by part.
        boilerplate: by test set, passages that many of its texts hold, with their counts; they were left out of both
            sides of its cells.
        folder: where the artifacts are.
        work: what this run did and what it found done: for people, not part of the artifacts.
    """

    suite: Suite
    rules: OverlapRules
    encoder: str
    cells: pl.DataFrame
    pairs: pl.DataFrame
    checks: Mapping[str, Sensitivity]
    texts: Mapping[str, Mapping[str, int]]
    boilerplate: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    folder: Path | None = None
    work: tuple[str, ...] = ()

    verdict_words: ClassVar[tuple[str, ...]] = ("CONTAMINATED", "UNKNOWN", "CLEAN")

    def json(self) -> dict[str, Any]:
        """All but the pairs as plain values."""
        return {
            "encoder": self.encoder,
            "threshold": self.rules.threshold,
            "training": [
                {
                    "name": one.name,
                    "license": one.license,
                    "parents": list(one.parents),
                    "texts": dict(self.texts.get(f"training {one.name}", {})),
                }
                for one in self.suite.training
            ],
            "tests": [
                {
                    "name": one.name,
                    "license": one.license,
                    "texts": dict(self.texts.get(f"test {one.name}", {})),
                    "sensitivity": list(self.checks[one.name]["kinds"]) if one.name in self.checks else [],
                    "boilerplate": [dict(row) for row in self.boilerplate.get(one.name, ())],
                }
                for one in self.suite.tests
            ],
            "cells": self.cells.to_dicts(),
        }
