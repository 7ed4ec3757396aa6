"""Plant one problem in each of many leaderboards of real results, and leave some clean, to try a check from outside.

    python studies/hand_boards.py OUT --seed N [--draws D] [--models M]

Reads ``mteb-results/results.tar.xz`` below the shared data (``TRUERANK_SHARED``, default ``../shared``) and writes
``OUT/NNN/results/MODEL/REVISION/TASK.json``, with ``model_meta.json``, and ``OUT/NNN/truth.json``. Nothing of
truerank is imported.

Boards are drawn from models with a result for each task on the usual revision of the data and no twin among the others.
What would differ anyway is made equal first: only the usual split and the usual measures are kept, the version of the
tool is one, and stated training sets that are named like a task of the board are dropped. So everything that is left to
see was planted, apart from what the scores themselves hold. ``published`` boards are drawn from all models and left as
they are; their truth lists what differs by nature.

``truth.json``: ``kind``, ``models`` and ``tasks`` that were touched (folder names, file names without ``.json``),
``what``, and ``visible``: ``yes`` if a reader of the files can see it, ``partly`` if it shows only as something
unlikely, ``no`` if the files cannot show it at all, and a check must not claim to have excluded it.
"""

import argparse
import copy
import json
import os
import random
import statistics
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Result = dict[str, Any]
USUAL_SPLIT = {"MSMARCO": "dev"}
VERSION = "1.38.9"
MEASURES = tuple(
    f"{name}_at_{k}" for name in ("ndcg", "map", "recall", "precision", "mrr") for k in (1, 3, 5, 10, 20, 100, 1000)
)


@dataclass
class Model:
    revision: str
    meta: dict[str, Any]
    tasks: dict[str, Result]
    more: dict[str, dict[str, Result]] = field(default_factory=dict)
    """Further revisions."""

    def entries(self, task: str) -> list[dict[str, Any]]:
        return [entry for split in self.tasks[task]["scores"].values() for entry in split]


Board = dict[str, Model]


# -- real results ------------------------------------------------------------------------------------------------------


def published(archive: Path) -> Board:
    """Each model at the revision that has most results in today's form."""
    found: dict[str, dict[str, Model]] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = Path(member.name).parts
            stream = tar.extractfile(member) if member.isfile() and len(parts) == 4 else None
            if stream is None:
                continue
            content = json.load(stream)
            model = found.setdefault(parts[1], {}).setdefault(parts[2], Model(parts[2], {}, {}))
            if parts[3] == "model_meta.json":
                model.meta = content
            elif "scores" in content:
                model.tasks[parts[3].removesuffix(".json")] = content
    best = {
        name: max(models.values(), key=lambda model: (len(model.tasks), model.revision))
        for name, models in found.items()
    }
    return {name: best[name] for name in sorted(best) if best[name].meta and best[name].tasks}


def main_scores(model: Model, task: str) -> list[float]:
    scores = model.tasks[task]["scores"].get(USUAL_SPLIT.get(task, "test"), [])
    return [entry["main_score"] for entry in scores if isinstance(entry.get("main_score"), float)]


def usual_revisions(board: Board) -> dict[str, str]:
    counts: dict[str, Counter[str]] = {}
    for model in board.values():
        for task, result in model.tasks.items():
            counts.setdefault(task, Counter())[str(result["dataset_revision"])] += 1
    return {
        task: max((r for r in count if r != "None"), key=count.__getitem__) for task, count in sorted(counts.items())
    }


def even(board: Board, revisions: dict[str, str]) -> list[str]:
    """Models with each of these tasks on its usual revision, once in the usual split; twins only once."""
    kept: list[str] = []
    taken: set[tuple[str, float]] = set()
    for name, model in board.items():
        if all(
            task in model.tasks and usual(model.tasks[task], task, revision) for task, revision in revisions.items()
        ):
            scores = {(task, round(main_scores(model, task)[0], 4)) for task in revisions}
            if len(scores & taken) <= 2:
                taken |= scores
                kept.append(name)
    return kept


def usual(result: Result, task: str, revision: str) -> bool:
    entries = result["scores"].get(USUAL_SPLIT.get(task, "test"), [])
    return (
        result["dataset_revision"] == revision
        and len(entries) == 1
        and entries[0]["main_score"] == entries[0].get("ndcg_at_10")
    )


def drawn(board: Board, count: int, rng: random.Random) -> Board:
    """An even board with ten tasks or more that enough models have."""
    revisions = usual_revisions(board)
    while True:
        tasks = sorted(rng.sample(sorted(revisions), rng.randint(10, len(revisions))))
        names = even(board, {task: revisions[task] for task in tasks})
        if len(names) >= count:
            return {name: evened(board[name], tuple(tasks)) for name in sorted(rng.sample(names, count))}


def evened(model: Model, tasks: tuple[str, ...]) -> Model:
    model = copy.deepcopy(model)
    training = model.meta.get("training_datasets")
    if training is not None:
        names = [name for name in training if not any(name.lower().startswith(stem(task)) for task in tasks)]
        model.meta["training_datasets"] = (
            {name: training[name] for name in names} if isinstance(training, dict) else names
        )
    model.tasks = {task: model.tasks[task] for task in tasks}
    for task, result in model.tasks.items():
        split = USUAL_SPLIT.get(task, "test")
        keep = ("hf_subset", "languages", "main_score", *MEASURES)
        entry = {key: value for key, value in result["scores"][split][0].items() if key in keep}
        result["scores"] = {split: [entry | {"hf_subset": "default", "languages": ["eng-Latn"]}]}
        result["mteb_version"], result["task_name"] = VERSION, task
    return model


def stem(task: str) -> str:
    return task.lower().removesuffix("hardnegatives").removesuffix(".v3").removesuffix("retrieval").removesuffix("2018")


# -- what is planted ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Touched:
    what: str
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    visible: str = "yes"


Plant = Callable[[Board, random.Random], Touched]
PLANTS: dict[str, Plant] = {}


def plant(function: Plant) -> Plant:
    PLANTS[function.__name__.replace("_", "-")] = function
    return function


def some(board: Board, rng: random.Random, low: int, high: int) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(sorted(board), rng.randint(low, high))))


def tasks_of(board: Board, rng: random.Random, count: int = 1) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(sorted(next(iter(board.values())).tasks), count)))


def shift(entry: dict[str, Any], change: Callable[[float], float]) -> None:
    for key in ("main_score", *MEASURES):
        if isinstance(entry.get(key), float):
            entry[key] = round(min(1.0, max(0.0, change(entry[key]))), 5)


def hexes(rng: random.Random) -> str:
    return f"{rng.getrandbits(160):040x}"


def cells(board: Board, models: Iterable[str], tasks: Iterable[str]) -> Iterable[Result]:
    names = tuple(tasks)
    return (board[model].tasks[task] for model in models for task in names)


@plant
def clean(board: Board, rng: random.Random) -> Touched:
    return Touched("nothing")


@plant
def data_revision(board: Board, rng: random.Random) -> Touched:
    models, tasks, other = some(board, rng, 1, 12), tasks_of(board, rng), hexes(rng)
    for result in cells(board, models, tasks):
        result["dataset_revision"] = other
    return Touched("another revision of the data in one task", models, tasks)


@plant
def data_revision_unknown(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 2, 8), tasks_of(board, rng, 3)
    for result in cells(board, models, tasks):
        result["dataset_revision"] = None
    return Touched("no revision of the data in three tasks", models, tasks)


@plant
def tool_version(board: Board, rng: random.Random) -> Touched:
    models, version = some(board, rng, 3, 15), rng.choice(("1.1.2", "2.10.8", "1.12.75"))
    for result in cells(board, models, next(iter(board.values())).tasks):
        result["mteb_version"] = version
    return Touched(f"tool {version} for some models and {VERSION} for the others", models)


@plant
def tool_version_in_task(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 5), tasks_of(board, rng)
    for result in cells(board, models, tasks):
        result["mteb_version"] = "2.18.11"
    return Touched("tool 2.18.11 in one task of some models", models, tasks)


@plant
def split(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 5), tasks_of(board, rng)
    for result in cells(board, models, tasks):
        (usual,) = result["scores"]
        result["scores"] = {"validation" if usual == "dev" else "dev": result["scores"][usual]}
    return Touched("another split than the others'", models, tasks)


@plant
def split_twice(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 5), tasks_of(board, rng, 2)
    for result in cells(board, models, tasks):
        (usual,) = result["scores"]
        easy = copy.deepcopy(result["scores"][usual])
        shift(easy[0], lambda x: 1 - (1 - x) * 0.6)
        result["scores"]["train"] = easy
    return Touched("an easier train split beside the usual split: a mean over splits is too high", models, tasks)


@plant
def tasks_missing(board: Board, rng: random.Random) -> Touched:
    names = sorted(next(iter(board.values())).tasks)
    hardest = sorted(names, key=lambda task: statistics.fmean(main_scores(m, task)[0] for m in board.values()))[:5]
    models, tasks = some(board, rng, 1, 6), tuple(sorted(rng.sample(hardest, rng.randint(1, 3))))
    for model in models:
        for task in tasks:
            del board[model].tasks[task]
    return Touched("hard tasks are missing", models, tasks)


def renamed(board: Board, rng: random.Random, digits: float) -> tuple[str, str]:
    (source,) = some(board, rng, 1, 1)
    gone = rng.choice([name for name in sorted(board) if name != source])
    del board[gone]
    name = (
        rng.choice(("acme", "nordlicht", "quietlabs"))
        + "__"
        + rng.choice(("embed-x1", "retriever-large", "vector-pro-v2"))
    )
    twin = copy.deepcopy(board[source])
    twin.revision = hexes(rng)
    twin.meta |= {"name": name.replace("__", "/"), "revision": twin.revision, "training_datasets": None}
    for task in twin.tasks if digits else ():
        for entry in twin.entries(task):
            shift(entry, lambda x: x + rng.gauss(0, digits))
    board[name] = twin
    return source, name


@plant
def twin_exact(board: Board, rng: random.Random) -> Touched:
    return Touched("one model twice under another name", renamed(board, rng, 0))


@plant
def twin_last_digit(board: Board, rng: random.Random) -> Touched:
    return Touched("one model twice, with noise in the last digits", renamed(board, rng, 2e-5))


@plant
def twin_other_hardware(board: Board, rng: random.Random) -> Touched:
    return Touched("one model twice, with noise as of another precision", renamed(board, rng, 4e-4), visible="partly")


@plant
def twin_tasks_shared_out(board: Board, rng: random.Random) -> Touched:
    """The same organisation in capitals; each folder holds one half of the results."""
    (source,) = some(board, rng, 1, 1)
    model = board[source]
    name = source.swapcase()
    half = sorted(model.tasks)[::2]
    board[name] = Model(model.revision, model.meta, {task: model.tasks.pop(task) for task in half})
    return Touched(
        "one model in two folders that differ by case, half of the tasks in each", (source, name), tuple(half)
    )


@plant
def model_revisions(board: Board, rng: random.Random) -> Touched:
    models = some(board, rng, 1, 3)
    for name in models:
        later = copy.deepcopy(board[name].tasks)
        for result in later.values():
            for entries in result["scores"].values():
                shift(entries[0], lambda x: x + abs(rng.gauss(0, 0.01)))
        board[name].more[hexes(rng)] = later
    return Touched("two revisions of one model, each with all tasks", models)


@plant
def model_stitched(board: Board, rng: random.Random) -> Touched:
    models = some(board, rng, 1, 2)
    tasks = tasks_of(board, rng, 7)
    for name in models:
        board[name].more[hexes(rng)] = {task: board[name].tasks.pop(task) for task in tasks}
    return Touched("the results of one model come from two of its revisions", models, tasks)


@plant
def percent(board: Board, rng: random.Random) -> Touched:
    models = some(board, rng, 1, 4)
    for name in models:
        for task in board[name].tasks:
            for entry in board[name].entries(task):
                entry.update(
                    {
                        key: round(entry[key] * 100, 3)
                        for key in ("main_score", *MEASURES)
                        if isinstance(entry.get(key), float)
                    }
                )
    return Touched("percent instead of fractions", models)


@plant
def percent_one_cell(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 1), tasks_of(board, rng)
    for entry in board[models[0]].entries(tasks[0]):
        entry["main_score"] = round(entry["main_score"] * 100, 3)
    return Touched("one main score in percent", models, tasks)


@plant
def other_measure(board: Board, rng: random.Random) -> Touched:
    models, tasks, measure = (
        some(board, rng, 1, 6),
        tasks_of(board, rng),
        rng.choice(("map_at_10", "recall_at_10", "mrr_at_10")),
    )
    for name in models:
        for entry in board[name].entries(tasks[0]):
            entry["main_score"] = entry[measure] = entry.get(measure) or round(entry["ndcg_at_10"] * 0.9, 5)
    return Touched(f"the main score is {measure}, elsewhere ndcg_at_10", models, tasks)


@plant
def main_score_raised(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 1), tasks_of(board, rng, 3)
    for task in tasks:
        for entry in board[models[0]].entries(task):
            entry["main_score"] = round(min(0.999, entry["main_score"] + rng.uniform(0.01, 0.04)), 5)
    return Touched("the main score is higher than every measure in the file that it could be", models, tasks)


RELATIVES = {
    "ArguAna": "ArguAna-PL",
    "ClimateFEVERHardNegatives": "ClimateFEVER",
    "DBPedia": "DBPedia-PL",
    "FEVERHardNegatives": "FEVER-NL",
    "FiQA2018": "FiQA-PL",
    "HotpotQAHardNegatives": "HotpotQA",
    "MSMARCO": "mMARCO-NL",
    "NFCorpus": "NFCorpus-PL",
    "NQ": "NQ-PL",
    "QuoraRetrieval": "Quora-PL",
    "SCIDOCS": "SCIDOCS-PL",
    "SciFact": "SciFact-PL",
    "TRECCOVID": "TRECCOVID-PL",
}


def state_training(model: Model, tasks: Iterable[str]) -> None:
    """In the metadata training sets are a list, or splits by name."""
    training = model.meta.get("training_datasets") or {}
    model.meta["training_datasets"] = (
        [*training, *tasks] if isinstance(training, list) else training | {task: ["train"] for task in tasks}
    )


@plant
def trained_on_task(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 6), tasks_of(board, rng, 2)
    for name in models:
        state_training(board[name], tasks)
    return Touched("the metadata state training on tasks of the board", models, tasks)


@plant
def trained_on_relative(board: Board, rng: random.Random) -> Touched:
    models = some(board, rng, 1, 4)
    task = rng.choice([task for task in tasks_of(board, rng, 10) if task in RELATIVES])
    relative = RELATIVES[task]
    for name in models:
        state_training(board[name], (relative,))
    return Touched(f"the metadata state training on {relative}, a translation or superset of a task", models, (task,))


@plant
def subset(board: Board, rng: random.Random) -> Touched:
    models, tasks, other = (
        some(board, rng, 1, 5),
        tasks_of(board, rng),
        rng.choice(("en", "corpus-small", "queries-short")),
    )
    for name in models:
        for entry in board[name].entries(tasks[0]):
            entry["hf_subset"] = other
    return Touched(f"subset {other!r} instead of 'default'", models, tasks)


@plant
def subset_twice(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 3), tasks_of(board, rng)
    for result in cells(board, models, tasks):
        for entries in result["scores"].values():
            again = copy.deepcopy(entries[0])
            shift(again, lambda x: x * 0.9)
            entries.append(again)
    return Touched("the subset 'default' occurs twice with other scores", models, tasks)


@plant
def language(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 5), tasks_of(board, rng)
    for name in models:
        for entry in board[name].entries(tasks[0]):
            entry["languages"] = ["deu-Latn"]
    return Touched("the task was run in German for some models", models, tasks)


@plant
def null_scores(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 5), tasks_of(board, rng)
    for name in models:
        for entry in board[name].entries(tasks[0]):
            entry["main_score"] = rng.choice((None, float("nan")))
    return Touched("main scores are null or NaN", models, tasks)


@plant
def sentinel(board: Board, rng: random.Random) -> Touched:
    models, tasks, value = some(board, rng, 1, 3), tasks_of(board, rng), rng.choice((-1.0, 0.0))
    for name in models:
        for entry in board[name].entries(tasks[0]):
            entry.update({key: value for key in ("main_score", *MEASURES) if key in entry})
    return Touched(f"a crashed evaluation was written as {value}", models, tasks)


@plant
def text_scores(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 2), tasks_of(board, rng)
    for name in models:
        for entry in board[name].entries(tasks[0]):
            entry["main_score"] = str(entry["main_score"]).replace(".", ",")
    return Touched("main scores are texts with a decimal comma", models, tasks)


@plant
def copied_task(board: Board, rng: random.Random) -> Touched:
    models, (task, source) = some(board, rng, 1, 1), tasks_of(board, rng, 2)
    copied = copy.deepcopy(board[models[0]].entries(source))
    (usual,) = board[models[0]].tasks[task]["scores"]
    board[models[0]].tasks[task]["scores"] = {usual: copied}
    return Touched(f"the scores of {task} are those of {source}", models, (task, source))


@plant
def copied_cell(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 2, 2), tasks_of(board, rng)
    board[models[0]].tasks[tasks[0]] = copy.deepcopy(board[models[1]].tasks[tasks[0]])
    return Touched("one result is another model's result", models, tasks)


@plant
def swapped_files(board: Board, rng: random.Random) -> Touched:
    models, (a, b) = some(board, rng, 1, 1), tasks_of(board, rng, 2)
    tasks = board[models[0]].tasks
    tasks[a], tasks[b] = tasks[b], tasks[a]
    return Touched("two files are exchanged; the task and the revision in the file still tell", models, (a, b))


@plant
def swapped_scores(board: Board, rng: random.Random) -> Touched:
    models, (a, b) = some(board, rng, 1, 1), tasks_of(board, rng, 2)
    tasks = board[models[0]].tasks
    (split_a,), (split_b,) = tasks[a]["scores"], tasks[b]["scores"]
    tasks[a]["scores"], tasks[b]["scores"] = (
        {split_a: tasks[b]["scores"][split_b]},
        {split_b: tasks[a]["scores"][split_a]},
    )
    return Touched("the scores of two tasks are exchanged", models, (a, b), "partly")


@plant
def small_corpus(board: Board, rng: random.Random) -> Touched:
    models = some(board, rng, 1, 3)
    tasks = tasks_of(board, rng)
    for name in models:
        for entry in board[name].entries(tasks[0]):
            shift(entry, lambda x: 1 - (1 - x) * 0.45)
    return Touched(
        "scores as on a small sample of the corpus, under the name of the full task", models, tasks, "partly"
    )


@plant
def memorised_task(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 1), tasks_of(board, rng)
    for entry in board[models[0]].entries(tasks[0]):
        shift(entry, lambda x: 1 - (1 - x) * 0.05)
    return Touched(
        "one model is nearly perfect in one task: trained on the test set, not stated", models, tasks, "partly"
    )


@plant
def hidden_gain(board: Board, rng: random.Random) -> Touched:
    models, gain = some(board, rng, 1, 1), rng.uniform(0.01, 0.02)
    for task in board[models[0]].tasks:
        for entry in board[models[0]].entries(task):
            shift(entry, lambda x: x + (1 - x) * gain)
    return Touched("all scores of one model are a little too high (best of many prompts)", models, (), "no")


@plant
def family(board: Board, rng: random.Random) -> Touched:
    """Eight variants of one model, of which the best is shown on top: the winner was selected."""
    (source,) = some(board, rng, 1, 1)
    for name in rng.sample([name for name in sorted(board) if name != source], 7):
        del board[name]
    names = []
    for i in range(1, 8):
        variant = copy.deepcopy(board[source])
        name = f"{source}-ckpt{i * 500}"
        variant.meta |= {"name": name.replace("__", "/"), "adapted_from": source.replace("__", "/")}
        for task in variant.tasks:
            for entry in variant.entries(task):
                shift(entry, lambda x: x + rng.gauss(0, 0.002))
        board[name] = variant
        names.append(name)
    return Touched("eight checkpoints of one model", (source, *names))


@plant
def coarse(board: Board, rng: random.Random) -> Touched:
    models = some(board, rng, 2, 5)
    for name in models:
        for task in board[name].tasks:
            for entry in board[name].entries(task):
                shift(entry, lambda x: round(x, 2))
    return Touched("two digits where the others have five", models)


@plant
def saturated_task(board: Board, rng: random.Random) -> Touched:
    tasks = tasks_of(board, rng)
    for model in board.values():
        for entry in model.entries(tasks[0]):
            shift(entry, lambda x: 0.985 + x * 0.01)
    return Touched("one task no longer separates the models: all are between 0.985 and 0.995", (), tasks)


@plant
def constant_task(board: Board, rng: random.Random) -> Touched:
    tasks = tasks_of(board, rng)
    first = copy.deepcopy(next(iter(board.values())).tasks[tasks[0]])
    for model in board.values():
        model.tasks[tasks[0]] = copy.deepcopy(first)
    return Touched("one task has the same result for every model", (), tasks)


@plant
def impossible(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 1), tasks_of(board, rng, 2)
    for task in tasks:
        for entry in board[models[0]].entries(task):
            entry["recall_at_100"] = round(entry["recall_at_10"] * 0.8, 5)
    return Touched("recall at 100 is below recall at 10", models, tasks)


@plant
def above_one(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 1), tasks_of(board, rng)
    for entry in board[models[0]].entries(tasks[0]):
        entry["main_score"] = entry["ndcg_at_10"] = round(1 + rng.uniform(0.01, 0.2), 5)
    return Touched("a main score above 1", models, tasks)


@plant
def foreign_metadata(board: Board, rng: random.Random) -> Touched:
    models = some(board, rng, 2, 2)
    board[models[0]].meta = copy.deepcopy(board[models[1]].meta)
    return Touched("the first model's metadata are the second's", models)


@plant
def task_name(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 3), tasks_of(board, rng)
    for result in cells(board, models, tasks):
        result["task_name"] = tasks[0] + ".v2"
    return Touched("the file holds a later version of the task", models, tasks)


@plant
def cut_file(board: Board, rng: random.Random) -> Touched:
    models, tasks = some(board, rng, 1, 1), tasks_of(board, rng)
    board[models[0]].tasks[tasks[0]]["cut"] = True
    return Touched("a file is cut off", models, tasks)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(folder: Path, board: Board, truth: dict[str, Any]) -> None:
    for name, model in sorted(board.items()):
        for revision, tasks in {model.revision: model.tasks, **model.more}.items():
            place = folder / "results" / name / revision
            place.mkdir(parents=True)
            (place / "model_meta.json").write_text(json.dumps(model.meta | {"revision": revision}), encoding="utf-8")
            for task, result in tasks.items():
                cut = result.pop("cut", False)
                text = json.dumps(result)
                (place / f"{task}.json").write_text(text[: len(text) // 2] if cut else text, encoding="utf-8")
    (folder / "truth.json").write_text(json.dumps(truth, indent=1), encoding="utf-8")


def natural(board: Board) -> dict[str, Any]:
    """What differs by nature in a board that was left as it is."""
    tasks = sorted({task for model in board.values() for task in model.tasks})
    revisions: dict[str, Counter[str]] = {task: Counter() for task in tasks}
    splits: dict[str, Counter[str]] = {task: Counter() for task in tasks}
    versions: Counter[str] = Counter()
    for model in board.values():
        for task, result in model.tasks.items():
            revisions[task][str(result["dataset_revision"])] += 1
            splits[task].update(list(result["scores"]))
            versions[str(result["mteb_version"])] += 1
    return {
        "data revisions": {task: dict(count) for task, count in revisions.items() if len(count) > 1},
        "splits": {task: dict(count) for task, count in splits.items() if len(count) > 1},
        "tool versions": dict(versions),
        "tasks missing": {
            name: missing for name, model in board.items() if (missing := [t for t in tasks if t not in model.tasks])
        },
        "trained on": {
            name: on
            for name, model in board.items()
            if (on := [task for task in tasks if task in (model.meta.get("training_datasets") or ())])
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=3, help="boards for each kind; three times as many are clean")
    parser.add_argument("--models", type=int, default=40)
    options = parser.parse_args()
    every = published(Path(os.environ.get("TRUERANK_SHARED", "../shared")) / "data" / "mteb-results" / "results.tar.xz")
    print(f"{len(every)} models\n")
    print("| board | kind | visible | models | tasks | what |\n|---|---|---|---|---|---|")
    kinds = [kind for kind in PLANTS for _ in range(options.draws * (3 if kind == "clean" else 1))]
    kinds += ["published"] * options.draws
    # A folder's name must not tell what is in it.
    random.Random(f"order {options.seed}").shuffle(kinds)
    for number, kind in enumerate(kinds, 1):
        rng = random.Random(f"board {options.seed} {number}")
        if kind == "published":
            names = sorted(rng.sample(sorted(every), options.models))
            board = {name: copy.deepcopy(every[name]) for name in names}
        else:
            board = drawn(every, options.models, rng)
        touched = PLANTS[kind](board, rng) if kind in PLANTS else Touched("nothing planted")
        truth = {"kind": kind, **vars(touched)} | ({"natural": natural(board)} if kind == "published" else {})
        folder = options.out / f"{number:03d}"
        write(folder, board, truth)
        models = ", ".join(touched.models[:3]) + (
            f" and {len(touched.models) - 3} more" if len(touched.models) > 3 else ""
        )
        print(
            f"| {folder.name} | {kind} | {touched.visible} | {models} | {', '.join(touched.tasks)} | {touched.what} |"
        )


if __name__ == "__main__":
    main()
