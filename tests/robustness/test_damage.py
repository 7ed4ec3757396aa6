"""What truerank keeps on the disk, damaged: it is read, or refused with a line, by every command that reads it."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from truerank.cli.app import main

_AUDIT = "leakage audit --train IN/train.tsv --test IN/topics.tsv --encoder letters --threshold 0.95"
_SCAN = (
    "transfer scan --model bm25 --version a=IN/a.jsonl --version b=IN/b.jsonl --qrels IN/qrels --topics IN/topics.tsv"
)
_RERANK = "rerank --run IN/first.run --topics IN/topics.tsv --docs IN/a.jsonl --depth 5 --model bm25:IN/index"
MADE = (
    "index IN/a.jsonl --out IN/index",
    f"{_AUDIT} --out IN/audit",
    f"{_SCAN} --out IN/scan",
    "evaluate --qrels IN/qrels --run IN/first.run --out IN/evaluated",
    f"{_RERANK} --cache IN/scores.sqlite --out IN/x.run",
    "judge new IN/store --scheme relevance-documents --items IN/items.jsonl --annotators ann,bob",
)
#: What is kept, and the command lines that read it: COPY is its damaged copy, OUT a folder for their output.
KEPT = {
    "index": ("search --index COPY --topics IN/topics.tsv -k 5 --out OUT/r.run",),
    "audit": (
        "judge new OUT/s --items COPY",
        "leakage clean --audit COPY --train IN/train.tsv --out OUT/c.tsv",
        f"{_AUDIT} --baseline COPY",
    ),
    "scan": (
        "transfer clean --qrels IN/qrels --scan COPY --out OUT/q",
        "transfer select --scan COPY --qrels IN/qrels --out OUT/t",
    ),
    "evaluated": ("compare COPY",),
    "store": ("judge export COPY OUT/l.jsonl", "judge agreement --labels COPY", "judge table --labels COPY"),
    "scores.sqlite": (f"{_RERANK} --cache COPY --out OUT/x.run",),
}
OTHERS = (
    b"{}",
    b"[]",
    b'{"version": 1e400}',
    b"PAR1",
    bytes(64),
    b"[" * 20_000,
    b"SQLite format 3\x00",
    b"ARROW1\x00\x00",
)


def called(line: str, **places: Path) -> int:
    """Runs a command line; its exit code."""
    for name, path in places.items():
        line = line.replace(name, str(path))
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each kind."""
    folder, draw = tmp_path_factory.mktemp("whole"), random.Random(5)
    texts = [" ".join([f"word{draw.randrange(90)}" for _ in range(30)] + [f"topic{n}"] * 2) for n in range(40)]
    for version in "ab":
        rows = [
            {
                "doc_id": f"{version}{n}",
                "url": f"http://a.org/{n}",
                "body": "gone" if version == "b" and n < 3 else text,
            }
            for n, text in enumerate(texts)
        ]
        (folder / f"{version}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "topics.tsv").write_text("".join(f"{n}\ttopic{n} word{n}\n" for n in range(40)))
    (folder / "train.tsv").write_text("".join(f"q{n}\ttopic{n} word{n % 12}\n" for n in range(80)))
    (folder / "qrels").write_text("".join(f"{n} 0 a{n} 1\n{n} 0 a{(n + 7) % 40} 0\n" for n in range(40)))
    (folder / "first.run").write_text(
        "".join(f"{n} Q0 a{at} {at} {9 - at} r\n" for n in range(8) for at in range(1, 9))
    )
    items = ({"topic_id": f"{n}", "query": f"q{n}", "doc_id": f"d{n}", "text": f"t{n}"} for n in range(6))
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent / "plugin"))
        assert [called(line, IN=folder) for line in MADE] == [0] * len(MADE)
    return folder


def damaged(path: Path, draw: random.Random) -> None:
    """Damages one file of something: some bytes, its end, all of it, or it is of something else."""
    files = sorted(file for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    file = draw.choice([one for one in files if one.suffix not in (".html", ".svg", ".pdf", ".log")])
    content = bytearray(file.read_bytes())
    match draw.randrange(7):
        case 0 | 1 | 2 if content:
            for _ in range(draw.choice((1, 4, 40))):
                # The beginning and the end hold the structure of most formats.
                at = draw.randrange(min(len(content), draw.choice((1 << 30, 128))))
                content[at if draw.random() < 0.7 else -1 - at] = draw.randrange(256)
        case 3:
            del content[draw.randrange(len(content) + 1) :]
        case 4:
            content = bytearray(draw.choice(OTHERS))
        case 5:
            content += bytes(draw.randrange(1, 5000))
        case _:
            content.clear()
    file.write_bytes(content)


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_kept_is_read_or_refused_with_a_line(
    kept: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "plugin"))
    draw, codes = random.Random(kept), []
    for number in range(8):
        copy, out = tmp_path / f"copy{number}", tmp_path / f"out{number}"
        source = whole / kept
        shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
        out.mkdir()
        damaged(copy, draw)
        line = KEPT[kept][number % len(KEPT[kept])]
        codes.append(called(line, IN=whole, COPY=copy, OUT=out))
        said = capsys.readouterr()
        assert codes[-1] in (0, 1, 2) and "Traceback" not in said.out + said.err, (line, said.err)
    assert kept in ("scan", "audit") or 2 in codes, "no damage was seen"
