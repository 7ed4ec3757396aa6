"""Where the time of the prefilter goes: reading, distinct texts, trigrams, words, the strata, by processor time.

    python benchmarks/prefilter_speed.py [--lines 146000] [--rounds 3] [--whole]

The lines are the five public query logs, and recombined lines beyond them. `filter` is the whole pass: reading,
distinct texts, trigrams, words and letters, the sample. `--whole` times a whole audit beside it. The topics are the
titles and descriptions of robust04. A second is a second of processor time of this process; "lines/s on two processors"
is what two of them make where nothing else runs and the pass keeps both busy.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from shared_data import LOGS, log_path, recombined, require_shared, table, topic_path
from truerank import leakage
from truerank.audits.leakage.proposals import DistinctQueries, topic_texts
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.text.wording import WordingProbe
from truerank.vectors.prefilter import DEFAULT_CUTS, FilterPlan, TrigramScorer, filter_blocks
from truerank.work.jobs import Job


def written(folder: Path, lines: int) -> Path:
    """A log of so many lines."""
    every = [query.text for name in LOGS for query in open_queries(str(log_path(name)))]
    some = every[:lines] if lines <= len(every) else [*every, *recombined(every, lines - len(every))]
    path = folder / "log.tsv"
    path.write_text("".join(f"{place}\t{text}\n" for place, text in enumerate(some)), encoding="utf-8")
    return path


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Processor time and clock time."""
    begun, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - begun, time.perf_counter() - clock


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=146_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="a whole audit, too")
    parser.add_argument("--profile", action="store_true", help="the functions of the filter pass instead")
    given = parser.parse_args()
    require_shared()
    test = str(topic_path("robust04"))
    topics = topic_texts([read_topics(test)], ("title", "description"))
    texts = tuple(normalise(one.text) for one in topics)
    fields = tuple(one.field for one in topics)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        log = written(folder, given.lines)
        number = iter(range(1000))

        def read() -> None:
            for _ in open_queries(str(log)).batches(1 << 16):
                pass

        def distinct() -> None:
            for _ in DistinctQueries(open_queries(str(log)))():
                pass

        def plan() -> FilterPlan:
            return FilterPlan(texts, fields, DEFAULT_CUTS, WordingProbe(texts))

        def whole_filter() -> None:
            rows = DistinctQueries(open_queries(str(log)))
            filter_blocks(rows, plan(), Job(folder / str(next(number))))

        if given.profile:
            profile = cProfile.Profile()
            profile.runcall(whole_filter)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            return
        normalised = [normalise(query.text) for query in open_queries(str(log))]

        def trigrams() -> None:
            scorer = TrigramScorer(texts, fields, normalised[: 1 << 14])
            for start in range(0, len(normalised), 1 << 16):
                scorer.scores(normalised[start : start + (1 << 16)])

        def words() -> None:
            probe = WordingProbe(texts)
            for start in range(0, len(normalised), 1 << 16):
                probe(normalised[start : start + (1 << 16)])

        def audit() -> None:
            out = folder / str(next(number))
            leakage.audit(str(log), test, out=out, encoder="packaged", mode="prefilter")

        ways: dict[str, Callable[[], None]] = {
            "reading": read,
            "reading, distinct texts": distinct,
            "trigrams": trigrams,
            "words and letters": words,
            "filter (all of these)": whole_filter,
        }
        if given.whole:
            ways["whole audit"] = audit
            audit()
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for name, way in islice((pair for _ in range(given.rounds) for pair in ways.items()), None):
            taken[name].append(seconds(way))
        rows = []
        for name, every in taken.items():
            processor, clock = (statistics.median(column) for column in zip(*every, strict=True))
            rows.append(
                (name, f"{processor:.2f}", f"{clock:.2f}", f"{given.lines / processor:,.0f}",
                 f"{2 * given.lines / processor:,.0f}")
            )  # fmt: skip
    header = ("part", "processor s", "clock s", "lines/s of one processor", "lines/s of two")
    print(table(header, rows))


if __name__ == "__main__":
    main()
