"""Validation of runs: every fault with its line, whatever the file, and never a traceback."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import math
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from places import DATA
from truerank.audits.track import Limits, validate
from truerank.audits.track.run_lines import ScatteredError, grouped_topics, scattered_topics
from truerank.audits.track.validation import KINDS
from truerank.cli import main
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.sources import lines

GOOD = "1 Q0 d1 1 3.5 bm25\n1 Q0 d2 2 3.5 bm25\n1 Q0 d3 3 -1e-3 bm25\n2 Q0 d1 1 2 bm25\n"


def written(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def found(path: str, **options: object) -> list[tuple[str, int | None]]:
    check = validate([path], cap=0, **options).runs[0]  # type: ignore[arg-type]
    assert sum(check.counts.values()) == len(check.faults)
    return [(fault.kind, fault.line) for fault in check.faults]


def test_a_sound_run(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", GOOD)
    result = validate([path])
    check = result.runs[0]
    assert result.valid
    assert [verdict.word for verdict in summary(result).verdicts] == ["valid"]
    assert (check.results, check.topics, check.tag, check.tied, check.faults) == (4, 2, "bm25", 1, ())
    assert "1 of 1 runs are valid" in summary(result).show()
    assert summary(result).json["runs"][0]["errors"] == 0


@pytest.mark.parametrize("change", ["tabs", "wide", "crlf", "bom", "blank lines", "no last line feed", "from 0"])
def test_forms_that_are_no_fault(change: str, tmp_path: Path) -> None:
    content = {
        "tabs": GOOD.replace(" ", "\t"),
        "wide": GOOD.replace(" ", "   "),
        "crlf": GOOD.replace("\n", "\r\n"),
        "bom": "\ufeff" + GOOD,
        "blank lines": GOOD.replace("\n", "\n\n"),
        "no last line feed": GOOD.rstrip(),
        "from 0": "1 Q0 a 0 2 t\n1 Q0 b 1 1 t\n",
    }[change]
    assert found(written(tmp_path / "a.run", content)) == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1 Q0 a 1 2\n1 Q0 b 2 1 t x\nx\n1 Q0 c 1 1 t\n", [("columns", 1), ("columns", 2), ("columns", 3)]),
        ("1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n1 Q0 a 3 0 t\n1 Q0 a 4 0 t\n", [("duplicate", 3), ("duplicate", 4)]),
        ("1 Q0 a one 2 t\n1 Q0 b -1 1 t\n1 Q0 c 1.0 1 t\n1 Q0 d 99999999999999999999 1 t\n",
         [("rank", 1), ("rank", 2), ("rank", 3), ("rank", 4)]),
        ("1 Q0 a 1 high t\n1 Q0 b 2 0,5 t\n1 Q0 c 3 0x10 t\n", [("score", 1), ("score", 2), ("score", 3)]),
        ("1 Q0 a 1 nan t\n1 Q0 b 2 -Infinity t\n1 Q0 c 3 1e999 t\n1 Q0 d 4 +INF t\n",
         [("not-finite", 1), ("not-finite", 2), ("not-finite", 3), ("not-finite", 4)]),
        ("1 Q0 a 1 1 t\n1 Q0 b 2 2 t\n1 Q0 c 3 2 t\n1 Q0 d 4 3 t\n", [("order", 2), ("order", 4)]),
        ("1 Q0 a 2 1 t\n1 Q0 b 1 0.5 t\n", [("order", 1)]),
        ("1 Q0 a 1 1 t\n1 Q0 b 1 2 t\n1 Q0 c 2 0 t\n", [("rank-repeated", 2)]),
        ("1 Q0 a 2 3 t\n1 Q0 b 4 2 t\n2 Q0 b 1 2 t\n", [("rank-gap", 1), ("rank-gap", 2)]),
        ("1 0 a 1 1 t\n1 Q0 b 2 1 u\n1 Q0 c 3 1 t\n", [("q0", 1), ("mixed-tags", 2)]),
        ("1 Q0 a 1 1 " + "t" * 21 + "\n", [("tag-length", 1)]),
        ("1 Q0 a 1 1 t\n1 Q0 b\0 2 1 t\n", [("control", 2)]),
    ],
    ids=lambda value: value[0][0] if isinstance(value, list) else "",
)  # fmt: skip
def test_each_fault_has_its_line(content: str, expected: list[tuple[str, int]], tmp_path: Path) -> None:
    assert found(written(tmp_path / "a.run", content)) == expected


def test_the_words_of_faults(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.run", "1 Q0 a 1 2 t\n1 Q0 a 3 5 t\n" + "1 Q0 é 4 1 t\n".encode("latin-1").decode("latin-1")
    )
    text = summary(validate([path])).show().splitlines()
    assert text[0] == (
        f"{path}:2: topic 1 and document a are already in line 1. remove one of the two lines. [error duplicate]"
    )
    assert f"{path}:2: rank 3 of topic 1 has the score 5, above 2 at rank 1. rank by descending score." in text[1]
    assert f"{path}:2: rank 3 of topic 1 follows rank 1." in text[2]


def test_bytes_that_are_not_utf8_are_named_and_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", b"1 Q0 a 1 2 t\n1 Q0 caf\xe9 2 1 t\n1 Q0 caf\xe9 3 1 t\n")
    assert found(path) == [("encoding", 2), ("encoding", 3), ("duplicate", 3)]


def test_one_score_for_all_results(tmp_path: Path) -> None:
    def run(name: str, results: int, score: int) -> str:
        rows = [(topic, rank) for topic in range(1, 13) for rank in range(1, results + 1)]
        lines = [f"{topic} Q0 d{rank} {rank} {score if topic == rank == 1 else 1} t\n" for topic, rank in rows]
        return written(tmp_path / name, "".join(lines))

    assert found(run("a.run", 2, 1)) == [("equal-scores", None)]
    assert found(run("b.run", 1, 1)) == found(run("c.run", 2, 2)) == []


def test_limits_and_tags(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", GOOD)
    assert found(path, limits=Limits(max_results=2)) == [("too-many", 3)]
    assert found(path, limits=Limits(tag_pattern="[A-Z]+", max_tag=3)) == [("tag-length", 1), ("tag-pattern", 1)]
    for wrong in ({"max_results": 0}, {"tag_pattern": "("}, {"max_tag": 0}):
        with pytest.raises(InputError):
            Limits(**wrong)  # type: ignore[arg-type]


def test_topics_and_judgments(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", GOOD + "7 Q0 d1 1 2 bm25\n7 Q0 d2 2 2 bm25\n")
    topics = written(tmp_path / "topics.tsv", "1\tone\n3\tthree\n2\ttwo\n4\tfour\n")
    qrels = written(tmp_path / "a.qrels", "1 0 d1 1\n3 0 d1 1\n")
    assert found(path, topics=topics) == [("unknown-topic", 5), ("missing-topic", None), ("missing-topic", None)]
    assert found(path, qrels=qrels) == [("unjudged-topic", 4), ("unjudged-topic", 5), ("missing-topic", None)]
    faults = validate([path], topics=topics, qrels=qrels).runs[0].faults
    assert [fault.fault for fault in faults] == [
        "there is no topic 7",
        "no results for topic 3, which is judged",
        "no results for topic 4",
    ]


@pytest.mark.parametrize("form", ["run", "pairs", "blanks", "table", "msmarco", "jsonl"])
def test_candidates_in_every_form(form: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", GOOD)
    content, name = {
        "run": ("1 Q0 d1 1 2 x\n1 Q0 d2 2 1 x\n2 Q0 d3 1 1 x\n", "c.run"),
        "pairs": ("1\td1\n1\td2\n2\td3\n", "c.tsv"),
        "blanks": ("1 d1\n1 d2\n2 d3\n", "c.txt"),
        "table": (
            "topic_id\tdoc_id\trank\tscore\tquery\n1\td1\t1\t2\tall about\n1\td2\t2\t1\tall about\n2\td3\t1\t1\tx\n",
            "c.tsv",
        ),
        "msmarco": ("1\td1\twhat is it\tA text.\n1\td2\twhat is it\tMore.\n2\td3\twhy\tNo.\n", "c.tsv"),
        "jsonl": ("".join(json.dumps({"topic_id": t, "doc_id": d, "rank": 1}) + "\n"
                          for t, d in (("1", "d1"), ("1", "d2"), ("2", "d3"))), "c.jsonl"),
    }[form]  # fmt: skip
    candidates = written(tmp_path / name, content)
    assert found(path, candidates=candidates) == [("not-candidate", 3), ("not-candidate", 4)]


def test_ids_of_the_collection(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", GOOD)
    ids = tmp_path / "ids.txt.gz"
    ids.write_bytes(gzip.compress(b"d1\tfirst text\nd3 x\nd4\n"))
    assert found(path, docs_ids=ids) == [("unknown-document", 2)]


@pytest.mark.parametrize(
    ("option", "content", "fault"),
    [
        ("candidates", "\n\n", "empty"),
        ("candidates", "1\td1\nbroken\n", "no topic and document"),
        ("candidates", '{"topic_id": "1"}\n', "without topic_id or doc_id"),
        ("docs_ids", '{"id": "1"}\n', "no list of ids"),
        ("topics", "", "empty"),
        ("qrels", "1 0 d\n1\n", "expected an integer"),
    ],
)
def test_broken_lists(option: str, content: str, fault: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", GOOD)
    with pytest.raises(InputError, match=fault):
        validate([path], **{option: written(tmp_path / "list", content)})  # type: ignore[arg-type]


def test_all_are_counted_and_the_first_shown(tmp_path: Path) -> None:
    rows = [f"{topic} Q0 d{rank} {rank} {rank} t" for topic in range(30) for rank in range(1, 101)]
    path = written(tmp_path / "a.run", "\n".join(rows))
    check = validate([path], cap=3).runs[0]
    assert check.counts == {"order": 30 * 99}
    assert [fault.line for fault in check.faults] == [2, 3, 4]
    random.Random(1).shuffle(rows)
    mixed = validate([written(tmp_path / "b.run", "\n".join(rows))], cap=3).runs[0]
    assert mixed.counts == check.counts
    places = sorted(line for line, row in enumerate(rows, 1) if " d1 " not in row)
    assert [fault.line for fault in mixed.faults] == places[:3]
    assert "2,967 more of this kind. [error order]" in summary(validate([path], cap=3)).show()


def test_levels(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", "1 Q0 a 1 1 t\n1 Q0 b 2 2 u\n")
    assert validate([path]).errors == 2
    result = validate([path], level={"order": "warning", "mixed-tags": "off"})
    assert (result.errors, result.warnings, result.valid) == (0, 1, True)
    assert [verdict.word for verdict in summary(result).verdicts] == ["warning"]
    for wrong in ({"nothing": "off"}, {"order": "fatal"}):
        with pytest.raises(InputError, match="level: "):
            validate([path], level=wrong)


# -- against a plain reading of the rules


def expected_faults(text: str, most: int) -> set[tuple[str, int]]:
    """The rules, one row at a time."""
    faults: set[tuple[str, int]] = set()
    topics: dict[str, list[tuple[int, str, int | None, float | None]]] = {}
    tag = None
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.split()
        if len(cells) != 6:
            faults |= {("columns", number)} if cells else set()
            continue
        tag = cells[5] if tag is None else tag
        faults |= {("q0", number)} if cells[1] != "Q0" else set()
        faults |= {("mixed-tags", number)} if cells[5] != tag else set()
        rank = int(cells[3]) if cells[3].isdigit() else None
        faults |= {("rank", number)} if rank is None else set()
        try:
            score: float | None = float(cells[4])
            if not math.isfinite(score or 0.0):
                faults.add(("not-finite", number))
                score = None
        except ValueError:
            faults.add(("score", number))
            score = None
        topics.setdefault(cells[0], []).append((number, cells[2], rank, score))
    for rows in topics.values():
        faults |= {("too-many", rows[most][0])} if len(rows) > most else set()
        faults |= {("duplicate", row[0]) for place, row in enumerate(rows) if row[1] in [r[1] for r in rows[:place]]}
        ranked = sorted((row[2], row[0], row[3]) for row in rows if row[2] is not None)
        faults |= {("rank-gap", ranked[0][1])} if ranked and ranked[0][0] > 1 else set()
        for (rank, _, score), (next_rank, line, next_score) in itertools.pairwise(ranked):
            faults |= {("rank-repeated", line)} if next_rank == rank else set()
            faults |= {("rank-gap", line)} if next_rank > rank + 1 else set()
            if next_rank > rank and score is not None and next_score is not None and next_score > score:
                faults.add(("order", line))
    return faults


ROW = st.tuples(
    st.sampled_from(["1", "2", "10"]), st.sampled_from(["Q0", "Q0", "Q0", "0"]), st.sampled_from(["a", "b", "c", "dé"]),
    st.sampled_from(["0", "1", "2", "3", "4", "-1", "x"]), st.sampled_from(["3", "2.5", "2", "1", "nan", "-inf", "y"]),
    st.sampled_from(["t", "t", "t", "u"]),
).map(" ".join)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(ROW, ROW, ROW, st.sampled_from(["", "1 Q0 a", "1 Q0 a 1 2 t t"])), min_size=1, max_size=25))
def test_agrees_with_a_plain_reading(tmp_path: Path, rows: list[str]) -> None:
    text = "\n".join(rows)
    if not text.strip():
        return
    path = written(tmp_path / "a.run", text)
    assert {fault for fault in found(path, limits=Limits(max_results=3)) if fault[0] != "empty"} == expected_faults(
        text, 3
    )


# -- topic by topic


@settings(max_examples=30)
@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), st.integers(1, 12), st.integers(1, 9))
def test_scattered_rows_come_together(topics: list[str], rows: int, block: int) -> None:
    frame = pl.DataFrame({"line": range(len(topics)), "topic_id": topics})
    blocks = [frame.slice(start, block) for start in range(0, len(frame), block)]
    parts = list(scattered_topics(blocks, rows=rows))
    expected = [row for topic in dict.fromkeys(topics) for row in frame.rows() if row[1] == topic]
    assert [row for part in parts for row in part.rows()] == expected
    names = [set(part["topic_id"]) for part in parts]
    assert sum(map(len, names)) == len(set(topics))
    assert all(len(part) <= rows or part["topic_id"].n_unique() == 1 for part in parts)
    grouped = frame.sort("topic_id", maintain_order=True)
    blocks = [grouped.slice(start, block) for start in range(0, len(frame), block)]
    parts = list(grouped_topics(blocks))
    assert pl.concat(parts).equals(grouped)
    assert sum(part["topic_id"].n_unique() for part in parts) == len(set(topics))


def test_a_topic_that_comes_back_is_noticed() -> None:
    frame = pl.DataFrame({"line": [1, 2, 3], "topic_id": ["a", "b", "a"]})
    with pytest.raises(ScatteredError):
        list(grouped_topics([frame]))


# -- files that are broken in every way

_GZIP = gzip.compress(GOOD.encode() * 50_000, mtime=0)
BROKEN = {
    "nothing": b"",
    "gzip of nothing": gzip.compress(b"", mtime=0),
    "UTF-16": GOOD.encode("utf-16"),
    "bytes": random.Random(7).randbytes(5000),
    "cut gzip": _GZIP[: len(_GZIP) // 2],
    "cut bzip2": bz2.compress(GOOD.encode())[:-6],
    "broken gzip": _GZIP[:400] + b"\xff" * 40 + _GZIP[440:],
    "bare returns": GOOD.replace("\n", "\r").encode(),
    "one long line": b"1 Q0 " + b"x" * 3_000_000 + b" 1 1 t\n",
    "one long blank line": b" " * 100_000 + b"\n" + GOOD.encode(),
    "zeros": b"\0" * 4096,
    "picture": b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
    "JSON": b'{"1": {"d1": 2.5}}',
    "wide blanks": "1\u00a0Q0\u2003a 1 2 t\n1 Q0 b\u0085 2 1 t\n".encode(),
    "quotes": b'1 Q0 "a 1 2 t\n1 Q0 b" 2 1 t\n1 Q0 \'c 3 1 "t\n',
    "surrogates": b"1 Q0 \xed\xa0\x80 1 1 t\n",
}


@pytest.mark.parametrize("kind", list(BROKEN))
def test_broken_files_end_in_words(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a.run", BROKEN[kind])
    good = written(tmp_path / "good.run", GOOD)
    with pytest.raises(SystemExit) as ended:
        main(["track", "validate", "--run", path, "--run", good, "--json"])
    out, err = capsys.readouterr()
    report = json.loads(out)
    broken, sound = report["runs"]
    assert sound["faults"] == []
    fatal = {
        "UTF-16",
        "UTF-16 without mark",
        "bytes",
        "cut gzip",
        "gzip head",
        "cut bzip2",
        "broken gzip",
        "zeros",
        "picture",
    }
    if kind in fatal:
        assert ended.value.code == 2
        assert err.count("\n") == 1
        assert err.startswith(f"{path}")
        assert "unreadable" in broken["counts"]
    else:
        assert ended.value.code == (0 if kind in ("wide blanks", "one long line", "one long blank line") else 1)
        assert err == ""
        assert set(broken["counts"]) <= set(KINDS)


def test_what_stands_before_a_cut_is_checked(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run.gz", gzip.compress(b"1 Q0 a 1 nan t\n" + GOOD.encode() * 50_000)[:-2000])
    check = validate([path], topics=written(tmp_path / "t.tsv", "9\tnine\n")).runs[0]
    assert check.counts["not-finite"] == 1
    assert check.counts["unreadable"] == 1
    assert check.results > 1000
    assert "missing-topic" not in check.counts
    assert (check.faults[0].line or 0) > 1000


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_LONGEST_LINE", 1 << 21)
    path = written(tmp_path / "a.run", GOOD.encode() + b"x" * (1 << 23))
    check = validate([path]).runs[0]
    assert check.broken is not None
    assert check.counts["unreadable"] == 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.integers(0, len(GOOD)))
def test_any_bytes(tmp_path: Path, noise: bytes, place: int) -> None:
    path = written(tmp_path / "a.run", GOOD[:place].encode() + noise + GOOD[place:].encode())
    try:
        result = validate([path, written(tmp_path / "b.run", GOOD)])
    except InputError as error:
        assert error.remedy
    else:
        assert [fault for fault in result.runs[0].faults if not fault.text().isprintable()] == []
        json.dumps(summary(result).json)


# -- the command


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = written(tmp_path / "a.run", GOOD), written(tmp_path / "b.run", "1 Q0 a 2 1 t\n")

    def code(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["track", "validate", *words])
        return int(ended.value.code or 0)

    assert code("--run", good) == 0
    assert code("--run", good, "--run", bad) == 0
    assert code("--run", bad, "--fail-on", "warning") == 1
    assert code("--run", bad, "--level", "rank-gap=error") == 1
    assert code("--run", bad, "--level", "rank-gap=error", "--fail-on", "never") == 0
    assert "the ranks of topic 1 begin with 2" in capsys.readouterr().out
    assert code("--run", str(tmp_path / "none.run")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert code("--run", good, "--level", "gap=off") == 2
    assert code("--run", good, "--cap", "-1") == 2
    assert code("--run", str(tmp_path)) == 2


@pytest.mark.shared
@pytest.mark.shared
def test_real_runs() -> None:
    runs = sorted((DATA / "survivorship" / "runs").glob("*.dl19.run.gz"))
    topics = str(DATA / "topics" / "dl19-passage.tsv")
    qrels = str(DATA / "qrels" / "dl19-passage.qrels.gz")
    result = validate(runs, topics=topics, qrels=qrels, candidates=runs[0], level={"rank-gap": "off"})
    assert [run.results for run in result.runs] == [41_042] * 3
    assert result.valid, summary(result).show()
    wrong = validate([runs[0]], topics=str(DATA / "topics" / "core17.trec.txt"), cap=2).runs[0]
    assert wrong.counts["unknown-topic"] == 43
    assert wrong.counts["missing-topic"] == 50
