"""Forty-four layouts of evaluation files by a third hand, planted without knowledge of the code that reads them.

`python studies/hand_layouts_third.py OUT` writes them, each in OUT/NAME/, and OUT/truth.json with the true means;
`python studies/hand_layouts_third.py OUT --check` also gives them to `truerank.check` and prints how each was taken.
The docstring of a layout says what a careful reader has to do: the means (a01 to a31), or a question or a refusal (b01 to b13). True means are of
nDCG@10 with linear gains, and of other measures, by the code below; a question without results counts 0.
The reader was changed after the first contact with them, so that a later count is not blind.
"""

# ruff: noqa: E501, E731, E741, N806, PLR0917, RUF005, RUF059

import argparse
import csv
import io
import json
import math
import os
import random
import re
import shutil
import traceback
from pathlib import Path
from typing import Any

import polars

DOCW = (
    "alder birch cedar dogwood elm fir ginkgo hazel ivy juniper katsura larch maple nutmeg oak pine quince rowan "
    "spruce tamarack umbrella viburnum willow yew zelkova aspen beech cherry ebony fig gum holly ironwood jarrah "
    "kauri linden mahogany neem olive poplar"
).split()
VERB = "grows|flowers|rots|is felled|is pruned|is grafted|sheds its leaves|is sown".split("|")
PLACE = "on chalk|in bogs|by the sea|in dry valleys|under snow|on old walls|in parks|near mills".split("|")


def text(i):
    return f"The {DOCW[i]} {VERB[i % 8]} {PLACE[(i * 3 + i // 8) % 8]}, and its wood was sold at price {31 + 7 * i} in the year {1700 + 3 * i}."


def make(seed, n=12, k=10, graded=False, names=("old", "new"), ids=lambda i: f"doc-{i + 100}"):
    """questions [(qid, text)], gold {qid: {doc: grade}}, runs {name: {qid: [doc…]}}; index of doc by id."""
    r = random.Random(seed)
    qs, gold, runs = [], {}, {m: {} for m in names}
    for j in range(n):
        q = f"q{j + 1}"
        rel = r.sample(range(40), r.choice([1, 2, 2, 3]))
        w = DOCW[rel[0]]
        qs.append(
            (
                q,
                r.choice(
                    [
                        f"Where does the {w} stand in case {j + 1}?",
                        f"What became of {w} wood, lot {j + 1}?",
                        f"How is {w} kept in winter {j + 1}?",
                    ]
                ),
            )
        )
        gold[q] = {ids(d): (r.choice([1, 2, 3]) if graded else 1) for d in rel}
        for s, m in enumerate(names):
            keyed = [
                (
                    r.random() * (0.45 if d in rel and r.random() < (0.75 if s else 0.5) else 1)
                    + (0 if d in rel else 0.12),
                    d,
                )
                for d in (set(r.sample(range(40), 18)) | set(rel))
            ]
            runs[m][q] = [ids(d) for _, d in sorted(keyed)[:k]]
    return qs, gold, runs


def measures(gold, run, qids=None):
    qids = list(qids or gold)
    out = {"nDCG@10": 0, "R@10": 0, "RR": 0, "hit@10": 0, "nDCG@5": 0, "R@5": 0, "P@5": 0}
    for q in qids:
        g = {d: v for d, v in gold[q].items() if v > 0}
        l = list(run.get(q, []))
        for k in (5, 10):
            dcg = sum(g.get(d, 0) / math.log2(i + 2) for i, d in enumerate(l[:k]))
            out[f"nDCG@{k}"] += dcg / sum(
                v / math.log2(i + 2) for i, v in enumerate(sorted(g.values(), reverse=True)[:k])
            )
            out[f"R@{k}"] += len(g.keys() & set(l[:k])) / len(g)
        out["P@5"] += len(g.keys() & set(l[:5])) / 5
        out["hit@10"] += bool(g.keys() & set(l[:10]))
        out["RR"] += next((1 / (i + 1) for i, d in enumerate(l) if d in g), 0)
    return {m: round(v / len(qids), 5) for m, v in out.items()}


def truth(gold, runs, qids=None):
    return {m: measures(gold, r, qids) for m, r in runs.items()} | {"questions": len(qids or gold)}


def put(p, s, enc="utf-8"):
    p.parent.mkdir(parents=True, exist_ok=True)
    p.write_bytes(s.encode(enc))


def table(p, head, rows, sep=",", enc="utf-8", pre="", eol="\n", post=""):
    f = io.StringIO()
    w = csv.writer(f, delimiter=sep, lineterminator=eol)
    if head:
        w.writerow(head)
    w.writerows(rows)
    put(p, pre + f.getvalue() + post, enc)


def trec(p, run, tag, score=lambda i: 20 - i, cols=6):
    put(
        p,
        "".join(
            " ".join([q, "Q0", d, str(i + 1), f"{score(i):.4f}", tag][:cols]) + "\n"
            for q, l in run.items()
            for i, d in enumerate(l)
        ),
    )


def jl(p, rows):
    put(p, "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in rows))


# ------------------------------------------------------------------ sound ones


def a01_german_latin1(o):
    """German CSV from Excel: semicolons, Latin-1 with umlauts, lists joined by '|'. Right: the true means."""
    qs, g, r = make(1, names=("Volltext", "Vektoren"))
    table(
        o / "auswertung.csv",
        ["Nr", "Frage", "erwartete Dokumente", "gefunden Volltext", "gefunden Vektoren"],
        [
            [
                i + 1,
                t.replace("Where does", "Für wen wächst").replace("How is", "Wie überlebt"),
                "|".join(g[q]),
                "|".join(r["Volltext"][q]),
                "|".join(r["Vektoren"][q]),
            ]
            for i, (q, t) in enumerate(qs)
        ],
        ";",
        "latin-1",
        eol="\r\n",
    )
    return truth(g, r)


def a02_utf16_tabs(o):
    """Excel's "Unicode text": UTF-16 with BOM, tabs, lists joined by ', '. Right: the true means."""
    qs, g, r = make(2)
    table(
        o / "results.txt",
        ["question", "expected", "retrieved_old", "retrieved_new"],
        [[t, ", ".join(g[q]), ", ".join(r["old"][q]), ", ".join(r["new"][q])] for q, t in qs],
        "\t",
        "utf-16",
        eol="\r\n",
    )
    return truth(g, r)


def a03_bom_python_lists(o):
    """pandas to_csv with BOM, an index column without a name, lists as Python reprs, systems named bm25 and dense. Right: the true means."""
    qs, g, r = make(3, names=("bm25", "dense"))
    table(
        o / "eval.csv",
        ["", "query", "ground_truth_ids", "bm25", "dense"],
        [[i, t, str(list(g[q])), str(r["bm25"][q]), str(r["dense"][q])] for i, (q, t) in enumerate(qs)],
        enc="utf-8-sig",
    )
    return truth(g, r)


def a04_french_scores(o):
    """French table of scores per question, decimal commas, semicolons, accents in cp1252. Right: the means of the columns."""
    qs, g, r = make(4, names=("ancien", "nouveau"))
    table(
        o / "scores.csv",
        ["requête", "nDCG@10 ancien", "nDCG@10 nouveau"],
        [
            [t.replace("Where does", "Où se dresse-t-il, été :")]
            + [f"{measures(g, r[m], [q])['nDCG@10']:.4f}".replace(".", ",") for m in r]
            for q, t in qs
        ],
        ";",
        "cp1252",
    )
    return truth(g, r)


def a05_langsmith(o):
    """LangSmith experiments downloaded as two JSON arrays: inputs, outputs.documents[].metadata.source, reference_outputs. Right: the true means."""
    qs, g, r = make(5, k=6, names=("hybrid", "keyword"))
    for m in r:
        put(
            o / f"experiment-{m}.json",
            json.dumps(
                [
                    {
                        "id": f"{m}-{q}-run",
                        "example_id": f"ex-{q}",
                        "inputs": {"question": t},
                        "outputs": {
                            "answer": "…",
                            "documents": [
                                {"page_content": text(int(d[4:]) - 100), "metadata": {"source": d, "page": 3}}
                                for d in r[m][q]
                            ],
                        },
                        "reference_outputs": {"sources": list(g[q])},
                        "feedback": {"correctness": 1},
                        "execution_time": 1.27,
                        "error": None,
                        "session": m,
                    }
                    for q, t in qs
                ],
                indent=1,
            ),
        )
    return truth(g, r)


def a06_ragas_texts(o):
    """RAGAS samples, JSONL per system: user_input, retrieved_contexts and reference_contexts as passages, response, reference. Right: the true means by equal texts."""
    qs, g, r = make(6, k=5, names=("chunk256", "chunk512"))
    T = lambda d: text(int(d[4:]) - 100)
    for m in r:
        jl(
            o / f"ragas_{m}.jsonl",
            [
                {
                    "user_input": t,
                    "retrieved_contexts": [T(d) for d in r[m][q]],
                    "reference_contexts": [T(d) for d in g[q]],
                    "response": "It stands there.",
                    "reference": "By the mill.",
                }
                for q, t in qs
            ],
        )
    return truth(g, r)


def a07_promptfoo(o):
    """promptfoo output.json: results.results[] with vars, provider.id and response.output, a JSON string of ids; the expected ids are in vars.expected. Right: the true means."""
    qs, g, r = make(7, k=5, names=("file://bm25.py", "file://e5.py"))
    put(
        o / "output.json",
        json.dumps(
            {
                "evalId": "eval-9f2",
                "results": {
                    "version": 3,
                    "timestamp": "2026-01-01T00:00:00Z",
                    "results": [
                        {
                            "id": f"{m}{q}",
                            "promptIdx": 0,
                            "testIdx": i,
                            "provider": {"id": m, "label": ""},
                            "vars": {"query": t, "expected": list(g[q])},
                            "response": {"output": json.dumps(r[m][q]), "cached": False},
                            "success": True,
                            "score": 1,
                            "latencyMs": 12,
                        }
                        for i, (q, t) in enumerate(qs)
                        for m in r
                    ],
                    "stats": {"successes": 24, "failures": 0},
                },
                "config": {"prompts": ["{{query}}"]},
            },
            indent=2,
        ),
    )
    return truth(g, r)


def a08_llamaindex(o):
    """LlamaIndex EmbeddingQAFinetuneDataset (queries, corpus, relevant_docs, mode) and a results file {query id: [ids]} per system. Right: the true means."""
    qs, g, r = make(8, names=("ada", "bge"))
    put(
        o / "qa_dataset.json",
        json.dumps(
            {
                "queries": dict(qs),
                "corpus": {f"doc-{i + 100}": text(i) for i in range(40)},
                "relevant_docs": {q: list(v) for q, v in g.items()},
                "mode": "text",
            }
        ),
    )
    for m in r:
        put(o / f"retrieved_{m}.json", json.dumps(r[m]))
    return truth(g, r)


def a09_dict_of_dicts(o):
    """pytrec_eval's dicts: qrel.json {q: {d: grade}}, two runs {q: {d: score}} with the documents not in order of score. Right: the true means, graded."""
    qs, g, r = make(9, graded=True)
    put(o / "qrel.json", json.dumps(g))
    for m in r:
        put(
            o / f"{m}.json",
            json.dumps(
                {
                    q: dict(sorted(((d, round(0.93 - 0.041 * i, 4)) for i, d in enumerate(l)), key=lambda x: x[0]))
                    for q, l in r[m].items()
                }
            ),
        )
    return truth(g, r)


def a10_orient_split(o):
    """DataFrame.to_json(orient='split') with lists of ids in the cells. Right: the true means."""
    qs, g, r = make(10)
    put(
        o / "frame.json",
        json.dumps(
            {
                "columns": ["question", "relevant", "old_retrieved", "new_retrieved"],
                "index": list(range(len(qs))),
                "data": [[t, list(g[q]), r["old"][q], r["new"][q]] for q, t in qs],
            }
        ),
    )
    return truth(g, r)


def a11_orient_columns(o):
    """DataFrame.to_json() as it is (orient='columns'): {column: {"0": …}}. Right: the true means."""
    qs, g, r = make(11)
    cols = {
        "question": [t for _, t in qs],
        "gold": [list(g[q]) for q, _ in qs],
        "system_a": [r["old"][q] for q, _ in qs],
        "system_b": [r["new"][q] for q, _ in qs],
    }
    put(o / "frame.json", json.dumps({c: {str(i): v for i, v in enumerate(vs)} for c, vs in cols.items()}))
    return truth(g, {"system_a": r["old"], "system_b": r["new"]})


def a12_parquet(o):
    """Parquet with lists of structs {id, score} per system, and lists of ids as expected. Right: the true means."""
    qs, g, r = make(12)
    o.mkdir(parents=True, exist_ok=True)
    cols = {
        "question": [t for _, t in qs],
        "expected_ids": [list(g[q]) for q, _ in qs],
        **{
            f"{m}_results": [[{"id": d, "score": 0.9 - 0.05 * i} for i, d in enumerate(r[m][q])] for q, _ in qs]
            for m in r
        },
    }
    polars.DataFrame(cols).write_parquet(o / "eval.parquet")
    return truth(g, r)


def a13_long_csv(o):
    """One row per result of both systems (system, question_id, rank, doc, score), the rows shuffled; the expected in gold.csv, one row per pair. Right: the true means."""
    qs, g, r = make(13)
    rows = [[m, q, i + 1, d, round(14.2 - 0.77 * i, 3)] for m in r for q in r[m] for i, d in enumerate(r[m][q])]
    random.Random(0).shuffle(rows)
    table(o / "results_long.csv", ["system", "question_id", "rank", "doc", "score"], rows)
    table(o / "gold.csv", ["question_id", "question", "doc"], [[q, t, d] for q, t in qs for d in g[q]])
    return truth(g, r)


def a14_wide_ranks(o):
    """Wide table, one column per rank and system: old_1 … old_5, new_1 … new_5; expected_1 … expected_3 with empty cells. Right: the true means."""
    qs, g, r = make(14, k=5)
    table(
        o / "wide.csv",
        ["question"] + [f"expected_{i}" for i in (1, 2, 3)] + [f"{m}_{i + 1}" for m in r for i in range(5)],
        [[t] + (list(g[q]) + ["", "", ""])[:3] + r["old"][q] + r["new"][q] for q, t in qs],
    )
    return truth(g, r)


def a15_folder_four_files(o):
    """Folder: questions.jsonl (id, text), answers.csv (id, sources), bm25_results.csv and dense_results.csv (id, results). Right: the true means."""
    qs, g, r = make(15, names=("bm25", "dense"))
    jl(o / "questions.jsonl", [{"id": q, "text": t} for q, t in qs])
    table(o / "answers.csv", ["id", "answer", "sources"], [[q, f"It is case {q}.", " ".join(g[q])] for q, _ in qs])
    for m in r:
        table(o / f"{m}_results.csv", ["id", "results"], [[q, " ".join(l)] for q, l in r[m].items()])
    return truth(g, r)


def a16_beir_folder(o):
    """BEIR-like folder: corpus.jsonl, queries.jsonl (with two queries that have no judgments), qrels/test.tsv with a header, runs/*.trec. Right: the true means over the 12 judged."""
    qs, g, r = make(16, graded=True, names=("bm25", "splade"))
    jl(o / "corpus.jsonl", [{"_id": f"doc-{i + 100}", "title": DOCW[i], "text": text(i)} for i in range(40)])
    jl(
        o / "queries.jsonl",
        [{"_id": q, "text": t} for q, t in qs + [("q98", "Who sells saws?"), ("q99", "What does a cooper need?")]],
    )
    table(
        o / "qrels/test.tsv", ["query-id", "corpus-id", "score"], [[q, d, v] for q in g for d, v in g[q].items()], "\t"
    )
    for m in r:
        trec(o / f"runs/{m}.trec", r[m], m)
    return truth(g, r)


def a17_nested_folders(o):
    """Nested: gold/gold.json (list of {id, question, expected}), systems/<name>/2026-01-0x/results.jsonl with {id, hits: [{doc_id, score}]}. Right: the true means, systems by folder."""
    qs, g, r = make(17, names=("elastic", "qdrant"))
    put(o / "gold/gold.json", json.dumps([{"id": q, "question": t, "expected": list(g[q])} for q, t in qs]))
    for n, m in enumerate(r):
        jl(
            o / f"systems/{m}/2026-01-0{n + 3}/results.jsonl",
            [
                {"id": q, "hits": [{"doc_id": d, "score": round(1 - 0.03 * i, 3)} for i, d in enumerate(l)]}
                for q, l in r[m].items()
            ],
        )
    return truth(g, r)


def a18_messy_folder(o):
    """README.md, a notebook, a log, .DS_Store, requirements.txt and a broken old.json.tmp / cache.json beside golden.jsonl, v1.csv, v2.csv. Right: the true means, and says what it left out (the broken JSON)."""
    qs, g, r = make(18, names=("v1", "v2"))
    put(o / "README.md", "# Our evaluation\n\nRun `eval.ipynb`. | a | b |\n|---|---|\n| 1 | 2 |\n")
    put(
        o / "eval.ipynb",
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "source": ["import pandas"],
                        "outputs": [],
                        "metadata": {},
                        "execution_count": 1,
                    }
                ],
                "metadata": {},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        ),
    )
    put(o / "run.log", "2026-01-01 10:00:00 INFO started\n2026-01-01 10:00:07 WARN slow query q3\n")
    put(o / ".DS_Store", "\0\0\0Bud1\0")
    put(o / "requirements.txt", "pandas==2.2.0\nqdrant-client\n")
    put(o / "cache.json", '{"q1": [0.12, 0.33, 0.9], "q2": [0.1, ')
    jl(o / "golden.jsonl", [{"id": q, "question": t, "expected": list(g[q])} for q, t in qs])
    for m in r:
        table(o / f"{m}.csv", ["id", "retrieved"], [[q, ";".join(l)] for q, l in r[m].items()])
    return truth(g, r)


def a19_answers_as_texts(o):
    """Expected a short answer (a price and year that only one passage has), retrieved passages as texts in JSONL, two systems. True: by the passage that contains the answer (1 per question). OTHER if another matching is named."""
    qs, _, r = make(19, k=5, names=("base", "rerank"))
    rng = random.Random(19)
    jj = {q: rng.choice(r["base"][q][:4] + r["rerank"][q][:3]) for q, _ in qs}
    T = lambda d: text(int(d[4:]) - 100)
    A = lambda d: f"price {31 + 7 * (int(d[4:]) - 100)} in the year {1700 + 3 * (int(d[4:]) - 100)}"
    jl(
        o / "qa.jsonl",
        [
            {
                "question": t,
                "answer": A(jj[q]),
                "base": [T(d) for d in r["base"][q]],
                "rerank": [T(d) for d in r["rerank"][q]],
            }
            for q, t in qs
        ],
    )
    return truth({q: {d: 1} for q, d in jj.items()}, r)


def a20_graded_json(o):
    """JSONL with graded expected {id: 1…3}, retrieved lists per system in a dict "systems". Right: graded nDCG@10."""
    qs, g, r = make(20, graded=True)
    jl(o / "graded.jsonl", [{"query": t, "judgments": g[q], "systems": {m: r[m][q] for m in r}} for q, t in qs])
    return truth(g, r)


def a21_spanish(o):
    """Spanish: pregunta, documentos esperados, recuperados sistema A/B; ' / ' between ids. Right: the true means."""
    qs, g, r = make(21, names=("A", "B"), ids=lambda i: f"ficha_{i + 1}")
    table(
        o / "evaluación.csv",
        ["pregunta", "documentos esperados", "recuperados sistema A", "recuperados sistema B"],
        [
            [
                "¿" + t.replace("Where does the", "Dónde está el").replace("What became of", "Qué fue de"),
                " / ".join(g[q]),
                " / ".join(r["A"][q]),
                " / ".join(r["B"][q]),
            ]
            for q, t in qs
        ],
    )
    return truth(g, r)


def a22_japanese_sjis(o):
    """Japanese: 質問, 正解文書, 旧システム, 新システム in Shift-JIS (Excel in Japan), ids joined by 、. Right: the true means."""
    qs, g, r = make(22, names=("旧システム", "新システム"), ids=lambda i: f"文書{i + 1}")
    table(
        o / "評価.csv",
        ["質問", "正解文書", "旧システム", "新システム"],
        [
            [
                f"{j + 1}番の木はどこに生えていますか",
                "、".join(g[q]),
                "、".join(r["旧システム"][q]),
                "、".join(r["新システム"][q]),
            ]
            for j, (q, t) in enumerate(qs)
        ],
        enc="cp932",
        eol="\r\n",
    )
    return truth(g, r)


def a23_title_rows(o):
    """Excel sheet as CSV: three title rows and an empty row before the header, empty columns at the right, lists on separate lines within a cell. Right: the true means."""
    qs, g, r = make(23, names=("Search v3", "Search v4"))
    table(
        o / "Retrieval Eval Q3.csv",
        ["#", "Question", "Expected docs", "Search v3", "Search v4", "", ""],
        [
            [j + 1, t, "\n".join(g[q]), "\n".join(r["Search v3"][q]), "\n".join(r["Search v4"][q]), "", ""]
            for j, (q, t) in enumerate(qs)
        ],
        pre="Retrieval evaluation Q3,,,,,,\nOwner: search team,,,,,,\nExported,2026-10-01,,,,,\n,,,,,,\n",
    )
    return truth(g, r)


def a24_two_sheets(o):
    """Two sheets of one workbook as CSVs: 'Eval - Fragen.csv' (Nr;Frage;Soll) and 'Eval - Treffer.csv' (Nr;System;Rang;Dokument). Right: the true means."""
    qs, g, r = make(24, names=("Lucene", "Vespa"))
    table(
        o / "Eval - Fragen.csv",
        ["Nr", "Frage", "Soll"],
        [[j + 1, t, ", ".join(g[q])] for j, (q, t) in enumerate(qs)],
        ";",
        "cp1252",
    )
    table(
        o / "Eval - Treffer.csv",
        ["Nr", "System", "Rang", "Dokument"],
        [[j + 1, m, i + 1, d] for m in r for j, (q, _) in enumerate(qs) for i, d in enumerate(r[m][q])],
        ";",
        "cp1252",
    )
    return truth(g, r)


def a25_trec_comments(o):
    """TREC runs, one with '#' comment lines and a blank last line, the other with 5 columns (no tag); qrels of 4 columns. Right: the true means (or a refusal that names the 5 columns)."""
    qs, g, r = make(25, graded=True, names=("one", "two"))
    put(o / "qrels.txt", "".join(f"{q} 0 {d} {v}\n" for q in g for d, v in g[q].items()))
    trec(o / "one.run", r["one"], "one")
    p = o / "one.run"
    put(p, "# anserini 0.22, k1=0.9\n# 12 topics\n" + p.read_text() + "\n")
    trec(o / "two.run", r["two"], "two", cols=5)
    return truth(g, r)


def a26_zeros_and_blanks(o):
    """Ids with leading zeros that matter ('007' and '7' are two documents) and file names with blanks ('Doc 007.pdf' no: ids are '007', '7', '0012'), JSON-list cells in CSV; a question id column 001…; Right: the true means with ids as texts."""
    qs, g, r = make(26, ids=lambda i: f"{i // 2 + 1:03d}" if i % 2 else f"{i // 2 + 1}")
    table(
        o / "eval.csv",
        ["qid", "question", "expected", "old", "new"],
        [
            [f"{j + 1:03d}", t, json.dumps(list(g[q])), json.dumps(r["old"][q]), json.dumps(r["new"][q])]
            for j, (q, t) in enumerate(qs)
        ],
    )
    return truth(g, r)


def a27_filenames_with_blanks(o):
    """Ids are file names with blanks and commas ('Annual report, part 3.pdf'), joined by ';'; Right: the true means."""
    qs, g, r = make(27, names=("sharepoint", "copilot"), ids=lambda i: f"{DOCW[i].title()} report, part {i + 1}.pdf")
    table(
        o / "eval.csv",
        ["Question", "Expected source", "sharepoint", "copilot"],
        [[t, "; ".join(g[q]), "; ".join(r["sharepoint"][q]), "; ".join(r["copilot"][q])] for q, t in qs],
    )
    return truth(g, r)


def a28_empty_results(o):
    """JSONL, one system returned [] for three questions and null for one. Right: these count 0 (true means over all 12), and it says so."""
    qs, g, r = make(28)
    for q in ("q2", "q5", "q9", "q11"):
        r["new"][q] = []
    jl(
        o / "eval.jsonl",
        [
            {"question": t, "expected": list(g[q]), "old": r["old"][q], "new": None if q == "q11" else r["new"][q]}
            for q, t in qs
        ],
    )
    return truth(g, r)


def a29_mean_row(o):
    """Scores per question with a last row 'Average' as spreadsheets have. Right: 12 questions, the means without that row counted (n=12)."""
    qs, g, r = make(29, names=("baseline", "ours"))
    rows = [[t] + [round(measures(g, r[m], [q])["nDCG@10"], 4) for m in r] for q, t in qs]
    rows.append(["Average"] + [round(sum(x[c] for x in rows) / len(rows), 4) for c in (1, 2)])
    table(o / "ndcg.csv", ["query", "baseline", "ours"], rows)
    return truth(g, r)


def a30_places_from_0(o):
    """One row per result, column 'rank' counted from 0 to 9, no score; the expected as a JSON {question id: [ids]}. Right: the true means (place 0 is the first)."""
    qs, g, r = make(30)
    table(
        o / "hits.csv",
        ["query_id", "system", "rank", "doc_id"],
        [[q, m, i, d] for m in r for q in r[m] for i, d in enumerate(r[m][q])],
    )
    put(o / "gold.json", json.dumps({q: list(v) for q, v in g.items()}))
    return truth(g, r)


def a31_distances(o):
    """{id: [{id, distance}]} from a vector store per system, rows in no order, 'distance' lower is better; Right: the true means, or asks. WRONG: sorted by distance downwards, or in file order, in silence."""
    qs, g, r = make(31, names=("chroma-small", "chroma-large"))
    put(o / "gold.json", json.dumps([{"id": q, "question": t, "expected_ids": list(g[q])} for q, t in qs]))
    for m in r:
        put(
            o / f"{m}.json",
            json.dumps(
                [
                    {
                        "id": q,
                        "results": sorted(
                            ({"id": d, "distance": round(0.21 + 0.037 * i, 4)} for i, d in enumerate(l)),
                            key=lambda x: x["id"],
                        ),
                    }
                    for q, l in r[m].items()
                ]
            ),
        )
    return truth(g, r)


# ------------------------------------------------------------------ broken or ambiguous on purpose


def b01_truncated_json(o):
    """A JSON array of 12 records, cut off in the 9th. Must refuse (or say loudly that the file is cut and n=8)."""
    qs, g, r = make(41)
    s = json.dumps([{"question": t, "expected": list(g[q]), "old": r["old"][q], "new": r["new"][q]} for q, t in qs])
    put(o / "eval.json", s[: int(len(s) * 0.71)])
    return truth(g, r)


def b02_ragged_rows(o):
    """CSV whose lists have commas without quotes: rows differ in length. Must refuse."""
    qs, g, r = make(42, k=4)
    put(
        o / "eval.csv",
        "question,expected,old,new\n"
        + "".join(
            f"{t.replace(',', '')},{','.join(g[q])},{','.join(r['old'][q])},{','.join(r['new'][q])}\n" for q, t in qs
        ),
    )
    return truth(g, r)


def b03_rank_or_score(o):
    """One row per result, column 'value' holds 1…10: the rank (true: 1 is best), but may be a score. Must ask or say. Expected in gold.csv. Rows sorted by document."""
    qs, g, r = make(43)
    table(
        o / "results.csv",
        ["qid", "system", "doc", "value"],
        sorted([q, m, d, i + 1] for m in r for q in r[m] for i, d in enumerate(r[m][q])),
    )
    table(o / "gold.csv", ["qid", "doc"], [[q, d] for q in g for d in g[q]])
    return truth(g, r)


def b04_two_golds(o):
    """Two columns that may be the expected ids ('gold_ids' and 'expected_ids') and differ in 5 of 12 rows. Must ask. True: by gold_ids."""
    qs, g, r = make(44)
    _, g2, _ = make(144)
    table(
        o / "eval.csv",
        ["question", "gold_ids", "expected_ids", "old", "new"],
        [
            [t, " ".join(g[q]), " ".join(g2[q] if j % 5 < 2 else g[q]), " ".join(r["old"][q]), " ".join(r["new"][q])]
            for j, (q, t) in enumerate(qs)
        ],
    )
    return truth(g, r)


def b05_half_missing(o):
    """TREC: run 'new' has only 6 of the 12 topics. Must say so. True (missing = 0); on the common 6 another figure, if named, is OTHER."""
    qs, g, r = make(45)
    put(o / "test.qrels", "".join(f"{q} 0 {d} {v}\n" for q in g for d, v in g[q].items()))
    r["new"] = {q: l for q, l in r["new"].items() if int(q[1:]) % 2}
    for m in r:
        trec(o / f"{m}.run", r[m], m)
    return truth(g, r) | {"common": truth(g, r, list(r["new"]))}


def b06_id_spaces(o):
    """Expected 'doc-107', system old retrieves 'doc-107', system new 'kb/doc-107.md#chunk-3'. Must ask or say that new's ids are another space; nDCG 0 for new in silence is WRONG."""
    qs, g, r = make(46)
    jl(
        o / "eval.jsonl",
        [
            {
                "question": t,
                "expected": list(g[q]),
                "old": r["old"][q],
                "new": [f"kb/{d}.md#chunk-{i % 4}" for i, d in enumerate(r["new"][q])],
            }
            for q, t in qs
        ],
    )
    return truth(g, r)


def b07_nan_scores(o):
    """Dict runs with NaN scores for about a tenth of the documents of one system. Must refuse or say what it does with NaN. True: by the order before the scores were lost."""
    qs, g, r = make(47)
    put(o / "qrels.json", json.dumps(g))
    rng = random.Random(1)
    put(
        o / "old.json",
        json.dumps({q: {d: round(9 - 0.5 * i, 3) for i, d in enumerate(l)} for q, l in r["old"].items()}),
    )
    put(
        o / "new.json",
        json.dumps(
            {
                q: {d: (float("nan") if rng.random() < 0.12 else round(9 - 0.5 * i, 3)) for i, d in enumerate(l)}
                for q, l in r["new"].items()
            }
        ),
    )
    return truth(g, r)


def b08_trec_distances(o):
    """TREC runs whose score is a distance: rank 1 has the lowest score, in both. trec_eval would turn the order. Must say that ranks and scores contradict. True: by rank."""
    qs, g, r = make(48)
    put(o / "qrels.txt", "".join(f"{q} 0 {d} {v}\n" for q in g for d, v in g[q].items()))
    for m in r:
        trec(o / f"faiss_{m}.run", r[m], m, score=lambda i: 0.2 + 0.05 * i)
    return truth(g, r)


def b09_repeated_contradicting(o):
    """14 rows: two question texts come twice with other expected ids each time, no ids. Must say. True: 14 rows each a question."""
    qs, g, r = make(49, n=14)
    qs = [(q, qs[0][1] if q == "q7" else qs[3][1] if q == "q12" else t) for q, t in qs]
    table(
        o / "eval.csv",
        ["question", "expected", "old", "new"],
        [[t, " ".join(g[q]), " ".join(r["old"][q]), " ".join(r["new"][q])] for q, t in qs],
    )
    return truth(g, r)


def b10_percent_and_fraction(o):
    """Scores per question: old in per cent (63.09), new as fraction (0.7123). Must ask or say; a difference of −50 in silence is WRONG."""
    qs, g, r = make(50)
    v = lambda m, q: measures(g, r[m], [q])["nDCG@10"]
    table(
        o / "scores.csv",
        ["question", "old_ndcg", "new_ndcg"],
        [[t, round(100 * v("old", q), 2), round(v("new", q), 4)] for q, t in qs],
    )
    return truth(g, r)


def b11_excel_ruined_ids(o):
    """Ids of 13 digits ruined by Excel in the expected column (1.76E+12), whole in the retrieved. Must say/refuse; a figure of 0 or of luck in silence is WRONG."""
    qs, g, r = make(51, ids=lambda i: str(1760000000000 + 7919 * i))
    table(
        o / "eval.csv",
        ["question", "expected_id", "old", "new"],
        [[t, f"{float(next(iter(g[q]))):.2E}", "|".join(r["old"][q]), "|".join(r["new"][q])] for q, t in qs],
    )
    return truth(g, r)


def b12_one_system_two_dates(o):
    """Results of the same system of two days with other question sets: monday.jsonl has q1…q8, friday.jsonl q6…q13 (3 in common). Must say that only 3 are in common. True on the 3 common."""
    qs, g, r = make(52, n=13, names=("monday", "friday"))
    for m, keep in (("monday", range(1, 9)), ("friday", range(6, 14))):
        jl(
            o / f"{m}.jsonl",
            [
                {"id": q, "question": t, "expected": list(g[q]), "retrieved": r[m][q]}
                for q, t in qs
                if int(q[1:]) in keep
            ],
        )
    return truth(g, r, ["q6", "q7", "q8"])


def b13_no_expected(o):
    """Only questions and results of two systems; no expected documents at all. Must refuse, saying what is missing."""
    qs, g, r = make(53)
    table(
        o / "eval.csv",
        ["question", "bm25_results", "dense_results"],
        [[t, "|".join(r["old"][q]), "|".join(r["new"][q])] for q, t in qs],
    )
    return {}


LAYOUTS = [f for name, f in sorted(globals().items()) if re.fullmatch(r"[ab]\d\d_\w+", name)]
CLOSE = 2e-4
FOLDERS = ("a15", "a16", "a17", "a18")
#: What an answer or a refusal has to name, where a layout has no right reading that is safe without it, or a further right one.
NAMED = {
    "a25": r"5 columns", "a31": r"two readings", "b01": r"JSON", "b02": r"cells below", "b03": r"two readings", "b04": r"two readings",
    "b05": r"topics", "b06": r"doc-\d+", "b07": r"not finite", "b08": r"distances", "b09": r"twice", "b10": r"scales", "b11": r"retrieved",
    "b12": r"\b3 topics|not in all", "b13": r"expected",
}  # fmt: skip


def write(out: Path) -> dict[str, Any]:
    """The truth by layout."""
    found = {}
    for layout in LAYOUTS:
        folder = out / layout.__name__
        shutil.rmtree(folder, ignore_errors=True)
        found[layout.__name__] = layout(folder)
    put(out / "truth.json", json.dumps(found, indent=1, ensure_ascii=False))
    return found


def agree(read: dict[str, float], right: dict[str, Any]) -> bool:
    """The same means, in whatever order: systems may be called otherwise."""
    wanted = sorted(one["nDCG@10"] for one in right.values() if isinstance(one, dict) and "nDCG@10" in one)
    return len(read) == len(wanted) and all(
        abs(a - b) < CLOSE for a, b in zip(sorted(read.values()), wanted, strict=True)
    )


def judge(folder: Path, right: dict[str, Any], verbose: bool) -> tuple[str, str]:
    """What happened, and the judgment."""
    import truerank
    from truerank.errors import InputError

    sign = NAMED.get(folder.name[:3])
    os.chdir(folder)
    files = ["."] if folder.name[:3] in FOLDERS else sorted(path.name for path in folder.iterdir())
    try:
        check = truerank.check(files)
        shown = "\n".join(
            [str(check), *(note for one in check.readings if one.table is not None for note in one.table.remarks)]
        )
    except InputError as error:
        text = " ".join(str(error).split())
        rightly = "refused rightly" if sign and re.search(sign, text) else "refused for another reason"
        return text, rightly if sign else "refused wrongly"
    except Exception:
        traceback.print_exc()
        return "TRACEBACK", "TRACEBACK"
    if verbose:
        print(f"--- {folder.name}\n{shown}")
    said = sign is None or re.search(sign, shown) is not None
    evaluation = check.claim.evaluation if check.claim is not None else None
    if evaluation is None or check.conclusion.word == "FILES AT FAULT":
        return check.conclusion.word, "refused rightly" if sign and said else "refused wrongly"
    values = [
        {str(run): [v for v in evaluation.of(run, measure) if not math.isnan(v)] for run in evaluation.runs}
        for measure in evaluation.measures
    ]
    means = [{run: sum(own) / len(own) for run, own in one.items()} for one in values]
    happened = ", ".join(f"{run} {value:.3f}" for run, value in means[0].items()) + f" ({check.conclusion.word})"
    claim = check.json()["claim"]
    repaired = claim["repaired"] or {}
    for truth, judgment in ((right.get("common"), "another right reading"), (right, "right")):
        if (
            truth
            and repaired.get("topics") == truth["questions"]
            and {claim["system"], claim["baseline"]} <= truth.keys()
        ):
            difference = truth[claim["system"]]["nDCG@10"] - truth[claim["baseline"]]["nDCG@10"]
            if abs(difference - repaired["value"]) < CLOSE:
                return f"{difference:.3f} on {repaired['topics']} topics ({check.conclusion.word})", judgment
    if any(agree(one, right) for one in means):
        return happened, "right" if said else "right, and not said"
    return happened, "WRONG"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--check", action="store_true", help="also give them to truerank, and print how each was taken")
    parser.add_argument("--verbose", action="store_true", help="print what truerank prints")
    parser.add_argument("--only", nargs="*", default=[], metavar="a01")
    options = parser.parse_args()
    out = options.out.resolve()
    truths = write(out)
    if not options.check:
        print(f"{len(truths)} layouts in {options.out}")
        return
    counts: dict[str, int] = {}
    print("| layout | true means | what happened | judgment |\n| --- | --- | --- | --- |")
    for name, right in truths.items():
        if options.only and name[:3] not in options.only:
            continue
        happened, judgment = judge(out / name, right, options.verbose)
        counts[judgment] = counts.get(judgment, 0) + 1
        true = ", ".join(f"{m} {v['nDCG@10']:.3f}" for m, v in right.items() if isinstance(v, dict) and "nDCG@10" in v)
        print(f"| {name} | {true} | {happened.replace('|', '/')[:150]} | {judgment} |", flush=True)
    print(
        f"\n{sum(counts.values())}: " + ", ".join(f"{count} {judgment}" for judgment, count in sorted(counts.items()))
    )


if __name__ == "__main__":
    main()
