"""Training examples: the texts that were learnt together, as people have them, with texts or with ids of texts."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from truerank.errors import InputError
from truerank.sources import columns, formats, grammar, hub
from truerank.sources.blocks import SourceCounts
from truerank.sources.columns import Roles, number_of, roles_of, texts_of
from truerank.sources.documents import open_documents
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import numbered_lines
from truerank.sources.qrels import BEIR_HEADER, read_qrels
from truerank.sources.queries import open_queries
from truerank.sources.query_files import identifier_of, well_formed
from truerank.sources.rows import Row, rows, saved_files
from truerank.sources.streamed import StreamedSource
from truerank.text.normalising import normalise
from truerank.text.printable import listed

_ROWS: Final = 1 << 14
#: Ids of one look-up.
_ASKED: Final = 500
_FILE: Final = "texts.sqlite"


class TextsById:
    """Texts by id in a temporary file: memory grows with neither.

    Args:
        texts: ids and texts, read once. Of an id that comes again, the first text counts.
    """

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        # A source may be read by another thread than the one that opened it.
        self._texts = sqlite3.connect(Path(self._folder.name) / _FILE, check_same_thread=False)
        self._texts.execute("PRAGMA journal_mode=OFF")
        self._texts.execute("PRAGMA synchronous=OFF")
        self._texts.execute("CREATE TABLE texts (id TEXT NOT NULL, text TEXT NOT NULL)")
        stream = iter(texts)
        while rows := list(islice(stream, _ROWS)):
            self._texts.executemany("INSERT INTO texts VALUES (?, ?)", (tuple(map(well_formed, row)) for row in rows))
        # Sorted once, which costs less than to keep it sorted.
        self._texts.execute("CREATE INDEX ids ON texts (id)")
        self._texts.commit()

    def of(self, ids: Collection[str]) -> dict[str, str]:
        """The texts of those ids that are there."""
        found, wanted = dict[str, str](), iter(sorted(set(ids)))
        while some := [well_formed(one) for one in islice(wanted, _ASKED)]:
            query = f"SELECT id, text FROM texts WHERE id IN ({','.join('?' * len(some))}) ORDER BY rowid DESC"
            found.update(self._texts.execute(query, some))
        return found


@lru_cache(maxsize=8)
def texts_by_id(noun: Literal["queries", "docs"], spec: str, fingerprint: str, strict: bool = False) -> TextsById:
    """The texts of a source by id, of documents title and body as one; kept while the process lasts.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    if noun == "queries":
        return TextsById((query.query_id, query.text) for query in open_queries(spec, strict=strict))
    return TextsById((one.doc_id, one.text) for one in open_documents(spec, strict=strict))


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
        queries = {} if self.queries is None else {"train_queries": open_queries(self.queries).fingerprint}
        return queries if self.docs is None else {**queries, "train_docs": open_documents(self.docs).fingerprint}

    @property
    def roles(self) -> frozenset[str]:
        """The roles whose texts are there."""
        queries = {"query"} if self.queries is not None else set[str]()
        return frozenset(queries | {"positive", "negative", "document"} if self.docs is not None else queries)


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


class Example(NamedTuple):
    """An example: its line, its id, its texts (or ids of texts) behind their roles, and whether it was repaired."""

    line: int
    example_id: str
    texts: list[tuple[str, str]]
    repaired: bool


def with_texts(
    examples: Iterator[Example], texts: ExampleTexts, absent: AbsentIds, *, strict: bool = False
) -> Iterator[Example]:
    """Examples with texts in the place of ids, some thousand at a time; what has none is left out and noted.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    known, by_role = texts.fingerprints(), dict[str, TextsById]()
    if texts.queries is not None:
        by_role["query"] = texts_by_id("queries", texts.queries, known["train_queries"], strict)
    if texts.docs is not None:
        documents = texts_by_id("docs", texts.docs, known["train_docs"], strict)
        by_role |= dict.fromkeys(texts.roles - {"query"}, documents)
    while some := list(islice(examples, _AT_ONCE)):
        found = {}
        for source in set(by_role.values()):
            found[source] = source.of({name for one in some for role, name in one.texts if by_role.get(role) is source})
        for line, example_id, ids_by_role, repaired in some:
            known_texts = []
            for role, name in ids_by_role:
                if (text := found[by_role[role]].get(name) if role in by_role else name) is None:
                    absent.note(role, name)
                else:
                    known_texts.append((role, text))
            yield Example(line, example_id, known_texts, repaired)


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
    named = [name for name, role in roles.columns if role in texts.roles]
    values = [one for record in sample for name in named for one in ids_of(record.get(name))]
    even = not blanks or {len(record) for record in sample} in [{width} for width in range(2, 99)]
    return even and bool(values) and 2 * sum(" " in one for one in values) < len(values)


def roles_of_ids(sample: Sequence[Mapping[str, Any]], roles: Roles) -> set[str]:
    """The roles of columns without any letter, which are not texts."""
    found: dict[str, bool] = {}
    for name, role in roles.columns:
        values = [one for record in sample for one in ids_of(record.get(name))]
        found[role] = found.get(role, False) or any(any(map(str.isalpha, one)) for one in values) or not values
    return {role for role, lettered in found.items() if not lettered}


def judged_lines(path: Path, *, strict: bool = False) -> bool:
    """Whether lines of ids are judgments: with BEIR's header, or with a grade as the last of three or four columns."""
    lines = _lines(path, lambda _: False, ids=True, strict=strict)
    cells = [tuple(row.values.values()) for row in islice(lines, columns.SAMPLE_LINES)]
    if cells[:1] == [BEIR_HEADER]:
        return True
    last, widths = {row[-1] for row in cells}, set(map(len, cells))
    if any(" " in cell for row in cells for cell in row[:-1]):
        return False
    return widths in ({3}, {4}) and last <= _GRADES and (widths == {4} or len(cells) > len(last))


def _names_ids(cells: list[str]) -> bool:
    return len(cells) > 1 and all(map(_role, cells[:2]))


def _names_texts(cells: list[str]) -> bool:
    known = roles_of([dict.fromkeys(cells, "a text")]).columns
    return len(cells) > 1 and bool(known) and not any(" " in cell or cell.isdigit() for cell in cells)


def _lines(
    path: Path, is_header: Callable[[list[str]], bool], *, ids: bool = False, strict: bool = False
) -> Iterator[Row]:
    """The lines of a file, by the names of its header or numbered from 1.

    Args:
        ids: cells are ids, between tabs or blanks; else there are tabs between them, and as many as in the first line.
        strict: raise for bytes that are not UTF-8.
    """
    names: list[str] | None = None
    for number, text, repaired in numbered_lines(path, strict=strict):
        if not text.strip():
            continue
        cells = text.split(None if ids and "\t" not in text else "\t")
        cells = [cell.strip() for cell in cells] if ids else cells
        numbers = [str(place) for place, _ in enumerate(cells, start=1)]
        if names is None:
            if is_header(first := [cell.strip() for cell in cells]):
                names = first
                continue
            names = [] if ids else numbers
        yield Row(number, dict(zip(names or numbers, cells, strict=False)), repaired)


def of_judgments(path: str) -> Iterator[Example]:
    """Judgments as examples: neighbours with one query, relevant documents as positives, the others as negatives."""
    for topic, group in groupby(read_qrels(path), key=lambda qrel: qrel.topic_id):
        judged = [("positive" if qrel.relevance > 0 else "negative", qrel.doc_id) for qrel in group]
        yield Example(0, topic, [("query", topic), *judged], False)


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


_BLOCK: Final = 1 << 12
#: Forms whose records are queries, or queries with what was judged.
_WITHOUT_COLUMNS: Final = ("beir", "lines", "trec", "xml", "qna")
_ASKING: Final = frozenset(("user", "human", "question"))
_ANSWERING: Final = frozenset(("assistant", "gpt", "model", "answer", "bot"))


class ExampleText(NamedTuple):
    """One text of an example: the example's id, the text's role (see `roles.ROLES`) and the text."""

    example_id: str
    role: str
    text: str


def open_examples(
    spec: str | SourceSpec,
    *,
    roles: Roles | str | None = None,
    split: str = "train",
    texts: ExampleTexts | None = None,
    strict: bool = False,
) -> ExampleSource:
    """Opens training examples.

    Tables (JSONL, JSON, CSV, TSV, Parquet with nested lists, folders that Hugging Face `datasets` saved, `hf:` names)
    with the columns of sentence-transformers (`anchor, positive, negative_1…`, `sentence1, sentence2, score`, `query,
    response`), FlagEmbedding (`query, pos, neg, prompt`), Tevatron (`positive_passages`), DPR (`positive_ctxs`), lists
    without names (a pair or a triple, also as TSV lines), `{"set": […]}` (the first text is the query, the others its
    positives) and conversations (`messages`: what the user says are queries, the replies positives). A BEIR folder
    gives each judged query with its relevant documents as positives, and the judged others as negatives.

    With `texts`, records may hold ids: lines of a query and one or more documents (MS MARCO's `qidpidtriples`: query,
    positive, negative), judgments (TREC's or BEIR's columns), and tables with columns such as `qid`, `pos_pids`,
    `negative_ids`.

    Args:
        spec: the source, see `grammar.parse`.
        roles: which column is what, as `query=anchor,positive=pos`; None to tell it from names and contents.
        split: the judgments of a BEIR folder that are training data.
        texts: where the texts of ids are.
        strict: raise for bytes that are not UTF-8 instead of reading that line as latin-1.

    Returns:
        The source; it can be iterated any number of times.

    Raises:
        InputError: nothing there, not readable, or ids only, without texts.
    """
    given = Roles.parse(roles) if isinstance(roles, str) else roles
    return ExampleSource(grammar.parse(spec) if isinstance(spec, str) else spec, given, split, texts, strict=strict)


class ExampleSource(StreamedSource):
    """The examples of one source in its order; memory does not grow with it.

    Counts are those of texts; an example without any text counts as skipped.

    Args:
        spec: the source.
        roles: which column is what; None to tell it.
        split: the judgments of a BEIR folder.
        texts: where the texts of ids are.
        strict: raise for bytes that are not UTF-8.
    """

    def __init__(
        self,
        spec: SourceSpec,
        roles: Roles | None,
        split: str,
        texts: ExampleTexts | None = None,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(spec, strict=strict)
        #: Where the texts of ids are; ids without one in what the last iteration read.
        self.texts, self.absent = texts or ExampleTexts(), AbsentIds()
        self._given = roles
        self._split = split
        if self._form == "run" or (self._form == "qrels" and not texts):
            raise InputError(f"a {self._form} file holds no texts", "give the training data", where=spec.location)

    @cached_property
    def _judged(self) -> bool:
        """Whether the source is a file of judgments, whose ids have their texts elsewhere."""
        lines = self.texts and self._given is None and self._form in ("tsv", "lines")
        return self._form == "qrels" or bool(lines and judged_lines(self.spec.path, strict=self._strict))

    @cached_property
    def _by_id(self) -> bool:
        """Whether the records hold ids whose texts are elsewhere."""
        if not self.texts or self._judged or self._form in ("beir", "trec", "xml", "qna"):
            return False
        lines = self._form in ("tsv", "lines")
        stream = _lines(self.spec.path, _names_ids, ids=True, strict=self._strict) if lines else self._rows()
        sample = [row.values for row in islice(stream, columns.SAMPLE_LINES)]
        return holds_ids(sample, self._given or id_roles(sample), self.texts, blanks=self._form == "lines")

    @cached_property
    def roles(self) -> Roles:
        """Which column is what, as given or told from the first thousand records.

        Raises:
            InputError: no column holds texts, or one that was given is not there.
        """
        if self._judged:
            self._check_texts({"query", "positive"})
            return Roles((("query-id", "query"), ("corpus-id", "positive")))
        if self._form in _WITHOUT_COLUMNS and not self._by_id:
            return Roles((("query", "query"), *((("document", "positive"),) if self._form in ("beir", "qna") else ())))
        sample = [row.values for row in islice(self._rows(), columns.SAMPLE_LINES)]
        there = list(dict.fromkeys(name for values in sample for name in values))
        if self._by_id:
            self._check_texts(roles_of_ids(sample, self._given or id_roles(sample)))
        if self._given is not None:
            if absent := [name for name, _ in self._given.columns if name not in there]:
                remedy = f"there are {', '.join(there) or 'none'}"
                raise InputError(f"no column '{absent[0]}'", remedy, where=self.spec.location)
            return replace(self._given, identifier=columns.named(there, columns.ID_NAMES))
        found = id_roles(sample) if self._by_id else roles_of(sample)
        if not found.columns:
            if not sample:
                raise self._nothing("examples")
            if not any(True for values in sample for value in values.values() for _ in ids_of(value)):
                fault = f"the first {len(sample):,} records hold nothing in {listed(there) or 'any column'}"
                raise InputError(fault, "give records that hold texts", where=self.spec.location)
            if not self._by_id and id_roles(sample).columns:
                remedy = "give the texts, or say with `train_queries` and `train_docs` where they are"
                raise InputError("ids only, no texts", remedy, where=self.spec.location)
            remedy = f"there are {', '.join(there) or 'none'}; name them: query=COLUMN,positive=…"
            raise InputError("no column holds texts", remedy, where=self.spec.location)
        return found

    def _check_texts(self, roles: Collection[str]) -> None:
        """Refuses ids in columns of some roles whose texts are nowhere."""
        if lacking := set(roles) - self.texts.roles:
            option = "train_queries" if "query" in lacking else "train_docs"
            raise InputError(f"ids, and no `{option}`", "say where their texts are", where=self.spec.location)

    def __iter__(self) -> Iterator[ExampleText]:
        return chain.from_iterable(self.batches())

    def batches(self, size: int = _BLOCK) -> Iterator[list[ExampleText]]:
        """The texts in blocks of at least `size` texts, but for the last one; an example is in one block.

        Raises:
            InputError: a fault in the source, with file and line; no text in it at all.
        """
        self._counts = SourceCounts()
        block: list[ExampleText] = []
        for _, example_id, texts, repaired in self._examples():
            full = [ExampleText(example_id, role, text) for role, text in texts if normalise(text)]
            self._counts += SourceCounts(max(1, len(texts)), len(texts) - len(full), repaired, not texts)
            block += full
            if len(block) >= size:
                yield block
                block = []
        if not self._counts.read:
            raise self._nothing("examples")
        if block:
            yield block

    def records(self) -> Iterator[Example]:
        """Each record of a file with the line (in Parquet: the row) on which it stands, its id, and its texts by role.

        Raises:
            InputError: a fault in the source; a source that has no records.
        """
        if self.spec.scheme == "irds" or self._judged or (self._form in _WITHOUT_COLUMNS and not self._by_id):
            raise InputError("no records in it", "give a table of examples", where=self.spec.location)
        return self._examples()

    def _examples(self) -> Iterator[Example]:
        self.absent = AbsentIds()
        if self._form == "beir":
            topics, docs, judgments = map(str, self._files())
            return self._with_texts(of_judgments(judgments), ExampleTexts(topics, docs))
        if self._judged:
            _ = self.roles
            return self._with_texts(of_judgments(self.spec.spec), self.texts)
        if self._by_id:
            return self._with_texts(self._of_rows(self.texts.roles), self.texts)
        if self.spec.scheme == "irds" or self._form in ("lines", "trec", "xml"):
            queries = open_queries(self.spec, strict=self._strict)
            return (Example(0, query.query_id, [("query", query.text)], False) for query in queries)
        return self._of_rows()

    def _with_texts(self, examples: Iterator[Example], texts: ExampleTexts) -> Iterator[Example]:
        return with_texts(examples, texts, self.absent, strict=self._strict)

    def _of_rows(self, by_id: Collection[str] = ()) -> Iterator[Example]:
        """The records with the texts in their columns, or the ids where texts of a role are told by id."""
        roles = self.roles
        for row in self._rows():
            texts = [(role, well_formed(text)) for role, text in _texts_in(row.values, roles, by_id)]
            yield Example(row.line, identifier_of(row, roles.identifier), texts, row.repaired)

    def _rows(self) -> Iterator[Row]:
        spec = self.spec
        if spec.scheme == "hf":
            return hub.records(spec, strict=self._strict)
        if self._form in ("tsv", "lines") and self._by_id:
            return _lines(spec.path, _names_ids, ids=True, strict=self._strict)
        if self._form == "tsv":
            return _lines(spec.path, _names_texts, strict=self._strict)
        return rows(spec.path, self._form, strict=self._strict)

    def _files(self) -> list[Path]:
        path = self.spec.path
        if self._form == "saved":
            return saved_files(path)
        if (judgments := formats.qrels_file(path, self._split)) is None:
            fault = f"there is no qrels/{self._split}.tsv in it"
            raise InputError(fault, "name another split, or give a file of examples", where=self.spec.location)
        return [formats.queries_file(path), *filter(None, [formats.corpus_file(path)]), judgments]

    def _settings(self) -> dict[str, str | None]:
        return {"roles": str(self.roles), **self.texts.fingerprints()}


def _texts_in(values: Mapping[str, Any], roles: Roles, by_id: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """The texts of a record behind their roles; of roles that are told by id, the ids."""
    prefix = values.get(roles.prefix) if roles.prefix else None
    score = number_of(values.get(roles.score)) if roles.score is not None else None
    low = score is not None and score < roles.middle
    for place, (name, role) in enumerate(roles.columns):
        value = values.get(name)
        if name.strip().lower() in ("messages", "conversations", "conversation"):
            yield from _talk(value)
            continue
        one_of = "negative" if low and place == 1 else role
        for number, text in enumerate(ids_of(value) if role in by_id else texts_of(value)):
            if role == "query" and isinstance(prefix, str) and prefix:
                text = text.removeprefix(prefix)
            yield ("query" if name.strip().lower() == "set" and number == 0 else one_of), text


def _talk(value: Any) -> Iterator[tuple[str, str]]:
    for turn in value if isinstance(value, (list, tuple)) else ():
        if isinstance(turn, Mapping):
            speaker = str(turn.get("role", turn.get("from", ""))).lower()
            role = "query" if speaker in _ASKING else "positive" if speaker in _ANSWERING else None
            if role is not None:
                yield from ((role, text) for text in texts_of(turn))
