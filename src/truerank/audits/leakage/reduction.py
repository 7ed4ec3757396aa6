"""Act, the other way round: the test set without the leaked topics, and what can still be shown with what is left."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from truerank.audits.leakage.clean import Cleaning, LeakRules, audit_input, leaking_pairs, open_audit
from truerank.audits.leakage.filters import (
    BREAKS,
    SourceForm,
    Target,
    copy,
    form_of,
    output_format,
    refuse_overwrite,
    written,
)
from truerank.audits.leakage.options import opened_labels
from truerank.audits.leakage.results import AuditResult
from truerank.errors import InputError
from truerank.judging.ratings import label_inputs
from truerank.measures import detectable_difference
from truerank.options import Labels
from truerank.records import Topic
from truerank.sources import SourceSpec, TopicSet, compressed, formats, parse, query_files, read_topics
from truerank.sources.inputs import input_of
from truerank.sources.query_files import as_text, file_queries
from truerank.sources.rows import rows
from truerank.work.runs import run as started

#: Usual standard deviations of differences.
_SDS: Final = (0.1, 0.2, 0.3)
_TREC: Final = re.compile(rb"<(?:top|doc)\b[^>]*>", re.IGNORECASE)
_XML: Final = tuple(
    re.compile(
        rb"(?:(?<=\n)[ \t]*)?<((?:\w+:)?(?:" + names + rb"))\b(?:[^>]*/>|.*?</\1\s*>)(?:[ \t]*\r?\n)?",
        re.IGNORECASE | re.DOTALL,
    )
    for names in (rb"topic|top", rb"query|doc")
)
_COMMENT: Final = re.compile(rb"<!--.*?-->", re.DOTALL)
_TREC_END: Final = re.compile(rb"</(?:top|doc)\s*>[ \t]*\r?\n?", re.IGNORECASE)


class Detectable(NamedTuple):
    """The smallest true difference between two systems that a paired t-test finds, before and after the reduction.

    `sd` is the standard deviation of the per-topic differences. None where too few topics are left.
    """

    sd: float
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False, repr=False)
class TestReduction(Cleaning):
    """A test set without the topics that the training data leaks.

    Attributes:
        out: the reduced topic file.
        test: the test set's name in the audit.
        before, after: number of topics.
        removed: ids of the topics that were left out, in their order.
        detectable: by standard deviation.
        power, alpha: of the two-sided test.
    """

    __test__: ClassVar[bool] = False

    test: str
    before: int
    after: int
    removed: tuple[str, ...]
    detectable: tuple[Detectable, ...]
    power: float = 0.8
    alpha: float = 0.05


def reduce_topics(
    test: str | Path,
    audit: AuditResult | str | Path,
    out: str | Path,
    *,
    test_set: str | None = None,
    rules: LeakRules = LeakRules(),
    judged: Labels = Labels(),
) -> TestReduction:
    """Writes a test set again without the topics that the training data leaks.

    TREC topics, web XML, TSV, CSV and JSONL keep the bytes of the topics that stay; Parquet its columns; other
    sources become TSV (`id TAB title`) or JSONL (all fields), as the name of the output says.
    """
    out, spec, opened = Path(out), parse(str(test)), open_audit(audit)
    name = _name(spec, opened, test_set)
    topics = read_topics(spec)
    judgments = opened_labels(judged)
    leaks = leaking_pairs(opened, judgments, rules)
    leaked = {leak.topic_id for leak in leaks if leak.test in ("", name)}
    removed = tuple(topic.topic_id for topic in topics.topics if topic.topic_id in leaked)
    before, after = len(topics.topics), len(topics.topics) - len(removed)
    if not after:
        raise InputError(
            "every topic leaks, nothing would remain", "clean the training data instead", where=spec.location
        )
    if leaked and not removed:
        raise InputError(
            f"it holds none of the leaked topics of {name}", "give the audited topics", where=spec.location
        )
    options = {"remove": "test", "test_set": name, "rules": rules, "votes": judged.votes}
    read = (input_of("test", test, rows=before), audit_input(opened), *label_inputs(judged))
    with started("leakage clean", read, options, out, file=True) as job:
        with written(out) as target:
            _write(spec, topics, frozenset(removed), target, out)
        job.note(out.name)
        job.skipped = {"leaked_topics": list(removed)}
    detectable = tuple(
        Detectable(sd, detectable_difference(before, sd), detectable_difference(after, sd)) for sd in _SDS
    )
    return TestReduction(out, name, before, after, removed, detectable)


def _name(spec: SourceSpec, audit: AuditResult, name: str | None) -> str:
    tests = audit.summary["tests"]
    if name is None:
        name = spec.name if spec.name in tests or len(tests) > 1 else next(iter(tests))
    if name not in tests:
        fault = f"the audit has no test set '{name}', it has {', '.join(tests)}"
        raise InputError(fault, "say which one with --test-set", where=spec.location)
    return name


def _write(spec: SourceSpec, topics: TopicSet, removed: frozenset[str], target: Target, out: Path) -> None:
    form = ""
    if spec.scheme == "file":
        form = formats.detect(spec.path if spec.path.is_dir() else compressed.checked_file(spec.path), spec.format)
    if form in ("trec", "xml"):
        refuse_overwrite(spec.path, out)
        if output_format(out):
            raise InputError("the output keeps the source's format", f"name it like {spec.path.name}", where=out)
        _write_marked(spec.path, form, removed, target)
    elif form in ("tsv", "lines", "csv", "jsonl", "parquet", "beir"):
        kept_form = form_of(spec, out)
        copy(kept_form, target, _positions(kept_form, spec, topics, removed))
        form = kept_form.format
    else:
        _write_fields([topic for topic in topics.topics if topic.topic_id not in removed], target, out)
        return
    _check(spec, form, topics, removed, target)


def _write_marked(path: Path, form: str, removed: frozenset[str], target: Target) -> None:
    """TREC topics and XML: the bytes of the records that stay, and all that stands between them."""
    content = b"".join(compressed.chunks(path))
    marked = list(query_files.marked_topics(path, xml=form == "xml"))
    spans = _trec_spans(content) if form == "trec" else _xml_spans(content)
    if len(spans) != len(marked):
        raise InputError("the topics cannot be told apart", "convert them to TSV", where=path)
    with target.open() as stream:
        end = 0
        for (start, stop), item in zip(spans, marked, strict=True):
            if item.topic.topic_id in removed:
                stream.write(content[end:start])
                end = stop
        stream.write(content[end:])


def _trec_spans(content: bytes) -> list[tuple[int, int]]:
    """From each opening tag to the next one; the last record ends with its end tag."""
    starts = [match.start() for match in _TREC.finditer(content)]
    if not starts:
        return []
    last = _TREC_END.search(content, starts[-1])
    return list(zip(starts, [*starts[1:], last.end() if last else len(content)], strict=True))


def _xml_spans(content: bytes) -> list[tuple[int, int]]:
    """Each record with the blanks before it and the line end behind it."""
    visible = _COMMENT.sub(lambda match: b" " * len(match[0]), content)
    return next(filter(None, ([match.span() for match in record.finditer(visible)] for record in _XML)), [])


def _positions(form: SourceForm, spec: SourceSpec, topics: TopicSet, removed: frozenset[str]) -> list[int]:
    """The lines (rows) of the topics to leave out; the id column is the one that holds the ids of all topics."""
    if form.path is None:
        raise ValueError("only files have lines")
    wanted = {topic.topic_id for topic in topics.topics}
    if form.format in ("tsv", "lines"):
        blocks = list(file_queries(form.path, form.format, spec.column, single=spec.format == "lines"))
        ids = [(query_id, line) for block in blocks for query_id, line in zip(block.ids, block.lines, strict=True)]
        if wanted <= {query_id for query_id, _ in ids}:
            return [line for query_id, line in ids if query_id in removed]
    records = list(rows(form.path, "tsv" if form.format == "lines" else form.format))
    for key in dict.fromkeys(name for record in records for name in record.values):
        ids = [((as_text(record.values.get(key)) or "").strip(), record.line) for record in records]
        if wanted <= {topic_id for topic_id, _ in ids}:
            return [line for topic_id, line in ids if topic_id in removed]
    return [record.line for record in records if str(record.line) in removed]


def _write_fields(topics: Sequence[Topic], target: Target, out: Path) -> None:
    """Sources that are not files of lines: ids and titles as TSV, or all fields as JSONL."""
    named = output_format(out)
    if named not in ("tsv", "jsonl"):
        raise InputError(
            "such topics are written as TSV or JSONL", "give --out a name that ends in .tsv or .jsonl", where=out
        )
    with target.open() as stream:
        for topic in topics:
            if named == "tsv":
                line = f"{topic.topic_id.translate(BREAKS)}\t{topic.title.translate(BREAKS)}"
            else:
                fields = {"_id": topic.topic_id, **{key: value for key, value in topic._asdict().items() if value}}
                line = json.dumps({key: fields[key] for key in fields if key != "topic_id"}, ensure_ascii=False)
            stream.write(f"{line}\n".encode())


def _check(spec: SourceSpec, form: str, topics: TopicSet, removed: frozenset[str], target: Target) -> None:
    """Reads back what was written: the topics that stay, each as it was."""
    written_topics = read_topics(replace(spec, location=str(target.path), format=form)).topics
    wanted = {topic.topic_id for topic in topics.topics}
    left = [topic for topic in written_topics if topic.topic_id in wanted]
    if left != [topic for topic in topics.topics if topic.topic_id not in removed]:
        raise InputError("the topics cannot be told apart", "convert them to TSV or JSONL", where=spec.location)
