"""Import and export: every format both ways, nothing lost, nothing doubled, models marked; and the commands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from places import DATA
from truerank import judge
from truerank.cli import main
from truerank.errors import InputError
from truerank.judging import Annotator, Draft, Item, Store, Text, load_scheme, read_items
from truerank.sources import read_labels, read_qrels

SAME, FEWER, OTHER = "Title-Identical", "Title-Generalization", "Different Topic"
AT = "2022-03-0{}T10:00:00.000Z"
FORMATS = ["jsonl", "csv", "doccano"]
ENDINGS = {"jsonl": "jsonl", "csv": "csv", "doccano": "jsonl", "qrels": "qrels"}
PEOPLE = [Annotator("ann"), Annotator("bob"), Annotator("gpt", "model", "gpt-x"), Annotator("judge", "adjudicator")]

Command = Callable[..., tuple[int, str, str]]


def pairs(count: int = 5) -> list[Item]:
    texts = [
        "plain",
        '"quoted", with | and ;',
        "<script>alert(1)</script>",
        "two\nlines\tand tab",
        "\u202eabc\u202c é 漢",
    ]
    return [
        Item(
            f"i{n}", str(n // 2), f"title {n // 2}", "desc", "narr", "variant", (Text("query", texts[n % 5], f"q{n}"),),
            "news", "(0.8, 1]", 0.9, 0.25, {"sources": ["log"]},
        )
        for n in range(count)
    ]  # fmt: skip


def store_of(path: Path, items: list[Item] | None = None, scheme: str = "leakage") -> Store:
    return Store.create(path, load_scheme(scheme), items or pairs(), {"ann": ["i0"]}, annotators=PEOPLE)


def judged(path: Path) -> Store:
    store = store_of(path)
    store.record_history([
        Draft("i0", "ann", "label", (SAME, "Variant-Identical"), "a, \"b\"\nc", "", 3.25, "", AT.format(1)),
        Draft("i0", "bob", "label", (OTHER,), at=AT.format(2)),
        Draft("i0", "judge", "adjudicate", (FEWER,), at=AT.format(3)),
        Draft("i1", "ann", "skip", reason="unclear", at=AT.format(4)),
        Draft("i1", "gpt", "label", (SAME,), at=AT.format(5)),
        Draft("i2", "ann", "label", (SAME,), at=AT.format(6)),
        Draft("i2", "ann", "label", (FEWER,), at=AT.format(7)),
        Draft("i3", "ann", "label", (SAME, OTHER), at=AT.format(8)),  # as other tools allow
        Draft("i3", "bob", "label", (SAME,), at=AT.format(9)),
        Draft("i3", "bob", "undo", at=AT.format(9)),
    ], [0] * 9 + [-9])  # fmt: skip
    return store


def said(store: Store) -> list[tuple[object, ...]]:
    roles = {person.name: (person.role, person.about) for person in store.annotators()}
    return [(*s, roles[s.annotator]) for s in store.standing()]


@pytest.mark.parametrize("form", FORMATS)
def test_what_stands_goes_out_and_comes_back(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"out.{ENDINGS[form]}"
    with judged(tmp_path / "a") as store:
        exported = judge.export(store, path, file_format=form)  # type: ignore[arg-type]
        assert (exported.written, exported.open, exported.models) == (7, 1, ("gpt",))
        before = said(store)
        again = judge.import_(store, path)
        assert (again.present, again.added, again.unmatched) == (7, {}, ())
    with Store.create(tmp_path / "b", load_scheme("leakage"), pairs()) as other:
        outcome = judge.import_(other, path)
        assert outcome.added == {"ann": 4, "bob": 1, "gpt": 1, "judge": 1}
        assert (outcome.unlabelled, outcome.irregular, outcome.models) == (1, 1, ("gpt",))
        after = said(other)
        assert after == before
        assert judge.import_(other, path).added == {}
        again_path = tmp_path / f"again.{ENDINGS[form]}"
        judge.export(other, again_path, file_format=form)  # type: ignore[arg-type]
        assert again_path.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_is_also_a_source_of_items(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"out.{ENDINGS[form]}"
    with judged(tmp_path / "a") as store:
        judge.export(store, path, file_format=form)  # type: ignore[arg-type]
    items = {item.item_id: item for item in read_items(str(path), load_scheme("leakage"))}
    for item in pairs():
        found = items[item.item_id]
        assert (found.topic_id, found.title, found.texts) == (item.topic_id, item.title, item.texts)
        assert (found.stratum, found.dataset, found.score, found.probability) == ("(0.8, 1]", "news", 0.9, 0.25)
        assert found.data["sources"] == ["log"]


@pytest.mark.parametrize("form", FORMATS)
def test_the_audits_read_an_export_as_labels(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"out.{ENDINGS[form]}"
    with judged(tmp_path / "a") as store:
        judge.export(store, path, file_format=form, which="majority")  # type: ignore[arg-type]
    labels = [(label.topic_id, label.query_text, label.labels, label.probability) for label in read_labels(str(path))]
    assert [(row[0], row[2], row[3]) for row in labels] == [
        ("0", (FEWER,), 0.25), ("1", (FEWER,), 0.25), ("1", (SAME, OTHER), 0.25),
    ]  # fmt: skip
    assert [row[1] for row in labels] == [pairs()[n].text("query") for n in (0, 2, 3)]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_the_whole_history_goes_out_and_comes_back(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"events.{form}"
    with judged(tmp_path / "a") as store:
        assert judge.export(store, path, which="events").written == 10
        assert judge.import_(store, path).added == {}
        before, history = said(store), list(store.events())
    with Store.create(tmp_path / "b", load_scheme("leakage"), pairs()) as other:
        assert sum(judge.import_(other, path).added.values()) == 10
        assert said(other) == before
        assert [event._replace(token="") for event in other.events()] == [e._replace(token="") for e in history]
        assert judge.import_(other, path).added == {}


def test_rules_for_one_answer(tmp_path: Path) -> None:
    with store_of(tmp_path / "a") as store:
        store.add_annotator("cid")
        for item_id, said_by in {
            "i0": {"ann": SAME, "bob": SAME, "cid": OTHER}, "i1": {"ann": SAME, "bob": OTHER, "gpt": OTHER},
            "i2": {"ann": SAME, "bob": SAME}, "i3": {"gpt": SAME},
        }.items():  # fmt: skip
            for name, label in said_by.items():
                store.record(item_id, name, "label", [label])

        def rows(**more: object) -> tuple[dict[str, list[object]], object]:
            result = judge.export(store, tmp_path / "x.jsonl", **more)  # type: ignore[arg-type]
            found = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
            return {row["item_id"]: [row["labels"][0], row["by"], row["role"]] for row in found}, result

        found, result = rows(which="majority")
        assert found == {"i0": [SAME, "ann, bob", "person"], "i2": [SAME, "ann, bob", "person"]}
        assert (result.left_out, result.open) == (("i1",), 2)  # type: ignore[attr-defined]
        found, result = rows(which="adjudicated")
        assert set(found) == {"i2"} and result.left_out == ("i0", "i1")  # type: ignore[attr-defined]
        assert "without one the labels on which all" in repr(result)  # type: ignore[attr-defined]
        found, _ = rows(which="majority", include_models=True)
        assert found["i1"] == [OTHER, "bob, gpt (model)", "person"] and found["i3"] == [SAME, "gpt (model)", "model"]
        store.record("i1", "judge", "adjudicate", [FEWER])
        found, _ = rows(which="adjudicated")
        assert found["i1"] == [FEWER, "judge", "adjudicator"]
        found, _ = rows(which="majority", annotators=["bob"])
        assert {item_id: row[0] for item_id, row in found.items()} == {"i0": SAME, "i1": OTHER, "i2": SAME}
        result = judge.export(store, tmp_path / "y.jsonl", people_only=True)
        assert result.models == () and "gpt" not in (tmp_path / "y.jsonl").read_text()


def documents() -> list[Item]:
    return [
        Item(f"i{n}", str(n // 2), texts=(Text("query", "q", str(n // 2)), Text("document", f"t{n}", f"d{n}")))
        for n in range(4)
    ]


def test_qrels_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    with store_of(tmp_path / "a", documents(), "relevance-documents") as store:
        for item_id, name, grade in [("i0", "ann", "3"), ("i0", "bob", "3"), ("i1", "ann", "0"), ("i2", "gpt", "1")]:
            store.record(item_id, name, "label", [grade])
        with pytest.raises(InputError, match="qrels hold one grade per document"):
            judge.export(store, path)
        exported = judge.export(store, path, which="majority", include_models=True)
        assert path.read_text() == "0 0 d0 3\n0 0 d1 0\n1 model d2 1\n"
        assert exported.models == ("gpt",) and "Labels of models, marked as such: gpt" in repr(exported)
        assert [qrel.relevance for qrel in read_qrels(str(path))] == [3, 0, 1]
        assert judge.export(store, path, annotators=["bob"]).written == 1
        assert path.read_text() == "0 0 d0 3\n"
        path.write_text("0 0 d0 3\n0 0 d3 1\n1 0 d3 1\n")
        imported = judge.import_(store, f"nist={path}")
        assert imported.added == {"nist": 2}
        assert [(u.line, u.topic_id, u.why) for u in imported.unmatched] == [(2, "0", "no such item in the store")]
        assert judge.import_(store, f"nist={path}").added == {}
        path.write_text("0 0 d0 7\n")
        with pytest.raises(InputError, match="has no grade 7"):
            judge.import_(store, f"nist={path}")
    with store_of(tmp_path / "b") as store, pytest.raises(InputError, match="the scheme leakage has no grades"):
        judge.export(store, path, which="majority")


def test_other_schemes_in_every_format(tmp_path: Path) -> None:
    versions = [
        Item("i0", "1", texts=(Text("query", "who?", "1"), Text("V1", "old", "d", "u"), Text("V2", "new", "d", "u")))
    ]
    passages = [
        Item("i0", "1", texts=(Text("query", "who?", "1"), *(Text(f"passage {n}", f"p{n}") for n in (1, 2, 3))))
    ]
    for scheme, items, label in [
        ("transfer", versions, ("V2 better",)),
        ("answerability", passages, ("passage 1", "passage 3")),
        ("answerability", passages, ("none",)),
        ("relevance-passages", documents(), ("2",)),
    ]:
        for form in FORMATS:
            folder = tmp_path / f"{scheme}-{label[0]}-{form}"
            folder.mkdir()
            path = folder / f"x.{ENDINGS[form]}"
            with store_of(folder / "a", items, scheme) as store:
                store.record("i0", "ann", "label", label)
                judge.export(store, path, file_format=form)  # type: ignore[arg-type]
                expected = said(store)
            # The items of the file, under ids of another store: matched by their texts.
            items = read_items(str(path), load_scheme(scheme))  # type: ignore[assignment]
            bare = [Item(f"x{n}", item.topic_id, item.title, texts=item.texts) for n, item in enumerate(items)]
            with Store.create(folder / "c", load_scheme(scheme), bare) as other:
                assert judge.import_(other, path).added == {"ann": 1}
                assert [("i0", *row[1:]) for row in said(other)] == expected


def test_label_studio_s_own_export_opens(tmp_path: Path) -> None:
    """As Label Studio 1.x writes it: numbers as people, a cancelled annotation, a prediction, several regions."""
    choice = {"from_name": "title", "to_name": "query", "type": "choices", "value": {"choices": [SAME]}}
    both = {"from_name": "label", "to_name": "query", "type": "choices", "value": {"choices": [FEWER]}}
    task = {
        "id": 12, "data": {"topic": "0", "query": "plain", "title": "title 0"}, "project": 3,
        "annotations": [
            {"id": 1, "completed_by": 7, "result": [choice], "was_cancelled": False, "lead_time": 4.5,
             "created_at": "2024-05-06T07:08:09.123456Z"},
            {"id": 2, "completed_by": {"id": 8, "email": "b@c.d"}, "result": [both], "was_cancelled": False},
            {"id": 3, "completed_by": 9, "result": [], "was_cancelled": True},
            {"id": 4, "completed_by": 10, "result": [], "was_cancelled": False},
        ],
        "predictions": [{"model_version": "v1", "result": [both], "score": 0.3}],
    }  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps([task, {**task, "id": 13, "annotations": [], "predictions": []}]))
    with store_of(tmp_path / "a") as store:
        outcome = judge.import_(store, tmp_path / "x.json")
        assert outcome.added == {"7": 1, "9": 1, "b@c.d": 1, "v1": 1} and outcome.models == ("v1",)
        assert outcome.unlabelled == 1
        first = store.standing(annotator="7")[0]
        assert (first.item_id, first.labels, first.at, first.seconds) == (
            "i0",
            (SAME,),
            "2024-05-06T07:08:09.123Z",
            4.5,
        )
        assert store.standing(annotator="9")[0].kind == "skip"


def test_what_is_not_matched_is_listed_and_the_rest_is_written(tmp_path: Path) -> None:
    rows = [
        {"topic": "0", "data": "PLAIN", "label": [SAME]},
        {"topic": "0", "data": " plain\u200b", "label": [SAME]},
        {"topic": "9", "data": "plain", "label": [SAME]},
        {"item_id": "i2", "labels": FEWER},
        {"topic": "0", "data": "plain", "label": []},
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with store_of(tmp_path / "a") as store:
        outcome = judge.import_(store, f"ann={path}")
        assert outcome.added == {"ann": 2} and outcome.unlabelled == 1
        assert [(u.line, u.topic_id, u.text) for u in outcome.unmatched] == [(1, "0", "PLAIN"), (3, "9", "plain")]
        assert "x.jsonl:3: topic 9, 'plain': no such item in the store" in repr(outcome)
        assert [s.item_id for s in store.standing()] == ["i0", "i2"]


def test_texts_that_fit_several_items(tmp_path: Path) -> None:
    items = [
        Item(name, "1", title, texts=(Text("query", "same", query_id),))
        for name, title, query_id in [("a", "t", "q1"), ("b", "t", "q2"), ("c", "u", "q3")]
    ]
    path = tmp_path / "x.jsonl"
    row = {"topic": "1", "title": "t", "data": "same", "label": [SAME]}
    more = [{"ms-marco-qid": "q2"}, {"title": "u"}, {}]
    path.write_text("".join(json.dumps({**row, **part}) + "\n" for part in more))
    with store_of(tmp_path / "s", [*items, Item("i0", "0", texts=(Text("query", "x"),))]) as store:
        outcome = judge.import_(store, f"ann={path}")
        assert [s.item_id for s in store.standing()] == ["b", "c"]
        assert [u.why for u in outcome.unmatched] == ["2 items fit"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"topic": "0", "data": "plain", "label": ["leak"]}, "x.jsonl:2: the scheme has no label 'leak'"),
        ({"topic": "0", "data": "plain", "label": [SAME], "kind": "vote"}, "x.jsonl:2: 'vote' is not a kind of event"),
        ({"topic": "0", "data": "plain", "label": [SAME], "role": "cat"}, "x.jsonl:2: 'cat' is not a role"),
        ({"topic": "0", "data": "plain", "label": [SAME], "annotator": "ann", "role": "model"}, "is there as person"),
        ({"topic": "0", "data": "plain", "label": [SAME], "seconds": "long"}, "x.jsonl:2: 'long' is not a number"),
        ({"topic": "0", "data": "plain", "label": [SAME], "seconds": -1}, "x.jsonl:2: -1.0 seconds"),
        ({"topic": "0", "data": "plain", "kind": "undo", "undoes": 9}, "x.jsonl:2: an undo of an event that is not in"),
        ({"topic": "0", "label": [SAME]}, "x.jsonl:2: no text to judge in it"),
        ({"item_id": "i0", "kind": "label"}, "x.jsonl:2: no label"),
    ],
)
def test_a_fault_names_its_line_and_nothing_is_written(tmp_path: Path, row: dict[str, object], fault: str) -> None:
    path = tmp_path / "x.jsonl"
    good = {"topic": "0", "data": "plain", "label": [SAME]}
    path.write_text(json.dumps(good) + "\n" + json.dumps(row) + "\n")
    with store_of(tmp_path / "a") as store:
        with pytest.raises(InputError) as raised:
            judge.import_(store, f"bob={path}")
        assert fault in str(raised.value)
        assert list(store.events()) == []


def test_imports_that_cannot_be(tmp_path: Path) -> None:
    with store_of(tmp_path / "a") as store:
        path = tmp_path / "x.jsonl"
        path.write_text(json.dumps({"topic": "0", "data": "plain", "label": [SAME]}) + "\n")
        with pytest.raises(InputError, match=r"the file does not say who judged\. give NAME=FILE"):
            judge.import_(store, path)
        path.write_text(json.dumps({"topic": "7", "data": "plain", "label": [SAME]}) + "\n")
        with pytest.raises(InputError, match="none of the 1 records is about an item of the store"):
            judge.import_(store, f"ann={path}")
        with pytest.raises(InputError, match="is not a judging store"):
            judge.import_(path, path)
        for spec in ("hf:a/b", str(tmp_path / "nothing"), str(tmp_path / "a")):
            with pytest.raises(InputError):
                judge.import_(store, f"ann={spec}")


def test_exports_that_cannot_be(tmp_path: Path) -> None:
    with judged(tmp_path / "a.jsonl") as store:
        before = list(store.events())
        for path, more, fault in [
            ("x.txt", {}, "the ending does not say the format"),
            ("a.jsonl", {}, "is a store. choose another file"),
            ("x.json", {}, "the ending does not say the format"),
            ("x.jsonl", {"file_format": "doccano", "which": "events"}, "doccano holds no history"),
            ("x.jsonl", {"which": "best"}, "which: 'best' is not one of the choices"),
            ("x.jsonl", {"annotators": ["eve"]}, "no annotator 'eve'"),
        ]:
            with pytest.raises(InputError, match=re.escape(fault)):
                judge.export(store, tmp_path / path, **more)  # type: ignore[arg-type]
        with pytest.raises(InputError):
            judge.export(store, tmp_path / "a.jsonl" / "x.csv")
        assert list(store.events()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_an_adjudicator_s_file_settles(tmp_path: Path) -> None:
    path = tmp_path / "agreed.jsonl"
    path.write_text(json.dumps({"topic": "0", "data": "plain", "label": [FEWER]}) + "\n")
    with judged(tmp_path / "a") as store:
        judge.import_(store, f"both={path}", role="adjudicator")
        assert store.standing("i0", "both")[0].kind == "adjudicate"


@pytest.mark.shared
def test_the_paper_s_annotations(tmp_path: Path) -> None:
    folder = DATA / "spire22/annotations"
    scheme, files = load_scheme("leakage"), sorted(map(str, folder.glob("query-*.jsonl")))
    with Store.create(tmp_path / "a", scheme, read_items(files, scheme)) as store:
        assert len(store.item_ids()) == 827
        for path in files:
            judge.import_(store, f"{path.rpartition('-by-')[2].partition('.')[0]}={path}")
        for name in ("maik", "cakiki"):
            (file,) = folder.glob(f"agreement*{name}.jsonl")
            judge.import_(store, f"first-{name}={file}")
        assert len(list(store.events())) == 827 + 2 * 103
        for form in FORMATS:
            path = tmp_path / f"{form}.{ENDINGS[form]}"
            assert judge.export(store, path, file_format=form).written == 827 + 2 * 103
            assert judge.import_(store, path).present == 827 + 2 * 103


_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
_SAID = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from(["ann", "bob", "gpt"]), st.sampled_from(["label", "skip"]),
        st.sets(st.sampled_from([SAME, FEWER, OTHER, "Variant-Identical"]), min_size=1), _WORDS, _WORDS,
        st.floats(0, 1e6, allow_nan=False),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(statements=_SAID)
def test_any_labels_survive_a_round_trip(tmp_path_factory: pytest.TempPathFactory, statements: list) -> None:
    folder = tmp_path_factory.mktemp("exchange")
    with store_of(folder / "a") as store:
        store.record_history([
            Draft(
                f"i{n}", name, kind, tuple(labels) if kind == "label" else (), comment.strip(),
                (reason.strip() or "r") if kind == "skip" else "", seconds if name != "gpt" else 0.0,
            )
            for n, name, kind, labels, comment, reason, seconds in statements
        ])  # fmt: skip
        for form in FORMATS:
            path = folder / f"{form}.{ENDINGS[form]}"
            judge.export(store, path, file_format=form)  # type: ignore[arg-type]
            with store_of(folder / f"{form}.store") as other:
                judge.import_(other, path)
                assert said(other) == said(store), form


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `truerank judge …` in the folder; gives the exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["judge", *words])
        return ended.value.code, *capsys.readouterr()  # type: ignore[return-value]

    return run


def test_the_commands(tmp_path: Path, command: Command) -> None:
    rows = [{"topic": "1", "title": "t", "data": f"q{n}", "score": n / 10} for n in range(10)]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    labelled = "".join(json.dumps({**row, "label": [SAME]}) + "\n" for row in rows)
    (tmp_path / "labels.jsonl").write_text(labelled)
    new = ["new", "a.judged", "--scheme", "leakage", "--items", "items.jsonl", "--sample", "top:4", "--json"]
    code, out, err = command(*new, "--annotators", "ann,bob", "--overlap", "2")
    assert (code, err, json.loads(out)["annotators"]) == (0, "", {"ann": 4, "bob": 4})
    taken = "a.judged: is there already. choose another name; a store is never overwritten.\n"
    assert command(*new) == (2, "", taken)
    code, out, _ = command("import", "a.judged", "ann=labels.jsonl", "--json")
    assert (code, json.loads(out)["added"], len(json.loads(out)["unmatched"])) == (0, 4, 6)
    code, out, _ = command("import", "a.judged", "ann=labels.jsonl")
    assert "there already" in out and "labels.jsonl:1: topic 1, 'q0': no such item in the store" in out
    code, out, _ = command("export", "a.judged", "out.csv", "--which", "majority")
    assert code == 0 and "Rule: the adjudication of an item;" in out
    assert (tmp_path / "out.csv").read_text().count("\n") == 5
    code, out, err = command(*new[:1], "b.judged", *new[2:6], "--overlap", "9")
    assert (code, out, err.count("\n")) == (2, "", 1) and "needs two annotators" in err
    assert not (tmp_path / "b.judged").exists()
