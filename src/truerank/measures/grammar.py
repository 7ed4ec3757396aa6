"""Measures as values: the grammar and the objects of ir_measures, and the measures that it does not have."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from ir_measures.measures import registry
from ir_measures.measures.base import Measure, ParamInfo, SumAgg

from truerank.errors import InputError, OptionError
from truerank.measures.results import MEASURES, Aggregate, lower_is_better
from truerank.options import value_of
from truerank.sources.tool_results import measure_name

__all__ = [
    "DCG", "HMFR", "MFR", "NCG", "RR_MSMARCO", "MeasureSpec", "NumRelRet", "aggregate_of", "lower_is_better",
    "parse_measures",
]  # fmt: skip

#: What names measures: a text such as "nDCG@10 P@1 AP(rel=2)", or a list of such texts and of measures.
MeasureSpec: TypeAlias = str | Measure | Sequence[str | Measure]

_MEASURE: Final = re.compile(r"(?P<name>[^\W\d]\w*)(?:\((?P<parameters>.*)\))?(?:@(?P<at>[^@()]+))?", re.DOTALL)
_CUTOFF: Final = ParamInfo(dtype=int, required=False, desc="ranking cutoff threshold")
_REL: Final = ParamInfo(dtype=int, default=1, desc="lowest grade that counts as relevant")
_JUDGED_ONLY: Final = ParamInfo(dtype=bool, default=False, desc="pass over results without a judgment")


class _NCG(Measure):  # type: ignore[misc]
    """The gain of the first k results over the gain of the k best judged documents, neither of them discounted."""

    __name__ = "NCG"
    NAME = "NCG"
    PRETTY_NAME = "Normalised Cumulative Gain"
    SHORT_DESC = "The gain of the first k results relative to the best gain that k results can have."
    SUPPORTED_PARAMS: Final = {
        "cutoff": ParamInfo(dtype=int, required=True, desc="ranking cutoff threshold"),
        "gains": ParamInfo(dtype=dict, desc="gain of each grade, where it is not the grade itself"),
        "judged_only": _JUDGED_ONLY,
    }


class _DCG(Measure):  # type: ignore[misc]
    """The discounted gain of the first k results, not divided by that of the best ranking."""

    __name__ = "DCG"
    NAME = "DCG"
    PRETTY_NAME = "Discounted Cumulative Gain"
    SHORT_DESC = "The sum of the gains of the first k results, each divided by log2(rank + 1)."
    SUPPORTED_PARAMS: Final = {
        "cutoff": ParamInfo(dtype=int, required=True, desc="ranking cutoff threshold"),
        "dcg": ParamInfo(
            dtype=str, choices=["log2", "exp-log2"], default="log2", desc="gain: the grade, or 2^grade - 1"
        ),
        "gains": ParamInfo(dtype=dict, desc="gain of each grade, where it is not the grade itself"),
        "judged_only": _JUDGED_ONLY,
    }


class _FirstRank(Measure):  # type: ignore[misc]
    """The rank of the first relevant result."""

    SUPPORTED_PARAMS: Final = {
        "cutoff": _CUTOFF,
        "rel": _REL,
        "none": ParamInfo(dtype=(int, float), required=False, desc="rank where nothing relevant is found"),
        "judged_only": _JUDGED_ONLY,
    }


class _MFR(_FirstRank):
    """The mean rank of the first relevant result."""

    __name__ = "MFR"
    NAME = "MFR"
    PRETTY_NAME = "Mean First Rank"
    SHORT_DESC = "The arithmetic mean of the rank of the first relevant result."


class _HarmonicAggregate:
    """The harmonic mean; an infinite value counts nothing."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, value: float) -> None:
        """Takes the value of one topic."""
        self._sum += 1 / value
        self._count += 1

    def result(self) -> float:
        """The mean of the values so far."""
        return self._count / self._sum if self._sum else float("inf")


class _HMFR(_FirstRank):
    """The harmonic mean of the rank of the first relevant result, which is one over the mean of RR."""

    __name__ = "HMFR"
    NAME = "HMFR"
    PRETTY_NAME = "Harmonic Mean First Rank"
    SHORT_DESC = "The harmonic mean of the rank of the first relevant result."

    def aggregator(self) -> _HarmonicAggregate:
        """How one number is made of the topics."""
        return _HarmonicAggregate()


class _RankMSMARCO(Measure):  # type: ignore[misc]
    """RR by the official rules of MS MARCO: by the rank column, whatever the tie policy; nothing found scores 0."""

    __name__ = "RR_MSMARCO"
    NAME = "RR_MSMARCO"
    PRETTY_NAME = "Reciprocal Rank (MS MARCO)"
    SHORT_DESC = "The reciprocal of the rank of the first relevant result among the first ten."
    SUPPORTED_PARAMS: Final = {
        "cutoff": ParamInfo(dtype=int, required=False, default=10, desc="ranking cutoff threshold"),
        "rel": _REL,
    }


class _NumRelRet(Measure):  # type: ignore[misc]
    """The number of relevant results; unlike that of ir_measures it follows the grade of the policy."""

    __name__ = "NumRelRet"
    NAME = "NumRelRet"
    PRETTY_NAME = "Number of Relevant Retrieved Documents"
    SHORT_DESC = "The number of relevant documents among the results."
    SUPPORTED_PARAMS: Final = {"rel": _REL}

    def aggregator(self) -> Any:
        """How one number is made of the topics."""
        return SumAgg()


NCG: Final = _NCG()
DCG: Final = _DCG()
MFR: Final = _MFR()
HMFR: Final = _HMFR()
RR_MSMARCO: Final = _RankMSMARCO()
NumRelRet: Final = _NumRelRet()
_OURS: Final[dict[str, Any]] = {str(measure): measure for measure in (NCG, DCG, MFR, HMFR, RR_MSMARCO, NumRelRet)}


def parse_measures(measures: MeasureSpec) -> tuple[Measure, ...]:
    """Takes the names of measures apart.

    A measure is written `Name`, `Name@k` or `Name(parameter=value,…)@k`, as in ir_measures, whose names are all known;
    to them come `NCG@k`, `DCG@k`, `MFR`, `HMFR` and `RR_MSMARCO`. The usual names are taken, too, whatever their case:
    hit@k, hit_rate@k and accuracy@k (Success@k), mrr, recall@k, precision@k, map, ndcg@k, ndcg_cut_k. Several are
    separated by blanks or commas.

    Args:
        measures: a text, a measure, or a list of both.

    Returns:
        The measures in their order, each once.

    Raises:
        InputError: no measure, an unknown name or parameter, a parameter of another type, or a cutoff below 1.
    """
    given = [measures] if isinstance(measures, str | Measure) else list(measures)
    parsed: dict[tuple[str, bool], Measure] = {}
    for item in given:
        for measure in [_measure(text) for text in _split(item)] if isinstance(item, str) else [_checked(item)]:
            parsed.setdefault((repr(measure), "rel" in measure.params), measure)
    if not parsed:
        raise OptionError("measures", "no measure", "name one, such as nDCG@10")
    return tuple(parsed.values())


def aggregate_of(measure: Measure) -> Aggregate:
    """How one number is made of the values of the topics."""
    if measure.NAME == "HMFR":
        return "harmonic"
    return "sum" if isinstance(measure.aggregator(), SumAgg) else "mean"


def _measure(text: str) -> Measure:
    match = _MEASURE.fullmatch(text)
    if match is None:
        raise _fault(text, "not a measure", "write Name, Name@k or Name(parameter=value)@k")
    name, at = match["name"], match["at"]
    if name == "Accuracy" and at:
        remedy = f"write Success@{at} for questions with a hit, Accuracy(cutoff={at}) for that of ir_measures"
        raise _fault(text, "two readings", remedy)
    known = _known(name)
    if known is None:
        # The usual name, with its cutoff behind a sign: hit_rate, ndcg_cut_10.
        usual, _, cutoff = measure_name(name).partition("@")
        names = {one.lower().replace("_", ""): one for one in reversed((*registry, *_OURS, *MEASURES))}
        known, at = _known(names.get(usual.replace("_", ""), "")), at or cutoff
    if known is None:
        raise _fault(text, "unknown measure", _remedy(name))
    parameters = dict(known.params)
    for part in _split(match["parameters"] or "", blanks=False):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise _fault(text, "a parameter without a value", "write Name(parameter=value)")
        parameters[key] = _value(value)
    if at:
        parameters[known.AT_PARAM] = _value(at.strip())
    for key, value in parameters.items():
        expected = known.SUPPORTED_PARAMS.get(key)
        if expected is not None and expected.dtype is float and isinstance(value, int):
            parameters[key] = float(value)
    return _checked(type(known)(**parameters), text)


def _known(name: str) -> Any:
    return _OURS.get(name) or registry.get(name) or (MEASURES.load(name) if name in MEASURES else None)


def _checked(measure: Measure, text: str = "") -> Measure:
    text = text or str(measure)
    try:
        measure.validate_params()
    except (AssertionError, AttributeError, TypeError) as error:
        known = ", ".join(measure.SUPPORTED_PARAMS) or "none"
        needed = [
            key for key, value in measure.SUPPORTED_PARAMS.items() if value.required and key not in measure.params
        ]
        remedy = f"write {measure.NAME}@k" if needed == ["cutoff"] else f"its parameters are: {known}"
        raise _fault(text, "a parameter is missing or wrong", remedy) from error
    cutoff = measure.params.get("cutoff")
    if cutoff is not None and (isinstance(cutoff, bool) or cutoff < 1):
        raise _fault(text, f"the cutoff is {cutoff}", "give 1 or more")
    return measure


def _split(text: str, *, blanks: bool = True) -> Iterator[str]:
    """The parts of a text between commas (and blanks) that stand outside brackets and quotation marks."""
    depth, quote, part = 0, "", ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "({[":
            depth += 1
        elif sign in ")}]":
            depth -= 1
        elif depth == 0 and (sign == "," or (blanks and sign.isspace())):
            if part.strip():
                yield part.strip()
            part = ""
            continue
        part += sign
    if part.strip():
        yield part.strip()


def _value(text: str) -> Any:
    value = value_of(text)
    if not isinstance(value, str) or not text.startswith(("'", '"', "{")):
        return value
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _remedy(name: str) -> str:
    # Where two spellings differ in case only, such as nDCG and NDCG, the first is the name and the second the alias.
    names = {known.lower(): known for known in reversed((*registry, *_OURS, *MEASURES))}
    near = difflib.get_close_matches(name.lower(), list(names), n=3, cutoff=0.6)
    return (
        f"did you mean {', '.join(names[match] for match in near)}?" if near else "such as nDCG@10, AP, P@10 or RR@10"
    )


def _fault(text: str, fault: str, remedy: str) -> InputError:
    return OptionError("measures", f"{fault}: '{text}'", remedy)
