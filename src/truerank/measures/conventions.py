"""Conventions by which one run gets several scores, as values with names, and the scores by each of them.

`conventions.toml` names them. A convention is a set of choices, at most one of each dimension; without choices it is
truerank's own: judged topics, missing ones score 0, ties as trec_eval breaks them, linear gains, an ideal ranking of
all judged documents cut at k. Rankings and grades are arrays, so that thousands of combinations take seconds.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import OptionError
from truerank.measures.grammar import parse_measures
from truerank.measures.rankings import topic_starts
from truerank.sources.lines import repeated_pair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Grades of topics by ranks, and orders of rows: of whole runs in 32 bits, since conventions keep several of each.
Grades = NDArray[np.integer[Any]]
Order = NDArray[np.int32]

#: The grade of a result that is not judged, and of a place without a result.
_UNJUDGED: Final = -(2**31) + 1
_ABSENT: Final = -(2**31)
#: Cut-offs and depths that are tried.
_CUTOFFS: Final = (1, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
#: Decimals of scores, and topics of a batch, that are tried.
_DIGITS: Final = (1, 2, 3, 4)
_BATCHES: Final = (8, 16, 32, 64, 128, 256)
_TOPICS: Final = (5, 10, 20, 25, 50, 100, 200, 250, 500, 1000)
#: Lengths to which ids may have been cut: the longest ones that change which ids are one.
_LENGTHS: Final = 4
_FAMILIES: Final = ("nDCG", "AP", "RR", "P", "R", "Success", "Rprec")
#: Dimensions that change which documents are ranked how, and by which judgments.
_FORMS: Final = ("gain", "discount", "ideal", "divisor", "precision")
_RANKED: Final = ("system", "run", "judgments", "ties", "scores", "unjudged")


@dataclass(frozen=True)
class Alternative:
    """One way to deviate from the default.

    Attributes:
        dimension: what it chooses: the gain, the order of ties, which topics are averaged, …
        says: completes "the number was computed with …".
        prior: how often it is the reason, against the default.
        how: what reproduces it in truerank; empty for mistakes.
        tools: who computes so.
        serves: the measures that it can change; empty for all.
        sensible: whether it is a convention of evaluators in use; the others are mistakes.
        number: the grade, cut-off or depth.
        source: the file, for other runs and judgments.
    """

    dimension: str
    name: str
    says: str
    prior: float
    how: str = ""
    tools: str = ""
    serves: tuple[str, ...] = ()
    sensible: bool = False
    number: int = 0
    source: str = ""

    @property
    def code(self) -> str:
        """Dimension and name: "ties.input"."""
        return f"{self.dimension}.{self.name}"


Convention = tuple[Alternative, ...]


@functools.cache
def _declared() -> Mapping[str, Alternative]:
    text = resources.files("truerank.measures").joinpath("conventions.toml").read_text(encoding="utf-8")
    found = {}
    for dimension, names in tomllib.loads(text).items():
        for name, about in names.items():
            about = {key: tuple(value) if isinstance(value, list) else value for key, value in about.items()}
            found[f"{dimension}.{name}"] = Alternative(dimension, name, **about)
    return found


def _numbered(code: str, number: int, text: str = "") -> Alternative:
    """One of a family, such as all depths."""
    base = _declared()[code]
    shown = text or f"{number:d}"
    name = base.name.replace("K", shown).replace("FILE", shown).replace("NAME", shown)
    return replace(
        base, name=name, says=base.says.format(shown), how=base.how.format(shown), number=number, source=text
    )


@dataclass(frozen=True)
class ScoredMeasure:
    """A measure in the parts that conventions change.

    Attributes:
        family: nDCG, AP, RR, P, R, Success or Rprec.
        cutoff: None for the whole ranking.
        exponential: whether the gain is so by name.
        judged_only: whether unjudged results are passed over by name.
    """

    name: str
    family: str
    cutoff: int | None
    rel: int = 1
    exponential: bool = False
    judged_only: bool = False


def scored_measure(name: str, rel: int = 1) -> ScoredMeasure:
    """A measure by its name."""
    (measure,) = parse_measures(name) if len(parse_measures(name)) == 1 else (None,)
    if measure is None or measure.NAME not in _FAMILIES or "gains" in measure.params:
        known = ", ".join(_FAMILIES)
        raise OptionError("measure", f"the conventions of '{name}' are not known", f"give one of {known}")
    about = measure.params
    return ScoredMeasure(
        str(measure),
        measure.NAME,
        about.get("cutoff"),
        about.get("rel", rel),
        str(about.get("dcg", "")).startswith("exp"),
        bool(about.get("judged_only")),
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The results of a run, and by row (shape (rows,)) what orders and chooses them, made where a convention asks."""

    frame: pl.DataFrame

    @cached_property
    def topics(self) -> tuple[str, ...]:
        return tuple(self.frame["topic_id"].unique(maintain_order=True).to_list())

    @property
    def pairs(self) -> pl.DataFrame:
        return self.frame.select("topic_id", "doc_id")

    @cached_property
    def topic(self) -> Ints:
        """The place of the topic in `topics`."""
        starts = topic_starts(self.frame["topic_id"])
        names = self.frame["topic_id"].gather(starts)
        places = _places(names, pl.Series(self.topics, dtype=pl.String))
        return np.repeat(places.astype(np.int32), np.diff(np.append(starts, len(self.frame))))

    @cached_property
    def score(self) -> Floats:
        return self.frame["score"].to_numpy().astype(np.float64)

    @cached_property
    def rank(self) -> Ints:
        if "rank" not in self.frame.columns:
            return np.zeros(len(self.frame), np.int64)
        return self.frame["rank"].to_numpy().astype(np.int64)

    @cached_property
    def own(self) -> NDArray[np.bool_]:
        """Whether it is the topic's own document."""
        return (self.frame["topic_id"] == self.frame["doc_id"]).to_numpy()

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Whether it is the first of documents that occur twice."""
        if repeated_pair(self.frame["topic_id"], self.frame["doc_id"]) is None:
            return np.ones(len(self.frame), np.bool_)
        return self.frame.select(pl.struct("topic_id", "doc_id").is_first_distinct()).to_series().to_numpy()

    @cached_property
    def place(self) -> Ints:
        """The place within the topic, in the order of the file."""
        return self.frame.select(pl.int_range(pl.len()).over("topic_id")).to_series().to_numpy()

    def ids(self, rows: Order) -> Ints:
        """The place of some rows' ids in the order of these ids."""
        return self.frame["doc_id"].gather(rows).rank("dense").to_numpy().astype(np.int64)

    def numbers(self, rows: Order) -> Ints:
        """The digits of some rows' ids."""
        ids = self.frame["doc_id"].gather(rows)
        return ids.str.replace_all(r"\D", "").cast(pl.Int64, strict=False).fill_null(0).to_numpy()


class _Judged(NamedTuple):
    """Judgments: the topics in their order, the judged pairs, and the grades of each topic, best first."""

    topics: tuple[str, ...]
    pairs: pl.DataFrame
    lists: Grades


#: Averages over the scores of topics, of which one at least is not 0.
_AVERAGES: Final[Mapping[str, Callable[[Floats], Any]]] = {
    "median": np.median,
    "maximum": np.max,
    "geometric": lambda values: np.exp(np.log(np.maximum(values, 1e-5)).mean()),
    "harmonic": lambda values: 1 / (1 / values[values > 0]).mean(),
    "without-zeros": lambda values: values[values > 0].mean(),
}


def _part(topic: str) -> str:
    """The part of a test set that a topic's id names before its last sign: "android-86" is one of android."""
    return re.sub(r"[-_:/.][^-_:/.]*$", "", topic)


class TopicScores(NamedTuple):
    """What a convention gives: hits and what could be found by topic (their ratio is the score), and their average.

    `topics` names them; `kept` says which of them are averaged, and `extra` adds to the divisor of the mean.
    """

    topics: tuple[str, ...]
    above: Floats
    below: Floats
    kept: NDArray[np.bool_]
    extra: float
    average: Alternative | None

    @property
    def values(self) -> Floats:
        """The score of each topic; shape (topics,)."""
        return np.divide(self.above, self.below, out=np.zeros_like(self.above), where=self.below > 0)

    @property
    def score(self) -> float:
        """The average, as a tool would report it."""
        kept = self.kept
        if not kept.any() or kept.sum() + self.extra <= 0:
            return float("nan")
        name = "" if self.average is None else self.average.name
        if name == "micro":
            return float(self.above[kept].sum() / self.below[kept].sum()) if self.below[kept].sum() else float("nan")
        values = self.values[kept]
        if name == "subtasks":
            parts = np.unique([_part(topic) for topic in np.array(self.topics)[kept]], return_inverse=True)[1]
            return float(np.mean(np.bincount(parts, values) / np.bincount(parts)))
        if self.average is not None and self.average.number:
            starts = np.arange(0, len(values), self.average.number)
            sizes = np.diff(np.append(starts, len(values)))
            return float(np.mean(np.add.reduceat(values, starts) / sizes))
        if name in _AVERAGES:
            return float(_AVERAGES[name](values)) if values.any() else 0.0
        return float(values.sum() / (len(values) + self.extra))


def _places(names: pl.Series, known: pl.Series) -> Ints:
    """Where each name is among the known ones."""
    numbers = pl.int_range(len(known), dtype=pl.Int64, eager=True)
    return names.replace_strict(known, numbers, return_dtype=pl.Int64).to_numpy()


class ConventionScorer:
    """The scores of one run under any convention.

    Args:
        qrels: columns topic_id, doc_id and relevance.
        run: columns topic_id, doc_id, score and, where there are ranks, rank, in the order of the file.
        previous: an earlier version of the judgments.
        other_qrels: further judgments by name, such as those of another split.
        other_runs: further runs by name.
    """

    def __init__(
        self,
        qrels: pl.DataFrame,
        run: pl.DataFrame,
        *,
        previous: pl.DataFrame | None = None,
        other_qrels: Mapping[str, pl.DataFrame] | None = None,
        other_runs: Mapping[str, pl.DataFrame] | None = None,
    ) -> None:
        self._runs = {"": run, **(other_runs or {})}
        self._qrels = {"": qrels, **(other_qrels or {})}
        if previous is not None:
            self._qrels["previous"] = previous
        self._kept: dict[Any, Any] = {}
        highest = int(qrels["relevance"].max() or 0)  # type: ignore[arg-type]
        self.choices = tuple(self._choices(run, qrels, highest))

    def _choices(self, run: pl.DataFrame, qrels: pl.DataFrame, highest: int) -> Iterator[Alternative]:
        """All choices that these files allow."""
        topics = qrels["topic_id"].n_unique()
        most = int(run.group_by("topic_id").len()["len"].max() or 0)  # type: ignore[arg-type]
        ids, judged = run["doc_id"], qrels["doc_id"].unique()
        written = _written(ids, judged)
        fits: dict[str, bool] = {
            "grades.binary": highest > 1,
            "grades.reversed": highest > 1,
            "grades.negative": int(qrels["relevance"].min() or 0) < 0,  # type: ignore[arg-type]
            "run.own-document": bool((run["topic_id"] == ids).any()),
            "run.case": written["case"] or bool(judged.str.contains("[A-Z]").any()),
            "run.integer": written["integer"] or bool(judged.str.contains(_ZEROS).any()),
            "run.prefix": written["prefix"] or bool(judged.str.contains(_PARTED).any()),
            "run.duplicates": repeated_pair(run["topic_id"], ids) is not None,
            "ties.rank": "rank" in run.columns,
            "scores.positive": bool((run["score"] <= 0).any()),
            "judgments.previous": "previous" in self._qrels,
            "average.subtasks": 1 < len({*map(_part, qrels["topic_id"].unique())}) <= topics / 2,
        }
        fits |= dict.fromkeys(("run.passages-best", "run.passages-first", "run.passages-sum"), written["passages"])
        upper, depths = min(highest, 4) + 1, [number for number in _CUTOFFS if 3 < number < most]
        grades = qrels["relevance"].unique().sort().to_list()
        numbers: dict[str, Sequence[int]] = {
            "level.K": range(1, upper), "grades.binary-K": range(2, upper), "grades.from-K": range(2, upper),
            "judgments.lost-K": [grade for grade in grades if 0 <= grade < upper and len(grades) > 1],
            "cutoff.K": _CUTOFFS, "cut.K": _CUTOFFS, "cut.capped-K": _CUTOFFS, "run.depth-K": depths,
            "run.rows-K": depths, "run.cut-K": _lengths(judged), "ties.digits-K": _DIGITS,
            "average.batches-K": [size for size in _BATCHES if size < topics],
            "topics.first-K": [number for number in _TOPICS if number < topics],
        }  # fmt: skip
        names: dict[str, Sequence[str]] = {
            "family.NAME": _FAMILIES, "system.FILE": [name for name in self._runs if name],
            "judgments.FILE": [name for name in self._qrels if name not in ("", "previous")],
        }  # fmt: skip
        for code, choice in _declared().items():
            if code in numbers:
                yield from (_numbered(code, number) for number in numbers[code])
            elif code in names:
                yield from (_numbered(code, 0, name) for name in names[code])
            elif fits.get(code, True):
                yield replace(choice, number=highest) if code == "grades.reversed" else choice
            if code == "cutoff.K":
                yield replace(choice, name="none", says="no cut-off", number=0)

    def forget(self) -> None:
        """Frees what was made for the conventions so far."""
        self._kept.clear()

    def scores(self, measure: ScoredMeasure, convention: Convention = ()) -> TopicScores:
        """The scores of all topics of the judgments by a convention."""
        chosen = {choice.dimension: choice for choice in convention}
        ranked = tuple(chosen.get(name) for name in _RANKED)
        grades = self._graded(ranked, chosen.get("grades"))
        judged = self._judged(ranked)
        level = chosen["level"].number if "level" in chosen else measure.rel
        cutoff = _cutoff(measure.cutoff, chosen.get("cutoff" if measure.cutoff else "cut"))
        family = chosen["family"].source if "family" in chosen else measure.family
        names = {name: chosen[name].name if name in chosen else "" for name in _FORMS}
        if measure.cutoff is None and "cut" in chosen and chosen["cut"].name.startswith("capped"):
            names["divisor"] = "capped"
        if measure.exponential and not names["gain"]:
            names["gain"] = "exponential"
        key = ("values", ranked, chosen.get("grades"), measure, family, cutoff, level, *names.values())

        def made() -> Pair:
            shown = _condensed(grades) if measure.judged_only else grades
            ideal = self._ideal(ranked, chosen.get("grades"))
            # Averages are taken over whole rankings.
            plain = ranked[5] is None and (ranked[1] is None or _changes(ranked[1].name)) and shown is grades
            plain = plain and ranked[3] is not None and family in ranked[3].serves
            tied = self._kept.get(("tied", ranked[:5])) if plain else None
            listed = self._graded((*ranked[:4], None, None), chosen.get("grades"))
            return _FUNCTIONS[family](_Shown(shown, ideal, cutoff, level, names, listed, tied))

        above, below = self._once(key, made)
        kept, extra = self._averaged(ranked, chosen["topics"].name if "topics" in chosen else "")
        return TopicScores(judged.topics, above, below, kept, extra, chosen.get("average"))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _frames(self, ranked: Sequence[Alternative | None]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The run and the judgments, with the ids that the convention compares."""
        system, run, judgments = ranked[:3]
        results = self._runs["" if system is None else system.source]
        source = "" if judgments is None else judgments.source or ("previous" if judgments.name == "previous" else "")
        qrels = self._qrels[source]
        if judgments is not None and judgments.name.endswith("-topic"):
            topics = qrels["topic_id"].unique(maintain_order=True).to_list()
            step = 1 if judgments.name == "next-topic" else -1
            of = {topics[(place + step) % len(topics)]: topic for place, topic in enumerate(topics)}
            # In the order of the topics that they are taken for.
            order = {topic: place for place, topic in enumerate(topics)}
            qrels = qrels.with_columns(pl.col("topic_id").replace_strict(of))
            qrels = qrels.sort(pl.col("topic_id").replace_strict(order), maintain_order=True)
        name = "" if run is None else run.name
        if run is not None and _respells(name):
            doc = pl.col("doc_id")
            changed = doc.str.slice(0, run.number) if run.number else _IDS[name](doc)
            results, qrels = results.with_columns(changed), qrels.with_columns(changed)
        elif name.startswith("passages"):
            results = _documents(results, name)
        elif name == "appended":
            results = _appended(results, qrels)
        if judgments is not None and judgments.name.startswith("lost-"):
            qrels = qrels.filter(pl.col("relevance") != judgments.number)
        elif judgments is not None and judgments.name in _LINES:
            first, past = _LINES[judgments.name](len(qrels))
            qrels = qrels[first:past]
        elif judgments is not None and judgments.name == "retrieved":
            retrieved = qrels.join(results, on=["topic_id", "doc_id"], how="semi", maintain_order="left")
            # Of no judgments there is no score.
            qrels = retrieved if len(retrieved) else qrels
        return results, qrels

    def _judged(self, ranked: Sequence[Alternative | None]) -> _Judged:
        ids = ranked[1] if ranked[1] is not None and _respells(ranked[1].name) else None
        system = ranked[0] if ranked[2] is not None and ranked[2].name == "retrieved" else None
        return self._once(("judged", system, ids, ranked[2]), lambda: self._made_judged((system, ids, ranked[2])))  # type: ignore[no-any-return]

    def _made_judged(self, ranked: Sequence[Alternative | None]) -> _Judged:
        qrels = self._frames(ranked)[1].unique(["topic_id", "doc_id"], keep="last", maintain_order=True)
        topics = qrels["topic_id"].unique(maintain_order=True)
        at = _places(qrels["topic_id"], topics)
        grades = qrels["relevance"].to_numpy().astype(np.int64)
        order = np.lexsort((-grades, at))
        counts = np.bincount(at, minlength=len(topics))
        lists = np.full((len(topics), int(counts.max())), _ABSENT, np.int64)
        starts = np.cumsum(counts) - counts
        lists[at[order], np.arange(len(at)) - starts[at[order]]] = grades[order]
        return _Judged(tuple(topics.to_list()), qrels.select("topic_id", "doc_id", "relevance"), lists)

    def _rows(self, system: Alternative | None, run: Alternative | None) -> _Rows:
        name = "" if run is None else run.name
        changing = run if _changes(name) else None

        rows: _Rows = self._once(("rows", system, changing), lambda: _Rows(self._frames((system, changing, None))[0]))
        return rows

    def _graded(self, ranked: tuple[Alternative | None, ...], grades: Alternative | None) -> Grades:
        """The grade of each result by topic of the judgments and rank; shape (topics, ranks)."""

        def made() -> Grades:
            found = _regraded(self._once(("matrix", ranked[:5]), lambda: self._matrix(ranked)), grades)
            return found if ranked[5] is None else _condensed(found)

        return self._once(("graded", ranked, grades), made)  # type: ignore[no-any-return]

    def _ideal(self, ranked: tuple[Alternative | None, ...], grades: Alternative | None) -> Grades:
        made: Grades = self._once(
            ("ideal", ranked[:3], grades),
            lambda: -np.sort(-_regraded(self._judged(ranked).lists, grades), axis=1),
        )
        return made

    def _matrix(self, ranked: tuple[Alternative | None, ...]) -> Grades:
        system, run, judgments, ties, positive, _ = ranked
        rows, judged = self._rows(system, run), self._judged(ranked)
        name = "" if run is None else run.name
        key = ("grades", system, run if _changes(name) else None, judgments)
        numbers = {topic: place for place, topic in enumerate(judged.topics)}
        places = np.array([numbers.get(topic, -1) for topic in rows.topics], np.int32)

        def made() -> Order:
            found = rows.pairs.with_row_index("row").join(judged.pairs, on=["topic_id", "doc_id"])
            grades = np.full(len(rows.frame), _UNJUDGED, np.int32)
            grades[found["row"].to_numpy()] = found["relevance"].to_numpy()
            return grades

        grade: Ints = self._once(key, made)
        keep = (places >= 0)[rows.topic]
        if name != "duplicates":
            keep &= rows.first
        if name == "own-document":
            keep &= ~rows.own
        if name == "line-lost":
            keep &= rows.place > 0
        if name.startswith("rows"):
            keep &= rows.place < (run.number if run is not None else 0)
        name_of_ties, reversed_run = "" if ties is None else ties.name, name == "reversed"
        by = (
            "double" if name_of_ties in _DOUBLE else name_of_ties if name_of_ties.partition("-")[0] in _COMPARED else ""
        )
        groups: _Groups = self._once(("groups", key[1:3], by, reversed_run), lambda: _groups(rows, by, reversed_run))
        order = _order(rows, groups, grade, name_of_ties)
        if not keep.all():
            order = order[keep[order]]
        if positive is not None:
            grade = np.where(rows.score > 0, grade, _UNJUDGED)
        own, grade = rows.topic[order], grade[order]
        counts, at = np.bincount(own), places[own]
        rank = np.arange(len(own), dtype=np.int32) - (np.cumsum(counts) - counts).astype(np.int32)[own]
        matrix = np.full((len(judged.topics), max(1, int(counts.max(initial=0)))), _ABSENT, np.int32)
        matrix[at, rank] = grade
        if name_of_ties in ("averaged", "last"):
            score = rows.score[order]
            begins = np.append(True, (score[1:] != score[:-1]) | (own[1:] != own[:-1]))
            tied = np.zeros(matrix.shape, np.int32)
            tied[at, rank] = np.cumsum(begins)
            self._kept["tied", ranked[:5]] = tied
        if name.startswith("depth") and run is not None:
            matrix = matrix[:, : run.number]
        if name == "first-lost":
            matrix = np.hstack([matrix[:, 1:], np.full((len(matrix), 1), _ABSENT, np.int32)])
        return matrix

    def _averaged(self, ranked: tuple[Alternative | None, ...], rule: str) -> tuple[NDArray[np.bool_], float]:
        """Which topics of the judgments are averaged, and by how much the divisor is off."""

        def made() -> tuple[NDArray[np.bool_], float]:
            judged = self._judged(ranked)
            own = self._rows(*ranked[:2]).topics
            kept = np.ones(len(judged.topics), np.bool_)
            if rule in ("in-run", "in-run-with-relevant", "of-run"):
                kept &= np.isin(np.array(judged.topics), np.array(own))
            if rule.endswith("with-relevant"):
                kept &= (judged.lists > 0).any(axis=1)
            elif rule == "with-retrieved":
                kept &= (self._graded((*ranked[:3], None, None, None), None) > 0).any(axis=1)
            elif rule in ("without-first", "without-last"):
                kept[0 if rule == "without-first" else -1] = False
            elif rule.endswith("-of-run"):
                lost = own[0 if "first" in rule else -1]
                kept &= np.array([topic != lost for topic in judged.topics])
            elif rule.removeprefix("first-").isdecimal():
                kept[int(rule.removeprefix("first-")) :] = False
            elif rule.endswith("-half"):
                middle = len(kept) // 2
                kept[slice(middle, None) if rule == "first-half" else slice(middle)] = False
            extra = {"one-more": 1.0, "one-less": -1.0}.get(rule, 0.0)
            if rule in ("of-run", "union"):
                extra = float(len(set(own) - set(judged.topics)))
            return kept, extra

        return self._once(("averaged", ranked[:3], rule), made)  # type: ignore[no-any-return]


#: Orders of ties by tools that compare scores as 64-bit numbers.
_DOUBLE: Final = ("double", "ascending", "input", "reversed-input", "averaged", "last")
#: What a run is ordered by, in place of its scores, ascending.
_COMPARED: Final[Mapping[str, Callable[[_Rows, int], Floats]]] = {
    "": lambda rows, _: -rows.score.astype(np.float32).astype(np.float64),
    "double": lambda rows, _: -rows.score,
    "rank": lambda rows, _: rows.rank.astype(np.float64),
    "lines": lambda rows, _: rows.place.astype(np.float64),
    "half": lambda rows, _: -np.clip(rows.score, -65504, 65504).astype(np.float16).astype(np.float64),
    "whole": lambda rows, _: -np.trunc(rows.score),
    "digits": lambda rows, digits: -np.round(rows.score, digits),
    "text": lambda rows, _: -pl.Series(rows.score).cast(pl.String).rank("dense").to_numpy().astype(np.float64),
}
#: The lines of the judgments that are read, from the first to the one past the last.
_LINES: Final[Mapping[str, Callable[[int], tuple[int, int]]]] = {
    "first-half": lambda lines: (0, lines // 2),
    "second-half": lambda lines: (lines // 2, lines),
    "without-first-line": lambda lines: (1, lines),
    "without-last-line": lambda lines: (0, lines - 1),
}
#: Ids that are looked at together.
_PART: Final = 1 << 20
_PASSAGE: Final = re.compile(r"[-_#%.:]p?\d+$")
_ZEROS, _PARTED = r"^0\d*$", "[/:#]"
_IDS: Final[Mapping[str, Callable[[pl.Expr], pl.Expr]]] = {
    "case": lambda ids: ids.str.to_lowercase(),
    "integer": lambda ids: ids.str.replace(r"^0+(\d)", "$1"),
    "prefix": lambda ids: ids.str.replace(r"^.*[/:#]", ""),
}


def _written(ids: pl.Series, judged: pl.Series) -> dict[str, bool]:
    """What some id of a run shows, asked of a part of them after the other, and of each different one once."""
    tests: Mapping[str, Callable[[pl.Series], pl.Series]] = {
        "case": lambda some: some != some.str.to_lowercase(),
        "integer": lambda some: some.str.contains(_ZEROS),
        "prefix": lambda some: some.str.contains(_PARTED),
        "passages": lambda some: _documents_of(some).is_in(judged.implode()) & ~some.is_in(judged.implode()),
    }
    found = dict.fromkeys(tests, False)
    for at in range(0, len(ids), _PART):
        some = ids.slice(at, _PART).unique()
        found |= {name: bool(test(some).any()) for name, test in tests.items() if not found[name]}
    return found


def _documents_of(ids: pl.Series) -> pl.Series:
    """Ids of passages as those of their documents."""
    return ids.str.replace(_PASSAGE.pattern, "")


def _respells(name: str) -> bool:
    """Whether a choice writes ids otherwise."""
    return name in _IDS or name.startswith("cut-")


def _lengths(judged: pl.Series) -> list[int]:
    """The longest lengths that make some of the judged ids one, and not all."""
    longest = int(judged.str.len_chars().max() or 0)  # type: ignore[arg-type]
    counts = ((length, judged.str.slice(0, length).n_unique()) for length in range(longest - 1, 0, -1))
    return [length for length, count in counts if 1 < count < len(judged)][:_LENGTHS]


def _changes(name: str) -> bool:
    """Whether a choice changes what a run holds, and not only which of its rows count."""
    return _respells(name) or name.startswith("passages") or name == "appended"


def _appended(run: pl.DataFrame, qrels: pl.DataFrame) -> pl.DataFrame:
    """The run with the judged documents of its topics that it lacks, at the end and with one score."""
    least = run.group_by("topic_id").agg(pl.col("score").min().clip(upper_bound=1.0) - 1.0, pl.len().alias("rank"))
    lacking = qrels.select("topic_id", "doc_id").join(run, on=["topic_id", "doc_id"], how="anti")
    more = lacking.join(least, on="topic_id").with_columns(
        (pl.col("rank") + pl.int_range(1, pl.len() + 1).over("topic_id")).cast(pl.Int64)
    )
    columns = [name for name in ("topic_id", "doc_id", "score", "rank") if name in run.columns]
    topics = {topic: place for place, topic in enumerate(run["topic_id"].unique(maintain_order=True).to_list())}
    every = pl.concat([run.select(columns), more.select(columns)], how="vertical_relaxed")
    return every.sort(pl.col("topic_id").replace_strict(topics, return_dtype=pl.Int64), maintain_order=True)


def _documents(run: pl.DataFrame, how: str) -> pl.DataFrame:
    """Passages as their documents, in the order of their new scores."""
    parts = run.with_columns(
        pl.col("doc_id").str.replace(_PASSAGE.pattern, ""),
        part=pl.col("doc_id").str.extract(r"(\d+)$").cast(pl.Int64, strict=False),
    )
    score = {
        "passages-best": pl.col("score").max(),
        "passages-sum": pl.col("score").sum(),
        "passages-first": pl.col("score").sort_by("part").first(),
    }[how]
    found = parts.group_by("topic_id", "doc_id", maintain_order=True).agg(score)
    ranks = pl.col("score").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64)
    return found.with_columns(ranks.alias("rank"))


class _Groups(NamedTuple):
    """The rows by topic and score, then in the order of the file; the places of tied ones, and their groups."""

    order: Order
    tied: Order
    group: Order


def _groups(rows: _Rows, by: str, upside_down: bool) -> _Groups:
    name, _, digits = by.partition("-")
    score = _COMPARED[name](rows, int(digits or 0))
    score = -score if upside_down else score
    step = np.diff(rows.topic)
    ordered = np.all((step > 0) | ((step == 0) & (score[1:] >= score[:-1])))
    order = np.arange(len(score)) if ordered else np.lexsort((score, rows.topic))
    topic, score = rows.topic[order], score[order]
    group = np.cumsum(np.append(True, (score[1:] != score[:-1]) | (topic[1:] != topic[:-1]))[: len(order)])
    tied = np.flatnonzero(np.bincount(group)[group] > 1)
    return _Groups(*(part.astype(np.int32) for part in (order, tied, group[tied])))


def _order(rows: _Rows, groups: _Groups, grade: Ints, ties: str) -> Order:
    """The rows of each topic in the order of a convention: only those with equal scores are sorted anew."""
    own = groups.order[groups.tied]
    if ties == "input" or not len(own):
        return groups.order
    ways: Mapping[str, Callable[[Order], NDArray[Any]]] = {
        "ascending": rows.ids, "rank": rows.ids, "reversed-input": np.negative, "best": lambda some: -grade[some],
        "worst": lambda some: grade[some], "number": lambda some: -rows.numbers(some), "number-ascending": rows.numbers,
    }  # fmt: skip
    second = ways[ties](own) if ties in ways else -rows.ids(own)
    order = groups.order.copy()
    order[groups.tied] = own[np.lexsort((own, second, groups.group))]
    return order


#: Grades, those of pooled and of absent documents below 0, by a choice and its number.
_GRADES: Final[Mapping[str, Callable[[Grades, int], Grades]]] = {
    "binary": lambda plain, lowest: np.where(plain > 0, plain >= lowest, plain),
    "from": lambda plain, lowest: np.where((plain > 0) & (plain < lowest), 0, plain),
    "exactly": lambda plain, _: np.where(plain > 1, 0, plain),
    "shifted": lambda plain, _: np.where(plain > 0, plain - 1, plain),
    "raised": lambda plain, _: np.where(plain >= 0, plain + 1, plain),
    "reversed": lambda plain, highest: np.where(plain > 0, highest + 1 - plain, plain),
}


def _regraded(matrix: Grades, grades: Alternative | None) -> Grades:
    """Grades as a convention takes them; a negative one stands for a document that was pooled and not judged."""
    name = "" if grades is None else grades.name
    if name == "negative":
        return matrix
    pooled = (matrix < 0) & (matrix > _UNJUDGED)
    plain = np.where(pooled, _UNJUDGED, matrix) if pooled.any() else matrix
    return plain if grades is None else _GRADES[name.partition("-")[0]](plain, grades.number)


def _cutoff(own: int | None, choice: Alternative | None) -> int | None:
    """The cut-off of a measure by a choice: another one, none, or one off."""
    if choice is None:
        return own
    if own is not None and choice.name.startswith("one-"):
        return own + (1 if choice.name == "one-more" else -1)
    return choice.number or None


def _condensed(matrix: Grades) -> Grades:
    """Judged results moved up over those that are not."""
    judged = matrix > _UNJUDGED
    order = np.argsort(~judged, axis=1, kind="stable")
    moved = np.take_along_axis(matrix, order, axis=1)
    counts = judged.sum(axis=1, keepdims=True)
    return np.where(np.arange(matrix.shape[1]) < counts, moved, _ABSENT)


_DISCOUNTS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "": lambda rank: 1 / np.log2(rank + 1),
    "jarvelin": lambda rank: 1 / np.maximum(1.0, np.log2(rank)),
    "offset": lambda rank: 1 / np.log2(rank + 2),
    "natural": lambda rank: 1 / (1 + np.log(rank)),
    "reciprocal": lambda rank: 1 / rank,
    "none": np.ones_like,
}


_GAINS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "": lambda grade: grade,
    "squared": np.square,
    **dict.fromkeys(("exponential", "elasticsearch"), lambda grade: np.exp2(grade) - 1),
}


class _Shown(NamedTuple):
    """What a measure scores: grades by topic and rank, the judged grades best first, and the choices by dimension.

    `listed` are the grades of all results, also of those that a convention does not count.
    """

    grades: Grades
    ideal: Grades
    cutoff: int | None
    rel: int
    names: Mapping[str, str]
    listed: Grades
    tied: Grades | None = None

    @property
    def results(self) -> Grades:
        return self.grades[:, : self.cutoff]

    @property
    def hits(self) -> NDArray[np.bool_]:
        return self.results >= self.rel

    @property
    def relevant(self) -> Floats:
        """How many documents of each topic are relevant, or how many of those that were retrieved."""
        every = self.listed if self.names["divisor"] == "retrieved" else self.ideal
        return np.asarray((every >= self.rel).sum(axis=1), np.float64)

    def gain(self, grades: Grades, tied: Grades | None = None, *, ideal: bool = False) -> Floats:
        """The discounted gain of rankings; with `tied`, the mean gain of each group of equal scores."""
        plain = np.where(grades > _UNJUDGED, grades, 0).astype(np.float64)
        rank = np.arange(1, grades.shape[1] + 1, dtype=np.float64)
        names = {name: self.names[name].removesuffix("" if ideal else "-run-only") for name in ("gain", "discount")}
        discount = _DISCOUNTS.get(names["discount"], _DISCOUNTS[""])(rank)
        gains = _GAINS.get(names["gain"], _GAINS[""])(plain)
        if tied is not None:
            groups = tied.ravel()
            gains = (np.bincount(groups, gains.ravel()) / np.maximum(1, np.bincount(groups)))[tied]
            gains, discount = gains[:, : self.cutoff], discount[: self.cutoff]
        return np.asarray(gains @ discount, np.float64)


#: What was found of each topic, and what could be: their ratio is the score.
Pair = tuple[Floats, Floats]


def _best_first(grades: Grades) -> Grades:
    """Results by their gain: what is not judged has none, and comes before a negative grade."""
    return -np.sort(-np.where(grades > _UNJUDGED, grades, 0), axis=1)


def _ndcg(shown: _Shown) -> Pair:
    ideals: Mapping[str, Callable[[], Grades]] = {
        "": lambda: shown.ideal[:, : shown.cutoff],
        "retrieved": lambda: _best_first(shown.grades)[:, : shown.cutoff],
        "retrieved-cut": lambda: _best_first(shown.results),
        "uncut": lambda: shown.ideal,
        "results": lambda: np.where(
            np.arange(shown.ideal[:, : shown.cutoff].shape[1]) < (shown.results > _ABSENT).sum(axis=1)[:, None],
            shown.ideal[:, : shown.cutoff],
            0,
        ),
        "ones": lambda: np.full(
            (len(shown.grades), shown.cutoff or shown.ideal.shape[1]), max(1, int(shown.ideal.max())), np.int64
        ),
    }
    above = shown.gain(shown.results) if shown.tied is None else shown.gain(shown.grades, shown.tied)
    ideal = shown.names["ideal"] or ("results" if shown.names["gain"] == "elasticsearch" else "")
    return above, shown.gain(ideals[ideal](), ideal=True)


def _ap(shown: _Shown) -> Pair:
    hits, every = shown.hits, shown.relevant
    form = shown.names["precision"]
    precision = np.cumsum(hits, axis=1) / (np.arange(1, hits.shape[1] + 1) + (form == "offset"))
    if shown.tied is not None:
        tied = shown.tied[:, : shown.cutoff]
        last = np.zeros(tied.max() + 1, np.int64)
        np.maximum.at(last, tied, np.broadcast_to(np.arange(hits.shape[1]), tied.shape))
        precision = np.take_along_axis(precision, last[tied], axis=1)
    if form == "eleven-points":
        return _eleven_points(hits, precision, every)
    divisor = {
        "capped": np.minimum(every, shown.cutoff or np.inf, dtype=np.float64),
        "retrieved": hits.sum(axis=1).astype(np.float64),
        "cutoff": np.full(len(hits), float(shown.cutoff or hits.shape[1])),
    }.get(shown.names["divisor"], every)
    return np.asarray((precision * hits).sum(axis=1)), np.asarray(divisor)


def _eleven_points(hits: NDArray[np.bool_], precision: Floats, every: Floats) -> Pair:
    """The best precision at each tenth of recall or more, and how many tenths there are."""
    recall = np.cumsum(hits, axis=1) / np.maximum(1, every)[:, None]
    best = [np.max(precision * (hits & (recall >= tenth / 10 - 1e-12)), axis=1) for tenth in range(11)]
    return np.sum(best, axis=0), np.where(every > 0, 11.0, 0.0)


def _rr(shown: _Shown) -> Pair:
    hits = shown.hits
    first: Floats = hits.any(axis=1) / (1.0 + np.argmax(hits, axis=1) + (shown.names["precision"] == "offset"))
    return first, np.ones(len(hits))


def _precision(shown: _Shown) -> Pair:
    if shown.names["divisor"] == "hit":
        return _success(shown)
    found, returned = shown.hits.sum(axis=1), (shown.results > _ABSENT).sum(axis=1)
    fixed = shown.cutoff is not None and shown.names["divisor"] != "returned"
    divisor = np.full(len(returned), shown.cutoff) if fixed else returned
    return found.astype(np.float64), divisor.astype(np.float64)


def _recall(shown: _Shown) -> Pair:
    if shown.names["divisor"] == "hit":
        return _success(shown)
    every = shown.relevant
    if shown.names["divisor"] == "capped" and shown.cutoff is not None:
        every = np.asarray(np.minimum(every, shown.cutoff), np.float64)
    return shown.hits.sum(axis=1).astype(np.float64), every


def _success(shown: _Shown) -> Pair:
    return np.asarray(shown.hits.any(axis=1), np.float64), np.ones(len(shown.grades))


def _r_precision(shown: _Shown) -> Pair:
    within = np.arange(shown.grades.shape[1]) < shown.relevant[:, None]
    return np.asarray(((shown.grades >= shown.rel) & within).sum(axis=1), np.float64), shown.relevant


_FUNCTIONS: Final[Mapping[str, Callable[[_Shown], Pair]]] = {
    "nDCG": _ndcg, "AP": _ap, "RR": _rr, "P": _precision, "R": _recall, "Success": _success, "Rprec": _r_precision,
}  # fmt: skip


class ConventionRange(NamedTuple):
    """The scores of two runs, and their difference, over all sensible conventions.

    Each pair of numbers is the least and the largest value; `conventions` is how many of them give different
    scores, `lowest` the convention of the smallest difference.
    """

    measure: str
    conventions: int
    system: tuple[float, float]
    baseline: tuple[float, float]
    difference: tuple[float, float]
    lowest: Convention

    def sentence(self, system: str, baseline: str) -> str:
        """The range in one sentence."""
        low, high = (f"{value:+.3f}".replace("-", "−") for value in self.difference)
        return (
            f"Programs compute {self.measure} in {self.conventions} ways; here they give {low} to {high} "
            f"({system} {self.system[0]:.3f} to {self.system[1]:.3f}, {baseline} {self.baseline[0]:.3f} to "
            f"{self.baseline[1]:.3f})."
        )


#: Results of two runs for which conventions are not kept at the same time.
_LARGE: Final = 4_000_000


def convention_range(
    qrels: pl.DataFrame, system: pl.DataFrame, baseline: pl.DataFrame, measure: str, rel: int = 1
) -> ConventionRange | None:
    """What conventions do to a comparison; None for a measure whose conventions are not known.

    Args:
        qrels: columns topic_id, doc_id and relevance.
        system: columns topic_id, doc_id, score and, where there are ranks, rank.
        baseline: the same.
        rel: the lowest grade that counts as relevant where the measure does not say.
    """
    try:
        scored = scored_measure(measure, rel)
    except OptionError:
        return None
    scorers = (ConventionScorer(qrels, system), ConventionScorer(qrels, baseline))

    large = len(system) + len(baseline) > _LARGE

    def scores(conventions: Sequence[Convention], order: tuple[int, int]) -> list[tuple[float, float]]:
        """The scores of both runs, one run after the other; large runs forget what they have made for them."""
        values: dict[int, list[float]] = {}
        for place in order:
            if large:
                scorers[1 - place].forget()
            values[place] = [scorers[place].scores(scored, convention).score for convention in conventions]
        return list(zip(values[0], values[1], strict=True))

    fitting = [
        one
        for one in scorers[0].choices
        if one.sensible
        and (not one.serves or scored.family in one.serves)
        and one in scorers[1].choices
        # Where only relevant documents are judged, a list without the others is relevant as a whole.
        and not (one.dimension == "unjudged" and int(qrels["relevance"].min() or 0) > 0)  # type: ignore[arg-type]
    ]
    plain, *alone = scores([(), *((one,) for one in fitting)], (0, 1))
    options: dict[str, list[Alternative]] = {}
    for one, pair in zip(fitting, alone, strict=True):
        if pair != plain:
            options.setdefault(one.dimension, []).append(one)
    chosen = itertools.product(*([None, *some] for some in options.values()))
    conventions = [tuple(one for one in some if one is not None) for some in chosen]
    found: dict[tuple[float, float], Convention] = {}
    # The run that came last has most of what it needs.
    for convention, pair in zip(conventions, scores(conventions, (1, 0)), strict=True):
        if not any(map(math.isnan, pair)):
            found.setdefault(pair, convention)
    first, second = ([pair[place] for pair in found] for place in (0, 1))
    differences = {pair[0] - pair[1]: convention for pair, convention in found.items()}
    return ConventionRange(
        scored.name,
        len(found),
        (min(first), max(first)),
        (min(second), max(second)),
        (min(differences), max(differences)),
        differences[min(differences)],
    )
