"""The kinds of leak in training data, what `leakage examples` and `leakage matrix` found, and the folders of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.leakage.options import FIELDS
from truerank.audits.leakage.results import (
    CANDIDATE_SCHEMA,
    NEIGHBOUR_SCHEMA,
    AuditResult,
    AuditSummary,
    KindFound,
    OtherTopics,
    Sensitivity,
    TestSummary,
    VerdictWord,
)
from truerank.core.plain import picked, plain
from truerank.core.result import Result
from truerank.core.rules import Rule, rules_of
from truerank.errors import OptionError
from truerank.judging.labels import Judgments
from truerank.loading import json_file
from truerank.options import Flag, Names, Options, Range, Seed, Source
from truerank.overlaps import OVERLAPS, OverlapRules
from truerank.records import Input
from truerank.sources.examples import ExampleTexts
from truerank.work.artifacts import hash_file, read_table, written_by

if TYPE_CHECKING:
    from truerank.audits.leakage.training_data.texts import Suite

#: Roles of an example's texts that are documents.
ANY_DOCUMENT: Final = ("positive", "negative", "document")


@dataclass(frozen=True)
class LeakKind(Rule):
    """A kind of leak: a rule that also says what it compares; `rules.toml` describes its fields."""

    test: Literal["query", "relevant", "document"]
    training: tuple[str, ...]
    needs: tuple[str, ...]
    noun: tuple[str, str]

    @property
    def phrase(self) -> str:
        """The title within a sentence or a list."""
        return self.title[0].lower() + self.title[1:]


#: In the order in which they are reported.
KINDS: Final = tuple(rules_of("truerank.audits.leakage.training_data", LeakKind).values())


def check_kinds(names: Collection[str]) -> None:
    """Raises an OptionError where a name is that of no kind."""
    if unknown := [name for name in names if name not in {kind.name for kind in KINDS}]:
        known = ", ".join(kind.name for kind in KINDS)
        raise OptionError("kinds", f"there is no kind of leak '{unknown[0]}'", f"choose from {known}")


def kind_named(name: str) -> LeakKind:
    return next(kind for kind in KINDS if kind.name == name)


#: The rule for whole examples: long texts leak in parts. Chosen on Vaswani.
RULES: Final = OverlapRules(ngram_share=0.2, similarity=0.2, containment=0.3)


@dataclass(frozen=True)
class ExampleOptions(Options):
    """What is compared, and which kinds of leak are looked for.

    Attributes:
        qrels: judgments of the test set; without them no document is known to be relevant. By default those of the
            BEIR folder.
        docs: documents of the test set. By default those of the BEIR folder.
        roles: which column of the training data is what, as query=anchor,positive=pos; by default told from names and
            contents.
        train_queries: the queries whose ids training data holds in place of texts: MS MARCO's qidpidtriples, judgments.
        train_docs: the documents whose ids training data holds in place of texts.
        kinds: the kinds of leak to look for: pair, query-query, positive-relevant, negative-relevant, query-document,
            document-corpus; by default all.
        fields: the fields of topics that are compared: title, description, narrative.
        rel: the lowest grade that counts as relevant.
        semantic: which texts an encoder compares, too: none, queries, or all (each training document is encoded).
        sample: how many texts of each side the sensitivity check plants, each changed in every way.
        seed: of the sensitivity check.
        strict: treat bytes that are not UTF-8 as an error.
    """

    qrels: Source | None = None
    docs: Source | None = None
    roles: Annotated[str | None, Flag(metavar="ROLE=COLUMN,…")] = None
    train_queries: Source | None = None
    train_docs: Source | None = None
    kinds: Names = ()
    fields: Annotated[tuple[str, ...], Flag(metavar="NAME,…", reads=str)] = ("title", "description")
    rel: Annotated[int, Range(at_least=1)] = 1
    semantic: Literal["none", "queries", "all"] = "none"
    sample: Annotated[int, Range(at_least=20, at_most=2000)] = 100
    seed: Seed = 0
    strict: bool = False

    def __post_init__(self) -> None:
        for option in ("kinds", "fields"):
            given = getattr(self, option)
            if isinstance(given, str):
                object.__setattr__(self, option, tuple(name.strip() for name in given.split(",") if name.strip()))
        super().__post_init__()
        for option, known in (("kinds", [kind.name for kind in KINDS]), ("fields", list(FIELDS))):
            given = getattr(self, option)
            if unknown := [one for one in given if one not in known]:
                raise OptionError(option, f"no '{unknown[0]}'", f"use {', '.join(known)}")

    @property
    def texts(self) -> ExampleTexts:
        """Where the texts of ids in the training data are."""
        return ExampleTexts(self.train_queries, self.train_docs)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The kinds to look for, in their order."""
        return tuple(kind.name for kind in KINDS if not self.kinds or kind.name in self.kinds)


#: `leaks.parquet`: one row for each pair of texts and kind of leak. `examples` counts the training examples of the
#: source that hold the text in this role, `example_id` is the first of them. A row of the kind "pair" has the query in
#: `test_text` and `training_text`, and the answer in `document_text` and `training_document`; its evidence is that of
#: the queries, `document_evidence` that of the answer. The columns of evidence are those of `overlaps.OVERLAPS`, whose
#: package is not imported here: `leakage clean` does not compare.
LEAKS: Final[dict[str, Any]] = frame_schema(
    "kind topic_id field doc_id test_text source role example_id: String, examples: Int64, training_text: String, "
    "exact: Boolean, ngram_test ngram_training jaccard containment: Float64, wording: String, cosine: Float64, "
    "test_words training_words: Int64, evidence document_text training_document document_evidence: String"
)


@dataclass(frozen=True)
class KindVerdict:
    """What was found of one kind of leak.

    Attributes:
        kind: its name, as in `KINDS`.
        verdict: CONTAMINATED, CLEAN or UNKNOWN.
        why: the reason, with its figures.
        evidence: what it rests on.
        settle: what would settle or change it.
        leaked: how many queries or documents leak.
        of: how many were looked for.
        low, high: the 95% interval of their share, were they a sample.
        topics: how many topics they belong to; None where no judgment tells.
        pairs: rows of `leaks.parquet`.
        examples: training texts, counted once for each example that holds them.
        sensitivity: what was found of planted changes.
    """

    kind: str
    verdict: VerdictWord
    why: str
    evidence: tuple[str, ...] = ()
    settle: tuple[str, ...] = ()
    leaked: int = 0
    of: int = 0
    low: float = 0.0
    high: float = 1.0
    topics: int | None = None
    pairs: int = 0
    examples: int = 0
    sensitivity: tuple[KindFound, ...] = ()

    def json(self) -> dict[str, Any]:
        """Everything but the name, as plain values."""
        share = round(self.leaked / self.of, 6) if self.of else None
        values = plain(self, "kind") | {"low": round(self.low, 6), "high": round(self.high, 6)}
        # The share stands before its interval.
        return {**{name: values.pop(name) for name in list(values)[:6]}, "share": share, **values}


@dataclass(frozen=True, repr=False, eq=False)
class ExampleAudit(Result, shown_in="truerank.audits.leakage.training_data.report"):
    """The result of `leakage.examples`.

    Attributes:
        kinds: what was found, by kind of leak, in the order of `KINDS`.
        leaks: every pair, columns as in `LEAKS`.
        test: the name of the test set, and how many topics, texts, documents and relevant documents were compared.
        sources: what was read of each training source, with the roles of its columns.
        rules: the thresholds of the evidence.
        others: how often a text of the test collection is taken for another one, for queries and documents.
        boilerplate: passages that many texts of the test collection hold; they were left out of both sides.
        folder: where it was written; None where it was not.
        templates: pairs whose texts have a frame in common and say other things, which are not leaks; columns as in
            `LEAKS`.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("CONTAMINATED", "UNKNOWN", "CLEAN")

    kinds: tuple[KindVerdict, ...]
    leaks: pl.DataFrame
    test: Mapping[str, Any]
    sources: Mapping[str, Mapping[str, Any]]
    rules: Mapping[str, Any]
    others: Mapping[str, OtherTopics]
    boilerplate: tuple[Mapping[str, Any], ...] = ()
    folder: Path | None = None
    templates: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LEAKS))

    def of(self, kind: str) -> KindVerdict:
        """What was found of one kind of leak."""
        return next(one for one in self.kinds if one.kind == kind)

    def rows(self, kind: str) -> pl.DataFrame:
        """The leaks of one kind."""
        return self.leaks.filter(pl.col("kind") == kind)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            **picked(self, "test, sources, rules"),
            "kinds": {one.kind: one.json() for one in self.kinds},
            "templates": {kind: rows.height for (kind,), rows in self.templates.group_by("kind", maintain_order=True)},
            **picked(self, "other_texts=others, boilerplate"),
        }


def load_examples(folder: str | Path) -> ExampleAudit:
    """Opens the folder that `leakage examples --out` wrote.

    Raises:
        InputError: no such audit there, or it cannot be read.
    """
    folder = Path(folder)
    with written_by("leakage examples", folder, "summary.json", "leaks.parquet"):
        summary = json_file(folder / "summary.json")
        leaks = read_table(folder / "leaks.parquet", LEAKS)
        path = folder / "templates.parquet"
        templates = read_table(path, LEAKS) if path.is_file() else leaks.clear()
        kinds = tuple(_kind(kind.name, summary["kinds"][kind.name]) for kind in KINDS if kind.name in summary["kinds"])
        parts = {name: summary[name] for name in ("test", "sources", "rules")}
        others, passages = summary["other_texts"], tuple(summary["boilerplate"])
        audit = ExampleAudit(kinds, leaks, **parts, others=others, boilerplate=passages, folder=folder)
        return replace(audit, templates=templates)


def opened_examples(audit: Any) -> ExampleAudit:
    """The audit, from its folder where that is given."""
    return audit if isinstance(audit, ExampleAudit) else load_examples(audit)


def audited_input(found: ExampleAudit) -> Input:
    """An audit as the manifest names it, with the hash of its pairs where they are a file."""
    if found.folder is None:
        return Input("audit", "", "audit", found.leaks.height)
    path = found.folder / "leaks.parquet"
    return Input(found.folder.name, str(found.folder), "audit", found.leaks.height, hash_file(path))


def _kind(name: str, values: Mapping[str, Any]) -> KindVerdict:
    known: dict[str, Any] = {key: value for key, value in values.items() if key != "share"}
    for key in ("evidence", "settle", "sensitivity"):
        known[key] = tuple(known[key])
    return KindVerdict(name, **known)


#: Kinds of leak that count where nobody says which: those that change what a score of these topics means.
DEFAULT_KINDS: Final = ("pair", "query-query", "positive-relevant", "negative-relevant")
#: There is no similarity: every pair of the audit counts, and none does above 1.
_THRESHOLD: Final = 0.5


def holds_examples(audit: object) -> bool:
    """Whether this is an audit of whole examples, or the folder of one."""
    return isinstance(audit, ExampleAudit) or (
        isinstance(audit, str | Path) and (Path(audit) / "leaks.parquet").is_file()
    )


def chosen_leaks(found: ExampleAudit | str | Path, kinds: Collection[str]) -> tuple[ExampleAudit, pl.DataFrame]:
    """An audit, opened, and its leaks of some kinds."""
    audit = opened_examples(found)
    return audit, audit.leaks.filter(pl.col("kind").is_in(list(kinds or DEFAULT_KINDS)))


def leaks_that_count(audit: ExampleAudit, leaks: pl.DataFrame, judgments: Judgments | None, basis: str) -> pl.DataFrame:
    """The leaks that count by what people said of them, with a column `judged`: true where a label says so.

    A pair of query and answer is not a leak where either half of it was judged none.
    """
    if basis == "labels-only" and judgments is None:
        raise OptionError("basis", "labels-only needs labels", "give `labels`, or choose another")
    columns = ("kind", "topic_id", "doc_id", "training_text", "training_document", "example_id")
    said = [_said(row, judgments, str(audit.test["name"])) for row in leaks.select(columns).iter_rows()]
    counts = (True,) if basis == "labels-only" else (True, None)
    kept = pl.Series([one in counts for one in said], dtype=pl.Boolean)
    return leaks.with_columns(judged=pl.Series(said, dtype=pl.Boolean).fill_null(value=False)).filter(kept)


def _said(row: tuple[str, ...], judgments: Judgments | None, name: str) -> bool | None:
    """What people said of a leak."""
    if judgments is None:
        return None
    kind, topic, doc, text, answer, example = row
    halves = [(topic, text), (doc, answer)] if kind == "pair" else [(topic or doc, text)]
    found = [judgments.find(one, read or "", example or "", name) for one, read in halves]
    answers = [None if pair is None else pair.leak for pair in found]
    return False if False in answers else (True if True in answers else None)


def as_candidates(found: ExampleAudit | str | Path, kinds: Collection[str] = ()) -> AuditResult:
    """The leaks of topics as candidates: those of queries, and of queries together with their answers."""
    audit, leaks = chosen_leaks(found, kinds)
    leaks = leaks.filter(pl.col("topic_id").is_not_null())
    literals = {"test": audit.test["name"], "variant_no": 0, "similarity": 1.0, "rank": 1}
    literals |= {"type": "", "title_type": "", "differs": "", "standing": "leak"}
    frame = leaks.with_columns(
        **{name: pl.lit(value) for name, value in {**literals, "shared": None}.items()},
        topic_text="test_text",
        query_id="example_id",
        query_text="training_text",
    ).select(pl.col(name).cast(kind) for name, kind in CANDIDATE_SCHEMA.items())
    test = TestSummary(
        topics=audit.test["topics"], verdict="CONTAMINATED" if frame.height else "UNKNOWN", sentence="", settle=[],
        notes=[], leaked_topics=frame["topic_id"].unique(maintain_order=True).to_list(),
        doubts={"topics": 0, "queries": 0, "pairs": 0, "fields": {}}, fields={}, sensitivity=[], other_topics={},
    )  # fmt: skip
    summary = AuditSummary(
        threshold=_THRESHOLD, floor=_THRESHOLD, calibrated_for="", calibrated=False, encoder="", mode="exhaustive",
        top_k=0, sources={}, tests={audit.test["name"]: test}, prefilter=None,
    )  # fmt: skip
    return AuditResult(summary, frame, pl.DataFrame(schema=NEIGHBOUR_SCHEMA), audit.folder)


CELLS: Final[dict[str, Any]] = frame_schema(
    "training test part: String, items training_texts exact ngram words semantic leaking proposed pairs: Int64, "
    "verdict: String, upper: Int64, reason: String"
)


MATRIX_PAIRS: Final[dict[str, Any]] = frame_schema("training source test part: String") | OVERLAPS


@dataclass(frozen=True, eq=False, repr=False)
class LeakageMatrix(Result, shown_in="truerank.audits.leakage.training_data.report"):
    """Every training set against every test set.

    Attributes:
        suite: the sets.
        rules: what counts as an overlap.
        encoder: the name of the encoder; empty where none was asked.
        cells: columns as in `CELLS`, by training set, test set and part (query, document, pair). `items` are topics or
            documents of the test set; `exact`, `ngram` (n-grams, near-duplicates, containment), `words` (the same
            content words, or one letter apart) and `semantic` count those with that evidence, null where it was not
            asked or the encoder can read no text of a side; `leaking` those with any but words, `proposed` those with
            words only; `upper` bounds the items that leak in the same words, null where nothing bounds them.
        pairs: columns as in `MATRIX_PAIRS`; `source` is the training set that holds the text, the row's own or one
            whose data it inherits.
        checks: by test set, which planted rewordings would have been found.
        texts: by name of set, how many texts were compared, by part.
        boilerplate: by test set, passages that many of its texts hold, with their counts; they were left out of both
            sides of its cells.
        folder: where the artifacts are.
        work: what this run did and what it found done: for people, not part of the artifacts.
    """

    suite: Suite
    rules: OverlapRules
    encoder: str
    cells: pl.DataFrame
    pairs: pl.DataFrame
    checks: Mapping[str, Sensitivity]
    texts: Mapping[str, Mapping[str, int]]
    boilerplate: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    folder: Path | None = None
    work: tuple[str, ...] = ()

    verdict_words: ClassVar[tuple[str, ...]] = ("CONTAMINATED", "UNKNOWN", "CLEAN")

    def json(self) -> dict[str, Any]:
        """All but the pairs as plain values."""
        return {
            "encoder": self.encoder,
            "threshold": self.rules.threshold,
            "training": [
                {"name": row.name, "license": row.license, "parents": list(row.parents), "texts": texts}
                for row in self.suite.training
                for texts in [dict(self.texts.get(f"training {row.name}", {}))]
            ],
            "tests": [
                {
                    "name": test.name,
                    "license": test.license,
                    "texts": dict(self.texts.get(f"test {test.name}", {})),
                    "sensitivity": list(self.checks[test.name]["kinds"]) if test.name in self.checks else [],
                    "boilerplate": plain(self.boilerplate.get(test.name, ())),
                }
                for test in self.suite.tests
            ],
            "cells": self.cells.to_dicts(),
        }
