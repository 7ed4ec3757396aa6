"""Fills the tables and figures of a page of results from the folders that the commands wrote.

    python scripts/make_results_page.py docs/reusability-results.md cacm=build/simulations/cacm vaswani=… [--check]

The folders are those of `pool simulate --out` or `experiment report --out`: `tables/` and `figures/`. Comments on the
page say what it shows:

    <!-- table: cacm, vaswani: teams.md | team left out; runs; AP · worst trial · drop | team left out = odd -->
    (the table; columns after the first bar, rows after the second; several folders are put below each other)
    <!-- end -->
    <!-- figure: cacm: cost.svg -->
    ![What the next judgments cost](images/reusability-results-cacm-cost.svg)

The rest of the page is written by hand. With --check nothing is written; the exit code is 1 if a table or a figure
differs from the folders.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_TABLE = re.compile(r"(<!-- table: (?P<asked>.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
_FIGURE = re.compile(r"<!-- figure: (?P<name>[\w-]+): (?P<file>\S+) -->\n!\[[^\]]*\]\((?P<target>\S+)\)")


def filled(page: str, folders: dict[str, Path]) -> str:
    """The page with its tables as the folders have them."""
    return _TABLE.sub(lambda match: f"{match[1]}{table(match['asked'], folders)}\n{match[3]}", page)


def table(asked: str, folders: dict[str, Path]) -> str:
    """One table of Markdown: the columns and rows that are asked for, from one folder or several."""
    source, _, rest = asked.partition(" | ")
    names, _, file = source.rpartition(": ")
    wanted, _, condition = rest.partition(" | ")
    columns = [name.strip() for name in wanted.split(";") if name.strip()]
    column, _, value = (part.strip() for part in condition.partition("="))
    lines: list[str] = []
    several = "," in names
    for name in (one.strip() for one in names.split(",")):
        header, align, *rows = cells(folders[name] / "tables" / file)
        places = [header.index(one) for one in columns or header]
        if not lines:
            lines.append(joined([*(["collection"] if several else []), *(header[place] for place in places)]))
            lines.append(joined([*([":---"] if several else []), *(align[place] for place in places)]))
        kept = [row for row in rows if not column or row[header.index(column)] == value]
        lines += [joined([*([name] if several else []), *(row[place] for place in places)]) for row in kept]
    return "\n".join(lines)


def cells(path: Path) -> list[list[str]]:
    """The cells of the first table in a file, row by row: header, alignment, rows."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def joined(row: list[str]) -> str:
    """A row of Markdown."""
    return f"| {' | '.join(row)} |"


def figures(page: Path, text: str, folders: dict[str, Path]) -> list[tuple[Path, Path]]:
    """The figures of the page: where each comes from, and where it lies beside the page."""
    return [
        (folders[one["name"]] / "figures" / one["file"], page.parent / one["target"]) for one in _FIGURE.finditer(text)
    ]


def main() -> None:
    """Fills or checks the page."""
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) < 2:
        sys.exit(__doc__)
    page = Path(words[0])
    folders = {name: Path(folder) for name, _, folder in (word.partition("=") for word in words[1:])}
    text = page.read_text(encoding="utf-8")
    new = filled(text, folders)
    copies = figures(page, text, folders)
    if "--check" in sys.argv:
        stale = [str(to) for source, to in copies if not to.is_file() or to.read_bytes() != source.read_bytes()]
        if new != text or stale:
            sys.exit(f"{page}: not what the folders hold{': ' if stale else ''}{', '.join(stale)}")
        return
    page.write_text(new, encoding="utf-8")
    for source, target in copies:
        target.write_bytes(source.read_bytes())


if __name__ == "__main__":
    main()
