"""Act: the training data, or the training corpus, without the examples that leak."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.leakage.clean import (
    JUDGED,
    NOT_JUDGED,
    Basis,
    Cleaning,
    LeakPair,
    LeakRules,
    TrainCleaning,
    audit_input,
    leaking_texts,
)
from truerank.audits.leakage.filters import (
    BREAKS,
    SourceForm,
    Target,
    copy,
    copy_spans,
    form_of,
    output_format,
    refuse_overwrite,
    written,
)
from truerank.audits.leakage.kinds import DEFAULT_KINDS, kind_named, leaks_of
from truerank.audits.leakage.options import opened_labels
from truerank.audits.leakage.results import AuditResult, opened_audit
from truerank.errors import InputError, OptionError
from truerank.judging.labels import Judgments
from truerank.judging.ratings import label_inputs
from truerank.measures.placebo import Placebo
from truerank.options import Labels
from truerank.records import Document, Qrel
from truerank.sources import SourceSpec, formats, open_examples, parse
from truerank.sources.documents import DocumentSource, FoundDocument, document_form, open_documents
from truerank.sources.examples import ExampleTexts
from truerank.sources.inputs import input_of
from truerank.sources.qrels import qrel_lines, qrels_path, read_qrels
from truerank.text.normalising import normalise
from truerank.text.printable import first_few
from truerank.work.runs import run as started

#: What makes a leak one of its own.
_OF_LEAK: Final = ("kind", "topic_id", "doc_id", "role", "training_text", "training_document")
_REMOVED: Final = ("example_id", "kinds", "topics", "documents", "line")


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
        found = [self.by_text[key] for key in sorted(keys & self.by_text.keys())]
        return found + [self.by_pair[pair] for pair in product(queries, positives) if pair in self.by_pair]


def clean_examples(
    train: str | Path, audit: AuditResult | str | Path, out: str | Path, rules: LeakRules, judged: Labels = Labels()
) -> TrainCleaning:
    """Writes training examples again without those that hold a leaking text; the others keep their bytes.

    An example with a query and a positive that leak together goes only for the kind "pair" where no other kind counts.
    """
    out, spec = Path(out), parse(str(train))
    found, judgments = opened_audit(audit), opened_labels(judged)
    leaking, left = leaking_examples(found, judgments, rules, spec.name)
    form = form_of(spec, out)
    if form.path is None or form.format not in ("jsonl", "csv", "tsv", "parquet"):
        raise InputError(
            "only files of records can be cleaned", "save it as JSONL or Parquet first", where=spec.location
        )
    known: Mapping[str, Any] = found.summary["sources"].get(spec.name, {})
    named = known["roles"] if known.get("given") else None
    by_id = ExampleTexts(known.get("train_queries"), known.get("train_docs"))
    source = open_examples(spec, roles=named and named.replace(", ", ","), texts=by_id, strict=rules.strict)
    dropped, lost, read, seen = [], [], 0, set[str]()
    for line, example_id, texts, _ in source.records():
        read += 1
        keys = {(role, normalise(text)) for role, text in texts}
        reasons = leaking.reasons(keys)
        if reasons:
            dropped.append(line)
            seen.update(text for _, text in keys & leaking.by_text.keys())
            cells = [";".join(sorted(set().union(*part))) for part in zip(*reasons, strict=True)]
            lost.append("\t".join(cell.translate(BREAKS) for cell in (example_id, *cells, str(line))))
    removed_file = out.with_name(f"{out.name}.removed.tsv")
    given = {"remove": "train", "rules": rules, "votes": judged.votes}
    with started("leakage clean", label_inputs(judged), given, out, file=True) as job:
        with written(out) as target, written(removed_file) as listed:
            copy(form, target, dropped)
            with listed.open() as stream:
                stream.write("".join(f"{row}\n" for row in ("\t".join(_REMOVED), *lost)).encode())
        job.note(out.name)
        job.note(removed_file.name)
        job.read(input_of("train", str(train), rows=read), audit_input(found))
    wanted = {text for _, text in leaking.by_text}
    return TrainCleaning(
        out=out,
        removed_file=removed_file,
        manifest_file=out.with_name(f"{out.name}.manifest.json"),
        read=read,
        kept=read - len(dropped),
        removed=len(dropped),
        removed_queries=len(seen),
        topics={" ".join(found.summary["tests"]): len(leaking.topics)},
        not_found=len(wanted - seen),
        threshold=None,
        basis=rules.basis,
        judged=0 if judgments is None else len(judgments.pairs),
        warnings=tuple(_changed(spec.name, found, source.fingerprint)),
        left=left,
        of_examples=True,
    )


def leaking_examples(
    found: AuditResult, judgments: Judgments | None, rules: LeakRules, source: str | None = None
) -> tuple[LeakingExamples, Mapping[str, int]]:
    """The texts by which examples go, and how many texts the audit lists that stay, by the reason."""
    kinds = set(rules.kinds or DEFAULT_KINDS)
    every, leaks = leaks_of(found, judgments, rules.basis, kinds - {"query-query"})
    if source is not None:
        every, leaks = every.filter(source=source), leaks.filter(source=source)
    queries = leaking_texts(found, judgments, rules) if "query-query" in kinds else None
    stay = every.join(leaks, on=_OF_LEAK, how="anti", nulls_equal=True)
    left = Counter({} if queries is None else queries.left)
    if stay.height:
        left[NOT_JUDGED if rules.basis == "labels-only" else JUDGED] += stay["training_text"].n_unique()
    return LeakingExamples.of(leaks, {} if queries is None else queries.by_key), dict(left)


def _joined(found: dict[tuple[str, str], list[tuple[str, str, str]]]) -> dict[tuple[str, str], LeakReason]:
    return {
        key: LeakReason(*(frozenset(filter(None, part)) for part in zip(*reasons, strict=True)))
        for key, reasons in found.items()
    }


def _changed(name: str, found: AuditResult, fingerprint: str) -> list[str]:
    known = found.summary["sources"].get(name)
    if known is None:
        read = ", ".join(found.summary["sources"])
        return [f"The audit did not read {name} (it read {read}): only its own sources' examples were looked for."]
    if known.get("fingerprint") != fingerprint:
        return [f"{name} has changed since the audit: examples that are new in it were not audited."]
    return []


_DROPPED: Final = ("doc_id", "kinds", "sources", "examples", "why", "line")
_TABLES: Final = ("lines", "tsv", "csv", "jsonl", "parquet", "beir")


class JudgmentCounts(NamedTuple):
    """What became of the judgments: those of removed documents were left out, and those of topics that `lost` each
    relevant document.
    """

    read: int
    of_documents: int
    of_topics: int
    topics: int
    lost: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class CorpusReduction(Cleaning):
    """A corpus without the documents that leak, and the judgments without theirs.

    Attributes:
        out: the reduced corpus.
        removed_file: what was removed and why, one line per record.
        qrels_file: the judgments that stay; None without judgments.
        manifest_file: where it comes from.
        test: the test set's name in the audit.
        read: documents read.
        removed: documents that were left out.
        kinds: by kind of leak, how many distinct documents leak.
        ids: the ids of the documents that leak.
        not_found: leaking documents of the audit that this corpus does not hold.
        cleared: documents of the audit that stay because their pairs were judged no leaks.
        basis: how labels and the audit were combined.
        judged: number of judged pairs that were given.
        kept: documents that stay.
        judgments: what became of the judgments; None where none were given.
        warnings: what a user must know, one sentence each.
        placebos: with runs, the removal of these documents beside that of as many random ones, by measure.
        matched_by: what random documents share with the removed ones.
    """

    removed_file: Path
    qrels_file: Path | None
    manifest_file: Path
    test: str
    read: int
    removed: int
    kinds: dict[str, int]
    ids: tuple[str, ...]
    not_found: int
    cleared: int
    basis: Basis
    judged: int
    kept: int
    judgments: JudgmentCounts | None
    warnings: tuple[str, ...]
    placebos: tuple[Placebo, ...] = ()
    matched_by: str | None = None


class _Leak(NamedTuple):
    kinds: tuple[str, ...]
    sources: tuple[str, ...]
    examples: tuple[str, ...]
    why: str


def reduce_corpus(
    docs: str | Path,
    audit: AuditResult | str | Path,
    out: str | Path,
    *,
    test_set: str | None = None,
    qrels: str | Path | None = None,
    rules: LeakRules = LeakRules(),
    judged: Labels = Labels(),
) -> CorpusReduction:
    """Writes a corpus again without the documents that leak, and the judgments without theirs.

    Files of JSONL, CSV, TSV, lines, Parquet and `<DOC>` records keep the bytes of the documents that stay; other
    sources become JSONL. The corpus is streamed: memory grows with what leaks alone. A topic that loses each relevant
    document leaves the judgments, too: there is nothing left to find.
    """
    out, spec = Path(out), parse(str(docs))
    found, judgments = opened_audit(audit), opened_labels(judged)
    test = _audited_test(found, test_set)
    leaking, cleared = _leaking(found, test, judgments, rules)
    form = _form(spec, out)
    left = None if qrels is None else _judgments(str(qrels), leaking.keys())
    removed_file, qrels_file = (out.with_name(f"{out.name}.{name}") for name in ("removed.tsv", "qrels"))
    if qrels is not None and parse(str(qrels)).scheme == "file":
        refuse_overwrite(qrels_path(parse(str(qrels)).path), qrels_file)
    source = open_documents(spec, strict=rules.strict)
    sieve = _Sieve(leaking)
    given = {"remove": "docs", "rules": rules, "votes": judged.votes}
    with started("leakage clean", label_inputs(judged), given, out, file=True) as job, ExitStack() as files:
        target, listed = files.enter_context(written(out)), files.enter_context(written(removed_file))
        _write(source, form, target, sieve)
        _check(sieve, leaking, test, spec)
        with listed.open() as stream:
            stream.writelines(f"{row}\n".encode() for row in ("\t".join(_DROPPED), *sieve.rows))
        names = [out.name, removed_file.name]
        if qrels is not None and left is not None:
            with files.enter_context(written(qrels_file)).open() as stream:
                stream.writelines(_kept_lines(str(qrels), leaking.keys(), frozenset(left.lost)))
            names.append(qrels_file.name)
            job.read(input_of("qrels", str(qrels), rows=left.read))
        files.close()
        for name in names:
            job.note(name)
        job.read(input_of("docs", str(docs), rows=sieve.read), audit_input(found))
        job.skipped = {"leaking_documents": sieve.removed, "topics": list(left.lost) if left else []}
    return CorpusReduction(
        out=out,
        removed_file=removed_file,
        qrels_file=None if qrels is None else qrels_file,
        manifest_file=out.with_name(f"{out.name}.manifest.json"),
        test=test,
        read=sieve.read,
        removed=sieve.removed,
        kinds=dict(Counter(kind for leak in leaking.values() for kind in leak.kinds)),
        ids=tuple(leaking),
        not_found=len(leaking) - len(sieve.seen),
        cleared=cleared,
        basis=rules.basis,
        judged=0 if judgments is None else len(judgments.pairs),
        kept=sieve.read - sieve.removed,
        judgments=left,
        warnings=tuple(_warnings(found.summary["tests"][test].get("documents", {}), sieve, left, form)),
    )


def _audited_test(found: AuditResult, name: str | None) -> str:
    """The test set whose documents were compared."""
    tests = [test for test, about in found.summary["tests"].items() if about.get("documents", {}).get("read")]
    if name is not None and name in tests:
        return name
    if not tests or name is not None:
        fault = "the audit compared no documents" + (f" of '{name}'" if name else "")
        remedy = "audit training data with documents against a test set with its documents (--docs)"
        raise InputError(fault, remedy, where=found.folder)
    if len(tests) > 1:
        raise OptionError("test_set", f"the audit has documents of {', '.join(tests)}", "choose one")
    return tests[0]


def _leaking(
    found: AuditResult, test: str, judgments: Judgments | None, rules: LeakRules
) -> tuple[dict[str, _Leak], int]:
    """The documents that go, by id, and how many stay because people said so."""
    if rules.match != "text":
        raise OptionError("match", "documents are found by the audit alone", "leave it out")
    if of_queries := [kind for kind in rules.kinds if kind_named(kind).test == "query"]:
        fault = f"'{of_queries[0]}' is a leak of queries"
        raise OptionError("kinds", fault, "remove `test` for those, or name kinds of documents")
    kinds = rules.kinds or tuple(kind for kind in DEFAULT_KINDS if kind_named(kind).test != "query")
    every, counted = leaks_of(found, judgments, rules.basis, kinds, test)
    columns = ("doc_id", "kind", "source", "example_id", "judged")
    leaks = defaultdict[str, list[tuple[str, str, str, bool]]](list)
    for doc, *pair in counted.select(columns).iter_rows():
        leaks[doc].append((pair[0], pair[1], pair[2], pair[3]))
    by_id = {}
    for doc, pairs in leaks.items():
        parts = [tuple(dict.fromkeys(filter(None, part))) for part in zip(*(pair[:3] for pair in pairs), strict=True)]
        said = any(pair[3] for pair in pairs)
        by_id[doc] = _Leak(parts[0], parts[1], parts[2], "judged a leak" if said else "found by the audit")
    return by_id, every["doc_id"].n_unique() - len(by_id)


def _form(spec: SourceSpec, out: Path) -> SourceForm:
    """The form that the output has: the source's, or JSONL; with the format "trec" for `<DOC>` records."""
    form = document_form(spec.path, spec.format) if spec.scheme == "file" else ""
    if form in _TABLES:
        path = formats.corpus_file(spec.path) if form == "beir" else spec.path
        return form_of(replace(spec, location=str(path), format=None if form == "beir" else spec.format), out)
    path = spec.path if form == "trec" else None
    refuse_overwrite(path, out)
    if path is None and output_format(out) != "jsonl":
        raise InputError("such a corpus is written as JSONL", "give --out a name that ends in .jsonl", where=out)
    if path is not None and output_format(out):
        raise InputError("the output keeps the source's format", f"name it like {path.name}", where=out)
    return SourceForm(path, form if path is not None else "")


class _Sieve:
    """Counts documents, and lists those that go."""

    def __init__(self, leaks: dict[str, _Leak]) -> None:
        self.read = self.removed = 0
        self.seen: set[str] = set()
        self.rows: list[str] = []
        self._leaks = leaks

    def leaks(self, document: Document, line: int) -> bool:
        self.read += 1
        leak = self._leaks.get(document.doc_id)
        if leak is None:
            return False
        self.removed += 1
        self.seen.add(document.doc_id)
        cells = (document.doc_id, *(";".join(part) for part in leak[:3]), leak.why, str(line) if line else "")
        self.rows.append("\t".join(cell.translate(BREAKS) for cell in cells))
        return True


def _write(source: DocumentSource, form: SourceForm, target: Target, sieve: _Sieve) -> None:
    documents = (one for block in source.records() for one in block)
    if form.path is None:
        with target.open() as stream:
            for document, _, line, _ in documents:
                if not sieve.leaks(document, line):
                    names = {"_id": document.doc_id, "url": document.url, "title": document.title}
                    shown = {name: text for name, text in names.items() if text or name == "_id"}
                    record = json.dumps(shown | {"text": document.body}, ensure_ascii=False)
                    stream.write(f"{record}\n".encode("utf-8", "surrogatepass"))
    elif form.format == "trec":
        copy_spans(form.path, target, _spans(form.path, documents, sieve))
    else:
        copy(form, target, (one.line for one in documents if sieve.leaks(one.document, one.line)))


def _spans(path: Path, documents: Iterable[FoundDocument], sieve: _Sieve) -> Iterator[tuple[int, int | None]]:
    """The lines of the `<DOC>` records that go: from the first one to that of the next record that stays."""
    first: int | None = None
    last = 0
    for one in documents:
        if one.line <= last:
            raise InputError("two documents on one line", "write each on lines of its own", where=path, line=one.line)
        last = one.line
        leaks = sieve.leaks(one.document, one.line)
        if leaks and first is None:
            first = one.line
        elif not leaks and first is not None:
            yield first, one.line
            first = None
    if first is not None:
        yield first, None


def _check(sieve: _Sieve, leaking: Mapping[str, _Leak], test: str, spec: SourceSpec) -> None:
    if sieve.read == sieve.removed:
        fault = "every document leaks, nothing would remain"
        raise InputError(fault, "clean the training data instead", where=spec.location)
    if leaking and not sieve.removed:
        fault = f"it holds none of the leaking documents of {test}"
        raise InputError(fault, "give the audited corpus", where=spec.location)


def _judgments(qrels: str, gone: Collection[str]) -> JudgmentCounts:
    """What becomes of the judgments without some documents."""
    read = of_documents = 0
    before, after, others = Counter[str](), Counter[str](), Counter[str]()
    for qrel in read_qrels(qrels):
        read += 1
        before[qrel.topic_id] += qrel.relevance >= 1
        if qrel.doc_id in gone:
            of_documents += 1
        else:
            after[qrel.topic_id] += qrel.relevance >= 1
            others[qrel.topic_id] += 1
    lost = tuple(topic for topic, count in before.items() if count and not after[topic])
    topics = sum(count > 0 for count in before.values())
    if topics == len(lost):
        raise InputError("no topic keeps a relevant document", "clean the training data instead", where=qrels)
    return JudgmentCounts(read, of_documents, sum(others[topic] for topic in lost), topics, lost)


def _kept_lines(qrels: str, gone: Collection[str], topics: Collection[str]) -> Iterator[bytes]:
    """The judgments that stay; lines of a file keep their bytes."""
    if parse(qrels).scheme != "file":
        for one in read_qrels(qrels):
            if one.doc_id not in gone and one.topic_id not in topics:
                yield f"{one.topic_id} {one.iteration} {one.doc_id} {one.relevance}\n".encode()
        return
    for line in qrel_lines(qrels):
        if isinstance(line.said, InputError):
            raise line.said
        if not isinstance(line.said, Qrel) or (line.said.doc_id not in gone and line.said.topic_id not in topics):
            yield line.raw + b"\n"


def _warnings(
    documents: Mapping[str, int], sieve: _Sieve, left: JudgmentCounts | None, form: SourceForm
) -> Iterator[str]:
    audited = documents.get("read")
    if audited and audited != sieve.read:
        yield f"The audit compared {audited:,d} documents, this corpus has {sieve.read:,d}: others were not audited."
    if left is None:
        yield "No judgments were given: take these documents out of yours, too."
    elif left.lost:
        yield (
            f"{len(left.lost):,d} of {left.topics:,d} topics lose each relevant document, and all of their judgments "
            f"are left out: {first_few(left.lost, 10)}."
        )
    if form.path is None:
        yield "The corpus is written as JSONL: its own form cannot be kept."
