"""Which conventions give the scores of other evaluators, topic by topic.

    python studies/peer_conventions.py [--python PATH] [--seeds 3] [--only NAME …] [--out FILE]

`--python` is the interpreter of an environment that has the evaluators (default: this one); absent ones are named. All:

    python -m venv peers && peers/bin/pip install ir_measures ranx beir bm25s mteb sentence-transformers scikit-learn \\
        torch torchmetrics cwl-eval trectools

Random collections of six topics, each with one thing that evaluators treat differently: equal scores, scores that are
equal as 32-bit numbers only, negative grades, scores of 0 and less, short rankings, topics that the run lacks, topics
that are not judged, topics without a relevant document, the topic's own document, documents that occur twice. Each
evaluator (`peer_scores.py`) scores all of them by its own code. The search takes the smallest set of conventions, up
to four, that gives the score of every topic to 1e-6 (to half of the last digit where the evaluator rounds), then the
rule for topics that gives the means. Where no set does, it takes the one that gives the most kinds of collection, and
the others are named, as are those that the evaluator breaks on.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from common import table
from peer_scores import PEERS
from truerank.measures.conventions import Alternative, ConventionScorer, ScoredMeasure, scored_measure

Codes = tuple[str, ...]
#: Kinds of collection: what is in them that is not in `plain`.
KINDS = (
    "plain", "ties", "ties of 12 results", "32-bit ties", "negative grades", "scores of 0 and less", "short rankings",
    "missing topics", "unjudged topics", "topics without relevant", "own documents", "documents twice",
)  # fmt: skip
TOLERANCE = 1e-6
#: The most choices in a set, and how many sets of more than two are taken further.
SIZE, BEAM = 4, 60
#: Dimensions that change the score of a topic, and rules for topics.
BY_TOPIC = ("gain", "discount", "ideal", "divisor", "grades", "unjudged", "ties", "run", "scores")
AVERAGED = (
    "", "topics.in-run", "topics.with-relevant", "topics.in-run-with-relevant", "topics.of-run", "topics.with-retrieved"
)  # fmt: skip
#: No convention of evaluators, or as many as there are depths.
LEFT_OUT = ("run.depth", "run.rows", "run.first-lost", "run.reversed", "ties.best", "ties.worst", "grades.shifted")
#: The columns of the table by evaluator: their dimensions, and what is meant without a choice.
COLUMNS = {
    "gain": (("gain", "discount", "grades"), "the grade"),
    "ideal, divisor": (("ideal", "divisor"), "all judged"),
    "ties": (("ties",), "id descending, 32 bits"),
    "results": (("run", "unjudged", "scores"), "as they are"),
}


def collection(kind: str, seed: int) -> dict[str, Any]:
    """Judgments and a run: topics of 14 judged among 40 documents, 25 of them retrieved, in no order."""
    draw = random.Random(f"{kind} {seed}")
    docs = [f"D{number}" for number in range(10, 50)]
    grades = (-2, -1, 0, 0, 1, 1, 2, 3) if kind == "negative grades" else (0, 0, 0, 1, 1, 2, 3)
    qrels, run = {}, {}
    for topic in map(str, range(1, 7)):
        own = [topic, *docs[1:]] if kind == "own documents" else docs
        qrels[topic] = {doc: draw.choice(grades) for doc in draw.sample(own, 14)}
        qrels[topic][draw.choice(list(qrels[topic]))] = 2
        low, high = (-2.0, 0.4) if kind == "scores of 0 and less" else (0.01, 2.0)
        rows = [(doc, draw.uniform(low, high)) for doc in draw.sample(own, 25)]
        if kind == "own documents" and topic not in dict(rows):
            rows[0] = (topic, 1.9)
        if kind.startswith("ties"):
            rows = [(doc, round(2 * score) / 2 + 0.5) for doc, score in rows]
        if kind == "32-bit ties":
            rows = [(doc, round(2 * score) / 2 + 0.5 + draw.random() * 1e-9) for doc, score in rows]
        if kind == "scores of 0 and less":
            rows[:3] = [(doc, 0.0) for doc, _ in rows[:1]] + rows[1:3]
        if kind == "documents twice":
            rows += [(doc, draw.uniform(low, 2)) for doc, _ in draw.sample(rows, 5)]
        run[topic] = rows[: {"short rankings": draw.randrange(2, 8), "ties of 12 results": 12}.get(kind, len(rows))]
    if kind == "missing topics":
        del run["2"], run["5"]
    if kind == "unjudged topics":
        del qrels["2"], qrels["5"]
    if kind == "topics without relevant":
        qrels["1"] = dict.fromkeys(qrels["1"], 0)
        qrels["4"] = dict.fromkeys(qrels["4"], 0)
    return {"qrels": qrels, "run": run, "twice": kind == "documents twice"}


class Case(NamedTuple):
    """A collection, and what an evaluator says of it."""

    kind: str
    scorer: ConventionScorer
    mean: float
    topics: Mapping[str, float]


class Match(NamedTuple):
    """Conventions that give an evaluator's scores: by topic, and for the mean; and where they do not."""

    codes: Codes
    others: Sequence[Codes]
    averaged: Sequence[str]
    largest: float
    missed: Sequence[str]
    means: Sequence[str]
    broken: Mapping[str, str]


def scorer(one: Mapping[str, Any]) -> ConventionScorer:
    """The scores of a collection under any convention."""
    judged = [(topic, doc, grade) for topic, own in one["qrels"].items() for doc, grade in own.items()]
    rows = [(topic, doc, score) for topic, own in one["run"].items() for doc, score in own]
    return ConventionScorer(
        pl.DataFrame(judged, schema=["topic_id", "doc_id", "relevance"], orient="row"),
        pl.DataFrame(rows, schema=["topic_id", "doc_id", "score"], orient="row"),
    )


def chosen(own: ConventionScorer, codes: Sequence[str]) -> tuple[Alternative, ...]:
    """The choices of these codes; one that a collection does not allow changes nothing in it."""
    return tuple(one for one in own.choices if one.code in codes)


def difference(case: Case, measure: ScoredMeasure, codes: Codes) -> float:
    """The largest difference of a topic's score."""
    found = case.scorer.scores(measure, chosen(case.scorer, codes))
    own = dict(zip(found.topics, found.values, strict=True))
    pairs = [(value, own[topic]) for topic, value in case.topics.items() if topic in own]
    return max((abs(theirs - ours) for theirs, ours in pairs), default=0.0)


def alternatives(every: Sequence[Case], measure: ScoredMeasure) -> list[str]:
    """The choices that can change the measure in one of the collections."""
    return [
        *dict.fromkeys(
            one.code
            for case in every
            for one in case.scorer.choices
            if (one.dimension in BY_TOPIC or (one.code == "cutoff.none" and measure.cutoff))
            and (not one.serves or measure.family in one.serves)
            and not one.code.startswith(LEFT_OUT)
        )
    ]


def larger(sets: Sequence[Codes], codes: Sequence[str]) -> list[Codes]:
    """The sets with one choice more, of another dimension."""
    return sorted(
        {
            tuple(sorted((*some, code), key=codes.index))
            for some in sets
            for code in codes
            if code.partition(".")[0] not in {one.partition(".")[0] for one in some}
        }
    )


def averages(every: Sequence[Case], measure: ScoredMeasure, codes: Codes, bound: float) -> tuple[list[str], set[str]]:
    """The rules for topics that give the means of the most kinds of collection, and the kinds where they do not."""

    def missed(rule: str) -> set[str]:
        return {
            case.kind
            for case in every
            if not abs(case.scorer.scores(measure, chosen(case.scorer, (*codes, rule))).score - case.mean) <= bound
        }

    by_rule = {rule or "all judged": missed(rule) for rule in AVERAGED}
    fewest = min(map(len, by_rule.values()))
    best = [rule for rule, kinds in by_rule.items() if len(kinds) == fewest]
    return best, by_rule[best[0]]


def match(every: Sequence[Case], measure: ScoredMeasure, bound: float, broken: Mapping[str, str]) -> Match:
    """The smallest set of conventions that gives the scores of all topics, or of the most kinds of collection.

    All sets of up to two are tried, then the most promising ones with one and two choices more.
    """
    kinds = {case.kind for case in every}
    codes = alternatives(every, measure)
    reached: dict[Codes, tuple[int, int]] = {}
    missed: dict[Codes, set[str]] = {}
    tried: list[Codes] = [()]
    for size in range(SIZE + 1):
        for some in tried:
            right = [difference(case, measure, some) <= bound for case in every]
            missed[some] = {case.kind for case, fits in zip(every, right, strict=True) if not fits}
            reached[some] = (len(kinds - missed[some]), sum(right))
        if any(not missed[some] for some in tried):
            break
        beam = tried if size < 2 else sorted(tried, key=lambda some: (reached[some], some), reverse=True)[:BEAM]
        tried = larger(beam, codes)
    most = max((count for count, _ in reached.values()), default=0)
    if not most:
        return Match((), (), (), math.nan, sorted(kinds), (), broken)
    fewest = min(len(some) for some, (count, _) in reached.items() if count == most)
    best, *others = [some for some, (count, _) in reached.items() if count == most and len(some) == fewest]
    fitting = [case for case in every if case.kind not in missed[best]]
    largest = max(difference(case, measure, best) for case in fitting)
    rules, means = averages(fitting, measure, best, bound)
    return Match(best, others, rules, largest, sorted(missed[best]), sorted(means), broken)


def scores_of(python: str, collections: Mapping[str, Any], peers: Sequence[str]) -> dict[str, Any]:
    """The scores of evaluators, from their environment."""
    done = subprocess.run(
        [python, str(Path(__file__).with_name("peer_scores.py"))],
        input=json.dumps({"collections": collections, "peers": list(peers)}),
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def matches(
    answers: Mapping[str, Any], scorers: Mapping[str, ConventionScorer]
) -> Iterator[tuple[str, str, str, Match]]:
    """Each evaluator, its version, its measure, and the conventions that give its scores."""
    for peer, about in answers.items():
        if "absent" in about:
            continue
        bound = TOLERANCE + (0.5 * 10 ** -about["digits"] if about["digits"] else 0.0)
        for name, scores in about["scores"].items():
            kinds = {one: one.partition("/")[0] for one in scores}
            broken = {one: answer["error"] for one, answer in scores.items() if "error" in answer}
            every = [
                Case(kinds[one], scorers[one], float(answer["mean"]), answer["topics"])
                for one, answer in scores.items()
                if one not in broken
            ]
            measure = scored_measure(name.partition(", ")[0])
            errors = {kinds[one]: error for one, error in broken.items()}
            yield peer, about["version"], name, match(every, measure, bound, errors)


def joined(codes: Codes) -> str:
    """Conventions in a cell."""
    return " + ".join(codes) or "truerank's own"


def not_on(match: Match) -> str:
    """Where conventions do not give an evaluator's scores."""
    parts = [*match.missed, *(f"{kind} (mean)" for kind in match.means)]
    return ", ".join([*parts, *(f"{kind} ({error})" for kind, error in match.broken.items())]) or "—"


def by_evaluator(every: Sequence[tuple[str, str, str, Match]]) -> Iterator[tuple[str, ...]]:
    """One row for each evaluator: what it does, and with which measures where it does several things."""
    for peer in dict.fromkeys(row[0] for row in every):
        own = [(name, match) for one, _, name, match in every if one == peer and not math.isnan(match.largest)]
        version = next(row[1] for row in every if row[0] == peer)
        cells = []
        for dimensions, default in COLUMNS.values():
            ways: dict[str, list[str]] = {}
            for name, match in own:
                codes = [code for code in match.codes if code.startswith(tuple(f"{one}." for one in dimensions))]
                ways.setdefault(" + ".join(codes) or default, []).append(name)
            cells.append(_ways(ways))
        rules: dict[str, list[str]] = {}
        for name, match in own:
            rules.setdefault(match.averaged[0], []).append(name)
        yield (f"{peer} {version}", *cells, _ways(rules))


def _ways(ways: Mapping[str, Sequence[str]]) -> str:
    if len(ways) == 1:
        return next(iter(ways))
    return "; ".join(f"{way} ({', '.join(names)})" for way, names in ways.items())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the evaluators")
    parser.add_argument("--seeds", type=int, default=3, help="collections of each kind")
    parser.add_argument("--only", nargs="*", default=list(PEERS), choices=list(PEERS), help="evaluators")
    parser.add_argument("--out", type=Path, help="a file for their scores, as JSON")
    options = parser.parse_args()
    collections = {f"{kind}/{seed}": collection(kind, seed) for kind in KINDS for seed in range(options.seeds)}
    answers = scores_of(options.python, collections, options.only)
    if options.out is not None:
        options.out.write_text(json.dumps(answers, indent=1))
    every = list(matches(answers, {name: scorer(one) for name, one in collections.items()}))
    rows = [
        (
            f"{peer} {version}",
            name,
            "none matches" if math.isnan(match.largest) else " or ".join(map(joined, (match.codes, *match.others[:2]))),
            " or ".join(match.averaged),
            f"{match.largest:.1g}",
            not_on(match),
        )
        for peer, version, name, match in every
    ]
    print(table(("evaluator", "measure", "conventions", "topics", "largest difference", "not on"), rows) + "\n")
    print(table(("evaluator", *COLUMNS, "topics"), list(by_evaluator(every))) + "\n")
    whole = sum(not (match.missed or match.means) for *_, match in every)
    print(f"{whole} of {len(every)} measures are matched on every kind of collection that the evaluator scores")
    for peer, about in answers.items():
        if "absent" in about:
            print(f"{peer}: not installed ({about['absent']})")


if __name__ == "__main__":
    main()
