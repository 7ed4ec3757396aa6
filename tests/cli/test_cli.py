"""The command line as a user meets it: what it prints where, and how it ends."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from places import without_progress
from truerank.cli import main
from truerank.sources.sample import SAMPLE

LOG, TOPICS = str(SAMPLE.train[1]), str(SAMPLE.tests[2])
PACKAGED, TITLES = ["--encoder", "packaged", "--backend", "onnx"], ["--fields", "title"]


def run(*words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "truerank", *words],
        capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, **environment},
    )  # fmt: skip


Ended = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Ended:
    """Runs a command as `run` does, without the start of a process: where that is not what is asked."""

    def called(*words: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        return subprocess.CompletedProcess(words, int(str(ended.value.code or 0)), *capsys.readouterr())

    return called


def one_line(finished: subprocess.CompletedProcess[str]) -> str:
    assert finished.returncode == 2, finished.stderr
    assert finished.stdout == ""
    assert finished.stderr.count("\n") == 1
    assert "Traceback" not in finished.stderr
    return finished.stderr


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A tenth of the sample's log and half of its topics: leaks, and pairs below the threshold, are among them."""
    folder = tmp_path_factory.mktemp("small")
    log, topics = folder / "sample-clicks.tsv", folder / "sample-news.trec"
    with gzip.open(SAMPLE.train[0]) as stream:
        log.write_bytes(b"".join(line for number, line in enumerate(stream) if number % 10 == 0))
    topics.write_text("<top>".join(SAMPLE.tests[0].read_text().split("<top>")[:21]))
    return str(log), str(topics)


@pytest.fixture(scope="module")
def audit(small: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("audit") / "out"
    finished = run(
        "leakage", "audit", "--train", small[0], "--test", small[1], "--out", str(out),
        *PACKAGED, *TITLES, "--json", "--topic", "1008",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert without_progress(finished.stderr) == ""
    summary = json.loads(finished.stdout)
    assert summary["tests"]["sample-news"]["verdict"] == "CONTAMINATED"
    assert summary["neighbours"]["1008"][0]["similarity"] > 0.5
    assert json.loads((out / "summary.json").read_text()) == {
        name: value for name, value in summary.items() if name != "neighbours"
    }
    return out


def test_clean_and_calibrate(small: tuple[str, str], audit: Path, here: Ended, tmp_path: Path) -> None:
    less = str(tmp_path / "c.tsv.gz")
    cleaned = here(*f"leakage clean --train {small[0]} --audit {audit} --out {less} --json".split())
    assert cleaned.returncode == 0, cleaned.stderr
    counts = json.loads(cleaned.stdout)
    assert counts["kept"] + counts["removed"] == counts["read"]
    words = f"leakage audit --train {less} --test {small[1]} --out {tmp_path}/again --fail-on CONTAMINATED --json"
    again = here(*words.split(), *PACKAGED, *TITLES)
    assert again.returncode == 0, again.stderr
    summary = json.loads(again.stdout)
    # Leaks and doubts are gone, and no pair waits for a judgment.
    assert (summary["verdict"], summary["tests"]["sample-news"]["doubts"]["pairs"]) == ("CLEAN", 0)
    assert [(one["subject"], one["word"], one["level"]) for one in summary["verdicts"]] == [
        ("sample-news", "CLEAN", "good")
    ]
    words = f"leakage clean --remove test --test {small[1]} --audit {audit} --out {tmp_path}/r.trec"
    reduced = here(*words.split())
    assert reduced.returncode == 0, reduced.stderr
    assert "topics of sample-news remain" in reduced.stdout
    assert (audit / "card.md").read_text().startswith("## Train–test leakage")
    threshold = here("leakage", "calibrate", "--labels", str(SAMPLE.labels), "--json")
    assert 0.8 < json.loads(threshold.stdout)["chosen"] < 0.91


@pytest.mark.slow
def test_fail_on_contaminated_ends_with_one(small: tuple[str, str], audit: Path, tmp_path: Path) -> None:
    words = f"leakage audit --train {small[0]} --test {small[1]} --fail-on contaminated".split()
    words += [*PACKAGED, *TITLES]
    assert run(*words, "--out", str(tmp_path / "a")).returncode == 1
    assert run(*words, "--out", str(tmp_path / "b"), "--baseline", str(audit)).returncode == 0


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--train", "nowhere.tsv", "--test", TOPICS], "nowhere.tsv: "),
        (["--train", LOG, "--test", LOG, "--floor", "0.95"], "--floor: the floor 0.95 is not at or below"),
        (["--train", LOG, "--test", TOPICS, "--floor", "0.8", "--mode", "prefilter"], "--floor: the prefilter"),
        (["--train", LOG, "--test", TOPICS, "--fields", "titel"], "--fields: no topic field called 'titel'"),
        (["--train", LOG, "--test", TOPICS, "--threshold", "1.5"], "--threshold: must be at least -1 and below 1"),
        (["--train", LOG, "--test", TOPICS, "--variants", "other=x.tsv"], "--variants: variants for 'other'"),
        (["--train", LOG, "--test", TOPICS, "--engine", "spark"], "--engine: no engine called 'spark'"),
        (["--train", "irds:msmarco-pasage/train", "--test", TOPICS], "msmarco-passage"),
        (["--train", LOG, "--test", TOPICS, "--prefilter-cut", "title=high"], "--prefilter-cut: 'high'"),
    ],
)  # fmt: skip
def test_faults_are_one_line_and_two(words: list[str], fault: str, here: Ended, tmp_path: Path) -> None:
    assert fault in one_line(here("leakage", "audit", *words, *PACKAGED, "--out", str(tmp_path / "out")))


def test_wrong_option_is_two_and_unknown_command_too(here: Ended) -> None:
    assert here("leakage", "audit", "--frobnicate").returncode == 2
    assert here("leakage", "frobnicate").returncode == 2
    assert "Traceback" not in here("leakage", "audit", "--mode", "fast").stderr


def test_debug_shows_where(here: Ended) -> None:
    finished = here("--debug", "leakage", "calibrate", "--labels", "nowhere")
    assert finished.returncode == 2
    assert "Traceback" in finished.stderr


def test_version_and_help(here: Ended) -> None:
    assert here("--version").stdout.startswith("truerank 0.")
    text = here("leakage", "audit", "--help").stdout
    assert "Examples" in text
    assert "irds:msmarco-document/orcas" in text


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_has_its_code_and_the_work_stays(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    log = tmp_path / "log.tsv"
    log.write_text("".join(f"{number}\tquery number {number} of a long log\n" for number in range(40_000)))
    command = [
        sys.executable, "-m", "truerank", "leakage", "audit", "--train", str(log), "--test", TOPICS, *PACKAGED,
        "--block-size", "256", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").rglob("*.arrow")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(sent)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "continues where it stopped" in error
    assert "Traceback" not in error
    assert list((tmp_path / "out").rglob("*.arrow"))


def test_closed_pipe_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "truerank", "rules"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.wait()


def test_lists_and_versions_wait_for_no_command() -> None:
    code = "import sys; from truerank.cli.app import main; main(['--help'])"
    finished = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0
    assert all(name in finished.stdout for name in ("leakage", "judge", "evaluate"))
    imported = {line.rpartition("|")[2].strip() for line in finished.stderr.splitlines()}
    assert not imported & {"matplotlib", "scipy.stats", "polars", "numpy"}
