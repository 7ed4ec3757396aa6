"""Design files: what they mean, and every fault with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from grid_example import DESIGN, write_example
from places import ROOT
from truerank.errors import InputError
from truerank_lab.grid import expand, read_design
from truerank_lab.grid.plan import recipe_of
from truerank_lab.grid.results import write_design
from truerank_lab.ready import designs as ready_designs


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


#: A second collection like the first, and what joins them.
_MORE = "  more: {<<: *c}\nbenchmarks:\n"
_BOTH = "  both: {collections: [notes, more]}\n"
#: What is replaced by what, the line that is named, and a part of the message.
FAULTS = {
    "no-yaml": ("sizes: [24, 60], instances: none", "sizes: [24, 60, instances: none", 11, "no YAML"),
    "tabs": ("    docs: docs", "\tdocs: docs", 5, "no YAML"),
    "unknown-key": ("qrels: qrels", "qrel: qrels", 7, "unknown key 'qrel'. did you mean 'qrels'?"),
    "unknown-top": ("measures:", "measure:", 16, "did you mean 'measures'?"),
    "twice": ("    depth: 8", "    depth: 8\n    depth: 9", 9, "'depth' occurs twice"),
    "no-docs": ("    docs: docs.jsonl\n", "", 4, "no 'docs'. name the documents"),
    "no-name": ("name: tiny\n", "", 2, "no 'name'"),
    "no-models": ("models:\n  knrm: {", "models: {}\nmore: {", 14, "unknown key 'more'"),
    "empty-models": ("models:\n", "models: {}\nignored:\n", 14, "unknown key 'ignored'"),
    "list": ("models:\n  knrm:", "models:\n  - knrm:", 13, "no mapping"),
    "bad-name": ("  knrm: {", "  kn.rm: {", 14, "the name 'kn.rm'"),
    "depth": ("depth: 8", "depth: eight", 8, "expected an integer, got 'eight'"),
    "depth-0": ("depth: 8", "depth: 0", 8, "0 is too small"),
    "folds": ("folds: 2", "folds: 1", 9, "1 is too small"),
    "kind": ("{kind: test", "{kind: tset", 12, "'tset' is unknown. did you mean 'test'?"),
    "for": ("kind: test, for: notes", "kind: test, for: note", 12, "did you mean 'notes'?"),
    "odd": ("sizes: [24, 60], instances: test", "sizes: [25, 60], instances: test", 12, "give an even number"),
    "size-twice": ("sizes: [24, 60], instances: test", "sizes: [24, 24], instances: test", 12, "occurs twice"),
    "both": ("instances: test.jsonl", "instances: test.jsonl, build: {leaks: 2}", 12, "either 'instances' or 'build'"),
    "neither": (", instances: test.jsonl", "", 12, "either 'instances' or 'build'"),
    "build-key": ("instances: test.jsonl", "build: {leak: 2}", 12, "did you mean 'leaks'?"),
    "build-option": ("instances: test.jsonl", "build: {leaks: 2, k: 0}", 12, "k: must be at least 1, got 0"),
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
    "rel": ("depth: 8", "rel: 0", 8, "collections.notes.rel: 0 is too small"),
    "own-measure": ("depth: 8", "measures: [nDCH@5]", 8, "nDCH"),
    "topic-count": ("depth: 8", "topic_count: many", 8, "expected an integer, got 'many'"),
    "checkpoint-and-rows": ("instances: test.jsonl", "instances: test.jsonl, checkpoint: x", 12, "(or 'checkpoint')"),
    "checkpoint-size": ("instances: test.jsonl", "checkpoint: monot5:x", 12, "a checkpoint is not trained"),
    "placeholder": ("none.jsonl", "'none-{sede}.jsonl'", 11, "there is no value for {sede}. known: {model} and {seed}"),
    "drawn-leak": ("test.jsonl", "'test-{seed}.jsonl'", 12, "other rows for each seed"),
    "drawn-fill": (
        "sizes: [24, 60], instances: none.jsonl}\n  test: {kind: test, for: notes, sizes: [24, 60], "
        "instances: test.jsonl",
        "sizes: [24, 60], instances: 'none-{seed}.jsonl'}\n  test: {kind: test, for: notes, sizes: [24, 60], build: "
        "{fill: none, topics: topics.tsv, qrels: qrels.txt, docs: docs.jsonl, leaks: 2}",
        12, "'none' has other rows for each training",
    ),
    "benchmark-alone": ("sets:", "benchmarks:\n  both: {collections: [notes]}\nsets:", 11, "one collection alone"),
    "benchmark-member": ("sets:", "benchmarks:\n  both: {collections: [nots]}\nsets:", 11, "did you mean 'notes'?"),
    "benchmark-key": ("sets:", "benchmarks:\n  both: {collection: [notes]}\nsets:", 11, "did you mean 'collections'?"),
    "benchmark-folds": (
        "sets:", _MORE + "  both: {collections: [notes, more], folds: 1}\nsets:", 12, "1 is too small",
    ),
    "benchmark-name": (
        "sets:", _MORE + "  more: {collections: [notes, more]}\nsets:", 12, "is a collection, too",
    ),
    "benchmark-rel": (
        "sets:", _MORE.replace("}", ", rel: 2}") + _BOTH + "sets:", 12, "their rel differs (1, 2)",
    ),
    "benchmark-twice": (
        "sets:",
        "  more: {<<: *c}\n  third: {<<: *c}\nbenchmarks:\n  both: {collections: [notes, more]}\n"
        "  other: {collections: [more, third]}\nsets:",
        14, "'more' is in another benchmark already",
    ),
    "benchmark-part": (
        "sets:", _MORE + _BOTH + "sets:", 14, "only notes of the benchmark both",
    ),
    "alias": ("{kind: test", "{<<: *other, kind: test", 12, "no YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    old, new, line, message = FAULTS[name]
    assert old in DESIGN
    path = write_example(tmp_path)
    text = path.read_text().replace("  notes:", "  notes: &c", 1) if "*c" in new else path.read_text()
    path.write_text(text.replace(old, new, 1))
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
    with pytest.raises(InputError, match=r"set: 'collections.note.docs': the file has no 'note' there. did you mean"):
        read_design(path, settings={"collections.note.docs": "x"})
    with pytest.raises(InputError, match=r"set: collections.notes.depth: expected an integer, got 'much'"):
        read_design(path, settings={"collections.notes.depth": "much"})
    with pytest.raises(InputError, match="--set: models: nothing in it"):
        read_design(path, settings={"models": "{}"})
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
    )
    (tmp_path / "bomb.yaml").write_text(bomb)
    with pytest.raises(InputError, match="too many values"):
        read_design(tmp_path / "bomb.yaml")


def test_the_design_in_the_documentation_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "lab" / "docs" / "guide.md").read_text(encoding="utf-8")
    monkeypatch.setenv("DATA", "/data")
    (tmp_path / "documented.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0])
    design = read_design(tmp_path / "documented.yaml")
    assert [one.name for one in design.reported] == ["both"]
    # Two sets of two sizes and five seeds, one of one size, monoT5 with two seeds and as it was published.
    assert len(expand(design)) == 2 * 2 * 5 + 5 + 2 + 1


def test_benchmarks_draws_and_checkpoints_are_expanded(tmp_path: Path) -> None:
    text = (
        DESIGN.replace("  notes:", "  notes: &notes")
        .replace("sets:\n", "  more: {<<: *notes, rel: 2, measures: [AP]}\n  third: {<<: *notes}\nbenchmarks:\n"
                 "  two: {collections: [notes, third], folds: 3}\nsets:\n"
                 "  ready: {kind: other, label: none, for: [two, more], checkpoint: 'monot5:some/model'}\n", 1)
        .replace("kind: none, for: notes, sizes: [24, 60], instances: none.jsonl",
                 "kind: none, for: two, sizes: [24, 60], instances: '{model}/rows-{seed}.jsonl'")
        .replace("kind: test, for: notes", "kind: test, for: more")
        .replace("  knrm: {", "  other: {model: monot5:t5-base, sizes: [24]}\n  knrm: {sets: [none, test], ")
    )  # fmt: skip
    design = read_design(write_example(tmp_path, text))
    assert [(one.name, one.collections, one.folds) for one in design.reported] == [
        ("two", ("notes", "third"), 3),
        ("more", ("more",), 2),
    ]
    assert design.set("ready").collections == ("notes", "third", "more")
    assert (design.measures_of("more"), design.measures_of("third")) == (("AP",), ("nDCG@10", "P@1"))
    assert (design.collection("more").rel, design.collection("notes").rel) == (2, 1)
    trainings = expand(design)
    # The checkpoint once: of one model, under one seed, although the model's only size is another.
    assert [(one.model.name, one.size, one.seed) for one in trainings if one.set.name == "ready"] == [("other", 0, 0)]
    drawn = {(one.model.name, one.seed): one.drawn for one in trainings if one.set.name == "none"}
    assert drawn["knrm", 1].instances == str(tmp_path / "knrm" / "rows-1.jsonl")
    assert sorted(one.name for one in drawn.values()) == ["none.knrm.0", "none.knrm.1", "none.other.0", "none.other.1"]
    assert trainings[-1].drawn is trainings[-1].set
    write_design(tmp_path / "out", design)
    assert read_design(tmp_path / "out" / "design.yaml") == design


def test_changes_are_checked_together(tmp_path: Path) -> None:
    """A batch too small for the recipe's own parts is none for the parts that are given with it."""
    bert = "models:\n  bert: {model: monobert:packaged, changes: {batch: 4, accumulate: 1}}\n"
    assert read_design(write_example(tmp_path, DESIGN.replace("models:\n", bert))).model("bert").changes["batch"] == 4
    with pytest.raises(InputError, match="a batch of 4 cannot be cut into 8 parts"):
        read_design(write_example(tmp_path, DESIGN.replace("models:\n", bert.replace(", accumulate: 1", ""))))


def test_a_checkpoint_stands_for_one_model(tmp_path: Path) -> None:
    text = DESIGN.replace("instances: none.jsonl", "checkpoint: 'monot5:x'").replace("sizes: [24, 60], check", "check")
    two = text.replace("models:\n", "models:\n  pacrr: {model: pacrr, vectors: vectors.txt}\n")
    with pytest.raises(InputError, match=r"design.yaml:11: sets.none.checkpoint: one checkpoint for 2 models"):
        read_design(write_example(tmp_path, two))


#: What the papers and the reference facts count: sets of rows that are trained on, rankers, seeds, trainings, cells,
#: and topics by benchmark. Robust04 has 250 topics, of which 249 have judgments, as ir_datasets has them.
PAPERS = {
    # 3 test scenarios x 3 kinds x 8 sizes, five models, five seeds; section 4.
    "leakage": (72, 5, 5, 1800, 1800, {"robust04": 249, "cc17": 50, "cc18": 50}),
    # Section 4, trained models: five that were kept and four that were not; no seeds are stated, these are the paper's.
    "pilot": (1, 9, 5, 45, 45, {"robust04": 249}),
    # Table 4: five sets of queries, three strategies; Table 5: one set, five strategies; ten seeds each, 88 topics.
    "transfer": (20, 2, 10, 200, 200, {"clueweb12": 100, "dl19-20": 88, "robust04": 249}),
    # Section 5.1: r = 1 and r = 5, and the published checkpoint.
    "survivorship": (2, 1, 1, 2, 3, {"dev-small": 6980, "dl19": 43, "dl20": 54, "robust04": 249}),
}


@pytest.mark.parametrize("name", PAPERS)
def test_ready_designs_count_what_the_papers_count(name: str) -> None:
    found = next(one for one in ready_designs().designs if one.name == name)
    assert tuple(found.size) == PAPERS[name]
    assert found.paper


def test_topics_of_ready_designs_are_those_of_ir_datasets() -> None:
    """The numbers of topics beside each source, against the counts that ir_datasets ships."""
    ir_datasets = pytest.importorskip("ir_datasets")
    known = json.loads((Path(ir_datasets.__file__).parent / "etc" / "metadata.json").read_text())
    checked = 0
    for one in ready_designs().designs:
        text = yaml.safe_load(one.text)
        for name, collection in text["collections"].items():
            spec = collection["topics"].removeprefix("irds:")
            if spec in known and "topic_count" in collection:
                # One topic of Robust04 has no judgments.
                unjudged = 1 if "robust" in spec else 0
                assert collection["topic_count"] == known[spec]["queries"]["count"] - unjudged, name
                checked += 1
    assert checked == 11


def test_the_designs_of_the_papers_say_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no number tells: measures and grades, the first stage, passages, recipes, and how trainings are repeated."""
    for name in ("TRIPLES", "RUNS", "SELECTED", "CLUEWEB", "AUDIT", "LABELS", "GLOVE"):
        monkeypatch.setenv(name, f"/{name}")
    read = {name: read_design(ready_designs(name, out=tmp_path).written) for name in PAPERS}
    survivorship = read["survivorship"]
    official = {"dev-small": (("RR@10",), 1), "robust04": (("nDCG@20",), 1)} | dict.fromkeys(
        ("dl19", "dl20"), (("nDCG@10", "RR", "AP"), 2)
    )
    assert {one.name: (one.measures, one.rel) for one in survivorship.collections} == official
    assert survivorship.set("all").checkpoint == "monot5:castorini/monot5-base-msmarco"
    assert [one.sizes for one in survivorship.sets] == [(256000,), (256000,), ()]
    robust = survivorship.collection("robust04")
    assert (robust.topic_field, robust.depth, robust.aggregate) == ("description", 100, "max")
    recipe = recipe_of(survivorship.model("monot5"))
    assert (recipe.learning_rate, 2 * recipe.batch) == (5e-5, 8)

    transfer = read["transfer"]
    for one in transfer.collections:
        stage = one.first_stage
        assert one.depth == 100 and (stage.run or (stage.model, stage.preset) == ("bm25", "terrier"))
    assert [(one.name, one.folds) for one in transfer.reported] == [("clueweb12", 5), ("dl19-20", 5), ("robust04", 5)]
    assert {one.sizes for one in transfer.sets if one.name.startswith("v2-over-v1-first")} == {(2 * 9991,)}
    assert {one.sizes for one in transfer.sets if not one.name.startswith("v2-over-v1-first")} == {(20000,)}
    # Ten trainings on ten draws: five on first passages, tested on them, five on the best.
    for name in ("random-min", "wayback-version-V1"):
        own = [one for one in expand(transfer) if one.set.name == name]
        file = name.partition("-")[2]
        assert [(one.variants, one.seed, one.drawn.build["rows"]) for one in own] == [
            ((aggregate,), seed, f"/SELECTED/{name.partition('-')[0]}/{part}/seed-{seed}/{file}.parquet")
            for part, aggregate, seeds in (("first", "first", range(5)), ("best", "max", range(5, 10)))
            for seed in seeds
        ]
    labels = [one.label.partition(" | ") for one in transfer.sets]
    assert {group for group, _, _ in labels} == {
        "V1>>V2 (FirstP)", "V1>>V2 (MaxP)", "V2>>V1 (FirstP)", "V2>>V1 (MaxP)", "Random", "Wayback M.",
    }  # fmt: skip
    assert {one.measures for one in (transfer,)} == {("nDCG@10", "P@10")}
    assert {one.model for one in transfer.models} == {"monot5:t5-base"}
    assert {one.model.partition(":")[0] for one in read["pilot"].models} == {
        "cedr", "duet", "hint", "knrm", "monobert", "monot5", "pacrr", "parade", "tk",
    }  # fmt: skip
    assert read["pilot"].sets[0].sizes == (32000,)


def test_ready_designs_can_be_read_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ready_designs()
    papers = {"leakage", "pilot", "transfer", "survivorship"}
    assert {one.name for one in found.designs} == {*papers, *(f"{name}-small" for name in papers), "versions-small"}
    for one in found.designs:
        assert one.says and "#" not in one.says
        copied = ready_designs(one.name, out=tmp_path).written
        for name in {part.partition("}")[0].partition(":-")[0] for part in one.text.split("${")[1:]}:
            monkeypatch.setenv(name, str(tmp_path))
        assert replace(read_design(copied), file=None).sets
    with pytest.raises(InputError, match="is there already"):
        ready_designs("leakage", out=tmp_path)
    with pytest.raises(InputError, match="no design 'other'"):
        ready_designs("other", out=tmp_path)
    # The paper's grid: 72 training sets, five models, five seeds.
    paper = read_design(tmp_path / "leakage.yaml")
    assert len(expand(paper)) == 1800
    assert len({(one.set.name, one.size) for one in expand(paper)}) == 72
