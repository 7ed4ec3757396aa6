"""Repetitions as runs, and as a column of a table: one result, in `compare` and `check`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy

import truerank
from truerank.errors import OptionError
from truerank.measures.repeats import repeated_difference


def table(seed: int = 3, noise: float = 0.05, topics: int = 60) -> pl.DataFrame:
    """Three repetitions of two systems, as tools for evaluation write them; one is lower by the noise, one higher."""
    draw = np.random.default_rng(seed)
    base = draw.normal(0.5, 0.2, (topics, 1))
    rows = [
        {"item_id": f"q{topic}", "model_id": system, "score": float(value), "epoch": epoch + 1}
        for system, lead in (("a", 0.06), ("b", 0.0))
        for epoch in range(3)
        for topic, value in enumerate(base[:, 0] + lead + noise * (epoch - 1) + draw.normal(0, 0.1, topics))
    ]  # fmt: skip
    return pl.DataFrame(rows)


def scores(frame: pl.DataFrame, system: str) -> np.ndarray:
    wide = frame.filter(model_id=system).pivot("epoch", index="item_id", values="score")
    return wide.drop("item_id").to_numpy()


def test_a_column_of_repetitions_is_no_system(tmp_path: Path) -> None:
    frame = table()
    frame.write_csv(tmp_path / "scores.csv")
    found = truerank.compare(paths=tmp_path / "scores.csv")
    assert found.comparison is not None
    (row,) = found.comparison.differences
    assert {row.run, row.baseline} == {"a", "b"}
    own, other = (scores(frame, name).mean(axis=1) for name in (row.run, row.baseline))
    assert row.p == pytest.approx(scipy.stats.ttest_rel(own, other).pvalue)
    (pair,) = found.repeated
    expected = repeated_difference(scores(frame, row.run), scores(frame, row.baseline))
    assert (pair.found.low, pair.found.high) == pytest.approx((expected.low, expected.high))
    assert pair.found.system.repeats == 3


def test_check_asks_about_the_noise_of_running_again() -> None:
    # The lead is clear for these repetitions, and the noise between them is as large.
    found = truerank.check(table(noise=0.06))
    answer = found.answer("repeats")
    assert answer.effect != "stands" and found.answer("chance").effect == "stands"
    assert found.conclusion.word == "HOLDS EXCEPT"
    steady = truerank.check(table(noise=0.0))
    assert steady.answer("repeats").effect == "stands" and steady.conclusion.word == "HOLDS"


def test_runs_by_a_pattern(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    grades = pl.DataFrame([(f"q{n}", f"d{d}", int(d < 2)) for n in range(30) for d in range(8)],
                          ["topic_id", "doc_id", "relevance"], orient="row")  # fmt: skip
    (tmp_path / "q.qrels").write_text("".join(f"{t} 0 {d} {g}\n" for t, d, g in grades.iter_rows()))
    for system, skill in (("a", 1.0), ("b", 0.5)):
        for repeat in range(3):
            lines = []
            for topic in range(30):
                values = skill * (np.arange(8) < 2) + draw.normal(0, 0.6, 8)
                order = np.argsort(-values)
                lines += [f"q{topic} Q0 d{d} {place + 1} {values[d]:.5f} {system}" for place, d in enumerate(order)]
            (tmp_path / f"{system}.{repeat}.run").write_text("\n".join(lines) + "\n")
    patterns = [f"{system}={tmp_path}/{system}.*.run" for system in "ab"]
    found = truerank.compare(tmp_path / "q.qrels", repeats=patterns, out=tmp_path / "out")
    single = truerank.evaluate(tmp_path / "q.qrels", {n: tmp_path / f"{n}.run" for n in ("a.0", "a.1", "a.2")}, "P@1")
    assert found.comparison is not None and (tmp_path / "out/repeated.csv").is_file()
    row = next(one for one in found.comparison.differences if one.measure == "P@1")
    means = {row.run: row.mean, row.baseline: row.baseline_mean}
    assert means["a"] == pytest.approx(float(single.mean.mean()))
    assert {one.measure for one in found.repeated} == {"nDCG@10", "P@1"}
    with pytest.raises(OptionError, match="a run too"):
        truerank.compare(tmp_path / "q.qrels", {"a": tmp_path / "a.0.run"}, repeats=patterns)
