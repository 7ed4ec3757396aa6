"""What truerank writes for MTEB, against the real package: `pip install mteb` into an environment of its own first.

    python benchmarks/mteb_exports.py

1. Patches: for every `ModelMeta` in the files of mteb, the patch is applied by `git apply`; the file must be Python
   still, and its `training_datasets` must have the new names and all that it had.
2. Names: similar tasks and parents are those of `ModelMeta.get_training_datasets`; with the patched set, mteb's own
   `zero_shot_percentage` no longer counts the leaked task as unseen.
3. Statistics: the fields are declared by mteb's classes, and the statistics of a clean subset fit its class.
4. Evaluation: `mteb.evaluate` on a tiny local task and on its clean and leaked subsets, with results in MTEB's format.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.model_meta import ModelMeta
from mteb.results import TaskResult
from mteb.types import statistics as mteb_statistics
from pydantic import TypeAdapter

import truerank
from truerank.audits.leakage.exports import (
    Contamination,
    LeakCount,
    TaskEntry,
    meta_patch,
    statistics,
    task_entries,
)
from truerank.integrations.mteb import clean_task

ABOVE = "cosine above 0.91"
FOUND = (
    Contamination(
        "log",
        "log.tsv",
        "scifact",
        "beir/scifact",
        "CONTAMINATED",
        (LeakCount("query", 12, 300, "queries", 14, ABOVE),),
    ),
    Contamination("log", "log.tsv", "nq", "beir/nq", "CLEAN", (LeakCount("query", 0, 3452, "queries", 0, ABOVE),)),
)
NEW = (TaskEntry("SciFact", "leak", "12 of 300 queries in log"), TaskEntry("Zz", "similar", "similar to SciFact"))


def main() -> None:
    """Runs all four."""
    print(f"mteb {mteb.__version__}, Python {sys.version.split()[0]}")
    patches()
    names()
    fields()
    evaluation()


def named(call: ast.Call) -> dict[str | None, ast.expr]:
    """The keywords of a call."""
    return {word.arg: word.value for word in call.keywords}


def patches() -> None:
    """Every model of mteb gets a patch; each is applied alone and taken back."""
    kinds: Counter[str] = Counter()
    applied = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        for file in sorted((Path(mteb.__file__).parent / "models" / "model_implementations").glob("*.py")):
            text = file.read_text(encoding="utf-8")
            copy = Path(folder) / file.name
            for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
                given = named(call)
                name = given.get("name")
                if getattr(call.func, "id", "") != "ModelMeta" or not isinstance(name, ast.Constant):
                    continue
                if "training_datasets" not in given:
                    kinds["no training_datasets"] += 1
                    continue
                copy.write_text(text, encoding="utf-8")
                patch = meta_patch(text, file.name, name.value, NEW)
                subprocess.run(
                    ["git", "apply", "--whitespace=error-all", "-"], input=patch, text=True, cwd=folder, check=True
                )
                check_patched(text, copy.read_text(encoding="utf-8"), str(name.value))
                kinds[type(given["training_datasets"]).__name__] += 1
                applied += 1
    print(f"patches: {applied} applied; training_datasets written as {dict(kinds.most_common())}")


def check_patched(before: str, after: str, model: str) -> None:
    """The value is the old one with the new names; nothing else in the file changed."""
    old, new = (value_of(text, model) for text in (before, after))
    if isinstance(old, ast.Set):
        assert isinstance(new, ast.Set)
        was, now = ({ast.dump(one) for one in value.elts} for value in (old, new))
        assert now - was == {ast.dump(ast.Constant(name)) for name in ("SciFact", "Zz")} - was
        assert was <= now
    elif isinstance(new, ast.BinOp):
        assert ast.dump(new.left) == ast.dump(old)
        assert {one.value for one in new.right.elts} == {"SciFact", "Zz"}  # type: ignore[attr-defined]
    else:
        assert isinstance(new, ast.Set)
        assert ast.unparse(old) in ("None", "set()")
        assert {one.value for one in new.elts} == {"SciFact", "Zz"}  # type: ignore[attr-defined]
    rest = [blanked(text, model) for text in (before, after)]
    assert rest[0] == rest[1]


def value_of(text: str, model: str) -> ast.expr:
    """The `training_datasets` of a model in a file."""
    for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        given = named(call)
        name = given.get("name")
        if getattr(call.func, "id", "") == "ModelMeta" and isinstance(name, ast.Constant) and name.value == model:
            return given["training_datasets"]
    raise AssertionError(model)


def blanked(text: str, model: str) -> str:
    """The file as Python sees it, without the value that the patch changes."""
    tree = ast.parse(text)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = named(call).get("name")
        if getattr(call.func, "id", "") == "ModelMeta" and isinstance(name, ast.Constant) and name.value == model:
            for word in call.keywords:
                if word.arg == "training_datasets":
                    word.value = ast.Constant(None)
            return ast.dump(tree)
    raise AssertionError(model)


def names() -> None:
    """Similar tasks and parents, and what mteb makes of the patched set."""
    entries = task_entries(FOUND, {})
    every = {entry.name for entry in entries}
    meta = ModelMeta.create_empty({"name": "org/model", "training_datasets": {"SciFact"}})
    assert every == meta.get_training_datasets()
    unseen = ModelMeta.create_empty({"name": "org/model", "training_datasets": set()})
    changed = unseen.model_copy(update={"training_datasets": every})
    before, after = (one.zero_shot_percentage(["SciFact", "NFCorpus"]) for one in (unseen, changed))
    assert (before, after) == (100, 50)
    ModelMeta.model_validate({**unseen.model_dump(), "loader": None, "training_datasets": every})
    print(f"names: SciFact leaks; {len(every) - 1} similar tasks: {', '.join(sorted(every - {'SciFact'}))}")
    model = next(one for one in mteb.get_model_metas() if one.adapted_from and parent_of(one))
    parents = [entry for entry in task_entries(FOUND, {}, model=model.name) if entry.because == "parent"]
    assert {entry.name for entry in parents} == parent_of(model) - every
    print(f"parents: {model.name} was trained from {model.adapted_from}: {len(parents)} more names")


def parent_of(model: ModelMeta) -> set[str]:
    """What the model that a model was trained from has seen."""
    try:
        return set(mteb.get_model_meta(str(model.adapted_from), fetch_from_hf=False).get_training_datasets() or ())
    except (KeyError, ValueError):
        return set()


def fields() -> None:
    """The fields of the statistics."""
    stated = statistics(FOUND, {})
    declared = {
        name
        for kind in (
            mteb_statistics.RetrievalDescriptiveStatistics,
            mteb_statistics.ClassificationDescriptiveStatistics,
        )
        for name in kind.__annotations__
    }
    for task in stated.values():
        for split in task.values():
            assert split.keys() <= declared
    known = mteb.get_task("SciFact").metadata.descriptive_stats
    assert known is not None
    assert known["test"]["num_queries"] == stated["SciFact"]["test"]["num_queries"]  # type: ignore[typeddict-item]
    print(f"statistics: {json.dumps(stated)}; num_queries agrees with mteb's own for SciFact")


class TinyRetrieval(AbsTaskRetrieval):
    """Six documents and four queries, two of which leak."""

    metadata = TaskMetadata(
        name="TinyRetrieval", dataset={"path": "local", "revision": "1"}, description="Tiny.", type="Retrieval",
        category="t2t", eval_splits=["test"], eval_langs=["eng-Latn"], main_score="ndcg_at_10",
    )  # fmt: skip

    def load_data(self, *args: Any, **kwargs: Any) -> None:
        """Makes the data; nothing is downloaded."""
        if self.data_loaded:
            return
        texts = ["red apples", "blue whales", "train timetable", "copper mines", "violin makers", "river bridges"]
        queries = ["apples that are red", "song of blue whales", "timetable of trains", "mines for copper"]
        self.dataset = {
            "default": {
                "test": {
                    "corpus": Dataset.from_list(
                        [{"id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)]
                    ),
                    "queries": Dataset.from_list([{"id": f"q{at}", "text": text} for at, text in enumerate(queries)]),
                    "relevant_docs": {"q0": {"d0": 1}, "q1": {"d1": 1}, "q2": {"d5": 1}, "q3": {"d4": 1}},
                    "top_ranked": None,
                }
            }
        }
        self.data_loaded = True


class LetterEncoder:
    """Counts of letters as vectors, by the protocol of mteb: small, and the same everywhere."""

    mteb_model_meta = ModelMeta.create_empty({"name": "truerank/letters", "revision": "1"})

    def encode(self, inputs: Any, **kwargs: Any) -> Any:
        """Vectors, shape (texts, 26)."""
        texts = [text for batch in inputs for text in batch["text"]]
        return np.array([[text.count(chr(97 + at)) for at in range(26)] for text in texts], dtype=np.float32)

    def similarity(self, one: Any, other: Any) -> Any:
        """Cosines, shape (texts, others)."""
        one, other = (
            np.asarray(side) / np.linalg.norm(np.asarray(side), axis=1, keepdims=True) for side in (one, other)
        )
        return one @ other.T

    def similarity_pairwise(self, one: Any, other: Any) -> Any:
        """Cosines of pairs."""
        return np.diag(self.similarity(one, other))


def evaluation() -> None:
    """mteb.evaluate on a task and its parts."""
    with tempfile.TemporaryDirectory() as folder:
        task = TinyRetrieval()
        parts = [task, clean_task(task, {"q0", "q1"}), clean_task(task, {"q0", "q1"}, part="leaked")]
        cache = mteb.ResultCache(cache_path=folder)
        done = mteb.evaluate(LetterEncoder(), parts, cache=cache, prediction_folder=folder, show_progress_bar=False)
        scores = {one.task_name: one.scores["test"][0]["ndcg_at_10"] for one in done.task_results}
        predictions = {path.stem.partition("_")[0]: path for path in Path(folder).rglob("Tiny*_predictions.json")}
        run = json.loads(predictions["TinyRetrieval"].read_text())["default"]["test"]
        kept = [path for path in Path(folder).rglob("Tiny*.json") if path not in predictions.values()]
        files = sorted(path.name for path in kept)
        for path in kept:
            again = TaskResult.from_disk(path)
            assert again.scores["test"][0]["ndcg_at_10"] == scores[again.task_name]
    mean = (scores["TinyRetrievalClean"] + scores["TinyRetrievalLeaked"]) / 2
    assert abs(scores["TinyRetrieval"] - mean) < 1e-5, scores
    qrels = {"q0": {"d0": 1}, "q1": {"d1": 1}, "q2": {"d5": 1}, "q3": {"d4": 1}}
    (effect,) = truerank.leakage.effect(qrels, {"letters": run}, {"q0", "q1"}, measures="nDCG@10").runs
    assert abs(effect.clean.mean - scores["TinyRetrievalClean"]) < 1e-5
    assert files == ["TinyRetrieval.json", "TinyRetrievalClean.json", "TinyRetrievalLeaked.json"]
    clean = parts[1]
    clean.load_data()
    found = clean._calculate_descriptive_statistics_from_split("test")
    TypeAdapter(mteb_statistics.RetrievalDescriptiveStatistics).validate_python(found)
    assert (found["num_queries"], found["num_documents"]) == (2, 6)
    print(f"leakage effect on mteb's predictions: clean {effect.clean.mean:.5f}, as mteb on the clean subset")
    print(f"evaluation: {scores}; files {', '.join(files)}; the statistics of the clean subset fit mteb's class")


if __name__ == "__main__":
    main()
