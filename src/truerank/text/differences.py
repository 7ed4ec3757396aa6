"""Which words of two texts differ, so that a report can mark them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from truerank.text.words import WordSpan, joined_words, spans, stem

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
