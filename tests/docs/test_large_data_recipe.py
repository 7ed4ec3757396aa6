"""The job array of docs/large-data.md, with a cluster and a truerank that are shell scripts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from places import ROOT

#: Runs the tasks one after the other, as `sbatch --wait` does: the highest exit code of all is its own.
SBATCH = """#!/bin/bash
last=${2#--array=1-}; code=0
for task in $(seq 1 $last); do
  SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$last bash step.sh >> shards/$task.log 2>&1 || code=$?
done
exit $code
"""
#: A command of three steps, between which shards are merged; task 2 is killed in the first.
TRUERANK = """#!/bin/bash
case "$*" in
  *--wrong*) echo "--wrong: no such option" >&2; exit 2;;
  merge*) shift; for folder; do [ -d $folder.work ] || exit 2; echo >> ${folder}merged; done; exit;;
esac
[[ "$*" =~ --engine\\ shard:([0-9]+)/3\\ --out\\ (shards/[0-9]+) ]] || exit 70
[ ${BASH_REMATCH[1]} = 2 ] && [ ! -e killed ] && touch killed && kill -9 $$
mkdir -p ${BASH_REMATCH[2]}/.work; cd ${BASH_REMATCH[2]}
[ -e merged ] && [ $(wc -l < merged) -ge 3 ] && touch manifest.json
exit 0
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="the recipe is for bash")
@pytest.mark.parametrize("wrong", [False, True])
def test_the_loop_goes_on_after_a_killed_task_and_ends_after_a_wrong_option(tmp_path: Path, wrong: bool) -> None:
    page = (ROOT / "docs/large-data.md").read_text(encoding="utf-8")
    step, loop = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)[:2]
    assert "# step.sh" in step and "sbatch --wait" in loop
    (tmp_path / "step.sh").write_text(step.replace("--mode", "--wrong --mode" if wrong else "--mode"))
    (tmp_path / "loop.sh").write_text(loop.replace("--array=1-16", "--array=1-3"))
    for name, text in (("sbatch", SBATCH), ("truerank", TRUERANK)):
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(text)
        script.chmod(0o755)
    found = subprocess.run(
        ["bash", "loop.sh"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path / 'bin'}:{os.environ.get('PATH', os.defpath)}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    done = tmp_path / "shards" / "1" / "manifest.json"
    if wrong:
        assert not done.exists() and found.stdout.count("no such option") == 3
        return
    assert done.exists() and "shards/1/manifest.json" in found.stdout, found.stderr
    assert (tmp_path / "killed").exists() and "Killed" in found.stdout
    assert len((tmp_path / "shards" / "2" / "merged").read_text()) == 2
