"""A network of transformers in OpenVINO, on the CPU, in full precision or less."""

from __future__ import annotations

import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.errors import MissingExtraError, OptionError
from truerank.rankers.pretrained.checkpoints import quiet
from truerank.vectors.encoders.cache_folder import publish_folder, user_cache_folder
from truerank.vectors.encoders.openvino import openvino_package, quantising_fault
from truerank.vectors.encoders.split_products import split_products
from truerank.work.engines import processors

#: Tokens in a batch: some dozen passages, so that a batch fills the processors without holding much.
BATCH_TOKENS: Final = 1024
_REQUESTS: Final = 2
#: Code is compiled for every shape and kept: without a bound, memory grows with the number of lengths.
_SHAPES_KEPT: Final = 64
_FEWEST_ROWS: Final = 10


class OpenVinoNetwork:
    """Runs rows of token ids and types through a network that was converted from torch.

    Args:
        module: the network, as it is now.
        run: gives its outputs for ids and token types, shape (rows, tokens) each, or None in place of types; where rows
            are packed, for tokens and pooling of a `PackedBatch`.
        types: whether it reads token types.
        threads: processors to use; None for all that the process may use.
        calibration: rows from which eight bits learn their ranges, each ids and types, shape (2, tokens); None for full
            precision.
        key: what the eight-bit graph is kept under in the user's cache folder.
        precision: of the products: "fp32", "bf16" or "bf16x3".
        packed: rows hold several texts.
    """

    def __init__(
        self,
        module: Any,
        run: Callable[[Any, Any, Any], Any],
        *,
        types: bool,
        threads: int | None,
        calibration: Sequence[NDArray[np.int64]] | None = None,
        key: str = "",
        precision: str = "fp32",
        packed: bool = False,
    ) -> None:
        openvino = openvino_package()
        streams = threads or processors()
        options = {
            "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": streams,
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
            "ENABLE_CPU_PINNING": False,
            "CPU_RUNTIME_CACHE_CAPACITY": _SHAPES_KEPT,
        }
        # The core has the code of some operators: it has to live as long as the network.
        self._core = openvino.Core()
        try:
            model = _converted(openvino, module, run, types=types, packed=packed)
            if calibration is not None:
                model = _in_eight_bits(openvino, model, calibration, key)
            if precision == "bf16x3":
                split_products(openvino, self._core, model)
            compiled = self._core.compile_model(model, "CPU", options)
        except RuntimeError as error:
            message = " ".join(str(error).split())[:300]
            remedy = "use --backend torch"
            raise OptionError("backend", f"OpenVINO cannot run this model ({message})", remedy) from error
        self._queue: Any = openvino.AsyncInferQueue(compiled, _REQUESTS * streams)
        self._lock = threading.Lock()

    def run(self, batches: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[np.float32]]:
        """What the network says of each batch, shape (rows, outputs), or (rows, texts, outputs) where rows are packed.

        Args:
            batches: the inputs of each: ids and types, shape (rows, 2, tokens), or tokens and pooling of a
                `PackedBatch`.
        """
        found: list[NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * len(batches)

        def keep(request: Any, number: int) -> None:
            found[number] = request.get_output_tensor(0).data.copy()

        with self._lock:
            self._queue.set_callback(keep)
            try:
                for number, batch in enumerate(batches):
                    inputs = {place: np.ascontiguousarray(values) for place, values in enumerate(batch)}
                    self._queue.start_async(inputs, number)
            finally:
                self._queue.wait_all()
        return found


def has_openvino() -> bool:
    """Whether OpenVINO is installed."""
    try:
        openvino_package()
    except MissingExtraError:
        return False
    return True


def _converted(openvino: Any, module: Any, run: Callable[[Any, Any, Any], Any], *, types: bool, packed: bool) -> Any:
    import torch

    class Stacked(torch.nn.Module):  # type: ignore[misc]
        """Takes ids and types as one tensor, so that a graph has one input."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, stacked: Any) -> Any:
            return run(self.inner, stacked[:, 0], stacked[:, 1] if types else None)

    class Packed(torch.nn.Module):  # type: ignore[misc]
        """Takes tokens and pooling."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, tokens: Any, pooling: Any) -> Any:
            return run(self.inner, tokens, pooling)

    example: Any = torch.ones((2, 2, 12), dtype=torch.long)
    example[:, 1] = 0
    shapes: list[Any] = [[-1, 2, -1]]
    network: Any = Stacked()
    if packed:
        channels = 4 if types else 3
        example = (torch.zeros((2, channels, 12), dtype=torch.long), torch.ones((2, 3, 12)))
        shapes = [[-1, channels, -1], [-1, -1, -1]]
        network = Packed()
    with torch.no_grad(), quiet(), warnings.catch_warnings():
        # Tracing warns of branches that depend on shapes; tests compare the graph at other shapes than the traced one.
        warnings.simplefilter("ignore")
        return openvino.convert_model(network.eval(), example_input=example, input=shapes)


def _in_eight_bits(openvino: Any, model: Any, rows: Sequence[NDArray[np.int64]], key: str) -> Any:
    if len(rows) < _FEWEST_ROWS:
        fault = f"int8 learns its ranges from pairs, and was given {len(rows)}"
        raise OptionError("precision", fault, "give some 250 pairs of the kind to be scored")
    folder = user_cache_folder() / "int8-rankers" / key[:32]
    if not (folder / "int8.xml").is_file():
        publish_folder(folder, lambda place: _quantise(openvino, model, rows, place / "int8.xml"))
    return openvino.Core().read_model(str(folder / "int8.xml"))


def _quantise(openvino: Any, model: Any, rows: Sequence[NDArray[np.int64]], target: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        graph = Path(temporary) / "fp32.xml"
        openvino.save_model(model, str(graph), compress_to_fp16=False)
        fault = quantising_fault(graph, model.inputs[0].get_any_name(), [row.tolist() for row in rows], target)
    if "No module named 'nncf'" in fault:
        raise MissingExtraError("int8 with OpenVINO", "fast")
    if fault:
        raise OptionError("precision", f"no int8 graph could be made ({fault})", "use `precision` fp32")
