"""What the columns of training data are: the query, its positives, its negatives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

from truerank.errors import OptionError
from truerank.sources import columns

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
    """Tells the roles from the names of the columns and from what stands in them.

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
    score = columns.named(numbers, _SCORES) if alike else None
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
    return columns.named([name for name in names if name not in texts], columns.ID_NAMES)


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
