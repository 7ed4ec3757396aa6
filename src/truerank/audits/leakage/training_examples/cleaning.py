"""Act: the training data without the examples that leak."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from truerank.audits.leakage.cleaning import JUDGED, NOT_JUDGED, LeakRules, TrainCleaning
from truerank.audits.leakage.filtering import BREAKS, copy, form_of, written
from truerank.audits.leakage.options import opened_labels
from truerank.audits.leakage.training_examples.candidates import chosen_leaks, leaks_that_count
from truerank.audits.leakage.training_examples.results import ExampleAudit, audited_input
from truerank.errors import InputError
from truerank.judging.ratings import label_inputs
from truerank.options import Labels
from truerank.sources import open_examples, parse
from truerank.sources.examples import ExampleTexts
from truerank.sources.inputs import input_of
from truerank.text.normalising import normalise
from truerank.work.runs import run as started

#: What makes a leak one of its own.
_OF_LEAK: Final = ("kind", "topic_id", "doc_id", "role", "training_text", "training_document")
_REMOVED: Final = ("example_id", "kinds", "topics", "documents", "line")


class LeakReason(NamedTuple):
    """Why an example goes: the kinds of leak, and the topics and documents that leak."""

    kinds: frozenset[str]
    topics: frozenset[str]
    documents: frozenset[str]


@dataclass(frozen=True)
class LeakingExamples:
    """The texts by which an example goes.

    Attributes:
        by_text: by role and normalised text.
        by_pair: by the normalised texts of a query and of a positive.
    """

    by_text: Mapping[tuple[str, str], LeakReason]
    by_pair: Mapping[tuple[str, str], LeakReason]

    @classmethod
    def of(cls, leaks: pl.DataFrame) -> LeakingExamples:
        """The texts of leaks, columns as in `LEAKS`."""
        single: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
        pairs: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
        columns = ("kind", "topic_id", "doc_id", "role", "training_text", "training_document")
        for kind, topic, doc, role, text, answer in leaks.select(columns).iter_rows():
            reason = (kind, topic or "", doc or "")
            if kind == "pair":
                pairs[normalise(text), normalise(answer)].append(reason)
            else:
                single[role, normalise(text)].append(reason)
        return cls(_joined(single), _joined(pairs))

    def reasons(self, keys: Set[tuple[str, str]]) -> list[LeakReason]:
        """Why an example goes, from the roles and normalised texts that it holds; nothing where it stays."""
        queries = [text for role, text in keys if role == "query"]
        positives = [text for role, text in keys if role == "positive"]
        found = [self.by_text[key] for key in sorted(keys & self.by_text.keys())]
        return found + [self.by_pair[pair] for pair in product(queries, positives) if pair in self.by_pair]


def clean_examples(
    train: str | Path, audit: ExampleAudit | str | Path, out: str | Path, rules: LeakRules, judged: Labels = Labels()
) -> TrainCleaning:
    """Writes training examples again without those that hold a leaking text; the others keep their bytes.

    An example with a query and a positive that leak together goes only for the kind "pair" where no other kind counts.
    """
    out, spec = Path(out), parse(str(train))
    found, every = chosen_leaks(audit, rules.kinds)
    judgments = opened_labels(judged)
    leaks = leaks_that_count(found, every, judgments, rules.basis).filter(source=spec.name)
    form = form_of(spec, out)
    if form.path is None or form.format not in ("jsonl", "csv", "tsv", "parquet"):
        raise InputError(
            "only files of records can be cleaned", "save it as JSONL or Parquet first", where=spec.location
        )
    known = found.sources.get(spec.name, {})
    named = known["roles"] if known.get("given") else None
    by_id = ExampleTexts(known.get("train_queries"), known.get("train_docs"))
    source = open_examples(spec, roles=named and _spelled(named), texts=by_id, strict=rules.strict)
    leaking = LeakingExamples.of(leaks)
    dropped, lost, read, seen = [], [], 0, set[str]()
    for line, example_id, texts in source.records():
        read += 1
        keys = {(role, normalise(text)) for role, text in texts}
        reasons = leaking.reasons(keys)
        if reasons:
            dropped.append(line)
            seen.update(text for _, text in keys & leaking.by_text.keys())
            cells = [";".join(sorted(set().union(*part))) for part in zip(*reasons, strict=True)]
            lost.append("\t".join(cell.translate(BREAKS) for cell in (example_id, *cells, str(line))))
    removed_file = out.with_name(f"{out.name}.removed.tsv")
    given = {"remove": "train", "rules": rules, "votes": judged.votes}
    with started("leakage clean", label_inputs(judged), given, out, file=True) as job:
        with written(out) as target, written(removed_file) as listed:
            copy(form, target, dropped)
            with listed.open() as stream:
                stream.write("".join(f"{row}\n" for row in ("\t".join(_REMOVED), *lost)).encode())
        job.note(out.name)
        job.note(removed_file.name)
        job.read(input_of("train", str(train), rows=read), audited_input(found))
    left = left_of(every.filter(source=spec.name), leaks, rules)
    wanted = {text for _, text in leaking.by_text}
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
        judged=0 if judgments is None else len(judgments.pairs),
        warnings=tuple(_changed(spec.name, found, source.fingerprint)),
        left=left,
    )


def left_of(every: pl.DataFrame, leaks: pl.DataFrame, rules: LeakRules) -> dict[str, int]:
    """The training texts that an audit lists and that stay, by the reason."""
    stay = every.join(leaks, on=_OF_LEAK, how="anti", nulls_equal=True)
    reason = NOT_JUDGED if rules.basis == "labels-only" else JUDGED
    return {reason: stay["training_text"].n_unique()} if stay.height else {}


def _joined(found: dict[tuple[str, str], list[tuple[str, str, str]]]) -> dict[tuple[str, str], LeakReason]:
    return {
        key: LeakReason(*(frozenset(filter(None, part)) for part in zip(*reasons, strict=True)))
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
