"""Values of a notebook in place of sources: frames, mappings, lists and objects of ranx, for every option."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path, PurePath
from typing import Any, Final, Literal, get_args

import polars as pl

from truerank.errors import InputError, OptionError
from truerank.options import adopter
from truerank.sources.grammar import ENDINGS, Scheme
from truerank.sources.pair_tables import conforming, is_missing, polars_frame, renamed
from truerank.sources.qrels import QREL_SCHEMA
from truerank.sources.runs import RUN_SCHEMA, read_run_frame


def of_ranx(value: object) -> bool:
    """Whether a value is a `Qrels` or a `Run` of ranx: neither frame nor mapping, but with a `to_dict`."""
    return (
        not isinstance(value, Mapping | type)
        and callable(getattr(value, "to_dict", None))
        and not (hasattr(value, "columns") or hasattr(value, "column_names"))
    )


def is_single(value: object) -> bool:
    """Whether a value is one run, and not runs by name: a frame, scores by topic and document, or records."""
    if _is_frame(value) or of_ranx(value):
        return True
    if isinstance(value, list | tuple | Iterator):
        return isinstance(value, Iterator) or (bool(value) and all(_is_record(one) for one in value))
    if not isinstance(value, Mapping) or not value:
        return False
    inner = next(iter(value.values()))
    return isinstance(inner, Mapping) and all(isinstance(score, Real) for score in inner.values())


def frame_of(value: Any, schema: Mapping[str, Any], number: str) -> pl.DataFrame:
    """A frame of judgments or of a run."""
    if _is_frame(value):
        return renamed(polars_frame(value), schema)
    if of_ranx(value):
        value = value.to_dict()
    try:
        if isinstance(value, Mapping):
            rows = [(topic, doc, one) for topic, documents in value.items() for doc, one in documents.items()]
            wanted = {"topic_id": pl.String, "doc_id": pl.String, number: schema[number]}
            fraction = schema[number].is_integer() and any(isinstance(one, Real) and one % 1 for *_, one in rows)
            held = wanted | ({number: pl.Float64} if fraction else {})
            where = "the run" if number == "score" else "the qrels"
            return conforming(pl.DataFrame(rows, schema=held, orient="row"), wanted, where)
        rows = list(value)
        if rows and all(_is_record(row) for row in rows):
            return _of_records(rows, schema)
        return pl.DataFrame([tuple(row)[: len(schema)] for row in rows], schema=dict(schema), orient="row")
    except (TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        remedy = f"give a source, a frame with {', '.join(schema)}, or {{topic: {{document: {number}}}}}"
        raise InputError(f"cannot read a {type(value).__name__}", remedy) from error


def _is_record(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _of_records(rows: Sequence[Any], schema: Mapping[str, Any]) -> pl.DataFrame:
    """A frame of records that name their fields as truerank or another program does, such as those of ir_measures."""
    fields = type(rows[0])._fields
    if any(type(row)._fields != fields for row in rows):
        raise InputError("records of several kinds", "give records of one kind")
    frame = renamed(
        pl.DataFrame({name: [row[place] for row in rows] for place, name in enumerate(fields)}, strict=False), schema
    )
    return frame.cast({name: kind for name, kind in schema.items() if name in frame.columns})


Noun = Literal["texts", "documents", "qrels", "run"]

#: What the options of sources hold, by their names; other options take sources only.
NOUNS: Final[Mapping[str, Noun]] = {
    **dict.fromkeys(("train", "queries", "test", "topics", "train_queries"), "texts"),
    **dict.fromkeys(
        ("docs", "previous", "later", "version", "test_docs", "train_docs", "queries_from_documents", "collection"),
        "documents",
    ),
    **dict.fromkeys(("qrels", "train_qrels", "also_qrels", "sparse_qrels", "expert_qrels", "official"), "qrels"),
    **dict.fromkeys(("run", "first_stage", "test_run"), "run"),
}
#: The folder of this process, once it is needed.
_folders: list[Path] = []
_folder_lock: Final = threading.Lock()
#: Keys of a topic or document that is a mapping itself.
_FIELDS: Final = frozenset(
    ("title", "description", "narrative", "variants", "text", "query", "body", "url", "contents", "headline")
)
_SHOWN: Final[Mapping[Noun, str]] = {
    "texts": "texts by id, a list of texts, or a frame with id and text",
    "documents": "texts by id, a list of texts, or a frame with id and text",
    "qrels": "grades by topic and document, or a frame with topic_id, doc_id and relevance",
    "run": "scores by topic and document, or a frame with topic_id, doc_id and score; or such by name",
}


@adopter
def source_of(name: str, value: Any, *, several: bool, by_name: bool) -> Any:
    """What an option reads in place of a value of a program.

    Args:
        name: of the option.
        value: what was given: sources, which stay as they are, or a value.
        several: the option takes several sources.
        by_name: it takes a mapping of names to sources itself.

    Returns:
        Sources of the grammar; a value becomes a file.

    Raises:
        OptionError: it is none of what the option takes.
    """
    noun = NOUNS.get(name)
    if noun is None or isinstance(value, str | Path) or value is None:
        if (isinstance(value, Mapping) and not by_name) or _is_frame(value):
            raise OptionError(name, f"cannot read a {type(value).__name__}", "give a path or an id")
        paths = isinstance(value, list | tuple) and any(isinstance(one, Path) for one in value)
        return tuple(map(_spelled, value)) if paths else _spelled(value)
    if by_name and isinstance(value, Mapping):
        return {key: _placed(name, noun, str(key), one) for key, one in value.items()}
    if isinstance(value, list | tuple) and all(isinstance(one, str | Path) for one in value):
        if several and not _are_texts(name, noun, value):
            return type(value)(map(_spelled, value))
    elif _is_list_of_values(noun, value):
        names = [name] if len(value) == 1 else [f"{name} {number}" for number in range(1, len(value) + 1)]
        return tuple(_placed(name, noun, called, one) for called, one in zip(names, value, strict=True))
    elif _is_by_name(noun, value):
        # A run of a file becomes a frame, so that it can have the name that it was given.
        runs = (read_run_frame(str(one)) if isinstance(one, str | Path) else one for one in value.values())
        made = tuple(_written(name, noun, str(key), one) for key, one in zip(value, runs, strict=True))
        if not several and len(made) > 1:
            raise OptionError(name, f"one source was expected, got {len(made)}", "give one")
        return made if several else made[0]
    one = _written(name, noun, name, value)
    return (one,) if several else one


def _spelled(value: Any) -> Any:
    """A path as text, as the grammar of sources takes it."""
    return str(value) if isinstance(value, Path) else value


def _placed(option: str, noun: Noun, name: str, value: Any) -> str:
    """A source as it is, or the file of a value."""
    return str(value) if isinstance(value, str | Path) else _written(option, noun, name, value)


def _is_frame(value: Any) -> bool:
    """Whether a value is a frame of Polars or pandas, or a data set of Hugging Face."""
    return isinstance(value, pl.DataFrame | pl.LazyFrame) or hasattr(value, "columns") or hasattr(value, "column_names")


def _are_texts(name: str, noun: Noun, values: Sequence[str | Path]) -> bool:
    """Whether strings are texts, and not paths or ids of sources; texts are recognised by their blanks."""
    if noun not in ("texts", "documents"):
        return False
    sources = [value for value in values if _is_source(value)]
    texts = [str(value) for value in values if value not in sources and len(str(value).split()) > 1]
    # A question may end like the name of a file; what exists, and what has no blanks, is none.
    sure = any(isinstance(value, Path) or len(value.split()) < 2 or _exists(value) for value in sources)
    if texts and sure:
        raise OptionError(name, f"'{texts[0][:40]}' is not a source, others are", "give sources, or a list of texts")
    return bool(texts)


def _exists(text: str) -> bool:
    """Whether a path is there, also one with a name before it: NAME=PATH; never true for texts that no path can be."""
    return os.path.exists(text) or os.path.exists(text.partition("=")[2])  # noqa: PTH110


def _is_source(value: str | Path) -> bool:
    text = str(value)
    if isinstance(value, Path) or text.partition(":")[0] in get_args(Scheme):
        return True
    bare = text.partition("?")[0].partition("#")[0]
    return PurePath(bare).suffix.lower() in ENDINGS or _exists(text)


def _is_list_of_values(noun: Noun, value: Any) -> bool:
    """Whether a list holds sources or whole values, such as two frames."""
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(one, str | Path) or _is_frame(one) or (noun == "run" and is_single(one)) for one in value)
    )


def _is_by_name(noun: Noun, value: Any) -> bool:
    """Whether a mapping holds several runs, or several sets of texts, by their names."""
    if not isinstance(value, Mapping) or not value or noun == "qrels":
        return False
    if noun == "run":
        return not is_single(value)
    return all(
        _is_frame(one) or isinstance(one, list | tuple)
        or (isinstance(one, Mapping) and not _FIELDS & {str(key) for key in one})
        for one in value.values()
    )  # fmt: skip


def _written(option: str, noun: Noun, name: str, value: Any) -> str:
    """Writes a value to a file whose name is that of the option, or of the value; returns its path."""
    try:
        if noun in ("texts", "documents"):
            ending, lines = "jsonl", [json.dumps(one, ensure_ascii=False, default=_plain) for one in _records(value)]
        else:
            ending, lines = noun.removesuffix("s") + ("s" if noun == "qrels" else ""), list(_table(noun, value))
    except (InputError, TypeError, ValueError, KeyError, AttributeError, pl.exceptions.PolarsError) as error:
        kind = type(value).__name__
        within = f" of {next(iter(value.values())).__class__.__name__}" if isinstance(value, Mapping) and value else ""
        fault = error.fault if isinstance(error, InputError) else f"cannot read a {kind}{within}"
        raise OptionError(option, fault, f"give a path, an id, {_SHOWN[noun]}") from error
    if not lines:
        raise OptionError(option, f"the {type(value).__name__} is empty", f"give {_SHOWN[noun]}")
    content = "".join(f"{line}\n" for line in lines).encode()
    folder = _folder() / hashlib.sha256(content).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    # Names of files have 255 bytes at most.
    path = folder / f"{name.replace('/', '-').encode()[:240].decode(errors='ignore')}.{ending}"
    # Another thread, or a process that was forked, may read or write what has the same content.
    if not path.exists():
        draft = folder / f".{os.getpid()}-{threading.get_ident()}"
        draft.write_bytes(content)
        draft.replace(path)
    return str(path)


def _plain(value: Any) -> Any:
    """A value that JSON does not know, such as a date or a number of NumPy, in a column that may not be asked for."""
    return value.item() if hasattr(value, "item") else str(value)


def _records(value: Any) -> Iterator[dict[str, Any]]:
    """Texts and documents as objects with an id."""
    if _is_frame(value):
        rows: Iterable[Any] = polars_frame(value).iter_rows(named=True)
    elif isinstance(value, Mapping):
        rows = ({"_id": str(key), **_fields_of(one)} for key, one in value.items())
    elif isinstance(value, list | tuple):
        rows = (_record(number, one) for number, one in enumerate(value, start=1))
    else:
        raise TypeError(type(value).__name__)
    for row in rows:
        yield {str(key): one for key, one in row.items() if not is_missing(one)}


def _fields_of(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, str | Mapping):
        raise TypeError(type(value).__name__)
    return value if isinstance(value, Mapping) else {"text": value}


def _record(number: int, one: Any) -> Mapping[str, Any]:
    if isinstance(one, str):
        return {"_id": str(number), "text": one}
    if isinstance(one, Mapping):
        return one
    if hasattr(one, "_asdict"):
        return {"_id" if key.endswith("_id") else key: value for key, value in one._asdict().items()}
    identifier, text = one
    return {"_id": str(identifier), **_fields_of(text)}


def _table(noun: Noun, value: Any) -> Iterator[str]:
    """The lines of qrels or of a run."""
    schema, number = (QREL_SCHEMA, "relevance") if noun == "qrels" else (RUN_SCHEMA, "score")
    frame = frame_of(value, schema, number)
    lacking = [name for name in ("topic_id", "doc_id", number) if name not in frame.columns]
    if lacking:
        raise InputError(f"no column '{lacking[0]}'; there are {', '.join(frame.columns[:12])}", "name it so")
    frame = frame.select(pl.col("topic_id", "doc_id").cast(pl.String), pl.col(number))
    if frame.select((pl.col("topic_id") + pl.col("doc_id")).str.contains(r"\s").any()).item():
        raise InputError("an id holds a blank", "replace the blanks in ids")
    if noun == "run":
        frame = frame.sort(pl.col("topic_id").rank("dense"), -pl.col(number), maintain_order=True)
        places = pl.int_range(1, pl.len() + 1).over("topic_id")
        for topic, document, score, place in frame.with_columns(place=places).iter_rows():
            yield f"{topic} Q0 {document} {place} {float(score)!r} given"
    else:
        for topic, document, grade in frame.iter_rows():
            yield f"{topic} 0 {document} {int(grade)}"


def is_given(path: Path) -> bool:
    """Whether a file holds a value of the caller's program."""
    return any(folder in path.parents for folder in _folders)


def _folder() -> Path:
    """The folder of this process, and of those that it forks, for values; it goes with the process that made it."""
    with _folder_lock:
        if not _folders:
            folder = Path(tempfile.mkdtemp(prefix="truerank-values-"))
            # Imported here: no command waits for it. Unlike `atexit`, it is for this process and not for those that it
            # forks, waits for them, and is called where `multiprocessing` ends one.
            from multiprocessing.util import Finalize

            Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-1)
            _folders.append(folder)
    return _folders[0]


def _before_fork() -> None:
    """Makes the folder that forked processes use: pools kill theirs, which then remove nothing."""
    with contextlib.suppress(OSError):
        _folder()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
