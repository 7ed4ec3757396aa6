"""`judge serve --pool`: the learner feeds people who judge; live and simulated judging choose the same documents."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hical_reference import generated
from truerank import judge, judging
from truerank.audits.pool import (
    Assistant,
    Features,
    LearnerOptions,
    build,
    load_rule,
    open_collection,
    trace,
)  # fmt: skip
from truerank.cli import main
from truerank.errors import InputError
from truerank.judging import Store
from truerank.judging.samples import Proposer, next_item

DOCUMENTS, QUERIES, GRADES = generated(count=300, topics=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs.jsonl").write_text(
        "".join(json.dumps({"doc_id": one.doc_id, "text": one.body}) + "\n" for one in DOCUMENTS)
    )
    (tmp_path / "topics.tsv").write_text("".join(f"{topic}\t{query}\n" for topic, query in QUERIES.items()))
    lines = [
        f"{topic} Q0 {doc} {rank} {9 - rank} run\n"
        for topic in QUERIES
        for rank, doc in enumerate((*list(GRADES[topic])[:3], "d0298", "d0299"), start=1)
    ]
    (tmp_path / "a.run").write_text("".join(lines))
    texts = {"topics": str(tmp_path / "topics.tsv"), "docs": str(tmp_path / "docs.jsonl")}
    build([tmp_path / "a.run"], depth=5, out=tmp_path / "pool", **texts)
    return tmp_path


def make_store(folder: Path, people: tuple[str, ...] = ("ann",), **more: int) -> Path:
    judging.new(
        folder / "judged", "relevance-documents", str(folder / "pool/batches/annotator.jsonl"),
        people=judging.People(people, order="given", **more),
    )  # fmt: skip
    return folder / "judged"


def label(store: Store, item: judging.Item, who: str, grade: int | None = None) -> str:
    """Judges an item as the generated collection has it; returns the document."""
    names = {choice.grade: choice.name for choice in store.scheme.choices}
    doc = item.texts[1].id
    store.record(item.item_id, who, "label", [names[GRADES[item.topic_id].get(doc, 0) if grade is None else grade]])
    return doc


def judge_all(store: Store, who: str, assistant: Proposer) -> dict[str, list[str]]:
    """Judges until nothing is proposed any more; the documents by topic in their order."""
    done: dict[str, list[str]] = {}
    while (item := next_item(store, who, assistant, batch=1 << 20)) is not None:
        done.setdefault(item.topic_id, []).append(label(store, item, who))
    return done


def test_live_judging_is_the_simulation(folder: Path) -> None:
    collection = open_collection(str(folder / "docs.jsonl"), folder / "work")
    with Store.open(make_store(folder)) as store:
        assistant = Assistant(collection, load_rule("budget:60"), seed=7)
        assert isinstance(assistant, Proposer)
        done = judge_all(store, "ann", assistant)
        outcomes = assistant.outcomes(store)
    assert [(one.pool, one.judged, one.ending) for one in outcomes] == [(5, 60, "stop")] * 3
    features = Features.of_documents(DOCUMENTS)
    for topic, query in QUERIES.items():
        simulated = trace(
            features, topic, query, done[topic][:5], lambda d, t=topic: GRADES[t].get(d, 0), length=60, seed=7
        )
        assert tuple(done[topic]) == simulated.doc_ids
        assert simulated.found[-1] > 3


def test_a_restart_a_changed_grade_and_a_skip(folder: Path) -> None:
    work = folder / "work"
    collection = open_collection(str(folder / "docs.jsonl"), work)
    with Store.open(make_store(folder)) as store:
        rule = load_rule("track")
        first = Assistant(collection, rule, options=LearnerOptions(batch=4, growing=False))
        for _ in range(15):
            item = next_item(store, "ann", first, batch=99)
            assert item is not None and item.data["stage"] == "pool"
            label(store, item, "ann")
        proposed = first.propose(store, "ann", 99)
        # Another process, which opens what the first one made, proposes the same; asked for less it gives less.
        again = Assistant(open_collection(str(folder / "docs.jsonl"), work), rule, options=first.options)
        assert again.propose(store, "ann", 99) == proposed and len(proposed) == 4
        assert {item.data["stage"] for item in proposed} == {"active"} and proposed[0].topic_id == "t0"
        assert again.propose(store, "ann", 1) != proposed[:1]
        # The grades are turned round: what was relevant is not any more.
        for item_id in store.assigned("ann")[:5]:
            label(store, store.item(item_id), "ann", grade=0)
        changed = Assistant(collection, rule, options=first.options)
        assert changed.propose(store, "ann", 99) != proposed
        # What is skipped is neither judged nor proposed again.
        item = next_item(store, "ann", changed, batch=99)
        assert item is not None
        store.record(item.item_id, "ann", "skip", reason="unreadable")
        assert changed.outcomes(store)[0].judged == 5
        seen = {one.item_id for one in changed.propose(store, "ann", 99)}
        assert item.item_id not in seen
        # A budget over all topics that is spent ends everything.
        spent = Assistant(collection, rule, budget=15)
        assert (
            spent.propose(store, "ann", 99) == []
            and len(Assistant(collection, rule, budget=16).propose(store, "ann", 99)) == 1
        )


def test_two_annotators_of_a_topic_get_different_documents(folder: Path) -> None:
    collection = open_collection(str(folder / "docs.jsonl"), folder / "work")
    with Store.open(make_store(folder, ("ann", "bob"), overlap=15)) as store:
        assistant = Assistant(collection, load_rule("budget:30"), options=LearnerOptions(batch=3, growing=False))
        for item_id in store.assigned("ann"):
            label(store, store.item(item_id), "ann")
        # The pool is judged once bob, or anybody, has said something of each of its documents.
        ann, bob = (assistant.propose(store, who, 99) for who in ("ann", "bob"))
        assert len(ann) == len(bob) == 3
        assert not {item.item_id for item in ann} & {item.item_id for item in bob}
        store.add_annotator("carl")
        assert assistant.propose(store, "carl", 99) == []


def test_the_pages_and_what_is_refused(folder: Path) -> None:
    pytest.importorskip("starlette", reason="the extra [web] is not installed: judging pages are not tried")
    from judging_web_sample import Browser

    store, docs = make_store(folder), str(folder / "docs.jsonl")
    with running(store, docs, stopping="budget:12", port=0) as desk:
        for item_id in desk.store.assigned("ann"):
            label(desk.store, desk.store.item(item_id), "ann")
        ann = Browser(desk.addresses[0]).enter("ann")
        assert ann.at == "/judge/16" and "Item 16 of 16" in ann.text
        ann.label("1")
        assert ann.at.startswith("/judge/17") and "Item 17 of 18" in ann.text
        ann.close()
    (folder / "other.jsonl").write_text('{"doc_id": "x", "text": "another collection, two words"}\n')
    judging.new(
        folder / "pairs", "leak", [judging.Item("i", "t", "title", texts=(judging.Text("query", "q"),))]
    )  # fmt: skip
    for arguments, message in (
        ({"docs": str(folder / "other.jsonl")}, "made from another collection"),
        ({"store": folder / "pairs"}, "does not grade documents"),
        ({"store": folder / "none"}, "none"),
        ({"stopping": "no-rule"}, "no stopping rule"),
        ({"budget": 0}, "budget: must be at least 1, got 0"),
        ({"docs": ""}, "pool: no collection to propose documents from"),
        ({"pool": False}, "docs: a collection that nothing is proposed from"),
    ):
        with pytest.raises(InputError) as raised:
            judge.serve(**{"store": store, "pool": True, "docs": docs, "port": 0, **arguments})
        assert message in str(raised.value)
    with pytest.raises(SystemExit) as ended:
        main(["judge", "serve", str(folder / "pairs"), "--pool", "--docs", docs])
    assert ended.value.code == 2


@contextlib.contextmanager
def running(store: Path, docs: str, **options: object) -> Iterator[judging.web.Desk]:
    """The pages on a free port, in this process."""
    desk = judge.serve(store, pool=True, docs=docs, no_tokens=True, **options)  # type: ignore[arg-type]
    thread = threading.Thread(target=desk.run)
    thread.start()
    try:
        yield desk
    finally:
        desk.stop()
        thread.join(timeout=20)
