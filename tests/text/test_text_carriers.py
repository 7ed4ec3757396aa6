"""What stands around the queries of a source and is no part of them."""

from __future__ import annotations

import pytest

from truerank.text.carriers import Carrier, carrier_of

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
        ("{} | cite a source", Carrier((), " | cite a source")),
        ("{}", Carrier()),
        ("{}?", Carrier()),
        # Queries of one form: what they have in common is a part of each.
        ("what is the colour of {}", Carrier()),
        ("buy {}", Carrier()),
        ("{} in the united states", Carrier()),
    ],
)
def test_what_most_texts_share_is_no_part_of_them(around: str, expected: Carrier) -> None:
    found = carrier_of([around.format(query) for query in QUERIES], TOPICS)
    assert found == expected
    if expected:
        assert [found(around.format(query)) for query in QUERIES] == QUERIES
    assert found("another text") == "another text"


def test_few_texts_and_names_have_no_carrier() -> None:
    assert not carrier_of([f"query: {query}" for query in QUERIES[:9]], TOPICS)
    assert not carrier_of([f"side effects of the {word}" for word in WORDS], TOPICS)
    assert not carrier_of([f"query: {query}" for query in QUERIES], ["query: bog"])


def test_words_before_topics_alone_are_no_part_of_them() -> None:
    leaks = [f"tell me all about {topic.upper()}" for topic in TOPICS]
    assert carrier_of([*QUERIES, *leaks], TOPICS) == Carrier(("tell me all about ",))
    assert not carrier_of([*QUERIES, *leaks[:2]], TOPICS)
    # Others ask with these words, too.
    assert not carrier_of([*QUERIES, *leaks, *(f"tell me all about {word}" for word in WORDS)], TOPICS)
