"""Writes a page of docs/ from folders of results: sentences, tables and figures as they were printed.

    python scripts/make_results_page.py docs/reusability-results.md INTRODUCTION.md CACM=build/simulations/cacm …

The folders are those of `pool simulate --out` or `experiment report --out`: `summary.json`, `tables/`, `figures/`.
Each gets a section; figures are copied beside the page, to images/. What the introduction says stands first.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path


def main(page: Path, introduction: Path, folders: list[tuple[str, Path]]) -> None:
    """Writes the page."""
    parts = [introduction.read_text(encoding="utf-8").rstrip()]
    for name, folder in folders:
        parts.append(f"## {name}")
        parts.append("\n".join(f"- {sentence}" for sentence in sentences(folder)))
        for figure in sorted((folder / "figures").glob("*.svg")):
            target = page.parent / "images" / f"{page.stem}-{name.lower()}-{figure.name}"
            shutil.copyfile(figure, target)
            parts.append(f"![{name}: {figure.stem}](images/{target.name})")
        parts += [table.read_text(encoding="utf-8").strip() for table in tables(folder)]
    page.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def tables(folder: Path) -> list[Path]:
    """The tables in the report's order where it says one; else long tables of details last."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    named = summary.get("tables")
    last = {"positions": 1, "risks": 2, "runs": 3, "table5": 4}
    order = {name: place for place, name in enumerate(named)} if isinstance(named, list) else last
    return sorted((folder / "tables").glob("*.md"), key=lambda path: (order.get(path.stem, 0), path.stem))


def sentences(folder: Path) -> list[str]:
    """What the report says in words."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    found = summary.get("verdict", summary)
    return [str(sentence) for sentence in found.get("sentences", found.get("findings", []))]


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(
        Path(sys.argv[1]), Path(sys.argv[2]), [(n, Path(p)) for n, _, p in (one.partition("=") for one in sys.argv[3:])]
    )
