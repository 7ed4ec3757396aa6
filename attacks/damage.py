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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from options import call

sys.path[:0] = [str(Path(__file__).resolve().parent / "plugin")]

_SECONDS: Final = 60


@dataclass(frozen=True)
class Kept:
    """Something that is kept on the disk.

    Attributes:
        name: for the output.
        path: the file or folder, in the folder of whole things.
        reads: command lines that read it; they are given its damaged copy and a folder for their output.
    """

    name: str
    path: str
    reads: tuple[Callable[[str, str], list[str]], ...]


def made(folder: Path) -> tuple[Kept, ...]:
    """Makes one of each kind.

    Raises:
        RuntimeError: a command that makes one fails.
    """
    import commands

    commands.write_inputs(folder)
    at = lambda name: str(folder / name)  # noqa: E731
    audit = [
        "leakage",
        "audit",
        "--train",
        at("train.tsv"),
        "--test",
        at("topics.trec"),
        "--encoder",
        "letters",
        "--threshold",
        "0.95",
        "--block-size",
        "640",
    ]
    scan = [
        "transfer",
        "scan",
        "--model",
        "bm25",
        "--version",
        f"old={at('old.jsonl')}",
        "--version",
        f"new={at('new.jsonl')}",
        "--qrels",
        at("old.qrels"),
        "--topics",
        at("old.topics"),
    ]
    evaluate = ["evaluate", "--qrels", at("qrels"), "--run", at("first.run")]
    rerank = [
        "rerank",
        "--run",
        at("first.run"),
        "--topics",
        at("topics.tsv"),
        "--docs",
        at("docs.jsonl"),
        "--depth",
        "10",
        "--model",
        f"bm25:{at('index')}",
    ]
    items = Path(at("items.jsonl"))
    items.write_text(
        "".join(f'{{"topic_id": "{n}", "query": "q{n}", "doc_id": "d{n}", "text": "t{n}"}}\n' for n in range(6))
    )
    labels = Path(at("labels.csv"))
    labels.write_text("topic_id,doc_id,query,text,label\n" + "".join(f"{n},d{n},q{n},t{n},{n % 2}\n" for n in range(6)))
    new = [
        "judge",
        "new",
        at("store"),
        "--scheme",
        "relevance-documents",
        "--items",
        str(items),
        "--annotators",
        "ann,bob",
    ]
    for words in (
        ["index", at("docs.jsonl"), "--out", at("index")],
        [*audit, "--cache", at("vectors"), "--out", at("audit")],
        [*scan, "--out", at("scan")],
        [*evaluate, "--out", at("evaluated")],
        [*rerank, "--cache", at("scores.sqlite"), "--out", at("x.run")],
        new,
        ["judge", "import", at("store"), f"ann={labels}"],
        [
            "transfer",
            "match",
            "--version",
            f"old={at('old.jsonl')}",
            "--version",
            f"new={at('new.jsonl')}",
            "--qrels",
            at("old.qrels"),
            "--out",
            at("matched"),
        ],
    ):
        code, said = call(words)
        if code not in (0, 1):
            raise RuntimeError(f"{' '.join(words)}: {said[-1000:]}")
    return (
        Kept(
            "index",
            "index",
            (
                lambda path, out: [
                    "search",
                    "--index",
                    path,
                    "--topics",
                    at("topics.tsv"),
                    "-k",
                    "5",
                    "--out",
                    f"{out}/r.run",
                ],
                lambda path, out: [
                    "search",
                    "--index",
                    path,
                    "--topics",
                    at("topics.tsv"),
                    "--model",
                    "bm25+rm3",
                    "--out",
                    f"{out}/m.run",
                ],
            ),
        ),
        Kept(
            "audit",
            "audit",
            (
                lambda path, out: ["leakage", "card", path],
                lambda path, out: ["judge", "new", f"{out}/s", "--items", path],
                lambda path, out: [
                    "leakage",
                    "clean",
                    "--audit",
                    path,
                    "--train",
                    at("train.tsv"),
                    "--threshold",
                    "0.95",
                    "--out",
                    f"{out}/c.tsv",
                ],
                lambda path, out: [*audit, "--baseline", path],
            ),
        ),
        Kept(
            "scan",
            "scan",
            (
                lambda path, out: [
                    "transfer",
                    "clean",
                    "--qrels",
                    at("old.qrels"),
                    "--scan",
                    path,
                    "--out",
                    f"{out}/q",
                ],
                lambda path, out: [
                    "transfer",
                    "select",
                    "--scan",
                    path,
                    "--qrels",
                    at("old.qrels"),
                    "--out",
                    f"{out}/t",
                ],
                lambda path, out: ["transfer", "card", path],
            ),
        ),
        Kept("matched versions", "matched", (lambda path, out: [*scan, "--matched", path],)),
        Kept(
            "evaluation",
            "evaluated",
            (lambda path, out: ["compare", path], lambda path, out: ["track", "report", path, "--out", f"{out}/t"]),
        ),
        Kept(
            "judging store",
            "store",
            (
                lambda path, out: ["judge", "export", path, f"{out}/l.jsonl"],
                lambda path, out: ["judge", "agreement", "--labels", path],
                lambda path, out: ["judge", "import", path, f"bob={labels}"],
                lambda path, out: ["judge", "table", "--labels", path],
            ),
        ),
        Kept("score cache", "scores.sqlite", (lambda path, out: [*rerank, "--cache", path, "--out", f"{out}/x.run"],)),
        Kept("vector cache", "vectors", (lambda path, out: [*audit, "--cache", path],)),
    )


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


def attack(runs: int, seed: int, whole: Path, kept: Sequence[Kept]) -> list[str]:
    """Damages and reads; the faults, one line each."""
    draw, faults = random.Random(seed), {}
    for number in range(runs):
        one = kept[number % len(kept)]
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            copy, out = Path(folder) / "copy", Path(folder) / "out"
            source = whole / one.path
            shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
            out.mkdir()
            done = damage(copy, draw)
            words = draw.choice(one.reads)(str(copy), str(out))
            faulthandler.dump_traceback_later(_SECONDS, exit=True)
            code, said = call(words)
            faulthandler.cancel_dump_traceback_later()
            if code not in (0, 1, 2) or "Traceback" in said:
                last = said.strip().splitlines()[-1][:250] if said.strip() else ""
                key = f"{one.name}: {' '.join(words[:2])}: {last.replace(folder, '')}"
                if key not in faults:
                    faults[key] = f"{one.name}, {done}, {' '.join(words[:2])}: {code} {last}"
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
        kept = made(Path(folder))
        faults = attack(given.runs, given.seed, Path(folder), kept)
    print(f"damage: {given.runs:,} damaged files of {len(kept)} kinds; {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
