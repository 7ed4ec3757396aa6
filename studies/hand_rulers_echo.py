"""Case 3, echo: questions made from the document that answers them, people's own questions, and mixtures of the two."""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import hand_rulers_base as base

Generator = np.random.Generator
SIZE = 60
OPENINGS = (
    "what is known about {}",
    "how does {} work",
    "which work deals with {}",
    "is there a method for {}",
    "why is {} of use",
    "what are the results on {}",
)
# Written by hand for texts on computing and electronics; each line is a set of words that can take each other's place.
SYNONYMS = """
algorithm procedure method technique|computer machine processor|program routine code|language notation
error mistake fault|fast rapid quick|large big sizable|small little compact|calculate compute evaluate
show demonstrate illustrate|describe present outline|discuss consider treat|design construction layout
use application employment|system scheme|data information|storage memory store|circuit network
problem question task|solution answer result|analysis study examination|measurement determination reading
frequency rate|signal pulse|device apparatus instrument|theory model|simple easy plain|new novel recent
efficient economical|test trial check|function mapping|equation formula|matrix array|table list
sort order arrange|search lookup retrieval|random stochastic|number figure|line row|time duration
paper article report|improve enhance better|reduce lower diminish|increase raise growth|control regulation
transmission transfer sending|receiver detector|transmitter sender|noise disturbance interference
wave oscillation|current flow|voltage potential|temperature heat|surface face|layer film|field region
magnetic ferromagnetic|electron particle|ion charge|atmosphere air|ionosphere upper-atmosphere
radiation emission|reflection echo|scattering dispersion|amplifier booster|filter sieve|aerial antenna
valve tube|transistor semiconductor|digital numerical|analogue continuous|input entry|output product
operating running|parallel simultaneous concurrent|file record|structure organisation form|graph diagram
tree hierarchy|compiler translator|syntax grammar|proof demonstration|integer whole-number
polynomial power-series|approximation estimate|integration quadrature|linear first-order|numerical arithmetic
mathematical formal|logic reasoning|symbol sign character|text writing|user operator|management administration
education teaching instruction|student learner|university college|share divide|allocate assign|page block
schedule plan|queue waiting-line|process job|message communication|security protection|distribution spread
probability chance|variable quantity|constant fixed|maximum peak greatest|minimum least lowest
observation record|experiment trial|technique approach|effect influence|property characteristic feature
value magnitude|obtain get derive|give provide supply|determine find establish|generate produce create
require need demand|apply use|include contain comprise|compare contrast|general broad universal
particular specific special|possible feasible|various several different|important main principal
complex complicated intricate|accurate exact precise
""".replace("\n", "|")
THESAURUS: dict[str, list[str]] = {}
for _line in SYNONYMS.split("|"):
    for _word in _line.split():
        THESAURUS.setdefault(_word, []).extend(w.replace("-", " ") for w in _line.split() if w != _word)


def synonyms(word: str) -> list[str]:
    """A word's stand-ins; plural and past forms are looked up by their stems."""
    forms = (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ed"), word.removesuffix("d"))
    return next((THESAURUS[form] for form in forms if form in THESAURUS), [])


class Maker:
    """Questions from documents, by rule."""

    def __init__(self, part: base.Collection) -> None:
        self.part = part
        self.presence = Counter(w for doc in part.docs for w in set(base.words(part.full(doc))))

    def head(self, doc: str) -> str:
        return self.part.titles.get(doc) or " ".join(self.part.docs[doc].split()[:10])

    def sentence(self, doc: str, rng: Generator) -> list[str]:
        pieces = [base.words(s) for s in re.split(r"[.;:]\s+|\s{2,}", self.part.docs[doc])]
        pieces = [p for p in pieces if len(p) >= 8] or [base.words(self.part.full(doc))]
        chosen = pieces[rng.integers(len(pieces))]
        start = int(rng.integers(max(1, len(chosen) - 15)))
        return chosen[start : start + 16]

    def keys(self, doc: str) -> list[str]:
        text = base.words(self.part.full(doc))
        count = Counter(w for w in text if w not in ENGLISH_STOP_WORDS and len(w) > 2 and not w.isdigit())
        total = len(self.part.docs)
        return sorted(count, key=lambda w: (-count[w] * np.log(total / self.presence[w]), w))

    def copied(self, doc: str, rng: Generator, strength: float) -> str:
        """A sentence of the document behind a question's opening; `strength` of its words are kept."""
        kept = [w for w in self.sentence(doc, rng) if rng.random() < strength]
        return OPENINGS[rng.integers(len(OPENINGS))].format(" ".join(kept) or self.head(doc))

    def terms(self, doc: str, rng: Generator, strength: float) -> str:
        """The best terms by tf-idf: 8, 4 or 2."""
        few = self.keys(doc)[: max(2, round(8 * strength))]
        return " ".join(few[i] for i in rng.permutation(len(few)))

    def title(self, doc: str, rng: Generator, strength: float) -> str:
        """The title as a question; below 1 a share of its words."""
        kept = [w for w in base.words(self.head(doc)) if rng.random() < strength] or base.words(self.head(doc))[:3]
        return OPENINGS[rng.integers(len(OPENINGS))].format(" ".join(kept))

    def paraphrase(self, doc: str, rng: Generator, strength: float) -> str:
        """A sentence and a key term in other words: 1 - `strength` of the content words are replaced or left out."""
        source = self.sentence(doc, rng)[:10] + self.keys(doc)[:1]
        out = []
        for word in source:
            if word in ENGLISH_STOP_WORDS or rng.random() < strength:
                out.append(word)
                continue
            others = synonyms(word)
            if others:
                out.append(others[rng.integers(len(others))])
            elif rng.random() < strength:
                out.append(word)
        middle = len(out) // 2
        return OPENINGS[rng.integers(len(OPENINGS))].format(" ".join(out[middle:] + out[:middle]))


STRENGTHS = (1.0, 0.6, 0.3)


def overlap(part: base.Collection, text: str, doc: str) -> float:
    """The share of a question's stems that the document has."""
    asked, has = set(base.stems(text)), set(base.stems(part.full(doc)))
    return round(len(asked & has) / max(1, len(asked)), 4)


def nearest(part: base.Collection, topic: str) -> str:
    return max(sorted(part.qrels[topic]), key=lambda doc: overlap(part, part.topics[topic], doc))


Set = tuple[dict[str, str], base.Qrels]


def sets(part: base.Collection, rng: Generator) -> dict[str, Set]:
    """Topics and judgments by kind; generated ones have one judged document, the one they were made from."""
    maker = Maker(part)
    long = [doc for doc in part.docs if len(base.words(part.docs[doc])) >= 25]
    makers: dict[str, Callable[[str, Generator, float], str]] = {
        "copied": maker.copied,
        "terms": maker.terms,
        "title": maker.title,
        "paraphrase": maker.paraphrase,
    }
    out: dict[str, Set] = {}
    for kind, make in makers.items():
        for strength in STRENGTHS:
            golds = [long[i] for i in rng.choice(len(long), SIZE, replace=False)]
            ids = [f"{kind}{strength}-{i}" for i in range(SIZE)]
            topics = {t: make(doc, rng, strength) for t, doc in zip(ids, golds, strict=True)}
            out[f"{kind}-{strength}"] = topics, {t: {doc: 1} for t, doc in zip(ids, golds, strict=True)}
    out["people"] = dict(part.topics), {t: dict(row) for t, row in part.qrels.items()}
    drawn = {t: sorted(row)[rng.integers(len(row))] for t, row in part.qrels.items()}
    out["people-single"] = dict(part.topics), {t: {doc: 1} for t, doc in drawn.items()}
    out["people-nearest"] = dict(part.topics), {t: {nearest(part, t): 1} for t in part.topics}
    return out


def mixture(people: Set, generated: Set, rng: Generator, share: float) -> tuple[Set, list[str]]:
    """All of the people's topics, and as many generated ones as make the share."""
    number = min(len(generated[0]), round(share / (1 - share) * len(people[0])))
    chosen = [list(generated[0])[i] for i in sorted(rng.choice(len(generated[0]), number, replace=False))]
    mixed = [(t, people) for t in people[0]] + [(t, generated) for t in chosen]
    mixed = [mixed[i] for i in rng.permutation(len(mixed))]
    return ({t: source[0][t] for t, source in mixed}, {t: source[1][t] for t, source in mixed}), chosen


def neutral(pair: Set, runs: base.Runs, made: list[str]) -> tuple[Set, base.Runs, list[str]]:
    """The same with ids that do not give the source away."""
    name = {t: str(i) for i, t in enumerate(pair[0], 1)}
    topics = {name[t]: text for t, text in pair[0].items()}
    qrels = {name[t]: row for t, row in pair[1].items()}
    few = {n: {name[t]: run[t] for t in pair[0]} for n, run in runs.items()}
    return (topics, qrels), few, [name[t] for t in made]


def order(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    value = scipy.stats.kendalltau([first[n] for n in first], [second[n] for n in first]).statistic
    return round(float(value), 4)


def truth_of(part: base.Collection, pair: Set, runs: base.Runs, made: list[str], kind: str | None) -> dict[str, Any]:
    parts = {"generated": set(made), "people": set(pair[0]) - set(made)}
    by_part: dict[str, dict[str, float]] = {}
    overlaps: dict[str, float] = {}
    for label, topics in parts.items():
        if not topics:
            continue
        qrels = {t: row for t, row in pair[1].items() if t in topics}
        by_part[label] = {n: base.means(qrels, run, ["nDCG@10"])["nDCG@10"] for n, run in runs.items()}
        shares = [max(overlap(part, pair[0][t], doc) for doc in qrels[t]) for t in qrels]
        overlaps[label] = round(float(np.mean(shares)), 4)
    return {
        "plant": kind,
        "generated": made,
        "share_generated": round(len(made) / len(pair[0]), 4),
        "nDCG@10": by_part,
        "mean_share_of_stems_in_the_judged_document": overlaps,
        "bm25_minus_minilm": {label: round(row["bm25"] - row["minilm"], 6) for label, row in by_part.items()},
        "order_of_runs_generated_against_people": order(*by_part.values()) if len(by_part) == 2 else None,
    }


def write(name: str, out: Path, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([3, seed])
    part = base.collection(name)
    every = sets(part, rng)
    topics = {t: text for pair in every.values() for t, text in pair[0].items()}
    runs = base.runs_for(part.but(topics=topics))
    people = {
        n: base.means(part.qrels, {t: run[t] for t in part.qrels}, ["nDCG@10"])["nDCG@10"] for n, run in runs.items()
    }
    plants: list[tuple[str, Set, list[str], str | None]] = []
    for label, pair in every.items():
        generated = not label.startswith("people")
        plants.append((label, pair, list(pair[0]) if generated else [], label if generated else None))
        if generated:
            mixed, made = mixture(every["people-single"], pair, rng, 0.3)
            plants.append((f"mixture-0.3-{label}", mixed, made, label))
    for label, pair, made, kind in plants:
        renamed, few, made = neutral(pair, runs, made)
        truth = truth_of(part, renamed, few, made, kind)
        if not label.startswith(("people", "mixture")):
            truth["order_of_runs_generated_against_people"] = order(truth["nDCG@10"]["generated"], people)
        base.write_folder(out / label, part.but(topics=renamed[0], qrels=renamed[1]), few, truth)
        yield (
            f"{label:28} generated {truth['share_generated']:.2f}"
            f"  stems in the document {truth['mean_share_of_stems_in_the_judged_document']}"
            f"  bm25-minilm {truth['bm25_minus_minilm']}  order {truth['order_of_runs_generated_against_people']}"
        )
    for log in sorted((base.DATA / "query-logs").glob("*.tsv.gz")):
        with gzip.open(log, "rt", errors="replace") as lines:
            queries = [" ".join(line.rstrip("\n").partition("\t")[2].split()) for line in lines]
        queries = [q for q in queries if q]
        few_queries = {str(i + 1): queries[j] for i, j in enumerate(rng.choice(len(queries), 300, replace=False))}
        folder = out / f"log-{log.name.split('.')[0]}"
        folder.mkdir(parents=True, exist_ok=True)
        base.write_topics(folder / "topics.tsv", few_queries)
        base.write_json(folder / "truth.json", {"plant": None, "generated": [], "share_generated": 0.0})
        yield f"{folder.name:28} 300 people's queries without documents"
