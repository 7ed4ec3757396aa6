"""The options of the survivorship audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from truerank.errors import InputError

__all__ = ["DepthOptions", "MapOptions", "ProfileOptions", "SimulateOptions", "TriplesOptions"]

_DEPTHS: Final = tuple(range(1, 10))


def _check_depths(depths: tuple[int, ...], option: str) -> None:
    wrong = [depth for depth in depths if depth < 1]
    if wrong:
        raise InputError(f"the depth {wrong[0]} shows nothing", "give 1 or more", where=option)
    if len(set(depths)) < len(depths):
        raise InputError("a depth stands there twice", "give each once", where=option)


@dataclass(frozen=True)
class ProfileOptions:
    """How `survivorship.profile` looks at what was discarded.

    Args:
        rule: what makes a query survive: "selected", a shown document was selected (as for MS MARCO's rankings), or
            "answered", somebody wrote an answer.
        confidence: of all intervals.
        alpha: a kind is called over- or under-represented at this level, corrected for the number of kinds.
        extrapolate_to: the depth to extrapolate to; None for twice the depth that was shown to most, 0 for none.
        draws: of the extrapolation's uncertainty.
        seed: of these draws.
    """

    rule: Literal["selected", "answered"] = "selected"
    confidence: float = 0.95
    alpha: float = 0.05
    extrapolate_to: int | None = None
    draws: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rule not in ("selected", "answered"):
            raise InputError(f"no rule called {self.rule!r}", "use 'selected' or 'answered'", where="--rule")
        for value, option in ((self.confidence, "--confidence"), (self.alpha, "--alpha")):
            if not 0 < value < 1:
                raise InputError(f"{value:g} does not lie between 0 and 1", "give 0.95 or 0.05", where=option)
        if self.extrapolate_to is not None and not 0 <= self.extrapolate_to <= 1000:
            raise InputError(
                f"an extrapolation to {self.extrapolate_to} is not possible", "give 0 to 1000", where="--extrapolate-to"
            )
        if self.draws < 100:
            raise InputError(f"{self.draws} draws are too few", "give 100 or more", where="--draws")
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed}", "give 0 or more", where="--seed")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self)


@dataclass(frozen=True)
class DepthOptions:
    """How `survivorship.depth` simulates shallower annotation.

    Args:
        depths: how many documents would have been shown; the whole log ("all") is always added.
        relevance: the grade that a selected document gets where the log is the only source of judgments.
        unmapped: what becomes of selected documents whose text no passage id is known for: "drop" leaves them out,
            "keep" names them by their text's key.
    """

    depths: tuple[int, ...] = _DEPTHS
    relevance: int = 1
    unmapped: Literal["drop", "keep"] = "drop"

    def __post_init__(self) -> None:
        _check_depths(self.depths, "--depths")
        if self.unmapped not in ("drop", "keep"):
            raise InputError(f"no way called {self.unmapped!r}", "use 'drop' or 'keep'", where="--unmapped")
        if self.relevance < 1:
            raise InputError(f"the grade {self.relevance} is not relevant", "give 1 or more", where="--relevance")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return {**asdict(self), "depths": list(self.depths)}


@dataclass(frozen=True)
class MapOptions:
    """How `survivorship.map_passages` matches the log's passages with a collection, and with a later corpus.

    Args:
        duplicates: passages of the collection with the same text: "leave" lists them and maps nothing to them, "first"
            maps to the first of them, "fail" ends with an error.
        min_overlap: a passage survives a later corpus if at least this share of its word sequences stands in one
            document there.
        words: length of these sequences.
    """

    duplicates: Literal["leave", "first", "fail"] = "leave"
    min_overlap: float = 0.8
    words: int = 5

    def __post_init__(self) -> None:
        if self.duplicates not in ("leave", "first", "fail"):
            raise InputError(f"no way called {self.duplicates!r}", "leave, first or fail", where="--duplicates")
        if not 0 < self.min_overlap <= 1:
            raise InputError(
                f"an overlap of {self.min_overlap:g} is not possible", "give more than 0, at most 1", where="--overlap"
            )
        if self.words < 1:
            raise InputError(f"sequences of {self.words} words", "give 1 or more", where="--words")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self)


@dataclass(frozen=True)
class SimulateOptions:
    """What the annotator of `survivorship.simulate` would have seen and done.

    Args:
        shown: documents shown for each query, the best of the run.
        select: "all" relevant ones among them, or only the "first", as an annotator who stops reading.
        rel: the lowest grade that answers the query.
    """

    shown: int = 10
    select: Literal["all", "first"] = "all"
    rel: int = 1

    def __post_init__(self) -> None:
        if self.shown < 1:
            raise InputError(f"{self.shown} documents are shown", "give 1 or more", where="--shown")
        if self.select not in ("all", "first"):
            raise InputError(f"no way called {self.select!r}", "use 'all' or 'first'", where="--select")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self)


@dataclass(frozen=True)
class TriplesOptions:
    """Which training triples `survivorship.triples` keeps.

    Args:
        depths: a file is written for each: the triples whose relevant document stood within so many shown ones; the
            triples of all depths are always written.
        by: "id" looks a triple up by its ids, "text" by its texts, "auto" by ids where it has them.
        limit: reading stops once the shallowest depth has so many triples, so that every depth has at least as many;
            None reads the whole stream.
    """

    depths: tuple[int, ...] = (1, 5)
    by: Literal["auto", "id", "text"] = "auto"
    limit: int | None = None

    def __post_init__(self) -> None:
        _check_depths(self.depths, "--depth")
        if self.by not in ("auto", "id", "text"):
            raise InputError(f"no way called {self.by!r}", "use auto, id or text", where="--by")
        if self.limit is not None and self.limit < 1:
            raise InputError(f"the limit is {self.limit}", "give 1 or more, or leave it out", where="--limit")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return {**asdict(self), "depths": list(self.depths)}
