"""What rankers do for GPUs, as far as a CPU shows it."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.rankers.pretrained.checkpoints import collected, on_device
from truerank_lab.rankers import fitting
from truerank_lab.rankers.recipes import recipe_named

torch = pytest.importorskip("torch")


def test_batches_of_scores_come_back_as_they_are():
    draw = np.random.default_rng(0)
    parts = [draw.standard_normal(size).astype(np.float32) for size in (3, 1, 7)]
    found = collected([torch.from_numpy(part) for part in parts])
    assert all(np.array_equal(one, other) for one, other in zip(found, parts, strict=True))
    assert collected([]) == []


@pytest.mark.parametrize(("device", "pinned"), [("cpu", False), ("cuda:0", True)])
def test_copies_to_a_gpu_start_from_pinned_memory(monkeypatch, device, pinned):
    calls = []

    def pin(tensor):
        calls.append("pinned")
        return tensor

    def move(tensor, place, **options):
        calls.append((place, options.get("non_blocking", False)))
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", move)
    values = np.arange(4)
    assert np.array_equal(on_device(values, device).numpy(), values)
    assert calls == [*(["pinned"] if pinned else []), (device, pinned)]


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_fused_optimisers_change_weights_alike(name):
    recipe = recipe_named("truerank").changed({"optimiser": name, "lr": 0.01})
    weights = []
    for fused in (False, True):
        weight = torch.nn.Parameter(torch.linspace(-1, 1, 8))
        optimiser = fitting._optimiser(torch, [{"params": [weight]}], recipe, fused=fused)
        for _ in range(5):
            optimiser.zero_grad()
            (weight**2).sum().backward()
            optimiser.step()
        weights.append(weight.detach())
    assert torch.allclose(*weights, atol=1e-6)
    assert not torch.allclose(weights[0], torch.linspace(-1, 1, 8), atol=1e-3)
