"""Simulated depths: the authors' ten files exactly, and a brute-force oracle for logs of every shape."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import polars as pl
import pytest

from places import DATA
from truerank.audits.survivorship import DepthOptions, depth
from truerank.audits.survivorship.mapping import hex_keys, keys_of
from truerank.audits.survivorship.mapping import map as map_passages
from truerank.cli import main
from truerank.errors import InputError

AUTHORS = DATA / "survivorship" / "qrels"
LABELS = (*map(str, range(1, 10)), "all")
#: Judgments, queries, as the reference has them.
GOLDEN = {
    "1": (8197, 8197), "2": (15723, 15543), "3": (22532, 22060), "4": (28670, 27858), "5": (34277, 33062),
    "6": (39638, 38024), "7": (44708, 42669), "8": (49725, 47146), "9": (54478, 51344), "all": (59273, 55578),
}  # fmt: skip


def authors_lines(label: str) -> list[str]:
    return gzip.decompress((AUTHORS / f"dev-{label}.qrels.gz").read_bytes()).decode().splitlines()


def rebuilt(path: Path) -> None:
    """A log that the authors' files could have come from: each document where it first appears, fillers between."""
    first: dict[str, dict[str, int]] = {}
    for place, label in enumerate(LABELS):
        for line in authors_lines(label):
            query, _, document, _ = line.split()
            first.setdefault(query, {}).setdefault(document, place)
    with path.open("w") as target:
        for query, documents in first.items():
            shown = [f"filler-{place}" for place in range(12)]
            for document, place in sorted(documents.items(), key=lambda item: item[1]):
                free = next(i for i in range(place, 12) if shown[i].startswith("filler"))
                shown[free] = document
            target.write(
                json.dumps({"query_id": query, "query": "q", "shown": shown, "selected": list(documents)}) + "\n"
            )


@pytest.mark.slow
@pytest.mark.shared
def test_the_authors_files(tmp_path: Path) -> None:
    rebuilt(tmp_path / "log.jsonl")
    found = depth(f"dev={tmp_path / 'log.jsonl'}", out=tmp_path / "out")
    assert {one.label: (one.qrels, one.queries) for one in found.levels} == GOLDEN
    # The log alone gives the same lines; the official judgments, filtered, also their order, hence the same bytes.
    official = AUTHORS / "dev-all.qrels.gz"
    filtered = depth(f"dev={tmp_path / 'log.jsonl'}", str(official), out=tmp_path / "filtered")
    assert (filtered.unplaced, filtered.repeated) == (0, 0)
    for label in LABELS:
        lines = authors_lines(label)
        assert sorted((tmp_path / "out" / "qrels" / f"dev-{label}.qrels").read_text().splitlines()) == sorted(lines)
        assert (tmp_path / "filtered" / "qrels" / f"dev-{label}.qrels").read_text().splitlines() == lines
    assert all(one.first_qrels == one.queries for one in found.levels)


def generated(seed: int, count: int = 300) -> list[dict[str, object]]:
    """Queries with up to 15 shown documents, some shown twice, several or none selected."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        shown = [f"d{draw.randrange(40)}" for _ in range(draw.randint(0, 15))]
        selected = sorted({one for one in shown if draw.random() < 0.12})
        rows.append({"query_id": f"q{number}", "query": f"text {number}", "shown": shown, "selected": selected})
    return rows


def test_against_brute_force(tmp_path: Path) -> None:
    rows = generated(1)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = DepthOptions(shown=(1, 3, 10, 12))
    found = depth(str(tmp_path / "log.jsonl"), options=options, out=tmp_path / "out")
    for label in ("1", "3", "10", "12", "all"):
        k = 99 if label == "all" else int(label)
        every, firsts = [], []
        for row in rows:
            seen = []
            for place, one in enumerate(row["shown"]):  # type: ignore[arg-type]
                if place < k and one in row["selected"] and one not in seen:  # type: ignore[operator]
                    seen.append(one)
            every += [(row["query_id"], one, 1) for one in seen]
            firsts += [(row["query_id"], one, 1) for one in seen[:1]]
        assert found.qrels(label).rows() == every
        assert found.qrels(label, first=True).rows() == firsts
        written = (tmp_path / "out" / "first" / f"log-{label}.qrels").read_text()
        assert written == "".join(f"{query} 0 {one} 1\n" for query, one, _ in firsts)
    # Official judgments: one that the log did not show stays in "all"; grades and order are theirs.
    pairs = [(row["query_id"], row["shown"][-1], i % 3) for i, row in enumerate(rows) if row["shown"]][::-1]  # type: ignore[index]
    (tmp_path / "o.qrels").write_text("q0 0 nowhere 1\n" + "".join(f"{q} 0 {d} {r}\n" for q, d, r in pairs))
    found = depth(str(tmp_path / "log.jsonl"), qrels=str(tmp_path / "o.qrels"), options=options)
    shown = {row["query_id"]: row["shown"] for row in rows}
    assert found.unplaced == 1
    assert found.qrels("all").rows() == [("q0", "nowhere", 1), *pairs]
    assert found.qrels(3).rows() == [(q, d, r) for q, d, r in pairs if shown[q].index(d) < 3]  # type: ignore[attr-defined]


def test_texts_need_a_map(tmp_path: Path) -> None:
    texts = [f"passage number {i} é" for i in range(6)]
    passages = {"0": [{"is_selected": int(i in (1, 4)), "passage_text": texts[i], "url": ""} for i in range(5)]}
    (tmp_path / "q.json").write_text(json.dumps({"passages": passages, "query": {"0": "a b"}, "query_id": {"0": 7}}))
    (tmp_path / "docs.tsv").write_text("".join(f"p{i}\t{text}\n" for i, text in enumerate(texts) if i != 4))
    with pytest.raises(InputError, match="by their texts only"):
        depth(str(tmp_path / "q.json"))
    map_passages(str(tmp_path / "q.json"), str(tmp_path / "docs.tsv"), out=tmp_path / "map")
    found = depth(str(tmp_path / "q.json"), mapping=tmp_path / "map", out=tmp_path / "out")
    assert (found.qrels("all").rows(), found.unmapped) == ([("7", "p1", 1)], 1)
    frame = pl.read_parquet(tmp_path / "out" / "depths.parquet")
    keys = hex_keys(keys_of(["a b", texts[1]]))
    assert frame.select("position", "topic_key", "doc_key").rows() == [(1, *keys)]
    kept = depth(str(tmp_path / "q.json"), options=DepthOptions(unmapped="keep"))
    assert kept.qrels("all")["doc_id"].to_list() == [f"text:{key}" for key in hex_keys(keys_of([texts[1], texts[4]]))]
    (tmp_path / "q.qrels").write_text("7 0 p2 1\n")
    placed = depth(str(tmp_path / "q.json"), mapping=tmp_path / "map", qrels=str(tmp_path / "q.qrels"))
    assert placed.judgments["position"].to_list() == [2]


def test_command_report_and_repeatable_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in generated(2)))
    contents = []
    for name in ("a", "b"):
        words = ["survivorship", "depth", "--log", str(tmp_path / "log.jsonl"), "--out", str(tmp_path / name), "--json"]
        with pytest.raises(SystemExit) as ended:
            main([*words, "--shown", "5,1"])
        assert ended.value.code == 0
        printed = json.loads(capsys.readouterr().out)
        assert [one["depth"] if "depth" in one else one["label"] for one in printed["depths"]] == ["1", "5", "all"]
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        contents.append({path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in files})
    assert contents[0] == contents[1]
    page = contents[0]["report.html"].decode()
    assert "What is left at each depth" in page
    assert "<svg" in page
    assert set(pl.read_parquet(tmp_path / "a" / "depths.parquet").columns) >= {"topic_id", "doc_id", "position"}
    for words, fault in (
        (["--shown", "0"], "--shown: must be at least 1, got 0"),
        (["--shown", "x"], "whole numbers"),
        (["--mapping", str(tmp_path)], "no mapping.parquet"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["survivorship", "depth", "--log", str(tmp_path / "log.jsonl"), "--out", str(tmp_path / "c"), *words])
        assert ended.value.code == 2
        assert fault in capsys.readouterr().err
