"""What a command reads, as its manifest names it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from truerank.records import Input
from truerank.sources import compressed, grammar
from truerank.sources.grammar import SourceSpec
from truerank.sources.notebook import is_given


def input_of(role: str, source: object, name: str = "", rows: int | None = None) -> Input:
    """What an option named, with the hash of its bytes where that is a file."""
    if not isinstance(source, str | Path | SourceSpec):
        return Input(name or role, "", role, rows)
    spec = source if isinstance(source, SourceSpec) else grammar.parse(str(source))
    there = spec.scheme == "file" and spec.path.is_file()
    shown = shown_source(spec) and (spec.spec if isinstance(source, SourceSpec) else str(source))
    if not there:
        return Input(name or spec.name, shown, role, rows)
    digest = compressed.fingerprint(spec.path).removeprefix("sha256:").partition(";")[0]
    return Input(name or spec.name, shown, role, rows, digest)


def pinned(spec: SourceSpec, fingerprint: str) -> str:
    """A Hugging Face data set with the commit that was read: who reads it again gets the same bytes."""
    commit = fingerprint.rpartition("revision=")[2].partition(";")[0]
    column = f"#{spec.column}" if spec.column else ""
    return f"hf:{spec.location}@{commit}{spec.name.removeprefix(spec.location)}{column}"


def shown_source(spec: SourceSpec) -> str:
    """A source as the user gave it; empty for a value of the caller's program, which has no place to look at."""
    return "" if spec.scheme == "file" and is_given(spec.path) else spec.spec


def inputs_of(**sources: object) -> tuple[Input, ...]:
    """The inputs of a command by the options that named them; several sources of one option are a list or tuple."""
    found = []
    for role, given in sources.items():
        several = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
        found += [input_of(role, one) for one in several if one is not None]
    return tuple(found)
