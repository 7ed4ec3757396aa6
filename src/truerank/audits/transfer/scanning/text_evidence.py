"""Evidence from the texts: judged documents that lack in one version what answered the query in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits.transfer.scanning.scoring import id_column
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.text.losses import Loss, WordWeights, lost_share, word_weights
from truerank.text.notices import notice_of
from truerank.text.page_faults import PageWords, page_fault

__all__ = ["TEXT_CUT_OFF", "TEXT_SCHEMA", "favoured", "text_losses"]

#: One row per judged document and pair of versions that differ: the share of what answered the query in one version
#: that the other lacks, both ways, and whether the words of one stand for the loss of a page.
TEXT_SCHEMA: Final[dict[str, Any]] = {
    "row": pl.UInt32,
    "first": pl.String,
    "second": pl.String,
    "lost_in_second": pl.Float64,
    "lost_in_first": pl.Float64,
    "first_is_no_page": pl.Boolean,
    "second_is_no_page": pl.Boolean,
}
#: A larger share is a candidate; chosen on the development draws of benchmarks/transfer_planted.py.
TEXT_CUT_OFF: Final = 0.4
#: Up to this share a version has lost nothing: the other one is a part of it.
_NOTHING: Final = 0.2
#: Then what only the other one has must be about the same: so much of its words, by weight, is in the rest, too.
_AKIN: Final = 0.02
#: How much more probable it is that the judged version is the relevant one, where nothing else is known: of the errors
#: that the transfer paper estimates (MaxP, section 5), 13,117 lie in the later version and 3,954 in the judged one.
_JUDGED_ODDS: Final = 13_117 / 3_954
_NO_PAGE: Final = frozenset(("empty", "error page", "boilerplate only"))
_AT_ONCE: Final = 1 << 10
_ALL: Final = 0.95
_SAMPLE: Final = 2_000
_EDGE: Final = 1e-6


def text_losses(
    rows: pl.DataFrame, pairs: Sequence[tuple[str, str]], texts: Mapping[str, Path], least: float
) -> pl.DataFrame:
    """What each version of the judged documents lacks of what answered the query in another.

    Args:
        rows: the judged documents: columns `row`, `query` and `scoring.id_column` of each version.
        pairs: which versions are compared.
        texts: the files of `DocumentTexts` by version.
        least: smaller losses are left out.

    Returns:
        Columns as in `TEXT_SCHEMA`, in the order of the rows and pairs. Memory does not grow with the texts.
    """
    opened = {name: DocumentTexts(path) for name, path in texts.items()}
    weights = _weights(rows, opened[pairs[0][0]], id_column(pairs[0][0]))
    parts = [pl.DataFrame(schema=TEXT_SCHEMA)]
    for part in rows.iter_slices(_AT_ONCE):
        found = [line for pair in pairs for line in _losses(part, pair, opened, weights, least)]
        parts.append(pl.DataFrame(found, schema=TEXT_SCHEMA, orient="row"))
    return pl.concat(parts)


def favoured(losses: pl.DataFrame, better: str, judged: str, *, odds: bool) -> pl.DataFrame:
    """The rows in which the texts speak for one version, and by how much.

    The other version must lack more than `TEXT_CUT_OFF` of what answered the query. A version without a page's words
    never is the better one; a version that lost nothing is. Of two that each lack much of the other, the more probable
    one is: P(better is relevant, worse is not) / P(worse is, better is not) = odds(better) / odds(worse) where the two
    are independent, times the odds of the judged version.

    Args:
        losses: columns as in `TEXT_SCHEMA`, those of one pair, with `max_better` and `max_worse`.
        better: the name of the version that would be the better one.
        judged: the name of the judged version.
        odds: the two scores are probabilities.

    Returns:
        Columns `row` and `lost`.
    """
    one = pl.col("first") == better
    lost = pl.when(one).then("lost_in_second").otherwise("lost_in_first")
    back = pl.when(one).then("lost_in_first").otherwise("lost_in_second")
    here = pl.when(one).then("first_is_no_page").otherwise("second_is_no_page")
    there = pl.when(one).then("second_is_no_page").otherwise("first_is_no_page")
    score = {side: pl.col(f"max_{side}") for side in ("better", "worse")}
    if odds:
        score = {side: (p.clip(_EDGE, 1 - _EDGE) / (1 - p.clip(_EDGE, 1 - _EDGE))).log() for side, p in score.items()}
    prior = float(np.log(_JUDGED_ODDS)) if odds else 0.0
    versions = pl.when(one).then("second").otherwise("first")
    ahead = pl.when(pl.lit(better) == judged).then(prior).when(versions == judged).then(-prior).otherwise(0.0)
    surer = score["better"] - score["worse"] + ahead > 0
    chosen = (lost > TEXT_CUT_OFF) & ~here & (there | (back < _NOTHING) | surer)
    return losses.filter(chosen).select("row", lost.round(6).alias("lost"))


def _weights(rows: pl.DataFrame, texts: DocumentTexts, column: str) -> WordWeights:
    """Weights of words from documents at even distances."""
    ids = rows[column].drop_nulls().unique(maintain_order=True)
    some = ids.gather_every(max(1, len(ids) // _SAMPLE)).head(_SAMPLE).to_list()
    return word_weights(PageWords(*text).whole.forms for text in texts.texts(some).values())


def _losses(
    part: pl.DataFrame, pair: tuple[str, str], opened: Mapping[str, DocumentTexts], weights: WordWeights, least: float
) -> Iterator[tuple[Any, ...]]:
    first, second = pair
    known = part.select("row", "query", a=id_column(first), b=id_column(second)).drop_nulls()
    before, after = opened[first].texts(known["a"].to_list()), opened[second].texts(known["b"].to_list())

    @lru_cache(maxsize=256)
    def page(version: str, doc_id: str) -> PageWords:
        return PageWords(*(before if version == first else after)[doc_id])

    for row, query, a, b in known.iter_rows():
        if a not in before or b not in after or _same(before[a], after[b]):
            continue
        one, other = page(first, a), page(second, b)
        words = frozenset(PageWords("", query).forms)
        there, back = lost_share(one, other, words, weights), lost_share(other, one, words, weights)
        lost = _lost(there, back), _lost(back, there)
        if max(lost) > least:
            yield (row, first, second, *lost, _no_page(other, one), _no_page(one, other))


def _same(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two texts have nearly all their words in common: most documents are done with here."""
    if one == other:
        return True
    words, others = set(" ".join(one).split()), set(" ".join(other).split())
    return len(words & others) >= _ALL * max(len(words), len(others))


def _lost(loss: Loss, back: Loss) -> float:
    """The share that is lost; nothing where all that a version has more is about something else, as comments are."""
    return 0.0 if back.share < _NOTHING and loss.akin < _AKIN else loss.share


def _no_page(before: PageWords, after: PageWords) -> bool:
    """Whether a text stands for the loss of a page; one that is a title alone does not where the title is its own."""
    if not after.words and after.title not in ("", before.title):
        return notice_of(after.title) is not None
    return page_fault(before, after).reason in _NO_PAGE
