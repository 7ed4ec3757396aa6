"""Kernels: how many words of a document are about this similar to a word of the query, softly counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import nn

#: Ten kernels of width 2/10, and one at 1 for equal words.
CENTRES: Final = (-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


class Kernels(nn.Module):  # type: ignore[misc]
    """Radial basis functions whose centres and widths are trained.

    Args:
        centres: μ of each kernel.
        widths: σ of each.

    Source: Xiong et al. (2017), K-NRM, section 3.1.
    """

    def __init__(self, centres: Sequence[float], widths: Sequence[float]) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.tensor(centres))
        self.widths = nn.Parameter(torch.tensor(widths))

    def forward(self, similarities: Any, mask: Any | None) -> Any:
        """Soft counts over the document.

        Args:
            similarities: shape (n, q, d).
            mask: of the document, shape (n, d); None counts padding too.

        Returns:
            Shape (n, q, kernels).
        """
        counts = []
        for centre, width in zip(self.centres, self.widths, strict=True):
            # One kernel after the other: together they would need eleven times the memory, and be no faster.
            near = torch.exp(-0.5 * ((similarities - centre) / width) ** 2)
            counts.append((near if mask is None else near * mask[:, None, :]).sum(dim=2))
        return torch.stack(counts, dim=2)
