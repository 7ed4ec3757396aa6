"""What the small transfer experiment is trained on: pages that lost what was relevant, and rows by strategy.

`truerank_lab.papers.reproduce transfer` calls it. The abstracts of Vaswani and CACM become pages in two versions
(`studies/planted`), with more faults than usual: in half of the judged pages one version, mostly the second, lost what
was relevant. Three snapshots between the versions show each page as it was before or after its change. The topics are
halved. For the first half, `transfer scan` compares the versions by two rankers, BM25 and the packaged MiniLM, and
`transfer select` writes rows by strategy, the way a ranker is trained (first passage, best passage) and seed: for
V1>>V2 and V2>>V1 by both kinds of passages, for all judged documents (random), and for all five versions (snapshots).
The other half is tested (`NAME.tsv`, `NAME.qrels`), on the abstracts that the pages were made of.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from truerank.audits import transfer
from truerank.rankers.base import RankerSpec
from truerank.work.artifacts import write_text

#: What plants the faults is a study's, of the same checkout.
STUDIES = Path(__file__).parents[4] / "studies"
COLLECTIONS = ("vaswani", "cacm")
SHARES = {
    "error page": 0.1,
    "other document, far": 0.1,
    "other document, near": 0.1,
    "boilerplate": 0.05,
    "content missing": 0.05,
    "content changed": 0.1,
}
#: Of the faults, those that lie in the second version.
SECOND = 0.65
UNJUDGED = 300
POLICY = "sliding:100:75"
RANKERS = {"bm25": RankerSpec("bm25"), "minilm": RankerSpec("ance:packaged", settings=(("document_tokens", 128),))}
DATA_SETS = {
    "v1-over-v2-first": "V1>>V2 FirstP",
    "v1-over-v2-max": "V1>>V2 MaxP",
    "v2-over-v1-first": "V2>>V1 FirstP",
    "v2-over-v1-max": "V2>>V1 MaxP",
    "random": None,
}
STRATEGIES = ("max", "min", "bm25")
SNAPSHOTS = ("2015", "2016", "2017")
#: The two ways of training: by the first passage of a page, seeds from 0, or by the best, seeds from 5.
WAYS: dict[Literal["first", "best"], int] = {"first": 0, "best": 5}
SEED = 20220908


def prepare(collections: Path, out: Path) -> None:
    """Plants, scans, selects; what is there already is kept."""
    if (out / "done").is_file():
        return
    write_pages(collections, out)
    versions = {"V1": str(out / "a.jsonl"), "V2": str(out / "b.jsonl")}
    judged = (str(out / "train.qrels"), str(out / "topics.tsv"))

    def scanned(pages: dict[str, str], ranker: str, folder: str) -> transfer.Scan:
        scoring, samples = transfer.ScanScoring(split=POLICY), transfer.Samples(items=0)
        return transfer.scan(pages, *judged, model=RANKERS[ranker], scoring=scoring, samples=samples, out=out / folder)

    for name in RANKERS:
        scan = scanned(versions, name, f"scan-{name}")
        print(scan)
        for folder, data_set in DATA_SETS.items():
            select(scan, out / "selected" / name / folder, data_set, STRATEGIES)
    between = {"V1": versions["V1"], "V2": versions["V2"], **{one: str(out / f"{one}.jsonl") for one in SNAPSHOTS}}
    scan = scanned(between, "bm25", "scan-snapshots")
    print(scan)
    strategies = (*STRATEGIES, "version:V1", "version:V2")
    select(scan, out / "selected" / "bm25" / "snapshots", None, strategies)
    write_text(out / "done", "")


def select(scan: transfer.Scan, folder: Path, data_set: str | None, strategies: Sequence[str]) -> None:
    """Rows of one data set for both ways of training, some draws of each."""
    for way, first in WAYS.items():
        passages: Literal["first", "max"] | None = None if data_set else "first" if way == "first" else "max"
        options = transfer.SelectOptions(tuple(strategies), data_set=data_set, passages=passages, part=way)
        selection = transfer.select(scan, folder / way, options=options, seed=first, seeds=5)
        print(f"{folder.parent.name}/{folder.name}/{way}: {selection.rows:,} rows")


def write_pages(collections: Path, out: Path) -> None:
    """Writes the versions of the pages, the judgments of every second topic, and what is tested."""
    sys.path.insert(0, str(STUDIES))
    abstracts, writing = (importlib.import_module(f"planted.{name}") for name in ("abstracts", "writing"))
    parts: dict[str, list[str]] = {name: [] for name in ("a", "b", *SNAPSHOTS, "topics", "train")}
    for number, name in enumerate(COLLECTIONS):
        source, folder = abstracts.read_abstracts(name, collections / name), out / "planted" / name
        plan = writing.Plan(SEED + number, "report", unjudged=UNJUDGED, shares=SHARES, second=SECOND)
        planted = writing.plant(source, folder, plan)
        print(f"{name}: {planted.pages:,} pages, {planted.judged:,} judged, {planted.harmful:,} lost what was relevant")
        topics = [line.split("\t", 1) for line in (folder / "topics.tsv").read_text(encoding="utf-8").splitlines()]
        tested = {topic for topic, _ in topics[1::2]}
        parts["topics"] += [f"{name}-{topic}\t{text}" for topic, text in topics]
        for line in (folder / "a.qrels").read_text().splitlines():
            topic, zero, document, grade = line.split()
            if topic not in tested:
                parts["train"].append(f"{name}-{topic} {zero} {name}-{document} {grade}")
        for version, lines in page_versions(folder, name, writing.read_truth(folder)).items():
            parts[version] += lines
        write_text(out / f"{name}.tsv", "".join(f"{topic}\t{text}\n" for topic, text in topics if topic in tested))
        judged = (collections / name / "qrels.txt").read_text().splitlines()
        write_text(out / f"{name}.qrels", "".join(f"{line}\n" for line in judged if line.split()[0] in tested))
    files = {"topics": "topics.tsv", "train": "train.qrels"}
    for name, lines in parts.items():
        write_text(out / files.get(name, f"{name}.jsonl"), "".join(f"{line}\n" for line in lines))


def page_versions(folder: Path, name: str, truth: Sequence[Any]) -> dict[str, list[str]]:
    """The pages of one collection by version; a snapshot has the page of the first version until the page changes."""
    records = {version: list(_pages(folder / f"{version}.jsonl", name)) for version in ("a", "b")}
    found = {version: [json.dumps(page, ensure_ascii=False) for page in pages] for version, pages in records.items()}
    second = {page["doc_id"]: page for page in records["b"]}
    pairs = {f"{name}-{row['a']}": f"{name}-{row['b']}" for row in truth}
    found |= {snapshot: [] for snapshot in SNAPSHOTS}
    for page in records["a"]:
        changed = random.Random(f"{SEED}:change {page['doc_id']}").randrange(len(SNAPSHOTS) + 1)
        for number, snapshot in enumerate(SNAPSHOTS):
            later = second.get(pairs.get(page["doc_id"], ""))
            shown = later if later is not None and number >= changed else page
            # Snapshots are kept by the address of the first version.
            held = {**shown, "doc_id": f"{page['doc_id']}-{snapshot}", "url": page["url"]}
            found[snapshot].append(json.dumps(held, ensure_ascii=False))
    return found


def _pages(path: Path, name: str) -> Iterator[dict[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        page = json.loads(line)
        yield {**page, "doc_id": f"{name}-{page['doc_id']}", "url": page["url"].replace("www.", f"www.{name}-", 1)}
