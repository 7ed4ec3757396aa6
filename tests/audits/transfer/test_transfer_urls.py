"""URLs in one form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.text.urls import UrlRules, normalise_url


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://Example.COM:80/a/./b/../c/#part", "example.com/a/c"),
        ("https://user:secret@example.com:443/%7efoo%2f?", "example.com/~foo%2F"),
        ("HTTP:/example.com/", "example.com"),
        ("//example.com./x", "example.com/x"),
        ("http://bücher.example/ä b", "xn--bcher-kva.example/%C3%A4%20b"),
        ("http://xn--bcher-kva.example/%c3%a4%20b", "xn--bcher-kva.example/%C3%A4%20b"),
        ("http://example.com/100%", "example.com/100%25"),
        ("http://example.com:0080/x", "example.com/x"),
        ("http://[2001:DB8::1]:8080/x", "[2001:db8::1]:8080/x"),
        ("ftp://example.com:21/x/", "ftp://example.com/x"),
        ("http://exa\nmple.com/\tx ", "example.com/x"),
        ("example.com\u3002/x", "example.com/x"),
        ("exam\uff5bple.com", ""),
        ("mailto:someone@example.com", ""),
        ("http://[broken/x", ""),
        ("http://example.com:port/", ""),
        ("", ""),
    ],
)
def test_one_form(url: str, wanted: str) -> None:
    assert normalise_url(url) == wanted


def test_each_rule_changes_one_thing() -> None:
    url = "https://www.example.com/a/?utm_source=x&b=2&GCLID=1&a=1&Utm_X"
    assert normalise_url(url) == "www.example.com/a?utm_source=x&b=2&GCLID=1&a=1&Utm_X"
    assert normalise_url(url, UrlRules(keep_scheme=True)).startswith("https://www.example.com/a?")
    assert normalise_url(url, UrlRules(drop_www=True)).startswith("example.com/a?")
    assert normalise_url(url, UrlRules(keep_slash=True)).startswith("www.example.com/a/?")
    assert normalise_url(url, UrlRules(drop_tracking=True)) == "www.example.com/a?b=2&a=1"
    assert normalise_url(url, UrlRules(drop_tracking=True, sort_parameters=True)) == "www.example.com/a?a=1&b=2"
    # Not the host of a page, but the top of one; and a plain URL takes the same way as any other.
    assert normalise_url("http://www.com/", UrlRules(drop_www=True)) == "www.com"
    assert normalise_url("http://example.com", UrlRules(keep_scheme=True, keep_slash=True)) == "http://example.com/"
    assert normalise_url("http://example.com?x", UrlRules(keep_slash=True)) == "example.com/?x"


@settings(max_examples=100)
@given(st.text(max_size=40), st.sampled_from(["", "http://", "https://example.com/", "http://example.com?"]))
def test_the_form_is_its_own_form(text: str, start: str) -> None:
    for rules in (UrlRules(), UrlRules(drop_www=True, drop_tracking=True, sort_parameters=True)):
        once = normalise_url(start + text, rules)
        if once and "/?" not in once:
            assert normalise_url(once, rules) == once
