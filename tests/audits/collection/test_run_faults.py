"""Are the files what they seem? Faults of ids, ranks, scores and topics, planted one at a time; none where none is."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.audits.collection.floors import shared_candidates
from truerank.audits.collection.run_faults import Files, run_faults
from truerank.measures.rankings import among_first
from truerank.measures.run_faults import RunFault

TOPICS = {f"q{n}": f"question number {n} about {n * 7}" for n in range(1, 13)}
DOCUMENTS = [f"CACM-{n:04d}" for n in range(300)]


def ranked(rows: Mapping[str, list[str]]) -> pl.DataFrame:
    """A run whose scores fall from rank to rank."""
    found = [(topic, doc, rank, 100.0 - rank) for topic, docs in rows.items() for rank, doc in enumerate(docs, 1)]
    schema = {"topic_id": pl.String, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64}
    return pl.DataFrame(found, schema=schema, orient="row")


def files(seed: int = 0, results: int = 20) -> Files:
    """Two runs that share half of their documents, and judgments of some of them."""
    draw = random.Random(seed)
    near = {topic: draw.sample(DOCUMENTS, 40) for topic in TOPICS}
    one, two = (ranked({topic: draw.sample(docs, results) for topic, docs in near.items()}) for _ in range(2))
    judged = [(topic, doc, int(n < 3)) for topic, docs in near.items() for n, doc in enumerate(docs[:8])]
    schema = {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
    qrels = pl.DataFrame(judged, schema=schema, orient="row")
    return Files({"one": one, "two": two}, ("one", "two"), qrels, pl.Series(DOCUMENTS), TOPICS, 10)


def with_run(given: Files, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Files:
    return replace(given, runs={**given.runs, "one": change(given.runs["one"])})


def again(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame in which a topic stands a second time under another id."""
    return pl.concat([frame, frame.filter(pl.col("topic_id") == "q3").with_columns(topic_id=pl.lit("q30"))])


def named(given: Files) -> dict[str, RunFault]:
    return {fault.kind: fault for fault in run_faults(given)}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("documents", [True, False])
def test_sound_files_have_no_fault(seed: int, documents: bool) -> None:
    given = files(seed)
    assert named(given if documents else replace(given, documents=None, topics=None)) == {}


RENAMED = {
    "prefix": lambda doc: f"docs/{doc}",
    "padding": lambda doc: doc.replace("-", "-000"),
    "case": str.lower,
    "passage": lambda doc: f"{doc}#2",
    "encoding": lambda doc: doc.replace("-", "%2D"),
}


@pytest.mark.parametrize("documents", [True, False])
@pytest.mark.parametrize("how", RENAMED)
def test_ids_that_do_not_meet(how: str, documents: bool) -> None:
    given = files() if documents else replace(files(), documents=None)
    whole = named(with_run(given, lambda run: run.with_columns(pl.col("doc_id").map_elements(RENAMED[how], pl.String))))
    assert whole["foreign-results"].weight == "fault"
    assert "their ids" in whole["foreign-results"].reason
    some = ["q2", "q3", "q5"]
    there = pl.col("topic_id").is_in(some)
    changed = with_run(
        given,
        lambda run: run.with_columns(
            pl.when(there)
            .then(pl.col("doc_id").map_elements(RENAMED[how], pl.String))
            .otherwise("doc_id")
            .alias("doc_id")
        ),
    )
    part = named(changed)["foreign-results"]
    assert (part.weight, part.topics) == ("topics", frozenset(some))


def test_ids_that_are_written_otherwise_in_part_of_all_lists() -> None:
    third = pl.when(pl.col("rank") % 3 == 0).then("D00" + pl.col("doc_id")).otherwise("doc_id").alias("doc_id")
    part = named(with_run(files(), lambda run: run.with_columns(third)))["foreign-results"]
    assert (part.weight, part.topics) == ("fault", frozenset()) and "'D00' too much" in part.reason
    # Ids that differ in nothing that shows may be those of documents that are not given.
    given = files()
    held = given.documents.filter(given.documents.str.slice(-1) != "7") if given.documents is not None else None
    assert named(replace(given, documents=held))["foreign-results"].weight == "doubt"


@pytest.mark.parametrize("documents", [True, False])
@pytest.mark.parametrize("how", [*RENAMED, "stem", "zeros"])
def test_ids_that_are_written_otherwise_here_and_there(how: str, documents: bool) -> None:
    given, draw = files(), random.Random(1)
    if how == "zeros":
        numbers = dict(zip(DOCUMENTS, (f"26{n // 30 + 1:02}.{100 * n:05}" for n in range(len(DOCUMENTS))), strict=True))
        runs = {name: run.with_columns(pl.col("doc_id").replace(numbers)) for name, run in given.runs.items()}
        qrels = given.qrels.with_columns(pl.col("doc_id").replace(numbers))
        given = replace(given, runs=runs, qrels=qrels, documents=pl.Series([*numbers.values()]))
    given = given if documents else replace(given, documents=None)
    assert named(given) == {}
    spelling = {**RENAMED, "stem": lambda doc: doc.removeprefix("CACM-"), "zeros": lambda doc: doc.rstrip("0")}[how]
    for share in (0.1, 0.25, 0.5):
        spelt = [spelling(doc) if draw.random() < share else doc for doc in given.runs["one"]["doc_id"]]
        changed = with_run(given, lambda run, spelt=spelt: run.with_columns(pl.Series("doc_id", spelt)))
        found = {fault.kind: fault for fault in run_faults(changed)}["foreign-results"]
        assert (found.run, found.weight, found.topics) == ("one", "fault", frozenset())
        assert "ids" in found.reason or "written otherwise" in found.reason


@pytest.mark.parametrize("form", ["{whole}.{part}", "manual-{whole}_{part}", "{whole}/{part}.md", "{whole}{part:02}"])
def test_parts_of_one_text_whose_ids_are_alike_are_not_one_another(form: str) -> None:
    """Two systems that each return one part of a chapter, and hardly ever the same."""
    draw = random.Random(4)
    runs: dict[str, dict[str, list[str]]] = {"one": {}, "two": {}}
    for topic in TOPICS:
        chapters = draw.sample(range(1, 40), 10)
        for lists in runs.values():
            lists[topic] = [form.format(whole=each, part=draw.randint(1, 30)) for each in chapters]
    judged = [(topic, docs[0], 1) for topic, docs in runs["one"].items()]
    qrels = pl.DataFrame(
        judged, schema={"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}, orient="row"
    )
    given = Files({name: ranked(rows) for name, rows in runs.items()}, ("one", "two"), qrels, None, None, 10)
    assert "foreign-results" not in named(given)


@pytest.mark.parametrize(("share", "weight"), [(0.3, "fault"), (0.6, "topics")])
@pytest.mark.parametrize("ids", [DOCUMENTS, [str(n) for n in range(300)]], ids=["padded", "numbers"])
def test_documents_that_are_cut_short_lack_the_end_of_the_order(ids: list[str], share: float, weight: str) -> None:
    given, other = files(), dict(zip(DOCUMENTS, ids, strict=True))
    runs = {name: run.with_columns(pl.col("doc_id").replace(other)) for name, run in given.runs.items()}
    given = replace(given, runs=runs, qrels=given.qrels.with_columns(pl.col("doc_id").replace(other)))
    kept = int(share * len(ids))
    found = named(replace(given, documents=pl.Series(ids[:kept])))["foreign-results"]
    assert found.weight == weight
    assert "the documents may be cut short" in found.reason and "whole file" in found.remedy
    draw = random.Random(2)
    for some in (draw.sample(ids, kept), ids[-kept:], [*ids[: kept - 9], *ids[-9:]]):
        found = named(replace(given, documents=pl.Series(some)))["foreign-results"]
        assert "cut short" not in found.reason
    # Where ids have no order, that of the documents that were judged shows it.
    mixed = draw.sample(ids, len(ids))
    found = named(replace(given, documents=pl.Series(mixed[:kept]), before=pl.Series(mixed)))["foreign-results"]
    assert "the documents may be cut short" in found.reason


def test_the_run_that_meets_the_judgments_has_the_right_ids() -> None:
    """Ids that begin with a small letter by nature, beside a run with all of them in small letters."""
    given = replace(files(), documents=None)
    mixed = pl.col("doc_id").str.replace("CACM-0(.)", "cacm-0${1}")
    runs = {name: run.with_columns(mixed) for name, run in given.runs.items()}
    runs["two"] = runs["two"].with_columns(pl.col("doc_id").str.to_uppercase())
    found = run_faults(replace(given, runs=runs, qrels=given.qrels.with_columns(mixed)))
    assert {fault.run for fault in found if fault.kind == "foreign-results"} == {"two"}


def test_scores_that_rise_contradict_or_are_all_the_same() -> None:
    given = files()
    reversed_ = named(with_run(given, lambda run: run.with_columns(-pl.col("score"))))["rising-scores"]
    assert reversed_.weight == "fault" and "distances" in reversed_.reason
    shuffled = named(with_run(given, lambda run: run.with_columns(pl.col("score").shuffle(3))))["rising-scores"]
    assert shuffled.weight == "fault" and "contradict" in shuffled.reason
    flat = with_run(given, lambda run: run.with_columns(pl.lit(1.0).alias("score")))
    assert named(flat)["constant-scores"].weight == "fault" and "rising-scores" not in named(flat)
    assert "constant-scores" not in named(replace(flat, by_rank=True))
    one = pl.when(pl.col("topic_id") == "q4").then(-pl.col("score")).otherwise("score").alias("score")
    some = named(with_run(given, lambda run: run.with_columns(one)))["rising-scores"]
    assert (some.weight, some.topics) == ("topics", {"q4"})


def test_short_lists_lacking_topics_and_topics_of_another_set() -> None:
    given = files()
    short = named(with_run(given, lambda run: run.filter(pl.col("rank") <= 4)))["short-lists"]
    assert short.weight == "doubt" and short.reason.startswith("one returns 4 results per topic")
    lacking = named(with_run(given, lambda run: run.filter(pl.col("topic_id") != "q7")))["lacking-topics"]
    assert (lacking.weight, lacking.topics) == ("doubt", {"q7"})
    padded = with_run(given, lambda run: run.with_columns(("t00" + pl.col("topic_id")).alias("topic_id")))
    assert named(padded)["other-topics"].weight == "fault"


def test_runs_that_are_the_same_or_do_not_read_the_query() -> None:
    given = files()
    same = replace(given, runs={"one": given.runs["one"], "two": given.runs["one"]})
    assert named(same)["identical-runs"].weight == "fault"
    fixed = with_run(given, lambda _: ranked(dict.fromkeys(TOPICS, DOCUMENTS[:20])))
    assert named(fixed)["fixed-list"].run == "one"


def test_rows_of_one_run_in_the_other_are_no_likeness_of_two_systems() -> None:
    given = files()

    def with_rows(topics: list[str], other: pl.DataFrame) -> dict[str, RunFault]:
        rows = pl.col("topic_id").is_in(topics)
        two = pl.concat([other.filter(~rows), given.runs["one"].filter(rows)])
        return named(replace(given, runs={**given.runs, "two": two}))

    some = list(TOPICS)[:5]
    found = with_rows(some, given.runs["two"])["shared-lists"]
    assert (found.weight, found.topics) == ("doubt", {*some}) and "5 of 12 topics" in found.reason
    assert "shared-lists" not in with_rows(some[:4], given.runs["two"])
    # Two systems of a kind: their other lists have the same documents, two of them exchanged.
    near = given.runs["one"].with_columns(pl.col("rank").replace({1: 2, 2: 1})).sort("topic_id", "rank")
    near = near.with_columns(score=100.0 - pl.col("rank"))
    assert "shared-lists" not in with_rows(some, near)


def test_copies_of_topics_and_topics_without_judgments() -> None:
    given = files()
    copied = replace(given, topics={**TOPICS, "q9": f" {TOPICS['q1'].upper()}", "q10": TOPICS["q1"]})
    assert named(copied)["copied-topics"].topics == {"q9", "q10"}
    without = replace(given, topics={**TOPICS, "q99": "never judged"})
    assert named(without)["unjudged-topics"].weight == "note"
    # Without texts, copies are topics with the same judgments and results.
    twice = replace(
        given, topics=None, qrels=again(given.qrels), runs={name: again(run) for name, run in given.runs.items()}
    )
    assert named(twice)["copied-topics"].topics == {"q30"}


def test_judgments_without_a_relevant_document() -> None:
    given = files()
    assert named(replace(given, qrels=given.qrels.with_columns(relevance=pl.lit(0))))["no-relevant"].weight == "fault"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), min_size=1), st.integers(1, 4), st.booleans())
def test_first_results_are_those_with_few_better_ones(rows: list[tuple[str, int]], depth: int, ordered: bool) -> None:
    rows = sorted(rows, key=lambda row: (row[0], -row[1])) if ordered else rows
    run = pl.DataFrame(rows, schema={"topic_id": pl.String, "score": pl.Float64}, orient="row")
    better = [sum(topic == other and score < above for other, above in rows) for topic, score in rows]
    assert among_first(run, depth).to_list() == [count < depth for count in better]


@given(st.lists(st.lists(st.sampled_from("wxyz"), unique=True), min_size=2, max_size=3), st.booleans())
def test_candidates_are_shared_where_all_runs_rank_the_same_ones(lists: list[list[str]], second: bool) -> None:
    topics = {"1": lists, "2": [["w", "x"]] * len(lists)} if second else {"1": lists}
    runs = {
        str(number): pl.DataFrame(
            [(topic, doc) for topic, several in topics.items() for doc in several[number]],
            schema={"topic_id": pl.String, "doc_id": pl.String}, orient="row",
        )
        for number in range(len(lists))
    }  # fmt: skip
    there = [topic for topic, several in topics.items() if any(several)]
    agreed = [topic for topic in there if len({frozenset(docs) for docs in topics[topic]}) == 1]
    found = shared_candidates(runs)
    if there and len(agreed) == len(there):
        assert found is not None
        assert set(found.iter_rows()) == {(topic, doc) for topic in agreed for doc in topics[topic][0]}
    elif not agreed:
        assert found is None or not len(found)
