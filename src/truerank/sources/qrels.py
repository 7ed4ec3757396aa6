"""Relevance judgments, streamed, with the line of every fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from truerank.errors import InputError
from truerank.records import Qrel
from truerank.sources import beir, compressed, formats, grammar, irds
from truerank.sources.duplicates import PairWindow
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import line_blocks

__all__ = ["read_qrels"]

_BEIR_HEADER = ("query-id", "corpus-id", "score")


def read_qrels(spec: str | SourceSpec) -> Iterator[Qrel]:
    """Reads relevance judgments.

    TREC lines `topic iteration document relevance` (blanks or tabs), BEIR lines `query TAB document TAB score` (with
    or without their header), a BEIR folder (`qrels/test.tsv`), an ir_datasets id.

    Args:
        spec: the source, see `grammar.parse`.

    Yields:
        The judgments in the order of the source, block by block.

    Raises:
        InputError: not readable; a line with another number of columns or without a whole number as relevance; a pair
            of topic and document that stands there twice (within the last million lines); no judgment at all.
    """
    spec = grammar.parse(spec) if isinstance(spec, str) else spec
    if spec.scheme == "hf":
        raise InputError(
            "judgments are not read from Hugging Face", "download the file and give its path", where=spec.spec
        )
    if spec.scheme == "irds":
        irds.check(spec.location, "qrels")
        return irds.qrels(spec.location)
    return _file_qrels(_qrels_path(spec.path))


def _qrels_path(path: Path) -> Path:
    if compressed.is_folder(path):
        beir.queries_file(path)
        judgments = beir.qrels_file(path)
        if judgments is None:
            raise InputError("no qrels/test.tsv in this folder", "give the file of the judgments", where=path)
        path = judgments
    formats.detect(path)
    return path


def _file_qrels(path: Path) -> Iterator[Qrel]:
    window = PairWindow(path)
    found = False
    for block in line_blocks(path):
        qrels: list[Qrel] = []
        numbers: list[int] = []
        for number, line in enumerate(block.lines, start=block.first):
            cells = line.split()
            if not cells or (number == 1 and tuple(cells) == _BEIR_HEADER):
                continue
            qrels.append(_qrel(cells, path, number))
            numbers.append(number)
        window.add([(qrel.topic_id, qrel.doc_id) for qrel in qrels], numbers)
        found = found or bool(qrels)
        yield from qrels
    if not found:
        raise InputError("no judgments in it", "give a file of lines: topic 0 document relevance", where=path)


def _qrel(cells: list[str], path: Path, line: int) -> Qrel:
    if len(cells) not in (3, 4):
        raise InputError(
            f"{len(cells)} columns instead of 4", "write topic, iteration, document, relevance", where=path, line=line
        )
    topic, iteration, document, relevance = cells if len(cells) == 4 else (cells[0], "0", *cells[1:])
    try:
        return Qrel(topic, document, int(relevance), iteration)
    except ValueError as error:
        raise InputError(
            f"the relevance '{relevance}' is no whole number",
            "write topic, iteration, document, relevance",
            where=path,
            line=line,
        ) from error
