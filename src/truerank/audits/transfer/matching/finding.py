"""Match: the judged documents of one version, found again in the others by URL, by id or by a mapping file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.transfer.matching.mapping_files import read_mapping
from truerank.audits.transfer.matching.versions import FOUND_SCHEMA, Matched, Version, read_versions
from truerank.audits.transfer.provenance import file_record, provenance, tsv
from truerank.errors import InputError
from truerank.sources.distinct import text_hashes
from truerank.sources.qrels import read_qrels_frame
from truerank.text.urls import UrlRules, normalise_url
from truerank.work.artifacts import Artifacts, digest, installed_versions
from truerank.work.blocks import BlockStore
from truerank.work.progress import Progress, Quiet

__all__ = ["MatchOptions", "match_versions"]

By = Literal["url", "id", "mapping"]

#: What is kept of a version: the documents that may be a judged one's.
_KEPT: Final[dict[str, Any]] = {"key": pl.String, "doc_id": pl.String, "url": pl.String}
_COUNTS: Final = ("documents", "without_url", "no_host", "shared_url")
#: Candidates that are listed of an ambiguous document.
_LISTED: Final = 20


@dataclass(frozen=True)
class MatchOptions:
    """How `match_versions` finds a document again.

    Args:
        by: "url", "id" (the same id in every version), or "mapping".
        urls: which differences between URLs count.
        mapping: the mapping file, with `by="mapping"`.
        strict: bytes that are not UTF-8 are an error.
    """

    by: By = "url"
    urls: UrlRules = field(default_factory=UrlRules)
    mapping: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.by not in ("url", "id", "mapping"):
            raise InputError(f"cannot match by '{self.by}'", "use url, id or mapping", where="--by")
        if (self.by == "mapping") != (self.mapping is not None):
            raise InputError("a mapping file goes with matching by mapping", "give both or neither", where="--mapping")


_DEFAULT: Final = MatchOptions()


def match_versions(
    versions: Mapping[str, str] | Sequence[str],
    qrels: str | None = None,
    out: str | Path | None = None,
    options: MatchOptions = _DEFAULT,
    *,
    progress: Progress | None = None,
) -> Matched:
    """Finds the judged documents of the first version in the others.

    Every version is read once, as a stream; ids and 64-bit hashes are what is held of it. Of several documents with
    one URL, the only one that has it letter for letter is taken; otherwise the document is ambiguous. A run that was
    killed goes on with the version that it was reading.

    Args:
        versions: sources of documents by name, or `NAME=SRC` each; the first is the one that was judged.
        qrels: the judgments; without them every document of the first version is looked for.
        out: the folder for `matched.parquet`, `pairs.parquet`, `lost.tsv`, `ambiguous.tsv`, `summary.json` and
            `manifest.json`; nothing is written without it.
        options: how a document is found again.
        progress: is told what is read.

    Returns:
        The table of matched documents, and what became of each in each version.

    Raises:
        InputError: a source, the judgments or the mapping are at fault.
    """
    progress = progress or Quiet()
    opened = read_versions(versions, strict=options.strict)
    artifacts = None if out is None else Artifacts(out)
    judged = None if qrels is None else read_qrels_frame(qrels)["doc_id"].unique(maintain_order=True)
    names = [version.name for version in opened]
    mapping = None if options.mapping is None else read_mapping(options.mapping, names)
    reader = _Reader(opened, judged, options, mapping, progress)
    if artifacts is not None:
        reader.keep_in(artifacts.work / f"match-{_identity(opened, judged, options)}")
    result = _matched(reader, opened, options)
    if artifacts is not None:
        result = _written(result, artifacts, opened, qrels, options)
        reader.forget()
        artifacts.tidy()
    return result


class _Reader:
    """Reads the versions one after another and keeps of each what the judged documents may be."""

    def __init__(
        self,
        versions: tuple[Version, ...],
        judged: pl.Series | None,
        options: MatchOptions,
        mapping: pl.DataFrame | None,
        progress: Progress,
    ) -> None:
        self.versions = versions
        self.judged = judged
        self.mapping = mapping
        self._options = options
        self._progress = progress
        self._store: BlockStore | None = None

    def keep_in(self, folder: Path) -> None:
        """Keeps what was read of each version, so that a killed run need not read it again."""
        self._store = BlockStore(folder)

    def forget(self) -> None:
        """Removes what `keep_in` kept."""
        if self._store is not None:
            self._store.remove()

    def read(self, number: int, wanted: pl.Series | None) -> tuple[pl.DataFrame, dict[str, int]]:
        """One version: the documents that are wanted, and the counts.

        Args:
            number: of the version.
            wanted: keys (URLs in one form, or ids) that are looked for; of the judged version always ids; None for all.

        Returns:
            A frame of key, id and URL, and the counts by `_COUNTS`.
        """
        if self._store is not None and self._store.has(2 * number + 1):
            counts = self._store.load(2 * number + 1).row(0, named=True)
            return self._store.load(2 * number), {name: int(value) for name, value in counts.items()}
        frame, counts = self._stream(number, wanted)
        if self._store is not None:
            self._store.save(2 * number, frame)
            self._store.save(2 * number + 1, pl.DataFrame([counts]))
        return frame, counts

    def _stream(self, number: int, wanted: pl.Series | None) -> tuple[pl.DataFrame, dict[str, int]]:
        version = self.versions[number]
        self._progress.start(f"reading {version.name}")
        by_url = self._options.by == "url"
        sieve = None if wanted is None else np.sort(text_hashes(wanted.to_list()))
        sift_ids = number == 0 or not by_url
        kept: list[pl.DataFrame] = [pl.DataFrame(schema=_KEPT)]
        hashes: list[NDArray[np.uint64]] = []
        counts = dict.fromkeys(_COUNTS, 0)
        for block in version.source.batches():
            ids = [document.doc_id for document in block]
            urls = [document.url for document in block]
            keys = [normalise_url(url, self._options.urls) if url else "" for url in urls] if by_url else ids
            counts["documents"] += len(block)
            if by_url:
                empty = sum(not url.strip() for url in urls)
                counts["without_url"] += empty
                counts["no_host"] += keys.count("") - empty
                hashes.append(text_hashes([key for key in keys if key]))
            frame = pl.DataFrame([keys, ids, urls], schema=_KEPT, orient="col")
            kept.append(frame if sieve is None else frame.filter(_within(ids if sift_ids else keys, sieve)))
            self._progress.advance(len(block))
        counts["shared_url"] = _shared(hashes)
        frame = pl.concat(kept)
        if wanted is not None:
            # Hashes may collide.
            frame = frame.filter(pl.col("doc_id" if sift_ids else "key").is_in(wanted.implode()))
        return frame, counts


def _within(texts: list[str], sieve: NDArray[np.uint64]) -> pl.Series:
    hashes = text_hashes(texts)
    if not len(sieve):
        return pl.Series(np.zeros(len(hashes), np.bool_))
    places = np.minimum(np.searchsorted(sieve, hashes), len(sieve) - 1)
    return pl.Series(sieve[places] == hashes)


def _shared(hashes: list[NDArray[np.uint64]]) -> int:
    """How many documents have a URL that another one has too."""
    if not hashes:
        return 0
    counts = np.unique(np.concatenate(hashes), return_counts=True)[1]
    return int(counts[counts > 1].sum())


def _matched(reader: _Reader, versions: tuple[Version, ...], options: MatchOptions) -> Matched:
    names = [version.name for version in versions]
    first, first_counts = reader.read(0, reader.judged)
    first = first.unique("doc_id", keep="first", maintain_order=True)
    judged = first["doc_id"] if reader.judged is None else reader.judged
    base = pl.DataFrame({"doc_id": judged}).join(first, on="doc_id", how="left", maintain_order="left")
    base = base.with_columns(pl.col("doc_id").is_in(first["doc_id"].implode()).alias("present"))
    counts = {names[0]: first_counts}
    if options.by != "url":
        base = base.with_columns(pl.col("doc_id").alias("key"))
    pairs: list[pl.DataFrame] = []
    for number, name in enumerate(names[1:], start=1):
        links = _links(base, reader.mapping, names[0], name, options)
        found, counts[name] = reader.read(number, links["key"].drop_nulls().unique(maintain_order=True))
        pairs.append(_pairs(base, links, found, _Names(names[0], name, counts[name], options.by)))
    frame = base.select(
        pl.col("key").fill_null(""), "doc_id", pl.when("present").then("doc_id").otherwise(None).alias(names[0])
    )
    frame = frame.with_columns(part["found"].alias(name) for name, part in zip(names[1:], pairs, strict=True))
    stacked = pl.concat(pairs)
    interleaved: NDArray[np.int64] = (np.arange(len(stacked)).reshape(len(pairs), -1).T).ravel()
    warnings = tuple(_warnings(versions, base, counts, options))
    return Matched(frame, stacked[interleaved].select(list(FOUND_SCHEMA)), tuple(names), options.by, counts, warnings)


def _links(
    base: pl.DataFrame, mapping: pl.DataFrame | None, first: str, name: str, options: MatchOptions
) -> pl.DataFrame:
    """Judged document and the keys under which the version may hold it, null where there is none."""
    if mapping is None:
        key = pl.when(pl.col("key") == "").then(None).otherwise("key") if options.by == "url" else pl.col("key")
        return base.select("doc_id", key.alias("key"), "url")
    named = mapping.select(pl.col(first).alias("doc_id"), pl.col(name).alias("key")).unique(maintain_order=True)
    return (
        base.select("doc_id")
        .join(named, on="doc_id", how="left", maintain_order="left_right")
        .with_columns(pl.lit(None, pl.String).alias("url"))
    )


@dataclass(frozen=True)
class _Names:
    judged: str
    version: str
    counts: Mapping[str, int]
    by: By


def _pairs(base: pl.DataFrame, links: pl.DataFrame, found: pl.DataFrame, names: _Names) -> pl.DataFrame:
    """What became of each judged document in one version, in the order of `base`."""
    held = found.rename({"doc_id": "candidate", "url": "candidate_url"}).unique(
        ["key", "candidate"], keep="first", maintain_order=True
    )
    joined = links.drop_nulls("key").join(held, on="key", how="inner", maintain_order="left_right")
    same = (pl.col("candidate_url") == pl.col("url")).fill_null(False) if names.by == "url" else pl.lit(False)
    joined = joined.with_columns(same.alias("same"))
    grouped = joined.group_by("doc_id", maintain_order=True).agg(
        pl.col("candidate").n_unique().cast(pl.UInt32).alias("candidates"),
        pl.col("candidate").first().alias("first"),
        pl.col("candidate").filter("same").first().alias("exact"),
        pl.col("candidate").filter("same").n_unique().alias("exacts"),
        pl.col("candidate").unique(maintain_order=True).head(_LISTED).str.join(" ").alias("listed"),
    )
    rows = base.select("doc_id", "key", "url", "present").join(grouped, on="doc_id", how="left", maintain_order="left")
    mapped = links.filter(pl.col("key").is_not_null())["doc_id"].unique()
    rows = rows.with_columns(
        pl.col("candidates").fill_null(0),
        pl.col("doc_id").is_in(mapped.implode()).alias("mapped"),
    )
    one = pl.col("candidates") == 1
    exact = (pl.col("candidates") > 1) & (pl.col("exacts") == 1)
    rows = rows.with_columns(
        pl.lit(names.version).alias("version"),
        pl.when(one | exact)
        .then(pl.lit("matched"))
        .when(pl.col("candidates") == 0)
        .then(pl.lit("lost"))
        .otherwise(pl.lit("ambiguous"))
        .alias("status"),
        pl.when(one).then("first").when(exact).then("exact").otherwise(None).alias("found"),
    )
    taken = pl.col("found").is_not_null() & (pl.len().over("found") > 1)
    rows = rows.with_columns(taken.alias("taken"))
    return rows.with_columns(
        pl.col("key").fill_null(""), pl.col("listed").fill_null(""), _reason(names, exact).alias("reason")
    ).select(list(FOUND_SCHEMA))


def _reason(names: _Names, exact: pl.Expr) -> pl.Expr:
    judged, version = names.judged, names.version
    what = {
        "url": "document with this URL",
        "id": "document with this id",
        "mapping": "document that the mapping names",
    }
    lost: Any = pl.when(pl.lit(names.by == "url") & ~pl.col("present")).then(
        pl.lit(f"not in {judged}, so that its URL is not known")
    )
    if names.by == "url":
        lost = lost.when(pl.col("url").str.strip_chars() == "").then(pl.lit(f"no URL in {judged}"))
        lost = lost.when(pl.col("key") == "").then(pl.lit(f"its URL in {judged} names no host"))
        if names.counts["documents"] == names.counts["without_url"]:
            lost = lost.when(pl.lit(True)).then(pl.lit(f"{version} has no URLs"))
    if names.by == "mapping":
        lost = lost.when(~pl.col("mapped")).then(pl.lit(f"the mapping names nothing in {version}"))
    gone = (
        lost.when(~pl.col("present"))
        .then(pl.lit(f"neither in {judged} nor in {version}"))
        .otherwise(pl.lit(f"no {what[names.by]} in {version}"))
    )
    several = pl.format(f"{{}} documents of {version}", "candidates")
    return (
        pl.when(pl.col("status") == "lost")
        .then(gone)
        .when(pl.col("status") == "ambiguous")
        .then(several)
        .when(exact)
        .then(pl.lit("of several documents, the only one with the URL letter for letter"))
        .when("taken")
        .then(pl.lit(f"shares its document of {version} with other judged documents"))
        .otherwise(pl.lit(""))
    )


def _warnings(
    versions: tuple[Version, ...], base: pl.DataFrame, counts: Mapping[str, Mapping[str, int]], options: MatchOptions
) -> list[str]:
    found: list[str] = []
    absent = len(base) - int(base["present"].sum())
    if absent:
        found.append(f"{absent:,d} judged documents are not in {versions[0].name}.")
    if options.by != "url":
        return found
    for version in versions:
        count = counts[version.name]
        if count["without_url"] == count["documents"]:
            found.append(f"No document of {version.name} has a URL: match by id, or give a mapping.")
        elif count["without_url"] + count["no_host"]:
            found.append(
                f"{version.name}: {count['without_url']:,d} documents have no URL, of {count['no_host']:,d} it names "
                "no host."
            )
        if count["shared_url"]:
            found.append(f"{version.name}: {count['shared_url']:,d} documents share their URL with another.")
    return found


def _written(
    result: Matched, artifacts: Artifacts, versions: tuple[Version, ...], qrels: str | None, options: MatchOptions
) -> Matched:
    artifacts.parquet("matched.parquet", result.frame)
    artifacts.parquet("pairs.parquet", result.pairs)
    for status, columns in (
        ("lost", ("doc_id", "key", "version", "reason")),
        ("ambiguous", ("doc_id", "key", "version", "candidates", "listed", "reason")),
    ):
        artifacts.text(f"{status}.tsv", "".join(tsv(result.pairs.filter(pl.col("status") == status).select(columns))))
    artifacts.json("summary.json", {**result.json(), "version_names": result.versions, "counts": result.counts})
    artifacts.manifest(
        provenance(
            "match",
            versions={
                version.name: {
                    "source": version.source.name,
                    "hash": version.source.fingerprint,
                    **result.counts[version.name],
                }
                for version in versions
            },
            qrels=None if qrels is None else file_record(qrels),
            options={
                "by": options.by,
                "urls": options.urls.json(),
                "mapping": None if options.mapping is None else file_record(options.mapping),
            },
            warnings=list(result.warnings),
            software=installed_versions("polars"),
        )
    )
    artifacts.log("match", out=str(artifacts.folder))
    return replace(result, folder=artifacts.folder)


def _identity(versions: tuple[Version, ...], judged: pl.Series | None, options: MatchOptions) -> str:
    content: dict[str, Any] = {
        "versions": [[version.name, version.source.fingerprint] for version in versions],
        "judged": None if judged is None else digest(judged.to_list()),
        "by": options.by,
        "urls": options.urls.json(),
        "mapping": None if options.mapping is None else file_record(options.mapping),
    }
    return digest(content)[:16]
