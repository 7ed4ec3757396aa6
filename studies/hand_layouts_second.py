"""Forty layouts of evaluation files, planted without knowledge of the rules that read them.

`python studies/hand_layouts_second.py OUT` writes them, each in OUT/NN-name/ with its truth.json;
`python studies/hand_layouts_second.py OUT --check` also gives them to `truerank.check` and prints how each was taken.
The first 26 have one right reading, the next 14 are broken, ambiguous or dangerous. These forty were planted blind. Those after
them are variants, planted when the result of the forty was known: mostly where a file was refused for a reason other than its fault.
Where a user would know the answer to a refusal, truth.json has it ("answer", for --columns), and it is given in a second try.
"""

# ruff: noqa: E501, PLR0911, PLR0912

import argparse
import csv
import gzip
import io
import json
import lzma
import math
import os
import random
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SOUND, BLIND = 26, 40
DEPTH = 10

Grades = dict[str, dict[str, int]]
Ranking = dict[str, list[str]]


# The measure, written here and not taken from the program.


def ndcg(ranking: list[str], grades: dict[str, float]) -> float:
    gains = [grades.get(doc, 0) for doc in ranking[:DEPTH]]
    ideal = sorted(grades.values(), reverse=True)[:DEPTH]
    best = sum(gain / math.log2(place + 2) for place, gain in enumerate(ideal))
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains)) / best


def ndcg_by_topic(ranking: Ranking, qrels: Any) -> dict[str, float]:
    return {q: ndcg(ranking.get(q, []), qrels[q]) for q in qrels if any(g > 0 for g in qrels[q].values())}


def mean(values: Any) -> float:
    values = list(values)
    return sum(values) / len(values)


def means(rankings: dict[str, Ranking], qrels: Any) -> dict[str, float]:
    return {name: mean(ndcg_by_topic(ranking, qrels).values()) for name, ranking in rankings.items()}


# Content.

SUBJECTS = {
    "shop": (
        "running shoes,espresso machine,garden hose,desk lamp,rain jacket,phone case,yoga mat,drill bits,bed sheets,bike helmet",
        "for beginners,under 50 euros,waterproof,in black,for large hands,with warranty,size 42,as a gift,for small flats,second hand",
    ),
    "support": (
        "reset the password,export invoices,invite a colleague,change the plan,merge two accounts,restore a backup,connect the calendar,"
        "mute a channel,verify the domain,rotate the key",
        "on the phone,for an admin,after the trial,without access to mail,from the command line,in bulk,with single sign-on,"
        "on the old plan,in a sandbox,for a guest",
    ),
    "legal": (
        "délai de préavis,clause de non-concurrence,garantie des vices cachés,droit de rétractation,bail commercial,"
        "licenciement économique,servitude de passage,prescription d'une dette",
        "en cas de faute grave,pour un salarié à temps partiel,après un achat en ligne,entre deux sociétés,en zone rurale,pour un mineur",
    ),
    "de": (
        "Akkuschrauber,Gartenschlauch,Kaffeemühle,Bürostuhl,Fahrradhelm,Wanderschuhe,Heizlüfter,Kühltasche",
        "für Anfänger,günstig,wasserdicht,Größe 42,mit Zubehör,gebraucht,für Kinder",
    ),
    "ja": (
        "返品の方法,送料の計算,会員登録,請求書の発行,配送の遅れ,支払い方法,在庫の確認",
        "を知りたい,について,ができない,の期限は,を変更したい",
    ),
    "es": (
        "vacaciones,nómina,teletrabajo,dietas,baja médica,formación,seguro",
        "en verano,para becarios,fuera de España,con retraso,por horas,2025",
    ),
    "pt": (
        "cartão recusado,segunda via,limite do cheque,taxa de câmbio,conta conjunta,pix agendado",
        "no exterior,pelo aplicativo,para empresas,sem agência,no feriado",
    ),
    "science": (
        "graph neural networks,soil moisture,protein folding,dark matter halos,coral bleaching,speech codecs,lithium plating,quantum annealing",
        "a survey,under noise,with few labels,at low temperature,in cities,versus baselines,for sparse data",
    ),
}


def questions(rng: random.Random, subject: str, count: int) -> list[str]:
    heads, tails = (part.split(",") for part in SUBJECTS[subject])
    joint = "" if subject == "ja" else " "
    every = [f"{head}{joint}{tail}" for head in heads for tail in tails]
    return rng.sample(every, count)


PASSAGE = (
    "the valve,a licence,our team,the parcel,this clause,the battery,each index,the tenant,a refund,the sensor".split(
        ","
    )
)
DOES = "must be renewed,is checked,arrives late,can be returned,was measured,keeps its value,needs approval,fails quietly".split(
    ","
)
WHEN = "every spring,within 14 days,by the manager,at 20 degrees,without notice,after the update,on request,in Zone 3".split(
    ","
)


def passages(rng: random.Random, count: int) -> list[str]:
    texts: list[str] = []
    while len(texts) < count:
        text = f"{rng.choice(PASSAGE).capitalize()} {rng.choice(DOES)} {rng.choice(WHEN)}, and {rng.choice(PASSAGE)} {rng.choice(DOES)}."
        if text not in texts:
            texts.append(text)
    return texts


class World(NamedTuple):
    """Topics with questions, judgments, and what each system ranks."""

    text: dict[str, str]
    qrels: Grades
    runs: dict[str, Ranking]

    def gold(self, topic: str) -> list[str]:
        return [doc for doc, grade in self.qrels[topic].items() if grade > 0]

    @property
    def topics(self) -> list[str]:
        return list(self.text)

    def means(self) -> dict[str, float]:
        return means(self.runs, self.qrels)


def world(
    rng: random.Random,
    texts: list[str],
    topic: Callable[[int], str],
    docs: list[str],
    systems: dict[str, float],
    *,
    depth: int = 10,
    gold: tuple[int, int] = (1, 3),
    grades: tuple[int, ...] = (1,),
) -> World:
    """Systems place each expected document with the given probability, more often near the top."""
    text = {topic(number): question for number, question in enumerate(texts)}
    qrels: Grades = {}
    runs: dict[str, Ranking] = {name: {} for name in systems}
    for name in text:
        expected = rng.sample(docs, rng.randint(*gold))
        qrels[name] = {doc: rng.choice(grades) for doc in expected}
        others = [doc for doc in docs if doc not in qrels[name]]
        for system, skill in systems.items():
            ranking = rng.sample(others, depth)
            for doc in expected:
                if rng.random() < skill:
                    ranking.insert(min(int(rng.expovariate(0.4)), depth - 1), doc)
            runs[system][name] = ranking[:depth]
    return World(text, qrels, runs)


# Writing.


class Layout(NamedTuple):
    what: str
    files: dict[str, bytes]
    accept: list[str]
    means: dict[str, float]
    other_means: Sequence[dict[str, float]] = ()
    say: str = ""
    say_words: Sequence[str] = ()
    tolerance: float = 1e-6
    answer: str = ""
    questions: Sequence[str] = ()


def table(
    rows: list[list[Any]],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    end: str = "\n",
    quoting: int = csv.QUOTE_MINIMAL,
) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    return out.getvalue().encode(encoding)


def dump(value: Any, **options: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, **options).encode()


def lines(rows: list[Any]) -> bytes:
    return b"".join(dump(row) + b"\n" for row in rows)


def comma(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".replace(".", ",")


def trec_run(ranking: Ranking, tag: str, score: Callable[[int], float] = lambda rank: 30 - 1.37 * rank) -> bytes:
    rows = [
        f"{q} Q0 {doc} {rank} {score(rank):.4f} {tag}\n"
        for q, docs in ranking.items()
        for rank, doc in enumerate(docs, 1)
    ]
    return "".join(rows).encode()


def small_gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


# 26 with one right reading.


def german_spreadsheet(rng: random.Random) -> Layout:
    docs = [f"{rng.randrange(10**7):08d}" for _ in range(200)]
    w = world(rng, questions(rng, "de", 32), lambda i: f"{i}", docs, {"BM25": 0.6, "Vektor": 0.7}, depth=8)
    rows: list[list[Any]] = [
        ["Nr.", "Suchanfrage", "Erwartete Artikelnummern", "Treffer BM25", "Treffer Vektor", "Bemerkung"]
    ]
    for i, q in enumerate(w.topics, 1):
        note = rng.choice(["", "", "", "ok", "prüfen!", "Größe fehlt"])
        rows.append([i, w.text[q], " | ".join(w.gold(q)), *(" | ".join(w.runs[s][q]) for s in w.runs), note])
    return Layout(
        "German spreadsheet saved as CSV: semicolons, Windows-1252, lists in cells, article numbers with leading zeros, remarks",
        {"Auswertung Suche.csv": table(rows, delimiter=";", encoding="cp1252", end="\r\n")}, ["read", "warn"], w.means(), questions=list(w.text.values()))  # fmt: skip


def french_long(rng: random.Random) -> Layout:
    codes = ["C. civ.", "C. trav.", "C. com.", "C. consom."]
    docs = list(
        dict.fromkeys(
            f"{rng.choice(codes)}, art. L{rng.randrange(100, 999)}-{rng.randrange(1, 30)}" for _ in range(150)
        )
    )
    w = world(
        rng,
        questions(rng, "legal", 24),
        lambda i: f"Q{i + 1:02d}",
        docs,
        {"plein-texte": 0.5, "sémantique": 0.65},
        depth=6,
    )
    expected = [["Question", "Article attendu"]] + [[w.text[q], doc] for q in w.topics for doc in w.gold(q)]
    rows: list[list[Any]] = [["Moteur", "Question", "Rang", "Article", "Score"]]
    rows += [
        [s, w.text[q], rank, doc, comma(0.95 - 0.07 * rank - rng.random() * 0.05)]
        for s, ranking in w.runs.items() for q, hits in ranking.items() for rank, doc in enumerate(hits, 1)
    ]  # fmt: skip
    return Layout(
        "French legal team: long form with rank and decimal commas (TSV, BOM), expected articles in a file of their own, questions as text",
        {
            "articles_attendus.tsv": table(expected, delimiter="\t", encoding="utf-8-sig"),
            "resultats_moteurs.tsv": table(rows, delimiter="\t", encoding="utf-8-sig"),
        },
        ["read", "warn"], w.means(), answer="system=Moteur")  # fmt: skip


def nested_log(rng: random.Random) -> Layout:
    docs = [f"kb/{rng.choice(['billing', 'login', 'api', 'mobile'])}/{i:03d}" for i in range(140)]
    w = world(rng, questions(rng, "support", 40), lambda i: f"t{i}", docs, {"lexical": 0.55, "hybrid": 0.7}, depth=5)
    for q in rng.sample(w.topics, 4):
        w.qrels[q].clear()
    rows = [
        {
            "ts": f"2025-03-{1 + i % 28:02d}T09:{i % 60:02d}:11Z", "level": "INFO", "request": {"user": rng.randrange(9000), "q": w.text[q], "lang": "en"},
            "gold": {"article_ids": w.gold(q)},
            "results": {s: [{"id": d, "score": round(12.5 - k - rng.random(), 3)} for k, d in enumerate(w.runs[s][q])] for s in w.runs},
            "latency_ms": {s: rng.randrange(20, 400) for s in w.runs},
        }
        for i, q in enumerate(w.topics)
    ]  # fmt: skip
    return Layout(
        "JSONL log of a support desk: everything nested, hits as objects, four questions without an expected article",
        {"eval.log.jsonl": lines(rows)}, ["read", "warn"], w.means(), say="four questions have no expected answer", questions=list(w.text.values()))  # fmt: skip


def one_dump(rng: random.Random) -> Layout:
    docs = [f"doc_{i}" for i in range(300)]
    w = world(
        rng,
        questions(rng, "science", 28),
        lambda i: f"q_{i + 1}",
        docs,
        {"bm25": 0.6, "colbert-v2": 0.75},
        grades=(1, 2, 3),
    )
    value = {
        "meta": {"created": "2025-02-11", "k": 10, "git": "9f3c2ab", "elapsed_s": 812.4},
        "qrels": w.qrels,
        "runs": {
            s: {
                q: {d: round(1 - 0.06 * k - rng.random() * 0.05, 5) for k, d in enumerate(hits)}
                for q, hits in r.items()
            }
            for s, r in w.runs.items()
        },
    }
    return Layout(
        "one JSON of an evaluation script: meta, qrels and runs as dicts of dicts, graded",
        {"dump.json": dump(value, indent=1)},
        ["read", "warn"],
        w.means(),
    )


def columnar_texts(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 26),
        lambda i: f"{i}",
        passages(rng, 160),
        {"base": 0.5, "rerank": 0.7},
        depth=5,
        gold=(1, 2),
    )
    value = {
        "user_input": [w.text[q] for q in w.topics],
        "reference": ["Yes: " + w.gold(q)[0].lower() for q in w.topics],
        "reference_contexts": [w.gold(q) for q in w.topics],
        "retrieved_contexts_base": [w.runs["base"][q] for q in w.topics],
        "retrieved_contexts_rerank": [w.runs["rerank"][q] for q in w.topics],
        "response": ["It depends. " + rng.choice(DOES) for _ in w.topics],
    }
    return Layout(
        "RAG evaluation set as a dict of columns (JSON), contexts are texts, with answers and reference answers beside",
        {"ragset.json": dump(value)},
        ["read", "warn"],
        w.means(),
        answer="question=user_input,expected=reference_contexts,retrieved=retrieved_contexts_base+retrieved_contexts_rerank",
    )


def trec_eval_output(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "science", 35),
        lambda i: f"{301 + i}",
        [f"FT{i:05d}" for i in range(300)],
        {"bm25": 0.6, "dpr": 0.5},
    )
    files, expected = {}, {}
    for s, ranking in w.runs.items():
        values = {q: round(v, 4) for q, v in ndcg_by_topic(ranking, w.qrels).items()}
        expected[s] = mean(values.values())
        out = []
        for q, value in values.items():
            found = len(set(ranking[q]) & set(w.gold(q)))
            for name, number in (
                ("num_ret", "10"),
                ("num_rel", str(len(w.gold(q)))),
                ("num_rel_ret", str(found)),
                ("P_10", f"{found / 10:.4f}"),
                ("ndcg_cut_10", f"{value:.4f}"),
            ):
                out.append(f"{name:<22}\t{q}\t{number}\n")
        out += [
            f"{'runid':<22}\tall\t{s}\n",
            f"{'num_q':<22}\tall\t{len(values)}\n",
            f"{'num_ret':<22}\tall\t{10 * len(values)}\n",
        ]
        out.append(f"{'ndcg_cut_10':<22}\tall\t{expected[s]:.4f}\n")
        files[f"{s}.eval"] = "".join(out).encode()
    return Layout(
        "output of trec_eval -q, a file per system, counts and several measures, lines for all",
        files,
        ["read", "warn"],
        expected,
    )


def wide_scores_timed(rng: random.Random) -> Layout:
    texts = questions(rng, "shop", 45)
    rows: list[list[Any]] = [
        ["", "qid", "query", "ndcg_bm25", "ndcg_splade", "ms_bm25", "ms_splade", "cost_usd_bm25", "cost_usd_splade"]
    ]
    values: dict[str, list[float]] = {"bm25": [], "splade": []}
    for i, text in enumerate(texts):
        pair = [round(rng.betavariate(2, 2), 6), round(rng.betavariate(2.4, 2), 6)]
        for s, value in zip(values, pair, strict=True):
            values[s].append(value)
        rows.append(
            [
                i,
                1000 + 7 * i,
                text,
                *pair,
                round(rng.uniform(3, 9), 2),
                round(rng.uniform(40, 90), 2),
                0.0,
                round(rng.uniform(0.0001, 0.0009), 6),
            ]
        )
    return Layout(
        "DataFrame.to_csv with its index: nDCG per query in columns, milliseconds and costs beside",
        {"per_query.csv": table(rows)},
        ["read", "warn"],
        {s: mean(v) for s, v in values.items()},
        answer="score=ndcg_bm25+ndcg_splade",
    )


def long_measures(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "science", 30),
        lambda i: f"{i + 1}",
        [f"d{i}" for i in range(200)],
        {"TF_IDF": 0.5, "TF_IDF >> monoT5": 0.7},
    )
    rows: list[list[Any]] = [["name", "qid", "measure", "value"]]
    for s, ranking in w.runs.items():
        for q, value in ndcg_by_topic(ranking, w.qrels).items():
            recall = len(set(ranking[q]) & set(w.gold(q))) / len(w.gold(q))
            rows += [[s, q, "R@10", recall], [s, q, "mrt", round(rng.uniform(20, 900), 3)], [s, q, "nDCG@10", value]]
    return Layout(
        "per-query results of an experiment in long form: three measures, one of them a response time",
        {"perquery.csv": table(rows)},
        ["read", "warn"],
        w.means(),
        answer="system=name",
    )


def gold_apart(rng: random.Random) -> Layout:
    docs = [f"POL-{rng.choice('ABCD')}{i:03d}" for i in range(120)]
    w = world(
        rng, questions(rng, "support", 33), lambda i: f"GQ-{i + 1:03d}", docs, {"v1": 0.55, "v2": 0.6}, gold=(1, 1)
    )
    gold = [["id", "question", "answer", "source_doc"]] + [
        [q, w.text[q], f"See the policy, section {rng.randrange(1, 9)}.", w.gold(q)[0]] for q in w.topics
    ]
    files = {"golden_set.csv": table(gold)}
    for s, ranking in w.runs.items():
        for q in rng.sample(w.topics, 6):
            del ranking[q][rng.randrange(3, 9) :]
        files[f"retrieval_{s}.csv"] = table(
            [["question_id", *(f"doc{k}" for k in range(1, 11))]]
            + [[q, *hits, *[""] * (10 - len(hits))] for q, hits in ranking.items()]
        )
    return Layout(
        "golden set apart, a file per system with doc1 to doc10, some lists shorter",
        files,
        ["read", "warn"],
        w.means(),
        answer="expected=source_doc",
    )


def gz_parts(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "shop", 42),
        lambda i: f"{rng.randrange(16**8):08x}",
        [f"B0{rng.randrange(36**6):06d}"[:10] for _ in range(250)],
        {"prod": 0.6, "cand": 0.62},
    )
    rows = [
        {"qid": q, "query": w.text[q], "system": s, "relevant": w.gold(q), "ranking": w.runs[s][q]}
        for q in w.topics
        for s in w.runs
    ]
    rng.shuffle(rows)
    files = {f"part-{k:05d}-c000.jsonl.gz": small_gzip(lines(rows[k::3])) for k in range(3)}
    return Layout(
        "three parts as a cluster writes them (JSONL, gzip): shuffled rows of both systems, each question in several parts",
        files,
        ["read", "warn"],
        w.means(),
    )


def beir_qrels_compressed(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "science", 36),
        lambda i: f"PLAIN-{i + 2}",
        [f"MED-{i}" for i in range(10, 400)],
        {"bm25": 0.6, "e5": 0.7},
        grades=(1, 2),
    )
    rows: list[list[Any]] = [["query-id", "corpus-id", "score"]]
    for q in w.topics:
        rows += [[q, d, g] for d, g in w.qrels[q].items()] + [[q, f"MED-{900 + rng.randrange(50)}", 0]]
    return Layout(
        "judgments with a header and grades, runs compressed in two ways, with comments on top",
        {
            "test.tsv": table(rows, delimiter="\t"),
            "bm25.trec.gz": small_gzip(b"# k1=0.9 b=0.4\n" + trec_run(w.runs["bm25"], "bm25")),
            "e5.trec.xz": lzma.compress(b"# e5-base, exact search\n" + trec_run(w.runs["e5"], "e5")),
        },
        ["read", "warn"], w.means(),
    )  # fmt: skip


def psql_output(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 25),
        lambda i: f"{i + 11}",
        [f"D-{i}" for i in range(10, 140)],
        {"lexical": 0.6, "semantic": 0.7},
        depth=5,
        gold=(1, 1),
    )
    head = ["id", "query", "gold_doc", "lexical", "semantic"]
    body = [[q, w.text[q], w.gold(q)[0], *("{" + ",".join(w.runs[s][q]) + "}" for s in w.runs)] for q in w.topics]
    width = [max(len(row[c]) for row in [head, *body]) for c in range(5)]
    out = [
        " " + " | ".join(cell.center(n) for cell, n in zip(head, width, strict=True)),
        "-" + "-+-".join("-" * n for n in width) + "-",
    ]
    out += [
        " "
        + " | ".join(
            cell.rjust(n) if c == 0 else cell.ljust(n) for c, (cell, n) in enumerate(zip(row, width, strict=True))
        )
        for row in body
    ]
    return Layout(
        "what psql prints: aligned table with bars, arrays in braces, a count of rows at the end",
        {"query_result.txt": ("\n".join(out) + f"\n({len(body)} rows)\n\n").encode()},
        ["read", "warn"],
        w.means(),
    )


def recommendations(rng: random.Random) -> Layout:
    items = [f"{i}" for i in range(1001, 1400)]
    users = [str(u) for u in rng.sample(range(1, 6000), 50)]
    w = world(rng, users, lambda i: users[i], items, {"popular": 0.35, "als": 0.5}, gold=(1, 4))
    rows: list[list[Any]] = [["user_id", "n_history", "held_out", "recs_popular", "recs_als"]]
    rows += [
        [
            q,
            rng.randrange(5, 300),
            str([int(d) for d in w.gold(q)]),
            *(str([int(d) for d in w.runs[s][q]]) for s in w.runs),
        ]
        for q in w.topics
    ]
    return Layout(
        "recommendations: users in place of questions, item numbers in Python lists, the length of the history beside",
        {"offline_eval.csv": table(rows)},
        ["read", "warn"],
        w.means(),
    )


def marco_tsv(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 48),
        lambda i: f"{1048000 + 37 * i}",
        [f"{rng.randrange(8_800_000)}" for _ in range(400)],
        {"bm25": 0.4, "ance": 0.6},
        gold=(1, 1),
    )
    files = {"qrels.dev.tsv": table([[q, 0, d, 1] for q in w.topics for d in w.gold(q)], delimiter="\t")}
    for s, ranking in w.runs.items():
        files[f"run.{s}.tsv"] = table(
            [[q, d, k] for q, hits in ranking.items() for k, d in enumerate(hits, 1)], delimiter="\t"
        )
    return Layout(
        "runs as query, passage, rank without header or score, all ids are numbers; judgments with four columns",
        files,
        ["read", "warn"],
        w.means(),
    )


def japanese_utf16(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "ja", 21),
        lambda i: f"{i + 1}",
        [f"文書{i:03d}" for i in range(90)],
        {"A": 0.6, "B": 0.7},
        depth=5,
        gold=(1, 2),
    )
    rows = [["番号", "質問", "正解文書", "検索結果A", "検索結果B"]] + [
        [q, w.text[q], "\n".join(w.gold(q)), *("\n".join(w.runs[s][q]) for s in w.runs)] for q in w.topics
    ]
    return Layout(
        "Japanese spreadsheet as Unicode text (UTF-16, tabs), a document per line within a cell",
        {"検索評価.txt": table(rows, delimiter="\t", encoding="utf-16", end="\r\n")},
        ["read", "warn"],
        w.means(),
    )


def spanish_totals(rng: random.Random) -> Layout:
    texts = questions(rng, "es", 27)
    values = {
        "antiguo": [round(rng.betavariate(2, 2), 3) for _ in texts],
        "nuevo": [round(rng.betavariate(2.6, 2), 3) for _ in texts],
    }
    rows: list[list[Any]] = [
        ["Evaluación del buscador interno, marzo de 2025", "", "", ""],
        ["Responsable: RR. HH.", "", "", ""],
        ["", "", "", ""],
    ]
    rows += [["N.º", "Consulta", "nDCG@10 antiguo", "nDCG@10 nuevo"]]
    rows += [
        [i, text, comma(values["antiguo"][i - 1]), comma(values["nuevo"][i - 1])] for i, text in enumerate(texts, 1)
    ]
    rows += [["", "MEDIA", *(comma(mean(v)) for v in values.values())]]
    return Layout(
        "Spanish spreadsheet: a title above, decimal commas, a row of means below",
        {"evaluación.csv": table(rows, delimiter=";", encoding="utf-8-sig")},
        ["read", "warn"],
        {s: mean(v) for s, v in values.items()},
        answer="score=nDCG@10 antiguo+nDCG@10 nuevo",
    )


def engine_rank_eval(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "shop", 30),
        lambda i: f"q_{i:02d}",
        [f"sku-{i}" for i in range(200)],
        {"match": 0.55, "boosted": 0.65},
    )
    files = {}
    for s, ranking in w.runs.items():
        values = ndcg_by_topic(ranking, w.qrels)
        details = {
            q: {
                "metric_score": values[q],
                "unrated_docs": [{"_index": "products", "_id": d} for d in ranking[q] if d not in w.qrels[q]],
                "hits": [{"hit": {"_index": "products", "_id": d, "_score": round(21.5 - 1.1 * k, 4)}, "rating": w.qrels[q].get(d)} for k, d in enumerate(ranking[q])],
                "metric_details": {"dcg": {"normalized_dcg": values[q], "unrated_docs": sum(d not in w.qrels[q] for d in ranking[q])}},
            }
            for q in w.topics
        }  # fmt: skip
        files[f"rank_eval_{s}.json"] = dump(
            {"metric_score": mean(values.values()), "details": details, "failures": {}}, indent=2
        )
    pooled = {q: {d: 1 for d in w.gold(q) if any(d in w.runs[s][q] for s in w.runs)} for q in w.topics}
    return Layout(
        "answers of a search engine's ranking evaluation API, a file per system",
        files,
        ["read", "warn"],
        w.means(),
        [means(w.runs, pooled)],
    )


def tracing_export(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 22),
        lambda i: f"{i}",
        [f"art_{i:04d}" for i in range(150)],
        {"baseline-gpt": 0.6, "query-rewrite": 0.65},
        depth=6,
    )
    rows: list[list[Any]] = [
        [
            "run_id",
            "experiment",
            "inputs.question",
            "reference_outputs.doc_ids",
            "outputs.doc_ids",
            "outputs.answer",
            "latency",
            "total_tokens",
            "total_cost",
            "error",
        ]
    ]
    for s in w.runs:
        for q in w.topics:
            uid = f"{rng.randrange(16**8):08x}-{rng.randrange(16**4):04x}-4{rng.randrange(16**3):03x}"
            rows.append(
                [
                    uid,
                    s,
                    w.text[q],
                    json.dumps(w.gold(q)),
                    json.dumps(w.runs[s][q]),
                    "Open the settings, then choose.",
                    round(rng.uniform(0.4, 3), 3),
                    rng.randrange(300, 2000),
                    round(rng.uniform(0.001, 0.01), 5),
                    "",
                ]
            )
    return Layout(
        "export of a tracing platform: dotted names, lists as JSON, two experiments, latency, tokens, costs",
        {"export_2025-04-02.csv": table(rows, quoting=csv.QUOTE_ALL)},
        ["read", "warn"],
        w.means(),
        answer="system=experiment",
    )


def retriever_results(rng: random.Random) -> Layout:
    def node() -> str:
        return f"node_{rng.randrange(16**8):08x}"

    w = world(
        rng,
        questions(rng, "science", 29),
        lambda i: f"{i}",
        [node() for _ in range(150)],
        {"base": 0.5, "finetuned": 0.7},
        depth=5,
        gold=(1, 1),
    )
    files = {}
    for s, ranking in w.runs.items():
        rows = [
            {"query": w.text[q], "expected_ids": w.gold(q), "expected_texts": None, "retrieved_ids": ranking[q], "mode": "text",
             "metric_dict": {"hit_rate": {"score": float(w.gold(q)[0] in ranking[q]), "metadata": {}}}}
            for q in w.topics
        ]  # fmt: skip
        files[f"results_{s}.json"] = dump(rows, indent=2)
    return Layout(
        "results of a RAG library's retriever evaluation, a JSON file per system, hit rate beside",
        files,
        ["read", "warn"],
        w.means(),
    )


def wide_by_rank(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "pt", 20),
        lambda i: f"{i}",
        [f"faq{i}" for i in range(60)],
        {"bm25": 0.6, "denso": 0.75},
        depth=5,
        gold=(1, 1),
    )
    rows: list[list[Any]] = [["pergunta", "resposta_esperada", *(f"{s}_{k}" for s in w.runs for k in range(1, 6))]]
    rows += [[w.text[q], w.gold(q)[0], *(d for s in w.runs for d in w.runs[s][q])] for q in w.topics]
    return Layout(
        "Portuguese: a column for each rank of each system",
        {"comparativo.csv": table(rows)},
        ["read", "warn"],
        w.means(),
        answer="question=pergunta,expected=resposta_esperada,retrieved=bm25_1+bm25_2+bm25_3+bm25_4+bm25_5+denso_1+denso_2+denso_3+denso_4+denso_5",
    )


def graded_positions(rng: random.Random, label: Callable[[int], Any] = lambda grade: grade) -> tuple[World, bytes]:
    texts = questions(rng, "shop", 24)
    qrels: Grades = {}
    runs: dict[str, Ranking] = {"control": {}, "variant": {}}
    rows: list[list[Any]] = [["query", "product_id", "product_title", "label", "pos_control", "pos_variant"]]
    for text in texts:
        products = [f"P{n}" for n in rng.sample(range(10000, 99999), 15)]
        qrels[text] = {p: rng.choice((0, 0, 0, 1, 2, 3)) for p in products} | {products[0]: 3}
        for s, noise in (("control", 3.0), ("variant", 2.2)):
            runs[s][text] = sorted(products, key=lambda p: -qrels[text][p] + rng.gauss(0, noise))[:10]
        for p in products:
            place = [runs[s][text].index(p) + 1 if p in runs[s][text] else "" for s in runs]
            rows.append(
                [
                    text,
                    p,
                    rng.choice(["Basic", "Pro", "Classic", "Mini"]) + " " + text.split(" ")[0],
                    label(qrels[text][p]),
                    *place,
                ]
            )
    return World({t: t for t in texts}, qrels, runs), table(rows)


def graded_numbers(rng: random.Random) -> Layout:
    w, data = graded_positions(rng)
    return Layout(
        "judged products: grade 0 to 3, and the position of each product in both systems, empty where it was not shown",
        {"judged_products.csv": data},
        ["read", "warn"],
        w.means(),
        answer="expected=product_id,grade=label",
    )


def yaml_tests(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 18),
        lambda i: f"{i}",
        [f"howto/{i}.md" for i in range(80)],
        {"bm25": 0.6, "embed-small": 0.7},
        depth=5,
        gold=(1, 2),
    )
    out = ["# golden tests, reviewed 2025-01\n", "description: retrieval smoke tests\n", "tests:\n"]
    for q in w.topics:
        out += [f'  - question: "{w.text[q]}"\n', "    expected:\n", *(f"      - {d}\n" for d in w.gold(q))]
    rows = [
        {"provider": s, "question": w.text[q], "output": w.runs[s][q], "latencyMs": rng.randrange(10, 300)}
        for s in w.runs
        for q in w.topics
    ]
    return Layout(
        "golden tests in YAML, results of two providers in JSONL, joined by the text of the question",
        {"tests.yaml": "".join(out).encode(), "output.jsonl": lines(rows)},
        ["read", "warn"],
        w.means(),
    )


def nested_scores(rng: random.Random) -> Layout:
    names = [f"query-{i}" for i in range(1, 38)]
    value = {
        s: {q: {"map": rng.random(), "ndcg_cut_10": rng.betavariate(a, 2), "recall_100": rng.random()} for q in names}
        for s, a in (("bm25", 2), ("minilm", 2.3), ("mpnet", 2.5))
    }
    return Layout(
        "pytrec_eval results of three systems in one JSON: system, query, measure",
        {"scores.json": dump(value)},
        ["read", "warn"],
        {s: mean(v["ndcg_cut_10"] for v in by.values()) for s, by in value.items()},
        answer="score=ndcg_cut_10",
    )


def seeds(rng: random.Random) -> Layout:
    names = [f"{i}" for i in range(1, 31)]
    rows: list[list[Any]] = [["model", "seed", "question_id", "nDCG@10"]]
    values: dict[str, list[float]] = {}
    for s, shift in (("small", 0.0), ("large", 0.06)):
        base = {q: rng.uniform(0.2, 0.7) + shift for q in names}
        for seed in (13, 42, 1234):
            for q in names:
                value = round(min(1, max(0, base[q] + rng.gauss(0, 0.05))), 5)
                values.setdefault(s, []).append(value)
                values.setdefault(f"{s} {seed}", []).append(value)
                rows.append([s, seed, q, value])
    all_means = {s: mean(v) for s, v in values.items()}
    pooled = {s: all_means.pop(s) for s in ("small", "large")}
    return Layout(
        "scores of two models with three seeds each", {"seeds.csv": table(rows)}, ["read", "warn"], pooled, [all_means]
    )


def merged_cells(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "shop", 19),
        lambda i: f"{i + 1}",
        [f"{i}-{rng.choice('XYZ')}" for i in range(500, 700)],
        {"old": 0.6, "new": 0.7},
        depth=5,
        gold=(1, 1),
    )
    rows: list[list[Any]] = [["#", "Query", "Expected", "Rank", "Old engine", "New engine"]]
    for q in w.topics:
        rows += [
            [
                *([q, w.text[q], w.gold(q)[0]] if k == 0 else ["", "", ""]),
                k + 1,
                w.runs["old"][q][k],
                w.runs["new"][q][k],
            ]
            for k in range(5)
        ]
    return Layout(
        "spreadsheet with merged cells: query and expected product on the first of five rows, two engines side by side",
        {"side by side.csv": table(rows)},
        ["read", "warn"],
        w.means(),
    )


def split_frame(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "science", 16),
        lambda i: f"{i}",
        passages(rng, 90),
        {"base": 0.5, "ft": 0.7},
        depth=4,
        gold=(1, 1),
    )
    value = {
        "columns": ["query", "positive", "topk_base", "topk_ft"],
        "index": list(range(16)),
        "data": [[w.text[q], w.gold(q)[0], w.runs["base"][q], w.runs["ft"][q]] for q in w.topics],
    }
    return Layout(
        "DataFrame.to_json(orient='split'), passages as texts", {"table.json": dump(value)}, ["read", "warn"], w.means()
    )


# 14 that are broken, ambiguous or dangerous.


def gold_ranks(rng: random.Random) -> Layout:
    texts = questions(rng, "support", 34)
    places: dict[str, list[int | None]] = {
        s: [int(rng.expovariate(rate)) + 1 if rng.random() < 0.85 else None for _ in texts]
        for s, rate in (("bm25", 0.2), ("vector", 0.45))
    }
    rows: list[list[Any]] = [["question", "bm25", "vector"]] + [
        [t, *(places[s][i] or "not found" for s in places)] for i, t in enumerate(texts)
    ]
    gain = {s: mean(1 / math.log2(1 + p) if p and p <= 10 else 0 for p in v) for s, v in places.items()}
    reciprocal = {s: mean(1 / p if p else 0 for p in v) for s, v in places.items()}
    cut = {s: mean(1 / p if p and p <= 10 else 0 for p in v) for s, v in places.items()}
    return Layout(
        "numbers are the place of the expected article, small is good; as scores they would name the wrong winner",
        {"positions.csv": table(rows)},
        ["ask", "refuse", "warn"],
        gain,
        [reciprocal, cut],
        "the numbers look like ranks",
        [r"\brank", r"\bplaces?\b", "position of", "lower"],
    )


def chunks_for_documents(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 26),
        lambda i: f"q{i}",
        [f"manual-{i}" for i in range(100)],
        {"fixed": 0.6, "semantic": 0.7},
        depth=8,
        gold=(1, 2),
    )
    rows = [
        {
            "question": w.text[q],
            "expected": w.gold(q),
            **{f"retrieved_{s}": [f"{d}#chunk{rng.randrange(9)}" for d in w.runs[s][q]] for s in w.runs},
        }
        for q in w.topics
    ]
    return Layout(
        "expected are documents, retrieved are chunks of them: no id matches as it is",
        {"chunks.jsonl": lines(rows)},
        ["ask", "refuse", "warn"],
        w.means(),
        [dict.fromkeys(w.runs, 0.0)],
        "no expected id is retrieved as it is written",
        ["chunk", "match", r"never", "none of", "no expected"],
    )


def letters(rng: random.Random) -> Layout:
    w, data = graded_positions(rng, lambda grade: "ICSE"[grade])
    other = [
        means(w.runs, {q: {d: gain[g] for d, g in grades.items()} for q, grades in w.qrels.items()})
        for gain in ((0, 0.01, 0.1, 1.0), (0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 1, 1))
    ]
    return Layout(
        "judged products with labels E, S, C, I; nothing says what they are worth",
        {"esci_positions.csv": data},
        ["ask", "refuse", "warn"],
        w.means(),
        other,
        "the labels have no gains",
        ["labels?\\b.* (grade|gain|letter|E, )", "what .* worth"],
    )


def swapped_qrels(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "science", 30),
        lambda i: f"{i + 1}",
        [f"AP88-{i:04d}" for i in range(300)],
        {"bm25": 0.6, "rm3": 0.65},
    )
    files = {"qrels.txt": "".join(f"{d} 0 {q} 1\n" for q in w.topics for d in w.gold(q)).encode()}
    files |= {f"{s}.run": trec_run(r, s) for s, r in w.runs.items()}
    return Layout(
        "judgments with document and topic swapped",
        files,
        ["ask", "refuse", "warn"],
        w.means(),
        say="topic and document are swapped",
        say_words=["swap", "exchanged", "column", "is judged"],
    )


def one_system_twice(rng: random.Random) -> Layout:
    w = world(
        rng, questions(rng, "shop", 30), lambda i: f"q{i}", [f"sku{i}" for i in range(200)], {"v1": 0.6}, gold=(1, 2)
    )
    rows = [{"query": w.text[q], "expected": w.gold(q), "results": w.runs["v1"][q]} for q in w.topics]
    return Layout(
        "the second system's file is a copy of the first",
        {"search_v1.jsonl": lines(rows), "search_v2.jsonl": lines(rows)},
        ["ask", "refuse", "warn"],
        {"v1": w.means()["v1"], "v2": w.means()["v1"]},
        [w.means()],
        "both systems are identical",
        ["identical", "the same", "copy", "equal", "twice"],
    )


def mixed_scales(rng: random.Random) -> Layout:
    texts = questions(rng, "support", 31)
    a, b = [round(rng.betavariate(3, 2), 2) for _ in texts], [round(100 * rng.betavariate(2, 2), 1) for _ in texts]
    rows: list[list[Any]] = [["question", "old pipeline", "new pipeline"]] + [
        [t, x, y] for t, x, y in zip(texts, a, b, strict=True)
    ]
    return Layout(
        "one system's scores from 0 to 1, the other's from 0 to 100",
        {"faithfulness.csv": table(rows)},
        ["ask", "refuse", "warn"],
        {"old pipeline": mean(a), "new pipeline": mean(b)},
        [{"old pipeline": mean(a), "new pipeline": mean(b) / 100}],
        "the scales differ",
        ["scale", "percent", "0 to 1", "range", "unit"],
    )


def half_a_file(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 40),
        lambda i: f"{i + 1}",
        [f"D{i:04d}" for i in range(150)],
        {"bm25": 0.6, "dense": 0.7},
        depth=6,
    )
    gold = table([["id", "question", "expected"]] + [[q, w.text[q], " ".join(w.gold(q))] for q in w.topics])
    files = {"gold.csv": gold} | {
        f"{s}.csv": table([["id", "retrieved"]] + [[q, " ".join(r[q])] for q in w.topics]) for s, r in w.runs.items()
    }
    cut = files["dense.csv"].index(b"\n23,") + 17
    files["dense.csv"] = files["dense.csv"][:cut]
    whole = {q: w.runs["dense"][q] for q in w.topics[:22]}
    kept = whole | {w.topics[22]: files["dense.csv"].decode().rsplit(",", 1)[1].split(" ")}
    other = []
    for left in (whole, kept):
        other.append(means({"bm25": w.runs["bm25"], "dense": left}, w.qrels))
        other.append(means({"bm25": w.runs["bm25"], "dense": left}, {q: w.qrels[q] for q in left}))
    return Layout(
        "the second system's file ends in the middle of line 24 of 41",
        files,
        ["ask", "refuse", "warn"],
        other[2],
        other,
        "17 questions have no result of dense",
        ["missing", r"\blacks?\b", "no result of", r"\b1[78]\b", r"\bcut\b"],
    )


def other_version(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 28),
        lambda i: f"q{i}",
        [f"{i:04d}" for i in range(120)],
        {"lexical": 0.6, "hybrid": 0.7},
        depth=7,
        gold=(1, 2),
    )
    rows: list[list[Any]] = [["question", "expected", "retrieved_lexical", "retrieved_hybrid"]]
    rows += [
        [
            w.text[q],
            ";".join(f"KB-2023-{d}" for d in w.gold(q)),
            *(";".join(f"KB-2024-{rng.randrange(3000, 3200)}" for _ in w.runs[s][q]) for s in w.runs),
        ]
        for q in w.topics
    ]
    return Layout(
        "expected ids of last year's index, retrieved ids of this year's",
        {"regression.csv": table(rows)},
        ["ask", "refuse", "warn"],
        dict.fromkeys(w.runs, 0.0),
        say="no expected id was ever retrieved",
        say_words=["match", "never", "none of", "no expected", "version", "other ids"],
    )


def distances(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "science", 32),
        lambda i: f"{i + 1}",
        [f"p{i}" for i in range(250)],
        {"hnsw": 0.7, "ivf": 0.6},
    )
    files = {"qrels": "".join(f"{q} 0 {d} 1\n" for q in w.topics for d in w.gold(q)).encode()}
    files |= {f"{s}.run": trec_run(r, s, lambda rank: 0.2 + 0.031 * rank) for s, r in w.runs.items()}
    reverse = means({s: {q: hits[::-1] for q, hits in r.items()} for s, r in w.runs.items()}, w.qrels)
    return Layout(
        "runs of a vector index: the score is a distance and grows with the rank",
        files,
        ["ask", "refuse", "warn"],
        w.means(),
        [reverse],
        "ranks and scores contradict each other",
        ["rank", "distance", "contradict", "order", "ascending"],
    )


def timings_only(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["query", "bm25_s", "vector_s", "tokens"]] + [
        [t, round(rng.uniform(0.02, 0.2), 3), round(rng.uniform(0.2, 0.95), 3), rng.randrange(80, 600)]
        for t in questions(rng, "shop", 30)
    ]
    return Layout(
        "seconds per query, all between 0 and 1, and tokens: nothing is a score",
        {"bench_results.csv": table(rows)},
        ["ask", "refuse"],
        {},
        say="the numbers are times",
        say_words=["time", "seconds", "latency", "bm25_s"],
    )


def section_numbers(rng: random.Random) -> Layout:
    docs = [f"{a}.{b}" for a in range(1, 8) for b in range(1, 31)]
    w = world(rng, questions(rng, "support", 30), lambda i: f"{i}", docs, {"a": 0.5, "b": 0.6}, depth=3, gold=(1, 1))
    for q in w.topics[::2]:
        # 3.10 is expected, and 3.1 retrieved: as numbers they are equal
        tens = f"{rng.randrange(1, 8)}.{rng.choice((10, 20, 30))}"
        w.qrels[q].clear()
        w.qrels[q][tens] = 1
        for s in w.runs:
            w.runs[s][q] = [
                tens if rng.random() < 0.3 else tens[:-1],
                *[d for d in w.runs[s][q] if d not in (tens, tens[:-1])][:2],
            ]
    rows: list[list[Any]] = [
        ["question", "expected section", "a top1", "a top2", "a top3", "b top1", "b top2", "b top3"]
    ]
    rows += [[w.text[q], w.gold(q)[0], *(d for s in w.runs for d in w.runs[s][q])] for q in w.topics]
    return Layout(
        "ids are section numbers such as 3.1 and 3.10: they look like scores, and as numbers they are equal",
        {"handbook.csv": table(rows)},
        ["read", "warn", "ask"],
        w.means(),
    )


def training_triples(rng: random.Random) -> Layout:
    texts = passages(rng, 120)
    rows = [
        {
            "query": t,
            "pos": rng.sample(texts, 1),
            "neg": rng.sample(texts, 7),
            "teacher_scores": [round(rng.random(), 3) for _ in range(8)],
        }
        for t in questions(rng, "science", 40)
    ]
    return Layout(
        "training data with positives and hard negatives: no system retrieved anything",
        {"train_hn.jsonl": lines(rows)},
        ["ask", "refuse"],
        {},
        say="the negatives are not results",
        say_words=["training", r"negatives? (is|are|as)"],
    )


def two_id_spaces(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "shop", 30),
        lambda i: f"q{i}",
        [f"SKU-{rng.choice('ABC')}-{i:03d}" for i in range(150)],
        {"solr": 0.6, "vectordb": 0.7},
        gold=(1, 2),
    )
    rows: list[list[Any]] = [["query", "expected", "solr", "vectordb"]]
    rows += [
        [
            w.text[q],
            "|".join(w.gold(q)),
            "|".join(w.runs["solr"][q]),
            "|".join(str(rng.randrange(900000, 999999)) for _ in range(10)),
        ]
        for q in w.topics
    ]
    return Layout(
        "one system returns SKUs as expected, the other row numbers of its database",
        {"compare.csv": table(rows)},
        ["ask", "refuse", "warn"],
        {"solr": w.means()["solr"], "vectordb": 0.0},
        say="vectordb returns none of the expected ids, in any question",
        say_words=["match", "never", "none of", "no expected", "other ids", "id space"],
    )


def appended_rerun(rng: random.Random) -> Layout:
    names = [f"Q{i}" for i in range(1, 31)]
    rows: list[list[Any]] = []
    by: dict[str, dict[str, list[float]]] = {}
    for s, pick in (("bm25", names), ("rerank", names), ("rerank", rng.sample(names, 9))):
        for q in pick:
            value = round(rng.betavariate(2, 2), 4)
            by.setdefault(s, {}).setdefault(q, []).append(value)
            rows.append([s, q, value])
    average, first, last = (
        {s: mean(f(v) for v in q.values()) for s, q in by.items()} for f in (mean, lambda v: v[0], lambda v: v[-1])
    )
    return Layout(
        "nine questions of one system appended again with other scores; nothing says which holds",
        {"runs_log.csv": table([["system", "query_id", "ndcg"], *rows])},
        ["ask", "refuse", "warn"],
        average,
        [first, last],
        "nine questions occur twice with other scores",
        ["twice", "repeat", "more than once", "duplicate", "several", "2 times", "again"],
    )


LAYOUTS: list[Callable[[random.Random], Layout]] = [
    german_spreadsheet, french_long, nested_log, one_dump, columnar_texts, trec_eval_output, wide_scores_timed, long_measures, gold_apart, gz_parts,
    beir_qrels_compressed, psql_output, recommendations, marco_tsv, japanese_utf16, spanish_totals, engine_rank_eval, tracing_export, retriever_results,
    wide_by_rank, graded_numbers, yaml_tests, nested_scores, seeds, merged_cells, split_frame,
    gold_ranks, chunks_for_documents, letters, swapped_qrels, one_system_twice, mixed_scales, half_a_file, other_version, distances, timings_only,
    section_numbers, training_triples, two_id_spaces, appended_rerun,
]  # fmt: skip


# Variants, planted when the result of the forty was known.


def places(rng: random.Random, missing: Any, names: tuple[str, str] = ("bm25", "vector")) -> Layout:
    texts = questions(rng, "support", 30)
    ranks: dict[str, list[int | None]] = {
        s: [int(rng.expovariate(rate)) + 1 if rng.random() < 0.85 else None for _ in texts]
        for s, rate in zip(names, (0.2, 0.45), strict=True)
    }
    rows: list[list[Any]] = [["question", *names]] + [
        [t, *(ranks[s][i] or missing for s in names)] for i, t in enumerate(texts)
    ]
    gain = {s: mean(1 / math.log2(1 + p) if p and p <= 10 else 0 for p in v) for s, v in ranks.items()}
    reciprocal = {s: mean(1 / p if p else 0 for p in v) for s, v in ranks.items()}
    return Layout(
        f"places of the expected article, {missing!r} where it was not found",
        {"eval.csv": table(rows)},
        ["ask", "refuse", "warn"],
        gain,
        [reciprocal],
        "the numbers look like ranks",
        [r"\brank", r"\bplaces?\b", "lower"],
    )


def places_blank(rng: random.Random) -> Layout:
    return places(rng, "")


def places_99(rng: random.Random) -> Layout:
    return places(rng, 99)


def places_zero(rng: random.Random) -> Layout:
    return places(rng, "0")


def places_named(rng: random.Random) -> Layout:
    return places(rng, "", ("rank_bm25", "rank_vector"))


def places_german(rng: random.Random) -> Layout:
    return places(rng, "", ("Rang alt", "Rang neu"))


def times(rng: random.Random, names: tuple[str, str], file: str, low: float = 0.02) -> Layout:
    rows: list[list[Any]] = [["query", *names]] + [
        [t, round(rng.uniform(low, 10 * low), 3), round(rng.uniform(10 * low, 45 * low), 3)]
        for t in questions(rng, "shop", 30)
    ]
    return Layout(
        f"seconds per query in columns {names}: nothing is a score",
        {file: table(rows)},
        ["ask", "refuse"],
        {},
        say="the numbers are times",
        say_words=[r"\btimes?\b", "seconds", "lower"],
    )


def times_suffix(rng: random.Random) -> Layout:
    return times(rng, ("bm25_s", "vector_s"), "bench.csv")


def times_file_name(rng: random.Random) -> Layout:
    return times(rng, ("bm25", "vector"), "latency.csv")


def times_german(rng: random.Random) -> Layout:
    return times(rng, ("Antwortzeit BM25", "Antwortzeit Vektor"), "auswertung.csv")


def times_words(rng: random.Random) -> Layout:
    return times(rng, ("bm25 response time", "vector response time"), "bench.csv")


def lengths(rng: random.Random) -> Layout:
    rows: list[list[Any]] = [["question", "answer_length_a", "answer_length_b"]] + [
        [t, rng.randrange(80, 400), rng.randrange(200, 700)] for t in questions(rng, "support", 30)
    ]
    return Layout(
        "lengths of two systems' answers: nothing is a score",
        {"answers.csv": table(rows)},
        ["ask", "refuse"],
        {},
        say="the numbers are lengths",
        say_words=["lengths", "not a score"],
    )


def negatives_named(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 30),
        lambda i: f"{i}",
        [f"D{i:04d}" for i in range(150)],
        {"negatives": 0.0, "hard_negatives": 0.0},
        depth=6,
    )
    rows = [{"query": w.text[q], "positive": w.gold(q), **{s: w.runs[s][q] for s in w.runs}} for q in w.topics]
    return Layout(
        "training data with positives, negatives and hard negatives, as ids",
        {"train.jsonl": lines(rows)},
        ["ask", "refuse"],
        {},
        say="negatives are not results",
        say_words=["training", r"negatives? (is|are|as)"],
    )


def negatives_mined(rng: random.Random) -> Layout:
    """The negatives were mined from a pool with false negatives, so that some are expected elsewhere."""
    value = negatives_named(rng)
    rows = [json.loads(line) for line in value.files["train.jsonl"].splitlines()]
    for row in rows[::6]:
        row["hard_negatives"][2] = row["positive"][0]
        row["negatives"][4] = row["positive"][0]
    return value._replace(files={"train.jsonl": lines(rows)}, what=value.what + ", a few of them positives by mistake")


def third_system_elsewhere(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "shop", 30),
        lambda i: f"q{i}",
        [f"SKU-{i:03d}" for i in range(150)],
        {"solr": 0.6, "splade": 0.65, "vectordb": 0.7},
        gold=(1, 2),
    )
    rows: list[list[Any]] = [["query", "expected", *w.runs]]
    rows += [
        [
            w.text[q],
            "|".join(w.gold(q)),
            "|".join(w.runs["solr"][q]),
            "|".join(w.runs["splade"][q]),
            "|".join(str(rng.randrange(900000, 999999)) for _ in range(10)),
        ]
        for q in w.topics
    ]
    right = w.means() | {"vectordb": 0.0}
    return Layout(
        "three systems, the third with row numbers in place of SKUs",
        {"compare.csv": table(rows)},
        ["ask", "refuse", "warn"],
        right,
        [{s: right[s] for s in ("solr", "splade")}],
        "vectordb returns none of the expected ids",
        ["vectordb"],
    )


def half(rng: random.Random, separator: str) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 30),
        lambda i: f"{i + 1}",
        [f"D{i:04d}" for i in range(150)],
        {"bm25": 0.6, "dense": 0.7},
        depth=6,
    )
    files = {
        "gold.csv": table(
            [["id", "question", "expected"]] + [[q, w.text[q], separator.join(w.gold(q))] for q in w.topics]
        )
    }
    files |= {
        f"{s}.csv": table([["id", "retrieved"]] + [[q, separator.join(r[q])] for q in w.topics])
        for s, r in w.runs.items()
    }
    files["dense.csv"] = files["dense.csv"][: files["dense.csv"].index(b"\n17,") + 17]
    left = {q: w.runs["dense"][q] for q in w.topics[:16]} | {
        w.topics[16]: files["dense.csv"].decode().rsplit(",", 1)[1].split(separator)
    }
    both = {"bm25": w.runs["bm25"], "dense": left}
    return Layout(
        f"the second file ends within a line; ids are separated by {separator!r}",
        files,
        ["ask", "refuse", "warn"],
        means(both, w.qrels),
        [means(both, {q: w.qrels[q] for q in left})],
        "13 questions have no result of dense",
        [r"\b1[34]\b", r"\blacks?\b"],
    )


def half_semicolons(rng: random.Random) -> Layout:
    return half(rng, ";")


def half_spaces(rng: random.Random) -> Layout:
    return half(rng, " ")


def parts_without_system(rng: random.Random) -> Layout:
    w = world(rng, questions(rng, "shop", 36), lambda i: f"q{i}", [f"p{i}" for i in range(150)], {"a": 0.6, "b": 0.7})
    rows = [{"query": w.text[q], "expected": w.gold(q), **{s: w.runs[s][q] for s in w.runs}} for q in w.topics]
    return Layout(
        "two halves of one evaluation, each with both systems, no question in both",
        {"part-0.jsonl": lines(rows[:18]), "part-1.jsonl": lines(rows[18:])},
        ["read", "warn", "ask"],
        w.means(),
    )


def parts_of_one_column(rng: random.Random) -> Layout:
    w = world(rng, questions(rng, "shop", 36), lambda i: f"q{i}", [f"p{i}" for i in range(150)], {"a": 0.6})
    rows = [{"query": w.text[q], "expected": w.gold(q), "retrieved": w.runs["a"][q]} for q in w.topics]
    part_means = means(
        {f"part-{k}": {q: w.runs["a"][q] for q in w.topics[18 * k : 18 * k + 18]} for k in range(2)}, w.qrels
    )
    return Layout(
        "two halves of one system's results: as two systems they have no question in common",
        {"part-0.jsonl": lines(rows[:18]), "part-1.jsonl": lines(rows[18:])},
        ["ask", "refuse", "warn"],
        w.means(),
        [part_means],
        "the files share no question",
        ["no question", "no topic", "in common", "lacks", "share", "parts?\b"],
    )


def shared_timestamps(rng: random.Random) -> Layout:
    w = world(
        rng,
        questions(rng, "support", 30),
        lambda i: f"{i}",
        [f"D{i:04d}" for i in range(150)],
        {"bm25": 0.6, "dense": 0.7},
        depth=6,
    )
    rows = [
        {
            "ts": f"2025-03-01T09:{i // 2:02d}:00Z",
            "request": {"q": w.text[q]},
            "gold": {"article_ids": w.gold(q)},
            "results": {s: [{"id": d, "score": 9 - k} for k, d in enumerate(w.runs[s][q])] for s in w.runs},
        }
        for i, q in enumerate(w.topics)
    ]
    return Layout(
        "the nested log again, two questions for each time stamp",
        {"eval.jsonl": lines(rows)},
        ["read", "warn"],
        w.means(),
        questions=list(w.text.values()),
    )


def beside_percent(rng: random.Random) -> Layout:
    texts = questions(rng, "support", 25)
    a, b = [rng.randrange(20, 95) for _ in texts], [rng.randrange(30, 99) for _ in texts]
    rows: list[list[Any]] = [["question", "old", "new", "Δ", "better?"]] + [
        [t, f"{x} %", f"{y} %", f"{y - x:+d} %", "new" if y > x else "old"] for t, x, y in zip(texts, a, b, strict=True)
    ]
    right = {"old": mean(a), "new": mean(b)}
    return Layout(
        "percentages with their sign, the difference and the winner beside",
        {"recall.csv": table(rows)},
        ["read", "warn", "ask"],
        {s: v / 100 for s, v in right.items()},
        [right],
    )


def average_column(rng: random.Random) -> Layout:
    texts = questions(rng, "support", 25)
    a, b = [round(rng.random(), 3) for _ in texts], [round(rng.random(), 3) for _ in texts]
    rows: list[list[Any]] = [["question", "bm25", "dense", "average", "best"]] + [
        [t, x, y, round((x + y) / 2, 4), max(x, y)] for t, x, y in zip(texts, a, b, strict=True)
    ]
    return Layout(
        "scores of two systems, their average and the best of both beside: neither is a system",
        {"scores.csv": table(rows)},
        ["read", "warn", "ask", "refuse"],
        {"bm25": mean(a), "dense": mean(b)},
    )


def long_run(rng: random.Random, subject: str, head: list[str], gold: list[str]) -> Layout:
    docs = [f"{rng.choice('ABC')}-{i:04d}" for i in range(150)]
    w = world(rng, questions(rng, subject, 24), lambda i: f"{i}", docs, {"plain": 0.5, "semantic": 0.65}, depth=6)
    rows: list[list[Any]] = [head]
    rows += [
        [s, w.text[q], rank, doc, round(0.95 - 0.07 * rank - rng.random() * 0.05, 3)]
        for s, ranking in w.runs.items()
        for q, hits in ranking.items()
        for rank, doc in enumerate(hits, 1)
    ]
    expected = [gold] + [[w.text[q], doc] for q in w.topics for doc in w.gold(q)]
    what = f"results in long form with the columns {', '.join(head)}: the score is that of the engine, not of an evaluation"
    return Layout(
        what, {"expected.csv": table(expected), "results.csv": table(rows)}, ["read", "warn", "ask"], w.means()
    )


def long_run_french(rng: random.Random) -> Layout:
    value = french_long(rng)
    files = {name: data.replace(b"Moteur", b"system") for name, data in value.files.items()}
    what = "the French legal team's files again, the column of the engine named system: the score is that of the engine"
    return value._replace(what=what, files=files, accept=["read", "warn", "ask"], answer="")


def long_run_sku(rng: random.Random) -> Layout:
    return long_run(rng, "shop", ["system", "query", "position", "sku", "score"], ["query", "expected_sku"])


def long_run_engine(rng: random.Random) -> Layout:
    return long_run(rng, "support", ["engine", "query", "pos", "article", "similarity"], ["query", "expected"])


def wide_by_rank_english(rng: random.Random) -> Layout:
    value = wide_by_rank(rng)
    data = value.files["comparativo.csv"].replace(b"pergunta", b"question").replace(b"resposta_esperada", b"expected")
    return value._replace(
        what="a column for each rank of each system, in English", files={"comparison.csv": data}, answer=""
    )


def index_column(rng: random.Random) -> Layout:
    rows = [["", "qid", "ndcg_bm25", "ndcg_splade"]]
    pairs = [(round(rng.random(), 6), round(rng.random(), 6)) for _ in range(30)]
    rows += [[str(i), f"q{i}", str(a), str(b)] for i, (a, b) in enumerate(pairs)]
    right = {"bm25": mean(a for a, _ in pairs), "splade": mean(b for _, b in pairs)}
    return Layout(
        "DataFrame.to_csv with its index, nDCG of two systems and nothing else",
        {"p.csv": table(rows)},
        ["read", "warn"],
        right,
    )


VARIANTS: list[Callable[[random.Random], Layout]] = [
    places_blank, places_99, places_zero, places_named, places_german, times_suffix, times_file_name, times_german, times_words, lengths, negatives_named,
    negatives_mined, third_system_elsewhere, half_semicolons, half_spaces, parts_without_system, parts_of_one_column, shared_timestamps, beside_percent, average_column, long_run_french, long_run_sku, long_run_engine, wide_by_rank_english, index_column,
]  # fmt: skip


def write(out: Path) -> list[Path]:
    folders = []
    for number, layout in enumerate(LAYOUTS + VARIANTS, 1):
        folder = out / f"{number:02d}-{layout.__name__.replace('_', '-')}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        value = layout(random.Random(2025_00 + number))
        for name, data in value.files.items():
            (folder / name).write_bytes(data)
        truth = {
            "what": value.what, "files": list(value.files), "accept": value.accept, "means": value.means, "other_means": value.other_means,
            "say": value.say, "say_words": value.say_words, "tolerance": value.tolerance,
            "answer": value.answer, "questions": value.questions,
        }  # fmt: skip
        (folder / "truth.json").write_text(json.dumps(truth, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        folders.append(folder)
    return folders


# What the program makes of them.


def agree(read: dict[str, float], right: dict[str, float], tolerance: float) -> bool:
    """The same number of systems, and the same means; where names tell which is which, they must agree."""
    if len(read) != len(right):
        return False
    if not all(abs(a - b) <= tolerance for a, b in zip(sorted(read.values()), sorted(right.values()), strict=True)):
        return False
    return all(abs(read[name] - right[name]) <= tolerance for name in read.keys() & right.keys())


def judge(folder: Path, verbose: bool, answer: str = "") -> tuple[str, str]:
    """What happened, and the judgment."""
    import truerank
    from truerank.claims.options import ClaimSources
    from truerank.errors import InputError

    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    accept, words = truth["accept"], truth["say_words"]
    refusable = bool({"ask", "refuse"} & set(accept))

    def says(text: str) -> bool:
        return any(re.search(word, text, re.IGNORECASE) for word in words)

    os.chdir(folder)
    try:
        check = truerank.check(truth["files"], sources=ClaimSources(columns=answer))
        shown = str(check)
    except InputError as error:
        text = " ".join(str(error).split())
        if verbose:
            print(f"--- {folder.name} {answer}\n{error}")
        if not answer and truth["answer"]:
            happened, judgment = judge(folder, verbose, truth["answer"])
            return (
                f"refused: {text[:100]} **With --columns {truth['answer'][:40]}:** {happened}",
                "right" if refusable else f"refused wrongly; answered: {judgment}",
            )
        reason = "right" if not words or says(text) else "refused for another reason"
        return f"refused: {text[:100]}", reason if refusable else "refused wrongly"
    except Exception:
        traceback.print_exc()
        return "TRACEBACK", "TRACEBACK"
    evaluation = check.claim.evaluation if check.claim is not None else None
    if verbose:
        print(f"--- {folder.name} {answer}\n{shown}")
    if evaluation is None or check.conclusion.word == "FILES AT FAULT":
        unsaid = "READ SILENTLY" if evaluation is None else "refused for another reason"
        return f"no figure ({check.conclusion.word})", (
            "right" if says(shown) else unsaid
        ) if refusable else "refused wrongly"
    by_measure = {
        str(m): {
            str(run): float(mean(v for v in evaluation.of(run, m) if not math.isnan(v))) for run in evaluation.runs
        }
        for m in evaluation.measures
    }
    if verbose:
        print(by_measure, "right:", truth["means"])
    which, means_agree = "means that are not right", False
    for label, choices in (("the same means", [truth["means"]]), ("other right means", truth["other_means"])):
        if not means_agree and any(
            agree(read, right, truth["tolerance"]) for read in by_measure.values() for right in choices
        ):
            which, means_agree = label, True
    happened = f"read with {which} ({check.conclusion.word}{', said' if says(shown) else ''})"
    if not means_agree:
        values = next(iter(by_measure.values()), {})
        return happened + " " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()), "READ WRONGLY"
    if truth["questions"]:
        texts = {
            text
            for reading in check.readings
            if reading.table is not None
            for text in reading.table.questions["text"].to_list()
        }
        if not set(truth["questions"]) <= texts:
            return happened + f", but the questions are {sorted(map(str, texts))[:2]}", "right means, other questions"
    if "read" in accept or ("warn" in accept and says(shown)):
        return happened, "right"
    return happened, "READ SILENTLY" if "warn" in accept else "READ WRONGLY"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--check", action="store_true", help="also give them to truerank, and print how each was taken")
    parser.add_argument("--verbose", action="store_true", help="print what truerank prints")
    parser.add_argument("--only", nargs="*", default=[], metavar="NN")
    options = parser.parse_args()
    folders = write(options.out.resolve())
    if not options.check:
        print(f"{len(folders)} layouts in {options.out}")
        return
    results: list[tuple[str, list[str], str, str]] = []
    for folder in folders:
        if options.only and folder.name[:2] not in options.only:
            continue
        accept = json.loads((folder / "truth.json").read_text(encoding="utf-8"))["accept"]
        results.append((folder.name, accept, *judge(folder, options.verbose)))
        print(f"{folder.name} done", file=sys.stderr)
    print("| layout | accept | what happened | judgment |\n| --- | --- | --- | --- |")
    for name, accept, happened, judgment in results:
        print(f"| {name} | {', '.join(accept)} | {happened.replace('|', '/')} | {judgment} |")
    parts = (
        ("with one right reading", 1, SOUND),
        ("dangerous", SOUND + 1, BLIND),
        ("variants", BLIND + 1, len(folders)),
    )
    for label, first, last in parts:
        judgments = [judgment for name, _, _, judgment in results if first <= int(name[:2]) <= last]
        print(f"{len(judgments)} {label}: " + ", ".join(f"{judgments.count(j)} {j}" for j in sorted(set(judgments))))


if __name__ == "__main__":
    main()
