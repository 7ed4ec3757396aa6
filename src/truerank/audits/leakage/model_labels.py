"""The encoder of the audit in place of a person: it labels pairs by its similarity and the types that it proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from truerank.audits.leakage.options import CALIBRATED_FOR, DEFAULT_THRESHOLD
from truerank.errors import InputError, OptionError
from truerank.judging import Item, Scheme, Store
from truerank.judging.models import Answer, ItemAnswer, ModelRun, Only, judge_with_model
from truerank.text.reformulation import propose_types
from truerank.text.words import content_words
from truerank.vectors.encoders import Backend, Encoder, open_encoder
from truerank.vectors.words import WordVectors
from truerank.work.progress import Progress

_ITEMS_AT_ONCE: Final = 1024
_DIFFERENT: Final = "Different Topic"


@dataclass(frozen=True, eq=False)
class EncoderJudge:
    """A sentence encoder with a threshold as an annotator of topic–query pairs.

    A pair leaks if the query is more similar than the threshold to the topic's title, its description or the variant.
    For the scheme `leakage` the types against title and variant are those that `propose_types` gives; where that says
    "different topic" of the title, so does the label.

    Attributes:
        encoder: turns texts into vectors.
        threshold: a higher cosine is a leak.
    """

    encoder: Encoder
    threshold: float = DEFAULT_THRESHOLD

    @property
    def name(self) -> str:
        """The encoder's name."""
        return self.encoder.name

    @property
    def about(self) -> str:
        """The encoder with its fingerprint, and the threshold."""
        mark = self.encoder.fingerprint[:12]
        return f"{self.encoder.name} ({self.encoder.precision}, {mark}), cosine above {self.threshold:g}"

    def judge(self, scheme: Scheme, items: Iterator[Item]) -> Iterator[ItemAnswer]:
        """Labels items in their order; an item without a query or a title is skipped.

        Raises:
            InputError: the scheme is neither `leakage` nor `leak`.
        """
        if scheme.name not in ("leakage", "leak"):
            raise InputError(
                f"an encoder does not judge by the scheme '{scheme.name}'",
                "it judges leakage and leak; for others give `endpoint` and `model`",
            )
        while batch := list(islice(items, _ITEMS_AT_ONCE)):
            yield from self._batch(scheme, batch)

    def _batch(self, scheme: Scheme, batch: Sequence[Item]) -> Iterator[ItemAnswer]:
        pairs = [[(text, item.text("query")) for text in _topic_texts(item)] for item in batch]
        texts = sorted({text for of_item in pairs for pair in of_item for text in pair})
        rows = {text: row for row, text in enumerate(texts)}
        vectors = self.encoder.encode(texts) if texts else np.empty((0, self.encoder.dimension), np.float32)
        words = WordVectors(self.encoder, (word for text in texts for word in content_words(text)))

        def cosine(pair: tuple[str, str]) -> float:
            return float(min(1.0, vectors[rows[pair[0]]] @ vectors[rows[pair[1]]]))

        for item, own in zip(batch, pairs, strict=True):
            if not own:
                yield ItemAnswer(item, Answer(skip="the pair has no query or no title"))
                continue
            best = max(map(cosine, own))
            labels = self._labels(scheme, item, best, cosine, words)
            yield ItemAnswer(item, Answer(scheme.check(labels, item), comment=f"cosine {best:.6f}"))

    def _labels(
        self, scheme: Scheme, item: Item, best: float, cosine: Callable[[tuple[str, str]], float], words: WordVectors
    ) -> tuple[str, ...]:
        if scheme.name == "leak":
            return ("leak",) if best > self.threshold else ("no leak",)
        if best <= self.threshold:
            return (_DIFFERENT,)
        query = item.text("query")
        against = [("Title", item.title), *([("Variant", item.variant)] if item.variant.strip() else [])]
        asked = [(text, query) for _, text in against]
        types = propose_types(asked, words, [cosine(pair) for pair in asked])
        if types[0] == "different topic":
            return (_DIFFERENT,)
        named = zip(against, types, strict=True)
        return tuple(f"{part}-{kind.capitalize()}" for (part, _), kind in named if kind != "different topic")


def judge_with_encoder(
    store: str | Path | Store,
    encoder: str | Encoder = CALIBRATED_FOR,
    *,
    threshold: float = DEFAULT_THRESHOLD,
    backend: Backend = "auto",
    device: str | None = None,
    name: str = "",
    only: Only = "all",
    max_items: int | None = None,
    progress: Progress | None = None,
) -> ModelRun:
    """Lets a sentence encoder label the pairs of a store, as one annotator among others.

    Args:
        store: a store of the scheme `leakage` or `leak`, open or its path.
        encoder: a Hugging Face id, a local folder, `packaged`, or an open encoder.
        threshold: a higher cosine is a leak.
        backend, device: what runs an encoder that is given by name.
        name, only, max_items, progress: as for `judge_with_model`.

    Returns:
        What was labelled and skipped.

    Raises:
        InputError: as for `judge_with_model`; another scheme; the encoder cannot be opened.
    """
    if not -1 <= threshold <= 1:
        raise OptionError("threshold", f"the threshold {threshold:g}", "give a cosine")
    opened = open_encoder(encoder, backend=backend, device=device) if isinstance(encoder, str) else encoder
    judge = EncoderJudge(opened, threshold)
    return judge_with_model(store, judge, name=name, only=only, max_items=max_items, progress=progress)


def _topic_texts(item: Item) -> list[str]:
    if not item.text("query").strip() or not item.title.strip():
        return []
    return [text for text in (item.title, item.description, item.variant) if text.strip()]
