"""The verdict on each kind of leak, and on each cell of a matrix: what it rests on and what would settle it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.estimate import NOTHING_CLAIMED, claimed, kinds_seen, not_asked
from truerank.audits.leakage.results import KindFound, Sensitivity
from truerank.audits.leakage.training_data.results import KINDS, ExampleOptions, KindVerdict, LeakKind
from truerank.audits.leakage.training_data.sensitivity import CLAIMS as DOCUMENT_CLAIMS
from truerank.audits.leakage.training_data.sensitivity import REQUIRED, ExampleSensitivity
from truerank.audits.leakage.training_data.texts import TestTexts
from truerank.measures.magnitudes import exact_interval, proportion
from truerank.near_duplicates.shingles import shingled
from truerank.overlaps import OverlapRules
from truerank.overlaps.results import SemanticState
from truerank.text.rewordings import CLAIMS, SEEN_KINDS, UNPLANTED

#: The share of the plants of a change that must be found before the change counts as seen.
_ENOUGH: Final = 0.95
_GIVE: Final = {
    "docs": ("the test documents were not given", "Give the documents with --docs."),
    "qrels": ("no judgments were given, so that no document is known to be relevant", "Give them with --qrels."),
}


@dataclass(frozen=True)
class ExampleEvidence:
    """What the verdicts rest on; `documents` counts all and the relevant ones, `semantic` and `unread` are by kind of
    pair.
    """

    test: TestTexts
    leaks: pl.DataFrame
    templates: pl.DataFrame
    sources: Mapping[str, Mapping[str, Any]]
    seen: ExampleSensitivity
    options: ExampleOptions
    rules: OverlapRules
    documents: tuple[int, int]
    semantic: Mapping[str, str]
    unread: Mapping[str, tuple[int, int]]
    crowded: tuple[int, int]

    def counts(self) -> dict[str, Any]:
        """What was compared of the test collection."""
        judged = self.test.relevant
        return {
            "name": self.test.topics.name,
            "noun": self.test.topics.noun,
            "topics": len(self.test.topics.topics),
            "texts": len(self.test.texts),
            "documents": None if self.test.docs is None else self.documents[0],
            "relevant": None if judged is None else len(judged),
            "relevant_read": None if judged is None or self.test.docs is None else self.documents[1],
        }

    def texts(self, *roles: str) -> int:
        """Training texts of some roles, counted once for each example."""
        return sum(source.get(f"{role}_texts", 0) for source in self.sources.values() for role in roles)


def verdicts(known: ExampleEvidence) -> Iterator[KindVerdict]:
    """The verdict on each kind of leak that was asked for."""
    for kind in KINDS:
        if kind.name in known.options.wanted:
            yield _verdict(kind, known)


def _verdict(kind: LeakKind, known: ExampleEvidence) -> KindVerdict:
    lacking = [_GIVE[need] for need in kind.needs if need not in known.test.given]
    if lacking:
        why = f"Not looked for: {' and '.join(fault for fault, _ in lacking)}."
        return KindVerdict(kind.name, "UNKNOWN", why, settle=tuple(remedy for _, remedy in lacking))
    # A pair needs texts of each role, other kinds of any.
    roles = [role for role in kind.training if not known.texts(role)]
    if roles and (kind.name == "pair" or len(roles) == len(kind.training)):
        read = "; ".join(f"{name}: {source['roles']}" for name, source in known.sources.items())
        return KindVerdict(
            kind.name,
            "UNKNOWN",
            f"Not looked for: no training text was read as a {roles[0]} ({read}).",
            settle=(f"If the data has such texts, name their column with --roles {roles[0]}=COLUMN.",),
        )
    rows = known.leaks.filter(pl.col("kind") == kind.name)
    of, noun = _asked(kind, known), kind.noun[1]
    if not of:
        why = f"Not looked for: every query has fewer than {known.rules.contained_words} words."
        return KindVerdict(kind.name, "UNKNOWN", why, settle=("Give topics with longer texts (--fields).",))
    leaked = rows["topic_id" if kind.test == "query" else "doc_id"].n_unique()
    share = proportion(leaked, of, method="exact")
    counted = rows.unique(["source", "role", "training_text", "training_document"])
    sensitivity = tuple(known.seen.changes.get(kind.name, ()))
    seen = (*_of_templates(kind, known), *_seen(sensitivity), *_encoder(kind, known))
    facts: dict[str, Any] = {
        "leaked": leaked,
        "of": of,
        "low": share.low,
        "high": share.high,
        "topics": _topics(kind, rows, known),
        "pairs": rows.height,
        "examples": int(counted["examples"].sum()),
        "sensitivity": sensitivity,
    }
    if leaked:
        several = noun if of != 1 else kind.noun[0]
        why = (
            f"{leaked:,d} of {of:,d} {several} leak ({leaked / of:.1%}, 95% interval {share.low:.1%} to "
            f"{share.high:.1%})."
        )
        evidence = (kind.effect, *_by_evidence(rows), *seen)
        remedy = ("Look at the pairs; remove the examples with 'truerank leakage clean', and audit what is left.",)
        return KindVerdict(kind.name, "CONTAMINATED", why, evidence, remedy, **facts)
    gaps = list(_gaps(kind, known, sensitivity))
    if gaps:
        why = f"No leak was found, but {'; '.join(fault for fault, _ in gaps)}."
        settle = tuple(dict.fromkeys(remedy for _, remedy in gaps))
        return KindVerdict(kind.name, "UNKNOWN", why, seen, settle, **facts)
    why = f"Everything was read, and none of {of:,d} {noun} was found."
    return KindVerdict(kind.name, "CLEAN", why, seen, (), **facts)


def _asked(kind: LeakKind, known: ExampleEvidence) -> int:
    """How many queries or documents were looked for."""
    if kind.test == "document":
        return known.documents[0]
    if kind.test == "relevant":
        return known.documents[1]
    texts = known.test.texts
    if kind.name == "query-document":
        # Words are counted as they are where texts are compared: "state-of-the-art" has four, and other scripts some.
        words = shingled([text.text for text in texts], known.rules.shingles).measured
        texts = tuple(text for text, size in zip(texts, words, strict=True) if size >= known.rules.contained_words)
    topics = {text.topic_id for text in texts}
    if kind.name == "pair":
        topics &= set().union(*(known.test.relevant or {}).values())
    return len(topics)


def _topics(kind: LeakKind, rows: pl.DataFrame, known: ExampleEvidence) -> int | None:
    if kind.test == "query":
        return rows["topic_id"].n_unique()
    if known.test.relevant is None:
        return None
    return len(set().union(*(known.test.relevant.get(doc, frozenset()) for doc in rows["doc_id"].unique())))


def _gaps(kind: LeakKind, known: ExampleEvidence, sensitivity: tuple[KindFound, ...]) -> Iterator[tuple[str, str]]:
    """Why nothing found is not the same as clean, and what to do."""
    for name, source in known.sources.items():
        if source["skipped"]:
            yield f"{source['skipped']:,d} examples of {name} hold no text that could be read", "Mend these records."
        if absent := source["absent"]["ids"]:
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
    queries, in_documents = known.crowded
    if crowded := {"query-query": queries, "pair": queries + in_documents}.get(kind.name, in_documents):
        yield (
            crowded_sequences(crowded),
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
            "Lower --ngram-share, --similarity or --containment.",
        )


def _encoder(kind: LeakKind, known: ExampleEvidence) -> Iterator[str]:
    """That the encoder compared nothing, where it did not."""
    name = kind.name if kind.name in known.semantic else "document"
    state = known.semantic[name]
    if any(known.unread[name]):
        yield f"{not_asked(*known.unread[name])} Paraphrases of them are UNKNOWN."
    elif state == "not asked":
        wanted = "queries" if kind.name in ("query-query", "pair") else "all"
        yield f"The encoder was not asked (--semantic {wanted} asks it): the same content in other words is not found."


def _by_evidence(rows: pl.DataFrame) -> Iterator[str]:
    kinds = rows.select(pl.col("evidence").str.split("+")).explode("evidence")["evidence"].value_counts(sort=True)
    named = ", ".join(
        f"{name} {count:,d}" for name, count in sorted(kinds.iter_rows(), key=lambda row: (-row[1], row[0]))
    )
    yield f"Pairs by evidence (one pair may have several): {named}."


def _of_templates(kind: LeakKind, known: ExampleEvidence) -> Iterator[str]:
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


#: The columns of a cell by the kinds of evidence that they count.
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "exact": ("exact",),
    "ngram": ("ngram", "near", "contains"),
    "words": ("words", "letters"),
    "semantic": ("encoder",),
}
_CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Compared:
    """What was compared for one cell; `states` has what the encoder did for each two sources.

    `itself`: the test set is compared with itself. `unread` counts records of both sides that hold no readable text,
    `crowded` word sequences that too many texts have to compare all pairs, `silent` texts of either side that the
    encoder cannot read.
    """

    part: str
    items: int
    training_texts: int
    pairs: pl.DataFrame
    states: tuple[SemanticState, ...]
    itself: bool
    check: Sensitivity | None
    unread: int
    crowded: int
    silent: tuple[int, int]

    @property
    def full(self) -> bool:
        """Whether the encoder compared all."""
        return all(state == "compared" for state in self.states)


def cell_of(cell: Compared) -> dict[str, Any]:
    """The columns of `CELLS` but the names."""
    evidence = pl.col("evidence").str.split("+")
    sides = ["test_id", "training_id"] if cell.itself else ["test_id"]
    by: dict[str, set[str]] = {}
    for name, kinds in COLUMNS.items():
        rows = cell.pairs.filter(evidence.list.set_intersection(list(kinds)).list.len() > 0)
        by[name] = set().union(*(rows[side] for side in sides))
    strong = by["exact"] | by["ngram"] | by["semantic"]
    weak = by["words"] - strong
    verdict, reason, upper = _cell_verdict(cell, len(strong), len(weak))
    return {
        "part": cell.part,
        "items": cell.items,
        "training_texts": cell.training_texts,
        **{name: len(texts) for name, texts in by.items() if name != "semantic"},
        "semantic": len(by["semantic"]) if cell.full or by["semantic"] else None,
        "leaking": len(strong),
        "proposed": len(weak),
        "pairs": len(cell.pairs),
        "verdict": verdict,
        "upper": upper,
        "reason": reason,
    }


def pair_cell(pairs: pl.DataFrame, items: int, examples: int) -> dict[str, Any]:
    """The columns of `CELLS` but the names, of topics whose query and relevant document are in one example."""
    leaking = pairs["topic_id"].n_unique()
    reason = f"{leaking} of {items:,} topics have their query and a relevant document in one training example."
    if not leaking:
        reason = "No query with a relevant document was found in one example; rewordings of documents were not planted."
    return {
        "part": "pair",
        "items": items,
        "training_texts": examples,
        **dict.fromkeys(COLUMNS),
        "leaking": leaking,
        "proposed": 0,
        "pairs": len(pairs),
        "verdict": "CONTAMINATED" if leaking else "UNKNOWN",
        "upper": None,
        "reason": reason,
    }


def upper_bound(found: int, items: int, seen: int, planted: int) -> int:
    """The most items that can leak, with 95% confidence, where each leak is found with the chance that plants are.

    The chance is the lower end of a one-sided 97.5% interval of the plants that were found, and the bound is the
    largest number of leaks of which so few are found with a probability of at least 2.5%.
    """
    from scipy.special import bdtr

    low, _ = exact_interval(seen, planted, confidence=_CONFIDENCE)
    # The more leaks, the less probable it is that so few are found.
    return bisect_left(
        range(items), True, lo=min(found, items), key=lambda most: bdtr(found, most + 1, low) < (1 - _CONFIDENCE) / 2
    )


def _cell_verdict(cell: Compared, strong: int, weak: int) -> tuple[str, str, int | None]:
    of = f"of {cell.items:,} {'topics' if cell.part == 'query' else 'documents'} have"
    kinds = [] if cell.check is None or cell.part != "query" else cell.check["kinds"]
    same = [kind for kind in kinds if kind["kind"] in SEEN_KINDS]
    planted, upper, bound = sum(kind["planted"] for kind in same), None, ""
    if planted and cell.full:
        upper = upper_bound(strong + weak, cell.items, sum(kind["found"] for kind in same), planted)
        bound = f" At most {upper:,} leak in the same words (95%)."
    if cell.full and any(cell.silent):
        bound += f" {not_asked(*cell.silent)}"
    if strong:
        other = "another of them" if cell.itself else "a training text"
        reason = f"{strong:,} {of} {other} with the same text, n-grams or meaning.{bound}"
        return "CONTAMINATED", reason, upper
    seen, blind, few = kinds_seen(kinds)
    missed = [kind for kind in blind if kind in SEEN_KINDS]
    nothing_planted = "no rewordings were" if cell.part == "query" else "no changed documents were"
    gaps = {
        f"the training data has no {cell.part}": not cell.training_texts,
        f"{cell.unread:,} record{'' if cell.unread == 1 else 's'} could not be read": cell.unread,
        crowded_sequences(cell.crowded): cell.crowded,
        f"{weak:,} {of} a training text with the same content words, unjudged": weak,
        f"the encoder cannot read one of the sides ({cell.silent[0]:,} and {cell.silent[1]:,} texts)": (
            "unknown language" in cell.states
        ),
        "no encoder compared meanings": "not asked" in cell.states,
        f"{nothing_planted} planted, so what would be found is unknown": not planted,
        f"planted rewordings were not found often enough ({', '.join(missed)})": planted and missed,
    }
    if why := "; ".join(gap for gap, there in gaps.items() if there):
        return "UNKNOWN", f"Nothing above the thresholds, but {why}.{bound}", upper
    return (
        "CLEAN",
        f"All texts were compared and nothing was found. Of planted rewordings at least 95% were found: "
        f"{claimed(seen)}; not: {', '.join(blind) or 'none'}; not planted: {UNPLANTED}"
        f"{'; too few to say: ' if few else ''}{', '.join(few)}.{bound}",
        upper,
    )


def crowded_sequences(count: int) -> str:
    """That not everything was compared with everything."""
    return f"{count:,d} word sequences are in so many texts that not all pairs with them were compared"
