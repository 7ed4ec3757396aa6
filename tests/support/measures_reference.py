"""What the tests of the measures share: files written from dictionaries, and what pytrec_eval calls the measures."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytrec_eval

#: The measures that trec_eval computes too, by their names here.
TREC_NAMES = {
    "nDCG": "ndcg",
    "nDCG@5": "ndcg_cut_5",
    "nDCG@10": "ndcg_cut_10",
    "P@1": "P_1",
    "P@10": "P_10",
    "R@5": "recall_5",
    "R@100": "recall_100",
    "AP": "map",
    "AP@5": "map_cut_5",
    "RR": "recip_rank",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "IPrec@0.1": "iprec_at_recall_0.10",
    "IPrec@1.0": "iprec_at_recall_1.00",
    "Success@5": "success_5",
    "SetP": "set_P",
    "SetP(relative=True)": "set_relative_P",
    "SetR": "set_recall",
    "SetF": "set_F",
    "SetAP": "set_map",
    "NumRet": "num_ret",
    "NumRelRet": "num_rel_ret",
}

Judged = Mapping[str, Mapping[str, int]]
Scored = Mapping[str, Mapping[str, float]]


def trec_eval(qrels: Judged, run: Scored, *, rel: int = 1) -> dict[str, dict[str, float]]:
    """The values of trec_eval by topic and by the measures' names here; with negative grades pytrec_eval may hang."""
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(TREC_NAMES.values()), relevance_level=rel)
    found = evaluator.evaluate(run)
    return {topic: {name: found[topic][trec] for name, trec in TREC_NAMES.items()} for topic in found}


def read(path: Path, value: int) -> dict[str, dict[str, float]]:
    """Topic, document (third column) and a number of a gzipped file of lines, read in the plainest way."""
    found: dict[str, dict[str, float]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            cells = line.split()
            found.setdefault(cells[0], {})[cells[2]] = float(cells[value])
    return found


def write_run(path: Path, run: Scored, *, tag: str = "test") -> Path:
    """A run file whose rank column follows the order of the dictionary."""
    lines = [
        f"{topic} Q0 {document} {rank} {score!r} {tag}"
        for topic, documents in run.items()
        for rank, (document, score) in enumerate(documents.items(), start=1)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_qrels(path: Path, qrels: Judged) -> Path:
    """A qrels file."""
    lines = [f"{topic} 0 {document} {grade}" for topic, found in qrels.items() for document, grade in found.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
