"""Searching and tuning as users do: runs, their manifests, the commands, and what goes wrong."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank
from places import DATA
from truerank.cli import main
from truerank.errors import InputError
from truerank.lexical import Analyser, Index, TopicQuery, build_index, model_of, search
from truerank.lexical.presets import PRESETS
from truerank.measures import evaluate
from truerank.sources import read_run_frame

MODELS = ("bm25", "ql", "rm3", "axiomatic", "prf")
#: nDCG@10, AP and R@1000 of the runs of Anserini 1.7.1 (Java) with its default options on the same texts.
ANSERINI = {
    "vaswani": {
        "bm25": (0.4368, 0.2856, 0.9340),
        "ql": (0.3230, 0.2096, 0.9116),
        "rm3": (0.4406, 0.2955, 0.9369),
        "axiomatic": (0.3924, 0.2703, 0.9414),
        "prf": (0.4334, 0.2875, 0.9350),
    },
    "cacm": {
        "bm25": (0.4543, 0.3123, 0.8867),
        "ql": (0.4609, 0.3265, 0.8858),
        "rm3": (0.4847, 0.3648, 0.9152),
        "axiomatic": (0.4283, 0.3077, 0.8985),
        "prf": (0.4407, 0.2994, 0.9049),
    },
}
SOURCES = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}


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


def command(*words: object) -> Any:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


def test_a_run_is_ordered_by_the_scores_that_stand_in_it(place: Path, tmp_path: Path) -> None:
    for model in MODELS:
        result = search(
            place / "index",
            str(place / "topics.jsonl"),
            model_of("anserini", model),
            k=60,
            tag=model,
            out=tmp_path / f"{model}.run",
        )
        written = read_run_frame(result.out)
        assert written.equals(result.run)
        for _, rows in written.group_by("topic_id", maintain_order=True):
            assert rows["rank"].to_list() == list(range(1, len(rows) + 1))
            pairs = list(zip((-rows["score"]).to_list(), rows["doc_id"].to_list(), strict=True))
            assert pairs == sorted(pairs)
        assert result.no_terms == ("none",) and result.no_text == ("empty",)
        assert written["topic_id"].unique(maintain_order=True).to_list() == [f"t{n}" for n in range(12)]
        search(
            place / "index",
            str(place / "topics.jsonl"),
            model_of("anserini", model),
            k=60,
            tag=model,
            out=tmp_path / "again.run",
        )
        assert (tmp_path / "again.run").read_bytes() == (tmp_path / f"{model}.run").read_bytes()
        assert result.json()["model"]["model"] == model


def test_a_smaller_k_is_the_beginning_of_a_larger_one(place: Path) -> None:
    model = model_of("terrier")
    deep = search(place / "index", str(place / "topics.jsonl"), model, k=1000).run
    for k in (1, 7, 30):
        cut = search(place / "index", str(place / "topics.jsonl"), model, k=k).run
        assert cut.equals(deep.filter(pl.col("rank") <= k))
    assert deep.group_by("topic_id").len()["len"].max() <= 240  # type: ignore[operator]


def test_processes_give_the_same_run(place: Path) -> None:
    queries = [TopicQuery(f"q{n}", f"word{n % 40} word{n % 7} subjecta") for n in range(130)]
    alone = search(place / "index", queries, model_of("anserini", "rm3"), k=20)
    assert search(place / "index", queries, model_of("anserini", "rm3"), k=20, workers=2).run.equals(alone.run)


def test_fields_of_topics_and_of_the_index(place: Path, tmp_path: Path) -> None:
    index = build_index(str(place / "docs.jsonl"), tmp_path / "fields", fields=("title", "body"))
    topics = str(place / "topics.jsonl")
    titles = search(index, topics, model_of(), weights={"title": 1})
    assert set(titles.run["doc_id"]) == {f"d{n:03d}" for n in range(0, 240, 5)}
    described = search(index, topics, model_of(), field="description")
    assert "empty" in described.run["topic_id"].unique().to_list()
    both = search(index, topics, model_of(), field="title+description")
    assert len(both.run) > len(described.run)
    whole = search(place / "index", topics, model_of(), k=1000).run
    equal = search(index, topics, model_of(), weights={"title": 1, "body": 1}, k=1000).run
    assert equal.equals(whole)


def test_the_commands(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command("index", place / "docs.jsonl", "--out", tmp_path / "i", "--preset", "terrier", "--json")
    built = json.loads(capsys.readouterr().out)
    assert built["documents"] == 240 and built["analyser"]["tokeniser"] == "terrier"
    ask = ("--index", tmp_path / "i", "--topics", place / "topics.jsonl")
    command(
        "search",
        *ask,
        "--preset",
        "terrier",
        "--model",
        "rm3",
        "--set",
        "terms=5",
        "-k",
        10,
        "--out",
        tmp_path / "r.run.gz",
        "--json",
    )
    said = json.loads(capsys.readouterr().out)
    assert said["model"]["terms"] == 5 and said["model"]["base"]["k3"] == 8 and said["tag"] == "terrier-rm3"
    lines = gzip.decompress((tmp_path / "r.run.gz").read_bytes()).decode().splitlines()
    assert len(lines) == said["rows"] == 120 and lines[0].split()[1::4] == ["Q0", "terrier-rm3"]
    manifest = json.loads((tmp_path / "r.run.gz.manifest.json").read_text())
    assert manifest["inputs"][0]["sha256"] == Index(tmp_path / "i").fingerprint
    out, terrier = ("--out", tmp_path / "x.run"), ("search", *ask, "--preset", "terrier")
    faults: tuple[tuple[tuple[object, ...], str], ...] = (
        (("search", *ask, *out), "has another analyser"),
        ((*terrier, "--field", "words", *out), "no 'words'"),
        ((*terrier, "--set", "k1=x", *out), "'x' is not a number"),
        ((*terrier, "-k", 0, *out), "-k: must be at least 1, got 0"),
        ((*terrier, "--tag", "a b", *out), "not a single word"),
        ((*terrier, "--weights", "contents=y", *out), "not a number"),
        (("search", "--index", place, "--topics", "x", *out), "no index there"),
        (("index", place / "docs.jsonl", "--stopwords", "mine", "--out", tmp_path / "j"), "unknown list of stopwords"),
    )  # fmt: skip
    for words, fault in faults:
        assert command(*words) == 2
        assert fault in capsys.readouterr().err
    assert not (tmp_path / "x.run").exists()
    command("search", *ask, "--any-analyser", "--out", tmp_path / "x.run")
    assert (tmp_path / "x.run").exists()


def test_topics_without_terms_are_refused_when_there_are_no_others(place: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no topic has a term"):
        search(place / "index", [TopicQuery("1", "unheard")], model_of())
    with pytest.raises(InputError, match="no topic has a narrative"):
        search(place / "index", str(place / "topics.jsonl"), model_of(), field="narrative")


def test_twins_and_presets(place: Path) -> None:
    assert truerank.search is search and truerank.build_index is build_index
    for preset in PRESETS.values():
        assert set(preset.models) == set(MODELS) and preset.model in MODELS
        assert Analyser.from_json(preset.analyser.json()) == preset.analyser
        for model in MODELS:
            run = search(place / "index", str(place / "topics.jsonl"), preset.models[model], k=5).run
            assert run["topic_id"].n_unique() == 12


@pytest.mark.shared
@pytest.mark.parametrize("name", ["vaswani", "cacm"])
def test_real_collections_as_anserini_ranks_them(name: str, tmp_path: Path) -> None:
    folder, (documents, topics) = DATA / "collections" / name, SOURCES[name]
    index = build_index(str(folder / documents), tmp_path / "index")
    runs = {model: search(index, str(folder / topics), model_of("anserini", model)).run for model in MODELS}
    scores = evaluate(str(folder / "qrels.txt"), runs, "nDCG@10 AP R@1000")
    for model, means in zip(scores.runs, scores.mean.tolist(), strict=True):
        # Anserini breaks ties of scores by 32-bit numbers, which moves a mean by some 1e-4.
        assert means == pytest.approx(ANSERINI[name][model], abs=5e-4), model
    assert scores.mean[scores.runs.index("rm3"), 1] > scores.mean[scores.runs.index("bm25"), 1]
    if name == "vaswani":
        once = search(index, str(folder / topics), model_of("anserini", "axiomatic", {"idf": "once"})).run
        mean = evaluate(str(folder / "qrels.txt"), {"once": once}, "AP").mean[0, 0]
        assert mean > scores.mean[scores.runs.index("bm25"), 1]
