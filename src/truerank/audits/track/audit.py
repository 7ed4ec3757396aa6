"""`truerank track report`: what the runs of a track show, as one value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from truerank.audits.track.analysis import (
    FEWEST_RUNS,
    Analysis,
    RunMap,
    RunSimilarities,
    Statement,
    analyse,
    read_stated,
    run_map,
    run_similarities,
    statements,
)
from truerank.audits.track.file_counts import FileStatistics, Kind, file_statistics
from truerank.audits.track.means import measure_name
from truerank.audits.track.scores import Scores, from_runs, from_tables
from truerank.core.result import Result
from truerank.errors import InputError, MissingExtraError, OptionError
from truerank.measures.comparison import Comparison, compare_evaluations
from truerank.options import Flag, Options, Out, Range, Scoring, Seed, Sources, command
from truerank.sources import read_topics
from truerank.sources.grammar import named_source
from truerank.sources.inputs import inputs_of
from truerank.sources.run_tables import RowFilter, read_metadata
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: Depth of NCG and recall where none is given: the number of candidates of a document rerank subtask.
DEFAULT_DEPTH: Final = 100


@dataclass(frozen=True)
class TrackReportOptions(Options):
    """What the report shows; every choice is in its manifest.

    Attributes:
        title: what the track or task is called.
        measure: the measure that runs are sorted by and compared with.
        measures: further measures, separated by blanks; by default RR AP NCG@k R@k (k is the depth, or 100), and of
            tables all.
        baseline_category: the category that others are compared with.
        where: use only the rows of tables that hold this value.
        topics: topics whose titles name the rows of the figures by topic.
        stated: figures that a text states (statement, value), to be compared.
        seed: of the map of runs.
        perplexity: of the map of runs; by default 30, at most a third of the other runs.
    """

    title: str = ""
    measure: str = "nDCG@10"
    measures: str | None = None
    baseline_category: Annotated[str, Flag(metavar="NAME")] = "trad"
    where: Annotated[Mapping[str, str], Flag(metavar="COLUMN=VALUE")] = field(default_factory=dict)
    topics: Annotated[str | None, Flag(metavar="SRC")] = None
    stated: Annotated[str | None, Flag(metavar="FILE")] = None
    seed: Seed = 0
    perplexity: Annotated[float | None, Range(above=0)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.measure.split()) != 1:
            raise OptionError("measure", f"'{self.measure}' is not one measure", "give one, such as nDCG@10")

    def scored(self, depth: int | None = None) -> list[str]:
        """The further measures that runs are scored by.

        Args:
            depth: of the scores.
        """
        if self.measures is not None:
            return self.measures.split()
        depth = depth or DEFAULT_DEPTH
        return ["RR", "AP", f"NCG@{depth}", f"R@{depth}"]

    def printed(self) -> list[str]:
        """The measures to take from tables of means, empty for all; a word in brackets belongs to what it follows."""
        return re.findall(r"\S+(?: \(\w+\))?", self.measures or "")


@dataclass(frozen=True)
class CountedFiles(Options):
    """What is counted beside the runs; NAME= before a source says what the file is called.

    Attributes:
        collection: documents: a file, a folder, irds:ID.
        queries: queries; repeat the option for training and test.
        also_qrels: further judgments, such as those for training.
    """

    collection: Annotated[Sources, Flag(metavar="[NAME=]SRC", reads=list[str])] = ()
    queries: Annotated[Sources, Flag(metavar="[NAME=]SRC", reads=list[str])] = ()
    also_qrels: Annotated[Sources, Flag(metavar="[NAME=]SRC", reads=list[str])] = ()


_PACKAGES = ("ir-measures", "matplotlib", "scikit-learn")


@dataclass(frozen=True, eq=False, repr=False)
class TrackReport(Result, shown_in="truerank.audits.track.page"):
    """What the runs of a track show.

    Attributes:
        options: the choices behind it.
        analysis: what the runs show.
        statements: the figures of a track's text, with those that were stated.
        files: the files of the data set.
        run_map: the runs in a plane, where there are scores by topic and ten runs.
        similarities: how alike the runs are, where there are scores by topic and fewer runs.
        comparison: all pairs of runs by the main measure, where there are scores by topic and two runs.
        topics: texts of topics by id.
        left_out: what the report does not show, and why, in sentences.
        out: the folder that it was written to.
    """

    options: TrackReportOptions
    analysis: Analysis
    statements: tuple[Statement, ...]
    files: tuple[FileStatistics, ...] = ()
    run_map: RunMap | None = None
    similarities: RunSimilarities | None = None
    comparison: Comparison | None = None
    topics: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    out: Path | None = None


@command
def report(
    run: Annotated[Sequence[str | Path], Flag(metavar="FILE", reads=list[str])] = (),
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    *,
    sparse_qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    means: Annotated[Sequence[str | Path], Flag(metavar="FILE", reads=list[str])] = (),
    metadata: Annotated[Sequence[str | Path], Flag(metavar="FILE", reads=list[str])] = (),
    options: TrackReportOptions = TrackReportOptions(),
    scoring: Scoring = Scoring(),
    files: CountedFiles = CountedFiles(),
    out: Out = None,
) -> TrackReport:
    """Analyses the runs of a track: tables and figures by category, subtask, topic and measure.

    Give run files with judgments, or, where only mean scores exist, tables of them. Metadata are tables with one row
    per run: its group, its subtask (fullrank or rerank) and its category, such as trad, nn or nnlm.

    Args:
        run: TREC runs; repeat the option for several. A run is named by its file without .run, .txt and .gz.
        qrels: relevance judgments.
        sparse_qrels: other judgments, one or few a topic, for RR (sparse).
        means: tables of mean scores, in the place of runs; the most trusted first.
        metadata: tables of run, group, subtask and category.
        options: what the report shows.
        scoring: how runs are scored.
        files: what is counted beside the runs.
        out: a folder for page, tables, figures and manifest.

    Returns:
        What the runs show.

    Raises:
        InputError: a fault in a file, with its line; runs without judgments; nothing to analyse.

    Examples:

        truerank track report --run runs/bm25.run --run runs/dense.run --qrels track.qrels --metadata runs.csv
        --out report/

        truerank track report --run a.run --run b.run --qrels track.qrels --sparse-qrels clicks.qrels --depth 100
        --collection docs.jsonl.gz --queries "Test queries=topics.tsv" --metadata runs.csv --out report/

        truerank track report --means printed.csv --means measures.csv --metadata runs.csv --where task=docs
        --where evaluation=trec_eval --stated text.csv --out report/

    Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track, section 4.
    """
    if means and (run or qrels or sparse_qrels):
        raise OptionError("means", "both runs and tables of means", "give `run` and `qrels`, or `means`")
    if not means and not run:
        raise InputError("nothing to analyse", "give `run` and `qrels`, or `means`", where="track report")
    if run and not qrels:
        raise OptionError("run", "runs without judgments", "give `qrels`")
    scores = _scores((run, qrels, sparse_qrels), (means, metadata), options, scoring)
    analysis = analyse(scores, baseline=options.baseline_category)
    layout, alike, missing = _alike(scores, options)
    stated, topics = options.stated, options.topics
    result = TrackReport(
        options=options,
        analysis=analysis,
        statements=statements(analysis, None if stated is None else read_stated(stated)),
        files=tuple(_counted(files, qrels, sparse_qrels)),
        run_map=layout,
        similarities=alike,
        comparison=_compared(scores),
        topics={} if topics is None else {topic.topic_id: topic.title for topic in read_topics(topics).topics},
        left_out=(*_without(analysis), *missing),
        out=None if out is None else Path(out),
    )
    if out is not None:
        given = {"qrels": qrels, "sparse_qrels": sparse_qrels, "run": run, "means": means, "metadata": metadata}
        inputs = inputs_of(**given, stated=stated)
        chosen = {"options": options, "scoring": scoring, "files": files}
        with started("track report", inputs, chosen, out, packages=_PACKAGES) as job:
            job.skipped = {"left_out": list(result.left_out)}
            publish(result, job)
    return result


def _scores(
    scored: tuple[Sequence[str | Path], str | None, str | None],
    tables: tuple[Sequence[str | Path], Sequence[str | Path]],
    options: TrackReportOptions,
    scoring: Scoring,
) -> Scores:
    (run, qrels, sparse_qrels), (means, metadata) = scored, tables
    selection = RowFilter(options.where)
    known = read_metadata(metadata, selection)
    if means:
        main = measure_name(options.measure) or options.measure
        scores = from_tables(means, known, selection, main=main, measures=options.printed())
    else:
        scores = from_runs(
            qrels or "",
            run,
            known,
            selection,
            main=options.measure,
            measures=options.scored(scoring.depth),
            policy=scoring,
            sparse_qrels=sparse_qrels,
        )
    selection.check()
    return scores


def _alike(scores: Scores, options: TrackReportOptions) -> tuple[RunMap | None, RunSimilarities | None, list[str]]:
    """The map of many runs, or the similarities of few; and what is left out, in sentences."""
    if scores.evaluation is None:
        return None, None, ["The map of runs and the comparisons by topic need run files; means do not have topics."]
    if len(scores.runs) < FEWEST_RUNS:
        alike = run_similarities(scores.evaluation, scores.main)
        few = "How alike runs are needs 2 runs and 3 topics that all were scored on."
        return None, alike, [few] if alike is None else []
    try:
        layout = run_map(scores.evaluation, scores.main, seed=options.seed, perplexity=options.perplexity)
    except MissingExtraError as error:
        return None, run_similarities(scores.evaluation, scores.main), [f"The map of runs is left out: {error}"]
    few = "The map of runs needs 2 topics that all were scored on."
    return layout, None, [few] if layout is None else []


def _compared(scores: Scores) -> Comparison | None:
    """All pairs of runs by the main measure; None without scores by topic."""
    found = scores.evaluation
    if found is None or len(found.runs) < 2 or found.aggregates[0] != "mean":
        return None
    return compare_evaluations(found, measures=[scores.main], correction="holm")


def _without(analysis: Analysis) -> Iterator[str]:
    if not analysis.best:
        yield "No run has a category: the comparisons of categories are left out. Name them with --metadata."
    if not analysis.gaps:
        yield "Fullrank and rerank are not compared: the metadata name no run of one of them."
    if analysis.scores.sparse is None:
        yield "No sparse judgments: agreement with them is left out."


def _counted(files: CountedFiles, qrels: str | None, sparse_qrels: str | None) -> Iterator[FileStatistics]:
    several: dict[Kind, Sequence[str]] = {
        "collection": files.collection,
        "queries": files.queries,
        "qrels": files.also_qrels,
    }
    for kind, given in ((kind, one) for kind, group in several.items() for one in group):
        name, spec = named_source(given)
        yield file_statistics(spec.spec, kind, name)
    for judged, called in ((qrels, "Test qrels"), (sparse_qrels, "Sparse qrels")):
        if judged is not None:
            yield file_statistics(judged, "qrels", called)
