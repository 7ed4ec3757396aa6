"""What this machine is good at: the ways of running a model, how fast each is, and which one is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Annotated, Any, Final

from truerank.errors import OptionError
from truerank.options import Encoding, Flag, Range, Runtime, command
from truerank.rankers.base import Pair, spec_of
from truerank.rankers.reranking.choosing import choose_runtime
from truerank.reports.results import Result, Summary, summarises
from truerank.reports.tables import Column, Table
from truerank.sources import open_queries
from truerank.sources.sample import SAMPLE
from truerank.text.normalising import normalise
from truerank.vectors.encoders import Backend, open_encoder
from truerank.vectors.encoders.speed import (
    FIRST_PASS_ERROR,
    ChosenWay,
    choose_first_pass,
    instruction_sets,
    processor_name,
)
from truerank.work.engines import processors

__all__ = ["Machine", "machine"]

#: Texts that the sample is taken from.
_TEXTS: Final = 512
#: Texts in a pair's document: passages are longer than queries.
_TEXTS_OF_A_DOCUMENT: Final = 12


@dataclass(frozen=True, repr=False)
class Machine(Result, shown_in="truerank.rankers.machine"):
    """How models run on this machine.

    Attributes:
        processor: its name.
        processors: how many this process may use.
        instructions: sets of instructions for products of matrices.
        name: of the model that was measured.
        work: what was measured: the first pass of an audit, or reranking.
        tolerance: the largest error that a way may have.
        choice: the ways, and the one that is taken.
    """

    processor: str
    processors: int
    instructions: tuple[str, ...]
    name: str
    work: str
    tolerance: float
    choice: ChosenWay

    def json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "processor": self.processor,
            "processors": self.processors,
            "instructions": list(self.instructions),
            "model": self.name,
            "work": self.work,
            "tolerance": self.tolerance,
            "measured": self.choice.measured,
            **self.choice.json(),
        }


@command
def machine(
    *,
    train: Annotated[str | None, Flag(metavar="SRC")] = None,
    model: Annotated[str | None, Flag(metavar="NAME|DIR")] = None,
    encoder: Annotated[str, Flag(metavar="NAME")] = Encoding.encoder,
    backend: Backend = "auto",
    device: str | None = None,
    tolerance: Annotated[float | None, Range(above=0)] = None,
    anew: bool = False,
) -> Machine:
    """Shows the ways of running a model on this machine, how fast each is, and which one is taken.

    Backends, precisions and sizes of batches are measured once for a machine and a model, and kept in the user's cache
    folder; audits and rerankers use what is kept there. For an encoder, the way is that of an audit's first pass: full
    precision has the last word on every pair above the threshold. Figures are for the processors without other work.

    Args:
        train: queries that are measured; by default the embedded sample.
        model: a reranker to measure instead of the encoder.
        encoder: a Hugging Face id, a local folder, or packaged.
        backend: what runs the encoder in full precision; auto takes OpenVINO, ONNX Runtime or torch, the first that is
            installed.
        device: where torch runs, such as cuda:0.
        tolerance: of a reranker, how far a score may differ from that in full precision; by default 0.0001.
        anew: measure again although it is known.

    Returns:
        The ways and the choice.

    Raises:
        InputError: the model cannot be opened.

    Examples:

        truerank machine --encoder packaged

        truerank machine --train queries.tsv --json

        truerank machine --model monobert:models/ce --tolerance 0.01
    """
    texts = _texts(train or str(SAMPLE.train[0]))
    if not texts:
        raise OptionError("train", f"no query of {train} has a text", "give queries with texts")
    if model is None:
        if tolerance is not None:
            raise OptionError("tolerance", "an encoder's pairs are exact", "leave it out, or give a `model`")
        opened = open_encoder(encoder, backend=backend, device=device)
        spec = getattr(opened, "spec", None)
        if spec is None:
            fault = f"'{opened.name}' is run by another package, in one way"
            raise OptionError("encoder", fault, "give a folder, a Hugging Face id, or packaged")
        choice = choose_first_pass(opened, spec, texts, anew=anew)
        return _made(opened.name, "encoding, first pass of an audit", FIRST_PASS_ERROR, choice)
    runtime = Runtime(device=device, precision="auto")
    runtime = runtime if tolerance is None else replace(runtime, tolerance=tolerance)
    pairs = _pairs(texts)
    choice = choose_runtime(spec_of(model, runtime, {}), lambda size: pairs[:size], anew=anew)
    return _made(model, "reranking", runtime.tolerance, choice)


def _made(name: str, work: str, tolerance: float, choice: ChosenWay) -> Machine:
    return Machine(processor_name(), processors(), instruction_sets(), name, work, tolerance, choice)


def _texts(source: str) -> list[str]:
    found = (normalise(query.text) for query in open_queries(source))
    return list(islice((text for text in found if text), _TEXTS))


def _pairs(texts: Sequence[str]) -> list[Pair]:
    """Queries with documents that are made of other queries."""
    other = cycle(reversed(texts))
    return [Pair(text, " ".join(islice(other, _TEXTS_OF_A_DOCUMENT))) for text in texts]


@summarises(Machine)
def _summary(found: Machine) -> Summary:
    columns = (
        Column("backend"),
        Column("precision"),
        *Column.numbers("", "processors", "tokens in a batch"),
        Column("texts in a row"),
        Column("per second", align="right", format=",.0f"),
        Column("largest error", align="right", format=".2g"),
        Column("taken"),
    )
    rows = [
        (
            each.way.backend,
            each.way.precision,
            "all" if each.way.threads is None else str(each.way.threads),
            "usual" if each.way.batch_tokens is None else str(each.way.batch_tokens),
            "several" if each.way.packed else "one",
            None if each.fault or not each.rate else each.rate,
            None if each.fault or not each.rate else each.error,
            "yes" if place == found.choice.taken else "",
        )
        for place, each in enumerate(found.choice.ways)
    ]
    sets = ", ".join(found.instructions) or "no sets of instructions that are known here"
    notes = [
        f"{found.processor}, {found.processors} processors ({sets}).",
        f"An error of up to {found.tolerance:g} is allowed: the largest difference from the first row.",
        *(f"{each.way.name}: {each.fault}." for each in found.choice.ways if each.fault),
    ]
    if not found.choice.measured:
        notes.append("Nothing was measured: the user's cache folder cannot be written (set TRUERANK_CACHE).")
    table = Table(f"{found.name}: {found.work}", columns, tuple(rows), notes=tuple(notes))
    return Summary((table,), found.json())
