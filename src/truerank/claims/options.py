"""What a check reads, and how it looks at the claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from truerank.options import Flag, Options, Range

_SEVERAL = Flag(metavar="SRC", reads=list[str])


@dataclass(frozen=True)
class ClaimSources(Options):
    """What is given; what is not given stays UNKNOWN.

    Attributes:
        test: the test set: a BEIR folder, an ir_datasets id or a file of topics. A BEIR folder brings judgments and
            documents, an id brings judgments.
        qrels: relevance judgments, where the test set does not bring them. In Python also a frame, records, or grades
            by topic and document.
        run: TREC runs, each named by its file without the ending; repeat the option, and give the other runs of the
            experiment too. In Python also runs by name.
        baseline: the run that the claim compares with; by default the second best of all.
        system: the run that the claim calls better; by default the best of the others.
        train: training queries; repeat the option for several sources.
        docs: the documents.
        previous: the documents as they were judged, where `docs` is a later version of them.
        model_judgments: judgments of a model, as NAME=SRC; repeat the option for several. In Python also by name.
        metadata: a table of runs with their team (columns run and team), so that runs of one team count as one pool.
        judged_by: who gave the judgments in `qrels`; with model the conclusion is one by these judgments, and no more.
    """

    test: Annotated[str | None, Flag(metavar="SRC")] = None
    qrels: Annotated[Any, Flag(metavar="SRC", reads=str)] = None
    run: Annotated[Any, Flag(metavar="FILE", reads=list[str])] = ()
    baseline: Annotated[str | None, Flag(metavar="NAME")] = None
    system: Annotated[str | None, Flag(metavar="NAME")] = None
    train: Annotated[tuple[str, ...], _SEVERAL] = ()
    docs: Annotated[str | None, Flag(metavar="SRC")] = None
    previous: Annotated[str | None, Flag(metavar="SRC")] = None
    model_judgments: Annotated[Any, Flag(metavar="NAME=SRC", reads=list[str])] = ()
    metadata: Annotated[str | None, Flag(metavar="FILE")] = None
    judged_by: Literal["people", "model"] = "people"

    def __post_init__(self) -> None:
        """Takes one training source as it is."""
        if isinstance(self.train, str):
            object.__setattr__(self, "train", (self.train,))
        super().__post_init__()

    def has(self, name: str) -> bool:
        """Whether an input is there."""
        value = getattr(self, name)
        return value is not None and not (isinstance(value, list | tuple | dict) and not value)


@dataclass(frozen=True)
class ClaimOptions(Options):
    """What the claim is about, and what else is tried.

    Attributes:
        measure: the one measure of the claim, of ir_measures.
        measures: measures that the claim is tried by too, separated by blanks.
        comparisons: how many comparisons the claim was chosen from; by default those that the runs allow: all runs with
            the baseline where it is named, otherwise all pairs.
        trials: how often the judging of the runs is simulated anew without the team of either run, where `test` and
            `docs` are given; it takes minutes, and 0 leaves it out.
        variants: the file of the topics' query variants, which are looked for in the training data too.
        dry_run: say what can be answered and what it costs, and run nothing.
    """

    measure: str = "nDCG@10"
    measures: str = "AP RR@10 P@10 R@100"
    comparisons: Annotated[int | None, Range(at_least=1)] = None
    trials: Annotated[int, Range(at_least=0)] = 0
    variants: Annotated[str | None, Flag(metavar="FILE")] = None
    dry_run: bool = False
