"""Estimate: the verdict on each part and on the whole, from what was found and what could be looked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from truerank.audits.collection.instances import Instances
from truerank.audits.collection.results import CollectionFinding, Kind, Part, kinds
from truerank.core.rules import RuleChoice
from truerank.core.verdict import Verdict
from truerank.text.printable import counted, listed

#: Which input a part is; what stands together needs two of them.
_INPUT: Final = {"judgments": "qrels", "documents": "docs", "topics": "topics"}
_AUDITED: Final[tuple[Part, ...]] = ("judgments", "documents", "topics", "together")
_NAMED: Final = 3
#: Notes that a verdict tells where they touch many documents.
_TOLD: Final = ("boilerplate", "several-scripts")
#: A kind of fault that touches a smaller share of what it could touch makes no whole faulty.
_FEW: Final = 0.05


def verdicts(
    findings: Sequence[CollectionFinding],
    given: Collection[str],
    choice: RuleChoice = RuleChoice(),
    unasked: Collection[str] = (),
) -> tuple[Verdict, ...]:
    """The verdict on the whole, then on each part that was given.

    A part is FAULTY where the data, or people, show a fault; FAULTY IN PART where no kind of fault touches so much as a
    twentieth of what it could touch; UNKNOWN where somebody has to look at something, or where something could not be
    looked for; SOUND otherwise, with what nobody would have seen. What is accepted does not count, and is named.

    Args:
        findings: what was found.
        given: the inputs.
        choice: which kinds count.
        unasked: kinds of which the inputs show too little.
    """
    several = len(set(_INPUT.values()) & set(given)) > 1
    there = [part for part in _AUDITED if (several if part == "together" else _INPUT[part] in given)]
    accepted = [one for one in findings if one.accepted]
    others = [one for one in findings if not one.accepted]
    parts = tuple(_part(part, others, given, choice, unasked) for part in there)
    every = (_whole(parts, others, given, choice, unasked), *parts)
    remarks = [every[0].rests_on]
    if accepted:
        named = [f"{one.kind.title} ({one.kind.code}, {one.counted}: {one.accepted})" for one in accepted]
        remarks.append(f"Accepted, and not counted: {'; '.join(named)}.")
    if left := sum(kind.part in there and not choice.takes(kind) for kind in kinds().values()):
        remarks.append(f"--select and --ignore leave out {counted(left, 'kind')}.")
    return (replace(every[0], rests_on=" ".join(filter(None, remarks))), *parts)


def _part(
    part: Part,
    findings: Sequence[CollectionFinding],
    given: Collection[str],
    choice: RuleChoice,
    unasked: Collection[str],
) -> Verdict:
    own = [one for one in findings if one.kind.part == part]
    faults = [one for one in own if one.kind.severity == "fault"]
    doubts = _by_share([one for one in own if one.kind.severity == "doubt"])
    looked, not_looked = _looked_for(part, given, choice)
    checked = "The page lists what was looked for." if looked else ""
    remedies = _remedies(doubts)
    if not_looked:
        titles = "; ".join(kind.title.lower() for kind in not_looked[:_NAMED])
        lacking = dict.fromkeys(name for kind in not_looked for name in kind.needs if name not in given)
        remedies.append(f"Not looked for: {titles}. Give {_flags(lacking)}.")
    settle = " ".join(remedies)
    if faults:
        worst = _by_share(faults)
        larger = _larger(own, worst)
        doubts = [one for one in doubts if one not in larger]
        also = [one.here for one in worst if one.here][:_NAMED]
        also += [f"A person should also look at these. {_told(doubts)}"] if doubts else []
        return Verdict(_faulty(faults), f"{_first(larger)}{_told(worst)}", " ".join(also), settle, part)
    if doubts:
        reason = f"No certain fault was found, but a person should look. {_told([*_larger(own, doubts), *doubts])}"
        return Verdict("UNKNOWN", reason, "", settle, part)
    if not looked and not not_looked:
        return Verdict("UNKNOWN", "Nothing was looked for: --select and --ignore leave out every kind.", subject=part)
    if not_looked:
        reason = f"None of {counted(len(looked), 'kind')} of fault was found; others could not be looked for."
        return Verdict("UNKNOWN", reason, checked, settle, part)
    first = _first(_larger(own, ()))
    reason = f"{first}None of {len(looked)} kinds of fault was found.{_unseen(looked, unasked)}"
    return Verdict("SOUND", reason, checked, subject=part)


def _unseen(looked: Sequence[Kind], unasked: Collection[str]) -> str:
    """A sentence on what would not have been found."""
    named = [kind.unseen[kind.name in unasked] for kind in looked if kind.unseen]
    return f" This audit cannot see {'; '.join(named)}." if named else ""


def _whole(
    parts: Sequence[Verdict],
    findings: Sequence[CollectionFinding],
    given: Collection[str],
    choice: RuleChoice,
    unasked: Collection[str],
) -> Verdict:
    few, faulty, open_ones = (
        [verdict.subject for verdict in parts if verdict.word == word]
        for word in ("FAULTY IN PART", "FAULTY", "UNKNOWN")
    )
    faulty = faulty or few
    lacking = [name for name in ("qrels", "docs", "topics") if name not in given]
    remark = f"Not given: {_flags(lacking)}." if lacking else ""
    if faulty:
        faults = _by_share([one for one in findings if one.kind.severity == "fault"])
        larger = _larger([one for one in findings if one.kind.part != "versions"], faults)
        place = f"{'a small part of ' if faulty == few else ''}{_named(faulty)}"
        reason = f"{_first(larger)}Faults lie in {place}. {_told(faults)}"
        return Verdict(_faulty(faults), reason, remark, " ".join(_remedies([*larger, *faults])), "collection")
    if open_ones or lacking:
        unclear = f"No certain fault was found. Unclear: {_named(open_ones)}."
        reason = unclear if open_ones else "No fault was found in what was given."
        return Verdict("UNKNOWN", reason, remark, subject="collection")
    looked = [kind for part in _AUDITED for kind in _looked_for(part, given, choice)[0]]
    sentence = f"{_first(_larger(findings, ()))}None of {len(looked)} kinds of fault was found in documents, topics and"
    return Verdict("SOUND", f"{sentence} judgments.{_unseen(looked, unasked)}", subject="collection")


def looked_for(given: Collection[str], choice: RuleChoice = RuleChoice()) -> dict[str, dict[str, str]]:
    """By part, the kinds of fault that were looked for, and what the others need."""
    found: dict[str, dict[str, str]] = {}
    for part in _AUDITED:
        looked, others = _looked_for(part, given, choice)
        lines = {kind.title: "looked for" for kind in looked}
        left = [kind for kind in kinds().values() if kind.part == part and kind.severity != "note"]
        lines |= {kind.title: "left out (--select, --ignore)" for kind in left if not choice.takes(kind)}
        if lines | (needs := {kind.title: f"not looked for; needs {', '.join(kind.needs)}" for kind in others}):
            found[part] = lines | needs
    return found


def _looked_for(part: Part, given: Collection[str], choice: RuleChoice) -> tuple[list[Kind], list[Kind]]:
    """The kinds of fault and doubt of a part that could be looked for, and those that could not."""
    own = [kind for kind in kinds().values() if kind.part == part and kind.severity != "note" and choice.takes(kind)]
    # Other splits, runs and second judgments are no part of a collection: without them nothing is left open.
    wanted = [kind for kind in own if {"train", "run", "judged_again"}.isdisjoint(kind.needs) or kind.serves(given)]
    looked = [kind for kind in wanted if kind.serves(given)]
    return looked, [kind for kind in wanted if kind not in looked]


def _by_share(faults: Sequence[CollectionFinding]) -> list[CollectionFinding]:
    return sorted(faults, key=lambda one: (-one.share, -one.count))


def _faulty(faults: Sequence[CollectionFinding]) -> str:
    return "FAULTY" if any(one.share >= _FEW for one in faults) else "FAULTY IN PART"


def _told(findings: Sequence[CollectionFinding]) -> str:
    """The first findings, a sentence each."""
    named = [f"{one.kind.title} ({one.kind.code}): {one.counted_share}." for one in findings[:_NAMED]]
    more = len(findings) - _NAMED
    return " ".join([*named, *([f"{counted(more, 'more kind')} below."] if more > 0 else [])])


def _remedies(findings: Sequence[CollectionFinding]) -> list[str]:
    """The first remedies, each behind the codes of what it mends."""
    codes: dict[str, list[str]] = {}
    for one in findings:
        codes.setdefault(one.kind.remedy, []).append(one.kind.code)
    return [f"{', '.join(some)}: {remedy}" for remedy, some in codes.items()][:_NAMED]


def _larger(findings: Sequence[CollectionFinding], than: Sequence[CollectionFinding]) -> list[CollectionFinding]:
    """What touches most, though it is no certain fault; words that many documents share make others alike, too."""
    least = max([_FEW, *(one.share for one in than[:1])])
    asked = [one for one in findings if one.kind.severity == "doubt" or one.kind.name in _TOLD]
    return _by_share([one for one in asked if one.share >= least and one not in than])


def _first(larger: Sequence[CollectionFinding]) -> str:
    return f"Look here first. {_told(larger)} " if larger else ""


def _flags(names: Iterable[str]) -> str:
    return listed(["--" + name.replace("_", "-") for name in names])


def _named(parts: Sequence[str]) -> str:
    return listed(["how the files fit together" if part == "together" else f"the {part}" for part in parts])


def effect_here(found: Instances, pairs: pl.DataFrame | None, rel: int) -> str:
    """One sentence with figures; empty where there is nothing to compute."""
    if found.here:
        return found.here
    if found.kind in ("duplicate-topic", "near-duplicate-topic") and found.count < found.of:
        return f"{found.of - found.count:,d} of {found.of:,d} topics are different; others count again in means."
    if found.kind == "no-relevant" and found.count < found.of:
        return f"No mean over all topics can exceed {1 - found.count / found.of:.3f}."
    if pairs is None or found.kind not in ("missing-document", "respelt-document"):
        return ""
    named = found.rows.select("topic_id", "doc_id").unique()
    relevant = pairs.filter(pl.col("relevance") >= rel)
    lost = relevant.join(named, on=["topic_id", "doc_id"], how="semi")
    if not len(lost):
        return "None of them names a relevant document; recall and nDCG stay as they are."
    topics, all_topics = lost["topic_id"].n_unique(), relevant["topic_id"].n_unique()
    return (
        f"{len(lost):,d} of {len(relevant):,d} relevant documents cannot be found under these ids, for "
        f"{topics:,d} of {all_topics:,d} topics."
    )
