"""Sampling plans as text: what `--sample` says."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Final, Literal

from truerank.errors import InputError
from truerank.loading import decimal_number, whole_number

_REMEDY: Final = "write all, random:N, strata:0.8-1:N, top:N@0.91 or per:dataset:N"
_EDGES: Final = re.compile(r"(?P<low>-?[\d.]+(?:e-?\d+)?)-(?P<high>-?[\d.]+(?:e-?\d+)?)(?:/(?P<bins>\d+))?", re.ASCII)
_BINS: Final = 4

Kind = Literal["all", "random", "strata", "top", "per"]


@dataclass(frozen=True)
class Stage:
    """One step of a plan.

    Attributes:
        kind: "all"; "random" n items; "strata" of the score, n items in all; the "top" n of each topic; n items "per"
            value of a field.
        n: how many items.
        edges: borders of the strata, rising; a stratum is above its lower and at most at its upper border.
        quantiles: number of strata with the same number of items, where no edges are given.
        above: only scores above it ("top").
        field: "dataset", "stratum" or "topic" ("per").
        quotas: name → number of items, where the groups do not all give n ("per").
    """

    kind: Kind
    n: int = 0
    edges: tuple[float, ...] = ()
    quantiles: int = 0
    above: float | None = None
    field: str = ""
    quotas: tuple[tuple[str, int], ...] = ()

    @property
    def drawn(self) -> bool:
        """Whether chance decides."""
        return self.kind in ("random", "strata", "per")


@dataclass(frozen=True)
class SamplePlan:
    """Steps one after the other: each takes from what the one before it left."""

    text: str
    stages: tuple[Stage, ...]


def parse_plan(text: str) -> SamplePlan:
    """Takes a plan apart.

    `all`; `random:100`; `strata:0.8-1:100` (four strata of one width; `0.8-1/10` makes ten; `0.8,0.9,0.95,1` gives
    the borders; `q5` makes five of one size), the same number from each as far as it has them; `top:5@0.91`, per topic
    the five with the highest score above 0.91; `per:dataset:50` (or `stratum`, `topic`), or with a number for each
    that is wanted, `per:dataset:robust04=50,core17=20`. Steps are joined by "then".
    """
    stages = tuple(_stage(part.strip(), text) for part in re.split(r"\s+then\s+", text.strip()))
    for before, after in itertools.pairwise(stages):
        if before.drawn and after.kind != "random":
            raise InputError(
                f"'{after.kind}' after '{before.kind}', which draws at random",
                "put it first; only 'then random:N' can follow",
                where=f"sample {text}",
            )
    return SamplePlan(" ".join(text.split()), stages)


def _stage(text: str, whole: str) -> Stage:
    kind, _, rest = text.partition(":")
    if kind == "all" and not rest:
        return Stage("all")
    if kind == "random":
        return Stage("random", _count(rest, whole))
    if kind == "top":
        count, at, above = rest.partition("@")
        return Stage("top", _count(count, whole), above=_number(above, whole) if at else None)
    if kind == "per":
        field, _, count = rest.partition(":")
        if field not in ("dataset", "stratum", "topic"):
            raise InputError(f"no items per '{field}'", "per dataset, stratum or topic", where=f"sample {whole}")
        if "=" in count:
            return Stage("per", field=field, quotas=_quotas(count, whole))
        return Stage("per", _count(count, whole), field=field)
    if kind == "strata":
        borders, _, count = rest.rpartition(":")
        return _strata(borders, _count(count, whole), whole)
    raise InputError(f"'{text}' is no sample", _REMEDY, where=f"sample {whole}")


def _strata(borders: str, n: int, whole: str) -> Stage:
    if re.fullmatch(r"q\d+", borders):
        return Stage("strata", n, quantiles=_count(borders[1:], whole))
    if match := _EDGES.fullmatch(borders):
        low, high = _number(match["low"], whole), _number(match["high"], whole)
        bins = _count(match["bins"], whole) if match["bins"] else _BINS
        edges = tuple(round(low + (high - low) * k / bins, 12) for k in range(bins + 1))
    else:
        edges = tuple(_number(part, whole) for part in borders.split(","))
    if len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise InputError(f"'{borders}' are no rising borders", "write 0.8-1 or 0.8,0.9,1", where=f"sample {whole}")
    return Stage("strata", n, edges)


def _quotas(text: str, whole: str) -> tuple[tuple[str, int], ...]:
    quotas: dict[str, int] = {}
    for part in text.split(","):
        name, _, count = part.rpartition("=")
        if not name.strip() or name.strip() in quotas:
            raise InputError(f"'{part}' is no number for a name", "write NAME=N,NAME=N", where=f"sample {whole}")
        quotas[name.strip()] = _count(count.strip(), whole)
    return tuple(quotas.items())


def _count(text: str, whole: str) -> int:
    number = whole_number(text) or 0
    if number < 1:
        raise InputError(f"'{text[:40]}' is no number of items", _REMEDY, where=f"sample {whole}")
    return number


def _number(text: str, whole: str) -> float:
    value = decimal_number(text)
    if value is None:
        raise InputError(f"'{text}' is no score", _REMEDY, where=f"sample {whole}")
    return value
