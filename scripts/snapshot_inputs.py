"""Small generated data that the lines of `snapshots.py` read, the servers that they ask, and their steps."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import answerable_example
import archive_server
import assessors_example
import chat_server
import grid_example
import instances_example
import pool_collection
import small_data
import small_grid
import transfer_example
from judging_example import store_of
from judging_web_sample import Browser, served
from truerank import judge
from truerank.judging import Annotator, Item, Store, Text, load_scheme
from truerank.lab.grid.design import ModelDesign, ReportDesign, SetDesign
from truerank.sources.sample import sample_folder

FOOTER: Final = "this page was made by the people of the house and may be printed by all of them"
HEADER: Final = "# ir_metadata.start\n# tag: b1\n# data:\n#   training data:\n#   - name: Log\n# ir_metadata.end\n"
PAGE: Final = b"<html><head><title>t</title></head><body><main><p>The page says what it says.</p></main></body></html>"
#: The texts of an item by the view of its scheme, beside the query.
VIEWS: Final = {"pair": (), "document": ("document",), "versions": ("V1", "V2"), "passages": ("passage 1", "passage 2")}
LABELS: Final = ("only V1", "both", "V1 better", "neither", "only V2")


@contextlib.contextmanager
def inputs(folder: Path, schemes: Sequence[str], files: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Writes what the lines read, and runs the servers; their addresses by name."""
    draw = random.Random(3)
    small_data.write_inputs(folder)
    shutil.copytree(sample_folder(), folder / "sample")
    grid_example.write_example(folder / "example", grid_example.DESIGN.replace("24, 60", "24").replace("0, 1", "0"))
    instances_example.make(folder / "world")
    pool_collection.make(folder / "pool")
    transfer_example.write(folder / "transfer")
    for name in ("answers", "judges", "judged", "log"):
        (folder / name).mkdir()
    answers = answerable_example.example(folder / "answers")
    answerable_example.pooled(answers)
    answerable_example.judged(answers, wrong=True)
    _judges(folder / "judges")
    _log(folder / "log", draw)
    for scheme in schemes:
        _store(folder / "judged", scheme, draw)
    _grids(folder / "grids")
    _derived(folder, draw)
    for name, text in files.items():
        (folder / name).write_text(text)
    archive = archive_server.WebArchive()
    for number, behaviour in enumerate(("plain", "gzip", "robots", "excluded", "not-memento")):
        archive.add(f"http://a.org/{number}", archive_server.Snapshot("20150702120000", PAGE, behaviour=behaviour))

    def reply(seen: chat_server.Seen, _: int) -> chat_server.Reply:
        return chat_server.answered({"labels": [str(len(chat_server.item_of(seen)["texts"][-1]["text"]) % 4)]})

    with archive_server.serve(archive), chat_server.chat_server(reply) as (chat, _):
        yield {"ARCHIVE": archive.url, "CHAT": chat}


def copy(source: str, target: str) -> None:
    """A step: copies a file or folder."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if Path(source).is_dir() else shutil.copy)(source, target)


def labelled(source: str, target: str) -> None:
    """A step: items of a scan, with a label each."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    items = [json.loads(line) for line in Path(source).read_text().splitlines()]
    _jsonl(Path(target), [{**item, "label": [LABELS[int(item["topic_id"]) % 5]]} for item in items])


def page(store: str, path: str) -> str:
    """A page of a store as a browser gets it, without markup."""
    with served(Path(store)) as desk:
        browser = Browser(desk.addresses[0])
        browser.enter("ann")
        return re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>|\s+", " ", browser.get(f"/{path}").text, flags=re.S)


def _judges(folder: Path) -> None:
    """Grades of two people, of models, and of one that graded more pairs; runs."""
    every = assessors_example.people()
    few = {topic: dict(list(grades.items())[:12]) for topic, grades in every.items()}
    judges = {"people": few, "more": assessors_example.erring(every, 0.3)}
    shares = {"good": 0.1, "second": 0.2, "bad": 0.9}
    judges |= {name: assessors_example.erring(few, share, seed) for seed, (name, share) in enumerate(shares.items())}
    for name, grades in judges.items():
        assessors_example.write_qrels(grades, folder / f"{name}.qrels")
    for name, run in assessors_example.runs(every, 6).items():
        assessors_example.write_run(run, folder / f"{name}.run")


def _log(folder: Path, draw: random.Random) -> None:
    """An annotation log with texts, what was judged of it, runs of its documents, triples of its pairs."""
    rows: list[dict[str, Any]] = []
    for number in range(120):
        places = range(draw.choice((10, 10, 7)))
        shown = [{"doc_id": f"d{number}-{place}", "text": f"Text {number} of {place} " * 3} for place in places]
        row = {
            "query_id": f"q{number}",
            "query": f"query {number}",
            "query_type": draw.choice(("PERSON", "ENTITY", "")),
        }
        rows.append({**row, "shown": shown, "selected": [one["doc_id"] for one in shown if draw.random() < 0.1]})
    texts = [one for row in rows for one in row["shown"]]
    pairs = [(row["query_id"], one) for row in rows for one in row["selected"]]
    lost = [row["query_id"] for row in rows if not row["selected"]]
    _jsonl(folder / "log.jsonl", rows)
    _jsonl(folder / "full.jsonl", texts)
    _jsonl(folder / "docs.jsonl", [*texts[5:], {"doc_id": "twin", "text": texts[9]["text"]}])
    _jsonl(folder / "later.jsonl", texts[::2])
    _lines(folder / "qrels", (f"{query} 0 {one} 1" for query, one in pairs))
    _lines(folder / "discarded.qrels", (f"{query} 0 d{query[1:]}-3 {draw.randrange(2)}" for query in lost))
    _lines(folder / "discarded.txt", lost)
    _lines(folder / "survived.txt", (row["query_id"] for row in rows if row["selected"]))
    _lines(folder / "kinds.tsv", (f"q{number}\t{'even' if number % 2 == 0 else 'odd'}" for number in range(110)))
    _lines(folder / "topics.tsv", (f"{row['query_id']}\t{row['query']}" for row in rows))
    _lines(folder / "triples.tsv", ("\t".join((*draw.choice(pairs), draw.choice(texts)["doc_id"])) for _ in range(200)))
    for name in ("r0", "r1", "r2"):
        ranked = ((row["query_id"], draw.sample(row["shown"], len(row["shown"]))) for row in rows)
        lines = (
            f"{query} Q0 {one['doc_id']} {n} {20 - n} x" for query, some in ranked for n, one in enumerate(some, 1)
        )
        _lines(folder / f"{name}.run", lines)


def _store(folder: Path, name: str, draw: random.Random) -> None:
    """A judging store in which two people, a model and an adjudicator spoke; of "leakage" also an empty one."""
    scheme = load_scheme(name)
    items = []
    for number in range(24):
        words = f"words {number} about slate roofs. It costs {number}%."
        parts = ("query", *VIEWS[scheme.view])
        texts = tuple(Text(part, f"{part} {words}", f"{part[0]}{number}") for part in parts)
        rest = {"score": 0.8 + number / 120, "dataset": ("news", "web")[number % 2], "probability": 0.5}
        title = f"slate roofs {number % 4}"
        items.append(Item(f"i{number}", str(number % 4), title, variant="roofs" * (number % 2), texts=texts, **rest))
    groups = [one.name for one in scheme.groups if one.required] or [""]
    alone = [one.name for one in scheme.choices if one.alone]
    first: dict[str, list[str]] = {}
    for item in items:
        some = [[one.name for one in scheme.choices if one.group == group and not one.alone] for group in groups]
        some[0] += [text.name for text in item.texts[1:] if scheme.per_text]
        first[item.item_id] = alone[: draw.random() < 0.3] or [draw.choice(names) for names in some]
    others = {
        who: {one: draw.choice((labels, first["i3"])) for one, labels in first.items()} for who in ("bob", "robot")
    }
    annotators = [Annotator("robot", "model", "tiny at 0"), Annotator("judy", "adjudicator")]
    path = store_of(folder / f"{name}.judged", scheme, items, {"ann": first, **others}, annotators)
    with Store.open(path) as store:
        store.record("i5", "judy", "adjudicate", first["i5"])
        store.record("i6", "bob", "skip", reason="too hard")
    if name == "leakage":
        store_of(folder / "empty.judged", scheme, items, {"ann": {}})
        judge.export(path, folder / "leakage.csv", annotators=("ann",))


def _grids(folder: Path) -> None:
    """Results of experiments for the reports of each kind, one of them unfinished."""
    gains = {"T5_Max": 1.0, "BM25": 0.5, "T5_Min": 0.0, "r = 1": 0.0, "r = 5": 0.9, "all": 1.0}
    north = ("north",)

    def strength(collection: str, one: Any, *_: Any) -> float:
        return gains[one.label.rpartition(" | ")[2]]

    small_grid.leakage(folder / "leakage", topics=8)
    small_grid.leakage(folder / "part", topics=8, unfinished=lambda cell: ("done", "open", "failed")[cell.seed])
    versions = [
        SetDesign(f"{block}-{name}", "by-version", north, (200,), "rows.jsonl", label=f"{block} | {name}")
        for block in ("V1", "Random")
        for name in list(gains)[:3]
    ]
    depths = [
        SetDesign(f"d{place}", "by-depth", north, (200,), "rows.jsonl", label=name)
        for place, name in enumerate(list(gains)[3:])
    ]
    ways = [ModelDesign(f"t5-{way}", "monot5:t5", aggregates=(way,), policy="sliding:9:9") for way in ("first", "max")]
    models = [ModelDesign("monot5", "monot5:t5-base", seeds=(0, 1))]
    plan = small_grid.design(versions, ways, north, ReportDesign(kind="transfer", baseline="V1 | T5_Min"))
    small_grid.write_grid(folder / "transfer", plan, strength, topics=8)
    plan = small_grid.design(depths, models, north, ReportDesign(kind="survivorship", baseline="all"))
    small_grid.write_grid(folder / "survivorship", plan, strength, topics=8)


def _derived(folder: Path, draw: random.Random) -> None:
    """What is made of other files: a later query log, runs with a header or without scores, other judgments."""
    train = [line.split("\t") for line in (folder / "train.tsv").read_text().splitlines()]
    run = (folder / "b1.run").read_text()
    ranks = [line.split() for line in (folder / "c1.run").read_text().splitlines()]
    relevant = (folder / "pool/all.qrels").read_text().splitlines()
    documents = (folder / "docs.jsonl").read_text()
    later = [*train[:1500], *(["x" + key, text] for key, text in train[-900:])]
    pages = [{"doc_id": f"d{number}", "url": f"http://a.org/{number}", "body": "b"} for number in range(6)]
    _lines(folder / "later.tsv", map("\t".join, later))
    _lines(folder / "ids.tsv", (f"{number}\t{key}" for number, (key, _) in enumerate(train)))
    _lines(folder / "table.csv", ["id,first,second", *(f"{key},{text},{text[::-1]}" for key, text in train[:300])])
    _lines(folder / "other.qrels", (f"{row[0]} 0 {row[2]} {int(int(row[3]) < 9)}" for row in ranks))
    _lines(folder / "pool/sparse.qrels", relevant[::2])
    _lines(folder / "transfer/ids.tsv", ["old\tnew", *(f"old{number}\tn{30 - number}" for number in range(1, 28))])
    _lines(folder / "transfer/new.qrels", (f"{topic} 0 n{30 - topic} {draw.randrange(2)}" for topic in range(1, 25)))
    _jsonl(folder / "archive.jsonl", pages)
    (folder / "headed.run").write_text(HEADER + run)
    (folder / "constant.run").write_text(re.sub(r"(\d+) \d+ b1", r"\1 5 x", run))
    (folder / "footer.jsonl").write_text(documents.replace('"}\n', f' {FOOTER}"}}\n'))
    (folder / "suites.yaml").write_text((folder / "suite.yaml").read_text().replace("docs.jsonl", "footer.jsonl"))


def _lines(path: Path, lines: Iterator[str] | Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def _jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    _lines(path, [json.dumps(row) for row in rows])
