"""How to open an encoder, as a value that travels to other processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Backend = Literal["auto", "onnx", "openvino", "torch"]
Precision = Literal["fp32", "fp16", "bf16", "bf16x3", "int8"]


@dataclass(frozen=True)
class EncoderSpec:
    """Everything `open_spec` needs; small, hashable and picklable.

    Attributes:
        name: `packaged`, a Hugging Face id, a local folder (absolute, once the encoder was opened), or a name that
            another package registers, perhaps with a place: `NAME:PLACE`.
        backend: what runs the model.
        device: "cpu", "cuda", "cuda:1" ...; None leaves it to the backend.
        precision: arithmetic of the forward pass.
        threads: processors to use; None for all that the process may use.
        calibration: texts from which int8 learns its ranges.
        batch_tokens: tokens of a batch; None for what the backend usually takes.
        packed: rows of a batch hold several texts, see `packing`; OpenVINO only, and where the model allows it.
    """

    name: str
    backend: Backend = "auto"
    device: str | None = None
    precision: Precision = "fp32"
    threads: int | None = None
    calibration: tuple[str, ...] = ()
    batch_tokens: int | None = None
    packed: bool = False
