"""The choices of a report on an experiment."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, get_args

from truerank.errors import InputError
from truerank.experiments.grid.design import REPORTS, Design, ReportKind
from truerank.experiments.memorising import Draws
from truerank.measures import Policy, Testing

__all__ = ["GROUP_SIGN", "Choose", "ReportOptions"]

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
class ReportOptions:
    """What a report shows, and how its runs are scored and compared.

    Attributes:
        kind: which paper's tables; None as the design says.
        measures: what is shown; empty for those that the design has for each collection. The first is that of figures
            and sentences.
        baseline: label of the training sets that the others are compared with; None as the design says.
        choose: what cross-validation chooses between; None for the usual way of the kind.
        memorisation_size: training size, in instances, of the tables on memorisation; None as the design says, or the
            largest that models with and without the leak share.
        pilot_size: training size of the pilot table; None for the largest that all models share.
        rel: the lowest grade that binary measures count as relevant; None as the design says of each collection.
        policy: how else runs are scored. As in the leakage paper, ties are broken by document id ascending.
        method: test, correction, level; number and seed of the bootstrap's draws.

    Raises:
        InputError: an unknown name, or a size below 2.
    """

    kind: ReportKind | None = None
    measures: tuple[str, ...] = ()
    baseline: str | None = None
    choose: Choose | None = None
    memorisation_size: int | None = None
    pilot_size: int | None = None
    rel: int | None = None
    policy: Policy = field(default_factory=lambda: Policy(ties="ascending"))
    method: Testing = field(default_factory=Testing)

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in REPORTS:
            raise InputError(f"unknown kind of report '{self.kind}'", f"one of {', '.join(REPORTS)}", where="--kind")
        if self.choose is not None and self.choose not in get_args(Choose):
            raise InputError(f"unknown choice '{self.choose}'", "sizes or runs", where="--choose")
        for size, option in ((self.memorisation_size, "--memorisation-size"), (self.pilot_size, "--pilot-size")):
            if size is not None and (size < 2 or size % 2):
                raise InputError(f"a training size of {size}", "sizes are even: two instances a row", where=option)
        if not self.method.paired:
            raise InputError(f"{self.method.significance} is no paired test", "choose a paired one", where="--test")
        if self.rel is not None:
            Policy(rel=self.rel)

    def of(self, design: Design) -> ReportOptions:
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
            "measures": list(self.measures),
            "policy": self.policy.json(),
            "method": self.method.json(),
        }
