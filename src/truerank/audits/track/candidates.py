"""The top-k files from which a track's rerank subtask starts, from any first-stage run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import IO, Annotated, Any, Final, Literal, NamedTuple, get_args

import polars as pl

from truerank.audits.track.run_lines import ScatteredError, grouped_topics, run_path, scattered_topics, strict_frames
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.options import Flag, Range, Ties, command
from truerank.records import Topic
from truerank.sources import TopicSet, read_topics
from truerank.sources.inputs import inputs_of
from truerank.sources.lines import repeated_pair
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import run as started

Form = Literal["run", "tsv", "jsonl", "pairs"]

_FORMS: Final[dict[str, Form]] = {".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_COMPRESSIONS: Final = (".gz", ".zst", ".bz2", ".xz")


class Short(NamedTuple):
    """A topic with fewer than k results."""

    topic_id: str
    results: int


@dataclass(frozen=True, eq=False, repr=False)
class Candidates(Result, shown_in="truerank.audits.track.page"):
    """What `candidates` did.

    Attributes:
        out: the file of the candidates.
        manifest_file: where it comes from.
        form: "run", "tsv", "jsonl" or "pairs".
        k: results wanted for each topic.
        ties: how equal scores were ordered.
        read: rows of the run.
        topics: topics that were written.
        results: rows that were written.
        cut_ties: topics whose results k and k+1 have equal scores, so that the tie policy chose between them.
        short: topics with fewer than k results.
        missing: topics of the topic source that the run lacks.
        unknown: topics of the run that the topic source lacks; they were left out.
        grouped: whether the rows of each topic stand together in the run.
    """

    out: Path
    manifest_file: Path
    form: Form
    k: int
    ties: Ties
    read: int
    topics: int
    results: int
    cut_ties: int
    short: tuple[Short, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    grouped: bool

    def content(self) -> dict[str, Any]:
        """Options and counts, without the names of files."""
        return picked(self, "format=form, k, ties, read, topics, results, cut_ties, grouped, short, missing, unknown")


@command
def candidates(
    run: Annotated[str | Path, Flag(metavar="FILE", reads=Path)],
    out: Annotated[str | Path, Flag(metavar="FILE", reads=Path)],
    *,
    k: Annotated[int, Range(at_least=1)] = 100,
    ties: Ties = "trec_eval",
    topics: Annotated[str | None, Flag(metavar="SRC")] = None,
    file_format: Form | None = None,
    tag: str | None = None,
    progress: Progress | None = None,
) -> Candidates:
    """Writes the first k results of each topic, from which a track's rerank subtask starts.

    Ranks are contiguous from 1. With topics, results for other topics are left out, topics without results are named,
    and a table or JSON lines carry the query. Topics with fewer than k results are named. The run is streamed where the
    rows of each topic stand together; otherwise it is brought together over temporary files.

    Args:
        run: the first-stage run.
        out: the candidates; the name says compression and format. Beside it stands OUT.manifest.json.
        k: results for each topic; the track gave 100 documents and 1,000 passages.
        ties: how documents with equal scores are ordered.
        topics: the topics of the track.
        file_format: run (TREC, scores as in the input), tsv (a table with a heading), jsonl, or pairs (topic TAB
            document); by default as the name of the file says.
        tag: the tag of the run that is written, in place of the input's.
        progress: is told of the rows read.

    Returns:
        The counts, and every topic with fewer than k results.

    Raises:
        InputError: an option or source is at fault, a faulty line, a document that occurs twice for a topic, or the
            output cannot be written.

    Examples:

        truerank track candidates --run bm25.run.gz -k 100 --out top100.run.gz

        truerank track candidates --run bm25.run -k 1000 --topics topics.tsv --out top1000.tsv

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 2.
    """
    out, path = Path(out), run_path(run)
    form = _checked_form(file_format, out)
    if tag is not None and (not tag or tag.split() != [tag]):
        raise OptionError("tag", f"the tag '{tag}' is empty or holds blanks", "give one word")
    known = None if topics is None else read_topics(topics)
    maker = _Maker(path, _Options(k, ties, form, tag), known, progress or Quiet())
    options = {"k": k, "ties": ties, "file_format": form, "tag": tag}
    with started("track candidates", inputs_of(run=run, topics=topics), options, out, file=True) as job:
        try:
            with job.output(out.name) as stream:
                counts, grouped = maker.write(grouped_topics(maker.frames()), stream), True
                result = _result(counts, maker, out, grouped=grouped)
        except ScatteredError:
            with job.output(out.name) as stream:
                counts, grouped = maker.write(scattered_topics(maker.frames()), stream), False
                result = _result(counts, maker, out, grouped=grouped)
        content = result.content()
        job.skipped = {name: content[name] for name in ("short", "missing", "unknown")}
    return result


def _checked_form(form: str | None, out: Path) -> Form:
    if form is None:
        name = PurePath(out.name.lower())
        while name.suffix in _COMPRESSIONS:
            name = name.with_suffix("")
        return _FORMS.get(name.suffix, "run")
    for known in get_args(Form):
        if form == known:
            return known  # type: ignore[no-any-return]
    raise OptionError("file_format", f"unknown format '{form}'", f"one of {', '.join(get_args(Form))}")


class _Options(NamedTuple):
    """How candidates are cut and written."""

    k: int
    ties: Ties
    form: Form
    tag: str | None


@dataclass
class _Counts:
    """What a pass over the run has found so far."""

    topics: int = 0
    results: int = 0
    cut_ties: int = 0
    short: list[Short] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    found: set[str] = field(default_factory=set)


class _Maker:
    """Reads a run and writes the candidates of whole topics."""

    def __init__(self, path: Path, options: _Options, known: TopicSet | None, progress: Progress) -> None:
        self.path, self.known = path, known
        self.k, self.ties, self.form, self.tag = options
        self.read = 0
        self._progress = progress
        self._texts = None if known is None else _texts(known.topics)

    def frames(self) -> Iterator[pl.DataFrame]:
        """The rows of the run, from the beginning."""
        self.read = 0
        self._progress.start(f"reading {self.path.name}")
        for frame in strict_frames(self.path):
            self.read += len(frame)
            self._progress.advance(len(frame))
            yield frame

    def write(self, frames: Iterable[pl.DataFrame], stream: IO[bytes]) -> _Counts:
        """Writes the first k of each topic."""
        counts = _Counts()
        if self.form == "tsv":
            heading = ("topic_id", "doc_id", "rank", "score", *(() if self.known is None else ("query",)))
            stream.write(("\t".join(heading) + "\n").encode())
        for frame in frames:
            self._refuse_repeats(frame)
            stream.write(self._lines(self._first(self._of_known_topics(frame, counts), counts)).encode())
        return counts

    def _refuse_repeats(self, frame: pl.DataFrame) -> None:
        pair = repeated_pair(frame["topic_id"], frame["doc_id"])
        if pair is not None:
            first, second = frame.row(pair.first, named=True), frame.row(pair.second, named=True)
            raise InputError(
                f"topic {second['topic_id']} and document {second['doc_id']} are already in line {first['line']}",
                "remove one of the two lines",
                where=self.path,
                line=second["line"],
            )

    def _of_known_topics(self, frame: pl.DataFrame, counts: _Counts) -> pl.DataFrame:
        if self._texts is None:
            return frame
        frame = frame.join(self._texts, on="topic_id", how="left", maintain_order="left")
        lost = frame.filter(pl.col("query").is_null())["topic_id"].unique(maintain_order=True)
        counts.unknown += lost.to_list()
        return frame.filter(pl.col("query").is_not_null()) if len(lost) else frame

    def _first(self, frame: pl.DataFrame, counts: _Counts) -> pl.DataFrame:
        """The first k rows of each topic in the order of the tie policy, and the counts of what was found."""
        key = pl.col("value").cast(pl.Float32) if self.ties == "trec_eval" else pl.col("value")
        key = pl.col("rank") if self.ties == "rank" else key
        frame = frame.with_columns(pl.col("topic_id").rle_id().alias("topic"), key.alias("key"))
        frame = frame.sort(
            "topic", "key", "doc_id", descending=[False, self.ties != "rank", self.ties == "trec_eval"]
        ).with_columns(pl.int_range(1, pl.len() + 1).over("topic").alias("rank"))
        tied = (pl.col("key") == pl.col("key").shift(1)) & (pl.col("rank") == self.k + 1)
        counts.cut_ties += frame.select(tied.sum()).item()
        sizes = frame.group_by("topic", maintain_order=True).agg(pl.col("topic_id").first(), pl.len())
        few = sizes.filter(pl.col("len") < self.k).select("topic_id", "len")
        counts.short += [Short(*row) for row in few.iter_rows()]
        if self.known is not None:
            counts.found.update(sizes["topic_id"].to_list())
        frame = frame.filter(pl.col("rank") <= self.k)
        counts.topics += len(sizes)
        counts.results += len(frame)
        return frame

    def _lines(self, frame: pl.DataFrame) -> str:
        query = [] if self.known is None else ["query"]
        if self.form == "jsonl":
            return frame.select("topic_id", "doc_id", "rank", pl.col("value").alias("score"), *query).write_ndjson()
        tag = pl.col("tag") if self.tag is None else pl.lit(self.tag)
        columns: dict[Form, list[Any]] = {
            "run": ["topic_id", pl.lit("Q0"), "doc_id", "rank", "score", tag],
            "tsv": ["topic_id", "doc_id", "rank", "score", *query],
            "pairs": ["topic_id", "doc_id"],
        }
        line = pl.concat_str(columns[self.form], separator=" " if self.form == "run" else "\t")
        return "".join(f"{text}\n" for text in frame.select(line).to_series().to_list())


def _texts(topics: Iterable[Topic]) -> pl.DataFrame:
    """Topic ids and the text that a row carries, on one line."""
    rows = [
        (topic.topic_id, " ".join((topic.title or topic.description or topic.narrative).split())) for topic in topics
    ]
    return pl.DataFrame(rows, schema={"topic_id": pl.String, "query": pl.String}, orient="row")


def _result(counts: _Counts, maker: _Maker, out: Path, *, grouped: bool) -> Candidates:
    if not maker.read:
        raise InputError("no rows in this run", "write topic, Q0, document, rank, score, tag", where=maker.path)
    known = maker.known
    if known is not None and not counts.topics:
        raise InputError(
            f"none of its topics is in {known.name} (there: {known.topics[0].topic_id}, here: {counts.unknown[0]})",
            "give the topics of this run",
            where=maker.path,
        )
    missing = () if known is None else (topic.topic_id for topic in known.topics if topic.topic_id not in counts.found)
    return Candidates(
        out=out,
        manifest_file=out.with_name(f"{out.name}.manifest.json"),
        form=maker.form,
        k=maker.k,
        ties=maker.ties,
        read=maker.read,
        topics=counts.topics,
        results=counts.results,
        cut_ties=counts.cut_ties,
        short=tuple(counts.short),
        missing=tuple(missing),
        unknown=tuple(counts.unknown),
        grouped=grouped,
    )
