"""Words of verdicts and their levels."""

from __future__ import annotations

import pytest

from truerank.cli.app import main
from truerank.cli.commands import COMMANDS
from truerank.cli.declarations import command_at
from truerank.core.verdict import LEVELS, ORDER, Verdict


def test_every_word_that_a_command_can_fail_on_has_a_level() -> None:
    commands = [command_at(name, path) for name, path in COMMANDS.items()]
    words = {word for command in commands for word in command.verdict_words}
    assert len(words) > 10
    assert words <= LEVELS.keys()
    assert all(LEVELS["UNKNOWN"] != "good" and word.upper() not in ORDER[0] for word in words)


def test_a_word_has_the_level_of_the_table_and_a_figure_its_own() -> None:
    assert Verdict("CLEAN", "Nothing was found.", level="bad").level == "good"
    figure = Verdict("+2.7 %", "It rose.", level="bad")
    assert (figure.level, figure.badge) == ("bad", False)


@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("bad", 1), ("doubt", 1), ("unknown", 1), ("UNKNOWN", 1)])
def test_a_level_can_be_failed_on(fail_on: str, code: int, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.tsv").write_text("1\tjousting rules of england\n")
    (tmp_path / "test.tsv").write_text("1\tjousting rules of england\n")
    line = (
        f"leakage audit --train {tmp_path}/train.tsv --test {tmp_path}/test.tsv --encoder packaged --fail-on {fail_on}"
    )
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert (ended.value.code or 0) == code
    assert "CONTAMINATED" in capsys.readouterr().out


def test_a_level_that_is_none_is_refused(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text("1\ta\n")
    line = f"leakage audit --train {tmp_path}/a.tsv --test {tmp_path}/a.tsv --fail-on awful"
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    assert "contaminated, unknown, clean, bad, doubt, never" in capsys.readouterr().err
