"""Who leaks into which test set, with counts and evidence: what every exported form is made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.leakage.results import AuditResult
from truerank.audits.leakage.training_examples.results import ExampleAudit
from truerank.loading import json_file
from truerank.reports.tables import Table
from truerank.text.normalising import normalise
from truerank.version import __version__
from truerank.work.artifacts import written_by

_QUERIES: Final = ("queries", "topics", "pairs of query and answer")
#: What is said of pairs below the threshold whose topic leaks by labels.
_BY_LABELS: Final = ", or the same words or nearly the same letters where labels say that the query leaks"
#: What the parts of a matrix are called.
_NOUNS: Final = {"query": "queries", "document": "documents", "pair": "pairs of query and answer"}


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

    @property
    def of_queries(self) -> bool:
        """Whether the items are queries of the test set, and not its documents."""
        return self.noun in _QUERIES


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
        parts: the names of the training sources, where several count as one.
    """

    train: str
    train_source: str
    test: str
    test_source: str
    verdict: str
    counts: tuple[LeakCount, ...]
    parts: tuple[str, ...] = ()

    @property
    def trains(self) -> tuple[str, ...]:
        """The names of the training sources, where several count as one."""
        return self.parts or (self.train,)

    @property
    def most(self) -> LeakCount:
        """The kind of leak that concerns the largest share of the queries; of documents where no query was compared."""
        queries = [one for one in self.counts if one.of_queries]
        return max(queries or self.counts, key=lambda one: one.percent)

    def sentence(self) -> str:
        """The counts in words."""
        parts = [
            f"{one.leaked:,d} of {one.items:,d} {one.noun} ({one.percent:.1f}%) in {self.train}: {one.kind}, "
            f"{one.evidence}"
            for one in self.counts
            if one.leaked or len(self.counts) == 1
        ]
        return "; ".join(parts) or f"nothing found in {self.train}"


def contaminations_in(found: ExampleAudit | str | Path) -> tuple[Contamination, ...] | None:
    """What `leakage matrix` or `leakage examples` found, by the files they wrote; None for the folder of another audit.

    Of examples, several training sources count as one: their leaks were counted together.
    """
    if isinstance(found, ExampleAudit):
        return (_of_kinds(found.json(), found.folder),)
    folder = Path(found)
    if (folder / "matrix.parquet").is_file():
        with written_by("leakage matrix", folder, "matrix.parquet"):
            return tuple(_of_cells(pl.read_parquet(folder / "matrix.parquet", glob=False)))
    if (folder / "leaks.parquet").is_file():
        with written_by("leakage examples", folder, "summary.json", "leaks.parquet"):
            return (_of_kinds(json_file(folder / "summary.json"), folder),)
    return None


def contamination_markdown(found: Iterable[Contamination]) -> str:
    """A section for a README: a row for each training source, test set and kind of leak."""
    rows = tuple(
        (one.train, one.test, count.kind, count.leaked, count.items, f"{count.percent:.1f}%", one.verdict)
        for one in found
        for count in one.counts
    )
    columns = ("training data", "test set", "kind of leak", "leaking", "of", "share", "verdict")
    return f"## Train–test leakage\n\nChecked with truerank {__version__}.\n\n{Table.of(rows, columns).markdown()}"


def _of_cells(cells: pl.DataFrame) -> Iterator[Contamination]:
    for (train, test), rows in cells.group_by("training", "test", maintain_order=True):
        every = rows.to_dicts()
        yield Contamination(
            train=str(train),
            train_source="",
            test=str(test),
            test_source="",
            verdict=worst(row["verdict"] for row in every),
            counts=tuple(
                LeakCount(
                    f"{row['part']} in the training data", row["leaking"] or 0, row["items"], _NOUNS[row["part"]],
                    row["pairs"] or 0, "exact, n-grams, near-duplicates or similarity",
                )
                for row in every
            ),
        )  # fmt: skip


def _of_kinds(summary: Mapping[str, Any], folder: Path | None) -> Contamination:
    places = _placed(folder)
    kinds, test = summary["kinds"], summary["test"]["name"]
    sources = list(summary["sources"])
    return Contamination(
        train=", ".join(sources),
        train_source=places.get(("train", sources[0]), "") if len(sources) == 1 else "",
        test=test,
        test_source=places.get(("test", test), ""),
        verdict=worst(kind["verdict"] for kind in kinds.values()),
        counts=tuple(
            LeakCount(
                name, kind["leaked"], kind["of"], "queries" if name.startswith(("query", "pair")) else "documents",
                kind["examples"], "exact, n-grams, near-duplicates or similarity",
            )
            for name, kind in kinds.items()
            if kind["of"] or not any(one["of"] for one in kinds.values())  # others were not looked for
        ),
        parts=tuple(sources),
    )  # fmt: skip


def worst(verdicts: Iterable[str]) -> str:
    """The verdict of several parts together: CONTAMINATED before UNKNOWN before CLEAN; of none UNKNOWN."""
    every = set(verdicts)
    return next((word for word in AuditResult.verdict_words if word in every), "UNKNOWN")


def contaminations(audit: AuditResult) -> tuple[Contamination, ...]:
    """Each training source with each test set, in the order of the audit; pairs without a leak included.

    A topic counts where the audit says that it leaks; where labels say so of a pair below the threshold, its source is
    that of the pairs with the same words or nearly the same letters.
    """
    return tuple(_found(audit))


def _found(audit: AuditResult) -> Iterator[Contamination]:
    places = _placed(audit.folder)
    threshold = audit.summary["threshold"]
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
                        evidence=f"cosine similarity above {threshold:g} under {audit.summary['encoder']}"
                        + ("" if own.filter(~similar).is_empty() else _BY_LABELS),
                    ),
                ),
            )


def _placed(folder: Path | None) -> dict[tuple[str, str], str]:
    """The sources by role and name, from the manifest beside an audit."""
    path = None if folder is None else folder / "manifest.json"
    if path is None or not path.is_file():
        return {}
    inputs = json_file(path, "run the audit again").get("inputs", [])
    return {(one["role"], one["name"]): one["source"] for one in inputs}
