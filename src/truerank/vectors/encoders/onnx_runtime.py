"""Encoders on ONNX Runtime, the backend of the core."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.vectors.encoders.base import EncoderSpec, Vectors
from truerank.vectors.encoders.bert_graph import EMBEDDING, INPUT_IDS
from truerank.vectors.encoders.graph_encoder import GraphEncoder, only_cpu, prepare_model
from truerank.vectors.encoders.model_folder import ModelFolder
from truerank.vectors.encoders.tokenizing import TokenIds


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
