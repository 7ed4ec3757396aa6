"""Opens an encoder by name."""

from __future__ import annotations

import copyreg
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, get_args

from truerank.errors import OptionError
from truerank.vectors.encoders.base import Encoder
from truerank.vectors.encoders.hub import hub_folder
from truerank.vectors.encoders.model_folder import read_model_folder
from truerank.vectors.encoders.opened import OpenedEncoder
from truerank.vectors.encoders.packaged import PACKAGED, PACKAGED_MODEL, packaged_folder
from truerank.vectors.encoders.plugin import ENCODERS, PluginEncoder
from truerank.vectors.encoders.spec import Backend, EncoderSpec, Precision

#: The leakage paper's encoder (section 3); its threshold 0.91 holds for this one.
DEFAULT_MODEL: Final = "sentence-transformers/paraphrase-MiniLM-L6-v2"

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
        name: `packaged` (all-MiniLM-L6-v2 of the `[offline]` extra), a local folder, a Hugging Face id, or NAME or
            NAME:PLACE, where another package registers NAME (see `ENCODERS`).
        backend: "onnx" (the core), "openvino" (`[fast]`), "torch" (`[neural]`), or "auto": torch where there is a CUDA
            GPU, else OpenVINO where it is installed, else ONNX Runtime.
        device: "cpu", or for torch "cuda", "cuda:1", "mps"; None leaves it to the backend.
        precision: "fp32"; "bf16" and "int8" with OpenVINO, as a first pass whose survivors are encoded again; "bf16x3"
            with OpenVINO, whose cosines differ from those of fp32 in the sixth decimal; "fp16" and "bf16" with torch on
            a GPU.
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
    local = Path(spec.name).expanduser()
    found = spec.name != PACKAGED and local.is_dir()
    kind = spec.name.partition(":")[0]
    if not found and spec.name != PACKAGED and "/" not in kind and kind in ENCODERS:
        return PluginEncoder(kind, spec)
    # A worker process may stand in another folder.
    spec = replace(spec, name=str(local.resolve()) if found else spec.name, backend=_backend(spec))
    if spec.backend == "torch":
        from truerank.vectors.encoders.sentence_transformers import SentenceTransformerEncoder

        place = str(packaged_folder()) if spec.name == PACKAGED else _checked(spec.name, found=found)
        return SentenceTransformerEncoder(place, _shown(spec.name, found=found), spec)
    model = read_model_folder(_folder(spec.name, found=found), _shown(spec.name, found=found))
    if spec.backend == "openvino":
        from truerank.vectors.encoders.openvino import OpenVinoEncoder

        return OpenVinoEncoder(model, spec)
    from truerank.vectors.encoders.onnx_runtime import OnnxEncoder

    return OnnxEncoder(model, spec)


def _backend(spec: EncoderSpec) -> Backend:
    if spec.backend not in ("auto", "onnx", "openvino", "torch"):
        raise OptionError("backend", f"no backend '{spec.backend}'", "choose auto, onnx, openvino or torch")
    if spec.precision not in get_args(Precision):
        raise OptionError("precision", f"no precision '{spec.precision}'", "choose fp32, fp16, bf16, bf16x3 or int8")
    if spec.backend != "auto":
        return spec.backend
    if spec.device not in (None, "cpu") or (
        spec.device is None and spec.precision not in ("int8", "bf16x3") and _cuda()
    ):
        return "torch"
    if spec.precision in ("int8", "bf16", "bf16x3") or find_spec("openvino") is not None:
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
        f"no folder '{name}', and it is no Hugging Face id",
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
