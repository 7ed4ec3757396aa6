"""One self-contained HTML page: verdicts first, then sections of prose, tables, figures, lists and facts.

The page asks the network for nothing and says so in its content security policy; its only script is the one of this
package, allowed by its hash. It reads well in light and dark, on paper, on a telephone, by keyboard and by ear.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from markupsafe import Markup

from truerank.core.listings import Listing
from truerank.core.tables import Column, Table, escape_html
from truerank.core.verdict import LEVELS, Level, Verdict

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class FileGroup:
    """Files of one folder beside the page; the folder is empty for those that lie where the page does."""

    folder: str
    files: tuple[str, ...]

    def links(self) -> list[tuple[str, str]]:
        """Names and addresses."""
        return [(name, quote(f"{self.folder}/{name}" if self.folder else name)) for name in self.files]

    def stems(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """By name without ending: the endings with their addresses."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, link in self.links():
            stem, _, ending = name.rpartition(".")
            found.setdefault(stem or name, []).append((ending, link))
        return list(found.items())


@dataclass(frozen=True)
class Prose:
    """Paragraphs of plain text."""

    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """A figure with its caption; the SVG must be inert, as `figures.to_svg` makes it.

    A dense figure has words close to one another: on a narrow screen it scrolls in place of getting larger letters. A
    figure with two layouts appears twice, once for wide and once for narrow screens.
    """

    svg: str
    caption: str
    dense: bool = False
    screen: Literal["every", "wide", "narrow"] = "every"


@dataclass(frozen=True)
class Facts:
    """Names and values, nested as deep as needed, folded away under a heading."""

    title: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class AnswerLine:
    """One question and its answer in a list that reads from the top.

    Args:
        word: the answer in a word or two.
        level: how the word is shown.
        consequence: what follows from it; set apart.
        settles: what to do next; empty for nothing.
        link: a page that says more; empty for none.
        code: of its rule; its address on the page.
    """

    question: str
    word: str
    level: Level
    evidence: str
    consequence: str = ""
    settles: str = ""
    link: str = ""
    code: str = ""


@dataclass(frozen=True)
class AnswerList:
    """Questions with their answers, one below the other."""

    lines: tuple[AnswerLine, ...]


@dataclass(frozen=True)
class ContrastRow:
    """A line of a table of differences.

    Args:
        note: below the name; empty for none.
        scores: of both systems, in figures.
        value: the difference; None for a range of all that is possible.
        ends: of the interval, or of the range; None where there is none.
        figures: the difference and its interval, as two texts.
        role: what it is shown as: "part" for what a fault touches, "answer" for what the answer rests on.
    """

    name: str
    note: str
    scores: tuple[str, str]
    value: float | None
    ends: tuple[float, float] | None
    figures: tuple[str, str]
    role: Literal["", "part", "answer"] = ""

    @property
    def mark(self) -> str:
        """Whether the interval is above 0, includes it, or is below."""
        low, high = self.ends or (self.value or 0.0, self.value or 0.0)
        return "filled" if low > 0 else "cross" if high < 0 else "hollow"


@dataclass(frozen=True)
class ContrastTable:
    """Differences between two systems: a line each with both scores, and the interval drawn.

    Args:
        caption: the finding, or what the lines are.
        measure: what the figures mean; empty for nothing.
        names: of both systems.
        interval: what the ends are: "95% interval".
        key: what the marks mean.
    """

    caption: str
    measure: str
    names: tuple[str, str]
    interval: str
    rows: tuple[ContrastRow, ...]
    key: str = ""

    def place(self, value: float) -> str:
        """Where a difference stands from left to right, in per cent; 0 is in the middle."""
        most = max(abs(each or 0.0) for row in self.rows for each in (row.value, *(row.ends or ())))
        return f"{50 + 50 * value / (1.1 * most or 1):.2f}"


@dataclass(frozen=True)
class Front:
    """The first screen of a page: the answer, the table it rests on, and what follows.

    Args:
        kicker: where it comes from, and what was read.
        question: what the word answers.
        fault: what was found, as the page has it in its accent colour; empty without a fault.
        text: the rest of the answer; `strong` of it stands out.
        decision: what it means for a choice; empty for nothing.
        example: what was found once, as names and texts, with a sentence and a link to all; empty for none.
        table: what the answer rests on; None where nothing is compared.
        notes: sections below the table: a title, and paragraphs.
        checks: what was checked, a mark and a line each.
    """

    kicker: tuple[str, str]
    question: str
    word: str
    fault: str
    text: str
    strong: str = ""
    decision: str = ""
    example: tuple[tuple[str, str], ...] = ()
    example_note: tuple[str, str] = ("", "")
    table: ContrastTable | None = None
    notes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    checks: tuple[tuple[str, str], ...] = ()

    @property
    def level(self) -> Level:
        """How the word is shown."""
        return LEVELS.get(self.word, "unknown")

    def parts(self) -> list[str]:
        """The text before what stands out in it, that, and what comes behind."""
        before, strong, after = self.text.partition(self.strong) if self.strong else (self.text, "", "")
        return [before, strong, after]


Part = Prose | Table | Drawing | Listing | Facts | AnswerList | ContrastTable


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading; `name` is a lower-case word that is unique in the page."""

    name: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Page:
    """A report.

    Args:
        kicker: the few words above it that say where it comes from.
        lead: the sentence below it.
        verdicts: most important first.
        files: names of the files beside the page, which it links to, such as "tables/results.csv".
        front: the first screen; below it all sections are folded.
    """

    title: str
    kicker: str
    lead: str
    verdicts: tuple[Verdict, ...]
    sections: tuple[Section, ...]
    footer: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    front: Front | None = None

    def file_groups(self) -> list[FileGroup]:
        """The files by folder, those beside the page first."""
        groups: dict[str, list[str]] = {"": []}
        for name in self.files:
            folder, _, file = name.rpartition("/")
            groups.setdefault(folder, []).append(file)
        return [FileGroup(folder, tuple(names)) for folder, names in groups.items() if names]

    def html(self) -> str:
        """The page as one HTML document; equal pages give equal texts."""
        script = _resource("page.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        return (
            _environment()
            .get_template("page.html.j2")
            .render(
                page=self,
                front=self.front and _environment().get_template("front.html.j2").render(front=self.front),
                most=_MOST_VERDICTS,
                sections=[(section, [_part(part) for part in section.parts]) for section in self.sections],
                style=Markup(_resource("page.css")),
                script=Markup(script),
                policy=f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
                "base-uri 'none'; form-action 'none'",
            )
        )


_WIDE_TABLE: Final = 9
_OPTION: Final = re.compile(r"--[a-z][a-z-]*")
#: More verdicts than these are folded away.
_MOST_VERDICTS: Final = 12
#: A figure that is this many times as high as it is wide is folded away.
_TALL: Final = 1.6
_VIEW_BOX: Final = re.compile(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"')


def _part(part: Part) -> Markup:
    match part:
        case Prose(paragraphs):
            inside = "".join(f"<p>{escape_html(paragraph)}</p>\n" for paragraph in paragraphs)
            return Markup(f'<div class="prose">\n{inside}</div>\n')
        case Table():
            return _table(part)
        case Drawing():
            drawn = part.svg
            if part.dense:
                drawn = f'<div class="dense" role="region" tabindex="0" aria-label="Figure">\n{drawn}</div>\n'
            size = _VIEW_BOX.search(part.svg)
            if part.screen == "every" and size is not None and float(size[2]) > _TALL * float(size[1]):
                drawn = f"<details><summary>Show the figure</summary>\n{drawn}</details>\n"
            only = "" if part.screen == "every" else f' class="{part.screen}-only"'
            return Markup(f"<figure{only}>\n{drawn}<figcaption>{escape_html(part.caption)}</figcaption>\n</figure>\n")
        case Listing() | ContrastTable() | AnswerList():
            name = {Listing: "listing", ContrastTable: "contrast"}.get(type(part), "answers")
            return Markup(_environment().get_template(f"{name}.html.j2").render(part=part))
        case Facts(title, values):
            summary = f"<summary>{escape_html(title)}</summary>"
            return Markup(f'<details class="facts">{summary}\n{_facts(values)}</details>\n')


def _table(table: Table) -> Markup:
    """A table that scrolls by itself where the page is narrower."""
    size = " wide" if len(table.columns) >= _WIDE_TABLE else ""
    label = escape_html(table.title or "Table")
    return Markup(f'<div class="table{size}" role="region" tabindex="0" aria-label="{label}">\n{table.html()}</div>\n')


def _facts(values: Mapping[str, Any]) -> Markup:
    items = "".join(f"<dt>{escape_html(str(name))}</dt><dd>{_fact(value)}</dd>\n" for name, value in values.items())
    return Markup(f"<dl>\n{items}</dl>\n")


def _fact(value: Any) -> Markup:
    if isinstance(value, Mapping):
        return _facts(value) if value else Markup("–")
    if isinstance(value, Sequence) and not isinstance(value, str):
        rows = [item for item in value if isinstance(item, Mapping)]
        if rows and len(rows) == len(value):
            keys = list(dict.fromkeys(key for row in rows for key in row))
            columns = tuple(Column(str(key)) for key in keys)
            return _table(Table("", columns, tuple(tuple(_plain(row.get(key)) for key in keys) for row in rows)))
        return Markup(escape_html(", ".join(_plain(item) for item in value) or "–"))
    return Markup(f"<bdi>{escape_html(_plain(value))}</bdi>")


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def templates(package: str) -> jinja2.Environment:
    """The templates of a package; a name that is not there is an error."""
    # Here: many results are never drawn as a page.
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = templates("truerank.core")
    # The page's own escaping also replaces characters that HTML forbids.
    environment.filters["clean"] = lambda text: Markup(escape_html(str(text)))
    environment.filters["raw"] = Markup
    # Options are not broken in two.
    environment.filters["coded"] = lambda text: Markup(_OPTION.sub(r"<code>\g<0></code>", escape_html(str(text))))
    return environment


@functools.cache
def _resource(name: str) -> str:
    return resources.files("truerank.core").joinpath("templates", name).read_text(encoding="utf-8")
