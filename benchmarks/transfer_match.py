"""Time and memory of `truerank transfer match` over generated collections, at two sizes that are ten times apart.

python benchmarks/transfer_match.py --documents 20000
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from pathlib import Path

from shared_data import peak_memory
from truerank import transfer


def written(folder: Path, documents: int) -> tuple[dict[str, str], str]:
    """Two versions that share nine tenths of their URLs, written otherwise, and judgments of every tenth document."""
    files = {}
    for name, first in (("V1", 0), ("V2", documents // 10)):
        path = folder / f"{name}.jsonl"
        with path.open("w", encoding="utf-8") as stream:
            for number in range(first, first + documents):
                scheme, tail = ("http", "") if name == "V1" else ("https", f"&utm_source={number}#top")
                url = f"{scheme}://WWW.site{number % 9973}.org:80/path/{number}/page.html?q={number % 7}{tail}"
                row = {
                    "doc_id": f"{name}-{number}",
                    "url": url.replace(":80", ":443" if tail else ":80"),
                    "body": "w " * 200,
                }
                stream.write(json.dumps(row) + "\n")
        files[name] = str(path)
    qrels = folder / "judged.qrels"
    qrels.write_text("".join(f"{n} 0 V1-{n} 1\n" for n in range(0, documents, 10)), encoding="utf-8")
    return files, str(qrels)


def measure(documents: int) -> str:
    """Matches once and says how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        files, qrels = written(Path(folder), documents)
        begun = time.process_time()
        found = transfer.match(files, qrels, drop_tracking=True)
        seconds = time.process_time() - begun
    peak = round(peak_memory())
    matched = found.status("V2")["matched"]
    rate = 2 * documents / seconds
    return (
        f"{documents:>9,d} documents a version: {matched:,d} matched, {seconds:.1f} s, {rate:,.0f} a second, {peak} MiB"
    )


def main() -> None:
    """Prints one line for each size; each is measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    documents = parser.parse_args().documents
    context = multiprocessing.get_context("spawn")
    for size in (documents, 10 * documents):
        with context.Pool(1) as pool:
            print(pool.apply(measure, (size,)), flush=True)


if __name__ == "__main__":
    main()
