"""The matrix of training sets and test sets: cells by hand, the same bytes however they were reached."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from toy_encoder import TrigramEncoder
from truerank.audits.leakage import matrix
from truerank.audits.leakage.training_data import matrix as matrices
from truerank.audits.leakage.training_data.texts import TextSource
from truerank.audits.leakage.training_data.verdicts import upper_bound
from truerank.errors import InputError

MOONS = "Jupiter has ninety five known moons, and the four largest of them were seen by Galileo in 1610."
FIRE = "The fire began in a bakery in Pudding Lane and burned for four days until the wind fell at last."
FILES = {
    "log.tsv": ["a\thow many moons does jupiter have", "b\tcauses of the great london fire", "c\tred wine"],
    "old.tsv": ["x\tTitanic: when did it sink?", "y\tsomething else entirely"],
    "topics.tsv": [
        "1\tmany moons of jupiter",
        "2\tHow many moons does Jupiter have?",
        "3\tgreat london fire causes",
        "4\twhen did it sink, titanic",
        "5\tbest pasta recipes",
    ],
    "other.tsv": ["p\twho painted the mona lisa", "q\tWho painted the Mona Lisa?", "r\tvolcanoes of iceland"],
    "corpus.jsonl": [json.dumps({"_id": "d1", "text": MOONS}), json.dumps({"_id": "d2", "text": FIRE})],
    "qrels.txt": ["2 0 d1 1", "3 0 d2 1", "5 0 d2 0"],
    "examples.jsonl": [
        json.dumps({"anchor": "how many moons does jupiter have", "positive": f"Answer: {MOONS}"}),
        json.dumps({"anchor": "what is rabies", "positive": FIRE}),
    ],
}
SUITE = """
training:
  log:
    queries: log.tsv
    license: CC0
  model:
    queries: old.tsv
    parents: [log]
  triples:
    examples: examples.jsonl
  topics:
    topics: topics.tsv
  seen:
    topics: topics.tsv
test:
  topics:
    topics: topics.tsv
    documents: corpus.jsonl
    qrels: qrels.txt
  other:
    topics: other.tsv
"""


def _written(folder: Path) -> Path:
    for name, lines in FILES.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    file = folder / "suite.yaml"
    file.write_text(SUITE, encoding="utf-8")
    return file


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return _written(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The matrix of the suite without an encoder."""
    return matrix(_written(tmp_path_factory.mktemp("plain")), encoder="none")


def _cells(found: Any) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["training"], row["test"], row["part"]): row for row in found.cells.to_dicts()}


def test_cells_count_the_topics_and_documents_that_leak(plain: Any) -> None:
    cells = _cells(plain)
    log = cells["log", "topics", "query"]
    assert {name: log[name] for name in ("items", "exact", "words", "semantic", "leaking", "proposed")} == {
        "items": 5, "exact": 1, "words": 3, "semantic": None, "leaking": 1, "proposed": 2,
    }  # fmt: skip
    assert log["verdict"] == "CONTAMINATED"
    assert cells["log", "other", "query"]["verdict"] == "UNKNOWN"
    assert "no encoder" in cells["log", "other", "query"]["reason"]


def test_prompts_before_training_queries_are_taken_off(suite: Path) -> None:
    asked = ["how many moons does jupiter have", *(f"number {at} of the wine list" for at in range(30))]
    (suite.parent / "log.tsv").write_text("".join(f"{at}\tquery: {text}\n" for at, text in enumerate(asked)))
    log = _cells(matrix(suite, encoder="none"))["log", "topics", "query"]
    assert (log["exact"], log["verdict"]) == (1, "CONTAMINATED")


def test_another_number_in_a_long_claim_is_no_leak(tmp_path: Path) -> None:
    around = " ".join(f"word{chr(97 + at)}" for at in range(24))
    (tmp_path / "log.tsv").write_text(f"a\t{around} in 1,000 cases\nb\t{around} in two thousand cases\n")
    (tmp_path / "topics.tsv").write_text(f"1\t{around} in 1000 cases\n")
    file = tmp_path / "suite.yaml"
    file.write_text("training:\n  log:\n    queries: log.tsv\ntest:\n  topics:\n    topics: topics.tsv\n")
    assert matrix(file, encoder="none").pairs["training_id"].to_list() == ["a"]


def test_a_name_in_a_topic_is_no_leak_of_it(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("a\tthe church of jesus christ\nb\twhere is the great red spot of jupiter\n")
    topics = (
        "1\tThe Church of Jesus Christ has laws on health and fasting.\n2\tWhere is the Great Red Spot of Jupiter now\n"
    )
    (tmp_path / "topics.tsv").write_text(topics)
    file = tmp_path / "suite.yaml"
    file.write_text("training:\n  log:\n    queries: log.tsv\ntest:\n  topics:\n    topics: topics.tsv\n")
    found = matrix(file, encoder="none")
    assert found.pairs["test_id"].to_list() == ["2"]
    assert _cells(found)["log", "topics", "query"]["ngram"] == 1


def test_a_model_inherits_the_data_of_its_parents(plain: Any) -> None:
    cell = _cells(plain)["model", "topics", "query"]
    assert (cell["leaking"], cell["words"], cell["training_texts"]) == (1, 4, 5)
    sources = plain.pairs.filter(training="model", test="topics")["source"].unique().sort().to_list()
    assert sources == ["log", "model"]


def test_a_pair_leaks_where_one_example_has_the_query_and_its_document(plain: Any) -> None:
    cells = _cells(plain)
    assert cells["triples", "topics", "document"]["leaking"] == 2
    assert (cells["triples", "topics", "pair"]["leaking"], cells["triples", "topics", "pair"]["items"]) == (1, 2)
    assert plain.pairs.filter(part="pair")["test_id"].to_list() == ["d1"]
    assert ("log", "topics", "pair") not in cells


def test_a_set_of_one_name_is_compared_with_itself(plain: Any) -> None:
    cells = _cells(plain)
    assert cells["topics", "topics", "query"]["exact"] == 0
    # The same topics as training data of another name were all seen.
    assert cells["seen", "topics", "query"]["exact"] == 5


def test_no_pair_is_lost_between_parts_of_the_table(plain: Any) -> None:
    counted = plain.pairs.group_by("training", "test", "part").len()
    wanted = plain.cells.filter(pl.col("pairs") > 0).select(
        "training", "test", "part", len=pl.col("pairs").cast(pl.UInt32)
    )
    keys = ["training", "test", "part"]
    assert counted.sort(keys).equals(wanted.sort(keys).cast(counted.schema))


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "open_spec", lambda spec: TrigramEncoder())


def _bytes(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and "kept" not in file.parts)
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if file.name != "run.log"}


@pytest.mark.slow
@pytest.mark.usefixtures("encoder")
def test_a_further_set_costs_itself_only_and_changes_no_bytes(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = SUITE.replace("  seen:\n    topics: topics.tsv\n", "").replace("  other:\n    topics: other.tsv\n", "")
    suite.write_text(later, encoding="utf-8")
    matrix(suite, out=tmp_path / "steps")
    suite.write_text(SUITE.replace("  other:\n    topics: other.tsv\n", ""), encoding="utf-8")
    matrix(suite, out=tmp_path / "steps")
    suite.write_text(SUITE, encoding="utf-8")
    read: list[str] = []
    texts = TextSource.texts

    def recorded(source: TextSource) -> Any:
        read.append(Path(source.spec).name)
        return texts(source)

    monkeypatch.setattr(TextSource, "texts", recorded)
    steps = matrix(suite, out=tmp_path / "steps")
    assert read == ["other.tsv"]
    assert steps.work[0].startswith("read: 1 of 6")
    matrix(suite, out=tmp_path / "nothing")
    assert sorted(read[1:]) == sorted(["log.tsv", "old.tsv", "examples.jsonl", "examples.jsonl", "topics.tsv",
                                       "corpus.jsonl", "other.tsv"])  # fmt: skip
    assert _bytes(tmp_path / "steps") == _bytes(tmp_path / "nothing")


@pytest.mark.usefixtures("encoder")
def test_clean_needs_texts_that_were_read_and_compared(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "alpha beta gamma delta epsilon zeta".split()
    log = [f"{at}-{n}\t{' '.join([*words[at : at + 3], f'tail{n}'])}" for at in range(4) for n in range(3)]
    (tmp_path / "log.tsv").write_text("\n".join(log) + "\n", encoding="utf-8")
    (tmp_path / "log.jsonl").write_text('{"query": "red wine"}\n{"nothing": 1}\n', encoding="utf-8")
    (tmp_path / "answers.jsonl").write_text(json.dumps({"positive": FIRE}) + "\n", encoding="utf-8")
    (tmp_path / "topics.tsv").write_text(f"1\t{' '.join(words)}\n", encoding="utf-8")
    suite.write_text(
        "training:\n  crowd:\n    queries: log.tsv\n  partly:\n    queries: log.jsonl\n"
        "  none:\n    examples: answers.jsonl\ntest:\n  topics:\n    topics: topics.tsv\n",
        encoding="utf-8",
    )

    def reasons() -> dict[str, str]:
        found = matrix(suite, threshold=0.95, out=tmp_path / "out").cells
        return {row["training"]: f"{row['verdict']} {row['reason']}" for row in found.to_dicts()}

    found = reasons()
    assert found["crowd"].startswith("CLEAN")
    assert "UNKNOWN" in found["partly"] and "1 record could not be read" in found["partly"]
    assert "UNKNOWN" in found["none"] and "the training data has no query" in found["none"]
    # From what was kept, too.
    assert reasons() == found
    monkeypatch.setattr("truerank.overlaps.comparison._CROWD", 2)
    shutil.rmtree(tmp_path / "out")
    for _ in range(2):
        assert "UNKNOWN" in reasons()["crowd"] and "1 word sequences are in so many" in reasons()["crowd"]


def _prose(seed: str, words: int) -> str:
    draw = random.Random(seed)
    return " ".join("".join(draw.choices("abcdefghijklmnop", k=6)) for _ in range(words))


def test_boilerplate_makes_no_leak_and_costs_only_what_holds_it(tmp_path: Path) -> None:
    footer = _prose("footer", 30)

    def corpus(name: str, texts: list[str]) -> None:
        lines = [json.dumps({"_id": f"{name}{n}", "text": text}) for n, text in enumerate(texts)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    corpus("own", [f"{_prose(f'd{n}', 20)} {footer}" for n in range(30)])
    corpus("other", [_prose(f"e{n}", 20) for n in range(12)])
    corpus("holds", [f"{_prose('new', 20)} {footer}", f"<p>{_prose('d3', 20)}</p> {footer}", _prose("d4", 20)])
    corpus("lacks", [_prose("d5", 20), _prose("e1", 20)])
    training = "training:\n  holds:\n    documents: holds.jsonl\n  lacks:\n    documents: lacks.jsonl\ntest:\n"
    sets = {name: f"  {name}:\n    documents: {name}.jsonl\n" for name in ("own", "other")}
    file = tmp_path / "suite.yaml"
    file.write_text(training + sets["other"], encoding="utf-8")
    matrix(file, encoder="none", out=tmp_path / "steps")
    file.write_text(training + sets["other"] + sets["own"], encoding="utf-8")
    found = matrix(file, encoder="none", out=tmp_path / "steps")
    assert found.work[0].startswith("read: 1 of 4")
    assert {Path(name).name for name in found.work[1].partition(": ")[2].split(", ")} == {"own.jsonl", "holds.jsonl"}
    pairs = found.pairs.select("training", "test", "test_id").sort("training", "test_id").rows()
    assert pairs == [("holds", "own", "own3"), ("holds", "own", "own4"), ("lacks", "other", "other1"),
                     ("lacks", "own", "own5")]  # fmt: skip
    assert found.pairs.filter(training="lacks", test="own")["exact"].to_list() == [True]
    (passage,) = found.boilerplate["own"]
    assert (passage["passage"], passage["documents"]) == (footer, 30)
    assert "other" not in found.boilerplate
    matrix(file, encoder="none", out=tmp_path / "nothing")
    assert _bytes(tmp_path / "steps") == _bytes(tmp_path / "nothing")
    again = matrix(file, encoder="none", out=tmp_path / "steps")
    assert again.work == ("read: 0 of 4 sources; the others were kept from before", "compared: 0 of 4 cells")


class _Killed(BaseException):
    pass


@pytest.mark.slow
@pytest.mark.usefixtures("encoder")
def test_a_killed_matrix_continues_and_ends_with_the_same_bytes(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix(suite, out=tmp_path / "whole")
    real = matrices.compare_all
    calls: Iterator[int] = iter(range(100))

    def dying(*given: Any, **more: Any) -> Any:
        if next(calls) in (1, 2, 4):
            raise _Killed
        return real(*given, **more)

    monkeypatch.setattr(matrices, "compare_all", dying)
    deaths = 0
    while True:
        try:
            matrix(suite, out=tmp_path / "killed")
            break
        except _Killed:
            deaths += 1
    assert deaths == 3
    assert _bytes(tmp_path / "killed") == _bytes(tmp_path / "whole")


@pytest.mark.usefixtures("encoder")
def test_the_encoder_gives_evidence_bounds_and_a_verdict(suite: Path, tmp_path: Path) -> None:
    found = matrix(suite, out=tmp_path / "out", threshold=0.8)
    cell = _cells(found)["log", "topics", "query"]
    assert cell["semantic"] >= 1
    assert cell["leaking"] + cell["proposed"] <= cell["upper"] <= cell["items"]
    assert found.checks["topics"]["kinds"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert 'href="#list&amp;training=log&amp;test=topics&amp;part=query"' in page
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["training"][0]["license"] == "CC0"
    assert len(summary["cells"]) == len(found.cells)
    assert pl.read_parquet(tmp_path / "out" / "pairs.parquet").equals(found.pairs)


def test_the_bound_is_that_of_the_definition() -> None:
    for found, items, seen, planted in (
        (0, 50, 19, 20),
        (2, 50, 60, 100),
        (5, 30, 30, 30),
        (0, 10, 0, 5),
        (3, 3, 1, 9),
    ):
        # The lower end of the exact interval by bisection, then the sum of the binomial's terms.
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            at_least = sum(
                math.comb(planted, k) * middle**k * (1 - middle) ** (planted - k) for k in range(seen, planted + 1)
            )
            low, high = (middle, high) if at_least < 0.025 else (low, middle)
        chance = low if seen else 0.0
        wanted = found
        for leaks in range(found + 1, items + 1):
            if sum(math.comb(leaks, k) * chance**k * (1 - chance) ** (leaks - k) for k in range(found + 1)) >= 0.025:
                wanted = leaks
        assert upper_bound(found, items, seen, planted) == wanted


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "queries: log.tsv",
            "queris: log.tsv",
            "suite.yaml: training.log: unknown key 'queris'. did you mean 'queries'",
        ),
        ("queries: log.tsv", "queries: gone.tsv", "gone.tsv: nothing there"),
        ("parents: [log]", "parents: [lag]", "suite.yaml: training.model.parents: 'lag' is not another training set"),
        ("    documents: corpus.jsonl\n", "", "judgments without topics and documents"),
        ("    queries: log.tsv\n", "", "training.log: a training set without data"),
        ("test:", "tests:", "unknown key 'tests'"),
        ("training:", "training:\n  log: {}", "suite.yaml:4: 'log' occurs twice"),
    ],
)
def test_faults_of_the_suite_name_the_key(suite: Path, old: str, new: str, fault: str) -> None:
    suite.write_text(SUITE.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        matrix(suite, encoder="none")
    assert fault in str(raised.value)
