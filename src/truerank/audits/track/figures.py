"""The figures of a track report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from truerank.arrays import Floats
from truerank.audits.track.analysis import Agreement, Analysis, Duel, RunMap, RunSimilarities
from truerank.core.figures import (
    Panel,
    Picture,
    RunGroup,
    Series,
    grouped_scores,
    ordered_scores,
    scatter_panels,
    similarity_map,
    topic_pairs,
)

_NOT_STATED: Final = "not stated"
#: Runs whose names a map has room for.
_LABELLED: Final = 40
#: Pairs of this many measures have panels of their own.
_PAIRED: Final = 3


def pictures(
    analysis: Analysis, alike: RunMap | RunSimilarities | None = None, topics: Mapping[str, str] | None = None
) -> Iterator[Picture]:
    """The figures that the runs allow, in the order of the paper.

    Source: Craswell et al.: Overview of the TREC 2019 Deep Learning Track, Figures 1 to 8.
    """
    if analysis.best:
        yield _categories(analysis)
    for name, duel in zip(duel_names(analysis), analysis.duels, strict=True):
        yield _duel(name, duel, topics or {})
    if isinstance(alike, RunMap):
        yield _map(analysis, alike)
    elif alike is not None:
        yield _similarities(analysis, alike)
    if analysis.gaps:
        yield _subtasks(analysis)
    yield from _agreements(analysis)


def duel_names(analysis: Analysis) -> list[str]:
    """What the figure and the table of each comparison by topic are called; no two the same."""
    names: list[str] = []
    for duel in analysis.duels:
        name = f"topics-{_word(duel.first.category)}-{_word(duel.second.category)}"
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def _categories(analysis: Analysis) -> Picture:
    scores, groups = analysis.scores, []
    column = scores.of(scores.main)
    for one in analysis.best:
        values = column[analysis.runs_in(one.category)]
        values = np.sort(values[np.isfinite(values)])[::-1]
        gain = "" if one.gain is None else f", {one.gain:+.1f} %"
        groups.append(RunGroup(one.category, values, f"{one.run}\n{one.value:.4f}{gain}"))
    base = next((one for one in analysis.best if one.category == analysis.baseline), None)
    number = sum(one.runs for one in analysis.best)
    return Picture(
        "categories",
        f"{scores.main} of {number:,} runs by category, best first. The best run of each is ringed; percentages are "
        f"over the best {analysis.baseline} run, the dashed line.",
        grouped_scores(
            groups,
            y_label=f"mean {scores.main}, n = {number:,} runs",
            reference=None if base is None else base.value,
            reference_label=f"best {analysis.baseline}",
        ),
        section="categories",
    )


def _duel(name: str, duel: Duel, texts: Mapping[str, str]) -> Picture:
    names = [f"{topic} {texts[topic]}" if topic in texts else topic for topic in duel.topics]
    number = len(duel.topics)
    return Picture(
        name,
        f"{duel.first.run} ({duel.first.category}) wins {duel.wins} of {number:,} topics against {duel.second.run} "
        f"({duel.second.category}), ties {duel.ties} and loses {duel.losses}. Topics are sorted by the difference in "
        f"{duel.measure}, the largest win of {duel.first.run} first.",
        topic_pairs(
            names,
            duel.first_values,
            duel.second_values,
            names=(f"{duel.first.run} ({duel.first.category})", f"{duel.second.run} ({duel.second.category})"),
            x_label=duel.measure,
        ),
        section="topics",
    )


def _map(analysis: Analysis, run_map: RunMap) -> Picture:
    infos = analysis.scores.runs
    # More names than this cover each other; a group's runs are near enough to be known by their marks then.
    names = tuple(run.run for run in infos) if len(infos) <= _LABELLED else ()
    panels = []
    described = (
        ("by category", [run.category for run in infos], analysis.categories),
        ("by group", [run.group for run in infos], ()),
    )
    for title, kinds, order in described:
        if any(kinds):
            series = _series(kinds, run_map.points[:, 0], run_map.points[:, 1], order, names)
            panels.append(
                Panel(
                    f"{title}, n = {len(infos):,} runs", "t-SNE 1 (no unit)", "t-SNE 2 (no unit)", series, ticks=False
                )
            )
    if not panels:
        series = (Series("run", run_map.points[:, 0], run_map.points[:, 1], names),)
        panels.append(Panel(f"n = {len(infos):,} runs", "t-SNE 1 (no unit)", "t-SNE 2 (no unit)", series, ticks=False))
    return Picture(
        "similarity",
        f"Runs that do well and badly on the same topics lie close together: t-SNE of vectors of {run_map.topics:,} "
        f"{analysis.scores.main} scores, perplexity {run_map.perplexity:.3g}, seed {run_map.seed}. Only nearness "
        "counts; axes and distances between clusters have no meaning.",
        scatter_panels(panels, columns=1, height=4.4) if names else scatter_panels(panels, columns=2, height=3.1),
        section="similarity",
    )


def _similarities(analysis: Analysis, alike: RunSimilarities) -> Picture:
    return Picture(
        "similarity",
        f"How alike {len(analysis.scores.runs):,} runs are: Pearson's correlation of {analysis.scores.main} over "
        f"{alike.topics:,} topics. Runs with a high value, a dark cell, do well and badly on the same topics.",
        similarity_map([run.run for run in analysis.scores.runs], alike.values),
        section="similarity",
    )


def _subtasks(analysis: Analysis) -> Picture:
    scores = analysis.scores
    known = [i for i, run in enumerate(scores.runs) if run.subtask and np.isfinite(scores.of(scores.main)[i])]
    known.sort(key=lambda i: (scores.of(scores.main)[i], -i))
    panels = [(f"mean {gap.measure}", scores.of(gap.measure)[known]) for gap in analysis.gaps]
    gains = "; ".join(
        f"{gap.measure} {gap.fullrank_value:.4f} and {gap.rerank_value:.4f}"
        + ("" if gap.gain is None else f", {gap.gain:+.2f} %")
        for gap in analysis.gaps
    )
    return Picture(
        "subtasks",
        f"Fullrank against rerank; runs ordered by {scores.main} in every panel. The best of each: {gains}.",
        ordered_scores(
            panels, [scores.runs[i].subtask for i in known], x_label=f"runs ordered by {scores.main}", counted="runs"
        ),
        section="subtasks",
    )


def _agreements(analysis: Analysis) -> Iterator[Picture]:
    scores = analysis.scores
    chosen = paired_measures(analysis)
    pairs = list(combinations(chosen, 2))
    if not pairs:
        return
    first, second = pairs[0]
    if any(run.group for run in scores.runs):
        kinds = [run.group for run in scores.runs]
        panel = Panel(
            _tau_title(analysis, first, second), *_labels(first, second), _pair(analysis, first, second, kinds)
        )
        caption = f"{first} against {second} by group. {_sentence(analysis, first, second)}"
        yield Picture("agreement-groups", caption, scatter_panels([panel], columns=1, height=4.0), section="agreement")
    panels = [Panel(_tau_title(analysis, a, b), *_labels(a, b), _pair(analysis, a, b)) for a, b in pairs]
    caption = (
        f"Pairs of {', '.join(chosen)} by category. τ is Kendall's τ‑b, over all runs and within each category."
        f"{_undrawn(analysis)}"
    )
    yield Picture("agreement-categories", caption, scatter_panels(panels, columns=2, height=3.2), section="agreement")
    if scores.gain is not None and (others := [m for m in (scores.main, scores.recall) if m is not None]):
        panels = [
            Panel(_tau_title(analysis, m, scores.gain), *_labels(m, scores.gain), _pair(analysis, m, scores.gain))
            for m in others
            if analysis.agreement(m, scores.gain) is not None
        ]
        if panels:
            against = " and ".join(others)
            caption = f"{scores.gain} against {against} by category. τ is Kendall's τ‑b.{_undrawn(analysis)}"
            yield Picture("agreement-gain", caption, scatter_panels(panels, columns=2, height=3.2), section="agreement")


def paired_measures(analysis: Analysis) -> list[str]:
    """The measures whose pairs are drawn: the sparse reciprocal rank, RR and the main one; others where these lack."""
    scores = analysis.scores
    ranks = [name for name in scores.measures if re.match(r"RR\b(?!_)", name) and name != scores.sparse]
    plain = max(ranks, key=lambda name: int(np.isfinite(scores.of(name)).sum()), default=None)
    wanted = [name for name in (scores.sparse, scores.main, plain) if name is not None]
    more = [name for name in scores.measures if name not in wanted and name != scores.gain]
    chosen = [*wanted, *more][:_PAIRED]
    return [
        name for name in chosen if all(name == other or analysis.agreement(name, other) is not None for other in chosen)
    ]


def _pair(analysis: Analysis, x: str, y: str, kinds: Sequence[str] | None = None) -> tuple[Series, ...]:
    """The points of two measures; by category, and then only runs that have one, where no other kinds are given."""
    one, other = analysis.scores.of(x), analysis.scores.of(y)
    if kinds is not None:
        return _series(kinds, one, other)
    named = _series([run.category for run in analysis.scores.runs], one, other, analysis.categories)
    return tuple(series for series in named if series.name != _NOT_STATED) or named


def _undrawn(analysis: Analysis) -> str:
    number = sum(not run.category for run in analysis.scores.runs)
    if not number or number == len(analysis.scores.runs):
        return ""
    return f" Runs without a category ({number}) count in the first τ and are not drawn."


def _series(
    kinds: Sequence[str], x: Floats, y: Floats, order: Sequence[str] = (), names: Sequence[str] = ()
) -> tuple[Series, ...]:
    """One series per kind, in the order given or else alphabetical, the one that is not stated last."""
    known = np.isfinite(x) & np.isfinite(y)
    order = [*(order or sorted({kind for kind in kinds if kind})), ""]
    found = []
    for kind in order:
        chosen = np.array([one == kind for one in kinds]) & known
        if chosen.any():
            labels = tuple(names[place] for place in np.flatnonzero(chosen).tolist()) if names else ()
            found.append(Series(kind or _NOT_STATED, x[chosen], y[chosen], labels))
    return tuple(found)


def _labels(first: str, second: str) -> tuple[str, str]:
    return f"mean {first}", f"mean {second}"


def _tau_title(analysis: Analysis, first: str, second: str) -> str:
    parts = []
    for category in ("", *analysis.categories):
        found = analysis.agreement(first, second, category)
        if found is not None:
            parts.append(
                f"{category} {_tau(found)} (n = {found.n})"
                if category
                else f"Kendall's τ: {_tau(found)} (n = {found.n})"
            )
    lines = [parts[0], *(", ".join(parts[i : i + 2]) for i in range(1, len(parts), 2))] if parts else []
    return "\n".join(lines)


def _tau(found: Agreement) -> str:
    return "undefined" if found.tau is None else f"{found.tau:.2f}"


def _sentence(analysis: Analysis, first: str, second: str) -> str:
    found = analysis.agreement(first, second)
    return "" if found is None else f"Kendall's τ‑b over {found.n} runs: {_tau(found)}."


def _word(text: str) -> str:
    """The text as a part of a file name and of an id."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in text.lower()).strip("-") or "x"
