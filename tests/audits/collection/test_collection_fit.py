"""Judgments beside their topics: shifted, shuffled, of other documents, turned around; and sound ones."""

from __future__ import annotations

import json
import math
import operator
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from collection_example import text

import truerank
from truerank import collection
from truerank.audits.collection.crossings import Crossing
from truerank.audits.collection.fit import Fit, bm25, judgment_fit
from truerank.audits.collection.verdicts import verdicts
from truerank.lexical.analysis import Analyser

Row = tuple[str, str, int]
_TOPICS = 40
_IDS = [str(100 + number) for number in range(_TOPICS)]
_WORDS = ["river", "copper", "violin", "harbour", "thunder", "orchard", "meadow", "castle", "planet", "silver"]


def _asked(number: int) -> str:
    return f"{_WORDS[number % 10]} and {_WORDS[number // 10 + 3]} of subject{number}"


def _texts() -> dict[str, str]:
    """Three relevant documents of each topic, and one that shares fewer words with it."""
    return {
        f"d{number}-{place}": f"{text(10 * number + place)} {_asked(number) if place < 3 else f'subject{number}'}"
        for number in range(_TOPICS)
        for place in range(4)
    }


def _sound() -> list[Row]:
    return [(topic, f"d{number}-{place}", int(place < 3)) for number, topic in enumerate(_IDS) for place in range(4)]


def _renamed(names: dict[str, str]) -> list[Row]:
    return [(names[topic], doc, grade) for topic, doc, grade in _sound() if topic in names]


def _shuffled(ids: list[str]) -> dict[str, str]:
    return dict(zip(ids, random.Random(3).sample(ids, len(ids)), strict=True))


def _by_chance() -> list[Row]:
    docs = list(_texts())
    other = dict(zip(docs, random.Random(4).sample(docs, len(docs)), strict=True))
    return [(topic, other[doc], grade) for topic, doc, grade in _sound()]


_PLANTS: dict[str, Callable[[], list[Row]]] = {
    "sound": _sound,
    "shifted by 2": lambda: _renamed({one: str(int(one) + 2) for one in _IDS}),
    "second half": lambda: _renamed({one: str(int(one) + (int(one) >= 120)) for one in _IDS if one != "119"}),
    "numbered": lambda: _renamed({one: str(at + 1) for at, one in enumerate(_IDS)}),
    "shuffled": lambda: _renamed(_shuffled(_IDS)),
    "other documents": _by_chance,
    "inverted": lambda: [(topic, doc, 1 - grade) for topic, doc, grade in _sound()],
    "unknown documents": lambda: [(topic, f"x{doc}", grade) for topic, doc, grade in _sound()],
    "few": lambda: [row for row in _renamed({one: str(int(one) + 1) for one in _IDS}) if row[0] < "105"],
}


def _run() -> pl.DataFrame:
    """For each topic its own documents, and ten of others."""
    draw, docs, rows = random.Random(5), list(_texts()), []
    for number, topic in enumerate(_IDS):
        own = [f"d{number}-{place}" for place in range(4)]
        results = [*own, *(one for one in draw.sample(docs, 10) if one not in own)]
        rows += [(topic, doc, rank) for rank, doc in enumerate(results, start=1)]
    return pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank"], orient="row")


def _qrels(name: str) -> pl.DataFrame:
    frame = pl.DataFrame(_PLANTS[name](), schema=["topic_id", "doc_id", "relevance"], orient="row")
    return frame.unique(["topic_id", "doc_id"], keep="last", maintain_order=True)


def _by(source: str, name: str) -> Fit:
    if source == "run":
        return judgment_fit(_qrels(name), {"run": _run()})
    texts = _texts()
    topics = {topic: _asked(number) for number, topic in enumerate(_IDS)}
    return judgment_fit(_qrels(name), topics=topics, texts=lambda ids: {one: texts[one] for one in ids if one in texts})


@pytest.mark.parametrize("source", ["run", "words"])
@pytest.mark.parametrize(
    ("plant", "word", "order", "offset"),
    [
        ("sound", "fits", "", None),
        ("shifted by 2", "shifted", "number", -2),
        ("second half", "shifted", "order of ids", -1),
        ("numbered", "shifted", "number", 99),
        ("shuffled", "shuffled", "", None),
        ("inverted", "inverted", "", None),
        ("few", "not asked", "", None),
    ],
)
def test_judgments_that_belong_elsewhere(source: str, plant: str, word: str, order: str, offset: int | None) -> None:
    fit = _by(source, plant)
    if (source, word) == ("words", "inverted"):
        # Which way grades go is asked of results that were nearly all judged.
        word = "fits"
    assert (fit.word, fit.order, fit.offset) == (word, order, offset)
    assert (fit.source in ("run", "words")) == (word != "not asked")
    if word == "shifted":
        truth = dict(zip((row[0] for row in _PLANTS[plant]()), _true_topics(plant), strict=True))
        assert len(fit.topics) > 10 and all(truth[topic] == to for topic, to in fit.topics)
        assert fit.of_all(40) or plant == "second half"
        assert fit.p is None if plant == "second half" else fit.p <= 0.001


def _true_topics(plant: str) -> list[str]:
    return [_IDS[int(doc.strip("x").split("-")[0][1:])] for _, doc, _ in _PLANTS[plant]()]


def test_judgments_of_other_documents_are_told_by_words_but_not_by_one_run() -> None:
    assert _by("words", "other documents").word == "other collection"
    assert _by("words", "unknown documents").word == "other collection"
    for plant in ("other documents", "unknown documents"):
        alone = _by("run", plant)
        assert alone.word == "not asked" and [one.word for one in alone.sources] == ["unrelated"]
    both = judgment_fit(_qrels("other documents"), {"a": _run(), "b": _run()})
    assert both.word == "other collection"


def test_a_run_of_other_topics_is_the_run_s_fault() -> None:
    moved = _run().with_columns((pl.col("topic_id").cast(pl.Int64) + 1).cast(pl.String))
    fit = judgment_fit(_qrels("sound"), {"good": _run(), "moved": moved})
    assert fit.word == "fits" and [(one.source, one.word) for one in fit.sources][1] == ("moved", "shifted")
    found = collection.audit(qrels=_qrels("sound"), run={"good": _scored(_run()), "moved": _scored(moved)}, resamples=5)
    assert found.rows("misplaced-run")["other"].to_list() == ["moved"]
    assert found.finding("shifted-judgments") is None


@pytest.mark.parametrize("plant", ["sound", "inverted", "shuffled", "other documents"])
def test_what_the_runs_of_a_comparison_leave_open_is_asked_of_the_others(plant: str) -> None:
    moved = _run().with_columns((pl.col("topic_id").cast(pl.Int64) + 1).cast(pl.String))
    runs = {"a": _run(), "b": _run(), "moved": moved}
    whole, some = judgment_fit(_qrels(plant), runs), judgment_fit(_qrels(plant), runs, enough=("a", "b"))
    assert (some.word, some.topics, some.p) == (whole.word, whole.topics, whole.p)
    placed = [one for one in some.sources if one.source in ("a", "b")]
    assert placed == [one for one in whole.sources if one.source in ("a", "b")]
    assert (len(some.sources) < len(whole.sources)) == (plant in ("sound", "inverted"))


@pytest.mark.parametrize("seed", [0, 3])
def test_a_run_that_confuses_neighbours_of_a_grid_fits_until_it_is_moved(seed: int) -> None:
    """Eight products by five kinds of question, in order: often the own document, and the next products'."""
    draw, rows = random.Random(seed), []
    for topic in range(40):
        alike = [one for one in (topic, topic - 5, topic + 5) if 0 <= one < 40]
        results = [one for one in alike if draw.random() < 0.7] or [topic]
        rows += [(str(topic), f"d{doc}", rank) for rank, doc in enumerate(results, start=1)]
    run = pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank"], orient="row")
    qrels = pl.DataFrame({"topic_id": run["topic_id"].unique(maintain_order=True)}).with_columns(
        pl.format("d{}", "topic_id").alias("doc_id"), pl.lit(1).alias("relevance")
    )
    assert {one.word for one in judgment_fit(qrels, {"run": run}).sources} <= {"fits", "not asked", "unrelated"}
    names = {str(at): str(at + 1 if at < 39 else 13) for at in range(13, 40)}
    moved = judgment_fit(qrels, {"run": run.with_columns(pl.col("topic_id").replace(names))})
    assert (moved.word, moved.offset) == ("shifted", 1)


def _scored(run: pl.DataFrame) -> pl.DataFrame:
    return run.with_columns((100.0 - pl.col("rank")).alias("score"))


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        ("shifted by 2", "shifted-judgments"),
        ("shuffled", "shuffled-judgments"),
        ("other documents", "unrelated-judgments"),
        ("inverted", "inverted-grades"),
        ("sound", None),
    ],
)
def test_the_audit_names_them(tmp_path: Path, plant: str, kind: str | None) -> None:
    corpus = [json.dumps({"_id": one, "text": said}) for one, said in _texts().items()]
    (tmp_path / "docs.jsonl").write_text("\n".join(corpus) + "\n")
    (tmp_path / "topics.tsv").write_text("".join(f"{one}\t{_asked(at)}\n" for at, one in enumerate(_IDS)))
    files = {"docs": str(tmp_path / "docs.jsonl"), "topics": str(tmp_path / "topics.tsv")}
    run = {"run": {"found": _scored(_run())}} if plant == "inverted" else {}
    found = collection.audit(qrels=_qrels(plant), **files, **run)
    names = {one.kind.name for one in found.findings if "judgments" in one.kind.name or "grades" in one.kind.name}
    assert names & {"shifted-judgments", "shuffled-judgments", "unrelated-judgments", "inverted-grades"} == (
        {kind} if kind else set()
    )
    if kind:
        assert found.verdicts[0].word == "FAULTY" and found.facts["fit"]["word"] != "fits"
    if plant == "shifted by 2":
        assert found.rows(kind)["topic_id"][0] == "102" and found.rows(kind)["other"][0] == "100"
        # Judgments of 140 and 141 are of no topic: cleaning does not take them for waste.
        cleaned = collection.clean(_qrels(plant), found)
        assert len(cleaned.qrels) == len(_qrels(plant)) and any("fit other topics" in one for one in cleaned.warnings)


def test_a_few_faults_are_not_the_word_for_all() -> None:
    grades = {f"t{at}": {"a": 1, "b": 0} for at in range(100)}
    few = collection.audit(qrels={**grades, "t7": {"a": 0}}).verdicts[0]
    assert few.word == "FAULTY IN PART" and "1 of 100 topics, 1.0%" in few.sentence
    many = collection.audit(qrels={**grades, **{f"t{at}": {"a": 0} for at in range(5)}}).verdicts[0]
    assert many.word == "FAULTY" and "5 of 100 topics, 5.0%" in many.sentence
    assert verdicts((), {"qrels"})[0].word == "UNKNOWN"


def test_irrelevant_documents_from_the_top_of_a_run_are_no_inversion() -> None:
    """Relevant documents come from anywhere, and what is not relevant from the first results: nothing is inverted."""
    draw, rows, judged = random.Random(6), [], []
    for topic in _IDS:
        docs = [f"{topic}-{number}" for number in range(60)]
        relevant = {doc for at, doc in enumerate(docs) if draw.random() < (0.7 if at < 4 else 0.1 if at < 10 else 0.2)}
        rows += [(topic, doc, rank) for rank, doc in enumerate(docs, start=1)]
        judged += [(topic, doc, int(doc in relevant)) for at, doc in enumerate(docs) if doc in relevant or at < 10]
        judged += [(topic, f"{topic}-beside-{number}", 1) for number in range(6)]
    run = pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank"], orient="row")
    qrels = pl.DataFrame(judged, schema=["topic_id", "doc_id", "relevance"], orient="row")
    assert judgment_fit(qrels, {"run": run}).word != "inverted"
    turned = qrels.with_columns((1 - pl.col("relevance")).alias("relevance"))
    assert [one.word for one in judgment_fit(turned, {"run": run}).sources if one.word == "inverted"] == ["inverted"]


def test_bm25_is_that_of_a_plain_loop_over_every_document_also_those_of_several_topics() -> None:
    draw = random.Random(7)
    words = [f"{one}{number}" for one in ("zug", "don't", "東京") for number in range(6)]
    texts = [" ".join(draw.choices(words, k=draw.randrange(0, 30))) for _ in range(30)]
    documents, topics = (
        [draw.choice(texts) for _ in range(80)],
        ["", *(" ".join(draw.choices(words, k=4)) for _ in "abc")],
    )
    analyser = Analyser()
    held, asked = ([Counter(analyser(one)) for one in some] for some in (documents, topics))
    mean = sum(one.total() for one in held) / len(held)

    def score(one: Counter[str], query: Counter[str]) -> float:
        norm = 0.9 * (1 - 0.4 + 0.4 * one.total() / mean)
        often = {term: sum(term in each for each in held) for term in query}
        idf = {term: math.log1p((len(held) - often[term] + 0.5) / (often[term] + 0.5)) for term in query}
        return sum(count * idf[term] * one[term] / (one[term] + norm) for term, count in query.items())

    scores, covered = bm25(documents, topics)
    assert scores == pytest.approx(np.array([[score(one, query) for query in asked] for one in held]))
    every = {term for one in held for term in one}
    assert covered == pytest.approx(np.mean([np.mean([term in every for term in query]) for query in asked if query]))


def test_a_crossing_is_the_sum_of_products_over_documents() -> None:
    draw = random.Random(3)
    mine, theirs = (
        {(topic, f"d{doc}"): draw.random() for topic in topics for doc in draw.sample(range(30), 8)}
        for topics in (["t2", "t10", "x"], ["t10", "t2", "t3"])
    )
    frames = [
        pl.DataFrame([(*key, gain) for key, gain in one.items()], ["topic_id", "doc_id", "gain"], orient="row")
        for one in (mine, theirs)
    ]
    found = Crossing.of(*frames, ["t10", "t2", "t3"], "file")
    assert found.rows == ["t2", "t10", "x"] and found.own.tolist() == [1, 0, -1]
    expected = [
        [
            sum(mine.get((row, f"d{at}"), 0) * theirs.get((column, f"d{at}"), 0) for at in range(30))
            for column in found.columns
        ]
        for row in found.rows
    ]
    assert found.values.toarray() == pytest.approx(np.array(expected))
    own = [expected[0][1], expected[1][0], 0]
    assert found.by(found.own) == pytest.approx(own)
    less, same = (
        np.array([sum(how(one, own[row]) for one in expected[row]) for row in (0, 1)])
        for how in (operator.lt, operator.eq)
    )
    assert found.places()[:2] == pytest.approx((less + (same - 1) / 2) / 2)


def _many(topics: int, judged: list[int], moved: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgments of some of many topics, moved by so many, and a run that finds a document of each."""
    qrels = pl.DataFrame({"topic_id": [str(at + moved) for at in judged], "doc_id": [f"d{at}" for at in judged]})
    run = pl.DataFrame(
        {
            "topic_id": [str(at) for at in range(topics) for _ in range(2)],
            "doc_id": [doc for at in range(topics) for doc in (f"d{at}", f"d{(7 * at) % topics}")],
            "rank": [1, 2] * topics,
        }
    )
    return qrels.with_columns(relevance=1), run.unique(["topic_id", "doc_id"], keep="first", maintain_order=True)


@pytest.mark.parametrize(
    ("topics", "judged"),
    [
        pytest.param(6_000, [*range(6_000)], id="all of many"),
        pytest.param(6_000, [*range(3_000, 3_040)], id="a few that stand together"),
        pytest.param(60_000, [*range(0, 60_000, 1_500)], id="one of 1,500"),
        pytest.param(200, [*range(6_000)], id="a run on a sample of the topics"),
    ],
)
def test_judgments_of_many_topics_fit_a_run_that_answers_them(topics: int, judged: list[int]) -> None:
    qrels, run = _many(topics, judged)
    fit = judgment_fit(qrels, {"one": run, "other": run})
    assert (fit.word, fit.own) == ("fits", pytest.approx(1, abs=0.02))


@pytest.mark.slow
def test_a_shift_of_many_topics_is_found() -> None:
    moved = -3
    qrels, run = _many(6_000, [*range(10, 5_990)], moved)
    fit = judgment_fit(qrels, {"one": run, "other": run})
    assert (fit.word, fit.offset) == ("shifted", -moved)


@pytest.mark.parametrize(("moved", "word"), [(0, "fits"), (5, "shifted"), (None, "unrelated")])
def test_runs_that_find_a_quarter_of_what_is_relevant_are_enough(moved: int | None, word: str) -> None:
    """Documents that are in nobody's results would draw the mean to that of chance."""
    draw, topics = random.Random(6), range(400)
    own = random.Random(7).sample(topics, len(topics)) if moved is None else [(at + moved) % 400 for at in topics]
    qrels = pl.DataFrame({"topic_id": [f"t{at}" for at in own], "doc_id": [f"d{at}" for at in topics]})
    rows = [
        (f"t{at}", f"d{at}" if place == 3 and found else f"x{at}-{place}", place)
        for at in topics
        for found in [draw.random() < 0.25]
        for place in range(1, 11)
    ]
    run = pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank"], orient="row")
    fit = judgment_fit(qrels.with_columns(relevance=1), {"run": run})
    assert fit.sources[0].word == word
    assert moved != 5 or fit.of_all(400)


def test_runs_that_find_a_tenth_and_confuse_topics_show_no_other_collection() -> None:
    draw, topics = random.Random(8), range(600)
    qrels = pl.DataFrame({"topic_id": [f"t{at}" for at in topics], "doc_id": [f"d{at}" for at in topics]})
    rows = [
        (f"t{at}", f"d{at}" if place == 2 and found else f"d{draw.randrange(600)}", place)
        for at in topics
        for found in [draw.random() < 0.1]
        for place in (1, 2)
    ]
    run = pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank"], orient="row").unique(["topic_id", "doc_id"])
    fit = judgment_fit(qrels.with_columns(relevance=1), {"one": run, "other": run})
    assert fit.word == "not asked"
    assert "more than by chance" in fit.sources[0].evidence


def _one_each(
    topics: int, seed: int, found: float = 0.75, seek: int = 10
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """One relevant document of each topic, and two runs that often find the same ones, beside random ones of others."""
    draw, rows = random.Random(seed), {"a": list[tuple[str, str, int]](), "b": list[tuple[str, str, int]]()}
    for at in range(topics):
        easy = draw.random() < found
        for one in rows:
            results = [f"d{draw.randrange(20 * topics)}" for _ in range(seek)]
            if easy and draw.random() < 0.9:
                results[min(int(draw.expovariate(0.5)), seek - 1)] = f"d{at}"
            rows[one] += [(f"t{at}", doc, rank) for rank, doc in enumerate(dict.fromkeys(results), start=1)]
    runs = {one: pl.DataFrame(some, schema=["topic_id", "doc_id", "rank"], orient="row") for one, some in rows.items()}
    qrels = pl.DataFrame({"topic_id": [f"t{at}" for at in range(topics)], "doc_id": [f"d{at}" for at in range(topics)]})
    return qrels.with_columns(relevance=1), runs


def _moved(qrels: pl.DataFrame, to: dict[str, str]) -> pl.DataFrame:
    return qrels.with_columns(pl.col("topic_id").replace(to))


@pytest.mark.parametrize(("size", "step"), [(5, 1), (12, -1), (40, 2), (100, -2)])
def test_a_block_of_judgments_that_moved_is_named(size: int, step: int) -> None:
    qrels, runs = _one_each(200, size, 0.9)
    to = {f"t{at}": f"t{at + step}" for at in range(50, 50 + size)}
    moved = _moved(qrels.filter(~pl.col("topic_id").is_in(set(to.values()) - set(to))), to)
    fit = judgment_fit(moved, runs, enough=("a", "b"))
    assert (fit.word, fit.offset) == ("shifted", -step) and not fit.of_all(200)
    named = {topic for topic, _ in fit.topics}
    assert len(named - {*to.values()}) <= 2 and len({*to.values()} - named) <= max(2, size / 10)
    assert judgment_fit(moved, {"a": runs["a"]}).word == "shifted"
    assert judgment_fit(qrels, runs).word == "fits"


@pytest.mark.parametrize(("found", "copies"), [(0.05, 1), (0.05, 4), (0.5, 2), (0.95, 1), (0.95, 4)])
def test_topics_of_which_runs_find_little_are_not_astray(found: float, copies: int) -> None:
    """Also where topics say the same in other words, each with a relevant document of its own."""
    qrels, runs = _one_each(400, 5, found)
    alike = {
        one: run.with_columns(group=pl.col("topic_id").str.slice(1).cast(pl.Int64) // copies)
        for one, run in runs.items()
    }
    draw = random.Random(1)
    for one, run in alike.items():
        rows = []
        for group in run.partition_by("group", maintain_order=True):
            docs = group.sort("rank", maintain_order=True)["doc_id"].unique(maintain_order=True).to_list()
            for topic in group["topic_id"].unique(maintain_order=True):
                order = sorted(docs, key=lambda doc: docs.index(doc) + draw.random() * 8)
                rows += [(topic, doc, rank) for rank, doc in enumerate(order[:10], start=1)]
        runs[one] = pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank"], orient="row")
    for given in (runs, {"a": runs["a"]}):
        fit = judgment_fit(qrels, given, enough=tuple(given))
        assert fit.word not in ("shifted", "shuffled")


def test_the_order_of_a_run_is_not_called_that_of_a_file() -> None:
    qrels, runs = _one_each(200, 3)
    shuffled = random.Random(3).sample(range(200), 200)
    order = {f"t{at}": f"t{shuffled[at]}" for at in range(200)}
    run = runs["a"].with_columns(pl.col("topic_id").replace(order))
    after = {f"t{shuffled[at]}": f"t{shuffled[(at + 1) % 200]}" for at in range(200)}
    qrels = qrels.with_columns(pl.col("topic_id").replace(order)).with_columns(pl.col("topic_id").replace(after))
    fit = judgment_fit(qrels, {"a": run})
    assert (fit.word, fit.order, fit.offset) == ("shifted", "run", -1) and fit.of_all(200)
    assert "in the order of the run" in fit.evidence
    said = judgment_fit(qrels, {"a": run}, topics=dict.fromkeys(run["topic_id"].unique(maintain_order=True), "text"))
    assert (said.order, said.offset) == ("file", -1) and "in the file of topics" in said.evidence


def _told(said: list[str], moved: str) -> list[str]:
    """Texts of a file, some of which moved to the next document."""
    behind = said[-1:] + said[:-1]
    shifted = {"all": range(len(said)), "second half": range(len(said) // 2, len(said)), "none": ()}[moved]
    return [behind[at] if at in shifted else text for at, text in enumerate(said)]


def _neighbours(folder: Path, said: list[str], judged: dict[str, list[int]]) -> collection.CollectionAudit:
    (folder / "docs.jsonl").write_text(
        "".join(json.dumps({"_id": f"d{at}", "text": one}) + "\n" for at, one in enumerate(said))
    )
    (folder / "topics.tsv").write_text("".join(f"{one}\t{_asked(at)}\n" for at, one in enumerate(_IDS)))
    rows = [(topic, f"d{at}", 1) for topic, places in judged.items() for at in places]
    qrels = pl.DataFrame(rows, schema=["topic_id", "doc_id", "relevance"], orient="row")
    return collection.audit(qrels=qrels, docs=str(folder / "docs.jsonl"), topics=str(folder / "topics.tsv"))


@pytest.mark.parametrize(("moved", "least"), [("all", 80), ("second half", 35), ("none", 0)])
def test_texts_of_neighbours_that_are_alike(tmp_path: Path, moved: str, least: int) -> None:
    """Each document is about a topic and shares a word with the documents beside it: judgments fit all the same."""
    order = random.Random(6).sample(range(2 * _TOPICS), 2 * _TOPICS)
    around = [
        f"{_asked(order[at - 1] // 2)[:12]} {_asked(order[at + 1 - len(order)] // 2)[:12]}" for at in range(len(order))
    ]
    said = [f"{text(at)} {_asked(one // 2)} {around[at]}" for at, one in enumerate(order)]
    judged = {topic: [at for at, one in enumerate(order) if one // 2 == number] for number, topic in enumerate(_IDS)}
    found = _neighbours(tmp_path, _told(said, moved), judged)
    rows = found.rows("displaced-text")
    assert (found.facts["fit"]["word"], found.facts["fit"]["offset"]) == (("displaced", 1) if least else ("fits", None))
    assert least <= len(rows) <= (2 * _TOPICS if moved == "all" else 1.2 * _TOPICS if least else 0)
    assert (found.verdicts[0].word == "FAULTY") == bool(least)
    # A run that has the right documents, and one that has others.
    ranked = {"good": {topic: {f"d{at}": 1.0 - at for at in places} for topic, places in judged.items()}}
    for at, topic in enumerate(_IDS[::3]):  # not by the same amount
        ranked["good"][topic][f"d{judged[_IDS[at]][0] - 9}"] = 2.0
    ranked["plain"] = {topic: {f"d{places[0] - 7}": 2.0, f"d{places[1]}": 1.0} for topic, places in judged.items()}
    checked = truerank.check(
        qrels={topic: {f"d{at}": 1 for at in places} for topic, places in judged.items()}, run=ranked, system="good",
        baseline="plain", docs=str(tmp_path / "docs.jsonl"), test=str(tmp_path / "topics.tsv"),
    )  # fmt: skip
    assert ("By the text of the document just after them" in checked.conclusion.found) == bool(least)
    assert ("If a run was made from these documents" in checked.conclusion.figure) == bool(least)
    assert checked.conclusion.word.startswith("HOLDS EXCEPT" if least else "HOLDS")


@pytest.mark.parametrize("judged", ["question", "body"])
def test_documents_that_are_pieces_are_at_their_place(tmp_path: Path, judged: str) -> None:
    """The piece before or after the judged one says more of the topic."""
    said = []
    for number in range(_TOPICS):
        words = _asked(number).split()
        said += {
            "question": [_asked(number), f"{text(number)} {words[-1]}"],
            "body": [_asked(number), f"{words[-1]} {text(number)}"],
        }[judged]
    of = {topic: [2 * number + (judged == "body")] for number, topic in enumerate(_IDS)}
    assert not len(_neighbours(tmp_path, said, of).rows("displaced-text"))
