"""Design files: what they mean, and every fault with the keys that lead to it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from grid_example import DESIGN, write_example
from truerank.errors import InputError
from truerank_lab.grid.design import Design, expand, read_design
from truerank_lab.grid.results import write_plan
from truerank_lab.ready import ready

VARIABLES = ("TRIPLES", "RUNS", "SELECTED", "CLUEWEB", "AUDIT", "LABELS", "GLOVE", "PREPARED", "TRUERANK_SHARED")


def test_a_design_says_what_is_run(tmp_path: Path) -> None:
    design = read_design(write_example(tmp_path))
    cells = expand(design)
    # two sets, two sizes, one model, two seeds
    assert len(cells) == 8
    assert cells.select("set", "size", "seed").head(4).rows() == [
        ("none", 24, 0), ("none", 24, 1), ("none", 60, 0), ("none", 60, 1),
    ]  # fmt: skip
    assert design.collection("notes").docs == str(tmp_path / "docs.jsonl")
    assert (design.report.kind, design.report.baseline) == ("leakage", "none")
    assert [(one.kind, one.label) for one in design.sets] == [("none", "none"), ("test", "test")]


def test_written_out_it_is_the_same_design(tmp_path: Path) -> None:
    text = DESIGN.replace(
        "models:",
        "models:\n  bert: {model: monobert:packaged, aggregate: max, policy: 'sliding:4:2', sizes: [60]}",
    )
    design = read_design(write_example(tmp_path, text), settings={"models.knrm.seeds": [3]})
    written(design, tmp_path / "out")
    assert read_design(tmp_path / "out" / "design.yaml") == design
    assert (design.model("bert").seeds, design.model("knrm").seeds) == ((0, 1), (3,))
    assert len(expand(design).filter(model="bert")) == 4


def written(design: Design, folder: Path) -> None:
    folder.mkdir()
    names = ("collection", "set", "topic_id", "doc_id", "relevant", "rows")
    write_plan(folder, design, expand(design).with_columns(cell="set"), pl.DataFrame(schema=list(names)))


def test_places_come_from_settings_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_example(tmp_path, DESIGN.replace("${HERE}/docs.jsonl", "${NOTES}/docs.jsonl"))
    # A variable that a setting replaces need not be set.
    changed = read_design(path, settings={"collections.notes.docs": "${HERE}/x.jsonl", "seeds": [4]})
    assert changed.collection("notes").docs == str(tmp_path / "x.jsonl") and changed.model("knrm").seeds == (4,)
    monkeypatch.setenv("NOTES", "/data")
    assert read_design(path).collection("notes").docs == "/data/docs.jsonl"
    with pytest.raises(InputError, match="cannot be read"):
        read_design(tmp_path / "absent.yaml")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(InputError, match="no mapping"):
        read_design(tmp_path / "empty.yaml")


def test_the_design_in_the_guide_can_be_read(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "docs" / "guide.md").read_text(encoding="utf-8")
    (tmp_path / "design.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0])
    design = read_design(tmp_path / "design.yaml")
    assert [one.name for one in design.reported] == ["both"]
    # Two sets of two sizes and five seeds, one of one size, monoT5 with two seeds and as it was published.
    assert len(expand(design)) == 2 * 2 * 5 + 5 + 2 + 1


#: What is replaced by what, and a part of the message.
FAULTS = {
    "no-yaml": ("sizes: [24, 60], instances", "sizes: [24, 60, instances", "no YAML"),
    "unknown-key": ("qrels: $", "qrel: $", "collections.notes: unknown key 'qrel'. did you mean 'qrels'?"),
    "unknown-top": ("measures:", "measure:", "did you mean 'measures'?"),
    "no-docs": ("    docs: ${HERE}/docs.jsonl\n", "", "collections.notes: no 'docs'"),
    "no-name": ("name: tiny\n", "", "name: not given"),
    "list": ("models:\n  knrm:", "models:\n  - knrm:", "models: no mapping"),
    "bad-name": ("  knrm: {", "  kn.rm: {", "the name 'kn.rm'"),
    "depth": ("depth: 8", "depth: eight", "collections.notes.depth: expected an integer, got 'eight'"),
    "depth-0": ("depth: 8", "depth: 0", "must be at least 1, got 0"),
    "kind": ("{kind: test", "{kind: tset", "sets.test.kind: 'tset' is not one of the choices"),
    "collections": ("kind: test, collections: notes", "kind: test, collections: note", "did you mean 'notes'?"),
    "odd": ("test, collections: notes, sizes: [24", "test, collections: notes, sizes: [25", "an odd number"),
    "both": ("${HERE}/test.jsonl'", "${HERE}/test.jsonl', build: {leaks: 2}", "has one of instances, build"),
    "neither": (", instances: '${HERE}/test.jsonl'", "", "one of instances, build, checkpoint"),
    "build-key": ("instances: '${HERE}/test.jsonl'", "build: {leak: 2}", "sets.test.build: unknown key 'leak'"),
    "build-option": ("instances: '${HERE}/test.jsonl'", "build: {leaks: 2, k: 0}", "must be at least 1, got 0"),
    "recipe": ("model: knrm,", "model: knrm, recipe: capreolos,", "capreolos"),
    "change": ("batch: 4", "batch: many", "batch is 'many'"),
    "model-sets": ("model: knrm,", "model: knrm, sets: [nane],", "did you mean 'none'?"),
    "max-whole": ("depth: 8", "aggregate: max", "max over whole documents"),
    "policy": ("depth: 8", "policy: slidin", "no passage policy 'slidin'"),
    "measure": ("nDCG@10, P@1", "nDCG@10, nDCH@5", "nDCH"),
    "baseline": ("measures:", "report: {baseline: nothing}\nmeasures:", "report.baseline: unknown 'nothing'"),
    "checkpoint-size": ("instances: '${HERE}/test.jsonl'", "checkpoint: monot5:x", "a checkpoint is not trained"),
    "placeholder": ("none.jsonl", "none-{sede}.jsonl", "there is no value for {sede}. known: {model} and {seed}"),
    "drawn-leak": ("test.jsonl", "test-{seed}.jsonl", "a leak is the same for all trainings"),
    "variable": ("${HERE}/docs.jsonl", "${ABSENT}/docs", "collections.notes.docs: the variable ABSENT is not set"),
    "benchmark-rel": (
        "sets:", "  more: {<<: *c, rel: 2}\nbenchmarks:\n  both: {collections: [notes, more]}\nsets:",
        "their rel differs",
    ),
    "benchmark-part": (
        "sets:", "  more: {<<: *c}\nbenchmarks:\n  both: {collections: [notes, more]}\nsets:",
        "only notes of the benchmark both",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named_with_its_keys(name: str, tmp_path: Path) -> None:
    old, new, message = FAULTS[name]
    assert old in DESIGN
    path = write_example(tmp_path)
    text = path.read_text().replace("  notes:", "  notes: &c", 1) if "*c" in new else path.read_text()
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        read_design(path)
    assert message in str(raised.value)
    assert raised.value.where == str(path)


def test_benchmarks_draws_and_checkpoints_are_expanded(tmp_path: Path) -> None:
    text = (
        DESIGN.replace("  notes:", "  notes: &notes")
        .replace("sets:\n", "  more: {<<: *notes, rel: 2, measures: [AP]}\n  third: {<<: *notes}\nbenchmarks:\n"
                 "  two: {collections: [notes, third], folds: 3}\nsets:\n"
                 "  ready: {kind: other, label: none, collections: [two, more], checkpoint: 'monot5:some/model'}\n", 1)
        .replace("kind: none, collections: notes, sizes: [24, 60], instances: '${HERE}/none.jsonl'",
                 "kind: none, collections: two, sizes: [24, 60], instances: '${HERE}/{model}/rows-{seed}.jsonl'")
        .replace("kind: test, collections: notes", "kind: test, collections: more")
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
    cells = expand(design)
    # The checkpoint once: of one model, under one seed, although the model's only size is another.
    assert cells.filter(set="ready").select("model", "size", "seed").rows() == [("other", 0, 0)]
    of_none = cells.filter(set="none").select("model", "seed").unique(maintain_order=True).rows()
    drawn = {key: design.set("none").drawn(*key) for key in of_none}
    assert drawn["knrm", 1].instances == str(tmp_path / "knrm" / "rows-1.jsonl")
    assert sorted(one.name for one in drawn.values()) == ["none.knrm.0", "none.knrm.1", "none.other.0", "none.other.1"]
    assert design.set("test").drawn("knrm", 0) is design.set("test")
    written(design, tmp_path / "out")
    assert read_design(tmp_path / "out" / "design.yaml") == design


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


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, f"/{name}")


@pytest.mark.parametrize("name", PAPERS)
def test_ready_designs_count_what_the_papers_count(name: str) -> None:
    design = read_design(ready(name))
    cells = expand(design)
    trained = cells.filter(pl.col("recipe") != "no training")
    topics = {one.name: sum(design.collection(each).topic_count or 0 for each in one.collections)
              for one in design.reported}  # fmt: skip
    found = (trained.select("set", "size").n_unique(), cells["model"].n_unique(), trained["seed"].n_unique())
    assert (*found, len(trained), len(cells), topics) == PAPERS[name]


@pytest.mark.parametrize("name", PAPERS)
def test_the_designs_in_small_can_be_read(name: str) -> None:
    assert len(expand(read_design(ready(f"{name}-small")))) > 10


def test_topics_of_ready_designs_are_those_of_ir_datasets() -> None:
    """The numbers of topics beside each source, against the counts that ir_datasets ships."""
    ir_datasets = pytest.importorskip("ir_datasets")
    known = json.loads((Path(ir_datasets.__file__).parent / "etc" / "metadata.json").read_text())
    checked = 0
    for one in (one for name in PAPERS for one in read_design(ready(name)).collections):
        spec = one.topics.removeprefix("irds:")
        if spec in known:
            # One topic of Robust04 has no judgments.
            assert one.topic_count == known[spec]["queries"]["count"] - ("robust" in spec), one.name
            checked += 1
    assert checked == 11


def test_the_designs_of_the_papers_say_how() -> None:
    """What no number tells: measures and grades, the first stage, passages, recipes, and how trainings are repeated."""
    read = {name: read_design(ready(name)) for name in PAPERS}
    survivorship = read["survivorship"]
    official = {"dev-small": (("RR@10",), 1), "robust04": (("nDCG@20",), 1)} | dict.fromkeys(
        ("dl19", "dl20"), (("nDCG@10", "RR", "AP"), 2)
    )
    assert {one.name: (one.measures, one.rel) for one in survivorship.collections} == official
    assert survivorship.set("all").checkpoint == "monot5:castorini/monot5-base-msmarco"
    assert [one.sizes for one in survivorship.sets] == [(256000,), (256000,), ()]
    robust = survivorship.collection("robust04")
    assert (robust.field, robust.depth, robust.aggregate) == ("description", 100, "max")
    recipe = survivorship.model("monot5").trained_by
    assert (recipe.learning_rate, 2 * recipe.batch) == (5e-5, 8)

    transfer = read["transfer"]
    for one in transfer.collections:
        assert one.depth == 100 and (one.run or one.preset == "terrier")
    assert [(one.name, one.folds) for one in transfer.reported] == [("clueweb12", 5), ("dl19-20", 5), ("robust04", 5)]
    assert {one.sizes for one in transfer.sets if one.name.startswith("v2-over-v1-first")} == {(2 * 9991,)}
    assert {one.sizes for one in transfer.sets if not one.name.startswith("v2-over-v1-first")} == {(20000,)}
    # Ten trainings on ten draws: five on first passages, tested on them, five on the best.
    for name in ("random-min", "wayback-version-V1"):
        file, own = name.partition("-")[2], transfer.set(name)
        rows = expand(transfer).filter(set=name).select("model", "seed").rows()
        assert [(transfer.model(model).aggregate, seed, own.drawn(model, seed).instances) for model, seed in rows] == [
            (aggregate, seed, f"/SELECTED/{name.partition('-')[0]}/{part}/seed-{seed}/{file}.parquet")
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
