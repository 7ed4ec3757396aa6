"""Every command that is built from its function: what it declares, and the vocabulary it keeps to."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import typing
from pathlib import Path

import pytest

import truerank
from truerank.cli import main
from truerank.cli.commands import COMMANDS
from truerank.cli.declarations import Command, command_at
from truerank.cli.rules import rules
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.options import Scoring

#: Names that other words replace.
NOT_ALLOWED = {
    "alpha", "annotator", "bootstrap", "by", "draws", "form", "name", "permutations", "policy", "relevance",
    "relevant", "relevant_from", "rule", "top_k", "topic_field",
}  # fmt: skip


@pytest.fixture(scope="module")
def commands() -> list[Command]:
    return [command_at(name, path) for name, path in COMMANDS.items()]


def test_no_option_has_a_name_that_was_replaced(commands: list[Command]) -> None:
    used = {option.name.rstrip("_") for command in commands for option in command.options}
    assert not used & NOT_ALLOWED


def test_a_name_has_one_type_of_value_and_one_default(commands: list[Command]) -> None:
    """An option that several commands have reads the same, and ties, missing topics and the like have one default."""
    defaults: dict[str, set[object]] = {}
    for command in commands:
        for option in command.options:
            if not option.required and option.name != "depth":
                defaults.setdefault(option.name, set()).add(str(option.default))
    for name in ("ties", "missing", "rel", "seed", "confidence", "correction", "field", "k", "preset"):
        if name != "k":
            assert len(defaults.get(name, {0})) == 1, name
    # One process, or what the engine takes where `--engine` is an option too.
    assert defaults["workers"] <= {"1", "None"}


def test_every_command_is_described_and_returns_a_result(commands: list[Command]) -> None:
    for command in commands:
        assert command.summary and command.examples, command.name
        assert isinstance(command.result, type) and issubclass(command.result, Result), command.name
        for option in command.options:
            assert option.help.endswith((".", "]")), (command.name, option.name)


def test_examples_have_options_that_exist(commands: list[Command]) -> None:
    for command in commands:
        flags = {flag for option in command.options for flag in option.flags} | {"--json", "--format", "--fail-on"}
        for example in command.examples:
            assert example.startswith(f"truerank {command.name} ")
            used = {word for word in example.split() if word.startswith("-")}
            assert used <= flags, (command.name, used - flags)


def test_results_have_a_module_that_shows_them(commands: list[Command]) -> None:
    for command in commands:
        shown = importlib.import_module(command.result._shown_in)
        assert shown.__doc__
        assert not {"save", "html", "text"} & {
            name for name, _ in inspect.getmembers(command.result, inspect.isfunction)
        }, command.name


def test_results_are_equal_by_what_they_hold() -> None:
    for path in COMMANDS.values():
        importlib.import_module(path.partition(":")[0])
    kinds = [Result]
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert kind.__eq__ is Result.__eq__, f"{kind.__name__} needs eq=False"
    qrels, runs = {"1": {"a": 1}, "2": {"b": 1}}, {"x": {"1": {"a": 0.5}}, "y": {"1": {"c": 1}, "2": {"b": 1}}}
    others = {**runs, "y": {"1": {"a": 1}}}
    for command in (truerank.evaluate, truerank.compare):
        one, same, other = (command(qrels, given, measures="P@1 nDCG@10") for given in (runs, runs, others))
        assert one == same and hash(one) == hash(same) and one != other and one != qrels
    train = ["how tall is it", "who is there"]
    one, same, other = (truerank.leakage.audit(train[:n], train[:1], encoder="packaged") for n in (2, 2, 1))
    assert one == same and one != other


def test_errors_name_options_as_the_caller_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels, run, out = {"1": {"a": 1}}, {"1": {"a": 0.5}}, tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_text("{}")
    fault = f"{out}: holds the manifest.json of another program, which would be lost."
    with pytest.raises(InputError) as raised:
        truerank.evaluate(qrels, run, out=out)
    assert str(raised.value) == f"{fault} choose another place with `out`, or replace it with overwrite=True."
    with pytest.raises(SystemExit):
        main(["evaluate", "--qrels", "x", "--run", "y", "--out", str(out)])
    remedy = "choose another place with --out, or replace it with --overwrite."
    assert capsys.readouterr().err == f"{fault} {remedy}\n"
    truerank.evaluate(qrels, run, out=out, overwrite=True)
    assert json.loads((out / "manifest.json").read_text())["command"] == "evaluate"


@pytest.mark.parametrize(
    ("flags", "keywords"),
    [
        ("use --backend torch, or --no-tokens", 'use backend="torch", or `no_tokens`'),
        ("name it (--columns expected=COLUMN)", 'name it (columns="expected=COLUMN")'),
        ("give --out a name; lower --rest or --min-size.", "give `out` a name; lower `rest` or `min_size`."),
        ("use --set k=v", 'use set_="k=v"'),
        ("what 'truerank index --out' wrote", "what 'truerank index --out' wrote"),
        ("save it: hf download --revision 1 x", "save it: hf download --revision 1 x"),
    ],
)
def test_flags_as_keywords(flags: str, keywords: str) -> None:
    error = InputError("a fault", flags)
    error.name_keywords()
    assert error.args == (error.fault, error.remedy) == ("a fault", keywords)


def test_python_and_the_command_line_refuse_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OptionError) as raised:
        Scoring(depth=0)
    assert str(raised.value) == "depth: must be at least 1, got 0. correct the value."
    with pytest.raises(OptionError, match="ties: 'random' is not one of the choices"):
        truerank.evaluate({"1": {"a": 1}}, {"1": {"a": 0.5}}, ties="random")
    with pytest.raises(OptionError, match="dept: evaluate has no such option"):
        truerank.evaluate({"1": {"a": 1}}, {"1": {"a": 0.5}}, dept=3)
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--qrels", "x", "--run", "y", "--depth", "0"])
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", "--depth: must be at least 1, got 0. correct the value.\n")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["leakage", "audit", "--train", "x"], "truerank leakage audit: --test is missing, or has no value. see "),
        (["evaluate", "--qrels", "x", "--run", "y", "--rn", "z"], "Unknown option: --rn"),
        (["search", "--index", "x", "--topics", "y", "z"], "truerank search: no option takes 'z'. see "),
        (["evalute"], 'truerank: Unknown command "evalute". Did you mean "evaluate"? see '),
        (["track", "repot"], "truerank: "),
        (["search", "--index", "x", "--topics", "y", "--format", "many"], "--format"),
    ],
)
def test_faults_of_words_are_one_line(words: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert fault in err
    assert err.rstrip().endswith("--help'.")


def test_rare_options_are_shown_by_help_all(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            main(["check", flag])
        assert ended.value.code == 0
        texts.append(capsys.readouterr().out)
    assert "--resamples" not in texts[0] and "--qrels" in texts[0]
    assert "--resamples" in texts[1]
    number = int(re.search(r"^(\d+) more options: truerank check --help-all", texts[0], re.MULTILINE)[1])  # type: ignore[index]
    flags = [set(re.findall(r"^[│|][ *]+(--[a-z-]+)", text, re.MULTILINE)) for text in texts]
    assert len(flags[1] - flags[0]) == number


def test_the_front_door_shows_the_commands() -> None:
    for name in {words.split()[0] for words in COMMANDS}:
        assert name in truerank.__all__
    assert len(dir(truerank)) <= 25
    assert typing.get_type_hints(inspect.unwrap(truerank.evaluate))["scoring"] is Scoring


def test_completion_knows_the_commands_and_their_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["--install-completion", "fish"])
    assert not ended.value.code
    (script,) = tmp_path.rglob("truerank.fish")
    text = script.read_text()
    assert all(word in text for word in ("evaluate", "select-topics", "judge", "baseline-category"))
    with pytest.raises(SystemExit) as ended:
        main(["--install-completion", "tcsh"])
    assert ended.value.code == 2


def test_modules_do_not_import_each_other_in_circles() -> None:
    """No module takes part in a circle, imports inside functions and those for types included."""
    grimp = pytest.importorskip("grimp", reason="import-linter is not installed: circles are not looked for")
    graph = grimp.build_graph("truerank")
    imports = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules - {"truerank"}}
    while True:
        imported = set().union(*imports.values())
        ends = {name for name, found in imports.items() if not found & imports.keys() or name not in imported}
        if not ends:
            break
        imports = {name: found for name, found in imports.items() if name not in ends}
    assert sorted(imports) == []


def test_every_rule_names_the_command_that_looks_for_it() -> None:
    found = rules().rules
    assert {one.rule.code.rstrip("0123456789") for one in found} >= {"CLAIM", "LEAK", "QREL", "BOARD", "JUDG"}
    assert {one.command for one in found} <= {*COMMANDS}
