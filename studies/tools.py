"""Planted leaks of twelve kinds and five lengths: truerank beside other tools.

    python studies/tools.py develop                 # Vaswani, on which truerank's thresholds were chosen
    python studies/tools.py report --out leaks.json # CACM, BEIR topics, arguments
    python studies/tools.py confirm                 # BRIGHT, TREC topics, questions of two logs: looked at last

Each tool runs in a process of its own, in the environment that runs this script, and as its documentation says; a tool
that is not installed is named as absent. `pip install semhash datatrove[processing] lm_eval spacy` brings them all.

- *exact hashing*: SHA-256 of the words in lower case.
- *13-gram*: any run of 13 words in common, as in the GPT-3 paper (Brown et al., 2020, appendix C).
- *semhash*: `SemHash.from_records(tests).deduplicate(lines)` with its default threshold of 0.9; with the packaged
  encoder, since its default model has to be downloaded (its documentation allows any encoder).
- *datatrove n-gram*: `NGramsDecontIndexer.compute_hashes` and `NGramsDecontFilter`, 12-grams (its default).
- *datatrove MinHash*: signatures, an index of the test side, buckets that look into the index, default configuration.
- *lm_eval*: any 13-gram of `Janitor.normalize_string`, as in `lm_eval.decontamination.decontaminate`.

Recall: planted lines that are named. Precision: planted lines among all that are named; about as many lines are
harmless as are planted. Where a tool says of which test text a line is a copy (truerank does), another one does not
count. Time is that of the processor for both sides together, by training line; memory is the highest of the process
(VmHWM), imports included.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common import require_shared, table
from planted_leaks import HARMLESS, KINDS, LENGTHS, TARGET, Bench, make, with_footers
from truerank.measures.magnitudes import proportion

#: Collections by command. Thresholds were chosen on the first. The second was looked at before their last change, which
#: was made on the first; the third was not.
COLLECTIONS = {
    "develop": ("vaswani",), "report": ("cacm", "beir", "arguana"), "confirm": ("bright", "trec", "logs"),
}  # fmt: skip
#: Places of training lines that are named; where a tool tells of which test texts they are copies, with their ids.
Named = Mapping[int, frozenset[str] | None]


def truerank_words(tests: Mapping[str, str], lines: Sequence[str], encoder: str = "none") -> Named:
    """What `leakage examples` compares documents by."""
    from truerank.audits.leakage.encoders import Models
    from truerank.audits.leakage.training_data.comparison import ComparingTexts, compare_sides, keep_sides
    from truerank.audits.leakage.training_data.results import RULES
    from truerank.audits.leakage.training_data.texts import TestTexts, TrainingTexts, hashed
    from truerank.options import Encoding
    from truerank.sources.distinct import text_hashes
    from truerank.text.normalising import normalise
    from truerank.work.jobs import Job

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_lines(folder / "docs.jsonl", ({"_id": name, "text": text} for name, text in tests.items()))
        write_lines(folder / "topics.jsonl", [{"_id": "none", "text": "no query of this benchmark"}])
        write_lines(folder / "train.jsonl", ({"query": "", "positive": line} for line in lines))
        docs = TestTexts.of(
            str(folder / "topics.jsonl"), None, str(folder / "docs.jsonl"), fields=("title",), rel=1, strict=False
        )
        training = TrainingTexts.of([str(folder / "train.jsonl")], "positive=positive", strict=False)
        ways = ComparingTexts(RULES, encoder, lambda: Models.of(Encoding("packaged", backend="onnx")).encoder)
        job = Job(folder / "work")
        found = compare_sides(keep_sides(docs, training, ways, job), RULES, job).documents
    copies: dict[str, set[str]] = {}
    for test_id, training_id in found.select("test_id", "training_id").iter_rows():
        copies.setdefault(training_id, set()).add(test_id)
    ids = map(hashed, text_hashes([normalise(line) for line in lines]).tolist())
    return {place: frozenset(copies[one]) for place, one in enumerate(ids) if one in copies}


def truerank_encoder(tests: Mapping[str, str], lines: Sequence[str]) -> Named:
    """The same with the packaged encoder, which reads every line."""
    return truerank_words(tests, lines, "all")


def exact_hashing(tests: Mapping[str, str], lines: Sequence[str]) -> Named:
    """The same words in the same order."""

    def key(text: str) -> bytes:
        return hashlib.sha256(" ".join(re.findall(r"\w+", text.lower())).encode()).digest()

    known = {key(text) for text in tests.values()}
    return {place: None for place, line in enumerate(lines) if key(line) in known}


def thirteen_grams(tests: Mapping[str, str], lines: Sequence[str], size: int = 13) -> Named:
    """A run of thirteen words in common."""

    def runs(text: str) -> Iterator[str]:
        every = re.findall(r"\w+", text.lower())
        return (" ".join(every[at : at + size]) for at in range(len(every) - size + 1))

    known = {run for text in tests.values() for run in runs(text)}
    return {place: None for place, line in enumerate(lines) if any(run in known for run in runs(line))}


def semhash(tests: Mapping[str, str], lines: Sequence[str]) -> Named:
    """SemHash with its default threshold."""
    from semhash import SemHash

    from truerank.vectors.encoders import open_encoder

    class Packaged:
        """The packaged encoder as SemHash wants one."""

        def __init__(self) -> None:
            self._encoder = open_encoder("packaged", backend="onnx")

        def encode(self, inputs: Any, **_: Any) -> Any:
            return self._encoder.encode(list(inputs))

    found = SemHash.from_records(list(tests.values()), model=Packaged()).deduplicate(list(lines))
    kept = Counter(found.selected)
    named = {}
    for place, line in enumerate(lines):
        if kept[line]:
            kept[line] -= 1
        else:
            named[place] = None
    return named


def datatrove_ngrams(tests: Mapping[str, str], lines: Sequence[str]) -> Named:
    """Decontamination by 12-grams."""
    import numpy as np
    from datatrove.data import Document
    from datatrove.pipeline.decont.n_grams import NGramsDecontFilter, NGramsDecontIndexer

    with tempfile.TemporaryDirectory() as folder:
        # The step that writes the index asks for lighteval, which loads tasks; its hashes do not need it.
        NGramsDecontIndexer._requires_dependencies = []
        indexer = NGramsDecontIndexer(folder)
        hashes = sorted({one for text in tests.values() for one in indexer.compute_hashes(text)})
        np.array(hashes, dtype=indexer.config.hash_config.np_descr).tofile(f"{folder}/tests.index.hashes")
        sieve = NGramsDecontFilter(folder)
        return {
            place: None
            for place, line in enumerate(lines)
            if sieve.filter(Document(text=line, id=str(place))) is not True
        }


def datatrove_minhash(tests: Mapping[str, str], lines: Sequence[str]) -> Named:
    """MinHash signatures, against an index of the test side."""
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import (
        SENTINEL,
        MinhashBuildIndex,
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupSignature,
    )

    config = MinhashConfig()
    with tempfile.TemporaryDirectory() as folder:
        for name, texts in (("tests", list(tests.values())), ("lines", list(lines))):
            documents = (Document(text=text, id=str(place)) for place, text in enumerate(texts))
            MinhashDedupSignature(f"{folder}/{name}", config).run(documents)
        for bucket in range(config.num_buckets):
            MinhashBuildIndex(f"{folder}/tests", f"{folder}/index", "tests", config).run(
                bucket=bucket, world_size=config.num_buckets
            )
        for bucket in range(config.num_buckets):
            MinhashDedupBuckets(f"{folder}/lines", f"{folder}/found", f"{folder}/index", config).run(
                rank=bucket, world_size=config.num_buckets
            )
        named: dict[int, None] = {}
        for file in sorted(Path(f"{folder}/found").glob("*.dups")):
            for first, _, _, place in struct.iter_unpack("<4I", file.read_bytes()):
                if first == SENTINEL:
                    named[place] = None
        return named


def lm_eval(tests: Mapping[str, str], lines: Sequence[str]) -> Named:
    """The decontamination of the language model evaluation harness."""
    found = importlib.util.find_spec("lm_eval")
    if found is None or found.origin is None:
        raise ImportError("lm_eval")
    # Its package loads model libraries that this part does not need.
    path = Path(found.origin).parent / "decontamination" / "janitor.py"
    spec = importlib.util.spec_from_file_location("janitor", path)
    if spec is None or spec.loader is None:
        raise ImportError("lm_eval.decontamination")
    module = importlib.util.module_from_spec(spec)
    with Path(os.devnull).open("w") as quiet:
        sys.stdout, sys.stderr, kept = quiet, quiet, (sys.stdout, sys.stderr)
        spec.loader.exec_module(module)
        sys.stdout, sys.stderr = kept
    janitor = module.Janitor()
    for text in tests.values():
        janitor.register_contaminant_python(text)
    dirt, size = janitor.dirt_ngrams, janitor.ngram_n
    return {
        place: None
        for place, line in enumerate(lines)
        if any(run in dirt for run in module.word_ngrams(janitor.normalize_string(line), size))
    }


TOOLS: Mapping[str, Callable[[Mapping[str, str], Sequence[str]], Named]] = {
    "truerank": truerank_words,
    "truerank + encoder": truerank_encoder,
    "exact hashing": exact_hashing,
    "13-gram": thirteen_grams,
    "semhash": semhash,
    "datatrove n-gram": datatrove_ngrams,
    "datatrove MinHash": datatrove_minhash,
    "lm_eval": lm_eval,
}


def write_lines(path: Path, rows: Any) -> None:
    """Writes JSON lines."""
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def highest_memory() -> float:
    """The highest memory of this process so far, in MiB."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else float("nan")


def run_alone(tool: str, bench: Path, result: Path) -> None:
    """Runs one tool in this process and writes what it named, and what that cost."""
    tests, lines = pickle.loads(bench.read_bytes())
    try:
        started = time.process_time()
        named = TOOLS[tool](tests, lines)
        cost = time.process_time() - started
    except ImportError as error:
        result.write_bytes(pickle.dumps({"absent": str(error)}))
        return
    result.write_bytes(pickle.dumps({"named": dict(named), "seconds": cost, "memory": highest_memory()}))


def measured(tool: str, bench: Bench) -> dict[str, Any] | None:
    """What one tool finds in a process of its own; None where it is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "bench.pickle", Path(folder) / "result.pickle"
        given.write_bytes(pickle.dumps((with_footers(bench.tests), [line.text for line in bench.lines])))
        command = [sys.executable, __file__, "alone", "--tool", tool, "--bench", str(given), "--result", str(result)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if not result.is_file():
            print(f"{tool} failed: {done.stderr.strip()[-600:]}", file=sys.stderr)
            return None
        found: dict[str, Any] = pickle.loads(result.read_bytes())
    if "absent" in found:
        print(f"{tool}: not installed ({found['absent']})", file=sys.stderr)
        return None
    named: Named = found.pop("named")
    hits: Counter[tuple[str, str]] = Counter()
    for place, line in enumerate(bench.lines):
        copies = named.get(place, frozenset())
        if place in named and (copies is None or not line.test or line.test in copies):
            hits[line.kind, line.length] += 1
    return {**found, "hits": hits, "microseconds": 1e6 * found["seconds"] / len(bench.lines)}


def share(found: int, of: int) -> str:
    """A share with its 95% interval."""
    if not of:
        return "—"
    one = proportion(found, of)
    return f"{one.share:.2f} ({one.low:.2f}–{one.high:.2f})"


def shown(bench: Bench, results: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """The tables."""
    planted = Counter((line.kind, line.length) for line in bench.lines)
    harmless = sum(planted[kind, length] for kind in HARMLESS for length in LENGTHS)
    leaks = sum(planted.values()) - harmless
    yield f"{len(bench.tests):,} test texts, {leaks:,} planted and {harmless:,} harmless lines\n"
    rows = []
    for tool, result in results.items():
        hits = result["hits"]
        true = sum(hits[kind, length] for kind in KINDS for length in LENGTHS)
        false, shared = (
            sum(hits[kind, one] for kind in kinds for one in LENGTHS) for kinds in (HARMLESS, HARMLESS[3:])
        )
        wanted = [sum(planted[kind, length] for length in LENGTHS) for kind in TARGET]
        found = [sum(hits[kind, length] for length in LENGTHS) for kind in TARGET]
        lowest = min(one / max(1, of) for one, of in zip(found, wanted, strict=True))
        cost = f"{result['microseconds']:,.0f}", f"{result['memory']:,.0f}"
        precisions = share(true, true + false), share(true, true + false - shared)
        rows.append((tool, share(sum(found), sum(wanted)), f"{lowest:.2f}", *precisions, *cost))
    header = ("tool", "recall, target kinds", "lowest of them", "precision", "without footers", "µs a line", "peak MiB")
    yield table(header, rows) + "\n"
    for title, kinds in (("recall", KINDS), ("false alarms", HARMLESS)):
        yield f"### {title.capitalize()} by kind, all lengths\n"
        rows = [(kind, *(_all_lengths(planted, result["hits"], kind) for result in results.values())) for kind in kinds]
        yield table(("kind", *results), rows) + "\n"
    for tool in [name for name in results if name.startswith("truerank")]:
        yield f"### {tool}: found by kind and length in words\n"
        hits = results[tool]["hits"]
        rows = [
            (kind, *(share(hits[kind, length], planted[kind, length]) for length in LENGTHS))
            for kind in (*KINDS, *HARMLESS)
        ]
        yield table(("kind", *LENGTHS), rows) + "\n"


def _all_lengths(planted: Counter[tuple[str, str]], hits: Counter[tuple[str, str]], kind: str) -> str:
    return share(sum(hits[kind, one] for one in LENGTHS), sum(planted[kind, one] for one in LENGTHS))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, collections in COLLECTIONS.items():
        one = commands.add_parser(name)
        one.add_argument("--only", nargs="*", default=list(TOOLS), help="tools")
        one.add_argument("--per-cell", type=int, default=100, help="plants for each kind and length")
        one.add_argument("--collection", nargs="*", default=list(collections))
        one.add_argument("--out", type=Path)
    alone = commands.add_parser("alone")
    for option in ("tool", "bench", "result"):
        alone.add_argument(f"--{option}", required=True)
    given = parser.parse_args()
    if given.command == "alone":
        run_alone(given.tool, Path(given.bench), Path(given.result))
        return
    require_shared()
    bench = make(given.collection, given.per_cell)
    results = {tool: found for tool in given.only if (found := measured(tool, bench)) is not None}
    print(f"collections: {', '.join(given.collection)}\n")
    for part in shown(bench, results):
        print(part)
    if given.out is not None:
        plain = {
            tool: {**result, "hits": [[*cell, count] for cell, count in sorted(result["hits"].items())]}
            for tool, result in results.items()
        }
        given.out.write_text(json.dumps({"collections": given.collection, "results": plain}, indent=1))


if __name__ == "__main__":
    main()
