"""The encoders of an audit: one in full precision and, where the backend has one, one in int8 for a first pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Final

from truerank.audits.leakage.options import AuditOptions
from truerank.options import Encoding
from truerank.records import TopicText
from truerank.sources import open_queries
from truerank.sources.sample import SAMPLE
from truerank.text.normalising import normalise
from truerank.text.wording import WordingProbe
from truerank.vectors.encoders import CachedEncoder, Encoder, EncoderSpec, Vectors, open_spec
from truerank.vectors.prefilter import DEFAULT_CUTS, FilterPlan
from truerank.vectors.search import SearchPlan

__all__ = ["Models", "low_precision"]

#: Queries of the embedded sample from which the int8 encoder learns its ranges.
_CALIBRATION_TEXTS: Final = 300


@dataclass(frozen=True)
class Models:
    """The encoder in full precision and, where the backend has one, the low-precision one for the first pass."""

    exact: EncoderSpec
    screen: EncoderSpec | None
    cache: str | None
    encoder: Encoder

    @classmethod
    def of(cls, encoding: Encoding) -> Models:
        """Opens the encoder."""
        exact = EncoderSpec(encoding.encoder, backend=encoding.backend, device=encoding.device)
        encoder = _open(exact, encoding.cache)
        return cls(exact, low_precision(exact) if encoding.precision == "auto" else None, encoding.cache, encoder)

    def plan(self, texts: Sequence[TopicText], options: AuditOptions) -> SearchPlan:
        """What to look for with these models; the topic texts are encoded from now on, while the log is read."""
        normalised = tuple(normalise(text.text) for text in texts)
        prefilter, probe = None, WordingProbe(normalised)
        if options.mode == "prefilter":
            cuts = {**DEFAULT_CUTS, **options.prefilter_cut}
            prefilter = FilterPlan(normalised, tuple(text.field for text in texts), cuts, probe)
        return SearchPlan(
            open_exact=partial(_open, self.exact, self.cache),
            open_screen=None if self.screen is None else partial(_open, self.screen, self.cache),
            topic_vectors=_begun(partial(self.encoder.encode, normalised)),
            floor=options.lowest,
            top_k=options.k,
            probe=probe,
            prefilter=prefilter,
            block_size=options.block_size,
        )


def low_precision(exact: EncoderSpec) -> EncoderSpec | None:
    """The int8 encoder for a first pass, where this machine has what it takes (the `[fast]` extra, no GPU).

    It learns its ranges from the embedded sample, so it is the same whatever is audited; its error is measured on the
    data at hand.
    """
    if exact.backend not in ("auto", "openvino") or exact.device not in (None, "cpu"):
        return None
    if find_spec("openvino") is None or find_spec("nncf") is None:
        return None
    resolved = getattr(_open(exact, None), "spec", exact)
    if (resolved.backend, resolved.precision) != ("openvino", "fp32"):
        return None
    texts = [query.text for query in islice(open_queries(str(SAMPLE.train[0])), _CALIBRATION_TEXTS)]
    return replace(exact, backend="openvino", precision="int8", calibration=tuple(texts))


def _begun(work: Callable[[], Vectors]) -> Callable[[], Vectors]:
    """Begins the work in a thread; what comes back waits for its result."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    return future.result


@lru_cache(maxsize=4)
def _open(spec: EncoderSpec, cache: str | None) -> Encoder:
    # Each process opens a model once, however many passes it works on.
    encoder = open_spec(spec)
    return encoder if cache is None else CachedEncoder(encoder, Path(cache))
