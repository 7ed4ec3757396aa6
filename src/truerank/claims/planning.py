"""Before anything is run: which questions can be answered with what was given, and roughly what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from truerank.claims.options import ClaimSources
from truerank.claims.results import PlannedQuestion
from truerank.sources import grammar

#: Bytes of compressed and of plain text that a second takes, measured on two processors with the small encoder.
_ENCODED: Final = 12_000.0
_COMPARED: Final = 1_500_000.0
_SCORED: Final = 3_000_000.0
#: How much text a compressed byte holds.
_COMPRESSION: Final = 3.0
_START: Final = 2.0
#: Seconds of one simulated judging of fifty topics, of some thousand documents, without one team.
_TRIAL: Final = 1.0


def planned(sources: ClaimSources, trials: int = 0) -> tuple[PlannedQuestion, ...]:
    """The questions in their order, each with what is run or what would have to be given.

    Args:
        sources: what was given, with what the test set brings.
        trials: simulated judgings, see `ClaimOptions`.
    """
    return tuple(_questions(sources, trials))


def _questions(sources: ClaimSources, trials: int) -> Iterator[PlannedQuestion]:
    claim = _lacking(sources, ("run", "qrels"))
    yield _of("significance", claim, "paired t-test", 0.1)
    yield _of(
        "leakage", _lacking(sources, ("test", "train")), "leakage audit; topics removed against a placebo",
        _START + _size(sources.train) / _ENCODED,
    )  # fmt: skip
    parts = [name for name in ("qrels", "docs") if not sources.has(name)]
    yield _of(
        "collection", "`qrels` and `docs`" if len(parts) == 2 else "", "collection audit; judgments repaired",
        _START + _size([sources.docs]) / _COMPARED,
    )  # fmt: skip
    yield _of("unjudged", claim, "rates at which unjudged documents are relevant", 2.0)
    simulated = bool(trials) and sources.has("docs") and sources.has("test")
    yield _of(
        "pools", claim,
        f"where each run was judged; teams left out{f'; {trials} simulated judgings' if simulated else ''}",
        0.2 + simulated * _START + simulated * (trials + 1) * _judged_without(sources),
    )  # fmt: skip
    # Judgments of a model as the truth limit the claim, whatever else was given.
    needed = ("run", "qrels") if sources.judged_by == "model" else ("run", "qrels", "model_judgments")
    yield _of("models", _lacking(sources, needed), "audit of the model's judgments", 3.0)
    versions = _lacking(sources, ("qrels", "test", "docs", "previous"))
    yield _of(
        "versions",
        versions,
        "scan of both versions with BM25",
        _START + _size([sources.docs, sources.previous]) / _SCORED,
    )
    yield _of("policies", claim, "every measure, order of ties and rule for missing topics", 1.0)


def _of(name: str, needs: str, what: str, seconds: float) -> PlannedQuestion:
    return PlannedQuestion(name, not needs, needs, "" if needs else what, 0.0 if needs else round(seconds, 1))


def _lacking(sources: ClaimSources, needed: tuple[str, ...]) -> str:
    lacking = [f"`{name}`" for name in needed if not sources.has(name)]
    if "run" in needed and sources.has("run") and not isinstance(sources.run, str) and len(sources.run) < 2:
        lacking.append("a second `run`")
    return " and ".join(lacking)


def _judged_without(sources: ClaimSources) -> float:
    """Seconds of one simulated judging of all topics with each team left out; a run is taken for a team."""
    runs = 1 if isinstance(sources.run, str) else len(sources.run)
    return _TRIAL * (runs + 1)


def _size(sources: Iterable[str | None]) -> float:
    """Characters of text in files; 0 for what lies elsewhere, whose size nobody knows before it is read."""
    total = 0.0
    for one in sources:
        if one is None or (spec := grammar.parse(one)).scheme != "file":
            continue
        path = spec.path / "corpus.jsonl" if spec.path.is_dir() else Path(spec.location)
        if path.is_file():
            packed = path.suffix in (".gz", ".zst", ".bz2", ".xz")
            total += path.stat().st_size * (_COMPRESSION if packed else 1.0)
    return total
