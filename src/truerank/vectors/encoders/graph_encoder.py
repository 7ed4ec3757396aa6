"""Encoders that run a graph: ids in, batches without padding, unit vectors out; on ONNX Runtime, the core's backend.

There is one ONNX graph per model, from token ids to text vectors, made once and kept in the user cache folder.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.loading import json_file
from truerank.vectors.encoders.base import EncoderSpec, OpenedEncoder, Vectors
from truerank.vectors.encoders.bert_graph import (
    EMBEDDING,
    INPUT_IDS,
    OPSET,
    POOLING,
    SUPPORTED_MODEL_TYPES,
    GraphWriter,
    check_supported,
    padding_before_positions,
    save_graph,
    write_encoder,
    write_head,
    write_packed_head,
)
from truerank.vectors.encoders.cache import publish_folder
from truerank.vectors.encoders.model_folder import ModelFolder
from truerank.vectors.encoders.tokenizing import WIDTHS, Packing, TextTokenizer, TokenIds
from truerank.vectors.encoders.weights import file_hash, open_weights, weight_files
from truerank.work.engines import processors
from truerank.work.kept import user_cache_folder

# Part of every cache key: raise it when the graphs change.
_BUILDER: Final = "1"
_FOREIGN_INPUTS: Final = {INPUT_IDS: None, "attention_mask": 1, "token_type_ids": 0}
_TOKEN_OUTPUTS: Final = ("last_hidden_state", "token_embeddings")
_OLDEST_OPSET: Final = 13
_GRAPH, _ABOUT = "model.onnx", "graph.json"


@dataclass(frozen=True)
class EncoderGraph:
    """A graph on disk, with one input (int64, [texts, tokens], no padding) and one output ([texts, dimension]).

    Attributes:
        key: hash over all that the graph was made from.
        dimension: length of a vector.
    """

    file: Path
    key: str
    dimension: int


def encoder_graph(model: ModelFolder, *, skip: int = 0, packed: bool = False) -> EncoderGraph:
    """The graph of a model, from the cache or made now."""
    files = weight_files(model.transformer) if _can_build(model) else ()
    if not files:
        own = onnx_file(model)
        files = () if own is None else (own, *_beside(own))
    steps = [(step.kind, step.options, [file_hash(file) for file in weight_files(step.folder)]) for step in model.head
             if step.kind != "normalise"]  # fmt: skip
    kinds = [step.kind for step in model.head]
    content = [_BUILDER, OPSET, model.config, model.pooling, skip, kinds, steps, [file_hash(file) for file in files]]
    content += ["packed"] if packed else []
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    folder = user_cache_folder() / "graphs" / key[:32]
    kept = _kept(folder, key)
    if kept is not None:
        return kept
    shutil.rmtree(folder, ignore_errors=True)

    def write(place: Path) -> None:
        graph, dimension = build_graph(model, skip=skip, packed=packed)
        save_graph(graph, place / _GRAPH)
        about = {"model": model.name, "key": key, "dimension": dimension, "sha256": file_hash(*_parts(place))}
        (place / _ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    publish_folder(folder, write)
    made = _kept(folder, key)
    if made is None:
        raise InputError("the graph could not be kept", "set TRUERANK_CACHE to a folder with room", where=folder)
    return made


def build_graph(model: ModelFolder, *, skip: int = 0, packed: bool = False) -> tuple[Any, int]:
    """Builds the graph of a model in memory.

    It is built from the safetensors where the family is known; otherwise the model's own ONNX file is completed with
    the mask of a batch without padding, and with pooling.
    """
    files = weight_files(model.transformer)
    if files and _can_build(model):
        graph = GraphWriter()
        weights, where = open_weights(files), model.transformer / "config.json"
        tokens, width = write_encoder(graph, model.config, weights, where, packed=packed)
        if packed:
            vector, dimension = write_packed_head(graph, tokens, POOLING, width, model.head)
        else:
            vector, dimension = write_head(graph, tokens, width, model.pooling, model.head, skip=skip)
        return graph.model(vector, dimension, packed=packed), dimension
    file = onnx_file(model)
    if file is not None:
        return _complete(file, model, skip)
    if files:
        check_supported(model.config, model.transformer / "config.json")
    raise InputError(
        "neither model.safetensors nor an ONNX file here", "use --backend torch, or save it as safetensors",
        where=model.transformer,
    )  # fmt: skip


def can_pack(model: ModelFolder) -> bool:
    """Whether the model's texts can be packed into rows: a graph can be built, and pooling is a weighted sum."""
    built = bool(weight_files(model.transformer)) and _can_build(model)
    return built and model.pooling in (("mean",), ("cls",)) and model.max_tokens <= max(WIDTHS)


def onnx_file(model: ModelFolder) -> Path | None:
    """The model's own ONNX file, if it has one."""
    candidates = (place / name for place in (model.folder, model.transformer) for name in ("onnx/model.onnx", _GRAPH))
    return next((file for file in candidates if file.is_file()), None)


def _can_build(model: ModelFolder) -> bool:
    if model.config.get("model_type") not in SUPPORTED_MODEL_TYPES:
        return False
    if onnx_file(model) is None:
        return True
    try:
        check_supported(model.config, model.transformer)
    except InputError:
        return False
    return True


def _beside(file: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in file.parent.glob(f"{file.name}?data*") if path.is_file()))


def _parts(folder: Path) -> tuple[Path, ...]:
    return (folder / _GRAPH, *_beside(folder / _GRAPH))


def _kept(folder: Path, key: str) -> EncoderGraph | None:
    try:
        about = json_file(folder / _ABOUT)
        if about["key"] != key or about["sha256"] != file_hash(*_parts(folder)):
            return None
        return EncoderGraph(folder / _GRAPH, key, int(about["dimension"]))
    except (InputError, OSError, ValueError, KeyError, TypeError):
        return None


def _complete(file: Path, model: ModelFolder, skip: int) -> tuple[Any, int]:
    import onnx

    try:
        foreign: Any = onnx.load(str(file))
    except Exception as error:  # protobuf raises its own kinds
        raise InputError(f"not an ONNX file ({error})", "fetch the model again", where=file) from error
    opset = next((int(entry.version) for entry in foreign.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if opset < _OLDEST_OPSET:
        try:
            foreign = onnx.version_converter.convert_version(foreign, OPSET)
        except Exception as error:  # the converter raises RuntimeError and others
            fault = f"operators of opset {opset} cannot be brought to {OPSET} ({error})"
            raise InputError(fault, "use --backend torch", where=file) from error
        opset = OPSET
    before = GraphWriter(opset=opset, prefix="truerank_before_")
    _feed(before, foreign, file)
    after = GraphWriter(opset=opset, prefix="truerank_after_")
    vector, dimension = _finish(after, foreign, model, file, skip)
    return _join(foreign, before, after, vector, dimension), dimension


def _feed(graph: GraphWriter, foreign: Any, file: Path) -> None:
    """The inputs that a batch without padding implies: a mask of ones, token types of zeros."""
    from onnx import TensorProto, helper

    constants = {tensor.name for tensor in foreign.graph.initializer}
    inputs = [value for value in foreign.graph.input if value.name not in constants]
    for value in inputs:
        if value.name not in _FOREIGN_INPUTS or value.type.tensor_type.elem_type != TensorProto.INT64:
            fault = f"has an input '{value.name}' that is not known here"
            raise InputError(fault, "use --backend torch", where=file)
    shape = graph.op("Shape", INPUT_IDS)
    for value in inputs:
        fill: int | None = _FOREIGN_INPUTS[value.name]
        if fill is not None:
            tensor = helper.make_tensor("value", TensorProto.INT64, [1], [fill])
            graph.nodes.append(helper.make_node("ConstantOfShape", [shape], [value.name], value=tensor))


def _finish(graph: GraphWriter, foreign: Any, model: ModelFolder, file: Path, skip: int) -> tuple[str, int]:
    outputs: Mapping[str, Any] = {value.name: value.type.tensor_type.shape for value in foreign.graph.output}
    tokens = next((name for name in _TOKEN_OUTPUTS if name in outputs), None)
    if tokens is None:
        tokens = next((name for name, shape in outputs.items() if len(shape.dim) == 3), None)
    hidden = int(model.config.get("hidden_size") or model.config.get("dim") or 0)
    if tokens is not None:
        width = int(outputs[tokens].dim[2].dim_value) if len(outputs[tokens].dim) == 3 else 0
        return write_head(graph, tokens, width or hidden, model.pooling, model.head, skip=skip)
    if "sentence_embedding" in outputs and len(outputs["sentence_embedding"].dim) == 2:
        width = int(outputs["sentence_embedding"].dim[1].dim_value)
        return "sentence_embedding", width or hidden
    fault = f"has no output of token vectors (there are: {', '.join(outputs)})"
    raise InputError(fault, "use --backend torch", where=file)


def _join(foreign: Any, before: GraphWriter, after: GraphWriter, vector: str, dimension: int) -> Any:
    from onnx import TensorProto, helper

    nodes = [*before.nodes, *foreign.graph.node, *after.nodes, helper.make_node("Identity", [vector], [EMBEDDING])]
    constants = [*foreign.graph.initializer, *before.constants, *after.constants]
    ids = helper.make_tensor_value_info(INPUT_IDS, TensorProto.INT64, ["texts", "tokens"])
    vectors = helper.make_tensor_value_info(EMBEDDING, TensorProto.FLOAT, ["texts", dimension])
    graph = helper.make_graph(
        nodes, "encoder", [ids], [vectors], constants, sparse_initializer=foreign.graph.sparse_initializer
    )
    joined: Any = helper.make_model(graph, opset_imports=foreign.opset_import, functions=foreign.functions)
    joined.ir_version = foreign.ir_version
    return joined


_TINY: Final = np.float32(1e-12)


class PreparedModel:
    """A model folder made ready for a graph runtime.

    Attributes:
        name: how the encoder is called.
        tokenizer: makes the ids.
        graph: the graph on disk.
        packing: how the graph reads rows of several texts; None where each row is one text.
    """

    def __init__(
        self, name: str, tokenizer: TextTokenizer, graph: EncoderGraph, packing: Packing | None = None
    ) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.graph = graph
        self.packing = packing


def prepare_model(model: ModelFolder, *, packed: bool = False) -> PreparedModel:
    """Opens the tokenizer and builds the graph, or finds it in the cache."""
    tokenizer = TextTokenizer.of(model)
    skip = 0 if model.pool_prompt else tokenizer.prompt_tokens
    if not packed or not can_pack(model):
        return PreparedModel(model.name, tokenizer, encoder_graph(model, skip=skip))
    packing = Packing(model.pooling == ("mean",), skip, padding_before_positions(model.config))
    return PreparedModel(model.name, tokenizer, encoder_graph(model, skip=skip, packed=True), packing)


def fingerprint(*parts: object) -> str:
    """Hash over everything that decides about an encoder's vectors."""
    digest = hashlib.sha256()
    for part in parts:
        text = str(part).encode("utf-8", "surrogatepass")
        digest.update(f"{len(text)}:".encode() + text)
    return digest.hexdigest()


def to_unit_length(vectors: NDArray[np.float32]) -> Vectors:
    """Divides every row by its length, in place; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float32))
    vectors /= np.maximum(lengths, _TINY)[:, None]
    return vectors


class GraphEncoder(OpenedEncoder):
    """An encoder that runs a graph on batches of equally long texts.

    Every batch is computed by one thread, and several batches at a time: so the number of threads does not show in the
    vectors.

    Args:
        model: tokenizer and graph.
        spec: how this encoder was asked for, with the arithmetic of its products.
        runtime: what runs the graph, with its version, for the fingerprint.
    """

    #: Tokens in one batch of one thread: few enough that what lies between two products stays in a core's cache.
    batch_tokens: int = 256

    def __init__(self, model: PreparedModel, spec: EncoderSpec, *, runtime: str) -> None:
        graph, tokenizer = model.graph, model.tokenizer
        if spec.batch_tokens is not None:
            self.batch_tokens = spec.batch_tokens
        every = (graph.key, tokenizer.definition, spec.precision, runtime, self.batch_tokens, "unit-1")
        super().__init__(spec, name=model.name, dimension=graph.dimension, fingerprint=fingerprint(*every))
        self._model = model
        self._threads = spec.threads or processors()

    def pieces(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """As `TextTokenizer.pieces`."""
        return self._model.tokenizer.pieces(texts)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        ids = self._model.tokenizer.ids(texts)
        self._run(same_length_batches(ids.lengths, tokens=self.batch_tokens), ids, vectors)
        return to_unit_length(vectors)

    @abstractmethod
    def _run(self, batches: list[NDArray[np.int64]], ids: TokenIds, vectors: Vectors) -> None:
        """Runs the graph on every batch and puts the results into their rows of `vectors`."""


def only_cpu(device: str | None, backend: str) -> None:
    """Refuses a device that a graph runtime does not serve here."""
    if device not in (None, "cpu"):
        raise OptionError("device", f"backend '{backend}' runs on the CPU, not on '{device}'", "use --backend torch")


def same_length_batches(lengths: NDArray[np.int64], *, tokens: int) -> list[NDArray[np.int64]]:
    """Batches of equally long texts, the longest first, so that threads end together.

    They depend on the lengths and their order alone, so the same list of texts makes the same products.

    Args:
        lengths: tokens of each text, shape (texts,).
    """
    if len(lengths) == 0:
        return []
    order = np.argsort(-lengths, kind="stable")
    ordered = lengths[order]
    borders = np.flatnonzero(np.diff(ordered)) + 1
    batches: list[NDArray[np.int64]] = []
    for group in np.split(order, borders):
        size = max(1, tokens // max(1, int(lengths[group[0]])))
        batches.extend(group[start : start + size] for start in range(0, len(group), size))
    return batches


class OnnxEncoder(GraphEncoder):
    """Runs the graph in ONNX Runtime, in full precision on the CPU.

    Args:
        model: a local model folder.
        spec: how the encoder was asked for.
    """

    def __init__(self, model: ModelFolder, spec: EncoderSpec) -> None:
        import onnxruntime

        only_cpu(spec.device, "onnx")
        if spec.precision != "fp32":
            remedy = "use --backend openvino for int8 and bf16, or --backend torch on a GPU for fp16"
            raise OptionError("precision", f"backend 'onnx' runs fp32, not {spec.precision}", remedy)
        prepared = prepare_model(model)
        options = onnxruntime.SessionOptions()
        # One thread per batch; the threads of `encode` are the parallelism.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(prepared.graph.file), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the runtime has a class for each status
            raise InputError(
                f"ONNX Runtime cannot run this model ({error})", "use --backend torch", where=model.folder
            ) from error
        super().__init__(prepared, spec, runtime=f"onnxruntime {onnxruntime.__version__}")

    def _run(self, batches: list[NDArray[np.int64]], ids: TokenIds, vectors: Vectors) -> None:
        session = self._session

        def run(rows: NDArray[np.int64]) -> None:
            vectors[rows] = session.run([EMBEDDING], {INPUT_IDS: ids.batch(rows)})[0]

        if self._threads == 1 or len(batches) == 1:
            for rows in batches:
                run(rows)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            # The results are all None; asking for them brings a thread's error here.
            for _ in pool.map(run, batches):
                pass
