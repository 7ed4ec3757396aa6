"""Words, stems and bags: what two texts have in common, in which words they differ, and in which script they are."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import Stemmer

#: English words of grammar. Negations ("no", "not", "without") and "us", which in queries is a country, carry meaning
#: and are not among them.
FUNCTION_WORDS: Final = frozenset(
    """
    a about after all am an and any are as at be been being between both but by can could did do does doing
    during each for from had has have having he her here hers him his how i if in into is it its may me might
    mine more most must my of on or other our ours shall she should so some such than that the their theirs them
    then there these they this those to under until upon was we were what when where which while who whom whose
    why will with would you your yours
    """.split()
)

_COPULAS: Final = frozenset({"is", "are", "was", "were"})
# An abbreviation with dots (U.S., e.g.), or a word with apostrophes inside and the signs of C++ and C# behind.
_WORD: Final = re.compile(r"\b[^\W\d_](?:\.[^\W\d_])+\b\.?|[^\W_]+(?:['’][^\W_]+)*(?:\+\+|#(?![^\W_]))?")
_POSSESSIVE: Final = re.compile(r"['’ʼ]s$")
_local = threading.local()


class WordSpan(NamedTuple):
    """One word of a text: its form for comparison, and where it is in the text."""

    form: str
    start: int
    end: int


def spans(text: str) -> list[WordSpan]:
    """The words of a text with their places.

    A form is in lower case and NFC, without dots ("U.S." is "us"), apostrophes and possessive s. Hyphens, slashes and
    other signs separate words. A script without blanks is not cut: a run of it is one word.
    """
    shadow = text
    if not text.isascii():
        # `re` takes combining marks for separators, which would cut words of Indic and other scripts in pieces, and the
        # modifier apostrophe for a letter.
        shadow = "".join("a" if unicodedata.category(sign)[0] == "M" else sign for sign in text).replace("ʼ", "'")
    return [WordSpan(_form(text[match.start() : match.end()]), *match.span()) for match in _WORD.finditer(shadow)]


def alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many letters, or words, at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _form(written: str) -> str:
    if written.isascii() and written.isalnum():
        return written.lower()
    form = _POSSESSIVE.sub("", written if written.isascii() else unicodedata.normalize("NFC", written))
    return "".join(sign for sign in form.casefold() if sign not in "'’ʼ.")


@lru_cache(maxsize=1 << 14)
def words(text: str) -> tuple[str, ...]:
    """All words of a text in order, in the form of `spans`."""
    return tuple(span.form for span in spans(text))


@lru_cache(maxsize=1 << 14)
def content_words(text: str) -> tuple[str, ...]:
    """The words of a text without `FUNCTION_WORDS`; all of them if there are no others ("the who")."""
    every = words(text)
    return tuple(word for word in every if word not in FUNCTION_WORDS) or every


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """The stem of one word by the English Snowball stemmer (Porter, 2001)."""
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        # A stemmer keeps state, so each thread has its own.
        stemmer = _local.stemmer = Stemmer.Stemmer("english")
    return str(stemmer.stemWord(word))


def stems(text: str) -> tuple[str, ...]:
    """The stems of all words of a text, in order."""
    return tuple(stem(word) for word in words(text))


def asks_for_definition(text: str) -> bool:
    """Whether a text begins as a question for a definition: "what is …", "who was …", "what's …", "define …"."""
    first, second = (*words(text)[:2], "", "")[:2]
    if first in {"what", "who"}:
        return second in _COPULAS or bool(re.match(r"\s*\w+['’ʼ]s\b", text))
    return first in {"define", "whats"} and bool(second)


def joined_words(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Finds where several words of one text are one word of the other.

    Two neighbours may be written as one ("rain forest", "rainforests"), two to five may stand as their initials
    ("united states", "us"). Words whose stem the other text holds are left out.
    """
    left_stems, right_stems = [stem(word) for word in left], [stem(word) for word in right]
    left_known, right_known = set(left_stems), set(right_stems)
    left_alone = [at for at, form in enumerate(left_stems) if form not in right_known]
    right_alone = [at for at, form in enumerate(right_stems) if form not in left_known]
    if not left_alone or not right_alone:
        return
    runs = _Runs.of(left, left_alone)
    for one in right_alone:
        for part in runs.parts(right[one]):
            yield part, one
    runs = _Runs.of(right, right_alone)
    for one in left_alone:
        for part in runs.parts(left[one]):
            yield one, part


class _Runs(NamedTuple):
    """Where runs of words begin, by what they are written as in one word.

    Attributes:
        pairs: places of two neighbours, by the first and the stem of the second.
        initials: places of two to five neighbours, by their initials.
    """

    pairs: dict[str, list[int]]
    initials: dict[str, list[int]]

    @classmethod
    def of(cls, words: Sequence[str], alone: Sequence[int]) -> _Runs:
        """The runs whose words are all among `alone`."""
        free = set(alone)
        runs = cls({}, {})
        for start in alone:
            if start + 1 in free:
                runs.pairs.setdefault(words[start] + stem(words[start + 1]), []).append(start)
            initials = words[start][0]
            for place in range(start + 1, start + 5):
                if place not in free:
                    break
                initials += words[place][0]
                runs.initials.setdefault(initials, []).append(start)
        return runs

    def parts(self, word: str) -> Iterator[int]:
        """Places of the runs that a word joins or abbreviates, run after run."""
        joined = [(start, 2) for start in self.pairs.get(stem(word), ())]
        short = [(start, len(word)) for start in self.initials.get(word, ())]
        for start, length in sorted(joined + short, key=lambda run: run[0]):
            yield from range(start, start + length)


Status = Literal["same", "inflected", "other"]


class MarkedPiece(NamedTuple):
    """A piece of a text: a word as it was written, or what stands between words (whose status is "same")."""

    token: str
    status: Status


class Differences(NamedTuple):
    """Both texts in pieces; the tokens of a side, joined, are its text."""

    topic: tuple[MarkedPiece, ...]
    query: tuple[MarkedPiece, ...]


def mark(topic_text: str, query_text: str) -> Differences:
    """Marks each word of two texts by whether the other text holds it.

    "same": in the same form, whatever its place and letter case; "inflected": the same stem, or written as one word
    here and as two, or as initials, there; "other": not at all. Nothing is escaped: that is for whoever writes markup.
    """
    topic, query = spans(topic_text), spans(query_text)
    return Differences(tuple(_pieces(topic_text, topic, query)), tuple(_pieces(query_text, query, topic)))


def _pieces(text: str, own: Sequence[WordSpan], other: Sequence[WordSpan]) -> Iterator[MarkedPiece]:
    end = 0
    for span, status in zip(own, _statuses(own, other), strict=True):
        if span.start > end:
            yield MarkedPiece(text[end : span.start], "same")
        yield MarkedPiece(text[span.start : span.end], status)
        end = span.end
    if end < len(text):
        yield MarkedPiece(text[end:], "same")


def _statuses(own: Sequence[WordSpan], other: Sequence[WordSpan]) -> list[Status]:
    forms = {span.form for span in other}
    stems = {stem(span.form) for span in other}
    joined = {at for at, _ in joined_words([span.form for span in own], [span.form for span in other])}
    return [
        "same" if span.form in forms else "inflected" if stem(span.form) in stems or at in joined else "other"
        for at, span in enumerate(own)
    ]


#: Signs of a text by which its script is told, and letters that it takes.
_SAMPLED: Final = 600
_FEWEST_LETTERS: Final = 4
#: `bytes.translate` is many times as fast as a test of each sign.
_NO_LETTERS: Final = bytes(code for code in range(128) if not chr(code).isalnum())


@lru_cache(maxsize=1 << 14)
def _script(sign: str) -> str:
    name = unicodedata.name(sign, "").partition(" ")[0].partition("-")[0]
    return "CJK" if name in ("CJK", "HIRAGANA", "KATAKANA") else "" if name in ("FULLWIDTH", "MODIFIER") else name


def script_of(text: str) -> str:
    """The script of more than half of a text's letters ("LATIN", "CYRILLIC", "CJK" …); empty where it has few.

    Han and kana are one, since Japanese mixes them.
    """
    if text.isascii():
        return "LATIN" if letters(text[:60]) >= _FEWEST_LETTERS else ""
    counts: dict[str, int] = {}
    for sign in text[:_SAMPLED]:
        if sign.isalpha():
            counts[_script(sign)] = counts.get(_script(sign), 0) + 1
    total = sum(counts.values())
    best = max(counts, key=lambda name: counts[name], default="")
    return best if total >= _FEWEST_LETTERS and 2 * counts[best] > total else ""


def has_script(text: str, script: str, share: float = 0.0) -> bool:
    """Whether more than this share of the letters at a text's beginning are of a script: names may be in another."""
    scripts = [_script(sign) for sign in text[:_SAMPLED] if sign.isalpha()]
    return scripts.count(script) > share * len(scripts)


def letters(text: str) -> int:
    """How many letters and digits a text has."""
    if text.isascii():
        return len(text.encode().translate(None, _NO_LETTERS))
    return sum(map(str.isalnum, text))
