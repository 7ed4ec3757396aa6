"""Text files as blocks of lines, or as frames where all lines have so many columns.

Lines are decoded at once where the bytes are UTF-8, one by one where they are not.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from truerank.arrays import SPREAD, Hashes
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
    number = 1
    for skipped, data in _whole_lines(path, size):
        number += skipped
        yield number, data.removesuffix(b"\n")
        number += line_ends(data)


def line_ends(data: bytes) -> int:
    """How many ends of lines there are; `bytes.count` takes twice as long."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))


def _whole_lines(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """How many lines of a metadata header are left out, and the bytes of whole lines, with the end of the last one.

    Nobody counts lines here: where a fault is, they are counted afterwards.
    """
    held: list[bytes] = []
    length, before = 0, 0
    try:
        for piece in compressed.chunks(path, size):
            end = piece.rfind(b"\n") + 1 if length + len(piece) >= size else 0
            length += len(piece)
            if end:
                data, rest = b"".join([*held, piece[:end]]), piece[end:]
                yield _without_header(data, first=not before)
                before += len(data)
                held, length = [rest] if rest else [], len(rest)
                continue
            held.append(piece)
            if length > _LONGEST_LINE:
                raise _too_long(path, before)
    except compressed.BrokenFileError as error:
        line = _line_after(path, before + length)
        raise InputError(error.fault, error.remedy, where=path, line=line) from error
    if length:
        yield _without_header(b"".join(held), first=not before)


def whole_bytes(path: Path) -> bytes:
    """The bytes of a text file that is read in one piece, compressed or not; no line is longer than of others."""
    return b"".join(data for _, data in _whole_lines(path, 0))


def _too_long(path: Path, before: int) -> InputError:
    fault = f"a line of more than {_LONGEST_LINE >> 20} MiB"
    return InputError(fault, "this is not a text file of lines", where=path, line=_line_after(path, before))


def _line_after(path: Path, size: int) -> int:
    """The number of the line that goes on after so many bytes."""
    line = 1
    for piece in compressed.chunks(path):
        line += piece[:size].count(b"\n")
        size -= len(piece)
        if size <= 0:
            break
    return line


def _without_header(data: bytes, *, first: bool) -> tuple[int, bytes]:
    """How many lines of a metadata header stand at the beginning of a file, and what follows."""
    data = data.removeprefix(_BOM) if first else data
    header = metadata_header(data) if first else 0
    return data[:header].count(b"\n"), data[header:]


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
            fault, remedy = f"byte 0x{raw[error.start]:02x} is not UTF-8", "convert the file, or leave out --strict"
            raise InputError(fault, remedy, where=path, line=line) from error
        return raw.decode("latin-1"), True


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


#: Bytes of text that are parsed at once.
_BLOCK: Final = 1 << 24
_PIECE: Final = 1 << 18
_SPACE, _NEWLINE = 32, 10
#: What `str.split` takes for a blank besides the space and the line feed.
_BLANKS: Final = tuple(bytes([code]) for code in b"\t\x0b\x0c\r\x1c\x1d\x1e\x1f")
_TO_SPACES: Final = bytes.maketrans(b"".join(_BLANKS), b" " * len(_BLANKS))
#: First bytes, in UTF-8, of the blanks beyond ASCII.
_WIDE_BLANKS: Final = (b"\xc2\x85", b"\xc2\xa0", b"\xe1\x9a\x80", b"\xe2\x80", b"\xe2\x81\x9f", b"\xe3\x80\x80")

#: One line, split at blanks, with the file and the line's number: the values of the frame's columns.
LineReader: TypeAlias = Callable[[list[str], Path, int], Sequence[Any]]


class Header(NamedTuple):
    """How lines below the names of columns are read; blanks separate where nothing does, `plain` if all count."""

    separator: str | None
    places: tuple[int, ...]
    plain: bool


class Repeat(NamedTuple):
    """A pair of topic and document that occurs twice: the positions of the two rows, counted from 0."""

    first: int
    second: int


def frames(
    path: Path,
    schema: Mapping[str, Any],
    layouts: Sequence[Sequence[str | None]],
    reader: LineReader,
    *,
    header: Callable[[str], Header | None],
) -> Iterator[pl.DataFrame]:
    """The lines of a text file, compressed or not, as frames of about 16 MiB of text.

    Lines that have single blanks or tabs between their columns, or can be made so cheaply, are parsed as columns.
    Where that fails the reader of single lines goes over the block: it raises the fault, or gives the same values.
    """
    number, head = 1, None
    for skipped, data in _whole_lines(path, _BLOCK):
        number += skipped
        if (place := data.find(b"\0")) >= 0:
            line = number + data.count(b"\n", 0, place)
            raise InputError("a NUL character, which is in no id", "write the file again", where=path, line=line)
        if number == 1 and (head := header(block_of(1, _first_line(data), path).text)):
            number, data = 2, data[len(_first_line(data)) + 1 :]
        plain = data.isascii() or not any(blank in data for blank in _WIDE_BLANKS)
        plain = plain and (head is None or (head.plain and not (head.separator and b" " in data)))
        frame = _parsed(data, schema, layouts) if plain else None
        lines = data.count(b"\n") if frame is None else len(frame)
        if frame is None and plain:
            frame = _parsed(_single_spaced(data), schema, layouts)
        if frame is None:
            frame = _by_line(data, number, path, schema, reader, head=head)
        number += lines
        if len(frame):
            yield frame


def cells_of(line: str, head: Header | None = None) -> list[str]:
    """The columns of a line that count; none of a blank one."""
    sign = head.separator if head and head.separator and head.separator in line.strip() else None
    parts = line.split(sign) if sign in (None, "\t") else next(csv.reader([line], delimiter=sign))
    cells = [cell.strip() for cell in parts]
    return cells if head is None or head.plain or len(cells) <= max(head.places) else [cells[at] for at in head.places]


def pair_keys(topics: pl.Series, documents: pl.Series) -> Hashes:
    """A hash for each pair of topic and document."""
    return np.asarray(topics.hash().to_numpy() * SPREAD ^ documents.hash().to_numpy())


def repeated_pair(topics: pl.Series, documents: pl.Series) -> Repeat | None:
    """The first row of a frame whose topic and document an earlier row has already, None where there is none."""
    keys = pair_keys(topics, documents)
    ordered = np.sort(keys)
    same = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(same):
        return None
    # Hashes may collide, so that what has the same one is compared in full.
    rows = np.flatnonzero(np.isin(keys, same))
    pairs = pl.DataFrame({"topic": topics.gather(rows), "document": documents.gather(rows), "row": rows})
    repeats = pairs.with_columns(pl.col("row").first().over("topic", "document").alias("first"))
    repeats = repeats.filter(pl.col("row") != pl.col("first"))
    return Repeat(repeats["first"][0], repeats["row"][0]) if len(repeats) else None


def raise_repeat(path: Path, pair: Repeat, header: Callable[[str], Header | None]) -> None:
    """Says of a pair that occurs twice which lines these are."""
    row, first_line, head = -1, 0, None
    for first, data in byte_blocks(path):
        for number, line in enumerate(block_of(first, data, path).lines, start=first):
            head = header(line) if number == 1 else head
            if not (cells := cells_of(line, head)) or (number == 1 and head):
                continue
            row += 1
            if row == pair.first:
                first_line = number
            if row == pair.second:
                document = cells[2 if len(cells) != 3 else 1]
                fault = f"topic {cells[0]} and document {document} are already in line {first_line}"
                raise InputError(fault, "remove one of the two lines", where=path, line=number)


def _parsed(data: bytes, schema: Mapping[str, Any], layouts: Sequence[Sequence[str | None]]) -> pl.DataFrame | None:
    """The lines as columns; None unless each has as many as the first one, single spaces between them, and numbers.

    Bytes that are not UTF-8 are refused, too, but for those in columns that nobody wants.
    """
    if not data:
        return pl.DataFrame(schema=schema)
    width = _first_line(data).count(b" ") + 1
    layout = next((names for names in layouts if len(names) == width), None)
    if layout is None:
        return None
    kinds = {name or f" {position}": schema.get(name or "", pl.String) for position, name in enumerate(layout)}
    places = [position for position, name in enumerate(layout) if name or position == width - 1]
    try:
        # What nobody wants is skipped, but for the last column.
        frame = pl.read_csv(data, has_header=False, separator=" ", quote_char=None, schema=kinds, columns=places)
    except pl.exceptions.PolarsError:
        return None
    floats = [frame[name] for name, kind in schema.items() if kind == pl.Float64]
    # A line that is too short holds a null, if only in the last column. Where none does, spaces and ends of lines are
    # as many as there have to be, unless a line is too long or has other blanks; two in a row are an empty column.
    ends = len(frame) - (not data.endswith(b"\n"))
    sound = not any(frame.null_count().row(0)) and _single_blanks(data) == (width - 1) * len(frame) + ends
    sound = sound and all(column.is_finite().all() for column in floats)
    return frame.select(list(schema)) if sound else None


def _single_blanks(data: bytes) -> int:
    """How many spaces and control characters there are; -1 where two of them stand in a row."""
    codes, found = np.frombuffer(data, np.uint8), 0
    # In pieces that the processor holds, each with the first byte of the next one.
    for start in range(0, len(codes), _PIECE):
        blank = codes[start : start + _PIECE + 1] <= _SPACE
        if (blank[1:] & blank[:-1]).any():
            return -1
        found += int(np.count_nonzero(blank[:_PIECE]))
    return found


def _single_spaced(data: bytes) -> bytes:
    """The block with one space between columns and no blank lines."""
    lines = (b" ".join(line.split()) for line in data.translate(_TO_SPACES).split(b"\n"))
    return b"\n".join(line for line in lines if line)


def _first_line(data: bytes) -> bytes:
    end = data.find(b"\n")
    return data if end < 0 else data[:end]


def _by_line(
    data: bytes, first: int, path: Path, schema: Mapping[str, Any], reader: LineReader, *, head: Header | None
) -> pl.DataFrame:
    rows = []
    for number, line in enumerate(block_of(first, data, path).lines, start=first):
        if cells := cells_of(line, head):
            try:
                rows.append(reader(cells, path, number))
            except InputError:
                if not cells[0].startswith("#"):  # a comment
                    raise
    return pl.DataFrame(rows, schema=dict(schema), orient="row")
