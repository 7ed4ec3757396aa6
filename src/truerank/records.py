"""The nouns of the field as typed records. All are immutable and cheap enough to stream by the million."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Document", "Input", "Judgment", "Qrel", "Query", "RunRow", "Topic", "TopicText"]


class Query(NamedTuple):
    """One line of a query log or one query of a training set; the text is as it was read."""

    query_id: str
    text: str


class Document(NamedTuple):
    """One document of a collection; fields that the source lacks are empty."""

    doc_id: str
    url: str = ""
    title: str = ""
    body: str = ""

    @property
    def text(self) -> str:
        """Title and body with a blank between them, as rankers read a document."""
        return f"{self.title} {self.body}" if self.title and self.body else self.title or self.body


class Topic(NamedTuple):
    """One test topic. A test set that has queries only carries them as titles."""

    topic_id: str
    title: str
    description: str = ""
    narrative: str = ""
    variants: tuple[str, ...] = ()


class TopicText(NamedTuple):
    """One text of a topic that training queries are compared with.

    `field` is "title", "description", "narrative" or "variant"; `variant_no` counts a topic's variants from 1 and is
    0 for the other fields.
    """

    test: str
    topic_id: str
    field: str
    variant_no: int
    text: str


class Qrel(NamedTuple):
    """One relevance judgment."""

    topic_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


class RunRow(NamedTuple):
    """One retrieved document of a run."""

    topic_id: str
    doc_id: str
    rank: int
    score: float
    tag: str = ""


class Judgment(NamedTuple):
    """What one person (or model) said about one item: one statement of a label file.

    `similarity` is the encoder's, where the file carries it; `probability` is the item's chance of having been sampled
    for labelling (None where nothing is known about the sample); `role` says what the annotator is: "person", "model"
    or "adjudicator", empty where nothing is known, which counts as a person. `kind` is that of an event ("label",
    "skip", "undo", "adjudicate") or "open" for an item that nobody looked at, empty where the file does not say it.
    `number` and `undoes` link the events of a history. `values` is the record as it was read, `where` and `line` say
    from where.
    """

    topic_id: str
    query_id: str
    query_text: str
    labels: tuple[str, ...]
    title: str = ""
    description: str = ""
    variant: str = ""
    similarity: float | None = None
    annotator: str = ""
    probability: float | None = None
    role: str = ""
    item_id: str = ""
    doc_id: str = ""
    dataset: str = ""
    stratum: str = ""
    kind: str = ""
    about: str = ""
    comment: str = ""
    reason: str = ""
    seconds: float = 0.0
    at: str = ""
    number: int | None = None
    undoes: int | None = None
    where: str = ""
    line: int | None = None
    values: Mapping[str, Any] = {}


class Input(NamedTuple):
    """Something that a command read, as its manifest names it.

    `name` is what results call it ("bm25"), `source` what the user gave (empty for a value of the caller's program),
    `role` the option that named it ("qrels"), `rows` how many rows, documents or topics it holds (None where nobody
    counted), `sha256` the hash of its bytes (None where it is not a file).
    """

    name: str
    source: str
    role: str
    rows: int | None = None
    sha256: str | None = None
