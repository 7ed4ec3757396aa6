"""Does `judge audit` find planted faults of a model, and how often does it alarm without any?

    python studies/assessors.py [--qrels FILE] [--seeds 200] [--first-seed 0]
    python studies/assessors.py --table3
    python studies/assessors.py --alike [--seeds 1000]
    python studies/assessors.py --intervals [--seeds 40]
    python studies/assessors.py --panel [--seeds 40]
    python studies/assessors.py --write runs/ [--first-seed 0]

Systems and models are made over the pairs that people judged (LLMJudge), by models that the functions below state. One
audit is made for each seed and plant; a rate is the share of seeds, with Wilson's 95% interval.

| plant | what is planted | where it is found |
| --- | --- | --- |
| none | the model errs by chance on 40% of the pairs | alarms about families, grades and pairs are false |
| few errors | the same, on 5% of the pairs | so is NOT USABLE of an order |
| family | the model grades higher what one family of systems looks for | that family's gain, corrected for all |
| overrating | one pair in eight gets a grade more | the mean grade is above people's |
| top 10 | the model puts the best ten systems in another order | pairs of the best ten are turned round |

The last row of the table is the mean τ of the best ten: what the verdict on them is about.

Other tables:

- `--table3`: κ and α of the 33 models beside Table 3 of Rahmani et al. (2025).
- `--alike`: how often α differs significantly between two models that err alike, on 40% of the pairs or wholly on a
  third of the topics.
- `--intervals`: how often the interval of τ, as resamples have it and centred, covers the mean τ of other sets of as
  many topics; trials of one seed share their systems.
- `--panel`: ten models that err on 40% of the pairs, alone or with a share of their errors in common: the independent
  judges that the audit counts, its word on the panel, and how often the interval holds the correlation that all seeds
  have on average.

`--write` writes the 40 runs of a seed and their families, for the tutorial.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from common import SHARED, require_shared, table
from truerank import judge
from truerank.audits.assessors import AssessorAudit, AssessorRules, read_grades, read_voices, verdicts_of
from truerank.audits.assessors.agreement import bootstrap, differences_frame
from truerank.audits.assessors.verdicts import panel_verdict
from truerank.measures.magnitudes import proportion
from truerank.measures.orders import order_statistics
from truerank.options import Resampling, Scoring
from truerank.sources import read_qrels_frame

FOLDER = SHARED / "llmjudge"
PLANTS = ("none", "few errors", "family", "overrating", "top 10")
TAU = "best ten: mean τ"
FAMILIES, DEPTH = 4, 30
#: Share of pairs on which the model errs by chance, and with few errors.
ERRORS, FEW_ERRORS = 0.4, 0.05


class Systems(NamedTuple):
    """Runs by name, their families, and what systems look for: by family, and by system, shape (…, pairs)."""

    runs: dict[str, pl.DataFrame]
    families: dict[str, str]
    styles: NDArray[np.float64]
    tastes: NDArray[np.float64]


def make_systems(qrels: pl.DataFrame, seed: int, systems: int = 40) -> Systems:
    """Runs over judged pairs.

    A system scores a pair by q·g + 0.5·s + 0.7·t + ε: g is people's grade; the quality q falls evenly from 1 to 0.25
    over the systems; s is the style of its family and t its own taste, a number for each pair; ε is noise. All three
    are standard normal. Every fourth system is of one family, so that each has good and weak ones. A run holds the
    first 30 documents of each topic.
    """
    draw = np.random.default_rng(seed)
    pairs, grade = len(qrels), qrels["relevance"].to_numpy().astype(float)
    styles, tastes = draw.normal(size=(FAMILIES, pairs)), draw.normal(size=(systems, pairs))
    runs, families = {}, {}
    for system, quality in enumerate(np.linspace(1.0, 0.25, systems)):
        score = quality * grade + 0.5 * styles[system % FAMILIES] + 0.7 * tastes[system] + draw.normal(size=pairs)
        name = f"system{system:02d}"
        run = qrels.select("topic_id", "doc_id").with_columns(pl.Series("score", score))
        place = pl.col("score").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64)
        runs[name] = run.with_columns(place.alias("rank")).filter(pl.col("rank") <= DEPTH)
        families[name] = f"family{system % FAMILIES}"
    return Systems(runs, families, styles, tastes)


def make_model(qrels: pl.DataFrame, systems: Systems, plant: str, seed: int) -> pl.DataFrame:
    """A model's grades.

    On 40% of the pairs (5% with few errors), drawn at random, the model gives the grade that people gave to another
    pair of the topic, drawn at random: it errs, but as often upwards as downwards. Then the plant: "family" adds a
    grade where the style of the first family is in its highest fifth, and takes one where it is in its lowest fifth;
    "overrating" adds a grade to one pair in eight; "top 10" adds a grade to the third of the pairs that the five worse
    of the best ten systems like better than the five better ones do, by their tastes, and takes one from the opposite
    third.
    """
    draw = np.random.default_rng([seed, PLANTS.index(plant)])
    grade = qrels["relevance"].to_numpy().astype(np.int64)
    given = grade.copy()
    topics, errors = qrels["topic_id"].to_numpy(), FEW_ERRORS if plant == "few errors" else ERRORS
    for topic in np.unique(topics):
        own = np.flatnonzero(topics == topic)
        wrong = own[draw.random(len(own)) < errors]
        given[wrong] = grade[draw.choice(own, len(wrong))]
    if plant == "family":
        given = _moved(given, systems.styles[0], 0.2)
    elif plant == "overrating":
        given = given + (draw.random(len(given)) < 1 / 8)
    elif plant == "top 10":
        given = _moved(given, systems.tastes[5:10].sum(axis=0) - systems.tastes[:5].sum(axis=0), 1 / 3)
    return qrels.with_columns(pl.Series("relevance", np.clip(given, 0, grade.max()), dtype=pl.Int32))


def _moved(given: NDArray[np.int64], liking: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    low, high = np.quantile(liking, [share, 1 - share])
    return given + (liking > high).astype(np.int64) - (liking < low).astype(np.int64)


def alarms(found: AssessorAudit, confidence: float = 0.95) -> dict[str, float]:
    """What an audit raises: about the first family, about any family, about overrating, about the best ten."""
    families = {row["family"]: row for row in found.of("families")}
    favoured = {name for name, row in families.items() if row["corrected"] < 1 - confidence and row["adjusted"] > 0}
    rating = found.of("rating", band="all")[0]
    words = {one.use: one.word for one in verdicts_of(found)}
    pairs = next(iter(found.of("pairs", systems="best 10")))
    return {
        "first family favoured": "family0" in favoured,
        "another family favoured": bool(favoured - {"family0"}),
        "grades too high": rating["value_low"] > 0,
        "grades too low": rating["value_high"] < 0,
        "best ten: pairs turned round": pairs["turned"] + pairs["opposite"] > 0,
        "best ten: NOT USABLE": words["best"] == "NOT USABLE",
        "best ten: USABLE or WITH CARE": words["best"] in ("USABLE", "WITH CARE"),
        "all: NOT USABLE": words["order"] == "NOT USABLE",
        "all: USABLE or WITH CARE": words["order"] in ("USABLE", "WITH CARE"),
        "absolute scores: NOT USABLE": words["absolute"] == "NOT USABLE",
        TAU: found.of("order", systems="best 10", statistic="tau")[0]["value"],
    }


def trial(seed: int, path: Path, resamples: int) -> list[tuple[str, dict[str, float]]]:
    """One audit for each plant, with the systems of a seed."""
    qrels = read_qrels_frame(str(path))
    systems = make_systems(qrels, seed)
    found = []
    for plant in PLANTS:
        model = make_model(qrels, systems, plant, seed)
        audit = judge.audit(
            qrels,
            {"model": model},
            systems.runs,
            systems.families,
            resampling=Resampling(resamples=resamples, seed=seed),
            scoring=Scoring(rel=2),
        )
        found.append((plant, alarms(audit)))
    return found


def planted(path: Path, seeds: Sequence[int], resamples: int, workers: int) -> str:
    """The rates of all alarms under each plant."""
    counts: dict[tuple[str, str], float] = {}
    with ProcessPoolExecutor(workers) as pool:
        for found in pool.map(partial(trial, path=path, resamples=resamples), seeds):
            for plant, raised in found:
                for name, there in raised.items():
                    counts[plant, name] = counts.get((plant, name), 0) + there
    names = [name for name in dict.fromkeys(name for _, name in counts) if name != TAU]
    rows = [[name, *(_rate(int(counts[plant, name]), len(seeds)) for plant in PLANTS)] for name in names]
    rows.append([TAU, *(f"{counts[plant, TAU] / len(seeds):.2f}" for plant in PLANTS)])
    return table(["alarm", *PLANTS], rows)


def _rate(count: int, trials: int) -> str:
    share = proportion(count, trials)
    return f"{share.share:.1%} [{share.low:.1%}, {share.high:.1%}]"


def alike(path: Path, seeds: Sequence[int], resamples: int) -> Iterator[str]:
    """How often two models that err by the same rule differ significantly at the level 5%, uncorrected."""
    qrels = read_qrels_frame(str(path))
    human = read_voices(qrels, models=False)
    rows = []
    for name, by_topic in (("pairs", False), ("topics", True)):
        raised = 0
        for seed in seeds:
            models = {f"m{side}": _erring(qrels, np.random.default_rng([seed, side]), by_topic) for side in (0, 1)}
            grades = read_grades(human, read_voices(models, models=True), AssessorRules())
            voices = list(zip(grades.judges, grades.given.T, strict=True))
            found = differences_frame(grades, voices, Resampling(resamples=resamples, seed=seed), "none")
            raised += float(found["p"][0]) < 0.05
        rows.append([f"errors drawn by {name}", _rate(raised, len(seeds))])
    yield table(["two models", "p below 5%"], rows)


def _erring(qrels: pl.DataFrame, draw: np.random.Generator, by_topic: bool) -> pl.DataFrame:
    """Grades that are shuffled within the topic: on 40% of the pairs, or on all pairs of a third of the topics."""
    grade, topics = qrels["relevance"].to_numpy().astype(np.int64), qrels["topic_id"].to_numpy()
    given = grade.copy()
    for topic in np.unique(topics):
        own = np.flatnonzero(topics == topic)
        chance = float(draw.random() < 1 / 3) if by_topic else ERRORS
        wrong = own[draw.random(len(own)) < chance]
        given[wrong] = grade[draw.choice(own, len(wrong))]
    return qrels.with_columns(pl.Series("relevance", given, dtype=pl.Int32))


def intervals(seeds: Sequence[int], resamples: int) -> str:
    """Coverage of the 95% intervals of τ over topics, for made scores.

    A system's score on a topic is its mean (normal, 0.1) plus noise (normal, 0.25), by people and by a model; the
    model's means have an error (normal, 0.03 or 0.1) and its noise a correlation with people's. Five sets of topics for
    each seed; what is to be covered is the mean τ of 200 other sets of topics for the same systems.
    """
    rows = []
    for topics, systems, error, alike in (
        (25, 40, 0.03, 0.5),
        (50, 40, 0.03, 0.8),
        (25, 40, 0.1, 0.5),
        (25, 10, 0.03, 0.9),
    ):
        covered = {False: 0, True: 0}
        for seed in seeds:
            draw = np.random.default_rng(seed)
            means = draw.normal(0, 0.1, (1, systems))
            sides = (means, means + draw.normal(0, error, (1, systems)))
            other = [_scores(draw, sides, topics, alike) for _ in range(200)]
            others = [np.stack([one[at].mean(axis=0) for one in other]) for at in (0, 1)]
            expected = order_statistics(others[0], others[1])[:, 0].mean()
            for _ in range(5):
                own = _scores(draw, sides, topics, alike)
                for centred in covered:
                    found = bootstrap(
                        lambda w, own=own: order_statistics(*(w @ side / w.sum(axis=1, keepdims=True) for side in own)),  # type: ignore[misc]
                        topics,
                        Resampling(resamples=resamples, seed=seed),
                        centred=centred,
                    )
                    covered[centred] += bool(found.low[0] <= expected <= found.high[0])
        trials = 5 * len(seeds)
        rows.append([topics, systems, error, alike, *(_rate(covered[centred], trials) for centred in (False, True))])
    return table(["topics", "systems", "error of the model", "correlation", "resamples as they are", "centred"], rows)


def _scores(
    draw: np.random.Generator, sides: tuple[NDArray[np.float64], ...], topics: int, alike: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    shape = (topics, sides[0].shape[1])
    noise, own = draw.normal(0, 0.25, shape), draw.normal(0, 0.25, shape)
    return sides[0] + noise, sides[1] + alike * noise + np.sqrt(1 - alike**2) * own


def panel(path: Path, seeds: Sequence[int], resamples: int) -> str:
    """What the audit says of panels whose models err alone, or share a part of their errors."""
    qrels = read_qrels_frame(str(path))
    grade = qrels["relevance"].to_numpy().astype(np.int64)
    rows = []
    for share in (0.0, 0.3, 0.6, 0.9):
        found = []
        for seed in seeds:
            draw = np.random.default_rng([seed, round(10 * share)])
            common = draw.random(len(grade)) < ERRORS, draw.permutation(grade)
            models = {}
            for number in range(10):
                own = draw.random(len(grade)) < ERRORS, draw.permutation(grade)
                shared = draw.random(len(grade)) < share
                wrong, other = (np.where(shared, *pair) for pair in zip(common, own, strict=True))
                relevance = pl.Series("relevance", np.where(wrong, other, grade), dtype=pl.Int32)
                models[f"m{number}"] = qrels.with_columns(relevance)
            audit = judge.audit(qrels, models, resampling=Resampling(resamples=resamples, seed=seed), rel=2)
            verdict = panel_verdict(audit)
            found.append((audit.of("panel", errors="equal")[0], "" if verdict is None else verdict.word))
        mean = float(np.mean([row["value"] for row, _ in found]))
        inside = sum(row["value_low"] <= mean <= row["value_high"] for row, _ in found)
        counts = [row["effective"] for row, _ in found]
        words = (sum(word == one for _, word in found) for one in ("USABLE", "UNKNOWN", "WITH CARE"))
        rows.append([
            f"{share:.0%}", f"{mean:.2f}", f"{np.mean(counts):.1f} ({min(counts):.1f} to {max(counts):.1f})",
            *words, _rate(inside, len(found)),
        ])  # fmt: skip
    heads = ["errors in common", "correlation", "independent judges", "USABLE", "UNKNOWN", "WITH CARE", "inside"]
    return table(heads, rows)


def table3() -> Iterator[str]:
    """κ and α of all models beside the paper's, and κ at each division of the scale."""
    models = {path.name.removesuffix(".qrels.gz"): str(path) for path in sorted((FOLDER / "judges").glob("*.qrels.gz"))}
    paper = {row[0]: row[1:3] for row in pl.read_csv(FOLDER / "table3.csv").iter_rows()}
    for rule in ("nearest", "drop"):
        found = judge.audit(str(FOLDER / "human.qrels.gz"), models, resamples=1, rel=2, outside=rule)
        rows, equal = [], 0
        for name in models:
            values = {row["coefficient"]: row["value"] for row in found.of("agreement", judge=name)}
            own = f"{values['kappa']:.4f}", f"{values['alpha-ordinal']:.4f}"
            printed = tuple(f"{value:.4f}" for value in paper[name])
            equal += own == printed
            cuts = [f"{row['value']:.4f}" for row in found.of("cuts", judge=name)]
            rows.append([name, *own, *printed, "equal" if own == printed else "differs", *cuts])
        yield f"Rule for grades outside the scale: {rule}. Equal to 4 decimals: {equal} of {len(models)}."
        if rule == "nearest":
            yield table(["model", "κ", "α", "paper's κ", "paper's α", "", "κ 0|123", "κ 01|23", "κ 012|3"], rows)
        else:
            yield table(["model", "κ", "α", "paper's κ", "paper's α"], [row[:5] for row in rows if row[5] == "differs"])


def write(systems: Systems, folder: Path) -> None:
    """The runs as TREC files, and families.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, run in systems.runs.items():
        ordered = run.sort(["topic_id", "rank"]).select("topic_id", "doc_id", "rank", "score")
        lines = [f"{topic} Q0 {doc} {rank} {score:.6f} {name}\n" for topic, doc, rank, score in ordered.iter_rows()]
        (folder / f"{name}.run").write_text("".join(lines), encoding="utf-8")
    rows = ["run,family", *(f"{name},{family}" for name, family in systems.families.items())]
    (folder / "families.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qrels", type=Path, default=FOLDER / "human.qrels.gz")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table3", action="store_true")
    parser.add_argument("--alike", action="store_true")
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--panel", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    require_shared()
    if given.table3:
        sys.stdout.write("\n\n".join(table3()) + "\n")
        return
    if given.write is not None:
        write(make_systems(read_qrels_frame(str(given.qrels)), given.first_seed), given.write)
        return
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    if given.intervals:
        sys.stdout.write(intervals(seeds, given.resamples) + "\n")
        return
    if given.panel:
        sys.stdout.write(panel(given.qrels, seeds, given.resamples) + "\n")
        return
    if given.alike:
        sys.stdout.write("\n".join(alike(given.qrels, seeds, given.resamples)) + "\n")
        return
    sys.stdout.write(planted(given.qrels, seeds, given.resamples, given.workers) + "\n")


if __name__ == "__main__":
    main()
