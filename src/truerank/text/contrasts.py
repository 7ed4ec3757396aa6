"""What a pair of short texts differs in, where this decides that they ask for other things.

Texts that are alike may be one need in other words, or two needs in the same words: "who won in 1998" and "who won in
2002". A cosine does not tell. What decides is of few kinds. Each asks that both texts have something of their own, or
that one denies what the other says: a text with one word more is narrower.

*Code*: each text has a word of letters and digits or a letter alone ("vitamin c") that the other lacks. *Number*:
each has one that the other lacks, however it is typed ("1,000", "one thousand", "30 days", "a month"), and nothing else
of its own; *numbers* where more differs. *Opposite*: each has a word of its own, on two sides of one axis: "increase"
and "decrease", two months, two units, two countries. *Negation*: one denies a word that the other has. *Direction*: the
same words have changed places around a preposition or a verb. *Name*: texts differ in one place, where each has a name
or an identifier.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise, product
from typing import Final

from truerank.text.wording import FORM_WORDS, asks, key, one_letter_apart
from truerank.text.words import WordSpan, alike, spans, words

#: Axes by ";", their sides by "|", forms of one side by blanks: what is on one side is not on another.
_AXES: Final = """
increase raise rise rising grow growth elevate enhance boost augment upregulate gain improve strengthen promote
stimulate activate induce cause trigger facilitate accelerate accumulate speed hasten aggravate expand more most great
greater greatest high higher highest large larger largest big bigger biggest long longer longest old older oldest heavy
heavier heaviest fast faster fastest strong stronger strongest tall taller tallest hot hotter hottest warm warmer
warmest rich richer richest good better best maximum max excess abundance | decrease reduce reduction low lower lowest
drop decline diminish downregulate shrink lose loss worsen weaken impair inhibit suppress block prevent repress
deactivate attenuate delay alleviate relieve less least few fewer fewest small smaller smallest little short shorter
shortest young younger youngest light lighter lightest slow slower slowest weak weaker weakest cold colder coldest cool
cooler coolest poor poorer poorest bad worse worst minimum min deficiency deficit scarcity; up|down; before
prior|during|after following; early earlier earliest|late later latest; start begin beginning|end finish stop;
first|last; new newest|old oldest; open opening|close closing; buy purchase|sell; import|export; upload|download;
install|uninstall remove; enable|disable; left|right; top upper|bottom lower; front|back rear; inside indoor indoors|
outside outdoor outdoors; wet|dry; positive|negative; true|false; win won|lose lost; alive living|dead; hard difficult|
easy; safe|dangerous; male men boy father husband|female women girl mother wife; acute|chronic; benign|malignant;
dominant|recessive; present presence|absent absence; agonist|antagonist; systolic|diastolic; domestic|foreign; public|
private; allow permit|forbid ban prohibit; primary|secondary|tertiary; freshman|sophomore|junior|senior;
full|half|quarter; single|double|triple; day daily|week weekly|month monthly|year yearly annual
annually|decade|century|hour hourly|minute|seconds; mg milligram|kg kilogram kilo|g gram|ton tonne|pound lb lbs|ounce
oz; km kilometer|mile|m meter|cm centimeter| mm millimeter|inch|foot|yard; liter|gallon|ml milliliter; celsius
centigrade|fahrenheit|kelvin; dollar usd|euro eur|yen| rupee|peso; january jan|february
feb|march|april|may|june|july|august|september sept|october|november|december;
monday|tuesday|wednesday|thursday|friday|saturday|sunday; spring|summer|autumn fall|winter; north northern| south
southern|east eastern|west western; red|blue|green|yellow|black|white|orange|purple|pink|brown; breakfast|lunch| dinner;
morning|evening|night|afternoon; mercury|venus|mars|jupiter|saturn|uranus|neptune|pluto; dog puppy|cat kitten|
horse|rabbit|cow cattle|pig|chicken; africa african|asia asian|europe european|america american; france french|germany
german|spain spanish|italy italian|england english|scotland scottish|wales welsh|ireland irish| china chinese|japan
japanese|korea korean|india indian|russia russian|canada canadian|mexico mexican|brazil brazilian| argentina|chile
chilean|peru peruvian|portugal portuguese|greece greek|turkey turkish|egypt egyptian|israel israeli| iran iranian|iraq
iraqi|poland polish|sweden swedish|norway norwegian|denmark danish|finland finnish|netherlands dutch| belgium
belgian|austria austrian|switzerland swiss|hungary hungarian|ukraine ukrainian|romania romanian|cuba cuban| kenya
kenyan|nigeria nigerian|ethiopia ethiopian|pakistan pakistani|vietnam vietnamese|thailand thai|indonesia| philippines
filipino|zealand|iceland icelandic|syria syrian|afghanistan afghan|colombia|venezuela|jamaica|morocco| australia
australian; texas|california|florida|ohio|illinois|georgia|michigan|arizona|colorado|oregon|virginia|alaska|
hawaii|nevada|utah|minnesota|wisconsin|indiana|missouri|tennessee|kentucky|alabama|louisiana|arkansas|iowa|kansas|
nebraska|oklahoma|montana|idaho|massachusetts|connecticut|maryland|pennsylvania
"""
_NEGATORS: Final = frozenset(
    """
    not no never none nor neither without cannot cant dont doesnt didnt isnt arent wasnt werent wont couldnt shouldnt
    wouldnt hasnt havent hadnt lack lacks lacking non
    """.split()
)
#: Of content words behind a negator, those that it may deny ("no evidence that it works").
_SCOPE: Final = 2
#: Beginnings of words that deny the rest, and those of which each has an opposite.
_DENYING: Final = ("un", "in", "im", "il", "ir", "dis", "non", "anti", "de")
_BEGINNINGS: Final = (*_DENYING, *"hyper hypo pre post over under up down micro macro intra extra inter pro".split())
_FEWEST_LETTERS: Final = 4
#: Prepositions that say which of two words comes first.
_FROM_TO: Final = frozenset({"from", "to", "into"})
#: Words of a text up to which their order may say who does what; words between two that may change places.
_BRIEF: Final = 32
_BOTH: Final = frozenset({"and", "or", "vs", "versus", "with"})
#: Words of a name, and how alike two names are that are one.
_LONGEST_NAME: Final = 3
_ALIKE: Final = 0.6
#: Signs behind which a capital letter makes no name.
_ENDS: Final = (".", "!", "?", ":", "(")

_UNITS: Final = {
    name: at
    for at, name in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
_TENS: Final = {
    name: 10 * at for at, name in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_SCALES: Final = {"hundred": 10**2, "thousand": 10**3, "k": 10**3, "million": 10**6, "billion": 10**9}
_ORDINALS: Final = (
    {"first": "one", "second": "two", "third": "three", "fifth": "five", "eighth": "eight", "ninth": "nine"}
    | {"twelfth": "twelve"}
    | {f"{name}th": name for name in (*_UNITS, *_SCALES)}
    | {f"{name[:-1]}{end}": name for name in _TENS for end in ("ieth", "ies")}
)
_ROMAN: Final = {
    name: at
    for at, name in enumerate("i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix".split(), 1)
}
#: Words behind which one letter is a Roman number.
_COUNTED: Final = frozenset("war part type phase class stage grade chapter volume factor level".split())
#: Units that may stand for one another, in days, grams and metres.
_FACTORS: Final = {
    form: factor
    for names, factor in {
        "hour hours hr hrs h": 1 / 24, "day days": 1, "week weeks wk": 7, "month months": 30, "year years yr yrs": 360,
        "mg milligram milligrams": 0.001, "g gram grams": 1, "kg kilogram kilograms": 1000, "mm": 0.001, "cm": 0.01,
        "m meter meters metre metres": 1, "km": 1000,
    }.items()
    for form in names.split()
}  # fmt: skip
#: One word that is a number with its ending or unit; other words of letters and digits are codes.
_AMOUNT: Final = re.compile(rf"\d+(?:st|nd|rd|th|s|k|x|{'|'.join(_FACTORS)})?")
_NAMED: Final = {*_FACTORS, *_UNITS, *_TENS, *_SCALES, *_ORDINALS}
_IDENTIFIER: Final = re.compile("[a-z][A-Z]")
#: Verbs that are denied, however the apostrophe was lost.
_CONTRACTED: Final = re.compile(
    r"\b(do|does|did|is|are|was|were|wo|ca|could|should|would|has|have|had|need|must)\s*n\s*['’´`]?\s*t\b",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:[.,]\d+)?|[^\W\d_]+")


def contrast(left: str, right: str) -> str:
    """What two texts differ in: "code", "number" (one alone), "numbers", "opposite", "negation", "direction", "name";
    empty where nothing decides.
    """
    left, right = (_CONTRACTED.sub(r"\1nt", html.unescape(text)) for text in (left, right))
    one, other = words(left), words(right)
    if _other_codes(one, other):
        return "code"
    amounts = _numbers(left, scaled=True), _numbers(right, scaled=True)
    if _other_numbers(*amounts) and _other_numbers(_numbers(left), _numbers(right)):
        own = changed_place(left, right)
        alone = own and all(_AMOUNT.fullmatch(word.form) or word.form in _NAMED for side in own for word in side)
        return "number" if alone else "numbers"
    # "30 days" are one month.
    same = _FACTORS.keys() if amounts[0] and sorted(amounts[0]) == sorted(amounts[1]) else ()
    only = set(one) - set(other) - set(same), set(other) - set(one) - set(same)
    both = _denials(one, other, only[1]) + _denials(other, one, only[0])
    denied = (both + _denied(*only)) % 2 == 1
    opposed = _opposed(*only)
    # "On" and "off" are prepositions, too.
    switched = sorted(map(sorted, only)) == [["off"], ["on"]] and len(one) == len(other)
    if (opposed or switched) and not denied:
        return "opposite"
    # "Not safe" is "dangerous", and "without sleep" is "sleep loss".
    if denied and not opposed and not any(_SIDES.get(key(word), {}).get(0) == 1 for own in only for word in own):
        return "negation"
    if _turned(one, other):
        return "direction"
    return "name" if _other_names(left, right) else ""


@lru_cache(maxsize=1 << 12)
def _numbers(text: str, *, scaled: bool = False) -> tuple[str, ...]:
    """The numbers of a text in order, as figures; scaled, those before a unit are in days, grams or metres."""
    found: list[float] = []
    total = part = last = 0.0
    open_ = False
    before = ""
    for word in (*_FIGURE.findall(text.casefold()), ""):
        figure, name = word[:1].isdecimal(), _ORDINALS.get(word, word)
        scale = _SCALES.get(name) if open_ or name != "k" else None
        value: float | None = _UNITS.get(name, _TENS.get(name))
        if figure:
            value = float(word.replace(",", "" if re.search(r",\d{3}(?!\d)", word) else "."))
        elif len(word) > 1 or before in _COUNTED:
            value = _ROMAN.get(word, value)
        if scale is not None and scale > 100:
            total, part, last, open_ = total + (part or 1) * scale, 0, scale, True
        elif scale is not None:
            part, last, open_ = (part or 1) * scale, scale, True
        elif value is not None and open_ and value < last and not figure:
            part, last = part + value, value if value >= 20 else 0
        elif not (open_ and word == "and" and last >= 100):
            one = scaled and word in _FACTORS and before in ("a", "an")
            found += [(total + part or one) * (_FACTORS.get(word, 1) if scaled else 1)] if open_ or one else []
            total, part, open_ = 0, value or 0, value is not None
            last = part if not figure and part >= 20 else 0
        before = word
    return tuple([f"{number:.15g}" for number in found])


def _other_numbers(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether each text has a number that the other lacks; the end of a year is the year, in any grouping."""
    if not one or not other:
        return False
    mine, theirs = Counter(one) - Counter(other), Counter(other) - Counter(one)
    for a, b in product(sorted(mine), sorted(theirs)):
        if {len(a), len(b)} == {2, 4} and (a.endswith(b) or b.endswith(a)) and mine[a] and theirs[b]:
            mine[a], theirs[b] = mine[a] - 1, theirs[b] - 1
    return any(mine.values()) and any(theirs.values()) and "".join(one) != "".join(other)


def _other_codes(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether each text has a code, or a letter alone, that the other lacks, also as part of its words together."""
    wholes = "".join(other), "".join(one)
    only = set(one) - set(other), set(other) - set(one)
    own = [
        {
            word
            for word in side
            if word.isalnum() and not (word.isalpha() or _AMOUNT.fullmatch(word)) and word not in whole
        }
        for side, whole in zip(only, wholes, strict=True)
    ]
    alone = _letters(one), _letters(other)
    return all(codes | letters for codes, letters in zip(own, (alone[0] - alone[1], alone[1] - alone[0]), strict=True))


def _letters(every: Sequence[str]) -> set[str]:
    """Letters that stand alone; "a" and "I" are words but at the end."""
    return {
        word
        for at, word in enumerate(every, 1)
        if len(word) == 1 and word.isalpha() and (word not in "ai" or at == len(every))
    }


def _sides() -> dict[str, dict[int, int]]:
    """The axes that have a word, and its side there, by the key of the word."""
    found = defaultdict[str, dict[int, int]](dict)
    for axis, sides in enumerate(_AXES.split(";")):
        for side, names in enumerate(sides.split("|")):
            for name in names.split():
                found[key(name)][axis] = side
    return dict(found)


_SIDES: Final = _sides()
#: Words around which two others change places.
_PIVOTS: Final = frozenset(map(key, "than defeat beat invade attack kill lead".split())).union(
    name for name, axes in _SIDES.items() if 0 in axes
)


@lru_cache(maxsize=1 << 14)
def _sides_of(word: str) -> dict[int, int]:
    """The axes that have a word, or what it is without an ending, and its side there."""
    forms = (word, *(word.removesuffix(end) for end in ("s", "es", "d", "ed") if word.endswith(end)))
    return next((found for form in forms if (found := _SIDES.get(key(form)))), {})


def _opposed(one: set[str], other: set[str]) -> bool:
    """Whether words that only one of two texts has are on different sides of an axis."""
    left, right = (defaultdict[int, set[int]](set), defaultdict[int, set[int]](set))
    for own, found in ((one, left), (other, right)):
        for word in own:
            for axis, side in _sides_of(word).items():
                found[axis].add(side)
    if any(left[axis].isdisjoint(right[axis]) for axis in left.keys() & right.keys()):
        return True
    rests = _begun(one, _BEGINNINGS)
    return any(f"{instead}{rest}" in other for begin, rest in rests for instead in _BEGINNINGS if begin != instead)


def _begun(own: set[str], beginnings: tuple[str, ...]) -> list[tuple[str, str]]:
    """Words that have one of some beginnings, as this and the rest."""
    every = product([word for word in own if word.startswith(beginnings)], beginnings)
    found = [(begin, word.removeprefix(begin)) for word, begin in every if word.startswith(begin)]
    return [(begin, rest) for begin, rest in found if len(rest) >= _FEWEST_LETTERS]


def _denied(one: set[str], other: set[str]) -> int:
    """How many words of one text are those of the other with a beginning that denies them."""
    sides = ((one, other), (other, one))
    return sum(rest in theirs and begin not in theirs for own, theirs in sides for begin, rest in _begun(own, _DENYING))


def _denials(own: Sequence[str], other: Sequence[str], only_there: set[str]) -> int:
    """How many words a text denies that the other has, too; where that has "witout" for "without", it denies them."""
    if _NEGATORS.isdisjoint(own):
        return 0
    theirs = set(map(key, other))
    said = [word in _NEGATORS and not any(one_letter_apart(word, there) for there in only_there) for word in own]
    places = [at for at, denies in enumerate(said) if denies and "or" not in own[max(0, at - 1) : at]]
    scopes = ([word for word in own[at + 1 :] if word not in FORM_WORDS][:_SCOPE] for at in places)
    return sum(any(key(word) in theirs for word in scope) for scope in scopes)


def _swapped(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two words of a sentence have changed places: who sues a tenant is not whom a tenant sues."""
    names = [[key(word) for word in own] for own in (one, other)]
    places = [at for at, pair in enumerate(zip(*names, strict=False)) if pair[0] != pair[1]]
    if len(one) != len(other) or len(places) != 2 or names[0][places[0]] != names[1][places[1]]:
        return False
    between = set(one[places[0] + 1 : places[1]])
    sentence = one[0] in FORM_WORDS or not FORM_WORDS.isdisjoint(between)
    return names[0][places[1]] == names[1][places[0]] and sentence and not between <= _BOTH


def _turned(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the same words have changed places: from one to the other and back, or around a verb.

    In long texts sentences in another order are no other direction.
    """
    if max(len(one), len(other)) > _BRIEF or _swapped(one, other):
        return max(len(one), len(other)) <= _BRIEF
    mine, theirs = ({word: before for before, word in pairwise(own) if before in _FROM_TO} for own in (one, other))
    turned = {(mine[word], theirs[word]) for word in mine.keys() & theirs.keys()}
    if any(before != after and (after, before) in turned for before, after in turned):
        return True
    middle, turned_to = (own[cut] for own, cut in zip((one, other), _different(one, other), strict=True))
    if any(word in _FROM_TO and (*middle[at + 1 :], word, *middle[:at]) == turned_to != middle
           for at, word in enumerate(middle)):  # fmt: skip
        return True
    content = [[key(word) for word in own if word == "by" or word not in FORM_WORDS] for own in (one, other)]
    if {*content[0], "by"} != {*content[1], "by"}:
        return False
    for pivot in _PIVOTS.intersection(content[0]):
        ends = []
        for own in content:
            at = own.index(pivot)
            before, after = set(own[:at]), set(own[at + 1 :])
            both = (before & after) | {"by"}
            ends.append((after - both, before - both)[:: 1 if own[at + 1 : at + 2] == ["by"] else -1])
        if ends[0][0] & ends[1][1] and ends[0][1] & ends[1][0]:
            return True
    return False


def changed_place(left: str, right: str) -> tuple[tuple[WordSpan, ...], tuple[WordSpan, ...]] | None:
    """What each of two texts has in the one place in which they differ, but for words of grammar; None for others."""
    sides = _content(left), _content(right)
    keys = [tuple([key(one.form) for one in side]) for side in sides]
    cuts = _different(*keys)
    own = sides[0][cuts[0]], sides[1][cuts[1]]
    brief = 0 < min(map(len, own)) <= max(map(len, own)) <= _LONGEST_NAME
    return own if brief and set(keys[0][cuts[0]]).isdisjoint(keys[1][cuts[1]]) else None


def _different(one: Sequence[str], other: Sequence[str]) -> tuple[slice, slice]:
    """Where each of two texts is, between the words with which both begin and end."""
    start = alike(one, other)
    end = alike(one[start:][::-1], other[start:][::-1])
    return slice(start, len(one) - end), slice(start, len(other) - end)


@lru_cache(maxsize=1 << 12)
def _content(text: str) -> tuple[WordSpan, ...]:
    return tuple(one for one in spans(text) if one.form not in FORM_WORDS and not asks(one.form))


def _other_names(left: str, right: str) -> bool:
    """Whether two texts differ in one place, where each has a name of its own."""
    if (own := changed_place(left, right)) is None:
        return False
    written = [_has_name(text, side) for text, side in zip((left, right), own, strict=True)]
    one, other = ("".join(word.form for word in side) for side in own)
    if all(_IDENTIFIER.search(text[side[0].start : side[-1].end])
           for text, side in zip((left, right), own, strict=True)):  # fmt: skip
        return not one_letter_apart(one, other)
    if True not in written or False in written:
        return False
    initials = {"".join(word.form[0] for word in side) for side in own}
    return initials.isdisjoint((one, other)) and SequenceMatcher(None, one, other).ratio() < _ALIKE


def _has_name(text: str, own: Sequence[WordSpan]) -> bool | None:
    """Whether one of some words is written as a name; None at the beginning, where every word has a capital letter."""
    every = [one for one in spans(text) if one.start and text[one.start].isalpha()]
    large = [one for one in every if text[one.start].isupper() and not text[: one.start].rstrip().endswith(_ENDS)]
    if 2 * len(large) <= len(every) and any(one.start == word.start for one in own for word in large):
        return True
    return None if own[0].start == 0 and text[0].isupper() and len(own) == 1 else False
