"""Faults of ids and topic numbers in runs, for `hand_claims.py`. Written without sight of the rules.

Unless a kind says otherwise the claimed lead is false in the clean files and the fault makes it look true.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from urllib.parse import quote

from hand_collection import Collection, Files
from hand_kinds import (
    IDS,
    MISSING,
    NUMBERING,
    SCORES,
    docs_of,
    false_claim,
    kind,
    renamed,
    some,
    true_claim,
    with_rankings,
    with_run,
)


def changed_ids(files: Files, name: str, share: float, draw: random.Random, ids: Callable[[str], str]) -> Files:
    """A run whose documents have other ids on a share of the topics."""
    hit = set(some(draw, files.topics, share))
    run = [row._replace(doc=ids(row.doc)) if row.topic in hit else row for row in files.runs[name]]
    return with_run(files, name, run)


@kind("files", "The baseline writes document ids in another case.", *IDS)
def ids_case(collection: Collection, draw: random.Random) -> Files:
    """Ids with letters, so that case matters on every collection."""
    files = renamed(false_claim(collection, draw), lambda doc: f"Rec-{doc}")
    return changed_ids(files, files.baseline, draw.choice((0.35, 0.6, 1.0)), draw, str.upper)


@kind("files", "On some topics the baseline's ids have a path before and an ending after them.", *IDS)
def ids_prefixed(collection: Collection, draw: random.Random) -> Files:
    """One shard of the run was made from file names."""
    files = false_claim(collection, draw)
    front, back = draw.choice((("doc_", ""), ("", ".html"), ("corpus/", ".txt"), ("0:", "")))
    return changed_ids(files, files.baseline, draw.choice((0.3, 0.5)), draw, lambda doc: f"{front}{doc}{back}")


@kind("files", "The baseline ranks passages: every id has the number of a passage at its end.", *IDS, "passage")
def ids_passages(collection: Collection, draw: random.Random) -> Files:
    """A document may come several times, with other passages."""
    files = false_claim(collection, draw)
    joint, run = draw.choice(("#", "_p", "%%")), []
    for row in files.runs[files.baseline]:
        for part in range(draw.choice((1, 1, 1, 2, 3))):
            run.append(row._replace(doc=f"{row.doc}{joint}{part}", score=f"{float(row.score) - part * 1e-4:.6f}"))
    return with_run(files, files.baseline, run)


@kind("files", "The baseline pads numbers in ids with zeros.", *IDS)
def ids_padded(collection: Collection, draw: random.Random) -> Files:
    """Only ids with short numbers change."""
    files, width = false_claim(collection, draw), draw.choice((4, 5, 8))

    def ids(doc: str) -> str:
        return re.sub(r"\d+", lambda number: number[0].zfill(width), doc)

    return changed_ids(files, files.baseline, 1.0, draw, ids)


@kind("files", "The baseline's document numbers are off by one; they all exist.", *IDS, "off by", "shift", "other doc")
def ids_off_by_one(collection: Collection, draw: random.Random) -> Files:
    """Counted from 0 in one program and from 1 in another."""
    files, by = false_claim(collection, draw), draw.choice((-1, 1))

    def ids(doc: str) -> str:
        moved = re.sub(r"\d+", lambda number: str(int(number[0]) + by), doc)
        return moved if moved in files.docs else doc

    return changed_ids(files, files.baseline, draw.choice((0.4, 1.0)), draw, ids)


@kind("files", "On some topics the baseline's ids stand beside the wrong scores.", *IDS, *SCORES, "permut", "shuffl")
def ids_permuted(collection: Collection, draw: random.Random) -> Files:
    """Two columns were sorted apart and pasted together."""
    files = false_claim(collection, draw)
    hit, run = set(some(draw, files.topics, draw.choice((0.4, 0.8)))), dict(collection.rankings[files.baseline])
    for topic in hit:
        docs = docs_of(run[topic], 10**6)
        draw.shuffle(docs)
        run[topic] = [(doc, score) for doc, (_, score) in zip(docs, run[topic], strict=True)]
    return with_rankings(files, files.baseline, run)


@kind("files", "Ids are addresses, and the baseline writes them percent-encoded.", *IDS, "encod", "address", "URL")
def ids_encoded(collection: Collection, draw: random.Random) -> Files:
    """On a part of the topics or all."""
    files = renamed(false_claim(collection, draw), lambda doc: f"http://archive.org/~a/view?id={doc}")
    return changed_ids(files, files.baseline, draw.choice((0.4, 1.0)), draw, lambda doc: quote(doc, safe=""))


@kind("files", "A spreadsheet turned the baseline's ids into decimal numbers or changed their hyphen.", *IDS)
def ids_spreadsheet(collection: Collection, draw: random.Random) -> Files:
    """12 became 12.0, CACM-12 became CACM\u201312."""
    files = false_claim(collection, draw)
    return changed_ids(
        files,
        files.baseline,
        draw.choice((0.5, 1.0)),
        draw,
        lambda doc: f"{doc}.0" if doc.isdigit() else doc.replace("-", draw.choice(("\u2013", "_"))),
    )


@kind("files", "The baseline's ids are swapped between documents by a fixed table: all exist, each is another.", *IDS)
def ids_other_index(collection: Collection, draw: random.Random) -> Files:
    """The ids of another build of the index, where documents have other numbers."""
    files = false_claim(collection, draw)
    shuffled = list(files.docs)
    draw.shuffle(shuffled)
    table = dict(zip(files.docs, shuffled, strict=True))
    return changed_ids(files, files.baseline, 1.0, draw, table.__getitem__)


def other_topics(files: Files, name: str, table: dict[str, str]) -> Files:
    """A run with other topic numbers, in the order of the topics."""
    run = sorted(
        (row._replace(topic=table.get(row.topic, row.topic)) for row in files.runs[name]),
        key=lambda row: list(files.topics).index(row.topic),
    )
    return with_run(files, name, run)


@kind("files", "The baseline's topic numbers are shifted by one or two.", *NUMBERING)
def topics_shifted(collection: Collection, draw: random.Random) -> Files:
    """Topics without judgments had been left out of its numbering."""
    files, by = false_claim(collection, draw), draw.choice((1, 2))
    names = list(files.topics)
    return other_topics(files, files.baseline, dict(zip(names, names[by:] + names[:by], strict=True)))


@kind("files", "The baseline's topics are numbered from the end.", *NUMBERING)
def topics_reversed(collection: Collection, draw: random.Random) -> Files:
    """The first topic has the last number."""
    files = false_claim(collection, draw)
    return other_topics(files, files.baseline, dict(zip(files.topics, reversed(list(files.topics)), strict=True)))


@kind("files", "From the middle on the baseline's topic numbers are shifted by one.", *NUMBERING)
def topics_half_shifted(collection: Collection, draw: random.Random) -> Files:
    """A blank line in the topics moved the rest; the last topic has the number of the middle one."""
    files = false_claim(collection, draw)
    names = list(files.topics)
    at = round(len(names) * draw.uniform(0.4, 0.6))
    return other_topics(files, files.baseline, dict(zip(names[at:], [*names[at + 1 :], names[at]], strict=True)))


@kind("files", "The baseline writes its topic numbers with zeros before them.", *NUMBERING, *MISSING, "zero")
def topics_padded(collection: Collection, draw: random.Random) -> Files:
    """Numbers below 10, or below 100, become others."""
    files, width = false_claim(collection, draw), draw.choice((2, 3))
    run = [row._replace(topic=row.topic.zfill(width)) for row in files.runs[files.baseline]]
    return with_run(files, files.baseline, run)


@kind("hidden", "A true lead does not show: the system's ids are padded with zeros.", *IDS)
def hidden_ids_padded(collection: Collection, draw: random.Random) -> Files:
    """All of its ids."""
    files = true_claim(collection, draw)
    return changed_ids(files, files.system, 1.0, draw, lambda doc: re.sub(r"\d+", lambda part: part[0].zfill(7), doc))


@kind("hidden", "A true lead does not show: the system's topic numbers are shifted from the middle on.", *NUMBERING)
def hidden_topics_shifted(collection: Collection, draw: random.Random) -> Files:
    """As `topics_half_shifted`, but of the better run."""
    files = true_claim(collection, draw)
    names = list(files.topics)
    at = len(names) // 3
    return other_topics(files, files.system, dict(zip(names[at:], [*names[at + 1 :], names[at]], strict=True)))
