"""The grammar of sources: what a name means, and names by which several sources can be told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from truerank.errors import InputError
from truerank.sources import parse, unique_names
from truerank.sources.inputs import pinned


def test_irds() -> None:
    spec = parse("irds:msmarco-document/orcas")
    assert (spec.scheme, spec.location, spec.name) == ("irds", "msmarco-document/orcas", "msmarco-document/orcas")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf:org/name", ("org/name", None, None, None, "org/name")),
        ("hf:org/name/v2.1:train#query", ("org/name", "v2.1", "train", "query", "org/name/v2.1:train")),
        ("hf:org/name@v1.0/config:train#q", ("org/name", "config", "train", "q", "org/name/config:train")),
        ("hf:org/name@abc123", ("org/name", None, None, None, "org/name")),
    ],
)
def test_hugging_face(text: str, expected: tuple[str | None, ...]) -> None:
    spec = parse(text)
    assert spec.scheme == "hf"
    assert (spec.location, spec.config, spec.split, spec.column, spec.name) == expected


def test_a_revision_is_no_part_of_the_name() -> None:
    assert parse("hf:org/name@abc:train").revision == "abc"
    assert parse("hf:org/name/a@b").revision is None
    names = ["hf:org/name@one:train", "hf:org/name@two:train", "hf:org/name"]
    assert unique_names([parse(name) for name in names]) == (*names[:2], "org/name")
    one = parse("hf:org/name/config:train#anchor")
    assert pinned(one, "hf:org/name/config:train;revision=123;column=anchor") == "hf:org/name@123/config:train#anchor"


@pytest.mark.parametrize(
    ("text", "location", "column", "forced", "name"),
    [
        ("logs/queries.tsv.gz", "logs/queries.tsv.gz", None, None, "queries"),
        ("runs/bm25.k1-0.9.run.gz", "runs/bm25.k1-0.9.run.gz", None, None, "bm25.k1-0.9"),
        ("a/file.jsonl#query", "a/file.jsonl", "query", None, "file"),
        ("a/x.txt#q?format=tsv", "a/x.txt", "q", "tsv", "x"),
        ("a/x.txt?format=CSV#q", "a/x.txt", "q", "csv", "x"),
        ("export?format=doccano", "export", None, "jsonl", "export"),
        ("beir/scifact/", "beir/scifact/", None, None, "scifact"),
        (".gz", ".gz", None, None, ".gz"),
    ],
)
def test_paths(text: str, location: str, column: str | None, forced: str | None, name: str) -> None:
    spec = parse(text)
    assert (spec.scheme, spec.location, spec.column, spec.format, spec.name) == ("file", location, column, forced, name)


def test_a_path_that_exists_is_taken_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "c#2.tsv"
    path.write_text("1\ta b\n")
    assert parse(str(path)).column is None
    assert parse(f"{path}#2").column == "2"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty source name"),
        ("irds:", "no data set id"),
        ("hf:squad", "not a Hugging Face data set name"),
        ("https://example.org/q.tsv", "kind https://"),
        ("x.tsv?format=word", "unknown format 'word'"),
        ("x.tsv?sep=tab", "unknown option 'sep'"),
        ("#query", "no path"),
    ],
)
def test_faults(text: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        parse(text)


@pytest.mark.parametrize(
    ("specs", "names"),
    [
        (["a/q.tsv", "b/q.tsv.gz", "c.tsv"], ("a/q", "b/q", "c")),
        (["x.jsonl#query", "x.jsonl#question"], ("x#query", "x#question")),
        (["a/q.tsv", "a/q.jsonl"], ("a/q.tsv", "a/q.jsonl")),
        (["q.tsv", "q.tsv"], ("q.tsv", "q.tsv (2)")),
        (["hf:a/b#x", "hf:a/b#y"], ("a/b#x", "a/b#y")),
    ],
)
def test_unique_names(specs: list[str], names: tuple[str, ...]) -> None:
    assert unique_names([parse(spec) for spec in specs]) == names
