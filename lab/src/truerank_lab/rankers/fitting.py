"""Training: steps of an epoch over instances, repeatable to the bit, saved so that it continues where it was killed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

import numpy as np

from truerank.audits.survivorship.instances import Instance
from truerank.core.plain import picked
from truerank.errors import InputError, OptionError, needed_for
from truerank.rankers.base import Pair
from truerank.rankers.batches import length_batches
from truerank.work.artifacts import digest
from truerank.work.kept import forget, is_whole, kept_path
from truerank.work.progress import Progress, Quiet
from truerank_lab.rankers.recipes import Recipe

#: On the CPU, the part of a batch that may be padding: fewer rows at a time would cost more than that.
_WASTE: Final = 0.25
#: Cosines are multiplied by it, as in sentence-transformers: between -1 and 1, no loss could fall much.
_SCALE: Final = 20.0


class Trainee(Protocol):
    """A ranker that can be trained."""

    #: The torch module, in full precision.
    module: Any
    #: Where it runs: "cpu", "cuda:0" and the like.
    device: str

    @property
    def fingerprint(self) -> str:
        """Hash over weights, tokenizer and settings, as they are now."""

    def rows(self, pairs: Sequence[Pair]) -> Sequence[Any]:
        """What the network reads of each pair."""

    def logits(self, rows: Any) -> Any:
        """What the network says, with gradients: one score for each pair, shape (pairs,) or (pairs, 1), or two logits
        (not relevant, relevant), shape (pairs, 2)."""


class Steps:
    """The optimiser's side of a training: one call of `step` for one batch."""

    def __init__(self, torch: Any, trainee: Trainee, recipe: Recipe, steps: int) -> None:
        self._torch, self._trainee, self._recipe = torch, trainee, recipe
        module = trainee.module
        groups = _groups(module, recipe)
        self.parameters = [weight for group in groups for weight in group["params"]]
        self._on_gpu = trainee.device.startswith("cuda")
        module.train()
        self.optimiser = _optimiser(torch, groups, recipe, fused=self._on_gpu)
        self._logits = _computing(torch, trainee)
        self._rate = learning_rates(recipe, steps)
        self._loss = LOSSES[recipe.loss]
        self.losses: list[float] = []
        self.norms: list[float] = []

    def step(self, batch: Sequence[Instance]) -> tuple[float, float]:
        """Changes the weights; returns the loss of the batch and the norm of its gradient."""
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate(len(self.losses)) * group["share"]
        self.optimiser.zero_grad(set_to_none=True)
        loss = 0.0
        size = math.ceil(len(batch) / self._recipe.accumulate)
        for part in (batch[start : start + size] for start in range(0, len(batch), size)):
            loss += self._backward(part, len(part) / len(batch))
        if not math.isfinite(loss):
            fault = f"the loss is {loss} at step {len(self.losses) + 1}"
            raise OptionError("set_", fault, "lower learning_rate, or limit the gradient with clip")
        norm = float(self._torch.nn.utils.clip_grad_norm_(self.parameters, self._recipe.clip or math.inf))
        self.optimiser.step()
        self.losses.append(loss)
        self.norms.append(norm)
        return loss, norm

    def state(self) -> dict[str, Any]:
        return {
            "weights": self._trainee.module.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": self._torch.get_rng_state(),
            "random_of_gpu": self._torch.cuda.get_rng_state(self._trainee.device) if self._on_gpu else None,
            "losses": list(self.losses),
            "norms": list(self.norms),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._trainee.module.load_state_dict(state["weights"])
        self.optimiser.load_state_dict(state["optimiser"])
        self._torch.set_rng_state(state["random"])
        if self._on_gpu and (drawn := state.get("random_of_gpu")) is not None:
            self._torch.cuda.set_rng_state(drawn, self._trainee.device)
        self.losses, self.norms = list(state["losses"]), list(state["norms"])

    def _backward(self, part: Sequence[Instance], share: float) -> float:
        """Adds a part's gradient, weighted by its share of the batch; returns its share of the loss."""
        pairs = [pair for one in part for pair in (Pair(one.query, one.relevant), Pair(one.query, one.nonrelevant))]
        logits = self._logits(self._trainee.rows(pairs))
        if logits.dim() == 2 and logits.shape[1] == 1:
            logits = logits[:, 0]
        loss = self._loss(self._torch, logits.float(), self._recipe) * share
        loss.backward()
        return float(loss.detach())


def _computing(torch: Any, trainee: Trainee) -> Callable[[Any], Any]:
    """What a batch of training asks the network: rows of like length together on the CPU, cosines scaled."""
    from truerank.rankers.ance import Ance
    from truerank.rankers.pretrained.torch_ranker import CPU_TOKENS, CrossRanker

    def by_length(rows: Any) -> Any:
        lengths = np.fromiter((len(row.ids) for row in rows), np.int64, len(rows))
        batches = length_batches(lengths, tokens=CPU_TOKENS, waste=_WASTE)
        found = torch.cat([trainee.logits([rows[number] for number in batch]) for batch in batches])
        return found[torch.from_numpy(np.argsort(np.concatenate(batches), kind="stable"))]

    if isinstance(trainee, CrossRanker) and trainee.device == "cpu":
        return by_length
    if isinstance(trainee, Ance) and _is_cosine(trainee):
        return lambda rows: trainee.logits(rows) * _SCALE
    return trainee.logits


def _is_cosine(ranker: Any) -> bool:
    from sentence_transformers.sentence_transformer.modules import Normalize

    return ranker.settings["similarity"] == "cosine" or isinstance(ranker.module[-1], Normalize)


def _groups(module: Any, recipe: Recipe) -> list[dict[str, Any]]:
    """The weights to train, and what share of the learning rate they get: two groups where the rates differ."""
    weights = [(name, weight) for name, weight in module.named_parameters() if weight.requires_grad]
    if not recipe.head_rate or not hasattr(module, "encoder"):
        return [{"params": [weight for _, weight in weights], "share": 1.0}]
    parts: dict[bool, list[Any]] = {True: [], False: []}
    for name, weight in weights:
        parts[name.startswith("encoder.")].append(weight)
    rate = recipe.head_rate / recipe.learning_rate
    return [{"params": parts[True], "share": 1.0}, {"params": parts[False], "share": rate}]


def _optimiser(torch: Any, parameters: list[dict[str, Any]], recipe: Recipe, *, fused: bool) -> Any:
    settings = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
    if recipe.optimiser == "adam":
        return torch.optim.Adam(parameters, **settings, fused=fused)
    if recipe.optimiser == "adamw":
        return torch.optim.AdamW(parameters, **settings, fused=fused)
    with needed_for("the optimiser adafactor", "neural"):
        from transformers.optimization import Adafactor
    return Adafactor(parameters, scale_parameter=False, relative_step=False, warmup_init=False, **settings)


def learning_rates(recipe: Recipe, steps: int) -> Callable[[int], float]:
    """The learning rate of each step of a run, the first being 0."""

    def rate(step: int) -> float:
        if step < recipe.warmup_steps:
            return recipe.learning_rate * (step + 1) / recipe.warmup_steps
        if recipe.schedule == "constant":
            return recipe.learning_rate
        return recipe.learning_rate * (steps - step) / max(1, steps - recipe.warmup_steps)

    return rate


def _scores(torch: Any, logits: Any) -> Any:
    """One score for each pair: of two logits, the log-probability of the second."""
    return logits if logits.dim() == 1 else torch.log_softmax(logits, dim=-1)[:, 1]


def _hinge(torch: Any, logits: Any, recipe: Recipe) -> Any:
    scores = _scores(torch, logits)
    return torch.relu(recipe.margin - scores[0::2] + scores[1::2]).mean()


def _pair_softmax(torch: Any, logits: Any, recipe: Recipe) -> Any:
    scores = _scores(torch, logits)
    return torch.nn.functional.softplus(scores[1::2] - scores[0::2]).mean()


def _classes(torch: Any, logits: Any, recipe: Recipe) -> Any:
    relevant = (torch.arange(len(logits), device=logits.device) + 1) % 2
    if logits.dim() == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, relevant.float())
    return torch.nn.functional.cross_entropy(logits, relevant)


LOSSES: Final[Mapping[str, Callable[[Any, Any, Recipe], Any]]] = {
    "hinge": _hinge, "pair-softmax": _pair_softmax, "classes": _classes
}  # fmt: skip


class TrainingCheckpoint:
    """A file, written every so many seconds, whole or not at all; one of another training is not taken."""

    def __init__(self, torch: Any, path: Path, identity: str, seconds: float) -> None:
        self._torch, self._path, self._identity, self._seconds = torch, path, identity, seconds
        self._last = time.monotonic()

    def write(self, run: Steps) -> None:
        """Keeps the state where the last one is old enough."""
        if time.monotonic() - self._last < self._seconds:
            return
        # Into a file of Python's, which says where a disk was full.
        with kept_path(self._path) as temporary, temporary.open("wb") as stream:
            self._torch.save({"identity": self._identity, "state": run.state()}, stream)
        self._last = time.monotonic()

    def restore(self, run: Steps) -> None:
        """Takes up the checkpoint of this training, where there is a whole one."""
        if not is_whole(self._path):
            return
        try:
            found = self._torch.load(self._path, map_location="cpu", weights_only=True)
            if found["identity"] == self._identity:
                run.restore(found["state"])
        except Exception as error:  # torch raises whatever its reader meets
            fault = f"no checkpoint that can be read ({type(error).__name__})"
            raise InputError(fault, "remove it to begin again", where=self._path) from error


#: The file, in the folder of the training, from which a killed run continues.
CHECKPOINT: Final = "checkpoint.pt"
#: A checkpoint is written after this many seconds at the earliest.
_EVERY_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Fitted:
    """What a training did, with the recipe as it was used, the warm-up in steps.
     Losses and gradient norms (before they were limited) are of each step; the seconds of a run that was continued are
    those of its last part.
    """

    recipe: Recipe
    seed: int
    instances: int
    losses: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    seconds: float
    device: str

    @property
    def steps(self) -> int:
        return len(self.losses)

    def json(self) -> dict[str, Any]:
        """All but the time, which differs from run to run."""
        known = picked(self, "recipe, seed, instances, steps, device")
        return {**known, "loss": {"first_tenth": self._mean(0), "last_tenth": self._mean(-1)}}

    def _mean(self, part: int) -> float | None:
        """The mean loss of one of ten parts of nearly equal size, none of them empty."""
        bounds = np.linspace(0, self.steps, min(10, self.steps) + 1).round().astype(int)
        parts = [self.losses[start:end] for start, end in pairwise(bounds.tolist())]
        return round(float(np.mean(parts[part])), 6) if parts else None


def fit(
    trainee: Trainee,
    instances: Iterable[Instance],
    recipe: Recipe,
    *,
    seed: int,
    folder: Path,
    progress: Progress | None = None,
    checkpoint_seconds: float = _EVERY_SECONDS,
) -> Fitted:
    """Trains a ranker in place: one epoch.

    On the CPU the same instances, recipe and seed give the same weights to the bit, whether the run was killed and
    continued or not.
    """
    with needed_for("training", "neural"):
        import torch
    rows = list(instances)
    if not rows:
        raise OptionError("instances", "no instances to train on", "give a source that holds some")
    Random(seed).shuffle(rows)
    steps = math.ceil(len(rows) / recipe.batch)
    used = recipe.fitted_to(steps)
    progress, device, path = progress or Quiet(), trainee.device, folder / CHECKPOINT
    started = time.monotonic()
    with _repeatable(torch, seed, device):
        run = Steps(torch, trainee, used, steps)
        # As JSON, so that no two different instances give the same bytes.
        identity = digest([used.json(), seed, json.dumps(rows), device, trainee.fingerprint])
        checkpoint = TrainingCheckpoint(torch, path, identity, checkpoint_seconds)
        checkpoint.restore(run)
        done = len(run.losses) * used.batch
        progress.start("training", len(rows))
        progress.advance(min(done, len(rows)))
        for start in range(done, len(rows), used.batch):
            batch = rows[start : start + used.batch]
            loss, norm = run.step(batch)
            progress.advance(len(batch))
            progress.status(f"training: loss {loss:.4f}, gradient {norm:.3f}")
            checkpoint.write(run)
    forget(path)
    trainee.module.eval()
    return Fitted(used, seed, len(rows), tuple(run.losses), tuple(run.norms), time.monotonic() - started, device)


@contextmanager
def _repeatable(torch: Any, seed: int, device: str) -> Iterator[None]:
    """Seeds torch and asks for deterministic algorithms; leaves torch as it was."""
    deterministic = torch.utils.deterministic
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    # Tensors that are asked for empty would be filled first, though nothing reads them before it writes.
    filled, deterministic.fill_uninitialized_memory = deterministic.fill_uninitialized_memory, False
    try:
        with torch.random.fork_rng(devices=None if device.startswith("cuda") else []):
            torch.manual_seed(seed)
            torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
            yield
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])
        deterministic.fill_uninitialized_memory = filled
