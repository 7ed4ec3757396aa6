"""Judgments of chunks, carried to the chunks of another cutting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from truerank.audits.transfer import Carrying, Route, carry
from truerank.cli import main
from truerank.errors import TruerankError

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("ab", "ek", "im", "ol", "ur")]


def text_of(seed: int, words: int = 120) -> list[str]:
    draw = np.random.default_rng(seed)
    return ["".join(draw.choice(SYLLABLES, 3)) for _ in range(words)]


def chunks(size: int, step: int, documents: int = 3) -> list[dict[str, Any]]:
    """Chunks of so many words, every so many words, with their places in the text."""
    found: list[dict[str, Any]] = []
    for doc in range(documents):
        words = text_of(doc)
        ends = np.cumsum([len(word) + 1 for word in words]).tolist()
        for first in range(0, len(words) - size + 1, step):
            start = ends[first - 1] if first else 0
            found.append({
                "chunk_id": f"D{doc}/{size}/{first}", "text": " ".join(words[first : first + size]),
                "doc_id": f"D{doc}", "start": start, "end": ends[first + size - 1] - 1,
            })  # fmt: skip
    return found


def carried(folder: Path, old: list[dict[str, Any]], new: list[dict[str, Any]], *judged: str, **more: Any) -> Carrying:
    for name, rows in (("old", old), ("new", new)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "old.qrels").write_text("".join(f"{line}\n" for line in judged))
    route = Route(spans=str(folder / "old.jsonl"), docs=str(folder / "new.jsonl"), **more)
    return carry(str(folder / "old.qrels"), route=route, out=folder / "new.qrels")


def texts_only(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"chunk_id": row["chunk_id"], "text": row["text"]} for row in rows]


@pytest.mark.parametrize(("by", "name"), [("offsets", "chunk_id"), ("offsets", "id"), ("text", "chunk_id")])
def test_small_chunks_go_to_large_ones_and_large_ones_are_judged_anew(tmp_path: Path, by: str, name: str) -> None:
    small, large = chunks(20, 20), chunks(60, 60)
    if by == "text":
        small, large = texts_only(small), texts_only(large)
    small, large = ([{name: row.pop("chunk_id"), **row} for row in rows] for rows in (small, large))
    found = carried(tmp_path, small, large, "1 0 D0/20/20 2", "1 0 D1/20/0 0", "1 0 D1/20/20 0", "1 0 D1/20/40 0")
    assert found.by == by
    assert found.qrels.rows() == [("1", "D0/60/0", 2), ("1", "D1/60/0", 0)]
    assert found.counts()["carried"] == 4
    found = carried(tmp_path, large, small, "1 0 D0/60/0 1", "1 0 D1/60/60 0")
    assert found.qrels.rows() == [("1", f"D1/20/{at}", 0) for at in (60, 80, 100)]
    assert found.doubtful is not None
    assert [row[1] for row in found.doubtful.rows()] == ["D0/20/0", "D0/20/20", "D0/20/40"]
    assert found.parts["ambiguous"]["reason"].to_list() == ["no new chunk holds enough of it"]
    run = (tmp_path / "new.qrels.doubtful.run").read_text().splitlines()
    assert len(run) == 3 and run[0].startswith("1 Q0 D0/20/0 1 0.33")


def test_overlapping_chunks_get_the_grade_each(tmp_path: Path) -> None:
    found = carried(tmp_path, chunks(20, 20), chunks(60, 20), "1 0 D0/20/40 1")
    assert [row[1] for row in found.qrels.rows()] == ["D0/60/0", "D0/60/20", "D0/60/40"]
    found = carried(tmp_path, chunks(20, 20), chunks(30, 10), "1 0 D0/20/40 1", min_overlap=0.45)
    assert [row[1] for row in found.qrels.rows()] == [f"D0/30/{at}" for at in (20, 30, 40, 50)]


def test_small_changes_of_the_text_do_not_break_a_piece(tmp_path: Path) -> None:
    new = texts_only(chunks(60, 60))
    for row in new:
        words = row["text"].split()
        words[::17] = ["changed" for _ in words[::17]]
        row["text"] = " ".join(words).upper().replace(" ", " \n")
    found = carried(tmp_path, texts_only(chunks(20, 20)), new, "1 0 D0/20/20 1", "2 0 D2/20/80 3")
    assert found.qrels.rows() == [("1", "D0/60/0", 1), ("2", "D2/60/60", 3)]


def test_words_at_several_places_are_not_carried_to_all_of_them(tmp_path: Path) -> None:
    old, new = texts_only(chunks(20, 20)), texts_only(chunks(60, 60))
    around = text_of(9, 40)
    copy = {"chunk_id": "copy", "text": " ".join([*around[:20], old[1]["text"], *around[20:]])}
    found = carried(tmp_path, old, [*new, copy], "1 0 D0/20/20 1", "1 0 D1/20/20 1")
    assert found.qrels.rows() == [("1", "D1/60/0", 1)]
    assert found.parts["ambiguous"]["reason"].to_list() == ["its words are in several places"]
    assert found.doubtful is not None and set(found.doubtful["doc_id"]) == {"D0/60/0", "copy"}
    again = carried(tmp_path, old, [*new, {**new[0], "chunk_id": "again"}], "1 0 D0/20/20 1", "1 0 D1/20/20 1")
    assert again.qrels.rows() == [("1", "D1/60/0", 1)]
    with_places = carried(tmp_path, chunks(20, 20), [*chunks(60, 60), {**chunks(60, 60)[0], "chunk_id": "other",
                          "doc_id": "elsewhere"}], "1 0 D0/20/20 1")  # fmt: skip
    assert with_places.qrels.rows() == [("1", "D0/60/0", 1)]


def test_the_order_of_the_new_chunks_does_not_matter(tmp_path: Path) -> None:
    old, new = texts_only(chunks(20, 20)), texts_only(chunks(60, 20))
    shuffled = [new[at] for at in np.random.default_rng(1).permutation(len(new))]
    judged = ("1 0 D0/20/40 1", "1 0 D1/20/60 0", "2 0 D2/20/80 3")
    first, second = (carried(tmp_path, old, order, *judged) for order in (new, shuffled))
    assert sorted(first.qrels.rows()) == sorted(second.qrels.rows())
    assert len(first.qrels) == 5


@pytest.mark.parametrize("by", ["offsets", "text"])
def test_pieces_of_relevant_chunks_are_listed_to_judge(tmp_path: Path, by: str) -> None:
    old, new = chunks(60, 60), chunks(30, 30)
    for row in old + new:
        row["article"] = row.pop("doc_id")
    if by == "text":
        old, new = texts_only(old), texts_only(new)
    judged = ("1 0 D0/60/0 2", "1 0 D1/60/0 0", "2 0 D1/60/0 1", "2 0 D1/60/60 3")
    asked = carried(tmp_path, old, new, *judged)
    assert (asked.by, asked.inside) == (by, 6)
    assert "6 new chunks" in asked.warnings[-1] and "0 are relevant" in asked.warnings[-1]
    assert asked.qrels.rows() == [("1", "D1/30/0", 0), ("1", "D1/30/30", 0)]


def test_what_a_relevant_chunk_touches_is_not_called_not_relevant(tmp_path: Path) -> None:
    old = chunks(20, 20)
    found = carried(tmp_path, old, chunks(60, 60), "1 0 D0/20/0 0", "1 0 D0/20/20 0", "1 0 D0/20/40 1")
    assert found.qrels.rows() == [("1", "D0/60/0", 1)]
    found = carried(tmp_path, old, chunks(60, 30), "1 0 D0/20/0 0", "1 0 D0/20/20 0", "1 0 D1/20/0 1")
    assert found.qrels.rows() == [("1", "D1/60/0", 1)]
    assert set(found.parts["lost"]["reason"]) == {"no new chunk was judged not relevant as a whole"}


def test_short_and_empty_chunks_and_other_scripts(tmp_path: Path) -> None:
    old = [
        {"chunk_id": "a", "text": "Öl, Éter!"},
        {"chunk_id": "b", "text": ""},
        {"chunk_id": "c", "text": "水はどこにあるか"},
    ]
    new = [
        {"chunk_id": "A", "text": "öl éter"},
        {"chunk_id": "C", "text": "水はどこにあるか"},
        {"chunk_id": "E", "text": " "},
    ]
    found = carried(tmp_path, old, new, "1 0 a 1", "1 0 b 1", "1 0 c 2", "1 0 absent 1")
    assert found.qrels.rows() == [("1", "A", 1), ("1", "C", 2)]
    assert found.parts["lost"]["doc_id"].to_list() == ["b", "absent"]


def test_metadata_holds_places_as_splitters_write_them(tmp_path: Path) -> None:
    def nested(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {"id": row["chunk_id"], "content": row["text"],
             "metadata": {"source": row["doc_id"], "start_index": row["start"]}}
            for row in rows
        ]  # fmt: skip

    found = carried(tmp_path, nested(chunks(20, 20)), nested(chunks(60, 60)), "1 0 D0/20/20 1")
    assert (found.by, found.qrels.rows()) == ("offsets", [("1", "D0/60/0", 1)])


@pytest.mark.parametrize(
    ("broken", "what"), [({"start": "here"}, "begins at 'here'"), ({"start": 50, "end": 50}, "ends at 50")]
)
def test_places_at_fault_are_named_with_their_line(tmp_path: Path, broken: dict[str, Any], what: str) -> None:
    old = chunks(20, 20)
    old[1] |= broken
    with pytest.raises(TruerankError, match=what) as error:
        carried(tmp_path, old, chunks(60, 60), "1 0 D0/20/20 1")
    assert "old.jsonl:2" in str(error.value)


def test_the_command_asks_for_the_new_chunks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    carried(tmp_path, chunks(20, 20), chunks(60, 60), "1 0 D0/20/20 1")
    qrels, old, new = (str(tmp_path / name) for name in ("old.qrels", "old.jsonl", "new.jsonl"))
    with pytest.raises(SystemExit, match="2"):
        main(["transfer", "carry", "--qrels", qrels, "--spans", old])
    assert "--docs" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["transfer", "carry", "--qrels", qrels, "--spans", old, "--docs", new, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert (said["by"], said["doubtful"], said["carried"]) == ("offsets", 0, 1)
