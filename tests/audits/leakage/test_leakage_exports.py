"""What an audit found in the forms of MTEB, the CONDA database and Hugging Face; mteb itself is in benchmarks/."""

from __future__ import annotations

import ast
import csv
import io
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import jsonschema
import polars as pl
import pytest
import yaml

from leakage_example import audit, save
from truerank.audits.leakage.card import card, card_schema
from truerank.audits.leakage.exports import CONDA_HEADER, TaskEntry, contaminations, meta_patch
from truerank.audits.leakage.options import CardTarget
from truerank.audits.leakage.training_data.results import LEAKS, ExampleAudit, KindVerdict
from truerank.cli.app import main
from truerank.core.result import summary
from truerank.errors import InputError, OptionError

ROWS = [
    ("sci", "1", "title", "log", "q1", "red apples", 0.97),
    ("sci", "1", "title", "web", "w1", "red apple", 0.95),
    ("sci", "2", "title", "log", "q2", "blue whales", 0.93),
    ("sci", "3", "title", "log", "q3", "low", 0.905),
]
INPUTS = [
    {"name": "log", "source": "hf:org/log@abc:train", "role": "train"},
    {"name": "web", "source": "web.tsv", "role": "train"},
    {"name": "sci", "source": "irds:beir/scifact/test", "role": "test"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    result = audit(ROWS, sources=("log", "web"), tests=("sci", "other"))
    return Path(save(result, tmp_path / "audit", {"inputs": INPUTS}))


@pytest.fixture(autouse=True)
def without_mteb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are not looked up: what mteb says of them is checked by benchmarks/mteb_exports.py."""
    monkeypatch.setattr("truerank.audits.leakage.exports._mteb", lambda: None)


def test_counts_by_source_and_test_set(folder: Path) -> None:
    from truerank.audits.leakage.results import load_audit

    found = {(one.train, one.test): one for one in contaminations(load_audit(folder))}
    assert {key: (one.most.leaked, one.most.items, one.most.training) for key, one in found.items()} == {
        ("log", "sci"): (2, 10, 2), ("web", "sci"): (1, 10, 1),
        ("log", "other"): (0, 10, 0), ("web", "other"): (0, 10, 0),
    }  # fmt: skip
    assert found["log", "sci"].train_source == "hf:org/log@abc:train"
    assert found["log", "sci"].sentence().startswith("2 of 10 topics (20.0%) in log: query in training query, cosine")


def test_a_leak_that_only_labels_know_is_not_said_to_be_above_the_threshold() -> None:
    result = audit(ROWS, sources=("log", "web"), tests=("sci",))
    result.summary["tests"]["sci"]["leaked_topics"].append("3")
    words = pl.when(pl.col("topic_id") == "3").then(pl.lit("words")).otherwise(pl.lit("encoder"))
    log, web = contaminations(replace(result, candidates=result.candidates.with_columns(evidence=words)))
    assert log.most.leaked == 3
    assert log.most.evidence == (
        "cosine similarity above 0.91 under all-MiniLM-L6-v2, or the same words or nearly the same letters where "
        "labels say that the query leaks"
    )
    assert web.most.evidence == "cosine similarity above 0.91 under all-MiniLM-L6-v2"


def test_conda_rows_are_those_of_its_table(folder: Path) -> None:
    made = card(folder, for_="conda", called={"other": "org/other:validation"}, reference="https://example.org/x")
    rows = list(csv.reader(io.StringIO(summary(made).show()), delimiter=";"))
    assert all(len(row) == len(CONDA_HEADER) for row in rows)
    assert rows[0] == ["beir/scifact/test", "", "org/log", "corpus", "", "", "20.00", "data-based",
                       "https://example.org/x", ""]  # fmt: skip
    # A clean test set has a row with 0; here of its validation split.
    assert [row[:7] for row in rows if row[0] == "org/other"] == [
        ["org/other", "", "org/log", "corpus", "", "0.00", ""],
        ["org/other", "", "web", "corpus", "", "0.00", ""],
    ]
    with_model = card(folder, for_="conda", model="org/model").json()["rows"]
    assert [row[3] for row in with_model[:2]] == ["corpus", "model"]
    # One row of the model for each test set, with the largest share of its sources.
    assert [(row[0], row[6]) for row in with_model if row[3] == "model"] == [
        ("beir/scifact/test", "20.00"), ("other", "0.00"),
    ]  # fmt: skip
    request = summary(made).show("markdown")
    assert "- [x] Evaluation dataset(s) found in a pre-training corpus." in request
    assert "- test split of `beir/scifact/test` in `org/log`: 20.00%" in request


def test_a_source_without_a_leak_to_a_test_set_that_is_not_clean_has_no_row(tmp_path: Path) -> None:
    folder = save(audit(ROWS[:1], sources=("log", "web"), tests=("sci",)), tmp_path / "a")
    assert [row[2] for row in card(folder, for_="conda").json()["rows"]] == ["log"]


def test_a_request_without_a_leak_names_nothing_contaminated(tmp_path: Path) -> None:
    folder = save(audit([], tests=("sci",)), tmp_path / "a")
    request = summary(card(folder, for_="conda", model="org/model")).show("markdown")
    assert "[x] Evaluation" not in request
    assert "**Contaminated model(s)**: none" in request and "**Contaminated corpora**: none" in request
    assert "- test split of `sci` in `log`: 0.00%" in request


def test_mteb_names_have_evidence_and_statistics(folder: Path) -> None:
    made = card(folder, for_="mteb", called={"sci": "SciFact", "other": "Other"})
    content = made.json()
    assert content["training_datasets"] == ["SciFact"]
    assert content["statistics"]["SciFact"] == {"test": {"num_queries": 10, "samples_in_train": 2}}
    (entry,) = content["entries"]
    assert "2 of 10 topics" in entry["evidence"] and "1 of 10 topics" in entry["evidence"]
    assert ast.literal_eval(summary(made).show().strip().removeprefix("training_datasets=").rstrip(",")) == {"SciFact"}
    with pytest.raises(OptionError, match="the MTEB task of 'sci' is not named"):
        card(folder, for_="mteb")
    with pytest.raises(OptionError, match="the audit has no 'scifact'"):
        card(folder, for_="mteb", called={"scifact": "SciFact"})


FORMS = {
    "None": {"SciFact"},
    "set()": {"SciFact"},
    '{"MSMARCO"}': {"MSMARCO", "SciFact"},
    '{"MSMARCO",}': {"MSMARCO", "SciFact"},
    '{\n        "NQ",  # a, b\n        "MSMARCO"  # no comma, here\n    }': {"NQ", "MSMARCO", "SciFact"},
    '{\n        "NQ",\n        # "SciFact", not said to be\n    }': {"NQ", "SciFact"},
    '{*base, "é"}': {"a", "é", "SciFact"},
    "base": {"a", "SciFact"},
    'base | {"b"}': {"a", "b", "SciFact"},
    'set(["a"])': {"a", "SciFact"},
    'base if base else {"x"}': {"a", "SciFact"},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_patch_applies_whatever_the_set_is_written_as(form: str, tmp_path: Path) -> None:
    text = (
        'from mteb import ModelMeta\n\nbase = {"a"}\nother = ModelMeta(name="org/other", training_datasets={"q"})\n'
        f'é = ModelMeta(\n    name="org/model", training_datasets={form}, license=None,\n)\n'
    )
    file = tmp_path / "models.py"
    file.write_text(text, encoding="utf-8")
    new = [TaskEntry("SciFact", "leak", "evidence\nof it"), TaskEntry("Par", "parent", "elsewhere")]
    patch = meta_patch(text, "models.py", "org/model", new)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "apply", "-"], input=patch, text=True, encoding="utf-8", cwd=tmp_path, check=True)
    values: dict[str, Any] = {"ModelMeta": dict}
    exec(file.read_text(encoding="utf-8").partition("\n")[2], values)
    assert values["é"] == {"name": "org/model", "training_datasets": FORMS[form], "license": None}
    assert values["other"]["training_datasets"] == {"q"}
    if form.startswith("{"):
        assert meta_patch(file.read_text(encoding="utf-8"), "models.py", "org/model", new) == ""


def test_the_patch_names_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text('ModelMeta(name="org/model")\n')
    given = {"for_": "mteb", "called": {"sci": "SciFact", "other": "O"}, "into": str(tmp_path / "m.py")}
    with pytest.raises(InputError, match=r"'org/model' has no training_datasets"):
        card(folder, **given, model="org/model")
    with pytest.raises(InputError, match=r"no model 'org/modle' here. there are org/model"):
        card(folder, **given, model="org/modle")
    with pytest.raises(OptionError, match="no model named"):
        card(folder, **given)


README = """---
license: mit
tags:
- retrieval
- train-test-leakage-clean
---
# Mine

Text – kept.
"""


def test_a_card_gets_tags_figures_and_one_section(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    given = {"for_": "dataset-card", "called": {"sci": "BeIR/scifact"}}
    once = summary(card(folder, **given, into=str(tmp_path / "README.md"))).show()
    read = huggingface_hub.DatasetCard(once)
    assert read.data.license == "mit"
    assert read.data.tags == ["retrieval", "train-test-leakage-contaminated"]
    assert read.data["train_test_leakage"][0] == {
        "train": "log", "test": "BeIR/scifact", "verdict": "CONTAMINATED", "query_in_training_query": "2/10",
    }  # fmt: skip
    assert read.text.lstrip().startswith("# Mine\n\nText – kept.\n")
    assert read.text.count("## Train–test leakage") == 1
    (tmp_path / "README.md").write_text(once, encoding="utf-8")
    assert summary(card(folder, **given, into=str(tmp_path / "README.md"))).show() == once
    new = huggingface_hub.ModelCard(summary(card(folder, for_="model-card")).show())
    assert new.data.tags == ["train-test-leakage-contaminated"]


def test_a_card_whose_metadata_are_broken_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\ntags: [\n---\n")
    with pytest.raises(InputError, match="the metadata of the card cannot be read"):
        card(folder, for_="model-card", into=str(tmp_path / "README.md"))


def interval(mean: float | None, n: int) -> dict[str, Any]:
    return {"n": n, "mean": mean, "low": None, "high": None}


def effect_file(path: Path, clean: float | None = 0.61234567) -> str:
    rows = [
        {"run": run, "measure": measure, "all": interval(0.7, 10), "leaked": interval(0.9, 2),
         "clean": interval(clean, 8 if clean is not None else 0)}
        for measure in ("nDCG@10", "P@1") for run in ("dense", "bm25")
    ]  # fmt: skip
    path.write_text(json.dumps({"settings": {"test": "sci"}, "runs": rows}))
    return str(path)


def test_a_score_on_clean_topics_is_an_eval_result(folder: Path, tmp_path: Path) -> None:
    given = {"for_": "eval-results", "effect": effect_file(tmp_path / "effect.json"), "model": "dense"}
    made = card(
        folder, **given, called={"sci": "org/bench@abc123:scifact"}, date="2026-01-02", reference="https://e.org"
    )
    (entry,) = yaml.safe_load(summary(made).show())
    assert entry["dataset"] == {"id": "org/bench", "task_id": "scifact", "revision": "abc123"}
    assert (entry["value"], str(entry["date"])) == (0.612346, "2026-01-02")
    assert entry["source"] == {"url": "https://e.org", "name": "truerank leakage audit"}
    assert entry["notes"].startswith(
        "nDCG@10 on 8 of 10 topics, without those that leak from log, web; on all topics 0.7"
    )
    if hasattr(huggingface_hub, "parse_eval_result_entries"):
        (parsed,) = huggingface_hub.parse_eval_result_entries([entry])
        assert (parsed.dataset_id, parsed.task_id, parsed.value) == ("org/bench", "scifact", 0.612346)


def test_what_an_eval_result_lacks_is_named(folder: Path, tmp_path: Path) -> None:
    effect, called = effect_file(tmp_path / "effect.json"), {"sci": "org/bench"}
    with pytest.raises(OptionError, match="no effect given"):
        CardTarget(for_="eval-results")
    with pytest.raises(OptionError, match=r"several runs. choose one of dense, bm25"):
        card(folder, for_="eval-results", effect=effect, called=called)
    with pytest.raises(OptionError, match="the benchmark of 'sci' is not named"):
        card(folder, for_="eval-results", effect=effect, model="dense")
    with pytest.raises(InputError, match="no topic is clean"):
        none = effect_file(tmp_path / "none.json", None)
        card(folder, for_="eval-results", effect=none, model="dense", called=called)
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(OptionError, match="no scores on leaked and clean topics"):
        card(folder, for_="eval-results", effect=str(tmp_path / "x.json"), model="dense", called=called)


def test_names_are_not_redacted_for_another_place(folder: Path) -> None:
    with pytest.raises(OptionError, match="names are what this place asks for"):
        card(folder, for_="conda", redact=True)


def test_both_audits_can_be_stated_in_one_card(folder: Path, tmp_path: Path) -> None:
    import truerank

    (tmp_path / "bad.qrels").write_text("1 0 a 1\n1 0 a 0\n")
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    found = truerank.collection.audit(qrels=str(tmp_path / "bad.qrels"))
    readme = str(tmp_path / "README.md")
    once = summary(truerank.collection.card(found, into=readme)).show()
    (tmp_path / "README.md").write_text(once, encoding="utf-8")
    assert summary(truerank.collection.card(found, into=readme)).show() == once
    both = huggingface_hub.DatasetCard(summary(card(folder, for_="dataset-card", into=readme)).show())
    assert both.data.tags == ["retrieval", "collection-audit-faulty", "train-test-leakage-contaminated"]
    assert both.data["collection_audit"] == {"verdict": "FAULTY", "judgments": "FAULTY"}
    assert both.text.count("## Collection audit") == both.text.count("## Train–test leakage") == 1


def test_a_matrix_is_stated_too(tmp_path: Path) -> None:
    rows = [("a", "x", "query", 10, 4, "CONTAMINATED"), ("a", "x", "document", 50, 50, "UNKNOWN"),
            ("b", "x", "query", 10, 0, "CLEAN")]  # fmt: skip
    columns = ("training", "test", "part", "items", "leaking", "verdict")
    frame = pl.DataFrame(rows, schema=list(columns), orient="row").with_columns(pl.lit(7).alias("pairs"))
    frame.write_parquet(tmp_path / "matrix.parquet")
    # The share of the queries counts; the shared corpus is another kind of leak.
    assert [row[2:7] for row in card(tmp_path, for_="conda").json()["rows"]] == [
        ["a", "corpus", "", "", "40.00"], ["b", "corpus", "", "", "0.00"],
    ]  # fmt: skip
    made = summary(card(tmp_path, for_="dataset-card")).show()
    assert "| a | x | document in the training data | 50 | 50 | 100.0% | CONTAMINATED |" in made
    names = card(tmp_path, for_="mteb", called={"x": "SciFact"}).json()
    assert (names["training_datasets"], names["statistics"]["SciFact"]["test"]) == (
        ["SciFact"], {"num_queries": 10, "samples_in_train": 4},
    )  # fmt: skip


def test_the_statement_of_a_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a|b", "x", "query", 10, 4, "CONTAMINATED"), ("a|b", "y", "document", 0, 0, "UNKNOWN"),
            ("c", "x", "query", 10, 0, "CLEAN")]  # fmt: skip
    columns = ("training", "test", "part", "items", "leaking", "verdict")
    pl.DataFrame(rows, schema=list(columns), orient="row").write_parquet(tmp_path / "matrix.parquet")
    schema = card_schema("matrix")
    jsonschema.Draft202012Validator.check_schema(schema)

    def stated(**how: Any) -> dict[str, Any]:
        content: dict[str, Any] = card(tmp_path, **how).json()
        jsonschema.Draft202012Validator(schema).validate(content)
        return content

    content = stated(date="2026-01-31")
    assert (content["verdict"], content["training"], content["tests"]) == ("CONTAMINATED", ["a|b", "c"], ["x", "y"])
    assert [(one["leaking"], one["of"], one["share"]) for one in content["cells"]] == [
        (4, 10, 0.4),
        (0, 0, None),
        (0, 10, 0.0),
    ]
    key = tmp_path / "key"
    key.write_bytes(b"a key of many bytes")
    hidden = stated(redact=True, redact_key=str(key))
    assert hidden["redacted"] and "matrix" not in hidden and "a|b" not in json.dumps(hidden)
    assert len(set(hidden["training"])) == 2 and hidden["cells"][0]["training"] == hidden["training"][0]
    with pytest.raises(SystemExit, match="0"):
        main(["leakage", "card", str(tmp_path), "--format", "markdown"])
    shown = capsys.readouterr().out
    assert "2 training sets (a\\|b, c) against 2 test sets (x, y). 1 of 3 cells are CLEAN." in shown
    assert "| a\\|b | x | queries | 4 | 10 | 40.0% | CONTAMINATED |" in shown and "| c |" not in shown
    assert json.loads(summary(card(tmp_path)).show()) == card(tmp_path).json()
    for how, message in (({"pairs": True}, "counts alone"), ({"date": "soon"}, "is not a date")):
        with pytest.raises(InputError, match=message):
            card(tmp_path, **how)
    (tmp_path / "matrix.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="not readable"):
        card(tmp_path)


def test_documents_alone_name_no_task(tmp_path: Path) -> None:
    columns = ("training", "test", "part", "items", "leaking", "verdict")
    rows = [("a", "x", "query", 10, 0, "CLEAN"), ("a", "x", "document", 50, 50, "CONTAMINATED")]
    frame = pl.DataFrame(rows, schema=list(columns), orient="row").with_columns(pl.lit(7).alias("pairs"))
    frame.write_parquet(tmp_path / "matrix.parquet")
    made = card(tmp_path, for_="mteb", called={"x": "SciFact"}).json()
    assert made["training_datasets"] == []
    assert made["statistics"]["SciFact"]["test"] == {"num_queries": 10, "samples_in_train": 0}
    frame.filter(part="document").write_parquet(tmp_path / "matrix.parquet")
    assert card(tmp_path, for_="mteb", called={"x": "SciFact"}).json()["statistics"] == {}


def test_an_audit_of_examples_is_stated_too(tmp_path: Path) -> None:
    found = (("pair", "CLEAN", 0, 10), ("query-query", "CONTAMINATED", 3, 10), ("negative-relevant", "UNKNOWN", 0, 0),
             ("document-corpus", "CONTAMINATED", 40, 50))  # fmt: skip
    kinds = tuple(KindVerdict(name, word, "", leaked=n, of=of, examples=n) for name, word, n, of in found)
    test = {"name": "sci", "topics": 10, "documents": 50, "relevant": 20}
    sources = {"triples": {"examples": 60, "skipped": 0, "roles": ""}}
    audit = ExampleAudit(kinds, pl.DataFrame(schema=LEAKS), test, sources, {}, {})
    (tmp_path / "summary.json").write_text(json.dumps(audit.json()))
    audit.leaks.write_parquet(tmp_path / "leaks.parquet")
    (row,) = card(tmp_path, for_="conda", called={"triples": "org/t"}).json()["rows"]
    assert row[:7] == ["sci", "", "org/t", "corpus", "", "", "30.00"]
    (entry,) = card(tmp_path, for_="mteb", called={"sci": "SciFact"}).json()["entries"]
    made = summary(card(tmp_path, for_="model-card")).show()
    assert "negative-relevant: " not in made and "| relevant document in a training negative | UNKNOWN |" in made
    assert "3 of 10 queries" in entry["evidence"] and "40 of 50 documents" in entry["evidence"]
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(InputError, match="not readable"):
        card(tmp_path, for_="conda")
