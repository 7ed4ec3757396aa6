"""Reranking, its cache, BM25 as a ranker: against what one would compute by hand."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import truerank
from places import SUPPORT
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.lexical import BM25, build_index, model_of, search
from truerank.rankers.base import Pair, Scores, open_ranker, rounded
from truerank.rankers.bm25 import Bm25
from truerank.rankers.reranking.score_cache import CachedScores, ScoreCache
from truerank.sources import read_run_frame
from truerank.text.passages import passages, policy_named


class Overlap:
    """Scores by the words that query and document share, less the length."""

    name = "overlap"
    fingerprint = "overlap-1"

    def __init__(self) -> None:
        self.scored = 0

    def score(self, pairs: Sequence[Pair]) -> Scores:
        self.scored += len(pairs)
        return rounded(np.array([overlap(*pair) for pair in pairs], np.float64).reshape(len(pairs)))


def overlap(query: str, document: str) -> float:
    words = document.split()
    return sum(words.count(word) for word in set(query.split())) - len(words) / 1000


DOCS = {
    "d1": ("red fish", "blue fish and more fish"),
    "d2": ("", "red red red " + "grey " * 200 + "red fish fish fish fish"),
    "d3": ("fish", ""),
    "d10": ("fish", ""),
    "d4": ("", ""),
    "d5": ("a cow", "eats grass"),
    "d6": ("red", "cow"),
}
TOPICS = {"1": "red fish", "2": "cow", "3": "no document"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = (json.dumps({"doc_id": key, "title": title, "body": body}) for key, (title, body) in DOCS.items())
    (tmp_path / "docs.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "topics.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in TOPICS.items()))
    ranked = {"2": ["d5", "gone", "d6", "d1"], "1": ["d3", "d10", "d1", "d2", "d4", "d5", "d6"], "9": ["d1", "d2"]}
    rows = [
        f"{topic} Q0 {doc} {rank} {50 - rank} bm25\n"
        for topic, docs in ranked.items()
        for rank, doc in enumerate(docs, start=1)
    ]
    (tmp_path / "first.run").write_text("".join(rows))
    return tmp_path


def again(folder: Path, ranker: object = None, **options: object) -> truerank.rankers.reranking.rerank.Reranked:  # type: ignore[name-defined]
    given = (folder / "first.run", ranker or Overlap(), str(folder / "topics.tsv"), str(folder / "docs.jsonl"))
    return truerank.rerank(*given, **options)  # type: ignore[arg-type]


def order(run: pl.DataFrame, topic: str) -> list[str]:
    return run.filter(pl.col("topic_id") == topic).sort("rank")["doc_id"].to_list()


@pytest.mark.parametrize("aggregation", ["first", "max"])
@pytest.mark.parametrize("policy", [None, "sliding:10:5", "cast2022"])
def test_scores_are_those_of_the_passages(folder: Path, aggregation: str, policy: str | None) -> None:
    found = again(folder, passages=aggregation, split=policy).run
    cut = policy_named(policy or ("whole" if aggregation == "first" else "sliding:150:75"))
    for topic in ("1", "2"):
        rows = found.filter(pl.col("topic_id") == topic, pl.col("doc_id") != "gone")
        expected = {}
        for doc in rows["doc_id"]:
            scores = [overlap(TOPICS[topic], passage) for passage in passages(*DOCS[doc], cut)]
            expected[doc] = round(scores[0] if aggregation == "first" else max(scores), 6)
        assert dict(zip(rows["doc_id"], rows["score"].round(5), strict=True)) == {
            doc: round(score, 5) for doc, score in expected.items()
        }
        assert rows["doc_id"].to_list() == sorted(expected, key=lambda doc: (-expected[doc], doc))


def test_ties_go_by_id_and_the_rest_keeps_its_place(folder: Path) -> None:
    found = again(folder, depth=3)
    assert order(found.run, "1") == ["d1", "d10", "d3", "d2", "d4", "d5", "d6"]
    assert order(found.run, "2") == ["d6", "d5", "gone", "d1"]
    assert order(found.run, "9") == ["d1", "d2"]
    assert found.missing == ("gone",)
    assert found.no_text == ("9",)
    assert found.counts["documents"] == 5
    assert found.run["topic_id"].unique(maintain_order=True).to_list() == ["2", "1", "9"]
    for topic in ("1", "2", "9"):
        rows = found.run.filter(pl.col("topic_id") == topic)
        assert rows["rank"].to_list() == list(range(1, len(rows) + 1))
        # The scores alone give the order, ties by id ascending.
        assert rows.sort("score", "doc_id", descending=[True, False])["doc_id"].to_list() == rows["doc_id"].to_list()
    assert "1 candidates are not in the collection" in summary(found).show()


def test_cutting_leaves_what_was_reranked(folder: Path) -> None:
    found = again(folder, depth=3, cut=True)
    assert order(found.run, "1") == ["d1", "d10", "d3"]
    assert order(found.run, "2") == ["d6", "d5"]
    assert order(found.run, "9") == ["d1", "d2"]


def test_the_run_and_its_manifest(folder: Path) -> None:
    written = folder / "out.run.gz"
    found = again(folder, tag="mine", out=written)
    frame = read_run_frame(written)
    assert frame["doc_id"].to_list() == found.run["doc_id"].to_list()
    assert set(frame["tag"]) == {"mine"}
    manifest = json.loads((folder / "out.run.gz.manifest.json").read_text())
    assert manifest["skipped"]["missing"] == ["gone"]
    assert manifest["inputs"][-1]["sha256"] == "overlap-1"
    assert manifest["options"]["passages"] == "first"
    first = written.read_bytes(), (folder / "out.run.gz.manifest.json").read_bytes()
    again(folder, tag="mine", cache=folder / "scores.sqlite", out=written)
    again(folder, tag="mine", cache=folder / "scores.sqlite", out=written)
    assert (written.read_bytes(), (folder / "out.run.gz.manifest.json").read_bytes()) == first


def test_no_pair_is_scored_twice(folder: Path) -> None:
    ranker = Overlap()
    cold = again(folder, ranker, depth=3, cache=folder / "scores.sqlite")
    scored = ranker.scored
    # d3 and d10 are one text.
    assert scored == cold.counts["asked"] == 4
    warm = again(folder, ranker, cache=folder / "scores.sqlite")
    assert warm.counts["hits"] == 4
    assert ranker.scored == warm.counts["asked"]
    assert warm.run.equals(again(folder).run)
    other = Overlap()
    other.fingerprint = "overlap-2"
    assert again(folder, other, depth=3, cache=folder / "scores.sqlite").counts["hits"] == 0


def test_faults_of_the_user_are_named(folder: Path) -> None:
    (folder / "other.tsv").write_text("77\tnothing\n")
    (folder / "other.jsonl").write_text('{"doc_id": "x", "text": "y"}\n')
    (folder / "no.sqlite").write_text("no database, but longer than a header of one would be" * 9)
    given = [folder / "first.run", Overlap(), str(folder / "topics.tsv"), str(folder / "docs.jsonl")]
    for place, value, message in (
        (0, folder / "absent.run", "absent.run"),
        (2, str(folder / "other.tsv"), "none of the run's topics"),
        (3, str(folder / "other.jsonl"), "none of the run's 9 documents|none of the run's 8 documents"),
        (1, "nothing/of/that/name", "Hugging Face"),
    ):
        with pytest.raises(InputError, match=message):
            truerank.rerank(*[value if number == place else one for number, one in enumerate(given)])
    for options in ({"depth": 0}, {"split": "none"}, {"cache": folder / "no.sqlite"}, {"field": "title+x"}):
        with pytest.raises(InputError):
            truerank.rerank(*given, **options)


def test_scores_that_are_no_numbers_are_refused(folder: Path) -> None:
    class Broken(Overlap):
        def score(self, pairs: Sequence[Pair]) -> Scores:
            return np.full(len(pairs), np.nan, np.float32)

    with pytest.raises(InputError, match="not finite numbers"):
        again(folder, Broken(), cache=folder / "scores.sqlite")
    assert len(ScoreCache(folder / "scores.sqlite")) == 0


def _fill(path: Path, start: int) -> None:
    cache = ScoreCache(path)
    for number in range(start, start + 20):
        pairs = [Pair(str(number), str(other)) for other in range(50)]
        cache.put("f", pairs, np.arange(50, dtype=np.float32) + start)


def test_processes_share_a_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    path = tmp_path / "scores.sqlite"
    workers = [context.Process(target=_fill, args=(path, start)) for start in (0, 10, 20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    cache = ScoreCache(path)
    assert len(cache) == 40 * 50
    pairs = [Pair(str(number), "7") for number in range(40)]
    known = cache.get("f", pairs)
    assert len(known) == 40
    assert all(score - 7 in (0, 10, 20) for score in known.values())
    assert cache.get("g", pairs) == {}
    # A part's end is not part of the next: "1","23" is not "12","3".
    cache.put("x", [Pair("1", "23")], np.ones(1, np.float32))
    assert cache.get("x", [Pair("12", "3")]) == {}
    asked = CachedScores(Overlap(), cache)
    assert asked.score([Pair("\ud800", "\ud800 \ud800")]).tolist() == [np.float32(1.998)]


def test_a_killed_job_ends_with_the_same_bytes(folder: Path) -> None:
    docs = [f"d{number}" for number in range(3000)]
    lines = (
        json.dumps({"doc_id": doc, "body": f"fish {'red ' * (number % 7)}{doc}"}) for number, doc in enumerate(docs)
    )
    (folder / "docs.jsonl").write_text("\n".join(lines) + "\n")
    topics = range(4)
    (folder / "topics.tsv").write_text("".join(f"t{topic}\tred fish d{topic}\n" for topic in topics))
    rows = (f"t{topic} Q0 {doc} {rank} {9000 - rank} x\n" for topic in topics for rank, doc in enumerate(docs))
    (folder / "first.run").write_text("".join(rows))
    script = folder / "job.py"
    script.write_text(
        "import sys, time, pathlib\n"
        f"sys.path[:0] = [{str(SUPPORT)!r}, {str(Path(__file__).parent)!r}]\n"
        "from test_rankers_rerank import Overlap, again\n"
        "class Slow(Overlap):\n"
        "    def score(self, pairs):\n"
        "        time.sleep(float(sys.argv[2]))\n"
        "        return super().score(pairs)\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "ranker = Slow()\n"
        "again(here, ranker, depth=3000, out=here / 'out.run')\n"
        "(here / 'scored').write_text(str(ranker.scored))\n"
    )
    again(folder, depth=3000, out=folder / "whole.run")
    job = subprocess.Popen([sys.executable, str(script), str(folder), "3"], env=os.environ)
    until = time.monotonic() + 60
    while not list((folder / ".out.run.work").rglob("*.arrow")) and time.monotonic() < until:
        time.sleep(0.05)
    job.send_signal(signal.SIGKILL)
    job.wait()
    assert not (folder / "out.run").exists()
    finished = len(list((folder / ".out.run.work").rglob("*.arrow")))
    assert 1 <= finished < 4
    subprocess.run([sys.executable, str(script), str(folder), "0"], check=True, env=os.environ)
    assert int((folder / "scored").read_text()) == 3000 * (4 - finished)
    assert (folder / "out.run").read_bytes() == (folder / "whole.run").read_bytes()
    assert not (folder / ".out.run.work").exists()


def test_bm25_scores_as_searching_does(folder: Path) -> None:
    index = build_index(str(folder / "docs.jsonl"), folder / "index")
    found = search(index, str(folder / "topics.tsv"), model_of("anserini", "bm25", {}), k=10).run
    ranker = open_ranker(f"bm25:{folder / 'index'}")
    for topic, doc, score in found.select("topic_id", "doc_id", "score").iter_rows():
        text = " ".join(part for part in DOCS[doc] if part)
        assert ranker.score([Pair(TOPICS[topic], text)])[0] == pytest.approx(score, abs=2e-6)
    assert ranker.score([Pair("cow", "nothing of it"), Pair("", "cow"), Pair("cow", "")]).tolist() == [0, 0, 0]
    ranker.save(folder / "saved")
    saved = open_ranker(str(folder / "saved"))
    assert isinstance(saved, Bm25)
    assert saved.fingerprint == ranker.fingerprint
    assert open_ranker(f"bm25:{folder / 'index'}", k1=2.0).fingerprint != ranker.fingerprint
    assert again(folder, ranker).counts["documents"] == 10
    with pytest.raises(InputError, match="no such setting"):
        open_ranker(f"bm25:{folder / 'index'}", k2=1)
    assert Bm25(index, BM25()).name == "BM25 (k1 0.9, b 0.4)"


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from truerank.cli import main

    build_index(str(folder / "docs.jsonl"), folder / "index")
    words = [
        "rerank", "--model", f"bm25:{folder / 'index'}", "--run", str(folder / "first.run"), "--topics",
        str(folder / "topics.tsv"), "--docs", str(folder / "docs.jsonl"), "--out", str(folder / "out.run"),
    ]  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json", "--set", "k1=1.2", "--passages", "max", "--split", "sliding:20"])
    assert ended.value.code == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["policy"] == "sliding:20:10"
    assert printed["ranker"]["name"] == "BM25 (k1 1.2, b 0.4)"
    assert printed["rows"] == len(read_run_frame(folder / "out.run"))
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".out")) == []
    with pytest.raises(SystemExit) as ended:
        main([*words, "--set", "k9=1"])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
