"""Topics and their variants: TREC formats, tables, what is counted, and faults."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from truerank.errors import InputError
from truerank.records import Topic
from truerank.sources import SourceCounts, read_topics, read_variants, with_variants


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


OLD = """
<top>

<num> Number: 441
<title> Lyme disease

<desc> Description:
How do you prevent and
treat Lyme disease?

<narr> Narrative:
Documents that discuss current prevention   are relevant;
a < b is not.

</top>
<top>
<num> Number: 442 <title> Topic: heroic acts <desc> Find accounts.
</top>
"""
NEW = """<top>
<num> Number: 441 </num>
<title>
Lyme disease
</title>
<desc> Description:
How do you prevent and
treat Lyme disease?
</desc>
<narr> Narrative
Documents that discuss current prevention   are relevant;
a < b is not.
</narr>
</top>
<TOP><NUM>442</NUM><TITLE>heroic acts</TITLE><DESC>Find accounts.</DESC></TOP>
"""


@pytest.mark.parametrize("content", [OLD, NEW])
def test_trec(content: str, tmp_path: Path) -> None:
    found = read_topics(str(written(tmp_path / "robust.trec.txt", content)))
    assert found.name == "robust"
    assert found.topics == (
        Topic(
            "441",
            "Lyme disease",
            "How do you prevent and treat Lyme disease?",
            "Documents that discuss current prevention are relevant; a < b is not.",
        ),
        Topic("442", "heroic acts", "Find accounts."),
    )
    assert found.counts == SourceCounts(read=2)
    assert found.fields == ("title", "description", "narrative")


def test_a_word_that_is_no_prefix_stays(tmp_path: Path) -> None:
    content = "<top><num>1<title>x<desc>Description of a ship\n<narr>Narrative poems count: yes</top>"
    topic = read_topics(str(written(tmp_path / "t", content))).topics[0]
    assert topic == Topic("1", "x", "Description of a ship", "Narrative poems count: yes")


def test_old_collections(tmp_path: Path) -> None:
    content = "<DOC>\n<DOCNO> 1 </DOCNO>\n\n Articles on\nTSS\n\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\nother\n</DOC>\n"
    found = read_topics(str(written(tmp_path / "topics.txt", content)))
    assert found.topics == (Topic("1", "Articles on TSS"), Topic("2", "other"))
    assert found.fields == ("title",)


WEB = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE webtrack2009 [ <!ELEMENT webtrack2009 (topic)*> ]>
<webtrack2009>
<topic number="1" type="faceted">
  <query>obama  family tree</query>
  <description>Find information
  on the family.</description>
  <subtopic number="1" type="nav"> The photo essay. </subtopic>
  <subtopic number="2" type="inf">Caf\xe9s &amp; bars?</subtopic>
</topic>
</webtrack2009>
"""


def test_web_xml(tmp_path: Path) -> None:
    found = read_topics(str(written(tmp_path / "web09.xml", WEB)))
    assert found.topics == (
        Topic("1", "obama family tree", "Find information on the family.", "The photo essay. Cafés & bars?"),
    )


def test_covid_xml(tmp_path: Path) -> None:
    content = (
        '<topics><topic number="1"><query>origin</query><question>where from?</question>'
        "<narrative>n</narrative></topic><topic number='2'>only <![CDATA[<b> & text]]></topic></topics>"
    )
    found = read_topics(str(written(tmp_path / "t", content)))
    assert found.topics == (Topic("1", "origin", "where from?", "n"), Topic("2", "only <b> & text"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.tsv", "1\ta b\r\n2\tc\r\n", (Topic("1", "a b"), Topic("2", "c"))),
        ("t.tsv", "qid\ttitle\tdescription\n1\ta\tb\n", (Topic("1", "a", "b"),)),
        ("t.csv", 'topic_id,query,narrative\n1,a,"b, c"\n', (Topic("1", "a", "", "b, c"),)),
        ("t.jsonl", '{"_id":"1","text":"a","metadata":{}}\n', (Topic("1", "a"),)),
        (
            "t.jsonl",
            '{"topic_id":1,"title":"a","desc":"b","narr":"c","variants":["d"," ","d","e"]}\n',
            (Topic("1", "a", "b", "c", ("d", "e")),),
        ),
        ("t.json", '[{"number":"1","title":"a"}]', (Topic("1", "a"),)),
        ("t.json", '{"301":{"title":"a","description":"b"}}', (Topic("301", "a", "b"),)),
        ("t.tsv", "1\ta b\tx\n2\tc d\ty\n", (Topic("1", "a b"), Topic("2", "c d"))),
    ],
)
def test_tables(name: str, content: str, expected: tuple[Topic, ...], tmp_path: Path) -> None:
    assert read_topics(str(written(tmp_path / name, content))).topics == expected


def test_a_column_is_the_title(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", '{"id":"1","title":"a","rewrite":"b"}\n')
    assert read_topics(f"{path}#rewrite").topics == (Topic("1", "b"),)
    with pytest.raises(InputError, match="no column or key 'nothing'"):
        read_topics(f"{path}#nothing")


def test_a_beir_folder_gives_its_test_queries(tmp_path: Path) -> None:
    written(tmp_path / "queries.jsonl", '{"_id":"1","text":"a"}\n{"_id":"2","text":"b"}\n')
    assert len(read_topics(str(tmp_path)).topics) == 2
    written(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n2\td\t1\n")
    assert read_topics(str(tmp_path)).topics == (Topic("2", "b"),)
    assert len(read_topics(str(tmp_path / "queries.jsonl")).topics) == 2


def test_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tsv.gz", gzip.compress(b"1\tcaf\xe9\n2\t \n3\n1\tcaf\xe9\n4\tx\n"))
    found = read_topics(str(path))
    assert found.topics == (Topic("1", "café"), Topic("4", "x"))
    assert found.counts == SourceCounts(read=5, empty=1, repaired=2, skipped=1, repeated=1)
    with pytest.raises(InputError, match="not UTF-8") as caught:
        read_topics(str(path), strict=True)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.tsv", "1\ta\n2\tb\n1\tc\n", ":3: the topic '1' occurs in line 1 with another text. give every topic"),
        ("t.trec", "<top><num>1<title>a</top>\n<top><num>1<title>b</top>", ":2: the topic '1' occurs in line 1"),
        ("t.trec", "just words\n", "no topics: there is no <top> or <topic>. give a TREC topic file"),
        ("t.xml", "<a><b/></a>", "no topics: there is no <top> or <topic>"),
        ("t.xml", "<topics>\n<topic>x</topic></topics>", ":2: a <topic> without number"),
        ("t.xml", "<topics>\n<topic number='1'>x\n</topics>", ":2: a <topic> without </topic>"),
        ("t.tsv", "1\t\n2\t \n", "2 topics, none with a text"),
        ("t.run", "1 Q0 d 1 1 x\n", "a run file holds no topics"),
        ("t.json", "[]", "no topics in it"),
    ],
)
def test_faults(name: str, content: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(InputError) as caught:
        read_topics(str(path))
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.tsv", "1\tb c\n2\td\n1\te\n\n1\tb c\n"),
        ("v.txt", "topic\tvariant\n1\tb c\n2\td\n1\te\n"),
        ("v.csv", "topic,variant\n1,b c\n2,d\n1,e\n"),
        ("v.jsonl", '{"topic":1,"variants":["b c","e"]}\n{"topic_id":"2","variant":"d"}\n'),
        ("v.jsonl", '{"qid":"1","query":"b c"}\n{"qid":"2","text":"d"}\n{"qid":"1","query":"e"}\n'),
    ],
)
def test_variants(name: str, content: str, tmp_path: Path) -> None:
    assert read_variants(written(tmp_path / name, content)) == {"1": ("b c", "e"), "2": ("d",)}


def test_topics_with_variants(tmp_path: Path) -> None:
    topics = read_topics(str(written(tmp_path / "t.tsv", "1\ta b\n3\tc d\n")))
    found = with_variants(topics, {"1": ("x", "y"), "2": ("z",)})
    assert [topic.variants for topic in found.topics] == [("x", "y"), ()]
    assert found.fields == ("title", "variant")
    assert found.notes == ("1 variants of 1 topics that are not in t were left out",)
    with pytest.raises(InputError, match="none of the variants' topic numbers is a topic of t"):
        with_variants(topics, {"9": ("x",)})


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("v.txt", "1\ta\njust words\n", 2),
        ("v.jsonl", '{"topic":"1","variant":"a"}\n{"variant":"b"}\n', 2),
        ("v.tsv", "1\t\n", None),
    ],
)
def test_broken_variants(name: str, content: str, line: int | None, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_variants(written(tmp_path / name, content))
    assert caught.value.line == line
