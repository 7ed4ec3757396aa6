"""Two runs, or two tools' scores by topic: where they differ first, and by what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from truerank.errors import InputError
from truerank.measures.explanation import ExplainOptions, explain
from truerank.measures.run_divergence import RunDivergence

Row = tuple[str, str, float]
ROWS: list[Row] = [(f"{t}", f"D{t}{n:02}", 9.0 - n / 7 - (n == 3) * 0.0001) for t in range(6) for n in range(20)]


def written(path: Path, rows: list[Row]) -> str:
    places: dict[str, int] = {}
    lines = []
    for topic, doc, score in rows:
        places[topic] = places.get(topic, 0) + 1
        lines.append(f"{topic} Q0 {doc} {places[topic]} {score:.6g} x\n")
    path.write_text("".join(lines))
    return str(path)


def ties(rows: list[Row]) -> list[Row]:
    """The third and the fourth document of topic 2 with one score, in another order."""
    return [*rows[:42], (rows[43][0], rows[43][1], rows[42][2]), rows[42], *rows[44:]]


CHANGES: dict[str, Callable[[list[Row]], list[Row]]] = {
    "other topics": lambda rows: rows[:100],
    "ids in another form": lambda rows: [(t, d.lower(), s) for t, d, s in rows],
    "fewer results": lambda rows: [row for n, row in enumerate(rows) if n % 20 < 15],
    "other documents": lambda rows: [(t, f"X{d}" if n == 47 else d, s) for n, (t, d, s) in enumerate(rows)],
    "order of ties": ties,
    "score precision": lambda rows: [(t, d, round(s, 0)) for t, d, s in rows],
    "other scores": lambda rows: [(t, rows[n ^ 1][1] if t == "4" else d, s) for n, (t, d, s) in enumerate(rows)],
}
TOPICS = {"other topics": 1, "other documents": 1, "order of ties": 1, "other scores": 1}


@pytest.mark.parametrize("kind", CHANGES)
def test_kinds_of_difference(kind: str, tmp_path: Path) -> None:
    base = ties(ROWS) if kind == "order of ties" else ROWS
    first = [*base[:42], base[43], base[42], *base[44:]] if kind == "order of ties" else base
    qrels = tmp_path / "a.qrels"
    qrels.write_text("".join(f"{t} 0 {d} {n % 4 % 2}\n" for n, (t, d, _) in enumerate(ROWS)))
    runs = [written(tmp_path / "mine.run", first), written(tmp_path / "theirs.run", CHANGES[kind](ROWS))]
    found = explain(str(qrels), runs)
    assert isinstance(found, RunDivergence) and found.verdicts[0].word == "DIFFERENT"
    assert found.frames["kinds"].select("kind", "topics").rows() == [(kind, TOPICS.get(kind, 6))]
    if kind in ("order of ties", "other documents"):
        assert found.frames["topics"].row(0)[:3] == ("2", kind, {"order of ties": 3, "other documents": 8}[kind])
    assert found.frames["kinds"]["effect"].is_not_null().all()
    assert explain(str(qrels), [runs[0], runs[0]]).verdicts[0].word == "SAME"


def test_scores_by_topic_of_two_tools(tmp_path: Path) -> None:
    values = {f"q{n}": 0.1 + n / 30 for n in range(12)}
    (tmp_path / "mine.tsv").write_text("".join(f"{t}\tnDCG@10\t{v:.4f}\n" for t, v in values.items()))
    (tmp_path / "same.txt").write_text("".join(f"ndcg_cut_10\t{t}\t{v:.3f}\n" for t, v in values.items()))
    theirs = values | {"q4": 0.9, "q20": 0.5}
    (tmp_path / "theirs.txt").write_text("".join(f"ndcg_cut_10\t{t}\t{v:.3f}\n" for t, v in theirs.items()))
    same = explain(paths=[str(tmp_path / "mine.tsv"), str(tmp_path / "same.txt")])
    assert same.verdicts[0].word == "SAME"
    found = explain(paths=[str(tmp_path / "mine.tsv"), str(tmp_path / "theirs.txt")])
    assert found.frames["topics"].select("topic", "kind").rows() == [("q4", "another value"), ("q20", "other topics")]
    run = written(tmp_path / "a.run", ROWS)
    with pytest.raises(InputError, match="scores of 1 system"):
        explain(paths=[str(tmp_path / "mine.tsv"), run])
    with pytest.raises(InputError, match="2 runs"):
        explain(run=[run, run], options=ExplainOptions(reported=("0.4",)))
    with pytest.raises(InputError, match="no judgments"):
        explain(run=[run], options=ExplainOptions(reported=("0.4",)))
