"""What a collection is compared by: for each document its id, hashes of its text and words, and its shingles.

Documents are read once, in blocks, and not needed again. A folder of blocks can be kept and compared with others.
"""

from __future__ import annotations

import hashlib
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import polars as pl

from truerank.arrays import Hashes, among
from truerank.errors import InputError
from truerank.near_duplicates.results import BOILERPLATE
from truerank.near_duplicates.shingles import Numbers, Shingles, TextShingles, runs_of, shingled, windows_of
from truerank.records import Document
from truerank.text.normalising import normalise
from truerank.work.artifacts import digest
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.jobs import Job
from truerank.work.kept import forget_all, keep_json, keep_text, kept_json, kept_text

#: What fewer documents share is not boilerplate, however small the collection.
_LEAST: Final = 10
#: Passages that a block names, the most frequent first.
_MOST: Final = 1000

PASSAGES: Final[Any] = pl.List(pl.Struct({"passage": pl.String, "windows": pl.List(pl.UInt64)}))


class BlockPassages(NamedTuple):
    """The windows of a block that several documents hold, how many, and passages of the most frequent ones."""

    windows: Hashes
    documents: Numbers
    passages: list[dict[str, Any]]


def block_passages(texts: Sequence[str], found: TextShingles, share: float) -> BlockPassages:
    owner = np.repeat(np.arange(len(texts)), np.diff(found.window_starts))
    # Documents with the same words are duplicates, and what they share is not boilerplate.
    first = np.zeros(len(texts), np.bool_)
    first[np.unique(found.sequences, return_index=True)[1]] = True
    windows, owner = found.windows[first[owner]], owner[first[owner]]
    # Few are there twice: to sort numbers is many times faster than to find their order.
    ordered = np.sort(windows)
    twice = among(windows, np.unique(ordered[1:][ordered[1:] == ordered[:-1]]))
    windows, owner = windows[twice], owner[twice]
    order = np.lexsort((owner, windows))
    windows, owner = windows[order], owner[order]
    # Once in a document.
    new = np.ones(len(windows), np.bool_)
    new[1:] = (windows[1:] != windows[:-1]) | (owner[1:] != owner[:-1])
    windows, owner = windows[new], owner[new]
    bounds = runs_of(windows)
    documents = np.diff(bounds)
    several = np.flatnonzero(documents >= 2)
    shared, documents, holder = windows[bounds[several]], documents[several], owner[bounds[several]]
    frequent = np.flatnonzero(documents >= max(2, share * len(texts)))
    frequent = frequent[np.argsort(-documents[frequent], kind="stable")][:_MOST]
    passages = [
        passage
        for text in np.unique(holder[frequent]).tolist()
        for passage in _passages(texts[text], shared[frequent[holder[frequent] == text]])
    ]
    return BlockPassages(shared, documents, passages)


def _passages(text: str, wanted: Hashes) -> Iterable[dict[str, Any]]:
    found = windows_of(text)
    places = np.flatnonzero(np.isin(found.windows, wanted))
    cuts = np.flatnonzero(np.diff(places) > 1) + 1
    for part in np.split(places, cuts):
        if len(part):
            begin, end = found.begins[part[0]], found.ends[part[-1]]
            yield {"passage": " ".join(found.text[begin:end].split()), "windows": found.windows[part].tolist()}


def boilerplate(blocks: Callable[[], Iterable[BlockPassages]], documents: int, share: float) -> pl.DataFrame:
    """The passages that a share of all documents holds."""
    passages = [passage for block in blocks() for passage in block.passages]
    wanted = np.unique(np.array([each for passage in passages for each in passage["windows"]], np.uint64))
    if not len(wanted):
        return pl.DataFrame(schema=BOILERPLATE)
    total = np.zeros(len(wanted), np.int64)
    for block in blocks():
        place = np.minimum(np.searchsorted(wanted, block.windows), len(wanted) - 1)
        there = wanted[place] == block.windows
        total[place[there]] += block.documents[there]
    counted = []
    for number, passage in enumerate(passages):
        at = np.searchsorted(wanted, np.array(passage["windows"], np.uint64))
        counted.append((-int(total[at].min()), -len(at), number, at))
    rows, text = [], np.zeros(len(wanted), np.bool_)
    for negative, _, number, at in sorted(counted, key=lambda one: one[:3]):
        if -negative < max(_LEAST, share * documents) or text[at].mean() > 0.5:
            continue
        text[at] = True
        rows.append((passages[number]["passage"], -negative, -negative / documents))
    return pl.DataFrame(rows, BOILERPLATE, orient="row")


#: Documents, or pairs of id and text.
Documents: TypeAlias = Iterable[Document | tuple[str, str]]

_FORMAT: Final = 3
_MANIFEST: Final = "sketches.json"
_WORK: Final = "work.sha256"
#: A block ends with this many documents or characters.
_DOCUMENTS: Final = 1 << 14
_CHARACTERS: Final = 1 << 23
_SCHEMA: Final[dict[str, Any]] = {
    "document_id": pl.String,
    "text": pl.UInt64,
    "sequence": pl.UInt64,
    "words": pl.UInt32,
    "size": pl.UInt32,
    "shingles": pl.Binary,
}
#: What a block has as a whole is in its first row.
_OF_BLOCK: Final[dict[str, Any]] = {"windows": pl.Binary, "documents": pl.Binary, "passages": PASSAGES}
#: Numbers in files, whatever the machine.
_HASH: Final = np.dtype("<u8")
_COUNT: Final = np.dtype("<i8")


class _Block(NamedTuple):
    number: int
    ids: list[str]
    texts: list[str]


class ExtraColumns(Protocol):
    """Columns that are kept beside the sketches, made of the same texts while they are at hand; must be picklable."""

    @property
    def identity(self) -> Mapping[str, str | int]:
        """What the columns depend on beside the texts."""

    def __call__(self, texts: Sequence[str]) -> Mapping[str, pl.Series]:
        """The columns of a block, one value for each text."""


@dataclass(frozen=True)
class Sketches:
    """A collection as it is compared; made by `keep`.

    Attributes:
        folder: where its blocks lie.
        options: what a shingle is, and `boilerplate`; other thresholds do not matter here.
        sizes: documents in each block.
        shingles: in all documents together.
        empty: documents without words.
        columns: which columns hold the shingles and how many there are: others where a second kind is kept beside.
    """

    folder: Path
    options: Shingles
    sizes: tuple[int, ...]
    shingles: int
    empty: int
    columns: tuple[str, str] = ("shingles", "size")

    def __len__(self) -> int:
        return sum(self.sizes)

    def column(self, block: int, name: str) -> Any:
        """A column of numbers of a block: `text` (a hash; 0 for an empty one), `sequence` (a hash of the words; 0
        without words), `words` or `size` (how many words and distinct shingles)."""
        name = self.columns[1] if name == "size" else name
        return self.load(block, name)[name].to_numpy()

    def ids(self, block: int) -> pl.Series:
        """The ids of a block."""
        return self.load(block, "document_id")["document_id"]

    def shingles_of(self, block: int) -> Hashes:
        """The shingles of a block, one document after the other, ascending in each."""
        return np.frombuffer(b"".join(self.load(block, self.columns[0])[self.columns[0]]), _HASH)

    def all_passages(self) -> Iterator[BlockPassages]:
        """The windows that documents of each block share."""
        for block in range(len(self.sizes)):
            windows, documents, passages = self.load(block, *_OF_BLOCK).row(0)
            yield BlockPassages(np.frombuffer(windows, _HASH), np.frombuffer(documents, _COUNT), passages)

    def load(self, block: int, *names: str) -> pl.DataFrame:
        """Some columns of a block."""
        return BlockStore(self.folder).load(block, names)


def keep(documents: Documents, options: Shingles, job: Job, extra: ExtraColumns | None = None) -> Sketches:
    """Makes and keeps what a collection is compared by; about 10 bytes for each word.

    Args:
        documents: the documents, or pairs of id and text; a stream that is read once.
        options: what a shingle is.
        job: the folder that keeps it, what runs the work, and whom it tells; a killed job continues.
        extra: makes columns that are kept beside the sketches.

    Returns:
        The sketches, which `within` and `between` take in place of documents.

    Raises:
        InputError: the folder has sketches of other shingles; a worker died.
    """
    store = BlockStore(job.folder)
    identity = {**_identity(options), **({} if extra is None else extra.identity)}
    claim(job.folder, identity)
    job.progress.start("reading documents")
    count = run_blocks(_SketchTask(options, extra), _told(_blocks(documents), job), store, job.engine)
    return _finished(store, options, identity, count)


def keep_changed(
    base: Sketches, changed: Iterable[Mapping[int, str]], job: Job, extra: ExtraColumns | None = None
) -> Sketches:
    """Keeps what a collection is compared by where some of its texts are others now; only these are made anew."""
    store = BlockStore(job.folder)
    identity = {**_identity(base.options), **({} if extra is None else extra.identity)}
    claim(job.folder, identity)
    job.progress.start("taking boilerplate off")
    blocks = (_Changed(number, texts) for number, texts in enumerate(changed))
    count = run_blocks(_ChangeTask(base, extra), blocks, store, job.engine)
    return _finished(store, base.options, identity, count)


def _finished(store: BlockStore, options: Shingles, identity: Mapping[str, Any], count: int) -> Sketches:
    sizes, shingles, empty = [], 0, 0
    for number in range(count):
        frame = store.load(number, ["words", "size"])
        sizes.append(len(frame))
        shingles += int(frame["size"].sum())
        empty += int((frame["words"] == 0).sum())
    found = {"sizes": sizes, "shingles": shingles, "empty": empty}
    keep_json(store.folder / _MANIFEST, {**identity, **found})
    return Sketches(store.folder, options, tuple(sizes), shingles, empty)


def claim(folder: Path, identity: Mapping[str, Any]) -> None:
    """Marks a folder as that of one work."""
    path, mark = folder / _WORK, digest(identity)
    known = kept_text(path)
    if known is None:
        if path.is_file():
            # Nobody knows whose work this is.
            forget_all([folder])
        keep_text(path, mark)
    elif known != mark:
        raise InputError("work with other documents or options", "give each work a folder of its own", where=folder)


def open_sketches(folder: Path, options: Shingles, extra: ExtraColumns | None = None) -> Sketches:
    """Opens what `keep` has kept.

    Args:
        folder: where it lies.
        options: what a shingle is.
        extra: what makes the columns beside the sketches, where there are any.

    Raises:
        InputError: nothing there, damaged, or made with other shingles or another version.
    """
    kept, store = kept_json(folder / _MANIFEST), BlockStore(folder)
    if kept is None:
        raise InputError("no sketches here", "keep them first, or let the work finish", where=folder)
    if not all(map(store.has, range(len(kept["sizes"])))):
        raise InputError("damaged sketches", "keep them again", where=folder)
    for name, value in {**_identity(options), **({} if extra is None else extra.identity)}.items():
        if kept.get(name) != value:
            raise InputError(f"made with {name} {kept.get(name)}, not {value}", "make them again", where=folder)
    return Sketches(folder, options, tuple(kept["sizes"]), kept["shingles"], kept["empty"])


def _identity(options: Shingles) -> dict[str, Any]:
    """All that sketches depend on beside the documents."""
    return {
        "format": _FORMAT,
        "shingle_unit": options.shingle_unit,
        "shingle_size": options.shingle_size,
        "boilerplate": options.boilerplate,
        "unicode": unicodedata.unidata_version,
    }


def _blocks(documents: Documents) -> Iterator[_Block]:
    number, ids, texts, characters = 0, [], [], 0
    for document in documents:
        text = document.text if isinstance(document, Document) else document[1]
        ids.append(document[0])
        texts.append(text)
        characters += len(text)
        if len(ids) == _DOCUMENTS or characters >= _CHARACTERS:
            yield _Block(number, ids, texts)
            number, ids, texts, characters = number + 1, [], [], 0
    if ids:
        yield _Block(number, ids, texts)


def _told(blocks: Iterator[_Block], job: Job) -> Iterator[_Block]:
    for block in blocks:
        yield block
        job.progress.advance(len(block.ids))


@dataclass(frozen=True)
class _SketchTask:
    options: Shingles
    extra: ExtraColumns | None = None

    def open(self) -> Callable[[_Block], pl.DataFrame]:
        return self._sketch

    def _sketch(self, block: _Block) -> pl.DataFrame:
        found = shingled(block.texts, self.options)
        shared = block_passages(block.texts, found, self.options.boilerplate)
        content = found.shingles.astype(_HASH, copy=False).tobytes()
        bounds = (found.starts * _HASH.itemsize).tolist()
        frame = pl.DataFrame(
            {
                "document_id": block.ids,
                "text": np.array([_text_hash(text) for text in block.texts], np.uint64),
                "sequence": found.sequences,
                "words": found.words,
                "size": np.diff(found.starts),
                "shingles": [content[begin:end] for begin, end in itertools.pairwise(bounds)],
            },
            schema=_SCHEMA,
        )
        windows, documents = shared.windows.astype(_HASH).tobytes(), shared.documents.astype(_COUNT).tobytes()
        rest = [None] * (len(frame) - 1)
        return frame.with_columns(
            pl.Series("windows", [windows, *rest], pl.Binary),
            pl.Series("documents", [documents, *rest], pl.Binary),
            pl.Series("passages", [shared.passages, *rest], PASSAGES),
            **({} if self.extra is None else self.extra(block.texts)),
        )


class _Changed(NamedTuple):
    number: int
    texts: Mapping[int, str]


@dataclass(frozen=True)
class _ChangeTask:
    """Puts the rows of changed texts in the place of their old ones."""

    base: Sketches
    extra: ExtraColumns | None

    def open(self) -> Callable[[_Changed], pl.DataFrame]:
        sketch = _SketchTask(self.base.options, self.extra).open()

        def change(block: _Changed) -> pl.DataFrame:
            old = BlockStore(self.base.folder).load(block.number)
            if not block.texts:
                return old
            places = list(block.texts)
            ids = old["document_id"].gather(places).to_list()
            new = sketch(_Block(block.number, ids, list(block.texts.values())))
            order = np.arange(len(old))
            order[places] = len(old) + np.arange(len(new))
            found = pl.concat([old, new.select(old.columns)])[order]
            return found.with_columns(old.select(_OF_BLOCK.keys()))

        return change


def _text_hash(text: str) -> int:
    """64 bits of the normalised text; 0 for an empty one. With the hash of its words, texts are told apart by 128."""
    normalised = normalise(text)
    if not normalised:
        return 0
    return int.from_bytes(
        hashlib.blake2b(normalised.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )
