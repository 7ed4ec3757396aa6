"""What is not ours: a model's endpoint with hostile answers, and an encoder of another package that lies."""

from __future__ import annotations

import gzip
import json
import random
import time
from pathlib import Path

import pytest

from raw_server import raw_server, response
from truerank.cli.app import main
from truerank.errors import InputError
from truerank.judging.endpoints import Client, Patience, RefusedError, UnavailableError
from truerank.judging.items import Item, Text
from truerank.judging.models import read_answer
from truerank.judging.schemes import load_scheme

_HONEST = json.dumps({"choices": [{"message": {"content": '{"labels": ["leak"]}'}, "finish_reason": "stop"}]}).encode()
ANSWERS = {
    "brackets": response(b"[" * 60_000),
    "objects": response(b'{"a":' * 60_000),
    "digits": response(b'{"choices": ' + b"1" * 5000 + b"}"),
    "not a number": response(b'{"choices": NaN, "usage": 1e999}'),
    "bytes": response(bytes(range(256)) * 8),
    "escapes": response(b"\x1b[2J\x07" * 300),
    "swapped": response(_HONEST.replace(b"[", b"{").replace(b"]", b"}")),
    "no content": response(status=204),
    "a refusal of escapes": response(b"\x1b[2J\n" * 1000, status=400),
    "wait for ever": response(b"x", "Retry-After: " + "9" * 5000, status=429),
    "wait for no number": response(b"x", "Retry-After: nan", status=503),
    "elsewhere": response(b"x", "Location: http://127.0.0.1:9/", status=302),
    "broken gzip": response(gzip.compress(_HONEST, mtime=0)[:-30], "Content-Encoding: gzip"),
    "bomb": response(gzip.compress(bytes(100 << 20), 1, mtime=0), "Content-Encoding: gzip"),
    "cut": response(_HONEST)[:-30],
    "no HTTP": b"\x00\xff" * 100 + b"\r\n\r\n",
}
_WORDS = ("red", "fox", "blue", "sea", "house", "sky")


@pytest.mark.parametrize("name", ANSWERS)
def test_an_endpoint_is_refused_with_a_line(name: str) -> None:
    item = Item("i", "1", "a topic", texts=(Text("query", "a query"),))
    begun = time.monotonic()
    with raw_server(lambda connection, _: connection.sendall(ANSWERS[name])) as address:
        client = Client(address, "tiny", patience=Patience(retries=0, timeout=5, longest_wait=0.1))
        with pytest.raises((UnavailableError, RefusedError, InputError)) as refused:
            read_answer(client.complete([{"role": "user", "content": "a"}]).text, load_scheme("leakage"), item)
        client.stop()
    assert str(refused.value).isprintable() and 0 < len(str(refused.value)) <= 1000
    assert time.monotonic() - begun < 60, "the limit of a hang"


def test_an_honest_endpoint_is_read() -> None:
    """What the hostile answers are changes of."""
    item = Item("i", "1", "a topic", texts=(Text("query", "a query"),))
    with raw_server(lambda connection, _: connection.sendall(response(_HONEST))) as address:
        client = Client(address, "tiny", patience=Patience(retries=0))
        said = read_answer(client.complete([{"role": "user", "content": "a"}]).text, load_scheme("leakage"), item)
        client.stop()
    assert "leak" in repr(said)


@pytest.mark.parametrize("call", [0, 1, 3])
def test_an_encoder_that_lies_is_refused_by_name(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "plugin"))
    import hostile_encoder  # type: ignore[import-not-found]

    draw = random.Random(call)
    texts = [" ".join(draw.choices(_WORDS, k=5)) for _ in range(40)]
    for file, some in (("train.tsv", texts), ("test.tsv", texts[:5])):
        (tmp_path / file).write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(some)))
    words = f"leakage audit --train {tmp_path}/train.tsv --test {tmp_path}/test.tsv --encoder liar --threshold 0.95"
    for lie in hostile_encoder.LIES:
        hostile_encoder.chosen.update(lie=lie, call=call, calls=0)
        with pytest.raises(SystemExit) as ended:
            main([*words.split(), "--mode", "exhaustive", "--out", str(tmp_path / f"{lie} {call}")])
        last = capsys.readouterr().err.strip().splitlines()[-1]
        assert ended.value.code == 2, (lie, last)
        assert "liar" in last and "hostile-encoder 1.0" in last and last.isprintable(), (lie, last)
