"""From facts to verdicts: the only place with limits for words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from truerank.audits.leaderboard.claims import TaskClaim, TaskDifference
from truerank.audits.leaderboard.comparability import RULES
from truerank.core.verdict import Verdict
from truerank.measures.magnitudes import ROUNDING
from truerank.sources.golden_rows import first_names
from truerank.text.printable import listed


def rows_verdict(counts: Mapping[str, int], facts: Mapping[str, Any]) -> Verdict:
    """Whether the rows are comparable, by the rules that were found."""
    named = {"mixed-splits": "several splits", "mixed-scales": "several scales",
             "mixed-languages": "several languages",
             "another-main-score": "main scores of other measures",
             "impossible-scores": "scores that contradict themselves",
             "mixed-data-revisions": "several revisions of data", "mixed-prompts": "several prompts",
             "zero-scores": "scores of exactly 0", "missing-task": "missing tasks",
             "several-revisions": "several revisions of a model", "equal-systems": "copies",
             "trained-on-task": "training on tasks"}  # fmt: skip
    found = [f"{words} ({counts[rule]:,d})" for rule, words in named.items() if counts.get(rule)]
    rests = f"{facts['cells']:,d} scores of {facts['systems']:,d} systems on {facts['tasks']:,d} tasks."
    if not found:
        return Verdict("COMPARABLE", "No fault was found: the rows can be compared.", rests, subject="rows")
    grave = any(count and RULES[rule].severity == "fault" for rule, count in counts.items())
    word = "NOT COMPARABLE" if grave else "MIXED"
    order = f"The order is over {facts['shared_tasks']:,d} tasks that {facts['compared']:,d} systems share"
    order += f", without {odd:,d} scores on another scale." if (odd := facts["on_another_scale"]) else "."
    return Verdict(word, f"The rows mix {', '.join(found)}.", rests, order, "rows")


def order_verdict(order: Mapping[str, Any], subject: str, left: pl.DataFrame) -> Verdict:
    """Whether there is a first place.

    Args:
        order: facts of one order.
        subject: what it is on.
        left: the systems that are left out of it, against the first one: see `standings`.
    """
    noun, rows, leader = order["noun"], order["rows"], order["leader"]
    rivals = left.filter(~(pl.col("difference_high") < 0).fill_null(value=False))
    rival = _rival(rivals, leader) if len(rivals) else ""
    if not order["enough"]:
        sentence = f"{rows:,d} {noun} are too few for any test; at least six are needed.{rival}"
        return Verdict("CANNOT TELL", sentence, subject=subject)
    group, neighbours = order["first_group"], order["neighbours"]
    told, alone = order["neighbours_told"], order["neighbours_alone"]
    rests = (
        f"Of the {neighbours:,d} pairs of neighbours among the first {neighbours + 1:,d}, "
        f"{order['neighbours_family']:,d} differ where all {order['compared'] - 1:,d} are tested together. "
        f"Where all pairs of systems are, {told:,d} differ; where each is tested alone, {alone:,d}."
    )
    if group == 1 and rival:
        sentence = f"{leader} is first of the {order['compared']:,d} systems with all {order['tasks']:,d} tasks.{rival}"
        settles = "A score of each of these systems on each task, all on one scale, would settle it."
        return Verdict("CANNOT TELL", sentence, rests, settles, subject)
    if group == 1:
        sentence = f"{leader} is first: better than all others"
        if len(left):
            sentence += f", also than those left out, on the tasks that both have: {first_names(left['system'])}"
        return Verdict("FIRST", f"{sentence}.", rests, subject=subject)
    sentence = f"The first {group:,d} of {order['compared']:,d} systems cannot be told apart.{rival}"
    settles = "Take these ranks as equal; more tasks, or scores by question, would separate them."
    return Verdict("TIED", sentence, rests, settles, subject)


def _rival(rivals: pl.DataFrame, leader: str) -> str:
    """The first of the systems that are left out and not shown worse: of those that are better, where there are."""
    name, why, tasks, *ends = rivals.sort(pl.col("difference_low").fill_null(-1) <= 0, maintain_order=True).row(0)[:6]
    how = "is better than" if (ends[1] or 0) > 0 else "may equal"
    text = f"shares no task with {leader}"
    if tasks:
        text = f"{how} {leader} on the tasks that both have ({tasks:,d}): {_ends(*ends)}"
    text = f" {name}, which is left out ({why}), {text}."
    return text if len(rivals) == 1 else f"{text} Of those left out, {len(rivals) - 1:,d} more may equal {leader}."


def claim_verdict(claim: TaskClaim, claims: int = 1) -> Verdict:
    """Whether one system is better than another on these tasks, and on another task of this kind.

    Args:
        claim: what was found.
        claims: that are tested together.
    """
    every, rest = claim.every, claim.untrained
    here = None if every.fixed is None else _word(*every.fixed)
    kind = _word(every.low, every.high)
    word = kind
    if here is not None:
        word = here if here != "HOLDS" or kind == "HOLDS" else "HOLDS EXCEPT"
        word = "DOES NOT HOLD" if kind == "DOES NOT HOLD" and here == "CANNOT TELL" else word
    if every.fixed is None:
        sentence = f"On these {every.tasks} tasks the mean difference is {_signed(every.value)}"
    else:
        sentence = f"On these {every.tasks} tasks: {here}, {_ends(every.value, *every.fixed)} over questions"
    sentence += f". On another task of this kind: {kind}, {_ends(every.value, every.low, every.high, every.few)}."
    if rest is not None:
        sentence += f" Without the {every.tasks - rest.tasks} tasks that either was trained on: {_rest(rest)}."
        if word == "HOLDS" and not (rest.low is not None and rest.low > 0):
            word = "HOLDS EXCEPT"
    rests = f"Better on {every.wins} tasks, worse on {every.losses}."
    if claims > 1:
        rests += f" Intervals hold for {claims} claims together (Bonferroni)."
    settles = "Tasks are not a random sample; the interval for another task treats them as one."
    if every.fixed is None:
        settles += " Scores by question would show how far chance goes on these tasks."
    return Verdict(word, sentence, rests, settles, f"{claim.system} > {claim.baseline}")


def scale_verdict(claim: Sequence[str], lost: Sequence[str]) -> Verdict:
    """That of a claim about two systems, of which all scores of some are on another scale than those of most."""
    sentence = f"All scores of {listed(lost)} are on another scale than those of most systems."
    return Verdict("CANNOT TELL", sentence, settles="Write all scores on one scale.", subject=" > ".join(claim))


def _word(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "CANNOT TELL"
    return "HOLDS" if low > 0 else "DOES NOT HOLD" if high < 0 else "CANNOT TELL"


def _rest(rest: TaskDifference) -> str:
    ends = _ends(rest.value, rest.low, rest.high, rest.few)
    return f"{_word(rest.low, rest.high)}, {ends}" if rest.tasks else "none is left"


def _ends(value: float, low: float | None, high: float | None, few: str = "fewer than two tasks") -> str:
    if low is None or high is None:
        return f"{_signed(value)}, {few[:1].lower()}{few[1:]}"
    if high - low <= ROUNDING:
        return f"{_signed(value)} on each of them"
    return f"{_signed(value)} ({_signed(low)} to {_signed(high)})"


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")
