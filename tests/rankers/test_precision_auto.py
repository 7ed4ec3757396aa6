"""With precision "auto" the fastest way is taken whose scores are near enough; nothing here depends on real seconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import truerank
from truerank.errors import InputError, OptionError
from truerank.rankers.base import Pair, Ranker, RankerSpec, Runtime, Scores, open_ranker, rounded
from truerank.rankers.precision import choose_runtime, ranker_ways, settled
from truerank.vectors.encoders.speed import ChosenWay, MeasuredWay, Way

#: Seconds for a pair, and the error of a score.
WAYS = {
    ("fp32", "auto"): (0.010, 0.0),
    ("fp32", "torch"): (0.020, 0.0),
    ("fp32", "openvino"): (0.010, 0.0),
    ("bf16x3", "openvino"): (0.007, 0.00005),
    ("bf16", "openvino"): (0.004, 0.005),
    ("int8", "openvino"): (0.002, 0.05),
}


class Seconds:
    """A clock that scoring moves on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Seconds()


class Lengths:
    """Scores by lengths, with the error of its way."""

    device = "cpu"

    def __init__(self, runtime: Runtime) -> None:
        self.name = "lengths"
        self.fingerprint = f"lengths {runtime.precision}"
        self._seconds, self._error = WAYS[runtime.precision, runtime.backend]

    def score(self, pairs: Sequence[Pair]) -> Scores:
        CLOCK.now += self._seconds * len(pairs)
        return rounded(np.array([len(pair.document) / (1 + len(pair.query)) + self._error for pair in pairs]))


@dataclass(frozen=True)
class LengthsSpec(RankerSpec):
    def open(self) -> Ranker:
        if self.runtime.precision == "auto":
            return Lengths(replace(self.runtime, precision="fp32"))  # type: ignore[return-value]
        return Lengths(self.runtime)  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "cache"))


PAIRS = [Pair("query", "word " * number) for number in range(80)]


def spec(tolerance: float) -> RankerSpec:
    return LengthsSpec("lengths", Runtime(precision="auto", tolerance=tolerance))


@pytest.mark.parametrize(
    ("tolerance", "taken"), [(1e-5, "fp32"), (1e-4, "bf16x3"), (0.0051, "bf16"), (0.04, "bf16"), (0.06, "int8")]
)
def test_the_fastest_within_the_tolerance(tolerance: float, taken: str) -> None:
    asked: list[int] = []

    def sample(size: int) -> list[Pair]:
        asked.append(size)
        return PAIRS[:size]

    choice = choose_runtime(spec(tolerance), sample, clock=CLOCK)
    assert choice.way.precision == taken
    assert choice.ways[choice.taken].error <= tolerance
    # Eight bits take a minute to learn their ranges: with a small tolerance nobody waits for them.
    assert ("int8" in [each.way.precision for each in choice.ways]) == (tolerance >= 1e-3)
    ready = settled(spec(tolerance), sample)
    assert ready.runtime.precision == taken
    assert bool(ready.runtime.calibration) == (taken == "int8")
    assert ready.runtime.tolerance == tolerance


def test_on_a_gpu_half_precisions_are_measured() -> None:
    ways = ranker_ways(spec(0.01), "cuda")
    assert [each.runtime.precision for each in ways] == ["fp32", "fp16", "bf16"]
    torch = ranker_ways(replace(spec(0.01), runtime=Runtime(precision="auto", backend="torch")), "cpu")
    assert [each.runtime.precision for each in torch] == ["fp32"]


def test_a_run_says_what_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs.tsv").write_text("".join(f"d{n}\t{'word ' * n}\n" for n in range(1, 9)))
    (tmp_path / "topics.tsv").write_text("1\tquery\n")
    (tmp_path / "first.run").write_text("".join(f"1 Q0 d{n} {n} {20 - n} x\n" for n in range(1, 9)))
    way = Way("openvino", "bf16")
    monkeypatch.setattr(
        "truerank.rankers.precision.choose_runtime", lambda *given: ChosenWay((MeasuredWay(way, 9.0, 0.005),), 0)
    )
    given = (tmp_path / "first.run", spec(0.01), str(tmp_path / "topics.tsv"), str(tmp_path / "docs.tsv"))
    found = truerank.rerank(*given, out=tmp_path / "out.run")
    assert found.about["ranker"] == {"name": "lengths", "fingerprint": "lengths bf16", "precision": "bf16"}
    assert found.agreement["largest difference"] == pytest.approx(0.005, abs=1e-5)
    manifest = json.loads((tmp_path / "out.run.manifest.json").read_text())
    assert manifest["options"]["chosen_precision"] == "bf16"
    full = replace(given[1], runtime=Runtime())
    assert "precision" not in truerank.rerank(given[0], full, *given[2:]).about["ranker"]


def test_without_pairs_auto_is_full_precision() -> None:
    assert spec(0.01).open().fingerprint == "lengths fp32"
    with pytest.raises(OptionError, match="tolerance"):
        Runtime(tolerance=0.0)


def test_bf16_on_the_processor_is_near_full_precision(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("transformers")
    from tiny_models import save_bert
    from truerank.vectors.encoders.openvino import bf16_is_native

    name = f"monobert:{save_bert(tmp_path / 'bert', labels=2)}"
    with pytest.raises(InputError, match="for GPUs"):
        open_ranker(name, device="cpu", precision="bf16", backend="torch")
    with pytest.raises(InputError, match="bf16x3 runs in OpenVINO"):
        open_ranker(name, device="cpu", precision="bf16x3", backend="torch")
    if not bf16_is_native():
        for precision in ("bf16", "bf16x3"):
            with pytest.raises(InputError, match="no bf16 products"):
                open_ranker(name, device="cpu", precision=precision)
        return
    pairs = [Pair("speed of sound", f"the speed of light in water {number}") for number in range(20)]
    low, split, full = (open_ranker(name, device="cpu", precision=one) for one in ("bf16", "bf16x3", "fp32"))
    size = max(1.0, float(np.abs(full.score(pairs)).max()))
    difference, small = (np.abs(one.score(pairs) - full.score(pairs)).max() for one in (low, split))
    assert 0 < difference < 0.05 * size
    assert small < min(1e-4 * size, difference)
    assert len({each.fingerprint for each in (low, split, full)}) == 3
