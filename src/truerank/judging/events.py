"""What a store keeps: events, what stands after them, and who judges."""

from __future__ import annotations

from typing import Literal, NamedTuple

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
