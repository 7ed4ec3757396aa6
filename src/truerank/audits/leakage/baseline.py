"""What an audit found that an earlier one had not: known leaks need not fail a build."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypedDict

import polars as pl

from truerank.audits.leakage.redaction import key_mark
from truerank.audits.leakage.results import AuditResult, AuditSummary, opened_audit
from truerank.errors import InputError
from truerank.text.normalising import normalise

_KEY: Final = ("test", "topic_id", "field", "key")
#: New pairs that are listed one by one.
_LISTED: Final = 20
_SHOWN: Final = ("test", "topic_id", "field", "source", "query_id", "query_text", "similarity")


class TestNews(TypedDict):
    """What is new for one test set: pairs, topics and queries that the baseline does not have, and known pairs."""

    pairs: int
    topics: list[str]
    queries: int
    known: int
    gone: int


@dataclass(frozen=True, eq=False)
class NewSince:
    """The difference between an audit and its baseline.

    Attributes:
        new: candidates above the threshold whose test set, topic, field and normalised query text the baseline lacks;
            columns as in `CANDIDATE_SCHEMA`.
        tests: by test set, in the order of the audit.
        warnings: why the two audits may not be comparable, one sentence each.
    """

    new: pl.DataFrame
    tests: dict[str, TestNews]
    warnings: tuple[str, ...]

    @property
    def contaminated(self) -> bool:
        """Whether there is anything new; what `--fail-on contaminated` asks where a baseline is given."""
        return not self.new.is_empty()

    def json(self) -> dict[str, Any]:
        """The counts and the first new pairs, for `summary.json` and `--json`."""
        pairs = _keyed(self.new).unique(_KEY, keep="first", maintain_order=True).select(_SHOWN)
        listed = [
            {**row, "similarity": round(row["similarity"], 6)} for row in pairs.head(_LISTED).iter_rows(named=True)
        ]
        return {
            "new": self.contaminated,
            "tests": self.tests,
            "pairs": listed,
            "pairs_left_out": pairs.height - len(listed),
            "warnings": list(self.warnings),
        }

    def apply(self, result: AuditResult) -> AuditResult:
        """The audit with these counts in its summary; candidates and verdicts stay those of the whole audit."""
        summary: AuditSummary = {**result.summary, "baseline": self.json()}
        return replace(result, summary=summary)


def since_baseline(result: AuditResult, baseline: AuditResult | str | Path) -> NewSince:
    """Compares an audit with an earlier one.

    A pair counts as known if the baseline had it above the baseline's own threshold, from whatever source. Redacted
    audits can be compared with each other where both were redacted with the same key.

    Args:
        result: the new audit.
        baseline: the earlier audit, or the folder that it wrote.

    Returns:
        What is new.

    Raises:
        InputError: the folder holds no audit, or the two cannot be compared because of their redaction.
    """
    before = opened_audit(baseline)
    now_above, before_above = _keyed(result.leaking()), _keyed(before.leaking())
    marks = [{key_mark(text) for text in pairs["key"]} for pairs in (now_above, before_above)]
    if all(marks) and marks[0] != marks[1]:
        fault = "the two audits were redacted with different keys"
        if {None} in marks:
            which = "this audit is" if marks[1] == {None} else "the baseline is"
            fault = f"{which} redacted and the other is not"
        raise InputError(fault, "redact both with the same key", where=before.folder)
    new = now_above.join(before_above, on=_KEY, how="anti", maintain_order="left")
    gone = before_above.join(now_above, on=_KEY, how="anti")
    tests = {name: _news(name, now_above, new, gone) for name in result.summary["tests"]}
    return NewSince(new.drop("key"), tests, tuple(_warnings(result.summary, before.summary)))


def _keyed(pairs: pl.DataFrame) -> pl.DataFrame:
    keys = [normalise(text) for text in pairs["query_text"]]
    return pairs.with_columns(pl.Series("key", keys, dtype=pl.String))


def _news(test: str, now: pl.DataFrame, new: pl.DataFrame, gone: pl.DataFrame) -> TestNews:
    here, fresh = now.filter(test=test), new.filter(test=test)
    distinct = list(_KEY)
    return TestNews(
        pairs=fresh.select(distinct).n_unique(),
        topics=fresh["topic_id"].unique(maintain_order=True).to_list(),
        queries=fresh["key"].n_unique(),
        known=here.select(distinct).n_unique() - fresh.select(distinct).n_unique(),
        gone=gone.filter(test=test).select(distinct).n_unique(),
    )


def _warnings(now: AuditSummary, before: AuditSummary) -> Iterable[str]:
    if now["encoder"] != before["encoder"]:
        yield (
            f"The baseline was made with the encoder {before['encoder']}, this audit with {now['encoder']}: "
            "their similarities are not comparable."
        )
    if now["threshold"] != before["threshold"]:
        yield f"The baseline's threshold is {before['threshold']:g}, this audit's {now['threshold']:g}."
    for what, ours, theirs in (
        ("Training sources", list(now["sources"]), list(before["sources"])),
        ("Test sets", list(now["tests"]), list(before["tests"])),
    ):
        added, missing = [x for x in ours if x not in theirs], [x for x in theirs if x not in ours]
        if added:
            yield f"{what} that the baseline does not have: {', '.join(added)}."
        if missing:
            yield f"{what} of the baseline that are missing here: {', '.join(missing)}."
    if now["mode"] != before["mode"]:
        yield f"The baseline was made in {before['mode']} mode, this audit in {now['mode']} mode."
