"""The tables of an audit of assessors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from truerank.audits.assessors.agreement import COEFFICIENTS
from truerank.audits.assessors.audit import AssessorAudit
from truerank.audits.assessors.correction import PLANNED
from truerank.audits.assessors.options import OUTSIDE
from truerank.audits.assessors.verdicts import USES, verdicts_of
from truerank.core.tables import Cell, Column, Table
from truerank.measures.significance import CORRECTIONS

_MOVES: Final = 5
_LOWEST: Final = 20
_STATISTICS: Final = {"tau": "τ", "tau_ap": "τ_AP", "rho": "Spearman's ρ", "rbo": "RBO"}


def ended(row: dict[str, Any], form: str = ".3f", names: Sequence[str] = ("value", "low", "high")) -> str:
    """A value with its interval, as one cell."""
    value, low, high = (row[name] for name in names)
    if value is None:
        return "–"
    return f"{value:{form}}" if low is None else f"{value:{form}} [{low:{form}}, {high:{form}}]"


def all_tables(audit: AssessorAudit) -> Iterator[tuple[str, Table]]:
    """The tables by name, in reading order; those that have no rows are left out."""
    made = (
        ("verdicts", _verdicts(audit)),
        ("agreement", _agreement(audit)),
        ("cuts", _cuts(audit)),
        ("rating", _bands(audit, "rating", "Grades given too low or too high, by people's grade")),
        ("confusion", _confusion(audit)),
        ("topics", _topics(audit)),
        ("outside", _outside(audit)),
        ("ceiling", _ceiling(audit)),
        ("people", _people(audit)),
        ("differences", _differences(audit)),
        ("ensembles", _ensembles(audit)),
        ("company", _company(audit)),
        ("choosing", _choosing(audit)),
        ("order", _order(audit)),
        ("pairs", _pairs(audit)),
        ("scores", _scores(audit)),
        ("moves", _moves(audit)),
        ("ranks", _bands(audit, "ranks", "Grades given too low or too high, by the best rank of the document")),
        ("families", _families(audit)),
        ("last_stage", _last_stage(audit)),
        ("corrected", _corrected(audit)),
        ("plans", _plans(audit)),
    )
    yield from ((name, table) for name, table in made if table.rows)


def _number(title: str, form: str = ".3f", above: tuple[str, ...] = ()) -> Column:
    return Column(title, above=above, align="right", format=form)


def _words(title: str, above: tuple[str, ...] = ()) -> Column:
    return Column(title, above=above, align="right")


def _drawn(audit: AssessorAudit) -> str:
    resampling = audit.resampling
    return (
        f"In brackets: {resampling.confidence:.0%} interval of {resampling.resamples:,} bootstrap resamples of the "
        f"{len(audit.grades.topics):,} topics, seed {resampling.seed}."
    )


def _by_model(audit: AssessorAudit, frame: str, **wanted: Any) -> Iterator[dict[str, Any]]:
    """The rows of a frame, those of the best model first."""
    for judge in audit.best():
        yield from audit.of(frame, judge=judge, **wanted)


def _verdicts(audit: AssessorAudit) -> Table:
    found = {(one.judge, one.use): one.word for one in verdicts_of(audit)}
    rows = [(judge, *(found[judge, use] for use in USES)) for judge in audit.best()]
    columns = (Column("model"), *(Column(title) for title in USES.values()))
    return Table("For what each model may be used; the model that agrees best with people first", columns, tuple(rows))


def _agreement(audit: AssessorAudit) -> Table:
    rows = []
    for judge in audit.best():
        found = {row["coefficient"]: row for row in audit.of("agreement", judge=judge)}
        pairs = next(iter(found.values()))["pairs"]
        rows.append((judge, pairs, *(ended(found[name]) for name in COEFFICIENTS if name != "agreement")))
    columns = [Column("model"), _number("pairs", ",d")]
    for title in list(COEFFICIENTS.values())[1:]:
        head, _, tail = title.partition(", ")
        columns.append(_words(tail.removesuffix(" weights") or "plain", (head,)))
    return Table("Agreement with people", tuple(columns), tuple(rows), notes=(_drawn(audit),))


def _cuts(audit: AssessorAudit) -> Table:
    cuts = audit.grades.scale[1:]
    columns = [Column("model")]
    for cut in cuts:
        head = (f"relevant from grade {cut}",)
        columns += [_words("κ", head), _number("people", ".1%", head), _number("model", ".1%", head)]
    rows = []
    for judge in audit.best():
        cells: list[Cell] = [judge]
        for row in audit.of("cuts", judge=judge):
            cells += [ended(row), row["people_share"], row["judge_share"]]
        rows.append(tuple(cells))
    note = "people and model: the share of pairs that each calls relevant."
    return Table("Cohen's κ at each division of the scale", tuple(columns), tuple(rows), notes=(note, _drawn(audit)))


def _bands(audit: AssessorAudit, frame: str, title: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    rules = []
    for judge in audit.best():
        rules.append(len(rows))
        for row in audit.of(frame, judge=judge):
            rows.append((judge, row["band"], row["pairs"], row["under"], row["over"], ended(row, "+.2f")))
    columns = (
        Column("model"), Column("pairs of"), _number("pairs", ",d"), _number("lower", ".1%"), _number("higher", ".1%"),
        _words("model minus people"),
    )  # fmt: skip
    note = (
        "lower, higher: share of pairs that the model grades lower or higher than people. A pair of people's lowest "
        "grade can only be graded too high, one of their highest only too low; 'all' says which prevails."
    )
    notes = (note, _drawn(audit)) if frame == "rating" else (_drawn(audit),)
    return Table(title, columns, tuple(rows), notes=notes, rules=tuple(rules[1:]))


def _confusion(audit: AssessorAudit) -> Table:
    scale = audit.grades.scale
    rows: list[tuple[Cell, ...]] = []
    for judge in audit.best():
        found = {(row["people"], row["model"]): row["pairs"] for row in audit.of("confusion", judge=judge)}
        rows += [(judge, grade, *(found[grade, other] for other in scale)) for grade in scale]
    columns = [Column("model"), _number("people's grade", "d")]
    columns += [_number(str(grade), ",d", ("grade of the model",)) for grade in scale]
    return Table("Pairs by the grades of people and of the model", tuple(columns), tuple(rows))


def _topics(audit: AssessorAudit) -> Table:
    best = audit.best()[0]
    rows = []
    for topic in audit.grades.topics:
        found = audit.of("topics", topic_id=topic)
        known = [row["kappa"] for row in found if row["kappa"] is not None]
        own = next((row["kappa"] for row in found if row["judge"] == best), None)
        if known:
            pairs = max(row["pairs"] for row in found)
            high = sum(row["difference"] for row in found) / len(found)
            rows.append((topic, pairs, sum(known) / len(known), own, high))
    rows.sort(key=lambda row: (row[2], row[0]))
    columns = (
        Column("topic"), _number("pairs", ",d"), _number("mean κ"), _number(f"κ of {best}"),
        _number("model minus people", "+.2f"),
    )  # fmt: skip
    note = (
        f"Means over all models; the {_LOWEST} topics with the lowest κ. Where all models disagree with people, look "
        "at people's grades too. All topics and models are in topics.parquet."
    )
    return Table("Agreement by topic", columns, tuple(rows[:_LOWEST]), notes=(note,))


def _outside(audit: AssessorAudit) -> Table:
    rows = tuple((one.name, one.grade, one.pairs) for one in audit.grades.outside)
    columns = (Column("who"), _number("grade", "d"), _number("pairs", ",d"))
    shown = ", ".join(map(str, audit.grades.scale))
    rule = OUTSIDE[audit.rules.outside]
    return Table(f"Grades outside the scale {shown}", columns, rows, notes=(f"Rule: {rule}.",))


def _ceiling(audit: AssessorAudit) -> Table:
    rows = tuple((row["judge"], row["people"], row["model"], ended(row, "+.3f")) for row in audit.of("ceiling"))
    columns = (
        Column("model"), _number("two people"), _number("the model and a person"), _words("difference"),
    )  # fmt: skip
    note = "A model whose difference is not below 0 agrees with people as a further person does."
    return Table("The ceiling: α (ordinal) between people", columns, rows, notes=(note, _drawn(audit)))


def _people(audit: AssessorAudit) -> Table:
    rows = tuple((row["first"], row["second"], row["pairs"], row["kappa"], ended(row)) for row in audit.of("people"))
    columns = (
        Column("person"), Column("and"), _number("pairs", ",d"), _number("Cohen's κ"), _words("α, ordinal"),
    )  # fmt: skip
    return Table("Agreement between people", columns, rows, notes=(_drawn(audit),))


def _differences(audit: AssessorAudit) -> Table:
    level = round(1 - audit.resampling.confidence, 12)
    every = audit.of("differences")
    found = [row for row in every if row["corrected"] is not None and row["corrected"] < level]
    rows = tuple(
        (row["first"], row["second"], ended(row), row["p"], row["corrected"])
        for row in sorted(found, key=lambda row: (row["corrected"], row["first"], row["second"]))
    )
    columns = (
        Column("model"), Column("better than"), _words("difference of α"), _number("p", ".2g"),
        _number("corrected p", ".2g"),
    )  # fmt: skip
    note = (
        f"{len(found):,} of {len(every):,} differences of α (ordinal) between two models survive the correction "
        f"({CORRECTIONS[audit.rules.correction]}); p by the t distribution over the bootstrap's standard error."
    )
    return Table("Models that differ significantly", columns, rows, notes=(note,))


def _ensembles(audit: AssessorAudit) -> Table:
    rows = tuple(
        (
            row["ensemble"],
            row["kappa"],
            ended(row),
            ended(row, "+.3f", ("gain", "gain_low", "gain_high")),
            row["corrected"],
        )
        for row in audit.of("ensembles")
    )
    columns = (
        Column("ensemble"), _number("Cohen's κ"), _words("α, ordinal"), _words("gain of α"),
        _number("corrected p", ".2g"),
    )  # fmt: skip
    note = "Gain: over the best model. The best models are chosen topic by topic, by their α on all other topics."
    return Table("What ensembles add", columns, rows, notes=(note, _drawn(audit)))


def _company(audit: AssessorAudit) -> Table:
    """How far each model agrees with the others, beside people."""
    main = {row["judge"]: row["value"] for row in audit.of("agreement", coefficient="alpha-ordinal")}
    values: dict[str, list[tuple[float, str]]] = {}
    for row in audit.of("between"):
        for one, other in ((row["first"], row["second"]), (row["second"], row["first"])):
            if row["value"] is not None:
                values.setdefault(one, []).append((row["value"], other))
    rows = []
    for judge in audit.best():
        if own := values.get(judge):
            nearest = max(own)
            rows.append((judge, main[judge], sum(v for v, _ in own) / len(own), nearest[1], nearest[0]))
    columns = (
        Column("model"), _number("people"), _number("other models, mean"), Column("nearest model"), _number("nearest"),
    )  # fmt: skip
    note = "A model that agrees with other models far better than with people shares their errors."
    return Table("α (ordinal) with people and with other models", columns, tuple(rows), notes=(note,))


def _choosing(audit: AssessorAudit) -> Table:
    missed = ("missed", "missed_low", "missed_high")
    rows = [
        (row["judge"], row["topics"], ended(row), ended(row, ".1%", missed), row["effort"])
        for row in _by_model(audit, "choosing")
    ]
    columns = (
        Column("model"), _number("topics", ",d"), _words("chance"), _words("missed"), _number("effort", ".1%"),
    )  # fmt: skip
    notes = (
        "chance: that a relevant document of a topic has a higher grade than another one, ties count half. missed: "
        "relevant documents with the model's lowest grade. effort: the share of documents that people see, by falling "
        "grade, until they have seen 90% of the relevant ones; 90% for a model that knows nothing.",
        f"Relevant: a grade of {audit.scoring.rel} and more by people.",
        _drawn(audit),
    )
    return Table("How well grades choose what people judge next", columns, tuple(rows), notes=notes)


def _order(audit: AssessorAudit) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for judge in audit.best():
        held: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
        for row in audit.of("order", judge=judge):
            held.setdefault((row["measure"], row["systems"]), {})[row["statistic"]] = row
        for (measure, systems), found in held.items():
            rows.append(
                (judge, measure, systems, found["tau"]["n"], *(ended(found[name], ".2f") for name in _STATISTICS))
            )
    columns = (
        Column("model"), Column("measure"), Column("systems"), _number("n", "d"),
        *(_words(title) for title in _STATISTICS.values()),
    )  # fmt: skip
    notes = (
        "The best systems are those by people's scores. The intervals are for what another set of as many topics would "
        "show. RBO with p = 0.9.",
        _drawn(audit),
    )
    return Table("The order of systems under people and under the model", columns, tuple(rows), notes=notes)


def _pairs(audit: AssessorAudit) -> Table:
    kinds = ("pairs", "people", "model", "both", "lost", "gained", "opposite", "swapped", "turned")
    rows = [
        (row["judge"], row["measure"], row["systems"], *(row[kind] for kind in kinds))
        for row in _by_model(audit, "pairs")
    ]
    columns = (Column("model"), Column("measure"), Column("systems"), *(_number(kind, ",d") for kind in kinds))
    notes = (
        "Pairs of systems: significant under people, under the model, under both in the same direction; lost: under "
        "people only; gained: under the model only; opposite: under both, in opposite directions; swapped: in "
        "another order; turned: of these, pairs that chance and a narrower scale of the model do not explain.",
        f"Paired t-test over topics, level {1 - audit.resampling.confidence:.2g}, "
        f"{CORRECTIONS[audit.rules.correction]} over the pairs of the row.",
    )
    return Table("Pairs of systems that differ significantly", columns, tuple(rows), notes=notes)


def _scores(audit: AssessorAudit) -> Table:
    rows = []
    for row in _by_model(audit, "scores", run=""):
        judge, measure = row["judge"], row["measure"]
        runs = [one for one in audit.of("scores", judge=judge, measure=measure) if one["run"]]
        worst = max(runs, key=lambda one: abs(one["value"]))
        largest = worst["run"], ended(worst, "+.3f")
        rows.append((judge, measure, row["people"], row["model"], ended(row, "+.3f"), *largest))
    columns = (
        Column("model"), Column("measure"), _number("by people"), _number("by the model"), _words("difference"),
        Column("largest for"), _words("largest"),
    )  # fmt: skip
    return Table("Mean scores over the runs", columns, tuple(rows), notes=(_drawn(audit),))


def _moves(audit: AssessorAudit) -> Table:
    if audit.scores is None:
        return Table("", (Column("model"),), ())
    rows: list[tuple[Cell, ...]] = []
    for judge in audit.best():
        found = [row for row in audit.of("scores", judge=judge, measure=audit.scores.measures[0]) if row["run"]]
        found.sort(key=lambda row: (-abs(row["people_rank"] - row["model_rank"]), row["people_rank"], row["run"]))
        for row in found[:_MOVES]:
            if move := row["people_rank"] - row["model_rank"]:
                family = audit.families.get(row["run"], "")
                cells = (row["people_rank"], row["model_rank"], f"{move:+d}", ended(row, "+.3f"))
                rows.append((judge, row["run"], family or None, *cells))
    columns = (
        Column("model"), Column("run"), Column("family"), _number("rank by people", "d"), _number("by the model", "d"),
        _words("move"), _words("difference of scores"),
    )  # fmt: skip
    note = f"By {audit.scores.measures[0]}, up to {_MOVES} runs of each model; + is a better rank."
    return Table("The largest moves", columns, tuple(rows), notes=(note, _drawn(audit)))


def _families(audit: AssessorAudit) -> Table:
    rows = [
        (
            row["judge"], row["measure"], row["family"], row["runs"], ended(row, "+.3f"),
            ended(row, "+.3f", ("adjusted", "adjusted_low", "adjusted_high")), row["corrected"],
        )
        for row in _by_model(audit, "families")
    ]  # fmt: skip
    columns = (
        Column("model"), Column("measure"), Column("family"), _number("runs", "d"), _words("gain"),
        _words("at equal scores"), _number("corrected p", ".2g"),
    )  # fmt: skip
    notes = (
        "gain: model minus people, mean over the family's runs, less the same over all other runs; its interval is "
        "over topics. at equal scores: against what the other runs gain that have such scores under people; its "
        "interval allows for topics and runs.",
    )
    return Table("What families of runs gain under each model", columns, tuple(rows), notes=notes)


def _last_stage(audit: AssessorAudit) -> Table:
    rows = [
        (
            row["judge"], row["measure"], row["model"], row["people"], ended(row, "+.3f"), row["above"],
            row["people_above"],
        )
        for row in _by_model(audit, "last_stage")
    ]  # fmt: skip
    columns = (
        Column("model"), Column("measure"), _number("gain by the model", "+.3f"), _number("gain by people", "+.3f"),
        _words("difference"), _number("above all, by the model", "d"), _number("by people", "d"),
    )  # fmt: skip
    notes = (
        "Each run's first results (100, or `depth`) in the order of the model's grades, then scored by the model and "
        "by people. above all: how many of the reordered runs are above the best original one.",
        _drawn(audit),
    )
    return Table("If the model were the last stage of every run", columns, tuple(rows), notes=notes)


def _corrected(audit: AssessorAudit) -> Table:
    rows = []
    for row in _by_model(audit, "corrected"):
        if row["corrected"] is not None:
            cells = [ended(row, ".3f", (name, f"{name}_low", f"{name}_high")) for name in ("model", "people")]
            own = ended(row, ".3f", ("corrected", "low", "high"))
            rows.append((row["judge"], row["measure"], row["run"], row["labels"], *cells, own))
    columns = (
        Column("model"), Column("measure"), Column("run"), _number("labels", ",d"), _words("the model alone"),
        _words("the labels alone"), _words("corrected"),
    )  # fmt: skip
    notes = (
        "corrected: the model's grades of all pairs, less the error that people's labels of a sample show. The "
        "interval of the model alone leaves this error out.",
        f"How people's pairs were drawn: {audit.rules.people_sample}. If they were chosen in another way, the "
        "corrected scores and their intervals do not hold.",
    )
    return Table("Corrected scores", columns, tuple(rows), notes=notes)


def _plans(audit: AssessorAudit) -> Table:
    rows = [
        (
            row["judge"], row["pairs"], row["labels"], row["labels"] / row["pairs"],
            None if row["width"] is None else row["width"] / 2, None if row["reached"] else "not reached",
        )
        for row in _by_model(audit, "plans")
    ]  # fmt: skip
    columns = (
        Column("model"), _number("pairs", ",d"), _number("labels of people", ",d"), _number("share", ".0%"),
        _number("±", ".3f"), Column("note"),
    )  # fmt: skip
    note = (
        f"For {PLANNED} of these topics within ±{audit.rules.margin:g}: pairs are drawn by the model's grade and the "
        "best rank, people's grades here are the pilot. The figure is a prediction; a like collection needs about as "
        "many."
    )
    return Table("Labels that corrected scores need", columns, tuple(rows), notes=(note,))
