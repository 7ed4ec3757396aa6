"""What people, or models, said about items: annotation exports and plain tables, read in one place for all commands."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from truerank.errors import InputError
from truerank.records import Judgment
from truerank.sources import columns as names_of
from truerank.sources import compressed, formats, grammar
from truerank.sources.golden_cells import identifier_of, number_of
from truerank.sources.golden_roles import named_columns
from truerank.sources.golden_rows import GoldenRows, first_names, of_rows, opened_rows
from truerank.sources.golden_words import MODELS, lower_is_better, measure_in, says
from truerank.sources.grammar import SourceSpec
from truerank.sources.query_files import as_text, number_in, well_formed
from truerank.sources.rows import Row, rows

#: Columns of items, the likeliest first.
TOPIC_NAMES: Final = ("topic_id", "topic", "topic_number", "test_id")
QUERY_ID_NAMES: Final = ("query_id", "ms-marco-qid", "qid", "query-id", "queryid")
QUERY_NAMES: Final = ("query_text", "query", "data", "question", "text")
DATASET_NAMES: Final = ("dataset", "test", "selection", "split", "corpus")
SIMILARITY_NAMES: Final = ("similarity", "cosine_similarity", "cosine")
PROBABILITY_NAMES: Final = ("probability", "sampling_probability", "inclusion_probability")
_DOCUMENTS: Final = (
    "doc_id",
    "docid",
    "document_id",
    "docno",
    "passage_id",
    "corpus-id",
    "doc",
    "document",
    "passage",
    "url",
)
_LABELS: Final = ("labels", "label", "choices", "choice")
#: Columns of labels where there is none of those.
_OTHER_LABELS: Final = ("type", "annotations", "annotation", "relevance", "grade")
_ANNOTATORS: Final = (
    "annotator",
    "annotator_id",
    "ann",
    "worker",
    "worker_id",
    "workerid",
    "username",
    "user",
    "completed_by",
    "created_by",
)
#: Columns of annotators where rows of one item differ by them; elsewhere they may be labels, or names of models.
_RATERS: Final = frozenset(
    "rater judge labeler labeller assessor evaluator reviewer grader expert coder participant".split()
)
_ROLES: Final = ("person", "model", "adjudicator")
_KINDS: Final = ("label", "skip", "undo", "adjudicate", "open")
#: Columns that name an item where nothing else distinguishes it.
_ITEMS: Final = tuple(
    "item hitid hit_id example_id answer_id sample_id case_id response_id trace_id record_id id".split()
)
#: Different labels of one annotator, at most, beside those of another one.
_MOST_LABELS: Final = 12
#: What columns can be named, and what is read from them.
_USUAL: Final = {
    "id": "item_id", "question": "query_text", "document": "doc_id", "annotator": "annotator", "label": "labels",
}  # fmt: skip
_NAMED: Final = tuple(_USUAL)
_SEPARATORS: Final = re.compile(r"\s*[|;,]\s*")
_Record: TypeAlias = Mapping[str, Any]


def read_labels(spec: str | SourceSpec, columns: str = "") -> Iterator[Judgment]:
    """The judgments of a file, whatever was judged.

    doccano JSONL (`label`: a list), Label Studio JSON (one judgment per annotation and prediction; the task's `data`
    describes the item; a reduced export with the choice beside the data opens too), our own exports, and tables in any
    form that `check` reads. An item is described by `item_id`, or by what there is of topic_id, query_id, query_text,
    doc_id, dataset, title, description and variant; `similarity`, `probability`, `stratum`, `annotator` (or `username`,
    `user`, `completed_by`), `role`, `kind`, `about`, `comment`, `reason`, `seconds` and `at` are read where they are
    there. Where no column is called after labels, `relevance` or `grade` is read. In a table several labels are in one
    cell, separated by `|`, `;` or `,`. Without a column of labels, columns that share their few values are those of one
    annotator each. A similarity above 1 (a rounding of the encoder) becomes 1.

    Args:
        spec: the file.
        columns: what columns are, where their names do not say: "id=answer,label=ann+bob"; several of labels are those
            of one annotator each.

    Yields:
        One per judgment, in the order of the file. A record that nobody has labelled comes once, without labels; so
        does a skip.

    Raises:
        InputError: not readable, no label column, a number out of range, or an unknown role or kind.
    """
    source = grammar.parse(spec) if isinstance(spec, str) else spec
    if source.scheme != "file":
        raise InputError("labels are read from files", "give a path", where=source.spec)
    table = _table(compressed.checked_file(source.path))
    named = named_columns(columns, table, _NAMED)
    usual = {**_USUAL, **({"id": "topic_id"} if "document" in named else {})}
    raters = named.get("label", ())
    if "annotator" not in named and len(raters) < 2 and (rater := _by_rows(table, raters)):
        named["annotator"] = (rater,)
    renamed = {usual[role]: names for role, names in named.items() if role != "label" or len(names) == 1}

    def joint(values: _Record, names: Sequence[str]) -> Any:
        return values.get(names[0]) if len(names) == 1 else " ".join(str(values.get(name)) for name in names)

    read = [
        Row(line, values | {name: joint(values, columns) for name, columns in renamed.items()})
        for line, values in zip(table.lines, map(dict, table.rows), strict=True)
    ]
    where = source.location
    found = [None if len(raters) > 1 else _of_row(row, where) for row in read]
    if None in found and len(raters) < 2:
        raters = _raters(read)
    if votes := {str(row.values.get(name)) for row in read for name in raters} & {"tie", *table.names}:
        fault = f"votes between two answers ({first_names(sorted(votes), quoted=True)}), which are not read"
        raise InputError(fault, "give a row for each answer, with a label of its own", where=where, line=read[0].line)
    if len(raters) < 2 and not any(found):
        there = ", ".join(map(repr, list(table.names)[:12]))
        remedy = f"name one, or one for each annotator: --columns label=COLUMN+COLUMN; there are {there}"
        raise InputError("no column or key 'label'", remedy, where=where, line=read[0].line)
    for row, own in zip(read, found, strict=True):
        yield from own or [_of_rater(row, name, where) for name in raters] or [_item(row, where)]


def _table(path: Path) -> GoldenRows:
    """The records of a file; one alone in a line of JSON is a record, whatever lists are within it."""
    if formats.detect(path) != "jsonl":
        return opened_rows(path)
    read = list(rows(path, "jsonl"))
    return of_rows(path.name, path, [row.values for row in read], [row.line for row in read])


def _raters(read: Sequence[Row]) -> tuple[str, ...]:
    """The columns that share their few values: the labels of several annotators beside each other."""
    names = dict.fromkeys(name for row in read for name in row.values)
    values = {name: {_label(row.values.get(name)) for row in read} - {""} for name in names}
    few = {name: own for name, own in values.items() if 1 < len(own) <= min(_MOST_LABELS, len(read) / 2)}
    few = {name: own for name, own in few.items() if not _is_scores(name, own)}

    def shares(name: str) -> bool:
        others = (other for at, other in few.items() if at != name)
        return any(2 * len(few[name] & other) > len(few[name] | other) for other in others)

    return tuple(name for name in few if shares(name))


def _is_scores(name: str, labels: Iterable[str]) -> bool:
    """Whether numbers are scores: their column is called after a measure, and nobody, or some are fractions."""
    numbers = [number_of(one) for one in labels]
    called = (measure_in(name) or lower_is_better(name)) and not says(name, MODELS | _RATERS | {"human", "person"})
    return None not in numbers and bool(called or any(0 < (one or 0) < 1 for one in numbers))


def _by_rows(table: GoldenRows, labels: Sequence[str]) -> str:
    """The column of annotators, of whom several said something of one item in rows of their own; empty for none."""
    names = [name for name in table.names if says(name, _RATERS) and name not in labels]
    if not names or any(map(_person, table.rows)):
        return ""
    items = [_item(Row(line, dict(row)), str(table.where)) for line, row in zip(table.lines, table.rows, strict=True)]
    keys = [(one.topic_id, one.query_id, one.query_text, one.doc_id, one.item_id) for one in items]
    said = (name for name in names if len({*zip(keys, map(str, table.cells(name)), strict=True)}) > len(set(keys)))
    return next(said, "") if any(map(any, keys)) else ""


def _of_rater(row: Row, column: str, where: str) -> Judgment:
    role = "model" if says(column, MODELS) else ""
    labels = _texts(identifier_of(value) if isinstance(value := row.values.get(column), float) else value)
    return _item(row, where)._replace(labels=labels, annotator=column, role=role)


def _of_row(row: Row, where: str) -> list[Judgment] | None:
    """The judgments of a record, one without labels if nobody said anything; None where it has no key for labels."""
    plain = _item(row, where)
    values = row.values
    annotations = _objects(values.get("annotations", values.get("completions")))
    predictions = _objects(values.get("predictions"))
    if annotations is not None or predictions is not None:
        of_people = [_said(plain, part) for part in annotations or ()]
        of_models = [_said(plain, part, model=True) for part in predictions or ()]
        return [one for one in (*of_people, *of_models) if one is not None] or [plain._replace(kind="open")]
    if plain.kind in ("skip", "undo"):
        return [plain]
    names = list(values)
    keys = [key for name in _LABELS if (key := names_of.named(names, (name,))) is not None]
    keys = keys or [key for key in (names_of.named(names, _OTHER_LABELS),) if key is not None]
    labels: tuple[str, ...] = next((found for key in keys if (found := _texts(values[key]))), ())
    if plain.kind == "open":
        # doccano keeps the metadata of an item that was exported without a label, and adds the label.
        return [plain._replace(labels=labels, kind="label" if labels else "open")]
    return [plain._replace(labels=labels)] if keys else None


def _item(row: Row, where: str) -> Judgment:
    """What a record says about its item and its annotator."""
    values = row.values
    numbers = {
        name: _number(row, names, where)
        for name, names in (
            ("similarity", SIMILARITY_NAMES), ("score", ("score",)), ("probability", PROBABILITY_NAMES),
            ("seconds", ("seconds",)), ("number", ("number",)), ("undoes", ("undoes",)),
        )
    }  # fmt: skip
    probability, similarity = numbers["probability"], numbers["similarity"]
    if probability is not None and not 0 < probability <= 1:
        fault = f"the probability {probability:g} is not above 0 and at most 1"
        raise InputError(fault, "correct it", where=where, line=row.line)
    told = any(_value(values, names) for names in (QUERY_ID_NAMES, QUERY_NAMES, _DOCUMENTS))
    number, undoes = (None if n is None else int(n) for n in (numbers["number"], numbers["undoes"]))
    return Judgment(
        topic_id=_value(values, TOPIC_NAMES).strip(),
        query_id=_value(values, QUERY_ID_NAMES).strip(),
        query_text=_value(values, QUERY_NAMES),
        labels=(),
        title=_value(values, ("title",)),
        description=_value(values, ("description",)),
        variant=_value(values, ("variant",)),
        similarity=numbers["score"] if similarity is None else min(1.0, similarity),
        annotator=_person(values),
        probability=probability,
        role=_one_of(row, "role", ("role", "annotator_role"), _ROLES, where),
        item_id=_value(values, ("item_id", *(() if told else _ITEMS))).strip(),
        doc_id=_value(values, _DOCUMENTS).strip(),
        dataset=_value(values, DATASET_NAMES).strip(),
        stratum=_value(values, ("stratum",)).strip(),
        kind=_one_of(row, "kind of event", ("kind", "event"), _KINDS, where),
        about=_value(values, ("about",)),
        comment=_value(values, ("comment",)),
        reason=_value(values, ("reason",)),
        seconds=numbers["seconds"] or 0.0,
        at=_time(values.get("at")),
        number=number,
        undoes=undoes,
        where=where,
        line=row.line,
        values=values,
    )


def _said(plain: Judgment, part: _Record, *, model: bool = False) -> Judgment | None:
    """A Label Studio annotation, or what a model said in a task; None where nothing was chosen."""
    labels, texts = _results(part)
    cancelled = not model and bool(part.get("was_cancelled"))
    if not labels and not (("reason" in texts) if model else cancelled):
        return None
    written = part.get("meta")
    meta = written if isinstance(written, dict) else {}  # what our own exports note beside a statement
    role = "model" if model else (as_text(part.get("role")) or as_text(meta.get("role")) or plain.role).strip().lower()
    annotator = (as_text(part.get("model_version")) or "model") if model else (_person(part) or plain.annotator)
    seconds = plain.seconds if model else part.get("lead_time")
    # What somebody declared the truth settles the item; their other annotations are like everybody's.
    settled = not model and part.get("ground_truth") is True
    return plain._replace(
        labels=() if cancelled else labels,
        kind="skip" if cancelled or not labels else "adjudicate" if settled else "label",
        annotator=annotator,
        role=role if role in _ROLES else "",
        about=as_text(meta.get("about")) or "",
        comment=texts.get("comment", ""),
        reason=texts.get("reason", "") or ("cancelled" if cancelled else ""),
        seconds=float(seconds) if isinstance(seconds, (int, float)) and seconds >= 0 else 0.0,
        at=_time(part.get("created_at")),
    )


def _objects(value: Any) -> list[_Record] | None:
    return value if isinstance(value, list) and all(isinstance(part, dict) for part in value) else None


def _results(annotation: _Record) -> tuple[tuple[str, ...], dict[str, str]]:
    """The labels and the free texts of a Label Studio annotation or prediction."""
    labels: list[str] = []
    texts: dict[str, str] = {}
    results = annotation.get("result")
    for result in results if isinstance(results, list) else ():
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            continue
        labels += _texts(value)
        written = value.get("text")
        if isinstance(written, list) and "choices" not in value:
            texts[str(result.get("from_name"))] = well_formed("\n".join(as_text(part) or "" for part in written))
    return tuple(dict.fromkeys(labels)), texts


def _person(values: _Record) -> str:
    """Who judged: the first of the columns that is not empty."""
    for name in _ANNOTATORS:
        key = names_of.named(list(values), (name,))
        value = None if key is None else values[key]
        if isinstance(value, dict):
            value = value.get("email") or value.get("username") or value.get("id")
        if text := well_formed(as_text(value) or "").strip():
            return text
    return ""


def _texts(value: Any) -> tuple[str, ...]:
    """The labels in a value: a text, true or false, a list (of lists), or Label Studio's `{"choices": […]}`."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("choices", "labels", "taxonomy") if key in value), None)
    if isinstance(value, list):
        parts = [text for part in value for text in (_texts(part) if isinstance(part, list) else [_label(part)])]
    else:
        parts = _SEPARATORS.split(_label(value))
    return tuple(dict.fromkeys(well_formed(part.strip()) for part in parts if part.strip()))


def _label(value: Any) -> str:
    """A label as text; the booleans of JSON and Parquet are labels too."""
    return str(value).lower() if isinstance(value, bool) else as_text(value) or ""


def _value(values: _Record, names: tuple[str, ...]) -> str:
    """The text or number in the first of the columns that is there and not empty."""
    there = {name.strip().lower(): name for name in reversed(list(values))}
    for name in names:
        text = as_text(values[there[name]]) if name in there else None
        if text and text.strip():
            return well_formed(text)
    return ""


def _one_of(row: Row, what: str, names: tuple[str, ...], known: tuple[str, ...], where: str) -> str:
    text = _value(row.values, names).strip().lower()
    if text and text not in known:
        raise InputError(f"'{text[:40]}' is not a {what}", f"one of {', '.join(known)}", where=where, line=row.line)
    return text


def _number(row: Row, names: tuple[str, ...], where: str) -> float | None:
    return number_in(_value(row.values, names), names[0], where, row.line)


def _time(value: Any) -> str:
    """A time as the store writes it; empty for anything that is not an ISO 8601 time."""
    try:
        time = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(as_text(value) or "")
        time = (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return ""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
