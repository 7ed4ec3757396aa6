"""The track report: what the runs of a track show, as a page, tables, figures and one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from truerank.audits.track import page, tables
from truerank.audits.track.analysis import Agreement, Analysis, analyse
from truerank.audits.track.collection import FileStatistics, Kind, file_statistics
from truerank.audits.track.figures import duel_names, paired_measures, pictures
from truerank.audits.track.inputs import RowFilter, measure_name, read_metadata
from truerank.audits.track.options import ReportOptions
from truerank.audits.track.scores import Scores, from_runs, from_tables
from truerank.audits.track.similarity import FEWEST_RUNS, RunMap, run_map
from truerank.audits.track.statements import Statement, agrees, read_stated, statements, statements_table
from truerank.errors import InputError, MissingExtraError
from truerank.reports.figures import Picture, to_svg_file
from truerank.reports.tables import Table
from truerank.sources import grammar, read_topics
from truerank.work.artifacts import Artifacts, hash_file, installed_versions
from truerank.work.publishing import write_pictures, write_tables

__all__ = ["TrackReport", "report"]

_DEFAULTS: Final = ReportOptions()
#: Tables that are for files, not for reading through.
_LONG: Final = ("agreement", "measures")


@dataclass(frozen=True, eq=False)
class TrackReport:
    """The result of `track.report`.

    Attributes:
        options: the choices behind it.
        analysis: what the runs show.
        statements: the figures of a track's text, with those that were stated.
        files: the files of the data set.
        run_map: the runs in a plane, where there are scores by topic.
        topics: texts of topics by id.
        left_out: what the report does not show, and why, in sentences.
        inputs: what was read.
    """

    options: ReportOptions
    analysis: Analysis
    statements: tuple[Statement, ...]
    files: tuple[FileStatistics, ...] = ()
    run_map: RunMap | None = None
    topics: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, in reading order."""
        return dict(self._tables())

    @cached_property
    def pictures(self) -> tuple[Picture, ...]:
        """The figures in reading order."""
        return tuple(pictures(self.analysis, self.run_map, self.topics))

    def table(self) -> Table:
        """Every run with its means, best first."""
        return self.tables["results"]

    def agreements(self) -> list[Agreement]:
        """The agreements that people read first.

        Those of the main measure with all others over all runs, and within each category those of the measures that
        are drawn, and of NCG@k with recall@k.
        """
        scores = self.analysis.scores
        drawn = [*paired_measures(self.analysis)]
        within = [{first, second} for first in drawn for second in drawn if first != second]
        within += [{scores.gain, other} for other in (scores.main, scores.recall) if scores.gain and other]
        return [
            one
            for one in self.analysis.agreements
            if {one.first, one.second} in within or (scores.main in (one.first, one.second) and not one.category)
        ]

    def text(self, width: int | None = 120) -> str:
        """The tables for a terminal, but the long ones: by topic, of all measures, and of all pairs of them.

        Args:
            width: characters per line; None for as wide as a table is.
        """
        shown = [table for name, table in self.tables.items() if name not in _LONG and not name.startswith("topics-")]
        if self.analysis.agreements:
            shown.append(tables.agreement_table(self.agreements()))
        blocks = [table.text(width).rstrip("\n") for table in shown]
        return "\n\n".join([*blocks, *self.left_out]) + "\n"

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        analysis, scores = self.analysis, self.analysis.scores
        return {
            "name": self.options.name,
            "main": scores.main,
            "baseline": analysis.baseline,
            "topics": scores.topics,
            "measures": list(scores.measures),
            "runs": _runs(scores),
            "counts": [
                {"category": category or None, "subtask": subtask or None, "runs": number}
                for (category, subtask), number in sorted(analysis.counts().items())
            ],
            "best": [one._asdict() for one in analysis.best],
            "subtasks": [gap._asdict() for gap in analysis.gaps],
            "candidates": None if analysis.candidates is None else analysis.candidates._asdict(),
            "duels": [
                {
                    "first": duel.first.run,
                    "second": duel.second.run,
                    "measure": duel.measure,
                    "topics": len(duel.topics),
                    "wins": duel.wins,
                    "ties": duel.ties,
                    "losses": duel.losses,
                }
                for duel in analysis.duels
            ],
            "agreement": [one._asdict() | {"category": one.category or None} for one in analysis.agreements],
            "gain_and_recall": None if analysis.recall is None else analysis.recall._asdict() | {"category": None},
            "statements": [_statement(one) for one in self.statements],
            "files": [one._asdict() for one in self.files],
            "notes": list(scores.notes),
            "left_out": list(self.left_out),
        }

    def html(self) -> str:
        """The report as one page that needs no network."""
        svgs = {one.name: to_svg_file(one.figure, name=one.name, description=one.caption) for one in self.pictures}
        return page.render(self, svgs)

    def save(self, folder: str | Path) -> Path:
        """Writes `report.html`, `summary.json`, `manifest.json`, `tables/` and `figures/`.

        Each table is written as text, CSV, LaTeX and Markdown, each figure as SVG and PDF.

        Args:
            folder: made if it does not exist.

        Returns:
            The folder.

        Raises:
            InputError: the folder cannot be written to.
        """
        artifacts = Artifacts(folder)
        write_tables(artifacts, self.tables)
        svgs = write_pictures(artifacts, self.pictures)
        artifacts.text("report.html", page.render(self, svgs))
        artifacts.json("summary.json", self.json())
        artifacts.manifest(self.provenance())
        return artifacts.folder

    def provenance(self) -> dict[str, Any]:
        """Inputs with hashes, options and versions."""
        return {
            "command": "track report",
            "inputs": dict(self.inputs),
            "options": self.options.json(),
            "left_out": list(self.left_out),
            "versions": installed_versions("truerank", "numpy", "polars", "ir-measures", "matplotlib", "scikit-learn"),
        }

    def _tables(self) -> Iterator[tuple[str, Table]]:
        analysis = self.analysis
        if self.files:
            yield "collection", tables.collection_table(self.files)
        yield "counts", tables.counts_table(analysis)
        yield "results", tables.results_table(analysis.scores)
        if analysis.scores.printed not in ((), analysis.scores.measures):
            yield "measures", tables.results_table(analysis.scores, whole=True)
        if analysis.best:
            yield "categories", tables.best_table(analysis)
        if analysis.gaps:
            yield "subtasks", tables.subtask_table(analysis)
        for name, duel in zip(duel_names(analysis), analysis.duels, strict=True):
            yield name, tables.duel_table(duel)
        if analysis.agreements:
            yield "agreement", tables.agreement_table(analysis.agreements)
        yield "statements", statements_table(self.statements)


def report(
    out: str | Path | None = None,
    *,
    qrels: str | None = None,
    runs: Sequence[str | Path] = (),
    sparse_qrels: str | None = None,
    means: Sequence[str | Path] = (),
    metadata: Sequence[str | Path] = (),
    collection: Sequence[str] = (),
    queries: Sequence[str] = (),
    also_qrels: Sequence[str] = (),
    topics: str | None = None,
    stated: str | Path | None = None,
    options: ReportOptions = _DEFAULTS,
) -> TrackReport:
    """Analyses the runs of a track, from run files and judgments or from tables of means.

    Args:
        out: the folder for the report; None to write nothing.
        qrels: relevance judgments.
        runs: run files; their names are the file names without endings.
        sparse_qrels: other judgments, one or few a topic, for RR (sparse).
        means: tables of mean scores, in the place of runs and judgments; see `inputs.read_means`.
        metadata: tables of group, subtask and category by run; see `inputs.read_metadata`.
        collection: documents to count; `NAME=` before a source says what the file is called.
        queries: queries to count, in the same way.
        also_qrels: judgments to count beside `qrels` and `sparse_qrels`, in the same way.
        topics: topics whose titles name the rows of the figures by topic.
        stated: a table of figures that a text states, to be compared with what follows from the runs.
        options: all other choices.

    Returns:
        The report.

    Raises:
        InputError: a fault in a file, with its line; runs without judgments; nothing to analyse.

    Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track, section 4.
    """
    _check(qrels, runs, means, sparse_qrels)
    selection = RowFilter(options.where)
    known = read_metadata(metadata, selection)
    if means:
        main = measure_name(options.main) or options.main
        scores = from_tables(means, known, selection, main=main, measures=options.printed())
    else:
        scores = from_runs(
            qrels or "",
            runs,
            known,
            selection,
            main=options.main,
            measures=options.scored(),
            policy=options.policy,
            sparse_qrels=sparse_qrels,
        )
    selection.check()
    analysis = analyse(scores, baseline=options.baseline)
    layout, missing = _layout(scores, options)
    result = TrackReport(
        options=options,
        analysis=analysis,
        statements=statements(analysis, None if stated is None else read_stated(stated)),
        files=tuple(_counted({"collection": collection, "queries": queries, "qrels": also_qrels}, qrels, sparse_qrels)),
        run_map=layout,
        topics={} if topics is None else {topic.topic_id: topic.title for topic in read_topics(topics).topics},
        left_out=(*_without(analysis), *missing),
        inputs=_inputs(
            {
                "qrels": [qrels],
                "sparse_qrels": [sparse_qrels],
                "runs": runs,
                "means": means,
                "metadata": metadata,
                "stated": [stated],
            }
        ),
    )
    if out is not None:
        result.save(out)
    return result


def _check(qrels: str | None, runs: Sequence[Any], means: Sequence[Any], sparse_qrels: str | None) -> None:
    if means and (runs or qrels or sparse_qrels):
        raise InputError("both runs and tables of means", "give --run and --qrels, or --means", where="--means")
    if not means and not runs:
        raise InputError("nothing to analyse", "give --run and --qrels, or --means", where="track report")
    if runs and not qrels:
        raise InputError("runs without judgments", "give --qrels", where="--run")


def _layout(scores: Scores, options: ReportOptions) -> tuple[RunMap | None, list[str]]:
    if scores.evaluation is None:
        return None, ["The map of runs and the comparisons by topic need run files; means do not have topics."]
    try:
        layout = run_map(scores.evaluation, scores.main, seed=options.seed, perplexity=options.perplexity)
    except MissingExtraError as error:
        return None, [f"The map of runs is left out: {error}"]
    few = f"The map of runs needs {FEWEST_RUNS} runs and 2 topics that all were scored on."
    return layout, [few] if layout is None else []


def _without(analysis: Analysis) -> Iterator[str]:
    if not analysis.best:
        yield "No run has a category: the comparisons of categories are left out. Name them with --metadata."
    if not analysis.gaps:
        yield "Fullrank and rerank are not compared: the metadata name no run of one of them."
    if analysis.scores.sparse is None:
        yield "No sparse judgments: agreement with them is left out."


def _counted(
    files: Mapping[Kind, Sequence[str]], qrels: str | None, sparse_qrels: str | None
) -> Iterator[FileStatistics]:
    for kind, given in ((kind, given) for kind, several in files.items() for given in several):
        name, separator, spec = given.partition("=")
        # A path may hold the sign too; what stands before it is a name unless it is a path itself.
        named = bool(separator and spec) and not Path(given).exists() and not name.startswith("irds:")
        yield file_statistics(spec if named else given, kind, name if named else "")
    for judged, called in ((qrels, "Test qrels"), (sparse_qrels, "Sparse qrels")):
        if judged is not None:
            yield file_statistics(judged, "qrels", called)


def _inputs(groups: Mapping[str, Sequence[str | Path | None]]) -> dict[str, Any]:
    there = {name: [str(path) for path in paths if path] for name, paths in groups.items()}
    return {name: [_input(path) for path in paths] for name, paths in there.items() if paths}


def _input(given: str) -> dict[str, Any]:
    spec = grammar.parse(given)
    found: dict[str, Any] = {"source": given, "name": spec.name}
    return found | ({"sha256": hash_file(spec.path)} if spec.scheme == "file" and spec.path.is_file() else {})


def _runs(scores: Scores) -> list[dict[str, Any]]:
    table = tables.results_table(scores, whole=True)
    names = [column.title for column in table.columns]
    described = len(names) - len(scores.measures)
    return [
        dict(zip(names[:described], row[:described], strict=True))
        | {"measures": dict(zip(names[described:], row[described:], strict=True))}
        for row in table.rows
    ]


def _statement(one: Statement) -> dict[str, Any]:
    return {
        "name": one.name,
        "value": one.value,
        "unit": one.unit,
        "stated": one.stated or None,
        "difference": one.difference,
        "agrees": agrees(one),
    }
