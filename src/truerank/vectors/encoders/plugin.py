"""Encoders of other packages: what goes wrong in them, or comes out of them, is named with the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from truerank.plugins import Plugins
from truerank.vectors.encoders.base import Encoder, Vectors
from truerank.vectors.encoders.opened import OpenedEncoder
from truerank.vectors.encoders.spec import EncoderSpec

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
        kind: the name of the entry point.
        spec: how it was asked for.
        encoder: what the package opened; opened here where it is None.
    """

    def __init__(self, kind: str, spec: EncoderSpec, encoder: Encoder | None = None) -> None:
        self._kind, self._spec = kind, spec
        home = ENCODERS.load(kind)
        with ENCODERS.calling(kind):
            opened = home.open(spec.name.partition(":")[2], spec) if encoder is None else encoder
            self._refuse(not isinstance(opened, Encoder), f"opens a {type(opened).__name__}, which is no encoder")
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
