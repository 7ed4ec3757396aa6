"""The files of the gallery for others: gallery.json, gallery.csv and its picture."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from truerank.audits.leaderboard.audit import Leaderboard
from truerank.core.figures.export import to_svg_file
from truerank.core.figures.style import ACCENT, INK, new_figure, plain, settings
from truerank.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMMAND: Final = "python studies/gallery.py"
#: A floor from which on a benchmark is named in the picture.
HIGH: Final = 0.05
SPEC: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("gallery.toml").read_text(encoding="utf-8"))
#: The columns of gallery.csv, and what they hold.
COLUMNS: Final[Mapping[str, str]] = SPEC["columns"]
_KINDS: Final = {
    "duplicate_topics": ("duplicate-topic",), "near_duplicate_topics": ("near-duplicate-topic",),
    "twin_topics": ("twin-topics",), "repeated_judgments": ("repeated-pair", "contradicted-pair"),
}  # fmt: skip


def write(facts: Sequence[Mapping[str, Any]], board: Leaderboard, folder: Path) -> None:
    """Writes the files; `scripts/gallery_pages.py` makes the pages of them."""
    (folder / "gallery.svg").write_text(
        to_svg_file(picture(facts), name="gallery", description=PICTURE), encoding="utf-8"
    )
    rows = (flat((one, version)) for one in facts for version in one["versions"])
    (folder / "gallery.csv").write_text(as_csv(list(rows)), encoding="utf-8")
    content = {"truerank": __version__, "command": COMMAND, "columns": COLUMNS, "benchmarks": facts,
               "mteb": board_facts(board)}  # fmt: skip
    (folder / "gallery.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8"
    )


def count_of(version: Mapping[str, Any], *kinds: str) -> int:
    """How many instances of some kinds were found."""
    return sum(row["count"] for row in version["findings"] if row["kind"] in kinds)


def flat(pair: tuple[Mapping[str, Any], Mapping[str, Any]]) -> dict[str, Any]:
    """A row of gallery.csv."""
    one, version = pair
    judged = version["judgments"] is not None
    floor, random, runs, board = version.get("floor"), version.get("random_order"), one["runs"], one["board"]
    by_topic, relevant = version["per_topic"] or {}, version["relevant_per_topic"] or {}
    pairs = sorted(row["sd"] for row in runs["pairs"]) if runs and version is one["versions"][0] else []
    smallest = sorted(row["smallest"] for row in runs["pairs"]) if pairs else []
    same = board if board and not board["other_topics"] else None
    row = {
        "page": one["page"], "name": one["name"], "family": one["family"], "version": version["version"],
        **{name: version[name] for name in ("topics", "judged_topics", "judgments", "relevant")},
        "grades": " ".join(f"{grade}:{count}" for grade, count in (version["grades"] or {}).items()),
        **{f"per_topic_{end}": by_topic.get(end) for end in ("median", "least", "most")},
        **{f"relevant_{end}": relevant.get(end) for end in ("median", "least", "most")},
        "floor": floor and floor["mean"], "floor_low": floor and floor["low"], "floor_high": floor and floor["high"],
        "random_order": random and random["mean"],
        "ceiling_ndcg10": version["ceilings"].get("nDCG@10"), "ceiling_r100": version["ceilings"].get("R@100"),
    }  # fmt: skip
    for name, kinds in _KINDS.items():
        there = judged if name in ("twin_topics", "repeated_judgments") else version["topics"] is not None
        row[name] = count_of(version, *kinds) if there else None
    for name in ("fault", "doubt"):
        found = (f"{each['code']}:{each['count']}" for each in version["findings"] if each["severity"] == name)
        row[f"{name}s"] = " ".join(found)
    row |= {f"smallest_{sd}": size for sd, size in version["smallest"].items()}
    row |= {"sd_of_runs": middle(pairs), "smallest_of_runs": middle(smallest)}
    row |= {"systems": same and same["systems"], "neighbours": same and same["neighbours"]}
    row["neighbours_apart_0.15"] = same and same["apart"]["0.15"]
    return {**row, "truerank": __version__, "command": version["command"]}


def middle(values: Sequence[float]) -> float | None:
    """The lower median."""
    return values[(len(values) - 1) // 2] if values else None


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows with the documented columns; an absent value is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def board_facts(board: Leaderboard) -> dict[str, Any]:
    """The figures of MTEB's results as a whole."""
    codes: dict[str, int] = {}
    for one in board.findings:
        codes[one.rule.code] = codes.get(one.rule.code, 0) + 1
    names = ("systems", "tasks", "cells", "compared", "shared_tasks", "tasks_compared")
    order = board.facts["orders"]["systems"]
    of_order = ("first_group", "neighbours", "neighbours_told", "neighbours_family", "neighbours_alone")
    first = board.frames["systems"].row(0, named=True)
    return {
        **{name: board.facts[name] for name in names},
        **{name: order[name] for name in of_order},
        "findings": dict(sorted(codes.items())),
        "first_ranks": [first["rank_low"], first["rank_high"]],
        "first_own_ranks": [first["own_low"], first["own_high"]],
        "verdicts": {verdict.subject: verdict.word for verdict in board.verdicts},
    }


PICTURE: Final = (
    "Each dot is a benchmark. From the top: the score of a list that never reads the query, the highest R@100 that any "
    "system can reach, and the smallest difference that the topics show, for a standard deviation of 0.20."
)


class _Strip(NamedTuple):
    label: str
    of: Callable[[Mapping[str, Any]], float | None]
    named: Callable[[list[float]], list[int]]


def _low(values: list[float]) -> list[int]:
    return [at for at in np.argsort(values, kind="stable")[:5].tolist() if values[at] < 0.9]


def _ends(values: list[float]) -> list[int]:
    order = np.argsort(values, kind="stable").tolist()
    return [order[0], order[-1]]


_STRIPS: Final = (
    _Strip("floor: nDCG@10 without reading the query", lambda row: row["floor"],
           lambda values: [at for at, value in enumerate(values) if value >= HIGH]),
    _Strip("ceiling: R@100 of the best possible ranking", lambda row: row["ceiling_r100"], _low),
    _Strip("smallest difference that the topics show (standard deviation 0.20)", lambda row: row["smallest_0.20"],
           _ends),
)  # fmt: skip


def _short(name: str) -> str:
    return name.replace("TREC Deep Learning", "DL").replace("TREC Common Core", "Core").partition(" (")[0]


def picture(facts: Sequence[Mapping[str, Any]]) -> Figure:
    """Three strips; a dot is a benchmark in its first version, and those at the ends are named."""
    rows = [flat((one, one["versions"][0])) for one in facts]
    with settings():
        figure = new_figure(4.2)
        plots = figure.subplots(len(_STRIPS), 1)
        for axes, strip in zip(plots, _STRIPS, strict=True):
            own = [(row["name"], value) for row in rows if (value := strip.of(row)) is not None]
            values = [value for _, value in own]
            named = sorted(strip.named(values), key=lambda at: values[at])
            heights = [0.8 * ((0.5 + 0.618034 * at) % 1) for at in range(len(own))]
            for place, at in enumerate(named):
                heights[at] = 1.15 if len(named) < 3 else 1.15 * (1 - place / (len(named) - 1))
            for at, (name, value) in enumerate(own):
                told = at in named
                axes.plot(value, heights[at], "o", color=ACCENT if told else INK, markersize=5 if told else 3.4,
                          alpha=1 if told else 0.45, markeredgewidth=0)  # fmt: skip
                if told:
                    right = value > 0.55 * max(values)
                    axes.annotate(
                        plain(_short(name)), (value, heights[at]),
                        xytext=(-6 if right else 6, 0), textcoords="offset points",
                        ha="right" if right else "left", va="center", fontsize=8.5,
                    )  # fmt: skip
            axes.set(yticks=[], ylim=(-0.2, 1.35), xlim=(-0.02 * max(values), 1.04 * max(values)))
            axes.spines["left"].set_visible(False)
            axes.set_xlabel(strip.label, fontsize=8.5)
    return figure
