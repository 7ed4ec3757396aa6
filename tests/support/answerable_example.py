"""Discarded queries, two corpora and two rankers, of which it is known which passages answer."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

from truerank.audits.survivorship import AnswerPool, AnswerPoolOptions, DiscardedQueries, answerable
from truerank.judging import People, Store, new

SYSTEMS = ("sparse", "dense")
CORPORA = ("web", "wiki")
QUERIES = 24


class Example(NamedTuple):
    """The files, the runs by corpus and system, and the passages that answer, as (corpus, query, document)."""

    folder: Path
    rankings: dict[tuple[str, str], dict[str, list[str]]]
    truth: frozenset[tuple[str, str, str]]


def example(folder: Path) -> Example:
    """A log of 40 queries of which 24 are discarded, and runs for all of them."""
    draw = random.Random(5)
    with (folder / "log.jsonl").open("w") as log:
        for number in range(40):
            shown = [{"doc_id": f"s{number}-{place}", "text": f"shown {number} {place}"} for place in range(3)]
            row: dict[str, Any] = {"query_id": f"q{number}", "query": f"what is {number}", "shown": shown}
            log.write(json.dumps(row | {"selected": [] if number < QUERIES else [f"s{number}-0"]}) + "\n")
    rankings: dict[tuple[str, str], dict[str, list[str]]] = {}
    truth: set[tuple[str, str, str]] = set()
    for corpus in CORPORA:
        with (folder / f"{corpus}.jsonl").open("w") as docs:
            for number in range(60):
                docs.write(json.dumps({"doc_id": f"{corpus}{number}", "title": "T", "text": f"about {number}"}) + "\n")
        for system in SYSTEMS:
            own = {f"q{number}": draw.sample([f"{corpus}{n}" for n in range(60)], 8) for number in range(40)}
            rankings[corpus, system] = own
            lines = [
                f"{query} Q0 {document} {place + 1} {20 - place} {system}\n"
                for query, documents in own.items()
                for place, document in enumerate(documents)
            ]
            (folder / f"{corpus}-{system}.run").write_text("".join(lines))
        for number in range(QUERIES):
            for document in (f"{corpus}{n}" for n in range(60)):
                if draw.random() < (0.0 if number % 4 == 0 else 0.12):
                    truth.add((corpus, f"q{number}", document))
    return Example(folder, rankings, frozenset(truth))


def pooled(made: Example, k: int = 5, sample: int | None = None) -> AnswerPool:
    """The pool of both rankers over both corpora, written to pool/."""
    runs = [f"{corpus}/{system}={made.folder / f'{corpus}-{system}.run'}" for corpus in CORPORA for system in SYSTEMS]
    docs = [f"{corpus}={made.folder / f'{corpus}.jsonl'}" for corpus in CORPORA]
    pooling = AnswerPoolOptions(docs, k, sample, seed=3)
    found = answerable(
        runs, queries=DiscardedQueries(str(made.folder / "log.jsonl")), pooling=pooling, out=made.folder / "pool"
    )
    assert isinstance(found, AnswerPool)
    return found


def judged(made: Example, *, wrong: bool = False) -> Path:
    """A store in which ann and bob said the truth, and cyd, if `wrong`, the opposite; the last item was skipped."""
    people = ("ann", "bob", "cyd") if wrong else ("ann", "bob")
    path = made.folder / "answers.db"
    new(path, "answerability", str(made.folder / "pool" / "items.jsonl"), people=People(people, overlap=1000))
    with Store.open(path) as store:
        items = list(store.items())
        for name in people:
            for item in items[:-1]:
                right = [
                    text.name
                    for text in item.texts[1:]
                    if ((item.dataset, item.topic_id, text.id) in made.truth) is (name != "cyd")
                ]
                store.record(item.item_id, name, "label", right or ["none"])
            store.record(items[-1].item_id, name, "skip", reason="the query cannot be answered as it stands")
    return path
