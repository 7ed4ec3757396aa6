"""TK: words seen in their context by a small transformer, matched by kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from truerank.errors import InputError
from truerank_lab.rankers.knrm import CENTRES, Kernels
from truerank_lab.rankers.small_ranker import Settings, SmallRanker, TensorBatch, unit


@dataclass(frozen=True)
class TkSettings(Settings):
    """Settings of TK.

    Attributes:
        max_document: words of a document that are read; attention grows with its square.
        layers: of the transformer.
        heads: of attention.
        projection: dimensions of each head.
        feed_forward: units of the hidden layer behind attention.
        mixing: α at the beginning: a word is α of its own vector and 1 − α of its context; trained.
        dropout: while training.
    """

    max_document: int = 200
    layers: int = 2
    heads: int = 10
    projection: int = 32
    feed_forward: int = 100
    mixing: float = 0.5
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.padding != "masked":
            raise InputError("TK does not look at padding", "leave padding=masked", where="padding")
        for name in ("mixing", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", "give 0 or more, below 1", where=name)


class _Layer(nn.Module):  # type: ignore[misc]
    """Attention and a feed-forward layer, each added to what it was given and normalised."""

    def __init__(self, settings: TkSettings, dimension: int) -> None:
        super().__init__()
        inner = settings.heads * settings.projection
        self._shape = (settings.heads, settings.projection)
        self.attended = nn.Linear(dimension, 3 * inner)
        self.joined = nn.Linear(inner, dimension)
        self.forwarded = nn.Sequential(
            nn.Linear(dimension, settings.feed_forward), nn.ReLU(), nn.Linear(settings.feed_forward, dimension)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dimension) for _ in range(2))
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, words: Any, seen: Any) -> Any:
        """The words in their context, shape (n, w, e); `seen` says which words are looked at, shape (n, w)."""
        pairs, length, _ = words.shape
        asked = self.attended(words).view(pairs, length, 3, *self._shape).permute(2, 0, 3, 1, 4)
        weights = asked[0] @ asked[1].transpose(2, 3) / math.sqrt(self._shape[1])
        weights = torch.softmax(weights.masked_fill(~seen[:, None, None, :], -torch.inf), dim=-1)
        found = (weights @ asked[2]).transpose(1, 2).reshape(pairs, length, -1)
        words = self.norms[0](words + self.dropout(self.joined(found)))
        return self.norms[1](words + self.dropout(self.forwarded(words)))


class _Network(nn.Module):  # type: ignore[misc]
    def __init__(self, settings: TkSettings, dimension: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(settings, dimension) for _ in range(settings.layers))
        self.mixing = nn.Parameter(torch.tensor(settings.mixing))
        self.kernels = Kernels(CENTRES, [0.1] * len(CENTRES))
        self.of_logarithms = nn.Linear(len(CENTRES), 1, bias=False)
        self.of_lengths = nn.Linear(len(CENTRES), 1, bias=False)
        self.combine = nn.Linear(2, 1, bias=False)
        # As in the published model: small weights, because the sums of logarithms are large.
        for layer in (self.of_logarithms, self.of_lengths):
            nn.init.uniform_(layer.weight, -0.014, 0.014)

    def forward(self, batch: TensorBatch) -> Any:
        query = self._in_context(batch.query_vectors, batch.query)
        document = self._in_context(batch.document_vectors, batch.document)
        cosines = unit(query) @ unit(document).transpose(1, 2)
        counts = self.kernels(cosines, batch.document_mask)
        asked = batch.query_mask[:, :, None]
        length = batch.document_mask.sum(dim=1).clamp_min(1)[:, None, None]
        logarithms = (torch.log2(counts.clamp_min(1e-10)) * asked).sum(dim=1)
        lengths = (counts / length * asked).sum(dim=1)
        return self.combine(torch.cat([self.of_logarithms(logarithms), self.of_lengths(lengths)], dim=1))[:, 0]

    def _in_context(self, vectors: Any, numbers: Any) -> Any:
        seen = numbers > 0
        # A text without words would have nothing to attend to: it looks at its padding, which no kernel counts.
        seen = seen | ~seen.any(dim=1, keepdim=True)
        context = vectors + _positions(vectors)
        for layer in self.layers:
            context = layer(context, seen)
        return self.mixing * vectors + (1 - self.mixing) * context


def _positions(vectors: Any) -> Any:
    """Sines and cosines of the places of words, shape (w, e)."""
    _, length, dimension = vectors.shape
    half = (dimension + 1) // 2
    steps = torch.arange(half, dtype=vectors.dtype, device=vectors.device)
    rates = torch.exp(-math.log(10_000.0) * steps / max(1, half - 1))
    angles = torch.arange(length, dtype=vectors.dtype, device=vectors.device)[:, None] * rates[None, :]
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)[:, :dimension]


class Tk(SmallRanker):
    """TK: word vectors mixed with what two transformer layers make of them, cosines, eleven kernels; the sums of their
    logarithms and of their shares of the document's length.

    Each head has its own projection of `projection` dimensions, so that the vectors' length need not be a multiple of
    the heads.

    Source: Hofstätter et al. (2020), section 3; sizes as in the leakage paper's pilot experiments.
    """

    kind: ClassVar[str] = "tk"
    settings_type: ClassVar[type[Settings]] = TkSettings
    network: ClassVar[type[Any]] = _Network
    unit_vectors: ClassVar[bool] = False
    capreolus: ClassVar[Mapping[str, Any]] = {}
