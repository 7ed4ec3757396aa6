"""`truerank_lab.papers.reproduce` from data to report, on two collections of made-up words in the form of real ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from truerank_lab.grid.results import GridResults
from truerank_lab.papers import reproduce, survivorship, versions
from truerank_lab.ready import ready

TOPICS, DOCUMENTS = 8, 120
SHALLOW = {
    f"collections.{name}.{key}": value
    for name in ("vaswani", "cacm")
    for key, value in (("depth", "6"), ("folds", "2"))
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def collections(tmp_path_factory) -> Path:
    """Documents with a word of their subject, and one that few share, in every sentence; topics ask for a subject."""
    shared = tmp_path_factory.mktemp("shared")
    for name in ("vaswani", "cacm"):
        folder = shared / "data" / "collections" / name
        folder.mkdir(parents=True)
        draw = random.Random(name)
        common = [f"{name[0]}word{number}" for number in range(200)]
        subjects = [[f"{name[0]}subject{topic}part{part}" for part in range(4)] for topic in range(TOPICS)]
        documents = [
            [
                [f"{name[0]}own{number % 80}", draw.choice(subjects[number % TOPICS]), *draw.choices(common, k=8)]
                for _ in "abcd"
            ]
            for number in range(DOCUMENTS)
        ]
        queries = [" ".join(draw.sample(subject, 3) + draw.sample(common, 2)) for subject in subjects]
        write(folder, name, documents, queries)
        prefix = "" if name == "vaswani" else "CACM-"
        judged = (
            f"{topic + 1} 0 {prefix}{number + 1 if name == 'vaswani' else f'{number + 1:04d}'} 1"
            for topic in range(TOPICS)
            for number in range(topic, DOCUMENTS // 2, TOPICS)
        )
        (folder / "qrels.txt").write_text("\n".join(judged) + "\n")
    return shared


def write(folder: Path, name: str, documents: list[list[list[str]]], queries: list[str]) -> None:
    if name == "vaswani":
        text = "".join(
            f"<DOC>\n<DOCNO>{number}</DOCNO>\n{'  '.join(' '.join(part) for part in parts)}\n</DOC>\n"
            for number, parts in enumerate(documents, start=1)
        )
        (folder / "docs.trec.gz").write_bytes(gzip.compress(text.encode()))
        topics = (
            f"<top>\n<num>{number}</num><title>\n{query}\n</title>\n</top>\n" for number, query in enumerate(queries, 1)
        )
        (folder / "topics.trec.txt").write_text("".join(topics))
        return
    with tarfile.open(folder / "cacm.tar.gz", "w:gz") as archive:
        for number, (title, *rest) in enumerate(documents, start=1):
            body = "\n".join(f"{' '.join(part).capitalize()}." for part in rest)
            page = f"<html>\n<pre>\n\n\n{' '.join(title)}\n\n{body}\n\nCACM July, 1966\n\n</pre></html>\n".encode()
            entry = tarfile.TarInfo(f"CACM-{number:04d}.html")
            entry.size = len(page)
            archive.addfile(entry, io.BytesIO(page))
    topics = (f"<DOC>\n<DOCNO> {number} </DOCNO>\n\n {query}\n\n</DOC>\n" for number, query in enumerate(queries, 1))
    (folder / "topics.txt").write_text("".join(topics))


@pytest.fixture(autouse=True)
def scripts(collections: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(reproduce, "SHARED", collections)
    # The script sets both for its design; what a later test of this process reads is what stood before.
    for name in ("TRUERANK_SHARED", "PREPARED"):
        monkeypatch.setenv(name, str(collections))
    yield


def called(monkeypatch: pytest.MonkeyPatch, study: str, out: Path, settings: dict[str, str]) -> None:
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    monkeypatch.setattr(sys, "argv", ["reproduce", study, "--out", str(out), "--workers", "1", *given])
    reproduce.main()


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        **SHALLOW,
        **{f"sets.{name}.sizes": "[24]" for name in ("none", "shuffled")},
        **{f"models.{name}.seeds": "[0, 1]" for name in ("cedr", "parade", "monobert")},
        "seeds": "[0, 1]",
    }  # fmt: skip
    called(monkeypatch, "pilot", tmp_path, settings)
    cells = GridResults(tmp_path / "grid").cells
    assert len(cells) == 36 and set(cells["status"]) == {"done"} and cells["model"].n_unique() == 9
    rows = [row for row in table(tmp_path / "report", "controls") if row["measure"] == "nDCG@10"]
    assert len(rows) == 18 and {row["benchmark"] for row in rows} == {"vaswani", "cacm"}
    # Killed and called again, nothing is trained twice.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "grid" / "cells").glob("*/cell.json")}
    called(monkeypatch, "pilot", tmp_path, settings)
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_shuffled_labels_say_nothing() -> None:
    import polars as pl

    from truerank_lab.papers.pilot import shuffled

    numbers = [f"{number}" for number in range(40)]
    rows = pl.DataFrame({
        "relevant": [f"good {number}" for number in numbers], "nonrelevant": [f"bad {number}" for number in numbers],
        "relevant_id": [f"g{number}" for number in numbers], "nonrelevant_id": [f"b{number}" for number in numbers],
    })  # fmt: skip
    found = shuffled(rows, 1)
    changed = [row["relevant"].startswith("bad") for row in found.iter_rows(named=True)]
    assert [sum(changed[place : place + 2]) for place in range(0, 40, 2)] == [1] * 20
    for number, row in zip(numbers, found.iter_rows(named=True), strict=True):
        assert {row["relevant"], row["nonrelevant"]} == {f"good {number}", f"bad {number}"}
        assert row["relevant_id"][0] == row["relevant"][0] and row["nonrelevant_id"][0] == row["nonrelevant"][0]
    assert shuffled(rows, 1).equals(found) and not shuffled(rows, 2).equals(found)


def test_leakage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = yaml.safe_load(ready("leakage-small").read_text())["models"]
    settings = {
        "models": json.dumps({name: models[name] for name in ("monot5", "colbert", "ance")}),
        "collections.cacm.depth": "6", "collections.cacm.folds": "2", "report.memorisation_size": "48",
        **{f"sets.cacm-{kind}.sizes": "[48]" for kind in ("none", "leak", "test")},
        **{f"sets.cacm-{kind}.build.leaks": "8" for kind in ("leak", "test")},
        **{f"sets.vaswani-{kind}.sizes": "[48]" for kind in ("none", "leak", "test")},
        **{f"sets.vaswani-{kind}.build.leaks": "8" for kind in ("leak", "test")},
        **{f"models.{name}.{key}": value for name in ("monot5", "colbert", "ance")
           for key, value in (("sizes", "[48]"), ("depth", "6"))},
        "seeds": "[0, 1]",
    }  # fmt: skip
    called(monkeypatch, "leakage", tmp_path, settings)
    results = GridResults(tmp_path / "grid")
    assert len(results.cells) == 18 and set(results.cells["status"]) == {"done"}
    assert {row["model"] for row in table(tmp_path / "report", "memorised-offsets")} == {"monot5", "colbert", "ance"}


def test_transfer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "UNJUDGED", 12)
    settings = {
        **SHALLOW,
        "models.first.seeds": "[0]", "models.best.seeds": "[5]",
    }  # fmt: skip
    called(monkeypatch, "transfer", tmp_path, settings)
    cells = GridResults(tmp_path / "grid").cells
    assert len(cells) == 70 and set(cells["status"]) == {"done"}
    rows = table(tmp_path / "report", "strategies")
    assert len(rows) == 36 and rows[-1]["queries"] == "first stage"


def test_survivorship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        reproduce.STUDIES,
        "survivorship",
        reproduce.STUDIES["survivorship"]._replace(
            prepare=lambda collections, out: survivorship.prepare(collections, out, size=200, dev=20)
        ),
    )
    names = ("dev", "vaswani", "cacm")
    settings = {
        **{f"collections.{name}.depth": "6" for name in names},
        **{f"sets.{name}.sizes": "[20]" for name in ("r1", "r5", "all")},
        "seeds": "[0, 1]",
    }
    called(monkeypatch, "survivorship", tmp_path, settings)
    cells = GridResults(tmp_path / "grid").cells
    assert len(cells) == 12 and set(cells["status"]) == {"done"}
    assert {row["trained on"] for row in table(tmp_path / "report", "depths")} == {"1", "5", "all"}
    assert (tmp_path / "by-depth" / "report" / "report.html").is_file()
