"""The help lists groups and commands in the order of `COMMANDS`."""

from __future__ import annotations

import re

import pytest

from truerank.cli import main
from truerank.cli.commands import COMMANDS, PANELS


def listed(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The names in the panel of commands."""
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    text = capsys.readouterr().out
    panel = text[text.index("Commands") :]
    return re.findall(r"^[│|] ([a-z][a-z-]*)\s{2,}", panel, re.MULTILINE)


def test_groups_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    names = list(dict.fromkeys(name.split()[0] for name in COMMANDS))
    panels = [name for some in PANELS.values() for name in some]
    assert sorted(panels) == sorted(names)
    shown = listed([], capsys)
    assert shown == [name for some in PANELS.values() for name in names if name in some]


@pytest.mark.parametrize("group", sorted({name.split()[0] for name in COMMANDS if " " in name}))
def test_commands_in_order(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed([group], capsys) == [name.split()[1] for name in COMMANDS if name.startswith(f"{group} ")]
