"""What browsers send: forms of a bounded size, read as texts."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from truerank.judging.events import Event, Kind, Standing
from truerank.loading import decimal_number

#: The largest form, in bytes: a comment of the longest kind in any script, and some more.
LARGEST_BODY: Final = 128 * 1024
_MOST_FIELDS: Final = 400
_LONGEST_COMMENT: Final = 4_000
_LONGEST_REASON: Final = 500
_LONGEST_TOKEN: Final = 100
#: Nobody looks at one item for longer than this without going away.
_MOST_SECONDS: Final = 3600.0


class Refused(Exception):  # noqa: N818 - it is an answer, not a fault of ours
    """A request that is answered with a status and a sentence, and changes nothing."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


@dataclass(frozen=True)
class Form:
    """A form's fields in order."""

    fields: Sequence[tuple[str, str]]

    def one(self, name: str) -> str:
        """The last value of a field; empty if it is not there."""
        return next((value for key, value in reversed(self.fields) if key == name), "")

    def all(self, prefix: str) -> tuple[str, ...]:
        """The values of all fields whose names begin with the prefix."""
        return tuple(value for key, value in self.fields if key.startswith(prefix))


@dataclass(frozen=True)
class JudgedForm:
    """What an annotator says with a form."""

    kind: Kind
    labels: tuple[str, ...]
    comment: str
    reason: str
    seconds: float
    token: str

    @classmethod
    def of(cls, form: Form, *kinds: Kind) -> JudgedForm:
        """What a form says."""
        kind = next((one for one in kinds if form.one("act") in (one, "")), None)
        if kind is None:
            raise Refused(422, "This page has no such button. Load the page again.")
        reason = form.one("other").strip() or form.one("reason").strip()
        said = cls(
            kind=kind,
            labels=() if kind == "skip" else form.all("label"),
            comment=form.one("comment").replace("\r\n", "\n").strip(),
            reason=reason if kind == "skip" else "",
            seconds=_seconds(form),
            token=form.one("token"),
        )
        for name, text, most in (("comment", said.comment, _LONGEST_COMMENT), ("reason", reason, _LONGEST_REASON)):
            if len(text) > most:
                raise Refused(422, f"The {name} has {len(text):,} characters. At most {most:,} are kept.")
        if not said.token or len(said.token) > _LONGEST_TOKEN:
            raise Refused(422, "The form is incomplete. Load the page again.")
        return said

    def is_in(self, event: Event, item_id: str) -> bool:
        """Whether an event says the same of the same item. A token that was used before brings back its first event."""
        asked = (item_id, self.kind, self.labels, self.comment, self.reason)
        return asked == (event.item_id, event.kind, event.labels, event.comment, event.reason)

    def stands(self, standing: Standing) -> bool:
        """Whether it is what holds now."""
        held = (standing.kind, standing.labels, standing.comment, standing.reason)
        return held == (self.kind, self.labels, self.comment, self.reason)


async def read_form(request: Request) -> Form:
    """Reads a posted form."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise Refused(415, "Only forms are taken.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise Refused(413, f"The form is larger than {LARGEST_BODY // 1024} KiB.")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Refused(422, "The form cannot be read.") from error
    return Form(fields)


def posted(answer: Callable[[Request, Form], Response]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that reads the form as it comes and then answers in a thread."""

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(answer, request, await read_form(request))

    return endpoint


def _seconds(form: Form) -> float:
    """How long the item was looked at: what the page measured, or else the time since it was made."""
    measured = form.one("seconds")
    if not (said := measured or form.one("shown")):
        return 0.0
    value = decimal_number(said)
    if value is None:
        raise Refused(422, "The time is no number.")
    return round(min(max(value if measured else time.time() - value, 0.0), _MOST_SECONDS), 1)
