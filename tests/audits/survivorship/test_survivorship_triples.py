"""Training triples by depth, by ids and by texts; the annotators that are simulated; the way into a training set."""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path

import polars as pl
import pytest

from truerank.audits.survivorship import TriplesOptions, depth, triples
from truerank.audits.survivorship.instances import open_instances
from truerank.core.result import summary
from truerank.errors import InputError, OptionError


def log_and_triples(folder: Path) -> tuple[dict[tuple[str, str], int], list[tuple[str, str, str]]]:
    """A log with texts and ids, triples of its pairs and of others, and where each pair stood."""
    draw = random.Random(6)
    rows, places = [], {}
    for query in range(30):
        shown = []
        for place in range(12):
            doc_id = f"d{query}-{place}"
            selected = draw.random() < 0.25
            shown.append({"doc_id": doc_id, "text": f"text of é {doc_id}", "selected": selected})
            if selected:
                places[f"q{query}", doc_id] = place
        rows.append({"query_id": f"q{query}", "query": f"query number {query}", "shown": shown})
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [*places, ("q1", "nobody"), ("q99", "d0-0")]
    stream = [(*draw.choice(pairs), f"n{number}") for number in range(400)]
    return places, stream


@pytest.mark.parametrize("by", ["id", "text"])
def test_triples_against_brute_force(tmp_path: Path, by: str) -> None:
    places, stream = log_and_triples(tmp_path)
    depth(str(tmp_path / "log.jsonl"), out=tmp_path / "depth")

    def cells(triple: tuple[str, str, str]) -> tuple[str, str, str]:
        query, relevant, nonrelevant = triple
        if by == "id":
            return triple
        # The text of the triples is damaged: the pair is found all the same.
        damaged = f"text of Ã© {relevant}"
        return f"query number {query[1:]}", damaged, f"text of {nonrelevant}"

    (tmp_path / "triples.tsv").write_text("".join("\t".join(cells(one)) + "\n" for one in stream))
    found = triples(str(tmp_path / "triples.tsv"), tmp_path / "depth", tsv=True, out=tmp_path / "out")
    assert found.by == by
    kept = [(one, places[one[:2]] + 1) for one in stream if one[:2] in places]
    frame = pl.read_parquet(tmp_path / "out" / "triples.parquet")
    columns = ("query_id", "relevant_id", "nonrelevant_id") if by == "id" else ("query", "relevant", "nonrelevant")
    assert frame.select(*columns, "depth").rows() == [(*cells(one), deep) for one, deep in kept]
    assert (found.read, found.unknown, found.unplaced) == (400, 400 - len(kept), 0)
    for level, bound in zip(found.levels, (1, 5, 99), strict=True):
        inside = [one for one, deep in kept if deep <= bound]
        assert level.triples == len(inside)
        assert level.pairs == len({one[:2] for one in inside})
        assert level.queries == len({one[0] for one in inside})
        lines = (tmp_path / "out" / f"triples-{level.label}.tsv").read_text().splitlines()
        assert lines == ["\t".join(cells(one)) for one in inside]
    assert not (tmp_path / "out" / ".work").exists()
    if by == "text":
        read = list(open_instances(str(tmp_path / "out" / "triples.parquet")))
        assert [one.query for one in read] == [cells(one)[0] for one, _ in kept]


def test_unplaced_and_foreign_triples(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"query_id": "1", "query": "q", "shown": ["a", "b"], "selected": ["b"]}\n')
    (tmp_path / "o.qrels").write_text("1 0 b 1\n1 0 c 1\n")
    depth(str(tmp_path / "log.jsonl"), str(tmp_path / "o.qrels"), out=tmp_path / "depth")
    (tmp_path / "t.tsv").write_text("1\tb\tx\n1\tc\tx\n1\tz\tx\n")
    found = triples(str(tmp_path / "t.tsv"), tmp_path / "depth", shown=(1, 2), out=tmp_path / "out")
    assert [one.triples for one in found.levels] == [0, 1, 1]
    assert (found.unknown, found.unplaced) == (1, 1)
    with pytest.raises(InputError, match="have no texts"):
        triples(str(tmp_path / "t.tsv"), tmp_path / "depth", pairs_by="text", out=tmp_path / "x")
    (tmp_path / "f.tsv").write_text("9\tb\tx\n")
    with pytest.raises(InputError, match="no relevant pair"):
        triples(str(tmp_path / "f.tsv"), tmp_path / "depth", out=tmp_path / "y")
    with pytest.raises(InputError, match=r"no depths\.parquet"):
        triples(str(tmp_path / "t.tsv"), tmp_path, out=tmp_path / "z")


def test_reading_stops_when_there_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places, stream = log_and_triples(tmp_path)
    depth(str(tmp_path / "log.jsonl"), out=tmp_path / "depth")
    file = tmp_path / "t.tsv"
    file.write_text("".join("\t".join(one) + "\n" for one in stream))
    shallow = [number for number, one in enumerate(stream) if places.get(one[:2], 99) < 3]
    # What stands behind the triple that is the fifth is not looked at, wherever blocks end.
    end = shallow[4] + 1
    module, found = importlib.import_module("truerank.audits.survivorship.training_triples"), []
    for block in (1, 7, 1000):
        monkeypatch.setattr(module, "_BLOCK", block)
        out = tmp_path / f"out-{block}"
        one = triples(str(file), tmp_path / "depth", tsv=True, shown=(3, 8), limit=5, out=out)
        assert (one.read, one.levels[0].triples) == (end, 5)
        assert one.levels[1].triples == sum(places.get(each[:2], 99) < 8 for each in stream[:end])
        assert len((out / "triples-3.tsv").read_text().splitlines()) == 5
        assert "Reading stopped when depth 3 had 5 triples" in summary(one).show()
        found.append((out / "triples.parquet").read_bytes())
    assert found[0] == found[1] == found[2]
    assert triples(str(file), tmp_path / "depth", shown=(3, 8), limit=5).json() == one.json()
    # What stands behind the end is not read: neither a fault there nor other triples change the identity.
    file.write_text("".join("\t".join(one) + "\n" for one in stream[:end]) + "no-triple\n")
    monkeypatch.setattr(module, "_BLOCK", 1)
    again = triples(str(file), tmp_path / "depth", shown=(3, 8), limit=5, out=tmp_path / "again")
    assert again.instances.sha256 == one.instances.sha256
    with pytest.raises(InputError, match="1 column instead of three"):
        triples(str(file), tmp_path / "depth", shown=(3, 8), limit=50, out=tmp_path / "x")
    file.write_text("".join("\t".join(one) + "\n" for one in stream))
    all_of_it = triples(str(file), tmp_path / "depth", shown=(3, 8), limit=5000, out=tmp_path / "y")
    assert all_of_it.read == len(stream)
    assert "ended before depth 3 had the 5,000 triples" in summary(all_of_it).show()
    with pytest.raises(OptionError, match="limit: must be at least 1, got 0"):
        TriplesOptions(limit=0)
