"""Files as other tools write them are read for what they are, and several tables as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank
from truerank.errors import InputError
from truerank.sources.recognition import read_as_given

TOPICS = [f"q{number}" for number in range(12)]
RESULTS = {
    topic: {f"d{(number + place) % 20}": 1 - place / 10 for place in range(5)} for number, topic in enumerate(TOPICS)
}
JUDGED = {topic: {f"d{number}": 1, f"d{number + 1}": number % 3} for number, topic in enumerate(TOPICS)}


def long_frame(values: dict[str, dict[str, float]]) -> pl.DataFrame:
    rows = [(topic, doc, score) for topic, own in values.items() for doc, score in own.items()]
    return pl.DataFrame(rows, schema=["q_id", "doc_id", "score"], orient="row")


def test_predictions_and_judgments_of_other_tools(tmp_path: Path) -> None:
    mteb = {"mteb_model_meta": {"model_name": "org/small", "revision": "4f2"}, "default": {"test": RESULTS}}
    (tmp_path / "SciFact_predictions.json").write_text(json.dumps(mteb))
    lines = [
        json.dumps({"query_id": topic, "query": f"what is {topic}", "results": [
            {"corpus_id": doc, "score": score} for doc, score in own.items()]})
        for topic, own in RESULTS.items()
    ]  # fmt: skip
    (tmp_path / "Information-Retrieval_evaluation_predictions_cosine.jsonl").write_text("\n".join(lines))
    long_frame(RESULTS).write_parquet(tmp_path / "run.parquet")
    long_frame(JUDGED).write_parquet(tmp_path / "qrels.parquet")
    readings = {Path(one.path).name: one for one in read_as_given([tmp_path])}
    kinds = {name: one.kind for name, one in readings.items()}
    assert kinds.pop("qrels.parquet") == "judgments"
    assert set(kinds.values()) == {"run"} and len(kinds) == 3
    for name in kinds:
        assert readings[name].numbers == RESULTS
    assert "revision 4f2" in readings["SciFact_predictions.json"].why
    checked = truerank.check(
        [tmp_path / "qrels.parquet", tmp_path / "run.parquet", tmp_path / "SciFact_predictions.json"]
    )
    assert checked.claim is not None and {checked.claim.system, checked.claim.baseline} == {"small", "run"}


def scores(path: Path, form: str, shift: float = 0.0) -> Path:
    rows = [
        (measure, topic, 0.1 + place / 20 + shift)
        for measure in ("AP", "nDCG@10")
        for place, topic in enumerate(TOPICS)
    ]
    rows += [("AP", "all", 0.9), ("nDCG@10", "all", 0.9)]
    names = {"AP": "map", "nDCG@10": "ndcg_cut_10"}
    write = {
        "ir_measures": lambda m, t, v: f"{t}\t{m}\t{v:.4f}",
        "trec_eval": lambda m, t, v: f"{names[m]:22}\t{t}\t{v:.4f}",
        "jsonl": lambda m, t, v: json.dumps({"query_id": t, "measure": m, "value": round(v, 4)}),
    }[form]
    head = ["runid                 \tall\tmine"] if form == "trec_eval" else []
    path.write_text("\n".join([*head, *(write(*row) for row in rows)]) + "\n")
    return path


@pytest.mark.parametrize("form", ["ir_measures", "trec_eval", "jsonl"])
def test_scores_by_topic_of_two_files_are_two_systems(form: str, tmp_path: Path) -> None:
    ending = {"ir_measures": "tsv", "trec_eval": "txt", "jsonl": "jsonl"}[form]
    files = [scores(tmp_path / f"{name}.{ending}", form, shift) for name, shift in (("old", 0.0), ("new", 0.05))]
    found = truerank.check(files)
    assert found.claim is not None and found.claim.system == "new" and found.claim.baseline == "old"
    assert found.base is not None and found.base.value == pytest.approx(0.05)
    (table,) = (one.table for one in read_as_given(files[:1], measure="AP"))
    assert table is not None
    assert table.scores["old"]["value"].mean() == pytest.approx(sum(0.1 + n / 20 for n in range(12)) / 12)
    with pytest.raises(InputError, match="scores of 2 measures"):
        read_as_given(files, measure="P@5")


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("all.tsv", "nDCG@10\t0.512\nAP\t0.311\n", "means over all topics"),
        ("all.txt", "map\tall\t0.21\nP_10\tall\t0.3\n", "means over all topics"),
        ("st.csv", "epoch,steps,cosine-Accuracy@1,cosine-NDCG@10\n-1,-1,0.5,0.6\n", "means over all queries"),
        ("ranx.json", '{"stat_test": "fisher", "metrics": ["mrr"], "model_names": ["a"], "a": {"scores": {}}}', "ranx"),
        (
            "X_predictions.json",
            '{"mteb_model_meta": {}, "en": {"test": {"q": {"d": 0.1}}}, "de": {"test": {"q": {"d": 0.1}}}}',
            "2 subsets",
        ),
    ],
)
def test_means_and_several_parts_are_refused(name: str, content: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=fault):
        read_as_given([tmp_path / name], measure="nDCG@10")


def golden(path: Path, column: str, *, every: int = 1, **changes: Any) -> Path:
    rows = [
        {
            "question": f"how do I mend part {n}?",
            "expected": f"kb-{n}",
            column: f"kb-{n if n % every == 0 else 200 + n};kb-{n + 90}",
        }
        for n in range(12)
    ]
    rows[3] |= changes
    pl.DataFrame(rows).write_csv(path)
    return path


def test_a_golden_file_for_each_system(tmp_path: Path) -> None:
    old, new = golden(tmp_path / "old.csv", "retrieved", every=3), golden(tmp_path / "new.csv", "retrieved")
    found = truerank.check([old, new])
    assert found.claim is not None and (found.claim.system, found.claim.baseline) == ("new", "old")
    assert found.base is not None and found.base.topics == 12
    assert truerank.check([new, old]).base == found.base
    with pytest.raises(InputError, match=r"'how do I mend part 3\?' expects"):
        truerank.check([old, golden(tmp_path / "other.csv", "retrieved", expected="kb-77")])
    with pytest.raises(InputError, match="a system 'bm25' in two files"):
        same = [golden(tmp_path / "a.csv", "bm25"), golden(tmp_path / "b.csv", "bm25")]
        pl.read_csv(same[1]).with_columns(dense=pl.col("bm25")).write_csv(same[1])
        truerank.check(same)


def test_means_are_not_taken_for_runs_and_measures_by_topic_not_for_means(tmp_path: Path) -> None:
    place = tmp_path / "eval.json"
    for means in ({"ndcg@10": 0.3, "map": 0.2}, {"ndcg": {"NDCG@1": 0.3, "NDCG@10": 0.4}, "map": {"MAP@1": 0.3}}):
        place.write_text(json.dumps(means))
        with pytest.raises(InputError, match="means over all topics"):
            read_as_given([place])
    place.write_text(json.dumps({f"q{n}": {"map": n / 9, "ndcg_cut_10": n / 8} for n in range(5)}))
    with pytest.raises(InputError, match="choose one: --measure map"):
        read_as_given([place])
