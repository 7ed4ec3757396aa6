"""The leakage audit end to end, with the packaged encoder on the embedded sample."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

import truerank
from places import DATA, without_progress
from sample_truth import read_truth
from shortcuts import encoded_once, undrawn
from truerank import leakage
from truerank.audits.leakage import sensitivity
from truerank.audits.leakage.estimate import TestEvidence, summarise_test
from truerank.audits.leakage.report import neighbours_table
from truerank.audits.leakage.results import CANDIDATE_SCHEMA, NEIGHBOUR_SCHEMA, KindFound, Sensitivity, SourceCount
from truerank.errors import InputError
from truerank.options import Encoding
from truerank.records import Topic
from truerank.sources import SourceCounts, TopicSet, open_queries, read_topics
from truerank.sources.sample import SAMPLE
from truerank.text.contrasts import contrast
from truerank.text.normalising import normalise
from truerank.vectors.encoders import open_encoder

OPTIONS: dict[str, Any] = {"encoder": "packaged", "backend": "onnx", "fields": ("title",)}
TRAIN = [str(path) for path in SAMPLE.train]
TESTS = [str(path) for path in SAMPLE.tests]


def fails(result: leakage.AuditResult, on: str = "CONTAMINATED") -> bool:
    """Whether `--fail-on` ends with 1."""
    bad = result.verdict_words[: result.verdict_words.index(on) + 1]
    return any(verdict.word in bad for verdict in truerank.summary(result).verdicts)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != "run.log"
    }


class SampleAudits(NamedTuple):
    """At the default threshold, and with labels at the threshold that they give."""

    first: leakage.AuditResult
    labelled: leakage.AuditResult


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Options with a cache that the audits of this module share: blocks of the same texts are encoded once."""
    return {**OPTIONS, "cache": str(tmp_path_factory.mktemp("cache")), "block_size": 1024}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The sample's training queries in small: those that the truth names, and each fiftieth of the others."""
    folder, named = tmp_path_factory.mktemp("few"), {row.query_id for row in read_truth()}
    files = [folder / f"{path.name.partition('.')[0]}.tsv" for path in SAMPLE.train]
    for path, whole in zip(files, TRAIN, strict=True):
        lines = (f"{one.query_id}\t{one.text}\n" for at, one in enumerate(open_queries(whole))
                 if one.query_id in named or not at % 50)  # fmt: skip
        path.write_text("".join(lines), encoding="utf-8")
    return [str(path) for path in files]


@contextmanager
def planting(most: int = 20, others: int = 5) -> Iterator[None]:
    """Audits draw no figure, and plant so many rewordings of each kind, and of each that no verdict rests on."""
    with encoded_once(), undrawn(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(sensitivity, "MOST_PLANTS", most)
        patched.setattr(sensitivity, "_MOST_OTHERS", others)
        yield


def audited(train: list[str], folder: Path, cache: str) -> SampleAudits:
    labels = (str(SAMPLE.labels),)
    options = {
        "variants": {test: str(path) for test, path in SAMPLE.variants.items()},
        "encoder": "packaged", "backend": "onnx", "cache": cache, "block_size": 1024,
    }  # fmt: skip
    first = leakage.audit(train, TESTS, out=folder / "first", **options)
    encoder = first.summary["encoder"]
    threshold = leakage.calibrate(labels=labels, encoder=encoder).chosen
    assert threshold is not None
    chosen = {"threshold": round(threshold, 6), "calibrated_for": encoder, "labels": labels}
    return SampleAudits(first, leakage.audit(train, TESTS, out=folder / "labelled", **options, **chosen))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, cached: dict[str, Any], few: list[str]) -> SampleAudits:
    with planting():
        return audited(few, tmp_path_factory.mktemp("sample"), cached["cache"])


class Truth(NamedTuple):
    """The pairs above the threshold, those of them that are planted leaks, all planted leaks, and look-alikes above."""

    pairs: int
    true: Counter[str]
    planted: Counter[str]
    lookalikes: int

    @property
    def precision(self) -> float:
        return self.true.total() / self.pairs

    @property
    def recall(self) -> float:
        return self.true.total() / self.planted.total()


def against_truth(result: leakage.AuditResult) -> Truth:
    """A pair is a test set, a topic and a normalised query text."""
    texts = {query.query_id: normalise(query.text) for path in TRAIN for query in open_queries(path)}
    known = {(row.test, row.topic_id, texts[row.query_id]): row for row in read_truth()}
    leaks = {pair: row.type for pair, row in known.items() if row.leaks}
    rows = result.leaking().select("test", "topic_id", "query_text").iter_rows()
    above = {(test, topic, normalise(text)) for test, topic, text in rows}
    true = Counter(leaks[pair] for pair in above & leaks.keys())
    return Truth(len(above), true, Counter(leaks.values()), len(above & (known.keys() - leaks.keys())))


@pytest.fixture(scope="module")
def titles(tmp_path_factory: pytest.TempPathFactory, cached: dict[str, Any]) -> leakage.AuditResult:
    return leakage.audit(TRAIN, TESTS, out=tmp_path_factory.mktemp("titles"), **cached)


@pytest.fixture(scope="module")
def few_titles(tmp_path_factory: pytest.TempPathFactory, cached: dict[str, Any], few: list[str]) -> leakage.AuditResult:
    with planting():
        return leakage.audit(few, TESTS, out=tmp_path_factory.mktemp("few-titles"), **cached)


def finds_the_truth(sample: SampleAudits) -> bool:
    contaminated = {"sample-news": "CONTAMINATED", "sample-science": "CONTAMINATED", "sample-heritage": "CLEAN"}
    for audit in sample:
        assert {name: test["verdict"] for name, test in audit.summary["tests"].items()} == contaminated
    first, labelled = map(against_truth, sample)
    assert first.precision > 0.9
    assert 0.55 < first.recall < 0.75
    assert labelled.recall > first.recall
    assert first.true["identical"] > 0.9 * first.planted["identical"]
    assert first.lookalikes == first.pairs - first.true.total()
    leaked = {name: {row.topic_id for row in read_truth() if row.test == name and row.leaks} for name in contaminated}
    found = {name: set(test["leaked_topics"]) for name, test in sample.labelled.summary["tests"].items()}
    assert not found["sample-heritage"] and not leaked["sample-heritage"]
    assert all(len(found[name] & leaked[name]) > 0.9 * len(leaked[name]) for name in ("sample-news", "sample-science"))
    assert sample.labelled.summary["calibrated"]
    assert not sample.first.summary["calibrated"]
    return True


def test_the_truth_of_the_sample_is_found(sample: SampleAudits) -> None:
    assert finds_the_truth(sample)


@pytest.mark.slow
def test_the_truth_is_found_among_all_queries(tmp_path: Path) -> None:
    with planting(most=100, others=40):
        whole = audited(TRAIN, tmp_path, str(tmp_path / "cache"))
    assert finds_the_truth(whole)
    assert whole.labelled.summary["sources"]["sample-clicks"]["read"] == 1900


def test_artifacts_are_what_the_contract_says(sample: SampleAudits, few: list[str]) -> None:
    folder = sample.labelled.folder
    assert folder is not None
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "candidates.parquet", "card.md", "findings.sarif", "leaks.parquet", "manifest.json", "neighbours.parquet",
        "report.html", "run.log", "summary.json", "templates.parquet",
    }  # fmt: skip
    assert pl.read_parquet_schema(folder / "candidates.parquet") == CANDIDATE_SCHEMA
    assert pl.read_parquet_schema(folder / "neighbours.parquet") == NEIGHBOUR_SCHEMA
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["artifacts"] == {name: value for name, value in digests(folder).items() if name != "manifest.json"}
    names = [one["name"] for one in manifest["inputs"] if one["role"] == "train"]
    assert names == ["sample-clicks", "sample-questions"]
    assert manifest["command"] == "leakage audit"
    first = json.loads((folder.parent / "first" / "manifest.json").read_text())
    assert list(first) == list(manifest)
    assert {one["role"]: one["rows"] for one in first["inputs"]}["test"] == len(read_topics(TESTS[-1]).topics)
    assert first["inputs"][0]["sha256"] == hashlib.sha256(Path(few[0]).read_bytes()).hexdigest()
    again = leakage.load_audit(folder)
    assert sample.labelled.summary.items() <= again.summary.items()
    assert again.candidates.equals(sample.labelled.candidates)


def test_pairs_are_those_of_a_plain_comparison(few_titles: leakage.AuditResult, few: list[str]) -> None:
    encoder = open_encoder("packaged", backend="onnx")
    wanted = set()
    texts = {name: {} for name in few_titles.summary["sources"]}
    for name, path in zip(texts, few, strict=True):
        for query in open_queries(path):
            texts[name].setdefault(normalise(query.text), query.query_id)
    encoded = {name: encoder.encode(list(found)) for name, found in texts.items()}
    for path in TESTS:
        topics = read_topics(path)
        vectors = encoder.encode([normalise(topic.title) for topic in topics.topics])
        for name, found in texts.items():
            similarity = vectors @ encoded[name].T
            for row, column in np.argwhere(similarity > 0.91):
                topic = topics.topics[row]
                if not contrast(topic.title, list(found)[column]):
                    wanted.add((topics.name, topic.topic_id, name, list(found.values())[column]))
    undecided = pl.col("differs").is_in(["", "template"]) & (pl.col("similarity") > 0.91)
    above = few_titles.candidates.filter(undecided)
    assert len(wanted) > 100
    assert set(above.select("test", "topic_id", "source", "query_id").iter_rows()) == wanted
    assert above["similarity"].max() <= 1


def test_counts_add_up_from_left_to_right(sample: SampleAudits) -> None:
    fields = sample.labelled.summary["tests"]["sample-news"]["fields"]
    assert list(fields) == ["title", "description", "variant", "union"]
    for counts in fields.values():
        assert list(counts) == ["sample-clicks", "+sample-questions"]
        assert counts["+sample-questions"]["queries"] >= counts["sample-clicks"]["queries"]
    news = sample.labelled.leaking().filter(test="sample-news")
    assert fields["union"]["+sample-questions"] == {
        "topics": news["topic_id"].n_unique(),
        "queries": len({normalise(text) for text in news["query_text"]}),
    }


@pytest.mark.slow
def test_prefilter_finds_the_same_pairs(titles: leakage.AuditResult, tmp_path: Path) -> None:
    filtered = leakage.audit(TRAIN, TESTS, out=tmp_path, **OPTIONS, mode="prefilter")
    key = ["test", "topic_id", "source", "query_id"]
    missed = titles.leaking().join(filtered.leaking(), on=key, how="anti")
    assert filtered.leaking().join(titles.leaking(), on=key, how="anti").is_empty()
    assert missed.height == 0, missed
    recall = filtered.summary["prefilter"]
    assert recall is not None
    assert recall["passed"] < 0.5 * 4788
    assert recall["low"] <= recall["recall"] <= recall["high"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["exhaustive", pytest.param("prefilter", marks=pytest.mark.slow)])
def test_killed_audit_ends_with_the_same_bytes(mode: str, tmp_path: Path) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"{query.query_id}\t{query.text}\n" for query in islice(open_queries(TRAIN[0]), 384)))

    def command(out: str) -> list[str]:
        return [
            sys.executable, "-m", "truerank", "leakage", "audit", "--train", str(few), "--test", TESTS[0],
            "--encoder", "packaged", "--backend", "onnx", "--fields", "title", "--mode", mode, "--block-size", "32",
            "--out", str(tmp_path / out), "--json",
        ]  # fmt: skip

    def blocks(out: Path) -> int:
        return sum(name.endswith(".arrow") for _, _, names in os.walk(out) for name in names)

    first = subprocess.run(command("whole"), check=True, capture_output=True).stdout
    for wanted in (1, 6, 12):
        process = subprocess.Popen(command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and blocks(tmp_path / "killed") < wanted:
            time.sleep(0.01)
        process.kill()
        process.wait()
    again = subprocess.run(command("killed"), check=True, capture_output=True)
    assert again.stdout == first
    assert digests(tmp_path / "killed") == digests(tmp_path / "whole")
    assert without_progress(again.stderr.decode()) == ""


@pytest.mark.slow
def test_other_audits_keep_their_unfinished_work(tmp_path: Path) -> None:
    """Killed A, whole B, then A again in one folder: the same bytes as A alone, from the blocks that A had saved."""

    def run(out: str, fields: str) -> subprocess.Popen[str]:
        command = [
            sys.executable, "-m", "truerank", "leakage", "audit", "--train", TRAIN[0], "--test", TESTS[0],
            "--encoder", "packaged", "--backend", "onnx", "--fields", fields, "--block-size", "128",
            "--out", str(tmp_path / out),
        ]  # fmt: skip
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    alone = run("alone", "title").communicate()[0]
    killed = run("shared", "title")
    work = tmp_path / "shared" / ".work"
    while killed.poll() is None and not (saved := [one for one in work.rglob("exact*/*") if one.suffix != ".tmp"]):
        time.sleep(0.02)
    killed.kill()
    killed.communicate()
    (folder,) = (path for path in work.iterdir() if path.is_dir())
    run("shared", "description").communicate()
    log = [json.loads(line) for line in (tmp_path / "shared" / "run.log").read_text().splitlines()]
    assert [line["work"] for line in log if line["event"] == "unfinished work of another audit"] == [folder.name]
    assert all(path.exists() for path in saved)
    assert run("shared", "title").communicate()[0].replace("shared", "alone") == alone
    assert digests(tmp_path / "shared") == digests(tmp_path / "alone")
    assert not work.exists()


@pytest.mark.slow
def test_ray_gives_the_same_bytes(titles: leakage.AuditResult, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: the audit on a cluster is not tested")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        leakage.audit(TRAIN, TESTS, out=tmp_path / "ray", **OPTIONS, engine="ray", block_size=1024)
    finally:
        ray.shutdown()
    assert titles.folder is not None
    assert digests(tmp_path / "ray") == digests(titles.folder)


@pytest.mark.slow
def test_cache_serves_what_was_encoded_before(titles: leakage.AuditResult, tmp_path: Path) -> None:
    options = {**OPTIONS, "cache": str(tmp_path / "cache")}
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"{query.query_id}\t{query.text}\n" for query in islice(open_queries(TRAIN[1]), 300)))
    leakage.audit([str(few)], TESTS, **options)
    files = {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    both = leakage.audit(TRAIN[1:], TESTS, **options)
    alone = titles.candidates.filter(source="sample-questions")
    # How common a word is depends on all sources.
    assert alone.height and both.candidates.drop("rank", "shared").equals(alone.drop("rank", "shared"))
    assert files < {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}


@pytest.mark.slow
def test_redacted_audit_holds_no_text(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("a key of more than sixteen bytes")
    result = leakage.audit(TRAIN[:1], TESTS[:1], out=tmp_path / "out", **OPTIONS, redact=True, redact_key=str(key))
    assert result.candidates.height > 50
    written = b"".join(
        path.read_bytes() for path in (tmp_path / "out").iterdir() if path.suffix in (".html", ".json", ".log")
    ).decode()
    titles = [topic.title for topic in read_topics(TESTS[0]).topics]
    assert not [title for title in titles if title in written]
    texts = pl.concat(
        [result.candidates["query_text"], result.neighbours["query_text"], result.neighbours["topic_text"]]
    )
    assert texts.str.starts_with("hmac:").all()


@pytest.mark.slow
def test_nothing_is_new_since_the_same_audit(
    titles: leakage.AuditResult, cached: dict[str, Any], tmp_path: Path
) -> None:
    less = leakage.audit(TRAIN[:1], TESTS, out=tmp_path / "less [1] *", **cached)
    same = leakage.audit(TRAIN, TESTS, **cached, baseline=str(titles.folder))
    more = leakage.audit(TRAIN, TESTS, **cached, baseline=str(less.folder))
    assert fails(titles)
    assert not fails(same)
    assert fails(more)
    assert same.folder is None


def test_labels_decide_the_verdict(
    few_titles: leakage.AuditResult, cached: dict[str, Any], few: list[str], tmp_path: Path
) -> None:
    def labelled(label: str) -> leakage.AuditResult:
        path = tmp_path / f"{label}.csv"
        pairs = few_titles.candidates.filter(test="sample-news").select("topic_id", "query_id", "query_text")
        pairs.with_columns(label=pl.lit(label)).write_csv(path)
        with planting():
            return leakage.audit(few, TESTS[:1], **cached, labels=(str(path),))

    no, yes = labelled("no leak"), labelled("leak")
    assert no.summary["tests"]["sample-news"]["verdict"] == "CLEAN"
    assert "pairs to be none. Of planted changes" in no.summary["tests"]["sample-news"]["sentence"]
    assert no.leaking().is_empty() and set(no.candidates.filter(test="sample-news")["standing"]) == {"dismissed"}
    assert yes.summary["tests"]["sample-news"]["verdict"] == "CONTAMINATED"
    assert yes.summary["labels"]["precision_above"] == 1.0
    assert no.summary["labels"]["above"] == {
        "leaks": 0,
        "not_leaks": few_titles.leaking().filter(pl.col("similarity") > 0.91, test="sample-news").height,
        "unjudged": 0,
    }


def test_pairs_of_common_words_are_weak() -> None:
    train = {f"q{number}": f"price of item {number}" for number in range(200)}
    train |= {"a": "price of the price", "b": "jousting rules of england"}
    test = {"1": "of price", "2": "england jousting rule"}
    options, encoding = leakage.AuditOptions(threshold=0.99), Encoding("packaged", "onnx")
    found = leakage.audit(train, test, options=options, encoding=encoding)
    shared = dict(found.candidates.select("query_id", "shared").iter_rows())
    assert shared["a"] > 0.9 and shared["b"] < 0.01
    assert found.summary["tests"]["test"]["doubts"]["common"] == 1
    assert any("1 share only words" in note for note in found.summary["tests"]["test"]["notes"])


def test_floor_adds_pairs_below_the_threshold(
    few_titles: leakage.AuditResult, cached: dict[str, Any], few: list[str]
) -> None:
    with planting():
        low = leakage.audit(few, TESTS, **cached, floor=0.7)
    assert low.candidates["similarity"].min() > 0.7
    assert low.candidates.height > few_titles.candidates.height
    assert low.leaking().height == few_titles.leaking().height
    assert low.summary["tests"] == few_titles.summary["tests"]


def checked(**found: tuple[int, int]) -> Sensitivity:
    """A sensitivity check of titles that found these numbers of plants of these kinds."""
    kinds = [
        KindFound(
            field="title", kind=kind.replace("_", " "), planted=planted, found=seen, share=seen / planted,
            low=0.0, high=1.0, by={},
        )
        for kind, (seen, planted) in found.items()
    ]  # fmt: skip
    return Sensitivity(kinds=kinds, other_topics={})


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        ({"order": (95, 100), "synonym": (3, 100)}, "CLEAN", "found of 1 kind, fewer of 1;"),
        ({"order": (95, 100), "synonym": (2, 2)}, "CLEAN", "fewer of 0, and too few could be planted of 1;"),
        ({"order": (94, 100)}, "UNKNOWN", "order (94 of 100 by title)"),
        ({"order": (95, 100), "typing_error": (9, 10)}, "UNKNOWN", "typing error (9 of 10 by title)"),
        ({}, "UNKNOWN", "no changed copy of them could be planted"),
    ],
)
def test_clean_needs_an_audit_that_sees(found: dict[str, tuple[int, int]], verdict: str, words: str) -> None:
    count = SourceCount(read=10, distinct=0, distinct_estimated=False, empty=0, repaired=0, skipped=0)
    topics = TopicSet(name="t", topics=(Topic("1", "x"),), counts=SourceCounts(), fields=("title",))
    known = TestEvidence(pl.DataFrame(schema=CANDIDATE_SCHEMA), checked(**found), 0.91)
    summary = summarise_test(topics, known, {"log": count}, prefilter=None, fields=("title",))
    assert summary["verdict"] == verdict
    assert words in summary["sentence"]
    assert bool(summary["settle"]) == (verdict == "UNKNOWN" and bool(found))


#: Topic, query, evidence and what people said of pairs that are leaks.
LIKE, LIKE_TOO, LIKE_THREE = (
    ("1", "does prednisolone raise blood sugar", "encoder", None),
    ("2", "club of the other town", "encoder+letters", None),
    ("3", "error e21 of a dryer", "encoder", None),
)


@pytest.mark.parametrize(
    ("rows", "verdict", "words"),
    [
        ([LIKE], "UNKNOWN", "1 of 12 queries looks like a training query; nobody has confirmed it."),
        ([LIKE, LIKE_TOO], "UNKNOWN", "2 of 12 queries look like a training query; nobody has confirmed it."),
        ([LIKE, LIKE_TOO, LIKE_THREE], "CONTAMINATED", "3 of 12 queries (25%) match a training query"),
        ([LIKE, ("1", "DOES prednisone raise, blood sugar?", "encoder", None)], "CONTAMINATED", "1 of 12"),
        ([LIKE, ("2", "club of a town", "encoder+words", None)], "CONTAMINATED", "2 of 12"),
        ([LIKE, ("2", "the club of one town", "encoder+shingles", None)], "CONTAMINATED", "2 of 12"),
        ([LIKE, (*LIKE_TOO[:3], True)], "CONTAMINATED", "1 confirmed by people and 1 by a similarity above 0.91"),
        ([(*LIKE[:3], False)], "CLEAN", "people judged 1 pair to be none"),
    ],
)
def test_a_few_that_only_look_alike_are_left_to_people(
    rows: list[tuple[str, str, str, bool | None]], verdict: str, words: str
) -> None:
    texts = {"1": "does prednisone raise blood sugar", "2": "club of one town", "3": "error e20 of a dryer"}
    pairs = pl.DataFrame(
        [
            {
                "test": "t", "topic_id": topic, "field": "title", "topic_text": texts[topic], "source": "log",
                "query_id": f"q{number}", "query_text": query, "similarity": 0.95, "evidence": evidence, "differs": "",
                "standing": "dismissed" if judged is False else "leak", "judged": judged,
            }
            for number, (topic, query, evidence, judged) in enumerate(rows)
        ],
        CANDIDATE_SCHEMA | {"judged": pl.Boolean},
    )  # fmt: skip
    count = SourceCount(read=10, distinct=10, distinct_estimated=False, empty=0, repaired=0, skipped=0)
    topics = tuple(Topic(str(number), texts.get(str(number), "x")) for number in range(1, 13))
    known = TestEvidence(pairs, checked(order=(100, 100)), 0.91, labelled=any(row[3] is not None for row in rows))
    summary = summarise_test(
        TopicSet(name="t", topics=topics, counts=SourceCounts(), fields=("title",)), known, {"log": count},
        prefilter=None, fields=("title",),
    )  # fmt: skip
    assert summary["verdict"] == verdict
    assert words in summary["sentence"]
    assert len(summary["leaked_topics"]) == len({row[0] for row in rows if row[3] is not False})
    if verdict == "UNKNOWN":
        assert [f"{row[0]} – q{number}" in summary["settle"][0] for number, row in enumerate(rows)] == [True] * len(
            rows
        )


def titanic(folder: Path, mode: str = "exhaustive", **options: Any) -> leakage.AuditResult:
    """An audit whose one leak has the topic's words and a similarity below the threshold, and one without any."""
    folder.mkdir(exist_ok=True)
    (folder / "log.tsv").write_text("1\twhere is the sinking titanic\n2\tbest pizza in town\n")
    (folder / "ship.tsv").write_text("1\thow did the titanic sink\n")
    (folder / "other.tsv").write_text("1\train forest loss\n2\thubble telescope achievements\n")
    tests = [str(folder / "ship.tsv"), str(folder / "other.tsv")]
    out = folder / f"audit-{mode}-{len(options)}"
    return leakage.audit([str(folder / "log.tsv")], tests, out=out, **OPTIONS, mode=mode, **options)


@pytest.mark.parametrize("mode", ["exhaustive", pytest.param("prefilter", marks=pytest.mark.slow)])
def test_a_known_leak_below_the_threshold_is_not_clean(mode: str, tmp_path: Path) -> None:
    found = titanic(tmp_path, mode)
    ship, other = found.summary["tests"]["ship"], found.summary["tests"]["other"]
    assert (ship["verdict"], other["verdict"]) == ("UNKNOWN", "CLEAN")
    assert {name: ship["doubts"][name] for name in ("topics", "queries", "pairs")} == dict.fromkeys(
        ("topics", "queries", "pairs"), 1
    )
    assert ship["fields"]["union"]["log"] == {"topics": 0, "queries": 0}
    assert "truerank judge new" in ship["settle"][0]
    assert found.candidates.select("test", "query_text", "evidence", "standing").rows() == [
        ("ship", "where is the sinking titanic", "words", "doubt")
    ]
    assert found.leaking().is_empty()
    assert not fails(found)
    assert fails(found, "UNKNOWN")
    assert "UNKNOWN: ship" in repr(found) and "1 pair of 1 query is in doubt" in " ".join(repr(found).split())
    report = (tmp_path / f"audit-{mode}-0" / "report.html").read_text()
    assert "LEAK02" in report
    assert "Pairs in doubt: few content words" in report


def test_alike_texts_are_leaks_in_doubt_or_dismissed(tmp_path: Path) -> None:
    topics = {
        "1": "zinc lowers the weight of mice by 20 percent", "2": "zinc increases the bone density of old mice",
        "3": "tide tables of northern harbours in winter", "4": "heron colony",
    }  # fmt: skip
    log = [
        "zinc lowers the weight of mice by 30 percent", "zinc does not increase the bone density of old mice",
        "winter harbours northern tide table", "colonies of herons", "bread",
    ]  # fmt: skip
    (tmp_path / "log.tsv").write_text("".join(f"{at}\t{text}\n" for at, text in enumerate(log)))
    found = leakage.audit([str(tmp_path / "log.tsv")], topics, **OPTIONS, threshold=0.9)
    pairs = found.candidates.select("topic_id", "query_text", "differs", "standing").rows()
    assert pairs == [
        ("1", log[0], "number", "doubt"), ("2", log[1], "negation", "dismissed"), ("3", log[2], "", "leak"),
        ("4", log[3], "", "doubt"),
    ]  # fmt: skip
    one = found.summary["tests"]["test"]
    assert (one["verdict"], one["leaked_topics"], one["doubts"]["pairs"], one["dismissed"]) == (
        "CONTAMINATED", ["3"], 2, 1,
    )  # fmt: skip
    assert one["sentence"].startswith("1 of 4 queries (25%) matches a training query: 1 by ")
    assert found.summary["sentence"] == " ".join([one["sentence"], *one["settle"]])
    # What people judged is gone, and an audit of what is left is CLEAN.
    cleaned = leakage.clean(found, tmp_path / "log.tsv", out=tmp_path / "clean.tsv")
    assert (cleaned.removed, cleaned.left) == (3, {"different in what decides": 1})
    again = leakage.audit([str(tmp_path / "clean.tsv")], topics, **OPTIONS, threshold=0.9).summary
    assert again["verdicts"] == [{"subject": "test", "word": "CLEAN", "level": "good", "sentence": again["sentence"]}]
    assert len(again["sentence"].split()) < 45
    rows = [{"query": text} for text in log]
    assert leakage.guard(rows, topics, encoder="packaged", threshold=0.9).dataset == [rows[1], rows[4]]


#: Look-alikes: a frame, and what stands in it in the topics and in the log.
_INNOCENTS = {
    "error {} windows update": ("0x80070005 0x8007000d 0x80a7f3c1 0xc1900101", "0x80070002 0x8007000e 0x80a7f3c2"),
    "how to treat worms in {}": ("sheep llamas alpacas", "goats donkeys camels ferrets"),
    "premier league {} top scorers": ("2015/16 2017/18 2019/20", "2016/17 2018/19 2020/21"),
    "is {} mg of ibuprofen safe": ("100 400 800", "200 600 1200"),
    "delhi se {} jane wali train ka time table kya hai": ("jaipur lucknow agra surat", "indore kanpur bhopal varanasi"),
    "boiling point of {} at sea level": ("ethanol acetone", "hexane toluene benzene"),
    "{} in pandas": ("ValueError KeyError", "AttributeError TypeError"),
    "function of {} in mice": ("BRCA1 CDK4 MAPK1", "BRCA2 CDK6 MAPK3"),
}  # fmt: skip


@pytest.mark.parametrize("frame", _INNOCENTS)
def test_a_frame_with_another_thing_in_it_is_no_leak(frame: str) -> None:
    topics, log = ({str(at): frame.format(one) for at, one in enumerate(side.split())} for side in _INNOCENTS[frame])
    with planting(1, 1):
        found = leakage.audit(log, topics, encoder="packaged")
    assert found.leaking().is_empty()
    assert set(found.candidates.filter(standing="doubt")["differs"]) <= {"number"}


def test_an_instruction_around_queries_hides_no_leak(tmp_path: Path) -> None:
    log = [f"cost of a {word}" for word in "boat kite drum harp loom plough anvil sledge quern".split()]
    lines = [
        *(f"search: {query}" for query in [*log, "hubble telescope achievements"]),
        "hubble telescope achievements",
    ]
    (tmp_path / "log.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(lines)))
    (tmp_path / "test.tsv").write_text("1\train forest loss\n2\thubble telescope achievements\n")
    found = leakage.audit([str(tmp_path / "log.tsv")], [str(tmp_path / "test.tsv")], **OPTIONS)
    one = found.summary["tests"]["test"]
    assert (one["verdict"], one["leaked_topics"]) == ("CONTAMINATED", ["2"])
    assert any("begin or end with “search:”" in note for note in one["notes"])
    assert found.summary["sources"]["log"]["carrier"] == ["search: "]
    # Both texts as they were read, so that a cleaning meets them.
    pairs = found.leaking().select("query_text", "similarity", "type").sort("query_text").rows()
    assert pairs == [(lines[10], 1.0, "identical"), (lines[9], 1.0, "identical")]


def test_an_instruction_around_topics_hides_no_leak(tmp_path: Path) -> None:
    words = "boat kite drum harp loom plough anvil sledge quern chisel".split()
    around, log = "Given a web search query, retrieve passages: {}", [f"cost of a {word}" for word in words]
    topics = {word: around.format(f"who made the first {word}") for word in words}
    (tmp_path / "log.tsv").write_text(
        "".join(f"{at}\t{text}\n" for at, text in enumerate([*log, "who made the first harp"]))
    )
    found = leakage.audit([str(tmp_path / "log.tsv")], topics, **OPTIONS)
    one = found.summary["tests"]["test"]
    assert one["leaked_topics"] == ["harp"]
    assert f"Queries that begin or end with “{around[:-3]}” were compared without it." in one["notes"]


@pytest.mark.parametrize(
    ("texts", "verdict"),
    [
        ([f"doc{number}" for number in range(40)], "UNKNOWN"),
        (["7187158", "D12_3", "b2e89334-33f9", "who made the first kite"], "UNKNOWN"),
        (["mp3", "ps2", "rabies", "tide tables", "how to bake bread"], "CLEAN"),
        (["deafness", "rabies", "heraldry"], "CLEAN"),
        (["東京2020の歴史", "犬の寿命は何年ですか", "富士山の高さ", "猫"], "CLEAN"),
    ],
)
def test_ids_in_place_of_queries_are_not_clean(texts: list[str], verdict: str, tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(texts)))
    (tmp_path / "test.tsv").write_text("1\train forest loss\n2\thubble telescope achievements\n")
    found = leakage.audit([str(tmp_path / "log.tsv")], [str(tmp_path / "test.tsv")], **OPTIONS)
    one = found.summary["tests"]["test"]
    assert (one["verdict"], f"such as “{texts[0]}”: these are ids" in one["sentence"]) == (
        verdict,
        verdict == "UNKNOWN",
    )


def test_labels_without_an_encoder_name_pairs_and_plants_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("1\thow do you mend a roof of straw\n2\ttide tables of the coast\n")
    (tmp_path / "test.tsv").write_text("1\tthatching repairs\n2\tcoast harbour tide tables\n")
    said = ["1,how do you mend a roof of straw,leak"]
    said += [f"2,{text},leak" for text in ("harbour tide tables", "coast tide tables", "coast harbour tables")]
    (tmp_path / "labels.csv").write_text("\n".join(("topic_id,query_text,label", *said)) + "\n")
    files = [str(tmp_path / name) for name in ("log.tsv", "test.tsv", "labels.csv")]
    found = leakage.audit([files[0]], [files[1]], encoder="words", labels=(files[2],))
    assert found.summary["tests"]["test"]["leaked_topics"] == ["1"]


def test_a_test_set_that_was_not_read_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("1\twhich birds nest in chimneys\n2\ttide tables of the coast\n")
    (tmp_path / "ids.tsv").write_text("".join(f"{number}\tdoc-{number}\n" for number in range(30)))
    (tmp_path / "blank.tsv").write_text("1\train forest loss\n2\t\n3\thubble telescope\n4\t \n")
    tests = [str(tmp_path / name) for name in ("ids.tsv", "blank.tsv")]
    found = leakage.audit([str(tmp_path / "log.tsv")], tests, **OPTIONS).summary["tests"]
    assert [found[name]["verdict"] for name in ("ids", "blank")] == ["UNKNOWN", "UNKNOWN"]
    assert "such as “doc-0”: these are ids" in found["ids"]["sentence"]
    assert "2 of 4 queries have no text" in found["blank"]["sentence"]


def test_texts_in_damaged_encodings_are_compared_mended(tmp_path: Path) -> None:
    texts = ["où se trouve la bibliothèque brûlée", "Когда начался Карибский кризис?", "rain forest loss"]
    damaged = [text.encode().decode("latin-1") for text in texts[:2]]
    twice = damaged[0].encode().decode("latin-1")
    lines = [*damaged, twice, "où est le café Müller", "NÃO Ã© 5 £"]
    (log := tmp_path / "log.jsonl").write_text(
        "".join(json.dumps({"id": f"a{at}", "text": text}) + "\n" for at, text in enumerate(lines))
    )
    (tmp_path / "test.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(texts)))
    found = leakage.audit([str(log)], [str(tmp_path / "test.tsv")], **OPTIONS)
    assert found.summary["tests"]["test"]["leaked_topics"] == ["0", "1"]
    assert set(found.leaks["topic_id"]) == {"0", "1"}
    assert found.leaking()["similarity"].min() > 0.999
    cleaned = leakage.clean(found, str(log), out=tmp_path / "clean.jsonl")
    kept = [json.loads(line)["id"] for line in (tmp_path / "clean.jsonl").read_text().splitlines()]
    assert kept == ["a3", "a4"], cleaned


def test_the_same_text_that_the_encoder_cannot_read_is_said_to_be_the_same(tmp_path: Path) -> None:
    thai = ["หมีขั้วโลกอาศัยอยู่ที่ไหน", "ภูเขาไฟเกิดขึ้นได้อย่างไร"]
    (tmp_path / "log.tsv").write_text(f"1\t{thai[0]}\n2\tkite\n3\train forest loss\n")
    (tmp_path / "thai.tsv").write_text(f"1\t{thai[0]}\n2\t{thai[1]}\n")
    (tmp_path / "both.tsv").write_text(f"1\t{thai[0]}\n2\train forest loss\n")
    tests = [str(tmp_path / "thai.tsv"), str(tmp_path / "both.tsv")]
    found = leakage.audit([str(tmp_path / "log.tsv")], tests, **OPTIONS).summary["tests"]
    assert found["thai"]["sentence"] == "1 of 2 queries (50%) matches a training query: 1 by the same text."
    assert found["both"]["sentence"].endswith("1 by a similarity above 0.91 and 1 by the same text.")


def test_a_topic_inside_a_longer_query_is_not_clean(tmp_path: Path) -> None:
    text = "which birds nest in chimneys of old mills"
    (tmp_path / "log.tsv").write_text(
        f"1\tRead the page and answer with its number. Question for you, {text}\n2\tkite\n"
    )
    (tmp_path / "test.tsv").write_text(f"1\t{text}\n2\train forest loss\n")
    found = leakage.audit([str(tmp_path / "log.tsv")], [str(tmp_path / "test.tsv")], **OPTIONS)
    one = found.summary["tests"]["test"]
    assert (one["verdict"], one["doubts"]["pairs"]) == ("UNKNOWN", 1)
    assert found.candidates["evidence"].to_list() == ["inside"]
    (row,) = [row for row in one["sensitivity"] if row["kind"] == "inside a longer query"]
    assert row["planted"] == row["found"] > 0


@pytest.mark.parametrize(("label", "verdict"), [("no leak", "CLEAN"), ("leak", "CONTAMINATED")])
def test_labels_settle_a_known_leak(label: str, verdict: str, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(f"topic_id,query_id,query_text,label\n1,1,where is the sinking titanic,{label}\n")
    found = titanic(tmp_path, labels=(str(labels),))
    assert found.summary["tests"]["ship"]["verdict"] == verdict
    assert found.summary["tests"]["ship"]["doubts"]["pairs"] == 0
    assert found.candidates.filter(test="ship")["standing"].to_list() == ["leak" if label == "leak" else "dismissed"]
    assert found.folder is not None
    (run,) = json.loads((found.folder / "findings.sarif").read_text())["runs"]
    assert {one["ruleId"] for one in run["results"]} == ({"LEAK01"} if label == "leak" else set())


@pytest.mark.parametrize(
    ("counts", "silent", "verdict", "words"),
    [
        (SourceCounts(read=10), 0, "CLEAN", "None of 1 query matches one of 10 training queries. Of planted"),
        (SourceCounts(read=10, skipped=2), 0, "UNKNOWN", "2 records of log could not be read"),
        (SourceCounts(read=10, empty=10), 0, "UNKNOWN", "log holds no query"),
        (SourceCounts(read=10), 1, "UNKNOWN", "1 query has no text"),
    ],
)
def test_nothing_found_is_not_clean_where_something_was_not_read(
    counts: SourceCounts, silent: int, verdict: str, words: str
) -> None:
    count = SourceCount(
        read=counts.read, distinct=0, distinct_estimated=False, empty=counts.empty, repaired=0, skipped=counts.skipped
    )
    topics = TopicSet(name="t", topics=(Topic("1", "x"),), counts=SourceCounts(), fields=("title",))
    known = TestEvidence(pl.DataFrame(schema=CANDIDATE_SCHEMA), checked(order=(10, 10)), 0.91, silent=silent)
    found = summarise_test(topics, known, {"log": count}, prefilter=None, fields=("title",))
    assert found["verdict"] == verdict
    assert words in found["sentence"]
    assert found["fields"] == {
        "title": {"log": {"topics": 0, "queries": 0}}, "union": {"log": {"topics": 0, "queries": 0}},
    }  # fmt: skip


def test_neighbours_of_a_topic(few_titles: leakage.AuditResult) -> None:
    topic = few_titles.leaking()["topic_id"][0]
    table = neighbours_table(few_titles, topic)
    similarity = [row[3] for row in table.rows]
    assert len(table.rows) == 10
    assert similarity == sorted(similarity, reverse=True)
    with pytest.raises(InputError, match="no neighbours of a topic 'nine'"):
        neighbours_table(few_titles, "nine")


@pytest.mark.slow
@pytest.mark.shared
def test_real_log_against_sentence_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from truerank.vectors.encoders.model_folder import packaged_folder

    lines = list(open_queries(str(DATA / "query-logs/terabyte05-efficiency.tsv.gz")))[:3000]
    log = tmp_path / "log.tsv"
    log.write_text("".join(f"{query.query_id}\t{query.text}\n" for query in lines), encoding="utf-8")
    topics = read_topics(str(DATA / "topics/robust04.trec.txt"))
    result = leakage.audit([str(log)], [str(DATA / "topics/robust04.trec.txt")], **OPTIONS, threshold=0.7)
    model = transformers.SentenceTransformer(str(packaged_folder()), device="cpu")
    first: dict[str, str] = {}
    for query in lines:
        first.setdefault(normalise(query.text), query.query_id)
    vectors = model.encode(list(first), normalize_embeddings=True)
    similarity = model.encode([topic.title for topic in topics.topics], normalize_embeddings=True) @ vectors.T
    ids = list(first.values())
    sure = {(topics.topics[row].topic_id, ids[column]) for row, column in np.argwhere(similarity > 0.7005)}
    possible = {(topics.topics[row].topic_id, ids[column]) for row, column in np.argwhere(similarity > 0.6995)}
    found = set(result.leaking().select("topic_id", "query_id").iter_rows())
    assert len(sure) > 5
    assert sure <= found <= possible
