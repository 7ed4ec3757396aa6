"""Up to which severity leaks of the kinds are found that CLEAN may name; on plants of two hands.

    python benchmarks/severity.py [--topics 300] [--missed 3] SET …

SET: `msmarco`, `nq`, `trivia`, `million` (queries of logs), `core17`, `core18` (titles of tracks); by default all. For
each kind and severity one plant of each topic stands among the training queries of one audit. A plant is found where it
is listed with its topic: a set with this leak alone would not be CLEAN. `claimed` says whether the audit's own check
lets CLEAN name the kind in this set.

- *rules*: those of the check itself (`truerank.text.rewordings`), once to four times.
- *second hand*: `second_hand_plants.py`, written before the rules were read; both halves, one severity each.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping

import second_hand_plants as hand
from leakage_sensitivity import damaged
from shared_data import SHARED, log_path, require_shared, table
from truerank import leakage
from truerank.audits.leakage.proposing import topic_texts
from truerank.measures.intervals import exact_interval
from truerank.options import Encoding
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.text.rewordings import SEEN_KINDS, Kind, reword

LOGS = {"msmarco": "msmarco-dev-test", "nq": "nq-dev", "trivia": "trivia-dev", "million": "million-query"}
TRACKS = {"core17": "core17.trec.txt", "core18": "core18.trec.txt"}
#: Words that every text of a log may hold without a leak.
BACKGROUND = 3000
SECOND: Mapping[Kind, tuple[hand.Change, ...]] = {
    "order": (hand.shuffled,), "inflection": (hand.inflected,), "stop words removed": (hand.keywords,),
    "question form": (hand.question,), "typing error": (hand.typed,),
}  # fmt: skip
Plant = tuple[str, Kind, str, str]


def repeated(kind: Kind, text: str, times: int, seed: str) -> str | None:
    """A text after several rewordings of one kind."""
    if kind == "typing error":
        return damaged(kind, text, times, seed)
    made: str | None = text
    for turn in range(times):
        made = None if made is None else reword(kind, made, random.Random(f"{seed} {turn}"))
    return made


def plants(kind: Kind, text: str, at: int) -> Iterator[tuple[str, str, str | None]]:
    """Hand, severity and plant."""
    for times in (
        (1, 2, 3, 4) if kind in ("inflection", "stop words added", "stop words removed", "typing error") else (1,)
    ):
        yield "rules", str(times), repeated(kind, text, times, f"{kind} {at}")
    for change in SECOND.get(kind, ()):
        for side in (0, 1):
            draw = random.Random(f"{kind} {at} {side}")
            yield "second hand", "ab"[side], change(text, draw, side) if len(text) > 3 else None


def topics_of(name: str, most: int) -> tuple[dict[str, str], list[str]]:
    """Topic texts, and a background of queries that are none of them."""
    log = [query.text for query in open_queries(str(log_path(LOGS.get(name, "million-query"))))]
    draw = random.Random(name)
    if name in TRACKS:
        titles = topic_texts([read_topics(str(SHARED / "topics" / TRACKS[name]))], ["title"])
        return {title.topic_id: normalise(title.text) for title in titles}, draw.sample(log, BACKGROUND)
    drawn = draw.sample(sorted({normalise(text) for text in log if len(text.split()) > 1}), most + BACKGROUND)
    return {str(at): text for at, text in enumerate(drawn[:most])}, drawn[most:]


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sets", nargs="*")
    options.add_argument("--topics", type=int, default=300)
    options.add_argument("--missed", type=int, default=0, help="print so many of each kind that are not found")
    given = options.parse_args()
    require_shared()
    total = defaultdict[tuple[str, str, str], list[int]](lambda: [0, 0])
    for name in given.sets or [*LOGS, *TRACKS]:
        topics, background = topics_of(name, given.topics)
        made: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
        for kind in SEEN_KINDS:
            for at, (topic, text) in enumerate(topics.items()):
                for by, severity, plant in plants(kind, text, at):
                    if plant is not None and normalise(plant) != normalise(text):
                        made[plant].append((topic, kind, by, severity))
        result = leakage.audit(
            {f"q{at}": text for at, text in enumerate([*background, *made])}, topics, encoding=Encoding("packaged")
        )
        ((_, test),) = result.summary["tests"].items()
        claimed = {row["kind"] for row in test["sensitivity"] if row["planted"] and row["share"] >= 0.95}
        listed = set(result.candidates.select("topic_id", "query_text").iter_rows())
        counts = defaultdict[tuple[str, str, str], list[int]](lambda: [0, 0])
        missed = defaultdict[str, list[str]](list)
        for plant, uses in made.items():
            for topic, kind, by, severity in uses:
                hit = (topic, plant) in listed
                for one in (counts, *([total] if kind in claimed else [])):
                    one[kind, by, severity][0] += 1
                    one[kind, by, severity][1] += hit
                if not hit:
                    missed[f"{kind}, {by}"].append(f"{topics[topic]} -> {plant}")
        print(f"\n{name}: {len(topics)} topics\n")
        print(table(HEADER, [_row(key, count, key[0] in claimed) for key, count in sorted(counts.items())]), flush=True)
        for key, some in missed.items():
            print("\n".join(f"  {key}: {one}" for one in some[: given.missed]))
    print("\nAll sets in which the check lets CLEAN name the kind:\n")
    print(table(HEADER, [_row(key, count, True) for key, count in sorted(total.items())]))


HEADER = ("kind", "hand", "severity", "plants", "claimed", "not found", "95%")


def _row(key: tuple[str, str, str], count: list[int], claimed: bool) -> tuple[object, ...]:
    planted, found = count
    low, high = exact_interval(planted - found, planted)
    share = f"{1 - found / planted:.3f}"
    return *key, planted, "yes" if claimed else "no", share, f"{low:.3f} to {high:.3f}"


if __name__ == "__main__":
    main()
