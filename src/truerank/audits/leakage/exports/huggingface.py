"""Hugging Face: the statement for a data or model card, and scores on clean topics as `.eval_results/*.yaml`.

Source: huggingface.co/docs/hub/eval-results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from truerank.audits.leakage.exports.contamination import Contamination, worst
from truerank.errors import InputError, OptionError
from truerank.reports.cards import CardStatement
from truerank.sources.grammar import parse
from truerank.version import __version__


def leakage_statement(section: str, found: Sequence[Contamination], names: Mapping[str, str]) -> CardStatement:
    """The statement for a card."""
    figures = [
        {
            "train": names.get(one.train, one.train),
            "test": names.get(one.test, one.test),
            "verdict": one.verdict,
            **{f"{count.kind.replace(' ', '_')}": f"{count.leaked}/{count.items}" for count in one.counts},
        }
        for one in found
    ]
    return CardStatement("train-test-leakage", worst(one.verdict for one in found), section, figures)


def eval_results(
    effect: Mapping[str, Any],
    names: Mapping[str, str],
    *,
    run: str | None = None,
    found: Iterable[Contamination] = (),
    reference: str = "",
    date: str | None = None,
) -> list[dict[str, Any]]:
    """The score of one run on the clean topics by the first measure of the effect, as in `.eval_results/*.yaml`."""
    rows = effect["runs"]
    known = list(dict.fromkeys(row["run"] for row in rows))
    chosen = run if run is not None else known[0] if len(known) == 1 else None
    if chosen not in known:
        fault = f"no run '{run}' in the effect" if run is not None else "the effect has several runs"
        raise OptionError("model", fault, f"choose one of {', '.join(known)}")
    test = effect["settings"]["test"]
    if test not in names:
        raise OptionError("called", f"the benchmark of '{test}' is not named", f"write {test}=ORG/NAME:TASK")
    spec = parse(f"hf:{names[test]}")
    sources = ", ".join(names.get(one.train, one.train) for one in found if one.test == test and one.most.leaked)
    row = next(row for row in rows if row["run"] == chosen)
    clean, every = row["clean"], row["all"]
    if not clean["n"] or clean["mean"] is None:
        raise InputError("no topic is clean", "there is no score to state", where=f"effect on {chosen}")
    dataset = {"id": spec.location, "task_id": spec.split or "default"}
    entry: dict[str, Any] = {"dataset": dataset | ({"revision": spec.revision} if spec.revision else {})}
    entry["value"] = round(clean["mean"], 6)
    entry |= {} if date is None else {"date": date}
    entry |= {"source": {"url": reference, "name": "truerank leakage audit"}} if reference else {}
    entry["notes"] = (
        f"{row['measure']} on {clean['n']} of {every['n']} topics, without those that leak"
        + (f" from {sources}" if sources else "")
        + f"; on all topics {every['mean']:.4f} (truerank {__version__})"
    )
    return [entry]
