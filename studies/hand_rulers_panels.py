"""Case 7, panels: judges whose errors are independent, shared, shared in families, or copied."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hand_rulers_base as base

Generator = np.random.Generator
Table = np.ndarray
ITEMS = 1500
RATE = 0.2


def wrong_grades(truth: Table, most: int, rng: Generator) -> Table:
    """Another grade for each item, drawn evenly from the others."""
    return (truth + rng.integers(1, most + 1, len(truth))) % (most + 1)


def panel(truth: Table, most: int, links: Table, rates: Table, rng: Generator) -> Table:
    """Judges in rows: judge j, of links[j] = (g, rho), errs with a probability of sqrt(rho) as group g does.

    With equal rates two judges of a group have error indicators that correlate by rho, at every true grade, and shared
    errors name the same grade.
    """
    number = len(truth)
    groups = sorted({int(g) for g, _ in links})
    draws = {g: rng.random(number) for g in groups}
    grades = {g: wrong_grades(truth, most, rng) for g in groups}
    out = np.empty((len(links), number), dtype=int)
    for j, (group, rho) in enumerate(links):
        shared = rng.random(number) < np.sqrt(rho)
        level = np.where(shared, draws[int(group)], rng.random(number))
        wrong = np.where(shared, grades[int(group)], wrong_grades(truth, most, rng))
        out[j] = np.where(level < rates[j], wrong, truth)
    return out


def hard_items(truth: Table, most: int, judges: int, spread: float, rng: Generator) -> Table:
    """Independent given the item, but some items are hard for everybody: errors go together without a copy."""
    logit = np.log(RATE / (1 - RATE)) + rng.normal(0, spread, len(truth))
    chance = 1 / (1 + np.exp(-logit))
    wrong = rng.random((judges, len(truth))) < chance
    return np.where(wrong, np.stack([wrong_grades(truth, most, rng) for _ in range(judges)]), truth)


def lenient(truth: Table, most: int, judges: int, share: float, rng: Generator) -> Table:
    """All judges give a grade too much, each on rows of its own: one leaning, independent errors at a true grade."""
    up = rng.random((judges, len(truth))) < share
    return np.where(up, np.minimum(truth + 1, most), truth)


def correlations(truth: Table, votes: Table) -> Table:
    """Correlation of error indicators at the same true grade: covariances within grades, averaged over items."""
    wrong = (votes != truth).astype(float)
    covariance = np.zeros((len(votes), len(votes)))
    for grade in np.unique(truth):
        few = wrong[:, truth == grade]
        centred = few - few.mean(axis=1, keepdims=True)
        covariance += centred @ centred.T / len(truth)
    deviation = np.sqrt(np.diag(covariance))
    scale = np.outer(deviation, deviation)
    return np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)


def majority(votes: Table, most: int) -> Table:
    count = np.stack([(votes == grade).sum(axis=0) for grade in range(most + 1)])
    return count.argmax(axis=0)


def effective(truth: Table, votes: Table, most: int) -> dict[str, Any]:
    """n / (1 + (n - 1) mean correlation), this case's measure, and others of the same panel."""
    number = len(votes)
    table = correlations(truth, votes)
    mean = (table.sum() - np.trace(table)) / (number * (number - 1))
    eigen = np.clip(np.linalg.eigvalsh(table), 0, None)
    raw = np.corrcoef((votes != truth).astype(float))
    plain = (np.nansum(raw) - np.nansum(np.diag(raw))) / (number * (number - 1))
    return {
        "judges": number,
        "mean_correlation_of_errors": round(float(mean), 4),
        "effective_number": round(float(number / (1 + (number - 1) * max(mean, 0))), 4),
        "mean_correlation_over_all_grades": round(float(plain), 4),
        "effective_number_by_eigenvalues": round(float(eigen.sum() ** 2 / (eigen**2).sum()), 4),
        "accuracy_of_judges": [round(float(a), 4) for a in (votes == truth).mean(axis=1)],
        "accuracy_of_majority": round(float((majority(votes, most) == truth).mean()), 4),
        "correlations": [[round(float(c), 4) for c in row] for row in table],
    }


def items(name: str, rng: Generator) -> tuple[list[tuple[str, str]], Table]:
    part = base.collection(name)
    qrels = base.with_zeros(part, base.plain_runs(name), rng, 10, 0.6) if part.docs else part.qrels
    pairs = [(t, d) for t, row in qrels.items() for d in row]
    chosen = [pairs[i] for i in sorted(rng.choice(len(pairs), min(ITEMS, len(pairs)), replace=False))]
    return chosen, np.array([max(0, qrels[t][d]) for t, d in chosen])


def panels(truth: Table, most: int, rng: Generator) -> Iterator[tuple[str, dict[str, Any], Table]]:
    def one(rho: float, judges: int, rates: Table | None = None) -> Table:
        links = np.array([(0, rho)] * judges)
        return panel(truth, most, links, np.full(judges, RATE) if rates is None else rates, rng)

    for judges in (3, 5, 9):
        yield f"independent-{judges}", {"plant": None, "rho": 0.0}, one(0.0, judges)
        for rho in (0.2, 0.4, 0.6):
            yield f"shared-{rho}-{judges}", {"plant": "shared", "rho": rho}, one(rho, judges)
    unequal = np.linspace(0.05, 0.4, 7)
    yield "independent-unequal-7", {"plant": None, "rho": 0.0}, one(0.0, 7, unequal)
    yield "shared-0.4-unequal-7", {"plant": "shared", "rho": 0.4}, one(0.4, 7, unequal)
    for size in (2, 3):
        links = np.array([(family, 0.6) for family in range(3) for _ in range(size)])
        facts = {"plant": "families", "rho": 0.6, "families": [int(g) for g, _ in links]}
        yield f"families-3x{size}", facts, panel(truth, most, links, np.full(len(links), RATE), rng)
    alone = one(0.0, 5)
    for copies in (1, 3):
        for noise in (0.0, 0.05):
            votes = alone.copy()
            for j in range(1, copies + 1):
                keep = rng.random(len(truth)) >= noise
                votes[j] = np.where(keep, votes[0], alone[j])
            facts = {"plant": "copied", "copies": copies, "noise": noise, "copied": list(range(copies + 1))}
            yield f"copied-{copies}-{noise}", facts, votes
    for spread in (1.0, 2.5):
        yield f"hard-items-{spread}", {"plant": "hard-items", "spread": spread}, hard_items(truth, most, 5, spread, rng)
    yield "lenient-5", {"plant": None, "rho": 0.0, "lean": "up"}, lenient(truth, most, 5, 0.3, rng)
    guess = one(0.0, 5)
    guess[3:] = rng.integers(0, most + 1, (2, len(truth)))
    yield "guessers-2-of-5", {"plant": None, "rho": 0.0, "guessers": [3, 4]}, guess


def published(folder: Path) -> tuple[list[tuple[str, str]], Table, Table, list[str]]:
    """The people's and the models' grades of LLMJudge, on the rows that all of them have."""
    people = base.read_qrels(folder / "human.qrels.gz")
    judges = {p.name.split(".")[0]: base.read_qrels(p) for p in sorted((folder / "judges").glob("*.gz"))}
    pairs = [(t, d) for t, row in people.items() for d in row]
    pairs = [(t, d) for t, d in pairs if all(d in q.get(t, {}) for q in judges.values())]
    truth = np.array([people[t][d] for t, d in pairs])
    votes = np.array([[min(q[t][d], 3) for t, d in pairs] for q in judges.values()])
    return pairs, truth, votes, list(judges)


def write_panel(folder: Path, pairs: list[tuple[str, str]], truth: Table, votes: Table, facts: dict[str, Any]) -> None:
    (folder / "judges").mkdir(parents=True, exist_ok=True)

    def qrels(grades: Table) -> base.Qrels:
        out: base.Qrels = {}
        for (t, d), grade in zip(pairs, grades, strict=True):
            out.setdefault(t, {})[d] = int(grade)
        return out

    base.write_qrels(folder / "people.qrels", qrels(truth))
    for name, row in zip(facts["names"], votes, strict=True):
        base.write_qrels(folder / "judges" / f"{name}.qrels", qrels(row))
    base.write_json(folder / "truth.json", facts)


def write(name: str, out: Path, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([7, seed])
    pairs, truth = items(name, rng)
    most = max(1, int(truth.max()))
    plants: list[tuple[str, dict[str, Any], Table, list[str]]] = []
    for label, facts, votes in panels(truth, most, rng):
        names = [f"judge{j + 1}" for j in range(len(votes))]
        plants.append((label, facts, votes, names))
    for label, facts, votes, names in plants:
        found = {**facts, "names": names, **effective(truth, votes, most)}
        write_panel(out / label, pairs, truth, votes, found)
        yield line(label, found)
    pairs, truth, votes, names = published(base.DATA / "llmjudge")
    chosen: list[tuple[str, Callable[[str], bool]]] = [
        ("llmjudge-all", lambda _: True),
        ("llmjudge-one-team", lambda n: n.startswith("TREMA")),
        ("llmjudge-one-of-a-team", lambda n: n in _first(names)),
    ]
    for label, keep in chosen:
        few = [j for j, n in enumerate(names) if keep(n)]
        found = {"plant": None, "published": True, "names": [names[j] for j in few], **effective(truth, votes[few], 3)}
        write_panel(out / label, pairs, truth, votes[few], found)
        yield line(label, found)


def _first(names: list[str]) -> set[str]:
    teams: dict[str, str] = {}
    for name in names:
        teams.setdefault(name.split("-")[0], name)
    return set(teams.values())


def line(label: str, found: dict[str, Any]) -> str:
    accuracy = found["accuracy_of_judges"]
    return (
        f"{label:24} judges {found['judges']:2}  mean correlation {found['mean_correlation_of_errors']:+.3f}"
        f" (all grades {found['mean_correlation_over_all_grades']:+.3f})  effective {found['effective_number']:.2f}"
        f" (eigenvalues {found['effective_number_by_eigenvalues']:.2f})"
        f"  accuracy {min(accuracy):.2f}-{max(accuracy):.2f}  majority {found['accuracy_of_majority']:.3f}"
    )
