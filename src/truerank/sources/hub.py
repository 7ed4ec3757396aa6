"""Hugging Face data sets as a source: the files of the repository, from the hub or the cache."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Final, NoReturn

from truerank.errors import InputError, needed_for
from truerank.sources import formats, query_files
from truerank.sources.blocks import RawBlock
from truerank.sources.grammar import SourceSpec
from truerank.sources.rows import Row, rows

_DATA_FILE: Final = re.compile(r"\.(?:parquet|(?:jsonl|ndjson|json|csv|tsv)(?:\.(?:gz|zst|bz2|xz))?)$")
_NOT_DATA: Final = frozenset(("dataset_infos.json", "dataset_dict.json", "state.json", "config.json", "package.json"))
_SHARD: Final = re.compile(r"-\d{5}-of-(?P<of>\d{5})\b")
_REFUSED: Final = (401, 403, 404)
_COMMIT: Final = re.compile("[0-9a-f]{7,64}")
_WHOLE_COMMIT: Final = re.compile("[0-9a-f]{40}")
#: Seconds without a byte of the description of a data set.
_SILENCE: Final = 20.0
_FEATURE: Final = "a data set of Hugging Face"
_SPLITS: Final = ("train", "training", "validation", "valid", "dev", "test", "queries")


def queries(spec: SourceSpec, *, strict: bool = False) -> Iterator[RawBlock]:
    """The queries of a data set; where it has no ids, the record numbers over all its files are the ids.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    before = 0
    for path in _downloaded(spec):
        last = 0
        for block in query_files.file_queries(path, formats.detect(path), spec.column, strict=strict):
            last = max((last, *block.lines[-1:]))
            numbers = [before + line for line in block.lines]
            yield block._replace(lines=numbers, ids=block.ids if block.own_ids else list(map(str, numbers)))
        before += last


def records(spec: SourceSpec, *, strict: bool = False) -> Iterator[Row]:
    """The records of a data set with all their values, numbered over all its files; otherwise as `queries`."""
    read = (rows(path, formats.detect(path), strict=strict) for path in _downloaded(spec))
    return (Row(number, row.values, row.repaired) for number, row in enumerate(chain.from_iterable(read), start=1))


def fingerprint(spec: SourceSpec) -> str:
    """The name, configuration and split with the commit of the revision on the hub (or, without network, the cache)."""
    if spec.revision is not None and _WHOLE_COMMIT.fullmatch(spec.revision):
        return f"hf:{spec.name};revision={spec.revision}"
    described = _described(spec)
    return f"hf:{spec.name};revision={described[0] if described else _snapshot(spec).name}"


def _downloaded(spec: SourceSpec) -> list[Path]:
    """The data files of the configuration and split, fetched into the cache of huggingface_hub."""
    described = _described(spec)
    if described is None:
        snapshot = _snapshot(spec)
        names = [path.relative_to(snapshot).as_posix() for path in sorted(snapshot.rglob("*")) if path.is_file()]
        return [snapshot / name for name in _complete(_chosen(names, spec), spec)]
    from huggingface_hub import hf_hub_download

    revision, there = described
    try:
        with _quiet():
            return [
                Path(hf_hub_download(spec.location, name, repo_type="dataset", revision=revision))
                for name in _chosen(there, spec)
            ]
    except InputError:
        raise
    except Exception as error:
        _unreachable(spec, error)


def _described(spec: SourceSpec) -> tuple[str, list[str]] | None:
    """The commit on the hub and the names of its files; None where the hub cannot be asked."""
    with needed_for(_FEATURE, "hub"):
        from huggingface_hub import HfApi, errors

    try:
        with _quiet():
            info = HfApi().dataset_info(spec.location, revision=spec.revision, timeout=_SILENCE)
        names = [str(one.rfilename) for one in info.siblings or ()]
        return (info.sha, names) if _COMMIT.fullmatch(info.sha or "") else None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        _unreachable(spec, error)
    except Exception as error:  # of the HTTP library under huggingface_hub, or of what came in place of a description
        if getattr(getattr(error, "response", None), "status_code", None) in _REFUSED:
            _unreachable(spec, error)
        return None


def _snapshot(spec: SourceSpec) -> Path:
    """The copy of the revision in the cache; without one, the newest (that of "main" before others)."""
    from huggingface_hub import scan_cache_dir

    try:
        repositories = scan_cache_dir().repos
    except Exception as error:
        _unreachable(spec, error)
    copies = [
        revision
        for repository in repositories
        if repository.repo_type == "dataset" and repository.repo_id == spec.location
        for revision in repository.revisions
        if spec.revision is None or spec.revision in revision.refs or revision.commit_hash.startswith(spec.revision)
    ]
    if not copies:
        _unreachable(spec, ConnectionError("no network"))
    newest = max(copies, key=lambda copy: ("main" in copy.refs, copy.last_modified, copy.commit_hash))
    return Path(newest.snapshot_path)


def _complete(names: list[str], spec: SourceSpec) -> list[str]:
    """The names, if all shards of `…-00000-of-00007…` are among them: a copy in the cache may lack some."""
    shards = [match for match in map(_SHARD.search, names) if match]
    missing = {int(shard["of"]) for shard in shards} - {len(shards)}
    if missing:
        raise InputError(
            f"the copy in the cache has {len(shards)} of {max(missing)} files",
            f"with network: hf download --repo-type dataset {spec.location}{_wanted(spec)}",
            where=spec.spec,
        )
    return names


def _chosen(names: Sequence[str], spec: SourceSpec) -> list[str]:
    """The files of the configuration and split, in the order of their names.

    A configuration is a folder or the beginning of a file name, a split a word of the path
    (`data/train-00000-….parquet`, `queries.jsonl`); without a configuration, files at the top, in `data/` or in
    `default/` are meant, or those of the only folder.
    """
    data = sorted(name for name in names if _DATA_FILE.search(name) and PurePosixPath(name).name not in _NOT_DATA)
    if not data:
        raise InputError(
            "the repository holds no Parquet, JSONL, CSV or TSV files",
            "save it as Parquet, and give the path of the file",
            where=spec.spec,
        )
    if spec.config is not None:
        found = [name for name in data if spec.config in _words(name)]
        if not found:
            _unknown("configuration", spec.config, sorted({word for name in data for word in _words(name)[:1]}), spec)
    else:
        found = [name for name in data if PurePosixPath(name).parent.as_posix() in (".", "data", "default")]
        if not found:
            folders = sorted({name.partition("/")[0] for name in data})
            found = [name for name in data if name.partition("/")[0] == _only(folders, "configuration", spec)]
    splits = {split: [name for name in found if split in _words(name)] for split in _SPLITS}
    if spec.split is not None:
        wanted = [name for name in found if spec.split in _words(name)]
        if not wanted:
            _unknown("split", spec.split, [split for split, having in splits.items() if having], spec)
        return wanted
    if splits["train"]:
        return splits["train"]
    there = [split for split, having in splits.items() if having]
    return splits[_only(there, "split", spec)] if there else found


def _words(name: str) -> list[str]:
    """The folders of a path, its file name without endings, and the word with which the file name begins."""
    path = PurePosixPath(name)
    stem = path.name.partition(".")[0]
    return [*path.parts[:-1], stem, re.split(r"[-_.]\d|-of-", stem)[0]]


def _only(choices: Sequence[str], kind: str, spec: SourceSpec) -> str:
    if len(choices) == 1:
        return choices[0]
    how = "hf:org/name/CONFIG" if kind == "configuration" else "hf:org/name:SPLIT"
    raise InputError(f"several {kind}s: {', '.join(choices[:12])}", f"name one: {how}", where=spec.spec)


def _unknown(kind: str, name: str, known: Sequence[str], spec: SourceSpec) -> NoReturn:
    near = difflib.get_close_matches(name, known, n=3) or list(known[:12])
    raise InputError(f"no {kind} '{name}'", f"there are {', '.join(near)}" if near else "leave it out", where=spec.spec)


def _wanted(spec: SourceSpec) -> str:
    return "" if spec.revision is None else f" --revision {spec.revision}"


def _unreachable(spec: SourceSpec, error: Exception) -> NoReturn:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in _REFUSED:
        at = "" if spec.revision is None else f" with the revision '{spec.revision}'"
        fault = f"Hugging Face has no data set '{spec.location}'{at}, or it needs permission (HTTP {status})"
        raise InputError(fault, "check the name; for a gated one: hf auth login", where=spec.spec) from error
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    download = f"hf download --repo-type dataset {spec.location}{_wanted(spec)}"
    raise InputError(
        f"not to be had from Hugging Face, and not in the cache ({reason})",
        f"with network: {download}; or give the path of a downloaded file",
        where=spec.spec,
    ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps huggingface_hub from writing warnings and progress bars to the terminal while it works."""
    from huggingface_hub import utils

    progress: Any = utils
    before = progress.are_progress_bars_disabled()
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    progress.disable_progress_bars()
    try:
        yield
    finally:
        logger.setLevel(level)
        if not before:
            progress.enable_progress_bars()
