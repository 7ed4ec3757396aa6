"""A redacted audit leaves no text on the disk, also where it ends before its time."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from truerank import leakage

PLANTED = "zyxplanted"


class _EndedError(BaseException):
    """The audit ends here."""


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> type:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "plugin"))
    import hostile_encoder  # type: ignore[import-not-found]

    # Its module stays loaded: what a name stands for is remembered for the whole process.
    return hostile_encoder.Letters  # type: ignore[no-any-return]


@pytest.mark.parametrize("mode", ["exhaustive", "prefilter"])
def test_no_planted_text_in_any_file(mode: str, tmp_path: Path, letters: type, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.tsv").write_text("".join(f"q{n}\t{PLANTED} word{n} other{n % 7}\n" for n in range(300)))
    (tmp_path / "topics.tsv").write_text("".join(f"{n}\t{PLANTED} word{n} other{n % 7}\n" for n in range(5)))
    (tmp_path / "key").write_text("0123456789abcdef0123456789abcdef\n")
    out, calls, encode = tmp_path / "out", 0, letters.encode  # type: ignore[attr-defined]

    def ends(self: object, texts: list[str]) -> object:
        nonlocal calls
        calls += 1
        if calls > (4 if mode == "exhaustive" else 1):
            raise _EndedError
        return encode(self, texts)

    def audit() -> object:
        return leakage.audit(
            str(tmp_path / "train.tsv"), str(tmp_path / "topics.tsv"), encoder="letters", threshold=0.95, mode=mode,
            block_size=32, redact=True, redact_key=str(tmp_path / "key"), out=out,
        )  # fmt: skip

    monkeypatch.setattr(letters, "encode", ends)
    with pytest.raises(_EndedError):
        audit()
    blocks = list(out.rglob("*.arrow"))
    assert blocks, "the audit ended before it kept anything"
    for file in (one for one in out.rglob("*") if one.is_file()):
        assert PLANTED.encode() not in file.read_bytes(), file
    with pytest.raises(pl.exceptions.PolarsError):
        pl.read_ipc(blocks[0].open("rb"))
    monkeypatch.setattr(letters, "encode", encode)
    audit()
    assert not list(out.rglob("*.arrow"))
    for file in (one for one in out.rglob("*") if one.is_file()):
        text = pl.read_parquet(file).write_csv().encode() if file.suffix == ".parquet" else file.read_bytes()
        assert PLANTED.encode() not in text, file
