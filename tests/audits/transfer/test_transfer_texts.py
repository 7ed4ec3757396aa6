"""Evidence from the texts: what answered the query is looked for in the other version; notices in many words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.text.page_faults import PageWords, WordWeights, lost_share, notice_of, page_fault, word_weights

TITLE = "Magnetic tape for the storage of telephone directories"
ABOUT = (
    "Directories of a city fill several reels, and a clerk waits minutes for one of them. A drum that holds the index "
    "shortens the search: the reel is chosen by the drum, and only one block of the tape is read. Measurements with "
    "forty thousand subscribers show a mean of eleven seconds, most of it winding."
)
ELSEWHERE = (
    "Clay soils shrink in dry summers, and shallow foundations follow them. Cracks run from the corners of windows. "
    "Deeper footings below the roots of the nearest poplar avoid it, and cost little while a house is being built."
)
QUERY = frozenset(PageWords("", "storage of telephone directories on tape").forms)
WEIGHTS = word_weights([PageWords("", f"{TITLE} {ABOUT}").forms, PageWords("", ELSEWHERE).forms, ("the", "of", "a")])


def lost(before: str, after: str, query: frozenset[str] = QUERY) -> float:
    return lost_share(PageWords(TITLE, before), PageWords(TITLE, after), query, WEIGHTS).share


def test_what_is_lost_of_a_text() -> None:
    words = ABOUT.split()
    assert lost(ABOUT, ABOUT) == lost(ABOUT, f"{ELSEWHERE} {ABOUT}") == 0.0
    assert lost(ABOUT, "") == 1.0 and lost(ABOUT, "Sign in to read this.") > 0.9
    assert lost(ABOUT, ELSEWHERE) > 0.9
    # The title stays: only the body counts. A part of it that stays counts by its share.
    fifth, middle = " ".join(words[: len(words) // 5]), " ".join([*words[:6], *words[-6:]])
    assert 0.4 < lost(ABOUT, fifth) < 1 and 0.4 < lost(ABOUT, middle) < 1
    assert lost(ABOUT, fifth) > lost(ABOUT, " ".join(words[:-10]))
    shuffled = " ".join(reversed(ABOUT.split(". ")))
    assert lost(ABOUT, shuffled) < 0.1
    # Without a body the title is what there is.
    assert (
        lost("", "") == 0.0
        and lost_share(PageWords(TITLE, ""), PageWords("Login", "Sign in"), QUERY, WEIGHTS).share == 1
    )


def test_what_answered_the_query_weighs_most() -> None:
    page = f"{ELSEWHERE} {ELSEWHERE.replace('Clay', 'Wet')} {ABOUT}"
    without = f"{ELSEWHERE} {ELSEWHERE.replace('Clay', 'Wet')}"
    other = frozenset(PageWords("", "foundations footings").forms)
    assert lost(page, without) > 0.6 > 0.2 > lost(page, without, other)


def test_comments_are_not_akin_to_the_text_below_which_they_stand() -> None:
    comments = "anna wrote: great find, thanks! mark replied: my uncle drove trains, any photographs of winter tyres?"
    fuller = PageWords(TITLE, f"{ABOUT} {comments}")
    grown = lost_share(fuller, PageWords(TITLE, ABOUT), QUERY, WEIGHTS)
    cut = lost_share(PageWords(TITLE, ABOUT), PageWords(TITLE, " ".join(ABOUT.split()[:10])), QUERY, WEIGHTS)
    assert grown.akin < 0.02 < cut.akin


def test_where_too_little_is_left_the_rest_need_not_be_akin() -> None:
    """Nothing, a few words, or the beginning of a sentence; but a whole article is one without what stood below."""
    words, page = ABOUT.split(), PageWords(TITLE, ABOUT)
    for title, body in (("", ""), ("", " \n"), ("", "."), ("Page", ""), ("", "n/a"), ("", " ".join(words[:12]))):
        assert lost_share(page, PageWords(title, body), QUERY, WEIGHTS).akin == 1.0, body
    below = "anna wrote: great find, thanks! mark replied: my uncle drove trains, any photographs of winter tyres?"
    for gap in (" ", "\n", " Posted by "):
        found = lost_share(PageWords(TITLE, f"{ABOUT}{gap}{below}"), page, QUERY, WEIGHTS)
        assert found.share < 0.4 and found.akin < 0.02
    # Two signs of a script without blanks are a word: this is a text, which its title does not stand for.
    japanese = "電話帳を磁気テープに保存する方法を述べる。索引はドラムに置かれ、検索は十一秒で終わる。"
    assert lost_share(PageWords("電話帳", japanese), PageWords("電話帳", ""), QUERY, WEIGHTS) == (1.0, 1.0)


def test_a_text_that_breaks_off_within_a_sentence_counts_wherever_the_query_stands() -> None:
    first = (
        "Storage of telephone directories on tape is old. " * 2 + "It was the telephone company that stored them where"
    )
    rest = f"clerks wait for one another and for reels. {ELSEWHERE}"
    within, line = f"{first} {rest}", f"{first}\n{rest}"
    assert lost(within, first) > 0.4 > lost(line, first)
    # A name behind the cut may begin another text, and so may what stands behind the end of a sentence.
    assert lost(f"{first} {rest.capitalize()}", first) == lost(f"{first}. {rest}", first) == lost(line, first)


@settings(max_examples=60)
@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=30))
def test_shares_are_shares(before: str, after: str, query: str) -> None:
    asked = frozenset(PageWords("", query).forms)
    found = lost_share(PageWords("t", before), PageWords("t", after), asked, WordWeights({}, 1.0))
    assert 0.0 <= found.share <= 1.0 and 0.0 <= found.akin <= 1.0
    assert lost_share(PageWords("t", before), PageWords("t", before), asked, WordWeights({}, 1.0)).share == 0.0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Page not found. The link you followed may be outdated.", "error"),
        ("Die angeforderte Seite wurde leider nicht gefunden.", "error"),
        ("ページが見つかりません", "error"),
        ("Please log in. User name, password. Forgot your password? Register", "login"),
        ("Zaloguj się, aby zobaczyć tę stronę. Hasło", "login"),
        ("Subscribe to read the full story. Only 1 € a month, cancel anytime", "paywall"),
        ("Abonnez-vous pour lire la suite. Essai gratuit", "paywall"),
        ("We and our 340 partners store cookies on your device. Accept all. Reject all", "consent"),
        ("Checking that you are not a robot. Enable JavaScript in your browser", "robot check"),
        ("The service is temporarily unavailable for maintenance. Try again later", "maintenance"),
        ("This domain is for sale. Buy this domain at the registrar", "parked"),
        ("此网站需要JavaScript", "robot check"),
        ("الموقع قيد الصيانة", "maintenance"),
    ],
)
def test_notices_in_several_wordings_and_languages(text: str, kind: str) -> None:
    found = notice_of(text)
    assert found is not None and found.kind == kind and found.signs and 0 < found.share <= 1
    assert page_fault(PageWords(TITLE, ABOUT), PageWords(TITLE, text)).reason == "error page"


def test_texts_about_such_things_are_no_notices() -> None:
    for text in (ABOUT, ELSEWHERE, "", "An error in the program of a drum computer is traced with a printed list."):
        assert notice_of(text) is None, text
    assert notice_of("Page not found. Please log in. " * 40) is None
