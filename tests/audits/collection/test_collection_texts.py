"""What documents and topics show by themselves: damage, markup, duplicates, scripts, other splits."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from collection_example import docs, text

from truerank import collection
from truerank.audits.collection import documents
from truerank.audits.collection.documents import (
    _INNER,
    DocumentScan,
    DocumentTable,
    Endings,
    UsualWords,
    _last_word,
    _sentences,
    limits,
)
from truerank.audits.collection.texts import damage, doubled, ending, markup, notice, placeholder
from truerank.sources.documents import DocumentSource
from truerank.text.words import script_of


def looked_through(source: str) -> DocumentTable:
    """What one pass over the documents finds."""
    scan = DocumentScan(source)
    for _ in scan.documents():
        pass
    return scan.finish()


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("a cafÃ© in town", "wrong-decoding"),
        ("lost \ufffd sign", "lost-characters"),
        ("café, Ångström, 東京, naïve façade", None),
        ("São Paulo, ÇA VA, Ã is a letter", None),
        ("line one\nline two\ttab", None),
    ],
)
def test_damage(said: str, kind: str | None) -> None:
    found = damage(said)
    assert (None if found is None else found[0]) == kind


@pytest.mark.parametrize("said", ["<p>text</p>", "a&nbsp;b", "x <br/> y", "f = function () { return 1 }", "R&amp;D"])
def test_markup_is_seen(said: str) -> None:
    assert markup(said)


@pytest.mark.parametrize("said", ["a < b and c > d", "AT&T and R&D", "x[[1]] <- 2", "<unknown> tag", "if (a) { b }"])
def test_what_is_no_markup(said: str) -> None:
    assert not markup(said)


def test_placeholders_notices_and_doubles() -> None:
    assert all(map(placeholder, ("null", "[deleted]", "N/A", "Lorem ipsum dolor sit amet", " none. ", "NaN")))
    assert not any(map(placeholder, ("null hypothesis", "the deleted scene", "none of them", "")))
    assert notice("404 Not Found. The requested page was not found on this server.")
    assert not notice("verification of programs") and not notice(text(1, 200))
    assert doubled(f"{text(1)} {text(1)}") and doubled(text(1) * 2) and not doubled(text(1)) and not doubled("aa")


@pytest.mark.parametrize(
    "said",
    [
        "Why was the account of a user banned by the moderators?",
        "Its rulers had already at that time reached the limits of what people would pay.",
        "How to fix the login page after the password of a user was reset",
        "The post-war courts failed. This content of the law was never written down, so that nobody could have known "
        "what it asked of the people, and the judges of the time did as they liked.",
    ],
)
def test_a_sentence_about_what_notices_speak_of_is_none(said: str) -> None:
    assert not notice(said)


@pytest.mark.parametrize(
    "said",
    [
        "Page not found",
        "Please log in to read this article.",
        "Are you a robot? Confirm that you are human.",
        "Your account has been suspended. Contact the administrator.",
        "Subscribe to continue reading. Already a member? Log in.",
    ],
)
def test_short_notices_are_seen(said: str) -> None:
    assert notice(said)


def test_a_title_is_a_sentence_of_a_notice() -> None:
    said = "Interruption announced The network of the campus is switched off for maintenance of the power supply."
    assert notice(said, titled=True) and not notice(said)


def _asked(at: int) -> str:
    return f"text{at} {text(at, 6 + at % 20)}"


@pytest.mark.parametrize(
    ("said", "notices"),
    [
        (lambda at: f"This site uses cookies to improve your experience. Accept all cookies. {_asked(at)}", 0),
        (lambda at: f"{text(at, 20 + at % 20)} We use cookies. Accept all cookies.", 0),
        (lambda at: "We use cookies to improve your experience. Accept all cookies to continue.", 60),
        (lambda at: f"Error 404. The page 'text{at} {text(at, 4)}' was not found. It may have been removed.", 60),
        (lambda at: f"text{at} {text(at, 5)} Please log in to read this article. Sign in or create an account.", 60),
        (lambda at: f"Error 403 Forbidden. Access denied to document {at}. Contact the administrator.", 60),
    ],
)
def test_a_notice_beside_a_text_is_not_in_its_place(tmp_path: Path, said: Callable[[int], str], notices: int) -> None:
    records = [(f"n{at}", said(at)) for at in range(60)] + [(f"d{at}", _asked(100 + at)) for at in range(60)]
    assert len(looked_through(docs(tmp_path / "docs.jsonl", records)).found["error-page"]) == notices


def test_pages_about_errors_are_no_notices(tmp_path: Path) -> None:
    about = [
        "The requested URL was not found is written by Apache itself. It never reaches our code: look at the rules.",
        "Customers report that they are asked to log in again after an hour. Raise the lifetime of the session.",
        "What does error 401 Unauthorized mean? The request had no valid token. Create a new token under Account.",
    ]
    gone = "Please log in to read this article. The meadows of the lower valley flood in March. Number"
    pages = [(f"help{at}", said) for at, said in enumerate(about)]
    assert all(notice(said) for said in (*about, gone))
    pages += [(f"gone{at}", f"{gone} {at}.") for at in range(3)] + [("alone", "404 Not Found. Page not found.")]
    records = pages + [(f"d{at}", text(at)) for at in range(60)]
    named = looked_through(docs(tmp_path / "docs.jsonl", records)).found["error-page"]
    assert [row["doc_id"] for row in named] == ["gone0", "gone1", "gone2", "alone"]


def test_a_few_letters_of_the_usual_script_make_no_usual_text(tmp_path: Path) -> None:
    said = "Радиосвязь на коротких волнах зависит от состояния ионосферы и времени суток"
    foreign = [("r1", f"{said} (IBM 360)"), ("r2", said), ("mixed", f"{text(1, 12)} {said[:70]}")]
    greek = [("g1", "αβγδ και θεωρία of the waves in plasma")]
    records = [(f"d{at}", text(at)) for at in range(300)] + foreign + greek
    table = looked_through(docs(tmp_path / "docs.jsonl", records))
    assert [row["doc_id"] for row in table.found["foreign-script"]] == ["r1", "r2"]


_RUSSIAN = "Радиосвязь на коротких волнах зависит от состояния ионосферы номер"


@pytest.mark.parametrize(
    ("foreign", "asked", "named", "told", "first"),
    [
        (1, (30, 0), 1, 0, True),
        (40, (30, 1), 40, 0, False),  # one topic among many may be astray itself
        (40, (0, 0), 40, 0, True),  # no topics are given
        (40, (20, 10), 0, 40, False),  # topics in both languages
        (40, (0, 30), 0, 40, True),  # topics in the language of the few
        (400, (30, 0), 400, 0, True),  # half of the collection
        (200, (0, 0), 0, 200, False),  # nobody says what is asked for
    ],
)
def test_documents_in_another_script_than_nearly_all(
    tmp_path: Path, foreign: int, asked: tuple[int, int], named: int, told: int, first: bool
) -> None:
    usual = [(f"d{at}", text(at)) for at in range(400)]
    others = [(f"r{at}", f"{_RUSSIAN} {at}") for at in range(foreign)]
    given = {"docs": docs(tmp_path / "docs.jsonl", [*others, *usual] if first else [*usual, *others])}
    if sum(asked):
        queries = [text(900 + at, 7) for at in range(asked[0])] + [f"Когда волна {at * 7}" for at in range(asked[1])]
        (tmp_path / "topics.tsv").write_text("".join(f"q{at}\t{said}\n" for at, said in enumerate(queries)))
        given["topics"] = str(tmp_path / "topics.tsv")
    found = collection.audit(**given)
    assert found.rows("foreign-script")["doc_id"].to_list() == [f"r{at}" for at in range(named)]
    note = found.finding("several-scripts")
    assert (0 if note is None else note.count) == told
    if asked == (30, 0) and foreign < len(usual):
        said = [*found.rows("foreign-script")["detail"], *found.rows("several-scripts")["detail"]]
        assert all("no topic is" in one for one in said)


def test_relevant_documents_in_another_script_are_meant(tmp_path: Path) -> None:
    records = [(f"d{at}", text(at)) for at in range(400)] + [(f"r{at}", f"{_RUSSIAN} {at}") for at in range(200)]
    (tmp_path / "topics.tsv").write_text("".join(f"q{at}\t{text(900 + at, 7)}\n" for at in range(30)))
    (tmp_path / "qrels").write_text("".join(f"q{at} 0 {name}{at} 1\n" for at in range(30) for name in "dr"))
    given = {"docs": docs(tmp_path / "docs.jsonl", records), "topics": str(tmp_path / "topics.tsv")}
    found = collection.audit(**given, qrels=str(tmp_path / "qrels"))
    assert not len(found.rows("foreign-script")) and found.finding("several-scripts") is not None


def test_documents_in_another_language_than_the_topics_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("".join(f"q{at}\t{text(at, 7)}\n" for at in range(30)))
    given = docs(tmp_path / "docs.jsonl", [(f"r{at}", f"{_RUSSIAN} {at}") for at in range(100)])
    found = collection.audit(docs=given, topics=str(tmp_path / "topics.tsv"))
    assert found.finding("foreign-script") is None and found.finding("several-scripts") is None


def test_scripts_without_blanks_and_endings() -> None:
    said = {"LATIN": "plain words", "CJK": "計算機の表を印刷する", "THAI": "เครื่องคำนวณ", "ARABIC": "الآلة الحاسبة"}
    assert {script: script_of(words) for script, words in said.items()} == {script: script for script in said}
    assert script_of("12") == "" and script_of("ゲームの起源はいつ？") == "CJK"
    assert [ending(one) for one in ("End.", "終わり。", "page 12", "cut of", "a b -")] == [
        "mark", "mark", "digit", "letter", "other",
    ]  # fmt: skip


def test_documents_are_looked_through(tmp_path: Path) -> None:
    records = [(f"d{n}", text(n)) for n in range(120)]
    records += [
        ("empty", " \u200b"),
        ("void", "[removed]"),
        ("twice", f"{text(500)} {text(500)}"),
        ("two ids", text(501)),
    ]
    records += [("d5", text(5)), ("d6", text(600)), ("page", f"<div>{text(502)}</div>"), ("short", "river.")]
    records += [("cut", text(503).rstrip(".")[:-1]), ("русский", "Вычислительная машина печатает таблицу значений.")]
    found = collection.audit(docs=docs(tmp_path / "docs.jsonl", records))
    expected = {
        "empty-document": ["empty"], "placeholder": ["void"], "doubled-text": ["twice"], "repeated-id": ["d5"],
        "unwritable-document-id": ["two ids"], "conflicting-id": ["d6"], "markup": ["page"],
        "short-document": ["short"], "cut-document": ["cut"], "foreign-script": ["русский"],
    }  # fmt: skip
    assert {kind: found.rows(kind)["doc_id"].to_list() for kind in expected} == expected
    assert found.verdicts[0].word == "FAULTY IN PART" and found.rows("repeated-id")["line"].to_list() == [125]


@pytest.mark.parametrize(
    ("bodies", "lone", "named"),
    [
        (text, "", True),
        (text, "No abstract available.", True),
        (lambda at: "", "", False),  # titles only
        (lambda at: text(at) if at % 3 == 0 else "", "", False),  # most have none
        (text, "It ends.", False),  # short, but there
    ],
)
def test_a_body_is_missing_where_most_documents_have_one(
    tmp_path: Path, bodies: Callable[[int], str], lone: str, named: bool
) -> None:
    rows = [{"_id": f"d{at}", "title": text(500 + at, 6), "text": bodies(at)} for at in range(120)]
    rows += [{"_id": f"x{at}", "title": text(700 + at, 6), "text": lone} for at in range(9)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = collection.audit(docs=str(tmp_path / "docs.jsonl"))
    assert found.rows("missing-body")["doc_id"].to_list() == ([f"x{at}" for at in range(9)] if named else [])
    untitled = docs(tmp_path / "untitled.jsonl", [(f"d{at}", text(at, 8)) for at in range(60)])
    assert collection.audit(docs=untitled).finding("missing-body") is None


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    lines = [json.dumps({"_id": f"d{n}", "text": text(n)}).encode() for n in range(3)]
    lines.append('{"_id": "old", "text": "Müller"}'.encode("latin-1"))
    path.write_bytes(b"\n".join(lines))
    found = collection.audit(docs=str(path))
    assert found.rows("undecodable-document")["doc_id"].to_list() == ["old"]


def test_documents_cut_at_one_length(tmp_path: Path) -> None:
    records = [(f"d{n}", text(n, 10 + n % 20)) for n in range(100)] + [
        (f"long{n}", text(200 + n)[:250]) for n in range(8)
    ]
    found = collection.audit(docs=docs(tmp_path / "docs.jsonl", records))
    named = set(found.rows("cut-document")["doc_id"])
    assert named and named <= {f"long{n}" for n in range(8)}
    assert "end at 250 characters" in " ".join(found.rows("cut-document")["detail"])


def test_the_second_reading_gives_each_id_once(tmp_path: Path) -> None:
    table = looked_through(docs(tmp_path / "a.jsonl", [("a", "one text"), ("b", ""), ("a", "another"), ("c", "more")]))
    assert [(one.doc_id, one.body) for one in table.distinct()] == [("a", "one text"), ("c", "more")]
    assert table.texts({"c", "zz"}) == {"c": "more"} and table.texts(()) == {}


def test_documents_are_read_twice_and_once_more_for_ids_that_come_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [(f"d{n}", text(n)) for n in range(120)] + [("copy", text(5)), ("near", f"{text(6)} too")]
    (tmp_path / "topics.tsv").write_text("".join(f"q{n}\t{text(n, 7)[:-1]}\n" for n in range(20)))
    (tmp_path / "q.qrels").write_text("".join(f"q{n} 0 d{n + m} {m}\n" for n in range(20) for m in range(2)))
    passes, read = [], DocumentSource.records
    monkeypatch.setattr(DocumentSource, "records", lambda self: passes.append(1) or read(self))

    def found(given: list[tuple[str, str]]) -> tuple[collection.CollectionAudit, int]:
        passes.clear()
        given_docs = docs(tmp_path / "docs.jsonl", given)
        audit = collection.audit(
            docs=given_docs, topics=str(tmp_path / "topics.tsv"), qrels=str(tmp_path / "q.qrels"), run=()
        )
        return audit, len(passes)

    clean, of_clean = found(records)
    # One for all that is asked of every document, one for the texts of pairs to judge.
    assert of_clean == 2 and found(records[:120])[1] == 1
    # What the second of two equal ids says counts for nothing; the first one may be empty, too.
    twice, of_twice = found([*records, ("d3", text(900)), ("d4", text(4)), ("copy", "")])
    assert of_twice == 4
    without, _ = found([one for one in records if one[0] != "copy"])
    assert twice.pairs.equals(without.pairs) and not twice.pairs.equals(clean.pairs)
    assert twice.facts["echo"] == without.facts["echo"] and twice.facts["floors"]
    assert clean.rows("topic-in-document")["topic_id"].to_list() == [f"q{n}" for n in range(20)]


def test_values_that_come_twice_are_found_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = np.random.default_rng(2).integers(0, 3_000, 4_000).astype(np.uint64)
    values, counts = np.unique(hashes, return_counts=True)
    for size in (64, 1 << 20):
        monkeypatch.setattr(documents, "_IN_MEMORY", size)
        twice = documents._Twice()
        for piece in np.array_split(hashes, 7):
            twice.add(piece)
        assert sorted(twice.found().tolist()) == values[counts > 1].tolist()


def test_topics_are_looked_through(tmp_path: Path) -> None:
    topics = [(f"q{n}", text(n, 8)) for n in range(60)]
    topics += [("same", text(3, 8).upper()), ("near", f"{text(4, 8)} too"), ("void", "null")]
    topics += [
        ("bad", "the cafÃ© of old"),
        ("tags", "<b>river</b> and bridge"),
        ("q7", text(99, 8)),
        ("q8", text(8, 8)),
    ]
    topics += [("blank id", text(77, 8)), ("ja", "競馬の発祥はどこですか")]
    path = tmp_path / "topics.jsonl"
    path.write_text("".join(json.dumps({"_id": one, "text": said}) + "\n" for one, said in topics))
    found = collection.audit(topics=str(path))
    expected = {
        "duplicate-topic": ["same"], "near-duplicate-topic": ["near"], "topic-placeholder": ["void"],
        "damaged-topic": ["bad"], "topic-markup": ["tags"], "conflicting-topic": ["q7"], "repeated-topic": ["q8"],
        "unwritable-topic-id": ["blank id"], "foreign-topic": ["ja"],
    }  # fmt: skip
    assert {kind: found.rows(kind)["topic_id"].to_list() for kind in expected} == expected


@pytest.mark.parametrize(
    ("test", "train"),
    [
        ("Mikä on Romanian pinta-ala?", "mikä on Romanian Pinta-ala"),
        ("小田急電鉄はいつ設立した", "小田急電鉄はいつ設立した？"),
        ("متى إنتهت الحرب العالمية الثانية؟", "متى إنتهت الحرب العالمية الثانية ؟"),
        ("เมืองหลวงของประเทศไทยคือเมืองใด", "เมืองหลวงของประเทศไทยคือเมืองใด?"),
    ],
)
def test_topics_of_other_splits_in_any_language(test: str, train: str, tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text(f"1\t{test}\n2\tsomething else altogether\n")
    (tmp_path / "train.tsv").write_text(f"9\t{train}\n8\tnothing of the kind\n")
    found = collection.audit(topics=str(tmp_path / "dev.tsv"), train=str(tmp_path / "train.tsv"))
    assert found.rows("topic-in-training").select("topic_id", "other").rows() == [("1", "9")]


def test_names_in_another_script_make_no_foreign_topic(tmp_path: Path) -> None:
    lines = [f"{n}\tКогда была основана компания номер {n}?" for n in range(30)]
    lines.append("x\tКогда вышел Super Nintendo Entertainment System?")
    (tmp_path / "ru.tsv").write_text("\n".join(lines))
    assert collection.audit(topics=str(tmp_path / "ru.tsv")).finding("foreign-topic") is None


def _prose(seed: int) -> str:
    """Sentences with the few words that any text of a language shares."""
    draw = random.Random(seed)
    said = [
        f"the {word} of a {draw.choice('abcdef')}{word} is in the way"
        for word in text(seed, 9 + seed % 8).rstrip(".").split()
    ]
    return ". ".join(said) + "."


@pytest.mark.parametrize(
    "cut_off",
    [
        lambda said: said[: said.rindex(" the ") + 4],
        lambda said: said[: said.rindex(" is") + 2],
        lambda said: said[:300],
    ],
)
def test_cut_documents_among_sentences_and_titles(tmp_path: Path, cut_off: Callable[[str], str]) -> None:
    texts = {f"d{n}": _prose(n) for n in range(300)}
    # A sixth ends with a letter because it is a title: a letter at the end is unusual among sentences only.
    texts |= {f"t{n}": text(1000 + n, 20 + n % 17).rstrip(".") for n in range(60)}
    cut = {f"d{n}": cut_off(texts[f"d{n}"]) for n in range(0, 96, 8)}
    for given, expected in ((texts, set()), ({**texts, **cut}, set(cut))):
        found = collection.audit(docs=docs(tmp_path / "docs.jsonl", list(given.items()))).rows("cut-document")
        assert set(found["doc_id"]) == expected


def test_limits_of_length_and_words_that_end_nothing() -> None:
    draw = np.random.default_rng(1)
    lengths = draw.integers(100, 900, 1400).tolist()
    for usual in (lengths, draw.normal(300, 3, 1400).astype(np.int64).tolist(), []):
        assert limits(Counter(map(int, usual))) == {}
    assert list(limits(Counter([*lengths, *[300] * 14, *[299] * 3]))) == [300]
    ends = Endings()
    assert ends.add("the way of a plane. the sky", ["sky"]) and not ends.add("version 2.5 of it", ["it"])
    for _ in range(300):
        ends.add("", ["plane"])
    ends.only({"the", "plane", "a"})
    assert ends.never_last({"the": 600, "plane": 600, "a": 600, "rare": 2}) == {"the"}


def test_ends_of_sentences_are_the_same_with_and_without_the_pattern() -> None:
    draw = random.Random(1)
    for _ in range(5_000):
        text = "".join(draw.choices(["a", "Be", " ", ". ", ".", "?", '"', ")", "3", "'"], k=12)).strip()
        text = " ".join(text.split())
        expected = [text[: found.start()] for found in _INNER.finditer(text)]
        assert [*map(_last_word, _sentences(text))] == [*map(_last_word, expected)], text


def test_documents_in_another_language_are_seen_by_the_words_that_they_lack(tmp_path: Path) -> None:
    german = (
        "Die Strömung um den Flügel ist bei hoher Geschwindigkeit nicht stabil, und der Widerstand ändert sich mit "
    )
    records = [(f"d{n}", _prose(n)) for n in range(150)] + [
        ("de", german + "der Zahl von Reynolds, wie es die Versuche zeigen.")
    ]
    records += [("names", "River Bridge, Copper Engine")]
    found = collection.audit(docs=docs(tmp_path / "docs.jsonl", records))
    assert found.rows("foreign-words")["doc_id"].to_list() == ["de"]


def test_a_document_with_an_id_and_no_text_is_empty() -> None:
    rows = [{"_id": f"d{number}", "text": f"some words of document {number}"} for number in range(5)]
    rows += [{"_id": "none", "text": None}, {"_id": "nothing"}]
    for given in (rows, pl.DataFrame(rows)):
        (found,) = (one for one in collection.audit(docs=given).findings if one.kind.name == "empty-document")
        assert found.count == 2


@pytest.mark.parametrize("seed", range(10))
def test_the_usual_words_are_the_most_frequent_ones_that_make_half_of_all(seed: int) -> None:
    draw, usual = random.Random(seed), UsualWords()
    usual._counts.update(f"w{int(draw.expovariate(0.1))}" for _ in range(500))
    half, words = usual._counts.total() / 2, list[str]()
    for word, count in usual._counts.most_common():  # of equal ones the first that came
        if half <= 0:
            break
        words.append(word)
        half -= count
    assert usual._half() == frozenset(words)
