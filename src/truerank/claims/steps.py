"""The audits of a check, each in a folder of its own; one that is finished is not run again for the same input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from truerank.records import Input
from truerank.sources import formats, grammar
from truerank.sources.inputs import input_of
from truerank.version import __version__
from truerank.work.artifacts import changed_artifact, digest
from truerank.work.kept import keep_json, kept_json
from truerank.work.progress import Progress
from truerank.work.runs import plain

#: What finished audits found, by their names, below the folder of the check.
AUDITS: Final = "audits.json"


@dataclass(frozen=True)
class AuditSteps:
    """Where the audits of a check lie, and whom they tell.

    Attributes:
        folder: of the check.
        kept: whether the folder is there after the check.
    """

    folder: Path
    progress: Progress
    kept: bool = True

    def inputs(self, role: str, sources: Iterable[Any]) -> list[Input]:
        """What an audit reads, with hashes where it lies in files."""
        found = [input_of(role, file) for one in sources if one is not None for file in _files(one)]
        # What a file holds counts, not the way to it.
        return [one if one.sha256 is None else one._replace(source="") for one in found]

    def place(self, name: str) -> Path:
        """The folder of an audit."""
        return self.folder / name

    def once(
        self, name: str, depends: Mapping[str, Any], run: Callable[[Path, Progress], dict[str, Any]]
    ) -> dict[str, Any]:
        """What an audit found, as plain values; it is run unless it is there already."""
        inputs = [one for value in depends.values() if isinstance(value, list) for one in value]
        traced = all(not isinstance(one, Input) or _is_traced(one) for one in inputs)
        identity = digest({"version": __version__, **plain(dict(depends))})
        file, place = self.folder / AUDITS, self.folder / name
        known: dict[str, Any] = kept_json(file) or {}
        there = (place / "manifest.json").is_file()
        there &= all(changed_artifact(manifest.parent) is None for manifest in place.rglob("manifest.json"))
        if not (traced and there and known.get(name, {}).get("identity") == identity):
            # As JSON has it, in the order in which it was found: whether it is new or kept makes no difference.
            known[name] = {"identity": identity, "found": json.loads(json.dumps(run(place, self.progress)))}
            keep_json(file, known)
        found: dict[str, Any] = known[name]["found"]
        return found


def _is_traced(one: Input) -> bool:
    """Whether an input is known by its content, or by a name that stands for it."""
    if one.sha256 is not None:
        return True
    return bool(one.source) and grammar.parse(one.source).scheme == "irds"


def _files(source: Any) -> list[Any]:
    """A source, or the files of a BEIR folder."""
    if not isinstance(source, str | Path):
        return [source]
    spec = grammar.parse(str(source))
    if spec.scheme != "file" or not spec.path.is_dir():
        return [source]
    path = spec.path
    files = (formats.queries_file(path), formats.corpus_file(path, missing_ok=True), formats.qrels_file(path))
    return [str(one) for one in files if one is not None]
