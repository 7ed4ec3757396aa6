"""HINT: how passages match the query, and how their evidence adds up over the document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from truerank.errors import InputError
from truerank_lab.rankers.small_ranker import Settings, SmallRanker, TensorBatch, unit


@dataclass(frozen=True)
class HintSettings(Settings):
    """Settings of HINT.

    Attributes:
        passage: words of a passage; passages do not overlap.
        grid: dimensions of the spatial GRU.
        memory: dimensions of the LSTM over passages, in each direction.
        strongest: values kept of each dimension over the passages.
    """

    passage: int = 100
    grid: int = 2
    memory: int = 6
    strongest: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.padding != "masked":
            raise InputError("HINT does not look at padding", "leave padding=masked", where="padding")


class _SpatialGru(nn.Module):  # type: ignore[misc]
    """A GRU over a grid: each cell takes from the cells above it, left of it, and above-left of it."""

    def __init__(self, given: int, size: int) -> None:
        super().__init__()
        self._size = size
        self.reset = nn.Linear(3 * size + given, 3 * size)
        self.update = nn.Linear(3 * size + given, 4 * size)
        self.new_given = nn.Linear(given, size)
        self.new_before = nn.Linear(3 * size, size, bias=False)

    def forward(self, grid: Any, rows: Any, columns: Any) -> Any:
        """The state of the last cell of each grid, shape (n, size); `grid` has the shape (n, q, p, given).

        So many rows and columns of each grid count, at least 1, shape (n,).
        """
        count, height, width, _ = grid.shape
        # Cells of one diagonal do not depend on each other: all are computed at once, a diagonal as one row.
        before = last = grid.new_zeros(count, height + 1, self._size)
        row = torch.arange(height, device=grid.device)
        diagonals = []
        for number in range(height + width - 1):
            column = number - row
            inside = (column >= 0) & (column < width)
            given = grid[:, row, column.clamp(0, width - 1)]
            # Place 0 of a diagonal is the row above the grid.
            around = torch.cat([last[:, 1:], last[:, :-1], before[:, :-1]], dim=2)
            state = self._cell(given, around) * inside[None, :, None]
            before, last = last, nn.functional.pad(state, (0, 0, 1, 0))
            diagonals.append(state)
        ends = torch.stack(diagonals, dim=1)
        return ends[torch.arange(count, device=grid.device), rows + columns - 2, rows - 1]

    def _cell(self, given: Any, around: Any) -> Any:
        """New states from what is given, and the states left, above and above-left."""
        everything = torch.cat([around, given], dim=2)
        kept = torch.sigmoid(self.reset(everything)) * around
        new = torch.tanh(self.new_given(given) + self.new_before(kept))
        shares = torch.softmax(self.update(everything).unflatten(2, (4, self._size)), dim=2)
        choices = torch.cat([around.unflatten(2, (3, self._size)), new[:, :, None]], dim=2)
        return (shares * choices).sum(dim=2)


class _Network(nn.Module):  # type: ignore[misc]
    def __init__(self, settings: HintSettings, dimension: int) -> None:
        super().__init__()
        self._settings = settings
        self.of_query, self.of_document = nn.Linear(dimension, 1), nn.Linear(dimension, 1)
        # Cosines and equal words are matched apart, each from both ends of the grid.
        self.grids = nn.ModuleList(_SpatialGru(3, settings.grid) for _ in range(4))
        evidence = 4 * settings.grid
        self.single = nn.Linear(evidence, evidence)
        self.memory = nn.LSTM(evidence, settings.memory, batch_first=True, bidirectional=True)
        self.combine = nn.Linear(settings.strongest * (evidence + 2 * settings.memory), 1)

    def forward(self, batch: TensorBatch) -> Any:
        evidence, passages = self._evidence(batch)
        counted = torch.arange(evidence.shape[1], device=evidence.device)[None, :] < passages[:, None]
        packed = nn.utils.rnn.pack_padded_sequence(evidence, passages.cpu(), batch_first=True, enforce_sorted=False)
        memory = nn.utils.rnn.pad_packed_sequence(self.memory(packed)[0], batch_first=True)[0]
        signals = torch.cat([torch.tanh(self.single(evidence)), memory], dim=2)
        signals = signals.masked_fill(~counted[:, :, None], -torch.inf)
        missing = self._settings.strongest - signals.shape[1]
        if missing > 0:
            signals = nn.functional.pad(signals, (0, 0, 0, missing), value=-torch.inf)
        strongest = signals.topk(self._settings.strongest, dim=1).values
        # Where there are fewer passages than values to keep, the others are 0.
        strongest = strongest.masked_fill(strongest == -torch.inf, 0.0)
        return self.combine(strongest.flatten(1))[:, 0]

    def _evidence(self, batch: TensorBatch) -> tuple[Any, Any]:
        """What each passage says, shape (n, passages, 4 × grid), and how many passages each document has."""
        size = self._settings.passage
        pairs, words = batch.document.shape
        more = -words % size
        number = (words + more) // size
        vectors = nn.functional.pad(batch.document_vectors, (0, 0, 0, more))
        document = nn.functional.pad(batch.document, (0, more))
        grids = _grids(batch, document, vectors, self.of_query, self.of_document)
        length = (document > 0).sum(dim=1)
        starts = torch.arange(number, device=document.device) * size
        columns = (length[:, None] - starts[None, :]).clamp(1, size).flatten()
        rows = (batch.query > 0).sum(dim=1).clamp_min(1).repeat_interleave(number)
        found = []
        for place, grid in enumerate(grids):
            # (n, q, passages × p, 3) as one grid for each passage.
            passages = grid.unflatten(2, (number, size)).transpose(1, 2).flatten(0, 1)
            found.append(self.grids[2 * place](passages, rows, columns))
            found.append(self.grids[2 * place + 1](_turned(passages, rows, columns), rows, columns))
        evidence = torch.cat(found, dim=1).unflatten(0, (pairs, number))
        return evidence, ((length + size - 1) // size).clamp_min(1)


def _grids(batch: TensorBatch, document: Any, vectors: Any, of_query: Any, of_document: Any) -> tuple[Any, Any]:
    """For each query word and document word: cosine, or whether they are equal, and a number of each of the two."""
    cosines = unit(batch.query_vectors) @ unit(vectors).transpose(1, 2)
    equal = ((batch.query[:, :, None] == document[:, None, :]) & (batch.query[:, :, None] > 0)).to(cosines.dtype)
    shape = cosines.shape
    words = torch.stack(
        [of_query(batch.query_vectors).expand(shape), of_document(vectors).transpose(1, 2).expand(shape)], dim=3
    )
    return torch.cat([cosines[..., None], words], dim=3), torch.cat([equal[..., None], words], dim=3)


def _turned(grid: Any, rows: Any, columns: Any) -> Any:
    """The grids with the order of those rows and columns turned round that count."""
    count, height, width, _ = grid.shape
    row = (rows[:, None] - 1 - torch.arange(height, device=grid.device)[None, :]).clamp_min(0)
    column = (columns[:, None] - 1 - torch.arange(width, device=grid.device)[None, :]).clamp_min(0)
    each = torch.arange(count, device=grid.device)[:, None, None]
    return grid[each, row[:, :, None], column[:, None, :]]


class Hint(SmallRanker):
    """HINT in its hybrid form: a spatial GRU reads the matches of each passage from both ends, over cosines and over
    equal words; the strongest values of single passages and of a two-way LSTM over all of them make the score.

    Source: Fan et al. (2018), section 3; sizes as in the leakage paper's pilot experiments.
    """

    kind: ClassVar[str] = "hint"
    settings_type: ClassVar[type[Settings]] = HintSettings
    network: ClassVar[type[Any]] = _Network
    unit_vectors: ClassVar[bool] = False
    capreolus: ClassVar[Mapping[str, Any]] = {}
