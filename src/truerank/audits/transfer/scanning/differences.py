"""From scores to probabilities, candidates and data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.audits.transfer.descriptions import describe
from truerank.audits.transfer.scanning.candidates import (
    Comparing,
    Curve,
    cut_offs,
    data_sets,
    find_candidates,
    fit_curve,
    set_name,
    topic_levels,
)
from truerank.audits.transfer.scanning.options import (
    AGGREGATIONS,
    TEXTS,
    Aggregation,
    ScanOptions,
    ScanPlan,
    directions,
)  # fmt: skip
from truerank.audits.transfer.scanning.results import LOW, SCORES_SCHEMA, SKIPPED_SCHEMA, VERY, Scan, curves
from truerank.audits.transfer.scanning.scores import id_column
from truerank.audits.transfer.scanning.text_evidence import TEXT_CUT_OFF, TEXT_FLOOR, text_losses
from truerank.errors import OptionError
from truerank.rankers.base import Ranker
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.sources.documents import open_documents
from truerank.text.page_faults import REASONS

_AT_ONCE: Final = 1 << 13


@dataclass(frozen=True)
class Setting:
    """What the comparison needs beside the scores."""

    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    texts: Mapping[str, Path]
    plan: ScanPlan
    rankers: tuple[Ranker, ...]
    sources: tuple[str, ...]


def compare_versions(
    every: Sequence[pl.DataFrame], rows: pl.DataFrame, skipped: pl.DataFrame, setting: Setting
) -> Scan:
    """Compares the versions of each judged document."""
    options, names = setting.plan.options, setting.names
    kind = _kind_of_probability(setting.plan, setting.rankers[0])
    judged_given = options.given == "judged" or (options.given == "auto" and kind == "logistic")
    ids = rows.select("row", *(pl.col(id_column(name)).alias(str(place)) for place, name in enumerate(names))).unpivot(
        index="row", variable_name="version", value_name="version_doc_id"
    )
    ids = ids.with_columns(pl.col("version").cast(pl.UInt8))
    about = rows.select("row", "topic_id", "query", "doc_id", "relevance", "sampled")
    scores = every[0].join(ids, on=["row", "version"], how="left", maintain_order="left")
    scores = scores.join(about, on="row", maintain_order="left").rename({"first": "first_score", "max": "max_score"})
    scores, fitted = _with_probabilities(scores, every, kind)
    if fitted and not any(curve.tells for curve in fitted.values()):
        raise OptionError(
            "model",
            f"the ranker does not distinguish judged documents from others (AUC {fitted['max'].auc:.2f})",
            "use another, or check that topics and judgments belong together",
        )
    scores = scores.filter(~pl.col("sampled"))
    scores = scores.with_columns(pl.col("version").replace_strict(dict(enumerate(names)), return_dtype=pl.String))
    scores = scores.with_columns(_urls(scores, setting.texts))
    compared = scores.filter(pl.len().over("row") > 1).select(list(SCORES_SCHEMA)).cast(pl.Schema(SCORES_SCHEMA))
    alone = rows.filter(~pl.col("sampled") & ~pl.col("row").is_in(compared["row"].unique().implode()))
    gone = alone.select("topic_id", "doc_id", pl.lit("a version lacks the document that was matched").alias("reason"))
    if compared.is_empty():
        raise OptionError("matched", "no judged document is in two versions", "match the versions again")
    cuts: dict[Aggregation, float] = dict.fromkeys(AGGREGATIONS, options.cut_off)
    if options.percentile is not None:
        cuts = cut_offs(compared, setting.pairs, options.percentile)
    losses = None
    if options.evidence != "scores":
        documents = {
            name: open_documents(source, keep_empty=True).batches()
            for name, source in zip(names, setting.sources, strict=True)
        }
        losses = text_losses(rows.filter(~pl.col("sampled")), setting.pairs, setting.texts, documents)
    comparing = Comparing(
        compared, setting.pairs, cuts, setting.texts, judged_given, options.floor, options.evidence != "texts", losses,
        names[0], kind != "raw",
    )  # fmt: skip
    candidates = find_candidates(comparing)
    sets = data_sets(comparing, candidates, names)
    left_out = pl.concat([skipped, gone]).cast(pl.Schema(SKIPPED_SCHEMA))
    summary = _summary(comparing, kind, fitted, setting)
    counts = {
        "judged": compared["row"].n_unique() + len(left_out),
        "compared": compared["row"].n_unique(),
        "passages": int(compared["passages"].sum()),
        "skipped": dict(left_out["reason"].value_counts(sort=True).sort("reason").iter_rows()),
        "candidates": len(candidates),
        "sets": _sets(comparing, sets, candidates, options),
        "below": {},
        "notes": _notes(comparing, kind, fitted, setting),
    }
    summary |= counts
    summary["documents"] = describe(compared, sets, summary["sets"])
    scan = Scan(compared, candidates, sets, left_out, summary)
    if kind != "raw":
        for name, frame in curves(scan):
            below: dict[str, Any] = {"documents": len(frame)}
            for aggregation in AGGREGATIONS:
                low = int(np.count_nonzero(frame[aggregation].to_numpy() < LOW))
                below[aggregation] = {"below": low, "share": round(low / max(1, len(frame)), 6)}
            summary["below"][name] = below
    return scan


def _kind_of_probability(plan: ScanPlan, ranker: Ranker) -> str:
    """How scores become probabilities."""
    options = plan.options
    if len(plan.rankers) > 1:
        return "logistic"
    if options.probability != "auto":
        return options.probability
    if options.percentile is not None:
        return "raw"
    return "exp" if getattr(ranker, "kind", "") == "monot5" else "logistic"


def _with_probabilities(
    scores: pl.DataFrame, every: Sequence[pl.DataFrame], kind: str
) -> tuple[pl.DataFrame, dict[Aggregation, Curve]]:
    """The probability by each aggregation; of several rankers, the log odds take the place of the first one's score."""
    fitted: dict[Aggregation, Curve] = {}
    for name in AGGREGATIONS:
        if kind != "logistic":
            scores = scores.with_columns(_probability(name, scores[f"{name}_score"].to_numpy(), kind))
            continue
        above = []
        for frame in every:
            own: Floats = frame[name].to_numpy()
            above.append(own - topic_levels(scores["topic_id"], own, scores["sampled"].to_numpy()))
        values = np.column_stack(above)
        curve = fitted[name] = _fitted(scores.select("row", "sampled"), values)
        scores = scores.with_columns(pl.Series(name, curve(values).round(6)))
        if len(every) > 1:
            scores = scores.with_columns(pl.Series(f"{name}_score", curve.log_odds(values).round(6)))
    return scores, fitted


def _fitted(scores: pl.DataFrame, values: Floats) -> Curve:
    """The curve that tells the best version of each judged document, by all rankers alike, from the sampled others."""
    spread = values.std(axis=0)
    spread[spread == 0] = 1.0
    known = scores.with_columns(pl.Series("total", (values / spread).sum(axis=1))).with_row_index("place")
    judged = known.filter(~pl.col("sampled")).group_by("row", maintain_order=True)
    best = judged.agg(pl.col("place").sort_by("total").last())["place"].to_numpy()
    return fit_curve(values[best], values[scores["sampled"].to_numpy()])


def _probability(name: str, values: Floats, kind: str) -> pl.Series:
    if kind == "exp":
        if len(values) and values.max() > 1e-6:
            fault = f"a score of {values.max():g} is not a logarithm of a probability"
            raise OptionError("probability", fault, "use --probability logistic")
        values = np.exp(np.minimum(values, 0.0))
    return pl.Series(name, np.round(values, 6))


def _urls(scores: pl.DataFrame, texts: Mapping[str, Path]) -> pl.Series:
    opened = {version: DocumentTexts(path) for version, path in texts.items()}
    parts = [pl.Series("url", [], pl.String)]
    for part in scores.select("version", "version_doc_id").iter_slices(_AT_ONCE):
        ids = part.partition_by("version", as_dict=True)
        known = {str(key[0]): opened[str(key[0])].urls(some["version_doc_id"].to_list()) for key, some in ids.items()}
        found = [known[version].get(doc_id, "") for version, doc_id in part.iter_rows()]
        parts.append(pl.Series("url", found, pl.String))
    return pl.concat(parts)


def _summary(comparing: Comparing, kind: str, fitted: Mapping[Aggregation, Curve], setting: Setting) -> dict[str, Any]:
    """How versions were scored and compared, for `summary.json`."""
    options, rankers = setting.plan.options, setting.rankers
    given = "judged" if comparing.judged else "nothing"
    texts = {TEXTS: TEXT_CUT_OFF} if comparing.losses is not None else {}
    return {
        "versions": list(setting.names),
        "pairs": [list(pair) for pair in setting.pairs],
        "ranker": {
            "name": " + ".join(ranker.name for ranker in rankers),
            "fingerprints": [ranker.fingerprint for ranker in rankers],
        },
        "policy": setting.plan.split,
        "probability": {"kind": kind, "given": given, **{name: curve.json() for name, curve in fitted.items()}},
        "percentile": options.percentile,
        **({"best": {name: list(some) for name, some in options.best.items()}} if options.best else {}),
        "evidence": options.evidence,
        "cut_off": {**comparing.cut_offs, **texts},
    }


def _notes(comparing: Comparing, kind: str, fitted: Mapping[Aggregation, Curve], setting: Setting) -> list[str]:
    evidence, floor = setting.plan.options.evidence, comparing.floor
    notes = []
    if kind == "logistic":
        areas = ", ".join(f"{label} {fitted[name].auc:.3f}" for name, label in AGGREGATIONS.items())
        notes.append(
            "Probabilities come from a curve fitted to judged documents (the best version of each) against "
            f"{fitted['max'].others:,d} documents not judged relevant, with equal weight; a score counts from "
            f"the mean of such documents for its topic. AUC {areas}."
        )
        if comparing.judged:
            notes.append(
                "A difference takes it as given that one of the two versions is relevant, since somebody judged it so: "
                "it is divided by the probability that at least one of them is, as if the two were independent. Pairs "
                f"of which neither version reaches {floor:g} are not candidates by scores."
            )
        notes += [
            f"By {label} the ranker does not distinguish judged documents from others: there are no candidates."
            for name, label in AGGREGATIONS.items()
            if not fitted[name].tells
        ]
    if evidence != "scores":
        lost = f"more than {TEXT_CUT_OFF:.0%} of what answered the query is missing in the other version."
        notes.append(f"By texts: {lost}")
    if evidence == "both":
        notes.append(
            f"By scores: only where more than {TEXT_FLOOR:.0%} of it is missing and the texts do not speak for the "
            "other version; --evidence scores names all."
        )
    return notes


def _sets(
    comparing: Comparing, sets: pl.DataFrame, candidates: pl.DataFrame, options: ScanOptions
) -> dict[str, dict[str, Any]]:
    """For each data set its documents, those that differ very much, and the classes of reasons."""
    very: dict[str, float] = {
        name: VERY if options.percentile is None else 2 * cut for name, cut in comparing.cut_offs.items()
    }
    if comparing.losses is not None:
        very[TEXTS] = VERY
    why = candidates.select("topic_id", "doc_id", "better", "worse", "reason")
    joined = sets.join(why, on=["topic_id", "doc_id", "better", "worse"], how="left", maintain_order="left")
    named = [
        (set_name(better, worse, kind), kind, better, worse, above)
        for better, worse in directions(comparing.pairs)
        for kind, above in very.items()
    ]
    about: dict[str, dict[str, Any]] = {}
    for name, kind, better, worse, above in (*named, ("all versions", "", "", "", 2.0)):
        inside = joined.filter(pl.col("set") == name)
        counted = Counter(inside["reason"].drop_nulls())
        about[name] = {
            "aggregation": kind,
            "better": better,
            "worse": worse,
            "documents": len(inside),
            "very": int((inside["difference"].fill_null(0.0) > above).sum()),
            "reasons": {reason: counted[reason] for reason in REASONS if reason in counted},
        }
    return about
