"""The survivorship audit over a QnA file of the real layout and size, with planted faults that are all counted.

    nice python studies/qna.py [--queries 800000] [--passages 8800000] [--folder /tmp/qna] [--keep]

Generates one JSON object of columns (more than 1 GB at the default size) and a collection of passages in which some
texts are damaged, missing or repeated; then runs `profile`, `map` and `depth`, each as a process of its own, whose
peak resident memory is the operating system's figure, and `json.loads` (and orjson, where it is installed) over the
same bytes. Ends with an error where a count or an id is not as planted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

import polars as pl

from common import table
from truerank.audits.survivorship.passages import keys_of

_SHOWN = 10
_WORDS = 1 << 12
_MASK = (1 << 64) - 1
_TYPES = ("DESCRIPTION", "NUMERIC", "ENTITY", "PERSON", "LOCATION")
_ACCENTS = ("café", "Zürich", "naïve", "don’t", "“so”", "Ærø", "日本", "10 €", "½ cup", "São")


def _words() -> list[str]:
    draw = random.Random(1)
    plain = ["".join(draw.choices("etaoinshrdlucmfwyp", k=draw.randint(3, 9))) for _ in range(_WORDS)]
    for place in range(0, _WORDS, 64):
        plain[place] = _ACCENTS[place // 64 % len(_ACCENTS)]
    return plain


WORDS = _words()


def mixed(number: int, salt: int = 0) -> int:
    """64 bits that depend on a number alone."""
    value = (number * 0x9E3779B97F4A7C15 + salt * 0xD1B54A32D192ED03 + 1) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def passage(number: int) -> str:
    """The text of a passage of the collection: ten words that its number chooses."""
    first, second = mixed(number, 1), mixed(number, 2)
    bits = (first >> 4 << 60) | (second >> 4)
    return " ".join(WORDS[bits >> shift & (_WORDS - 1)] for shift in range(0, 120, 12))


def damaged(text: str, number: int) -> str:
    """The text with some of its characters, or all, as the latin-1 reading of their UTF-8 bytes."""
    whole = mixed(number, 3) & 1
    return "".join(
        sign.encode().decode("latin-1") if ord(sign) > 127 and (whole or mixed(number, 4) >> (place % 60) & 1) else sign
        for place, sign in enumerate(text)
    )


class Planted(NamedTuple):
    """What was planted, by name."""

    faults: Counter[str]
    mapped: int
    unmatched: int
    ambiguous: int
    survivors: int


def write_collection(path: Path, passages: int) -> int:
    """Writes `id TAB text` lines; one in 20 is damaged where it can be, the last 1,000 repeat the first 1,000."""
    count = 0
    with path.open("w", encoding="utf-8") as target:
        for number in range(passages):
            text = passage(number)
            if mixed(number, 5) % 20 == 0 and not text.isascii():
                other = damaged(text, number)
                count += other != text
                text = other
            target.write(f"{number}\t{text}\n")
        for number in range(1000):
            target.write(f"{passages + number}\t{passage(number)}\n")
    return count


class Log:
    """The queries of the log, each the same however often it is asked for, with their faults."""

    def __init__(self, queries: int, passages: int) -> None:
        self.queries, self.passages = queries, passages

    def numbers(self, query: int) -> list[int]:
        """The passages shown; negative numbers are not in the collection."""
        shown = [mixed(query * _SHOWN + place, 6) % self.passages for place in range(_SHOWN)]
        if query % 997 == 3:
            shown[4] = shown[2]
        if query % 499 == 5:
            shown[7] = -(query + 1)
        return [] if query % 10_007 == 9 else shown

    def chosen(self, query: int) -> set[int]:
        """Positions of what was selected: none for a good third of the queries."""
        if mixed(query, 7) % 100 < 38 or not self.numbers(query):
            return set()
        first = min(mixed(query, 8) % 13, mixed(query, 9) % _SHOWN, _SHOWN - 1)
        return {first, _SHOWN - 1} if query % 11 == 0 else {first}

    def passages_of(self, query: int) -> list[dict[str, object]]:
        """The value of the passages column."""
        chosen, found = self.chosen(query), []
        for place, number in enumerate(self.numbers(query)):
            text = passage(number) if number >= 0 else f"{passage(-number)} elsewhere"
            entry: dict[str, object] = {"is_selected": int(place in chosen), "passage_text": text}
            entry["url"] = f"http://www.example.com/{number % 99_991}"
            if query % 5003 == 7 and place == 9 and place not in chosen:
                del entry["passage_text"]
            if query % 7001 == 11 and place == 8 and place not in chosen:
                del entry["is_selected"]
            found.append(entry)
        return found

    def answers(self, query: int) -> list[str]:
        """The value of the answers column."""
        return ["It is so."] if self.chosen(query) else ["No Answer Present."]

    def query_id(self, query: int) -> int:
        """Ids; one in 30,011 is that of the query before."""
        return query - 1 if query % 30_011 == 17 else query

    def lacks(self, query: int, column: str) -> bool:
        """Whether a column has no value for a query."""
        rates = {"query_id": (20_011, 1), "query": (25_013, 2), "query_type": (9001, 4), "answers": (15_013, 6)}
        every, rest = rates[column]
        return query % every == rest


def write_log(path: Path, log: Log) -> None:
    """Writes the file column by column, as MS MARCO's is."""
    columns = {
        "answers": log.answers,
        "passages": log.passages_of,
        "query": lambda query: f"what is {WORDS[query % _WORDS]} {WORDS[query // 7 % _WORDS]}",
        "query_id": log.query_id,
        "query_type": lambda query: _TYPES[mixed(query, 10) % 5],
        "wellFormedAnswers": lambda _: "[]",
    }
    with path.open("w", encoding="utf-8") as target:
        for number, (name, value) in enumerate(columns.items()):
            target.write(f'{", " if number else "{"}"{name}": {{')
            lacking = name in ("query_id", "query", "query_type", "answers")
            _write_column(target, log, name if lacking else "", value)  # type: ignore[arg-type]
            target.write("}")
        target.write("}")


def _write_column(target: TextIO, log: Log, lacking: str, value) -> None:  # type: ignore[no-untyped-def]
    separator = ""
    for query in range(log.queries):
        if lacking and log.lacks(query, lacking):
            continue
        target.write(f'{separator}"{query}": {json.dumps(value(query))}')
        separator = ", "


def planted(log: Log) -> Planted:
    """What the commands have to find, from the generator alone."""
    faults: Counter[str] = Counter()
    status: Counter[str] = Counter()
    survivors, ids = 0, set()
    for query in range(log.queries):
        identifier = f"key-{query}" if log.lacks(query, "query_id") else log.query_id(query)
        faults["no-query-id"] += log.lacks(query, "query_id")
        if identifier in ids:
            faults["repeated-query"] += 1
            continue
        ids.add(identifier)
        shown = log.passages_of(query)
        marks = [str(entry.get("passage_text", "")) for entry in shown]
        selected = any(entry.get("is_selected") for entry in shown)
        survivors += selected
        faults["no-query"] += log.lacks(query, "query")
        faults["no-type"] += log.lacks(query, "query_type")
        faults["no-answers"] += log.lacks(query, "answers")
        faults["nothing-shown"] += not shown
        faults["repeated-document"] += len(marks) - len(set(marks))
        faults["no-text"] += marks.count("")
        faults["no-selection"] += sum("is_selected" not in entry for entry in shown)
        for number, entry in zip(log.numbers(query), shown, strict=True):
            if "passage_text" not in entry:
                status["no_text"] += 1
            else:
                status["unmatched" if number < 0 else "ambiguous" if number < 1000 else "mapped"] += 1
    kept = {kind: number for kind, number in faults.items() if number}
    return Planted(Counter(kept), status["mapped"], status["unmatched"], status["ambiguous"], survivors)


def measured(command: list[str]) -> tuple[float, float, float]:
    """Seconds by the clock and of the processor, and peak memory in MB, of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def run(folder: Path, log: Log) -> Iterator[tuple[object, ...]]:
    """The rows of the table of speed and memory."""
    qna, collection = folder / "qna.json", folder / "collection.tsv"
    size = qna.stat().st_size / 1e6
    base = [sys.executable, "-m", "truerank", "survivorship"]
    commands = {
        "profile": [*base, "profile", "--log", f"big={qna}", "--out", str(folder / "profile")],
        "map": [*base, "map", "--log", str(qna), "--docs", str(collection), "--out", str(folder / "map")],
        "depth": [*base, "depth", "--log", str(qna), "--mapping", str(folder / "map"), "--out", str(folder / "depth")],
    }
    plain = f"import json, pathlib; json.loads(pathlib.Path({str(qna)!r}).read_bytes())"
    commands["json.loads"] = [sys.executable, "-c", plain]
    if importlib.util.find_spec("orjson"):
        commands["orjson.loads"] = [
            sys.executable,
            "-c",
            plain.replace("json", "orjson", 1).replace("json.l", "orjson.l"),
        ]
    for name, command in commands.items():
        seconds, busy, peak = measured(command)
        row = (name, f"{seconds:,.0f}", f"{busy:,.0f}", f"{size / seconds:.1f}", f"{size / busy:.1f}", f"{peak:,.0f}")
        print(row, file=sys.stderr, flush=True)
        yield row


def check(folder: Path, log: Log) -> list[str]:
    """What is not as planted, one sentence each."""
    wanted = planted(log)
    profile = json.loads((folder / "profile" / "summary.json").read_text())["splits"][0]
    mapping = json.loads((folder / "map" / "summary.json").read_text())
    depth = json.loads((folder / "depth" / "summary.json").read_text())
    found: dict[str, tuple[object, object]] = {
        "faults": (profile["log"]["faults"], dict(wanted.faults)),
        "survived": (profile["survived"], wanted.survivors),
        "mapped": (mapping["shown"]["mapped"], wanted.mapped),
        "unmatched": (mapping["shown"]["unmatched"], wanted.unmatched),
        "ambiguous": (mapping["shown"]["ambiguous"], wanted.ambiguous),
        "repeated texts": (mapping["collection"]["texts_repeated"], 1000),
        "selected, all depths": (
            depth["depths"][-1]["qrels"] + depth["repeated"] + depth["unmapped"],
            sum(mapping["selected"].values()),
        ),
    }
    lines = sum(1 for _ in (folder / "map" / "unmatched.jsonl").open(encoding="utf-8"))
    found["listed"] = (lines, sum(mapping["shown"].values()) - wanted.mapped)
    frame = pl.read_parquet(folder / "map" / "mapping.parquet")
    wrong = 0
    for part in frame.iter_slices(100_000):
        keys = keys_of(passage(int(number)) for number in part["doc_id"])
        wrong += int(
            (keys[:, 0] != part["key_high"].to_numpy()).sum() + (keys[:, 1] != part["key_low"].to_numpy()).sum()
        )
    found["wrong ids"] = (wrong, 0)
    for name, (was, should) in found.items():
        print(f"{name}: {was}{'' if was == should else f' INSTEAD OF {should}'}")
    return [name for name, (was, should) in found.items() if was != should]


def main() -> None:
    """Generates, runs, prints, checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=800_000)
    parser.add_argument("--passages", type=int, default=8_800_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", action="store_true", help="leave the files")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="qna-"))
    folder.mkdir(parents=True, exist_ok=True)
    log = Log(options.queries, options.passages)
    try:
        if not (folder / "qna.json").exists():
            write_log(folder / "qna.json", log)
            harmed = write_collection(folder / "collection.tsv", options.passages)
            print(f"{harmed:,} passages of the collection are damaged")
        rows = list(run(folder, log))
        print(
            f"{(folder / 'qna.json').stat().st_size / 1e6:,.0f} MB of QnA, {options.queries:,} queries, "
            f"{options.passages:,} passages, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
        )
        print(table(("command", "seconds", "processor s", "MB/s", "MB per processor s", "peak MB"), rows))
        if faults := check(folder, log):
            sys.exit(f"not as planted: {', '.join(faults)}")
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
