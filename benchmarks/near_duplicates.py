"""Near-duplicates: recall against all pairs, and time, peak memory and recall by kind as collections grow.

    python benchmarks/near_duplicates.py recall
    python benchmarks/near_duplicates.py generate 1000000 FOLDER
    python benchmarks/near_duplicates.py scale FOLDER [--workers 2] [--size 3] [--step keep]
    python benchmarks/near_duplicates.py between FOLDER
    python benchmarks/near_duplicates.py choices FOLDER
    python benchmarks/near_duplicates.py datatrove FOLDER [--workers 2]

`recall` compares all pairs of documents of Vaswani and CACM, and counts which are found, beside MinHash with bands
(datasketch, where it is installed). `generate` writes a collection with planted duplicates of five kinds, `scale` and
`datatrove` look for them. Time is that of the processors (user and system) and that of the clock.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import json
import os
import re
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planted_duplicates import KINDS, generate, truth

if TYPE_CHECKING:
    from truerank.near_duplicates import Equivalents, Shingles


class Watch:
    """Time of the processors and of the clock, and the peak memory of this process and its children together."""

    def __enter__(self) -> Watch:
        self.peak, self._ended, self._seen = 0.0, threading.Event(), dict[int, float]()
        self._clock, self._processor = time.perf_counter(), self.used()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.seconds = time.perf_counter() - self._clock
        own = resource.getrusage(resource.RUSAGE_SELF)
        # Children of children are in the system's sum only if their parents waited for them.
        looked = own.ru_utime + own.ru_stime + sum(self._seen.values())
        self.processor = max(self.used(), looked) - self._processor

    def row(self) -> tuple[str, str, str]:
        """Seconds of the processors, of the clock, and megabytes."""
        return f"{self.processor:,.0f}", f"{self.seconds:,.0f}", f"{self.peak / 1e6:,.0f}"

    @staticmethod
    def used() -> float:
        """Seconds of the processors so far, of this process and its children that have ended."""
        usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def _look(self) -> None:
        while not self._ended.wait(0.25):
            everyone = family(os.getpid())
            self.peak = max(self.peak, sum(proportional(pid) for pid in everyone))
            self._seen |= {pid: seconds(pid) for pid in everyone if pid != os.getpid()}


def seconds(process: int) -> float:
    """The processor time of a process so far."""
    try:
        numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def family(process: int) -> list[int]:
    """A process and all its children."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


def proportional(process: int) -> float:
    """The memory of a process in bytes; what several share counts in parts."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(float(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def scale(folder: Path, workers: int, size: int, step: str) -> None:
    """Looks for the planted duplicates with truerank and prints recall by kind at three thresholds."""
    from truerank.near_duplicates import Shingles, keep, open_sketches, within
    from truerank.sources import open_documents
    from truerank.work.engines import LocalEngine
    from truerank.work.jobs import Job

    class Stages:
        """Prints what each stage took."""

        name, began, used = "start", time.perf_counter(), 0.0

        def start(self, what: str, total: int | None = None) -> None:
            now, used = time.perf_counter(), Watch.used()
            print(f"  {self.name:20s} {now - self.began:7.1f} s {used - self.used:7.1f} s", file=sys.stderr, flush=True)
            self.name, self.began, self.used = what, now, used

        def advance(self, items: int) -> None:
            pass

        status = note = advance  # type: ignore[assignment]

    options, documents = Shingles(similarity=0.6, shingle_size=size), open_documents(str(folder / "corpus.jsonl"))
    if step == "keep":
        with Watch() as watch:
            kept = keep(documents, options, Job(folder / "kept", LocalEngine(workers)))
        print(f"keeping {len(kept):,} documents: processor s | clock s | peak MB", " | ".join(watch.row()))
        return
    with tempfile.TemporaryDirectory(dir=folder) as work, Watch() as watch:
        stages = Stages()
        job = Job(Path(work), LocalEngine(workers), stages)
        found = within(open_sketches(folder / "kept", options) if step == "compare" else documents, options, job)
        stages.start("end")
        disk = sum(path.stat().st_size for path in Path(work).rglob("*") if path.is_file())
    print("documents | pairs | crowded | processor s | clock s | peak MB | disk at the end MB")
    print(f"{found.documents[0]:,} | {found.counts} | {found.crowded} | {' | '.join(watch.row())} | {disk / 1e6:,.0f}")
    print(found.boilerplate.head(3))
    known = truth(folder)
    unplanted = found.pairs.filter(found.pairs["kind"] != "contains")
    planted_ids = {duplicate for _, duplicate in known}
    extra = sum(
        left not in planted_ids and right not in planted_ids
        for left, right in unplanted.select("left", "right").iter_rows()
    )
    print(f"equivalent pairs without a planted document: {extra}")
    for similarity in (0.6, 0.7, 0.8, 0.9):
        pairs = found.rethreshold(similarity=similarity).pairs
        by_pair = {frozenset(row[:2]): row[2] for row in pairs.select("left", "right", "kind").iter_rows()}
        kinds = {
            kind: Counter(by_pair.get(frozenset(pair)) for pair, own in known.items() if own == kind) for kind in KINDS
        }
        for kind, counts in kinds.items():
            total = counts.total()
            shares = ", ".join(
                f"{name} {counts[name] / total:.3f}"
                for name in ("exact", "reformatted", "near", "contains")
                if counts[name]
            )
            print(f"{similarity} | {kind} | {total} | {1 - counts[None] / total if total else 0:.4f} | {shares}")


def between_two(folder: Path, asked: int = 1000) -> None:
    """Compares the first planted documents with the collection: what keeping it, and one more percent of it, costs."""
    from truerank.near_duplicates import Shingles, between, keep
    from truerank.sources import open_documents
    from truerank.work.jobs import Job

    documents = list(open_documents(str(folder / "corpus.jsonl")))
    known = truth(folder)
    wanted = dict(itertools.islice(((duplicate, original) for original, duplicate in known), asked))
    left = [document for document in documents if document.doc_id in wanted]
    right = [document for document in documents if not document.doc_id.startswith("x")]
    options = Shingles(similarity=0.6)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        base = Path(work)
        with Watch() as kept:
            sketches = keep(right, options, Job(base / "right"))
        test = keep(left, options, Job(base / "left"))
        with Watch() as compared:
            found = between(test, sketches, options, Job(base / "compared"))
        with Watch() as added:
            more = keep(right[: len(right) // 100], options, Job(base / "more"))
            between(test, more, options, Job(base / "added"))
    hits = sum(wanted[left] == right for left, right in set(found.pairs.select("left", "right").iter_rows()))
    print(f"{len(left):,} documents against {len(right):,}: {hits / len(left):.4f} of the originals found")
    for name, watch in (("keeping", kept), ("comparing", compared), ("keeping and comparing 1% more", added)):
        print(f"{name} | {watch.processor:.2f} | {watch.seconds:.2f}")


def recall(permutations: int = 128) -> None:
    """Prints what is found of all pairs of documents of two real collections."""
    from shared_data import SHARED, require_shared, table
    from truerank.near_duplicates import Shingles, within
    from truerank.sources import open_documents

    require_shared()
    collections = {
        "vaswani": ("collections/vaswani/docs.trec.gz", Shingles(similarity=0.7)),
        "cacm": ("collections/cacm/cacm.tar.gz", Shingles(similarity=0.7)),
        "arguana's topics": ("topics/beir/arguana.tsv.gz", Shingles(similarity=0.7)),
        "quora's topics, letters": ("topics/beir/quora.tsv.gz", Shingles("letters", 4, similarity=0.7)),
    }
    rows = []
    for name, (path, options) in collections.items():
        documents = [(document.doc_id, document.text) for document in open_documents(str(SHARED / path))]
        sets = [plain_shingles(text, options) for _, text in documents]
        exact = all_similarities(sets)
        number = {name: place for place, (name, _) in enumerate(documents)}
        found = within(documents, options)
        for similarity in (0.7, 0.8, 0.9):
            wanted = {pair for pair, value in exact.items() if value >= similarity}
            ours = found.rethreshold(similarity=similarity)
            methods = {"truerank": every_pair(ours, number), **minhash(sets, similarity, permutations)}
            for method, pairs_of in methods.items():
                hits = len(pairs_of & wanted)
                shares = (f"{hits / len(every):.3f}" if every else "—" for every in (wanted, pairs_of))
                rows.append((name, f"{len(documents):,}", similarity, len(wanted), method, *shares))
    print(table(("collection", "documents", "Jaccard", "pairs", "method", "recall", "precision"), rows))


def plain_shingles(text: str, options: Shingles) -> frozenset[tuple[str, ...]]:
    """The shingles of a text, by plain Python."""
    words = re.findall(r"[^\W_]+", text.casefold())
    units: Sequence[str] = words if options.shingle_unit == "words" else " ".join(words)
    width = min(options.shingle_size, len(units))
    return frozenset(tuple(units[at : at + width]) for at in range(len(units) - width + 1)) if units else frozenset()


def all_similarities(sets: Sequence[frozenset[tuple[str, ...]]], least: float = 0.5) -> dict[tuple[int, int], float]:
    """The Jaccard similarity of all pairs of documents, by a product of matrices, from a least one on."""
    import scipy.sparse

    numbers: dict[tuple[str, ...], int] = {}
    columns = [numbers.setdefault(shingle, len(numbers)) for one in sets for shingle in one]
    starts = np.cumsum([0, *map(len, sets)])
    own = scipy.sparse.csr_array((np.ones(len(columns), np.int32), columns, starts), (len(sets), len(numbers)))
    sizes, found = np.diff(starts), {}
    for first in range(0, len(sets), 1000):
        common = (own[first : first + 1000] @ own.T).tocoo()
        left, right = common.row + first, common.col
        similarity = common.data / (sizes[left] + sizes[right] - common.data)
        good = (left < right) & (similarity >= least)
        found |= dict(zip(zip(left[good].tolist(), right[good].tolist(), strict=True), similarity[good], strict=True))
    return found


def every_pair(found: Equivalents, number: Mapping[str, int]) -> set[tuple[int, int]]:
    """All pairs of equivalent documents by number: documents with the same words share the pairs of their first."""
    rows = [
        (number[left], number[right], kind) for left, right, kind in found.pairs.select("left", "right", "kind").rows()
    ]
    first = {place: place for row in rows for place in row[:2]}
    for left, right, kind in rows:
        if kind in ("exact", "reformatted"):
            first[right] = first[left]
    members: dict[int, list[int]] = {}
    for place, one in first.items():
        members.setdefault(one, []).append(place)
    pairs = {pair for same in members.values() for pair in itertools.combinations(sorted(same), 2)}
    for left, right, kind in rows:
        if kind == "near":
            pairs |= {(min(pair), max(pair)) for pair in itertools.product(members[first[left]], members[first[right]])}
    return pairs


def minhash(
    sets: Sequence[frozenset[tuple[str, ...]]], similarity: float, permutations: int
) -> dict[str, set[tuple[int, int]]]:
    """The pairs that MinHash with bands proposes, and those of them whose similarity is verified."""
    try:
        import datasketch
    except ImportError:
        return {}
    index = datasketch.MinHashLSH(threshold=similarity, num_perm=permutations)
    found = set()
    for place, one in enumerate(sets):
        sketch = datasketch.MinHash(permutations)
        sketch.update_batch([" ".join(shingle).encode() for shingle in one])
        found |= {(earlier, place) for earlier in index.query(sketch)}
        index.insert(place, sketch)
    verified = {
        (left, right)
        for left, right in found
        if len(sets[left] & sets[right]) >= similarity * len(sets[left] | sets[right])
    }
    return {f"MinHash, {permutations} permutations": found, "the same, verified": verified}


def choices(folder: Path, documents: int = 10_000) -> None:
    """Processor time of each document for what is used, and for what could be in its place, where it is installed."""
    import hashlib
    import importlib

    import polars as pl

    from truerank.near_duplicates import Shingles
    from truerank.near_duplicates.shingles import shingled
    from truerank.text.words import spans

    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        texts_read = [json.loads(line)["text"] for line in itertools.islice(lines, documents)]
    options = Shingles()
    found = shingled(texts_read, options)
    strings = [[" ".join(shingle) for shingle in plain_shingles(text, options)] for text in texts_read]
    owner = np.repeat(np.arange(documents, dtype=np.uint32), np.diff(found.starts))
    frame = pl.DataFrame({"shingle": found.shingles, "document": owner})

    def sort() -> None:
        order = np.argsort(found.shingles)
        found.shingles[order], owner[order]

    works: dict[str, Callable[[], object]] = {
        "truerank: all shingles as hashes": lambda: shingled(texts_read, options),
        "words by truerank.text.words.spans": lambda: [spans(text) for text in texts_read],
        "shingles as strings, by a regular expression": lambda: [plain_shingles(text, options) for text in texts_read],
        "blake2b of the text": lambda: [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts_read],
        "NumPy: sorting postings": sort,
        "Polars: grouping postings": lambda: frame.group_by("shingle").agg(pl.col("document")),
    }
    with contextlib.suppress(ImportError):
        xxhash = importlib.import_module("xxhash")
        works["xxh3_128 of the text"] = lambda: [xxhash.xxh3_128_digest(text.encode()) for text in texts_read]
    with contextlib.suppress(ImportError):
        rensa = importlib.import_module("rensa")
        works["rensa: 128 permutations of the strings"] = lambda: [rensa_sketch(rensa, own) for own in strings]
    with contextlib.suppress(ImportError):
        sketch = importlib.import_module("datasketch").MinHash
        works["datasketch: 128 permutations of the strings"] = lambda: [
            sketch(128).update_batch([shingle.encode() for shingle in own]) for own in strings
        ]
    with contextlib.suppress(ImportError), tempfile.TemporaryDirectory() as work:
        database = importlib.import_module("duckdb").connect()
        frame.write_parquet(f"{work}/postings.parquet")
        query = f"select shingle, list(document) from '{work}/postings.parquet' group by all having count(*) > 1"
        print_time("DuckDB: grouping postings of a Parquet file", lambda: database.execute(query).fetchall(), documents)
    for name, work_of in works.items():
        print_time(name, work_of, documents)


def print_time(name: str, work: Callable[[], object], documents: int) -> None:
    """Prints the processor time of each document, the lowest of three."""
    times = []
    for _ in range(3):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    print(f"| {name} | {min(times) / documents * 1e6:.1f} |", flush=True)


def rensa_sketch(rensa: Any, shingles: list[str]) -> object:
    """The signature of one document."""
    sketch = rensa.RMinHash(128, 42)
    sketch.update(shingles)
    return sketch.digest()


def datatrove(folder: Path, workers: int) -> None:
    """The same collection with datatrove's MinHash as its documentation has it; prints recall by kind."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    parts = 2 * workers
    config = MinhashConfig()
    with tempfile.TemporaryDirectory(dir=folder) as work:
        cut(folder / "corpus.jsonl", Path(work) / "corpus", parts)
        reader = JsonlReader(f"{work}/corpus", id_key="_id")
        dropping = MinhashDedupFilter(f"{work}/removed", JsonlWriter(f"{work}/out"), load_cluster_ids=True)
        steps = (
            ([reader, MinhashDedupSignature(f"{work}/signatures", config)], parts),
            ([MinhashDedupBuckets(f"{work}/signatures", f"{work}/buckets", config=config)], config.num_buckets),
            ([MinhashDedupCluster(f"{work}/buckets", f"{work}/removed", config, save_cluster_id=True)], 1),
            ([reader, dropping, JsonlWriter(f"{work}/kept")], parts),
        )
        with Watch() as watch:
            for number, (pipeline, tasks) in enumerate(steps):
                LocalPipelineExecutor(pipeline, tasks=tasks, workers=workers, logging_dir=f"{work}/logs/{number}").run()
        clusters: dict[str, int] = {}
        for path in [*Path(work, "out").rglob("*.gz"), *Path(work, "kept").rglob("*.gz")]:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    row = json.loads(line)
                    if (cluster := row["metadata"].get("minhash_cluster_id", -1)) >= 0:
                        clusters[row["id"]] = cluster
    print("datatrove: processor s | clock s | peak MB", " | ".join(watch.row()))
    print_clusters(folder, clusters)


def cut(corpus: Path, folder: Path, parts: int) -> None:
    """Deals the lines of a file to several."""
    folder.mkdir()
    with ExitStack() as stack, corpus.open("rb") as lines:
        files = [stack.enter_context((folder / f"{part:03d}.jsonl").open("wb")) for part in range(parts)]
        for number, line in enumerate(lines):
            files[number * 7919 // 10_000 % parts].write(line)


def print_clusters(folder: Path, clusters: Mapping[str, int]) -> None:
    """Recall by kind where documents are in clusters."""
    by_kind: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for (original, duplicate), kind in truth(folder).items():
        by_kind[kind].append(original in clusters and clusters[original] == clusters.get(duplicate))
    for kind, hits in by_kind.items():
        print(f"{kind} | {len(hits)} | {sum(hits) / len(hits):.4f}")


def main() -> None:
    """Does what the first argument says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("generate")
    one.add_argument("documents", type=int)
    one.add_argument("folder", type=Path)
    one = commands.add_parser("scale")
    one.add_argument("folder", type=Path)
    one.add_argument("--workers", type=int, default=2)
    one.add_argument("--size", type=int, default=3)
    one.add_argument("--step", choices=("all", "keep", "compare"), default="all")
    commands.add_parser("between").add_argument("folder", type=Path)
    commands.add_parser("recall")
    commands.add_parser("choices").add_argument("folder", type=Path)
    one = commands.add_parser("datatrove")
    one.add_argument("folder", type=Path)
    one.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.command == "generate":
        generate(options.documents, options.folder)
    elif options.command == "scale":
        scale(options.folder, options.workers, options.size, options.step)
    elif options.command == "between":
        between_two(options.folder)
    elif options.command == "choices":
        choices(options.folder)
    elif options.command == "recall":
        recall()
    elif options.command == "datatrove":
        datatrove(options.folder, options.workers)


if __name__ == "__main__":
    main()
