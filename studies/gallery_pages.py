"""How the gallery is written: a page of one form for each benchmark, the index, its picture, and files for others."""

from __future__ import annotations

import csv
import io
import json
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.audits.leaderboard.audit import Leaderboard
from truerank.core.figures.export import to_svg, to_svg_file
from truerank.core.figures.style import ACCENT, INK, new_figure, plain, settings
from truerank.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMMAND: Final = "python studies/gallery.py"
#: Floors, shares and ceilings that are worth a page's first sentence.
HIGH, MANY, LOW = 0.05, 0.01, 0.95
#: A gain in nDCG@10 that papers often claim.
_GAIN = 0.03
#: Rows of a page's table of overlaps, and of conventions.
SHOWN = 8
SPEC: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("gallery.toml").read_text(encoding="utf-8"))
#: The columns of gallery.csv, and what they hold.
COLUMNS: Final[Mapping[str, str]] = SPEC["columns"]
_KINDS: Final = {
    "duplicate_topics": ("duplicate-topic",), "near_duplicate_topics": ("near-duplicate-topic",),
    "twin_topics": ("twin-topics",), "repeated_judgments": ("repeated-pair", "contradicted-pair"),
}  # fmt: skip


@dataclass(frozen=True)
class Whole:
    """What concerns no single benchmark: MTEB's results as a whole, and all overlaps."""

    board: Leaderboard
    overlaps: pl.DataFrame


def write(facts: Sequence[Mapping[str, Any]], whole: Whole | None, folder: Path) -> None:
    """Writes the pages; with everything at hand also the index, its picture and the files for others."""
    for one in facts:
        (folder / f"{one['page']}.md").write_text(page(one), encoding="utf-8")
    if whole is None:
        return
    (folder / "mteb.md").write_text(board_page(whole.board), encoding="utf-8")
    (folder / "index.md").write_text(index(facts, whole.board), encoding="utf-8")
    (folder / "gallery.svg").write_text(
        to_svg_file(picture(facts), name="gallery", description=PICTURE), encoding="utf-8"
    )
    (folder / "gallery.csv").write_text(as_csv(list(map(flat, rows_of(facts)))), encoding="utf-8")
    content = {"truerank": __version__, "command": COMMAND, "columns": COLUMNS, "benchmarks": facts,
               "mteb": board_facts(whole.board)}  # fmt: skip
    (folder / "gallery.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8"
    )
    (folder / "overlaps.csv").write_text(whole.overlaps.write_csv(), encoding="utf-8")


def rows_of(facts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each version of each benchmark."""
    return ((one, version) for one in facts for version in one["versions"])


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


# -- the first sentence --------------------------------------------------------------------------------------------


def headline(one: Mapping[str, Any]) -> tuple[str, str]:
    """The sentence that a reader would quote, and the label of the command behind it: the first that applies."""
    return next(_headlines(one))


def _headlines(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name, first, last = one["name"], one["versions"][0], one["versions"][-1]
    floor = (first.get("floor") or {}).get("mean") or 0.0
    if floor >= HIGH:
        score = f"{floor:.2f}" if floor >= 0.1 else f"{floor:.3f}"
        yield f"A list of ten documents that never reads the query scores nDCG@10 {score} on {name}.", "audit"
    added = finding(last, "added-judgment")
    if added and added["count"] >= 0.1 * first["judgments"]:
        most = last["relevant_per_topic"]["most"]
        yield (
            f"The repaired judgments of {name} add {added['count']:,d} to the {first['judgments']:,d} that were "
            f"published first; one of {last['judged_topics']:,d} topics has {most:,d} relevant passages.",
            "audit",
        )
    for kind, what in _SHARES.items():
        row = finding(first, kind)
        if row and row["count"] >= MANY * row["of"]:
            yield what.format(name=name, share=row["count"] / row["of"], **row), "audit"
    outside = [row for row in one["overlaps"] or () if row["training"] != one.get("overlap_name") and row["near"] > 2]
    most = max(outside, key=lambda row: row["near"], default=None)
    if most and (most["near"] >= MANY * most["topics"] or most["training"].endswith(" train")):
        share = most["near"] / most["topics"]
        counted = f"{most['near']:,d} of {most['topics']:,d} topics of {name} ({share:.1%}) have"
        if share == 1:
            counted = f"All {most['topics']:,d} topics of {name} have"
        yield f"{counted} the same or nearly the same words as a text of {most['training']}.", "overlaps"
    random = (first.get("random_order") or {}).get("mean") or 0.0
    if random >= 0.1:
        yield (
            f"A random order of each topic's judged documents scores nDCG@10 {random:.2f} on {name}: rerankers of the "
            "judged documents begin there, not at 0.",
            "audit",
        )
    ceiling = first["ceilings"].get("R@100", 1.0)
    if ceiling < LOW:
        yield f"No system can score more than R@100 {ceiling:.2f} on {name}.", "audit"
    topics = first["judged_topics"] or first["topics"]
    power = (
        f"the {topics:,d} topics of {name} show differences of {first['smallest']['0.20']:.3f} and more, if these have "
        "a standard deviation of 0.20 over topics"
    )
    if finding(first, "no-negatives"):
        yield (
            f"{power[0].upper()}{power[1:]}. All {first['judgments']:,d} judgments are of relevant documents.",
            "power",
        )
    yield f"{power[0].upper()}{power[1:]}.", "power"


#: First sentences about a share of topics or judgments, by kind of finding.
_SHARES: Final = {
    "respelt-document": "{count:,d} of {of:,d} judgments of {name} ({share:.0%}) spell the id of their document in "
    "another way.",
    "duplicate-topic": "{count:,d} of {of:,d} topics of {name} ({share:.1%}) repeat the text of an earlier topic.",
}


def finding(version: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """What was found of a kind."""
    return next((row for row in version["findings"] if row["kind"] == kind), None)


# -- a page --------------------------------------------------------------------------------------------------------


def page(one: Mapping[str, Any]) -> str:
    """The page of a benchmark."""
    sentence, by = headline(one)
    parts = [f"# {one['name']}", f"> **{sentence}** ([{by}](#commands))", _about(one)]
    parts += ["## In figures", *_figures(one)]
    parts += ["## Faults and doubts", *_faults(one)]
    parts += ["## Overlaps with other sets", *_overlaps(one)]
    parts += ["## The smallest difference", *_smallest(one)]
    parts += ["## Neighbours on a leaderboard", *_board(one)]
    parts += ["## Conventions", *_conventions(one)]
    parts += ["## Not looked at", "\n".join(f"- {line}" for line in _not_looked_at(one))]
    parts += ["## Commands", *_commands(one)]
    return "\n\n".join(parts) + "\n"


def _about(one: Mapping[str, Any]) -> str:
    versions = [version["version"] for version in one["versions"] if version["version"]]
    columns = f" Versions: {'; '.join(versions)}." if versions else ""
    return (
        f"{one['family']}. Looked at: {one['looked_at']} (files of {one['from']}).{columns} "
        f"truerank {__version__}. [All benchmarks](index.md)."
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], numbers: int = 0) -> str:
    """A Markdown table; the last `numbers` columns are aligned at the right."""
    align = ["---"] * (len(heads) - numbers) + ["--:"] * numbers
    lines = [f"| {' | '.join(map(str, row))} |" for row in (heads, align, *rows)]
    return "\n".join(lines)


def _number(value: float | int | None, form: str = ",d") -> str:
    return "–" if value is None else format(value, form)


def _counts(spread: Mapping[str, Any] | None) -> str:
    if spread is None:
        return "–"
    return f"{spread['median']:,g} ({spread['least']:,d} to {spread['most']:,d})"


def _floor(version: Mapping[str, Any]) -> str:
    floor = version.get("floor")
    if not floor or floor["mean"] is None:
        return "–"
    if floor["low"] is None:
        return f"{floor['mean']:.3f} (no interval)"
    return f"{floor['mean']:.3f} ({floor['low']:.3f} to {floor['high']:.3f})"


def _random(version: Mapping[str, Any]) -> str:
    random = version.get("random_order")
    return "–" if not random else f"{random['mean']:.3f} ({random['low']:.3f} to {random['high']:.3f})"


def _found(there: str, *kinds: str) -> Callable[[Mapping[str, Any]], str]:
    """Shows how many instances there are; a dash where nobody could look."""
    return lambda version: _number(None if version[there] is None else count_of(version, *kinds))


_ROWS: Final[tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...]] = (
    ("topics", lambda v: _number(v["topics"])),
    ("documents", lambda v: _number(v["documents"])),
    ("judged topics", lambda v: _number(v["judged_topics"])),
    ("judgments", lambda v: _number(v["judgments"])),
    ("judgments of a topic: median (range)", lambda v: _counts(v["per_topic"])),
    ("relevant documents of a topic: median (range)", lambda v: _counts(v["relevant_per_topic"])),
    ("judgments by grade", lambda v: ", ".join(f"{g}: {n:,d}" for g, n in (v["grades"] or {}).items()) or "–"),
    ("**floor**: nDCG@10 of the best list that never reads the query (95% interval)", _floor),
    ("nDCG@10 of a random order of the judged documents (95% interval)", _random),
    ("**ceiling**: nDCG@10", lambda v: _number(v["ceilings"].get("nDCG@10"), ".3f")),
    ("**ceiling**: R@100", lambda v: _number(v["ceilings"].get("R@100"), ".3f")),
    ("topics that repeat the text of an earlier one", _found("topics", "duplicate-topic")),
    ("topics with nearly the text of an earlier one", _found("topics", "near-duplicate-topic")),
    ("topics with nearly the same relevant documents as another one", _found("judgments", "twin-topics")),
    ("judgments of a pair that was judged before", _found("judgments", "repeated-pair", "contradicted-pair")),
)


_DRAWN: Final = {
    "clusters": "Its interval is for other groups of topics that share relevant documents.",
    "topics": "Its interval is for other topics of the same kind: half of the topics here or more share relevant "
    "documents, directly or through others, and are not independent.",
}


def _figures(one: Mapping[str, Any]) -> Iterator[str]:
    versions = one["versions"]
    heads = ["", *(version["version"] or "value" for version in versions)]
    yield table(heads, [[label, *map(show, versions)] for label, show in _ROWS], len(versions))
    notes = ["All of them: [audit](#commands). A dash: these files do not show it."]
    first = versions[0]
    changes = ("added-judgment", "removed-judgment", "regraded-judgment")
    if len(versions) > 1 and first["judgments"] and not any(count_of(last, *changes) for last in versions[1:]):
        notes.append("Both versions have the same judgments." if one["family"] == "BRIGHT" else "")
    if first["judgments"] is None:
        notes.append("There are no judgments here, so there is no floor and no ceiling.")
    elif (floor := first.get("floor")) and floor["mean"] is not None:
        notes.append(
            "The list of ten documents is made on half of the topics and scored on the other half (20 splits): a "
            "system shows what it can by what it scores above that."
        )
        notes.append(_DRAWN[floor["drawn"]] if floor["low"] is not None else "Too few topics for an interval.")
    if first["judgments"] is not None and not first.get("random_order"):
        notes.append("Every judged document is relevant, so there is nothing to order at random.")
    yield " ".join(filter(None, notes))


def _faults(one: Mapping[str, Any]) -> Iterator[str]:
    versions = one["versions"]
    every: dict[str, Mapping[str, Any]] = {}
    for version in versions:
        every |= {row["kind"]: row for row in version["findings"] if row["kind"] not in every}
    if not every:
        yield "Nothing that the audit looks for was found in these files. [audit](#commands)"
        return
    rows = []
    for kind, row in every.items():
        found = (finding(version, kind) for version in versions)
        cells = ("0" if each is None else f"{each['count']:,d} of {each['of']:,d}" for each in found)
        rows.append((row["code"], row["title"], row["severity"], *cells))
    heads = ("rule", "what", "severity", *(version["version"] or "count" for version in versions))
    yield table(heads, rows, len(versions))
    yield (
        "A fault shows in the data alone; at a doubt somebody has to look; a note is a property. "
        "[What the rules mean](../reference/rules.md#collection). [audit](#commands)"
    )


def _overlaps(one: Mapping[str, Any]) -> Iterator[str]:
    if one["overlaps"] is None:
        yield "Not known: there are no texts of topics here."
        return
    rows = sorted(one["overlaps"], key=lambda row: (-row["near"], -row["exact"], -row["words"], row["training"]))
    rows = [row for row in rows if row["near"]]
    if not rows:
        yield (
            "No topic has the same or nearly the same words as a text of the other sets that are here. "
            "[overlaps](#commands)"
        )
        return
    topics = rows[0]["topics"]
    own = one.get("overlap_name")
    shown = [
        ("this set itself" if row["training"] == own else row["training"], f"{row['exact']:,d}", f"{row['near']:,d}")
        for row in rows[:SHOWN]
    ]
    yield table(("set", "same text", "same or nearly the same"), shown, 2)
    rest = f" {len(rows) - SHOWN} more sets are in [overlaps.csv](overlaps.csv)." if len(rows) > SHOWN else ""
    yield (
        f"Of {topics:,d} topics, those that have the text of a query or topic of the other set, half of its 13-grams, "
        f"or all its words in this order. Paraphrases were not looked for.{rest} [overlaps](#commands)"
    )


def _smallest(one: Mapping[str, Any]) -> Iterator[str]:
    first, runs = one["versions"][0], one["runs"]
    topics = first["judged_topics"] or first["topics"]
    heads = ("standard deviation of differences over topics", *first["smallest"])
    sizes = [f"{size:.3f}" for size in first["smallest"].values()]
    yield table(heads, [(f"smallest difference that {topics:,d} topics show", *sizes)], len(sizes))
    yield (
        "The true difference that a paired t-test at 0.05 finds four times in five. **The standard deviations are "
        "assumed.** [power](#commands)"
    )
    if runs and runs["pairs"]:
        rows = [
            (f"{row['first']} − {row['second']}", f"{row['difference']:+.3f}", f"{row['sd']:.3f}",
             f"{row['smallest']:.3f}")
            for row in runs["pairs"]
        ]  # fmt: skip
        yield table(("runs that are here", "difference of nDCG@10", "its standard deviation", "smallest"), rows, 3)
        made = "The runs were made from the documents here (`studies/explain.py`). " if runs["made"] else ""
        yield f"{made}Differences of runs that are more alike vary less, others more. [gallery](#commands)"
    else:
        yield "There are no two runs here, which would show how much differences vary."


def _board(one: Mapping[str, Any]) -> Iterator[str]:
    board = one["board"]
    if board is None:
        yield "Not known: there are no published scores of several systems here."
        return
    if board["other_topics"]:
        yield (
            f"Not shown: {board['board']} are of another version of this set, which is not here. "
            "[MTEB's results as a whole](mteb.md)."
        )
        return
    yield (
        "With one score for each system, **no test can tell neighbours apart on this benchmark alone**; that needs "
        "scores by topic. What the gaps say:"
    )
    rows = [
        (f"{sd} (assumed)", f"{one['versions'][0]['smallest'][sd]:.3f}", f"{apart} of {board['neighbours']}",
         f"{board['near_best'][sd]:,d}")
        for sd, apart in board["apart"].items()
    ]  # fmt: skip
    yield table(
        ("standard deviation", "smallest difference", "neighbours that far apart", "systems closer to the best"),
        rows, 3,
    )  # fmt: skip
    trained = f" {board['trained']:,d} name it as training data." if board["trained"] else ""
    revisions = (
        f" The scores are of {board['revisions']} revisions of the data." if (board["revisions"] or 0) > 1 else ""
    )
    yield (
        f"{board['board'][0].upper()}{board['board'][1:]}: {board['systems']:,d} systems, the best with "
        f"{board['best']:.3f}; the first {board['first']} are {board['span']:.3f} apart, two neighbours "
        f"{board['median_gap']:.4f} (median).{trained}{revisions} [gallery](#commands)"
    )


def _conventions(one: Mapping[str, Any]) -> Iterator[str]:
    runs = one["runs"]
    if runs is None:
        yield "Not shown: there are no runs here."
        return
    found = runs["conventions"]
    rows = [(row["code"], row["says"], f"{row['change']:+.4f}") for row in found["changes"][:SHOWN]]
    yield f"nDCG@10 of {found['run']} is {found['score']:.4f} as truerank computes it. What other evaluators in use do:"
    yield table(("convention", "computed with", "change"), rows, 1)
    spread = found["range"]
    more = f" {len(found['changes']) - SHOWN} more change less." if len(found["changes"]) > SHOWN else ""
    together = f" All of them together: {spread[0]:.3f} to {spread[1]:.3f}." if spread else ""
    yield f"{together.strip()}{more} [Which tool scores how](../which-tool-scores-how.md). [gallery](#commands)"


def _not_looked_at(one: Mapping[str, Any]) -> Iterator[str]:
    looked = one["looked_at"].split(", ")
    if "documents" not in looked:
        yield (
            "Documents: they are not here. Whether judgments meet their documents, duplicates among them, and topics "
            "that repeat their words were not looked for."
        )
    else:
        yield "Duplicates among documents in other words, which nobody judged."
    if "topics" not in looked:
        yield "Topics: their texts are not here, so duplicates among them and overlaps were not looked for."
    if "judgments" not in looked:
        yield "Judgments: they are not here."
    else:
        yield "Whether grades are right: nobody judged again."
    yield "Training data of models, other than the query logs and topics that the overlaps name."


def _commands(one: Mapping[str, Any]) -> Iterator[str]:
    first = one["versions"][0]
    topics = first["judged_topics"] or first["topics"]
    lines = "\n".join(dict.fromkeys(version["command"] for version in one["versions"]))
    yield "**audit**, in the data folder; `--out` writes the page, `--format json` all figures:"
    yield f"```sh\n{lines}\n```"
    yield "**power**:"
    yield (
        "```sh\npython -c 'from truerank.measures import detectable_difference as d; "
        f"print(d({topics}, 0.15), d({topics}, 0.20), d({topics}, 0.25))'\n```"
    )
    yield (
        "**overlaps** and **gallery**, in a clone of truerank (`leakage matrix` of all sets, without an encoder; runs; "
        "published scores):"
    )
    yield f"```sh\n{COMMAND} --only {one['page']}\n```"
    yield "All figures: [gallery.csv](gallery.csv), [gallery.json](gallery.json)."


# -- MTEB, the index, the picture ----------------------------------------------------------------------------------


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


def board_page(board: Leaderboard) -> str:
    """The page of MTEB's results."""
    facts = board_facts(board)
    titles = {one.rule.code: (one.rule.title, one.rule.severity) for one in board.findings}
    rows = [(code, *titles[code], f"{count:,d}") for code, count in facts["findings"].items()]
    (low, high), (own_low, own_high) = facts["first_ranks"], facts["first_own_ranks"]
    parts = [
        "# MTEB, English retrieval results",
        f"> **Of {facts['neighbours']} pairs of neighbours among the first {facts['neighbours'] + 1} models of MTEB's "
        f"English retrieval results, {facts['neighbours_told'] or 'none'} can be told apart when all are tested "
        "together.** ([board](#commands))",
        f"Leaderboard. Looked at: result files of {facts['systems']:,d} models (embeddings-benchmark/results). "
        f"truerank {__version__}. [All benchmarks](index.md).",
        "## In figures",
        table(
            ("", "value"),
            [
                ("models", f"{facts['systems']:,d}"), ("tasks", f"{facts['tasks']:,d}"),
                ("scores, of all splits", f"{facts['cells']:,d}"),
                ("models and tasks without a missing score", f"{facts['compared']:,d} and {facts['shared_tasks']:,d}"),
                ("neighbours of the first 50 that differ, all pairs tested together", f"{facts['neighbours_told']:,d}"),
                ("the same, each pair tested alone", f"{facts['neighbours_alone']:,d}"),
                ("models in the first group", f"{facts['first_group']:,d}"),
                ("ranks that the first model may have, its own pairs tested", f"{own_low:,d} to {own_high:,d}"),
                ("ranks that it may have, all pairs tested together", f"{low:,d} to {high:,d}"),
            ],
            1,
        ),
        "All of them: [board](#commands). Take the models of the first group as equal. The tests treat the tasks as a "
        "random sample of such tasks, though they were chosen. Floors, ceilings and duplicates are on the pages of the "
        "tasks that have one.",
        "## Faults and doubts",
        table(("rule", "what", "severity", "places"), rows, 1),
        "[What the rules mean](../reference/rules.md#leaderboard). [board](#commands)",
        "## Overlaps with other sets",
        f"{facts['findings'].get('BOARD09', 0):,d} models name one of the tasks as training data, as their files say. "
        "Overlaps of topics are on the pages of the tasks.",
        "## The smallest difference",
        "Not known for a task: the files hold one score for each model and task. On the pages of the tasks it is given "
        "for assumed standard deviations.",
        "## Neighbours on a leaderboard",
        f"{facts['neighbours_told']:,d} of {facts['neighbours']:,d} pairs differ over {facts['shared_tasks']} tasks: "
        f"{', '.join(facts['tasks_compared'])}.",
        "## Conventions",
        "Not shown: there are no runs here.",
        "## Not looked at",
        "- Scores by question, prompts and instructions: the files do not have them.\n"
        "- How many configurations were tried before the best one was published.",
        "## Commands",
        "**board**, in the data folder, after `tar xf mteb-results/results.tar.xz`:",
        "```sh\ntruerank leaderboard results/ --out board/\n```",
        "All figures: [gallery.json](gallery.json).",
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


PICTURE: Final = (
    "Each dot is a benchmark. From the top: the score of a list that never reads the query, the highest R@100 that any "
    "system can reach, and the smallest difference that the topics show, for a standard deviation of 0.20."
)


def index(facts: Sequence[Mapping[str, Any]], board: Leaderboard) -> str:
    """The index: answers first, the picture, then the table."""
    rows = [(one, version, flat((one, version))) for one, version in rows_of(facts)]
    told = board_facts(board)
    parts = [
        "---\nhide: [toc]\n---",
        "# The gallery",
        f"> **What is known of {len(facts) + 1} benchmarks that people quote**: what they can show, and what is wrong "
        "with them. One page for each, from its files alone.",
        "\n".join(f"- {line}" for line in _answers(rows, told)),
        _drawn(facts),
        "## All benchmarks",
        "Click a heading to sort. A dash: the files that are here do not show it. The columns are those of "
        "[gallery.csv](gallery.csv), which has more; [gallery.json](gallery.json) has everything.",
        _all(rows),
        f"MTEB's English retrieval results as a whole: [{told['systems']:,d} models](mteb.md).",
        "## The columns",
        "**floor**: nDCG@10 of one list of ten documents for all topics, made from other topics than those on which it "
        "is scored. **random**: nDCG@10 of a random order of each topic's judged documents. **R@100**: what "
        "the best possible ranking has. **copies**: topics that repeat the text of an earlier one. **faults**: kinds "
        "of faults, by [rule](../reference/rules.md). **smallest**: the true difference of means that a t-test finds "
        "four times in five, for an assumed standard deviation of 0.20.",
        "Not here: DBpedia, FiQA, HotpotQA, Natural Questions and SCIDOCS of BEIR; nobody had their judgments at hand.",
        "There are no documents for most benchmarks here, so their verdict is UNKNOWN at best; each page says what was "
        "not looked at. Where `truerank check`, `collection audit` or `leaderboard` recognises one of these, it "
        "names its page, and says how your copy differs from the one here.",
        f"Made by `{COMMAND}` (truerank {__version__}) from the data that each page names.",
        '<script src="sort.js"></script>',
    ]
    return "\n\n".join(parts) + "\n"


def _link(one: Mapping[str, Any], version: Mapping[str, Any] | None = None) -> str:
    name = f", {version['version']}" if version is not None and version["version"] else ""
    return f"[{one['name']}{name}]({one['page']}.md)"


def _answers(rows: Sequence[tuple[Any, Any, Mapping[str, Any]]], told: Mapping[str, Any]) -> Iterator[str]:
    """Questions that people have of all benchmarks, answered by the table."""
    first = [row for row in rows if row[1] is row[0]["versions"][0]]
    high = sorted((row for row in first if (row[2]["floor"] or 0) >= HIGH), key=lambda row: -row[2]["floor"])
    named = ", ".join(f"{_link(row[0])} {row[2]['floor']:.2f}" for row in high)
    yield f"**Which can be beaten without reading the query?** {named} (nDCG@10 of one list for all topics)."
    copied = [row for row in first if (row[2]["duplicate_topics"] or 0) >= 0.01 * (row[2]["topics"] or 1)]
    copied.sort(key=lambda row: -row[2]["duplicate_topics"] / row[2]["topics"])
    named = ", ".join(
        f"{_link(one)} {row['duplicate_topics']:,d} ({row['duplicate_topics'] / row['topics']:.1%})"
        for one, _, row in copied[:6]
    )
    yield f"**Where do topics repeat others?** {named}."
    low = sorted((row for row in first if (row[2]["ceiling_r100"] or 1) < 0.9), key=lambda row: row[2]["ceiling_r100"])
    named = ", ".join(
        f"{_link(one, version if len(one['versions']) > 1 else None)} {row['ceiling_r100']:.2f}"
        for one, version, row in low[:6]
    )
    yield f"**Where can no system reach R@100 of 0.9?** {named}."
    few = sorted(first, key=lambda row: -row[2]["smallest_0.20"])
    named = ", ".join(f"{_link(row[0])} {row[2]['smallest_0.20']:.3f}" for row in few[:4])
    fine = ", ".join(f"{_link(row[0])} {row[2]['smallest_0.20']:.3f}" for row in few[::-1][:3])
    below = sum(row[2]["smallest_0.20"] > _GAIN for row in first)
    yield (
        f"**Which show small differences, which only large ones?** Smallest: {fine}. Largest: {named}. On {below} of "
        f"{len(first)}, a true difference of {_GAIN} is missed more than once in five times (nDCG@10, for an assumed "
        "standard deviation of 0.20)."
    )
    changed = sorted(
        ((one, row) for one, version, _ in rows if (row := finding(version, "added-judgment"))),
        key=lambda pair: -pair[1]["count"],
    )
    named = ", ".join(f"{_link(one)} {row['count']:,d}" for one, row in changed[:4])
    yield f"**Which were changed most by their repair?** Judgments that were added: {named}."
    yield (
        f"**Are the first ranks of MTEB's English retrieval results real?** {told['neighbours_told'] or 'None'} of "
        f"{told['neighbours']} pairs of neighbours among the first {told['neighbours'] + 1} can be told apart when all "
        f"pairs are tested together, {told['neighbours_alone']} where each is tested alone ([MTEB](mteb.md))."
    )


def _all(rows: Sequence[tuple[Any, Any, Mapping[str, Any]]]) -> str:
    shown = [
        (_link(one, version), _number(row["judged_topics"] or row["topics"]), _number(row["judgments"]),
         _number(row["floor"], ".3f"), _number(row["random_order"], ".3f"), _number(row["ceiling_r100"], ".3f"),
         _number(row["duplicate_topics"]), _codes(version),
         _number(row["smallest_0.20"], ".3f"))
        for one, version, row in rows
    ]  # fmt: skip
    heads = ("benchmark", "topics", "judgments", "floor", "random", "R@100", "copies", "faults", "smallest")
    return table(heads, shown, 8)


def _codes(version: Mapping[str, Any]) -> str:
    return " ".join(row["code"] for row in version["findings"] if row["severity"] == "fault") or "–"


_STYLE: Final = (
    ".gallery-narrow {display: none}",
    "@media (max-width: 600px) {.gallery-wide {display: none} .gallery-narrow {display: block}}",
    ".gallery svg {width: 100%; height: auto; overflow: visible}",
    "figure.gallery-figure {width: 100%; max-width: 46rem}",
    "figure.gallery-figure figcaption {max-width: none}",
)


def _drawn(facts: Sequence[Mapping[str, Any]]) -> str:
    """The picture in the page, so that it takes the page's ink; a layout for each width."""
    style = f"<style>{' '.join(_STYLE)}</style>"
    layouts = []
    for name, narrow in (("wide", False), ("narrow", True)):
        svg = to_svg(picture(facts, narrow=narrow), name=f"gallery-{name}", description=PICTURE)
        layouts.append(f'<div class="gallery gallery-{name}">{"".join(svg.splitlines())}</div>')
    drawn = "".join(layouts)
    return f'<figure class="gallery-figure">{style}{drawn}<figcaption>{PICTURE}</figcaption></figure>'


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


def picture(facts: Sequence[Mapping[str, Any]], *, narrow: bool = False) -> Figure:
    """Three strips; a dot is a benchmark in its first version, and those at the ends are named."""
    rows = [flat((one, one["versions"][0])) for one in facts]
    with settings():
        figure = new_figure(4.2 if not narrow else 5.0)
        if narrow:
            figure.set_figwidth(3.9)
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
            label = textwrap.fill(strip.label, 44) if narrow else strip.label
            axes.set_xlabel(label, fontsize=8.5)
    return figure
