"""A bi-encoder encodes each document once in a run, whatever the blocks, and scores as it would without that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import truerank
from truerank.rankers.base import Pair, Scores, rounded
from truerank.rankers.reranking import rerank as reranking
from truerank.rankers.reranking.score_cache import SharedVectors, encode_shared
from truerank.work.engines import LocalEngine
from truerank.work.jobs import Job


class Letters:
    """Compares counts of letters; remembers what it encoded. With `several`, a document has a vector for each word."""

    name = "letters"
    fingerprint = "letters-1"

    def __init__(self, *, several: bool = False) -> None:
        self.known = None
        self.several = several
        self.encoded: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        known = {} if self.known is None else dict(self.known(texts))
        new = [text for text in texts if text not in known]
        self.encoded += new
        return known | {text: self._vectors(text) for text in new}

    def _vectors(self, text: str) -> NDArray[np.float32]:
        return np.stack([counts(word) for word in text.split() or [""]]) if self.several else counts(text)

    def score(self, pairs: Sequence[Pair]) -> Scores:
        vectors = self.encode_documents(sorted({pair.document for pair in pairs}))
        return rounded(np.array([np.max(vectors[pair.document] @ counts(pair.query)) for pair in pairs]))


def counts(text: str) -> NDArray[np.float32]:
    return np.array([text.count(letter) for letter in "abcdefgh"], np.float32) / (len(text) + 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = {f"d{number}": f"cab {'beg ' * (number % 4)}head {number}" for number in range(12)}
    lines = (json.dumps({"doc_id": key, "body": text}) for key, text in docs.items())
    (tmp_path / "docs.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "topics.tsv").write_text("".join(f"{n}\tabc {'fed ' * n}\n" for n in range(1, 6)))
    # Each topic has eight documents; d0 to d3 are in all, the others in some.
    rows = []
    for topic in range(1, 6):
        chosen = [0, 1, 2, 3, *((topic + step) % 8 + 4 for step in range(4))]
        rows += [f"{topic} Q0 d{doc} {rank} {20 - rank} x\n" for rank, doc in enumerate(chosen, start=1)]
    (tmp_path / "first.run").write_text("".join(rows))
    return tmp_path


def again(folder: Path, ranker: Letters, **options: object):  # type: ignore[no-untyped-def]
    given = (folder / "first.run", ranker, str(folder / "topics.tsv"), str(folder / "docs.jsonl"))
    return truerank.rerank(*given, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("block", [1, 8, 16, 1000])
def test_each_document_is_encoded_once(
    folder: Path, block: int, several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranking, "_BLOCK", block)
    ranker = Letters(several=several)
    found = again(folder, ranker)
    assert sorted(ranker.encoded) == sorted(set(ranker.encoded))
    assert len(ranker.encoded) == 12
    # What the caller does with the ranker afterwards owes nothing to the run.
    assert ranker.known is None
    monkeypatch.setattr(reranking, "encode_shared", lambda *given: None)
    plain = Letters(several=several)
    assert again(folder, plain).run.equals(found.run)
    # In one block nothing is encoded twice; in several, documents of several topics are.
    assert (len(plain.encoded) == 12) == (block == 1000)


def test_a_killed_run_encodes_no_document_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reranking, "_BLOCK", 8)
    again(folder, Letters(), out=folder / "whole.run")

    class Killed(Letters):
        calls = 0

        def score(self, pairs: Sequence[Pair]) -> Scores:
            Killed.calls += 1
            if Killed.calls == 3:
                raise KeyboardInterrupt
            return super().score(pairs)

    with pytest.raises(KeyboardInterrupt):
        again(folder, Killed(), out=folder / "again.run")
    later = Letters()
    again(folder, later, out=folder / "again.run")
    assert (folder / "again.run").read_bytes() == (folder / "whole.run").read_bytes()
    # Two documents are candidates of one topic only: their blocks encode them.
    assert set(later.encoded) <= {"cab head 4", "cab beg head 5"}


def test_a_cache_of_scores_needs_no_vectors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reranking, "_BLOCK", 8)
    first = again(folder, Letters(), cache=folder / "scores.sqlite")
    later = Letters()
    assert again(folder, later, cache=folder / "scores.sqlite").run.equals(first.run)
    assert later.encoded == []


def test_vectors_come_back_as_they_were(tmp_path: Path) -> None:
    ranker = Letters(several=True)
    blocks = [["a b", "half \ud800", "only here"], ["a b", "", "half \ud800"], ["", "also once"]]
    shared = encode_shared(ranker, ranker, blocks, Job(tmp_path, LocalEngine()))  # type: ignore[arg-type]
    assert shared is not None
    assert sorted(ranker.encoded) == ["", "a b", "half \ud800"]
    kept = SharedVectors(*shared)(["a b", "only here", "", "half \ud800"])
    assert set(kept) == {"a b", "", "half \ud800"}
    for text, vectors in kept.items():
        assert np.array_equal(vectors, ranker._vectors(text))
    assert encode_shared(ranker, ranker, [["x"], ["y"]], Job(tmp_path / "none")) is None  # type: ignore[arg-type]
    assert encode_shared(object(), ranker, blocks, Job(tmp_path / "cross")) is None  # type: ignore[arg-type]
