"""Finds planted faults: precision, recall, and reasons by fault, for several rankers; and a scan killed and resumed.

    python studies/transfer_planted.py [--collection vaswani|cacm] [--draw NAME]
        [--rankers bm25,embedding,bm25+embedding] [--given judged|nothing] [--policy sliding:60:30]
        [--sampled 600] [--work DIR]
    python studies/transfer_planted.py --scale 100000

`planted/draws.py` says how the two versions are made. Everything was developed with Vaswani's `--draw development` and
`records-development`; the figures of the docs are those of `--draw fresh`, which has its own seed, and its own texts of
error pages, notices and boilerplate, of `--collection cacm --draw records`, with wordings of other projects and
kinds of faults that were never planted before, of `--collection cacm --draw third`, whose wordings were collected after
the rule on the damaged version, of `--collection cacm --draw fourth`, with wordings and templates of harmless
changes by a developer who had not read the rules, and of `--collection cacm --draw fifth`, with wordings of public
places, looked for after the rules were last changed. Reported draws are never tuned on. bm25:
statistics of the judged version. embedding: cosine of the packaged MiniLM. A "+" weighs several together. `--share`
scans a part of the topics. `--work` keeps versions and scores, so that a second call costs little.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from common import require_shared, table
from planted.abstracts import Abstracts
from planted.draws import DRAWS, planned
from planted.records import FAULTS, HARMLESS, SIXTH, THIRD, THIRD_HARMLESS, UNSEEN, reason_of
from planted.scale import scale
from planted.writing import plant
from truerank import transfer
from truerank.audits.transfer.scanning.candidates import difference
from truerank.audits.transfer.scanning.options import AGGREGATIONS
from truerank.rankers.base import RankerSpec, Runtime

#: The reason that a fault should be given.
REASONS = {
    "error page": "error page",
    "other document, far": "redirect",
    "other document, near": "redirect",
    "truncated": "truncated",
    "boilerplate": "boilerplate only",
    "empty": "empty",
    "content missing": "content missing",
    "content changed": "content changed",
    **{fault: reason_of(fault) for fault in (*FAULTS, *UNSEEN, *THIRD, *SIXTH)},
}
#: What does no harm, beside what is cut elsewhere.
OTHERS = (*HARMLESS, *THIRD_HARMLESS, "none")
#: Which candidates: those that the scores name by MaxP (`--evidence scores`), those that the texts name, what the scan
#: names by both kinds of evidence (scores that the texts do not contradict).
EVIDENCE = {
    "scores": pl.col("by_max"),
    "texts": pl.col("texts"),
    "scores only": pl.col("supported") & ~pl.col("texts"),
    "texts only": pl.col("texts") & ~pl.col("supported"),
    "both kinds": pl.col("supported") & pl.col("texts"),
    "either": pl.col("supported") | pl.col("texts"),
}


def opened(name: str, threads: int) -> RankerSpec:
    """One of the rankers by its name here."""
    if name == "bm25":
        return RankerSpec("bm25")
    return RankerSpec("ance:packaged", Runtime(threads=threads), (("similarity", "cosine"),))


def scanned(name: str, source: Abstracts, versions: Path, work: Path, given: argparse.Namespace) -> pl.DataFrame:
    """Every judged document of the versions with its differences: V1 minus V2."""
    topics = sorted({topic for topics in source.relevant.values() for topic in topics})
    keep = set(topics[: max(1, round(given.share * len(topics)))])
    first, *others = (opened(one, given.threads) for one in name.split("+"))
    some = versions / "scanned.qrels"
    lines = (versions / "a.qrels").read_text().splitlines()
    some.write_text("".join(f"{line}\n" for line in lines if line.split()[0] in keep))
    out = versions / f"scan-{name}-{given.policy.replace(':', '-')}-{given.share:g}-{given.given}"
    files = {version: str(versions / f"{file}.jsonl") for version, file in (("V1", "a"), ("V2", "b"))}
    scan = partial(
        transfer.scan,
        files,
        str(some),
        str(versions / "topics.tsv"),
        model=first,
        with_=tuple(others),
        split=given.policy,
        cache=str(work / "scores.sqlite"),
        given=given.given,
        sampled=given.sampled,
        items=0,
    )
    return differences(scan(out=out), scan(evidence="scores", out=f"{out}-scores"))


def differences(scan: transfer.Scan, by_scores: transfer.Scan) -> pl.DataFrame:
    """Per judged document the difference by aggregation, and the reason where it is a candidate."""
    wide = scan.scores.pivot("version", index=["topic_id", "doc_id"], values=list(AGGREGATIONS))
    judged = scan.summary["probability"]["given"] == "judged"
    wide = wide.with_columns(
        difference(pl.col(f"{name}_V1"), pl.col(f"{name}_V2"), judged=judged).alias(name) for name in AGGREGATIONS
    )
    kept = wide.select("topic_id", "doc_id", *AGGREGATIONS)
    keys = ["topic_id", "doc_id", "worse", "reason"]
    alone = by_scores.candidates.filter("max").select(*keys, pl.lit(True).alias("by_max"))
    named = scan.candidates.filter(pl.col("max") | pl.col("texts")).select(
        *keys, pl.col("max").alias("supported"), "texts"
    )
    # Scores and texts may name different versions of a document: then it has two rows.
    candidates = alone.join(named, on=keys, how="full", coalesce=True, maintain_order="left_right")
    flags = pl.col("by_max", "supported", "texts").fill_null(False)
    return kept.join(candidates, on=["topic_id", "doc_id"], how="left").with_columns(flags)


def with_truth(found: pl.DataFrame, versions: Path) -> pl.DataFrame:
    """Beside what was planted; `signed` differences are positive where the version with the fault scores lower."""
    truth = pl.read_csv(versions / "truth.tsv", separator="\t", infer_schema=False)
    joined = found.join(truth.select(pl.col("a").alias("doc_id"), "fault", "side", "harmful"), on="doc_id")
    sign = pl.when(pl.col("side") == "a").then(-1.0).otherwise(1.0)
    signed = [(pl.col(name) * sign).alias(f"{name}_signed") for name in AGGREGATIONS]
    return joined.with_columns(pl.col("harmful") == "1", *signed)


def reached(rows: pl.DataFrame, aggregation: str, cut_off: float) -> tuple[float, float, float, float]:
    """Of the scores: precision, recall, and the shares of rewordings and of other harmless changes that are flagged."""
    rows = rows.unique(["topic_id", "doc_id"], keep="first", maintain_order=True)
    flagged = rows.filter(pl.col(aggregation).abs() > cut_off)
    right = len(rows.filter(pl.col("harmful") & (pl.col(f"{aggregation}_signed") > cut_off)))
    harmful = int(rows["harmful"].sum())
    reworded = rows.filter(pl.col("fault") == "reworded")
    other = rows.filter(~pl.col("harmful") & (pl.col("fault") != "reworded"))
    shares = (len(part.filter(pl.col(aggregation).abs() > cut_off)) / max(1, len(part)) for part in (reworded, other))
    return (right / max(1, len(flagged)), right / max(1, harmful), *shares)


def report(found: dict[str, pl.DataFrame]) -> None:
    """Prints everything."""
    some = next(iter(found.values())).unique(["topic_id", "doc_id"])
    print(f"\n{len(some)} judged documents, {int(some['harmful'].sum())} of them lost what was relevant.\n")
    rows = [
        (name, label, *(f"{value:.3f}" for value in reached(frame, aggregation, 0.5)))
        for name, frame in found.items()
        for aggregation, label in AGGREGATIONS.items()
    ]
    print(table(("ranker", "by", "precision", "recall", "rewordings flagged", "other harmless flagged"), rows))
    print("\nMaxP, other cut-offs: precision / recall / rewordings flagged\n")
    cuts = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    rows = [
        (name, *(" / ".join(f"{value:.2f}" for value in reached(frame, "max", cut)[:3]) for cut in cuts))
        for name, frame in found.items()
    ]
    print(table(("ranker", *(f"{cut:g}" for cut in cuts)), rows))
    print("\nCandidates (MaxP at 0.5, texts) by what named them\n")
    rows = [(name, *row) for name, frame in found.items() for row in by_evidence(frame)]
    head = ("ranker", "named by", "candidates", "precision", "recall", "harmless flagged", "reasons right")
    print(table(head, rows))
    print("\nBy fault, scores / texts / either of those planted, and the share of those found with the right reason\n")
    print(table(("fault", "harmful", *found), list(by_fault(found))), flush=True)


def right_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The candidates that name the version with the fault of a document that was harmed."""
    return rows.filter(pl.col("harmful") & (pl.col("worse") == pl.col("side").replace({"a": "V1", "b": "V2"})))


def by_evidence(frame: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    """Precision, recall, harmless documents flagged and reasons named rightly, by what named the candidates."""
    documents = frame.unique(["topic_id", "doc_id"])
    harmful, sound = documents.filter("harmful"), documents.filter(~pl.col("harmful"))
    for name, chosen in EVIDENCE.items():
        rows = frame.filter(chosen)
        right = right_of(rows)
        wrong = rows.filter(~pl.col("harmful")).unique(["topic_id", "doc_id"])
        yield (
            name,
            f"{len(rows)}",
            f"{len(right) / max(1, len(rows)):.3f}",
            f"{right.unique(['topic_id', 'doc_id']).height / max(1, len(harmful)):.3f}",
            f"{len(wrong)} of {len(sound)} ({len(wrong) / max(1, len(sound)):.1%})",
            f"{reasons_right(right):.3f}" if len(right) else "",
        )


def reasons_right(rows: pl.DataFrame) -> float:
    """The share of candidates with the reason of their fault."""
    # A notice that several pages share is one in other words.
    named = rows["reason"].replace({"repeated text": "error page"})
    return float(np.mean((named == rows["fault"].replace_strict(REASONS, default="")).to_numpy()))


def by_fault(found: dict[str, pl.DataFrame]) -> Iterator[tuple[str, ...]]:
    """Rows of the last table."""
    for fault in (*REASONS, *OTHERS):
        for harmful in (True, False):
            cells = []
            for frame in found.values():
                rows = frame.filter((pl.col("fault") == fault) & (pl.col("harmful") == harmful))
                planted = rows.unique(["topic_id", "doc_id"]).height
                flagged = [rows.filter(EVIDENCE[name]) for name in ("scores", "texts", "either")]
                flagged = [right_of(part) if harmful else part for part in flagged]
                counts = " / ".join(str(part.unique(["topic_id", "doc_id"]).height) for part in flagged)
                named = f", {reasons_right(flagged[2]):.0%}" if harmful and len(flagged[2]) else ""
                cells.append(f"{counts} of {planted}{named}" if planted else "")
            if any(cells):
                yield (
                    f"{fault}{' (unseen)' if fault in {**UNSEEN, **THIRD, **SIXTH} else ''}",
                    "yes" if harmful else "no",
                    *cells,
                )


def main() -> None:
    """Reads the arguments, plants, scans, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", choices=("vaswani", "cacm"), default="vaswani")
    parser.add_argument("--draw", choices=tuple(DRAWS), default="fresh")
    parser.add_argument("--rankers", default="bm25,embedding,bm25+embedding", help="of bm25, embedding")
    parser.add_argument("--given", choices=("judged", "nothing"), default="judged")
    parser.add_argument("--policy", default="sliding:60:30")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--sampled", type=int, default=600, help="documents that calibrate")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--scale", type=int, help="instead: a BM25 scan of so many documents, killed and resumed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = (given.work or Path(temporary)) / given.collection
        if given.scale:
            scale(given.scale, given.work or Path(temporary))
            return
        require_shared()
        source, plan = planned(given.collection, DRAWS[given.draw])
        versions = work / given.draw
        made = plant(source, versions, plan)
        print(f"{given.collection}, draw {given.draw}: {made.pages} pages, {made.judged} judged", flush=True)
        found = {}
        for name in given.rankers.split(","):
            begun = time.monotonic()
            found[name] = with_truth(scanned(name, source, versions, work, given), versions)
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
        report(found)


if __name__ == "__main__":
    main()
