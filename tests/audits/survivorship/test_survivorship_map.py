"""Passages by their texts: damage is repaired exactly, no wrong id, everything unmatched listed; later corpora."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.audits.survivorship import MapOptions
from truerank.audits.survivorship.mapping import (
    hex_keys,
    key_of,
    keys_of,
    lookup,
    open_passage_ids,
    overlap_index,
    overlaps,
    sorted_keys,
)
from truerank.audits.survivorship.mapping import map as map_passages
from truerank.cli import main
from truerank.errors import InputError
from truerank.sources.documents import open_documents
from truerank.text.mojibake import repair
from truerank.work.progress import Quiet

ANY = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("éÃ©â€™Â¢日😀\x80\x9f\xc3\xf0"), max_size=12)
#: Texts in which nothing looks damaged: letters that begin a character in UTF-8, or signs that continue one, not both.
SOUND = st.text(st.sampled_from("abc xyzéöñ日本語😀ßΩ"), max_size=12) | st.text(
    st.sampled_from("ab ’“”€日😀Ω"), max_size=12
)


def damage(text: str, choices: list[int]) -> str:
    """Some characters as their UTF-8 bytes, read as latin-1 or as Windows-1252, some of them twice."""
    for choice in choices:
        if not text:
            return text
        place = choice % len(text)
        raw = text[place].encode()
        if choice % 3 == 0:
            shown = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in raw)
        else:
            shown = raw.decode("latin-1")
        text = text[:place] + shown + text[place + 1 :]
    return text


@settings(max_examples=150)
@given(text=ANY, choices=st.lists(st.integers(0, 10_000), max_size=8))
def test_damaged_texts_have_the_key_of_the_whole_one(text: str, choices: list[int]) -> None:
    assert key_of(damage(text, choices)) == key_of(text)
    assert repair(repair(text)) == repair(text)
    assert repair(damage(text, choices)) == repair(text)


@settings(max_examples=80)
@given(text=SOUND, choices=st.lists(st.integers(0, 10_000), max_size=8))
def test_sound_texts_come_back_exactly(text: str, choices: list[int]) -> None:
    assert repair(text) == text
    assert repair(damage(text, choices)) == text
    assert repair(text.encode().decode("latin-1")) == text


def test_what_is_no_damage_stays() -> None:
    for text in (
        "Ångström",
        "naïve Ærø",
        "50 £ § ½",
        "Ã alone",
        "é",
        "\xc3",
        "\xed\xa0\x80",
        "\xc0\xaf",
        "\xf5\x80\x80\x80",
    ):
        assert repair(text) == text
    assert repair("donâ€™t cafÃ©") == "don’t café"


def test_keys_are_found() -> None:
    keys = keys_of(f"text {i}" for i in range(500))
    keys[7] = keys[3]
    keys[8, 0] = keys[9, 0] = keys[3, 0]
    order = sorted_keys(keys)
    rows = lookup(keys[order], keys)
    assert (keys[order][rows] == keys).all()
    missing = np.array([[keys[3, 0], 1], [5, 5], [2**64 - 1, 2**64 - 1]], np.uint64)
    assert lookup(keys[order], missing).tolist() == [-1, -1, -1]
    assert hex_keys(missing[1:2]) == ["0" * 15 + "5" + "0" * 15 + "5"]


def write_log(path: Path, rows: list[list[tuple[str, int]]]) -> None:
    lines = []
    for number, shown in enumerate(rows):
        passages = [{"is_selected": mark, "passage_text": text, "url": "u"} for text, mark in shown]
        kind = "PERSON" if number % 3 else "ENTITY"
        lines.append({"query_id": number, "query": f"q {number}", "query_type": kind, "passages": passages})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_mapping_against_a_dictionary(tmp_path: Path) -> None:
    draw = random.Random(3)
    words = ["café", "Zürich", "don’t", "日本", "alpha", "beta", "gamma", "delta"]
    texts = list(dict.fromkeys(" ".join(draw.choices(words, k=5)) for _ in range(400)))
    with (tmp_path / "docs.tsv").open("w") as target:
        for number, text in enumerate(texts[:300]):
            target.write(f"p{number}\t{damage(text, draw.choices(range(99), k=3)) if number % 2 else text}\n")
        target.write(f"again\t{texts[5]}\n")
    rows = [
        [
            (f" {draw.choice(texts)}\n " if draw.random() < 0.3 else draw.choice(texts), int(draw.random() < 0.2))
            for _ in range(8)
        ]
        for _ in range(120)
    ]
    write_log(tmp_path / "log.jsonl", [*rows, [("", 0)]])
    found = map_passages(str(tmp_path / "log.jsonl"), str(tmp_path / "docs.tsv"), out=tmp_path / "map")
    true = {text: f"p{number}" for number, text in enumerate(texts[:300]) if number != 5}
    shown = [(i, place, text.strip(), mark) for i, row in enumerate(rows) for place, (text, mark) in enumerate(row)]
    assert found.shown.mapped == sum(text in true for _, _, text, _ in shown)
    assert found.shown.ambiguous == sum(text == texts[5] for _, _, text, _ in shown)
    assert found.shown.no_text == 1
    ids = open_passage_ids(tmp_path / "map")
    assert ids.ids(keys_of(text for _, _, text, _ in shown)) == [true.get(text) for _, _, text, _ in shown]
    listed = [json.loads(line) for line in (tmp_path / "map" / "unmatched.jsonl").read_text().splitlines()]
    assert [(int(one["query_id"]), one["position"]) for one in listed[:-1]] == [
        (i, place) for i, place, text, _ in shown if text not in true
    ]
    assert listed[-1]["reason"] == "no-text"
    assert (tmp_path / "map" / "duplicates.tsv").read_text() == "p5\tagain\n"
    survival = pl.read_parquet(tmp_path / "map" / "survival.parquet")
    lost = {
        i for i, row in enumerate(rows) if any(m for _, m in row) and not any(m and t.strip() in true for t, m in row)
    }
    assert set(survival.filter(pl.col("mapped") == 0)["query_id"].cast(int)) == lost
    assert found.lost is not None
    assert found.lost.k == len(lost)
    first = map_passages(
        str(tmp_path / "log.jsonl"), str(tmp_path / "docs.tsv"), options=MapOptions("first"), out=tmp_path / "m2"
    )
    # Without a folder the same comes back, and nothing is written.
    before = sorted(tmp_path.iterdir())
    unwritten = map_passages(str(tmp_path / "log.jsonl"), str(tmp_path / "docs.tsv"))
    assert unwritten.json() == found.json()
    assert unwritten.survival.equals(survival)
    assert unwritten.mapping.equals(pl.read_parquet(tmp_path / "map" / "mapping.parquet"))
    assert sorted(tmp_path.iterdir()) == before
    assert first.shown.mapped == found.shown.mapped + found.shown.ambiguous
    with pytest.raises(InputError, match="have the same text"):
        map_passages(
            str(tmp_path / "log.jsonl"), str(tmp_path / "docs.tsv"), options=MapOptions("fail"), out=tmp_path / "m3"
        )


def sequences(text: str, words: int) -> set[tuple[str, ...]]:
    split = text.lower().split()
    return {tuple(split[i : i + words]) for i in range(max(1, len(split) - words + 1))}


def test_overlap_against_sets(tmp_path: Path) -> None:
    draw = random.Random(4)
    texts = [" ".join(draw.choices("abcd", k=draw.randint(2, 9))) for _ in range(60)]
    documents = [" ".join(draw.choices("ABCDE", k=draw.randint(5, 30))) for _ in range(40)]
    (tmp_path / "later.tsv").write_text("".join(f"n{i}\t{text}\n" for i, text in enumerate(documents)))
    index = overlap_index([texts[:25], texts[25:]], 3)
    found = overlaps(index, open_documents(str(tmp_path / "later.tsv")), Quiet())
    held = [sequences(document, 3) for document in documents]
    wanted = [max(len(sequences(text, 3) & one) / len(sequences(text, 3)) for one in held) for text in texts]
    assert found == pytest.approx(wanted)


def test_a_later_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = "one two three four five six seven eight nine ten"
    other = "red blue green black white brown pink grey gold teal"
    write_log(tmp_path / "log.jsonl", [[(kept, 1), (other, 0)], [(other, 1)], [(other, 1), (kept, 1)], [(kept, 0)]])
    (tmp_path / "later.tsv").write_text(f"a\t{kept} and more\nb\tred blue green\n")
    words = ["survivorship", "map", "--log", str(tmp_path / "log.jsonl"), "--out", str(tmp_path / "map")]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--later", str(tmp_path / "later.tsv"), "--json"])
    assert ended.value.code == 0
    later = json.loads(capsys.readouterr().out)["later"]
    assert (later["discarded"]["found"], later["discarded"]["total"]) == (1, 3)
    assert (tmp_path / "map" / "later-discarded.txt").read_text() == "1\n"
    assert (tmp_path / "map" / "later-survived.txt").read_text() == "0\n2\n"
    assert later["kinds"]["kinds"][0]["total"] == 2
    for more, fault in (
        ([], "nothing to map to"),
        (["--docs", "x", "--overlap", "0"], "--overlap: must be above 0 and at most 1, got 0"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*words, *more])
        assert ended.value.code == 2
        assert fault in capsys.readouterr().err
