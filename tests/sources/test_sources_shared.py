"""Every real file opens without being told its format, and is counted exactly."""

from __future__ import annotations

import gzip
from collections import Counter

import pytest

from places import DATA
from truerank.errors import InputError
from truerank.sources import SourceCounts, open_queries, read_labels, read_qrels, read_run, read_topics

pytestmark = pytest.mark.shared


@pytest.mark.parametrize(
    ("name", "read", "repaired", "first"),
    [
        ("million-query", 60_000, 7, ("mq-1", "after school program evaluation")),
        ("msmarco-dev-test", 18_498, 0, ("1048585", "what is paula deen's brother")),
        ("nq-dev", 8_757, 0, ("nq-1", "who sings does he love me with reba")),
        ("terabyte05-efficiency", 50_000, 0, ("tb-1", "pierson s twin lakes marina")),
        ("trivia-dev", 8_837, 0, ("tq-1", "The VS-300 was a type of what?")),
    ],
)
def test_query_logs(name: str, read: int, repaired: int, first: tuple[str, str]) -> None:
    source = open_queries(str(DATA / "query-logs" / f"{name}.tsv.gz"))
    blocks = list(source.batches())
    assert source.counts == SourceCounts(read=read, repaired=repaired)
    assert (blocks[0].ids[0], blocks[0].texts[0]) == first
    assert sum(len(block.texts) for block in blocks) == read
    assert not any("\r" in text or "\t" in text for block in blocks for text in block.texts)


def test_real_logs_keep_their_leading_blanks_and_repeat_themselves() -> None:
    texts = [query.text for query in open_queries(str(DATA / "query-logs" / "msmarco-dev-test.tsv.gz"))]
    assert texts[1] == " Androgen receptor define"
    efficiency = {query.text for query in open_queries(str(DATA / "query-logs" / "terabyte05-efficiency.tsv.gz"))}
    assert len(efficiency) == 42_169


def test_strict_stops_at_the_first_line_that_is_not_utf_8() -> None:
    path = DATA / "query-logs" / "million-query.tsv.gz"
    with pytest.raises(InputError, match="is not UTF-8") as caught:
        list(open_queries(str(path), strict=True).batches())
    with gzip.open(path) as lines:
        broken = next(number for number, raw in enumerate(lines, start=1) if "\ufffd" in raw.decode("utf-8", "replace"))
    assert caught.value.line == broken


@pytest.mark.parametrize(
    ("name", "count", "fields", "first", "last"),
    [
        ("topics/robust04.trec.txt", 250, 3, ("301", "International Organized Crime"), ("700", "gasoline tax U.S.")),
        (
            "topics/core17.trec.txt",
            50,
            3,
            ("307", "New Hydroelectric Projects"),
            ("690", "college education advantage"),
        ),
        ("topics/core18.trec.txt", 50, 3, ("321", "Women in Parliaments"), ("825", "ethanol and food prices")),
        ("topics/web09.xml", 50, 3, ("1", "obama family tree"), ("50", "dog heat")),
        ("topics/dl19-doc.tsv", 43, 1, ("156493", "do goldfish grow"), None),
        ("topics/dl19-passage.tsv", 43, 1, ("156493", "do goldfish grow"), None),
        ("topics/dl20.tsv", 200, 1, ("1030303", "who is aziz hashim"), ("132622", "definition of attempted arson")),
        ("topics/beir-scifact.tsv.gz", 300, 1, None, None),
        ("topics/beir-nfcorpus.tsv.gz", 323, 1, None, None),
        ("topics/beir-trec-covid.tsv.gz", 50, 1, ("1", "what is the origin of COVID-19"), None),
        ("collections/cacm/topics.txt", 64, 1, None, None),
        ("collections/vaswani/topics.trec.txt", 93, 1, None, None),
    ],
)
def test_topics(
    name: str, count: int, fields: int, first: tuple[str, str] | None, last: tuple[str, str] | None
) -> None:
    found = read_topics(str(DATA / name))
    assert len(found.topics) == found.counts.read == count
    assert found.counts == SourceCounts(read=count)
    assert found.fields == ("title", "description", "narrative")[:fields]
    if fields == 3:
        for topic in found.topics:
            assert topic.title and topic.description and topic.narrative
            assert not topic.description.startswith("Description:")
            assert not topic.narrative.startswith("Narrative")
            assert "<" not in topic.title + topic.description
    if first:
        assert found.topics[0][:2] == first
    if last:
        assert found.topics[-1][:2] == last


def test_the_common_core_reuses_robust_topics() -> None:
    robust = {topic.topic_id for topic in read_topics(str(DATA / "topics" / "robust04.trec.txt")).topics}
    shared = [
        sum(topic.topic_id in robust for topic in read_topics(str(DATA / "topics" / name)).topics)
        for name in ("core17.trec.txt", "core18.trec.txt")
    ]
    assert shared == [50, 25]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("qrels/core17.qrels.gz", 30_030), ("qrels/core18.qrels.gz", 26_233), ("qrels/dl19-doc.qrels.gz", 16_258),
        ("qrels/dl19-passage.qrels.gz", 9_260), ("qrels/msmarco-doc.dev.qrels.gz", 5_193),
        ("survivorship/qrels/dev-all.qrels.gz", 59_273), ("collections/cacm/qrels.txt", 796),
    ],
)  # fmt: skip
def test_qrels(name: str, rows: int) -> None:
    assert sum(1 for _ in read_qrels(str(DATA / name))) == rows


def test_runs() -> None:
    rows = list(read_run(DATA / "spire22" / "runs" / "nyt-common-core-2017-bm25-anserini.run.gz"))
    assert len(rows) == 50_000
    assert rows[0] == ("307", "497476", 1, 8.9558, "Anserini")


def test_the_authors_annotations() -> None:
    folder = DATA / "spire22" / "annotations"
    labels = [row for path in sorted(folder.glob("query-*.jsonl")) for row in read_labels(str(path))]
    assert len(labels) == 827
    assert sum((label.similarity or 0) < 0.91 for label in labels) == 43
    assert max(label.similarity or 0 for label in labels) == 1.0
    types = Counter("Different Topic" in " ".join(label.labels) for label in labels)
    assert types[True] == 106
    for name in ("cakiki", "maik"):
        path = next(folder.glob(f"agreement-*-by-{name}.jsonl"))
        assert len(list(read_labels(str(path)))) == 103
