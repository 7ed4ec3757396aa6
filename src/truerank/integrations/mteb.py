"""MTEB: a retrieval task on the part of its queries that an audit found clean, or on those that leak.

`mteb.evaluate(model, [task, clean_task(task, audit)])` writes the results of both side by side, in MTEB's own format.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from mteb.abstasks import AbsTaskRetrieval

from truerank.audits.leakage.effect import leaked_topics
from truerank.audits.leakage.results import AuditResult
from truerank.errors import InputError
from truerank.version import __version__


def clean_task(
    task: AbsTaskRetrieval,
    audit: AuditResult | str | Path | Collection[str],
    *,
    test_set: str | None = None,
    part: Literal["clean", "leaked"] = "clean",
) -> AbsTaskRetrieval:
    """A task like another one, without the queries that leak.

    Corpus and judgments of the other queries stay. Its name is that of the task with "Clean" (or "Leaked") behind it,
    and `adapted_from` names the task, so that MTEB counts both as similar. The task that you give stays as it is.
    """
    if not isinstance(task, AbsTaskRetrieval):
        raise InputError(f"a {type(task).__name__} is not a retrieval task", "give one", where="clean_task")
    _, leaked = leaked_topics(audit, test_set)
    name = f"{task.metadata.name}{part.capitalize()}"
    which = "without" if part == "clean" else "only"
    metadata = task.metadata.model_copy(
        update={
            "name": name,
            "description": f"{task.metadata.description} Queries: {which} those that leak (truerank {__version__}).",
            "adapted_from": [task.metadata.name],
            "superseded_by": None,
        }
    )

    def load_data(self: Any, *args: Any, **kwargs: Any) -> None:
        if not self.data_loaded:
            super(kind, self).load_data(*args, **kwargs)
            self.convert_v1_dataset_format_to_v2(num_proc=None)
            self.dataset = _filtered(self.dataset, leaked, part, name)

    kind: Any = type(
        name, (type(task),), {"metadata": metadata, "load_data": load_data, "__doc__": metadata.description}
    )
    made: Any = copy.copy(task)
    made.__class__ = kind
    if task.data_loaded:
        made.convert_v1_dataset_format_to_v2(num_proc=None)
        made.dataset = _filtered(made.dataset, leaked, part, name)
    filtered: AbsTaskRetrieval = made
    return filtered


def _filtered(dataset: Mapping[str, Any], leaked: frozenset[str], part: str, name: str) -> dict[str, Any]:
    """The data of each subset and split with the queries of a part; queries, judgments and first results agree."""
    found: dict[str, Any] = {}
    known: set[str] = set()
    for subset, splits in dataset.items():
        found[subset] = {}
        for split, data in splits.items():
            ids = [str(one) for one in data["queries"]["id"]]
            known.update(leaked.intersection(ids))
            kept = [place for place, one in enumerate(ids) if (one in leaked) == (part == "leaked")]
            chosen = {ids[place] for place in kept}
            found[subset][split] = {
                **data,
                "queries": data["queries"].select(kept),
                "relevant_docs": _of(data["relevant_docs"], chosen),
                "top_ranked": None if data.get("top_ranked") is None else _of(data["top_ranked"], chosen),
            }
    if leaked and not known:
        fault = f"none of the {len(leaked)} leaked queries is in the task (such as '{min(leaked)}')"
        raise InputError(fault, "give the audit of this test set", where=name)
    if not any(len(data["queries"]) for splits in found.values() for data in splits.values()):
        raise InputError("no query is left", "there is nothing to evaluate", where=name)
    return found


def _of(by_query: Mapping[str, Any], chosen: Collection[str]) -> dict[str, Any]:
    return {query: value for query, value in by_query.items() if str(query) in chosen}
