"""Evidence beside the encoder: cores of queries, and words and letters that propose pairs."""

from __future__ import annotations

import random
import string

import pytest

from truerank.text import wording
from truerank.text.rewordings import KINDS, reword
from truerank.text.wording import INSIDE, LETTERS, WORDS, WordingProbe, core, folded, one_letter_apart
from truerank.text.words import words

TOPICS = [
    "how did the titanic sink",
    "hubble telescope achievements",
    "data base systems",
    "deafness",
    "behaviour of colour blind dogs",
    "covid-19 vaccine",
    "What is the art of war about?",
    "U.S. dairy subsidies",
    "what is carvedilol used for",
    "America's obesity problem",
]


def test_a_whole_topic_in_a_longer_query_is_evidence() -> None:
    texts = [
        "effects of chimney soot on lichen",
        "pearl harbor",
        "who wrote the moth atlas",
        "map of the united states",
    ]
    queries = {
        "find passages: effects of chimney soot on lichen (2004)": [0],
        "(Effects of chimney soot on lichen)": [0],
        "soot on lichen, effects of a chimney": [0],
        "chimney soot in cities and the effects on lichen of it": [],
        "ships sunk at pearl harbor in the war": [],
        "for the quiz tonight: who wrote the moth atlas?": [2],
        "who wrote the moth atlas of wales": [],
        "how old is the man who wrote the moth atlas": [],
        "printable map of the united states": [3],
        "map of the united kingdom": [],
    }
    probe = WordingProbe(texts, inside=True)
    found = {query: probe([query]) for query in queries}
    assert {query: [number for _, number, _ in pairs] for query, pairs in found.items()} == queries
    assert {what for pairs in found.values() for *_, what in pairs} == {INSIDE, WORDS}
    assert not WordingProbe(texts)(["find passages: effects of chimney soot on lichen (2004)"])


@pytest.mark.parametrize(
    ("query", "topic", "what"),
    [
        ("where is the sinking titanic", 0, WORDS),
        ("can you tell me about the hubble telescope's achievement", 1, WORDS),
        ("colour blind dog behavior", 4, WORDS),
        ("hubbel telescope achievements", 1, LETTERS),
        ("hub ble telescope achievements", 1, LETTERS),
        ("covid19 vaccine", 5, LETTERS),
        ("waht is the art of war about", 6, LETTERS),
        ("dairy subsidy in the u s", 7, WORDS),
        ("u s dairy subsidees", 7, LETTERS),
        ("carvedilol used", 8, WORDS),
        ("hubbel telescope achivements", 1, LETTERS),
        ("hubble t@lescope achievements", 1, LETTERS),
        ("howdidthetitanicsink", 0, LETTERS),
        ("hubble%20telescope%20achievements", 1, WORDS),
        ("#HubbleTelescopeAchievements", 1, WORDS),
        ("<b>hubble</b> telescope &amp; achievements", 1, WORDS),
        ("whatever happened to the titanic sinking", 0, WORDS),
    ],
)
def test_same_words_and_nearly_the_same_letters_are_named(query: str, topic: int, what: int) -> None:
    assert WordingProbe(TOPICS)([query]) == [(0, topic, what)]


@pytest.mark.parametrize(
    "query",
    [
        "covid-18 vaccine",
        "hubble telescope",
        "deaf dogs",
        "titanic film",
        "s u dairy subsidies",
        "hubbbel telescope achivmints",
        "",
    ],
)
def test_other_words_are_not_named(query: str) -> None:
    assert WordingProbe(TOPICS)([query]) == []


def test_words_that_people_ask_with_stay_where_they_are_the_content() -> None:
    assert core("job search").keys != core("jobs").keys
    assert core("social work").keys != core("social").keys
    assert core("definition").keys
    assert core("documents that discusses rabies").keys == core("documents on rabies").keys
    assert core("need help with rabies").keys == core("rabies").keys


def damerau(left: str, right: str) -> int:
    """Optimal string alignment by its recurrence (Damerau, 1964)."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            change = table[i - 1][j - 1] + (left[i - 1] != right[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, change)
            if i > 1 and j > 1 and left[i - 2 : i] == right[j - 2 : j][::-1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


def test_one_letter_apart_is_a_distance_of_one() -> None:
    draw = random.Random(3)
    pairs = [
        ("".join(draw.choices("abc", k=draw.randint(1, 5))), "".join(draw.choices("abc", k=draw.randint(1, 5))))
        for _ in range(3000)
    ]
    assert any(damerau(*pair) == 1 for pair in pairs)
    assert all(one_letter_apart(*pair) == (damerau(*pair) == 1) for pair in pairs)


def test_the_probe_finds_every_letter_changed_in_a_long_word() -> None:
    probe = WordingProbe(["industrial espionage"])
    word = "espionage"
    changed = {word[:at] + letter + word[at + 1 :] for at in range(len(word)) for letter in string.ascii_lowercase} - {
        word
    }
    named = probe([f"industrial {other}" for other in sorted(changed)])
    assert [place for place, *_ in named] == list(range(len(changed)))


@pytest.mark.parametrize("kind", KINDS)
def test_rewordings_are_the_same_for_a_seed_and_differ_from_the_text(kind: str) -> None:
    text = "How did two grey cars of the United States reach children in big cities?"
    first = [reword(kind, text, random.Random(seed)) for seed in range(20)]
    assert first == [reword(kind, text, random.Random(seed)) for seed in range(20)]
    assert "how did two grey cars of the united states reach children in big cities" not in first
    assert any(first) or kind.startswith("short")
    assert reword("short topic inside a longer query", "polar bears", random.Random(1))


def mixed(count: int, seed: int) -> list[str]:
    """Rewordings of topics, words of topics mixed, and words that no topic has."""
    draw = random.Random(seed)
    inside = [word for topic in TOPICS for word in topic.split()]
    outside = ["zanzibar", "quokka's", "x9", "of", "the", "tractors?", "éclair", "a.b.c.", "titanics"]
    found = []
    for _ in range(count):
        words = draw.choice(TOPICS).split()
        words = words if draw.random() < 0.5 else draw.choices(inside, k=draw.randint(1, 6))
        words = draw.choice((words, words, ["hubbel", "telescope", "achievements"], ["database", "system"]))
        found.append(" ".join([*words, *draw.choices(outside, k=draw.choice((0, 0, 1, 3)))]))
    return found


def test_what_a_probe_has_seen_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = mixed(300, seed=5)
    expected = [(place, *pair) for place, text in enumerate(texts) for _, *pair in WordingProbe(TOPICS)([text])]
    probe = WordingProbe(TOPICS)
    assert [tuple(one) for one in expected] == probe(texts) == probe(texts)
    assert {what for *_, what in expected} == {WORDS, LETTERS}
    # Nor does it matter how much it remembers.
    monkeypatch.setattr(wording, "_REMEMBERED", 3)
    assert WordingProbe(TOPICS)(texts) == probe(texts)


def test_plain_tokens_are_words_as_the_pattern_finds_them() -> None:
    draw = random.Random(6)
    signs = string.ascii_letters + string.digits + "'.-_#+"
    tokens = ["".join(draw.choices(signs, k=draw.randint(1, 7))) for _ in range(3000)]
    assert [folded(token) for token in tokens] == [words(token) for token in tokens]
    assert sum(token.isalnum() for token in tokens) > 500


@pytest.mark.parametrize("text", ["как лечить простуду у детей дома", "富士山の高さは何メートルですか"])
def test_a_text_in_another_script_allows_no_english_rewording(text: str) -> None:
    made = {kind: reword(kind, text, random.Random(1)) for kind in KINDS}
    assert made["inflection"] is made["stop words added"] is made["synonym"] is made["question form"] is None
    assert made["typing error"] not in (None, text)
