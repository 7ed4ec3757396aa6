"""A simulation of the track's pools on runs of two teams that are made here."""

from __future__ import annotations

import json

import pytest

from places import DATA
from truerank.audits.pool.standings import RANDOM
from truerank.cli import main
from truerank_lab.papers import track_runs

ORIGINAL = "Original Size"


@pytest.mark.slow
@pytest.mark.shared
def test_cacm_with_runs_of_two_teams(tmp_path, capsys):
    collection, qrels = track_runs.read("cacm", DATA / "collections")
    chosen = dict(list(collection.topics.items())[10:16])
    judged = tmp_path / "few.qrels"
    rows = [row for row in qrels.rows() if row[0] in chosen]
    judged.write_text("".join(f"{topic} 0 {doc_id} {grade}\n" for topic, doc_id, grade in rows))
    paths = track_runs.write(collection._replace(topics=chosen), qrels, tmp_path / "runs", runs_wanted=9)
    capsys.readouterr()
    words = [word for path in paths for word in ("--run", str(path))]
    words += [
        *f"--team-prefix=- --qrels {judged} --topics {tmp_path}/runs/topics.tsv --docs {collection.source}".split()
    ]
    words += [*f"--share 0.1 --trials 1 --sparse-qrels {tmp_path}/runs/sparse.qrels --workers 1".split()]
    words += ["--stopping", "budget:150"]
    # Without the encoder, which takes most of a minute here.
    words += ["--unlike", "latent,feedback"]
    with pytest.raises(SystemExit) as ended:
        main(["pool", "simulate", *words, "--out", str(tmp_path / "out"), "--json"])
    assert ended.value.code == 0
    summary = json.loads(capsys.readouterr().out)
    rules = {rule["rule"]: rule for rule in summary["rules"]}
    assert summary["length"] == 320
    assert min(rules[ORIGINAL]["relevant"]) > max(rules[RANDOM]["relevant"])
    assert {run["team"] for run in summary["runs"].values()} == {"okapi", "likely"}
    assert all(test["tau"] > 0.5 for measure in summary["verdict"]["measures"] for test in measure["evidence"])
    assert {one["name"] for one in summary["unlike"]} == {"latent", "feedback"}
