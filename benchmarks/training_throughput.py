"""Training throughput of a MiniLM cross-encoder against the trainer of sentence-transformers, in one run.

    python benchmarks/training_throughput.py [--instances 256] [--batch 16] [--repeats 3]
        [--device cuda [--precision bf16] [--json FILE]]

Both train the packaged MiniLM with one output and the binary cross-entropy, AdamW, on the same pairs in batches of the
same size (a relevant and a non-relevant document of BM25's 100 best for topics of Vaswani), in rounds, on the CPU or
another device; the median is printed. Opening the models is not counted. The trainer needs `pip install datasets`,
which truerank does not.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import shared_data  # noqa: F401 - the modules of studies/ can be imported after it
from shared_data import require_shared, table
from training import instances, read
from truerank.rankers.base import open_ranker
from truerank.rankers.monobert import MonoBert
from truerank_lab.rankers.recipes import RECIPES
from truerank.sources.instances import Instance


class How(NamedTuple):
    """Pairs in a step, where, and in which precision (no: fp32)."""

    batch: int
    device: str
    precision: str


def ours(start: Path, given: list[Instance], how: How, folder: Path) -> tuple[float, float]:
    """Seconds, and the loss of the last tenth."""
    ranker = open_ranker(str(start), device=how.device, backend="torch")
    assert isinstance(ranker, MonoBert)
    recipe = RECIPES["monobert"].changed(
        {"lr": 5e-5, "batch": how.batch // 2, "accumulate": 1, "shuffle": 0, "precision": how.precision}
    )
    fitted = ranker.fit(given, recipe, seed=0, folder=folder)
    return fitted.seconds, fitted.json()["loss"]["last_tenth"]


def peer(start: Path, given: list[Instance], how: How, folder: Path) -> tuple[float, float]:
    """The same of sentence-transformers."""
    import torch
    from datasets import Dataset
    from sentence_transformers import CrossEncoder
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    model = CrossEncoder(str(start), device=how.device, activation_fn=torch.nn.Identity())
    rows: dict[str, list[Any]] = {"query": [], "document": [], "label": []}
    for one in given:
        for text, label in ((one.relevant, 1.0), (one.nonrelevant, 0.0)):
            rows["query"].append(one.query)
            rows["document"].append(text)
            rows["label"].append(label)
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(folder / "peer"), num_train_epochs=1, per_device_train_batch_size=how.batch, learning_rate=5e-5,
        warmup_steps=0.1, weight_decay=0.01, max_grad_norm=1.0, use_cpu=how.device == "cpu", save_strategy="no",
        report_to="none", disable_tqdm=True, logging_steps=max(1, 2 * len(given) // how.batch // 10), seed=0,
        bf16=how.precision == "bf16", fp16=how.precision == "fp16",
    )  # fmt: skip
    trainer = CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_dict(rows), loss=BinaryCrossEntropyLoss(model)
    )
    begun = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - begun
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return seconds, losses[-1]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=256)
    parser.add_argument("--batch", type=int, default=16, help="pairs in a step")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="no", choices=("no", "fp16", "bf16"))
    parser.add_argument("--json", type=Path, help="write the rates of all rounds, too")
    given = parser.parse_args()
    require_shared()
    logging.disable(logging.WARNING)
    how = How(given.batch, given.device, given.precision)
    ways = {"CrossEncoderTrainer": peer, "truerank": ours}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    losses: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = read("vaswani", folder)
        rows = instances(data, list(data.topics), given.instances, 0, permuted=False)
        open_ranker("monobert:packaged", backend="torch", device="cpu", labels=1).save(folder / "start")
        for way in ways.values():
            way(folder / "start", rows[:32], how, folder)
        for _ in range(given.repeats):
            for name, way in ways.items():
                seconds, loss = way(folder / "start", rows, how, folder)
                rates[name].append(2 * len(rows) / given.batch / seconds)
                losses[name] = f"{loss:.3f}"
                print(f"{name}: {rates[name][-1]:.2f} steps/s", file=sys.stderr, flush=True)
    first = statistics.median(rates["CrossEncoderTrainer"])
    conditions = f"{given.batch} in a step, {given.device}, precision {given.precision}, median of {given.repeats}"
    print(f"{2 * given.instances} pairs, {conditions}\n")
    found = []
    for name, values in rates.items():
        median = statistics.median(values)
        found.append((name, f"{median:.2f}", f"{given.batch * median:.1f}", f"{median / first:.2f}", losses[name]))
    print(table(("way", "steps/s", "pairs/s", "ratio", "loss of the last tenth"), found))
    if given.json:
        given.json.write_text(json.dumps({"rates": rates, "losses": losses}, indent=1))


if __name__ == "__main__":
    main()
