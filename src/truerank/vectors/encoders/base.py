"""What an encoder is, how one is named, and how another process opens it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into unit vectors, so that a dot product is a cosine.

    The same list of texts gives the same bytes: batches depend on the list alone. Anything with these members is an
    encoder; `open_encoder` opens those that truerank brings.
    """

    @property
    def name(self) -> str:
        """The model as a user would name it; a threshold is calibrated for this name."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    @property
    def precision(self) -> str:
        """Arithmetic of the forward pass: "fp32", "fp16", "bf16", "int8"."""

    @property
    def fingerprint(self) -> str:
        """Hash over weights, tokenizer, pooling, backend and precision: equal fingerprints, equal vectors."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts, shape (len(texts), dimension), float32."""


class WordsOnly:
    """No encoder: it reads no text, so that texts are compared by their words and letters."""

    name: Final = "words and letters"
    dimension: Final = 1
    precision: Final = "fp32"
    fingerprint: Final = "words"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Zeros, shape (len(texts), 1), float32."""
        return np.zeros((len(texts), 1), np.float32)


class AroundEncoder:
    """An encoder around another one, whose name, dimension and precision it has."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @property
    def name(self) -> str:
        return self._encoder.name

    @property
    def dimension(self) -> int:
        return self._encoder.dimension

    @property
    def precision(self) -> str:
        return self._encoder.precision


Backend = Literal["auto", "onnx", "openvino", "torch"]
Precision = Literal["fp32", "fp16", "bf16", "int8"]


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


class OpenedEncoder(ABC):
    """An encoder with its name, its fingerprint and the spec that opens it anew; `opening` lets only the spec travel.

    Args:
        spec: how this encoder was asked for.
        name: the model as a user would name it.
        dimension: length of a vector.
        fingerprint: hash over all that decides about the vectors.
    """

    def __init__(self, spec: EncoderSpec, *, name: str, dimension: int, fingerprint: str) -> None:
        self._spec = spec
        self._name = name
        self._dimension = dimension
        self._fingerprint = fingerprint

    @property
    def name(self) -> str:
        """The model as a user would name it."""
        return self._name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    @property
    def precision(self) -> str:
        """Arithmetic of the forward pass."""
        return self._spec.precision

    @property
    def fingerprint(self) -> str:
        """Hash over weights, tokenizer, pooling, runtime and precision."""
        return self._fingerprint

    @property
    def spec(self) -> EncoderSpec:
        """How to open this encoder again, in another process."""
        return self._spec

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts, shape (len(texts), dimension), float32."""
        if not len(texts):
            return np.empty((0, self._dimension), dtype=np.float32)
        return self._encode(texts)

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> Vectors:
        """As `encode`, for at least one text."""
