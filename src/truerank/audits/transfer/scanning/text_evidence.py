"""Evidence from the texts: judged documents that lack in one version what answered the query in another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits.transfer.scanning.repeated_texts import NewText, new_text, repeated_texts
from truerank.audits.transfer.scanning.scoring import id_column
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Document
from truerank.text.page_faults import Loss, PageWords, WordWeights, lost_share, shows_no_page, word_weights

#: One row per judged document and pair of versions that differ: the share of what answered the query in one version
#: that the other lacks, both ways; whether the words of one stand for the loss of a page; how much of its title, and of
#: its address, its body speaks of; and how much of what only this version has is in other documents, how many of them
#: have nearly all of it, and how many of the same version have little else.
TEXT_SCHEMA: Final[dict[str, Any]] = {
    "row": pl.UInt32,
    "first": pl.String,
    "second": pl.String,
    "lost_in_second": pl.Float64,
    "lost_in_first": pl.Float64,
    "first_is_no_page": pl.Boolean,
    "second_is_no_page": pl.Boolean,
    "first_coherence": pl.Float64,
    "second_coherence": pl.Float64,
    "first_elsewhere": pl.Float64,
    "second_elsewhere": pl.Float64,
    "first_copies": pl.Int64,
    "second_copies": pl.Int64,
    "first_alone": pl.Int64,
    "second_alone": pl.Int64,
}
#: A larger share is a candidate; chosen, as are the numbers below, on development draws of
#: benchmarks/transfer_planted.py.
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
                told = mine if _NAME.search(theirs.text) else mine._replace(title="", body="")
                new.append(new_text(told, theirs, words, weights, tuple(own), version=place))
            yield (
                row,
                first,
                second,
                *lost,
                *shows_no_page(one, other),
                *coherence,
                0.0,
                0.0,
                len(new) - 2,
                len(new) - 1,
                0,
                0,
            )


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
