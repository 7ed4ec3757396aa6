"""Ranking all documents block by block, for several models at once, against the whole matrix in 64 bits."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hical_reference import generated
from mapping_task import MappingBlock, MappingTask
from truerank.audits.pool import ActiveLearner, Features, LearnerOptions, SimulationOptions, trace
from truerank.audits.pool import features as features_module
from truerank.audits.pool.active import ModelQuery, rank, traces
from truerank.audits.pool.features import TermCounts, write_features
from truerank.audits.pool.trials import StepCost, duration, measure_step, steps_of
from truerank.errors import InputError
from truerank.lexical import build_index
from truerank.records import Document
from truerank.work.engines import LocalEngine

BLOCK = 64
NONE = np.empty(0, np.int64)


def mixed(number: int) -> int:
    """SplitMix64's finaliser in whole numbers."""
    whole = (1 << 64) - 1
    number = (number ^ (number >> 30)) * 0xBF58_476D_1CE4_E5B9 & whole
    number = (number ^ (number >> 27)) * 0x94D0_49BB_1331_11EB & whole
    return number ^ (number >> 31)


def by_the_whole_matrix(features: Features, query: ModelQuery) -> list[int]:
    """Every document in 64 bits, sorted; equal scores in the order of the mask."""
    weights = np.zeros(len(features.terms))
    weights[query.terms] = query.weights
    scores = (features.matrix.astype(np.float64) @ weights).tolist()
    left = sorted(set(range(len(features))) - set(query.taken.tolist()))
    return sorted(left, key=lambda row: (-scores[row], mixed(row ^ int(query.mask))))[: query.n]


class WholeMatrix(ActiveLearner):
    """The learner as it was: one model at a time, 32-bit scores by the whole matrix, the best of them in 64 bits."""

    def best(self, judged, grades, n, excluded=NONE):
        query = self.query(judged, grades, n, excluded)
        weights = np.zeros(len(self.features.terms))
        weights[query.terms] = query.weights
        scores = self.features.matrix @ weights.astype(np.float32)
        scores[query.taken] = -np.inf
        if not query.n:
            return []
        wide = min(query.n + 64, len(scores) - len(query.taken))
        border = np.sort(scores)[-wide]
        candidates = np.flatnonzero(scores >= border)
        exact = self.features.matrix[candidates].astype(np.float64) @ weights
        ties = np.array([mixed(int(row) ^ int(query.mask)) for row in candidates], np.uint64)
        return [int(row) for row in candidates[np.lexsort((ties, -exact))[: query.n]]]


def texts() -> list[Document]:
    """Generated documents; some stand several times, and some hold no term that another one holds."""
    documents, _, _ = generated()
    again = [document._replace(doc_id=f"e{at}") for at, document in enumerate(documents[:90])]
    nothing = [
        Document(f"ü{at}", "", "", "".join(chr(97 + at // 26**each % 26) for each in range(6))) for at in range(9)
    ]
    return [*documents, *again, *nothing]


@pytest.fixture(scope="module")
def held() -> Features:
    return Features.of_documents(texts())


@pytest.fixture(scope="module")
def mapped(tmp_path_factory) -> Features:
    """The same from an index, in blocks of few documents."""
    docs = tmp_path_factory.mktemp("docs") / "docs.jsonl"
    docs.write_text("".join(f'{{"doc_id": "{one.doc_id}", "text": "{one.body}"}}\n' for one in texts()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features_module, "_AT_ONCE", BLOCK)
        return Features.of_collection(str(docs), docs.parent / "index")


def queries(features: Features, count: int) -> list[ModelQuery]:
    """Models of all kinds: of many terms and of few, of none, with near ties; some documents are taken."""
    found = []
    for number in range(count):
        draw = np.random.default_rng(number)
        terms = np.sort(draw.permutation(len(features.terms))[: (0, 1, 5, len(features.terms))[number % 4]])
        # Weights far apart: 32 bits say little of what the small ones add up to.
        weights = draw.normal(size=len(terms)) * 10.0 ** draw.integers(-6, 3, len(terms))
        taken = np.sort(draw.permutation(len(features))[: draw.integers(0, 300)]).astype(np.int64)
        n = (1, 7, len(features) - len(taken), 0)[number // 4 % 4]
        found.append(ModelQuery(terms, weights, taken, n, np.uint64(draw.integers(0, 1 << 63))))
    return found


@pytest.mark.parametrize("together", [1, 3, 48])
def test_the_likeliest_are_those_of_the_whole_matrix(held: Features, mapped: Features, together: int) -> None:
    assert len(mapped.blocks) == -(-len(held) // BLOCK) and len(held.blocks) == 1
    asked = queries(held, 48)
    expected = [by_the_whole_matrix(held, query) for query in asked]
    for features in (held, mapped):
        found = [rows for at in range(0, 48, together) for rows in rank(features, asked[at : at + together])]
        assert found == expected


def test_scores_closer_than_32_bits_are_told_apart(tmp_path: Path) -> None:
    """A thousand documents whose scores differ in the ninth digit: 64 of them more would not do."""
    draw = np.random.default_rng(2)
    count, frequency = 3000, np.array([3000, 3000, 2999])
    blocks = []
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        counts = np.stack([np.full(size, 9000), draw.integers(1, 9000, size), draw.integers(1, 9000, size)], axis=1)
        blocks.append(TermCounts(np.full(size, 3), np.tile(np.arange(3), size), counts.ravel()))
    ids = [f"d{number}" for number in range(count)]
    # ln(N/df) of two terms would be 0: as if the collection held more documents.
    frequency = frequency // 2
    features = write_features(tmp_path / "features", ids, ["ab", "cd", "ef"], frequency, blocks)
    asked = [
        ModelQuery(np.arange(3), np.array([1e4, small, -small]), NONE, 500, np.uint64(5)) for small in (1e-4, 1e-3, 0.1)
    ]
    assert rank(features, asked) == [by_the_whole_matrix(features, query) for query in asked]
    assert [features.doc_ids.find(name) for name in ("d7", "d2999", "d3000", "", "e")] == [7, 2999, None, None, None]


def test_traces_are_those_of_one_model_at_a_time(mapped: Features) -> None:
    _, texts_of, grades = generated()
    pools: Sequence[Sequence[str]] = (["d0007", "unknown", "e3"], [], ["d0101"], ["d0007", "d0101", "ü2"])

    def judge(doc_id: str) -> int:
        return grades["t1"].get(doc_id, 0)

    together = traces(mapped, "t1", texts_of["t1"], pools, judge, length=150, seed=3)
    alone = tuple(trace(mapped, "t1", texts_of["t1"], pool, judge, length=150, seed=3) for pool in pools)
    assert together == alone
    for one, pool in zip(together, pools, strict=True):
        learner, labels, size = WholeMatrix(mapped, "t1", texts_of["t1"], 3), {each: judge(each) for each in pool}, 1
        while len(labels) < 150:
            chosen = learner.next(labels, min(size, 150 - len(labels)))
            labels |= {doc_id: judge(doc_id) for doc_id in chosen}
            size = learner.options.following(size)
        assert one.doc_ids == tuple(labels) and one.grades == tuple(labels.values())
        assert max(one.batches) == steps_of(LearnerOptions(), 150 - len(pool))


def test_features_are_written_once_and_hold_no_memory(mapped: Features, held: Features, tmp_path: Path) -> None:
    def is_mapped(array: np.ndarray) -> bool:
        base = array
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        return isinstance(base, mmap.mmap)

    arrays = [mapped.idf, mapped.starts, mapped.columns, mapped.weights]
    for block in mapped.blocks:
        arrays += [block.begins, block.terms, block.starts, block.rows, block.weights]
        assert np.shares_memory(block.matrix.indices, block.rows) and np.shares_memory(block.matrix.data, block.weights)
    assert all(is_mapped(array) and not array.flags.writeable for array in arrays)
    assert np.shares_memory(mapped.matrix.data, mapped.weights)
    assert np.shares_memory(mapped.matrix.indices, mapped.columns)
    assert tuple(mapped.doc_ids) == held.doc_ids and mapped.doc_ids[-3:] == held.doc_ids[-3:]
    assert [mapped.terms.find(term) for term in held.terms] == list(range(len(held.terms)))
    assert "d0007" in mapped.doc_ids and "nowhere" not in mapped.doc_ids
    assert (mapped.matrix != held.matrix).nnz == 0 and mapped.disk_bytes == 16 * len(held.columns) > held.disk_bytes


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc/self/smaps")
def test_workers_map_the_same_files(tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(f'{{"doc_id": "{one.doc_id}", "text": "{one.body}"}}\n' for one in texts()))
    index = build_index(str(docs), tmp_path / "index", analyser=features_module.ANALYSER).folder
    Features.of_index(index)
    written = {path.name: path.stat().st_mtime_ns for path in (index / "features").iterdir()}
    answers = [answer for _, answer in LocalEngine(2).run(MappingTask(index), map(MappingBlock, range(2)))]
    assert answers[0][0] == answers[1][0]
    for _, copied in answers:
        wanted = {
            f"{name}.bin" for name in ("starts", "columns", "weights", "block.rows", "block.weights", "block.terms")
        }
        assert wanted <= copied.keys() and not any(copied.values())
    assert {path.name: path.stat().st_mtime_ns for path in (index / "features").iterdir()} == written
    # Files that were cut off, and features of another index, are made again.
    rows = index / "features" / "block.rows.bin"
    size = rows.stat().st_size
    rows.write_bytes(rows.read_bytes()[:-4])
    Features.of_index(index)
    assert len(rows.read_bytes()) == size
    manifest = index / "features" / "features.json"
    manifest.write_text(manifest.read_text().replace('"source": "', '"source": "x'))
    assert len(Features.of_index(index)) == len(texts())
    with pytest.raises(InputError, match="features"):
        Features.open(tmp_path)


def test_a_plan_counts_steps_and_measures_them(mapped: Features) -> None:
    options = LearnerOptions()
    assert [steps_of(options, judgments) for judgments in (0, 1, 2, 3, 4, 6)] == [0, 1, 2, 2, 3, 3]
    assert steps_of(LearnerOptions(batch=5, growing=False), 11) == 3
    assert [duration(seconds) for seconds in (3, 120, 7200)] == ["3 s", "2 min", "2.0 hours"]
    pools, grades = [["d0001"], ["d0002", "nowhere"]], {"d0003": 1, "d0001": 2, "elsewhere": 1}
    cost = measure_step(mapped, "quarka", pools, grades, options=options, length=100)
    assert cost.pools == 2 and cost.documents == len(mapped) and cost.training > 0 and cost.ranking > 0
    assert StepCost(0.25, 0.5, 1, 1, 1.0).seconds == 0.75
    assert SimulationOptions().learner == options
