"""The command `judge audit`: verdicts, files, the same bytes, faults, and Table 3 of the LLMJudge paper."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

import truerank
from assessors_example import erring, people, runs, write_qrels, write_run
from places import real
from truerank.audits.assessors import verdicts_of
from truerank.cli import main
from truerank.errors import InputError, OptionError

HUMAN = people()


@pytest.fixture(autouse=True)
def drawn_once(request: pytest.FixtureRequest) -> None:
    """Figures are drawn where files are compared."""
    if request.node.name != "test_files_and_the_same_bytes":
        request.getfixturevalue("undrawn")


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A command line with two models and six runs of two families."""
    given = ["judge", "audit", "--people", str(write_qrels(HUMAN, tmp_path / "people.qrels"))]
    for name, share in (("good", 0.1), ("bad", 0.9)):
        given += ["--model", f"{name}={write_qrels(erring(HUMAN, share), tmp_path / f'{name}.qrels')}"]
    rows = ["run,family"]
    for number, (name, run) in enumerate(runs(HUMAN, 6).items()):
        given += ["--run", str(write_run(run, tmp_path / f"{name}.run"))]
        rows.append(f"{name},{'odd' if number % 2 else 'even'}")
    (tmp_path / "families.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return [*given, "--families", str(tmp_path / "families.csv"), "--rel", "2", "--resamples", "200"]


def ended(words: list[str]) -> int:
    with pytest.raises(SystemExit) as raised:
        main(words)
    return int(str(raised.value.code))


def test_files_and_the_same_bytes(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([*words, "--out", str(tmp_path / "one"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert ended([*words, "--out", str(tmp_path / "two")]) == 0
    names = sorted(path.relative_to(tmp_path / "one").as_posix() for path in (tmp_path / "one").rglob("*.*"))
    assert {"report.html", "card.md", "card.json", "agreement.parquet", "figures/models.svg"} <= set(names)
    assert {"tables/order.csv", "tables/families.tex", "last_stage.parquet"} <= set(names)
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    page = (tmp_path / "one" / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 3 and "NOT USABLE" in page
    card = json.loads((tmp_path / "one" / "card.json").read_text(encoding="utf-8"))
    assert [model["model"] for model in card["models"]] == ["good", "bad"]
    assert len(printed["verdicts"]) == 8
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text(encoding="utf-8"))
    assert [one["role"] for one in manifest["inputs"]] == ["people", "model", "model", *["run"] * 6, "families"]
    assert all(one["sha256"] for one in manifest["inputs"])


def test_fail_on(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([*words, "--fail-on", "not usable"]) == 1
    assert ended(words) == 0
    assert "For what each model may be used" in capsys.readouterr().out


def test_without_runs_an_order_is_unknown() -> None:
    found = truerank.judge.audit(HUMAN, {"m": erring(HUMAN, 0.2)}, resamples=100)
    words = {one.use: one for one in verdicts_of(found)}
    assert words["order"].word == words["best"].word == "UNKNOWN"
    assert "none is given" in words["order"].sentence
    assert words["choosing"].word in ("USABLE", "WITH CARE")


def test_few_topics_are_unknown() -> None:
    few = {topic: HUMAN[topic] for topic in ("t0", "t1")}
    found = truerank.judge.audit(few, {"m": few}, runs(few), resamples=100)
    assert {one.word for one in verdicts_of(found)} == {"UNKNOWN"}


def test_models_that_grade_too_high_are_named_without_runs() -> None:
    high = {topic: {doc: min(3, grade + 1) for doc, grade in of.items()} for topic, of in HUMAN.items()}
    found = verdicts_of(truerank.judge.audit(HUMAN, {"m": high}, resamples=100))
    assert (found[0].word, "too many" in found[0].sentence) == ("NOT USABLE", True)


@pytest.mark.parametrize("grade", [0, 3])
def test_a_model_with_one_grade_is_of_no_use(grade: int) -> None:
    """Whatever the grade, with and without runs; people's own single grade says nothing of a model."""
    same = {topic: dict.fromkeys(of, grade) for topic, of in HUMAN.items()}
    for given in (runs(HUMAN, 6), ()):
        found = verdicts_of(truerank.judge.audit(HUMAN, {"m": same}, given, resamples=100))
        assert {(one.word, one.settles) for one in found} == {("NOT USABLE", "another model.")}
        assert len(found) == 4 and all(f"all 360 pairs the grade {grade}" in one.sentence for one in found)
    found = verdicts_of(truerank.judge.audit(same, {"m": HUMAN}, scale="0-3", resamples=100))
    assert {(one.word, one.settles) for one in found} == {("UNKNOWN", "pairs with several grades of people.")}


def test_a_model_equal_to_people_is_called_so() -> None:
    systems = runs(HUMAN, 6)
    found = verdicts_of(truerank.judge.audit(HUMAN, {"m": HUMAN}, systems, resamples=100))
    assert {one.word for one in found} == {"USABLE"}
    assert all("gave all 360 pairs that both graded the grade that people gave" in one.sentence for one in found)
    other = {topic: dict(of) for topic, of in HUMAN.items()}
    other["t0"]["d0"] = 3 - other["t0"]["d0"]
    assert "are people's" not in repr(verdicts_of(truerank.judge.audit(HUMAN, {"m": other}, systems, resamples=100)))


def test_faults() -> None:
    with pytest.raises(OptionError, match="rel: 4 does not divide the scale 0, 1, 2, 3"):
        truerank.judge.audit(HUMAN, {"m": HUMAN}, rel=4)
    with pytest.raises(OptionError, match="measures: NumRet is not a mean over topics"):
        truerank.judge.audit(HUMAN, {"m": HUMAN}, runs(HUMAN, 6), measures="NumRet")
    with pytest.raises(InputError, match="no run has a family"):
        truerank.judge.audit(HUMAN, {"m": HUMAN}, runs(HUMAN, 6), {"other": "x"})
    with pytest.raises(OptionError, match="outside: 'clip' is not one of the choices"):
        truerank.judge.audit(HUMAN, {"m": HUMAN}, outside="clip")


@pytest.mark.shared
def test_table_3_of_llmjudge() -> None:
    """κ and α of all 33 models to 4 decimals, with grades outside the scale as the nearest grade of the scale.

    Rahmani et al. (2025), Judging the Judges, Table 3.
    """
    folder = real("llmjudge")
    models = {path.name.removesuffix(".qrels.gz"): path for path in sorted((folder / "judges").glob("*.gz"))}
    found = truerank.judge.audit(folder / "human.qrels.gz", models, resamples=1)
    values = {(one["judge"], one["coefficient"]): one["value"] for one in found.of("agreement")}
    with (folder / "table3.csv").open(encoding="utf-8") as lines:
        paper = {row["submission"]: (row["kappa"], row["alpha"]) for row in csv.DictReader(lines)}
    assert len(paper) == 33
    own = {name: tuple(f"{values[name, one]:.4f}" for one in ("kappa", "alpha-ordinal")) for name in paper}
    assert own == paper
    assert [tuple(one) for one in found.grades.outside] == [("RMITIR-llama70B", 5, 2), ("h2oloo-zeroshot2", 10, 1)]
    cuts = {one["judge"]: one["value"] for one in found.of("cuts", cut=2)}
    # Of an independent computation with scikit-learn.
    assert [round(cuts[name], 4) for name in ("NISTRetrieval-instruct0", "h2oloo-fewself")] == [0.3021, 0.428]


def test_pairs_that_a_model_lacks_are_named() -> None:
    part = {topic: dict(list(of.items())[:20]) for topic, of in HUMAN.items()}
    found = truerank.judge.audit(HUMAN, {"m": part}, resamples=100)
    assert "m lacks a grade for 120 of the 360 pairs that people graded" in repr(found)


def test_corrected_scores_where_a_model_graded_more() -> None:
    """People graded 40% of the pairs, drawn at random: the corrected scores lie nearer to those by all of people's."""
    draw = np.random.default_rng(2)
    some = {topic: {doc: grade for doc, grade in of.items() if draw.random() < 0.4} for topic, of in HUMAN.items()}
    systems = runs(HUMAN, 6)
    high = {topic: {doc: min(3, grade + 1) for doc, grade in of.items()} for topic, of in HUMAN.items()}
    found = truerank.judge.audit(some, {"m": high}, systems, measures="P@10", rel=2, resamples=100)
    rows = found.of("corrected", judge="m", measure="P@10")
    truth = truerank.evaluate(HUMAN, systems, "P@10", rel=2).mean[:, 0]
    off = {name: np.abs(np.array([row[name] for row in rows]) - truth).mean() for name in ("model", "corrected")}
    assert off["corrected"] < off["model"] / 2
    assert all(row["corrected_low"] <= row["corrected"] <= row["corrected_high"] for row in rows)
    assert found.of("corrected", judge="m", measure="DCG@10")


def test_every_table_reads_as_it_did(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The wording of the tables is held here, and nowhere else; TRUERANK_GOLDEN=1 writes it anew."""
    second = write_qrels(erring(HUMAN, 0.15), tmp_path / "second.qrels")
    assert ended([*words, "--people", str(second), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    found = "\n".join(path.read_text("utf-8") for path in sorted((tmp_path / "out" / "tables").glob("*.md")))
    golden = Path(__file__).with_name("golden_tables.md")
    if os.environ.get("TRUERANK_GOLDEN"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")
    wide = (tmp_path / "out" / "tables" / "agreement.csv").read_text(encoding="utf-8").splitlines()[0]
    assert "Cohen's κ / plain,Cohen's κ / plain low,Cohen's κ / plain high" in wide


def test_pairs_that_are_turned_round_are_counted_once() -> None:
    inverted = {topic: {doc: 3 - grade for doc, grade in of.items()} for topic, of in HUMAN.items()}
    audit = truerank.judge.audit(HUMAN, {"m": inverted}, runs(HUMAN), resamples=100)
    (row,) = audit.of("pairs", judge="m", systems="all")
    assert max(row["turned"], row["opposite"]) <= row["reversed"] <= row["swapped"] <= row["pairs"]
    assert row["turned"] + row["opposite"] > row["reversed"] > 0
    sentence = next(one.sentence for one in verdicts_of(audit) if one.use == "order")
    assert f"turns {row['reversed']} of {row['pairs']} pairs" in sentence
