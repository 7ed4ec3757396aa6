"""A few seconds of the attacks on the judging server, and by hostile servers, archives, packages and surroundings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ATTACKS = Path(__file__).resolve().parents[2] / "attacks"


def found(name: str, *words: str) -> dict[str, object]:
    """What an attack prints; fails with the case where something broke."""
    command = [sys.executable, str(ATTACKS / f"{name}.py"), "--seed", "7", *words]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return dict(json.loads(finished.stdout))


@pytest.mark.parametrize("name", ["archive", "endpoint"])
def test_a_hostile_server_gets_one_line_out_of_us(name: str) -> None:
    if name == "archive":
        pytest.importorskip("wayback", reason="the extra [pages] is not installed: archives are not asked")
    # A busy machine may be slow; `make attack` holds the bounds of time.
    assert int(str(found(name, "--seconds", "4", "--most-seconds", "60")["cases"])) > 0


@pytest.mark.parametrize("name", ["plugins", "tars", pytest.param("surroundings", marks=pytest.mark.slow)])
def test_what_is_not_ours_gets_one_line_out_of_us(name: str) -> None:
    assert int(str(found(name, "--seconds", "4", "--most-seconds", "120")["cases"])) > 0


@pytest.mark.slow
def test_annotators_work_beside_hostile_clients() -> None:
    pytest.importorskip("starlette", reason="the extra [web] is not installed: the judging server is not attacked")
    result = found("server", "--seconds", "4", "--half-open", "200", "--handles", "256", "--json")
    assert {"half-open", "malformed", "vanishing"} < result.keys()
