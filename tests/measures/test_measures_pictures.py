"""The figures of scores and comparisons: what they draw is what the tables say."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.stats

import truerank
from truerank.cli import main
from truerank.errors import OptionError
from truerank.measures import Evaluation, Policy
from truerank.measures.comparison import compare_evaluations
from truerank.measures.report import (
    difference_picture,
    evaluation_pictures,
    topic_picture,
    undistinguished,
)
from truerank.measures.run_comparison import topic_differences

QRELS = {str(topic): {"d1": 1} for topic in range(8)}


def evaluation(gaps: tuple[float, ...], topics: int = 40, measure: str = "nDCG@10") -> Evaluation:
    draw = np.random.default_rng(2)
    values = np.stack([draw.normal(0.5 - gap, 0.05, topics) for gap in gaps])[:, None, :]
    names = tuple(f"r{number}" for number in range(len(gaps)))
    return Evaluation(names, (measure,), tuple(map(str, range(topics))), values, dict.fromkeys(names, 0), Policy())


def run_of(first: str) -> dict[str, dict[str, float]]:
    """A run that has the relevant document first where the topic's letter says so."""
    return {topic: {"d1": 2.0 if sign == "1" else 0.5, "d2": 1.0} for topic, sign in zip(QRELS, first, strict=True)}


def called(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 0


def labels(picture) -> list[str]:
    return [label.get_text() for label in picture.figure.axes[0].get_yticklabels()]


def test_the_intervals_of_means_are_those_of_scipy():
    found = evaluation((0.0, 0.1))
    (picture,) = evaluation_pictures(found)
    assert labels(picture) == ["r0", "r1"]
    drawn = [bar[:, 0] for one in picture.figure.axes[0].collections for bar in one.get_segments()]
    for ends, scores in zip(drawn, found.values[:, 0], strict=True):
        expected = scipy.stats.t.interval(0.95, len(scores) - 1, scores.mean(), scipy.stats.sem(scores))
        np.testing.assert_allclose(ends, expected)


def test_sums_have_no_figure():
    counts = truerank.evaluate(QRELS, {"a": run_of("11110000")}, "NumRet AP")
    assert [picture.name for picture in evaluation_pictures(counts)] == ["scores-AP"]


def test_a_difference_is_filled_where_it_is_significant():
    comparison = compare_evaluations(evaluation((0.0, 0.0, 0.2)), "r0")
    figure = difference_picture(comparison, "nDCG@10").figure
    points = [line for line in figure.axes[0].lines if line.get_linestyle() == "None" and line.get_marker() == "s"]
    marks = [line.get_fillstyle() for line in points]
    assert marks == ["none", "full"]
    words = [text.get_text() for text in figure.axes[0].texts]
    row = comparison.of("r2", "nDCG@10")
    shown = f"{row.difference:.4f} [{row.low:.4f}, {row.high:.4f}] p = {row.p_corrected:.2g} †"
    assert words[1] == shown.replace("-", "−")


def test_lines_join_the_longest_stretches_without_a_significant_pair():
    comparison = compare_evaluations(evaluation((0.0, 0.001, 0.2, 0.201, 0.5)))
    assert undistinguished(comparison, "nDCG@10") == [(0, 1), (2, 3)]
    apart = {frozenset((row.run, row.baseline)) for row in comparison.differences if row.significant}
    assert frozenset(("r0", "r2")) in apart
    assert undistinguished(compare_evaluations(evaluation((0.0, 0.2))), "nDCG@10") == []


def test_overlapping_stretches_are_kept_and_those_within_others_are_not():
    comparison = compare_evaluations(evaluation((0.0, 0.018, 0.036, 0.3), topics=60))
    names = {frozenset((row.run, row.baseline)): row.significant for row in comparison.differences}
    found = undistinguished(comparison, "nDCG@10")
    assert all(not (a[0] <= b[0] and b[1] <= a[1]) for a in found for b in found if a != b)
    for first, last in found:
        pairs = [frozenset((f"r{i}", f"r{j}")) for i in range(first, last + 1) for j in range(first, i)]
        assert not any(names[pair] for pair in pairs)


def test_the_plots_by_topic_show_every_difference_and_the_mean():
    scores = evaluation((0.0, 0.1))
    (one,) = topic_differences(scores, "r1", "r0", ["nDCG@10"])
    axes = topic_picture([one]).figure.axes[0]
    drawn = sum(patch.get_data().values for patch in axes.patches if hasattr(patch, "get_data"))
    np.testing.assert_allclose(drawn, one.differences)
    row = compare_evaluations(scores, "r0").of("r1", "nDCG@10")
    levels = [line.get_ydata()[0] for line in axes.lines]
    for expected in (row.difference, row.low, row.high):
        assert any(level == pytest.approx(expected) for level in levels)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot")
    qrels = folder / "all.qrels"
    qrels.write_text("".join(f"{topic} 0 d1 1\n" for topic in QRELS))
    paths = []
    for name, first in (("a", "11110000"), ("b", "11111110"), ("c", "00000001")):
        lines = [
            f"{topic} Q0 {doc} {rank} {score} {name}\n"
            for topic, scores in run_of(first).items()
            for rank, (doc, score) in enumerate(sorted(scores.items(), key=lambda one: -one[1]), 1)
        ]
        paths.append(folder / f"{name}.run")
        paths[-1].write_text("".join(lines))
    return qrels, paths


def test_plot_writes_figures_with_the_same_bytes(files, tmp_path, capsys):
    qrels, paths = files
    words = ["--qrels", str(qrels), *(word for path in paths for word in ("--run", str(path))), "--measures", "RR"]
    for command, names in (("compare", {"differences-RR", "order-RR", "topics-RR"}), ("evaluate", {"scores-RR"})):
        written = []
        for number in range(2):
            out = tmp_path / f"{command}{number}"
            called(command, *words, "--plot", "--out", str(out))
            written.append({path.name: path.read_bytes() for path in (out / "figures").iterdir()})
        assert written[0] == written[1]
        assert set(written[0]) == {f"{name}.{ending}" for name in names for ending in ("svg", "pdf")}
        listed = json.loads((tmp_path / f"{command}0" / "manifest.json").read_text())["artifacts"]
        assert {f"figures/{name}" for name in written[0]} <= set(listed)
        called(command, *words, "--out", str(tmp_path / f"{command}-plain"))
        assert not (tmp_path / f"{command}-plain" / "figures").exists()
    capsys.readouterr()


def test_figures_need_a_folder(files):
    qrels, paths = files
    for function in (truerank.compare, truerank.evaluate):
        with pytest.raises(OptionError, match="plot: there is no folder for the figures"):
            function(str(qrels), [str(path) for path in paths], plot=True)
