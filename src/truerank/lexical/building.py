"""Building an index: documents analysed block by block, sorted run by run, merged on disk, moved into place whole."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.errors import InputError, OptionError
from truerank.lexical.analysis import Analyser
from truerank.lexical.index import FORMAT_VERSION, KIND, Block, BlockTask, Index, IndexField, RunBuffer
from truerank.lexical.merging import StoredRun, StringFile, merge_runs, store_run
from truerank.lexical.presets import DEFAULT_PRESET, PresetName, analyser_of
from truerank.options import Flag, Options, Processes, command
from truerank.records import Document
from truerank.sources.documents import DocumentSource, open_documents
from truerank.work.artifacts import hash_file, installed_versions, place_of
from truerank.work.engines import LocalEngine, give_back, in_order
from truerank.work.progress import Progress, Quiet

__all__ = ["AnalysisOptions", "build_index", "index", "move_folder", "temporary_folder"]

#: A run is sorted and written once it holds so many postings (about 200 MB with what sorting needs) or terms.
RUN_POSTINGS: Final = 1 << 22
RUN_TERMS: Final = 1 << 20
TokeniserName = Literal["lucene", "alphanumeric", "letters", "terrier", "whitespace"]
StemmerName = Literal["none", "porter", "english", "krovetz"]


@dataclass(frozen=True)
class AnalysisOptions(Options):
    """How texts become terms.

    Attributes:
        preset: whose analyser is used.
        tokeniser: in place of the preset's tokeniser.
        stopwords: in place of the preset's list.
        stemmer: in place of the preset's stemmer.
    """

    preset: PresetName = DEFAULT_PRESET
    tokeniser: TokeniserName | None = None
    stopwords: Annotated[str | None, Flag(metavar="none|lucene|grammar|FILE")] = None
    stemmer: StemmerName | None = None


def build_index(
    source: str | DocumentSource,
    out: str | Path,
    *,
    analyser: Analyser | None = None,
    fields: Sequence[str] = ("contents",),
    workers: int = 1,
    strict: bool = False,
    run_postings: int = RUN_POSTINGS,
    progress: Progress | None = None,
) -> Index:
    """Builds an index of a collection; the same collection and analyser give the same bytes.

    Documents are streamed, and terms and postings are sorted in runs on the disk, so that the memory needed grows with
    the number of documents only (by about 60 bytes each). The index appears whole or not at all; one that stands
    there already is replaced when the new one is complete.

    Args:
        source: the documents, see `sources.open_documents`.
        out: the folder of the index.
        analyser: how texts become terms; default: as Anserini does.
        fields: `contents` (title and body), `title`, `body`, `url`, or NAME=PART+PART.
        workers: processes that analyse documents.
        strict: bytes that are not UTF-8 are an error.
        run_postings: how many postings are sorted at once.
        progress: is told how many documents are done.

    Returns:
        The index, opened.

    Raises:
        InputError: a fault in the documents, an id that stands twice or holds a blank, no document with a term, fields
            of one name, or a folder that holds something else.
    """
    documents = open_documents(source, strict=strict) if isinstance(source, str) else source
    parts = tuple(IndexField.parse(text) for text in fields)
    if len({part.name for part in parts}) != len(parts) or not parts:
        raise OptionError("fields", "fields need different names", "name each field once")
    target, told = Path(out).absolute(), progress or Quiet()
    _refuse_other(target)
    with temporary_folder(target) as folder:
        task = BlockTask(analyser or Analyser(), parts)
        told.start("indexing", None)
        runs, lengths = _sort_blocks(_blocks(task, documents, workers), folder, run_postings, told, documents)
        if not sum(run.postings for run in runs):
            raise InputError(
                "no document has a term", "check the analyser and the fields", where=documents.spec.location
            )
        told.start("merging", None)
        merge_runs(runs, folder, len(parts))
        np.save(folder / "documents.lengths.npy", lengths)
        _write_order(folder, documents)
        _write_manifest(folder, documents, task)
        move_folder(folder, target)
    give_back()
    return Index(target)


@command
def index(
    source: Annotated[str | DocumentSource, Flag(metavar="SRC", positional=True, reads=str)],
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    *,
    analysis: AnalysisOptions = AnalysisOptions(),
    fields: Annotated[str, Flag(metavar="NAME[=PART+PART],…")] = "contents",
    workers: Processes = 1,
    strict: bool = False,
    progress: Progress | None = None,
) -> Index:
    """Builds an index of a collection of documents.

    Postings are sorted on the disk, so that memory does not grow with them. The index appears whole or not at all.

    Args:
        source: documents: a path, irds:ID or hf:ORG/NAME.
        out: the folder of the index.
        analysis: how texts become terms.
        fields: fields of the index, made of url, title and body; contents is title+body.
        workers: processes that analyse documents.
        strict: bytes that are not UTF-8 are an error.
        progress: is told how many documents are done.

    Returns:
        The index, opened.

    Raises:
        InputError: as in `build_index`, or an analyser that does not exist.

    Examples:

        truerank index docs.trec.gz --out index/

        truerank index irds:msmarco-document --fields url,title,body --out index/

        truerank index corpus.jsonl --preset terrier --stopwords terrier.txt --out index/
    """
    own = asdict(analysis)
    analyser = analyser_of(own.pop("preset"), **own)
    names = fields.split(",")
    return build_index(source, out, analyser=analyser, fields=names, workers=workers, strict=strict, progress=progress)


class _Documents(NamedTuple):
    """Consecutive documents, the first of which has the number `first`."""

    number: int
    first: int
    documents: list[Document]


class _Analysis(NamedTuple):
    """Analyses documents; a worker process remembers the terms of words between blocks."""

    task: BlockTask

    def open(self) -> Callable[[_Documents], Block]:
        """The function that does it."""
        return lambda block: self.task(block.first, block.documents)


def _blocks(task: BlockTask, documents: DocumentSource, workers: int) -> Iterator[Block]:
    """The analysed blocks in order."""

    def numbered() -> Iterator[_Documents]:
        first = 0
        for number, block in enumerate(documents.batches()):
            yield _Documents(number, first, block)
            first += len(block)

    yield from in_order(LocalEngine(workers if workers > 1 else 0).run(_Analysis(task), numbered()))


def _sort_blocks(
    blocks: Iterable[Block], folder: Path, run_postings: int, told: Progress, documents: DocumentSource
) -> tuple[list[StoredRun], Any]:
    """Writes the runs and the ids; returns the runs and the lengths, shape (documents, fields)."""
    runs: list[StoredRun] = []
    lengths: list[Any] = []
    buffer, first, seen = RunBuffer(), 0, 0

    def close() -> None:
        nonlocal buffer, first
        if seen > first:
            runs.append(store_run(buffer.sorted(), folder / f"run-{len(runs)}", first, seen - first))
            buffer, first = RunBuffer(), seen

    with StringFile(folder, "documents") as ids:
        for block in blocks:
            ids.write(_checked(block.ids, documents))
            buffer.add(block)
            lengths.append(block.lengths)
            seen += len(block.ids)
            told.advance(len(block.ids))
            if buffer.size >= run_postings or len(buffer.numbers) >= RUN_TERMS:
                close()
    if not seen:
        raise InputError("no document with a text", "check the source", where=documents.spec.location)
    close()
    return runs, np.concatenate(lengths)


def _checked(ids: list[str], documents: DocumentSource) -> list[str]:
    """The ids, if they can stand in a run."""
    for identifier in ids:
        if identifier.split() != [identifier]:
            raise InputError(
                f"the id '{identifier}' holds a blank, which a run cannot hold" if identifier else "an empty id",
                "give every document an id of one word",
                where=documents.spec.location,
            )
    return ids


def kept_index(source: str, folder: Path, analyser: Analyser, progress: Progress) -> Index:
    """The index that unfinished work keeps; built where it is not there, or not as it was built."""
    try:
        index = Index(folder)
        if index.is_intact():
            return index
    except InputError:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    return build_index(source, folder, analyser=analyser, progress=progress)


def _write_order(folder: Path, documents: DocumentSource) -> None:
    """Where each document stands among all by the order of ids; an id that stands twice is found here at the latest."""
    ids = pl.concat(StringFile.read(folder, "documents"))
    order = ids.arg_sort().to_numpy()
    ordered = ids.gather(order)
    same = np.flatnonzero((ordered[1:] == ordered[:-1]).to_numpy())
    if len(same):
        raise InputError(
            f"the id '{ordered[int(same[0])]}' stands twice (the other time with the document number "
            f"{order[same[0] + 1] + 1})",
            "give every document an id of its own",
            where=documents.spec.location,
        )
    ranks = np.empty(len(ids), np.int32)
    ranks[order] = np.arange(len(ids), dtype=np.int32)
    np.save(folder / "documents.ranks.npy", ranks)


def _write_manifest(folder: Path, documents: DocumentSource, task: BlockTask) -> None:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    manifest = {
        "kind": KIND,
        "version": FORMAT_VERSION,
        "versions": installed_versions("truerank", "PyStemmer", "krovetzstemmer"),
        "source": {"name": documents.spec.spec, "fingerprint": documents.fingerprint, **asdict(documents.counts)},
        "analyser": task.analyser.json(),
        "fields": {part.name: list(part.parts) for part in task.fields},
        "files": {path.name: {"bytes": path.stat().st_size, "sha256": hash_file(path)} for path in files},
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def _refuse_other(target: Path) -> None:
    """Lets an index be replaced, and an empty folder be filled."""
    if target.is_dir() and any(target.iterdir()) and not Index.is_index(target):
        raise InputError("the folder holds something that is no index", "choose another with `out`", where=target)
    if target.exists() and not target.is_dir():
        raise InputError("a file stands there", "choose another name with `out`", where=target)


@contextlib.contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that is gone afterwards; those that killed builds left behind are removed."""
    folder = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for stale in target.parent.glob(f".{target.name}.*.tmp"):
            owner = re.fullmatch(r".*\.(\d+)(\.old)?\.tmp", stale.name)
            if owner is None or _runs(int(owner[1])):
                continue
            if owner[2] and not target.exists():
                stale.rename(target)  # killed between moving the old index away and the new one into its place
            shutil.rmtree(stale, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    except OSError as error:
        raise InputError(
            f"cannot be written to ({error.strerror})", "choose another folder with `out`", where=target
        ) from error
    try:
        with place_of(target):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process != os.getpid()


def move_folder(folder: Path, target: Path) -> None:
    """Gives a temporary folder its name, in place of what stands there."""
    old = folder.with_suffix(".old.tmp")
    if target.exists():
        target.rename(old)
    folder.rename(target)
    shutil.rmtree(old, ignore_errors=True)
