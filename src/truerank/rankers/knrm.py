"""KNRM: kernels over the similarities of words, pooled over the document and the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from truerank.rankers.words.kernels import CENTRES, Kernels
from truerank.rankers.words.small_ranker import Settings, SmallRanker, TensorBatch


@dataclass(frozen=True)
class KnrmSettings(Settings):
    """Settings of KNRM.

    Attributes:
        width: σ of the kernels.
        exact_width: σ of the kernel for equal words.
    """

    width: float = 0.1
    exact_width: float = 0.001


class _Network(nn.Module):  # type: ignore[misc]
    def __init__(self, settings: KnrmSettings, dimension: int) -> None:
        super().__init__()
        self._masked = settings.padding == "masked"
        self.kernels = Kernels(CENTRES, [settings.width] * (len(CENTRES) - 1) + [settings.exact_width])
        self.combine = nn.Linear(len(CENTRES), 1)

    def forward(self, batch: TensorBatch) -> Any:
        """The scores, shape (n,)."""
        counts = self.kernels(batch.products(), batch.document_mask if self._masked else None)
        features = (torch.log(counts + 1e-6) * batch.query_mask[:, :, None]).sum(dim=1)
        return self.combine(features)[:, 0]


class Knrm(SmallRanker):
    """KNRM with 34 trained numbers: eleven kernels (μ and σ each) and a linear layer, without tanh.

    The sum over the document of each kernel, its logarithm (of x + 1e-6), and the sum of these over the query's words.

    Source: Xiong et al. (2017), section 3; padding and lengths as in the settings.
    """

    kind: ClassVar[str] = "knrm"
    settings_type: ClassVar[type[Settings]] = KnrmSettings
    network: ClassVar[type[Any]] = _Network
