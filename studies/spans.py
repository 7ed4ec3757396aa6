"""Judgments of chunks, carried to the chunks of another cutting: how many come back, and how many are wrong.

    python studies/spans.py [--sets cacm vaswani] [--seed 1] [--overlaps .5 .6 .7 .8 .9] [--pieces judge relevant]

In each relevant document of 40 words or more, a stretch of 10 to 25 words is what answers the topic. A chunk that holds
80% of that stretch is relevant, and every other chunk of a judged document is not. Documents are cut in chunks of 60
words, of 100 words that overlap by 20, and into sentences that are joined up to 40 words; CACM's and Vaswani's
documents are short, so that ten of one collection are joined to one. The judgments of each cutting are carried to the
two others: by offsets, by text, and by text of which 2% of the words have changed. Where the answers are known, they
are what was judged, and go to each cutting (`answers`). Printed: relevant chunks of the new
cutting that come back, that are doubtful and listed for judging, and that are lost; carried judgments that are wrong;
and chunks with an answer that crosses a border of the judged cutting, of which its judgments know nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import permutations, product
from pathlib import Path

from common import require_shared, table
from hand_collection import read_texts
from truerank.audits.transfer import Route, carry
from truerank.audits.transfer.matching.spans import Pieces

Chunk = tuple[str, int, int]
Stretch = tuple[int, int]
#: By topic and chunk of a judged document, the stretches that it holds.
Held = dict[str, dict[str, set[tuple[str, int, int]]]]
_TOGETHER = 10


def words_of(text: str) -> list[tuple[int, int]]:
    """Where the words of a text lie."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def cut(text: str, how: str) -> Iterator[tuple[int, int]]:
    """Chunks as places of the first word and behind the last one."""
    words = words_of(text)
    if how == "sentences":
        start = 0
        for at, (_, end) in enumerate(words):
            if at + 1 == len(words) or (text[end - 1] in ".?!" and at + 1 - start >= 20) or at + 1 - start >= 40:
                yield start, at + 1
                start = at + 1
        return
    size, step = (60, 60) if how == "60 words" else (100, 80)
    for start in range(0, len(words), step):
        yield start, min(len(words), start + size)
        if start + size >= len(words):
            return


CUTTINGS = ("60 words", "100 words, 20 shared", "sentences")


def written(folder: Path, name: str, texts: Mapping[str, str], how: str, *, offsets: bool, changed: float,
            rng: random.Random) -> tuple[str, dict[str, Chunk]]:  # fmt: skip
    """A file of chunks, and where each of them lies."""
    places: dict[str, Chunk] = {}
    lines = []
    for doc, text in texts.items():
        words = words_of(text)
        for first, last in cut(text, how):
            one = f"{name}-{len(places)}"
            start, end = words[first][0], words[last - 1][1]
            own = [text[begin:stop] for begin, stop in words[first:last]]
            own = [word if rng.random() >= changed else word[::-1] + "x" for word in own]
            row = {"chunk_id": one, "text": " ".join(own)}
            lines.append(json.dumps({**row, "doc_id": doc, "start": start, "end": end} if offsets else row))
            places[one] = (doc, first, last)
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return str(path), places


def judged(places: Mapping[str, Chunk], gold: Mapping[tuple[str, str], list[Stretch]]) -> Held:
    """The stretches that chunks of the documents with an answer hold, by topic."""
    by_doc: dict[str, list[tuple[str, int, int]]] = {}
    for one, (doc, first, last) in places.items():
        by_doc.setdefault(doc, []).append((one, first, last))
    found: Held = {}
    for (topic, doc), spans in gold.items():
        for one, first, last in by_doc[doc]:
            held = {
                (doc, *span) for span in spans if min(last, span[1]) - max(first, span[0]) >= 0.8 * (span[1] - span[0])
            }
            found.setdefault(topic, {})[one] = held
    return found


def joined(name: str, rng: random.Random) -> tuple[dict[str, str], dict[tuple[str, str], list[Stretch]]]:
    """Ten documents of a collection as one, and the stretches that answer each topic, by topic and document."""
    _, docs, judgments = read_texts(name)
    names = list(docs)
    texts, home = dict[str, str](), dict[str, tuple[str, int]]()
    for number, start in enumerate(range(0, len(names), _TOGETHER)):
        before = 0
        for doc in names[start : start + _TOGETHER]:
            home[doc] = (f"D{number}", before)
            before += len(docs[doc].split())
        texts[f"D{number}"] = " ".join(docs[doc] for doc in names[start : start + _TOGETHER])
    gold: dict[tuple[str, str], list[Stretch]] = {}
    for topic, doc, grade in judgments:
        size = len(docs[doc].split()) if doc in docs else 0
        if grade > 0 and size >= 40:
            length = rng.randint(10, 25)
            start = rng.randrange(size - length) + home[doc][1]
            gold.setdefault((topic, home[doc][0]), []).append((start, start + length))
    return texts, gold


def answers(
    folder: Path, texts: Mapping[str, str], gold: Mapping[tuple[str, str], list[Stretch]], *, offsets: bool
) -> tuple[str, Held]:
    """A file of the stretches that answer topics, each judged relevant to its own."""
    held: Held = {}
    lines = []
    for (topic, doc), spans in gold.items():
        words = words_of(texts[doc])
        for first, last in spans:
            start, end = words[first][0], words[last - 1][1]
            one = f"a-{len(lines)}"
            row = {"chunk_id": one, "text": texts[doc][start:end]}
            lines.append(json.dumps({**row, "doc_id": doc, "start": start, "end": end} if offsets else row))
            held.setdefault(topic, {})[one] = {(doc, first, last)}
    path = folder / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return str(path), held


def counted(old: tuple[str, Held], new: tuple[str, Held], least: float, pieces: Pieces, folder: Path) -> Counter[str]:
    """What becomes of the chunks of a cutting, by the judgments of another one."""
    lines = (f"{t} 0 {one} {int(bool(held))}\n" for t, own in old[1].items() for one, held in own.items())
    (folder / "old.qrels").write_text("".join(lines))
    found = carry(str(folder / "old.qrels"), route=Route(spans=old[0], docs=new[0], min_overlap=least, pieces=pieces))
    carried = {(topic, doc): grade for topic, doc, grade in found.qrels.iter_rows()}
    doubtful = set() if found.doubtful is None else {row[:2] for row in found.doubtful.iter_rows()}
    counts: Counter[str] = Counter()
    for topic, own in new[1].items():
        known = set().union(*old[1].get(topic, {}).values())
        for one, held in own.items():
            said = carried.get((topic, one))
            state = str(said) if said is not None else "doubtful" if (topic, one) in doubtful else "lost"
            counts[f"{'unknown' if held and not held & known else int(bool(held))} {state}"] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["cacm", "vaswani"], choices=("cacm", "vaswani"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--overlaps", nargs="+", type=float, default=[0.8])
    parser.add_argument("--pieces", nargs="+", default=["judge", "relevant"], choices=("judge", "relevant"))
    require_shared()
    given = parser.parse_args()
    rows = []
    for name in given.sets:
        rng = random.Random(given.seed)
        texts, gold = joined(name, rng)
        for way, offsets, changed in (("offsets", True, 0.0), ("text", False, 0.0), ("text, 2% changed", False, 0.02)):
            with tempfile.TemporaryDirectory() as folder:
                made = [
                    written(Path(folder), f"c{at}", texts, how, offsets=offsets, changed=at and changed, rng=rng)
                    for at, how in enumerate(CUTTINGS)
                ]
                held = [(path, judged(places, gold)) for path, places in made]
                known = answers(Path(folder), texts, gold, offsets=offsets)
                kinds: list[tuple[str, Pieces, list[tuple[tuple[str, Held], tuple[str, Held]]]]] = [
                    *(("chunks", pieces, list(permutations(held, 2))) for pieces in given.pieces),
                    ("answers", "judge", [(known, one) for one in held]),
                ]
                for least, (judged_are, pieces, pairs) in product(given.overlaps, kinds):
                    counts: Counter[str] = Counter()
                    for old, new in pairs:
                        counts += counted(old, new, least, pieces, Path(folder))
                    relevant = [counts[f"1 {state}"] for state in ("1", "doubtful", "lost", "0")]
                    others = [counts[f"0 {state}"] for state in ("0", "doubtful", "lost", "1")]
                    unknown = sum(count for key, count in counts.items() if key.startswith("unknown"))
                    said = counts["1 1"] + counts["unknown 1"] + counts["0 1"]
                    rows.append((
                        name, way, judged_are, pieces, least,
                        f"{sum(relevant):,d}", *(f"{one / sum(relevant):.1%}" for one in relevant),
                        f"{counts['0 1'] / max(1, said):.1%}", f"{unknown:,d}", f"{sum(others):,d}",
                        *(f"{one / sum(others):.1%}" for one in others),
                    ))  # fmt: skip
    heads = (
        "set,found by,judged,pieces,least,relevant chunks,carried,to judge,lost,not relevant,"
        "carried as relevant: wrong,answer in no judged chunk,others,carried,to judge,not carried,relevant"
    )
    print(table(heads.split(","), rows))


if __name__ == "__main__":
    main()
