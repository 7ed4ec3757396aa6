"""Encoders on OpenVINO: full precision, products of fp32 out of bf16, and two low precisions for a first pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError, needed_for
from truerank.loading import json_file
from truerank.vectors.encoders.base import EncoderSpec, Vectors
from truerank.vectors.encoders.bert_graph import INPUT_IDS
from truerank.vectors.encoders.cache import publish_folder, user_cache_folder
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

#: Products with fewer inputs or outputs stay as they are: heads, which take no time.
_SMALLEST: Final = 32
#: OpenVINO's operators give what they are given. Its CPU plugin has such as give another type, for quantised models;
#: their name changed between versions.
_VERSIONS: Final = ("type_relaxed_opset1", "type_relaxed_opset")
_NETWORK: Final = """<net name="one" version="11"><layers>
<layer id="0" name="a" type="Parameter" version="opset1"><data shape="?,?" element_type="{left}"/>
<output><port id="0" precision="FP32"/></output></layer>
<layer id="1" name="b" type="Parameter" version="opset1"><data shape="?,?" element_type="{right}"/>
<output><port id="0" precision="FP32"/></output></layer>
<layer id="2" name="y" type="{operator}" version="{version}">
<data {attributes} type_relax="true" input_data_types="f32,f32" output_data_types="{output}"/>
<input><port id="0" precision="FP32"/><port id="1" precision="FP32"/></input>
<output><port id="2" precision="FP32"/></output></layer>
<layer id="3" name="r" type="Result" version="opset1"><input><port id="0" precision="FP32"/></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"""
_TRANSPOSED: Final = 'transpose_a="false" transpose_b="true"'
#: A sum with -1 times a number becomes a difference in OpenVINO, which then takes two operations. With any h near the
#: number, l is what is left.
_ALMOST_MINUS_ONE: Final = np.float32(2**-12 - 1)
_EACH: Final = 'auto_broadcast="numpy"'


def split_number(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Two arrays of bfloat16 numbers, as float32, whose sum is the given one but for 2⁻¹⁶ of it.

    Args:
        values: finite numbers of any shape.
    """
    high = to_bfloat16(values)
    return high, to_bfloat16(values - high)


def to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest bfloat16 numbers, of two as near the even one, as float32.

    Args:
        values: finite numbers of any shape.
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    near = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return near.view(np.float32)


def split_products(openvino: Any, core: Any, model: Any) -> int:
    """Replaces every product with constant weights in a model of OpenVINO by three of bfloat16."""
    folder = Path(openvino.__file__).parent / "libs"
    plugin = next(iter(sorted(folder.glob("*openvino_*_cpu_plugin.*"))), None)
    if plugin is None:
        raise OptionError("precision", f"no CPU plugin of OpenVINO in {folder}", "use fp32")
    core.add_extension(str(plugin))
    ops = import_module("openvino.opset13")
    halves: dict[tuple[str, int], tuple[Any, Any]] = {}
    found = 0
    for node in model.get_ordered_ops():
        weights = _weights(node)
        if weights is None:
            continue
        source = node.input(0).get_source_output()
        place = (source.get_node().get_name(), source.get_index())
        if place not in halves:
            almost = ops.constant(_ALMOST_MINUS_ONE).output(0)
            high = _operator(core, "Multiply", (source, almost), ("f32", "f32", "bf16"), _EACH)
            halves[place] = (high, _operator(core, "Add", (source, high), ("f32", "bf16", "bf16"), _EACH))
        node.output(0).replace(_three_products(ops, core, *halves[place], weights))
        found += 1
    model.validate_nodes_and_infer_types()
    return found


def _weights(node: Any) -> NDArray[np.float32] | None:
    """The weights of a product, shape (outputs, inputs); None for what stays as it is."""
    if node.get_type_name() != "MatMul":
        return None
    attributes = node.get_attributes()
    constant = node.input(1).get_source_output().get_node()
    if attributes["transpose_a"] or constant.get_type_name() != "Constant":
        return None
    values = np.asarray(constant.data)
    if values.ndim != 2 or values.dtype != np.float32 or min(values.shape) < _SMALLEST:
        return None
    return np.ascontiguousarray(values if attributes["transpose_b"] else values.T)


def _three_products(ops: Any, core: Any, high: Any, low: Any, weights: NDArray[np.float32]) -> Any:
    """The sum of the products, from -h and l."""
    types, (first, second) = ("bf16", "bf16", "f32"), split_number(weights)

    def product(left: Any, right: NDArray[np.float32]) -> Any:
        openvino = import_module("openvino")
        tensor = openvino.Tensor(openvino.Type.bf16, openvino.Shape(list(right.shape)))
        tensor.data.view(np.uint16)[...] = (right.view(np.uint32) >> 16).astype(np.uint16)
        return _operator(core, "MatMul", (left, ops.constant(tensor).output(0)), types, _TRANSPOSED)

    outputs, inputs = weights.shape
    if inputs > outputs:
        # The numbers to add are fewer than those to copy.
        small = ops.add(product(high, -second).get_node(), product(low, first).get_node())
        return ops.add(small, product(high, -first).get_node()).output(0)
    together = ops.concat([high.get_node(), low.get_node(), high.get_node()], -1).output(0)
    return product(together, np.concatenate([-first, first, -second], axis=1))


def _operator(core: Any, name: str, inputs: tuple[Any, Any], types: tuple[str, str, str], attributes: str) -> Any:
    """The output of an operator of two inputs whose types, and that of the output, are as given."""
    left, right, output = types
    for numbered in _VERSIONS:
        network = _NETWORK.format(
            operator=name, version=numbered, attributes=attributes, left=left, right=right, output=output
        )
        try:
            nodes = core.read_model(network.encode(), b"").get_ordered_ops()
        except RuntimeError:
            continue
        node = next(node for node in nodes if node.get_type_name() == name)
        for place, given in enumerate(inputs):
            node.input(place).replace_source_output(given)
        node.validate_and_infer_types()
        return node.output(0)
    fault = "this OpenVINO has no product of bfloat16 numbers with sums in float32"
    raise OptionError("precision", fault, "use fp32, or another version of openvino")


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
    through is to be encoded again in "fp32", or in "bf16x3" (see `split_products`).

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
        if spec.precision not in ("fp32", "bf16", "bf16x3", "int8"):
            remedy = "use fp32, bf16, bf16x3 or int8, or --backend torch on a GPU for fp16"
            raise OptionError("precision", f"backend 'openvino' does not run {spec.precision}", remedy)
        if spec.precision in ("bf16", "bf16x3") and not bf16_is_native():
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
        # The core has the code of some operators: it has to live as long as the network.
        self._core = openvino.Core()
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
            network = self._core.read_model(str(file))
            if spec.precision == "bf16x3":
                split_products(openvino, self._core, network)
            compiled = self._core.compile_model(network, "CPU", options)
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
