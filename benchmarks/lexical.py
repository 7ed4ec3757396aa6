"""First-stage retrieval: effectiveness beside independent implementations, time and memory beside bm25s.

Effectiveness on Vaswani and CACM: ours with Anserini's defaults; bm25s with the same parameters on the same terms;
where the jar of Anserini and a Java of version 21 or newer are given, Anserini itself. Speed and memory: the two
collections, and one of as many documents as `--documents` says, made of real queries joined. Scale: documents of MS
MARCO's length from `generated_documents.py`, each way in a process of its own, whose memory is its own VmHWM; `--peer`
names a Python that has bm25s, numba and PyStemmer. It needs no data.

    TRUERANK_SHARED=../shared python benchmarks/lexical.py
    python benchmarks/lexical.py --only scale --sizes 100000 1000000 [--peer PYTHON --peer-sizes 20000] [--folder DIR]
    python benchmarks/lexical.py --anserini anserini-1.7.1-fatjar.jar --java java
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl

from truerank.lexical import Analyser, Index, TopicQuery, build_index, model_of, search, topic_queries
from truerank.lexical.presets import PRESETS
from truerank.measures import Evaluation, difference_interval, evaluate
from truerank.sources import open_documents, read_run_frame

SHARED = Path(os.environ.get("TRUERANK_SHARED", Path(__file__).parents[1] / ".." / "shared")) / "data"
COLLECTIONS = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}
MODELS = ("bm25", "ql", "rm3", "axiomatic", "prf")
MEASURES = "nDCG@10 AP R@1000"
BM25_DEFAULT = model_of("anserini")
#: Anserini's options for each model.
ANSERINI = {
    "bm25": ["-bm25"],
    "ql": ["-qld"],
    "rm3": ["-bm25", "-rm3"],
    "axiomatic": ["-bm25", "-axiom", "-axiom.deterministic", "-rerankCutoff", "20"],
    "prf": ["-bm25", "-bm25prf"],
}


def bm25s_run(
    texts: dict[str, str], queries: list[TopicQuery], analyser: Analyser, k1: float, b: float
) -> pl.DataFrame:
    """The run of bm25s (its Lucene variant) on our terms, k 1,000; documents without a term of the query left out."""
    import bm25s

    names = list(texts)
    model = bm25s.BM25(method="lucene", k1=k1, b=b)
    model.index([analyser(text) for text in texts.values()], show_progress=False)
    rows = []
    for query in queries:
        terms = [term for term in analyser(query.text) if term in model.vocab_dict]
        scores = model.get_scores(terms) if terms else np.zeros(len(names))
        best = sorted(np.flatnonzero(scores > 0).tolist(), key=lambda at: (-round(float(scores[at]), 6), names[at]))[
            :1000
        ]
        rows += [(query.topic_id, names[at], rank, float(scores[at]), "bm25s") for rank, at in enumerate(best, 1)]
    return pl.DataFrame(rows, ["topic_id", "doc_id", "rank", "score", "tag"], orient="row")


def anserini_runs(
    texts: dict[str, str], queries: list[TopicQuery], jar: str, java: str, folder: Path
) -> dict[str, pl.DataFrame]:
    """The runs of Anserini on the same texts."""
    (folder / "docs").mkdir(parents=True)
    with (folder / "docs" / "docs.jsonl").open("w") as target:
        target.writelines(json.dumps({"id": name, "contents": text}) + "\n" for name, text in texts.items())
    (folder / "topics.tsv").write_text("".join(f"{query.topic_id}\t{query.text}\n" for query in queries))
    call = [java, "--add-modules", "jdk.incubator.vector", "-cp", jar]

    def run(*words: str) -> None:
        subprocess.run([*call, *words], check=True, capture_output=True)

    documents, place = str(folder / "docs"), str(folder / "index")
    run("io.anserini.index.IndexCollection", "-collection", "JsonCollection", "-input", documents, "-index", place,
        "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-storeDocvectors")  # fmt: skip
    asked = ["-index", place, "-topics", str(folder / "topics.tsv"), "-topicReader", "TsvString", "-hits", "1000"]
    for model, options in ANSERINI.items():
        run("io.anserini.search.SearchCollection", *asked, "-output", str(folder / f"{model}.run"), *options)
    return {model: read_run_frame(folder / f"{model}.run") for model in ANSERINI}


def effectiveness(jar: str | None, java: str) -> None:
    """Prints the means of every run, and how each of ours differs from BM25 and from the peer's."""
    for name, (documents, topics) in COLLECTIONS.items():
        folder = SHARED / "collections" / name
        with tempfile.TemporaryDirectory() as place:
            index = build_index(str(folder / documents), Path(place) / "index")
            texts = {one.doc_id: one.text for one in open_documents(str(folder / documents))}
            queries = topic_queries(str(folder / topics))
            runs = {f"{model}": search(index, queries, model_of("anserini", model)).run for model in MODELS}
            once = model_of("anserini", "axiomatic", {"idf": "once"})
            runs["axiomatic, idf once"] = search(index, queries, once).run
            exact = model_of("anserini", "bm25", {"lengths": "exact"})
            runs["bm25, exact lengths"] = search(index, queries, exact).run
            peers = {"bm25, exact lengths": bm25s_run(texts, queries, index.analyser, 0.9, 0.4)}
            if jar:
                peers |= anserini_runs(texts, queries, jar, java, Path(place) / "anserini")
        qrels = str(folder / "qrels.txt")
        ours, theirs = evaluate(qrels, runs, MEASURES), evaluate(qrels, peers, MEASURES)
        print(f"\n{name}: {len(texts):,} documents, {len(ours.topics)} judged topics of {len(queries)}\n")
        print("| run | nDCG@10 | AP | R@1000 | AP − BM25 (95%) ", end="")
        print("| peer: nDCG@10 | AP | R@1000 | same documents | largest score gap |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for run, own in runs.items():
            row = [f"{value:.4f}" for value in ours.mean[ours.runs.index(run)]]
            peer = ["–"] * 5 if run not in peers else [*means(theirs, run), *agreement(own, peers[run])]
            print("| " + " | ".join([run, *row, against_bm25(ours, run), *peer]) + " |")
    print("\npeers: bm25s for 'bm25, exact lengths'" + ("; Anserini for the others" if jar else ""))


def means(scores: Evaluation, run: str) -> list[str]:
    """The means of a run as they are printed."""
    return [f"{value:.4f}" for value in scores.mean[scores.runs.index(run)]]


def against_bm25(scores: Evaluation, run: str) -> str:
    """The difference of AP to BM25 with its interval."""
    if run == "bm25":
        return "–"
    gap = difference_interval(scores.of(run, "AP"), scores.of("bm25", "AP"))
    return f"{gap.mean:+.4f} ({gap.low:+.4f} to {gap.high:+.4f})"


def agreement(ours: pl.DataFrame, theirs: pl.DataFrame) -> list[str]:
    """The share of retrieved documents that both have, and the largest difference of a score."""
    both = ours.join(theirs, on=["topic_id", "doc_id"], suffix="_peer")
    gap = (both["score"] - both["score_peer"]).abs().max()
    return [f"{len(both) / max(len(ours), len(theirs)):.5f}", f"{gap:.4f}"]


def made_collection(size: int, folder: Path) -> Path:
    """Documents of eight real queries each."""
    queries: list[str] = []
    for file in sorted((SHARED / "query-logs").glob("*.tsv.gz")):
        with gzip.open(file, "rt", encoding="latin-1") as lines:
            queries += [line.rstrip("\n").partition("\t")[2].replace("\r", " ") for line in lines]
    rng = random.Random(0)
    path = folder / "made.jsonl"
    with path.open("w") as target:
        for number in range(size):
            target.write(json.dumps({"_id": f"m{number:07d}", "text": " ".join(rng.choices(queries, k=8))}) + "\n")
    return path


def timed(work: Callable[[], object], rounds: int) -> float:
    """Seconds on the clock, the median over the rounds."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def speed(size: int, rounds: int) -> None:
    """Prints indexing and search times of both, on one processor."""
    import bm25s
    import Stemmer

    print(f"\nspeed: median of {rounds} rounds, load {os.getloadavg()[0]:.1f}\n")
    print("| collection | documents | our index, s | bm25s index, s | our search, ms/topic | bm25s search, ms/topic |")
    print("|---|---|---|---|---|---|")
    analyser = PRESETS["anserini"].analyser
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = made_collection(size, folder)
        log = topic_queries(str(SHARED / "topics" / "robust04.trec.txt"))
        sources: list[tuple[str, str, list[TopicQuery]]] = [
            (
                kind,
                str(SHARED / "collections" / kind / documents),
                topic_queries(str(SHARED / "collections" / kind / topics)),
            )
            for kind, (documents, topics) in COLLECTIONS.items()
        ]
        for kind, path, queries in [*sources, ("made of queries", str(made), log)]:
            own = timed(lambda path=path, kind=kind: build_index(path, folder / kind), rounds)  # type: ignore[misc]
            index = Index(folder / kind)
            texts = [query.text for query in queries]

            def peer_index(path: str = path) -> bm25s.BM25:
                model = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
                corpus = (one.text for one in open_documents(path))
                tokens = bm25s.tokenize(
                    list(corpus), stopwords=list(analyser.words), stemmer=Stemmer.Stemmer("porter"), show_progress=False
                )
                model.index(tokens, show_progress=False)
                return model

            peer = timed(peer_index, rounds)
            model = peer_index()

            def peer_search(model: bm25s.BM25 = model, texts: Iterable[str] = texts) -> None:
                tokens = bm25s.tokenize(
                    list(texts), stopwords=list(analyser.words), stemmer=Stemmer.Stemmer("porter"), show_progress=False
                )
                model.retrieve(tokens, k=1000, show_progress=False)

            searched = timed(
                lambda index=index, queries=queries: search(index, queries, BM25_DEFAULT),  # type: ignore[misc]
                rounds,
            )
            peer_searched = timed(peer_search, rounds)
            ours, theirs = (seconds * 1000 / len(queries) for seconds in (searched, peer_searched))
            print(f"| {kind} | {len(index):,} | {own:.2f} | {peer:.2f} | {ours:.2f} | {theirs:.2f} |")


def _peak(path: str, folder: str, kind: str, queue: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    if kind == "ours":
        build_index(path, folder)
    elif kind == "reading":
        for _ in open_documents(path).batches():
            pass
    else:
        import bm25s

        tokens = bm25s.tokenize([one.text for one in open_documents(path)], show_progress=False)
        bm25s.BM25().index(tokens, show_progress=False)
    queue.put(peak_memory())


def peak_memory() -> float:
    """The most memory that this process has held, in MiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # type: ignore[index]


def memory(sizes: list[int]) -> None:
    """Prints the peak memory of a process that indexes."""
    print("\n| documents | MB of text | reading, MiB | our index, MiB | bm25s, MiB |\n|---|---|---|---|---|")
    context = multiprocessing.get_context("spawn")
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            made = made_collection(size, Path(name))
            found = []
            for kind in ("reading", "ours", "bm25s"):
                queue = context.Queue()
                process = context.Process(target=_peak, args=(str(made), f"{name}/index", kind, queue))
                process.start()
                found.append(queue.get())
                process.join()
            text = made.stat().st_size / 1e6
            print(f"| {size:,} | {text:.0f} | " + " | ".join(f"{value:.0f}" for value in found) + " |", flush=True)


_OURS = """
import json, re, sys, time
from pathlib import Path
documents, asked, folder, do = sys.argv[1:]
from truerank.lexical import Index, Searcher, build_index, model_of, retrieve
begun = time.process_time()
queries = json.loads(Path(asked).read_text())
if do == "index":
    build_index(documents, folder)
    done = 1
else:
    searcher, model = Searcher(Index(folder)), model_of("anserini")
    begun = time.process_time()
    done = sum(retrieve(searcher, model, query, 1000) is not None for query in queries)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([(time.process_time() - begun) / done, peak]))
"""
_BM25S = """
import json, re, sys, time
from pathlib import Path
documents, asked, folder, do = sys.argv[1:]
import bm25s, Stemmer
stop = "a an and are as at be but by for if in into is it no not of on or such that the their then there these they"
tokens = lambda texts: bm25s.tokenize(texts, stopwords=(stop + " this to was will with").split(),
                                      stemmer=Stemmer.Stemmer("porter"), show_progress=False)
queries = json.loads(Path(asked).read_text())
if do == "index":
    begun, done = time.process_time(), 1
    with open(documents) as lines:
        corpus = tokens([json.loads(line)["body"] for line in lines])
    model = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    model.index(corpus, show_progress=False)
    model.save(folder, show_progress=False)
else:
    model = bm25s.BM25.load(folder, mmap=True)
    model.backend = "numba"
    model.activate_numba_scorer()
    model.retrieve(tokens(queries[:2]), k=1000, show_progress=False, n_threads=1)
    begun, done = time.process_time(), len(queries)
    for query in queries:
        model.retrieve(tokens([query]), k=1000, show_progress=False, n_threads=1)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([(time.process_time() - begun) / done, peak]))
"""


def scale(sizes: list[int], peer: str | None, peer_sizes: list[int], folder: str | None) -> None:
    """Prints time, size, memory and queries a second over generated documents of MS MARCO's length."""
    from generated_documents import queries, vocabulary, write_documents

    words = vocabulary()
    print(
        "\n| documents | GB of text | what | processor s | µs a document | index, GB | peak of indexing, MiB ", end=""
    )
    print("| queries a processor second | peak of searching, MiB |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        (place / "queries.json").write_text(json.dumps(queries(200, words)))
        for size in sorted({*sizes, *peer_sizes}):
            made = place / "documents.jsonl"
            text = write_documents(size, made, words)
            ways = [("truerank", sys.executable, _OURS)] * (size in sizes)
            ways += [("bm25s", str(peer), _BM25S)] * (size in peer_sizes and peer is not None)
            for what, python, code in ways:
                index = place / "index"
                call = [python, "-c", code, str(made), str(place / "queries.json"), str(index)]
                (seconds, peak), (each, searching) = (
                    json.loads(subprocess.run([*call, do], check=True, capture_output=True, text=True).stdout)
                    for do in ("index", "search")
                )
                held = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
                row = (f"{size:,}", f"{text / 1e9:.2f}", what, f"{seconds:.0f}", f"{seconds / size * 1e6:.0f}",
                       f"{held / 1e9:.2f}", f"{peak:.0f}", f"{1 / each:.0f}", f"{searching:.0f}")  # fmt: skip
                print("| " + " | ".join(row) + " |", flush=True)
                shutil.rmtree(index)
            made.unlink()


def main() -> None:
    """Runs what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000, help="size of the collection made of queries")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--anserini", metavar="JAR", help="Anserini's jar, to compare with it")
    parser.add_argument("--java", default="java")
    parser.add_argument("--only", choices=["effectiveness", "speed", "memory", "scale"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[20_000, 100_000], help="documents, with --only scale")
    parser.add_argument("--peer", metavar="PYTHON", help="with bm25s, numba and PyStemmer, for --only scale")
    parser.add_argument("--peer-sizes", type=int, nargs="*", default=[20_000])
    parser.add_argument("--folder", help="where there is room for texts and indexes, with --only scale")
    options = parser.parse_args()
    if options.only in (None, "effectiveness"):
        effectiveness(options.anserini, options.java)
    if options.only in (None, "speed"):
        speed(options.documents, options.rounds)
    if options.only == "scale":
        scale(options.sizes, options.peer, options.peer_sizes, options.folder)
    if options.only in (None, "memory"):
        memory([options.documents // 4, options.documents, 4 * options.documents])


if __name__ == "__main__":
    main()
