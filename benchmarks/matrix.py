"""The leakage matrix on real data, its cost, and that what was kept changes nothing.

    python benchmarks/matrix.py suite     query logs and MIRACL's training topics against all test topics
    python benchmarks/matrix.py again     three logs, eight test sets; 1% more, and from nothing: time, bytes
    python benchmarks/matrix.py examples  generated training texts against 1,000 tests: time and memory by number

`--first N` takes the first N queries of each log only. The first two read the folder that TRUERANK_SHARED names (by
default ../shared), and write the output where --out says.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from shared_data import LOGS, SHARED, log_path, require_shared
from truerank.audits.leakage import LeakageMatrix, matrix
from truerank.overlaps import KeptTexts, OverlapRules, compare, keep
from truerank.sources import open_queries
from truerank.work.jobs import Job

SMALL = ("msmarco-dev-test", "nq-dev", "trivia-dev")
LANGUAGES = ("ar", "en", "fi", "ja", "ru", "sw")
OWN = (
    "robust04.trec.txt",
    "core17.trec.txt",
    "core18.trec.txt",
    "dl19-doc.tsv",
    "dl19-passage.tsv",
    "dl20.tsv",
    "web09.xml",
)
#: robust04 stands among the TREC topics already.
BEIR_TWICE = ("robust04",)


def tests() -> dict[str, str]:
    """All test topics by name."""
    topics = SHARED / "topics"
    found = {name.partition(".")[0]: str(topics / name) for name in OWN}
    for file in sorted((topics / "beir").iterdir()):
        name = file.name.partition(".")[0]
        if name not in BEIR_TWICE:
            found[name.replace("cqadupstack", "cqa")] = str(file)
    found |= {f"bright-{file.name.partition('.')[0]}": str(file) for file in sorted((topics / "bright").iterdir())}
    return found | {f"miracl-{code}": str(topics / "miracl" / f"{code}-dev.tsv.gz") for code in LANGUAGES}


def log(folder: Path, name: str, first: int) -> str:
    """A log, or its first queries."""
    if not first:
        return f"queries: {log_path(name)}"
    place = folder / f"{name}.tsv"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [query for query, _ in zip(open_queries(str(log_path(name))), range(first), strict=False)]
    place.write_text("".join(f"{one.query_id}\t{' '.join(one.text.split())}\n" for one in rows), encoding="utf-8")
    return f"queries: {place}"


def small_suite(folder: Path, first: int, further: dict[str, str]) -> Path:
    """A suite file of three logs, others, and eight test sets."""
    training = {name: log(folder, name, first) for name in SMALL} | further
    chosen = dict(list(tests().items())[:7]) | {"scifact": tests()["scifact"]}
    return written(folder, training, chosen)


def suite(folder: Path, first: int, without: list[str], rows: list[str]) -> Path:
    """The suite file of the measurement."""
    training = {name: log(folder, name, first) for name in LOGS}
    for code in LANGUAGES:
        training[f"miracl-{code}-train"] = f"queries: {SHARED / 'topics' / 'miracl' / code}-train.tsv.gz"
    chosen = {name: place for name, place in tests().items() if not name.startswith(tuple(without))}
    beir = {name: place for name, place in chosen.items() if "/beir/" in place and (not rows or name in rows)}
    training |= {name: f"topics: {place}" for name, place in beir.items()}
    return written(folder, training, chosen)


def written(folder: Path, training: dict[str, str], test: dict[str, str]) -> Path:
    """Writes a suite file."""
    lines = ["training:", *(f"  {name}:\n    {source}" for name, source in training.items())]
    lines += ["test:", *(f"  {name}:\n    topics: {place}" for name, place in test.items())]
    file = folder / "suite.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def seconds() -> float:
    """Processor seconds of this process and of those that it waited for."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def timed(file: Path, out: Path, encoder: str) -> LeakageMatrix:
    """Runs the matrix and prints what it cost."""
    begun, wall = seconds(), time.perf_counter()
    found = matrix(file, encoder=encoder, out=out)
    cost = f"{seconds() - begun:.1f} s of processor time, {time.perf_counter() - wall:.1f} s of time"
    print(f"{out.name}: {cost}; {'; '.join(found.work)}", flush=True)
    return found


def show(found: LeakageMatrix) -> None:
    """Prints the cells that leak most, and the most telling pairs."""
    with pl.Config(tbl_rows=80, tbl_cols=12, fmt_str_lengths=90, tbl_width_chars=200):
        cells = found.cells.drop("reason", "part", "pairs")
        print(cells.group_by("verdict").len().sort("verdict"))
        logs = cells.filter(pl.col("training").is_in([*LOGS, *(f"miracl-{code}-train" for code in LANGUAGES)]))
        share = pl.col("leaking") / pl.col("items")
        for title, part in (("logs and MIRACL", logs), ("BEIR", cells.join(logs, on="training", how="anti"))):
            print(title, part.filter(pl.col("leaking") > 0).sort(share, descending=True).head(45))
        print(logs.group_by("training", maintain_order=True).agg(pl.col("leaking", "proposed").sum()))
        telling = found.pairs.filter(~pl.col("exact") & pl.col("cosine").is_not_null())
        columns = ["training", "test", "test_text", "training_text", "cosine", "evidence"]
        print(
            telling.sort("cosine", descending=True).unique("test", keep="first", maintain_order=True).head(25)[columns]
        )


def again(out: Path, encoder: str, first: int) -> None:
    """1% more data as a set of its own: what it costs after the suite, and whether the bytes are those from nothing."""
    out.mkdir(parents=True, exist_ok=True)
    places = [log(out, name, first).removeprefix("queries: ") for name in SMALL]
    queries = [query.text for place in places for query in open_queries(place)]
    draw = random.Random(0)
    size = len(queries) // 100
    more = out / "more.tsv"
    drawn = (
        " ".join(draw.sample(f"{draw.choice(queries)} {draw.choice(queries)}".split(), 3)) for _ in range(size * 2)
    )
    texts = [text for text in drawn if text.strip()][:size]
    more.write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(texts)), encoding="utf-8")
    base = timed(small_suite(out, first, {}), out / "suite", encoder)
    count = sum(counts.get("query", 0) for name, counts in base.texts.items() if name.startswith("training"))
    print(f"{count:,} training texts, {size:,} more")
    suite_file = small_suite(out, first, {"more": f"queries: {more}"})
    timed(suite_file, out / "suite", encoder)
    timed(suite_file, out / "nothing", encoder)
    for name in (
        "matrix.parquet",
        "pairs.parquet",
        "summary.json",
        "report.html",
        "manifest.json",
        "figures/matrix.svg",
    ):
        same = len({hashlib.sha256((out / run / name).read_bytes()).hexdigest() for run in ("suite", "nothing")}) == 1
        print(f"{name}: {'the same bytes' if same else 'OTHER BYTES'}")


def generated(number: int, seed: int) -> Iterator[tuple[str, str]]:
    """Texts of 8 to 60 words of a vocabulary with Zipf's law; each hundredth holds a test text."""
    draw = random.Random(seed)
    vocabulary = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}" for n in range(30_000)]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    bag = draw.choices(vocabulary, weights, k=1 << 20)
    for at in range(number):
        start, length = draw.randrange(len(bag) - 60), draw.randint(8, 60)
        yield str(at), " ".join(bag[start : start + length])


def peak() -> float:
    """The most memory that this process has held, in MB."""
    with Path("/proc/self/status").open(encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def examples(out: Path, numbers: list[int]) -> None:
    """Time and memory by the number of training texts, each in a process of its own."""
    for number in numbers:
        child = os.fork()
        if not child:
            begun = seconds()
            folder = out / f"generated-{number}"
            test = keep(generated(1000, 1), OverlapRules(), Job(folder / "test"))
            training: KeptTexts = keep(generated(number, 2), OverlapRules(), Job(folder / "training"))
            kept = seconds() - begun
            compare(test, training, job=Job(folder / "work"))
            whole = seconds() - begun
            disk = sum(file.stat().st_size for file in (folder / "training").rglob("*") if file.is_file())
            cost = f"{1e6 * kept / number:.0f} µs each to keep, {1e6 * (whole - kept) / number:.0f} µs to compare"
            print(f"{number:,} texts: {cost}, {disk / number:.0f} bytes each, peak {peak():.0f} MB", flush=True)
            shutil.rmtree(folder)
            os._exit(0)
        os.waitpid(child, 0)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("suite", "again", "examples"))
    parser.add_argument("--out", type=Path, default=Path("matrix-benchmark"))
    parser.add_argument("--encoder", default="packaged")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--without", nargs="*", default=[], help="beginnings of names of test sets to leave out")
    parser.add_argument("--rows", nargs="*", default=[], help="BEIR sets that are training sets too; by default all")
    parser.add_argument("--number", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    given = parser.parse_args()
    if given.what != "examples":
        require_shared()
    if given.what == "suite":
        show(timed(suite(given.out, given.first, given.without, given.rows), given.out / "suite", given.encoder))
    elif given.what == "again":
        again(given.out, given.encoder, given.first)
    else:
        examples(given.out, given.number)


if __name__ == "__main__":
    main()
