"""KNRM: kernels over the similarities of words, pooled over document and query; other rankers use the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from torch import nn

from truerank_lab.rankers.small_ranker import Settings, SmallRanker, TensorBatch

#: Ten kernels of width 2/10, and one at 1 for equal words.
CENTRES: Final = (-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


class Kernels(nn.Module):  # type: ignore[misc]
    """Radial basis functions whose centres (μ) and widths (σ) are trained.

    Source: Xiong et al. (2017), K-NRM, section 3.1.
    """

    def __init__(self, centres: Sequence[float], widths: Sequence[float]) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.tensor(centres))
        self.widths = nn.Parameter(torch.tensor(widths))

    def forward(self, similarities: Any, mask: Any | None) -> Any:
        """Soft counts over the document, shape (n, q, kernels); without a mask, shape (n, d), padding counts too."""
        counts = []
        for centre, width in zip(self.centres, self.widths, strict=True):
            # One kernel after the other: together they would need eleven times the memory, and be no faster.
            near = torch.exp(-0.5 * ((similarities - centre) / width) ** 2)
            counts.append((near if mask is None else near * mask[:, None, :]).sum(dim=2))
        return torch.stack(counts, dim=2)


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
