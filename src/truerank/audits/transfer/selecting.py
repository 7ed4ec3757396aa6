"""Select: training rows in which a strategy decides which version of the relevant document is learnt from."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.audits.transfer.matching.versions import Version, read_versions
from truerank.audits.transfer.provenance import file_record, provenance
from truerank.audits.transfer.scanning.options import AGGREGATIONS, Aggregation
from truerank.audits.transfer.scanning.results import Scan, load_scan
from truerank.errors import InputError
from truerank.lexical import TopicQuery, analyser_of, build_index, model_of, search
from truerank.rankers.base import Pair
from truerank.rankers.bm25 import Bm25
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.reports.tables import Column, Table
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.runs import read_run_frame
from truerank.text.passages import Policy, joined, policy_named
from truerank.work.artifacts import Artifacts, hash_file, installed_versions
from truerank.work.blocks import BlockStore
from truerank.work.progress import Progress, Quiet

__all__ = ["ROW_SCHEMA", "STRATEGIES", "SelectOptions", "Selection", "select_instances"]

Missing = Literal["available", "judged", "skip"]
Part = Literal["whole", "first", "best"]

#: The strategies besides `version:NAME`, and what the paper calls them.
STRATEGIES: Final[Mapping[str, str]] = {"max": "T5_max", "min": "T5_min", "bm25": "BM25", "random": "random"}
#: The columns of the tables: those of a training instance, the strategy, and the version that it chose (a name that
#: `instances build --kind by-version` does not take for the strategy's).
ROW_SCHEMA: Final[dict[str, Any]] = {
    "number": pl.Int64,
    "strategy": pl.String,
    "chosen": pl.String,
    "topic_id": pl.String,
    "query_id": pl.String,
    "query": pl.String,
    "relevant_id": pl.String,
    "relevant": pl.String,
    "nonrelevant_id": pl.String,
    "nonrelevant": pl.String,
    "origin": pl.String,
}
_BLOCK: Final = 500
_DEPTH: Final = 100
_PACKAGES: Final = ("truerank", "numpy", "polars", "PyStemmer")


@dataclass(frozen=True)
class SelectOptions:
    """What `select_instances` writes.

    Args:
        strategies: "max" and "min" (the version with the highest and the lowest score of the scan), "bm25" (the
            highest BM25), "random", "version:NAME"; each gets a table of the same queries and non-relevant documents.
        data_set: whose documents are taken, such as "V1>>V2 MaxP"; None for all that were compared.
        aggregation: whose scores "max" and "min" compare; None for that of the data set, or "max".
        size: training instances (pairs of a query and a document; a row is two); None for all there are.
        missing: where a version lacks the document: "available" decides between those that have it (version:NAME
            takes the first that does), "judged" takes the judged version, "skip" leaves such documents out.
        part: what is learnt from of a document: "whole"; its "first" passage; or the "best" one, by the scan of the
            relevant document, by BM25 of the other.
        run: the first stage that non-relevant documents come from; None searches with BM25.
        negatives: the version that non-relevant documents are taken from; None for the judged one.
        depth: of the first stage.
        qrels: all judgments, so that no document judged relevant is taken for a non-relevant one; None for those of
            the scan.
        seed: of all choices.
        draws: so many draws, with the seeds from `seed` on, each in a folder `seed-N` of its own; None for one draw in
            the folder itself.
    """

    strategies: tuple[str, ...] = ("max", "min", "bm25", "random")
    data_set: str | None = None
    aggregation: Aggregation | None = None
    size: int | None = None
    missing: Missing = "available"
    part: Part = "whole"
    run: str | None = None
    negatives: str | None = None
    depth: int = _DEPTH
    qrels: str | None = None
    seed: int = 0
    draws: int | None = None

    def __post_init__(self) -> None:
        for name in self.strategies:
            if name not in STRATEGIES and not (name.startswith("version:") and len(name) > len("version:")):
                fault = f"no strategy '{name}'"
                raise InputError(fault, f"choose {', '.join(STRATEGIES)} or version:NAME", where="--strategy")
        if not self.strategies or len(set(self.strategies)) < len(self.strategies):
            raise InputError("strategies are missing or stand twice", "name each once", where="--strategy")
        if self.size is not None and (self.size < 2 or self.size % 2):
            fault = f"{self.size} instances make no whole rows"
            raise InputError(fault, "give an even number: a row is a query with two documents", where="--size")
        if self.missing not in ("available", "judged", "skip"):
            raise InputError(f"no rule '{self.missing}'", "choose available, judged or skip", where="--missing")
        if self.part not in ("whole", "first", "best"):
            raise InputError(f"no part '{self.part}'", "choose whole, first or best", where="--part")
        if self.depth < 1:
            raise InputError(f"the depth is {self.depth}", "give 1 or more", where="--depth")
        if self.draws is not None and self.draws < 1:
            raise InputError(f"{self.draws} draws", "give 1 or more, or leave it out", where="--draws")


@dataclass(frozen=True)
class Selection:
    """What was written.

    Attributes:
        folder: where the tables lie, one `STRATEGY.parquet` each; with several draws, the folder of their folders.
        rows: in each table.
        wanted: rows that were asked for.
        chosen: by strategy, how often each version was chosen, over all draws.
        fallbacks: by strategy, how often the rule for missing versions decided, over all draws.
        skipped: documents that were not used, and why.
        settings: the options.
        seeds: of several draws; empty for one draw in the folder itself.
    """

    folder: Path
    rows: int
    wanted: int | None
    chosen: Mapping[str, Mapping[str, int]]
    fallbacks: Mapping[str, int]
    skipped: Mapping[str, int]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()

    def table(self) -> Table:
        """Which versions each strategy chose."""
        versions = list(dict.fromkeys(name for counts in self.chosen.values() for name in counts))
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        notes = [f"Not used: {count:,d}: {reason}." for reason, count in self.skipped.items()]
        if self.wanted is not None and self.wanted > self.rows:
            notes.append(f"There are fewer rows than the {self.wanted:,d} that were asked for.")
        each = "for each strategy"
        if self.seeds:
            each += f" and each of {len(self.seeds)} draws (seeds {self.seeds[0]} to {self.seeds[-1]})"
        return Table(
            f"{self.rows:,d} training rows ({2 * self.rows:,d} instances) {each}, by chosen version.",
            (Column("strategy"), *(Column(name, **number) for name in versions), Column("by rule", **number)),
            tuple(
                (name, *(counts.get(version, 0) for version in versions), self.fallbacks[name])
                for name, counts in self.chosen.items()
            ),
            (*notes, "By rule: a version lacks the document."),
        )

    def json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "folder": str(self.folder),
            "rows": self.rows,
            "instances": 2 * self.rows,
            "chosen": {name: dict(counts) for name, counts in self.chosen.items()},
            "fallbacks": dict(self.fallbacks),
            "skipped": dict(self.skipped),
            "settings": dict(self.settings),
            **({"seeds": list(self.seeds)} if self.seeds else {}),
        }

    def text(self) -> str:
        """The table for a terminal."""
        return self.table().text(100)


_DEFAULT: Final = SelectOptions()


def select_instances(
    scan: Scan | str | Path,
    out: str | Path,
    options: SelectOptions = _DEFAULT,
    *,
    versions: Mapping[str, str] | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Selection:
    """Writes training rows for each strategy.

    All tables have the same queries in the same order with the same non-relevant documents, so that rankers trained
    on them differ by the version of the relevant documents alone. A row is relevant and non-relevant document of one
    query, which training passes on together.

    Args:
        scan: the folder that `scan_versions` wrote, or what it returned.
        out: the folder for the tables and the manifest.
        options: which rows.
        versions: the sources of the versions; None for those that the scan's manifest names.
        progress: is told what happens.

    Returns:
        What was written; `STRATEGY.parquet` is a table for `instances build --kind by-version` and for `train`.

    Raises:
        InputError: an unknown set, strategy or version; a source that is not there; nothing to select from.

    Source: the transfer paper, section 6.
    """
    told = progress or Quiet()
    opened = scan if isinstance(scan, Scan) else load_scan(scan)
    sources = read_versions(_sources(opened) if versions is None else versions)
    names = tuple(version.name for version in sources)
    if names != opened.versions:
        fault = f"the scan has the versions {', '.join(opened.versions)}, not {', '.join(names)}"
        raise InputError(fault, "give the same in the same order", where="--version")
    shared = Artifacts(out)
    negatives = _Negatives(opened, sources, options, shared.work / "first-stage", told)
    if options.draws is None:
        selection = _select(opened, sources, options, negatives, shared, told=told)
    else:
        seeds = tuple(range(options.seed, options.seed + options.draws))
        draws = [
            _select(
                opened,
                sources,
                replace(options, seed=seed, draws=None),
                negatives,
                Artifacts(shared.folder / f"seed-{seed}"),
                told=told,
            )
            for seed in seeds
        ]
        selection = _all_draws(draws, shared.folder, seeds)
    shutil.rmtree(shared.work / "first-stage", ignore_errors=True)
    shared.tidy()
    return selection


def _all_draws(draws: Sequence[Selection], folder: Path, seeds: tuple[int, ...]) -> Selection:
    """Several draws as one result; they have the same number of rows, since only chance tells them apart."""
    chosen: dict[str, dict[str, int]] = {}
    for one in draws:
        for strategy, counts in one.chosen.items():
            own = chosen.setdefault(strategy, {})
            for name, count in counts.items():
                own[name] = own.get(name, 0) + count
    fallbacks = {name: sum(one.fallbacks[name] for one in draws) for name in draws[0].fallbacks}
    return replace(draws[0], folder=folder, chosen=chosen, fallbacks=fallbacks, seeds=seeds)


def _select(
    opened: Scan,
    sources: tuple[Version, ...],
    options: SelectOptions,
    negatives: _Negatives,
    artifacts: Artifacts,
    *,
    told: Progress,
) -> Selection:
    """Writes the tables of one draw."""
    wanted = _Wanted(opened, options)
    folder = artifacts.work / "select"
    drawn = negatives.draw(wanted.rows, options.seed)
    rows = drawn.rows
    if options.size is not None:
        rows = rows.head(options.size // 2)
    if rows.is_empty():
        raise InputError("no row is left", "choose another --set or --missing", where=str(opened.folder or "scan"))
    texts = _texts(sources, rows, drawn.version, folder, told)
    writer = _Writer(wanted, rows, texts, drawn)
    chosen: dict[str, dict[str, int]] = {}
    fallbacks: dict[str, int] = {}
    for strategy in options.strategies:
        counts, ruled = writer.write(strategy, artifacts, folder)
        own = {name: counts[name] for name in opened.versions if name in counts}
        chosen[strategy], fallbacks[strategy] = own, ruled
    settings = _settings(options, opened)
    size = None if options.size is None else options.size // 2
    selection = Selection(
        artifacts.folder, len(rows), size, chosen, fallbacks, {**wanted.skipped, **drawn.skipped}, settings
    )
    about = {key: value for key, value in selection.json().items() if key != "folder"}
    artifacts.manifest(provenance("select", **about, packages=installed_versions(*_PACKAGES)))
    shutil.rmtree(folder, ignore_errors=True)
    artifacts.tidy()
    return selection


def _sources(scan: Scan) -> dict[str, str]:
    """The sources that the scan's manifest names."""
    try:
        manifest = json.loads(((scan.folder or Path()) / "manifest.json").read_text(encoding="utf-8"))
        return {one["name"]: one["source"] for one in manifest["versions"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        fault = "the manifest does not say where the versions are"
        raise InputError(fault, "name them with --version", where=scan.folder or "scan") from error


class _Wanted:
    """The judged documents to select from, in the order of the seed, with ids and scores by version.

    Attributes:
        rows: columns topic_id, query, doc_id, and for each version its id, score and best passage.
        skipped: documents left out, and why.
    """

    def __init__(self, scan: Scan, options: SelectOptions) -> None:
        self.scan = scan
        self.options = options
        self.skipped: dict[str, int] = {}
        for strategy in options.strategies:
            name = strategy.removeprefix("version:")
            if strategy not in STRATEGIES and name not in scan.versions:
                raise InputError(f"no version '{name}'", f"there are {', '.join(scan.versions)}", where="--strategy")
        scores = scan.scores
        self.aggregation: str = options.aggregation or "max"
        if options.data_set is not None:
            inside = scan.sets.filter(pl.col("set") == options.data_set)
            if options.data_set not in scan.summary["sets"] or inside.is_empty():
                filled = [name for name, one in scan.summary["sets"].items() if one["documents"]]
                fault = f"no data set '{options.data_set}', or nothing in it"
                raise InputError(fault, f"there are {', '.join(filled) or 'none'}", where="--set")
            scores = scores.join(inside, on=["topic_id", "doc_id"], how="semi", maintain_order="left")
            named = inside["aggregation"][0]
            self.aggregation = options.aggregation or (named if named in AGGREGATIONS else "max")
        value = f"{self.aggregation}_score"
        wide = scores.group_by("row", maintain_order=True).agg(
            *(pl.col(name).first() for name in ("topic_id", "query", "doc_id")),
            *(
                pl.col(column).filter(pl.col("version") == name).first().alias(f"{kind}:{name}")
                for name in scan.versions
                for kind, column in (("id", "version_doc_id"), ("score", value), ("best", "best"))
            ),
        )
        if options.missing == "skip":
            before = len(wide)
            wide = wide.drop_nulls([f"id:{name}" for name in scan.versions])
            if before > len(wide):
                self.skipped["a version lacks the document"] = before - len(wide)
        order = np.random.default_rng(options.seed).permutation(len(wide))
        self.rows = wide[order]


class _Drawn(NamedTuple):
    rows: pl.DataFrame
    version: Version
    bm25: Bm25
    skipped: dict[str, int]


class _Negatives:
    """Non-relevant documents: of a first stage's best, not judged relevant, drawn by the seed."""

    def __init__(
        self, scan: Scan, sources: tuple[Version, ...], options: SelectOptions, folder: Path, told: Progress
    ) -> None:
        self._scan, self._options, self._folder, self._told = scan, options, folder, told
        name = options.negatives or scan.versions[0]
        by_name = {version.name: version for version in sources}
        if name not in by_name:
            raise InputError(f"no version '{name}'", f"there are {', '.join(by_name)}", where="--negatives")
        self._version, self._judged = by_name[name], sources[0]
        self._by_topic: dict[str, list[tuple[str, int]]] | None = None

    def draw(self, rows: pl.DataFrame, seed: int) -> _Drawn:
        """The rows with columns nonrelevant_id and place (in the first stage), without those that have none.

        The first stage is searched once: other draws have the same topics.
        """
        index = self._folder / f"index-{self._version.name}"
        if not index.is_dir():
            build_index(self._version.source.spec.spec, index, analyser=analyser_of("anserini"), progress=self._told)
        if self._by_topic is None:
            self._by_topic = {
                str(key[0]): list(zip(part["doc_id"].to_list(), part["place"].to_list(), strict=True))
                for key, part in self._pool(rows, index).group_by("topic_id", maintain_order=True)
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
        kept = drawn.drop_nulls("nonrelevant_id")
        lacking = len(drawn) - len(kept)
        skipped = {"the first stage has no non-relevant document": lacking} if lacking else {}
        return _Drawn(kept, self._version, Bm25.open(str(index)), skipped)

    def _pool(self, rows: pl.DataFrame, index: Path) -> pl.DataFrame:
        topics = rows.unique("topic_id", maintain_order=True)
        if self._options.run is None:
            asked = [TopicQuery(topic, query) for topic, query in topics.select("topic_id", "query").iter_rows()]
            asked.sort()
            run = search(index, asked, model_of("anserini", "bm25", {}), k=self._options.depth, progress=self._told).run
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
        own = self._scan.scores.filter(pl.col("version") == self._version.name)
        known = own.select("topic_id", pl.col("version_doc_id").alias("doc_id"))
        if self._options.qrels is None:
            return known.unique()
        judged = read_qrels_frame(self._options.qrels).filter(pl.col("relevance") > 0)
        ids = own.select(pl.col("doc_id").alias("judged"), "version_doc_id").unique()
        named = judged.join(ids, left_on="doc_id", right_on="judged", how="left")
        doc_id = pl.coalesce("version_doc_id", "doc_id").alias("doc_id")
        return pl.concat([known, named.select("topic_id", doc_id)]).unique()


def _texts(
    sources: tuple[Version, ...], rows: pl.DataFrame, negatives: Version, folder: Path, told: Progress
) -> dict[str, DocumentTexts]:
    found: dict[str, DocumentTexts] = {}
    for number, version in enumerate(sources):
        wanted = set(rows[f"id:{version.name}"].drop_nulls().to_list())
        if version.name == negatives.name:
            wanted |= set(rows["nonrelevant_id"].to_list())
        path = folder / f"texts-{number}.sqlite"
        path.unlink(missing_ok=True)
        DocumentTexts.collect(path, version.source.spec.spec, frozenset(wanted), told)
        found[version.name] = DocumentTexts(path)
    return found


class _Writer:
    """Writes one table for each strategy."""

    def __init__(self, wanted: _Wanted, rows: pl.DataFrame, texts: Mapping[str, DocumentTexts], drawn: _Drawn) -> None:
        self._wanted, self._rows, self._texts, self._drawn = wanted, rows, texts, drawn
        self._names = wanted.scan.versions
        self._policy: Policy = policy_named(wanted.scan.summary["policy"])

    def write(self, strategy: str, artifacts: Artifacts, folder: Path) -> tuple[Counter[str], int]:
        """Writes `STRATEGY.parquet`; returns how often each version was chosen, and how often by rule."""
        store = BlockStore(folder / "rows")
        chosen: Counter[str] = Counter()
        ruled = number = 0
        draw = np.random.default_rng([self._wanted.options.seed, 2])
        for part in self._rows.iter_slices(_BLOCK):
            rows = list(part.iter_rows(named=True))
            picks = [self._pick(strategy, row, draw) for row in rows]
            chosen.update(name for name, _ in picks)
            ruled += sum(by_rule for _, by_rule in picks)
            values = list(self._values(strategy, rows, [name for name, _ in picks], number * _BLOCK))
            store.save(number, pl.DataFrame(values, schema=ROW_SCHEMA, orient="row"))
            number += 1
        files = [store.folder / f"{place:08d}.arrow" for place in range(number)]
        artifacts.lazy_parquet(f"{_file(strategy)}.parquet", pl.scan_ipc(files, glob=False), _BLOCK)
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
        judged = self._names[0] in there and self._wanted.options.missing == "judged"
        if incomplete and judged:
            return self._names[0], True
        if named:
            return there[0], True
        if strategy == "random":
            return there[int(number * len(there))], incomplete
        if strategy == "bm25":
            values = self._bm25(row, there)
        else:
            sign = 1.0 if strategy == "max" else -1.0
            values = [sign * row[f"score:{name}"] for name in there]
        return there[int(np.argmax(values))], incomplete

    def _bm25(self, row: Mapping[str, Any], there: Sequence[str]) -> list[float]:
        texts = (self._texts[name].texts([row[f"id:{name}"]])[row[f"id:{name}"]] for name in there)
        return [float(value) for value in self._drawn.bm25.score([Pair(row["query"], joined(*text)) for text in texts])]

    def _values(
        self, strategy: str, rows: Sequence[Mapping[str, Any]], picks: Sequence[str], start: int
    ) -> Iterator[tuple[Any, ...]]:
        picked = list(zip(rows, picks, strict=True))
        held = {
            name: self._texts[name].texts([row[f"id:{name}"] for row, pick in picked if pick == name])
            for name in set(picks)
        }
        others = self._texts[self._drawn.version.name].texts([row["nonrelevant_id"] for row in rows])
        for place, (row, name) in enumerate(picked):
            relevant_id, other_id = row[f"id:{name}"], row["nonrelevant_id"]
            relevant = self._relevant(held[name][relevant_id], int(row[f"best:{name}"]))
            other = self._other(row["query"], others.get(other_id, ("", "")))
            origin = f"{name} by {strategy}; first-stage rank {row['place']} of {self._drawn.version.name}"
            yield (
                start + place, strategy, name, None, row["topic_id"], row["query"], relevant_id, relevant, other_id,
                other, origin,
            )  # fmt: skip

    def _relevant(self, text: tuple[str, str], best: int) -> str:
        part = self._wanted.options.part
        whole = joined(*text)
        if part == "whole":
            return whole
        passages = self._policy.cut(whole)
        return next(passages) if part == "first" else list(passages)[best]

    def _other(self, query: str, text: tuple[str, str]) -> str:
        part = self._wanted.options.part
        whole = joined(*text)
        if part == "whole":
            return whole
        passages = self._policy.cut(whole)
        if part == "first":
            return next(passages)
        listed = list(passages)
        return listed[int(np.argmax(self._drawn.bm25.score([Pair(query, passage) for passage in listed])))]


def _settings(options: SelectOptions, scan: Scan) -> dict[str, Any]:
    return {
        "strategies": list(options.strategies),
        "set": options.data_set,
        "aggregation": options.aggregation,
        "size": options.size,
        "missing": options.missing,
        "part": options.part,
        "run": None if options.run is None else file_record(options.run),
        "negatives": options.negatives or scan.versions[0],
        "depth": options.depth,
        "qrels": None if options.qrels is None else file_record(options.qrels),
        "seed": options.seed,
        "scan": None if scan.folder is None else f"sha256:{hash_file(scan.folder / 'scores.parquet')}",
    }


def _file(strategy: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in strategy)
