"""Judgments that runs contradict: planted ones are found, and what people say of them changes the judgments."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from truerank import collection
from truerank.audits.collection.suspects import FEWEST, suspects
from truerank.errors import InputError, OptionError
from truerank.judging import Store, new

TOPICS, DOCS, RELEVANT = 30, 400, 10
CODES = ("COLL14", "COLL15")


def run_of(docs: np.ndarray) -> pl.DataFrame:
    """A run of the first 200 documents of each topic; shape (topics, documents)."""
    return pl.DataFrame({
        "topic_id": np.repeat([f"q{topic:02d}" for topic in range(TOPICS)], 200),
        "doc_id": [f"d{doc:03d}" for doc in docs[:, :200].ravel()],
        "rank": np.tile(np.arange(1, 201), TOPICS),
        "score": np.tile(np.arange(200.0, 0.0, -1.0), TOPICS),
    })  # fmt: skip


def collection_of(seed: int, runs: int = 7, noise: float = 1.6) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Judgments, and runs that see relevance through noise of their own and a part in common."""
    draw = np.random.default_rng(seed)
    relevant = np.zeros((TOPICS, DOCS))
    for topic in range(TOPICS):
        relevant[topic, draw.choice(DOCS, RELEVANT, replace=False)] = 1.0
    common = draw.normal(size=relevant.shape)
    found = {}
    for number in range(runs):
        scores = 4 * relevant + common + noise * draw.normal(size=relevant.shape)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :200]
        found[f"run{number}"] = run_of(best)
    topic, doc = np.nonzero(relevant)
    qrels = pl.DataFrame({
        "topic_id": [f"q{one:02d}" for one in topic], "doc_id": [f"d{one:03d}" for one in doc],
        "relevance": np.ones(len(topic), dtype=np.int32),
    })  # fmt: skip
    return qrels, found


def flipped(
    qrels: pl.DataFrame, runs: dict[str, pl.DataFrame], count: int, seed: int
) -> tuple[pl.DataFrame, set[tuple[str, str]]]:
    """Judgments of which some are moved to a document that a run has in its first 100."""
    draw = np.random.default_rng(seed)
    rows = set(draw.choice(len(qrels), count, replace=False).tolist())
    known, wrong, lines = set(qrels.select("topic_id", "doc_id").iter_rows()), set(), []
    for at, (topic, doc, grade) in enumerate(qrels.iter_rows()):
        if at in rows:
            run = runs[f"run{draw.integers(len(runs))}"].filter(pl.col("topic_id") == topic, pl.col("rank") <= 100)
            free = [one for one in run["doc_id"] if (topic, one) not in known | wrong]
            doc = free[int(draw.integers(len(free)))]
            wrong.add((topic, doc))
        lines.append((topic, doc, grade))
    return pl.DataFrame(lines, schema=qrels.schema, orient="row"), wrong


def test_they_are_looked_for_where_they_are_named() -> None:
    qrels, runs = collection_of(0)
    assert "suspects" not in collection.audit(qrels=qrels, run=runs, resamples=20).facts
    assert "suspects" not in collection.audit(qrels=qrels, run=runs, resamples=20, select=("COLL",)).facts
    assert "suspects" in collection.audit(qrels=qrels, run=runs, resamples=20, select=CODES[1:]).facts


def pairs(frame: pl.DataFrame) -> set[tuple[str, str]]:
    return set(frame.select("topic_id", "doc_id").iter_rows())


def test_planted_judgments_come_first_and_their_share_is_as_expected() -> None:
    right = proposed = 0
    expected = []
    for seed in range(3):
        qrels, runs = collection_of(seed)
        found = suspects(runs, *(planted := flipped(qrels, runs, 15, seed))[:1])
        assert found.refused == "" and found.relevant is not None and len(found.families) >= FEWEST
        ordered = list(found.relevant.rows.select("topic_id", "doc_id").iter_rows())
        assert sum(pair in planted[1] for pair in ordered[:5]) >= 4
        right += len(set(ordered) & planted[1])
        proposed += len(ordered)
        expected.append(float(found.relevant.rows["expected"][-1]))
        assert min(found.relevant.rows["expected"]) >= 0.3 and expected[-1] >= 0.5
    assert right / proposed >= 0.6 and abs(right / proposed - np.mean(expected)) < 0.25
    assert right >= 0.6 * 45


def test_relevant_documents_that_nobody_marked_are_proposed() -> None:
    qrels, runs = collection_of(5, noise=0.8)
    gone = qrels.sample(15, seed=1)
    found = suspects(runs, qrels.join(gone, on=["topic_id", "doc_id"], how="anti"))
    # A quarter of all proposals, which are 5% of 285 judgments.
    assert found.others is not None and len(found.others.rows) == 3
    assert len(pairs(found.others.rows) & pairs(gone)) >= 2
    assert found.others.rows["grade"].is_null().all()


def test_a_clean_collection_gets_few_proposals_and_the_same_each_time() -> None:
    qrels, runs = collection_of(9)
    found = suspects(runs, qrels)
    assert found.relevant is not None and found.others is not None
    assert len(found.relevant.rows) + len(found.others.rows) <= 0.05 * 2 * len(qrels)
    assert len(found.relevant.rows) <= 0.05 * len(qrels) and found.run() == suspects(runs, qrels).run()
    fewer = suspects(runs, qrels, share=0.001)
    assert fewer.relevant is not None and not len(fewer.relevant.rows)


def test_words_find_what_ranks_do_not() -> None:
    """Runs that hardly see relevance, and relevant documents with words in common."""
    right = {False: 0, True: 0}
    for seed in range(3):
        qrels, runs = collection_of(seed, noise=4)
        draw = np.random.default_rng(seed)
        word = {topic: f"word{topic}" for topic in qrels["topic_id"].unique()}
        texts = {f"d{n:03d}": [f"filler{one}" for one in draw.integers(300, size=12)] for n in range(DOCS)}
        for topic, doc in qrels.select("topic_id", "doc_id").iter_rows():
            texts[doc].append(word[topic])
        judged, wrong = flipped(qrels, runs, 15, seed)
        topics = {topic: f"what is {one}" for topic, one in word.items()}

        def read(ids: Collection[str], texts: dict[str, list[str]] = texts) -> dict[str, str]:
            return {one: " ".join(texts[one]) for one in ids}

        for by_words in right:
            found = suspects(runs, judged, texts=read if by_words else None, topics=topics)
            assert found.texts is by_words and found.relevant is not None
            right[by_words] += len(pairs(found.relevant.rows) & wrong)
    assert right[True] >= right[False] + 6


def test_runs_without_any_order_propose_nothing() -> None:
    """Where ranks say nothing of relevance, no flip can be told from a judgment."""
    qrels, _ = collection_of(2)
    draw = np.random.default_rng(0)
    runs = {}
    for number in range(6):
        docs = np.argsort(draw.random((TOPICS, DOCS)), axis=1)[:, :200]
        runs[f"run{number}"] = run_of(docs)
    found = suspects(runs, qrels)
    assert found.relevant is not None and not len(found.relevant.rows) and not len(found.others.rows)  # type: ignore[union-attr]


def test_few_families_or_topics_are_refused() -> None:
    qrels, runs = collection_of(1)
    alike = {f"copy{number}": runs["run0"] for number in range(8)} | {"run1": runs["run1"]}
    found = suspects(alike, qrels)
    assert "make 2, and 5 are needed" in found.refused and found.relevant is None and found.run() == ""
    assert [len(one) for one in found.families] == [8, 1] and found.rbo is not None and found.rbo > 0.5
    few = qrels.filter(pl.col("topic_id") < "q05")
    assert "5 topics" in suspects(runs, few).refused
    assert suspects({"run0": runs["run0"]}, qrels).rbo is None
    assert "0 topics" in suspects(runs, qrels.with_columns(topic_id=pl.lit("other"))).refused
    with pytest.raises(OptionError, match="suspect_share"):
        collection.audit(qrels=qrels, run=runs, suspect_share=0.0)


def test_rbo_is_that_of_its_definition() -> None:
    """The sum of overlaps at each depth, as Webber, Moffat and Zobel extrapolate it."""
    _, runs = collection_of(3, runs=2)
    qrels, _ = collection_of(3, runs=1)
    p, depth, values = 0.9, 100, []
    lists = [
        {t: part["doc_id"].to_list() for (t,), part in run.group_by("topic_id", maintain_order=True)}
        for run in runs.values()
    ]
    for topic, one in lists[0].items():
        overlap = [len(set(one[:d]) & set(lists[1][topic][:d])) for d in range(1, depth + 1)]
        values.append(
            overlap[-1] / depth * p**depth + (1 - p) / p * sum(x / d * p**d for d, x in enumerate(overlap, 1))
        )
    assert suspects(runs, qrels).rbo == pytest.approx(np.mean(values))


def test_from_the_audit_to_people_and_back_to_the_judgments(tmp_path: Path) -> None:
    """The audit writes a run, people judge it, and cleaning puts their grades into the judgments, bytes kept."""
    qrels, runs = collection_of(0)
    qrels, wrong = flipped(qrels, runs, 15, 0)
    source = tmp_path / "test.qrels"
    source.write_text("".join(f"{topic}\t0\t{doc}\t{grade}\n" for topic, doc, grade in qrels.iter_rows()))
    found = collection.audit(qrels=str(source), run=runs, select=CODES, resamples=20, out=tmp_path / "audit")
    lines = (tmp_path / "audit" / "suspects.run").read_text().splitlines()
    counts = {kind: found.finding(kind).count for kind in ("suspect-relevant", "suspect-other")}  # type: ignore[union-attr]
    assert len(lines) == sum(counts.values())
    about = found.facts["suspects"]
    assert [about["relevant"]["proposed"], about["others"]["proposed"]] == list(counts.values())
    assert "Judgments that the runs contradict" in (tmp_path / "audit" / "report.html").read_text()
    docs, topics = tmp_path / "docs.jsonl", tmp_path / "topics.tsv"
    docs.write_text("".join(json.dumps({"doc_id": f"d{n:03d}", "text": f"text {n}"}) + "\n" for n in range(DOCS)))
    topics.write_text("".join(f"q{n:02d}\tquery {n}\n" for n in range(TOPICS)))
    new(tmp_path / "s.judged", "relevance-documents", str(tmp_path / "audit" / "suspects.run"),
        annotators=("ann",), topics=(str(topics),), docs=(str(docs),))  # fmt: skip
    with Store.open(tmp_path / "s.judged") as store:
        grades = {choice.grade: choice.name for choice in store.scheme.choices}
        highest = max(grade for grade in grades if grade is not None)
        for item in store.items():
            pair = item.topic_id, next(text.id for text in item.texts if text.name == "document")
            store.record(item.item_id, "ann", "label", (grades[0 if pair in wrong else highest],))
    cleaned = collection.clean(str(source), found, labels=str(tmp_path / "s.judged"), out=tmp_path / "clean")
    # How many of them are wrong is what people said of them.
    (told,) = [one for one in cleaned.warnings if "not relevant" in one]
    assert f"Of {counts['suspect-relevant']} relevant documents" in told
    changed = cleaned.changes
    assert set(changed["reason"]) == {"judged again"}
    proposed = {(line.split()[0], line.split()[2]) for line in lines}
    regraded, added = changed.filter(action="changed"), changed.filter(action="added")
    assert pairs(regraded) == proposed & wrong and pairs(added) == proposed - pairs(qrels)
    now = {(topic, doc): grade for topic, doc, grade in cleaned.qrels.iter_rows()}
    # A relevant document stays as it was: the grade of the scheme is above all grades of the judgments.
    assert all(grade == (0 if pair in pairs(regraded) else 1) for pair, grade in now.items())
    text = (tmp_path / "clean" / "test.qrels").read_text().splitlines()
    assert len(text) == len(qrels) + len(added) and sum(line.endswith("\t0") for line in text) == len(regraded)


def test_documents_that_were_not_judged_are_added(tmp_path: Path) -> None:
    source = tmp_path / "test.qrels"
    source.write_text("q1 0 a 2\nq1 0 b 0\n")
    labels = tmp_path / "ann.csv"
    labels.write_text("topic_id,doc_id,label\nq1,c,1\nq1,b,1\n")
    cleaned = collection.clean(
        str(source), collection.audit(qrels=str(source)), labels=str(labels), out=tmp_path / "out"
    )
    assert (tmp_path / "out" / "test.qrels").read_text() == "q1 0 a 2\nq1 0 b 1\nq1 0 c 1\n"
    assert cleaned.changes["action"].to_list() == ["changed", "added"] and cleaned.counts()["added"] == 1
    labels.write_text("topic_id,doc_id,label\nq1,c,leak\n")
    with pytest.raises(InputError, match="has no label 'leak'"):
        collection.clean(str(source), collection.audit(qrels=str(source)), labels=str(labels))
