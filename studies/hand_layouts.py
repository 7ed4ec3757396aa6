"""Write evaluation files as teams have them, with the true reading beside each, to try a reader that one does not know.

    python studies/hand_layouts.py OUT

Each layout is a folder ``OUT/NN-name/`` with data files and a ``truth.json``. Everything is made up and seeded. The
reading and the means in ``truth.json`` come from the made data and from the few lines of this script, which does not
import truerank.

``truth.json``: ``expect`` is what a careful reader should do (``read``; ``warn``: read, and say what is wrong; ``ask``:
there are several readings; ``refuse``), ``accept`` lists every outcome that is defensible, ``say`` is what must be
said, and ``signs`` are patterns of which each has to occur in what is said. ``means`` holds a value for each system
under the right reading, ``other_means`` those of further readings that are defensible if they are named.
"""

import csv
import gzip
import io
import json
import math
import random
import re
import sqlite3
import statistics
import sys
import unicodedata
import uuid
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import polars as pl

Lists = dict[str, list[str]]
Scores = dict[str, dict[str, float]]
Truth = dict[str, Any]

# -- made worlds -------------------------------------------------------------------------------------------------------

DOMAINS: dict[str, tuple[list[str], list[str]]] = {
    "staff": (
        [
            "How many days of [parental|study|special|unpaid] leave does a [part-time "
            "worker|trainee|manager|night nurse] get?",
            "Who approves [travel|overtime|home office] for [interns|freelancers|team leads|drivers|guards] "
            "in [Leeds|Turin|Gdansk]?",
        ],
        ["Rule #: [Parental|Study|Special] leave is # days a year and must be requested # weeks before it begins."],
    ),
    "bank": (
        [
            "why was my [card|transfer|direct debit] [declined|reversed|charged twice] [abroad|at a petrol "
            "station|on a sunday|online]",
            "how do i [raise|lower|see] my [cash|online|weekly] limit [in the app|by phone|at a branch]",
        ],
        ["Article #. A [card|transfer|direct debit] can be blocked after # attempts; call us and quote code #."],
    ),
    "pumps": (
        [
            "Which [gasket|impeller|bearing|filter] fits the [PX|KR|ZL]-[200|350|480] pump [for hot "
            "water|for brine|with flange]?",
            "What does error [E12|E17|E31|F04] mean on a [PX|KR|ZL] controller [at start|under load]?",
        ],
        ["Section #: Tighten the [gasket|impeller|bearing] with # Nm and check the pressure after # hours."],
    ),
    "law": (
        [
            "Can a [tenant|landlord|subtenant] [end|extend|assign] the lease [before|after] [the first "
            "year|a sale|renovation]?",
            "Is notice by [e-mail|fax|courier] valid when a [tenant|landlord|guarantor] [moves|dies|objects]?",
        ],
        ["Clause #. The [tenant|landlord|guarantor] must give notice # days in advance, or pay # months of rent."],
    ),
    "plants": (
        [
            "[when|how] to [prune|water|repot|feed] [a fig|an olive|a lemon|a fern] [in winter|indoors|on a balcony]",
            "[yellow|brown|curled] leaves on [a fig|an olive|a lemon|a fern] [after rain|in may]",
        ],
        ["Leaflet #: [Figs|Olives|Lemons|Ferns] need # ml of water every # days and a pot of # cm."],
    ),
    "deutsch": (
        [
            "Wie [beantrage|ändere|kündige] ich [die Kfz-Versicherung|den Hausrat|die Rechtsschutzpolice] "
            "[bei Umzug|online|für Azubis]?",
            "Zahlt die [Haftpflicht|Unfallversicherung] bei [Glasbruch|Überschwemmung|Schlüsselverlust] [im "
            "Ausland|für Kinder]?",
        ],
        ["Blatt #: Bei [Umzug|Glasbruch|Überschwemmung] gilt eine Frist von # Tagen und ein Selbstbehalt von # Euro."],
    ),
    "français": (
        [
            "Où [déposer|récupérer|signaler] [un encombrant|une carte d'identité|un vélo volé] [le "
            "samedi|après 18 h|à la mairie annexe] ?",
            "Combien coûte [la cantine|le conservatoire|la piscine] pour [un élève|une famille|un retraité] "
            "[en été|à l'année] ?",
        ],
        ["Fiche # : le tarif de [la cantine|la piscine] est de # euros, réduit à # euros dès le #e enfant."],
    ),
    "español": (
        [
            "¿Cómo [renuevo|cancelo|traslado] [la línea móvil|la fibra|el televisor alquilado] [sin "
            "permanencia|por teléfono|en otra provincia]?",
            "¿Cuánto tarda [la instalación|la portabilidad] en [Vigo|Cádiz|Murcia] [en agosto|con avería]?",
        ],
        ["Ficha #: [La fibra|La portabilidad] tarda # días y cuesta # euros si falta el código #."],
    ),
    "日本語": (
        [
            "[返品|交換|修理|保証延長]の[期限|送料|手続き]は[冷蔵庫|掃除機|時計]の場合どうなりますか",
            "[ポイント|クーポン]は[店舗|アプリ|電話注文]で[使えますか|譲渡できますか]",
        ],
        ["規約#：[返品|交換|修理]は#日以内で、送料は#円です。"],
    ),
    "support": (
        [
            "[Outlook|VPN|printer|badge] [doesn't work|is slow|asks for a PIN] [since Monday|after "
            "update|on guest wifi]",
            "request [a second monitor|admin rights|a shared mailbox] for [a contractor|a new hire|the "
            "lab|my boss|two interns]",
        ],
        ["KB#. If [Outlook|the VPN|the printer] fails, restart # times, then open ticket type # with priority #."],
    ),
}


def filled(template: str, rng: random.Random) -> str:
    text = re.sub(r"\[([^\]]*)\]", lambda match: rng.choice(match[1].split("|")), template)
    return re.sub("#", lambda _: str(rng.randint(2, 990)), text)


def distinct(templates: Sequence[str], count: int, rng: random.Random) -> list[str]:
    texts = dict.fromkeys(filled(rng.choice(templates), rng) for _ in range(count * 50))
    assert len(texts) >= count, "the templates have too few fillings"
    return list(texts)[:count]


@dataclass
class World:
    rng: random.Random
    questions: dict[str, str]
    documents: dict[str, str]
    gold: Lists
    runs: dict[str, Lists] = field(default_factory=dict)

    def texts(self, ids: Iterable[str]) -> list[str]:
        return [self.documents[key] for key in ids]


def world(
    rng: random.Random,
    domain: str,
    count: int,
    systems: dict[str, float],
    *,
    question: Callable[[int], str] = lambda i: f"q{i}",
    document: Callable[[int], str] = lambda i: f"doc-{i}",
    most: int = 3,
    depth: int = 10,
) -> World:
    """`systems` maps a name to the chance that it finds an expected document at all."""
    questions, documents = DOMAINS[domain]
    made = World(
        rng,
        {question(i + 1): text for i, text in enumerate(distinct(questions, count, rng))},
        {document(i + 1): text for i, text in enumerate(distinct(documents, count * 6, rng))},
        {},
    )
    ids = list(made.documents)
    for key in made.questions:
        made.gold[key] = rng.sample(ids, rng.randint(1, most))
    for name, chance in systems.items():
        made.runs[name] = {key: ranking(made, key, chance, depth) for key in made.questions}
    return made


def ranking(made: World, key: str, chance: float, depth: int) -> list[str]:
    rng, gold = made.rng, made.gold[key]
    others = [other for other in rng.sample(list(made.documents), depth + 5) if other not in gold][:depth]
    for expected in gold:
        if rng.random() < chance:
            others.insert(min(int(rng.expovariate(0.5)), depth - 1), expected)
    return others[:depth]


def marks(made: World, systems: dict[str, float], digits: int = 3, spread: float = 0.2) -> Scores:
    """A score in [0, 1] for each system and question."""
    ease = {key: made.rng.gauss(0, spread) for key in made.questions}
    return {
        name: {
            key: round(min(1, max(0, mean + ease[key] + made.rng.gauss(0, spread / 2))), digits)
            for key in made.questions
        }
        for name, mean in systems.items()
    }


# -- the truth ---------------------------------------------------------------------------------------------------------


def ndcg(gold: Sequence[str], ranked: Sequence[str], same: Callable[[str, str], bool] = str.__eq__) -> float:
    """Binary nDCG@10; every expected item counts once, at the first place that has it."""
    open_items, gain = list(dict.fromkeys(gold)), 0.0
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(open_items))))
    for place, item in enumerate(ranked[:10]):
        match = next((expected for expected in open_items if same(expected, item)), None)
        if match is not None:
            open_items.remove(match)
            gain += 1 / math.log2(place + 2)
    return gain / ideal


def means(gold: Lists, runs: dict[str, Lists], same: Callable[[str, str], bool] = str.__eq__) -> dict[str, float]:
    """Over the questions that have an expected item; a question that a system lacks counts as 0."""
    keys = [key for key, items in gold.items() if items]
    return {
        name: statistics.fmean(ndcg(gold[key], run.get(key, []), same) for key in keys) for name, run in runs.items()
    }


def reading(gold: Lists, runs: dict[str, Lists], **more: Any) -> Truth:
    base = {
        "expect": "read",
        "measure": "nDCG@10",
        "questions": len(gold),
        "expected": gold,
        "systems": runs,
        "means": means(gold, runs),
    }
    return base | more


def scored(scores: dict[str, dict[str, Any]], **more: Any) -> Truth:
    """Scores of a question may be a number or the list of its repeats."""
    flat = {
        name: statistics.fmean(
            statistics.fmean(value) if isinstance(value, list) else value for value in values.values()
        )
        for name, values in scores.items()
    }
    questions = len({key for values in scores.values() for key in values})
    return {"expect": "read", "measure": "score", "questions": questions, "scores": scores, "means": flat} | more


# -- writers -----------------------------------------------------------------------------------------------------------


def table(
    path: Path,
    rows: Iterable[Sequence[Any]],
    *,
    sep: str = ",",
    encoding: str = "utf-8",
    end: str = "\n",
    before: str = "",
    after: str = "",
    quoting: int = csv.QUOTE_MINIMAL,
) -> None:
    text = io.StringIO()
    text.write(before)
    csv.writer(text, delimiter=sep, lineterminator=end, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    text.write(after)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.getvalue().encode(encoding)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def dump(path: Path, value: Any, indent: int | None = 2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent), encoding="utf-8")


def lines(path: Path, values: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(
        (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) + "\n" for value in values
    )
    path.write_text(text, encoding="utf-8")


def qrels(path: Path, gold: Lists, sep: str = " ") -> None:
    lines(path, [sep.join((key, "0", item, "1")) for key, items in gold.items() for item in items])


def trec(path: Path, run: Lists, tag: str) -> None:
    lines(
        path,
        [
            f"{key} Q0 {item} {i} {30 - i * 1.25:.4f} {tag}"
            for key, items in run.items()
            for i, item in enumerate(items, 1)
        ],
    )


def comma(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".replace(".", ",")


def workbook(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    """The least that a spreadsheet program opens, with inline strings."""

    def cell(value: Any) -> str:
        if isinstance(value, int | float):
            return f"<c><v>{value}</v></c>"
        return f'<c t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'

    body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kinds}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="rId1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name), '<?xml version="1.0" encoding="UTF-8"?>' + text)


# -- layouts that have one right reading -------------------------------------------------------------------------------

Layout = Callable[[Path, random.Random], Truth]
LAYOUTS: list[tuple[str, str, Layout]] = []


def layout(what: str) -> Callable[[Layout], Layout]:
    def add(function: Layout) -> Layout:
        LAYOUTS.append((function.__name__.replace("_", "-"), what, function))
        return function

    return add


@layout("CSV, one row a question, JSON lists, two systems as columns")
def wide_json_lists(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 40, {"bm25": 0.6, "dense": 0.8})
    rows = [
        [k, w.questions[k], *(json.dumps(x) for x in (w.gold[k], w.runs["bm25"][k], w.runs["dense"][k]))]
        for k in w.questions
    ]
    table(out / "eval.csv", [["question_id", "question", "expected_doc_ids", "bm25", "dense"], *rows])
    return reading(w.gold, w.runs)


@layout("two JSONL files as a RAG evaluation library takes them: reference contexts and retrieved contexts are texts")
def rag_jsonl_texts(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 30, {"chunk256": 0.7, "chunk512": 0.8}, depth=5)
    for name, run in w.runs.items():
        lines(
            out / f"ragas_{name}.jsonl",
            [
                {
                    "user_input": w.questions[k],
                    "retrieved_contexts": w.texts(run[k]),
                    "reference_contexts": w.texts(w.gold[k]),
                    "response": f"You can do this; see rule {rng.randint(1, 99)}.",
                    "reference": w.texts(w.gold[k])[0],
                }
                for k in w.questions
            ],
        )
    return reading(w.gold, w.runs)


@layout("JSONL golden set with expected passages as texts, and one results file that names the system in each line")
def golden_jsonl_texts(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 36, {"baseline": 0.55, "rerank": 0.8}, question=lambda i: f"G-{i:03d}", depth=8)
    lines(
        out / "golden.jsonl",
        [{"id": k, "question": q, "expected_passages": w.texts(w.gold[k])} for k, q in w.questions.items()],
    )
    lines(
        out / "retrieval_results.jsonl",
        [{"id": k, "pipeline": s, "passages": w.texts(run[k])} for s, run in w.runs.items() for k in w.questions],
    )
    return reading(w.gold, w.runs)


@layout("scores with three repeats for each system and question, long CSV")
def scores_repeats(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 25, {})
    seeds = {seed: marks(w, {"gpt-small": 0.62, "gpt-large": 0.7}) for seed in (11, 12, 13)}
    rows = [[s, k, seed, seeds[seed][s][k]] for s in ("gpt-small", "gpt-large") for k in w.questions for seed in seeds]
    table(out / "scores.csv", [["system", "question_id", "seed", "score"], *rows])
    return scored(
        {s: {k: [seeds[seed][s][k] for seed in seeds] for k in w.questions} for s in ("gpt-small", "gpt-large")}
    )


@layout("TREC qrels and runs with names that say nothing")
def trec_odd_names(out: Path, rng: random.Random) -> Truth:
    w = world(
        rng,
        "plants",
        50,
        {"alpha": 0.5, "beta": 0.6, "gamma": 0.7},
        question=lambda i: str(300 + i),
        document=lambda i: f"GX{i:03d}-0{i}",
    )
    qrels(out / "final_v2.txt", w.gold)
    for name, run in w.runs.items():
        trec(out / f"{name}.out", run, name)
    return reading(w.gold, w.runs)


@layout("BEIR folder with results as JSON, question to document to score")
def beir_folder(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 30, {"bm25": 0.6, "e5": 0.75})
    lines(out / "corpus.jsonl", [{"_id": k, "title": "", "text": text} for k, text in w.documents.items()])
    lines(out / "queries.jsonl", [{"_id": k, "text": text} for k, text in w.questions.items()])
    table(
        out / "qrels" / "test.tsv",
        [["query-id", "corpus-id", "score"], *([k, d, 1] for k, items in w.gold.items() for d in items)],
        sep="\t",
    )
    for name, run in w.runs.items():
        dump(
            out / "results" / f"{name}.json",
            {k: {d: round(9 - i * 0.31, 4) for i, d in enumerate(run[k])} for k in w.questions},
        )
    return reading(w.gold, w.runs)


@layout("one row for each retrieved document, with model and rank from 0, rows shuffled; expected ids in another CSV")
def long_shuffled_rank0(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 24, {"ada": 0.6, "minilm": 0.7})
    rows = [[k, s, i, d] for s, run in w.runs.items() for k in run for i, d in enumerate(run[k])]
    rng.shuffle(rows)
    table(out / "hits.csv", [["query_id", "model", "position", "doc_id"], *rows])
    table(out / "gold.csv", [["query_id", "doc_id"], *([k, d] for k, items in w.gold.items() for d in items)])
    return reading(w.gold, w.runs)


@layout("one column for each rank, semicolons, a file for each system, expected ids in a third file")
def rank_columns(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 20, {"old_search": 0.5, "new_search": 0.8}, document=lambda i: str(70000 + i))
    for name, run in w.runs.items():
        table(
            out / f"{name}.csv",
            [["query", *(f"hit{i}" for i in range(1, 11))], *([w.questions[k], *run[k]] for k in run)],
            sep=";",
        )
    rows = [[w.questions[k], *items, *[""] * (3 - len(items))] for k, items in w.gold.items()]
    table(out / "solutions.csv", [["query", "doc1", "doc2", "doc3"], *rows], sep=";")
    return reading(w.gold, w.runs)


@layout("Excel in German: BOM, semicolons, decimal commas, scores of two systems in long form")
def excel_german(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "deutsch", 22, {})
    scores = marks(w, {"Altsystem": 0.5, "Neusystem": 0.62})
    rows = [[w.questions[k], s, comma(scores[s][k])] for k in w.questions for s in scores]
    table(
        out / "Auswertung Q3.csv", [["Frage", "System", "Punktzahl"], *rows], sep=";", encoding="utf-8-sig", end="\r\n"
    )
    return scored(scores)


@layout("Excel 'Unicode text': UTF-16 with tabs; scores, a column for each system")
def utf16_wide(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "日本語", 30, {})
    scores = marks(w, {"v1": 0.55, "v2": 0.6, "v3": 0.66}, digits=2)
    table(
        out / "scores.txt",
        [["質問", *scores], *([w.questions[k], *(scores[s][k] for s in scores)] for k in w.questions)],
        sep="\t",
        encoding="utf-16",
        end="\r\n",
    )
    return scored(scores)


@layout("Windows-1252, French names of columns, ids separated by pipes, a row for each question and engine")
def cp1252_french(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "français", 18, {"ancien moteur": 0.5, "nouveau moteur": 0.75}, document=lambda i: f"fiche_n°{i}")
    rows = [
        [w.questions[k], s, "|".join(w.gold[k]), "|".join(run[k])] for k in w.questions for s, run in w.runs.items()
    ]
    header = ["question", "moteur", "réponses attendues", "résultats"]
    table(out / "évaluation.csv", [header, *rows], sep=";", encoding="cp1252", end="\r\n")
    return reading(w.gold, w.runs)


@layout("pandas export: index column, Python lists, one system")
def pandas_repr(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 33, {"df_results": 0.7}, document=lambda i: f"KB{i:05d}")
    rows = [[i, w.questions[k], str(w.gold[k]), str(w.runs["df_results"][k])] for i, k in enumerate(w.questions)]
    table(out / "df_results.csv", [["", "query", "relevant", "predictions"], *rows])
    return reading(w.gold, w.runs)


@layout("the same after two rounds of saving: 'Unnamed: 0' and 'Unnamed: 0.1', two files")
def pandas_unnamed(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 28, {"exp_07": 0.6, "exp_08": 0.7}, document=str)
    for name, run in w.runs.items():
        rows = [
            [i, i, w.questions[k], str([int(x) for x in w.gold[k]]), str([int(x) for x in run[k]])]
            for i, k in enumerate(w.questions)
        ]
        table(out / f"{name}.csv", [["Unnamed: 0.1", "Unnamed: 0", "prompt", "gt_idx", "topk_idx"], *rows])
    return reading(w.gold, w.runs)


@layout("Parquet: list columns, one file for expected ids, one for predictions of three systems")
def parquet_lists(out: Path, rng: random.Random) -> Truth:
    w = world(
        rng,
        "law",
        60,
        {"splade": 0.8, "bm25": 0.6, "colbert": 0.75},
        question=lambda i: str(uuid.UUID(int=i * 7919**4)),
    )
    pl.DataFrame(
        {"qid": list(w.gold), "text": list(w.questions.values()), "positives": list(w.gold.values())}
    ).write_parquet(out / "testset.parquet")
    rows = [(k, s, run[k]) for s, run in w.runs.items() for k in run]
    pl.DataFrame(rows, schema=["qid", "retriever", "docids"], orient="row").write_parquet(out / "predictions.parquet")
    return reading(w.gold, w.runs)


@layout("nested JSON: system, question, then relevant and retrieved")
def nested_json(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 16, {"naive": 0.5, "hyde": 0.7})
    runs = {s: {k: {"relevant": w.gold[k], "retrieved": run[k]} for k in run} for s, run in w.runs.items()}
    dump(
        out / "results.json",
        {"created": "2025-03-04T10:11:12", "config": {"top_k": 10, "embedder": "x"}, "results": runs},
    )
    return reading(w.gold, w.runs)


@layout("JSON array of objects; hits are objects with id, score and text, ground truth is one id")
def json_hits_objects(out: Path, rng: random.Random) -> Truth:
    w = world(
        rng,
        "support",
        45,
        {"prod": 0.65, "candidate": 0.8},
        most=1,
        document=lambda i: f"https://kb.example.org/articles/{i}?lang=en",
    )
    for s, run in w.runs.items():
        dump(
            out / f"{s}.json",
            [
                {
                    "query": w.questions[k],
                    "ground_truth": w.gold[k][0],
                    "hits": [
                        {"id": d, "score": round(0.93 - 0.02 * i, 3), "text": w.documents[d]}
                        for i, d in enumerate(run[k])
                    ],
                    "latency_ms": rng.randint(20, 400),
                }
                for k in w.questions
            ],
        )
    return reading(w.gold, w.runs)


@layout("gzip CSV, one row for each retrieved document, expected documents marked in a JSON file, question to list")
def gz_long(out: Path, rng: random.Random) -> Truth:
    w = world(
        rng,
        "bank",
        50,
        {"bm25": 0.55, "bm25+rm3": 0.6},
        question=lambda i: str(1000 + i),
        document=lambda i: str(880000 + i),
    )
    rows = [
        [s, k, i, d, f"{20 - i * 0.7:.3f}"] for s, run in w.runs.items() for k in run for i, d in enumerate(run[k], 1)
    ]
    table(out / "dump.csv.gz", [["run_name", "qid", "rank", "docno", "sim"], *rows])
    dump(out / "judgements.json", w.gold)
    return reading(w.gold, w.runs)


@layout("pipe-separated scores with comment lines and a last row 'mean'")
def comments_and_mean(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 15, {})
    scores = marks(w, {"baseline": 0.45, "ours": 0.52}, digits=4)
    rows = [[k, *(f"{scores[s][k]:.4f}" for s in scores)] for k in w.questions]
    last = ["mean", *(f"{statistics.fmean(scores[s].values()):.4f}" for s in scores)]
    table(
        out / "table2.psv",
        [["topic", *scores], *rows, last],
        sep="|",
        before="# nDCG@10, run 2025-01-17\n# commit 3f9d2e1\n",
    )
    return scored(scores)


@layout("spreadsheet: scores of three systems as columns, empty row, then 'Average' and 'Std'")
def average_row(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 20, {})
    scores = marks(w, {"Vendor A": 0.5, "Vendor B": 0.6, "In-house": 0.58}, digits=2)
    rows = [[w.questions[k], *(scores[s][k] for s in scores)] for k in w.questions]
    ends = [
        [label, *(round(f(scores[s].values()), 3) for s in scores)]
        for label, f in (("Average", statistics.fmean), ("Std", statistics.stdev))
    ]
    table(out / "bakeoff.csv", [["Test question", *scores], *rows, ["", "", "", ""], *ends], end="\r\n")
    return scored(scores)


@layout("ids with leading zeros, all text, comma-separated in quotes")
def leading_zeros(out: Path, rng: random.Random) -> Truth:
    w = world(
        rng, "pumps", 26, {"tfidf": 0.5, "emb": 0.7}, question=lambda i: f"{i:04d}", document=lambda i: f"{i:06d}"
    )
    rows = [[k, s, ",".join(w.gold[k]), ",".join(run[k])] for s, run in w.runs.items() for k in run]
    table(out / "results.csv", [["case", "setup", "should_find", "did_find"], *rows], quoting=csv.QUOTE_ALL)
    return reading(w.gold, w.runs)


@layout("file names with blanks, commas and pages as ids, separated by semicolons")
def ids_with_blanks(out: Path, rng: random.Random) -> Truth:
    w = world(
        rng,
        "staff",
        21,
        {"rag v1": 0.6, "rag v2": 0.7},
        document=lambda i: f"Handbook 2024, part {i // 20 + 1}.pdf#p. {i}",
        depth=5,
    )
    for s, run in w.runs.items():
        rows = [[w.questions[k], "; ".join(w.gold[k]), "; ".join(run[k])] for k in run]
        table(out / f"{s}.csv", [["Question", "Source documents", "Retrieved documents"], *rows])
    return reading(w.gold, w.runs)


@layout("expected answer is a short text; the retrieved chunks, a column for each, contain it or do not")
def answer_in_chunk(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 24, {"small chunks": 0.6, "large chunks": 0.8}, most=1, depth=5)
    answer = {k: "every " + w.documents[w.gold[k][0]].split("every ")[1] for k in w.gold}
    chunks = {
        s: {k: [f"Care notes. {text} Ask us for more." for text in w.texts(run[k])] for k in run}
        for s, run in w.runs.items()
    }
    for s, run in chunks.items():
        rows = [[w.questions[k], answer[k], *run[k]] for k in run]
        table(out / f"{s}.csv", [["question", "expected_answer", *(f"chunk_{i}" for i in range(1, 6))], *rows])
    gold = {k: [text] for k, text in answer.items()}
    return reading(gold, chunks, means=means(gold, chunks, lambda expected, item: expected in item))


@layout("output of a test harness for RAG: test cases with metrics data, a file for each run")
def harness_testcases(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 18, {})
    scores = marks(w, {"run-20250301": 0.6, "run-20250308": 0.66})
    for s in scores:
        cases = [
            {
                "name": f"test_case_{i}",
                "input": w.questions[k],
                "actualOutput": "See the app.",
                "expectedOutput": "Call us.",
                "success": scores[s][k] >= 0.5,
                "metricsData": [
                    {
                        "name": "Contextual Recall",
                        "threshold": 0.5,
                        "score": scores[s][k],
                        "success": scores[s][k] >= 0.5,
                    }
                ],
            }
            for i, k in enumerate(w.questions)
        ]
        dump(out / f"{s}.json", {"testCases": cases, "runDuration": 81.2})
    return scored(scores)


@layout("RAG metrics as a data frame saved to CSV: four metrics as columns, a file for each system")
def rag_metrics_csv(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 30, {})
    names = ("faithfulness", "answer_relevancy", "context_precision", "context_recall")
    by_metric = {name: marks(w, {"top3": 0.6, "top8": 0.64}, digits=4) for name in names}
    for s in ("top3", "top8"):
        rows = [
            [
                w.questions[k],
                str([w.rng.choice(list(w.documents.values()))]),
                "An answer.",
                "A reference.",
                *(by_metric[m][s][k] for m in names),
            ]
            for k in w.questions
        ]
        table(out / f"{s}.csv", [["user_input", "retrieved_contexts", "response", "reference", *names], *rows])
    options = [scored(by_metric[name], name=name) for name in names]
    return scored(
        by_metric["context_precision"],
        expect="ask",
        accept=["ask", "warn", "read"],
        say="four metrics could be the one that is compared; whichever is used must be named",
        signs=["|".join(names)],
        other_means=[option["means"] for option in options],
    )


@layout("output of a prompt testing tool: nested results with provider, variables and score")
def prompt_tool_json(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 14, {})
    scores = marks(w, {"openai:model-a": 0.6, "ollama:model-b": 0.5}, digits=2)
    results = [
        {
            "provider": {"id": s, "label": ""},
            "vars": {"query": w.questions[k]},
            "success": scores[s][k] > 0.5,
            "score": scores[s][k],
            "latencyMs": 900,
        }
        for k in w.questions
        for s in scores
    ]
    dump(
        out / "output.json",
        {"evalId": "eval-x", "results": {"version": 3, "results": results, "stats": {"successes": 17, "failures": 11}}},
    )
    return scored(scores)


@layout("harness samples: JSONL in a folder for each model, accuracy 0/1 by doc_id")
def harness_samples(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 55, {})
    scores = {
        s: {str(i): float(rng.random() < p) for i in range(55)}
        for s, p in (("org__tiny-1b", 0.5), ("org__base-7b", 0.65))
    }
    for s in scores:
        lines(
            out / s / "samples_closedqa_2025-02-01.jsonl",
            [
                {
                    "doc_id": i,
                    "doc": {"question": q, "answer": "B"},
                    "target": "B",
                    "resps": [["B"]],
                    "filtered_resps": ["B"],
                    "acc": scores[s][str(i)],
                }
                for i, q in enumerate(w.questions.values())
            ],
        )
    return scored(scores)


@layout("JSON of measures for each question, as an evaluation library returns them, a file for each run")
def per_query_json(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 40, {})
    by_metric = {m: marks(w, {"run_a": 0.5, "run_b": 0.55}, digits=6) for m in ("map", "ndcg_cut_10", "recall_100")}
    for s in ("run_a", "run_b"):
        dump(out / f"{s}.eval.json", {k: {m: by_metric[m][s][k] for m in by_metric} for k in w.questions})
    return scored(
        by_metric["ndcg_cut_10"],
        expect="ask",
        accept=["ask", "warn", "read"],
        say="three measures; whichever is used must be named",
        signs=["map|ndcg|recall"],
        other_means=[scored(by_metric[m])["means"] for m in by_metric],
    )


@layout("trec_eval -q output saved to text files, with the 'all' line")
def trec_eval_output(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 35, {}, question=lambda i: str(50 + i))
    scores = marks(w, {"bm25": 0.4, "bm25.rm3": 0.43}, digits=4)
    for s in scores:
        rows = [f"ndcg_cut_10           \t{k}\t{scores[s][k]:.4f}" for k in w.questions]
        lines(
            out / f"eval.{s}.txt",
            [
                "runid                 \tall\t" + s,
                *rows,
                f"ndcg_cut_10           \tall\t{statistics.fmean(scores[s].values()):.4f}",
            ],
        )
    return scored(scores)


@layout("MS MARCO form: runs 'qid pid rank' without header and qrels.tsv")
def msmarco_form(out: Path, rng: random.Random) -> Truth:
    w = world(
        rng,
        "support",
        48,
        {"dev": 0.6, "dev_tuned": 0.65},
        question=lambda i: str(1048000 + i * 3),
        document=lambda i: str(7100000 + i),
        most=1,
    )
    qrels(out / "qrels.dev.tsv", w.gold, "\t")
    for s, run in w.runs.items():
        table(out / f"run.{s}.tsv", [[k, d, i] for k in run for i, d in enumerate(run[k], 1)], sep="\t")
    return reading(w.gold, w.runs)


@layout("one row for each question and system with columns that are not the obvious ones (utterance, needle, haystack)")
def needle_haystack(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 30, {"A": 0.5, "B": 0.8}, most=1, document=lambda i: f"int_{i}")
    rows = [[w.questions[k], s, w.gold[k][0], " ".join(run[k])] for k in w.questions for s, run in w.runs.items()]
    table(out / "ab_test.tsv", [["utterance", "arm", "needle", "haystack"], *rows], sep="\t")
    return reading(w.gold, w.runs)


@layout("data frame as JSON by columns: column, then row number, then value")
def json_by_columns(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 19, {"retrieved_bm25": 0.5, "retrieved_ce": 0.7})
    keys = list(w.questions)
    columns = {
        "question": list(w.questions.values()),
        "gold": [w.gold[k] for k in keys],
        **{s: [run[k] for k in keys] for s, run in w.runs.items()},
    }
    dump(
        out / "frame.json",
        {name: {str(i): value for i, value in enumerate(values)} for name, values in columns.items()},
        None,
    )
    return reading(w.gold, w.runs)


@layout("logged table as JSON: columns and data")
def json_columns_data(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 20, {})
    scores = marks(w, {"run-fiery-fox": 0.5, "run-calm-sea": 0.58})
    for s in scores:
        dump(
            out / f"{s}.table.json",
            {"columns": ["question", "ndcg"], "data": [[w.questions[k], scores[s][k]] for k in w.questions]},
            None,
        )
    return scored(scores)


@layout("search engine's rank evaluation responses: metric_score for each question, a file for each template")
def rank_eval_response(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 25, {"template_v1": 0.5, "template_v2": 0.6}, most=1)
    scores = {s: {k: ndcg(w.gold[k], run[k]) for k in run} for s, run in w.runs.items()}
    for s, run in w.runs.items():
        details = {
            k: {
                "metric_score": scores[s][k],
                "unrated_docs": [{"_index": "kb", "_id": d} for d in run[k] if d not in w.gold[k]],
                "hits": [
                    {"hit": {"_index": "kb", "_id": d, "_score": 12.0 - i}, "rating": 1 if d in w.gold[k] else None}
                    for i, d in enumerate(run[k])
                ],
            }
            for k in run
        }
        dump(
            out / f"{s}.json",
            {"metric_score": statistics.fmean(scores[s].values()), "details": details, "failures": {}},
        )
    return scored(scores)


@layout("export of a relevance tuning tool: ratings as query, docid, rating; snapshots as rows with position")
def tuning_snapshots(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 20, {"Baseline": 0.55, "Boosted title": 0.7}, document=lambda i: f"SKU {i}")
    judged = {
        k: dict.fromkeys(w.gold[k], 3) | {d: 0 for run in w.runs.values() for d in run[k] if d not in w.gold[k]}
        for k in w.questions
    }
    table(
        out / "basic_export.csv",
        [
            ["query", "docid", "rating"],
            *([w.questions[k], d, r] for k, rated in judged.items() for d, r in rated.items()),
        ],
    )
    for s, run in w.runs.items():
        rows = [[s, "2025-05-05 08:00", 77, w.questions[k], d, i] for k in run for i, d in enumerate(run[k], 1)]
        header = ["Snapshot Name", "Snapshot Time", "Case ID", "Query Text", "Doc ID", "Doc Position"]
        table(out / f"snapshot {s}.csv", [header, *rows])
    return reading(w.gold, w.runs)


@layout("fine-tuning data set as one JSON (queries, corpus, relevant_docs) and retrieved ids by question")
def qa_dataset_json(out: Path, rng: random.Random) -> Truth:
    ids = iter(str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(10**4))
    w = world(
        rng,
        "law",
        32,
        {"base": 0.6, "finetuned": 0.8},
        question=lambda _: next(ids),
        document=lambda _: f"node_{next(ids)}",
        most=1,
    )
    dump(
        out / "val_dataset.json",
        {"queries": w.questions, "corpus": w.documents, "relevant_docs": w.gold, "mode": "text"},
    )
    for s, run in w.runs.items():
        dump(out / f"{s}_retrieved.json", run)
    return reading(w.gold, w.runs)


@layout(
    "export of experiments: dotted columns, feedback scores, a file for each experiment, questions in another order"
)
def dotted_columns(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 27, {})
    scores = {s: {k: rng.choice((0, 0.5, 1)) for k in w.questions} for s in ("prompt-3-8fd1", "prompt-4-a0b2")}
    for s in scores:
        rows = [
            [
                uuid.UUID(int=rng.getrandbits(128)),
                w.questions[k],
                "Restart.",
                "Restart it.",
                scores[s][k],
                rng.randint(300, 900),
                round(rng.random() * 3, 2),
            ]
            for k in rng.sample(list(w.questions), 27)
        ]
        header = [
            "id",
            "inputs.question",
            "outputs.answer",
            "reference_outputs.answer",
            "feedback.correctness",
            "total_tokens",
            "latency",
        ]
        table(out / f"{s}.csv", [header, *rows])
    return scored(scores)


@layout("grades of people as 'pass' and 'fail', a column for each system")
def pass_fail(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 34, {})
    scores = {s: {k: float(rng.random() < p) for k in w.questions} for s, p in (("Bot 2024", 0.5), ("Bot 2025", 0.7))}
    rows = [
        [w.questions[k], *(("pass" if scores[s][k] else "fail") for s in scores), rng.choice(["", "too long", "ok"])]
        for k in w.questions
    ]
    table(out / "grading.csv", [["question", *scores, "comment"], *rows])
    return scored(scores)


@layout("stars from 1 to 5 by two raters, long")
def stars_two_raters(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 23, {}, question=lambda i: f"item {i}")
    stars = {
        s: {k: [min(5, max(1, round(rng.gauss(m, 1)))) for _ in "ab"] for k in w.questions}
        for s, m in (("v1", 3), ("v2", 3.6))
    }
    rows = [[k, s, who, stars[s][k][i]] for k in w.questions for s in stars for i, who in enumerate(("Ana", "Jo"))]
    table(out / "ratings.csv", [["item", "variant", "rater", "stars"], *rows])
    return scored(stars)


@layout("Spanish names of columns, a file for each system, expected ids repeated in both")
def spanish_columns(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "español", 25, {"sistema_base": 0.5, "sistema_nuevo": 0.7})
    for s, run in w.runs.items():
        rows = [[i, w.questions[k], "|".join(w.gold[k]), "|".join(run[k])] for i, k in enumerate(run, 1)]
        table(out / f"{s}.csv", [["núm", "pregunta", "documentos_correctos", "documentos_recuperados"], *rows])
    return reading(w.gold, w.runs)


@layout("Japanese names of columns, JSON lists, one system in each column")
def japanese_columns(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "日本語", 28, {"検索A": 0.6, "検索B": 0.7}, document=lambda i: f"規約{i}")
    rows = [
        [
            w.questions[k],
            json.dumps(w.gold[k], ensure_ascii=False),
            *(json.dumps(run[k], ensure_ascii=False) for run in w.runs.values()),
        ]
        for k in w.questions
    ]
    table(out / "評価.csv", [["質問", "正解文書", *w.runs], *rows], encoding="utf-8-sig", end="\r\n")
    return reading(w.gold, w.runs)


@layout("spreadsheet with a title, a date and an empty line above the header")
def title_lines(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 20, {})
    scores = marks(w, {"Search 1.0": 0.5, "Search 2.0": 0.6}, digits=2)
    rows = [[i, w.questions[k], *(comma(scores[s][k], 2) for s in scores)] for i, k in enumerate(w.questions, 1)]
    table(
        out / "Bewertung.csv",
        [["Nr.", "Question", *scores], *rows],
        sep=";",
        end="\r\n",
        before="Evaluation of intranet search;;;\r\nDate: 12.09.2025;;;\r\n;;;\r\n",
    )
    return scored(scores)


@layout("scores as percent with sign and decimal comma")
def percent_strings(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "deutsch", 24, {})
    scores = marks(w, {"Modell klein": 0.55, "Modell groß": 0.63})
    rows = [[w.questions[k], *(comma(scores[s][k] * 100, 1) + " %" for s in scores)] for k in w.questions]
    table(out / "Trefferquote.csv", [["Anfrage", *scores], *rows], sep=";", encoding="cp1252", end="\r\n")
    truth = scored(scores)
    return truth | {"other_means": [{s: mean * 100 for s, mean in truth["means"].items()}]}


@layout("cells with line breaks and quotes in the question text, CRLF, tabs")
def multiline_cells(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 17, {"plain": 0.5, "query rewrite": 0.7})
    texts = {k: f'Dear team,\n"{q}"\nThanks!' for k, q in w.questions.items()}
    rows = [[k, texts[k], json.dumps(w.gold[k]), *(json.dumps(run[k]) for run in w.runs.values())] for k in w.questions]
    table(out / "mails.tsv", [["ticket", "mail_body", "labels_gold", *w.runs], *rows], sep="\t", end="\r\n")
    return reading(w.gold, w.runs)


@layout("merged cells: the question is only in the first row of its group, one row for each retrieved document")
def merged_cells(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 16, {"Suche": 0.7}, depth=5)
    rows = [
        [w.questions[k] if i == 0 else "", ", ".join(w.gold[k]) if i == 0 else "", i + 1, d]
        for k in w.questions
        for i, d in enumerate(w.runs["Suche"][k])
    ]
    table(out / "Suche.csv", [["Question", "Expected", "Rank", "Document"], *rows], sep=";")
    return reading(
        w.gold, w.runs, accept=["read", "warn", "refuse"], say="cells are empty below the first row of a group"
    )


@layout("a JSON file for each question in a folder for each system")
def file_per_question(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 12, {"dense": 0.6, "hybrid": 0.8}, question=lambda i: f"q{i:03d}", depth=5)
    for s, run in w.runs.items():
        for k in run:
            dump(
                out / s / f"{k}.json",
                {"query_id": k, "query": w.questions[k], "gold_ids": w.gold[k], "retrieved_ids": run[k]},
            )
    return reading(w.gold, w.runs)


@layout("golden set in YAML, results as JSONL for each system")
def yaml_golden(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 15, {"v0.3": 0.6, "v0.4": 0.7})
    blocks = [
        f"  - id: {k}\n    question: {json.dumps(q)}\n    sources: [{', '.join(w.gold[k])}]"
        for k, q in w.questions.items()
    ]
    lines(out / "golden.yaml", ["# reviewed by support, 2025-02", "cases:", *blocks])
    for s, run in w.runs.items():
        lines(out / f"results-{s}.jsonl", [{"id": k, "sources": run[k]} for k in run])
    return reading(w.gold, w.runs)


@layout("table in a Markdown file: scores of two systems")
def markdown_table(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 13, {})
    scores = marks(w, {"before": 0.5, "after": 0.6}, digits=2)
    rows = [f"| {w.questions[k]} | {scores['before'][k]} | {scores['after'][k]} |" for k in w.questions]
    lines(
        out / "results.md",
        ["# Results", "", "We re-ranked the top 50.", "", "| query | before | after |", "|---|---:|---:|", *rows],
    )
    return scored(scores, accept=["read", "refuse"])


@layout("Excel workbook: expected and retrieved ids of two systems")
def excel_workbook(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 20, {"Current": 0.5, "Pilot": 0.7}, document=lambda i: f"FAQ-{i}", depth=5)
    rows = [
        [i, w.questions[k], ", ".join(w.gold[k]), *(", ".join(run[k]) for run in w.runs.values())]
        for i, k in enumerate(w.questions, 1)
    ]
    workbook(out / "Evaluation FINAL (2).xlsx", [["No", "Question", "Correct FAQ", *w.runs], *rows])
    return reading(w.gold, w.runs, accept=["read", "refuse"])


@layout("SQLite file with two tables: gold and hits")
def sqlite_file(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 20, {"fts5": 0.5, "vec": 0.6})
    with sqlite3.connect(out / "eval.db") as base:
        base.execute("create table gold(query_id text, doc_id text)")
        base.execute("create table hits(system text, query_id text, rank integer, doc_id text)")
        base.executemany("insert into gold values(?, ?)", [(k, d) for k, items in w.gold.items() for d in items])
        base.executemany(
            "insert into hits values(?, ?, ?, ?)",
            [(s, k, i, d) for s, r in w.runs.items() for k in r for i, d in enumerate(r[k], 1)],
        )
    base.close()
    return reading(w.gold, w.runs, accept=["read", "refuse"])


@layout("scores beside numbers that are not the score: latency, tokens, cost, question length")
def distractor_numbers(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 30, {})
    scores = marks(w, {"llm-a": 0.6, "llm-b": 0.66}, digits=2)
    rows = [
        [
            k,
            s,
            len(w.questions[k]),
            rng.randint(200, 3000),
            rng.randint(40, 600),
            round(rng.random() / 50, 5),
            scores[s][k],
        ]
        for k in w.questions
        for s in scores
    ]
    table(out / "log.csv", [["qid", "model", "q_len", "latency_ms", "tokens", "cost_usd", "correctness"], *rows])
    return scored(scores)


@layout("distances instead of similarities: the nearest is the smallest, no rank column, rows in no order")
def distances(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 25, {"l2-index": 0.7, "pq-index": 0.55})
    rows = [
        [s, k, d, round(0.2 + 0.03 * i + rng.random() * 0.02, 4)]
        for s, run in w.runs.items()
        for k in run
        for i, d in enumerate(run[k])
    ]
    rng.shuffle(rows)
    table(out / "neighbours.csv", [["index", "query_id", "neighbour_id", "distance"], *rows])
    lines(out / "relevance.jsonl", [{"query_id": k, "relevant_ids": items} for k, items in w.gold.items()])
    return reading(w.gold, w.runs, accept=["read", "warn", "ask"], say="small distances are the best")


@layout("retrieved ids with their scores in one cell: 'id (0.83), id (0.81)'")
def ids_with_scores(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 22, {"knn": 0.6, "hnsw": 0.55}, depth=6)
    rows = [
        [
            w.questions[k],
            ", ".join(w.gold[k]),
            *(", ".join(f"{d} ({0.91 - 0.03 * i:.2f})" for i, d in enumerate(run[k])) for run in w.runs.values()),
        ]
        for k in w.questions
    ]
    table(out / "compare.csv", [["query", "relevant_docs", *w.runs], *rows])
    return reading(w.gold, w.runs, accept=["read", "ask", "refuse"])


@layout("files in another order and no ids: questions must be matched by text")
def order_differs(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "español", 26, {"uno": 0.5, "dos": 0.7})
    lines(out / "ground_truth.jsonl", [{"query": w.questions[k], "docs": w.gold[k]} for k in w.questions])
    for s, run in w.runs.items():
        lines(
            out / f"out_{s}.jsonl", [{"query": w.questions[k], "docs": run[k]} for k in rng.sample(list(run), len(run))]
        )
    return reading(w.gold, w.runs)


@layout("qrels with negative grades and graded ones, runs of one team")
def negative_grades(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 30, {"team1": 0.6, "team2": 0.7}, question=str)
    junk = {k: [d for d in w.runs["team1"][k] if d not in w.gold[k]][:2] for k in w.gold}
    lines(
        out / "judgments.qrel",
        [
            f"{k} 0 {d} {grade}"
            for k in w.gold
            for grade, items in ((1, w.gold[k]), (-2, junk[k][:1]), (0, junk[k][1:]))
            for d in items
        ],
    )
    for s, run in w.runs.items():
        trec(out / f"input.{s}", run, s)
    return reading(w.gold, w.runs)


@layout("graded qrels 0 to 3")
def graded(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 30, {"sparse": 0.6, "dense": 0.7}, question=lambda i: f"T{i}", most=4)
    grades = {k: {d: rng.randint(1, 3) for d in w.gold[k]} for k in w.gold}
    table(
        out / "labels.tsv",
        [["query_id", "doc_id", "label"], *([k, d, g] for k in grades for d, g in grades[k].items())],
        sep="\t",
    )
    for s, run in w.runs.items():
        trec(out / f"{s}.run", run, s)

    def mean(gain: Callable[[int], float]) -> dict[str, float]:
        values: dict[str, float] = {}
        for s, run in w.runs.items():
            shares = []
            for k, labels in grades.items():
                ideal = sum(
                    gain(g) / math.log2(i + 2) for i, g in enumerate(sorted(labels.values(), reverse=True)[:10])
                )
                shares.append(sum(gain(labels.get(d, 0)) / math.log2(i + 2) for i, d in enumerate(run[k])) / ideal)
            values[s] = statistics.fmean(shares)
        return values

    return reading(w.gold, w.runs, means=mean(float), other_means=[mean(lambda g: 2.0**g - 1), means(w.gold, w.runs)])


@layout("train and test judgments side by side; the runs are of the test questions")
def train_and_test(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 50, {"bi": 0.6, "cross": 0.8})
    train, test = list(w.gold)[:30], list(w.gold)[30:]
    for part, keys in (("train", train), ("test", test)):
        table(
            out / f"{part}.tsv",
            [["query-id", "corpus-id", "score"], *([k, d, 1] for k in keys for d in w.gold[k])],
            sep="\t",
        )
    runs = {s: {k: run[k] for k in test} for s, run in w.runs.items()}
    for s, run in runs.items():
        dump(out / f"{s}.json", run)
    return reading({k: w.gold[k] for k in test}, runs, accept=["read", "warn", "ask"])


@layout("some questions have no expected document, some get an empty list")
def empty_lists(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 30, {"strict": 0.6, "loose": 0.7})
    for k in list(w.gold)[3:30:9]:
        w.gold[k] = []
    for k in list(w.gold)[5:30:10]:
        w.runs["strict"][k] = []
    for s, run in w.runs.items():
        lines(
            out / f"{s}.jsonl",
            [{"qid": k, "question": w.questions[k], "gold": w.gold[k], "pred": run[k]} for k in w.questions],
        )
    truth = reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "read"],
        say="3 questions have no expected document",
        signs=[r"\b3\b"],
    )
    return truth | {"questions": 27, "other_means": [{s: mean * 27 / 30 for s, mean in truth["means"].items()}]}


@layout("one question for two rows: the same text was collected twice with other expected ids")
def repeated_questions(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 30, {"s1": 0.6, "s2": 0.75})
    for a, b in (("q1", "q30"), ("q2", "q29")):
        w.questions[b] = w.questions[a]
    rows = [
        [k, w.questions[k], ";".join(w.gold[k]), *(";".join(run[k]) for run in w.runs.values())] for k in w.questions
    ]
    table(out / "set.csv", [["id", "question", "expected", *w.runs], *rows])
    return reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "read"],
        say="2 texts occur twice",
        signs=["twice|repeat|duplicate|same text|more than once"],
    )


# -- layouts that are broken or have several readings ------------------------------------------------------------------


@layout("two columns that could both be the expected ids")
def two_gold_columns(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 24, {"current": 0.6, "next": 0.7})
    second = {k: [*items[1:], rng.choice(list(w.documents))] for k, items in w.gold.items()}
    rows = [[w.questions[k], *(";".join(x[k]) for x in (w.gold, second, *w.runs.values()))] for k in w.questions]
    table(out / "golden_v2.csv", [["question", "relevant_ids", "gold_ids", *w.runs], *rows])
    return reading(
        w.gold,
        w.runs,
        expect="ask",
        accept=["ask", "refuse"],
        say="relevant_ids or gold_ids",
        signs=["relevant_ids", "gold_ids"],
        other_means=[means(second, w.runs)],
    )


@layout("two id spaces: expected are documents, retrieved are chunks of them")
def documents_and_chunks(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 25, {"chunks200": 0.6, "chunks400": 0.7}, depth=8)
    chunks = {s: {k: [f"{d}_chunk{rng.randint(0, 9)}" for d in run[k]] for k in run} for s, run in w.runs.items()}
    lines(out / "golden.jsonl", [{"question": w.questions[k], "expected_docs": w.gold[k]} for k in w.questions])
    for s, run in chunks.items():
        lines(out / f"{s}.jsonl", [{"question": w.questions[k], "retrieved": run[k]} for k in run])
    return reading(
        w.gold,
        w.runs,
        expect="refuse",
        accept=["refuse", "ask", "warn"],
        say="no retrieved id equals an expected id (chunks and documents)",
        signs=["chunk|match|id space|ids|prefix"],
    )


@layout("expected ids are numbers of rows, retrieved ones are keys: nothing matches")
def disjoint_ids(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 30, {"kb": 0.6}, document=lambda i: f"KB{1000 + i}")
    place = {d: str(i) for i, d in enumerate(w.documents)}
    table(
        out / "kb.csv",
        [
            ["question", "expected", "retrieved"],
            *([w.questions[k], ";".join(place[d] for d in w.gold[k]), ";".join(w.runs["kb"][k])] for k in w.gold),
        ],
    )
    return {
        "expect": "refuse",
        "say": "no expected id is ever retrieved: two id spaces",
        "signs": ["match|id space|never|none|no .*ids?"],
    }


@layout("lists cut off by a print limit: \"['a', 'b', ...\"")
def lists_cut_off(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 25, {"printed": 0.7}, document=lambda i: f"leaflet-{i}")
    rows = [[w.questions[k], str(w.gold[k]), str(w.runs["printed"][k])[:47] + "..."] for k in w.questions]
    table(out / "printed.csv", [["query", "relevant", "retrieved"], *rows])
    return {
        "expect": "refuse",
        "accept": ["refuse", "warn", "ask"],
        "say": "the retrieved lists are cut off",
        "signs": [r"cut|truncat|\.\.\.|…|end|incomplete|bracket|clos"],
    }


@layout("one value of the system column is misspelt")
def misspelt_system(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 30, {})
    scores = marks(w, {"hybrid": 0.65, "keyword": 0.5})
    rows = [["hybird" if (s, k) == ("hybrid", "q17") else s, k, scores[s][k]] for s in scores for k in w.questions]
    table(out / "scores.csv", [["system", "query", "ndcg"], *rows])
    rest = {s: {k: v for k, v in values.items() if s != "hybrid" or k != "q17"} for s, values in scores.items()}
    return scored(
        scores,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="'hybird' has one question only",
        signs=["hybird"],
        other_means=[
            scored(rest)["means"],
            {s: statistics.fmean(v for k, v in scores[s].items() if k != "q17") for s in scores},
        ],
    )


@layout("the second system lacks three questions and has two that nobody asked")
def mismatched_questions(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 40, {"first": 0.6, "second": 0.7}, question=lambda i: f"Q{i:02d}")
    run = dict(w.runs["second"])
    for gone in ("Q05", "Q18", "Q33"):
        del run[gone]
    for k in ("Q77", "Q78"):
        run[k] = rng.sample(list(w.documents), 10)
    runs = {"first": w.runs["first"], "second": run}
    qrels(out / "qrels.txt", w.gold)
    for s, items in runs.items():
        trec(out / f"{s}.run", items, s)
    shared = {k: v for k, v in w.gold.items() if k in run}
    return reading(
        w.gold,
        runs,
        expect="warn",
        accept=["warn", "refuse"],
        say="3 questions are missing in 'second'",
        signs=[r"\b3\b|\b37\b"],
        other_means=[means(shared, runs)],
    )


@layout("scores with NaN and empty cells: 4 of 30 for one system")
def scores_nan(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 30, {})
    scores = marks(w, {"judge-a": 0.6, "judge-b": 0.6}, digits=2)
    holes = dict(zip(("q3", "q9", "q20", "q27"), ("NaN", "", "nan", ""), strict=True))
    rows = [[k, scores["judge-a"][k], holes.get(k, scores["judge-b"][k])] for k in w.questions]
    table(out / "faithfulness.csv", [["question_id", *scores], *rows])
    kept = {s: {k: v for k, v in values.items() if k not in holes} for s, values in scores.items()}
    uneven = {"judge-a": scores["judge-a"], "judge-b": kept["judge-b"]}
    return scored(
        kept,
        expect="warn",
        accept=["warn", "refuse", "ask"],
        say="4 scores are missing",
        signs=[r"\b4\b|\b26\b"],
        other_means=[scored(uneven)["means"]],
    )


@layout("runs without judgments")
def no_judgments(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 25, {"x": 0.6, "y": 0.7})
    for s, run in w.runs.items():
        trec(out / f"{s}.run", run, s)
    return {"expect": "refuse", "say": "there are no judgments", "signs": ["judg|qrel|expected|relevan"]}


@layout("two columns have the same name: 'retrieved' twice")
def duplicate_header(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 22, {"retrieved 1": 0.5, "retrieved 2": 0.8})
    rows = [[w.questions[k], ";".join(w.gold[k]), *(";".join(run[k]) for run in w.runs.values())] for k in w.questions]
    table(out / "merged.csv", [["question", "expected", "retrieved", "retrieved"], *rows])
    return reading(
        w.gold,
        w.runs,
        expect="ask",
        accept=["ask", "refuse", "warn"],
        say="'retrieved' occurs twice",
        signs=["retrieved", "twice|duplicate|same name|two columns|2 columns|more than once"],
    )


@layout("three styles of lists in one column, from three people")
def mixed_list_styles(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 30, {"bot": 0.7}, document=lambda i: f"KB-{i}")
    styles: list[Callable[[list[str]], str]] = [json.dumps, ";".join, ", ".join]
    rows = [
        [w.questions[k], styles[i % 3](w.gold[k]), styles[i % 3](w.runs["bot"][k])] for i, k in enumerate(w.questions)
    ]
    table(out / "bot.csv", [["question", "expected_articles", "found_articles"], *rows])
    return reading(w.gold, w.runs, accept=["read", "warn", "ask", "refuse"])


@layout("flags instead of ids: '1,0,0,1,0' for the ten retrieved documents")
def flags_not_ids(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 24, {"a": 0.6, "b": 0.7})
    rows = [
        [w.questions[k], *(",".join("1" if d in w.gold[k] else "0" for d in run[k]) for run in w.runs.values())]
        for k in w.questions
    ]
    table(out / "relevance_flags.csv", [["question", "a_relevant", "b_relevant"], *rows])
    return {
        "expect": "ask",
        "accept": ["ask", "refuse", "warn"],
        "say": "these are flags for each rank; the number of relevant documents is not known",
        "signs": ["flag|0 and 1|0/1|binary|relevan"],
    }


@layout("headers of expected and retrieved are swapped")
def swapped_headers(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 30, {"search": 0.8}, most=2)
    rows = [[w.questions[k], ";".join(w.runs["search"][k]), ";".join(w.gold[k])] for k in w.questions]
    table(out / "search.csv", [["query", "expected", "retrieved"], *rows])
    return reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="every 'expected' has 10 ids, 'retrieved' has 1 or 2: swapped?",
        signs=["swap|exchang|more expected|longer"],
    )


@layout("two scores in each row, by a person and by a model")
def two_scores(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 26, {})
    human, model = marks(w, {"p1": 0.5, "p2": 0.52}, digits=1), marks(w, {"p1": 0.7, "p2": 0.8}, digits=1)
    table(
        out / "scores.csv",
        [
            ["question", "system", "human_score", "gpt_score"],
            *([w.questions[k], s, human[s][k], model[s][k]] for k in w.questions for s in human),
        ],
    )
    return scored(
        human,
        expect="ask",
        accept=["ask", "refuse", "warn"],
        say="human_score or gpt_score",
        signs=["human_score", "gpt_score"],
        other_means=[scored(model)["means"]],
    )


@layout("CSV files joined by hand: the header comes again in the middle")
def header_again(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 24, {})
    scores = marks(w, {"jan": 0.5, "feb": 0.6}, digits=2)
    header = ["month", "question", "score"]
    parts = [[s, w.questions[k], scores[s][k]] for s in ("jan", "feb") for k in w.questions]
    table(out / "all.csv", [header, *parts[:24], header, *parts[24:]])
    return scored(
        scores,
        expect="warn",
        accept=["warn", "read", "refuse"],
        say="line 26 is the header again",
        signs=["header|26|score"],
    )


@layout("the spreadsheet lost the leading zeros in one of two files")
def zeros_lost(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 25, {"parts": 0.8}, document=lambda i: f"{i:06d}")
    table(
        out / "expected.csv", [["question", "part_no"], *([w.questions[k], int(d)] for k in w.gold for d in w.gold[k])]
    )
    table(
        out / "parts.csv",
        [
            ["question", "rank", "part_no"],
            *([w.questions[k], i, d] for k in w.gold for i, d in enumerate(w.runs["parts"][k], 1)),
        ],
    )
    return reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="the ids differ by leading zeros; as written none matches",
        signs=["zero|match|id space|ids"],
    )


@layout("one system in percent, the other as a fraction")
def percent_and_fraction(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 28, {})
    scores = marks(w, {"ours": 0.6, "theirs": 0.55})
    table(out / "ours.csv", [["id", "ndcg"], *([k, scores["ours"][k]] for k in w.questions)])
    table(out / "theirs.csv", [["id", "ndcg"], *([k, round(scores["theirs"][k] * 100, 1)] for k in w.questions)])
    return scored(
        scores,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="'theirs' is on another scale (percent)",
        signs=["percent|scale|range|100|above 1|fraction"],
    )


@layout("only one mean for each system")
def means_only(out: Path, rng: random.Random) -> Truth:
    values = {s: round(rng.uniform(0.4, 0.6), 3) for s in ("bm25", "dpr", "ance", "splade")}
    table(
        out / "leaderboard.csv",
        [["model", "ndcg@10", "recall@100"], *([s, v, round(v + 0.3, 3)] for s, v in values.items())],
    )
    return {
        "expect": "refuse",
        "say": "there is one number for each system, nothing for each question",
        "signs": ["question|topic|quer|each|per"],
    }


@layout("spreadsheet errors (#DIV/0!, #N/A) in cells of scores")
def spreadsheet_errors(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "deutsch", 25, {})
    scores = marks(w, {"Stand Mai": 0.5, "Stand Juni": 0.6}, digits=2)
    holes = {"q4": "#DIV/0!", "q11": "#N/A", "q19": "#DIV/0!"}
    rows = [
        [w.questions[k], comma(scores["Stand Mai"][k], 2), holes.get(k, comma(scores["Stand Juni"][k], 2))]
        for k in w.questions
    ]
    table(out / "Mappe1.csv", [["Frage", *scores], *rows], sep=";", encoding="cp1252", end="\r\n")
    kept = {s: {k: v for k, v in values.items() if k not in holes} for s, values in scores.items()}
    uneven = {"Stand Mai": scores["Stand Mai"], "Stand Juni": kept["Stand Juni"]}
    return scored(
        kept,
        expect="warn",
        accept=["warn", "refuse", "ask"],
        say="3 cells are errors",
        signs=["#DIV|#N/A|\\b3\\b|\\b22\\b"],
        other_means=[scored(uneven)["means"]],
    )


@layout("JSONL whose last line is cut in the middle: the process was killed")
def killed_process(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 30, {"full": 0.6, "killed": 0.7})
    for s, run in w.runs.items():
        lines(
            out / f"{s}.jsonl",
            [{"query_id": k, "query": w.questions[k], "relevant": w.gold[k], "retrieved": run[k]} for k in run],
        )
    kept = (out / "killed.jsonl").read_text(encoding="utf-8").splitlines()[:21]
    (out / "killed.jsonl").write_text("\n".join(kept)[:-40], encoding="utf-8")
    shared = {k: w.gold[k] for k in list(w.gold)[:20]}
    runs = {"full": w.runs["full"], "killed": {k: w.runs["killed"][k] for k in shared}}
    return reading(
        shared,
        runs,
        expect="refuse",
        accept=["refuse", "warn"],
        say="line 21 of killed.jsonl is cut off",
        signs=["killed.jsonl", "21|line"],
        other_means=[means(w.gold, runs)],
    )


@layout("one system twice: the second file is a copy under another name")
def copied_system(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 30, {"baseline": 0.6})
    w.runs["improved"] = w.runs["baseline"]
    qrels(out / "qrels.tsv", w.gold, "\t")
    for s, run in w.runs.items():
        trec(out / f"{s}.trec", run, "run0")
    return reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "refuse"],
        say="both runs are the same",
        signs=["same|identical|equal|copy|no difference|do not differ"],
    )


@layout("expected is an answer in free text, retrieved are ids, no texts of documents anywhere")
def answers_against_ids(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 22, {"legalbot": 0.7}, most=1)
    rows = [[w.questions[k], w.documents[w.gold[k][0]], json.dumps(w.runs["legalbot"][k])] for k in w.questions]
    table(out / "legalbot.csv", [["question", "ground_truth", "retrieved_ids"], *rows])
    return {"expect": "refuse", "say": "texts cannot be compared with ids", "signs": ["text|ids?|match|corpus"]}


@layout("ids as a spreadsheet ruins them: 1.2346E+12")
def scientific_ids(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 25, {"shop": 0.7}, document=lambda i: str(4006381333000 + i * 7), most=1)
    ruined = {d: f"{int(d):.4E}" for d in w.documents}
    rows = [[w.questions[k], ruined[w.gold[k][0]], *(ruined[d] for d in w.runs["shop"][k][:3])] for k in w.questions]
    table(out / "shop.csv", [["search term", "correct article", "result 1", "result 2", "result 3"], *rows])
    return {
        "expect": "refuse",
        "accept": ["refuse", "warn"],
        "say": "the ids are rounded numbers; all are equal now",
        "signs": ["E\\+|round|scientific|same id|one id|all .*equal|spreadsheet"],
    }


@layout("file names with accents: composed in one file, decomposed in the other (a Mac)")
def accents_decomposed(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "français", 25, {"mairie": 0.8}, document=lambda i: f"Règlement_intérieur_{i}.pdf")
    lines(out / "attendu.jsonl", [{"question": w.questions[k], "sources": w.gold[k]} for k in w.gold])
    lines(
        out / "mairie.jsonl",
        [
            {"question": w.questions[k], "sources": [unicodedata.normalize("NFD", d) for d in run]}
            for k, run in w.runs["mairie"].items()
        ],
    )
    return reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "read", "refuse", "ask"],
        say="the ids differ only by their Unicode form",
    )


@layout("columns of the qrels in another order: document, 0, question, grade, no header")
def qrels_columns_swapped(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 30, {"r1": 0.6, "r2": 0.7}, question=lambda i: f"topic{i}")
    lines(out / "qrels.txt", [f"{d} 0 {k} 1" for k, items in w.gold.items() for d in items])
    for s, run in w.runs.items():
        trec(out / f"{s}.txt", run, s)
    return reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="no question of the qrels is in the runs; the columns look exchanged",
        signs=["question|topic|quer|column|match|swap"],
    )


@layout("one system returns five documents, the other ten")
def depth_differs(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 30, {"five": 0.6, "ten": 0.6})
    runs = {"five": {k: items[:5] for k, items in w.runs["five"].items()}, "ten": w.runs["ten"]}
    rows = [[k, ";".join(w.gold[k]), *(";".join(run[k]) for run in runs.values())] for k in w.gold]
    table(out / "depth.csv", [["qid", "expected", *runs], *rows])
    return reading(
        w.gold,
        runs,
        expect="warn",
        accept=["warn", "read"],
        say="'five' has 5 documents for each question, 'ten' has 10",
        signs=[r"\b5\b|depth|fewer|shorter"],
    )


@layout("the file of one system is empty")
def empty_file(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 25, {"good": 0.6, "crashed": 0.5})
    qrels(out / "qrels", w.gold)
    trec(out / "good.run", w.runs["good"], "good")
    (out / "crashed.run").write_text("", encoding="utf-8")
    runs = {"good": w.runs["good"]}
    return reading(
        w.gold,
        runs,
        expect="warn",
        accept=["warn", "refuse"],
        say="crashed.run is empty",
        signs=["crashed", "empty|nothing|no row|no line"],
    )


@layout("a row for each retrieved document with a flag 'relevant': judgments only of what was found")
def flags_in_rows(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 20, {"old": 0.5, "new": 0.7}, depth=5)
    rows = [
        [s, w.questions[k], i, d, "yes" if d in w.gold[k] else "no"]
        for s, run in w.runs.items()
        for k in run
        for i, d in enumerate(run[k], 1)
    ]
    table(out / "labelled_hits.csv", [["system", "question", "rank", "doc", "relevant"], *rows])
    pooled = {k: [d for d in w.gold[k] if any(d in run[k] for run in w.runs.values())] for k in w.gold}
    return reading(
        pooled,
        w.runs,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="only retrieved documents are judged; recall and nDCG refer to what the systems found",
        signs=["pool|only .*(found|retrieved|judged)|judged .*only"],
        other_means=[
            {s: mean * sum(map(bool, pooled.values())) / len(pooled) for s, mean in means(pooled, w.runs).items()}
        ],
    )


@layout("all judgments are 0")
def nothing_relevant(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "plants", 20, {"run": 0.6})
    lines(out / "labels.qrels", [f"{k} 0 {d} 0" for k, run in w.runs["run"].items() for d in run])
    trec(out / "run.trec", w.runs["run"], "run")
    return {"expect": "refuse", "say": "no document is relevant", "signs": ["no(ne)? .*relevan|positive|all .*0"]}


@layout("all scores of the run are equal; only the rank orders it")
def scores_tied(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "staff", 30, {"llm_reranker": 0.9, "bm25": 0.6}, question=str)
    qrels(out / "qrels.test", w.gold)
    trec(out / "bm25.run", w.runs["bm25"], "bm25")
    lines(
        out / "llm_reranker.run",
        [f"{k} Q0 {d} {i} 0 llm" for k, run in w.runs["llm_reranker"].items() for i, d in enumerate(run, 1)],
    )
    by_name = {
        s: {k: sorted(items, reverse=True) if s == "llm_reranker" else items for k, items in run.items()}
        for s, run in w.runs.items()
    }
    return reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "read", "refuse"],
        say="all scores are tied: by rank, or by name as trec_eval does",
        signs=["tie|equal|same score"],
        other_means=[means(w.gold, by_name)],
    )


@layout("chunks of one document: an id comes several times in a list")
def repeated_ids(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "law", 25, {"dense": 0.7, "sparse": 0.6}, depth=6)
    runs = {
        s: {k: [d for d in items for _ in range(rng.choice((1, 1, 2, 3)))][:10] for k, items in run.items()}
        for s, run in w.runs.items()
    }
    for s, run in runs.items():
        lines(
            out / f"{s}.jsonl",
            [{"question": w.questions[k], "relevant_documents": w.gold[k], "source_documents": run[k]} for k in run],
        )
    merged = {s: {k: list(dict.fromkeys(items)) for k, items in run.items()} for s, run in runs.items()}
    return reading(
        w.gold,
        runs,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="ids repeat within a list",
        signs=["repeat|twice|duplicate|more than once|several times"],
        other_means=[means(w.gold, merged)],
    )


@layout("a question and system occur twice with other scores, without a column that says why")
def silent_repeats(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "bank", 25, {})
    scores = marks(w, {"m1": 0.5, "m2": 0.6}, digits=2)
    rows = [[w.questions[k], s, scores[s][k]] for k in w.questions for s in scores]
    again = [[q, s, round(min(1, x + 0.1), 2)] for q, s, x in rows if s == "m2"][:5]
    table(out / "results.csv", [["question", "model", "score"], *rows, *again])
    both: dict[str, dict[str, Any]] = {s: {k: [x] for k, x in values.items()} for s, values in scores.items()}
    for k, (_, _, x) in zip(list(w.questions)[:5], again, strict=True):
        both["m2"][k].append(x)
    return scored(
        both,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="5 questions occur twice for m2",
        signs=[r"\b5\b|twice|repeat|duplicate"],
        other_means=[scored(scores)["means"]],
    )


@layout("a ranking with best last: rank 1 is the worst")
def ranks_reversed(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "pumps", 25, {"faiss": 0.8})
    rows = [
        [w.questions[k], 10 - i, d, round(0.9 - 0.05 * i, 3)]
        for k, run in w.runs["faiss"].items()
        for i, d in enumerate(run)
    ]
    table(out / "faiss.csv", [["question", "rank", "doc_id", "similarity"], *rows])
    table(out / "truth.csv", [["question", "doc_id"], *([w.questions[k], d] for k in w.gold for d in w.gold[k])])
    turned = {"faiss": {k: items[::-1] for k, items in w.runs["faiss"].items()}}
    return reading(
        w.gold,
        w.runs,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="rank and similarity contradict each other",
        signs=["rank", "similarity|score|order|contradict"],
        other_means=[means(w.gold, turned)],
    )


@layout("the system to compare is written in two ways in two files (BM25, bm25 )")
def system_case(out: Path, rng: random.Random) -> Truth:
    w = world(rng, "support", 30, {})
    scores = marks(w, {"BM25": 0.5, "Dense": 0.6}, digits=2)
    names = {"BM25": ("BM25", "bm25 "), "Dense": ("Dense", "dense")}
    rows = [[k, names[s][int(k[1:]) > 15], scores[s][k]] for k in w.questions for s in scores]
    table(out / "part1.csv", [["qid", "system", "score"], *rows[:30]])
    table(out / "part2.csv", [["qid", "system", "score"], *rows[30:]])
    return scored(
        scores,
        expect="warn",
        accept=["warn", "ask", "refuse"],
        say="BM25 and 'bm25 ' look like one system; they share no question",
        signs=["bm25"],
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def main(out: Path) -> None:
    print("| layout | what it is | files | expect | questions | means |", "|---|---|---|---|---:|---|", sep="\n")
    for number, (name, what, make) in enumerate(LAYOUTS, 1):
        folder = out / f"{number:02d}-{name}"
        folder.mkdir(parents=True)
        truth = make(folder, random.Random(f"hand {name}"))
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        truth = {"layout": name, "what": what, "files": files, "accept": [truth["expect"]]} | truth
        dump(folder / "truth.json", truth)
        values = ", ".join(f"{s} {mean:.4f}" for s, mean in truth.get("means", {}).items())
        shown = ", ".join(f"`{file}`" for file in files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
        accept, questions = "/".join(truth["accept"]), truth.get("questions", "")
        print(f"| {folder.name} | {what} | {shown} | {accept} | {questions} | {values} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
