"""Sets made of a table of rows that an audit wrote: by depth (survivorship), by version (transfer)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.experiments.instances.built import ROWS
from truerank.experiments.instances.drawing import SCHEMA
from truerank.experiments.instances.options import BuildOptions
from truerank.rankers.training.instances import Instance, open_instances
from truerank.sources import formats, hub
from truerank.sources.columns import named
from truerank.sources.rows import rows
from truerank.sources.tables import as_text

#: The column that a kind of set has besides those of all.
EXTRA: Final[Mapping[str, dict[str, Any]]] = {"by-depth": {"depth": pl.Int64}, "by-version": {"version": pl.String}}
_NAMES: Final = {"by-depth": ("depth",), "by-version": ("version", "strategy")}
_ORIGINS: Final = ("origin", "relevant_origin")


class _Row(NamedTuple):
    """One row of the table, with its line and the value that decides whether it belongs to the set."""

    line: int
    instance: Instance
    value: str
    origin: str
    topic_id: str | None


@dataclass
class TableRows:
    """The rows of a table that belong to a set, in their order.

    Args:
        kind: "by-depth" or "by-version".
        options: `rows`, `depth`, `strategy`; `topics`, `field` and `docs` for texts that stand there as ids only.

    Attributes:
        read: rows read so far.
        left_out: of them, those of a greater depth or another version.
        empty: of them, those without the text of a query or document.
    """

    kind: str
    options: BuildOptions
    read: int = 0
    left_out: int = 0
    empty: int = 0

    def __post_init__(self) -> None:
        options = self.options
        self._source = open_instances(
            options.rows or "", topics=options.topics, docs=options.docs, topic_field=options.field
        )

    @property
    def inputs(self) -> dict[str, Any]:
        """The table, for provenance."""
        return {"name": self._source.name, "source": self._source.spec.spec, "fingerprint": self._source.fingerprint}

    def blocks(self, wanted: int | None) -> Iterator[pl.DataFrame]:
        """The rows as frames with the columns of `SCHEMA` but `number`, and the one of `EXTRA`."""
        block: list[dict[str, Any]] = []
        for row in islice(self._kept(), wanted):
            block.append(self._values(row))
            if len(block) == ROWS:
                yield self._frame(block)
                block = []
        if block:
            yield self._frame(block)

    def _kept(self) -> Iterator[_Row]:
        self.read = self.left_out = self.empty = 0
        version = self.options.strategy
        for row in self._rows():
            self.read += 1
            if self.kind == "by-depth":
                keep = self._depth(row) <= (self.options.annotation_depth or 0)
            else:
                version = row.value if version is None else version
                if self.options.strategy is None and row.value != version:
                    fault = f"rows of several versions ('{version}', '{row.value}')"
                    raise InputError(fault, "choose one with `strategy`", where=self.options.rows, line=row.line)
                keep = row.value == version
            instance = row.instance
            if not keep:
                self.left_out += 1
            elif not all(text.strip() for text in (instance.query, instance.relevant, instance.nonrelevant)):
                self.empty += 1
            else:
                yield row

    def _rows(self) -> Iterator[_Row]:
        spec = self._source.spec
        if spec.scheme == "hf":
            records = hub.records(spec)
        else:
            form = formats.detect(spec.path, spec.format)
            records = rows(spec.path, form)
        key: str | None = None
        for row, instance in zip(records, self._source, strict=True):
            names = tuple(row.values)
            key = named(names, _NAMES[self.kind]) if key is None or key not in row.values else key
            if key is None:
                fault = f"no column '{_NAMES[self.kind][0]}'; there are {', '.join(names)}"
                raise InputError(fault, "give a table that an audit wrote", where=spec.location, line=row.line)
            origin, topic = named(names, _ORIGINS), named(names, ("topic_id",))
            yield _Row(
                row.line,
                instance,
                as_text(row.values[key]) or "",
                "" if origin is None else as_text(row.values[origin]) or "",
                None if topic is None else as_text(row.values[topic]),
            )

    def _depth(self, row: _Row) -> int:
        try:
            return int(row.value)
        except ValueError as error:
            fault = f"the depth '{row.value}' is no whole number"
            raise InputError(fault, "correct it", where=self.options.rows, line=row.line) from error

    def _values(self, row: _Row) -> dict[str, Any]:
        column = next(iter(EXTRA[self.kind]))
        came = row.origin or f"line {row.line} of {self._source.name}"
        return {
            **row.instance._asdict(),
            "role": self.kind,
            "topic_id": row.topic_id,
            "source": self._source.name,
            "origin": came,
            column: int(row.value) if self.kind == "by-depth" else row.value,
        }

    def _frame(self, block: list[dict[str, Any]]) -> pl.DataFrame:
        schema = {name: kind for name, kind in {**SCHEMA, **EXTRA[self.kind]}.items() if name != "number"}
        return pl.DataFrame(block, schema=schema)
