"""Text files as blocks of lines: decoded at once where the bytes are UTF-8, line by line where they are not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from truerank.errors import InputError
from truerank.sources import compressed

_LONGEST_LINE: Final = 1 << 28
#: Each line is a comment, so that a topic called "#" ends the header.
_METADATA: Final = re.compile(
    rb"#[ \t]*ir_metadata\.start[ \t\r]*\n(?:#[^\n]*\n)*?#[ \t]*ir_metadata\.end[ \t\r]*(?:\n|$)"
)
_BOM: Final = b"\xef\xbb\xbf"


class LineBlock(NamedTuple):
    """Consecutive lines.

    `first` is the number of the first one, `text` holds them with "\\n" between them, `repaired` the positions (from 0)
    of those that were not UTF-8.
    """

    first: int
    text: str
    repaired: frozenset[int] = frozenset()

    @property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return self.text.split("\n")

    def __len__(self) -> int:
        return self.text.count("\n") + 1

    def without_first(self) -> LineBlock:
        """The block without its first line."""
        rest = self.text.partition("\n")[2]
        return LineBlock(self.first + 1, rest, frozenset(position - 1 for position in self.repaired if position))


class Line(NamedTuple):
    """One line, its number counted from 1, and whether it was repaired."""

    number: int
    text: str
    repaired: bool


def line_blocks(path: Path, *, strict: bool = False) -> Iterator[LineBlock]:
    r"""The lines of a text file, compressed or not, in blocks of about 1 MiB.

    Lines end with "\n" or "\r\n" and nothing else; a byte order mark is dropped; a line whose bytes are not UTF-8 is
    read as latin-1.
    """
    for first, data in byte_blocks(path):
        yield block_of(first, data, path, strict=strict)


def byte_blocks(path: Path, size: int = 0) -> Iterator[tuple[int, bytes]]:
    r"""The bytes of whole lines of a text file, compressed or not, with the number of the first of them.

    Args:
        size: how many bytes a block has at least, but the last one; 0 for about 1 MiB.
    """
    number, held, length = 1, [b""], 0
    try:
        for piece in compressed.chunks(path):
            end = piece.rfind(b"\n") if length + len(piece) >= size else -1
            if end < 0:
                held.append(piece)
                length += len(piece)
                _check_length(held, path, number)
                continue
            data = _unmarked(b"".join([*held, piece[:end]]), number)
            held, length = [piece[end + 1 :]], len(piece) - end - 1
            following = number + data.count(b"\n") + 1
            header = metadata_header(data) if number == 1 else 0
            yield (number + data[:header].count(b"\n"), data[header:]) if header else (number, data)
            number = following
    except compressed.BrokenFileError as error:
        line = number + sum(piece.count(b"\n") for piece in held)
        raise InputError(error.fault, error.remedy, where=path, line=line) from error
    if last := b"".join(held):
        data = _unmarked(last, number)
        header = metadata_header(data) if number == 1 else 0
        yield number + data[:header].count(b"\n"), data[header:]


def metadata_header(data: bytes) -> int:
    """The length of the metadata header with which a run begins: comments from `ir_metadata.start` to `….end`.

    Args:
        data: the first bytes of the file.

    Returns:
        Its bytes, the end of the last line included; 0 without a header.

    Source: Breuer, Keller, Schaer, ir_metadata: An Extensible Metadata Schema for IR Experiments (SIGIR 2022).
    """
    match = _METADATA.match(data)
    return 0 if match is None else match.end()


def block_of(first: int, data: bytes, path: Path, *, strict: bool = False) -> LineBlock:
    """Bytes from `byte_blocks` as text, read as latin-1 line by line where they are not UTF-8."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _repaired_block(data, first, path, strict)
    return LineBlock(first, _without_returns(text))


def numbered_lines(path: Path, *, strict: bool = False) -> Iterator[Line]:
    """The lines of a text file one by one; arguments and errors as in `line_blocks`."""
    for block in line_blocks(path, strict=strict):
        for offset, text in enumerate(block.lines):
            yield Line(block.first + offset, text, offset in block.repaired)


def whole_text(path: Path, *, strict: bool = False) -> tuple[str, frozenset[int]]:
    """A small text file in one piece, with the numbers of the lines that were repaired."""
    texts: list[str] = []
    repaired: set[int] = set()
    for block in line_blocks(path, strict=strict):
        texts.append(block.text)
        repaired.update(block.first + offset for offset in block.repaired)
    return "\n".join(texts), frozenset(repaired)


def decoded(raw: bytes, path: Path, line: int, *, strict: bool) -> tuple[str, bool]:
    """Bytes as text, read as latin-1 where they are not UTF-8; the second value says whether they were not."""
    try:
        return raw.decode("utf-8"), False
    except UnicodeDecodeError as error:
        if strict:
            raise InputError(
                f"byte 0x{raw[error.start]:02x} is not UTF-8",
                "convert the file, or leave out --strict",
                where=path,
                line=line,
            ) from error
        return raw.decode("latin-1"), True


def _unmarked(data: bytes, first: int) -> bytes:
    return data.removeprefix(_BOM) if first == 1 else data


def _repaired_block(data: bytes, first: int, path: Path, strict: bool) -> LineBlock:
    lines: list[str] = []
    repaired: set[int] = set()
    for offset, raw in enumerate(data.split(b"\n")):
        text, broken = decoded(raw, path, first + offset, strict=strict)
        lines.append(text)
        if broken:
            repaired.add(offset)
    return LineBlock(first, _without_returns("\n".join(lines)), frozenset(repaired))


def _without_returns(text: str) -> str:
    return text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text


def _check_length(pieces: list[bytes], path: Path, line: int) -> None:
    if sum(map(len, pieces)) > _LONGEST_LINE:
        raise InputError(
            f"a line of more than {_LONGEST_LINE >> 20} MiB", "this is no text file of lines", where=path, line=line
        )
