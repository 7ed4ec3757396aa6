"""Writes an ONNX graph node by node, with operators that every runtime and quantiser reads (opset 17)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

#: Names of the one input (int64, [texts, tokens]) and the one output (float32, [texts, dimension]) of every graph.
INPUT_IDS: Final = "input_ids"
EMBEDDING: Final = "truerank_embedding"
#: The two inputs of a graph that reads packed texts, see `packing.PackedBatch`.
PACKED: Final = "packed"
POOLING: Final = "pooling"
OPSET: Final = 17
_IR_VERSION: Final = 8
# One protobuf message holds at most 2 GiB; larger weights go to a file beside it.
_INLINE_LIMIT: Final = 1_500_000_000


class GraphWriter:
    """Collects the nodes and constants of one graph; every method returns the name of the value that it made.

    Args:
        opset: version of the operators; that of a foreign graph where nodes are added to one.
        prefix: begins every name, so that the names do not meet those of a foreign graph.
    """

    def __init__(self, *, opset: int = OPSET, prefix: str = "") -> None:
        self._opset = opset
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._bytes = 0

    @property
    def nodes(self) -> list[Any]:
        """The nodes so far, in order."""
        return self._nodes

    @property
    def constants(self) -> list[Any]:
        """The constants so far."""
        return self._constants

    def constant(self, values: NDArray[Any]) -> str:
        """A constant tensor."""
        from onnx import numpy_helper

        name = f"{self._prefix}constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        self._bytes += values.nbytes
        return name

    def integers(self, *values: int) -> str:
        """A constant list of integers."""
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """A constant float32, shape [1], that broadcasts."""
        return self.constant(np.array([value], dtype=np.float32))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node with several outputs."""
        from onnx import helper

        stem = f"{self._prefix}{kind.lower()}_{len(self._nodes)}"
        names = [f"{stem}_{number}" for number in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, name=stem, **attributes))
        return names

    def linear(self, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32] | None) -> str:
        """A dense layer; the weight has torch's shape [out, in]."""
        product = self.op("MatMul", x, self.constant(weight.T))
        return product if bias is None else self.op("Add", product, self.constant(bias))

    def layer_norm(self, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32], epsilon: float) -> str:
        """Layer normalisation over the last axis."""
        return self.op("LayerNormalization", x, self.constant(weight), self.constant(bias), axis=-1, epsilon=epsilon)

    def token_count(self, x: str) -> str:
        """The length of the second axis, int64, shape [1]."""
        return self.op("Gather", self.op("Shape", x), self.integers(1), axis=0)

    def sum_over(self, x: str, axis: int, *, keep: bool = False) -> str:
        """Sum along one axis."""
        return self.op("ReduceSum", x, self.integers(axis), keepdims=int(keep))

    def maximum_over(self, x: str, axis: int) -> str:
        """Maximum along one axis (its axes moved from an attribute to an input in opset 18)."""
        if self._opset < 18:
            return self.op("ReduceMax", x, axes=[axis], keepdims=0)
        return self.op("ReduceMax", x, self.integers(axis), keepdims=0)

    def model(self, output: str, dimension: int, *, packed: bool = False) -> Any:
        """The finished model, from `INPUT_IDS`, or `PACKED` and `POOLING`, to `EMBEDDING`."""
        from onnx import TensorProto, helper

        self._nodes.append(helper.make_node("Identity", [output], [EMBEDDING], name=EMBEDDING))
        given = [helper.make_tensor_value_info(INPUT_IDS, TensorProto.INT64, ["texts", "tokens"])]
        shape: list[str | int] = ["texts", dimension]
        if packed:
            tokens = helper.make_tensor_value_info(PACKED, TensorProto.INT64, ["rows", 3, "tokens"])
            weights = helper.make_tensor_value_info(POOLING, TensorProto.FLOAT, ["rows", "texts", "tokens"])
            given, shape = [tokens, weights], ["rows", "texts", dimension]
        vectors = helper.make_tensor_value_info(EMBEDDING, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self._nodes, "encoder", given, [vectors], self._constants)
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self._opset)],
            ir_version=_IR_VERSION,
            producer_name="truerank",
        )


def save_graph(model: Any, file: Path) -> None:
    """Writes a model; weights beyond what one protobuf message can hold go to a file beside it."""
    import onnx

    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size > _INLINE_LIMIT:
        onnx.save(cast(Any, model), file, save_as_external_data=True, location=f"{file.name}.data")
    else:
        onnx.save(cast(Any, model), file)
