"""Damaged files that truerank wrote itself: judging stores, indexes, folders of results, caches.

    python attacks/damage.py --runs 600

Each run damages one file of a fresh copy (bytes changed, cut off, emptied, removed, or of something else) and gives it
to the commands that read it. They may refuse it, or not notice; a traceback, another exit code or a hang are faults.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from command_lines import words
from options import call
from small_data import write_inputs

sys.path[:0] = [str(Path(__file__).resolve().parent / "plugin")]

_SECONDS: Final = 60


_AUDIT: Final = (
    "leakage audit --train IN/train.tsv --test IN/topics.trec --encoder letters --threshold 0.95 --block-size 640"
)
_VERSIONS: Final = "--version old=IN/old.jsonl --version new=IN/new.jsonl --qrels IN/old.qrels"
_SCAN: Final = f"transfer scan --model bm25 {_VERSIONS} --topics IN/old.topics"
_RERANK: Final = (
    "rerank --run IN/first.run --topics IN/topics.tsv --docs IN/docs.jsonl --depth 10 --model bm25:IN/index"
)
#: IN is the folder of whole things.
_MAKES: Final = (
    "index IN/docs.jsonl --out IN/index",
    f"{_AUDIT} --cache IN/vectors --out IN/audit",
    f"{_SCAN} --out IN/scan",
    "evaluate --qrels IN/qrels --run IN/first.run --out IN/evaluated",
    f"{_RERANK} --cache IN/scores.sqlite --out IN/x.run",
    "judge new IN/store --scheme relevance-documents --items IN/items.jsonl --annotators ann,bob",
    "judge import IN/store ann=IN/labels.csv",
    f"transfer match {_VERSIONS} --out IN/matched",
)


@dataclass(frozen=True)
class Kept:
    """Something that is kept on the disk.

    Attributes:
        name: for the output.
        path: the file or folder, in the folder of whole things.
        reads: command lines that read it: COPY is its damaged copy, OUT a folder for their output.
    """

    name: str
    path: str
    reads: tuple[str, ...]


_KEPT: Final = (
    Kept(
        "index",
        "index",
        (
            "search --index COPY --topics IN/topics.tsv -k 5 --out OUT/r.run",
            "search --index COPY --topics IN/topics.tsv --model bm25+rm3 --out OUT/m.run",
        ),
    ),
    Kept(
        "audit",
        "audit",
        (
            "leakage card COPY",
            "judge new OUT/s --items COPY",
            "leakage clean --audit COPY --train IN/train.tsv --threshold 0.95 --out OUT/c.tsv",
            f"{_AUDIT} --baseline COPY",
        ),
    ),
    Kept(
        "scan",
        "scan",
        (
            "transfer clean --qrels IN/old.qrels --scan COPY --out OUT/q",
            "transfer select --scan COPY --qrels IN/old.qrels --out OUT/t",
            "transfer card COPY",
        ),
    ),
    Kept("matched versions", "matched", (f"{_SCAN} --matched COPY",)),
    Kept("evaluation", "evaluated", ("compare COPY", "track report COPY --out OUT/t")),
    Kept(
        "judging store",
        "store",
        (
            "judge export COPY OUT/l.jsonl",
            "judge agreement --labels COPY",
            "judge import COPY bob=IN/labels.csv",
            "judge table --labels COPY",
        ),
    ),
    Kept("score cache", "scores.sqlite", (f"{_RERANK} --cache COPY --out OUT/x.run",)),
    Kept("vector cache", "vectors", (f"{_AUDIT} --cache COPY",)),
)


def make(folder: Path) -> None:
    """Makes one of each kind.

    Raises:
        RuntimeError: a command that makes one fails.
    """
    write_inputs(folder)
    (folder / "items.jsonl").write_text(
        "".join(f'{{"topic_id": "{n}", "query": "q{n}", "doc_id": "d{n}", "text": "t{n}"}}\n' for n in range(6))
    )
    (folder / "labels.csv").write_text(
        "topic_id,doc_id,query,text,label\n" + "".join(f"{n},d{n},q{n},t{n},{n % 2}\n" for n in range(6))
    )
    for line in _MAKES:
        code, said = call(words(line, IN=folder))
        if code not in (0, 1):
            raise RuntimeError(f"{line}: {said[-1000:]}")


def damage(path: Path, draw: random.Random) -> str:
    """Damages one file of something; returns what was done to which."""
    files = sorted(file for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    file = draw.choice([one for one in files if one.suffix not in (".html", ".svg", ".pdf", ".log")])
    content = bytearray(file.read_bytes())
    kind = draw.choice(
        ("bytes", "bytes", "bytes", "cut off", "emptied", "removed", "another", "longer", "zeros", "folder")
    )
    if kind == "bytes":
        for _ in range(draw.choice((1, 1, 4, 40))):
            # The beginning and the end hold the structure of most formats.
            near = draw.choice((len(content), 128, 128))
            at = min(draw.randrange(max(near, 1)), len(content) - 1)
            if content:
                content[at if draw.random() < 0.7 else -1 - at] = draw.randrange(256)
    elif kind == "cut off":
        del content[draw.randrange(len(content) + 1) :]
    elif kind == "emptied":
        content.clear()
    elif kind == "another":
        content = bytearray(
            draw.choice(
                (
                    b"{}",
                    b"[]",
                    b"null",
                    b'{"version": 1e400}',
                    b"PAR1",
                    b"\x00" * 64,
                    b"[" * 20_000,
                    b'{"kind": [], "files": 5}',
                    b"SQLite format 3\x00",
                    b"ARROW1\x00\x00",
                )
            )
        )
    elif kind == "longer":
        content += bytes(draw.randrange(1, 5000))
    elif kind == "zeros":
        at = draw.randrange(len(content) + 1)
        content[at : at + 4096] = bytes(len(content[at : at + 4096]))
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind != "removed":
        file.write_bytes(content)
    return f"{file.name} ({kind})"


def attack(runs: int, seed: int, whole: Path) -> list[str]:
    """Damages and reads; the faults, one line each."""
    draw, faults = random.Random(seed), {}
    for number in range(runs):
        one = _KEPT[number % len(_KEPT)]
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            copy, out = Path(folder) / "copy", Path(folder) / "out"
            source = whole / one.path
            shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
            out.mkdir()
            done = damage(copy, draw)
            line = words(draw.choice(one.reads), IN=whole, COPY=copy, OUT=out)
            faulthandler.dump_traceback_later(_SECONDS, exit=True)
            code, said = call(line)
            faulthandler.cancel_dump_traceback_later()
            if code not in (0, 1, 2) or "Traceback" in said:
                last = said.strip().splitlines()[-1][:250] if said.strip() else ""
                key = f"{one.name}: {' '.join(line[:2])}: {last.replace(folder, '')}"
                if key not in faults:
                    faults[key] = f"{one.name}, {done}, {' '.join(line[:2])}: {code} {last}"
                    print(f"    FAULT {faults[key]}", flush=True)
    return list(faults.values())


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.environ["ATTACK_SECONDS"] = "0"
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        make(Path(folder))
        faults = attack(given.runs, given.seed, Path(folder))
    print(f"damage: {given.runs:,} damaged files of {len(_KEPT)} kinds; {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
