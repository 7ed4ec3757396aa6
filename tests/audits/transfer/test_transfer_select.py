"""Training rows by strategy: the same queries and non-relevant documents, another version of the relevant ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from transfer_example import FAULTS, Files, options, write
from truerank import transfer
from truerank.audits.survivorship.instances import open_instances
from truerank.audits.transfer import Scan
from truerank.cli import main
from truerank.errors import InputError

STRATEGIES = ("max", "min", "bm25", "random", "version:new")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return write(tmp_path_factory.mktemp("versions"))


@pytest.fixture(scope="module")
def scan(files: Files) -> Scan:
    # A third version lacks all but ten documents.
    third = files.folder / "third.jsonl"
    third.write_text("".join(Path(files.versions["old"]).read_text().splitlines(keepends=True)[5:15]))
    versions = {**files.versions, "third": str(third)}
    return transfer.scan(versions, files.qrels, files.topics, out=files.folder / "scan", **options(items=0))


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(folder / f"{name.replace(':', '-')}.parquet") for name in STRATEGIES}


def test_strategies_differ_by_the_version_alone(scan: Scan, tmp_path: Path) -> None:
    found = transfer.select(scan, tmp_path, strategy=STRATEGIES, data_set="old>>new MaxP")
    made = tables(tmp_path)
    assert found.rows == 7
    for name, frame in made.items():
        assert frame.select("query_id", "nonrelevant_id", "nonrelevant").equals(
            made["max"].select("query_id", "nonrelevant_id", "nonrelevant")
        )
        assert found.chosen[name] == {
            version: count for version in scan.versions if (count := int((frame["chosen"] == version).sum()))
        }
    assert "new" not in found.chosen["max"] and found.chosen["min"] == found.chosen["version:new"] == {"new": 7}
    # The words of the topic are what was lost.
    lost = [f"quartz{row['query_id']}" in row["relevant"] for row in made["max"].iter_rows(named=True)]
    kept = [f"quartz{row['query_id']}" in row["relevant"] for row in made["min"].iter_rows(named=True)]
    assert all(lost) and not any(kept)
    assert set(made["max"]["query_id"]) == {str(topic) for topic, (_, side) in FAULTS.items() if side == "new"}
    for row in made["max"].iter_rows(named=True):
        assert row["nonrelevant_id"] not in (f"old{row['query_id']}", None) and row["nonrelevant"]
    instances = list(open_instances(str(tmp_path / "min.parquet")))
    assert len(instances) == 7 and any(not one.relevant.replace("Pages", "").strip() for one in instances)


def test_sizes_seeds_and_parts(scan: Scan, tmp_path: Path) -> None:
    chosen = {"strategy": ("max", "random"), "size": 20}
    first = transfer.select(scan, tmp_path / "a", **chosen)
    transfer.select(scan, tmp_path / "b", **chosen)
    other = transfer.select(scan, tmp_path / "c", **chosen, seed=1, part="best")
    read = {name: pl.read_parquet(tmp_path / name / "max.parquet") for name in "abc"}
    assert (tmp_path / "a/max.parquet").read_bytes() == (tmp_path / "b/max.parquet").read_bytes()
    assert first.rows == other.rows == 10 and read["a"]["query_id"].to_list() != read["c"]["query_id"].to_list()
    assert all(len(text.split()) <= 30 for text in (*read["c"]["relevant"], *read["c"]["nonrelevant"]))
    for row in read["c"].iter_rows(named=True):
        assert f"quartz{row['query_id']}" in row["relevant"]
    assert first.json()["instances"] == 20 and "10 training rows" in repr(first)
    manifest = json.loads((tmp_path / "a/manifest.json").read_text())
    assert manifest["seeds"] == {"seed": 0}
    assert set(manifest["artifacts"]) == {"max.parquet", "random.parquet", "summary.json"}


def test_several_draws_are_what_their_seeds_give_alone(scan: Scan, tmp_path: Path) -> None:
    chosen = {"strategy": ("max", "random"), "size": 20, "part": "best"}
    together = transfer.select(scan, tmp_path / "all", **chosen, seed=3, seeds=2)
    assert (together.seeds, together.rows) == ((3, 4), 10)
    assert sum(together.chosen["random"].values()) == 20 and "each of 2 draws (seeds 3 to 4)" in repr(together)
    drawn = []
    for seed in (3, 4):
        alone = transfer.select(scan, tmp_path / str(seed), **chosen, seed=seed)
        for name in ("max.parquet", "random.parquet", "summary.json", "manifest.json"):
            assert (alone.folder / name).read_bytes() == (tmp_path / "all" / f"seed-{seed}" / name).read_bytes()
        drawn.append(pl.read_parquet(alone.folder / "max.parquet"))
    assert drawn[0]["query_id"].to_list() != drawn[1]["query_id"].to_list()
    assert not (tmp_path / "all" / ".work").exists()
    with pytest.raises(InputError, match="seeds: must be at least 1, got 0"):
        transfer.select(scan, tmp_path / "none", seeds=0)


def test_rules_for_what_a_version_lacks(scan: Scan, tmp_path: Path) -> None:
    available = transfer.select(scan, tmp_path / "a", strategy=("version:third",))
    assert available.chosen["version:third"] == {"old": 19, "third": 10} and available.fallbacks["version:third"] == 19
    skipping = transfer.select(scan, tmp_path / "b", strategy=("version:third", "min"), lacking="skip")
    assert skipping.rows == 10 and skipping.skipped == {"a version lacks the document": 19}
    judged = transfer.select(scan, tmp_path / "c", strategy=("min",), lacking="judged")
    assert judged.fallbacks["min"] == 19 and judged.chosen["min"]["old"] >= 19


def test_a_given_first_stage(scan: Scan, files: Files, tmp_path: Path) -> None:
    run = tmp_path / "first.run"
    places = {topic: dict.fromkeys((topic, 7)) for topic in range(10)}
    listed = [(topic, rank, doc) for topic, some in places.items() for rank, doc in enumerate(some, 1)]
    lines = [f"{topic} Q0 old{doc} {rank} {-rank} x" for topic, rank, doc in listed]
    run.write_text("\n".join(lines) + "\n")
    found = transfer.select(scan, tmp_path / "out", strategy=("max",), run=str(run), qrels=files.qrels)
    table = pl.read_parquet(tmp_path / "out/max.parquet")
    # Topic 7 has no other document, topic 0 was not compared; the rest is not in the run.
    assert sorted(table["query_id"]) == list("12345689") and set(table["nonrelevant_id"]) == {"old7"}
    assert found.skipped == {"the first stage has no non-relevant document": 21}
    assert table["origin"].str.ends_with("first-stage rank 2 of old").all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": ("best",)}, "no strategy 'best'"),
        ({"strategy": ()}, "at least one strategy"),
        ({"strategy": ("version:2015",)}, "no version '2015'"),
        ({"data_set": "V1>>V2"}, "no data set 'V1>>V2'"),
        ({"negatives": "older"}, "no version 'older'"),
        ({"size": 3}, "no whole rows"),
        ({"depth": 0}, "depth: must be at least 1, got 0"),
    ],
    ids=["strategy", "none", "version", "set", "negatives", "size", "depth"],
)
def test_faults_are_named(scan: Scan, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        transfer.select(scan, tmp_path, **changes)


def test_the_command(scan: Scan, files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["transfer", "select", str(scan.folder), "--strategy", "max", "--out", str(tmp_path / "out"), "--json"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0 and json.loads(capsys.readouterr().out)["rows"] == 29
    with pytest.raises(SystemExit) as ended:
        main([*words, "--version", f"old={files.versions['old']}", "--version", f"other={files.versions['new']}"])
    assert ended.value.code == 2 and "the scan has the versions" in capsys.readouterr().err
