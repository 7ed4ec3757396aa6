"""Prepares the small transfer experiment: pages that lost what was relevant, and training rows by strategy.

    python scripts/prepare_transfer.py --out work/transfer [--collection vaswani] [--model bm25] [--seed 20220908]

Two versions of a collection are planted (`studies/plant_faults.py`), with more faults than usual and all of them in
the second version: half of the judged pages. The topics are halved. `transfer scan` compares the versions for the
first half, `transfer select` writes rows by T5_max, T5_min, BM25 and chance, for the documents that the scan flags
(`flagged/`) and for all (`all/`); `transfer-small.yaml` trains on them and tests on the other half (`test.tsv`,
`test.qrels`), on the abstracts that the pages were made of. `--model` takes any ranker of `transfer scan`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "studies"))

from planted.abstracts import read_abstracts  # noqa: E402
from planted.writing import Plan, plant  # noqa: E402
from truerank.audits import transfer  # noqa: E402
from truerank.rankers.base import RankerSpec  # noqa: E402
from truerank.work.artifacts import write_text  # noqa: E402

SHARES = {
    "error page": 0.1,
    "other document, far": 0.1,
    "other document, near": 0.1,
    "boilerplate": 0.05,
    "content missing": 0.05,
    "content changed": 0.1,
}
POLICY = "sliding:60:30"
STRATEGIES = ("max", "min", "bm25", "random")


def halves(folder: Path, qrels: Path) -> None:
    """Writes the judgments of every second topic for the scan, and topics and judgments of the others for the test."""
    topics = [line.split("\t", 1) for line in (folder / "topics.tsv").read_text(encoding="utf-8").splitlines()]
    tested = {topic for topic, _ in topics[1::2]}
    planted = (folder / "a.qrels").read_text().splitlines()
    write_text(folder / "train.qrels", "".join(f"{line}\n" for line in planted if line.split()[0] not in tested))
    write_text(folder / "test.tsv", "".join(f"{topic}\t{text}\n" for topic, text in topics if topic in tested))
    judged = qrels.read_text().splitlines()
    write_text(folder / "test.qrels", "".join(f"{line}\n" for line in judged if line.split()[0] in tested))


def main() -> None:
    """Plants, scans, selects, and prints what each found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--collection", choices=("vaswani", "cacm"), default="vaswani")
    parser.add_argument("--model", default="bm25")
    parser.add_argument("--seed", type=int, default=20220908)
    given = parser.parse_args()
    shared = Path(os.environ.get("TRUERANK_SHARED", ROOT.parent / "shared")) / "data" / "collections"
    if not shared.is_dir():
        sys.exit(f"no data at {shared}: set TRUERANK_SHARED to the folder that holds data/")
    source = read_abstracts(given.collection, shared / given.collection)
    out: Path = given.out
    made = plant(source, out, Plan(given.seed, "report", second=1.0, shares=SHARES))
    print(f"{made.pages:,} pages, {made.judged:,} judged, {made.harmful:,} of these lost what was relevant\n")
    halves(out, shared / given.collection / "qrels.txt")
    versions = {"V1": str(out / "a.jsonl"), "V2": str(out / "b.jsonl")}
    sources = (versions, str(out / "train.qrels"), str(out / "topics.tsv"))
    scan = transfer.scan(*sources, model=RankerSpec(given.model), split=POLICY, given="nothing", out=out / "scan")
    print(scan)
    for name, data_set in (("flagged", "V1>>V2 MaxP"), ("all", "all versions")):
        chosen = transfer.SelectOptions(STRATEGIES, data_set=data_set, passages="max", part="best")
        print(transfer.select(scan, out / name, options=chosen))


if __name__ == "__main__":
    main()
