"""Tuning as users do, and what goes wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

from truerank.core.result import summary
from truerank.lexical import build_index, model_of, search
from truerank.measures import evaluate
from truerank_lab.cli import main
from truerank_lab.tuning import GRIDS, grid_of, tune


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection about twelve subjects, topics for them, and judgments; with its index."""
    folder, rng = tmp_path_factory.mktemp("lexical"), random.Random(1)
    subjects = [f"subject{chr(97 + n)}" for n in range(12)]
    words = [f"word{n}" for n in range(40)]
    docs, qrels = [], []
    for n in range(240):
        subject = n % 12
        text = [*rng.choices(words, k=rng.randint(5, 25)), *[subjects[subject]] * rng.randint(0, 3)]
        docs.append({"_id": f"d{n:03d}", "title": subjects[subject] if n % 5 == 0 else "", "text": " ".join(text)})
        qrels.append(f"t{subject} 0 d{n:03d} {int(rng.random() < 0.7)}\n")
    (folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    topics = [
        {"qid": f"t{n}", "title": f"{subjects[n]} {words[n]}", "description": f"about {subjects[n]}"} for n in range(12)
    ]
    topics += [{"qid": "none", "title": "unheard-of"}, {"qid": "empty", "title": "", "description": "word1"}]
    (folder / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    (folder / "q.qrels").write_text("".join(qrels))
    build_index(str(folder / "docs.jsonl"), folder / "index")
    return folder


def test_tuning_takes_for_each_fold_what_is_best_on_the_others(place: Path, tmp_path: Path) -> None:
    grid = {"k1": (0.1, 3.0), "b": (0.0, 1.0)}
    tuned = tune(
        place / "index",
        str(place / "topics.jsonl"),
        str(place / "q.qrels"),
        grid=grid,
        measure="AP",
        folds=3,
        seed=5,
        out=tmp_path,
    )
    assert [choice.fold for choice in tuned.validation.choices] == [1, 2, 3]
    for choice, fold in zip(tuned.validation.choices, tuned.validation.folds, strict=True):
        means = {}
        for setting in grid_of(grid):
            run = search(place / "index", str(place / "topics.jsonl"), model_of("anserini", "bm25", setting)).run
            scores = evaluate(str(place / "q.qrels"), {"run": run}, "AP")
            outside = [at for at, topic in enumerate(scores.topics) if topic not in fold]
            means[" ".join(f"{name}={value}" for name, value in setting.items())] = scores.values[0, 0, outside].mean()
            inside = run.filter(pl.col("topic_id").is_in(list(fold))).drop("tag")
            if choice.setting.replace("k1=", "").split()[0] == str(setting["k1"]) and choice.setting.endswith(
                f"b={setting['b']}"
            ):
                chosen = tuned.validation.run.filter(pl.col("topic_id").is_in(list(fold))).drop("tag")
                assert chosen.sort("topic_id", "rank").equals(inside.sort("topic_id", "rank"))
        assert means[choice.setting] == pytest.approx(max(means.values()))
        assert choice.train == pytest.approx(max(means.values()))
    assert evaluate(str(place / "q.qrels"), {"t": tmp_path / "tuned.run"}, "AP").mean[0, 0] == pytest.approx(
        tuned.json()["means"]["tuned"], abs=1e-9
    )
    assert {path.name for path in tmp_path.iterdir()} >= {"base.run", "tuned.run", "tuning.json", "manifest.json"}
    assert "tuned" in summary(tuned).show()
    for model, values in GRIDS.items():
        for setting in grid_of(values):
            model_of("anserini", model, setting)


def test_the_command_says_what_was_chosen_and_takes_one_measure(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tune", "--index", place / "index", "--topics", place / "topics.jsonl", "--qrels", place / "q.qrels"]
    for more, code in ((["--grid", "k1=0.5,2", "--folds", 2], 0), (["--measure", "AP P@5"], 2)):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in [*words, *more, "--out", tmp_path / "t"]])
        assert ended.value.code == code
        shown = capsys.readouterr()
        assert "Settings chosen by cross-validation" in shown.out if code == 0 else "not one" in shown.err
