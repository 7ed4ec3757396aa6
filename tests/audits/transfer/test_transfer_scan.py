"""Scans: what was planted is found in the right version for the right reason, and a killed scan ends the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank
from tiny_models import save_t5
from transfer_example import FAULTS, TOPICS, Files, options, write
from truerank import transfer
from truerank.audits.transfer import Scan, load_scan
from truerank.audits.transfer.scanning.candidates import Comparing, _flagged, difference, fit_curve, topic_levels
from truerank.audits.transfer.scanning.judging_items import band_of
from truerank.audits.transfer.scanning.scan import default_ranker
from truerank.cli import main
from truerank.errors import InputError
from truerank.judging import load_scheme
from truerank.rankers.base import Pair, RankerSpec, open_ranker
from truerank.sources.documents import DocumentSource
from truerank.text.passages import passages, policy_named
from truerank.work.engines import LocalEngine


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return write(tmp_path_factory.mktemp("versions"))


@pytest.fixture(scope="module")
def scan(files: Files) -> Scan:
    return transfer.scan(files.versions, files.qrels, files.topics, out=files.folder / "scan", **options())


def content(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.log")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.usefixtures("undrawn")
def test_each_candidate_says_what_named_it(scan: Scan, files: Files, tmp_path: Path) -> None:
    every = scan.candidates
    scores = pl.col("first") | pl.col("max")
    said = (
        pl.when(scores & pl.col("texts"))
        .then(pl.lit("both"))
        .when(scores)
        .then(pl.lit("scores"))
        .otherwise(pl.lit("texts"))
    )
    assert every["evidence"].to_list() == every.select(said.alias("said"))["said"].to_list()
    assert (every.filter("texts")["lost"] > 0.4).all() and every.filter(~pl.col("texts"))["lost"].null_count() == len(
        every.filter(~pl.col("texts"))
    )
    alone = {
        kind: transfer.scan(
            files.versions, files.qrels, files.topics, out=tmp_path / kind, **options(evidence=kind, items=0)
        )
        for kind in ("scores", "texts")
    }
    for kind, chosen in (("scores", scores), ("texts", pl.col("texts"))):
        keys = ("topic_id", "doc_id", "better", "reason")
        assert alone[kind].candidates.select(keys).equals(every.filter(chosen).select(keys)), kind
        assert set(alone[kind].candidates["evidence"]) == {kind}
    assert not any(name.endswith("texts") for name in alone["scores"].set_names)
    assert "old>>new texts" in scan.set_names and load_scan(tmp_path / "texts").candidates["texts"].all()


def test_next_to_impossible_in_both_versions_is_no_candidate() -> None:
    numbers = {"first_better": [0.002, 0.3], "first_worse": [0.0005, 0.02], "max_better": [0.002, 0.3]}
    beside = pl.DataFrame({"row": [0, 1], **numbers, "max_worse": [0.0005, 0.02]}).with_columns(
        difference(pl.col(f"{name}_better"), pl.col(f"{name}_worse"), judged=True).alias(f"{name}_difference")
        for name in ("first", "max")
    )
    assert (beside["max_difference"] > 0.5).all()
    for floor, rows in ((0.05, [1]), (0.0, [0, 1])):
        comparing = Comparing(beside, (("a", "b"),), {"first": 0.5, "max": 0.5}, {}, True, floor, True, None, "a", True)
        assert _flagged(beside, comparing, "a", "b")["row"].to_list() == rows


@pytest.mark.usefixtures("undrawn")
def test_a_folder_called_like_the_ranker_changes_nothing(
    scan: Scan, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bm25").mkdir()
    monkeypatch.chdir(tmp_path)
    found = transfer.scan(files.versions, files.qrels, files.topics, out=tmp_path / "out", **options(items=0))
    assert found.scores.equals(scan.scores)


def test_what_was_planted_is_found_with_its_reason(scan: Scan) -> None:
    found = {row["topic_id"]: row for row in scan.candidates.filter("max").iter_rows(named=True)}
    assert set(found) == {str(topic) for topic in FAULTS}
    for topic, (fault, side) in FAULTS.items():
        row = found[str(topic)]
        other = "old" if side == "new" else "new"
        assert (row["better"], row["worse"], row["reason"]) == (other, side, fault), topic
        assert row["doc_id"] == f"old{topic}" and row["better_id"] != row["worse_id"]
        either = row["max_better"] + row["max_worse"] - row["max_better"] * row["max_worse"]
        assert row["max_difference"] == pytest.approx((row["max_better"] - row["max_worse"]) / either, abs=2e-5)
        assert row["max_difference"] > 0.5 and row["shown"]
        assert row["better_url"].startswith(f"http://www.site{topic % 4}.org/papers/{topic}")


def test_scores_are_those_of_the_passages(scan: Scan, files: Files, tmp_path: Path) -> None:
    index = tmp_path / "index"
    truerank.build_index(files.versions["old"], index)
    bm25 = open_ranker(f"bm25:{index}")
    documents = {
        line["doc_id"]: line
        for path in files.versions.values()
        for line in map(json.loads, Path(path).read_text().splitlines())
    }
    some = scan.scores.filter(pl.col("topic_id").is_in(["7", "14", "20"]))
    assert len(some) == 6
    for row in some.iter_rows(named=True):
        text = documents[row["version_doc_id"]]
        cut = passages(text["title"], text["body"], policy_named("sliding:30:15"))
        values = bm25.score([Pair(row["query"], passage) for passage in cut])
        assert row["passages"] == len(cut)
        assert (row["first_score"], row["max_score"]) == pytest.approx((values[0], values.max()))
        assert row["best"] == int(values.argmax())


def test_sets_counts_and_what_is_left_out(scan: Scan) -> None:
    summary = scan.summary
    assert summary["compared"] == TOPICS - 1 and summary["judged"] == TOPICS + 2
    assert summary["skipped"] == {"in no version": 1, "in one version only": 1, "the topic has no title": 1}
    one = summary["sets"]["old>>new MaxP"]
    assert one["documents"] == 7 and sum(one["reasons"].values()) == 7
    assert summary["sets"]["new>>old MaxP"]["reasons"] == {"error page": 1, "redirect": 1}
    assert summary["sets"]["all versions"]["documents"] == TOPICS - 1
    assert scan.folder is not None
    qrels = (scan.folder / "sets" / "new-over-old.MaxP.qrels").read_text().split("\n")
    assert qrels == ["24 0 old24 1", "26 0 old26 1", ""]
    first = scan.candidates.filter("first")
    assert set(first["topic_id"]) == {"3", "24"} and (first["first_difference"] > 0.5).all()
    low = summary["below"]["new"]["max"]
    assert low["below"] == int((scan.scores.filter(pl.col("version") == "new")["max"] < 0.1).sum()) >= 5
    again = load_scan(scan.folder)
    assert repr(again) == repr(scan) and "old>>new MaxP" in repr(again)
    report = (scan.folder / "report.html").read_text(encoding="utf-8")
    assert "PAGE02" in report and "404 Not Found" in report and "quartz3" in report and "CHANGED" in report
    for name in ("figure1.svg", "figure1.pdf", "figure2.svg", "figure2.pdf"):
        assert (scan.folder / name).stat().st_size > 1000


def test_items_fit_the_judging_scheme(scan: Scan, tmp_path: Path) -> None:
    assert scan.folder is not None and load_scheme("transfer")
    items = [json.loads(line) for line in (scan.folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    named = [item for item in items if item["dataset"] == "new>>old MaxP"]
    assert {item["topic_id"] for item in named} == {"24", "26"}
    assert named[0]["V1"].endswith(".") and named[0]["V1_id"].startswith("old") and named[0]["V2_id"].startswith("n")
    assert sum(item["dataset"] == "random" for item in items) == TOPICS - 1
    store = tmp_path / "store.judged"
    with pytest.raises(SystemExit) as ended:
        main(["judge", "new", str(store), "--scheme", "transfer", "--items", str(scan.folder), "--json"])
    assert ended.value.code == 0 and store.exists()
    assert [band_of(value, 0.5, 1.0) for value in (0.500001, 0.6, 0.61, 1.0)] == [
        "0.5-0.6",
        "0.5-0.6",
        "0.6-0.7",
        "0.9-1",
    ]


class _Stopping(LocalEngine):
    """Ends after some blocks, as a kill does."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks

    def run(self, task: Any, blocks: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        for count, found in enumerate(super().run(task, blocks)):
            if count == self._blocks:
                raise KeyboardInterrupt
            yield found


def test_a_killed_scan_ends_with_the_same_bytes(
    scan: Scan, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truerank.audits.transfer.scanning import scan as scanning

    for blocks in (0, 2):
        with monkeypatch.context() as patch:
            patch.setattr(scanning, "open_engine", lambda _, blocks=blocks: _Stopping(blocks))
            with pytest.raises(KeyboardInterrupt):
                transfer.scan(files.versions, files.qrels, files.topics, out=tmp_path / "out", **options())
    transfer.scan(files.versions, files.qrels, files.topics, out=tmp_path / "out", **options())
    assert scan.folder is not None
    assert content(tmp_path / "out") == content(scan.folder)


def test_a_version_is_streamed_once(files: Files, scan: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    batches = DocumentSource.batches

    def counted(source: DocumentSource, *given: Any) -> Iterator[Any]:
        read.append(source.spec.name)
        return batches(source, *given)

    monkeypatch.setattr(DocumentSource, "batches", counted)
    given = (files.versions, files.qrels, files.topics)
    found = transfer.scan(*given, **options(items=0))
    # The judged version once more, for the statistics of BM25; both once more, for texts that other documents have.
    assert sorted(read) == ["new", "new", "old", "old", "old"]
    assert found.scores.equals(scan.scores) and found.folder is None
    # Documents of a first stage need not be judged ones: they are looked for in a pass of their own.
    run = tmp_path / "first.run"
    run.write_text("".join(f"{topic} Q0 old-list 1 1.0 x\n" for topic in range(TOPICS)))
    read.clear()
    transfer.scan(*given, first_stage=str(run), sampled=5, **options(items=0, probability="logistic"))
    assert sorted(read) == ["new", "new", "old", "old", "old", "old"]


@pytest.mark.usefixtures("undrawn")
def test_the_cache_and_an_earlier_match_change_nothing(scan: Scan, files: Files, tmp_path: Path) -> None:
    matched = transfer.match(files.versions, files.qrels, out=tmp_path / "matched")
    for _ in range(2):
        out = tmp_path / "out"
        changed = options(cache=str(tmp_path / "scores.sqlite"))
        found = transfer.scan(files.versions, files.qrels, files.topics, out=out, matched=matched, **changed)
        assert found.candidates.equals(scan.candidates) and found.scores.equals(scan.scores)
    log = [json.loads(line) for line in (tmp_path / "out" / "run.log").read_text().splitlines()]
    first, second = (line for line in log if line["event"] == "scored")
    assert first["hits"] < first["asked"] == second["asked"] == second["hits"]


@pytest.mark.usefixtures("undrawn")
def test_a_percentile_in_place_of_probabilities(files: Files, tmp_path: Path) -> None:
    found = transfer.scan(
        files.versions, files.qrels, files.topics, out=tmp_path, **options(percentile=80, items=0, probability="raw")
    )
    differences = found.scores.pivot("version", index="row", values="max")
    differences = (differences["old"] - differences["new"]).abs().to_numpy()
    assert found.summary["cut_off"]["max"] == pytest.approx(np.percentile(differences, 80), abs=1e-6)
    assert len(found.candidates.filter("max")) == int((differences > found.summary["cut_off"]["max"] + 1e-9).sum())
    assert found.summary["below"] == {} and not (tmp_path / "figure1.svg").exists()
    assert not (tmp_path / "items.jsonl").exists()


@pytest.mark.usefixtures("undrawn")
def test_monot5_gives_probabilities_and_the_best_of_versions(files: Files, tmp_path: Path) -> None:
    folder = save_t5(tmp_path / "t5")
    small = [line for line in Path(files.qrels).read_text().splitlines() if line.split()[0] in "4567"]
    (tmp_path / "small.qrels").write_text("\n".join(small) + "\n")
    versions = {**files.versions, "third": files.versions["new"]}
    chosen = {"pair": (("old", "new"),), "best": {"best": ("new", "third")}, "items": 1}
    judged, out = str(tmp_path / "small.qrels"), tmp_path / "out"
    found = transfer.scan(versions, judged, files.topics, model=f"monot5:{folder}", out=out, **chosen)
    assert found.summary["probability"] == {"kind": "exp", "given": "nothing"}
    assert found.scores["max"].to_list() == pytest.approx(np.exp(found.scores["max_score"].to_numpy()), abs=1e-6)
    assert found.scores["first"].is_between(0, 1).all() and set(found.summary["below"]) == {
        "old",
        "new",
        "third",
        "best",
    }
    assert set(found.summary["sets"]) == {
        "old>>new FirstP", "old>>new MaxP", "old>>new texts", "new>>old FirstP", "new>>old MaxP", "new>>old texts",
        "all versions",
    }  # fmt: skip


def test_the_curve_is_that_of_maximum_likelihood() -> None:
    draw = np.random.default_rng(3)
    relevant, others = draw.normal(2.0, 1.0, (400, 1)), draw.normal(0.0, 1.0, (1600, 1))
    curve = fit_curve(relevant, others)
    # Of two normal distributions with one variance the log odds are linear: slope 2, nothing at the middle.
    assert curve.slopes == (pytest.approx(2.0, abs=0.2),)
    assert curve(np.array([[1.0]]))[0] == pytest.approx(0.5, abs=0.04)
    assert curve.auc == pytest.approx(0.921, abs=0.015)
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e4, class_weight="balanced", tol=1e-10).fit(
        np.r_[relevant, others], np.r_[np.ones(400), np.zeros(1600)]
    )
    assert (*curve.slopes, curve.offset) == pytest.approx((model.coef_[0, 0], model.intercept_[0]), rel=0.01)
    assert fit_curve(np.array([[5.0], [6.0]]), np.array([[1.0], [2.0]])).slopes[0] < 100
    assert not fit_curve(others, relevant).tells


def test_two_rankers_are_weighed_by_what_each_tells() -> None:
    from sklearn.linear_model import LogisticRegression

    draw = np.random.default_rng(4)
    # The first tells much in large numbers, the second little, the third nothing.
    shift, size = np.array([30.0, 0.05, 0.0]), np.array([20.0, 0.1, 5.0])
    relevant, others = draw.normal(shift, size, (600, 3)), draw.normal(0.0, size, (1400, 3))
    curve = fit_curve(relevant, others)
    model = LogisticRegression(C=1e6, class_weight="balanced", tol=1e-12, max_iter=10_000).fit(
        np.r_[relevant, others] / size, np.r_[np.ones(600), np.zeros(1400)]
    )
    assert np.array(curve.slopes) * size == pytest.approx(model.coef_[0], abs=0.01)
    alone = [fit_curve(relevant[:, [place]], others[:, [place]]).auc for place in range(3)]
    assert curve.auc > max(alone) and abs(alone[2] - 0.5) < 0.05
    assert curve(relevant) == pytest.approx(1 / (1 + np.exp(-curve.log_odds(relevant))))


def test_differences_given_that_one_version_is_relevant() -> None:
    frame = pl.DataFrame({"a": [0.3, 0.9, 0.02, 0.0, 0.5], "b": [0.02, 0.9, 0.3, 0.0, 0.0]})
    plain = frame.select(difference(pl.col("a"), pl.col("b"), judged=False).alias("d"))["d"]
    assert plain.to_list() == pytest.approx([0.28, 0.0, -0.28, 0.0, 0.5])
    found = frame.select(difference(pl.col("a"), pl.col("b"), judged=True).alias("d"))["d"]
    # P(a and not b | a or b) − P(b and not a | a or b), for independent a and b.
    assert found.to_list() == pytest.approx([(0.3 * 0.98 - 0.02 * 0.7) / 0.314, 0.0, -0.28 / 0.314, 0.0, 1.0])


@pytest.mark.usefixtures("undrawn")
def test_a_second_ranker_is_weighed_in(files: Files, scan: Scan, tmp_path: Path) -> None:
    index = tmp_path / "index"
    truerank.build_index(files.versions["old"], index, analyser=truerank.lexical.analyser_of("terrier"))
    also = (RankerSpec(f"bm25:{index}"),)
    both = transfer.scan(files.versions, files.qrels, files.topics, out=tmp_path / "both", **options(with_=also))
    assert both.summary["ranker"]["name"].count("+") == 1 and len(both.summary["ranker"]["fingerprints"]) == 2
    assert len(both.summary["probability"]["max"]["slopes"]) == 2
    assert set(both.candidates.filter("max")["topic_id"]) == set(scan.candidates.filter("max")["topic_id"])
    # What is stored are the log odds.
    scores = both.scores["max_score"].to_numpy()
    assert both.scores["max"].to_numpy() == pytest.approx(1 / (1 + np.exp(-scores)), abs=2e-6)


def test_levels_of_topics_by_hand() -> None:
    others = np.array([True, True, False, True, False])
    found = topic_levels(pl.Series(["a", "a", "a", "b", "c"]), np.array([8.0, 6.0, 90.0, 1.0, 7.0]), others)
    mean = 5.0
    expected = [(14 + 5 * mean) / 7] * 3 + [(1 + 5 * mean) / 6, mean]
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": "paragraphs"}, "no passage policy"),
        ({"probability": "raw"}, "percentile"),
        ({"percentile": 100.0}, "percentile: must be at least 0 and below 100, got 100"),
        ({"with_": (RankerSpec("bm25"),), "percentile": 90.0}, "weighed by a curve only"),
        ({"with_": (RankerSpec("bm25"),), "probability": "exp"}, "weighed by a curve only"),
        ({"given": "all"}, "given: 'all' is not one of the choices"),
        ({"given": "judged", "percentile": 90.0}, "nothing can be given"),
        ({"cut_off": 1.5}, "cut_off: must be above 0 and below 1, got 1.5"),
        ({"floor": -0.1}, "floor: must be at least 0 and below 1, got -0.1"),
        ({"evidence": "people"}, "evidence: 'people' is not one of the choices"),
        ({"rel": 9}, "no judgment of grade 9"),
        ({"pair": (("old", "older"),)}, "no version 'older'"),
        ({"pair": ("old=old",)}, "compared with itself"),
        ({"probability": "exp"}, "not a logarithm of a probability"),
        ({"model": "nothing:here"}, "nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_faults_are_named(files: Files, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        transfer.scan(files.versions, files.qrels, files.topics, out=tmp_path, **options(**changes))


def test_a_ranker_that_tells_nothing(files: Files, tmp_path: Path) -> None:
    topics = tmp_path / "topics.tsv"
    topics.write_text("".join(f"{topic}\tunheard{topic}\n" for topic in range(TOPICS)))
    with pytest.raises(InputError, match="does not distinguish judged documents from others"):
        transfer.scan(files.versions, files.qrels, str(topics), out=tmp_path / "out", **options())


def test_nothing_to_compare(files: Files, tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"doc_id": "x", "url": "http://else.org/", "body": "nothing"}\n')
    versions = {"old": files.versions["old"], "new": str(tmp_path / "other.jsonl")}
    with pytest.raises(InputError, match="no judged document can be compared"):
        transfer.scan(versions, files.qrels, files.topics, out=tmp_path / "out", **options())
    with pytest.raises(InputError, match="transfer scan"):
        load_scan(tmp_path)


@pytest.mark.usefixtures("undrawn")
def test_the_command_and_the_card(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["transfer", "scan", "--qrels", files.qrels, "--topics", files.topics, "--model", "bm25", "--json"]
    words += [word for name, path in files.versions.items() for word in ("--version", f"{name}={path}")]
    words += ["--split", "sliding:30:15", "--pair", "old=new", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        main(words)
    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0 and told["sets"]["old>>new MaxP"]["documents"] == 7
    with pytest.raises(SystemExit) as ended:
        main([*words[:-2], "--out", str(tmp_path / "bad"), "--set", "k1=much"])
    assert ended.value.code == 2 and capsys.readouterr().err.count("\n") == 1
    card = (tmp_path / "out" / "card.md").read_text()
    assert f": {TOPICS - 1} judged documents in the versions old, new" in card and "old&gt;&gt;new MaxP" in card


def test_the_default_ranker_is_monot5() -> None:
    assert default_ranker().name.startswith("monot5:castorini/monot5-")
