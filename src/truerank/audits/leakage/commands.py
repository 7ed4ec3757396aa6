"""`leakage calibrate` and `leakage clean`: the commands over the functions that do the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from truerank.audits.leakage import calibration
from truerank.audits.leakage.calibration import Calibration
from truerank.audits.leakage.clean import Cleaning, LeakRules, clean_train
from truerank.audits.leakage.options import opened_labels
from truerank.audits.leakage.reduction import reduce_topics
from truerank.audits.leakage.results import AuditResult
from truerank.errors import OptionError
from truerank.options import Confidence, Flag, Labels, Options, Range, Seed, command


@command
def calibrate(
    judged: Labels = Labels(),
    *,
    min_precision: Annotated[float, Range(above=0, at_most=1)] = 0.9,
    threshold_rule: Literal["lower-bound", "lowest"] = "lower-bound",
    encoder: Annotated[str, Flag(metavar="NAME")] = "",
    audit: Annotated[str | Path | None, Flag(metavar="DIR", reads=str)] = None,
    drawing: Literal["pairs", "topics"] = "pairs",
    confidence: Confidence = 0.95,
    seed: Seed = 0,
) -> Calibration:
    """Finds the lowest threshold whose pairs are precise enough, from judged pairs with similarities.

    Use the lower bound: above it, the precision is at least the target with the given confidence. At a point estimate,
    the precision is below the target in about half of all samples. Pairs are weighted by their sampling probability.
    With too few labels near the answer, the command says what to label next and ends with exit code 2.

    Args:
        judged: judged pairs.
        min_precision: the precision that the threshold must reach.
        threshold_rule: lower-bound takes the lowest threshold above which the precision is at least the target with
            this confidence; lowest, as in the leakage paper, the lowest whose estimated precision is.
        encoder: the encoder that the similarities come from.
        audit: the audit whose pairs were sampled; its similarities sharpen the bound.
        drawing: what is drawn for the intervals; topics where pairs of a topic are alike.
        confidence: of the lower bound and of the intervals.
        seed: of the draws (2,000).

    Returns:
        The curve and the threshold, or the reason why there is none (`Calibration.refused`).

    Raises:
        InputError: no pair can be used, or an option is out of its range.

    Examples:

        truerank leakage calibrate --labels judged.jsonl --min-precision 0.9 --encoder packaged

        truerank leakage calibrate --labels leaks.judged --audit audit/ --encoder packaged

    Source: the leakage paper, section 3 ("the lowest that yields a 0.9 precision"); `calibration` for the estimates.
    """
    judgments = opened_labels(judged)
    if judgments is None:
        raise OptionError("labels", "no judged pairs", "give label files or judging stores")
    return calibration.calibrate(
        judgments,
        min_precision=min_precision,
        rule=threshold_rule,
        encoder=encoder,
        population=None if audit is None else calibration.similarities(str(audit)),
        drawing=drawing,
        confidence=confidence,
        seed=seed,
    )


@dataclass(frozen=True)
class CleaningSide(Options):
    """What is removed from where.

    Attributes:
        remove: leaking queries or examples from the training data (train), or leaked topics from the test set (test).
        test: the test set to reduce.
        test_set: the test set's name in the audit, where its file is called otherwise.
    """

    remove: Literal["train", "test"] = "train"
    test: Annotated[str | Path | None, Flag(metavar="SRC", reads=str)] = None
    test_set: Annotated[str | None, Flag(metavar="NAME")] = None


@command
def clean(
    audit: Annotated[AuditResult | str | Path, Flag(metavar="DIR", reads=str)],
    train: Annotated[str | Path | None, Flag(metavar="SRC", reads=str)] = None,
    *,
    out: Annotated[str | Path, Flag(metavar="FILE", reads=Path)],
    side: CleaningSide = CleaningSide(),
    rules: LeakRules = LeakRules(),
    judged: Labels = Labels(),
) -> Cleaning:
    """Removes what leaks from training data or a test set.

    What stays keeps its bytes, ids and order. The command also writes FILE.manifest.json and, for training data,
    FILE.removed.tsv (what was removed and why). The file appears last and whole, or not at all.

    Args:
        audit: the folder that `leakage audit` wrote.
        train: the training source to clean.
        out: the cleaned file; its name says the compression.
        side: what is removed from where.
        rules: which pairs count as leaks.
        judged: judged pairs.

    Returns:
        The counts: a `TrainCleaning` or a `TestReduction`.

    Raises:
        InputError: a source, label or option is at fault, or the output cannot be written.

    Examples:

        truerank leakage clean --train queries.tsv.gz --audit audit/ --out queries.clean.tsv.gz

        truerank leakage clean --remove test --test topics.trec --audit audit/ --out topics.clean.trec
    """
    if side.remove == "train":
        if train is None:
            raise OptionError("train", "no training source", "name the one to clean")
        return clean_train(train, audit, out, rules, judged)
    if side.test is None:
        raise OptionError("test", "no test set", "name the one to reduce")
    return reduce_topics(side.test, audit, out, test_set=side.test_set, rules=rules, judged=judged)
