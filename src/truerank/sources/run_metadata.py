"""What a run says of itself in the metadata header of ir_metadata, above all which data its system was trained on.

Source: Breuer, Keller, Schaer, ir_metadata: An Extensible Metadata Schema for IR Experiments (SIGIR 2022);
www.ir-metadata.org, component "data".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.loading import load_yaml
from truerank.sources import compressed, grammar
from truerank.sources.lines import metadata_header

#: A header that is longer is not looked for.
_HEAD: Final = 1 << 19
_COMMENT: Final = re.compile(r"^#[ \t]?", re.MULTILINE)
_REMEDY: Final = "write it as www.ir-metadata.org says"


class TrainingData(NamedTuple):
    """One entry of `data: training data:`; `irds` is its id in ir_datasets, or empty."""

    name: str
    source: str
    irds: str


@dataclass(frozen=True)
class RunMetadata:
    """The header of a run.

    Attributes:
        tag: the run's tag; empty where it is not stated.
        collection: the name of the test collection; likewise.
        training: the training data; None where the header does not speak of any.
    """

    tag: str
    collection: str
    training: tuple[TrainingData, ...] | None


def run_metadata(path: str | Path) -> RunMetadata | None:
    """Reads the metadata header of a run."""
    path = grammar.parse(str(path)).path
    data = compressed.head(path, _HEAD).removeprefix(b"\xef\xbb\xbf")
    length = metadata_header(data)
    if not length:
        return None
    # The two marks stand around the YAML; a blank line keeps its lines those of the file.
    lines = _COMMENT.sub("", data[:length].decode("utf-8", "replace")).splitlines()
    content = load_yaml("\n".join(["", *lines[1:-1]]), path, _constructed, remedy=_REMEDY)
    about = _inside(content, "data")
    collection = _inside(about, "test collection")
    training = about.get("training data")
    return RunMetadata(
        tag=str(content.get("tag") or "") if isinstance(content, Mapping) else "",
        collection=str(collection.get("name") or ""),
        training=None if training is None else tuple(_entries(training)),
    )


def trained_on(spec: str) -> tuple[str, ...]:
    """The sources that stand for a run as training data: what its header names by ids of ir_datasets."""
    parsed = grammar.parse(spec)
    if parsed.scheme != "file" or not parsed.path.is_file():
        return (spec,)
    about = run_metadata(parsed.path)
    if about is None:
        return (spec,)
    if not about.training:
        raise InputError("the header of this run names no training data", "name the training data", where=spec)
    unknown = [one.name or one.source for one in about.training if not one.irds]
    if unknown:
        fault = f"the training data '{unknown[0]}' of this run have no id of ir_datasets"
        raise InputError(fault, "name their source yourself", where=spec)
    return tuple(f"irds:{one.irds}" for one in about.training)


def _inside(value: Any, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _constructed(loader: Any, node: Any) -> Any:
    return loader.construct_document(node)


def _entries(value: Any) -> Iterator[TrainingData]:
    """A list of mappings, as the schema wants it; also one mapping, and bare names."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Mapping):
            yield TrainingData(str(one.get("name") or ""), str(one.get("source") or ""), _irds(one.get("ir_datasets")))
        elif one is not None:
            yield TrainingData(str(one), "", "")


def _irds(value: Any) -> str:
    """The id in an id, or in a link to its page: `https://ir-datasets.com/beir.html#beir/scifact`."""
    text = str(value or "").strip()
    if "://" not in text:
        return text.removeprefix("irds:")
    page, _, part = text.partition("#")
    return part or page.rstrip("/").rpartition("/")[2].removesuffix(".html")
