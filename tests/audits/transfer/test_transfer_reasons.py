"""What became of a page: the class that a reader of both texts would name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.text.page_faults import REASONS, PageWords, page_fault, shows_no_page

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
SOME = (
    *" ".join(PARTS[:2]).split()[:12],
    *"sign in domain for sale 404 page not found cookies home contact share".split(),
)
#: Pages of the same title, with words of roses, of notices and of menus.
WORDED = st.builds(PageWords, st.just("Roses"), st.lists(st.sampled_from(SOME), max_size=40).map(" ".join))


@pytest.mark.parametrize(
    ("title", "body", "reason", "shown"),
    [
        ("Roses", "", "empty", "0 words"),
        ("Roses", "Roses", "empty", "0 words"),
        # The last words alone, of which a page with other words at its edge would be another one.
        ("Roses", " ".join(PARTS[4].split()[-6:]), "content missing", "are gone"),
        ("Roses", f"{' '.join(PARTS[4].split()[-6:])} {OTHER[:60]}", "redirect", "in common"),
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
        # The first words stay, however much new text stands below them.
        ("Roses", f"Yellow roses stand for joy and vitamins. {OTHER} {OTHER}", "content changed", "is new"),
        ("Roses", f"Yellow roses are full of vitamins. {OTHER} {OTHER}", "redirect", "in common"),
        # The end of the text is kept, too, but not as a line of its own, which is a footer.
        ("Roses", f"{PARTS[0]} {' '.join(PARTS[4].split()[-4:])}", "content missing", "are gone"),
        ("Roses", "이 정원은 오래된 수도원의 담장 안에 있습니다", "redirect", "in common"),
    ],
)
def test_each_class(title: str, body: str, reason: str, shown: str) -> None:
    found = page_fault(BEFORE, PageWords(title, body))
    assert (found.reason, shown.lower() in found.evidence.lower()) == (reason, True), found


def test_a_notice_between_menus() -> None:
    menus = "Home. About us. Contact. Authors. Journals. Help", "Privacy policy. Terms of use. Accessibility. Sitemap"
    notice = "Error establishing a database connection. Please try again in a few minutes."
    found = page_fault(BEFORE, PageWords("Roses", f"{menus[0]}\n{notice}\n{menus[1]}"))
    assert found.reason == "error page" and "error" in found.evidence
    assert page_fault(BEFORE, PageWords("Roses", "\n".join(menus))).reason == "boilerplate only"


def test_a_page_about_errors_is_no_error_page() -> None:
    about = PageWords("What is a 404 error?", "A 404 error means that the page was not found on the server. " * 2)
    assert page_fault(about, PageWords("404", "A 404 error means that the page was not found.")).reason != "error page"
    long = " ".join(f"word{number}" for number in range(300))
    assert page_fault(BEFORE, PageWords("Not found", f"404 not found {long}")).reason == "redirect"


#: Words that no list of notices has; and the same with a word to the reader.
ODD = "The cupboard stays shut until the key is back. The porter has another at the gate by day."
SPOKEN = "The cupboard stays shut until the key is back. Please ask the porter for another by day."


@pytest.mark.parametrize(
    ("title", "body", "repeated", "reason"),
    [
        ("Roses", ODD, 1, "redirect"),
        ("Roses", ODD, 2, "repeated text"),
        ("Shut", ODD, 2, "repeated text"),
        ("Shut", SPOKEN, 1, "repeated text"),
        # Too long; about the page's title; with a part of the text; a page with only a part of it.
        ("Shut", f"{ODD} " * 6, 9, "redirect"),
        ("Shut", f"{ODD} Roses are for the reading room.", 9, "redirect"),
        ("Roses", f"{PARTS[0]} {ODD} {PARTS[4]}", 9, "content changed"),
        ("Roses", PARTS[0], 9, "truncated"),
        # What stands below many titles, and menus.
        ("Roses", "Printed in Hull", 9, "redirect"),
        ("Roses", "Home. About us. Contact. Privacy policy. Terms of use. Subscribe. Share.", 9, "boilerplate only"),
    ],
)
def test_what_several_pages_show_is_a_notice(title: str, body: str, repeated: int, reason: str) -> None:
    found = page_fault(BEFORE, PageWords(title, body), repeated=repeated)
    assert found.reason == reason, found
    assert (f"at {repeated + 1} addresses" in found.evidence) == (reason == "repeated text")


@settings(max_examples=60)
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_two_texts_have_a_class(before: str, after: str) -> None:
    found = page_fault(PageWords("a", before), PageWords("b", after))
    assert found.reason in REASONS and found.evidence


@settings(max_examples=60)
@given(WORDED, WORDED)
def test_pages_that_are_lost_are_those_of_the_reasons(one: PageWords, other: PageWords) -> None:
    lost = ("empty", "error page", "boilerplate only")
    assert shows_no_page(one, other) == (page_fault(other, one).reason in lost, page_fault(one, other).reason in lost)
