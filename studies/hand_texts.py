"""Leaks in other people's words, and templates that are not leaks; written by hand, without sight of the rules.

    python studies/hand_texts.py [--semantic none|all] [--out texts.json] [--show]

- *queries*: 68 paraphrases of 34 queries by two people, 27 translations, 27 misspellings of three severities
  (`hand_texts_queries.py`). Each kind is planted among 400 queries of a real log, and `leakage.audit` compares them
  with the original queries as topics; the same log queries alone are audited too. Seen: the planted query is among
  the candidates of its topic.
- *documents*: 31 short documents and another author's version of each (`hand_texts_documents.py`). The versions are
  positives of training examples, among 300 abstracts; `leakage.examples` compares. Seen: a document and its version.
  With `--semantic all` also: cosines of the encoder between a document and its version, and between each of the 600
  abstracts, which are all different, and the one nearest to it: which threshold could tell the one from the other.
- *templates*: twelve families, 26 frames, of 2, 4, 8 and 16 members each (`hand_texts_templates.py`). Half of the
  members are test documents and the others are in the training data; nothing is a copy of anything. Counted: pairs
  of one frame that are called copies, and the frames with such a pair.

Verdict words are those of the audits. For queries the words are the test set's; for documents, those of the kinds
`positive-relevant` and `document-corpus`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common import log_path, require_shared, table
from hand_collection import read_texts
from hand_texts_documents import DOCUMENTS
from hand_texts_queries import PARAPHRASES, SPELLINGS, TRANSLATIONS
from hand_texts_templates import FAMILIES, members
from truerank import leakage
from truerank.audits.leakage.training_data.examples import Models
from truerank.audits.leakage.training_data.results import ExampleOptions
from truerank.options import Encoding

ENCODING = Encoding("packaged")
SIZES = (2, 4, 8, 16)


def query_kinds() -> dict[str, list[tuple[str, str]]]:
    """Pairs of a query and what was typed for it, by kind."""
    kinds = {
        "paraphrase, first person": [(query, first) for query, first, _ in PARAPHRASES],
        "paraphrase, second person": [(query, second) for query, _, second in PARAPHRASES],
        "translation, Latin script": [(query, typed) for query, _, typed in TRANSLATIONS if _latin(typed)],
        "translation, other scripts": [(query, typed) for query, _, typed in TRANSLATIONS if not _latin(typed)],
    }
    for severity, name in ((1, "a slip"), (2, "several"), (3, "barely readable")):
        kinds[f"misspelled, {name}"] = [(query, typed) for query, level, typed in SPELLINGS if level == severity]
    return kinds


def _latin(text: str) -> bool:
    return all(ord(letter) < 0x250 for letter in text)


def log_queries(count: int) -> list[str]:
    """Queries of a real log."""
    with gzip.open(log_path("nq-dev"), "rt", encoding="utf-8", errors="replace") as lines:
        texts = [line.rstrip("\n").split("\t")[-1].strip() for line in lines]
    return random.Random(20261123).sample([text for text in texts if text], count)


def audit_queries(pairs: Sequence[tuple[str, str]], log: Sequence[str], planted: bool) -> tuple[list[bool], str, int]:
    """Which pairs are seen, the verdict, and how many other pairs were proposed."""
    topics = {str(at): query for at, (query, _) in enumerate(pairs)}
    train = [*log, *(typed for _, typed in pairs)] if planted else list(log)
    result = leakage.audit(train, topics, encoding=ENCODING)  # type: ignore[arg-type]
    proposed = {(row["topic_id"], row["query_text"]) for row in result.candidates.iter_rows(named=True)}
    seen = [(str(at), typed) in proposed for at, (_, typed) in enumerate(pairs)]
    return seen, next(iter(result.summary["tests"].values()))["verdict"], len(proposed) - sum(seen)


def write_lines(path: Path, rows: Iterable[object]) -> str:
    """Writes JSON lines; the path."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def audit_documents(tests: Mapping[str, str], train: Sequence[str], semantic: Any) -> tuple[set[tuple[str, str]], str]:
    """Pairs of a test document and a training text that are called overlaps, and the verdicts.

    Every test document is relevant to a topic of its own, which resembles nothing.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "topics.tsv").write_text("".join(f"q{at}\tzz{at} yy{at}\n" for at in range(len(tests))))
        (folder / "test.qrels").write_text("".join(f"q{at} 0 {doc} 1\n" for at, doc in enumerate(tests)))
        docs = write_lines(folder / "docs.jsonl", ({"_id": key, "text": text} for key, text in tests.items()))
        examples = write_lines(
            folder / "train.jsonl", ({"query": f"xx{at} ww{at}", "positive": text} for at, text in enumerate(train))
        )
        options = ExampleOptions(qrels=str(folder / "test.qrels"), docs=docs, semantic=semantic)
        result = leakage.examples(examples, str(folder / "topics.tsv"), options=options, encoding=ENCODING)
    rows = result.leaks.iter_rows(named=True)
    pairs = {(row["doc_id"], row["training_text"]) for row in rows if row["kind"] == "document-corpus"}
    words = {kind.kind: kind.verdict for kind in result.kinds}
    return pairs, f"{words['positive-relevant']}, {words['document-corpus']}"


def templates(size: int, abstracts: Sequence[str], semantic: Any) -> tuple[list[object], list[str]]:
    """A row for families of a size, and the frames whose members are called copies."""
    tests: dict[str, str] = {f"a{at}": text for at, text in enumerate(abstracts[:150])}
    frame_of: dict[str, str] = {}
    train, pairs = list(abstracts[150:300]), 0
    for family in FAMILIES:
        for frame in range(len(family.frames)):
            texts = members(family, frame, size, seed=size)
            half = size // 2
            tests |= {f"{family.name}-{frame}-{at}".replace(" ", "_"): text for at, text in enumerate(texts[:half])}
            train += texts[half:]
            frame_of |= dict.fromkeys(texts, f"{family.name} {frame}")
            pairs += half * (size - half)
    called, words = audit_documents(tests, train, semantic)
    copies = [(doc, text) for doc, text in called if text in frame_of and frame_of.get(tests[doc]) == frame_of[text]]
    frames = sorted({frame_of[text] for _, text in copies})
    frames_in_all = len(set(frame_of.values()))
    return [size, pairs, len(copies), f"{len(frames)}/{frames_in_all}", len(called) - len(copies), words], frames


def cosines(abstracts: Sequence[str]) -> Iterable[list[object]]:
    """Rows on what an encoder says of versions and of different texts."""
    encoder = Models.of(ENCODING).encoder
    ours, theirs, others = (np.asarray(encoder.encode(texts)) for texts in (*zip(*DOCUMENTS, strict=True), abstracts))
    alike = others @ others.T
    np.fill_diagonal(alike, -1)
    for name, found in (("versions", (ours * theirs).sum(axis=1)), ("nearest different text", alike.max(axis=1))):
        yield [name, *(f"{value:.3f}" for value in np.quantile(found, [0, 0.5, 1]))]


def main() -> None:
    """Audits and prints."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--semantic", choices=("none", "all"), default="none", help="of `leakage.examples`")
    options.add_argument("--out", type=Path, help="everything that was seen and missed, as JSON")
    options.add_argument("--show", action="store_true", help="print what was missed")
    given = options.parse_args()
    require_shared()
    log, kept = log_queries(400), {}
    rows: list[list[object]] = []
    for kind, pairs in query_kinds().items():
        seen, verdict, others = audit_queries(pairs, log, planted=True)
        _, without, _ = audit_queries(pairs, log, planted=False)
        rows.append([kind, len(pairs), sum(seen), verdict, others, without])
        kept[kind] = {"missed": [pair for pair, hit in zip(pairs, seen, strict=True) if not hit], "verdict": verdict}
    print(table(("queries", "planted", "seen", "verdict", "others proposed", "verdict without leaks"), rows) + "\n")

    texts = read_texts("vaswani")[1]
    abstracts = random.Random(7).sample(list(texts.values()), 600)
    tests = {f"d{at}": text for at, (text, _) in enumerate(DOCUMENTS)}
    versions = {version: f"d{at}" for at, (_, version) in enumerate(DOCUMENTS)}
    called, words = audit_documents(tests, [*abstracts[:300], *versions], given.semantic)
    seen_docs = {doc for doc, text in called if versions.get(text) == doc}
    _, without = audit_documents(tests, abstracts[:300], given.semantic)
    kept["documents"] = {"missed": sorted(set(tests) - seen_docs), "verdict": words}
    row = [len(tests), len(seen_docs), words, len(called) - len(seen_docs), without]
    print(table(("documents", "seen", "verdicts", "others called", "verdicts without leaks"), [row]) + "\n")

    if given.semantic == "all":
        print(table(("cosine", "lowest", "median", "highest"), list(cosines(abstracts))) + "\n")

    rows = []
    for size in SIZES:
        line, frames = templates(size, abstracts[300:], given.semantic)
        rows.append(line)
        kept[f"templates of {size}"] = {"called copies": frames}
    header = ("members", "pairs of one frame", "called copies", "frames with one", "other pairs called", "verdicts")
    print(table(header, rows))
    if given.show:
        print(json.dumps(kept, indent=1, ensure_ascii=False))
    if given.out:
        given.out.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
