"""Lines parsed as columns say what lines read one by one say: the same rows, or the same fault."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.sources import compressed, lines, read_qrels_frame, read_run_frame

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
        changed.setattr(lines, "_parsed", lambda *_: None)
        assert quick == read(path)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.sampled_from(["1 Q0 d{} 1 2.5 t", "1  Q0 d{} 1 2.5 t", ""]), min_size=1, max_size=9),
    start=st.sampled_from(["", "\ufeff", "# ir_metadata.start\n# tag: t\n# ir_metadata.end\n"]),
    end=st.sampled_from(["", "\n"]), between=st.sampled_from(["\n", "\r\n"]), fault=st.booleans(), packed=st.booleans(),
    block=st.integers(60, 99), chunk=st.integers(60, 99),
)  # fmt: skip
def test_blocks_of_any_size_give_the_same_rows_and_name_the_same_line(
    rows: list[str], start: str, end: str, between: str, fault: bool, packed: bool, block: int, chunk: int
) -> None:
    lines_of = [row.format(number) for number, row in enumerate(rows)]
    text = start + between.join([*lines_of, "1 Q0 x 1 none t"] if fault else lines_of) + end
    content = text.encode()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as changed:
        path = Path(folder) / "file"
        path.write_bytes(gzip.compress(content) if packed else content)
        changed.setattr(lines, "_BLOCK", block)
        changed.setattr(compressed, "_CHUNK", chunk)
        if fault:
            with pytest.raises(InputError, match=f":{start.count(chr(10)) + len(rows) + 1}: rank '1' or score 'none'"):
                read_run_frame(path)
        elif any(rows):
            kept = [f"d{number}" for number, row in enumerate(rows) if row]
            assert read_run_frame(path)["doc_id"].to_list() == kept
        numbered = lines.numbered_lines(path)
        assert [(line.number, line.text) for line in numbered if line.text] == [
            (number, line)
            for number, line in enumerate(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"), start=1)
            if line and not line.startswith("#")
        ]


def test_an_empty_column_that_nobody_reads_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("1 Q0 d 1 2.5 t\n1  e 2 1.5 t\n")
    with pytest.raises(InputError, match=r"a\.run:2: 5 columns instead of 6"):
        read_run_frame(path)


def test_a_cut_or_endless_line_is_numbered_by_what_stands_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_BLOCK", 1 << 10)
    monkeypatch.setattr(compressed, "_CHUNK", 1 << 9)
    path = tmp_path / "a.run.gz"
    # What is not compressed is there as far as the file goes.
    whole = gzip.compress(b"".join(b"1 Q0 d%d 1 2.5 t\n" % number for number in range(3_000)), 0)
    path.write_bytes(whole[:30_000])
    there = zlib.decompressobj(wbits=31).decompress(whole[:30_000]).count(b"\n")
    with pytest.raises(InputError, match=rf"a\.run\.gz:{there + 1}: the gzip file is cut off"):
        read_run_frame(path)
    monkeypatch.setattr(lines, "_LONGEST_LINE", 1 << 12)
    path.write_bytes(b"1 Q0 d 1 2.5 t\n" * 300 + b"x" * (1 << 14))
    with pytest.raises(InputError, match=r"a\.run\.gz:\d+: a line of more than"):
        read_run_frame(path)
