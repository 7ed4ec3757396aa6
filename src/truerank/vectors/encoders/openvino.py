"""Encoders on OpenVINO: full precision, and two low precisions for a first pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError, needed_for
from truerank.loading import json_file
from truerank.vectors.encoders.base import EncoderSpec, Vectors
from truerank.vectors.encoders.bert_graph import INPUT_IDS
from truerank.vectors.encoders.cache import publish_folder
from truerank.vectors.encoders.graph_encoder import (
    GraphEncoder,
    PreparedModel,
    fingerprint,
    only_cpu,
    prepare_model,
    to_unit_length,
)
from truerank.vectors.encoders.model_folder import ModelFolder
from truerank.vectors.encoders.tokenizing import TokenIds
from truerank.vectors.encoders.weights import file_hash
from truerank.work.engines import processors
from truerank.work.kept import user_cache_folder

# Requests per stream: while one is computed, the next one's ids are gathered and the last one's vectors copied.
_REQUESTS: Final = 2
# Code is compiled for every shape and kept, 1 MB each in int8 (5 MB with AMX), by OpenVINO and, for all networks of the
# process, by oneDNN below it. Without both bounds memory grows with the log. Batches of one length follow each other,
# so small bounds cost no time.
_SHAPES_KEPT: Final = 40
_PRIMITIVES_KEPT: Final = 64


class OpenVinoEncoder(GraphEncoder):
    """Runs the graph in OpenVINO on the CPU, one stream per processor and one thread per stream.

    Precision "bf16" and "int8" are for a first pass only: their cosines differ from the model's, and what they let
    through is to be encoded again in "fp32".

    Args:
        model: a local model folder.
        spec: how the encoder was asked for; `calibration` is needed for int8.
    """

    #: In int8 7% faster than 256; in the other precisions the same.
    batch_tokens: int = 512
    #: Of rows that hold several texts.
    packed_tokens: int = 1024

    def __init__(self, model: ModelFolder, spec: EncoderSpec) -> None:
        openvino = openvino_package()
        only_cpu(spec.device, "openvino")
        if spec.precision not in ("fp32", "bf16", "int8"):
            remedy = "use fp32, bf16 or int8, or --backend torch on a GPU for fp16"
            raise OptionError("precision", f"backend 'openvino' does not run {spec.precision}", remedy)
        if spec.precision == "bf16" and not bf16_is_native():
            raise OptionError("precision", "this processor has no bf16 products", "use --precision int8 or fp32")
        prepared = prepare_model(model, packed=spec.packed)
        file, runtime = prepared.graph.file, f"openvino {openvino.__version__}"
        if spec.packed and spec.precision == "int8":
            raise OptionError("precision", "rows of several texts are not run in int8", "use bf16 or fp32")
        if spec.precision == "int8":
            quantised = quantised_graph(prepared, spec.calibration)
            file, runtime = quantised.file, f"{runtime} {quantised.key}"
        if prepared.packing is not None:
            self.batch_tokens = self.packed_tokens
        super().__init__(prepared, spec, runtime=runtime)
        core = openvino.Core()
        streams = spec.threads or processors()
        options = {
            "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": streams,
            "INFERENCE_PRECISION_HINT": "bf16" if spec.precision == "bf16" else "f32",
            # Several processes that each pin their threads would pin them to the same processors.
            "ENABLE_CPU_PINNING": False,
            "CPU_RUNTIME_CACHE_CAPACITY": _SHAPES_KEPT,
        }
        try:
            compiled = core.compile_model(core.read_model(str(file)), "CPU", options)
        except RuntimeError as error:
            message = " ".join(str(error).split())[:300]
            raise InputError(
                f"OpenVINO cannot run this model ({message})", "use --backend onnx or torch", where=model.folder
            ) from error
        self._queue: Any = openvino.AsyncInferQueue(compiled, _REQUESTS * streams)
        self._lock = threading.Lock()

    def _encode(self, texts: Sequence[str]) -> Vectors:
        packing = self._model.packing
        if packing is None:
            return super()._encode(texts)
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)

        def keep(request: Any, rows: NDArray[np.int64]) -> None:
            vectors[rows[rows >= 0]] = request.get_output_tensor(0).data[rows >= 0]

        batches = packing.batches(self._model.tokenizer.ids(texts), tokens=self.batch_tokens)
        self._submit((({0: batch.tokens, 1: batch.pooling}, batch.texts) for batch in batches), keep)
        return to_unit_length(vectors)

    def _run(self, batches: list[NDArray[np.int64]], ids: TokenIds, vectors: Vectors) -> None:
        def keep(request: Any, rows: NDArray[np.int64]) -> None:
            vectors[rows] = request.get_output_tensor(0).data

        self._submit((({0: ids.batch(rows)}, rows) for rows in batches), keep)

    def _submit(
        self,
        batches: Iterable[tuple[dict[int, NDArray[Any]], NDArray[np.int64]]],
        keep: Callable[[Any, NDArray[np.int64]], None],
    ) -> None:
        """Runs the graph on the inputs of each batch; `keep` takes what came out, and what stands beside the inputs."""
        with self._lock:
            self._queue.set_callback(keep)
            try:
                for inputs, rows in batches:
                    self._queue.start_async(inputs, rows)
            finally:
                self._queue.wait_all()


def bf16_is_native() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32."""
    return "BF16" in cast(list[str], openvino_package().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))


def openvino_package() -> Any:
    """The package openvino, imported without its reports of use and with a bound on the code that it keeps."""
    # On import OpenVINO's tools write a client id into the home folder with this package, to report their use by;
    # they do without it where it cannot be imported. Whoever audits a private log wants no such reports.
    telemetry = "openvino_telemetry"
    hidden = telemetry not in sys.modules
    if hidden:
        sys.modules[telemetry] = None  # type: ignore[assignment]
    try:
        with needed_for("the OpenVINO backend", "fast"):
            import openvino
    finally:
        if hidden:
            del sys.modules[telemetry]
    # oneDNN has no other way to be told; it looks once, when the first network is compiled.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_PRIMITIVES_KEPT))
    return openvino


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
    with needed_for("int8 with OpenVINO", "fast"):
        return ", ".join(f"{package} {version(package)}" for package in ("nncf", "openvino"))


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
    if done.returncode:
        fault = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise OptionError("precision", f"no int8 graph could be made ({fault})", "use --precision fp32 or bf16")


def _hash(folder: Path) -> str:
    return file_hash(folder / _GRAPH, folder / _WEIGHTS)


def _whole(folder: Path, key: str) -> bool:
    try:
        about = json_file(folder / _ABOUT)
        return bool(about["key"] == key and about["sha256"] == _hash(folder))
    except (InputError, OSError, KeyError, TypeError):
        return False
