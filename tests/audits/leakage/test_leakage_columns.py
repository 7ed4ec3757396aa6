"""Training sources with several text columns: which ones are compared, and rows removed by any of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truerank import leakage
from truerank.cli import main
from truerank.sources import by_column, open_queries, parse

TOPICS = [
    "airport security", "black bear attacks", "wildlife extinction", "counterfeit money", "falkland petroleum",
    "hydrogen energy", "magnetic levitation", "tropical storms", "undersea cables", "women clergy",
]  # fmt: skip
OPTIONS = {"encoder": "packaged", "backend": "onnx"}


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


RECORDS: dict[str, tuple[list[dict[str, Any]], dict[str, list[str]]]] = {
    "flag": (
        [{"query": "red fox", "pos": ["a fox", "foxes run"], "neg": ["blue sea"]}, {"query": "sea", "pos": []}],
        {"query": ["red fox", "sea"], "pos": ["a fox", "foxes run"], "neg": ["blue sea"]},
    ),
    "triples with ids that come back": (
        [
            {"qid": "1", "anchor": "red fox", "positive": "a fox", "negative": "the sea", "label": "yes"},
            {"qid": "1", "anchor": "red fox", "positive": "foxes run", "negative": None, "label": "no"},
        ],
        {"anchor": ["red fox", "red fox"], "positive": ["a fox", "foxes run"], "negative": ["the sea"]},
    ),
    "pairs": (
        [{"sentence1": "red fox", "sentence2": "a fox", "score": 0.5}],
        {"sentence1": ["red fox"], "sentence2": ["a fox"]},
    ),
    "instructions": (
        [{"instruction": "name a fox", "input": "", "output": "red fox"}, {"instruction": "go on", "output": "no way"}],
        {"input": [], "instruction": ["name a fox", "go on"], "output": ["red fox", "no way"]},
    ),
    "messages": (
        [{"messages": [{"role": "user", "content": "red fox"}, {"role": "assistant", "content": "a fox"}]}],
        {"messages": ["red fox", "a fox"]},
    ),
    "passages": (
        [{"query_id": "1", "query": "red fox", "positive_passages": [{"docid": "3", "text": "a fox"}]}],
        {"query": ["red fox"], "positive_passages": ["a fox"]},
    ),
}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("kind", list(RECORDS))
def test_every_text_column_is_a_source(kind: str, form: str, tmp_path: Path) -> None:
    records, expected = RECORDS[kind]
    file = tmp_path / f"data.{form}"
    if form == "jsonl":
        file.write_text(lines(records))
    else:
        pl.DataFrame(records).write_parquet(file)
    parts = {spec.name: [text for _, text in open_queries(spec)] for spec in by_column(parse(str(file)))}
    assert parts == {f"data.{form}#{column}": texts for column, texts in expected.items()}


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.tsv", "red fox\tblue fox\tgreen fox\nred sea\tblue sea\tgreen sea\n", ["1", "2", "3"]),
        ("b.tsv", "qid\tquery\tpositive\n1\tred fox\tblue sea\n1\tred fox\tblue sky\n", ["query", "positive"]),
        ("c.csv", "sentence1,sentence2,label\nred fox,blue fox,1\nred sea,blue sea,0\n", ["sentence1", "sentence2"]),
        ("d.tsv", "1\tred fox\thttps://a.b\n2\tblue fox\thttps://c.d\n", []),
        ("e.txt", "red fox\nblue fox\n", []),
    ],
)
def test_columns_of_lines(name: str, content: str, columns: list[str], tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(content)
    found = by_column(parse(str(file)))
    assert [spec.column for spec in found] == (columns or [None])
    assert all(len(list(open_queries(spec))) == 2 for spec in found)


@pytest.fixture
def triples(tmp_path: Path) -> tuple[str, str]:
    """Triples whose positives hold ten topics, and the topics."""
    rows = [
        {"query": f"recipe number {i} for soup", "positive": f"soup {i} with onions", "negative": f"garden tool {i}"}
        for i in range(60)
    ]
    for place, title in enumerate(TOPICS):
        rows[6 * place + 1]["positive"] = title
    train, test = tmp_path / "triples.jsonl", tmp_path / "topics.tsv"
    train.write_text(lines(rows))
    test.write_text("".join(f"{number}\t{title}\n" for number, title in enumerate(TOPICS, start=1)))
    return str(train), str(test)


def test_positives_are_named_as_not_compared(triples: tuple[str, str], tmp_path: Path) -> None:
    train, test = triples
    result = leakage.audit([train], [test], out=tmp_path / "audit", **OPTIONS)
    assert not result.summary["tests"]["topics"]["leaked_topics"]
    source = result.summary["sources"]["triples"]
    assert (source["column"], source["not_compared"]) == ("query", ["positive", "negative"])
    sentence = (
        "triples: the column 'query' was read as the query; 'positive' and 'negative' were not compared "
        "(--all-columns compares them)."
    )
    assert sentence in " ".join(str(result).split())
    page = (tmp_path / "audit" / "report.html").read_text()
    assert "were not compared (--all-columns compares them)" in page
    written = json.loads((tmp_path / "audit" / "summary.json").read_text())
    assert written["sources"]["triples"]["not_compared"] == ["positive", "negative"]
    assert "were not compared" in (tmp_path / "audit" / "card.md").read_text()


def test_all_columns_are_compared_and_cleaned(triples: tuple[str, str], tmp_path: Path) -> None:
    train, test = triples
    folder = tmp_path / "audit"
    command = ["leakage", "audit", "--train", train, "--test", test, "--out", str(folder), "--all-columns"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--encoder", "packaged", "--backend", "onnx", "--json"])
    assert ended.value.code == 0
    result = leakage.load_audit(folder)
    names = [f"triples.jsonl#{column}" for column in ("query", "positive", "negative")]
    assert list(result.summary["sources"]) == names
    assert len(result.summary["tests"]["topics"]["leaked_topics"]) == 10
    assert set(result.leaks()["source"]) == {"triples.jsonl#positive"}
    assert "not compared" not in repr(result)
    out = tmp_path / "clean.jsonl"
    cleaning = leakage.clean(folder, train, out=out)
    assert (cleaning.read, cleaning.removed, cleaning.kept, cleaning.not_found) == (60, 10, 50, 0)
    assert cleaning.warnings == ()
    kept = [line for line in Path(train).read_text().splitlines() if json.loads(line)["positive"] not in TOPICS]
    assert out.read_text().splitlines() == kept
    again = leakage.audit([str(out)], [test], **OPTIONS, all_columns=True)
    assert not again.summary["tests"]["topics"]["leaked_topics"]


def test_a_row_of_several_leaks_goes_once(triples: tuple[str, str], tmp_path: Path) -> None:
    train, test = triples
    rows = [json.loads(line) for line in Path(train).read_text().splitlines()]
    rows[1] = {"query": TOPICS[0], "positive": TOPICS[1], "negative": "garden tool 1"}
    Path(train).write_text(lines(rows))
    folder = tmp_path / "audit"
    leakage.audit([train], [test], out=folder, **OPTIONS, all_columns=True)
    cleaning = leakage.clean(folder, train, out=tmp_path / "clean.jsonl")
    assert (cleaning.removed, cleaning.kept) == (10, 50)
    assert len(cleaning.removed_file.read_text().splitlines()) == 1 + 11


def test_a_training_source_is_named_with_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    from truerank.sources import hub, open_queries
    from truerank.sources.inputs import pinned

    monkeypatch.setattr(hub, "fingerprint", lambda spec: f"hf:{spec.name};revision=0123abc")
    for given in ("hf:org/name:train#anchor", "hf:org/name@main:train#anchor"):
        source = open_queries(given)
        assert pinned(source.spec, source.fingerprint) == "hf:org/name@0123abc:train#anchor"
