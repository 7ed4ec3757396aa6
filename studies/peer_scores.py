"""Scores of other evaluators, as their own code computes them: what `studies/peer_conventions.py` compares with.

    python studies/peer_scores.py < collections.json > scores.json

It needs the evaluators and the standard library, not truerank: it runs in an environment of theirs. Each evaluator is
called by its public functions, with the judgments and the run as they are. Where one only reports means, it is asked
for each topic alone. Each answer comes from a process of its own, so that one that does not return can be ended.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import math
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Qrels = dict[str, dict[str, int]]
Rows = dict[str, list[tuple[str, float]]]
Run = dict[str, dict[str, float]]
#: Mean and scores by topic.
Scores = tuple[float, dict[str, float]]
Measure = Callable[[Qrels, Rows], Scores]

K = 10
#: After the name of a measure: the evaluator gets all judged documents, those that were not retrieved below the others.
EVERY = ", all judged"
#: Seconds that one measure of an evaluator may take over all collections.
LIMIT = 120


class Peer(NamedTuple):
    """An evaluator: the package that has its version, its measures by truerank's names, and what it can be given.

    `digits` are those that it rounds scores to; `lists` says that a document may occur twice in its input.
    """

    package: str
    measures: Mapping[str, Measure]
    digits: int | None = None
    lists: bool = False


def mean(values: Iterable[float]) -> float:
    """Their mean; not a number without values."""
    every = list(values)
    return math.fsum(every) / len(every) if every else math.nan


def plain(rows: Rows) -> Run:
    """A run as dictionaries, in the order of its rows."""
    return {topic: dict(own) for topic, own in rows.items()}


def alone(score: Callable[[Qrels, Rows], float | None]) -> Measure:
    """The scores of an evaluator that only reports means: of all topics, and of each alone; none where it skips one."""

    def scores(qrels: Qrels, rows: Rows) -> Scores:
        both = [topic for topic in qrels if topic in rows]
        values = {topic: score({topic: qrels[topic]}, {topic: rows[topic]}) for topic in both}
        return score(qrels, rows) or 0.0, {topic: value for topic, value in values.items() if value is not None}

    return scores


def trec_eval() -> Peer:
    """pytrec_eval: trec_eval's own code."""
    import pytrec_eval

    def of(name: str, key: str) -> Measure:
        def scores(qrels: Qrels, rows: Rows) -> Scores:
            found = pytrec_eval.RelevanceEvaluator(qrels, {name}).evaluate(plain(rows))
            values = {topic: float(own[key]) for topic, own in found.items()}
            return mean(values.values()), values

        return scores

    names = {
        "nDCG@10": ("ndcg_cut.10", "ndcg_cut_10"), "AP": ("map", "map"), "AP@10": ("map_cut.10", "map_cut_10"),
        "RR": ("recip_rank", "recip_rank"), "P@10": ("P.10", "P_10"), "R@10": ("recall.10", "recall_10"),
        "Success@10": ("success.10", "success_10"), "Rprec": ("Rprec", "Rprec"),
    }  # fmt: skip
    return Peer("pytrec_eval-terrier", {name: of(*pair) for name, pair in names.items()})


def ranx() -> Peer:
    """ranx's evaluate with make_comparable, which adds empty rankings for missing topics."""
    import ranx as package

    def of(name: str) -> Measure:
        def scores(qrels: Qrels, rows: Rows) -> Scores:
            run = package.Run(plain(rows))
            found = package.evaluate(package.Qrels(qrels), run, [name, "hits"], make_comparable=True)
            return float(found[name]), {topic: float(value) for topic, value in run.scores[name].items()}

        return scores

    names = {
        "nDCG@10": "ndcg@10", "nDCG@10, burges": "ndcg_burges@10", "AP": "map", "AP@10": "map@10", "RR": "mrr",
        "RR@10": "mrr@10", "P@10": "precision@10", "R@10": "recall@10", "Success@10": "hit_rate@10",
        "Rprec": "r-precision",
    }  # fmt: skip
    return Peer("ranx", {name: of(theirs) for name, theirs in names.items()})


def judged_too(qrels: Qrels, rows: Rows) -> Rows:
    """A run with all judged documents of its topics, those that it lacks below the others."""
    every = {}
    for topic, own in rows.items():
        least = min(score for _, score in own)
        below = least / 2 if least > 0 else least - 1
        ids = {doc for doc, _ in own}
        every[topic] = own + [(doc, below) for doc in qrels.get(topic, {}) if doc not in ids]
    return every


def torchmetrics_of(empty: str) -> Peer:
    """The retrieval metrics of torchmetrics on the retrieved documents, and nDCG on the judged ones too."""
    import torch
    import torchmetrics.retrieval as metrics

    def of(name: str, every: bool = False, **options: Any) -> Measure:
        def score(qrels: Qrels, rows: Rows) -> float:
            shown = judged_too(qrels, rows) if every else rows
            graded = name == "NormalizedDCG"
            numbers = {topic: place for place, topic in enumerate(shown)}
            grades = [[qrels.get(t, {}).get(doc, 0) for doc, _ in own] for t, own in shown.items()]
            target = torch.tensor([g if graded else int(g > 0) for own in grades for g in own])
            preds = torch.tensor([s for own in shown.values() for _, s in own])
            topic = torch.tensor([numbers[t] for t, own in shown.items() for _ in own])
            metric = getattr(metrics, f"Retrieval{name}")(empty_target_action=empty, **options)
            return float(metric(preds, target, indexes=topic))

        return alone(score)

    measures = {
        "nDCG@10": of("NormalizedDCG", top_k=K), "AP": of("MAP"), "AP@10": of("MAP", top_k=K), "RR": of("MRR"),
        "RR@10": of("MRR", top_k=K), "P@10": of("Precision", top_k=K), "R@10": of("Recall", top_k=K),
        "Success@10": of("HitRate", top_k=K), "Rprec": of("RPrecision"),
        f"nDCG@10{EVERY}": of("NormalizedDCG", every=True, top_k=K),
    }  # fmt: skip
    return Peer("torchmetrics", measures, lists=True)


def scikit_learn() -> Peer:
    """ndcg_score and average_precision_score of scikit-learn, for each topic, averaged over those of the run."""
    from sklearn.metrics import average_precision_score, ndcg_score

    def of(score: Callable[[list[int], list[float]], float], every: bool = False) -> Measure:
        def scores(qrels: Qrels, rows: Rows) -> Scores:
            shown = judged_too(qrels, rows) if every else rows
            values = {
                topic: float(score([qrels[topic].get(doc, 0) for doc, _ in own], [s for _, s in own]))
                for topic, own in shown.items()
                if topic in qrels
            }
            return mean(values.values()), values

        return scores

    def ndcg(grades: list[int], scores: list[float]) -> float:
        return float(ndcg_score([grades], [scores], k=K))

    return Peer(
        "scikit-learn",
        {
            "nDCG@10": of(ndcg),
            f"nDCG@10{EVERY}": of(ndcg, every=True),
            "AP": of(lambda grades, scores: average_precision_score([int(g > 0) for g in grades], scores)),
        },
        lists=True,
    )


def beir() -> Peer:
    """EvaluateRetrieval of BEIR."""
    from beir.retrieval.evaluation import EvaluateRetrieval

    def of(place: int, name: str) -> Measure:
        return alone(lambda qrels, rows: EvaluateRetrieval.evaluate(qrels, plain(rows), [K])[place][name])

    def custom(metric: str, name: str) -> Measure:
        return alone(lambda qrels, rows: EvaluateRetrieval.evaluate_custom(qrels, plain(rows), [K], metric)[name])

    measures = {
        "nDCG@10": of(0, "NDCG@10"), "AP@10": of(1, "MAP@10"), "R@10": of(2, "Recall@10"), "P@10": of(3, "P@10"),
        "RR@10": custom("mrr", "MRR@10"), "Success@10": custom("acc", "Accuracy@10"),
        "R@10, capped": custom("r_cap", "R_cap@10"),
    }  # fmt: skip
    return Peer("beir", measures, digits=5)


def bm25s() -> Peer:
    """evaluate of bm25s.utils.beir."""
    from bm25s.utils.beir import evaluate

    def of(place: int, name: str) -> Measure:
        return alone(lambda qrels, rows: evaluate(qrels, plain(rows), [K])[place][name])

    names = {"nDCG@10": (0, "NDCG@10"), "AP@10": (1, "MAP@10"), "R@10": (2, "Recall@10"), "P@10": (3, "P@10")}
    return Peer("bm25s", {name: of(*pair) for name, pair in names.items()}, digits=5)


def mteb() -> Peer:
    """calculate_retrieval_scores of MTEB, and its recall_cap and top_k_accuracy."""
    from mteb._evaluators import retrieval_metrics as metrics

    def of(part: str, name: str) -> Measure:
        def score(qrels: Qrels, rows: Rows) -> float:
            return float(getattr(metrics.calculate_retrieval_scores(plain(rows), qrels, [1, K]), part)[name])

        return alone(score)

    def averaged(function: str, name: str) -> Measure:
        def score(qrels: Qrels, rows: Rows) -> float | None:
            values = [value for value in getattr(metrics, function)(qrels, plain(rows), [K])[name] if value is not None]
            return mean(values) if values else None

        return alone(score)

    names = {
        "nDCG@10": ("ndcg", "NDCG@10"), "AP@10": ("map", "MAP@10"), "RR@10": ("mrr", "MRR@10"),
        "P@10": ("precision", "P@10"), "R@10": ("recall", "Recall@10"), "Success@10": ("hit_rate", "HitRate@10"),
    }  # fmt: skip
    capped = averaged("recall_cap", "R_cap_at_10")
    return Peer("mteb", {**{name: of(*pair) for name, pair in names.items()}, "R@10, capped": capped}, digits=5)


def sentence_transformers() -> Peer:
    """InformationRetrievalEvaluator of sentence-transformers, from the hits on."""
    try:
        from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
    except ImportError:
        from sentence_transformers.evaluation import InformationRetrievalEvaluator

    def of(part: str) -> Measure:
        def score(qrels: Qrels, rows: Rows) -> float | None:
            relevant = {topic: {doc for doc, grade in own.items() if grade > 0} for topic, own in qrels.items()}
            evaluator = InformationRetrievalEvaluator(
                dict.fromkeys(qrels, "query"), {"D0": "text"}, relevant, mrr_at_k=[K], ndcg_at_k=[K],
                accuracy_at_k=[K], precision_recall_at_k=[K], map_at_k=[K],
            )  # fmt: skip
            if not evaluator.queries_ids:
                return None
            hits = [
                [{"corpus_id": doc, "score": value} for doc, value in rows.get(topic, [])]
                for topic in evaluator.queries_ids
            ]
            return float(evaluator.compute_metrics(hits)[f"{part}@k"][K])

        return alone(score)

    names = {
        "nDCG@10": "ndcg", "AP@10": "map", "RR@10": "mrr", "P@10": "precision", "R@10": "recall",
        "Success@10": "accuracy",
    }  # fmt: skip
    return Peer("sentence-transformers", {name: of(part) for name, part in names.items()})


def ir_measures(provider: str, package: str, names: Iterable[str], digits: int | None = None) -> Peer:
    """A provider of ir_measures; gdeval has the measure by its name."""
    import ir_measures as irm

    own = irm.providers.registry[provider]
    own.initialize()

    def of(name: str) -> Measure:
        measure = irm.parse_measure("nDCG(dcg='exp-log2')@10" if provider == "gdeval" else name)

        def scores(qrels: Qrels, rows: Rows) -> Scores:
            judged = [irm.Qrel(topic, doc, grade) for topic, docs in qrels.items() for doc, grade in docs.items()]
            run = [irm.ScoredDoc(topic, doc, score) for topic, docs in rows.items() for doc, score in docs]
            found = own.calc([measure], judged, run)
            return float(found.aggregated[measure]), {one.query_id: float(one.value) for one in found.per_query}

        return scores

    return Peer(package, {name: of(name) for name in names}, digits)


PEERS: Mapping[str, Callable[[], Peer]] = {
    "pytrec_eval": trec_eval,
    "ir_measures pytrec_eval": lambda: ir_measures("pytrec_eval", "ir_measures", ("nDCG@10", "AP", "RR", "P@10")),
    "ir_measures gdeval": lambda: ir_measures("gdeval", "ir_measures", ["nDCG@10"], 5),
    "ir_measures msmarco": lambda: ir_measures("msmarco", "ir_measures", ("RR@10", "RR")),
    "ir_measures cwl_eval": lambda: ir_measures("cwl_eval", "cwl-eval", ("AP", "RR", "P@10")),
    "ir_measures trectools": lambda: ir_measures(
        "trectools", "trectools", ("nDCG@10", "AP", "AP@10", "RR", "P@10", "Rprec")
    ),
    "ranx": ranx,
    "BEIR": beir,
    "bm25s": bm25s,
    "MTEB": mteb,
    "sentence-transformers": sentence_transformers,
    "torchmetrics": lambda: torchmetrics_of("neg"),
    "torchmetrics skip": lambda: torchmetrics_of("skip"),
    "scikit-learn": scikit_learn,
}


def _answers(measure: Measure, collections: Mapping[str, Any], pipe: Any) -> None:
    with Path(os.devnull).open("w") as quiet, contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        for name, one in collections.items():
            rows = {topic: [(doc, score) for doc, score in own] for topic, own in one["run"].items()}
            try:
                average, topics = measure(json.loads(json.dumps(one["qrels"])), rows)
                numbers = all(map(math.isfinite, (average, *topics.values())))
                pipe.send((name, {"mean": average, "topics": topics} if numbers else {"error": "not a number"}))
            except Exception as error:
                pipe.send((name, {"error": type(error).__name__}))
    pipe.close()


def answers(measure: Measure, collections: Mapping[str, Any]) -> dict[str, Any]:
    """What a measure gives for each collection: its mean and scores by topic, or an error."""
    forks = multiprocessing.get_context("fork")
    receiver, sender = forks.Pipe(duplex=False)
    process = forks.Process(target=_answers, args=(measure, collections, sender))
    process.start()
    sender.close()
    found: dict[str, Any] = {}
    with contextlib.suppress(EOFError):
        while len(found) < len(collections) and receiver.poll(LIMIT):
            name, answer = receiver.recv()
            found[name] = answer
    process.kill()
    process.join()
    return {name: found.get(name, {"error": "no answer"}) for name in collections}


def main() -> None:
    """Reads collections and the names of evaluators, and writes their scores."""
    asked = json.load(sys.stdin)
    out, found = sys.stdout, {}
    sys.stdout = sys.stderr
    for name in asked["peers"]:
        try:
            peer = PEERS[name]()
            version = importlib.metadata.version(peer.package)
        except (ImportError, RuntimeError, KeyError, importlib.metadata.PackageNotFoundError) as error:
            found[name] = {"absent": str(error)}
            continue
        given = {one: about for one, about in asked["collections"].items() if peer.lists or not about["twice"]}
        scores = {measure: answers(function, given) for measure, function in peer.measures.items()}
        found[name] = {"version": version, "digits": peer.digits, "scores": scores}
        print(name, version, file=sys.stderr)
    json.dump(found, out)


if __name__ == "__main__":
    main()
