"""What CEDR and PARADE share: a document as overlapping passages, read one by one with the query, scored together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, needed_for
from truerank.rankers.base import Pair, Runtime, Scores, rounded
from truerank.rankers.batches import length_batches, padded, restore
from truerank.rankers.pretrained.checkpoints import Checkpoint, collected, on_device, seeded
from truerank.rankers.pretrained.torch_ranker import (
    CPU_TOKENS,
    GPU_TOKENS,
    TokenRow,
    TorchRanker,
    longest_input,
    pair_frame,
    pair_types,
    token_ids,
)
from truerank.work.artifacts import atomic_path
from truerank_lab.rankers.settings import settings_from

with needed_for("CEDR and PARADE", "neural"):
    import torch
    from torch import nn

_HEAD: Final = "head.safetensors"
#: Passages are run together when none has more padding than this part; only a document's last one is shorter.
_WASTE: Final = 0.3


@dataclass(frozen=True)
class PassageSettings:
    """How a document is read.

    Attributes:
        passage: word pieces of a passage.
        stride: word pieces from the start of one passage to that of the next.
        passages: of a document that are read at most: the first, the last, and evenly spaced ones between.
        sequence: tokens of query, passage and special tokens together.
        seed: of the layers above the encoder, where a checkpoint has none.
    """

    passage: int = 150
    stride: int = 100
    passages: int = 16
    sequence: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            lowest = 0 if field.name == "seed" else 1
            if isinstance(value, int) and value < lowest:
                raise InputError(f"{field.name} is {value}", f"give {lowest} or more", where=field.name)
        if self.stride > self.passage:
            fault = f"passages of {self.passage} every {self.stride} word pieces leave gaps"
            raise InputError(fault, "give a stride no longer than the passage", where="stride")


class DocumentRows(NamedTuple):
    """A pair as the network reads it: one row of tokens for each passage, and where the query stands in all of them."""

    passages: tuple[TokenRow, ...]
    query: slice
    #: Tokens at the end of a row that belong to neither query nor document.
    after: int


class PassageBatch(NamedTuple):
    """The passages of some documents as tensors; n documents, p passages, t tokens, q query tokens.

    `ids`, `mask`, `types` and `document` (1 for tokens of the document) have the shape (p, t), `query` (1 for tokens of
    the query) the shape (p, q), its first token standing at `query_start` in every row; `owner` says which document a
    passage is of, shape (p,).
    """

    ids: Any
    mask: Any
    types: Any
    document: Any
    query: Any
    query_start: int
    owner: Any
    documents: int


class PassageNetwork(nn.Module):  # type: ignore[misc]
    """An encoder of transformers and the layers above it."""

    def __init__(self, encoder: Any, settings: PassageSettings) -> None:
        super().__init__()
        self.encoder = encoder
        # Nothing reads the pooled vector: without a gradient it need not be exchanged between processes.
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler.requires_grad_(False)

    def encode(self, batch: PassageBatch, *, layers: bool) -> Any:
        """The last hidden states, or with `layers` those of all layers and the embeddings, each (p, t, hidden)."""
        given = {"input_ids": batch.ids, "attention_mask": batch.mask}
        if batch.types is not None:
            given["token_type_ids"] = batch.types
        made = self.encoder(**given, output_hidden_states=layers)
        return made.hidden_states if layers else made.last_hidden_state

    def head(self) -> dict[str, Any]:
        """The weights above the encoder, by name."""
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("encoder.")}


class PassageRanker(TorchRanker):
    """A ranker that reads a document passage by passage and scores it once."""

    settings_type: ClassVar[type[PassageSettings]]
    network: ClassVar[type[PassageNetwork]]

    def __init__(self, module: Any, tokenizer: Any, name: str, runtime: Runtime, settings: Mapping[str, Any]) -> None:
        super().__init__(module, tokenizer, name, runtime, settings)
        self._frame = pair_frame(tokenizer, name)
        self._types = int(getattr(module.encoder.config, "type_vocab_size", 0) or 0)

    @classmethod
    def open(cls, place: str, runtime: Runtime = Runtime(), **settings: Any) -> Self:
        """Opens an encoder, whose upper layers are drawn from the seed, or what `save` wrote."""
        chosen = settings_from(cls.settings_type, settings)
        checkpoint = Checkpoint(place)
        longest = longest_input(checkpoint.config())
        if chosen.sequence > longest:
            fault = f"{chosen.sequence} tokens, and '{checkpoint.name}' reads {longest}"
            raise InputError(fault, f"give at most {longest}", where="sequence")
        tokenizer = checkpoint.tokenizer()
        room = chosen.sequence - pair_frame(tokenizer, checkpoint.name).tokens - chosen.passage
        if room < 1:
            fault = f"passages of {chosen.passage} word pieces leave no room for a query in {chosen.sequence}"
            raise InputError(fault, "lower passage, or raise sequence", where="passage")
        encoder = checkpoint.module("AutoModel")
        with seeded(chosen.seed):
            module = cls.network(encoder, chosen)
        if path := checkpoint.file(_HEAD):
            _load_head(module, path)
        return cls(module.eval(), tokenizer, checkpoint.name, runtime, asdict(chosen))

    def save_weights(self, folder: Path) -> None:
        """Writes the encoder as transformers does, and the layers above it into a file of their own."""
        from safetensors.torch import save

        self.module.encoder.save_pretrained(str(folder))
        head = {name: tensor.detach().cpu().contiguous() for name, tensor in self.module.head().items()}
        with atomic_path(folder / _HEAD) as temporary:
            temporary.write_bytes(save(head))

    def rows(self, pairs: Sequence[Pair]) -> list[DocumentRows]:
        """The passages of each pair, each with the query."""
        chosen = settings_from(self.settings_type, self.settings)
        room = chosen.sequence - self._frame.tokens - chosen.passage
        queries = token_ids(self.tokenizer, (pair.query for pair in pairs))
        documents = token_ids(self.tokenizer, (pair.document for pair in pairs))
        start, after = len(self._frame.before), len(self._frame.after)
        rows = []
        for pair in pairs:
            query = queries[pair.query][:room]
            parts = chosen_passages(documents[pair.document], chosen)
            place = slice(start, start + len(query))
            rows.append(DocumentRows(tuple(self._frame.row(query, part) for part in parts), place, after))
        return rows

    def logits(self, rows: Sequence[DocumentRows]) -> Any:
        """The scores with gradients, shape (rows,)."""
        return self.module(self._batch(rows))

    def score(self, pairs: Sequence[Pair]) -> Scores:
        """The score of each pair, shape (pairs,); higher is better; equal pairs have equal scores."""
        distinct = sorted(set(pairs))
        place = {pair: number for number, pair in enumerate(distinct)}
        rows = self.rows(distinct)
        # A document costs its passages, each as long as its longest.
        costs = (len(row.passages) * max(len(part.ids) for part in row.passages) for row in rows)
        tokens = CPU_TOKENS if self.device == "cpu" else GPU_TOKENS
        batches = length_batches(np.fromiter(costs, np.int64, len(rows)), tokens=tokens, waste=_WASTE)
        self.module.eval()
        with torch.inference_mode():
            values = collected([self.logits([rows[number] for number in batch]) for batch in batches])
        found = rounded(restore(batches, values))
        return found[np.fromiter((place[pair] for pair in pairs), np.int64, len(pairs))]

    def _batch(self, rows: Sequence[DocumentRows]) -> PassageBatch:
        parts = [part for row in rows for part in row.passages]
        owner = np.repeat(np.arange(len(rows)), [len(row.passages) for row in rows])
        ids, mask = padded([part.ids for part in parts], int(self.tokenizer.pad_token_id or 0))
        asked = np.array([row.query.stop - row.query.start for row in rows], np.int64)[owner]
        second = np.array([part.second for part in parts], np.int64)
        # What stands between query and document belongs to neither; some of it has the first type.
        first_document = second + len(self._frame.between) - self._frame.first_between
        last_document = np.array([len(part.ids) for part in parts], np.int64) - rows[0].after
        places = np.arange(ids.shape[1])[None, :]
        document = (places >= first_document[:, None]) & (places < last_document[:, None])
        query = np.arange(max(1, int(asked.max())))[None, :] < asked[:, None]
        types = pair_types(parts, ids.shape[1]) if self._types > 1 else None
        return PassageBatch(
            self._tensor(ids),
            self._tensor(mask),
            None if types is None else self._tensor(types),
            self._tensor(document.astype(np.float32)),
            self._tensor(query.astype(np.float32)),
            rows[0].query.start,
            self._tensor(owner),
            len(rows),
        )

    def _tensor(self, values: NDArray[Any]) -> Any:
        return on_device(values, self.device)


def chosen_passages(document: Sequence[int], settings: PassageSettings) -> list[list[int]]:
    """The passages of a document: overlapping, the last one perhaps shorter; an empty document is one empty passage."""
    count = 1 + max(0, -(-(len(document) - settings.passage) // settings.stride))
    numbers = np.arange(count)
    if count > settings.passages:
        numbers = np.unique(np.linspace(0, count - 1, settings.passages).round().astype(np.int64))
    starts = (numbers * settings.stride).tolist()
    return [list(document[start : start + settings.passage]) for start in starts]


def _load_head(module: PassageNetwork, path: Path) -> None:
    from safetensors.torch import load_file

    try:
        head = load_file(str(path))
        missing, unexpected = module.load_state_dict(head, strict=False)
    except Exception as error:  # torch and safetensors raise kinds of their own
        fault = f"weights that do not fit ({type(error).__name__})"
        raise InputError(fault, "open it with the settings that it was trained with", where=path) from error
    if unexpected or any(not name.startswith("encoder.") for name in missing):
        raise InputError("weights of another network", "open it as what it was trained as", where=path)
