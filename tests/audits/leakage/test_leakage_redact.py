"""Redaction: no text is left, ids are, and hashes compare only under the same key."""

import stat

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakage_example import audit
from truerank import leakage
from truerank.audits.leakage.redaction import KEY_VARIABLE, hash_text, key_mark, open_key, redact
from truerank.errors import InputError

KEY, OTHER = b"0123456789abcdef", b"fedcba9876543210"
ROWS = [
    ("robust", "301", "title", "log", "q1", "organized crime", 0.97),
    ("robust", "301", "title", "log2", "q9", "organized  crime ", 0.97),
    ("robust", "302", "title", "log", "q2", "polio", 0.95),
]


def test_known_value():
    # HMAC-SHA-256, computed with: printf 'organized crime' | openssl dgst -sha256 -hmac 0123456789abcdef
    assert hash_text("organized crime", KEY) == "hmac:4dd4103a:23b585c4de692929"


def test_no_text_is_left_and_ids_are():
    labels = {"confirmed": 1, "examples": [{"query": "organized crime", "note": "polio"}], "file": "labels.csv"}
    result = audit(ROWS, labels=labels)
    redacted = redact(result, KEY)
    shown = f"{redacted.candidates.to_dicts()} {redacted.neighbours.to_dicts()} {redacted.summary}"
    assert "organized" not in shown and "polio" not in shown and "text of" not in shown
    assert "labels.csv" in shown
    for column in ("test", "topic_id", "field", "source", "query_id", "similarity", "type", "rank"):
        assert redacted.candidates[column].equals(result.candidates[column])
    assert redacted.candidates.schema == result.candidates.schema
    assert redacted.summary["tests"] == result.summary["tests"]
    assert redacted.folder is None


def test_the_same_query_has_the_same_hash_and_another_key_another():
    hashes = redact(audit(ROWS), KEY).candidates["query_text"].to_list()
    assert hashes[0] == hashes[1] != hashes[2]
    assert redact(audit(ROWS), KEY).candidates["query_text"].to_list() == hashes
    others = redact(audit(ROWS), OTHER).candidates["query_text"].to_list()
    assert not set(hashes) & set(others)
    assert key_mark(hashes[0]) == key_mark(hashes[2]) != key_mark(others[0])


def test_redacting_twice_changes_nothing():
    once = redact(audit(ROWS), KEY)
    assert redact(once, KEY).candidates.equals(once.candidates)


def test_verdicts_that_look_like_a_query_stay():
    rows = [
        ("robust", "301", "title", "log", "q1", "CONTAMINATED", 0.97),
        ("robust", "7", "title", "log", "q2", "301", 0.97),
    ]
    redacted = redact(audit(rows), KEY)
    assert redacted.summary["tests"]["robust"]["verdict"] == "CONTAMINATED"
    assert redacted.summary["tests"]["robust"]["leaked_topics"] == ["301", "7"]


@given(st.text(), st.text())
def test_equal_hashes_for_equal_normalised_texts(left, right):
    assert hash_text(f" {left}\t", KEY) == hash_text(left, KEY)
    assert (hash_text(left, KEY) == hash_text(right, KEY)) == (
        pl.Series([hash_text(left, OTHER)]).item() == hash_text(right, OTHER)
    )
    assert key_mark(left) is None or left.startswith("hmac:")


def test_key_from_a_file_or_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    assert open_key(path) == KEY
    monkeypatch.setenv(KEY_VARIABLE, OTHER.decode())
    assert open_key() == OTHER
    assert open_key(path) == KEY
    path.write_bytes(b"short")
    with pytest.raises(InputError, match="a key of 5 bytes can be guessed"):
        open_key(path)
    with pytest.raises(InputError, match="cannot be read"):
        open_key(tmp_path / "absent")
    with pytest.raises(InputError, match="can be guessed"):
        redact(audit(ROWS), b"")


def test_own_key_is_made_once_and_is_private(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    key = open_key()
    path = tmp_path / "config" / "truerank" / "redact.key"
    assert len(key) == 64
    assert open_key() == key == path.read_bytes().strip()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["redact.key"]


def test_own_key_cannot_be_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cannot be kept .* give one with --redact-key FILE"):
        open_key()


def test_documents_are_not_redacted(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"query": "secret words", "positive": "a secret document of some words"}\n')
    (tmp_path / "test.tsv").write_text("1\tsecret topic\n")
    files = [str(tmp_path / "train.jsonl")], [str(tmp_path / "test.tsv")]
    with pytest.raises(InputError, match="only queries are redacted"):
        leakage.audit(*files, encoder="words", redact=True, redact_key=str(_key(tmp_path)))


def _key(folder):
    (folder / "key").write_bytes(KEY)
    return folder / "key"
