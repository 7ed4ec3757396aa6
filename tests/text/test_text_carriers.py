"""What stands around the queries of a source and is no part of them."""

from __future__ import annotations

import pytest

from truerank.text.carriers import Carrier, carrier_of, shared_carrier

WORDS = "coral reef tide pool salt marsh kelp forest sea grass river delta moor heath fen bog dune shoal".split()
QUERIES = [f"{one} {other} {number}" for number, (one, other) in enumerate(zip(WORDS, reversed(WORDS), strict=True))]
TOPICS = ["who mapped the kelp forest", "salt marsh loss", "bog"]


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ("query:{}", Carrier(("query:",))),
        ("Represent this sentence for retrieval: {}", Carrier(("Represent this sentence for retrieval: ",))),
        ("<s>[INST] Find what answers. [/INST] {}", Carrier(("<s>[INST] Find what answers. [/INST] ",))),
        ("please find papers on {}", Carrier(("please find papers on ",))),
        ("{} | cite a source", Carrier((), (" | cite a source",))),
        ("{}. Cite a source.", Carrier((), (" Cite a source.",))),
        ("{} Answer:", Carrier((), (" Answer:",))),
        ("{}", Carrier()),
        ("{}?", Carrier()),
        # Queries of one form: what they have in common is a part of each.
        ("what is the colour of {}", Carrier()),
        ("buy {}", Carrier()),
        ("{} in the united states", Carrier()),
        ("best way to paint {}", Carrier()),
        ("effects of acid rain on {}", Carrier()),
        ("Larus argentatus feeding in {}", Carrier()),
        ("COVID-19: {}", Carrier()),
    ],
)
def test_what_most_texts_share_is_no_part_of_them(around: str, expected: Carrier) -> None:
    found = carrier_of([around.format(query) for query in QUERIES], TOPICS)
    assert found == expected
    if expected:
        assert [found(around.format(query)).rstrip(".") for query in QUERIES] == QUERIES
    assert found("another text") == "another text"


def test_several_templates_are_taken_off_each_with_its_end() -> None:
    templates = ["query: {}", "Given a question, find passages: {} Answer:", "<|im_start|>user {}<|im_end|>", "{}"]
    texts = [templates[number % 4].format(f"{one} {other} {number}") for number, (one, other) in enumerate(
        (one, other) for one in WORDS for other in WORDS[:4])]  # fmt: skip
    found = carrier_of(texts, TOPICS)
    assert found.before == ("Given a question, find passages: ", "<|im_start|>user ", "query: ")
    assert found.after == ("<|im_end|>", " Answer:")
    assert {found(text) for text in texts} == {f"{one} {other} {number}" for number, (one, other) in enumerate(
        (one, other) for one in WORDS for other in WORDS[:4])}  # fmt: skip
    # Both sides may have several.
    assert shared_carrier(texts, texts) == found
    # What some texts are about, and a mark inside of some, stay.
    kinds = ["Birds: {}", "{} (river)", "acid rain: {}", "{}"]
    assert not carrier_of([kinds[number % 4].format(text) for number, text in enumerate(map(found, texts))], TOPICS)


def test_few_texts_and_names_have_no_carrier() -> None:
    assert not carrier_of([f"query: {query}" for query in QUERIES[:9]], TOPICS)
    assert not carrier_of([f"side effects of the {word}" for word in WORDS], TOPICS)


def test_what_most_texts_of_both_sides_have_is_taken_off_both() -> None:
    around = "Given a question, find passages: {}"
    texts, others = [around.format(text) for text in QUERIES], [around.format(f"the {word}") for word in WORDS]
    assert shared_carrier(texts, others) == shared_carrier(others, texts) == Carrier((around[:-2],))
    assert shared_carrier(["query: bog"], [f"query: {query}" for query in QUERIES]) == Carrier(("query: ",))
    # Without a mark, what others begin with, too, may be what the texts are about.
    assert not shared_carrier([f"find the way to {text}" for text in QUERIES], ["find the way to rome"])


def test_words_before_topics_alone_are_no_part_of_them() -> None:
    leaks = [f"tell me all about {topic.upper()}" for topic in TOPICS]
    assert carrier_of([*QUERIES, *leaks], TOPICS) == Carrier(("tell me all about ",))
    assert not carrier_of([*QUERIES, *leaks[:2]], TOPICS)
    # Others ask with these words, too.
    assert not carrier_of([*QUERIES, *leaks, *(f"tell me all about {word}" for word in WORDS)], TOPICS)
