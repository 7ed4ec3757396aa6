"""What people, or models, said about items: annotation exports and plain tables, read in one place for all commands."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from truerank.errors import InputError
from truerank.records import Judgment
from truerank.sources import columns, compressed, formats, grammar
from truerank.sources.golden_words import words_of
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
_DOCUMENTS: Final = ("doc_id", "docid", "document_id", "docno", "passage_id", "corpus-id", "doc", "url")
_LABELS: Final = ("labels", "label", "choices", "choice")
#: Columns of labels where there is none of those.
_OTHER_LABELS: Final = ("type", "annotations", "relevance", "grade")
_ANNOTATORS: Final = ("annotator", "annotator_id", "username", "user", "completed_by", "created_by")
_ROLES: Final = ("person", "model", "adjudicator")
_KINDS: Final = ("label", "skip", "undo", "adjudicate", "open")
#: Columns that name an item where nothing else distinguishes it.
_ITEMS: Final = (
    "item",
    "example_id",
    "answer_id",
    "sample_id",
    "case_id",
    "response_id",
    "trace_id",
    "record_id",
    "id",
)
#: Words in the name of a column with a model's labels.
_MODELS: Final = frozenset("judge model llm gpt claude gemini llama mistral qwen ai auto automatic machine".split())
#: Different labels of one annotator, at most, beside those of another one.
_MOST_LABELS: Final = 12
_SEPARATORS: Final = re.compile(r"\s*[|;,]\s*")
_Record: TypeAlias = Mapping[str, Any]


def read_labels(spec: str | SourceSpec, *, strict: bool = False) -> Iterator[Judgment]:
    """The judgments of a file, whatever was judged.

    doccano JSONL (`label`: a list), Label Studio JSON (one judgment per annotation and prediction; the task's `data`
    describes the item; a reduced export with the choice beside the data opens too), our own exports, and CSV, TSV with
    a header, JSONL or Parquet. An item is described by `item_id`, or by what there is of topic_id, query_id,
    query_text, doc_id, dataset, title, description and variant; `similarity`, `probability`, `stratum`, `annotator`
    (or `username`, `user`, `completed_by`), `role`, `kind`, `about`, `comment`, `reason`, `seconds` and `at` are read
    where they are there. Where no column is called after labels, `relevance` or `grade` is read. In a table several
    labels are in one cell, separated by `|`, `;` or `,`. Without a column of labels, columns that share their few
    values are those of one annotator each. A similarity above 1 (a rounding of the encoder) becomes 1.

    Args:
        spec: the file.
        strict: raise for bytes that are not UTF-8.

    Yields:
        One per judgment, in the order of the file. A record that nobody has labelled comes once, without labels; so
        does a skip.

    Raises:
        InputError: not readable, no label column, a number out of range, or an unknown role or kind.
    """
    source = grammar.parse(spec) if isinstance(spec, str) else spec
    if source.scheme != "file":
        raise InputError("labels are read from files", "give a path", where=source.spec)
    form = formats.detect(compressed.checked_file(source.path), source.format)
    if form not in ("csv", "tsv", "jsonl", "json", "parquet"):
        raise InputError(
            f"labels are not read from files of the format {form}",
            "give a doccano or Label Studio export, or a table with topic_id, query_id, query_text, label",
            where=source.location,
        )
    lacking: Row | None = None
    labelled = False
    raters: tuple[str, ...] | None = None
    for row in rows(source.path, form, strict=strict):
        found = _of_row(row, source.location)
        if found is None and raters is None:
            raters = _raters(list(rows(source.path, form, strict=strict)))
        if found is None and raters:
            found = [_of_rater(row, name, source.location) for name in raters]
        labelled = labelled or found is not None
        lacking = row if lacking is None and found is None else lacking
        yield from found if found is not None else [_item(row, source.location)]
    if lacking is not None and not labelled:
        there = ", ".join(map(repr, list(lacking.values)[:12])) or "none"
        raise InputError("no column or key 'label'", f"there are {there}", where=source.location, line=lacking.line)


def _raters(read: list[Row]) -> tuple[str, ...]:
    """The columns that share their few values: the labels of several annotators beside each other."""
    names = dict.fromkeys(name for row in read for name in row.values)
    values = {name: {_label(row.values.get(name)) for row in read} - {""} for name in names}
    few = {name: own for name, own in values.items() if 1 < len(own) <= min(_MOST_LABELS, len(read) / 2)}

    def shares(name: str) -> bool:
        others = (other for at, other in few.items() if at != name)
        return any(2 * len(few[name] & other) > len(few[name] | other) for other in others)

    return tuple(name for name in few if shares(name))


def _of_rater(row: Row, column: str, where: str) -> Judgment:
    role = "model" if set(words_of(column)) & _MODELS else ""
    return _item(row, where)._replace(labels=_texts(row.values.get(column)), annotator=column, role=role)


def _of_row(row: Row, where: str) -> list[Judgment] | None:
    """The judgments of a record, one without labels if nobody said anything; None where it has no key for labels."""
    plain = _item(row, where)
    values = row.values
    annotations = _objects(values.get("annotations", values.get("completions")))
    predictions = _objects(values.get("predictions"))
    if annotations is not None or predictions is not None:
        of_people = [_annotation(plain, part) for part in annotations or ()]
        of_models = [_prediction(plain, part) for part in predictions or ()]
        return [one for one in (*of_people, *of_models) if one is not None] or [plain._replace(kind="open")]
    if plain.kind in ("skip", "undo"):
        return [plain]
    names = list(values)
    keys = [key for name in _LABELS if (key := columns.named(names, (name,))) is not None]
    keys = keys or [key for key in (columns.named(names, _OTHER_LABELS),) if key is not None]
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
        raise InputError(
            f"the probability {probability:g} is not above 0 and at most 1", "correct it", where=where, line=row.line
        )
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


def _annotation(plain: Judgment, annotation: _Record) -> Judgment | None:
    """A Label Studio annotation; None where nothing was chosen."""
    labels, texts = _results(annotation)
    cancelled = bool(annotation.get("was_cancelled"))
    if not labels and not cancelled:
        return None
    meta = _meta(annotation)
    role = (as_text(annotation.get("role")) or as_text(meta.get("role")) or plain.role).strip().lower()
    seconds = annotation.get("lead_time")
    return plain._replace(
        labels=() if cancelled else labels,
        # What somebody declared the truth settles the item; their other annotations are like everybody's.
        kind="skip" if cancelled else "adjudicate" if annotation.get("ground_truth") is True else "label",
        annotator=_person(annotation) or plain.annotator,
        role=role if role in _ROLES else "",
        about=as_text(meta.get("about")) or "",
        comment=texts.get("comment", ""),
        reason=texts.get("reason", "") or ("cancelled" if cancelled else ""),
        seconds=float(seconds) if isinstance(seconds, (int, float)) and seconds >= 0 else 0.0,
        at=_time(annotation.get("created_at")),
    )


def _prediction(plain: Judgment, prediction: _Record) -> Judgment | None:
    """What a model said in a Label Studio task; None where it said nothing."""
    labels, texts = _results(prediction)
    if not labels and "reason" not in texts:
        return None
    return plain._replace(
        labels=labels,
        kind="label" if labels else "skip",
        annotator=as_text(prediction.get("model_version")) or "model",
        role="model",
        about=as_text(_meta(prediction).get("about")) or "",
        comment=texts.get("comment", ""),
        reason=texts.get("reason", ""),
        at=_time(prediction.get("created_at")),
    )


def _objects(value: Any) -> list[_Record] | None:
    return value if isinstance(value, list) and all(isinstance(part, dict) for part in value) else None


def _meta(statement: _Record) -> _Record:
    """What our own exports note beside a statement."""
    meta = statement.get("meta")
    return meta if isinstance(meta, dict) else {}


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
        key = columns.named(list(values), (name,))
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
