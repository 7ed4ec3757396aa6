"""What happens to a text on its way into training data, for the sensitivity check: made with a seed, kept nowhere."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Final, Literal

from truerank.text.passages import sentences
from truerank.text.rewordings import reword

TextChange = Literal[
    "excerpt",
    "truncated",
    "re-wrapped",
    "boilerplate added",
    "markup",
    "sentence changed",
    "OCR damage",
    "phrases exchanged",
]

#: What a plant of each kind is, as narrowly as it is made: a verdict claims no more.
CLAIMS: Final[dict[str, str]] = {
    "as it stands": "the text inside another",
    "excerpt": "30 to 70% of the words, at least 16",
    "truncated": "the first 40 to 80% of the words",
    "re-wrapped": "other ends of lines",
    "boilerplate added": "a line before or behind",
    "markup": "tags added or taken off",
    "sentence changed": "one sentence by another",
    "OCR damage": "a misread sign in one of 12 words",
    "phrases exchanged": "phrases and synonyms of a list, sentences in another order",
}

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


def changed(change: TextChange, text: str, other: str, rng: Random) -> str | None:
    """A text after one kind of change."""
    made = _CHANGES[change](text, other, rng)
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


_CHANGES: Final[Mapping[TextChange, Callable[[str, str, Random], str | None]]] = {
    "excerpt": _excerpt,
    "truncated": _truncated,
    "re-wrapped": _rewrapped,
    "boilerplate added": _boilerplate,
    "markup": _markup,
    "sentence changed": _sentence,
    "OCR damage": _ocr,
    "phrases exchanged": _phrases,
}
CHANGES: Final[tuple[TextChange, ...]] = tuple(_CHANGES)
