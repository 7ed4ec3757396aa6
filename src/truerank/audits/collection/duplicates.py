"""Documents that say the same: which are certain, which people have to look at, and what was said of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import polars as pl

from truerank.audits.collection.instances import Instances, instances
from truerank.near_duplicates.results import BOILERPLATE, PAIRS, groups_of

#: What people said of two documents: a reader gains nothing from the second one; one of them holds the other and more;
#: they say different things.
Answer = Literal["same", "holds", "different"]

#: Kinds of pairs that nobody has to look at.
CERTAIN: Final = ("exact", "reformatted")


@dataclass(frozen=True, eq=False)
class Duplicates:
    """The pairs of documents that say the same.

    Attributes:
        pairs: columns as in `near_duplicates.PAIRS`.
        boilerplate: columns as in `near_duplicates.BOILERPLATE`.
        documents: how many documents were compared.
        said: what people said, by pair of ids in the order of `pairs`.
        replaced: documents that have nothing but the same notice as another one; they are no pairs.
    """

    pairs: pl.DataFrame
    boilerplate: pl.DataFrame
    documents: int
    said: Mapping[tuple[str, str], Answer] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()

    def without(self, notices: Collection[str]) -> Duplicates:
        """The same where notices, which say nothing of what stood in their place, are no copies of each other."""
        both = pl.all_horizontal(pl.col("left", "right").is_in([*notices]))
        same = self.pairs.filter(both & pl.col("kind").is_in(CERTAIN))
        return replace(self, pairs=self.pairs.filter(~both), replaced=frozenset((*same["left"], *same["right"])))

    @property
    def answered(self) -> pl.DataFrame:
        """The pairs with the column `answer`: same, holds or different; null where nobody said anything."""
        if not self.said:
            return self.pairs.with_columns(pl.lit(None, pl.String).alias("answer"))
        pairs = self.pairs.select("left", "right").iter_rows()
        answers = [self.said.get((left, right)) or self.said.get((right, left)) for left, right in pairs]
        return self.pairs.with_columns(pl.Series("answer", answers, pl.String))

    def groups(self, *, doubtful: bool = False) -> pl.DataFrame:
        """The groups that the pairs form which make documents equivalent, columns as in `near_duplicates.GROUPS`."""
        certain, answer = pl.col("kind").is_in(CERTAIN), pl.col("answer")
        same = certain | (answer == "same") | ((pl.col("kind") == "near") if doubtful else False)
        edges = self.answered.filter(same.fill_null(False) & ~answer.is_in(["different", "holds"]).fill_null(False))
        # Whatever people called the same is a near-duplicate, for the groups too.
        kind = pl.when(certain).then("kind").otherwise(pl.lit("near", PAIRS["kind"]))
        edges = edges.with_columns(kind.alias("kind")).select(list(PAIRS))
        return groups_of(edges, pl.concat([edges["left"], edges["right"]]).unique(maintain_order=True))

    def instances(self) -> Iterator[Instances]:
        """The findings among the documents."""
        answered, answer, kind = self.answered, pl.col("answer"), pl.col("kind")
        named = [pl.col("right").alias("doc_id"), pl.col("left").alias("other")]
        same = (answer == "same").fill_null(False)
        exact = answered.filter(kind.is_in(CERTAIN) & answer.is_null() | same)
        shown = kind.cast(pl.String)
        detail = pl.when(same).then(pl.format("{}, judged the same", shown)).otherwise(shown)
        exact = exact.with_columns(*named, detail.alias("detail"))
        yield instances("exact-duplicate", exact.unique("doc_id", maintain_order=True), self.documents)
        more = pl.when(pl.col("left_in_right") >= pl.col("right_in_left"))
        inside = more.then(pl.format("{} of the other one is in it", pl.col("left_in_right").round(3))).otherwise(
            pl.format("{} of it is in the other one", pl.col("right_in_left").round(3))
        )
        details = {"near": pl.format("Jaccard {}", pl.col("jaccard").round(3)), "contains": inside}
        for pair, name in (("near", "near-duplicate"), ("contains", "contained-document")):
            rows = answered.filter(answer.is_null() & (kind == pair))
            rows = rows.with_columns(*named, details[pair].alias("detail"))
            yield instances(name, rows.unique("doc_id", keep="first", maintain_order=True), self.documents)
        shared = [
            {"detail": f"in {count:,d} documents: '{passage[:120]}'"}
            for passage, count, _ in self.boilerplate.iter_rows()
        ]
        most = int(self.boilerplate["documents"].max() or 0)  # type: ignore[arg-type]
        yield instances("boilerplate", shared, self.documents, most)


def no_duplicates() -> Duplicates:
    """Where no documents were given."""
    return Duplicates(pl.DataFrame(schema=PAIRS), pl.DataFrame(schema=BOILERPLATE), 0)


def representatives(groups: pl.DataFrame) -> dict[str, str]:
    """By document of a group, the one that stands for it."""
    return dict(groups.select("document_id", "representative").iter_rows()) if len(groups) else {}
