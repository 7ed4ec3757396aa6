"""The kinds of leak: which text of the test collection stands in which text of a training example."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from truerank.errors import OptionError

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
