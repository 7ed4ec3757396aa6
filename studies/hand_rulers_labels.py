"""Cases 2 and 5: what the judgments allow a system to score, wrong labels, and which rows of them are wrong."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hand_rulers_base as base

Generator = np.random.Generator
Row = tuple[str, str]
RATES = (0.02, 0.05, 0.1, 0.2)


def source(name: str, rng: Generator) -> tuple[base.Collection, base.Runs]:
    """The collection with grade 0 rows for what its runs retrieved; or published judgments of at most 150 topics."""
    part = base.collection(name)
    if part.docs:
        plain = base.plain_runs(name)
        return part.but(qrels=base.with_zeros(part, plain, rng, depth=10, share=0.6)), plain
    topics = sorted(part.qrels)
    if len(topics) > 150:
        topics = sorted(topics[i] for i in rng.choice(len(topics), 150, replace=False))
    part = part.but(qrels={t: part.qrels[t] for t in topics})
    return part, base.simulated_runs(part.qrels, rng)


def rows(qrels: base.Qrels, least: int, most: int = 9) -> list[Row]:
    return [(t, d) for t, row in qrels.items() for d, g in row.items() if least <= g <= most]


def some(items: list[Any], rng: Generator, share: float) -> list[Any]:
    """A fixed share, at least one, drawn at random."""
    number = min(len(items), max(1, round(share * len(items))))
    return [items[i] for i in sorted(rng.choice(len(items), number, replace=False))] if items else []


def copy(qrels: base.Qrels) -> base.Qrels:
    return {t: dict(row) for t, row in qrels.items()}


# Case 2: ceilings.

Ceiling = tuple[base.Collection, dict[str, Any]]


def oracle(part: base.Collection, once: dict[str, str] | None = None) -> base.Run:
    """The best ranking that the documents allow; with `once` (copy: original) a text is returned once."""
    run: base.Run = {}
    for topic, row in part.qrels.items():
        order = sorted((d for d, g in row.items() if g > 0 and d in part.docs), key=lambda d: -row[d])
        seen: set[str] = set()
        best = []
        for doc in order:
            text = (once or {}).get(doc, doc)
            if text not in seen:
                seen.add(text)
                best.append(doc)
        run[topic] = base.listing(best, 1000)
    return run


def ceiling_truth(part: base.Collection, runs: base.Runs, once: dict[str, str] | None = None) -> dict[str, Any]:
    names = [*base.MEASURES]
    empty = [t for t, row in part.qrels.items() if not any(g > 0 for g in row.values())]
    answered = {t: row for t, row in part.qrels.items() if t not in set(empty)}
    best = oracle(part)
    asked = {**{t: {"-": 0} for t in part.topics if t not in part.qrels}, **part.qrels}
    truth: dict[str, Any] = {
        "topics_without_relevant_documents": sorted(set(empty) | (set(part.topics) - set(part.qrels))),
        "topics_with_more_relevant_than_10": sum(sum(g > 0 for g in row.values()) > 10 for row in part.qrels.values()),
        "relevant_rows_of_missing_documents": sum(
            d not in part.docs for row in part.qrels.values() for d, g in row.items() if g > 0
        ),
        "ceiling_over_all_topics": base.means(asked, best, names),
        "ceiling_over_topics_with_relevant": base.means(answered, best, names),
        "runs_over_all_topics": {n: base.means(asked, run, names) for n, run in runs.items()},
    }
    if once:
        truth["ceiling_if_a_text_is_returned_once"] = base.means(asked, oracle(part, once), names)
    return truth


def empty_topics(part: base.Collection, rng: Generator, share: float) -> Ceiling:
    """Topics without relevant rows: half of them have grade 0 throughout, the others have no row at all."""
    chosen = some(list(part.topics), rng, share)
    qrels = copy(part.qrels)
    for i, topic in enumerate(chosen):
        if i % 2:
            qrels[topic] = dict.fromkeys(qrels[topic], 0)
        else:
            del qrels[topic]
    return part.but(qrels=qrels), {"planted": chosen}


def many_relevant(part: base.Collection, rng: Generator, share: float) -> Ceiling:
    """A share of the topics gets rows until 10 documents are a small part of the relevant ones."""
    chosen = some(list(part.topics), rng, share)
    docs = list(part.docs)
    qrels = copy(part.qrels)
    for topic in chosen:
        qrels[topic].update({docs[i]: 1 for i in rng.choice(len(docs), 60, replace=False)})
    return part.but(qrels=qrels), {"planted": chosen}


def copies(part: base.Collection, rng: Generator, share: float) -> Ceiling:
    """Relevant documents come twice or more under other ids, and every copy is judged relevant: all share the ideal."""
    relevant = sorted({d for row in part.qrels.values() for d, g in row.items() if g > 0})
    docs, titles, qrels, once = dict(part.docs), dict(part.titles), copy(part.qrels), {}
    for doc in some(relevant, rng, share):
        for i in range(int(rng.integers(1, 4))):
            other = f"{doc}-c{i}"
            docs[other], titles[other], once[other] = part.docs[doc], part.titles.get(doc, ""), doc
            for row in qrels.values():
                if doc in row:
                    row[other] = row[doc]
    return part.but(docs=docs, titles=titles, qrels=qrels), {"planted": once}


def missing(part: base.Collection, rng: Generator, share: float) -> Ceiling:
    """Judged relevant documents that are not in docs.jsonl."""
    relevant = sorted({d for row in part.qrels.values() for d, g in row.items() if g > 0})
    gone = set(some(relevant, rng, share))
    docs = {d: x for d, x in part.docs.items() if d not in gone}
    return part.but(docs=docs), {"planted": sorted(gone)}


CEILINGS: dict[str, Callable[[base.Collection, Generator, float], Ceiling]] = {
    "empty-topics": empty_topics,
    "many-relevant": many_relevant,
    "copies": copies,
    "missing-documents": missing,
}


def write_ceilings(name: str, out: Path, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([2, seed])
    part, runs = base.collection(name), base.plain_runs(name)
    fast = {n: runs[n] for n in base.FAST}
    plants: list[tuple[str, base.Collection, base.Runs, dict[str, Any]]] = [("clean", part, fast, {"plant": None})]
    small = part.but(qrels={t: row for t, row in part.qrels.items() if len(row) <= 10})
    small = small.but(topics={t: part.topics[t] for t in small.qrels})
    few = {n: {t: p for t, p in run.items() if t in small.qrels} for n, run in fast.items()}
    plants.append(("clean-few-relevant", small, few, {"plant": None}))
    for kind, plant in CEILINGS.items():
        for share in (0.05, 0.2, 0.5):
            planted, facts = plant(part, rng, share)
            changed = kind in ("copies", "missing-documents")
            remade = base.runs_for(planted) if changed else fast
            plants.append((f"{kind}-{share}", planted, remade, {"plant": kind, "share": share, **facts}))
    for label, planted, remade, facts in plants:
        once = facts["planted"] if facts["plant"] == "copies" else None
        truth = {**facts, **ceiling_truth(planted, remade, once)}
        base.write_folder(out / label, planted, remade, truth)
        top = truth["ceiling_over_all_topics"]
        extra = truth.get("ceiling_if_a_text_is_returned_once", {}).get("nDCG@10")
        yield (
            f"{label:24} ceiling nDCG@10 {top['nDCG@10']:.3f} R@10 {top['R@10']:.3f} P@10 {top['P@10']:.3f}"
            f"  without empty topics {truth['ceiling_over_topics_with_relevant']['nDCG@10']:.3f}"
            f"  texts once {extra}  bm25 {truth['runs_over_all_topics']['bm25']['nDCG@10']:.3f}"
        )


# Case 2: wrong labels with a re-judged sample.


def flip(qrels: base.Qrels, wrong: list[Row], rng: Generator) -> base.Qrels:
    """Relevant becomes 0, not relevant becomes a grade that occurs."""
    grades = [g for row in qrels.values() for g in row.values() if g > 0]
    spoilt = copy(qrels)
    for topic, doc in wrong:
        spoilt[topic][doc] = 0 if qrels[topic][doc] > 0 else int(grades[rng.integers(len(grades))])
    return spoilt


def wrong_rows(qrels: base.Qrels, runs: base.Runs, rng: Generator, rate: float, kind: str) -> list[Row]:
    """Which rows are wrong: any row, one side only, or (`favour`) so that one run gains."""
    positive, negative = rows(qrels, 1), rows(qrels, -1, 0)
    if kind == "any":
        return some(positive + negative, rng, rate)
    if kind == "missed":
        return some(positive, rng, rate)
    if kind == "false-relevant":
        return some(negative, rng, rate)
    favoured, other = (["minilm", "bm25"] if "minilm" in runs else list(runs)[2:4])[:2]
    tops = {n: {(t, d) for t, pairs in runs[n].items() for d, _ in pairs[:10]} for n in (favoured, other)}
    only, its = tops[favoured] - tops[other], tops[other] - tops[favoured]
    number = round(rate * (len(positive) + len(negative)))
    likely = [pair for pair in negative if pair in only] + [pair for pair in positive if pair in its]
    return some(likely, rng, min(1, number / max(1, len(likely))))


def pair_truth(
    qrels: base.Qrels, spoilt: base.Qrels, runs: base.Runs, measure: str = "nDCG@10"
) -> list[dict[str, Any]]:
    true = {n: base.scores(qrels, run, [measure])[measure] for n, run in runs.items()}
    given = {n: base.scores(spoilt, run, [measure])[measure] for n, run in runs.items()}
    names = list(runs)
    return [
        {"a": a, "b": b, "true": base.paired(true[a], true[b]), "given": base.paired(given[a], given[b])}
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ]


def write_wrong_labels(name: str, out: Path, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([22, seed])
    part, runs = source(name, rng)
    settings = [("any", 0.0)] + [(k, r) for k in ("any", "missed", "false-relevant", "favour") for r in RATES[1:]]
    for kind, rate in settings:
        wrong = wrong_rows(part.qrels, runs, rng, rate, kind) if rate else []
        spoilt = flip(part.qrels, wrong, rng)
        every = rows(spoilt, -1)
        order = [every[i] for i in rng.permutation(len(every))]
        pairs = pair_truth(part.qrels, spoilt, runs)
        turned = sum(p["true"]["difference"] * p["given"]["difference"] < 0 for p in pairs)
        truth = {
            "plant": kind if rate else None,
            "rate": rate,
            "rows": len(every),
            "wrong_rows": [[t, d, spoilt[t][d], part.qrels[t][d]] for t, d in wrong],
            "share_of_rows_wrong": round(len(wrong) / len(every), 5),
            "true_scores": {n: base.means(part.qrels, run) for n, run in runs.items()},
            "given_scores": {n: base.means(spoilt, run) for n, run in runs.items()},
            "pairs_nDCG@10": pairs,
            "simulated_runs": not part.docs,
        }
        folder = out / (f"{kind}-{rate}" if rate else "clean")
        base.write_folder(folder, part, runs, truth, spoilt)
        sampled = []
        for number in (50, 100, 200):
            sample: base.Qrels = {}
            for t, d in order[:number]:
                sample.setdefault(t, {})[d] = part.qrels[t][d]
            base.write_qrels(folder / f"rejudged-{number}.qrels", sample)
            sampled.append(sum((t, d) in set(wrong) for t, d in order[:number]))
        shift = np.mean([truth["given_scores"][n]["nDCG@10"] - truth["true_scores"][n]["nDCG@10"] for n in runs])
        yield (
            f"{folder.name:24} rows {len(every):6} wrong {len(wrong):5}  in samples {sampled}"
            f"  mean change of nDCG@10 {shift:+.3f}  pairs turned round {turned} of {len(pairs)}"
        )


def write_labels(name: str, out: Path, seed: int) -> Iterator[str]:
    if name in base.WITH_DOCUMENTS:
        yield from write_ceilings(name, out / "ceilings", seed)
    yield from write_wrong_labels(name, out / "wrong-labels", seed)


# Case 5: suspect judgments.

Wrong = list[tuple[str, str, int, int]]
Plant = tuple[base.Qrels, Wrong, list[Row]]


def pooled(qrels: base.Qrels, runs: base.Runs, topic: str, depth: int) -> list[str]:
    pool = {doc for run in runs.values() for doc, _ in run.get(topic, [])[:depth]}
    return sorted(doc for doc in pool if qrels[topic].get(doc, 0) <= 0)


def replaced(qrels: base.Qrels, runs: base.Runs, rng: Generator, rate: float, depth: int = base.DEPTH) -> Plant:
    """A relevant row's document gives way to a random pooled one that is not relevant: wrong in, right out."""
    spoilt, wrong, lost = copy(qrels), [], []
    for topic, doc in some(rows(qrels, 1), rng, rate):
        pool = [d for d in pooled(qrels, runs, topic, depth) if spoilt[topic].get(d, 0) <= 0]
        if pool:
            other = pool[rng.integers(len(pool))]
            grade = spoilt[topic].pop(doc)
            spoilt[topic][other] = grade
            wrong.append((topic, other, grade, 0))
            lost.append((topic, doc))
    return spoilt, wrong, lost


def replaced_high(qrels: base.Qrels, runs: base.Runs, rng: Generator, rate: float) -> Plant:
    """As `replaced`, by a document that some run has in its first ten."""
    return replaced(qrels, runs, rng, rate, 10)


def swapped(qrels: base.Qrels, runs: base.Runs, rng: Generator, rate: float) -> Plant:
    """Relevant rows of two topics change places."""
    spoilt, wrong, lost = copy(qrels), [], []
    chosen = some(rows(qrels, 1), rng, rate)
    chosen = [chosen[i] for i in rng.permutation(len(chosen))]
    for (t, d), (u, e) in zip(chosen[::2], chosen[1::2], strict=False):
        if t == u or qrels[t].get(e, 0) > 0 or qrels[u].get(d, 0) > 0 or e in spoilt[t] or d in spoilt[u]:
            continue
        first, second = spoilt[t].pop(d), spoilt[u].pop(e)
        spoilt[t][e], spoilt[u][d] = second, first
        wrong += [(t, e, second, 0), (u, d, first, 0)]
        lost += [(t, d), (u, e)]
    return spoilt, wrong, lost


def missed(qrels: base.Qrels, runs: base.Runs, rng: Generator, rate: float) -> Plant:
    """Relevant documents have grade 0."""
    spoilt = copy(qrels)
    wrong = [(t, d, 0, qrels[t][d]) for t, d in some(rows(qrels, 1), rng, rate)]
    for topic, doc, grade, _ in wrong:
        spoilt[topic][doc] = grade
    return spoilt, wrong, []


def false_relevant(qrels: base.Qrels, runs: base.Runs, rng: Generator, rate: float) -> Plant:
    """Rows of grade 0 have a grade above; as many as the rate of the relevant rows."""
    spoilt = copy(qrels)
    negative, number = rows(qrels, -1, 0), rate * len(rows(qrels, 1))
    grades = [g for row in qrels.values() for g in row.values() if g > 0]
    chosen = some(negative, rng, number / max(1, len(negative)))
    wrong = [(t, d, int(grades[rng.integers(len(grades))]), qrels[t][d]) for t, d in chosen]
    for topic, doc, grade, _ in wrong:
        spoilt[topic][doc] = grade
    return spoilt, wrong, []


def regraded(qrels: base.Qrels, runs: base.Runs, rng: Generator, rate: float) -> Plant:
    """Another grade on the same scale, one step away; for binary scales the two kinds of flips together."""
    most = max(g for row in qrels.values() for g in row.values())
    spoilt, wrong = copy(qrels), []
    for topic, doc in some(rows(qrels, 0), rng, rate):
        grade = qrels[topic][doc]
        near = [g for g in (grade - 1, grade + 1) if 0 <= g <= most]
        spoilt[topic][doc] = near[rng.integers(len(near))]
        wrong.append((topic, doc, spoilt[topic][doc], grade))
    return spoilt, wrong, []


SUSPECTS: dict[str, Callable[[base.Qrels, base.Runs, Generator, float], Plant]] = {
    "replaced": replaced,
    "replaced-high": replaced_high,
    "swapped": swapped,
    "missed": missed,
    "false-relevant": false_relevant,
    "regraded": regraded,
}


def evidence(spoilt: base.Qrels, runs: base.Runs, wrong: Wrong) -> float | None:
    """How well the runs' ranks, set against the given grade, tell wrong from right rows: area under the curve."""
    bad = {(t, d) for t, d, _, _ in wrong}
    ranks: dict[Row, float] = {}
    for run in runs.values():
        for t, pairs in run.items():
            for i, (d, _) in enumerate(pairs):
                ranks[t, d] = ranks.get((t, d), 0.0) + 1 / (i + 10)
    total = max(ranks.values(), default=1.0)
    doubt = []
    for t, row in spoilt.items():
        for d, g in row.items():
            support = ranks.get((t, d), 0.0) / total
            doubt.append(((1 - support) if g > 0 else support, (t, d) in bad))
    values = np.array([v for v, _ in doubt])
    marks = np.array([m for _, m in doubt])
    if not 0 < marks.sum() < len(marks):
        return None
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable") + 1
    area = (order[marks].sum() - marks.sum() * (marks.sum() + 1) / 2) / (marks.sum() * (~marks).sum())
    return round(float(area), 4)


def write_suspects(name: str, out: Path, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([5, seed])
    part, runs = source(name, rng)
    clean = [("clean", part.qrels)]
    if part.docs:
        clean.append(("clean-no-zeros", base.positives(part.qrels)))
    plants: list[tuple[str, dict[str, Any], Plant]] = [
        (label, {"plant": None, "rate": 0}, (qrels, [], [])) for label, qrels in clean
    ]
    for kind, plant in SUSPECTS.items():
        for rate in RATES:
            facts = {"plant": kind, "rate": rate}
            plants.append((f"{kind}-{rate}", facts, plant(part.qrels, runs, rng, rate)))
            if kind in ("replaced", "swapped") and part.docs and rate in (0.05, 0.2):
                bare = plant(base.positives(part.qrels), runs, rng, rate)
                plants.append((f"{kind}-{rate}-no-zeros", facts, bare))
    for label, facts, (spoilt, wrong, lost) in plants:
        area = evidence(spoilt, runs, wrong)
        before, after = (
            float(np.mean([base.means(q, run, ["nDCG@10"])["nDCG@10"] for run in runs.values()]))
            for q in (part.qrels, spoilt)
        )
        truth = {
            **facts,
            "wrong": [{"topic": t, "document": d, "given": g, "true": v} for t, d, g, v in wrong],
            "lost": [{"topic": t, "document": d} for t, d in lost],
            "rows": sum(map(len, spoilt.values())),
            "relevant_rows": len(rows(spoilt, 1)),
            "area_of_mean_reciprocal_rank": area,
            "mean_nDCG@10": {"true": round(before, 6), "given": round(after, 6)},
            "simulated_runs": not part.docs,
        }
        base.write_folder(out / label, part, runs, truth, spoilt)
        yield (
            f"{label:26} rows {truth['rows']:6} relevant {truth['relevant_rows']:5}"
            f" wrong {len(wrong):4} lost {len(lost):4}"
            f"  area of a plain rank score {area}  mean nDCG@10 {before:.3f} -> {after:.3f}"
        )
