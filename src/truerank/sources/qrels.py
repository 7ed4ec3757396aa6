"""Relevance judgments, as a stream of records or as columns, with the line of every fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.loading import decimal_number
from truerank.records import Qrel
from truerank.sources import compressed, formats, grammar, irds, lines
from truerank.sources.distinct import IdWindow
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import byte_blocks, decoded
from truerank.sources.pair_tables import judgment_columns, parquet_pairs, refuse_repeat
from truerank.sources.sharing import shared_frames
from truerank.text.printable import counted

#: The columns of judgments as a frame.
QREL_SCHEMA: Final[dict[str, Any]] = {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
#: The first line of judgments in a BEIR folder.
BEIR_HEADER: Final = ("query-id", "corpus-id", "score")
_LAYOUTS: Final = (("topic_id", None, "doc_id", "relevance"), ("topic_id", "doc_id", "relevance"))
_LARGEST: Final = 2**31 - 1
_DECIMAL: Final = re.compile(r"-?\d*\.\d*[1-9]\d*")
_ROWS: Final = 1 << 16
#: Judgments whose pairs are remembered, at least half of them.
_WINDOW: Final = 1 << 21


class QrelLine(NamedTuple):
    """One line of a file of judgments: its number, its bytes without the end, and what it says.

    `said` is a judgment, the fault of a line that is none, or None for a blank line, a header and a comment.
    """

    number: int
    raw: bytes
    said: Qrel | InputError | None
    head: lines.Header | None = None


def read_qrels(spec: str | SourceSpec) -> Iterator[Qrel]:
    """Reads relevance judgments.

    TREC lines `topic iteration document relevance` (blanks or tabs), BEIR lines `query TAB document TAB score`, with or
    without a header; tables whose header names a topic, a document and a grade (CSV, too); a BEIR folder
    (`qrels/test.tsv`), Parquet with the columns of `QREL_SCHEMA` (or the names that other programs give them), an
    ir_datasets id.

    Args:
        spec: the source, see `grammar.parse`.

    Yields:
        The judgments in the order of the source, block by block.

    Raises:
        InputError: not readable; a line with another number of columns or without a whole number as relevance; a pair
            of topic and document that appears twice (within the last million lines); no judgment at all.
    """
    spec = _checked(spec)
    if spec.scheme == "irds":
        return irds.qrels(spec.location)
    path = qrels_path(spec.path)
    if formats.detect(path) == "parquet" or has_decimals(path):
        return (Qrel(*row) for frame in qrel_frames(spec) for row in frame.iter_rows())
    return _file_qrels(spec, path)


def read_qrels_frame(spec: str | SourceSpec) -> pl.DataFrame:
    """Reads relevance judgments as columns; the formats are those of `read_qrels`.

    Args:
        spec: the source, see `grammar.parse`.

    Returns:
        The judgments in the order of the source, columns as in `QREL_SCHEMA`.

    Raises:
        InputError: as in `read_qrels`; a pair of topic and document that occurs twice anywhere in the file; a relevance
            beyond 32 bits.
    """
    spec = _checked(spec)
    frame = pl.concat([pl.DataFrame(schema=QREL_SCHEMA), *qrel_frames(spec)], rechunk=True)
    if spec.scheme != "irds" and (pair := lines.repeated_pair(frame["topic_id"], frame["doc_id"])):
        refuse_repeat(qrels_path(spec.path), frame, pair, header_of)
    return frame


def qrel_frames(spec: str | SourceSpec) -> Iterator[pl.DataFrame]:
    """Reads judgments as columns, some 16 MiB of text at a time; pairs that occur twice are not looked for."""
    spec = _checked(spec)
    if spec.scheme == "irds":
        stream = irds.qrels(spec.location)
        while records := [(qrel.topic_id, qrel.doc_id, qrel.relevance) for qrel in islice(stream, _ROWS)]:
            yield pl.DataFrame(records, schema=QREL_SCHEMA, orient="row")
        return
    path = qrels_path(spec.path)
    found = False
    blocks: Callable[[], Iterator[pl.DataFrame]]
    blocks = partial(lines.frames, path, QREL_SCHEMA, _LAYOUTS, _values, header=header_of)
    if formats.detect(path) == "parquet":
        blocks = partial(parquet_pairs, path, QREL_SCHEMA)
    elif has_decimals(path):
        blocks = partial(_with_decimals, path)
    for frame in shared_frames(path, "qrels", blocks):
        found = True
        yield frame
    if not found:
        raise _nothing(path)


def has_decimals(path: Path) -> bool:
    """Whether grades with decimals are among the first judgments: 0.7, 1.5."""
    rows = compressed.head(path).decode("utf-8-sig", "replace").splitlines()
    head = header_of(rows[0]) if rows else None
    cells = (lines.cells_of(row, head) for row in rows)
    return any(len(own) in (3, 4) and _DECIMAL.fullmatch(own[-1]) for own in cells)


def header_of(first: str) -> lines.Header | None:
    """How the lines are read below a first one that names their columns; None where it is a judgment, or broken."""
    sign = next((one for one in "\t,;|" if first.count(one) > 1), None)
    cells = lines.cells_of(first, lines.Header(sign, (), plain=True))
    if (named := judgment_columns(cells)) is not None:
        places = tuple(map(cells.index, named))
        return lines.Header(sign, places, plain=sign in (None, "\t") and places == tuple(range(len(cells))))
    words = len(cells) in (3, 4) and sign in (None, "\t") and not re.search(r"\d|^#", first)
    return lines.Header(sign, tuple(range(len(cells))), plain=True) if words else None


def _with_decimals(path: Path) -> Iterator[pl.DataFrame]:
    """Judgments with decimals in their grades, as whole numbers."""
    kinds = QREL_SCHEMA | {"relevance": pl.Float64}
    frame = pl.concat(lines.frames(path, kinds, _LAYOUTS, _decimal_values, header=header_of))
    step = step_of(frame["relevance"])
    grades = (pl.col("relevance") * step).round()
    largest = float(abs(frame["relevance"].to_numpy()).max())
    if step * largest > _LARGEST or (step == 1 and not (frame["relevance"] % 1 == 0).all()):
        raise InputError("grades with more than two decimals, or too large", "write grades such as 0 to 3", where=path)
    yield frame.with_columns(grades.cast(pl.Int32))


def step_of(grades: Iterable[float]) -> int:
    """By how many times grades have to be multiplied to be whole: 1, 10 or 100; 1 where that does not do."""
    every = list(grades)
    return next((one for one in (1, 10, 100) if all(float(round(one * x, 6)).is_integer() for x in every)), 1)


def judged_pairs(spec: str | SourceSpec) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Judgments as they count, one row for each pair, and what has to be said of them."""
    checked = _checked(spec)
    frame, remarks = highest_grades(pl.concat([pl.DataFrame(schema=QREL_SCHEMA), *qrel_frames(checked)], rechunk=True))
    path = qrels_path(checked.path) if checked.scheme == "file" else None
    if path is not None and formats.detect(path) != "parquet" and has_decimals(path):
        largest = int(frame["relevance"].to_numpy().max())
        remarks = (f"Grades with decimals are counted as whole numbers, up to {largest}.", *remarks)
    return frame, remarks


def highest_grades(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """One row for each pair, of several grades the highest, as all commands count them; and what to say of it."""
    if lines.repeated_pair(frame["topic_id"], frame["doc_id"]) is None:
        return frame, ()
    keys = ("topic_id", "doc_id")
    pairs = frame.group_by(keys, maintain_order=True).agg(
        pl.col("relevance").max(), grades=pl.col("relevance").n_unique(), rows=pl.len()
    )
    unlike = pairs.filter(pl.col("grades") > 1)
    same = pairs.filter((pl.col("grades") == 1) & (pl.col("rows") > 1))
    remarks = [f"{counted(len(same), 'pair')} of topic and document repeated with one grade: each counts once."]
    if len(unlike):
        topic, doc = unlike.row(0)[:2]
        remarks.append(
            f"{counted(len(unlike), 'pair')} of topic and document judged with several grades, such as {topic} and "
            f"{doc}: the highest counts."
        )
    return pairs.select(frame.columns), tuple(remarks if len(same) else remarks[1:])


def qrel_lines(spec: str | SourceSpec) -> Iterator[QrelLine]:
    """Every line of a file of judgments, those that are not judgments too; the formats are those of `read_qrels`."""
    spec = _checked(spec)
    if spec.scheme != "file":
        raise InputError("lines are read from files", "give a path", where=spec.spec)
    path, head = qrels_path(spec.path), None
    for first, data in byte_blocks(path):
        for number, raw in enumerate(data.split(b"\n"), start=first):
            text, _ = decoded(raw, path, number, strict=False)
            head = header_of(text) if number == 1 else head
            cells = lines.cells_of(text, head)
            said: Qrel | InputError | None = None
            if cells and not (number == 1 and head):
                try:
                    said = _qrel(cells, path, number)
                except InputError as error:
                    said = None if cells[0].startswith("#") else error
            yield QrelLine(number, raw, said, head)


def qrel_text(frame: pl.DataFrame) -> str:
    """Judgments as the lines of a TREC file."""
    line = pl.format("{} 0 {} {}\n", "topic_id", "doc_id", "relevance")
    return "".join(frame.select(line.alias("line"))["line"])


def _checked(spec: str | SourceSpec) -> SourceSpec:
    spec = grammar.parse(spec) if isinstance(spec, str) else spec
    if spec.scheme == "hf":
        remedy = "download the file and give its path"
        raise InputError("judgments are not read from Hugging Face", remedy, where=spec.spec)
    if spec.scheme == "irds":
        irds.check(spec.location, "qrels")
    return spec


def qrels_path(path: Path) -> Path:
    """The file of judgments that a path stands for: `qrels/test.tsv` of a BEIR folder, or the file itself."""
    if compressed.is_folder(path):
        formats.queries_file(path)
        judgments = formats.qrels_file(path)
        if judgments is None:
            raise InputError("no qrels/test.tsv in this folder", "give the file of the judgments", where=path)
        path = judgments
    formats.detect(path)
    return path


def _file_qrels(spec: SourceSpec, path: Path) -> Iterator[Qrel]:
    window, lines, found = IdWindow(_WINDOW), qrel_lines(spec), False
    while block := list(islice(lines, _ROWS)):
        qrels: dict[int, Qrel] = {}
        for line in block:
            if isinstance(line.said, InputError):
                raise line.said
            if line.said is not None:
                qrels[line.number] = line.said
        numbers = list(qrels)
        pairs = [f"{qrel.topic_id}\t{qrel.doc_id}" for qrel in qrels.values()]
        _, conflict = window.add(pairs, list(map(str, numbers)), numbers)
        if conflict is not None:
            topic, document = pairs[conflict.position].split("\t")
            fault = f"topic {topic} and document {document} are already in line {conflict.first_line}"
            raise InputError(fault, "remove one of the two lines", where=path, line=numbers[conflict.position])
        found = found or bool(qrels)
        yield from qrels.values()
    if not found:
        raise _nothing(path)


def _nothing(path: Path) -> InputError:
    return InputError("no judgments in it", "give a file of lines: topic 0 document relevance", where=path)


def _decimal_values(cells: list[str], path: Path, line: int) -> tuple[str, str, float]:
    """The judgment of a line whose grade may have decimals."""
    grade = decimal_number(cells[-1]) if cells[-1] else None
    topic, doc, _ = _values(cells if grade is None else [*cells[:-1], "0"], path, line)
    return topic, doc, grade or 0.0


def _values(cells: list[str], path: Path, line: int) -> tuple[str, str, int]:
    return _qrel(cells, path, line)[:3]


def _qrel(cells: list[str], path: Path, line: int) -> Qrel:
    if len(cells) not in (3, 4):
        fault = f"{counted(len(cells), 'column')} instead of 4"
        raise InputError(fault, "write topic, iteration, document, relevance", where=path, line=line)
    topic, iteration, document, relevance = cells if len(cells) == 4 else (cells[0], "0", *cells[1:])
    try:
        qrel = Qrel(topic, document, int(relevance.removesuffix(".0")), iteration)
    except ValueError as error:
        fault = f"expected an integer as relevance, got '{relevance[:40]}'"
        remedy = "write whole grades, such as 7 for 0.7, as the last column"
        raise InputError(fault, remedy, where=path, line=line) from error
    if "\0" in topic or "\0" in document:
        raise InputError("a NUL character, which is in no id", "write the file again", where=path, line=line)
    if not -_LARGEST - 1 <= qrel.relevance <= _LARGEST:
        fault = f"the relevance '{relevance[:40]}' is too large"
        raise InputError(fault, "write a grade such as 0 to 3", where=path, line=line)
    return qrel
