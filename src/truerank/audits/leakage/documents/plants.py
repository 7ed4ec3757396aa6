"""What this audit can see: texts of the test collection are planted, changed as on their way into training data, and
those that the rule would have found are counted."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

import polars as pl

from truerank.audits.leakage.results import KindFound, OtherTopics
from truerank.audits.leakage.sensitivity import counted
from truerank.overlaps import EVIDENCE_KINDS
from truerank.overlaps.kept_texts import ComparedForm
from truerank.records import TopicText
from truerank.text.passages import sentences
from truerank.text.rewordings import SEEN_KINDS, reword

#: Words that are a sentence where a text has no signs.
_SENTENCE: Final = 14
#: The shortest text, in words, of which a part is an excerpt, and the shortest excerpt.
_FEWEST_WORDS: Final = 24
_SHORTEST_PART: Final = 16
_MARKUP: Final = re.compile(r"<[^<>]{1,200}>|&\w{2,8};|[*_`#]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|\[\[|\]\]")
_BEFORE: Final = (
    "Skip to main content. Home | News | About us | Contact.",
    "This page was last updated on 4 March. Share this article. Print.",
    "We use cookies to give you the best experience on our website. Accept all cookies.",
    "Document 3 of 17. Back to the list of results. Title and abstract only.",
)
_AFTER: Final = (
    "Related articles you may like. Sign up for our newsletter. All rights reserved.",
    "Terms of use | Privacy policy | Accessibility. Copyright the publisher and its licensors.",
    "Was this page helpful? Yes. No. Report an error on this page.",
    "The views expressed here are those of the authors. Reproduction for non-commercial use is permitted.",
)
#: What a scanner reads in place of some letters.
_MISREAD: Final = (
    ("rn", "m"), ("m", "rn"), ("li", "h"), ("cl", "d"), ("vv", "w"), ("e", "c"), ("l", "1"), ("o", "0"), ("s", "5"),
    ("i", "j"), ("h", "b"), ("u", "n"), ("t", "f"), ("fi", "ﬁ"), ("a", "o"), ("g", "q"),
)  # fmt: skip
#: Words that a scanner damages: one in so many.
_DAMAGED: Final = 12
#: Ways of saying the same, in both directions.
_PHRASES: Final = tuple(
    (left.strip(), right.strip())
    for left, right in (
        line.split("=")
        for line in """
        in order to=to; due to=because of; a number of=several; as well as=and; such as=like; is able to=can;
        in addition=moreover; however=but; therefore=so; for example=for instance; with respect to=regarding;
        is described=is presented; are described=are presented; is discussed=is examined; are given=are provided;
        it is shown that=we show that; is shown=is demonstrated; are shown=are demonstrated; results=findings;
        method=technique; methods=techniques; problem=question; problems=questions; large=big; many=numerous;
        use of=application of; used=employed; using=by means of; important=significant; obtain=get; obtained=derived;
        about=approximately; also=too; because=since; paper=article; proposed=suggested; main=principal; new=novel;
        show=demonstrate; shows=demonstrates; help=assist; need=require; often=frequently; people=persons;
        only=merely; very=highly; different=distinct; possible=feasible; small=little; found=observed; various=diverse
        """.replace("\n", " ").split(";")
    )
)  # fmt: skip


def changed(change: str, text: str, other: str, rng: Random) -> str | None:
    make, _ = _CHANGES[change]
    made = make(text, other, rng)
    return None if made is None or made == text else made


def _parts(text: str) -> list[str]:
    """The sentences; runs of words where there are none."""
    found = [text[span.start : span.end] for span in sentences(text)]
    if len(found) > 1:
        return found
    every = text.split()
    return [" ".join(every[at : at + _SENTENCE]) for at in range(0, len(every), _SENTENCE)]


def _excerpt(text: str, other: str, rng: Random) -> str | None:
    every = text.split()
    if len(every) < _FEWEST_WORDS:
        return None
    size = max(_SHORTEST_PART, round(len(every) * rng.uniform(0.3, 0.7)))
    start = rng.randrange(1, len(every) - size + 1)
    return " ".join(every[start : start + size])


def _truncated(text: str, other: str, rng: Random) -> str | None:
    every = text.split()
    if len(every) < _FEWEST_WORDS:
        return None
    return " ".join(every[: max(_SHORTEST_PART, round(len(every) * rng.uniform(0.4, 0.8)))])


def _rewrapped(text: str, other: str, rng: Random) -> str | None:
    width, lines = rng.randrange(24, 70), [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return rng.choice(("\n", "\r\n", " \n  ")).join(lines) if len(lines) > 1 else text.replace(" ", "\n")


def _boilerplate(text: str, other: str, rng: Random) -> str | None:
    before, after = rng.choice(_BEFORE), rng.choice(_AFTER)
    return rng.choice((f"{before}\n{text}\n{after}", f"{before} {text}", f"{text}\n\n{after}"))


def _markup(text: str, other: str, rng: Random) -> str | None:
    """Without its markup; with some where it has none: either side may be the one that has it."""
    plain = html.unescape(_MARKUP.sub("", text))
    if plain != text:
        return plain
    every = html.escape(text).split()
    for at in rng.sample(range(len(every)), max(1, len(every) // 10)):
        every[at] = rng.choice(("<b>{}</b>", "<a href='#n'>{}</a>", "**{}**", "<i>{}</i>")).format(every[at])
    return f"<p>{' '.join(every)}</p>"


def _sentence(text: str, other: str, rng: Random) -> str | None:
    parts, foreign = _parts(text), _parts(other)
    if len(parts) < 3 or not foreign:
        return None
    parts[rng.randrange(len(parts))] = rng.choice(foreign)
    return " ".join(parts)


def _ocr(text: str, other: str, rng: Random) -> str | None:
    every = text.split(" ")
    places = [at for at, word in enumerate(every) if any(right in word for right, _ in _MISREAD)]
    if not places:
        return None
    for at in rng.sample(places, min(len(places), max(1, len(every) // _DAMAGED))):
        right, wrong = rng.choice([pair for pair in _MISREAD if pair[0] in every[at]])
        every[at] = every[at].replace(right, wrong, 1)
    return " ".join(every)


def _phrases(text: str, other: str, rng: Random) -> str | None:
    """Phrases and words by others, sentences in another order, the first and last words of a sentence swapped."""
    made = f" {' '.join(text.split())} "
    for left, right in rng.sample(_PHRASES, len(_PHRASES)):
        if f" {left} " in made:
            made = made.replace(f" {left} ", f" {right} ")
        elif f" {right} " in made:
            made = made.replace(f" {right} ", f" {left} ")
    parts = _parts(made.strip())
    rng.shuffle(parts)
    turned = [_turned(part, rng) for part in parts]
    return " ".join(reword("synonym", part, rng) or part for part in turned)


def _turned(part: str, rng: Random) -> str:
    every = part.split()
    if len(every) < 6:
        return part
    cut = rng.randrange(2, len(every) - 2)
    return " ".join(every[cut:] + every[:cut])


#: What makes each change, and what it is, as narrowly as it is made: a verdict claims no more.
_CHANGES: Final[Mapping[str, tuple[Callable[[str, str, Random], str | None], str]]] = {
    "excerpt": (_excerpt, "30 to 70% of the words, at least 16"),
    "truncated": (_truncated, "the first 40 to 80% of the words"),
    "re-wrapped": (_rewrapped, "other ends of lines"),
    "boilerplate added": (_boilerplate, "a line before or behind"),
    "markup": (_markup, "tags added or taken off"),
    "sentence changed": (_sentence, "one sentence by another"),
    "OCR damage": (_ocr, "a misread sign in one of 12 words"),
    "phrases exchanged": (_phrases, "phrases and synonyms of a list, sentences in another order"),
}
CHANGES: Final = tuple(_CHANGES)
_AS_IT_STANDS: Final = "as it stands"
CLAIMS: Final = {_AS_IT_STANDS: "the text inside another", **{name: claim for name, (_, claim) in _CHANGES.items()}}
_IN_DOCUMENT: Final = (_AS_IT_STANDS, "re-wrapped", "boilerplate added", "markup", "OCR damage")
_DOCUMENT: Final = ("excerpt", "truncated", "re-wrapped", "boilerplate added", "markup", "sentence changed")
#: The changes of which CLEAN asks that at least 95% are found, by kind of leak.
REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "query-document": _IN_DOCUMENT[:3],
    **dict.fromkeys(("pair", "positive-relevant", "negative-relevant", "document-corpus"), _DOCUMENT),
}


class DocumentSensitivity(NamedTuple):
    """The sensitivity check: what was found by kind of leak, and how often "documents" are taken for others."""

    changes: dict[str, list[KindFound]]
    others: dict[str, OtherTopics]


@dataclass(frozen=True)
class PlantMaterial:
    """The texts that plants are made of: all of topics (a place is an id), some documents, some relevant ones with
    their topics.
    """

    texts: Sequence[TopicText]
    documents: Mapping[str, str]
    relevant: Mapping[str, str]
    topics: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class DocumentSight:
    """With what the audit looks.

    `worded` names the topic texts, by place, whose words are those of some queries; `queries` and `documents` compare
    texts by place with the kept texts of the test collection. Queries below `fewest_words` are not looked for inside
    documents.
    """

    worded: Callable[[Sequence[str]], list[set[str]]]
    queries: Callable[[Iterable[tuple[str, str]]], pl.DataFrame]
    documents: Callable[[Iterable[tuple[str, str]]], pl.DataFrame] | None
    fewest_words: int
    form: ComparedForm


class _Plant(NamedTuple):
    """A changed text, and the ids of the test texts of which it is a copy; no change for the text itself."""

    kind: str
    change: str
    text: str
    own: frozenset[str]


#: The evidence that would have found a plant by its own test texts, and whether another test text was named.
_Seen = tuple[frozenset[str], bool]


def check(material: PlantMaterial, sight: DocumentSight, *, sample: int) -> DocumentSensitivity:
    """Plants changed texts and counts those that the audit would have found."""
    hosted = list(_query_plants(material, sample, sight.fewest_words))
    rows = {"query-document": _rows("query-document", hosted, _seen(hosted, sight.queries, sight.form))}
    others = {}
    if sight.documents is not None:
        copies, halves = list(_document_plants(material)), list(_pair_queries(material))
        seen = _seen(copies, sight.documents, sight.form)
        rows |= {kind: _rows(kind, copies, seen) for kind in ("positive-relevant", "document-corpus")}
        rows["negative-relevant"] = rows["positive-relevant"]
        answers = [by for plant, (by, _) in zip(copies, seen, strict=True) if plant.kind == "positive-relevant"]
        asked = [
            bool(own & half.own) for half, own in zip(halves, sight.worded([one.text for one in halves]), strict=True)
        ]
        whole = [(answer if query else frozenset[str](), False) for answer, query in zip(answers, asked, strict=True)]
        rows["pair"] = _rows("pair", halves, whole)
        others["documents"] = _others("document-corpus", copies, seen)
    return DocumentSensitivity(rows, others)


def _query_plants(material: PlantMaterial, sample: int, fewest: int) -> Iterator[_Plant]:
    own: defaultdict[str, set[str]] = defaultdict(set)
    for number, text in enumerate(material.texts):
        own[text.topic_id].add(str(number))
    long = [text for text in material.texts if len(text.text.split()) >= fewest]
    hosts = list(material.documents.values()) or [text.text for text in material.texts]
    for change in _IN_DOCUMENT:
        for number, text in enumerate(Random(f"0 {change}").sample(long, min(sample, len(long)))):
            rng = Random(f"0 {change} {number}")
            inside = _hosted(text.text, rng.choice(hosts), rng)
            planted = inside if change == _AS_IT_STANDS else changed(change, inside, "", rng)
            if planted is not None:
                yield _Plant("query-document", change, planted, frozenset(own[text.topic_id]))


def _hosted(query: str, host: str, rng: Random) -> str:
    """A document with the query among its words."""
    every = host.split()
    at = rng.randrange(len(every) + 1)
    return " ".join([*every[:at], query, *every[at:]])


def _document_plants(material: PlantMaterial) -> Iterator[_Plant]:
    for kind, texts in (("positive-relevant", material.relevant), ("document-corpus", material.documents)):
        names = list(texts)
        for doc_id in names if kind == "document-corpus" else ():
            yield _Plant(kind, "", texts[doc_id], frozenset((doc_id,)))
        for change in CHANGES:
            for number, doc_id in enumerate(names):
                rng = Random(f"0 {kind} {change} {doc_id}")
                made = changed(change, texts[doc_id], texts[names[number - 1]], rng)
                if made is not None:
                    yield _Plant(kind, change, made, frozenset((doc_id,)))


def _pair_queries(material: PlantMaterial) -> Iterator[_Plant]:
    """For each planted relevant document, one of its queries in other words."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(material.texts):
        places[text.topic_id].append(place)
    for plant in _document_plants(material):
        if plant.kind == "positive-relevant":
            (doc_id,) = plant.own
            own = places[min(material.topics[doc_id])]
            rng = Random(f"0 pair {plant.change} {doc_id}")
            made = _reworded(material.texts[own[0]].text, rng) if own else ""
            yield _Plant("pair", plant.change, made, frozenset(map(str, own)))


def _reworded(text: str, rng: Random) -> str:
    """A text in other words, by the first way that it allows."""
    ways = (reword(kind, text, rng) for kind in rng.sample(SEEN_KINDS, len(SEEN_KINDS)))
    return next(filter(None, ways), text)


def _seen(
    plants: Sequence[_Plant], compare: Callable[[Iterable[tuple[str, str]]], pl.DataFrame], form: ComparedForm
) -> list[_Seen]:
    """What would have found each plant."""
    by: list[set[str]] = [set() for _ in plants]
    others = [False for _ in plants]
    frame = compare((str(place), form(plant.text)) for place, plant in enumerate(plants))
    for test_id, training_id, evidence in frame.select("test_id", "training_id", "evidence").iter_rows():
        place = int(training_id)
        if test_id in plants[place].own:
            by[place].update(evidence.split("+"))
        else:
            others[place] = True
    return [(frozenset(names), other) for names, other in zip(by, others, strict=True)]


def _rows(kind: str, plants: Sequence[_Plant], seen: Sequence[_Seen]) -> list[KindFound]:
    """What was found of each change of one kind of leak, in the order in which they were planted."""
    changes: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for plant, (by, _) in zip(plants, seen, strict=True):
        if plant.kind == kind and plant.change:
            changes[plant.change].append(by)
    return [counted("texts", change, found, EVIDENCE_KINDS) for change, found in changes.items()]


def _others(kind: str, plants: Sequence[_Plant], seen: Sequence[_Seen]) -> OtherTopics:
    """How often a text of the test collection, as it is, would be taken for another one."""
    own = [other for plant, (_, other) in zip(plants, seen, strict=True) if plant.kind == kind and not plant.change]
    return OtherTopics(texts=len(own), proposed=sum(own), share=round(sum(own) / max(1, len(own)), 6), by={})
