"""Products of float32 out of three of bfloat16, against float64; what is asserted holds on every processor."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from test_encoders_graphs import FAMILIES, random_model, tokenizer_of

from truerank.errors import OptionError
from truerank.vectors.encoders import EncoderSpec, open_spec
from truerank.vectors.encoders.openvino import (
    bf16_is_native,
    openvino_package,
    split_number,
    split_products,
    to_bfloat16,
)

#: Halves of smaller numbers than these are subnormal, which not every processor keeps.
FLOATS = st.floats(-(2.0**100), 2.0**100, width=32).filter(lambda value: value == 0 or abs(value) > 2.0**-60)
needs_openvino = pytest.mark.skipif(
    find_spec("openvino") is None, reason="OpenVINO is not installed: products of bfloat16 are not run"
)


@pytest.fixture
def native() -> None:
    if not bf16_is_native():
        pytest.skip("this processor has no bfloat16: its products are not run")


@given(arrays(np.float32, st.integers(1, 30), elements=FLOATS))
def test_two_halves_are_bfloat16_and_add_up(values: np.ndarray) -> None:
    import torch

    high, low = split_number(values)
    for half in (high, low):
        assert not (half.view(np.uint32) & 0xFFFF).any()
    assert np.array_equal(high, torch.from_numpy(values).bfloat16().float().numpy())
    left = values.astype(np.float64) - high - low
    assert (np.abs(left) <= 2.0**-17 * np.abs(values)).all()


def test_the_nearest_number_of_two_as_near_the_even_one() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0xBF818000], np.uint32)
    expected = np.array([0x3F800000, 0x3F820000, 0x3F810000, 0xBF820000], np.uint32)
    assert np.array_equal(to_bfloat16(bits.view(np.float32)).view(np.uint32), expected)


def chain(*weights: np.ndarray, transposed: bool) -> Any:
    """A network that multiplies with one matrix, shape (outputs, inputs), after another."""
    openvino_package()
    from openvino import Model, opset13

    given = opset13.parameter([-1, -1, weights[0].shape[1]], np.float32)
    x: Any = given
    for matrix in weights:
        constant = opset13.constant(matrix if transposed else np.ascontiguousarray(matrix.T))
        x = opset13.matmul(x, constant, False, transposed)
    return Model([opset13.result(x)], [given], "chain")


def computed(model: Any, x: np.ndarray, *, split: int | None) -> np.ndarray:
    openvino = openvino_package()
    core = openvino.Core()
    if split is not None:
        assert split_products(openvino, core, model) == split
    found: np.ndarray = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({0: x})[0].copy()
    return found


@needs_openvino
@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 192), (192, 64), (96, 96)])
def test_a_product_is_as_near_as_the_halves_are(inputs: int, outputs: int, transposed: bool) -> None:
    draw = np.random.default_rng(inputs)
    # Numbers of very different sizes: the bound is of each sum's own terms.
    x = (draw.standard_normal((2, 33, inputs)) * 10.0 ** draw.integers(-4, 4, (2, 33, 1))).astype(np.float32)
    weights = draw.standard_normal((outputs, inputs)).astype(np.float32)
    found = computed(chain(weights, transposed=transposed), x, split=1)
    exact, terms = x.astype(np.float64) @ weights.T, np.abs(x).astype(np.float64) @ np.abs(weights).T
    assert (np.abs(found - exact) <= 2.0**-15 * terms).all()
    # Far nearer than one product of bfloat16.
    one = to_bfloat16(x).astype(np.float64) @ to_bfloat16(weights).T
    assert np.abs((found - exact) / terms).max() < 0.1 * np.abs((one - exact) / terms).max()


@needs_openvino
@pytest.mark.usefixtures("native")
def test_products_that_follow_each_other_do_not_share_halves() -> None:
    draw = np.random.default_rng(7)
    weights = [draw.standard_normal((48, 48)).astype(np.float32) / 7 for _ in range(3)]
    x = draw.standard_normal((1, 5, 48)).astype(np.float32)
    exact = x.astype(np.float64) @ weights[0].T @ weights[1].T @ weights[2].T
    assert np.abs(computed(chain(*weights, transposed=True), x, split=3) - exact).max() < 1e-4


@needs_openvino
@pytest.mark.usefixtures("native")
def test_heads_stay_as_they_are() -> None:
    draw = np.random.default_rng(8)
    weights = draw.standard_normal((2, 64)).astype(np.float32)
    x = draw.standard_normal((1, 5, 64)).astype(np.float32)
    whole = computed(chain(weights, transposed=True), x, split=None)
    assert np.array_equal(computed(chain(weights, transposed=True), x, split=0), whole)


@needs_openvino
def test_an_openvino_without_such_operators_says_so(tmp_path: Path) -> None:
    openvino = openvino_package()
    weights = np.ones((64, 64), np.float32)
    elsewhere = SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    with pytest.raises(OptionError, match="no CPU plugin of OpenVINO"):
        split_products(elsewhere, openvino.Core(), chain(weights, transposed=True))

    class Other:
        """Reads nothing."""

        def add_extension(self, _: str) -> None: ...

        def read_model(self, *_: bytes) -> None:
            raise RuntimeError("unsupported opset")

    with pytest.raises(OptionError, match="no product of bfloat16 numbers"):
        split_products(openvino, Other(), chain(weights, transposed=True))


@needs_openvino
@pytest.mark.parametrize("packed", [False, True])
def test_an_encoder_is_near_full_precision(packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "cache"))
    random_model(*FAMILIES["bert"]).save_pretrained(tmp_path / "model")
    tokenizer_of(tmp_path / "model")
    texts = ["the quick brown fox", "a lazy dog", "", *["search engines in test data"] * 20]
    full = EncoderSpec(str(tmp_path / "model"), backend="openvino")
    split = replace(full, precision="bf16x3", packed=packed)
    if not bf16_is_native():
        with pytest.raises(OptionError, match="this processor has no bf16 products"):
            open_spec(split)
        return
    one, other = open_spec(full), open_spec(split)
    assert other.fingerprint != one.fingerprint
    assert np.abs(one.encode(texts) - other.encode(texts)).max() < 2e-5
    assert np.array_equal(other.encode(texts), open_spec(replace(split, threads=1)).encode(texts))
