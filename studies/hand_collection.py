"""A collection, its seven clean runs, and how a claim about two of them is written to files; for `hand_claims.py`.

Written without sight of the rules of `truerank check`. The collections are CACM and Vaswani of the shared data, with
ids as the judgments write them. The runs are made once by the package's own rankers and kept.
"""

from __future__ import annotations

import gzip
import html
import json
import random
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from common import SHARED

DEPTH = 200
#: The clean runs and their models.
RUNS: Mapping[str, Literal["bm25", "ql", "rm3", "axiomatic", "prf"] | None] = {
    "bm25": "bm25",
    "ql": "ql",
    "rm3": "rm3",
    "ax": "axiomatic",
    "prf": "prf",
    "plain": "bm25",
    "dense": None,
}
Ranking = Sequence[tuple[str, float]]
Rankings = Mapping[str, Ranking]


class Judgment(NamedTuple):
    """A row of the judgments."""

    topic: str
    doc: str
    grade: int


class Row(NamedTuple):
    """A row of a run, as it is printed: the score may be any text."""

    topic: str
    doc: str
    rank: int
    score: str


@dataclass(frozen=True)
class Files:
    """What a claim is made from, before it is written.

    Attributes:
        pooled: whether the judgments name irrelevant documents too.
        train: training queries, or whole examples (query and positive).
        model: judgments of a model, given beside those of people.
        gzipped, crlf, tags: how the files look.
    """

    topics: Mapping[str, str]
    docs: Mapping[str, str]
    qrels: Sequence[Judgment]
    runs: Mapping[str, Sequence[Row]]
    system: str
    baseline: str
    pooled: bool = False
    train: Sequence[str | tuple[str, str]] = ()
    model: Sequence[Judgment] = ()
    gzipped: bool = False
    crlf: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


class Written(NamedTuple):
    """The paths of a claim's files."""

    topics: Path
    docs: Path
    qrels: Path
    runs: list[Path]
    train: Path | None
    model: Path | None


@dataclass(frozen=True)
class Collection:
    """Topics with judgments, documents, judgments, clean runs."""

    name: str
    topics: Mapping[str, str]
    docs: Mapping[str, str]
    qrels: Sequence[Judgment]
    rankings: Mapping[str, Rankings]

    @cached_property
    def scores(self) -> dict[str, dict[str, float]]:
        """NDCG@10 of every run by topic, by code of this benchmark."""
        truth = grades(self.qrels)
        return {name: ndcg(run, truth) for name, run in self.rankings.items()}

    @cached_property
    def relevant(self) -> dict[str, list[str]]:
        """The relevant documents of each topic, in the order of the judgments."""
        found: dict[str, list[str]] = {topic: [] for topic in self.topics}
        for row in self.qrels:
            if row.grade > 0:
                found[row.topic].append(row.doc)
        return found

    def pairs(self) -> list[tuple[str, str, float, float]]:
        """All pairs: system, baseline, difference of the means, two-sided p of the paired t-test."""
        names = sorted(self.rankings)
        return [(a, b, *difference(self.scores[a], self.scores[b])) for a in names for b in names if a != b]

    def no_better(self, draw: random.Random) -> tuple[str, str]:
        """A pair whose first is no better than its second, and not far below it: the claim is false."""
        fair = [(a, b) for a, b, by, p in self.pairs() if -0.08 < by <= 0.003 and p > 0.0001 and "plain" not in (a, b)]
        return draw.choice(fair)

    def better(self, draw: random.Random) -> tuple[str, str]:
        """A pair whose first is truly better."""
        clear = sorted(self.pairs(), key=lambda pair: pair[3] if pair[2] > 0 else 2.0)
        return draw.choice([(a, b) for a, b, by, p in clear if by > 0 and p < 0.0005][:8])[:2]

    def files(self, system: str, baseline: str, pooled: bool = False) -> Files:
        """The clean files of a claim."""
        runs = {name: rows(run) for name, run in self.rankings.items()}
        qrels = self.pool(self.rankings, 10) if pooled else self.qrels
        return Files(self.topics, self.docs, qrels, runs, system, baseline, pooled)

    def pool(self, names: Iterable[str], depth: int) -> list[Judgment]:
        """The judgments with a row of grade 0 for whatever the runs show first and nobody called relevant."""
        pairs = ((topic, doc) for name in names for topic, r in self.rankings[name].items() for doc, _ in r[:depth])
        known = {(row.topic, row.doc) for row in self.qrels}
        zeros = (Judgment(topic, doc, 0) for topic, doc in dict.fromkeys(pairs) if (topic, doc) not in known)
        return [*self.qrels, *zeros]


def grades(qrels: Iterable[Judgment]) -> dict[str, dict[str, int]]:
    """Grades by topic and document; of repeated ones the last."""
    found: dict[str, dict[str, int]] = {}
    for row in qrels:
        found.setdefault(row.topic, {})[row.doc] = row.grade
    return found


def rows(run: Rankings) -> list[Row]:
    """The rows of a run."""
    return [
        Row(topic, doc, rank, f"{score:.6f}")
        for topic, ranking in run.items()
        for rank, (doc, score) in enumerate(ranking, start=1)
    ]


def rankings(printed: Iterable[Row]) -> dict[str, list[tuple[str, float]]]:
    """The rankings of printed rows as trec_eval has them: by score, ties by id, both descending; an id counts once."""
    found: dict[str, dict[str, float]] = {}
    for row in printed:
        found.setdefault(row.topic, {}).setdefault(row.doc, float(row.score))
    return {
        topic: sorted(scored.items(), key=lambda pair: (np.float32(pair[1]), pair[0]), reverse=True)
        for topic, scored in found.items()
    }


def ndcg(run: Rankings, truth: Mapping[str, Mapping[str, int]], k: int = 10) -> dict[str, float]:
    """NDCG@k by topic of the judgments that have a relevant document."""
    discounts = 1 / np.log2(np.arange(k) + 2)
    scores = {}
    for topic, judged in truth.items():
        ideal = np.array(sorted((grade for grade in judged.values() if grade > 0), reverse=True)[:k], dtype=float)
        if len(ideal):
            gains = np.array([max(0, judged.get(doc, 0)) for doc, _ in run.get(topic, ())[:k]], dtype=float)
            scores[topic] = float(gains @ discounts[: len(gains)] / (ideal @ discounts[: len(ideal)]))
    return scores


def difference(system: Mapping[str, float], baseline: Mapping[str, float]) -> tuple[float, float]:
    """Difference of the means, and p of the paired t-test."""
    gaps = np.array([system[topic] - baseline[topic] for topic in system])
    if len(gaps) < 2 or not gaps.any():
        return float(gaps.mean()) if len(gaps) else 0.0, 1.0
    return float(gaps.mean()), float(stats.ttest_1samp(gaps, 0).pvalue)


def shown(files: Files) -> tuple[float, float]:
    """The claimed difference as a plain script would compute it from the files, and its p."""
    truth = grades(files.qrels)
    system, baseline = (ndcg(rankings(files.runs[name]), truth) for name in (files.system, files.baseline))
    return difference(system, baseline)


def write(files: Files, folder: Path) -> Written:
    """Writes the files of a claim."""
    folder.mkdir(parents=True, exist_ok=True)
    ending = ".gz" if files.gzipped else ""
    end = "\r\n" if files.crlf else "\n"

    def text(name: str, lines: Iterable[str]) -> Path:
        data = "".join(f"{line}{end}" for line in lines).encode()
        path = folder / f"{name}{ending}"
        path.write_bytes(gzip.compress(data, mtime=0) if files.gzipped else data)
        return path

    def qrels(name: str, judged: Iterable[Judgment]) -> Path:
        return text(name, (f"{row.topic} 0 {row.doc} {row.grade}" for row in judged))

    train = None
    if files.train:
        pairs = [one if isinstance(one, tuple) else (one, "") for one in files.train]
        train = text("train.tsv", (f"t{at}\t{query}" for at, (query, _) in enumerate(pairs)))
        if any(positive for _, positive in pairs):
            lines = (json.dumps({"query": query, "positive": positive}) for query, positive in pairs)
            train = text("train.jsonl", lines)
    runs = [
        text(
            f"{name}.run",
            (f"{row.topic} Q0 {row.doc} {row.rank} {row.score} {files.tags.get(name, name)}" for row in run),
        )
        for name, run in files.runs.items()
    ]
    return Written(
        topics=text("topics.tsv", (f"{key}\t{query}" for key, query in files.topics.items())),
        docs=text("docs.jsonl", (json.dumps({"_id": key, "text": body}) for key, body in files.docs.items())),
        qrels=qrels("test.qrels", files.qrels),
        runs=runs,
        train=train,
        model=qrels("model.qrels", files.model) if files.model else None,
    )


def read_texts(name: str) -> tuple[dict[str, str], dict[str, str], list[Judgment]]:
    """Topics, documents and judgments; only topics with a relevant document."""
    place = SHARED / "collections" / name
    if name == "cacm":
        docs = {}
        with tarfile.open(place / "cacm.tar.gz") as archive:
            for member in sorted(archive.getnames()):
                number = re.search(r"CACM-(\d+)\.html$", member)
                page = archive.extractfile(member) if number else None
                if number and page:
                    body = html.unescape(re.sub(r"<[^>]+>", " ", page.read().decode("latin-1")))
                    # The last block holds the record's citations as numbers.
                    body = re.split(r"\n\s*\d+\s+\d+\s+\d+\s*\n", body)[0]
                    docs[f"CACM-{int(number[1])}"] = " ".join(body.split())
        found = re.findall(r"<DOCNO>(.*?)</DOCNO>(.*?)</DOC>", (place / "topics.txt").read_text(), re.DOTALL)
    else:
        raw = gzip.decompress((place / "docs.trec.gz").read_bytes()).decode()
        parts = re.findall(r"<DOCNO>(.*?)</DOCNO>(.*?)</DOC>", raw, re.DOTALL)
        docs = {key.strip(): " ".join(body.split()) for key, body in parts}
        text = (place / "topics.trec.txt").read_text()
        found = re.findall(r"<num>(\d+)</num>\s*<title>(.*?)</title>", text, re.DOTALL)
    fields = (line.split() for line in (place / "qrels.txt").read_text().splitlines())
    qrels = [Judgment(topic, doc, int(grade)) for topic, _, doc, grade in fields if doc in docs]
    judged = {row.topic for row in qrels}
    topics = {key.strip(): " ".join(query.split()) for key, query in found}
    return {key: query for key, query in topics.items() if key in judged}, docs, qrels


def collection(name: str, work: Path) -> Collection:
    """The collection with its clean runs, which are made in `work` where they are not there yet."""
    topics, docs, qrels = read_texts(name)
    place = work / "clean" / name
    clean_runs(topics, docs, place)
    return Collection(name, topics, docs, qrels, {run: read_run(place / f"{run}.run") for run in RUNS})


def clean_runs(topics: Mapping[str, str], docs: Mapping[str, str], place: Path) -> None:
    """Seven runs of different kinds; `plain` is truly weaker than the others."""
    import truerank
    from truerank.lexical.building import AnalysisOptions
    from truerank.lexical.searching import Retrieval

    source = write(Files(topics, docs, (), {}, "", ""), place)
    if not (place / "plain").is_dir():
        truerank.index(str(source.docs), place / "stemmed")
        bare = AnalysisOptions(tokeniser="letters", stopwords="none", stemmer="none")
        truerank.index(str(source.docs), place / "plain", analysis=bare)
    weak = Retrieval(any_analyser=True, set_={"k1": 100.0, "b": 1.0})
    for name, model in RUNS.items():
        path = place / f"{name}.run"
        if path.is_file():
            continue
        if model is None:
            path.write_text("".join(f"{' '.join(map(str, row))}\n" for row in dense_rows(topics, docs)))
        elif name == "plain":
            truerank.search(str(place / "plain"), str(source.topics), model, k=DEPTH, retrieval=weak, out=path)
        else:
            truerank.search(str(place / "stemmed"), str(source.topics), model, k=DEPTH, out=path)


def read_run(path: Path) -> Rankings:
    """The rankings of a clean run."""
    fields = (line.split() for line in path.read_text().splitlines())
    return rankings(Row(topic, doc, int(rank), score) for topic, _, doc, rank, score, _ in fields)


def dense_rows(topics: Mapping[str, str], docs: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
    """The rows of a run by the cosine of the packaged encoder."""
    from truerank.vectors.encoders import open_encoder

    encoder = open_encoder("packaged")
    asked, answers = (
        np.asarray(encoder.encode([text[:600] or "empty" for text in texts.values()]), dtype=np.float64)
        for texts in (topics, docs)
    )
    asked, answers = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (asked, answers))
    ids = list(docs)
    for topic, similarity in zip(topics, asked @ answers.T, strict=True):
        for rank, at in enumerate(np.argsort(-similarity, kind="stable")[:DEPTH], start=1):
            yield topic, "Q0", ids[at], rank, f"{similarity[at]:.6f}", "dense"
