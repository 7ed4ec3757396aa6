"""Select: training rows in which a strategy decides which version is learnt from, and the negatives of each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.transfer.matching.versions import Version, VersionSources, read_versions, version_inputs
from truerank.audits.transfer.scanning.options import AGGREGATIONS, Aggregation
from truerank.audits.transfer.scanning.results import Scan, ScanFolder, load_scan, scan_inputs
from truerank.core.plain import plain
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.lexical import TopicQuery, analyser_of, kept_index, model_of, search
from truerank.loading import json_file
from truerank.options import Flag, Options, Range, Seed, command
from truerank.rankers.base import Pair
from truerank.rankers.bm25 import Bm25
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.runs import read_run_frame
from truerank.text.passages import Policy, joined, policy_named
from truerank.work.blocks import BlockStore
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import Run
from truerank.work.runs import run as started


@dataclass(frozen=True)
class NegativeSource(Options):
    """Where non-relevant documents come from.

    Attributes:
        run: a first stage; by default BM25 searches.
        depth: how many of its documents are candidates for each topic.
        negatives: the version they are taken from; by default the judged one.
        qrels: all judgments, so that no document judged relevant is taken; by default those of the scan.
    """

    run: Annotated[str | None, Flag(metavar="FILE")] = None
    depth: Annotated[int, Range(at_least=1)] = 100
    negatives: Annotated[str | None, Flag(metavar="NAME")] = None
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None


class Negatives:
    """Non-relevant documents of a version: of a first stage's best, not judged relevant, drawn by the seed."""

    def __init__(
        self, scan: Scan, sources: tuple[Version, ...], options: NegativeSource, folder: Path, progress: Progress
    ) -> None:
        self._scan, self._options, self._progress = scan, options, progress
        name = options.negatives or scan.versions[0]
        by_name = {version.name: version for version in sources}
        if name not in by_name:
            raise OptionError("negatives", f"no version '{name}'", f"there are {', '.join(by_name)}")
        self.version, self._index = by_name[name], folder / f"index-{name}"
        self._by_topic: dict[str, list[tuple[str, int]]] | None = None

    def bm25(self) -> Bm25:
        """BM25 over the version."""
        return Bm25.open(str(self._index))

    def draw(self, rows: pl.DataFrame, seed: int) -> pl.DataFrame:
        """The rows with columns nonrelevant_id and place (in the first stage), without those that have none.

        The first stage is searched once: other draws have the same topics.
        """
        kept_index(self.version.source.spec.spec, self._index, analyser_of("anserini"), self._progress)
        if self._by_topic is None:
            self._by_topic = {
                str(key[0]): list(zip(part["doc_id"].to_list(), part["place"].to_list(), strict=True))
                for key, part in self._pool(rows).group_by("topic_id", maintain_order=True)
            }
        by_topic = self._by_topic
        draw = np.random.default_rng([seed, 1])
        found: list[tuple[str | None, int | None]] = []
        for topic in rows["topic_id"].to_list():
            # Drawn also where there is none, so that the others do not depend on it.
            number = draw.random()
            own = by_topic.get(topic)
            found.append(own[int(number * len(own))] if own else (None, None))
        drawn = rows.with_columns(
            pl.Series("nonrelevant_id", [doc for doc, _ in found], pl.String),
            pl.Series("place", [place for _, place in found], pl.Int64),
        )
        return drawn.drop_nulls("nonrelevant_id")

    def _pool(self, rows: pl.DataFrame) -> pl.DataFrame:
        topics = rows.unique("topic_id", maintain_order=True)
        if self._options.run is None:
            asked = sorted(TopicQuery(*row) for row in topics.select("topic_id", "query").iter_rows())
            model = model_of("anserini", "bm25", {})
            run = search(self._index, asked, model, k=self._options.depth, progress=self._progress).run
        else:
            run = read_run_frame(self._options.run).join(topics, on="topic_id", how="semi", maintain_order="left")
        run = run.sort("topic_id", "score", "doc_id", descending=[False, True, False])
        run = run.with_columns(pl.int_range(1, pl.len() + 1).over("topic_id").alias("place"))
        run = run.filter(pl.col("place") <= self._options.depth)
        return run.join(self._relevant(), on=["topic_id", "doc_id"], how="anti", maintain_order="left").select(
            "topic_id", "doc_id", pl.col("place").cast(pl.Int64)
        )

    def _relevant(self) -> pl.DataFrame:
        """What is judged relevant, by the ids of the version that negatives are taken from."""
        own = self._scan.scores.filter(pl.col("version") == self.version.name)
        known = own.select("topic_id", pl.col("version_doc_id").alias("doc_id"))
        if self._options.qrels is None:
            return known.unique()
        judged = read_qrels_frame(self._options.qrels).filter(pl.col("relevance") > 0)
        ids = own.select(pl.col("doc_id").alias("judged"), "version_doc_id").unique()
        named = judged.join(ids, left_on="doc_id", right_on="judged", how="left")
        doc_id = pl.coalesce("version_doc_id", "doc_id").alias("doc_id")
        return pl.concat([known, named.select("topic_id", doc_id)]).unique()


Lacking = Literal["available", "judged", "skip"]
Part = Literal["whole", "first", "best"]

#: The strategies besides `version:NAME`, and what the paper calls them.
STRATEGIES: Final[Mapping[str, str]] = {"max": "T5_max", "min": "T5_min", "bm25": "BM25", "random": "random"}
#: The columns of the tables: those of a training instance, the strategy, and the version that it chose (a name that
#: `instances build --kind by-version` does not take for the strategy's).
ROW_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "number: Int64, strategy chosen topic_id query_id query relevant_id relevant nonrelevant_id nonrelevant "
    "origin: String"
)
_BLOCK: Final = 500
_PACKAGES: Final = ("PyStemmer",)


@dataclass(frozen=True)
class SelectOptions(Options):
    """Which rows are written.

    Attributes:
        strategy: max and min (the version with the highest and the lowest score of the scan), bm25 (the highest BM25),
            random, or version:NAME; each gets a table of the same queries and non-relevant documents.
        data_set: whose documents are taken, such as 'V1>>V2 MaxP'; by default all that were compared.
        passages: which passages' scores max and min compare; by default those of the data set, or max.
        size: training instances, that is pairs of a query and a document (a row is two); by default all there are.
        lacking: if a version lacks the document: available decides between those that have it
            (version:NAME takes the first that does), judged takes the judged version, skip leaves it out.
        part: what is learnt from of a document: the whole, its first passage, or its best one (by the scan of the
            relevant document, by BM25 of the other).
    """

    strategy: Annotated[tuple[str, ...], Flag(metavar="NAME", reads=list[str])] = ("max", "min", "bm25", "random")
    data_set: Annotated[str | None, Flag(metavar="NAME")] = None
    passages: Aggregation | None = None
    size: Annotated[int | None, Range(at_least=2)] = None
    lacking: Lacking = "available"
    part: Part = "whole"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.strategy:
            if name not in STRATEGIES and not (name.startswith("version:") and len(name) > len("version:")):
                raise OptionError(
                    "strategy", f"no strategy '{name}'", f"choose {', '.join(STRATEGIES)} or version:NAME"
                )
        if not self.strategy or len(set(self.strategy)) < len(self.strategy):
            raise OptionError("strategy", "give at least one strategy, and each only once", "name each once")
        if self.size is not None and self.size % 2:
            fault = f"{self.size} instances make no whole rows"
            raise OptionError("size", fault, "give an even number: a row is a query with two documents")


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Result, shown_in="truerank.audits.transfer.report"):
    """What was written.

    Attributes:
        folder: where the tables lie, one `STRATEGY.parquet` each; with several draws, the folder of their folders.
        rows: in each table.
        wanted: rows that were asked for.
        chosen: by strategy, how often each version was chosen, over all draws.
        fallbacks: by strategy, how often the rule for missing versions decided, over all draws.
        skipped: documents that were not used, and why.
        seeds: of several draws; empty for one draw in the folder itself.
    """

    folder: Path
    rows: int
    wanted: int | None
    chosen: Mapping[str, Mapping[str, int]]
    fallbacks: Mapping[str, int]
    skipped: Mapping[str, int]
    seeds: tuple[int, ...] = ()

    def json(self) -> dict[str, Any]:
        """Plain values."""
        counts = plain(self, "wanted", "seeds")
        start = {name: counts.pop(name) for name in ("folder", "rows")}
        return {**start, "instances": 2 * self.rows, **counts, **({"seeds": list(self.seeds)} if self.seeds else {})}


@command
def select(
    scan: ScanFolder,
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    *,
    options: SelectOptions = SelectOptions(),
    first_stage: NegativeSource = NegativeSource(),
    version: VersionSources = (),
    seed: Seed = 0,
    seeds: Annotated[int | None, Range(at_least=1)] = None,
    progress: Progress | None = None,
) -> Selection:
    """Writes training rows; a strategy decides which version of each relevant document is used.

    All tables have the same queries in the same order with the same non-relevant documents, so that rankers trained
    on them differ by the version of the relevant documents alone. A row is relevant and non-relevant document of one
    query, which training passes on together.

    Args:
        scan: the folder that `transfer scan` wrote. In Python also what it returned.
        out: a folder for a table STRATEGY.parquet of each strategy, for `instances build --kind by-version`, `train`
            and `experiment run`.
        options: which rows.
        first_stage: where non-relevant documents come from.
        version: the versions, where they have moved since the scan. In Python also a mapping of names to sources.
        seed: of all choices.
        seeds: draws with so many seeds, from `seed` on, in folders seed-N; by default one draw in the folder itself.
        progress: receives progress updates.

    Returns:
        What was written.

    Raises:
        InputError: an unknown set, strategy or version; a source that is not there; nothing to select from.

    Examples:

        truerank transfer select scan/ --data-set 'V1>>V2 MaxP' --strategy max --strategy min --strategy bm25
        --size 20000 --out selected/

        truerank transfer select scan/ --size 20000 --part best --seeds 5 --out selected/best

    Source: the transfer paper, section 6.
    """
    progress = progress or Quiet()
    opened = scan if isinstance(scan, Scan) else load_scan(scan)
    sources = read_versions(version or _sources(opened))
    if (names := tuple(one.name for one in sources)) != opened.versions:
        fault = f"the scan has the versions {', '.join(opened.versions)}, not {', '.join(names)}"
        raise OptionError("version", fault, "give the same in the same order")
    inputs = (
        *scan_inputs(opened, "scores"),
        *version_inputs(sources),
        *inputs_of(run=first_stage.run, qrels=first_stage.qrels),
    )
    how = {"options": options, "first_stage": first_stage, "seed": seed}
    several = {} if seeds is None else {"seeds": seeds}
    with started("transfer select", inputs, how | several, out, packages=_PACKAGES) as job:
        negatives = Negatives(opened, sources, first_stage, job.work / "first-stage", progress)
        if seeds is None:
            return _drawn(sources, _Wanted(opened, options, seed), negatives, job, progress)
        draws = []
        for one in range(seed, seed + seeds):
            place = job.folder / f"seed-{one}"
            with started("transfer select", inputs, how | {"seed": one}, place, packages=_PACKAGES) as part:
                draws.append(_drawn(sources, _Wanted(opened, options, one), negatives, part, progress))
            for strategy in options.strategy:
                job.note(f"{place.name}/{file_of(strategy)}")
        # They have the same number of rows, since only chance tells them apart.
        chosen = {
            name: dict(sum((Counter(part.chosen[name]) for part in draws), Counter())) for name in options.strategy
        }
        fallbacks = {name: sum(part.fallbacks[name] for part in draws) for name in options.strategy}
        every = tuple(range(seed, seed + seeds))
        found = replace(draws[0], folder=job.folder, chosen=chosen, fallbacks=fallbacks, seeds=every)
        publish(found, job)
        return found


def _drawn(
    sources: tuple[Version, ...], wanted: _Wanted, negatives: Negatives, job: Run, progress: Progress
) -> Selection:
    """Writes the tables of one draw."""
    options, folder, skipped = wanted.options, job.work / "select", dict(wanted.skipped)
    rows = negatives.draw(wanted.rows, wanted.seed)
    if lacking := len(wanted.rows) - len(rows):
        skipped["the first stage has no non-relevant document"] = lacking
    size = None if options.size is None else options.size // 2
    rows = rows if size is None else rows.head(size)
    if rows.is_empty():
        place = str(wanted.scan.folder or "scan")
        raise InputError("no row is left", "choose another `data_set` or `lacking`", where=place)
    texts = _texts(sources, rows, negatives.version, folder, progress)
    writer = _Writer(wanted, rows, texts, negatives)
    chosen: dict[str, dict[str, int]] = {}
    fallbacks: dict[str, int] = {}
    for strategy in options.strategy:
        counts, fallbacks[strategy] = writer.write(strategy, job, folder)
        chosen[strategy] = {name: counts[name] for name in wanted.scan.versions if name in counts}
    selection = Selection(job.folder, len(rows), size, chosen, fallbacks, skipped)
    publish(selection, job)
    return selection


def _sources(scan: Scan) -> dict[str, str]:
    """The sources that the scan's manifest names."""
    try:
        manifest = json_file((scan.folder or Path()) / "manifest.json")
        return {one["name"]: one["source"] for one in manifest["inputs"] if one["role"] == "version"}
    except (InputError, KeyError, TypeError) as error:
        fault = "the manifest does not say where the versions are"
        raise InputError(fault, "name them with `version`", where=scan.folder or "scan") from error


class _Wanted:
    """The judged documents to select from, in the order of the seed, with ids and scores by version.

    Attributes:
        rows: columns topic_id, query, doc_id, and for each version its id, score and best passage.
        skipped: documents left out, and why.
    """

    def __init__(self, scan: Scan, options: SelectOptions, seed: int) -> None:
        self.scan, self.options, self.seed = scan, options, seed
        self.skipped: dict[str, int] = {}
        for strategy in options.strategy:
            name = strategy.removeprefix("version:")
            if strategy not in STRATEGIES and name not in scan.versions:
                raise OptionError("strategy", f"no version '{name}'", f"there are {', '.join(scan.versions)}")
        scores = scan.scores
        aggregation: str = options.passages or "max"
        if options.data_set is not None:
            inside = scan.sets.filter(pl.col("set") == options.data_set)
            if options.data_set not in scan.summary["sets"] or inside.is_empty():
                filled = [name for name, one in scan.summary["sets"].items() if one["documents"]]
                fault = f"no data set '{options.data_set}', or nothing in it"
                raise OptionError("data_set", fault, f"there are {', '.join(filled) or 'none'}")
            scores = scores.join(inside, on=["topic_id", "doc_id"], how="semi", maintain_order="left")
            named = inside["aggregation"][0]
            aggregation = options.passages or (named if named in AGGREGATIONS else "max")
        columns = {"id": "version_doc_id", "score": f"{aggregation}_score", "best": "best"}
        wide = scores.group_by("row", maintain_order=True).agg(
            *(pl.col(name).first() for name in ("topic_id", "query", "doc_id")),
            *(
                pl.col(column).filter(pl.col("version") == name).first().alias(f"{kind}:{name}")
                for name in scan.versions
                for kind, column in columns.items()
            ),
        )
        if options.lacking == "skip":
            before = len(wide)
            wide = wide.drop_nulls([f"id:{name}" for name in scan.versions])
            if before > len(wide):
                self.skipped["a version lacks the document"] = before - len(wide)
        self.rows = wide[np.random.default_rng(seed).permutation(len(wide))]


def _texts(
    sources: tuple[Version, ...], rows: pl.DataFrame, negatives: Version, folder: Path, progress: Progress
) -> dict[str, DocumentTexts]:
    found: dict[str, DocumentTexts] = {}
    for number, version in enumerate(sources):
        wanted = set(rows[f"id:{version.name}"].drop_nulls().to_list())
        if version.name == negatives.name:
            wanted |= set(rows["nonrelevant_id"].to_list())
        path = folder / f"texts-{number}.sqlite"
        path.unlink(missing_ok=True)
        DocumentTexts.collect(path, version.source.spec.spec, frozenset(wanted), progress)
        found[version.name] = DocumentTexts(path)
    return found


class _Writer:
    """Writes one table for each strategy."""

    def __init__(
        self, wanted: _Wanted, rows: pl.DataFrame, texts: Mapping[str, DocumentTexts], negatives: Negatives
    ) -> None:
        self._wanted, self._rows, self._texts = wanted, rows, texts
        self._bm25, self._version = negatives.bm25(), negatives.version.name
        self._names = wanted.scan.versions
        self._policy: Policy = policy_named(wanted.scan.summary["policy"])

    def write(self, strategy: str, job: Run, folder: Path) -> tuple[Counter[str], int]:
        """Writes `STRATEGY.parquet`; returns how often each version was chosen, and how often by rule."""
        store = BlockStore(folder / "rows")
        chosen: Counter[str] = Counter()
        ruled, number = 0, -1
        draw = np.random.default_rng([self._wanted.seed, 2])
        for number, part in enumerate(self._rows.iter_slices(_BLOCK)):
            rows = list(part.iter_rows(named=True))
            picks = [self._pick(strategy, row, draw) for row in rows]
            chosen.update(name for name, _ in picks)
            ruled += sum(by_rule for _, by_rule in picks)
            values = list(self._values(strategy, rows, [name for name, _ in picks], number * _BLOCK))
            store.save(number, pl.DataFrame(values, schema=ROW_SCHEMA, orient="row"))
        files = [store.folder / f"{place:08d}.arrow" for place in range(number + 1)]
        job.lazy_parquet(file_of(strategy), pl.scan_ipc(files, glob=False), _BLOCK)
        store.remove()
        return chosen, ruled

    def _pick(self, strategy: str, row: Mapping[str, Any], draw: np.random.Generator) -> tuple[str, bool]:
        """The version that a strategy takes, and whether only the rule for missing ones could say it."""
        there = [name for name in self._names if row[f"id:{name}"] is not None]
        number = draw.random()
        incomplete = len(there) < len(self._names)
        named = strategy.removeprefix("version:") if strategy not in STRATEGIES else ""
        if named and named in there:
            return named, False
        judged = self._names[0] in there and self._wanted.options.lacking == "judged"
        if incomplete and judged:
            return self._names[0], True
        if named:
            return there[0], True
        if strategy == "random":
            return there[int(number * len(there))], incomplete
        if strategy == "bm25":
            texts = (self._texts[name].texts([row[f"id:{name}"]])[row[f"id:{name}"]] for name in there)
            values = list(self._bm25.score([Pair(row["query"], joined(*text)) for text in texts]))
        else:
            sign = 1.0 if strategy == "max" else -1.0
            values = [sign * row[f"score:{name}"] for name in there]
        return there[int(np.argmax(values))], incomplete

    def _values(
        self, strategy: str, rows: Sequence[Mapping[str, Any]], picks: Sequence[str], start: int
    ) -> Iterator[tuple[Any, ...]]:
        picked = list(zip(rows, picks, strict=True))
        held = {
            name: self._texts[name].texts([row[f"id:{name}"] for row, pick in picked if pick == name])
            for name in set(picks)
        }
        others = self._texts[self._version].texts([row["nonrelevant_id"] for row in rows])
        for place, (row, name) in enumerate(picked):
            relevant_id, other_id = row[f"id:{name}"], row["nonrelevant_id"]
            relevant = self._part(held[name][relevant_id], int(row[f"best:{name}"]))
            other = self._part(others.get(other_id, ("", "")), row["query"])
            origin = f"{name} by {strategy}; first-stage rank {row['place']} of {self._version}"
            yield (
                start + place, strategy, name, None, row["topic_id"], row["query"], relevant_id, relevant, other_id,
                other, origin,
            )  # fmt: skip

    def _part(self, text: tuple[str, str], best: int | str) -> str:
        """What is learnt from of a document; `best` is the place of its best passage, or the query that says it."""
        part, whole = self._wanted.options.part, joined(*text)
        if part == "whole":
            return whole
        passages = self._policy.cut(whole)
        if part == "first":
            return next(passages)
        listed = list(passages)
        if isinstance(best, str):
            best = int(np.argmax(self._bm25.score([Pair(best, passage) for passage in listed])))
        return listed[best]


def file_of(strategy: str) -> str:
    """The name of a strategy's table."""
    plain = "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in strategy)
    return f"{plain}.parquet"
