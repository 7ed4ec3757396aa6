"""What blocks ask a cluster for, with a cluster that only counts: it runs everything here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

import truerank
from toy_encoder import Opener, TrigramEncoder
from truerank.audits.transfer.scanning.scores import RowScoring
from truerank.errors import OptionError
from truerank.rankers.base import RankerSpec, Runtime, placed
from truerank.text.passages import policy_named
from truerank.vectors.search import SearchPlan, search
from truerank.work.engines import RayEngine
from truerank.work.jobs import Job


class Reference:
    """What stands for a result."""

    def __init__(self, result: Any) -> None:
        self.result = result


class Cluster(ModuleType):
    """Stands for the package ray: as many processors and GPUs as it says, and a list of what was asked for."""

    def __init__(self, cpus: int, gpus: int) -> None:
        super().__init__("ray")
        self.has = {"CPU": cpus, "GPU": gpus}
        self.asked: list[dict[str, Any]] = []
        self.most = self.waiting = 0
        names = ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError")
        self.exceptions = SimpleNamespace(**{name: type(name, (Exception,), {}) for name in names})

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {name: float(count) for name, count in self.has.items() if count}

    def put(self, value: Any) -> Any:
        return value

    def remote(self, function: Callable[..., Any]) -> Any:
        def options(**asked: Any) -> Any:
            self.asked.append({name: asked[name] for name in ("num_cpus", "num_gpus")})

            def run(*given: Any) -> Any:
                self.waiting += 1
                self.most = max(self.most, self.waiting)
                return Reference(function(*given))

            return SimpleNamespace(remote=run)

        return SimpleNamespace(options=options)

    def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        self.waiting -= num_returns
        return references[:num_returns], references[num_returns:]

    def get(self, reference: Any) -> Any:
        return reference.result


class Piece(NamedTuple):
    number: int


class Large(NamedTuple):
    number: int
    cpus: int = 2
    gpus: float = 1.0


@dataclass(frozen=True)
class Doubling:
    device: str | None = None

    def open(self) -> Callable[[Any], int]:
        return lambda block: 2 * block.number


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], Cluster]:
    def of(cpus: int, gpus: int) -> Cluster:
        made = Cluster(cpus, gpus)
        monkeypatch.setitem(sys.modules, "ray", made)
        return made

    return of


@pytest.mark.parametrize(
    ("cpus", "gpus", "device", "workers", "asked", "room"),
    [
        (8, 0, None, None, (1, 0), 16),
        (8, 2, "cpu", None, (1, 0), 16),
        # Four processes cut texts for one GPU; their blocks, and as many again, are handed over.
        (16, 1, "cuda", None, (1, 0.25), 8),
        (16, 2, "cuda:0", None, (1, 0.25), 16),
        # Two processors for a GPU: two processes share it.
        (4, 2, "cuda", None, (1, 0.5), 8),
        (1, 1, "cuda", None, (1, 1.0), 2),
        (16, 1, "cuda", 2, (1, 0.5), 2),
    ],
)
def test_what_a_block_asks_for(cluster, cpus, gpus, device, workers, asked, room) -> None:  # type: ignore[no-untyped-def]
    ray = cluster(cpus, gpus)
    found = dict(RayEngine(workers=workers).run(Doubling(device), map(Piece, range(40))))
    assert found == {number: 2 * number for number in range(40)}
    assert {(each["num_cpus"], each["num_gpus"]) for each in ray.asked} == {asked}
    assert ray.most == room


def test_a_block_that_says_what_it_needs_gets_it(cluster) -> None:  # type: ignore[no-untyped-def]
    ray = cluster(8, 2)
    assert len(dict(RayEngine().run(Doubling("cuda"), map(Large, range(3))))) == 3
    assert {tuple(each.values()) for each in ray.asked} == {(2, 1.0)}


def test_a_gpu_that_is_not_there(cluster) -> None:  # type: ignore[no-untyped-def]
    cluster(8, 0)
    with pytest.raises(OptionError, match=r"needs 0\.25 GPU, and the cluster has 0"):
        dict(RayEngine().run(Doubling("cuda"), [Piece(0)]))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_search_asks_for_the_device_of_its_encoder(cluster, tmp_path: Path, device: str) -> None:  # type: ignore[no-untyped-def]
    ray = cluster(4, 1)
    topics = ("deep lake", "high hill")
    texts = [f"how deep is lake {number}" for number in range(30)]

    def rows() -> Iterator[tuple[int, str, str, str]]:
        return ((place, str(place), text, text) for place, text in enumerate(texts))

    plan = SearchPlan(Opener(), lambda: TrigramEncoder().encode(topics), 0.5, 3, block_size=10)
    here = search(rows, plan, Job(tmp_path / "here"))
    there = search(rows, replace(plan, device=device), Job(tmp_path / "there", RayEngine()))
    assert there.pairs.equals(here.pairs)
    assert len(ray.asked) == 3
    assert {each["num_gpus"] for each in ray.asked} == {0.25 if device == "cuda" else 0}


def test_rankers_run_elsewhere_where_they_run_here() -> None:
    spec = RankerSpec("monobert:x", Runtime(precision="fp32"))
    here = SimpleNamespace(device="cuda:1")
    assert placed(spec, here).runtime.device == "cuda"  # type: ignore[arg-type]
    assert placed(spec, SimpleNamespace(device="cpu")).runtime.device == "cpu"  # type: ignore[arg-type]
    # BM25 runs nowhere in particular.
    assert placed(spec, SimpleNamespace()) == spec  # type: ignore[arg-type]


def test_a_scan_asks_for_the_device_of_its_ranker(cluster) -> None:  # type: ignore[no-untyped-def]
    ray = cluster(16, 1)
    found_here = SimpleNamespace(device="cuda:1")
    for device, gpus in (("cuda:1", 0.25), ("cpu", 0)):
        found_here.device = device
        spec = placed(RankerSpec("monobert:x", Runtime()), found_here)  # type: ignore[arg-type]
        scoring = RowScoring(spec, {}, policy_named("whole"), None)
        assert dict(RayEngine().run(Doubling(scoring.device), [Piece(0)])) == {0: 0}
        assert ray.asked[-1] == {"num_cpus": 1, "num_gpus": gpus}


def test_reranking_on_a_cluster_gives_the_same(cluster, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    docs = [{"doc_id": f"d{number}", "body": f"red fish {'sea ' * number}"} for number in range(6)]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, docs)) + "\n")
    (tmp_path / "topics.tsv").write_text("1\tred fish\n2\tsea\n")
    rows = [f"{topic} Q0 d{doc} {doc + 1} {9 - doc} x\n" for topic in (1, 2) for doc in range(6)]
    (tmp_path / "first.run").write_text("".join(rows))
    truerank.index(str(tmp_path / "docs.jsonl"), out=tmp_path / "index")
    given = (tmp_path / "first.run", f"bm25:{tmp_path / 'index'}", str(tmp_path / "topics.tsv"),
             str(tmp_path / "docs.jsonl"))  # fmt: skip
    ray = cluster(4, 1)
    assert truerank.rerank(*given, engine=RayEngine()).run.equals(truerank.rerank(*given).run)
    assert {each["num_gpus"] for each in ray.asked} == {0}
