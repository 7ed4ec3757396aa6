"""Building pools: which documents are judged, what each team brought, and who judges what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

import truerank
from truerank.audits.reusability.learning.labels_now import read_grades
from truerank.audits.reusability.pools.bandit import adaptive_pool
from truerank.audits.reusability.pools.batches import Batch, shared_out, write_batches
from truerank.audits.reusability.pools.depth import first_documents
from truerank.audits.reusability.pools.inputs import check_topics, read_runs, teams_of
from truerank.audits.reusability.pools.options import PoolOptions, PoolSources
from truerank.audits.reusability.pools.results import Pool, team_rows, topic_rows
from truerank.errors import InputError
from truerank.judging import is_store
from truerank.sources import compressed, parse, read_qrels_frame, read_topics
from truerank.work.artifacts import Artifacts
from truerank.work.progress import Progress

__all__ = ["build"]


def build(
    runs: Sequence[str | Path],
    out: str | Path | None = None,
    *,
    sources: PoolSources | None = None,
    options: PoolOptions | None = None,
    progress: Progress | None = None,
) -> Pool:
    """Builds the pools of all topics.

    Args:
        runs: TREC runs.
        out: a folder for `pool.csv`, `topics.csv`, `teams.csv`, `batches.csv`, the batches, and `manifest.json`; None
            to write nothing.
        sources: topics, judgments, documents, teams.
        options: see `PoolOptions`.
        progress: is told how many documents were read.

    Returns:
        The pools.

    Raises:
        InputError: a source or an option is at fault; a run with topics that are not known, or without a team; a method
            that follows what is found without judgments; judgments without a relevant document.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5; for the methods, `adaptive_pool`.
    """
    given, chosen = sources or PoolSources(), options or PoolOptions()
    if chosen.method != "depth" and given.judgments is None:
        raise InputError(f"{chosen.method} follows judgments", "give qrels or a store", where="--judgments")
    topics = {} if given.topics is None else {one.topic_id: one for one in read_topics(given.topics).topics}
    frames = check_topics(read_runs(runs), list(topics) or None, subset=given.subset)
    teams = teams_of(list(frames), given.metadata, given.team_prefix)
    members = pl.concat(
        [
            first_documents(frame, chosen.reach).with_columns(run=pl.lit(name), team=pl.lit(teams[name]))
            for name, frame in frames.items()
        ]
    )
    sparse = _sparse(given.sparse, members)
    live = given.judgments is not None and _stored(given.judgments)
    grades = _grades(given.judgments, chosen.relevant_from, live)
    chosen_documents = _adaptive(members, sparse, grades, chosen, live) if chosen.method != "depth" else None
    documents = _described(members, sparse, grades, chosen_documents, live)
    names = [name for name in topics if name in set(documents["topic_id"])] or sorted(set(documents["topic_id"]))
    open_ones = documents.filter(pl.col("grade").is_null()) if live else documents
    work = shared_out(open_ones, names, chosen.assessors)
    made = Pool(
        documents, topic_rows(documents, names, chosen.relevant_from),
        team_rows(documents, members, teams, chosen.relevant_from), chosen, work,
        tuple(name for name in topics if name not in names), given.judgments is not None,
    )  # fmt: skip
    if out is None:
        return made
    artifacts = Artifacts(out)
    return _write(made, artifacts, runs, given, write_batches(artifacts, made, topics, given.docs, progress))


def _stored(source: str) -> bool:
    spec = parse(source)
    return spec.scheme == "file" and is_store(spec.path)


def _sparse(source: str | None, members: pl.DataFrame) -> pl.DataFrame:
    """The documents that sparse judgments name, of topics that some run has."""
    if source is None:
        return pl.DataFrame(schema={"topic_id": pl.String, "doc_id": pl.String})
    named = read_qrels_frame(source).select("topic_id", "doc_id").unique(maintain_order=True)
    return named.join(members, on="topic_id", how="semi", maintain_order="left")


def _grades(source: str | None, relevant_from: int, live: bool) -> dict[tuple[str, str], int]:
    if source is None:
        return {}
    frame = read_grades(parse(source).path, allow_none=True) if live else read_qrels_frame(source)
    if not live and not (frame["relevance"] >= relevant_from).any():
        raise InputError(
            f"no document has the grade {relevant_from} or a higher one",
            "give judgments with relevant documents, or a lower --relevant-from",
            where=source,
        )
    return {
        (topic, doc): int(grade) for topic, doc, grade in frame.select("topic_id", "doc_id", "relevance").iter_rows()
    }


def _adaptive(
    members: pl.DataFrame,
    sparse: pl.DataFrame,
    grades: Mapping[tuple[str, str], int],
    options: PoolOptions,
    live: bool,
) -> pl.DataFrame:
    """The documents in the order in which a method takes them, the sparse ones first: topic_id, doc_id, order."""
    firsts: dict[str, list[str]] = {}
    for topic, doc_id in sparse.iter_rows():
        firsts.setdefault(topic, []).append(doc_id)
    rows: list[tuple[str, str, int]] = []
    shallow = members.filter(pl.col("place") <= options.equal_cost)
    sizes = dict(shallow.group_by("topic_id").agg(pl.col("doc_id").n_unique()).iter_rows())
    for (topic,), part in members.sort("topic_id", maintain_order=True).group_by("topic_id", maintain_order=True):
        rankings = {
            str(run): own["doc_id"].to_list() for (run,), own in part.group_by("run", maintain_order=True)
        }  # fmt: skip
        already = firsts.get(str(topic), [])
        budget = (options.budget or int(sizes[topic])) - len(already)
        found = adaptive_pool(
            {run: [one for one in ranking if one not in set(already)] for run, ranking in rankings.items()},
            lambda doc_id, topic=topic: grades.get((topic, doc_id), None if live else 0),  # type: ignore[misc]
            max(1, budget), method=options.method, fading=options.fading, relevant_from=options.relevant_from,
            batch=options.batch, seed=options.seed, topic_id=str(topic),
        )  # fmt: skip
        rows += [(str(topic), doc_id, place) for place, doc_id in enumerate((*already, *found.doc_ids), start=1)]
    return pl.DataFrame(rows, schema={"topic_id": pl.String, "doc_id": pl.String, "order": pl.Int64}, orient="row")


def _described(
    members: pl.DataFrame,
    sparse: pl.DataFrame,
    grades: Mapping[tuple[str, str], int],
    order: pl.DataFrame | None,
    live: bool,
) -> pl.DataFrame:
    """One row for each pooled document; without an order the documents of a topic stand by their ids."""
    keys = ["topic_id", "doc_id"]
    if order is None:
        pairs = pl.concat([members.select(keys), sparse.select(keys)]).unique().sort(keys)
        order = pairs.with_columns((pl.int_range(pl.len()).over("topic_id") + 1).alias("order"))
    brought = members.group_by(keys).agg(
        pl.col("place").min(), pl.col("run").n_unique().alias("runs"), pl.col("team").n_unique().alias("teams")
    )
    found = order.join(brought, on=keys, how="left", maintain_order="left")
    found = found.join(sparse.with_columns(sparse=pl.lit(True)), on=keys, how="left", maintain_order="left")
    values = [grades.get(pair, None if live or not grades else 0) for pair in found.select(keys).iter_rows()]
    return found.with_columns(
        pl.col("runs").fill_null(0),
        pl.col("teams").fill_null(0),
        pl.col("sparse").fill_null(False),
        pl.Series("grade", values, dtype=pl.Int64),
    )


def _write(
    made: Pool, artifacts: Artifacts, runs: Sequence[str | Path], sources: PoolSources, batches: tuple[Batch, ...]
) -> Pool:
    made = made.with_files(artifacts.folder, batches)
    artifacts.text("pool.csv", made.documents.write_csv())
    for name, table in (("topics.csv", made.topic_table()), ("teams.csv", made.team_table())):
        artifacts.text(name, table.csv())
    artifacts.text("batches.csv", made.batch_table().csv())
    artifacts.manifest(
        {
            "truerank": truerank.__version__,
            "command": "pool build",
            "inputs": {
                "runs": [{"source": str(run), "hash": compressed.fingerprint(parse(str(run)).path)} for run in runs],
                **sources.json(),
            },
            **{key: value for key, value in made.json().items() if key not in ("out", "batches")},
        }
    )
    artifacts.tidy()
    return made
