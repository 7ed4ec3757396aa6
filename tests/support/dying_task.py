"""A task whose worker process ends without a word; in a module of its own, which a process imports quickly."""

from __future__ import annotations

import os
from typing import NamedTuple


class Block(NamedTuple):
    """Some work."""

    number: int


class Dying:
    """Ends the process that works."""

    def open(self):
        """Opens nothing."""
        return lambda block: os._exit(9)
