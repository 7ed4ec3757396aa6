"""docs/papers.md: what nobody could run here is run on miniatures with the layout of the files that it needs."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from docs_world import World
from places import ROOT

DESIGNS = "lab/tests/test_reproductions.py"
RUNS = [f"--run input.{group}-{number}.gz" for group in "abc" for number in (1, 2)]
QUERIES = "--train msmarco-doctrain-queries.tsv.gz --train orcas-doctrain-queries.tsv.gz"
TOPICS = "msmarco-test2019-queries.tsv.gz"
VERSIONS = "--version old=docs-2018.jsonl --version new=docs-v2.jsonl --qrels train.qrels"


def some(runs: int = 6) -> str:
    """Runs, as a command takes them."""
    return " ".join(RUNS[:runs])


def nearest_queries(world: World) -> None:
    audit = f"leakage audit {QUERIES} --test {TOPICS} --encoder packaged"
    called(world, f"{audit} --topic 3 --out one")
    called(world, f"{audit} --variants msmarco-test2019-queries=variants.tsv --out all")
    # The training query that is nearest to topic 3.
    assert ">300<" in Path("one", "report.html").read_text()


def threshold(world: World) -> None:
    draw = random.Random(1)
    labels = [
        {
            "id": f"p{number}", "topic_id": "1", "query_text": f"q {number}", "query_id": str(number),
            "similarity": 0.8 + number / 1000, "label": "leak" if draw.random() < number / 150 else "no leak",
        }
        for number in range(199)
    ]  # fmt: skip
    Path("labels.jsonl").write_text("".join(f"{json.dumps(label)}\n" for label in labels))
    called(world, "leakage calibrate --labels labels.jsonl")


def track_sizes(world: World) -> None:
    counted = f"--collection msmarco-docs.tsv.gz --queries {TOPICS}"
    called(world, f"track report {some(1)} --qrels 2019qrels-docs.qrels {counted} --out report")
    size = len(world.docs["old"])
    assert any(f",{size}" in file.read_text() for file in Path("report", "tables").glob("*.csv"))


def track_candidates(world: World) -> None:
    called(world, f"track candidates {some(1)} --topics {TOPICS} -k 10 --out top10.tsv.gz")
    assert len(gzip.decompress(Path("top10.tsv.gz").read_bytes()).splitlines()) == 1 + 10 * len(world.topics)


def track_topics(world: World) -> None:
    judged = f"--qrels 2019qrels-docs.qrels --metadata metadata.tsv --topics {TOPICS}"
    called(world, f"track report {some()} {judged} --out report")
    assert list(Path("report", "figures").glob("*.svg"))


def pool_simulation(world: World) -> None:
    judged = f"--qrels 2019qrels-docs.qrels --topics {TOPICS} --docs msmarco-docs.tsv.gz --metadata metadata.tsv"
    called(world, f"pool simulate {some()} {judged} --depth 3 --trials 1 --out simulation")


def versions(world: World) -> None:
    called(world, f"transfer match {VERSIONS} --out matched")
    more = "--topics topics.tsv --matched matched --model bm25 --split sliding:30:15"
    called(world, f"transfer scan {VERSIONS} {more} --out scan")


def carried(world: World) -> None:
    given = "--qrels passages.qrels --mapping passage-to-document.tsv --expert-qrels 2020qrels-docs.qrels"
    called(world, f"transfer carry {given} --out carried.qrels")
    assert len(Path("carried.qrels").read_text().splitlines()) == len(world.topics)


def equivalents(world: World) -> None:
    given = f"--docs msmarco-docs.tsv.gz --topics {TOPICS} --qrels 2019qrels-docs.qrels {some()}"
    called(world, f"collection audit {given} --out audit")


def assessors(world: World) -> None:
    called(world, f"judge audit --people track.qrels --model gpt=gpt.qrels {some()} --out judges")


def answers(world: World) -> None:
    given = "--log train_v2.1.json.gz --docs collection.tsv --later collection.tsv"
    called(world, f"survivorship map {given} --out map")


def depths(world: World) -> None:
    called(world, f"survivorship evaluate {some(4)} --qrels 1=dev-1.qrels --qrels all=dev.qrels --out scores")


def called(world: World, line: str) -> None:
    """Runs a command, which writes what it is asked for."""
    fault = world.run(line)
    assert not fault, fault
    written = Path(line.partition(" --out ")[2] or ".")
    assert written.is_file() or any(written.glob("*"))


#: What runs the row that begins so: here, or a test of another file.
ROWS: dict[str, Callable[[World], None] | str] = {
    "Figure 1: the nearest training queries of topic 441": nearest_queries,
    "Table 1: topics and queries with candidates": nearest_queries,
    "Section 3: the threshold 0.91": threshold,
    "Section 4: 72 training sets from MS MARCO": f"{DESIGNS}::test_leakage",
    "Section 4: the pilot with nine models on Robust04": f"{DESIGNS}::test_pilot",
    "Tables 3 to 8 for Robust04": f"{DESIGNS}::test_leakage",
    "Table 1 for MS MARCO": track_sizes,
    "Section 3: the candidates for the rerank subtasks": track_candidates,
    "Figures 2 to 4 (single topics, map of the runs) for the track": track_topics,
    "Section 5.2 for the track": pool_simulation,
    "Figures 1 and 2, the five data sets for MS MARCO": versions,
    "Table 2 for MS MARCO": versions,
    "Tables 4 and 5 with monoT5": f"{DESIGNS}::test_transfer",
    "the same from the judgments of TREC 2020": carried,
    "changes of the order of systems at TREC": equivalents,
    "Table 3: τ and ρ": assessors,
    "the same for MS MARCO; the 65%": answers,
    "Table 4: RR@10 of BM25": depths,
    "Figure 1 for DL 20": "tests/docs/test_docs_commands.py::test_commands_of_a_page",
    "Figure 1 for Dev and Robust04": f"{DESIGNS}::test_survivorship",
}


def test_every_row_that_nobody_ran_says_what_it_needs_and_has_a_miniature() -> None:
    rows = [
        line.split(" | ")
        for line in (ROOT / "docs" / "papers.md").read_text().splitlines()
        if line.endswith("| not run yet |")
    ]
    found = set()
    for row in rows:
        named = [name for name in ROWS if row[0].removeprefix("| ").startswith(name)]
        assert len(named) == 1 and "needs " in row[2], row
        found |= {*named}
    assert found == set(ROWS)
    for place in filter(lambda value: isinstance(value, str), ROWS.values()):
        file, _, name = str(place).partition("::")
        assert f"def {name}(" in (ROOT / file).read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", dict.fromkeys(one for one in ROWS.values() if callable(one)), ids=lambda one: one.__name__
)
def test_a_miniature(command: Callable[[World], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command(World(tmp_path / "made"))
