"""What a leakage audit found, for the review of a change: SARIF, with the lines of the training data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.baseline import since_baseline
from truerank.audits.leakage.results import AuditResult
from truerank.errors import InputError
from truerank.records import Input
from truerank.reports.sarif import MOST_FINDINGS, SarifFinding, SarifRule, sarif
from truerank.sources import open_queries, parse

_RULES: Final = (
    SarifRule(
        "leaked-topic",
        "A training query is a topic of the test set",
        "The training query is a near-duplicate of a test topic: a model that is trained on it has seen the test.",
        "Remove the query with `truerank leakage clean`, or report scores without the topic.",
        "error",
    ),
    SarifRule(
        "possible-leak",
        "A training query may be a topic of the test set",
        "The training query has a test topic's words, or nearly its letters, and a similarity below the threshold.",
        "Judge the pair with `truerank judge new`, and give the label to the audit.",
        "warning",
    ),
    SarifRule(
        "unknown-verdict",
        "The audit cannot say whether the test set is clean",
        "Something was not read, not judged, or cannot be seen.",
        "Do what the report names, and run the audit again.",
        "warning",
    ),
)
#: Files that are read once more for the lines of what was found; larger ones are no part of a change.
_LARGEST: Final = 16 << 20
_TOPIC: Final = {"test": pl.String, "topic_id": pl.String}
_KEY: Final = ("test", "topic_id", "source", "query_id")


def review(result: AuditResult, inputs: Sequence[Input]) -> str:
    """The audit as SARIF: each leaking training query where it stands; with a baseline, only those that are new."""
    places = {(one.role, one.name): one.source or one.name for one in inputs}
    baseline = next((one.source for one in inputs if one.role == "baseline"), None)
    names = ", ".join(one.name for one in inputs if one.role in ("train", "test"))
    kinds = _pairs(result, baseline)
    pairs = (one for rule, rows in kinds for one in _shown(rule, rows.head(MOST_FINDINGS), places))
    unlisted = sum(max(len(rows) - MOST_FINDINGS, 0) for _, rows in kinds)
    findings = [*pairs, *_unknown(result, places)]
    return sarif(f"leakage audit of {names}", _RULES, findings, unlisted=unlisted)


def _pairs(result: AuditResult, baseline: str | None) -> tuple[tuple[str, pl.DataFrame], ...]:
    """The pairs of each rule, one row for each training query and topic, without those that labels call no leak."""
    above = result.above() if baseline is None else since_baseline(result, baseline).new
    leaked = [(test, topic) for test, about in result.summary["tests"].items() for topic in about["leaked_topics"]]
    topics = pl.DataFrame(leaked, schema=_TOPIC, orient="row")
    certain = above.join(topics, on=list(_TOPIC), how="semi", maintain_order="left")
    below = result.candidates.join(result.above(), on=_KEY, how="anti", maintain_order="left")
    possible = below.filter(pl.col("evidence") != "").sort("shared", nulls_last=True, maintain_order=True)
    if result.judged is not None:
        leaks, others = (result.judged.filter(judged=answer) for answer in (True, False))
        confirmed = below.join(leaks, on=_KEY, how="semi", maintain_order="left")
        certain = pl.concat([certain.join(others, on=_KEY, how="anti", maintain_order="left"), confirmed])
        possible = possible.join(result.judged, on=_KEY, how="anti", maintain_order="left")
    return tuple(
        (rule, rows.unique(_KEY, keep="first", maintain_order=True))
        for rule, rows in (("leaked-topic", certain), ("possible-leak", possible))
    )


def _shown(rule: str, rows: pl.DataFrame, places: Mapping[tuple[str, str], str]) -> Iterator[SarifFinding]:
    lines = _lines(rows, places)
    verb = "is" if rule == "leaked-topic" else "may be"
    for row in rows.iter_rows(named=True):
        yield SarifFinding(
            rule,
            f"“{row['query_text']}” {verb} topic {row['topic_id']} of {row['test']}: “{row['topic_text']}” "
            f"(similarity {row['similarity']:.3f}{_evidence(row)})",
            places.get(("train", row["source"]), row["source"]),
            lines.get((row["source"], row["query_id"]), 0),
            "\0".join(row[name] for name in _KEY),
        )


def _evidence(row: Mapping[str, Any]) -> str:
    return f"; {row['evidence'].replace('+', ', ')}" if row["evidence"] else ""


def _lines(rows: pl.DataFrame, places: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], int]:
    """The lines of training queries, by source and id, where the source is a file of moderate size."""
    found: dict[tuple[str, str], int] = {}
    for (name,), some in rows.group_by("source", maintain_order=True):
        place = places.get(("train", str(name)), "")
        spec = parse(place) if place else None
        if spec is not None and spec.scheme == "file" and spec.path.is_file() and spec.path.stat().st_size <= _LARGEST:
            with contextlib.suppress(InputError):  # it was removed or changed since it was read
                lines = open_queries(spec).lines_of(set(some["query_id"]))
                found |= {(str(name), query_id): line for query_id, line in lines.items()}
    return found


def _unknown(result: AuditResult, places: Mapping[tuple[str, str], str]) -> Iterator[SarifFinding]:
    for name, about in result.summary["tests"].items():
        if about["verdict"] == "UNKNOWN":
            yield SarifFinding("unknown-verdict", f"{name}: {about['why']}", places.get(("test", name), name), 0, name)
