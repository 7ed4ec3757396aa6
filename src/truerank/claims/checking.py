"""The command `check`: is this number true?"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from truerank.claims.inquiry import ClaimOptions, ClaimSources, Inquiry, asked, completed, read_material
from truerank.claims.questions import planned
from truerank.claims.results import Check
from truerank.options import Encoding, Flag, Labels, Out, Resampling, Scoring, command
from truerank.sources.sharing import reading_once
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started


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
    """Checks whether a result can be believed: all audits that apply to it, on one page.

    The claim is that one run is better than another. The command says first which questions can be answered with what
    was given, and what is lacking for the others. Then it runs the audits that apply, each in a folder of its own below
    `out`, and says what each of them does to the difference. What is certainly wrong is repaired, all at once, and the
    conclusion follows the repaired difference: "HOLDS", "HOLDS, SMALLER THAN CLAIMED", "HOLDS EXCEPT", "CANNOT TELL" or
    "DOES NOT HOLD"; "FILES AT FAULT" where the files allow no comparison (exit code 2), and "UNKNOWN" without two runs.
    A check that was killed continues when it is started again.

    Args:
        paths: what you have: a table of questions with what was expected and what systems retrieved (CSV, JSON, JSONL,
            Parquet), a table of scores, runs and judgments, a BEIR folder, a folder of MTEB results; what each file is
            is told from its content. Or a check.yaml, such as an earlier check wrote; options replace what stands in
            it. "sample" is the embedded sample, whose faults are known. In Python also a frame.
        sources: what is given.
        options: what the claim is about.
        judged: judged pairs of topics and training queries; leaks then rest on what people confirmed.
        encoding: what turns queries into vectors.
        resampling: random removals of topics, confidence of all intervals together, and seed.
        scoring: how runs are scored.
        out: a folder for the page, the card, check.yaml, and the audits.
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
    given = asked(paths, Inquiry(sources, options, judged, encoding, resampling, scoring, out))
    given = replace(given, sources=completed(given.sources))
    # Imported here: all audits together would make the help of this command wait.
    from truerank.claims.answers import answered, only_planned

    progress = progress or Quiet()
    plan = planned(given.sources, given.options.trials)
    # What several audits read is read once.
    with reading_once():
        material = read_material(given.sources, given.table)
        if given.options.dry_run:
            return only_planned(given, material, plan)
        with (
            TemporaryDirectory(prefix="truerank-") if given.out is None else nullcontext(given.out) as place,
            started("check", given.inputs(), given.chosen(), place, packages=("scipy", "ir-measures")) as job,
        ):
            found = answered(given, material, plan, job.folder, progress)
            if given.out is not None:
                found = replace(found, folder=job.folder)
                publish(found, job)
    return found
