"""The pages of the gallery, made from docs/gallery/gallery.json when the documentation site is built."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "gallery"
COMMAND: Final = "python studies/gallery.py"
#: Floors, shares and ceilings that are worth a page's first sentence.
HIGH, MANY, LOW = 0.05, 0.01, 0.95
#: Rows of a page's table of overlaps.
SHOWN: Final = 8


def pages() -> Iterator[tuple[str, str]]:
    """The pages by their names: an index, one for each benchmark, and one for MTEB's results as a whole."""
    content = json.loads((FOLDER / "gallery.json").read_text(encoding="utf-8"))
    made = f"truerank {content['truerank']}. [All benchmarks](index.md)."
    for one in content["benchmarks"]:
        yield f"{one['page']}.md", page(one, made)
    yield "mteb.md", board_page(content["mteb"], made)
    yield "index.md", index(content)


def count_of(version: Mapping[str, Any], *kinds: str) -> int:
    """How many instances of some kinds were found."""
    return sum(row["count"] for row in version["findings"] if row["kind"] in kinds)


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


def page(one: Mapping[str, Any], made: str) -> str:
    """The page of a benchmark."""
    sentence, by = headline(one)
    parts = [f"# {one['name']}", f"> **{sentence}** ([{by}](#commands))", _about(one, made)]
    parts += ["## In figures", *_figures(one)]
    parts += ["## Faults and doubts", *_faults(one)]
    parts += ["## Overlaps with other sets", *_overlaps(one)]
    parts += ["## The smallest difference", *_smallest(one)]
    parts += ["## Neighbours on a leaderboard", *_board(one)]
    parts += ["## Not looked at", "\n".join(f"- {line}" for line in _not_looked_at(one))]
    parts += ["## Commands", *_commands(one)]
    return "\n\n".join(parts) + "\n"


def _about(one: Mapping[str, Any], made: str) -> str:
    versions = [version["version"] for version in one["versions"] if version["version"]]
    columns = f" Versions: {'; '.join(versions)}." if versions else ""
    return f"{one['family']}. Looked at: {one['looked_at']} (files of {one['from']}).{columns} {made}"


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
        "[What the rules mean](../reference/rules.md). [audit](#commands)"
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
    rest = f" {len(rows) - SHOWN} more sets are in gallery.json." if len(rows) > SHOWN else ""
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
    yield ("**overlaps** and **gallery**, in a clone of truerank, with the data:")
    yield f"```sh\n{COMMAND} --only {one['page']}\n```"
    yield "All figures: [gallery.csv](gallery.csv), [gallery.json](gallery.json)."


def board_page(facts: Mapping[str, Any], made: str) -> str:
    """The page of MTEB's results."""
    (low, high), (own_low, own_high) = facts["first_ranks"], facts["first_own_ranks"]
    rows = [
        ("models", f"{facts['systems']:,d}"),
        ("tasks", f"{facts['tasks']:,d}"),
        ("models and tasks without a missing score", f"{facts['compared']:,d} and {facts['shared_tasks']:,d}"),
        ("neighbours of the first 50 that differ, all pairs tested together", f"{facts['neighbours_told']:,d}"),
        ("the same, each pair tested alone", f"{facts['neighbours_alone']:,d}"),
        ("models in the first group", f"{facts['first_group']:,d}"),
        ("ranks that the first model may have, its own pairs tested", f"{own_low:,d} to {own_high:,d}"),
        ("ranks that it may have, all pairs tested together", f"{low:,d} to {high:,d}"),
    ]
    parts = [
        "# MTEB, English retrieval results",
        f"> **Of {facts['neighbours']} pairs of neighbours among the first {facts['neighbours'] + 1} models of MTEB's "
        f"English retrieval results, {facts['neighbours_told'] or 'none'} can be told apart when all are tested "
        "together.**",
        f"Leaderboard. Looked at: result files of {facts['systems']:,d} models (embeddings-benchmark/results). {made}",
        table(("", "value"), rows, 1),
        "The tests treat the tasks as a random sample of such tasks, though they were chosen.",
        "## Faults and doubts",
        table(("rule", "places"), [(code, f"{count:,d}") for code, count in facts["findings"].items()], 1),
        "[What the rules mean](../reference/rules/BOARD.md).",
        "## Commands",
        "In the data folder, after `tar xf mteb-results/results.tar.xz`:",
        "```sh\ntruerank leaderboard results/ --out board/\n```",
    ]
    return "\n\n".join(parts) + "\n"


def index(content: Mapping[str, Any]) -> str:
    """The index: the picture, then the table."""
    facts = content["benchmarks"]
    rows = [_row(one, version) for one in facts for version in one["versions"]]
    heads = ("benchmark", "topics", "judgments", "floor", "random", "R@100", "copies", "faults", "smallest")
    parts = [
        "---\nhide: [toc]\n---",
        "# The gallery",
        f"> **What is known of {len(facts) + 1} benchmarks that people quote**: what they can show, and what is wrong "
        "with them. One page for each, from its files alone.",
        "![What needs no query, what no system exceeds, and the smallest difference that topics show](gallery.svg)",
        "A dash: the files that are here do not show it. [gallery.csv](gallery.csv) has more columns, "
        "[gallery.json](gallery.json) everything. [MTEB's English retrieval results as a whole](mteb.md).",
        table(heads, rows, 8),
        "**floor**: nDCG@10 of one list of ten documents for all topics, made from other topics than those on which it "
        "is scored. **random**: nDCG@10 of a random order of each topic's judged documents. **R@100**: what "
        "the best possible ranking has. **copies**: topics that repeat the text of an earlier one. **faults**: kinds "
        "of faults, by [rule](../reference/rules.md). **smallest**: the true difference of means that a t-test finds "
        "four times in five, for an assumed standard deviation of 0.20.",
        "There are no documents for most benchmarks here, so their verdict is UNKNOWN at best; each page says what was "
        "not looked at.",
        f"Made by `{COMMAND}` (truerank {content['truerank']}) from the data that each page names.",
    ]
    return "\n\n".join(parts) + "\n"


def _row(one: Mapping[str, Any], version: Mapping[str, Any]) -> tuple[str, ...]:
    name = f", {version['version']}" if version["version"] else ""
    floor, random = version.get("floor"), version.get("random_order")
    return (
        f"[{one['name']}{name}]({one['page']}.md)",
        _number(version["judged_topics"] or version["topics"]),
        _number(version["judgments"]),
        _number(floor and floor["mean"], ".3f"),
        _number(random and random["mean"], ".3f"),
        _number(version["ceilings"].get("R@100"), ".3f"),
        _found("topics", "duplicate-topic")(version),
        " ".join(row["code"] for row in version["findings"] if row["severity"] == "fault") or "–",
        _number(version["smallest"]["0.20"], ".3f"),
    )
