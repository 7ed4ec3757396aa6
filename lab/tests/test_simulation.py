"""The annotators that are simulated, and the way into a training set."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

from truerank.audits.survivorship import depth
from truerank.cli import main
from truerank.errors import InputError
from truerank_lab.cli import main as lab_main
from truerank_lab.simulation import simulate

RUN = "\n".join(f"{t} Q0 d{d} {r} {10 - r} x" for t in "12" for r, d in enumerate((4, 2, 9, 7, 1), start=1)) + "\n"


def test_simulated_annotators(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "topics.tsv").write_text("1\tfirst one\n2\tsecond one\n3\tthird one\n")
    (tmp_path / "a.qrels").write_text("1 0 d9 1\n1 0 d2 2\n1 0 d1 1\n2 0 d1 1\n2 0 d4 0\n")
    judged = (str(tmp_path / "topics.tsv"), str(tmp_path / "a.qrels"))
    out = tmp_path / "log.jsonl.gz"
    found = simulate(*judged, run=str(tmp_path / "a.run"), shown=3, out=out)
    assert (found.queries, found.discarded, found.unjudged, found.unranked, found.selected) == (3, 2, 1, 1, 2)
    levels = depth(str(out)).levels
    assert [(one.label, one.qrels) for one in levels if one.label in ("1", "2", "3", "all")] == [
        ("1", 0),
        ("2", 1),
        ("3", 2),
        ("all", 2),
    ]
    deeper = simulate(*judged, run=str(tmp_path / "a.run"), out=tmp_path / "deeper.jsonl")
    assert (deeper.selected, deeper.discarded) == (4, 1)
    with pytest.raises(InputError, match="said twice"):
        simulate(*judged, out=tmp_path / "other.jsonl")
    with pytest.raises(InputError, match="without judgments"):
        simulate(judged[0], run=str(tmp_path / "a.run"), out=tmp_path / "other.jsonl")


def test_from_instances_to_a_training_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way by the command line: an index, a simulated log, depths, triples, a set of depth 1."""
    draw = random.Random(8)
    words = "river stone cloud light glass water north south field house".split()
    texts = [" ".join(draw.choices(words, k=12)) for _ in range(60)]
    (tmp_path / "docs.tsv").write_text("".join(f"d{i}\t{text}\n" for i, text in enumerate(texts)))
    rows = [
        {"query_id": f"q{i}", "query": " ".join(text.split()[:4]), "relevant_id": f"d{i}", "relevant": text}
        | {"nonrelevant_id": f"d{(i + 9) % 60}", "nonrelevant": texts[(i + 9) % 60]}
        for i, text in enumerate(texts)
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for words in (
        ["index", "docs.tsv", "--out", "index"],
        ["simulate", "--instances", "train.jsonl", "--index", "index", "--out", "log.jsonl"],
        ["survivorship", "depth", "--log", "log.jsonl", "--out", "depth"],
        ["survivorship", "triples", "--instances", "train.jsonl", "--depths", "depth", "--out", "triples"],
        [
            "build",
            "--kind",
            "by-depth",
            "--rows",
            "triples/triples.parquet",
            "--annotation-depth",
            "1",
            "--out",
            "set",
        ],
    ):
        paths = [
            str(tmp_path / word) if (tmp_path / word.split("/")[0]).exists() or before == "--out" else word
            for before, word in zip(["", *words], words, strict=False)
        ]
        with pytest.raises(SystemExit) as ended:
            (lab_main if words[0] in ("simulate", "build") else main)(paths)
        assert ended.value.code == 0, capsys.readouterr().err
        capsys.readouterr()
    log = {row["query_id"]: row for row in map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())}
    first = [row["query_id"] for row in rows if log[row["query_id"]]["shown"][0] == row["relevant_id"]]
    assert 0 < len(first) < 60
    built = pl.read_parquet(tmp_path / "set" / "instances.parquet")
    assert built["query_id"].to_list() == first
    assert set(built["depth"]) == {1}
