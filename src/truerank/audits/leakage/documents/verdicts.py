"""The verdict on each kind of leak of documents: what it rests on and what would settle it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.documents.plants import CLAIMS as DOCUMENT_CLAIMS
from truerank.audits.leakage.documents.plants import REQUIRED, DocumentSensitivity
from truerank.audits.leakage.documents.texts import TestTexts
from truerank.audits.leakage.estimate import NOTHING_CLAIMED, claimed, kinds_seen
from truerank.audits.leakage.kinds import RULES, KindVerdict, LeakKind
from truerank.audits.leakage.results import KindFound
from truerank.near_duplicates.shingles import shingled
from truerank.text.rewordings import CLAIMS

#: The share of the plants of a change that must be found before the change counts as seen.
_ENOUGH: Final = 0.95
_WITHOUT_ENCODER: Final = "Documents were not compared by an encoder: the same content in other words is not found."
_GIVE: Final = {
    "docs": ("the test documents were not given", "Give the documents with --docs."),
    "qrels": ("no judgments were given, so that no document is known to be relevant", "Give them with --qrels."),
}


@dataclass(frozen=True)
class DocumentEvidence:
    """What the verdicts rest on; `documents` counts all and the relevant ones."""

    test: TestTexts
    leaks: pl.DataFrame
    templates: pl.DataFrame
    sources: Mapping[str, Mapping[str, Any]]
    seen: DocumentSensitivity
    documents: tuple[int, int]
    crowded: int

    def texts(self, *roles: str) -> int:
        """Training texts of some roles, counted once for each example."""
        return sum(source.get(f"{role}_texts", 0) for source in self.sources.values() for role in roles)


def verdict_of(kind: LeakKind, known: DocumentEvidence) -> KindVerdict:
    lacking = [_GIVE[need] for need in kind.needs if need not in known.test.given]
    if lacking:
        why = f"Not looked for: {' and '.join(fault for fault, _ in lacking)}."
        return KindVerdict(kind.name, "UNKNOWN", why, settle=tuple(remedy for _, remedy in lacking))
    # A pair needs texts of each role, other kinds of any.
    roles = [role for role in kind.training if not known.texts(role)]
    if roles and (kind.name == "pair" or len(roles) == len(kind.training)):
        read = "; ".join(f"{name}: {source.get('roles', 'queries')}" for name, source in known.sources.items())
        return KindVerdict(
            kind.name,
            "UNKNOWN",
            f"Not looked for: no training text was read as a {roles[0]} ({read}).",
            settle=(f"If the data has such texts, name their column with --roles {roles[0]}=COLUMN.",),
        )
    rows = known.leaks.filter(pl.col("kind") == kind.name)
    of, noun = _asked(kind, known), kind.noun[1]
    leaked = rows["topic_id" if kind.test == "query" else "doc_id"].n_unique()
    counted = rows.unique(["source", "role", "training_text", "training_document"])
    sensitivity = tuple(known.seen.changes.get(kind.name, ()))
    seen = (*_of_templates(kind, known), *_seen(sensitivity), *_brief(kind, known), _WITHOUT_ENCODER)
    facts: dict[str, Any] = {
        "leaked": leaked,
        "of": of,
        "topics": _topics(kind, rows, known),
        "pairs": rows.height,
        "examples": int(counted["examples"].sum()),
        "sensitivity": sensitivity,
    }
    gaps = list(_gaps(kind, known, sensitivity))
    facts["seen"] = not gaps
    if leaked:
        several = noun if of != 1 else kind.noun[0]
        why = f"{leaked:,d} of {of:,d} {several} leak ({leaked / of:.1%})."
        evidence = (kind.effect, *_by_evidence(rows), *seen)
        remedy = ("Look at the pairs; remove the examples with 'truerank leakage clean', and audit what is left.",)
        return KindVerdict(kind.name, "CONTAMINATED", why, evidence, remedy, **facts)
    if gaps:
        why = f"No leak was found, but {'; '.join(fault for fault, _ in gaps)}."
        settle = tuple(dict.fromkeys(remedy for _, remedy in gaps))
        return KindVerdict(kind.name, "UNKNOWN", why, seen, settle, **facts)
    return KindVerdict(
        kind.name, "CLEAN", f"Everything was read, and none of {of:,d} {noun} was found.", seen, (), **facts
    )


def _asked(kind: LeakKind, known: DocumentEvidence) -> int:
    """How many queries or documents were looked for."""
    if kind.test == "document":
        return known.documents[0]
    if kind.test == "relevant":
        return known.documents[1]
    topics = {text.topic_id for text in known.test.texts}
    if kind.name == "pair":
        topics &= set().union(*(known.test.relevant or {}).values())
    return len(topics)


def _topics(kind: LeakKind, rows: pl.DataFrame, known: DocumentEvidence) -> int | None:
    if kind.test == "query":
        return rows["topic_id"].n_unique()
    if known.test.relevant is None:
        return None
    return len(set().union(*(known.test.relevant.get(doc, frozenset()) for doc in rows["doc_id"].unique())))


def _gaps(kind: LeakKind, known: DocumentEvidence, sensitivity: tuple[KindFound, ...]) -> Iterator[tuple[str, str]]:
    """Why nothing found is not the same as clean, and what to do."""
    for name, source in known.sources.items():
        if source.get("skipped"):
            yield f"{source['skipped']:,d} examples of {name} hold no text that could be read", "Mend these records."
        if absent := source.get("absent", {}).get("ids"):
            first = ", ".join(source["absent"]["first"])
            yield (
                f"{absent:,d} ids of {name} have no text ({first}{', …' if absent > 5 else ''})",
                "Give all queries and documents with --train-queries and --train-docs.",
            )
    spoken = {text.topic_id for text in known.test.texts}
    silent = len(known.test.topics.topics) - len(spoken)
    if kind.test == "query" and silent:
        yield f"{silent} topics have no text in the fields compared", "Choose others with --fields."
    judged = known.test.relevant or {}
    if kind.test == "relevant" and len(judged) > known.documents[1]:
        lost = len(judged) - known.documents[1]
        yield f"{lost:,d} relevant documents are not among the documents", "Give the whole collection with --docs."
    if known.crowded:
        yield (
            f"{known.crowded:,d} word sequences are in so many texts that not all pairs with them were compared",
            "Audit the training data in parts.",
        )
    if not sensitivity:
        yield "no changed copy could be planted, so what the audit can see is unknown", "Give longer texts."
    elif not kinds_seen(sensitivity)[0]:
        yield (
            "too few changed copies could be planted to know what the audit can see",
            "Give more texts, or longer ones.",
        )
    unseen = [row for row in sensitivity if row["kind"] in REQUIRED[kind.name] and (row["share"] or 0) < _ENOUGH]
    if unseen:
        named = "; ".join(f"{row['kind']} ({row['found']} of {row['planted']})" for row in unseen)
        yield (
            f"the audit would not find enough of these planted changes: {named}",
            "Give more or longer documents; what stays blind is named.",
        )


def _brief(kind: LeakKind, known: DocumentEvidence) -> Iterator[str]:
    """That short queries are not looked for inside documents."""
    if kind.name == "query-document":
        # Words are counted as they are where texts are compared: "state-of-the-art" has four, and other scripts some.
        words = shingled([text.text for text in known.test.texts], RULES.shingles).measured
        if brief := int((words < RULES.contained_words).sum()):
            yield (
                f"{brief:,d} texts of fewer than {RULES.contained_words} words were compared with whole documents and "
                "not looked for inside them."
            )


def _by_evidence(rows: pl.DataFrame) -> Iterator[str]:
    kinds = rows.select(pl.col("evidence").str.split("+")).explode("evidence")["evidence"].value_counts(sort=True)
    named = ", ".join(
        f"{name} {count:,d}" for name, count in sorted(kinds.iter_rows(), key=lambda row: (-row[1], row[0]))
    )
    yield f"Pairs by evidence (one pair may have several): {named}."


def _of_templates(kind: LeakKind, known: DocumentEvidence) -> Iterator[str]:
    """That pairs of texts of the same template do not count, where there are any."""
    rows = known.templates.filter(pl.col("kind") == kind.name)
    if rows.height:
        texts = rows["topic_id" if kind.test == "query" else "doc_id"].n_unique()
        yield (
            f"{rows.height:,d} pairs, of {texts:,d} {kind.noun[texts != 1]}, are of the same template or differ in "
            "what decides: a frame in common, other names, numbers or content words, an opposite, a negation. They "
            "are not leaks; templates.parquet lists them."
        )


def _seen(sensitivity: tuple[KindFound, ...]) -> Iterator[str]:
    """What the audit sees of planted changes, and to what it is blind."""
    if not sensitivity:
        return
    seen, blind, few = kinds_seen(sensitivity)
    found = claimed(seen, CLAIMS | DOCUMENT_CLAIMS)
    yield f"Of planted changes, at least {_ENOUGH:.0%} were found of: {found}. {NOTHING_CLAIMED}"
    for rows, said in ((blind, "It is partly or wholly blind to these"), (few, "Too few could be planted to say more")):
        if rows:
            shares = (f"{name} ({row['found']} of {row['planted']})" for name, found in rows.items() for row in found)
            yield f"{said}: {', '.join(shares)}."
