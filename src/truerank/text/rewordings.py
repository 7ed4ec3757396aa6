"""Rewordings of topic texts by rules: for the sensitivity check of the leakage audit, and for rows that leak."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from random import Random
from typing import Final, Literal, get_args

from truerank.text.wording import IRREGULAR, is_looked_for_inside
from truerank.text.words import FUNCTION_WORDS, script_of, words

Kind = Literal[
    "order",
    "inflection",
    "stop words added",
    "stop words removed",
    "question form",
    "typing error",
    "abbreviation",
    "synonym",
    "narrower",
    "broader",
    "two typing errors",
    "sign for a letter",
    "spelling by sound",
    "web form",
    "blanks removed",
    "other spelling",
    "number written otherwise",
    "inside a longer query",
    "short topic inside a longer query",
]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
#: What a plant of each kind is, as narrowly as it is made: a verdict claims no more.
CLAIMS: Final[dict[str, str]] = {
    "order": "the same words in another order",
    "inflection": "English singular or plural, or an irregular form, of up to three words",
    "stop words added": "up to three English stop words more",
    "stop words removed": "English stop words left out",
    "question form": "one of 17 English frames of questions",
    "typing error": "one letter more, less, other, doubled or swapped, so that it is no other word",
    "abbreviation": "one English abbreviation from a list, or two initials",
    "synonym": "one English synonym from a list",
    "narrower": "one English word more",
    "broader": "one word less",
    "two typing errors": "a wrong letter in each of two words",
    "sign for a letter": "one letter that became a digit, @, $ or *",
    "spelling by sound": "up to two English sounds spelled otherwise in one word",
    "web form": "a blank as %20, + or &nbsp;, a tag around a word, or one hashtag",
    "blanks removed": "all blanks removed",
    "other spelling": "British for American spelling, or the other way, by a list of endings and words",
    "number written otherwise": "a number up to twenty in English words for digits, or the other way",
    "inside a longer query": "the whole text, of three content words or more (a question: four), in a longer query",
    "short topic inside a longer query": "the whole text, of fewer content words, in a longer query",
}
#: What people do, of which rules make no fair plant: nothing is claimed of it.
UNPLANTED: Final = "translations, and paraphrases in words of one's own"
#: Words at the beginning of a text that are reworded; what follows stays as it is.
REWORDED: Final = 300
#: Kinds that a text in another script does not allow.
_ENGLISH: Final = frozenset({
    "inflection", "stop words added", "stop words removed", "question form", "abbreviation", "synonym", "narrower",
    "spelling by sound", "other spelling", "number written otherwise",
})  # fmt: skip
#: Kinds that CLEAN asks for: the audit has evidence for each of them.
SEEN_KINDS: Final = KINDS[: KINDS.index("abbreviation")]

_ADDED: Final = (
    "a about an and any at by for from in into is it of on or some than that the these this to was with".split()
)
_MODIFIERS: Final = (
    "history cost statistics news california 2019 children treatment government online causes pictures women europe "
    "law early research market school risk"
).split()
_QUESTIONS: Final = (
    "what is {}",
    "what are {}",
    "what was the {}",
    "how do {}",
    "how does the {} work",
    "why is {} important",
    "where is the {}",
    "who are the {}",
    "define {}",
    "{} definition",
    "what does {} mean",
    "tell me about {}",
    "can you explain {}",
    "i want to know about {}",
    "information on {}",
    "what is known about {}",
    "is there any {}",
)
_AROUND: Final = (
    "i am writing an essay on {} for school",
    "a friend told me about {} last week",
    "pictures and videos of {} from old newspapers",
    "best library books about {} for adults",
    "my homework for tomorrow {} please help",
    "find a lecture where {} came up",
)
#: What has another name: each may stand for the others.
_SYNONYMS: Final = tuple(
    tuple(group.split("|"))
    for group in """
    car|automobile;cars|automobiles;doctor|physician;doctors|physicians;illness|disease|sickness;diseases|illnesses;
    cancer|tumor;drug|medication|medicine;drugs|medications|medicines;film|movie;films|movies;country|nation;
    countries|nations;child|kid;children|kids;airplane|aircraft;airplanes|aircraft;ship|vessel;ships|vessels;
    murder|homicide;murders|homicides;teacher|instructor;teachers|instructors;job|occupation;jobs|occupations;
    purchase|buy;begin|start;end|finish;big|large;small|little;fast|quick;rich|wealthy;ill|sick;effect|impact;
    effects|impacts;cause|reason;causes|reasons;risk|danger;risks|dangers;benefit|advantage;benefits|advantages;
    help|aid;assistance|aid;law|legislation;laws|legislation;crime|offense;crimes|offenses;police|cops;
    treatment|therapy;treatments|therapies;vaccine|immunization;vaccines|immunizations;vaccination|immunization;
    heart|cardiac;kidney|renal;brain|cerebral;lung|pulmonary;pregnancy|gestation;women|females;men|males;
    people|persons;elderly|aged;teenager|adolescent;teenagers|adolescents;student|pupil;students|pupils;
    picture|image;pictures|images;house|home;houses|homes;price|cost;prices|costs;money|funds;company|firm;
    companies|firms;business|commerce;worker|employee;workers|employees;war|conflict;wars|conflicts;weapon|arm;
    weapons|arms;accident|crash;accidents|crashes;fire|blaze;fires|blazes;storm|tempest;storms|tempests;ocean|sea;
    oceans|seas;forest|woodland;forests|woodlands;animal|beast;animals|beasts;food|nourishment;diet|nutrition;
    alcohol|liquor;cigarette|tobacco;weight|mass;obesity|overweight;cholesterol|lipids;infection|contagion;
    infections|contagions;symptom|sign;symptoms|signs;test|trial;tests|trials;study|investigation;
    studies|investigations;method|technique;methods|techniques;protection|defense;prevention|avoidance;
    growth|increase;decline|decrease;reduction|decrease;reduces|lowers;increases|raises;improve|enhance;
    trade|commerce;industry|sector;agreement|treaty;agreements|treaties;election|vote;elections|votes;
    leader|chief;leaders|chiefs;president|head;king|monarch;city|town;cities|towns;village|hamlet;road|street;
    roads|streets;train|railway;trains|railways;hotel|inn;hotels|inns;shop|store;shops|stores;gas|petrol;
    oil|petroleum;energy|power;electricity|power;garbage|waste;pollution|contamination;climate|weather;
    earthquake|tremor;earthquakes|tremors;safety|security;hazard|danger;hazards|dangers;education|schooling;
    university|college;universities|colleges;school|academy;schools|academies;book|volume;books|volumes;
    author|writer;authors|writers;actor|performer;actors|performers;singer|vocalist;song|tune;songs|tunes
    """.replace("\n", "")
    .replace(" ", "")
    .split(";")
)
_ABBREVIATIONS: Final = tuple(
    (long.strip(), short.strip())
    for long, _, short in (
        entry.partition("=")
        for entry in """
        united states=us; united kingdom=uk; united nations=un; european union=eu; international=intl;
        government=govt; department=dept; university=univ; association=assoc; television=tv; and=&; versus=vs;
        company=co; corporation=corp; doctor=dr; mountain=mt; saint=st; street=st; number=no; information=info;
        with=w; without=wo; year=yr; years=yrs; million=mio; percent=pct; world health organization=who;
        artificial intelligence=ai; blood pressure=bp; magnetic resonance imaging=mri; deoxyribonucleic acid=dna;
        human immunodeficiency virus=hiv; body mass index=bmi; vitamin=vit; temperature=temp; maximum=max;
        minimum=min; approximately=approx; laboratory=lab; advertisement=ad; photograph=photo; telephone=phone;
        organization=org; management=mgmt; development=dev; president=pres; professor=prof; airport=apt; north=n;
        south=s; east=e; west=w; california=ca; new york=ny; los angeles=la
        """.split(";")
    )
)


#: Digits and signs that look like a letter.
_LOOKS: Final = {"a": "4@", "b": "8", "e": "3", "g": "9", "i": "1!", "l": "1", "o": "0", "s": "5$", "t": "7"}
#: Sounds of English and how they are spelled, too.
_HEARD: Final = (
    ("ph", "f"), ("ea", "ee"), ("ei", "ie"), ("ie", "ei"), ("c", "s"), ("c", "k"), ("ck", "k"), ("qu", "kw"),
    ("tion", "shun"), ("sc", "s"), ("y", "i"), ("igh", "ite"), ("ough", "uff"), ("kn", "n"), ("rh", "r"), ("x", "cks"),
    ("au", "aw"), ("er", "ar"), ("ous", "us"), ("ai", "ay"), ("oo", "u"), ("wh", "w"), ("s", "z"), ("z", "s"),
)  # fmt: skip
#: Endings and words of British and American spelling.
_SUFFIXES: Final = frozenset("isation ization yse yze ogue".split())
_SPELLINGS: Final = tuple(
    tuple(pair.split("|"))
    for pair in """
    isation|ization yse|yze ogue|og colour|color behaviour|behavior centre|center
    grey|gray aluminium|aluminum aeroplane|airplane paediatric|pediatric anaemia|anemia oestrogen|estrogen foetus|fetus
    licence|license defence|defense organisation|organization programme|program travelled|traveled tyre|tire
    catalogue|catalog cheque|check plough|plow mould|mold sulphur|sulfur leukaemia|leukemia diarrhoea|diarrhea
    """.split()
)
_DIGITS: Final = dict(
    pair.split("=")
    for pair in "one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 "
    "thirteen=13 fourteen=14 fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 twenty=20".split()
)
_NUMBERS: Final = {digits: word for word, digits in _DIGITS.items()}


def reword(kind: Kind, text: str, rng: Random) -> str | None:
    """One rewording of a text in lower case without punctuation; of a long one, the first words are reworded."""
    if kind in _ENGLISH and script_of(text) not in ("LATIN", ""):
        return None
    every = words(text)
    first = list(every[:REWORDED])
    made = _REWORDERS[kind](first, rng) if first else None
    return None if made is None or made == first else " ".join((*made, *every[REWORDED:]))


def _order(every: list[str], rng: Random) -> list[str] | None:
    if len(every) < 2:
        return None
    way = rng.randrange(4)
    if way == 0:
        return every[::-1]
    if way == 1:
        cut = rng.randrange(1, len(every))
        return every[cut:] + every[:cut]
    if way == 2:
        first, second = rng.sample(range(len(every)), 2)
        moved = list(every)
        moved[first], moved[second] = moved[second], moved[first]
        return moved
    return rng.sample(every, len(every))


def _inflection(every: list[str], rng: Random) -> list[str] | None:
    places = [at for at, word in enumerate(every) if _is_content(word) and len(word) >= 3 and word.isalpha()]
    if not places:
        return None
    changed = set(rng.sample(places, min(len(places), rng.choice((1, 1, 2, 3)))))
    return [_inflected(word, rng) if at in changed else word for at, word in enumerate(every)]


def _inflected(word: str, rng: Random) -> str:
    forms = [form for form, base in IRREGULAR.items() if base == word]
    if word in IRREGULAR:
        forms.append(IRREGULAR[word])
    return rng.choice(forms) if forms else _other_number(word)


def _other_number(word: str) -> str:
    """The singular of what looks like a plural, the plural of the rest."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search("(?:s|x|z|ch|sh)es$", word):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search("(?:s|x|z|ch|sh)$", word) else "s")


def _stop_added(every: list[str], rng: Random) -> list[str]:
    made = list(every)
    for _ in range(rng.choice((1, 1, 2, 3))):
        made.insert(rng.randrange(len(made) + 1), rng.choice(_ADDED))
    return made


def _stop_removed(every: list[str], rng: Random) -> list[str] | None:
    places = [at for at, word in enumerate(every) if not _is_content(word)]
    if not places or len(places) == len(every):
        return None
    gone = set(places if rng.random() < 0.5 else rng.sample(places, rng.randrange(1, len(places) + 1)))
    return [word for at, word in enumerate(every) if at not in gone]


def _question(every: list[str], rng: Random) -> list[str]:
    return rng.choice(_QUESTIONS).format(" ".join(every)).split()


def _typing_error(every: list[str], rng: Random) -> list[str] | None:
    places = [at for at, word in enumerate(every) if len(word) >= 3 and word.isalpha()]
    if not places:
        return None
    at = rng.choices(places, [len(every[place]) for place in places])[0]
    word = every[at]
    place = rng.randrange(len(word))
    letter = rng.choice("abcdefghijklmnopqrstuvwxyz")
    swap = rng.randrange(len(word) - 1)
    ways = (
        word[:place] + word[place + 1 :],
        word[:place] + word[place] + word[place:],
        word[:swap] + word[swap + 1] + word[swap] + word[swap + 2 :],
        word[:place] + letter + word[place + 1 :],
        word[:place] + letter + word[place:],
    )
    return [*every[:at], rng.choice(ways), *every[at + 1 :]]


def _abbreviation(every: list[str], rng: Random) -> list[str] | None:
    text = f" {' '.join(every)} "
    known = [pair for pair in _ABBREVIATIONS if f" {pair[0]} " in text]
    if known:
        long, short = rng.choice(known)
        return text.replace(f" {long} ", f" {short} ", 1).split()
    runs = [at for at in range(len(every) - 1) if _is_content(every[at]) and _is_content(every[at + 1])]
    if not runs:
        return None
    at = rng.choice(runs)
    return [*every[:at], every[at][0] + every[at + 1][0], *every[at + 2 :]]


def _synonym(every: list[str], rng: Random) -> list[str] | None:
    choices = [
        (at, other)
        for at, word in enumerate(every)
        for group in _SYNONYMS
        if word in group
        for other in group
        if other != word
    ]
    if not choices:
        return None
    at, other = rng.choice(choices)
    return [*every[:at], other, *every[at + 1 :]]


def _narrower(every: list[str], rng: Random) -> list[str] | None:
    others = [word for word in _MODIFIERS if word not in every]
    if not others:
        return None
    new, at = rng.choice(others), rng.choice((0, len(every)))
    return [*every[:at], new, *every[at:]]


def _broader(every: list[str], rng: Random) -> list[str] | None:
    places = [at for at, word in enumerate(every) if _is_content(word)]
    if len(places) < 2:
        return None
    gone = rng.choice(places)
    return [word for at, word in enumerate(every) if at != gone]


def _two_errors(every: list[str], rng: Random) -> list[str] | None:
    once = _typing_error(every, rng)
    if once is None:
        return None
    untouched = [word if word == before else "" for word, before in zip(once, every, strict=True)]
    twice = _typing_error(untouched, rng)
    return twice and [new or old for new, old in zip(twice, once, strict=True)]


def _sign(every: list[str], rng: Random) -> list[str] | None:
    places = [at for at, word in enumerate(every) if len(word) >= 4 and word.isalpha()]
    if not places:
        return None
    at = rng.choice(places)
    word = every[at]
    place = rng.randrange(len(word))
    alike = _LOOKS.get(word[place], "")
    return [
        *every[:at],
        word[:place] + rng.choice(f"{alike}{alike}0123456789@$*") + word[place + 1 :],
        *every[at + 1 :],
    ]


def _by_sound(every: list[str], rng: Random) -> list[str] | None:
    places = [at for at, word in enumerate(every) if any(sound in word for sound, _ in _HEARD) and len(word) >= 5]
    if not places:
        return None
    at = rng.choice(places)
    word = every[at]
    for _ in range(rng.choice((1, 2))):
        sounds = [pair for pair in _HEARD if pair[0] in word]
        if sounds:
            word = word.replace(*rng.choice(sounds), 1)
    return [*every[:at], word, *every[at + 1 :]]


def _web(every: list[str], rng: Random) -> list[str] | None:
    if len(every) < 2:
        return None
    tagged = rng.randrange(len(every))
    tag = rng.choice(("b", "em", "i", "mark"))
    ways = (
        "%20".join(every),
        "+".join(every),
        " ".join([*every[:tagged], f"<{tag}>{every[tagged]}</{tag}>", *every[tagged + 1 :]]),
        f"#{''.join(word.capitalize() for word in every)}",
        "&nbsp;".join(every),
    )
    return [rng.choice(ways)]


def _joined(every: list[str], rng: Random) -> list[str] | None:
    return ["".join(every)] if len(every) > 1 else None


def _other_spelling(every: list[str], rng: Random) -> list[str] | None:
    choices = [(at, other) for at, word in enumerate(every) for other in _respelled(word)]
    if not choices:
        return None
    at, other = rng.choice(choices)
    return [*every[:at], other, *every[at + 1 :]]


@lru_cache(maxsize=1 << 14)
def _respelled(word: str) -> tuple[str, ...]:
    return tuple(
        word[: -len(one)] + other
        for pair in _SPELLINGS
        for one, other in (pair, pair[::-1])
        if word.endswith(one) and (len(word) == len(one) or (len(word) - len(one) >= 3 and one in _SUFFIXES))
    )


def _number(every: list[str], rng: Random) -> list[str] | None:
    places = [at for at, word in enumerate(every) if word in _NUMBERS or word in _DIGITS]
    if not places:
        return None
    at = rng.choice(places)
    return [*every[:at], _NUMBERS.get(every[at]) or _DIGITS[every[at]], *every[at + 1 :]]


def _inside(every: list[str], rng: Random, *, short: bool = False) -> list[str] | None:
    return rng.choice(_AROUND).format(" ".join(every)).split() if is_looked_for_inside(every) != short else None


def _is_content(word: str) -> bool:
    return word not in FUNCTION_WORDS


_Reworder = Callable[[list[str], Random], "Sequence[str] | None"]
_REWORDERS: Final[Mapping[Kind, _Reworder]] = {
    "order": _order,
    "inflection": _inflection,
    "stop words added": _stop_added,
    "stop words removed": _stop_removed,
    "question form": _question,
    "typing error": _typing_error,
    "abbreviation": _abbreviation,
    "synonym": _synonym,
    "narrower": _narrower,
    "broader": _broader,
    "two typing errors": _two_errors,
    "sign for a letter": _sign,
    "spelling by sound": _by_sound,
    "web form": _web,
    "blanks removed": _joined,
    "other spelling": _other_spelling,
    "number written otherwise": _number,
    "inside a longer query": _inside,
    "short topic inside a longer query": partial(_inside, short=True),
}
