"""The grammar of sources: `irds:ID`, `hf:org/name[@revision][/config][:split][#column]`, or a path."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, Literal

from truerank.errors import InputError
from truerank.plugins import Plugins

Scheme = Literal["irds", "hf", "file"]

#: The formats that `path?format=…` can force.
FORMATS: Final = (
    "lines", "tsv", "csv", "jsonl", "json", "parquet", "trec", "xml", "beir", "qna", "qrels", "run",
)  # fmt: skip
#: Formats of other packages, by name, which is also the ending of their files: each has `records(path)`, which returns
#: an iterable of mappings; their keys are chosen as those of JSONL are.
SOURCES: Final = Plugins("truerank.sources", "source format", ("records",))
_ALIASES: Final = {
    "txt": "lines", "ndjson": "jsonl", "doccano": "jsonl", "labelstudio": "json", "label-studio": "json",
}  # fmt: skip
ENDINGS: Final = frozenset((
    ".gz", ".zst", ".bz2", ".xz", ".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet", ".txt", ".trec", ".xml",
    ".run", ".qrels",
))  # fmt: skip
_exists: Final = os.path.exists
#: How a source begins that has no name before it.
_PLACE: Final = re.compile(r"[/.]|(irds|hf):")
_HUGGING_FACE = re.compile(
    r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?(?:/(?P<config>[^:#]+))?(?::(?P<split>[^:#]+))?(?:#(?P<column>.+))?"
)


@dataclass(frozen=True)
class SourceSpec:
    """One source, taken apart.

    Attributes:
        scheme: "irds" (ir_datasets), "hf" (Hugging Face) or "file".
        location: the ir_datasets id, `org/name`, or the path.
        config: configuration of a Hugging Face data set.
        split: split of a Hugging Face data set.
        column: the column or key that holds the text; in a file without column names, its number counted from 1.
        format: one of `FORMATS` or `SOURCES` where the user forced it, else None.
        name: file name without endings, or the id.
        spec: the text that was parsed.
        revision: commit, tag or branch of a Hugging Face data set; None for what "main" is now.
    """

    scheme: Scheme
    location: str
    config: str | None
    split: str | None
    column: str | None
    format: str | None
    name: str
    spec: str
    revision: str | None = None

    @property
    def path(self) -> Path:
        """The location as a path."""
        return Path(self.location)


def parse(spec: str) -> SourceSpec:
    """Takes a source apart.

    A path may end in `#column` and `?format=NAME`, in any order; a path that exists as it is written is taken as it is.

    Args:
        spec: `irds:ID`, `hf:org/name[@revision][/config][:split][#column]`, `path[#column][?format=NAME]`.

    Returns:
        Its parts. Whether the source exists is seen when it is opened.

    Raises:
        InputError: empty, an unknown scheme or format, or a malformed Hugging Face name.
    """
    text = spec.strip()
    if not text:
        raise InputError("empty source name", "give a path, irds:ID or hf:org/name")
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "irds":
        if not (dataset_id := rest.strip()):
            raise InputError("no data set id after irds:", "for example irds:msmarco-document/train", where=spec)
        return SourceSpec("irds", dataset_id, None, None, None, None, dataset_id, spec)
    if colon and scheme == "hf":
        return _hugging_face(rest.strip(), spec)
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", text):
        raise InputError(f"sources of the kind {scheme}:// are not read", "download it and give its path", where=spec)
    return _file(text, spec)


def named_source(text: str, form: str | None = None) -> tuple[str, SourceSpec]:
    """The name and the source of `NAME=SRC`, read in a format; without a name "". A path that exists is a path."""
    name, _, rest = text.partition("=")
    ending, path = f"?format={form}" if form else "", re.split("[?#]", text)[0]
    if name.strip() and rest and path.startswith(f"{name}=") and not _exists(path) and not _PLACE.match(name):
        return name.strip(), parse(rest + ending)
    return "", parse(text + ending)


def unique_names(specs: Sequence[SourceSpec]) -> tuple[str, ...]:
    """Names by which several sources can be told apart.

    A name that only one source has stays. The others become longer step by step: with the column, with the parent
    folder, with the whole spec, at last with a number.

    Args:
        specs: the sources in order.

    Returns:
        As many different names, in the same order.
    """
    ways: tuple[Callable[[SourceSpec], str], ...] = (
        lambda spec: f"{spec.name}#{spec.column}" if spec.column else spec.name,
        lambda spec: f"{spec.path.parent.name}/{spec.name}" if spec.scheme == "file" else spec.name,
        lambda spec: spec.spec,
    )
    names = [spec.name for spec in specs]
    for way in ways:
        taken = Counter(names)
        names = [way(spec) if taken[name] > 1 else name for name, spec in zip(names, specs, strict=True)]
    for position, name in enumerate(names):
        number = 1
        while names[position] in names[:position] or (number > 1 and names[position] in names[position + 1 :]):
            number += 1
            names[position] = f"{name} ({number})"
    return tuple(names)


def _hugging_face(text: str, spec: str) -> SourceSpec:
    match = _HUGGING_FACE.fullmatch(text)
    if match is None:
        remedy = "write hf:org/name[@revision][/config][:split][#column]"
        raise InputError("not a Hugging Face data set name", remedy, where=spec)
    name = match["repo"] + text[match.end("revision") if match["revision"] else match.end("repo") :].partition("#")[0]
    repo, revision = match["repo"], match["revision"]
    return SourceSpec("hf", repo, match["config"], match["split"], match["column"], None, name, spec, revision)


def _file(text: str, spec: str) -> SourceSpec:
    location, column, forced = text, None, None
    while not _exists(location):
        if (match := re.search(r"(?:\?(?P<option>\w+)=(?P<value>[^?#]*)|#(?P<column>[^#?/]+))$", location)) is None:
            break
        location = location[: match.start()]
        if match["column"]:
            column = match["column"]
        elif match["option"] != "format":
            raise InputError(f"unknown option '{match['option']}'", "only ?format=NAME is known", where=spec)
        else:
            forced = _format(match["value"], spec)
    if not location:
        raise InputError("no path", "give a path before '#' and '?'", where=spec)
    name = PurePath(location).name or Path(location).absolute().name or location
    while (suffix := PurePath(name).suffix) and suffix.lower() in ENDINGS:
        name = name[: -len(suffix)]
    return SourceSpec("file", location, None, None, column, forced, name, spec)


def _format(value: str, spec: str) -> str:
    name = value.lower()
    name = _ALIASES.get(name, name)
    if name not in FORMATS and name not in SOURCES:
        known = ", ".join((*FORMATS, *_ALIASES, *SOURCES))
        raise InputError(f"unknown format '{value}'", f"one of {known}", where=spec)
    return name
