"""BEIR folders: `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`."""

from __future__ import annotations

from pathlib import Path

from truerank.errors import InputError

_ENDINGS = ("", ".gz", ".zst", ".bz2", ".xz")


def corpus_file(folder: Path, *, missing_ok: bool = False) -> Path | None:
    """The documents of a BEIR folder; None where it has none and that is fine."""
    found = _first(folder / "corpus.jsonl")
    if found is None and not missing_ok:
        raise InputError("there is no corpus.jsonl in it", "give a BEIR folder, or a file of documents", where=folder)
    return found


def queries_file(folder: Path) -> Path:
    """The queries of a BEIR folder."""
    found = _first(folder / "queries.jsonl")
    if found is None:
        raise InputError(
            "no BEIR folder: there is no queries.jsonl in it", "give a file in it, or a BEIR folder", where=folder
        )
    return found


def qrels_file(folder: Path, split: str = "test") -> Path | None:
    """The judgments of one split, None where the folder has none."""
    return _first(folder / "qrels" / f"{split}.tsv")


def _first(path: Path) -> Path | None:
    candidates = (path.with_name(path.name + ending) for ending in _ENDINGS)
    try:
        return next((candidate for candidate in candidates if candidate.is_file()), None)
    except OSError as error:
        raise InputError(
            "no permission to look into it", "change the permissions, or copy it", where=path.parent
        ) from error
