"""Plants each kind of fault in 1, 5, 10, 25 and 50% of a collection: from which share on is it found by name?

    python studies/collection_shares.py [--only NAME …] [--seeds 2] [--innocents]

A kind is found if the audit has more findings of a right kind than before. What stands in a cell is how many of the
sets show it: three collections (CACM; part of Vaswani, whose texts have no marks; CACM's titles alone), times seeds.
Grades are 0 and 1 in CACM, 0 to 3 in the others. `--innocents` audits parts of the collections without faults.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from common import SHARED, require_shared, table
from planted.abstracts import read_abstracts
from planted.collections import notices
from truerank import collection
from truerank.audits.collection.results import CollectionAudit

SHARES: Final = (0.01, 0.05, 0.10, 0.25, 0.50)
Text = tuple[str, str]


@dataclass(frozen=True)
class Small:
    """Titles and bodies of documents, texts of topics, and grades by topic and document."""

    docs: dict[str, Text]
    topics: dict[str, str]
    grades: dict[tuple[str, str], int]

    def audited(self, folder: Path) -> CollectionAudit:
        """What the audit says of it."""
        lines = [json.dumps({"_id": one, "title": title, "text": body}) for one, (title, body) in self.docs.items()]
        (folder / "docs.jsonl").write_text("\n".join(lines))
        lines = [json.dumps({"_id": one, "text": text}) for one, text in self.topics.items()]
        (folder / "topics.jsonl").write_text("\n".join(lines))
        lines = [f"{topic} 0 {doc} {grade}\n" for (topic, doc), grade in self.grades.items()]
        (folder / "judged.qrels").write_text("".join(lines))
        docs, topics, qrels = (str(folder / name) for name in ("docs.jsonl", "topics.jsonl", "judged.qrels"))
        return collection.audit(docs=docs, topics=topics, qrels=qrels, measures="P@1")

    def judged(self) -> list[str]:
        """The topics with relevant documents."""
        return [*dict.fromkeys(topic for (topic, _), grade in self.grades.items() if grade > 0)]


def small(name: str, documents: int = 1_500, seed: int = 1) -> Small:
    """A collection whose texts are all different."""
    source = read_abstracts(
        name.removesuffix("-titles"), SHARED / "collections" / name.removesuffix("-titles"), titles=True
    )
    draw, seen, docs = random.Random(seed), set[str](), dict[str, Text]()
    for one, said in source.abstracts.items():
        text = (said.title, "") if name.endswith("-titles") else (said.title, " ".join(said.sentences))
        if (form := " ".join(text).casefold().strip()) not in seen and len(form) > 20:
            seen.add(form)
            docs[one] = ("", text[0]) if name.endswith("-titles") or (name == "vaswani" and not text[1]) else text
    relevant = [(topic, doc) for doc, topics in source.relevant.items() if doc in docs for topic in topics]
    needed = {doc for _, doc in relevant}
    others = [doc for doc in docs if doc not in needed]
    draw.shuffle(others)
    kept = needed | {*others[: max(0, documents - len(needed))]}
    docs = {doc: text for doc, text in docs.items() if doc in kept}
    highest = 1 if name == "cacm" else 3
    grades = {pair: draw.randint(1, highest) for pair in sorted(relevant)}
    for topic in sorted({topic for topic, _ in relevant}):
        grades |= {(topic, doc): 0 for doc in draw.sample([*docs], 10) if (topic, doc) not in grades}
    return Small(docs, source.topics, grades)


def _some(given: Small, share: float, draw: random.Random) -> list[str]:
    return draw.sample([*given.docs], max(1, round(share * len(given.docs))))


def _texts(change: Callable[[Text, int, random.Random], Text]) -> Callable[[Small, float, random.Random], Small]:
    """Changes the texts of a share of the documents."""

    def plant(given: Small, share: float, draw: random.Random) -> Small:
        new = {doc: change(given.docs[doc], at, draw) for at, doc in enumerate(_some(given, share, draw))}
        return replace(given, docs=given.docs | new)

    return plant


def _random_topics(given: Small, share: float, draw: random.Random) -> Small:
    judged = given.judged()
    chosen = {*draw.sample(judged, max(1, round(share * len(judged))))}
    return _dealt(given, [pair for pair, grade in given.grades.items() if grade > 0 and pair[0] in chosen], draw)


def _random_judgments(given: Small, share: float, draw: random.Random) -> Small:
    relevant = [pair for pair, grade in given.grades.items() if grade > 0]
    return _dealt(given, draw.sample(relevant, max(1, round(share * len(relevant)))), draw)


def _dealt(given: Small, pairs: list[tuple[str, str]], draw: random.Random) -> Small:
    """Relevant documents replaced by any others."""
    grades = {pair: grade for pair, grade in given.grades.items() if pair not in {*pairs}}
    for topic, doc in pairs:
        free = (topic, draw.choice([*given.docs]))
        while free in grades:
            free = (topic, draw.choice([*given.docs]))
        grades[free] = given.grades[topic, doc]
    return replace(given, grades=grades)


def _exchanged(given: Small, share: float, draw: random.Random) -> Small:
    judged = given.judged()
    chosen = draw.sample(judged, 2 * max(1, round(share * len(judged) / 2)))
    other = dict(zip(chosen[::2], chosen[1::2], strict=True))
    other |= {there: here for here, there in other.items()}
    return replace(given, grades={(other.get(t, t), doc): grade for (t, doc), grade in given.grades.items()})


def _moved(given: Small, share: float, draw: random.Random) -> Small:
    judged = given.judged()
    size = max(2, round(share * len(judged)))
    start = draw.randrange(len(judged) - size + 1)
    block = judged[start : start + size]
    other = dict(zip(block, [*block[1:], block[0]], strict=True))
    return replace(given, grades={(other.get(t, t), doc): grade for (t, doc), grade in given.grades.items()})


def _tenfold(given: Small, share: float, draw: random.Random) -> Small:
    pairs = {*draw.sample([*given.grades], max(1, round(share * len(given.grades))))}
    return replace(given, grades={pair: grade * (10 if pair in pairs else 1) for pair, grade in given.grades.items()})


def _turned(given: Small, share: float, draw: random.Random) -> Small:
    judged = given.judged()
    chosen = {*draw.sample(judged, max(1, round(share * len(judged))))}
    top = max(given.grades.values())
    grades = {pair: top - grade if pair[0] in chosen else grade for pair, grade in given.grades.items()}
    return replace(given, grades=grades)


def _off_by_one(given: Small, share: float, draw: random.Random) -> Small:
    ids = [*given.docs]
    size = max(2, round(share * len(ids)))
    start = draw.randrange(len(ids) - size)
    texts = {ids[at]: given.docs[ids[at + 1]] for at in range(start, start + size)}
    return replace(given, docs=given.docs | texts)


def _mixed(given: Small, share: float, draw: random.Random) -> Small:
    chosen = _some(given, share, draw)
    texts = [given.docs[one] for one in draw.sample(chosen, len(chosen))]
    return replace(given, docs=given.docs | dict(zip(chosen, texts, strict=True)))


def _copied(given: Small, share: float, draw: random.Random) -> Small:
    return replace(given, docs=given.docs | {f"{one}-2": given.docs[one] for one in _some(given, share, draw)})


def _nearly_copied(given: Small, share: float, draw: random.Random) -> Small:
    def altered(text: Text) -> Text:
        words = text[1].split()
        return text[0], " ".join([*words[:-4], *words[-3:]])

    return replace(given, docs=given.docs | {f"{one}-2": altered(given.docs[one]) for one in _some(given, share, draw)})


@cache
def _questions(language: str) -> list[str]:
    with gzip.open(SHARED / "topics" / "miracl" / f"{language}-train.tsv.gz", "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t")[1] for line in lines]


def _foreign(language: str) -> Callable[[Text, int, random.Random], Text]:
    return lambda text, at, draw: ("", " ".join(draw.sample(_questions(language), 5)))


def _cut(text: Text, at: int, draw: random.Random) -> Text:
    words = text[1].split()
    return text[0], " ".join(words[: max(1, len(words) // 2)])


def _swapped(text: Text, at: int, draw: random.Random) -> Text:
    return text[::-1] if all(text) else text


_FOOTER: Final = "Copyright by the society and its members; all rights of reprinting are reserved in every country"


@cache
def _help() -> list[str]:
    texts = tomllib.loads((Path(__file__).parent / "planted" / "help_pages.toml").read_text(encoding="utf-8"))
    return [str(text) for text in texts["texts"]]


def _about_errors(text: Text, at: int, draw: random.Random) -> Text:
    return "", " ".join([" ".join((text[0] or text[1]).split()[:6]), *draw.sample(_help(), 2)])


Plant = Callable[[Small, float, random.Random], Small]
_MISJUDGED: Final = ("shifted-judgments", "shuffled-judgments", "unrelated-judgments", "random-judgments")
#: By name, what plants it, and the kinds that name it.
KINDS: Final[dict[str, tuple[Plant, tuple[str, ...]]]] = {
    "random judgments in a share of the topics": (_random_topics, _MISJUDGED),
    "random judgments, scattered": (_random_judgments, _MISJUDGED),
    "judgments exchanged between topics": (_exchanged, _MISJUDGED),
    "judgments of the topic before, a block": (_moved, _MISJUDGED),
    "grades times ten": (_tenfold, ("off-scale-grade",)),
    "grades turned around in a share of the topics": (_turned, ("inverted-grades", *_MISJUDGED)),
    "documents in another script": (_texts(_foreign("ru")), ("foreign-script", "several-scripts")),
    "documents in French": (_texts(_foreign("fr")), ("foreign-language", "several-scripts", "foreign-words")),
    "documents in Indonesian": (_texts(_foreign("id")), ("foreign-language", "several-scripts", "foreign-words")),
    "the same words below texts": (_texts(lambda text, at, draw: (text[0], f"{text[1]} {_FOOTER}")), ("boilerplate",)),
    "notices in place of texts": (_texts(lambda text, at, draw: ("", notices("report")[at % 5])), ("error-page",)),
    "texts cut in half": (_texts(_cut), ("cut-document",)),
    "texts cut at 120 letters": (_texts(lambda text, at, draw: (text[0], text[1][:120])), ("cut-document",)),
    "empty texts": (_texts(lambda text, at, draw: ("", "")), ("empty-document",)),
    "bodies lost": (_texts(lambda text, at, draw: (text[0] or text[1][:30], "")), ("missing-body",)),
    "copies": (_copied, ("exact-duplicate",)),
    "copies without one word": (_nearly_copied, ("near-duplicate", "contained-document")),
    "title and text swapped": (_texts(_swapped), ("unrelated-title", "displaced-title")),
    "texts of the next document, a block": (_off_by_one, ("displaced-text", "displaced-title")),
    "texts mixed up among documents": (_mixed, ("displaced-text", *_MISJUDGED)),
    "innocent: texts about errors": (_texts(_about_errors), ("error-page",)),
}  # fmt: skip


def counts(given: Small, folder: Path) -> Counter[str]:
    """The findings by kind."""
    return Counter({one.kind.name: one.count for one in given.audited(folder).findings})


def rows(bases: dict[str, Small], only: list[str], seeds: int, folder: Path) -> Iterator[tuple[object, ...]]:
    """Lines of the table."""
    before = {name: counts(base, folder) for name, base in bases.items()}
    for name, (plant, right) in KINDS.items():
        if only and not any(part in name for part in only):
            continue
        titled = {
            one: base for one, base in bases.items() if "swapped" not in name or any(all(t) for t in base.docs.values())
        }
        cells = []
        for share in SHARES:
            found, alarms = 0, defaultdict[str, int](int)
            for one, base in titled.items():
                for seed in range(seeds):
                    after = counts(plant(base, share, random.Random(seed)), folder)
                    new = [kind for kind in after if after[kind] > before[one][kind]]
                    found += any(kind in right for kind in new)
                    for kind in new:
                        alarms[kind] += kind not in right
            cells.append(f"{found}/{len(titled) * seeds}")
            print(name, share, cells[-1], "beside it:", {k: n for k, n in alarms.items() if n}, flush=True)
        yield name, *cells


def part(base: Small, topics: int, documents: int, seed: int) -> Small:
    """A few topics with what is judged for them, and other documents."""
    draw = random.Random(seed)
    chosen = {*draw.sample(base.judged(), min(topics, len(base.judged())))}
    grades = {pair: grade for pair, grade in base.grades.items() if pair[0] in chosen}
    kept = {doc for _, doc in grades}
    kept |= {*draw.sample([*base.docs], min(documents, len(base.docs)))}
    texts = {one: text for one, text in base.docs.items() if one in kept}
    return Small(texts, {one: base.topics[one] for one in base.topics if one in chosen}, grades)


def innocents(bases: dict[str, Small], folder: Path) -> Iterator[tuple[object, ...]]:
    """Parts of the collections; what is named in a first audit is left out, since real collections have faults."""
    for name, base in bases.items():
        for topics, documents in ((6, 60), (8, 100), (12, 200), (20, 600), (30, 1_500), (48, 3_000)):
            given = part(base, topics, documents, topics)
            named = given.audited(folder).instances
            bad = {*named["doc_id"], *named["other"]}
            docs = {one: text for one, text in given.docs.items() if one not in bad}
            grades = {pair: grade for pair, grade in given.grades.items() if pair[1] in docs}
            left = {topic for (topic, _), grade in grades.items() if grade > 0}
            grades = {pair: grade for pair, grade in grades.items() if pair[0] in left}
            given = Small(docs, {one: given.topics[one] for one in given.topics if one in left}, grades)
            found = given.audited(folder)
            told = [f"{one.kind.name} {one.count}" for one in found.findings if one.kind.severity != "note"]
            yield name, topics, len(given.docs), found.verdicts[0].word, ", ".join(told)


def main() -> None:
    """Plants, audits, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of faults")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--innocents", action="store_true")
    given = parser.parse_args()
    require_shared()
    documents = 4_000 if given.innocents else 1_500
    bases = {name: small(name, documents) for name in ("cacm", "vaswani", "cacm-titles")}
    with tempfile.TemporaryDirectory() as folder:
        if given.innocents:
            print(table(("collection", "topics", "documents", "word", "named"), [*innocents(bases, Path(folder))]))
            return
        cells = [*rows(bases, given.only, given.seeds, Path(folder))]
    print()
    print(table(("planted", *(f"{share:.0%}" for share in SHARES)), cells))


if __name__ == "__main__":
    main()
