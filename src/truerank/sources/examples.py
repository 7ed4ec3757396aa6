"""Training examples: the texts that were learnt together, as people have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.sources import beir, columns, compressed, formats, grammar, hub, irds
from truerank.sources.blocks import SourceCounts
from truerank.sources.grammar import SourceSpec
from truerank.sources.id_examples import (
    AbsentIds,
    ExampleTexts,
    Ids,
    WithTexts,
    holds_ids,
    id_lines,
    id_roles,
    ids_of,
    judged_lines,
    of_judgments,
    refuse_ids,
    roles_of_ids,
)
from truerank.sources.lines import line_blocks
from truerank.sources.queries import open_queries
from truerank.sources.roles import Roles, number_of, roles_of, texts_of
from truerank.sources.rows import Row, rows, saved_files
from truerank.sources.streamed import StreamedSource
from truerank.sources.tables import identifier_of, well_formed
from truerank.text.listing import listed
from truerank.text.normalising import normalise

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


class ExampleBlock(NamedTuple):
    """Texts of consecutive examples: `ids[i]` and `roles[i]` belong to `texts[i]`."""

    ids: list[str]
    roles: list[str]
    texts: list[str]


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
        self._texts = texts or ExampleTexts()
        self._absent = AbsentIds()
        self._given = roles
        self._split = split
        self._form = ""
        if spec.scheme == "irds":
            irds.check(spec.location, "queries")
        elif spec.scheme == "file":
            self._form = formats.detect(spec.path, spec.format)
            if self._form == "run" or (self._form == "qrels" and not texts):
                raise InputError(f"a {self._form} file holds no texts", "give the training data", where=spec.location)

    @property
    def texts(self) -> ExampleTexts:
        """Where the texts of ids are."""
        return self._texts

    @property
    def absent(self) -> AbsentIds:
        """Ids without a text in what the last iteration read."""
        return self._absent

    @cached_property
    def _judged(self) -> bool:
        """Whether the source is a file of judgments, whose ids have their texts elsewhere."""
        lines = self._texts and self._given is None and self._form in ("tsv", "lines")
        return self._form == "qrels" or bool(lines and judged_lines(self.spec.path, strict=self._strict))

    @cached_property
    def _by_id(self) -> bool:
        """Whether the records hold ids whose texts are elsewhere."""
        if not self._texts or self._judged or self._form in ("beir", "trec", "xml", "qna"):
            return False
        lines = self._form in ("tsv", "lines")
        stream = id_lines(self.spec.path, strict=self._strict) if lines else self._rows()
        sample = [row.values for row in islice(stream, columns.SAMPLE_LINES)]
        return holds_ids(sample, self._given or id_roles(sample), self._texts, blanks=self._form == "lines")

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
            absent = [name for name, _ in self._given.columns if name not in there]
            if absent:
                raise InputError(
                    f"no column '{absent[0]}'", f"there are {', '.join(there) or 'none'}", where=self.spec.location
                )
            return replace(self._given, identifier=columns.named(there, columns.ID_NAMES))
        found = id_roles(sample) if self._by_id else roles_of(sample)
        if not found.columns:
            if not sample:
                raise InputError("no examples in it", "give a source that holds some", where=self.spec.location)
            if not any(True for values in sample for value in values.values() for _ in ids_of(value)):
                fault = f"the first {len(sample):,} records hold nothing in {listed(there) or 'any column'}"
                raise InputError(fault, "give records that hold texts", where=self.spec.location)
            if not self._by_id and id_roles(sample).columns:
                raise refuse_ids(self.spec.location)
            remedy = f"there are {', '.join(there) or 'none'}; name them: query=COLUMN,positive=…"
            raise InputError("no column holds texts", remedy, where=self.spec.location)
        return found

    def _check_texts(self, roles: Collection[str]) -> None:
        """Refuses ids in columns of some roles whose texts are nowhere."""
        for option, given, those in (
            ("train_queries", self._texts.queries, {"query"}),
            ("train_docs", self._texts.docs, {"positive", "negative", "document"}),
        ):
            if given is None and not those.isdisjoint(roles):
                raise InputError(f"ids, and no `{option}`", "say where their texts are", where=self.spec.location)

    def __iter__(self) -> Iterator[ExampleText]:
        for block in self.batches():
            yield from map(ExampleText, block.ids, block.roles, block.texts)

    def batches(self, size: int = _BLOCK) -> Iterator[ExampleBlock]:
        """The texts in blocks of at least `size` texts, but for the last one; an example stands in one block.

        Raises:
            InputError: a fault in the source, with file and line; no text in it at all.
        """
        self._counts, self._absent = SourceCounts(), AbsentIds()
        block = ExampleBlock([], [], [])
        for example_id, texts, repaired in self._examples():
            full = [(role, text) for role, text in texts if normalise(text)]
            counts = self._counts
            self._counts = replace(
                counts,
                read=counts.read + max(1, len(texts)),
                empty=counts.empty + len(texts) - len(full),
                repaired=counts.repaired + repaired,
                skipped=counts.skipped + (not texts),
            )
            block.ids.extend([example_id] * len(full))
            block.roles.extend(role for role, _ in full)
            block.texts.extend(text for _, text in full)
            if len(block.ids) >= size:
                yield block
                block = ExampleBlock([], [], [])
        if not self._counts.read:
            raise InputError("no examples in it", "give a source that holds some", where=self.spec.location)
        if block.ids:
            yield block

    def records(self) -> Iterator[tuple[int, str, list[tuple[str, str]]]]:
        """Each record of a file with the line (in Parquet: the row) on which it stands, its id, and its texts by role.

        Raises:
            InputError: a fault in the source; a source that has no records.
        """
        if self.spec.scheme == "irds" or self._judged or (self._form in _WITHOUT_COLUMNS and not self._by_id):
            raise InputError("no records in it", "give a table of examples", where=self.spec.location)
        if self._by_id:
            keyed = (((row.line, example_id), ids, repaired) for row, example_id, ids, repaired in self._ids())
            found = WithTexts(self._texts, strict=self._strict)(keyed, AbsentIds())
            yield from ((line, example_id, texts) for (line, example_id), texts, _ in found)
            return
        for row in self._rows():
            texts = [(role, well_formed(text)) for role, text in _texts_in(row.values, self.roles)]
            yield row.line, identifier_of(row, self.roles.identifier), texts

    def _examples(self) -> Iterator[tuple[str, list[tuple[str, str]], bool]]:
        if self._form == "beir":
            folder = ExampleTexts(str(beir.queries_file(self.spec.path)), str(self._corpus()))
            yield from self._with_texts(folder, of_judgments(str(self._judgments())))
        elif self._judged:
            _ = self.roles
            yield from self._with_texts(self._texts, of_judgments(self.spec.spec))
        elif self._by_id:
            ids = ((example_id, texts, repaired) for _, example_id, texts, repaired in self._ids())
            yield from self._with_texts(self._texts, ids)
        elif self.spec.scheme == "irds" or self._form in ("lines", "trec", "xml"):
            for query in open_queries(self.spec, strict=self._strict):
                yield query.query_id, [("query", query.text)], False
        else:
            roles = self.roles
            for row in self._rows():
                texts = [(role, well_formed(text)) for role, text in _texts_in(row.values, roles)]
                yield identifier_of(row, roles.identifier), texts, row.repaired

    def _with_texts(self, texts: ExampleTexts, examples: Iterator[Ids[str]]) -> Iterator[Ids[str]]:
        found = WithTexts(texts, strict=self._strict)(examples, self._absent)
        return ((name, [(role, well_formed(text)) for role, text in each], repaired) for name, each, repaired in found)

    def _ids(self) -> Iterator[tuple[Row, str, list[tuple[str, str]], bool]]:
        """Each record with its id and the ids, or texts, in its columns by role."""
        roles = self.roles
        for row in self._rows():
            score = number_of(row.values.get(roles.score)) if roles.score is not None else None
            found = []
            for place, (name, role) in enumerate(roles.columns):
                values = texts_of if role == "query" and self._texts.queries is None else ids_of
                low = place == 1 and score is not None and score < roles.middle
                found += [("negative" if low else role, one) for one in values(row.values.get(name))]
            yield row, identifier_of(row, roles.identifier), found, row.repaired

    def _rows(self) -> Iterator[Row]:
        spec = self.spec
        if spec.scheme == "hf":
            return hub.records(spec, strict=self._strict)
        if self._form in ("tsv", "lines") and self._by_id:
            return id_lines(spec.path, strict=self._strict)
        if self._form == "tsv":
            return _lines(spec.path, self._strict)
        return rows(spec.path, self._form, strict=self._strict)

    def _file_fingerprint(self) -> str:
        path = self.spec.path
        if self._form == "beir":
            files: list[Path | None] = [beir.queries_file(path), self._corpus(), self._judgments()]
        else:
            files = list(saved_files(path) if self._form == "saved" else [path])
        return "+".join(compressed.fingerprint(file) for file in files if file is not None)

    def _reading(self) -> dict[str, str | None]:
        return {"roles": str(self.roles), **self._texts.fingerprints()}

    def _judgments(self) -> Path:
        found = beir.qrels_file(self.spec.path, self._split)
        if found is None:
            raise InputError(
                f"there is no qrels/{self._split}.tsv in it", "name another split, or give a file of examples",
                where=self.spec.location,
            )  # fmt: skip
        return found

    def _corpus(self) -> Path | None:
        return beir.corpus_file(self.spec.path)


def _texts_in(values: Mapping[str, Any], roles: Roles) -> Iterator[tuple[str, str]]:
    """The texts of a record with their roles."""
    prefix = values.get(roles.prefix) if roles.prefix else None
    score = number_of(values.get(roles.score)) if roles.score is not None else None
    low = score is not None and score < roles.middle
    for place, (name, role) in enumerate(roles.columns):
        value = values.get(name)
        if name.strip().lower() in ("messages", "conversations", "conversation"):
            yield from _talk(value)
            continue
        one_of = "negative" if low and place == 1 else role
        for number, text in enumerate(texts_of(value)):
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


def _lines(path: Path, strict: bool) -> Iterator[Row]:
    """The lines of a TSV file, by the names of its header or numbered from 1."""
    names: list[str] | None = None
    for block in line_blocks(path, strict=strict):
        for offset, line in enumerate(block.lines):
            if not line.strip():
                continue
            cells = line.split("\t")
            if names is None:
                known = roles_of([dict.fromkeys((cell.strip() for cell in cells), "a text")])
                named = not any(" " in cell.strip() or cell.strip().isdigit() for cell in cells)
                header = len(cells) > 1 and len(known.columns) > 0 and named
                names = [cell.strip() for cell in cells] if header else [str(n) for n in range(1, len(cells) + 1)]
                if header:
                    continue
            yield Row(block.first + offset, dict(zip(names, cells, strict=False)), offset in block.repaired)
