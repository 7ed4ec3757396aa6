"""Match: the judged documents of one version, found again in the others by URL, by id or by a mapping file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import among
from truerank.audits.transfer.matching.versions import (
    FOUND_SCHEMA,
    Matched,
    Version,
    VersionSources,
    read_mapping,
    read_versions,
    version_inputs,
)
from truerank.errors import OptionError
from truerank.options import Flag, Options, Out, command
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Document
from truerank.sources.distinct import text_hashes
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import read_qrels_frame
from truerank.text.urls import UrlRules, normalise_url
from truerank.work.blocks import BlockStore
from truerank.work.kept import is_whole
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

By = Literal["url", "id", "mapping"]

#: What is kept of a version: the documents that may be a judged one's.
_KEPT: Final[dict[str, Any]] = {"key": pl.String, "doc_id": pl.String, "url": pl.String}
_COUNTS: Final = ("documents", "without_url", "no_host", "shared_url")
#: Candidates that are listed of an ambiguous document.
_LISTED: Final = 20


@dataclass(frozen=True)
class MatchOptions(Options):
    """How a document is found again in another version.

    Attributes:
        match_by: the URL, the same id in every version, or a table of ids.
        mapping: with `match_by` mapping: a table of ids, one column per version.
        strict: treat bytes that are not UTF-8 as an error.
    """

    match_by: By = "url"
    mapping: Annotated[str | None, Flag(metavar="FILE")] = None
    strict: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.match_by == "mapping") != (self.mapping is not None):
            fault = "a mapping file goes with matching by mapping"
            raise OptionError("mapping", fault, "give both `match_by` mapping and `mapping`, or neither")


@command
def match(
    version: VersionSources,
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    *,
    matching: MatchOptions = MatchOptions(),
    urls: UrlRules = UrlRules(),
    out: Out = None,
    progress: Progress | None = None,
) -> Matched:
    """Finds the judged documents of one version of a collection in the others: matched, lost, ambiguous.

    Every version is read once, as a stream; only ids and 64-bit hashes are kept. If several documents have one URL, the
    only one that has it letter for letter is taken; otherwise the document is ambiguous. A run that was killed
    continues with the version that it was reading.

    Args:
        version: a version of the collection: a path, irds:ID or hf:ORG/NAME; the judged one first. In Python also a
            mapping of names to sources.
        qrels: the judgments; without them every document of the first version is looked for.
        matching: how a document is found again.
        urls: which differences between URLs count.
        out: a folder for matched.parquet (one row per judged document, a column of ids per version), pairs.parquet
            (what became of each document in each version, and why), lost.tsv, ambiguous.tsv and summary.json.
        progress: receives progress updates.

    Returns:
        The table of matched documents, and what became of each in each version.

    Raises:
        InputError: a source, the judgments or the mapping are at fault.

    Examples:

        truerank transfer match --version V1=docs-2018.jsonl --version V2=docs-2021.jsonl --qrels train.qrels
        --drop-tracking --out matched/

        truerank transfer match --version old=old.trec --version new=new.trec --match-by mapping --mapping ids.tsv
        --out matched/
    """
    opened = read_versions(version, strict=matching.strict)
    if out is None:
        return _matched(_reader(opened, qrels, matching, urls, progress or Quiet()))
    return matched_into(out, (opened, qrels), (matching, urls), progress or Quiet())


def matched_into(
    out: str | Path,
    given: tuple[tuple[Version, ...], str | None],
    how: tuple[MatchOptions, UrlRules],
    progress: Progress,
    texts: Texts | None = None,
) -> Matched:
    """Matches versions that are open, and writes what `match` writes."""
    (versions, qrels), (matching, urls) = given, how
    options = {"matching": matching, "urls": urls}
    inputs = inputs_of(qrels=qrels, mapping=matching.mapping)
    with started("transfer match", (*version_inputs(versions), *inputs), options, out) as job:
        reader = _reader(versions, qrels, matching, urls, progress)
        reader.store = BlockStore(job.unfinished(page="") if texts is None else texts.folder / "match")
        reader.texts = texts
        result = replace(_matched(reader), folder=job.folder)
        counts = {name: count["documents"] for name, count in result.counts.items()}
        job.inputs = [*version_inputs(versions, counts), *inputs]
        publish(result, job)
    return result


def _reader(
    versions: tuple[Version, ...], qrels: str | None, options: MatchOptions, urls: UrlRules, progress: Progress
) -> _VersionReader:
    """What reads the versions; nothing is read of them yet."""
    judged = None if qrels is None else read_qrels_frame(qrels)["doc_id"].unique(maintain_order=True)
    mapping = None if options.mapping is None else read_mapping(options.mapping, [one.name for one in versions])
    return _VersionReader(versions, judged, options.match_by, urls, mapping, progress)


@dataclass(frozen=True)
class Texts:
    """Texts that are kept while versions are read: a file of `DocumentTexts` in the folder for each version.

    They are those of the judged documents in all versions, or in all but the judged one (`but_first`).
    """

    folder: Path
    documents: frozenset[str]
    but_first: bool = False

    def path(self, number: int) -> Path | None:
        """The file of a version by its number; None where its texts are not kept."""
        return None if self.but_first and number == 0 else self.folder / f"texts-{number}.sqlite"


@dataclass
class _VersionReader:
    """Reads the versions one after another and keeps of each what the judged documents may be.

    With a store, what was read of each version is kept, so that a killed run need not read it again.
    """

    versions: tuple[Version, ...]
    judged: pl.Series | None
    by: By
    urls: UrlRules
    mapping: pl.DataFrame | None
    progress: Progress
    store: BlockStore | None = None
    texts: Texts | None = None

    def read(self, number: int, wanted: pl.Series | None, texts: frozenset[str]) -> tuple[pl.DataFrame, dict[str, int]]:
        """One version: the documents that are wanted, and the counts."""
        kept, store = None if self.texts is None else self.texts.path(number), self.store
        if store is not None and store.has(2 * number + 1) and (kept is None or is_whole(kept)):
            counts = store.load(2 * number + 1).row(0, named=True)
            return store.load(2 * number), {name: int(value) for name, value in counts.items()}
        with contextlib.ExitStack() as stack:
            add = None if kept is None else stack.enter_context(DocumentTexts.writing(kept))
            frame, counts = self._stream(number, wanted, None if add is None else (add, texts))
        if store is not None:
            store.save(2 * number, frame)
            store.save(2 * number + 1, pl.DataFrame([counts]))
        return frame, counts

    def _stream(
        self,
        number: int,
        wanted: pl.Series | None,
        keep: tuple[Callable[[Iterable[Document]], None], frozenset[str]] | None,
    ) -> tuple[pl.DataFrame, dict[str, int]]:
        version = self.versions[number]
        self.progress.start(f"reading {version.name}")
        by_url = self.by == "url"
        sieve = None if wanted is None else np.sort(text_hashes(wanted.to_list()))
        sift_ids = number == 0 or not by_url
        kept: list[pl.DataFrame] = [pl.DataFrame(schema=_KEPT)]
        hashes: list[NDArray[np.uint64]] = []
        counts = dict.fromkeys(_COUNTS, 0)
        for block in version.source.batches():
            ids = [document.doc_id for document in block]
            urls = [document.url for document in block]
            keys = [normalise_url(url, self.urls) if url else "" for url in urls] if by_url else ids
            counts["documents"] += len(block)
            if by_url:
                empty = sum(not url.strip() for url in urls)
                counts["without_url"] += empty
                counts["no_host"] += keys.count("") - empty
                hashes.append(text_hashes([key for key in keys if key]))
            if keep is not None:
                add, texts = keep
                known = ids if sift_ids else keys
                add(document for document, key in zip(block, known, strict=True) if key in texts)
            frame = pl.DataFrame([keys, ids, urls], schema=_KEPT, orient="col")
            kept.append(frame if sieve is None else frame.filter(_within(ids if sift_ids else keys, sieve)))
            self.progress.advance(len(block))
        if hashes:
            # Documents that have a URL that another one has too.
            several = np.unique(np.concatenate(hashes), return_counts=True)[1]
            counts["shared_url"] = int(several[several > 1].sum())
        frame = pl.concat(kept)
        if wanted is not None:
            # Hashes may collide.
            frame = frame.filter(pl.col("doc_id" if sift_ids else "key").is_in(wanted.implode()))
        return frame, counts


def _within(texts: list[str], sieve: NDArray[np.uint64]) -> pl.Series:
    return pl.Series(among(text_hashes(texts), sieve))


def _matched(reader: _VersionReader) -> Matched:
    """Reads the versions one after another, and says what became of each judged document."""
    versions, by = reader.versions, reader.by
    names = [version.name for version in versions]
    kept = frozenset[str]() if reader.texts is None else reader.texts.documents
    first, first_counts = reader.read(0, reader.judged, kept)
    first = first.unique("doc_id", keep="first", maintain_order=True)
    judged = first["doc_id"] if reader.judged is None else reader.judged
    base = pl.DataFrame({"doc_id": judged}).join(first, on="doc_id", how="left", maintain_order="left")
    base = base.with_columns(pl.col("doc_id").is_in(first["doc_id"].implode()).alias("present"))
    counts = {names[0]: first_counts}
    if by != "url":
        base = base.with_columns(pl.col("doc_id").alias("key"))
    pairs: list[pl.DataFrame] = []
    for number, name in enumerate(names[1:], start=1):
        links = _links(base, reader, names[0], name)
        wanted = links["key"].drop_nulls().unique(maintain_order=True)
        keys = links.filter(pl.col("doc_id").is_in(list(kept)))["key"].drop_nulls() if kept else ()
        found, counts[name] = reader.read(number, wanted, frozenset(keys))
        pairs.append(_pairs(base, links, found, _Names(names[0], name, counts[name], by)))
    frame = base.select(
        pl.col("key").fill_null(""), "doc_id", pl.when("present").then("doc_id").otherwise(None).alias(names[0])
    )
    frame = frame.with_columns(part["found"].alias(name) for name, part in zip(names[1:], pairs, strict=True))
    stacked = pl.concat(pairs)
    interleaved: NDArray[np.int64] = (np.arange(len(stacked)).reshape(len(pairs), -1).T).ravel()
    warnings = tuple(_warnings(versions, base, counts, by))
    return Matched(frame, stacked[interleaved].select(list(FOUND_SCHEMA)), tuple(names), by, counts, warnings)


def _links(base: pl.DataFrame, reader: _VersionReader, first: str, name: str) -> pl.DataFrame:
    """Judged document and the keys under which the version may hold it, null where there is none."""
    if reader.mapping is None:
        key = pl.when(pl.col("key") == "").then(None).otherwise("key") if reader.by == "url" else pl.col("key")
        return base.select("doc_id", key.alias("key"), "url")
    named = reader.mapping.select(pl.col(first).alias("doc_id"), pl.col(name).alias("key")).unique(maintain_order=True)
    return (
        base.select("doc_id")
        .join(named, on="doc_id", how="left", maintain_order="left_right")
        .with_columns(pl.lit(None, pl.String).alias("url"))
    )


class _Names(NamedTuple):
    """The judged version and another one, what was counted while that was read, and how documents are matched."""

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
    rows = rows.with_columns(pl.col("candidates").fill_null(0), mapped=pl.col("doc_id").is_in(mapped.implode()))
    one, none = pl.col("candidates") == 1, pl.col("candidates") == 0
    exact = (pl.col("candidates") > 1) & (pl.col("exacts") == 1)
    matched = pl.when(one | exact).then(pl.lit("matched"))
    rows = rows.with_columns(
        version=pl.lit(names.version),
        status=matched.when(none).then(pl.lit("lost")).otherwise(pl.lit("ambiguous")),
        found=pl.when(one).then("first").when(exact).then("exact").otherwise(None),
    )
    rows = rows.with_columns(taken=pl.col("found").is_not_null() & (pl.len().over("found") > 1))
    return rows.with_columns(
        pl.col("key").fill_null(""), pl.col("listed").fill_null(""), _reason(names, exact).alias("reason")
    ).select(list(FOUND_SCHEMA))


def _reason(names: _Names, exact: pl.Expr) -> pl.Expr:
    judged, version = names.judged, names.version
    what = {"url": "with this URL", "id": "with this id", "mapping": "that the mapping names"}
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
        .otherwise(pl.lit(f"no document {what[names.by]} in {version}"))
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
    versions: tuple[Version, ...], base: pl.DataFrame, counts: Mapping[str, Mapping[str, int]], by: By
) -> list[str]:
    found: list[str] = []
    absent = len(base) - int(base["present"].sum())
    if absent:
        found.append(f"{absent:,d} judged documents are not in {versions[0].name}.")
    if by != "url":
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
