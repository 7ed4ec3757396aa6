"""The core of a query: what is left without form words, question frames and inflection.

Two texts with the same core ask with the same words: order, inflection, function words and the form of the question
differ at most. The core is wider than `truerank.text.words.bag`, which reformulation types rest on: it knows irregular
forms and leaves out the words by which people ask ("what does … mean", "tell me about …").
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from truerank.text.words import FUNCTION_WORDS, stem, words

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


def _irregular(forms: str = _FORMS) -> dict[str, str]:
    lines = (line.split() for line in forms.replace("\n", "").split("|"))
    return {form: base for base, *forms in lines for form in forms}


#: Irregular inflections and spellings by their base form.
IRREGULAR: Final = _irregular()

#: Numbers in words, and words that Britain and America spell otherwise, by no rule.
_SPELLED: Final = """
1 one|2 two|3 three|4 four|5 five|6 six|7 seven|8 eight|9 nine|10 ten|11 eleven|12 twelve|13 thirteen|14 fourteen|
15 fifteen|16 sixteen|17 seventeen|18 eighteen|19 nineteen|20 twenty|30 thirty|40 forty|50 fifty|60 sixty|70 seventy|
80 eighty|90 ninety|100 hundred|1000 thousand|1st first|2nd second|3rd third|4th fourth|5th fifth|6th sixth|
7th seventh|8th eighth|9th ninth|10th tenth|
aging ageing|airplane aeroplane|aluminum aluminium|artifact artefact|ax axe|cozy cosy|curb kerb|defense defence|
disk disc|gray grey|inquiry enquiry|judgment judgement|license licence|maneuver manoeuvre|math maths|mold mould|
mom mum|offense offence|pediatric paediatric|practice practise|pretense pretence|specialty speciality|story storey|
sulfur sulphur|vise vice|whiskey whisky|woolen woollen|yogurt yoghurt
"""
_SPELLINGS: Final = IRREGULAR | _irregular(_SPELLED)

#: Words of a definition, which the core leaves out where another word is left.
_DEFINING: Final = frozenset(
    """
    define defined defines definition definitions explain explained explanation fact facts info information meaning
    meant overview wiki wikipedia
    """.split()
)
#: Words by which people ask. The core leaves them out where two other words are left, or one other and a form word:
#: "need help with rabies" asks for rabies, but "job search" does not ask for jobs.
FRAME_WORDS: Final = _DEFINING | frozenset(
    """
    able anybody anyone anything anyways ask asking came come curious d deal describe described describes
    description detail details discuss dunno else everything exactly exist existed exists find finding found get
    gimme give gonna google got gotta happen happened happening happens happy hear heard heck help hey i id idea idk
    im important interested introduction know knowing known knows learn learning lemme let like ll located lol look
    looking m matter mean means mention nah need needed needs occur occurred occurs okay people pls plz possible
    provide question questions re read real refer referred refers regarding reliable s say search searching see seek
    seeking show somebody someone something stand stands stuff sure talk talking teach tell thank thanks thing
    things think tho true understand understanding understood use used useful ve wanna want wanted wants whatever
    wish wonder wondered wondering work working works would yeah
    """.split()
)


_ASKING: Final = frozenset(
    "what whats who whos whose when where why which how is are was were do does did can could".split()
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


def asks(word: str) -> bool:
    """Whether a word is one of `FRAME_WORDS`, or one with "s" or "es"."""
    return word in FRAME_WORDS or word.removesuffix("s") in FRAME_WORDS or word.removesuffix("es") in FRAME_WORDS


@lru_cache(maxsize=1 << 16)
def key(word: str) -> str:
    """What counts as the same word: the stem of its base form, in American spelling."""
    for _ in range(_STEPS):
        before, word = word, _SPELLINGS.get(word, word)
        word = stem(_BRITISH.sub(_american, word) if len(word) >= 6 else word)
        if word == before:
            break
    return word


#: The stem of a stem may be shorter still ("women", from "womens").
_STEPS: Final = 3
#: Endings that British spelling writes otherwise. What is not British ("contour", "promise") changes in both texts.
_BRITISH: Final = re.compile(
    "(?:our|tre|(?<=[iy])s)(?=(?:s|e|es|ed|er|ers|ing|al|able|ful|ite|ation|ations)?$)|ae|oe|ogue(?=s?$)|ll$"
)
_AMERICAN: Final = {"our": "or", "tre": "ter", "s": "z", "ae": "e", "oe": "e", "ogue": "og", "ll": "l"}


def _american(found: re.Match[str]) -> str:
    return _AMERICAN[found[0]]


def core(text: str) -> Core:
    """The core of a text; all its words where nothing would be left."""
    return core_of([word for token in tokens(text) for word in folded(token)])


#: Codes, tags and entities of the web, and a sign that stands for a letter.
_WEB: Final = re.compile(r"%[0-9a-fA-F]{2}|<[^<>]*>|&#?\w{2,8};|#\w|[^\W\d_][@$!*€£^~|=][^\W\d_]")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_HASHTAG: Final = re.compile(r"#(\w+)")
#: Labels that embedding models put before a text, alone or behind an instruction.
LABELS: Final = (
    r"(?i:(?:instruct(?:ion)?:.{1,400}?\s)?(?:search_query|search_document|query|question|passage|q):"
    r"|instruct(?:ion)?:)"
)
_LABEL: Final = re.compile(rf"\A\s*{LABELS}\s*(?=\S)", re.DOTALL)
_CAPITAL: Final = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])")
_SIGN: Final = re.compile(r"(?<![^\s])([^\W\d_]+)[@$!*€£^~|=]([^\W\d_]+)(?![^\s])")


def tokens(text: str) -> list[str]:
    """What stands between blanks: without codes and tags of the web and labels before the text, hashtags cut at their
    capital letters.

    A sign between letters stands for a letter, and becomes a digit: so the word is known to be damaged.
    """
    if ":" in text:
        text = _LABEL.sub("", text)
    if not _WEB.search(text):
        return text.split()
    plain = html.unescape(_TAG.sub(" ", unquote(text)))
    return _SIGN.sub(r"\g<1>0\2", _HASHTAG.sub(lambda tag: _CAPITAL.sub(" ", tag[1]), plain)).split()


def is_question(text: str) -> bool:
    """Whether a query is a question: it begins as one or ends with a question mark."""
    return text.endswith("?") or text.partition(" ")[0].replace("'", "").replace("’", "").lower() in _ASKING


@lru_cache(maxsize=1 << 16)
def folded(token: str) -> tuple[str, ...]:
    """The words of a text without accents."""
    if token.isascii():
        # Letters and digits alone are one word: most tokens of a log are, and need no pattern.
        return (token.lower(),) if token.isalnum() else words(token)
    plain = unicodedata.normalize("NFKD", token)
    # Accents of Latin, Greek and Cyrillic letters; the marks of other scripts are part of the script.
    kept = "".join(sign for sign in plain if not 0x300 <= ord(sign) < 0x370)
    return words(unicodedata.normalize("NFC", kept))


def core_of(every: Sequence[str]) -> Core:
    """The core of a text whose words are given."""
    content = [at for at, word in enumerate(every) if word not in FORM_WORDS]
    places = [at for at in content if not asks(every[at])]
    if len(places) < 2 and len(content) == len(every):
        places = [at for at in content if every[at] not in _DEFINING]
    places = places or content or list(range(len(every)))
    return Core(tuple(every), tuple(places), tuple(key(every[at]) for at in places))
