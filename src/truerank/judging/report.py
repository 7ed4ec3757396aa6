"""How stores, labels, agreement and the work of models are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import polars as pl

from truerank.core.result import Summary, summarises, writes
from truerank.core.tables import Cell, Column, Table, group_starts
from truerank.core.views import heads
from truerank.errors import InputError
from truerank.judging.agreement import AnnotatorAgreement, DefinitionAgreement, PairAgreement
from truerank.judging.coefficients import TITLES, Score
from truerank.judging.exchange.exporting import LabelExport
from truerank.judging.exchange.importing import LabelImport
from truerank.judging.models import ModelRun
from truerank.judging.probes import PROBES, ProbeRun
from truerank.judging.ratings import listed
from truerank.judging.samples import ItemSample, NewStore
from truerank.judging.tables import COMBINED, LabelCounts
from truerank.judging.web.server import Desk
from truerank.work.publishing import write_tables
from truerank.work.runs import Run

_WIDEST_MATRIX: Final = 12
_LISTED: Final = 20


def sample_table(sample: ItemSample) -> Table:
    columns = heads("stratum, items:,d, drawn:")
    rows = [(stratum.name, stratum.population, stratum.drawn) for stratum in sample.strata]
    rows.append(("all", sample.population, len(sample.items)))
    return Table(f"Sample: {'; '.join(sample.plans)}", columns, tuple(rows), rules=(len(rows) - 1,))


def store_table(made: NewStore) -> Table:
    """Who judges how many items of a new store."""
    shared = made.assignment
    columns = heads("annotator, items:,d")
    rows = tuple((name, len(ids)) for name, ids in shared.work.items())
    notes = [f"Judged by all: {len(shared.overlap):,}."] if shared.overlap else []
    notes += [f"Spot check: {len(shared.checked):,}."] if shared.checked else []
    notes += [f"Adjudication: {', '.join(made.adjudicators)}."] if made.adjudicators else []
    return Table(f"{made.path}: scheme {made.scheme}", columns, rows, tuple(notes))


@summarises(NewStore)
def _new_store(made: NewStore) -> Summary:
    parts = (sample_table(made.sample), store_table(made))
    return Summary(parts, made.json(), notes=(f"judge it: truerank judge serve {made.path}",))


@summarises(Desk)
def _desk(desk: Desk) -> Summary:
    lines = [f"Judging {desk.store.path} at {desk.addresses[0]}"]
    lines += [f"  also at {address}" for address in desk.addresses[1:]]
    lines.append(f"  for {', '.join(desk.names)}" + (", each with an access token" if desk.tokens else ""))
    if desk.links:
        lines.append("New access tokens, shown this once. Each link takes its owner in:")
        width = max(len(name) for name, _ in desk.links)
        lines += [f"  {name:<{width}}  {link}" for name, link in desk.links]
    old = [name for name in desk.names if desk.tokens and name not in dict(desk.links)]
    if old:
        lines.append(f"Made before: the tokens of {', '.join(old)}. For a new link: --new-tokens NAME")
    if desk.tokens and not desk.encrypted and not desk.local:
        lines.append(
            "Tokens and labels travel unencrypted: give --certificate and --key, or put a proxy with TLS before it."
        )
    lines.append("Ctrl-C ends it; every label that was confirmed is kept.")
    return Summary(("\n".join(lines),), desk.json())


def import_table(found: LabelImport) -> Table:
    """The records of an import by what became of them."""
    marked = {name: f"{name} (model)" if name in found.models else name for name in found.added}
    rows = [(f"added: {marked[name]}", count) for name, count in found.added.items()]
    rows += [("there already", found.present), ("without a label", found.unlabelled)]
    rows += [("not matched", len(found.unmatched)), ("all", found.records)]
    notes = []
    if found.irregular:
        notes.append(f"{found.irregular:,} of them have labels that the scheme does not allow together.")
    if found.contradictions:
        notes.append(f"Contradictions that the rule for votes decided: {listed(found.contradictions)}.")
    columns = heads("records, number:,d")
    return Table(f"Imported into {found.store}", columns, tuple(rows), tuple(notes), (len(rows) - 1,))


@summarises(LabelImport)
def _import(found: LabelImport) -> Summary:
    lines = [
        f"{record.file}:{record.line}: topic {record.topic_id}, '{record.text}': {record.why}"
        for record in found.unmatched
    ]
    return Summary((import_table(found), *_first(lines)), found.json())


def export_table(found: LabelExport) -> Table:
    """How much was written and left out."""
    rows = (("written", found.written), ("nobody labelled", found.open), ("no answer by the rule", len(found.left_out)))
    notes = [f"Rule: {found.rule}."]
    notes += [f"Labels of models, marked as such: {', '.join(found.models)}."] if found.models else []
    notes += [f"Also written: {', '.join(map(str, found.beside))}."] if found.beside else []
    notes += [f"{found.lost:,} rows of the damaged store could not be read."] if found.lost is not None else []
    if found.formulas:
        done = "an apostrophe is put" if found.escaped else "--escape-formulas puts an apostrophe"
        notes.append(f"Spreadsheets would take {found.formulas:,} cells for formulas; {done} before each.")
    columns = heads("records, number:,d")
    return Table(f"{found.path}: {found.form}", columns, rows, tuple(notes))


@summarises(LabelExport)
def _export(found: LabelExport) -> Summary:
    return Summary((export_table(found), *_first([f"left out: {item}" for item in found.left_out])), found.json())


def _first(lines: Sequence[str]) -> tuple[str, ...]:
    """The first lines, and how many there are more."""
    more = len(lines) - _LISTED
    shown = [*lines[:_LISTED], *([f"… and {more:,} more; --json lists all"] if more > 0 else [])]
    return ("\n".join(shown),) if shown else ()


@summarises(ModelRun)
def _model(found: ModelRun) -> Summary:
    tables = [] if isinstance(found, ProbeRun) and not found.asked else [model_table(found)]
    tables += [probe_table(found)] if isinstance(found, ProbeRun) else []
    return Summary(tuple(tables), found.json(), fault=_unanswered(found))


def _unanswered(found: ModelRun) -> InputError | None:
    """The fault of a run in which items were asked about and none was answered; a reason to skip is an answer."""
    reasons = [*found.skipped, *found.failed.values()]
    if found.labelled or not reasons or any(re.match("the model(:|$)", reason) for reason in found.skipped):
        return None
    asked = sum(found.skipped.values()) + len(found.failed)
    remedy = "check endpoint, model and key; the same command asks again, with --again about skipped items too"
    return InputError(f"none of {asked:,} items was answered ({reasons[-1]})", remedy, where="judge model")


def model_table(found: ModelRun) -> Table:
    """The labels that a model gave and the reasons why it gave none, with their numbers."""
    rows = [(name, count) for name, count in found.labels.items()]
    rows += [(f"skipped: {reason}", count) for reason, count in found.skipped.items()]
    columns = heads("answer, items:,d")
    return Table(f"What the model {found.annotator} answered.", columns, tuple(rows), tuple(_model_notes(found)))


def _model_notes(found: ModelRun) -> Iterator[str]:
    yield f"{found.about}."
    skipped = sum(found.skipped.values())
    yield (
        f"{found.labelled:,} labelled and {skipped:,} skipped now, {found.already:,} before, "
        f"{found.left:,} left open; all are marked as a model's."
    )
    if found.requests[0]:
        yield f"{found.requests[0]:,} requests, {found.requests[1]:,} of them repeated."
    if sum(found.tokens):
        yield f"{found.tokens[0]:,} tokens read, {found.tokens[1]:,} written."
    if found.failed:
        fault = next(iter(found.failed.values()))
        yield f"{len(found.failed):,} without an answer ({fault}); the same command asks again."


def probe_table(found: ProbeRun) -> Table:
    """The share of grades that each probe moved."""
    columns = heads(
        "documents, probe, items:,d, moved|share:.3f, moved|low:.3f, moved|high:.3f, raised:.3f, lowered:.3f, "
        "crossed:.3f, moved_when_asked_again:.3f, p:.2g, shift:+.2f"
    )
    rows: list[tuple[Cell, ...]] = []
    for one in found.effects:
        shares = [None if part is None else part.share for part in (one.raised, one.lowered, one.crossed, one.again)]
        moved = (one.moved.share, one.moved.low, one.moved.high)
        rows.append((one.side, one.probe, one.items, *moved, *shares, one.p, one.shift))
    title = f"Grades of {found.annotator} that move" if found.annotator else "Nobody has graded the probes yet"
    return Table(f"{title}.", columns, tuple(rows), tuple(_probe_notes(found)))


def _probe_notes(found: ProbeRun) -> Iterator[str]:
    graded = found.items - found.unanswered
    yield f"{found.items:,} texts in {found.store}, {graded:,} of them graded."
    if not found.effects:
        yield f"Grade them: truerank judge serve {found.store}, or judge export and judge import; then --probe again."
        return
    yield f"Crossed: from below grade {found.rel} to {found.rel} or more, or back. Intervals are Wilson's, 95%."
    yield "p: McNemar's exact test of moved by the probe against moved when the same text is asked about again."
    for name in dict.fromkeys(one.probe for one in found.effects if one.probe in PROBES):
        left = found.unchanged.get(name, 0)
        yield f"{name}: {PROBES[name].about}" + (f"; {left:,} texts could not be changed." if left else ".")


def _tables(found: LabelCounts | AnnotatorAgreement) -> dict[str, Table]:
    return label_tables(found) if isinstance(found, LabelCounts) else agreement_tables(found)


def _figures(found: LabelCounts | AnnotatorAgreement) -> Summary:
    return Summary(tuple(_tables(found).values()), found.json())


def _write(found: LabelCounts | AnnotatorAgreement, job: Run) -> None:
    write_tables(job, _tables(found))
    job.json("summary.json", found.json())


summarises(LabelCounts)(_figures)
summarises(AnnotatorAgreement)(_figures)
writes(LabelCounts)(_write)
writes(AnnotatorAgreement)(_write)


def agreement_tables(found: AnnotatorAgreement) -> dict[str, Table]:
    """The overview; for a single definition its labels, pairs and matrix; the models."""
    tables = {"agreement": _overview(found)} if found.compared else {}
    if len(found.compared) == 1:
        (part,) = found.compared
        tables["labels"] = _label_table(found, part)
        if part.pairs:
            title = f"Agreement of each two annotators ({part.definition.name})."
            tables["pairs"] = _pair_table(found, title, part.pairs)
        if 0 < len(part.answers) <= _WIDEST_MATRIX:
            tables["matrix"] = _matrix_table(found, part)
    if found.models:
        notes = tuple(f"{model.name}: {model.about}." for model in found.about if model.about)
        notes = notes if found.compared else (*notes, *_agreement_notes(found))
        title = "Models against people" + ("; these figures are not part of those above." if found.compared else ".")
        if found.settings["include_models"]:
            title = "Models against people; models also take part in the figures above."
        tables["models"] = _pair_table(found, title, found.models, notes)
    return tables


def _overview(found: AnnotatorAgreement) -> Table:
    """One row per definition."""
    used = list(dict.fromkeys(name for part in found.compared for name in part.scores))
    columns = [*heads("definition, items:,d"), *_score_columns(found, used)]
    rows = [(part.definition.name, part.units, *_cells(found, part.scores, used)) for part in found.compared]
    who = " and ".join(annotator.name for annotator, _ in found.annotators)
    many = f"{len(found.annotators)} annotators"
    title = f"Agreement of {who if len(found.annotators) == 2 else many}."
    return Table(title, tuple(columns), tuple(rows), _agreement_notes(found))


def _agreement_notes(found: AnnotatorAgreement) -> tuple[str, ...]:
    lines = [f"{name}: {meaning}" for name, meaning in found.settings["definitions"].items()]
    reasons = dict.fromkeys(
        f"{part.definition.name}, {TITLES[name]}: {score.reason}."
        for part in found.compared
        for name, score in part.scores.items()
        if score.reason
    )
    return (*lines, *reasons, *found.notes)


def _score_columns(found: AnnotatorAgreement, names: Sequence[str]) -> list[Column]:
    titles = ("value", "low", "high") if found.settings["resamples"] else ("value",)
    return [column for name in names for column in Column.numbers(".3f", *titles, above=(TITLES[name],))]


def _cells(found: AnnotatorAgreement, scores: Mapping[str, Score], names: Sequence[str]) -> list[Cell]:
    """The coefficients of these names, with their intervals where there are any."""
    most = 3 if found.settings["resamples"] else 1
    return [cell for name in names for cell in scores[name][:most]]


def _label_table(found: AnnotatorAgreement, part: DefinitionAgreement) -> Table:
    names = list(part.labels[0].scores) if part.labels else []
    columns = (*heads("label, given:,d"), *_score_columns(found, names))
    rows = [(row.label, row.given, *_cells(found, row.scores, names)) for row in part.labels]
    notes = tuple(f"{row.label}: {s.reason}." for row in part.labels for s in row.scores.values() if s.reason)
    title = f"Agreement on each label, given or not given ({part.definition.name})."
    return Table(title, columns, tuple(rows), tuple(dict.fromkeys(notes)))


def _pair_table(
    found: AnnotatorAgreement, title: str, pairs: Sequence[PairAgreement], notes: tuple[str, ...] = ()
) -> Table:
    names = ("percentage", "cohen")
    columns = [*heads("annotator, against, definition, items:,d"), *_score_columns(found, names)]
    rows = [(p.first, p.second, p.definition, p.units, *_cells(found, p.scores, names)) for p in pairs]
    reasons = dict.fromkeys(
        f"{pair.first} against {pair.second}, {pair.definition}: {score.reason}."
        for pair in pairs
        for score in pair.scores.values()
        if score.reason
    )
    return Table(title, tuple(columns), tuple(rows), (*notes, *reasons))


def _matrix_table(found: AnnotatorAgreement, part: DefinitionAgreement) -> Table:
    first, second = "one rating", "other rating"
    title = "Pairs of ratings of the same item, both ways"
    if len(found.annotators) == 2:
        first, second = (annotator.name for annotator, _ in found.annotators)
        title = f"Rows {first}, columns {second}"
    columns = (Column(first), *Column.numbers(",d", *part.answers, above=(second,)))
    rows = tuple((answer, *row) for answer, row in zip(part.answers, part.matrix.tolist(), strict=True))
    return Table(f"{title} ({part.definition.name}).", columns, rows)


def label_tables(found: LabelCounts) -> dict[str, Table]:
    """The tables by name, in order; the last one has the notes on what was left out."""
    last = list(found.parts)[-1]
    return {
        name: _label_counts(found, name, frame, found.notes if name == last else ())
        for name, frame in found.parts.items()
    }


def _label_counts(found: LabelCounts, name: str, frame: pl.DataFrame, notes: tuple[str, ...]) -> Table:
    own: tuple[str, ...] = ()
    above: dict[str, str] = {}
    # A line above the row of totals.
    rules = [len(frame) - 1] if len(frame) > 1 else []
    if name == "a":
        title, rules = f"True and false candidates among {found.answered:,} judged pairs.", [*range(2, len(frame), 2)]
    elif name == "b":
        title, rules = "Reformulation types of the judged pairs.", []
        own = ("A pair labelled Different Topic counts as that, whatever else it carries.",)
    elif name == "shares":
        title, rules = "Shares of the reasons.", [*group_starts(frame.to_series(0).to_list())]
        own = ("The intervals are Wilson's; they hold for a random sample of each split.",)
        above = dict.fromkeys(("low", "high"), f"{found.settings['confidence']:.0%} interval")
    elif found.scheme == "survivorship":
        title = "Discarded queries by the reason why they were unanswered."
    elif found.scheme == "transfer":
        title = "Which version of the documents is relevant."
        own = ("2: relevant, and better than the other version.",)
        above = {label: f"V1={first} V2={second}" for label, (first, second) in COMBINED.items()}
    elif found.scheme.startswith("transfer:"):
        title, rules = "How relevant each version of the documents is.", [*group_starts(frame.to_series(0).to_list())]
        above = dict.fromkeys(frame.columns[2:-1], "grade")
    else:
        title = found.title
    columns = []
    for column, kind in frame.schema.items():
        headings = (above[column],) if column in above else ()
        form = "" if kind in (pl.String, pl.Null) else ".3f" if kind.is_float() else ",d"
        columns.append(Column(column, headings, "right" if form else "left", form))
    return Table.of(frame, columns, title, notes=(*own, *notes), rules=tuple(rules))
