"""Top-k files: the same rows as a plain sort gives, from grouped and scattered runs, in every format."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from places import DATA
from truerank.audits.track import candidates, validate
from truerank.audits.track.candidates import Short
from truerank.cli import main
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.sources import read_run

RUN = """2 Q0 d9 1 7.5 bm25
2 Q0 d1 2 7.50 bm25
2 Q0 d5 3 7.5 bm25
1 Q0 d2 1 -1 bm25
1 Q0 d3 2 -2 bm25
3 Q0 d1 1 1e0 bm25
"""


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def single(score: float) -> float:
    return float(struct.unpack("f", struct.pack("f", score))[0])


def test_ranks_ties_and_short_topics(tmp_path: Path) -> None:
    run = written(tmp_path / "a.run", RUN)
    result = candidates(run, tmp_path / "top.run", k=2)
    assert (tmp_path / "top.run").read_text() == (
        "2 Q0 d9 1 7.5 bm25\n2 Q0 d5 2 7.5 bm25\n1 Q0 d2 1 -1 bm25\n1 Q0 d3 2 -2 bm25\n3 Q0 d1 1 1e0 bm25\n"
    )
    assert (result.read, result.topics, result.results, result.cut_ties, result.grouped) == (6, 3, 5, 1, True)
    assert result.short == (Short("3", 1),)
    assert "Fewer results: 3 (1)." in summary(result).show()
    candidates(run, tmp_path / "up.run", k=2, ties="ascending", tag="mine")
    assert (tmp_path / "up.run").read_text().splitlines()[:2] == ["2 Q0 d1 1 7.50 mine", "2 Q0 d5 2 7.5 mine"]
    candidates(run, tmp_path / "rank.run", k=2, ties="rank")
    assert (tmp_path / "rank.run").read_text().splitlines()[1] == "2 Q0 d1 2 7.50 bm25"


def test_formats(tmp_path: Path) -> None:
    run = written(tmp_path / "a.run", RUN)
    topics = str(written(tmp_path / "t.tsv", "1\tfirst  query\n2\tsecond\n4\tfourth\n"))
    result = candidates(run, tmp_path / "top.tsv", k=2, topics=topics)
    assert (tmp_path / "top.tsv").read_text() == (
        "topic_id\tdoc_id\trank\tscore\tquery\n"
        "2\td9\t1\t7.5\tsecond\n2\td5\t2\t7.5\tsecond\n1\td2\t1\t-1\tfirst query\n1\td3\t2\t-2\tfirst query\n"
    )
    assert (result.missing, result.unknown, result.short) == (("4",), ("3",), ())
    candidates(run, tmp_path / "top.jsonl.gz", k=1, topics=topics)
    rows = [json.loads(line) for line in gzip.decompress((tmp_path / "top.jsonl.gz").read_bytes()).splitlines()]
    assert rows == [
        {"topic_id": "2", "doc_id": "d9", "rank": 1, "score": 7.5, "query": "second"},
        {"topic_id": "1", "doc_id": "d2", "rank": 1, "score": -1.0, "query": "first query"},
    ]
    candidates(run, tmp_path / "top.txt", k=1, file_format="pairs")
    assert (tmp_path / "top.txt").read_text() == "2\td9\n1\td2\n3\td1\n"
    manifest = json.loads((tmp_path / "top.tsv.manifest.json").read_text())
    assert manifest["options"]["k"] == 2
    assert manifest["skipped"]["missing"] == ["4"]
    assert manifest["artifacts"]["top.tsv"]


def test_same_bytes_and_every_format_validates(tmp_path: Path) -> None:
    run = written(tmp_path / "a.run", RUN)
    for name in ("c.run.gz", "c.tsv", "c.jsonl.zst", "c.run.xz", "c.run.bz2"):
        candidates(run, tmp_path / name)
        before = (tmp_path / name).read_bytes()
        manifest = (tmp_path / f"{name}.manifest.json").read_bytes()
        candidates(run, tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
        assert (tmp_path / f"{name}.manifest.json").read_bytes() == manifest
        assert validate([run], candidates=tmp_path / name, level={"rank-gap": "off"}).valid
    candidates(run, tmp_path / "small.pairs", k=1, file_format="pairs")
    assert validate([run], candidates=tmp_path / "small.pairs").runs[0].counts["not-candidate"] == 3


POLICIES: dict[str, Callable[[Any], Any]] = {
    "ascending": lambda row: (-row[3], row[1]),
    "rank": lambda row: (row[2], row[1]),
}


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("123"), st.sampled_from(["a", "b", "c", "d", "é", "Z"]), st.integers(0, 5),
            st.sampled_from([1.0, 2.0, 2.0 + 1e-12, -3.5, 1e300, 2e300]),
        ),
        min_size=1, max_size=15, unique_by=lambda row: row[:2],
    ),
    k=st.integers(1, 4),
    ties=st.sampled_from(["trec_eval", "ascending", "rank"]),
)  # fmt: skip
def test_agrees_with_a_plain_sort(tmp_path: Path, rows: list[Any], k: int, ties: Any) -> None:
    run = written(tmp_path / "a.run", "".join(f"{t} Q0 {d} {r} {s!r} x\n" for t, d, r, s in rows))
    result = candidates(run, tmp_path / "top.run", k=k, ties=ties)
    expected = []
    for topic in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == topic]
        if ties == "trec_eval":
            own.sort(key=lambda row: row[1].encode(), reverse=True)
            own.sort(key=lambda row: -single(row[3]) if abs(row[3]) < 3e38 else -float("inf"))
        else:
            own.sort(key=POLICIES[ties])
        expected += [(t, d, place, s) for place, (t, d, _, s) in enumerate(own[:k], 1)]
    found = [(row.topic_id, row.doc_id, row.rank, row.score) for row in read_run(tmp_path / "top.run")]
    assert found == expected
    assert result.grouped == (
        len({row[0] for row in rows}) == 1 + sum(a[0] != b[0] for a, b in itertools.pairwise(rows))
    )


def test_a_scattered_run_gives_the_same(tmp_path: Path) -> None:
    draw = random.Random(5)
    lines = [f"{t} Q0 d{d} 1 {draw.random():.3f} x\n" for t in range(40) for d in range(60)]
    whole = candidates(written(tmp_path / "a.run", "".join(lines)), tmp_path / "a.top", k=10)
    draw.shuffle(lines)
    mixed = candidates(written(tmp_path / "b.run", "".join(lines)), tmp_path / "b.top", k=10)
    assert (whole.grouped, mixed.grouped) == (True, False)
    assert (whole.topics, whole.results, whole.cut_ties) == (mixed.topics, mixed.results, mixed.cut_ties)
    assert sorted((tmp_path / "a.top").read_text().splitlines()) == sorted(
        (tmp_path / "b.top").read_text().splitlines()
    )
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("content", "options", "fault"),
    [
        (RUN + "2 Q0 d1 4 1 bm25\n", {}, "a.run:7: topic 2 and document d1 are already in line 2"),
        (RUN + "4 Q0 d1 4 inf x\n", {}, "a.run:7: rank '4' or score 'inf' is not a finite number"),
        ("\n", {}, "a.run: the file is empty"),
        (RUN, {"k": 0}, "k: must be at least 1, got 0"),
        (RUN, {"ties": "random"}, "ties: 'random' is not one of the choices"),
        (RUN, {"tag": "two words"}, "tag: the tag"),
        (RUN, {"topics": "7\tseven\n"}, "none of its topics is in"),
    ],
)
def test_faults(content: str, options: dict[str, Any], fault: str, tmp_path: Path) -> None:
    run = written(tmp_path / "a.run", content)
    if "topics" in options:
        options = {"topics": str(written(tmp_path / "t.tsv", options["topics"]))}
    with pytest.raises(InputError) as caught:
        candidates(run, tmp_path / "out" / "top.run", **options)
    assert fault in str(caught.value)
    assert not (tmp_path / "out" / "top.run").exists()


def test_the_run_itself_is_not_replaced(tmp_path: Path) -> None:
    run = written(tmp_path / "a.run", RUN)
    with pytest.raises(InputError, match="would replace its own source"):
        candidates(run, run)
    with pytest.raises(InputError, match="a folder"):
        candidates(run, tmp_path)
    assert run.read_text() == RUN


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = written(tmp_path / "a.run", RUN)
    with pytest.raises(SystemExit) as ended:
        main(["track", "candidates", "--run", str(run), "-k", "2", "--out", str(tmp_path / "c.run"), "--json"])
    assert not ended.value.code
    out, err = capsys.readouterr()
    assert json.loads(out)["short"] == [{"topic_id": "3", "results": 1}]
    assert err == ""


@pytest.mark.shared
@pytest.mark.shared
def test_real_runs(tmp_path: Path) -> None:
    run = DATA / "survivorship" / "runs" / "monot5.dl19.run.gz"
    result = candidates(run, tmp_path / "c.run.gz", k=100, topics=str(DATA / "topics" / "dl19-passage.tsv"))
    assert (result.topics, result.missing, result.unknown) == (43, (), ())
    assert result.short == (Short("1121709", 37), Short("855410", 5))
    assert result.results == 41 * 100 + 37 + 5
    check = validate([tmp_path / "c.run.gz"], candidates=run).runs[0]
    assert check.counts == {}
