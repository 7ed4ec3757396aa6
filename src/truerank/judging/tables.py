"""Counts of labels as the papers print them: Table 2 of leakage, Table 1 of survivorship, Table 3 of transfer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from truerank.core.result import Result
from truerank.core.tables import Cell
from truerank.errors import InputError, OptionError
from truerank.judging.definitions import DIFFERENT, TITLE_TYPES, leak_answer, query_type
from truerank.judging.ratings import Ratings, RatingSource, Unit, label_inputs, label_rules, one_of, read_ratings
from truerank.judging.schemes import Scheme
from truerank.options import Confidence, Flag, Labels, Out, command
from truerank.sources import parse, read_topics
from truerank.sources.grammar import named_source
from truerank.work.publishing import publish
from truerank.work.runs import run as started

if TYPE_CHECKING:
    import polars as pl

#: Everything that has no name of its own.
_ALL: Final = "all"
#: The transfer paper's columns: the grades that V1 and V2 have by each label (2: relevant, and better than the other).
COMBINED: Final[Mapping[str, tuple[int, int]]] = {
    "neither": (0, 0),
    "only V2": (0, 1),
    "only V1": (1, 0),
    "both": (1, 1),
    "V1 better": (2, 1),
    "V2 better": (1, 2),
}


@dataclass(frozen=True, eq=False, repr=False)
class LabelCounts(Result, shown_in="truerank.judging.report"):
    """Counts of labels, as the papers arrange them.

    Attributes:
        scheme: the name of the scheme.
        title: what the scheme judges, one sentence.
        answered: items with an answer.
        parts: the counts by name, in order. For leakage and leak a: corpus, candidates, queries, topics. For leakage b:
            type, queries. For survivorship shares: split, reason, queries, share, low, high. Otherwise counts: a row
            for each group (its name first) and a column for each answer, with the totals last.
        notes: what was left out, and how ties and models were treated.
        settings: the grouping, the topic sets, whether models count.
    """

    scheme: str
    title: str
    answered: int
    parts: Mapping[str, pl.DataFrame]
    notes: tuple[str, ...]
    settings: dict[str, Any]

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        tables = {name: frame.to_dicts() for name, frame in self.parts.items()}
        return {"scheme": self.scheme, "tables": tables, "notes": list(self.notes), "settings": self.settings}


@command
def table(
    store: Annotated[RatingSource | None, Flag(metavar="STORE", positional=True, reads=str)] = None,
    judgments: Labels = Labels(),
    *,
    scheme: Annotated[Scheme | str | None, Flag(metavar="NAME|FILE", reads=str)] = None,
    topics: Annotated[Mapping[str, str | Path] | Sequence[str], Flag(metavar="[NAME=]SRC", reads=list[str])] = (),
    group_by: Annotated[str, Flag(metavar="KEY")] = "",
    confidence: Confidence = 0.95,
    out: Out = None,
) -> LabelCounts:
    """Counts labels as the papers print them.

    For leakage: true and false candidates with their topics (a), and the reformulation types (b). For leak: a. For
    survivorship: reasons by split, with Wilson's intervals of their shares. For transfer: which version is relevant,
    by query set; for more versions by version and grade. For other schemes: how often each label holds.

    An item counts by its last adjudication, or else by the answer that the rule for several voices gives; items for
    which it gives none are left out and counted in a note.

    Args:
        store: the judging store; or give label files. In Python whatever `read_ratings` takes.
        judgments: label files in place of a store, whose labels count, and the rule for several voices.
        scheme: of label files; by default recognised from the labels.
        topics: topic sets by which pairs of the leakage audit are filed, in the order of the rows; a pair is filed
            under each set that has its topic. Without them, pairs are filed by data set.
        group_by: the column or key of the items that forms the rows, such as stratum; by default the data set.
        confidence: of the intervals.
        out: a folder for tables/, summary.json and manifest.json.

    Returns:
        The counts by name, with notes on what was left out.

    Raises:
        InputError: the labels are of no known scheme, nothing was labelled by people, or a topic set cannot be read.

    Examples:

        truerank judge table --scheme leakage --labels annotations.jsonl --topics Robust04=robust04.trec
        --topics core17.trec

        truerank judge table versions.judged --format latex

    Source: the leakage paper, Table 2; the survivorship paper, Table 1; the transfer paper, Table 3.
    """
    judgments = one_of(store, judgments)
    include_models = judgments.include_models
    ratings = read_ratings(judgments, scheme=scheme)
    if ratings.scheme is None:
        shown = ", ".join(f"'{label}'" for label in ratings.labels()[:5])
        remedy = "name the scheme with `scheme`"
        raise InputError(f"no known scheme has the labels {shown}", remedy, where="judge table")
    counting = _Counting(ratings, include_models, group_by)
    sets = _topic_sets(topics)
    name = ratings.scheme.name
    if name in ("leakage", "leak"):
        parts = _leakage(counting, sets, typed=name == "leakage")
    elif name == "survivorship":
        parts = _survivorship(counting, ratings.scheme, confidence)
    elif name == "transfer":
        parts = {"counts": _count_frame("query set", *_grouped(counting), tuple(COMBINED))}
    elif name.startswith("transfer:"):
        parts = _versions(counting, ratings.scheme)
    else:
        parts = _plain(counting, ratings.scheme)
    notes = tuple(dict.fromkeys((*counting.notes, *_source_notes(ratings, include_models))))
    settings = {
        "group_by": group_by or "dataset",
        "topics": list(sets),
        "votes": judgments.votes,
        "include_models": include_models,
        "confidence": confidence,
    }
    found = LabelCounts(name, ratings.scheme.title, counting.answered, parts, notes, settings)
    if out is not None:
        with started("judge table", label_inputs(judgments), settings | label_rules(judgments), out) as job:
            publish(found, job)
    return found


class _Counting:
    """What holds for each unit, by one answer after the other, with notes on what was left out."""

    def __init__(self, ratings: Ratings, include_models: bool, by: str) -> None:
        self._ratings, self._include_models, self._by = ratings, include_models, by
        self.notes: list[str] = []
        self.answered = 0
        if by and not any(self.group(unit) != _ALL for unit in ratings.units):
            raise OptionError("group_by", f"no item has '{by}'", "name a column or key of the items, or stratum")

    def answers(
        self, answer: Callable[[tuple[str, ...]], str | None], what: str = "", order: Sequence[str] = ()
    ) -> list[tuple[Unit, str]]:
        """Unit and answer, in the order of the units; `order` has the possible answers, where they have an order."""
        decided = self._ratings.decided(answer, include_models=self._include_models, order=order)
        if not decided:
            remedy = "let people judge" if self._include_models else "let people judge, or give `include_models`"
            where = ", ".join(self._ratings.sources[:3]) or None
            raise InputError("no item is labelled by people", remedy, where=where)
        if tied := sum(value is None for value in decided.values()):
            items = "items on which annotators are tied are" if tied > 1 else "item on which annotators are tied is"
            self.notes.append(f"{tied:,} {items} left out{what}; adjudicate them.")
        found = [(self._ratings.units[at], value) for at, value in decided.items() if value is not None]
        self.answered = max(self.answered, len(found))
        return found

    def group(self, unit: Unit) -> str:
        """The row of a table that a unit belongs to."""
        if not self._by:
            return unit.dataset or _ALL
        value = getattr(unit, self._by, None) if self._by in ("dataset", "stratum", "topic_id") else None
        value = unit.data.get(self._by) if value is None else value
        return str(value) if value not in (None, "") else _ALL


def _topic_sets(topics: Mapping[str, str | Path] | Sequence[str]) -> dict[str, frozenset[str]]:
    if isinstance(topics, Mapping):
        given = [(name, parse(str(source))) for name, source in topics.items()]
    else:
        given = [(name or spec.name, spec) for name, spec in map(named_source, topics)]
    sets: dict[str, frozenset[str]] = {}
    for name, source in given:
        if name in sets:
            raise OptionError("topics", f"two topic sets are called '{name}'", "name them NAME=SRC")
        sets[name] = frozenset(topic.topic_id for topic in read_topics(source).topics)
    return sets


def _source_notes(ratings: Ratings, include_models: bool) -> list[str]:
    names = [ratings.annotators[at].name for at in ratings.models if ratings.counts[at]]
    notes = []
    if names and include_models:
        notes.append(f"Not only people: labels of the models {', '.join(names)} are counted.")
    elif names:
        notes.append(f"Labels of the models {', '.join(names)} are left out.")
    notes += ratings.notes
    if any(unit.probability < 1 for unit in ratings.units):
        notes.append("The items are a sample; the counts are of the sample, not weighted by its probabilities.")
    if ratings.guessed and ratings.scheme is not None:
        notes.append(f"The scheme '{ratings.scheme.name}' was recognised from the labels.")
    return notes


def _leakage(counting: _Counting, sets: Mapping[str, frozenset[str]], *, typed: bool) -> dict[str, pl.DataFrame]:
    pairs = counting.answers(leak_answer, order=("leak", "no leak"))
    filed: dict[str, list[tuple[Unit, str]]] = {name: [] for name in sets}
    elsewhere = 0
    for unit, answer in pairs:
        names = [name for name, ids in sets.items() if unit.topic_id in ids] if sets else [counting.group(unit)]
        for name in names:
            filed.setdefault(name, []).append((unit, answer))
        elsewhere += not names
    if elsewhere:
        counting.notes.append(f"{elsewhere:,} judged pairs have a topic of none of the topic sets.")
    rows: list[tuple[Cell, ...]] = []
    for name, members in filed.items():
        for title, wanted in (("true", "leak"), ("false", "no leak")):
            found = [unit.topic_id for unit, answer in members if answer == wanted]
            rows.append((name, title, len(found), len(set(found))))
    parts = {"a": _frame(("corpus", "candidates", "queries", "topics"), rows)}
    return parts | ({"b": _types(counting)} if typed else {})


def _types(counting: _Counting) -> pl.DataFrame:
    """Part (b): a pair that is a leak but has no type of the title counts as a reformulation, as in the paper."""
    variant_only = "no type of the title"
    order = (*TITLE_TYPES, variant_only, DIFFERENT)

    def answer(labels: tuple[str, ...]) -> str | None:
        return query_type(labels, rule=True) or (variant_only if labels else None)

    counts = Counter(answered for _, answered in counting.answers(answer, " of the types", order))
    if others := counts.pop(variant_only, 0):
        pairs, ends = ("pair", "s") if others == 1 else ("pairs", "")
        counting.notes.append(f"{others:,} {pairs} with a type of the variant only count{ends} as reformulation.")
    counts[TITLE_TYPES[-1]] += others
    rows = [(name.removeprefix("Title-").lower(), counts[name]) for name in (*TITLE_TYPES, DIFFERENT)]
    return _frame(("type", "queries"), rows)


def _single(labels: tuple[str, ...]) -> str | None:
    return " + ".join(labels) or None


def _grouped(
    counting: _Counting, answer: Callable[[tuple[str, ...]], str | None] = _single, order: Sequence[str] = ()
) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """How often each answer holds, by group and in all."""
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for unit, found in counting.answers(answer, order=order):
        groups[counting.group(unit)][found] += 1
    return dict(groups), sum(groups.values(), Counter())


def _count_frame(
    head: str, groups: Mapping[str, Counter[str]], whole: Counter[str], names: Sequence[str]
) -> pl.DataFrame:
    """A row for each group, and one for all of them where there are several."""
    rows: list[tuple[Cell, ...]] = [
        (group, *(counts[name] for name in names), counts.total()) for group, counts in groups.items()
    ]
    if len(groups) > 1:
        rows.append(("total", *(whole[name] for name in names), whole.total()))
    return _frame((head, *names, "total"), rows)


def _survivorship(counting: _Counting, scheme: Scheme, confidence: float) -> dict[str, pl.DataFrame]:
    # Imported here: labels of other schemes need no statistics.
    from truerank.measures.magnitudes import proportion

    groups, whole = _grouped(counting)
    names = [choice.name for choice in scheme.choices]
    everything = groups | ({"total": whole} if len(groups) > 1 else {})
    shares: list[tuple[Cell, ...]] = [
        (group, name, counts[name], *proportion(counts[name], counts.total(), confidence=confidence)[2:])
        for group, counts in everything.items()
        for name in names
    ]
    return {
        "counts": _count_frame("split", groups, whole, names),
        "shares": _frame(("split", "reason", "queries", "share", "low", "high"), shares),
    }


def _versions(counting: _Counting, scheme: Scheme) -> dict[str, pl.DataFrame]:
    """For more than two versions: how often each of them has each grade."""
    rows: list[tuple[Cell, ...]] = []
    found: defaultdict[str, dict[str, Counter[str]]] = defaultdict(dict)
    for group in scheme.groups:
        names = [choice.name for choice in scheme.choices if choice.group == group.name]
        inside = frozenset(names)
        answers = counting.answers(lambda labels, inside=inside: next((x for x in labels if x in inside), None))  # type: ignore[misc]
        for unit, answer in answers:
            found[counting.group(unit)].setdefault(group.name, Counter())[answer] += 1
    grades = sorted({choice.grade or 0 for choice in scheme.choices})
    for name, versions in found.items():
        for group in scheme.groups:
            counts = versions.get(group.name, Counter())
            rows.append((name, group.name, *(counts[f"{group.name}={grade}"] for grade in grades), counts.total()))
    return {"counts": _frame(("query set", "version", *map(str, grades), "total"), rows)}


def _plain(counting: _Counting, scheme: Scheme) -> dict[str, pl.DataFrame]:
    alone = tuple(choice.name for choice in scheme.choices if choice.alone)

    def answered(labels: tuple[str, ...]) -> str | None:
        return next((name for name in alone if name in labels), "answered") if labels else None

    grades = sorted(scheme.choices, key=lambda choice: -(choice.grade or 0))
    highest = [choice.name for choice in grades] if scheme.graded else ["answered", *alone] if scheme.per_text else ()
    groups, whole = _grouped(counting, _single if scheme.per_text is None else answered, highest)
    order = [choice.name for choice in scheme.choices] if scheme.per_text is None else ["answered", *alone]
    names = [*order, *sorted(set(whole).difference(order))]
    return {"counts": _count_frame("data set", groups, whole, names)}


def _frame(names: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> pl.DataFrame:
    """Rows as a frame; an answer that is called like another column stands in quotes."""
    # Imported here: the help of the command does without it.
    import polars as pl

    fixed = (names[0], names[-1])
    unique = [f"'{name}'" if name in fixed and 0 < at < len(names) - 1 else name for at, name in enumerate(names)]
    return pl.DataFrame(rows, schema=unique, orient="row", infer_schema_length=None)
