"""The learner of HiCAL against a reference: features, optimum, the next document, traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hical_reference import Reference, dense, generated, optimum
from places import DATA
from truerank.audits.pool import ActiveLearner, Features, LearnerOptions, trace
from truerank.audits.pool.active import LinearModel, fit
from truerank.errors import InputError
from truerank.records import Document
from truerank.sources import open_documents, read_qrels, read_topics

CACM = DATA / "collections" / "cacm"


def agreement(documents: list[Document], queries: dict[str, str], grades: dict, steps: int) -> tuple[int, int]:
    """In how many steps learner and reference choose the same document, and of how many."""
    features, same, total = Features.of_documents(documents), 0, 0
    for topic, query in queries.items():
        learner = ActiveLearner(features, topic, query, seed=3)
        reference = Reference(documents, query)
        judged: dict[str, int] = {}
        for _ in range(steps):
            (chosen,) = learner.next(judged, 1)
            same += chosen == reference.next(learner, judged)
            total += 1
            judged[chosen] = grades[topic].get(chosen, 0)
    return same, total


def test_features_are_those_of_the_reference(tmp_path: Path) -> None:
    documents, queries, _ = generated()
    extra = [Document("e1", "", "Généralités, x 4ever", "IT it's running-up and-u"), Document("e2", "", "42", "!")]
    features = Features.of_documents([*documents, *extra])
    matrix, columns, _ = dense([*documents, *extra[1:], Document("e1", "", "", "")])
    # Letters beyond ASCII are letters too, which the reference does not know: its e1 is empty here.
    assert list(features.terms) == sorted(columns) and features.doc_ids[-1] == "e2"
    np.testing.assert_allclose(features.matrix.toarray()[: len(documents)], matrix[: len(documents)], atol=1e-6)
    assert features.matrix[-1].nnz == 0
    lengths = np.linalg.norm(features.matrix.toarray(), axis=1)
    assert np.allclose(lengths[:-2], 1, atol=1e-6)
    assert np.isclose(np.linalg.norm(features.vector(queries["t1"]).toarray()), 1)
    assert features.vector("nothing that is known").nnz == 0
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(f'{{"doc_id": "{d.doc_id}", "text": "{d.body}"}}\n' for d in documents))
    streamed, held = Features.of_collection(str(path), tmp_path / "index"), Features.of_documents(documents)
    assert tuple(streamed.doc_ids) == held.doc_ids and tuple(streamed.terms) == held.terms
    assert abs(streamed.matrix - held.matrix).max() == 0
    with pytest.raises(InputError, match="no documents"):
        Features.of_documents([])
    with pytest.raises(InputError, match="two documents of one id"):
        Features.of_documents([documents[0], documents[0]])


def test_the_optimum_is_that_of_an_independent_solver() -> None:
    documents, _, _ = generated()
    matrix, _, _ = dense(documents)
    features = Features.of_documents(documents)
    draw = np.random.default_rng(1)
    start = LinearModel(np.zeros(matrix.shape[1]), 0.0)
    for relevant_rows in (1, 5, 60):
        rows = draw.permutation(len(documents))[:200]
        labels = np.zeros(200, np.bool_)
        labels[:relevant_rows] = True
        found = fit(features.matrix[rows].astype(np.float64), labels, 1e-4, start)
        best = optimum(matrix[rows], labels, 1e-4)
        assert np.linalg.norm(found.weights - best) < 1e-4 * np.linalg.norm(best)
        again = fit(features.matrix[rows].astype(np.float64), labels, 1e-4, found)
        assert again.steps <= 1
        start = found


def test_the_next_document_is_that_of_the_reference() -> None:
    same, total = agreement(*generated(), steps=15)
    assert total == 60 and same >= 59


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.shared
def test_the_next_document_is_that_of_the_reference_on_cacm() -> None:
    documents = list(open_documents(str(CACM / "cacm.tar.gz")))
    grades: dict[str, dict[str, int]] = {}
    for qrel in read_qrels(str(CACM / "qrels.txt")):
        grades.setdefault(qrel.topic_id, {})[qrel.doc_id] = qrel.relevance
    texts = {one.topic_id: one.title for one in read_topics(str(CACM / "topics.txt")).topics}
    queries = {topic: texts[topic] for topic in ("4", "25")}
    same, total = agreement(documents, queries, grades, steps=50)
    assert total == 100 and same >= 0.99 * total


@pytest.fixture(scope="module")
def small() -> Iterator[tuple[Features, dict[str, str], dict]]:
    documents, queries, grades = generated()
    yield Features.of_documents(documents), queries, grades


def test_a_trace_begins_with_the_pool_and_grows_by_a_tenth(small: tuple) -> None:
    features, queries, grades = small
    pool = ["d0007", "d0001", "unknown", "d0007"]
    found = trace(features, "t0", queries["t0"], pool, lambda d: grades["t0"].get(d, 0), length=120, seed=4)
    assert found.doc_ids[:3] == ("d0007", "d0001", "unknown") and found.pool_size == 3
    assert len(found) == len(set(found.doc_ids)) == 120 and not found.whole
    sizes = np.bincount(found.batches).tolist()
    assert sizes[:13] == [3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13] and sum(sizes) == 120
    assert found.found[-1] == sum(grade >= 1 for grade in found.grades)
    assert found.qrels(5)["relevance"].to_list() == list(found.grades[:5])
    again = trace(features, "t0", queries["t0"], pool, lambda d: grades["t0"].get(d, 0), length=120, seed=4)
    assert again == found
    other = trace(features, "t0", queries["t0"], pool, lambda d: grades["t0"].get(d, 0), length=120, seed=5)
    assert other.doc_ids[:3] == found.doc_ids[:3] and other.doc_ids != found.doc_ids
    shorter = trace(features, "t0", queries["t0"], pool, lambda d: grades["t0"].get(d, 0), length=50, seed=4)
    assert shorter.doc_ids == found.doc_ids[:50]


def test_everything_is_judged_at_last(small: tuple) -> None:
    features, queries, grades = small
    found = trace(features, "t1", queries["t1"], [], lambda d: grades["t1"].get(d, 0), length=10_000)
    assert found.whole and sorted(found.doc_ids) == sorted(features.doc_ids)
    # Relevant documents come first, by far.
    early = found.found[2 * len(grades["t1"]) + 100 - 1]
    assert early >= 0.95 * len(grades["t1"])
    pooled = trace(features, "t1", queries["t1"], list(features.doc_ids), lambda d: 0, length=5)
    assert pooled.whole and len(pooled) == pooled.pool_size == len(features)


def test_labels_count_as_they_stand(small: tuple) -> None:
    features, queries, grades = small
    learner = ActiveLearner(features, "t2", queries["t2"], seed=1)
    judged: dict[str, int] = {}
    for _ in range(15):
        (chosen,) = learner.next(judged, 1)
        judged[chosen] = grades["t2"].get(chosen, 0)
    before = learner.next(judged, 20)
    changed = dict.fromkeys(judged, 0)
    assert learner.next(changed, 20) != before
    assert learner.next(judged, 20) == before
    # In another order, in another process, after other questions: the labels alone count.
    fresh = ActiveLearner(features, "t2", queries["t2"], seed=1)
    assert fresh.next(dict(reversed(judged.items())), 20) == before
    assert not set(fresh.next(judged, 20, excluded=before[:5])) & set(before[:5])
    assert fresh.next(judged, 0) == []
    high = ActiveLearner(features, "t2", queries["t2"], 1, LearnerOptions(rel=9))
    assert high.next(judged, 5) == fresh.next(changed, 5)


def test_odd_queries_and_options(small: tuple) -> None:
    features, _, _ = small
    nothing = ActiveLearner(features, "t", "zzz", seed=2)
    assert len(set(nothing.next({}, 30))) == 30
    assert nothing.next({}, 10**6) and nothing.next(dict.fromkeys(features.doc_ids, 0), 3) == []
    every = dict.fromkeys(features.doc_ids, 1)
    every.pop("d0000")
    assert nothing.next(every, 3) == ["d0000"]
    for wrong in ({"random": 0}, {"batch": 0}, {"regularisation": 0.0}):
        with pytest.raises(InputError):
            LearnerOptions(**wrong)
    assert [LearnerOptions().left_of_batch(chosen) for chosen in (0, 1, 2, 3, 5, 6)] == [1, 2, 1, 3, 1, 4]
    assert LearnerOptions(batch=5, growing=False).left_of_batch(7) == 3
