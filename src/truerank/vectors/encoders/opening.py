"""Opens an encoder by name: packaged, of the Hugging Face hub, of a folder, or of another package."""

from __future__ import annotations

import copyreg
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from truerank.errors import InputError, MissingExtraError, OptionError, needed_for
from truerank.loading import json_file
from truerank.plugins import Plugins
from truerank.vectors.encoders.base import (
    Backend,
    Encoder,
    EncoderSpec,
    OpenedEncoder,
    Precision,
    Vectors,
    WordsOnly,
)
from truerank.vectors.encoders.bert_graph import SUPPORTED_MODEL_TYPES
from truerank.vectors.encoders.model_folder import INSTALL, PACKAGED, PACKAGED_MODEL, packaged_folder, read_model_folder

#: Each has `open(place, spec)`, which returns an `Encoder`. One that is to travel to worker processes can be pickled;
#: an `OpenedEncoder` is opened anew there.
ENCODERS: Final = Plugins("truerank.encoders", "encoder", ("open",))
#: How far the length of a vector may be from 1, and two vectors of one text from each other in another list.
_CLOSE: Final = 0.01
#: Texts that are encoded again, twice, to see that they get the same vectors.
_AGAIN: Final = 4


class PluginEncoder:
    """An encoder of another package, whose vectors are looked at before anything is concluded from them.

    Args:
        encoder: what the package opened; opened here where it is None.
    """

    def __init__(self, kind: str, spec: EncoderSpec, encoder: Encoder | None = None) -> None:
        self._kind, self._spec = kind, spec
        home = ENCODERS.load(kind)
        with ENCODERS.calling(kind):
            opened = home.open(spec.name.partition(":")[2], spec) if encoder is None else encoder
            self._refuse(not isinstance(opened, Encoder), f"opens a {type(opened).__name__}, which is not an encoder")
            self.name, self.precision, self.fingerprint = opened.name, opened.precision, opened.fingerprint
            self.dimension = opened.dimension
            texts = (self.name, self.precision, self.fingerprint)
            known = all(isinstance(text, str) for text in texts) and isinstance(self.dimension, int)
            self._refuse(not known, "has no name, precision or fingerprint of text, or no whole dimension")
        self._encoder, self._begun = opened, False

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        anew = isinstance(self._encoder, OpenedEncoder)
        return PluginEncoder, (self._kind, self._spec, None if anew else self._encoder)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors of the package; those of the first texts are made twice more, and compared."""
        found = self._vectors(texts)
        if len(texts) and not self._begun:
            first = texts[:_AGAIN]
            one, other = self._vectors(first), self._vectors(first)
            same = np.array_equal(one, other) and np.allclose(one, found[: len(first)], rtol=0, atol=_CLOSE)
            self._refuse(not same, "gives the same texts other vectors when they are encoded again")
            self._refuse(not found.any() and any(map(str.strip, texts)), "gives vectors of zeros")
            self._begun = True
        return found

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        with ENCODERS.calling(self._kind):
            found = self._encoder.encode(texts)
        shape = (len(texts), self.dimension)
        array = isinstance(found, np.ndarray) and found.dtype.kind == "f"
        got = f"an array of the shape {found.shape}" if array else f"a {type(found).__name__}"
        self._refuse(not array or found.shape != shape, f"gives {got}, not numbers of the shape {shape}")
        self._refuse(not np.isfinite(found).all(), "gives numbers that are not finite")
        lengths = np.linalg.norm(found, axis=1)
        wrong = lengths[(lengths != 0) & (np.abs(lengths - 1) > _CLOSE)]
        self._refuse(len(wrong) > 0, f"gives a vector of the length {wrong[0] if len(wrong) else 1:.3g}, not 1")
        return np.ascontiguousarray(found, np.float32)

    def _refuse(self, wrong: bool, fault: str) -> None:
        if wrong:
            raise ENCODERS.fault(self._kind, fault)


_SMALL: Final = ("*.json", "*/config.json", "*.txt", "*.model")
_WEIGHTS: Final = ("model.safetensors", "model-*.safetensors", "0_*/model.safetensors", "[1-9]_*/model.safetensors")
_GRAPH: Final = ("onnx/model.onnx", "onnx/model.onnx?data", "[1-9]_*/model.safetensors")


def hub_folder(name: str) -> Path:
    """The folder of a model, with what the built-in backends need: configuration, tokenizer, weights or ONNX file.

    A model that lies in Hugging Face's cache is taken as it is, without asking the network, so that runs repeat.
    """
    kept = _snapshot(name, None, local=True)
    if kept is not None and _complete(kept):
        return kept
    folder = _snapshot(name, _SMALL, local=False)
    if folder is None:
        raise OptionError("encoder", f"'{name}' cannot be fetched", _remedy(name))
    own = _model_type(folder) in SUPPORTED_MODEL_TYPES
    for patterns in (_WEIGHTS, _GRAPH) if own else (_GRAPH, _WEIGHTS):
        folder = _snapshot(name, patterns, local=False) or folder
        if _complete(folder):
            break
    return folder


def _complete(folder: Path) -> bool:
    places = (folder, *folder.glob("0_*"))
    named = (
        name
        for place in places
        for name in (place / "model.safetensors", place / "onnx" / "model.onnx", place / "model.onnx")
    )
    heads = (place for place in folder.glob("[1-9]_Dense") if not (place / "model.safetensors").is_file())
    tokenizer = any((place / "tokenizer.json").is_file() for place in places)
    weights = any(file.is_file() for file in named) or _all_shards(folder)
    return tokenizer and weights and not any(heads) and any((place / "config.json").is_file() for place in places)


def _all_shards(folder: Path) -> bool:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return False
    try:
        shards = set(json_file(index)["weight_map"].values())
    except (InputError, KeyError, TypeError, AttributeError):
        return False
    return all((folder / shard).is_file() for shard in shards)


def _model_type(folder: Path) -> str | None:
    for place in (folder, *folder.glob("0_*")):
        file = place / "config.json"
        if file.is_file():
            try:
                return str(json_file(file).get("model_type"))
            except (InputError, AttributeError):
                return None
    return None


def _snapshot(name: str, patterns: tuple[str, ...] | None, *, local: bool) -> Path | None:
    with needed_for("a model of Hugging Face", "hub"):
        from huggingface_hub import errors, snapshot_download

    try:
        allowed = None if patterns is None else list(patterns)
        return Path(snapshot_download(name, local_files_only=local, allow_patterns=allowed))
    except errors.GatedRepoError as error:
        remedy = "accept its terms on huggingface.co, then log in with 'hf auth login'"
        raise OptionError("encoder", f"'{name}' may be read by accepted users only", remedy) from error
    except errors.RepositoryNotFoundError as error:
        remedy = "check the name; for a private model log in with 'hf auth login'"
        raise OptionError("encoder", f"Hugging Face has no model '{name}'", remedy) from error
    except errors.HFValidationError as error:
        remedy = "give a Hugging Face id, a local folder, or 'packaged'"
        raise OptionError("encoder", f"'{name}' is not a model's name", remedy) from error
    except Exception as error:  # the HTTP library under huggingface_hub changes, and so do its errors
        if local:
            return None
        raise OptionError(
            "encoder",
            f"'{name}' is not in the local cache and Hugging Face cannot be reached ({type(error).__name__})",
            _remedy(name),
        ) from error


def _remedy(name: str) -> str:
    return (
        f"run 'hf download {name}' where there is a network and give the folder, or take the encoder 'packaged' "
        f"(all-MiniLM-L6-v2, {INSTALL})"
    )


#: The leakage paper's encoder (section 3); its threshold 0.91 holds for this one.
DEFAULT_MODEL: Final = "sentence-transformers/paraphrase-MiniLM-L6-v2"

#: What a user writes for the best encoder that is at hand, and for none.
AUTO: Final = "auto"
WORDS: Final = "words"

_HUB_ID: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_HUB_CACHE: Final = re.compile(r"models--(?P<org>.+?)--(?P<model>.+)")


def open_encoder(
    name: str,
    *,
    backend: Backend = "auto",
    device: str | None = None,
    precision: Precision = "fp32",
    threads: int | None = None,
    calibration: Sequence[str] = (),
) -> Encoder:
    """Opens an encoder.

    Args:
        name: `packaged` (all-MiniLM-L6-v2 as a package), a local folder, a Hugging Face id (`[hub]`), or NAME or
            NAME:PLACE, where another package registers NAME (see `ENCODERS`); `words` for none.
        backend: "onnx" (`[encoder]`), "openvino" (`[fast]`), "torch" (`[neural]`), or "auto": torch where there is a
            CUDA GPU, else OpenVINO where it is installed, else ONNX Runtime.
        device: "cpu", or for torch "cuda", "cuda:1", "mps"; None leaves it to the backend.
        precision: "fp32"; "bf16" and "int8" with OpenVINO, as a first pass whose survivors are encoded again; "fp16"
            and "bf16" with torch on a GPU.
        threads: processors to use; None for all that the process may use. It does not change the vectors of the onnx
            and openvino backends.
        calibration: texts from which int8 learns its ranges, a few hundred of the kind that will be encoded.

    Returns:
        The encoder; it can be pickled, and is then opened anew where it arrives.

    Raises:
        InputError: the model cannot be found, or cannot be run this way.
        MissingExtraError: the backend or the packaged model is not installed.
    """
    return open_spec(EncoderSpec(name, backend, device, precision, threads, tuple(calibration)))


def chosen(name: str, backend: Backend = "auto") -> str:
    """What an encoder's name stands for: `auto` is `packaged`, or `words` where it cannot be run and no backend is
    named; the network is not asked."""
    if name != AUTO:
        return name
    return packaged_or_words() if backend == "auto" else PACKAGED


def packaged_or_words() -> str:
    """`packaged` where it can be run, else `words`: what needs no network."""
    with suppress(MissingExtraError):
        packaged_folder()
        return PACKAGED if _built_in() else WORDS
    return WORDS


def _built_in() -> bool:
    """Whether ONNX Runtime can run an encoder."""
    return all(find_spec(name) is not None for name in ("onnx", "onnxruntime", "tokenizers"))


def open_spec(spec: EncoderSpec) -> Encoder:
    """Opens the encoder that a spec describes.

    Raises:
        InputError: the model cannot be found, or cannot be run this way.
        MissingExtraError: the backend or the packaged model is not installed.
    """
    encoder = _opened(spec)
    if isinstance(encoder, OpenedEncoder):
        copyreg.pickle(type(encoder), _reduced)
    return encoder


def _reduced(encoder: OpenedEncoder) -> tuple[Callable[[EncoderSpec], Any], tuple[EncoderSpec]]:
    return open_spec, (encoder.spec,)


def _opened(spec: EncoderSpec) -> Encoder:
    if spec.threads is not None and spec.threads < 1:
        raise OptionError("threads", f"{spec.threads} threads", "give at least 1")
    if spec.name == WORDS:
        return WordsOnly()
    local = Path(spec.name).expanduser()
    found = spec.name != PACKAGED and local.is_dir()
    kind = spec.name.partition(":")[0]
    if not found and spec.name != PACKAGED and "/" not in kind and kind in ENCODERS:
        return PluginEncoder(kind, spec)
    # A worker process may be in another folder.
    spec = replace(spec, name=str(local.resolve()) if found else spec.name, backend=_backend(spec))
    if spec.backend == "torch":
        from truerank.vectors.encoders.sentence_transformers import SentenceTransformerEncoder

        place = str(packaged_folder()) if spec.name == PACKAGED else _checked(spec.name, found=found)
        return SentenceTransformerEncoder(place, _shown(spec.name, found=found), spec)
    if spec.backend == "onnx" and not _built_in():
        raise MissingExtraError(f"the encoder {spec.name}", "encoder", INSTALL if spec.name == PACKAGED else "")
    model = read_model_folder(_folder(spec.name, found=found), _shown(spec.name, found=found))
    if spec.backend == "openvino":
        from truerank.vectors.encoders.openvino import OpenVinoEncoder

        return OpenVinoEncoder(model, spec)
    from truerank.vectors.encoders.graph_encoder import OnnxEncoder

    return OnnxEncoder(model, spec)


def _backend(spec: EncoderSpec) -> Backend:
    if spec.backend not in ("auto", "onnx", "openvino", "torch"):
        raise OptionError("backend", f"no backend '{spec.backend}'", "choose auto, onnx, openvino or torch")
    if spec.precision not in get_args(Precision):
        raise OptionError("precision", f"no precision '{spec.precision}'", "choose fp32, fp16, bf16 or int8")
    if spec.backend != "auto":
        return spec.backend
    if spec.device not in (None, "cpu") or (spec.device is None and spec.precision != "int8" and _cuda()):
        return "torch"
    if spec.precision in ("int8", "bf16") or find_spec("openvino") is not None:
        return "openvino"
    return "onnx"


def _cuda() -> bool:
    # Importing torch takes seconds: only where a driver is installed.
    if shutil.which("nvidia-smi") is None or find_spec("torch") is None or find_spec("sentence_transformers") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _folder(name: str, *, found: bool) -> Path:
    if name == PACKAGED:
        return packaged_folder()
    return Path(name) if found else hub_folder(_checked(name, found=found))


def _checked(name: str, *, found: bool) -> str:
    if found or _HUB_ID.fullmatch(name):
        return name
    raise OptionError(
        "encoder",
        f"no folder '{name}', and it is not a Hugging Face id",
        f"give a folder with config.json, an id such as {DEFAULT_MODEL}, or '{PACKAGED}'",
    )


def _shown(name: str, *, found: bool) -> str:
    """The name in results: a folder's last part, unless the folder lies in Hugging Face's cache under its id."""
    if name == PACKAGED:
        return PACKAGED_MODEL
    if not found:
        return name
    folder = Path(name)
    in_cache = _HUB_CACHE.fullmatch(folder.parent.parent.name) if folder.parent.name == "snapshots" else None
    return f"{in_cache['org']}/{in_cache['model']}" if in_cache else folder.name
