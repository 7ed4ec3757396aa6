"""What the collection audit finds in real benchmarks: a table of all findings, and examples.

    python studies/collection_findings.py [--only NAME …] [--examples 3] [--out FOLDER]

Judgments and topics of the 22 BEIR sets, BRIGHT as first published and as repaired, MIRACL's topics (dev beside train,
six languages), the tracks' judgments and topics, Robust04's topics, and the whole of CACM and Vaswani, documents
included. There are no documents for the others: whether their judgments meet documents is not looked at. Prints a
Markdown table with one row for each finding, then the examples; `--out` also writes each audit's folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import SHARED, require_shared, table
from truerank import collection

#: MIRACL's languages.
LANGUAGES = ("ar", "en", "fi", "ja", "ru", "sw")
#: Judgments of tracks, and their topics.
TRACKS = {
    "core17": ("core17.qrels.gz", "core17.trec.txt"),
    "core18": ("core18.qrels.gz", "core18.trec.txt"),
    "dl19-passage": ("dl19-passage.qrels.gz", "dl19-passage.tsv"),
    "dl19-doc": ("dl19-doc.qrels.gz", "dl19-doc.tsv"),
    "dl20-passage": ("dl20-passage.qrels.gz", "dl20.tsv"),
    "dl20-doc": ("dl20-doc.qrels.gz", "dl20.tsv"),
    "msmarco-passage dev": ("msmarco-passage.dev-subset.qrels.gz", None),
    "msmarco-doc dev": ("msmarco-doc.dev.qrels.gz", None),
    "robust04": (None, "robust04.trec.txt"),
    "web09": (None, "web09.xml"),
}


def audits() -> Iterator[tuple[str, dict[str, Any]]]:
    """The sets by name, with what is given to the audit."""
    for path in sorted((SHARED / "topics/beir").glob("*.tsv.gz")):
        name = path.name.removesuffix(".tsv.gz")
        qrels = SHARED / "qrels/beir" / f"{name}.qrels.gz"
        yield f"BEIR {name}", {"topics": str(path), **({"qrels": str(qrels)} if qrels.is_file() else {})}
    for path in sorted((SHARED / "topics/bright").glob("*.tsv.gz")):
        name = path.name.removesuffix(".tsv.gz")
        first = str(SHARED / "qrels/bright" / f"{name}.qrels.gz")
        fixed = str(SHARED / "qrels/bright" / f"{name}.fixed.qrels.gz")
        yield f"BRIGHT {name}", {"topics": str(path), "qrels": first}
        yield f"BRIGHT {name}, repaired", {"topics": str(path), "qrels": fixed, "previous_qrels": first}
    for language in LANGUAGES:
        dev, train = (str(SHARED / "topics/miracl" / f"{language}-{part}.tsv.gz") for part in ("dev", "train"))
        yield f"MIRACL {language} train", {"topics": train}
        yield f"MIRACL {language} dev", {"topics": dev, "train": [train]}
    for name, (qrels, topics) in TRACKS.items():
        given = {"qrels": qrels and SHARED / "qrels" / qrels, "topics": topics and SHARED / "topics" / topics}
        yield name, {part: str(path) for part, path in given.items() if path}
    for name, files in {
        "CACM": ("cacm.tar.gz", "topics.txt", "qrels.txt"),
        "Vaswani": ("docs.trec.gz", "topics.trec.txt", "qrels.txt"),
    }.items():
        folder = SHARED / "collections" / name.lower()
        yield name, dict(zip(("docs", "topics", "qrels"), (str(folder / file) for file in files), strict=True))


def main() -> None:
    """Audits all sets and prints what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of sets")
    parser.add_argument("--examples", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    require_shared()
    rows, examples = [], []
    for name, parts in audits():
        if given.only and not any(part.lower() in name.lower() for part in given.only):
            continue
        out = given.out / name.replace(" ", "-").replace(",", "") if given.out else None
        found = collection.audit(**parts, out=out)
        for one in found.findings:
            rows.append((name, found.verdicts[0].word, one.kind.part, one.kind.severity, one.kind.title, one.counted))
            for row in found.rows(one.kind.name).head(given.examples).iter_rows(named=True):
                ids = " · ".join(str(row[key]) for key in ("topic_id", "doc_id", "other") if row[key])
                examples.append(f"- {name}, {one.kind.name}: {ids}: {row['detail']}")
        if not found.findings:
            rows.append((name, found.verdicts[0].word, "", "", "nothing", ""))
        print(f"{name}: {len(found.findings)} kinds of findings", flush=True)
    print()
    print(table(("set", "verdict", "part", "severity", "finding", "count"), rows))
    print()
    print("\n".join(examples))


if __name__ == "__main__":
    main()
