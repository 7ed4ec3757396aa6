"""PyTerrier: registered data as its data sets, truerank's search and rerankers as its transformers. No Java is needed.

`pt.Experiment` takes them as any others; `truerank.evaluate` and `truerank.compare` take the frames of results and
judgments of PyTerrier as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import ir_datasets
import pandas as pd
import pyterrier as pt

from truerank.errors import InputError
from truerank.integrations.ir_datasets import restore
from truerank.lexical.index import Index, open_index
from truerank.lexical.presets import model_of, require_analyser
from truerank.lexical.scoring import Searcher
from truerank.lexical.searching import Retrieval, TopicQuery, search
from truerank.rankers.base import Pair, Ranker, open_ranker

_RESULTS: Final = ("docno", "score", "rank")
_NO_SETTINGS: Final[Mapping[str, Any]] = MappingProxyType({})


class TruerankDatasets(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """What `truerank.register` registered: `pt.get_dataset("truerank:NAME")`."""

    def get_dataset(self, name: str) -> Any:
        """The data set; what another process registered with `keep` is found too."""
        full = f"truerank/{name}"
        if full not in ir_datasets.registry:
            restore()
        if full not in ir_datasets.registry:
            raise KeyError(f"truerank: nothing is registered as '{name}'. call truerank.register first.")
        return pt.get_dataset(f"irds:{full}")

    def list_dataset_names(self) -> Iterable[str]:
        """The names that are registered in this process."""
        return [name.removeprefix("truerank/") for name in ir_datasets.registry if name.startswith("truerank/")]


class Search(pt.Transformer):  # type: ignore[misc]
    """Retrieves documents from an index of truerank for the queries of a frame.

    Args:
        index: the folder that `truerank index` wrote, or an opened index.
        model: as in `truerank.search`; by default the preset's usual model.
        k: documents for each query at most.
        retrieval: preset, weights of fields and settings of the model, as in `truerank.search`.
    """

    def __init__(
        self, index: Index | str | Path, model: str | None = None, *, k: int = 1000, retrieval: Retrieval = Retrieval()
    ) -> None:
        super().__init__()
        opened = index if isinstance(index, Index) else open_index(index)
        if not retrieval.any_analyser:
            require_analyser(opened, retrieval.preset)
        self._searcher = Searcher(opened, retrieval.weights or None)
        self._model = model_of(retrieval.preset, model or "", retrieval.set_)
        self._k = k

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Columns of the queries, and docno, score and rank (from 0); queries without a result have no row."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        kept = inp.drop(columns=[name for name in _RESULTS if name in inp.columns]).drop_duplicates("qid")
        try:
            queries = [TopicQuery(str(qid), str(text)) for qid, text in zip(kept["qid"], kept["query"], strict=True)]
            rows = search(self._searcher, queries, self._model, k=self._k).run.select(
                "topic_id", "doc_id", "score", "rank"
            )
            found = [(qid, docno, score, rank - 1) for qid, docno, score, rank in rows.iter_rows()]
        except InputError:
            # Index and model were checked when they were opened: none of these queries has a term of the collection.
            found = []
        results = pd.DataFrame(found, columns=["qid", *_RESULTS]).astype({"qid": str, "docno": str})
        return kept.assign(qid=kept["qid"].astype(str)).merge(results, on="qid", how="inner", sort=False)


class Rerank(pt.Transformer):  # type: ignore[misc]
    """Scores the documents of a frame of results by a ranker of truerank.

    Args:
        model: a ranker, or its name as in `truerank.rerank`: KIND:PLACE, a folder, a checkpoint.
        settings: of the model's kind, and of what runs it.
        text: the column with the text of each document; `pt.text.get_text` adds it.
    """

    def __init__(self, model: Ranker | str, settings: Mapping[str, Any] = _NO_SETTINGS, *, text: str = "text") -> None:
        super().__init__()
        self._ranker = open_ranker(model, **settings) if isinstance(model, str) else model
        self._text = text

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The rows with new scores and ranks (from 0), best first; equal scores by docno ascending, as in `rerank`."""
        pt.validate.result_frame(inp, extra_columns=["query", self._text])
        pairs = [Pair(str(query), str(text)) for query, text in zip(inp["query"], inp[self._text], strict=True)]
        scored = inp.assign(score=self._ranker.score(pairs) if pairs else pd.Series(dtype=float))
        place = pd.Series(pd.factorize(scored["qid"])[0], index=scored.index)
        ordered = scored.assign(_place=place).sort_values(
            ["_place", "score", "docno"], ascending=[True, False, True], kind="stable"
        )
        return ordered.assign(rank=ordered.groupby("_place").cumcount()).drop(columns="_place").reset_index(drop=True)
