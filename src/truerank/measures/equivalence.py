"""Documents that count as one: judgments and rankings closed under equivalence.

The first document of a group in a ranking stands for the group; the others are dropped, or keep their ranks without
being judged. One judgment holds for all documents of a group.

Source: Bernstein and Zobel (CIKM 2005); Fröbe et al. (ECIR 2020), section 3, for both ways to treat repeated content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import polars as pl

from truerank.errors import InputError
from truerank.options import Flag, Options
from truerank.sources import compressed, formats
from truerank.sources.grammar import parse
from truerank.sources.lines import numbered_lines
from truerank.sources.rows import rows

__all__ = ["EQUIVALENT_SCHEMA", "Equivalence", "EquivalenceOptions", "read_equivalence"]

Combine = Literal["max", "min", "majority", "agree"]

#: What several judgments of one topic become that go to the same document.
COMBINE: Final[dict[str, str]] = {
    "max": "the highest grade",
    "min": "the lowest grade",
    "majority": "the grade that most of them have, of equally many the higher",
    "agree": "the grade, where they agree; the others are ambiguous",
}


def combined_grade(combine: Combine) -> pl.Expr:
    """The grade of several rows, as an aggregation of the column `relevance`; for "agree" the highest one."""
    grade = pl.col("relevance")
    rule = {"max": grade.max(), "min": grade.min(), "agree": grade.max(), "majority": grade.mode().max()}[combine]
    return rule.cast(pl.Int32)


#: A map of duplicates: each document and the one that stands for its group.
EQUIVALENT_SCHEMA: Final[dict[str, Any]] = {"document_id": pl.String, "representative": pl.String}
#: What stands behind the id of a further document of a group, so that no judgment meets it.
_FURTHER: Final = "\x1f"
_COLUMNS: Final = (("document_id", "doc_id", "docno"), ("representative", "group"))


@dataclass(frozen=True)
class EquivalenceOptions(Options):
    """Which documents count as one.

    Attributes:
        equivalent: a map of duplicates, such as the duplicates.tsv of `collection clean`: lines of a document and the
            one that stands for its group. The first document of a group counts. In Python also a frame or a mapping.
        repeats: what further documents of a group are: dropped (the ranking closes up) or unjudged (they keep their
            ranks).
        combine: what several judgments of one topic become that go to the same group.
    """

    equivalent: Annotated[Any, Flag(metavar="FILE", reads=str)] = None
    repeats: Literal["dropped", "unjudged"] = "dropped"
    combine: Combine = "max"

    def opened(self) -> Equivalence | None:
        """The groups; None where no map was given.

        Raises:
            InputError: the map is at fault.
        """
        return None if self.equivalent is None else Equivalence(read_equivalence(self.equivalent), self)

    def sentences(self) -> tuple[str, ...]:
        """The choices in words; none without a map."""
        if self.equivalent is None:
            return ()
        further = "are dropped" if self.repeats == "dropped" else "keep their ranks, unjudged"
        return (
            f"Equivalent documents: the first of a group counts, further ones {further}; several judgments of a group "
            f"become one: {self.combine}.",
        )

    def json(self) -> dict[str, Any]:
        """The choices by name; empty without a map."""
        if self.equivalent is None:
            return {}
        shown = str(self.equivalent) if isinstance(self.equivalent, str | Path) else "the program"
        return {"equivalent": shown, "repeats": self.repeats, "combine": self.combine}


@dataclass(frozen=True, eq=False)
class Equivalence:
    """Documents in groups.

    Attributes:
        documents: columns as in `EQUIVALENT_SCHEMA`; documents outside of groups stand for themselves.
        options: how groups count.
    """

    documents: pl.DataFrame
    options: EquivalenceOptions = EquivalenceOptions()

    def mapped(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A frame with the representatives of its documents in the column `doc_id`."""
        joined = frame.join(self.documents, left_on="doc_id", right_on="document_id", how="left", maintain_order="left")
        own = pl.coalesce("representative", "doc_id").alias("doc_id")
        return joined.with_columns(own).drop("representative")

    def closed(self, qrels: pl.DataFrame) -> pl.DataFrame:
        """Judgments of groups: one row for each topic and group, at the place of its first.

        Args:
            qrels: columns topic_id, doc_id, relevance.

        Returns:
            The same columns. With "agree", groups whose grades differ are left out.
        """
        grouped = self.mapped(qrels).group_by("topic_id", "doc_id", maintain_order=True)
        found = grouped.agg(combined_grade(self.options.combine), pl.col("relevance").n_unique().alias("grades"))
        if self.options.combine == "agree":
            found = found.filter(pl.col("grades") == 1)
        return found.select("topic_id", "doc_id", pl.col("relevance").cast(qrels.schema["relevance"]))

    def ranked(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A ranking in which the first document of each group counts.

        Args:
            frame: columns topic_id, doc_id, rank (from 1), the rows of a topic by rank.

        Returns:
            The same columns with representatives, and new ranks where documents were dropped.
        """
        found = self.mapped(frame)
        first = pl.int_range(pl.len()).over("topic_id", "doc_id") == 0
        if self.options.repeats == "unjudged":
            own = pl.concat_str("doc_id", pl.lit(_FURTHER), pl.col("rank").cast(pl.String))
            return found.with_columns(pl.when(first).then("doc_id").otherwise(own).alias("doc_id"))
        kept = found.filter(first)
        return kept.with_columns((pl.int_range(pl.len()).over("topic_id") + 1).alias("rank"))


def read_equivalence(source: Any) -> pl.DataFrame:
    """Reads a map of duplicates.

    Args:
        source: a file (TSV with or without a header, CSV, JSONL, Parquet: document_id or doc_id, and representative);
            a frame with these columns; a mapping from document to representative; or pairs of them.

    Returns:
        Columns as in `EQUIVALENT_SCHEMA`, without documents that stand for themselves.

    Raises:
        InputError: not readable, a document in two groups, or a representative that is represented by another one.
    """
    if hasattr(source, "columns") or not isinstance(source, str | Path):
        frame, where = _from_value(source), "the map of duplicates"
    else:
        frame, where = _from_file(Path(parse(str(source)).path)), str(source)
    frame = frame.filter(pl.col("document_id") != pl.col("representative")).unique(maintain_order=True)
    twice = frame.filter(pl.col("document_id").is_duplicated())
    if len(twice):
        fault = f"the document '{twice['document_id'][0]}' has several representatives"
        raise InputError(fault, "give each document one group", where=where)
    chain = frame.filter(pl.col("representative").is_in(frame["document_id"].implode()))
    if len(chain):
        fault = f"'{chain['representative'][0]}' represents others, and is represented itself"
        raise InputError(fault, "give each group one representative", where=where)
    return frame


def _from_value(source: Any) -> pl.DataFrame:
    if hasattr(source, "columns"):
        frame = (
            source if isinstance(source, pl.DataFrame) else pl.DataFrame({n: list(source[n]) for n in source.columns})
        )
        names = [next((name for name in several if name in frame.columns), None) for several in _COLUMNS]
        if None in names:
            there = ", ".join(frame.columns)
            raise InputError(f"columns document_id and representative are needed, there are {there}", "rename them")
        return frame.select(
            pl.col(name).cast(pl.String).alias(wanted)
            for name, wanted in zip(names, EQUIVALENT_SCHEMA, strict=True)
            if name
        )
    pairs: Iterable[Any] = source.items() if isinstance(source, Mapping) else source
    return pl.DataFrame([(str(one), str(other)) for one, other in pairs], schema=EQUIVALENT_SCHEMA, orient="row")


def _from_file(path: Path) -> pl.DataFrame:
    form = formats.detect(compressed.checked_file(path))
    if form in ("csv", "jsonl", "json", "parquet"):
        return _from_value(pl.DataFrame([dict(row.values) for row in rows(path, form)]))
    found = []
    for number, text, _ in numbered_lines(path):
        cells = [cell.strip() for cell in (text.split("\t") if "\t" in text else text.split())]
        if not any(cells) or (number == 1 and cells[0] in _COLUMNS[0]):
            continue
        if len(cells) < 2 or not cells[0] or not cells[1]:
            raise InputError(
                f"no pair of documents: '{text[:80]}'", "write document TAB representative", where=path, line=number
            )
        found.append((cells[0], cells[1]))
    return pl.DataFrame(found, schema=EQUIVALENT_SCHEMA, orient="row")
