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


def test_a_description_is_taken_also_under_a_new_name(monkeypatch):
    def moved(connection: socket.socket, head: str) -> None:
        if "/org/none-such" in head:
            connection.sendall(response(b"", "Location: /api/datasets/org/new", status=307))
        else:
            connection.sendall(response(DESCRIBED))

    assert described(moved, monkeypatch) == (COMMIT, ["train.jsonl"])


def test_the_token_goes_to_the_hub_alone(monkeypatch):
    asked = {}

    def stranger(connection: socket.socket, head: str) -> None:
        asked["elsewhere"] = head
        connection.sendall(response(DESCRIBED))

    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with raw_server(stranger) as elsewhere:
        moved = response(b"", f"Location: {elsewhere}/api/datasets/org/name", status=302)

        def sends_away(connection: socket.socket, head: str) -> None:
            asked["hub"] = head
            connection.sendall(moved)

        described(sends_away, monkeypatch)
    assert "hf_secret" in asked["hub"]
    assert "hf_secret" not in asked["elsewhere"]


def test_a_refusal_names_the_status(monkeypatch):
    with pytest.raises(InputError, match=r"no data set 'org/none-such', or it needs permission \(HTTP 401\)"):
        described(lambda connection, _: connection.sendall(response(b"{}", status=401)), monkeypatch)
