"""Small generated data that the attacked commands read."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

__all__ = ["PLANTED", "write_inputs"]

#: Stands in every text that a redacted audit must not write.
PLANTED: Final = "zyxplanted"


def write_inputs(folder: Path) -> None:
    """Writes what the commands read; the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(5)
    _texts(folder, draw)
    _versions(folder, draw)
    _experiment(folder, draw)


def _words(draw: random.Random, count: int) -> str:
    return " ".join(f"word{draw.randrange(400)}" for _ in range(count))


def _texts(folder: Path, draw: random.Random) -> None:
    """Queries, of which some are those of topics; a collection with topics, judgments and runs."""
    topics = {str(301 + number): f"{PLANTED} {_words(draw, 4)}" for number in range(12)}
    (folder / "topics.trec").write_text(
        "".join(
            f"<top>\n<num> Number: {key}\n<title> {text}\n<desc> Description:\nAbout {text} and {PLANTED}.\n</top>\n"
            for key, text in topics.items()
        )
    )
    queries = [f"{PLANTED} {_words(draw, 5)}" for _ in range(2500)] + list(topics.values())[:6]
    draw.shuffle(queries)
    (folder / "train.tsv").write_text("".join(f"q{number}\t{text}\n" for number, text in enumerate(queries)))
    (folder / "key").write_text("0123456789abcdef0123456789abcdef\n")
    ids = [f"d{number:04d}" for number in range(600)]
    texts = {doc_id: _words(draw, 40) for doc_id in ids}
    _jsonl(folder / "docs.jsonl", [{"_id": key, "title": "t", "text": text} for key, text in texts.items()])
    _jsonl(folder / "untitled.jsonl", [{"_id": key, "text": text} for key, text in texts.items()])
    doubled = {f"{key}x": text for key, text in texts.items() if int(key[1:]) % 3 == 0}
    again = {
        f"{key}y": f"{text} {_words(random.Random(key), 3)}" for key, text in texts.items() if int(key[1:]) % 4 == 0
    }
    repeated = {**texts, **doubled, **again}
    _jsonl(folder / "repeated.jsonl", [{"_id": key, "title": "t", "text": text} for key, text in repeated.items()])
    wanted = {str(number): _words(draw, 3) for number in range(1, 6)}
    (folder / "topics.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in wanted.items()))
    judged: dict[str, list[str]] = {key: draw.sample(ids, 40) for key in wanted}
    (folder / "qrels").write_text(
        "".join(
            f"{key} 0 {doc_id} {int(place < 12)}\n" for key, some in judged.items() for place, doc_id in enumerate(some)
        )
    )
    pairs = [(text, texts[judged[key][number]]) for key, text in wanted.items() for number in range(3)]
    pairs += [(_words(random.Random(number), 5), _words(random.Random(-number), 40)) for number in range(60)]
    _jsonl(folder / "examples.jsonl", [{"query": query, "positive": text} for query, text in pairs])
    (folder / "suite.yaml").write_text(
        "training:\n  log: {queries: train.tsv}\n  pairs: {examples: examples.jsonl}\n"
        "test:\n  planted: {topics: topics.trec}\n  judged: {topics: topics.tsv, documents: docs.jsonl, qrels: qrels}\n"
    )
    for name in ("first", "a1", "b1", "c1"):
        rows = []
        for key, some in judged.items():
            ranked = sorted(
                dict.fromkeys([*some, *draw.sample(ids, 40)]),
                key=lambda doc_id: (draw.random() - (doc_id in some[:12]) * 0.4, doc_id),
            )
            rows += [
                f"{key} Q0 {doc_id} {rank} {100 - rank} {name}\n" for rank, doc_id in enumerate(ranked[:60], start=1)
            ]
        (folder / f"{name}.run").write_text("".join(rows))


def _versions(folder: Path, draw: random.Random) -> None:
    for version in ("old", "new"):
        rows = []
        for number in range(40):
            same = random.Random(number)
            body = (
                "404 Not Found"
                if version == "new" and number % 9 == 3
                else _words(same, 80) + f" topic{number} topic{number}"
            )
            rows.append({"doc_id": f"{version}{number}", "url": f"http://a.org/{number}", "title": "p", "body": body})
        _jsonl(folder / f"{version}.jsonl", rows)
    (folder / "old.topics").write_text("".join(f"{number}\ttopic{number}\n" for number in range(40)))
    (folder / "old.qrels").write_text("".join(f"{n} 0 old{n} 1\n{n} 0 old{(n + 7) % 40} 0\n" for n in range(40)))


def _experiment(folder: Path, draw: random.Random) -> None:
    folder = folder / "grid"
    folder.mkdir(exist_ok=True)
    words = [f"w{number:02d}" for number in range(30)]
    documents = {f"d{number:02d}": draw.choices(words, k=12) for number in range(40)}
    _jsonl(folder / "docs.jsonl", [{"doc_id": key, "text": " ".join(text)} for key, text in documents.items()])
    topics = {f"t{number}": draw.sample(words, 3) for number in range(6)}
    (folder / "topics.tsv").write_text("".join(f"{key}\t{' '.join(some)}\n" for key, some in topics.items()))
    rows = []
    for key, some in topics.items():
        ranked = sorted(documents, key=lambda doc_id: (-sum(documents[doc_id].count(word) for word in some), doc_id))
        rows += [f"{key} 0 {doc_id} 1\n" for doc_id in ranked[:3]] + [f"{key} 0 {doc_id} 0\n" for doc_id in ranked[-3:]]
    (folder / "qrels.txt").write_text("".join(rows))
    vectors = (f"{word} {' '.join(f'{draw.gauss(0, 1):.3f}' for _ in range(6))}\n" for word in words)
    (folder / "vectors.txt").write_text("".join(vectors))
    instances = []
    for number in range(40):
        some = draw.sample(words, 3)
        texts = {
            "relevant": " ".join([*some, *draw.choices(words, k=8)]),
            "nonrelevant": " ".join(draw.choices(words, k=11)),
        }
        instances.append(
            {
                "query_id": f"q{number}",
                "query": " ".join(some),
                "relevant_id": f"r{number}",
                "nonrelevant_id": f"n{number}",
                **texts,
                "role": "none",
                "topic_id": None,
            }
        )
    _jsonl(folder / "none.jsonl", instances)
    (folder.parent / "design.yaml").write_text(f"""name: tiny
collections:
  notes: {{docs: {folder}/docs.jsonl, topics: {folder}/topics.tsv, qrels: {folder}/qrels.txt, depth: 8, folds: 2}}
sets:
  none: {{kind: none, for: notes, sizes: [24], instances: {folder}/none.jsonl}}
models:
  knrm: {{model: knrm, vectors: {folder}/vectors.txt, changes: {{max_query: 5, max_document: 20, batch: 4}}}}
seeds: [0]
measures: [nDCG@10]
""")


def _jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
