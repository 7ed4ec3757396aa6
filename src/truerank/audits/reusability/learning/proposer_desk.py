"""The judging pages with the learner behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from truerank.audits.reusability.learning.active import LearnerOptions
from truerank.audits.reusability.learning.labels_now import grades_by_label
from truerank.audits.reusability.learning.proposer import Assistant, open_collection
from truerank.audits.reusability.stopping import StoppingRule
from truerank.audits.reusability.stopping_specs import load_rule
from truerank.errors import OptionError
from truerank.judging import Store, web
from truerank.work.progress import Progress

__all__ = ["serve"]

#: The assistant itself says how large a batch is.
_ANY: Final = 1 << 20


def serve(
    store: str | Path,
    docs: str,
    *,
    rule: str | StoppingRule = "track",
    budget: int | None = None,
    seed: int = 0,
    learner: LearnerOptions | None = None,
    work: str | Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    **desk: Any,
) -> web.Desk:
    """Opens a store for judging in the browser, with active learning where the pool ends.

    Args:
        store: of a relevance scheme; its items are the pool.
        docs: the collection, see `sources.open_documents`.
        rule: when a topic is judged enough, see `load_rule`.
        budget: judgments over all topics; None for no bound.
        seed: of the learner.
        learner: see `LearnerOptions`.
        work: where index and texts of the collection are kept; None for `STORE.collection`.
        workers: processes that analyse documents.
        progress: is told how many documents are done.
        **desk: host, port, annotators and so on, as for `judging.web.open_desk`.

    Returns:
        The desk; `run` serves it.

    Raises:
        InputError: a store that does not grade documents; a fault in the documents, the rule or the desk's options.
        MissingExtraError: FastAPI or Uvicorn is not installed.
    """
    if budget is not None and budget < 1:
        raise OptionError("budget", f"a budget of {budget} judgments", "give 1 or more")
    chosen = load_rule(rule) if isinstance(rule, str) else rule
    with Store.open(store) as opened:
        grades_by_label(opened)
    place = Path(work) if work is not None else Path(f"{store}.collection")
    collection = open_collection(docs, place, workers=workers, progress=progress)
    assistant = Assistant(collection, chosen, seed=seed, options=learner, budget=budget)
    return web.open_desk(store, proposer=assistant, batch=_ANY, **desk)
