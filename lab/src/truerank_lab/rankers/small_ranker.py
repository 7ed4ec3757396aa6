"""What the small neural rankers share: texts to numbers, batches, scores, training, saving."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from truerank.errors import InputError, needed_for
from truerank.rankers.base import Pair, Runtime, Scores, rounded, write_description
from truerank.rankers.batches import length_batches, padded, restore
from truerank.work.artifacts import atomic_path, digest
from truerank_lab.rankers.settings import settings_from
from truerank_lab.rankers.vocabulary import Vocabulary, open_vocabulary

with needed_for("the small neural rankers", "neural"):
    import torch

_WEIGHTS: Final = "model.safetensors"
#: Words of documents in a batch, padding included, when scoring.
_TOKENS: Final = 1 << 14
_WASTE: Final = 0.2
_HERE: Final = Runtime()


@dataclasses.dataclass(frozen=True)
class Settings:
    """What all small rankers can be told.

    Attributes:
        max_query: words of a query that are read.
        max_document: words of a document that are read.
        padding: "masked": padding counts for nothing; "zero": texts are filled up to these lengths, and what stands
            there has the similarity 0 and takes part, as in Capreolus.
    """

    max_query: int = 20
    max_document: int = 800
    padding: str = "masked"

    def __post_init__(self) -> None:
        if self.padding not in ("masked", "zero"):
            raise InputError(f"no padding '{self.padding}'", "choose masked or zero", where="padding")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 1:
                raise InputError(f"{field.name} is {value}", "give 1 or more", where=field.name)


class PairIds(NamedTuple):
    """The numbers of the words of a pair, already cut."""

    query: list[int]
    document: list[int]


class TensorBatch(NamedTuple):
    """Pairs as tensors; n pairs, q query words, d document words, e dimensions.

    `query` (n, q) and `document` (n, d) hold numbers, 0 for padding; `query_vectors` (n, q, e) and `document_vectors`
    (n, d, e) their vectors, zeros for padding; `idf` (n, q) that of the query's words.
    """

    query: Any
    document: Any
    query_vectors: Any
    document_vectors: Any
    idf: Any

    @property
    def query_mask(self) -> Any:
        """1 for a word, 0 for padding, shape (n, q)."""
        return (self.query > 0).to(self.idf.dtype)

    @property
    def document_mask(self) -> Any:
        """1 for a word, 0 for padding, shape (n, d)."""
        return (self.document > 0).to(self.idf.dtype)

    def products(self) -> Any:
        """Dot products of the words' vectors, cosines where these have unit length; 0 at padding; shape (n, q, d)."""
        return self.query_vectors @ self.document_vectors.transpose(1, 2)

    def exact(self) -> Any:
        """1 where the words are the same, shape (n, q, d)."""
        same = (self.query[:, :, None] == self.document[:, None, :]) & (self.query[:, :, None] > 0)
        return same.to(self.idf.dtype)


def unit(vectors: Any) -> Any:
    """Vectors of length one; those of zeros stay."""
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(1e-9)


class SmallRanker:
    """A small network over word vectors that are not trained; called with a `TensorBatch` it returns one score a pair.

    Scores are computed in double precision, so that neither the order of the pairs nor the padding of a batch shows in
    the decimals that are kept.
    """

    kind: ClassVar[str]
    settings_type: ClassVar[type[Settings]]
    network: ClassVar[type[Any]]
    #: Whether the network wants vectors of unit length.
    unit_vectors: ClassVar[bool] = True
    #: Settings that differ under the recipe `capreolus`.
    capreolus: ClassVar[Mapping[str, Any]] = {"max_query": 4, "max_document": 800, "padding": "zero"}

    def __init__(self, vocabulary: Vocabulary, settings: Settings, runtime: Runtime = _HERE, *, seed: int = 0) -> None:
        self.vocabulary, self.settings = vocabulary, settings
        from truerank.rankers.pretrained.checkpoints import device_of

        if runtime.precision != "fp32":
            fault = f"{self.kind} runs in full precision"
            raise InputError(fault, "leave out precision", where=self.kind)
        self.device = device_of(runtime)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = self.network(settings, vocabulary.vectors.shape[1]).to(self.device)
        table = torch.from_numpy(vocabulary.vectors)
        self._table = (unit(table) if self.unit_vectors else table).to(self.device)
        self._idf = torch.from_numpy(vocabulary.idf).to(self.device)

    @classmethod
    def create(cls, vocabulary: Vocabulary, runtime: Runtime = _HERE, *, seed: int = 0, **settings: Any) -> Self:
        return cls(vocabulary, settings_from(cls.settings_type, settings), runtime, seed=seed)

    @classmethod
    def open(cls, place: str, runtime: Runtime = _HERE, **settings: Any) -> Self:
        from safetensors.torch import load_file

        folder = Path(place)
        file = folder / _WEIGHTS
        if not file.is_file():
            raise InputError(f"no trained {cls.kind} here", "train one with 'truerank-lab train'", where=folder)
        ranker = cls(open_vocabulary(folder), settings_from(cls.settings_type, settings), runtime)
        try:
            ranker.module.load_state_dict(load_file(str(file)))
        except Exception as error:  # torch and safetensors raise kinds of their own
            fault = f"weights that do not fit ({type(error).__name__})"
            raise InputError(fault, "open it with the settings that it was trained with", where=file) from error
        return ranker

    @property
    def name(self) -> str:
        return self.kind

    @property
    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.module.parameters() if weight.requires_grad)

    @property
    def fingerprint(self) -> str:
        """Hash over weights, vocabulary and settings, as they are now."""
        weights = {
            name: digest(tensor.detach().cpu().double().flatten().tolist())
            for name, tensor in sorted(self.module.state_dict().items())
        }
        return digest([self.kind, weights, self.vocabulary.fingerprint, dataclasses.asdict(self.settings)])

    def save(self, folder: Path) -> None:
        """Writes weights, vocabulary and settings to a folder that `load` reads."""
        from safetensors.torch import save

        folder = Path(folder)
        self.vocabulary.save(folder)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.module.state_dict().items()}
        with atomic_path(folder / _WEIGHTS) as temporary:
            temporary.write_bytes(save(tensors))
        write_description(folder, self.kind, dataclasses.asdict(self.settings))

    def rows(self, pairs: Sequence[Pair]) -> list[PairIds]:
        """The numbers of the words of each pair, cut to the lengths that are read."""
        queries = self._ids([pair.query for pair in pairs], self.settings.max_query)
        documents = self._ids([pair.document for pair in pairs], self.settings.max_document)
        return [PairIds(queries[pair.query], documents[pair.document]) for pair in pairs]

    def logits(self, rows: Sequence[PairIds]) -> Any:
        return self.module(self._batch(rows, (self._table, self._idf)))

    def score(self, pairs: Sequence[Pair]) -> Scores:
        """The score of each pair, shape (pairs,); higher is better."""
        rows = self.rows(pairs)
        lengths = np.fromiter((len(row.document) for row in rows), np.int64, len(rows))
        batches = length_batches(lengths, tokens=_TOKENS, waste=_WASTE)
        precision = torch.float32 if self.device.startswith("mps") else torch.float64
        network = copy.deepcopy(self.module).to(precision).eval()
        tables = self._table.to(precision), self._idf.to(precision)
        with torch.inference_mode():
            found = (network(self._batch([rows[number] for number in batch], tables)) for batch in batches)
            values = [scores.cpu().numpy() for scores in found]
        return rounded(restore(batches, values))

    def _ids(self, texts: Iterable[str], longest: int) -> dict[str, list[int]]:
        distinct = list(dict.fromkeys(texts))
        return {text: ids[:longest] for text, ids in zip(distinct, self.vocabulary.ids(distinct), strict=True)}

    def _batch(self, rows: Sequence[PairIds], tables: tuple[Any, Any]) -> TensorBatch:
        filled = self.settings.padding == "zero"
        query = self._matrix([row.query for row in rows], self.settings.max_query if filled else None)
        document = self._matrix([row.document for row in rows], self.settings.max_document if filled else None)
        vectors, idf = tables
        return TensorBatch(query, document, vectors[query], vectors[document], idf[query])

    def _matrix(self, ids: Sequence[Sequence[int]], length: int | None) -> Any:
        # A text without words is one word of padding.
        width = length or max(1, *(len(row) for row in ids), 1)
        return torch.from_numpy(padded(ids, 0, width)[0]).to(self.device)
