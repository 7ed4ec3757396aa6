"""Training data that holds ids: triples, judgments and records, with texts that are elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truerank.errors import InputError
from truerank.sources import open_examples
from truerank.sources.examples import ExampleTexts, TextsById, id_roles

QUERIES = {"1": "how do coral reefs die", "2": "what is rabies", "q3": "red wine"}
DOCS = {"7": "Heat bleaches the coral.", "8": "Rabies is a virus.", "9": "Wine is made of grapes.", "d10": "Nothing."}


@pytest.fixture
def texts(tmp_path: Path) -> ExampleTexts:
    queries, docs = tmp_path / "queries.tsv", tmp_path / "collection.tsv"
    queries.write_text("".join(f"{key}\t{text}\n" for key, text in QUERIES.items()))
    docs.write_text("".join(f"{key}\t{text}\n" for key, text in DOCS.items()))
    return ExampleTexts(str(queries), str(docs))


def read(path: Path, content: str, texts: ExampleTexts, **options: str) -> list[tuple[str, str, str]]:
    path.write_text(content)
    return [tuple(one) for one in open_examples(str(path), texts=texts, **options)]


def triple(example: str, query: str, good: str, *bad: str) -> list[tuple[str, str, str]]:
    found = [(example, "query", QUERIES[query]), (example, "positive", DOCS[good])]
    return found + [(example, "negative", DOCS[one]) for one in bad]


@pytest.mark.parametrize("between", ["\t", " "])
def test_triples_and_pairs_by_their_order(tmp_path: Path, texts: ExampleTexts, between: str) -> None:
    lines = ["1 7 8", "2 8 9", "q3 9 d10"]
    content = "\n".join(lines).replace(" ", between) + "\n"
    wanted = [*triple("1", "1", "7", "8"), *triple("2", "2", "8", "9"), *triple("3", "q3", "9", "d10")]
    assert read(tmp_path / "qidpidtriples.train.full.2.tsv", content, texts) == wanted
    pairs = "\n".join(line.rpartition(" ")[0] for line in lines).replace(" ", between) + "\n"
    assert read(tmp_path / "pairs.tsv", pairs, texts) == [row for row in wanted if row[1] != "negative"]
    turned = read(tmp_path / "turned.tsv", content, texts, roles="query=1,positive=3")
    assert turned[:2] == [("1", "query", QUERIES["1"]), ("1", "positive", DOCS["8"])]


@pytest.mark.parametrize(
    "content",
    [
        "query-id\tcorpus-id\tscore\n1\t7\t1\n1\t8\t0\n2\t8\t2\n",
        "1\t7\t1\n1\t8\t0\n2\t8\t1\n",
        "1 0 7 1\n1 0 8 0\n2 0 8 1\n",
    ],
)
def test_judgments_are_examples_of_their_queries(tmp_path: Path, texts: ExampleTexts, content: str) -> None:
    found = read(tmp_path / "train.tsv", content, texts)
    assert found == [*triple("1", "1", "7", "8"), *triple("2", "2", "8")]


def test_columns_of_ids_by_their_names(tmp_path: Path, texts: ExampleTexts) -> None:
    rows = [
        {"qid": 1, "pos_pids": [7], "neg": {"bm25": ["8"], "dense": [9]}},
        {"qid": "2", "pos_pids": ["8"], "neg": {}},
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    found = read(tmp_path / "hard.jsonl", content, texts)
    assert [row[1:] for row in found] == [row[1:] for row in [*triple("1", "1", "7", "8", "9"), *triple("2", "2", "8")]]
    named = id_roles([dict.fromkeys(("query_id", "positive_passage_ids", "hard_negative_ids_2", "id", "score"), "1")])
    assert named.columns == (
        ("query_id", "query"), ("positive_passage_ids", "positive"), ("hard_negative_ids_2", "negative"),
    )  # fmt: skip
    only_docs = ExampleTexts(docs=texts.docs)
    content = json.dumps({"query": "is rabies a virus", "positive_ids": ["8"]}) + "\n"
    found = read(tmp_path / "half.jsonl", content, only_docs)
    assert [row[1:] for row in found] == [("query", "is rabies a virus"), ("positive", DOCS["8"])]


def test_absent_ids_are_counted_and_named(tmp_path: Path, texts: ExampleTexts) -> None:
    path = tmp_path / "triples.tsv"
    path.write_text("1\t7\t404\n5\t8\t405\n5\t9\t404\n")
    source = open_examples(str(path), texts=texts)
    assert [(one.role, one.text) for one in source] == [
        ("query", QUERIES["1"]), ("positive", DOCS["7"]), ("positive", DOCS["8"]), ("positive", DOCS["9"]),
    ]  # fmt: skip
    assert source.absent.json() == {"ids": 5, "roles": {"negative": 3, "query": 2}, "first": ["404", "5", "405"]}
    assert list(source.records()) == [
        (1, "1", [("query", QUERIES["1"]), ("positive", DOCS["7"])], False),
        (2, "2", [("positive", DOCS["8"])], False),
        (3, "3", [("positive", DOCS["9"])], False),
    ]


def test_ids_need_texts_and_texts_none(tmp_path: Path, texts: ExampleTexts) -> None:
    path = tmp_path / "triples.tsv"
    path.write_text("1\t7\t8\n")
    with pytest.raises(InputError, match=r"ids only, no texts.*`train_queries`"):
        list(open_examples(str(path)))
    (tmp_path / "train.tsv").write_text("query-id\tcorpus-id\tscore\n1\t7\t1\n")
    with pytest.raises(InputError, match="no `train_queries`"):
        list(open_examples(str(tmp_path / "train.tsv"), texts=ExampleTexts(docs=texts.docs)))
    for given, lacking in ((ExampleTexts(docs=texts.docs), "queries"), (ExampleTexts(texts.queries), "docs")):
        with pytest.raises(InputError, match=f"no `train_{lacking}`"):
            list(open_examples(str(path), texts=given))
    # Beside sources of ids there may be one of texts.
    spelled = read(tmp_path / "texts.tsv", "how are you\tI am well\tI am ill\n", texts)
    assert [row[1:] for row in spelled] == [
        ("query", "how are you"),
        ("positive", "I am well"),
        ("negative", "I am ill"),
    ]
    one, other = (open_examples(str(path), texts=given) for given in (texts, ExampleTexts(texts.docs, texts.docs)))
    assert one.fingerprint != other.fingerprint


def test_the_first_text_of_an_id_counts_and_many_are_looked_up() -> None:
    kept = TextsById([*((str(n), f"text {n}") for n in range(3000)), ("7", "another"), ("half", "\ud800")])
    found = kept.of([str(n) for n in range(0, 4000, 2)] + ["7", "half"])
    assert found == {str(n): f"text {n}" for n in [*range(0, 3000, 2), 7]} | {"half": "\ufffd"}
