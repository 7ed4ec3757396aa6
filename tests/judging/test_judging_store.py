"""The store: events are only added, acknowledged ones survive, nothing is doubled, strangers' files are refused."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import truerank
from judging_example import Queue
from truerank.errors import InputError
from truerank.judging import Annotator, Draft, Event, Item, JudgingProgress, Standing, Store, Text, load_scheme
from truerank.judging.samples import Proposer, next_item

SAME, OTHER, FEWER = "Title-Identical", "Different Topic", "Title-Generalization"


def items(count: int = 6) -> list[Item]:
    return [
        Item(f"i{n}", str(n // 2), f"title {n // 2}", texts=(Text("query", f"query {n}", f"q{n}"),), score=n / 10)
        for n in range(count)
    ]


def made(folder: Path, count: int = 6, **more: object) -> Store:
    ids = [item.item_id for item in items(count)]
    work = {"ann": ids, "bob": ids[::-1]}
    return Store.create(folder / "a.judged", load_scheme("leakage"), items(count), work, **more)  # type: ignore[arg-type]


def test_what_was_put_in_comes_out(tmp_path: Path) -> None:
    model = Annotator("gpt", "model", "gpt-x, temperature 0")
    with made(tmp_path, seed=7, plan={"sample": ["all"]}, annotators=[model]) as store:
        assert list(store.items()) == items()
        assert store.item("i3") == items()[3]
        assert store.annotators() == (Annotator("ann"), Annotator("bob"), model)
        assert store.assigned("bob") == ("i5", "i4", "i3", "i2", "i1", "i0")
        assert store.assigned("gpt") == ()
    with Store.open(tmp_path / "a.judged") as again:
        assert (again.scheme, again.seed, again.plan) == (load_scheme("leakage"), 7, {"sample": ["all"]})
        assert list(again.items()) == items()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.judged"]


def test_labels_skips_and_undo(tmp_path: Path) -> None:
    with made(tmp_path) as store:
        first = store.record("i0", "ann", "label", ["title identical"], comment="why", seconds=2.5, token="t1")
        assert first == Event(1, first.at, "i0", "ann", "label", (SAME,), "why", "", 2.5, "t1")
        assert first.at.endswith("Z") and len(first.at) == 24
        store.record("i1", "ann", "skip", reason="unclear")
        assert store.progress("ann") == JudgingProgress(1, 1, 6)
        assert store.progress("ann").left == 4
        assert store.next_item("ann") == items()[2]
        store.record("i0", "ann", "label", [OTHER])
        assert [s.labels for s in store.standing("i0", "ann")] == [(OTHER,)]
        undo = store.undo("ann")
        assert undo is not None and (undo.kind, undo.item_id, undo.undoes) == ("undo", "i0", 3)
        assert [s.labels for s in store.standing("i0", "ann")] == [(SAME,)]
        assert store.undo("ann").undoes == 2  # type: ignore[union-attr]
        assert store.next_item("ann") == items()[1]
        assert store.undo("ann").undoes == 1  # type: ignore[union-attr]
        assert store.undo("ann") is None
        assert store.progress("ann") == JudgingProgress(0, 0, 6)
        assert [event.kind for event in store.events()] == ["label", "skip", "label", "undo", "undo", "undo"]
        assert list(store.events("i0", "bob")) == []


def test_a_clock_that_goes_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = iter(range(23, 0, -1))
    monkeypatch.setattr("truerank.judging.store._now", lambda: f"2026-01-01T{next(hours):02d}:00:00.000Z")
    test_labels_skips_and_undo(tmp_path)
    with Store.open(next(tmp_path.iterdir())) as store:
        times = [event.at for event in store.events()]
        assert times == sorted(times, reverse=True) and len(set(times)) == 6


def test_an_adjudication_stands_beside_the_label_of_the_same_person(tmp_path: Path) -> None:
    with made(tmp_path) as store:
        store.record("i0", "ann", "label", [SAME])
        store.record("i0", "bob", "label", [OTHER])
        assert store.disagreements()[0].adjudicated is None
        store.record("i0", "ann", "adjudicate", [OTHER])
        assert [(s.annotator, s.kind, s.labels) for s in store.standing()] == [
            ("ann", "label", (SAME,)), ("ann", "adjudicate", (OTHER,)), ("bob", "label", (OTHER,)),
        ]  # fmt: skip
        assert store.disagreements(resolved=False) == ()
        (settled,) = store.disagreements()
        assert settled.adjudicated is not None and settled.adjudicated.labels == (OTHER,)
        assert store.progress("ann") == JudgingProgress(1, 0, 6)
        store.undo("ann")
        assert len(store.disagreements(resolved=False)) == 1


def test_models_disagree_only_where_asked(tmp_path: Path) -> None:
    with made(tmp_path) as store:
        store.add_annotator("gpt", "model", "gpt-x")
        store.record("i0", "ann", "label", [SAME])
        store.record("i0", "gpt", "label", [OTHER])
        assert store.disagreements() == ()
        assert len(store.disagreements(roles=("person", "model"))) == 1
        with pytest.raises(InputError, match="a model does not adjudicate"):
            store.record("i0", "gpt", "adjudicate", [OTHER])
        with pytest.raises(InputError, match="'gpt' is there as model, not as person"):
            store.add_annotator("gpt")
        assert store.add_annotator("gpt", "model", "gpt-y").about == "gpt-y"


def test_a_repeated_token_adds_nothing(tmp_path: Path) -> None:
    with made(tmp_path) as store:
        first = store.record("i0", "ann", "label", [SAME], token="t")
        assert store.record("i1", "ann", "label", [OTHER], token="t") == first
        assert store.record("i0", "bob", "label", [SAME], token="t") != first
        undone = store.undo("ann", token="u")
        assert store.undo("ann", token="u") == undone
        assert store.record("i0", "ann", "label", [SAME], token="t") == first
        assert store.standing("i0", "ann") == ()
        assert len(list(store.events())) == 3


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"labels": ["Leak"]}, "the scheme has no label 'Leak'"),
        ({"labels": []}, "no label. choose one of"),
        ({"labels": [SAME, FEWER]}, "'Title-Identical' excludes 'Title-Generalization'"),
        ({"labels": [OTHER, SAME]}, "'Different Topic' excludes 'Title-Identical'"),
        ({"labels": ["Variant-Identical"]}, "no label of the group 'Against the title'"),
        ({"item_id": "nothing"}, "no item 'nothing'"),
        ({"annotator": "eve"}, "no annotator 'eve'. there are ann, bob"),
        ({"kind": "skip", "labels": []}, "a skip without a reason"),
        ({"kind": "skip", "reason": "x"}, "a skip with labels"),
        ({"kind": "undo"}, "an undo names no item"),
        ({"kind": "delete"}, "no event of the kind 'delete'"),
        ({"seconds": -1.0}, "-1.0 seconds"),
        ({"seconds": float("nan")}, "nan seconds"),
        ({"comment": "x" * 20_001}, "a comment of 20,001 characters"),
        ({"token": "x" * 201}, "no token. at most 200 visible"),
        ({"comment": "\ud83d"}, "a comment with halves of characters"),
    ],
)
def test_what_cannot_be_recorded_leaves_no_trace(tmp_path: Path, change: dict[str, object], fault: str) -> None:
    with made(tmp_path) as store:
        values: dict[str, object] = {"item_id": "i0", "annotator": "ann", "kind": "label", "labels": [SAME], **change}
        with pytest.raises(InputError) as raised:
            store.record(**values)  # type: ignore[arg-type]
        assert fault in str(raised.value)
        assert list(store.events()) == []


def test_a_history_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with made(tmp_path) as store:
        good = Draft("i0", "ann", "label", (SAME,), at="2021-01-01T00:00:00.000Z", token="x")
        with pytest.raises(InputError, match="no item"):
            store.record_history([good, Draft("nothing", "ann", "label", (SAME,))])
        assert list(store.events()) == []
        back = Draft("i0", "ann", "undo", at="2021-01-01T00:00:01.000Z", token="y")
        for _ in range(2):
            events = store.record_history([good, back], [0, -1])
            assert [(e.number, e.at[:4], e.undoes) for e in events] == [(1, "2021", None), (2, "2021", 1)]
        assert store.standing() == ()
        assert store.progress("ann").done == 0


def test_events_cannot_be_changed_behind_our_back(tmp_path: Path) -> None:
    with made(tmp_path) as store:
        store.record("i0", "ann", "label", [SAME])
    connection = sqlite3.connect(tmp_path / "a.judged")
    for statement in ("UPDATE events SET labels = '[]'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(statement)
    connection.close()


def test_a_store_is_never_overwritten(tmp_path: Path) -> None:
    made(tmp_path).close()
    before = (tmp_path / "a.judged").read_bytes()
    with pytest.raises(InputError, match="is there already"):
        made(tmp_path)
    assert (tmp_path / "a.judged").read_bytes() == before


@pytest.mark.parametrize(
    ("work", "fault"),
    [
        ({"ann": ["i0", "x"]}, "'ann' is to judge 'x', which is not an item"),
        ({"": ["i0"]}, "'' is not a name for an annotator"),
        ({"a\nb": ["i0"]}, "is not a name for an annotator"),
    ],
)
def test_a_store_that_cannot_be_made_leaves_no_file(tmp_path: Path, work: dict[str, list[str]], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        Store.create(tmp_path / "x.judged", load_scheme("leakage"), items(2), work)
    with pytest.raises(InputError, match="two items 'i0'"):
        Store.create(tmp_path / "x.judged", load_scheme("leakage"), [*items(1), *items(1)])
    with pytest.raises(InputError, match="nothing to judge"):
        Store.create(tmp_path / "x.judged", load_scheme("leakage"), [])
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_refused(tmp_path: Path) -> None:
    made(tmp_path).close()
    store = tmp_path / "a.judged"
    (tmp_path / "text").write_text("no store")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (a)").connection.close()
    for name, version in (("newer", 99), ("older", 1)):
        connection = sqlite3.connect(shutil.copy(store, tmp_path / name))
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
    broken = tmp_path / "broken"
    broken.write_bytes(store.read_bytes()[:100] + b"\xff" * 8000)
    for name, fault in [
        ("nothing", "no store there"),
        ("text", "is not a judging store"),
        ("other.db", "is not a judging store"),
        ("newer", "a store of version 99; this truerank knows 2. update truerank"),
        ("older", "a store of version 1; this truerank knows 2. export its labels with the truerank that made it"),
        ("broken", "the store is damaged"),
    ]:
        with pytest.raises(InputError) as raised:
            Store.open(tmp_path / name)
        assert fault in str(raised.value) and str(tmp_path / name) in str(raised.value)


def test_items_can_be_added_while_people_judge(tmp_path: Path) -> None:
    with made(tmp_path, 2) as store:
        more = items(5)
        queue = Queue(more)
        assert isinstance(queue, Proposer)
        seen = []
        while (item := next_item(store, "ann", queue, batch=2)) is not None:
            seen.append(item.item_id)
            store.record(item.item_id, "ann", "label", [SAME])
        assert seen == ["i0", "i1", "i2", "i3", "i4"]
        assert store.item_ids() == ("i0", "i1", "i2", "i3", "i4")
        assert store.assigned("bob") == ("i1", "i0")
        store.record("i4", "bob", "label", [OTHER])
        assert store.assign("bob", ["i4", "i0"]) == 1
        assert store.progress("bob") == JudgingProgress(1, 0, 3)
        with pytest.raises(InputError, match="another item 'i0' is there"):
            store.extend([Item("i0", "9")], "ann")
        with pytest.raises(InputError, match="no annotator 'eve'"):
            store.extend(more, "eve")


def test_many_threads_lose_and_double_nothing(tmp_path: Path) -> None:
    names = [f"a{n}" for n in range(8)]
    ids = [item.item_id for item in items(25)]
    with Store.create(tmp_path / "a", load_scheme("leakage"), items(25), dict.fromkeys(names, ids)) as store:
        acknowledged: list[Event] = []

        def work(name: str) -> None:
            while (item := store.next_item(name)) is not None:
                for _ in range(2):  # every request comes twice
                    event = store.record(item.item_id, name, "label", [SAME], token=item.item_id)
                acknowledged.append(event)

        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(acknowledged) == list(store.events())
        assert len(acknowledged) == 200
        assert all(store.progress(name) == JudgingProgress(25, 0, 25) for name in names)


def test_one_bad_request_does_not_spoil_those_that_share_its_flush(tmp_path: Path) -> None:
    with made(tmp_path) as store:
        held = threading.Event()

        def slow(connection: sqlite3.Connection) -> None:
            held.wait(10)

        def bad(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO meta VALUES ('stray', '', 0)")
            raise InputError("no")

        failed: list[Exception] = []

        def try_bad() -> None:
            try:
                store._writer.run(bad)
            except InputError as error:
                failed.append(error)

        threads = [threading.Thread(target=store._writer.run, args=(slow,))]
        threads += [threading.Thread(target=store.record, args=(f"i{n}", "ann", "label", [SAME])) for n in range(6)]
        threads.insert(3, threading.Thread(target=try_bad))
        for thread in threads:
            thread.start()
        held.set()
        for thread in threads:
            thread.join()
        assert [str(error) for error in failed] == ["no."]
        assert store.progress("ann").done == 6
        assert "stray" not in store.meta()


def _label_all(path: str, name: str) -> None:
    with Store.open(path) as store:
        while (item := store.next_item(name)) is not None:
            store.record(item.item_id, name, "label", [SAME])


def test_reading_while_others_write_needs_few_connections(tmp_path: Path) -> None:
    with made(tmp_path, 700) as store:
        for number, item in enumerate(store.items()):
            if number % 100 == 0:
                store.record(item.item_id, "ann", "label", [SAME])
        assert next(store.items()).item_id == "i0"
        threads = [threading.Thread(target=store.standing) for _ in range(20)]
        for thread in threads:
            thread.start()
            thread.join()
        assert len(store._reader.connections) <= 3
        assert store.progress("ann").done == 7


def test_many_processes(tmp_path: Path) -> None:
    made(tmp_path, 30).close()
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=_label_all, args=(str(tmp_path / "a.judged"), name)) for name in ("ann", "bob")]
    for process in running:
        process.start()
    for process in running:
        process.join()
        assert process.exitcode == 0
    with Store.open(tmp_path / "a.judged") as store:
        assert len(list(store.events())) == 60
        assert store.progress("ann") == store.progress("bob") == JudgingProgress(30, 0, 30)


_CHILD = """
import sys
from truerank.judging import Store
store = Store.open(sys.argv[1])
for number in range(100000):
    event = store.record(f"i{number % 6}", "ann", "label", ["Title-Identical"], token=str(number))
    print(event.number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    made(tmp_path).close()
    path = tmp_path / "a.judged"
    child = subprocess.Popen([sys.executable, "-c", _CHILD, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = [int(child.stdout.readline()) for _ in range(40)]
    os.kill(child.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in child.stdout.read().split()]
    child.wait()
    with Store.open(path) as store:
        kept = [event.number for event in store.events()]
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) <= len(acknowledged) + 1
        assert len({event.token for event in store.events()}) == len(kept)
        assert store.record("i0", "ann", "label", [OTHER], token="0").labels == (SAME,)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["label", "skip", "adjudicate", "undo"]),
        st.integers(0, 3),
        st.sampled_from([SAME, OTHER, FEWER]),
    ),
    max_size=25,
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_what_stands_is_what_a_simple_model_says(tmp_path_factory: pytest.TempPathFactory, steps: list) -> None:
    stack: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {"ann": [], "bob": []}
    with made(tmp_path_factory.mktemp("store"), 4) as store:
        for name, kind, number, label in steps:
            if kind == "undo":
                assert (store.undo(name) is None) == (not stack[name])
                stack[name] = stack[name][:-1]
                continue
            labels = () if kind == "skip" else (label,)
            store.record(f"i{number}", name, kind, labels, reason="r" if kind == "skip" else "")
            stack[name].append((f"i{number}", kind, labels))
        expected = {}
        for name, said in stack.items():
            for item_id, kind, labels in said:
                expected[item_id, name, kind == "adjudicate"] = (kind, labels)
        found = {(s.item_id, s.annotator, s.kind == "adjudicate"): (s.kind, s.labels) for s in store.standing()}
        assert found == expected
        for name in stack:
            first = [kind for (_, who, settled), (kind, _) in expected.items() if who == name and not settled]
            assert store.progress(name) == JudgingProgress(first.count("label"), first.count("skip"), 4)
            done = {item_id for item_id, who, settled in expected if who == name and not settled}
            left = [item_id for item_id in store.assigned(name) if item_id not in done]
            following = store.next_item(name)
            assert (following.item_id if following else None) == (left[0] if left else None)
        assert all(isinstance(s, Standing) for s in store.standing())


def _damaged_copies(store: Path, folder: Path) -> Iterator[Path]:
    """Copies of a store with some bytes of each page changed."""
    content = store.read_bytes()
    for seed, start in enumerate(range(0, len(content), 8192)):
        draw = random.Random(seed)
        changed = bytearray(content)
        for _ in range(40):
            changed[min(start + draw.randrange(8192), len(content) - 1)] ^= 1 << draw.randrange(8)
        place = folder / f"damaged-{seed}"
        place.write_bytes(changed)
        yield place


def test_a_damaged_store_is_refused_and_what_can_be_read_is_recovered(tmp_path: Path) -> None:
    with made(tmp_path, 40) as store:
        for item in items(30):
            store.record(item.item_id, "ann", "label", [SAME], comment="said")
        store.undo("ann")
    store_file = tmp_path / "a.judged"
    truerank.judge.export(store_file, tmp_path / "whole.jsonl")
    found = truerank.judge.export(store_file, tmp_path / "all.jsonl", recover=True)
    assert found.lost == 0
    assert (tmp_path / "all.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    recovered = refused = 0
    for place in _damaged_copies(store_file, tmp_path):
        try:
            with Store.open(place) as opened:
                list(opened.items()), list(opened.events()), opened.standing()
        except InputError as error:
            refused += 1
            assert str(place) in str(error)
        with contextlib.suppress(InputError):
            saved = truerank.judge.export(place, tmp_path / "saved.jsonl", recover=True)
            recovered += saved.written > 10 and saved.lost is not None
    assert refused > 5 and recovered > 5
