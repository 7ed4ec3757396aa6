"""Evidence from the texts: judged documents that lack in one version what answered the query in another."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import frame_schema
from truerank.audits.transfer.scanning.scores import id_column
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Document
from truerank.text.page_faults import NO_BODY, Loss, PageWords, WordWeights, lost_share, shows_no_page, word_weights

#: One row per text: the share of what was asked for that other documents have, how many have nearly all of it, and how
#: many of the same version have little else.
REPEATED_SCHEMA: Final = {"elsewhere": pl.Float64, "copies": pl.Int64, "alone": pl.Int64}
#: Words of a run: shorter ones are in other documents by chance. A line of at least so few words is a run itself.
_RUN: Final = 5
_LINE: Final = 3
#: Runs that stand for a text, at even distances.
_RUNS: Final = 32
#: A document has nearly all of a text with so large a share of its runs.
_SAME: Final = 0.8
#: Less where it is about all that the document has: notices name addresses and times. "About all": not more than so
#: many times the runs of the text, and some.
_NEARLY: Final = 0.6
_LITTLE_ELSE: Final = 1.5
_SOME: Final = 10
#: Documents of one text that are remembered, to know them again in the next version.
_REMEMBERED: Final = 64
#: Of the lines of a text, those that match the query at least so well as this share of the best match.
_MATCH: Final = 0.5
_WORD: Final = re.compile(r"\w+")
#: In ASCII, blanks for all that `_WORD` leaves out.
_BLANKS: Final = "".join(chr(code) if _WORD.match(chr(code)) else " " for code in range(128))
_LENGTHS: Final = range(_LINE, _RUN + 1)
#: A word is rare where fewer than one of fifty documents has it; by chance, a notice is on a subject this often.
_RARE: Final = math.log(50)
_BY_CHANCE: Final = 0.01
#: An odd number that mixes hashes: 2 ** 64 over the golden ratio.
_FACTOR: Final = np.int64(-7046029254386353131)
_END: Final = re.compile(r"\n|(?<=[.!?])\s")


class NewText(NamedTuple):
    """What only one version of a document has.

    Attributes:
        runs: hashes of some of its runs of words.
        asked: likewise, of the lines that match the query best.
        ids: of the document in each version, which is not another one; None where a version lacks it.
        version: the place of the version.
        size: how many runs the document has, those too that the other version has.
        keys: of `runs` and `asked` by their length, in words, see `_keys`.
        on_subject: its body has rare words of the other version or of the query, more than chance explains.
    """

    runs: frozenset[int]
    asked: frozenset[int]
    ids: tuple[str | None, ...]
    version: int = 0
    size: int = 0
    keys: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    on_subject: bool = False


def word_runs(document: Document) -> Iterator[tuple[str, ...]]:
    """The runs of words of a document, line by line and sentence by sentence: a list of titles has those of them."""
    for words in _lines(f"{document.title}\n{document.body}"):
        yield from _runs(words)


def new_text(
    one: Document,
    other: Document,
    query: frozenset[str],
    weights: WordWeights,
    ids: tuple[str | None, ...],
    *,
    version: int = 0,
) -> NewText:
    """What a version has that another lacks."""
    there = set(word_runs(other))
    lines = list(_lines(one.body))
    if sum(map(len, lines)) < NO_BODY:
        lines = list(_lines(f"{one.title}\n{one.body}"))
    new = [(words, runs) for words in lines if (runs := [run for run in _runs(words) if run not in there])]
    asked = [weights.of(sorted(query.intersection(PageWords("", " ".join(words)).forms))).sum() for words, _ in new]
    least = _MATCH * max(asked, default=0.0)
    best = [runs for match, (_, runs) in zip(asked, new, strict=True) if match >= least]
    chosen, asked_for = _some(runs for _, runs in new), _some(best)
    size = len(set(word_runs(one)))
    by_length = {length: [run for run in (*chosen, *asked_for) if len(run) == length] for length in _LENGTHS}
    keys = {length: tuple(_keys([word for run in some for word in run], length)[::length].tolist())
            for length, some in by_length.items() if some}  # fmt: skip
    subject = query.union(PageWords(other.title, other.body).whole.forms)
    about = _on_subject(set(PageWords("", one.body).forms), subject, weights)
    return NewText(frozenset(map(hash, chosen)), frozenset(map(hash, asked_for)), ids, version, size, keys, about)


def _on_subject(forms: set[str], subject: frozenset[str], weights: WordWeights) -> bool:
    """Whether a text has more rare words of a subject than a text of anything else would have by chance.

    A weight is the negative logarithm of the share of documents that have the word: the sum of the shares is how many
    words are there by chance. So names and numbers tell a translation from a notice in another language.
    """
    known = sorted(forms)
    values = weights.of(known)
    rare = values >= _RARE
    both = sum(form in subject for form, is_rare in zip(known, rare.tolist(), strict=True) if is_rare)
    return both > 1 and float(scipy.special.gammainc(both, np.exp(-values[rare]).sum())) < _BY_CHANCE


def _some(lines: Iterable[Sequence[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """Runs at even distances."""
    runs = list(dict.fromkeys(run for line in lines for run in line))
    return runs[:: -(-len(runs) // _RUNS)] if runs else []


def _lines(text: str) -> Iterator[list[str]]:
    return (words for line in _END.split(text.lower()) if len(words := _WORD.findall(line)) >= _LINE)


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    if len(words) < _RUN:
        return iter((tuple(words),))
    return zip(*(words[start:] for start in range(_RUN)), strict=False)


def _keys(words: Sequence[str], length: int) -> NDArray[np.int64]:
    """A number for each run of so many words, whatever lines they stand in; shape (words - length + 1,)."""
    hashes = np.fromiter(map(hash, words), np.int64, len(words))
    count = max(0, len(words) - length + 1)
    keys = np.zeros(count, np.int64)
    for place in range(length):
        # Overflow is part of it.
        keys = keys * _FACTOR + hashes[place : place + count]
    return keys


def _words(document: Document) -> list[str]:
    """All words of a document; of ASCII in a third of the time."""
    text = f"{document.title}\n{document.body}".lower()
    return text.translate(_BLANKS).split() if text.isascii() else _WORD.findall(text)


class _Filter:
    """Passes on the documents that may have a run that is looked for; most have none, and need no more than this.

    Args:
        texts: what is looked for.
    """

    def __init__(self, texts: Sequence[NewText]) -> None:
        self.keys: dict[int, NDArray[np.int64]] = {}
        self.some: dict[int, NDArray[np.bool_]] = {}
        for length in _LENGTHS:
            keys = np.unique(np.array([key for one in texts for key in one.keys.get(length, ())], np.int64))
            if len(keys):
                self.keys[length] = keys
                self.some[length] = np.zeros(1 << max(16, (8 * len(keys)).bit_length()), np.bool_)
                self.some[length][self._places(keys, length)] = True

    def _places(self, keys: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """Where a key is in the table that tells most keys that are not looked for from the others."""
        mixed = keys * _FACTOR
        return (mixed >> 20) & (len(self.some[length]) - 1)

    def passed(self, documents: Sequence[Document]) -> Iterator[Document]:
        """The documents in their order, without those that have nothing."""
        words = [_words(document) for document in documents]
        ends = np.cumsum([len(some) for some in words])
        every = [word for some in words for word in some]
        may = np.zeros(len(documents), np.bool_)
        for length, wanted in self.keys.items():
            # Runs from one document into the next are not runs; the document is then looked at in vain.
            keys = _keys(every, length)
            at = np.flatnonzero(self.some[length][self._places(keys, length)])
            nearest = wanted[np.minimum(np.searchsorted(wanted, keys[at]), len(wanted) - 1)]
            may[np.searchsorted(ends, at[nearest == keys[at]], side="right")] = True
        return itertools.compress(documents, may.tolist())


def repeated_texts(texts: Sequence[NewText], versions: Sequence[Iterable[Sequence[Document]]]) -> pl.DataFrame:
    """How much of each text other documents have, in any version.

    Each version is read once, as a stream; memory grows with the texts that are looked for.
    """
    copies = np.zeros((max(1, len(versions)), len(texts)), np.int64)
    alone = np.zeros(len(texts), np.int64)
    standing = np.zeros(len(texts), np.bool_)
    having: defaultdict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(texts):
        for run in one.runs | one.asked:
            having[run].append(number)
    filtered = _Filter(texts)
    found: list[set[int]] = [set() for _ in texts]
    seen: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for place, blocks in enumerate(versions):
        for document in (document for block in blocks for document in filtered.passed(block)):
            shared: Counter[int] = Counter()
            runs = set(map(hash, word_runs(document)))
            for run in having.keys() & runs:
                for number in having[run]:
                    if document.doc_id != texts[number].ids[place]:
                        shared[number] += run in texts[number].runs
                        found[number].add(run)
            for number, count in shared.items():
                one = texts[number]
                copies[place, number] += count >= _SAME * len(one.runs)
                if count and count >= _NEARLY * len(one.runs) and len(runs) <= _LITTLE_ELSE * one.size + _SOME:
                    alone[number] += place == one.version
                    key = document.url or document.doc_id
                    standing[number] |= seen[number].get(key, place) != place
                    if len(seen[number]) < _REMEMBERED:
                        seen[number].setdefault(key, place)
    shares = [len(some & one.asked) / max(1, len(one.asked)) for some, one in zip(found, texts, strict=True)]
    alone[standing | np.fromiter((one.on_subject for one in texts), np.bool_, len(texts))] = 0
    return pl.DataFrame({"elsewhere": shares, "copies": copies.max(axis=0), "alone": alone}, schema=REPEATED_SCHEMA)


#: One row per judged document and pair of versions that differ: the share of what answered the query in one version
#: that the other lacks, both ways; whether the words of one stand for the loss of a page; how much of its title, and of
#: its address, its body speaks of; and how much of what only this version has is in other documents, how many of them
#: have nearly all of it, and how many of the same version have little else.
TEXT_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "row: UInt32, first second: String, lost_in_second lost_in_first: Float64, first_is_no_page "
    "second_is_no_page: Boolean, first_coherence second_coherence first_elsewhere second_elsewhere: Float64, "
    "first_copies second_copies first_alone second_alone: Int64"
)
#: A larger share is a candidate; chosen, as are the numbers below, on development draws of
#: studies/transfer_planted.py.
TEXT_CUT_OFF: Final = 0.4
#: Up to this share the texts contradict what scores name: next to nothing of what answered the query is lost.
TEXT_FLOOR: Final = 0.1
#: Up to this share a version has lost nothing: the other one is a part of it.
_NOTHING: Final = 0.2
#: Then what only the other one has must be about the same: so much of its words, by weight, is in the rest, too.
_AKIN: Final = 0.02
#: With a larger share, what only one version has is that of other documents. It is no loss of the other version where
#: it is of several, as a list of related pages, or where so many have nearly all of it, as menus.
_ELSEWHERE: Final = 0.5
_MANY: Final = 3
#: How much more probable it is that the judged version is the relevant one, where nothing else is known: of the errors
#: that the transfer paper estimates (MaxP, section 5), 13,117 lie in the later version and 3,954 in the judged one.
_JUDGED_ODDS: Final = 13_117 / 3_954
#: What speaks against a version, as log odds: other documents have what only it has, as where a redirect leads to
#: another page; its body does not speak of its title.
_REPEATED: Final = 4.0
_INCOHERENT: Final = 3.0
#: Of two versions that each lack much of the other, the better one must be more probable by this, as log odds.
_SURE: Final = 0.5
_NAME: Final = re.compile(r"[^\W\d_]{3,}")
_AT_ONCE: Final = 1 << 10
_ALL: Final = 0.95
_SAMPLE: Final = 2_000
_EDGE: Final = 1e-6


def text_losses(
    rows: pl.DataFrame,
    pairs: Sequence[tuple[str, str]],
    texts: Mapping[str, Path],
    documents: Mapping[str, Iterable[Sequence[Document]]],
) -> pl.DataFrame:
    """What each version of the judged documents lacks of what answered the query in another."""
    opened = {name: DocumentTexts(path) for name, path in texts.items()}
    weights = _weights(rows, opened[pairs[0][0]], id_column(pairs[0][0]))
    new: list[NewText] = []
    parts = [pl.DataFrame(schema=TEXT_SCHEMA)]
    for part in rows.iter_slices(_AT_ONCE):
        found = [line for pair in pairs for line in _losses(part, pair, opened, weights, new)]
        parts.append(pl.DataFrame(found, schema=TEXT_SCHEMA, orient="row"))
    losses = pl.concat(parts)
    if losses.is_empty():
        return losses
    repeated = repeated_texts(new, [documents[name] for name in texts])
    return losses.with_columns(
        repeated[kind].gather(losses[f"{side}_copies"]).alias(f"{side}_{kind}")
        for side in ("first", "second")
        for kind in ("elsewhere", "copies", "alone")
    )


def favoured(losses: pl.DataFrame, better: str, judged: str, *, odds: bool, support: bool = False) -> pl.DataFrame:
    """The rows in which the texts speak for one version, and by how much.

    The other version must lack more than `TEXT_CUT_OFF` of what answered the query. A version without a page's words
    never is the better one. A version that lost nothing is, unless what it has more is that of other documents. Of two
    that each lack much of the other, the more probable one is: P(better is relevant, worse is not) / P(worse is, better
    is not) = odds(better) / odds(worse) where the two are independent, times the odds of the judged version, those of
    a text that other documents have, and those of a body that does not speak of its title.
    """
    one = pl.col("first") == better

    def sides(name: str) -> tuple[pl.Expr, pl.Expr]:
        first, second = pl.col(f"first_{name}"), pl.col(f"second_{name}")
        return pl.when(one).then(first).otherwise(second), pl.when(one).then(second).otherwise(first)

    lost = pl.when(one).then("lost_in_second").otherwise("lost_in_first")
    back = pl.when(one).then("lost_in_first").otherwise("lost_in_second")
    (here, there), coherence, copies = sides("is_no_page"), sides("coherence"), sides("copies")
    others = [share > _ELSEWHERE for share in sides("elsewhere")]
    score = {side: pl.col(f"max_{side}") for side in ("better", "worse")}
    if odds:
        score = {side: (p.clip(_EDGE, 1 - _EDGE) / (1 - p.clip(_EDGE, 1 - _EDGE))).log() for side, p in score.items()}
    ahead = score["better"] - score["worse"]
    prior = float(np.log(_JUDGED_ODDS))
    versions = pl.when(one).then("second").otherwise("first")
    if odds:
        ahead += pl.when(pl.lit(better) == judged).then(prior).when(versions == judged).then(-prior).otherwise(0.0)
    else:
        ahead = ahead.sign()
    ahead += _REPEATED * (others[1].cast(pl.Float64) - others[0].cast(pl.Float64))
    ahead += _INCOHERENT * (coherence[0] - coherence[1])
    least = TEXT_FLOOR if support else TEXT_CUT_OFF
    added = pl.lit(not support) & others[0] & ((copies[0] == 0) | (copies[0] >= _MANY))
    chosen = (lost > least) & ~here & pl.when(back < _NOTHING).then(~added).otherwise(there | (ahead > _SURE))
    return losses.filter(chosen).select("row", lost.round(6).alias("lost"))


def _weights(rows: pl.DataFrame, texts: DocumentTexts, column: str) -> WordWeights:
    """Weights of words from documents at even distances."""
    ids = rows[column].drop_nulls().unique(maintain_order=True)
    some = ids.gather_every(max(1, len(ids) // _SAMPLE)).head(_SAMPLE).to_list()
    return word_weights(PageWords(*text).whole.forms for text in texts.texts(some).values())


def _losses(
    part: pl.DataFrame,
    pair: tuple[str, str],
    opened: Mapping[str, DocumentTexts],
    weights: WordWeights,
    new: list[NewText],
) -> Iterator[tuple[Any, ...]]:
    """The rows of `TEXT_SCHEMA`; in place of copies stand the places of what only one version has, which `new` gets."""
    first, second = pair
    ids = part.drop_nulls([id_column(first), id_column(second)])
    ids = ids.select("row", "query", *(id_column(name) for name in opened))
    at = [list(opened).index(name) for name in pair]
    before, after = (opened[name].of(ids[id_column(name)].to_list()) for name in pair)

    @lru_cache(maxsize=256)
    def page(version: str, doc_id: str) -> PageWords:
        document = (before if version == first else after)[doc_id]
        return PageWords(document.title, document.body)

    for row, query, *own in ids.iter_rows():
        a, b = own[at[0]], own[at[1]]
        words = frozenset(PageWords("", query).forms)
        if a not in before or b not in after or _same(before[a], after[b], words):
            continue
        one, other = page(first, a), page(second, b)
        there, back = lost_share(one, other, words, weights), lost_share(other, one, words, weights)
        lost = _lost(there, back), _lost(back, there)
        if max(lost) > TEXT_FLOOR:
            named = {*_NAME.findall(before[a].url.lower()), *_NAME.findall(after[b].url.lower())}
            name = named.intersection((*one.whole.words, *other.whole.words))
            coherence = _coherence(one, name, weights), _coherence(other, name, weights)
            for mine, theirs, place in ((before[a], after[b], at[0]), (after[b], before[a], at[1])):
                # Where nothing is left, it does not matter who else has what was there.
                clause = mine if _NAME.search(theirs.text) else mine._replace(title="", body="")
                new.append(new_text(clause, theirs, words, weights, tuple(own), version=place))
            places = (len(new) - 2, len(new) - 1)
            yield row, first, second, *lost, *shows_no_page(one, other), *coherence, 0.0, 0.0, *places, 0, 0


def _coherence(page: PageWords, named: Iterable[str], weights: WordWeights) -> float:
    """The share of the title's words and of those of the address, by weight, that the body has; half without any."""
    forms = sorted({*PageWords("", page.title).forms, *PageWords("", " ".join(named)).forms})
    if not forms or not page.words:
        return 0.5
    value, there = weights.of(forms), frozenset(page.forms)
    return float(value[[form in there for form in forms]].sum()) / float(value.sum() or 1.0)


def _same(one: Document, other: Document, query: frozenset[str]) -> bool:
    """Whether two texts have nearly all their words in common, those of the query too: most documents end here."""
    if one[2:] == other[2:]:
        return True
    words, others = set(one.text.split()), set(other.text.split())
    if len(words & others) < _ALL * max(len(words), len(others)):
        return False
    return query.isdisjoint(PageWords("", " ".join(words ^ others)).forms)


def _lost(loss: Loss, back: Loss) -> float:
    """The share that is lost; nothing where all that a version has more is about something else, as comments are."""
    return 0.0 if back.share < _NOTHING and loss.akin < _AKIN else loss.share
