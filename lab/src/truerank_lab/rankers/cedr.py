"""CEDR: a document's kernels over every layer of an encoder, beside the encoder's own verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from torch import nn

from truerank_lab.rankers.knrm import Kernels
from truerank_lab.rankers.passage_ranker import PassageBatch, PassageNetwork, PassageRanker, PassageSettings

#: Ten kernels in steps of .2; none for equal words, which no layer above the embeddings tells apart.
_CENTRES: Final = tuple(round(-0.9 + 0.2 * number, 1) for number in range(10))
_WIDTH: Final = 0.1
#: Sums of logarithms are large beside the components of an encoder's vectors.
_SCALE: Final = 0.01


@dataclass(frozen=True)
class CedrSettings(PassageSettings):
    """Settings of CEDR.

    Attributes:
        hidden: units before the score.
    """

    hidden: int = 1024


class _Network(PassageNetwork):
    def __init__(self, encoder: Any, settings: CedrSettings) -> None:
        super().__init__(encoder, settings)
        config = encoder.config
        self.kernels = Kernels(_CENTRES, [_WIDTH] * len(_CENTRES))
        features = (config.num_hidden_layers + 1) * len(_CENTRES) + config.hidden_size
        self.combine = nn.Sequential(nn.Linear(features, settings.hidden), nn.ReLU(), nn.Linear(settings.hidden, 1))

    def forward(self, batch: PassageBatch) -> Any:
        layers = self.encode(batch, layers=True)
        firsts = self._summed(layers[-1][:, 0], batch)
        passages = torch.bincount(batch.owner, minlength=batch.documents)[:, None]
        found = [self._matched(layer, batch) for layer in layers]
        return self.combine(torch.cat([*found, firsts / passages], dim=1))[:, 0]

    def _matched(self, layer: Any, batch: PassageBatch) -> Any:
        """What the kernels see between query and document in one layer, shape (n, kernels)."""
        vectors = torch.nn.functional.normalize(layer, dim=2)
        asked = vectors[:, batch.query_start : batch.query_start + batch.query.shape[1]]
        counts = self.kernels(asked @ vectors.transpose(1, 2), batch.document)
        # A word of the query is counted over all passages before the logarithm.
        counts = self._summed(counts, batch)
        query = torch.zeros(batch.documents, batch.query.shape[1], device=layer.device, dtype=layer.dtype)
        query = query.index_copy(0, batch.owner, batch.query.to(layer.dtype))
        return (torch.log(counts + 1e-6) * query[:, :, None]).sum(dim=1) * _SCALE

    def _summed(self, values: Any, batch: PassageBatch) -> Any:
        """Sums over the passages of each document, shape (n, …)."""
        zeros = torch.zeros(batch.documents, *values.shape[1:], device=values.device, dtype=values.dtype)
        return zeros.index_add(0, batch.owner, values)


class Cedr(PassageRanker):
    """CEDR-KNRM: cosines of query and document tokens in every layer, ten kernels with trained centres and widths,
    and the first token's vector, averaged over the passages; a hidden layer, a score.

    Source: MacAvaney et al. (2019), CEDR, section 2.3; sizes as in the leakage paper's pilot experiments.
    """

    kind: ClassVar[str] = "cedr"
    settings_type: ClassVar[type[PassageSettings]] = CedrSettings
    network: ClassVar[type[PassageNetwork]] = _Network
