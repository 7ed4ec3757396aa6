"""Small audits by hand, in memory and as the folder that `leakage audit` writes."""

import json

import polars as pl

from truerank.audits.leakage.results import CANDIDATE_SCHEMA, NEIGHBOUR_SCHEMA, AuditResult


def candidates(rows, threshold=0.91):
    """Rows of (test, topic_id, field, source, query_id, query_text, similarity); those above a threshold are leaks."""
    columns = ("test", "topic_id", "field", "source", "query_id", "query_text", "similarity")
    texts = {name: "" for name, kind in CANDIDATE_SCHEMA.items() if kind == pl.String}
    kinds = {"type": "identical", "title_type": "identical", "variant_no": 0}
    filled = [
        {
            **texts,
            **kinds,
            **dict(zip(columns, row, strict=True)),
            "topic_text": f"text of {row[1]}",
            "rank": rank,
            "standing": "leak" if row[6] > threshold else "",
        }
        for rank, row in enumerate(rows, start=1)
    ]
    return pl.DataFrame(filled, schema=CANDIDATE_SCHEMA)


def audit(
    rows, *, threshold=0.91, floor=0.9, sources=("log",), tests=("robust",), topics=10, fingerprint=None, **summary
):
    """The result of an audit with these candidates; the verdict is CONTAMINATED where one is above the threshold."""
    frame = candidates(rows, threshold)
    above = frame.filter(standing="leak")
    counts = {"read": 100, "distinct": 90, "distinct_estimated": False, "empty": 0, "repaired": 1, "skipped": 0}
    counts |= {"fingerprint": fingerprint} if fingerprint else {}
    found = {}
    for test in tests:
        leaked = above.filter(test=test)["topic_id"].unique(maintain_order=True).to_list()
        found[test] = {
            "topics": topics,
            "verdict": "CONTAMINATED" if leaked else "CLEAN",
            "sentence": "because of the test",
            "leaked_topics": leaked,
            "notes": [],
            "settle": [],
            "doubts": {"topics": 0, "queries": 0, "pairs": 0, "fields": {}},
            "sensitivity": [],
            "other_topics": {},
            "fields": {"union": {sources[-1]: {"topics": len(leaked), "queries": above["query_text"].n_unique()}}},
        }
    values = {
        "threshold": threshold,
        "floor": floor,
        "calibrated_for": "paraphrase-MiniLM-L6-v2",
        "calibrated": False,
        "encoder": "all-MiniLM-L6-v2",
        "mode": "exhaustive",
        "top_k": 100,
        "sources": dict.fromkeys(sources, counts),
        "tests": found,
        "prefilter": None,
        **summary,
    }
    neighbours = frame.with_columns(pl.lit(True).alias("exact")).select(list(NEIGHBOUR_SCHEMA))
    return AuditResult(values, frame, neighbours)


def save(result, folder, manifest=None):
    """Writes the audit's folder and gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(result.summary))
    result.candidates.write_parquet(folder / "candidates.parquet")
    result.neighbours.write_parquet(folder / "neighbours.parquet")
    if manifest is not None:
        (folder / "manifest.json").write_text(json.dumps({"artifacts": {}, **manifest}))
    return folder
