"""For what may a model's grades be used? One verdict for each model and use.

The limits of τ are those of Voorhees (SIGIR 2001): orders with a τ of 0.9 or more are taken for the same, below 0.8
they differ noticeably. The other limits are this package's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from truerank.audits.assessors.audit import AssessorAudit
from truerank.audits.assessors.correction import PLANNED
from truerank.audits.assessors.grades import Codes, Grades
from truerank.audits.assessors.order import FEWEST_RUNS
from truerank.core.rules import Rule, rules_of
from truerank.core.verdict import Verdict
from truerank.measures.magnitudes import proportion
from truerank.text.printable import counted

#: The uses, in the order of the page.
USES: Final = {
    "absolute": "absolute scores",
    "order": "order of all systems",
    "best": "order of the best systems",
    "choosing": "selecting what people judge next",
}
#: The use of a panel, beside those of single models.
PANEL: Final = {"panel": "counting the judges of a panel"}
_ALL_RULES: Final = rules_of("truerank.audits.assessors", Rule)
#: The rule of each use: what is found where a model cannot be used so.
RULES: Final = {**dict(zip(USES, _ALL_RULES.values(), strict=False)), "panel": _ALL_RULES["shared-errors"]}
MEANINGS: Final = {
    "USABLE": "On these data the model's grades lead where people's lead, within the limits.",
    "WITH CARE": "The model's grades come near people's; small differences mean little.",
    "NOT USABLE": "The model's grades lead elsewhere than people's.",
    "UNKNOWN": "These data do not tell.",
}
#: The limits of τ, and of the chance that a relevant document has the higher grade.
LIMITS: Final = {"same": 0.9, "noticeable": 0.8, "chooses well": 0.8, "chooses badly": 0.6}
_FEWEST_TOPICS: Final = 5
#: People who judge anew hardly ever differ so seldom.
_SELDOM: Final = 0.05


@dataclass(frozen=True)
class UseVerdict(Verdict):
    """May a model's grades be used so? `value`, `low` and `high` are the figure that decides."""

    judge: str = ""
    use: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None

    def explained(self) -> Verdict:
        """The verdict with what its word means."""
        change = f" What would change this: {self.settles}" if self.settles else ""
        return replace(self, settles=MEANINGS[self.word] + change)


def _verdict(  # noqa: PLR0917 - in the order of the sentence: who, for what, the word, why
    judge: str,
    use: str,
    word: str,
    sentence: str,
    settles: str = "",
    ends: tuple[float | None, float | None, float | None] = (None, None, None),
) -> UseVerdict:
    subject = f"{judge}: {(USES | PANEL)[use]}"
    return UseVerdict(word, sentence, "", settles, subject, "unknown", None, "", judge, use, *ends)


def verdicts_of(audit: AssessorAudit) -> tuple[UseVerdict, ...]:
    """The verdicts, by model in the order given, and by use in the order of `USES`."""
    found: list[UseVerdict] = []
    for judge in audit.grades.judges:
        topics = len(audit.grades.topics)
        if topics < _FEWEST_TOPICS:
            why = f"There are {counted(topics, 'topic')}; an interval needs {_FEWEST_TOPICS}."
            found += [_verdict(judge, use, "UNKNOWN", why, "more topics that people judged.") for use in USES]
            continue
        if constant := _constant(audit, judge):
            found += constant
            continue
        uses = [_absolute(audit, judge), _order(audit, judge, "order"), _order(audit, judge, "best")]
        equal = equal_grades(audit.grades, judge)
        found += [replace(one, sentence=f"{one.sentence} {equal}".rstrip()) for one in (*uses, _choosing(audit, judge))]
    return tuple(found)


def _constant(audit: AssessorAudit, judge: str) -> list[UseVerdict]:
    """The verdicts on grades that are all the same, the model's or people's: no figure can settle them."""
    people, model = (audit.grades.qrels[name]["relevance"] for name in ("", judge))
    if people.n_unique() == 1:
        reason = f"People gave all {len(people):,} pairs the grade {people[0]}; that cannot show where a model errs."
        return [_verdict(judge, use, "UNKNOWN", reason, "pairs with several grades of people.") for use in USES]
    if model.n_unique() == 1:
        reason = f"The model gave all {len(model):,} pairs the grade {model[0]}: it tells no document from another."
        return [_verdict(judge, use, "NOT USABLE", reason, "another model.") for use in USES]
    return []


def copied_grades(first: Codes, second: Codes) -> str:
    """How seldom two grade differently, of pairs that either grades above 0: more seldom than people who judge anew.

    Args:
        first: codes of the same pairs, 0 the lowest grade, shape (pairs,).
        second: as `first`.
    """
    above = (first > 0) | (second > 0)
    pairs, differing = int(above.sum()), int((first[above] != second[above]).sum())
    most = proportion(differing, pairs, method="exact").high
    if not pairs or most is None or most >= _SELDOM:
        return ""
    return f"{differing:,d} of the {pairs:,d} pairs that either grades above the lowest grade differ"


def equal_grades(grades: Grades, judge: str) -> str:
    """What a reason says of a model whose grades are people's, or nearly so; empty of any other one."""
    codes = grades.given[:, grades.judges.index(judge)]
    there = codes >= 0
    if (codes[there] == grades.reference[there]).all():
        shown = f"all {int(there.sum()):,} pairs that both graded"
        return f"{judge} gave {shown} the grade that people gave: make sure that it is not a copy."
    few = copied_grades(grades.reference[there], codes[there])
    return f"Of {judge} and people {few}: make sure that its grades are not a copy." if few else ""


def _absolute(audit: AssessorAudit, judge: str) -> UseVerdict:
    margin = audit.rules.margin
    if audit.scores is None:
        return _absolute_without_runs(audit, judge)
    measure = audit.scores.measures[0]
    rows = audit.of("scores", judge=judge, measure=measure)
    mean = next(row for row in rows if not row["run"])
    runs = [row for row in rows if row["run"]]
    far = [row for row in runs if abs(row["value"]) > margin]
    shown = (
        f"The model's grades change {measure} by {_interval(mean, '+.3f')}, averaged over {counted(len(runs), 'run')}"
    )
    ends = mean["value"], mean["value_low"], mean["value_high"]
    if mean["value_low"] > margin or mean["value_high"] < -margin:
        return _verdict(
            judge, "absolute", "NOT USABLE", f"{shown}: more than the {margin:g} that you accept.",
            _remedy(audit, judge), ends,
        )  # fmt: skip
    if mean["value_low"] < -margin or mean["value_high"] > margin:
        return _verdict(
            judge, "absolute", "UNKNOWN", f"{shown}: perhaps more than the {margin:g} that you accept.",
            "more topics that people judged, or a larger `margin`.", ends,
        )  # fmt: skip
    if far:
        worst = max(far, key=lambda row: (abs(row["value"]), row["run"]))
        return _verdict(
            judge, "absolute", "WITH CARE",
            f"{shown}. But {len(far)} of {len(runs)} runs change by more than {margin:g}, "
            f"{worst['run']} by {_signed(worst['value'], '+.3f')}.",
            _remedy(audit, judge), ends,
        )  # fmt: skip
    return _verdict(judge, "absolute", "USABLE", f"{shown}, and no run by more than {margin:g}.", "", ends)


def _remedy(audit: AssessorAudit, judge: str) -> str:
    plan = next(iter(audit.of("plans", judge=judge)), None)
    if plan is None or not plan["reached"]:
        return "scores corrected with a sample of people's grades."
    share = plan["labels"] / plan["pairs"]
    return (
        f"scores corrected with a sample of people's grades: about {plan['labels']:,} labels ({share:.0%} of the "
        f"pairs) for {PLANNED} within ±{audit.rules.margin:g}."
    )


def _absolute_without_runs(audit: AssessorAudit, judge: str) -> UseVerdict:
    cut = audit.grades.scale[audit.grades.code_of(audit.scoring.rel)]
    row = next(iter(audit.of("cuts", judge=judge, cut=cut)))
    margin, ends = audit.rules.margin, (row["gap"], row["gap_low"], row["gap_high"])
    shown = (
        f"The model calls {row['judge_share']:.1%} of the pairs relevant, people {row['people_share']:.1%}, a "
        f"difference of {_interval(row, '+.1%', 'gap')}"
    )
    settles = "runs, which show what this does to the scores; give them with `run`."
    if row["gap_low"] > margin or row["gap_high"] < -margin:
        word = "too many" if row["gap"] > 0 else "too few"
        return _verdict(judge, "absolute", "NOT USABLE", f"{shown}, {word}.", settles, ends)
    return _verdict(judge, "absolute", "UNKNOWN", f"There are no runs to score. {shown}.", settles)


def _order(audit: AssessorAudit, judge: str, use: str) -> UseVerdict:
    if audit.scores is None or len(audit.scores.runs) < FEWEST_RUNS:
        there = "none is" if audit.scores is None else f"{len(audit.scores.runs)} are"
        reason = f"An order needs {FEWEST_RUNS} runs; {there} given."
        return _verdict(judge, use, "UNKNOWN", reason, "more runs (`run`).")
    measure = audit.scores.measures[0]
    wanted = "all" if use == "order" or len(audit.scores.runs) <= 10 else "best 10"
    row = next(iter(audit.of("order", judge=judge, measure=measure, systems=wanted, statistic="tau")))
    pairs = next(iter(audit.of("pairs", judge=judge, measure=measure, systems=wanted)))
    of = f"the {row['n']} systems" if wanted == "all" else f"the best {row['n']} systems"
    if row["value"] is None or row["value_low"] is None:
        return _verdict(judge, use, "UNKNOWN", f"All of {of} are tied, so there is no order.", "other runs.")
    favoured = _favoured(audit, judge) if use == "order" else ""
    word, how, why, settles = _order_word(row, pairs["reversed"], pairs["pairs"], favoured)
    shown = f"The model orders {of} by {measure} {how}: τ {_interval(row, '.2f')}{why}."
    return _verdict(judge, use, word, shown, settles, (row["value"], row["value_low"], row["value_high"]))


def _order_word(row: dict[str, Any], turned: int, of: int, favoured: str) -> tuple[str, str, str, str]:
    """The word, how the model orders, how the sentence ends, and what would change it."""
    same, noticeable, more = LIMITS["same"], LIMITS["noticeable"], "more topics that people judged."
    other, pairs = "otherwise than people", f"{turned:,d} of {of:,d} pairs"
    low, high = row["value_low"], row["value_high"]
    seen = "as people do" if row["value"] >= same else "much as people do" if row["value"] >= noticeable else other
    cases = (
        (turned > 0, "NOT USABLE", other, f". It turns {pairs} round by more than chance", "another model."),
        (high < noticeable, "NOT USABLE", other, f", below {noticeable}", "another model."),
        (bool(favoured), "NOT USABLE", "with a bias", f". {favoured}", "a model of another kind."),
        (low >= same, "USABLE", "as people do", f", at least {same}", ""),
        (
            low >= noticeable,
            "WITH CARE",
            "much as people do",
            f", at least {noticeable} but perhaps below {same}",
            more,
        ),
        (True, "UNKNOWN", f"{seen}; the data are too few to rely on that", "", more),
    )
    return next(said for holds, *said in cases if holds)  # type: ignore[return-value]


def _favoured(audit: AssessorAudit, judge: str) -> str:
    """The families whose gain under the model chance does not explain, in words."""
    level = round(1 - audit.resampling.confidence, 12)
    measure = "" if audit.scores is None else audit.scores.measures[0]
    rows = audit.of("families", judge=judge, measure=measure)
    named = [row for row in rows if row["corrected"] is not None and row["corrected"] < level and row["adjusted"] > 0]
    if not named:
        return ""
    shown = ", ".join(f"{row['family']} by {_interval(row, '+.3f', 'adjusted')}" for row in named)
    return f"Beside other runs with such scores it favours {shown}"


def _choosing(audit: AssessorAudit, judge: str) -> UseVerdict:
    row = next(iter(audit.of("choosing", judge=judge)))
    if row["value"] is None or row["value_low"] is None:
        reason = "No topic has both relevant documents and others."
        return _verdict(judge, "choosing", "UNKNOWN", reason, "another lowest relevant grade, with `rel`.")
    shown = (
        f"The model grades a relevant document above another one with a chance of {_interval(row, '.2f')}. "
        f"It gives {row['missed']:.0%} of the relevant ones its lowest grade"
    )
    ends = row["value"], row["value_low"], row["value_high"]
    if row["value_high"] < LIMITS["chooses badly"]:
        return _verdict(judge, "choosing", "NOT USABLE", f"{shown}.", "another model.", ends)
    if row["value_low"] >= LIMITS["chooses well"]:
        return _verdict(judge, "choosing", "USABLE", f"{shown}.", "", ends)
    if row["value_low"] >= LIMITS["chooses badly"]:
        settles = "another model; judge a sample of what it would leave out, too."
        return _verdict(judge, "choosing", "WITH CARE", f"{shown}.", settles, ends)
    return _verdict(judge, "choosing", "UNKNOWN", f"{shown}.", "more topics that people judged.", ends)


def panel_verdict(audit: AssessorAudit) -> UseVerdict | None:
    """May the judges of a panel be counted? None with fewer than three models, or too few topics."""
    row = next(iter(audit.of("panel", errors="equal")), None)
    if row is None or len(audit.grades.topics) < _FEWEST_TOPICS:
        return None
    if row["effective_low"] is None:
        reason = "The models' errors vary too little to correlate them."
        return _verdict("all models", "panel", "UNKNOWN", reason, "more pairs that people judged.")
    size = audit.of("panel", errors="size")[0]["value"]
    counts = f"{row['effective']:.1f} independent judges ({row['effective_low']:.1f} to {row['effective_high']:.1f})"
    shown = f"The {row['judges']} models count as about {counts}"
    also = "" if size is None else f" (their size by {size:.2f})"
    why = f" Where people give one grade, two models' errors correlate by {_interval(row, '.2f')} on average{also}."
    ends = row["effective"], row["effective_low"], row["effective_high"]
    half = row["judges"] / 2
    if row["effective_high"] < half:
        gains = [one for one in audit.of("left_out") if one["family"] and one["gain"] is not None]
        moves = [one for one in gains if one["corrected"] < round(1 - audit.resampling.confidence, 12)]
        tail = f" Without {moves[0]['family']}, α changes by {_interval(moves[0], '+.3f', 'gain')}." if moves else ""
        return _verdict("all models", "panel", "WITH CARE", f"{shown}.{why}{tail}", RULES["panel"].remedy, ends)
    if row["effective_low"] >= half:
        return _verdict("all models", "panel", "USABLE", f"{shown}, at least half of them.{why}", "", ends)
    reason = f"{shown}, perhaps fewer than half of them.{why}"
    return _verdict("all models", "panel", "UNKNOWN", reason, "more topics that people judged.", ends)


def _interval(row: dict[str, Any], form: str, name: str = "value") -> str:
    value, low, high = (_signed(row[key], form) for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value} ({low} to {high})"


def _signed(value: float, form: str) -> str:
    """A number with a true minus sign; one that rounds to nothing has no sign."""
    shown = f"{value:{form}}"
    return (shown if any(sign in "123456789" for sign in shown) else shown.lstrip("+-")).replace("-", "−")


def counts_of(verdicts: Sequence[UseVerdict], use: str) -> dict[str, int]:
    """How many models have each word for a use."""
    words = [one.word for one in verdicts if one.use == use]
    return {word: words.count(word) for word in MEANINGS if word in words}
