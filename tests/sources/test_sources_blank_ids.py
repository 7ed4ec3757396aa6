"""Tables of topics and queries whose ids hold blanks."""

from __future__ import annotations

from pathlib import Path

import pytest

from truerank.sources import open_queries, read_topics


def written(folder: Path, text: str) -> str:
    path = folder / "topics.tsv"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topic 1\twild birds\ntopic 2\tfast cars\n", [("topic 1", "wild birds"), ("topic 2", "fast cars")]),
        # Titles of one word.
        ("web 2009 1\tobama\nweb 2009 2\tkcs\n", [("web 2009 1", "obama"), ("web 2009 2", "kcs")]),
        ("Q 1\twild birds\thttp://x\nQ 2\tcars\thttp://y\n", [("Q 1", "wild birds"), ("Q 2", "cars")]),
    ],
)
def test_ids_with_blanks_are_ids(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    source = written(tmp_path, text)
    assert [(topic.topic_id, topic.title) for topic in read_topics(source).topics] == expected
    assert [(query.query_id, query.text) for query in open_queries(source)] == expected
    chosen = read_topics(f"{source}#2").topics
    assert [topic.topic_id for topic in chosen] == [one for one, _ in expected]


@pytest.mark.parametrize(
    "text",
    [
        # A query and its passage: the first column is the text.
        "how do birds fly\twings lift them\nwhat is a car\ta machine of 4 wheels\n",
        # Some queries hold digits, not all.
        "route 66 history\tit was a road\nwild birds\twings lift them\n",
        # The same query twice: no id.
        "route 66\tit was a road\nroute 66\tit ran west\n",
        # More words than an id has.
        "how long is route 66\tlong\nhow old is route 66\told\n",
        # One line tells nothing.
        "route 66\tit was a road\n",
    ],
)
def test_texts_with_blanks_stay_texts(tmp_path: Path, text: str) -> None:
    texts = [line.split("\t")[0] for line in text.splitlines()]
    assert [query.text for query in open_queries(written(tmp_path, text))] == texts


def test_a_header_decides(tmp_path: Path) -> None:
    source = written(tmp_path, "id\ttitle\nfirst topic\twild birds\nsecond topic\tcars\n")
    assert [topic.topic_id for topic in read_topics(source).topics] == ["first topic", "second topic"]
