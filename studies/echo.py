"""Topics that were made from their documents: what the audit and `check` make of planted ones and of people's.

    python studies/echo.py people
    python studies/echo.py plants [--sets cacm vaswani] [--count 20] [--seed 1]
    python studies/echo.py claims [--sets cacm] [--count 10]

`people` prints the figures of people's topics with which `collection audit` compares others (`PEOPLE` in
`audits/collection/echo.py`): the mean over topics, and its standard error.

Questions are made from a random passage of twelve words of a random document: `copied`, eight words of it in a row;
`words`, up to five of its content words, with others between them; `half`, four content words of the document and three
others. In `mixed` a part of people's topics is replaced by copied ones. In `claims` half of the topics are copied, and
the system is better than the baseline on these only.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import polars as pl

import truerank
from common import require_shared, table
from hand_collection import read_texts
from truerank.audits.collection.echo import MEASURED, WordOverlap, shared_words
from truerank.records import Document
from truerank.text.words import FUNCTION_WORDS

Questions = dict[str, str]
Relevant = dict[str, set[str]]


def read(name: str) -> tuple[Questions, dict[str, str], Relevant]:
    """People's topics, documents and relevant documents."""
    topics, docs, judgments = read_texts(name)
    relevant: Relevant = {}
    for topic, doc, grade in judgments:
        if grade > 0:
            relevant.setdefault(topic, set()).add(doc)
    return {one: text for one, text in topics.items() if one in relevant}, docs, relevant


def made(docs: Mapping[str, str], kind: str, count: int, rng: random.Random) -> tuple[Questions, Relevant]:
    """Questions with the document that each was made from."""
    texts: Questions = {}
    long = [doc for doc, text in sorted(docs.items()) if len(text.split()) >= 25]
    every = [word for doc in rng.sample(long, 200) for word in docs[doc].split() if word.isalpha()]
    for doc in rng.sample(long, count):
        own = docs[doc].split()
        start = rng.randrange(len(own) - 12)
        span = own[start : start + 12]
        content = [word for word in span if word.casefold() not in FUNCTION_WORDS and word.isalpha()]
        whole = [word for word in own if word.casefold() not in FUNCTION_WORDS and word.isalpha()]
        texts[f"q{doc}"] = {
            "copied": lambda span=span: "what is " + " ".join(span[:8]),
            "words": lambda content=content: "how do " + " and the ".join(content[:5]),
            "half": lambda whole=whole: " of ".join(rng.sample(whole, min(4, len(whole))) + rng.sample(every, 3)),
        }[kind]()
    return texts, {topic: {topic[1:]} for topic in texts}


def people(given: argparse.Namespace) -> None:
    """The figures of people's topics."""
    rows = []
    for name in given.sets:
        topics, docs, relevant = read(name)
        words = WordOverlap.of(topics, relevant, (), 0).read(Document(doc, body=text) for doc, text in docs.items())
        facts, _ = shared_words(words, len(topics))
        if facts is not None:
            z = statistics.NormalDist().inv_cdf(0.975)
            figures = (f"{facts[one][0]:.4f} ({(facts[one][2] - facts[one][0]) / z:.4f})" for one in MEASURED)
            rows.append((name, facts["topics"], *figures))
    print(table(("set", "topics", *MEASURED), rows))


def plants(given: argparse.Namespace) -> None:
    """Found, with figures, by kind."""
    rows = []
    for name in given.sets:
        topics, docs, relevant = read(name)
        names = sorted(topics)
        for kind in ("people", "copied", "words", "half", "mixed .1", "mixed .25", "mixed .5"):
            alone, beside, figures = 0, 0, list[tuple[float, float, float]]()
            for seed in range(given.count):
                rng = random.Random(f"{given.seed} {name} {kind} {seed}")
                asked = set(rng.sample(names, len(names) // 2))
                texts = {one: topics[one] for one in names if one not in asked}
                of = dict(relevant)
                if kind.startswith("mixed"):
                    count = round(float(kind.split()[1]) * len(texts))
                    new, own = made(docs, "copied", count, rng)
                    texts = dict(rng.sample(sorted(texts.items()), len(texts) - count)) | new
                    of |= own
                elif kind != "people":
                    texts, of = made(docs, kind, len(texts), rng)
                stream = (Document(doc, body=text) for doc, text in docs.items())
                words = WordOverlap.of(texts, of, [topics[one] for one in sorted(asked)], 0).read(stream)
                facts, found = shared_words(words, len(texts))
                alone += any(one.kind == "echo" for one in found)
                beside += any(one.kind == "echo-above-people" for one in found)
                if facts is not None:
                    figures.append((facts["share"][0], facts["first"][0], facts["echo"][0]))
            means = [f"{sum(column) / len(column):.2f}" for column in zip(*figures, strict=True)]
            rows.append((name, kind, given.count, *means, alone, beside))
    heads = "set,questions,draws,share of words,first by words,echo,COLL19,COLL20 beside half of people's topics"
    print(table(heads.split(","), rows))


def claims(given: argparse.Namespace) -> None:
    """A lead on copied questions only, a lead on all, and none, with half of the questions copied."""
    rows = []
    for name in given.sets:
        topics, docs, relevant = read(name)
        words: dict[str, Counter[str]] = {}
        for seed in range(given.count):
            rng = random.Random(f"{given.seed} {name} {seed}")
            copied, of = made(docs, "copied", len(topics), rng)
            every, gold = topics | copied, relevant | of
            for kind in ("on copied questions", "on all", "none"):
                runs: dict[str, dict[str, dict[str, float]]] = {"system": {}, "baseline": {}}
                for topic in every:
                    rank = rng.choice((1, 2, 3, 5, 8, 20))
                    better = rng.choice((0, 1, 2)) if kind == "on all" or (kind[0] == "o" and topic in copied) else 0
                    for run, own in (("system", max(1, rank - better - rng.choice((-1, 0, 1)))), ("baseline", rank)):
                        others = rng.sample(sorted(set(docs) - gold[topic]), 30)
                        others.insert(own - 1, sorted(gold[topic])[0])
                        runs[run][topic] = {doc: 40.0 - at for at, doc in enumerate(others)}
                with tempfile.TemporaryDirectory() as folder:
                    for file, texts in (("docs", docs), ("topics", every)):
                        frame = pl.DataFrame({"_id": list(texts), "text": list(texts.values())})
                        frame.write_ndjson(Path(folder) / f"{file}.jsonl")
                    qrels = {topic: dict.fromkeys(sorted(own), 1) for topic, own in gold.items()}
                    found = truerank.check(
                        qrels=qrels, run=runs, baseline="baseline", measure="RR@10",
                        test=f"{folder}/topics.jsonl", docs=f"{folder}/docs.jsonl",
                    )  # fmt: skip
                told = "repeat the words" in found.answer("collection").exception
                words.setdefault(kind, Counter())[f"{found.conclusion.word}{' (echo)' if told else ''}"] += 1
        rows += [(name, kind, ", ".join(f"{word} {count}" for word, count in own.most_common()))
                 for kind, own in words.items()]  # fmt: skip
    print(table(("set", "the lead", "words"), rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (("people", people), ("plants", plants), ("claims", claims)):
        one = commands.add_parser(name)
        one.set_defaults(function=function)
        one.add_argument("--sets", nargs="+", default=["cacm", "vaswani"], choices=("cacm", "vaswani"))
        one.add_argument("--count", type=int, default=20)
        one.add_argument("--seed", type=int, default=1)
    require_shared()
    given = parser.parse_args()
    given.function(given)


if __name__ == "__main__":
    main()
