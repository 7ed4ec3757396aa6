"""What the survivorship audit reads in common: named sources, logs, lists of ids; kinds of queries, tested."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import scipy

from truerank.audits.survivorship.annotation_logs import FAULTS, AnnotationLog, LogCounts
from truerank.core.plain import picked, plain
from truerank.errors import InputError, OptionError
from truerank.loading import signed_number
from truerank.measures.magnitudes import Proportion, proportion
from truerank.records import Input
from truerank.sources import columns, formats, grammar
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import numbered_lines
from truerank.sources.query_files import as_text
from truerank.sources.rows import rows

#: Sources, perhaps with names: `NAME=SRC` or `SRC`; in Python also by name.
NamedSources = str | Path | Sequence[str | Path] | Mapping[str, str | Path]
#: What makes a query survive: a shown document was selected, or somebody wrote an answer.
Survival = Literal["selected", "answered"]

_LABELS: Final = ("label", "category", "kind", "type", "query_type", "class")


def named_source(given: str | Path) -> tuple[str, SourceSpec]:
    """`NAME=SRC` or `SRC` as a name and a source."""
    name, spec = grammar.named_source(str(given))
    return name or spec.name, spec


def named_sources(given: NamedSources, option: str) -> dict[str, SourceSpec]:
    if isinstance(given, Mapping):
        return {name: grammar.parse(str(source)) for name, source in given.items()}
    found: dict[str, SourceSpec] = {}
    for one in [given] if isinstance(given, str | Path) else given:
        name, spec = named_source(one)
        if name in found:
            raise OptionError(option, f"two sources are called '{name}'", "name them: NAME=FILE")
        found[name] = spec
    return found


def whole_numbers(given: str | Sequence[int], option: str) -> tuple[int, ...]:
    """Different numbers from 1, in ascending order; on the command line separated by commas."""
    parts = given.split(",") if isinstance(given, str) else given
    read = [signed_number(str(part).strip()) for part in parts if str(part).strip()]
    numbers = [number for number in read if number is not None]
    if len(numbers) < len(read):
        raise OptionError(option, f"'{given}' is not a list of whole numbers", "write them like 1,2,5")
    wrong = next((number for number in numbers if number < 1), None)
    if wrong is not None:
        raise OptionError(option, f"must be at least 1, got {wrong}", "correct the value")
    if len(set(numbers)) < len(numbers):
        raise OptionError(option, "a number appears twice", "give each once")
    return tuple(sorted(numbers))


def input_of_log(name: str, log: AnnotationLog) -> Input:
    sha256 = log.fingerprint.removeprefix("sha256:").partition(";")[0]
    return Input(name, log.spec.spec, "log", log.log_counts.read, sha256)


def left_out(counts: LogCounts) -> dict[str, int]:
    return {kind: counts.faults[kind] for kind in ("repeated-query",) if kind in counts.faults}


def fault_notes(counts: LogCounts) -> list[str]:
    return [
        f"{count:,} times {kind}: {FAULTS[kind]} (e.g. {', '.join(counts.examples[kind][:3])})."
        for kind, count in counts.faults.items()
    ]


def percent(share: float | None, digits: int = 1) -> str:
    return "no share" if share is None else f"{share:.{digits}%}"


def read_kinds(spec: SourceSpec) -> Mapping[str, str]:
    if spec.scheme != "file":
        raise InputError("labels are read from files", "give a path", where=spec.spec)
    form = formats.detect(spec.path, spec.format)
    labels: dict[str, str] = {}
    plain = form in ("tsv", "lines") and not _has_names(spec)
    found = _of_lines(spec) if plain else _of_rows(spec, "tsv" if form == "lines" else form)
    for line, identifier, label in found:
        if labels.setdefault(identifier, label) != label:
            raise InputError(
                f"the query '{identifier}' has the labels '{labels[identifier]}' and '{label}'",
                "keep one of them",
                where=spec.location,
                line=line,
            )
    if not labels:
        raise InputError("no labels in it", "give lines of an id, a tab and a label", where=spec.location)
    return labels


def read_ids(spec: SourceSpec) -> list[str]:
    """Query ids, the first column of each line; repeated ones count once."""
    if spec.scheme != "file":
        raise InputError("lists of ids are read from files", "give a path", where=spec.spec)
    formats.detect(spec.path, spec.format)
    ids = dict.fromkeys(cells[0] for line in numbered_lines(spec.path) if (cells := line.text.split()))
    return list(ids)


def _has_names(spec: SourceSpec) -> bool:
    first = next(numbered_lines(spec.path)).text.split("\t")
    labelled = spec.column is not None or columns.named(first, _LABELS) is not None
    return labelled and columns.named(first, columns.ID_NAMES) is not None


def _of_lines(spec: SourceSpec) -> Iterator[tuple[int, str, str]]:
    for line in numbered_lines(spec.path):
        if not line.text.strip():
            continue
        identifier, tab, label = line.text.partition("\t")
        label = label.split("\t")[0].strip()
        if not tab or not identifier.strip() or not label:
            raise InputError("not an id, a tab and a label", "correct the line", where=spec.path, line=line.number)
        yield line.number, identifier.strip(), label


def _of_rows(spec: SourceSpec, form: str) -> Iterator[tuple[int, str, str]]:
    for row in rows(spec.path, form):
        names = list(row.values)
        key = columns.named(names, columns.ID_NAMES)
        wanted = spec.column if spec.column in row.values else columns.named(names, _LABELS)
        if key is None or wanted is None:
            fault = f"no column of ids and labels; there are {', '.join(names[:12]) or 'none'}"
            raise InputError(fault, "call them query_id and label", where=spec.path, line=row.line)
        identifier, label = as_text(row.values.get(key)), as_text(row.values.get(wanted))
        if identifier and label:
            yield row.line, identifier.strip(), label.strip()


Standing = Literal["over", "under", ""]
#: Below this number of expected queries, a test of a kind is rough.
FEWEST_EXPECTED: Final = 5


class KindCount(NamedTuple):
    """One kind of query.

    `residual` is the adjusted standardised residual of its survivors; `ratio` its share among the survivors over its
    share among all queries, with an interval; `standing` says whether the residual stands out.
    """

    kind: str
    discarded: Proportion
    of_all: float
    of_survivors: float
    ratio: float
    ratio_low: float
    ratio_high: float
    residual: float
    standing: Standing


@dataclass(frozen=True)
class Kinds:
    """Discarded queries by kind.

    Attributes:
        labelling: what the kinds are.
        split: whose queries.
        counts: the kinds, the most frequent first.
        total: all labelled queries.
        unlabelled: queries without a kind; they are not in the test.
        chi2: Pearson's statistic of kind by survival, None where there is nothing to test.
        freedom: its degrees of freedom.
        p: its p-value.
        cramers_v: the effect, 0 to 1.
        sparse: kinds that expect fewer than five queries in a cell, for which p and residuals are rough.
        alpha: level of `standing`, before the correction for the number of kinds.
    """

    labelling: str
    split: str
    counts: tuple[KindCount, ...]
    total: Proportion
    unlabelled: int
    chi2: float | None
    freedom: int
    p: float | None
    cramers_v: float | None
    sparse: tuple[str, ...]
    alpha: float

    @property
    def critical(self) -> float:
        """The residual beyond which a kind stands out."""
        return float(-scipy.special.ndtri(self.alpha / (2 * max(1, len(self.counts)))))

    def json(self) -> dict[str, Any]:
        """All figures by name."""
        kinds = [
            {
                "kind": one.kind, "total": one.discarded.n, "discarded": one.discarded.k,
                **{name: one.discarded.json()[name] for name in ("share", "low", "high")},
                **picked(one, "share_of_all=of_all, share_of_survivors=of_survivors"),
                **plain(one, "kind", "discarded", "of_all", "of_survivors"),
            }
            for one in self.counts
        ]  # fmt: skip
        names = "labelling, split, unlabelled, chi2, freedom, p, cramers_v, sparse"
        return {**picked(self, names), "kinds": kinds}


def independence(
    counts: Mapping[str, tuple[int, int]],
    *,
    labelling: str = "kind",
    split: str = "",
    unlabelled: int = 0,
    confidence: float = 0.95,
    alpha: float = 0.05,
) -> Kinds:
    """Discarded shares by kind, with Pearson's test of independence and the kinds that stand out.

    Args:
        counts: by kind, all its queries and the discarded ones among them.
        labelling: what the kinds are.
        split: whose queries.
        unlabelled: queries without a kind.
        confidence: of the intervals.
        alpha: level at which a kind stands out, corrected for their number.

    Returns:
        The result; kinds in the order of their frequency, equal ones by name.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 3; Haberman, The analysis of
    residuals in cross-classified tables (1973).
    """
    names = sorted((kind for kind, (total, _) in counts.items() if total), key=lambda kind: (-counts[kind][0], kind))
    totals = np.array([counts[kind][0] for kind in names], np.float64)
    lost = np.array([counts[kind][1] for kind in names], np.float64)
    kept = totals - lost
    whole, gone = totals.sum(), lost.sum()
    left = whole - gone
    testable = len(names) > 1 and gone > 0 and left > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = totals * left / whole
        residuals = (kept - expected) / np.sqrt(expected * (1 - totals / whole) * (1 - left / whole))
        ratios = (kept / totals) / (left / whole)
        terms = (kept - expected) ** 2 / expected + (kept - expected) ** 2 / (totals - expected)
    statistic = float(terms.sum()) if testable else None
    critical = float(-scipy.special.ndtri(alpha / (2 * max(1, len(names)))))
    found = []
    for row, kind in enumerate(names):
        low, high = _ratio_interval(kept, totals, row, float(-scipy.special.ndtri((1 - confidence) / 2)))
        residual = float(residuals[row]) if testable else math.nan
        standing: Standing = "over" if residual > critical else "under" if residual < -critical else ""
        found.append(
            KindCount(
                kind,
                proportion(int(lost[row]), int(totals[row]), confidence=confidence),
                float(totals[row] / whole),
                float(kept[row] / left) if left else math.nan,
                float(ratios[row]) if left else math.nan,
                low,
                high,
                residual,
                standing,
            )
        )
    few = testable & (np.minimum(expected, totals - expected) < FEWEST_EXPECTED)
    return Kinds(
        labelling,
        split,
        tuple(found),
        proportion(int(gone), int(whole), confidence=confidence),
        unlabelled,
        statistic,
        max(0, len(names) - 1),
        None if statistic is None else float(scipy.special.chdtrc(len(names) - 1, statistic)),
        None if statistic is None else math.sqrt(statistic / whole),
        tuple(kind for kind, is_few in zip(names, few.tolist(), strict=True) if is_few),
        alpha,
    )


def _ratio_interval(kept: Any, totals: Any, row: int, z: float) -> tuple[float, float]:
    """An interval of a kind's share of the survivors over its share of all, on the scale of logarithms."""
    whole, left = totals.sum(), kept.sum()
    rest = whole - totals[row]
    if not left or not rest or not kept[row]:
        return math.nan, math.nan
    own, other = kept[row] / totals[row], (left - kept[row]) / rest
    weight, overall = totals[row] / whole, left / whole
    variance = (1 / own - weight / overall) ** 2 * own * (1 - own) / totals[row]
    variance += ((1 - weight) / overall) ** 2 * other * (1 - other) / rest
    spread = math.exp(z * math.sqrt(variance))
    ratio = own / overall
    return float(ratio / spread), float(ratio * spread)
