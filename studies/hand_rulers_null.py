"""Case 1, null rankers: rulers on which a list made without the query scores, or not, and claims that rest on one."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hand_rulers_base as base

Generator = np.random.Generator
STRENGTHS = {"subtle": (0.1, 1), "middle": (0.3, 3), "strong": (0.45, 5), "obvious": (0.6, 10)}


def popular_order(qrels: base.Qrels, but: str | None = None) -> list[str]:
    """Documents by the number of topics they are relevant to, `but` one topic's judgments."""
    count: Counter[str] = Counter()
    for topic, row in qrels.items():
        if topic != but:
            count.update(doc for doc, grade in row.items() if grade > 0)
    return [doc for doc, _ in sorted(count.items(), key=lambda item: (-item[1], item[0]))]


Candidates = dict[str, list[str]]


def null_runs(part: base.Collection, runs: base.Runs, rng: Generator, candidates: Candidates | None) -> base.Runs:
    """Lists that do not read the query. `popular_held_out` does not see the topic's own judgments."""
    topics = list(part.qrels)
    judged = sorted({doc for row in part.qrels.values() for doc in row})
    docs = list(part.docs) or judged
    retrieved = Counter(doc for run in runs.values() for pairs in run.values() for doc, _ in pairs[:10])
    orders = {
        "popular": popular_order(part.qrels),
        "random": [docs[i] for i in rng.permutation(len(docs))[: base.DEPTH]],
        "lowest_id": sorted(docs),
        "most_retrieved": [doc for doc, _ in sorted(retrieved.items(), key=lambda item: (-item[1], item[0]))],
    }
    if part.docs:
        orders["file_order"] = docs
        orders["longest"] = sorted(docs, key=lambda doc: (-len(part.full(doc)), doc))
    lists: base.Runs = {name: dict.fromkeys(topics, base.listing(order)) for name, order in orders.items() if order}
    lists["popular_held_out"] = {t: base.listing(popular_order(part.qrels, t)) for t in topics[:2000]}
    if candidates:
        length = {doc: len(part.full(doc)) for docs in candidates.values() for doc in docs}
        place = {doc: i for i, doc in enumerate(docs)}
        keys: dict[str, Callable[[str], Any]] = {
            "candidates_by_id": lambda doc: doc,
            "candidates_by_length": lambda doc: (-length[doc], doc),
            "candidates_by_file_order": lambda doc: place[doc],
        }
        for name, key in keys.items():
            lists[name] = {t: base.listing(sorted(few, key=key)) for t, few in candidates.items()}
        lists["candidates_shuffled"] = {
            t: base.listing([few[i] for i in rng.permutation(len(few))]) for t, few in candidates.items()
        }
    return lists


def null_truth(
    part: base.Collection, runs: base.Runs, rng: Generator, candidates: Candidates | None = None
) -> dict[str, Any]:
    lists = null_runs(part, runs, rng, candidates)
    null_means = {name: base.means(part.qrels, run) for name, run in lists.items()}
    run_means = {name: base.means(part.qrels, run) for name, run in runs.items()}
    shares = {}
    for measure in base.MEASURES:
        best = max(null_means, key=lambda name: null_means[name][measure])
        middle = float(np.median([row[measure] for row in run_means.values()])) if runs else None
        shares[measure] = {
            "best_null": best,
            "score": null_means[best][measure],
            "median_run": middle,
            "share_of_median_run": round(null_means[best][measure] / middle, 4) if middle else None,
        }
    shared = Counter(doc for row in part.qrels.values() for doc, grade in row.items() if grade > 0)
    top = shared.most_common(1)
    return {
        "null_scores": null_means,
        "run_scores": run_means,
        "by_measure": shares,
        "topics": len(part.qrels),
        "topics_sharing_the_most_shared_document": top[0][1] if top else 0,
    }


def portal(part: base.Collection, rng: Generator, share: float, number: int) -> tuple[base.Collection, list[str]]:
    """New overview documents: a line of a relevant document of each topic that they are judged relevant to."""
    docs, titles = dict(part.docs), dict(part.titles)
    qrels = {t: dict(row) for t, row in part.qrels.items()}
    topics = list(part.topics)
    planted = []
    for i in range(number):
        covered = [t for t in topics if rng.random() < share]
        lines = []
        for topic in covered:
            relevant = sorted(part.qrels[topic])
            source = relevant[rng.integers(len(relevant))]
            lines.append(part.titles.get(source) or " ".join(part.docs[source].split()[:12]))
        doc = f"CACM-9{i:03d}" if part.name == "cacm" else str(90000 + i)
        titles[doc], docs[doc] = f"survey and overview part {i + 1}", "  ".join(lines)
        for topic in covered:
            qrels[topic][doc] = 1
        planted.append(doc)
    return part.but(docs=docs, titles=titles, qrels=qrels), planted


def popular(part: base.Collection, rng: Generator, share: float, number: int) -> tuple[base.Collection, list[str]]:
    """Documents that exist are judged relevant to a share of the topics, whatever they say."""
    docs = list(part.docs) or sorted({doc for row in part.qrels.values() for doc in row})
    chosen = [docs[i] for i in rng.choice(len(docs), number, replace=False)]
    qrels = {t: dict(row) for t, row in part.qrels.items()}
    for row in qrels.values():
        row.update({doc: 1 for doc in chosen if rng.random() < share})
    return part.but(qrels=qrels), chosen


def near_identical(
    part: base.Collection, rng: Generator, share: float, number: int
) -> tuple[base.Collection, list[str]]:
    """Few needs, many topics: each kept topic comes in reworded copies that share its judgments."""
    kept = [t for t in part.topics if rng.random() > share] or list(part.topics)[:1]
    sources = [kept[i] for i in rng.choice(len(kept), max(1, len(kept) // 5), replace=False)]
    topics, qrels, planted = {t: part.topics[t] for t in kept}, {t: dict(part.qrels[t]) for t in kept}, []
    number_of_copies = len(part.topics) - len(kept)
    for i in range(number_of_copies):
        source = sources[i % (1 if number == 10 else len(sources))]
        text = part.topics[source].split()
        order = [w for w in text if rng.random() > 0.15] or text
        if rng.random() < 0.5:
            cut = int(rng.integers(len(order)))
            order = order[cut:] + order[:cut]
        copy = str(9000 + i)
        topics[copy], qrels[copy] = " ".join(order), dict(part.qrels[source])
        planted.append(copy)
    return part.but(topics=topics, qrels=qrels), planted


def relevant_first(part: base.Collection, rng: Generator, share: float, rename: bool) -> base.Collection:
    """A share of the relevant documents comes first in the file; with `rename` the ids follow the order in the file."""
    relevant = {doc for row in part.qrels.values() for doc in row}
    first = [doc for doc in part.docs if doc in relevant and rng.random() < share]
    head = set(first)
    rest = [doc for doc in part.docs if doc not in head]
    rest = [rest[i] for i in rng.permutation(len(rest))]
    order = [first[i] for i in rng.permutation(len(first))] + rest
    name = {doc: f"D{i:06d}" if rename else doc for i, doc in enumerate(order)}
    return part.but(
        docs={name[doc]: part.docs[doc] for doc in order},
        titles={name[doc]: part.titles[doc] for doc in order},
        qrels={t: {name[doc]: g for doc, g in row.items()} for t, row in part.qrels.items()},
    )


def relevant_longest(part: base.Collection, rng: Generator, share: float) -> base.Collection:
    """A share of the relevant documents is padded with common text until it is longer than the others."""
    relevant = sorted({doc for row in part.qrels.values() for doc in row})
    pieces = list(part.docs.values())
    docs = dict(part.docs)
    longest = max(map(len, docs.values()))
    for doc in relevant:
        if rng.random() < share:
            while len(docs[doc]) <= longest:
                docs[doc] += " " + pieces[rng.integers(len(pieces))]
    return part.but(docs=docs)


def haystack(
    part: base.Collection, runs: base.Runs, rng: Generator, size: int, zeros: bool
) -> tuple[base.Collection, base.Runs, Candidates]:
    """Each topic has `size` candidates, relevant ones among them; the runs order the candidates only."""
    qrels, candidates = {}, {}
    for topic, row in part.qrels.items():
        pool = sorted({doc for run in runs.values() for doc, _ in run[topic]} - set(row))
        relevant = [d for d, g in row.items() if g > 0][: max(1, size // 5)]
        others = [pool[i] for i in rng.choice(len(pool), min(len(pool), size - len(relevant)), replace=False)]
        chosen = relevant + others
        candidates[topic] = [chosen[i] for i in rng.permutation(len(chosen))]
        grades = {doc: row.get(doc, 0) for doc in candidates[topic]}
        qrels[topic] = grades if zeros else {doc: g for doc, g in grades.items() if g > 0}
    few: base.Runs = {}
    for name, run in runs.items():
        few[name] = {}
        for topic, pairs in run.items():
            kept = [(doc, s) for doc, s in pairs if doc in set(candidates[topic])]
            seen = {doc for doc, _ in kept}
            low = min((s for _, s in kept), default=0.0)
            kept += [(doc, low - 1 - i) for i, doc in enumerate(sorted(set(candidates[topic]) - seen))]
            few[name][topic] = kept
    used = {doc for docs in candidates.values() for doc in docs}
    return (
        part.but(
            docs={d: x for d, x in part.docs.items() if d in used},
            titles={d: x for d, x in part.titles.items() if d in used},
            qrels=qrels,
        ),
        few,
        candidates,
    )


def list_in(run: base.Run, chosen: list[str], start: int, every: int) -> base.Run:
    """The run with the chosen documents at rank `start` and at every first, second … rank after it."""
    out: base.Run = {}
    for topic, pairs in run.items():
        mixed = [doc for doc, _ in pairs if doc not in set(chosen)]
        for i, doc in enumerate(chosen):
            mixed.insert(start - 1 + i * every, doc)
        out[topic] = base.listing(mixed)
    return out


def without(run: base.Run, docs: set[str]) -> base.Run:
    return {t: [(doc, s) for doc, s in pairs if doc not in docs] for t, pairs in run.items()}


def claim_truth(part: base.Collection, runs: base.Runs, chosen: list[str], measure: str = "nDCG@10") -> dict[str, Any]:
    """A > B on the planted judgments, and with the chosen documents out of judgments and runs."""
    gone = set(chosen)
    a, b = (base.scores(part.qrels, runs[n], [measure])[measure] for n in ("A", "B"))
    own = {t: {d: g for d, g in row.items() if d not in gone} for t, row in part.qrels.items()}
    own = {t: row for t, row in own.items() if any(g > 0 for g in row.values())}
    c, d = (base.scores(own, without(runs[n], gone), [measure])[measure] for n in ("A", "B"))
    found, honest = base.paired(a, b), base.paired(c, d)
    return {
        "measure": measure,
        "claim": "A > B",
        "as_judged": found,
        "without_the_list": honest,
        "true_without_the_list": honest["difference"] > 0,
        "shown_without_the_list": honest["low"] > 0,
        "only_by_the_list": found["difference"] > 0 >= honest["difference"],
        "list": chosen[:20],
    }


def claims(
    part: base.Collection, runs: base.Runs, chosen: list[str], kind: str
) -> Iterator[tuple[str, base.Runs, bool]]:
    """(name, the runs A and B, whether A returns the list)."""
    order = sorted(runs, key=lambda name: -base.means(part.qrels, runs[name], ["nDCG@10"])["nDCG@10"])
    order = [name for name in order if name not in ("overlap", "sim_g")] or order
    good, middle, poor = order[0], order[len(order) // 2], order[-1]
    head = chosen[:5]
    yield f"{kind}-honest-better", {"A": runs[good], "B": runs[poor]}, False
    yield f"{kind}-honest-close", {"A": runs[good], "B": runs[order[1]]}, False
    yield f"{kind}-list-on-the-same", {"A": list_in(runs[middle], head, 1, 2), "B": runs[middle]}, True
    yield f"{kind}-list-low-in-the-same", {"A": list_in(runs[middle], head[:3], 8, 1), "B": runs[middle]}, True
    yield f"{kind}-list-against-better", {"A": list_in(runs[order[1]], head, 3, 1), "B": runs[good]}, True
    yield f"{kind}-list-and-better", {"A": list_in(runs[good], head, 4, 2), "B": runs[poor]}, True


def variants(name: str, rng: Generator) -> Iterator[tuple[str, base.Collection, base.Runs, dict[str, Any], list[str]]]:
    """(folder, collection, runs, what was planted, the documents of a list that would score)."""
    part = base.collection(name)
    if not part.docs:
        yield from variants_without_documents(part, rng)
        return
    plain = base.plain_runs(name)
    fast = {n: plain[n] for n in base.FAST}
    yield "clean", part, fast, {"plant": None}, popular_order(part.qrels)
    zeros = part.but(qrels=base.with_zeros(part, fast, rng))
    yield "clean-zeros", zeros, fast, {"plant": None}, popular_order(part.qrels)
    for strength, (share, number) in STRENGTHS.items():
        for kind, plant in (("portal", portal), ("popular", popular), ("near-identical", near_identical)):
            planted, ids = plant(part, rng, share, number)
            runs = fast if kind == "popular" else base.runs_for(planted)
            facts = {"plant": kind, "strength": strength, "share": share, "number": number, "planted": ids}
            order = popular_order(planted.qrels) if kind == "near-identical" else ids
            yield f"{kind}-{strength}", planted, runs, facts, order
            if kind == "portal" and strength == "middle":
                judged = planted.but(qrels=base.with_zeros(planted, runs, rng))
                yield f"{kind}-{strength}-zeros", judged, runs, facts, ids
    for kind, rename in (("file-order", False), ("lowest-ids", True)):
        planted = relevant_first(part, rng, 1.0, rename)
        yield kind, planted, base.runs_for(planted), {"plant": kind, "measure": "R@100"}, list(planted.docs)
    planted = relevant_longest(part, rng, 1.0)
    order = sorted(planted.docs, key=lambda doc: -len(planted.docs[doc]))
    yield "longest", planted, base.runs_for(planted, base.LEXICAL), {"plant": "longest", "measure": "R@100"}, order


def haystacks(
    name: str, rng: Generator
) -> Iterator[tuple[str, base.Collection, base.Runs, dict[str, Any], Candidates]]:
    """Topics with candidates of their own: fewer than k, many more than k, and with an order that gives them away."""
    part = base.collection(name)
    plain = base.plain_runs(name)
    fast = {n: plain[n] for n in base.FAST}
    for size, measure in ((25, "R@50"), (40, "R@50"), (90, "nDCG@10")):
        for judged in (True, False):
            planted, few, candidates = haystack(part, fast, rng, size, judged)
            plant = "haystack" if size <= 50 else None
            facts = {"plant": plant, "candidates": size, "measure": measure, "zeros": judged}
            yield f"haystack-{size}{'-zeros' if judged else ''}", planted, few, facts, candidates
    for kind, share in (
        ("lowest-ids", 0.3),
        ("lowest-ids", 1.0),
        ("file-order", 1.0),
        ("longest", 0.3),
        ("longest", 1.0),
    ):
        if kind == "longest":
            source = relevant_longest(part, rng, share)
        else:
            source = relevant_first(part, rng, share, kind == "lowest-ids")
        runs = base.runs_for(source, base.LEXICAL if kind == "longest" else base.FAST)
        planted, few, candidates = haystack(source, runs, rng, 90, True)
        facts = {"plant": f"candidates-{kind}", "share": share, "candidates": 90, "zeros": True}
        yield f"candidates-{kind}-{share}", planted, few, facts, candidates


def variants_without_documents(
    part: base.Collection, rng: Generator
) -> Iterator[tuple[str, base.Collection, base.Runs, dict[str, Any], list[str]]]:
    """Published judgments as they are (what a list scores there is a fact, not a plant), and with popular documents."""
    some = list(part.qrels)
    if len(some) > 300:
        some = sorted(some[i] for i in rng.choice(len(some), 300, replace=False))
    part = part.but(qrels={t: part.qrels[t] for t in some})
    runs = base.simulated_runs(part.qrels, rng)
    yield "as-published", part, runs, {"plant": None, "simulated_runs": True}, popular_order(part.qrels)
    for strength, (share, number) in STRENGTHS.items():
        planted, ids = popular(part, rng, share, number)
        facts = {"plant": "popular", "strength": strength, "share": share, "planted": ids, "simulated_runs": True}
        yield (
            f"popular-{strength}",
            planted,
            base.simulated_runs(planted.qrels, rng),
            facts,
            popular_order(planted.qrels),
        )


def row(folder: str, truth: dict[str, Any]) -> str:
    measure = truth.get("measure", "nDCG@10")
    best = truth["by_measure"][measure]
    return (
        f"{folder:26} {measure:8} best list {best['best_null']:24} {best['score']:.3f}"
        f"  median run {best['median_run']:.3f}"
        f"  held-out popular {truth['null_scores']['popular_held_out'][measure]:.3f}"
    )


def write(name: str, out: Path, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([1, seed])
    for folder, part, runs, facts, order in variants(name, rng):
        truth = {**facts, **null_truth(part, runs, rng)}
        base.write_folder(out / "rulers" / folder, part, runs, truth)
        yield row(folder, truth)
        if not folder.startswith(("portal", "popular", "clean", "as-published")) or folder.endswith("zeros"):
            continue
        for claim, pair, listed in claims(part, runs, order, folder):
            verdict = {**facts, "a_returns_the_list": listed, **claim_truth(part, pair, order[:5] if listed else [])}
            base.write_folder(out / "claims" / claim, part, pair, verdict)
            yield (
                f"  claim {claim:44} as judged {verdict['as_judged']['difference']:+.3f}"
                f"  without the list {verdict['without_the_list']['difference']:+.3f}"
                f"  only by the list: {verdict['only_by_the_list']}"
            )
    if name in base.WITH_DOCUMENTS:
        for folder, part, runs, facts, candidates in haystacks(name, rng):
            truth = {**facts, **null_truth(part, runs, rng, candidates)}
            base.write_folder(out / "rulers" / folder, part, runs, truth)
            yield row(folder, truth)
