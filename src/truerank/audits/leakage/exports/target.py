"""What each place is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from truerank.audits.leakage.exports.conda import CONDA_HEADER, conda_csv, conda_request, conda_rows
from truerank.audits.leakage.exports.contamination import Contamination
from truerank.audits.leakage.exports.huggingface import eval_results, leakage_statement
from truerank.audits.leakage.exports.mteb import TaskEntry, meta_patch, python_entries, statistics, task_entries
from truerank.audits.leakage.options import CardTarget
from truerank.errors import OptionError
from truerank.loading import json_file, text_file
from truerank.reports.cards import CardKind, card_with

_SCHEMA: Final = "truerank/leakage-export/1"


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


def exported(
    found: Sequence[Contamination], target: CardTarget, section: Callable[[], str], date: str | None
) -> Exported:
    """What an audit found, in the form of a place other than truerank's own."""
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
        kind: CardKind = "dataset-card" if target.for_ == "dataset-card" else "model-card"
        card = card_with(kind, readme, leakage_statement(section(), found, target.called))
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
    import yaml

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
