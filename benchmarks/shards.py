"""Shards of one run: the same bytes as one process, and how long 10⁹ lines take on 1, 16 and 256 machines.

    python benchmarks/shards.py same [--parts 8] [--lines 6000] [--precision int8]   cut into parts and merged
    python benchmarks/shards.py plan [--lines 400000] [--total 1000000000] [--machines 1 16 256]

`same` works on the real query logs (all lines with the prefilter, `--lines` without it), and on Vaswani and CACM. Every
part of a command runs with `--engine shard:I/N` in a folder of its own; then `truerank merge`; and so on until the
first has its result. It ends with an error where any file but the log differs from that of one process, which runs with
`--engine shard:1/1`.

`plan` measures what one line costs in each step of a `leakage audit --mode prefilter`, in processor time of one
processor, over generated lines, and multiplies. Every machine reads all lines, since a text is compared where it first
stands; the filter and the encoder work on the machine's share. Blocks are counted as links on one shared disk. The plan
assumes one processor for each machine, and that nothing waits for the disk.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from itertools import islice
from pathlib import Path

import truerank
from shared_data import LOGS, SHARED, log_path, recombined, require_shared, table, topic_path
from truerank import collection, leakage, transfer
from truerank.audits.leakage.proposals import DistinctQueries, topic_texts
from truerank.audits.leakage.training_data.results import ExampleOptions
from truerank.audits.transfer.matching.matches import MatchOptions
from truerank.audits.transfer.scanning.options import ScanScoring
from truerank.errors import ShardFinishedError
from truerank.near_duplicates import sketches
from truerank.options import Workers
from truerank.sources import open_documents, open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.text.wording import WordingProbe
from truerank.vectors.prefilter import DEFAULT_CUTS, FilterPlan, filter_blocks
from truerank.work.blocks import BlockStore
from truerank.work.jobs import Job

#: Runs a command into a folder with an engine.
Way = Callable[[Path, str], object]


def ways(folder: Path, lines: int, precision: str) -> dict[str, Way]:
    """Each command that takes shards, over real data."""
    logs = {"prefilter": 1 << 30, "exhaustive": lines // len(LOGS)}
    for mode, most in logs.items():
        sources = [islice(open_queries(str(log_path(name))), most) for name in LOGS]
        texts = [query.text for source in sources for query in source]
        rows = "".join(f"{place}\t{text}\n" for place, text in enumerate(texts))
        (folder / f"{mode}.tsv").write_text(rows, encoding="utf-8")
    test = str(topic_path("core17"))
    places = {name: SHARED / "collections" / name for name in ("vaswani", "cacm")}
    documents, topics, qrels = (
        str(places["vaswani"] / name) for name in ("docs.trec.gz", "topics.trec.txt", "qrels.txt")
    )
    cacm, asked, judged = (str(places["cacm"] / name) for name in ("cacm.tar.gz", "topics.txt", "qrels.txt"))
    new, training = _damaged(cacm, folder / "new.jsonl"), _examples(documents, topics, qrels, folder / "examples.jsonl")

    def audited(mode: str) -> Way:
        return lambda out, engine: leakage.audit(
            str(folder / f"{mode}.tsv"),
            test,
            out=out,
            encoder="packaged",
            mode=mode,
            engine=engine,
            precision=precision,
            block_size=128,
        )

    return {
        "leakage audit --mode prefilter": audited("prefilter"),
        "leakage audit --mode exhaustive": audited("exhaustive"),
        "leakage examples": lambda out, engine: leakage.examples(
            training, topics, options=ExampleOptions(docs=documents, qrels=qrels, sample=20),
            work=Workers(engine=engine), out=out,
        ),
        "transfer scan": lambda out, engine: transfer.scan(
            {"old": cacm, "new": new}, judged, asked, model="bm25", matching=MatchOptions(match_by="id"),
            scoring=ScanScoring(engine=engine, block_size=64), out=out,
        ),
        "collection audit": lambda out, engine: collection.audit(
            docs=documents, topics=topics, qrels=qrels, engine=engine, out=out
        ),
    }  # fmt: skip


def _damaged(documents: str, path: Path) -> str:
    """A version of a collection in which every fifth document has lost its second half."""
    with path.open("w", encoding="utf-8") as target:
        for number, one in enumerate(open_documents(documents)):
            body = one.body[: len(one.body) // 2] if number % 5 == 0 else one.body
            target.write(json.dumps({"doc_id": one.doc_id, "title": one.title, "body": body}) + "\n")
    return str(path)


def _examples(documents: str, topics: str, qrels: str, path: Path) -> str:
    """Training examples from a collection and some of its topics."""
    texts = [one.body for one in open_documents(documents)]
    asked = {topic.topic_id: topic.title for topic in read_topics(topics).topics}
    draw = random.Random(1)
    with path.open("w", encoding="utf-8") as target:
        for number in range(6_000):
            query = asked[draw.choice(list(asked))] if number % 100 == 0 else " ".join(draw.choice(texts).split()[:6])
            row = {"query": query, "positive": draw.choice(texts), "negative": draw.choice(texts)}
            target.write(json.dumps(row) + "\n")
    return str(path)


def digests(folder: Path) -> dict[str, str]:
    """The files of a result, but the log."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "run.log"
    }


def in_shards(way: Way, folder: Path, parts: int) -> tuple[Path, int, list[float], int]:
    """Runs a command in parts; the first folder, the rounds, each part's processor time, and blocks."""
    folders = [folder / f"shard-{part}" for part in range(1, parts + 1)]
    seconds, rounds, blocks = [0.0] * parts, 0, 0
    while not (folders[0] / "manifest.json").is_file():
        rounds += 1
        for part, out in enumerate(folders):
            begun = time.process_time()
            with suppress(ShardFinishedError):
                way(out, f"shard:{part + 1}/{parts}")
            seconds[part] += time.process_time() - begun
            if (folders[0] / "manifest.json").is_file():
                break
        else:
            blocks = truerank.merge(folders).blocks
    return folders[0], rounds, seconds, blocks


def same(parts: int, lines: int, only: Sequence[str], precision: str) -> None:
    """Prints a row for each command."""
    sketches._DOCUMENTS = 512  # the collections are small: with blocks of the usual size there would be one
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as name:
        for command, way in ways(Path(name), lines, precision).items():
            if only and command not in only:
                continue
            place = Path(name) / command.replace(" ", "-")
            begun = time.process_time()
            way(place / "whole", "shard:1/1")
            alone = time.process_time() - begun
            first, rounds, seconds, blocks = in_shards(way, place, parts)
            ours, theirs = digests(first), digests(place / "whole")
            differ = [name for name in sorted(ours | theirs) if ours.get(name) != theirs.get(name)]
            failed |= bool(differ)
            rows.append(
                (f"`{command}`", parts, blocks, rounds, f"{alone:.1f}", f"{statistics.median(seconds):.1f}",
                 f"{max(seconds):.1f}", ", ".join(differ) or "none")
            )  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    header = (
        "command",
        "shards",
        "blocks",
        "rounds",
        "one process, s",
        "a shard, s (median)",
        "the first, s",
        "same bytes",
    )
    print(table(header, rows))
    if failed:
        sys.exit("bytes differ")


def rates(lines: int, folder: Path) -> dict[str, float]:
    """What the steps cost, in seconds of one processor."""
    every = [query.text for name in LOGS for query in open_queries(str(log_path(name)))]
    test = str(topic_path("robust04"))
    log, few = folder / "log.tsv", folder / "few.tsv"
    for path, size in ((log, lines), (few, 4_000)):
        text = "".join(f"{place}\t{line}\n" for place, line in enumerate(recombined(every, size)))
        path.write_text(text, encoding="utf-8")

    def seconds(work: Callable[[], object]) -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    def audited(source: Path, name: str) -> float:
        return seconds(
            lambda: leakage.audit(str(source), test, out=folder / name, encoder="packaged", mode="prefilter")
        )

    topics = topic_texts([read_topics(test)], ("title",))
    texts = tuple(normalise(one.text) for one in topics)
    plan = FilterPlan(texts, tuple(one.field for one in topics), DEFAULT_CUTS, WordingProbe(texts))
    reading = seconds(lambda: sum(1 for _ in DistinctQueries(open_queries(str(log)))()))
    filtering = seconds(lambda: filter_blocks(DistinctQueries(open_queries(str(log))), plan, Job(folder / "filter")))
    audited(few, "warm")
    fixed, whole = audited(few, "few"), audited(log, "whole")
    passed, of_few = (
        json.loads((folder / name / "summary.json").read_text())["prefilter"]["passed"] for name in ("whole", "few")
    )
    return {
        "lines": lines, "read": reading / lines, "filter": (filtering - reading) / lines, "fixed": fixed,
        "passed": passed / lines, "encode": max(0.0, whole - fixed - filtering) / max(1, passed - of_few),
        "link": _link(folder),
    }  # fmt: skip


def _link(folder: Path, blocks: int = 400, parts: int = 8) -> float:
    """What `merge` costs for a block and a shard."""
    folders = [folder / f"merge-{part}" for part in range(parts)]
    for part, place in enumerate(folders):
        store = BlockStore(place / ".work" / "run" / "step")
        for number in range(part, blocks, parts):
            (store.folder / f"{number:08d}.arrow").write_bytes(b"x" * 100_000)
    begun = time.process_time()
    truerank.merge(folders)
    return (time.process_time() - begun) / (blocks * (parts - 1))


#: Steps of an audit with a first pass: the filter, the first pass, the second, the page.
_ROUNDS = 4
_FILTER_BLOCK, _PASS_BLOCK = 1 << 16, 8192


def plan(lines: int, total: int, machines: Sequence[int]) -> None:
    """Prints the rates and the plan."""
    with tempfile.TemporaryDirectory() as name, redirect_stdout(sys.stderr):
        found = rates(lines, Path(name))
    print(f"of one processor, {os.cpu_count()} processors, load {os.getloadavg()[0]:.0f}, {lines:,} lines:")
    print(
        f"reading and distinct texts {1 / found['read']:,.0f} lines a second; the filter {1 / found['filter']:,.0f}; "
        f"{found['passed']:.2%} pass; {1 / found['encode']:,.0f} texts a second encoded; fixed {found['fixed']:.1f} s; "
        f"{found['link'] * 1e6:.0f} µs to link a block\n"
    )
    blocks = total / _FILTER_BLOCK + total * found["passed"] / _PASS_BLOCK
    rows = []
    for number in machines:
        reading, fixed = total * found["read"], found["fixed"] * (_ROUNDS if number > 1 else 1)
        filtering = total * found["filter"] / number
        encoding = total * found["passed"] * found["encode"] / number
        merging = blocks * found["link"] * (number - 1)
        clock = reading + filtering + encoding + merging + fixed
        one = total * (found["read"] + found["filter"] + found["passed"] * found["encode"]) + found["fixed"]
        spent = (clock - merging) * number + merging
        parts = (reading, filtering, encoding, merging, fixed, clock, spent)
        rows.append((number, *(f"{value / 3600:.2f}" for value in parts), f"{one / clock:.1f}×"))
    header = ("machines", "reading, h", "filter, h", "encoding, h", "merging, h", "starts and pages, h", "clock, h",
              "processor hours in all", "as fast as one")  # fmt: skip
    print(table(header, rows))


def main() -> None:
    """Runs one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["same", "plan"])
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--lines", type=int)
    parser.add_argument("--only", nargs="*", default=[], metavar="COMMAND")
    parser.add_argument("--precision", default="int8", help="of all jobs of a leakage audit: full, int8, bf16")
    parser.add_argument("--total", type=int, default=10**9)
    parser.add_argument("--machines", type=int, nargs="*", default=[1, 16, 256])
    given = parser.parse_args()
    require_shared()
    if given.what == "same":
        same(given.parts, given.lines or 6_000, given.only, given.precision)
    else:
        plan(given.lines or 400_000, given.total, given.machines)


if __name__ == "__main__":
    main()
