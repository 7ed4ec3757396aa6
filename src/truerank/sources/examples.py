"""Training examples: the texts that were learnt together, as people have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.sources import beir, columns, compressed, formats, grammar, hub, irds
from truerank.sources.blocks import SourceCounts
from truerank.sources.documents import open_documents
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import line_blocks
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.queries import open_queries
from truerank.sources.roles import Roles, number_of, roles_of, texts_of
from truerank.sources.rows import Row, rows, saved_files
from truerank.sources.streamed import StreamedSource
from truerank.sources.tables import identifier_of, well_formed
from truerank.text.normalising import normalise

__all__ = ["ExampleBlock", "ExampleSource", "ExampleText", "open_examples"]

_BLOCK: Final = 1 << 12
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
    spec: str | SourceSpec, *, roles: Roles | str | None = None, split: str = "train", strict: bool = False
) -> ExampleSource:
    """Opens training examples.

    Tables (JSONL, JSON, CSV, TSV, Parquet with nested lists, folders that Hugging Face `datasets` saved, `hf:` names)
    with the columns of sentence-transformers (`anchor, positive, negative_1…`, `sentence1, sentence2, score`, `query,
    response`), FlagEmbedding (`query, pos, neg, prompt`), Tevatron (`positive_passages`), DPR (`positive_ctxs`), lists
    without names (a pair or a triple, also as TSV lines), `{"set": […]}` (the first text is the query, the others its
    positives) and conversations (`messages`: what the user says are queries, the replies positives). A BEIR folder
    gives each judged query with its relevant documents as positives, and the judged others as negatives.

    Args:
        spec: the source, see `grammar.parse`.
        roles: which column is what, as `query=anchor,positive=pos`; None to tell it from names and contents.
        split: the judgments of a BEIR folder that are training data.
        strict: raise for bytes that are not UTF-8 instead of reading that line as latin-1.

    Returns:
        The source; it can be iterated any number of times.

    Raises:
        InputError: nothing there, not readable, or ids only, without texts.
    """
    given = Roles.parse(roles) if isinstance(roles, str) else roles
    return ExampleSource(grammar.parse(spec) if isinstance(spec, str) else spec, given, split, strict=strict)


class ExampleSource(StreamedSource):
    """The examples of one source in its order; memory does not grow with it, but for a BEIR folder's judged documents.

    Counts are those of texts; an example without any text counts as skipped.

    Args:
        spec: the source.
        roles: which column is what; None to tell it.
        split: the judgments of a BEIR folder.
        strict: raise for bytes that are not UTF-8.
    """

    def __init__(self, spec: SourceSpec, roles: Roles | None, split: str, *, strict: bool = False) -> None:
        super().__init__(spec, strict=strict)
        self._given = roles
        self._split = split
        self._form = ""
        if spec.scheme == "irds":
            irds.check(spec.location, "queries")
        elif spec.scheme == "file":
            self._form = formats.detect(spec.path, spec.format)
            if self._form in ("qrels", "run"):
                raise InputError(f"a {self._form} file holds no texts", "give the training data", where=spec.location)

    @cached_property
    def roles(self) -> Roles:
        """Which column is what, as given or told from the first thousand records.

        Raises:
            InputError: no column holds texts, or one that was given is not there.
        """
        if self._form in ("beir", "lines", "trec", "xml", "qna"):
            return Roles((("query", "query"), *((("document", "positive"),) if self._form in ("beir", "qna") else ())))
        sample = [row.values for row in islice(self._rows(), columns.SAMPLE_LINES)]
        there = list(dict.fromkeys(name for values in sample for name in values))
        if self._given is not None:
            absent = [name for name, _ in self._given.columns if name not in there]
            if absent:
                raise InputError(
                    f"no column '{absent[0]}'", f"there are {', '.join(there) or 'none'}", where=self.spec.location
                )
            return replace(self._given, identifier=columns.named(there, columns.ID_NAMES))
        found = roles_of(sample)
        if not found.columns:
            only_ids = bool(sample) and all(name.isdigit() for name in there)
            fault = "ids only, no texts" if only_ids else "no column holds texts"
            remedy = (
                "give the texts, as in triples.train.small.tsv" if only_ids else "name them: query=COLUMN,positive=…"
            )
            raise InputError(fault, f"there are {', '.join(there) or 'none'}; {remedy}", where=self.spec.location)
        return found

    def __iter__(self) -> Iterator[ExampleText]:
        for block in self.batches():
            yield from map(ExampleText, block.ids, block.roles, block.texts)

    def batches(self, size: int = _BLOCK) -> Iterator[ExampleBlock]:
        """The texts in blocks of at least `size` texts, but for the last one; an example stands in one block.

        Raises:
            InputError: a fault in the source, with file and line; no text in it at all.
        """
        self._counts = SourceCounts()
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
        if self.spec.scheme == "irds" or self._form in ("beir", "lines", "trec", "xml", "qna"):
            raise InputError("no records in it", "give a table of examples", where=self.spec.location)
        for row in self._rows():
            texts = [(role, well_formed(text)) for role, text in _texts(row.values, self.roles)]
            yield row.line, identifier_of(row, self.roles.identifier), texts

    def _examples(self) -> Iterator[tuple[str, list[tuple[str, str]], bool]]:
        if self._form == "beir":
            yield from self._of_folder()
        elif self.spec.scheme == "irds" or self._form in ("lines", "trec", "xml"):
            for query in open_queries(self.spec, strict=self._strict):
                yield query.query_id, [("query", query.text)], False
        else:
            roles = self.roles
            for row in self._rows():
                texts = [(role, well_formed(text)) for role, text in _texts(row.values, roles)]
                yield identifier_of(row, roles.identifier), texts, row.repaired

    def _rows(self) -> Iterator[Row]:
        spec = self.spec
        if spec.scheme == "hf":
            return hub.records(spec, strict=self._strict)
        if self._form == "tsv":
            return _lines(spec.path, self._strict)
        return rows(spec.path, self._form, strict=self._strict)

    def _file_fingerprint(self) -> str:
        path = self.spec.path
        if self._form == "beir":
            files: list[Path | None] = [beir.queries_file(path), beir.corpus_file(path), self._judgments()]
        else:
            files = list(saved_files(path) if self._form == "saved" else [path])
        return "+".join(compressed.fingerprint(file) for file in files if file is not None)

    def _reading(self) -> dict[str, str | None]:
        return {"roles": str(self.roles)}

    def _judgments(self) -> Path | None:
        return beir.qrels_file(self.spec.path, self._split)

    def _of_folder(self) -> Iterator[tuple[str, list[tuple[str, str]], bool]]:
        """The judged queries of a BEIR folder with their documents; only the judged documents are held."""
        judged = self._judgments()
        if judged is None:
            raise InputError(
                f"there is no qrels/{self._split}.tsv in it", "name another split, or give a file of examples",
                where=self.spec.location,
            )  # fmt: skip
        frame = read_qrels_frame(str(judged))
        wanted = set(frame["doc_id"].to_list())
        corpus = beir.corpus_file(self.spec.path)
        if corpus is None:
            raise InputError("there is no corpus.jsonl in it", "give a BEIR folder", where=self.spec.location)
        held = {
            one.doc_id: f"{one.title} {one.body}".strip() for one in open_documents(str(corpus)) if one.doc_id in wanted
        }
        by_topic = {str(topic): group for (topic,), group in frame.group_by("topic_id", maintain_order=True)}
        for query in open_queries(self.spec, strict=self._strict):
            group = by_topic.get(query.query_id)
            if group is None:
                continue
            texts = [("query", query.text)]
            for doc_id, grade in group.select("doc_id", "relevance").iter_rows():
                if doc_id in held:
                    texts.append(("positive" if grade > 0 else "negative", held[doc_id]))
            yield query.query_id, texts, False


def _texts(values: Mapping[str, Any], roles: Roles) -> Iterator[tuple[str, str]]:
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
                header = len(cells) > 1 and len(known.columns) > 0 and not any(" " in cell.strip() for cell in cells)
                names = [cell.strip() for cell in cells] if header else [str(n) for n in range(1, len(cells) + 1)]
                if header:
                    continue
            yield Row(block.first + offset, dict(zip(names, cells, strict=False)), offset in block.repaired)
