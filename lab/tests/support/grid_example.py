"""A small experiment for the tests of the grid: a collection of made-up words, two training sets, one small model."""

from __future__ import annotations

import json
import random
from pathlib import Path

WORDS = tuple(f"w{number:02d}" for number in range(30))
TOPICS = 6

DESIGN = """
name: tiny
collections:
  notes:
    docs: ${HERE}/docs.jsonl
    topics: ${HERE}/topics.tsv
    qrels: ${HERE}/qrels.txt
    depth: 8
    folds: 2
sets:
  none: {kind: none, collections: notes, sizes: [24, 60], instances: '${HERE}/none.jsonl'}
  test: {kind: test, collections: notes, sizes: [24, 60], instances: '${HERE}/test.jsonl'}
models:
  knrm: {model: knrm, vectors: '${HERE}/vectors.txt', changes: {max_query: 5, max_document: 20, batch: 4}}
seeds: [0, 1]
measures: [nDCG@10, P@1]
"""


def write_example(folder: Path, design: str = DESIGN) -> Path:
    """Writes the files and the design; returns the design's path."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(7)
    documents = {f"d{number:02d}": draw.choices(WORDS, k=12) for number in range(40)}
    _jsonl(folder / "docs.jsonl", [{"doc_id": key, "text": " ".join(text)} for key, text in documents.items()])
    topics = {f"t{number}": draw.sample(WORDS, 3) for number in range(TOPICS)}
    (folder / "topics.tsv").write_text("".join(f"{key}\t{' '.join(words)}\n" for key, words in topics.items()))
    qrels = []
    for topic, words in topics.items():
        ranked = sorted(documents, key=lambda doc: (-sum(documents[doc].count(word) for word in words), doc))
        qrels += [(topic, doc, 1) for doc in ranked[:3]] + [(topic, doc, 0) for doc in ranked[-3:]]
    (folder / "qrels.txt").write_text("".join(f"{topic} 0 {doc} {grade}\n" for topic, doc, grade in qrels))
    vectors = ((word, [f"{draw.gauss(0, 1):.3f}" for _ in range(6)]) for word in WORDS)
    (folder / "vectors.txt").write_text("".join(f"{word} {' '.join(values)}\n" for word, values in vectors))
    _jsonl(folder / "none.jsonl", [row(draw) for _ in range(30)])
    leaks = []
    for topic, words in topics.items():
        judged = {grade: [doc for one, doc, g in qrels if one == topic and g == grade] for grade in (0, 1)}
        good, bad = judged[1][0], judged[0][0]
        texts = {"relevant": " ".join(documents[good]), "nonrelevant": " ".join(documents[bad])}
        ids = {"query_id": topic, "relevant_id": good, "nonrelevant_id": bad}
        leaks.append({**ids, "query": " ".join(words), **texts, "role": "test", "topic_id": topic})
    _jsonl(folder / "test.jsonl", [*leaks, *(row(random.Random(9)) for _ in range(24))])
    path = folder / "design.yaml"
    path.write_text(design)
    return path


def row(draw: random.Random) -> dict[str, str | None]:
    """A row without a leak: the query's words are in the relevant document."""
    query = draw.sample(WORDS, 3)
    return {
        "query_id": f"q{draw.randrange(10**6)}",
        "query": " ".join(query),
        "relevant_id": f"r{draw.randrange(10**6)}",
        "relevant": " ".join([*query, *draw.choices(WORDS, k=8)]),
        "nonrelevant_id": f"n{draw.randrange(10**6)}",
        "nonrelevant": " ".join(draw.choices(WORDS, k=11)),
        "role": "none",
        "topic_id": None,
    }


def _jsonl(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
