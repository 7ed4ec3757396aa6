"""Results are data; what they look like is found by their type.

A result names the module that knows how it is shown. That module registers functions with `summarises` and, where
there is a page or another kind of file, with `reports` or `writes`. So the result imports nothing of its report, and
prints well in a terminal and in a notebook all the same.
"""

from __future__ import annotations

import copy
import functools
import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar

from truerank.core.tables import Table, escape_html
from truerank.errors import TruerankError

if TYPE_CHECKING:
    from truerank.core.figures.export import Picture
    from truerank.core.report import Report
    from truerank.core.verdict import Verdict

__all__ = [
    "Format", "Result", "Summary", "gallery_notes", "page_note", "place_note", "report", "reports", "shows",
    "summarises", "summary", "writer", "writes",
]  # fmt: skip

R = TypeVar("R", bound="Result")
F = TypeVar("F", bound=Callable[..., Any])

Format = Literal["text", "markdown", "latex", "csv", "json"]

_FORMS: Final = {"markdown": Table.markdown, "latex": Table.latex, "csv": Table.csv}
#: Lines that say what files were taken for, and those of them for what was not understood.
_MOST_READ, _MOST_UNREAD = 12, 4
_summaries: Final[dict[type, Callable[[Any], Summary]]] = {}
_reports: Final[dict[type, Callable[[Any], Report]]] = {}
_writers: Final[dict[type, Callable[[Any, Any], None]]] = {}


@dataclass(frozen=True)
class Summary:
    """What a command prints.

    Attributes:
        parts: tables and lines in reading order; lines are for people and are in the text form only.
        details: more of them, which text shows on `--verbose` only.
        json: one JSON object with everything.
        verdicts: what `--fail-on` looks at.
        notes: where files are; on stderr of a terminal, without one at the end of the text on stdout.
        width: characters per line of tables in text; None for as wide as they are.
        fault: an error that ends the command after its result was printed.
        pictures: draws the figures that a notebook shows below the tables.
    """

    parts: tuple[Table | str, ...]
    json: Mapping[str, Any]
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    width: int | None = None
    fault: TruerankError | None = field(default=None, compare=False)
    pictures: Callable[[], Iterable[Picture]] = field(default=tuple, compare=False)
    details: tuple[Table | str, ...] = ()

    def whole(self) -> Summary:
        """The same with the details."""
        return replace(self, parts=(*self.parts, *self.details), details=())

    def show(self, form: Format = "text") -> str:
        """The summary in one of the forms of `--format`."""
        if form == "json":
            return json.dumps(self.json, ensure_ascii=False) + "\n"
        if form == "text":
            return "\n".join(part.text(self.width) if isinstance(part, Table) else f"{part}\n" for part in self.parts)
        return "\n".join(_FORMS[form](part) for part in (*self.parts, *self.details) if isinstance(part, Table))


class Result:
    """Base of all results: what a command returns, printed by its type.

    A subclass says where it is shown: `class Evaluation(Result, shown_in="truerank.measures.report")`.

    Attributes:
        verdict_words: the words of its verdicts that `--fail-on` takes, the worst first; empty without verdicts.
        fails_on: the default of `--fail-on`.
        has_details: whether the command has `--verbose`.
        unknown_code: the exit code where `--fail-on` was given and the data cannot tell.
        readings: what each file that was given without an option was taken for.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ()
    fails_on: ClassVar[str] = "never"
    has_details: ClassVar[bool] = False
    unknown_code: ClassVar[int] = 0
    _shown_in: ClassVar[str] = ""
    readings: tuple[Any, ...] = ()

    def __init_subclass__(cls, shown_in: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if shown_in:
            cls._shown_in = shown_in

    def read_from(self: R, readings: tuple[Any, ...]) -> R:
        """The same, which says what each file was taken for."""
        found = copy.copy(self)
        object.__setattr__(found, "readings", readings)
        return found

    def go_on(self) -> str:
        """What a command does after its result was printed, such as serving pages; returns a last note."""
        return ""

    def __eq__(self, other: object) -> bool:
        """Whether another result of the same type holds the same values, frames and arrays."""
        return self is other or (is_dataclass(self) and _same(self, other))

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return summary(self).show().rstrip("\n")

    def _repr_html_(self) -> str:
        found = summary(self)
        parts = [part.html() if isinstance(part, Table) else _text(part) for part in found.parts]
        return "\n".join((*parts, *(picture._repr_html_() for picture in found.pictures())))


def _same(one: Any, other: Any) -> bool:
    """Whether two values hold the same; frames, and what is not a number, too."""
    if one is other or type(one) is not type(other):
        return one is other
    if hasattr(one, "equals"):
        return bool(one.equals(other))
    left, right = _parts(one), _parts(other)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right or (left != left and right != right))  # noqa: PLR0124 - nan


def _parts(value: Any) -> Any:
    """What a value consists of; the value itself where that is nothing else."""
    if is_dataclass(value):
        return [getattr(value, each.name) for each in fields(value) if each.compare]
    if isinstance(value, Mapping):
        return [*value.items()]
    return value.tolist() if hasattr(value, "tolist") else value


def _text(text: str) -> str:
    return f'<pre style="white-space: pre-wrap">{escape_html(text.strip())}</pre>'


def _registry(known: dict[type, F], kind: type) -> Callable[[F], F]:
    def register(function: F) -> F:
        known[kind] = function
        return function

    return register


def summarises(kind: type[R]) -> Callable[[Callable[[R], Summary]], Callable[[R], Summary]]:
    """Registers what a command prints of a type of result."""
    return _registry(_summaries, kind)


def shows(kind: type, place: tuple[str, str] | None = None, *, width: int | None = None) -> Callable[[F], F]:
    """Registers the table that is all that a command prints of a type of result.

    Args:
        place: what a note calls its `out`, and the file there; without it there is no note.
    """

    def register(table: F) -> F:
        def shown(result: Any) -> Summary:
            notes = () if place is None else place_note(place[0], result.out, place[1])
            return Summary((table(result),), result.json(), notes=notes, width=width)

        _summaries[kind] = shown
        return table

    return register


def reports(kind: type[R]) -> Callable[[Callable[[R], Report]], Callable[[R], Report]]:
    """Registers the report of a type of result."""
    return _registry(_reports, kind)


def writes(kind: type[R]) -> Callable[[Callable[[R, Any], None]], Callable[[R, Any], None]]:
    """Registers what writes the artifacts of a type of result, where they are more or other than a report."""
    return _registry(_writers, kind)


def place_note(what: str, place: Path | None, file: str = "") -> tuple[str, ...]:
    """The note that says where a result was written, or a file of it; none where it was not."""
    return () if place is None else (f"{what}: {place / file}",)


def gallery_notes(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The note on benchmarks of the gallery that were recognised: the fact `gallery` of every audit."""
    known = facts.get("gallery") or ()
    if len(known) < 2:
        return tuple(one["note"] for one in known)
    named = ", ".join(f"{one['name']} ({one['page']})" for one in known)
    return (f"In the gallery: {named}.",)


def page_note(folder: Path | None) -> tuple[str, ...]:
    """The note that names the page of a result, where it was written."""
    return place_note("report", folder, "report.html")


def writer(result: Result) -> Callable[[Any], None] | None:
    """What writes the artifacts of a result to a run; None where its report is all."""
    found = _registered(result, _writers)
    return None if found is None else functools.partial(found, result)


def summary(result: Result) -> Summary:
    """What a command prints of its result.

    Args:
        result: what a public function returned.

    Raises:
        TypeError: it is not a result of truerank.
    """
    function = _registered(result, _summaries)
    if function is None:
        raise TypeError(f"{result._shown_in} does not say how a {type(result).__name__} is shown")
    found: Summary = function(result)
    return _with_readings(found, result.readings) if result.readings else found


def _with_readings(found: Summary, readings: tuple[Any, ...]) -> Summary:
    """What was given, file by file, with what was done to its rows; what was not understood last."""
    kinds = ("nothing known", "left out")
    last = [one.sentence() for kind in kinds for one in readings if one.kind == kind]
    lines = [line for one in readings if one.kind not in kinds for line in one.lines()]
    unread = [*last[:_MOST_UNREAD], *last[-1:]] if len(last) > _MOST_UNREAD else last
    shown = [*lines[: _MOST_READ - len(unread)], *unread]
    details: tuple[str, ...] = ()
    if hidden := len(lines) + len(last) - len(shown):
        shown.append(f"and {hidden} more lines (-v)")
        details = ("\n".join(line for one in readings for line in one.lines()),)
    values = {"files": [one.json() for one in readings], **found.json}
    return replace(found, parts=("\n".join(shown), *found.parts), details=(*details, *found.details), json=values)


def report(result: Result) -> Report:
    """The report of a result, where there is one.

    Args:
        result: what a public function returned.

    Raises:
        TypeError: it is not a result of truerank, or one without a page.
    """
    function = _registered(result, _reports)
    if function is None:
        raise TypeError(f"a {type(result).__name__} has no page; its summary shows it")
    found: Report = function(result)
    return found


def _registered(result: Result, known: Mapping[type, Callable[..., Any]]) -> Callable[..., Any] | None:
    """The function that is registered for the type of a result, or for one of its bases."""
    if not isinstance(result, Result):
        raise TypeError(f"a {type(result).__name__} is not a result of truerank")
    importlib.import_module(result._shown_in)
    return next((known[kind] for kind in type(result).__mro__ if kind in known), None)
