"""`judge agreement`, `judge table`, `judge model` and `--labels STORE` as a user meets them."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from chat_server import answered, chat_server, item_of
from judging_example import store_of
from places import DATA, without_progress
from truerank import judge
from truerank.audits import leakage
from truerank.cli import main
from truerank.errors import InputError
from truerank.judging import (
    Item,
    Store,
    Text,
    agreement,
    load_scheme,
    open_judgments,
    read_ratings,
)


def run(*words: object) -> str:
    """A command in this process; its output. Faults of the user come as errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    if ended.value.code:
        raise InputError(err.getvalue().strip())
    return out.getvalue()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    topics = ["organized crime", "polio outbreaks", "radioactive waste"]
    items = [
        Item(
            f"i{number}", str(number % 3), title=topics[number % 3],
            texts=(Text("query", query, f"q{number}"),), score=0.88 + number / 100,
            dataset=("news", "web")[number % 2], probability=0.5,
        )
        for number, query in enumerate(
            ["organized crime", "polio outbreak", "cheap flights", "crime", "polio outbreaks in 1950", "nuclear waste"]
        )
    ]  # fmt: skip
    types = ["Identical", "Identical", None, "Generalization", "Specialization", "Reformulation"]
    ann = {f"i{at}": [f"Title-{kind}" if kind else "Different Topic"] for at, kind in enumerate(types)}
    bob = {**ann, "i1": ["Title-Reformulation"], "i5": ["Different Topic"]}
    return store_of(tmp_path / "s.judged", load_scheme("leakage"), items, {"ann": ann, "bob": bob})


def test_what_was_exported_says_the_same_as_the_store(store: Path, tmp_path: Path) -> None:
    with Store.open(store) as opened:
        opened.add_annotator("judge", "adjudicator")
        opened.record("i5", "judge", "adjudicate", ["Title-Reformulation"])
        opened.add_annotator("robot", "model", "tiny")
        opened.record("i0", "robot", "label", ["Different Topic"])
        opened.record("i2", "robot", "skip", reason="too hard")
    expected = agreement(store, definition="title-type", resamples=0)
    tables = judge.table(store)
    forms = {"labels.jsonl": None, "labels.csv": None, "doccano.jsonl": "doccano"}
    for name, form in forms.items():
        file = tmp_path / name
        judge.export(store, file, file_format=form)
        found = agreement(file, definition="title-type", resamples=0)
        assert found.compared[0].scores == expected.compared[0].scores, name
        assert [(pair.first, pair.second, pair.units) for pair in found.models] == [
            (pair.first, pair.second, pair.units) for pair in expected.models
        ]
        assert judge.table(file).json()["tables"] == tables.json()["tables"], name
        ratings = read_ratings(file)
        (robot,) = [annotator for annotator in ratings.annotators if annotator.role == "model"]
        assert robot.name == "robot"
        assert robot.about == "tiny"
        assert {(pair.text, pair.leak) for pair in open_judgments(file).pairs} == {
            (pair.text, pair.leak) for pair in open_judgments(store).pairs
        }


def test_a_store_calibrates_and_confirms(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(store) as opened:
        opened.add_annotator("robot", "model", "tiny")
        opened.record("i3", "robot", "label", ["Different Topic"])
    value = leakage.calibrate(labels=store, min_precision=0.5).json()
    # "nuclear waste" is a tie and is left out.
    assert (value["counts"]["pairs"], value["counts"]["leaks"], value["counts"]["unresolved"]) == (5, 4, 1)
    assert "1 label of models is left out." in value["notes"]
    with_models = leakage.calibrate(labels=open_judgments(store, include_models=True), min_precision=0.5).json()
    assert "Not only people: 1 label of models is counted." in with_models["notes"]
    with pytest.raises(SystemExit) as ended:
        main(["leakage", "calibrate", "--labels", str(store), "--include-models"])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    # The advice is there once.
    assert (out + err).count("more pairs from") == 1
    assert out.startswith("No threshold: ")
    assert err == "leakage calibrate: the labels support no threshold.\n"


def test_a_chat_model_from_the_shell(store: Path) -> None:
    def reply(seen: object, _: int) -> object:
        item = item_of(seen)  # type: ignore[arg-type]
        same = item["title"] == item["texts"][0]["text"]
        return answered({"labels": ["Title-Identical" if same else "Different Topic"]})

    with chat_server(reply) as (address, seen):  # type: ignore[arg-type]
        value = json.loads(run("judge", "model", store, "--endpoint", address, "--model", "tiny-1", "--json"))
        assert value["labels"] == {"Different Topic": 5, "Title-Identical": 1}
        assert value["tokens"] == {"read": 600, "written": 42}
        assert value["requests"] == {"sent": 6, "repeated": 0}
        assert '"Title-Identical"' in seen[0].body["messages"][0]["content"]
    text = run("judge", "agreement", store, "--definition", "leak", "--resamples", 0)
    assert "Models against people; these figures are not part of those above." in text
    assert "tiny-1     people" in text
    with pytest.raises(InputError, match="'' is not an address"):
        run("judge", "model", store, "--model", "tiny-1")
    with pytest.raises(InputError, match="no model"):
        run("judge", "model", store, "--endpoint", "http://127.0.0.1:9/v1")


@pytest.mark.shared
def test_the_commands_of_the_tutorial() -> None:
    """Table 2 as it is in the README's tutorial, from the shell."""
    folder = DATA / "spire22/annotations"
    words = [word for file in sorted(folder.glob("query-*.jsonl")) for word in ("--labels", str(file))]
    words += ["--topics", f"Robust04={DATA / 'topics/robust04.trec.txt'}"]
    command = [sys.executable, "-m", "truerank", "judge", "table", "--scheme", "leakage", *words]
    good = subprocess.run([*command, "--format", "csv"], capture_output=True, text=True, check=True)
    assert "Robust04,true,648,172\nRobust04,false,93,53\n" in good.stdout
    assert without_progress(good.stderr) == ""
    with pytest.raises(InputError, match="two topic sets are called 'Robust04'"):
        run(*command[3:], "--topics", f"Robust04={DATA / 'topics/core17.trec.txt'}")
