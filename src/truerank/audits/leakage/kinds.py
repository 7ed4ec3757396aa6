"""The kinds of leak: what is compared with what, by which rule, and the verdict on each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Annotated, Any, Final, Literal

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.leakage.results import (
    AuditResult,
    AuditSummary,
    KindFound,
    SpokenVerdicts,
    TestSummary,
    VerdictWord,
)
from truerank.core.plain import picked
from truerank.core.rules import Rule, rules_of
from truerank.core.verdict import ORDER, Verdict
from truerank.errors import OptionError
from truerank.judging.labels import Judgments
from truerank.options import Flag, Names, Options, Range, Source
from truerank.overlaps import OverlapRules
from truerank.sources.examples import ExampleTexts


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
KINDS: Final = tuple(rules_of("truerank.audits.leakage.documents", LeakKind).values())


def check_kinds(names: Collection[str]) -> None:
    """Raises an OptionError where a name is that of no kind."""
    if unknown := [name for name in names if name not in {kind.name for kind in KINDS}]:
        known = ", ".join(kind.name for kind in KINDS)
        raise OptionError("kinds", f"there is no kind of leak '{unknown[0]}'", f"choose from {known}")


def kind_named(name: str) -> LeakKind:
    return next(kind for kind in KINDS if kind.name == name)


#: By training source, test set and kind: items (topics, documents) that were looked for, that leak and that are in
#: doubt, the distinct training texts that leak, and the lines or examples that hold them.
CELLS: Final[dict[str, Any]] = frame_schema(
    "train test kind: String, looked_for leaked doubtful texts records: Int64, verdict: String"
)


def cells_of(
    pairs: pl.DataFrame, sources: Sequence[str], looked_for: Mapping[str, int], words: Mapping[str, tuple[str, str]]
) -> pl.DataFrame:
    """The cells of queries in training queries, columns as in `CELLS`.

    Args:
        pairs: the candidates of an audit, columns as in `results.CANDIDATE_SCHEMA`.
        sources: the training sources.
        looked_for: by test set, the topics that were compared.
        words: by test set, its verdict, and what it would be without any pair.
    """
    by_cell = ["source", "test"]
    leaks = pairs.filter(standing="leak")
    counts = leaks.group_by(by_cell).agg(leaked=pl.col("topic_id").n_unique(), texts=pl.col("query_text").n_unique())
    doubtful = pairs.filter(standing="doubt").join(leaks, on=[*by_cell, "topic_id"], how="anti")
    every = pl.DataFrame(list(product(sources, looked_for)), {"source": pl.String, "test": pl.String}, orient="row")
    found = every.join(counts, on=by_cell, how="left", maintain_order="left").join(
        doubtful.group_by(by_cell).agg(doubtful=pl.col("topic_id").n_unique()), on=by_cell, how="left",
        maintain_order="left",
    )  # fmt: skip
    found = found.with_columns(
        pl.col("leaked", "doubtful", "texts").fill_null(0),
        kind=pl.lit("query-query"),
        records=pl.lit(0),
        looked_for=pl.col("test").replace_strict(dict(looked_for), return_dtype=pl.Int64),
    )
    given, bare = (pl.col("test").replace_strict({name: both[at] for name, both in words.items()}) for at in (0, 1))
    word = pl.when(pl.col("leaked") > 0).then(given).when(pl.col("doubtful") == 0).then(bare)
    return found.with_columns(verdict=word.otherwise(pl.lit("UNKNOWN"))).select(
        pl.col({"train": "source"}.get(name, name)).cast(kind).alias(name) for name, kind in CELLS.items()
    )


#: The rule for whole examples: long texts leak in parts. Chosen on Vaswani.
RULES: Final = OverlapRules(ngram_share=0.2, similarity=0.2, containment=0.3)


@dataclass(frozen=True)
class DocumentOptions(Options):
    """Documents, where training data or test sets hold them.

    Attributes:
        docs: documents of the test set. By default those of a BEIR folder.
        qrels: judgments of the test set; without them no document is known to be relevant. By default those of a BEIR
            folder.
        rel: the lowest grade that counts as relevant.
        roles: which column of the training data is what, as query=anchor,positive=pos; by default told from names and
            contents.
        train_queries: the queries whose ids training data holds in place of texts: MS MARCO's qidpidtriples, judgments.
        train_docs: the documents whose ids training data holds in place of texts.
        kinds: the kinds of leak of documents to look for: pair, positive-relevant, negative-relevant, query-document,
            document-corpus; by default all.
        sample: how many documents are planted, each changed in every way, to measure what the audit sees.
    """

    docs: Source | None = None
    qrels: Source | None = None
    rel: Annotated[int, Range(at_least=1)] = 1
    roles: Annotated[str | None, Flag(metavar="ROLE=COLUMN,…")] = None
    train_queries: Source | None = None
    train_docs: Source | None = None
    kinds: Names = ()
    sample: Annotated[int, Range(at_least=20, at_most=2000)] = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(self.kinds)

    @property
    def texts(self) -> ExampleTexts:
        """Where the texts of ids in the training data are."""
        return ExampleTexts(self.train_queries, self.train_docs)

    @property
    def wanted(self) -> tuple[LeakKind, ...]:
        """The kinds to look for, in their order."""
        every = (kind for kind in KINDS if kind.name != "query-query")
        return tuple(kind for kind in every if not self.kinds or kind.name in self.kinds)


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
        of: how many were looked for; 0 where the kind was not.
        topics: how many topics they belong to; None where no judgment tells.
        pairs: rows of `leaks.parquet`.
        examples: training texts, counted once for each example that holds them.
        sensitivity: what was found of planted changes.
        seen: whether nothing but a leak would speak against CLEAN.
    """

    kind: str
    verdict: VerdictWord
    why: str
    evidence: tuple[str, ...] = ()
    settle: tuple[str, ...] = ()
    leaked: int = 0
    of: int = 0
    topics: int | None = None
    pairs: int = 0
    examples: int = 0
    sensitivity: tuple[KindFound, ...] = ()
    seen: bool = False

    @classmethod
    def of_summary(cls, values: Mapping[str, Any]) -> KindVerdict:
        """The verdict that a summary holds."""
        known: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in values.items()}
        return cls(**known)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def spoken_verdicts(tests: Mapping[str, TestSummary]) -> SpokenVerdicts:
    """The verdicts of test sets as `summary.json` has them."""
    shown = [
        Verdict(one["verdict"], " ".join([one["sentence"], *one["settle"]]), subject=name)
        for name, one in tests.items()
    ]
    worst = max(shown, key=lambda verdict: ORDER.index(verdict.level))
    verdicts = [picked(one, "subject, word, level, sentence") for one in shown]
    return {"verdict": worst.word, "sentence": worst.sentence, "verdicts": verdicts}


def with_kinds(
    summary: AuditSummary,
    kinds: Mapping[str, Sequence[KindVerdict]],
    leaks: pl.DataFrame,
    sources: Mapping[str, Mapping[str, Any]],
) -> AuditSummary:
    """A summary with the verdicts on documents: a test set has the worst of its queries and relevant documents.

    Args:
        summary: that of queries.
        kinds: by test set, the verdicts on the kinds of leak of documents.
        leaks: all of them, columns as in `LEAKS`.
        sources: what was counted of each source of training data.
    """
    tests, cells = dict(summary["tests"]), list[dict[str, Any]]()
    records = leaks.unique(["test", "source", "kind", "role", "training_text", "training_document"])
    counted = records.group_by("test", "source", "kind").agg(pl.col("examples").sum()).rows()
    lines = {(source, test, kind): number for test, source, kind, number in counted}
    for name, found in kinds.items():
        asked = [one for one in found if one.of and one.kind in DEFAULT_KINDS]
        words = [one.verdict for one in asked] + ([tests[name]["verdict"]] if tests[name]["looked_for"] else [])
        word: VerdictWord = next((word for word in _WORST if word in words), "UNKNOWN")
        decisive = [one for one in asked if one.verdict == word]
        sentences = [tests[name]["sentence"]] if tests[name]["verdict"] == word else []
        sentences += _spoken(decisive, word)
        settle = list(tests[name]["settle"]) if tests[name]["verdict"] == word else []
        settle += [line for one in decisive for line in one.settle]
        settle = settle[:1] if word == "CONTAMINATED" else [*dict.fromkeys(settle)]
        verdict = {"verdict": word, "sentence": " ".join(sentences), "settle": settle}
        tests[name] = {**tests[name], **verdict, "document_kinds": [one.json() for one in found]}  # type: ignore[typeddict-item]
        for source in sources:
            for one in (one for one in found if one.of):
                rows = leaks.filter(test=name, source=source, kind=one.kind)
                leaked = rows["topic_id" if kind_named(one.kind).test == "query" else "doc_id"].n_unique()
                clear = "CLEAN" if one.seen else "UNKNOWN"
                cells.append({
                    "train": source, "test": name, "kind": one.kind, "looked_for": one.of, "leaked": leaked,
                    "doubtful": 0, "texts": rows["training_text"].n_unique(),
                    "verdict": "CONTAMINATED" if leaked else clear,
                })  # fmt: skip
    every = [
        {**cell, "records": lines.get((cell["train"], cell["test"], cell["kind"]), 0)}
        for cell in (*summary["cells"], *cells)
    ]
    read = {name: {**count, **sources.get(name, {})} for name, count in summary["sources"].items()}
    return {**summary, **spoken_verdicts(tests), "tests": tests, "cells": every, "sources": read}  # type: ignore[typeddict-item]


_WORST: Final[tuple[VerdictWord, ...]] = ("CONTAMINATED", "UNKNOWN", "CLEAN")


def _spoken(kinds: Sequence[KindVerdict], word: VerdictWord) -> Iterator[str]:
    """What was found of documents, in a sentence."""
    if word == "UNKNOWN":
        yield from (f"{kind_named(one.kind).title}: {one.why}" for one in kinds)
    elif kinds:
        counted = (f"{kind_named(one.kind).phrase} ({one.leaked:,d} of {one.of:,d})" for one in kinds)
        yield f"{'Documents match' if word == 'CONTAMINATED' else 'No document matches'}: {'; '.join(counted)}."


def kinds_of(audit: AuditResult, test: str) -> tuple[KindVerdict, ...]:
    """What an audit found of each kind of leak of documents; nothing where it compared none."""
    return tuple(map(KindVerdict.of_summary, audit.summary["tests"][test].get("document_kinds", ())))


#: Kinds of leak that count where nobody says which: those that change what a score of these topics means.
DEFAULT_KINDS: Final = ("pair", "query-query", "positive-relevant", "negative-relevant")


def leaks_of(
    audit: AuditResult,
    judgments: Judgments | None,
    basis: str,
    kinds: Collection[str],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The leaks of an audit of some kinds, columns as in `LEAKS`: all, and those that count by what people said.

    A pair of query and answer is not a leak where either half of it was judged none.
    """
    if basis == "labels-only" and judgments is None:
        raise OptionError("basis", "labels-only needs labels", "give `labels`, or choose another")
    leaks = audit.leaks.filter(pl.col("kind").is_in(list(kinds)))
    columns = ("kind", "test", "topic_id", "doc_id", "training_text", "training_document", "example_id")
    said = [_said(row, judgments) for row in leaks.select(columns).iter_rows()]
    counts = (True,) if basis == "labels-only" else (True, None)
    return leaks, leaks.filter(pl.Series([one in counts for one in said], dtype=pl.Boolean))


def _said(row: tuple[str, ...], judgments: Judgments | None) -> bool | None:
    """What people said of a leak."""
    if judgments is None:
        return None
    kind, test, topic, doc, text, answer, example = row
    halves = [(topic, text), (doc, answer)] if kind == "pair" else [(topic or doc, text)]
    found = [judgments.find(one, read or "", example or "", test) for one, read in halves]
    answers = [None if pair is None else pair.leak for pair in found]
    return False if False in answers else (True if True in answers else None)
