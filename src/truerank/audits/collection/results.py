"""The kinds of faults, what the audit found, as immutable values, and the folder that holds it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import polars as pl

from truerank.audits.collection.instances import INSTANCE_SCHEMA
from truerank.core.result import Result
from truerank.core.rules import Rule, rules_of
from truerank.core.verdict import Verdict
from truerank.loading import json_file
from truerank.near_duplicates.results import GROUPS, PAIRS
from truerank.work.artifacts import written_by

Part = Literal["judgments", "documents", "topics", "together", "versions"]


@dataclass(frozen=True)
class Kind(Rule):
    """One kind of finding.

    Attributes:
        part: the part of the collection that it concerns.
        needs: the inputs without which nobody can look for it.
        noun: what is counted, singular and plural.
        instead: other inputs that serve as well; empty for none.
        unseen: what of it would not be found, where it was looked for, and where too little was given to look for it;
            empty for nothing that was measured. `studies/collection_shares.py` measures it.
    """

    part: Part
    needs: tuple[str, ...]
    noun: tuple[str, str]
    instead: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    def serves(self, given: Collection[str]) -> bool:
        """Whether these inputs are enough to look for it."""
        return set(self.needs) <= set(given) or (bool(self.instead) and set(self.instead) <= set(given))


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by name, in the order in which a report lists them."""
    return rules_of("truerank.audits.collection", Kind)


#: What `summary.json` calls the parts of a verdict.
_VERDICT_KEYS: Final = {
    "part": "subject", "word": "word", "reason": "sentence", "evidence": "rests_on", "settle": "settles",
}  # fmt: skip


@dataclass(frozen=True)
class CollectionFinding:
    """One kind of finding in this collection.

    Attributes:
        kind: what it is.
        count: how many there are.
        of: how many there could be.
        examples: some of them: topic_id, doc_id, other, line, detail; empty ones are left out.
        here: what it does to scores in this collection, where that can be computed; empty otherwise.
        accepted: why it is accepted and does not count; empty where it is not.
    """

    kind: Kind
    count: int
    of: int
    examples: tuple[Mapping[str, Any], ...]
    here: str = ""
    accepted: str = ""

    @property
    def counted(self) -> str:
        """The count with its noun and the whole: "12 of 4,423 judgments"."""
        one, several = self.kind.noun
        whole = f" of {self.of:,d}" if self.of > self.count else ""
        return f"{self.count:,d}{whole} {one if max(self.count, self.of if whole else 0) == 1 else several}"

    @property
    def share(self) -> float:
        """The share of what could be touched."""
        return self.count / max(1, self.of)

    @property
    def counted_share(self) -> str:
        """The count with its share: "2 of 1,400 documents, 0.1%"."""
        if self.of <= self.count:
            return self.counted
        percent = 100 * self.share
        shown = "less than 0.1" if percent < 0.1 else f"{percent:.{int(percent < 10)}f}"
        return f"{self.counted}, {shown}%"

    def json(self) -> dict[str, Any]:
        """The finding as a JSON object."""
        kind = self.kind
        found = {
            "kind": kind.name, "code": kind.code, "part": kind.part, "severity": kind.severity, "title": kind.title,
            "count": self.count, "of": self.of, "effect": kind.effect, "here": self.here, "remedy": kind.remedy,
            "examples": [dict(example) for example in self.examples],
        }  # fmt: skip
        return {**found, "accepted": self.accepted} if self.accepted else found


@dataclass(frozen=True, eq=False, repr=False)
class CollectionAudit(Result, shown_in="truerank.audits.collection.report"):
    """What is wrong with the documents, topics and judgments of a collection.

    Attributes:
        verdicts: on the whole ("collection") first, then on each part that was given.
        findings: faults first, then doubts, then notes; by part.
        instances: every instance of every finding, columns as in `INSTANCE_SCHEMA`.
        pairs: duplicates among the documents, columns as in `near_duplicates.PAIRS`, and `answer`: what people said.
        groups: the groups that they form, columns as in `near_duplicates.GROUPS`.
        read: what was read, by input: names and counts.
        facts: figures that are not findings, by section: ceilings, similarity bands, effect on runs.
        items: pairs for the judging page, lines of `items.jsonl`.
        suspects: judgments that the runs contradict, as the run `suspects.run`; empty without any.
        folder: where it was written; None where it was not.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("FAULTY", "UNKNOWN", "SOUND")

    verdicts: tuple[Verdict, ...]
    findings: tuple[CollectionFinding, ...]
    instances: pl.DataFrame
    pairs: pl.DataFrame
    groups: pl.DataFrame
    read: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    suspects: str = ""
    folder: Path | None = None

    def finding(self, kind: str) -> CollectionFinding | None:
        """The finding of a kind; None where there is none."""
        return next((one for one in self.findings if one.kind.name == kind), None)

    def rows(self, kind: str) -> pl.DataFrame:
        """The instances of a kind."""
        return self.instances.filter(pl.col("kind") == kind)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        verdicts = [{key: getattr(one, name) for key, name in _VERDICT_KEYS.items()} for one in self.verdicts]
        findings = [finding.json() for finding in self.findings]
        known = {"verdict": self.verdicts[0].word, "verdicts": verdicts, "findings": findings}
        return {**known, "read": dict(self.read), "facts": dict(self.facts)}


def load_audit(folder: str | Path) -> CollectionAudit:
    """Opens the folder that `collection audit` wrote.

    Raises:
        InputError: no audit there, or it cannot be read.
    """
    folder = Path(folder)
    schemas = {"findings": INSTANCE_SCHEMA, "pairs": {**PAIRS, "answer": pl.String}, "groups": GROUPS}
    with written_by("collection audit", folder, "summary.json", *(f"{name}.parquet" for name in schemas)):
        summary = json_file(folder / "summary.json")
        instances, pairs, groups = (
            pl.read_parquet(folder / f"{name}.parquet", glob=False).select(list(schema))
            for name, schema in schemas.items()
        )
        verdicts = (
            Verdict(**{name: verdict[key] for key, name in _VERDICT_KEYS.items()}) for verdict in summary["verdicts"]
        )
        findings = (
            CollectionFinding(
                kinds()[one["kind"]],
                one["count"],
                one["of"],
                tuple(one["examples"]),
                one["here"],
                one.get("accepted", ""),
            )
            for one in summary["findings"]
        )
        facts = summary["facts"]
        return CollectionAudit(
            tuple(verdicts), tuple(findings), instances, pairs, groups, summary["read"], facts, folder=folder
        )
