"""PACRR: convolutions over the similarities of words, the strongest matches of each query word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from torch import nn

from truerank.errors import InputError
from truerank_lab.rankers.small_ranker import Settings, SmallRanker, TensorBatch


@dataclass(frozen=True)
class PacrrSettings(Settings):
    """Settings of PACRR.

    Attributes:
        longest: n-grams of 1 up to so many words are matched.
        filters: of each convolution.
        strongest: matches kept for each query word and n-gram length.
        hidden: units of the two hidden layers.
        idf: "filled", or "zero": idf is 0 for all words, so that its softmax says only how long the query is; Capreolus
            never fills it.
    """

    longest: int = 3
    filters: int = 32
    strongest: int = 2
    hidden: int = 32
    idf: str = "filled"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.idf not in ("filled", "zero"):
            raise InputError(f"no idf '{self.idf}'", "choose filled or zero", where="idf")


#: Places of a query and a document that are matched at once.
_PLACES: Final = 1 << 13


class _Network(nn.Module):  # type: ignore[misc]
    def __init__(self, settings: PacrrSettings, dimension: int) -> None:
        super().__init__()
        self._settings = settings
        sizes = range(1, settings.longest + 1)
        self.convolutions = nn.ModuleList(nn.Conv2d(1, settings.filters, size) for size in sizes)
        features = settings.max_query * (settings.longest * settings.strongest + 1)
        self.combine = nn.Sequential(
            nn.Linear(features, settings.hidden),
            nn.ReLU(),
            nn.Linear(settings.hidden, settings.hidden),
            nn.ReLU(),
            nn.Linear(settings.hidden, 1),
        )

    def forward(self, batch: TensorBatch) -> Any:
        settings = self._settings
        masked = settings.padding == "masked"
        similarities = batch.products()
        found = [self._strongest(similarities, batch, convolution) for convolution in self.convolutions]
        idf = torch.zeros_like(batch.idf) if settings.idf == "zero" else batch.idf
        if masked:
            idf = idf.masked_fill(batch.query == 0, -torch.inf)
            # A query without words has no idf to share out.
            idf = torch.where((batch.query > 0).any(dim=1, keepdim=True), idf, torch.zeros_like(idf))
        features = torch.cat([*found, torch.softmax(idf, dim=1)[:, :, None]], dim=2)
        if masked:
            features = features * batch.query_mask[:, :, None]
        features = nn.functional.pad(features, (0, 0, 0, settings.max_query - features.shape[1]))
        return self.combine(features.flatten(1))[:, 0]

    def _strongest(self, similarities: Any, batch: TensorBatch, convolution: Any) -> Any:
        """The strongest matches of each query word, shape (n, q, strongest)."""
        # The responses of all filters everywhere are the largest thing here: in parts, they stay near the processor.
        many = max(1, _PLACES // (similarities.shape[1] * similarities.shape[2]))
        signals = torch.cat([_signals(part, convolution) for part in similarities.split(many)])
        if self._settings.padding == "masked":
            # Signals are never negative: 0 is not a match.
            signals = signals * batch.document_mask[:, None, :]
        short = self._settings.strongest - signals.shape[2]
        if short > 0:
            signals = nn.functional.pad(signals, (0, short))
        return signals.topk(self._settings.strongest, dim=2).values


def _signals(similarities: Any, convolution: Any) -> Any:
    """The strongest filter at each place, shape (n, q, d)."""
    size = convolution.kernel_size[0]
    pairs, words, places = similarities.shape
    # As a product of matrices: on the CPU twice as fast as the convolution, whose only channel leaves it idle. The bias
    # is a column of it: to add it would copy the responses.
    filled = nn.functional.pad(similarities, (0, size - 1, 0, size - 1))
    shifts = [(row, column) for row in range(size) for column in range(size)]
    patches = [filled[:, row : row + words, column : column + places] for row, column in shifts]
    table = torch.stack([*patches, torch.ones_like(similarities)]).view(len(shifts) + 1, -1)
    weights = torch.cat([convolution.weight.flatten(1), convolution.bias[:, None]], dim=1)
    return torch.relu((weights @ table).amax(dim=0)).view(pairs, words, places)


class Pacrr(SmallRanker):
    """PACRR with 2,561 trained numbers at a query length of 4.

    Square convolutions for n-grams of one to three words, the strongest of their filters, the two strongest places of
    each query word; with the softmax of idf into three dense layers.

    Source: Hui et al. (2017), section 3 (PACRR-firstk).
    """

    kind: ClassVar[str] = "pacrr"
    settings_type: ClassVar[type[Settings]] = PacrrSettings
    network: ClassVar[type[Any]] = _Network
    capreolus: ClassVar[Mapping[str, Any]] = {**SmallRanker.capreolus, "idf": "zero"}
