"""The runs of one evaluation or of several as one set of systems, each with its scores by topic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.errors import InputError, OptionError
from truerank.measures.grammar import parse_measures
from truerank.measures.results import Evaluation, load_evaluation
from truerank.sources import parse, unique_names

#: One evaluation, or several by name.
Evaluations = Evaluation | Mapping[str, Evaluation]


# A blank or comma inside the parentheses of a measure does not end it.
_ONE_MEASURE: Final = re.compile(r"(?:\([^)]*\)|[^\s,(])+")


class System(NamedTuple):
    """One run of one evaluation: its name among all, its name in the evaluation, and which evaluation that is."""

    name: str
    run: str
    label: str
    evaluation: Evaluation

    def scores(self, measure: str) -> Floats:
        """The scores by one measure, shape (topics of the evaluation,); NaN where a topic was skipped."""
        return self.evaluation.of(self.run, measure)


def open_evaluations(folders: Sequence[str | Path]) -> dict[str, Evaluation]:
    """Opens folders that `truerank evaluate --out` wrote."""
    names = unique_names([parse(str(folder)) for folder in folders])
    return {name: load_evaluation(folder) for name, folder in zip(names, folders, strict=True)}


def named_evaluations(evaluations: Evaluations) -> dict[str, Evaluation]:
    """The evaluations by name; a single one has the empty name."""
    found = {"": evaluations} if isinstance(evaluations, Evaluation) else dict(evaluations)
    if not found:
        raise InputError("no evaluation", "give at least one")
    return found


def systems(evaluations: Evaluations) -> dict[str, System]:
    """All runs by name; a run whose name several evaluations have is called evaluation/run."""
    named = named_evaluations(evaluations)
    counts = Counter(run for evaluation in named.values() for run in evaluation.runs)
    found: dict[str, System] = {}
    for label, evaluation in named.items():
        for run in evaluation.runs:
            name = f"{label}/{run}" if counts[run] > 1 else run
            if name in found:
                raise InputError(f"two runs are called {name}", "rename one of them")
            found[name] = System(name, run, label, evaluation)
    return found


def measure_names(wanted: str | Sequence[str], known: Sequence[str]) -> list[str]:
    """Measures by the names that evaluations give them: "ndcg@10" is nDCG@10."""
    found: dict[str, None] = {}
    for text in _ONE_MEASURE.findall(wanted) if isinstance(wanted, str) else wanted:
        name = text if text in known else str(parse_measures(text)[0])
        if name not in known:
            raise OptionError("measures", f"not all runs were scored by {name}", f"one of {', '.join(known)}")
        found[name] = None
    if not found:
        raise OptionError("measures", "no measure", "name one, such as nDCG@10")
    return list(found)


def shared_topics(first: System, second: System) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64]]:
    """The topics of two systems that have the same ones, and where each has them."""
    own, other = first.evaluation.topics, second.evaluation.topics
    if own == other:
        places = np.arange(len(own))
        return own, places, places
    if set(own) != set(other):
        extra = len(set(own) - set(other)), len(set(other) - set(own))
        raise OptionError(
            "significance",
            f"{first.name} and {second.name} were scored on different topics ({extra[0]:,} and {extra[1]:,} are only "
            "in one)",
            "choose an unpaired test such as welch, or evaluate both with the same qrels",
        )
    position = {topic: place for place, topic in enumerate(other)}
    return own, np.arange(len(own)), np.array([position[topic] for topic in own], dtype=np.int64)
