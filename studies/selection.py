"""The lead of the best of many configurations that were tried on the same topics: the level of its test, and its size.

    python studies/selection.py level [--draws 1000]
    python studies/selection.py picture FILE.svg

In `level` no configuration is better than another or than the baseline: scores are those of a topic, of its difficulty
for configurations of a family, and noise, cut to 0 and 1. False are the intervals of the best one's lead that are above
0. In `power` one configuration is better by 0.05. `picture` has the lead of the best of n where none is better.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from common import table
from truerank.core.figures.export import to_svg_file
from truerank.core.figures.lines import LinePanel, LineSeries, line_panels
from truerank.measures.magnitudes import difference_interval
from truerank.measures.selection import chosen_lead


def scores(topics: int, tried: int, rng: np.random.Generator, better: float = 0.0) -> np.ndarray:
    """Scores of the configurations and, last, the baseline; shape (topics, tried + 1)."""
    difficulty = rng.normal(0.4, 0.2, (topics, 1))
    families = rng.normal(0, 0.08, (topics, 4))[:, rng.integers(0, 4, tried + 1)]
    found = difficulty + families + rng.normal(0, 0.06, (topics, tried + 1))
    found[:, 0] += better
    return np.clip(np.round(found, 3), 0, 1)


def level(given: argparse.Namespace) -> None:
    """How often the lead of the best is above 0 where nothing is better, and where one is better by 0.05."""
    rows = []
    for better, topics, tried in ((better, topics, tried) for better in (0.0, 0.05) for topics in (25, 50, 200)
                                  for tried in (5, 40, 200)):  # fmt: skip
        rng = np.random.default_rng(topics + tried)
        plain, corrected, bonferroni, leads, cross = 0, 0, 0, [], []
        for draw in range(given.draws):
            values = scores(topics, tried, rng, better)
            configurations, baseline = values[:, :-1], values[:, -1]
            best = int(np.argmax(configurations.mean(axis=0)))
            found = chosen_lead(configurations, baseline, best, resamples=1000, seed=draw)
            difference = configurations[:, best] - baseline
            zeros = np.zeros(topics)
            plain += (difference_interval(difference, zeros).low or 0.0) > 0
            bonferroni += (difference_interval(difference, zeros, confidence=1 - 0.05 / tried).low or 0.0) > 0
            corrected += found.low > 0
            leads.append(found.lead)
            cross.append(found.cross_fitted)
        shares = (f"{count / given.draws:.1%}" for count in (plain, bonferroni, corrected))
        rows.append((better, topics, tried, *shares, f"{np.mean(leads):+.4f}", f"{np.mean(cross):+.4f}"))
    heads = "one is better by,topics,tried,shown without correction,Bonferroni,max-t,mean lead,cross-fitted"
    print(table(heads.split(","), rows))


def picture(given: argparse.Namespace) -> None:
    """The lead of the best of n where none is better, with 50 topics: its mean and 95% quantile."""
    rng, numbers = np.random.default_rng(1), (1, 2, 3, 5, 8, 12, 20, 40, 80, 200)
    lines: dict[str, list[float]] = {"mean": [], "95% quantile": []}
    for tried in numbers:
        leads = []
        for _ in range(500):
            means = scores(50, tried, rng).mean(axis=0)
            leads.append(float(means[:-1].max() - means[-1]))
        lines["mean"].append(float(np.mean(leads)))
        lines["95% quantile"].append(float(np.quantile(leads, 0.95)))
    series = tuple(LineSeries(name, tuple((value, None, None) for value in values)) for name, values in lines.items())
    panel = LinePanel("", tuple(map(str, numbers)), series, zero=True)
    figure = line_panels([panel], x_label="configurations tried", y_label="lead of the best over the baseline")
    text = "The lead of the best of n configurations over a baseline where none is better: mean and 95% quantile by n."
    given.file.write_text(to_svg_file(figure, name="selection", description=text), encoding="utf-8")
    print(table(("tried", *lines), [(n, *(f"{v[i]:.4f}" for v in lines.values())) for i, n in enumerate(numbers)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("level")
    one.add_argument("--draws", type=int, default=1000)
    one.set_defaults(function=level)
    two = commands.add_parser("picture")
    two.add_argument("file", type=Path)
    two.set_defaults(function=picture)
    given = parser.parse_args()
    given.function(given)


if __name__ == "__main__":
    main()
