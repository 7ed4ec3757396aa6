"""The overview: how far everybody is, and how well people agree."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from truerank.errors import InputError
from truerank.judging.agreement import agreement
from truerank.judging.store import Store
from truerank.judging.web.layout import people
from truerank.judging.web.visits import entered
from truerank.reports.tables import Table

__all__ = ["router"]

router = APIRouter()


class _ShownTable(NamedTuple):
    title: str
    markup: Markup


@router.get("/overview")
def overview(request: Request) -> Response:
    """Progress by annotator, and agreement on the items that several have labelled."""
    visit = entered(request)
    rows = people(visit.store)
    labels = sum(row.progress.done for row in rows if row.role == "person")
    tables, note = _agreement(visit.store)
    return visit.page(
        "overview",
        lead=f"{len(visit.store.item_ids()):,} items; {labels:,} labels by people.",
        people=rows,
        tables=tables,
        agreement_note=note,
    )


def _agreement(store: Store) -> tuple[list[_ShownTable], str]:
    """The tables, and what there is to say where there are none. Models stand in a table of their own."""
    try:
        found = agreement(store, bootstrap=0)
    except InputError:
        return [], "Agreement is shown as soon as two people have labelled items."
    if not any(part.units for part in found.compared):
        return [], "Agreement is shown as soon as two people have labelled the same item."
    tables = [found.table(), *found.tables()[1:]] if found.models else [found.table()]
    return [_shown(table) for table in tables], "Intervals and single labels: truerank judge agreement."


def _shown(table: Table) -> _ShownTable:
    return _ShownTable(table.title or "Agreement", Markup(table.html()))
