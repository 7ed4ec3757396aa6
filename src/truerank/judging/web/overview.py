"""The overview: how far everybody is, and how well people agree."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from truerank.core.tables import Column, Table
from truerank.errors import InputError
from truerank.judging.agreement import agreement
from truerank.judging.coefficients import Score
from truerank.judging.definitions import definitions
from truerank.judging.store import Store
from truerank.judging.web.pages import counted, entered, people

_TITLES: Final = {
    "percentage": "AnnotatorAgreement",
    "cohen": "Cohen's kappa",
    "fleiss": "Fleiss' kappa",
    "krippendorff": "Krippendorff's alpha",
}


#: Two names, the items that were compared, and the coefficients.
_Row: TypeAlias = tuple[str, str, int, Mapping[str, Score]]


class _ShownTable(NamedTuple):
    """A table of figures as HTML, below its heading."""

    title: str
    markup: Markup


class Figures:
    """The overview's figures, computed once for everybody who looks, and again when something was said since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._after: tuple[object, ...] = ()
        self._values: dict[str, Any] = {}

    def values(self) -> dict[str, Any]:
        """What the page shows."""
        with self._lock:
            now = (self._store.last_event(), *self._store.annotators())
            if now != self._after:
                self._values, self._after = _figures(self._store), now
            return self._values


def overview(request: Request) -> Response:
    """Progress by annotator, and agreement on the items that several have labelled."""
    visit = entered(request)
    figures: Figures = request.app.state.figures
    return visit.page("overview", **figures.values())


def _figures(store: Store) -> dict[str, Any]:
    rows = people(store)
    labels = sum(row.progress.done for row in rows if row.role == "person")
    tables, note = _agreement(store)
    lead = f"{counted(len(store.item_ids()))}; {labels:,} labels by people."
    return {"lead": lead, "people": rows, "tables": tables, "agreement_note": note}


def _agreement(store: Store) -> tuple[list[_ShownTable], str]:
    """The tables, and what there is to say beside them. Models stand in a table of their own."""
    try:
        found = agreement(store, resamples=0)
    except InputError:
        return [], "It is shown as soon as two people have labelled items."
    compared = [part for part in found.compared if part.units]
    main = definitions(store.scheme)[0].name
    models = [pair for pair in found.models if pair.definition == main and pair.units]
    tables = []
    if compared:
        rows = [(part.definition.name, part.definition.meaning, part.units, part.scores) for part in compared]
        who = ", ".join(annotator.name for annotator, _ in found.annotators)
        tables.append(_table(f"People: {who}", ("Definition", "What is compared"), rows))
    if models:
        rows = [(pair.first, pair.second, pair.units, pair.scores) for pair in models]
        tables.append(
            _table(f"Models against people ({main}); not part of the figures above", ("Model", "Against"), rows)
        )
    if not tables:
        return [], "It is shown as soon as two people have labelled the same item."
    return tables, "Intervals, single labels and who confuses what: truerank judge agreement."


def _table(
    title: str, names: tuple[str, str], rows: Sequence[tuple[str, str, int, Mapping[str, Score]]]
) -> _ShownTable:
    used = list(dict.fromkeys(name for row in rows for name in row[3]))
    columns = [*map(Column, names), Column("Items", align="right", format=",d")]
    columns += [Column(_TITLES[name], align="right", format=".0%" if name == "percentage" else ".2f") for name in used]
    cells = [
        (first, second, units, *(scores[name].value if name in scores else None for name in used))
        for first, second, units, scores in rows
    ]
    return _ShownTable(title, Markup(Table(f"{title}.", tuple(columns), tuple(cells)).html()))


routes: Final = (Route("/overview", overview),)
