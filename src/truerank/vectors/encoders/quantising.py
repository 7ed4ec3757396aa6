"""Eight-bit graphs for OpenVINO: quantised once on texts of the kind at hand, kept in the user cache folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import numpy as np

from truerank.errors import InputError, MissingExtraError, OptionError
from truerank.loading import json_file
from truerank.vectors.encoders.cache_folder import publish_folder, user_cache_folder
from truerank.vectors.encoders.graph_encoder import PreparedModel, fingerprint
from truerank.vectors.encoders.graph_writer import INPUT_IDS
from truerank.vectors.encoders.weights import file_hash

__all__ = ["QuantisedGraph", "quantised_graph"]

# Part of every cache key: raise it when the way of quantising changes.
_RECIPE: Final = "1"
_FEWEST_TEXTS: Final = 10
_GRAPH, _WEIGHTS, _ABOUT = "int8.xml", "int8.bin", "int8.json"


@dataclass(frozen=True)
class QuantisedGraph:
    """A quantised graph on disk.

    Attributes:
        file: the OpenVINO file; its weights lie beside it.
        key: hash over all that it was made from.
    """

    file: Path
    key: str


def quantised_graph(model: PreparedModel, texts: Sequence[str]) -> QuantisedGraph:
    """Quantises weights and activations to eight bits after training, from the cache if it was done before.

    The ranges come from the given texts; the same texts make the same weights.

    Args:
        model: tokenizer and full-precision graph.
        texts: calibration texts, a few hundred of the kind that will be encoded.

    Raises:
        InputError: too few texts, or the cache cannot be written.
        MissingExtraError: NNCF is not installed.
    """
    versions = _versions()
    if len(texts) < _FEWEST_TEXTS:
        fault = f"int8 learns its ranges from texts, and was given {len(texts)}"
        raise OptionError("precision", fault, "give about 300 calibration texts of the kind to be encoded")
    key = fingerprint(_RECIPE, model.graph.key, model.tokenizer.definition, versions, *texts)
    folder = user_cache_folder() / "int8" / key[:32]
    if not _whole(folder, key):
        shutil.rmtree(folder, ignore_errors=True)

        def write(place: Path) -> None:
            _quantise(model, texts, place)
            about = {"model": model.name, "key": key, "versions": versions, "sha256": _hash(place)}
            (place / _ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")

        publish_folder(folder, write)
    return QuantisedGraph(folder / _GRAPH, key)


def _versions() -> str:
    # From the metadata: importing NNCF takes seconds and 150 MB, and a kept graph does not need it.
    try:
        return ", ".join(f"{package} {version(package)}" for package in ("nncf", "openvino"))
    except PackageNotFoundError as error:
        raise MissingExtraError("int8 with OpenVINO", "fast") from error


def _quantise(model: PreparedModel, texts: Sequence[str], folder: Path) -> None:
    ids = model.tokenizer.ids(texts)
    rows = [ids.batch(np.array([row]))[0].tolist() for row in range(len(texts))]
    task = {"graph": str(model.graph.file), "input": INPUT_IDS, "ids": rows, "target": str(folder / _GRAPH)}
    # In a process of its own: NNCF takes 400 MB that are not given back, and prints its progress to stdout, where a
    # command's JSON goes. -P keeps this folder, whose modules are called like packages, off the path.
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("quantise_worker.py"))],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise OptionError("precision", f"no int8 graph could be made ({reason})", "use --precision fp32 or bf16")


def _hash(folder: Path) -> str:
    return file_hash(folder / _GRAPH, folder / _WEIGHTS)


def _whole(folder: Path, key: str) -> bool:
    try:
        about = json_file(folder / _ABOUT)
        return bool(about["key"] == key and about["sha256"] == _hash(folder))
    except (InputError, OSError, KeyError, TypeError):
        return False
