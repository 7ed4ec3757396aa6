"""Where a statement goes: the options, and what each place is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml

from truerank.audits.leakage.exports.conda import CONDA_HEADER, conda_csv, conda_request, conda_rows
from truerank.audits.leakage.exports.contamination import Contamination, contaminations
from truerank.audits.leakage.exports.huggingface import card_with, eval_results
from truerank.audits.leakage.exports.mteb import TaskEntry, meta_patch, python_entries, statistics, task_entries
from truerank.audits.leakage.results import AuditResult
from truerank.errors import OptionError
from truerank.loading import json_file, text_file
from truerank.options import Flag, Options

__all__ = ["CardTarget", "Exported", "exported"]

_SCHEMA: Final = "truerank/leakage-export/1"


@dataclass(frozen=True)
class CardTarget(Options):
    """Where the statement goes.

    Attributes:
        for_: statement (truerank's own), mteb (tasks that a model has seen), conda (rows of the contamination
            database; as Markdown its pull request), dataset-card or model-card (a README of Hugging Face), eval-results
            (a score on clean topics for a model on Hugging Face).
        called: what a test set or training source is called there: an MTEB task, or ORG/NAME of Hugging Face; for
            eval-results ORG/NAME:TASK.
        into: the file that is changed: for mteb the Python file with the model, which gives a patch; for a card its
            README, which is printed with the statement in it.
        model: the model that was trained on the data: its name in mteb or on Hugging Face; for eval-results its run.
        effect: what `leakage effect --json` printed, for eval-results.
        reference: a link to the report.
    """

    for_: Literal["statement", "mteb", "conda", "dataset-card", "model-card", "eval-results"] = "statement"
    called: Annotated[Mapping[str, str], Flag(metavar="NAME=NAME")] = field(default_factory=dict)
    into: Annotated[str | None, Flag(metavar="FILE")] = None
    model: Annotated[str | None, Flag(metavar="NAME")] = None
    effect: Annotated[str | None, Flag(metavar="FILE")] = None
    reference: Annotated[str | None, Flag(metavar="URL")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.for_ == "mteb" and self.into is not None and self.model is None:
            raise OptionError("model", "no model named", "name the one in the file `into`")
        if self.for_ == "eval-results" and self.effect is None:
            raise OptionError("effect", "no effect given", "run `leakage effect --json` and give what it prints")


@dataclass(frozen=True)
class Exported:
    """A statement in the form of another place.

    Attributes:
        content: plain values.
        text: what is printed.
        markdown: what is printed as Markdown.
    """

    content: dict[str, Any]
    text: str
    markdown: str


def exported(audit: AuditResult, target: CardTarget, section: Callable[[], str], date: str | None) -> Exported:
    """What an audit found, in the form of a place other than truerank's own.

    Args:
        audit: the audit.
        target: the place.
        section: the statement as Markdown.
        date: of the evaluation, for eval-results.

    Raises:
        InputError: a name that the place does not know, or a file that cannot be read.
    """
    found = contaminations(audit)
    unknown = target.called.keys() - {name for one in found for name in (one.train, one.test)}
    if unknown:
        known = ", ".join(dict.fromkeys(name for one in found for name in (one.test, one.train)))
        raise OptionError("called", f"the audit has no '{min(unknown)}'", f"there are {known}")
    if target.for_ == "mteb":
        made = _for_mteb(found, target)
    elif target.for_ == "conda":
        rows = conda_rows(found, target.called, model=target.model or "", reference=target.reference or "")
        content = {"columns": list(CONDA_HEADER), "rows": [list(row) for row in rows]}
        made = Exported(content, conda_csv(rows), conda_request(found, rows))
    elif target.for_ == "eval-results":
        made = _score(found, target, date)
    else:
        readme = "" if target.into is None else text_file(target.into)
        kind: Literal["dataset-card", "model-card"] = "dataset-card" if target.for_ == "dataset-card" else "model-card"
        card = card_with(kind, readme, section(), found, target.called)
        made = Exported({"card": card}, card, card)
    return Exported({"schema": _SCHEMA, "for": target.for_, **made.content}, made.text, made.markdown)


def _for_mteb(found: Sequence[Contamination], target: CardTarget) -> Exported:
    entries = task_entries(found, target.called, model=target.model)
    content: dict[str, Any] = {
        "model": target.model,
        "training_datasets": sorted(entry.name for entry in entries),
        "entries": [entry._asdict() for entry in entries],
        "statistics": statistics(found, target.called),
    }
    text = f"training_datasets={{\n{python_entries(entries)}}},\n" if entries else "training_datasets=set(),\n"
    if target.into is not None:
        text = meta_patch(text_file(target.into), _relative(target.into), str(target.model), entries)
        content["patch"] = text
    return Exported(content, text, f"```{'diff' if target.into else 'python'}\n{text}```\n\n{_listed(entries)}")


def _score(found: Sequence[Contamination], target: CardTarget, date: str | None) -> Exported:
    effect = json_file(str(target.effect), "give what `leakage effect --json` printed")
    try:
        entries = eval_results(
            effect, target.called, run=target.model, found=found, reference=target.reference or "", date=date
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        fault = f"no scores on leaked and clean topics in {target.effect}"
        raise OptionError("effect", fault, "give what `leakage effect --json` printed") from error
    text = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1_000)
    return Exported({"entries": entries}, text, f"```yaml\n{text}```\n")


def _listed(entries: Sequence[TaskEntry]) -> str:
    return "".join(f"- `{entry.name}`: {entry.evidence}\n" for entry in entries)


def _relative(path: str) -> str:
    """A path as a patch names it: relative to the folder in which the command runs, where it lies below."""
    absolute = Path(path).absolute()
    return absolute.relative_to(Path.cwd()).as_posix() if absolute.is_relative_to(Path.cwd()) else absolute.as_posix()
