"""A small generated collection with runs of four teams, for the tests of simulated judging."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

TOPICS = 6
DOCUMENTS = 400
RELEVANT = 14
TEAMS = {"north": (3.0, 2.5), "south": (2.0, 1.5), "east": (2.6, 1.0), "copy": (3.0, 2.5)}


class Files(NamedTuple):
    """Paths of what a simulation reads, and the ids of all documents."""

    runs: tuple[Path, ...]
    metadata: Path
    qrels: Path
    topics: Path
    docs: Path
    ids: tuple[str, ...]


def make(folder: Path, seed: int = 11) -> Files:
    """Writes the collection.

    Each topic has two words of its own, which its relevant documents hold more often than others do. A run scores
    documents by their relevance, as loud as its quality, and noise; the runs of team copy are those of team north.
    """
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    ids = tuple(f"d{number:03d}" for number in range(DOCUMENTS))
    words = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nprst"]
    texts = {doc_id: [draw.choice(words[40:]) for _ in range(20)] for doc_id in ids}
    relevant: dict[str, dict[str, int]] = {}
    for topic in range(1, TOPICS + 1):
        chosen = draw.sample(ids, RELEVANT + topic)
        relevant[str(topic)] = {doc_id: draw.choice((1, 1, 2)) for doc_id in chosen}
        for doc_id in chosen:
            texts[doc_id] += [words[4 * topic + draw.randrange(2)] for _ in range(draw.randrange(1, 4))]
        for doc_id in draw.sample(ids, 25):
            texts[doc_id].append(words[4 * topic])
    docs, topics, qrels, metadata = (folder / name for name in ("docs.tsv", "topics.tsv", "all.qrels", "runs.tsv"))
    docs.write_text("".join(f"{doc_id}\t{' '.join(text)}\n" for doc_id, text in texts.items()))
    topics.write_text("".join(f"{topic}\t{words[4 * int(topic)]} {words[4 * int(topic) + 1]}\n" for topic in relevant))
    lines = (f"{topic} 0 {doc_id} {grade}\n" for topic, grades in relevant.items() for doc_id, grade in grades.items())
    qrels.write_text("".join(lines))
    rows, paths = ["run\tteam"], []
    scored: dict[float, dict[str, list[tuple[float, str]]]] = {}
    for team, qualities in TEAMS.items():
        for number, quality in enumerate(qualities, start=1):
            key = quality
            if key not in scored:
                scored[key] = {
                    topic: sorted(
                        (quality * min(1, grades.get(doc_id, 0)) + draw.gauss(0, 1), doc_id) for doc_id in ids
                    )
                    for topic, grades in relevant.items()
                }
            path = folder / f"{team}{number}.run"
            with path.open("w") as out:
                for topic, pairs in scored[key].items():
                    for rank, (score, doc_id) in enumerate(reversed(pairs[-200:]), start=1):
                        out.write(f"{topic} Q0 {doc_id} {rank} {score:.5f} {path.stem}\n")
            paths.append(path)
            rows.append(f"{path.stem}\t{team}")
    metadata.write_text("\n".join(rows) + "\n")
    return Files(tuple(paths), metadata, qrels, topics, docs, ids)
