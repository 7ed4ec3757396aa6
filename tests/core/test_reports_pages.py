import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.core.listings import Listing, ListingColumn, data_for_script
from truerank.core.page import Drawing, Facts, Page, Prose, Section
from truerank.core.tables import Column, Table
from truerank.core.verdict import Verdict

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!--\u2028\u202e\x00\ud800"


def listing(rows=3, **options):
    columns = (
        ListingColumn("topic", "Topic", [str(301 + row // 2) for row in range(rows)], kind="label", filter="choose"),
        ListingColumn("left", "Topic text", ["lyme disease"] * rows, searched=True),
        ListingColumn("right", "Query", [f"lyme diseases {row}" for row in range(rows)], searched=True),
        ListingColumn(
            "similarity", "Similarity", [0.9 + row / 1000 for row in range(rows)], kind="number", filter="above"
        ),
    )
    return Listing("list", "Pairs.", columns, ("pair", "pairs"), **{"compared": ("left", "right"), **options})


def page(*parts, verdicts=()):
    return Page("A title", "truerank", "A lead.", verdicts, (Section("one", "One", parts), Section("two", "Two", ())))


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))


def test_the_policy_allows_the_one_script_and_nothing_else():
    html = page(listing()).html()
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
    policy += "base-uri 'none'; form-action 'none'"
    metas = [attributes for tag, attributes in Tags(html).seen if tag == "meta"]
    assert {"http-equiv": "Content-Security-Policy", "content": policy} in metas


def test_nothing_comes_from_elsewhere():
    html = page(listing(), Drawing("<svg></svg>", "A figure.")).html()
    loading = ("src", "srcset", "action", "data", "poster", "background")
    seen = Tags(html).seen
    assert not [tag for tag, attributes in seen if any(name in attributes for name in loading)]
    assert not [tag for tag, _ in seen if tag in ("link", "img", "iframe", "object", "embed", "base")]
    assert "@import" not in html
    assert "url(" not in resources.files("truerank.core").joinpath("templates/page.css").read_text()


def test_the_script_never_writes_markup():
    script = resources.files("truerank.core").joinpath("templates/page.js").read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|fetch\(|XMLHttp", script
    )


def test_landmarks_headings_and_captions():
    table = Table("Counts.", (Column("a"), Column("b")), (("x", 1),))
    html = page(table, listing(), verdicts=(Verdict("CLEAN", "Nothing.", subject="robust04", level="good"),)).html()
    tags = Tags(html).seen
    names = [tag for tag, _ in tags]
    assert [names.count(tag) for tag in ("header", "main", "h1", "caption")] == [1, 1, 1, 2]
    assert {a["aria-label"] for tag, a in tags if tag == "nav"} == {"Contents", "Pages of the list"}
    ids = {a["id"] for _, a in tags if "id" in a}
    links = {a["href"][1:] for tag, a in tags if tag == "a"}
    assert links == {"main", "one", "two"}
    assert links <= ids
    assert all(a["aria-labelledby"] in ids for tag, a in tags if "aria-labelledby" in a)
    assert all(a.get("scope") for tag, a in tags if tag == "th")


def test_hostile_texts_stay_texts_wherever_they_stand():
    columns = (
        ListingColumn("left", HOSTILE, [HOSTILE]),
        ListingColumn("right", "b", ["b"], kind="label", filter="choose"),
    )
    parts = (
        Prose((HOSTILE,)),
        Table(HOSTILE, (Column(HOSTILE),), ((HOSTILE,),), notes=(HOSTILE,)),
        Drawing("<svg></svg>", HOSTILE),
        Facts(HOSTILE, {HOSTILE: {"a": [HOSTILE, {"b": HOSTILE}], "c": [{HOSTILE: HOSTILE}]}}),
        Listing("list", HOSTILE, columns, (HOSTILE, HOSTILE), compared=("left", "right"), whole=HOSTILE),
    )
    verdict = Verdict(HOSTILE, HOSTILE, HOSTILE, HOSTILE, subject=HOSTILE, level="bad")
    html = Page(HOSTILE, HOSTILE, HOSTILE, (verdict,), (Section("one", HOSTILE, parts),), (HOSTILE,)).html()
    tags = Tags(html).seen
    assert [tag for tag, _ in tags].count("script") == 2
    assert not [tag for tag, a in tags if tag == "img" or any(name.startswith("on") for name in a)]
    assert "\x00" not in html
    html.encode("utf-8")


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_data_in_a_script_comes_back_and_cannot_leave_it(value):
    text = data_for_script(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029\ud800-\udfff\n]", text)


def test_first_rows_are_sorted_and_filtered_as_the_script_does():
    assert listing(4, sort="-similarity").first_rows() == [3, 2, 1, 0]
    assert listing(4, sort="-topic").first_rows() == [2, 3, 0, 1]
    assert listing(4).first_rows() == [0, 1, 2, 3]
    assert len(listing(1000).first_rows()) == 200


def test_a_bound_holds_from_the_start():
    column = ListingColumn("s", "Similarity", [0.91, 0.910001, 0.9], kind="number", filter="above", start=0.91)
    assert Listing("list", "", (column,), ("pair", "pairs")).first_rows() == [1]


def test_columns_have_one_length():
    with pytest.raises(ValueError, match="different lengths"):
        Listing("list", "", (ListingColumn("a", "A", ["x"]), ListingColumn("b", "B", [])), ("pair", "pairs"))


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_have_contrast_enough(scheme):
    css = resources.files("truerank.core").joinpath("templates/page.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", blocks[scheme]))
    for text in ("ink", "soft", "bad", "good", "open", "link"):
        assert contrast(colours[text], colours["paper"]) >= 4.5, text
    assert contrast(colours["ink"], colours["mark"]) >= 4.5
    assert contrast(colours["ink"], colours["raised"]) >= 4.5
    for line in ("strong", "figure-quiet"):
        assert contrast(colours[line], colours["paper"]) >= 3, line
