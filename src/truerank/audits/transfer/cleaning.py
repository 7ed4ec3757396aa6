"""Clean: the judgments that still hold, and what was removed and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal, get_args

from truerank.audits.outputs import refuse_overwrite, written
from truerank.audits.transfer.broken import By, Flag, Ids, Verdicts, flags_of, verdicts_of
from truerank.audits.transfer.provenance import file_record, provenance
from truerank.audits.transfer.scanning.results import Scan, load_scan
from truerank.errors import InputError
from truerank.judging.ratings import RatingSource
from truerank.judging.votes import Votes
from truerank.records import Qrel
from truerank.reports.tables import Column, Table
from truerank.sources import grammar
from truerank.sources.qrels import read_qrels
from truerank.work.artifacts import hash_file, write_text

__all__ = ["CleanOptions", "JudgmentCleaning", "clean_judgments"]

Policy = Literal["labels-first", "labels-only", "either"]

_POLICIES: Final[dict[str, str]] = {
    "labels-first": "what people judged follows them, the rest the scan",
    "labels-only": "only what people judged broken",
    "either": "what people judged broken, and everything that the scan flagged",
}
_REMOVED: Final = ("topic_id", "doc_id", "relevance", "why", "better", "difference", "reason", "evidence")
_BREAKS: Final = str.maketrans("\t\r\n", "   ")
#: Topics that are named in a sentence.
_NAMED: Final = 10


@dataclass(frozen=True)
class CleanOptions:
    """Which judgments are removed.

    Args:
        version: for whose documents judgments must hold; the scan's second version where not given.
        by: what must have named a candidate, see `broken.flags_of`.
        ids: whether the judgments name documents by the judged version's ids, or (carried ones) by the version's.
        reasons: only what was flagged for one of these reasons; all where empty.
        policy: how labels and scan are combined.
        relevant: judgments below this grade stay: that they are not relevant is not in question.
        include_models: count labels of models like those of people.
        votes: how one answer is made of several voices, see `judging.VOTES`.
    """

    version: str | None = None
    by: By = "max-or-texts"
    ids: Ids = "judged"
    reasons: tuple[str, ...] = ()
    policy: Policy = "labels-first"
    relevant: int = 1
    include_models: bool = False
    votes: Votes = "majority"

    def __post_init__(self) -> None:
        if self.policy not in _POLICIES:
            raise InputError(f"unknown policy '{self.policy}'", f"one of {', '.join(_POLICIES)}", where="--policy")
        if self.by not in get_args(By):
            raise InputError(f"no candidates by '{self.by}'", f"one of {', '.join(get_args(By))}", where="--by")
        if self.ids not in ("judged", "version"):
            raise InputError(f"no ids of '{self.ids}'", "one of judged, version", where="--ids")


@dataclass(frozen=True)
class JudgmentCleaning:
    """What `clean_judgments` did.

    Attributes:
        out: the cleaned judgments.
        removed_file: what was removed and why, one line per judgment.
        manifest_file: where it comes from.
        version: for whose documents judgments must hold.
        read: judgments read.
        kept: judgments written.
        removed: judgments left out, by why.
        reprieved: flagged judgments that people found sound.
        tied: judged documents on which annotators are tied; they count as not judged.
        not_found: flagged or broken judgments that the source does not hold.
        topics: topics read; those that had a relevant document and have none left.
        policy: how labels and scan were combined.
        warnings: what a user must know, one sentence each.
    """

    out: Path
    removed_file: Path
    manifest_file: Path
    version: str
    read: int
    kept: int
    removed: dict[str, int]
    reprieved: int
    tied: int
    not_found: int
    topics: dict[str, int]
    policy: Policy
    warnings: tuple[str, ...]

    def counts(self) -> dict[str, Any]:
        """The counts alone."""
        names = ("read", "kept", "removed", "reprieved", "tied", "not_found", "topics")
        return {name: getattr(self, name) for name in names}

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "out": str(self.out),
            "removed_file": str(self.removed_file),
            "manifest_file": str(self.manifest_file),
            "version": self.version,
            **self.counts(),
            "policy": self.policy,
            "warnings": list(self.warnings),
        }

    def table(self) -> Table:
        """The counts."""
        rows: list[tuple[str, str, int]] = [
            ("judgments read", "", self.read),
            ("removed", "", sum(self.removed.values())),
            *(("", why, number) for why, number in self.removed.items()),
            ("flagged, but judged sound", "", self.reprieved),
            ("judgments written", "", self.kept),
            ("not among the judgments", "", self.not_found),
            ("topics read", "", self.topics["read"]),
            ("topics whose relevant documents are all gone", "", self.topics["without_relevant"]),
        ]
        return Table(
            title=f"{self.out.name}: the judgments that still hold for {self.version}.",
            columns=(Column("what"), Column("of these, because"), Column("number", align="right", format=",d")),
            rows=tuple(rows),
            notes=(f"Removed: {_POLICIES[self.policy]}.", *self.warnings),
        )

    def text(self) -> str:
        """The counts for a terminal."""
        return self.table().text()


_DEFAULT: Final = CleanOptions()


def clean_judgments(
    qrels: str,
    out: str | Path,
    scan: Scan | str | Path | None = None,
    labels: RatingSource | None = None,
    options: CleanOptions = _DEFAULT,
) -> JudgmentCleaning:
    """Writes judgments again without those that no longer hold for a version of the documents.

    Judgments are streamed and keep their order. Beside the file stand `OUT.removed.tsv` and `OUT.manifest.json`.

    Args:
        qrels: the judgments.
        out: the file to write, TREC qrels; its name says the compression.
        scan: the scan whose candidates count as flagged, or its folder.
        labels: what people said of the documents' versions, by the scheme `transfer`.
        options: which judgments are removed.

    Returns:
        The counts.

    Raises:
        InputError: a source or option is at fault, nothing is left, or the output cannot be written.
    """
    out, spec = Path(out), grammar.parse(qrels)
    refuse_overwrite(spec.path if spec.scheme == "file" else None, out)
    if scan is None and labels is None:
        raise InputError("nothing says what is broken", "give --scan, --labels or both", where="transfer clean")
    if options.policy == "labels-only" and labels is None:
        raise InputError("the policy labels-only needs labels", "give --labels, or another --policy", where="--policy")
    opened = None if scan is None else scan if isinstance(scan, Scan) else load_scan(scan)
    version = options.version or ("V2" if opened is None else opened.versions[1])
    flags: dict[tuple[str, str], Flag] = {}
    if opened is not None:
        flags = flags_of(opened, version, options.by, options.ids, options.reasons)
    verdicts = Verdicts({}, frozenset(), 0)
    if labels is not None:
        verdicts = verdicts_of(
            labels, opened, version, options.ids, votes=options.votes, include_models=options.include_models
        )
    sieve = _Sieve(flags, verdicts, options)
    removed_file = out.with_name(f"{out.name}.removed.tsv")
    with written(out) as target, written(removed_file) as listed:
        with target.open() as kept, listed.open() as removed:
            sieve.run(read_qrels(spec), kept, removed)
        if not sieve.kept:
            raise InputError("no judgment is left", "check --version and --policy", where=spec.location)
        result = _result(out, removed_file, version, sieve, options)
        manifest = provenance(
            "clean",
            qrels=file_record(qrels),
            scan=_scan_record(scan),
            labels=None if labels is None else str(labels),
            options={**asdict(options), "version": version},
            counts=result.counts(),
            warnings=list(result.warnings),
            artifacts={out.name: hash_file(target.path), removed_file.name: hash_file(listed.path)},
        )
        write_text(result.manifest_file, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    return result


class _Sieve:
    """Says of each judgment whether it stays, and counts."""

    def __init__(self, flags: dict[tuple[str, str], Flag], verdicts: Verdicts, options: CleanOptions) -> None:
        self._flags = {} if options.policy == "labels-only" else flags
        self._verdicts = verdicts
        self._options = options
        self._seen: set[tuple[str, str]] = set()
        self._relevant: dict[str, bool] = {}
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
            if qrel.relevance >= self._options.relevant:
                self._relevant[qrel.topic_id] = self._relevant.get(qrel.topic_id, False) or not why
            if not why:
                self.kept += 1
                kept.write(
                    f"{qrel.topic_id} {qrel.iteration} {qrel.doc_id} {qrel.relevance}\n".encode("utf-8", "replace")
                )
                continue
            self.removed[kind] += 1
            flag = self._flags.get((qrel.topic_id, qrel.doc_id))
            told = ("", "", "", "") if flag is None else (flag.better, f"{flag.difference:.6f}", *flag[2:])
            cells = (qrel.topic_id, qrel.doc_id, str(qrel.relevance), why, *told)
            removed.write(("\t".join(cell.translate(_BREAKS) for cell in cells) + "\n").encode("utf-8", "replace"))

    @property
    def not_found(self) -> int:
        """Flagged or broken judgments that were not there."""
        return len((set(self._flags) | set(self._verdicts.broken)) - self._seen)

    @property
    def bare(self) -> list[str]:
        """Topics that had a relevant document and have none left."""
        return [topic for topic, some in self._relevant.items() if not some]

    def _why(self, qrel: Qrel) -> tuple[str, str]:
        """Why a judgment goes, in full and as a class; two empty texts where it stays."""
        key = (qrel.topic_id, qrel.doc_id)
        flagged, broken = key in self._flags, key in self._verdicts.broken
        if flagged or broken:
            self._seen.add(key)
        if qrel.relevance < self._options.relevant or not (flagged or broken):
            return "", ""
        if broken:
            return self._verdicts.broken[key], self._verdicts.broken[key]
        if key in self._verdicts.sound and self._options.policy != "either":
            self.reprieved += 1
            return "", ""
        return "flagged by the scan", f"flagged: {self._flags[key].reason}"


def _result(out: Path, removed_file: Path, version: str, sieve: _Sieve, options: CleanOptions) -> JudgmentCleaning:
    bare = sieve.bare
    return JudgmentCleaning(
        out=out,
        removed_file=removed_file,
        manifest_file=out.with_name(f"{out.name}.manifest.json"),
        version=version,
        read=sieve.read,
        kept=sieve.kept,
        removed=dict(sorted(sieve.removed.items(), key=lambda item: (-item[1], item[0]))),
        reprieved=sieve.reprieved,
        tied=sieve.tied,
        not_found=sieve.not_found,
        topics={"read": len(sieve.topics), "without_relevant": len(bare)},
        policy=options.policy,
        warnings=tuple(_warnings(sieve, bare, options)),
    )


def _warnings(sieve: _Sieve, bare: list[str], options: CleanOptions) -> Iterator[str]:
    if bare:
        more = f" and {len(bare) - _NAMED:,d} more" if len(bare) > _NAMED else ""
        yield f"No relevant document is left for topic {', '.join(bare[:_NAMED])}{more}."
    if sieve.not_found and not sieve.removed:
        other = "version" if options.ids == "judged" else "judged"
        yield f"None of what is broken is among the judgments: do they name documents otherwise (--ids {other})?"
    if sieve.tied:
        yield f"{sieve.tied:,d} judged documents on which annotators are tied count as not judged."


def _scan_record(scan: Scan | str | Path | None) -> dict[str, str] | None:
    folder = scan.folder if isinstance(scan, Scan) else None if scan is None else Path(scan)
    if folder is None:
        return None
    return {"name": folder.name, "candidates": hash_file(folder / "candidates.parquet")}
