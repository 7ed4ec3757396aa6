"""What this machine is good at: the ways of running a model, how fast each is, and which one is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.core.plain import plain
from truerank.core.result import Result, Summary, summarises
from truerank.core.tables import Table
from truerank.core.views import heads
from truerank.errors import OptionError
from truerank.options import Encoding, Flag, Range, Runtime, command
from truerank.rankers.base import Pair, Ranker, RankerSpec, Scores, spec_of
from truerank.sources import open_queries
from truerank.sources.sample import SAMPLE
from truerank.text.normalising import normalise
from truerank.vectors.encoders import Backend, open_encoder
from truerank.vectors.encoders.speed import (
    CLOCK,
    FIRST_PASS_ERROR,
    ChosenWay,
    Clock,
    MeasuredWay,
    Trial,
    Way,
    choose_first_pass,
    compare_ways,
    instruction_sets,
    kept_choice,
    length_class,
    machine_key,
    processor_name,
)
from truerank.work.engines import processors

__all__ = ["Machine", "machine"]

#: So many pairs at most.
Sample = Callable[[int], Sequence[Pair]]

#: Pairs from which eight bits learn their ranges.
CALIBRATION_PAIRS: Final = 256
_COMPARED: Final = 200


def calibrated(spec: RankerSpec, sample: Sample) -> RankerSpec:
    """The same ranker; if it is to run in eight bits and was given no pairs to learn their ranges from, with pairs."""
    if spec.runtime.precision != "int8" or spec.runtime.calibration:
        return spec
    return replace(spec, runtime=replace(spec.runtime, calibration=tuple(sample(CALIBRATION_PAIRS))))


def agreement(spec: RankerSpec, ranker: Ranker, sample: Sample) -> dict[str, float]:
    """How the scores of a ranker in low precision agree with those of the same model in full precision."""
    if spec.runtime.precision == "fp32":
        return {}
    from scipy.stats import kendalltau

    pairs = list(sample(_COMPARED))
    full = replace(spec, runtime=replace(spec.runtime, precision="fp32", calibration=())).open().score(pairs)
    low = ranker.score(pairs)
    differences = np.abs(full.astype(np.float64) - low)
    tau = float(kendalltau(full, low).statistic)
    return {
        "pairs": float(len(pairs)),
        "largest difference": round(float(differences.max()), 6),
        "mean difference": round(float(differences.mean()), 6),
        # Of scores that are all equal, there is no order to agree on.
        "tau": round(tau, 6) if np.isfinite(tau) else 0.0,
    }


#: Pairs that are measured: their scores are compared, too.
_PAIRS: Final = 64
#: With a smaller tolerance eight bits are not tried: their ranges take a minute to learn, and no model has come near.
_EIGHT_BITS: Final = 1e-3


def ranker_ways(spec: RankerSpec, device: str) -> tuple[RankerSpec, ...]:
    """How a ranker may be run here, in full precision first."""
    ways = [("fp32", spec.runtime.backend)]
    if device != "cpu":
        ways += [("fp16", "torch"), ("bf16", "torch")]
    elif spec.runtime.backend != "torch":
        ways += [("fp32", "torch"), ("bf16x3", "openvino"), ("bf16", "openvino")]
        if spec.runtime.tolerance >= _EIGHT_BITS:
            ways.append(("int8", "openvino"))
    made = (replace(spec.runtime, precision=precision, backend=backend) for precision, backend in ways)  # type: ignore[arg-type]
    return tuple(replace(spec, runtime=runtime) for runtime in made)


def settled(spec: RankerSpec, sample: Sample, told: Callable[[ChosenWay], None] = lambda choice: None) -> RankerSpec:
    """How a ranker is opened: precision "auto" becomes the way that was chosen, and int8 gets pairs to learn from."""
    if spec.runtime.precision == "auto":
        choice = choose_runtime(spec, sample)
        told(choice)
        way: Any = choice.way
        backend = spec.runtime.backend if way.backend == "auto" else way.backend
        spec = replace(spec, runtime=replace(spec.runtime, precision=way.precision, backend=backend))
    return calibrated(spec, sample)


def choose_runtime(spec: RankerSpec, sample: Sample, *, clock: Clock = CLOCK, anew: bool = False) -> ChosenWay:
    """The fastest way of running a ranker whose scores differ by no more than the tolerance."""
    exact = spec.open()
    pairs = list(sample(_PAIRS))
    device = str(getattr(exact, "device", "cpu"))
    ways = ranker_ways(spec, device)
    texts = [pair.document for pair in pairs]
    key = machine_key(exact.fingerprint, device, spec.runtime.tolerance, spec.runtime.threads, length_class(texts))

    def measure() -> Sequence[MeasuredWay]:
        opening = [(_way(each), partial(_trial, each, exact if not place else None, pairs, sample))
                   for place, each in enumerate(ways)]  # fmt: skip
        return compare_ways(opening, _largest, len(pairs), clock, on_gpu=device != "cpu")

    return kept_choice(key, measure, _way(ways[0]), spec.runtime.tolerance, anew=anew)


def _way(spec: RankerSpec) -> Way:
    return Way(spec.runtime.backend, spec.runtime.precision, spec.runtime.threads)


def _trial(spec: RankerSpec, opened: Ranker | None, pairs: Sequence[Pair], sample: Sample) -> Trial:
    ranker = opened or calibrated(spec, lambda _: sample(CALIBRATION_PAIRS)).open()

    def score() -> Scores:
        return ranker.score(pairs)

    return score


def _largest(exact: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    return round(float(np.abs(exact.astype(np.float64) - other).max(initial=0.0)), 6)


#: Texts that the sample is taken from.
_TEXTS: Final = 512
#: Texts in a pair's document: passages are longer than queries.
_TEXTS_OF_A_DOCUMENT: Final = 12


@dataclass(frozen=True, eq=False, repr=False)
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
        """All of it, as plain values."""
        known = {("model" if name == "name" else name): value for name, value in plain(self, "choice").items()}
        return {**known, "measured": self.choice.measured, **self.choice.json()}


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
    """Measures how fast this machine runs a model in each way, and shows which way is used.

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
        anew: measure again.

    Returns:
        The ways and the choice.

    Raises:
        InputError: the model cannot be opened.

    Examples:

        truerank machine --encoder packaged

        truerank machine --train queries.tsv --json

        truerank machine --model monobert:models/ce --tolerance 0.01
    """
    found = (normalise(query.text) for query in open_queries(train or str(SAMPLE.train[0])))
    texts = list(islice((text for text in found if text), _TEXTS))
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
    # Queries with documents that are made of other queries.
    other = cycle(reversed(texts))
    pairs = [Pair(text, " ".join(islice(other, _TEXTS_OF_A_DOCUMENT))) for text in texts]
    choice = choose_runtime(spec_of(model, runtime, {}), lambda size: pairs[:size], anew=anew)
    return _made(model, "reranking", runtime.tolerance, choice)


def _made(name: str, work: str, tolerance: float, choice: ChosenWay) -> Machine:
    return Machine(processor_name(), processors(), instruction_sets(), name, work, tolerance, choice)


@summarises(Machine)
def _summary(found: Machine) -> Summary:
    columns = heads(
        "backend, precision, processors:, tokens_in_a_batch:, texts_in_a_row, per_second:,.0f, largest_error:.2g, taken"
    )
    rows = []
    for place, each in enumerate(found.choice.ways):
        way = each.way
        threads, tokens = str(way.threads or "all"), str(way.batch_tokens or "usual")
        measured = (None, None) if each.fault or not each.rate else (each.rate, each.error)
        taken = "yes" if place == found.choice.taken else ""
        rows.append((way.backend, way.precision, threads, tokens, "several" if way.packed else "one", *measured, taken))
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
