"""One label file, all commands that read labels: the same rows, the same votes, contradictions treated alike."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judging_example import pair_item, store_of
from truerank import judge
from truerank.cli import main
from truerank.errors import InputError, OptionError
from truerank.judging import Store, agreement, load_scheme, open_judgments, read_ratings
from truerank.judging.labels import annotate, scope_notes
from truerank.options import Labels

#: What three people and a model say of 12 pairs: the labels of one by one in the words of each.
WORDS = {"ann": ("leak", "no leak"), "bob": ("Yes", "NO"), "cem": ("Title-Identical", "Different Topic")}
TRUTH = [at < 6 for at in range(12)]
#: Where somebody departs from the truth.
WRONG = {"bob": (0, 7), "cem": (0,)}


def rows() -> list[dict[str, Any]]:
    """The judgments as records; on pair 0 two of three say no, and the model always says leak."""
    found = []
    for name, (yes, no) in WORDS.items():
        for at, leak in enumerate(TRUTH):
            said = leak != (at in WRONG.get(name, ()))
            found.append({
                "topic_id": str(at % 3), "query_text": f"query {at}", "label": yes if said else no,
                "username": name, "similarity": 0.9 + at / 200, "probability": 0.5, "role": "",
            })  # fmt: skip
    model = {"username": "robot", "role": "model", "label": "leak"}
    return [*found, *({**row, **model} for row in found[:12])]


#: What holds by each rule, for the twelve pairs: pair 0 has one voice of three for a leak, pair 7 one, the rest agree.
EXPECTED: dict[str, dict[int, bool | None]] = {
    "majority": {0: False, 7: False},
    "unanimous": {0: None, 7: None},
    "any": {0: True, 7: True},
    "first": {0: True, 7: False},
    "last": {0: False, 7: False},
}


def expected(votes: str) -> list[bool | None]:
    return [EXPECTED[votes].get(at, leak) for at, leak in enumerate(TRUTH)]


def written(path: Path, records: list[dict[str, Any]]) -> str:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif path.suffix == ".parquet":
        pl.DataFrame(records).write_parquet(path)
    else:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(records[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(records)
    return str(path)


def run(*arguments: str) -> Any:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    assert ended.value.code in (0, 2), arguments
    return json.loads(out.getvalue())


def store(path: Path) -> Path:
    return store_of(path, load_scheme("leak"), [pair_item(str(at % 3), f"query {at}", at) for at in range(12)], {})


@pytest.mark.parametrize(("votes", "ending"), [*zip(EXPECTED, ("csv", "tsv", "jsonl", "parquet", "csv"), strict=True)])
def test_every_reader_gives_the_same_votes(ending: str, votes: Any, tmp_path: Path) -> None:
    path = written(tmp_path / f"labels.{ending}", rows())
    wanted = expected(votes)
    # Rows, annotators and roles.
    ratings = read_ratings(path, votes=votes)
    assert [(annotator.name, annotator.role) for annotator in ratings.annotators] == [
        ("ann", "person"), ("bob", "person"), ("cem", "person"), ("robot", "model"),
    ]  # fmt: skip
    assert ratings.counts == (12, 12, 12, 12)
    # Leakage commands: pairs, and candidates annotated with them.
    judgments = open_judgments(path, votes=votes)
    assert [pair.leak for pair in judgments.pairs] == wanted
    assert (judgments.models, (judgments.pairs[0].yes, judgments.pairs[0].no)) == (12, (1, 2))
    candidates = pl.DataFrame({
        "topic_id": [str(at % 3) for at in range(12)], "query_text": [f"query {at}" for at in range(12)],
        "query_id": [""] * 12,
    })  # fmt: skip
    assert annotate(candidates, judgments)["judged"].to_list() == wanted
    # judge table counts the same, and calibrate uses the same pairs.
    table = judge.table(path, votes=votes).json()["tables"]["a"]
    assert [row["queries"] for row in table] == [wanted.count(True), wanted.count(False)]
    found = run("leakage", "calibrate", "--labels", path, "--votes", votes)
    assert (found["counts"]["leaks"], found["counts"]["unresolved"]) == (wanted.count(True), wanted.count(None))
    printed = run("judge", "table", "--labels", path, "--votes", votes)
    assert [row["queries"] for row in printed["tables"]["a"]] == [wanted.count(True), wanted.count(False)]


def test_agreement_and_import_take_the_same_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "labels.csv", rows())
    found = run("judge", "agreement", "--labels", path, "--definition", "leak")
    assert [(one["name"], one["labelled"]) for one in found["annotators"]] == [("ann", 12), ("bob", 12), ("cem", 12)]
    assert found["definitions"][0]["items"] == 12
    imported = run("judge", "import", str(store(tmp_path / "s.judged")), path)
    assert imported["annotators"] == {"ann": 12, "bob": 12, "cem": 12, "robot": 12}
    assert imported["models"] == ["robot"]
    # By way of the store the votes are those of the file, too.
    through = open_judgments(tmp_path / "s.judged")
    assert {(pair.topic_id, pair.text): pair.leak for pair in through.pairs} == {
        (pair.topic_id, pair.text): pair.leak for pair in open_judgments(path).pairs
    }
    assert (
        agreement(tmp_path / "s.judged", definition="leak", resamples=0).compared[0].scores
        == agreement(path, definition="leak", resamples=0).compared[0].scores
    )


READERS: dict[str, Callable[[str, Path], Any]] = {
    "agreement": lambda path, _: agreement(path),
    "table": lambda path, _: judge.table(path),
    "leakage": lambda path, _: open_judgments(path),
    "ratings": lambda path, _: read_ratings(path),
    "import": lambda path, folder: judge.import_(store(folder / "s.judged"), path),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_contradiction_is_listed_and_refused_by_all(reader: str, tmp_path: Path) -> None:
    twice = [{**rows()[4], "label": "no leak"}, {**rows()[2], "label": "no"}]
    path = written(tmp_path / "labels.csv", [*rows(), *twice])
    with pytest.raises(InputError, match=r"annotators contradict themselves: 'ann' on ") as caught:
        READERS[reader](path, tmp_path)
    # Both are listed, with their lines.
    assert str(caught.value).count("'ann' on") == 2
    assert "labels.csv:50" in str(caught.value) and "labels.csv:51" in str(caught.value)
    if reader == "import":
        with Store.open(tmp_path / "s.judged") as opened:
            assert not list(opened.events())


def test_a_rule_decides_contradictions_and_notes_list_them(tmp_path: Path) -> None:
    path = written(tmp_path / "labels.csv", [*rows(), {**rows()[4], "label": "no leak"}])
    answers = {votes: open_judgments(path, votes=votes).pairs[4].leak for votes in EXPECTED if votes != "majority"}  # type: ignore[arg-type]
    assert answers == {"unanimous": None, "any": True, "first": True, "last": False}
    shown = judge.table(path, votes="first").notes, agreement(path, votes="first").notes
    for notes in (*shown, open_judgments(path, votes="first").notes):
        assert any("contradict themselves, decided by 'first': 'ann' on" in note for note in notes)
    counted = agreement(path, votes="unanimous", definition="leak", resamples=0).compared[0]
    assert counted.ratings == 35
    for votes, labels in (("first", ("leak",)), ("last", ("no leak",))):
        made = store(tmp_path / f"{votes}.judged")
        assert len(judge.import_(made, path, votes=votes).contradictions) == 1  # type: ignore[arg-type]
        with Store.open(made) as opened:
            standing = {(one.item_id, one.annotator): one.labels for one in opened.standing()}
        assert standing["1-4", "ann"] == labels
    with pytest.raises(InputError, match="votes: 'any' is not one of the choices"):
        judge.import_(store(tmp_path / "x.judged"), path, votes="any")


def test_the_same_faults_in_the_same_words(tmp_path: Path) -> None:
    faults = {"role": ("cat", "'cat' is not a role"), "probability": (2, "probability 2 is not above 0")}
    for column, (value, fault) in faults.items():
        path = written(tmp_path / "labels.csv", [*rows()[:3], {**rows()[3], column: value}])
        for name, reader in READERS.items():
            folder = tmp_path / f"{column} {name}"
            folder.mkdir()
            with pytest.raises(InputError, match=fault) as caught:
                reader(path, folder)
            assert caught.value.line == 5


def test_one_group_of_options_says_what_counts(tmp_path: Path) -> None:
    """A command hands its group `Labels` on as it is; a source, or a list of them, is taken with its own options."""
    said = (("ann", "leak", ""), ("bob", "no leak", ""), ("gpt", "no leak", "model"))
    path = Path(written(tmp_path / "labels.jsonl", [
        {"topic_id": "1", "query_text": "a b", "label": label, "annotator": who, "role": role}
        for who, label, role in said
    ]))  # fmt: skip

    def leaks(**options: Any) -> list[bool | None]:
        return [pair.leak for pair in open_judgments(Labels(**options)).pairs]

    assert leaks(labels=str(path)) == leaks(labels=[path]) == [None]
    assert leaks(labels=path, include_models=True) == [False]
    assert leaks(labels=path, annotators="ann") == [True]
    assert leaks(labels=path, annotators=("ann", "bob"), votes="any") == [True]
    assert leaks(labels=open_judgments(path, annotators=("bob",))) == [False]
    assert leaks() == [] and not Labels()
    assert len(read_ratings(Labels(path, ("bob",))).ratings) == 1
    for read in (open_judgments, read_ratings):
        with pytest.raises(InputError, match=r"no annotator 'eve'\. there are ann, bob, gpt"):
            read(Labels(path, ("eve",)))
    with pytest.raises(OptionError, match="votes: 'stays' is not one of the choices"):
        Labels(path, votes="stays")  # type: ignore[arg-type]


def pair(topic: str, label: str, **more: str) -> dict[str, Any]:
    return {"topic_id": topic, "query_text": "the query", "label": label, **more}


def judged(path: Path, records: list[dict[str, Any]], **options: Any) -> list[bool | None]:
    """What holds for the pair in the test sets a, b and c."""
    sets = ("a", "b", "c")
    candidates = pl.DataFrame(
        {"test": sets, "topic_id": ["1"] * 3, "query_text": ["the query"] * 3, "query_id": [""] * 3}
    )
    return annotate(candidates, open_judgments(written(path, records), **options))["judged"].to_list()


def test_a_label_counts_for_the_test_set_that_it_names(tmp_path: Path) -> None:
    """Topic ids of two sets that are the same do not make their topics the same."""
    path = tmp_path / "labels.jsonl"
    assert judged(path, [pair("1", "leak")]) == [True, True, True]
    assert judged(path, [pair("1", "leak", test="a")]) == [True, None, None]
    both = [pair("1", "leak", test="a"), pair("1", "no leak", dataset="B")]
    assert judged(path, both) == [True, False, None]
    # The same person may say both: these are two topics. Without a set to look in there is no answer.
    judgments = open_judgments(path)
    assert [(one.datasets, one.leak) for one in judgments.pairs] == [(("a",), True), (("B",), False)]
    found = judgments.find("1", "the query")
    assert found is not None and found.leak is None
    # Who names no set speaks of each.
    plain = [{**pair("1", "no leak"), "annotator": "bob"}, {**pair("1", "leak", test="a"), "annotator": "ann"}]
    assert judged(path, plain) == [None, False, False]
    assert judged(path, [*plain, {**pair("1", "leak", test="a"), "annotator": "cem"}]) == [True, False, False]
    assert judged(path, plain, votes="any") == [True, False, False]
    assert len(open_judgments(path).pairs) == 1


def test_sets_that_share_a_topic_share_its_pairs(tmp_path: Path) -> None:
    """The same topic in two sets is one pair, as for calibration; whoever contradicts himself there is told."""
    path = tmp_path / "labels.jsonl"
    same = [pair("1", "leak", test=name, title="A Title") for name in ("a", "b")]
    assert judged(path, same) == [True, True, None]
    assert len(open_judgments(path).pairs) == 1
    with pytest.raises(InputError, match="annotators contradict themselves"):
        judged(path, [same[0], {**same[1], "label": "no leak"}])
    assert judged(path, [same[0], {**same[1], "label": "no leak", "title": "Another"}]) == [True, False, None]


def test_notes_say_for_which_sets_labels_count(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    topics = {"a": ["1", "2"], "b": ["1"]}
    rows = [pair("1", "leak"), pair("2", "leak"), pair("1", "leak", test="c", title="x")]
    judgments = open_judgments(written(path, rows))
    first, second = scope_notes(topics, judgments)
    assert first.startswith("1 judged pair names no test set and a topic id that several have")
    assert second == "1 judged pair is of a test set that is not here (c) and does not count."
    assert scope_notes({"a": ["1", "2"], "c": []}, judgments) == ()
