"""The core of a query: what is left without form words, question frames and inflection.

Two texts with the same core ask with the same words: order, inflection, function words and the form of the question
differ at most. The core is wider than `truerank.text.words.bag`, which reformulation types rest on: it knows irregular
forms and drops frames such as "what does … mean" and "tell me about …".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from truerank.text.words import FUNCTION_WORDS, stem, words

__all__ = ["FORM_WORDS", "FRAME_WORDS", "IRREGULAR", "Core", "core", "core_of", "key"]

#: Words that the core leaves out wherever they stand: `FUNCTION_WORDS` and adverbs and prepositions that a search box
#: can do without. Negations are not among them.
FORM_WORDS: Final = FUNCTION_WORDS | frozenset(
    """
    above across actually again against almost along already also among around because before behind below down else
    even ever few further generally here herself himself itself just main many much myself now off once only onto
    ourselves out over own per please quite really same somewhat still themselves through today too toward towards up
    very via within whats whos wheres hows yet yourself
    """.split()
)

_FORMS: Final = """
arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun|bend bent|
bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|
burn burnt|buy bought|catch caught|choose chose chosen|come came|cost costs|creep crept|deal dealt|dig dug|
draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|
feel felt|fight fought|find found|flee fled|fly flew flown flies|forbid forbade forbidden|forget forgot forgotten|
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone goes|grind ground|
grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|
lead led|leap leapt|learn learnt|leave left|lend lent|lie lay lain|light lit|lose lost|make made|mean meant|meet met|
pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|
sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|
sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|sow sown|speak spoke spoken|speed sped|
spell spelt|spend spent|spill spilt|spin spun|spoil spoilt|spring sprang sprung|stand stood|steal stole stolen|
stick stuck|sting stung|stink stank stunk|strike struck stricken|strive strove striven|swear swore sworn|
sweep swept|swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|
think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|
win won|wind wound|write wrote written|
alga algae|analysis analyses|appendix appendices|axis axes|bacterium bacteria|basis bases|bus buses|cactus cacti|
calf calves|child children|cortex cortices|crisis crises|criterion criteria|curriculum curricula|datum data|
diagnosis diagnoses|elf elves|foot feet|fungus fungi|gas gases|genus genera|goose geese|half halves|
hoof hooves|hypothesis hypotheses|index indices|knife knives|larva larvae|leaf leaves|life lives|loaf loaves|
louse lice|man men|matrix matrices|medium media|metastasis metastases|mitochondrion mitochondria|mouse mice|
nucleus nuclei|ovum ova|ox oxen|parenthesis parentheses|person people persons|phenomenon phenomena|
prognosis prognoses|quiz quizzes|radius radii|scarf scarves|self selves|serum sera|sheaf sheaves|shelf shelves|
spectrum spectra|stimulus stimuli|stratum strata|syllabus syllabi|symposium symposia|synopsis synopses|
synthesis syntheses|thesis theses|thief thieves|tooth teeth|vertebra vertebrae|vertex vertices|virus viruses viri|
wife wives|wolf wolves|woman women|
catalog catalogue|check cheque|dialog dialogue|draft draught|jail gaol|jewelry jewellery|mustache moustache|
pajamas pyjamas|plow plough|program programme|skeptic sceptic|tire tyre
"""


def _irregular() -> dict[str, str]:
    lines = (line.split() for line in _FORMS.replace("\n", "").split("|"))
    return {form: base for base, *forms in lines for form in forms}


#: Irregular inflections and spellings by their base form.
IRREGULAR: Final = _irregular()

_ASK: Final = "(?:tell|explain to|show|give|teach) (?:me|us)(?: more| something| all| everything)?(?: about| on)?"
_INFORMATION: Final = "(?:some |any |more )?(?:information|info|facts|details)"
_MEANING: Final = "(?:the )?(?:meaning|definition|explanation|description) (?:of|for)"
#: How a question or request begins, before what it is about.
_OPENINGS: Final = (
    f"(?:can|could|would|will) (?:you|anyone|anybody|someone|somebody) (?:please )?(?:{_ASK}|explain|describe|define)",
    _ASK,
    f"{_INFORMATION} (?:on|about|regarding|concerning|for)",
    "(?:does anyone|does anybody|does someone|do you) know(?: anything)?(?: about)?",
    "(?:i|we) (?:want|need|wish|would like|d like)(?: to (?:know|learn|find out|find|understand|see|read))?(?: more)?(?: about)?",
    "id like(?: to (?:know|learn|find out|find|understand|see|read))?(?: more)?(?: about)?",
    "(?:(?:i am|im|we are|were) )?(?:looking|searching) for",
    "search for",
    f"find (?:out about|{_INFORMATION}(?: on| about)?)",
    "how (?:can|do|could|would) (?:i|you|we) (?:find|explain|define|describe)",
    f"where (?:can|do|could) (?:i|you|we|one) (?:find|get|read|learn)(?: more)?(?: {_INFORMATION})?(?: on| about)?",
    "what(?: is|s)? (?:meant|known|understood) (?:by|about|of)",
    "what (?:do|can|should) (?:we|you|i|people) (?:know|say|tell)(?: me)?(?: about)?",
    f"what(?: is|s)? {_MEANING}",
    _MEANING,
    "what (?:happens|happened|happen|occurs|occurred) (?:in|to|with|during|at|after|if|when)",
    "is it true that",
    "define",
    "explain",
    "describe",
    "learn about",
    "question about",
)
_OPENING: Final = re.compile(f"(?:please )?(?:{'|'.join(_OPENINGS)}) ")
_CLOSING: Final = re.compile(
    r" (?:definition|definitions|meaning|defined|explained|mean|means|stand for|refer to|work|works|located|happen"
    r"|happens|happened|important|occur|occurs|information|info|used for|all about|about)$"
)
#: Closings that belong to a question: elsewhere the words are content ("social work").
_ASKED: Final = frozenset(
    "mean means work works located happen happens happened important occur occurs".split()
    + ["stand for", "refer to", "used for"]
)
_QUESTION: Final = frozenset("what whats how why where wheres when who whos which is are was were do does did".split())
#: Every word that a frame may take away.
FRAME_WORDS: Final = frozenset(
    """
    all anyone anybody d define defined definition definitions describe description details everything explain explained
    explanation facts find get give happen happened happens i im important info information know known learn like
    located looking m mean meaning means meant occur occurred occurs one out people please question read refer
    regarding concerning say search searching see show somebody someone something stand teach tell true understand
    understood used want we wish work works anything need should id were
    """.split()
)


class Core(NamedTuple):
    """A text as the evidence reads it.

    Attributes:
        words: all words in order, accents folded.
        places: places of the core words among them.
        keys: the keys of the core words, in order.
    """

    words: tuple[str, ...]
    places: tuple[int, ...]
    keys: tuple[str, ...]


@lru_cache(maxsize=1 << 16)
def key(word: str) -> str:
    """What counts as the same word: the stem of its base form, in American spelling."""
    base = IRREGULAR.get(word, word)
    return stem(_BRITISH.sub(_american, base) if len(base) >= 6 else base)


#: Endings that British spelling writes otherwise. What is not British ("contour", "promise") changes in both texts.
_BRITISH: Final = re.compile("(?:our|tre|(?<=[iy])s)(?=(?:s|e|es|ed|er|ers|ing|al|able|ful|ite|ation|ations)?$)")


def _american(found: re.Match[str]) -> str:
    return {"our": "or", "tre": "ter", "s": "z"}[found[0]]


def core(text: str) -> Core:
    """The core of a text; all its words where nothing would be left.

    Args:
        text: any text.
    """
    return core_of([word for token in text.split() for word in folded(token)])


@lru_cache(maxsize=1 << 16)
def folded(token: str) -> tuple[str, ...]:
    """The words of a text without accents."""
    if token.isascii():
        return words(token)
    plain = unicodedata.normalize("NFKD", token)
    # Marks are accents on Latin, Greek and Cyrillic letters only; elsewhere they are part of the script.
    kept = "".join(
        sign
        for place, sign in enumerate(plain)
        if not (unicodedata.combining(sign) and place and ord(plain[place - 1]) < 0x530 or 0x300 <= ord(sign) < 0x370)
    )
    return words(unicodedata.normalize("NFC", kept))


def core_of(every: Sequence[str]) -> Core:
    """The core of a text whose words are given.

    Args:
        every: the words in order, in the form of `folded`.
    """
    start, end = _framed(every)
    places = tuple(at for at in range(start, end) if every[at] not in FORM_WORDS) or tuple(range(len(every)))
    return Core(tuple(every), places, tuple(key(every[at]) for at in places))


def _framed(every: Sequence[str]) -> tuple[int, int]:
    """Where the core begins and ends: after the opening and before the closing of a question."""
    start, end = 0, len(every)
    if end < 2 or (every[0] not in _OPENERS and every[-1] not in _CLOSERS):
        return start, end
    text = " ".join(every) + " "
    opening = _OPENING.match(text)
    if opening is not None:
        start = text[: opening.end()].count(" ")
    closing = _CLOSING.search(text[:-1])
    if closing is not None and (closing[0].strip() not in _ASKED or every[0] in _QUESTION):
        end -= len(closing[0].split())
    left = [word for word in every[start:end] if word not in FORM_WORDS]
    return (start, end) if left else (0, len(every))


def _first_words() -> Iterator[str]:
    yield from "please can could would will tell explain show give teach some any more information info facts id".split()
    yield from "details does do i we im looking searching search find how where what whats the meaning definition".split()
    yield from "description explanation is define describe learn question".split()


_OPENERS: Final = frozenset(_first_words())
_CLOSERS: Final = frozenset(
    """
    definition definitions meaning defined explained mean means for to work works located happen happens happened
    important occur occurs information info about
    """.split()
)
