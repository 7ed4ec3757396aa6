"""Word vectors: GloVe and word2vec files, text or binary; the word-piece table of a local encoder."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.sources import compressed
from truerank.sources.lines import numbered_lines
from truerank.vectors.encoders.packaged import PACKAGED, packaged_folder
from truerank.vectors.encoders.weights import file_hash, open_weights, weight_files

Floats = NDArray[np.float32]

#: Names that the table of input embeddings has in checkpoints, the likeliest first.
_TABLES: Final = ("word_embeddings.weight", "embed_tokens.weight", "shared.weight", "wte.weight", "embeddings.weight")
_LONGEST_WORD: Final = 4096
#: Numbers of a vector, and digits of a number in the first line, at most.
_WIDEST: Final = 1 << 20
_DIGITS: Final = 15
_HEADER: Final = 64


class WordTable(NamedTuple):
    """Words and their vectors, shape (words, dimension)."""

    words: tuple[str, ...]
    vectors: Floats


class PieceTable(NamedTuple):
    """The word pieces of an encoder: its tokenizer as JSON, the vectors of its ids, shape (ids, dimension), and the
    hash of the files."""

    tokenizer: str
    vectors: Floats
    sha256: str


def read_word_vectors(path: str | Path, keep: Container[str] | None = None) -> WordTable:
    """Reads a file of word vectors: GloVe's text, word2vec's text or word2vec's binary form, compressed or not."""
    source = Path(path)
    header = _header(source)
    if header is not None and _is_binary(source):
        found = _binary(source, *header, keep)
    else:
        found = _text(source, None if header is None else header[1], keep)
    words: dict[str, int] = {}
    rows: list[Floats] = []
    for word, vector in found:
        if word not in words:
            words[word] = len(rows)
            rows.append(vector)
    if not rows:
        raise InputError(
            "no vector of a word that is needed", "give vectors of the collection's language", where=source
        )
    vectors = np.stack(rows)
    if not np.isfinite(vectors).all():
        raise InputError("a vector holds what is no number", "download the file again", where=source)
    return WordTable(tuple(words), vectors)


def read_piece_table(name: str) -> PieceTable:
    """Reads tokenizer and input embeddings of a local encoder; the encoder itself is not run."""
    folder = packaged_folder() if name == PACKAGED else Path(name)
    tokenizer, files = folder / "tokenizer.json", weight_files(folder)
    if not tokenizer.is_file() or not files:
        raise InputError("no tokenizer.json and model.safetensors here", "give a local encoder", where=folder)
    weights = open_weights(files)
    table = next((found for end in _TABLES for found in sorted(weights.names) if found.endswith(end)), None)
    if table is None:
        raise InputError("no table of word pieces", "give an encoder of the BERT, T5 or GPT family", where=files[0])
    text = tokenizer.read_text(encoding="utf-8")
    return PieceTable(text, weights.tensor(table), file_hash(tokenizer, *files))


def _header(path: Path) -> tuple[int, int] | None:
    """Words and dimension, where the first line says so as word2vec does."""
    cells = compressed.head(path)[:_HEADER].partition(b"\n")[0].split()
    if len(cells) != 2 or not all(cell.isdigit() for cell in cells):
        return None
    # A number takes at least two bytes in each form. Of a compressed file, only the dimension is bounded.
    room = path.stat().st_size if compressed.is_plain(path) else _WIDEST * _WIDEST
    if (
        any(len(cell) > _DIGITS for cell in cells)
        or int(cells[1]) > _WIDEST
        or 2 * int(cells[0]) * int(cells[1]) > room
    ):
        fault = f"its first line names {_short(cells[0])} words of {_short(cells[1])} numbers, more than the file holds"
        raise InputError(fault, "download the file again", where=path, line=1)
    return int(cells[0]), int(cells[1])


def _short(cell: bytes) -> str:
    return cell.decode() if len(cell) <= _DIGITS else f"{cell[:_DIGITS].decode()}…"


def _is_binary(path: Path) -> bool:
    """Whether what follows the header's line is no text of numbers."""
    body = compressed.head(path).partition(b"\n")[2]
    line = body.partition(b"\n")[0]
    try:
        cells = line.decode("utf-8").split(" ")
        _numbers(cells[1:3])
    except (UnicodeDecodeError, ValueError):
        return True
    return len(cells) < 2


def _numbers(cells: list[str]) -> Floats:
    return np.array(cells, dtype=np.float32)


def _text(path: Path, dimension: int | None, keep: Container[str] | None) -> Iterator[tuple[str, Floats]]:
    skipped = dimension is None
    for line in numbered_lines(path):
        if not skipped:
            skipped = True
            continue
        text = line.text.rstrip()
        if not text:
            continue
        if dimension is None:
            dimension = len(text.split(" ")) - 1
        # From the right, because words of some files hold blanks.
        cells = text.rsplit(" ", dimension)
        if dimension < 1 or len(cells) != dimension + 1:
            fault = f"not a word and {max(dimension, 1)} numbers"
            raise InputError(fault, "give GloVe or word2vec vectors", where=path, line=line.number)
        if keep is not None and cells[0] not in keep:
            continue
        try:
            yield cells[0], _numbers(cells[1:])
        except ValueError as error:
            fault = f"not a word and {dimension} numbers"
            raise InputError(fault, "give GloVe or word2vec vectors", where=path, line=line.number) from error


def _binary(path: Path, count: int, dimension: int, keep: Container[str] | None) -> Iterator[tuple[str, Floats]]:
    with compressed.plain_file(path) as plain, plain.open("rb") as stream:
        stream.readline()
        for number in range(count):
            word = _binary_word(stream, path, number)
            data = stream.read(4 * dimension)
            if len(data) != 4 * dimension:
                raise InputError(f"cut off after {number:,} of {count:,} words", "download the file again", where=path)
            if keep is None or word in keep:
                yield word, np.frombuffer(data, "<f4").astype(np.float32)


def _binary_word(stream: Any, path: Path, number: int) -> str:
    letters = bytearray()
    while (letter := stream.read(1)) not in (b" ", b""):
        letters += letter
        if len(letters) > _LONGEST_WORD:
            raise InputError(f"word {number + 1:,} has no end", "give word2vec's binary form", where=path)
    # Some writers end every vector with a line end.
    return letters.lstrip(b"\n").decode("utf-8", "replace")
