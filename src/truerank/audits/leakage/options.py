"""The options of the leakage audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from truerank.errors import InputError
from truerank.judging.votes import Votes

__all__ = ["CALIBRATED_FOR", "DEFAULT_THRESHOLD", "FIELDS", "Options"]

#: The encoder that the paper's threshold was calibrated for (leakage paper, section 3).
CALIBRATED_FOR: Final = "sentence-transformers/paraphrase-MiniLM-L6-v2"
DEFAULT_THRESHOLD: Final = 0.91
FIELDS: Final = ("title", "description", "narrative", "variant")


@dataclass(frozen=True)
class Options:
    """How `leakage.audit` looks for leaks.

    Args:
        fields: the topic texts to compare: title, description, narrative. Variants are compared where given.
        variants: for a test set's name, the file with its query variants.
        encoder: a Hugging Face id, a local folder, or "packaged".
        backend: "auto", "onnx", "openvino" or "torch".
        device: where the torch backend runs.
        threshold: a pair with a higher similarity is a candidate.
        calibrated_for: the encoder that the threshold was calibrated for.
        floor: pairs above it are written too, for calibration (default: the threshold; exhaustive mode only).
        top_k: neighbours kept for each topic text and source.
        mode: "exhaustive" compares every training text; "prefilter" encodes only what shares trigrams with a topic.
        cuts: the prefilter's cut by field, where it should differ from the default.
        precision: "auto" runs a low-precision pass first where the backend has one; "full" never does.
        engine: "local", "ray" or "ray:ADDRESS".
        strict: bytes that are not UTF-8 are an error.
        cache: a folder that keeps embeddings for the next audit.
        block_size: texts that are encoded, and saved, at a time.
        labels: what people said about pairs; verdicts then rest on confirmed leaks.
        votes: how one answer is made of several voices, see `judging.VOTES`.
        baseline: the folder of an earlier audit; what is new since then is counted.
        all_columns: compare every text column of a training source, each as a source of its own; sources that name
            their column stay as they are.
        redact: write hashes instead of texts.
        redact_key: the file with the key of those hashes (default: one of the user's own, made at the first use).
    """

    fields: tuple[str, ...] = ("title", "description")
    variants: Mapping[str, str] = field(default_factory=dict)
    encoder: str = CALIBRATED_FOR
    backend: Literal["auto", "onnx", "openvino", "torch"] = "auto"
    device: str | None = None
    threshold: float = DEFAULT_THRESHOLD
    calibrated_for: str = CALIBRATED_FOR
    floor: float | None = None
    top_k: int = 100
    mode: Literal["exhaustive", "prefilter"] = "exhaustive"
    cuts: Mapping[str, float] = field(default_factory=dict)
    precision: Literal["auto", "full"] = "auto"
    engine: str = "local"
    strict: bool = False
    cache: str | None = None
    block_size: int = 8192
    labels: tuple[str, ...] = ()
    votes: Votes = "majority"
    baseline: str | None = None
    all_columns: bool = False
    redact: bool = False
    redact_key: str | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in (*self.fields, *self.cuts) if name not in FIELDS]
        if unknown:
            raise InputError(f"no topic field called {unknown[0]!r}", f"use {', '.join(FIELDS)}", where="--fields")
        if not self.fields and not self.variants:
            raise InputError(
                "no topic text to compare", "name at least one of title, description, narrative", where="--fields"
            )
        if not -1 <= self.threshold < 1:
            raise InputError(
                f"a cosine is below 1, not {self.threshold}", "give a number such as 0.91", where="--threshold"
            )
        if self.floor is not None and not -1 <= self.floor <= self.threshold:
            raise InputError(
                f"the floor {self.floor} is not at or below the threshold {self.threshold}", "lower it", where="--floor"
            )
        if self.floor is not None and self.floor < self.threshold and self.mode == "prefilter":
            raise InputError(
                "the prefilter is only safe above the threshold", "use --mode exhaustive with --floor", where="--floor"
            )
        if self.top_k < 0:
            raise InputError(f"{self.top_k} neighbours are not possible", "give 0 or more", where="--top-k")
        if self.mode not in ("exhaustive", "prefilter"):
            raise InputError(f"no mode called {self.mode!r}", "use 'exhaustive' or 'prefilter'", where="--mode")
        if self.block_size < 1:
            raise InputError(f"{self.block_size} texts make no block", "give 1 or more", where="--block-size")

    @property
    def lowest(self) -> float:
        """Similarity above which pairs are written."""
        return self.threshold if self.floor is None else self.floor
