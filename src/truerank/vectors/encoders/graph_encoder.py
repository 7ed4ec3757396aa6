"""Encoders that run a graph: ids in, batches without padding, unit vectors out; on ONNX Runtime, the core's backend."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.vectors.encoders.base import EncoderSpec, OpenedEncoder, Vectors
from truerank.vectors.encoders.bert_graph import EMBEDDING, INPUT_IDS, padding_before_positions
from truerank.vectors.encoders.graphs import EncoderGraph, can_pack, encoder_graph
from truerank.vectors.encoders.model_folder import ModelFolder
from truerank.vectors.encoders.tokenizing import Packing, TextTokenizer, TokenIds
from truerank.work.engines import processors

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
