"""Tensors of safetensors files as float32, one at a time."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.loading import json_file, load_json, opened

_HEADER_LIMIT: Final = 100_000_000
_TYPES: Final[dict[str, str]] = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True)
class _Place:
    file: Path
    kind: str
    shape: tuple[int, ...]
    start: int
    end: int


class Weights:
    """The tensors of one model; the files stay closed between reads, and only what is asked for is read.

    Args:
        where: the folder or file, for messages.
        places: where each tensor lies.
    """

    def __init__(self, where: Path, places: dict[str, _Place]) -> None:
        self._where = where
        self._places = places

    @property
    def names(self) -> frozenset[str]:
        """The names of all tensors."""
        return frozenset(self._places)

    def tensor(self, name: str, *, shape: tuple[int, ...] | None = None) -> NDArray[np.float32]:
        """One tensor as float32; half precision and bfloat16 are widened, which loses nothing.

        Args:
            shape: the shape that it must have.
        """
        place = self._places.get(name)
        if place is None:
            raise InputError(f"tensor '{name}' is missing", "use --backend torch", where=self._where)
        if shape is not None and place.shape != shape:
            raise InputError(
                f"tensor '{name}' has shape {list(place.shape)}, config.json implies {list(shape)}",
                "fetch the model again, or use --backend torch",
                where=place.file,
            )
        if place.kind not in _TYPES:
            raise InputError(
                f"tensor '{name}' has type {place.kind}", "use --backend torch, or a model in fp32", where=place.file
            )
        data = np.memmap(place.file, dtype=np.uint8, mode="r", offset=place.start, shape=(place.end - place.start,))
        values = np.frombuffer(data.tobytes(), dtype=_TYPES[place.kind]).reshape(place.shape)
        if place.kind == "BF16":
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float32)


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The safetensors files of a model folder, shards in order; empty if it has none."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return (single,)
    if not index.is_file():
        return ()
    try:
        shards = sorted({folder / str(name) for name in json_file(index)["weight_map"].values()})
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise InputError("not an index of safetensors shards", "fetch the model again", where=index) from error
    for shard in shards:
        if not shard.is_file():
            raise InputError(f"names {shard.name}, which is not there", "fetch the model again", where=index)
    return tuple(shards)


def open_weights(files: Iterable[Path]) -> Weights:
    """Reads the headers of safetensors files."""
    places: dict[str, _Place] = {}
    files = tuple(files)
    for file in files:
        places.update(_read_header(file))
    return Weights(files[0] if len(files) == 1 else files[0].parent, places)


def file_hash(*files: Path) -> str:
    """SHA-256 over the bytes of files, one after the other, with their lengths."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(struct.pack("<Q", file.stat().st_size))
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _read_header(file: Path) -> dict[str, _Place]:
    size = file.stat().st_size
    try:
        with opened(file) as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > min(size - 8, _HEADER_LIMIT):
                raise ValueError("header longer than the file")
            header: dict[str, Any] = load_json(stream.read(length), file, remedy="fetch the model again")
        header.pop("__metadata__", None)
        places = {name: _place(file, 8 + length, entry) for name, entry in header.items()}
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"not a safetensors file ({error})", "fetch the model again", where=file) from error
    end = max((place.end for place in places.values()), default=0)
    if end > size:
        raise InputError(f"cut off: {size} bytes of {end}", "fetch the model again", where=file)
    return places


def _place(file: Path, base: int, entry: dict[str, Any]) -> _Place:
    start, end = (base + int(offset) for offset in entry["data_offsets"])
    kind, shape = str(entry["dtype"]), tuple(int(size) for size in entry["shape"])
    if kind in _TYPES and end - start != int(np.prod(shape, dtype=np.int64)) * np.dtype(_TYPES[kind]).itemsize:
        raise ValueError("a tensor's size does not fit its shape")
    return _Place(file, kind, shape, start, end)
