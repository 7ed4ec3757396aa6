"""Schemes: the built-in ones, what they let stand together, and one's own files with the line of every fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from places import DATA, ROOT
from truerank.errors import InputError
from truerank.judging import Choice, Group, Item, Scheme, Text, load_scheme, versions_scheme
from truerank.judging.schemes import BUILT_IN, RESERVED_KEYS

GOOD = """name = "mine"
title = "Mine"
question = "Which?"
view = "pair"

[[choices]]
name = "good"
key = "1"
text = "good"

[[choices]]
name = "bad"
key = "2"
text = "bad"
"""


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_schemes_are_whole(name: str) -> None:
    scheme = load_scheme(name)
    assert scheme.name == name
    assert scheme.guideline and scheme.skip_reasons and scheme.question.endswith("?")
    assert Scheme.from_json(json.loads(json.dumps(scheme.json()))) == scheme
    assert not {choice.key for choice in scheme.choices} & RESERVED_KEYS


@pytest.mark.shared
def test_leakage_labels_are_those_of_the_paper_s_files() -> None:
    path = DATA / "spire22/annotations/label_config.json"
    theirs = {label["text"] for label in json.loads(path.read_text())}
    assert {choice.name for choice in load_scheme("leakage").choices} == theirs


@pytest.mark.parametrize(
    ("scheme", "labels", "stored"),
    [
        ("leakage", ["Variant-Identical", "title_identical"], ("Title-Identical", "Variant-Identical")),
        ("leakage", ["specialisation"], ("Title-Specialization",)),
        ("leak", ["true"], ("leak",)),
        ("leak", ["Different Topic"], ("no leak",)),
        ("transfer", ["v1=2 v2=1"], ("V1 better",)),
        ("survivorship", ["no-ans"], ("no_ans",)),
        ("answerability", ["passage 3", "passage 1"], ("passage 1", "passage 3")),
        ("transfer:3", ["V3=2", "V1=0", "V2=1"], ("V1=0", "V2=1", "V3=2")),
    ],
)
def test_labels_are_stored_in_one_spelling_and_order(scheme: str, labels: list[str], stored: tuple[str, ...]) -> None:
    assert load_scheme(scheme).check(labels) == stored


@pytest.mark.parametrize(
    ("scheme", "labels", "fault"),
    [
        ("leakage", [], "no label. choose one of 'Title-Identical'"),
        ("leakage", ["leak"], "the scheme has no label 'leak'"),
        ("leakage", ["Title-Identical", "Title-Reformulation"], "'Title-Identical' excludes 'Title-Reformulation'"),
        ("leakage", ["Variant-Identical"], "no label of the group 'Against the title'"),
        ("answerability", ["none", "passage 1"], "'none' excludes 'passage 1'"),
        ("transfer:3", ["V1=0", "V2=1"], "no label of the group 'Version 3'"),
        ("relevance-documents", ["4"], "there are '3', '2', '1', '0'"),
    ],
)
def test_labels_that_do_not_go_together(scheme: str, labels: list[str], fault: str) -> None:
    with pytest.raises(InputError) as raised:
        load_scheme(scheme).check(labels)
    assert fault in str(raised.value)
    assert not load_scheme(scheme).regular(labels)


def test_labels_of_other_tools_are_known_though_they_exclude_each_other() -> None:
    scheme = load_scheme("leakage")
    assert scheme.known(["Different Topic", "Title-Identical"]) == ("Title-Identical", "Different Topic")
    with pytest.raises(InputError, match="no label 'x'"):
        scheme.known(["x"])


def test_choices_that_depend_on_the_texts() -> None:
    scheme = load_scheme("answerability")
    texts = (Text("query", "q"), *(Text(f"passage {n}", "text") for n in range(1, 13)))
    offered = scheme.for_item(Item("i", "1", texts=texts))
    assert [(choice.name, choice.key) for choice in offered.choices][:3] == [
        ("passage 1", "1"), ("passage 2", "2"), ("passage 3", "3"),
    ]  # fmt: skip
    assert [choice.key for choice in offered.choices][9:] == ["q", "w", "e", "0"]
    keys = [choice.key for choice in offered.choices if choice.key]
    assert len(keys) == len(set(keys)) and not set(keys) & RESERVED_KEYS
    with pytest.raises(InputError, match="no label 'passage 13'"):
        scheme.check(["passage 13"], Item("i", "1", texts=texts))
    assert scheme.check(["passage 13"]) == ("passage 13",)
    assert load_scheme("leakage").for_item(Item("i", "1")) is load_scheme("leakage")


def test_grades() -> None:
    assert load_scheme("relevance-documents").graded
    assert load_scheme("relevance-documents").grade("3") == 3
    assert not load_scheme("leakage").graded and not load_scheme("answerability").graded
    assert load_scheme("leakage").grade("Title-Identical") is None


@pytest.mark.parametrize("versions", [3, 5, 9])
def test_many_versions(versions: int) -> None:
    scheme = versions_scheme(versions)
    assert len(scheme.choices) == 3 * versions and len(scheme.groups) == versions
    assert scheme == load_scheme(f"transfer:{versions}")
    assert Scheme.from_json(scheme.json()) == scheme
    assert versions_scheme(2) == load_scheme("transfer") == load_scheme("transfer:2")


@pytest.mark.parametrize("name", ["transfer:1", "transfer:10", "transfer:x", "nothing", "mine.yaml", "transfer:"])
def test_names_that_are_no_scheme(name: str) -> None:
    with pytest.raises(InputError):
        load_scheme(name)


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    page = (ROOT / "docs/judging-schemes.md").read_text(encoding="utf-8")
    (tmp_path / "intent.toml").write_text(page.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    scheme = load_scheme(tmp_path / "intent.toml")
    assert scheme.check(["factoid"]) == ("fact",)
    assert all(f"`{name}`" in page for name in BUILT_IN)
    reserved = page.partition("# one character; ")[2].partition(" belong")[0].split()
    assert set(reserved) == RESERVED_KEYS


def test_one_s_own_scheme(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD, encoding="utf-8-sig")
    scheme = load_scheme(tmp_path / "mine.toml")
    assert scheme.check(["Good"]) == ("good",)
    assert scheme.groups == (Group(""),)
    (tmp_path / "mine.json").write_text(json.dumps(scheme.json()))
    assert load_scheme(tmp_path / "mine.json") == scheme
    assert scheme.choices[1] == Choice("bad", "2", "bad")


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ('view = "pair"', 'view = "pairs"', 4, "view: no view 'pairs'. one of pair, versions, passages, document"),
        ('question = "Which?"\n', "", None, "no 'question'. write question ="),
        ('title = "Mine"', "title = 3", 2, "title: is not a text"),
        ('title = "Mine"', 'title = "Mine"\nhue = "red"', 3, "hue: is not a key of a scheme"),
        ('name = "bad"\n', "", 11, "choices[2].name: is missing"),
        ('text = "bad"\n', 'text = "bad"\nkeys = "3"\n', 15, "choices[2].keys: is not a key of a scheme"),
        ('text = "bad"\n', 'text = "bad"\nalone = 1\n', 15, "choices[2].alone: is not true or false"),
        ('text = "bad"\n', 'text = "bad"\naliases = "x"\n', 15, "choices[2].aliases: is not a list of texts"),
        ('key = "2"', 'key = "1"', None, "'bad' and 'good' have the same key '1'"),
        ('key = "2"', 'key = "u"', None, "the key 'u' of 'bad' belongs to the page"),
        ('name = "bad"', 'name = "Good"', None, "'Good' and 'good' have the same name"),
        ('name = "bad"', 'name = "b|d"', None, "'b|d' is not a name for a label"),
        ('text = "bad"\n', 'text = "bad"\n[[groups]]\nname = "g"\n', None, "'good' is in the group '', which is not"),
        ("[[choices]]", "[choices]", None, "no valid TOML"),
        (GOOD[GOOD.index("[[") :], "", None, "a scheme without choices"),
        (GOOD[GOOD.index("[[") :], "choices = 3\n", 6, "choices: is not a list of tables"),
    ],
)
def test_every_fault_of_a_file_is_named(tmp_path: Path, old: str, new: str, line: int | None, fault: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError) as raised:
        load_scheme(path)
    assert fault in str(raised.value)
    assert raised.value.where == str(path)
    if line is not None:
        assert raised.value.line == line


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.json", b"{", "a.json:1: no valid JSON"),
        ("a.json", b"[]", "no object"),
        ("a.toml", b"\xff\xfe", "no UTF-8 text"),
        ("a.json", b'{\n"name": "a",\n"title": 3}', "a.json:3: title: is not a text"),
    ],
)
def test_files_that_are_no_schemes(tmp_path: Path, name: str, content: bytes, fault: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as raised:
        load_scheme(tmp_path / name)
    assert fault in str(raised.value)
    with pytest.raises(InputError, match="cannot be read"):
        load_scheme(tmp_path / "absent.toml")
