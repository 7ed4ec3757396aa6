"""What the leakage audit can see: the case of the Titanic, the sensitivity table of real topics, and what both cost.

    python studies/leakage_sensitivity.py titanic
    python studies/leakage_sensitivity.py table robust04.trec.txt beir/nfcorpus.tsv.gz
    python studies/leakage_sensitivity.py cost
    python studies/leakage_sensitivity.py passes FILE…
    python studies/leakage_sensitivity.py curve FILE…

Processor time counts all threads of this process. The cost of the check is given as a share of an exhaustive audit of
100,000 lines, extrapolated from one of 12,000; the cost of words and letters as a share of that audit, in pairs of runs
with and without them. `passes` checks the first topics of each file once in full precision and once with a first pass
whose error a search of real queries has shown, as an audit does, and counts the figures that differ. `curve` damages
one to four words of the first topics of each file, and prints the share of each severity that words and letters find,
without the encoder.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from common import SHARED, log_path, require_shared, table
from truerank.audits.leakage import audit
from truerank.audits.leakage.proposals import topic_texts
from truerank.audits.leakage.sensitivity import check
from truerank.options import Encoding
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.text.rewordings import Kind, reword
from truerank.text.wording import EVIDENCE, WordingProbe
from truerank.text.words import words
from truerank.vectors.encoders import Encoder, EncoderSpec, Vectors, open_spec
from truerank.vectors.encoders.speed import first_passes, spec_of_way, usual_first_pass
from truerank.vectors.neighbours import Rows
from truerank.vectors.search import SearchPlan, search
from truerank.work.jobs import Job

LINES = 12_000
WHOLE = 100_000
ROUNDS = 3
MOST_TOPICS = 100
MOST_CURVED = 300
CURVED: tuple[Kind, ...] = ("typing error", "sign for a letter", "spelling by sound")
FIELDS = ("title", "description")


def titanic() -> None:
    """One topic whose leak lies below the threshold, alone and beside a second test set."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "log.tsv").write_text("1\twhere is the sinking titanic\n2\tbest pizza in town\n")
        (folder / "titanic.tsv").write_text("1\thow did the titanic sink\n")
        (folder / "other.tsv").write_text("1\train forest loss\n2\thubble telescope achievements\n")
        for tests in (("titanic",), ("titanic", "other")):
            paths = [str(folder / f"{test}.tsv") for test in tests]
            print(audit([str(folder / "log.tsv")], paths, encoding=Encoding(encoder="packaged")))


def log_rows(lines: int) -> Rows:
    """The first distinct lines of a real log, as a stream that can be opened again."""
    texts = dict.fromkeys(normalise(query.text) for query in open_queries(str(log_path("million-query"))))
    kept = [text for text in islice(texts, lines) if text]
    return lambda: [(place, str(place), text, text) for place, text in enumerate(kept)]


def plan_for(texts: list[str]) -> SearchPlan:
    """The plan of an exhaustive audit with the packaged encoder."""
    exact = EncoderSpec("packaged")
    encoder = open_spec(exact)
    spec = encoder.spec  # type: ignore[attr-defined]
    screen = spec_of_way(usual_first_pass(spec).way, spec, first_passes(spec))
    vectors = encoder.encode(texts)
    return SearchPlan(
        open_exact=lambda: encoder,
        open_screen=None if screen == spec else partial(_kept, open_spec(screen)),
        topic_vectors=lambda: vectors,
        floor=0.91,
        top_k=100,
        probe=WordingProbe(texts, inside=True),
    )


def _kept(encoder):  # type: ignore[no-untyped-def]
    return encoder


def seconds(plan: SearchPlan, rows: Rows) -> float:
    """Processor time of one search."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        search(rows, plan, Job(Path(folder)))
        return time.process_time() - begun


def topics_of(name: str) -> list[str]:
    """The normalised texts of a topic file."""
    return [normalise(text.text) for text in topic_texts([read_topics(str(SHARED / "topics" / name))], FIELDS)]


def cost() -> None:
    """Words and letters as a share of an exhaustive audit."""
    plan, rows = plan_for(topics_of("robust04.trec.txt")), log_rows(LINES)
    without = replace(plan, probe=None)
    seconds(plan, log_rows(3000))
    pairs = [(seconds(without, rows), seconds(plan, rows)) for _ in range(ROUNDS)]
    texts = [row[3] for row in rows()]
    begun = time.process_time()
    WordingProbe(topics_of("robust04.trec.txt"))(texts)
    alone = time.process_time() - begun
    shares = [f"{with_ / bare - 1:+.1%}" for bare, with_ in pairs]
    print(f"{LINES:,d} lines, robust04: without {[round(bare, 2) for bare, _ in pairs]} s, added {', '.join(shares)}")
    print(f"words and letters alone: {alone:.2f} s, {alone / min(bare for bare, _ in pairs):.1%} of an audit without")


def tables(names: list[str]) -> None:
    """The sensitivity table of topic files, and its cost."""
    for name in names:
        texts = topic_texts([read_topics(str(SHARED / "topics" / name))], FIELDS)
        plan = plan_for([normalise(text.text) for text in texts])
        audit_time = seconds(plan, log_rows(LINES)) * WHOLE / LINES
        begun = time.process_time()
        found = next(iter(check(texts, plan).values()))
        spent = time.process_time() - begun
        header = ("field", "kind", "planted", "found", "share", "95% interval", *EVIDENCE)
        rows = [
            (
                row["field"], row["kind"], row["planted"], row["found"], f"{row['share']:.2f}",
                f"{row['low']:.2f} to {row['high']:.2f}", *(row["by"][by] for by in EVIDENCE),
            )
            for row in found["kinds"]
            if row["share"] is not None
        ]  # fmt: skip
        print(f"{name}\n{table(header, rows)}")
        for field, other in found["other_topics"].items():
            print(f"another topic proposed, {field}: {other['proposed']} of {other['texts']}, by {other['by']}")
        print(f"check: {spent:.1f} s, {spent / audit_time:.1%} of an audit of {WHOLE:,d} lines ({audit_time:.0f} s)\n")


def passes(names: list[str]) -> None:
    """The figures of the check with a first pass, against those in full precision."""
    rows = []
    for name in names:
        topics = read_topics(str(SHARED / "topics" / name))
        texts = topic_texts([replace(topics, topics=topics.topics[:MOST_TOPICS])], FIELDS)
        # Without words and letters, all that is planted goes through the encoder.
        screened = replace(plan_for([normalise(text.text) for text in texts]), probe=None)
        with tempfile.TemporaryDirectory() as folder:
            screened = screened.after([search(log_rows(3000), screened, Job(Path(folder)))])
        again: list[str] = []
        counted = replace(screened, open_exact=partial(CountingEncoder, screened.open_exact(), again))
        taken, every = [], []
        for plan in (replace(screened, open_screen=None), counted):
            begun = time.process_time()
            every.append(check(texts, plan))
            taken.append(time.process_time() - begun)
        whole, found = (next(iter(each.values()))["kinds"] for each in every)
        planted = sum(row["planted"] for row in whole)
        rows.append(
            (name, len(texts), planted, sum(one != other for one, other in zip(whole, found, strict=True)), len(whole),
             len(again), screened.error, *(f"{seconds:.1f}" for seconds in taken))
        )  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    print(table(("topics", "texts", "planted", "figures that differ", "figures", "encoded again", "error allowed for",
                 "full precision, s", "with a first pass, s"), rows))  # fmt: skip


class CountingEncoder:
    """An encoder that notes what it encodes."""

    def __init__(self, encoder: Encoder, noted: list[str]) -> None:
        self._encoder, self._noted = encoder, noted

    def encode(self, texts: Sequence[str]) -> Vectors:
        """As the encoder."""
        self._noted += texts
        return self._encoder.encode(texts)


def damaged(kind: Kind, text: str, times: int, seed: str) -> str | None:
    """A text after several rewordings of one kind, each in a word that is still whole; None where it has too few."""
    made = list(words(text))
    touched: set[int] = set()
    for turn in range(times):
        open_ = [word if at not in touched else "-" for at, word in enumerate(made)]
        if (again := reword(kind, " ".join(word for word in open_ if word != "-"), Random(f"{seed} {turn}"))) is None:
            return None
        free = [at for at in range(len(made)) if at not in touched]
        for at, word in zip(free, again.split(), strict=False):
            if made[at] != word:
                touched.add(at)
                made[at] = word
    return " ".join(made)


def curve(names: list[str]) -> None:
    """The shares found by severity."""
    rows = []
    for name in names:
        texts = [normalise(text) for text in topics_of(name)[:MOST_CURVED]]
        probe = WordingProbe(texts)
        for kind in CURVED:
            for times in range(1, 5):
                made = [damaged(kind, text, times, f"{kind} {at}") for at, text in enumerate(texts)]
                planted = [(at, text) for at, text in enumerate(made) if text is not None]
                found = {(place, number) for place, number, _ in probe([text for _, text in planted])}
                seen = sum((place, at) in found for place, (at, _) in enumerate(planted))
                rows.append((name, kind, times, f"{seen} of {len(planted)}", f"{seen / max(1, len(planted)):.2f}"))
    print(table(("topics", "kind", "words damaged", "found", "share"), rows))


def main() -> None:
    """Prints what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("titanic", "table", "cost", "passes", "curve"))
    parser.add_argument("topics", nargs="*")
    arguments = parser.parse_args()
    if arguments.what == "titanic":
        titanic()
        return
    require_shared()
    if arguments.what == "cost":
        cost()
    elif arguments.what == "passes":
        passes(arguments.topics)
    elif arguments.what == "curve":
        curve(arguments.topics)
    else:
        tables(arguments.topics)


if __name__ == "__main__":
    main()
