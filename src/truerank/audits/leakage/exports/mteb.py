"""MTEB: the tasks that a model has seen, as `training_datasets` of its metadata and as a patch of the file with them.

Names, similar tasks and the model that a model was trained from are those of the installed `mteb`; without it, only the
names that you give are stated.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from truerank.audits.leakage.exports.contamination import Contamination
from truerank.errors import InputError, OptionError

_COMMENT: Final = re.compile(r"#[^\n]*")
_LONGEST: Final = 110


class TaskEntry(NamedTuple):
    """One name of `training_datasets`.

    `because` is "leak", "similar" or "parent"; `evidence` is one sentence.
    """

    name: str
    because: str
    evidence: str


def task_entries(
    found: Iterable[Contamination], names: Mapping[str, str], *, model: str | None = None
) -> tuple[TaskEntry, ...]:
    """The tasks whose queries leak, tasks that are similar to them, and what the model's parents have seen."""
    mteb = _mteb()
    entries: dict[str, TaskEntry] = {}
    for one in found:
        if any(count.leaked for count in one.counts if count.of_queries):
            name = _task(one, names, mteb)
            known = entries.get(name)
            text = one.sentence() if known is None else f"{known.evidence}; {one.sentence()}"
            entries[name] = TaskEntry(name, "leak", text)
    if mteb is None:
        return tuple(entries.values())
    for name in list(entries):
        for other in sorted(_similar(name) - entries.keys()):
            entries[other] = TaskEntry(other, "similar", f"similar to {name} in mteb")
    for parent, seen in _parents(model, mteb):
        for other in sorted(seen - entries.keys()):
            entries[other] = TaskEntry(other, "parent", f"in the training data of {parent}")
    return tuple(entries.values())


def statistics(found: Iterable[Contamination], names: Mapping[str, str]) -> dict[str, dict[str, dict[str, int]]]:
    """Fields of the descriptive statistics of each task: its queries, and those that are in the training data.

    `num_queries` is a field of retrieval tasks in `mteb`. `samples_in_train` is one of tasks with a train split, and
    counts what stands in that split: state it only where that split was audited.
    """
    mteb = _mteb()
    fields: dict[str, dict[str, dict[str, int]]] = {}
    for one in found:
        name = _task(one, names, mteb)
        for count in one.counts:
            if count.of_queries:
                task = fields.setdefault(name, {"test": {"num_queries": 0, "samples_in_train": 0}})["test"]
                task["num_queries"] = max(task["num_queries"], count.items)
                task["samples_in_train"] = max(task["samples_in_train"], count.leaked)
    return fields


def python_entries(entries: Iterable[TaskEntry], indent: int = 4) -> str:
    """The names as lines of a set in Python, each with its evidence as a comment."""
    return "".join(f'{" " * indent}"{one.name}",  # {_short(one.evidence)}\n' for one in entries)


def meta_patch(text: str, path: str, model: str, entries: Sequence[TaskEntry]) -> str:
    """A unified diff that adds names to the `training_datasets` of a model.

    Parents are left out: `mteb` follows `adapted_from` itself. So are names that stand in the set already.
    """
    value = _training_datasets(text, path, model)
    known = {one.value for one in value.elts if isinstance(one, ast.Constant)} if isinstance(value, ast.Set) else set()
    new = [one for one in entries if one.because != "parent" and one.name not in known]
    if not new:
        return ""
    lines = text.splitlines(keepends=True)
    begin, end = (
        _offset(lines, line, column)
        for line, column in ((value.lineno, value.col_offset), (value.end_lineno or 0, value.end_col_offset or 0))
    )
    first = lines[value.lineno - 1]
    indent = len(first) - len(first.lstrip())
    changed = f"{text[:begin]}{_united(value, text[begin:end], new, indent)}{text[end:]}"
    diff = difflib.unified_diff(
        lines, changed.splitlines(keepends=True), f"a/{path.lstrip('/')}", f"b/{path.lstrip('/')}"
    )
    # A last line without an end is told as `diff` tells it.
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)


def _united(value: ast.expr, written: str, new: Sequence[TaskEntry], indent: int) -> str:
    """An expression for the set with the new names in it."""
    rows = python_entries(new, indent + 4)
    none = isinstance(value, ast.Constant) and value.value is None
    empty = isinstance(value, ast.Call) and not value.args and getattr(value.func, "id", "") == "set"
    if none or empty:
        return f"{{\n{rows}{' ' * indent}}}"
    if isinstance(value, ast.Set):
        body = written[1:-1]
        if not body.strip("\n ").endswith("\n") and "\n" not in body:
            body = f"\n{' ' * (indent + 4)}{body.strip().rstrip(',')},\n"
        elif not _ends_with_comma(body, value):
            at = _end_of_last(written, value) - 1
            body = f"{body[:at]},{body[at:]}"
        return f"{{{body.rstrip()}\n{rows}{' ' * indent}}}"
    plain = isinstance(value, ast.Name | ast.Attribute | ast.Call)
    joined = isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)
    left = written if plain or joined else f"({written})"
    return f"{left}\n{' ' * indent}| {{\n{rows}{' ' * indent}}}"


def _end_of_last(written: str, value: ast.Set) -> int:
    """Where the last element ends in the text of the set."""
    last = value.elts[-1]
    lines = written.splitlines(keepends=True)
    row = (last.end_lineno or 0) - value.lineno + 1
    column = (last.end_col_offset or 0) - (value.col_offset if row == 1 else 0)
    return _offset(lines, row, column)


def _ends_with_comma(body: str, value: ast.Set) -> bool:
    return "," in _COMMENT.sub("", f"{{{body}}}"[_end_of_last(f"{{{body}}}", value) :])


def _offset(lines: Sequence[str], line: int, column: int) -> int:
    """The place in the text of a line and a column in bytes, as `ast` counts them."""
    inside = lines[line - 1].encode()[:column].decode()
    return sum(map(len, lines[: line - 1])) + len(inside)


def _training_datasets(text: str, path: str, model: str) -> ast.expr:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"no Python ({error})", "give the file with the model's ModelMeta", where=path) from error
    models = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        named = {word.arg: word.value for word in call.keywords}
        if getattr(call.func, "id", getattr(call.func, "attr", "")) != "ModelMeta":
            continue
        name = named.get("name")
        if isinstance(name, ast.Constant):
            models.append(str(name.value))
            if name.value == model:
                if "training_datasets" in named:
                    return named["training_datasets"]
                raise InputError(f"'{model}' has no training_datasets", "add the line to the file", where=path)
    near = difflib.get_close_matches(model, models, n=3) or models[:6]
    raise InputError(f"no model '{model}' here", f"there are {', '.join(near) or 'none'}", where=path)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _mteb() -> Any:
    if find_spec("mteb") is None:
        return None
    import mteb

    return mteb


def _task(one: Contamination, names: Mapping[str, str], mteb: Any) -> str:
    """The name of the task of a test set."""
    given = names.get(one.test)
    if mteb is None:
        if given is None:
            remedy = f"write {one.test}=TASK, or install mteb, which knows the names"
            raise OptionError("called", f"the MTEB task of '{one.test}' is not named", remedy)
        return given
    from mteb.get_tasks import _TASKS_REGISTRY as TASKS

    if given is not None and given in TASKS:
        return given
    if given is not None:
        near = difflib.get_close_matches(given, TASKS, n=3)
        remedy = f"did you mean {' or '.join(near)}?" if near else "see mteb.get_tasks()"
        raise OptionError("called", f"mteb has no task '{given}'", remedy)

    words = {part.lower() for part in re.split(r"[/:]", one.test)} | {one.test.lower()}
    paths = [name for name, task in TASKS.items() if one.test.split(":")[0] == task.metadata.dataset.get("path")]
    found: list[str] = paths if len(paths) == 1 else [name for name in TASKS if name.lower() in words]
    if len(found) != 1:
        fault = f"the MTEB task of '{one.test}' is not known" + (f" ({', '.join(found[:5])}?)" if found else "")
        raise OptionError("called", fault, f"write {one.test}=TASK")
    return found[0]


def _similar(name: str) -> set[str]:
    """Tasks that mteb counts as seen with this one; its own rule, by a model that has seen nothing else."""
    from mteb.models.model_meta import ModelMeta

    return set(ModelMeta.create_empty({"training_datasets": {name}}).get_training_datasets())


def _parents(model: str | None, mteb: Any) -> Iterable[tuple[str, set[str]]]:
    if model is None:
        return
    try:
        parent = mteb.get_model_meta(model, fetch_from_hf=False).adapted_from
        seen = None if parent is None else mteb.get_model_meta(parent, fetch_from_hf=False).get_training_datasets()
    except (KeyError, ValueError):  # a model that mteb does not know yet
        return
    if parent is not None and seen:
        yield parent, set(seen)
