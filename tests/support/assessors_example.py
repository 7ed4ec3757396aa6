"""A small collection for the audit of assessors: people's grades, models that err in stated ways, runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

Qrels = dict[str, dict[str, int]]
Runs = dict[str, dict[str, dict[str, float]]]


def people(topics: int = 12, documents: int = 30, seed: int = 3) -> Qrels:
    """Grades 0 to 3, low ones more often."""
    draw = np.random.default_rng(seed)
    return {
        f"t{topic}": {f"d{document}": int(draw.choice(4, p=[0.45, 0.28, 0.18, 0.09])) for document in range(documents)}
        for topic in range(topics)
    }


def erring(qrels: Qrels, share: float, seed: int = 5) -> Qrels:
    """A model that gives a share of the pairs the grade of another document of the topic."""
    draw = np.random.default_rng(seed)
    return {
        topic: {
            doc: int(draw.choice(list(of.values()))) if draw.random() < share else grade for doc, grade in of.items()
        }
        for topic, of in qrels.items()
    }


def higher(qrels: Qrels, documents: range) -> Qrels:
    """A model that grades these documents one higher."""
    chosen = {f"d{number}" for number in documents}
    return {topic: {doc: min(3, grade + (doc in chosen)) for doc, grade in of.items()} for topic, of in qrels.items()}


def runs(qrels: Qrels, systems: int = 12, seed: int = 7, liking: range = range(0)) -> Runs:
    """Runs of falling quality; every third one puts the documents of `liking` higher."""
    draw = np.random.default_rng(seed)
    liked = {f"d{number}" for number in liking}
    return {
        f"s{system:02d}": {
            topic: {
                doc: float(
                    (1.5 - system / systems) * grade + draw.normal() + (1.5 if system % 3 == 0 and doc in liked else 0)
                )
                for doc, grade in of.items()
            }
            for topic, of in qrels.items()
        }
        for system in range(systems)
    }


def write_qrels(qrels: Qrels, path: Path) -> Path:
    """TREC lines."""
    lines = [f"{topic} 0 {doc} {grade}\n" for topic, of in qrels.items() for doc, grade in of.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_run(run: dict[str, dict[str, float]], path: Path) -> Path:
    """TREC lines, in the order of the scores."""
    lines = []
    for topic, of in run.items():
        ordered = sorted(of.items(), key=lambda one: -one[1])
        lines += [f"{topic} Q0 {doc} {rank} {score:.6f} x\n" for rank, (doc, score) in enumerate(ordered, 1)]
    path.write_text("".join(lines), encoding="utf-8")
    return path
