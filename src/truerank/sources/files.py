"""The queries of one file, whatever its format, TREC topics among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

from truerank.errors import InputError
from truerank.records import Topic
from truerank.sources import beir, tables
from truerank.sources.blocks import RawBlock
from truerank.sources.lines import whole_text
from truerank.sources.rows import rows

_TREC_BLOCK: Final = 1000


def file_queries(
    path: Path, form: str, column: str | None = None, *, single: bool = False, strict: bool = False
) -> Iterator[RawBlock]:
    """The queries of a file.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    if form in ("tsv", "lines"):
        return tables.line_queries(path, column, single=single, strict=strict)
    if form == "parquet":
        return tables.parquet_queries(path, column)
    if form == "qna":
        return tables.qna_queries(path, column, strict=strict)
    if form == "trec":
        return _titles(trec_topics(path, strict=strict))
    if form == "xml":
        return _titles(xml_topics(path, strict=strict))
    if form == "beir":
        path, form = beir.queries_file(path), "jsonl"
    return tables.row_queries(rows(path, form, strict=strict), column, path)


def _titles(found: Iterator[FoundTopic]) -> Iterator[RawBlock]:
    while taken := list(islice(found, _TREC_BLOCK)):
        topics = [item.topic for item in taken]
        yield RawBlock(
            [topic.topic_id for topic in topics],
            [topic.title for topic in topics],
            [item.line for item in taken],
            repaired=sum(item.repaired for item in taken),
        )


_RECORD: Final = re.compile(r"<(top|doc)\b[^>]*>", re.IGNORECASE)
_TAG: Final = re.compile(
    r"<(?P<end>/?)(?P<name>num|number|docno|title|desc|description|narr|narrative|query|question|dom|head|con|fac|def|smry"
    r"|nat|time|text|top|doc)\b[^>]*>",
    re.IGNORECASE,
)
#: What stands after a tag without belonging to the text: the field's name, then a colon or the end of the line.
_PREFIXES: Final = {
    "num": re.compile(r"\s*Number\s*:", re.IGNORECASE),
    "title": re.compile(r"\s*(?:Topic|Title)\s*:", re.IGNORECASE),
    "desc": re.compile(r"\s*Description\s*(?::|\n)", re.IGNORECASE),
    "narr": re.compile(r"\s*Narrative\s*(?::|\n)", re.IGNORECASE),
}
_SAME: Final = {
    "number": "num", "docno": "num", "description": "desc", "narrative": "narr", "query": "title", "question": "desc",
    "text": "",
}  # fmt: skip


class FoundTopic(NamedTuple):
    """A topic, the line where it begins, and whether one of its lines was repaired."""

    topic: Topic
    line: int
    repaired: bool


def trec_topics(path: Path, *, strict: bool = False) -> Iterator[FoundTopic]:
    """The topics of a file of `<top>` (or `<DOC>`) records, in order.

    A field goes on to the next known tag, to its end tag or to the end of the record; the words "Number:",
    "Description:", "Narrative:" behind a tag are dropped and lines are joined with a blank. Text of a `<DOC>` outside
    any field is its title.
    """
    text, repaired = whole_text(path, strict=strict)
    starts = list(_RECORD.finditer(text))
    if not starts:
        raise InputError(
            "no topics: there is no <top>", "give a TREC topic file, or name its format with ?format=", where=path
        )
    line, counted = 1, 0
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        stop = len(text) if following is None else following.start()
        line += text.count("\n", counted, start.start())
        counted = start.start()
        fields = _fields(text[start.end() : stop])
        number = fields.get("num", "")
        if not number:
            raise InputError(f"a <{start[1]}> without number", "add <num> to it", where=path, line=line)
        last = line + text.count("\n", start.start(), stop)
        title = fields.get("title") or fields.get("", "")
        topic = Topic(number, title, fields.get("desc", ""), fields.get("narr", ""))
        yield FoundTopic(topic, line, any(line <= number < last for number in repaired) or last in repaired)


def xml_topics(path: Path, *, strict: bool = False) -> Iterator[FoundTopic]:
    """The topics of an XML file: the web tracks' (query, subtopics), TREC-COVID's (query, question, narrative).

    Every `<topic>` (or `<query>` with an id) is one; its number is the attribute `number`, `id`, `qid` or an element
    of such a name. The title is `<title>` or `<query>`, the description `<description>` or `<question>`, the narrative
    `<narrative>` or all `<subtopic>` joined. A topic that holds nothing but text has that as its title.
    """
    text, repaired = whole_text(path, strict=strict)
    if "<!ENTITY" in text:
        raise InputError("the file defines XML entities", "replace them by their texts", where=path)
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", lambda match: "\n" * match[0].count("\n"), text))
    except (ElementTree.ParseError, ValueError) as error:
        line = getattr(error, "position", (None,))[0]
        raise InputError(
            f"no well-formed XML ({error})", "correct it, for example write & as &amp;", where=path, line=line
        ) from error
    found = [element for element in root.iter() if _local(element) in ("topic", "top")] or [
        element for element in root.iter() if _local(element) in ("query", "doc") and _number(element)
    ]
    if not found:
        raise InputError(
            "no topics: there is no <topic>", "give a TREC topic file, or name its format with ?format=", where=path
        )
    lines = _lines_of(text, _local(found[0]), len(found))
    for element, line in zip(found, lines, strict=True):
        number = _number(element)
        if not number:
            raise InputError("a <topic> without number", 'write <topic number="…">', where=path, line=line)
        yield FoundTopic(_xml_topic(element, number), line, line in repaired)


def _fields(record: str) -> dict[str, str]:
    """The fields of a record by their short names; text outside any field under ""."""
    fields: dict[str, str] = {}
    name, begin = "", 0
    for tag in _TAG.finditer(record):
        _add(fields, name, record[begin : tag.start()])
        kind = tag["name"].lower()
        name = "" if tag["end"] else _SAME.get(kind, kind)
        begin = tag.end()
        if tag["end"] and kind in ("top", "doc"):
            return fields
    _add(fields, name, record[begin:])
    return fields


def _add(fields: dict[str, str], name: str, text: str) -> None:
    if name in _PREFIXES:
        text = _PREFIXES[name].sub("", text, count=1) if _PREFIXES[name].match(text) else text
    text = " ".join(text.split())
    if text:
        fields[name] = f"{fields[name]} {text}" if name in fields else text


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _number(element: ElementTree.Element) -> str:
    for name in ("number", "num", "id", "qid", "topic_id"):
        if value := element.get(name, "").strip():
            return value
    return _child_text(element, ("number", "num", "qid", "id", "docno"))


def _xml_topic(element: ElementTree.Element, number: str) -> Topic:
    title = _child_text(element, ("title",)) or _child_text(element, ("query",))
    description = _child_text(element, ("description", "desc")) or _child_text(element, ("question",))
    narrative = _child_text(element, ("narrative", "narr")) or _child_text(element, ("subtopic",))
    return Topic(number, title or ("" if len(element) else _words(element)), description, narrative)


def _child_text(element: ElementTree.Element, names: tuple[str, ...]) -> str:
    return " ".join(filter(None, (_words(child) for child in element if _local(child) in names)))


def _words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _lines_of(text: str, name: str, count: int) -> list[int]:
    """The lines of the opening tags; ElementTree does not keep them. Tags in comments make the count differ: then 1."""
    lines, line, counted = [], 1, 0
    for tag in re.finditer(rf"<(?:\w+:)?{name}\b", text, re.IGNORECASE):
        line += text.count("\n", counted, tag.start())
        counted = tag.start()
        lines.append(line)
    return lines if len(lines) == count else [1] * count
