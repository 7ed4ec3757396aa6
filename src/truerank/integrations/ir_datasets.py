"""ir_datasets: audited and cleaned data as a data set, with their provenance in its documentation."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError, OptionError, needed_for
from truerank.loading import json_file
from truerank.sources import open_documents, open_queries, parse, read_qrels, read_topics
from truerank.sources.grammar import SourceSpec
from truerank.work.artifacts import digest, hash_file, write_text

with needed_for("a data set for ir_datasets", "irds"):
    import ir_datasets
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericQuery, TrecQrel, TrecQuery
    from ir_datasets.indices import PickleLz4FullStore

__all__ = ["TruerankDoc", "register", "registry_file", "restore"]

_PREFIX: Final = "truerank/"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]*(?:/[a-z0-9][a-z0-9_.-]*)*")
#: What the commands write that can be registered, and what its main file holds.
_COMMANDS: Final = {"collection clean": "qrels", "transfer clean": "qrels", "leakage clean": "queries"}
#: What `collection clean` writes beside the judgments.
_BESIDE: Final = frozenset(("changes.tsv", "contradictions.tsv", "duplicates.tsv", "exclusions.tsv", "summary.json"))
#: What was registered in this process, so that the same call again is not a fault.
_registered: dict[str, str] = {}


class TruerankDoc(NamedTuple):
    """A document of a source of truerank; fields that the source lacks are empty."""

    doc_id: str
    url: str
    title: str
    body: str

    def default_text(self) -> str:
        """Title and body, as rankers read a document."""
        return f"{self.title} {self.body}" if self.title and self.body else self.title or self.body


# PyTerrier looks for fields whose annotation is the class itself, and not its name.
TruerankDoc.__annotations__.update(dict.fromkeys(TruerankDoc._fields, str))


@dataclass(frozen=True)
class _Parts:
    """What a data set is made of: the output of a command, and the sources of what that output lacks."""

    output: str
    docs: str | None
    queries: str | None
    qrels: str | None


def register(
    output: str | Path,
    name: str,
    *,
    docs: str | Path | None = None,
    queries: str | Path | None = None,
    qrels: str | Path | None = None,
    keep: bool = False,
) -> Any:
    """Makes the output of a cleaning a data set of ir_datasets: `ir_datasets.load("truerank/NAME")`.

    What the output does not hold comes from the data set of ir_datasets that was cleaned (`irds:ID`), or from the
    sources that you name. `documentation()` of the data set tells what was cleaned, with which command, version and
    options, and the hashes of what was read and written.

    Args:
        output: the folder of `collection clean`, or the file of `transfer clean` (judgments) or `leakage clean`
            (queries, of the training data or of the test set).
        name: of the data set, without "truerank/": small letters, digits, `-`, `_`, `.` and `/`.
        docs: the documents, a source.
        queries: the queries or topics, a source.
        qrels: the judgments, a source, for the output of `leakage clean`. Those of removed queries are left out.
        keep: also write it to `registry_file()`, where `restore` finds it in another process.

    Returns:
        The data set.

    Raises:
        InputError: no such output, or one that was changed after it was written; a source that cannot be read; the name
            stands for something else already.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(
            "name", f"'{name}' is not a name of a data set", "use small letters, digits, '-', '_', '.', '/'"
        )
    parts = _Parts(*(None if one is None else _absolute(one) for one in (output, docs, queries, qrels)))  # type: ignore[arg-type]
    made = _Cleaned.read(Path(output), parts)
    full, identity = f"{_PREFIX}{name}", digest([asdict(parts), made.manifest])
    if full not in ir_datasets.registry:
        ir_datasets.registry.register(full, made.dataset())
        _registered[full] = identity
    elif _registered.get(full) != identity:
        raise OptionError("name", f"'{full}' is another data set already", "choose another name")
    if keep:
        write_text(registry_file(), json.dumps({**_kept(), name: asdict(parts)}, indent=2, sort_keys=True) + "\n")
    return ir_datasets.load(full)


def restore() -> tuple[str, ...]:
    """Registers again what was registered with `keep`, for this process.

    Returns:
        The ids, such as "truerank/robust-clean".

    Raises:
        InputError: an output is gone, or was changed.
    """
    for name, parts in sorted(_kept().items()):
        register(name=name, **parts)
    return tuple(f"{_PREFIX}{name}" for name in sorted(_kept()))


def registry_file() -> Path:
    """The file of what was registered with `keep`: `TRUERANK_DATA`, else the user's data folder of the platform."""
    if chosen := os.environ.get("TRUERANK_DATA"):
        folder = Path(chosen).expanduser().absolute()
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support" / "truerank"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "truerank"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "truerank"
    return folder / "ir_datasets.json"


def _kept() -> dict[str, dict[str, Any]]:
    file = registry_file()
    if not file.exists():
        return {}
    found = json_file(file, "remove it, and register the data again")
    keys = {"output", "docs", "queries", "qrels"}
    if not isinstance(found, dict) or not all(isinstance(one, dict) and set(one) == keys for one in found.values()):
        raise InputError("not a list of registered data", "remove it, and register the data again", where=file)
    return found


def _absolute(source: str | Path) -> str:
    """A source that means the same in another folder."""
    spec = parse(str(source))
    if spec.scheme != "file":
        return str(source)
    return str(Path(spec.location).absolute()) + spec.spec.strip()[len(spec.location) :]


@dataclass(frozen=True)
class _Cleaned:
    """The output of a command as it was found: its main file, what that holds, and its manifest."""

    file: Path
    holds: str
    manifest: Mapping[str, Any]
    parts: _Parts

    @classmethod
    def read(cls, output: Path, parts: _Parts) -> _Cleaned:
        beside = output / "manifest.json" if output.is_dir() else output.with_name(f"{output.name}.manifest.json")
        remedy = "give the folder of 'collection clean', or the file of 'transfer clean' or 'leakage clean'"
        if not beside.is_file():
            raise InputError(f"no {beside.name} here", remedy, where=output)
        manifest = json_file(beside, remedy)
        command = manifest.get("command") if isinstance(manifest, dict) else None
        if command not in _COMMANDS:
            raise InputError(f"it was written by '{command}'", remedy, where=beside)
        written = manifest.get("artifacts", {})
        file = output
        if output.is_dir():
            mains = sorted(set(written) - _BESIDE)
            if len(mains) != 1:
                raise InputError("it names no file of judgments", remedy, where=beside)
            file = output / mains[0]
        if not file.is_file() or hash_file(file) != written.get(file.name):
            raise InputError("it was changed or moved after it was written", "clean the data again", where=file)
        holds = _COMMANDS[command]
        if parts.qrels and holds == "qrels":
            raise OptionError("qrels", f"the output of '{command}' has judgments itself", "leave it out")
        if parts.queries and holds == "queries":
            raise OptionError("queries", f"the output of '{command}' has queries itself", "leave it out")
        return cls(file, holds, manifest, parts)

    def dataset(self) -> Any:
        """The data set of ir_datasets; its sources are opened here, so that a fault shows at once."""
        origin = self._origin()
        components: list[Any] = [_Documentation(self, origin)]
        if docs := self.parts.docs:
            spec = parse(docs)
            components.append(ir_datasets.load(spec.location).docs_handler() if spec.scheme == "irds" else _Docs(spec))
        elif origin is not None and origin.has_docs():
            components.append(origin.docs_handler())
        queries: Any = None
        if self.holds == "queries":
            queries = _Queries(parse(str(self.file)), bool(self.manifest.get("options", {}).get("remove") == "test"))
        elif self.parts.queries:
            queries = _Queries(parse(self.parts.queries), True)
        elif origin is not None and origin.has_queries():
            queries = origin.queries_handler()
        components.append(queries)
        if self.holds == "qrels":
            components.append(_Qrels(parse(str(self.file)), origin))
        elif self.parts.qrels:
            components.append(_Qrels(parse(self.parts.qrels), origin, queries))
        elif origin is not None and origin.has_qrels():
            components.append(_Qrels(parse(f"irds:{origin.dataset_id()}"), origin, queries))
        return ir_datasets.Dataset(*components)

    def _origin_spec(self) -> SourceSpec | None:
        """The data set of ir_datasets that was cleaned."""
        roles = {"qrels"} if self.holds == "qrels" else {"train", "test"}
        for one in self.manifest.get("inputs", ()):
            if one.get("role") in roles and str(one.get("source")).startswith("irds:"):
                return parse(one["source"])
        return None

    def _origin(self) -> Any:
        spec = self._origin_spec()
        if spec is None:
            return None
        try:
            return ir_datasets.load(spec.location)
        except KeyError as error:
            raise InputError("ir_datasets has no such id", "register it first", where=spec.spec) from error


class _Documentation:
    """The provenance of a data set, as ir_datasets shows it."""

    def __init__(self, cleaned: _Cleaned, origin: Any) -> None:
        self._cleaned, self._origin = cleaned, origin

    def documentation(self) -> dict[str, Any]:
        """A name, a description, and under `provenance` the manifest of the cleaning."""
        manifest = self._cleaned.manifest
        read = ", ".join(str(one.get("source") or one.get("name")) for one in manifest.get("inputs", ()))
        description = (
            f"{self._cleaned.holds.capitalize()} cleaned with 'truerank {manifest['command']}' "
            f"(truerank {manifest['version']}) from {read}."
        )
        of_origin: dict[str, Any] = getattr(self._origin, "documentation", dict)()
        cited: dict[str, Any] = {key: of_origin[key] for key in ("bibtex_ids", "data_access") if key in of_origin}
        return {
            "pretty_name": f"{self._cleaned.file.name}, cleaned",
            "desc": description,
            **cited,
            "provenance": {**manifest, "file": str(self._cleaned.file)},
        }


class _Docs(BaseDocs):  # type: ignore[misc]
    """The documents of a source of truerank, streamed; a store for look-ups is built on first use."""

    def __init__(self, spec: SourceSpec) -> None:
        super().__init__()
        self._source = open_documents(spec, keep_empty=True)

    @ir_datasets.util.use_docstore  # type: ignore[untyped-decorator]
    def docs_iter(self) -> Iterator[TruerankDoc]:
        """The documents in the order of the source."""
        return (TruerankDoc(*document) for document in self._source)

    def docs_cls(self) -> type[TruerankDoc]:
        """The type of a document."""
        return TruerankDoc

    def _state(self) -> str:
        """What tells this state of the source from others without reading it: sizes and times of its files."""
        spec = self._source.spec
        if spec.scheme != "file":
            return self._source.fingerprint
        files = sorted(spec.path.rglob("*")) if spec.path.is_dir() else [spec.path]
        states = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return digest([spec.spec, states])

    @cached_property
    def _store(self) -> Any:
        return PickleLz4FullStore(
            path=f"{ir_datasets.util.home_path()}/truerank/{digest(self._state())[:16]}.pklz4",
            init_iter_fn=lambda: (TruerankDoc(*document) for document in self._source),
            data_cls=TruerankDoc,
            lookup_field="doc_id",
            index_fields=["doc_id"],
        )

    def docs_store(self) -> Any:
        """Documents by id; built from the source in the folder of ir_datasets on first use."""
        return self._store

    def docs_count(self) -> int:
        """How many documents there are; reads the source."""
        return int(self._store.count()) if self._store.built() else sum(len(block) for block in self._source.batches())


class _Queries(BaseQueries):  # type: ignore[misc]
    """The topics of a test set, with their fields, or the queries of training data, streamed."""

    def __init__(self, spec: SourceSpec, topics: bool) -> None:
        super().__init__()
        self._topics = read_topics(spec) if topics else None
        self._source = None if topics else open_queries(spec)

    def queries_iter(self) -> Iterator[Any]:
        """The queries in the order of the source."""
        if self._topics is not None:
            cls = self.queries_cls()
            for topic in self._topics.topics:
                yield cls(*topic[: len(cls._fields)])
        elif self._source is not None:
            for query in self._source:
                yield GenericQuery(query.query_id, query.text)

    def queries_cls(self) -> Any:
        """GenericQuery, or TrecQuery where topics have more than a title."""
        fields = () if self._topics is None else self._topics.fields
        return TrecQuery if {"description", "narrative"} & set(fields) else GenericQuery


class _Qrels(BaseQrels):  # type: ignore[misc]
    """Judgments of a source of truerank, of those queries only that a data set has."""

    def __init__(self, spec: SourceSpec, origin: Any, queries: Any = None) -> None:
        super().__init__()
        self._spec, self._queries = spec, queries
        self._defined = origin.qrels_defs() if origin is not None and origin.has_qrels() else {}
        next(read_qrels(spec), None)  # a fault shows here

    @cached_property
    def _kept(self) -> frozenset[str] | None:
        return None if self._queries is None else frozenset(one.query_id for one in self._queries.queries_iter())

    @cached_property
    def _grades(self) -> list[int]:
        return sorted({one.relevance for one in self.qrels_iter()})

    def qrels_iter(self) -> Iterator[TrecQrel]:
        """The judgments in the order of the source."""
        for one in read_qrels(self._spec):
            if self._kept is None or one.topic_id in self._kept:
                yield TrecQrel(*one)

    def qrels_cls(self) -> Any:
        """The type of a judgment."""
        return TrecQrel

    def qrels_defs(self) -> dict[int, str]:
        """What the grades mean: as the cleaned data set says it; empty texts where nobody said it."""
        return dict(self._defined or dict.fromkeys(self._grades, ""))

    def qrels_path(self) -> Path:
        """The file of the judgments, before those of other queries are left out."""
        return self._spec.path
