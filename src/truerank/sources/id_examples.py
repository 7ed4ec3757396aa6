"""Training examples that hold ids: MS MARCO's triples, judgments, records of ids; and where their texts are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from truerank.errors import InputError
from truerank.sources import columns
from truerank.sources.documents import DocumentSource, open_documents
from truerank.sources.lines import line_blocks
from truerank.sources.qrels import BEIR_HEADER, read_qrels
from truerank.sources.queries import QuerySource, open_queries
from truerank.sources.roles import Roles
from truerank.sources.rows import Row
from truerank.sources.texts_by_id import texts_by_id

Key = TypeVar("Key")
#: An example by ids: what names it, roles with ids or texts, and whether its line was repaired.
Ids: TypeAlias = tuple[Key, list[tuple[str, str]], bool]
_QUERIES: Final = frozenset(("q", "query", "topic", "anchor", "question"))
_NEGATIVES: Final = frozenset(("neg", "negative", "hardnegative", "nonrelevant"))
_POSITIVES: Final = frozenset(("", "p", "pos", "positive", "doc", "document", "passage", "corpus", "relevant"))
#: What a name of a column of ids may end with: "pos_pids", "negative_passage_id_3".
_ENDING: Final = re.compile(r"(?:p|doc|document|passage|text)?ids?$")
_SCORES: Final = ("score", "relevance", "label", "rel", "grade")
#: Grades of judgments: a last column with others holds ids.
_GRADES: Final = frozenset(map(str, range(-2, 5)))
_AT_ONCE: Final = 1 << 12
#: Absent ids that are named.
_NAMED: Final = 5


@dataclass(frozen=True)
class ExampleTexts:
    """Where the texts of ids are.

    Attributes:
        queries: the queries; None where training data holds their texts.
        docs: the documents; None where training data holds their texts.
    """

    queries: str | None = None
    docs: str | None = None

    def __bool__(self) -> bool:
        return self.queries is not None or self.docs is not None

    def fingerprints(self) -> dict[str, str]:
        """The identity of both sources, by the option that names each."""
        opened: dict[str, QuerySource | DocumentSource] = {}
        if self.queries is not None:
            opened["train_queries"] = open_queries(self.queries)
        if self.docs is not None:
            opened["train_docs"] = open_documents(self.docs)
        return {name: source.fingerprint for name, source in opened.items()}


@dataclass(frozen=True)
class AbsentIds:
    """Ids that have no text, by role.

    Attributes:
        counts: how often, by role.
        first: the first few of them.
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: list[str] = field(default_factory=list)

    def note(self, role: str, name: str) -> None:
        """Adds one."""
        self.counts[role] += 1
        if len(self.first) < _NAMED and name not in self.first:
            self.first.append(name)

    def json(self) -> dict[str, Any]:
        """As plain values."""
        return {"ids": self.counts.total(), "roles": dict(sorted(self.counts.items())), "first": list(self.first)}


class WithTexts:
    """Puts texts in the place of ids, some thousand examples at a time.

    Args:
        texts: where they are.
        strict: raise for bytes that are not UTF-8.
    """

    def __init__(self, texts: ExampleTexts, *, strict: bool = False) -> None:
        known = texts.fingerprints()
        self._by_role = {}
        if texts.queries is not None:
            self._by_role["query"] = texts_by_id("queries", texts.queries, known["train_queries"], strict)
        if texts.docs is not None:
            documents = texts_by_id("docs", texts.docs, known["train_docs"], strict)
            self._by_role |= dict.fromkeys(("positive", "negative", "document"), documents)

    def __call__(self, examples: Iterator[Ids[Key]], absent: AbsentIds) -> Iterator[Ids[Key]]:
        """The examples with texts; what has none is left out and noted in `absent`."""
        while some := list(islice(examples, _AT_ONCE)):
            found = {}
            for source in set(self._by_role.values()):
                roles = {role for role, one in self._by_role.items() if one is source}
                found[source] = source.of({name for _, ids, _ in some for role, name in ids if role in roles})
            for example_id, ids, repaired in some:
                texts = []
                for role, name in ids:
                    text = found[self._by_role[role]].get(name) if role in self._by_role else name
                    if text is None:
                        absent.note(role, name)
                    else:
                        texts.append((role, text))
                yield example_id, texts, repaired


def id_roles(sample: Sequence[Mapping[str, Any]]) -> Roles:
    """Tells the roles of columns of ids: by their names, or without names by their order."""
    names = list(dict.fromkeys(name for values in sample for name in values))
    if names and all(name.isdigit() for name in names):
        return Roles(tuple(zip(names, ("query", "positive", *["negative"] * len(names)), strict=False)))
    found = tuple((name, role) for name in names if (role := _role(name)))
    score = columns.named(names, _SCORES)
    return Roles(found, None, score if len(found) == 2 else None, 0.5)


def _role(name: str) -> str | None:
    plain = re.sub(r"[\W_]|\d+$", "", name.strip().lower())
    bases = {plain, _ENDING.sub("", plain)}
    if bases & _NEGATIVES:
        return "negative"
    if bases & _QUERIES:
        return "query"
    return "positive" if plain not in {"", "id"} and bases & _POSITIVES else None


def holds_ids(sample: Sequence[Mapping[str, Any]], roles: Roles, texts: ExampleTexts, *, blanks: bool) -> bool:
    """Whether the columns whose texts are elsewhere hold ids: most of their values have no blank."""
    elsewhere = {role for role in ("query", "positive", "negative", "document")
                 if (texts.queries if role == "query" else texts.docs) is not None}  # fmt: skip
    named = [name for name, role in roles.columns if role in elsewhere]
    values = [one for record in sample for name in named for one in ids_of(record.get(name))]
    even = not blanks or {len(record) for record in sample} in [{width} for width in range(2, 99)]
    return even and bool(values) and 2 * sum(" " in one for one in values) < len(values)


def roles_of_ids(sample: Sequence[Mapping[str, Any]], roles: Roles) -> set[str]:
    """The roles of columns without any letter, which are no texts."""
    found: dict[str, bool] = {}
    for name, role in roles.columns:
        values = [one for record in sample for one in ids_of(record.get(name))]
        found[role] = found.get(role, False) or any(any(map(str.isalpha, one)) for one in values) or not values
    return {role for role, lettered in found.items() if not lettered}


def judged_lines(path: Path, *, strict: bool = False) -> bool:
    """Whether lines of ids are judgments: with BEIR's header, or with a grade as the last of three or four columns."""
    rows = [row.values for row in islice(id_lines(path, strict=strict, names=False), columns.SAMPLE_LINES)]
    if rows and tuple(rows[0].values()) == BEIR_HEADER:
        return True
    cells = [tuple(values.values()) for values in rows]
    last, widths = {row[-1] for row in cells}, set(map(len, cells))
    if any(" " in cell for row in cells for cell in row[:-1]):
        return False
    return widths in ({3}, {4}) and last <= _GRADES and (widths == {4} or len(rows) > len(last))


def id_lines(path: Path, *, strict: bool = False, names: bool = True) -> Iterator[Row]:
    """The lines of a file of ids, between tabs or blanks, by the names of its header or numbered from 1.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    header: list[str] | None = None if names else []
    for block in line_blocks(path, strict=strict):
        for offset, line in enumerate(block.lines):
            if not line.strip():
                continue
            cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()
            if header is None:
                header = cells if len(cells) > 1 and all(map(_role, cells[:2])) else []
                if header:
                    continue
            keys = header or [str(number) for number in range(1, len(cells) + 1)]
            yield Row(block.first + offset, dict(zip(keys, cells, strict=False)), offset in block.repaired)


def of_judgments(path: str) -> Iterator[Ids[str]]:
    """Judgments as examples: neighbours with one query, relevant documents as positives, the others as negatives."""
    for topic, group in groupby(read_qrels(path), key=lambda qrel: qrel.topic_id):
        judged = [("positive" if qrel.relevance > 0 else "negative", qrel.doc_id) for qrel in group]
        yield topic, [("query", topic), *judged], False


def ids_of(value: Any) -> Iterator[str]:
    """The ids in a value: itself, those of a list, and those of a mapping ({"bm25": […]})."""
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from ids_of(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from ids_of(one)


def refuse_ids(where: str) -> InputError:
    """The fault of training data with ids where nothing says what their texts are."""
    remedy = (
        "give the texts, as in triples.train.small.tsv, or say with `train_queries` and `train_docs` where they are"
    )
    return InputError("ids only, no texts", remedy, where=where)
