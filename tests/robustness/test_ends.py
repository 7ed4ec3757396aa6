"""Ordinary and hostile data end with an answer, or a line of place, fault and remedy, and with a fitting code."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import resource
import socket
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from chat_server import Reply, Seen, answered, chat_server
from raw_server import raw_server
from truerank.audits.collection.run_faults import Files, run_faults
from truerank.cli.app import main

KEY = 'sk-te"st/4711'
LONG = "9" * 5000
ROWS = "".join(f"question {n}?,d{n},d{n},d{n + 1}\n" for n in range(8))
RUN = "".join(f"{n} Q0 d{n} 1 1 x\n" for n in range(8))
QRELS = "".join(f"{n} 0 d{n} 1\n" for n in range(8))


def ended(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    """Runs a command line; its exit code, and all that it says."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    said = capsys.readouterr()
    assert "--debug" in words or "Traceback" not in said.err
    return int(end.value.code or 0), said.out + said.err


def golden(draw: random.Random, questions: int, results: int, documents: int, *, fixed: bool) -> str:
    """A table of two systems that find most expected documents; with `fixed`, the new one has one list for all."""
    same = [f"d{n}" for n in draw.sample(range(max(documents, 4 * results)), results - 1)]
    lines = ["question,expected,new,old"]
    for number in range(questions):
        lists = []
        for share in (0.8, 0.4):
            own = [f"d{n}" for n in draw.sample(range(documents), min(results, documents))]
            if draw.random() < share and f"d{number}" not in own:
                own[draw.randrange(len(own))] = f"d{number}"
            # A system that reads the question brings what it expects to the front.
            lists.append(sorted(own, key=lambda doc, here=f"d{number}": doc != here))
        new, old = ["d0", *same] if fixed else lists[0], lists[1]
        lines.append(f"question {number}?,d{number},{';'.join(new)},{';'.join(old)}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("questions", [6, 12, 30])
def test_a_list_is_the_same_for_all_questions_only_by_its_own_length(
    questions: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, file = random.Random(questions), tmp_path / "golden.csv"
    for measure, results, documents in (("RR", 2, 60), ("nDCG@10", 3, 60), ("RR", 5, 60), ("RR", 10, 12)):
        for fixed in (False, True):
            file.write_text(golden(draw, questions, results, max(documents, questions), fixed=fixed))
            words = ("--system", "new", "--baseline", "old", "--measure", measure, "-v")
            code, said = ended(capsys, "check", file, *words)
            assert code == 0, said
            said = " ".join(said.split())
            same = rf"new returns nearly the same ({results}|{results - 1}) documents for every question"
            assert bool(re.search(same, said)) == fixed, said
            assert "old returns nearly the same" not in said


def test_lists_of_several_lengths_are_compared_as_far_as_they_go() -> None:
    draw = random.Random(1)

    def lists(documents: list[list[str]]) -> pl.DataFrame:
        rows = [(f"q{n}", doc, at, -float(at)) for n, own in enumerate(documents) for at, doc in enumerate(own, 1)]
        return pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank", "score"], orient="row")

    order = [f"d{n}" for n in range(100)]
    cut = [order[: draw.randint(1, 10)] for _ in range(20)]
    honest = [draw.sample(order, 100 if n == 3 else 2) for n in range(20)]
    qrels = pl.DataFrame([(f"q{n}", f"d{n}", 1) for n in range(20)], ["topic_id", "doc_id", "relevance"], orient="row")
    files = Files({"cut": lists(cut), "honest": lists(honest)}, ("cut", "honest"), qrels, None, None, 100)
    assert [fault.run for fault in run_faults(files) if fault.kind == "fixed-list"] == ["cut"]


def damaged_parquet(place: int) -> bytes:
    written = io.BytesIO()
    pl.DataFrame({"question": ["a?", "b?"] * 40, "expected": ["d1"] * 80, "new": ["d1"] * 80}).write_parquet(written)
    content = bytearray(written.getvalue())
    content[place] ^= 0xFF
    return bytes(content)


#: File, content, exit code of `check`, and what it says.
TABLES: dict[str, tuple[str, bytes | str, int, str]] = {
    "no Parquet": ("x.parquet", b"hello", 2, "x.parquet: no valid Parquet"),
    "a damaged end of Parquet": ("x.parquet", damaged_parquet(-30), 2, "x.parquet: no valid Parquet"),
    "a damaged page of Parquet": ("x.parquet", damaged_parquet(40), 2, "x.parquet: no valid Parquet"),
    "22,000 columns": ("x.csv", ",".join(f"column{n}" for n in range(22_000)) + "\n", 2, "x.csv: "),
    "a long first line": ("x.csv", "a " * 70_000 + ",d1,d2,d3\n" + ROWS, 2, "x.csv: "),
    "a long text": ("x.csv", "question,expected,new,old\n" + "a " * 70_000 + ",d1,d1,d2\n" + ROWS, 0, "HOLDS"),
    "a long number as a name": ("x.csv", f"id,new,old\n{LONG},0.5,0.25\n8,0.5,0\n9,1,0\n", 0, "new"),
    "a number that is no ASCII": ("x.csv", "id,new,old\n٣,0.5,0.25\na,0.5,0\n9,1,0\n", 0, "new"),
    "a long number in a column": ("x.csv", f"question,expected,hit{LONG},hit1,hit2\na?,d1,d1,d2,d3\n", 0, "x.csv: "),
    "a long number in YAML": ("x.yaml", f"- question: a?\n  expected: {LONG}\n- question: b?\n", 2, "x.yaml: no YAML"),
    "deep YAML": ("x.yaml", "- " * 30_000 + "a\n", 2, "x.yaml: no valid YAML"),
    "a deep cell": ("x.csv", f'question,expected,new,old\nx?,d1,"{"[" * 50_000}",d2\n{ROWS}', 0, "new"),
    "JSON in gzip": ("x.json.gz", gzip.compress(b'{"a?": {"expected": "d1", "new": ["d1", "d2"]}}'), 0, "new"),
    "half a pair": ("x.jsonl", '{"question": "a?", "expected": ["\\ud800"], "new": ["b", "\\ud800"]}\n', 0, "new"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_checked_or_refused(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, content, code, words = TABLES[case]
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    found, said = ended(capsys, "check", file)
    assert (found, words in said) == (code, True), said[:2000]


def test_long_numbers_and_other_topics_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, second, other, qrels = (tmp_path / name for name in ("a.run", "b.run", "c.run", "a.qrels"))
    run.write_text(RUN + f"{LONG} Q0 d1 1 1 x\n")
    second.write_text(RUN.replace(" Q0 d", " Q0 e") + f"{LONG} Q0 d2 1 1 y\n")
    other.write_text("".join(f"t{n} Q0 d{n} 1 1 x\n" for n in range(8)))
    qrels.write_text(QRELS + f"{LONG} 0 d1 1\n")
    assert ended(capsys, "check", qrels, run, second)[0] == 0
    for more in (["--reported", "0.5"], ["--run", run]):
        code, said = ended(capsys, "explain", "--qrels", qrels, "--run", other, *more)
        assert code == 2
        assert said.startswith("c.run: none of its 8 topics is judged (")
        assert "give results and judgments of the same topics, with the same ids" in said
    (tmp_path / "scores.txt").write_text("nDCG@10\tt1\t0.5\nnDCG@10\tt2\t0.25\n")
    more = ["--reported", f"nDCG@10={tmp_path / 'scores.txt'}"]
    code, said = ended(capsys, "explain", "--qrels", qrels, "--run", run, *more)
    assert (code, said.startswith("reported scores: none of its 2 topics is judged (")) == (2, True)
    # Of the same topics, and nothing that was judged is found.
    assert ended(capsys, "explain", "--qrels", qrels, "--run", second, "--reported", "0.5")[0] in (0, 1)


def test_too_little_memory_has_a_code_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "bomb.csv.gz"
    with gzip.open(file, "wb", compresslevel=1) as stream:
        for _ in range(1500):
            stream.write((b"a" * 1023 + b"\n") * 1024)
    done = subprocess.run(
        [sys.executable, "-m", "truerank", "check", file], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1700 << 20, resource.RLIM_INFINITY)),
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (71, 1), done.stderr
    assert done.stderr.startswith("truerank: there is not enough memory. raise the limit (")


@pytest.fixture
def store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    items = ({"topic_id": f"{n}", "query": f"q{n}", "doc_id": f"d{n}", "text": f"text {n}"} for n in range(4))
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in items))
    words = ("--scheme", "relevance-documents", "--items", tmp_path / "items.jsonl")
    assert ended(capsys, "judge", "new", tmp_path / "s.judged", *words)[0] == 0
    return tmp_path / "s.judged"


ASKED = ("--model", "m", "--key-env", "ENDS_KEY", "--retries", "0", "--timeout", "5")
FORMS = (KEY, json.dumps(KEY)[1:-1], KEY.replace("/", "\\/"), KEY.replace("/", "%2F").replace('"', "%22"), KEY.upper())
ESCAPED = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
SAYS = f"wrong key {' or '.join((*FORMS, ESCAPED))}"


def errors(status: int) -> Reply:
    """An error, or an answer, that repeats the key in every form."""
    if status == 200:
        return answered({"labels": [], "comment": SAYS, "skip": f"denied: {KEY}"})
    if status == 201:
        return answered(f'{{"{KEY}": 1}}')
    return Reply(json.dumps({"error": {"message": SAYS}}), status, {"X-Key": KEY, "Retry-After": KEY})


@pytest.mark.parametrize("status", [200, 201, 400, 401, 500])
def test_a_key_that_comes_back_is_nowhere(
    status: int, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENDS_KEY", KEY)
    with chat_server(lambda seen, _: errors(status)) as (address, asked):
        code, said = ended(capsys, "judge", "model", store, "--endpoint", address, *ASKED, "--debug")
    assert asked[0].headers["Authorization"] == f"Bearer {KEY}"
    export = store.with_name("labels.jsonl")
    capsys.readouterr()
    ended(capsys, "judge", "export", store, export)
    written = [file.read_bytes() for file in store.parent.rglob("*") if file.is_file()]
    assert len(written) > 2
    for text in (said.encode(), *written):
        assert not any(form.casefold().encode() in text.lower() for form in (*FORMS, "4711"))
    assert code == (0 if status == 200 else 2)


def test_a_key_in_what_is_not_http_is_nowhere(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENDS_KEY", KEY)

    def broken(connection: socket.socket, head: str) -> None:
        connection.sendall(f"HTTP/1.1 {head.partition('Bearer ')[2][:30]}\r\n\r\n".encode())

    with raw_server(broken) as address:
        code, said = ended(capsys, "--debug", "judge", "model", store, "--endpoint", address, *ASKED)
    assert code == 2
    assert "4711" not in said
    assert not any(b"4711" in file.read_bytes() for file in store.parent.rglob("*") if file.is_file())


@pytest.mark.parametrize(
    ("replies", "code", "says"),
    [
        ([Reply("", 503)], 2, "judge model: none of 4 items was answered (status 503)."),
        ([Reply('{"error": "too long"}', 400)], 2, "judge model: none of 4 items was answered (the endpoint refused"),
        ([answered("I do not know")], 2, "none of 4 items was answered (the model's answer is not a JSON object)"),
        ([answered({"skip": "unclear"})], 0, "0 labelled and 4 skipped now"),
        ([Reply("", 503), answered({"labels": ["0"]})], 0, "1 without an answer (status 503)"),
    ],
)
def test_a_model_that_answers_nothing_does_not_end_well(
    replies: list[Reply], code: int, says: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def reply(_: Seen, number: int) -> Reply:
        return replies[min(number, len(replies) - 1)]

    with chat_server(reply) as (address, _):
        words = ("--endpoint", address, "--model", "m", "--retries", "0", "--concurrency", "1")
        found, said = ended(capsys, "judge", "model", store, *words)
    assert (found, says in " ".join(said.split())) == (code, True), said


@pytest.mark.parametrize("name", ["q.qrels", "r.run"])
def test_a_nul_in_an_id_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.qrels").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    (tmp_path / "r.run").write_text("q1 Q0 d1 1 2.0 x\nq2 Q0 d2 1 2.0 x\n")
    (tmp_path / name).write_text((tmp_path / name).read_text().replace("q2", "\0q2"))
    code, said = ended(capsys, "evaluate", "--qrels", tmp_path / "q.qrels", "--run", tmp_path / "r.run")
    assert code == 2 and f"{name}:2: a NUL character" in said
