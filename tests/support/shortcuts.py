"""What tests need not do again: draw pictures that they do not look at, open a model, and encode the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from truerank.vectors.encoders.base import Vectors
    from truerank.vectors.encoders.graph_encoder import GraphEncoder

__all__ = ["encoded_once", "undrawn"]

_ENCODED: dict[tuple[str, tuple[str, ...]], Vectors] = {}
_OPENED: dict[tuple[str, int], Any] = {}


@contextmanager
def undrawn() -> Iterator[None]:
    """Results build their figures, of whatever data, and write an empty picture for each: drawing takes longest."""

    def empty(_figure: Any, *, name: str, description: str) -> tuple[str, bytes]:
        return f'<svg viewBox="0 0 1 1" role="img" aria-label="{name}"></svg>\n', b"%PDF-"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("truerank.core.figures.to_files", empty)
        yield


@contextmanager
def encoded_once() -> Iterator[None]:
    """Models stay open, and what they made is kept: the same list of texts gives the same vectors, in all modules."""
    import onnxruntime

    from truerank.vectors.encoders.graph_encoder import GraphEncoder

    encode, session = GraphEncoder._encode, onnxruntime.InferenceSession

    def kept(encoder: GraphEncoder, texts: Sequence[str]) -> Vectors:
        key = (encoder.fingerprint, tuple(texts))
        if key not in _ENCODED:
            _ENCODED[key] = encode(encoder, texts)
        return _ENCODED[key].copy()

    def opened(file: str, *given: Any, **more: Any) -> Any:
        key = (file, Path(file).stat().st_mtime_ns)
        if key not in _OPENED:
            _OPENED[key] = session(file, *given, **more)
        return _OPENED[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GraphEncoder, "_encode", kept)
        patched.setattr(onnxruntime, "InferenceSession", opened)
        yield
