"""What people and models said about the same pairs of topic and document, as one table of grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.assessors.options import AssessorRules, scale_of
from truerank.errors import InputError, OptionError
from truerank.judging.ratings import Ratings, decide, read_ratings
from truerank.judging.store import Store, is_store
from truerank.measures.scoring import qrel_frame
from truerank.sources import compressed, formats
from truerank.sources.grammar import SourceSpec, named_source
from truerank.sources.notebook import is_single
from truerank.sources.qrels import BEIR_HEADER, QREL_SCHEMA

Codes = NDArray[np.int64]
_KEYS: Final = ["topic_id", "doc_id"]
_QREL_CELLS: Final = (3, 4)


class Voice(NamedTuple):
    """One person or model: a name, and grades with the columns of qrels."""

    name: str
    grades: pl.DataFrame


class OutsideGrade(NamedTuple):
    """A grade outside the scale, who gave it, and to how many pairs."""

    name: str
    grade: int
    pairs: int


@dataclass(frozen=True, eq=False)
class Grades:
    """Grades of the pairs that people judged.

    Codes are positions in the scale, -1 where nothing was said.

    Attributes:
        scale: the grades, the lowest first.
        topics: ids of topics.
        documents: the document of each pair.
        topic: the number of each pair's topic, shape (pairs,).
        reference: the code of what people decided, shape (pairs,).
        people: who judged, and `said` their codes, shape (pairs, people).
        judges: the models, and `given` their codes, shape (pairs, judges).
        qrels: of "people" (an empty name) and of each judge, all grades on the topics, as qrels; a judge may have
            graded more pairs than people.
        outside: the grades outside the scale.
        undecided: pairs on which the rule for several voices gives no grade.
    """

    scale: tuple[int, ...]
    topics: tuple[str, ...]
    documents: tuple[str, ...]
    topic: Codes
    reference: Codes
    people: tuple[str, ...]
    said: Codes
    judges: tuple[str, ...]
    given: Codes
    qrels: Mapping[str, pl.DataFrame]
    outside: tuple[OutsideGrade, ...] = ()
    undecided: int = 0

    def code_of(self, grade: int) -> int:
        """The lowest code that counts as relevant from a grade on.

        Raises:
            OptionError: no grade of the scale is as high.
        """
        code = next((at for at, one in enumerate(self.scale) if one >= grade), 0)
        if not code:
            shown = ", ".join(map(str, self.scale))
            raise OptionError("rel", f"{grade} does not divide the scale {shown}", f"choose one of {shown[3:]}")
        return code


def read_voices(sources: Any, *, models: bool) -> tuple[Voice, ...]:
    """The grades of each person, or of each model, in some sources.

    Args:
        sources: qrels, label files or judging stores, each as [NAME=]SRC; in Python also by name whatever `evaluate`
            takes as judgments, ratings, or an open store.
        models: models are asked for: of a store, its models count, and not its people.

    Raises:
        InputError: not readable; labels that are not grades; nobody to compare; two with one name.
    """
    found = [voice for name, source in _named(sources, models) for voice in _voices(name, source, models)]
    doubled = [name for name, count in Counter(voice.name for voice in found).items() if count > 1]
    option = "model" if models else "people"
    if doubled:
        raise OptionError(option, f"two sources are called {doubled[0]}", "name them: NAME=SRC")
    if not found:
        raise OptionError(option, "nobody's grades", "give qrels, a label file or a store")
    return tuple(found)


def _named(sources: Any, models: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(sources, Mapping) and not is_single(sources):
        yield from ((str(name), source) for name, source in sources.items())
        return
    several = sources if isinstance(sources, list | tuple) else (sources,)
    for number, source in enumerate(several, 1):
        if isinstance(source, Ratings | SourceSpec):
            yield "", source
        elif not isinstance(source, str | Path):
            default = "model" if models else "people"
            yield (default if len(several) == 1 else f"{default} {number}"), source
        else:
            name, spec = named_source(str(source))
            yield name, spec


def _voices(name: str, source: Any, models: bool) -> Iterator[Voice]:
    if isinstance(source, str | Path):
        source = named_source(str(source))[1]
    if isinstance(source, Store | Ratings) or (isinstance(source, SourceSpec) and _holds_labels(source)):
        yield from _labelled(name, source, models)
        return
    default = name or (source.name if isinstance(source, SourceSpec) else "people")
    yield Voice(default.removesuffix(".qrels"), qrel_frame(source))


def _holds_labels(spec: SourceSpec) -> bool:
    """Whether a source is a store or a label file, and not qrels."""
    if spec.scheme != "file" or compressed.is_folder(spec.path):
        return False
    if is_store(spec.path):
        return True
    form = formats.detect(compressed.checked_file(spec.path), spec.format)
    if form in ("csv", "jsonl", "json", "parquet"):
        return True
    if form in ("qrels", "lines") or spec.format:
        return False
    # A table with tabs: BEIR's judgments, TREC's, or labels with a header.
    first = compressed.head(spec.path).decode(errors="replace").strip().partition("\n")[0].split()
    grade = first[-1].lstrip("-").isdigit() if first else False
    return not (tuple(first) == BEIR_HEADER or (len(first) in _QREL_CELLS and grade))


def _labelled(name: str, source: Any, models: bool) -> Iterator[Voice]:
    store = isinstance(source, Store) or (isinstance(source, SourceSpec) and is_store(source.path))
    given: Any = source
    if isinstance(source, SourceSpec):
        given = source.spec if store or not name else f"{name}={source.spec}"
    ratings = read_ratings(given)
    chosen = [at for at in (ratings.models if models else ratings.people) if ratings.counts[at]]
    if models and not ratings.models and not store:
        # A label file does not always say that its annotator is a model; the option does.
        chosen = [at for at in range(len(ratings.annotators)) if ratings.counts[at]]
    own = [at for at in chosen if ratings.annotators[at].name == name]
    for at in own or chosen:
        annotator = ratings.annotators[at].name
        called = annotator if not name or own else name if len(chosen) == 1 else f"{name}/{annotator}"
        yield Voice(called, _frame(ratings, at))


def _frame(ratings: Ratings, annotator: int) -> pl.DataFrame:
    rows = []
    for rating in ratings.ratings:
        if rating.annotator != annotator or rating.adjudicated or not rating.labels:
            continue
        unit = ratings.units[rating.unit]
        # An answer that was judged alone is the only one of its topic.
        topic = unit.topic_id or unit.text or unit.unit_id
        doc = unit.doc_id or unit.unit_id or ("" if unit.topic_id else unit.text)
        if not topic or not doc:
            raise InputError(
                "a label without topic or document",
                "give labels with topic_id and doc_id, or qrels; or name them: --columns id=COLUMN,document=COLUMN",
                where=rating.place[0] or ", ".join(ratings.sources) or None,
                line=rating.place[1],
            )
        rows.append((topic, doc, _grade(ratings, rating.labels[0], rating.place)))
    frame = pl.DataFrame(rows, schema=QREL_SCHEMA, orient="row")
    return frame.unique(_KEYS, keep="last", maintain_order=True)


def _grade(ratings: Ratings, label: str, place: tuple[str, int | None]) -> int:
    grade = None if ratings.scheme is None else ratings.scheme.grade(label)
    if grade is not None:
        return grade
    try:
        return int(label)
    except ValueError as error:
        raise InputError(
            f"the label '{label}' is not a grade",
            "give labels that are numbers, or of a scheme with grades; for others: truerank judge agreement",
            where=place[0] or ", ".join(ratings.sources) or None,
            line=place[1],
        ) from error


def read_grades(people: Sequence[Voice], judges: Sequence[Voice], rules: AssessorRules) -> Grades:
    """One table of what people and models said.

    Args:
        people: the grades of people.
        judges: the grades of models.
        rules: the scale, and the rules for grades outside it and for several people.

    Raises:
        InputError: a model and people have no pair in common, a grade is outside the scale and the rule refuses that,
            or a name stands for a person and a model.
    """
    if both := {voice.name for voice in people} & {voice.name for voice in judges}:
        raise OptionError("model", f"people are called {min(both)} too", "name the model: NAME=SRC")
    seen = tuple(sorted({int(g) for voice in people for g in voice.grades["relevance"].unique().to_list()}))
    scale = scale_of(rules.scale, seen)
    outside: list[OutsideGrade] = []
    held = {voice.name: _on_scale(voice, scale, rules, outside) for voice in (*people, *judges)}
    pairs = pl.concat([held[voice.name].select(_KEYS) for voice in people]).unique(maintain_order=True)
    said = _codes(pairs, [held[voice.name] for voice in people], scale)
    reference = _decided(said, rules)
    kept, everything = np.flatnonzero(reference >= 0), len(reference)
    if not len(kept):
        raise OptionError("people", "no pair with a grade that holds", "give other judgments, or other `votes`")
    pairs, said, reference = pairs[kept.tolist()], said[kept], reference[kept]
    topics = pairs["topic_id"].unique(maintain_order=True)
    given = _codes(pairs, [held[voice.name] for voice in judges], scale)
    for voice, column in zip(judges, given.T, strict=True):
        if not (column >= 0).any():
            raise InputError(
                f"the model {voice.name} and people have no pair of topic and document in common",
                "give labels of the same topics and documents",
                where=voice.name,
            )
    numbers = {topic: number for number, topic in enumerate(topics.to_list())}
    decided = pairs.with_columns(pl.Series("relevance", np.array(scale)[reference], dtype=pl.Int32))
    return Grades(
        scale=scale,
        topics=tuple(topics.to_list()),
        documents=tuple(pairs["doc_id"].to_list()),
        topic=np.array([numbers[topic] for topic in pairs["topic_id"].to_list()], dtype=np.int64),
        reference=reference,
        people=tuple(voice.name for voice in people),
        said=said,
        judges=tuple(voice.name for voice in judges),
        given=given,
        qrels={"": decided} | {v.name: held[v.name].filter(pl.col("topic_id").is_in(topics.implode())) for v in judges},
        outside=tuple(outside),
        undecided=everything - len(kept),
    )


def _on_scale(voice: Voice, scale: tuple[int, ...], rules: AssessorRules, outside: list[OutsideGrade]) -> pl.DataFrame:
    """The grades of a voice after the rule for those outside the scale, which are noted."""
    strange = voice.grades.filter(~pl.col("relevance").is_in(list(scale)))
    if not len(strange):
        return voice.grades
    counts = strange.group_by("relevance").len().sort("relevance")
    outside += [OutsideGrade(voice.name, int(grade), int(count)) for grade, count in counts.iter_rows()]
    if rules.outside == "fail":
        first = strange.row(0)
        raise InputError(
            f"topic {first[0]}, document {first[1]} has the grade {first[2]}, which is outside the scale "
            f"{', '.join(map(str, scale))}",
            "correct it, or choose another rule with `outside`",
            where=voice.name,
        )
    if rules.outside == "drop":
        return voice.grades.filter(pl.col("relevance").is_in(list(scale)))
    places = np.array(scale)
    grades = voice.grades["relevance"].to_numpy()
    # Of two grades that are equally near, the lower one.
    nearest = places[np.abs(grades[:, None] - places[None, :]).argmin(axis=1)]
    return voice.grades.with_columns(pl.Series("relevance", nearest, dtype=pl.Int32))


def _codes(pairs: pl.DataFrame, voices: Sequence[pl.DataFrame], scale: tuple[int, ...]) -> Codes:
    place = {grade: code for code, grade in enumerate(scale)}
    columns = []
    for frame in voices:
        joined = pairs.join(frame.select(*_KEYS, "relevance"), on=_KEYS, how="left", maintain_order="left")
        codes = joined["relevance"].replace_strict(place, default=-1, return_dtype=pl.Int64).fill_null(-1)
        columns.append(codes.to_numpy())
    return np.stack(columns, axis=1)


def _decided(said: Codes, rules: AssessorRules) -> Codes:
    """The code that holds for each pair; -1 where the rule gives none."""
    if said.shape[1] == 1:
        return said[:, 0].copy()
    order = sorted({int(code) for code in np.unique(said)} - {-1}, reverse=True)
    found = []
    for row in said.tolist():
        answer = decide([(at, code) for at, code in enumerate(row) if code >= 0], rules.votes, order)
        found.append(-1 if answer is None else answer)
    return np.array(found, dtype=np.int64)
