"""monoT5: a sequence-to-sequence model that answers "true" or "false" to a query and a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

from truerank.errors import InputError, OptionError
from truerank.rankers.base import Pair, Runtime
from truerank.rankers.pretrained.checkpoints import Checkpoint
from truerank.rankers.pretrained.torch_ranker import CrossRanker, TokenRow, token_ids

#: The answers, as pieces of T5's vocabulary.
_ANSWERS: Final = ("▁false", "▁true")


class MonoT5(CrossRanker):
    """Reads `Query: … Document: … Relevant:` and scores by the log-probability of "true" against "false".

    The document is cut so that `Relevant:` is kept; a query that alone is too long is cut in the document's place.

    Source: Nogueira, Jiang, Pradeep, Lin (2020), section 3.
    """

    kind: ClassVar[str] = "monot5"
    #: The checkpoint of the survivorship paper (section 2).
    default_model: ClassVar[str] = "castorini/monot5-base-msmarco"

    def __init__(self, module: Any, tokenizer: Any, name: str, runtime: Runtime, settings: dict[str, Any]) -> None:
        super().__init__(module, tokenizer, name, runtime, settings)
        self._answers = [_answer(tokenizer, piece, name) for piece in _ANSWERS]
        parts = token_ids(tokenizer, ("Document:", "Relevant:"))
        self._between, self._after = parts["Document:"], [*parts["Relevant:"], int(tokenizer.eos_token_id)]
        self._start = int(module.config.decoder_start_token_id)

    @classmethod
    def open(
        cls, place: str, runtime: Runtime = Runtime(), *, max_tokens: int = 512, probabilities: bool = False
    ) -> Self:
        """Opens a checkpoint, of monoT5 or of T5 to be trained."""
        checkpoint = Checkpoint(place)
        if int(max_tokens) < 16:
            raise InputError(f"{max_tokens} tokens", "give 16 or more", where="max_tokens")
        module = checkpoint.module("AutoModelForSeq2SeqLM")
        settings = {"max_tokens": int(max_tokens), "probabilities": bool(probabilities)}
        return cls(module, checkpoint.tokenizer(), checkpoint.name, runtime, settings)

    def rows(self, pairs: Sequence[Pair]) -> list[TokenRow]:
        heads = token_ids(self.tokenizer, (f"Query: {pair.query}" for pair in pairs))
        documents = token_ids(self.tokenizer, (pair.document for pair in pairs))
        room = int(self.settings["max_tokens"]) - len(self._between) - len(self._after)
        rows = []
        for pair in pairs:
            head = heads[f"Query: {pair.query}"][:room]
            document = documents[pair.document][: room - len(head)]
            rows.append(TokenRow([*head, *self._between, *document, *self._after], len(head)))
        return rows

    def logits(self, rows: Sequence[TokenRow]) -> Any:
        """The logits of "false" and "true" in the first step of the decoder, shape (rows, 2)."""
        import torch

        ids, mask = self.matrix(rows)
        start = torch.full((len(rows), 1), self._start, dtype=torch.long, device=self.device)
        given = torch.ones_like(ids) if mask is None else mask
        found = self.module(input_ids=ids, attention_mask=given, decoder_input_ids=start, use_cache=False).logits
        return found[:, 0, self._answers]

    def scores_of(self, logits: Any) -> Any:
        """The log-probability of "true", or its probability."""
        import torch

        values = torch.log_softmax(logits.float(), dim=1)[:, 1]
        return values.exp() if self.settings["probabilities"] else values


def _answer(tokenizer: Any, piece: str, name: str) -> int:
    number = tokenizer.convert_tokens_to_ids(piece)
    if number is None or number == tokenizer.unk_token_id:
        raise OptionError("model", f"the vocabulary of '{name}' lacks '{piece}'", "give a T5 checkpoint")
    return int(number)
