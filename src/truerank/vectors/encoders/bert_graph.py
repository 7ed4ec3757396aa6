"""The forward pass of a BERT-family encoder as an ONNX graph, from config.json and safetensors, without torch.

The graph takes token ids alone. It is run on batches of texts that have the same number of tokens, so nothing is
padded and no attention mask is needed: the values are those of the masked model (Devlin et al. 2019; Liu et al. 2019
for the positions of RoBERTa; Sanh et al. 2019 for DistilBERT; Song et al. 2020 for MPNet's relative positions; Clark
et al. 2020 for ELECTRA).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.vectors.encoders.model_folder import HeadStep
from truerank.vectors.encoders.weights import Weights, open_weights, weight_files

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


_REMEDY: Final = "use --backend torch"
#: Added to the score of a token of another text: its share becomes 0.
_APART: Final = -1e9


@dataclass(frozen=True)
class _Family:
    """Where the tensors of a family lie, and how its positions are counted."""

    prefixes: tuple[str, ...] = ("", "bert.")
    layer: str = "encoder.layer.{}."
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    attention_out: str = "attention.output.dense"
    attention_norm: str = "attention.output.LayerNorm"
    up: str = "intermediate.dense"
    down: str = "output.dense"
    output_norm: str = "output.LayerNorm"
    token_types: bool = True
    positions: str = "counted"
    relative: str = ""
    padding: int = 0


_BERT: Final = _Family()
_ROBERTA: Final = replace(_BERT, prefixes=("", "roberta."), positions="after padding", padding=1)
_FAMILIES: Final[Mapping[str, _Family]] = {
    "bert": _BERT,
    "electra": replace(_BERT, prefixes=("", "electra.")),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": _Family(
        prefixes=("", "distilbert."),
        layer="transformer.layer.{}.",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        attention_out="attention.out_lin",
        attention_norm="sa_layer_norm",
        up="ffn.lin1",
        down="ffn.lin2",
        output_norm="output_layer_norm",
        token_types=False,
    ),
    "mpnet": _Family(
        prefixes=("", "mpnet."),
        query="attention.attn.q",
        key="attention.attn.k",
        value="attention.attn.v",
        attention_out="attention.attn.o",
        attention_norm="attention.LayerNorm",
        token_types=False,
        positions="after padding",
        relative="encoder.relative_attention_bias.weight",
        padding=1,
    ),
}

SUPPORTED_MODEL_TYPES: Final = tuple(_FAMILIES)

_GELU_TANH: Final = ("gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python_tanh")
_ACTIVATIONS: Final = ("gelu", "gelu_python", *_GELU_TANH, "relu", "silu", "swish", "tanh", "sigmoid")


@dataclass(frozen=True)
class _Sizes:
    layers: int
    hidden: int
    heads: int
    inner: int
    epsilon: float
    activation: str
    padding: int

    @property
    def head(self) -> int:
        return self.hidden // self.heads


def check_supported(config: Mapping[str, Any], where: object) -> None:
    """Says whether a graph can be built for this config.json."""
    place = str(where)
    kind = config.get("model_type")
    if kind not in _FAMILIES:
        known = ", ".join(SUPPORTED_MODEL_TYPES)
        raise InputError(f"model type '{kind}' has no built-in graph (there are: {known})", _REMEDY, where=place)
    if config.get("position_embedding_type", "absolute") != "absolute":
        fault = f"position_embedding_type '{config['position_embedding_type']}' has no built-in graph"
        raise InputError(fault, _REMEDY, where=place)
    for option in ("is_decoder", "add_cross_attention"):
        if config.get(option):
            raise InputError(f"'{option}' is set, and the built-in graphs are encoders", _REMEDY, where=place)
    sizes = _sizes(config, _FAMILIES[str(kind)], place)
    if sizes.activation not in _ACTIVATIONS:
        raise InputError(f"activation '{sizes.activation}' has no built-in graph", _REMEDY, where=place)
    if sizes.heads < 1 or sizes.hidden % sizes.heads:
        fault = f"{sizes.heads} attention heads do not divide hidden size {sizes.hidden}"
        raise InputError(fault, "fetch the model again", where=place)


def padding_before_positions(config: Mapping[str, Any]) -> int | None:
    """The id of the padding token where positions are counted after it; None where they are counted from 0."""
    family = _FAMILIES[str(config["model_type"])]
    return None if family.positions == "counted" else _sizes(config, family, "config.json").padding


def write_encoder(
    graph: GraphWriter, config: Mapping[str, Any], weights: Weights, where: object, *, packed: bool = False
) -> tuple[str, int]:
    """Writes the transformer from token ids to token vectors."""
    check_supported(config, where)
    family = _FAMILIES[str(config["model_type"])]
    sizes = _sizes(config, family, str(where))
    builder = _Builder(graph, family, sizes, weights, packed=packed)
    x = builder.embeddings()
    bias = builder.bias()
    for number in range(sizes.layers):
        x = builder.layer(x, family.layer.format(number), bias)
    return x, sizes.hidden


def _sizes(config: Mapping[str, Any], family: _Family, where: str) -> _Sizes:
    distil = config["model_type"] == "distilbert"
    keys = ("n_layers", "dim", "n_heads", "hidden_dim") if distil else (
        "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"
    )  # fmt: skip
    missing = [key for key in keys if not isinstance(config.get(key), int)]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}", "fetch the model again", where=where)
    layers, hidden, heads, inner = (int(config[key]) for key in keys)
    epsilon = 1e-12 if distil else float(config.get("layer_norm_eps", 1e-12))
    activation = str(config.get("activation" if distil else "hidden_act", "gelu"))
    # MPNet counts positions after 1, whatever its config says.
    padding = family.padding if config["model_type"] == "mpnet" else config.get("pad_token_id")
    return _Sizes(
        layers, hidden, heads, inner, epsilon, activation, family.padding if padding is None else int(padding)
    )


class _Builder:
    """Writes the parts of one model; tensors are asked for by the family's own names."""

    def __init__(self, graph: GraphWriter, family: _Family, sizes: _Sizes, weights: Weights, *, packed: bool) -> None:
        self._graph = graph
        self._family = family
        self._sizes = sizes
        self._weights = weights
        embeddings = "embeddings.word_embeddings.weight"
        found = [prefix for prefix in family.prefixes if prefix + embeddings in weights.names]
        self._prefix = found[0] if found else family.prefixes[0]
        self._ids, self._positions, self._texts = INPUT_IDS, "", ""
        if packed:
            self._ids, self._positions, self._texts = (
                graph.op("Gather", PACKED, graph.op("Squeeze", graph.integers(part)), axis=1) for part in range(3)
            )

    def embeddings(self) -> str:
        graph = self._graph
        words = self._tensor("embeddings.word_embeddings.weight")
        width = words.shape[1]
        positions = self._tensor("embeddings.position_embeddings.weight")
        if self._family.token_types:
            # All token types are 0: their one row is added to the positions once.
            positions = positions + self._tensor("embeddings.token_type_embeddings.weight")[0]
        places = graph.constant(positions)
        if self._positions:
            shift = graph.op("Gather", places, self._positions)
        elif self._family.positions == "counted":
            count = graph.token_count(INPUT_IDS)
            shift = graph.op("Slice", places, graph.integers(0), count, graph.integers(0))
        else:
            shift = graph.op("Gather", places, self._positions_after_padding())
        x = graph.op("Add", graph.op("Gather", graph.constant(words), self._ids), shift)
        x = self._norm(x, "embeddings.LayerNorm", width)
        if self._prefix + "embeddings_project.weight" in self._weights.names:
            x = self._linear(x, "embeddings_project", self._sizes.hidden, width)
        return x

    def _positions_after_padding(self) -> str:
        """Positions count the tokens that are not the padding token, from the number after its own."""
        graph = self._graph
        padding = graph.integers(self._sizes.padding)
        real = graph.op("Cast", graph.op("Not", graph.op("Equal", INPUT_IDS, padding)), to=7)
        # CumSum wants its axis as a scalar.
        counted = graph.op("CumSum", real, graph.op("Squeeze", graph.integers(1)))
        return graph.op("Add", graph.op("Mul", counted, real), padding)

    def bias(self) -> str | None:
        """What is added to the scores of all layers; None for nothing."""
        relative = self._relative_bias() if self._family.relative else None
        if not self._texts:
            return relative
        graph = self._graph
        down, across = (graph.op("Unsqueeze", self._texts, graph.integers(1, axis)) for axis in (3, 2))
        apart = graph.op("Where", graph.op("Equal", down, across), graph.number(0), graph.number(_APART))
        return apart if relative is None else graph.op("Add", apart, relative)

    def _relative_bias(self) -> str:
        """MPNet's bias of attention by distance, [1, heads, tokens, tokens]."""
        graph = self._graph
        table = self._tensor(self._family.relative)
        longest = self._tensor("embeddings.position_embeddings.weight").shape[0]
        # Each distance that can occur has its row, so the graph only subtracts and gathers.
        strip = table[_relative_buckets(np.arange(-(longest - 1), longest))]
        count = graph.op("Squeeze", graph.token_count(self._ids))
        zero, one = (graph.op("Squeeze", graph.integers(value)) for value in (0, 1))
        line = graph.op("Range", zero, count, one)
        across, down = (graph.op("Unsqueeze", line, graph.integers(axis)) for axis in (0, 1))
        distance = graph.op("Add", graph.op("Sub", across, down), graph.integers(longest - 1))
        square = graph.op("Gather", graph.constant(strip), distance, axis=0)
        return graph.op("Unsqueeze", graph.op("Transpose", square, perm=[2, 0, 1]), graph.integers(0))

    def layer(self, x: str, place: str, bias: str | None) -> str:
        graph, family, sizes = self._graph, self._family, self._sizes
        attended = self._attention(x, place, bias)
        projected = self._linear(attended, place + family.attention_out, sizes.hidden, sizes.hidden)
        x = self._norm(graph.op("Add", projected, x), place + family.attention_norm, sizes.hidden)
        inner = self._activate(self._linear(x, place + family.up, sizes.inner, sizes.hidden))
        outer = self._linear(inner, place + family.down, sizes.hidden, sizes.inner)
        return self._norm(graph.op("Add", outer, x), place + family.output_norm, sizes.hidden)

    def _attention(self, x: str, place: str, bias: str | None) -> str:
        graph, family, sizes = self._graph, self._family, self._sizes
        # One product makes queries, keys and values; the scale of the scores is part of the queries' weights.
        scale = np.float32(sizes.head**-0.5)
        matrices, offsets = [], []
        for part, factor in ((family.query, scale), (family.key, np.float32(1)), (family.value, np.float32(1))):
            matrices.append(self._tensor(f"{place}{part}.weight", (sizes.hidden, sizes.hidden)) * factor)
            offsets.append(self._tensor(f"{place}{part}.bias", (sizes.hidden,)) * factor)
        joint = graph.linear(x, np.concatenate(matrices), np.concatenate(offsets))
        parts = graph.ops("Split", 3, joint, graph.integers(*[sizes.hidden] * 3), axis=-1)
        by_head = graph.integers(0, 0, sizes.heads, sizes.head)
        query, key, value = (
            graph.op("Transpose", graph.op("Reshape", part, by_head), perm=order)
            for part, order in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scores = graph.op("MatMul", query, key)
        if bias is not None:
            scores = graph.op("Add", scores, bias)
        mixed = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
        together = graph.op("Transpose", mixed, perm=[0, 2, 1, 3])
        return graph.op("Reshape", together, graph.integers(0, 0, sizes.hidden))

    def _activate(self, x: str) -> str:
        graph, kind = self._graph, self._sizes.activation
        if kind in ("gelu", "gelu_python"):
            share = graph.op("Erf", graph.op("Div", x, graph.number(2**0.5)))
            return graph.op("Mul", graph.op("Mul", x, graph.op("Add", share, graph.number(1))), graph.number(0.5))
        if kind in _GELU_TANH:
            cube = graph.op("Mul", graph.op("Mul", graph.op("Mul", x, x), x), graph.number(0.044715))
            inside = graph.op("Mul", graph.op("Add", x, cube), graph.number((2 / np.pi) ** 0.5))
            share = graph.op("Add", graph.op("Tanh", inside), graph.number(1))
            return graph.op("Mul", graph.op("Mul", x, share), graph.number(0.5))
        if kind in ("silu", "swish"):
            return graph.op("Mul", x, graph.op("Sigmoid", x))
        return graph.op({"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[kind], x)

    def _linear(self, x: str, name: str, outputs: int, inputs: int) -> str:
        weight = self._tensor(f"{name}.weight", (outputs, inputs))
        return self._graph.linear(x, weight, self._tensor(f"{name}.bias", (outputs,)))

    def _norm(self, x: str, name: str, width: int) -> str:
        # Checkpoints converted from TensorFlow call the two tensors gamma and beta.
        old = f"{self._prefix}{name}.gamma" in self._weights.names
        weight, bias = ("gamma", "beta") if old else ("weight", "bias")
        scale, shift = self._tensor(f"{name}.{weight}", (width,)), self._tensor(f"{name}.{bias}", (width,))
        return self._graph.layer_norm(x, scale, shift, self._sizes.epsilon)

    def _tensor(self, name: str, shape: tuple[int, ...] | None = None) -> NDArray[np.float32]:
        return self._weights.tensor(self._prefix + name, shape=shape)


def _relative_buckets(distances: NDArray[np.int64]) -> NDArray[np.int64]:
    """MPNet's buckets of distances (key minus query): 16 each way, exact below 8, then logarithmic to 128."""
    half, exact, longest = 16, 8, 128
    forwards = (distances > 0) * half
    far = np.abs(distances)
    with np.errstate(divide="ignore"):
        scaled = np.log(far.astype(np.float32) / np.float32(exact)) / np.float32(np.log(longest / exact))
    steps = np.where(far < exact, 0, scaled * np.float32(half - exact))
    return np.asarray(forwards + np.where(far < exact, far, np.minimum(exact + steps.astype(np.int64), half - 1)))


_SQRT2: Final = 2**0.5


def write_head(
    graph: GraphWriter, tokens: str, width: int, pooling: Sequence[str], steps: Sequence[HeadStep], *, skip: int = 0
) -> tuple[str, int]:
    """Writes pooling and what follows it; the batch has no padding, so every token counts."""
    kept = tokens
    if skip:
        start, end = graph.integers(skip), graph.integers(np.iinfo(np.int64).max)
        kept = graph.op("Slice", tokens, start, end, graph.integers(1))
    parts = [_pool(graph, kept, mode, skip) for mode in pooling]
    x = parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=-1)
    return _steps(graph, x, width * len(parts), steps)


def write_packed_head(
    graph: GraphWriter, tokens: str, weights: str, width: int, steps: Sequence[HeadStep]
) -> tuple[str, int]:
    """Writes pooling with given weights, and what follows it, for rows of several texts."""
    return _steps(graph, graph.op("MatMul", weights, tokens), width, steps)


def _steps(graph: GraphWriter, x: str, width: int, steps: Sequence[HeadStep]) -> tuple[str, int]:
    for step in steps:
        if step.kind == "normalise":
            length = graph.op("Sqrt", graph.sum_over(graph.op("Mul", x, x), -1, keep=True))
            x = graph.op("Div", x, graph.op("Max", length, graph.number(1e-12)))
        elif step.kind == "layer_norm":
            weights = _step_weights(step)
            scale = weights.tensor("norm.weight", shape=(width,))
            x = graph.layer_norm(x, scale, weights.tensor("norm.bias", shape=(width,)), 1e-5)
        else:
            x, width = _dense(graph, x, step, width)
    return x, width


def _pool(graph: GraphWriter, tokens: str, mode: str, skip: int) -> str:
    if mode == "max":
        return graph.maximum_over(tokens, 1)
    if mode in ("cls", "lasttoken"):
        last = graph.integers(0 if mode == "cls" else -1)
        return graph.op("Squeeze", graph.op("Gather", tokens, last, axis=1), graph.integers(1))
    count = graph.token_count(tokens)
    if mode == "weightedmean":
        one = graph.integers(1)
        first, stop = graph.integers(1 + skip), graph.op("Add", count, graph.integers(1 + skip))
        line = graph.op("Range", graph.op("Squeeze", first), graph.op("Squeeze", stop), graph.op("Squeeze", one))
        weight = graph.op("Unsqueeze", graph.op("Cast", line, to=1), graph.integers(0, 2))
        total = graph.sum_over(graph.op("Mul", tokens, weight), 1)
        return graph.op("Div", total, graph.op("Squeeze", graph.sum_over(weight, 1), graph.integers(0)))
    number = graph.op("Cast", count, to=1)
    divisor = graph.op("Sqrt", number) if mode == "mean_sqrt_len_tokens" else number
    return graph.op("Div", graph.sum_over(tokens, 1), divisor)


def _step_weights(step: HeadStep) -> Weights:
    files = weight_files(step.folder)
    if not files:
        raise InputError(
            "no model.safetensors here", "fetch the model again, or use --backend torch", where=step.folder
        )
    return open_weights(files)


def _dense(graph: GraphWriter, x: str, step: HeadStep, width: int) -> tuple[str, int]:
    weights = _step_weights(step)
    outputs = int(step.options.get("out_features", 0))
    matrix = weights.tensor("linear.weight", shape=(outputs, width))
    bias = weights.tensor("linear.bias", shape=(outputs,)) if step.options.get("bias", True) else None
    out = _activate(graph, graph.linear(x, matrix, bias), step)
    if step.options.get("use_residual"):
        kept = x
        if outputs != width:
            kept = graph.linear(x, weights.tensor("residual.weight", shape=(outputs, width)), None)
        out = graph.op("Add", out, kept)
    return out, outputs


def _activate(graph: GraphWriter, x: str, step: HeadStep) -> str:
    name: Any = step.options.get("activation_function", "torch.nn.modules.activation.Tanh")
    match str(name).rpartition(".")[2]:
        case "Identity":
            return x
        case "Tanh" | "Sigmoid" as kind:
            return graph.op(kind, x)
        case "ReLU":
            return graph.op("Relu", x)
        case "GELU":
            share = graph.op("Add", graph.op("Erf", graph.op("Div", x, graph.number(_SQRT2))), graph.number(1))
            return graph.op("Mul", graph.op("Mul", x, share), graph.number(0.5))
        case "SiLU":
            return graph.op("Mul", x, graph.op("Sigmoid", x))
        case _:
            fault = f"activation {json.dumps(name)} has no built-in graph"
            raise InputError(fault, "use --backend torch", where=step.folder / "config.json")
