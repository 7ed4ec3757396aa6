"""Fine-tuning an embedding model on pairs, as sentence-transformers does it: in-batch negatives, a few epochs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np

from truerank.errors import InputError, MissingExtraError, OptionError
from truerank.options import Options, Range
from truerank.rankers.base import Pair

_ORDER: Final = 1


@dataclass(frozen=True)
class FineTuning(Options):
    """How an embedding model is fine-tuned.

    The values are those of the training overview of sentence-transformers (learning rate, share of the warm-up, batches
    without duplicates, one epoch of batches of 16) and the defaults of its trainer (AdamW, a learning rate that falls
    linearly to 0, gradients of norm 1 at most) and of its loss (cosines times 20).

    Attributes:
        epochs: passes over the pairs.
        batch: pairs of a step; each positive is a negative of the other queries.
        learning_rate: after the warm-up.
        warmup: share of the steps over which the learning rate rises from 0.
        scale: cosines are multiplied by it.
        clip: the largest norm of the gradient.
        tokens: of a text; what is longer is cut.
        precision: of the forward pass: fp32, or bf16 where the processor has it.

    Source: Henderson et al. (2017), section 4, for the loss.
    """

    epochs: Annotated[int, Range(at_least=1)] = 1
    batch: Annotated[int, Range(at_least=2)] = 16
    learning_rate: Annotated[float, Range(above=0)] = 2e-5
    warmup: Annotated[float, Range(at_least=0, below=1)] = 0.1
    scale: Annotated[float, Range(above=0)] = 20.0
    clip: Annotated[float, Range(above=0)] = 1.0
    tokens: Annotated[int, Range(at_least=4)] = 128
    precision: Literal["fp32", "bf16"] = "fp32"

    def json(self) -> dict[str, Any]:
        """All values, in their order."""
        return asdict(self)


def open_bi_encoder(place: str | Path, tokens: int) -> Any:
    """Opens a model of sentence-transformers on the processor."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError("fine-tuning an embedding model", "neural") from error
    try:
        model = SentenceTransformer(str(place), device="cpu")
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        fault = f"cannot be loaded ({' '.join(str(error).split())[:200]})"
        raise InputError(fault, "give a folder or id of a sentence-transformers model", where=place) from error
    model.max_seq_length = min(tokens, int(model.max_seq_length or tokens))
    return model


def fine_tune(model: Any, pairs: Sequence[Pair], how: FineTuning = FineTuning(), *, seed: int = 0) -> list[float]:
    """Trains a model of sentence-transformers on pairs with its MultipleNegativesRankingLoss.

    The order of the pairs and the dropout follow from the seed.
    """
    try:
        import torch
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    except ImportError as error:
        raise MissingExtraError("fine-tuning an embedding model", "neural") from error
    torch.manual_seed(seed)
    order = np.random.default_rng([_ORDER, seed])
    batches = [batch for _ in range(how.epochs) for batch in pair_batches(pairs, how.batch, order)]
    if not batches:
        raise OptionError("batch", f"{len(pairs)} pairs make no batch", "give two different pairs or more")
    loss = MultipleNegativesRankingLoss(model, scale=how.scale)
    optimiser = torch.optim.AdamW(model.parameters(), lr=how.learning_rate, weight_decay=0.0, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, _Warmed(math.ceil(how.warmup * len(batches)), len(batches)))
    prepare = getattr(model, "preprocess", None) or model.tokenize
    losses = []
    model.train()
    for batch in batches:
        features = [prepare([pair.query for pair in batch]), prepare([pair.document for pair in batch])]
        with torch.autocast("cpu", torch.bfloat16, enabled=how.precision == "bf16"):
            value = loss(features, None)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), how.clip)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        losses.append(float(value.detach()))
    model.eval()
    if not all(map(math.isfinite, losses)):
        raise OptionError("learning_rate", f"the loss is not a number with {how.learning_rate:g}", "lower it")
    return losses


def pair_batches(pairs: Sequence[Pair], size: int, order: np.random.Generator) -> Iterator[list[Pair]]:
    """The pairs of one epoch in random order, in batches in which no text occurs twice.

    A pair that shares a text with its batch waits for the next one: it would be a negative of itself. A batch of fewer
    than two pairs is left out, since it has no negative.
    """
    waiting = [pairs[place] for place in order.permutation(len(pairs))]
    while waiting:
        batch: list[Pair] = []
        texts: set[str] = set()
        later = []
        for place, pair in enumerate(waiting):
            if len(batch) == size:
                later += waiting[place:]
                break
            if texts.isdisjoint(pair):
                batch.append(pair)
                texts.update(pair)
            else:
                later.append(pair)
        waiting = later
        if len(batch) > 1:
            yield batch


class _Warmed:
    """The factor of the learning rate at a step: up to 1, then linearly down to 0."""

    def __init__(self, warmup: int, steps: int) -> None:
        self._warmup, self._steps = warmup, steps

    def __call__(self, step: int) -> float:
        if step < self._warmup:
            return step / self._warmup
        return (self._steps - step) / max(1, self._steps - self._warmup)
