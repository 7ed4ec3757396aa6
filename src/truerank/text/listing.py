"""Names in a sentence: all of them, or the first few."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; empty without names."""
    return " and ".join((*filter(None, [", ".join(names[:-1])]), *names[-1:]))


def first_few(names: Sequence[str], most: int) -> str:
    """`a, b …`, where there are more than so many."""
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def and_more(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`, where there are more than so many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
