"""The options of the commands about leakage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from truerank.errors import OptionError
from truerank.judging.labels import Judgments, open_judgments
from truerank.options import Flag, Labels, Options, Processes, Range

#: The encoder that the paper's threshold was calibrated for (leakage paper, section 3).
CALIBRATED_FOR: Final = "sentence-transformers/paraphrase-MiniLM-L6-v2"
DEFAULT_THRESHOLD: Final = 0.91
FIELDS: Final = ("title", "description", "narrative", "variant")


@dataclass(frozen=True)
class AuditOptions(Options):
    """What is compared, what counts as a candidate, and what is shown.

    Attributes:
        fields: the topic texts to compare, separated by commas: title, description, narrative. Variants are compared
            where given.
        variants: for a test set's name, the file with its query variants (topic TAB variant, or JSONL).
        threshold: a pair with a higher cosine similarity is a candidate.
        calibrated_for: the encoder that the threshold was calibrated for.
        floor: pairs above it are written too, for calibration; by default the threshold. Needs the exhaustive mode.
        k: neighbours kept for each topic text and source.
        mode: exhaustive compares every training text; prefilter encodes only those that share character trigrams with
            a topic.
        prefilter_cut: the prefilter's cut for a field, in place of the default.
        strict: treat bytes that are not UTF-8 as an error.
        block_size: texts that are encoded, and saved, at a time.
        engine: local (this process), ray (a cluster on this machine), or ray:ADDRESS.
        workers: how many processes compare documents; by default this one alone.
        topic: ids of topics whose nearest training queries are printed.
        baseline: the folder of an earlier audit; what is new since then is counted.
    """

    fields: Annotated[tuple[str, ...], Flag(metavar="NAME,…", reads=str)] = ("title", "description")
    variants: Annotated[Mapping[str, str], Flag(metavar="TEST=FILE")] = field(default_factory=dict)
    threshold: Annotated[float, Range(at_least=-1, below=1)] = DEFAULT_THRESHOLD
    calibrated_for: Annotated[str, Flag(metavar="NAME")] = CALIBRATED_FOR
    floor: Annotated[float | None, Range(at_least=-1)] = None
    k: Annotated[int, Range(at_least=0)] = 100
    mode: Literal["exhaustive", "prefilter"] = "exhaustive"
    prefilter_cut: Annotated[Mapping[str, float], Flag(metavar="FIELD=NUMBER")] = field(default_factory=dict)
    strict: bool = False
    block_size: Annotated[int, Range(at_least=1)] = 8192
    engine: Annotated[str, Flag(metavar="local|ray[:ADDRESS]")] = "local"
    workers: Processes | None = None
    topic: Annotated[tuple[str, ...], Flag(metavar="ID")] = ()
    baseline: Annotated[str | None, Flag(metavar="DIR")] = None

    def __post_init__(self) -> None:
        if isinstance(self.fields, str):
            names = tuple(name.strip() for name in self.fields.split(",") if name.strip())
            object.__setattr__(self, "fields", names)
        super().__post_init__()
        for option, given in (("fields", self.fields), ("prefilter_cut", self.prefilter_cut)):
            if unknown := [name for name in given if name not in FIELDS]:
                raise OptionError(option, f"no topic field called '{unknown[0]}'", f"use {', '.join(FIELDS)}")
        if not self.fields and not self.variants:
            raise OptionError("fields", "no topic text to compare", "name title, description or narrative")
        if self.floor is not None and self.floor > self.threshold:
            fault = f"the floor {self.floor:g} is not at or below the threshold {self.threshold:g}"
            raise OptionError("floor", fault, "lower it")
        if self.floor is not None and self.floor < self.threshold and self.mode == "prefilter":
            fault = "the prefilter's recall is estimated above the threshold only"
            raise OptionError("floor", fault, "use the exhaustive `mode` with it")

    @property
    def lowest(self) -> float:
        """Similarity above which pairs are written."""
        return self.threshold if self.floor is None else self.floor


@dataclass(frozen=True)
class Redaction(Options):
    """Whether texts are written.

    Attributes:
        redact: write keyed hashes instead of texts.
        redact_key: the file with the key of those hashes; by default one of your own, made at the first use.
    """

    redact: bool = False
    redact_key: Annotated[str | None, Flag(metavar="FILE")] = None


def opened_labels(judged: Labels) -> Judgments | None:
    """The judgments that the options name; None where they name none."""
    return open_judgments(judged) if judged else None
