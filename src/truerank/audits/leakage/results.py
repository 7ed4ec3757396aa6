"""What the leakage audit found, as immutable values, and the folder that holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NotRequired, TypedDict

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.leakage.calibration import Calibration
from truerank.core.result import Result
from truerank.loading import json_file
from truerank.text.printable import listed
from truerank.text.wording import EVIDENCE, SHINGLES
from truerank.work.artifacts import read_table, written_by

VerdictWord = Literal["CONTAMINATED", "UNKNOWN", "CLEAN"]

#: `neighbours.parquet`: the top-k of every topic text and source, whatever their similarity. Where a low-precision
#: pass went before, `exact` is false for neighbours at or below the floor, whose similarity is that pass's.
NEIGHBOUR_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "test topic_id field: String, variant_no: Int32, topic_text source query_id query_text: String, "
    "similarity: Float32, rank: Int32, exact: Boolean"
)

#: `candidates.parquet`: every pair above the floor, and every pair by words, letters or shingles, with its proposed
#: reformulation types. `evidence` joins with "+" what proposes it: "encoder" (above the threshold), "words", "letters",
#: "inside" (the whole topic in a longer query), "shingles" (a near-duplicate, or a long text in the other one); it is
#: empty for pairs that are kept for calibration only. `differs` names what the texts differ in where that decides that
#: they ask for other things ("number", "opposite", "template", …). `standing` follows from these and from labels
#: (`Standing`). `shared` is the share of training texts with the rarest word that both texts have, for pairs by words
#: or letters: where it is high, the pair is weak evidence.
CANDIDATE_SCHEMA: Final[dict[str, Any]] = {
    name: kind for name, kind in NEIGHBOUR_SCHEMA.items() if name != "exact"
} | frame_schema("type title_type evidence: String, shared: Float32, differs standing: String")

#: What a candidate is. *Leak*: the same text, above the threshold, the same content words where the topic has four, or
#: judged a leak. *Doubt*: fewer content words, letters only, the topic inside a longer query, one changed number alone,
#: or the same words in an order that may turn the meaning. *Dismissed*: the texts differ in what decides, or it was
#: judged no leak.
Standing = Literal["leak", "doubt", "dismissed"]
#: What texts may differ in without being dismissed; the same words in another order are seldom another need.
UNDECIDED: Final = ("", "number")
UNDECIDED_ORDER: Final = (*UNDECIDED, "numbers", "code", "negation", "direction")
_FEWEST_WORDS: Final = 4


#: `leaks.parquet`: one row for each pair of texts that leaks, kind of leak, and role in a source. `examples` counts the
#: lines or training examples of the source that hold the text in this role, `example_id` is the first of them. A row of
#: the kind "pair" has the query in `test_text` and `training_text`, and the answer in `document_text` and
#: `training_document`; its evidence is that of the queries, `document_evidence` that of the answer. The columns of
#: evidence are those of `overlaps.OVERLAPS`, whose package is not imported here: `leakage clean` does not compare.
LEAKS: Final[dict[str, Any]] = frame_schema(
    "kind test topic_id field doc_id test_text source role example_id: String, examples: Int64, training_text: String, "
    "exact: Boolean, ngram_test ngram_training jaccard containment: Float64, wording: String, cosine: Float64, "
    "test_words training_words: Int64, evidence document_text training_document document_evidence: String"
)


def standing_of(threshold: float, content: pl.Expr) -> pl.Expr:
    """The standing of a pair before labels; `content` counts the content words of the topic text."""
    encoder = pl.col("similarity") > pl.lit(threshold, pl.Float32)
    encoder |= pl.col("evidence").str.contains(EVIDENCE[SHINGLES])
    words, differs = pl.col("evidence").str.contains(EVIDENCE[1]), pl.col("differs")
    decided = pl.when(words).then(~differs.is_in(UNDECIDED_ORDER)).otherwise(~differs.is_in(UNDECIDED))
    leak = (differs == "") & (encoder | (words & (content >= _FEWEST_WORDS)))
    nothing = ~encoder & (pl.col("evidence") == "")
    names = zip((nothing, decided, leak), ("", "dismissed", "leak"), strict=True)
    return pl.coalesce(*(pl.when(by).then(pl.lit(name)) for by, name in names), pl.lit("doubt"))


class UnreadShare(TypedDict):
    """Of a sample of a source's first texts, how many there are, and how many an encoder cannot read, by script."""

    texts: int
    unread: dict[str, int]


class SourceCount(TypedDict):
    """What was read of one training source; where it has several text columns, which one, and which were left out.

    `unread` says how many of a sample of the first texts the encoder cannot read.
    `carrier` is what texts begin or end with and what was not compared, such as an instruction.
    `ids` is an example where most texts read first are ids.
    `roles` says what the columns of examples were taken for.
    `fingerprint` tells one content of the source from another: size and hash of a file, the revision of a data set.
    """

    read: int
    distinct: int
    distinct_estimated: bool
    empty: int
    repaired: int
    skipped: int
    unread: NotRequired[UnreadShare]
    carrier: NotRequired[list[str]]
    ids: NotRequired[str]
    fingerprint: NotRequired[str]
    roles: NotRequired[str]
    column: NotRequired[str | None]
    not_compared: NotRequired[list[str]]


class FieldCount(TypedDict):
    """Topics with a candidate, and distinct candidate queries."""

    topics: int
    queries: int


class DoubtCount(TypedDict):
    """Pairs in doubt; `common` counts those that share only words that at least 1% of the training texts hold."""

    topics: int
    queries: int
    pairs: int
    common: NotRequired[int]
    fields: dict[str, FieldCount]


class KindFound(TypedDict):
    """Planted rewordings of one kind and field, and how many of them the audit would have found.

    `share` is None where the topics allow no such rewording; `low` and `high` are its 95% Clopper–Pearson interval;
    `by` counts what each evidence finds, the encoder what nothing else does: it is asked about the rest alone.
    """

    field: str
    kind: str
    planted: int
    found: int
    share: float | None
    low: float
    high: float
    by: dict[str, int]


class KindClaim(TypedDict):
    """A kind of planted changes: how many were planted and found in all fields, and what the verdict claims of it."""

    kind: str
    planted: int
    found: int
    claimed: str


class OtherTopics(TypedDict):
    """Texts of one field for which the audit would propose another topic of the same test set, by evidence."""

    texts: int
    proposed: int
    share: float
    by: dict[str, int]


class Sensitivity(TypedDict):
    """The sensitivity check of one test set: the kinds by field, and the converse by field."""

    kinds: list[KindFound]
    other_topics: dict[str, OtherTopics]


class TestSummary(TypedDict):
    """The verdict on one test set and the counts of the paper's Table 1 (field "union" counts a topic once).

    `looked_for` counts the topics with a text that were compared with training queries, 0 where there were none.
    `noun` is what the test set's items are called, "topics" or "queries". `sentence` says what was found and what that
    rests on, `settle` what settles it: together they are the verdict. `notes` are what else there is to know. `unread`
    counts the topics with a text that the encoder cannot read.
    """

    topics: int
    looked_for: int
    noun: NotRequired[str]
    verdict: VerdictWord
    sentence: str
    settle: list[str]
    notes: list[str]
    confirmed_topics: int
    leaked_topics: list[str]
    unread: NotRequired[int]
    doubts: DoubtCount
    dismissed: NotRequired[int]
    kinds: NotRequired[list[KindClaim]]
    fields: dict[str, dict[str, FieldCount]]
    sensitivity: list[KindFound]
    other_topics: dict[str, OtherTopics]
    document_kinds: NotRequired[list[dict[str, Any]]]
    documents: NotRequired[dict[str, int]]
    other_documents: NotRequired[dict[str, OtherTopics]]
    boilerplate: NotRequired[list[dict[str, Any]]]


class FormRecall(TypedDict):
    """The prefilter's recall for one field and form of the training text; None where no such pair was found."""

    field: str
    form: str
    true_pairs: int
    missed_in_sample: int
    recall: float | None
    low: float
    high: float


class PrefilterRecall(TypedDict):
    """Estimated recall of the prefilter against exhaustive mode, from a stratified sample of what it dropped.

    None where there is no pair above the threshold, so that nothing tells what share was missed.
    """

    cuts: dict[str, float]
    passed: int
    sampled: int
    true_pairs: int
    missed_in_sample: int
    recall: float | None
    low: float
    high: float
    unmodelled_low: float
    by: list[FormRecall]


class SpokenVerdicts(TypedDict):
    """The verdict and the sentence of the worst test set, and the verdicts of all."""

    verdict: str
    sentence: str
    verdicts: list[dict[str, str]]


class AuditSummary(SpokenVerdicts):
    """`summary.json`, and what `leakage audit --json` prints; `verdict` and `sentence` are those of the worst.

    `cells` has rows as in `kinds.CELLS`.
    """

    threshold: float
    floor: float
    calibrated_for: str
    calibrated: bool
    encoder: str
    mode: str
    top_k: int
    sources: dict[str, SourceCount]
    tests: dict[str, TestSummary]
    cells: list[dict[str, Any]]
    prefilter: PrefilterRecall | None
    first_pass: NotRequired[dict[str, Any]]
    labels: NotRequired[dict[str, Any]]
    baseline: NotRequired[dict[str, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult(Result, shown_in="truerank.audits.leakage.report"):
    """The result of `leakage.audit`.

    Attributes:
        summary: counts and verdicts, as in `summary.json`.
        candidates: every pair above the floor or with evidence in its words or letters, columns as in
            `CANDIDATE_SCHEMA`, ordered by test, topic, field, variant, source and rank.
        neighbours: the top-k per topic text and source, columns as in `NEIGHBOUR_SCHEMA`, the same order.
        folder: where the artifacts lie.
        calibration: the precision at each threshold, where labels carry similarities.
        topics: ids of topics whose nearest training queries are shown.
        left_over: unfinished work of other audits in the same folder, in sentences.
        leaks: every leak with where it stands in the training data, columns as in `LEAKS`.
        templates: pairs of documents whose texts have a frame in common and say other things, which are not leaks;
            columns as in `LEAKS`.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("CONTAMINATED", "UNKNOWN", "CLEAN")
    has_details: ClassVar[bool] = True

    summary: AuditSummary
    candidates: pl.DataFrame
    neighbours: pl.DataFrame
    folder: Path | None = None
    calibration: Calibration | None = None
    topics: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()
    leaks: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LEAKS))
    templates: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LEAKS))

    def leaking(self) -> pl.DataFrame:
        """The candidates that are leaks."""
        return self.candidates.filter(standing="leak")


def load_audit(folder: str | Path) -> AuditResult:
    """Opens the folder that `leakage audit --out` wrote.

    Raises:
        InputError: the folder lacks one of the audit's files, or one of them is broken.
    """
    folder = Path(folder)
    with written_by("leakage audit", folder, "summary.json", "candidates.parquet", "neighbours.parquet"):
        summary: AuditSummary = json_file(folder / "summary.json")
        if not isinstance(summary, dict) or not summary.keys() >= {"threshold", "encoder", "sources", "tests"}:
            raise ValueError("summary.json is of something else")
        candidates = read_table(folder / "candidates.parquet", CANDIDATE_SCHEMA, others=True)
        neighbours = pl.read_parquet(folder / "neighbours.parquet", glob=False)
        leaks, templates = (
            read_table(path, LEAKS) if path.is_file() else pl.DataFrame(schema=LEAKS)
            for path in (folder / "leaks.parquet", folder / "templates.parquet")
        )
    return AuditResult(summary, candidates, neighbours, folder, leaks=leaks, templates=templates)


def opened_audit(audit: Any) -> AuditResult:
    """The audit, from its folder where that is given."""
    return audit if isinstance(audit, AuditResult) else load_audit(audit)


def columns_read(sources: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """For each source with several text columns, which one was read and which were not compared."""
    for name, count in sources.items():
        if left_out := count.get("not_compared"):
            others = listed([f"'{column}'" for column in left_out])
            verb, them = ("was", "it") if len(left_out) == 1 else ("were", "them")
            read = f"the column '{count['column']}' was read as the query; " if count.get("column") else ""
            yield f"{name}: {read}{others} {verb} not compared: file#column reads {them}."
