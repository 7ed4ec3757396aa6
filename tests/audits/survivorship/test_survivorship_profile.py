"""The profile: the authors' shares and categories exactly, tests against SciPy, depths against counting."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from places import DATA
from truerank.audits.survivorship import ProfileOptions, independence, profile
from truerank.audits.survivorship.profiles import depth_curve
from truerank.cli import main
from truerank.core.result import summary
from truerank.errors import OptionError

DATA = DATA / "survivorship"
#: The authors' categories of the dev queries: all, discarded.
CATEGORIES = {
    "FACTOID": (55216, 24883), "EVIDENCE-BASED": (35446, 13657), "INSTRUCTION": (5727, 4423), "REASON": (2487, 1429),
    "DEBATE": (1075, 554), "NOT-A-QUESTION": (478, 223), "COMPARISON": (430, 215), "EXPERIENCE": (234, 131),
}  # fmt: skip
#: Table 3 of the paper.
TYPES = {
    "DESCRIPTION": (54616, 25519), "NUMERIC": (25547, 12048), "ENTITY": (8677, 3819), "PERSON": (6425, 2487),
    "LOCATION": (5828, 1642),
}  # fmt: skip


@pytest.mark.shared
def test_the_authors_lists(tmp_path: Path) -> None:
    found = profile(
        survived=[str(DATA / f"{split}.survived.txt.gz") for split in ("train", "dev")],
        discarded=[str(DATA / f"{split}.discarded.txt.gz") for split in ("train", "dev")],
        kinds=[f"category={DATA / 'nfcats.msmarco-dev.tsv.gz'}"],
        out=tmp_path / "out",
    )
    shares = {one.name: one.discarded for one in found.splits}
    assert (shares["train"].k, shares["train"].n - shares["train"].k) == (305_792, 502_939)
    assert (shares["dev"].k, shares["dev"].n - shares["dev"].k) == (45_515, 55_578)
    assert [f"{shares[name].share:.1%}" for name in ("train", "dev")] == ["37.8%", "45.0%"]
    (kinds,) = found.kinds
    assert {one.kind: (one.discarded.n, one.discarded.k) for one in kinds.counts} == CATEGORIES
    assert (kinds.split, kinds.unlabelled) == ("dev", 0)
    assert {one.kind for one in kinds.counts if one.standing == "over"} == {"EVIDENCE-BASED"}
    assert "dev: by category" in (tmp_path / "out" / "report.html").read_text()


def test_table_3_against_scipy() -> None:
    found = independence(TYPES)
    table = np.array([(total - lost, lost) for total, lost in TYPES.values()])
    statistic, p, freedom, expected = chi2_contingency(table, correction=False)
    assert found.chi2 == pytest.approx(statistic)
    assert found.freedom == freedom == 4
    assert found.p == pytest.approx(p)
    assert found.total[:2] == (45_515, 101_093)
    assert [f"{one.discarded.share:.1%}" for one in found.counts] == ["46.7%", "47.2%", "44.0%", "38.7%", "28.2%"]
    standing = {one.kind: one.standing for one in found.counts}
    assert standing == {"DESCRIPTION": "under", "NUMERIC": "under", "ENTITY": "", "PERSON": "over", "LOCATION": "over"}
    whole, left = table.sum(), table[:, 0].sum()
    for row, one in enumerate(found.counts):
        cell = (table[row, 0] - expected[row, 0]) / math.sqrt(
            expected[row, 0] * (1 - table[row].sum() / whole) * (1 - left / whole)
        )
        assert one.residual == pytest.approx(cell)
        assert one.ratio_low < one.ratio < one.ratio_high
        assert one.ratio == pytest.approx(one.of_survivors / one.of_all)


def test_nothing_to_test_and_few_queries() -> None:
    assert independence({"A": (10, 4)}).p is None
    assert independence({"A": (10, 0), "B": (5, 0)}).p is None
    few = independence({"A": (500, 250), "B": (4, 4)})
    assert few.sparse == ("B",)
    json.dumps(few.json(), allow_nan=False)
    json.dumps(independence({"A": (10, 10), "B": (5, 5)}).json(), allow_nan=False)


def test_standing_keeps_its_level() -> None:
    draw = np.random.default_rng(5)
    sizes = np.array([4000, 1500, 400, 90])
    wrong = 0
    for _ in range(400):
        lost = draw.binomial(sizes, 0.4)
        found = independence({f"k{i}": (int(n), int(x)) for i, (n, x) in enumerate(zip(sizes, lost, strict=True))})
        wrong += any(one.standing for one in found.counts)
    # Family-wise 5%: 20 of 400 expected, at most 33 with a probability of 0.998.
    assert wrong <= 33


def log_lines(count: int, seed: int = 0) -> list[dict[str, object]]:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        shown = [f"d{place}" for place in range(draw.choice((10, 10, 10, 7, 12)))]
        selected = [one for one in shown if draw.random() < 0.08]
        kind = draw.choice(("PERSON", "ENTITY", ""))
        rows.append({"query_id": str(number), "query": "x", "query_type": kind, "shown": shown, "selected": selected})
    return rows


def test_a_log_against_counting(tmp_path: Path) -> None:
    rows = log_lines(800)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "kinds.tsv").write_text("".join(f"{i}\t{'even' if i % 2 == 0 else 'odd'}\n" for i in range(700)))
    found = profile([f"mine={tmp_path / 'log.jsonl'}"], kinds=[str(tmp_path / "kinds.tsv")])
    (split,) = found.splits
    curve = split.curve
    assert curve is not None
    survivors = [row for row in rows if row["selected"]]
    assert (split.name, split.discarded.k) == ("mine", len(rows) - len(survivors))
    places = {str(row["query_id"]): [row["shown"].index(one) for one in row["selected"]] for row in survivors}  # type: ignore[attr-defined]
    for rank in split.ranks:
        assert rank.reached == sum(len(row["shown"]) >= rank.position for row in rows)  # type: ignore[arg-type]
        assert rank.first == sum(place[0] == rank.position - 1 for place in places.values())
        assert rank.selected == sum(rank.position - 1 in place for place in places.values())
    adjusted = 1.0
    for point in curve.points:
        left = [r for r in rows if r["query_id"] not in places or places[str(r["query_id"])][0] >= point.depth]
        assert point.discarded.k == len(left)
        risk = [
            r
            for r in rows
            if len(r["shown"]) >= point.depth  # type: ignore[arg-type]
            and (r["query_id"] not in places or places[str(r["query_id"])][0] >= point.depth - 1)
        ]
        hits = sum(places.get(str(r["query_id"]), [-1])[0] == point.depth - 1 for r in risk)
        adjusted *= 1 - hits / len(risk)
        assert point.adjusted == pytest.approx(adjusted)
    # Only a fifth of the lists go on behind rank 10, so the trend stops there.
    assert (curve.shown, [one.depth for one in curve.beyond]) == (10, list(range(11, 21)))
    by_type, by_label = found.kinds
    assert (by_type.labelling, by_type.unlabelled) == ("query type", sum(not row["query_type"] for row in rows))
    assert (by_label.labelling, by_label.unlabelled, by_label.total.n) == ("kinds", 100, 700)
    text = summary(found).show()
    assert "EXTRAPOLATED" in text
    assert "not measurements" in text


@pytest.mark.parametrize("shape", ["level", "falling"])
def test_the_extrapolation_covers_the_truth(shape: str) -> None:
    depths = np.arange(1, 21)
    hazard = np.full(20, 0.08) if shape == "level" else 0.12 * depths**-0.35
    truth = np.cumprod(1 - hazard)[-1]
    covered = 0
    for seed in range(60):
        draw = np.random.default_rng((7, seed))
        hit = draw.random((3000, 10)) < hazard[:10]
        first = np.where(hit.any(axis=1), hit.argmax(axis=1), -1)
        curve = depth_curve(first, np.full(3000, 10), to=20, resamples=400, seed=seed)
        last = curve.beyond[-1]
        assert last.low < last.share < last.high
        covered += last.low <= truth <= last.high
    assert covered >= 54


def test_no_trend_no_extrapolation() -> None:
    nothing = depth_curve(np.full(50, -1), np.full(50, 10))
    assert (nothing.beyond, nothing.why_not) == ((), "Too few selections for a trend.")
    shallow = depth_curve(np.array([0, 1, -1] * 20), np.full(60, 3))
    assert "a trend needs 4" in shallow.why_not
    assert depth_curve(np.zeros(0, np.int64), np.zeros(0, np.int64)).points == ()


def test_command_and_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log_lines(80)))
    (tmp_path / "ids.txt").write_text("1\n2\n")
    (tmp_path / "two.tsv").write_text("1\tA\n1\tB\n")
    base = ["survivorship", "profile", "--out", str(tmp_path / "out")]
    log = ["--log", str(tmp_path / "log.jsonl")]
    with pytest.raises(SystemExit) as ended:
        main([*base, *log, "--json"])
    assert ended.value.code == 0
    printed = json.loads(capsys.readouterr().out)
    beyond = printed["splits"][0]["depths"]["beyond"]
    assert all(one["extrapolated"] for one in beyond)
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == printed
    for words, fault in (
        ([], "nothing to look at"),
        (["--survived", str(tmp_path / "ids.txt")], "one of each"),
        (["--survived", str(tmp_path / "ids.txt"), "--discarded", str(tmp_path / "ids.txt")], "are in both lists"),
        ([*log, "--kinds", str(tmp_path / "two.tsv")], "has the labels 'A' and 'B'"),
        ([*log, "--confidence", "1.5"], "--confidence: must be above 0 and below 1, got 1.5"),
        ([*log, *log], "two sources are called"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*base, *words])
        assert ended.value.code == 2
        assert fault in capsys.readouterr().err
    with pytest.raises(OptionError, match="survival: 'x' is not one of the choices"):
        ProfileOptions(survival="x")  # type: ignore[arg-type]
