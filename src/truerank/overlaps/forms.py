"""The form in which texts are compared: as letters and digits are read, without markup, and without passages that many
texts of the test side hold.

What two texts have in common through such a passage says nothing. It is taken off both sides: `shared_passages` finds
the passages of kept texts, `holds_any` tells from what was kept whether a side has any of them, and only then must it
be read again, by `keep_without`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Final

import numpy as np
import polars as pl

from truerank.near_duplicates.passages import boilerplate
from truerank.near_duplicates.shingling import shingled
from truerank.near_duplicates.sketches import Documents, keep_changed
from truerank.overlaps.keeping import KeptTexts, columns_beside, finished, part_name
from truerank.records import Document
from truerank.sources.markup import html_text
from truerank.vectors.encoders.base import Encoder
from truerank.work.jobs import Job

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
        """The text in this form; as it is where nothing would be left."""
        made = _as_read(text)
        if _MARKED.search(made):
            found = html_text(made)
            made = f"{found.title} {found.body}".strip()
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


def holds_any(kept: KeptTexts, form: ComparedForm) -> bool:
    """Whether a text has all shingles of one of the passages of a form: without any, the texts have this form."""
    found = shingled(form.passages, kept.rules.shingles)
    passages = [set(found.of(at).tolist()) for at in range(len(form.passages))]
    every = np.unique(found.shingles)
    if not len(every):
        return False
    fewest = min(map(len, filter(None, passages)))
    for part in kept.parts:
        for block in range(len(part.shingles.sizes)):
            shingles = part.shingles.shingles_of(block)
            owner = np.repeat(np.arange(part.shingles.sizes[block]), part.shingles.column(block, "size"))
            there = every[np.minimum(np.searchsorted(every, shingles), len(every) - 1)] == shingles
            shingles, owner = shingles[there], owner[there]
            counts = np.bincount(owner, minlength=part.shingles.sizes[block])
            for text in np.flatnonzero(counts >= fewest).tolist():
                own = set(shingles[owner == text].tolist())
                if any(passage and passage <= own for passage in passages):
                    return True
    return False


def keep_without(base: KeptTexts, texts: Documents, form: ComparedForm, job: Job, encoder: Encoder | None) -> KeptTexts:
    """Keeps texts in another form; only what changes is made anew."""
    used, stream = (None if base.encoder is None else encoder), iter(texts)
    for number, part in enumerate(base.parts):
        changed = (_changed(islice(stream, size), form) for size in part.shingles.sizes)
        keep_changed(part.shingles, changed, job.part(part_name(number)), columns_beside(base.rules, used))
    return finished(base, job.folder)


def _changed(texts: Iterator[Document | tuple[str, str]], form: ComparedForm) -> dict[int, str]:
    """The texts that have another form now, by their places."""
    read, before = (one.text if isinstance(one, Document) else one[1] for one in texts), ComparedForm()
    return {place: new for place, text in enumerate(read) if (new := form(text)) != before(text)}
