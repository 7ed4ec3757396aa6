"""Ids without documents: the same as those of the documents, also where lines are not what they seem."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.sources import documents, open_documents

_IDS = st.sampled_from(["a", "b7", " c ", "", "true", "1.50", "1e5", "-", "ü", 5, 2.5, True, None, ["x"]])
_BODIES = st.sampled_from(["text", "", 'a "quoted" \\ud83d', "日本", None, 3, ["two", "parts"], {"a": 1}])
_LINES = st.one_of(
    st.builds(
        lambda one, body, extra: json.dumps({"_id": one, "text": body} | extra, ensure_ascii=False),
        _IDS, _BODIES,
        st.sampled_from(
            [{}, {}, {"title": "t"}, {"data": {"text": "x"}}, {"doc_id": "other"}, {"metadata": {"_id": "z"}}]
        ),
    ),
    st.sampled_from(
        ["", "  ", '{"_id": "x"}', '{"title": "only"}', '{"_id":"p","_id":"q","text":"t"}',
         '{"_id": "s\\ud800", "text": "t"}', '{"text": "t"}', '["q", "d"]', '"alone"', "{broken",
         '{"_id":"r","text":"t"}\r']
    ),
)  # fmt: skip


def _all(path: Path, *, quick: bool) -> list[object] | str:
    try:
        source = open_documents(str(path), keep_empty=True)
        every = [] if quick else [one.document for block in source.records() for one in block]
        ids = [*source.ids()] if quick else [one.doc_id for one in every]
        wanted = {"a", "c", "line-2", "1.5", "q"}
        return [*ids, *(source.chosen(wanted) if quick else (one for one in every if one.doc_id in wanted))]
    except InputError as error:
        return str(error)


@settings(max_examples=300, deadline=None)
@given(lines=st.lists(_LINES, min_size=1, max_size=4))
def test_ids_are_those_of_the_documents(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "docs.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass", newline="")
        assert _all(path, quick=True) == _all(path, quick=False)


def test_a_line_that_needs_a_closer_look_may_come_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_AT_ONCE", 64)
    path = tmp_path / "docs.jsonl"
    plain = [json.dumps({"_id": f"d{at}", "text": "some words"}) for at in range(50)]
    path.write_text("\n".join([*plain, json.dumps({"_id": " late ", "text": ["in", "parts"]}), *plain]))
    assert _all(path, quick=True) == _all(path, quick=False)
    source, names = open_documents(str(path)), [f"d{at}" for at in range(50)]
    assert [*source.ids()] == [*names, "late", *names]
    assert [one.body for one in source.chosen({"d7", "late"})] == ["some words", "in parts", "some words"]


def test_plain_lines_make_no_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps({"_id": at, "text": "x"}) + "\n" for at in range(9)))
    monkeypatch.setattr(documents, "json_row", None)
    assert [*open_documents(str(path)).ids()] == [str(at) for at in range(9)]


@pytest.mark.parametrize("wanted", [1, 3, 7, 12])
def test_wanted_ids_are_looked_up_in_parts_and_keep_the_order_of_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    monkeypatch.setattr(documents, "_LOOKED_UP", 2)
    ids = random.Random(3).sample(range(100), 12)
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(json.dumps({"_id": f"d{one}", "text": "a text"}) + "\n" for one in [*ids, ids[0]]))
    some = pl.Series(["elsewhere", *(f"d{one}" for one in sorted(ids[:wanted]))])
    found = open_documents(str(docs), keep_empty=True).ids_among(some)
    assert found.to_list() == [f"d{one}" for one in ids[:wanted]]
