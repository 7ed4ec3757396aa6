"""Act: the training source without the queries, or the examples, that leak."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple

import polars as pl

from truerank.audits.leakage.documents.texts import TrainingSource
from truerank.audits.leakage.filters import BREAKS, Record, SourceForm, Target, copy, form_of, rewrite, written
from truerank.audits.leakage.kinds import DEFAULT_KINDS, DocumentOptions, check_kinds, leaks_of
from truerank.audits.leakage.options import opened_labels
from truerank.audits.leakage.redaction import key_mark
from truerank.audits.leakage.results import AuditResult, opened_audit
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.judging.labels import Judgments
from truerank.judging.ratings import label_inputs
from truerank.options import Labels, Names, Options
from truerank.records import Input
from truerank.sources import SourceSpec, open_examples, open_queries, parse
from truerank.sources.examples import ExampleTexts
from truerank.sources.inputs import shown_source
from truerank.text.normalising import mended, normalise
from truerank.work.artifacts import hash_file
from truerank.work.runs import run as started

Basis = Literal["labels-first", "labels-only"]

BASES: Final[dict[str, str]] = {
    "labels-first": "what was judged follows the judgment, the rest the audit",
    "labels-only": "only what was judged a leak",
}
#: Why a query stays that the audit lists.
JUDGED: Final = "judged no leak"
BELOW: Final = "listed for calibration"
NOT_JUDGED: Final = "judged by nobody"
RELATED: Final = "different in what decides"
_OF_QUERIES: Final = ("query_id", "text", "test", "topic_id", "field", "similarity", "type", "why", "line")


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
        kinds: of training examples, the kinds of leak that count; by default pair, query-query, positive-relevant and
            negative-relevant.
        strict: treat bytes that are not UTF-8 as an error.
    """

    basis: Basis = "labels-first"
    kinds: Names = ()
    strict: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(self.kinds)


#: What makes a leak one of its own.
_OF_LEAK: Final = ("kind", "topic_id", "doc_id", "role", "training_text", "training_document")
_OF_EXAMPLES: Final = ("example_id", "kinds", "topics", "documents", "line")


class LeakReason(NamedTuple):
    """Why an example goes: the kinds of leak, and the topics and documents that leak."""

    kinds: frozenset[str]
    topics: frozenset[str]
    documents: frozenset[str]


@dataclass(frozen=True)
class LeakingExamples:
    """The texts by which an example goes: by role and normalised text, and by those of a query and a positive."""

    by_text: Mapping[tuple[str, str], LeakReason]
    by_pair: Mapping[tuple[str, str], LeakReason]

    @classmethod
    def of(cls, leaks: pl.DataFrame, queries: Mapping[str, Sequence[LeakPair]]) -> LeakingExamples:
        """The texts of leaks of documents, columns as in `LEAKS`, and queries that leak."""
        single: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
        pairs: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
        columns = ("kind", "topic_id", "doc_id", "role", "training_text", "training_document")
        for kind, topic, doc, role, text, answer in leaks.select(columns).iter_rows():
            reason = (kind, topic or "", doc or "")
            if kind == "pair":
                pairs[normalise(text), normalise(answer)].append(reason)
            else:
                single[role, normalise(text)].append(reason)
        for text, reasons in queries.items():
            single["query", text] += [("query-query", reason.topic_id, "") for reason in reasons]
        return cls(_joined(single), _joined(pairs))

    @property
    def topics(self) -> frozenset[str]:
        """The topics that leak."""
        every = (*self.by_text.values(), *self.by_pair.values())
        return frozenset[str]().union(*(reason.topics for reason in every))

    def reasons(self, keys: Set[tuple[str, str]]) -> list[LeakReason]:
        """Why an example goes, from the roles and normalised texts that it holds; nothing where it stays."""
        queries = [text for role, text in keys if role == "query"]
        positives = [text for role, text in keys if role == "positive"]
        alone = [self.by_text[key] for key in sorted(keys & self.by_text.keys())]
        return alone + [self.by_pair[pair] for pair in product(queries, positives) if pair in self.by_pair]


def clean_train(
    train: str | Path, audit: AuditResult | str | Path, out: str | Path, rules: LeakRules, judged: Labels
) -> TrainCleaning:
    """Writes a training source again without the queries, or the examples, that leak.

    A query is its normalised text, so every duplicate goes too, and of training triples every row of the query. An
    example with a query and a positive that leak together goes only for the kind "pair" where no other kind counts.
    Queries are streamed: memory does not grow with them. Beside the output stand `OUT.removed.tsv` (each text or
    example that leaks) and `OUT.manifest.json`; the output appears last and whole, or not at all.

    Args:
        train: the source, as in the audit; lines of TSV, CSV and JSONL keep their bytes, Parquet its columns, and
            other sources of queries become `id TAB text`.
    """
    spec = parse(str(train))
    if _holds_examples(spec, opened := open_audit(audit), rules):
        return _without_examples(spec, opened, Path(out), rules, judged)
    return _without_queries(spec, opened, Path(out), rules, judged)


def _holds_examples(spec: SourceSpec, audit: AuditResult, rules: LeakRules) -> bool:
    """Whether a source was read as examples, or would be."""
    sources = audit.summary["sources"]
    if spec.name in sources:
        return "roles" in sources[spec.name]
    return TrainingSource.of(spec.name, spec, DocumentOptions(), strict=rules.strict).roles != {"query"}


class _Sweep(NamedTuple):
    """What was read, left out and removed of a source; `texts` are the leaking ones that it holds."""

    read: int
    removed: int
    texts: Collection[str]
    skipped: int = 0
    empty: int = 0


def _rewritten(
    spec: SourceSpec,
    out: Path,
    sweep: Callable[[Target, IO[bytes]], _Sweep],
    about: tuple[LeakRules, Labels, Input, str | None],
) -> _Sweep:
    """Writes the cleaned file, the list of what is removed, and the manifest."""
    rules, judged, audit, fingerprint = about
    removed_file = _beside(out, "removed.tsv")
    options = {"remove": "train", "rules": rules, "votes": judged.votes}
    with started("leakage clean", label_inputs(judged), options, out, file=True) as job:
        with written(out) as target, written(removed_file) as listed, listed.open() as stream:
            swept = sweep(target, stream)
        job.note(out.name)
        job.note(removed_file.name)
        job.read(Input(spec.name, shown_source(spec), "train", swept.read, fingerprint), audit)
        job.skipped = {"skipped": swept.skipped, "empty": swept.empty}
    return swept


def _cleaning(out: Path, swept: _Sweep, **found: Any) -> TrainCleaning:
    """What was removed from a file, and where that is written."""
    return TrainCleaning(
        out=out, removed_file=_beside(out, "removed.tsv"), manifest_file=_beside(out, "manifest.json"),
        read=swept.read, kept=swept.read - swept.removed, removed=swept.removed, removed_queries=len(swept.texts),
        **found,
    )  # fmt: skip


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(f"{out.name}.{ending}")


def _hash_of(fingerprint: str, form: SourceForm) -> str | None:
    """The hash of a file, which its fingerprint begins with."""
    return fingerprint.removeprefix("sha256:").partition(";")[0] if form.path else None


def _without_queries(
    spec: SourceSpec, audit: AuditResult, out: Path, rules: LeakRules, judged: Labels
) -> TrainCleaning:
    form = form_of(spec, out)
    source = open_queries(spec, strict=rules.strict)
    judgments = opened_labels(judged)
    leaks = leaking_texts(audit, judgments, rules)

    def sweep(target: Target, listed: IO[bytes]) -> _Sweep:
        listed.write(("\t".join(_OF_QUERIES) + "\n").encode())
        sieve = _Sieve(leaks.by_text, listed)
        removed, skipped = rewrite(source, form, target, sieve, strict=rules.strict)
        if not sieve.read:
            raise InputError("no queries in it", "give a source that holds some", where=spec.location)
        return _Sweep(sieve.read, removed, sieve.seen, skipped, sieve.empty)

    swept = _rewritten(spec, out, sweep, (rules, judged, audit_input(audit), _hash_of(source.fingerprint, form)))
    topics = defaultdict[str, set[str]](set)
    for leak in (leak for key in swept.texts for leak in leaks.by_text[key]):
        topics[leak.test].add(leak.topic_id)
    missed = [pairs for text, pairs in leaks.by_text.items() if text not in swept.texts]
    return _cleaning(
        out,
        swept,
        topics={test or "(labels)": len(topics[test]) for test in sorted(topics)},
        not_found=sum(any(leak.source in ("", spec.name) for leak in pairs) for pairs in missed),
        threshold=audit.summary["threshold"],
        basis=rules.basis,
        judged=0 if judgments is None else len(judgments.pairs),
        left=leaks.left,
        warnings=tuple(_warnings(spec, source.fingerprint, audit, missed, swept.skipped)),
    )


def _without_examples(
    spec: SourceSpec, audit: AuditResult, out: Path, rules: LeakRules, judged: Labels
) -> TrainCleaning:
    judgments = opened_labels(judged)
    leaking, left = leaking_examples(audit, judgments, rules, spec.name)
    form = form_of(spec, out)
    if form.path is None or form.format not in ("jsonl", "csv", "tsv", "parquet"):
        raise InputError(
            "only files of records can be cleaned", "save it as JSONL or Parquet first", where=spec.location
        )
    about: Mapping[str, Any] = audit.summary["sources"].get(spec.name, {})
    named = about["roles"] if about.get("given") else None
    by_id = ExampleTexts(about.get("train_queries"), about.get("train_docs"))
    source = open_examples(spec, roles=named and named.replace(", ", ","), texts=by_id, strict=rules.strict)

    def sweep(target: Target, listed: IO[bytes]) -> _Sweep:
        listed.write(("\t".join(_OF_EXAMPLES) + "\n").encode())
        dropped, read, seen = [], 0, set[str]()
        for line, example_id, texts, _ in source.records():
            read += 1
            keys = {(role, normalise(text)) for role, text in texts}
            if reasons := leaking.reasons(keys):
                dropped.append(line)
                seen.update(text for _, text in keys & leaking.by_text.keys())
                cells = [";".join(sorted(set().union(*part))) for part in zip(*reasons, strict=True)]
                row = "\t".join(cell.translate(BREAKS) for cell in (example_id, *cells, str(line)))
                listed.write(f"{row}\n".encode())
        copy(form, target, dropped)
        return _Sweep(read, len(dropped), seen)

    swept = _rewritten(spec, out, sweep, (rules, judged, audit_input(audit), _hash_of(source.fingerprint, form)))
    return _cleaning(
        out,
        swept,
        topics={" ".join(audit.summary["tests"]): len(leaking.topics)},
        not_found=len({text for _, text in leaking.by_text}.difference(swept.texts)),
        threshold=None,
        basis=rules.basis,
        judged=0 if judgments is None else len(judgments.pairs),
        warnings=tuple(_changed(spec, source.fingerprint, audit, "examples")),
        left=left,
        of_examples=True,
    )


def leaking_examples(
    audit: AuditResult, judgments: Judgments | None, rules: LeakRules, source: str | None = None
) -> tuple[LeakingExamples, Mapping[str, int]]:
    """The texts by which examples go, and how many texts the audit lists that stay, by the reason."""
    kinds = set(rules.kinds or DEFAULT_KINDS)
    every, leaks = leaks_of(audit, judgments, rules.basis, kinds - {"query-query"})
    if source is not None:
        every, leaks = every.filter(source=source), leaks.filter(source=source)
    queries = leaking_texts(audit, judgments, rules) if "query-query" in kinds else None
    stay = every.join(leaks, on=_OF_LEAK, how="anti", nulls_equal=True)
    left = Counter({} if queries is None else queries.left)
    if stay.height:
        left[NOT_JUDGED if rules.basis == "labels-only" else JUDGED] += stay["training_text"].n_unique()
    return LeakingExamples.of(leaks, {} if queries is None else queries.by_text), dict(left)


def _joined(by_key: dict[tuple[str, str], list[tuple[str, str, str]]]) -> dict[tuple[str, str], LeakReason]:
    return {
        key: LeakReason(*(frozenset(filter(None, part)) for part in zip(*reasons, strict=True)))
        for key, reasons in by_key.items()
    }


def open_audit(source: AuditResult | str | Path) -> AuditResult:
    """The audit, from its folder where that is given, with its texts."""
    audit = opened_audit(source)
    if any(key_mark(text) for text in audit.candidates["query_text"].head(1)):
        raise InputError("the audit is redacted", "clean with the audit that holds the texts", where=audit.folder)
    return audit


def leaking_pairs(audit: AuditResult, judgments: Judgments | None, rules: LeakRules) -> Iterator[LeakPair]:
    """The pairs that count as leaks: leaks and doubts of the audit that nobody judged to be none, and judged leaks."""
    if rules.kinds and "query-query" not in rules.kinds:
        raise OptionError("kinds", f"queries do not leak as '{rules.kinds[0]}'", "leave it out, or add query-query")
    if rules.basis == "labels-only" and judgments is None:
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
        elif judged is None and rules.basis != "labels-only" and standing in ("leak", "doubt"):
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
    """The pairs by which queries go, by normalised text, the strongest reason first; what stays, by the reason."""

    by_text: dict[str, list[LeakPair]]
    left: Mapping[str, int]


def leaking_texts(audit: AuditResult, judgments: Judgments | None, rules: LeakRules) -> LeakingTexts:
    """The queries that leak by an audit and by what people said of its pairs."""
    by_text: defaultdict[str, list[LeakPair]] = defaultdict(list)
    for leak in leaking_pairs(audit, judgments, rules):
        by_text[leak.text].append(leak)
    for leaks in by_text.values():
        leaks.sort(key=lambda leak: (not leak.why.startswith("judged"), -(leak.similarity or 0.0)))
    return LeakingTexts(dict(by_text), _left(audit, judgments, by_text.keys(), rules.basis))


def _left(audit: AuditResult, judgments: Judgments | None, gone: Collection[str], basis: Basis) -> Mapping[str, int]:
    """The queries that the audit lists and that stay, by the reason."""
    reasons = (NOT_JUDGED if basis == "labels-only" else BELOW, RELATED, JUDGED)
    # A text in several pairs stays for the weakest reason.
    reason_of: dict[str, int] = {}
    columns = ("test", "topic_id", "query_id", "query_text", "standing", "differs")
    for test, topic, query, raw, standing, differs in audit.candidates.select(columns).iter_rows():
        if (text := mended(raw)) not in gone:
            pair = None if judgments is None else judgments.find(topic, raw, query, test)
            no_leak = standing == "dismissed" and not differs
            reason = 2 if no_leak or (pair is not None and pair.leak is False) else int(standing == "dismissed")
            reason_of[text] = min(reason_of.get(text, reason), reason)
    counts = {reasons[at]: sum(reason == at for reason in reason_of.values()) for at in (2, 1, 0)}
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


class _Sieve:
    """Says of each query whether it leaks, counts, and lists what it removes."""

    def __init__(self, leaks: Mapping[str, Sequence[LeakPair]], listed: IO[bytes]) -> None:
        self.read = self.empty = 0
        self.seen: set[str] = set()
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
        self.seen.add(key)
        leak = leaks[0]
        similarity = "" if leak.similarity is None else f"{leak.similarity:.6f}"
        line = str(record.line) if record.line else ""
        cells = (
            record.query_id, record.text, leak.test, leak.topic_id, leak.field, similarity, leak.type, leak.why, line,
        )  # fmt: skip
        self._listed.write(("\t".join(cell.translate(BREAKS) for cell in cells) + "\n").encode())
        return True


def _warnings(
    spec: SourceSpec, fingerprint: str, audit: AuditResult, missed: Sequence[Sequence[LeakPair]], skipped: int
) -> Iterator[str]:
    if skipped:
        yield f"{skipped:,d} records hold no readable query; they were kept unseen."
    yield from _changed(spec, fingerprint, audit, "queries")
    if lost := sum(any(leak.source == spec.name for leak in pairs) for pairs in missed):
        yield f"{lost:,d} leaking queries that the audit found in {spec.name} are not in it."
    if (mode := audit.summary["mode"]) != "exhaustive":
        yield f"The audit ran in {mode} mode and may have missed leaking queries."


def _changed(spec: SourceSpec, fingerprint: str, audit: AuditResult, noun: str) -> Iterator[str]:
    """That a source is not the one that was audited."""
    sources = audit.summary["sources"]
    if spec.name not in sources:
        yield (
            f"The audit did not read {spec.name} (it read {', '.join(sources)}): only {noun} that leak from those "
            "sources were looked for."
        )
    elif sources[spec.name].get("fingerprint") not in (None, fingerprint):
        yield f"{spec.name} has changed since the audit: {noun} that are new in it were not audited."
