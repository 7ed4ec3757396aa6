"""The choices of a report on an experiment."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final, Literal

from truerank.errors import OptionError
from truerank.experiments.grid.design import Design, ReportKind
from truerank.experiments.memorising import Draws
from truerank.measures import Significance
from truerank.options import Flag, Options, Range, Scoring

#: What cross-validation chooses between: sizes of the training set, each the mean over its seeds, or single trainings.
Choose = Literal["sizes", "runs"]
#: In the label of a set: what stands before it is the block of the table, what stands behind it the condition.
GROUP_SIGN: Final = " | "

_USUAL: Final[dict[str, Choose]] = {
    "leakage": "sizes",
    "transfer": "runs",
    "survivorship": "sizes",
    "pilot": "sizes",
}


@dataclass(frozen=True)
class ReportOptions(Options):
    """What the report shows.

    Attributes:
        kind: which paper's tables and figures; by default as the design says.
        measures: what is shown, separated by blanks; the first is that of figures and sentences. By default those that
            the design has for each collection.
        baseline: label of the training sets that the others are compared with; by default the design's.
        choose: what cross-validation chooses between: training sizes, each the mean over its seeds, or single
            trainings; by default sizes, and runs for the kind transfer.
        memorisation_size: training size, in instances, of the tables on memorisation; by default the design's, or the
            largest that models with and without the leak share.
        pilot_size: training size of the pilot table; by default the largest that all models share.
        same_rel: `rel` holds for all collections, also where it is 1 and the design says otherwise.
    """

    kind: ReportKind | None = None
    measures: str | None = None
    baseline: Annotated[str | None, Flag(metavar="LABEL")] = None
    choose: Choose | None = None
    memorisation_size: Annotated[int | None, Flag(metavar="N"), Range(at_least=2)] = None
    pilot_size: Annotated[int | None, Flag(metavar="N"), Range(at_least=2)] = None
    same_rel: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("memorisation_size", "pilot_size"):
            if (getattr(self, name) or 0) % 2:
                raise OptionError(
                    name, f"a training size of {getattr(self, name)}", "sizes are even: two instances a row"
                )


@dataclass(frozen=True)
class ReportChoices(ReportOptions):
    """All choices behind a report.

    Attributes:
        policy: how runs are scored; grade 1 stands for the lowest relevant grade of each collection of the design.
        method: test, correction, level; number and seed of the bootstrap's draws.
    """

    policy: Scoring = field(default_factory=Scoring)
    method: Significance = field(default_factory=Significance)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.method.paired:
            raise OptionError("significance", f"{self.method.significance} is no paired test", "choose a paired one")

    def of(self, design: Design) -> ReportChoices:
        """The same with what the design says where nothing is said here."""
        kind = self.kind or design.report.kind
        size = self.memorisation_size
        return replace(
            self,
            kind=kind,
            # A design names a whole label; blocks of a table have the same baseline each.
            baseline=(design.report.baseline if self.baseline is None else self.baseline).rpartition(GROUP_SIGN)[2],
            choose=self.choose or _USUAL[kind],
            memorisation_size=design.report.memorisation_size if size is None else size,
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The measures that are asked for; empty for those of the design."""
        return () if self.measures is None else (self.measures,)

    @property
    def confidence(self) -> float:
        """Of all intervals."""
        return 1 - self.method.alpha

    @property
    def draws(self) -> Draws:
        """Of the bootstrap over topics."""
        return Draws(self.confidence, self.method.draws, self.method.seed)

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return {
            **{name: value for name, value in asdict(self).items() if name not in ("policy", "method")},
            "measures": list(self.named),
            "policy": self.policy.json(),
            "method": self.method.json(),
        }
