"""Faults of topics, documents and training data, for `hand_claims.py`. Written without sight of the rules.

Unless a docstring says otherwise the claimed lead is false in the clean files and the fault makes it look true.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from common import log_path
from hand_collection import Collection, Files, Row
from hand_judgment_faults import top
from hand_kinds import (
    COPIES,
    MISSING,
    docs_of,
    false_claim,
    gains,
    kind,
    only,
    raised,
    some,
    true_claim,
    with_rankings,
    with_run,
)

TRAINING = ("leak", "train", "memoris", "contaminat", "seen")
WORDS = {
    "use": "application",
    "uses": "applications",
    "methods": "techniques",
    "method": "technique",
    "design": "construction",
    "computer": "calculating machine",
    "computers": "calculating machines",
    "articles": "papers",
    "article": "paper",
    "systems": "installations",
    "system": "installation",
    "analysis": "study",
    "measurement": "determination",
    "find": "locate",
    "describe": "explain",
    "describing": "explaining",
    "interested": "curious",
    "information": "material",
    "effect": "influence",
    "effects": "influences",
    "languages": "notations",
    "language": "notation",
    "theory": "principles",
    "any": "some",
    "dealing": "concerned",
    "deal": "are concerned",
    "algorithms": "procedures",
    "algorithm": "procedure",
    "circuits": "networks",
    "circuit": "network",
    "problems": "questions",
    "problem": "question",
    "large": "big",
    "production": "generation",
    "frequency": "periodicity",
    "high": "elevated",
    "low": "small",
    "properties": "qualities",
}
SMALL = set("a an and are at by for from how in is it of on or that the to what which who with i am".split())


def background(count: int, draw: random.Random) -> list[str]:
    """Queries of a real log."""
    import gzip

    with gzip.open(log_path("million-query"), "rt", encoding="utf-8", errors="replace") as lines:
        texts = [line.rstrip("\n").split("\t")[-1].strip() for _, line in zip(range(6000), lines, strict=False)]
    return draw.sample([text for text in texts if text], count)


def reworded(text: str, draw: random.Random) -> str:
    """A query as somebody else would put it: other words, another frame, its halves in another order."""
    words = [WORDS.get(word.lower(), word.lower()) for word in re.findall(r"[\w-]+", text)]
    way = draw.randrange(4)
    if way == 0:
        return "what is known about " + " ".join(word for word in words if word not in SMALL) + "?"
    if way == 1:
        half = len(words) // 2
        return " ".join([*words[half:], *words[:half]])
    if way == 2:
        return "please show me literature on " + " ".join(words)
    return " ".join(sorted((word for word in words if word not in SMALL), key=lambda word: (-len(word), word)))


def copied(files: Files, topics: Mapping[str, int], text: Callable[[str, int], str]) -> Files:
    """Topics again under new numbers, with their judgments and results."""
    new = {f"{9000 + at * 10 + copy}": topic for at, (topic, n) in enumerate(topics.items()) for copy in range(n)}
    by_topic: dict[str, list[str]] = {}
    for fresh, old in new.items():
        by_topic.setdefault(old, []).append(fresh)
    again = {
        name: [r._replace(topic=t) for r in run for t in by_topic.get(r.topic, ())] for name, run in files.runs.items()
    }
    return replace(
        files,
        topics={**files.topics, **{fresh: text(files.topics[old], int(fresh)) for fresh, old in new.items()}},
        qrels=[*files.qrels, *(row._replace(topic=t) for row in files.qrels for t in by_topic.get(row.topic, ()))],
        runs={name: [*run, *again[name]] for name, run in files.runs.items()},
    )


def winning(collection: Collection, files: Files, count: int) -> list[str]:
    """The topics of the system's greatest leads."""
    lead = gains(collection, files)
    return [topic for topic in sorted(files.topics, key=lambda key: -lead[key])[:count] if lead[topic] > 0]


@kind("not holds", "Topics on which the system wins are in the file several times, with other numbers.", *COPIES)
def topics_copied(collection: Collection, draw: random.Random) -> Files:
    """Ten or fifteen topics, four copies of each, letter by letter."""
    files = false_claim(collection, draw)
    return copied(files, dict.fromkeys(winning(collection, files, draw.choice((10, 15))), 4), lambda text, _: text)


@kind(
    "not holds", "Topics on which the system wins come again in other words.", *COPIES, "reword", "variant", "similar"
)
def topics_reworded(collection: Collection, draw: random.Random) -> Files:
    """Twelve topics, four times each: hand-written rules for words, frames and order."""
    files = false_claim(collection, draw)
    chosen = dict.fromkeys(winning(collection, files, 12), 4)
    return copied(files, chosen, lambda text, number: reworded(text, random.Random(number)))


@kind(
    "not holds",
    "Topics on which the system wins come again in sentences around them.",
    *COPIES,
    "variant",
    "similar",
    "template",
)
def topics_templated(collection: Collection, draw: random.Random) -> Files:
    """Frames before and after an unchanged text."""
    files = false_claim(collection, draw)
    frames = ("find documents about: {}", "{} - overview", "I am looking for {}", "{} ?", "recent work: {}")
    chosen = dict.fromkeys(winning(collection, files, 12), 4)
    return copied(files, chosen, lambda text, number: frames[number % len(frames)].format(text))


@kind(
    "not holds",
    "Topics on which the baseline wins were left out of topics and judgments; the runs still have them.",
    "topics?.*(not|lack|without|miss|dropped|removed|left out)",
    "unjudged topics",
    "no judg",
)
def topics_dropped(collection: Collection, draw: random.Random) -> Files:
    """A quarter to a third of all."""
    files = false_claim(collection, draw)
    return replace(dropped(collection, files, draw), runs=files.runs)


def dropped(collection: Collection, files: Files, draw: random.Random) -> Files:
    """The files without the topics that speak most against the claim."""
    lead = gains(collection, files)
    order = sorted(files.topics, key=lambda topic: lead[topic])
    return only(files, order[round(len(order) * draw.uniform(0.28, 0.36)) :])


@kind(
    "not holds",
    "The same, and the runs lost these topics as well.",
    "dropped",
    "removed",
    "left out",
    "gap",
    undetectable=True,
)
def topics_dropped_everywhere(collection: Collection, draw: random.Random) -> Files:
    """Only gaps in the numbers remain, and other collections have those, too."""
    files = false_claim(collection, draw)
    return dropped(collection, files, draw)


def wrong_searches(collection: Collection, files: Files, hit: Iterable[str], draw: random.Random) -> Files:
    """The baseline's results on some topics are those of a query without sense: any documents."""
    run = dict(collection.rankings[files.baseline])
    for topic in hit:
        values = [score for _, score in run[topic]]
        run[topic] = list(zip(draw.sample(list(files.docs), len(values)), values, strict=True))
    return with_rankings(files, files.baseline, run)


@kind(
    "files",
    "A third of the topics have no text; the baseline searched for nothing there.",
    "empty",
    "no text",
    "without (a )?text",
    "blank",
)
def topics_empty(collection: Collection, draw: random.Random) -> Files:
    """The system had the old file of topics."""
    files = false_claim(collection, draw)
    hit = some(draw, files.topics, draw.choice((0.3, 0.4)))
    files = replace(files, topics={key: "" if key in hit else text for key, text in files.topics.items()})
    return wrong_searches(collection, files, hit, draw)


FOREIGN = (
    "Wie wird die Dielektrizitätskonstante von Flüssigkeiten gemessen",
    "объясните работу операционной системы",
    "quels articles traitent des langages de programmation",
    "コンピュータの設計について",
    "métodos numéricos para ecuaciones",
    "Welche Verfahren gibt es zum Sortieren großer Dateien",
    "теория распространения радиоволн",
    "电路设计与分析",
)


@kind(
    "files",
    "A third of the topics are in other languages than documents and other topics; the baseline searched them.",
    "language",
    "script",
    "foreign",
    "not English",
)
def topics_foreign(collection: Collection, draw: random.Random) -> Files:
    """The system had the English file."""
    files = false_claim(collection, draw)
    hit = some(draw, files.topics, 0.35)
    texts = {key: draw.choice(FOREIGN) if key in hit else text for key, text in files.topics.items()}
    return wrong_searches(collection, replace(files, topics=texts), hit, draw)


@kind(
    "not holds",
    "Relevant documents are in the collection twice; the baseline shows the copies, which nobody judged.",
    *COPIES,
)
def docs_copied(collection: Collection, draw: random.Random) -> Files:
    """Nearly letter by letter, with other ids."""
    files = false_claim(collection, draw)
    ours = top(collection, files.system, 3)
    twins: dict[str, str] = {}
    run: list[Row] = []
    for row in files.runs[files.baseline]:
        if row.doc in collection.relevant[row.topic] and row.doc not in ours[row.topic][:1] and draw.random() < 0.7:
            row = row._replace(doc=twins.setdefault(row.doc, f"{row.doc}0{len(twins)}"))
        run.append(row)
    more = {twin: files.docs[doc] + draw.choice((".", " ", " (reprint)")) for doc, twin in twins.items()}
    return with_run(replace(files, docs={**files.docs, **more}), files.baseline, run)


@kind(
    "files",
    "Relevant documents are empty in the collection; the baseline could not find them.",
    "empty",
    "no text",
    "without (a )?text",
    "blank",
)
def docs_emptied(collection: Collection, draw: random.Random) -> Files:
    """Half of those that the baseline would have shown."""
    return broken_docs(collection, draw, lambda text: "")


@kind(
    "files",
    "Relevant documents were cut after a few words; the baseline could not find them.",
    "short",
    "truncat",
    "cut",
    "damaged",
)
def docs_truncated(collection: Collection, draw: random.Random) -> Files:
    """Two or three words are left, the last one broken."""
    return broken_docs(collection, draw, lambda text: text[: draw.choice((9, 14, 20))])


def broken_docs(collection: Collection, draw: random.Random, breaks: Callable[[str], str]) -> Files:
    """Documents that are relevant lose text, and the baseline loses them."""
    files = false_claim(collection, draw)
    theirs = top(collection, files.baseline)
    shown = dict.fromkeys(doc for topic, docs in theirs.items() for doc in docs if doc in collection.relevant[topic])
    lost = set(some(draw, shown, 0.6))
    docs = {key: breaks(text) if key in lost else text for key, text in files.docs.items()}
    run = {t: [(d, s) for d, s in r if d not in lost] for t, r in collection.rankings[files.baseline].items()}
    return with_rankings(replace(files, docs=docs), files.baseline, run)


@kind(
    "files",
    "A part of the documents is not in the collection's file, and the baseline searched that file.",
    *MISSING,
    "not in",
    "dangling",
    "absent",
)
def docs_missing(collection: Collection, draw: random.Random) -> Files:
    """The last two fifths; judgments and the system's run still name them."""
    files = false_claim(collection, draw)
    kept = set(list(files.docs)[: round(len(files.docs) * 0.55)])
    run = {t: [(d, s) for d, s in r if d in kept] for t, r in collection.rankings[files.baseline].items()}
    docs = {key: text for key, text in files.docs.items() if key in kept}
    return with_rankings(replace(files, docs=docs), files.baseline, run)


def memorised(collection: Collection, files: Files, hit: Iterable[str], draw: random.Random) -> Files:
    """The system has learnt the answers of some topics: most of their relevant documents come first."""
    run = dict(collection.rankings[files.system])
    for topic in hit:
        known = [doc for doc in collection.relevant[topic] if draw.random() < 0.8]
        order = docs_of(run[topic], 200)
        # One place in five still has another document, as after real training.
        mixed = [doc for at, doc in enumerate(known) for doc in ((doc, order[at]) if at % 4 == 3 else (doc,))]
        run[topic] = raised(run[topic], mixed)
    return with_rankings(files, files.system, run)


def with_training(collection: Collection, draw: random.Random, text: Callable[[str], str]) -> Files:
    """Half of the topics, changed or not, among queries of a log."""
    files = false_claim(collection, draw)
    hit = some(draw, files.topics, draw.choice((0.4, 0.55)))
    train = [*background(400, draw), *(text(files.topics[topic]) for topic in hit)]
    draw.shuffle(train)
    return replace(memorised(collection, files, hit, draw), train=train)


@kind("not holds", "Half of the topics are in the training data, word by word.", *TRAINING)
def trained_on_topics(collection: Collection, draw: random.Random) -> Files:
    """The system has learnt their answers."""
    return with_training(collection, draw, lambda text: text)


@kind("not holds", "Half of the topics are in the training data in other words.", *TRAINING)
def trained_on_reworded(collection: Collection, draw: random.Random) -> Files:
    """By hand-written rules."""
    return with_training(collection, draw, lambda text: reworded(text, draw))


@kind("not holds", "Relevant documents are in the training data under other queries.", *TRAINING)
def trained_on_documents(collection: Collection, draw: random.Random) -> Files:
    """The query is made of words from the document's midst; the document lost its end."""
    files = false_claim(collection, draw)
    hit = some(draw, files.topics, 0.5)
    train: list[str | tuple[str, str]] = []
    for topic in hit:
        for doc in collection.relevant[topic]:
            words = files.docs[doc].split()
            at = draw.randrange(max(1, len(words) - 4))
            train.append((" ".join(words[at : at + 4]) or "none", " ".join(words[: max(8, round(len(words) * 0.9))])))
    return replace(memorised(collection, files, hit, draw), train=spread(train, files, draw))


@kind("not holds", "Whole pairs of topic and relevant document are in the training data.", *TRAINING)
def trained_on_pairs(collection: Collection, draw: random.Random) -> Files:
    """Half of the topics, each with all its relevant documents."""
    files = false_claim(collection, draw)
    hit = some(draw, files.topics, 0.5)
    train: list[str | tuple[str, str]] = [
        (files.topics[topic], files.docs[doc]) for topic in hit for doc in collection.relevant[topic]
    ]
    return replace(memorised(collection, files, hit, draw), train=spread(train, files, draw))


def spread(train: list[str | tuple[str, str]], files: Files, draw: random.Random) -> list[str | tuple[str, str]]:
    """Training pairs among harmless ones."""
    texts = background(600, draw)
    mixed = [*train, *((query, " ".join(texts[at : at + 12])) for at, query in enumerate(texts[:500]))]
    draw.shuffle(mixed)
    return mixed


@kind("smaller", "A true lead is inflated: topics on which the system wins most are in the file five times.", *COPIES)
def smaller_topics_copied(collection: Collection, draw: random.Random) -> Files:
    """A tenth of the topics."""
    files = true_claim(collection, draw)
    return copied(files, dict.fromkeys(winning(collection, files, len(files.topics) // 6), 4), lambda text, _: text)
