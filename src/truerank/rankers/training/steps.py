"""Steps of the optimiser: losses, gradients, learning rates; on one processor, or on GPUs through accelerate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from truerank.errors import MissingExtraError, OptionError
from truerank.rankers.base import Pair
from truerank.rankers.training.instances import Instance
from truerank.rankers.training.recipes import Recipe


class Trainee(Protocol):
    """What `fit` trains."""

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
        self._accelerator = _accelerator(recipe, trainee.device)
        module.train()
        self.optimiser = _optimiser(torch, groups, recipe)
        self._model = _forward(torch, trainee)
        if self._accelerator is not None:
            self._model, self.optimiser = self._accelerator.prepare(self._model, self.optimiser)
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
        for part in _parts(batch, self._recipe.accumulate):
            loss += self._backward(part, len(part) / len(batch))
        if self._accelerator is not None:
            loss = float(self._accelerator.reduce(self._torch.tensor(loss, device=self._accelerator.device), "sum"))
        if not math.isfinite(loss):
            raise OptionError(
                "set_",
                f"the loss is {loss} at step {len(self.losses) + 1}",
                "lower learning_rate, or limit the gradient with clip",
            )
        norm = self._limited()
        self.optimiser.step()
        self.losses.append(loss)
        self.norms.append(norm)
        return loss, norm

    def state(self) -> dict[str, Any]:
        """All that a continued run needs."""
        return {
            "weights": self._trainee.module.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": self._torch.get_rng_state(),
            "losses": list(self.losses),
            "norms": list(self.norms),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave."""
        self._trainee.module.load_state_dict(state["weights"])
        self.optimiser.load_state_dict(state["optimiser"])
        self._torch.set_rng_state(state["random"])
        self.losses, self.norms = list(state["losses"]), list(state["norms"])

    @property
    def is_first(self) -> bool:
        """Whether this process writes checkpoints."""
        return self._accelerator is None or bool(self._accelerator.is_main_process)

    def _backward(self, part: Sequence[Instance], share: float) -> float:
        """Adds a part's gradient, weighted by its share of the batch; returns its share of the loss."""
        scale, mine = share, part
        if self._accelerator is not None and self._accelerator.num_processes > 1:
            world = self._accelerator.num_processes
            mine = part[self._accelerator.process_index :: world] or part[:0]
            # Processes average their gradients: each weighs as much as it holds.
            scale = share * len(mine) * world / len(part)
        # A process without an instance of its own still has to take part in the exchange: it weighs nothing.
        scored = mine or part[:1]
        pairs = [pair for one in scored for pair in (Pair(one.query, one.relevant), Pair(one.query, one.nonrelevant))]
        loss = self._loss(self._torch, self._model(pairs).float(), self._recipe) * scale
        if self._accelerator is None:
            loss.backward()
            return float(loss.detach())
        self._accelerator.backward(loss)
        processes: int = self._accelerator.num_processes
        return float(loss.detach()) / processes

    def _limited(self) -> float:
        if self._accelerator is not None and self._recipe.precision == "fp16":
            self._accelerator.unscale_gradients(self.optimiser)
        norm = self._torch.nn.utils.clip_grad_norm_(self.parameters, self._recipe.clip or math.inf)
        return float(norm)


def _accelerator(recipe: Recipe, device: str) -> Any:
    if device == "cpu":
        if recipe.precision != "no":
            raise OptionError("set_", f"precision {recipe.precision} on the CPU", "leave precision=no there")
        return None
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise MissingExtraError("training on a GPU", "neural") from error
    return Accelerator(mixed_precision=recipe.precision, device_placement=False)


def _forward(torch: Any, trainee: Trainee) -> Any:
    """The way from pairs to logits as one module, so that accelerate sees every call."""

    # A ranker may have a way of its own to compute a batch of training.
    compute = getattr(trainee, "training_logits", trainee.logits)

    class Forward(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = trainee.module

        def forward(self, pairs: Sequence[Pair]) -> Any:
            logits = compute(trainee.rows(pairs))
            return logits[:, 0] if logits.dim() == 2 and logits.shape[1] == 1 else logits

    return Forward()


def _groups(module: Any, recipe: Recipe) -> list[dict[str, Any]]:
    """The weights to train, and what share of the learning rate they get: two groups where the rates differ."""
    weights = [(name, weight) for name, weight in module.named_parameters() if weight.requires_grad]
    if not recipe.head_rate or not hasattr(module, "encoder"):
        return [{"params": [weight for _, weight in weights], "share": 1.0}]
    parts: dict[bool, list[Any]] = {True: [], False: []}
    for name, weight in weights:
        parts[name.startswith("encoder.")].append(weight)
    return [
        {"params": parts[True], "share": 1.0},
        {"params": parts[False], "share": recipe.head_rate / recipe.learning_rate},
    ]


def _optimiser(torch: Any, parameters: list[dict[str, Any]], recipe: Recipe) -> Any:
    settings = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
    if recipe.optimiser == "adam":
        return torch.optim.Adam(parameters, **settings)
    if recipe.optimiser == "adamw":
        return torch.optim.AdamW(parameters, **settings)
    try:
        from transformers.optimization import Adafactor
    except ImportError as error:
        raise MissingExtraError("the optimiser adafactor", "neural") from error
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


def _parts(batch: Sequence[Instance], count: int) -> list[Sequence[Instance]]:
    size = math.ceil(len(batch) / count)
    return [batch[start : start + size] for start in range(0, len(batch), size)]


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
    "hinge": _hinge,
    "pair-softmax": _pair_softmax,
    "classes": _classes,
}
