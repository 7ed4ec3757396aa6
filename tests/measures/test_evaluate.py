"""`truerank evaluate`, as it is typed, and its Python twin."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

import truerank
from measures_reference import write_qrels, write_run
from truerank.cli import main
from truerank.errors import OptionError
from truerank.options import Scoring
from truerank.sources import read_run_frame

QRELS = {"301": {"a": 2, "b": 0, "c": 1}, "302": {"a": 1}}
RUNS = {
    "good": {"301": {"a": 3.0, "c": 2.0, "b": 1.0}, "302": {"a": 1.0}},
    "bad.v2": {"301": {"b": 3.0, "x": 2.0, "c": 2.0}},
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    options = ["--qrels", str(write_qrels(tmp_path / "test.qrels", QRELS))]
    for name, run in RUNS.items():
        options += ["--run", str(write_run(tmp_path / f"{name}.run", run))]
    return options


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", *words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_a_table_with_its_policies(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = typed(capsys, *files, "--measures", "nDCG@10 P@1 MFR(none=10)", "--sort", "P@1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    rows = [line.split() for line in lines if line.startswith(("good", "bad.v2"))]
    assert rows == [
        ["good", "1.0000", "1.0000", "1.0000", "0", "0", "0.0%"],
        ["bad.v2", "0.0950", "0.0000", "6.5000", "1", "0", "33.3%"],
    ]
    assert "Ties: scores as 32-bit numbers, equal ones by document id descending (trec_eval)." in lines


def test_json_and_files(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    code, printed, _ = typed(
        capsys, *files, "--measures", "AP", "--out", str(out), "--json", "--per-topic", "--rel", "2"
    )
    assert code == 0
    found = json.loads(printed)
    assert found["policy"] == {"ties": "trec_eval", "missing": "default", "depth": None, "rel": 2}
    assert found["topics"] == 2
    assert found["runs"]["good"] == {
        "measures": {"AP": 0.5},
        "missing": 0,
        "coverage": {"matched": 2, "missing": 0, "unknown": 0, "results": 4, "unjudged": 0},
        "per_topic": {"AP": {"301": 1.0, "302": 0.0}},
    }
    assert pl.read_parquet(out / "per_topic.parquet").rows()[0] == ("good", "AP", "301", 1.0)
    manifest = json.loads((out / "manifest.json").read_text())
    assert {one["name"]: one["rows"] for one in manifest["inputs"]} == {"test": 2 + 2, "good": 4, "bad.v2": 3}
    assert manifest["inputs"][0]["sha256"] == hashlib.sha256(Path(files[1]).read_bytes()).hexdigest()
    assert set(manifest["artifacts"]) == {"per_topic.parquet", "summary.json"}
    assert truerank.load_evaluation(out).mean.tolist() == [[0.5], [0.0]]


@pytest.mark.parametrize(("form", "sign"), [("markdown", "| good |"), ("latex", r"\toprule"), ("csv", "good,301,1.0")])
def test_formats(files: list[str], form: str, sign: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed(capsys, *files, "--measures", "P@1", "--format", form, "--per-topic")
    assert code == 0
    assert sign in out


def test_policies(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    def value(*options: str) -> float:
        code, out, _ = typed(capsys, *files, "--measures", "P@2", "--json", *options)
        assert code == 0
        mean: float = json.loads(out)["runs"]["bad.v2"]["measures"]["P@2"]
        return mean

    # x and c are tied behind b.
    assert value("--ties", "trec_eval") == 0.0
    assert value("--ties", "ascending") == 0.25
    assert value("--ties", "ascending", "--missing", "skip") == 0.5
    assert value("--ties", "ascending", "--depth", "1") == 0.0
    assert value("--ties", "ascending", "--rel", "2") == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--measures", "ndgc@10"], "--measures: unknown measure: 'ndgc@10'. did you mean nDCG"),
        (["--missing", "fail"], "bad.v2: the run lacks 1 of the 2 topics"),
        (["--sort", "AP"], "there is no measure 'AP'. one of nDCG@10, P@1."),
        (["--depth", "0"], "--depth: must be at least 1, got 0"),
        (["--rel", "0"], "--rel: must be at least 1, got 0"),
        (["--run", "absent.run"], "absent.run: no such file"),
        (["--run", "irds:cranfield"], "runs are read from files"),
    ],
)
def test_faults_are_one_line(
    files: list[str], change: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = typed(capsys, *files, *change)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_a_fault_in_a_file_has_its_line(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "good.run"
    whole = typed(capsys, *files)[1]
    run.write_text(run.read_text() + "301 Q0 a 9 0.5 t\n")
    said = "good: 1 result repeated, such as a for topic 301: the first place of each counts."
    assert typed(capsys, *files)[1].replace(said, "").split() == whole.split()
    run.write_text("301 Q0 a 1\n")
    assert f"{run}:1: 4 columns instead of 6" in typed(capsys, *files)[2]
    run.write_text("0301 Q0 a 1 1 t\n")
    assert "none of the 2 topics of the qrels, but 1 others" in typed(capsys, *files)[2]
    (tmp_path / "test.qrels").write_text("301 0 a yes\n")
    assert "test.qrels:1: expected an integer as relevance, got 'yes'" in typed(capsys, *files)[2]


def _written_run(folder: Path, name: str) -> tuple[str, str]:
    """A run and judgments of 12 topics, with 20 results each."""
    topics, results, rows, judged = range(1, 13), range(1, 21), [], []
    for topic in topics:
        for rank in results:
            doc = f"D{topic}-{rank}"
            score: dict[str, float] = {"distances": rank, "equal": 0, "spelt": -rank, "ranks equal": -((7 * rank) % 20)}
            found = doc.lower() if name == "spelt" else doc
            row = f"{topic} Q0 {found} {1 if name == 'ranks equal' else rank} {score.get(name, -rank)} t"
            rows.append((0 if name != "by document" else (7 * rank) % 20, row))
            judged += [f"{topic} 0 {doc if name != 'others' else f'E{doc}x'} 1"] if rank % 5 == 0 else []
    files = folder / "a.run", folder / "a.qrels"
    ordered = sorted(rows, key=lambda one: (one[1].split()[0], one[0]))
    files[0].write_text("".join(f"{row}\n" for _, row in ordered))
    files[1].write_text("".join(f"{row}\n" for row in judged))
    return str(files[0]), str(files[1])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("distances", "12 of 12 topics: they look like distances"),
        ("equal", "one and the same score for all results of 12 of 12 topics"),
        ("spelt", "is judged (their ids differ in case"),
        ("others", "None of the 240 results of a is judged"),
        ("good", ""),
        ("by document", ""),
        ("ranks equal", ""),
    ],
)
def test_runs_whose_scores_mean_nothing(tmp_path: Path, name: str, says: str) -> None:
    run, qrels = _written_run(tmp_path, name)
    remarks = truerank.evaluate(qrels, [run]).remarks
    assert (len(remarks), says in " ".join(remarks)) == (int(bool(says)), True)
    frame = read_run_frame(run)
    assert truerank.evaluate(qrels, {"a": frame}).remarks == remarks
    ranked = truerank.evaluate(qrels, [run], scoring=Scoring(ties="rank")).remarks
    if name == "ranks equal":
        assert len(ranked) == 1 and "a has one and the same rank for all results of 12 of 12 topics" in ranked[0]
    else:
        assert ranked == (remarks if name in ("spelt", "others") else ())


@pytest.mark.parametrize("run", [[[{"qid": "301", "docno": "a"}] * 9000], [{"qid": "301"}], [1], [None]])
def test_values_that_are_no_runs(run: list[object]) -> None:
    with pytest.raises(OptionError, match=r"^run: cannot read a (list|dict|int|NoneType) as a run") as caught:
        truerank.evaluate(QRELS, run, "P@1")  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200
