"""Analysers as values: how a text becomes the terms of an index; tokens, stop words, stems."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl
import Stemmer

from truerank.errors import InputError, needed_for
from truerank.sources.lines import numbered_lines

#: The 33 words that Lucene's English analysis, and so Anserini's, leaves out.
_LUCENE: Final = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
    to was will with
"""

#: English words of grammar, drawn up for this project class by class. It stands in for the longer lists of Terrier
#: (733 words) and Indri (418), which are not part of it; give `--stopwords FILE` to use those.
_GRAMMAR: Final = """
    a an the this that these those each every either neither both all any some such same other another

    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves one ones oneself who whom whose which what whoever whatever
    whichever someone somebody something anyone anybody anything everyone everybody everything noone nobody nothing none

    be am is are was were been being have has had having do does did doing done can could may might must shall should
    will would ought cannot

    about above across after against along among amongst around as at before behind below beneath beside besides between
    beyond by despite down during except for from in inside into like near of off on onto out outside over per since
    than through throughout till to toward towards under underneath until unto up upon versus via with within without

    and or nor but so yet if unless although though because while whereas whether once

    how when where why however wherever whenever therefore thus hence moreover furthermore nevertheless otherwise
    meanwhile instead thereby therein thereof whereby wherein whereof hereby herein

    no not never only just even also too very quite rather almost already always often sometimes ever again further
    then there here now still else indeed perhaps maybe mostly much many more most less least few fewer several enough
    own etc ie eg

    don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn s t re ve ll d m
"""

#: The lists that have names.
LISTS: Final[dict[str, frozenset[str]]] = {
    "none": frozenset(),
    "lucene": frozenset(_LUCENE.split()),
    "grammar": frozenset(_GRAMMAR.split()),
}


def read_stopwords(path: str | Path) -> frozenset[str]:
    """Reads a list of stopwords: one a line, lower-cased; what follows `#` or `|` is a comment."""
    words: set[str] = set()
    for line in numbered_lines(Path(path)):
        cells = line.text.partition("#")[0].partition("|")[0].split()
        if len(cells) > 1:
            raise InputError(
                f"{len(cells)} words in a line of stopwords", "write one a line", where=path, line=line.number
            )
        words.update(cell.lower() for cell in cells)
    if not words:
        raise InputError("no stopwords in it", "give a list of words, one a line, or 'none'", where=path)
    return frozenset(words)


Tokeniser = Callable[[str], list[str]]

# Unicode's word boundaries (UAX 29) as far as Lucene's standard tokeniser follows them: runs of letters, digits and
# underscores; an apostrophe, dot or colon joins letters, an apostrophe, dot, comma or semicolon digits.
_STANDARD: Final = re.compile(
    r"(?=_*[^\W_])\w+(?:(?<=[^\W\d_])['.:·’․‘﹒＇．](?=[^\W\d_])\w+|(?<=\d)['.,;’․‘﹒＇．，；٫٬](?=\d)\w+)*"
)
_ALPHANUMERIC: Final = re.compile(r"[^\W_]+")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
#: Scripts that are written without blanks, of which each sign is a word: Han and Hiragana.
_SINGLE: Final = re.compile("[\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_LONGEST: Final = 255
#: What Terrier's English tokeniser drops.
_TERRIER_LONGEST: Final = 20
_TERRIER_DIGITS: Final = 4
_SAME_SIGNS: Final = re.compile(r"(.)\1{3}")


def _shadow(text: str) -> str:
    """The text with a letter for every combining mark, which `re` would take for a separator."""
    return "".join("a" if unicodedata.category(sign)[0] == "M" else sign for sign in text)


def _standard(text: str) -> list[str]:
    if text.isascii():
        found = _STANDARD.findall(text)
        return found if len(text) <= _LONGEST or max(map(len, found), default=0) <= _LONGEST else _chopped(found)
    words: list[str] = []
    for match in _STANDARD.finditer(_shadow(text)):
        word = text[match.start() : match.end()]
        words += [word] if word.isascii() else _signs(word)
    return _chopped(words)


def _signs(word: str) -> list[str]:
    """A word with the signs of scripts without blanks standing alone."""
    return [part for part in re.split(f"({_SINGLE.pattern})", word) if part] if _SINGLE.search(word) else [word]


def _chopped(words: list[str]) -> list[str]:
    """Words in pieces of at most 255 signs."""
    return [word[at : at + _LONGEST] for word in words for at in range(0, len(word), _LONGEST)]


def _alphanumeric(text: str) -> list[str]:
    if text.isascii():
        return _ALPHANUMERIC.findall(text)
    return [text[match.start() : match.end()] for match in _ALPHANUMERIC.finditer(_shadow(text))]


def _terrier(text: str) -> list[str]:
    return [
        word
        for word in _alphanumeric(text.lower())
        if len(word) <= _TERRIER_LONGEST
        and (word.isalpha() or sum(map(str.isdigit, word)) <= _TERRIER_DIGITS)
        and not _SAME_SIGNS.search(word)
    ]


def _letters(text: str) -> list[str]:
    if text.isascii():
        return _LETTERS.findall(text)
    return [text[match.start() : match.end()] for match in _LETTERS.finditer(_shadow(text))]


#: What may belong to a word: every sign beyond ASCII, so that the tokeniser decides about those.
_PART: Final = r"[0-9A-Z_a-z\x{80}-\x{10FFFF}]+"
_BETWEEN_BLANKS: Final = r"[^ \t\n\r]+"
#: For each tokeniser a pattern of Rust's `regex` for pieces of a text: no word, and nothing that decides about one,
#: reaches beyond its piece, so that the words of a text are those of its pieces. Cutting a text so is several times as
#: fast, and a tokeniser then sees each different piece once.
PIECES: Final[dict[str, str]] = {
    "lucene": f"{_PART}(?:['.,:;]{_PART})*",
    "alphanumeric": _PART,
    "letters": _PART,
    "terrier": _BETWEEN_BLANKS,
    "whitespace": _BETWEEN_BLANKS,
}

#: Each tokeniser by its name; the words are as they are written in the text.
TOKENISERS: Final[dict[str, Tokeniser]] = {
    "lucene": _standard,
    "alphanumeric": _alphanumeric,
    "letters": _letters,
    "terrier": _terrier,
    "whitespace": str.split,
}


STEMMERS: Final = ("none", "porter", "english", "krovetz")
_POSSESSIVE: Final = re.compile(r"['’＇][sS]$")
#: What the Krovetz stemmer was written for; it leaves other words alone, or worse.
_KROVETZ: Final = re.compile(r"[a-z]{3,24}")
#: Words whose stems differ between Porter's paper and his program.
_DEPARTURES: Final = re.compile(r"(.*?)(bl(?:y|i|ies)|log(?:y|i|ies))")
#: How many different words of a text keep their terms in memory.
_REMEMBERED: Final = 1 << 20


@dataclass(frozen=True)
class Analyser:
    """A tokeniser, a list of stopwords and a stemmer; words are lower-cased, stopwords go before stemming.

    Attributes:
        tokeniser: "lucene" (Unicode's word boundaries; a possessive s is dropped), "alphanumeric" (runs of letters and
            digits), "letters" (runs of two or more letters), "terrier" (letters and digits without words of more than
            20 signs, 4 digits or 3 equal signs in a row) or "whitespace" (case is kept).
        stopwords: "none", "lucene" (33 words), "grammar" (our own list of English words of grammar), or the path of a
            file with one word a line.
        stemmer: "none", "porter", "english" (Snowball's revision of it) or "krovetz".
        words: the stopwords where they come from a file; read from it where they are not given.

    Raises:
        InputError: an unknown name, or a file of stopwords that cannot be read.
        MissingExtraError: the Krovetz stemmer is not installed.
    """

    tokeniser: str = "lucene"
    stopwords: str = "lucene"
    stemmer: str = "porter"
    words: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _check("tokeniser", self.tokeniser, tuple(TOKENISERS))
        _check("stemmer", self.stemmer, STEMMERS)
        if self.stopwords in LISTS:
            object.__setattr__(self, "words", LISTS[self.stopwords])
        elif not self.words:
            if not Path(self.stopwords).exists():
                _check("list of stopwords", self.stopwords, tuple(LISTS))
            object.__setattr__(self, "words", read_stopwords(self.stopwords))
            object.__setattr__(self, "stopwords", Path(self.stopwords).name)

    @property
    def name(self) -> str:
        """The three parts in one line; equal for analysers that give the same terms."""
        listed = self.stopwords
        if listed not in LISTS:
            together = hashlib.sha256("\n".join(sorted(self.words)).encode()).hexdigest()
            listed = f"{listed}:{together[:12]}"
        return f"{self.tokeniser} tokeniser, {listed} stopwords, {self.stemmer} stemmer"

    def __call__(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        if (known := self._terms.get(text)) is not None:  # one word that was met before
            return [known] if known else []
        terms = map(self._terms.__getitem__, TOKENISERS[self.tokeniser](text))
        return [term for term in terms if term]

    def pieces(self, texts: Sequence[str]) -> pl.Series:
        """Texts in pieces, shape (texts,), each a list: the terms of a text are those of its pieces, in order."""
        try:
            column = pl.Series("texts", texts, pl.String)
        except UnicodeEncodeError:  # halves of surrogate pairs
            column = pl.Series("texts", [text.encode("utf-8", "replace").decode() for text in texts], pl.String)
        return column.str.extract_all(PIECES[self.tokeniser])

    @property
    def term(self) -> Callable[[str], str]:
        """The function from a word to its term; "" where it has none."""
        return self._terms.__getitem__

    def json(self) -> dict[str, Any]:
        """The parts by name; `from_json` gives the analyser back."""
        parts: dict[str, Any] = {"tokeniser": self.tokeniser, "stopwords": self.stopwords, "stemmer": self.stemmer}
        return parts if self.stopwords in LISTS else {**parts, "words": sorted(self.words)}

    @classmethod
    def from_json(cls, parts: Mapping[str, Any]) -> Analyser:
        """The analyser that `json` described."""
        return cls(parts["tokeniser"], parts["stopwords"], parts["stemmer"], frozenset(parts.get("words", ())))

    @cached_property
    def _terms(self) -> _Terms:
        return _Terms(self)

    def __getstate__(self) -> dict[str, Any]:
        # What is remembered is not part of the value, and a stemmer cannot be pickled.
        return {name: value for name, value in self.__dict__.items() if name != "_terms"}


class _Terms(dict[str, str]):
    """The term of each word met so far."""

    def __init__(self, analyser: Analyser) -> None:
        self._keeps_case = analyser.tokeniser == "whitespace"
        self._possessive = analyser.tokeniser == "lucene"
        self._stopwords = analyser.words
        self._stem = _stemmer(analyser.stemmer)

    def __missing__(self, word: str) -> str:
        term = _POSSESSIVE.sub("", word) if self._possessive else word
        term = term if self._keeps_case else term.lower()
        term = "" if term in self._stopwords else self._stem(term)
        # Halves of surrogate pairs and line ends cannot be written into the list of terms.
        term = "".join(term.encode("utf-8", "replace").decode().split())
        if len(self) >= _REMEMBERED:
            self.clear()
        self[word] = term
        return term


def _stemmer(name: str) -> Callable[[str], str]:
    if name == "none":
        return str
    if name == "krovetz":
        with needed_for("the Krovetz stemmer", "krovetz"):
            import krovetzstemmer
        krovetz = krovetzstemmer.Stemmer()
        return lambda word: str(krovetz.stem(word)) if _KROVETZ.fullmatch(word) else word
    stem: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord
    return (lambda word: _porter(word, stem)) if name == "porter" else stem


def _porter(word: str, stem: Callable[[str], str]) -> str:
    """The stem by Porter's algorithm as his own program and Lucene have it.

    Snowball's follows the paper, which stems words of two signs and lacks the rules "bli" to "ble", "logi" to "log".

    Source: Porter (1980), and the points of departure that he lists beside his program.
    """
    if len(word) <= 2:
        return word
    departure = _DEPARTURES.fullmatch(word)
    if departure is not None and _measure(departure[1]) > 0:
        word = departure[1] + ("ble" if departure[2][0] == "b" else "log")
    return stem(word)


def _measure(stem: str) -> int:
    """How often a vowel is followed by a consonant; y is a vowel behind a consonant."""
    kinds = ""
    for sign in stem:
        vowel = sign in "aeiou" or (sign == "y" and kinds[-1:] == "c")
        kinds += "v" if vowel else "c"
    return kinds.count("vc")


def _check(kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        more = ", or a file" if kind == "list of stopwords" else ""
        raise InputError(f"unknown {kind} '{name}'", f"one of {', '.join(known)}{more}")
