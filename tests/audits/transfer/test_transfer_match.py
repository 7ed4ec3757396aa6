"""Judged documents found again in another version: by URL, by id, by a mapping; against a plain count."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truerank.audits.transfer import MatchOptions, UrlRules, load_matched, match
from truerank.cli import main
from truerank.errors import InputError
from truerank.text.urls import normalise_url
from truerank.work.progress import Quiet


def collection(path: Path, documents: list[tuple[str, str]]) -> str:
    rows = [{"doc_id": one, "url": url, "title": f"title of {one}", "body": f"body of {one}"} for one, url in documents]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def judgments(path: Path, rows: list[tuple[str, str, int]]) -> str:
    path.write_text("".join(f"{topic} 0 {doc} {grade}\n" for topic, doc, grade in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def versions(tmp_path: Path) -> dict[str, str]:
    return {
        "V1": collection(
            tmp_path / "a.jsonl",
            [
                ("a1", "http://Ex.com/x/"),
                ("a2", "http://ex.com/y?utm_source=1"),
                ("a3", ""),
                ("a4", "javascript:x"),
                ("a5", "http://ex.com/z"),
                ("a6", "http://ex.com/x"),
                ("a7", "http://ex.com/gone"),
                ("a8", "http://ex.com/unjudged"),
            ],
        ),
        "V2": collection(
            tmp_path / "b.jsonl",
            [
                ("b1", "https://ex.com/x"),
                ("b2", "http://ex.com/y"),
                ("b3", "http://ex.com/y#again"),
                ("b5", "http://ex.com/z"),
                ("b6", "https://ex.com/z/"),
                ("b8", "http://ex.com/unjudged"),
                ("b9", ""),
            ],
        ),
        "bare": collection(tmp_path / "c.jsonl", [("c1", ""), ("a7", "")]),
    }


@pytest.fixture
def qrels(tmp_path: Path) -> str:
    rows = [("1", f"a{number}", 1) for number in range(1, 8)]
    return judgments(tmp_path / "q.qrels", [*rows, ("2", "a1", 0), ("3", "nowhere", 1)])


def of_version(matched: Any, version: str) -> dict[str, tuple[str, str | None, str]]:
    rows = matched.pairs.filter(pl.col("version") == version).select("doc_id", "status", "found", "reason")
    return {doc: (status, found, reason) for doc, status, found, reason in rows.iter_rows()}


def test_every_outcome_has_its_reason(versions: dict[str, str], qrels: str, tmp_path: Path) -> None:
    rules = UrlRules(drop_tracking=True)
    matched = match(versions, qrels, urls=rules, out=tmp_path / "out")
    shared = "shares its document of V2 with other judged documents"
    assert of_version(matched, "V2") == {
        "a1": ("matched", "b1", shared),
        "a2": ("ambiguous", None, "2 documents of V2"),
        "a3": ("lost", None, "no URL in V1"),
        "a4": ("lost", None, "its URL in V1 names no host"),
        "a5": ("matched", "b5", "of several documents, the only one with the URL letter for letter"),
        "a6": ("matched", "b1", shared),
        "a7": ("lost", None, "no document with this URL in V2"),
        "nowhere": ("lost", None, "not in V1, so that its URL is not known"),
    }
    bare = of_version(matched, "bare")
    assert bare["a1"] == bare["a7"] == ("lost", None, "bare has no URLs")
    assert matched.frame.columns == ["key", "doc_id", "V1", "V2", "bare"]
    assert matched.frame.row(1) == ("ex.com/y", "a2", "a2", None, None)
    assert matched.frame.row(7) == ("", "nowhere", None, None, None)
    assert matched.status("V2") == {"matched": 3, "lost": 4, "ambiguous": 1}
    assert matched.counts["V2"] == {"documents": 7, "without_url": 1, "no_host": 0, "shared_url": 4}
    assert matched.warnings[0] == "1 judged documents are not in V1."
    assert "No document of bare has a URL: match by id, or give a mapping." in matched.warnings
    lost = (tmp_path / "out" / "lost.tsv").read_text(encoding="utf-8").splitlines()
    assert lost[0] == "doc_id\tkey\tversion\treason"
    assert len(lost) == 1 + 4 + 8
    ambiguous = (tmp_path / "out" / "ambiguous.tsv").read_text(encoding="utf-8").splitlines()
    assert ambiguous[1:] == ["a2\tex.com/y\tV2\t2\tb2 b3\t2 documents of V2"]
    again = load_matched(tmp_path / "out")
    assert again.frame.equals(matched.frame)
    assert again.pairs.equals(matched.pairs)
    assert repr(again) == repr(matched)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.name != "run.log"}
    match(versions, qrels, urls=rules, out=tmp_path / "out")
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.name != "run.log"}


def test_without_the_rule_a_tracked_url_is_another_one(versions: dict[str, str], qrels: str) -> None:
    matched = match(versions, qrels)
    assert of_version(matched, "V2")["a2"] == ("lost", None, "no document with this URL in V2")
    assert matched.folder is None


def test_by_id_and_by_mapping(versions: dict[str, str], qrels: str, tmp_path: Path) -> None:
    by_id = match(versions, qrels, matching=MatchOptions(match_by="id"))
    assert of_version(by_id, "bare")["a7"] == ("matched", "a7", "")
    assert of_version(by_id, "bare")["a1"] == ("lost", None, "no document with this id in bare")
    assert of_version(by_id, "V2")["nowhere"] == ("lost", None, "neither in V1 nor in V2")
    mapping = tmp_path / "map.tsv"
    mapping.write_text("V2\tV1\nb1\ta1\nb2\ta1\nb3\ta2\nb3\ta3\nb77\ta4\n\ta5\n", encoding="utf-8")
    pair = {name: versions[name] for name in ("V1", "V2")}
    mapped = match(pair, qrels, match_by="mapping", mapping=str(mapping))
    found = of_version(mapped, "V2")
    assert found["a1"] == ("ambiguous", None, "2 documents of V2")
    assert found["a2"][:2] == found["a3"][:2] == ("matched", "b3")
    assert found["a4"] == ("lost", None, "no document that the mapping names in V2")
    assert found["a5"] == found["a6"] == ("lost", None, "the mapping names nothing in V2")


@pytest.mark.parametrize("seed", [0, 1])
def test_against_a_plain_count(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    hosts = ["http://a.org/", "https://A.org:443/", "http://b.org/", "http://b.org/./"]

    def some(name: str) -> list[tuple[str, str]]:
        return [
            (f"{name}{at}", draw.choice(hosts) + draw.choice("pqrstuvw") + draw.choice(["", "/"])) for at in range(60)
        ]

    first, second = some("a"), some("b")
    matched = match({"A": collection(tmp_path / "a.jsonl", first), "B": collection(tmp_path / "b.jsonl", second)})
    held: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for doc, url in second:
        held[normalise_url(url)].append((doc, url))
    for doc, url in first:
        candidates = held[normalise_url(url)]
        exact = [one for one, theirs in candidates if theirs == url]
        wanted = candidates[0][0] if len(candidates) == 1 else exact[0] if len(exact) == 1 else None
        row = matched.frame.row(by_predicate=pl.col("doc_id") == doc, named=True)
        assert row["B"] == wanted
        status = "matched" if wanted else "ambiguous" if candidates else "lost"
        assert of_version(matched, "B")[doc][0] == status


def test_a_killed_match_goes_on_with_the_version_it_was_reading(
    versions: dict[str, str], qrels: str, tmp_path: Path
) -> None:
    class Killed(Quiet):
        read: list[str] = []  # noqa: RUF012

        def start(self, what: str, total: int | None = None) -> None:
            self.read.append(what)
            if self.read.count("reading bare") == 1 and what == "reading bare":
                raise KeyboardInterrupt

    whole = match(versions, qrels, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        match(versions, qrels, out=tmp_path / "out", progress=Killed())
    resumed = match(versions, qrels, out=tmp_path / "out", progress=Killed())
    assert Killed.read == ["reading V1", "reading V2", "reading bare", "reading bare"]
    assert resumed.pairs.equals(whole.pairs)
    names = [path.name for path in (tmp_path / "whole").iterdir() if path.name != "run.log"]
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (tmp_path / "out" / ".work").exists()


def test_the_command_and_its_faults(
    versions: dict[str, str], qrels: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--version", f"V1={versions['V1']}", "--version", f"V2={versions['V2']}"]
    with pytest.raises(SystemExit) as ended:
        main(["transfer", "match", *given, "--qrels", qrels, "--out", str(tmp_path / "out"), "--json"])
    assert ended.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert told["versions"]["V2"]["matched"] == 3
    faults: list[tuple[list[str], str]] = [
        ([*given[:2]], "one version has nothing to be compared with"),
        ([*given, "--version", f"V2={versions['bare']}"], "two versions called 'V2'"),
        ([*given, "--match-by", "mapping"], "a mapping file goes with matching by mapping"),
        ([*given, "--match-by", "mapping", "--mapping", str(tmp_path / "none")], "no such file"),
        ([*given[:2], "--version", f"key={versions['V2']}"], "a version cannot be called 'key'"),
    ]
    for words, fault in faults:
        with pytest.raises(SystemExit) as ended:
            main(["transfer", "match", *words, "--out", str(tmp_path / "bad")])
        assert ended.value.code == 2
        assert fault in capsys.readouterr().err
    with pytest.raises(InputError, match=r"no matched\.parquet"):
        load_matched(tmp_path)
