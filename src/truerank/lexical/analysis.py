"""Analysers as values: how a text becomes the terms of an index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl
import Stemmer

from truerank.errors import InputError, MissingExtraError
from truerank.lexical.stopwords import LISTS, read_stopwords
from truerank.lexical.tokenising import PIECES, TOKENISERS

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
        try:
            import krovetzstemmer
        except ImportError as error:
            raise MissingExtraError("the Krovetz stemmer", "krovetz") from error
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
