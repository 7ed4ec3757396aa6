"""Writes the two versions, with topics, judgments and the truth."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from planted.abstracts import Abstract, Abstracts
from planted.faults import SHARES, Faults, Half, assigned
from planted.pages import Body, Page, make_pages, other_address
from planted.records import Records, fits, kinds

NEIGHBOURS = 20
COLUMNS = ("a", "b", "topics", "fault", "side", "harmful", "place", "sections")


class Planted(NamedTuple):
    """What was written."""

    folder: Path
    pages: int
    judged: int
    harmful: int


class Plan(NamedTuple):
    """How to plant.

    Attributes:
        seed: of everything that is drawn.
        half: which half of the texts is used.
        unjudged: pages without a relevant abstract.
        shares: of the judged pages, by fault.
        second: share of the faults that lie in the second version: most, as with MS MARCO.
        family: pages of several abstracts, see `faults`, or one record each, see `records`.
        outside: another collection, of which some records of the third draw and later ones are.
    """

    seed: int
    half: Half
    unjudged: int = 500
    shares: dict[str, float] = SHARES
    second: float = 0.7
    family: Literal["pages", "records"] = "pages"
    outside: Abstracts | None = None


def plant(source: Abstracts, folder: Path, plan: Plan) -> Planted:
    """Writes `a.jsonl`, `b.jsonl`, `topics.tsv`, `a.qrels` (ids of the first version) and `truth.tsv`."""
    folder.mkdir(parents=True, exist_ok=True)
    if plan.family == "records":
        return _plant_records(source, folder, plan)
    pages = list(make_pages(source, plan.unjudged, plan.seed))
    judged = [page.key for page in pages if page.relevant >= 0]
    faults = assigned(judged, plan.shares, random.Random(f"{plan.seed}:faults"))
    striker = _faults(source, pages, plan)
    order = list(range(len(pages)))
    random.Random(f"{plan.seed}:order").shuffle(order)
    versions: tuple[list[tuple[int, str]], list[tuple[int, str]]] = ([], [])
    truth, qrels, harmful = [COLUMNS], [], 0
    for page, other in zip(pages, order, strict=True):
        draw = random.Random(f"{plan.seed}:page {page.key}")
        fault = faults.get(page.key, "none")
        second = draw.random() < plan.second
        whole, struck = striker.strike(page, "none", draw), striker.strike(page, fault, draw)
        ids = (f"A{page.key:06d}", f"B{other:06d}")
        bodies = (whole.body, struck.body) if second else (struck.body, whole.body)
        urls = (page.url, other_address(page.url, draw))
        for place, (number, doc_id, url, body) in enumerate(zip((page.key, other), ids, urls, bodies, strict=True)):
            versions[place].append((number, _line(doc_id, url, body)))
        if page.relevant >= 0:
            topics = source.relevant[page.sections[page.relevant].doc_id]
            qrels += [f"{topic} 0 {ids[0]} 1" for topic in topics]
            harmful += struck.harmful
            side = "" if fault == "none" else "b" if second else "a"
            row = (*ids, ",".join(topics), fault, side, int(struck.harmful), page.relevant, len(page.sections))
            truth.append(tuple(map(str, row)))
    _finish(folder, versions, (source.topics, qrels, truth))
    return Planted(folder, len(pages), len(judged), harmful)


def _plant_records(source: Abstracts, folder: Path, plan: Plan) -> Planted:
    """One record a document; the faults of `records`, each for the records that it fits."""
    records = list(source.abstracts.values())
    neighbour = _neighbours(source)
    spare = [one for one in records if one.doc_id not in source.relevant]
    outside = [one for one in (plan.outside or source).abstracts.values() if one.sentences]
    striker = Records(plan.half, neighbour, lambda draw: draw.choice(spare), lambda draw: draw.choice(outside))
    left = random.Random(f"{plan.seed}:faults").sample(list(source.relevant), len(source.relevant))
    judged, faults = len(left), {}
    for fault, share in kinds(plan.half).items():
        taken = [key for key in left if fits(source.abstracts[key], fault)][: round(share * judged)]
        faults.update(dict.fromkeys(taken, fault))
        left = [key for key in left if key not in faults]
    order = list(range(len(records)))
    random.Random(f"{plan.seed}:order").shuffle(order)
    versions: tuple[list[tuple[int, str]], list[tuple[int, str]]] = ([], [])
    truth, qrels, harmful = [COLUMNS], [], 0
    for number, (record, other) in enumerate(zip(records, order, strict=True)):
        draw = random.Random(f"{plan.seed}:record {record.doc_id}")
        fault = faults.get(record.doc_id, "none")
        second = draw.random() < plan.second
        struck = striker.strike(record, fault, draw)
        whole = Body(record.title, " ".join(record.sentences))
        ids = (f"A{number:06d}", f"B{other:06d}")
        bodies = (whole, struck.body) if second else (struck.body, whole)
        url = f"http://www.records.org/{number}"
        for place, (at, doc_id, body) in enumerate(zip((number, other), ids, bodies, strict=True)):
            versions[place].append((at, _line(doc_id, url, body)))
        if record.doc_id in source.relevant:
            topics = source.relevant[record.doc_id]
            qrels += [f"{topic} 0 {ids[0]} 1" for topic in topics]
            harmful += struck.harmful
            side = "" if fault == "none" else "b" if second else "a"
            truth.append((*ids, ",".join(topics), fault, side, str(int(struck.harmful)), "0", "1"))
    _finish(folder, versions, (source.topics, qrels, truth))
    return Planted(folder, len(records), judged, harmful)


def _finish(
    folder: Path,
    versions: tuple[list[tuple[int, str]], list[tuple[int, str]]],
    about: tuple[dict[str, str], list[str], list[tuple[str, ...]]],
) -> None:
    topics, qrels, truth = about
    for name, lines in zip(("a", "b"), versions, strict=True):
        _write(folder / f"{name}.jsonl", (line for _, line in sorted(lines)))
    _write(folder / "topics.tsv", (f"{topic}\t{text}" for topic, text in topics.items()))
    _write(folder / "a.qrels", sorted(qrels, key=lambda line: (len(line.split()[0]), line)))
    _write(folder / "truth.tsv", ("\t".join(row) for row in truth))


def read_truth(folder: Path) -> list[dict[str, str]]:
    """The rows of `truth.tsv`: ids in both versions, topics, fault, side it lies in, whether it is harmful."""
    header, *rows = ((line.split("\t")) for line in (folder / "truth.tsv").read_text(encoding="utf-8").splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


def _faults(source: Abstracts, pages: list[Page], plan: Plan) -> Faults:
    unjudged = [page for page in pages if page.relevant < 0]
    spare = [one for one in source.abstracts.values() if one.doc_id not in source.relevant]
    neighbour = _neighbours(source)

    def near(page: Page, draw: random.Random) -> Page:
        like = neighbour(page.sections[page.relevant], draw)
        model = draw.choice(unjudged)
        place = draw.randrange(len(model.sections))
        return replace(model, sections=(*model.sections[:place], like, *model.sections[place + 1 :]))

    return Faults(plan.half, lambda draw: draw.choice(unjudged), near, lambda draw: draw.choice(spare))


def _neighbours(source: Abstracts) -> Callable[[Abstract, random.Random], Abstract]:
    """One of the abstracts that BM25 finds for an abstract and that no topic of it is judged relevant to."""
    listed = list(source.abstracts.values())
    counts = (
        CountVectorizer(stop_words="english").fit_transform(_text(one) for one in listed).astype(np.float64).tocsr()
    )
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    held = np.asarray((counts > 0).sum(axis=0)).ravel()
    idf = np.log1p((len(listed) - held + 0.5) / (held + 0.5))
    coo = counts.tocoo()
    norm = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
    data = coo.data * 2.2 / (coo.data + norm[coo.row]) * idf[coo.col]
    weights = sparse.csr_matrix((data, (coo.row, coo.col)), shape=counts.shape)
    places = {one.doc_id: place for place, one in enumerate(listed)}

    def neighbour(centre: Abstract, draw: random.Random) -> Abstract:
        scores = (weights @ (counts[places[centre.doc_id]] > 0).astype(np.float64).T).toarray().ravel()
        ranked = (listed[place] for place in np.argsort(-scores, kind="stable"))
        return draw.choice(list(islice((one for one in ranked if one.doc_id not in source.relevant), NEIGHBOURS)))

    return neighbour


def _text(one: Abstract) -> str:
    return " ".join((one.title, *one.sentences))


def _line(doc_id: str, url: str, body: Body) -> str:
    return json.dumps({"doc_id": doc_id, "url": url, "title": body.title, "body": body.text}, ensure_ascii=False)


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
