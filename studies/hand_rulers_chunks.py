"""Case 6, new chunks: articles cut one way and judged, then cut another way, with the same text or a changed one."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hand_rulers_base as base
from hand_rulers_echo import order, synonyms

Generator = np.random.Generator
RECORDS = 900
PER_ARTICLE = 6
NOTICE = (
    "This article may be copied for study. Permission to print it again in any other form must be asked of the "
    "publisher in writing, and the names of the authors have to be given in full."
).split()


@dataclass(frozen=True)
class Article:
    """Words with, for each, its place in the article as first judged (-1: new), and whether a sentence ends there."""

    name: str
    words: tuple[str, ...]
    origin: tuple[int, ...]
    ends: tuple[bool, ...]


@dataclass(frozen=True)
class Chunk:
    """Words start to end of an article."""

    article: Article
    start: int
    end: int

    @property
    def text(self) -> str:
        return " ".join(self.article.words[self.start : self.end])

    @property
    def places(self) -> set[int]:
        return {i for i in self.article.origin[self.start : self.end] if i >= 0}

    def offsets(self) -> tuple[int, int]:
        before = sum(len(w) + 1 for w in self.article.words[: self.start])
        return before, before + len(self.text)


Spans = dict[str, dict[str, tuple[int, int]]]


def articles(part: base.Collection, rng: Generator, notice: bool) -> tuple[list[Article], Spans]:
    """Six records one after the other make an article; the second value says which words are which record's."""
    judged = sorted({d for row in part.qrels.values() for d in row})
    others = sorted(set(part.docs) - set(judged))
    judged = [judged[i] for i in sorted(rng.choice(len(judged), min(len(judged), RECORDS * 2 // 3), replace=False))]
    chosen = judged + [others[i] for i in rng.choice(len(others), RECORDS - len(judged), replace=False)]
    chosen = [chosen[i] for i in rng.permutation(len(chosen))]
    found, spans = [], {}
    for i in range(0, len(chosen), PER_ARTICLE):
        name = f"A{i // PER_ARTICLE:04d}"
        text = list(NOTICE) if notice else []
        ends = [w.endswith((".", ";")) for w in text]
        spans[name] = {}
        for doc in chosen[i : i + PER_ARTICLE]:
            start = len(text)
            for piece in (part.titles.get(doc, ""), *part.docs[doc].split("  ")):
                few = piece.split()
                text += few
                ends += [w.endswith((".", "?", "!")) for w in few]
                if few:
                    ends[-1] = True
            spans[name][doc] = (start, len(text))
        found.append(Article(name, tuple(text), tuple(range(len(text))), tuple(ends)))
    return found, spans


def fixed(article: Article, size: int, step: int) -> list[Chunk]:
    last = max(1, len(article.words) - (size - step))
    return [Chunk(article, i, min(i + size, len(article.words))) for i in range(0, last, step)]


def sentences(article: Article, least: int = 12, most: int = 45) -> list[Chunk]:
    """Sentences, joined until they have 12 words; a sentence without an end is cut after 45."""
    out, start = [], 0
    for i, end in enumerate(article.ends):
        length = i + 1 - start
        if (end and length >= least) or length >= most or i + 1 == len(article.ends):
            out.append(Chunk(article, start, i + 1))
            start = i + 1
    return out


def cut(found: list[Article], how: str) -> list[Chunk]:
    kind, *sizes = how.split("-")
    if kind == "sentences":
        return [chunk for article in found for chunk in sentences(article)]
    size = int(sizes[0])
    step = int(sizes[1]) if kind == "windows" else size
    return [chunk for article in found for chunk in fixed(article, size, step)]


def rewritten(article: Article, rng: Generator, change: str, share: float) -> Article:
    """The same article as a later tool gives it."""
    if change == "retokenised":
        marks = {'"': "”", "'": "’", "(": "( ", ")": " )", ",": " ,", ";": " ;", "-": " - ", "/": " / "}
        table = str.maketrans(marks)
        pieces = [(w.lower().translate(table).split() or [w], o, e) for w, o, e in _rows(article)]
        flat = [(p, o, e and k == len(few) - 1) for few, o, e in pieces for k, p in enumerate(few)]
    elif change == "edited":
        flat = []
        for word, place, end in _rows(article):
            other = synonyms(word.lower())
            drawn = rng.random()
            if drawn >= share:
                flat.append((word, place, end))
            elif drawn < share / 2:
                flat.append((other[0].replace(" ", "") if other else word[::-1], place, end))
            elif drawn < share * 3 / 4:
                flat += [(word, place, False), ("indeed", -1, end)]
    else:
        return article
    words, origin, ends = zip(*flat, strict=True)
    return Article(article.name, words, origin, ends)


def _rows(article: Article) -> Iterator[tuple[str, int, bool]]:
    return zip(article.words, article.origin, article.ends, strict=True)


def grade(places: set[int], spans: list[tuple[int, int]]) -> int:
    """What a person would give a chunk: 2 with nearly a whole relevant record, 1 with half or mostly of one."""
    best = 0
    for start, end in spans:
        inside = len(places & set(range(start, end)))
        of_record, of_chunk = inside / max(1, end - start), inside / max(1, len(places))
        best = max(best, 2 if of_record >= 0.9 else 1 if of_record >= 0.5 or of_chunk >= 0.5 else 0)
    return best


def person(part: base.Collection, chunks: dict[str, Chunk], spans: Spans) -> base.Qrels:
    by_article: dict[str, list[str]] = {}
    for name, chunk in chunks.items():
        by_article.setdefault(chunk.article.name, []).append(name)
    places = {name: chunk.places for name, chunk in chunks.items()}
    qrels: base.Qrels = {}
    for topic, row in part.qrels.items():
        for article, records in spans.items():
            relevant = [span for doc, span in records.items() if row.get(doc, 0) > 0]
            for name in by_article.get(article, []) if relevant else []:
                value = grade(places[name], relevant)
                if value:
                    qrels.setdefault(topic, {})[name] = value
    return qrels


Overlaps = list[tuple[str, str, str, int, float, float]]


def overlaps(judged: base.Qrels, old: dict[str, Chunk], new: dict[str, Chunk]) -> Overlaps:
    """(topic, new chunk, judged chunk, grade, share of the judged chunk, share of the new one), by words."""
    by_article: dict[str, list[tuple[str, set[int]]]] = {}
    for name, chunk in new.items():
        by_article.setdefault(chunk.article.name, []).append((name, chunk.places))
    rows: Overlaps = []
    for topic, row in judged.items():
        for source, value in row.items():
            places = old[source].places
            for name, others in by_article.get(old[source].article.name, []):
                both = len(places & others)
                if both:
                    length = new[name].end - new[name].start
                    rows.append((topic, name, source, value, round(both / len(places), 4), round(both / length, 4)))
    return rows


def contained(rows: Overlaps) -> base.Qrels:
    """A new chunk has the best grade of the judged chunks of which it holds half, or which hold half of it."""
    out: base.Qrels = {}
    for topic, name, _, value, of_old, of_new in rows:
        if of_old >= 0.5 or of_new >= 0.5:
            row = out.setdefault(topic, {})
            row[name] = max(value, row.get(name, 0))
    return out


def chunk_collection(part: base.Collection, chunks: dict[str, Chunk], qrels: base.Qrels) -> base.Collection:
    topics = {t: part.topics[t] for t in part.topics if t in qrels}
    return base.Collection(part.name, {n: c.text for n, c in chunks.items()}, {}, topics, qrels)


def write_chunks(path: Path, chunks: dict[str, Chunk], offsets: bool) -> None:
    with path.open("w") as out:
        for name, chunk in chunks.items():
            row: dict[str, Any] = {"_id": name, "title": "", "text": chunk.text}
            if offsets:
                start, end = chunk.offsets()
                row |= {"article": chunk.article.name, "start": start, "end": end}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


VARIANTS = (
    ("same", "words-60", "words-60", "none", 0.0),
    ("sentences", "words-60", "sentences", "none", 0.0),
    ("shorter", "words-60", "words-25", "none", 0.0),
    ("longer", "words-60", "words-110", "none", 0.0),
    ("shifted", "words-60", "words-57", "none", 0.0),
    ("windows", "words-60", "windows-60-30", "none", 0.0),
    ("from-sentences", "sentences", "words-60", "none", 0.0),
    ("from-windows", "windows-60-30", "sentences", "none", 0.0),
    ("retokenised", "words-60", "windows-60-30", "retokenised", 0.0),
    ("retokenised-sentences", "words-60", "sentences", "retokenised", 0.0),
    ("edited-0.05", "words-60", "sentences", "edited", 0.05),
    ("edited-0.2", "words-60", "sentences", "edited", 0.2),
    ("edited-0.5", "words-60", "sentences", "edited", 0.5),
    ("lost-0.1", "words-60", "windows-60-30", "lost", 0.1),
    ("lost-0.4", "words-60", "windows-60-30", "lost", 0.4),
    ("notice", "words-60", "sentences", "notice", 0.0),
)


def variant(
    part: base.Collection, rng: Generator, how: tuple[str, str, str, str, float]
) -> tuple[dict[str, Chunk], dict[str, Chunk], base.Qrels, base.Qrels]:
    _, first, second, change, share = how
    source, spans = articles(part, rng, change == "notice")
    later = [rewritten(article, rng, change, share) for article in source]
    if change == "lost":
        later = [article for article in later if rng.random() >= share]
    old_list, new_list = cut(source, first), cut(later, second)
    old = {f"p{i:05d}": chunk for i, chunk in enumerate(old_list)}
    new = {f"n{j:05d}": new_list[i] for j, i in enumerate(rng.permutation(len(new_list)))}
    judged, true = person(part, old, spans), person(part, new, spans)
    return old, new, judged, true


def agreement(first: base.Qrels, second: base.Qrels) -> dict[str, float]:
    a = {(t, d) for t, row in first.items() for d, g in row.items() if g > 0}
    b = {(t, d) for t, row in second.items() for d, g in row.items() if g > 0}
    return {"precision": round(len(a & b) / max(1, len(a)), 4), "recall": round(len(a & b) / max(1, len(b)), 4)}


def write(name: str, out: Path, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([6, seed])
    part = base.collection(name)
    for how in VARIANTS:
        label, first, second, change, share = how
        old, new, judged, true = variant(part, rng, how)
        bare = chunk_collection(part, old, judged)
        old_runs = base.runs_for(bare, base.LEXICAL)
        pooled = bare.but(qrels=base.with_zeros(bare, old_runs, rng, 10, 0.6))
        rows = overlaps(pooled.qrels, old, new)
        expected = contained(rows)
        later = chunk_collection(part, new, expected)
        new_runs = base.runs_for(later, base.LEXICAL)
        true_part = {t: row for t, row in true.items() if t in later.topics}
        answered = {t: row for t, row in expected.items() if any(g > 0 for g in row.values())}
        scores = {
            "old": {n: base.means(pooled.qrels, run, ["nDCG@10"])["nDCG@10"] for n, run in old_runs.items()},
            "new_expected": {n: base.means(answered, run, ["nDCG@10"])["nDCG@10"] for n, run in new_runs.items()},
            "new_true": {n: base.means(true_part, run, ["nDCG@10"])["nDCG@10"] for n, run in new_runs.items()},
        }
        kept = {s for _, _, s, _, of_old, _ in rows if of_old > 0}
        for offsets in (True, False):
            truth = {
                "plant": None if label == "same" else label,
                "old_cutting": first,
                "new_cutting": second,
                "text": change,
                "share": share,
                "offsets": offsets,
                "judged_chunks": sum(map(len, pooled.qrels.values())),
                "judged_chunks_without_any_text_left": sum(d not in kept for row in pooled.qrels.values() for d in row),
                "relevant_chunks": {
                    "old": _relevant(judged),
                    "new_expected": _relevant(expected),
                    "new_true": _relevant(true),
                },
                "expected_against_true": agreement(expected, true),
                "nDCG@10": scores,
                "order_of_runs": {
                    "old_against_new_expected": order(scores["old"], scores["new_expected"]),
                    "new_expected_against_new_true": order(scores["new_expected"], scores["new_true"]),
                },
            }
            folder = out / f"{label}{'-offsets' if offsets else ''}"
            write_variant(folder, (pooled, old, old_runs), (later, new, new_runs), (true, rows), truth)
        yield (
            f"{label:22} {first:13} -> {second:13} chunks {len(old):5} -> {len(new):5}"
            f"  relevant {truth['relevant_chunks']}  expected against true {truth['expected_against_true']}"
            f"  order of runs {truth['order_of_runs']['old_against_new_expected']}"
            f"  judged without text {truth['judged_chunks_without_any_text_left']}"
        )


def _relevant(qrels: base.Qrels) -> int:
    return sum(g > 0 for row in qrels.values() for g in row.values())


Side = tuple[base.Collection, dict[str, Chunk], base.Runs]


def write_variant(
    folder: Path, old: Side, new: Side, found: tuple[base.Qrels, Overlaps], truth: dict[str, Any]
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    base.write_folder(folder, old[0], old[2], truth)
    write_chunks(folder / "docs.jsonl", old[1], truth["offsets"])
    write_chunks(folder / "new-docs.jsonl", new[1], truth["offsets"])
    (folder / "new-runs").mkdir()
    for name, run in new[2].items():
        base.write_run(folder / "new-runs" / f"{name}.run", run, name)
    (folder / "truth").mkdir()
    base.write_qrels(folder / "truth" / "expected.qrels", new[0].qrels)
    base.write_qrels(folder / "truth" / "true.qrels", found[0])
    lines = ["\t".join(map(str, row)) + "\n" for row in found[1]]
    heading = "topic\tnew\tjudged\tgrade\tshare_of_judged\tshare_of_new\n"
    (folder / "truth" / "overlaps.tsv").write_text(heading + "".join(lines))
