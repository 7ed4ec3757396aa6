"""Which column of a table holds the id and which the text, or the query, its positives and its negatives."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError, OptionError
from truerank.loading import whole_number

#: Names of the text, the likeliest first: TREC and BEIR habits, those of sentence-transformers, doccano's.
TEXT_NAMES: Final = (
    "query", "query_text", "text", "question", "anchor", "sentence1", "sentence_a", "sentence", "premise", "input",
    "utterance", "prompt", "data", "title", "topic_title",
)  # fmt: skip
#: Names of the id, the likeliest first.
ID_NAMES: Final = (
    "_id", "query_id", "query-id", "qid", "queryid", "ms-marco-qid", "question_id", "topic_id", "topic", "number", "id",
)  # fmt: skip
#: How many lines the layout of a table is told from.
SAMPLE_LINES: Final = 1000
#: Words of an id that holds blanks, at most.
_ID_WORDS: Final = 4
#: A line of judgments or of a run, with blanks between its columns.
_RANKING: Final = re.compile(r"\S+ +Q?0 +\S+ +-?\d+( +\S+ +\S+)?\s*$")
_COLON: Final = re.compile(r"[A-Za-z]{0,4}\d{1,4}-?\d{0,4}:\S")


class Layout(NamedTuple):
    """Where the fields of a line stand: positions from 0; `identifier` is None where the line number is the id.

    Lines are split at `separator` at most `splits` times; `header` says that the first line holds names.
    """

    identifier: int | None
    text: int
    splits: int
    header: bool = False
    separator: str = "\t"


def named(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first of the wanted names that is there, whatever its case; as it is written there."""
    known = {name.strip().lower(): name for name in reversed(names)}
    return next((known[name] for name in wanted if name in known), None)


def chosen(names: Sequence[str], column: str) -> str | None:
    """The name that a user means: `column` itself where it is there, or the one with this number from 1."""
    if column in names:
        return column
    number = whole_number(column) or 0
    return names[number - 1] if 0 < number <= len(names) else None


def fields(names: Sequence[str], wanted: Mapping[str, Sequence[str]], column: str | None = None) -> dict[str, str]:
    """The column of each field that is there, by what each may be called; no column is that of two fields.

    Args:
        column: which column is the first field, see `chosen`.
    """
    found: dict[str, str] = {}
    for field, likely in wanted.items():
        left = [name for name in names if name not in found.values()]
        key = chosen(names, column) if column is not None and field == next(iter(wanted)) else named(left, likely)
        if key is not None:
            found[field] = key
    return found


def no_column(names: Sequence[str], column: str | None, what: str, where: str | Path, line: int) -> InputError:
    """The fault of records without the column that is asked for, or without any that holds `what`."""
    there = ", ".join(map(repr, names[:12])) or "none"
    fault = f"no column or key '{column}'" if column else f"no column or key that holds {what}"
    return InputError(fault, f"there are {there}; name one with #COLUMN", where=where, line=line)


def csv_header(line: str) -> str | None:
    """The delimiter of a CSV file (comma, semicolon or tab) if its first line names a text column, else None."""
    for delimiter in (",", ";", "\t"):
        try:
            names = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(names) > 1 and named(names, TEXT_NAMES) is not None:
            return delimiter
    return None


def layout_of(lines: Sequence[str], column: str | None, path: Path, *, single: bool = False) -> Layout:
    """The layout of a text file of lines, told from its first ones.

    The number of columns is that of most lines. A first line that names an id and a text is a header. Otherwise, with
    one column, that is the text. With more, the first column is the id unless at least a tenth of its values hold
    blanks between words, and the text is the first column whose values do (`qid TAB query TAB did TAB url`,
    `query TAB passage TAB passage`, `qid TAB pid TAB query TAB passage`); where no column does, it is the second. Ids
    may hold blanks, too, if they are all different, short, and hold a digit (`topic 12 TAB query`).
    Files whose every line begins with a topic number and a colon (`wt09-1:obama family tree`) are split there.
    """
    sample = [line for line in lines[:SAMPLE_LINES] if line.strip()]
    rows = [line.split("\t") for line in sample]
    if single or not rows:
        return Layout(None, 0, 0)
    width = _usual_width(rows)
    names = [name.strip() for name in rows[0]]
    header = width > 1 and named(names, TEXT_NAMES) is not None and named(names, ID_NAMES) is not None
    if column is not None:
        return _chosen(column, rows, header, path)
    if header:
        text = names.index(named(names, TEXT_NAMES) or "")
        identifier = names.index(named(names, ID_NAMES) or "")
        return Layout(identifier, text, _splits(max(text, identifier), width), header=True)
    if width == 1:
        if all(map(_RANKING.match, sample)):
            raise _no_texts(path)
        colon = len(sample) > 1 and all(_COLON.match(line) for line in sample)
        return Layout(0, 1, 1, separator=":") if colon else Layout(None, 0, 0)
    full = [row for row in rows if len(row) >= width]
    worded = [position for position in range(width) if _has_words(full, position)]
    if width > 2 and not worded:
        _refuse_numbers(full, path)
    text = worded[0] if worded else 1
    return Layout(None if text == 0 else 0, text, _splits(text, width))


def _chosen(column: str, rows: list[list[str]], header: bool, path: Path) -> Layout:
    names, width = [name.strip() for name in rows[0]], _usual_width(rows)
    if column in names and not column.isdigit():
        text, header = names.index(column), True
    elif 1 <= (number := whole_number(column) or 0) <= max(map(len, rows)):
        text = number - 1
    else:
        there = f"it has the columns {', '.join(names)}" if header else f"it has {width} columns and no header"
        raise InputError(f"no column '{column}'", f"{there}; name one, or give its number from 1", where=path, line=1)
    width = max(width, text + 1)
    known = named(names, ID_NAMES) if header else None
    full = [row for row in rows if len(row) >= width]
    identifier = names.index(known) if known else 0 if text and not _has_words(full, 0) else None
    if identifier == text:
        identifier = None
    return Layout(identifier, text, _splits(max(text, identifier or 0), width), header=header)


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    counts = Counter(map(len, rows))
    return min(counts, key=lambda width: (-counts[width], width))


def _splits(last: int, width: int) -> int:
    """The last of the usual columns keeps further tabs; a text before it ends at the next one."""
    return last if last == width - 1 else last + 1


def _has_words(rows: Sequence[Sequence[str]], position: int) -> bool:
    blanks = sum(" " in row[position].strip() for row in rows)
    return blanks * 10 >= max(1, len(rows)) and not (position == 0 and _is_id_with_blanks(rows))


def _is_id_with_blanks(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first column holds ids such as "topic 12": all different, short, each with a digit."""
    values = [row[0].strip() for row in rows]
    return 1 < len(set(values)) == len(values) and all(
        value.count(" ") < _ID_WORDS and any(character.isdigit() for character in value) for value in values
    )


def _refuse_numbers(rows: Sequence[Sequence[str]], path: Path) -> None:
    if all(row[1].strip() in ("0", "Q0") or row[1].strip().isdigit() for row in rows):
        raise _no_texts(path)


def _no_texts(path: Path) -> InputError:
    remedy = "give the file of the queries, or name the column with #NUMBER"
    return InputError(
        "ids and numbers only, no query text (relevance judgments, or a run?)", remedy, where=path, line=1
    )


#: What a text of an example is: the query, a document that answers it, one that does not, a document without a query.
ROLES: Final = ("query", "positive", "negative", "document")
#: Names of columns by role, the likeliest query first: sentence-transformers, FlagEmbedding, Tevatron, DPR, MS MARCO,
#: instruction data, conversations. Numbers at the end of a name do not matter (`negative_3`).
_QUERIES: Final = (
    "anchor", "query", "query_text", "question", "q", "sentence1", "sentence_a", "premise", "instruction", "prompt",
    "input", "utterance", "title", "sentence",
)  # fmt: skip
_POSITIVES: Final = frozenset((
    "positive", "positives", "pos", "positive_passages", "positive_ctxs", "positive_passage", "positive_text",
    "response", "answer", "answers", "completion", "output", "chosen", "passage", "passages", "document", "documents",
    "doc", "context", "sentence2", "sentence_b", "hypothesis", "entailment", "body", "text", "abstract", "summary",
    "duplicate",
))  # fmt: skip
_NEGATIVES: Final = frozenset((
    "negative", "negatives", "neg", "negative_passages", "negative_ctxs", "hard_negative", "hard_negatives",
    "hard_negative_ctxs", "negative_passage", "negative_text", "rejected", "contradiction",
))  # fmt: skip
_DOCUMENTS: Final = frozenset(("text", "contents", "content", "passage", "document", "body", "title"))
#: Records that are one list of equals (`{"set": […]}`), and conversations.
_SETS: Final = ("set",)
_TALKS: Final = ("messages", "conversations", "conversation")
_SCORES: Final = ("score", "similarity_score", "label", "labels", "similarity")
_NUMBER: Final = re.compile(r"[_-]?\d+$")


@dataclass(frozen=True)
class Roles:
    """Which columns hold what.

    Attributes:
        columns: column and role, in the order of the source.
        prefix: the column whose text stands before the query (FlagEmbedding's `prompt`); it is taken off.
        score: the column that says how alike the two texts are; one below `middle` makes the second text a negative.
        middle: half of the largest score among the first records.
        identifier: the column of the example's id.
        given: whether the user said it.
    """

    columns: tuple[tuple[str, str], ...]
    prefix: str | None = None
    score: str | None = None
    middle: float = 0.5
    identifier: str | None = None
    given: bool = False

    def __str__(self) -> str:
        return ", ".join(f"{role}={column}" for column, role in self.columns)

    def of(self, role: str) -> tuple[str, ...]:
        """The columns of a role."""
        return tuple(column for column, one in self.columns if one == role)

    @classmethod
    def parse(cls, text: str) -> Roles:
        """Takes `query=anchor,positive=pos,positive=answer` apart."""
        found: list[tuple[str, str]] = []
        for part in text.split(","):
            role, _, column = (piece.strip() for piece in part.partition("="))
            if role not in ROLES or not column:
                raise OptionError("roles", f"'{part.strip()}' is not ROLE=COLUMN", f"roles are {', '.join(ROLES)}")
            if role != (other := dict(found).get(column, role)):
                raise OptionError("roles", f"column '{column}' is {other} and {role}", "give each column one role")
            found.append((column, role))
        return cls(tuple(found), given=True)


def roles_of(records: Sequence[Mapping[str, Any]]) -> Roles:
    """Tells the roles from the names of the columns and from what is in them.

    A known name decides. Records without names (lists, numbered from 1; lines of a table without a header) are a pair
    or a triple: query, positive, negative. Where no column is known as a query, texts are documents.
    """
    names = list(dict.fromkeys(name for values in records for name in values))
    worded = {name for name in names if _holds_words(records, name)}
    lower = {name.strip().lower(): name for name in reversed(names)}
    for key, whole in (*((one, "positive") for one in _SETS), *((one, "query") for one in _TALKS)):
        if key in lower and _holds(records, lower[key], (list, tuple)):
            return Roles(((lower[key], whole),), identifier=_identifier(names, lower[key]))
    if names and all(name.isdigit() for name in names):
        ordered = [name for name in names if name in worded and _holds_blanks(records, name)]
        return Roles(tuple(zip(ordered, ("query", "positive", *["negative"] * len(ordered)), strict=False)))
    query = next((lower[name] for name in _QUERIES if name in lower and lower[name] in worded), None)
    found = tuple(
        (name, role) for name in names if name in worded and (role := _role(name, name == query, query is not None))
    )
    if query is not None and all(role == "query" for _, role in found) and query.lower() in _DOCUMENTS:
        found = tuple((name, "document") for name, _ in found)
    numbers = [name for name in names if name not in worded]
    # Labels of inference data (entailment 0, contradiction 2) do not grow with likeness.
    alike = len(found) == 2 and "premise" not in lower
    score = named(numbers, _SCORES) if alike else None
    scores = [number for values in records if (number := number_of(values.get(score or ""))) is not None]
    prefix = lower.get("prompt") if query != lower.get("prompt") else None
    middle = max(scores, default=1.0) / 2
    identifier = _identifier(names, *(name for name, _ in found))
    return Roles(found, prefix if query else None, score if middle > 0 else None, middle, identifier)


def _role(name: str, is_query: bool, has_query: bool) -> str | None:
    if is_query:
        return "query"
    plain = _NUMBER.sub("", name.strip().lower()) if name.strip().lower() not in _POSITIVES else name.strip().lower()
    if plain in _NEGATIVES:
        return "negative"
    if has_query:
        return "positive" if plain in _POSITIVES else None
    return "document" if plain in _DOCUMENTS or plain in _POSITIVES else None


def _identifier(names: Sequence[str], *texts: str) -> str | None:
    return named([name for name in names if name not in texts], ID_NAMES)


def texts_of(value: Any) -> Iterator[str]:
    """The texts in a value: itself, those of a list, and passages with a title (`{"title": …, "text": …}`)."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        body = next((value[key] for key in ("text", "content", "contents", "value", "body") if value.get(key)), None)
        if isinstance(body, str):
            title = value.get("title")
            yield f"{title} {body}" if isinstance(title, str) and title.strip() not in ("", "-") else body
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from texts_of(one)


def number_of(value: Any) -> float | None:
    """A score as a number; None where it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if isnan(number) else number


def _holds(records: Sequence[Mapping[str, Any]], name: str, kinds: tuple[type, ...]) -> bool:
    return any(isinstance(values.get(name), kinds) for values in records)


def _holds_blanks(records: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether a tenth of the values have several words: columns without names that do not are ids."""
    texts = [text for values in records for text in texts_of(values.get(name))]
    return sum(" " in text.strip() for text in texts) * 10 >= max(1, len(texts))


def _holds_words(records: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether a column holds texts: a letter in most of its values."""
    texts = [text for values in records for text in texts_of(values.get(name))]
    return bool(texts) and sum(any(map(str.isalpha, text)) for text in texts) * 2 > len(texts)
