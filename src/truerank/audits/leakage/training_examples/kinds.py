"""The kinds of leak (which text of the test collection stands in which text of an example), and the options."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

from truerank.audits.leakage.options import FIELDS
from truerank.errors import OptionError
from truerank.options import Flag, Names, Options, Range, Seed, Source
from truerank.overlaps import OverlapRules
from truerank.sources.examples import ExampleTexts

#: Roles of an example's texts that are documents.
ANY_DOCUMENT: Final = ("positive", "negative", "document")


class LeakKind(NamedTuple):
    """A kind of leak.

    Attributes:
        name: its name in columns and options.
        title: what leaks, with the side of the test collection first.
        test: the texts of the test collection: "query", "relevant" (documents) or "document" (all of them).
        training: the roles of the texts of an example.
        needs: the inputs without which it cannot be looked for.
        noun: what its shares are of, one and several.
        meaning: what a leak of the kind does.
    """

    name: str
    title: str
    test: str
    training: tuple[str, ...]
    needs: tuple[str, ...]
    noun: tuple[str, str]
    meaning: str


_QUERIES: Final = ("query", "queries")
_RELEVANT: Final = ("relevant document", "relevant documents")

#: In the order in which they are reported: from what says most about scores to what says least.
KINDS: Final = (
    LeakKind(
        "pair", "query and relevant document in one example", "query", ("query", "positive"), ("docs", "qrels"),
        _QUERIES, "The model was trained on the answer to the query.",
    ),
    LeakKind(
        "query-query", "query in a training query", "query", ("query",), (),
        _QUERIES, "The model was trained on the query, perhaps with another answer.",
    ),
    LeakKind(
        "positive-relevant", "relevant document in a training positive", "relevant", ("positive",), ("docs", "qrels"),
        _RELEVANT, "The model learnt that the document answers something.",
    ),
    LeakKind(
        "negative-relevant", "relevant document in a training negative", "relevant", ("negative",), ("docs", "qrels"),
        _RELEVANT, "The model learnt that the document answers nothing: the opposite of the judgment.",
    ),
    LeakKind(
        "query-document", "query in a training document", "query", ANY_DOCUMENT, (),
        _QUERIES, "The words of the query stand in a document that the model has read.",
    ),
    LeakKind(
        "document-corpus", "document in a training document", "document", ANY_DOCUMENT, ("docs",),
        ("document", "documents"), "The model has read documents of the collection; its queries may still be new.",
    ),
)  # fmt: skip


def check_kinds(names: Collection[str]) -> None:
    """Raises an OptionError where a name is that of no kind."""
    if unknown := [name for name in names if name not in {kind.name for kind in KINDS}]:
        known = ", ".join(kind.name for kind in KINDS)
        raise OptionError("kinds", f"there is no kind of leak '{unknown[0]}'", f"choose from {known}")


def kind_named(name: str) -> LeakKind:
    """The kind of a name."""
    return next(kind for kind in KINDS if kind.name == name)


#: The rule for whole examples: long texts leak in parts. Chosen on Vaswani with benchmarks/tools.py.
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
        sample: texts of each side that are planted for the sensitivity check, changed in every way.
        seed: of the sensitivity check.
        strict: bytes that are not UTF-8 are an error.
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
