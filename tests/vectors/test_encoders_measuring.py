"""Which way of running a model is taken, with a clock of the test's own; and that the choice changes no result."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import truerank
from toy_encoder import TrigramEncoder
from truerank.audits.leakage import encoders
from truerank.errors import OptionError
from truerank.vectors.encoders.base import EncoderSpec
from truerank.vectors.encoders.speed import (
    ChosenWay,
    MeasuredWay,
    Trial,
    Way,
    choose_first_pass,
    compare_ways,
    fastest,
    first_passes,
    kept_choice,
    length_class,
    machine_key,
    measure_encoder,
    spec_of_way,
    usual_first_pass,
    way_of,
)


class Watch:
    """A clock that only what is timed moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def opens(self, seconds: list[float], values: float) -> Callable[[], Trial]:
        """A way that takes these seconds, one after the other, the last of them again and again."""
        left = list(seconds)

        def trial() -> np.ndarray:
            self.now += left.pop(0) if len(left) > 1 else left[0]
            return np.array([values])

        return lambda: trial


def refused() -> Trial:
    raise OptionError("precision", "this processor has no bf16 products", "use fp32")


FULL, HALF, EIGHT = (Way("openvino", precision, threads=2) for precision in ("fp32", "bf16", "int8"))


def apart(left: np.ndarray, right: np.ndarray) -> float:
    return float(np.abs(left - right).max())


def test_the_fastest_round_counts_and_the_first_is_left_out() -> None:
    watch = Watch()
    ways = [
        (FULL, watch.opens([9.0, 4.0, 2.0, 4.0], 1.0)),
        (HALF, watch.opens([9.0, 1.0], 1.25)),
        (EIGHT, refused),
    ]
    full, half, eight = compare_ways(ways, apart, 100, watch)
    # 100 texts in 2 s of processor time are 100 a second on two processors.
    assert (full.rate, full.error) == (100.0, 0.0)
    assert (half.rate, half.error) == (200.0, 0.25)
    assert eight.rate == 0
    assert "no bf16 products" in eight.fault


def ways(*figures: tuple[float, float]) -> list[MeasuredWay]:
    return [MeasuredWay(Way("b", str(place)), rate, error) for place, (rate, error) in enumerate(figures)]


@pytest.mark.parametrize(
    ("figures", "allowed", "taken"),
    [
        ([(100, 0), (200, 0.01), (300, 0.02)], 0.05, 2),
        ([(100, 0), (200, 0.01), (300, 0.02)], 0.015, 1),
        ([(100, 0), (200, 0.01), (300, 0.02)], 0.001, 0),
        # As fast but for a tenth: the smaller error is taken, the reference before all.
        ([(100, 0), (290, 0.01), (300, 0.02)], 0.05, 1),
        ([(100, 0), (105, 0.01)], 0.05, 0),
    ],
)
def test_the_fastest_of_those_that_are_allowed(figures: list[tuple[float, float]], allowed: float, taken: int) -> None:
    assert fastest(ways(*figures), allowed) == taken


def test_a_way_that_cannot_run_is_not_taken() -> None:
    broken = replace(ways((900, 0))[0], fault="not here")
    assert fastest([*ways((100, 0)), broken], 1.0) == 0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ways"


def test_a_choice_is_made_once_and_read_afterwards(cache: Path) -> None:
    calls: list[int] = []

    def measure() -> list[MeasuredWay]:
        calls.append(1)
        return ways((100, 0), (200, 0.01))

    first = kept_choice("k" * 64, measure, FULL, 0.05)
    assert kept_choice("k" * 64, measure, FULL, 0.05) == first
    assert (first.way.precision, first.measured, len(calls)) == ("1", True, 1)
    assert kept_choice("k" * 32 + "j" * 32, measure, FULL, 0.05) == first
    assert len(calls) == 2
    assert [each.name for each in cache.iterdir()] == ["k" * 32 + ".json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"key": "KEY"}', b'{"key": "KEY", "ways": [], "taken": 0}',
     b'{"key": "KEY", "ways": [{"way": 3, "rate": 1, "error": 0, "fault": ""}], "taken": 0}',
     b'{"key": "KEY", "ways": [{"rate": 1}], "taken": 0}', b"\xff\xfe", b'{"key": "KEY", "ways": [1], "taken": "x"}'],
)  # fmt: skip
def test_a_damaged_choice_is_made_again(cache: Path, content: bytes) -> None:
    key = "a" * 64
    cache.mkdir(parents=True)
    (cache / f"{key[:32]}.json").write_bytes(content.replace(b"KEY", key.encode()))
    found = kept_choice(key, lambda: ways((100, 0), (200, 0.01)), FULL, 0.05)
    assert found.taken == 1
    assert json.loads((cache / f"{key[:32]}.json").read_text())["taken"] == 1


def test_where_nothing_can_be_kept_the_usual_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "file" / "below"))

    def measure() -> list[MeasuredWay]:
        raise AssertionError("each run would choose anew")

    found = kept_choice("a" * 64, measure, HALF, 0.05)
    assert (found.way, found.measured) == (HALF, False)


def test_keys_and_ways() -> None:
    assert machine_key("model", 5) == machine_key("model", 5)
    assert machine_key("model", 5) != machine_key("model", 6)
    assert length_class(["abc"] * 3) < length_class(["a passage of some sixty letters, as they stand in documents"])
    assert way_of(json.loads(json.dumps(HALF.__dict__))) == HALF
    with pytest.raises(TypeError):
        way_of({"backend": "onnx"})


SPEC = EncoderSpec("toy", backend="torch", device="cuda:0")


def test_a_gpu_has_half_precisions_and_the_processor_of_torch_none() -> None:
    assert [each.precision for each in first_passes(SPEC)] == ["fp16", "bf16"]
    assert first_passes(replace(SPEC, device="cpu")) == ()
    assert first_passes(replace(SPEC, precision="fp16")) == ()


class Slow(TrigramEncoder):
    """An encoder whose seconds are counted by a watch."""

    def __init__(self, watch: Watch, seconds: float, noise: float = 0.0) -> None:
        super().__init__(dimension=32, noise=noise)
        object.__setattr__(self, "took", (watch, seconds))

    def encode(self, texts):  # type: ignore[no-untyped-def]
        watch, seconds = self.took  # type: ignore[attr-defined]
        watch.now += seconds * len(texts)
        return super().encode(texts)


TEXTS = [f"query number {n} about {n % 7} things" for n in range(200)]


def test_an_encoder_is_measured_on_the_texts(cache: Path) -> None:
    watch = Watch()
    exact = Slow(watch, 0.01)
    others = {"fp16": Slow(watch, 0.004, 0.02), "bf16": Slow(watch, 0.005, 0.3)}
    choice = choose_first_pass(exact, SPEC, TEXTS, opened=lambda spec: others[spec.precision], clock=watch)
    rates = [round(each.rate) for each in choice.ways]
    assert rates == [100, 250, 200]
    assert choice.ways[1].error < 0.05 < choice.ways[2].error
    assert choice.way.precision == "fp16"
    assert spec_of_way(choice.way, SPEC, first_passes(SPEC)).precision == "fp16"


def test_batches_of_the_fastest_are_measured_beside_the_reference() -> None:
    watch = Watch()
    spec = EncoderSpec("toy", backend="openvino", threads=1)
    others = [replace(spec, precision="bf16")]
    seconds = {None: 0.004, 256: 0.002, 1024: 0.005}
    exact = Slow(watch, 0.01)
    found = measure_encoder(
        exact, spec, others, TEXTS, opened=lambda one: Slow(watch, seconds[one.batch_tokens], 0.01), clock=watch
    )
    assert [(each.way.batch_tokens, round(each.rate)) for each in found] == [
        (None, 100), (None, 250), (256, 500), (1024, 200),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="torch fp16"):
        spec_of_way(Way("torch", "fp16"), spec, others)


@pytest.mark.parametrize(
    ("sets", "here", "precision"),
    [
        (("avx512_vnni", "amx_bf16"), ("int8", "bf16"), "bf16"),
        (("avx_vnni",), ("int8",), "int8"),
        (("i8mm",), (), "fp32"),
        (("avx2",), ("int8",), "fp32"),
    ],
)
def test_where_nothing_is_measured_the_processor_decides(
    sets: tuple[str, ...], here: tuple[str, ...], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choosing = importlib.import_module("truerank.vectors.encoders.speed")
    spec = EncoderSpec("toy", backend="openvino")
    others = [replace(spec, precision=one, packed=one == "bf16") for one in here]  # type: ignore[arg-type]
    monkeypatch.setattr(choosing, "first_passes", lambda exact: (*others, replace(exact, backend="onnx")))
    monkeypatch.setattr(choosing, "instruction_sets", lambda: sets)
    way = usual_first_pass(spec).way
    assert (way.backend, way.precision, way.packed) == ("openvino", precision, precision == "bf16")
    # Other machines may lack what this one has.
    elsewhere = usual_first_pass(spec, "int8").way
    assert elsewhere.precision == ("int8" if "int8" in here else "fp32")
    assert usual_first_pass(EncoderSpec("toy", backend="onnx")).way.backend == "onnx"


@pytest.fixture(autouse=True)
def screening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sources have a first pass, too, and so have the rewordings of the sensitivity check."""
    monkeypatch.setattr("truerank.vectors.search._WORTH_A_PILOT", 1)
    monkeypatch.setattr("truerank.vectors.search._WORTH_SCREENING", 1)


def audited(folder: Path, log: Path, topics: Path, way: str, monkeypatch: pytest.MonkeyPatch, **options: object):  # type: ignore[no-untyped-def]
    """An audit whose first pass is of an encoder that errs, or that has none."""
    spec = EncoderSpec("toy", backend="torch", device="cuda:0")
    noise = {"fp32": 0.0, "fp16": 0.01, "bf16": 0.04}

    def opened(one: EncoderSpec, cache: str | None) -> TrigramEncoder:
        precision = one.precision
        exact = TrigramEncoder(noise=noise[precision], precision=precision)
        object.__setattr__(exact, "spec", replace(spec, precision=precision))
        return exact

    place = [spec.precision, "fp16", "bf16"].index(way)
    choice = ChosenWay(tuple(MeasuredWay(Way("torch", one), 1.0, 0.0) for one in ("fp32", "fp16", "bf16")), place)
    monkeypatch.setattr(encoders, "_open", opened)
    monkeypatch.setattr(encoders, "choose_first_pass", lambda *given, **named: choice)
    return truerank.leakage.audit(str(log), str(topics), encoder="toy", threshold=0.8, out=folder, **options)


@pytest.fixture
def data(tmp_path: Path, undrawn: None) -> tuple[Path, Path]:
    lines = [f"{number}\tpapers about subject {number * 7 % 1009} of {number % 13}" for number in range(300)]
    words = ("now", "really", "then", "there", "exactly", "today", "about", "again")
    lines += [f"{one}-{other}\thow deep {one} is lake number 7 {other}" for one in words for other in words]
    log, topics = tmp_path / "log.tsv", tmp_path / "topics.tsv"
    log.write_text("\n".join(lines) + "\n")
    topics.write_text("1\thow deep is lake number 7\n2\tpapers about subject 12 of 5\n3\tnothing like it\n")
    return log, topics


def test_the_choice_changes_no_pair_above_the_threshold(
    data: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = {way: audited(tmp_path / way, *data, way, monkeypatch, k=3) for way in ("fp32", "fp16", "bf16")}
    candidates = {way: (tmp_path / way / "candidates.parquet").read_bytes() for way in results}
    assert len(results["fp32"].leaking()) > 10
    assert candidates["fp16"] == candidates["fp32"] == candidates["bf16"]
    facts = {way: {**found.summary, "first_pass": None} for way, found in results.items()}
    assert facts["fp16"] == facts["fp32"] == facts["bf16"]
    passes = {way: found.summary.get("first_pass") for way, found in results.items()}
    assert passes["fp32"] is None
    assert passes["fp16"]["log"]["way"] == "torch fp16"
    manifest = json.loads((tmp_path / "bf16" / "manifest.json").read_text())
    assert manifest["options"]["first_pass"] == {"log": "torch bf16"}
    # Figures differ from run to run: they are in the log only.
    assert '"rate"' not in (tmp_path / "bf16" / "manifest.json").read_text()
    assert '"rate"' in (tmp_path / "bf16" / "run.log").read_text()


def test_an_audit_goes_on_with_what_it_began_with(
    data: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = audited(tmp_path / "whole", *data, "fp16", monkeypatch)

    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(importlib.import_module("truerank.audits.leakage.audit"), "check", killed)
        with pytest.raises(KeyboardInterrupt):
            audited(tmp_path / "again", *data, "fp16", broken)
    found = audited(tmp_path / "again", *data, "bf16", monkeypatch)
    assert found.summary == whole.summary
    for name in ("candidates.parquet", "neighbours.parquet", "manifest.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_audit_in_full_precision_has_no_first_pass(
    data: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = audited(tmp_path / "full", *data, "bf16", monkeypatch, precision="full", block_size=1024)
    assert "first_pass" not in found.summary


@pytest.mark.parametrize(("device", "rate"), [("cpu", 200), ("cuda:0", 100)])
def test_torch_is_timed_by_processor_time_where_it_runs_on_the_processor(device: str, rate: int) -> None:
    watch = Watch()
    spec = replace(SPEC, device=device, threads=2)
    # 10 ms of processor time a text: two processors do two texts in them; a GPU is timed by the clock.
    (exact,) = measure_encoder(Slow(watch, 0.01), spec, [], TEXTS, clock=watch)
    assert round(exact.rate) == rate
