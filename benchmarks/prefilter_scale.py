"""The prefilter on many generated lines: memory, rate, and its recall of planted pairs by kind.

    python benchmarks/prefilter_scale.py [--sizes 1000000 10000000] [--plants 200] [--seed 1]

The lines are made of the real logs (`recombined`). Among them stand rewordings of robust04's titles, of the kinds and
by the rules of `leakage_verdicts.py`, which another hand wrote than the prefilter and the audit. A planted pair is true
where its cosine in full precision is above the threshold; the recall of a kind is the share of the true pairs that the
audit lists. Each audit is a process of its own; its memory is its own VmHWM, its rate is by its own processor time.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import shared_data  # noqa: F401 - the modules of studies/ can be imported after it
from leakage_verdicts import KINDS
from shared_data import LOGS, log_path, recombined, require_shared, table, topic_path
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.vectors.encoders import open_encoder

TEST = str(topic_path("robust04"))
THRESHOLD = 0.91
_AUDIT = """
import json, re, sys, time
from pathlib import Path
from truerank import leakage
log, test, out = sys.argv[1:]
begun = time.perf_counter()
leakage.audit(log, test, out=out, encoder="packaged", mode="prefilter", threshold=0.91)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([time.process_time(), time.perf_counter() - begun, peak]))
"""


def planted(each: int, seed: int) -> list[tuple[str, str, str]]:
    """(kind, topic id, text) of rewordings of titles."""
    draw = random.Random(seed)
    topics = [(topic.topic_id, normalise(topic.title).lower()) for topic in read_topics(TEST).topics]
    found = []
    for kind, reword in KINDS.items():
        made = 0
        for topic, title in draw.sample(topics * 4, len(topics) * 4):
            words = reword(title.split(), draw)
            if words and words != title.split() and made < each:
                found.append((kind, topic, " ".join(words)))
                made += 1
    return found


def lines(size: int, plants: list[tuple[str, str, str]]) -> Iterator[str]:
    """The log: generated lines, and the plants at even distances."""
    every = [query.text for name in LOGS for query in open_queries(str(log_path(name)))]
    step, waiting = max(1, size // (len(plants) + 1)), iter(enumerate(plants))
    for place, text in enumerate(recombined(every, size)):
        yield f"{place}\t{text}\n"
        if place % step == step - 1 and (plant := next(waiting, None)) is not None:
            yield f"plant-{plant[0]}\t{plant[1][2]}\n"


def true_pairs(plants: list[tuple[str, str, str]]) -> set[int]:
    """The plants whose cosine with their own topic's title is above the threshold."""
    encoder = open_encoder("packaged")
    titles = {topic.topic_id: normalise(topic.title) for topic in read_topics(TEST).topics}
    left = encoder.encode([normalise(text) for _, _, text in plants])
    right = encoder.encode([titles[topic] for _, topic, _ in plants])
    return set(np.flatnonzero(np.einsum("ij,ij->i", left, right) > THRESHOLD).tolist())


def main() -> None:
    """Prints two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--plants", type=int, default=200, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    require_shared()
    plants = planted(given.plants, given.seed)
    true = true_pairs(plants)
    speeds, recalls = [], []
    with tempfile.TemporaryDirectory() as temporary:
        for size in given.sizes:
            log, out = Path(temporary) / f"log-{size}.tsv", Path(temporary) / f"out-{size}"
            with log.open("w", encoding="utf-8") as target:
                target.writelines(lines(size, plants))
            done = subprocess.run(
                [sys.executable, "-c", _AUDIT, str(log), TEST, str(out)], check=True, capture_output=True, text=True
            )
            processor, clock, peak = json.loads(done.stdout.splitlines()[-1])
            log.unlink()
            pairs = pl.read_parquet(out / "candidates.parquet").filter(pl.col("field") == "title")
            # By text: a generated line may be the same text, and of equal texts the first stands for all.
            listed = {(topic, normalise(text)) for topic, text in pairs.select("topic_id", "query_text").iter_rows()}
            told = json.loads((out / "summary.json").read_text())["prefilter"]
            speeds.append(
                (f"{size:,}", f"{processor:.0f}", f"{clock:.0f}", f"{size / processor:,.0f}", f"{peak:,.0f}",
                 f"{told['passed']:,}", told["recall"], f"{told['low']} to {told['high']}")
            )  # fmt: skip
            asked, hit = Counter[str](), Counter[str]()
            for place in true:
                kind, topic, text = plants[place]
                asked[kind] += 1
                hit[kind] += (topic, normalise(text)) in listed
            recalls += [(f"{size:,}", kind, asked[kind], hit[kind], f"{hit[kind] / asked[kind]:.3f}")
                        for kind in KINDS if asked[kind]]  # fmt: skip
            print(speeds[-1], file=sys.stderr, flush=True)
    header = ("lines", "processor s", "clock s", "lines/s of one processor", "peak MB", "encoded", "recall", "95%")
    print(table(header, speeds))
    print("\n" + table(("lines", "kind", "true pairs", "listed", "recall"), recalls))


if __name__ == "__main__":
    main()
