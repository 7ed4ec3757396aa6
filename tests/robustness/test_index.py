"""An index of which one file is other than it was written: no command searches it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from truerank.cli.app import main
from truerank.errors import InputError
from truerank.lexical import Index, build_index
from truerank.lexical import index as opening
from truerank.work.artifacts import hash_file

LINES = (
    "search --index COPY --topics IN/topics.tsv -k 5 --out IN/OUT.run",
    "rerank --run IN/first.run --topics IN/topics.tsv --docs IN/docs.jsonl --model bm25:COPY --out IN/OUT.run",
)


def made(folder: Path, word: str) -> Path:
    rows = ({"doc_id": f"d{n}", "body": f"{word}{n % 7} {word}{n % 3} salt {word}{n}"} for n in range(40))
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return build_index(str(folder / "docs.jsonl"), folder / f"index-{word}").folder


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Path]]:
    """A folder of inputs, an index, and another one whose files have the same sizes."""
    folder = tmp_path_factory.mktemp("index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUERANK_CACHE", str(folder / "cache"))
        other = made(folder, "acid")
        (folder / "topics.tsv").write_text("1\tbase1 salt\n2\tbase2\n")
        (folder / "first.run").write_text("".join(f"1 Q0 d{n} {n} {9 - n} r\n" for n in range(1, 8)))
        yield folder, made(folder, "base"), other


def flipped(at: Callable[[int], int]) -> Callable[[bytearray, bytes], None]:
    def change(content: bytearray, other: bytes) -> None:
        content[at(len(content))] ^= 4

    return change


DAMAGES: dict[str, Callable[[bytearray, bytes], None]] = {
    "first byte": flipped(lambda size: 0),
    "header": flipped(lambda size: min(size - 1, 40)),
    "middle": flipped(lambda size: size // 2),
    "three quarters": flipped(lambda size: 3 * size // 4),
    "end": flipped(lambda size: size - 2),
    "cut": lambda content, other: content.__delitem__(slice(-2, None)),
    "zeros": lambda content, other: content.__setitem__(slice(None), bytes(len(content))),
    "another's": lambda content, other: content.__setitem__(slice(None), other),
}


@pytest.mark.parametrize("name", sorted(DAMAGES))
def test_a_damaged_file_is_named(
    name: str, places: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, index, other = places
    copy = tmp_path / "copy"
    for number, file in enumerate(sorted(path.name for path in index.iterdir())):
        shutil.copytree(index, copy, dirs_exist_ok=True)
        assert len(Index(copy)) == 40
        content = bytearray((copy / file).read_bytes())
        DAMAGES[name](content, (other / file).read_bytes())
        if name == "another's" and file == "manifest.json":
            continue
        if content != (index / file).read_bytes():
            (copy / file).write_bytes(content)
            with pytest.raises(InputError, match=r"build (the index|it) again") as error:
                Index(copy)
            assert str(copy / file) == error.value.where
            # Commands open it by the same door.
            line = LINES[number % 2].replace("OUT", f"{name.replace(' ', '-')}-{number}")
            with pytest.raises(SystemExit) as ended:
                main(line.replace("IN", str(folder)).replace("COPY", str(copy)).split())
            assert ended.value.code == 2
            assert str(copy / file) in capsys.readouterr().err


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"documents.bin": 1}, {"documents.bin": {"bytes": "1"}}])
def test_a_manifest_of_other_values_is_refused(value: object, places: tuple[Path, Path, Path], tmp_path: Path) -> None:
    _, index, _ = places
    copy = Path(shutil.copytree(index, tmp_path / "copy"))
    whole = json.loads((copy / "manifest.json").read_text())
    for changed in ({key: other for key, other in whole.items() if key != name} for name in whole):
        (copy / "manifest.json").write_text(json.dumps(changed))
        with pytest.raises(InputError):
            Index(copy)
    for name in whole:
        (copy / "manifest.json").write_text(json.dumps({**whole, name: value}))
        with pytest.raises(InputError):
            Index(copy)


@pytest.mark.parametrize("kept", [True, False])
def test_an_untouched_index_is_read_once(
    kept: bool, places: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, index, _ = places
    copy = Path(shutil.copytree(index, tmp_path / "copy"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / ("cache" if kept else "file")))
    read: list[Path] = []

    def hashed(path: Path) -> str:
        read.append(path)
        return hash_file(path)

    monkeypatch.setattr(opening, "hash_file", hashed)
    monkeypatch.setattr(opening, "_SETTLED", -(10**12))
    files = len(list(copy.iterdir())) - 1
    for name, times in (("", 1), ("", 1 if kept else 2), ("terms.bin", 2 if kept else 3)):
        if name:
            (copy / name).write_bytes((copy / name).read_bytes())
        Index(copy)
        assert len(read) == times * files
