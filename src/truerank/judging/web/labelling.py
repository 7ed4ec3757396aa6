"""The pages on which annotators judge, one item at a time, and adjudicators settle what annotators disagree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from truerank.errors import InputError
from truerank.judging import samples
from truerank.judging.items import Disagreement, Item, JudgingProgress, Role, Standing
from truerank.judging.web.pages import (
    Form,
    JudgedForm,
    Refused,
    Visit,
    adjudication_rows,
    entered,
    item_mark,
    number_of,
    own_rows,
    posted,
    said_text,
    shown_groups,
    shown_item,
    who_said_what,
)
from truerank.text.printable import counted

_ROWS_PER_PAGE: Final = 200


class Attempt(NamedTuple):
    """A form that could not be taken: what it said, and why not."""

    said: JudgedForm
    refusal: Refused


def next_item(request: Request) -> Response:
    """The first item that is still open, or the page that says that there is none."""
    visit = entered(request)
    place, before = _next_place(visit), visit.query("after")
    after = f"?after={number_of(before)}" if before else ""
    if place is None:
        progress = visit.store.progress(visit.name)
        told = _told(visit, visit.store.assigned(visit.name))
        return visit.page("done", progress=progress, told=told, can_undo=progress.done + progress.skipped > 0)
    return visit.go(f"/judge/{place}{after}")


def one_item(request: Request) -> Response:
    """One item, with what the annotator said about it before."""
    visit = entered(request)
    ids, number = _found(visit)
    return _own_page(visit, ids, number)


def label(request: Request, form: Form) -> Response:
    """Keeps a label or a skip, and goes on to the next open item."""
    visit = entered(request, form)
    ids, number = _found(visit)
    item = visit.store.item(ids[number - 1])
    said = JudgedForm.of(form, "label", "skip")
    try:
        if form.one("item") != item_mark(item):
            raise Refused(409, "Another item stood here when the page was made. Look again.")
        kept(visit, item, said)
    except Refused as refusal:
        return _own_page(visit, ids, number, Attempt(said, refusal))
    following = _next_place(visit)
    return visit.go(f"/judge?after={number}" if following is None else f"/judge/{following}?after={number}")


def undo(request: Request, form: Form) -> Response:
    """Takes back what the annotator said last, and shows that item."""
    visit = entered(request, form)
    event = visit.store.undo(visit.name, form.one("token")[:100])
    if event is None:
        raise Refused(409, "There is nothing to take back.")
    taken = next((e for e in visit.store.events(event.item_id, visit.name) if e.number == event.undoes), event)
    if taken.kind == "adjudicate":
        return visit.go(f"/adjudicate/{visit.store.item_ids().index(event.item_id) + 1}?undone=1")
    ids = visit.store.assigned(visit.name)
    return visit.go(f"/judge/{ids.index(event.item_id) + 1}?undone=1" if event.item_id in ids else "/mine")


def mine(request: Request) -> Response:
    """The annotator's items with what they said."""
    visit = entered(request)
    total = len(visit.store.assigned(visit.name))
    page = number_of(visit.query("page") or "1")
    first = (page - 1) * _ROWS_PER_PAGE + 1
    if page < 1 or first > max(total, 1):
        raise Refused(404, "The list has no such page.")
    progress = visit.store.progress(visit.name)
    # Address, name and relation of the pages before and after.
    pages = [(f"/mine?page={page - 1}", "Previous page", "prev")] if page > 1 else []
    pages += [(f"/mine?page={page + 1}", "Next page", "next")] if page * _ROWS_PER_PAGE < total else []
    return visit.page(
        "list",
        heading="My items",
        lead=f"{counted(progress.total, 'item')}: {progress.done} labelled, {progress.skipped} skipped, "
        f"{progress.left} left.",
        toggle=None,
        start="/judge" if progress.left else "",
        start_text="Go on",
        titles=("Item", "Topic", "Text", "What I said", "State"),
        rows=own_rows(visit.store, visit.name, first, first + _ROWS_PER_PAGE - 1),
        pages=pages,
    )


def kept(visit: Visit, item: Item, said: JudgedForm) -> None:
    """Writes what somebody said; it is on the disk when this returns, and once only, however often it is sent."""
    if said.kind == "skip" and not said.reason:
        raise Refused(422, "Say why you skip it.")
    if said.kind != "skip":
        try:
            said = replace(said, labels=visit.store.scheme.check(said.labels, item))
        except InputError as error:
            raise Refused(422, _sentence(error)) from error
    try:
        event = visit.store.record(
            item.item_id, visit.name, said.kind, said.labels,
            comment=said.comment, reason=said.reason, seconds=said.seconds, token=said.token,
        )  # fmt: skip
    except InputError as error:
        raise Refused(503, f"Nothing was kept: {_sentence(error)}") from error
    if not said.is_in(event, item.item_id):
        raise Refused(409, "This page was sent before with another answer, which was kept. Confirm again to change it.")
    if not any(map(said.stands, visit.store.standing(item.item_id, visit.name))):
        raise Refused(409, "This page was sent before, and what it said was changed since. Confirm again to keep it.")


def item_page(visit: Visit, item: Item, standing: Standing | None, attempt: Attempt | None, **values: Any) -> Response:
    """The page of an item, with what is chosen in it."""
    scheme = visit.store.scheme
    before: JudgedForm | Standing | None = attempt.said if attempt else standing
    reason = before.reason if before else ""
    known = reason in scheme.skip_reasons
    return visit.page(
        "item",
        attempt.refusal.status if attempt else 200,
        item=item,
        item_mark=item_mark(item),
        item_scheme=scheme.for_item(item),
        shown=shown_item(item, scheme.view),
        groups=shown_groups(scheme.for_item(item), item),
        chosen=before.labels if before else (),
        comment=before.comment if before else "",
        reason_given=reason if known else "",
        other_reason="" if known else reason,
        skipping=attempt is not None and attempt.said.kind == "skip",
        error=attempt.refusal.message if attempt else "",
        **values,
    )


def _next_place(visit: Visit) -> int | None:
    """The place of the first open item; where none is left, whoever feeds the store is asked for more."""
    state = visit.request.app.state
    item = samples.next_item(visit.store, visit.name, state.proposer, batch=state.batch)
    return None if item is None else visit.store.assigned(visit.name).index(item.item_id) + 1


def _found(visit: Visit) -> tuple[Sequence[str], int]:
    ids, number = visit.store.assigned(visit.name), number_of(visit.request.path_params["place"])
    if not 1 <= number <= len(ids):
        raise Refused(404, "You have no such item.")
    return ids, number


def _own_page(visit: Visit, ids: Sequence[str], number: int, attempt: Attempt | None = None) -> Response:
    item = visit.store.item(ids[number - 1])
    progress = visit.store.progress(visit.name)
    standing = _standing(visit, item.item_id)
    return item_page(
        visit,
        item,
        standing,
        attempt,
        standings=(),
        heading=f"Item {number} of {len(ids)}",
        progress=progress,
        previous=f"/judge/{number - 1}" if number > 1 else "",
        following=f"/judge/{number + 1}" if number < len(ids) else "",
        told=_told(visit, ids) or (f"You said: {said_text(standing)}." if standing else ""),
        can_undo=progress.done + progress.skipped > 0,
        action=f"/judge/{number}",
        act="label",
    )


def _told(visit: Visit, ids: Sequence[str]) -> str:
    """What the page before did, told from the store and not from the address."""
    if visit.query("undone"):
        return "Taken back."
    number = number_of(visit.query("after") or "0")
    if not 1 <= number <= len(ids):
        return ""
    standing = _standing(visit, ids[number - 1])
    return "" if standing is None else f"Item {number}: {said_text(standing)}. Saved."


def _standing(visit: Visit, item_id: str) -> Standing | None:
    standings = visit.store.standing(item_id=item_id, annotator=visit.name)
    return next((standing for standing in standings if standing.kind != "adjudicate"), None)


def _sentence(error: InputError) -> str:
    """A fault without its place: "No label. Choose one of …"."""
    return ". ".join(part[:1].upper() + part[1:] for part in (error.fault, error.remedy) if part) + "."


#: More rows than anybody reads; the open ones come first, so those beyond come up as these are settled.
_MOST_ROWS: Final = 500


def disagreements(request: Request) -> Response:
    """All disagreements, those that are open first."""
    visit = _entered(request)
    found = _disagreements(visit)
    places = _places(visit)
    open_ones = [one for one in found if one.adjudicated is None]
    rows = [*open_ones, *(one for one in found if one.adjudicated is not None)][:_MOST_ROWS]
    models = bool(visit.query("models"))
    settled = len(found) - len(open_ones)
    more = f" The first {_MOST_ROWS} are listed." if len(found) > _MOST_ROWS else ""
    return visit.page(
        "list",
        heading="Disagreements",
        lead=f"{counted(len(found), 'item')} on which labels differ: {settled} settled, {len(open_ones)} open." + more,
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
    visit = _entered(request)
    return _disagreement_page(visit, number_of(request.path_params["place"]))


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
        return _disagreement_page(visit, number, Attempt(said, refusal))
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


def _disagreements(visit: Visit) -> tuple[Disagreement, ...]:
    roles: tuple[Role, ...] = ("person", "model") if visit.query("models") else ("person",)
    return visit.store.disagreements(roles=roles)


def _query(visit: Visit) -> str:
    return "?models=1" if visit.query("models") else ""


def _places(visit: Visit) -> dict[str, int]:
    """Items are numbered as in the store, so that an address means the same item at any time."""
    return {item_id: place for place, item_id in enumerate(visit.store.item_ids(), start=1)}


def _at(visit: Visit, number: int) -> tuple[Disagreement, Sequence[Disagreement]]:
    found, places = _disagreements(visit), _places(visit)
    one = next((one for one in found if places[one.item_id] == number), None)
    if one is None:
        raise Refused(404, "Nobody disagrees on that item.")
    return one, found


def _disagreement_page(visit: Visit, number: int, attempt: Attempt | None = None) -> Response:
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
        told=_notice(visit, one),
        can_undo=settled > 0,
        action=f"/adjudicate/{number}{_query(visit)}",
        act="adjudicate",
    )


def _notice(visit: Visit, one: Disagreement) -> str:
    """What the page before did, or what holds."""
    before = number_of(visit.query("after") or "0")
    if visit.query("undone") or before:
        return "Taken back." if visit.query("undone") else "Saved."
    return "" if one.adjudicated is None else f"Settled: {said_text(one.adjudicated)}."


routes: Final = (
    Route("/judge", next_item),
    Route("/judge/{place}", one_item),
    Route("/judge/{place}", posted(label), methods=["POST"]),
    Route("/undo", posted(undo), methods=["POST"]),
    Route("/mine", mine),
    Route("/adjudicate", disagreements),
    Route("/adjudicate/{place}", one_disagreement),
    Route("/adjudicate/{place}", posted(settle), methods=["POST"]),
)
