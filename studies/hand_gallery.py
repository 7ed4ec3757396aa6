"""Compute figures of the gallery a second time, from the files themselves.

    python studies/hand_gallery.py DATA docs/gallery

DATA is the folder of real data, docs/gallery holds gallery.csv, gallery.json, overlaps.csv and the pages. This imports
nothing from truerank. The definitions are those of the gallery's columns and pages, docs/floors.md,
docs/collection-findings.md, docs/tutorial-collection.md, docs/leakage-matrix.md and docs/leaderboard.md. Where these
leave something open, OPEN says what was taken.

It prints a row for each figure: on how many benchmarks it was compared, how many are equal (1e-9), and the largest
difference; then each figure that differs. Exit status 1 if one does. A floor that was made of other splits is right if
it is inside of the interval on the page.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import re
import shlex
import sys
import tarfile
import unicodedata
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, stats

Floats = NDArray[np.float64]
TOLERANCE = 1e-9
NO_BLANKS = ("miracl-zh", "miracl-ja", "miracl-th")
SPLITS, LISTED = 20, 10
DISCOUNT = 1 / np.log2(np.arange(2, 12))


# Reading


def text(file: Path) -> str:
    raw = file.read_bytes()
    return (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode("utf-8", "replace")


class Topic(NamedTuple):
    name: str
    text: str
    description: str = ""

    @property
    def both(self) -> str:
        """OPEN: that a topic with a title and a description is compared by both."""
        return f"{self.text} {self.description}".strip()


def topics(file: Path) -> list[Topic]:
    content = text(file)
    if ".tsv" in file.name:
        rows = [line.split("\t", 1) for line in content.split("\n") if line.strip()]
        return [Topic(row[0], row[1]) for row in rows if len(row) == 2 and row[1].strip()]
    if file.suffix == ".xml":
        return [
            Topic(str(item.get("number")), item.findtext("query") or "", item.findtext("description") or "")
            for item in ET.fromstring(content).iter("topic")
        ]
    output = []
    for block in re.findall(r"<top>(.*?)(?=<top>|\Z)", content, re.DOTALL):
        name = re.search(r"<num>\s*(?:Number:)?\s*([^\s<]+)", block)
        title = re.search(r"<title>(.*?)(?=<|\Z)", block, re.DOTALL)
        description = re.search(r"<desc>\s*(?:Description:)?(.*?)(?=<|\Z)", block, re.DOTALL)
        if name and title:
            output.append(Topic(name[1], title[1].strip(), description[1].strip() if description else ""))
    for block in re.findall(r"<DOC>(.*?)</DOC>", content, re.DOTALL):
        name = re.search(r"<DOCNO>\s*(\S+)\s*</DOCNO>(.*)", block, re.DOTALL)
        if name:
            output.append(Topic(name[1], name[2].strip()))
    return output


class Judgments(NamedTuple):
    by_topic: dict[str, dict[str, int]]
    rows: int

    @property
    def pairs(self) -> int:
        return sum(map(len, self.by_topic.values()))


@cache
def judgments(file: Path) -> Judgments:
    output: dict[str, dict[str, int]] = {}
    rows = 0
    for line in text(file).splitlines():
        if line.strip():
            topic, _, document, grade = line.split()
            output.setdefault(topic, {}).setdefault(document, int(grade))
            rows += 1
    return Judgments(output, rows)


def documents(file: Path) -> set[str]:
    if ".tar" in file.name:
        with tarfile.open(file) as archive:
            return {Path(member.name).stem for member in archive if member.isfile()}
    return set(re.findall(r"<DOCNO>\s*(\S+?)\s*</DOCNO>", text(file)))


def words(content: str) -> str:
    """Up to case, blanks and punctuation. OPEN: that numbers and vowel signs are parts of words."""
    folded = unicodedata.normalize("NFC", content).casefold()
    return " ".join("".join(sign if unicodedata.category(sign)[0] in "LMN" else " " for sign in folded).split())


def same(content: str) -> str:
    """For 'case, blanks and marks at the end do not count'."""
    seen = "".join(sign for sign in unicodedata.normalize("NFC", content) if unicodedata.category(sign) != "Cf")
    folded = " ".join(seen.casefold().split())
    while folded and unicodedata.category(folded[-1])[0] in "PSZ":
        folded = folded[:-1]
    return folded


# Figures of a benchmark


def relevant(judged: Mapping[str, int]) -> list[str]:
    return [document for document, grade in judged.items() if grade >= 1]


def ideal(judged: Mapping[str, int]) -> float:
    best = sorted((grade for grade in judged.values() if grade > 0), reverse=True)[:LISTED]
    return float(DISCOUNT[: len(best)] @ np.array(best, dtype=float)) if best else 0.0


def ceilings(qrels: Judgments, existing: set[str] | None) -> tuple[Floats, Floats]:
    """By topic: nDCG@10 and R@100 of the judged documents that exist, the highest grade first."""
    gains, recalls = [], []
    for judged in qrels.by_topic.values():
        there = {document: grade for document, grade in judged.items() if existing is None or document in existing}
        best = ideal(judged)
        gains.append(ideal(there) / best if best else 0.0)
        recalls.append(min(100, len(relevant(there))) / len(relevant(judged)) if relevant(judged) else 0.0)
    return np.array(gains), np.array(recalls)


def random_order(qrels: Judgments) -> float | None:
    """Each judged document is at each rank with the same chance, so that each rank has their mean gain."""
    if all(grade >= 1 for judged in qrels.by_topic.values() for grade in judged.values()):
        return None
    values = []
    for judged in qrels.by_topic.values():
        mean = sum(max(grade, 0) for grade in judged.values()) / len(judged)
        best = ideal(judged)
        values.append(mean * DISCOUNT[: min(LISTED, len(judged))].sum() / best if best else 0.0)
    return float(np.mean(values))


class Gains(NamedTuple):
    """Gain over the ideal DCG@10: a row for each topic, a column for each relevant document, as in the file."""

    matrix: sparse.csr_matrix
    columns: dict[str, int]


def gains(qrels: Judgments) -> Gains:
    columns: dict[str, int] = {}
    rows, places, values = [], [], []
    for row, judged in enumerate(qrels.by_topic.values()):
        best = ideal(judged)
        for document in relevant(judged):
            rows.append(row)
            places.append(columns.setdefault(document, len(columns)))
            values.append(judged[document] / best)
    return Gains(sparse.csr_matrix((values, (rows, places)), shape=(len(qrels.by_topic), len(columns))), columns)


def best_list(matrix: sparse.csr_matrix, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """OPEN: the ten with the largest sum of gain over the ideal DCG; equal ones in the order of the file."""
    total = np.asarray(matrix[members].sum(axis=0)).ravel()
    order = np.argsort(-np.round(total, 12), kind="stable")[:LISTED]
    return order[total[order] > 0]


def of_list(matrix: sparse.csr_matrix, chosen: NDArray[np.int64], members: NDArray[np.int64]) -> Floats:
    return np.asarray(matrix[members][:, chosen] @ DISCOUNT[: len(chosen)]).ravel()


def floor(qrels: Judgments) -> tuple[float, int]:
    """Lists of one half of the topics scored on the other, in 20 splits; in how many topics one of them scores.

    OPEN: the splits, and that halves are of topics, not of clusters."""
    matrix = gains(qrels).matrix
    n = matrix.shape[0]
    draw = np.random.default_rng(20)
    total = np.zeros(n)
    for _ in range(SPLITS):
        order = draw.permutation(n)
        halves = order[: n // 2], order[n // 2 :]
        for left, right in (halves, halves[::-1]):
            total[right] += of_list(matrix, best_list(matrix, left), right)
    return float(total.mean() / SPLITS), int((total > 0).sum())


def clusters(qrels: Judgments) -> int:
    """Topics that share relevant documents, directly or through others."""
    shared = gains(qrels).matrix
    return int(sparse.csgraph.connected_components(shared @ shared.T, directed=False)[0])


def surplus(keys: Iterable[str]) -> set[int]:
    """Places of what was there before. OPEN: of two equal topics one counts."""
    before: set[str] = set()
    return {place for place, key in enumerate(keys) if key in before or before.add(key)}  # type: ignore[func-returns-value]


def near_duplicates(texts: Sequence[str]) -> int:
    """Jaccard similarity of runs of four letters of at least 0.8 to an earlier topic. OPEN: without duplicates."""
    plain = [words(item) for item in texts]
    equal = surplus(plain)
    vocabulary: dict[str, int] = {}
    rows, columns = [], []
    for row, item in enumerate(plain):
        for run in sorted({item[start : start + 4] for start in range(max(1, len(item) - 3))}):
            rows.append(row)
            columns.append(vocabulary.setdefault(run, len(vocabulary)))
    matrix = sparse.csr_matrix(
        (np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=(len(plain), len(vocabulary))
    )
    size = np.asarray(matrix.sum(axis=1)).ravel()
    output: set[int] = set()
    for start in range(0, len(plain), 500):
        common = (matrix[start : start + 500] @ matrix.T).tocoo()
        left, right, both = common.row + start, common.col, common.data
        alike = (left > right) & (both >= 0.8 * (size[left] + size[right] - both) - 1e-12)
        output |= {
            int(topic) for topic, other in zip(left[alike], right[alike], strict=True) if plain[topic] != plain[other]
        }
    return len(output - equal)


def twins(qrels: Judgments) -> int:
    """Jaccard similarity of relevant documents of 0.8 to an earlier topic; both have three. OPEN: which counts."""
    holders: dict[str, list[int]] = defaultdict(list)
    sets = [frozenset(relevant(judged)) for judged in qrels.by_topic.values()]
    output = 0
    for place, members in enumerate(sets):
        common = Counter(other for document in members for other in holders[document])
        output += len(members) >= 3 and any(
            len(sets[other]) >= 3 and 10 * both >= 8 * (len(members) + len(sets[other]) - both)
            for other, both in common.items()
        )
        for document in members:
            holders[document].append(place)
    return output


@cache
def in_standard_errors(n: int) -> float:
    critical = float(stats.t.ppf(0.975, n - 1))
    about = critical + float(stats.t.ppf(0.8, n - 1))

    def lacking(effect: float) -> float:
        return float(stats.nct.sf(critical, n - 1, effect) + stats.nct.cdf(-critical, n - 1, effect)) - 0.8

    return float(optimize.brentq(lacking, 0.7 * about, 1.3 * about, xtol=1e-13, rtol=1e-14))


def smallest(n: int, deviation: float) -> float:
    return in_standard_errors(n) * deviation / float(np.sqrt(n))


# Runs and boards


def ndcg10(run: Path, qrels: Judgments) -> Floats:
    """As trec_eval: equal scores by document id descending."""
    ranked: dict[str, list[tuple[float, bytes, str]]] = defaultdict(list)
    for line in text(run).splitlines():
        topic, _, document, _, value, _ = line.split()
        ranked[topic].append((float(np.float32(value)), document.encode(), document))
    values = []
    for topic, judged in qrels.by_topic.items():
        first = [document for *_, document in sorted(ranked.get(topic, []), reverse=True)[:LISTED]]
        gained = np.array([max(judged.get(document, 0), 0) for document in first], dtype=float)
        values.append(float(DISCOUNT[: len(first)] @ gained) / ideal(judged) if ideal(judged) else 0.0)
    return np.array(values)


RUNS = {
    "dl19-passage": {
        "monoT5": "survivorship/runs/monot5.dl19.run.gz",
        "monoT5, simulated depth 1": "survivorship/runs/monot5-sim1.dl19.run.gz",
        "monoT5, simulated depth 5": "survivorship/runs/monot5-sim5.dl19.run.gz",
    },
    "core17": {"BM25 (Anserini)": "spire22/runs/nyt-common-core-2017-bm25-anserini.run.gz"},
    "core18": {"BM25 (Anserini)": "spire22/runs/wapo-v2-common-core-2018-bm25-anserini.run.gz"},
}


class Result(NamedTuple):
    model: str
    revision: str
    task: str
    splits: tuple[str, ...]  # with a score
    score: float | None


def mteb(file: Path) -> list[Result]:
    output = []
    with tarfile.open(fileobj=io.BytesIO(file.read_bytes())) as archive:
        for member in archive:
            parts = Path(member.name).parts
            if not member.isfile() or parts[-1] == "model_meta.json" or not parts[-1].endswith(".json"):
                continue
            qrels = json.load(archive.extractfile(member))  # type: ignore[arg-type]
            # Older files have the splits beside the rest, each with one record.
            splits = qrels.get("scores") or {name: [rows] for name, rows in qrels.items() if isinstance(rows, dict)}
            values = [row.get("ndcg_at_10") for row in splits.get("test") or next(iter(splits.values()), [])]
            value = float(np.mean(values)) if values and all(item is not None for item in values) else None
            output.append(Result(parts[-3], parts[-2], parts[-1].removesuffix(".json"), tuple(sorted(splits)), value))
    return output


def board(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """By task and model: the fullest revision, and others where it lacks a task. OPEN: which of equally full ones."""
    size = Counter((item.model, item.revision) for item in results if item.score is not None)
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for item in sorted(results, key=lambda item: (-size[item.model, item.revision], item.revision)):
        if item.score is not None:
            scores[item.task].setdefault(item.model, item.score)
    return scores


def gaps(scores: Sequence[float], n: int | None, first: int = 50) -> dict[str, Any]:
    ordered = sorted(scores, reverse=True)
    ahead = ordered[:first]
    steps = [high - low for high, low in itertools.pairwise(ahead)]
    line: dict[str, Any] = {
        "systems": len(ordered),
        "first": len(ahead),
        "best": ahead[0],
        "median_gap": median(steps),
        "largest_gap": max(steps),
    }
    line |= {"span": ahead[0] - ahead[-1], "neighbours": len(steps)}
    for deviation in ("0.15", "0.20", "0.25") if n else ():
        need = smallest(n or 0, float(deviation))
        line[f"apart {deviation}"] = sum(step >= need for step in steps)
        line[f"near_best {deviation}"] = sum(ahead[0] - score < need for score in ordered[1:])
    return line


def together(differences: Floats) -> tuple[Floats, Floats]:
    """p of each pair alone, and among all of these pairs.

    Differences are studentised and compared with their largest value under random signs of whole tasks
    (docs/leaderboard.md); here under all signs. OPEN: what studentises a draw, here its own standard error.
    Steps after the first would only add pairs. Pairs without any difference are left out."""
    m = differences.shape[1]
    signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=m - 1)])
    highest = np.zeros(len(signs))
    alone, observed = [], []
    for block in np.array_split(differences, max(1, len(differences) // 50)):
        means = np.abs(signs @ block.T) / m
        t = means / np.sqrt(np.maximum(((block**2).mean(axis=1) - means**2) / (m - 1), 1e-30))
        highest = np.maximum(highest, t.max(axis=1))
        alone.append((t >= t[0] - 1e-9).mean(axis=0))
        observed.append(t[0])
    return np.concatenate(alone), np.array([(highest >= item - 1e-9).mean() for item in np.concatenate(observed)])


class Neighbours(NamedTuple):
    models: int
    alone: int
    among_neighbours: int
    among_pairs: int


def neighbours(scores: Mapping[str, Mapping[str, float]], tasks: Sequence[str], first: int = 50) -> Neighbours:
    """Models with all tasks; neighbours of the first that differ: alone, among all neighbours, among their pairs."""
    models = [model for model in scores[tasks[0]] if all(model in scores[task] for task in tasks)]
    table = np.array([[scores[task][model] for task in tasks] for model in models])
    ordered = table[np.argsort(-table.mean(axis=1), kind="stable")]
    steps = ordered[:-1] - ordered[1:]
    told = np.flatnonzero(np.abs(steps).max(axis=1) > 1e-9)
    among_neighbours = together(steps[told])[1][told < first - 1]
    ahead = ordered[:first]
    left, right = np.triu_indices(len(ahead), 1)
    kept = np.abs(ahead[left] - ahead[right]).max(axis=1) > 1e-9
    left, right = left[kept], right[kept]
    beside = right - left == 1
    differences = ahead[left] - ahead[right]
    alone, _ = together(differences[beside])
    among_pairs = together(differences)[1][beside]
    return Neighbours(len(models), *(int((p <= 0.05).sum()) for p in (alone, among_neighbours, among_pairs)))


# Comparison


class Tally:
    def __init__(self) -> None:
        self.compared: Counter[str] = Counter()
        self.equal: Counter[str] = Counter()
        self.largest: dict[str, float] = {}
        self.kinds: dict[str, str] = {}
        self.notes: list[str] = []

    def put(
        self,
        figure: str,
        where: str,
        theirs: Any,
        ours: Any,
        *,
        inside: tuple[float, float] | None = None,
        open_: str = "",
    ) -> None:
        """`inside`: ours is right in this interval; `open_`: why a difference is not an error."""
        self.compared[figure] += 1
        theirs, ours = (None if value == "" else value for value in (theirs, ours))
        if isinstance(ours, str) or theirs is None or ours is None:
            equal, size = str(theirs) == str(ours), None
        else:
            size = abs(float(theirs) - float(ours))
            equal = size <= TOLERANCE * max(1, abs(float(ours)))
            self.largest[figure] = max(self.largest.get(figure, 0.0), size)
        self.equal[figure] += equal
        if not equal and not (inside and inside[0] - TOLERANCE <= float(ours) <= inside[1] + TOLERANCE):
            kind, why = ("OPEN", f" ({open_})") if open_ else ("DIFFERS", "")
            self.notes.append(f"{kind} {figure} | {where}: the gallery has {theirs}, here {ours}{why}")
        elif not equal:
            self.kinds[figure] = "the others inside of the interval on the page"

    def show(self) -> int:
        print(f"{'figure':46} {'compared':>8} {'equal':>6} {'largest difference':>19}")
        for figure, count in self.compared.items():
            size = f"{self.largest[figure]:.3g}" if figure in self.largest else "–"
            print(f"{figure:46} {count:8} {self.equal[figure]:6} {size:>19}  {self.kinds.get(figure, '')}".rstrip())
        print(*self.notes, sep="\n")
        wrong = sum(note.startswith("DIFFERS") for note in self.notes)
        count, equal = sum(self.compared.values()), sum(self.equal.values())
        print(f"{len(self.compared)} kinds of figures, {count} values, {equal} equal, {wrong} differ")
        return 1 if wrong else 0


def options(command: str) -> dict[str, str]:
    parts = shlex.split(command)[3:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def pages_table(file: Path) -> dict[str, list[str]]:
    """The first table of a page, by its first cell."""
    lines = [
        line
        for line in file.read_text(encoding="utf-8").partition("## In figures")[2].partition("\n## ")[0].splitlines()
        if line.startswith("|")
    ]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {row[0]: row[1:] for row in rows}


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


def three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def whole(value: float) -> str:
    """OPEN: medians between two numbers."""
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


class Row:
    """A row of gallery.csv, with its entry in gallery.json and its column on the page."""

    def __init__(self, gallery: Path, line: dict[str, str], entry: dict[str, Any], column: int, tally: Tally) -> None:
        self.page, self.line, self.entry, self.tally = line["page"], line, entry, tally
        self.name = f"{line['page']} {line['version']}".strip()
        self.files = options(line["command"])
        self.counts = Counter({finding["code"]: finding["count"] for finding in entry["findings"]})
        self.table = {title: cells[column] for title, cells in pages_table(gallery / f"{self.page}.md").items()}

    def csv(self, figure: str, column: str, ours: Any, **how: Any) -> None:
        self.tally.put(figure, self.name, self.line[column], ours, **how)

    def finding(self, code: str, what: str, ours: int, **how: Any) -> None:
        self.tally.put(f"finding {code}: {what}", self.name, self.counts[code], ours, **how)

    def shown(self, title: str, ours: str) -> None:
        self.tally.put(f"page: {title}", self.name, self.table[title], ours)


def of_topics(row: Row, data: Path, queries: Sequence[Topic]) -> None:
    plain = [words(topic.both) for topic in queries]
    repeated = len(surplus(plain))
    row.csv("duplicate topics, one of two", "duplicate_topics", repeated)
    row.shown("topics that repeat the text of an earlier one", number(repeated))
    row.finding("TOPC05", "duplicate topics", repeated)
    open_ = "the page does not say how scripts without blanks are cut" if row.page in NO_BLANKS else ""
    near = near_duplicates([topic.both for topic in queries])
    row.csv("near-duplicate topics", "near_duplicate_topics", near, open_=open_)
    if "--train" in row.files:
        # Scripts that write no blanks between words: a blank is then no boundary that counts.
        key = (lambda content: words(content).replace(" ", "")) if row.page in NO_BLANKS else words
        trained = {key(topic.text) for topic in topics(data / row.files["--train"])}
        row.finding("TOPC07", "topics in train", sum(key(topic.text) in trained for topic in queries))


def of_judgments(row: Row, data: Path, qrels: Judgments, queries: Sequence[Topic]) -> None:
    topics_of = qrels.by_topic.values()
    per_topic = [len(judged) for judged in topics_of]
    per_relevant = [len(relevant(judged)) for judged in topics_of]
    grades = sorted(Counter(grade for judged in topics_of for grade in judged.values()).items())
    row.csv("judged topics", "judged_topics", len(topics_of))
    row.csv("judgments", "judgments", qrels.pairs)
    row.shown("judgments", number(qrels.pairs))
    row.csv("relevant", "relevant", sum(per_relevant))
    row.csv("grades", "grades", " ".join(f"{grade}:{count}" for grade, count in grades))
    row.shown("judgments by grade", ", ".join(f"{grade}: {count:,}" for grade, count in grades))
    for name, values, title in (
        ("per_topic", per_topic, "judgments of a topic"),
        ("relevant", per_relevant, "relevant documents of a topic"),
    ):
        middle, least, most = median(values), min(values), max(values)
        row.csv(f"{title}: median", f"{name}_median", middle)
        row.csv(f"{title}: fewest", f"{name}_least", least)
        row.csv(f"{title}: most", f"{name}_most", most)
        row.shown(f"{title}: median (range)", f"{whole(middle)} ({least:,} to {most:,})")
    without = sum(count == 0 for count in per_relevant)
    row.tally.put(
        "topics without relevant documents", row.name, 0 if int(row.line["relevant_least"]) else None, without
    )
    row.csv("repeated judgments", "repeated_judgments", qrels.rows - qrels.pairs)
    if queries:
        row.finding("QREL21", "topics without judgments", sum(topic.name not in qrels.by_topic for topic in queries))
    row.csv("twin topics", "twin_topics", twins(qrels))
    if "--previous-qrels" in row.files:
        before = judgments(data / row.files["--previous-qrels"]).by_topic
        added = sum(len(judged.keys() - before.get(topic, {}).keys()) for topic, judged in qrels.by_topic.items())
        row.finding("VERS01", "judgments that were added", added)


def of_rankings(row: Row, qrels: Judgments, existing: set[str] | None) -> None:
    row.csv("random order, nDCG@10", "random_order", random_order(qrels))
    gain, recall = ceilings(qrels, existing)
    row.csv("ceiling, nDCG@10", "ceiling_ndcg10", gain.mean())
    row.csv("ceiling, R@100", "ceiling_r100", recall.mean())
    row.shown("**ceiling**: R@100", three(float(recall.mean())))
    row.finding("COLL07", "ceilings below 1", int((gain < 1 - 1e-12).sum() + (recall < 1 - 1e-12).sum()))
    row.tally.put("clusters of topics", row.name, row.entry["floor"]["clusters"], clusters(qrels))
    mean, scoring = floor(qrels)
    inside = float(row.line["floor_low"]), float(row.line["floor_high"])
    open_ = "of other splits; no list of the page's splits scored" if inside == (0.0, 0.0) else ""
    row.csv("floor, nDCG@10", "floor", mean, inside=inside, open_=open_)
    if row.counts["COLL16"]:
        open_ = "of other splits; the page does not say of which lists"
        row.finding("COLL16", "topics in which a list scores", scoring, open_=open_)


def benchmark(row: Row, data: Path) -> None:
    queries = topics(data / row.files["--topics"]) if "--topics" in row.files else []
    qrels = judgments(data / row.files["--qrels"]) if "--qrels" in row.files else None
    existing = documents(data / row.files["--docs"]) if "--docs" in row.files else None
    row.csv("topics", "topics", len(queries) or None)
    row.shown("topics", number(len(queries) or None))
    if existing is not None:
        row.tally.put("documents", row.name, row.entry["documents"], len(existing))
    if queries:
        of_topics(row, data, queries)
    if qrels:
        of_judgments(row, data, qrels, queries)
        of_rankings(row, qrels, existing)
    n = len(qrels.by_topic) if qrels else len(queries)
    for deviation in ("0.15", "0.20", "0.25"):
        row.csv(f"smallest difference at {deviation}", f"smallest_{deviation}", smallest(n, float(deviation)))


def runs(
    data: Path, benchmarks: Mapping[str, dict[str, Any]], tally: Tally, lines: Sequence[Mapping[str, str]]
) -> None:
    for page, files in RUNS.items():
        line = next(line for line in lines if line["page"] == page)
        qrels = judgments(data / options(line["command"])["--qrels"])
        entry = benchmarks[page]["runs"]
        scores = {name: ndcg10(data / file, qrels) for name, file in files.items()}
        for name, values in scores.items():
            tally.put("nDCG@10 of runs", f"{page}, {name}", entry["scores"][name], values.mean())
        deviations = []
        for pair in entry["pairs"]:
            difference = scores[pair["first"]] - scores[pair["second"]]
            deviations.append(float(difference.std(ddof=1)))
            where = f"{page}, {pair['first']} − {pair['second']}"
            tally.put("difference of runs", where, pair["difference"], difference.mean())
            tally.put("its standard deviation", where, pair["sd"], deviations[-1])
            tally.put(
                "smallest difference of two runs", where, pair["smallest"], smallest(len(difference), deviations[-1])
            )
        if deviations:
            tally.put("sd_of_runs", page, line["sd_of_runs"], median(deviations))
            tally.put(
                "smallest_of_runs", page, line["smallest_of_runs"], smallest(len(qrels.by_topic), median(deviations))
            )


def boards(data: Path, gallery: Mapping[str, Any], tally: Tally, lines: Sequence[Mapping[str, str]]) -> None:
    results = mteb(data / "mteb-results" / "results.tar.xz")
    scores = board(results)
    for entry in gallery["benchmarks"]:
        qrels, page = entry["board"], entry["page"]
        if not qrels:
            continue
        line = next(line for line in lines if line["page"] == page)
        n = int(line["judged_topics"])
        if qrels["board"].startswith("MTEB"):
            values = list(scores[qrels["board"].rpartition(" ")[2]].values())
            ours = gaps(values, n)
        else:
            with (data / "trec-dl" / f"{page}-runs.csv").open(newline="", encoding="utf-8") as file:
                ours = gaps([float(row["NDCG@10"]) for row in csv.DictReader(file)], n)
        theirs = {
            **qrels,
            **{
                f"{kind} {deviation}": count
                for kind in ("apart", "near_best")
                for deviation, count in qrels[kind].items()
            },
        }
        for key, value in ours.items():
            tally.put(f"published scores: {key}", page, theirs[key], value)
        if not qrels["other_topics"]:
            tally.put("neighbours_apart_0.15", page, line["neighbours_apart_0.15"], ours["apart 0.15"])
    whole_board = gallery["mteb"]
    tally.put("MTEB: models", "mteb", whole_board["systems"], len({item.model for item in results}))
    tally.put("MTEB: tasks", "mteb", whole_board["tasks"], len({item.task for item in results}))
    splits = {task: Counter(item.splits for item in results if item.task == task) for task in scores}
    mixed = [task for task, of in splits.items() if len({"test" in names for names in of}) > 1]
    tally.put("MTEB: tasks with several splits", "mteb", whole_board["findings"]["BOARD02"], len(mixed))
    shared = [task for task in sorted(scores) if task not in mixed]
    tally.put("MTEB: tasks compared", "mteb", " ".join(sorted(whole_board["tasks_compared"])), " ".join(shared))
    output = neighbours(scores, shared)
    tally.put("MTEB: models with all these tasks", "mteb", whole_board["compared"], output.models)
    tally.put("MTEB: neighbours that differ alone", "mteb", whole_board["neighbours_alone"], output.alone)
    tally.put(
        "MTEB: the same among all neighbours of all models",
        "mteb",
        whole_board["neighbours_family"],
        output.among_neighbours,
    )
    # Among all pairs of all 168 models p is higher still.
    tally.put("MTEB: the same among all pairs", "mteb", whole_board["neighbours_told"], output.among_pairs)
    everybody = {item.model for item in results}
    lacking = sum(any(model not in scores[task] for task in scores) for model in everybody)
    tally.put("MTEB: models that lack tasks", "mteb", whole_board["findings"]["BOARD04"], lacking)
    tally.put("MTEB: scores", "mteb", whole_board["cells"], sum(len(item.splits) for item in results))


LOGS = {
    "Million Query": "query-logs/million-query.tsv.gz",
    "Terabyte 2005": "query-logs/terabyte05-efficiency.tsv.gz",
    "MS MARCO dev and test": "query-logs/msmarco-dev-test.tsv.gz",
    "NQ dev": "query-logs/nq-dev.tsv.gz",
    "TriviaQA dev": "query-logs/trivia-dev.tsv.gz",
}


def overlaps(
    data: Path, gallery: Path, entries: Iterable[Mapping[str, Any]], lines: Sequence[Mapping[str, str]], tally: Tally
) -> None:
    """Topics that have the text of a query of a log, or of a topic of another set."""
    files: dict[str, Path] = {name: data / file for name, file in LOGS.items()}
    for entry in entries:
        line = next(line for line in lines if line["page"] == entry["page"])
        paths = options(line["command"])
        if "--topics" in paths:
            files.setdefault(entry.get("overlap_name") or entry["name"], data / paths["--topics"])
        if "--train" in paths:
            files[entry["name"].replace(" dev", " train")] = data / paths["--train"]
    texts: dict[str, list[list[str]]] = {}
    for name, file in files.items():
        texts[name] = [[same(part) for part in (topic.text, topic.description) if part] for topic in topics(file)]
    with (gallery / "overlaps.csv").open(newline="", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            test, training = row["test"], row["training"]
            if test not in texts or training not in texts:
                tally.notes.append(f"NOT COMPARED overlap of {test} and {training}: no file of that name")
                continue
            times = Counter(part for parts in texts[training] for part in parts)
            need = 2 if test == training else 1
            exact = sum(any(part and times[part] >= need for part in parts) for parts in texts[test])
            tally.put("overlaps: topics", f"{test}, {training}", row["topics"], len(texts[test]))
            tally.put(
                "overlaps: texts of the other set",
                f"{test}, {training}",
                row["training_texts"],
                sum(map(len, texts[training])),
            )
            tally.put("overlaps: same text", f"{test}, {training}", row["exact"], exact)


def index(gallery: Path, lines: Sequence[Mapping[str, str]], tally: Tally) -> None:
    """The table of the index against gallery.csv."""
    rows = [line for line in (gallery / "index.md").read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
    tally.put("index: rows", "index", len(rows), len(lines))
    names = ("topics", "judgments", "floor", "random", "R@100", "copies", "smallest")
    for text_, line in zip(rows, lines, strict=False):
        cells = [cell.strip() for cell in text_.strip("|").split("|")]
        count = line["judged_topics"] or line["topics"]
        shown = [number(int(count))]
        shown += [number(int(line[key])) if line[key] else "–" for key in ("judgments",)]
        shown += [three(float(line[key])) if line[key] else "–" for key in ("floor", "random_order", "ceiling_r100")]
        shown += [
            number(int(line["duplicate_topics"])) if line["duplicate_topics"] else "–",
            three(float(line["smallest_0.20"])),
        ]
        for name, theirs, ours in zip(names, [*cells[1:7], cells[8]], shown, strict=True):
            tally.put(f"index: {name}", f"{line['page']} {line['version']}".strip(), theirs, ours)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        raise SystemExit(__doc__)
    data, gallery = Path(arguments[0]), Path(arguments[1])
    with (gallery / "gallery.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    qrels = json.loads((gallery / "gallery.json").read_text(encoding="utf-8"))
    entries = {entry["page"]: entry for entry in qrels["benchmarks"]}
    tally, places = Tally(), Counter[str]()
    for line in lines:
        page = line["page"]
        place = places[page]
        places[page] += 1
        entry = entries[page]["versions"][place]
        assert entry["version"] == line["version"]
        benchmark(Row(gallery, line, entry, place, tally), data)
    runs(data, entries, tally, lines)
    boards(data, qrels, tally, lines)
    overlaps(data, gallery, qrels["benchmarks"], lines, tally)
    index(gallery, lines, tally)
    return tally.show()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
