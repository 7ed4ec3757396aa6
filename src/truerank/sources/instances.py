"""Training instances: a query, a relevant and a non-relevant document; read from tables and MS MARCO triples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.sources import compressed, formats, grammar, hub
from truerank.sources.columns import fields
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import numbered_lines
from truerank.sources.query_files import header_fields, keyed, well_formed
from truerank.sources.rows import Row, rows
from truerank.text.printable import counted

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "query_id": ("query_id", "qid", "query-id", "topic_id"),
    "query": ("query", "query_text", "anchor", "question"),
    "relevant_id": ("relevant_id", "positive_id", "pos_id", "doc_id_a"),
    "relevant": ("relevant", "positive", "pos", "positive_text"),
    "nonrelevant_id": ("nonrelevant_id", "negative_id", "neg_id", "doc_id_b"),
    "nonrelevant": ("nonrelevant", "negative", "neg", "negative_text"),
}
_NEEDED: Final = (("query", "query_id"), ("relevant", "relevant_id"), ("nonrelevant", "nonrelevant_id"))
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


class InstanceSource:
    """The instances of one source in its order, as they are there; memory does not grow with it."""

    def __init__(self, spec: SourceSpec) -> None:
        if spec.scheme == "irds":
            raise InputError("instances are not read from ir_datasets", "write them as JSONL or TSV", where=spec.spec)
        self.spec = spec
        self._form = formats.detect(spec.path, spec.format) if spec.scheme == "file" else "hf"
        if self._form not in ("tsv", "csv", "jsonl", "json", "parquet", "hf"):
            fault = f"a file of the kind '{self._form}' holds no instances"
            raise InputError(fault, "give JSONL, Parquet, CSV or TSV", where=spec.location)

    @property
    def name(self) -> str:
        """The file name without endings, or the id."""
        return self.spec.name

    @cached_property
    def fingerprint(self) -> str:
        """The identity of the content, for provenance."""
        return hub.fingerprint(self.spec) if self._form == "hf" else compressed.fingerprint(self.spec.path)

    def __iter__(self) -> Iterator[Instance]:
        return (found.instance for found in self.found())

    def found(self) -> Iterator[FoundInstance]:
        """The instances with their lines: what is given as an id only has no text."""
        if self._form == "hf":
            return self.of_rows(hub.records(self.spec))
        if self._form == "tsv" and len(header_fields(self.spec.path, _NAMES)) < 2:
            return self._of_triples()
        return self.of_rows(rows(self.spec.path, self._form))

    def of_rows(self, found: Iterable[Row]) -> Iterator[FoundInstance]:
        """The instances of a table."""
        for row, keys in keyed(found, partial(fields, wanted=_NAMES)):
            values = {field: self._text(row, keys.get(field)) for field in _NAMES}
            by_id = tuple(values[text] is None for text, _ in _NEEDED)
            for missing, (text, identifier) in zip(by_id, _NEEDED, strict=True):
                if missing and not values[identifier]:
                    fault = f"neither '{text}' nor '{identifier}' in the columns {', '.join(row.values) or 'none'}"
                    remedy = "fill in one of them, or rename the columns"
                    raise InputError(fault, remedy, where=self.spec.location, line=row.line)
            instance = Instance(**{field: value or "" for field, value in values.items()})
            yield FoundInstance(row.line, instance, (by_id[0], by_id[1], by_id[2]))

    def _text(self, row: Row, key: str | None) -> str | None:
        value: Any = None if key is None else row.values.get(key)
        if value is None or isinstance(value, str):
            return None if value is None else well_formed(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        fault, remedy = f"'{key}' is neither text nor a whole number", "give one document in each column"
        raise InputError(fault, remedy, where=self.spec.location, line=row.line)

    def _of_triples(self) -> Iterator[FoundInstance]:
        path = self.spec.path
        cells = ((line.number, line.text.split("\t")) for line in numbered_lines(path) if line.text.strip())
        head = list(islice(cells, _SAMPLE))
        as_ids = all(" " not in cell.strip() for _, row in head for cell in row)
        for line, row in chain(head, cells):
            if len(row) != 3:
                fault = f"{counted(len(row), 'column')} instead of three"
                raise InputError(fault, "write query, relevant, non-relevant", where=path, line=line)
            query, relevant, nonrelevant = (cell.strip() for cell in row)
            if as_ids:
                yield FoundInstance(line, Instance(query, "", relevant, "", nonrelevant, ""), (True, True, True))
            else:
                yield FoundInstance(line, Instance("", query, "", relevant, "", nonrelevant), (False, False, False))
