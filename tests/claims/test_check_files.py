"""What `truerank check` writes and prints, check.yaml, and audits that are not run twice."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from test_check_claims import collection

import truerank
from truerank.claims import data_questions
from truerank.cli import main
from truerank.errors import InputError


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Judgments, three runs and documents with a copy, as files."""
    grades, runs = collection()
    place = tmp_path / "data"
    place.mkdir()
    (place / "test.qrels").write_text(
        "".join(f"{t} 0 {d} {g}\n" for t, held in grades.items() for d, g in held.items())
    )
    for name, run in runs.items():
        ordered = ((t, sorted(held.items(), key=lambda pair: -pair[1])) for t, held in run.items())
        rows = (f"{t} Q0 {d} {at} {s} {name}\n" for t, held in ordered for at, (d, s) in enumerate(held, start=1))
        (place / f"{name}.run").write_text("".join(rows))
    texts = {d: f"the text of {d} in words of its own {d} again" for held in grades.values() for d in held}
    texts["t0-copy"] = texts["t0-d0"]
    (place / "docs.jsonl").write_text("".join(json.dumps({"_id": d, "text": one}) + "\n" for d, one in texts.items()))
    names = ("test.qrels", "good.run", "plain.run", "third.run", "docs.jsonl")
    return {name.partition(".")[0]: str(place / name) for name in names}


def words(files: dict[str, str], *more: str) -> list[str]:
    runs = [word for name in ("good", "plain", "third") for word in ("--run", files[name])]
    return ["check", "--qrels", files["test"], *runs, "--baseline", "plain", *more]


def called(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_what_is_taken_over_is_as_it_was_written(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = words(files, "--docs", files["docs"], "--out", str(tmp_path / "out"))
    assert called(*line) == 0
    place = tmp_path / "out" / "collection" / "clean" / "duplicates.tsv"
    before = place.read_text()
    place.write_text(before.replace("t0-d0", "t0-d1"))
    capsys.readouterr()
    assert called(*line) == 2
    assert f"{place}: the file is not as 'collection clean' wrote it" in capsys.readouterr().err
    assert called(*line, "--overwrite") == 0
    assert place.read_text() == before


def test_run_again_from_its_own_file_the_bytes_are_the_same(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert called(*words(files, "--docs", files["docs"], "--out", str(out))) == 0
    names = ("report.html", "summary.json", "card.md", "check.yaml", "manifest.json")
    before = {name: (out / name).read_bytes() for name in names}
    assert (out / "collection" / "report.html").is_file()
    assert "../data/good.run" in before["check.yaml"].decode()

    def not_again(*_: object, **__: object) -> None:
        raise AssertionError("an audit that is finished is run again")

    monkeypatch.setattr(data_questions, "collection_audit", not_again)
    monkeypatch.chdir(tmp_path / "data")
    assert called("check", str(out / "check.yaml")) == 0
    # The page names the files as they were given, which is now as seen from the file.
    once = {name: (out / name).read_bytes() for name in names}
    for name in ("summary.json", "card.md", "check.yaml"):
        assert once[name] == before[name]
    assert called("check", str(out / "check.yaml")) == 0
    assert {name: (out / name).read_bytes() for name in names} == once
    # Other judgments: the audit of the collection does not hold for them.
    Path(files["test"]).write_text(Path(files["test"]).read_text() + "t0 0 gone 1\n")
    with pytest.raises(AssertionError, match="finished"):
        truerank.check(out / "check.yaml")
    capsys.readouterr()


def test_the_page_has_the_claim_the_plot_and_a_line_for_each_question(files: dict[str, str], tmp_path: Path) -> None:
    result = truerank.check(
        qrels=files["test"], run=[files["good"], files["plain"]], docs=files["docs"], out=tmp_path / "out"
    )  # fmt: skip
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"<title>{result.asked} {result.conclusion.word}</title>" in page
    assert result.conclusion.figure in page and page.count("<h3>") == 9
    assert 'href="collection/report.html"' in page
    assert 'id="CLAIM01"' in page
    assert page.count("not checked") >= 3
    assert "https://" not in page.replace("http-equiv", "")
    log = json.loads((tmp_path / "out" / "findings.sarif").read_text())["runs"][0]
    open_ones = {one.question for one in result.answers if one.effect not in ("stands", "unknown")}
    assert {one["ruleId"] for one in log["results"]} == {f"truerank/{name}" for name in open_ones}
    card = (tmp_path / "out" / "card.md").read_text()
    assert card.startswith(f"## Is good better than plain? {result.conclusion.word}\n")
    assert result.conclusion.figure.partition(" (")[0] in card and "| All 24 topics |" in card


def test_what_the_command_prints_and_how_it_ends(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert called(*words(files, "--fail-on", "does not hold", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["claim"]["comparisons"]) == ("HOLDS", 2)
    assert called(*words(files, "--system", "third", "--fail-on", "cannot tell")) == 1
    assert "CANNOT TELL" in capsys.readouterr().out
    assert called("check") == 2
    assert "--test: nothing to check" in capsys.readouterr().err
    assert called("check", "--run", files["good"]) == 2
    assert "runs need judgments" in capsys.readouterr().err


def test_data_without_runs_are_checked_without_a_claim(files: dict[str, str]) -> None:
    result = truerank.check(qrels=files["test"], docs=files["docs"])
    assert (result.claim, result.conclusion.word) == (None, "UNKNOWN")
    assert result.answer("collection").word != "UNKNOWN" or result.answer("collection").evidence != "Not given."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("qrel: x\n", "there is no option 'qrel'"),
        ("- a\n", "no options in it"),
        ("run: {a: b}\n", "'run' has no value"),
    ],
)
def test_faults_of_a_settings_file_are_told(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "check.yaml").write_text(text)
    with pytest.raises(InputError, match=fault):
        truerank.check(tmp_path / "check.yaml")


def test_options_beside_a_settings_file_replace_it(files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "check.yaml").write_text(
        "qrels: data/test.qrels\nrun: [data/good.run, data/plain.run]\nmeasure: P@10\n"
    )
    assert truerank.check(tmp_path / "check.yaml").claim.measure == "P@10"  # type: ignore[union-attr]
    changed = truerank.check(tmp_path / "check.yaml", measure="AP", system="plain")
    assert (changed.claim.measure, changed.claim.system) == ("AP", "plain")  # type: ignore[union-attr]


def test_a_lead_that_a_list_for_all_topics_has_is_an_exception() -> None:
    grades, runs = collection(lead=0.5)
    shared = [f"shared{n}" for n in range(4)]
    grades = {topic: {**own, **dict.fromkeys(shared, 1)} for topic, own in grades.items()}
    listed = {topic: {name: 9.0 - place for place, name in enumerate(shared)} for topic in grades}
    result = truerank.check(qrels=grades, run={"list": listed, "plain": runs["plain"]}, baseline="plain")
    assert result.conclusion.word != "HOLDS"
    files = result.answer("files")
    told = " ".join(files.exception)
    assert "never reads the query scores 0.734 nDCG@10" in told and "list does not score more than that" in told
    assert files.facts["floor"]["mean"] > 0.3


def test_a_reranker_is_compared_with_random_order_of_what_it_got() -> None:
    grades, runs = collection()
    result = truerank.check(qrels=grades, run=runs, baseline="plain")
    floor = result.answer("files").facts["floor"]
    assert (floor["ranks"], floor["by"]) == ("judged", "random order")
    assert 0 < floor["mean"] < 0.5 and result.conclusion.word == "HOLDS"
    draw = random.Random(5)
    blind = {topic: {doc: draw.random() for doc in own} for topic, own in grades.items()}
    worse = {topic: {doc: draw.gauss(0, 1) - own[doc] / 2 for doc in own} for topic, own in grades.items()}
    other = truerank.check(qrels=grades, run={"blind": blind, "worse": worse}, baseline="worse")
    assert other.conclusion.word != "HOLDS"
    told = other.answer("files").exception
    assert told[0].startswith("An order of the judged documents that never reads the query scores 0.443")
    assert told[1].startswith("blind does not score more than that")
