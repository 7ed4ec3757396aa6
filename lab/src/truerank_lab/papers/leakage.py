"""What the small reproduction of the leakage paper is trained on: reworded test queries, and an audit of all others.

`truerank_lab.papers.reproduce leakage` calls it. For Vaswani and CACM it writes `reworded.tsv` with judgments and
labels (`papers/rewording.py`), the queries that are made from the documents, and their leakage audit against the
topics; and two small models (`papers/small_models.py`).
"""

from __future__ import annotations

import random
from pathlib import Path

from truerank.audits import leakage as leakage_audit
from truerank.options import Encoding
from truerank.sources import open_documents, read_qrels_frame, read_topics
from truerank_lab.instances.document_queries import write_queries
from truerank_lab.papers.rewording import reworded
from truerank_lab.papers.small_models import save_first_layers, save_small_t5

COLLECTIONS = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}
#: What follows the journal's issue is bibliographic data.
ENDS = {"vaswani": "", "cacm": "CACM [A-Z][a-z]+,? +[0-9]{4}"}
WORDINGS = 2
SEED = 20221110
#: Pairs at or above this cosine count as candidates, and do not get into a row without a leak.
FLOOR = 0.85


def prepare(collections: Path, out: Path) -> None:
    """Leaks and audits of both collections, and small models."""
    save_small_models(collections, out)
    for name in COLLECTIONS:
        make_leaks(name, collections / name, out / name)
        audit_queries(name, collections / name, out / name)


def save_small_models(collections: Path, out: Path) -> None:
    """A T5 with the collections' word pieces, and the first layers of MiniLM."""
    save_small_t5(out / "t5", [str(collections / name / files[0]) for name, files in COLLECTIONS.items()])
    save_first_layers(out / "minilm", 3)


def make_leaks(name: str, source: Path, folder: Path) -> None:
    """Reworded topics with judgments and labels."""
    folder.mkdir(parents=True, exist_ok=True)
    docs, topic_file = (str(source / part) for part in COLLECTIONS[name])
    there = {document.doc_id for document in open_documents(docs)}
    relevant: dict[str, list[str]] = {}
    for topic, document, grade in read_qrels_frame(str(source / "qrels.txt")).iter_rows():
        if grade > 0 and document in there:
            relevant.setdefault(topic, []).append(document)
    queries, qrels, labels = [], [], ["topic_id\tquery_id\tquery_text\tlabel"]
    for topic in read_topics(topic_file).topics:
        documents = relevant.get(topic.topic_id, [])
        random.Random(f"{SEED} {topic.topic_id}").shuffle(documents)
        for number, (text, document) in enumerate(zip(reworded(topic.title, WORDINGS, SEED), documents, strict=False)):
            query = f"reworded-{topic.topic_id}-{number + 1}"
            queries.append(f"{query}\t{text}")
            qrels.append(f"{query} 0 {document} 1")
            labels.append(f"{topic.topic_id}\t{query}\t{text}\treformulation")
    for file, lines in (("reworded.tsv", queries), ("reworded.qrels", qrels), ("labels.tsv", labels)):
        (folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{name}: {len(queries)} reworded queries, made by this project")


def audit_queries(name: str, source: Path, folder: Path) -> None:
    """The queries made from the documents, and which of them come near a topic; kept where it is done."""
    if (folder / "audit" / "candidates.parquet").is_file():
        return
    docs, topic_file = (str(source / part) for part in COLLECTIONS[name])
    queries = folder / "document-queries.tsv"
    write_queries(docs, ENDS[name], queries)
    options = leakage_audit.AuditOptions(fields=("title",), floor=FLOOR)
    encoding = Encoding(encoder="packaged")
    leakage_audit.audit([str(queries)], [topic_file], options=options, encoding=encoding, out=folder / "audit")
