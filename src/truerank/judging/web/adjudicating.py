"""The pages on which an adjudicator settles what annotators disagree on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from truerank.judging.events import Disagreement, JudgingProgress, Role
from truerank.judging.web.labelling import Attempt, item_page, kept
from truerank.judging.web.pages import (
    Form,
    JudgedForm,
    Refused,
    Visit,
    adjudication_rows,
    counted,
    entered,
    item_mark,
    number_of,
    posted,
    said_text,
    who_said_what,
)

#: More rows than anybody reads; the open ones come first, so those beyond come up as these are settled.
_MOST_ROWS: Final = 500


def disagreements(request: Request) -> Response:
    """All disagreements, those that are open first."""
    visit = _entered(request)
    found = _found(visit)
    places = _places(visit)
    open_ones = [one for one in found if one.adjudicated is None]
    rows = [*open_ones, *(one for one in found if one.adjudicated is not None)][:_MOST_ROWS]
    models = bool(visit.query("models"))
    settled = len(found) - len(open_ones)
    more = f" The first {_MOST_ROWS} are listed." if len(found) > _MOST_ROWS else ""
    return visit.page(
        "list",
        heading="Disagreements",
        lead=f"{counted(len(found))} on which labels differ: {settled} settled, {len(open_ones)} open." + more,
        toggle=("/adjudicate", "Only where people disagree")
        if models
        else ("/adjudicate?models=1", "Also where only a model disagrees"),
        start=f"/adjudicate/{places[open_ones[0].item_id]}{_query(visit)}" if open_ones else "",
        start_text="Settle the first that is open",
        titles=("Item", "Topic", "Text", "Who said what", "Settled"),
        rows=adjudication_rows(visit.store, rows, [places[one.item_id] for one in rows], _query(visit)),
        pages=[],
    )


def one_disagreement(request: Request) -> Response:
    """One item with everybody's labels."""
    visit = _entered(request)
    return _page(visit, number_of(request.path_params["place"]))


def settle(request: Request, form: Form) -> Response:
    """Keeps an adjudication, and goes on to the next open disagreement."""
    visit = _entered(request, form)
    number, said = number_of(request.path_params["place"]), JudgedForm.of(form, "adjudicate")
    one, found = _at(visit, number)
    item = visit.store.item(one.item_id)
    try:
        if form.one("item") != item_mark(item):
            raise Refused(409, "The page was made for another item. Look again.")
        kept(visit, item, said)
    except Refused as refusal:
        return _page(visit, number, Attempt(said, refusal))
    places = _places(visit)
    left = [places[other.item_id] for other in found if other.adjudicated is None and other is not one]
    following = next((place for place in left if place > number), left[0] if left else None)
    if following is None:
        return visit.go(f"/adjudicate{_query(visit)}")
    return visit.go(f"/adjudicate/{following}?after={number}{'&models=1' if visit.query('models') else ''}")


def _entered(request: Request, form: Form | None = None) -> Visit:
    visit = entered(request, form)
    if visit.who.role != "adjudicator":
        raise Refused(403, "Only an adjudicator sees what others said.")
    return visit


def _found(visit: Visit) -> tuple[Disagreement, ...]:
    roles: tuple[Role, ...] = ("person", "model") if visit.query("models") else ("person",)
    return visit.store.disagreements(roles=roles)


def _query(visit: Visit) -> str:
    return "?models=1" if visit.query("models") else ""


def _places(visit: Visit) -> dict[str, int]:
    """Items are numbered as in the store, so that an address means the same item at any time."""
    return {item_id: place for place, item_id in enumerate(visit.store.item_ids(), start=1)}


def _at(visit: Visit, number: int) -> tuple[Disagreement, Sequence[Disagreement]]:
    found, places = _found(visit), _places(visit)
    one = next((one for one in found if places[one.item_id] == number), None)
    if one is None:
        raise Refused(404, "Nobody disagrees on that item.")
    return one, found


def _page(visit: Visit, number: int, attempt: Attempt | None = None) -> Response:
    one, found = _at(visit, number)
    places = _places(visit)
    at = found.index(one)
    settled = sum(other.adjudicated is not None for other in found)
    steps = [
        f"/adjudicate/{places[found[step].item_id]}{_query(visit)}" if 0 <= step < len(found) else ""
        for step in (at - 1, at + 1)
    ]
    return item_page(
        visit,
        visit.store.item(one.item_id),
        one.adjudicated,
        attempt,
        standings=who_said_what(visit.store, one.item_id),
        heading=f"Disagreement {at + 1} of {len(found)}",
        progress=JudgingProgress(settled, 0, len(found)),
        previous=steps[0],
        following=steps[1],
        told=_told(visit, one),
        can_undo=settled > 0,
        action=f"/adjudicate/{number}{_query(visit)}",
        act="adjudicate",
    )


def _told(visit: Visit, one: Disagreement) -> str:
    """What the page before did, or what holds."""
    before = number_of(visit.query("after") or "0")
    if visit.query("undone"):
        return "Taken back."
    if before:
        return "Saved."
    return "" if one.adjudicated is None else f"Settled: {said_text(one.adjudicated)}."


routes: Final = (
    Route("/adjudicate", disagreements),
    Route("/adjudicate/{place}", one_disagreement),
    Route("/adjudicate/{place}", posted(settle), methods=["POST"]),
)
