"""Writes the help that is stored, from the commands and the docstrings; `pages` gives the pages of the reference.

    python scripts/make_reference.py [--check]

With --check nothing is written; the exit code is 1 if the stored help is not what the code says.
`scripts/site_pages.py` puts the pages into the documentation site.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from typing import Any, Literal

import truerank
from truerank.audits.leakage.results import CANDIDATE_SCHEMA, NEIGHBOUR_SCHEMA, AuditSummary
from truerank.cli.commands import COMMANDS
from truerank.cli.declarations import Command, command_at
from truerank.cli.helps import STORED, written
from truerank.cli.rules import AuditRule, rules
from truerank.core.verdict import LEVELS

#: What a user of the Python package imports: the homes of the names of `truerank`, then what their options hold.
MODULES = (
    "truerank.claims",
    "truerank.audits.leakage",
    "truerank.audits.transfer",
    "truerank.audits.survivorship",
    "truerank.audits.pool",
    "truerank.audits.collection",
    "truerank.audits.track",
    "truerank.audits.leaderboard",
    "truerank.audits.assessors",
    "truerank.judge",
    "truerank.judging",
    "truerank.measures",
    "truerank.measures.equivalence",
    "truerank.near_duplicates",
    "truerank.lexical",
    "truerank.lexical.building",
    "truerank.rankers.reranking.rerank",
    "truerank.cli.rules",
    "truerank.rankers.base",
    "truerank.overlaps",
    "truerank.integrations.ir_datasets",
    "truerank.integrations.ir_measures",
    "truerank.sources",
    "truerank.vectors.encoders",
    "truerank.text.reformulation",
    "truerank.text.normalising",
    "truerank.core.result",
    "truerank.core.tables",
    "truerank.options",
    "truerank.records",
    "truerank.errors",
)


def _command(command: Command) -> str:
    """One command: what it does, examples, options."""
    rows = []
    for option in command.options:
        flags = ", ".join(option.flags)
        default = "required" if option.required else "" if option.default is None else f"`{option.default}`"
        choices = [
            str(choice) for choice in typing.get_args(option.reads) if typing.get_origin(option.reads) is Literal
        ]
        text = f"{option.help} One of {', '.join(choices)}." if choices else option.help
        shown = f"{flags} {option.metavar}".rstrip()
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{shown}`", text, default)) + " |")
    rows.append("| `--format text\\|markdown\\|latex\\|csv\\|json` | How tables are printed. | `text` |")
    rows.append("| `--json` | Print one JSON object on stdout and nothing else. |  |")
    if command.verdict_words:
        words = ", ".join(word.lower() for word in command.verdict_words)
        meaning = f"Exit with 1 if there is such a verdict, or a worse one: {words}; a level: bad, doubt; or never."
        rows.append(f"| `--fail-on VERDICT` | {meaning} | `{command.result.fails_on}` |")
    examples = "".join(f"\n    {line}\n" for line in command.examples)
    text = "\n\n".join(part for part in (command.summary, command.text, "Examples:" if examples else "") if part)
    table = "| option | meaning | default |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
    return f"## `truerank {command.name}`\n\n{text}\n{examples}\n{table}"


def command_page() -> str:
    """The reference of all commands."""
    parts = [
        "# Commands\n",
        "Every command prints its result on stdout (`--json`: one JSON object and nothing else), progress and notes on "
        "stderr and only to a terminal. Exit codes: 0; 1 where `--fail-on` says so; 2 for what the user can mend, with "
        "one line `place: what is wrong. what to do.`; 70 for a fault of truerank itself "
        "(`--debug` shows where); 71 where the memory does not suffice; 130 after Ctrl-C, and 143 after SIGTERM, which "
        "does the same.\n",
        "`truerank --install-completion` sets up completion for your shell.\n",
    ]
    parts += [_command(command_at(name, path)) for name, path in COMMANDS.items()]
    return "\n".join([*parts, *_audit_files()])


def _audit_files() -> list[str]:
    """What an audit writes: columns of its tables and keys of its summary."""
    parts = [
        "## Files of an audit\n",
        "`report.html`: everything for people, in one file. `manifest.json`: inputs with their hashes, options, "
        "versions, and the hash of every file. `run.log`: times and host, the only file whose bytes differ from run "
        "to run.\n",
    ]
    for name, schema in (("candidates.parquet", CANDIDATE_SCHEMA), ("neighbours.parquet", NEIGHBOUR_SCHEMA)):
        columns = ", ".join(f"`{column}` ({kind})" for column, kind in schema.items())
        parts.append(f"`{name}`: {columns}.\n")
    parts.append("`summary.json`, and `leakage audit --json`:\n\n| key | value |\n| --- | --- |")
    parts += [f"| `{key}` | {value} |" for key, value in _keys(AuditSummary, "")]
    return [*parts, ""]


def _keys(kind: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for name, hint in typing.get_type_hints(kind).items():
        options = [part for part in typing.get_args(hint) if part is not type(None)]
        inner = options[-1] if options else hint
        deeper = f"{prefix}{name}." if typing.get_origin(hint) is not dict else f"{prefix}{name}.NAME."
        if typing.is_typeddict(inner):
            yield from _keys(inner, deeper)
        else:
            yield (
                f"{prefix}{name}",
                re.sub(r"(?:\w+\.)+(\w+)", r"\1", str(getattr(hint, "__name__", hint))).replace("|", "or"),
            )


def python_page() -> str:
    """The names of `truerank` and the public modules; the site of `make docs` has a page for each module."""
    parts = ["# Python\n", _front_door(), "## Modules\n"]
    parts.append(
        "Each module has a page on the documentation site, built by `make docs` from the docstrings: signatures\n"
        "with types and defaults, arguments, results and errors. `help(truerank.leakage.audit)` shows the same.\n"
    )
    rows = [f"| `{name}` | {_first_line(importlib.import_module(name))} |" for name in MODULES]
    return "\n".join([*parts, "| module | what it has |", "| --- | --- |", *rows, ""])


def _front_door() -> str:
    """The names of `truerank` itself, each with the module that it comes from."""
    rows = ["`import truerank` gives these names:\n", "| name | is |", "| --- | --- |"]
    for name in truerank.__all__:
        value = getattr(truerank, name)
        if inspect.ismodule(value):
            rows.append(f"| `truerank.{name}` | the package `{value.__name__}` |")
        elif callable(value):
            home = next((home for home in MODULES if value in _public(home)), value.__module__)
            rows.append(f"| `truerank.{name}` | `{home}.{value.__name__}`: {_first_line(value)} |")
    return "\n".join([*rows, "", *_functions(), ""])


def _functions() -> Iterator[str]:
    """The functions of the commands, by group: the names differ in some."""
    yield "Every command is a function too:\n"
    yield "| commands | module | functions, in the order of the commands |\n| --- | --- | --- |"
    groups: dict[str, list[str]] = {}
    for name, path in COMMANDS.items():
        group = name.partition(" ")[0] if " " in name else ""
        groups.setdefault(group, []).append(f"`{path.partition(':')[2]}`")
    for group, functions in sorted(groups.items(), key=lambda pair: not pair[0]):
        home = f"truerank.{group}" if group else "truerank"
        yield f"| {f'`{group}`' if group else 'the others'} | `{home}` | {' '.join(functions)} |"
    yield "\n`leakage clean --remove test` is `truerank.leakage.reduce_topics`."


def _public(module: str) -> list[object]:
    home = importlib.import_module(module)
    return [getattr(home, name) for name in home.__all__]


def _first_line(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]


def rules_page() -> str:
    """What the audits can find, by code."""
    parts = [
        "# Rules, words and exit codes\n",
        "What the audits can find. A code keeps its meaning from version to version; `findings.sarif` names it, and "
        "`truerank rule CODE` explains it. A *fault* is shown by the data alone, a *doubt* needs somebody to look, a "
        "*note* is a property to know of.\n",
    ]
    codes = {"good": "0", "unknown": "3 of `check`, 0 of others", "doubt": "1 with `--fail-on doubt`", "bad": "1"}
    own = {"FILES AT FAULT": "2"}
    rows = [f"| {word} | {level} | {own.get(word, codes[level])} |" for word, level in LEVELS.items()]
    head = (
        "## Words, levels and exit codes\n\nThe exit code is 0 without `--fail-on`. With it, 1 where there is a "
        "verdict of this word or level or a worse one, and 3 where `check` cannot tell. 2 is what you can mend (FILES "
        "AT FAULT too), 70 a fault of truerank, 71 too little memory, 130 Ctrl-C, 143 SIGTERM.\n\n"
        "| word | level | with `--fail-on bad` |\n| --- | --- | --- |"
    )
    parts.append("\n".join((head, *rows)) + "\n")
    rows = [
        f"| [{prefix}](rules/{prefix}.md) | `truerank {every[0].command}` | {len(every)} |"
        for prefix, every in _rules_by_prefix().items()
    ]
    head = "## Rules by code\n\n| codes | found by | rules |\n| --- | --- | ---: |"
    return "\n".join([*parts, head, *rows, ""])


def _rules_by_prefix() -> dict[str, list[AuditRule]]:
    """The rules by the letters of their codes, in the order of the documentation."""
    found: dict[str, list[AuditRule]] = {}
    for one in rules().rules:
        found.setdefault(one.rule.code.rstrip("0123456789"), []).append(one)
    return found


def rule_pages() -> Iterator[tuple[str, str]]:
    """One page for each kind of code, with a section for each rule, whose anchor is the code."""
    for prefix, every in _rules_by_prefix().items():
        head = f"# {prefix}: rules of `truerank {every[0].command}`\n\n[All codes, words and exit codes](../rules.md)."
        sections = (
            f"## {rule.code}\n\n**{rule.title}** ({rule.severity}, `{rule.name}`)\n\n{rule.effect}\n\n"
            f"*What mends it:* {rule.remedy}"
            for rule in (one.rule for one in every)
        )
        yield f"rules/{prefix}.md", "\n\n".join((head, *sections)) + "\n"


def pages() -> dict[str, str]:
    """The pages of the reference, by their places in the documentation."""
    every = {"commands.md": command_page(), "python.md": python_page(), "rules.md": rules_page(), **dict(rule_pages())}
    return {f"reference/{name}": text for name, text in every.items()}


def main() -> None:
    """Writes or checks the stored help."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    text = written()
    if STORED.is_file() and STORED.read_text(encoding="utf-8") == text:
        return
    if check:
        sys.exit(f"{STORED.name} is not what the code says; run 'python scripts/make_reference.py'")
    STORED.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
