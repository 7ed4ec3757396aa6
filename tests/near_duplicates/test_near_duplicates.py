"""Near-duplicates against all pairs, compared by sets of words in plain Python."""

from __future__ import annotations

import gc
import itertools
import re
import subprocess
import sys
import tracemalloc
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError, OptionError
from truerank.near_duplicates import Equivalents, Shingles, between, keep, open_sketches, within
from truerank.near_duplicates import comparison as comparing
from truerank.near_duplicates import joins as joining
from truerank.near_duplicates import sketches as sketch_blocks
from truerank.near_duplicates.shingles import shingled, windows_of
from truerank.records import Document
from truerank.text.normalising import normalise
from truerank.work.engines import LocalEngine
from truerank.work.jobs import Job

Texts = Sequence[tuple[str, str]]
Pair = tuple[str, str, str, float, float, float, float]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def shingle_set(text: str, options: Shingles) -> frozenset[object]:
    units: Sequence[str] = words(text) if options.shingle_unit == "words" else " ".join(words(text))
    size = min(options.shingle_size, len(units))
    return frozenset(tuple(units[at : at + size]) for at in range(len(units) - size + 1)) if units else frozenset()


Related = tuple[str, float, float, float, float]


def related(left: str, right: str, options: Shingles, notices: Sequence[str] = ()) -> Related | None:
    if not (normalise(left) and normalise(right)):
        return None
    if normalise(left) == normalise(right):
        return "exact", 1.0, 1.0, 1.0, 1.0
    one, other = shingle_set(left, options), shingle_set(right, options)
    if not one or not other:
        return None
    if words(left) == words(right):
        return "reformatted", 1.0, 1.0, 1.0, 1.0
    common = len(one & other)
    shares = common / len(one | other), common / len(one), common / len(other)
    size, length, smaller = min(
        ((len(one), len(words(left)), one), (len(other), len(words(right)), other)), key=lambda each: each[:2]
    )
    own_share = common / size
    shared = frozenset[object]().union(*(shingle_set(passage, options) for passage in notices))
    if smaller & shared:
        # Up to two edges between boilerplate and the rest are not missed; eight words must be left by default.
        units = options.contained_words if options.shingle_unit == "words" else 2 * options.contained_words - 1
        own = len((one & other) - shared)
        rest = len(smaller - shared) - 2 * (options.shingle_size - 1)
        enough = own >= max(1, units - options.shingle_size + 1)
        own_share = min(1.0, own / max(1, rest)) if enough else 0.0
    if shares[0] >= options.similarity:
        return "near", *shares, own_share
    contained = common / size >= options.containment and own_share >= options.containment
    return ("contains", *shares, own_share) if contained and length >= options.contained_words else None


def all_pairs(texts: Texts, options: Shingles, notices: Sequence[str] = ()) -> list[Pair]:
    """All related pairs, of repeated texts the one with their first only; with these passages as boilerplate."""
    found = []
    firsts: list[tuple[str, str]] = []
    for right_id, right in texts:
        twins = [
            (left_id, relation)
            for left_id, left in firsts
            if (relation := related(left, right, options)) and relation[0] in ("exact", "reformatted")
        ]
        if twins:
            left_id, relation = min(twins, key=lambda twin: twin[1][0])
            found.append((left_id, right_id, *relation))
            # A reformatted one is the first of its text: later ones with that text are exact duplicates of it.
            if relation[0] == "reformatted":
                firsts.append((right_id, right))
            continue
        firsts.append((right_id, right))
    first_words = {}
    for name, text in texts:
        first_words.setdefault(tuple(words(text)) or normalise(text), (name, text))
    for (left_id, left), (right_id, right) in itertools.combinations(first_words.values(), 2):
        if (relation := related(left, right, options, notices)) and relation[0] in ("near", "contains"):
            found.append((left_id, right_id, *relation))
    return sorted(found)


def rows(frame: pl.DataFrame) -> list[Pair]:
    return sorted(frame.drop("left_words", "right_words").iter_rows())


def small_pieces(patch: pytest.MonkeyPatch) -> None:
    """Blocks of a few documents and parts of a few shingles, so that there are many."""
    patch.setattr(sketch_blocks, "_DOCUMENTS", 3)
    patch.setattr(joining, "_PART", 20)


signs = st.sampled_from([" ", " ", " ", ", ", ". ", "\n", " - ", "  "])
some_words = st.sampled_from("the a cat dog sat on mat and Ran home Straße naïve x1 2020".split())


@st.composite
def collections(draw: st.DrawFn) -> Texts:
    """Texts of few different words, and texts made of them: reformatted, cut, changed, merged, repeated."""
    texts = draw(st.lists(st.lists(st.tuples(some_words, signs), max_size=14).map(joined), min_size=1, max_size=8))
    for _ in range(draw(st.integers(0, 8))):
        text = draw(st.sampled_from(texts))
        change = draw(st.sampled_from(["same", "case", "signs", "cut", "word", "merged", "spaces"]))
        parts = text.split()
        at = draw(st.integers(0, max(0, len(parts) - 1)))
        texts.append(
            {
                "same": text,
                "case": text.upper(),
                "signs": " ".join(f"{part};" for part in parts),
                "cut": " ".join(parts[at:]),
                "word": " ".join([*parts[:at], draw(some_words), *parts[at + 1 :]]),
                "merged": f"{text} {draw(st.sampled_from(texts))}",
                "spaces": f" \t{text} \n",
            }[change]
        )
    return [(f"d{number:02d}", text) for number, text in enumerate(draw(st.permutations(texts)))]


def joined(parts: Sequence[tuple[str, str]]) -> str:
    return "".join(word + sign for word, sign in parts)


option_values = st.builds(
    Shingles,
    shingle_unit=st.sampled_from(["words", "letters"]),
    shingle_size=st.integers(1, 4),
    similarity=st.sampled_from([0.3, 0.5, 0.7, 0.8, 1.0]),
    containment=st.sampled_from([0.4, 0.6, 0.8, 1.0]),
    contained_words=st.integers(1, 5),
)


@settings(max_examples=25)
@given(texts=collections(), options=option_values)
def test_pairs_within_are_all_pairs(texts: Texts, options: Shingles) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_pieces(patch)
        found = within(texts, options)
    assert rows(found.pairs) == all_pairs(texts, options)
    assert found.crowded == 0


@st.composite
def with_notices(draw: st.DrawFn) -> Texts:
    """The same with one or two passages before or behind many of the texts."""
    notices = "all rights are reserved by the society of 1999", "seen first in the journal of cats and dogs"
    found = []
    for name, text in draw(collections()):
        for notice in notices:
            text = draw(st.sampled_from([text, f"{notice}. {text}", f"{text} {notice}"]))
        found.append((name, text))
    return found


@pytest.mark.slow
@settings(max_examples=25)
@given(texts=with_notices(), options=option_values, more=st.floats(0, 1))
def test_pairs_beside_boilerplate_are_all_pairs(texts: Texts, options: Shingles, more: float) -> None:
    """Containment has to hold beside the passages of the table, also where thresholds are raised afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        small_pieces(patch)
        patch.setattr(sketch_blocks, "_LEAST", 3)
        found = within(texts, replace(options, boilerplate=0.2))
    shared = found.boilerplate["passage"].to_list()
    assert rows(found.pairs) == all_pairs(texts, options, shared)
    raised = found.rethreshold(containment=options.containment + more * (1 - options.containment))
    assert rows(raised.pairs) == all_pairs(texts, raised.options, shared)


def test_a_footer_makes_no_document_contained() -> None:
    """A text with a footer is contained where its own words are, and only there."""
    footer = "copyright by the society all rights of reprinting and copying reserved worldwide and for ever"
    own = corpus(200, seed=3, every=10**6)
    title = "a short account of the method for very small numbers"
    texts = [(name, f"{text} {footer}" if number < 20 else text) for number, (name, text) in enumerate(own)]
    texts += [
        ("alone", f"two words {footer}"),
        ("title", f"{title} {footer}"),
        ("whole", f"{own[0][1]} {title}. x {footer}"),
    ]
    found = within(texts)
    assert found.boilerplate["passage"].to_list() == [footer]
    assert found.pairs.select("left", "right", "kind", "own_share").rows() == [
        ("d0", "whole", "contains", 1.0), ("title", "whole", "contains", 1.0),
    ]  # fmt: skip
    # Without boilerplate all documents of the footer hold the two words, too.
    assert within(texts, Shingles(boilerplate=0.9)).counts["contains"] > 20


@pytest.mark.slow
@settings(max_examples=40)
@given(texts=collections(), options=option_values, cut=st.integers(0, 16))
def test_pairs_between_are_all_pairs(texts: Texts, options: Shingles, cut: int) -> None:
    left, right = texts[:cut], texts[cut:]
    with pytest.MonkeyPatch.context() as patch:
        small_pieces(patch)
        found = between(left, right, options)
    expected = []
    firsts: dict[object, tuple[str, str]] = {}
    for name, text in right:
        firsts.setdefault(tuple(words(text)) or normalise(text), (name, text))
    for name, text in left:
        related_to = [(other, related(text, there, options)) for other, there in right]
        same = [(other, relation) for other, relation in related_to if relation and relation[0] == "exact"]
        same = same or [
            (other, relation) for other, relation in related_to if relation and relation[0] == "reformatted"
        ]
        expected += [(name, other, *relation) for other, relation in same[:1]]
        for other, there in firsts.values():
            if (relation := related(text, there, options)) and relation[0] in ("near", "contains"):
                expected.append((name, other, *relation))
    assert rows(found.pairs) == sorted(expected)


@settings(max_examples=15)
@given(texts=collections(), options=option_values, more=st.floats(0, 1))
def test_higher_thresholds_without_comparing_again(texts: Texts, options: Shingles, more: float) -> None:
    similarity = options.similarity + more * (1 - options.similarity)
    containment = options.containment + more * (1 - options.containment)
    raised = within(texts, options).rethreshold(similarity, containment)
    again = within(texts, raised.options)
    assert rows(raised.pairs) == rows(again.pairs)
    assert raised.groups.equals(again.groups)


def corpus(documents: int, seed: int = 1, every: int = 5) -> list[tuple[str, str]]:
    """Texts of 30 words; some are copies of others: cut, with a header, with a word changed, in capitals."""
    draw = np.random.default_rng(seed)
    made: list[list[str]] = []
    for number in range(documents):
        text = [f"w{rank}" for rank in np.exp(draw.random(30) * 6).astype(int).tolist()]
        if number % every == every - 1:
            text = list(made[int(draw.integers(len(made)))])
            change = number // every % 4
            text = [text[:20], ["new", "header", *text], [*text[:9], "other", *text[10:]], [*map(str.upper, text)]][
                change
            ]
        made.append(text)
    return [(f"d{number}", " ".join(text)) for number, text in enumerate(made)]


def same(one: Equivalents, other: Equivalents) -> bool:
    frames = ((one.pairs, other.pairs), (one.groups, other.groups), (one.boilerplate, other.boilerplate))
    return all(left.equals(right) for left, right in frames) and one.crowded == other.crowded


class StoppingEngine:
    """Does so many pieces of work and then stops with an error."""

    in_process = True

    def __init__(self, pieces: int) -> None:
        self.left = pieces

    def run(self, task: Any, blocks: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        for result in LocalEngine().run(task, blocks):
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            yield result


def test_a_stopped_job_continues_with_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch_blocks, "_DOCUMENTS", 40)
    monkeypatch.setattr(joining, "_PART", 2000)
    monkeypatch.setattr(joining, "_FEW", 0)
    texts = corpus(200)
    whole = within(texts)
    assert whole.counts["near"] and whole.counts["contains"] and whole.counts["reformatted"]
    attempts = 0
    while True:
        attempts += 1
        try:
            found = within(texts, job=Job(tmp_path, StoppingEngine(5)))
            break
        except KeyboardInterrupt:
            assert attempts < 50
    assert attempts > 5
    assert same(found, whole)
    assert same(within(texts, job=Job(tmp_path)), whole)


def test_a_killed_process_leaves_what_another_continues(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from truerank.near_duplicates import within, sketches
from truerank.near_duplicates import joins as joining
from truerank.work.jobs import Job
sketches._DOCUMENTS, joining._PART, joining._FEW = 40, 2000, 0
class Killing:
    def start(self, what, total=None):
        if what == "finding candidates":
            os.kill(os.getpid(), signal.SIGKILL)
    advance = status = note = lambda *_: None
texts = [tuple(line.split("\\t")) for line in Path(sys.argv[1]).read_text().splitlines()]
within(texts, job=Job(Path(sys.argv[2]), progress=Killing()))
"""
    texts = corpus(200)
    source = tmp_path / "texts.tsv"
    source.write_text("\n".join("\t".join(row) for row in texts))
    killed = subprocess.run([sys.executable, "-c", script, source, tmp_path / "work"], check=False, capture_output=True)
    assert killed.returncode == -9, killed.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch_blocks, "_DOCUMENTS", 40)
        patch.setattr(joining, "_PART", 2000)
        assert same(within(texts, job=Job(tmp_path / "work")), within(texts))


@pytest.mark.slow
def test_processes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch_blocks, "_DOCUMENTS", 100)
    texts = corpus(1000)
    assert same(within(texts, job=Job(tmp_path, LocalEngine(2))), within(texts))


def test_kept_sketches_stand_for_documents(tmp_path: Path) -> None:
    texts = corpus(300)
    kept = keep(texts, Shingles(), Job(tmp_path / "kept"))
    assert same(within(kept), within(texts))
    assert same(within(open_sketches(tmp_path / "kept", Shingles(similarity=0.5)), Shingles(similarity=0.5)),
                within(texts, Shingles(similarity=0.5)))  # fmt: skip
    found = between(texts[:50], kept)
    assert found.documents == (50, 300)
    exact = found.pairs.filter(pl.col("kind") == "exact")
    assert exact["left"].to_list() == [name for name, _ in texts[:50]]
    text_of = dict(texts)
    assert all(text_of[left] == text_of[right] for left, right in exact.select("left", "right").iter_rows())
    with pytest.raises(InputError, match="shingle_size 3, not 5"):
        open_sketches(tmp_path / "kept", Shingles(shingle_size=5))
    with pytest.raises(InputError, match="3 words, not of 2 words"):
        within(kept, Shingles(shingle_size=2))
    with pytest.raises(InputError, match="no sketches here"):
        open_sketches(tmp_path / "nothing", Shingles())


def test_a_folder_is_for_one_work(tmp_path: Path) -> None:
    """Other thresholds in the folder of a finished comparison would get what was found with the first ones."""
    texts = corpus(50)
    within(texts, job=Job(tmp_path))
    with pytest.raises(InputError, match="work with other documents or options"):
        within(texts, Shingles(similarity=0.5), Job(tmp_path))
    with pytest.raises(InputError, match="give each work a folder of its own"):
        keep(texts, Shingles(shingle_size=5), Job(tmp_path / "sketches"))


def test_both_ways_of_a_small_and_a_large_side_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small side filters the shingles of the other one; without the filter the pairs are the same."""
    texts = corpus(400)
    filtered = between(texts[:40], texts[40:])
    monkeypatch.setattr(joining, "_FILTERED", 0)
    assert same(between(texts[:40], texts[40:]), filtered)
    assert filtered.counts["near"] > 0


def test_crowds_are_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form letter to many: not all pairs are compared, and each letter is in the group."""
    monkeypatch.setattr(comparing, "CROWD", 40)
    letter = "dear {} we are glad to tell you that your order will arrive on monday and thank you for it".format
    texts = [(f"d{number}", letter(f"name{number}")) for number in range(400)]
    found = within(texts)
    assert found.crowded > 0
    assert len(found.pairs) < 400 * 399 / 4
    assert found.groups["group"].n_unique() == 1
    assert found.groups["document_id"].to_list() == [name for name, _ in texts]
    (passage,) = found.boilerplate.rows(named=True)
    assert passage["passage"] == letter("x").removeprefix("dear x ")
    assert passage["documents"] == 400


def test_a_stopped_job_with_boilerplate_continues_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketch_blocks, "_DOCUMENTS", 40)
    monkeypatch.setattr(joining, "_FEW", 0)
    notice = "all rights of reprinting are reserved by the society and its members"
    texts = [(name, f"{text} {notice}") for name, text in corpus(100)]
    whole = within(texts)
    assert len(whole.boilerplate) and whole.counts["contains"]
    for stopped in (4, 4, 4, 4):
        with pytest.raises(KeyboardInterrupt):
            within(texts, job=Job(tmp_path, StoppingEngine(stopped)))
    assert same(within(texts, job=Job(tmp_path, LocalEngine())), whole)


def test_groups_are_connected_documents() -> None:
    texts = [
        ("a", "one two three four five six seven eight nine ten"),
        ("b", "something else entirely that nobody else has written so far"),
        ("c", "One, two, three, four, five; six seven eight nine ten"),
        ("d", "one two three four five six seven eight nine ten eleven"),
        ("e", "Something else entirely that nobody else has written so far?"),
        ("f", "one two three four five six seven eight nine ten and much more that follows it here"),
        ("g", ""),
        ("h", ""),
        ("i", "!?"),
        ("j", " !? "),
    ]
    found = within([Document(name, body=text) for name, text in texts])
    assert found.groups.rows() == [
        ("a", 0, "a"), ("b", 1, "b"), ("c", 0, "a"), ("d", 0, "a"), ("e", 1, "b"), ("i", 2, "i"), ("j", 2, "i"),
    ]  # fmt: skip
    assert found.counts == {"exact": 1, "reformatted": 2, "near": 1, "contains": 2}
    assert found.empty == 4


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_letters_count_as_composed_or_not(form) -> None:
    """Bengali and Vietnamese topics differ in a full stop, and one of them is in another form of Unicode."""
    pairs = [
        ("এইচ.আই.ভি ভাইরাস কবে আবিষ্কৃত হয় ?", "এইচ.আই.ভি. ভাইরাস কবে আবিষ্কৃত হয় ?"),
        ("Việt Nam ở đâu?", "Việt Nam, ở đâu"),
    ]
    for left, right in pairs:
        composed, other = unicodedata.normalize("NFC", left), unicodedata.normalize(form, right)
        found = between([("a", composed)], [("b", other)], Shingles(shingle_unit="letters", shingle_size=3))
        assert found.pairs["kind"].to_list() == ["reformatted"]


def test_boilerplate_is_what_many_different_documents_hold() -> None:
    notice = "All rights reserved, see the terms of use of this site before you copy."
    own = corpus(300, seed=2)
    texts = [(name, f"{text}. {notice}" if number % 10 == 3 else text) for number, (name, text) in enumerate(own)]
    # A text that is there often is a duplicate, not boilerplate.
    texts += [(f"copy{number}", "the very same sentence of ten words stands here again") for number in range(50)]
    found = within(texts, Shingles(boilerplate=0.05))
    (passage,) = found.boilerplate.rows(named=True)
    assert passage["passage"] == notice.lower().rstrip(".")
    assert passage["documents"] == sum(notice in text for _, text in texts)
    assert within(texts, Shingles(boilerplate=0.2)).boilerplate.is_empty()


def test_thresholds_cannot_be_lowered() -> None:
    with pytest.raises(OptionError, match=r"similarity: 0.7 is below 0.8\. compare"):
        within(corpus(20)).rethreshold(similarity=0.7)
    with pytest.raises(OptionError, match="at most 1"):
        Shingles(similarity=1.1)


@settings(max_examples=100)
@given(
    texts=st.lists(st.text("ab \u0301é.-ßİ東京ทถ\ud800😀0_'\n", max_size=12), max_size=6),
    unit=st.sampled_from(["words", "letters"]),
    size=st.integers(1, 4),
)
def test_shingles_are_those_of_loops(texts: list[str], unit: Any, size: int) -> None:
    """Equal sets of runs have equal sets of hashes, and others have others."""
    options = Shingles(shingle_unit=unit, shingle_size=size)
    found = shingled(texts, options)
    hashes: dict[object, frozenset[int]] = {}
    for number, text in enumerate(texts):
        # Signs of scripts without blanks count as words, combining marks as letters.
        every = re.findall(r"[東京ทถ]|[abá\u0301é0siß\u0307]+", unicodedata.normalize("NFC", text).casefold())
        assert found.words[number] == len(every)
        units: Sequence[str] = every if unit == "words" else " ".join(every)
        width = min(size, len(units))
        runs = (
            frozenset(tuple(units[at : at + width]) for at in range(len(units) - width + 1)) if units else frozenset()
        )
        own = frozenset(found.of(number).tolist())
        assert len(own) == len(runs)
        assert hashes.setdefault(runs, own) == own
    for (runs, own), (others, theirs) in itertools.combinations(hashes.items(), 2):
        assert len(own & theirs) == len(runs & others)  # type: ignore[operator]


def test_windows_have_their_places() -> None:
    text = "  Eins, zwei (drei) vier-fünf sechs: SIEBEN acht! Neun"
    found = windows_of(text)
    assert [found.text[begin:end] for begin, end in zip(found.begins, found.ends, strict=True)] == [
        "eins, zwei (drei) vier-fünf sechs: sieben acht",
        "zwei (drei) vier-fünf sechs: sieben acht! neun",
    ]


def _parts_of_words(text: str) -> list[tuple[str, int]]:
    """The words and signs of a text with their hundredths of a word."""
    shares = {r"[\u4e00-\u9fff]": 57, r"[\u3040-\u30ff]": 23, r"[\u0e00-\u0e7f]": 18, r"[a-z]+": 100}
    found = re.findall("|".join(shares), text)
    return [(each, next(share for kind, share in shares.items() if re.fullmatch(kind, each))) for each in found]


@settings(max_examples=40)
@given(st.lists(st.text("国民の アイก\u0e31 abc。", max_size=60), max_size=4), st.integers(1, 14))
def test_signs_of_scripts_without_blanks_are_parts_of_words(texts: list[str], size: int) -> None:
    found = shingled(texts, Shingles(shingle_size=size), measured=True)
    every = []
    for number, text in enumerate(texts):
        parts = _parts_of_words(text)
        total = sum(share for _, share in parts)
        assert found.measured[number] == (max(1, total // 100) if parts else 0)
        windows = set()
        for begin in range(len(parts)):
            sums = list(itertools.accumulate(share for _, share in parts[begin:]))
            end = next((at for at, so_far in enumerate(sums) if so_far >= 100 * size), None)
            if end is not None:
                windows.add(tuple(name for name, _ in parts[begin : begin + end + 1]))
        windows = windows or ({tuple(name for name, _ in parts)} if parts else set())
        every.append((windows, set(found.of(number).tolist())))
        assert len(every[-1][1]) == len(windows)
    for (windows, own), (others, theirs) in itertools.combinations(every, 2):
        assert len(own & theirs) == len(windows & others)


@settings(max_examples=60)
@given(
    st.lists(st.text("国民の アイก\u0e31 ab c。", max_size=60), max_size=4),
    st.sampled_from(["words", "letters"]),
    st.integers(1, 14),
    st.booleans(),
)
def test_a_text_has_the_same_shingles_beside_any_others(texts: list[str], unit: Any, size: int, measured: bool) -> None:
    """Texts are hashed many at a time, and others stand beside them on the other side of a comparison."""
    options = Shingles(shingle_unit=unit, shingle_size=size)
    together = shingled(texts, options, measured=measured)
    for number, text in enumerate(texts):
        alone = shingled([text], options, measured=measured)
        assert together.of(number).tolist() == alone.of(0).tolist()
        begin, end = together.window_starts[number : number + 2].tolist()
        assert together.windows[begin:end].tolist() == alone.windows.tolist()
        assert windows_of(text).windows.tolist() == alone.windows.tolist()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the documents of the same kind; what Python and NumPy hold at a time stays."""
    monkeypatch.setattr(sketch_blocks, "_DOCUMENTS", 250)
    monkeypatch.setattr(joining, "_PART", 10_000)

    def peak(documents: int, attempt: int) -> int:
        texts = corpus(documents, every=documents // 10)
        gc.collect()
        tracemalloc.start()
        within(iter(texts), job=Job(tmp_path / f"{documents}-{attempt}"))
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    # The lower of two: what is imported and cached on the way counts once.
    small, large = (min(peak(documents, attempt) for attempt in range(2)) for documents in (1500, 6000))
    assert large < 1.5 * small
