"""A task that ranks with mapped features in a worker and says how the worker holds them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from truerank.audits.pool.active import ModelQuery, rank
from truerank.audits.pool.features import Features


class MappingBlock(NamedTuple):
    number: int


class MappingTask(NamedTuple):
    """Ranks by four models; the result is what was ranked first, and the kilobytes of each mapped file that are copies
    of this process alone."""

    index: Path

    def open(self) -> Callable[[MappingBlock], tuple[list[list[int]], dict[str, int]]]:
        features = Features.of_index(self.index)

        def work(block: MappingBlock) -> tuple[list[list[int]], dict[str, int]]:
            draw, terms = np.random.default_rng(3), np.arange(len(features.terms))
            none = np.empty(0, np.int64)
            asked = [ModelQuery(terms, draw.normal(size=len(terms)), none, 5, np.uint64(7)) for _ in range(4)]
            found = rank(features, asked)
            maps = re.findall(r"^\S+ r--\S* .*/features/(\S+)\n((?:\w+:.*\n)*)", _maps(), re.MULTILINE)
            return found, {name: int(re.findall(r"Anonymous:\s+(\d+)", facts)[0]) for name, facts in maps}

        return work


def _maps() -> str:
    return Path("/proc/self/smaps").read_text()
