"""The options of `leakage examples`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from truerank.audits.leakage.options import FIELDS
from truerank.audits.leakage.training_examples.kinds import KINDS
from truerank.errors import OptionError
from truerank.options import Flag, Names, Options, Range, Seed, Source
from truerank.overlaps import OverlapRules
from truerank.sources.examples import ExampleTexts

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
