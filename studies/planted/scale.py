"""A scan of many documents, killed again and again, against one that was left alone."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

KILLS = 6
#: Up to so many documents the medians of several runs are taken, in turn.
REPEATED, REPEATS = 10_000, 3
WORDS = 4000
RUN = """
import sys, time
from pathlib import Path
from truerank import transfer
from truerank.rankers.base import RankerSpec
folder, out, evidence = sys.argv[1:]
transfer.scan({"old": f"{folder}/a.jsonl", "new": f"{folder}/b.jsonl"}, f"{folder}/a.qrels",
              f"{folder}/topics.tsv", model=RankerSpec("bm25"), items=20, evidence=evidence, out=out)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024, time.process_time())
"""


def scale(count: int, work: Path) -> None:
    """Prints memory and processor time at two sizes, by kind of evidence, and whether a killed scan ends with the bytes
    of an undisturbed one."""
    for size in (count // 10, count):
        folder = work / f"scale-{size}"
        generate(size, folder)
        used: dict[str, list[float]] = {"scores": [], "both": []}
        for _ in range(REPEATS if size <= REPEATED else 1):
            for evidence, times in used.items():
                shutil.rmtree(folder / "whole", ignore_errors=True)
                begun = time.monotonic()
                memory, spent = started(folder, folder / "whole", evidence).communicate()[0].split()[-2:]
                seconds = time.monotonic() - begun
                times.append(float(spent))
                told = f"{float(spent):.1f} s of processor time, {int(memory):,} MB at most"
                print(f"{size:,} documents in two versions, evidence {evidence}: {told}", flush=True)
        scores, both = (statistics.median(times) for times in used.values())
        print(
            f"both take {both / scores:.2f} times the processor time of scores ({both:.1f} and {scores:.1f} s)",
            flush=True,
        )
    killed = 0
    for number in range(KILLS):
        process = started(folder, folder / "killed")
        try:
            process.communicate(timeout=seconds * (number + 1) / (KILLS + 2))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
    code = started(folder, folder / "killed").wait()
    same = content(folder / "whole") == content(folder / "killed")
    print(f"killed {killed} times, then ended with {code}; every file has the same bytes: {same}", flush=True)


def generate(count: int, folder: Path) -> None:
    """Two versions of made documents: in one of twenty the text is another."""
    if (folder / "topics.tsv").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(count)
    words = [f"{draw.choice('bcdfglmnprst')}{draw.choice('aeiou')}{number:x}" for number in range(WORDS)]
    weights = [1 / (place + 2) for place in range(WORDS)]
    topics = [" ".join(draw.choices(words[50:], k=3)) for _ in range(max(10, count // 100))]
    with (folder / "a.jsonl").open("w") as a, (folder / "b.jsonl").open("w") as b, (folder / "a.qrels").open("w") as q:
        for number in range(count):
            topic = draw.randrange(len(topics))
            text = draw.choices(words, weights, k=draw.randint(40, 200))
            text[len(text) // 2 : len(text) // 2] = topics[topic].split()
            other = draw.choices(words, weights, k=len(text)) if draw.random() < 0.05 else [*text, "later"]
            for stream, name, body in ((a, "A", text), (b, "B", other)):
                url = f"http://example.org/{number}"
                stream.write(json.dumps({"doc_id": f"{name}{number}", "url": url, "body": " ".join(body)}) + "\n")
            q.write(f"{topic} 0 A{number} 1\n")
    (folder / "topics.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(topics)))


def started(folder: Path, out: Path, evidence: str = "both") -> subprocess.Popen[str]:
    """A scan in a process of its own."""
    command = [sys.executable, "-c", RUN, str(folder), str(out), evidence]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def content(folder: Path) -> dict[str, str]:
    """The hash of every file but the log."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.log")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
