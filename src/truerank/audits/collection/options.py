"""What the collection audit reads and how it looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from truerank.errors import OptionError
from truerank.options import Flag, Options, Range

_INPUTS: Final = (
    "qrels", "docs", "topics", "train", "judged_again", "previous", "previous_qrels", "run"
)  # fmt: skip


@dataclass(frozen=True)
class Parts(Options):
    """What is audited; each part works alone, and together they show more.

    Attributes:
        qrels: relevance judgments: a path or irds:ID. In Python also a frame, records, or grades by topic and document.
        docs: the documents.
        topics: the topics.
        train: queries of other splits of the collection; repeat the option for several.
        judged_again: pairs that were judged again, drawn at random; judgments, label files or judging stores: what do
            wrong judgments allow? In Python as the judgments.
        previous: an earlier version of the documents, in which the runs searched: what does the smaller corpus do?
        previous_qrels: an earlier version of the judgments. In Python as the judgments.
        run: TREC runs, whose scores show what the faults do; repeat the option for several. In Python also runs by
            name.
    """

    qrels: Annotated[Any, Flag(metavar="SRC", reads=str)] = None
    docs: Annotated[str | None, Flag(metavar="SRC")] = None
    topics: Annotated[str | None, Flag(metavar="SRC")] = None
    train: Annotated[tuple[str, ...], Flag(metavar="SRC", reads=list[str])] = ()
    judged_again: Annotated[Any, Flag(metavar="[NAME=]SRC", reads=list[str])] = ()
    previous: Annotated[str | None, Flag(metavar="SRC")] = None
    previous_qrels: Annotated[Any, Flag(metavar="SRC", reads=str)] = None
    run: Annotated[Any, Flag(metavar="FILE", reads=list[str])] = ()

    @property
    def given(self) -> frozenset[str]:
        """The names of the inputs that are there."""
        return frozenset(
            name
            for name in _INPUTS
            if (value := getattr(self, name)) is not None and not (isinstance(value, tuple | list) and not value)
        )


@dataclass(frozen=True)
class CollectionOptions(Options):
    """What is looked for, and what is measured.

    Attributes:
        grades: the grades of the scale, separated by commas; by default what the judgments suggest.
        topic_similarity: Jaccard similarity of the runs of four letters of two topics, from which on they are
            near-duplicates.
        measures: measures whose ceilings, and with runs whose scores, are computed.
        resamples: random changes that the effect on runs is compared with.
        sample: pairs of near-duplicates that are proposed for judging.
        suspect_share: the share of the relevant judgments that is taken to be wrong, where suspect ones are proposed.
        confidence: of intervals.
        seed: of all random choices.
    """

    grades: Annotated[tuple[int, ...], Flag(metavar="N,N", reads=list[str], commas=True)] = ()
    topic_similarity: Annotated[float, Range(above=0, at_most=1)] = 0.8
    measures: str = "nDCG@10 R@100"
    resamples: Annotated[int, Range(at_least=1)] = 1000
    sample: Annotated[int, Range(at_least=1)] = 200
    suspect_share: Annotated[float, Range(above=0, below=1)] = 0.05
    confidence: Annotated[float, Range(above=0, below=1)] = 0.95
    seed: Annotated[int, Range(at_least=0)] = 0

    def __post_init__(self) -> None:
        """Takes grades as numbers or texts."""
        try:
            object.__setattr__(self, "grades", tuple(int(grade) for grade in self.grades))
        except (TypeError, ValueError) as error:
            shown = ",".join(map(str, self.grades)) if isinstance(self.grades, tuple | list) else str(self.grades)
            raise OptionError("grades", f"expected integers, got '{shown}'", "write grades such as 0,1,2,3") from error
        super().__post_init__()
