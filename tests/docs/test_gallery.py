"""The gallery: pages of one form, documented columns, figures as the library gives them, the same bytes twice."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.stats

from places import ROOT, SHARED
from truerank.measures.floors import fixed_list
from truerank.measures.null_rankers import random_order

sys.path += [str(ROOT / "studies"), str(ROOT / "scripts")]
gallery = pytest.importorskip("gallery", reason="the studies are not here")
files: ModuleType = pytest.importorskip("gallery_files")
pages: ModuleType = pytest.importorskip("gallery_pages")

FOLDER = ROOT / "docs/gallery"
BENCHMARKS, LOGS = gallery.read_spec()
SECTIONS = (
    "In figures", "Faults and doubts", "Overlaps with other sets", "The smallest difference",
    "Neighbours on a leaderboard", "Not looked at", "Commands",
)  # fmt: skip
PAGES: dict[str, str] = dict(pages.pages())


def sections(text: str) -> dict[str, str]:
    """The sections of a page, by heading."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))


@pytest.mark.parametrize("name", [one.page for one in BENCHMARKS])
def test_pages_have_one_form(name: str) -> None:
    text = PAGES[f"{name}.md"]
    found = sections(text)
    assert tuple(found) == SECTIONS
    assert all(found.values())
    for heading in SECTIONS[:-2]:
        # Figures, or why there are none.
        assert re.search(r"\d|\b(?:not|no|nothing)\b", found[heading], re.IGNORECASE), heading
    quoted = re.search(r"^> \*\*(.+)\*\* \(\[\w+\]\(#commands\)\)$", text, re.MULTILINE)
    assert quoted is not None and re.search(r"\d", quoted[1])
    # Figures of the first sections name a command, which the last one has.
    named = {*re.findall(r"\[(\w+)\]\(#commands\)", text)}
    assert not [one for one in named if f"**{one}**" not in found["Commands"]]
    assert len(text.split()) <= 1000
    assert f"]({name}.md)" in PAGES["index.md"]


def test_every_benchmark_has_a_page_and_the_data_alone_are_kept() -> None:
    assert set(PAGES) == {f"{one.page}.md" for one in BENCHMARKS} | {"index.md", "mteb.md"}
    assert {path.name for path in FOLDER.iterdir()} == {"gallery.csv", "gallery.json", "gallery.svg"}


def test_columns_are_documented() -> None:
    rows = [*csv.DictReader((FOLDER / "gallery.csv").open(encoding="utf-8"))]
    content = json.loads((FOLDER / "gallery.json").read_text(encoding="utf-8"))
    assert list(rows[0]) == list(files.COLUMNS) == list(content["columns"])
    assert len(rows) == sum(len(one.versions) for one in BENCHMARKS)
    assert all(row["truerank"] == content["truerank"] and row["command"].startswith("truerank ") for row in rows)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A benchmark of 30 topics: two of them copies, one document relevant for most, some judged twice."""
    folder = tmp_path_factory.mktemp("data")
    draw = np.random.default_rng(5)
    words = [f"word{number}" for number in range(300)]
    texts = [" ".join(draw.choice(words, 7, replace=False)) for _ in range(30)]
    texts[4] = texts[3]
    rows = [f"{100 + 3 * at}\t{text}\n" for at, text in enumerate(texts)]
    (folder / "topics.tsv").write_text("".join(rows), encoding="utf-8")
    lines = []
    for at in range(30):
        judged = draw.choice(400, 20, replace=False)
        lines += [f"{100 + 3 * at} 0 d{doc} {draw.integers(0, 3)}\n" for doc in judged]
        lines += [f"{100 + 3 * at} 0 hub 2\n"] if at % 3 else []
    lines += [lines[0], lines[40]]
    (folder / "made.qrels").write_text("".join(lines), encoding="utf-8")
    for name in ("one", "two"):
        run = [f"{100 + 3 * at} Q0 d{doc} 1 {draw.random():.4f} {name}\n" for at in range(30) for doc in range(60)]
        (folder / f"{name}.run").write_text("".join(run), encoding="utf-8")
    (folder / "gallery.toml").write_text(
        '[logs]\nlog = "log.tsv"\n[families.made]\nfrom = "a test"\ntopics = "topics.tsv"\n'
        'versions = { "" = "made.qrels" }\n[benchmarks.made]\nfamily = "made"\nname = "Made"\n'
        'runs = { one = "one.run", two = "two.run" }\n'
    )
    (folder / "log.tsv").write_text("".join(f"x{at}\t{text}\n" for at, text in enumerate(texts[10:14])))
    return folder, gallery.read_spec(folder / "gallery.toml")


def facts_of(made: tuple[Path, Any], kept: Path) -> Sequence[dict[str, Any]]:
    folder, (benchmarks, logs) = made
    cells, names = gallery.overlaps(benchmarks, logs, folder, kept)
    return [gallery.facts_of(one, None, cells, names, folder) for one in benchmarks]


def test_figures_are_those_of_the_library(made: tuple[Path, Any], tmp_path: Path) -> None:
    (facts,) = facts_of(made, tmp_path)
    row = next(csv.DictReader(files.as_csv([files.flat((facts, facts["versions"][0]))]).splitlines()))
    lines = [line.split() for line in (made[0] / "made.qrels").read_text().splitlines()]
    grades = {(topic, doc): int(grade) for topic, _, doc, grade in lines}
    schema = ["topic_id", "doc_id", "relevance"]
    qrels = pl.DataFrame([(*pair, grade) for pair, grade in grades.items()], schema, orient="row")
    per_topic = [*Counter(topic for topic, _ in grades).values()]
    assert int(row["topics"]) == int(row["judged_topics"]) == 30 and int(row["judgments"]) == len(grades)
    assert int(row["relevant"]) == sum(grade > 0 for grade in grades.values())
    ends = [float(row[f"per_topic_{end}"]) for end in ("least", "median", "most")]
    assert ends == [min(per_topic), np.median(per_topic), max(per_topic)]
    assert row["grades"] == " ".join(f"{one}:{count}" for one, count in sorted(Counter(grades.values()).items()))
    assert int(row["duplicate_topics"]) == 1 and int(row["repeated_judgments"]) == 2
    assert float(row["floor"]) == pytest.approx(fixed_list(qrels, "nDCG@10").mean, abs=1e-12)
    random = random_order(qrels, "nDCG@10")
    assert random is not None and float(row["random_order"]) == pytest.approx(np.mean([*random.values()]), abs=1e-9)
    relevant = {topic: sum(grade > 0 for (one, _), grade in grades.items() if one == topic) for topic, _ in grades}
    ceiling = np.mean([min(1, 100 / count) for count in relevant.values()])
    assert float(row["ceiling_r100"]) == pytest.approx(ceiling) and float(row["ceiling_ndcg10"]) == pytest.approx(1)
    assert "COLL16" in row["doubts"]
    # The power of a t-test at the smallest difference, by the non-central t distribution.
    shift = float(row["smallest_0.20"]) / 0.20 * 30**0.5
    bar = scipy.stats.t.ppf(0.975, 29)
    power = scipy.stats.nct.sf(bar, 29, shift) + scipy.stats.nct.cdf(-bar, 29, shift)
    assert power == pytest.approx(0.8, abs=1e-4)
    assert float(row["sd_of_runs"]) == facts["runs"]["pairs"][0]["sd"] > 0
    (log,) = [one for one in facts["overlaps"] if one["training"] == "log"]
    assert log["exact"] == log["near"] == 4 and log["topics"] == 30


def test_the_same_bytes_twice(made: tuple[Path, Any], tmp_path: Path) -> None:
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        facts = facts_of(made, tmp_path / name)
        text = pages.page(facts[0], "")
        written.append(json.dumps([facts, text, *gallery.fingerprints(made[1][0], made[0])]))
    assert written[0] == written[1] and "never reads the query" in written[0]
    assert tuple(sections(text)) == SECTIONS


@pytest.mark.shared
def test_a_page_is_what_the_data_give() -> None:
    """One page from the real data, its overlaps and leaderboard left out: the figures of the committed files."""
    (one,) = [one for one in BENCHMARKS if one.page == "bright-pony"]
    facts = gallery.facts_of(one, None, None, {}, SHARED / "data")
    content = json.loads((FOLDER / "gallery.json").read_text(encoding="utf-8"))
    (kept,) = [each for each in content["benchmarks"] if each["page"] == "bright-pony"]
    assert json.loads(json.dumps(facts["versions"])) == kept["versions"]


def test_picture_has_the_same_bytes() -> None:
    content = json.loads((FOLDER / "gallery.json").read_text(encoding="utf-8"))["benchmarks"]
    drawn = files.to_svg_file(files.picture(content), name="gallery", description=files.PICTURE)
    assert drawn == (FOLDER / "gallery.svg").read_text(encoding="utf-8")
