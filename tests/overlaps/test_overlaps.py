"""Overlaps of two sides: against loops over the definitions."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from truerank.overlaps import OverlapRules, compare, keep, kept_before, kept_texts
from truerank.overlaps.results import without_parts
from truerank.work.engines import LocalEngine
from truerank.work.jobs import Job

WORDS = [f"w{number}" for number in range(400)]


def _texts(seed: int, count: int) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    return [(f"{seed}-{n}", " ".join(draw.choices(WORDS, k=draw.choice([3, 6, 14, 40, 90])))) for n in range(count)]


def _planted(seed: int = 1) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Test and training texts with excerpts, changes and copies of the test texts among the training texts."""
    draw = random.Random(seed)
    test, training = _texts(seed, 60), _texts(seed + 1, 200)
    for number, (_, text) in enumerate(test):
        words = text.split()
        kind = number % 5
        if kind == 0:
            training.append((f"copy-{number}", text.upper() + " ."))
        elif kind == 1:
            training.append((f"excerpt-{number}", " ".join(words[len(words) // 3 :])))
        elif kind == 2:
            training.append((f"inside-{number}", " ".join([*draw.choices(WORDS, k=30), *words, *WORDS[:30]])))
        elif kind == 3:
            words[len(words) // 2] = "other"
            training.append((f"changed-{number}", " ".join(words)))
    draw.shuffle(training)
    return test, training


def _shingles(text: str, size: int) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + size]) for at in range(max(1, len(words) - size + 1))}


def _reference(test: str, training: str, rules: OverlapRules) -> dict[str, float | bool | None]:
    ours, theirs = _shingles(test, 3), _shingles(training, 3)
    both, grams = ours & theirs, (_shingles(test, rules.ngram), _shingles(training, rules.ngram))
    long = min(len(re.findall(r"\w+", text)) for text in (test, training)) >= rules.ngram
    return {
        "exact": test.lower().rstrip(" .") == training.lower().rstrip(" ."),
        "ngram_test": len(grams[0] & grams[1]) / len(grams[0]) if long else None,
        "ngram_training": len(grams[0] & grams[1]) / len(grams[1]) if long else None,
        "jaccard": len(both) / len(ours | theirs),
        "containment": len(both) / min(len(ours), len(theirs)),
    }


def test_every_pair_has_the_values_of_the_definitions_and_none_is_missed() -> None:
    rules = OverlapRules()
    test, training = _planted()
    rows = {(row["test_id"], row["training_id"]): row for row in compare(test, training, rules).frame.to_dicts()}
    for test_id, text in test:
        for training_id, other in training:
            wanted = _reference(text, other, rules)
            sizes = len(text.split()), len(re.findall(r"\w+", other))
            short = min(sizes) < rules.ngram
            jaccard, contained = wanted["jaccard"], wanted["containment"]
            assert jaccard is not None and contained is not None
            fires = (
                wanted["exact"]
                or max(wanted["ngram_test"] or 0, wanted["ngram_training"] or 0) >= rules.ngram_share
                or jaccard >= (1 if short else rules.similarity)
                or (contained >= (1 if short else rules.containment) and min(sizes) >= rules.contained_words)
            )
            row = rows.get((test_id, training_id))
            if fires:
                assert row is not None, (text, other)
            if row is not None:
                for name, value in wanted.items():
                    assert row[name] == (None if value is None else pytest.approx(value, abs=1e-6)), (name, text, other)
                assert (row["test_words"], row["training_words"]) == sizes
                assert fires or row["wording"]


def test_short_texts_are_compared_by_their_content_words() -> None:
    test = [("a", "effects of air pollution on children"), ("b", "how many moons does jupiter have")]
    training = [
        ("1", "Air pollution: the effects on a child?"),
        ("2", "how many moons does jupitr have"),
        ("3", "moons"),
    ]
    found = compare(test, training).frame
    assert found.select("test_id", "training_id", "evidence").rows() == [("a", "1", "words"), ("b", "2", "letters")]


def test_a_changed_word_of_a_short_text_is_no_near_duplicate() -> None:
    test = [("a", "population of the city of new york in the year 2019")]
    assert compare(test, [("1", "population of the city of new york in the year 2020")]).frame.is_empty()


@pytest.mark.parametrize(
    ("test", "training", "leaks"),
    [
        ("スウェーデンの首都はどこ？", "スウェーデンの首都はどこですか？", True),
        ("社会科学とはどのような学問ですか？", "論理学とはどのような学問ですか？", False),
        ("富士山の高さは何メートルですか", "富士山の", False),
        ("中华人民共和国的首都在哪里", "请问中华人民共和国的首都在哪里？", True),
        ("ไม่ทราบ", "ไม่ทราบว่าจังหวัดใดมีประชากรมากที่สุด", False),
        ("จังหวัดใดมีประชากรมากที่สุด", "ขอถามว่าจังหวัดใดมีประชากรมากที่สุดครับ", True),
    ],
)
def test_a_sign_of_a_script_without_blanks_is_a_part_of_a_word(test: str, training: str, leaks: bool) -> None:
    assert bool(len(compare([("t", test)], [("r", training)]).frame)) == leaks


def test_a_name_in_a_test_text_is_a_part_and_nearly_the_whole_text_is_not() -> None:
    name = "university of chicago law school"
    pairs = [
        ("part", f"{name} is ranked 12th in the 2016 rankings", name),
        ("whole", "the university of chicago law school", name),
        ("longer", name, f"ranking of the {name} in the year 2016"),
        ("excerpt", f"in the year 2016 {name} was one of the best", f"{name} was one of the best"),
    ]
    found = {
        name: compare([("t", test)], [("r", training)], OverlapRules(ngram=20)).frame for name, test, training in pairs
    }
    assert {name: frame["evidence"].str.contains("contains").to_list() for name, frame in found.items()} == {
        name: [True] for name in found
    }
    assert [name for name, frame in found.items() if len(without_parts(frame))] == ["whole", "longer", "excerpt"]


def test_copies_on_both_sides_all_have_their_pairs() -> None:
    text = "the same fifteen words stand in every one of these texts for once and all"
    found = compare(
        [("a", text), ("a", text)], [("1", text.title()), ("2", "no"), ("1", text), ("4", text + "!")]
    ).frame
    assert found["training_id"].to_list() == ["1", "1", "4"] * 2
    assert found["evidence"].unique().to_list() == ["exact+ngram+near+words"]


def test_kept_texts_parts_and_processes_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test, training = _planted(3)
    once = compare(test, training).frame
    kept = keep(training, OverlapRules(), Job(tmp_path / "training"))
    again = kept_before(kept.folder, OverlapRules())
    assert again is not None and kept_before(kept.folder, OverlapRules(ngram=8)) is None
    assert compare(test, again, job=Job(tmp_path / "work")).frame.equals(once)
    assert compare(iter(test), iter(training), job=Job(tmp_path / "two", LocalEngine(2))).frame.equals(once)
    monkeypatch.setattr("truerank.overlaps.kept_texts.PART", 120)
    parts = keep(training, OverlapRules(), Job(tmp_path / "parts"))
    assert len(parts.parts) == 3
    pieces = compare(test, parts).frame
    assert pieces.sort(pieces.columns).equals(once.sort(once.columns))


def test_crowds_are_counted_where_no_pair_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truerank.overlaps.comparison._CROWD", 2)
    text = "one two three four five six"
    words = text.split()
    training = [(f"{at}-{n}", " ".join([*words[at : at + 3], f"tail{n}"])) for at in range(4) for n in range(3)]
    for _ in range(2):
        found = compare([("a", text)], training, job=Job(tmp_path))
        assert found.frame.is_empty()
        assert found.crowded == 1
    assert compare([("a", text)], training[::3]).crowded == 0


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ('He said "of it ...".', "he said “of it”", False),
        ('What did he see in "the sky ...".', 'What did he see in "the sky".', True),
        ("জল কোথায়।", "জল কোথায়", True),
        ("what is C#", "what is C", False),
        ("more than 50%", "more than 50", False),
    ],
)
def test_marks_that_end_a_text_do_not_tell_it_apart(left: str, right: str, same: bool) -> None:
    assert (kept_texts.folded(left) == kept_texts.folded(right)) is same


def test_texts_without_words_are_compared_as_texts_only() -> None:
    assert compare([], []).frame.is_empty()
    found = compare([("a", ""), ("b", "?!"), ("c", "…")], [("1", ""), ("2", "?!")]).frame
    assert found.select("test_id", "training_id").rows() == [("b", "2")]
