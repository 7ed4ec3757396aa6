"""PARADE: a document's passages as vectors, joined by a small transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from truerank_lab.rankers.passage_ranker import PassageBatch, PassageNetwork, PassageRanker, PassageSettings


@dataclass(frozen=True)
class ParadeSettings(PassageSettings):
    """Settings of PARADE.

    Attributes:
        layers: of the transformer over passages; heads and sizes are the encoder's.
    """

    layers: int = 2


class _Network(PassageNetwork):
    def __init__(self, encoder: Any, settings: ParadeSettings) -> None:
        super().__init__(encoder, settings)
        config = encoder.config
        size = config.hidden_size
        self.first = nn.Parameter(torch.zeros(size))
        self.places = nn.Embedding(settings.passages + 1, size)
        nn.init.normal_(self.first, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)
        layer = nn.TransformerEncoderLayer(
            size, config.num_attention_heads, config.intermediate_size, dropout=0.1, activation="gelu", batch_first=True
        )
        self.over_passages = nn.TransformerEncoder(layer, settings.layers, enable_nested_tensor=False)
        self.combine = nn.Linear(size, 1)

    def forward(self, batch: PassageBatch) -> Any:
        firsts = self.encode(batch, layers=False)[:, 0]
        counts = torch.bincount(batch.owner, minlength=batch.documents)
        widest = int(counts.max())
        # The place of a passage within its document: its number less that of the document's first.
        begins = torch.cumsum(counts, 0) - counts
        within = torch.arange(len(batch.owner), device=firsts.device) - begins[batch.owner]
        passages = torch.zeros(batch.documents * widest, firsts.shape[1], device=firsts.device, dtype=firsts.dtype)
        passages = passages.index_copy(0, batch.owner * widest + within, firsts).view(batch.documents, widest, -1)
        joined = torch.cat([self.first.expand(batch.documents, 1, -1), passages], dim=1)
        joined = joined + self.places.weight[: widest + 1]
        absent = torch.arange(widest + 1, device=firsts.device)[None, :] > counts[:, None]
        return self.combine(self.over_passages(joined, src_key_padding_mask=absent)[:, 0])[:, 0]


class Parade(PassageRanker):
    """PARADE with a transformer as aggregator: the first token's vector of each passage, a vector of its own before
    them, places, two layers; the score is a linear function of what becomes of the first.

    Source: Li et al. (2020), PARADE, section 3; sizes as in the leakage paper's pilot experiments.
    """

    kind: ClassVar[str] = "parade"
    settings_type: ClassVar[type[PassageSettings]] = ParadeSettings
    network: ClassVar[type[PassageNetwork]] = _Network
