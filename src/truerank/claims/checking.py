"""The command `check`: is this number true?"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from truerank.claims.options import ClaimOptions, ClaimSources
from truerank.claims.results import Check
from truerank.options import Encoding, Flag, Labels, Out, Resampling, Scoring, command
from truerank.work.progress import Progress, Quiet


@command
def check(  # noqa: PLR0917 - the file of settings stands first, the rest is named
    paths: Annotated[Any, Flag(metavar="PATH…", positional=True, reads=list[str])] = (),
    sources: ClaimSources = ClaimSources(),
    options: ClaimOptions = ClaimOptions(),
    judged: Labels = Labels(),
    encoding: Encoding = Encoding(),
    resampling: Resampling = Resampling(resamples=1_000),
    scoring: Scoring = Scoring(),
    *,
    out: Out = None,
    progress: Progress | None = None,
) -> Check:
    """Says whether one system is really better than another, and what is wrong with the test.

    What is certainly wrong is repaired and scored again: HOLDS, HOLDS EXCEPT, CANNOT TELL, DOES NOT HOLD, or FILES AT
    FAULT. A check that was killed continues when it is started again.

    Args:
        paths: what you have, recognised by its content: a table of questions with expected and retrieved documents or
            with scores (CSV, JSON, JSONL, Parquet), runs and judgments, a BEIR folder, MTEB results, a check.yaml of an
            earlier check, or "sample", the sample that comes with truerank (./sample is a folder). In Python also a
            frame.
        sources: what is given.
        options: what is compared.
        judged: judged pairs of topics and training queries; leaks then rest on what people confirmed.
        encoding: what turns queries into vectors.
        resampling: random removals of topics, confidence of all intervals together, and seed.
        scoring: how runs are scored.
        out: a folder for the page, the card, check.yaml and the audits.
        progress: receives progress updates.

    Returns:
        The answers and the conclusion.

    Raises:
        InputError: nothing to check, or a source or option is at fault.

    Examples:

        truerank check results.csv

        truerank check qrels.txt bm25.run dense.run --out check/

        truerank check --test beir/scifact --run bm25.run --run dense.run --baseline bm25 --train train-queries.tsv
        --out check/

        truerank check --test topics.trec --qrels track.qrels --docs corpus.jsonl --run a.run --run b.run
        --model-judgments gpt=gpt.qrels --out check/ --fail-on "does not hold"

        truerank check check/check.yaml
    """
    # Imported here: the help of this command would wait for all that a check needs.
    from truerank.claims.answers import answered
    from truerank.claims.inquiry import Inquiry, asked, benchmark_of, completed, read_material
    from truerank.claims.questions import planned
    from truerank.sources.sharing import reading_once
    from truerank.work.publishing import publish
    from truerank.work.runs import run as started

    given = asked(paths, Inquiry(sources, options, judged, encoding, resampling, scoring, out))
    given = replace(given, sources=completed(given.sources))
    progress = progress or Quiet()
    plan = planned(given.sources, given.options.ignore, given.options.select)
    # What several audits read is read once.
    with reading_once():
        material = read_material(given.sources, given.table)
        with (
            TemporaryDirectory(prefix="truerank-") if given.out is None else nullcontext(given.out) as place,
            started("check", given.inputs(), given.chosen(), place, packages=("scipy", "ir-measures")) as job,
        ):
            job.refuse_others("report.html")
            found = replace(answered(given, material, plan, job.folder, progress), benchmark=benchmark_of(material))
            if given.out is not None:
                found = replace(found, folder=job.folder)
                publish(found, job)
    return found
