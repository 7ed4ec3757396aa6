"""What became of a page: the class that a reader of both texts would name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.text.page_faults import REASONS, PageWords, page_fault

PARTS = (
    "Yellow roses stand for joy and happiness, and they are given to friends.",
    "Red roses mean love; white ones are carried at weddings in many countries.",
    "A rose should be cut in the early morning, when the stem holds most water.",
    "Potassium in the soil lets the flowers last longer than nitrogen would.",
    "The oldest rose still in bloom grows on the wall of a cathedral in Hildesheim.",
)
BEFORE = PageWords("Roses", "\n".join(PARTS))
OTHER = (
    "Kidney beans hold seventy milligrams of magnesium a cup. Cooked spinach has more than twice that amount, and "
    "pumpkin seeds more still. Adults need some four hundred milligrams a day, women slightly less."
)


@pytest.mark.parametrize(
    ("title", "body", "reason", "shown"),
    [
        ("Roses", "", "empty", "0 words"),
        ("", " \n… ", "empty", "0 words"),
        ("Oops! There was a problem!", "We had an unexpected problem processing your request.", "error page", "oops"),
        ("Roses", "HTTP Error 404. The page cannot be found.", "error page", "404"),
        ("", "Please sign in to continue. Forgot your password?", "error page", "sign in"),
        ("flowers.com", "Flowers.com is for sale! Buy this domain.", "error page", "for sale"),
        ("Roses", "Home. About us. Contact. Privacy policy. Terms of use. Subscribe. Share.", "boilerplate only", "%"),
        ("Roses", "\n".join(PARTS[:3]), "truncated", "the first"),
        ("Roses", "\n".join((*PARTS[:2], PARTS[2][:30])) + " …", "truncated", "of 68 words"),
        ("Roses", "\n".join((*PARTS[:1], *PARTS[3:])), "content missing", "red roses mean love"),
        ("Beans", OTHER, "redirect", "title 'Roses', then 'Beans'"),
        ("Roses", f"{PARTS[0]} {OTHER} {PARTS[4]}", "content changed", "is new"),
    ],
)
def test_each_class(title: str, body: str, reason: str, shown: str) -> None:
    found = page_fault(BEFORE, PageWords(title, body))
    assert (found.reason, shown.lower() in found.evidence.lower()) == (reason, True), found


def test_a_page_about_errors_is_no_error_page() -> None:
    about = PageWords("What is a 404 error?", "A 404 error means that the page was not found on the server. " * 2)
    assert page_fault(about, PageWords("404", "A 404 error means that the page was not found.")).reason != "error page"
    long = " ".join(f"word{number}" for number in range(300))
    assert page_fault(BEFORE, PageWords("Not found", f"404 not found {long}")).reason == "redirect"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_two_texts_have_a_class(before: str, after: str) -> None:
    found = page_fault(PageWords("a", before), PageWords("b", after))
    assert found.reason in REASONS and found.evidence
