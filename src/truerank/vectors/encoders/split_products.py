"""Products of matrices in full precision out of products of bfloat16: precision "bf16x3".

A float32 number is the sum of two bfloat16 numbers but for 2⁻¹⁶ of it: x = h + l. So x·W = h·Wₕ + l·Wₕ + h·Wₗ, where
only l·Wₗ is left out, about 2⁻¹⁶ of the whole. Three products of bfloat16 with sums in float32 take less time than one
of float32 where the processor multiplies bfloat16 in tiles (AMX).

Source: Henry, Tang, Heinecke (2019), "Leveraging the bfloat16 artificial intelligence datatype for higher-precision
computations", section 3.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.errors import OptionError

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
    _add_operators(openvino, core)
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
            halves[place] = _halves(ops, core, source)
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


def _halves(ops: Any, core: Any, source: Any) -> tuple[Any, Any]:
    """-h and l of what the weights are multiplied with."""
    almost = ops.constant(_ALMOST_MINUS_ONE).output(0)
    high = _operator(core, "Multiply", (source, almost), ("f32", "f32", "bf16"), _EACH)
    return high, _operator(core, "Add", (source, high), ("f32", "bf16", "bf16"), _EACH)


def _three_products(ops: Any, core: Any, high: Any, low: Any, weights: NDArray[np.float32]) -> Any:
    """The sum of the products, from -h and l."""
    types, (first, second) = ("bf16", "bf16", "f32"), split_number(weights)

    def product(left: Any, right: NDArray[np.float32]) -> Any:
        return _operator(core, "MatMul", (left, _constant(ops, right)), types, _TRANSPOSED)

    outputs, inputs = weights.shape
    if inputs > outputs:
        # The numbers to add are fewer than those to copy.
        small = ops.add(product(high, -second).get_node(), product(low, first).get_node())
        return ops.add(small, product(high, -first).get_node()).output(0)
    together = ops.concat([high.get_node(), low.get_node(), high.get_node()], -1).output(0)
    return product(together, np.concatenate([-first, first, -second], axis=1))


def _constant(ops: Any, values: NDArray[np.float32]) -> Any:
    openvino = import_module("openvino")
    tensor = openvino.Tensor(openvino.Type.bf16, openvino.Shape(list(values.shape)))
    tensor.data.view(np.uint16)[...] = (values.view(np.uint32) >> 16).astype(np.uint16)
    return ops.constant(tensor).output(0)


def _operator(core: Any, name: str, inputs: tuple[Any, Any], types: tuple[str, str, str], attributes: str) -> Any:
    """The output of an operator of two inputs whose types, and that of the output, are as given."""
    left, right, output = types
    for version in _VERSIONS:
        network = _NETWORK.format(
            operator=name, version=version, attributes=attributes, left=left, right=right, output=output
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


def _add_operators(openvino: Any, core: Any) -> None:
    """Lets a core read the operators of the CPU plugin."""
    folder = Path(openvino.__file__).parent / "libs"
    plugin = next(iter(sorted(folder.glob("*openvino_*_cpu_plugin.*"))), None)
    if plugin is None:
        raise OptionError("precision", f"no CPU plugin of OpenVINO in {folder}", "use fp32")
    core.add_extension(str(plugin))
