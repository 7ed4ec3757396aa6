"""Act: the training source without the queries that leak."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple

from truerank.audits.leakage.filters import BREAKS, Record, SourceForm, Target, form_of, rewrite, written
from truerank.audits.leakage.kinds import check_kinds
from truerank.audits.leakage.options import opened_labels
from truerank.audits.leakage.redaction import key_mark
from truerank.audits.leakage.results import AuditResult, opened_audit
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.judging.labels import Judgments
from truerank.judging.ratings import label_inputs
from truerank.options import Labels, Names, Options
from truerank.records import Input
from truerank.sources import QuerySource, SourceSpec, open_queries, parse
from truerank.sources.compressed import checked_file
from truerank.sources.inputs import shown_source
from truerank.sources.rows import rows
from truerank.text.normalising import mended, normalise
from truerank.work.artifacts import as_written, hash_file
from truerank.work.runs import run as started

Basis = Literal["labels-first", "labels-only"]
Match = Literal["text", "id"]

BASES: Final[dict[str, str]] = {
    "labels-first": "what was judged follows the judgment, the rest the audit",
    "labels-only": "only what was judged a leak",
}
#: Why a query stays that the audit lists.
JUDGED: Final = "judged no leak"
BELOW: Final = "listed for calibration"
NOT_JUDGED: Final = "judged by nobody"
RELATED: Final = "different in what decides"
_REMOVED: Final = ("query_id", "text", "test", "topic_id", "field", "similarity", "type", "why", "line")


class LeakPair(NamedTuple):
    """A pair of a topic and a training query that is held for a leak, and why; `text` is the normalised query."""

    test: str
    topic_id: str
    field: str
    source: str
    query_id: str
    text: str
    similarity: float | None
    type: str
    why: str


@dataclass(frozen=True, eq=False, repr=False)
class Cleaning(Result, shown_in="truerank.audits.leakage.summaries"):
    """What `clean` did.

    Attributes:
        out: the file that it wrote.
    """

    out: Path


@dataclass(frozen=True, eq=False, repr=False)
class TrainCleaning(Cleaning):
    """A training source without the queries that leak.

    Attributes:
        out: the cleaned file.
        removed_file: what was removed and why, one line per removed record.
        manifest_file: where it comes from.
        read: queries read; those with an empty text and records without a query are not among them and stay.
        kept: queries that stay.
        removed: records that were left out.
        removed_queries: distinct queries (normalised texts) among them; of examples, the leaking texts that they hold.
        topics: for each test set, the topics whose leaking queries were removed.
        not_found: leaking queries of the audit that this source does not hold.
        threshold: that of the audit; None for examples, and where an earlier cleaning decided.
        basis: how labels and threshold were combined.
        judged: number of judged pairs that were given.
        left: queries that the audit lists and that stay, by the reason.
        warnings: what a user must know, one sentence each.
        of_examples: whether the source holds examples, of which each has several texts.
    """

    removed_file: Path
    manifest_file: Path
    read: int
    kept: int
    removed: int
    removed_queries: int
    topics: dict[str, int]
    not_found: int
    threshold: float | None
    basis: Basis
    judged: int
    left: Mapping[str, int]
    warnings: tuple[str, ...]
    of_examples: bool = False


@dataclass(frozen=True)
class LeakRules(Options):
    """Which pairs count as leaks.

    Attributes:
        basis: labels-first follows the judgment of what was judged, and takes the leaks and doubts of the audit beside
            it; labels-only takes only what was judged a leak.
        match: text compares the texts of queries; id, for files that name queries by id only (`triples.tsv#1`, the
            column of the id), takes the ids that an earlier cleaning of the queries removed.
        kinds: of training examples, the kinds of leak that count; by default pair, query-query, positive-relevant and
            negative-relevant.
        strict: treat bytes that are not UTF-8 as an error.
    """

    basis: Basis = "labels-first"
    match: Match = "text"
    kinds: Names = ()
    strict: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(self.kinds)


def clean_train(
    train: str | Path, audit: AuditResult | str | Path, out: str | Path, rules: LeakRules, judged: Labels
) -> TrainCleaning:
    """Writes a training source again without the queries that leak a test topic.

    A query is its normalised text, so every duplicate goes too, and of training triples every row of the query. The
    source is streamed: memory does not grow with it. Beside the output stand `OUT.removed.tsv` (each text that leaks)
    and `OUT.manifest.json`; the output appears last and whole, or not at all.

    Args:
        train: the source, as in the audit; lines of TSV, CSV and JSONL keep their bytes, Parquet its columns, and
            other sources become `id TAB text`.
    """
    out, spec = Path(out), parse(str(train))
    form = form_of(spec, out)
    source = open_queries(spec, strict=rules.strict)
    leaks = leaking_texts(audit, opened_labels(judged), rules)
    removed_file = out.with_name(f"{out.name}.removed.tsv")
    given = {"remove": "train", "rules": rules, "votes": judged.votes}
    with started("leakage clean", label_inputs(judged), given, out, file=True) as job:
        with written(out) as target, written(removed_file) as listed:
            swept = _swept(source, form, (target, listed), leaks, rules.strict)
        job.note(out.name)
        job.note(removed_file.name)
        fingerprint = source.fingerprint.removeprefix("sha256:").partition(";")[0] if form.path else None
        job.read(Input(spec.name, shown_source(spec), "train", swept.read, fingerprint), leaks.source)
        job.skipped = {"skipped": swept.skipped, "empty": swept.empty}
    topics = defaultdict[str, set[str]](set)
    for leak in (leak for key in swept.queries for leak in leaks.by_key[key]):
        topics[leak.test].add(leak.topic_id)
    return TrainCleaning(
        out=out,
        removed_file=removed_file,
        manifest_file=out.with_name(f"{out.name}.manifest.json"),
        read=swept.read,
        kept=swept.read - swept.removed,
        removed=swept.removed,
        removed_queries=len(swept.queries),
        topics={test or "(labels)": len(topics[test]) for test in sorted(topics)},
        not_found=sum(
            any(leak.source in ("", spec.name) for leak in leaks.by_key[key])
            for key in leaks.by_key
            if key not in swept.queries
        ),
        threshold=leaks.threshold,
        basis=rules.basis,
        judged=leaks.judged,
        left=leaks.left,
        warnings=tuple(_warnings(spec, source.fingerprint, leaks, swept)),
    )


class _Sweep(NamedTuple):
    """What was read, left out and found in a source; `queries` are the leaking texts."""

    read: int
    empty: int
    skipped: int
    removed: int
    queries: frozenset[str]


def _swept(
    source: QuerySource, form: SourceForm, targets: tuple[Target, Target], leaks: LeakingTexts, strict: bool
) -> _Sweep:
    """Copies a source without what leaks, and lists what it leaves out."""
    target, listed = targets
    with listed.open() as stream:
        stream.write(("\t".join(_REMOVED) + "\n").encode())
        seen: set[str] = set()
        sieve = _Sieve(leaks.by_key, stream, seen)
        removed, skipped = rewrite(source, form, target, sieve, strict=strict)
    if not sieve.read:
        raise InputError("no queries in it", "give a source that holds some", where=source.spec.location)
    return _Sweep(sieve.read, sieve.empty, skipped, removed, frozenset(seen))


def open_audit(candidates: AuditResult | str | Path, kinds: Sequence[str] = ()) -> AuditResult:
    """The audit, from its folder where that is given."""
    if kinds and "query-query" not in kinds:
        raise OptionError("kinds", f"queries do not leak as '{kinds[0]}'", "leave it out, or add query-query")
    audit = opened_audit(candidates)
    if any(key_mark(text) for text in audit.candidates["query_text"].head(1)):
        raise InputError("the audit is redacted", "clean with the audit that holds the texts", where=audit.folder)
    return audit


def leaking_pairs(audit: AuditResult, judgments: Judgments | None, basis: Basis) -> Iterator[LeakPair]:
    """The pairs that count as leaks: leaks and doubts of the audit that nobody judged to be none, and judged leaks."""
    if basis == "labels-only" and judgments is None:
        raise OptionError("basis", "labels-only needs labels", "give `labels`, or choose another")
    seen: set[tuple[str, str]] = set()
    columns = ("test", "topic_id", "field", "source", "query_id", "query_text", "similarity", "type", "evidence")
    for test, topic, field, source, query, raw, similarity, kind, evidence, standing in audit.candidates.select(
        *columns, "standing"
    ).iter_rows():
        pair = None if judgments is None else judgments.find(topic, raw, query, test)
        judged = None if pair is None else pair.leak
        if pair is not None:
            seen.add((topic, pair.text))
        if judged is True:
            why = "judged a leak"
        elif judged is None and basis != "labels-only" and standing in ("leak", "doubt"):
            why = f"{standing} by {evidence.replace('+', ', ') or 'the same text or a label'}"
        else:
            continue
        yield LeakPair(test, topic, field, source, query, mended(raw), similarity, kind or "", why)
    for pair in () if judgments is None else judgments.pairs:
        if pair.leak and pair.text and (pair.topic_id, pair.text) not in seen:
            yield LeakPair(
                "", pair.topic_id, "", "", pair.query_id, pair.text, pair.similarity, "", "judged a leak, no candidate"
            )


class LeakingTexts(NamedTuple):
    """What is to be removed, by normalised text or by id, the strongest reason first, and (`left`) what stays though it
    is listed.

    `source` is the audit or the list of an earlier cleaning; in the latter case there is neither `threshold` nor
    `audit`.
    """

    by_key: dict[str, list[LeakPair]]
    threshold: float | None
    source: Input
    judged: int
    audit: AuditResult | None
    left: Mapping[str, int]


def leaking_texts(given: AuditResult | str | Path, judgments: Judgments | None, rules: LeakRules) -> LeakingTexts:
    """The queries that leak by an audit and by what people said of its pairs."""
    if rules.match == "id":
        return _removed_before(given)
    audit = open_audit(given, rules.kinds)
    by_key: defaultdict[str, list[LeakPair]] = defaultdict(list)
    for leak in leaking_pairs(audit, judgments, rules.basis):
        by_key[leak.text].append(leak)
    for leaks in by_key.values():
        leaks.sort(key=lambda leak: (not leak.why.startswith("judged"), -(leak.similarity or 0.0)))
    left = _left(audit, judgments, by_key.keys(), rules.basis)
    count = 0 if judgments is None else len(judgments.pairs)
    return LeakingTexts(dict(by_key), audit.summary["threshold"], audit_input(audit), count, audit, left)


def _left(audit: AuditResult, judgments: Judgments | None, gone: Collection[str], basis: Basis) -> Mapping[str, int]:
    """The queries that the audit lists and that stay, by the reason."""
    reasons = (NOT_JUDGED if basis == "labels-only" else BELOW, RELATED, JUDGED)
    # A text in several pairs stays for the weakest reason.
    known: dict[str, int] = {}
    columns = ("test", "topic_id", "query_id", "query_text", "standing", "differs")
    for test, topic, query, raw, standing, differs in audit.candidates.select(columns).iter_rows():
        if (text := mended(raw)) not in gone:
            pair = None if judgments is None else judgments.find(topic, raw, query, test)
            no_leak = standing == "dismissed" and not differs
            reason = 2 if no_leak or (pair is not None and pair.leak is False) else int(standing == "dismissed")
            known[text] = min(known.get(text, reason), reason)
    counts = {reasons[at]: sum(reason == at for reason in known.values()) for at in (2, 1, 0)}
    return {reason: count for reason, count in counts.items() if count}


def what_stays(left: Mapping[str, int]) -> Iterator[str]:
    """What a cleaning left of the list of its audit, and why, in a sentence."""
    if left:
        named = ", ".join(f"{count:,d} {reason}" for reason, count in left.items())
        yield f"Of the queries that the audit lists, these stay: {named}."


def audit_input(audit: AuditResult) -> Input:
    """An audit as the manifest names it, with the hash of its candidates where they are a file."""
    rows, folder = audit.candidates.height, audit.folder
    if folder is None:
        return Input("audit", "", "audit", rows)
    file = folder / "candidates.parquet"
    return Input(folder.name, str(folder), "audit", rows, hash_file(file))


def _removed_before(path: AuditResult | str | Path) -> LeakingTexts:
    """The ids that an earlier cleaning removed."""
    if isinstance(path, AuditResult) or Path(path).is_dir():
        raise InputError(
            "an audit names one id of each distinct query",
            "clean the file of the queries first, and give its .removed.tsv as `audit`",
            where=None if isinstance(path, AuditResult) else path,
        )
    path = as_written(checked_file(Path(path)))
    by_key: dict[str, list[LeakPair]] = {}
    for row in rows(path, "tsv"):
        if not {"query_id", "topic_id", "why"} <= set(row.values):
            raise InputError("no list of removed queries", "give a .removed.tsv", where=path, line=row.line)
        values = {name: row.values.get(name, "") for name in _REMOVED}
        key = normalise(values["query_id"])
        try:
            similarity = float(values["similarity"]) if values["similarity"] else None
        except ValueError as error:
            fault = f"'{values['similarity']}' is not a similarity"
            raise InputError(fault, "give a .removed.tsv", where=path, line=row.line) from error
        kept = {name: values[name] for name in ("test", "topic_id", "field", "query_id", "type", "why")}
        by_key.setdefault(key, []).append(LeakPair(source="", text=key, similarity=similarity, **kept))
    return LeakingTexts(by_key, None, Input(path.name, str(path), "audit", len(by_key), hash_file(path)), 0, None, {})


class _Sieve:
    """Says of each text of a column whether it leaks, counts, and lists what it removes; `found` is shared by all."""

    def __init__(self, leaks: Mapping[str, Sequence[LeakPair]], listed: IO[bytes], found: set[str]) -> None:
        self.read = self.empty = 0
        self.found = found
        self._leaks = leaks
        self._listed = listed

    def __call__(self, record: Record) -> bool:
        key = mended(record.text)
        if not key:
            self.empty += 1
            return False
        self.read += 1
        leaks = self._leaks.get(key)
        if leaks is None:
            return False
        self.found.add(key)
        leak = leaks[0]
        similarity = "" if leak.similarity is None else f"{leak.similarity:.6f}"
        line = str(record.line) if record.line else ""
        cells = (
            record.query_id, record.text, leak.test, leak.topic_id, leak.field, similarity, leak.type, leak.why, line,
        )  # fmt: skip
        self._listed.write(("\t".join(cell.translate(BREAKS) for cell in cells) + "\n").encode())
        return True


def _warnings(spec: SourceSpec, fingerprint: str, leaks: LeakingTexts, swept: _Sweep) -> Iterator[str]:
    if swept.skipped:
        yield f"{swept.skipped:,d} records hold no readable query; they were kept unseen."
    if leaks.audit is None:
        return
    summary, name = leaks.audit.summary, spec.name
    known = summary["sources"]
    if name not in known:
        yield (
            f"The audit did not read {name} (it read {', '.join(summary['sources'])}): "
            "only queries that leak from those sources were looked for."
        )
    elif known[name].get("fingerprint") not in (None, fingerprint):
        yield f"{name} has changed since the audit: queries that are new in it were not audited."
    lost = sum(
        any(leak.source == name for leak in leaks.by_key[key]) for key in leaks.by_key if key not in swept.queries
    )
    if lost:
        yield f"{lost:,d} leaking queries that the audit found in {name} are not in it."
    if summary["mode"] != "exhaustive":
        yield f"The audit ran in {summary['mode']} mode and may have missed leaking queries."
