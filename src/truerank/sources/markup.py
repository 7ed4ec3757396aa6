"""What people see of marked-up text: HTML pages, and the `<DOC>` records of the TREC collections."""

from __future__ import annotations

import html
import re
from typing import Final

from truerank.records import Document

_HTML: Final = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_UNSEEN: Final = re.compile(r"<!--.*?-->|<(script|style|noscript|template)\b.*?</\1\s*>|<!\[CDATA\[|\]\]>", re.I | re.S)
_TITLE: Final = re.compile(r"<title\b[^>]*>(.*?)</title\s*>", re.I | re.S)
_HTML_TAG: Final = re.compile(r"</?[a-zA-Z!?][^<>]*>")
#: Tags within a word; all others end one.
_INLINE: Final = re.compile(r"</?(?:b|i|u|em|strong|a|span|font|sup|sub|small|big|tt|code|abbr|mark)\b[^<>]*>", re.I)

_HEADER: Final = re.compile(r"<dochdr\b[^>]*>(.*?)</dochdr\s*>", re.I | re.S)
_DOCNO: Final = re.compile(r"<docno\b[^>]*>(.*?)</docno\s*>", re.I | re.S)
_URL: Final = re.compile(r"<url\b[^>]*>(.*?)</url\s*>", re.I | re.S)
_ANY_URL: Final = re.compile(r"https?://\S+")
_HEADINGS: Final = re.compile(r"<(headline|head|hl|title|ttl|h3)\b[^>]*>(.*?)</\1\s*>", re.I | re.S)
_BODIES: Final = re.compile(
    r"<(text|leadpara|lp|body|abstract|summary|graphic|caption)\b[^>]*>(.*?)</\1\s*>", re.I | re.S
)


def is_html(start: str) -> bool:
    """Whether a text begins as an HTML page does."""
    return _HTML.match(start) is not None


def html_text(page: str) -> Document:
    """The title and the visible text of an HTML page: everything but tags, scripts, styles and comments."""
    page = _UNSEEN.sub(" ", page)
    title = _TITLE.search(page)
    rest = page if title is None else page[: title.start()] + " " + page[title.end() :]
    return Document("", "", "" if title is None else _plain(title[1]), _plain(rest))


def trec_document(record: str) -> Document:
    """One `<DOC>` record of a TREC collection, without its outer tags.

    The title is what stands in HEADLINE, HEAD, HL, TITLE, TTL or H3, the body what stands in TEXT, LEADPARA, LP, BODY,
    ABSTRACT, SUMMARY, GRAPHIC or CAPTION, tags inside dropped. A record without any of the latter has as its body all
    that stands outside the number, the header of the crawl and the title (an HTML page, or bare text). The URL is the
    one in `<URL>`, or the first of the crawl's header.
    """
    header = _HEADER.search(record)
    number = _DOCNO.search(record)
    named = _URL.search(record)
    url = _plain(named[1]) if named else ""
    if header is not None:
        found = _ANY_URL.search(header[1])
        url = url or (found[0] if found else "")
        record = record[: header.start()] + " " + record[header.end() :]
    bodies = list(_BODIES.finditer(record))
    doc_id = _plain(number[1]) if number else ""
    rest = _URL.sub(" ", _DOCNO.sub(" ", record))
    if header is not None or is_html(rest) or not bodies:
        page = html_text(rest)
        if page.title or header is not None:
            return Document(doc_id, url, page.title, page.body)
        title = _joined(_HEADINGS, rest)
        return Document(doc_id, url, title, _plain(_UNSEEN.sub(" ", _HEADINGS.sub(" ", rest))))
    outside = _BODIES.sub(" ", rest)
    return Document(
        doc_id, url, _joined(_HEADINGS, outside), " ".join(filter(None, (_plain(one[2]) for one in bodies)))
    )


def _joined(pattern: re.Pattern[str], text: str) -> str:
    return " ".join(filter(None, (_plain(found[2]) for found in pattern.finditer(text))))


def _plain(marked: str) -> str:
    """The text without tags, character references resolved, blanks joined."""
    if "<" in marked:
        marked = _HTML_TAG.sub(" ", _INLINE.sub("", marked))
    if "&" in marked:
        marked = html.unescape(marked)
    return " ".join(marked.split())
