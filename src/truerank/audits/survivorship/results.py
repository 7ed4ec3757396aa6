"""What the commands of the survivorship audit share: shares with intervals, and the provenance of what was read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from scipy.special import ndtri

from truerank.sources import grammar
from truerank.sources.annotation_logs import FAULTS, AnnotationLog, LogCounts
from truerank.sources.grammar import SourceSpec
from truerank.work.artifacts import hash_file, installed_versions

__all__ = ["Share", "fault_notes", "file_input", "log_input", "named_source", "provenance", "share_of"]


class Share(NamedTuple):
    """A part of a whole, with Wilson's interval."""

    found: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share; NaN of nothing."""
        return self.found / self.total if self.total else math.nan

    def json(self) -> dict[str, Any]:
        """The share by name."""
        nothing = not self.total
        return {
            "found": self.found,
            "total": self.total,
            "share": None if nothing else self.value,
            "low": None if nothing else self.low,
            "high": None if nothing else self.high,
        }


def share_of(found: int, total: int, confidence: float = 0.95) -> Share:
    """A share with its score interval.

    Source: Wilson, Probable inference, the law of succession, and statistical inference, 1927.
    """
    if not total:
        return Share(found, total, math.nan, math.nan)
    z = float(ndtri((1 + confidence) / 2))
    share, penalty = found / total, z * z / total
    middle = share + penalty / 2
    spread = z * math.sqrt(share * (1 - share) / total + penalty / (4 * total))
    return Share(found, total, max(0.0, (middle - spread) / (1 + penalty)), min(1.0, (middle + spread) / (1 + penalty)))


def named_source(given: str) -> tuple[str, SourceSpec]:
    """`NAME=SRC` or `SRC` as a name and a source; a path that holds the sign and exists is a path."""
    name, separator, spec = given.partition("=")
    named = bool(separator and name and spec) and "/" not in name and "?" not in name and ":" not in name
    if named and not grammar.parse(given).path.exists():
        return name, grammar.parse(spec)
    parsed = grammar.parse(given)
    return parsed.name, parsed


def log_input(log: AnnotationLog) -> dict[str, Any]:
    """An annotation log in a manifest: where it lies, its fingerprint, what was read."""
    return {"source": log.spec.spec, "fingerprint": log.fingerprint, **log.counts.json()}


def file_input(given: str) -> dict[str, Any]:
    """Another source in a manifest."""
    spec = grammar.parse(given)
    found: dict[str, Any] = {"source": given, "name": spec.name}
    return found | ({"sha256": hash_file(spec.path)} if spec.scheme == "file" and spec.path.is_file() else {})


def fault_notes(counts: LogCounts) -> list[str]:
    """What was wrong with a log's records, one sentence for each kind."""
    return [
        f"{counts.faults[kind]:,} times {kind}: {text} (e.g. {', '.join(counts.examples[kind][:3])})."
        for kind, text in FAULTS.items()
        if kind in counts.faults
    ]


def provenance(command: str, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs with hashes, options and versions."""
    return {
        "command": f"survivorship {command}",
        "inputs": dict(inputs),
        "options": dict(options),
        "versions": installed_versions("truerank", "numpy", "polars", "scipy", "matplotlib"),
    }
