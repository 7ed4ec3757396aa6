"""English changes of short search queries, of six kinds and four severities.

Written by hand, without sight of the rules of the audit: word lists, frames and
severities come from how people type, not from what any detector can undo.
Severity 1 is the mildest change; severity 4 is the hardest that still deserves the
name of its kind. Each change takes a query and a seeded random generator, and gives
the changed query, or None where the change does not apply or would change nothing.
"""

# The hand that wrote this has not seen how the project is laid out.
# ruff: noqa: E501, PLR0911, PLR0912, PLR0915

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

Change = Callable[[str, random.Random], str | None]

# ---------------------------------------------------------------------------------------
# Word lists
# ---------------------------------------------------------------------------------------

ARTICLES = frozenset("a an the".split())
DETERMINERS = ARTICLES | frozenset(
    "this that these those my your his her its our their some any all each every both no another such".split()
)
PREPOSITIONS = frozenset(
    "of in on at by for from to with without about into onto over under between among through during before after"
    " against near within upon towards toward across behind beside beyond since until till per via than as like".split()
)
BE = frozenset("is are was were am be been being isn't aren't wasn't weren't".split())
AUXILIARIES = BE | frozenset(
    "do does did has have had can could will would shall should may might must don't doesn't didn't can't won't"
    " couldn't wouldn't shouldn't hasn't haven't".split()
)
WH_WORDS = frozenset("who what when where why how which whose whom what's who's where's how's when's".split())
PRONOUNS = frozenset(
    "i me we us you he him she it they them myself yourself himself herself itself themselves one someone something"
    " anyone anything everyone everything mine yours ours theirs".split()
)
OTHER_FUNCTION_WORDS = frozenset(
    "and or but nor so if then else because while though although whether not only just also too very there here now"
    " again ever still even yet again once more most own same other up down out off".split()
)
FUNCTION_WORDS = DETERMINERS | PREPOSITIONS | AUXILIARIES | WH_WORDS | PRONOUNS | OTHER_FUNCTION_WORDS
"""The words that carry grammar rather than matter."""

# Function words that turn the sense round; people drop them last.
SENSE_WORDS = frozenset(
    "not no without before after against than more most nor until off out up down under over".split()
)
# After these, a lone letter or small word is a label ("vitamin a", "world war i").
LABEL_HEADS = frozenset("vitamin hepatitis type grade plan part class group appendix war level schedule title".split())

# base, past, participle
IRREGULAR_VERBS: tuple[tuple[str, str, str], ...] = tuple(
    (row.split()[0], row.split()[1], row.split()[2])
    for row in """
    arise arose arisen|awake awoke awoken|beat beat beaten|become became become|begin began begun|bend bent bent|
    bet bet bet|bite bit bitten|bleed bled bled|blow blew blown|break broke broken|breed bred bred|bring brought brought|
    build built built|burst burst burst|buy bought bought|catch caught caught|choose chose chosen|cling clung clung|
    come came come|cost cost cost|creep crept crept|cut cut cut|deal dealt dealt|dig dug dug|draw drew drawn|
    drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed fed|feel felt felt|fight fought fought|
    find found found|flee fled fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|
    forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grind ground ground|
    grow grew grown|hang hung hung|hear heard heard|hide hid hidden|hit hit hit|hold held held|hurt hurt hurt|
    keep kept kept|kneel knelt knelt|know knew known|lead led led|leave left left|lend lent lent|let let let|
    light lit lit|lose lost lost|make made made|mean meant meant|meet met met|pay paid paid|put put put|quit quit quit|
    read read read|ride rode ridden|ring rang rung|rise rose risen|run ran run|say said said|see saw seen|
    seek sought sought|sell sold sold|send sent sent|set set set|sew sewed sewn|shake shook shaken|shine shone shone|
    shoot shot shot|show showed shown|shrink shrank shrunk|shut shut shut|sing sang sung|sink sank sunk|sit sat sat|
    sleep slept slept|slide slid slid|speak spoke spoken|spend spent spent|spin spun spun|split split split|
    spread spread spread|stand stood stood|steal stole stolen|stick stuck stuck|sting stung stung|strike struck struck|
    swear swore sworn|sweep swept swept|swell swelled swollen|swim swam swum|swing swung swung|take took taken|
    teach taught taught|tear tore torn|tell told told|think thought thought|throw threw thrown|
    understand understood understood|wake woke woken|wear wore worn|weep wept wept|win won won|write wrote written|
    overcome overcame overcome|rebuild rebuilt rebuilt|withdraw withdrew withdrawn|undergo underwent undergone
    """.replace("\n", " ").split("|")
)
# singular, plural
IRREGULAR_NOUNS: tuple[tuple[str, str], ...] = tuple(
    (pair.split(":")[0], pair.split(":")[1])
    for pair in """
    man:men woman:women child:children person:people foot:feet tooth:teeth goose:geese mouse:mice louse:lice ox:oxen
    policeman:policemen fireman:firemen fisherman:fishermen businessman:businessmen salesman:salesmen
    chairman:chairmen grandchild:grandchildren stepchild:stepchildren
    knife:knives wife:wives life:lives leaf:leaves loaf:loaves wolf:wolves shelf:shelves thief:thieves half:halves
    calf:calves scarf:scarves hoof:hooves elf:elves self:selves midwife:midwives housewife:housewives
    analysis:analyses basis:bases crisis:crises diagnosis:diagnoses thesis:theses hypothesis:hypotheses oasis:oases
    synthesis:syntheses parenthesis:parentheses neurosis:neuroses axis:axes
    phenomenon:phenomena criterion:criteria bacterium:bacteria medium:media curriculum:curricula stratum:strata
    datum:data memorandum:memoranda spectrum:spectra ovum:ova
    cactus:cacti fungus:fungi nucleus:nuclei stimulus:stimuli alumnus:alumni radius:radii bacillus:bacilli
    larva:larvae vertebra:vertebrae antenna:antennae alga:algae formula:formulae
    appendix:appendices matrix:matrices vertex:vertices index:indices
    """.split()
)

REGULAR_VERBS = frozenset(
    """
    accept achieve act add admit affect agree allow answer appear apply arrange arrest ask attack avoid bake balance
    believe belong block boil book borrow brush call cancel carry cause celebrate change charge chase chat check claim
    clean climb close collect combine compare complain complete compute concern connect contain continue control
    convert cook copy count cover create cross cry cure damage dance decide decorate define delete deliver depend
    describe design destroy detect develop die discover divide donate download dress drop dry earn edit elect employ
    end enjoy estimate evolve examine exercise expand expire explain export express fail farm fill finish fish fix
    float follow form freelance fry gain grill guess handle happen harvest hate heal help hire hunt identify import
    improve include increase infect influence inspect install invade invent invest invite iron join jump kick kill kiss
    land last laugh launch learn like link list listen live load locate lock look love lower manage mark marry match
    measure melt mention merge mix monitor move multiply murder name need offer open operate order organize own pack
    paint park pass perform photograph pick plan plant play point pour practice prepare prevent print produce program
    protect prove pull pump purchase push raise reach receive recharge recognize record recover recycle reduce refer
    refinance register release remain remember remove rent repair replace report request rescue reset resign respond
    restore retire return review roast rob rule sail save scan schedule search separate serve settle share shave ship
    shop sign ski skip smell smoke solve sound spell start stay stop store stretch study suffer supply support surround
    survive talk taste test thaw tie touch trade train transfer translate transport travel treat trim try tune turn
    type unlock update upgrade use visit vote wait walk want warm wash watch water weigh work worry wrap yell
    """.split()
)
DOUBLED = frozenset(
    "admit chat control drop plan program refer rob ship shop skip stop trim wrap begin bet cut dig forbid forget get hit"
    " let put quit reset run scan set shut sit spin split swim win".split()
)

REGULAR_NOUNS = frozenset(
    """
    account actor address adult age agent airline airport album amount animal answer apartment apple area arm army
    artery article artist attack author average award baby back bag ball band bank bar battery battle beach bean bear bed
    bedroom bell benefit bike bill bird block blog board boat body bone book border bottle boundary box boy brain branch
    brand bridge brother bug building bus business cake calendar calorie camera camp cancer candidate car card carrot
    castle cat cause cell center century ceremony chain chair champion chapter character charge chart chicken church
    circle city class clock cloud club coach coast code coin college color colour company computer concert contract
    cookie copy cost costume country county couple course court cousin cow credit crime criminal crop cup currency
    customer cycle daughter day deadline debt deer degree dentist desert diet dinosaur direction director disease
    disorder distance district doctor dog dollar door dragon dream dress drink driver drug duck duty ear earthquake edge
    effect egg election element elephant elevator emperor employee enemy engine engineer episode error essay event
    example exam exercise eye face fact factor factory family fan farm farmer father fee festival fever field film
    finger fire flag flight floor flower food force forest form fraction friend fruit function game garden gene genre gift
    girl glass goal god governor grade grape grass group guitar gun habit hair hand hat head headache heart height
    helicopter hero highway hill holiday home hormone horse hospital hotel hour house hurricane husband hygienist idea
    image infection ingredient injury insect instrument island issue jacket job joint joke joker journal judge juice
    kidney king kitchen knight lake language laptop law lawyer lawsuit leader league lens lesson letter level library
    license light limit lion list liver loan location loss lung lyric machine magazine map market meal meaning medal
    medicine meeting member mile mineral minister minute mirror mission model molecule moment monkey month moon
    mosque mother motor mountain mouth movie muscle museum myth name nation neck nerve network newspaper night number
    nurse nutrient ocean office officer oil onion opera opinion option orange orbit organ origin owner page painting pain
    pair palace parent park part partner party passport password path patient pattern penalty pension percentage phone
    photo phrase picture pig pilot place planet plant plate player poem poet poison pool port position potato pound
    power president price prince princess principle prison prize problem process product professor profit program
    project protein province purpose puzzle quality queen question quote race rate ratio reaction reason recipe record
    region religion rent report requirement resort resource restaurant result review right ring risk river road robot
    rock role roof room root route rule ruler runner sailor salary sale sample sauce school science scientist score
    screen sea season seat secret seed senator sentence server service setting shape shark shoe shop show side sign
    signal singer sister site size skill sky snake soldier solution son song soup source speaker speed spell spider
    spring stadium stage star state station statue step stock stomach stone store storm story street strike student
    style subject surgeon surgery symbol symptom system table target tariff task tax taxi teacher team temperature temple
    tenant term test theater theory ticket tide tiger time title toe tomato tool top tour tower town toy track trade
    train treatment tree trial tribe trip truck tube turtle type uncle union unit university user valley value vehicle
    vein version vessel victim video village virus vitamin volcano vote voyage wage wall war watch wave weapon website
    wedding week weight wheel wind window wine wing winner winter witness word worker world wound writer year zone
    """.split()
)
NOUN_SUFFIXES = ("tion", "sion", "ment", "ist", "ship", "logy", "ician", "ator", "graphy", "meter", "scope")
ES_AFTER_O = frozenset("potato tomato hero volcano echo torpedo veto mosquito".split())
IE_NOUNS = frozenset("movies cookies calories zombies ties pies brownies selfies rookies genies lies dies".split())
# -ing words that are things, not deeds
THINGS_IN_ING = frozenset("building wedding meeting painting setting meaning ring king spring string evening".split())
# Forms that are more often another word than the verb form
NOT_AS_VERB = (
    frozenset(
        "left saw rose fell ground wound bound felt lit shot spoke drew found lead led tear light like fan last deal"
        " own means fishing shopping mean kind set let spring".split()
    )
    | THINGS_IN_ING
)
ADJECTIVES = frozenset(
    """
    able ancient bad best better big black blue brief bright broken brown cheap clean clear cold common cool correct
    current daily dark dead deep different difficult dirty domestic dry early easy empty english extra fair famous far
    fast fat few final fine first flat foreign free french fresh full funny further good great green grey gray half happy
    hard healthy heavy high hot huge human important indian irish italian japanese large late latest least less light
    little long loud low lower lowest lucky main major many maximum mean mild minimum minor modern much natural near new
    next nice normal north northern old oldest online open orange oral organic own past perfect pink poor popular
    private public purple quick quiet rare raw real recent red rich right round safe second secret several short
    short-term sick simple single slow small smart soft solar solid south southern spanish special square strong sweet
    tall tallest thick thin third tiny top total true upper urban warm weak weekly west western wet white whole wide
    wild worst worse wrong yellow yearly young worth average longest largest biggest highest smallest german american
    greek roman chinese russian british royal super junior senior chronic silver golden gold east eastern
    """.split()
)
NO_PLURAL = frozenset(
    """
    advice air always anger basketball baseball beef blood bread butter cash cheese clothing coffee corn cotton dark
    deer education electricity equipment evidence fish flour football furniture gas gasoline gold golf gravity health
    help hockey homework honey housing information insurance internet iron jazz jewelry knowledge luggage math
    mathematics maths measles milk money moss music news never nobody often oxygen physics politics pollution pork
    poverty progress research rice rugby safety salt sand series sheep silver sleep snow soccer software species steel
    sugar tea tennis today tomorrow traffic tuna volleyball water weather wheat wood work yesterday away together
    economics athletics genetics diabetes headquarters lens plus yes less means christmas arthritis perhaps besides
    please hello thanks online vs versus best mars venus hercules sports jeans pants scissors percent exactly maybe
    """.split()
)
NAMES = frozenset(
    """
    alabama alaska america amsterdam anne arizona arkansas athens atlanta australia austin barcelona belgium berlin bill
    boston brazil bristol britain california canada charles chicago china chris colorado columbus dallas david delaware
    denver detroit dubai dublin egypt elizabeth elvis england europe facebook florida france george georgia germany
    google greece harry hawaii henry houston illinois india indiana iowa iran iraq ireland israel italy jack jackson
    james japan jesus john johnson jones jordan kansas kennedy kentucky korea lewis lincoln london louis louisiana luther
    madrid maine mars martin mary maryland massachusetts mexico miami michael michigan microsoft minnesota mississippi
    missouri montana nebraska nevada netherlands nixon ohio oklahoma oregon orleans paris paul pennsylvania peter
    phoenix portugal potter robert roman rome russia scotland seattle shakespeare smith spain sweden sydney taylor
    tennessee texas thomas tokyo toronto trump utah vegas vermont vietnam virginia wales washington west william
    williams wisconsin wyoming york zealand obama biden lee einstein newton darwin napoleon hitler caesar amazon
    africa asia euro islam netflix iphone android windows excel minecraft pokemon january february march april may june
    july august september october november december monday tuesday wednesday thursday friday saturday sunday
    """.split()
)

WORD = re.compile(r"^([^A-Za-z]*)([A-Za-z]+(?:'[a-z]+)?)([^A-Za-z]*)$")


def _words(query: str) -> list[str]:
    """Split a query at its blanks."""
    return query.split()


def _changed(query: str, words: Iterable[str]) -> str | None:
    """Join the words; None where nothing has changed."""
    result = " ".join(" ".join(words).split())
    return result if result and result != " ".join(query.split()) else None


def _core(word: str) -> str:
    """The word in small letters, without signs around it."""
    match = WORD.match(word)
    return match.group(2).lower() if match else word.lower()


def _is_function(words: Sequence[str], at: int) -> bool:
    """Tell whether the word at this place is a function word (not a label, not an abbreviation)."""
    word = words[at]
    if _core(word) not in FUNCTION_WORDS or (len(word) > 1 and word.isupper()):
        return False
    return not (at > 0 and len(word) == 1 and _core(words[at - 1]) in LABEL_HEADS)


def _content_places(words: Sequence[str]) -> list[int]:
    """Places of the words that are not function words."""
    return [at for at in range(len(words)) if not _is_function(words, at)]


# ---------------------------------------------------------------------------------------
# Order
# ---------------------------------------------------------------------------------------


def _inverted(order: Sequence[int]) -> float:
    """Share of the pairs that stand the other way round."""
    count = len(order)
    pairs = count * (count - 1) // 2
    wrong = sum(order[i] > order[j] for i in range(count) for j in range(i + 1, count))
    return wrong / pairs


def order_neighbours(query: str, rng: random.Random) -> str | None:
    """Two neighbouring words change places."""
    words = _words(query)
    places = [at for at in range(len(words) - 1) if words[at].lower() != words[at + 1].lower()]
    if not places:
        return None
    # Two words of matter rather than "of the", if there are such two.
    good = [at for at in places if not _is_function(words, at) and not _is_function(words, at + 1)]
    at = rng.choice(good or places)
    words[at], words[at + 1] = words[at + 1], words[at]
    return _changed(query, words)


def _phrases(words: Sequence[str]) -> list[list[str]]:
    """Cut into phrases: a new one starts where function words start; a long bare phrase is cut in two."""
    phrases: list[list[str]] = []
    for at, word in enumerate(words):
        starts = at == 0 or (_is_function(words, at) and not _is_function(words, at - 1))
        if starts:
            phrases.append([])
        phrases[-1].append(word)
    if len(phrases) == 1 and len(words) > 2:
        return [list(words[:-1]), [words[-1]]] if len(words) == 3 else [list(words[:2]), list(words[2:])]
    return phrases


def order_phrase(query: str, rng: random.Random) -> str | None:
    """One phrase is moved to the front or to the end, whole."""
    words = _words(query)
    if len(words) < 3:
        return None
    phrases = _phrases(words)
    if len(phrases) < 2:
        return None
    if rng.random() < 0.6:
        moved = phrases.pop(rng.randrange(1, len(phrases)))
        phrases.insert(0, moved)
    else:
        moved = phrases.pop(rng.randrange(len(phrases) - 1))
        phrases.append(moved)
    return _changed(query, (word for phrase in phrases for word in phrase))


def _shuffled(query: str, rng: random.Random, low: float, high: float) -> str | None:
    """A random order with such a share of pairs the other way round."""
    words = _words(query)
    if len(words) < 3:
        return None
    order = list(range(len(words)))
    for _ in range(400):
        rng.shuffle(order)
        if low <= _inverted(order) <= high:
            return _changed(query, (words[at] for at in order))
    return None


def order_mixed(query: str, rng: random.Random) -> str | None:
    """Words thrown about, a third to two thirds of the pairs turned round."""
    return _shuffled(query, rng, 0.33, 0.67)


def order_far(query: str, rng: random.Random) -> str | None:
    """Nearly or quite back to front."""
    changed = _shuffled(query, rng, 0.72, 1.0)
    if changed is None and len(_words(query)) > 2:
        return _changed(query, reversed(_words(query)))
    return changed


# ---------------------------------------------------------------------------------------
# Inflection
# ---------------------------------------------------------------------------------------


def _with_s(word: str) -> str:
    """Plural of a noun, third person of a verb."""
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")) and word not in ("stomach", "monarch"):
        return word + "es"
    if word in ES_AFTER_O or word in ("go", "undergo", "do"):
        return word + "es"
    return word + "s"


def _with_ed(word: str) -> str:
    """Regular past of a verb."""
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ied"
    return word + (word[-1] if word in DOUBLED else "") + "ed"


def _with_ing(word: str) -> str:
    """The -ing form of a verb."""
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "ye", "oe")):
        return word[:-1] + "ing"
    return word + (word[-1] if word in DOUBLED else "") + "ing"


def _without_s(word: str) -> str | None:
    """Guess the singular of an unknown word in -s."""
    if len(word) < 5 or not word.endswith("s") or word.endswith(("ss", "us", "is", "as", "ics", "ous")):
        return None
    if word.endswith("ies"):
        return word[:-1] if word in IE_NOUNS else word[:-3] + "y"
    if word.endswith(("sses", "uses", "xes", "shes", "tches", "rches", "nches")) and not word.endswith("auses"):
        return word[:-2]
    if word.endswith("oes") and word[:-2] in ES_AFTER_O:
        return word[:-2]
    if word.endswith(("ves", "os")):
        return None
    return word[:-1]


def _form_table() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """For each known form, the other forms as a noun and as a verb."""
    nouns: dict[str, set[str]] = {}
    verbs: dict[str, set[str]] = {}
    pairs = [*IRREGULAR_NOUNS, *((noun, _with_s(noun)) for noun in REGULAR_NOUNS if noun not in NO_PLURAL)]
    for one, many in pairs:
        nouns.setdefault(one, set()).add(many)
        nouns.setdefault(many, set()).add(one)
    rows = [(base, past, part) for base, past, part in IRREGULAR_VERBS]
    rows += [(base, _with_ed(base), _with_ed(base)) for base in REGULAR_VERBS]
    for base, past, part in rows:
        forms = {base, _with_s(base), past, part, _with_ing(base)}
        for form in forms:
            if form not in NOT_AS_VERB and form not in FUNCTION_WORDS:
                verbs.setdefault(form, set()).update(forms - {form})
    return (
        {word: tuple(sorted(forms)) for word, forms in nouns.items()},
        {word: tuple(sorted(forms)) for word, forms in verbs.items()},
    )


NOUN_FORMS, VERB_FORMS = _form_table()
PARTICIPLES = frozenset(part for base, past, part in IRREGULAR_VERBS if part not in (base, past))
AUXILIARY_FORMS = {"is": "was", "are": "were", "was": "is", "were": "are", "has": "had", "does": "did", "did": "does"}
ADJECTIVE_ENDINGS = (
    "al", "ic", "ous", "ive", "able", "ible", "ful", "less", "ary", "ly", "est", "ish", "ese", "ian", "ness", "ism",
    "ing", "ed", "ern", "th", "ware", "ant", "ent", "y's", "'s", "ity", "ward", "wards",
)  # fmt: skip


def _other_forms(words: Sequence[str], at: int) -> tuple[int, list[str]]:
    """Rank (0 sure, 1 clumsy in its place, 2 guessed) and other forms of the word at this place."""
    match = WORD.match(words[at])
    if match is None or _is_function(words, at):
        return 3, []
    word = match.group(2)
    if word != word.lower() or word in NAMES or (word in NO_PLURAL and word not in VERB_FORMS):
        return 3, []
    before = _core(words[at - 1]) if at else ""
    after = _core(words[at + 1]) if at + 1 < len(words) else ""
    noun, verb = NOUN_FORMS.get(word, ()), VERB_FORMS.get(word, ())
    as_noun = before in DETERMINERS or before in PREPOSITIONS - {"to"} or before == ""
    if word in ADJECTIVES and not (noun and (after == "" or after in FUNCTION_WORDS)):
        return 3, []
    if noun and (as_noun or not verb or not (before in WH_WORDS or before in AUXILIARIES | PRONOUNS | {"to"})):
        return (1 if before in ("a", "an", "one", "each", "every") else 0), list(noun)
    if verb:
        if before in WH_WORDS or before == "that":
            forms = [form for form in verb if not form.endswith("ing") and form not in PARTICIPLES]
            return 0, forms or list(verb)
        bound = before == "to" or before in AUXILIARIES or before in PRONOUNS
        return (1 if bound else 0), list(verb)
    if word.endswith(NOUN_SUFFIXES):
        return 0, [_with_s(word)]
    if len(word) < 4 or word.endswith(ADJECTIVE_ENDINGS):
        return 3, []
    single = _without_s(word)
    if single is not None:
        return (0 if single in NOUN_FORMS else 2), [single]
    if word[-1] in "aiousz" or word in ADJECTIVES:
        return 3, []
    return 2, [_with_s(word)]


def _inflect(query: str, rng: random.Random, wanted: int | None) -> str | None:
    """Inflect so many words, or (None) every word that can be."""
    words = _words(query)
    ranked: list[tuple[int, float, int, list[str]]] = []
    for at in range(len(words)):
        rank, forms = _other_forms(words, at)
        if forms:
            ranked.append((rank, rng.random(), at, forms))
    ranked.sort(key=lambda row: row[:3])
    if wanted is None:
        if len(ranked) < 2 or 2 * len(ranked) <= len(_content_places(words)):
            return None
        chosen = ranked
    else:
        if len(ranked) < wanted:
            return None
        chosen = ranked[:wanted]
    result = list(words)
    for _, _, at, forms in chosen:
        match = WORD.match(words[at])
        if match is not None:
            result[at] = match.group(1) + rng.choice(forms) + match.group(3)
    if wanted is None:
        for at, word in enumerate(words):
            if word in AUXILIARY_FORMS and rng.random() < 0.5:
                result[at] = AUXILIARY_FORMS[word]
    return _changed(query, result)


def inflection_one(query: str, rng: random.Random) -> str | None:
    """One word in another form."""
    return _inflect(query, rng, 1)


def inflection_two(query: str, rng: random.Random) -> str | None:
    """Two words in another form."""
    return _inflect(query, rng, 2)


def inflection_three(query: str, rng: random.Random) -> str | None:
    """Three words in another form."""
    return _inflect(query, rng, 3)


def inflection_most(query: str, rng: random.Random) -> str | None:
    """Most of the words in another form, helping verbs among them."""
    return _inflect(query, rng, None)


# ---------------------------------------------------------------------------------------
# Stop words added
# ---------------------------------------------------------------------------------------

TOPIC_FRONTS = tuple(
    line.split()
    for line in """
    the|about|for|on|about the|on the|for the|all the|all about|and the|about all the|all about the|all of the|
    for all of the|so what about the|just about all of the|what about all of the|and what about all the
    """.replace("\n", " ").split("|")
)
BARE_FRONTS = tuple(line.split() for line in "about|all about|on|what about|so what about|and so what about".split("|"))
ASK_FRONTS = tuple(
    line.split()
    for line in "so|and|but|so then|and so|but then|and then|so just|but so then|and so then just".split("|")
)
TOPIC_ENDS = tuple(
    line.split()
    for line in "now|here|for me|for us|and more|and so on|as of now|for you and me|and all of that|or more of the same".split(
        "|"
    )
)
ASK_ENDS = tuple(
    line.split() for line in "then|again|now|here|and why|and how|then and now|and why so|if at all".split("|")
)
YES_NO_ENDS = tuple(line.split() for line in "then|now|at all|or not|or what|or is it not|too or not".split("|"))


def _insertions(words: Sequence[str], bold: bool) -> list[tuple[int, list[list[str]]]]:
    """Places inside the query where function words fit, with the words that fit there."""
    found: list[tuple[int, list[list[str]]]] = []
    asks = _core(words[0]) in WH_WORDS
    for at in range(1, len(words)):
        before, word = _core(words[at - 1]), _core(words[at])
        plain = not _is_function(words, at) and word.isalpha() and word not in NAMES and words[at].islower()
        manner = word.endswith("ing") and word not in THINGS_IN_ING
        if (
            before in PREPOSITIONS - {"to", "as", "like", "than"}
            and _is_function(words, at - 1)
            and plain
            and not manner
        ):
            fits = [["the"], ["the"], ["their"], ["your"], ["our"], ["all", "the"], ["any", "of", "the"]]
            found.append((at, [*fits, ["all", "of", "the"]] if bold else fits))
        elif (
            word in ("in", "on", "at", "near", "from") and not _is_function(words, at - 1) and before not in VERB_FORMS
        ):
            found.append((at, [["over"], ["both"], ["only"], ["even"]] if word == "at" else [["that", "is"], ["only"]]))
        elif at == 1 and before == "who" and not _is_function(words, at) and word in VERB_FORMS:
            found.append((at, [["was", "it", "that"], ["else"], ["all"]]))
        elif bold and asks and before in BE and plain and word not in VERB_FORMS:
            found.append((at, [["the"], ["this"], ["all", "the"]]))
        elif bold and plain and not _is_function(words, at - 1) and at - 1 not in (0,):
            both_things = before in NOUN_FORMS and word in NOUN_FORMS
            both_kinds = before.endswith(("al", "ic")) and word.endswith(("ed", "al", "ic"))
            if both_things or both_kinds:
                found.append(
                    (at, [["and"], ["or"], ["and", "the"], ["and", "also", "the"]] if both_things else [["and"]])
                )
    return found


def _add(query: str, rng: random.Random, least: int, most: int) -> str | None:
    """Add so many function words."""
    words = _words(query)
    if not words or not _content_places(words):
        return None
    first = _core(words[0])
    asks, yes_no = first in WH_WORDS, first in AUXILIARIES
    fronts: Sequence[list[str]] = TOPIC_FRONTS
    if asks or yes_no:
        fronts = ASK_FRONTS
    elif first in FUNCTION_WORDS or first in NAMES or not first.isalpha() or first.endswith("ing"):
        fronts = BARE_FRONTS if first not in PREPOSITIONS else ASK_FRONTS
    elif first in VERB_FORMS and first not in NOUN_FORMS and not first.endswith("ed"):
        fronts = [["to"], ["how", "to"], ["so", "to"], ["how", "can", "i"], ["so", "how", "do", "i"]]
    ends = YES_NO_ENDS if yes_no else ASK_ENDS if asks else TOPIC_ENDS
    slots: list[tuple[int, list[list[str]]]] = [
        (0, [list(front) for front in fronts]),
        *_insertions(words, most >= 5),
        (len(words), [list(end) for end in ends]),
    ]
    if words[-1].endswith("?"):
        slots.pop()
    for _ in range(200):
        # Prefer the places inside and in front; the end only now and then, if few words are wanted.
        count = rng.randint(1, len(slots))
        chosen = rng.sample(slots, count)
        if least < 3 and len(slots) > 1 and any(at == len(words) for at, _ in chosen) and rng.random() < 0.6:
            continue
        picked = {at: rng.choice(options) for at, options in chosen}
        if least <= sum(map(len, picked.values())) <= most:
            result: list[str] = []
            for at in range(len(words) + 1):
                result += picked.get(at, [])
                result += words[at : at + 1]
            return _changed(query, result)
    return None


def added_one(query: str, rng: random.Random) -> str | None:
    """One function word more."""
    return _add(query, rng, 1, 1)


def added_two(query: str, rng: random.Random) -> str | None:
    """Two function words more."""
    return _add(query, rng, 2, 2)


def added_some(query: str, rng: random.Random) -> str | None:
    """Three or four function words more."""
    return _add(query, rng, 3, 4)


def added_many(query: str, rng: random.Random) -> str | None:
    """Five to nine function words more."""
    return _add(query, rng, 5, 9)


# ---------------------------------------------------------------------------------------
# Stop words removed
# ---------------------------------------------------------------------------------------


def _droppable(words: Sequence[str]) -> list[list[int]]:
    """Places of function words: articles, then prepositions and helpers, then question words, then the rest."""
    groups: list[list[int]] = [[], [], [], []]
    for at in range(len(words)):
        if not _is_function(words, at):
            continue
        core = _core(words[at])
        if core in SENSE_WORDS:
            groups[3].append(at)
        elif core in DETERMINERS:
            groups[0].append(at)
        elif core in WH_WORDS:
            groups[2].append(at)
        else:
            groups[1].append(at)
    return groups


def _without(query: str, words: Sequence[str], gone: Iterable[int]) -> str | None:
    """Leave out the words at these places, unless no word of matter stays."""
    left_out = set(gone)
    if not left_out or not _content_places(words):
        return None
    kept = [word for at, word in enumerate(words) if at not in left_out]
    if words[-1].endswith("?") and kept and not kept[-1].endswith("?"):
        kept[-1] += "?"
    return _changed(query, kept)


def removed_one(query: str, rng: random.Random) -> str | None:
    """One function word left out, an article first."""
    words = _words(query)
    groups = _droppable(words)
    for group in groups[:3]:
        if group:
            return _without(query, words, [rng.choice(group)])
    return None


def removed_two(query: str, rng: random.Random) -> str | None:
    """Two function words left out."""
    words = _words(query)
    groups = _droppable(words)
    places = [at for group in groups[:2] for at in rng.sample(group, len(group))] or []
    if len(places) < 2:
        places += groups[2]
    return _without(query, words, places[:2]) if len(places) >= 2 else None


def removed_most(query: str, rng: random.Random) -> str | None:
    """Three or more left out: all but the question word and the words that turn the sense."""
    words = _words(query)
    groups = _droppable(words)
    places = groups[0] + groups[1]
    if len(places) < 3:
        places += rng.sample(groups[2], min(len(groups[2]), 3 - len(places)))
    return _without(query, words, places) if len(places) >= 3 else None


def removed_all(query: str, rng: random.Random) -> str | None:
    """Every function word left out."""
    words = _words(query)
    return _without(query, words, [at for group in _droppable(words) for at in group])


# ---------------------------------------------------------------------------------------
# Question form
# ---------------------------------------------------------------------------------------

# {q}: the query; {t}: the query with "the" where it wants one; {be}: is or are.
TOPIC_FRAMES: tuple[tuple[str, ...], ...] = (
    (
        "what {be} {t}", "what {be} {t}?", "what do we know about {t}", "what can you tell me about {t}",
        "can you tell me about {t}?", "what should i know about {t}", "where can i find {t}",
        "where can i read about {t}", "could you tell me about {t}", "what is known about {t}?",
    ),
    (
        "do you know what {t} {be}", "can somebody explain {t} to me", "how can i find out about {t}",
        "i would like to know what {t} {be}", "what exactly {be} {t}", "could someone tell me what {t} {be}?",
        "is there anything i should know about {t}", "does anyone know about {t}",
        "where would i look to learn about {t}", "what is there to know about {t}?",
    ),
    (
        "any idea what {t} {be}", "so what {be} {t} then", "what's the story on {t}", "anybody know anything about {t}",
        "just wondering what {t} {be}", "how would i go about finding {t}", "trying to figure out what {t} {be}",
        "got any info on {t}?", "not sure what {t} {be}, can someone help", "who can i ask about {t}",
    ),
    (
        "wanna know about {t}", "whatever happened to {t}", "what's up with {t}", "what the heck {be} {t}",
        "gimme the lowdown on {t}", "what's the scoop on {t}", "u know anything about {t}??",
        "lemme know about {t} pls", "how come nobody ever tells me about {t}", "dunno what {t} {be}, help me out here",
    ),
)  # fmt: skip
CLAUSE_FRAMES: tuple[tuple[str, ...], ...] = (
    (
        "can you tell me {q}", "could you tell me {q}?", "do you know {q}", "please tell me {q}", "tell me {q}",
        "i want to know {q}", "does anyone know {q}", "i need to know {q}", "can you explain {q}", "who knows {q}?",
    ),
    (
        "i would like to know {q}", "could someone please tell me {q}", "how can i find out {q}",
        "is there anyone who knows {q}", "i am trying to find out {q}", "where does it say {q}",
        "would you happen to know {q}", "i have a question about {q}", "i was asked {q}", "where can i look up {q}",
    ),
    (
        "any idea {q}", "just wondering {q}", "anybody know {q}?", "was wondering if anyone could tell me {q}",
        "trying to figure out {q}", "so {q} then", "can't remember {q}", "help me find out {q}",
        "ok so {q} again?", "not sure {q}, can someone help",
    ),
    (
        "wanna know {q}", "gotta know {q}", "dunno {q}, help me out here", "lemme know {q} pls", "u know {q}??",
        "hey does anybody out there know {q} lol", "no clue {q}, anyone?", "beats me {q}, you got any idea",
        "been racking my brain over {q}", "for the love of god {q}",
    ),
)  # fmt: skip
YES_NO_FRAMES: tuple[tuple[str, ...], ...] = (
    ("{q} or not", "please tell me, {q}", "question: {q}", "yes or no: {q}", "tell me {q}?"),
    ("i want to know, {q}", "does anyone know, {q}", "can someone tell me, {q}", "i have to ask, {q}", "i wonder, {q}"),
    ("quick question, {q}", "any idea, {q}", "just wondering, {q}", "ok so {q} or what", "{q}, anybody know?"),
    ("wanna know, {q}", "dunno, {q}??", "hey guys {q} or nah", "seriously though, {q}", "so like {q} or am i crazy"),
)
DEED_FRAMES: tuple[tuple[str, ...], ...] = (
    ("how do i {q}", "how can i {q}", "how do you {q}?", "what is the way to {q}", "how would you {q}"),
    (
        "can someone show me how to {q}", "what is the best way to {q}", "is there an easy way to {q}?",
        "what do i have to do to {q}", "where can i learn how to {q}",
    ),
    (
        "any idea how to {q}", "how does one go about it to {q}", "trying to figure out how to {q}",
        "what's the trick to {q}", "can't work out how to {q}, any tips?",
    ),
    (
        "wanna {q}, how's that done", "how the heck do you {q}", "gotta {q}, help me out here",
        "lemme know how to {q} pls", "what do u even do to {q}",
    ),
)  # fmt: skip
DEEDS = frozenset(
    """
    add bake book boil build buy calculate cancel change check clean convert cook copy create cure cut delete deposit
    dispose download draw dress dry edit find fix forgive freeze fry get grill grow install invest join knit learn make
    measure open pack paint pay play prepare prevent print quit recover remove repair replace reset restore roast save
    sell send sew solve speak spell start stop swim teach tie translate treat uninstall unlock update upgrade use wash
    watch wear write
    """.split()
)


def _is_plural(words: Sequence[str]) -> bool:
    """Guess whether the head of a noun phrase is plural."""
    head = ""
    for at, word in enumerate(words):
        if at and _is_function(words, at) and _core(word) not in DETERMINERS:
            break
        head = _core(word)
    if head in NAMES or head in NO_PLURAL:
        return False
    if any(head == many for _, many in IRREGULAR_NOUNS):
        return True
    return len(head) > 3 and head.endswith("s") and not head.endswith(("ss", "us", "is", "ics", "'s"))


def _with_article(words: Sequence[str]) -> str:
    """Put "the" before "average salary of ..." and "largest lake", as people do in a full question."""
    first = _core(words[0])
    later = [_core(word) for word in words[1:]]
    closed = first in FUNCTION_WORDS or first in NAMES or not first.isalpha() or words[0][:1].isupper()
    apart = any(word.endswith("'s") for word in [first, *later[:2]])
    if closed or apart or (first.endswith("ing") and first not in NOUN_FORMS):
        return " ".join(words)
    best = (first.endswith("est") and first in ADJECTIVES) or first in ("best", "worst", "first", "last", "average")
    of_phrase = "of" in later and not any(word in PREPOSITIONS for word in later[: later.index("of")])
    return " ".join(["the", *words] if best or of_phrase else words)


MEASURES = {
    "old": "age", "tall": "height", "high": "height", "big": "size", "large": "size", "deep": "depth", "wide": "width",
    "heavy": "weight", "fast": "speed", "far": "distance", "long": "length", "hot": "temperature", "rich": "net worth",
}  # fmt: skip


def _drop_light(words: Sequence[str], rest: str) -> str:
    """Leave out articles and helping verbs (severity of keywords 3 and 4)."""
    del words
    parts = rest.split()
    light = ARTICLES | AUXILIARIES | {"i", "you", "we", "your", "my"}
    return " ".join(part for part in parts if _core(part) not in light) or rest


def _as_keywords(query: str, rng: random.Random, severity: int) -> str | None:
    """Turn a question into keywords."""
    words = _words(query.rstrip("? "))
    cores = [_core(word) for word in words]
    if len(words) < 3:
        return None
    short = {"what's": "what", "who's": "who", "where's": "where", "how's": "how", "when's": "when"}
    if cores[0] in short:
        words, cores = [short[cores[0]], "is", *words[1:]], [short[cores[0]], "is", *cores[1:]]
    first, second = cores[0], cores[1]
    label, take = "", 1
    if first == "how" and second in ("many", "much"):
        priced = second == "much" and len(cores) > 2 and cores[2] in AUXILIARIES
        label, take = ("number of" if second == "many" else "price of" if cores[2] in BE else "amount of"), 2
        if priced:
            label, take = ("" if cores[-1] in ("cost", "weigh", "earn", "make", "pay") else label), 3
    elif first == "how" and second in MEASURES and len(cores) > 3:
        label, take = f"{MEASURES[second]} of", (3 if cores[2] in BE else 2)
        if cores[2] not in BE and second in ("long", "far", "high"):
            label = {"long": "time", "far": "distance", "high": "height"}[second]
    elif first == "how" and second == "to":
        label, take = rng.choice(("steps to", "instructions to", "way to", "tips to")), 2
    elif first == "how" and second in AUXILIARIES:
        label, take = "way", 2
        if len(cores) > 3 and cores[2] in ("i", "you", "we", "one"):
            label, take = "way to", 3
    elif first == "why":
        label, take = "reason", (2 if second in AUXILIARIES else 1)
    elif first == "when":
        label, take = "date", (2 if second in AUXILIARIES else 1)
    elif first == "where":
        label, take = ("location of" if second in BE else "place"), (2 if second in AUXILIARIES else 1)
        if len(cores) > 3 and cores[2] in ("i", "you", "we", "one"):
            label, take = "place to", 3
        elif cores[-1] in VERB_FORMS or cores[-1] in ("born", "located", "found"):
            label = "place"
    elif first in ("who", "whom") or first == "whose":
        label, take = ("" if second in BE else "person who"), (2 if second in BE else 1)
    elif first in ("what", "which"):
        label, take = "", (2 if second in AUXILIARIES else 1)
        if second in ("do", "does", "did") and cores[-1] == "mean":
            words, cores, label = words[:-1], cores[:-1], "meaning of"
    elif first in AUXILIARIES:
        label, take = "", 1
    else:
        return None
    while take < len(words) - 1 and (
        cores[take] in ARTICLES or (cores[take] in BE | {"there", "i", "you"} and label in ("", "date", "reason"))
    ):
        take += 1
    rest = " ".join(words[take:])
    if not rest or all(_core(word) in FUNCTION_WORDS for word in rest.split()):
        return None
    if severity == 1:
        return rest if not label or label.startswith(("person", "way", "steps", "tips", "instr")) else f"{label} {rest}"
    if severity == 2:
        return f"{label} {rest}" if label else _drop_light(words, rest)
    bare = _drop_light(words, rest)
    tail = label.removesuffix(" of").removesuffix(" to").removesuffix(" who")
    if severity == 3:
        return f"{bare} {tail}" if tail else f"{bare} info"
    telegram = " ".join(
        part for part in bare.split() if _core(part) not in FUNCTION_WORDS or _core(part) in SENSE_WORDS
    )
    return f"{telegram or bare} {first}" if first in WH_WORDS and "'" not in first else f"{telegram or bare} yes no"


def _question(query: str, rng: random.Random, severity: int) -> str | None:
    """Ask the query as a question, or the question in another frame or as keywords."""
    words = _words(query)
    if not _content_places(words):
        return None
    level = severity - 1
    first = _core(words[0])
    asked = " ".join(words).rstrip("?. ")
    if first in WH_WORDS or ((first in AUXILIARIES and first not in ("will", "may", "might", "can")) or (len(words) > 3
                             and first in ("will", "can", "may"))):  # fmt: skip
        keywords = _as_keywords(query, rng, severity)
        if keywords is not None and rng.random() < 0.5:
            return _changed(query, [keywords])
        if first == "how" and len(words) > 2 and _core(words[1]) == "to":
            frame = rng.choice(DEED_FRAMES[level])
            return _changed(query, [frame.format(q=" ".join(asked.split()[2:]))])
        frames = CLAUSE_FRAMES if first in WH_WORDS else YES_NO_FRAMES
        return _changed(query, [rng.choice(frames[level]).format(q=asked)])
    if first in DEEDS and len(words) > 1 and _core(words[1]) not in PREPOSITIONS - {"to", "for"}:
        return _changed(query, [rng.choice(DEED_FRAMES[level]).format(q=asked)])
    inner = [at for at in range(1, len(words)) if _core(words[at]) in WH_WORDS and words[at].islower()]
    if inner:
        # "dark knight who played joker": the question stands behind its subject.
        at = inner[0]
        if at == len(words) - 1 or _core(words[at - 1]) in PREPOSITIONS:
            return None
        turned = " ".join([*asked.split()[at:], *asked.split()[:at]])
        return _changed(query, [rng.choice(CLAUSE_FRAMES[level]).format(q=turned)])
    if first in PREPOSITIONS | PRONOUNS:
        return None
    parts = asked.split()
    frame = rng.choice(TOPIC_FRAMES[level])
    be = "are" if _is_plural(parts) else "is"
    return _changed(query, [frame.format(q=asked, t=_with_article(parts), be=be)])


def question_usual(query: str, rng: random.Random) -> str | None:
    """A usual question, or the question without its first words."""
    return _question(query, rng, 1)


def question_polite(query: str, rng: random.Random) -> str | None:
    """A longer question, or keywords with a noun for the question word."""
    return _question(query, rng, 2)


def question_loose(query: str, rng: random.Random) -> str | None:
    """A loose, spoken question, or bare keywords in another order."""
    return _question(query, rng, 3)


def question_colloquial(query: str, rng: random.Random) -> str | None:
    """A colloquial question, or a telegram."""
    return _question(query, rng, 4)


# ---------------------------------------------------------------------------------------
# Typing error
# ---------------------------------------------------------------------------------------

NEAR_KEYS: Mapping[str, str] = {
    "q": "wa", "w": "qeas", "e": "wrsd", "r": "etdf", "t": "ryfg", "y": "tugh", "u": "yihj", "i": "uojk", "o": "ipkl",
    "p": "ol", "a": "qwsz", "s": "awedzx", "d": "serfxc", "f": "drtgcv", "g": "ftyhvb", "h": "gyujbn", "j": "huiknm",
    "k": "jiolm", "l": "kop", "z": "asx", "x": "zsdc", "c": "xdfv", "v": "cfgb", "b": "vghn", "n": "bhjm", "m": "njk",
}  # fmt: skip
SLIPS = ("near", "near", "near", "drop", "drop", "swap", "swap", "double", "joined", "cut")


def _slip(text: str, start: int, end: int, rng: random.Random) -> tuple[int, int, str] | None:
    """One wrong key in or right after the word at start..end: the span replaced, and what is there instead."""
    slip = rng.choice(SLIPS)
    length = end - start
    if slip == "joined":
        return (end, end + 1, "") if end < len(text) else None
    at = rng.randrange(start, end)
    key = text[at]
    if not key.isalpha() or not key.isascii():
        return None
    if slip == "near":
        other = rng.choice(NEAR_KEYS[key.lower()])
        return at, at + 1, other.upper() if key.isupper() else other
    if slip == "double":
        return (at, at + 1, key + key.lower()) if length > 1 else None
    if slip == "drop":
        return (at, at + 1, "") if length > 1 else None
    if slip == "swap":
        if at + 1 >= end or text[at + 1] == key or not text[at + 1].isalpha():
            return None
        return at, at + 2, text[at + 1] + key
    if length < 4 or at in (start, end - 1):
        return None
    return at, at + 1, " " + key


def _mistype(query: str, rng: random.Random, wrong: int) -> str | None:
    """So many wrong keys, each at a place of its own; every word is as likely, long or short."""
    text = " ".join(query.split())
    if sum(char.isalpha() for char in text) < 3 * wrong + 1:
        return None
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    slips: list[tuple[int, int, str]] = []
    hits: dict[int, int] = {}
    for _ in range(400):
        if len(slips) == wrong:
            break
        number = rng.randrange(len(spans))
        start, end = spans[number]
        # A word carries one slip for each four of its letters, at least one.
        if hits.get(number, 0) >= max(1, (end - start) // 4):
            continue
        slip = _slip(text, start, end, rng)
        if slip is None or any(slip[0] < past + 2 and since < slip[1] + 2 for since, past, _ in slips):
            continue
        slips.append(slip)
        hits[number] = hits.get(number, 0) + 1
    if len(slips) < wrong:
        return None
    for since, past, put in sorted(slips, reverse=True):
        text = text[:since] + put + text[past:]
    return _changed(query, [text])


def typing_one(query: str, rng: random.Random) -> str | None:
    """One wrong key."""
    return _mistype(query, rng, 1)


def typing_two(query: str, rng: random.Random) -> str | None:
    """Two wrong keys."""
    return _mistype(query, rng, 2)


def typing_three(query: str, rng: random.Random) -> str | None:
    """Three wrong keys."""
    return _mistype(query, rng, 3)


def typing_four(query: str, rng: random.Random) -> str | None:
    """Four wrong keys."""
    return _mistype(query, rng, 4)


KINDS: Mapping[str, tuple[Change, Change, Change, Change]] = MappingProxyType(
    {
        "order": (order_neighbours, order_phrase, order_mixed, order_far),
        "inflection": (inflection_one, inflection_two, inflection_three, inflection_most),
        "stop words added": (added_one, added_two, added_some, added_many),
        "stop words removed": (removed_one, removed_two, removed_most, removed_all),
        "question form": (question_usual, question_polite, question_loose, question_colloquial),
        "typing error": (typing_one, typing_two, typing_three, typing_four),
    }
)
