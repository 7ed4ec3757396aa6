"""The 72 training sets of the leakage paper: 3 test scenarios × 3 kinds × 8 sizes, built from generated sources.

    python benchmarks/training_sets.py --paper      367,013 + 10,405,342 queries over 200,000 documents
    python benchmarks/training_sets.py              a hundredth of the queries

Texts are random words with the frequencies of a natural language; every query takes its words from its relevant
document. The numbers of candidates, leaks and topics are those of the paper's Tables 1 and 2. Each build, and the proof
of its properties, is a process of its own; its peak resident memory is the operating system's figure.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from shared_data import table
from truerank.lexical.analysis import LISTS

SIZES = [1000 * 2**power for power in range(8)]
WORDS = 60_000
SEED = 20221110
CHUNK = 1_000_000


class Scenario(NamedTuple):
    """A test collection: topics, candidates, verified leaks and the topics that they leak, rows that leak."""

    name: str
    topics: int
    candidates: int
    verified: int
    leaked: int
    rows: int


SCENARIOS = (
    Scenario("robust04", 250, 3960, 648, 172, 500),
    Scenario("core17", 50, 645, 138, 37, 100),
    Scenario("core18", 50, 973, 157, 38, 100),
)


def random_words(draw: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of words, the frequent ones often: Zipf's law with exponent 1."""
    return np.minimum(WORDS * (WORDS ** -draw.random(count)) * 1.2, WORDS - 1).astype(np.int32)


def vocabulary(draw: np.random.Generator) -> pl.Series:
    """Different words, the most frequent first: the stopwords that the first stage leaves out, then made-up ones."""
    letters, vowels = np.array(list("bcdfghklmnprstvz")), np.array(list("aeiou"))
    words = dict.fromkeys(sorted(LISTS["lucene"]))
    while len(words) < WORDS:
        syllables = draw.integers(2, 5)
        word = "".join(letters[draw.integers(16)] + vowels[draw.integers(5)] for _ in range(syllables))
        words[word] = None
    return pl.Series("word", list(words))


def write_documents(path: Path, count: int, prefix: str, words: pl.Series, draw: np.random.Generator) -> np.ndarray:
    """Documents of 40 to 80 words as `id TAB text`; returns the numbers of the first 40 words, shape (count, 40)."""
    lengths = draw.integers(40, 81, count)
    numbers = random_words(draw, int(lengths.sum()))
    starts = np.cumsum(lengths) - lengths
    owner = np.repeat(np.arange(count, dtype=np.int64), lengths)
    frame = pl.DataFrame({"owner": owner, "word": words.gather(numbers)})
    texts = frame.group_by("owner", maintain_order=True).agg(pl.col("word").str.join(" "))["word"]
    ids = pl.Series("id", [f"{prefix}{number}" for number in range(count)])
    pl.DataFrame({"id": ids, "text": texts}).write_csv(path, separator="\t", include_header=False)
    return numbers[starts[:, None] + np.arange(40)]


def write_queries(
    path: Path, numbers: range, words: pl.Series, documents: np.ndarray, draw: np.random.Generator
) -> None:
    """Queries of 2 to 5 words of their relevant documents, with these ids, and the judgments."""
    first, count = numbers.start, len(numbers)
    with path.with_suffix(".tsv").open("wb") as queries, path.with_suffix(".qrels").open("wb") as qrels:
        for start in range(0, count, CHUNK):
            size = min(CHUNK, count - start)
            owners = draw.integers(0, len(documents), size)
            lengths = draw.integers(2, 6, size)
            columns = []
            for place in range(5):
                chosen = words.gather(documents[owners, draw.integers(0, 40, size)])
                columns.append(
                    pl.select(pl.when(pl.Series(lengths > place)).then(chosen)).to_series().alias(f"w{place}")
                )
            ids = pl.Series("id", np.arange(first + start, first + start + size)).cast(pl.String)
            text = pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=" ", ignore_nulls=True).alias("text"))
            text.insert_column(0, ids).write_csv(queries, separator="\t", include_header=False)
            judged = pl.DataFrame({"id": ids, "zero": pl.repeat(0, size, eager=True),
                                   "doc": "D" + pl.Series(owners).cast(pl.String),
                                   "grade": pl.repeat(1, size, eager=True)})  # fmt: skip
            judged.write_csv(qrels, separator=" ", include_header=False)


def write_scenario(folder: Path, scenario: Scenario, sources: list[str], draw: np.random.Generator) -> None:
    """Candidates and labels of a test set: lines of the sources, and topics that say the same in another order."""
    found = [pl.read_csv(folder / f"{name}.tsv", separator="\t", has_header=False, n_rows=200_000,
                         new_columns=["query_id", "query_text"], schema_overrides={"query_id": pl.String})
             .with_columns(source=pl.lit(name)) for name in sources]  # fmt: skip
    lines = pl.concat(found).unique("query_text", maintain_order=True)
    chosen = lines.sample(scenario.candidates, seed=int(draw.integers(1 << 30)))
    topics = np.concatenate([
        np.arange(scenario.leaked),
        draw.integers(0, scenario.leaked, scenario.candidates - scenario.leaked),
    ])  # fmt: skip
    pairs = chosen.with_columns(
        test=pl.lit(scenario.name),
        topic_id=pl.Series(topics).cast(pl.String),
        similarity=pl.Series(draw.uniform(0.911, 1, scenario.candidates).astype(np.float32)),
    )
    audit = folder / f"audit-{scenario.name}"
    audit.mkdir()
    pairs.write_parquet(audit / "candidates.parquet")
    labels = pairs.head(scenario.verified).select("topic_id", "query_id", "query_text", label=pl.lit("leak"))
    labels.write_csv(folder / f"{scenario.name}.labels.tsv", separator="\t")


def write_test_data(folder: Path, scenario: Scenario, words: pl.Series, draw: np.random.Generator) -> None:
    """Topics of four words, and 40 judgments of each, ten of them relevant."""
    numbers = random_words(draw, 4 * scenario.topics).reshape(-1, 4)
    with (
        (folder / f"{scenario.name}.topics.tsv").open("w") as topics,
        (folder / f"{scenario.name}.qrels").open("w") as qrels,
    ):
        for topic, own in enumerate(numbers):
            topics.write(f"{topic}\t{' '.join(words.gather(own))}\n")
            judged = draw.choice(20_000, 40, replace=False)
            qrels.writelines(f"{topic} 0 T{document} {int(place < 10)}\n" for place, document in enumerate(judged))


def measured(arguments: list[str]) -> tuple[float, float, dict]:
    """Seconds, peak memory in MB and the JSON of a command."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "truerank", "instances", *arguments, "--json"], stdout=printed
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            sys.exit(f"failed: {' '.join(arguments)}")
        printed.seek(0)
        return seconds, usage.ru_maxrss / 1024, json.load(printed)


def arguments_of(folder: Path, kind: str, scenario: Scenario) -> list[str]:
    """The options of a build; rows without a leak are taken from the set of the kind none."""
    sources = [f"--queries={folder / name}.tsv" for name in ("msmarco", "orcas")]
    sources += [f"--train-qrels={folder / name}.qrels" for name in ("msmarco", "orcas")]
    sources += [f"--docs={folder / 'docs.tsv'}", f"--index={folder / 'index'}"]
    out = folder / f"{scenario.name}-{kind}"
    common = ["build", "--kind", kind, f"--candidates={folder / f'audit-{scenario.name}'}", f"--out={out}"]
    common += [f"--labels={folder / scenario.name}.labels.tsv", *(f"--size={size}" for size in SIZES)]
    topics = [f"--topics={folder / scenario.name}.topics.tsv", f"--leaks={scenario.rows}"]
    fill = [f"--fill={folder / f'{scenario.name}-none'}"]
    if kind == "none":
        return [*common, *sources]
    if kind == "leak":
        return [*common, *sources, *topics, *fill]
    return [*common, *topics, *fill, f"--qrels={folder / scenario.name}.qrels", f"--test-docs={folder / 'test.tsv'}"]


def generate(folder: Path, sizes: tuple[int, int], documents: int) -> None:
    """Everything that the sets are built from."""
    draw = np.random.default_rng(SEED)
    words = vocabulary(draw)
    owned = write_documents(folder / "docs.tsv", documents, "D", words, draw)
    write_documents(folder / "test.tsv", 20_000, "T", words, draw)
    for name, count, first in (("msmarco", sizes[0], 1), ("orcas", sizes[1], 10_000_000)):
        write_queries(folder / name, range(first, first + count), words, owned, draw)
    for scenario in SCENARIOS:
        write_scenario(folder, scenario, ["msmarco", "orcas"], draw)
        write_test_data(folder, scenario, words, draw)


def main() -> None:
    """Prints one table of the builds, one of the proofs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", action="store_true", help="the paper's numbers of queries")
    parser.add_argument("--documents", type=int, default=200_000)
    given = parser.parse_args()
    sizes = (367_013, 10_405_342) if given.paper else (90_000, 104_053)
    with tempfile.TemporaryDirectory(prefix="truerank-sets-") as name:
        folder = Path(name)
        start = time.perf_counter()
        # A process of its own: what this one holds would count as the peak of those that it starts.
        work = multiprocessing.get_context("spawn").Process(target=generate, args=(folder, sizes, given.documents))
        work.start()
        work.join()
        if work.exitcode:
            sys.exit("nothing was generated")
        print(f"generated in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        start = time.perf_counter()
        index = [sys.executable, "-m", "truerank", "index", str(folder / "docs.tsv"), "--out", str(folder / "index")]
        subprocess.run(index, check=True, stdout=subprocess.DEVNULL)
        print(f"{sizes[0]:,} + {sizes[1]:,} queries, {given.documents:,} documents; index built in "
              f"{time.perf_counter() - start:.0f} s\n")  # fmt: skip
        builds, proven = [], []
        for scenario in SCENARIOS:
            for kind in ("none", "leak", "test"):
                seconds, peak, built = measured(arguments_of(folder, kind, scenario))
                leaks = built["leaks"] or {"rows": 0, "topics": 0}
                builds.append((scenario.name, kind, len(built["sizes"]), f"{built['rows']:,}", leaks["rows"],
                               leaks["topics"], f"{seconds:.0f}", f"{peak:,.0f}"))  # fmt: skip
                print(builds[-1], file=sys.stderr, flush=True)
            sets = [str(folder / f"{scenario.name}-{kind}") for kind in ("none", "leak", "test")]
            seconds, peak, stats = measured(["stats", *sets, f"--train-qrels={folder / 'msmarco'}.qrels",
                                             f"--train-qrels={folder / 'orcas'}.qrels"])  # fmt: skip
            properties = [one for own in stats["sets"] for one in own["properties"]]
            properties += [pair["same_fill"] for pair in stats["pairs"]]
            verdicts = [sum(one["holds"] is verdict for one in properties) for verdict in (True, False, None)]
            proven.append((scenario.name, *verdicts, f"{seconds:.0f}", f"{peak:,.0f}"))
            print(proven[-1], file=sys.stderr, flush=True)
            unproven = [one for one in properties if one["holds"] is not True]
            print(*unproven, sep="\n", file=sys.stderr, flush=True)
        print(table(("scenario", "kind", "sizes", "rows", "rows that leak", "topics", "seconds", "peak MB"), builds))
        print()
        print(table(("scenario", "hold", "broken", "not checked", "seconds", "peak MB"), proven))


if __name__ == "__main__":
    main()
