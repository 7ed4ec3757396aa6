"""From facts to verdicts: the only place with limits for words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truerank.core.verdict import Verdict


def rows_verdict(counts: Mapping[str, int], facts: Mapping[str, Any]) -> Verdict:
    """Whether the rows are comparable, by the rules that were found."""
    named = {"mixed-splits": "several splits", "mixed-scales": "several scales",
             "mixed-data-revisions": "several revisions of data", "missing-task": "missing tasks",
             "several-revisions": "several revisions of a model", "equal-systems": "copies",
             "trained-on-task": "training on tasks"}  # fmt: skip
    found = [f"{words} ({counts[rule]:,d})" for rule, words in named.items() if counts.get(rule)]
    rests = f"{facts['cells']:,d} scores of {facts['systems']:,d} systems on {facts['tasks']:,d} tasks."
    if not found:
        return Verdict("COMPARABLE", "Nothing that was looked for makes rows incomparable.", rests, subject="rows")
    word = "NOT COMPARABLE" if counts.get("mixed-splits") or counts.get("mixed-scales") else "MIXED"
    return Verdict(
        word, f"The rows mix {', '.join(found)}.", rests,
        f"The order is over {facts['shared_tasks']:,d} tasks that {facts['compared']:,d} systems share.", "rows",
    )  # fmt: skip


def order_verdict(facts: Mapping[str, Any], rows: str) -> Verdict:
    """Whether there is a first place."""
    if not facts["enough"]:
        sentence = f"{facts['rows_of_evidence']:,d} {rows} are too few for any test; give six or more."
        return Verdict("CANNOT TELL", sentence, subject="order")
    group, neighbours, told = facts["first_group"], facts["neighbours"], facts["neighbours_told"]
    rests = (
        f"Of {neighbours:,d} neighbours among the first {neighbours + 1:,d}, {told:,d} differ, all pairs tested "
        f"together ({facts['neighbours_alone']:,d} where each is tested alone)."
    )
    if group == 1:
        return Verdict("FIRST", f"{facts['leader']} is first: better than all others.", rests, subject="order")
    sentence = f"The first group has {group:,d} of {facts['compared']:,d} systems: no two of them are told apart."
    settles = "Take these ranks as equal; more tasks, or scores by question, would divide them."
    return Verdict("TIED", sentence, rests, settles, "order")


def claim_verdict(
    pair: tuple[str, str], sample: Mapping[str, Any], fixed: Mapping[str, Any] | None, rest: Mapping[str, Any] | None
) -> Verdict:
    """Whether one system is better than another on other tasks of this kind, and on these.

    Args:
        pair: the system that is called better, and the other.
        sample: the difference over the tasks that both have, these taken for a sample.
        fixed: its interval over questions, where there are scores of these.
        rest: the difference without the tasks that either was trained on; None where neither was.
    """
    word = "CANNOT TELL"
    if sample["low"] is not None:
        word = "HOLDS" if sample["low"] > 0 else "DOES NOT HOLD" if sample["high"] < 0 else word
    sentence = f"On these {sample['tasks']} tasks the mean difference is {sample['value']:+.4f}"
    if fixed is not None:
        sentence += f" ({fixed['low']:+.4f} to {fixed['high']:+.4f} over questions)"
    sentence += f"; on tasks of this kind it is {_ends(sample)}."
    if rest is not None:
        sentence += (
            f" Without the {sample['tasks'] - rest['tasks']} tasks that either was trained on, it is {_ends(rest)}."
        )
        if word == "HOLDS" and not (rest["low"] is not None and rest["low"] > 0):
            word = "HOLDS EXCEPT"
    return Verdict(
        word, sentence, f"{sample['wins']} tasks better, {sample['losses']} worse.",
        "Tasks are not a random sample; the interval treats them as one.", " > ".join(pair),
    )  # fmt: skip


def _ends(difference: Mapping[str, Any]) -> str:
    if difference["low"] is None:
        return "unknown, with fewer than two tasks"
    return f"{difference['value']:+.4f} ({difference['low']:+.4f} to {difference['high']:+.4f})"
