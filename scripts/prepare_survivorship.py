"""Prepares the small survivorship experiment: a collection's own documents, annotated by what BM25 shows.

    python scripts/prepare_survivorship.py --docs collections/vaswani/docs.trec.gz --out work/survivorship

Each document's first words become a query and the rest the document that answers it. An annotator sees the ten best
documents by BM25 and selects the answer if it is there, so that queries whose answer stands lower are discarded. What
is left is filtered to depth 1, 5 and all; `survivorship-small.yaml` trains on it. Writes none/ (all instances),
docs.jsonl, index/, dev.tsv and dev.qrels (queries that are kept out of the training), log.jsonl, depths/ and triples/.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from truerank.audits import survivorship
from truerank.lab import instances
from truerank.lexical import build_index
from truerank.sources.instances import open_instances
from truerank.work.artifacts import atomic_path, write_text


def write_documents(instances: Path, out: Path) -> int:
    """Writes the documents that answer the queries, without the words that became queries; how many they are."""
    texts: dict[str, str] = {}
    for one in open_instances(str(instances)).as_read():
        texts.setdefault(one.relevant_id, one.relevant)
        texts.setdefault(one.nonrelevant_id, one.nonrelevant)
    with atomic_path(out) as temporary, temporary.open("w", encoding="utf-8") as target:
        for identifier, text in texts.items():
            target.write(json.dumps({"doc_id": identifier, "text": text}, ensure_ascii=False) + "\n")
    return len(texts)


def hold_out(instances: Path, out: Path, rows: int) -> int:
    """Makes test queries of the last rows; how many rows are left to train on."""
    every = list(open_instances(str(instances)).as_read())
    tested = every[len(every) - rows :]
    topics = "".join(f"{one.query_id}\t{one.query}\n" for one in tested)
    write_text(out / "dev.tsv", topics)
    write_text(out / "dev.qrels", "".join(f"{one.query_id} 0 {one.relevant_id} 1\n" for one in tested))
    return len(every) - rows


def main() -> None:
    """Runs the five steps and prints what each found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", required=True, help="the collection")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--size", type=int, default=12_000, help="instances, twice the queries; fewer if there are not so many"
    )
    parser.add_argument("--dev", type=int, default=300, help="queries that are kept out of the training")
    parser.add_argument("--shown", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    out: Path = options.out
    made = {"queries_from_documents": options.docs, "allow_fewer": True, "seed": options.seed}
    print(instances.build("none", (options.size,), out=out / "none", **made))
    print(f"{write_documents(out / 'none', out / 'docs.jsonl'):,} documents")
    build_index(str(out / "docs.jsonl"), out / "index")
    train = f"{out / 'none'}?size={2 * hold_out(out / 'none', out, options.dev)}"
    print(survivorship.simulate(instances=train, index=out / "index", shown=options.shown, out=out / "log.jsonl"))
    print(survivorship.depth(out / "log.jsonl", out=out / "depths"))
    print(survivorship.triples(train, out / "depths", out=out / "triples"))


if __name__ == "__main__":
    main()
