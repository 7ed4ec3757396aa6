"""Training instances: a query, a relevant and a non-relevant document; read from tables and MS MARCO triples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple

from truerank.errors import InputError
from truerank.sources import grammar, hub
from truerank.sources.columns import fields
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import numbered_lines
from truerank.sources.query_files import header_fields, keyed, well_formed
from truerank.sources.rows import Row, rows
from truerank.sources.streamed import StreamedSource
from truerank.text.printable import counted

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "query_id": ("query_id", "qid", "query-id", "topic_id"),
    "query": ("query", "query_text", "anchor", "question"),
    "relevant_id": ("relevant_id", "positive_id", "pos_id", "doc_id_a"),
    "relevant": ("relevant", "positive", "pos", "positive_text"),
    "nonrelevant_id": ("nonrelevant_id", "negative_id", "neg_id", "doc_id_b"),
    "nonrelevant": ("nonrelevant", "negative", "neg", "negative_text"),
}
_SAMPLE: Final = 100


class Instance(NamedTuple):
    """One training instance; ids that the source lacks are empty."""

    query_id: str
    query: str
    relevant_id: str
    relevant: str
    nonrelevant_id: str
    nonrelevant: str


class FoundInstance(NamedTuple):
    """An instance, its line, and which of query, relevant and nonrelevant are there as ids only."""

    line: int
    instance: Instance
    by_id: tuple[bool, bool, bool]


def open_instances(spec: str | SourceSpec) -> InstanceSource:
    """Opens a source of training instances.

    JSONL, JSON, CSV, TSV with a header, Parquet and Hugging Face data sets with the columns query_id, query,
    relevant_id, relevant, nonrelevant_id, nonrelevant (or positive, negative, anchor …), of which ids or texts may be
    missing; TSV of three columns without a header: MS MARCO triples, of texts or of ids.
    """
    return InstanceSource(grammar.parse(spec) if isinstance(spec, str) else spec)


class InstanceSource(StreamedSource):
    """The instances of one source in its order, as they are there; memory does not grow with it."""

    def __init__(self, spec: SourceSpec) -> None:
        if spec.scheme == "irds":
            raise InputError("instances are not read from ir_datasets", "write them as JSONL or TSV", where=spec.spec)
        super().__init__(spec)
        if self._form not in ("tsv", "csv", "jsonl", "json", "parquet", ""):
            fault = f"a file of the kind '{self._form}' holds no instances"
            raise InputError(fault, "give JSONL, Parquet, CSV or TSV", where=spec.location)

    def __iter__(self) -> Iterator[Instance]:
        return (found.instance for found in self.found())

    def found(self) -> Iterator[FoundInstance]:
        """The instances with their lines: what is given as an id only has no text."""
        if self.spec.scheme == "hf":
            return self.of_rows(hub.records(self.spec))
        if self._form == "tsv" and len(header_fields(self.spec.path, _NAMES)) < 2:
            return self._triples()
        return self.of_rows(rows(self.spec.path, self._form))

    def of_rows(self, found: Iterable[Row]) -> Iterator[FoundInstance]:
        """The instances of a table."""
        for row, keys in keyed(found, partial(fields, wanted=_NAMES)):
            values = [None if (key := keys.get(field)) is None else self._text(row, key) for field in _NAMES]
            by_id = values[1] is None, values[3] is None, values[5] is None
            for missing, place in zip(by_id, (0, 2, 4), strict=True):
                if missing and not values[place]:
                    identifier, text = list(_NAMES)[place : place + 2]
                    fault = f"neither '{text}' nor '{identifier}' in the columns {', '.join(row.values) or 'none'}"
                    remedy = "fill in one of them, or rename the columns"
                    raise InputError(fault, remedy, where=self.spec.location, line=row.line)
            yield FoundInstance(row.line, Instance(*[value or "" for value in values]), by_id)

    def _text(self, row: Row, key: str) -> str | None:
        value = row.values.get(key)
        if value is None or isinstance(value, str):
            return None if value is None else well_formed(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        fault, remedy = f"'{key}' is neither text nor a whole number", "give one document in each column"
        raise InputError(fault, remedy, where=self.spec.location, line=row.line)

    def _triples(self) -> Iterator[FoundInstance]:
        """Lines of three columns without names: texts, or ids where none of the first ones has a blank."""
        cells = ((line.number, line.text.split("\t")) for line in numbered_lines(self.spec.path) if line.text.strip())
        head = list(islice(cells, _SAMPLE))
        by_id = all(" " not in cell.strip() for _, row in head for cell in row)
        for line, row in chain(head, cells):
            if len(row) != 3:
                fault = f"{counted(len(row), 'column')} instead of three"
                raise InputError(fault, "write query, relevant, non-relevant", where=self.spec.path, line=line)
            query, good, bad = (cell.strip() for cell in row)
            instance = Instance(query, "", good, "", bad, "") if by_id else Instance("", query, "", good, "", bad)
            yield FoundInstance(line, instance, (by_id, by_id, by_id))
