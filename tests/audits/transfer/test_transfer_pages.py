"""Title and main content of pages of every kind; URLs of pages that are none."""

from __future__ import annotations

import builtins
import time
from typing import Any

import pytest

from truerank.errors import MissingExtraError
from truerank.text.main_content import ContentOptions, page_text

PARAGRAPH = "Relevance judgments are made once, and the pages that they were made for go on changing for years."
PAGE = f"""<!DOCTYPE html><html><head><title>Caf\u00e9 &amp; judgments</title><style>p {{}}</style>
<script>var hidden = "never shown";</script></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/about">About us</a></li></ul></nav>
<main><h1>Judgments</h1><p>{PARAGRAPH}</p><p>A second paragraph na\u00efvely adds that {PARAGRAPH.lower()}</p></main>
<footer>Copyright, all rights reserved</footer></body></html>"""


def test_main_content_and_all_text() -> None:
    page = page_text(PAGE.encode(), "text/html; charset=utf-8")
    assert page.title == "Café & judgments"
    assert page.body.startswith(f"Judgments\n\n{PARAGRAPH}\n\nA second paragraph naïvely")
    assert page.reason == ""
    for hidden in ("Home", "Copyright", "never shown"):
        assert hidden not in page.body
    everything = page_text(PAGE.encode(), "text/html", ContentOptions(main_content=False, paragraphs=False))
    assert "Home" in everything.body
    assert "Copyright" in everything.body
    assert "\n" not in everything.body
    assert page == page_text(PAGE.encode(), "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("encoding", "header"),
    [
        ("utf-8", "text/html"),
        ("utf-8-sig", "text/html; charset=iso-8859-1"),
        ("cp1252", "text/html; charset=ISO-8859-1"),
        ("cp1252", "text/html"),
        ("utf-16", "text/html"),
        ("utf-8", "text/html; charset=us-ascii"),
        ("utf-8", "text/html; charset=no-such-charset"),
        ("utf-8", ""),
    ],
)
def test_encodings(encoding: str, header: str) -> None:
    page = page_text(PAGE.encode(encoding), header)
    assert page.title == "Café & judgments"
    assert "naïvely" in page.body


def test_wrongly_decoded_characters_are_mended() -> None:
    broken = PAGE.replace("na\u00efvely", "na\u00c3\u00afvely &amp;amp; twice")
    assert "naïvely & twice" in page_text(broken.encode(), "text/html").body
    assert "naÃ¯vely" in page_text(broken.encode(), "text/html", ContentOptions(repair=False)).body


@pytest.mark.parametrize(
    ("content", "header", "reason"),
    [
        (b"", "text/html", "empty page"),
        (b" \n ", "text/html", "empty page"),
        (b"%PDF-1.4 \x00\x01", "application/pdf", "content type application/pdf"),
        (bytes(range(256)) * 40, "text/html", "not a text"),
        (b"<html><body><img src=x></body></html>", "text/html", "no text in it"),
        (b"<html><script>x()</script>", "text/html", "no text in it"),
        (b"x" * 2000, "text/html", "larger than 1,000 bytes"),
    ],
)
def test_what_is_no_page_has_a_reason(content: bytes, header: str, reason: str) -> None:
    page = page_text(content, header, ContentOptions(max_bytes=1000 if len(content) == 2000 else 1 << 20))
    assert (page.title, page.body, page.reason) == ("", "", reason)


def test_html_that_is_not_is_read_as_far_as_it_goes() -> None:
    assert page_text(b"just words", "text/html").body == "just words"
    assert page_text(b"<p>unclosed <b>tags <<<& and &nosuch; <a href='", "text/html").body.startswith("unclosed tags")
    assert page_text(b"plain <b>marks</b>", "text/plain").body == "plain <b>marks</b>"
    assert page_text(PAGE.encode(), "application/octet-stream").title == "Café & judgments"
    assert page_text(PAGE.encode(), "application/pdf").title == "Café & judgments"


def test_hostile_and_huge_pages_take_their_time_and_no_more() -> None:
    begun = time.process_time()
    deep = page_text(b"<title>Deep</title>" + b"<div>" * 200_000 + b"at the bottom" + b"<!--" * 100_000, "text/html")
    assert (deep.title, deep.body) == ("Deep", "Deep at the bottom")
    assert page_text(b"<p>" * 300_000 + b"flat", "text/html").body == "flat"
    huge = page_text(b"<html><body><p>" + b"a word " * (8 << 20), "text/html")
    assert huge.reason == "larger than 10,485,760 bytes"
    assert time.process_time() - begun < 20


def test_without_the_extra_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith(("resiliparse", "wayback", "fastwarc", "ftfy")):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'truerank\[pages\]'"):
        page_text(PAGE.encode(), "text/html")
