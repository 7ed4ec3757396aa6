"""An audit of private queries that can be shown to others: ids and keyed hashes instead of texts.

Queries are short: whoever has plain hashes of them finds the texts by hashing guesses, and the topic that a query leaks
is the first guess. So hashes are keyed (HMAC-SHA-256 of the normalised text, cut to 64 bits): without the key no guess
can be checked, and with the same key the same query has the same hash in every audit, so that baselines still work.
The key never comes from the data and is never written beside it; where none is given, one is made once and kept in
the user's configuration folder.

What stays can still say something: topic, query and source ids, similarities and types. A similarity of 1 with a
published topic title gives the query away; leave the pairs out of what is shown where that matters.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import polars as pl

from truerank.audits.leakage.results import AuditResult, AuditSummary
from truerank.errors import InputError
from truerank.text.normalising import normalise

#: The environment variable that may hold the key.
KEY_VARIABLE: Final = "TRUERANK_REDACT_KEY"
_SHORTEST: Final = 16
_HASHED: Final = re.compile(r"hmac:([0-9a-f]{8}):[0-9a-f]{16}")
_TEXT_COLUMNS: Final = (
    "topic_text", "query_text", "test_text", "training_text", "document_text", "training_document",
)  # fmt: skip


def open_key(path: str | Path | None = None) -> bytes:
    """The key for redaction.

    Args:
        path: a file that holds it (`--redact-key`). Without it: the environment variable `TRUERANK_REDACT_KEY`; else
            `truerank/redact.key` in the user's configuration folder (`XDG_CONFIG_HOME` or `~/.config`), which is made
            with 256 random bits at the first use and can be read by the user only.

    Returns:
        The key, at least 16 bytes.

    Raises:
        InputError: the file cannot be read or written, or the key is shorter than 16 bytes.
    """
    if path is not None:
        return _checked(_read(Path(path)), str(path))
    if KEY_VARIABLE in os.environ:
        return _checked(os.environ[KEY_VARIABLE].encode(), KEY_VARIABLE)
    own = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "truerank" / "redact.key"
    try:
        if not own.exists():
            _make(own)
    except OSError as error:
        raise InputError(
            f"the key for redaction cannot be kept ({error.strerror})", "give one with --redact-key FILE", where=own
        ) from error
    return _checked(_read(own), str(own))


def hash_text(text: str, key: bytes) -> str:
    """The hash that stands for a text: `hmac:KEYMARK:HASH`, 8 and 16 hexadecimal digits."""
    digest = hmac.new(key, normalise(text).encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return f"hmac:{_mark(key)}:{digest[:16]}"


def key_mark(text: str) -> str | None:
    """The mark of the key that made this hash, None if the text is not a hash."""
    match = _HASHED.fullmatch(text)
    return None if match is None else match[1]


def redact(result: AuditResult, key: bytes) -> AuditResult:
    """The audit with hashes instead of texts; topic ids, query ids, names, numbers and types stay.

    Args:
        result: an audit.
        key: from `open_key`.

    Returns:
        The same audit without any query or topic text, in the same order and without a folder. Redacting twice
        changes nothing.

    Raises:
        InputError: the key is shorter than 16 bytes.
    """
    _checked(key, "redaction key")
    frames = (result.candidates, result.neighbours, result.leaks, result.templates)
    columns = [[name for name in _TEXT_COLUMNS if name in frame.columns] for frame in frames]
    texts = {
        text
        for frame, names in zip(frames, columns, strict=True)
        for column in names
        for text in frame[column].drop_nulls().unique()
    }
    hashes = {text: text if key_mark(text) else hash_text(text, key) for text in texts}
    candidates, neighbours, leaks, templates = (
        frame.with_columns(
            pl.col(column).replace_strict(hashes, default=None, return_dtype=pl.String) for column in names
        )
        if hashes
        else frame
        for frame, names in zip(frames, columns, strict=True)
    )
    quoted = {normalise(text): hash_ for text, hash_ in hashes.items()}
    parts = {name: _without(quoted, part) if name == "labels" else part for name, part in result.summary.items()}
    return replace(
        result, summary=cast("AuditSummary", parts), candidates=candidates, neighbours=neighbours, leaks=leaks,
        templates=templates, folder=None,
    )  # fmt: skip


def _without(hashes: dict[str, str], value: Any) -> Any:
    """A part of the summary in which the hash stands for every text that it quotes."""
    if isinstance(value, dict):
        return {key: _without(hashes, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(hashes, item) for item in value]
    return hashes.get(normalise(value), value) if isinstance(value, str) else value


def _mark(key: bytes) -> str:
    return hmac.new(key, b"truerank redaction key", hashlib.sha256).hexdigest()[:8]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the key for redaction cannot be read ({error.strerror})", "give a readable file", where=path
        ) from error


def _make(path: Path) -> None:
    """Writes a new key, unless another process was faster: a key file is never seen half written and never replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            stream.write(secrets.token_hex(32) + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _checked(key: bytes, where: str) -> bytes:
    key = key.strip()
    if len(key) < _SHORTEST:
        raise InputError(
            f"a key of {len(key)} bytes can be guessed", f"give at least {_SHORTEST} random bytes", where=where
        )
    return key
