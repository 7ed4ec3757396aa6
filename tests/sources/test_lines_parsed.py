"""Lines parsed as columns say what lines read one by one say: the same rows, or the same fault."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.sources import lines, read_qrels_frame, read_run_frame

_CELLS = {"run": "1 Q0 d{} {} 2.5 tag", "qrels": "1 0 d{} {}"}
_MISTAKES = st.sampled_from(
    [" ", "  ", "\t", "\r", "\n", "\x0b", "\x1c", "\x00", "\x01", '"', "\xa0", "\u2003", " x", "#", "é"]
)


@pytest.mark.parametrize("kind", _CELLS)
@settings(max_examples=200, deadline=None)
@given(
    rows=st.integers(1, 5), end=st.sampled_from(["", "\n", "\n\n"]), between=st.sampled_from(["\n", "\r\n"]),
    mistakes=st.lists(st.tuples(st.floats(0, 1), _MISTAKES, st.booleans()), max_size=3),
)  # fmt: skip
def test_columns_and_single_lines_agree(
    kind: str, rows: int, end: str, between: str, mistakes: list[tuple[float, str, bool]]
) -> None:
    text = between.join(_CELLS[kind].format(at, at + 1) for at in range(rows)) + end
    for place, mistake, replaces in mistakes:
        at = int(place * len(text))
        text = text[:at] + mistake + text[at + replaces :]

    def read(path: Path) -> object:
        try:
            return (read_run_frame(path) if kind == "run" else read_qrels_frame(str(path))).rows()
        except InputError as error:
            return str(error)

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as changed:
        path = Path(folder) / "file"
        path.write_text(text, encoding="utf-8", newline="")
        quick = read(path)
        changed.setattr(lines, "_regular", lambda *_: None)
        assert quick == read(path)
