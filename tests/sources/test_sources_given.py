"""Values of a program in place of sources, in every command that names sources."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank
from shortcuts import undrawn
from truerank import leakage, pool, transfer
from truerank.cli.commands import COMMANDS
from truerank.cli.declarations import command_at
from truerank.errors import InputError, OptionError
from truerank.options import Flag, Options, _kinds, adopted, declared
from truerank.sources import open_documents, open_queries, read_qrels_frame, read_run_frame, read_topics
from truerank.sources.notebook import NOUNS

TEXTS = {"1": "wild birds of the north", "2": "fast cars"}
GRADES = {"1": {"a": 2, "b": 0}, "2": {"c": 1}}
SCORES = {"1": {"a": 0.5, "b": 1.25}, "2": {"c": -1.0}}
FORMS: dict[str, list[Any]] = {
    "texts": [
        TEXTS,
        list(TEXTS.values()),
        list(TEXTS.items()),
        [{"_id": key, "text": text} for key, text in TEXTS.items()],
        pl.DataFrame({"query_id": list(TEXTS), "query": list(TEXTS.values())}),
        pl.LazyFrame({"query_id": list(TEXTS), "query": list(TEXTS.values())}),
    ],
    "documents": [
        TEXTS,
        list(TEXTS.values()),
        {key: {"body": text} for key, text in TEXTS.items()},
        pl.DataFrame({"docno": list(TEXTS), "text": list(TEXTS.values())}),
    ],
    "qrels": [
        GRADES,
        pl.DataFrame({"qid": ["1", "1", "2"], "docno": ["a", "b", "c"], "label": [2, 0, 1]}),
    ],
    "run": [
        SCORES,
        pl.DataFrame({"qid": ["1", "1", "2"], "docno": ["a", "b", "c"], "score": [0.5, 1.25, -1.0]}),
    ],
}


def places() -> list[tuple[str, Any, str, Any]]:
    """Every command, the function or group that declares an option of a source, its name and its annotation."""
    found = []
    for name, path in COMMANDS.items():
        function = inspect.unwrap(command_at(name, path).function)
        groups = [hint for hint in declared(function).values() if isinstance(hint, type) and issubclass(hint, Options)]
        for owner in (function, *groups):
            for option, hint in declared(owner).items():
                kinds = _kinds(hint)
                metavar = next((kind.metavar for kind in kinds if isinstance(kind, Flag)), "")
                if option in NOUNS and ("SRC" in metavar or metavar.endswith("FILE")):
                    found.append((name, owner, option, hint))
    return found


PLACES = places()


def read(noun: str, source: str) -> Any:
    if noun == "qrels":
        return {(row[0], row[1]): row[2] for row in read_qrels_frame(source).iter_rows()}
    if noun == "run":
        return {(one["topic_id"], one["doc_id"]): one["score"] for one in read_run_frame(source).iter_rows(named=True)}
    if noun == "documents":
        return {one.doc_id: one.text for one in open_documents(source)}
    return {one.topic_id: one.title for one in read_topics(source).topics}


EXPECTED = {
    "texts": TEXTS,
    "documents": TEXTS,
    "qrels": {("1", "a"): 2, ("1", "b"): 0, ("2", "c"): 1},
    "run": {("1", "a"): 0.5, ("1", "b"): 1.25, ("2", "c"): -1.0},
}


def test_many_commands_take_sources() -> None:
    assert len({name for name, *_ in PLACES}) > 25


@pytest.mark.parametrize(("name", "owner", "option", "hint"), PLACES, ids=[f"{one[0]} {one[2]}" for one in PLACES])
def test_every_command_takes_values(name: str, owner: Any, option: str, hint: Any) -> None:
    noun = NOUNS[option]
    classes = {kind.__name__ for kind in _kinds(hint) if isinstance(kind, type)}
    for value in FORMS[noun]:
        given = {"V1": value} if "Mapping" in classes and "DataFrame" not in classes else value
        found = adopted(owner, {option: given})
        if "DataFrame" in classes or "Any" in classes:
            assert found == {}, "the command reads values itself"
            continue
        made = found[option]
        (source,) = made.values() if isinstance(made, dict) else made if isinstance(made, tuple) else (made,)
        assert read(noun, source) == EXPECTED[noun]
        if noun == "texts":
            assert {one.query_id: one.text for one in open_queries(source)} == TEXTS
    if "DataFrame" not in classes and "Any" not in classes:
        with pytest.raises(OptionError, match="cannot read a"):
            adopted(owner, {option: {"V1": 3} if "Mapping" in classes else 3})


def test_sources_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "noending").write_text("x\n")
    audit = inspect.unwrap(leakage.audit)
    for sources in (["a.tsv", "irds:x/train"], [str(tmp_path / "noending")], ["unknown"], ("hf:org/name",)):
        assert adopted(audit, {"train": sources})["train"] == sources
    # A text that is too long for the name of a file, in bytes and not in letters.
    assert adopted(audit, {"train": ["గవర్నర్ జనరల్ " * 20, "one more"]})["train"] != ["one more"]
    assert adopted(audit, {"train": [tmp_path / "noending"]})["train"] == [str(tmp_path / "noending")]
    with pytest.raises(OptionError, match="'wild birds' is not a source, others are"):
        adopted(audit, {"train": ["a.tsv", "wild birds"]})
    with pytest.raises(OptionError, match="is empty"):
        adopted(audit, {"train": {}})


class Pandas:
    """A frame with what pandas has for missing values: nan, NaT and NA."""

    NAType = type("NAType", (), {"__ne__": lambda *_: (_ for _ in ()).throw(TypeError("ambiguous"))})

    def __init__(self, **columns: list[Any]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]


def test_what_is_missing_in_a_frame_is_no_text(tmp_path: Path) -> None:
    none = [float("nan"), np.float32("nan"), None, Pandas.NAType()]
    texts = Pandas(query_id=["1", 2, 3, 4, 5], query=["wild birds", *none], seen=[date(2020, 1, 1)] * 5)
    (source,) = adopted(inspect.unwrap(leakage.audit), {"train": texts})["train"]
    assert [one.text for one in open_queries(source)] == ["wild birds"]
    run = Pandas(topic_id=["1", "1"], doc_id=["a", float("nan")], score=[1.0, 2.0])
    with pytest.raises(InputError, match="a value is missing"):
        truerank.evaluate({"1": {"a": 1}}, {"r": run}, "P@1")
    table = Pandas(question=["q1", "q2"], expected=["a", "b"], retrieved_x=["a", float("nan")], retrieved_y=["c", "b"])
    scores = truerank.evaluate(paths=table, measures="P@1")
    assert scores.of("x", "P@1").tolist() == [1, 0]


def test_grades_of_half_and_scores_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"the relevance 0.5 is not a whole number"):
        truerank.evaluate({"1": {"a": 0.5}}, {"r": {"1": {"a": 1.0}}}, "P@1")
    runs = {name: {f"{topic}": {"a": 1.0, "b": score} for topic in range(9)} for name, score in (("x", nan), ("y", 2))}
    with pytest.raises(InputError, match=r"x: topic 0, document b has no number as its score"):
        truerank.check(qrels={f"{topic}": {"a": 1} for topic in range(9)}, run=runs)
    for judged in ({"1": ["a"]}, [("1", "a", 1)]):
        with pytest.raises(InputError, match="cannot read a"):
            truerank.evaluate(judged, {"r": [("1", "a", 1.0)]}, "P@1")


@pytest.mark.parametrize("score", [np.float32(1), np.int64(1), 1])
def test_one_run_may_have_scores_of_numpy(score: Any) -> None:
    judged, run = (
        {name: ["1"], "doc_id": ["a"], last: [1]} for name, last in (("topic_id", "relevance"), ("qid", "score"))
    )
    for given in ({"1": {"a": score}}, pl.LazyFrame(run)):
        assert truerank.evaluate(pl.LazyFrame(judged), given, "P@1").mean.tolist() == [[1.0]]


def test_one_text_or_path_stands_for_several(tmp_path: Path) -> None:
    path = tmp_path / "queries.tsv"
    audit, build = inspect.unwrap(leakage.audit), inspect.unwrap(pool.build)
    assert adopted(audit, {"train": path, "test": "t.trec"}) == {"train": (str(path),), "test": ("t.trec",)}
    assert adopted(build, {"run": "bm25.run"}) == {"run": ("bm25.run",)}
    assert adopted(inspect.unwrap(truerank.collection.audit), {"docs": path}) == {}
    assert truerank.collection.Parts(docs=path).docs == str(path)
    (path.with_name("a.run")).write_text("1 Q0 a 1 2.5 tag\n")
    (named,) = adopted(build, {"run": {"mine": path.with_name("a.run")}})["run"]
    assert (Path(named).stem, read("run", named)) == ("mine", {("1", "a"): 2.5})


def test_texts_may_look_like_names_of_files() -> None:
    audit = inspect.unwrap(leakage.audit)
    texts = ["how to parse data.json", "how do birds fly", "hf: what is that"]
    (source,) = adopted(audit, {"train": texts})["train"]
    assert [one.text for one in open_queries(source)] == texts
    assert adopted(audit, {"train": ["no such file.tsv"]})["train"] == ["no such file.tsv"]
    one = adopted(inspect.unwrap(truerank.search), {"topics": ["noise"]})["topics"]
    assert read("texts", one) == {"1": "noise"}


def test_values_of_several_threads_are_whole_files() -> None:
    audit = inspect.unwrap(leakage.audit)
    texts = [f"question number {number} of many" for number in range(1_000)]

    def lines(_: int) -> int:
        (source,) = adopted(audit, {"train": texts})["train"]
        return len(Path(source).read_text().splitlines())

    with ThreadPoolExecutor(8) as threads:
        assert {*threads.map(lines, range(32))} == {len(texts)}


def test_what_is_no_value_of_a_source_is_refused() -> None:
    frame = pl.DataFrame({"query_id": ["1"]})
    with pytest.raises(OptionError, match="cannot read a DataFrame"):
        truerank.survivorship.triples(frame, "depths")
    with pytest.raises(OptionError, match="an id holds a blank"):
        transfer.clean({"a topic": {"x": 1}}, scan="scan")
    with pytest.raises(OptionError, match=r"no column 'relevance'; there are topic_id"):
        transfer.clean(frame.with_columns(doc_id=pl.lit("x")), scan="scan")


def test_an_audit_of_values_is_that_of_files(tmp_path: Path) -> None:
    train = {
        "old": ["how do birds fly", "cars of the fifties"],
        "new": pl.DataFrame({"id": ["7"], "text": ["what is love"]}),
    }
    test = {"1": "how do birds fly", "2": {"title": "love", "description": "what is love"}}
    (tmp_path / "old.jsonl").write_text(
        '{"_id": "1", "text": "how do birds fly"}\n{"_id": "2", "text": "cars of the fifties"}\n'
    )
    (tmp_path / "new.jsonl").write_text('{"id": "7", "text": "what is love"}\n')
    (tmp_path / "test.jsonl").write_text(
        '{"_id": "1", "text": "how do birds fly"}\n{"_id": "2", "title": "love", "description": "what is love"}\n'
    )
    files = [str(tmp_path / f"{name}.jsonl") for name in ("old", "new")]
    expected = leakage.audit(files, [str(tmp_path / "test.jsonl")], encoder="packaged", fields=("title",))
    with undrawn():
        found = leakage.audit(train, test, encoder="packaged", fields=("title",), out=tmp_path / "a")
    assert found.candidates.equals(expected.candidates)
    inputs = {one["name"]: one for one in json.loads((tmp_path / "a" / "manifest.json").read_bytes())["inputs"]}
    assert [inputs[name]["source"] for name in ("old", "new", "test")] == ["", "", ""]
    assert inputs["old"]["sha256"]


def test_search_pools_and_matching_of_values(tmp_path: Path) -> None:
    truerank.build_index(open_documents(str(_collection(tmp_path))), tmp_path / "index")
    found = truerank.search(str(tmp_path / "index"), {"1": "wild birds", "2": "fast cars"})
    assert found.run["topic_id"].unique(maintain_order=True).to_list() == ["1", "2"]
    runs = {"bm25": found.run, "other": {"1": {"1": 2.0}, "2": {"2": 1.0}}}
    made = pool.build(runs, topics={"1": "wild birds", "2": "fast cars"}, docs=TEXTS, depth=1)
    assert sorted(made.documents.select("topic_id", "doc_id").rows()) == [("1", "1"), ("2", "2")]
    matched = transfer.match({"V1": TEXTS, "V2": {"1": "wild birds of the south"}}, qrels={"9": {"1": 1, "2": 0}})
    assert list(matched.versions) == ["V1", "V2"]


def _collection(folder: Path) -> Path:
    path = folder / "docs.jsonl"
    path.write_text("".join(json.dumps({"doc_id": key, "text": text}) + "\n" for key, text in TEXTS.items()))
    return path


def test_runs_without_names_are_numbered(tmp_path: Path) -> None:
    frame = pl.DataFrame([(topic, doc, score) for topic, scores in SCORES.items() for doc, score in scores.items()],
                         schema=["topic_id", "doc_id", "score"], orient="row")  # fmt: skip
    (tmp_path / "own.run").write_text("1 Q0 a 1 1 t\n2 Q0 c 1 1 t\n")
    for runs, names in (([frame, SCORES], ["run 1", "run 2"]), ([tmp_path / "own.run", frame], ["own", "run 2"])):
        assert [*truerank.evaluate(GRADES, runs).runs] == names
        assert sorted(one.team for one in pool.build(runs, depth=1).teams) == names
    assert [*truerank.evaluate(GRADES, [frame]).runs] == ["run"]


FORK = """
import multiprocessing, os, sys
from truerank.sources.notebook import source_of

def write(number):
    return source_of("docs", {str(number): "text"}, several=False, by_name=False)

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        pool.map(write, range(4))
    path = write(5)
    if not os.fork():
        sys.exit()
    os.wait()
    assert os.path.exists(path)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_the_folder_of_values_goes_with_the_process_that_made_it(tmp_path: Path) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "temporary"
    script.write_text(FORK)
    folder.mkdir()

    environment = {**os.environ, "TMPDIR": str(folder)}
    subprocess.run([sys.executable, str(script), "fork"], check=True, env=environment)
    assert list(folder.iterdir()) == []
