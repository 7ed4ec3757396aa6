"""ranx: judgments and runs as its types. In the other direction, every command takes those as they are."""

from __future__ import annotations

from typing import Any

from truerank.errors import TruerankError
from truerank.measures.scoring import OneRun, QrelSource, qrel_frame, run_frame


def qrels(source: QrelSource) -> Any:
    """Judgments as a `ranx.Qrels`."""
    return _ranx().Qrels(_nested(qrel_frame(source).iter_rows()))


def run(source: OneRun, name: str | None = None) -> Any:
    """A run as a `ranx.Run`."""
    return _ranx().Run(_nested(run_frame(source).iter_rows()), name=name)


def _nested(rows: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for topic, document, value in rows:
        found.setdefault(topic, {})[document] = value
    return found


def _ranx() -> Any:
    try:
        import ranx
    except ImportError as error:
        raise TruerankError("ranx is not installed", "pip install ranx", where="truerank.integrations.ranx") from error
    return ranx
