"""What became of a page between two crawls, from the two texts alone: notices, walls, errors, lost answers."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.loading import toml_file

#: In notices.toml, who speaks to somebody: no sign of a kind of notice.
_ADDRESS: Final = "spoken to"
#: There, what hardly anything but a notice speaks of: one such sign is as much as two others.
_PLAIN: Final = "plain"
#: Letters that are no letter with an accent.
_LETTERS: Final = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae"})
#: What stands between words in a text as of `_plain`, beside blanks; and letters of scripts without blanks.
_BETWEEN: Final = "$€£/.@-"
_BEFORE: Final = f" {_BETWEEN}"
_BLANKED: Final = str.maketrans(_BETWEEN, " " * len(_BETWEEN))
_NO_BLANKS: Final = "[\u3040-\uffdc]"
_ANY_NO_BLANKS: Final = re.compile(_NO_BLANKS)
_NO_WORD: Final = re.compile(rf"[^\w{_BETWEEN}]+")
#: So many letters and blanks, from the beginning of a word on, tell whether a sign may be there; fewer where it begins
#: with fewer.
_STARTS: Final = (6, 5, 4, 3, 2)
_BEGINS: Final = tuple(
    re.compile(rf"(?:\\b)?([^\W\d_](?:[^\W\d_]| ){{{letters - 1}}})(?![?*{{|])") for letters in _STARTS
)
#: Words of which is remembered whether a sign may begin with them.
_REMEMBERED: Final = 1 << 18
#: In ASCII, what is no part of a word becomes a blank.
_TO_PLAIN: Final = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in f"_{_BETWEEN}")}
#: A choice, or something that may be lacking, at the beginning of a sign.
_CHOICE: Final = re.compile(r"((?:[^\W\d_]| )*)\(\?:([^()]*)\)(\?|(?![?*+{]))(.*)")
#: A longer text is about its subject, whatever it mentions.
_LONGEST: Final = 150
#: Different things spoken of, and the share of the words that speak of them.
_FEWEST_SIGNS: Final = 2
_SHARE: Final = 0.12
_SHARE_OF_MANY: Final = 0.07
_MANY: Final = 4
_BRIEF: Final = 4
_MOST: Final = 0.5


@dataclass(frozen=True, eq=False)
class _Thing:
    """One thing that notices speak of.

    Attributes:
        signs: what a text has where it speaks of it.
        starts: a pattern of the signs by their first letters, and blanks, for texts with blanks; by "" of the others.
        worth: as how many signs it counts.
    """

    signs: tuple[str, ...]
    starts: Mapping[str, str]
    worth: int = 1

    @classmethod
    def of(cls, signs: Sequence[str], worth: int = 1) -> _Thing:
        """Signs of scripts without blanks stand anywhere, others at the beginning of a word or behind such a script."""
        folded = tuple(_folded(sign) for sign in signs)
        # Most texts have few of the beginnings; what begins with a letter of a script without blanks is asked for only
        # where a text has one.
        starts: dict[str, list[str]] = {}
        for one in (one for sign in folded for one in _choices(sign) if not _ANY_NO_BLANKS.match(one)):
            match = next(filter(None, (begin.match(one) for begin in _BEGINS)), None)
            starts.setdefault(match[1] if match else "", []).append(one)
        return cls(folded, {start: "|".join(some) for start, some in starts.items()}, worth)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds where a text speaks of it."""
        begun = rf"(?:(?<!\w)|(?={_NO_BLANKS})|(?<={_NO_BLANKS}))"
        return re.compile(f"{begun}(?:{'|'.join(self.signs)})")


@cache
def _begun(signs: str) -> re.Pattern[str]:
    """Signs, compiled where a text may have one: few of them ever are."""
    return re.compile(signs)


class Notice(NamedTuple):
    """What kind of notice a text is, and the words that show it.

    Attributes:
        share: how much of the text the signs of this kind are.
        share_of_all: how much those of all kinds are.
        addressed: whether it speaks to the reader.
    """

    kind: str
    signs: tuple[str, ...]
    share: float
    share_of_all: float
    addressed: bool


def notice_of(text: str, *, title: bool = False, fewest: int = 1) -> Notice | None:
    """The kind of notice that a text is, or None where it is none, or speaks of fewer things than that."""
    plain = _plain(text)
    size = len(plain.split())
    if not size or size > _LONGEST:
        return None
    found: dict[str, list[str]] = {}
    worth: Counter[str] = Counter()
    covered: dict[str, set[int]] = {}
    (spoken_to,) = _signs()[_ADDRESS]
    spoken_of = _spoken_of(plain)
    if len(spoken_of) < fewest:
        return None
    for kind, things in _signs().items():
        for thing in things if kind != _ADDRESS else ():
            if thing in spoken_of:
                worth[kind] += thing.worth
                hits = list(thing.pattern.finditer(plain))
                found.setdefault(kind, []).append(plain[hits[0].start() : _end(plain, hits[0].end())])
                # A sign is the beginning of a word: the whole of it counts.
                places = (place for hit in hits for place in range(hit.start(), _end(plain, hit.end())))
                covered.setdefault(kind, set()).update(places)
    signs = sum(map(len, found.values()))
    if not signs:
        return None
    share = len(set().union(*covered.values())) / len(plain)
    enough = (worth.total() + (spoken_to in spoken_of) >= _FEWEST_SIGNS and share >= _SHARE) or (
        signs >= _MANY and share >= _SHARE_OF_MANY
    )
    brief = title and size <= _BRIEF and share >= _MOST
    if not (enough or brief):
        return None
    kind = max(found, key=worth.__getitem__)
    own = len(covered[kind]) / len(plain)
    return Notice(kind, tuple(dict.fromkeys(found[kind])), own, share, spoken_to in spoken_of)


def speaks_as_notice(text: str) -> bool:
    """Whether a text speaks to the reader, or of anything that notices speak of; alone that is no sign of a notice."""
    return bool(_spoken_of(_plain(text)))


def _spoken_of(plain: str) -> Collection[_Thing]:
    """The things of which a text, as of `_plain`, has a sign."""
    if not plain.isascii() and _ANY_NO_BLANKS.search(plain):
        return {thing for things in _signs().values() for thing in things if thing.pattern.search(plain)}
    by_start, may_begin, text = _by_start(), _may_begin(), f" {plain}"
    blanked = f"{text.translate(_BLANKED)} "
    found: set[_Thing] = set()
    for word in {*filter(may_begin.__getitem__, blanked.split())}:
        at = blanked.find(f" {word} ") + 1
        while at:
            for letters in may_begin[word]:
                start = blanked[at : at + letters]
                for thing in by_start.get(start, ()):
                    if _begun(thing.starts[start]).match(text, at):
                        found.add(thing)
            at = blanked.find(f" {word} ", at) + 1
    # One pattern for all others: hardly a text has one.
    if _others().search(text):
        found.update(thing for thing, pattern in _other_things() if pattern.search(text))
    return found


class _MayBegin(dict[str, tuple[int, ...]]):
    """Of a word, how many letters tell whether a sign begins there; none where the word alone tells that none does."""

    def __init__(self, starts: Iterable[str]) -> None:
        super().__init__()
        self._parts = {(len(start), start.partition(" ")[0]) for start in starts}
        self._known = frozenset(part for _, part in self._parts)

    def __missing__(self, word: str) -> tuple[int, ...]:
        found: tuple[int, ...] = ()
        if not self._known.isdisjoint([word, *[word[:size] for size in _STARTS]]):
            parts = self._parts
            found = tuple(size for size in _STARTS if (size, word) in parts or (size, word[:size]) in parts)
        if len(self) < _REMEMBERED:
            self[word] = found
        return found


@cache
def _may_begin() -> _MayBegin:
    return _MayBegin(frozenset(_by_start()) - {""})


def _choices(sign: str) -> list[str]:
    """A sign without the choices among its first letters: one for each of them."""
    found = _CHOICE.fullmatch(sign)
    if found is None or len(found[1]) >= _STARTS[0]:
        return [sign]
    options = [*found[2].split("|"), *([""] if found[3] else [])]
    return [one for option in options for one in _choices(f"{found[1]}{option}{found[4]}")]


def _end(text: str, place: int) -> int:
    end = text.find(" ", place)
    return len(text) if end < 0 else end


def _folded(text: str) -> str:
    """Lower case without the accents of Latin and Cyrillic letters."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold()).translate(_LETTERS)
    return unicodedata.normalize("NFC", "".join(sign for sign in apart if not "\u0300" <= sign <= "\u036f"))


def _plain(text: str) -> str:
    """Folded, with single blanks between words."""
    folded = _folded(text)
    return " ".join((folded.translate(_TO_PLAIN) if folded.isascii() else _NO_WORD.sub(" ", folded)).split())


@cache
def _signs() -> dict[str, tuple[_Thing, ...]]:
    """By kind each thing that notices speak of, from notices.toml."""
    listed = toml_file(Path(__file__).with_name("notices.toml"))
    return {
        kind: tuple(_Thing.of(some, 2 if name == _PLAIN else 1) for name, some in things.items())
        for kind, things in listed.items()
    }


@cache
def _by_start() -> dict[str, list[_Thing]]:
    """The things by the beginnings of their signs."""
    found: dict[str, list[_Thing]] = {}
    for thing in (thing for things in _signs().values() for thing in things):
        for start in thing.starts:
            found.setdefault(start, []).append(thing)
    return found


@cache
def _other_things() -> list[tuple[_Thing, re.Pattern[str]]]:
    """The things with signs that do not begin with letters, and these behind what is between words."""
    return [(thing, re.compile(f"[{_BEFORE}](?:{thing.starts['']})")) for thing in _by_start()[""]]


@cache
def _others() -> re.Pattern[str]:
    return re.compile(f"[{_BEFORE}](?:{'|'.join(thing.starts[''] for thing in _by_start()[''])})")


#: The classes, from the plainest to the one that is left over.
REASONS: Final = (
    "empty",
    "error page",
    "repeated text",
    "boilerplate only",
    "truncated",
    "content missing",
    "redirect",
    "content changed",
)

#: A word.
WORD: Final = re.compile(r"\w+")
_NAME: Final = re.compile(r"\w\.\w")
#: Words of what stands around a page's content.
_AROUND: Final = frozenset(
    """
    about accept accessibility account address advertise advertisement advertising agree alerts all answers app
    article articles author authors back basket blog bookmark bookmarks brand browse button by careers cart
    catalogue categories category check checkout choose citation citations cited click comment comments company
    consent contact content continue cookie cookies copyright country create data date download downloads edition
    email english enter events expand explore facebook faq faqs favourites features feed feedback feeds follow
    footer forum friend gallery german help hide home imprint index instagram international issues join journals
    language languages latest learn legal like likes link linkedin links list load log login logout main manage map
    media member members menu more most my navigation news newsletter next notice office our out page pages
    password permissions pinterest policies policy popular powered preferences press previous print privacy product
    products profile promotion protected protection publications published recent recommended refuse register
    registered related report reprints reserved rights rss save search select send services settings share shop
    show sidebar sign site sitemap skip social sponsored store subscribe subscription subscriptions support tags
    team terms title titles toggle top topics tour track trending tweet twitter upcoming update updates upgrade us
    use user view website websites welcome your youtube ©
    """.split()
)
#: What stands for the loss of a page.
_NO_PAGE: Final = frozenset(("empty", "error page", "boilerplate only"))
_WORD_LETTERS: Final = 6
#: So many words in a row tell one text from another.
_SHINGLE: Final = 3
#: Words that begin with this letter, or a later one, are those of scripts without blanks.
_WITHOUT_BLANKS: Final = "\u3040"
#: A page with fewer words has no content.
_FEWEST: Final = 3
#: What a page may keep above a notice that takes the place of the rest.
_TEASER: Final = 0.4
_AROUND_SHARE: Final = 0.3
_SHORT: Final = 30
#: A notice has at most so many words. What so many other documents show is one; where it speaks to the reader or of
#: what notices speak of, one other is enough.
_NOTICE: Final = 100
_SEVERAL: Final = 2
_ONE_MORE: Final = 1
#: So few words below a title are no notice by themselves.
_LEAST: Final = 6
#: A text with such a share of the title's words of so many letters is about the page.
_NAMED: Final = 0.5
_TELLS: Final = 4
#: Up to this share of common text two pages are different ones.
_OTHER: Final = 0.15
#: So many first words are enough to know a page again, however much stands below.
_BEGINNING: Final = 6
#: Words of a first or last line that changes with every crawl.
_EDGE: Final = 12
#: From this share of common text on, a page has nothing new.
_NOTHING_NEW: Final = 0.8


@dataclass(frozen=True)
class PageWords:
    """Title and body of a page, as words.

    Attributes:
        title: may be empty.
        body: may be empty.
    """

    title: str
    body: str

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the body, in lower case."""
        return tuple(WORD.findall(self.body.lower()))

    @cached_property
    def size(self) -> int:
        """The number of words; scripts without blanks have few, of which two signs count as one."""
        return max(len(self.words), sum(len(word) for word in self.words if word >= _WITHOUT_BLANKS) // 2)

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The words by their first letters, so that most inflections are the same; with digits, the whole words."""
        return tuple([word[:_WORD_LETTERS] if word.isalpha() else word for word in self.words])

    @cached_property
    def whole(self) -> PageWords:
        """Title and body as one body."""
        return PageWords("", f"{self.title}\n{self.body}") if self.title else self

    @cached_property
    def shingles(self) -> tuple[tuple[str, ...], ...]:
        """Runs of words, one beginning at each word that has enough behind it; of a shorter text the whole."""
        words = self.words
        if len(words) < _SHINGLE:
            return (words,) if words else ()
        return tuple(zip(*(words[start:] for start in range(_SHINGLE)), strict=False))


class PageFault(NamedTuple):
    """What became of a page: one of `REASONS`, and what shows it."""

    reason: str
    evidence: str


def page_fault(before: PageWords, after: PageWords, *, repeated: int = 0) -> PageFault:
    """Names what happened to a page that is no longer what it was."""
    if not after.words and after.title not in ("", before.title):
        # The title is all that the page says.
        after = PageWords("", after.title)
    common = _Common(before, after)
    found = _gone(common, repeated)
    found = found or _truncated(common) or _missing(common)
    if found is not None:
        return found
    if (common.inside <= _OTHER or common.of_before <= _OTHER) and not common.begins_alike:
        titles = (
            f"; title '{_short(before.title)}', then '{_short(after.title)}'" if before.title != after.title else ""
        )
        return PageFault("redirect", f"{common.of_before:.0%} of the text in common{titles}")
    gone = f"; no longer there: '{_short(common.lost_text)}'" if common.lost_text else ""
    return PageFault(
        "content changed", f"{common.of_before:.0%} of the text kept, {1 - common.of_after:.0%} is new{gone}"
    )


def shows_no_page(one: PageWords, other: PageWords) -> tuple[bool, bool]:
    """Whether each of two versions shows no page beside the other: empty, an error page or menus, see `page_fault`."""
    common = _Common(one, other)
    return _is_no_page(_Common(other, one, common.known, common.kept)), _is_no_page(common)


def _is_no_page(common: _Common) -> bool:
    before, after = common.before, common.after
    if not after.words and after.title not in ("", before.title):
        # A title alone is its own page.
        return notice_of(after.title) is not None
    found = _gone(common, 0)
    return found is not None and found.reason in _NO_PAGE


def _gone(common: _Common, repeated: int) -> PageFault | None:
    """What stands for the loss of a page; of a few words also that they are its first ones. A title is not text."""
    before, after = common.before, common.after
    titled = after.title == before.title and after.words == PageWords("", after.title).words != before.words
    size = 0 if titled else after.size
    found = _error(after, common)
    if found is None and size >= _FEWEST:
        found = _boilerplate(after, common)
    found = found or _repeated(after, common, repeated)
    if found is not None or size >= _FEWEST:
        return found
    if size and before.words[:size] == after.words:
        return PageFault("truncated", f"the first {size} of {len(before.words):,d} words")
    return PageFault("empty", f"{size} words of text, {len(before.words):,d} in the other version")


class _Common:
    """What two texts have in common, by runs of words.

    Attributes:
        kept: for each word of the first version, whether it is part of a run that the other one has too.
        known: the same of the other one.
    """

    def __init__(
        self,
        before: PageWords,
        after: PageWords,
        kept: NDArray[np.bool_] | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.kept = covered(before, after) if kept is None else kept
        self.known = covered(after, before) if known is None else known
        self.of_before = _share(self.kept)

    @cached_property
    def of_after(self) -> float:
        """The share of the words of the second version that the first one has."""
        return _share(self.known)

    @cached_property
    def inside(self) -> float:
        """The same without a first and last line, which change with every crawl."""
        return _share(_trimmed(self.known))

    @property
    def begins_alike(self) -> bool:
        """Whether both bodies begin with the same words, more than texts on one subject have in common."""
        size = min(_BEGINNING, len(self.kept), len(self.known))
        return size == _BEGINNING and self.before.words[:size] == self.after.words[:size]

    @property
    def lost(self) -> tuple[int, int]:
        """The longest part of the first version that the other lacks: its first word and the one behind it.

        Single words that happen to be kept do not end it.
        """
        gone = np.flatnonzero(~self.kept)
        if not len(gone):
            return (0, 0)
        breaks = np.flatnonzero(np.diff(gone) > 2 * _SHINGLE)
        starts, ends = gone[np.r_[0, breaks + 1]], gone[np.r_[breaks, len(gone) - 1]] + 1
        longest = int(np.argmax(ends - starts))
        return int(starts[longest]), int(ends[longest])

    @property
    def lost_text(self) -> str:
        """The beginning of that part."""
        start, end = self.lost
        return " ".join(self.before.words[start : min(end, start + 12)])


def _error(after: PageWords, common: _Common) -> PageFault | None:
    if common.of_before > _TEASER:
        return None
    title = after.title if after.title != common.before.title else ""
    new = _new_words(after, common)
    found = _notice(title, new)
    if found is None and common.of_before <= _OTHER and (between := _between_menus(after)) and between != new:
        found = _notice(title, between)
    return found


def _new_words(page: PageWords, common: _Common) -> list[str]:
    """The words that the other version lacks; those of a name as example.com are one."""
    if not _NAME.search(page.body):
        return [word for word, known in zip(page.words, common.known.tolist(), strict=True) if not known]
    text, end = page.body.lower(), 0
    words: list[str] = []
    for match, known in zip(WORD.finditer(text), common.known.tolist(), strict=True):
        if not known and words and text[end : match.start()] == ".":
            words[-1] += f".{match[0]}"
        elif not known:
            words.append(match[0])
        end = len(text) if known else match.end()
    return words


def _notice(title: str, new: Sequence[str]) -> PageFault | None:
    """The error page that new words are, unless they are those of menus."""
    notice = notice_of(" ".join((title, *new)))
    if notice is None:
        return None
    # Menus name logins, subscriptions and cookies, too: a short text must be menus for the most part to be one.
    least = _AROUND_SHARE if len(new) >= _SHORT else 2 * _AROUND_SHARE
    if _around(new) >= max(least, notice.share) and notice_of(title, title=True) is None:
        return None
    signs = ", ".join(f"'{sign}'" for sign in notice.signs[:3])
    return PageFault("error page", f"{notice.kind}: {signs} in {len(new):,d} new words")


def _between_menus(page: PageWords) -> list[str]:
    """The words of the lines that are not menus: above and below a notice there may be more of them than it has."""
    lines = [WORD.findall(line) for line in page.body.lower().splitlines()]
    kept = [line for line in lines if line and _around(line) < _AROUND_SHARE]
    words = [word for line in kept for word in line]
    return words if len(words) >= _LEAST else []


def _repeated(after: PageWords, common: _Common, repeated: int) -> PageFault | None:
    """A short text that several pages show and that has nothing of this one is a notice, whatever its words."""
    if repeated < _ONE_MORE or len(after.words) > _NOTICE or max(common.inside, common.of_before) > _OTHER:
        return None
    text = f"{after.title} {after.body}" if after.title != common.before.title else after.body
    spoken = speaks_as_notice(text)
    if not spoken and repeated < _SEVERAL:
        return None
    if len(after.words) < _LEAST and not spoken and after.title in ("", common.before.title):
        # A view count or a date below the title.
        return None
    named = {form for form in PageWords("", common.before.title).forms if len(form) >= _TELLS}
    if named and len(named & set(after.forms)) >= _NAMED * len(named):
        return None
    return PageFault("repeated text", f"about the same text at {repeated + 1:,d} addresses: '{_short(text)}'")


def _around(words: Sequence[str]) -> float:
    """The share of words that stand around a page's content."""
    return sum(word in _AROUND for word in words) / max(1, len(words))


def _boilerplate(after: PageWords, common: _Common) -> PageFault | None:
    around = _around(after.words)
    if around < _AROUND_SHARE or common.of_before > _OTHER:
        return None
    return PageFault("boilerplate only", f"{around:.0%} of {len(after.words):,d} words are those of menus and notices")


def _truncated(common: _Common) -> PageFault | None:
    """The kept words stand at the beginning, and what follows is gone."""
    kept = common.kept
    if common.inside < _NOTHING_NEW or not kept.any():
        return None
    cut = cut_of(kept)
    if cut is None or _ends_alike(common):
        return None
    end = " ".join(common.before.words[max(0, cut - 6) : cut])
    return PageFault("truncated", f"the first {cut:,d} of {len(kept):,d} words, up to '… {_short(end)}'")


def cut_of(kept: NDArray[np.bool_]) -> int | None:
    """The first word behind a cut: nearly all words before it are kept, and nearly all behind it are gone."""
    if not kept.any():
        return None
    score = np.cumsum(np.r_[0, np.where(kept, 1, -1)])
    score[: int(np.argmax(kept)) + 1] = -len(kept)
    cut = int(np.argmax(score))
    tail = kept[cut : max(cut, len(kept) - min(_EDGE, len(kept) // (2 * _EDGE)))]
    sharp = len(tail) >= _SHINGLE and tail.mean() <= 0.1 and _trimmed(kept[:cut]).mean() >= 0.9
    return cut if sharp else None


def _ends_alike(common: _Common) -> bool:
    """Whether the end of the text is kept, too; a last line that is kept as a whole is a footer."""
    gone = np.flatnonzero(~common.kept)
    run = len(common.kept) - (int(gone[-1]) + 1 if len(gone) else 0)
    line = WORD.findall(common.before.body.rstrip().rpartition("\n")[2])
    return _SHINGLE <= run < len(line) and common.before.words[-run:] == common.after.words[-run:]


def _missing(common: _Common) -> PageFault | None:
    start, end = common.lost
    # Of a page that is nearly gone even the first and last line must be known: they could be all that is.
    known = common.inside if common.of_before > _OTHER else common.of_after
    if known < _NOTHING_NEW or end - start < _SHINGLE:
        return None
    return PageFault(
        "content missing",
        f"{end - start:,d} of {len(common.kept):,d} words in a row are gone, from '{_short(common.lost_text)}' on",
    )


def covered(text: PageWords, other: PageWords) -> NDArray[np.bool_]:
    """For each word, whether it is in a run that the other text has; shape (words,)."""
    there = set(other.shingles)
    starts = np.fromiter((shingle in there for shingle in text.shingles), np.bool_, len(text.shingles))
    covered = np.zeros(len(text.words), np.bool_)
    for shift in range(_SHINGLE):
        part = starts[: max(0, len(covered) - shift)]
        covered[shift : shift + len(part)] |= part
    return covered


def _trimmed(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Without the false ones at both ends, up to `_EDGE` each."""
    there = np.flatnonzero(flags)
    if not len(there):
        return flags
    return flags[min(int(there[0]), _EDGE) : max(int(there[-1]) + 1, len(flags) - _EDGE)]


def _share(flags: NDArray[np.bool_]) -> float:
    return float(flags.mean()) if len(flags) else 0.0


def _short(text: str, words: int = 8) -> str:
    parts: Sequence[str] = text.split()
    return " ".join(parts[:words]) + (" …" if len(parts) > words else "")


#: Words of a piece that is looked for as a whole, and pieces on each side that share the query with it.
_PIECE: Final = 12
_AROUND_losses: Final = 1
#: A version that has so large a share of the distinct words, and what is asked for, has lost nothing worth a look.
_ALL_THERE: Final = 0.9
#: Words of one piece that any text on the subject has in one place, and that a rewording keeps, as shares.
_CHANCE: Final = 0.3
_SAME: Final = 0.7
#: What a piece far from the words of the query counts beside the best one.
_FAR: Final = 0.02
_POWER: Final = 3.0
#: So much of the query, by weight, is much.
_ASKED: Final = 0.15
#: A body with fewer words is not text of its own: the title counts with it.
NO_BODY: Final = 8
#: What is left with fewer words, and no title, need not have one of those that are gone, although it was about that.
_STUMP: Final = 18


class Loss(NamedTuple):
    """What of a text another version lacks, from 0 to 1.

    Attributes:
        share: of what answered the query.
        akin: of the words that are gone, by the square of their weight, those that the rest has: a text that was cut is
            about its title, a comment below it is not. All where much of the query is gone for good, and where too
            little is left to tell.
    """

    share: float
    akin: float


@dataclass(frozen=True)
class WordWeights:
    """How much a word tells: the logarithm of how rare it is.

    Attributes:
        weights: by form, see `PageWords.forms`.
        unknown: of a form that was not seen.
    """

    weights: Mapping[str, float]
    unknown: float

    def of(self, some: Iterable[str]) -> Floats:
        """The weights of some forms, in their order."""
        known, other = self.weights, self.unknown
        return np.array([known.get(form, other) for form in some])


def word_weights(texts: Iterable[Sequence[str]]) -> WordWeights:
    """Weights from the words of a sample of documents."""
    counts: Counter[str] = Counter()
    size = 0
    for forms in texts:
        counts.update(set(forms))
        size += 1
    weights = {form: math.log1p((size - count + 0.5) / (count + 0.5)) for form, count in counts.items()}
    return WordWeights(weights, math.log1p((size + 0.5) / 0.5))


def lost_share(before: PageWords, after: PageWords, query: frozenset[str], weights: WordWeights) -> Loss:
    """How much of what answered a query another version lacks.

    The text is cut into pieces. A piece is there where its runs of words are, or most of its words close to one
    another. Pieces weigh by how rare their words are and by how much of the query stands in and around them.
    The title counts only where there is no body: pages keep titles above whatever they show. Of a text that breaks off
    within a sentence, all that followed counts half, and what stands near the query half.
    """
    titled = before.size < NO_BODY
    text = before.whole if titled else before
    other = after.whole
    mine, theirs = text.forms, other.forms
    if not mine:
        return Loss(0.0, 0.0)
    distinct, there = set(mine), set(theirs)
    much = _ASKED * float(weights.of(sorted(query)).sum())
    asked = float(weights.of(sorted(query & distinct - there)).sum())
    # A title that stays is a text where a page never had another one.
    stays = bool(before.title) and there.issuperset(PageWords("", before.title).forms)
    if asked <= much and ((titled and stays) or len(distinct & there) >= _ALL_THERE * len(distinct)):
        return Loss(0.0, 0.0)
    cuts = range(0, max(1, len(mine) - _PIECE // 2), _PIECE)
    ends = [*cuts[1:], len(mine)]
    pieces = [mine[start:end] for start, end in zip(cuts, ends, strict=True)]
    runs = covered(text, other)
    kept = _kept(pieces, np.add.reduceat(runs, cuts), theirs, weights)
    worth = np.array([float(weights.of(set(piece)).sum()) for piece in pieces]) * _near_query(pieces, query, weights)
    total = float(worth.sum())
    gone = list(dict.fromkeys(form for form, run in zip(mine, runs.tolist(), strict=True) if not run))
    value = weights.of(gone) ** 2
    known = np.array([form in there for form in gone], dtype=np.bool_)
    share = float(worth @ (1.0 - kept)) / total if total else 0.0
    if _cut_off(text, runs):
        # What followed in the sentence is of the same text, wherever the query's words stand.
        return Loss(max(share, (share + 1.0 - float(runs.mean())) / 2), 1.0)
    # Words of scripts without blanks are those of whole lines: a title has none of them.
    stump = after.size < (NO_BODY if stays else _STUMP) and (not stays or text.size > len(text.words))
    if asked >= much > 0 or stump:
        return Loss(share, 1.0)
    return Loss(share, float(value[known].sum()) / float(value.sum() or 1.0))


def _cut_off(text: PageWords, runs: NDArray[np.bool_]) -> bool:
    """Whether a text is kept up to a word within a sentence: no comments and no other article begin there."""
    cut = cut_of(runs)
    if not cut:
        return False
    last, following = itertools.islice(WORD.finditer(text.body), cut - 1, cut + 1)
    between, letter = text.body[last.end() : following.start()], following[0][0]
    return between.strip(" \t\u00a0") == "" and letter.isalpha() and not letter.isupper()


def _kept(
    pieces: Sequence[Sequence[str]], runs: NDArray[np.integer], theirs: Sequence[str], weights: WordWeights
) -> Floats:
    """For each piece how much of it the other text has."""
    kept: Floats = runs / np.array([len(piece) for piece in pieces])
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(form, len(numbers)) for form in theirs], dtype=np.int64)
    for number in np.flatnonzero(kept < _SAME).tolist():
        distinct = list(dict.fromkeys(pieces[number]))
        value = weights.of(distinct)
        worth = np.zeros(len(numbers))
        for form, weight in zip(distinct, value.tolist(), strict=True):
            if form in numbers:
                worth[numbers[form]] = weight
        sums = np.concatenate([[0.0], np.cumsum(worth[places])])
        width = min(len(places), 2 * len(pieces[number]))
        most = float((sums[width:] - sums[: len(sums) - width]).max()) / float(value.sum() or 1.0)
        kept[number] = max(float(kept[number]), (most - _CHANCE) / (_SAME - _CHANCE))
    return np.clip(kept, 0.0, 1.0)


def _near_query(pieces: Sequence[Sequence[str]], query: frozenset[str], weights: WordWeights) -> Floats:
    """How much each piece counts by the words of the query in and around it, from `_FAR` to 1."""
    hits = [query.intersection(piece) for piece in pieces]
    around = [set().union(*hits[max(0, at - _AROUND_losses) : at + _AROUND_losses + 1]) for at in range(len(pieces))]
    match = np.array([float(weights.of(sorted(some)).sum()) for some in around])
    if not match.max(initial=0.0):
        return np.ones(len(pieces))
    near: Floats = _FAR + (1 - _FAR) * (match / match.max()) ** _POWER
    return near
