"""Faults of runs: scores, shards, files, and runs that have seen the judgments. For `hand_claims.py`.

Written without sight of the rules of `truerank check`, by somebody who pretends to cheat, or to convert files at night.
Unless a docstring says otherwise the claimed lead is false in the clean files and the fault makes it look true.
"""

from __future__ import annotations

import random
from dataclasses import replace

from hand_collection import Collection, Files, Row, difference, grades, ndcg, rows
from hand_kinds import (
    COPIES,
    JUDGED,
    MISSING,
    SCORES,
    docs_of,
    false_claim,
    kind,
    raised,
    scored,
    some,
    true_claim,
    with_rankings,
    with_run,
)


@kind(
    "files", "The baseline lists two or three documents a topic, the others two hundred.", *MISSING, "depth", "results"
)
def run_shallow(collection: Collection, draw: random.Random) -> Files:
    """Cut for a demonstration and kept."""
    files, depth = false_claim(collection, draw), draw.choice((2, 3))
    run = [row for row in files.runs[files.baseline] if row.rank <= depth]
    return with_run(files, files.baseline, run)


@kind("files", "The baseline's job died: the last topics have no results.", *MISSING, "topics")
def run_cut_off(collection: Collection, draw: random.Random) -> Files:
    """A third to a half of the topics, and one topic in the midst of its results."""
    files = false_claim(collection, draw)
    run = list(files.runs[files.baseline])
    return with_run(files, files.baseline, run[: round(len(run) * draw.uniform(0.5, 0.65))])


@kind(
    "files",
    "Two shards of the baseline are pasted one after the other; their scores have different scales.",
    *SCORES,
    "shard",
    "scale",
    "merg",
)
def run_shards(collection: Collection, draw: random.Random) -> Files:
    """Every topic has two lists; the shard of higher scores always comes first, whatever it holds."""
    files, run = false_claim(collection, draw), []
    shard = {doc: draw.random() < 0.3 for doc in files.docs}
    for topic, ranking in collection.rankings[files.baseline].items():
        for high in (True, False):
            part = [(doc, score) for doc, score in ranking if shard[doc] is high]
            for rank, (doc, score) in enumerate(part, start=1):
                run.append(Row(topic, doc, rank, f"{score + 40 if high else score:.6f}"))
    return with_run(files, files.baseline, run)


@kind("files", "The baseline's scores are distances: the best document has the lowest.", *SCORES, "distance")
def scores_distances(collection: Collection, draw: random.Random) -> Files:
    """The rank column is right."""
    files = false_claim(collection, draw)
    run = [row._replace(score=f"{30 - float(row.score):.6f}") for row in files.runs[files.baseline]]
    return with_run(files, files.baseline, run)


@kind("files", "The baseline's scores are rounded until most results of a topic have the same.", *SCORES, "round")
def scores_rounded(collection: Collection, draw: random.Random) -> Files:
    """Whole steps of a quarter of the range of a topic."""
    files, run = false_claim(collection, draw), []
    for topic, ranking in collection.rankings[files.baseline].items():
        step = (ranking[0][1] - ranking[-1][1]) / draw.choice((1, 2)) or 1.0
        run += [Row(topic, doc, rank, f"{score // step:.0f}") for rank, (doc, score) in enumerate(ranking, start=1)]
    return with_run(files, files.baseline, run)


@kind("files", "All scores of the baseline are the same; only the rank column orders it.", *SCORES)
def scores_constant(collection: Collection, draw: random.Random) -> Files:
    """Zeros or ones."""
    files, value = false_claim(collection, draw), draw.choice(("0", "1.0"))
    run = [row._replace(score=value) for row in files.runs[files.baseline]]
    return with_run(files, files.baseline, run)


@kind("files", "The baseline's rank column comes from its reranker, the scores from its first stage.", *SCORES)
def scores_of_first_stage(collection: Collection, draw: random.Random) -> Files:
    """A reader that trusts the scores sees a far weaker run."""
    files, run = false_claim(collection, draw), []
    for topic, ranking in collection.rankings[files.baseline].items():
        values = [score for _, score in ranking]
        head = values[:60]
        draw.shuffle(head)
        shuffled = head + values[60:]
        run += [Row(topic, doc, at, f"{shuffled[at - 1]:.6f}") for at, (doc, _) in enumerate(ranking, start=1)]
    return with_run(files, files.baseline, run)


@kind(
    "not holds",
    "The system takes on each topic the better of two other runs, by the judgments.",
    "mix",
    "per topic",
    "same (results|documents|ranking|order)",
    *COPIES,
    "oracle",
    "fusion",
    "other runs?\\b",
)
def run_oracle_mixture(collection: Collection, draw: random.Random) -> Files:
    """Both runs are given, and the baseline is one of them."""
    files = false_claim(collection, draw)
    a, b = collection.rankings[files.system], collection.rankings[files.baseline]
    scores = collection.scores
    mixed = {t: a[t] if scores[files.system][t] > scores[files.baseline][t] else b[t] for t in files.topics}
    runs = {**files.runs, "fusion": rows(mixed)}
    return replace(files, runs=runs, system="fusion")


@kind(
    "not holds",
    "The same mixture, and one of the two runs is kept back.",
    "mix",
    "same (results|documents|ranking|order)",
    *COPIES,
    "oracle",
    "identical",
    "other run",
)
def run_hidden_mixture(collection: Collection, draw: random.Random) -> Files:
    """On the other topics the system is the baseline, row by row."""
    files = run_oracle_mixture(collection, draw)
    spare = draw.choice([name for name in ("plain", "ax", "ql") if name != files.baseline])
    kept = {files.system, files.baseline, spare}
    return replace(files, runs={name: run for name, run in files.runs.items() if name in kept})


@kind(
    "not holds",
    "On some topics the system lists all relevant documents first.",
    *JUDGED,
    "perfect",
    "relevant",
    "oracle",
)
def run_oracle(collection: Collection, draw: random.Random) -> Files:
    """A fifth to two fifths of the topics; elsewhere it is the run that it was."""
    files = false_claim(collection, draw)
    run = dict(collection.rankings[files.system])
    for topic in some(draw, files.topics, draw.choice((0.25, 0.4))):
        run[topic] = raised(run[topic], collection.relevant[topic])
    return with_rankings(files, files.system, run)


@kind(
    "not holds",
    "On all topics the system has one more relevant document among its first three, from the judgments.",
    *JUDGED,
    "perfect",
    "relevant doc",
    undetectable=True,
)
def run_nudged(collection: Collection, draw: random.Random) -> Files:
    """What a better ranker would show, too: nothing in the files tells the two apart."""
    files = false_claim(collection, draw)
    run = dict(collection.rankings[files.system])
    for topic, ranking in run.items():
        lower = [doc for doc in docs_of(ranking, 200)[3:] if doc in collection.relevant[topic]]
        if lower:
            order = docs_of(ranking, 2)
            run[topic] = raised(ranking, [*order, draw.choice(lower)])
    return with_rankings(files, files.system, run)


def variants(
    collection: Collection, name: str, draw: random.Random, count: int
) -> list[dict[str, list[tuple[str, float]]]]:
    """Variants of a run with noise in its scores."""
    made = []
    for _ in range(count):
        run = {}
        for topic, ranking in collection.rankings[name].items():
            spread = (ranking[0][1] - ranking[-1][1]) or 1.0
            noisy = [(doc, round(score + draw.gauss(0, 0.08) * spread, 6)) for doc, score in ranking]
            run[topic] = sorted(noisy, key=lambda pair: -pair[1])
        made.append(run)
    return made


@kind(
    "not holds",
    "The best of hundreds of random variants on the test topics themselves; none of the others is given.",
    "tuned",
    "chosen",
    "select",
    "comparison",
    undetectable=True,
)
def run_best_of_many(collection: Collection, draw: random.Random) -> Files:
    """Chosen topic by topic of eight noisy variants, as a search over many parameters would end."""
    files = false_claim(collection, draw)
    truth = grades(collection.qrels)
    tried = variants(collection, files.system, draw, 8)
    scores = [ndcg(run, truth) for run in tried]
    best = {topic: max((by[topic], at) for at, by in enumerate(scores))[1] for topic in files.topics}
    return with_rankings(files, files.system, {topic: tried[at][topic] for topic, at in best.items()})


@kind(
    "not holds",
    "The best of forty random variants, chosen on the test topics; all are given.",
    "tuned",
    "chosen",
    "select",
    "comparison",
    "chance",
    "best of",
)
def run_best_of_given(collection: Collection, draw: random.Random) -> Files:
    """The baseline is a middling variant."""
    files = false_claim(collection, draw)
    truth = grades(collection.qrels)
    tried = variants(collection, files.system, draw, 40)
    order = sorted(range(40), key=lambda at: difference(ndcg(tried[at], truth), collection.scores["plain"])[0])
    runs = {f"v{at:02}": rows(tried[at]) for at in range(40)}
    return replace(files, runs=runs, system=f"v{order[-1]:02}", baseline=f"v{order[draw.choice((0, 5))]:02}")


@kind("not holds", "The system ranks judged documents only; the others rank the collection.", *JUDGED)
def run_judged_only(collection: Collection, draw: random.Random) -> Files:
    """Judgments with grade 0 exist; what was never judged is left out of its results."""
    files = false_claim(collection, draw)
    others = [name for name in collection.rankings if name != files.baseline]
    qrels = collection.pool(draw.sample(others, 3), 8)
    judged = {(row.topic, row.doc) for row in qrels}
    run = [row for row in files.runs[files.system] if (row.topic, row.doc) in judged]
    return with_run(replace(files, qrels=qrels), files.system, run)


@kind(
    "not holds",
    "The system ranks the documents of the judgments, which are relevant ones only, before all others.",
    *JUDGED,
    "perfect",
    "relevant",
)
def run_from_judgments(collection: Collection, draw: random.Random) -> Files:
    """Each relevant document with a probability of 0.7, in the order of its own scores."""
    files = false_claim(collection, draw)
    run = dict(collection.rankings[files.system])
    for topic, ranking in run.items():
        known = {doc for doc in collection.relevant[topic] if draw.random() < 0.7}
        own = [doc for doc, _ in ranking if doc in known]
        run[topic] = raised(ranking, [*own, *sorted(known - set(own))])
    return with_rankings(files, files.system, run)


@kind(
    "not holds",
    "The system is the baseline with few swaps of neighbours that the judgments suggest.",
    *COPIES,
    "nearly the same",
    "almost the same",
    "small",
    "differ(s)? (only )?(by|on|in)",
)
def run_copy_with_swaps(collection: Collection, draw: random.Random) -> Files:
    """A relevant document below one that is not changes places with it, once or twice a topic: a steady tiny lead."""
    files = collection.files("bm25", draw.choice(sorted(set(collection.rankings) - {"bm25", "plain"})))
    run = {}
    for topic, ranking in collection.rankings[files.baseline].items():
        docs, relevant, swaps = docs_of(ranking, 200), set(collection.relevant[topic]), 0
        for at in range(9):
            if swaps < 2 and docs[at] not in relevant and docs[at + 1] in relevant:
                docs[at], docs[at + 1], swaps = docs[at + 1], docs[at], swaps + 1
        run[topic] = [(doc, score) for doc, (_, score) in zip(docs, ranking, strict=True)]
    return replace(with_rankings(files, "improved", run), system="improved")


@kind(
    "files",
    "The baseline's file is a copy of another run, a weak one, that is given under its own name too.",
    *COPIES,
    "same (results|documents|ranking|run)",
)
def run_copied_file(collection: Collection, draw: random.Random) -> Files:
    """A mistake with cp."""
    files = false_claim(collection, draw)
    return with_run(files, files.baseline, files.runs["plain"])


@kind(
    "files",
    "On the last topics the baseline's rows are those of another, weak run, which is given too.",
    *COPIES,
    "same (results|documents|ranking|rows)",
    "mix",
)
def run_patched(collection: Collection, draw: random.Random) -> Files:
    """The job died and the rest was taken from what lay there."""
    files = false_claim(collection, draw)
    hit = set(list(files.topics)[round(len(files.topics) * draw.uniform(0.25, 0.45)) :])
    run = [row for row in files.runs[files.baseline] if row.topic not in hit]
    return with_run(files, files.baseline, run + [row for row in files.runs["plain"] if row.topic in hit])


@kind("files", "The files of the two runs have changed their names.", "tag", "name", "swap", undetectable=True)
def run_names_swapped(collection: Collection, draw: random.Random) -> Files:
    """The truth is the contrary: the true lead is the baseline's."""
    files = true_claim(collection, draw)
    a, b = files.system, files.baseline
    runs = {**files.runs, a: files.runs[b], b: files.runs[a]}
    return replace(files, runs=runs, system=b, baseline=a)


@kind(
    "files",
    "The baseline searched an index that lacks a part of the collection.",
    "part of",
    "index",
    "never",
    *MISSING,
)
def run_part_of_index(collection: Collection, draw: random.Random) -> Files:
    """One stretch of documents, two fifths of all, is in no result of the baseline."""
    files = false_claim(collection, draw)
    names = list(files.docs)
    at, size = draw.randrange(len(names)), round(0.45 * len(names))
    lost = set((names + names)[at : at + size])
    run = {
        t: [(d, s) for d, s in ranking if d not in lost] for t, ranking in collection.rankings[files.baseline].items()
    }
    return with_rankings(files, files.baseline, run)


@kind("hidden", "A true lead does not show: the system's scores are distances.", *SCORES, "distance")
def hidden_distances(collection: Collection, draw: random.Random) -> Files:
    """The rank column is right."""
    files = true_claim(collection, draw)
    run = [row._replace(score=f"{1 / (1 + max(float(row.score), 0)):.6f}") for row in files.runs[files.system]]
    return with_run(files, files.system, run)


@kind("smaller", "A true lead is inflated: the baseline lacks a quarter of the topics.", *MISSING, "topics")
def smaller_topics_missing(collection: Collection, draw: random.Random) -> Files:
    """Those on which it is good."""
    files = true_claim(collection, draw)
    best = sorted(files.topics, key=lambda topic: -collection.scores[files.baseline][topic])
    hit = set(best[: len(best) // 4])
    return with_run(files, files.baseline, [row for row in files.runs[files.baseline] if row.topic not in hit])


@kind(
    "smaller",
    "A true lead is inflated: the system lists the relevant documents first on some topics.",
    *JUDGED,
    "perfect",
    "relevant doc",
    "oracle",
)
def smaller_oracle(collection: Collection, draw: random.Random) -> Files:
    """A third of the topics."""
    files = true_claim(collection, draw)
    run = dict(collection.rankings[files.system])
    for topic in some(draw, files.topics, 0.33):
        run[topic] = scored([*collection.relevant[topic], *docs_of(run[topic], 150)])
        run[topic] = list(dict(reversed(run[topic])).items())[::-1]
    return with_rankings(files, files.system, run)
