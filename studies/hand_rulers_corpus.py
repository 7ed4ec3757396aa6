"""Case 4, smaller corpora: which documents went, and whether scores changed more than by as many random documents."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hand_rulers_base as base

Generator = np.random.Generator
DRAWS = 60
REACH = 1500
STATES = ("relevant", "nonrelevant", "unjudged")


def states(part: base.Collection) -> dict[str, str]:
    """A document's judged state: relevant to a topic, judged and relevant to none, or without a row."""
    state = dict.fromkeys(part.docs, "unjudged")
    for row in part.qrels.values():
        for doc, grade in row.items():
            if grade > 0:
                state[doc] = "relevant"
            elif state[doc] == "unjudged":
                state[doc] = "nonrelevant"
    return state


class Scorer:
    """nDCG@10 of full rankings from which documents are taken out, without ranking again."""

    def __init__(self, part: base.Collection, table: dict[str, np.ndarray]) -> None:
        place = {doc: i for i, doc in enumerate(part.docs)}
        topics = list(part.topics)
        self.gains = np.zeros((len(topics), len(place)))
        for i, topic in enumerate(topics):
            for doc, grade in part.qrels[topic].items():
                self.gains[i, place[doc]] = max(0, grade)
        runs = base.runs_of(part, table, REACH)
        self.orders = {
            name: [np.array([place[d] for d, _ in run[t]], dtype=int) for t in topics] for name, run in runs.items()
        }
        self.relevant = [np.sort(np.flatnonzero(row)) for row in self.gains]
        self.discount = 1 / np.log2(np.arange(2, 12))

    def __call__(self, kept: np.ndarray) -> dict[str, float]:
        ideal, asked = [], []
        for i, columns in enumerate(self.relevant):
            best = np.sort(self.gains[i, columns[kept[columns]]])[::-1][:10]
            ideal.append(float(best @ self.discount[: len(best)]))
            asked.append(len(best) > 0)
        out = {}
        for name, orders in self.orders.items():
            values = []
            for i, order in enumerate(orders):
                if asked[i]:
                    top = order[kept[order]][:10]
                    values.append(float(self.gains[i, top] @ self.discount[: len(top)]) / ideal[i])
            out[name] = float(np.mean(values)) if values else 0.0
        return out


def draws(scorer: Scorer, pools: list[tuple[np.ndarray, int]], rng: Generator, before: dict[str, float]) -> np.ndarray:
    """Changes of the runs' scores (a row a draw) when so many random documents of each pool go."""
    changes = []
    for _ in range(DRAWS):
        kept = np.ones(len(scorer.gains[0]), dtype=bool)
        for pool, count in pools:
            kept[rng.choice(pool, count, replace=False)] = False
        after = scorer(kept)
        changes.append([after[name] - before[name] for name in before])
    return np.array(changes)


def against(change: float, drawn: np.ndarray) -> dict[str, Any]:
    low, high = np.quantile(drawn, [0.025, 0.975])
    far = abs(change - drawn.mean())
    p = (1 + (np.abs(drawn - drawn.mean()) >= far - 1e-12).sum()) / (1 + len(drawn))
    return {
        "change": round(float(change), 6),
        "random_low": round(float(low), 6),
        "random_high": round(float(high), 6),
        "p": round(float(p), 4),
        "changed_otherwise_than_random": bool(p <= 0.05 and far > 0.005),
        "changed_more_than_random": bool(p <= 0.05 and far > 0.005 and abs(change) > abs(drawn.mean())),
    }


def truth_of(
    part: base.Collection, scorer: Scorer, gone: list[str], rng: Generator, remade: tuple[base.Qrels, base.Runs]
) -> dict[str, Any]:
    state = states(part)
    number = {name: sum(state[doc] == name for doc in gone) for name in STATES}
    lost = set(gone)
    kept = np.array([doc not in lost for doc in part.docs])
    before, after = scorer(np.ones(len(kept), dtype=bool)), scorer(kept)
    labels = np.array(list(state.values()))
    same = draws(scorer, [(np.flatnonzero(labels == name), number[name]) for name in STATES], rng, before)
    whatever = draws(scorer, [(np.arange(len(labels)), len(gone))], rng, before)
    runs = {}
    for i, name in enumerate(before):
        runs[name] = {
            "full": round(before[name], 6),
            "small": round(after[name], 6),
            "small_with_rankings_made_again": base.means(remade[0], remade[1][name], ["nDCG@10"])["nDCG@10"],
            **against(after[name] - before[name], same[:, i]),
        }
    mean = float(np.mean([after[n] - before[n] for n in before]))
    return {
        "removed": gone,
        "removed_by_state": number,
        "documents": len(part.docs),
        "runs_nDCG@10": runs,
        "mean": against(mean, same.mean(axis=1)),
        "any_state": against(mean, whatever.mean(axis=1)),
        "topics_left": len(remade[0]),
    }


def near_copies(part: base.Collection, rng: Generator, share: float, judged: bool) -> tuple[base.Collection, list[str]]:
    """The corpus with edited copies of documents, which are judged as their originals are or have no row."""
    state = states(part)
    sources = [doc for doc in part.docs if state[doc] == "relevant" and rng.random() < share]
    sources += [doc for doc in part.docs if state[doc] != "relevant" and rng.random() < share / 10]
    docs, titles = dict(part.docs), dict(part.titles)
    qrels = {t: dict(row) for t, row in part.qrels.items()}
    added = []
    for i, doc in enumerate(sources):
        other = f"CACM-8{i:03d}" if part.name == "cacm" else str(80000 + i)
        kept = [w for w in part.docs[doc].split() if rng.random() > 0.05]
        docs[other], titles[other] = " ".join(kept), part.titles.get(doc, "")
        added.append(other)
        if judged:
            for row in qrels.values():
                if doc in row:
                    row[other] = row[doc]
    order = [list(docs)[i] for i in rng.permutation(len(docs))]
    return part.but(docs={d: docs[d] for d in order}, titles=titles, qrels=qrels), added


def quoting(part: base.Collection, rng: Generator, share: float, least: str) -> tuple[base.Collection, list[str]]:
    """Documents of one judged state quote a topic word by word, at least 13 words or all of it."""
    state = states(part)
    docs = dict(part.docs)
    quoted = []
    for topic, text in part.topics.items():
        if rng.random() >= share:
            continue
        few = [d for d in part.docs if state[d] == least and d not in quoted]
        if least == "relevant":
            few = [d for d in few if part.qrels[topic].get(d, 0) > 0]
        if few:
            doc = few[rng.integers(len(few))]
            docs[doc] = f"{docs[doc]} {text}"
            quoted.append(doc)
    return part.but(docs=docs), quoted


def removals(
    part: base.Collection, runs: base.Runs, rng: Generator
) -> Iterator[tuple[str, dict[str, Any], base.Collection, list[str]]]:
    """(folder, facts, full corpus, documents that go)."""
    state = states(part)
    every = list(part.docs)

    def draw(few: list[str], share: float) -> list[str]:
        return [doc for doc in few if rng.random() < share]

    tops = {
        n: {d for run in runs.values() for pairs in run.values() for d, _ in pairs[:n]} for n in (3, 30, base.DEPTH)
    }
    groups = {
        "random": (every, (0.1, 0.3, 0.6)),
        "nonrelevant": ([d for d in every if state[d] == "nonrelevant"], (0.3, 1.0)),
        "relevant": ([d for d in every if state[d] == "relevant"], (0.1, 0.3)),
        "relevant-at-the-top": ([d for d in every if state[d] == "relevant" and d in tops[3]], (0.3, 0.8)),
        "relevant-hard": ([d for d in every if state[d] == "relevant" and d not in tops[30]], (0.5, 1.0)),
        "unjudged-retrieved": ([d for d in every if state[d] == "unjudged" and d in tops[30]], (0.5, 1.0)),
        "unjudged-far": ([d for d in every if state[d] == "unjudged" and d not in tops[base.DEPTH]], (1.0,)),
    }
    for kind, (few, shares) in groups.items():
        for share in shares:
            chance = kind in ("random", "nonrelevant", "relevant")
            facts = {"plant": None if kind == "random" else kind, "share": share, "drawn_as_the_comparison_is": chance}
            yield f"{kind}-{share}", facts, part, draw(few, share)
    for judged in (True, False):
        for share in (0.1, 0.3):
            full, added = near_copies(part, rng, share, judged)
            label = f"near-copies-{'judged' if judged else 'unjudged'}-{share}"
            yield label, {"plant": "near-copies", "share": share, "copies_judged": judged}, full, added
    for least in ("relevant", "unjudged"):
        for share in (0.3, 1.0):
            full, quoted = quoting(part, rng, share, least)
            yield f"quoting-{least}-{share}", {"plant": "quoting", "share": share, "quoted_by": least}, full, quoted


def write(name: str, out: Path, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([4, seed])
    plain = base.collection(name)
    fast = {n: run for n, run in base.plain_runs(name).items() if n in base.FAST}
    part = plain.but(qrels=base.with_zeros(plain, fast, rng, 10, 0.5))
    table = {n: base.plain_matrices(name)[n] for n in base.FAST}
    scorer = Scorer(part, table)
    for label, facts, full, gone in removals(part, fast, rng):
        changed = full is not part
        full_table = base.matrices(full, base.FAST) if changed else table
        judge = Scorer(full, full_table) if changed else scorer
        full_runs = base.runs_of(full, full_table) if changed else fast
        lost = set(gone)
        qrels = {t: {d: g for d, g in row.items() if d not in lost} for t, row in full.qrels.items()}
        small = full.but(
            docs={d: x for d, x in full.docs.items() if d not in lost},
            qrels={t: row for t, row in qrels.items() if any(g > 0 for g in row.values())},
        )
        remade = base.runs_for(small)
        truth = {**facts, **truth_of(full, judge, gone, rng, (small.qrels, remade))}
        folder = out / label
        base.write_folder(folder, full, full_runs, truth)
        shutil.rmtree(folder / "small", ignore_errors=True)
        base.write_folder(folder / "small", small, remade, {"see": "../truth.json"})
        (folder / "small" / "truth.json").unlink()
        mean, whatever = truth["mean"], truth["any_state"]
        yield (
            f"{label:26} removed {list(truth['removed_by_state'].values())}  change {mean['change']:+.3f}"
            f"  random, same states {mean['random_low']:+.3f} to {mean['random_high']:+.3f} p {mean['p']:.3f}"
            f" otherwise: {mean['changed_otherwise_than_random']} more: {mean['changed_more_than_random']}"
            f"  any state {whatever['random_low']:+.3f}"
            f" to {whatever['random_high']:+.3f} more: {whatever['changed_more_than_random']}"
        )
