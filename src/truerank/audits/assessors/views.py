"""The tables of an audit of assessors, declared over its frames."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from truerank.audits.assessors.agreement import COEFFICIENTS
from truerank.audits.assessors.audit import AssessorAudit
from truerank.audits.assessors.correction import PLANNED
from truerank.audits.assessors.options import OUTSIDE
from truerank.audits.assessors.panel import ERRORS
from truerank.audits.assessors.verdicts import USES, verdicts_of
from truerank.core.views import ColumnSpread, Field, View, columns
from truerank.measures.significance import CORRECTIONS

_MOVES: Final = 5
_LOWEST: Final = 20
_STATISTICS: Final = {"tau": ("τ",), "tau_ap": ("τ_AP",), "rho": ("Spearman's ρ",), "rbo": ("RBO",)}
_DRAWN: Final = "{drawn}"


def _coefficient_headings() -> dict[str, tuple[str, ...]]:
    """ "Cohen's κ, linear weights" becomes "linear" below "Cohen's κ"."""
    parts = {name: title.partition(", ") for name, title in COEFFICIENTS.items() if name != "agreement"}
    return {name: (head, tail.removesuffix(" weights") or "plain") for name, (head, _, tail) in parts.items()}


#: The tables in reading order.
VIEWS: Final = (
    View(
        "verdicts", "verdicts", "For what each model may be used; the model that agrees best with people first",
        columns("model=judge"),
        spread=ColumnSpread("use", {use: (title,) for use, title in USES.items()}, (Field((), "word"),)),
    ),
    View(
        "agreement", "agreement", "Agreement with people", columns("model=judge, pairs:,d"), (_DRAWN,),
        spread=ColumnSpread("coefficient", _coefficient_headings(), (Field((), "value", ".3f", interval=True),)),
    ),
    View(
        "cuts", "cuts", "Cohen's κ at each division of the scale", columns("model=judge"),
        ("people and model: the share of pairs that each calls relevant.", _DRAWN), "agreement", "page",
        spread=ColumnSpread(
            "cut", ("relevant from grade {}",), columns("κ=value~.3f, people=people_share:.1%, model=judge_share:.1%")
        ),
    ),
    *(
        View(
            name, name, f"Grades given too low or too high, by {what}",
            columns("model=judge, pairs of=band, pairs:,d, lower=under:.1%, higher=over:.1%, "
                    "model minus people=value~+.2f"),
            notes, "grading", "page", ruled="judge", by="judge",
        )
        for name, what, notes in (
            ("rating", "people's grade", (
                "lower, higher: share of pairs that the model grades lower or higher than people. A pair of people's "
                "lowest grade can only be graded too high, one of their highest only too low; 'all' says which "
                "prevails.", _DRAWN,
            )),
            ("ranks", "the best rank of the document", (_DRAWN,)),
        )
    ),
    View(
        "confusion", "confusion", "Pairs by the grades of people and of the model",
        columns("model=judge, people's grade=people:d"), section="grading", place="page", by="judge",
        spread=ColumnSpread("model", ("grade of the model", "{}"), (Field((), "pairs", ",d"),)),
    ),
    View(
        "topics", "lowest", "Agreement by topic",
        columns("topic=topic_id, pairs:,d, mean κ=kappa:.3f, κ of {first}=first:.3f, "
                "model minus people=difference:+.2f"),
        (
            f"Means over all models; the {_LOWEST} topics with the lowest κ. Where all models disagree with people, "
            "look at people's grades too. All topics and models are in topics.parquet.",
        ),
        "agreement", "page",
    ),
    View(
        "outside", "outside", "Grades outside the scale {scale}", columns("who=name, grade:d, pairs:,d"),
        ("Rule: {outside}.",), "grading",
    ),
    View(
        "ceiling", "ceiling", "The ceiling: α (ordinal) between people",
        columns("model=judge, two people=people:.3f, the model and a person=model:.3f, difference=value~+.3f"),
        ("A model whose difference is not below 0 agrees with people as a further person does.", _DRAWN), "people",
    ),
    View(
        "people", "people", "Agreement between people",
        (*columns("person=first, and=second, pairs:,d, Cohen's κ=kappa:.3f"),
         Field(("α, ordinal",), "value", ".3f", interval=True)),
        (_DRAWN,),
    ),
    View(
        "differences", "significant", "Models that differ significantly",
        columns("model=first, better than=second, difference of α=value~.3f, p:.2g, corrected p=corrected:.2g"),
        (
            "{significant} of {differences} differences of α (ordinal) between two models survive the correction "
            "({correction}); p by the t distribution over the bootstrap's standard error.",
        ),
        "models", "page",
    ),
    View(
        "ensembles", "ensembles", "What ensembles add",
        (*columns("ensemble, Cohen's κ=kappa:.3f"), Field(("α, ordinal",), "value", ".3f", interval=True),
         *columns("gain of α=gain~+.3f, corrected p=corrected:.2g")),
        (
            "Gain: over the best model. The best models are chosen topic by topic, by their α on all other topics.",
            _DRAWN,
        ),
        "models",
    ),
    View(
        "company", "company", "α (ordinal) with people and with other models",
        (*columns("model=judge, people:.3f"), Field(("other models, mean",), "others", ".3f"),
         *columns("nearest model=nearest, nearest=alpha:.3f")),
        ("A model that agrees with other models far better than with people shares their errors.",), "models", "page",
    ),
    View(
        "panel", "panel", "To how many independent judges the models amount",
        columns("errors=kind, models=judges:d, pairs:,d, mean correlation=value~.2f, independent judges=effective~.1f"),
        (
            "independent judges: n / (1 + (n - 1) r), with the mean correlation r of the errors of two models. At "
            "equal grades of people, models that err independently have r = 0; in the other rows a part of people's "
            "own grade is in every error. Errors of people, too, are in every row: r is not the models' alone.",
            _DRAWN,
        ),
        "models",
    ),
    View(
        "left_out", "families_left_out", "The panel with each family of models left out",
        columns("left out=family, models left=judges:d, α of the panel=value~.3f, change=gain~+.3f, "
                "corrected p=corrected:.2g, correlation within=within:.2f, independent judges left=effective:.1f"),
        (
            "The panel's grade is the lower median of its models'; α is ordinal, with people. correlation within: of "
            "the errors of two models of the family, at equal grades of people.",
            _DRAWN,
        ),
        "models", "page",
    ),
    View(
        "choosing", "choosing", "How well grades choose what people judge next",
        columns("model=judge, topics:,d, chance=value~.3f, missed~.1%, effort:.1%"),
        (
            "chance: that a relevant document of a topic has a higher grade than another one, ties count half. missed: "
            "relevant documents with the model's lowest grade. effort: the share of documents that people see, by "
            "falling grade, until they have seen 90% of the relevant ones; 90% for a model that knows nothing.",
            "Relevant: a grade of {rel} and more by people.",
            _DRAWN,
        ),
        place="page",
    ),
    View(
        "order", "order", "The order of systems under people and under the model",
        columns("model=judge, measure, systems, n:d"),
        (
            "The best systems are those by people's scores. The intervals are for what another set of as many topics "
            "would show. RBO with p = 0.9.",
            _DRAWN,
        ),
        by="judge", spread=ColumnSpread("statistic", _STATISTICS, (Field((), "value", ".2f", interval=True),)),
    ),
    View(
        "pairs", "pairs", "Pairs of systems that differ significantly",
        columns("model=judge, measure, systems, pairs:,d, people:,d, model:,d, both:,d, lost:,d, gained:,d, "
                "opposite:,d, swapped:,d, turned:,d"),
        (
            "Pairs of systems: significant under people, under the model, under both in the same direction; lost: "
            "under people only; gained: under the model only; opposite: under both, in opposite directions; swapped: "
            "in another order; turned: of these, pairs that chance and a narrower scale of the model do not explain.",
            "Paired t-test over topics, level {level:.2g}, {correction} over the pairs of the row.",
        ),
        "order", "page", by="judge",
    ),
    View(
        "scores", "means", "Mean scores over the runs",
        columns("model=judge, measure, by people=people:.3f, by the model=model:.3f, difference=value~+.3f, "
                "largest for=run, largest~+.3f"),
        (_DRAWN,), "order",
    ),
    View(
        "moves", "moves", "The largest moves",
        columns("model=judge, run, family, rank by people=people_rank:d, by the model=model_rank:d, move:+d, "
                "difference of scores=value~+.3f"),
        (f"By {{measure}}, up to {_MOVES} runs of each model; + is a better rank.", _DRAWN), "order", "page",
        by="judge",
    ),
    View(
        "families", "families", "What families of runs gain under each model",
        columns("model=judge, measure, family, runs:d, gain=value~+.3f, at equal scores=adjusted~+.3f, "
                "corrected p=corrected:.2g"),
        (
            "gain: model minus people, mean over the family's runs, less the same over all other runs; its interval is "
            "over topics. at equal scores: against what the other runs gain that have such scores under people; its "
            "interval allows for topics and runs.",
        ),
        by="judge",
    ),
    View(
        "last_stage", "last_stage", "If the model were the last stage of every run",
        (*columns("model=judge, measure, gain by the model=model:+.3f, gain by people=people:+.3f, "
                  "difference=value~+.3f"),
         Field(("above all, by the model",), "above", "d"), Field(("by people",), "people_above", "d")),
        (
            "Each run's first results (100, or `depth`) in the order of the model's grades, then scored by the model "
            "and by people. above all: how many of the reordered runs are above the best original one.",
            _DRAWN,
        ),
    ),
    View(
        "corrected", "corrections", "Corrected scores",
        columns("model=judge, measure, run, labels:,d, the model alone=model~.3f, the labels alone=people~.3f, "
                "corrected~.3f"),
        (
            "corrected: the model's grades of all pairs, less the error that people's labels of a sample show. The "
            "interval of the model alone leaves this error out.",
            "How people's pairs were drawn: {people_sample}. If they were chosen in another way, the corrected scores "
            "and their intervals do not hold.",
        ),
        place="page", by="judge",
    ),
    View(
        "plans", "plans", "Labels that corrected scores need",
        columns("model=judge, pairs:,d, labels of people=labels:,d, share:.0%, ±=half:.3f, note"),
        (
            f"For {PLANNED} of these topics within ±{{margin:g}}: pairs are drawn by the model's grade and the best "
            "rank, people's grades here are the pilot. The figure is a prediction; a like collection needs about as "
            "many.",
        ),
        "corrected",
    ),
)  # fmt: skip


def notes_facts(audit: AssessorAudit) -> dict[str, Any]:
    """What titles, headings and notes of the tables name."""
    resampling, rules = audit.resampling, audit.rules
    return {
        "drawn": f"In brackets: {resampling.confidence:.0%} interval of {resampling.resamples:,} bootstrap resamples "
        f"of the {len(audit.grades.topics):,} topics, seed {resampling.seed}.",
        "first": audit.best()[0],
        "scale": ", ".join(map(str, audit.grades.scale)),
        "outside": OUTSIDE[rules.outside],
        "significant": f"{len(_significant(audit)):,}",
        "differences": f"{len(audit.frames['differences']):,}",
        "correction": CORRECTIONS[rules.correction],
        "level": 1 - resampling.confidence,
        "rel": audit.scoring.rel,
        "measure": "" if audit.scores is None else audit.scores.measures[0],
        "people_sample": rules.people_sample,
        "margin": rules.margin,
    }


def shown_frames(audit: AssessorAudit) -> dict[str, pl.DataFrame]:
    """The frames of the tables: those of the audit, the best model first, and those that are made of them."""
    frames = {
        **audit.frames,
        "verdicts": pl.DataFrame(
            [(one.judge, one.use, one.word) for one in verdicts_of(audit)], ["judge", "use", "word"], orient="row"
        ),
        "lowest": _lowest_topics(audit),
        "outside": pl.DataFrame(audit.grades.outside, ["name", "grade", "pairs"], orient="row"),
        "significant": _significant(audit),
        "company": _company(audit),
        "panel": audit.frames["panel"].with_columns(kind=pl.col("errors").replace(ERRORS)),
        "families_left_out": audit.frames["left_out"].with_columns(pl.col("family").replace("", "none")),
    }
    if audit.scores is not None:
        own = pl.col("run") != ""
        frames["means"] = _means(audit.frames["scores"], own)
        frames["moves"] = _moves(audit, audit.frames["scores"].filter(own, measure=audit.scores.measures[0]))
        frames["plans"] = audit.frames["plans"].with_columns(
            share=pl.col("labels") / pl.col("pairs"),
            half=pl.col("width") / 2,
            note=pl.when(~pl.col("reached")).then(pl.lit("not reached")),
        )
        if "corrected" in audit.frames["corrected"].columns:
            frames["corrections"] = audit.frames["corrected"].filter(pl.col("corrected").is_not_null())
    best = pl.Enum(audit.best())
    return {
        name: frame.sort(pl.col("judge").cast(best), maintain_order=True) if "judge" in frame.columns else frame
        for name, frame in frames.items()
    }


def _lowest_topics(audit: AssessorAudit) -> pl.DataFrame:
    """The topics on which models agree least with people, on average over the models."""
    first = pl.col("kappa").filter(judge=audit.best()[0]).first()
    means = audit.frames["topics"].group_by("topic_id").agg(
        pl.col("pairs").max(), pl.col("kappa").mean(), first=first, difference=pl.col("difference").mean()
    )  # fmt: skip
    return means.filter(pl.col("kappa").is_not_null()).sort("kappa", "topic_id").head(_LOWEST)


def _significant(audit: AssessorAudit) -> pl.DataFrame:
    """The differences between two models that survive the correction."""
    level = round(1 - audit.resampling.confidence, 12)
    return audit.frames["differences"].filter(pl.col("corrected") < level).sort("corrected", "first", "second")


def _company(audit: AssessorAudit) -> pl.DataFrame:
    """How far each model agrees with people and with the others, and which of these is the nearest."""
    between = audit.frames["between"].filter(pl.col("value").is_not_null())
    sides = [between.select(judge=one, other=other, alpha="value") for one, other in
             (("first", "second"), ("second", "first"))]  # fmt: skip
    nearest = pl.col("other").sort_by("alpha", "other").last()
    others = pl.concat(sides).group_by("judge").agg(
        others=pl.col("alpha").mean(), nearest=nearest, alpha=pl.col("alpha").max()
    )  # fmt: skip
    main = audit.frames["agreement"].filter(coefficient="alpha-ordinal").select("judge", people="value")
    return main.join(others, on="judge", maintain_order="left")


def _means(scores: pl.DataFrame, own: pl.Expr) -> pl.DataFrame:
    """The mean over the runs, and the run whose score differs most."""
    largest = scores.filter(own).sort(pl.col("value").abs(), descending=True, maintain_order=True)
    worst = largest.group_by("judge", "measure", maintain_order=True).first()
    worst = worst.select("judge", "measure", "run", largest="value", largest_low="value_low", largest_high="value_high")
    return scores.filter(~own).drop("run").join(worst, on=["judge", "measure"], maintain_order="left")


def _moves(audit: AssessorAudit, scores: pl.DataFrame) -> pl.DataFrame:
    """The runs of each model whose ranks differ most."""
    move = pl.col("people_rank") - pl.col("model_rank")
    families = pl.DataFrame(
        {"run": [*audit.families], "family": [*audit.families.values()]}, {"run": pl.String, "family": pl.String}
    )
    moved = scores.with_columns(move=move).sort(
        pl.col("move").abs(), pl.col("people_rank"), pl.col("run"), descending=[True, False, False]
    )
    first = moved.group_by("judge", maintain_order=True).head(_MOVES).filter(pl.col("move") != 0)
    return first.join(families, on="run", how="left", maintain_order="left")
