"""What `check` takes, every command takes, and says first what each file was taken for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import truerank
from truerank.core.result import summary
from truerank.errors import InputError

QRELS = {f"q{n}": {f"d{n}": 1} for n in range(8)}
RUNS = {
    "first": {f"q{n}": {f"d{n}": 3.5, f"x{n}": 2.0} for n in range(8)},
    "second": {f"q{n}": {f"x{n}": 3.5, f"d{n}": 2.0} for n in range(8)},
}


def trec(folder: Path) -> list[str]:
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {d} 1\n" for q, own in QRELS.items() for d in own))
    for name, run in RUNS.items():
        lines = [f"{q} Q0 {d} {rank} {s} x\n" for q, own in run.items() for rank, (d, s) in enumerate(own.items(), 1)]
        (folder / f"{name}.run").write_text("".join(lines))
    return ["qrels.txt", "first.run", "second.run"]


def msmarco(folder: Path) -> list[str]:
    trec(folder)
    for name, run in RUNS.items():
        more = ["m0", "m1"]
        lines = [f"{q}\t{d}\t{rank}\n" for q, own in run.items() for rank, d in enumerate([*own, *more], 1)]
        (folder / f"{name}.run").write_text("".join(lines))
    return ["qrels.txt", "first.run", "second.run"]


def dictionaries(folder: Path) -> list[str]:
    (folder / "qrels.json").write_text(json.dumps(QRELS))
    for name, run in RUNS.items():
        (folder / f"{name}.json").write_text(json.dumps(run))
    return ["qrels.json", "first.json", "second.json"]


def table(folder: Path) -> list[str]:
    rows = "".join(f"{q},{min(QRELS[q])},{';'.join(RUNS['first'][q])},{';'.join(RUNS['second'][q])}\n" for q in QRELS)
    (folder / "golden.csv").write_text("id,gold,first,second\n" + rows)
    return ["golden.csv"]


def beir(folder: Path) -> list[str]:
    (folder / "set" / "qrels").mkdir(parents=True)
    (folder / "set" / "queries.jsonl").write_text("".join(f'{{"_id": "{q}", "text": "about {q}"}}\n' for q in QRELS))
    pairs = "".join(f"{q}\t{d}\t1\n" for q, own in QRELS.items() for d in own)
    (folder / "set" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + pairs)
    return ["set", *trec(folder)[1:]]


@pytest.mark.parametrize("write", [trec, msmarco, dictionaries, table, beir])
def test_every_command_takes_what_check_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    paths = write(tmp_path)
    checked = truerank.check(paths, measure="RR")
    assert checked.claim is not None and (checked.claim.system, checked.claim.baseline) == ("first", "second")
    scored = truerank.evaluate(paths=paths, measures="RR")
    assert dict(zip(scored.runs, scored.mean[:, 0], strict=True)) == {"first": 1.0, "second": 0.5}
    compared = truerank.compare(paths=paths, measures="RR")
    audited = truerank.collection.audit(paths=paths)
    results = [checked, scored, compared, audited]
    if write is not table:
        explained = truerank.explain(paths=paths[:2], reported=("RR=1.0",))
        assert explained.verdicts[0].word == "SAME"
        assert summary(explained).show().startswith(checked.readings[0].sentence())
    first = "\n".join(one.sentence() for one in checked.readings)
    for result in results:
        assert summary(result).show().startswith(first)
        assert [one["path"] for one in summary(result).json["files"]] == paths


def test_what_a_command_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = trec(tmp_path)
    with pytest.raises(InputError, match=r"runs need judgments.*first.run: run: .*`qrels`"):
        truerank.evaluate(paths=paths[1:])
    with pytest.raises(InputError, match=r"no file says what a system retrieved: qrels.txt: judgments.*`run`"):
        truerank.compare(paths=paths[:1])
    assert truerank.explain(paths=paths[1:]).verdicts[0].word == "DIFFERENT"
    assert truerank.evaluate("qrels.txt", paths=paths[1:], measures="RR").mean[:, 0].tolist() == [1.0, 0.5]
    table(tmp_path)
    named = truerank.evaluate(paths="golden.csv", columns="expected=gold,retrieved=second", measures="RR")
    assert named.mean.tolist() == [[0.5]]
