"""Texts packed into rows: every text in one row, and the vectors of rows that hold one text each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_encoders_graphs import FAMILIES, random_model, tokenizer_of

from truerank.errors import OptionError
from truerank.vectors.encoders import EncoderSpec, open_spec
from truerank.vectors.encoders.bert_graph import padding_before_positions
from truerank.vectors.encoders.graph_encoder import build_graph, can_pack
from truerank.vectors.encoders.model_folder import read_model_folder
from truerank.vectors.encoders.tokenizing import WIDTHS, PackedBatch, Packing, TokenIds, fill_rows


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "cache"))


def ids_of(texts: list[list[int]]) -> TokenIds:
    lengths = np.array([len(text) for text in texts], np.int64)
    flat = np.array([token for text in texts for token in text], np.int32)
    return TokenIds(flat, np.cumsum(lengths) - lengths, lengths)


@given(st.lists(st.integers(1, 512), max_size=200))
def test_every_text_is_in_one_row_and_rows_are_nearly_full(lengths: list[int]) -> None:
    rows = fill_rows(lengths)
    assert sorted(text for _, texts in rows for text in texts) == list(range(len(lengths)))
    assert [width for width, _ in rows] == sorted((width for width, _ in rows), reverse=True)
    for place, (width, texts) in enumerate(rows):
        used = sum(lengths[text] for text in texts)
        assert used <= width
        assert width == min(size for size in WIDTHS if size >= lengths[texts[0]])
        # No text of a later row would have had room.
        later = [lengths[text] for _, others in rows[place + 1 :] for text in others]
        assert len(texts) == width // 4 or not later or used + min(later) > width


@given(st.lists(st.integers(1, 600), max_size=60), st.integers(1, 3000))
def test_batches_have_few_shapes(lengths: list[int], tokens: int) -> None:
    ids = ids_of([[7] * min(length, max(WIDTHS)) for length in lengths])
    batches = Packing(True, 0, None).batches(ids, tokens=tokens)
    placed = [text for batch in batches for text in batch.texts[batch.texts >= 0].tolist()]
    assert sorted(placed) == list(range(len(lengths)))
    for width in WIDTHS:
        full = max(1, tokens // width)
        sizes = {len(batch.tokens) for batch in batches if batch.tokens.shape[2] == width}
        halved = [full // 2**step for step in range(20)]
        assert sizes <= set(halved)


def run(model: object, batch: PackedBatch) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])  # type: ignore[attr-defined]
    found: np.ndarray = session.run(None, {"packed": batch.tokens, "pooling": batch.pooling})[0]
    return found


@pytest.mark.parametrize(
    ("family", "mean"),
    [("bert", True), ("bert", False), *((name, True) for name in ("roberta", "electra", "mpnet", "distilbert"))],
)
def test_packed_vectors_are_those_of_transformers(family: str, mean: bool, tmp_path: Path) -> None:
    import torch

    model = random_model(*FAMILIES[family])
    model.save_pretrained(tmp_path)
    folder = replace(read_model_folder(tmp_path, "tiny"), pooling=("mean",) if mean else ("cls",))
    assert can_pack(folder)
    graph, dimension = build_graph(folder, packed=True)
    draw = np.random.default_rng(4)
    # Ids of padding too: RoBERTa counts its positions without them.
    texts = [draw.integers(0, 40, length).tolist() for length in (1, 3, 9, 30, 70, 2, 64, 5)]
    vectors = np.zeros((len(texts), dimension), np.float32)
    for batch in Packing(mean, 0, padding_before_positions(folder.config)).batches(ids_of(texts), tokens=128):
        vectors[batch.texts[batch.texts >= 0]] = run(graph, batch)[batch.texts >= 0]
    for text, vector in zip(texts, vectors, strict=True):
        with torch.no_grad():
            mask = torch.ones((1, len(text)), dtype=torch.int64)
            tokens = model(torch.tensor([text]), attention_mask=mask).last_hidden_state[0].numpy()
        assert np.abs(vector - (tokens.mean(0) if mean else tokens[0])).max() < 5e-6


def test_an_encoder_gives_the_same_vectors_packed(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="OpenVINO is not installed: packed rows are not run")
    random_model(*FAMILIES["bert"]).save_pretrained(tmp_path / "model")
    tokenizer_of(tmp_path / "model")
    texts = ["the quick brown fox", "a lazy dog", "", *["search engines in test data"] * 40]
    spec = EncoderSpec(str(tmp_path / "model"), backend="openvino")
    one, several = (open_spec(each) for each in (spec, replace(spec, packed=True)))
    assert np.abs(one.encode(texts) - several.encode(texts)).max() < 5e-6
    assert one.fingerprint != several.fingerprint
    assert np.array_equal(several.encode(texts), open_spec(replace(spec, packed=True, threads=1)).encode(texts))
    with pytest.raises(OptionError, match="rows of several texts are not run in int8"):
        open_spec(replace(spec, packed=True, precision="int8", calibration=tuple(texts)))


def test_models_that_cannot_be_packed(tmp_path: Path) -> None:
    random_model(*FAMILIES["bert"]).save_pretrained(tmp_path)
    folder = read_model_folder(tmp_path, "tiny")
    assert not can_pack(replace(folder, pooling=("max",)))
    assert not can_pack(replace(folder, pooling=("mean", "cls")))
    assert not can_pack(replace(folder, max_tokens=max(WIDTHS) + 1))
    # A foreign graph has no input for positions.
    (tmp_path / "config.json").write_text(json.dumps({**folder.config, "model_type": "other"}))
    assert not can_pack(read_model_folder(tmp_path, "tiny"))
