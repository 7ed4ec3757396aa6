"""What `check` takes, every command takes, and says first what each file was taken for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import truerank
from truerank.claims.options import ClaimOptions
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.measures.explanation import ExplainOptions
from truerank.measures.run_comparison import ComparisonOptions
from truerank.options import Scoring
from truerank.sources.recognition import opened

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
def test_every_command_takes_what_check_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], list[str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = write(tmp_path)
    checked = truerank.check(paths, options=ClaimOptions(measure="RR"))
    assert checked.claim is not None and (checked.claim.system, checked.claim.baseline) == ("first", "second")
    scored = truerank.evaluate(paths=paths, measures="RR")
    assert dict(zip(scored.runs, scored.mean[:, 0], strict=True)) == {"first": 1.0, "second": 0.5}
    compared = truerank.compare(paths=paths, comparing=ComparisonOptions("RR"))
    audited = truerank.collection.audit(paths=paths)
    results = [checked, scored, compared, audited]
    if write is not table:
        explained = truerank.explain(paths=paths[:2], options=ExplainOptions(("RR=1.0",)))
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


def test_of_several_grades_the_highest_counts_in_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = trec(tmp_path)
    lines = Path("qrels.txt").read_text() + "q0 0 d0 0\nq3 0 d3 -1\nq5 0 d5 1\n"
    said = "2 pairs of topic and document judged with several grades, such as q0 and d0: the highest counts."
    once = "1 pair of topic and document repeated with one grade: each counts once."
    for text in (lines, "".join(reversed(lines.splitlines(keepends=True)))):
        Path("qrels.txt").write_text(text)
        checked = truerank.check(paths, options=ClaimOptions(measure="RR"))
        assert checked.base is not None and checked.base.value == pytest.approx(0.5)
        scored = truerank.evaluate("qrels.txt", paths[1:], "RR")
        assert scored.mean[:, 0].tolist() == [1.0, 0.5]
        compared = truerank.compare(paths=paths, comparing=ComparisonOptions("RR"))
        explained = truerank.explain("qrels.txt", paths[1], options=ExplainOptions(("RR=1.0",)))
        assert explained.verdicts[0].word == "SAME"
        for shown in map(repr, (checked, scored, compared, explained)):
            words = " ".join(shown.split())
            assert (
                said.replace("q0 and d0", "q3 and d3" if text is not lines else "q0 and d0") in words and once in words
            )
        kinds = {one.kind.name: one.count for one in truerank.collection.audit(paths=paths).findings}
        assert kinds["contradicted-pair"] == 2 and kinds["repeated-pair"] == 1


def test_ranks_that_are_all_the_same_order_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = trec(tmp_path)
    ranked = Scoring(ties="rank")
    assert truerank.evaluate("qrels.txt", paths[1:], "RR", ranked).mean[:, 0].tolist() == [1.0, 0.5]
    rows = [f"q{n} Q0 {d}{n} 0 {score} x\n" for n in range(8) for d, score in (("x", 2), ("d", 1))]
    Path("second.run").write_text("".join(rows))
    says = "second has one and the same rank for all results of 8 of 8 topics"
    plain = truerank.evaluate(paths=paths, measures="RR")
    assert plain.mean[:, 0].tolist() == [1.0, 0.5] and says not in repr(plain)
    options = ClaimOptions(measure="RR")
    assert says not in repr(truerank.check(paths, options=options))
    checked = truerank.check(paths, options=options, scoring=ranked)
    assert checked.conclusion.word == "FILES AT FAULT" and says in " ".join(repr(checked).split())
    assert says in repr(truerank.evaluate(paths=paths, measures="RR", scoring=ranked))
    assert says in repr(truerank.evaluate(paths=paths, measures="RR_MSMARCO"))
    assert says in repr(truerank.compare(paths=paths, scoring=ranked))


@pytest.mark.parametrize("score", ["nan", "NaN", "-inf"])
def test_a_score_that_is_no_number_has_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: str) -> None:
    monkeypatch.chdir(tmp_path)
    paths = trec(tmp_path)
    Path("second.run").write_text(f"q0 Q0 d0 1 {score} x\nq1 Q0 d1 1 1.0 x\n")
    for command in (
        truerank.check,
        lambda paths: truerank.evaluate(paths=paths),
        lambda paths: truerank.compare(paths=paths),
    ):
        with pytest.raises(InputError, match=f"second.run:1: the score '{score}' is not finite"):
            command(paths=paths)


@pytest.mark.parametrize("form", ["json", "trec", "small judgments"])
def test_runs_of_a_small_corpus_are_no_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Each topic ranks all of four documents, as each question of a table has a score of four systems."""
    monkeypatch.chdir(tmp_path)
    topics = [f"q{n}" for n in range(12)]
    grades = {q: {f"d{n % 4}": 1} if form != "small judgments" else {f"d{m}": int(n % 4 == m) for m in range(4)}
              for n, q in enumerate(topics)}  # fmt: skip
    Path("q.json").write_text(json.dumps(grades))
    if form == "trec":
        Path("q.json").unlink()
        Path("q.qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, own in grades.items() for d, g in own.items()))
    judgments = "q.qrels" if form == "trec" else "q.json"
    for name, shift in (("best", 0), ("worst", 3)):
        run = {q: {f"d{m}": 0.9 - (m - n + shift) % 4 / 5 for m in range(4)} for n, q in enumerate(topics)}
        Path(f"{name}.json").write_text(json.dumps(run))
    for paths in ([judgments, "best.json", "worst.json"], ["best.json", "worst.json", judgments], ["."]):
        scored = truerank.evaluate(paths=paths, measures="RR")
        assert dict(zip(scored.runs, scored.mean[:, 0], strict=True)) == {"best": 1.0, "worst": 0.25}
    alone = truerank.evaluate(paths=[judgments, "worst.json"], measures="RR")
    assert alone.mean.tolist() == [[0.25]]
    scores = {q: {"a": 0.5 + n / 40, "b": 0.4 + n / 50} for n, q in enumerate(topics)}
    Path("scores.json").write_text(json.dumps(scores))
    checked = truerank.check(["scores.json"])
    assert checked.claim is not None and {checked.claim.system, checked.claim.baseline} == {"a", "b"}


def test_runs_are_named_as_they_are_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.qrels").write_text("".join(f"{n} 0 d{n} 1\n" for n in range(30)))
    ranked = [(n, [f"a{n}", f"d{n}", f"b{n}"]) for n in range(30)]
    Path("dense.msmarco").write_text("".join(f"{n}\t{d}\t{r}\n" for n, own in ranked for r, d in enumerate(own, 1)))
    Path("dense.trec").write_text(
        "".join(f"{n} Q0 {d} {r} {9 - r / 2 if r != 2 else 8.5} t\n" for n, own in ranked for r, d in enumerate(own, 1))
    )
    checked = truerank.check(["q.qrels", "dense.msmarco", "dense.trec"])
    reason = " ".join(checked.conclusion.reason.split())
    assert checked.conclusion.word == "FILES AT FAULT"
    assert reason.startswith("dense and dense.msmarco return identical results for all 30 topics")
    assert "but for the order of ties" in reason


GOLDEN = [(f"How long is the warranty of model {name}?", f"doc-{n}") for n, name in enumerate("abcdefghijklmnop")]


def golden_csv(rows: list[tuple[str, str]], header: str = "question,expected") -> None:
    Path("golden.csv").write_text(f"{header}\n" + "".join(f"{q},{d}\n" for q, d in rows))


@pytest.mark.parametrize("form", ["csv", "json", "with documents", "folder", "frame"])
def test_a_golden_set_alone_is_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [*GOLDEN, ("how long is the warranty of model C", "doc-30")]
    golden_csv(rows)
    given: object = ["golden.csv"]
    if form == "json":
        Path("golden.json").write_text(json.dumps([{"query": q, "relevant_doc_ids": [d]} for q, d in rows]))
        given = ["golden.json"]
    elif form in ("with documents", "folder"):
        text = " ".join(["The warranty lasts for two years after the day of the purchase"] * 4)
        docs = "".join(json.dumps({"_id": f"doc-{n}", "text": f"{text} {n} {n * n}"}) + "\n" for n in range(14))
        Path("docs.jsonl").write_text(docs)
        given = ["golden.csv", "docs.jsonl"] if form == "with documents" else ["."]
    elif form == "frame":
        given = {"question": [q for q, _ in rows], "expected": [d for _, d in rows]}
    found = truerank.check(given)
    kinds = {one.kind for one in found.readings}
    assert "golden set" in kinds and kinds <= {"golden set", "documents"}
    assert found.conclusion.word == "UNKNOWN" and found.claim is None
    shown = " ".join(repr(found).split())
    assert "17 questions show a difference only if at least 6 of them change" in shown
    assert "from 0.353 on. One list for all questions scores 0." in shown
    assert "uestions that repeat the text of an earlier one (TOPC05): 1 of 17 questions" in shown
    assert ("abels of documents that do not exist (QREL02): 3 of 17" in shown) == (form in ("with documents", "folder"))
    audited = truerank.collection.audit(paths=given)
    assert {"repeated-text", "topic-copy"} & {one.kind.name for one in audited.findings} or "TOPC05" in repr(audited)
    with pytest.raises(InputError, match="no file says what a system retrieved"):
        truerank.evaluate(paths=given)


def test_what_may_be_a_system_is_not_left_out_of_a_golden_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    few = GOLDEN[:4]
    golden_csv(few)
    assert "4 questions cannot show any difference: at least 6 are needed." in " ".join(
        repr(truerank.check("golden.csv")).split()
    )
    golden_csv([(q, f"{d},{d};x1;x2") for q, d in GOLDEN], "question,expected,blah")
    checked = truerank.check("golden.csv")
    assert checked.single is not None or checked.readings[0].kind != "golden set"
    golden_csv(
        [(q, f"{d},hard,It lasts two years from the day of the purchase on") for q, d in GOLDEN],
        "question,expected,level,note",
    )
    (reading,) = truerank.check("golden.csv").readings
    assert reading.kind == "golden set" and "not looked at: 'level', 'note'" in reading.remarks
    golden_csv([*GOLDEN, (GOLDEN[0][0], "doc-40")])
    (reading,) = truerank.check("golden.csv").readings
    assert (
        "16 questions" in reading.why
        and "repeated questions, whose expected documents are added: 1 row" in reading.remarks
    )
    golden_csv([(q, f"{d},billing") for q, d in GOLDEN], "question,expected,topic")
    (reading,) = truerank.check("golden.csv").readings
    assert "16 questions" in reading.why and "not looked at: 'topic'" in reading.remarks
    golden_csv([*GOLDEN, ("Is there a warranty for batteries?", "")])
    (reading,) = truerank.check("golden.csv").readings
    assert "17 questions" in reading.why and "1 question without an expected document: in no score" in reading.remarks
    golden_csv([(q, "The warranty lasts for two years from the day on which you bought it") for q, _ in GOLDEN])
    (reading,) = truerank.check("golden.csv").readings
    assert reading.numbers is None and "texts, which are not looked for" in " ".join(reading.remarks)


@pytest.mark.parametrize("form", ["tables", "runs"])
def test_no_question_in_common_has_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name, first in (("one", 0), ("two", 10)):
        rows = "".join(f"q{n},d{n},d{n};x{n}\n" for n in range(first, first + 10))
        Path(f"{name}.csv").write_text(f"id,expected,retrieved\n{rows}")
        lines = "".join(f"q{n} Q0 d{n} 1 2 x\nq{n} Q0 x{n} 2 1 x\n" for n in range(first, first + 10))
        Path(f"{name}.run").write_text(lines)
    Path("qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(20)))
    paths = ["one.csv", "two.csv"] if form == "tables" else ["qrels.txt", "one.run", "two.run"]
    found = truerank.check(paths)
    assert found.conclusion.word == "FILES AT FAULT" and found.base is None
    noun = "question" if form == "tables" else "topic"
    assert found.conclusion.found == f"No {noun} is in both: 10 are in one and 10 are in two."
    for command in (truerank.compare, truerank.evaluate) if form == "tables" else (truerank.compare,):
        with pytest.raises(InputError, match=r"answers 10 \w+, .* 10 others, and none is in both"):
            command(paths=paths)
    for name, first in (("one", 0), ("two", 10)):
        Path(f"{name}.csv").write_text(f"id,{name}\n" + "".join(f"q{n},0.{n}\n" for n in range(first, first + 10)))
    found = truerank.check(["one.csv", "two.csv"])
    assert found.conclusion.word == "FILES AT FAULT" and "one has scores of 10 questions" in found.conclusion.reason
    assert found.base is None and "No score is shown." in repr(found)


@pytest.mark.parametrize("first", [0, 1, 101])
@pytest.mark.parametrize("name", ["topics.tsv", "topics.txt", "topics"])
def test_lines_of_id_and_text_are_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ids = range(first, first + 9)
    Path(name).write_text("".join(f"{n}\thow long does the battery of model {n} last\n" for n in ids))
    Path("q.qrels").write_text("".join(f"{n} 0 d{n} 1\n" for n in ids))
    for system, rank in (("good", 1), ("poor", 2)):
        Path(f"{system}.run").write_text(
            "".join(f"{n} Q0 {'d' if r == rank else 'x'}{n} {r} {3 - r} t\n" for n in ids for r in (1, 2))
        )
    found = truerank.check([name, "q.qrels", "good.run", "poor.run"])
    assert [one.kind for one in found.readings] == ["questions", "judgments", "run", "run"]
    assert found.claim is not None and found.claim.system == "good"
    with pytest.raises(InputError, match=r"nothing in it can be checked: .*questions: lines of id and text"):
        truerank.check([name])


def test_the_sample_is_the_sample_where_a_folder_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sample").mkdir()
    slow = ("leakage", "collection", "versions", "models", "pools", "unjudged")
    found = truerank.check("sample", options=ClaimOptions(ignore=slow))
    assert found.claim is not None and found.claim.system == "tuned-encoder"
    with pytest.raises(InputError, match="an empty folder"):
        truerank.check("./sample")


def test_labels_go_to_the_commands_that_compare_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = [(f"a{n}", "GOOD" if n % 3 else "POOR", "GOOD" if n % 4 else "POOR") for n in range(24)]
    Path("wide.csv").write_text("answer_id,human,judge\n" + "".join(",".join(row) + "\n" for row in said))
    rows = [(item, who, label) for item, *both in said for who, label in zip(("human", "judge"), both, strict=True)]
    Path("long.csv").write_text("answer_id,annotator,label\n" + "".join(",".join(row) + "\n" for row in rows))
    Path("odd.csv").write_text("n;x;y;z\n" + "".join(f"{n};{n % 7};{n % 3};{n}\n" for n in range(24)))
    for name in ("wide.csv", "long.csv"):
        with pytest.raises(InputError, match=r"labels by 'human', 'judge'.*judge agreement"):
            truerank.check(name)
        assert truerank.judge.agreement(name).readings[0].why.startswith("48 labels by 'human', 'judge'")
    votes = "".join(f"{n},a,b,{('model_1', 'model_2', 'tie')[n % 3]},model_{1 + n % 2}\n" for n in range(12))
    Path("votes.csv").write_text("question_id,model_1,model_2,winner1,winner2\n" + votes)
    with pytest.raises(InputError, match=r"votes between two answers .*'model_1'"):
        truerank.judge.agreement("votes.csv")
    found = [(n, 1 + n % 4, 1 + n % 3) for n in range(12)]
    Path("hits.csv").write_text("id,bm25,dense\n" + "".join(f"{n},{a},{b}\n" for n, a, b in found))
    with pytest.raises(InputError, match=r"labels of annotators .*judge agreement.*score=bm25\+dense.*rank=bm25"):
        truerank.check("hits.csv")
    with pytest.raises(InputError, match=r"label=COLUMN\+COLUMN.*'n', 'x', 'y', 'z'"):
        truerank.judge.agreement("odd.csv")
    assert truerank.judge.agreement("odd.csv", columns="id=n,label=x+y").readings[0].why == "48 labels by 'x', 'y'"
    grades = "".join(f"q{n % 8},d{n},{n % 3},{min(2, n % 4)}\n" for n in range(24))
    Path("grades.csv").write_text("query,doc,ann,gpt\n" + grades)
    audit = truerank.judge.audit(paths="grades.csv")
    assert audit.grades.people == ("ann",) and audit.grades.judges == ("gpt",)
    assert audit.readings[0].why == "48 labels by 'ann', 'gpt' (a model)"
    Path("grades.csv").write_text("query,doc,ann,bob\n" + grades)
    with pytest.raises(InputError, match="nobody, or everybody, is said to be a model: ann, bob"):
        truerank.judge.audit(paths="grades.csv")


def test_judgments_in_plain_forms(tmp_path: Path) -> None:
    run = tmp_path / "bm25.run"
    run.write_text("".join(f"q{n} Q0 d{at} {at} {9 - at} bm25\n" for n in (1, 2, 3) for at in (1, 2)))
    lines = tmp_path / "qrels.tsv"
    lines.write_text("q1\td1\t2\nq1\td2\t0\nq2\td1\t1\nq3\td2\t3\n")
    shared = tmp_path / "qrels.json"
    shared.write_text(json.dumps({f"q{n}": {"d1": 1, "d2": 2} for n in (1, 2, 3)}))
    pairs = tmp_path / "qrels.jsonl"
    pairs.write_text("".join(f'{{"query_id": "q{n}", "doc_id": "d1"}}\n' for n in (1, 2, 3)))
    for judged in (lines, shared):
        kinds = {one.path: one.kind for one in opened([judged, run]).readings}
        assert kinds == {str(judged): "judgments", str(run): "run"}
    assert opened(pairs).readings[0].kind == "golden set"
    queries = tmp_path / "queries.jsonl"
    queries.write_text("".join(f'{{"query_id": "q{n}", "text": "how do lists work"}}\n' for n in (1, 2, 3)))
    assert [one.kind for one in opened([queries, pairs]).readings] == ["questions", "golden set"]


def test_a_table_of_grades_beside_judgments_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("W01 0 P01 2\nW01 0 P03 1\nW02 0 P02 2\n")
    rows = [("topic_id", "passage_id", "relevance_judgment"), *(("W01", f"P0{n}", f"{n}") for n in range(3))]
    (tmp_path / "truth.csv").write_text("\n".join(map(",".join, rows)))
    with pytest.raises(InputError, match="are judgments"):
        opened([tmp_path / "qrels.txt", tmp_path / "truth.csv"])
