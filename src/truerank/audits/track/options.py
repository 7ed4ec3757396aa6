"""What can be chosen for a track report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from truerank.errors import OptionError
from truerank.options import Flag, Options, Range, Seed, Sources

#: Depth of NCG and recall where none is given: the number of candidates of a document rerank subtask.
DEFAULT_DEPTH: Final = 100


@dataclass(frozen=True)
class TrackReportOptions(Options):
    """What the report shows; every choice is in its manifest.

    Attributes:
        title: what the track or task is called.
        measure: the measure that runs are sorted by and compared with.
        measures: further measures, separated by blanks; by default RR AP NCG@k R@k (k is the depth, or 100), and of
            tables all.
        baseline_category: the category that others are compared with.
        where: use only the rows of tables that hold this value.
        topics: topics whose titles name the rows of the figures by topic.
        stated: figures that a text states (statement, value), to be compared.
        seed: of the map of runs.
        perplexity: of the map of runs; by default 30, at most a third of the other runs.
    """

    title: str = ""
    measure: str = "nDCG@10"
    measures: str | None = None
    baseline_category: Annotated[str, Flag(metavar="NAME")] = "trad"
    where: Annotated[Mapping[str, str], Flag(metavar="COLUMN=VALUE")] = field(default_factory=dict)
    topics: Annotated[str | None, Flag(metavar="SRC")] = None
    stated: Annotated[str | None, Flag(metavar="FILE")] = None
    seed: Seed = 0
    perplexity: Annotated[float | None, Range(above=0)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.measure.split()) != 1:
            raise OptionError("measure", f"'{self.measure}' is not one measure", "give one, such as nDCG@10")

    def scored(self, depth: int | None = None) -> list[str]:
        """The further measures that runs are scored by.

        Args:
            depth: of the scores.
        """
        if self.measures is not None:
            return self.measures.split()
        depth = depth or DEFAULT_DEPTH
        return ["RR", "AP", f"NCG@{depth}", f"R@{depth}"]

    def printed(self) -> list[str]:
        """The measures to take from tables of means, empty for all; a word in brackets belongs to what it follows."""
        return re.findall(r"\S+(?: \(\w+\))?", self.measures or "")


@dataclass(frozen=True)
class CountedFiles(Options):
    """What is counted beside the runs; NAME= before a source says what the file is called.

    Attributes:
        collection: documents: a file, a folder, irds:ID.
        queries: queries; repeat the option for training and test.
        also_qrels: further judgments, such as those for training.
    """

    collection: Annotated[Sources, Flag(metavar="[NAME=]SRC", reads=list[str])] = ()
    queries: Annotated[Sources, Flag(metavar="[NAME=]SRC", reads=list[str])] = ()
    also_qrels: Annotated[Sources, Flag(metavar="[NAME=]SRC", reads=list[str])] = ()
