"""The commands of `judge` write one manifest each, in the schema of all commands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from truerank import judge
from truerank.judging import Item, Scheme, Store
from truerank.judging.models import Answer, ChatModel, ItemAnswer

KEYS = ["command", "version", "inputs", "options", "seeds", "packages", "skipped", "artifacts"]


class Leaks:
    """A model that says of everything that it leaks."""

    name, about = "all leak", "about it"

    def judge(self, scheme: Scheme, items: Iterator[Item]) -> Iterator[ItemAnswer]:
        return (ItemAnswer(item, Answer(("leak",))) for item in items)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rows = [{"topic_id": "1", "query_id": f"q{n}", "query": f"query {n}", "title": "a title"} for n in range(12)]
    items = tmp_path / "items.jsonl"
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge.new(tmp_path / "a.judged", "leak", str(items), annotators=("ann", "bob"), overlap=12, seed=3)
    return tmp_path / "a.judged"


def manifest_of(path: Path) -> dict:
    content = json.loads(path.read_text())
    assert list(content) == KEYS
    return content


def labels_of(store: Path, folder: Path, *, other: int) -> list[str]:
    """Two files: ann and bob differ on the first items."""
    with Store.open(store) as opened:
        ids = [item.item_id for item in opened.items()]
    found = []
    for name, differing in (("ann", 0), ("bob", other)):
        rows = [{"item_id": one, "label": ["leak" if at >= differing else "no leak"]} for at, one in enumerate(ids)]
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found.append(f"{name}={path}")
    return found


def test_new_names_items_and_seed(store: Path) -> None:
    found = manifest_of(store.with_name("a.judged.manifest.json"))
    assert (found["command"], found["seeds"], found["artifacts"]) == ("judge new", {"seed": 3}, {})
    (items,) = found["inputs"]
    assert items["sha256"] == hashlib.sha256((store.parent / "items.jsonl").read_bytes()).hexdigest()
    assert found["options"]["overlap"] == 12


def test_every_import_has_a_manifest_of_its_own(store: Path, tmp_path: Path) -> None:
    first, second = labels_of(store, tmp_path, other=4)
    for given in (first, second, first):
        judge.import_(store, given)
    manifests = [manifest_of(path) for path in sorted(tmp_path.glob("a.judged.import-*.manifest.json"))]
    assert sorted(one["inputs"][1]["name"] for one in manifests) == ["ann", "bob"]
    assert all(one["inputs"][0]["sha256"] is None and one["inputs"][1]["sha256"] for one in manifests)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".work")]


def test_export_hashes_what_it_wrote(store: Path, tmp_path: Path) -> None:
    judge.import_(store, labels_of(store, tmp_path, other=0))
    judge.export(store, tmp_path / "out.jsonl", file_format="doccano")
    found = manifest_of(tmp_path / "out.jsonl.manifest.json")
    assert sorted(found["artifacts"]) == ["out.jsonl", "out.jsonl.label_config.json"]
    for name, digest in found["artifacts"].items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest


def test_a_model_states_its_settings(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChatModel, "judge", lambda given, patience: Leaks())
    chat = {"endpoint": "http://127.0.0.1:9/v1", "model": "all leak"}
    judge.model(store, **chat, temperature=0.7, max_items=5)
    judge.model(store, **chat, temperature=0.7)
    (path,) = tmp_path.glob("a.judged.model-*.manifest.json")
    assert manifest_of(path)["options"]["temperature"] == 0.7
    judge.model(store, **chat, temperature=0.8)
    assert len(list(tmp_path.glob("a.judged.model-*.manifest.json"))) == 2
