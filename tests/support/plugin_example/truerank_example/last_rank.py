"""A measure: the rank of the last relevant result, 0 where there is none."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from ir_measures.measures.base import Measure, ParamInfo

from truerank.measures.effectiveness import RankedJudgments


class _LastRank(Measure):
    __name__ = NAME = PRETTY_NAME = "LastRank"
    SUPPORTED_PARAMS: Final = {"rel": ParamInfo(dtype=int, default=1, desc="lowest grade that counts as relevant")}
    lower_is_better = True

    def values(self, view: RankedJudgments) -> Any:
        found = np.zeros(len(view.judgments.topics))
        relevant = view.hits.relevance >= self.params.get("rel", view.policy.rel)
        np.maximum.at(found, view.hits.topic[relevant], view.hits.rank[relevant] + 1)
        return found


LAST_RANK: Final = _LastRank()
