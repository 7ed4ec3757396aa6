"""Training: one epoch over instances, repeatable to the bit, that continues where it was killed."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from truerank.errors import InputError, MissingExtraError, OptionError
from truerank.rankers.training.instances import Instance
from truerank.rankers.training.recipes import Recipe
from truerank.rankers.training.saving import TrainingCheckpoint
from truerank.rankers.training.steps import Steps, Trainee
from truerank.reports.tables import Column, Table
from truerank.work.artifacts import digest
from truerank.work.progress import Progress, Quiet

__all__ = ["CHECKPOINT", "Fitted", "Fitting", "Trainee", "fit"]

#: The file, in the folder of the training, from which a killed run continues.
CHECKPOINT: Final = "checkpoint.pt"
#: A checkpoint is written after this many seconds at the earliest.
_EVERY_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Fitted:
    """What a training did.

    Attributes:
        recipe: as it was used, with the warm-up in steps.
        seed: of the order of the instances and of dropout.
        instances: how many were trained on.
        losses: of each step.
        gradient_norms: of each step, before they were limited.
        seconds: how long it took; of a run that was continued, the last part.
        device: where it ran.
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
        """Steps of the optimiser."""
        return len(self.losses)

    def json(self) -> dict[str, Any]:
        """All but the time, which differs from run to run."""
        return {
            "recipe": self.recipe.json(),
            "seed": self.seed,
            "instances": self.instances,
            "steps": self.steps,
            "device": self.device,
            "loss": {"first_tenth": self._mean(0), "last_tenth": self._mean(-1)},
        }

    def table(self) -> Table:
        """Mean loss and gradient norm of each tenth of the run."""
        parts = _tenths(self.losses)
        norms = _tenths(self.gradient_norms)
        rows, step = [], 0
        for losses, of_gradient in zip(parts, norms, strict=True):
            first, last = step + 1, step + len(losses)
            rows.append(
                (f"{first}–{last}" if first < last else f"{first}", float(np.mean(losses)), float(np.mean(of_gradient)))
            )
            step = last
        return Table(
            f"Training by the recipe {self.recipe.name}, seed {self.seed}: {self.instances:,} instances",
            (Column("steps"), *Column.numbers(".4f", "loss", "gradient norm")),
            tuple(rows),
            notes=(f"Loss: {self.recipe.loss}. {self.recipe.source}",),
        )

    def text(self) -> str:
        """The table in plain characters."""
        return self.table().text()

    def _mean(self, part: int) -> float | None:
        parts = _tenths(self.losses)
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
    continued or not. On GPUs it runs through accelerate: each process of `accelerate launch` takes its share of every
    batch.
    """
    torch = _torch()
    stream, total = _counted(instances)
    steps = math.ceil(total / recipe.batch)
    used = recipe.fitted_to(steps)
    told, device = progress or Quiet(), trainee.device
    started = time.monotonic()
    with _Repeatable(torch, seed, device):
        run = Steps(torch, trainee, used, steps)
        identity = digest([used.json(), seed, total, device, trainee.fingerprint])
        checkpoint = TrainingCheckpoint(torch, folder / CHECKPOINT, identity, checkpoint_seconds)
        order = _Hashed(_shuffled(stream, used.shuffle, seed))
        told.start("training", total)
        seen = _continue(run, checkpoint, order)
        told.advance(seen)
        while batch := list(islice(order, used.batch)):
            loss, norm = run.step(batch)
            told.advance(len(batch))
            told.status(f"training: loss {loss:.4f}, gradient {norm:.3f}")
            if checkpoint.due():
                checkpoint.write(run, order.count, order.hexdigest)
    checkpoint.remove()
    trainee.module.eval()
    return Fitted(used, seed, total, tuple(run.losses), tuple(run.norms), time.monotonic() - started, device)


class Fitting:
    """The method `fit` of the rankers that can be trained."""

    def fit(
        self: Trainee,
        instances: Iterable[Instance],
        recipe: Recipe,
        *,
        seed: int,
        folder: Path,
        progress: Progress | None = None,
    ) -> Fitted:
        """Trains all weights in place; arguments and errors as in `fit`."""
        return fit(self, instances, recipe, seed=seed, folder=folder, progress=progress)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("training", "neural") from error
    return torch


def _counted(instances: Iterable[Instance]) -> tuple[Iterable[Instance], int]:
    """The instances, and how many there are: the schedule of the learning rate has to know."""
    if iter(instances) is instances:
        instances = list(instances)
    total = len(instances) if isinstance(instances, Sized) else sum(1 for _ in instances)
    if not total:
        raise OptionError("instances", "no instances to train on", "give a source that holds some")
    return instances, total


class _Repeatable:
    """Seeds torch and asks for deterministic algorithms; leaves torch as it was."""

    def __init__(self, torch: Any, seed: int, device: str) -> None:
        self._torch, self._seed, self._device = torch, seed, device

    def __enter__(self) -> None:
        torch = self._torch
        self._was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        self._fork = torch.random.fork_rng(devices=None if self._device.startswith("cuda") else [])
        self._fork.__enter__()
        torch.manual_seed(self._seed)
        torch.use_deterministic_algorithms(True, warn_only=self._device != "cpu")

    def __exit__(self, *error: object) -> None:
        self._torch.use_deterministic_algorithms(self._was[0], warn_only=self._was[1])
        self._fork.__exit__(*error)


def _shuffled(instances: Iterable[Instance], buffer: int, seed: int) -> Iterator[Instance]:
    """The instances in a seeded order; a full shuffle where the buffer holds them all."""
    if not buffer:
        yield from instances
        return
    draw, held = Random(seed), []
    for instance in instances:
        held.append(instance)
        if len(held) > buffer:
            place = draw.randrange(len(held))
            held[place], held[-1] = held[-1], held[place]
            yield held.pop()
    draw.shuffle(held)
    yield from held


class _Hashed(Iterator[Instance]):
    """Hands instances on; knows how many there were, and the hash over all of them."""

    def __init__(self, instances: Iterator[Instance]) -> None:
        self._instances = instances
        self._hash = hashlib.sha256()
        self.count = 0

    def __next__(self) -> Instance:
        instance = next(self._instances)
        # As JSON, so that no two different instances give the same bytes.
        self._hash.update(json.dumps(instance).encode())
        self.count += 1
        return instance

    @property
    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def _continue(run: Steps, checkpoint: TrainingCheckpoint, order: _Hashed) -> int:
    """Takes up the checkpoint, if there is one; returns the instances that are done."""
    kept = checkpoint.read()
    if kept is None:
        return 0
    for _ in islice(order, kept.done):
        pass
    if order.hexdigest != kept.instances:
        raise InputError(
            "the instances are others than those it was written with",
            "remove it to begin again",
            where=checkpoint.path,
        )
    run.restore(kept.state)
    return kept.done


def _tenths(values: Sequence[float]) -> list[Sequence[float]]:
    """Up to ten parts of nearly equal size, none of them empty."""
    bounds = np.linspace(0, len(values), min(10, len(values)) + 1).round().astype(int)
    return [values[start:end] for start, end in pairwise(bounds.tolist())]
