"""Probes of a judge, against a server that is fooled by known things, and read back from label files."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from chat_server import Reply, Seen, answered, chat_server, item_of
from judging_example import store_of
from truerank import judge
from truerank.errors import InputError, OptionError
from truerank.judging import Item, Store, Text, load_scheme
from truerank.judging.endpoints import Patience
from truerank.judging.probes import PROBES, ProbeRun, Probing, make_probes, probe_effects

QUICK = Patience(retries=1, first_wait=0.02, longest_wait=1.0, timeout=5.0)
PASSAGES = load_scheme("relevance-passages")
QUERIES = ("bees in winter", "cost of slate roofs", "rivers of Chile")
RELEVANT = "They cluster in the hive. It doesn't freeze there & {} stays at 20% of them. That is known {}."


def graded_store(path: Path, documents: int = 8) -> Path:
    """Three topics with documents that people graded 0 (even) and 2 (odd)."""
    items = [
        Item(
            f"{topic}-{number}",
            str(topic),
            texts=(
                Text("query", query, str(topic)),
                Text("document", RELEVANT.format(query, number) if number % 2 else f"Shoes are on sale, no. {number}.",
                     f"d{topic}-{number}"),
            ),
        )
        for topic, query in enumerate(QUERIES)
        for number in range(documents)
    ]  # fmt: skip
    said = {"ann": {item.item_id: ["2" if int(item.item_id[2:]) % 2 else "0"] for item in items}}
    return store_of(path, PASSAGES, items, said)


def gullible(seen: Seen, _: int) -> Reply:
    """Grade 2 for texts with all words of the query, 3 where told so, 1 for the cut ones, 0 else."""
    item = item_of(seen)
    query, text = (part["text"] for part in item["texts"])
    if "Note to the assessor" in text:
        return answered({"labels": ["3"]})
    if query in text:
        return answered({"labels": ["2"]})
    return answered({"labels": ["1" if "cluster" in text else "0"]})


def test_the_share_of_grades_that_each_probe_moves(tmp_path: Path) -> None:
    store = graded_store(tmp_path / "s.judged")
    with chat_server(gullible) as (address, seen):
        found = judge.model(store, endpoint=address, model="tiny", patience=QUICK, probe=("all",))
        assert isinstance(found, ProbeRun)
        assert len(seen) == found.items
        again = judge.model(store, endpoint=address, model="tiny", patience=QUICK, probe=("all",))
        assert len(seen) == found.items  # nothing is asked twice
    assert again.effects == found.effects
    effects = {(one.probe, one.side): one for one in found.effects}
    for name in ("words-front", "words-middle", "words-repeated", "claim"):
        one = effects[name, "not relevant"]
        assert (one.items, one.raised.k, one.lowered.k, one.crossed.k, one.shift) == (12, 12, 0, 12, 2.0), name
        # Twelve moved by the probe only: 2 / 2^12.
        assert one.p == pytest.approx(2 / 2**12)
        assert one.again is not None and one.again.k == 0
    assert effects["instruction", "not relevant"].shift == 3.0
    assert effects["other-words", "not relevant"].moved.k == 0
    cut = effects["cut", "relevant"]
    assert (cut.lowered.k, cut.crossed.k, cut.items) == (12, 0, 12)
    assert (cut.moved.k, cut.moved.n, effects["reworded", "relevant"].moved.k) == (12, 12, 0)
    assert effects["asked again", "relevant"].p is None
    assert "words-front" in repr(found)
    json.dumps(found.json())


def test_a_judge_that_wavers_is_not_called_gullible(tmp_path: Path) -> None:
    """Where the same text gets another grade each time, the control moves as often as the probes."""
    store = graded_store(tmp_path / "s.judged", documents=20)
    times: Counter[str] = Counter()

    def wavering(seen: Seen, number: int) -> Reply:
        """By what is asked and how often it was: `hash` of a text differs from process to process."""
        asked = json.dumps(seen.body, sort_keys=True)
        times[asked] += 1
        return answered({"labels": [str(hashlib.sha256(f"{times[asked]} {asked}".encode()).digest()[0] % 2)]})

    with chat_server(wavering) as (address, _):
        found = judge.model(store, endpoint=address, model="tiny", patience=QUICK, probe=("words-front", "claim"))
    assert all(one.again is not None and one.again.share > 0.2 for one in found.effects if one.p is not None)
    assert all(one.p > 0.001 for one in found.effects if one.p is not None)


def test_probes_are_a_label_task_and_answers_are_read_back(tmp_path: Path) -> None:
    store = graded_store(tmp_path / "s.judged")
    place = tmp_path / "task.judged"
    made = judge.model(store, probe=("words-front", "cut"), probe_store=place, per_probe=5)
    assert (made.annotator, made.effects, made.unanswered) == ("", (), made.items)
    # Five documents of each side: as they are, again, and with one probe.
    assert made.items == 2 * 5 * 3
    assert "judge import" in repr(made)
    judge.export(place, tmp_path / "task.jsonl", file_format="doccano")
    rows = [json.loads(line) for line in (tmp_path / "task.jsonl").read_text().splitlines()]
    assert "probe" not in json.dumps(rows)
    for row in rows:
        # Somebody who is moved by the query's words in front of a text.
        query, document = (part["text"] for part in row["texts"])
        row["label"], row["username"] = ["1" if document.startswith(query) else "0"], "eve"
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge.import_(place, answers)
    found = judge.model(store, probe=("words-front", "cut"), probe_store=place, per_probe=5)
    effects = {one.probe: one for one in found.effects if one.probe in PROBES}
    assert (found.annotator, found.unanswered) == ("eve", 0)
    assert (effects["words-front"].raised.k, effects["words-front"].crossed.k) == (5, 5)
    assert effects["cut"].raised.k + effects["cut"].lowered.k == 0


def test_texts_of_the_probes(tmp_path: Path) -> None:
    with Store.open(graded_store(tmp_path / "s.judged")) as store:
        with make_probes(store, tmp_path / "p.judged", Probing(probe=("all",), seed=4)) as probes:
            by_probe: dict[str, list[Item]] = {}
            of = {item_id: (probe, document) for item_id, (probe, document, _) in probes.plan["texts"].items()}
            for item in probes.items():
                by_probe.setdefault(of[item.item_id][0], []).append(item)
            base = {of[item.item_id][1]: item for item in by_probe["unchanged"]}
            for name, items in by_probe.items():
                for item in items:
                    text, query = item.text("document"), item.text("query")
                    before = base[of[item.item_id][1]].text("document")
                    assert item.text("query") == base[of[item.item_id][1]].text("query")
                    if name.startswith("words"):
                        assert text.replace(query, "").split() == before.split()
                        assert text.count(query) == (3 if name == "words-repeated" else 1)
                    elif name in ("claim", "instruction"):
                        assert before in text and len(text) > len(before)
                    elif name == "other-words":
                        assert text.endswith(before) and query not in text
                    elif name == "cut":
                        assert before.startswith(text) and len(text.split()) == len(before.split()) // 3
                    elif name == "reworded":
                        assert text.startswith("That is known") and "does not freeze there and" in text
                        assert "20 percent" in text
                    else:
                        assert text == before
            # Ids say nothing about the probe, and are the same in every run.
            assert all(len(item.item_id) == 16 for items in by_probe.values() for item in items)
            ids = probes.item_ids()
        with make_probes(store, tmp_path / "q.judged", Probing(probe=("all",), seed=4)) as probes:
            assert probes.item_ids() == ids
        with pytest.raises(InputError, match="other probes"):
            make_probes(store, tmp_path / "p.judged", Probing(probe=("cut",), seed=4))
        with pytest.raises(InputError, match="not a store of probes"):
            probe_effects(store)


def test_what_cannot_be_probed(tmp_path: Path) -> None:
    leak = load_scheme("leak")
    pairs = store_of(tmp_path / "l.judged", leak, [Item("a", "1", texts=(Text("query", "q", "q1"),))], {})
    with pytest.raises(InputError, match="does not grade single documents"):
        judge.model(pairs, probe=("all",))
    nobody = store_of(
        tmp_path / "n.judged", PASSAGES,
        [Item("a", "1", texts=(Text("query", "q", "1"), Text("document", "text", "d")))], {},
    )  # fmt: skip
    with pytest.raises(InputError, match="people graded none"):
        judge.model(nobody, probe=("all",))
    with pytest.raises(OptionError, match="no probe 'front'"):
        Probing(probe=("front",))
