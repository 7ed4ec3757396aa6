"""How often `explain` finds the convention or mistake behind a score, and how often it explains what it should not.

    python studies/explain.py inject [--sets cacm vaswani dl19] [--pairs 60] [--seed 5]
    python studies/explain.py cases FILE --qrels QRELS --run RUN      cases of another hand, as JSON
    python studies/explain.py random [--count 500]
    python studies/explain.py published
    python studies/explain.py time

`inject` computes scores by single conventions and by pairs, and asks for them with three to five digits, alone and with
a second measure, and by topic; with `--without-cause` the true cause is taken out of the search. A cause is right where
its scores are those that were injected, to the last digit; part, where they are those of one of two. CACM and Vaswani
are what the weights were chosen on; the passages of TREC 2019 with a monoT5 run are not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import CountVectorizer

from common import SHARED, require_shared, table
from truerank import collection
from truerank.measures.conventions import Alternative, ConventionScorer, scored_measure
from truerank.measures.explanation import ExplainOptions, Explanation, ReportedScore, explain, explanation
from truerank.sources import open_documents, read_qrels_frame, read_run_frame, read_topics
from vaswani_runs import Texts, all_runs, read_texts, write_run

MEASURES = ("nDCG@10", "AP")
#: Families of which one member is injected, and how many digits are reported.
FAMILIES = {"cutoff": ("cutoff.5", "cutoff.20", "cutoff.100"), "run": ("run.depth-20", "run.depth-100")}
WAYS = (
    ("one measure", 1, 3),
    ("one measure", 1, 4),
    ("one measure", 1, 5),
    ("two measures", 2, 4),
    ("two measures", 2, 5),
)
RUN = "bm25-0.9-0.4"


class Case(NamedTuple):
    """A convention with its exact scores, by measure, and by topic for the first measure."""

    name: str
    scores: dict[str, float]
    topics: dict[str, float]
    parts: tuple[str, ...] = ()


def data(name: str, folder: Path, kept: str = RUN) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgments and a run; scores of BM25 are rounded to two digits, so that some tie."""
    if name == "dl19":
        run = read_run_frame(SHARED / "survivorship/runs/monot5.dl19.run.gz")
        return read_qrels_frame(str(SHARED / "qrels/dl19-passage.qrels.gz")), run
    if name == "cacm":
        cacm = SHARED / "collections/cacm"
        source, judged = str(cacm / "cacm.tar.gz"), str(cacm / "qrels.txt")
        documents = {one.doc_id: one.text for one in open_documents(source)}
        topics = {one.topic_id: one.title for one in read_topics(str(cacm / "topics.txt")).topics}
        counts = CountVectorizer()
        docs = counts.fit_transform(documents.values())
        texts = Texts(docs.tocsr(), [*documents], counts.transform(topics.values()).tocsr(), [*topics])
        # The ids of the judgments are those of the documents after the repair.
        repaired = collection.clean(judged, collection.audit(docs=source, qrels=judged, measures="P@1"))
        qrels = repaired.qrels.filter(pl.col("doc_id").is_in([*documents]))
    else:
        texts = read_texts(SHARED / "collections/vaswani")
        qrels = read_qrels_frame(str(SHARED / "collections/vaswani/qrels.txt"))
    scores = next(one.scores() for one in all_runs(texts) if one.name == kept)
    write_run(folder / f"{name}.run", texts, scores, 1000)
    return qrels, read_run_frame(folder / f"{name}.run").with_columns(pl.col("score").round(2))


def of_family(chosen: Sequence[Alternative], measure: str) -> tuple[Alternative, ...]:
    """The choices that a measure follows; another cut-off is that of measures that have one."""
    own = scored_measure(measure)
    served = (one for one in chosen if not one.serves or own.family in one.serves)
    return tuple(one for one in served if one.dimension != "cutoff" or own.cutoff is not None)


def case(scorer: ConventionScorer, chosen: Sequence[Alternative]) -> Case:
    found = {name: scorer.scores(scored_measure(name), of_family(chosen, name)) for name in MEASURES}
    first = found[MEASURES[0]]
    kept = {topic: float(v) for topic, v, keep in zip(first.topics, first.values, first.kept, strict=True) if keep}
    names = tuple(one.code for one in chosen)
    return Case(" + ".join(names), {name: one.score for name, one in found.items()}, kept, names)


def injected(scorer: ConventionScorer, pairs: int, seed: int) -> Iterator[Case]:
    """Singles that change a score, and pairs of them."""
    draw, plain = random.Random(seed), case(scorer, ())
    singles = []
    for one in scorer.choices:
        wanted = FAMILIES.get(one.dimension, ())
        many = one.dimension == "cutoff" or one.code.startswith(("run.depth", "run.rows"))
        if one.dimension == "digits" or (many and one.code not in wanted):
            continue
        found = case(scorer, (one,))
        changed = any(abs(found.scores[name] - plain.scores[name]) > 5e-6 for name in MEASURES)
        if changed and not any(map(math.isnan, found.scores.values())):
            singles.append((one, found))
    yield from (found for _, found in singles)
    some = [
        two for two in itertools.combinations([one for one, _ in singles], 2) if two[0].dimension != two[1].dimension
    ]
    yield from (case(scorer, two) for two in draw.sample(some, min(pairs, len(some))))


def asked(scorer: ConventionScorer, one: Case, measures: Sequence[str], digits: int, *, by_topic: bool) -> Explanation:
    reported = []
    for name in measures:
        value = round(one.scores[name], digits)
        topics = {topic: round(v, digits) for topic, v in one.topics.items()} if by_topic else None
        text = "" if by_topic else f"{value:.{digits}f}"
        mean = float(np.mean([*topics.values()])) if topics else value
        reported.append(ReportedScore(scored_measure(name), text, mean, 10.0**-digits, topics))
    return explanation(scorer, reported, ExplainOptions())


def kind(found: Explanation, one: Case, singles: dict[str, Case], measures: Sequence[str]) -> str:
    """Whether the first cause is the truth by its scores, one part of it, or wrong."""
    if not len(found.frames["causes"]):
        return "none"
    code, same = found.frames["causes"].select("code", "same_codes").row(0)
    for name in (code, *same):
        parts = set(name.split(" + "))
        if parts == set(one.parts) or {part.replace("rows", "depth") for part in parts} == set(one.parts):
            return "right"
    best = found.facts["best_scores"]
    if best and all(abs(best[name] - one.scores[name]) < 1e-9 for name in measures):
        return "right"
    if any(set(name.split(" + ")) & set(one.parts) for name in (code, *same)):
        return "part"
    parts = [singles[name] for name in one.parts if name in singles]
    if best and any(all(abs(best[m] - part.scores[m]) < 1e-9 for m in measures) for part in parts):
        return "part"
    return "wrong"


def tally(scorer: ConventionScorer, cases: Sequence[Case], without: bool) -> None:
    singles = {one.name: one for one in cases if len(one.parts) == 1}
    plain = {name: scorer.scores(scored_measure(name)).score for name in MEASURES}
    rows = []
    for group, own in (("single", [*singles.values()]), ("pair", [one for one in cases if len(one.parts) == 2])):
        ways = [(*way, False) for way in WAYS] + [("by topic", 1, 4, True)]
        for how, count, digits, by_topic in ways:
            words: Counter[str] = Counter()
            kinds: Counter[str] = Counter()
            for one in own:
                # One measure: the first that shows it.
                shown = [m for m in MEASURES if abs(one.scores[m] - plain[m]) > 0.5 * 10.0**-digits]
                measures = MEASURES[:count] if count > 1 or not shown else shown[:1]
                if by_topic and measures[0] != MEASURES[0]:
                    continue
                own_scorer = scorer
                if without:
                    own_scorer = _without(scorer, one)
                found = asked(own_scorer, one, measures, digits, by_topic=by_topic)
                word = found.verdicts[0].word
                words[word] += 1
                kinds[
                    kind(found, one, singles, measures)
                    if word == "EXPLAINED"
                    else f"{word} {kind(found, one, singles, measures)}"
                ] += 1
            total = sum(words.values())
            first = sum(count for name, count in kinds.items() if name.endswith("right"))
            shown = [kinds[name] for name in ("right", "part", "wrong")]
            others = [words[name] for name in ("AMBIGUOUS", "NOT EXPLAINED", "SAME")]
            rows.append((group, how, digits, total, words["EXPLAINED"], *shown, *others, first))
    heads = "cause,reported,digits,cases,EXPLAINED,right,part,wrong,AMBIGUOUS,NOT EXPLAINED,SAME,truth first".split(",")
    print(table(heads, rows))


def _without(scorer: ConventionScorer, one: Case) -> ConventionScorer:
    """The search without the causes of a case, and without those that give the same scores."""
    plain = [case(scorer, (choice,)) for choice in scorer.choices if choice.code in one.parts]
    gone = set(one.parts)
    for choice in scorer.choices:
        if choice.code not in gone:
            own = case(scorer, (choice,))
            if any(all(abs(own.scores[m] - other.scores[m]) < 1e-9 for m in MEASURES) for other in plain):
                gone.add(choice.code)
    reduced = object.__new__(ConventionScorer)
    reduced.__dict__.update(scorer.__dict__)
    reduced.choices = tuple(choice for choice in scorer.choices if choice.code not in gone)
    return reduced


def inject(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in options.sets:
            scorer = ConventionScorer(*data(name, Path(folder)))
            cases = [*injected(scorer, options.pairs, options.seed)]
            print(f"\n{name}: {sum(len(one.parts) == 1 for one in cases)} singles")
            tally(scorer, cases, options.without_cause)


def cases_of(options: argparse.Namespace) -> None:
    """Cases that somebody else computed: the truth is told by its values."""
    given: list[dict[str, Any]] = json.loads(Path(options.file).read_text(encoding="utf-8"))
    scorer = ConventionScorer(read_qrels_frame(str(options.qrels)), read_run_frame(options.run))
    names = [name for name in MEASURES if name in given[0]["measures"]]
    cases = []
    for one in given:
        topics = one.get("per_topic", {}).get("nDCG@10", {})
        scores = {name: one["measures"][name] for name in names}
        cases.append(Case(" + ".join(one["classes"]), scores, topics, tuple(one["classes"])))
    base = given[0].get("base", {})
    print({name: (base.get(name), scorer.scores(scored_measure(name)).score) for name in names})
    plain = {name: scorer.scores(scored_measure(name)).score for name in names}
    changed = [one for one in cases if any(abs(one.scores[n] - plain[n]) > 5e-6 for n in names)]
    print(f"{len(cases)} cases, {len(changed)} change {' or '.join(names)}")
    tally(scorer, changed, without=False)


def randoms(options: argparse.Namespace) -> None:
    """Numbers that no cause gave, within 0.02 of the score."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.sets:
            scorer, draw = ConventionScorer(*data(name, Path(folder))), random.Random(99)
            for measure in (*MEASURES, "P@10"):
                default = scorer.scores(scored_measure(measure)).score
                words: Counter[str] = Counter()
                for _ in range(options.count):
                    value = round(default + draw.uniform(-0.02, 0.02), 4)
                    one = ReportedScore(scored_measure(measure), f"{value:.4f}", value, 1e-4)
                    words[explanation(scorer, [one]).verdicts[0].word] += 1
                rows.append(
                    (name, measure, options.count, words["EXPLAINED"], words["AMBIGUOUS"], words["NOT EXPLAINED"])
                )
    print(table(("set", "measure", "numbers", "EXPLAINED", "AMBIGUOUS", "NOT EXPLAINED"), rows))


#: Scores that others printed: Anserini's regression pages, for the BM25 runs of the leakage paper's repository.
PUBLISHED = (
    ("core17", "nyt-common-core-2017-bm25-anserini.run.gz", ("AP=0.2087", "P@30=0.4293")),
    ("core18", "wapo-v2-common-core-2018-bm25-anserini.run.gz", ("AP=0.2495", "P@30=0.3567")),
)


def published(_: argparse.Namespace) -> None:
    """Each number alone, and all of a run together."""
    for name, run, numbers in PUBLISHED:
        qrels, own = SHARED / f"qrels/{name}.qrels.gz", SHARED / "spire22/runs" / run
        for asked_for in ((numbers[0],), (numbers[1],), numbers):
            found = explain(qrels, own, ExplainOptions(reported=asked_for)).verdict
            print(f"{name}, {', '.join(asked_for)}: {found.word}. {found.sentence} {found.settles}")


def timed(_: argparse.Namespace) -> None:
    """225 topics with 1,000 results."""
    draw = np.random.default_rng(1)
    topics, depth = 225, 1000
    frame = pl.DataFrame(
        {
            "topic_id": [str(t) for t in range(topics) for _ in range(depth)],
            "doc_id": [f"d{n}" for _ in range(topics) for n in draw.choice(20_000, depth, replace=False)],
            "score": np.round(np.sort(draw.random((topics, depth)) * 9)[:, ::-1].ravel(), 2),
        }
    )
    some = frame.filter(pl.Series(draw.random(len(frame)) < 0.05)).select("topic_id", "doc_id")
    qrels = some.with_columns(relevance=pl.Series(draw.integers(0, 4, len(some))))
    rows = []
    for changes, measures in ((1, 1), (2, 1), (3, 2)):
        scorer = ConventionScorer(qrels, frame)
        default = {name: scorer.scores(scored_measure(name)).score for name in MEASURES}
        reported = [
            ReportedScore(scored_measure(name), "x", round(default[name] + 0.0137, 4), 1e-4)
            for name in MEASURES[:measures]
        ]
        scorer = ConventionScorer(qrels, frame)
        start = time.perf_counter()
        found = explanation(scorer, reported, ExplainOptions(changes=changes))
        rows.append((changes, measures, found.facts["tried"], f"{time.perf_counter() - start:.2f}"))
    print(table(("changes", "measures", "conventions", "seconds"), rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (("inject", inject), ("random", randoms), ("published", published), ("time", timed)):
        one = commands.add_parser(name)
        one.set_defaults(function=function)
        one.add_argument("--sets", nargs="+", default=["cacm", "vaswani", "dl19"], choices=("cacm", "vaswani", "dl19"))
        one.add_argument("--pairs", type=int, default=60)
        one.add_argument("--seed", type=int, default=5)
        one.add_argument("--count", type=int, default=500)
        one.add_argument("--without-cause", action="store_true")
    other = commands.add_parser("cases")
    other.set_defaults(function=cases_of)
    other.add_argument("file", type=Path)
    other.add_argument("--qrels", type=Path, required=True)
    other.add_argument("--run", type=Path, required=True)
    options = parser.parse_args()
    require_shared()
    options.function(options)


if __name__ == "__main__":
    sys.exit(main())
