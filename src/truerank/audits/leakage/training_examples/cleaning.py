"""Act: the training data without the examples that leak."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from truerank.audits.leakage.cleaning import LeakRules, TrainCleaning
from truerank.audits.leakage.filtering import BREAKS, copy, form_of, written
from truerank.audits.leakage.training_examples.candidates import chosen_leaks
from truerank.audits.leakage.training_examples.results import ExampleAudit, audited_input
from truerank.errors import InputError
from truerank.sources import open_examples, parse
from truerank.sources.id_examples import ExampleTexts
from truerank.sources.inputs import input_of
from truerank.text.normalising import normalise
from truerank.work.runs import run as started

_REMOVED: Final = ("example_id", "kinds", "topics", "documents", "line")


class _Reason(NamedTuple):
    """Why an example goes."""

    kinds: frozenset[str]
    topics: frozenset[str]
    documents: frozenset[str]


def clean_examples(
    train: str | Path, audit: ExampleAudit | str | Path, out: str | Path, rules: LeakRules
) -> TrainCleaning:
    """Writes training examples again without those that hold a leaking text; the others keep their bytes.

    An example with a query and a positive that leak together goes only for the kind "pair" where no other kind counts.

    Args:
        train: the file, as in the audit.
        audit: the audit, or the folder it wrote.
        out: the file to write; its name says the compression.
        rules: the kinds of leak that count.

    Raises:
        InputError: the source is no file of records, or the output cannot be written.
    """
    out, spec = Path(out), parse(str(train))
    found, leaks = chosen_leaks(audit, rules.kinds)
    form = form_of(spec, out)
    if form.path is None or form.format not in ("jsonl", "csv", "tsv", "parquet"):
        raise InputError(
            "only files of records can be cleaned", "save it as JSONL or Parquet first", where=spec.location
        )
    known = found.sources.get(spec.name, {})
    named = known["roles"] if known.get("given") else None
    by_id = ExampleTexts(known.get("train_queries"), known.get("train_docs"))
    source = open_examples(spec, roles=named and _spelled(named), texts=by_id, strict=rules.strict)
    by_text, by_pair = _leaking(leaks, spec.name)
    dropped, lost, read, seen = [], [], 0, set[str]()
    for line, example_id, texts in source.records():
        read += 1
        keys = {(role, normalise(text)) for role, text in texts}
        reasons = [by_text[key] for key in keys & by_text.keys()]
        queries = [text for role, text in keys if role == "query"]
        positives = [text for role, text in keys if role == "positive"]
        reasons += [by_pair[pair] for query in queries for text in positives if (pair := (query, text)) in by_pair]
        if reasons:
            dropped.append(line)
            seen.update(text for _, text in keys & by_text.keys())
            cells = [";".join(sorted(set().union(*part))) for part in zip(*reasons, strict=True)]
            lost.append("\t".join(cell.translate(BREAKS) for cell in (example_id, *cells, str(line))))
    removed_file = out.with_name(f"{out.name}.removed.tsv")
    with started("leakage clean", (), {"remove": "train", "rules": rules}, out, file=True) as job:
        with written(out) as target, written(removed_file) as listed:
            copy(form, target, dropped)
            with listed.open() as stream:
                stream.write("".join(f"{row}\n" for row in ("\t".join(_REMOVED), *lost)).encode())
        job.note(out.name)
        job.note(removed_file.name)
        job.read(input_of("train", str(train), rows=read), audited_input(found))
    wanted = {text for _, text in by_text}
    return TrainCleaning(
        out=out,
        removed_file=removed_file,
        manifest_file=out.with_name(f"{out.name}.manifest.json"),
        read=read,
        kept=read - len(dropped),
        removed=len(dropped),
        removed_queries=len(seen),
        topics={str(found.test["name"]): leaks["topic_id"].drop_nulls().n_unique()},
        not_found=len(wanted - seen),
        threshold=None,
        basis=rules.basis,
        judged=0,
        warnings=tuple(_changed(spec.name, found, source.fingerprint)),
    )


def _leaking(leaks: pl.DataFrame, source: str) -> tuple[dict[tuple[str, str], _Reason], dict[tuple[str, str], _Reason]]:
    """Why a text of a role goes, and why a query with a positive does."""
    single: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    pairs: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    columns = ("kind", "topic_id", "doc_id", "role", "training_text", "training_document")
    for kind, topic, doc, role, text, answer in leaks.filter(source=source).select(columns).iter_rows():
        reason = (kind, topic or "", doc or "")
        if kind == "pair":
            pairs[normalise(text), normalise(answer)].append(reason)
        else:
            single[role, normalise(text)].append(reason)
    return _joined(single), _joined(pairs)


def _joined(found: dict[tuple[str, str], list[tuple[str, str, str]]]) -> dict[tuple[str, str], _Reason]:
    return {
        key: _Reason(*(frozenset(filter(None, part)) for part in zip(*reasons, strict=True)))
        for key, reasons in found.items()
    }


def _spelled(roles: str) -> str:
    return roles.replace(", ", ",")


def _changed(name: str, found: ExampleAudit, fingerprint: str) -> list[str]:
    known = found.sources.get(name)
    if known is None:
        read = ", ".join(found.sources)
        return [f"The audit did not read {name} (it read {read}): only its own sources' examples were looked for."]
    if known["fingerprint"] != fingerprint:
        return [f"{name} has changed since the audit: examples that are new in it were not audited."]
    return []
