"""Clean: the judgments that still hold, what was removed and why, also where links are broken."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import polars as pl

from truerank.audits.transfer.estimates import COMBINATIONS
from truerank.audits.transfer.scanning.results import Scan, load_scan, scan_inputs
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.judging.ratings import Ratings, label_inputs, label_rules, read_ratings
from truerank.options import Flag, Labels, Options, OutFile, Range, Source, command
from truerank.records import Qrel
from truerank.sources import grammar
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import QREL_SCHEMA, read_qrels
from truerank.text.printable import and_more
from truerank.work.runs import check_origins
from truerank.work.runs import run as started

By: TypeAlias = Literal["max-or-texts", "max", "texts", "first", "any", "both"]
Ids: TypeAlias = Literal["judged", "version"]
#: Topic and document as the judgments name them.
Key: TypeAlias = tuple[str, str]

_GRADE: Final = re.compile(r"V(\d{1,9})=([0-2])")
_NAMED: Final = re.compile(r"V(\d+)")


class Flagged(NamedTuple):
    """Why a scan holds that a judgment does not hold: the other version, the difference, the class and its evidence."""

    better: str
    difference: float
    reason: str
    evidence: str


class Verdicts(NamedTuple):
    """What people said of a version's documents: `broken` ones with why, such as "only V1 is relevant".

    `sound` documents are relevant; on `tied` ones people disagree evenly.
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


Trust = Literal["labels-first", "labels-only", "either"]

#: How labels and scan are combined, in words.
TRUST: Final[dict[str, str]] = {
    "labels-first": "what people judged follows them, the rest the scan",
    "labels-only": "only what people judged broken",
    "either": "what people judged broken, and everything that the scan flagged",
}
_REMOVED: Final = ("topic_id", "doc_id", "relevance", "why", "better", "difference", "reason", "evidence")
_BREAKS: Final = str.maketrans("\t\r\n", "   ")
#: Topics that are named in a sentence.
_NAMED_FILES: Final = 10


@dataclass(frozen=True)
class Removal(Options):
    """What the scan must say of a judgment that is removed.

    Attributes:
        named_by: what must have named a candidate: scores by MaxP (max), by FirstP (first) or both, the texts, any.
        reason: only what was flagged for this reason; by default for any.
        ids: whose ids the judgments have: those of the judged version, or (carried ones) of this version.
    """

    named_by: By = "max-or-texts"
    reason: Annotated[tuple[str, ...], Flag(metavar="CLASS", reads=list[str])] = ()
    ids: Ids = "judged"


@dataclass(frozen=True, eq=False, repr=False)
class JudgmentCleaning(Result, shown_in="truerank.audits.transfer.report"):
    """What `clean` did.

    Attributes:
        version: for whose documents judgments must hold.
        read: judgments read.
        kept: judgments that stay.
        removed: judgments left out, by why.
        reprieved: flagged judgments that people found sound.
        tied: judged documents on which annotators are tied; they count as not judged.
        not_found: flagged or broken judgments that the source does not hold.
        topics: topics read; those that had a relevant document and have none left.
        trust: how labels and scan were combined.
        warnings: what a user must know, one sentence each.
        out: the cleaned judgments; None where nothing was written.
        qrels: the judgments that stay, where nothing was written; columns as in `QREL_SCHEMA`.
    """

    version: str
    read: int
    kept: int
    removed: dict[str, int]
    reprieved: int
    tied: int
    not_found: int
    topics: dict[str, int]
    trust: Trust
    warnings: tuple[str, ...]
    out: Path | None = None
    qrels: pl.DataFrame | None = None

    @property
    def removed_file(self) -> Path | None:
        """What was removed and why, one line per judgment."""
        return None if self.out is None else self.out.with_name(f"{self.out.name}.removed.tsv")

    @property
    def manifest_file(self) -> Path | None:
        """Where it comes from."""
        return None if self.out is None else self.out.with_name(f"{self.out.name}.manifest.json")

    def counts(self) -> dict[str, Any]:
        """The counts alone."""
        names = ("read", "kept", "removed", "reprieved", "tied", "not_found", "topics")
        return {name: getattr(self, name) for name in names}

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            **picked(self, "out, removed_file, manifest_file, version"),
            **self.counts(),
            **picked(self, "trust, warnings"),
        }


@command
def clean(
    qrels: Source,
    *,
    scan: Annotated[Scan | str | Path | None, Flag(metavar="DIR", reads=Path)] = None,
    judged: Labels = Labels(),
    version_name: Annotated[str | None, Flag(metavar="NAME")] = None,
    removal: Removal = Removal(),
    trust: Trust = "labels-first",
    rel: Annotated[int, Range(at_least=1)] = 1,
    out: OutFile = None,
) -> JudgmentCleaning:
    """Removes the judgments that a scan flagged, or that people judged broken.

    Judgments are streamed and keep their order.

    Args:
        qrels: the judgments.
        scan: the folder that `transfer scan` wrote. In Python also what it returned.
        judged: what was said of the documents' versions, by the scheme transfer.
        version_name: for whose documents judgments must hold; by default the scan's second version.
        removal: what the scan must say.
        trust: how labels and scan are combined: labels-first (what people judged follows them, the rest the scan),
            labels-only (only what people judged broken) or either (both).
        rel: judgments below this grade stay: they say not relevant, which the scan does not question.
        out: the judgments that hold, TREC qrels; the name says the compression. Beside the file stand
            FILE.removed.tsv (what was removed and why) and FILE.manifest.json.

    Returns:
        The counts; where nothing is written, also the judgments.

    Raises:
        InputError: a source or option is at fault, nothing is left, or the output cannot be written.

    Examples:

        truerank transfer clean --qrels train.qrels --scan scan/ --out train.clean.qrels

        truerank transfer clean --qrels train-v2.qrels --scan scan/ --labels judged.db --ids version
        --version-name V2 --trust labels-only --out train-v2.clean.qrels
    """
    spec = grammar.parse(qrels)
    if scan is None and not judged:
        raise OptionError("scan", "nothing says what is broken", "give `scan`, `labels` or both")
    if trust == "labels-only" and not judged:
        raise OptionError("trust", "labels-only needs labels", "give `labels`, or trust another way")
    opened = None if scan is None else scan if isinstance(scan, Scan) else load_scan(scan)
    version = version_name or ("V2" if opened is None else opened.versions[1])
    flags: dict[Key, Flagged] = {}
    if opened is not None:
        flags = flags_of(opened, version, removal.named_by, removal.ids, removal.reason)
    verdicts = Verdicts({}, frozenset(), 0)
    if judged:
        verdicts = verdicts_of(judged, opened, version, removal.ids)
    sieve = _Sieve(flags, verdicts, trust, rel)
    inputs = (*inputs_of(qrels=qrels), *label_inputs(judged), *scan_inputs(opened, "candidates"))
    check_origins("transfer clean", inputs)
    if out is None:
        kept = io.BytesIO()
        sieve.run(read_qrels(spec), kept, io.BytesIO())
        lines = (line.split() for line in kept.getvalue().decode("utf-8", "replace").splitlines())
        rows = [(topic, doc, int(grade)) for topic, _, doc, grade in lines]
        result = _result(spec.location, version, sieve, removal.ids)
        return replace(result, qrels=pl.DataFrame(rows, schema=QREL_SCHEMA, orient="row"))
    out = Path(out)
    options = {"version_name": version, "removal": removal, "trust": trust, "rel": rel, **label_rules(judged)}
    with started("transfer clean", inputs, options, out, file=True) as job:
        with ExitStack() as stack:
            streams = [stack.enter_context(job.output(f"{out.name}{ending}")) for ending in ("", ".removed.tsv")]
            sieve.run(read_qrels(spec), *streams)
            result = replace(_result(spec.location, version, sieve, removal.ids), out=out)
        job.skipped = {"removed": dict(result.removed)}
    return result


class _Sieve:
    """Says of each judgment whether it stays, and counts."""

    def __init__(self, flags: dict[Key, Flagged], verdicts: Verdicts, trust: Trust, rel: int) -> None:
        self._flags = {} if trust == "labels-only" else flags
        self._verdicts = verdicts
        self.trust = trust
        self._rel = rel
        self._seen: set[Key] = set()
        self.relevant: dict[str, bool] = {}
        self.topics: dict[str, None] = {}
        self.read = self.kept = self.reprieved = 0
        self.removed: Counter[str] = Counter()
        self.tied = verdicts.tied

    def run(self, judgments: Iterator[Qrel], kept: IO[bytes], removed: IO[bytes]) -> None:
        """Goes over the judgments once."""
        removed.write(("\t".join(_REMOVED) + "\n").encode())
        for qrel in judgments:
            self.read += 1
            self.topics[qrel.topic_id] = None
            why, kind = self._why(qrel)
            if qrel.relevance >= self._rel:
                self.relevant[qrel.topic_id] = self.relevant.get(qrel.topic_id, False) or not why
            if not why:
                self.kept += 1
                kept.write(
                    f"{qrel.topic_id} {qrel.iteration} {qrel.doc_id} {qrel.relevance}\n".encode("utf-8", "replace")
                )
                continue
            self.removed[kind] += 1
            flag = self._flags.get((qrel.topic_id, qrel.doc_id))
            text = ("", "", "", "") if flag is None else (flag.better, f"{flag.difference:.6f}", *flag[2:])
            cells = (qrel.topic_id, qrel.doc_id, str(qrel.relevance), why, *text)
            removed.write(("\t".join(cell.translate(_BREAKS) for cell in cells) + "\n").encode("utf-8", "replace"))

    @property
    def not_found(self) -> int:
        """Flagged or broken judgments that were not there."""
        return len((set(self._flags) | set(self._verdicts.broken)) - self._seen)

    def _why(self, qrel: Qrel) -> tuple[str, str]:
        """Why a judgment goes, in full and as a class; two empty texts where it stays."""
        key = (qrel.topic_id, qrel.doc_id)
        flagged, broken = key in self._flags, key in self._verdicts.broken
        if flagged or broken:
            self._seen.add(key)
        if qrel.relevance < self._rel or not (flagged or broken):
            return "", ""
        if broken:
            return self._verdicts.broken[key], self._verdicts.broken[key]
        if key in self._verdicts.sound and self.trust != "either":
            self.reprieved += 1
            return "", ""
        return "flagged by the scan", f"flagged: {self._flags[key].reason}"


def _result(location: str, version: str, sieve: _Sieve, ids: Ids) -> JudgmentCleaning:
    if not sieve.kept:
        raise InputError("no judgment is left", "check `version_name` and `trust`", where=location)
    bare = [topic for topic, some in sieve.relevant.items() if not some]
    warnings = []
    if bare:
        warnings.append(f"No relevant document is left for topic {and_more(bare, _NAMED_FILES)}.")
    if sieve.not_found and not sieve.removed:
        other = "version" if ids == "judged" else "judged"
        broken = "None of what is broken is among the judgments"
        warnings.append(f"{broken}: do they name documents otherwise (--ids {other})?")
    if sieve.tied:
        warnings.append(f"{sieve.tied:,d} judged documents on which annotators are tied count as not judged.")
    return JudgmentCleaning(
        version=version,
        read=sieve.read,
        kept=sieve.kept,
        removed=dict(sorted(sieve.removed.items(), key=lambda item: (-item[1], item[0]))),
        reprieved=sieve.reprieved,
        tied=sieve.tied,
        not_found=sieve.not_found,
        topics={"read": len(sieve.topics), "without_relevant": len(bare)},
        trust=sieve.trust,
        warnings=tuple(warnings),
    )
