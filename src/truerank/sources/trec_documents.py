"""Files of `<DOC>` records, streamed: one record at a time, with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from truerank.errors import InputError
from truerank.sources.lines import LineBlock, line_blocks

__all__ = ["TrecRecord", "trec_records"]

_BEGIN: Final = re.compile(r"<doc\b[^>]*>", re.IGNORECASE)
_END: Final = re.compile(r"</doc\s*>", re.IGNORECASE)
_LARGEST: Final = 1 << 28


class TrecRecord(NamedTuple):
    """What stands between `<DOC>` and `</DOC>`, the line of the former, and whether one of its lines was repaired."""

    text: str
    line: int
    repaired: bool


def trec_records(
    path: Path, *, strict: bool = False, blocks: Iterable[LineBlock] | None = None
) -> Iterator[TrecRecord]:
    """The records of a file of `<DOC>` records, compressed or not.

    Args:
        path: the file.
        strict: raise for bytes that are not UTF-8.
        blocks: its lines, where they do not come from a file of their own; `path` then names it in messages.

    Raises:
        InputError: text outside the records, a record without end, or what reading raises.
    """
    held, line = "", 1
    repaired: set[int] = set()
    for block in line_blocks(path, strict=strict) if blocks is None else blocks:
        held = f"{held}\n{block.text}" if held else block.text
        if not repaired and not held.strip():
            continue
        line = block.first + len(block) - 1 - held.count("\n")
        repaired.update(block.first + offset for offset in block.repaired)
        position = 0
        for end in _END.finditer(held):
            begin = _begin(held, position, end.start(), path, line)
            line += held.count("\n", position, begin.start())
            last = line + held.count("\n", begin.start(), end.end())
            touched = bool(repaired) and any(line <= number <= last for number in repaired)
            yield TrecRecord(held[begin.end() : end.start()], line, touched)
            line, position = last, end.end()
        held = held[position:].lstrip(" \t\r")
        if position:
            repaired = {number for number in repaired if number >= line}
        if len(held) > _LARGEST:
            raise InputError("a <DOC> of more than 256 MiB", "is its </DOC> missing?", where=path, line=line)
    if held.strip():
        fault = "a <DOC> without </DOC>" if _BEGIN.search(held) else "text outside <DOC>"
        number = line + held.count("\n", 0, len(held) - len(held.lstrip()))
        raise InputError(fault, "the file is cut off or broken: copy it again", where=path, line=number)


def _begin(held: str, start: int, stop: int, path: Path, line: int) -> re.Match[str]:
    begin = _BEGIN.search(held, start, stop)
    if begin is None or held[start : begin.start()].strip():
        blank = len(held[start:]) - len(held[start:].lstrip())
        raise InputError(
            "text outside <DOC>",
            "put every document between <DOC> and </DOC>",
            where=path,
            line=line + held.count("\n", start, start + blank),
        )
    return begin
