"""DUET: exact matches by their places, and what convolutions make of the words' vectors, added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from truerank.errors import InputError
from truerank_lab.rankers.small_ranker import Settings, SmallRanker, TensorBatch


@dataclass(frozen=True)
class DuetSettings(Settings):
    """Settings of DUET; its layers depend on both lengths, to which all texts are filled up.

    Attributes:
        filters: of every convolution.
        hidden: units of the local model's hidden layer.
        window: words that a convolution sees.
        pool: places over which the document's convolution is pooled.
        dropout: while training.
    """

    padding: str = "zero"
    filters: int = 10
    hidden: int = 30
    window: int = 3
    pool: int = 100
    dropout: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.padding != "zero":
            raise InputError("DUET's layers know all places of a text", "leave padding=zero", where="padding")
        if self.max_query < self.window:
            raise InputError(f"max_query is below the window of {self.window}", "raise it", where="max_query")
        if self.places < 1:
            lowest = self.pool + self.window - 1
            raise InputError("max_document leaves nothing to pool", f"give {lowest} or more", where="max_document")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}", "give 0 or more, below 1", where="dropout")

    @property
    def places(self) -> int:
        """Places of the document that are left after convolution and pooling: 699 of 800."""
        return self.max_document - (self.window - 1) - (self.pool - 1)


class _Local(nn.Module):  # type: ignore[misc]
    """Where in the document the query's words stand, each weighted by its idf."""

    def __init__(self, settings: DuetSettings) -> None:
        super().__init__()
        drop = settings.dropout
        self.convolution = nn.Conv2d(1, settings.filters, (1, settings.max_document))
        self.combine = nn.Sequential(
            nn.Tanh(),
            nn.Flatten(),
            nn.Dropout(drop),
            nn.Linear(settings.filters * settings.max_query, settings.hidden),
            nn.Tanh(),
            nn.Dropout(drop),
            nn.Linear(settings.hidden, 1),
        )

    def forward(self, batch: TensorBatch) -> Any:
        matches = batch.exact() * batch.idf[:, :, None]
        # A filter as wide as the document is one product of matrices.
        found = matches @ self.convolution.weight[:, 0, 0].T + self.convolution.bias
        return self.combine(found.transpose(1, 2))[:, 0]


class _Distributed(nn.Module):  # type: ignore[misc]
    """How query and document agree in what convolutions over their words' vectors find."""

    def __init__(self, settings: DuetSettings, dimension: int) -> None:
        super().__init__()
        filters, window = settings.filters, settings.window
        self.query_words = nn.Conv1d(dimension, filters, window)
        self.query = nn.Sequential(
            nn.Tanh(),
            nn.MaxPool1d(settings.max_query - window + 1),
            nn.Flatten(),
            nn.Linear(filters, filters),
            nn.Tanh(),
        )
        self.document_words = nn.Conv1d(dimension, filters, window)
        self.document = nn.Sequential(
            nn.Tanh(),
            nn.MaxPool1d(settings.pool, stride=1),
            nn.Conv1d(filters, filters, 1),
            nn.Tanh(),
        )
        self.places = nn.Sequential(nn.Linear(settings.places, 1), nn.Tanh(), nn.Flatten())
        self.combine = nn.Sequential(nn.Dropout(settings.dropout), nn.Linear(filters, 1))

    def forward(self, batch: TensorBatch) -> Any:
        query = self.query(_convolved(self.query_words, batch.query_vectors))
        document = self.document(_convolved(self.document_words, batch.document_vectors))
        return self.combine(self.places(query[:, :, None] * document))[:, 0]


def _convolved(convolution: Any, vectors: Any) -> Any:
    """A convolution over words, shape (n, words, e), as products of matrices: in double precision several times
    as fast as the convolution of torch. The result has the shape (n, filters, places).
    """
    filters, _, window = convolution.weight.shape
    places = vectors.shape[1] - window + 1
    # Every word with every column of the window first, sums after: slices of the vectors would have to be copied.
    each = vectors @ convolution.weight.permute(1, 2, 0).flatten(1)
    found = convolution.bias
    for shift in range(window):
        found = found + each[:, shift : shift + places, shift * filters : (shift + 1) * filters]
    return found.transpose(1, 2)


class _Network(nn.Module):  # type: ignore[misc]
    def __init__(self, settings: DuetSettings, dimension: int) -> None:
        super().__init__()
        self.local = _Local(settings)
        self.distributed = _Distributed(settings, dimension)

    def forward(self, batch: TensorBatch) -> Any:
        return self.local(batch) + self.distributed(batch)


class Duet(SmallRanker):
    """DUET with 28,222 trained numbers at query length 4, document length 800 and vectors of 300 dimensions.

    Source: Mitra et al. (2017), sections 3.1 and 3.2, with words in place of letter n-graphs.
    """

    kind: ClassVar[str] = "duet"
    settings_type: ClassVar[type[Settings]] = DuetSettings
    network: ClassVar[type[Any]] = _Network
    unit_vectors: ClassVar[bool] = False
