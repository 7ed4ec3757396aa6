"""The loaders of JSON, YAML and TOML: every fault is one line with the place; what is well formed is what it was."""

from __future__ import annotations

import json
import os
import re
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.loading import (
    check_regular,
    json_file,
    load_json,
    load_toml,
    load_yaml,
    opened,
    text_file,
    toml_file,
    whole_number,
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def _plain(loader: Any, node: Any) -> Any:
    return loader.construct_document(node)


@settings(max_examples=40)
@given(_JSON)
def test_json_is_what_python_reads(value: Any) -> None:
    assert load_json(json.dumps(value), "x.json") == value
    assert load_json(json.dumps(value, ensure_ascii=False).encode("utf-8"), "x.json") == value


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[" * 60_000, "nested more than 100 deep"),
        ("[" * 101 + "]" * 101, "nested more than 100 deep"),
        ("1" * 5000, "a number of 5,000 digits"),
        ("[1, 1" + "0" * 400 + "]", "a number of 401 digits"),
        ("", "Expecting value"),
        ('"\x1b[2J"', "Invalid control character"),
        (b"\xff\xfe[]", "byte 0xff"),
    ],
)
def test_json_faults_are_one_line(text: bytes | str, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        load_json(text, "x.json")
    assert str(caught.value).startswith("x.json:")
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_names_the_line_of_the_fault_or_of_the_record() -> None:
    with pytest.raises(InputError, match=r"^x\.json:3: "):
        load_json('{\n"a": 1,\n]', "x.json")
    with pytest.raises(InputError, match=r"^x\.json:17: "):
        load_json("{", "x.json", line=17)


def test_100_levels_of_json_are_read() -> None:
    value = load_json("[" * 100 + "]" * 100, "x.json")
    for _ in range(99):
        (value,) = value
    assert value == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{" * 2_000, "nested"),
        ("a: \x0c", r"U\+000C is not allowed"),
        ("a: " + "1" * 5000, "digits"),
        ("a: 2024-13-45", "month"),
        ("a: 1:99999999999999999999999999999999999:1e400", "no YAML|^$"),
        ("!!python/object/apply:os.system [x]", "no YAML"),
        ("a: !!binary é", "no YAML"),
        ("a: 1\n---\nb: 2", "no YAML"),
        (b"\xff", "no UTF-8"),
        ("x" * (1 << 20), "more than 512 KiB"),
    ],
)
def test_yaml_faults_are_one_line(text: bytes | str, fault: str) -> None:
    try:
        value = load_yaml(text, "x.yaml", _plain)
    except InputError as error:
        assert str(error).startswith("x.yaml:")
        assert "\n" not in str(error)
        assert re.search(fault, str(error)), str(error)
    else:
        assert "^$" in fault, value


def test_yaml_and_toml_are_what_their_parsers_read() -> None:
    text = "a: [1, 2.5, 'x']\nb: {c: null, d: true}\ne: 2024-01-02\n"
    assert load_yaml(text, "x.yaml", _plain) == yaml.safe_load(text)
    assert load_yaml("", "x.yaml", _plain) is None
    text = 'a = [1, 2.5, "x"]\n[b]\nc.d = true\ne = 2024-01-02\n'
    assert load_toml(text.encode(), "x.toml") == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a=" + "[" * 20_000, "nested more than 100 deep"),
        ("a=" + "[" * 101 + "]" * 101, "nested more than 100 deep"),
        (".".join("a" * 20_000) + "=1", "nested more than 100 deep"),
        ("version = " + "1" * 5000, "digits"),
        ("version = 0x" + "f" * 400, "more than 64 bits"),
        ("a = \x0c1", "no valid TOML"),
        (b"a = '\xff'", "no UTF-8"),
        ("a" * (1 << 20), "more than 512 KiB"),
    ],
)
def test_toml_faults_are_one_line(text: bytes | str, fault: str) -> None:
    begun = time.process_time()
    with pytest.raises(InputError, match=fault) as caught:
        load_toml(text, "x.toml")
    assert str(caught.value).startswith("x.toml:")
    assert "\n" not in str(caught.value)
    assert time.process_time() - begun < 10, "the limit of a hang"


@pytest.mark.parametrize("read", [text_file, json_file, toml_file, lambda path: opened(Path(path))])
def test_a_named_pipe_a_device_and_a_socket_are_refused(read: Any, tmp_path: Path) -> None:
    import socket

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        for place in (pipe, Path("/dev/zero"), tmp_path / "s"):
            with pytest.raises(InputError, match="not a regular file"):
                read(place)
    with pytest.raises(InputError, match="not a regular file"):
        check_regular(pipe)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for bad in (tmp_path / "none", tmp_path, Path("a\0b")):
        with pytest.raises(InputError, match="cannot be read"):
            json_file(bad)
    file = tmp_path / "x.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": "\\ud800 \\ud83d\\ude00"}\r\n')
    assert json_file(file) == {"a": "\ufffd 😀"}
    file.write_bytes(b"a = 1\rb = 2\r\n")
    assert toml_file(file) == {"a": 1, "b": 2}


def test_whole_numbers_of_texts() -> None:
    assert [whole_number(text) for text in ("0", "007", "9" * 18)] == [0, 7, int("9" * 18)]
    for text in ("", "-1", "+1", "1.0", " 1", "\u00b2", "\u0663", "1_0", "9" * 19, "9" * 5000):
        assert whole_number(text) is None
