"""docs/papers.md: what nobody could run here is run on miniatures with the layout of the files that it needs."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import transfer_example
from truerank.cli import main

ROOT = Path(__file__).parents[2]
DESIGNS = "lab/tests/test_reproductions.py"
TOPICS = 6


class Miniature:
    """MS MARCO's and TREC's files with a few made-up lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        draw = random.Random(11)
        words = [f"word{number}" for number in range(60)]
        self.topics = {str(number): " ".join(draw.sample(words, 3)) for number in range(1, TOPICS + 1)}
        docs = {f"D{number}": " ".join(draw.choices(words, k=30)) for number in range(40)}
        for topic, text in self.topics.items():
            docs[f"D{topic}"] = f"{text} {docs[f'D{topic}']}"
        self.docs = self.packed(
            "msmarco-docs.tsv.gz", [(key, f"http://x.org/{key}", key, text) for key, text in docs.items()]
        )
        self.passages = self.write("collection.tsv", [(number, text) for number, text in enumerate(docs.values())])
        self.queries = self.packed(
            "msmarco-doctrain-queries.tsv.gz", [(f"9{key}", text) for key, text in self.topics.items()]
        )
        self.orcas = self.packed(
            "orcas-doctrain-queries.tsv.gz", [(f"8{n}", " ".join(draw.sample(words, 4))) for n in range(30)]
        )
        self.test = self.packed("msmarco-test2019-queries.tsv.gz", list(self.topics.items()))
        self.qrels = self.lines(
            "qrels.txt",
            (f"{topic} 0 D{key} {int((key + 2 * int(topic)) % 3 == 0)}" for topic in self.topics for key in range(12)),
        )
        self.runs = [
            self.packed(
                f"input.{group}-{number}.gz",
                [
                    (f"{topic} Q0 D{key} {rank} {20 - rank} {group}-{number}",)
                    for topic in self.topics
                    for rank, key in enumerate(draw.sample(range(40), 15), start=1)
                ],
            )
            for group in ("a", "b", "c")
            for number in (1, 2)
        ]
        rows = [("run", "group", "subtask", "category")]
        rows += [
            (Path(run).name.removesuffix(".gz"), Path(run).name[6], "rerank", "nn" if "a-" in run else "trad")
            for run in self.runs
        ]
        self.metadata = self.write("metadata.tsv", rows)

    def out(self, name: str) -> str:
        return str(self.folder / name)

    def given(self, runs: int = 6) -> str:
        """Runs, as a command takes them."""
        return " ".join(f"--run {run}" for run in self.runs[:runs])

    def lines(self, name: str, lines) -> str:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))
        return str(self.folder / name)

    def write(self, name: str, rows) -> str:
        return self.lines(name, ("\t".join(map(str, row)) for row in rows))

    def packed(self, name: str, rows) -> str:
        text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
        (self.folder / name).write_bytes(gzip.compress(text.encode(), mtime=0))
        return str(self.folder / name)


def called(line: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 0, line


def nearest_queries(mini: Miniature) -> None:
    given = f"leakage audit --train {mini.queries} --train {mini.orcas} --test {mini.test} --encoder packaged"
    variants = mini.write("variants.tsv", [(topic, f"{text} again") for topic, text in mini.topics.items()])
    name = Path(mini.test).name.removesuffix(".tsv.gz")
    called(f"{given} --topic 3 --out {mini.out('one')}")
    called(f"{given} --variants {name}={variants} --out {mini.out('all')}")
    found = json.loads((mini.folder / "all" / "summary.json").read_text())
    assert "93" in (mini.folder / "one" / "report.html").read_text() and found


def threshold(mini: Miniature) -> None:
    draw = random.Random(1)
    labels = [
        {
            "id": f"p{number}", "topic_id": "1", "query_text": f"q {number}", "query_id": str(number),
            "similarity": 0.8 + number / 1000, "label": "leak" if draw.random() < number / 150 else "no leak",
        }
        for number in range(199)
    ]  # fmt: skip
    called(f"leakage calibrate --labels {mini.lines('labels.jsonl', map(json.dumps, labels))}")


def track_sizes(mini: Miniature) -> None:
    given = f"track report --run {mini.runs[0]} --qrels {mini.qrels} --collection {mini.docs} --queries {mini.queries}"
    called(f"{given} --out {mini.out('report')}")
    assert any(",40" in file.read_text() for file in (mini.folder / "report" / "tables").glob("*.csv"))


def track_candidates(mini: Miniature) -> None:
    called(f"track candidates --run {mini.runs[0]} --topics {mini.test} -k 10 --out {mini.out('top10.tsv.gz')}")
    text = gzip.decompress((mini.folder / "top10.tsv.gz").read_bytes()).decode()
    assert len(text.splitlines()) == 1 + 10 * TOPICS


def track_topics(mini: Miniature) -> None:
    given = f"track report {mini.given()} --qrels {mini.qrels} --metadata {mini.metadata} --topics {mini.test}"
    called(f"{given} --out {mini.out('report')}")
    assert list((mini.folder / "report" / "figures").glob("*.svg"))


def pool_simulation(mini: Miniature) -> None:
    given = f"pool simulate {mini.given()} --qrels {mini.qrels} --topics {mini.test} --docs {mini.docs}"
    called(f"{given} --metadata {mini.metadata} --depth 3 --trials 1 --out {mini.out('simulation')}")
    assert (mini.folder / "simulation" / "report.html").is_file()


def versions(mini: Miniature) -> None:
    files = transfer_example.write(mini.folder / "versions")
    given = " ".join(f"--version {name}={place}" for name, place in files.versions.items())
    given += f" --qrels {files.qrels}"
    called(f"transfer match {given} --out {mini.out('matched')}")
    more = f"--topics {files.topics} --matched {mini.out('matched')} --model bm25 --split sliding:30:15"
    called(f"transfer scan {given} {more} --out {mini.out('scan')}")


def carried(mini: Miniature) -> None:
    passages = mini.lines("sparse.qrels", (f"{topic} 0 {int(topic)}-0 1" for topic in mini.topics))
    mapping = mini.write(
        "mapping.tsv", [("passage", "document"), *((f"{topic}-0", f"D{topic}") for topic in mini.topics)]
    )
    given = f"transfer carry --qrels {passages} --mapping {mapping} --expert-qrels {mini.qrels}"
    called(f"{given} --out {mini.out('carried.qrels')}")
    assert len((mini.folder / "carried.qrels").read_text().splitlines()) == TOPICS


def equivalents(mini: Miniature) -> None:
    given = f"collection audit --docs {mini.docs} --topics {mini.test} --qrels {mini.qrels} {mini.given()}"
    called(f"{given} --out {mini.out('audit')}")
    assert (mini.folder / "audit" / "report.html").is_file()


def assessors(mini: Miniature) -> None:
    lines = (f"{topic} 0 D{key} {int(key < int(topic))}" for topic in mini.topics for key in range(12))
    given = f"judge audit --people {mini.qrels} --model {mini.lines('model.qrels', lines)} {mini.given()}"
    called(f"{given} --out {mini.out('judges')}")
    assert (mini.folder / "judges" / "report.html").is_file()


def answers(mini: Miniature) -> None:
    texts = [line.split("\t")[1] for line in Path(mini.passages).read_text().splitlines()]
    columns: dict[str, dict[str, object]] = {
        name: {} for name in ("query_id", "query", "query_type", "answers", "passages")
    }
    for place, (topic, text) in enumerate(mini.topics.items()):
        shown = [
            {"passage_text": texts[place + other], "url": "http://x.org", "is_selected": int(other == 1)}
            for other in range(4)
        ]
        values = {"query_id": int(topic), "query": text, "query_type": "ENTITY", "answers": ["yes"], "passages": shown}
        for name, value in values.items():
            columns[name][str(place)] = value
    log = mini.folder / "train_v2.1.json.gz"
    log.write_bytes(gzip.compress(json.dumps(columns).encode()))
    called(f"survivorship map --log {log} --docs {mini.passages} --later {mini.passages} --out {mini.out('map')}")
    assert (mini.folder / "map" / "mapping.parquet").is_file()


def depths(mini: Miniature) -> None:
    shallow = mini.lines("dev-1.qrels", (f"{topic} 0 D{topic} 1" for topic in list(mini.topics)[:4]))
    deep = mini.lines("dev.qrels", (f"{topic} 0 D{topic} 1" for topic in mini.topics))
    given = f"survivorship evaluate {mini.given(4)} --qrels 1={shallow} --qrels all={deep}"
    called(f"{given} --out {mini.out('scores')}")
    assert (mini.folder / "scores" / "scores.parquet").is_file()


def trained_at_depths(mini: Miniature) -> None:
    baseline = Path(mini.runs[0]).name.removesuffix(".gz")
    given = f"compare --qrels {mini.qrels} {mini.given(3)} --baseline {baseline} --out {mini.out('compared')}"
    with pytest.raises(SystemExit) as ended:
        main([*given.split(), "--measures", "nDCG@10 AP(rel=2) RR(rel=2)"])
    assert ended.value.code == 0
    assert (mini.folder / "compared" / "manifest.json").is_file()


#: What runs the row that begins so: here, or a test of another file.
ROWS: dict[str, Callable[[Miniature], None] | str] = {
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
    "Figure 1 for DL 20": trained_at_depths,
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
def test_a_miniature(command: Callable[[Miniature], None], tmp_path: Path) -> None:
    command(Miniature(tmp_path))
