"""Every reader of truerank as one function of bytes; `seeds.py` has small valid files to begin from.

An input is one byte, which chooses the file's name, and the content of that file. A reader may raise what truerank
raises for the user (`TruerankError`); anything else is a fault of truerank.
"""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from seeds import FILES
from truerank import loading, sources
from truerank.audits.leakage.clean import _removed_before
from truerank.audits.pool import judged_topics, stopping
from truerank.audits.survivorship import answers
from truerank.audits.track import analysis, validation
from truerank.audits.transfer import estimates as estimating
from truerank.audits.transfer.matching import versions
from truerank.errors import TruerankError
from truerank.judging import load_scheme, models, samples
from truerank.judging.item_sources import read_items
from truerank.judging.items import Item, Text
from truerank.lab.grid import design
from truerank.measures import grammar
from truerank.measures.cross_validation import read_folds
from truerank.rankers import vocabulary
from truerank.sources import annotation_logs, archive, instances
from truerank.sources import run_tables as inputs
from truerank.sources.grammar import parse
from truerank.text import passages, urls
from truerank.vectors.encoders.weights import open_weights

__all__ = ["READERS", "DifferenceError", "Reader", "attempt"]


class DifferenceError(AssertionError):
    """Two readers of one file do not say the same of it."""


@dataclass(frozen=True)
class Reader:
    """One reader.

    Attributes:
        name: of the reader.
        files: see `Files.names`.
        seeds: see `Files.seeds`.
        read: reads the file of that name to its end.
    """

    name: str
    files: tuple[str, ...]
    seeds: tuple[tuple[int, bytes], ...]
    read: Callable[[str], object]

    def inputs(self) -> list[bytes]:
        """The seeds as inputs."""
        return [bytes([number]) + content for number, content in self.seeds]


def attempt(reader: Reader, data: bytes, folder: Path) -> str:
    """Reads one input; returns what truerank says against it, empty where it was read."""
    number = data[0] % len(reader.files) if data else 0
    name = reader.files[number]
    (folder / name.partition("?")[0]).write_bytes(data[1:])
    try:
        reader.read(str(folder / name))
    except TruerankError as error:
        return str(error) or "an error without a text"
    return ""


def _all(values: Iterable[Any]) -> None:
    deque(values, maxlen=0)


def _same(one: Callable[[], list[Any]], other: Callable[[], list[Any]]) -> None:
    """Both read the same, or both refuse the file."""
    found = []
    for read in (one, other):
        try:
            found.append(read())
        except TruerankError as error:
            found.append(error)
    refused = [isinstance(each, TruerankError) for each in found]
    if refused == [False, False]:
        if found[0] != found[1]:
            raise DifferenceError(f"{str(found[0])[:200]} but {str(found[1])[:200]}")
    elif not all(refused):
        raise DifferenceError(f"{str(found[0])[:200]} but {str(found[1])[:200]}")
    else:
        raise found[0]


def _any(*readers: Callable[[], object]) -> None:
    """All readers read it; a refusal counts where nobody does."""
    refusals = []
    for read in readers:
        try:
            read()
        except TruerankError as error:
            refusals.append(error)
    if len(refusals) == len(readers):
        raise refusals[0]


def _queries(spec: str) -> None:
    source = sources.open_queries(spec)
    _all(source.batches())
    _ = source.fingerprint, source.counts
    for each in sources.by_column(parse(spec)):
        _all(sources.open_queries(each).batches())


def _documents(spec: str) -> None:
    source = sources.open_documents(spec, keep_empty=True)
    _all(source.batches())
    _ = source.fingerprint


def _qrels(spec: str) -> None:
    names = ("topic_id", "doc_id", "relevance")

    def records() -> list[Any]:
        return [tuple(getattr(one, name) for name in names) for one in sources.read_qrels(spec)]

    _same(records, lambda: sources.read_qrels_frame(spec).select(names).rows())


def _runs(spec: str) -> None:
    names = ("topic_id", "doc_id", "rank", "score")

    def records() -> list[Any]:
        return [tuple(getattr(one, name) for name in names) for one in sources.read_run(spec)]

    _same(records, lambda: sources.read_run_frame(spec).select(names).rows())


def _annotations(spec: str) -> None:
    log = annotation_logs.open_annotations(spec)
    _all(log)
    _ = log.counts


@functools.cache
def _schemes() -> tuple[Any, ...]:
    return tuple(load_scheme(name) for name in ("leakage", "answerability", "relevance-documents"))


def _items(spec: str) -> None:
    _any(*(functools.partial(read_items, [spec], scheme) for scheme in _schemes()))


@functools.cache
def _item() -> Item:
    return Item("i1", "1", "a question", (Text("document", "a text"),))


def _answer(spec: str) -> None:
    text = Path(spec).read_bytes().decode("utf-8", "surrogateescape")
    for scheme in _schemes():
        models.read_answer(text, scheme, _item())


def _words(spec: str) -> str:
    return Path(spec).read_bytes()[:4096].decode("utf-8", "replace")


def _grammars(spec: str) -> None:
    """Names, measures, plans and rules that are given as texts on the command line."""
    text = _words(spec)
    readers: tuple[Callable[[str], object], ...] = (
        lambda t: sources.unique_names([parse(t), parse(t)]),
        grammar.parse_measures,
        samples.parse_plan,
        passages.policy_named,
        lambda t: stopping.load_rule(t) if not t.endswith("py") and ":" not in t.partition("=")[0] else None,
        lambda t: stopping.load_rule("heuristic:" + t),
        lambda t: stopping.load_rule("budget:" + t),
        urls.normalise_url,
    )
    _any(*(functools.partial(read, text) for read in readers))


def _settings(spec: str) -> None:
    """JSON, YAML and TOML as the loaders give them: none deeper than 100."""
    data = Path(spec).read_bytes()
    loaders: dict[str, Callable[[], object]] = {
        "json": lambda: loading.load_json(data, spec),
        "yaml": lambda: loading.load_yaml(data, spec, lambda loader, node: loader.construct_document(node)),
        "toml": lambda: loading.load_toml(data, spec),
    }
    repr(loaders[spec.rpartition(".")[2]]())


def _tables_of_runs(spec: str) -> None:
    inputs._table.cache_clear() if hasattr(inputs._table, "cache_clear") else None
    _any(
        lambda: inputs.read_metadata([spec], inputs.RowFilter()),
        lambda: inputs.read_means(spec, inputs.RowFilter({"set": "a"})),
        lambda: inputs.read_means(spec, inputs.RowFilter()),
        lambda: analysis.read_stated(spec),
    )


def _allowed(spec: str) -> None:
    validation.read_allowed(None, None, spec, spec)


def _weights(spec: str) -> None:
    weights = open_weights([Path(spec)])
    for name in sorted(weights.names):
        weights.tensor(name)


def _mapping(spec: str) -> None:
    versions.read_mapping(spec, ["V1", "V2"])


def _removed(spec: str) -> None:
    _removed_before(spec)


_READ: Final[dict[str, Callable[[str], object]]] = {
    "queries": _queries,
    "topics": sources.read_topics,
    "documents": _documents,
    "qrels": _qrels,
    "runs": _runs,
    "labels": lambda spec: _all(sources.read_labels(spec)),
    "annotation logs": _annotations,
    "variants": sources.read_variants,
    "instances": lambda spec: _all(instances.open_instances(spec)),
    "items to judge": _items,
    "folds": read_folds,
    "schemes": load_scheme,
    "designs": lambda spec: design.read_design(spec, variables=False),
    "mapping tables": _mapping,
    "counts": estimating.read_counts,
    "tables of runs": _tables_of_runs,
    "allowed documents": _allowed,
    "first answers": answers.read_firsts,
    "judged topics": judged_topics.topics,
    "removed queries": _removed,
    "word vectors": vocabulary.read_word_vectors,
    "weights": _weights,
    "settings": _settings,
    "archive settings": lambda spec: archive.ArchiveOptions().with_file(spec),
    "answers of models": _answer,
    "grammars": _grammars,
}
READERS: Final = {name: Reader(name, *FILES[name], read) for name, read in _READ.items()}

#: Where inputs lie while they are read: in memory where there is such a place.
SCRATCH: Final = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
