"""Writes the small collection of the sample: documents, judgments and runs with planted faults, and their truth.

    python scripts/make_sample_collection.py      writes src/truerank/sources/sample/collection/

The topics are those of the test set sample-news, of which 26 leak into the sample's training queries. The texts are
made from sentences that were written for this project and stand below; same seed, same bytes. The runs come from no
search engine: each gives a document its grade times what the run is able to see, and noise. So it is known which run
is better without the faults.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / "src" / "truerank" / "sources" / "sample"
SEED = 20261122
POOL = 10
DEPTH = 30
#: Documents of each topic: very relevant, relevant, look-alikes, others that share words.
KINDS = ((2, 3), (1, 4), (0, 6), (0, 5))
FILLERS = 160
#: What a run sees of a grade, and how much of it on topics that its training data hold.
SIGHT = {
    "bm25": (1.0, 1.0),
    "tuned-encoder": (0.93, 2.6),
    "plain-encoder": (0.8, 0.8),
    "expanded": (1.25, 1.25),
    "late-run": (1.0, 1.0),
}
NOISE = 0.75
COPIES, CONTRADICTED, DANGLING, UNJUDGED, LOST, BROKEN = 8, 3, 6, 14, 9, 12

PLACES = (
    "Ardfield", "Brenmouth", "Calder Bay", "Dunvale", "Eastmere", "Fairholt", "Glenrow", "Harwick", "Inverlea", "Kelby",
    "Larchmont", "Millbrae", "Norhaven", "Oakridge", "Penhale", "Quarrytown", "Rosehithe", "Stanmoor", "Thornbury",
)  # fmt: skip
NAMES = ("Ada Brandt", "Ivo Lund", "Maria Okoye", "Peter Hale", "Nuria Sands", "Tom Arkell", "Lena Voss", "Sam Idris")
MONTHS = ("January", "March", "April", "June", "August", "September", "November")
OPENINGS = (
    "{place}, {month}. A report published this week deals with {phrase}.",
    "{place}, {month}. The regional assembly spent two days on {phrase}.",
    "{place}, {month}. For the third time since {year}, {phrase} was before the committee.",
    "{place}, {month}. Figures released on Tuesday give the first full account of {phrase}.",
    "{place}, {month}. {name} has followed {phrase} for {number} years.",
)
CENTRES = (
    "It names {phrase} as the point on which the parties differ most, and gives {number} examples.",
    "Of {number} cases that were examined, most concern {phrase}; the oldest goes back to {year}.",
    "The authors asked {number} people about {phrase} and print their answers in full.",
    "What is known about {phrase} comes from documents that were kept closed until {year}.",
    "A second chapter compares {phrase} in four countries and finds no common rule.",
    "{name} told the hearing that {phrase} had been underestimated from the beginning.",
    "Spending on what the report calls {phrase} rose by {number} per cent after {year}.",
)
PASSING = (
    "In passing the text mentions {phrase}, without giving figures.",
    "One paragraph touches on {phrase}; the rest is about the budget of {place}.",
    "A footnote refers to {phrase} and to a study of {year}.",
)
CLOSINGS = (
    "A reply from the ministry is expected in {month}.",
    "The assembly meets again in {place}.",
    "The full text can be read in the town library of {place}.",
    "{name} called the result sobering but useful.",
    "Nobody was hurt, and no costs were given.",
)
ORDINARY = (
    "{place}, {month}. The market square will be closed for {number} days while new paving is laid.",
    "{place}, {month}. The choir of {place} celebrated its {number}th year with a concert in the old mill.",
    "{place}, {month}. A bus line between {place} and the harbour runs again after {number} weeks.",
    "{place}, {month}. Volunteers counted {number} herons along the canal, more than in {year}.",
    "{place}, {month}. The football club drew its last match of the season before {number} spectators.",
    "{place}, {month}. The bakery at the station was sold to {name}, who wants to open it in {month}.",
)
GONE = "Page not found. The page that you asked for does not exist or was moved. Error 404."


class Topic(NamedTuple):
    """A topic as far as the texts need it."""

    number: str
    phrases: tuple[str, ...]
    others: tuple[str, ...]
    leaks: bool


class Made(NamedTuple):
    """A document with the topic and grade that it was made for; no topic for a filler."""

    key: str
    title: str
    text: str
    topic: str
    grade: int


def read_topics() -> list[Topic]:
    """The topics of sample-news: words for what they ask for, and for what only looks alike."""
    truth = [line.split("\t") for line in (SAMPLE / "truth.tsv").read_text().splitlines()[1:]]
    leaking = {row[1] for row in truth if row[0] == "sample-news" and row[4] != "different topic"}
    found = []
    for block in re.split(r"\n\n(?=\d{4}\n)", (HERE / "sample" / "topics-news.txt").read_text().strip()):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        number = next((line for line in lines if line.isdigit()), "")
        if not number:
            continue
        phrases = [line[2:].strip() for line in lines if line[:2] in ("T ", "V ")]
        others = [line[2:].strip() for line in lines if line.startswith("x ")]
        found.append(Topic(number, tuple(p[:1].lower() + p[1:] for p in phrases), tuple(others), number in leaking))
    return found


def sentence(draw: random.Random, forms: tuple[str, ...], phrase: str = "") -> str:
    """A sentence with its places filled."""
    return draw.choice(forms).format(
        phrase=phrase, place=draw.choice(PLACES), month=draw.choice(MONTHS), name=draw.choice(NAMES),
        year=draw.randint(1987, 2019), number=draw.randint(3, 96),
    )  # fmt: skip


def documents(topics: list[Topic], draw: random.Random) -> list[Made]:
    """All documents in an order that tells nothing."""
    found = []
    for topic in topics:
        for kind, (grade, count) in enumerate(KINDS):
            for _ in range(count):
                own = topic.phrases if kind < 2 else topic.others or (draw.choice(topics).phrases[0],)
                phrase = draw.choice(own)
                body = [sentence(draw, OPENINGS, phrase if kind != 1 else draw.choice(topic.others or own))]
                if grade == 2:
                    body += [sentence(draw, CENTRES, one) for one in draw.sample(topic.phrases, 2)]
                elif grade == 1:
                    body += [sentence(draw, PASSING, phrase), sentence(draw, CLOSINGS)]
                else:
                    body += [sentence(draw, CENTRES, draw.choice(own)), sentence(draw, CLOSINGS)]
                body.append(sentence(draw, CLOSINGS))
                title = f"{phrase[:1].upper()}{phrase[1:]}"
                found.append((title, " ".join(body), topic.number, grade))
    for _ in range(FILLERS):
        found.append(("Local news", f"{sentence(draw, ORDINARY)} {sentence(draw, CLOSINGS)}", "", 0))
    draw.shuffle(found)
    return [Made(f"n{place:04d}", *one) for place, one in enumerate(found, start=1)]


def ranked(made: list[Made], topics: list[Topic], draw: random.Random) -> dict[str, dict[str, list[tuple[str, float]]]]:
    """Every run: by topic the documents and their scores, best first."""
    fillers = [one.key for one in made if not one.topic]
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for name, (plain, leaking) in SIGHT.items():
        runs[name] = {}
        for topic in topics:
            sight = leaking if topic.leaks else plain
            scores = {one.key: sight * one.grade + draw.gauss(0, NOISE) for one in made if one.topic == topic.number}
            scores |= {key: draw.gauss(-1.5, NOISE) for key in draw.sample(fillers, 16)}
            order = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:DEPTH]
            runs[name][topic.number] = [(key, round(score + 5, 2 if name == "bm25" else 4)) for key, score in order]
    # A run that lacks topics, as some do.
    del runs["expanded"]["1038"]
    del runs["expanded"]["1039"]
    return runs


def main() -> None:
    """Makes the collection, plants the faults, and writes everything with the truth."""
    draw = random.Random(SEED)
    topics = read_topics()
    made = documents(topics, draw)
    grades = {(one.topic, one.key): one.grade for one in made if one.topic}
    runs = ranked(made, topics, draw)
    pool = {
        (topic, key)
        for name, run in runs.items()
        if name != "late-run"
        for topic, rows in run.items()
        for key, _ in rows[:POOL]
    }
    qrels = {pair: grades.get(pair, 0) for pair in sorted(pool)}
    texts = {one.key: (one.title, one.text) for one in made}
    truth: dict[str, object] = {"leaked_topics": [topic.number for topic in topics if topic.leaks]}

    # Copies of relevant documents under other ids, which the encoder returns too and nobody judged.
    relevant = [pair for pair, grade in qrels.items() if grade == 2 and pair in dict.fromkeys(qrels)]
    copied = draw.sample(relevant, COPIES)
    copies = {f"n9{place:03d}": key for place, (_, key) in enumerate(copied, start=1)}
    for (topic, key), copy in zip(copied, copies, strict=True):
        texts[copy] = texts[key]
        rows = runs["tuned-encoder"][topic]
        place = next((at for at, row in enumerate(rows) if row[0] == key), 0)
        rows.insert(place + 1, (copy, round(rows[place][1] - 0.0001, 4)))
    truth["copies"] = copies
    contradicted = list(copies.items())[:CONTRADICTED]
    for (copy, key), (topic, _) in zip(contradicted, copied, strict=False):
        qrels[topic, copy] = 0
        del key
    truth["contradicted"] = [copy for copy, _ in contradicted]
    gone = [(topic.number, f"x{place:04d}") for place, topic in enumerate(draw.sample(topics, DANGLING), start=1)]
    qrels |= dict.fromkeys(gone, 2)
    truth["judgments_of_missing_documents"] = [list(pair) for pair in gone]
    hidden = draw.sample([pair for pair in sorted(pool) if grades.get(pair, 0) == 0], UNJUDGED)
    for pair in hidden:
        qrels.pop(pair, None)
    truth["unjudged"] = [list(pair) for pair in hidden]
    truth["not_pooled"] = ["late-run"]

    # The documents as they were judged: some are gone today, and some are error pages.
    before = dict(texts)
    judged_relevant = [key for (topic, key), grade in qrels.items() if grade > 0 and key in texts]
    changed = draw.sample(sorted(set(judged_relevant) - set(copies.values()) - set(copies)), LOST + BROKEN)
    for key in changed[:LOST]:
        del texts[key]
    for key in changed[LOST:]:
        texts[key] = ("Not found", GONE)
    truth["lost"], truth["error_pages"] = changed[:LOST], changed[LOST:]

    # A model that grades like people, but for what the encoder ranks first.
    favoured = {(topic, key) for topic, rows in runs["tuned-encoder"].items() for key, _ in rows[:5]}
    model = {}
    for pair, grade in sorted(qrels.items()):
        shown = grade + (draw.random() < 0.45) if pair in favoured else grade - (draw.random() < 0.1)
        model[pair] = min(2, max(0, shown))
    truth["model_favours"] = "tuned-encoder"
    truth["sight"] = {name: {"elsewhere": one, "on leaked topics": two} for name, (one, two) in SIGHT.items()}
    write(texts, before, qrels, model, runs, truth)


def write(texts, before, qrels, model, runs, truth) -> None:  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Writes all files; compressed ones have no time in them."""
    folder = SAMPLE / "collection"
    for name, held in (("docs", texts), ("docs-as-judged", before)):
        lines = (json.dumps({"_id": key, "title": one[0], "text": one[1]}) for key, one in sorted(held.items()))
        packed(folder / f"{name}.jsonl.gz", lines)
    for name, held in (("people", qrels), ("model", model)):
        (folder / f"{name}.qrels").write_text("".join(f"{t} 0 {key} {g}\n" for (t, key), g in sorted(held.items())))
    for name, run in runs.items():
        rows = (
            f"{topic} Q0 {key} {rank} {score:g} {name}"
            for topic, scored in run.items()
            for rank, (key, score) in enumerate(scored, start=1)
        )
        packed(folder / f"{name}.run.gz", rows)
    teams = {"bm25": "okapi", "expanded": "okapi", "tuned-encoder": "vectors", "plain-encoder": "others"}
    table = "".join(f"{name},{teams.get(name, name)}\n" for name in runs)
    (folder / "runs.csv").write_text(f"run,team\n{table}")
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    (folder / "check.yaml").write_text(
        "# truerank check sample: the claim that the tuned encoder beats BM25, on a collection with planted faults.\n"
        "test: ../sample-news.trec\n"
        "qrels: people.qrels\n"
        f"run: [{', '.join(f'{name}.run.gz' for name in runs)}]\n"
        "baseline: bm25\n"
        "system: tuned-encoder\n"
        "train: [../sample-clicks.tsv.gz, ../sample-questions.tsv.gz]\n"
        "labels: [../labels.jsonl]\n"
        "docs: docs.jsonl.gz\n"
        "previous: docs-as-judged.jsonl.gz\n"
        "model_judgments: [model=model.qrels]\n"
        "encoder: packaged\n"
        "backend: onnx\n"
    )


def packed(path: Path, lines) -> None:  # type: ignore[no-untyped-def]
    """Writes lines, compressed without a time."""
    held = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=held, mtime=0, compresslevel=9) as stream:
        stream.write("".join(f"{line}\n" for line in lines).encode())
    path.write_bytes(held.getvalue())


if __name__ == "__main__":
    main()
