"""Estimate: from a judged sample, how many judgments broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.transfer.scanning.candidates import set_name
from truerank.audits.transfer.scanning.judging_items import band_of, highest_difference
from truerank.audits.transfer.scanning.options import TEXTS
from truerank.audits.transfer.scanning.results import Scan, load_scan
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.judging.ratings import read_ratings
from truerank.measures import proportion
from truerank.options import Confidence, Flag, Labels, Seed, command
from truerank.sources.compressed import checked_file
from truerank.sources.rows import rows

#: The paper's six columns (V1 above, V2 below; 2: relevant, and better than the other), by the labels of the scheme.
COMBINATIONS: Final[Mapping[str, str]] = {
    "neither": "00", "only V2": "01", "only V1": "10", "both": "11", "V1 better": "21", "V2 better": "12",
}  # fmt: skip
_DRAWS: Final = 20_000
_DIGITS: Final = 15


class Counts(NamedTuple):
    """A data set's labels.

    Attributes:
        labels: how many pairs have which of the paper's combinations.
        error: the combination that is an error; empty for a set that was not made to find one.
        strata: for each band of the difference, its pairs, those judged, and errors among these; empty where unknown.
    """

    name: str
    labels: Mapping[str, int]
    documents: int
    error: str
    strata: Mapping[str, tuple[int, int, int]] = {}


class PrecisionInterval(NamedTuple):
    """A value and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """How many errors a data set holds.

    Attributes:
        precision: share of errors among the judged, with Wilson's interval.
        errors: times the documents of the set.
        stratified: each band of the difference by its own precision; None where fewer than two bands are known.
    """

    counts: Counts
    precision: PrecisionInterval | None
    errors: PrecisionInterval | None
    stratified: PrecisionInterval | None


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Result, shown_in="truerank.audits.transfer.report"):
    """The paper's Table 3, with intervals.

    Attributes:
        parts: one for each data set.
        versions: the names of V1 and V2.
        confidence: of the intervals.
        notes: what was left out.
    """

    parts: tuple[Estimate, ...]
    versions: tuple[str, str] = ("V1", "V2")
    confidence: float = 0.95
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """Everything as plain numbers."""
        parts = {part.counts.name: _part_json(part) for part in self.parts}
        return {**picked(self, "versions, confidence"), "sets": parts, **picked(self, "notes")}


@command
def estimate(
    scan: Annotated[Scan | str | Path | None, Flag(metavar="DIR", positional=True, reads=str)] = None,
    judged: Labels = Labels(),
    *,
    counts: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
) -> Estimates:
    """Estimates how many judgments broke, from a judged sample of the data sets.

    The labels are of items of the scan (items.jsonl).

    Args:
        scan: the folder that `transfer scan` wrote. In Python also what it returned.
        judged: what was said about a sample of its data sets.
        counts: instead of both, labels counted already: a CSV of set, 00, 01, 10, 11, 21, 12, documents, error.
        confidence: of the intervals.
        seed: of the draws for the estimate by bands.

    Returns:
        For each data set its counts, precision and number of errors; and where scores and texts name candidates, the
        same for those that one of them names alone and for those of both.

    Raises:
        InputError: labels or counts cannot be read, or belong to no data set of the scan.

    Examples:

        truerank transfer estimate scan/ --labels versions.judged

        truerank transfer estimate --counts table3.csv

    Source: the transfer paper, section 5, Table 3; intervals of precision: Wilson (1927).
    """
    if counts is not None:
        if judged or scan is not None:
            raise OptionError("counts", "labels are counted already", "give `counts`, or `labels` and a scan")
        given = read_counts(counts)
        return Estimates(tuple(_estimate(one, confidence, seed) for one in given), confidence=confidence)
    if not judged or scan is None:
        raise OptionError("labels", "nothing to estimate from", "give `labels` and a scan, or `counts`")
    opened = scan if isinstance(scan, Scan) else load_scan(scan)
    found, notes = _counted(judged, opened)
    first, second = opened.versions[:2]
    parts = tuple(_estimate(one, confidence, seed) for one in found)
    return Estimates(parts, (first, second), confidence, notes)


def read_counts(path: str | Path) -> list[Counts]:
    """Reads counted labels, a CSV of set, 00, 01, 10, 11, 21, 12, documents, error ("10", "01" or empty)."""
    path = checked_file(Path(path))
    needed = ("set", *COMBINATIONS.values(), "documents", "error")
    found = []
    for row in rows(path, "csv", strict=True):
        lacking = [name for name in needed if name not in row.values]
        if lacking:
            remedy = f"give the columns {', '.join(needed)}"
            raise InputError(f"no column '{lacking[0]}'", remedy, where=path, line=row.line)
        side = row.values["error"].strip()
        if side not in ("", "01", "10"):
            fault = f"'{side[:40]}' is not an error of a set"
            raise InputError(fault, "give 10 (V1 is right), 01 (V2 is) or nothing", where=path, line=row.line)
        numbers = {name: _whole(row.values[name], path, row.line) for name in (*COMBINATIONS.values(), "documents")}
        documents = numbers.pop("documents")
        found.append(Counts(row.values["set"], numbers, documents, side))
    if not found:
        raise InputError("no data set in it", "give one row for each", where=path)
    return found


def _estimate(counts: Counts, confidence: float, seed: int) -> Estimate:
    total, size = sum(counts.labels.values()), counts.documents
    if not counts.error or not total:
        return Estimate(counts, None, None, None)
    broken = counts.labels.get(counts.error, 0)
    share = proportion(broken, total, confidence=confidence)
    precision = PrecisionInterval(broken / total, share.low, share.high)
    # What was judged is known, whatever the interval says of the rest.
    ends = max(float(broken), share.low * size), min(float(size - total + broken), share.high * size)
    errors = PrecisionInterval(precision.value * size, *ends) if size >= total else None
    return Estimate(counts, precision, errors, _by_bands(counts, confidence, seed))


def _by_bands(counts: Counts, confidence: float, seed: int) -> PrecisionInterval | None:
    """The sum over the bands: errors that were seen, and those expected among the pairs that were not judged."""
    strata = [one for one in counts.strata.values() if one[0]]
    if len(strata) < 2 or any(judged == 0 for _, judged, _ in strata):
        return None
    value = sum(size * broken / judged for size, judged, broken in strata)
    # Imported here: SciPy takes a while to load.
    from scipy.special import betaincinv

    draw = np.random.default_rng(seed)
    total: NDArray[np.float64] = np.zeros(_DRAWS)
    for size, judged, broken in strata:
        # Drawn through the inverse of the distribution, which is the same with every version of NumPy.
        shares = betaincinv(broken + 0.5, judged - broken + 0.5, draw.random(_DRAWS))
        total += broken + (size - judged) * shares
    low, high = np.quantile(total, [(1 - confidence) / 2, (1 + confidence) / 2])
    return PrecisionInterval(value, float(low), float(high))


def _counted(judged: Labels, scan: Scan) -> tuple[list[Counts], tuple[str, ...]]:
    def answer_of(labels: tuple[str, ...]) -> str | None:
        return next((label for label in labels if label in COMBINATIONS), None)

    ratings = read_ratings(judged, scheme="transfer")
    decided = ratings.decided(answer_of, include_models=judged.include_models)
    if not decided:
        raise OptionError("labels", "no pair is labelled by people", "let people judge, or give `include_models`")
    tied = sum(answer is None for answer in decided.values())
    by_set: dict[str, list[tuple[Any, str]]] = {}
    for at, answer in decided.items():
        if answer is not None:
            unit = ratings.units[at]
            by_set.setdefault(unit.dataset, []).append((unit, COMBINATIONS[answer]))
    unknown = [name for name in by_set if name not in scan.summary["sets"] and name != "random"]
    if len(unknown) == len(by_set):
        fault = f"the labels belong to no data set of the scan (theirs: {', '.join(sorted(by_set))})"
        raise OptionError("labels", fault, "judge the items.jsonl of this scan")
    # In the order of the scan, the sample of all documents last.
    found = [_counts_of(name, by_set[name], scan) for name in (*scan.summary["sets"], "random") if name in by_set]
    found += _by_evidence(by_set, scan)
    notes = list(ratings.contradiction_notes)
    if tied:
        notes.append(f"{tied:,d} pairs on which annotators are tied are left out.")
    if unknown:
        left = sum(len(by_set[name]) for name in unknown)
        notes.append(f"{left:,d} labels of other data sets are left out: {', '.join(unknown)}.")
    return found, tuple(notes)


def _counts_of(name: str, members: Sequence[tuple[Any, str]], scan: Scan) -> Counts:
    labels = _labels(pair for _, pair in members)
    about = scan.summary["sets"].get(name)
    if about is None:
        return Counts(name, labels, int(scan.summary["compared"]), "")
    aggregation = about["aggregation"]
    if not aggregation:
        return Counts(name, labels, about["documents"], "")
    error = "10" if [about["better"], about["worse"]] in scan.summary["pairs"] else "01"
    lowest, highest = scan.summary["cut_off"][aggregation], highest_difference(scan, aggregation)
    inside = scan.sets.filter(pl.col("set") == name).select("topic_id", "doc_id", "difference").rows()
    known = {(topic, doc): difference for topic, doc, difference in inside}
    sizes = Counter(band_of(difference, lowest, highest) for *_, difference in inside)
    judged, broken = Counter[str](), Counter[str]()
    for unit, pair in members:
        difference = known.get(_key(unit))
        band = unit.stratum or ("" if difference is None else band_of(difference, lowest, highest))
        judged[band] += 1
        broken[band] += pair == error
    strata = {band: (sizes[band], judged[band], broken[band]) for band in sorted(sizes)}
    return Counts(name, labels, about["documents"], error, strata if set(judged) <= set(sizes) else {})


def _by_evidence(by_set: Mapping[str, Sequence[tuple[Any, str]]], scan: Scan) -> list[Counts]:
    """Candidates by what named them, in classes that have none in common: their errors add up.

    The sample of a data set, taken from its part in a class, is a sample of that part.
    """
    texts, best = pl.col(TEXTS), pl.col("max")
    classes = (
        ("MaxP alone", "max", best & ~texts),
        ("texts alone", TEXTS, texts & ~best),
        ("MaxP and texts", "max", best & texts),
    )
    found = []
    for place, (better, worse, inside) in enumerate(scan.sides()):
        for label, kind, chosen in classes:
            keys = set(inside.filter(chosen).select("topic_id", "doc_id").iter_rows())
            members = by_set.get(set_name(better, worse, kind), ())
            labels = _labels(pair for unit, pair in members if _key(unit) in keys)
            if any(labels.values()) and scan.summary["evidence"] == "both":
                # The second direction of a pair names errors of its first version.
                error = "01" if place % 2 else "10"
                found.append(Counts(f"{better}>>{worse} {label}", labels, len(keys), error))
    return found


def _labels(pairs: Iterable[str]) -> dict[str, int]:
    counted = Counter(pairs)
    return {pair: counted[pair] for pair in COMBINATIONS.values()}


def _key(unit: Any) -> tuple[str, str]:
    """The topic and the judged document of an item."""
    return unit.topic_id, str(unit.data.get("doc_id", unit.doc_id))


def _whole(cell: str, path: Path, line: int) -> int:
    text = cell.strip().replace(",", "")
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise InputError(f"'{cell[:40]}' is not a number of pairs", "give a whole number", where=path, line=line)
    return int(text)


def _part_json(part: Estimate) -> dict[str, Any]:
    counts = part.counts
    values = {"precision": part.precision, "errors": part.errors, "errors_by_bands": part.stratified}
    return {
        "labels": dict(counts.labels),
        "judged": sum(counts.labels.values()),
        "documents": counts.documents,
        "error": counts.error,
        "bands": {
            band: {"documents": size, "judged": judged, "errors": broken}
            for band, (size, judged, broken) in counts.strata.items()
        },
        **{name: None if value is None else [round(part, 6) for part in value] for name, value in values.items()},
    }
