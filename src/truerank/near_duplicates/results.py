"""What was found: pairs, groups and boilerplate, as frames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import OptionError
from truerank.near_duplicates.shingles import Shingles

#: Kinds of pairs: the same text after normalising; the same words in the same order; Jaccard similarity of shingles
#: from the threshold on; one contains the other. A pair has the first kind that applies.
KINDS: Final = ("exact", "reformatted", "near", "contains")

PAIRS: Final[dict[str, Any]] = {
    "left": pl.String,
    "right": pl.String,
    "kind": pl.Enum(KINDS),
    "jaccard": pl.Float64,
    "left_in_right": pl.Float64,
    "right_in_left": pl.Float64,
    "left_words": pl.Int64,
    "right_words": pl.Int64,
    "own_share": pl.Float64,
}
GROUPS: Final[dict[str, Any]] = {"document_id": pl.String, "group": pl.Int64, "representative": pl.String}
BOILERPLATE: Final[dict[str, Any]] = {"passage": pl.String, "documents": pl.Int64, "share": pl.Float64}

#: Kinds that make documents equivalent. One that contains another says more than it.
_EQUIVALENT: Final = ("exact", "reformatted", "near")


@dataclass(frozen=True)
class Equivalents:
    """Documents that say the same, within one collection or between two.

    Attributes:
        options: what counts as nearly the same text.
        documents: how many documents were compared, of the first and of the second collection.
        empty: how many of them have no words and are compared as texts only.
        pairs: columns as in `PAIRS`, in the order of the documents. Within one collection `left` comes before `right`;
            between two `left` is of the first. Exact and reformatted duplicates stand once each, beside the first
            document with that text; pairs of other kinds are between such first documents. `own_share` is the share
            of the smaller one's text beside boilerplate that the other one has, 0 where that is too short.
        groups: columns as in `GROUPS`: the documents that exact, reformatted and near pairs connect, in the order of
            the collection; the representative of a group is its first. Empty between two collections.
        boilerplate: columns as in `BOILERPLATE`: passages that many documents hold, the most frequent first. Empty
            between two collections.
        crowded: how many shingles are in so many documents that not all pairs of them were compared. Where it is
            above 0, pairs may be missing among groups of that size; the documents are compared with some of the group.
    """

    options: Shingles
    documents: tuple[int, int]
    empty: int
    pairs: pl.DataFrame
    groups: pl.DataFrame
    boilerplate: pl.DataFrame
    crowded: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of pairs of each kind."""
        found = dict(self.pairs.group_by("kind").len().iter_rows())
        return {kind: found.get(kind, 0) for kind in KINDS}

    def rethreshold(self, similarity: float | None = None, containment: float | None = None) -> Equivalents:
        """The same with higher thresholds, without comparing again.

        Args:
            similarity: a Jaccard similarity; None for the one it has.
            containment: a share of shingles; None for the one it has.

        Raises:
            OptionError: a threshold below the one with which documents were compared.
        """
        options = replace(
            self.options,
            similarity=self.options.similarity if similarity is None else similarity,
            containment=self.options.containment if containment is None else containment,
        )
        for name in ("similarity", "containment"):
            value, had = getattr(options, name), getattr(self.options, name)
            if value < had:
                raise OptionError(name, f"{value:g} is below {had:g}", "compare the documents again with it")
        share = pl.max_horizontal("left_in_right", "right_in_left")
        # The smaller one of two texts is the one of which more is in the other.
        fewest = (
            pl.when(pl.col("left_in_right") > pl.col("right_in_left"))
            .then("left_words")
            .when(pl.col("left_in_right") < pl.col("right_in_left"))
            .then("right_words")
            .otherwise(pl.min_horizontal("left_words", "right_words"))
        )
        contained = (share >= options.containment) & (pl.col("own_share") >= options.containment)
        contained &= fewest >= options.contained_words
        kind = (
            pl.when(pl.col("kind").is_in(KINDS[:2]))
            .then("kind")
            .when(pl.col("jaccard") >= options.similarity)
            .then(pl.lit("near", PAIRS["kind"]))
            .when(contained)
            .then(pl.lit("contains", PAIRS["kind"]))
        )
        pairs = self.pairs.with_columns(kind=kind).filter(pl.col("kind").is_not_null())
        groups = self.groups if not len(self.groups) else groups_of(pairs, self.groups["document_id"])
        return replace(self, options=options, pairs=pairs, groups=groups)


def components(left: NDArray[np.int64], right: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The connected component of each of so many nodes, named by its first node, shape (nodes,).

    Each round, the roots of both ends of an edge take the smaller label, until none changes. scipy.sparse.csgraph
    takes longer to load than most checks have.

    Args:
        left: one end of each edge, shape (edges,).
        right: the other.
        count: of nodes.
    """
    label, before = np.arange(count), np.full(count, -1)
    while not np.array_equal(label, before):
        before = label
        label = label.copy()
        smaller = np.minimum(before[left], before[right])
        for ends in (before[left], before[right], left, right):
            np.minimum.at(label, ends, smaller)
        while not np.array_equal(label, label[label]):
            label = label[label]
    return label


def groups_of(pairs: pl.DataFrame, order: pl.Series) -> pl.DataFrame:
    """The groups that pairs of equivalent documents connect."""
    edges = pairs.filter(pl.col("kind").is_in(_EQUIVALENT))
    if not len(edges):
        return pl.DataFrame(schema=GROUPS)
    used = pl.concat([edges["left"], edges["right"]]).unique()
    names = order.filter(order.is_in(used.implode())).unique(maintain_order=True)
    place = pl.DataFrame({"document_id": names, "place": np.arange(len(names))})
    ends = [
        edges.select(pl.col(end)).join(place, left_on=end, right_on="document_id", how="left", maintain_order="left")
        for end in ("left", "right")
    ]
    left, right = (end["place"].to_numpy() for end in ends)
    label = components(left, right, len(names))
    _, first, group = np.unique(label, return_index=True, return_inverse=True)
    # Numbers by the first document of each group.
    rank = np.argsort(np.argsort(first))
    found = pl.DataFrame({"document_id": names, "group": rank[group], "representative": names.gather(first[group])})
    return found.cast(GROUPS)  # type: ignore[arg-type]
