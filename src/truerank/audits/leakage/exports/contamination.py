"""Who leaks into which test set, with counts and evidence: what every exported form is made from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from truerank.audits.leakage.results import AuditResult
from truerank.loading import json_file
from truerank.text.normalising import normalise

__all__ = ["Contamination", "LeakCount", "contaminations"]


class LeakCount(NamedTuple):
    """How much of a test set stands in a training source, for one kind of leak.

    `kind` names both sides ("query in training query"); `leaked` of `items` items of the test set leak, which are
    called `noun`; `training` distinct texts of the source leak them; `evidence` says what counts as a leak.
    """

    kind: str
    leaked: int
    items: int
    noun: str
    training: int
    evidence: str

    @property
    def percent(self) -> float:
        """The share of the test set that leaks, in percent."""
        return 100 * self.leaked / self.items if self.items else 0.0


@dataclass(frozen=True)
class Contamination:
    """One training source and one test set.

    Attributes:
        train: the name of the training source.
        train_source: the source as its manifest names it; empty where nobody knows it.
        test: the name of the test set.
        test_source: likewise.
        verdict: of the audit on the test set, with all its training sources.
        counts: by kind of leak, kinds without a leak included.
    """

    train: str
    train_source: str
    test: str
    test_source: str
    verdict: str
    counts: tuple[LeakCount, ...]

    @property
    def most(self) -> LeakCount:
        """The kind of leak that concerns the largest share of the test set."""
        return max(self.counts, key=lambda one: one.percent)

    def sentence(self) -> str:
        """The counts in words."""
        parts = [
            f"{one.leaked:,d} of {one.items:,d} {one.noun} ({one.percent:.1f}%) in {self.train}: {one.kind}, "
            f"{one.evidence}"
            for one in self.counts
            if one.leaked or len(self.counts) == 1
        ]
        return "; ".join(parts) or f"nothing found in {self.train}"


def contaminations(audit: AuditResult) -> tuple[Contamination, ...]:
    """Each training source with each test set, in the order of the audit; pairs without a leak included.

    A topic counts where the audit says that it leaks; where labels say so of a pair below the threshold, its source is
    that of the pairs with the same words or nearly the same letters.

    Args:
        audit: what `leakage audit` found.
    """
    return tuple(_found(audit))


def _found(audit: AuditResult) -> Iterator[Contamination]:
    places = _places(audit)
    threshold = audit.summary["threshold"]
    evidence = f"cosine similarity above {threshold:g} under {audit.summary['encoder']}"
    above = audit.above()
    for test, about in audit.summary["tests"].items():
        leaked = audit.candidates.filter(pl.col("test") == test, pl.col("topic_id").is_in(about["leaked_topics"]))
        sure = above.filter(test=test)["topic_id"].unique().implode()
        similar = pl.col("similarity") > pl.lit(threshold, pl.Float32)
        rows = leaked.filter(similar | ((pl.col("evidence") != "") & ~pl.col("topic_id").is_in(sure)))
        for train in audit.summary["sources"]:
            own = rows.filter(source=train)
            yield Contamination(
                train=train,
                train_source=places.get(("train", train), ""),
                test=test,
                test_source=places.get(("test", test), ""),
                verdict=about["verdict"],
                counts=(
                    LeakCount(
                        kind="query in training query",
                        leaked=own["topic_id"].n_unique(),
                        items=about["topics"],
                        noun=about.get("noun", "topics"),
                        training=len({normalise(text) for text in own["query_text"]}),
                        evidence=evidence,
                    ),
                ),
            )


def _places(audit: AuditResult) -> dict[tuple[str, str], str]:
    """The sources by role and name, from the manifest beside the audit."""
    path = None if audit.folder is None else audit.folder / "manifest.json"
    if path is None or not path.is_file():
        return {}
    inputs = json_file(path, "run the audit again").get("inputs", [])
    return {(one["role"], one["name"]): one["source"] for one in inputs}
