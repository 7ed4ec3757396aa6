"""Design files: what they mean, and every fault with its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grid_example import DESIGN, write_example
from truerank.errors import InputError
from truerank.experiments.designs import copy_design, ready_designs
from truerank.experiments.grid import expand, read_design
from truerank.experiments.grid.results import write_design


def test_a_design_says_what_is_run(tmp_path: Path) -> None:
    design = read_design(write_example(tmp_path))
    trainings = expand(design)
    # two sets, two sizes, one model, two seeds
    assert len(trainings) == 8
    assert [(one.set.name, one.size, one.seed) for one in trainings[:4]] == [
        ("none", 24, 0), ("none", 24, 1), ("none", 60, 0), ("none", 60, 1),
    ]  # fmt: skip
    assert design.collection("notes").docs == str(tmp_path / "docs.jsonl")
    assert (design.report.kind, design.report.baseline) == ("leakage", "none")


def test_written_out_in_full_it_is_the_same_design(tmp_path: Path) -> None:
    text = DESIGN.replace("seeds: [0, 1]", "seeds: {default: [3], knrm: [0, 1]}").replace(
        "models:",
        "models:\n  bert: {model: monobert:packaged, aggregate: [first, max], policy: 'sliding:4:2', sizes: [60]}",
    )
    design = read_design(write_example(tmp_path, text))
    write_design(tmp_path / "out", design)
    again = read_design(tmp_path / "out" / "design.yaml")
    assert again == design
    assert design.model("bert").seeds == (3,)
    # one training, two variants
    assert [one.variants for one in expand(design) if one.model.name == "bert"] == [("first", "max")] * 2


def test_places_come_from_settings_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_example(tmp_path, DESIGN.replace("docs: docs.jsonl", "docs: ${NOTES}/docs.jsonl"))
    monkeypatch.delenv("NOTES", raising=False)
    with pytest.raises(InputError, match=r"design.yaml:5: collections.notes.docs: the variable NOTES is not set"):
        read_design(path)
    changed = read_design(path, settings={"collections.notes.docs": str(tmp_path / "x.jsonl"), "seeds": "[4]"})
    assert changed.collection("notes").docs == str(tmp_path / "x.jsonl")
    assert changed.model("knrm").seeds == (4,)
    monkeypatch.setenv("NOTES", "/data")
    assert read_design(path).collection("notes").docs == "/data/docs.jsonl"


#: What is replaced by what, the line that is named, and a part of the message.
FAULTS = {
    "no-yaml": ("sizes: [24, 60], instances: none", "sizes: [24, 60, instances: none", 11, "no YAML"),
    "tabs": ("    docs: docs", "\tdocs: docs", 5, "no YAML"),
    "unknown-key": ("qrels: qrels", "qrel: qrels", 7, "unknown key 'qrel'. did you mean 'qrels'?"),
    "unknown-top": ("measures:", "measure:", 16, "did you mean 'measures'?"),
    "twice": ("    depth: 8", "    depth: 8\n    depth: 9", 9, "'depth' stands twice"),
    "no-docs": ("    docs: docs.jsonl\n", "", 4, "no 'docs'. name the documents"),
    "no-name": ("name: tiny\n", "", 2, "no 'name'"),
    "no-models": ("models:\n  knrm: {", "models: {}\nmore: {", 14, "unknown key 'more'"),
    "empty-models": ("models:\n", "models: {}\nignored:\n", 14, "unknown key 'ignored'"),
    "list": ("models:\n  knrm:", "models:\n  - knrm:", 13, "no mapping"),
    "bad-name": ("  knrm: {", "  kn.rm: {", 14, "the name 'kn.rm'"),
    "depth": ("depth: 8", "depth: eight", 8, "'eight' is no whole number"),
    "depth-0": ("depth: 8", "depth: 0", 8, "0 is too small"),
    "folds": ("folds: 2", "folds: 1", 9, "1 is too small"),
    "kind": ("{kind: test", "{kind: tset", 12, "'tset' is unknown. did you mean 'test'?"),
    "for": ("kind: test, for: notes", "kind: test, for: note", 12, "did you mean 'notes'?"),
    "odd": ("sizes: [24, 60], instances: test", "sizes: [25, 60], instances: test", 12, "give an even number"),
    "size-twice": ("sizes: [24, 60], instances: test", "sizes: [24, 24], instances: test", 12, "stands twice"),
    "both": ("instances: test.jsonl", "instances: test.jsonl, build: {leaks: 2}", 12, "either 'instances' or 'build'"),
    "neither": (", instances: test.jsonl", "", 12, "either 'instances' or 'build'"),
    "build-key": ("instances: test.jsonl", "build: {leak: 2}", 12, "did you mean 'leaks'?"),
    "build-option": ("instances: test.jsonl", "build: {leaks: 2, negatives: far}", 12, "no negatives called 'far'"),
    "recipe": ("model: knrm,", "model: knrm, recipe: capreolos,", 14, "did you mean 'capreolus'?"),
    "change": ("batch: 4", "batch: many", 14, "batch is 'many'"),
    "change-range": ("batch: 4", "batch: 0", 14, "batch is 0"),
    "model-sizes": ("model: knrm,", "model: knrm, sizes: [80],", 14, "no set has a size of 80"),
    "model-sets": ("model: knrm,", "model: knrm, sets: [nane],", 14, "did you mean 'none'?"),
    "max-whole": ("model: knrm,", "model: knrm, aggregate: [max],", 14, "max over whole documents"),
    "policy": ("depth: 8", "passages: {policy: slidin}", 8, "no passage policy 'slidin'"),
    "preset": ("depth: 8", "first_stage: {preset: lucene}", 8, "'lucene' is unknown"),
    "run-and-model": ("depth: 8", "first_stage: {run: a.run, model: bm25}", 8, "a run, and how to search"),
    "field": ("depth: 8", "field: titel", 8, "topics have no 'titel'"),
    "seeds": ("seeds: [0, 1]", "seeds: [0, -1]", 15, "-1 is too small"),
    "seeds-model": ("seeds: [0, 1]", "seeds: {knm: [0]}", 15, "did you mean 'knrm'?"),
    "measure": ("nDCG@10, P@1", "nDCG@10, nDCH@5", 16, "nDCH"),
    "baseline": ("measures:", "report: {baseline: nothing}\nmeasures:", 16, "'nothing' is unknown"),
    "alias": ("{kind: test", "{<<: *other, kind: test", 12, "no YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    old, new, line, message = FAULTS[name]
    assert old in DESIGN
    path = write_example(tmp_path)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        read_design(path)
    assert message in str(raised.value)
    assert raised.value.where == str(path)
    assert raised.value.line == line, str(raised.value)


def test_what_is_no_file_of_text_or_no_setting(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_design(tmp_path / "absent.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(InputError, match="no UTF-8"):
        read_design(tmp_path / "bytes.yaml")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(InputError, match="no mapping"):
        read_design(tmp_path / "empty.yaml")
    path = write_example(tmp_path)
    with pytest.raises(InputError, match=r"--set: 'collections.note.docs': the file has no 'note' there. did you mean"):
        read_design(path, settings={"collections.note.docs": "x"})
    with pytest.raises(InputError, match=r"--set: collections.notes.depth: 'much' is no whole number"):
        read_design(path, settings={"collections.notes.depth": "much"})
    with pytest.raises(InputError, match="--set: models: nothing in it"):
        read_design(path, settings={"models": "{}"})
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
    )
    (tmp_path / "bomb.yaml").write_text(bomb)
    with pytest.raises(InputError, match="too many values"):
        read_design(tmp_path / "bomb.yaml")


def test_ready_designs_can_be_read_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ready_designs()
    assert {"leakage", "leakage-larger", "leakage-small"} <= {one.name for one in found.designs}
    for one in found.designs:
        assert one.says and "#" not in one.says
        copied = copy_design(one.name, tmp_path)
        for name in {part.partition("}")[0].partition(":-")[0] for part in one.text.split("${")[1:]}:
            monkeypatch.setenv(name, str(tmp_path))
        assert replace(read_design(copied), file=None).sets
    with pytest.raises(InputError, match="is there already"):
        copy_design("leakage", tmp_path)
    with pytest.raises(InputError, match="no design 'other'"):
        copy_design("other", tmp_path)
    # The paper's grid: 72 training sets, five models, five seeds.
    paper = read_design(tmp_path / "leakage.yaml")
    assert len(expand(paper)) == 1800
    assert len({(one.set.name, one.size) for one in expand(paper)}) == 72
