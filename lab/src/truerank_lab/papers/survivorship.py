"""Prepares the small survivorship experiment: a collection's own documents, annotated by what BM25 shows.

`truerank_lab.papers.reproduce survivorship` calls it. The first words of each of Vaswani's documents become a query and
the rest the document that answers it. An annotator sees the ten best documents by BM25 and selects the answer if it is
there; other queries are discarded. What is left is filtered to depth 1, 5 and all; `survivorship-small.yaml` trains on
it. Writes none/ (all instances), docs.jsonl, index/, dev.tsv and dev.qrels (queries that are kept out of the training),
log.jsonl, depths/ and triples/.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl

from truerank.audits import survivorship
from truerank.lexical import build_index, write_run
from truerank.rankers.reranking.rerank import RerankOptions, rerank
from truerank.work.artifacts import atomic_path, write_text
from truerank_lab import instances, simulate
from truerank_lab.grid.results import GridResults
from truerank_lab.instances.filled import open_instances


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


def prepare(collections: Path, out: Path, *, size: int = 12_000, dev: int = 500) -> None:
    """Queries, documents, log, depths, triples of Vaswani; what is there already is kept."""
    if (out / "triples" / "triples.parquet").is_file():
        return
    docs = str(collections / "vaswani" / "docs.trec.gz")
    options = instances.BuildOptions(queries_from_documents=docs, allow_fewer=True)
    print(instances.build("none", (size,), options=options, out=out / "none"))
    print(f"{write_documents(out / 'none', out / 'docs.jsonl'):,} documents")
    build_index(str(out / "docs.jsonl"), out / "index")
    train = f"{out / 'none'}?size={2 * hold_out(out / 'none', out, dev)}"
    print(simulate(instances=train, index=out / "index", out=out / "log.jsonl"))
    print(survivorship.depth(out / "log.jsonl", out=out / "depths"))
    print(survivorship.triples(train, out / "depths", out=out / "triples"))


def by_depth(out: Path) -> None:
    """Scores rankings by the judgments that annotators leave who see fewer documents: Table 4's form, into by-depth/.

    Vaswani's judgments are taken as complete: an annotator who sees BM25's first documents selects the relevant ones,
    and a query without any is discarded. What is scored: BM25, the packaged MiniLM as it is (in the place of ANCE), and
    the rankers of the grid, the first seed of each training set.
    """
    grid, name, place = GridResults(out / "grid"), "vaswani", out / "by-depth"
    design = grid.design.collection(name)
    first = out / "grid" / "collections" / name / "first-stage.run"
    shutil.rmtree(place, ignore_errors=True)
    runs = place / "runs"
    runs.mkdir(parents=True)
    shutil.copyfile(first, runs / "bm25.run")
    rerank(first, "ance:packaged", design.topics, design.docs, options=RerankOptions(depth=10), out=runs / "minilm.run")
    cells = grid.cells.filter((pl.col("status") == "done") & (pl.col("seed") == grid.cells["seed"].min()))
    for cell, model, label in cells.select("cell", "model", "label").iter_rows():
        write_run(grid.run(cell, name), runs / f"{model}-{label}.run")
    print(simulate(design.topics, design.qrels, run=first, out=place / "log.jsonl"))
    print(survivorship.depth(place / "log.jsonl", out=place / "depths"))
    names = sorted(str(run) for run in runs.glob("*.run"))
    print(survivorship.evaluate(names, place / "depths", measures="RR@10", out=place / "report"))
