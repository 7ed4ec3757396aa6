"""A small collection with two sources of training queries, test topics, an audit and labels, made from a seed."""

import random
from dataclasses import dataclass
from pathlib import Path

import leakage_example
from truerank import lexical
from truerank_lab.instances import Built, build

WORDS = [first + second for first in ("ba", "ce", "di", "fo", "gu", "ha", "ke", "li") for second in
         ("mar", "nel", "pod", "rit", "sun", "tav", "vex", "zol")]  # fmt: skip
TOPICS = 6
DOCUMENTS = 80


def build_set(kind: str, size, out: Path, options: dict, *, seed: int = 0) -> Built:
    """Builds a set of options by name."""
    return build(kind, tuple(size), out=out, seed=seed, **options)


@dataclass(frozen=True)
class World:
    """Where everything lies, and what is in it."""

    folder: Path
    documents: dict[str, str]
    queries: dict[str, dict[str, str]]
    relevant: dict[str, set[str]]
    topics: dict[str, str]
    judged: dict[str, dict[str, int]]
    candidates: list[tuple[str, str, str, str, float]]
    leaks: list[tuple[str, str]]

    def options(self, **changes) -> dict:
        """Both sources, the audit and the labels, an index."""
        base = {
            "queries": (str(self.folder / "alpha.tsv"), str(self.folder / "beta.tsv")),
            "train_qrels": (str(self.folder / "train.qrels"),),
            "docs": str(self.folder / "docs.tsv"),
            "index": str(self.folder / "index"),
            "audit": (str(self.folder / "audit"),),
            "labels": (str(self.folder / "labels.tsv"),),
            "k": 20,
        }
        return {**base, **changes}


def make(folder: Path, *, count: int = 400, seed: int = 7) -> World:
    """Writes the world; the sources hold `count` and `count // 2` queries, some texts in both."""
    draw = random.Random(seed)
    documents = {f"d{number}": " ".join(draw.choices(WORDS, k=40)) for number in range(DOCUMENTS)}
    queries, relevant = {"alpha": {}, "beta": {}}, {}
    for name, size in (("alpha", count), ("beta", count // 2)):
        for number in range(size):
            document = draw.choice(list(documents))
            query_id = f"{name[0]}{number}"
            queries[name][query_id] = " ".join(draw.sample(documents[document].split(), 4))
            relevant[query_id] = {document, *draw.sample(list(documents), draw.randrange(3))}
    for number in range(5):  # the same text in both
        queries["beta"][f"b{number}"] = queries["alpha"][f"a{number}"]
    relevant["a9"] = set()  # drawn, but nobody judged it
    topics = {str(number): " ".join(draw.sample(WORDS, 3)) for number in range(1, TOPICS + 1)}
    judged = {
        topic: {document: int(place < 3) for place, document in enumerate(draw.sample(list(documents), 8))}
        for topic in topics
    }
    candidates, leaks = [], []
    for number, (query_id, text) in enumerate(list(queries["alpha"].items())[20:50]):
        topic = str(1 + number % TOPICS if number < 18 else 1)
        candidates.append((topic, "alpha", query_id, text, round(0.99 - number * 0.002, 3)))
        if number % 3:
            leaks.append((topic, query_id))
    world = World(folder, documents, queries, relevant, topics, judged, candidates, leaks)
    write(world)
    return world


def write(world: World) -> None:
    """The files of the world."""
    folder = world.folder
    lines(folder / "docs.tsv", (f"{doc_id}\t{text}" for doc_id, text in world.documents.items()))
    for name, own in world.queries.items():
        lines(folder / f"{name}.tsv", (f"{query_id}\t{text}" for query_id, text in own.items()))
    lines(
        folder / "train.qrels", (f"{query} 0 {doc} 1" for query, docs in world.relevant.items() for doc in sorted(docs))
    )
    lines(folder / "topics.tsv", (f"{topic}\t{text}" for topic, text in world.topics.items()))
    graded = [(topic, doc, grade) for topic, own in world.judged.items() for doc, grade in own.items()]
    lines(folder / "test.qrels", (f"{topic} 0 {doc} {grade}" for topic, doc, grade in graded))
    lines(folder / "relevant.qrels", (f"{topic} 0 {doc} {grade}" for topic, doc, grade in graded if grade))
    rows = [("test", topic, "title", source, query, text, similarity)
            for topic, source, query, text, similarity in world.candidates]  # fmt: skip
    leakage_example.save(leakage_example.audit(rows), folder / "audit")
    texts = {query_id: text for own in world.queries.values() for query_id, text in own.items()}
    judged = [(topic, query, "leak" if (topic, query) in world.leaks else "no leak")
              for topic, _, query, _, _ in world.candidates]  # fmt: skip
    lines(
        folder / "labels.tsv",
        [
            "topic_id\tquery_id\tquery_text\tlabel",
            *(f"{topic}\t{query}\t{texts[query]}\t{label}" for topic, query, label in judged),
        ],
    )
    lexical.build_index(str(folder / "docs.tsv"), folder / "index")


def lines(path: Path, texts) -> None:
    """Writes one text a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts))
