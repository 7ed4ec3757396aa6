"""What is compared when agreement is measured: every definition has a name, and the name is in the output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from truerank.errors import InputError, OptionError
from truerank.judging.coefficients import Level
from truerank.judging.schemes import Group, Scheme
from truerank.text.printable import and_more

Answer: TypeAlias = Callable[[tuple[str, ...]], str | None]

#: The label that says "no leak" in the leakage paper's scheme.
DIFFERENT: Final = "Different Topic"
_LEAK_WORDS: Final = frozenset([
    "leak", "yes", "true", "1",
    "identical", "generalization", "generalisation", "specialization", "specialisation", "reformulation",
])  # fmt: skip
_CLEAN_WORDS: Final = frozenset(["different topic", "no leak", "not a leak", "no", "false", "0"])
_PREFIX: Final = re.compile(r"^(?:title|variant) ")
_JOINTS: Final = re.compile(r"[\s_-]+")
_TYPES: Final = ("Identical", "Generalization", "Specialization", "Reformulation")
#: The reformulation types of the title, in the order of the paper's Table 2.
TITLE_TYPES: Final = tuple(f"Title-{name}" for name in _TYPES)
_VARIANT_TYPES: Final = tuple(f"Variant-{name}" for name in _TYPES)


@dataclass(frozen=True)
class Definition:
    """What of an annotator's labels is compared.

    Attributes:
        name: as options and output call it.
        meaning: one sentence.
        answer: the answer that labels stand for; None where they give none, which leaves the rating out.
        categories: the answers in order; further ones may occur.
        level: whether the order of the answers counts.
        each: compare each label for itself, and take the mean; `answer` then gives the whole set.
    """

    name: str
    meaning: str
    answer: Answer
    categories: tuple[str, ...] = ()
    level: Level = "nominal"
    each: bool = False


def definitions(scheme: Scheme | None) -> tuple[Definition, ...]:
    """The definitions that make sense for a scheme; the first one is its main one.

    Args:
        scheme: the scheme; None for labels of no known scheme.
    """
    own: tuple[Definition, ...] = ()
    order: tuple[str, ...] = ()
    single = False
    if scheme is not None:
        order = tuple(choice.name for choice in scheme.choices)
        single = len(scheme.groups) == 1 and scheme.groups[0].exclusive and not scheme.per_text
        if scheme.name == "leakage":
            own = _leakage()
        elif scheme.name == "leak":
            own = (_leak(),)
        elif scheme.name == "transfer":
            own = (_version("V1"), _version("V2"))
        elif len(scheme.groups) > 1:
            own = tuple(_group(scheme, group) for group in scheme.groups if group.exclusive)
        elif scheme.graded:
            own = (_grade(scheme),)
    place = {name: at for at, name in enumerate(order)}
    label_set = Definition(
        "label-set",
        "The label of the scheme." if single else "The exact set of labels.",
        lambda labels: " + ".join(sorted(set(labels), key=lambda one: (place.get(one, len(order)), one))) or None,
        order if single else (),
    )
    each = Definition(
        "mean-label",
        "Each label for itself, given or not given; the mean over the labels that occur.",
        label_set.answer,
        order,
        each=True,
    )
    return (label_set, *own, each) if scheme is None or scheme.name == "transfer" else (*own, label_set, each)


def is_leak(labels: Iterable[str]) -> bool | None:
    """Whether one person's labels call a pair a leak.

    "Different Topic" means no leak whatever else the pair carries. Otherwise a reformulation type (identical,
    generalization, specialization, reformulation; bare or with the prefix "Title-" or "Variant-") means a leak, as do
    "leak", "yes", "true" and "1"; "no leak", "no", "false" and "0" mean none. Case, blanks, hyphens and
    underscores do not matter.

    Args:
        labels: the labels of one pair by one person.

    Returns:
        True for a leak, False for none, None if there is no label at all.

    Raises:
        InputError: a label is unknown, or the labels contradict each other.

    Source: the leakage paper, section 3 (Table 2 counts by the same rule).
    """
    given = tuple(labels)
    words = [_word(label) for label in given if label.strip()]
    check_leak_labels(given)
    if not words:
        return None
    if "different topic" in words:
        return False
    meanings = {_meaning(word) for word in words}
    if len(meanings) > 1:
        fault = f"labels that contradict each other on one pair: {', '.join(given)}"
        raise InputError(fault, "keep one of them in the label file")
    return meanings.pop()


def leak_answer(labels: tuple[str, ...]) -> str | None:
    """The words "leak" or "no leak" by `is_leak`; None where there is no label."""
    leak = is_leak(labels)
    return None if leak is None else "leak" if leak else "no leak"


def query_type(labels: tuple[str, ...], *, rule: bool, types: tuple[str, ...] = TITLE_TYPES) -> str | None:
    """The type of a query against title or variant; the first one in Table 2's order where there are several."""
    if rule and DIFFERENT in labels:
        return DIFFERENT
    found = next((name for name in types if name in labels), None)
    return found or (DIFFERENT if DIFFERENT in labels else None)


def _leakage() -> tuple[Definition, ...]:
    which = {
        "": "Different Topic counts only where no such type is given.",
        "-by-rule": "Different Topic counts before any type, as in the paper's Table 2.",
    }
    title, title_by_rule, variant, variant_by_rule = (
        Definition(
            f"{text}-type{ending}",
            f"The type against the {text} (5 classes); {sentence}",
            partial(query_type, rule=bool(ending), types=types),
            (*types, DIFFERENT),
        )
        for text, types in (("title", TITLE_TYPES), ("variant", _VARIANT_TYPES))
        for ending, sentence in which.items()
    )
    variant_and_topic = Definition(
        "variant-type-and-topic",
        "The type against the variant, if any, together with whether Different Topic is given.",
        _variant_and_topic,
    )
    return title, title_by_rule, _leak(), variant, variant_by_rule, variant_and_topic


def _variant_and_topic(labels: tuple[str, ...]) -> str | None:
    parts = [next((name for name in _VARIANT_TYPES if name in labels), "no variant type")]
    return " + ".join([*parts, *([DIFFERENT] if DIFFERENT in labels else [])]) if labels else None


def _leak() -> Definition:
    return Definition(
        "leak",
        "Leak or no leak; Different Topic is not a leak, whatever else is given.",
        leak_answer,
        ("leak", "no leak"),
    )


def _version(name: str) -> Definition:
    relevant = (f"only {name}", "both", "V1 better", "V2 better")
    answers = (f"{name} relevant", f"{name} not relevant")
    return Definition(
        name,
        f"Whether version {name[1:]} of the document is relevant.",
        lambda labels: answers[labels[0] not in relevant] if labels else None,
        answers,
    )


def _grade(scheme: Scheme) -> Definition:
    choices = sorted(scheme.choices, key=lambda choice: (choice.grade or 0, choice.name))
    order = tuple(choice.name for choice in choices)
    return Definition(
        "grade",
        "The grade; Krippendorff's alpha weighs how far apart two grades are (ordinal).",
        lambda labels: next((name for name in order if name in labels), None),
        order,
        level="ordinal",
    )


def _group(scheme: Scheme, group: Group) -> Definition:
    inside = [choice for choice in scheme.choices if choice.group == group.name and not choice.alone]
    alone = tuple(choice.name for choice in scheme.choices if choice.alone)
    graded = all(choice.grade is not None for choice in inside)
    if graded:
        inside.sort(key=lambda choice: choice.grade or 0)
    order = (*(choice.name for choice in inside), *alone)
    return Definition(
        group.name,
        f"The label of the group '{group.title or group.name}'.",
        lambda labels: next((name for name in order if name in labels), None),
        order,
        level="ordinal" if graded and not alone else "nominal",
    )


def named(name: str, scheme: Scheme | None) -> Definition:
    known = {definition.name: definition for definition in definitions(scheme)}
    if name not in known:
        of = "labels of no known scheme" if scheme is None else f"the scheme '{scheme.name}'"
        raise OptionError("definition", f"no definition '{name}' for {of}", f"one of {', '.join(known)}")
    return known[name]


def _word(label: str) -> str:
    return _PREFIX.sub("", _JOINTS.sub(" ", label.strip().casefold()))


def _meaning(word: str) -> bool | None:
    return True if word in _LEAK_WORDS else False if word in _CLEAN_WORDS else None


def check_leak_labels(labels: Iterable[str]) -> None:
    """Checks that each label says something about a leak."""
    unknown = sorted({label.strip() for label in labels if label.strip() and _meaning(_word(label)) is None})
    if unknown:
        shown = and_more([f"'{label}'" for label in unknown], 5)
        raise InputError(
            f"unknown label{'s' if len(unknown) > 1 else ''} {shown}",
            "use a reformulation type (Title-Identical, Variant-Specialization, ...), Different Topic, leak or no leak",
        )
