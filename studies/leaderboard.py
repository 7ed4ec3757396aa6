"""What `leaderboard` says of MTEB's results, how often its ranks err, and which planted mixes it finds.

    python studies/leaderboard.py findings [--results FOLDER] [--picture FILE.svg]
    python studies/leaderboard.py level|coverage|selected|questions [--trials 1000]
    python studies/leaderboard.py planted [--draws 20] [--results FOLDER]

`level` draws scores of systems that are equally good: how often any pair is told apart, any is missing from the first
group, and so on; `coverage` those of systems that are not; `selected` tests the first ten of a hundred equal ones,
which the same scores chose; `questions` has scores of questions within tasks. `planted` mixes results of thirty models
of the folder, in seven ways at random places,
and counts the rules that name them, and findings that are new and name nothing planted. The plants are by the rules'
own hand.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from common import SHARED, require_shared, table
from truerank.audits.leaderboard import LeaderboardOptions, leaderboard
from truerank.audits.leaderboard.board import read_board
from truerank.audits.leaderboard.comparability import findings as compared
from truerank.core.figures.export import to_svg_file
from truerank.core.figures.forest import ForestRow, forest_plot
from truerank.measures.rank_groups import rank_groups


def results(given: Path | None, folder: str) -> Path:
    """The folder of results; unpacked where none is given."""
    if given is not None:
        return given
    require_shared()
    with tarfile.open(SHARED / "mteb-results/results.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return next(Path(folder).rglob("results"))


def findings(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place, start = results(options.results, folder), time.process_time()
        found = leaderboard(place)
        print(f"{time.process_time() - start:.1f} s of processor time\n")
        for verdict in found.verdicts:
            print(f"{verdict.subject}: {verdict.word}. {verdict.sentence} {verdict.rests_on} {verdict.settles}\n")
        left = found.frames["left_out"]
        better = left.filter(pl.col("difference_high") >= 0).height
        print(f"{left.height} systems are left out of the order; {better} are not shown worse than the first one.\n")
        rules = Counter((one.rule.code, one.rule.title) for one in found.findings)
        print(table(("rule", "what", "places"), [(*key, count) for key, count in sorted(rules.items())]) + "\n")
        for code in ("BOARD06", "BOARD11", "BOARD14", "BOARD15", "BOARD18"):
            own = [one for one in found.findings if one.rule.code == code]
            systems = sorted({one.key.partition("\0")[0] for one in own})
            print(f"{code}: {len(own)}, {len(systems)} systems: {', '.join(systems[:8])}. {own[0].evidence}\n")
        fields = ("rank", "system", "mean", "own_low", "own_high", "rank_low", "rank_high", "first")
        heads = ("rank", "system", "mean", "best", "worst", "best of all", "worst of all", "first group")
        print(table(heads, found.frames["systems"].head(15).select(fields).rows()))
        widths = found.frames["systems"].select(
            own=pl.col("own_high") - pl.col("own_low") + 1, every=pl.col("rank_high") - pl.col("rank_low") + 1
        )
        print(f"\nmedian width: own pairs {widths['own'].median():g}, all pairs {widths['every'].median():g}\n")
        few = []
        for first in (10, 20, 50):
            part = leaderboard(place, LeaderboardOptions(first=first))
            fact = part.facts["orders"]["systems"]
            width = part.frames["systems"].select(pl.col("rank_high") - pl.col("rank_low") + 1).to_series().median()
            told = (fact["first_group"], fact["neighbours_told"], fact["neighbours"])
            few.append((first, part.facts["shared_tasks"], *told, width))
        heads = ("first", "tasks", "first group", "neighbours that differ", "of", "median width, all pairs")
        print(table(heads, few))
        rows = found.frames["without_task"].rows()
        print("\n" + table(("without", "τ", "first", "largest move", "of"), rows))
        print("\n" + table(("average", "systems", "τ", "first", "of the first ten"), found.frames["ways"].rows()))
        trained = found.frames["trained"].drop_nulls("rank_rest")
        moves = (trained["rank_rest"] - trained["rank"]).abs()
        unknown = found.facts["training_unknown"]
        print(f"\n{len(trained)} of {found.facts['compared']} name a task; ranks move by {moves.median():g} in the "
              f"median, {moves.max()} at most; {unknown} do not say what they were trained on")  # fmt: skip
        if options.picture:
            rows = found.frames["systems"].head(25)
            drawn = [
                ForestRow(f"{rank} {system.partition('__')[2]}", rank, low, high, f"{low}–{high}", "filled")
                for rank, system, low, high in rows.select("rank", "system", "own_low", "own_high").iter_rows()
            ]
            text = "Ranks of the first 25 models, with the ranks that their own pairs do not exclude."
            svg = to_svg_file(forest_plot(drawn, x_label="rank"), name="mteb-ranks", description=text)
            options.picture.write_text(svg, encoding="utf-8")


DRAWN: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "normal": lambda draw, rows, systems: draw.normal(size=(rows, systems)),
    "skewed": lambda draw, rows, systems: draw.exponential(size=(rows, systems)),
    "tasks of unequal spread": lambda draw, rows, systems: (
        draw.normal(size=(rows, 1)) + draw.normal(size=(rows, systems)) * draw.exponential(size=(rows, 1))
    ),
    "families": lambda draw, rows, systems: (
        np.repeat(draw.normal(size=(rows, -(-systems // 4))), 4, axis=1)[:, :systems]
        + 0.2 * draw.normal(size=(rows, systems))
    ),
}


def level(options: argparse.Namespace) -> None:
    """Systems that are equally good: what is told apart nevertheless."""
    rows = []
    for name, drawn in DRAWN.items():
        for tasks, systems in ((8, 10), (14, 10), (14, 40), (40, 20)):
            draw, counts = np.random.default_rng(4), Counter[str]()
            for seed in range(options.trials):
                found = rank_groups(drawn(draw, tasks, systems), resamples=500, seed=seed)
                leader = int(np.argmax(found.means))
                wide = (found.own_low > 1) | (found.own_high < systems)
                counts["pairs"] += bool(found.better.any())
                counts["first"] += not found.first.all()
                counts["neighbours"] += bool(found.neighbours.any())
                counts["own"] += bool(wide[0])
                counts["leader"] += bool(wide[leader])
                counts["alone"] += 2 * float(found.alone.sum()) / (systems * (systems - 1))
            names = ("pairs", "first", "neighbours", "own", "leader", "alone")
            rows.append((name, tasks, systems, *(f"{counts[one] / options.trials:.1%}" for one in names)))
            print(rows[-1], file=sys.stderr, flush=True)
    heads = (
        "scores", "tasks", "systems", "any pair told apart", "first group lacks one", "any neighbours told apart",
        "ranks of one system too narrow", "of the one that came out first", "each pair alone",
    )  # fmt: skip
    print(table(heads, rows))


def coverage(options: argparse.Namespace) -> None:
    """Systems of different quality: whether intervals hold the true ranks, and the first group the best system."""
    rows = []
    for name, drawn in DRAWN.items():
        for tasks, systems, spread in ((14, 10, 0.5), (14, 10, 2.0), (14, 40, 2.0), (40, 20, 1.0)):
            draw, counts, widths = np.random.default_rng(5), Counter[str](), []
            true = np.linspace(spread, 0, systems)
            for seed in range(options.trials):
                found = rank_groups(drawn(draw, tasks, systems) + true, resamples=500, seed=seed)
                ranks = np.arange(1, systems + 1)
                inside = (found.low <= ranks) & (ranks <= found.high)
                own = (found.own_low <= ranks) & (ranks <= found.own_high)
                leader = int(np.argmax(found.means))
                counts["all"] += bool(inside.all())
                counts["own"] += bool(own[systems // 2])
                counts["leader"] += bool(own[leader])
                counts["best"] += bool(found.first[0])
                widths.append((np.mean(found.high - found.low + 1), np.mean(found.own_high - found.own_low + 1)))
            shares = (f"{counts[one] / options.trials:.1%}" for one in ("all", "own", "leader", "best"))
            rows.append((name, tasks, systems, spread, *shares, *(f"{one:.1f}" for one in np.mean(widths, axis=0))))
            print(rows[-1], file=sys.stderr, flush=True)
    heads = (
        "scores", "tasks", "systems", "best minus worst", "all true ranks inside", "of one system, by its own pairs",
        "of the one that came out first, by its own pairs", "first group holds the best", "mean width, all",
        "mean width, own pairs",
    )  # fmt: skip
    print(table(heads, rows))


def selected(options: argparse.Namespace) -> None:
    """The first ten of a hundred equally good systems, chosen and tested by the same scores."""
    rows = []
    for name, drawn in DRAWN.items():
        for tasks in (11, 14, 40):
            draw, told, groups = np.random.default_rng(6), 0, 0
            for seed in range(options.trials):
                scores = drawn(draw, tasks, 100)
                found = rank_groups(scores[:, np.argsort(-scores.mean(axis=0))[:10]], resamples=500, seed=seed)
                told += bool(found.better.any())
                groups += not found.first.all()
            rows.append((name, tasks, f"{told / options.trials:.1%}", f"{groups / options.trials:.1%}"))
            print(rows[-1], file=sys.stderr, flush=True)
    print(table(("scores", "tasks", "any of the first ten told apart", "their first group lacks one"), rows))


def questions(options: argparse.Namespace) -> None:
    """Scores of questions, with systems that are equal on these tasks, or on the mean over tasks of their kind only."""
    rows = []
    for tasks, size, apart in ((8, 50, 0.0), (8, 50, 0.1), (20, 50, 0.0), (20, 50, 0.1), (20, 200, 0.1)):
        draw, counts, number = np.random.default_rng(7), Counter[str](), np.repeat(np.arange(tasks), size)
        weights = np.full(len(number), 1 / len(number))
        for seed in range(options.trials):
            own = draw.normal(0, apart, (tasks, 8))
            scores = own[number] + draw.normal(0, 0.2, (len(number), 1)) + draw.normal(0, 0.3, (len(number), 8))
            by_task = np.stack([scores[number == one].mean(axis=0) for one in range(tasks)])
            here = rank_groups(scores, weights, number, resamples=500, seed=seed)
            kind = rank_groups(by_task, resamples=500, seed=seed)
            true = own.mean(axis=0)
            wrong = here.better & (true[:, None] <= true[None, :])
            counts["here"] += bool(wrong.any())
            counts["kind"] += bool(kind.better.any())
            counts["questions only"] += bool(here.better.any())
        shares = (f"{counts[one] / options.trials:.1%}" for one in ("here", "kind", "questions only"))
        rows.append((tasks, size, apart, *shares))
    heads = (
        "tasks", "questions", "sd of systems between tasks", "on these tasks: wrong", "on others: any pair told apart",
        "the order on these tasks, taken for one on others",
    )  # fmt: skip
    print(table(heads, rows))


def _cells(place: Path) -> list[Path]:
    return [path for path in sorted(place.rglob("*.json")) if '"scores"' in path.read_text(encoding="utf-8")[:400]]


def planted(options: argparse.Namespace) -> None:
    def changed(path: Path, key: str, value: object) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        content[key] = value
        path.write_text(json.dumps(content), encoding="utf-8")

    def scaled(path: Path) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        for entries in content["scores"].values():
            for entry in entries:
                entry["main_score"] *= 100
        path.write_text(json.dumps(content), encoding="utf-8")

    def split(path: Path) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        content["scores"] = {"held-out": next(iter(content["scores"].values()))}
        path.write_text(json.dumps(content), encoding="utf-8")

    def copied(path: Path) -> None:
        shutil.copytree(path.parent.parent, path.parent.parent.with_name("another__name"))

    def revised(path: Path) -> None:
        own = path.parent.with_name("another-revision")
        own.mkdir(exist_ok=True)
        shutil.copy(path, own)
        scaled(own / path.name)

    ways: dict[str, tuple[str, Callable[[Path], None]]] = {
        "another revision of the data": ("BOARD01", lambda path: changed(path, "dataset_revision", "planted")),
        "another split": ("BOARD02", split),
        "another scale": ("BOARD03", scaled),
        "a missing task": ("BOARD04", Path.unlink),
        "another revision of the model": ("BOARD05", revised),
        "a copy under another name": ("BOARD06", copied),
        "another version of the tool": ("BOARD07", lambda path: changed(path, "mteb_version", "9.9.9")),
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = results(options.results, folder)
        draw, models = random.Random(6), sorted(path for path in place.iterdir() if path.is_dir())
        for name, (code, plant) in ways.items():
            found = others = 0
            for _ in range(options.draws):
                with tempfile.TemporaryDirectory() as small:
                    some = Path(small) / "board"
                    for model in draw.sample(models, 30):
                        shutil.copytree(model, some / model.name)
                    before = {(one.rule.code, one.key, one.evidence) for one in compared(read_board(some))}
                    target = draw.choice(_cells(some))
                    plant(target)
                    new = {(one.rule.code, one.key, one.evidence) for one in compared(read_board(some))} - before
                    found += any(one == code for one, _, _ in new)
                    # What the plant brings with it names the same system or task.
                    about = (target.parts[-3], target.stem, "another__name")
                    # A count that changed is not a new finding.
                    known = {(one, key) for one, key, _ in before}
                    fresh = {(one, key) for one, key, _ in new if one != code} - known
                    others += sum(not any(word in key for word in about) for _, key in fresh)
            rows.append((name, code, f"{found}/{options.draws}", others))
    print(table(("planted", "rule", "found", "other new findings"), rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (findings, level, coverage, selected, questions, planted):
        one = commands.add_parser(function.__name__)
        one.set_defaults(function=function)
        one.add_argument("--results", type=Path)
        one.add_argument("--picture", type=Path)
        one.add_argument("--trials", type=int, default=1000)
        one.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    sys.exit(main())
