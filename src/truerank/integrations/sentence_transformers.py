"""sentence-transformers: an evaluator that reports the queries that leak apart from the others."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

try:
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
except ImportError:  # before version 6
    from sentence_transformers.evaluation import InformationRetrievalEvaluator

from truerank.audits.leakage.effect import leaked_topics
from truerank.audits.leakage.results import AuditResult
from truerank.errors import InputError


class LeakageEvaluator(InformationRetrievalEvaluator):  # type: ignore[misc]
    """Scores a model as `InformationRetrievalEvaluator` does, and beside that on clean and on leaked queries.

    The metrics of both parts have "clean_" and "leaked_" in their names (`cosine_clean_ndcg@10`); all come from one
    search, so they cost nothing more. A part without a query has none. The CSV file holds those of all queries.

    Args:
        queries, corpus, relevant_docs: as in `InformationRetrievalEvaluator`.
        audit: the folder that `leakage audit` wrote, an audit, or the ids of the leaked queries.
        test_set: the test set in the audit, where it has several.
        rest: as in `InformationRetrievalEvaluator`.
    """

    queries_ids: list[str]
    queries: list[Any]

    def __init__(
        self,
        queries: dict[str, Any],
        corpus: dict[str, Any],
        relevant_docs: dict[str, set[str]],
        *,
        audit: AuditResult | str | Path | Collection[str],
        test_set: str | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(queries, corpus, relevant_docs, **rest)
        _, self.leaked = leaked_topics(audit, test_set)
        if self.leaked and not self.leaked.intersection(map(str, self.queries_ids)):
            fault = f"none of the {len(self.leaked)} leaked queries is among the queries (such as '{min(self.leaked)}')"
            raise InputError(fault, "give the audit of this test set", where="LeakageEvaluator")

    def compute_metrics(self, queries_result_list: list[Any]) -> dict[str, dict[int, float]]:
        """The metrics of all queries, then those of the clean and of the leaked ones."""
        found: dict[str, dict[int, float]] = super().compute_metrics(queries_result_list)
        every = list(zip(self.queries_ids, self.queries, queries_result_list, strict=True))
        for part in ("clean", "leaked"):
            chosen = [one for one in every if (str(one[0]) in self.leaked) == (part == "leaked")]
            if chosen:
                # The evaluator counts over its own lists: they hold the part while it does.
                ids, texts = self.queries_ids, self.queries
                try:
                    self.queries_ids, self.queries = [one[0] for one in chosen], [one[1] for one in chosen]
                    some = super().compute_metrics([one[2] for one in chosen])
                finally:
                    self.queries_ids, self.queries = ids, texts
                found |= {f"{part}_{name}": values for name, values in some.items()}
        return found
