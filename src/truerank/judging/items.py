"""What is judged: an item with its topic and the texts that are shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from truerank.text.normalising import normalise

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True)
class Text:
    """One text of an item: a query, a passage, a version of a document.

    Attributes:
        name: what it is called beside the text: "query", "V1", "passage 3".
        text: as it was read; never markup.
        id: the id in its collection.
        url: where it was found.
    """

    name: str
    text: str
    id: str = ""
    url: str = ""


@dataclass(frozen=True)
class Item:
    """One thing to judge.

    Attributes:
        item_id: unique in a store; made of the content unless the file gave one.
        topic_id: the topic or query it belongs to.
        title: the topic's title.
        description: the topic's description.
        narrative: the topic's narrative.
        variant: the query variant that it is compared with.
        texts: what is judged.
        dataset: the test set or selection that it comes from.
        stratum: the stratum of the sample that it was drawn from.
        score: what proposed it, such as a cosine similarity.
        probability: its chance of having been drawn; 1 where everything was taken.
        data: whatever else travels, JSON-like.
    """

    item_id: str
    topic_id: str
    title: str = ""
    description: str = ""
    narrative: str = ""
    variant: str = ""
    texts: tuple[Text, ...] = ()
    dataset: str = ""
    stratum: str = ""
    score: float | None = None
    probability: float = 1.0
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, hash=False)

    def text(self, name: str) -> str:
        """The text of a name; empty if the item has none."""
        return next((text.text for text in self.texts if text.name == name), "")

    def json(self) -> dict[str, Any]:
        """The item as a JSON object; empty parts are left out."""
        value: dict[str, Any] = {"item_id": self.item_id, "topic_id": self.topic_id}
        for name in ("title", "description", "narrative", "variant"):
            value[name] = getattr(self, name)
        value["texts"] = [
            {key: part for key, part in (("name", t.name), ("text", t.text), ("id", t.id), ("url", t.url)) if part}
            for t in self.texts
        ]
        value |= {"dataset": self.dataset, "stratum": self.stratum, "score": self.score}
        value |= {"probability": self.probability, "data": dict(self.data)}
        return {key: part for key, part in value.items() if part not in ("", None, [], {})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Item:
        """The item of a JSON object that `json` made."""
        texts = tuple(
            Text(part.get("name", ""), part.get("text", ""), part.get("id", ""), part.get("url", ""))
            for part in value.get("texts", ())
        )
        rest = {key: part for key, part in value.items() if key not in ("texts", "data")}
        return cls(**rest, texts=texts, data=MappingProxyType(dict(value.get("data", {}))))


def content_id(topic_id: str, title: str, texts: tuple[Text, ...]) -> str:
    """An id made of the content: the same topic and texts have the same id in every file and on every machine."""
    parts = [topic_id, normalise(title), *([text.name, text.id, normalise(text.text)] for text in texts)]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:16]


Kind = Literal["label", "skip", "undo", "adjudicate"]
Role = Literal["person", "model", "adjudicator"]


class Event(NamedTuple):
    """One row of the history, never changed.

    `at` is UTC, ISO 8601 with milliseconds; `seconds` is how long the annotator looked at the item; `token` is the
    idempotency key of the request; `undoes` is, for an undo, the number of the event that it takes back.
    """

    number: int
    at: str
    item_id: str
    annotator: str
    kind: Kind
    labels: tuple[str, ...] = ()
    comment: str = ""
    reason: str = ""
    seconds: float = 0.0
    token: str = ""
    undoes: int | None = None


class Standing(NamedTuple):
    """What holds now for one item and annotator. Labels and adjudications of one person stand beside each other."""

    item_id: str
    annotator: str
    kind: Kind
    labels: tuple[str, ...]
    comment: str
    reason: str
    at: str
    seconds: float


class Annotator(NamedTuple):
    """Who judges; `about` is a model's name and settings, or what should be known of a person."""

    name: str
    role: Role = "person"
    about: str = ""


class JudgingProgress(NamedTuple):
    """How many of an annotator's items are labelled, are skipped, and are there in all."""

    done: int
    skipped: int
    total: int

    @property
    def left(self) -> int:
        """How many are still open."""
        return self.total - self.done - self.skipped


class Disagreement(NamedTuple):
    """An item on which standing labels differ; `adjudicated` is the last adjudication, None where there is none."""

    item_id: str
    standings: tuple[Standing, ...]
    adjudicated: Standing | None


class Draft(NamedTuple):
    """An event that is to be added: the fields of `Event`, `at` empty for now; imported events keep their time."""

    item_id: str
    annotator: str
    kind: Kind
    labels: tuple[str, ...] = ()
    comment: str = ""
    reason: str = ""
    seconds: float = 0.0
    token: str = ""
    at: str = ""
