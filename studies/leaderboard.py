"""What `leaderboard` says of MTEB's results, how often its ranks err, and which planted mixes it finds.

    python studies/leaderboard.py findings [--results FOLDER]
    python studies/leaderboard.py level [--trials 1000]
    python studies/leaderboard.py planted [--draws 20] [--results FOLDER]

`level` draws scores of systems that are equally good: how often any pair is told apart, any is missing from the first
group, and any pair by itself. `planted` mixes results of thirty models of the folder, in seven ways at random places,
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

from common import SHARED, require_shared, table
from truerank.audits.leaderboard import leaderboard
from truerank.audits.leaderboard.board import read_board
from truerank.audits.leaderboard.comparability import findings as compared
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
        place, start = results(options.results, folder), time.perf_counter()
        found = leaderboard(place)
        print(f"{time.perf_counter() - start:.1f} s\n")
        for verdict in found.verdicts:
            print(f"{verdict.subject}: {verdict.word}. {verdict.sentence} {verdict.rests_on}\n")
        rules = Counter((one.rule.code, one.rule.title) for one in found.findings)
        print(table(("rule", "what", "places"), [(*key, count) for key, count in sorted(rules.items())]))
        systems = found.frames["systems"]
        group = systems.filter("first").select("rank", "system", "mean", "rank_low", "rank_high")
        print("\n" + table(("rank", "first group", "mean", "best", "worst"), group.rows()))
        rows = found.frames["without_task"].rows()
        print("\n" + table(("without", "τ", "first", "largest move", "of"), rows))
        print("\n" + table(("average", "τ", "first", "of the first ten"), found.frames["ways"].rows()))


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
    rows = []
    for name, drawn in DRAWN.items():
        for tasks, systems in ((8, 10), (14, 10), (14, 40), (40, 20)):
            draw, pairs, first, alone = np.random.default_rng(4), 0, 0, 0.0
            for seed in range(options.trials):
                found = rank_groups(drawn(draw, tasks, systems), resamples=500, seed=seed)
                pairs += bool(found.better.any())
                first += not found.first.all()
                alone += found.alone.sum() / (systems * (systems - 1) / 2)
            shares = (f"{count / options.trials:.1%}" for count in (pairs, first, alone))
            rows.append((name, tasks, systems, *shares))
    heads = ("scores", "tasks", "systems", "any pair told apart", "first group lacks one", "each pair alone")
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
    for name, function in (("findings", findings), ("level", level), ("planted", planted)):
        one = commands.add_parser(name)
        one.set_defaults(function=function)
        one.add_argument("--results", type=Path)
        one.add_argument("--trials", type=int, default=1000)
        one.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    sys.exit(main())
