"""Topics by the median reciprocal rank, against medians that are worked out by hand and by a plain count."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from places import DATA
from truerank.audits.track import select_topics
from truerank.audits.track.selection import TopicRow
from truerank.cli import main
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.sources import read_qrels, read_run

DOCUMENTS = tuple("abcdefghijkl")
#: By topic, the rank of the relevant document "r" in each of three runs; 0 where it is not found.
RANKS = {"1": (1, 2, 4), "2": (1, 1, 7), "3": (0, 0, 1), "4": (2, 2, 2), "5": (12, 4, 0), "6": (3, 9, 10)}


def made(folder: Path, ranks: dict[str, tuple[int, ...]] = RANKS) -> tuple[list[str], str]:
    """Runs of twelve results, and qrels."""
    runs = []
    for number in range(len(next(iter(ranks.values())))):
        lines = []
        for topic, places in ranks.items():
            documents = list(DOCUMENTS)
            if places[number]:
                documents.insert(places[number] - 1, "r")
            lines += [f"{topic} Q0 {doc} {rank} {-rank} run{number}" for rank, doc in enumerate(documents[:12], 1)]
        runs.append(folder / f"run{number}.run")
        runs[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    qrels = folder / "sparse.qrels"
    judged = "".join(f"{topic} 0 r 1\n" for topic in ranks if topic != "6")
    qrels.write_text(judged + "6 0 r 0\n8 0 r 1\n", encoding="utf-8")
    return [str(run) for run in runs], str(qrels)


def test_medians_ranks_and_reasons(tmp_path: Path) -> None:
    runs, qrels = made(tmp_path)
    result = select_topics(runs, qrels)
    assert result.topics == (
        TopicRow("1", 0.5, 3, 1, 2.0, "chosen"),
        TopicRow("2", 1.0, 3, 1, 1.0, "median above 0.5"),
        TopicRow("3", 0.0, 1, 1, 1.0, "median not above 0"),
        TopicRow("4", 0.5, 3, 2, 2.0, "chosen"),
        TopicRow("5", 0.0, 1, 4, 4.0, "median not above 0"),
        TopicRow("6", 0.0, 0, None, None, "nothing relevant is judged"),
        TopicRow("8", 0.0, 0, None, None, "median not above 0"),
    )
    assert result.chosen == ("1", "4")
    assert result.measure == "RR_MSMARCO@10"
    text = summary(result).show()
    assert "0 < median ≤ 0.5" in text
    assert "RR_MSMARCO@10" in text
    deeper = {row.topic_id: row for row in select_topics(runs, qrels, cutoff=0).topics}
    assert deeper["5"] == TopicRow("5", 1 / 12, 2, 4, 8.0, "chosen")


def test_bounds_and_an_even_number_of_runs(tmp_path: Path) -> None:
    runs, qrels = made(tmp_path)
    result = select_topics(runs[:2], qrels, low=0.5, high=0.75, by_score=True)
    assert {row.topic_id: row.median for row in result.topics}["1"] == 0.75
    assert result.chosen == ("1",)
    assert result.measure == "RR@10"
    for low, high in ((-0.1, 0.5), (0.5, 0.5), (0.2, 1.1)):
        with pytest.raises(InputError, match=r"(low|high): must be"):
            select_topics(runs, qrels, low=low, high=high)


def test_the_rank_column_or_the_score(tmp_path: Path) -> None:
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run.write_text("1 Q0 r 1 1 t\n1 Q0 x 2 2 t\n1 Q0 y 3 3 t\n", encoding="utf-8")
    qrels.write_text("1 0 r 1\n", encoding="utf-8")
    assert select_topics([run], str(qrels), high=1).topics[0].best_rank == 1
    assert select_topics([run], str(qrels), high=1, by_score=True, ties="ascending").topics[0].best_rank == 3


def test_the_draw(tmp_path: Path) -> None:
    ranks = {f"t{number}": (2, 3, 4) for number in range(60)}
    runs, qrels = made(tmp_path, ranks)
    drawn = select_topics(runs, qrels, n=20, seed=3)
    assert len(drawn.chosen) == 20
    assert drawn == select_topics(runs, qrels, n=20, seed=3)
    assert drawn.chosen != select_topics(runs, qrels, n=20, seed=4).chosen
    assert set(drawn.chosen) < set(select_topics(runs, qrels, n=30, seed=3).chosen)
    assert drawn.decisions["not drawn"] == 40
    with pytest.raises(InputError, match="60 topics are eligible, 61 are wanted"):
        select_topics(runs, qrels, n=61)


def test_files(tmp_path: Path) -> None:
    runs, qrels = made(tmp_path)
    topics = tmp_path / "topics.tsv"
    topics.write_text("4\tfour\n9\tnine\n1\tone\n2\ttwo\n", encoding="utf-8")
    result = select_topics(runs, qrels, topics=str(topics), out=tmp_path / "chosen.tsv")
    assert [row.topic_id for row in result.topics] == ["4", "9", "1", "2"]
    assert result.topics[1].decision == "no judgments"
    assert (tmp_path / "chosen.tsv").read_text() == "4\tfour\n1\tone\n"
    table = list(csv.DictReader((tmp_path / "chosen.tsv.topics.csv").read_text().splitlines()))
    assert table[0] == {
        "topic_id": "4", "median": "0.5", "found": "3", "best_rank": "2", "median_rank": "2.0", "decision": "chosen",
    }  # fmt: skip
    assert table[1]["median"] == ""
    manifest = json.loads((tmp_path / "chosen.tsv.manifest.json").read_text())
    assert manifest["command"] == "track select-topics"
    assert sum(one["role"] == "run" for one in manifest["inputs"]) == 3
    select_topics(runs, qrels, out=tmp_path / "ids.txt")
    assert (tmp_path / "ids.txt").read_text() == "1\n4\n"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from("1234"), st.lists(st.integers(0, 12), min_size=4, max_size=4).map(tuple), min_size=1
    ),
    st.integers(1, 12),
)
def test_agrees_with_a_plain_count(tmp_path: Path, ranks: dict[str, Any], cutoff: int) -> None:
    runs, _ = made(tmp_path, ranks)
    qrels = tmp_path / "a.qrels"
    qrels.write_text("".join(f"{topic} 0 r 1\n" for topic in ranks), encoding="utf-8")
    result = select_topics(runs, str(qrels), cutoff=cutoff)
    for row in result.topics:
        found = [place for place in ranks[row.topic_id] if 0 < place <= cutoff]
        median = statistics.median(1 / place if place in found else 0 for place in ranks[row.topic_id])
        assert row.median == pytest.approx(median, abs=1e-15)
        assert row.found == len(found)
        assert row.best_rank == (min(found) if found else None)
        assert row.median_rank == (statistics.median(found) if found else None)
        assert (row.decision == "chosen") == (0 < row.median <= 0.5)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, qrels = made(tmp_path)
    words = [word for run in runs for word in ("--run", run)]

    def code(*more: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["track", "select-topics", *words, "--qrels", qrels, *more])
        return int(ended.value.code or 0)

    assert code("--json") == 0
    assert json.loads(capsys.readouterr().out)["chosen"] == ["1", "4"]
    assert code("--cutoff", "0", "-n", "1") == 0
    assert "1 of 7 topics are chosen" in capsys.readouterr().out
    for wrong in (["-n", "9"], ["-n", "0"], ["--cutoff", "-1"], ["--low", "2"], ["--topics", qrels]):
        assert code(*wrong) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1


@pytest.mark.shared
@pytest.mark.shared
def test_real_runs() -> None:
    runs = sorted((DATA / "survivorship" / "runs").glob("*.dl19.run.gz"))
    qrels = str(DATA / "qrels" / "dl19-passage.qrels.gz")
    result = select_topics(runs, qrels, cutoff=0)
    relevant = {(qrel.topic_id, qrel.doc_id) for qrel in read_qrels(qrels) if qrel.relevance > 0}
    by_run = []
    for run in runs:
        best: dict[str, int] = {}
        # The ranks of these files begin with 0; what counts is the place in the order of ranks.
        for row in sorted(read_run(run), key=lambda row: row.rank):
            if (row.topic_id, row.doc_id) in relevant:
                best.setdefault(row.topic_id, row.rank)
        first = min(row.rank for row in read_run(run))
        by_run.append({topic: 1 / (rank - first + 1) for topic, rank in best.items()})
    assert len(result.topics) == 43
    for row in result.topics:
        assert row.median == pytest.approx(statistics.median(run.get(row.topic_id, 0.0) for run in by_run))
