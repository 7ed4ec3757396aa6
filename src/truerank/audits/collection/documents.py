"""Propose: what is wrong with the documents by themselves. One pass over the collection; texts are not kept.

What grows with the documents lies in temporary files: hashes of ids, and texts of which only all documents together
tell whether something is wrong with them.
"""

from __future__ import annotations

import heapq
import pickle
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import Any, Final

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Hashes
from truerank.audits.collection.instances import Instances, instances
from truerank.audits.collection.languages import LanguageSample, asked_languages, language_of
from truerank.audits.collection.texts import (
    damage,
    doubled,
    ending,
    markup,
    measured,
    notice,
    placeholder,
    plain_words,
)  # fmt: skip
from truerank.audits.collection.topics import several_of
from truerank.near_duplicates import Shingles, Sketches
from truerank.records import Document
from truerank.sources.documents import DocumentSource, FoundDocument, open_documents
from truerank.text.identifiers import unwritable
from truerank.text.normalising import normalise
from truerank.text.printable import listed
from truerank.text.words import has_script, script_of

Row = dict[str, Any]

#: Words of a text that are looked at; texts with fewer than so many are too short to say.
_LOOKED_AT, _FEWEST_WORDS = 300, 20
#: Texts with so small a share of the usual words, beside the median, are unlike the others; from so many texts on, and
#: only where words are written apart.
_UNLIKE, _FEWEST_TEXTS, _APART = 0.25, 50, 0.25
#: Candidates that are remembered.
_MOST: Final = 20_000
#: A notice stands in place of so many documents; where such a share of it is signs, in place of one.
_SHARED_BY, _ALONE = 3, 0.5
#: The end of a sentence inside a text, and a word before it.
_INNER: Final = re.compile(r"[.!?…。！？؟।]+[\"'”’»)\]]*\s")
#: What ends a sentence in ASCII, beside a dot and a blank, and marks that are no dots.
_OTHER_MARKS: Final = ("..", '."', ".'", ".)", ".]")
_BEFORE: Final = re.compile(r"\b[^\W\d_]+\Z")
#: A word that should have ended so many texts or sentences by chance, and ended at most this share of them, ends none.
_EXPECTED, _NEVER = 20.0, 0.05
#: One length that is so much more frequent than its neighbours, at this level over all lengths, is a limit.
_SPIKE, _AROUND, _LEVEL, _LEAST, _LONGEST = 5, 10, 0.001, 100, 1 << 20


#: Bytes of values that stay in memory, and rows that are written together.
_IN_MEMORY, _TOGETHER = 1 << 20, 20


class Spool:
    """Rows of plain values that are written one after the other and read again, all of them, from the first on."""

    def __init__(self) -> None:
        # No context: it ends with the object.
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._held: list[tuple[Any, ...]] = []

    def __del__(self) -> None:
        self._file.close()

    def add(self, *values: Any) -> None:
        self._held.append(values)
        if len(self._held) == _TOGETHER:
            self._write()

    def _write(self) -> None:
        pickle.dump(self._held, self._file)
        self._held = []

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._write()
        end = self._file.tell()
        self._file.seek(0)
        while self._file.tell() < end:
            yield from pickle.load(self._file)


class _Twice:
    """Which hashes come twice."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._count = 0

    def __del__(self) -> None:
        self._file.close()

    def add(self, hashes: Hashes) -> None:
        self._count += len(hashes)
        self._file.write(hashes.tobytes())

    def found(self) -> Hashes:
        """Those that do, ascending in each part of all: one part at a time is in memory."""
        parts = np.uint64(1 + self._count // _IN_MEMORY)
        found = [np.zeros(0, np.uint64)]
        for part in range(int(parts)):
            self._file.seek(0)
            pieces = (np.frombuffer(piece, np.uint64) for piece in iter(lambda: self._file.read(8 * _IN_MEMORY), b""))
            values = np.sort(np.concatenate([found[0], *(piece[piece % parts == part] for piece in pieces)]))
            found.append(np.unique(values[1:][values[1:] == values[:-1]]))
        return np.concatenate(found)


def _middle(counts: Mapping[Any, int]) -> float:
    """The median of values that come so often each; 0 of none."""
    if not counts:
        return 0.0
    values, ends = sorted(counts), np.cumsum([counts[value] for value in sorted(counts)])
    low, high = (values[int(np.searchsorted(ends, at, side="right"))] for at in ((ends[-1] - 1) // 2, ends[-1] // 2))
    return float(low + high) / 2


class UsualWords:
    """The words that make half of the texts seen so far, and texts that hold few of them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._usual: frozenset[str] = frozenset()
        self._next = _FEWEST_TEXTS
        self._shares: Counter[float] = Counter()
        self._seen = self._held = 0
        self._candidates = Spool()

    def add(self, row: Row, words: Sequence[str]) -> None:
        """Takes the words of a text."""
        if len(words) < _FEWEST_WORDS:
            return
        words = words[:_LOOKED_AT]
        self._seen += 1
        if self._seen <= _MOST:
            self._counts.update(words)
        if self._seen == self._next:
            self._next *= 2
            self._usual = self._half()
        share = self._share(words) if self._usual else 0.0
        if self._usual:
            self._shares[share] += 1
        if share < 0.5 * _UNLIKE and self._held < _MOST:  # a median share is about a half
            self._held += 1
            self._candidates.add(row, words)

    def _half(self) -> frozenset[str]:
        words, counts = [*self._counts], np.fromiter(self._counts.values(), np.int64, len(self._counts))
        order = np.argsort(-counts, kind="stable")
        ends = np.cumsum(counts[order])
        return frozenset(words[at] for at in order[: int(np.searchsorted(ends, ends[-1] / 2)) + 1])

    def _share(self, words: Sequence[str]) -> float:
        return len([*filter(self._usual.__contains__, words)]) / len(words)

    def unlike(self) -> list[Row]:
        """The texts that hold few of the usual words, with what shows it."""
        if self._seen < 2 * _FEWEST_TEXTS:
            return []
        self._usual, middle = self._half(), _middle(self._shares)
        if middle < _APART:
            return []
        shares = ((row, words, self._share(words)) for row, words in self._candidates)
        return [
            {**row, "detail": f"{share:.0%} usual words, median {middle:.0%}: '{' '.join(words[:8])}'"}
            for row, words, share in shares
            if share <= _UNLIKE * middle
        ]


class Endings:
    """The words with which texts and sentences end."""

    def __init__(self) -> None:
        self._ends: Counter[str] = Counter()
        self._total = 0
        self._wanted: Collection[str] | None = None

    def add(self, text: str, words: Sequence[str]) -> bool:
        """Takes a normalised text and its words; says whether a sentence ends inside it."""
        last = [sentence[sentence.rfind(" ") + 1 :] for sentence in _sentences(text)]
        inner = [word.casefold() for one in last if (word := one if one.isalpha() else _last_word(one))]
        ends = [*inner, *words[-1:]]
        self._total += len(ends)
        self._ends.update(ends if self._wanted is None else filter(self._wanted.__contains__, ends))
        return bool(inner)

    def only(self, words: Collection[str]) -> None:
        """Counts no others from now on: nobody will ask for these."""
        self._wanted = words
        self._ends = Counter({word: count for word, count in self._ends.items() if word in words})

    def never_last(self, words: Mapping[str, int]) -> frozenset[str]:
        """Frequent words that end next to no text or sentence, such as articles; one letter may be a name's."""
        share = self._total / max(1, sum(words.values()))
        return frozenset(
            word
            for word, count in words.items()
            if len(word) > 1 and count * share >= _EXPECTED and self._ends[word] - 1 <= _NEVER * count * share
        )


def _sentences(text: str) -> list[str]:
    """The sentences of a normalised text that end inside it, without the marks at their ends."""
    if text.isascii() and "!" not in text and "?" not in text:  # faster than the pattern
        *sentences, end = text.split(". ")
        # Most dots stand before a blank, or at the end.
        if text.count(".") == len(sentences) + end.endswith(".") or not any(map(text.__contains__, _OTHER_MARKS)):
            return sentences
    return _INNER.split(text)[:-1]


def _last_word(sentence: str) -> str:
    """The word with which a sentence ends; empty where none does."""
    last = sentence[sentence.rfind(" ") + 1 :]
    if last.isalpha():
        return last
    found = _BEFORE.search(last)
    return "" if found is None else found[0]


def limits(lengths: Mapping[int, int]) -> dict[int, int]:
    """Lengths at which far more texts end than at any length beside them, with the number of texts.

    A text that was cut at a blank is one shorter: the two lengths count as one.
    """
    short = [length for length in lengths if length <= _LONGEST]
    counts = np.zeros(max([_LEAST - 1, *short]) + 1)
    counts[short] = [lengths[length] for length in short]
    found = {}
    for length in np.flatnonzero(counts >= _SPIKE):
        here = counts[length - 1 : length + 1].sum()
        beside = np.append(counts[max(0, length - 1 - _AROUND) : length - 1], counts[length + 1 :][:_AROUND])
        usual = 2 * beside.max(initial=0.5)
        if length >= _LEAST and scipy.special.pdtrc(here - 1, usual) * np.count_nonzero(counts) <= _LEVEL:
            found[int(length)] = int(here)
    return found


def repeated(notices: Iterable[Sequence[Any]]) -> list[Row]:
    """Rows of notices whose text others have too, but for numbers and addresses, or that say nothing beside it.

    Other texts may be about errors.

    Args:
        notices: a row and its text each.
    """
    kept = [(row, text, " ".join(filter(str.isalpha, text.split()))) for row, text in notices]
    often = Counter(form for *_, form in kept)
    return [row for row, text, form in kept if often[form] >= _SHARED_BY or notice(text, share=_ALONE)]


#: A document is short or long by comparison with the median, at these factors and these numbers of letters.
_SHORT, _SHORT_LETTERS = 5, 20
_LONG, _LONG_LETTERS = 30, 1000
#: Documents of one greatest length, in characters or words: so many and such a share of all were cut there.
_CUT_COUNT, _CUT_SHARE, _CUT_LEAST = 5, 0.002, 100
#: A way to end that so few documents have (of all, or of those in which a sentence ends) is unusual, if there are
#: enough documents to say so.
_ODD_SHARE, _ODD_IN_SENTENCES, _ODD_FEWEST = 0.02, 0.05, 100
#: Documents whose words are counted; a last word may be the beginning of one that stands so often in them.
_COUNTED: Final = 50_000
_OFTEN: Final = 5
#: Documents in another script or language than nearly all are foreign, and in any collection those in a script that so
#: few have; from so many documents on.
_NEARLY_ALL, _SCRIPT_SHARE, _SCRIPT_FEWEST = 0.85, 0.01, 50
#: The share of the letters of a document in another script that names in the usual one make, at most.
_NAMES: Final = 0.15
#: Characters of a document that tell.
_BEGINNING: Final = 600
#: Titles without a body lack one where they are a smaller share of the documents; in other collections a title may be
#: all that there is.
_FEW_TITLES: Final = 0.5
#: Documents of a list of extreme ones.
_LISTED: Final = 100
#: Candidates that are remembered for one kind.
_MOST_HELD: Final = 200_000
#: Characters of a text that are looked through for damage and markup, at its beginning and at its end.
_LETTERS_LOOKED_AT: Final = 20_000


class ExtremeDocuments:
    """The first and last documents by place, by id and by length, gathered in one pass."""

    def __init__(self) -> None:
        self._seen = 0
        self._first: list[str] = []
        self._last = deque[str](maxlen=_LISTED)
        self._longest, self._highest = list[tuple[int, str]](), list[tuple[int, str]]()

    def add(self, doc_id: str, characters: int) -> None:
        """Takes a document."""
        self._seen += 1
        if len(self._first) < _LISTED:
            self._first.append(doc_id)
        self._last.append(doc_id)
        digits = len(doc_id) if doc_id.isdecimal() else 0
        for kept, key in ((self._longest, (characters, doc_id)), (self._highest, (digits, doc_id))):
            if len(kept) < _LISTED:
                heapq.heappush(kept, key)
            elif key > kept[0]:
                heapq.heapreplace(kept, key)

    def lists(self) -> dict[str, list[str]]:
        """The lists by name, the first document first."""
        if not self._seen:
            return {}
        longest, highest = (
            [doc_id for _, doc_id in sorted(kept, reverse=True)] for kept in (self._longest, self._highest)
        )
        lists = {
            "first of the file first": self._first, "last of the file first": reversed(self._last),
            "longest first": longest, "highest id first": highest,
        }  # fmt: skip
        # A list names a document once, also where its id comes twice.
        return {name: [*dict.fromkeys(ids)] for name, ids in lists.items()}


@dataclass(eq=False)
class DocumentTable:
    """What one pass over the documents found.

    Attributes:
        present: of the ids that were asked for, those that exist.
        found: rows by kind of finding.
        repeated: ids that are there more than once.
        extremes: the first and last documents by place, id and length.
        lengths: characters of those that were asked for.
        places: their places in the source.
        asked: the ids that were asked for.
        kept: the texts of those that exist, the first of each id.
        sketches: what near-duplicates are found by, of the documents that `distinct` gives; None where nobody kept it.
        titles: what is wrong with titles beside bodies.
        counts: how many instances there are of the kinds of which not each has a row.
    """

    source: DocumentSource
    count: int = 0
    present: set[str] = field(default_factory=set)
    found: dict[str, list[Row]] = field(default_factory=dict)
    repeated: frozenset[str] = frozenset()
    empty: set[str] = field(default_factory=set)
    extremes: ExtremeDocuments = field(default_factory=ExtremeDocuments)
    lengths: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    sketches: Sketches | None = None
    titles: Sequence[Instances] = ()
    counts: dict[str, int] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    kept: Spool = field(default_factory=Spool)

    def distinct(self) -> Iterator[Document]:
        """The first document of each id, those without a text left out."""
        seen: set[str] = set()
        for block in self.source.records():
            for record in block:
                document = record.document
                if document.doc_id in self.repeated:
                    if document.doc_id in seen:
                        continue
                    seen.add(document.doc_id)
                if document.doc_id not in self.empty:
                    yield document

    def ids(self) -> Iterator[str]:
        """All ids; those that come twice may be given once."""
        if self.sketches is None:
            return (record.document.doc_id for block in self.source.records() for record in block)
        kept = (self.sketches.ids(block) for block in range(len(self.sketches.sizes)))
        return chain(chain.from_iterable(kept), self.empty)

    def compared(self, options: Shingles) -> Iterator[Document] | Sketches:
        """The documents of `distinct`, or what was kept to compare them by such shingles."""
        kept = self.sketches
        same = kept is not None and options.identity == kept.options.identity
        return kept if kept is not None and same else self.distinct()

    def texts(self, wanted: Collection[str]) -> dict[str, str]:
        """The texts of some documents; only those that were not asked for cost a pass over all."""
        chosen = frozenset(wanted)
        others = chosen - self.asked
        held = (chosen & self.present) - self.empty
        found = {doc_id: text for doc_id, text in self.kept if doc_id in held} if held else {}
        return found | ({one.doc_id: one.text for one in self.distinct() if one.doc_id in others} if others else {})

    def instances(self) -> Iterator[Instances]:
        """What was found, by kind."""
        for kind, rows in self.found.items():
            yield instances(kind, rows, self.count, self.counts.get(kind))
        yield from self.titles


class DocumentScan:
    """What is gathered over the documents in one pass: rows by kind, and how often each length comes.

    Args:
        beside: take every document as well.
        topics: the texts of the topics; None for no topics.
        relevant: the ids of relevant documents.
    """

    def __init__(
        self,
        source: str,
        asked: Collection[str] = (),
        beside: Sequence[Callable[[Document], None]] = (),
        topics: Collection[str] | None = None,
        relevant: Collection[str] = (),
    ) -> None:
        self._beside, self._topics, self._relevant = beside, topics, relevant
        self.table = DocumentTable(open_documents(source, keep_empty=True), asked=frozenset(asked))
        self.ids = _Twice()
        #: How many documents have each number of characters, words and letters, and of characters of the body.
        self.sizes: tuple[Counter[int], ...] = (Counter(), Counter(), Counter(), Counter())
        self.sized = 0
        self.endings: Counter[str] = Counter()
        self.scripts: Counter[str] = Counter()
        self.relevant_scripts: Counter[str] = Counter()
        self.in_sentences: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.short, self.long, self.last, self.foreign, self.notices = Spool(), Spool(), Spool(), Spool(), Spool()
        self.titles, self.lone_titles = Spool(), 0
        self.ends, self.usual, self.sample = Endings(), UsualWords(), LanguageSample()
        self.kinds: dict[str, list[Row]] = {
            kind: []
            for kind in (
                "empty-document", "unwritable-document-id", "undecodable-document", "wrong-decoding",
                "lost-characters", "markup", "placeholder", "doubled-text",
            )
        }  # fmt: skip

    def documents(self) -> Iterator[Document]:
        """Reads all documents, and hands on those that have a text."""
        for block in self.table.source.records():
            names = [record.document.doc_id for record in block]
            self.ids.add(pl.Series(names, dtype=pl.String).hash().to_numpy())
            self.table.present |= self.table.asked.intersection(names)
            self.table.count += len(block)
            for record in block:
                self._look(record)
                if record.document.doc_id not in self.table.empty:
                    yield record.document

    def _look(self, record: FoundDocument) -> None:
        document = record.document
        row: Row = {"doc_id": document.doc_id, "line": record.line}
        raw = document.text
        for take in self._beside:
            take(document)
        text = normalise(raw)
        self.table.extremes.add(document.doc_id, len(text))
        if document.doc_id in self.table.asked:
            if document.doc_id not in self.table.lengths:
                self.table.kept.add(document.doc_id, raw)
            self.table.lengths[document.doc_id] = len(text)
            self.table.places[document.doc_id] = len(self.table.places) + 1
        if unwritable(document.doc_id):
            self._note("unwritable-document-id", row, f"id '{document.doc_id[:80]}'")
        if not text:
            self._note("empty-document", row, "")
            self.table.empty.add(document.doc_id)
            return
        ends = raw if len(raw) <= 2 * _LETTERS_LOOKED_AT else raw[:_LETTERS_LOOKED_AT] + raw[-_LETTERS_LOOKED_AT:]
        found = damage(ends)
        if record.repaired:
            self._note("undecodable-document", row, "read as Latin-1")
        elif found is not None:
            self._note(found[0], row, found[1])
        if left := markup(ends):
            self._note("markup", row, left)
        if placeholder(text):
            self._note("placeholder", row, f"'{text[:80]}'")
            return
        if seen := notice(text, titled=bool(document.title and document.body)):
            self.notices.add({**row, "detail": seen}, text)
        body = normalise(document.body) if document.title else text
        self._body(row, text, body, document.title)
        self._sized(row, text, len(body))

    def _body(self, row: Row, text: str, body: str, title: str) -> None:
        if title and (not body or placeholder(body)):
            self.lone_titles += 1
            if self.lone_titles <= _MOST_HELD:
                self.titles.add({**row, "detail": f"'{text[:60]}'"})
        if doubled(body):
            self._note("doubled-text", row, f"'{text[:60]}'")

    def _sized(self, row: Row, text: str, body: int) -> None:
        size = measured(text)
        for counts, length in zip(self.sizes, (*size, body), strict=True):
            counts[length] += 1
        if size.letters < _SHORT_LETTERS:
            self.short.add({**row, "detail": f"'{text[:60]}'"}, size.letters)
        if size.letters > _LONG_LETTERS:
            self.long.add(row, size.letters)
        script = script_of(text)
        self.scripts[script] += 1
        if script and row["doc_id"] in self._relevant:
            self.relevant_scripts[script] += 1
        usual = self.scripts.most_common(1)[0][0]
        if script and script != usual and self.held[script] < _MOST_HELD:
            self.held[script] += 1
            self.foreign.add(row, script, text[:_BEGINNING])
        self.sized += 1
        counted = self.sized <= _COUNTED
        words = plain_words(text if counted else text[:_LETTERS_LOOKED_AT])
        if counted:
            self.words.update(words)
        elif self.sized == _COUNTED + 1:
            self.ends.only(self.words)
        if script == usual:
            self.usual.add(row, words)
            self.sample.add(text)
        kind, sentences = ending(text), self.ends.add(text, words if counted else ())
        self.endings[kind] += 1
        self.in_sentences[kind] += sentences
        if kind != "mark" and self.held["last"] < _MOST_HELD:
            self.held["last"] += 1
            self.last.add(row, kind, text[-60:], sentences, (size.characters, size.words, body))

    def _note(self, kind: str, row: Row, detail: str) -> None:
        self.kinds[kind].append({**row, "detail": detail})

    def finish(self) -> DocumentTable:
        """Brings together what only the whole collection shows."""
        middle = _middle(self.sizes[2])
        self.kinds["short-document"] = [
            {**row, "detail": f"{size} letters, median {middle:,.0f}: {row['detail']}"}
            for row, size in self.short
            if size * _SHORT < middle
        ]
        self.kinds["long-document"] = [
            {**row, "detail": f"{size:,d} letters, median {middle:,.0f}"}
            for row, size in self.long
            if size > _LONG * middle
        ]
        if self.lone_titles < _FEW_TITLES * self.sized:
            self.kinds["missing-body"] = [row for (row,) in self.titles]
            self.table.counts["missing-body"] = self.lone_titles
        self.kinds["error-page"] = repeated(self.notices)
        self.kinds["cut-document"] = self._cut()
        self.kinds["foreign-script"] = self._foreign()
        self.kinds["foreign-language"] = self._other_languages()
        named = {row["doc_id"] for row in self.kinds["foreign-language"]}
        self.kinds["foreign-words"] = [row for row in self.usual.unlike() if row["doc_id"] not in named]
        self._repeats()
        self.table.found = self.kinds
        return self.table

    def _cut(self) -> list[Row]:
        """Documents that end at one length, in an unusual way, behind a word that ends nothing, or inside a word."""
        places = self._limits()
        total, within = self.endings.total(), self.in_sentences.total()
        odd = total >= _ODD_FEWEST and self.endings["letter"] < _ODD_SHARE * total
        odd_within = within >= _ODD_FEWEST and self.in_sentences["letter"] < _ODD_IN_SENTENCES * within
        never = self.ends.never_last(self.words)
        starts = self._beginnings({end.split()[-1] for _, kind, end, *_ in self.last if kind == "letter"})
        found = []
        for row, kind, end, sentences, lengths in self.last:
            last = end.split()[-1]
            reached = [why for column, top, most, why in places if top - 1 <= lengths[column] <= most]
            if reached:
                found.append({**row, "detail": f"{reached[0]}: '…{end}'"})
            elif kind != "letter":
                continue
            elif odd or (odd_within and sentences):
                share = _ODD_SHARE if odd else _ODD_IN_SENTENCES
                found.append({**row, "detail": f"ends with a letter, unlike {1 - share:.0%} of them: '…{end}'"})
            elif last.casefold() in never:
                found.append({**row, "detail": f"'{last}' ends next to no other text: '…{end}'"})
            elif last in starts:
                found.append({**row, "detail": f"'{last}' may be the beginning of '{starts[last]}': '…{end}'"})
        return found

    def _limits(self) -> list[tuple[int, int, float, str]]:
        """Lengths at which documents were cut: which length, from where, to where, and what shows it."""
        found: list[tuple[int, int, float, str]] = []
        for column, at, noun in ((0, 0, "characters"), (1, 1, "words"), (3, 2, "characters of the body")):
            counts = self.sizes[column]
            top = max(counts, default=0)
            here = sum(counts[length] for length in range(top - (at == 0), top + 1))
            if top >= _CUT_LEAST and max(_CUT_COUNT, _CUT_SHARE * self.sized) <= here < 0.9 * self.sized:
                found.append((at, top, np.inf, f"{here:,d} documents end at {top:,d} {noun}"))
            # Words have few lengths, and many documents at each.
            spikes = {} if at == 1 else limits(counts)
            found += [(at, one, one, f"{count:,d} documents end at {one:,d} {noun}") for one, count in spikes.items()]
        return found

    def _beginnings(self, last: Collection[str]) -> dict[str, str]:
        """Of last words that stand nowhere else, the frequent word that they may be the beginning of."""
        alone = {one: form[0] for one in last if len(form := plain_words(one)) == 1 and self.words[form[0]] <= 1}
        if not alone:
            return {}
        often = sorted(word for word, count in self.words.items() if count >= _OFTEN)
        places = np.searchsorted(np.array(often, object), list(alone.values()))
        nearest = {one: (form, often[place]) for (one, form), place in zip(alone.items(), places, strict=True)
                   if place < len(often)}  # fmt: skip
        return {
            one: word
            for one, (form, word) in nearest.items()
            if 1 < len(form) < len(word) - 1 and word.startswith(form)
        }

    def _foreign(self) -> list[Row]:
        known = Counter({script: count for script, count in self.scripts.items() if script})
        total = known.total()
        if total < _SCRIPT_FEWEST:
            return []
        topics = Counter(filter(None, map(script_of, self._topics or ())))
        asked = several_of(topics) & known.keys()
        wanted = asked | several_of(self.relevant_scripts)
        large = [script for script in known if script in asked and known[script] > (1 - _NEARLY_ALL) * total]
        usual = max(large or known, key=known.__getitem__)
        others = [script for script in known if script != usual]
        few = total if known[usual] >= _NEARLY_ALL * total or asked else _SCRIPT_SHARE * total
        rare = {script for script in others if known[script] <= few and script not in wanted}
        several = {script: known[script] for script in others if script not in rare}
        self.table.counts["several-scripts"] = sum(several.values())
        self.kinds["several-scripts"] = [
            {"detail": f"{count / total:.1%} of the documents are {script.lower()}{self._in_topics(topics, script)}"}
            for script, count in several.items()
        ]
        whole = all(self.held[script] >= min(known[script], _MOST_HELD) for script in rare)
        return [
            {**row, "detail": f"{script.lower()}, not {usual.lower()}{self._in_topics(topics, script)}: '{text[:60]}'"}
            for row, script, text in (self.foreign if whole else self._read_again(rare))
            if script in rare and not has_script(text, usual, _NAMES)
        ]

    def _in_topics(self, topics: Counter[str], script: str) -> str:
        if self._topics is None:
            return ""
        count = topics[script]
        return f"; {count:,d} of {topics.total():,d} topics are" if count else "; no topic is"

    def _other_languages(self) -> list[Row]:
        """Documents in languages that neither topics nor relevant documents are in; they are read once more for it."""
        languages = self.sample.languages()
        if not languages:
            return []
        asked = several_of(asked_languages(self._topics or (), languages))
        sizes = [one.texts for one in languages]
        large = [at for at in asked if sizes[at] > (1 - _NEARLY_ALL) * sum(sizes)]
        usual = max(large or range(len(sizes)), key=sizes.__getitem__)
        # Without topics in one of them nobody can say which of several languages are meant.
        several = not asked and sizes[usual] < _NEARLY_ALL * sum(sizes)
        told = "; no topic is" if asked else ""
        foreign = {at for at in range(len(sizes)) if at != usual and at not in asked}
        rows: dict[int, list[Row]] = {at: [] for at in foreign}
        count, relevant = Counter[int](), Counter[int]()
        for block in self.table.source.records() if foreign else ():
            for document, line in ((record.document, record.line) for record in block):
                text = normalise(document.text[:_LETTERS_LOOKED_AT])[:_BEGINNING]
                if (at := language_of(text, languages)) is None:
                    continue
                relevant[at] += document.doc_id in self._relevant
                count[at] += at in foreign
                if at in foreign and len(rows[at]) < _MOST_HELD:
                    words = ", ".join(f"'{word}'" for word in languages[at].keys[:3])
                    detail = f"words such as {words}, not '{languages[usual].keys[0]}'{told}: '{text[:60]}'"
                    rows[at].append({"doc_id": document.doc_id, "line": line, "detail": detail})
        # Languages of relevant documents are meant, or got among them unseen: they are told.
        judged = several_of(relevant)
        meant = foreign if several else foreign & judged
        foreign = foreign - meant
        if meant:
            known, shares = self.table.counts.get("several-scripts", 0), {at: count[at] / self.sized for at in meant}
            self.table.counts["several-scripts"] = known + sum(count[at] for at in meant)
            self.kinds["several-scripts"] = self.kinds.get("several-scripts", []) + [
                {"detail": f"{share:.1%} of the documents have words such as {listed(languages[at].keys[:3])}{told}"}
                for at, share in sorted(shares.items())
            ]
        self.table.counts["foreign-language"] = sum(count[at] for at in foreign)
        return [row for at in sorted(foreign) for row in rows[at]]

    def _read_again(self, scripts: Collection[str]) -> Iterator[tuple[Row, str, str]]:
        """Documents in some scripts: of those at the beginning of the source nobody knew that others follow."""
        for block in self.table.source.records():
            for document, line in ((record.document, record.line) for record in block):
                text = normalise(document.text)
                if (script := script_of(text)) in scripts:
                    yield {"doc_id": document.doc_id, "line": line}, script, text[:_BEGINNING]

    def _repeats(self) -> None:
        """Ids that are there twice; only where there are some, the source is read again."""
        several = self.ids.found()
        same, other = list[Row](), list[Row]()
        first, repeated = dict[str, str](), set[str]()
        for block in self.table.source.records() if len(several) else ():
            names = pl.Series([record.document.doc_id for record in block], dtype=pl.String)
            for place in np.flatnonzero(np.isin(names.hash().to_numpy(), several)):
                document, line = block[place].document, block[place].line
                text = normalise(document.text)
                if document.doc_id not in first:
                    first[document.doc_id] = text
                    continue
                repeated.add(document.doc_id)
                equal = first[document.doc_id] == text
                detail = f"'{text[:80]}'" if equal else f"'{text[:60]}'; before it '{first[document.doc_id][:60]}'"
                (same if equal else other).append({"doc_id": document.doc_id, "line": line, "detail": detail})
        self.kinds["repeated-id"], self.kinds["conflicting-id"] = same, other
        self.table.repeated = frozenset(repeated)
