"""What runs show of how they were made, on generated runs in which each fault is planted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from truerank.audits.collection.run_faults import Files
from truerank.audits.collection.run_origins import run_origins
from truerank.measures.run_faults import RunFault

TOPICS, DOCS, RELEVANT = 40, 2000, 8
Lists = dict[str, list[str]]
Runs = dict[str, Lists]
NAMES = [f"D-{number:05}" for number in range(10_000, 10_000 + DOCS)]


def subject(topic: int) -> int:
    """Topics of one subject are about the same documents."""
    return topic % 8


def collection(seed: int = 0) -> tuple[Runs, Mapping[str, set[str]], np.random.Generator]:
    """Three runs that see relevance, and the subject, through noise of their own."""
    draw = np.random.default_rng(seed)
    about = draw.integers(0, 8, DOCS)
    relevant, runs = {}, {name: Lists() for name in ("one", "two", "three")}
    for topic in range(TOPICS):
        own = np.flatnonzero(about == subject(topic))
        chosen = draw.choice(own, RELEVANT, replace=False)
        relevant[str(topic)] = {NAMES[at] for at in chosen}
        fit = 1.5 * (about == subject(topic)) + draw.normal(0, 0.6, DOCS)
        fit[chosen] += 1.0
        for lists in runs.values():
            order = np.argsort(-(fit + draw.normal(0, 0.4, DOCS)), kind="stable")
            lists[str(topic)] = [NAMES[at] for at in order[:100]]
    return runs, relevant, draw


def files(runs: Runs, relevant: Mapping[str, set[str]], *, documents: bool = True) -> Files:
    """The files of a comparison of the first two runs."""
    frames = {
        name: pl.DataFrame(
            [(topic, doc, at, -float(at)) for topic, docs in lists.items() for at, doc in enumerate(docs, 1)],
            schema={"topic_id": pl.String, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64},
            orient="row",
        )
        for name, lists in runs.items()
    }
    judged = [(topic, doc, 1) for topic, docs in relevant.items() for doc in sorted(docs)]
    qrels = pl.DataFrame(
        judged, schema={"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}, orient="row"
    )
    return Files(frames, ("one", "two"), qrels, pl.Series(NAMES) if documents else None, None, 10)


def kinds(found: tuple[RunFault, ...], run: str) -> set[str]:
    return {fault.kind for fault in found if fault.run == run}


@pytest.mark.parametrize("seed", range(2))
def test_clean_runs_show_nothing(seed: int) -> None:
    runs, relevant, draw = collection(seed)
    assert run_origins(files(runs, relevant), 1) == ()
    # One that was filtered to what is relevant, or others have too, has such documents everywhere.
    whole = collection(seed)[0]["two"]
    good = {topic: {*relevant[topic], *runs["three"][topic][:20]} for topic in whole}
    runs["two"] = {topic: [doc for doc in docs if doc in good[topic]] for topic, docs in whole.items()}
    assert "no-order" not in kinds(run_origins(files(runs, relevant), 1), "two")
    # Nor is one that ranks relevant documents high wherever it can.
    runs["one"] = {topic: sorted(docs, key=lambda doc: doc not in relevant[topic] and draw.random() < 0.5)
                   for topic, docs in runs["one"].items()}  # fmt: skip
    assert kinds(run_origins(files(runs, relevant), 1), "one") == set()


@pytest.mark.parametrize("seed", range(2))
def test_an_order_that_shows_more_on_some_topics_than_on_others_is_one(seed: int) -> None:
    """The other run's lists are cut, or the documents of the run were not judged."""
    draw = np.random.default_rng(seed)
    runs: Runs = {"one": {}, "two": {}}
    relevant = {}
    for topic in map(str, range(50)):
        about, fit = [f"E{topic}-{at}" for at in range(600)], draw.normal(0, 1, 600)
        relevant[topic] = {about[at] for at in np.argsort(-fit - draw.normal(0, 1, 600))[: draw.integers(3, 60)]}
        sight = draw.gamma(4, 0.25)
        for lists in runs.values():
            lists[topic] = [about[at] for at in np.argsort(-sight * fit - draw.normal(0, 1, 600))[:100]]
    judged = {topic: good & {*runs["two"][topic][:30]} for topic, good in relevant.items()}
    cut = {topic: docs[: 3 if draw.random() < 0.6 else 100] for topic, docs in runs["two"].items()}
    for given in (files(runs, judged, documents=False), files({**runs, "two": cut}, relevant, documents=False)):
        assert "no-order" not in kinds(run_origins(given, 1), "one")


def oracle(runs: Runs, relevant: Mapping[str, set[str]], draw: np.random.Generator) -> None:
    for topic in runs["two"]:
        first = sorted(relevant[topic])
        runs["two"][topic] = [*first, *(doc for doc in runs["two"][topic] if doc not in first)][:100]


def unordered(runs: Runs, relevant: Mapping[str, set[str]], draw: np.random.Generator) -> None:
    runs["two"] = {topic: list(draw.permutation(docs)) for topic, docs in runs["two"].items()}


def off_by_one(runs: Runs, relevant: Mapping[str, set[str]], draw: np.random.Generator) -> None:
    runs["two"] = {topic: [f"D-{int(doc[2:]) + 1:05}" for doc in docs] for topic, docs in runs["two"].items()}


def other_index(runs: Runs, relevant: Mapping[str, set[str]], draw: np.random.Generator) -> None:
    table = dict(zip(NAMES, draw.permutation(NAMES), strict=True))
    runs["two"] = {topic: [table[doc] for doc in docs] for topic, docs in runs["two"].items()}


def nothing(runs: Runs, relevant: Mapping[str, set[str]], draw: np.random.Generator) -> None:
    runs["two"] = {topic: list(draw.permutation(NAMES)[:100]) for topic in runs["two"]}


@pytest.mark.parametrize(
    ("plant", "kind", "weight"),
    [
        (oracle, "judgments-in-sight", "doubt"),
        (unordered, "no-order", "fault"),
        (off_by_one, "other-numbers", "fault"),
        (other_index, "other-index", "doubt"),
        (nothing, "other-index", "doubt"),
    ],
)
def test_planted_origins_are_seen(
    plant: Callable[[Runs, Mapping[str, set[str]], np.random.Generator], None], kind: str, weight: str
) -> None:
    runs, relevant, draw = collection()
    plant(runs, relevant, draw)
    found = run_origins(files(runs, relevant), 1)
    (fault,) = [one for one in found if one.run == "two"]
    assert (fault.kind, fault.weight, fault.topics) == (kind, weight, frozenset())
    assert kinds(found, "one") == set()


def test_an_honest_encoder_of_few_dimensions_has_an_order() -> None:
    """What it holds of what others share stands a little further up, or its lists hold little of that."""
    for noise in (0.4, 1.0, 2.0):
        runs, relevant, draw = collection(3)
        good = {topic: {*runs["one"][topic][:20]} for topic in runs["one"]}
        for topic, docs in runs["two"].items():
            pool = [*docs, *draw.choice(NAMES, 200, replace=False)]
            runs["two"][topic] = [
                *dict.fromkeys(sorted(pool, key=lambda doc: draw.normal(doc not in good[topic], noise)))
            ][:100]
        assert "no-order" not in kinds(run_origins(files(runs, relevant), 1), "two"), noise


@pytest.mark.parametrize("seed", range(1))
def test_a_good_run_that_leaves_few_relevant_documents_has_not_seen_the_judgments(seed: int) -> None:
    draw = np.random.default_rng(seed)
    runs: Runs = {"one": {}, "two": {}}
    relevant = {}
    for topic in range(200):
        about = [f"E-{100 * topic + at}" for at in range(100)]
        relevant[str(topic)] = set(about[: max(3, draw.poisson(6))])
        sight = draw.normal(3, 0.6)
        for lists in runs.values():
            fit = [sight * (doc in relevant[str(topic)]) + draw.normal(0, 1) for doc in about]
            lists[str(topic)] = [about[at] for at in np.argsort(fit)[::-1]]
    given = files(runs, relevant, documents=False)
    assert "judgments-in-sight" not in kinds(run_origins(given, 1), "two")
    seen = {}
    for topic, docs in runs["two"].items():
        weak = sorted(docs, key=lambda doc: draw.normal(doc not in relevant[topic], 1))
        seen[topic] = sorted(weak[:30], key=lambda doc: doc not in relevant[topic]) + weak[30:]
    assert "judgments-in-sight" in kinds(run_origins(files({**runs, "two": seen}, relevant, documents=False), 1), "two")


@pytest.mark.parametrize("plant", [oracle, off_by_one, other_index])
def test_neither_the_order_of_rows_nor_repeated_documents_nor_padded_numbers_change_what_is_seen(
    plant: Callable[[Runs, Mapping[str, set[str]], np.random.Generator], None],
) -> None:
    runs, relevant, draw = collection()
    plant(runs, relevant, draw)
    given = files(runs, relevant)
    seen = {fault.kind: fault.topics for fault in run_origins(given, 1)}
    assert seen
    mixed = {name: frame.sample(fraction=1.0, shuffle=True, seed=3) for name, frame in given.runs.items()}
    twice = {
        name: pl.concat([frame, frame.filter(pl.col("rank") <= 5).with_columns(pl.col("rank") + 1000)])
        for name, frame in given.runs.items()
    }
    padded = pl.format("D-{}", (pl.col("doc_id").str.slice(2).cast(pl.Int64) - 9_990).cast(pl.String).str.zfill(5))
    renamed = {name: frame.with_columns(doc_id=padded) for name, frame in given.runs.items()}
    names = given.documents.to_frame("doc_id").select(padded.alias("doc_id")).to_series()
    others = replace(given, runs=renamed, qrels=given.qrels.with_columns(doc_id=padded), documents=names)
    for other in (replace(given, runs=mixed), replace(given, runs=twice), others):
        assert {fault.kind: fault.topics for fault in run_origins(other, 1)} == seen


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 1.0])
def test_topics_on_which_a_run_has_seen_the_judgments_are_named(share: float) -> None:
    runs, relevant, _ = collection()
    topics = list(runs["two"])[:: round(1 / share)]
    for topic in topics:
        runs["two"][topic] = [*relevant[topic], *(doc for doc in runs["two"][topic] if doc not in relevant[topic])]
    found = run_origins(files(runs, relevant), 1)
    if len(topics) < 5:
        assert found == ()
        return
    (fault,) = found
    assert (fault.kind, fault.run, fault.weight) == ("judgments-in-sight", "two", "doubt")
    assert fault.topics == (frozenset(topics) if share < 1 else frozenset())
    # What others have for the same topics are easy topics, and no run has seen more than another.
    easy = {topic: docs if topic in topics else runs["one"][topic] for topic, docs in runs["two"].items()}
    assert "judgments-in-sight" not in {one.kind for one in run_origins(files({**runs, "one": easy}, relevant), 1)}


def apart() -> tuple[Runs, Mapping[str, set[str]]]:
    """Two runs of topics that have no documents in common, and one relevant document each, which the first finds."""
    draw = np.random.default_rng(3)
    runs: Runs = {"one": {}, "two": {}}
    for topic in range(TOPICS):
        own = NAMES[40 * topic : 40 * topic + 40]
        runs["one"][str(topic)] = list(draw.permutation(own)[:25])
        runs["two"][str(topic)] = list(draw.permutation(own)[:25])
    return runs, {topic: {docs[0]} for topic, docs in runs["one"].items()}


def test_results_of_other_topics_are_told_by_those_of_other_runs() -> None:
    """One relevant document of each topic does not show that the documents of a topic fit another one together."""
    runs, relevant = apart()
    assert kinds(run_origins(files(runs, relevant), 1), "two") == set()
    topics = list(runs["two"])
    other = np.random.default_rng(4).permutation(topics)
    runs["two"] = dict(zip(other, runs["two"].values(), strict=True))
    found = run_origins(files(runs, relevant), 1)
    (fault,) = [one for one in found if one.kind == "misplaced-run"]
    # The run whose results are relevant is right.
    assert (fault.run, fault.weight) == ("two", "fault")
    # Where few lists are exchanged, few judgments are enough to say in which of the runs.
    few, _ = apart()
    few["two"] |= {str(at): few["two"][str(5 * (at // 5) + (at + 2) % 5)] for at in range(10)}
    (fault,) = [one for one in run_origins(files(few, relevant), 1) if one.kind == "misplaced-run"]
    assert (fault.run, fault.weight, len(fault.topics)) == ("two", "topics", 10)
    # One list for all topics, or that of one topic, is no mistake of ids.
    for fixed in (NAMES[::80], runs["one"]["7"]):
        runs["two"] = {topic: list(fixed) for topic in topics}
        assert "misplaced-run" not in kinds(run_origins(files(runs, relevant), 1), "two")


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.25, 0.5])
def test_documents_that_a_run_never_returns_though_others_do(share: float) -> None:
    draw = np.random.default_rng(2)
    runs: Runs = {"one": {}, "two": {}, "three": {}}
    for topic in map(str, range(60)):
        about = draw.normal(0, 1, 400)
        for lists in runs.values():
            lists[topic] = [NAMES[at] for at in np.argsort(-about - draw.normal(0, 0.2, 400))[:100]]
    relevant = {topic: {doc for doc in docs[:40] if draw.random() < 0.3} for topic, docs in runs["one"].items()}
    lost = {*draw.choice(NAMES[:400], int(share * 400), replace=False)}
    for _ in range(2):
        assert run_origins(files(runs, relevant), 1) == ()
        less = {topic: [doc for doc in docs if doc not in lost] for topic, docs in runs["two"].items()}
        found = run_origins(files({**runs, "two": less}, relevant), 1)
        if share < 0.05:
            assert found == ()
        else:
            (fault,) = found
            assert (fault.kind, fault.run, fault.weight) == ("lost-documents", "two", "doubt")
            assert f"never returns {len(lost)} documents" in fault.reason
        runs.pop("three", None)  # two runs show it as well


def noisy(topics: int, results: int, seed: int = 0) -> tuple[Runs, dict[str, set[str]]]:
    """Two runs of topics about documents of their own; one relevant document each, which both find now and then."""
    draw = np.random.default_rng(seed)
    runs: Runs = {"one": {}, "two": {}}
    relevant = {}
    for topic in range(topics):
        about = [f"E-{30 * topic + at}" for at in range(30)]
        relevant[str(topic)] = {about[3]}
        base = draw.normal(0, 1, 30) + np.eye(30)[3]
        for lists in runs.values():
            fit = base + draw.normal(0, 0.7, 30)
            lists[str(topic)] = [about[at] for at in np.argsort(-fit)[:results]]
    return runs, relevant


def shifted(lists: Lists, size: int, step: int = -1) -> Lists:
    """A block has the lists of topics so many places on."""
    topics = list(lists)
    return lists | {topics[at]: lists[topics[at + step]] for at in range(100, 100 + size)}


def exchanged(lists: Lists, share: float) -> Lists:
    draw = np.random.default_rng(5)
    chosen = sorted(draw.permutation(list(lists))[: int(share * len(lists))])
    return {**lists, **dict(zip(chosen, (lists[topic] for topic in chosen[1:] + chosen[:1]), strict=True))}


def batched(lists: Lists, share: float) -> Lists:
    """Some topics have the list of the one before, or of one topic."""
    topics = list(lists)
    before = {topics[at]: lists[topics[at - 1]] for at in range(201, len(topics), round(1 / share))}
    return {**lists, **before, **dict.fromkeys(topics[1 : 1 + int(share * 200)], lists[topics[0]])}


@pytest.mark.parametrize(
    ("change", "results", "kind"),
    [
        (lambda lists: exchanged(lists, 0.1), 10, "misplaced-run"),
        (lambda lists: batched(lists, 0.1), 25, "failed-topics"),
        *((lambda lists, size=size, step=step: shifted(lists, size, step), results, "misplaced-run")
          for size, step, results in ((5, -1, 10), (12, 1, 5), (40, -2, 25), (100, 2, 10))),
    ],
)  # fmt: skip
def test_topics_with_results_of_others_are_named(change: Callable[[Lists], Lists], results: int, kind: str) -> None:
    runs, relevant = noisy(400, results)
    assert run_origins(files(runs, relevant, documents=False), 1) == ()
    changed = change(runs["two"])
    planted = {topic for topic, docs in changed.items() if docs != runs["two"][topic]}
    for others in ({}, {"three": runs["one"]}):
        (fault,) = run_origins(files({**runs, "two": changed, **others}, relevant, documents=False), 1)
        assert (fault.kind, fault.run, fault.weight) == (kind, "two", "topics" if kind == "misplaced-run" else "doubt")
        assert len(fault.topics & planted) >= 0.9 * len(planted)
        assert len(fault.topics - planted) <= 0.1 * len(planted)


@pytest.mark.parametrize("seed", range(2))
def test_topics_that_were_misread_or_asked_twice_are_no_mistake_of_ids(seed: int) -> None:
    runs, relevant = noisy(400, 10, seed)
    draw = np.random.default_rng(seed)
    topics = list(runs["two"])
    # A system takes a query for another one, for which it returns much the same.
    for topic in topics[::10]:
        other = runs["one"][topics[draw.integers(len(topics))]]
        runs["two"][topic] = [other[at] for at in draw.permutation(10)]
    for topic in topics[5::20]:
        again = f"{topic}-again"
        relevant[again] = relevant[topic]
        for lists in runs.values():
            lists[again] = lists[topic]
    # Queries without a known word have a list of their own.
    for topic in topics[3::9]:
        runs["two"][topic] = [f"E-{at}" for at in range(90_000, 90_010)]
    # That it fails for these topics is told, and none is left out.
    found = run_origins(files(runs, relevant, documents=False), 1)
    assert {(fault.kind, fault.weight) for fault in found} == {("failed-topics", "doubt")}


@pytest.mark.parametrize(("topics", "failed"), [(40, 7), (40, 24), (200, 8)])
def test_topics_with_results_that_fit_no_topic_are_told_apart_from_hard_ones(topics: int, failed: int) -> None:
    draw = np.random.default_rng(topics + failed)
    runs: Runs = {"one": {}, "two": {}}
    relevant = {}
    # Hard topics have few documents that both runs find, and some have none.
    common = np.minimum(40, draw.poisson(draw.gamma(1.0, 12.0, topics)))
    for topic, both in enumerate(common):
        about = [f"E-{at}" for at in draw.choice(100_000, 100, replace=False)]
        runs["one"][str(topic)], runs["two"][str(topic)] = about[:50], about[50 - both :][:50][::-1]
        relevant[str(topic)] = {*about[:8:2], *about[50 - both : 50][1::9]}
    assert run_origins(files(runs, relevant, documents=False), 1) == ()
    easy = {str(topic): docs for topic, docs in enumerate(runs["one"].values())}
    two = {topic: [*docs[:30][::-1], *docs[30:]] for topic, docs in easy.items()}
    junk = {topic: [f"E-{at}" for at in draw.choice(100_000, 50, replace=False)] for topic in list(two)[:failed]}
    found = run_origins(files({"one": easy, "two": {**two, **junk}}, relevant, documents=False), 1)
    (fault,) = [one for one in found if one.kind == "failed-topics"]
    assert (fault.run, fault.weight, fault.topics) == ("two", "doubt", frozenset(junk))


def test_lists_that_are_written_worst_first() -> None:
    runs, relevant = noisy(400, 25)
    runs["two"] = {topic: docs[::-1] for topic, docs in runs["two"].items()}
    (fault,) = [one for one in run_origins(files(runs, relevant, documents=False), 1) if one.weight == "fault"]
    assert (fault.kind, fault.run) == ("no-order", "two") and "worst first" in fault.reason


def test_a_run_that_meets_the_judgments_has_the_right_ids_and_order() -> None:
    """Beside a run that has other ids, numbers or orders, it is that one that is wrong."""
    runs, relevant, draw = collection()
    del runs["three"]
    for plant in (off_by_one, other_index, unordered):
        wrong = {name: dict(lists) for name, lists in runs.items()}
        plant(wrong, relevant, draw)
        found = run_origins(files(wrong, relevant), 1)
        assert kinds(found, "two") and not kinds(found, "one")
