"""`explain`: which conventions, or common mistakes, give a reported score from these files.

All single choices are tried, then pairs, and triples where the report says enough. That a cause gives the number is no
explanation by itself: among thousands of combinations some give almost any number. So each cause is weighed by how
often it is the reason, and by how many numbers nearby would find one as likely.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.core.audit import Look
from truerank.core.verdict import Verdict
from truerank.core.views import View, columns
from truerank.errors import InputError, OptionError
from truerank.measures.conventions import (
    Alternative,
    Convention,
    ConventionScorer,
    ScoredMeasure,
    TopicScores,
    scored_measure,
)
from truerank.measures.run_divergence import RunDivergence, ScoreDifference, run_divergence, score_divergence
from truerank.measures.scoring import has_runs, judged_pairs
from truerank.options import Columns, Flag, Options, Out, Range, command
from truerank.sources import run_frames
from truerank.sources.golden import read_golden
from truerank.sources.inputs import inputs_of
from truerank.sources.notebook import frame_of
from truerank.sources.qrels import QREL_SCHEMA
from truerank.sources.runs import RUN_SCHEMA, first_places
from truerank.text.identifiers import likely_cause
from truerank.text.printable import counted, listed
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

Word = Literal["SAME", "EXPLAINED", "AMBIGUOUS", "NOT EXPLAINED"]

#: Numbers so far from the default score are taken for as likely as the reported one; more where it is farther off.
_WINDOW: Final = 0.02
#: A cause explains a number where at most this share of the numbers nearby would find one as likely, and where it holds
#: this share of the weight of all that give the number.
_MOST_CHANCE: Final = 0.0075
_LEAST_SHARE: Final = 0.8
#: A pair is so much rarer than the product of its parts says: mistakes are looked for one by one.
_PAIR: Final = 0.5
#: The weight of digits that were cut off.
_TRUNCATED: Final = 0.1
_FEW_DIGITS: Final = 0.0005
#: Scores up to it may count something more than once; larger ones are per cent.
_HIGHEST: Final = 2
_CUT_OFF: Final = "digits cut off instead of rounded"
#: Scores by topic that differ by less are one.
_EQUAL: Final = 1e-9
#: Choices of which triples are tried, and causes that are shown.
_TRIPLED, _SHOWN, _NEAREST = 28, 10, 5
#: Other runs and judgments of the folders that are tried.
_SIBLINGS: Final = 12
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)%?")


@dataclass(frozen=True)
class ReportedScore:
    """A score as it was reported.

    Attributes:
        text: the number as it was written; empty for scores by topic.
        value: the number, as a share.
        unit: the last digit that was reported.
        topics: scores by topic, where these were reported.
    """

    measure: ScoredMeasure
    text: str
    value: float
    unit: float
    topics: Mapping[str, float] | None = None
    percent: bool = False

    @property
    def said(self) -> str:
        """The score as the answer names it, and what it was taken for."""
        return f"{self.measure.name} {self.text or 'by topic'}{' (read as per cent)' * self.percent}"

    def renders(self, score: float, tolerance: float | None) -> str:
        """How a score gives the reported number: "rounded", "truncated", or not at all (empty)."""
        if math.isnan(score):
            return ""
        slack = 1e-9 * max(1.0, abs(score))
        if abs(score - self.value) <= (self.unit / 2 if tolerance is None else tolerance) + slack:
            return "rounded"
        return "truncated" if tolerance is None and 0 <= score - self.value + slack < self.unit else ""


def reported_score(text: str, measure: str, rel: int) -> ReportedScore:
    """What was written behind `--reported`: 0.4074, nDCG@10=0.4074, 40.74, or a file of scores by topic."""
    name, equals, number = text.rpartition("=")
    if not equals:
        name, number = measure, text
    number = number.strip()
    if _NUMBER.fullmatch(number):
        digits = len(number.rstrip("%").partition(".")[2])
        value, unit = float(number.rstrip("%")), 10.0**-digits
        percent = value > _HIGHEST or number.endswith("%")
        if percent:
            value, unit = value / 100, unit / 100
        if not 0 <= value <= (1 if percent else _HIGHEST):
            raise OptionError("reported", f"{number} is not a score", "give one from 0 to 1, or from 0 to 100")
        return ReportedScore(
            scored_measure(name, rel), number, value, unit, percent=percent and not number.endswith("%")
        )
    if not Path(number).is_file():
        raise OptionError("reported", f"'{number}' is neither a number nor a file", "write MEASURE=0.4074")
    table = read_golden(number, measure=name)
    if len(table.scores) != 1:
        raise InputError(f"scores of {len(table.scores)} systems", "give those of one by topic", where=number)
    (frame,) = table.scores.values()
    by_topic = dict(frame.iter_rows())
    unit = 10.0 ** -max(len(f"{value:.12g}".partition(".")[2]) for value in by_topic.values())
    scale = 100 if max(by_topic.values()) > _HIGHEST else 1
    values = {topic: value / scale for topic, value in by_topic.items()}
    mean = float(np.mean([*values.values()]))
    return ReportedScore(scored_measure(name, rel), "", mean, unit / scale, values, percent=scale > 1)


@dataclass(frozen=True)
class ExplainOptions(Options):
    """What was reported, and how far is searched.

    Attributes:
        reported: the reported score: 0.4074, 40.74 or MEASURE=0.4074; repeat the option for several measures. Also
            a file of scores by topic, as trec_eval -q writes it.
        measure: the measure of reported scores that name none.
        tolerance: the largest distance from the reported score; by default half of its last digit.
        rel: the lowest grade that counts as relevant where the measure does not say.
        changes: the largest number of choices that are combined; 3 needs two measures that differ, or scores by topic.
    """

    reported: Annotated[tuple[str, ...], Flag(metavar="[MEASURE=]SCORE", reads=list[str])] = ()
    measure: str = "nDCG@10"
    tolerance: Annotated[float | None, Range(above=0)] = None
    rel: Annotated[int, Range(at_least=1)] = 1
    changes: Annotated[int, Range(at_least=1, at_most=3)] = 3


class _Cause(NamedTuple):
    """A convention with its weight, its scores by measure, and others that no score here tells from it."""

    convention: Convention
    prior: float
    scores: tuple[float, ...]
    same: tuple[Convention, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(ScoreDifference):
    """Which conventions give a reported score.

    `frames["scores"]` has the reported and the default scores, `frames["causes"]` the causes that give them, the
    likeliest first; `facts` says what was tried and what has no effect here.
    """

    look: ClassVar[Look] = Look(
        "Why the score differs from the reported one",
        "{run} by the judgments of {qrels}: {tried:,} conventions and mistakes were tried, alone and together.",
        views=(
            View(
                "scores", "scores", "What was reported, and what truerank gives",
                columns("measure, reported, truerank=default:.6f, difference:+.6f"), section="scores",
            ),
            View(
                "causes", "causes", "What gives the reported numbers",
                columns("share:.0%, computed with=says, scores, option=how"),
                ("The share is that of the weight of all that give the reported numbers.",), section="causes",
            ),
            View(
                "nearest", "nearest", "What comes nearest",
                columns("computed with=says, scores, option=how"), section="causes",
            ),
            View(
                "rivals", "causes", "Who computes this way, and what these files cannot distinguish",
                columns("computed with=says, tools, same scores as=same"), section="causes", place="page",
            ),
            View(
                "without_effect", "without_effect", "What changes no score here", columns("choice, says"),
                section="tried", place="page",
            ),
        ),
        sections={"scores": "The numbers", "causes": "What gives them", "tried": "What was tried"},
    )  # fmt: skip


@command
def explain(
    qrels: Annotated[Any, Flag(metavar="SRC", reads=str)] = None,
    run: Annotated[Any, Flag(metavar="FILE", reads=list[str])] = (),
    options: ExplainOptions = ExplainOptions(),
    *,
    paths: Annotated[Any, Flag(metavar="PATH…", positional=True, reads=list[str])] = (),
    columns: Columns = "",
    previous_qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    other_qrels: Annotated[tuple[str, ...], Flag(metavar="SRC", reads=list[str])] = (),
    other_run: Annotated[tuple[str, ...], Flag(metavar="FILE", reads=list[str])] = (),
    out: Out = None,
    progress: Progress | None = None,
) -> ScoreDifference:
    """Finds out why a reported score differs from yours: which convention or mistake gives it.

    Gains, ideal rankings, divisors, cut-offs, ties, which topics are averaged, which rows and ids are read, and how the
    number was written are varied, one at a time, in pairs and in threes. Other runs beside the run, and other judgments
    beside the judgments, are tried too. With two runs, or two tables of scores by topic, it says where they differ.

    Args:
        qrels: relevance judgments.
        run: the run that was scored; give two of them, and no reported score, to see where they differ.
        options: what was reported, and how far is searched.
        paths: instead of `qrels` and `run`: what `check` takes, such as a table of questions with what was expected and
            what a system retrieved, or judgments and a run in any form.
        columns: what the columns of tables are, where their names do not say; see `check`.
        previous_qrels: an earlier version of the judgments.
        other_qrels: other judgments that may have been taken, such as those of another split; by default those beside
            `qrels`.
        other_run: other runs that may have been taken; by default those beside `run`.
        out: a folder for the page, the tables and summary.json.
        progress: where progress is shown.

    Returns:
        The verdict: SAME, EXPLAINED, AMBIGUOUS or NOT EXPLAINED, with the causes that give the numbers; of two runs
        SAME or DIFFERENT, with the first difference of each topic.

    Raises:
        InputError: a fault in a file; a measure whose conventions are not known.

    Examples:

        truerank explain --qrels dl19.qrels --run bm25.run --reported 0.4074

        truerank explain --qrels dl19.qrels --run bm25.run --reported nDCG@10=0.4074 --reported AP=0.2311

        truerank explain --qrels dl19.qrels --run bm25.run --reported nDCG@10=theirs-per-topic.txt --out why/

        truerank explain --qrels dl19.qrels --run mine.run --run theirs.run
    """
    files = None
    if has_runs(paths):
        from truerank.sources.recognition import opened

        files = opened(paths, columns, options.measure, qrels=qrels, run=run)
        qrels, run = (files.sources.get(name) for name in ("qrels", "run"))
        run = list((run or {}).values()) if run is None or isinstance(run, Mapping) else run
    runs = [*run] if isinstance(run, list | tuple) else [run]
    siblings: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    if files is not None and files.scores is not None:
        found: ScoreDifference = _divergence_of_scores(files.scores.scores, options.measure, files.readings[0].path)
    elif len(runs) == 2 and not options.reported:
        found = _divergence_of(qrels, runs, options)
    else:
        if len(runs) != 1:
            raise OptionError("run", f"{len(runs)} runs", "give the one that was scored, or two and no reported score")
        if qrels is None:
            raise OptionError("qrels", "no judgments", "give those that the run was scored by")
        siblings = other_qrels or _siblings(qrels, "qrels")
        beside = other_run or _siblings(runs[0], "run")
        judged, repeated = judged_pairs(qrels)
        whole = _run_of(runs[0], judged)
        remark = first_places(whole, _named(runs[0]))[1]
        scorer = ConventionScorer(
            judged,
            whole,
            previous=None if previous_qrels is None else _read(previous_qrels, "qrels"),
            other_qrels=dict(_readable(siblings, lambda one: _read(one, "qrels"), strict=bool(other_qrels))),
            other_runs=dict(_readable(beside, lambda one: _read(one, "run"), strict=bool(other_run))),
        )
        reported, names = _reported(options), (_named(qrels), _named(runs[0]))
        for one in reported:
            if one.topics is not None:
                _check_topics(pl.Series([*one.topics]), judged, "reported scores")
        found = explanation(
            scorer,
            reported,
            options,
            names=names,
            remarks=(*repeated, *filter(None, [remark])),
            progress=progress or Quiet(),
        )
    if out is not None:
        inputs = inputs_of(
            table=files and files.paths,
            qrels=qrels,
            run=runs,
            previous_qrels=previous_qrels,
            other_qrels=list(siblings),
            other_run=list(beside),
        )
        with started("explain", inputs, {"options": options}, out) as job:
            publish(found, job)
            found = type(found)(found.verdicts, found.findings, found.frames, found.facts, job.folder)
    return found if files is None else found.read_from(files.readings)


def _reported(options: ExplainOptions) -> list[ReportedScore]:
    if not options.reported:
        raise OptionError("reported", "nothing to explain", "give the reported score: --reported nDCG@10=0.4074")
    reported = [reported_score(text, options.measure, options.rel) for text in options.reported]
    names = [one.measure.name for one in reported]
    if twice := [name for name in names if names.count(name) > 1]:
        raise OptionError("reported", f"two scores of {twice[0]}", "give one score for each measure")
    return reported


def _named(source: Any) -> str:
    return Path(source).name if isinstance(source, str | Path) else "the frame"


def _divergence_of(qrels: Any, runs: Sequence[Any], options: ExplainOptions) -> RunDivergence:
    """Two runs beside each other."""
    names = (_named(runs[0]), _named(runs[1]))
    if names[0] == names[1]:
        names = (str(runs[0]), str(runs[1])) if names[0] != "the frame" else ("the first", "the second")
    judged = None if qrels is None else _read(qrels, "qrels")
    left, right = (_run_of(one, judged) for one in runs)
    return run_divergence(left, right, names, qrels=judged, measure=options.measure, rel=options.rel)


def _divergence_of_scores(scores: Mapping[str, pl.DataFrame], measure: str, where: str) -> RunDivergence:
    if len(scores) != 2:
        raise InputError(
            f"scores of {counted(len(scores), 'system')}", "give those of two, or a run and judgments", where=where
        )
    (first, left), (second, right) = scores.items()
    return score_divergence(left, right, (first, second), measure)


def _read(source: Any, noun: str) -> pl.DataFrame:
    if isinstance(source, str | Path):
        # Documents that occur twice are one of the causes.
        return judged_pairs(source)[0] if noun == "qrels" else pl.concat(run_frames(source))
    schema, number = (QREL_SCHEMA, "relevance") if noun == "qrels" else (RUN_SCHEMA, "score")
    return frame_of(source, schema, number)


def _run_of(source: Any, judged: pl.DataFrame | None) -> pl.DataFrame:
    run = _read(source, "run")
    if judged is not None:
        _check_topics(run["topic_id"].unique(maintain_order=True), judged, _named(source))
    return run


def _check_topics(topics: pl.Series, judged: pl.DataFrame, where: str) -> None:
    """Refuses topics of which none is judged: there is no score to explain."""
    asked = judged["topic_id"].unique(maintain_order=True)
    if not topics.is_in(asked.implode()).any():
        fault = f"none of its {len(topics):,d} topics is judged{likely_cause(topics, asked)}"
        raise InputError(fault, "give results and judgments of the same topics, with the same ids", where=where)


def _siblings(source: Any, noun: str) -> tuple[str, ...]:
    """Files of the same kind in the folder of a file."""
    path = Path(str(source)) if isinstance(source, str | Path) else None
    if path is None or not path.is_file():
        return ()
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    others = (one for one in sorted(path.parent.iterdir()) if one.name.endswith(ending or ".run") and one != path)
    same = (one for one in others if one.is_file() and (noun in one.name or noun not in path.name))
    return tuple(str(one) for one in itertools.islice(same, _SIBLINGS))


def _readable(
    sources: Iterable[str], read: Callable[[str], pl.DataFrame], *, strict: bool
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Those that can be read; a file that was not named may be anything."""
    for source in sources:
        try:
            yield Path(source).name, read(source)
        except InputError:
            if strict:
                raise


def explanation(
    scorer: ConventionScorer,
    reported: Sequence[ReportedScore],
    options: ExplainOptions = ExplainOptions(),
    *,
    names: tuple[str, str] = ("the judgments", "the run"),
    remarks: tuple[str, ...] = (),
    progress: Progress = Quiet(),
) -> Explanation:
    """What gives the reported scores; see `explain`."""
    search = _Search(scorer, reported, options)
    default = search.cause(())
    told = [place for place, one in enumerate(reported) if not search.renders(one, (), default.scores[place])]
    causes, useless = search.singles(progress)
    tried = len(causes)
    if told and options.changes > 1:
        pairs = search.combined(causes, 2, progress)
        tried += len(pairs)
        # A measure that did not change is evidence, too.
        enough = len(reported) > 1 or any(one.topics is not None for one in reported)
        causes = search.merged([*causes, *pairs])
        if enough and options.changes > 2 and not any(search.matching(one) for one in causes):
            triples = search.combined(causes, 3, progress)
            tried += len(triples)
            causes = search.merged([*causes, *triples])
    weighed = sorted(((search.weight(one), one) for one in causes), key=lambda pair: (-pair[0], _code(pair[1])))
    matching = [(weight, cause) for weight, cause in weighed if weight > 0]
    if not told:
        word: Word = "SAME"
    elif not matching:
        word = "NOT EXPLAINED"
    else:
        word = "AMBIGUOUS"
    total = sum(weight for weight, _ in matching)
    chance, counted, nearby = (1.0, 0, 0) if not matching or not told else search.chance(matching[0][0], causes, told)
    # Three digits of one score explain nothing, and whatever parts the run from the judgments gives 0.
    few = len(reported) == 1 and reported[0].topics is None and reported[0].unit > _FEW_DIGITS
    nothing = all(
        not round(value / reported[place].unit)
        for place in told
        for value in (reported[place].topics or {"": reported[place].value}).values()
    )
    if (
        word == "AMBIGUOUS"
        and not (few or nothing)
        and chance <= _MOST_CHANCE
        and matching[0][0] >= _LEAST_SHARE * total
    ):
        word = "EXPLAINED"
    nearest = search.nearest(causes) if told and not matching else []
    shown = matching[:_SHOWN] if word != "SAME" else []
    facts = {
        "qrels": names[0], "run": names[1], "tried": tried, "matching": len(matching), "chance": chance,
        "matched_nearby": counted, "numbers_nearby": nearby, "nothing_found": bool(told) and nothing,
        "best_scores": dict(
            zip((one.measure.name for one in reported), matching[0][1].scores if matching else (), strict=False)
        ),
    }  # fmt: skip
    frames = {
        "scores": pl.DataFrame(
            [(one.measure.name, one.text or f"{len(one.topics or ())} topics", default.scores[place],
              default.scores[place] - one.value) for place, one in enumerate(reported)],
            schema={"measure": pl.String, "reported": pl.String, "default": pl.Float64, "difference": pl.Float64},
            orient="row",
        ),
        "causes": _rows([(weight / total, cause) for weight, cause in shown], reported),
        "without_effect": pl.DataFrame(
            [(one.code, one.says) for one in useless], schema={"choice": pl.String, "says": pl.String}, orient="row"
        ),
    }  # fmt: skip
    if nearest:
        frames["nearest"] = _rows([(None, cause) for cause in nearest], reported)
    best = matching[0][1] if matching else None
    shown_by = default if word == "SAME" else best
    facts["cut_off"] = shown_by is not None and any(
        search.renders(one, shown_by.convention, score) == "truncated"
        for one, score in zip(reported, shown_by.scores, strict=True)
    )
    chances = (f"{counted} of {nearby:,} numbers nearby would find a cause as likely.",) if counted else ()
    verdict = Verdict(
        word, _sentence(word, best, reported, default, facts),
        settles=_settles(word, reported, told, matching, search.longest(told)),
        rests_on=" ".join((*remarks, *chances)),
    )  # fmt: skip
    return Explanation((verdict,), frames=frames, facts=facts)


def _rows(causes: Iterable[tuple[float | None, _Cause]], reported: Sequence[ReportedScore]) -> pl.DataFrame:
    return pl.DataFrame(
        [_row(share, cause, reported) for share, cause in causes],
        schema={"code": pl.String, "says": pl.String, "share": pl.Float64, "scores": pl.String, "how": pl.String,
                "tools": pl.String, "same": pl.String, "same_codes": pl.List(pl.String)},
        orient="row",
    )  # fmt: skip


def _row(share: float | None, cause: _Cause, reported: Sequence[ReportedScore]) -> tuple[Any, ...]:
    parts = cause.convention
    return (
        _code(cause),
        listed([one.says for one in parts]),
        share,
        ", ".join(f"{one.measure.name} {score:.6f}" for one, score in zip(reported, cause.scores, strict=True)),
        " ".join(dict.fromkeys(_option(one, reported) for one in parts if one.how)),
        "; ".join(one.tools for one in parts if one.tools),
        "; ".join(listed([one.says for one in other]) for other in cause.same[:3]),
        [" + ".join(one.code for one in other) for other in cause.same],
    )


def _option(choice: Alternative, reported: Sequence[ReportedScore]) -> str:
    """What makes truerank score so, for the first measure that the choice is for."""
    measures = [one.measure for one in reported if not choice.serves or one.measure.family in choice.serves]
    first = measures[0] if measures else reported[0].measure
    return choice.how.replace("FAMILY", first.family).replace("@K", f"@{first.cutoff}" if first.cutoff else "")


def _code(cause: _Cause) -> str:
    return " + ".join(one.code for one in cause.convention)


def _sentence(
    word: Word, best: _Cause | None, reported: Sequence[ReportedScore], default: _Cause, facts: Mapping[str, Any]
) -> str:
    numbers = listed([one.said for one in reported])
    own = listed([f"{one.measure.name} {score:.5f}" for one, score in zip(reported, default.scores, strict=True)])
    if word == "SAME":
        return f"truerank's own conventions give {numbers}{f', with {_CUT_OFF}' * facts['cut_off']}."
    if best is None:
        return f"None of {facts['tried']:,} causes that were tried gives {numbers}; truerank gives {own}."
    says = listed([*(one.says for one in best.convention), *([_CUT_OFF] if facts["cut_off"] else [])])
    if word == "EXPLAINED":
        was = "were" if len(reported) > 1 else "was"
        return f"{numbers} {was} computed with {says}, at least; truerank gives {own}."
    several = f" {facts['matching'] - 1:,} other causes give it too." if facts["matching"] > 1 else ""
    few = "A score of 0 does not show which fault it was" if facts["nothing_found"] else "So few digits cannot tell"
    return f"{numbers} may have been computed with {says}.{several} {few}. truerank gives {own}."


def _settles(
    word: Word,
    reported: Sequence[ReportedScore],
    told: Sequence[int],
    matching: Sequence[tuple[float, _Cause]],
    longest: Sequence[float],
) -> str:
    """What would decide between the causes."""
    if word in ("SAME", "EXPLAINED"):
        return ""
    if word == "NOT EXPLAINED":
        by_topic = "Give scores by topic (--reported MEASURE=FILE): they show which topics differ."
        if not longest:
            return by_topic
        most = listed(
            [f"{reported[place].measure.name} up to {score:.4f}" for place, score in zip(told, longest, strict=True)]
        )
        return f"A run with more results per topic could give it ({most}): look for such a run. {by_topic}"
    ways = ["scores by topic (--reported MEASURE=FILE)"]
    known = {one.measure.family for one in reported}
    other = next((name for name in ("AP", "nDCG@10", "P@10") if name.partition("@")[0] not in known), "")
    if other:
        ways.append(f"a second measure (--reported {other}=…)")
    if all(one.text for one in reported):
        ways.append("one digit more")
    return f"Any of these would decide: {listed(ways)}."


class _Search:
    """All causes by their scores."""

    def __init__(self, scorer: ConventionScorer, reported: Sequence[ReportedScore], options: ExplainOptions) -> None:
        self._scorer, self._reported, self._tolerance = scorer, reported, options.tolerance
        self._by_topic = any(one.topics is not None for one in reported)
        families = {one.measure.family for one in reported}
        self._choices = [one for one in scorer.choices if not one.serves or families.intersection(one.serves)]
        self._default = self.cause(())

    def _scores(self, convention: Convention) -> list[TopicScores]:
        return [self._scorer.scores(one.measure, self._serving(convention, one)) for one in self._reported]

    def _serving(self, convention: Convention, one: ReportedScore) -> Convention:
        """The choices that a measure follows."""
        return tuple(choice for choice in convention if not choice.serves or one.measure.family in choice.serves)

    def cause(self, convention: Convention) -> _Cause:
        found = self._scores(convention)
        prior = math.prod(one.prior for one in convention) * _PAIR ** max(0, len(convention) - 1)
        return _Cause(convention, prior, tuple(one.score for one in found))

    def _signature(self, cause: _Cause) -> tuple[Any, ...]:
        """What distinguishes a cause from others here."""
        if not self._by_topic:
            return tuple(round(score, 10) for score in cause.scores)
        found = self._scores(cause.convention)
        return tuple((round(one.score, 10), np.where(one.kept, one.values, -1.0).round(9).tobytes()) for one in found)

    def singles(self, progress: Progress) -> tuple[list[_Cause], list[Alternative]]:
        """Single choices, those that give the same scores as one, and the choices without effect."""
        causes, useless, own = [], [], self._signature(self._default)
        for choice in self._choices:
            cause = self.cause((choice,))
            if self._signature(cause) == own or any(math.isnan(score) for score in cause.scores):
                useless.append(choice)
            else:
                causes.append(cause)
        return self.merged(causes), useless

    def merged(self, causes: Iterable[_Cause]) -> list[_Cause]:
        """Causes that no score tells apart, as one with their weights together, under the likeliest."""
        groups: dict[tuple[Any, ...], list[_Cause]] = {}
        for cause in causes:
            groups.setdefault(self._signature(cause), []).append(cause)
        merged = []
        for group in groups.values():
            first = min(group, key=lambda one: (len(one.convention), -one.prior, _code(one)))
            same = [one.convention for one in group if one is not first] + [two for one in group for two in one.same]
            merged.append(_Cause(first.convention, sum(one.prior for one in group), first.scores, tuple(same)))
        return merged

    def combined(self, causes: Sequence[_Cause], size: int, progress: Progress) -> list[_Cause]:
        """Causes of several choices, each of another dimension."""
        single = sorted((one for one in causes if len(one.convention) == 1), key=lambda one: (-one.prior, _code(one)))
        parts = [one.convention[0] for one in (single if size == 2 else single[:_TRIPLED])]
        # A weight stands for all choices that give the same.
        weight = {one.convention[0]: one.prior for one in single}
        found = []
        chosen = [
            group
            for group in itertools.combinations(parts, size)
            if len({one.dimension for one in group}) == size and not _clash(group)
        ]
        progress.start("pairs" if size == 2 else "triples", len(chosen))
        for group in chosen:
            cause = self.cause(group)
            progress.advance(1)
            if not any(math.isnan(score) for score in cause.scores):
                prior = math.prod(weight[one] for one in group) * _PAIR ** (size - 1)
                found.append(cause._replace(prior=prior))
        return found

    def renders(self, one: ReportedScore, convention: Convention, score: float) -> str:
        if one.topics is None:
            return one.renders(score, self._tolerance)
        if abs(score - one.value) > one.unit + _EQUAL:
            return ""
        found = self._scorer.scores(one.measure, self._serving(convention, one))
        values = dict(zip(found.topics, found.values.tolist(), strict=True))
        kept = {topic for topic, keep in zip(found.topics, found.kept.tolist(), strict=True) if keep}
        shared = kept & set(one.topics)
        allowed = max(one.unit / 2, self._tolerance or 0.0) + _EQUAL
        if not shared or any(abs(values[topic] - one.topics[topic]) > allowed for topic in shared):
            return ""
        # Topics of one side only: a rule for topics says otherwise, unless they score nothing.
        rest = [values[topic] for topic in kept - shared] + [one.topics[topic] for topic in set(one.topics) - kept]
        return "" if any(abs(value) > allowed for value in rest) else "rounded"

    def weight(self, cause: _Cause) -> float:
        """The weight of a cause that gives all reported numbers; 0 for any other."""
        weight = cause.prior
        for one, score in zip(self._reported, cause.scores, strict=True):
            how = self.renders(one, cause.convention, score)
            weight *= {"": 0.0, "truncated": _TRUNCATED}.get(how, 1.0)
            if not weight:
                return 0.0
        return weight

    def matching(self, cause: _Cause) -> bool:
        return self.weight(cause) > 0

    def nearest(self, causes: Iterable[_Cause]) -> list[_Cause]:
        """The nearest causes; one that adds to a cause before it says nothing more."""
        nearest: list[_Cause] = []
        for cause in sorted(causes, key=self.distance):
            if not any(set(one.convention) < set(cause.convention) for one in nearest):
                nearest.append(cause)
            if len(nearest) == _NEAREST:
                break
        return nearest

    def longest(self, told: Sequence[int]) -> tuple[float, ...]:
        """What the measures that differ could reach, were every relevant document right behind the last result.

        Empty where a longer run could not give the reported scores.
        """
        appended = next((one for one in self._choices if one.code == "run.appended"), None)
        if appended is None or not told or any(self._reported[place].topics is not None for place in told):
            return ()
        most, own = self.cause((appended,)).scores, self._default.scores
        between = all(own[place] < self._reported[place].value <= most[place] for place in told)
        return tuple(most[place] for place in told) if between else ()

    def distance(self, cause: _Cause) -> float:
        return max(abs(score - one.value) / one.unit for one, score in zip(self._reported, cause.scores, strict=True))

    def chance(self, weight: float, causes: Sequence[_Cause], told: Sequence[int]) -> tuple[float, int, int]:
        """The share of the numbers nearby that a cause of at least this weight would give.

        Returns:
            The share; how many such numbers there are; how many numbers there are nearby.
        """
        if any(self._reported[place].topics is not None for place in told):
            return 0.0, 0, 0
        units = [max(self._reported[place].unit, 2 * (self._tolerance or 0)) for place in told]
        centres = [self._default.scores[place] for place in told]
        widths = [
            max(_WINDOW, abs(self._reported[place].value - centre)) for place, centre in zip(told, centres, strict=True)
        ]
        nearby = math.prod(2 * round(width / unit) for width, unit in zip(widths, units, strict=True))
        others = [place for place in range(len(self._reported)) if place not in told]
        numbers: set[tuple[int, ...]] = set()
        for cause in causes:
            if any(not self._reported[place].renders(cause.scores[place], self._tolerance) for place in others):
                continue
            scores = [cause.scores[place] for place in told]
            if any(abs(score - centre) > width + unit for score, centre, width, unit in zip(
                scores, centres, widths, units, strict=True
            )):  # fmt: skip
                continue
            if cause.prior >= weight - 1e-12:
                numbers.add(tuple(round(score / unit) for score, unit in zip(scores, units, strict=True)))
            if cause.prior * _TRUNCATED >= weight - 1e-12:
                numbers.add(tuple(math.floor(score / unit) for score, unit in zip(scores, units, strict=True)))
        return min(1.0, len(numbers) / max(1, nearby)), len(numbers), nearby


def _clash(group: Sequence[Alternative]) -> bool:
    """Whether one choice makes another one meaningless."""
    names = {one.code for one in group}
    cut = any(
        one.dimension == "unjudged" or one.code.startswith(("run.depth", "run.rows", "run.first")) for one in group
    )
    return {"average.micro", "divisor.hit"} <= names or ("ties.averaged" in names and cut)
