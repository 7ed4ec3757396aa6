"""Which judgments no longer hold for a version: those that a scan flagged, and those that people judged broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import polars as pl

from truerank.audits.transfer.estimating import COMBINATIONS
from truerank.audits.transfer.scanning.results import Scan
from truerank.errors import OptionError
from truerank.judging.rating_table import Ratings
from truerank.judging.ratings import read_ratings
from truerank.options import Labels

By: TypeAlias = Literal["max-or-texts", "max", "texts", "first", "any", "both"]
Ids: TypeAlias = Literal["judged", "version"]
#: Topic and document as the judgments name them.
Key: TypeAlias = tuple[str, str]

_GRADE: Final = re.compile(r"V(\d+)=([0-2])")
_NAMED: Final = re.compile(r"V(\d+)")


class Flagged(NamedTuple):
    """Why a scan holds that a judgment does not hold: the other version, the difference, the class and its evidence."""

    better: str
    difference: float
    reason: str
    evidence: str


class Verdicts(NamedTuple):
    """What people said of a version's documents; `tied` counts those on which they disagree evenly.

    Attributes:
        broken: topic and judged document, and why, such as "only V1 is relevant".
        sound: those whose document is relevant.
        tied: how many are neither.
    """

    broken: dict[Key, str]
    sound: frozenset[Key]
    tied: int


def flags_of(scan: Scan, version: str, by: By, ids: Ids, reasons: tuple[str, ...]) -> dict[Key, Flagged]:
    """The candidates of a scan that say a version's document does not answer what another one's does."""
    if version not in scan.versions:
        raise OptionError("version_name", f"no version '{version}'", f"there is {', '.join(scan.versions)}")
    frame = scan.candidates.filter(pl.col("worse") == version)
    unknown = set(reasons) - {str(name) for one in scan.summary["sets"].values() for name in one["reasons"]}
    if unknown:
        raise OptionError("reason", f"the scan has no reason '{min(unknown)}'", "see its table for those it has")
    first, best = pl.col("first").fill_null(False), pl.col("max").fill_null(False)
    texts = pl.col("texts").fill_null(False)
    ways = {"max": best, "first": first, "texts": texts, "both": first & best}
    frame = frame.filter({**ways, "max-or-texts": best | texts, "any": first | best | texts}[by])
    if reasons:
        frame = frame.filter(pl.col("reason").is_in(list(reasons)))
    difference = pl.col("first_difference" if by == "first" else "max_difference")
    chosen = frame.select(
        "topic_id", "doc_id" if ids == "judged" else "worse_id", "better", difference.alias("difference"), "reason",
        "shown",
    )  # fmt: skip
    found: dict[Key, Flagged] = {}
    for topic, document, *rest in chosen.iter_rows():
        flag = Flagged(*rest)
        key = (str(topic), str(document))
        if key not in found or flag.difference > found[key].difference:
            found[key] = flag
    return found


def verdicts_of(judged: Labels, scan: Scan | None, version: str, ids: Ids) -> Verdicts:
    """What people said of a version's documents, by the scheme `transfer` or `transfer:N`."""
    ratings = read_ratings(judged)
    scheme = "" if ratings.scheme is None else ratings.scheme.name
    if scheme and not scheme.startswith("transfer"):
        raise OptionError("labels", f"labels of the scheme '{scheme}'", "judge with --scheme transfer")
    decided = ratings.decided(_meaning, include_models=judged.include_models)
    broken: dict[Key, str] = {}
    sound: set[Key] = set()
    tied = 0
    for at, (place, key) in _places(ratings, scan, version, ids):
        meaning = decided.get(at, "")
        if meaning == "":
            continue
        if meaning is None:
            tied += 1
            continue
        grades = dict(enumerate(map(int, meaning.split()), start=1))
        if place not in grades:
            continue
        if grades.pop(place):
            sound.add(key)
        else:
            relevant = [f"V{number}" for number, grade in grades.items() if grade > 0]
            broken[key] = f"judged: only {' and '.join(relevant)} relevant" if relevant else "judged: none is relevant"
    if not broken and not sound and not tied:
        raise OptionError("labels", f"the labels say nothing about {version}", "judge the items of this scan")
    # What was judged twice, and once found sound, is tied.
    both = sound & set(broken)
    kept = {key: why for key, why in broken.items() if key not in both}
    return Verdicts(kept, frozenset(sound - both), tied + len(both))


def _meaning(labels: tuple[str, ...]) -> str | None:
    """The grades of the versions in their order, such as "1 0"; a version without a grade has -1."""
    pair = next((COMBINATIONS[label] for label in labels if label in COMBINATIONS), None)
    if pair is not None:
        return " ".join(pair)
    grades = {int(match[1]): match[2] for label in labels if (match := _GRADE.fullmatch(label))}
    return " ".join(grades.get(number, "-1") for number in range(1, max(grades) + 1)) if grades else None


def _places(ratings: Ratings, scan: Scan | None, version: str, ids: Ids) -> Iterator[tuple[int, tuple[int, Key]]]:
    """For each unit that has the version: which of its texts that is, and the judgment it is about."""
    for at, unit in enumerate(ratings.units):
        names = _names(unit.dataset, scan)
        if names is None:
            match = _NAMED.fullmatch(version)
            if match is None:
                fault = f"without a scan the labels do not say which is '{version}'"
                raise OptionError("version_name", fault, "give `scan`, or V1, V2, …")
            place = int(match[1])
        elif version in names:
            place = names.index(version) + 1
        else:
            continue
        document = unit.data.get("doc_id", unit.doc_id) if ids == "judged" else unit.data.get(f"V{place}_id", "")
        yield at, (place, (unit.topic_id, str(document or unit.doc_id)))


def _names(dataset: str, scan: Scan | None) -> tuple[str, ...] | None:
    """The versions that stand side by side in the items of a data set, in their order."""
    if scan is None:
        return None
    about: Any = scan.summary["sets"].get(dataset)
    if about is None or not about["aggregation"]:
        return scan.versions
    sides = {about["better"], about["worse"]}
    return next((tuple(pair) for pair in scan.summary["pairs"] if set(pair) == sides), scan.versions)
