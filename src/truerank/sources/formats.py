"""Which format a file has, by its ending, or by its content where the ending does not say; BEIR folders."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import Final

from truerank.errors import InputError
from truerank.loading import load_json
from truerank.sources import columns, compressed
from truerank.sources.grammar import SOURCES

_BY_ENDING: Final = {
    ".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
    ".run": "run", ".qrels": "qrels",
}  # fmt: skip
_KNOWN_ENDINGS: Final = frozenset((*_BY_ENDING, ".json", ".txt", ".trec", ".xml", ".html", ".htm", ".tar"))
_COMPRESSED_ENDINGS: Final = (".gz", ".zst", ".bz2", ".xz")
_BINARY: Final = {
    b"\x89PNG": "a PNG picture", b"\xff\xd8\xff": "a JPEG picture", b"GIF8": "a GIF picture", b"%PDF": "a PDF document",
    b"PK\x03\x04": "a ZIP archive", b"\x7fELF": "a program", b"ARROW1": "an Arrow file",
    b"\xff\xfe\0\0": "UTF-32 text", b"\xff\xfe": "UTF-16 text", b"\xfe\xff": "UTF-16 text",
}  # fmt: skip
_REMEDIES: Final = {
    "a ZIP archive": "unpack it and give the file inside; save a sheet of Excel as CSV",
    "UTF-32 text": "convert it: iconv -f UTF-32 -t UTF-8",
    "UTF-16 text": "convert it: iconv -f UTF-16 -t UTF-8",
    "an Arrow file": "write it as Parquet",
}
#: Real logs hold stray control characters; this many, and one in twenty bytes, are not a log.
_FEW_CONTROLS: Final = 8
_CONTROL: Final = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"
_TREC: Final = re.compile(r"\s*(?:<!--.*?-->\s*)*<(top|doc)\b[^>]*>", re.IGNORECASE | re.DOTALL)
_XML: Final = re.compile(
    r"\s*(?:<\?xml\b|<!DOCTYPE\b|<(?:topics?|queries|query|webtrack\d*)\b|<\w+[^<>]*>\s*<(?:topic|query)\b)",
    re.IGNORECASE,
)
_QNA: Final = re.compile(r'\{\s*"(?:answers|passages|query|query_id|query_type|wellFormedAnswers)"\s*:\s*\{')


def detect(path: Path, forced: str | None = None) -> str:
    """The format of a file or folder."""
    if compressed.is_folder(path):
        if forced not in (None, "beir"):
            raise InputError(f"a folder cannot be read as {forced}", "give a file in it", where=path)
        return "saved" if forced is None and is_saved(path) else "beir"
    start = compressed.head(path)
    if not start.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError("the file is empty", "give a file that holds something", where=path)
    if forced is not None:
        if forced != "parquet" and forced not in SOURCES:
            refuse_binary(start, path)
        return forced
    if start.startswith(b"PAR1"):
        return "parquet"
    name = PurePath(path.name.lower())
    while name.suffix in _COMPRESSED_ENDINGS:
        name = name.with_suffix("")
    if (ending := name.suffix) and ending not in _KNOWN_ENDINGS and ending[1:] in SOURCES:
        return ending[1:]
    refuse_binary(start, path)
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    form = _by_content(start.decode("utf-8-sig", "replace"), ending)
    return "trec" if form in ("lines", "tsv") and ".trec" in path.name.lower() else form


def is_saved(folder: Path) -> bool:
    """Whether `Dataset.save_to_disk` of Hugging Face wrote the folder."""
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(one.parent.name for one in folder.glob("*/state.json"))
        remedy = f"give one of them: {folder}/{splits[0]}" if splits else "save it again"
        raise InputError(f"a saved data set of the splits {', '.join(splits) or 'none'}", remedy, where=folder)
    return (folder / "state.json").is_file()


def is_trec_document(text: str) -> bool:
    """Whether a text begins with a `<DOC>` record."""
    return (match := _TREC.match(text)) is not None and match[1].lower() == "doc"


def refuse_binary(start: bytes, path: Path) -> None:
    """Raises an InputError that names the kind, where the first bytes of a file are not text."""
    for magic, kind in _BINARY.items():
        if start.startswith(magic):
            raise InputError(f"this is {kind}", _REMEDIES.get(kind, "give a text or Parquet file"), where=path, line=1)
    controls = len(start) - len(start.translate(None, _CONTROL))
    if controls >= _FEW_CONTROLS and controls * 20 > len(start):
        raise InputError("binary data, not text", "give a text or Parquet file", where=path, line=1)


def _by_content(text: str, ending: str) -> str:
    if _TREC.match(text):
        return "trec"
    if ending == ".xml" or _XML.match(text):
        return "xml"
    stripped = text.lstrip()
    if stripped[0:1] == "{":
        return _json_kind(stripped, ending)
    if stripped[0:1] == "[" and (stripped[1:].lstrip()[:1] in ("{", "[", '"', "]")):
        first, _, more = stripped.partition("\n")
        return "jsonl" if more.lstrip()[:1] == "[" and first.rstrip()[-1:] == "]" else "json"
    return "json" if ending == ".json" else _line_kind(text)


def _line_kind(text: str) -> str:
    lines = [line for line in text.split("\n")[: columns.SAMPLE_LINES] if line.strip()]
    if sum("\t" in line for line in lines) * 2 > len(lines):
        return "tsv"
    return "csv" if lines and columns.csv_header(lines[0]) else "lines"


def _json_kind(text: str, ending: str) -> str:
    """JSONL, one object of columns (MS MARCO QnA: "qna"), or one object of texts or records by id ("json")."""
    if _QNA.match(text):
        return "qna"
    first, _, more = text.partition("\n")
    try:
        record = load_json(first, "line 1")
    except InputError:
        # A first line that ends within what was looked at is a part of an object over several lines; one that does not
        # is one long record, or, in a .json file, one long object.
        return "json" if more or ending == ".json" else "jsonl"
    if isinstance(record.get("query"), dict):
        return "qna"
    by_id = not more.strip() and columns.named(list(record), columns.TEXT_NAMES) is None
    return "json" if by_id and record and all(isinstance(value, (str, dict)) for value in record.values()) else "jsonl"


_ENDINGS = ("", ".gz", ".zst", ".bz2", ".xz")


def corpus_file(folder: Path, *, missing_ok: bool = False) -> Path | None:
    """The documents of a BEIR folder; None where it has none and that is fine."""
    found = _first(folder / "corpus.jsonl")
    if found is None and not missing_ok:
        raise InputError("there is no corpus.jsonl in it", "give a BEIR folder, or a file of documents", where=folder)
    return found


def queries_file(folder: Path) -> Path:
    """The queries of a BEIR folder."""
    if (found := _first(folder / "queries.jsonl")) is None:
        fault = "no BEIR folder: there is no queries.jsonl in it"
        raise InputError(fault, "give a file in it, or a BEIR folder", where=folder)
    return found


def qrels_file(folder: Path, split: str = "test") -> Path | None:
    """The judgments of one split, None where the folder has none."""
    return _first(folder / "qrels" / f"{split}.tsv")


def _first(path: Path) -> Path | None:
    candidates = (path.with_name(path.name + ending) for ending in _ENDINGS)
    try:
        return next((candidate for candidate in candidates if candidate.is_file()), None)
    except OSError as error:
        remedy = "change the permissions, or copy it"
        raise InputError("no permission to look into it", remedy, where=path.parent) from error
