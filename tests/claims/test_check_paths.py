"""`check` takes what people have: tables, folders, runs and judgments, told from their content."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank
from truerank.claims.results import LEFT_OUT
from truerank.cli import main
from truerank.errors import InputError
from truerank.measures.magnitudes import mean_interval


def ended(*words: str) -> int:
    with pytest.raises(SystemExit) as raised:
        main([*words])
    return int(str(raised.value.code or 0))


@pytest.fixture
def table() -> pl.DataFrame:
    """Forty questions; the first system has the expected document first more often."""
    draw = random.Random(4)
    rows = []
    for number in range(40):
        lists = []
        for share in (0.9, 0.3):
            others = [f"kb-{other}" for other in draw.sample(range(400, 900), 5)]
            lists.append([f"kb-{number}", *others[1:]] if draw.random() < share else others)
        rows.append((f"how to mend part {number}", f"kb-{number}", *lists))
    return pl.DataFrame(rows, ["question", "expected", "retrieved_new", "retrieved_old"], orient="row")


def test_values_of_a_program_are_sources_in_the_first_call_of_a_process() -> None:
    runs = '{"a": {"q": {"d": 2.0}}, "b": {"q": {"e": 1.0}}}'
    call = f'truerank.check(test={{"q": "what is a"}}, qrels={{"q": {{"d": 1}}}}, run={runs})'
    code = f"import truerank; print({call}.conclusion.word)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "CANNOT TELL\n"), done.stderr


def test_a_frame_a_file_and_its_settings_say_the_same(table: pl.DataFrame, tmp_path: Path) -> None:
    table.write_parquet(tmp_path / "results.parquet")
    here = truerank.check(table)
    there = truerank.check(tmp_path / "results.parquet", out=tmp_path / "out")
    again = truerank.check(tmp_path / "out" / "check.yaml")
    assert here.claim is not None and (here.claim.system, here.claim.baseline) == ("new", "old")
    assert here.base == there.base == again.base
    assert here.conclusion.word == "HOLDS"
    assert (tmp_path / "out" / "check.yaml").read_text().count("results.parquet") == 1
    written = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert written["files"][0]["kind"] == "golden file"


def test_the_answer_has_at_most_twelve_lines(
    table: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "results.parquet"
    table.write_parquet(place)
    assert ended("check", str(place)) == 0
    shown = capsys.readouterr().out
    read, _, answer = shown.partition("\n\n")
    assert read.startswith(f"{place}: golden file: 40 questions, 2 systems (new, old)")
    assert answer.startswith("Is new better than old?  HOLDS\nnew beats old: ")
    assert len(answer.splitlines()) <= 12
    assert ended("check", str(place), "-v") == 0
    assert "CLAIM06" in capsys.readouterr().out


@pytest.mark.slow
def test_the_first_screen_of_the_readme_is_what_the_sample_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("check", "sample") == 0
    sample = capsys.readouterr().out
    assert len(sample.splitlines()) <= 12
    assert sample in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_scores_answer_what_scores_can(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(1)
    scores = [draw.random() for _ in range(30)]
    rows = {"item": list(range(30)), "a": scores, "b": [one + draw.uniform(-0.3, 0.3) for one in scores]}
    found = truerank.check(rows)
    assert [one.question for one in found.answers if one.word != "UNKNOWN"] == ["chance"]
    assert found.conclusion.word == "CANNOT TELL" and found.answer("chance").facts["detectable"] > 0
    shown = f"More questions: 30 can show a difference of {found.answer('chance').facts['detectable']:#.2g}"
    assert shown in " ".join(found.conclusion.settles)
    pl.DataFrame(rows).write_csv(tmp_path / "scores.csv")
    assert ended("check", str(tmp_path / "scores.csv"), "--fail-on", "bad") == 3
    assert ended("check", str(tmp_path / "scores.csv"), "--fail-on", "cannot tell") == 1
    assert ended("check", str(tmp_path / "scores.csv")) == 0
    assert "score table: 30 questions, scores of 2 systems (a, b)" in capsys.readouterr().out


def test_a_folder_of_runs_and_judgments(table: pl.DataFrame, tmp_path: Path) -> None:
    rows = list(enumerate(table.iter_rows(named=True)))
    (tmp_path / "judged.txt").write_text("".join(f"{n} 0 {row['expected']} 1\n" for n, row in rows))
    for name in ("new", "old"):
        lines = (
            f"{n} Q0 {doc} {place} {9 - place} x\n"
            for n, row in rows
            for place, doc in enumerate(row[f"retrieved_{name}"], start=1)
        )
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    found = truerank.check(tmp_path)
    assert {one.kind for one in found.readings} == {"judgments", "run"}
    assert found.base is not None and found.base.value == pytest.approx(truerank.check(table).base.value)  # type: ignore[union-attr]
    (tmp_path / "judged2.txt").write_text("1 0 kb-1 1\n")
    with pytest.raises(InputError, match=r"two readings.*`qrels`"):
        truerank.check(tmp_path)
    assert truerank.check(tmp_path, qrels=str(tmp_path / "judged.txt")).base == found.base


def result(score: float, version: str, revision: str, task: str) -> str:
    scores: dict[str, Any] = {"test": [{"hf_subset": "default", "main_score": score, "ndcg_at_10": score}]}
    return json.dumps(
        {"dataset_revision": revision, "task_name": task, "mteb_version": version, "scores": scores}, indent=2
    )


def test_a_folder_of_mteb_results(tmp_path: Path) -> None:
    for model, lift in (("org__one", 0.1), ("org__two", 0.0)):
        for number, task in enumerate("ABCDEF"):
            place = tmp_path / model / "rev" / f"{task}.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(result(0.5 + lift + number / 100, "1.0", "x" if model == "org__one" else "y", task))
    found = truerank.check(tmp_path)
    assert found.readings[0].kind == "results of MTEB"
    assert found.claim is not None and found.claim.system == "org__one"
    assert found.base is not None and found.base.value == pytest.approx(0.1)
    assert "several revisions of 6 data sets" in " ".join(found.readings[0].table.remarks)  # type: ignore[union-attr]


def test_tables_are_scored_and_compared(table: pl.DataFrame) -> None:
    scored = truerank.evaluate(paths=table)
    assert scored.runs == ("new", "old")
    shown = repr(truerank.compare(paths=table, measures="nDCG@10"))
    assert "old" in shown and f"{scored.of('new', 'nDCG@10').mean():.4f}" in shown
    audited = truerank.collection.audit(paths=table)
    assert audited.verdicts[0].word == "UNKNOWN" and "docs" in audited.verdicts[0].rests_on
    by_scores = truerank.compare(paths={"id": [1, 2, 3], "a": [0.1, 0.2, 0.3], "b": [0.3, 0.3, 0.5]})
    assert "score" in repr(by_scores)
    with pytest.raises(InputError, match=r"scores of systems, and no results.*compare takes scores"):
        truerank.evaluate(paths={"id": [1, 2], "a": [0.1, 0.2], "b": [0.3, 0.3]})


def test_judgments_and_runs_as_json(table: pl.DataFrame, tmp_path: Path) -> None:
    rows = list(enumerate(table.iter_rows(named=True)))
    (tmp_path / "gold.json").write_text(json.dumps({str(n): {row["expected"]: 1} for n, row in rows}))
    for name in ("new", "old"):
        run = {str(n): {doc: 9.5 - at for at, doc in enumerate(row[f"retrieved_{name}"])} for n, row in rows}
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    found = truerank.check([tmp_path / "gold.json", tmp_path / "new.json", tmp_path / "old.json"])
    assert [one.kind for one in found.readings] == ["judgments", "run", "run"]
    assert found.base is not None and found.base.value == pytest.approx(truerank.check(table).base.value)  # type: ignore[union-attr]


def test_one_system_has_its_score(table: pl.DataFrame) -> None:
    single = truerank.check(table.drop("retrieved_old"))
    scores = truerank.evaluate(paths=table).of("new", "nDCG@10")
    interval = mean_interval(scores)
    assert single.single is not None and single.conclusion.word == "UNKNOWN"
    assert single.single[2:6] == pytest.approx((interval.mean, interval.low, interval.high, 40))
    ends = f"(95% interval {interval.low:.3f} to {interval.high:.3f})"
    assert f"new scores {scores.mean():.3f} nDCG@10 on 40 questions {ends}" in str(single)
    of_scores = truerank.check({"id": list(range(40)), "score": scores.tolist()})
    assert of_scores.single is not None and of_scores.single.value == pytest.approx(scores.mean())
    nothing = {str(number): {"kb-1": 0} for number in range(3)}
    faulty = truerank.check(qrels=nothing, run={"a": {"0": {"kb-1": 1.0}}})
    assert faulty.conclusion.word == "FILES AT FAULT" and "no relevant document" in faulty.conclusion.reason
    with pytest.raises(InputError, match="did you mean 'new'"):
        truerank.check(table, system="newt")


def test_questions_can_be_left_out(table: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    found = truerank.check(table, ignore=("claim06", "policies"))
    assert found.answer("policies").word == "UNKNOWN"
    assert {"unlabelled documents (--ignore)", "other measures (--ignore)"} <= {*found.conclusion.not_checked}
    assert [one.question for one in found.answers if one.evidence == LEFT_OUT] == ["unjudged", "policies"]
    for codes, fault in ((("CLAIM02",), "cannot be left out"), (("DOCS01",), "no question has the code")):
        with pytest.raises(InputError, match=fault):
            truerank.check(table, ignore=codes)


def _read_all(terminal: int, parts: list[bytes]) -> None:
    """Reads until the other side is closed."""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 4096):
            parts.append(part)


def test_a_terminal_is_asked_which_reading_is_meant(tmp_path: Path) -> None:
    rows = [f"how to mend part {n},kb-{n},kb-{n},kb-{n};kb-{n + 9},kb-{n + 50};kb-{n + 9}\n" for n in range(12)]
    head = "question,gold,expected,retrieved_new,retrieved_old\n"
    (tmp_path / "results.csv").write_text(head + "".join(rows))
    reader, terminal = pty.openpty()
    command = [sys.executable, "-m", "truerank", "check", "results.csv"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=terminal, stderr=terminal, stdout=subprocess.PIPE) as process:
        os.close(terminal)
        os.write(reader, b"7\n2\n")
        parts = list[bytes]()
        # What nobody reads stops who writes it.
        watch = threading.Thread(target=_read_all, args=(reader, parts))
        watch.start()
        out, _ = process.communicate(timeout=120)
        watch.join()
    os.close(reader)
    shown = b"".join(parts).decode()
    assert process.returncode == 0
    assert "two readings: expected in 'gold' or 'expected'" in shown and shown.count("Which one is it?") == 2
    assert b"expected in 'expected'" in out
    # Without a terminal it stops.
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and "--columns expected=gold, or expected=expected" in ended.stderr


@pytest.mark.parametrize("topics", [3, 5, 6, 12])
def test_so_few_topics_show_nothing_whatever_the_scores(topics: int) -> None:
    """A two-sided test of signs finds nothing at 5% with fewer than six topics: 2 ** (1 - 5) is more than 0.05."""
    rows = [{"question": f"what is number {n}?", "old": 0.1 + n / 100, "new": 0.8 + n / 90} for n in range(topics)]
    found = truerank.check(rows)
    word = found.conclusion.word
    assert word.startswith("HOLDS") == (2 ** (1 - topics) <= 0.05) and (word == "CANNOT TELL") == (topics < 6)
    assert (found.answer("chance").word == "CHANCE CAN EXPLAIN IT") == (topics < 6)
