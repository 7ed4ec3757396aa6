"""From token vectors to one vector per text: pooling and the modules after it, as in sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from truerank.errors import InputError
from truerank.vectors.encoders.graph_writer import GraphWriter
from truerank.vectors.encoders.model_folder import HeadStep
from truerank.vectors.encoders.weights import Weights, open_weights, weight_files

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
            x = graph.op("Div", x, _length(graph, x))
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


def _length(graph: GraphWriter, x: str) -> str:
    length = graph.op("Sqrt", graph.sum_over(graph.op("Mul", x, x), -1, keep=True))
    return graph.op("Max", length, graph.number(1e-12))


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
