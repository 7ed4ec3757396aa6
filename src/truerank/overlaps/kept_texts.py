"""What texts are compared by, kept on the disk: hashes of the text, of its shingles and n-grams, and short texts."""

from __future__ import annotations

import contextlib
import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank import near_duplicates
from truerank.errors import InputError
from truerank.near_duplicates import Shingles
from truerank.near_duplicates.shingles import shingled
from truerank.near_duplicates.sketches import Documents, boilerplate, keep_changed
from truerank.overlaps.results import WORDING_LIMIT, OverlapRules, TextPart
from truerank.records import Document
from truerank.sources.distinct import text_hashes
from truerank.sources.markup import html_text
from truerank.text.normalising import normalise
from truerank.work.jobs import Job
from truerank.work.kept import keep_json, kept_json

_FORMAT: Final = 5
_MANIFEST: Final = "texts.json"
#: Texts of a part; parts are compared one after the other, so that memory does not grow with a collection.
PART: Final = 1 << 20
#: Characters of a long text that are kept to be shown.
_SHOWN: Final = 200
#: Marks that are a part of what stands before them: C#, 50%, A*.
_MEANT: Final = frozenset("#%&*@/\\†‡‰′″")
_HASH: Final = np.dtype("<u8")
_NGRAM_COLUMNS: Final = ("ngrams", "ngram_size")


@dataclass(frozen=True)
class _Beside:
    """The columns that are kept beside the sketches: hash of the folded text, n-grams, words and short texts."""

    ngrams: Shingles

    @property
    def identity(self) -> Mapping[str, str | int]:
        return {"beside": _FORMAT, "ngram": self.ngrams.shingle_size, "wording_limit": WORDING_LIMIT}

    def __call__(self, texts: Sequence[str]) -> Mapping[str, pl.Series]:
        cut = shingled(texts, self.ngrams, measured=True)
        content = cut.shingles.astype(_HASH, copy=False).tobytes()
        bounds = (cut.starts * _HASH.itemsize).tolist()
        words = cut.measured.tolist()
        short = [text if count <= WORDING_LIMIT else None for text, count in zip(texts, words, strict=True)]
        return {
            "folded": pl.Series(text_hashes([folded(text) for text in texts]), dtype=pl.UInt64),
            "ngrams": pl.Series([content[begin:end] for begin, end in pairwise(bounds)], dtype=pl.Binary),
            "ngram_size": pl.Series(np.diff(cut.starts).astype(np.uint32)),
            "measured": pl.Series(cut.measured.astype(np.uint32)),
            "short": pl.Series(short, dtype=pl.String),
            "shown": pl.Series(
                [
                    brief or " ".join(text[: 2 * _SHOWN].split())[:_SHOWN]
                    for brief, text in zip(short, texts, strict=True)
                ],
                dtype=pl.String,
            ),
        }


@dataclass(frozen=True)
class KeptTexts:
    """Texts as they are compared; made by `keep`.

    Attributes:
        folder: where they lie.
        rules: whose `ngram` they were made for; thresholds do not matter here.
        parts: of at most about a million texts.
    """

    folder: Path
    rules: OverlapRules
    parts: tuple[TextPart, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))


def keep(texts: Documents, rules: OverlapRules, job: Job) -> KeptTexts:
    """Makes and keeps what texts are compared by.

    It takes about 20 bytes for each word.

    Args:
        texts: pairs of id and text, or documents; a stream that is read once. Ids may repeat.
        rules: what an n-gram is.
        job: the folder that keeps it, what runs the work, and whom it tells; a killed job continues if it gets the same
            texts.

    Returns:
        The texts, which `compare` takes in place of a stream.
    """
    stream, count = iter(texts), 0
    while (first := next(stream, None)) is not None:
        part: Iterator[Any] = chain([first], islice(stream, PART - 1))
        near_duplicates.keep(part, rules.shingles, job.part(part_name(count)), _Beside(rules.ngrams))
        count += 1
    return _finished(job.folder, rules, count)


def _finished(folder: Path, rules: OverlapRules, parts: int) -> KeptTexts:
    """Says that a folder holds kept texts, and opens them."""
    folder.mkdir(parents=True, exist_ok=True)
    keep_json(folder / _MANIFEST, {"format": _FORMAT, "ngram": rules.ngram, "parts": parts})
    return KeptTexts(folder, rules, _parts(folder, rules, parts))


def kept_before(folder: Path, rules: OverlapRules) -> KeptTexts | None:
    """What `keep` has kept; None where it has not finished, or where it is damaged, so that `keep` mends it."""
    kept = kept_json(folder / _MANIFEST)
    if kept is None or (kept.get("format"), kept.get("ngram")) != (_FORMAT, rules.ngram):
        return None
    with contextlib.suppress(InputError):
        return KeptTexts(folder, rules, _parts(folder, rules, kept["parts"]))
    return None


def _parts(folder: Path, rules: OverlapRules, count: int) -> tuple[TextPart, ...]:
    return tuple(_part(folder / part_name(part), rules) for part in range(count))


def _part(folder: Path, rules: OverlapRules) -> TextPart:
    shingles = near_duplicates.open_sketches(folder, rules.shingles, _Beside(rules.ngrams))
    ngrams = replace(shingles, options=rules.ngrams, columns=_NGRAM_COLUMNS)
    blocks = range(len(ngrams.sizes))
    return TextPart(
        shingles, replace(ngrams, shingles=sum(int(ngrams.column(block, "size").sum()) for block in blocks))
    )


def part_name(part: int) -> str:
    return f"part-{part:04d}"


def folded(text: str) -> str:
    """What makes texts the same: normalised; case and marks at the end do not count."""
    return normalise(text).casefold().rstrip(_closing())


@functools.cache
def _closing() -> str:
    """Blanks, and marks of all scripts that end sentences, quotations and brackets."""
    kinds = ("Po", "Pe", "Pf", "Pi", "Zs")
    marks = (mark for mark in map(chr, range(0x10000)) if unicodedata.category(mark) in kinds)
    return "".join(mark for mark in marks if mark not in _MEANT)


_MARKED: Final = re.compile(r"</?[a-zA-Z][^<>]{0,300}>|&#?\w{2,8};")
#: A word that is cut at the end of a line, as in print.
_CUT: Final = re.compile(r"(?<=[^\W\d_])-[ \t]*\r?\n[ \t]*(?=[^\W\d_])")
#: Signs that are not seen within a word: soft hyphens, joiners, marks of direction and of byte order.
_UNSEEN: Final = re.compile("[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+")
_FOREIGN_DIGIT: Final = re.compile(r"[^\D0-9]")
#: Share of the texts of a test side that hold a passage, from which on it is boilerplate.
_SHARE: Final = 0.01


@dataclass(frozen=True)
class ComparedForm:
    """The form in which a text is compared: as it is read, without tags and entities, and without boilerplate.

    As it is read: in Unicode's compatibility form (NFKC), without signs that are not seen, digits of all scripts as
    those of ASCII, and words whole that are cut at the end of a line.

    Attributes:
        passages: those that many texts of the test collection hold; what a training text shares with them says nothing.
    """

    passages: tuple[str, ...] = ()

    def __call__(self, text: str) -> str:
        made = _as_read(text)
        if _MARKED.search(made):
            page = html_text(made)
            made = f"{page.title} {page.body}".strip()
        if self._boilerplate is not None:
            made = self._boilerplate.sub(" ", made)
        return made if made.strip() else text

    @cached_property
    def _boilerplate(self) -> re.Pattern[str] | None:
        """All passages, the longest first; what stands between their words does not count."""
        passages = [re.findall(r"\w+", passage) for passage in self.passages]
        longest = sorted((words for words in passages if words), key=len, reverse=True)
        if not longest:
            return None
        patterns = (r"\b" + r"\W+".join(map(re.escape, words)) + r"\b" for words in longest)
        return re.compile("|".join(patterns), re.IGNORECASE)


def _as_read(text: str) -> str:
    """A text as a reader sees it; most texts are."""
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
        text = _FOREIGN_DIGIT.sub(lambda sign: str(unicodedata.digit(sign[0])), text)
    return _CUT.sub("", text) if "-" in text else text


def shared_passages(kept: KeptTexts) -> pl.DataFrame:
    """The passages that 1% of some texts hold, and at least ten; columns as in `near_duplicates.BOILERPLATE`."""
    return boilerplate(
        lambda: chain.from_iterable(part.shingles.all_passages() for part in kept.parts), len(kept), _SHARE
    )


def keep_without(base: KeptTexts, texts: Documents, form: ComparedForm, job: Job) -> KeptTexts:
    """Keeps texts in another form; only what changes is made anew."""
    stream = iter(texts)
    for number, part in enumerate(base.parts):
        changed = (_changed(islice(stream, size), form) for size in part.shingles.sizes)
        keep_changed(part.shingles, changed, job.part(part_name(number)), _Beside(base.rules.ngrams))
    return _finished(job.folder, base.rules, len(base.parts))


def _changed(texts: Iterator[Document | tuple[str, str]], form: ComparedForm) -> dict[int, str]:
    read, before = (one.text if isinstance(one, Document) else one[1] for one in texts), ComparedForm()
    return {place: new for place, text in enumerate(read) if (new := form(text)) != before(text)}
