"""Evidence beside the encoder: the same content words, a topic inside a longer query, nearly the same letters.

*Words*: the query has the topic text's core (what is left without form words, question frames and inflection): order,
inflection, function words and the form of the question differ at most. One content word is enough where it is the whole
core of both texts ("deafness", "what is deafness"): that is a weak sign of a leak, and rare, because nothing else may
are in the query. Words by which people ask ("used" in "what is carvedilol used for") are compared, too, where both
texts have them. Letters that stand alone are an abbreviation where the topic texts have it ("u s").

*Inside*: the whole topic text stands in one piece of a longer query, where its core has three words, or where it is a
question at the end of a query that asks nothing before it, and has two: an instruction may stand around it.

*Letters*: one change makes the cores the same: a letter more, less, other or swapped with its neighbour in one word
(Damerau, 1964), two words written as one, or one written as two; or one such letter in each of two words. Digits must
agree, but one inside a word may stand for a letter. The shorter the text, the longer a word must be before one letter
may differ in it. Long words may be spelled by their sound, and all words of a text written as one.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby, product
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


ASKING: Final = frozenset(
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
    return core_of(words_or_signs(text))


def words_or_signs(text: str) -> list[str]:
    """The words of a text without accents; where it has none ("?"), its signs."""
    written = tokens(text)
    return [word for token in written for word in folded(token)] or written


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


def without_form(every: Sequence[str]) -> tuple[str, ...]:
    """The words without form words, in order."""
    return tuple([word for word in every if word not in FORM_WORDS])


def is_question(text: str) -> bool:
    """Whether a query is a question: it begins as one or ends with a question mark."""
    return text.endswith("?") or text.partition(" ")[0].replace("'", "").replace("’", "").lower() in ASKING


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


def is_looked_for_inside(every: Sequence[str]) -> bool:
    """Whether the words of a topic text are enough for it to be looked for anywhere in longer queries."""
    return len(set(core_of(every).keys)) >= _FEWEST_INSIDE + ASKING.issuperset(every[:1])


#: What a probe says of a pair.
WORDS: Final = 1
LETTERS: Final = 2
INSIDE: Final = 3
SHINGLES: Final = 4
#: The names of what proposes pairs, in the order in which the column `evidence` joins them with "+".
EVIDENCE: Final = ("encoder", "words", "letters", "inside", "shingles")

#: Different core words of a topic text that may stand in a longer query, and of a question at its end. Of 135,931
#: queries of five logs, 8 hold a topic text of robust04 with three, 2 one of nfcorpus; with two, 42 and 138 do.
_FEWEST_INSIDE: Final = 3
_ASKED_INSIDE: Final = 2
_REMEMBERED: Final = 1 << 18
#: Texts that hold a word, from which on it is one; damage that is seen again and again is rarer than the word itself.
_KNOWN: Final = 3
_RARER: Final = 10
#: Keys of a text up to which looking for others in their place costs nothing.
_SHORT: Final = 64
_LONGEST_ABBREVIATION: Final = 5
#: By number of core words of the topic text: the fewest letters of a core word in which one may differ, and of a word
#: that is not of the core. Longer texts are as those of four.
_FEWEST_LETTERS: Final = ((4, 3), (4, 3), (3, 2), (3, 2), (2, 1))


class _Topic(NamedTuple):
    """A topic text: all its words, those that its core could do without, and how many the core has."""

    words: frozenset[str]
    spare: frozenset[str]
    size: int


class _Changed(NamedTuple):
    """A query of which some words are taken for others: its different words and keys, the sum of the keys, how often it
    has each, and the topic texts that have the same."""

    query: Core
    words: frozenset[str]
    bag: frozenset[str]
    sum: int
    counts: Counter[str]
    same: Sequence[int]


class WordingProbe:
    """Names the queries that have a topic text's words, or nearly its letters.

    Args:
        texts: the topic texts; a place in this list is a topic text's number.
        held: how many texts of the log hold a word. A word of the log is not damage of one that is about as frequent.
        inside: whether queries are looked for that hold a whole topic text.
    """

    def __init__(self, texts: Sequence[str], held: Mapping[str, int] | None = None, *, inside: bool = False) -> None:
        self._held = {word: count for word, count in (held or {}).items() if count >= _KNOWN}
        cores = [core(text) for text in texts]
        self._topics = [_topic(found) for found in cores]
        bags: defaultdict[frozenset[str], list[int]] = defaultdict(list)
        for number, found in enumerate(cores):
            if found.keys:
                bags[frozenset(found.keys)].append(number)
        for number, found in enumerate(cores):
            asked = content_keys(found)
            if asked != frozenset(found.keys):
                bags[asked].append(number)
        self._bags = dict(bags)
        self._sums = set(map(_sum, bags))
        self._vocabulary = frozenset(name for bag in bags for name in bag)
        self._written = frozenset(word for topic in self._topics for word in topic.words)
        self._joined = _joined(cores)
        self._whole: defaultdict[str, list[int]] = defaultdict(list)
        for number, found in enumerate(cores):
            if whole := as_one(found.words):
                self._whole[whole].append(number)
        self._whole.default_factory = None
        short = (word for word in self._written if len(word) <= LONGEST_WORD)
        parts = {part for word in short for at in range(1, len(word)) for part in _cut(word, at)}
        self._parts = parts.union(*(word for word in self._written if len(word) <= _LONGEST_ABBREVIATION))
        self._by_rest: defaultdict[str, list[str]] = defaultdict(list)
        self._by_sound: defaultdict[str, list[str]] = defaultdict(list)
        for word in sorted(self._written):
            for rest in letter_rests(word):
                self._by_rest[rest].append(word)
            if heard := sound(word):
                self._by_sound[heard].append(word)
        self._by_rest.default_factory = self._by_sound.default_factory = None
        #: By the rarest word of each topic text that may stand in a longer query: its number, its words, those that
        #: are no form words, and the place among these.
        self._inside: defaultdict[str, list[tuple[int, tuple[str, ...], tuple[str, ...], int]]] = defaultdict(list)
        for number, found in enumerate(cores if inside else ()):
            if is_looked_for_inside(found.words) or (
                ASKING.issuperset(found.words[:1]) and len(set(found.keys)) >= _ASKED_INSIDE
            ):
                own = without_form(found.words) or found.words
                rarest = min(own, key=lambda word: ((held or {}).get(word, 0), -len(word)))
                self._inside[rarest].append((number, found.words, own, own.index(rarest)))
        self._inside.default_factory = None
        self._tokens: dict[str, bool] = {}
        #: Tokens that no text with evidence has.
        self._foreign: set[str] = set()
        self._nearest: dict[str, tuple[str, ...]] = {}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        # In another process, texts have other hashes.
        self.__dict__ |= state
        self._sums = set(map(_sum, self._bags))

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """Triples of (place in `texts`, number of the topic text, `WORDS`, `LETTERS` or `INSIDE`)."""
        found: list[tuple[int, int, int]] = []
        for place, text in enumerate(texts):
            written, named = tokens(text), dict[int, int]()
            every = [*chain.from_iterable(map(folded, written))]
            if self._foreign.isdisjoint(written) and self._all_possible(written):
                named = self._matches(core_of(self._spelled(every or written)))
            if not self._inside.keys().isdisjoint(every):
                named = dict.fromkeys(self._held_whole(every), INSIDE) | named
            found += ((place, number, what) for number, what in sorted(named.items()))
        return found

    def _held_whole(self, every: Sequence[str]) -> Iterator[int]:
        """The topic texts that stand in a query in one piece; words of grammar may differ where they ask nothing."""
        content = without_form(every)
        for place, word in enumerate(content):
            for number, topic, own, offset in self._inside.get(word, ()):
                begin = place - offset
                if 0 <= begin <= len(content) - len(own) and content[begin : begin + len(own)] == own:
                    asks_it = topic[0] in ASKING
                    large = self._topics[number].size >= _FEWEST_INSIDE + asks_it
                    alone = tuple(every[-len(topic) :]) == topic and ASKING.isdisjoint(every[: -len(topic)])
                    whole = alone or (large and f" {' '.join(topic)} " in f" {' '.join(every)} ")
                    if whole if asks_it else large:
                        yield number

    def _all_possible(self, written: list[str]) -> bool:
        """Whether no token rules the text out; long ones first, which are rare and no topic text has them."""
        for token in sorted(written, key=len, reverse=True):
            if not self._may_be(token):
                if len(self._foreign) >= _REMEMBERED:
                    self._foreign.clear()
                self._foreign.add(token)
                return False
        return True

    def _spelled(self, every: list[str]) -> list[str]:
        """The words; letters that stand alone are one where a topic text has what they spell."""
        if sum(len(word) == 1 for word in every) < 2:
            return every
        found: list[str] = []
        for alone, run in groupby(every, key=lambda word: len(word) == 1):
            letters = list(run)
            whole = "".join(letters)
            found += [whole] if alone and len(letters) > 1 and whole in self._written else letters
        return found

    def _may_be(self, token: str) -> bool:
        """Whether a text with this token can be evidence; remembered, because words come back."""
        possible = self._tokens.get(token)
        if possible is None:
            if len(self._tokens) >= _REMEMBERED:
                self._tokens.clear()
            possible = self._tokens[token] = all(map(self._possible, folded(token)))
        return possible

    def _possible(self, word: str) -> bool:
        """Whether a text with this word can be evidence for any topic text."""
        return (
            # A letter may be one of a word that is spelled out.
            len(word) == 1
            or word in FORM_WORDS
            or asks(word)
            or key(word) in self._vocabulary
            or word in self._parts
            or word in self._joined
            or word in self._whole
            or bool(self._near(word))
        )

    def _near(self, word: str) -> tuple[str, ...]:
        """The words of topic texts from which this one is one letter apart."""
        near = self._nearest.get(word)
        if near is None:
            if len(self._nearest) >= _REMEMBERED:
                self._nearest.clear()
            rests = letter_rests(word)
            # Nearly all words share no rest with a topic text's, and this is soon known.
            apart = self._by_rest.keys().isdisjoint(rests)
            others = set() if apart else {other for rest in rests for other in self._by_rest.get(rest, ())}
            close = {other for other in others if one_letter_apart(word, other)}
            close.update(other for other in self._by_sound.get(sound(word), ()) if other != word)
            near = self._nearest[word] = tuple(sorted(close))
        return near

    def _matches(self, query: Core) -> dict[int, int]:
        bag = frozenset(query.keys)
        same = self._bags.get(bag, ())
        found = dict.fromkeys((*same, *self._bags.get(content_keys(query), ())), WORDS)
        unknown = bag - self._vocabulary
        if len(unknown) <= 2:
            changed = _Changed(
                query, frozenset(query.words), bag, _sum(bag) if len(bag) > _SHORT else 0, Counter(query.keys), same
            )
            for number in self._repaired(changed, unknown):
                found.setdefault(number, LETTERS)
        for number in self._whole.get("".join(query.words), ()):
            found.setdefault(number, LETTERS)
        return found

    def _having(self, changed: _Changed, gone: frozenset[str], new: frozenset[str]) -> Sequence[int]:
        """Topic texts whose keys are those of a query without some, and with some new ones.

        A long text has many words that might be others: its keys are put together only where there is such a topic.
        """
        if len(changed.bag) > _SHORT:
            lost, more = gone - new, new - changed.bag
            if not lost and not more:
                return changed.same
            if changed.sum - _sum(lost) + _sum(more) not in self._sums:
                return ()
        return self._bags.get((changed.bag - gone) | new, ())

    def _repaired(self, changed: _Changed, unknown: frozenset[str]) -> Iterator[int]:
        """Topic texts whose core this one has after one change."""
        query = changed.query
        if len(unknown) <= 1:
            for place, name in zip(query.places, query.keys, strict=True):
                if unknown <= {name}:
                    yield from self._other_word(changed, query.words[place], name)
        if len(unknown) == 2:
            yield from self._two_words(changed, unknown)
        if not unknown:
            inside = set(query.places)
            for place, word in enumerate(query.words):
                if place not in inside:
                    yield from self._lost_word(changed, word)
        yield from self._written_apart(changed, unknown)

    def _other_word(self, changed: _Changed, word: str, name: str) -> Iterator[int]:
        """A core word stands for another one, or for two."""
        near, joined = self._near(word), self._joined.get(word, ())
        if not near and not joined:
            return
        near = tuple(other for other in near if not self._is_another(word, other))
        gone = frozenset((name,) if changed.counts[name] == 1 else ())
        for other in near:
            for number in self._having(changed, gone, frozenset()):
                topic = self._topics[number]
                if other in topic.spare and word not in topic.words and _long_enough(other, topic, 1):
                    yield number
            for number in self._having(changed, gone, frozenset((key(other),))):
                topic = self._topics[number]
                if other in topic.words and word not in topic.words and _long_enough(other, topic, 0):
                    yield number
        for names in joined:
            yield from self._having(changed, gone, names)

    def _is_another(self, word: str, other: str) -> bool:
        """Whether the log knows a word, so that it stands for no other one."""
        return _RARER * self._held.get(word, 0) > self._held.get(other, 0)

    def _two_words(self, changed: _Changed, unknown: frozenset[str]) -> Iterator[int]:
        """Two core words stand for others, each with one other letter."""
        query = changed.query
        words = dict(zip(query.keys, (query.words[place] for place in query.places), strict=True))
        one, other = (self._near(words[name]) for name in sorted(unknown))
        for pair in product(one, other):
            # A function word has errors, too, and its key is none of the core's.
            for inside in product((True, False), repeat=2):
                keys = frozenset(key(word) for word, kept in zip(pair, inside, strict=True) if kept)
                for number in self._having(changed, unknown, keys):
                    topic = self._topics[number]
                    if (changed.bag != unknown or min(map(len, pair)) >= LETTERS_HEARD) and all(
                        word in (topic.words if kept else topic.spare) and _long_enough(word, topic, int(not kept))
                        for word, kept in zip(pair, inside, strict=True)
                    ):
                        yield number

    def _lost_word(self, changed: _Changed, word: str) -> Iterator[int]:
        """A function word of the query is a core word of the topic text with another letter."""
        for other in self._near(word):
            for number in self._having(changed, frozenset(), frozenset((key(other),))):
                topic = self._topics[number]
                if (
                    other in topic.words
                    and other not in changed.words
                    and word not in topic.words
                    and _long_enough(other, topic, 0)
                ):
                    yield number

    def _written_apart(self, changed: _Changed, unknown: frozenset[str]) -> Iterator[int]:
        """Two neighbours are one word of the topic text."""
        query = changed.query
        names = dict(zip(query.places, query.keys, strict=True))
        for place, pair in enumerate(zip(query.words, query.words[1:], strict=False)):
            whole = "".join(pair)
            if whole in self._written and unknown <= {*map(key, pair)}:
                lost = [names[at] for at in (place, place + 1) if at in names]
                gone = frozenset(name for name in lost if lost.count(name) == changed.counts[name])
                for number in self._having(changed, gone, frozenset((key(whole),))):
                    if whole in self._topics[number].words:
                        yield number


def one_letter_apart(left: str, right: str) -> bool:
    """Whether one letter more, less, other or swapped with its neighbour makes one word the other.

    Source: Damerau, A technique for computer detection and correction of spelling errors, 1964.
    """
    if left == right or abs(len(left) - len(right)) > 1:
        return False
    if _digits(left) != _digits(right):
        return _digit_for_letter(left, right) or _digit_for_letter(right, left)
    if len(left) > len(right):
        left, right = right, left
    start = next((at for at, sign in enumerate(left) if sign != right[at]), len(left))
    if len(left) < len(right):
        return left[start:] == right[start + 1 :]
    swapped = left[start : start + 2] == right[start : start + 2][::-1] and left[start + 2 :] == right[start + 2 :]
    return left[start + 1 :] == right[start + 1 :] or swapped


#: Letters of the longest word; what is longer is data, which nobody misspells and which is compared as a whole.
LONGEST_WORD: Final = 64
#: Letters of a word at whose end a digit may stand for a letter.
_FEWEST_BEFORE: Final = 5


def _digit_for_letter(damaged: str, word: str) -> bool:
    """Whether a word with one digit is another one whose letter it replaces.

    At the end of a short word, or in place of the s of a plural, it is a number.
    """
    if len(damaged) != len(word) or not word.isalpha() or sum(map(str.isdigit, damaged)) != 1:
        return False
    at = next(place for place, sign in enumerate(damaged) if sign.isdigit())
    last = at == len(word) - 1 and (len(word) < _FEWEST_BEFORE or word.endswith("s"))
    return not last and damaged[:at] == word[:at] and damaged[at + 1 :] == word[at + 1 :]


#: What sounds alike in English: each pattern with what stands for it; what is still a vowel then has no say.
_SOUNDS: Final = tuple(
    (re.compile(pattern), heard)
    for pattern, heard in (
        ("^(?:kn|gn|pn)", "n"), ("^wr", "r"), ("^ps", "s"), ("^wh", "w"), ("ph|gh(?=$)", "f"), ("gh", ""),
        ("sch|tch|ch|sh|[ts]i(?=o)|ci(?=[ao])", "S"), ("th", "T"), ("c(?=[eiy])|z", "s"), ("ck|[cq]", "k"), ("x", "ks"),
        ("dg(?=e)|g(?=[eiy])", "j"), ("(?<=.)[aeiouyhw]", ""), ("^[aeiou]", "a"), (r"(.)\1+", r"\1"),
    )
)  # fmt: skip
_ENDING: Final = re.compile("(?:ings?|ed|es|e|s)$")
#: Sounds of a word that is long enough to be told by them, and its letters.
_FEWEST_SOUNDS: Final = 4
LETTERS_HEARD: Final = 6


@lru_cache(maxsize=1 << 16)
def sound(word: str) -> str:
    """The consonants of a long English word as they sound, without an ending; empty for others."""
    if not LETTERS_HEARD <= len(word) <= LONGEST_WORD or not (word.isascii() and word.isalpha()):
        return ""
    heard = _ENDING.sub("", word)
    for pattern, sign in _SOUNDS:
        heard = pattern.sub(sign, heard)
    return heard if len(heard) >= _FEWEST_SOUNDS else ""


#: Letters of a text that is long enough to be known when it is written as one word.
_WHOLE: Final = 8


def as_one(words: Sequence[str]) -> str:
    """All words of a text written as one; empty for one word, and for a text that is too short to be known by it."""
    whole = "".join(words) if len(words) > 1 else ""
    return whole if len(whole) >= _WHOLE else ""


def _digits(word: str) -> str:
    return "" if word.isalpha() else "".join(filter(str.isdigit, word))


def letter_rests(word: str) -> set[str]:
    """The word, and what is left of it without one letter: words one letter apart share one of these.

    A word that is too long to be misspelled has none but itself.
    """
    places = range(len(word) if len(word) <= LONGEST_WORD else 0)
    return {word, *(word[:at] + word[at + 1 :] for at in places)}


def _cut(word: str, at: int) -> tuple[str, str]:
    return word[:at], word[at:]


def _topic(found: Core) -> _Topic:
    inside = Counter(found.keys)
    places = set(found.places)
    spare = {word for place, word in enumerate(found.words) if place not in places}
    spare |= {found.words[place] for place, name in zip(found.places, found.keys, strict=True) if inside[name] > 1}
    return _Topic(frozenset(found.words), frozenset(spare), len(inside))


def _joined(cores: Sequence[Core]) -> Mapping[str, tuple[frozenset[str], ...]]:
    """Two neighbours of a topic text written as one, and the keys of those of them that are of the core."""
    found: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
    for one in cores:
        keys = dict(zip(one.places, one.keys, strict=True))
        for place, pair in enumerate(zip(one.words, one.words[1:], strict=False)):
            found["".join(pair)].add(frozenset(keys[at] for at in (place, place + 1) if at in keys))
    return {word: tuple(names if len(names) == 1 else sorted(names, key=sorted)) for word, names in found.items()}


def content_keys(found: Core) -> frozenset[str]:
    """The keys of all words but form words: the core and the words by which people ask."""
    inside = dict(zip(found.places, found.keys, strict=True))
    return frozenset(
        inside.get(place) or key(word)
        for place, word in enumerate(found.words)
        if place in inside or word not in FORM_WORDS
    )


def _sum(names: Iterable[str]) -> int:
    """A number for different names, whatever their order; two sets of them seldom have the same."""
    return sum(map(hash, names))


def _long_enough(word: str, topic: _Topic, part: int) -> bool:
    return len(word) >= _FEWEST_LETTERS[min(topic.size, 4)][part]
