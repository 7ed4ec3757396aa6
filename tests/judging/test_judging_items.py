"""Items out of audits, tables and runs: what is shown, the ids, and every fault with its place."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from leakage_example import audit, save
from truerank import judging
from truerank.errors import InputError
from truerank.judging import Item, People, Store, Text, load_scheme, read_items

LEAKAGE, TRANSFER = load_scheme("leakage"), load_scheme("transfer")
TOPICS = "<top><num>1</num><title>black bears</title><desc>How often?</desc><narr>Worldwide.</narr></top>\n"


def written(path: Path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    return str(path)


def lines(path: Path, *records: dict[str, object]) -> str:
    return written(path, "".join(json.dumps(record) + "\n" for record in records))


def pair(**more: object) -> dict[str, object]:
    return {"topic": "301", "title": "organized crime", "data": "crime groups", "ms-marco-qid": 7, **more}


def test_an_audit_s_folder(tmp_path: Path) -> None:
    rows = [
        ("news", "1", "title", "log", "q1", "black  bear", 0.92),
        ("news", "1", "description", "log", "q1", "black bear", 0.95),
        ("news", "1", "variant", "other", "q9", "black bear", 1.0000002),
        ("news", "1", "title", "log", "q2", "bears", 0.91),
        ("news", "2", "title", "log", "q1", "black bear", 0.99),
    ]
    folder = save(audit(rows), tmp_path / "audit")
    items = read_items(str(folder), LEAKAGE)
    assert [(item.topic_id, item.text("query"), item.score) for item in items] == [
        ("1", "black bear", 1.0), ("1", "bears", 0.91), ("2", "black bear", 0.99),
    ]  # fmt: skip
    first = items[0]
    assert (first.title, first.description, first.variant, first.dataset) == (
        "text of 1",
        "text of 1",
        "text of 1",
        "news",
    )
    assert first.data["sources"] == ["other", "log"]
    assert first.data["similarities"] == {"variant": 1.0, "description": 0.95, "title": 0.92}
    assert [item.item_id for item in read_items(str(folder / "candidates.parquet"), LEAKAGE)] == [
        item.item_id for item in items
    ]
    with pytest.raises(InputError, match="the scheme transfer does not judge the pairs of a leakage audit"):
        read_items(str(folder), TRANSFER)


def test_an_audit_s_topics_come_from_its_test_set_where_it_still_is(tmp_path: Path) -> None:
    rows = [("news", "1", "title", "log", "q1", "bears", 0.92)]
    source = written(tmp_path / "news.trec", TOPICS.replace("black bears", "text of 1"))
    folder = save(audit(rows), tmp_path / "audit", {"inputs": [{"name": "news", "source": source, "role": "test"}]})
    (item,) = read_items(str(folder), LEAKAGE)
    assert (item.title, item.description, item.narrative) == ("text of 1", "How often?", "Worldwide.")
    # A test set that has changed since then is not believed.
    written(tmp_path / "news.trec", TOPICS)
    (item,) = read_items(str(folder), LEAKAGE)
    assert (item.title, item.narrative) == ("text of 1", "")
    # What the user gives completes what is missing.
    (item,) = read_items(str(folder), LEAKAGE, topics=[f"news={source}"])
    assert (item.title, item.narrative) == ("text of 1", "Worldwide.")


def test_audits_that_cannot_be_judged(tmp_path: Path) -> None:
    rows = [("news", "1", "title", "log", "q1", "hmac:12345678:0123456789abcdef", 0.92)]
    with pytest.raises(InputError, match="the audit is redacted"):
        read_items(str(save(audit(rows), tmp_path / "a")), LEAKAGE)
    with pytest.raises(InputError, match="no candidates in it"):
        read_items(str(save(audit([]), tmp_path / "b")), LEAKAGE)
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match=r"no candidates\.parquet and no items\.jsonl in this folder"):
        read_items(str(tmp_path / "c"), LEAKAGE)
    (tmp_path / "c/manifest.json").write_text(json.dumps({"artifacts": {}}))
    with pytest.raises(InputError, match=r"this result has no items to judge"):
        read_items(str(tmp_path / "c"), LEAKAGE)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "c/candidates.parquet")
    with pytest.raises(InputError, match="no column 'test'"):
        read_items(str(tmp_path / "c"), LEAKAGE)
    written(tmp_path / "c/candidates.parquet", "PAR1 broken")
    with pytest.raises(InputError, match="not readable"):
        read_items(str(tmp_path / "c"), LEAKAGE)


def test_pairs_in_every_kind_of_table(tmp_path: Path) -> None:
    record = pair(description="which?", variant="gangs", cosine_similarity=1.0000004, id=5, probability=0.5)
    doccano = lines(tmp_path / "a.jsonl", {**record, "label": ["Title-Identical"]})
    (item,) = read_items(doccano, LEAKAGE)
    assert item.texts == (Text("query", "crime groups", "7"),)
    assert (item.topic_id, item.title, item.description, item.variant) == ("301", "organized crime", "which?", "gangs")
    assert (item.score, item.probability, dict(item.data)) == (1.0, 0.5, {"id": 5})
    studio = written(tmp_path / "b.json", json.dumps([{"id": 1, "data": record, "annotations": []}]))
    names = ["topic_id", "title", "query_text", "query_id", "description", "variant", "similarity", "probability"]
    values = ["301", "organized crime", "crime groups", "7", "which?", "gangs", "1.0", "0.5"]
    csv = written(tmp_path / "c.csv", ",".join(names) + "\n" + ",".join(values) + "\n")
    tsv = written(tmp_path / "d.tsv", "\t".join(names) + "\n" + "\t".join(values) + "\n")
    pl.DataFrame(dict(zip(names, ([value] for value in values), strict=True))).write_parquet(tmp_path / "e.parquet")
    for path in (studio, csv, tsv, str(tmp_path / "e.parquet")):
        (other,) = read_items(path, LEAKAGE)
        assert (other.item_id, other.texts, other.score) == (item.item_id, item.texts, item.score), path
    assert len(read_items([doccano, csv, tsv], LEAKAGE)) == 1


def test_the_id_is_made_of_the_content(tmp_path: Path) -> None:
    def item_id(**more: object) -> str:
        return read_items(lines(tmp_path / "x.jsonl", pair(**more)), LEAKAGE)[0].item_id

    assert len(item_id()) == 16
    same = [item_id(), item_id(data=" crime\u200b  groups "), item_id(narrative="x", score=0.3, label="a")]
    assert len(set(same)) == 1
    others = [
        item_id(topic="302"),
        item_id(title="crime"),
        item_id(data="Crime groups"),
        item_id(**{"ms-marco-qid": 8}),
    ]
    assert len({*same, *others}) == 5
    assert item_id(item_id="mine") == "mine"


def test_versions(tmp_path: Path) -> None:
    record = {"query_id": "9", "query": "who?", "V1": "old", "V2": "new", "url": "http://a", "dataset": "V1>>V2"}
    (item,) = read_items(lines(tmp_path / "a.jsonl", record), TRANSFER)
    assert item.texts == (
        Text("query", "who?", "9"), Text("V1", "old", "", "http://a"), Text("V2", "new", "", "http://a"),
    )  # fmt: skip
    assert (item.topic_id, item.dataset, dict(item.data)) == ("9", "V1>>V2", {})
    with pytest.raises(InputError, match="no version V3 of topic '9'"):
        read_items(str(tmp_path / "a.jsonl"), load_scheme("transfer:3"))
    empty = lines(tmp_path / "b.jsonl", {**record, "V2": ""})
    assert read_items(empty, TRANSFER)[0].texts[2].text == ""


def test_passages(tmp_path: Path) -> None:
    scheme = load_scheme("answerability")
    listed = {"query_id": "9", "query": "who?", "passages": ["he", {"passage_text": "she", "id": "p2", "url": "u"}]}
    (item,) = read_items(lines(tmp_path / "a.jsonl", listed), scheme)
    assert item.texts[1:] == (Text("passage 1", "he"), Text("passage 2", "she", "p2", "u"))
    assert [choice.name for choice in scheme.for_item(item).choices] == ["passage 1", "passage 2", "none"]
    columns = written(
        tmp_path / "b.csv", "query_id,query,passage_1,passage_2,passage_2_id,passage_2_url\n9,who?,he,she,p2,u\n"
    )
    assert read_items(columns, scheme)[0].texts == item.texts
    with pytest.raises(InputError, match="no text to judge in it"):
        read_items(lines(tmp_path / "c.jsonl", {"query_id": "9", "query": "who?"}), scheme)


def test_runs_with_topics_and_documents(tmp_path: Path) -> None:
    run = written(tmp_path / "a.run", "1 Q0 d2 1 3.5 bm25\n1 Q0 d1 2 2.5 bm25\n")
    topics = written(tmp_path / "t.trec", TOPICS)
    docs = lines(
        tmp_path / "d.jsonl", {"_id": "d1", "text": "one"}, {"_id": "d2", "title": "Two", "text": "two", "url": "u"}
    )
    scheme = load_scheme("relevance-documents")
    items = read_items(run, scheme, topics=[topics], docs=[docs])
    assert items[0].texts == (Text("query", "black bears", "1"), Text("document", "Two\n\ntwo", "d2", "u"))
    assert (items[0].title, items[0].description, items[0].score) == ("", "How often?", 3.5)
    assert dict(items[0].data) == {"rank": 1, "run": "bm25"}
    for bare in ("d1\tone\nd2\tTwo  two\n", "d1\tv\t\tone\nd2\tu\tTwo\ttwo\n", "doc_id\ttext\nd1\tone\nd2\ttwo\n"):
        table = written(tmp_path / "bare.tsv", bare)
        assert len(read_items(run, scheme, topics=[topics], docs=[table])) == 2
    qrels = written(tmp_path / "a.qrels", "1 0 d1 0\n1 0 d2 2\n")
    assert [dict(item.data) for item in read_items(qrels, scheme, topics=[topics], docs=[docs])] == [
        {"judged": 0}, {"judged": 2},
    ]  # fmt: skip
    (listed,) = read_items(run, load_scheme("answerability"), topics=[topics], docs=[docs])
    assert [text.id for text in listed.texts] == ["1", "d2", "d1"]
    half = lines(tmp_path / "e.jsonl", {"_id": "d1", "text": "x"})
    for more, fault in [
        ({"topics": [topics]}, "a run needs `docs`"),
        ({"docs": [docs]}, "a run needs `topics`"),
        (
            {"topics": [topics], "docs": [half]},
            "1 docs of it are not",
        ),
        ({"topics": [written(tmp_path / "f.tsv", "2\tx\n")], "docs": [docs]}, "1 topics of it are not in --topics: 1"),
        ({"topics": [topics], "docs": [written(tmp_path / "g.tsv", "a\tb\tc\n")]}, "3 columns without a header"),
        ({"topics": [topics], "docs": [lines(tmp_path / "h.jsonl", {"text": "x"})]}, "no document id"),
    ]:
        with pytest.raises(InputError, match=fault):
            read_items(run, scheme, **more)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the scheme leakage does not judge a run's documents"):
        read_items(run, LEAKAGE, topics=[topics], docs=[docs])


def test_topics_complete_pairs(tmp_path: Path) -> None:
    topics = written(tmp_path / "t.trec", TOPICS)
    bare = lines(tmp_path / "a.jsonl", {"topic_id": "1", "query_text": "bears", "dataset": "news"})
    fault = r"a\.jsonl:1: the topic '1' has no title here\. give its test set with `topics`"
    with pytest.raises(InputError, match=fault):
        read_items(bare, LEAKAGE)
    for spec in (topics, f"news={topics}", f"a={topics}"):
        (item,) = read_items(bare, LEAKAGE, topics=[spec])
        assert (item.title, item.narrative) == ("black bears", "Worldwide.")
    with pytest.raises(InputError, match="has no title"):
        read_items(bare, LEAKAGE, topics=[f"other={topics}"])
    second = written(tmp_path / "u.trec", TOPICS.replace("black", "brown"))
    with pytest.raises(InputError, match="the topic '1' is in two test sets with different titles"):
        read_items(bare, LEAKAGE, topics=[topics, second])


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({"title": "x", "data": "y"}, "no topic in it"),
        ({"topic": "1", "title": "x"}, "no text to judge in it"),
        ({"topic": "1", "title": "x", "data": "  "}, "no text to judge in it"),
        (pair(probability=0), "the probability 0 is not above 0"),
        (pair(similarity="high"), "'high' is not a number"),
        (pair(item_id="first", data="another"), "the id 'first' is above with other content"),
    ],
)
def test_faults_of_a_row_are_named_with_their_line(tmp_path: Path, record: dict[str, object], fault: str) -> None:
    path = lines(tmp_path / "a.jsonl", pair(item_id="first"), record)
    with pytest.raises(InputError) as raised:
        read_items(path, LEAKAGE)
    assert f"{path}:2: {fault}" in str(raised.value)


@pytest.mark.parametrize("spec", ["irds:vaswani", "nothing.jsonl"])
def test_sources_that_hold_no_items(tmp_path: Path, spec: str) -> None:
    with pytest.raises(InputError):
        read_items(spec, LEAKAGE)
    with pytest.raises(InputError, match="items are not read from trec files"):
        read_items(written(tmp_path / "t.trec", TOPICS), LEAKAGE)


def test_data_of_two_data_sets_is_judged_once(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", pair(dataset="robust", score=0.3), pair(dataset="core", score=0.5))
    (item,) = read_items(path, LEAKAGE)
    assert (item.dataset, item.score, item.data["datasets"]) == ("robust", 0.5, ["robust", "core"])


def test_a_new_store_from_the_library(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", *(pair(topic=str(n // 4), data=f"query {n}", score=n / 20) for n in range(20)))
    people = People(("ann", "bob"), overlap=5, spot_check=2, checkers=("cid",), adjudicators=("judge",))
    made = judging.new(tmp_path / "s", "leakage", path, sample="top:3@0.1", people=people, seed=4)
    told = made.json()
    assert told["drawn"] == 13 and told["overlap"] in (6, 7) and told["spot_check"] == 2
    assert told["annotators"]["ann"] + told["annotators"]["bob"] == 13 + told["overlap"]
    assert told["annotators"]["cid"] == 2
    assert f"Judged by all: {told['overlap']}." in repr(made) and "Adjudication: judge." in repr(made)
    with Store.open(tmp_path / "s") as store:
        assert store.plan["sample"] == ["top:3@0.1"] and store.seed == 4
        assert [annotator.role for annotator in store.annotators()] == ["person"] * 3 + ["adjudicator"]
        assert len(store.assigned("cid")) == 2
    with pytest.raises(InputError, match="is there already"):
        judging.new(tmp_path / "s", "leakage", path)
    with pytest.raises(InputError, match="'ann' is annotator and adjudicator"):
        judging.new(tmp_path / "t", "leakage", path, people=People(("ann",), adjudicators=("ann",)))
    items = [Item("a", "1", "t", texts=(Text("query", "q"),))]
    assert judging.new(tmp_path / "u", LEAKAGE, items).sample.items == tuple(items)
    with pytest.raises(InputError, match="items and sources mixed"):
        judging.new(tmp_path / "v", LEAKAGE, [*items, path])  # type: ignore[list-item]
    assert sorted(path.name for path in tmp_path.iterdir() if "manifest" not in path.name) == ["a.jsonl", "s", "u"]
