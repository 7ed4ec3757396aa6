"""The help lists groups and commands in the order of `COMMANDS`."""

from __future__ import annotations

import re

import pytest

from truerank.cli import main
from truerank.cli.commands import COMMANDS, MORE, PANELS


def listed(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The names in the panel of commands."""
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    text = capsys.readouterr().out
    panel = text[text.index("Commands") :]
    return re.findall(r"^[│|] ([a-z][a-z-]*)\s{2,}", panel, re.MULTILINE)


def test_the_first_screen_fits_a_terminal_and_names_what_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    names = list(dict.fromkeys(name.split()[0] for name in COMMANDS))
    assert names == [name for named in PANELS.values() for name in named]
    for words in ([], ["--help"], ["--help-all"]):
        with pytest.raises(SystemExit):
            main(words)
        text = capsys.readouterr().out
        every = words == ["--help-all"]
        shown = re.findall(r"^(?:[A-Z]\w+(?: part)?)? +([a-z]+) +[A-Z]", text, re.MULTILINE)
        assert shown == (names if every else names[: -len(PANELS[MORE])])
        assert max(map(len, text.splitlines())) <= 80
        assert every or len(text.splitlines()) <= 24
        assert not every or all(name.split()[-1] in text for name in COMMANDS)
        assert every or all(name in text for name in names)


@pytest.mark.parametrize("group", sorted({name.split()[0] for name in COMMANDS if " " in name}))
def test_commands_in_order(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed([group], capsys) == [name.split()[1] for name in COMMANDS if name.startswith(f"{group} ")]
