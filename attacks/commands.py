"""Eight commands on small generated data, for attacks on running commands."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "attacks" / "plugin")]
os.environ.update(POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1")
#: Stands in every text that a redacted audit must not write.
PLANTED: Final = "zyxplanted"
#: Files with times in them, or of a database that grows in another order: their bytes may differ.
UNSTABLE: Final = ("run.log", "cell.log", ".sqlite", ".sqlite-wal", ".sqlite-shm", "-journal")


@dataclass(frozen=True)
class Attacked:
    """A command that is attacked.

    Attributes:
        name: for the output.
        words: the command line, given the folder for everything that it writes.
        env: of the process, beside that of this one.
    """

    name: str
    words: Callable[[Path], list[str]]
    env: Mapping[str, str]


def make(folder: Path) -> dict[str, Attacked]:
    """Writes the inputs and returns the commands by name."""
    write_inputs(folder)
    env = {"TRUERANK_CACHE": str(folder / "cache")}
    at = {
        name: str(folder / name)
        for name in (
            "train.tsv",
            "topics.trec",
            "docs.jsonl",
            "topics.tsv",
            "qrels",
            "first.run",
            "old.jsonl",
            "new.jsonl",
            "old.qrels",
            "old.topics",
            "design.yaml",
            "audit",
            "key",
            "a1.run",
            "b1.run",
            "c1.run",
        )
    }
    audit = [
        "leakage",
        "audit",
        "--train",
        at["train.tsv"],
        "--test",
        at["topics.trec"],
        "--encoder",
        "letters",
        "--threshold",
        "0.95",
        "--block-size",
        "64",
    ]
    scan = [
        "transfer",
        "scan",
        "--model",
        "bm25",
        "--version",
        f"old={at['old.jsonl']}",
        "--version",
        f"new={at['new.jsonl']}",
        "--qrels",
        at["old.qrels"],
        "--topics",
        at["old.topics"],
        "--split",
        "sliding:30:15",
        "--block-size",
        "4",
    ]
    pool = [
        "pool",
        "simulate",
        *(word for name in "abc" for word in ("--run", at[f"{name}1.run"])),
        "--qrels",
        at["qrels"],
        "--topics",
        at["topics.tsv"],
        "--docs",
        at["docs.jsonl"],
        "--depth",
        "5",
        "--trials",
        "1",
        "--length",
        "60",
        "--team-prefix",
        "1",
        "--workers",
        "1",
        "--stopping",
        "budget:30",
        "--official-rule",
        "budget:20",
        "--unlike",
        "none",
    ]
    rerank = [
        "rerank",
        "--run",
        at["first.run"],
        "--topics",
        at["topics.tsv"],
        "--docs",
        at["docs.jsonl"],
        "--model",
        f"bm25:{folder / 'index'}",
        "--depth",
        "40",
    ]
    commands: dict[str, Callable[[Path], list[str]]] = {
        "audit": lambda out: [*audit, "--mode", "exhaustive", "--out", str(out / "out")],
        "audit by prefilter": lambda out: [*audit, "--mode", "prefilter", "--out", str(out / "out")],
        "redacted audit": lambda out: [
            *audit,
            "--mode",
            "exhaustive",
            "--redact",
            "--redact-key",
            at["key"],
            "--out",
            str(out / "out"),
        ],
        "transfer scan": lambda out: [*scan, "--out", str(out / "out")],
        "pool simulate": lambda out: [*pool, "--out", str(out / "out")],
        "experiment run": lambda out: [
            "experiment",
            "run",
            at["design.yaml"],
            "--workers",
            "1",
            "--out",
            str(out / "out"),
        ],
        "index": lambda out: ["index", at["docs.jsonl"], "--out", str(out / "out")],
        "rerank": lambda out: [*rerank, "--cache", str(out / "cache.sqlite"), "--out", str(out / "out" / "x.run")],
        "clean": lambda out: [
            "leakage",
            "clean",
            "--audit",
            at["audit"],
            "--train",
            at["train.tsv"],
            "--threshold",
            "0.95",
            "--out",
            str(out / "out" / "clean.tsv"),
        ],
    }
    found = {name: Attacked(name, words, env) for name, words in commands.items()}
    for name in ("audit", "index"):
        if not (folder / name).is_dir():
            done = run(found[name], folder / "made" / name)
            if done.code != 0:
                raise RuntimeError(f"{name} fails: {done.said[-2000:]}")
            (folder / "made" / name / "out").rename(folder / name)
    return found


def write_inputs(folder: Path) -> None:
    """Writes what the commands read; the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(5)
    _texts(folder, draw)
    _versions(folder, draw)
    _experiment(folder, draw)


@dataclass
class Running:
    """A command in a process of its own group, forked from this one, which has imported everything already."""

    pid: int
    log: Path
    code: int | None = None

    def wait(self, seconds: float = 600) -> int:
        """Waits until it ends; the exit code, negative for a signal.

        Raises:
            TimeoutError: it takes longer.
        """
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                self.kill()
                raise TimeoutError(f"more than {seconds:.0f} s")
            time.sleep(0.01)
        return self.code or 0

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self.code is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def kill(self) -> None:
        """Kills its whole group, as a machine that goes down does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        while self.poll() is None:
            time.sleep(0.002)

    @property
    def said(self) -> str:
        """What it printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")


def run(attacked: Attacked, out: Path, seconds: float = 600, **env: str) -> Running:
    """Runs it to its end."""
    running = start(attacked, out, **env)
    running.wait(seconds)
    return running


def start(attacked: Attacked, out: Path, **env: str) -> Running:
    """Starts it."""
    out.mkdir(parents=True, exist_ok=True)
    import_all()
    handle, name = tempfile.mkstemp(prefix="attacked-", suffix=".log")
    pid = os.fork()
    if pid:
        os.close(handle)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)
        return Running(pid, Path(name))
    code = 70
    try:
        os.setpgid(0, 0)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.environ.update({**attacked.env, **env})
        from truerank.cli.app import main

        sys.stdin = io.StringIO()
        main(attacked.words(out))
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


@functools.cache
def import_all() -> None:
    """Imports what the commands need; nothing may be computed before the fork, or threads would be lost."""
    import importlib
    import pkgutil

    import truerank

    for name in (
        "scipy.special",
        "scipy.stats",
        "matplotlib.figure",
        "matplotlib.backends.backend_svg",
        "matplotlib.backends.backend_pdf",
        "torch",
        "safetensors.torch",
        "cyclopts",
        "rich.console",
        "Stemmer",
    ):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(truerank.__path__, "truerank."):
        if not module.name.endswith("__main__") and "worker" not in module.name:
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def outputs(out: Path) -> dict[str, str]:
    """The files with a final name and the hash of their bytes, without those whose bytes may differ."""
    found = {}
    for file in sorted(out.rglob("*")):
        name = str(file.relative_to(out))
        hidden = any(part.startswith(".") for part in Path(name).parts)
        if file.is_file() and not hidden and not name.endswith(UNSTABLE):
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def left_over(out: Path) -> list[str]:
    """Hidden files and folders: unfinished work, temporary names, locks."""
    return [str(path.relative_to(out)) for path in sorted(out.rglob("*")) if path.name.startswith(".")]


def _words(draw: random.Random, count: int) -> str:
    return " ".join(f"word{draw.randrange(400)}" for _ in range(count))


def _texts(folder: Path, draw: random.Random) -> None:
    """Queries, of which some are those of topics; a collection with topics, judgments and runs."""
    topics = {str(301 + number): f"{PLANTED} {_words(draw, 4)}" for number in range(12)}
    (folder / "topics.trec").write_text(
        "".join(
            f"<top>\n<num> Number: {key}\n<title> {text}\n<desc> Description:\nAbout {text} and {PLANTED}.\n</top>\n"
            for key, text in topics.items()
        )
    )
    queries = [f"{PLANTED} {_words(draw, 5)}" for _ in range(2500)] + list(topics.values())[:6]
    draw.shuffle(queries)
    (folder / "train.tsv").write_text("".join(f"q{number}\t{text}\n" for number, text in enumerate(queries)))
    (folder / "key").write_text("0123456789abcdef0123456789abcdef\n")
    ids = [f"d{number:04d}" for number in range(600)]
    texts = {doc_id: _words(draw, 40) for doc_id in ids}
    _jsonl(folder / "docs.jsonl", [{"_id": key, "title": "t", "text": text} for key, text in texts.items()])
    wanted = {str(number): _words(draw, 3) for number in range(1, 6)}
    (folder / "topics.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in wanted.items()))
    judged: dict[str, list[str]] = {key: draw.sample(ids, 40) for key in wanted}
    (folder / "qrels").write_text(
        "".join(
            f"{key} 0 {doc_id} {int(place < 12)}\n" for key, some in judged.items() for place, doc_id in enumerate(some)
        )
    )
    for name in ("first", "a1", "b1", "c1"):
        rows = []
        for key, some in judged.items():
            ranked = sorted(
                {*some, *draw.sample(ids, 40)}, key=lambda doc_id: (draw.random() - (doc_id in some[:12]) * 0.4, doc_id)
            )
            rows += [
                f"{key} Q0 {doc_id} {rank} {100 - rank} {name}\n" for rank, doc_id in enumerate(ranked[:60], start=1)
            ]
        (folder / f"{name}.run").write_text("".join(rows))


def _versions(folder: Path, draw: random.Random) -> None:
    for version in ("old", "new"):
        rows = []
        for number in range(40):
            same = random.Random(number)
            body = (
                "404 Not Found"
                if version == "new" and number % 9 == 3
                else _words(same, 80) + f" topic{number} topic{number}"
            )
            rows.append({"doc_id": f"{version}{number}", "url": f"http://a.org/{number}", "title": "p", "body": body})
        _jsonl(folder / f"{version}.jsonl", rows)
    (folder / "old.topics").write_text("".join(f"{number}\ttopic{number}\n" for number in range(40)))
    (folder / "old.qrels").write_text("".join(f"{n} 0 old{n} 1\n{n} 0 old{(n + 7) % 40} 0\n" for n in range(40)))


def _experiment(folder: Path, draw: random.Random) -> None:
    folder = folder / "grid"
    folder.mkdir(exist_ok=True)
    words = [f"w{number:02d}" for number in range(30)]
    documents = {f"d{number:02d}": draw.choices(words, k=12) for number in range(40)}
    _jsonl(folder / "docs.jsonl", [{"doc_id": key, "text": " ".join(text)} for key, text in documents.items()])
    topics = {f"t{number}": draw.sample(words, 3) for number in range(6)}
    (folder / "topics.tsv").write_text("".join(f"{key}\t{' '.join(some)}\n" for key, some in topics.items()))
    rows = []
    for key, some in topics.items():
        ranked = sorted(documents, key=lambda doc_id: (-sum(documents[doc_id].count(word) for word in some), doc_id))
        rows += [f"{key} 0 {doc_id} 1\n" for doc_id in ranked[:3]] + [f"{key} 0 {doc_id} 0\n" for doc_id in ranked[-3:]]
    (folder / "qrels.txt").write_text("".join(rows))
    vectors = (f"{word} {' '.join(f'{draw.gauss(0, 1):.3f}' for _ in range(6))}\n" for word in words)
    (folder / "vectors.txt").write_text("".join(vectors))
    instances = []
    for number in range(40):
        some = draw.sample(words, 3)
        texts = {
            "relevant": " ".join([*some, *draw.choices(words, k=8)]),
            "nonrelevant": " ".join(draw.choices(words, k=11)),
        }
        instances.append(
            {
                "query_id": f"q{number}",
                "query": " ".join(some),
                "relevant_id": f"r{number}",
                "nonrelevant_id": f"n{number}",
                **texts,
                "role": "none",
                "topic_id": None,
            }
        )
    _jsonl(folder / "none.jsonl", instances)
    (folder.parent / "design.yaml").write_text(f"""name: tiny
collections:
  notes: {{docs: {folder}/docs.jsonl, topics: {folder}/topics.tsv, qrels: {folder}/qrels.txt, depth: 8, folds: 2}}
sets:
  none: {{kind: none, for: notes, sizes: [24], instances: {folder}/none.jsonl}}
models:
  knrm: {{model: knrm, vectors: {folder}/vectors.txt, changes: {{max_query: 5, max_document: 20, batch: 4}}}}
seeds: [0]
measures: [nDCG@10]
""")


def _jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
