"""Up to which severity leaks of the kinds are found that CLEAN may name; on plants of three hands.

    python studies/severity.py queries [--topics 300] [--missed 3] [SET …]
    python studies/severity.py documents [--missed 3]

SET: `msmarco`, `nq`, `trivia`, `million` (queries of logs), `core17`, `core18` (titles of tracks); by default all. For
each kind and severity one plant of each topic stands among the training queries of one audit. A plant is found where it
is listed with its topic: a set with this leak alone would not be CLEAN. `claimed` says whether the audit's own check
lets CLEAN name the kind in this set.

Documents: abstracts of Vaswani and CACM, one copy each among the positives of training examples, by severity.

- *rules*: those of the check itself (`truerank.text.rewordings`), once to four times.
- *third hand*: `hand_severity.py`, written without sight of the rules, four severities each.
- *second hand*: `second_hand_plants.py`, written before the rules were read; both halves, one severity each.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import hand_severity
import second_hand_plants as hand
from common import SHARED, log_path, require_shared, table
from hand_collection import read_texts
from hand_texts import write_lines
from leakage_sensitivity import damaged
from truerank import leakage
from truerank.audits.leakage.proposals import topic_texts
from truerank.audits.leakage.training_data.results import ExampleOptions
from truerank.measures.magnitudes import exact_interval
from truerank.options import Encoding
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.text.rewordings import SEEN_KINDS, Kind, reword

LOGS = {"msmarco": "msmarco-dev-test", "nq": "nq-dev", "trivia": "trivia-dev", "million": "million-query"}
TRACKS = {"core17": "core17.trec.txt", "core18": "core18.trec.txt"}
#: Words that every text of a log may hold without a leak.
BACKGROUND = 3000
ROUNDS = 4
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
    for place, change in enumerate(hand_severity.KINDS[kind], start=1):
        yield "third hand", str(place), change(text, random.Random(f"{kind} {at} {place}"))
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
    options.add_argument("what", choices=("queries", "documents"))
    options.add_argument("sets", nargs="*")
    options.add_argument("--topics", type=int, default=300)
    options.add_argument("--missed", type=int, default=0, help="print so many of each kind that are not found")
    given = options.parse_args()
    require_shared()
    if given.what == "documents":
        documents(given.missed)
        return
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


def sentences_changed(count: int) -> hand.Change:
    """So many sentences exchanged, of texts with at least twice as many."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        if len(hand.sentences(text) or ()) < 2 * count:
            return None
        made: str | None = text
        for _ in range(count):
            made = None if made is None else hand.one_sentence("changed")(made, draw, side)
        return made

    return change


def part(share: float) -> hand.Change:
    """A run of a share of the words, of at least 16."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        every = text.split()
        size = round(share * len(every))
        start = draw.randrange(len(every) - size + 1)
        return " ".join(every[start : start + size]) if size >= 16 else None

    return change


def padded(times: int) -> hand.Change:
    """Boilerplate around the text, so many times."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        notes = [draw.choice(hand.BOILERPLATE[side]) for _ in range(2 * times)]
        return "\n".join((*notes[:times], text, *notes[times:]))

    return change


def mistyped(every: int) -> hand.Change:
    """A wrong letter in so many."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        return "".join(draw.choice("etaoin") if sign.isalpha() and draw.random() < 1 / every else sign for sign in text)

    return change


#: By kind: severity and change. What CLEAN may name is told by the check of each audit.
DOCUMENTS: Mapping[str, Mapping[str, hand.Change]] = {
    "excerpt": {f"{share:.0%}": part(share) for share in (0.5, 0.25, 0.125, 0.0625)},
    "sentence changed": {str(count): sentences_changed(count) for count in (1, 2, 3, 4)},
    "boilerplate added": {str(2 * times): padded(times) for times in (1, 2, 4, 8)},
    "OCR damage": {f"{rate:.0%}": hand.ocr(rate) for rate in (0.01, 0.02, 0.04, 0.08)},
    "typing errors": {f"1 in {every}": mistyped(every) for every in (45, 20, 10, 5)},
}


def documents(missed: int) -> None:
    """The curves of documents; in one audit a document has one copy, and in the next one of the next severity."""
    header, rows = ("collection", "kind", "severity", "copies", "claimed", "not found", "95%"), []
    cells = [(kind, severity, change) for kind, some in DOCUMENTS.items() for severity, change in some.items()]
    for name in ("vaswani", "cacm"):
        texts = [text for text in read_texts(name)[1].values() if 40 <= len(text.split()) <= 300]
        drawn = random.Random(name).sample(texts, min(len(texts), 1500))
        tests, others = {f"d{at}": " ".join(text.split()) for at, text in enumerate(drawn[:900])}, drawn[900:]
        counts = {cell[:2]: [0, 0, 0] for cell in cells}
        for turn in range(ROUNDS):
            made: dict[str, str] = {}
            of: dict[str, tuple[str, str]] = {}
            for at, (doc, text) in enumerate(tests.items()):
                kind, severity, change = cells[(at + turn) % len(cells)]
                if copy := change(text, random.Random(f"{kind} {severity} {at}"), at % 2):
                    made[doc], of[doc] = copy, (kind, severity)
            pairs, claimed = examined(tests, [*others, *made.values()])
            for doc, copy in made.items():
                lost = (doc, normalise(copy)) not in pairs
                count = counts[of[doc]]
                for place, more in enumerate((1, lost, of[doc][0] in claimed)):
                    count[place] += more
                if lost and missed and count[1] <= missed:
                    print(f"--- {of[doc]}\n{tests[doc]}\n{copy}")
        for (kind, severity), (copies, lost_copies, said) in counts.items():
            if copies:
                low, high = exact_interval(lost_copies, copies)
                row = name, kind, severity, copies, f"{said / copies:.2f}", f"{lost_copies / copies:.3f}"
                rows.append((*row, f"{low:.3f} to {high:.3f}"))
    print(table(header, rows))


def examined(tests: Mapping[str, str], train: list[str]) -> tuple[set[tuple[str, str]], set[str]]:
    """Pairs of a document and a training text that are named, and the changes that CLEAN may name."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "topics.tsv").write_text("".join(f"q{at}\tzz{at} yy{at}\n" for at in range(len(tests))))
        (folder / "test.qrels").write_text("".join(f"q{at} 0 {doc} 1\n" for at, doc in enumerate(tests)))
        docs = write_lines(folder / "docs.jsonl", ({"_id": key, "text": text} for key, text in tests.items()))
        examples = write_lines(
            folder / "train.jsonl", ({"query": f"xx{at} ww{at}", "positive": text} for at, text in enumerate(train))
        )
        options = ExampleOptions(qrels=str(folder / "test.qrels"), docs=docs, sample=100)
        result = leakage.examples(examples, str(folder / "topics.tsv"), options=options, encoding=Encoding("packaged"))
    rows = result.leaks.iter_rows(named=True)
    pairs = {(row["doc_id"], normalise(row["training_text"])) for row in rows if row["kind"] == "document-corpus"}
    (kind,) = (one for one in result.kinds if one.kind == "document-corpus")
    return pairs, {one["kind"] for one in kind.sensitivity if one["planted"] and (one["share"] or 0) >= 0.95}


HEADER = ("kind", "hand", "severity", "plants", "claimed", "not found", "95%")


def _row(key: tuple[str, str, str], count: list[int], claimed: bool) -> tuple[object, ...]:
    planted, found = count
    low, high = exact_interval(planted - found, planted)
    share = f"{1 - found / planted:.3f}"
    return *key, planted, "yes" if claimed else "no", share, f"{low:.3f} to {high:.3f}"


if __name__ == "__main__":
    main()
