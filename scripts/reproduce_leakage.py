"""The small reproduction of the leakage paper: Vaswani and CACM, with planted leaks; `make reproduce-leakage`.

    python scripts/reproduce_leakage.py [--out leakage-reproduction] [--design leakage-small] [--dry-run] [--workers 2]

Makes reworded test queries (scripts/rewording.py), audits the training queries, which are made from the documents,
against the topics, prints what the grid will cost, runs it, and writes the report. Ended anywhere and called again, it
goes on. The larger grid (`--design leakage-larger`) takes hours.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path

import truerank
from rewording import reworded
from truerank.errors import TruerankError
from truerank.options import Encoding
from truerank.sources import read_documents, read_qrels_frame, read_topics

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("TRUERANK_SHARED", ROOT.parent / "shared"))
COLLECTIONS = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}
ENDS = {"vaswani": "", "cacm": "CACM [A-Z][a-z]+,? +[0-9]{4}"}
WORDINGS = 2
SEED = 20221110
#: Pairs at or above this cosine count as candidates, and do not get into a row without a leak.
FLOOR = 0.85


def main() -> None:
    """Runs all of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("leakage-reproduction"))
    parser.add_argument("--design", default="leakage-small")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--max-hours", type=float, default=None)
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args()
    if not (SHARED / "data" / "collections").is_dir():
        sys.exit(f"no collections at {SHARED}: set TRUERANK_SHARED to the folder that holds data/")
    started = time.monotonic()
    try:
        reproduce(given)
    except TruerankError as error:
        sys.exit(str(error))
    print(f"{time.monotonic() - started:,.0f} seconds in all")


def reproduce(given: argparse.Namespace) -> None:
    """Leaks, grid, report."""
    out = given.out
    for name in COLLECTIONS:
        make_leaks(name, out / "leaks" / name)
    os.environ.update(TRUERANK_SHARED=str(SHARED.absolute()), LEAKS=str((out / "leaks").absolute()))
    file = out / f"{given.design}.yaml"
    file.unlink(missing_ok=True)
    truerank.experiment.designs(given.design, out=file)
    how = {"workers": given.workers, "max_hours": given.max_hours, "dry_run": given.dry_run}
    print(truerank.experiment.run(file, out=out / "grid", view="terminal", **how))
    if given.dry_run:
        return
    # The paper breaks ties by document id, ascending.
    print(truerank.experiment.report(out / "grid", ties="ascending", out=out / "report"))
    print(f"report: {out / 'report' / 'report.html'}")


def make_leaks(name: str, folder: Path) -> None:
    """Reworded topics with judgments and labels, and the audit of the queries made from the documents."""
    folder.mkdir(parents=True, exist_ok=True)
    source = SHARED / "data" / "collections" / name
    docs, topic_file = (str(source / part) for part in COLLECTIONS[name])
    there = {document.doc_id for document in read_documents(docs)}
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
    if not (folder / "audit" / "candidates.parquet").is_file():
        made = folder / "document-queries.tsv"
        truerank.instances.queries(docs, ends=ENDS[name], out=made)
        options = truerank.leakage.AuditOptions(fields=("title",), floor=FLOOR)
        encoding = Encoding(encoder="packaged")
        truerank.leakage.audit([str(made)], [topic_file], options=options, encoding=encoding, out=folder / "audit")


if __name__ == "__main__":
    main()
