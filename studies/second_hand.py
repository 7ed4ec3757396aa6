"""Planted leaks by a second hand: other texts, other changes and other look-alikes than those of `tools.py`.

    python studies/second_hand.py develop             # the half of texts and wordings to work with
    python studies/second_hand.py report              # the other half: look at it once
    python studies/second_hand.py develop --missed 3  # and what was missed of each kind

`leakage examples` reads the lines as its users would have it read them. A leak counts where the planted text is named,
not any text; a look-alike is wrong where it is named at all. Intervals are those of Clopper and Pearson.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from common import require_shared, table
from second_hand_bench import LENGTHS, Bench, Line, length, make
from second_hand_plants import DOCUMENT_KINDS, INSIDE, QUERY_KINDS
from truerank import leakage
from truerank.audits.leakage.training_data.results import ExampleOptions
from truerank.measures.magnitudes import proportion
from truerank.options import Encoding
from truerank.text.normalising import normalise


def found(bench: Bench, semantic: str) -> tuple[dict[tuple[str, str], list[tuple[Line, bool]]], pl.DataFrame]:
    """The lines by kind and length with whether they are named; and all pairs."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)

        def write(name: str, records: Sequence[Mapping[str, str]]) -> str:
            path = place / name
            path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
            return str(path)

        topics = write("topics.jsonl", [{"_id": name, "text": text} for name, text in bench.queries.items()])
        corpus = write("docs.jsonl", [{"_id": name, "text": text} for name, text in bench.documents.items()])
        trained = [
            write(
                "p.jsonl",
                [{"_id": f"p{at}", "query": "", "positive": line.text} for at, line in enumerate(bench.positives)],
            ),
            write(
                "a.jsonl",
                [{"_id": f"a{at}", "query": line.text, "positive": ""} for at, line in enumerate(bench.asked)],
            ),
        ]
        options = ExampleOptions(docs=corpus, roles="query=query,positive=positive", semantic=semantic, sample=20)
        leakage.examples(trained, topics, options=options, encoding=Encoding("packaged"), out=place / "out")
        pairs = pl.read_parquet(place / "out" / "leaks.parquet")
    tests: dict[tuple[str, str], set[str]] = defaultdict(set)
    for kind, topic, document, text in pairs.select("kind", "topic_id", "doc_id", "training_text").iter_rows():
        tests["a" if kind == "query-query" else "p", normalise(text)].add(topic or document)
    cells = defaultdict(list)
    for side, lines in (("p", bench.positives), ("a", bench.asked)):
        for line in lines:
            named = tests[side, normalise(line.text)]
            names = {**bench.documents, **bench.queries}
            cell = line.kind, length(names[line.test]) if line.test else "all"
            cells[cell].append((line, line.test in named if line.test else bool(named)))
    return cells, pairs


def share(hits: Sequence[tuple[Line, bool]]) -> str:
    """The share of lines that are named; empty without lines."""
    return share_of(sum(hit for _, hit in hits), len(hits)) if hits else ""


def share_of(count: int, of: int) -> str:
    """A share with its exact 95% interval."""
    one = proportion(count, of, method="exact")
    return f"{count / of:.3f} ({one.low:.3f}–{one.high:.3f})"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", choices=("develop", "report"))
    parser.add_argument("--per-cell", type=int, default=40, help="plants for each kind and length")
    parser.add_argument("--semantic", choices=("none", "all"), default="none", help="with the packaged encoder")
    parser.add_argument("--missed", type=int, default=0, help="show so many lines of each kind that went wrong")
    given = parser.parse_args()
    require_shared()
    bench = make(("develop", "report").index(given.half), given.per_cell)
    cells, pairs = found(bench, given.semantic)
    names = [name for _, name in LENGTHS]
    kinds = dict.fromkeys(kind for kind, _ in cells)
    ordered = [kind for kind in (*DOCUMENT_KINDS, *INSIDE, *QUERY_KINDS) if kind in kinds]
    rows_ = [
        (
            kind,
            share([hit for name in names for hit in cells[kind, name]]),
            *(share(cells[kind, name]) for name in names),
        )
        for kind in ordered
    ]
    print(table(("kind", "found (95%)", *names), rows_) + "\n")
    harmless = sorted(kinds.keys() - set(ordered))
    print(table(("look-alike", "named (95%)"), [(kind, share(cells[kind, "all"])) for kind in harmless]) + "\n")
    true = [hit for kind in ordered for name in names for _, hit in cells[kind, name]]
    false = [hit for kind in harmless for _, hit in cells[kind, "all"]]
    sides = f"{len(bench.documents):,} documents, {len(bench.queries):,} queries"
    print(f"{sides}, {len(true):,} planted and {len(false):,} harmless lines")
    print(f"recall {sum(true) / len(true):.3f}, precision {share_of(sum(true), sum(true) + sum(false))}")
    texts = {**bench.documents, **bench.queries}
    for (kind, name), hits in cells.items():
        wrong = [line for line, hit in hits if hit != (kind in ordered)]
        for line in wrong[: given.missed]:
            print(f"\n--- {kind}, {name}: {line.test}\nLINE {line.text[:700]}\nTEST {texts.get(line.test, '')[:700]}")
            for pair in (
                pairs.filter(pl.col("training_text") == line.text).head(2).to_dicts() if kind in harmless else ()
            ):
                print(
                    "NAMED",
                    pair["kind"],
                    pair["evidence"],
                    pair["jaccard"],
                    pair["containment"],
                    pair["test_text"][:500],
                )


if __name__ == "__main__":
    main()
