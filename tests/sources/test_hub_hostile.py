"""A hub that answers what it should not: a line for the user, and no traceback."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest

from raw_server import raw_server, response
from truerank.errors import InputError
from truerank.sources import hub
from truerank.sources.grammar import parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DESCRIBED = json.dumps({"id": "org/new", "sha": COMMIT, "siblings": [{"rfilename": "train.jsonl"}]}).encode()


BODIES = (
    b"[" * 60_000, b"null", b'{"sha": "../x", "siblings": []}', b'{"sha": 7}', b'{"sha": [], "siblings": 1}',
)  # fmt: skip


def described(answer: Callable[[socket.socket, str], None], monkeypatch: pytest.MonkeyPatch) -> object:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with raw_server(answer) as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        return hub._described(parse("hf:org/none-such"))


@pytest.mark.parametrize(
    "answer",
    [
        *(
            lambda connection, _, body=body: connection.sendall(response(body))
            for body in BODIES
        ),
        lambda connection, _: connection.sendall(response(DESCRIBED, status=500)),
    ],
    ids=["brackets", "null", "path", "number", "kinds", "500"],
)  # fmt: skip
def test_what_is_no_description_is_as_no_network(answer, monkeypatch):
    assert described(answer, monkeypatch) is None


def test_a_refusal_names_the_status(monkeypatch):
    with pytest.raises(InputError, match=r"no data set 'org/none-such', or it needs permission \(HTTP 401\)"):
        described(lambda connection, _: connection.sendall(response(b"{}", status=401)), monkeypatch)
