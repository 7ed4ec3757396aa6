"""The page in a real browser: texts stay texts, and the list can be sorted, filtered, kept, saved and printed."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import real_browser
from reports_sample import made_result
from truerank.audits.leakage.report import render
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Page, Section

HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 2</script>",
    '<img src=x onerror="window.pwned = 3">',
    "\"'><svg onload=window.pwned=4>",
    "<!--<script>",
    "\u202etxt.exe\u2028next",
    "${window.pwned = 5} {{ 7 * 7 }}",
    "__proto__ constructor toString",
)


@pytest.fixture(scope="module")
def browser():
    with real_browser.chromium("pages are") as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(made_result()), encoding="utf-8")
    return path


def opened(browser, path, hash_="", **options):
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("file:") else page.complaints.append(request.url))
    page.goto(path.as_uri() + hash_)
    return page


def column(page, title):
    return page.locator(f'tbody [data-title="{title}"]').all_inner_texts()


def settled(page, status):
    page.locator(".status", has_text=status).wait_for(timeout=5000)


def test_the_page_opens_without_complaint(browser, report):
    page = opened(browser, report)
    settled(page, "300 pairs; 1 to 25 shown.")
    assert page.locator("tbody tr[role=row]").count() == 25
    assert page.complaints == []


def test_hostile_texts_are_shown_as_they_are(browser, tmp_path):
    result = made_result(len(HOSTILE))
    texts = {"query_text": pl.Series(HOSTILE), "topic_text": pl.Series(HOSTILE[::-1]), "query_id": pl.Series(HOSTILE)}
    same = {"similarity": pl.lit(0.95, pl.Float32), "source": pl.lit(HOSTILE[1]), "type": pl.lit(HOSTILE[2])}
    path = tmp_path / "report.html"
    path.write_text(
        render(replace(result, candidates=result.candidates.with_columns(**texts, **same))), encoding="utf-8"
    )
    page = opened(browser, path)
    for _ in range(2):
        shown = page.locator('[data-title="Training query"] bdi').evaluate_all("cells => cells.map(c => c.textContent)")
        assert shown == list(HOSTILE)
        assert page.locator("tbody").locator("script, img, svg").count() == 0
        page.locator("th[data-key=source] button").click()
    page.fill("input[name=q]", "<script>")
    settled(page, "of 8 pairs")
    assert page.evaluate("window.pwned") is None
    assert page.complaints == []


def test_marks_are_those_of_the_static_page(browser, report):
    static = opened(browser, report, java_script_enabled=False)
    marks = (
        "rows => rows.slice(0, 25).map(row => [...row.querySelectorAll('mark')].map(m => m.className + m.textContent))"
    )
    without = static.locator("tbody tr[role=row]").evaluate_all(marks)
    assert opened(browser, report).locator("tbody tr[role=row]").evaluate_all(marks) == without
    assert sum(map(len, without)) > 15


def test_without_scripts_the_first_rows_are_there(browser, report):
    page = opened(browser, report, java_script_enabled=False)
    assert page.locator("tbody tr[role=row]").count() == 200
    assert not page.locator("form").is_visible()
    assert page.locator(".status").inner_text() == (
        "The first 200 of 300 pairs; all of them are in candidates.parquet."
    )


def test_sorting_by_click_and_by_keyboard(browser, report):
    page = opened(browser, report)
    values = [float(value) for value in column(page, "Similarity")]
    assert values == sorted(values, reverse=True)
    page.locator("th[data-key=similarity] button").click()
    page.locator("th[data-key=topic_id] button").focus()
    page.keyboard.press("Enter")
    topics = [int(topic) for topic in column(page, "Topic")]
    assert topics == sorted(topics)
    assert page.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"
    page.keyboard.press("Enter")
    assert page.url.endswith("#list&sort=-topic_id")
    assert int(column(page, "Topic")[0]) > topics[0]


def test_filters_narrow_the_list_and_stand_in_the_address(browser, report):
    result = made_result()
    page = opened(browser, report)
    page.select_option("select[name=test]", "core17")
    page.select_option("select[name=field]", "variant")
    page.fill("input[name=similarity]", "0.95")
    page.fill("input[name=q]", "COST of")
    expected = result.candidates.filter(pl.col("similarity") > 0.95, test="core17", field="variant")
    words = expected.select(text=pl.concat_str("topic_text", "query_text", separator=" ").str.to_lowercase())["text"]
    count = sum("cost" in text and "of" in text for text in words)
    assert 0 < count < expected.height
    settled(page, f"{count} of 300 pairs.")
    assert set(column(page, "Field")) <= {"variant 1", "variant 2"}
    page.wait_for_url("**#list&q=COST+of&test=core17&field=variant&similarity=0.95")
    again = opened(browser, report, "#list&q=COST+of&test=core17&field=variant&similarity=0.95")
    settled(again, f"{count} of 300 pairs.")
    again.locator("button[data-action=reset]").click()
    settled(again, "300 pairs")
    assert again.url.endswith("#list")


def test_pages_turn(browser, report):
    page = opened(browser, report)
    page.locator("button[data-action=next]").click()
    settled(page, "300 pairs; 26 to 50 shown.")
    page.select_option("[data-rows]", "100")
    settled(page, "300 pairs; 1 to 100 shown.")
    page.locator("button[data-action=next]").click()
    page.locator("button[data-action=next]").click()
    page.locator("button[data-action=next]").click(force=True)
    settled(page, "300 pairs; 201 to 300 shown.")
    assert page.url.endswith("#list&from=201")
    again = opened(browser, report, "#list&from=201", viewport={"width": 390, "height": 844})
    settled(again, "300 pairs; 201 to 210 shown.")


def test_filtered_rows_are_saved(browser, report, tmp_path):
    page = opened(browser, report)
    page.select_option("select[name=source]", "orcas")
    expected = made_result().candidates.filter(source="orcas").sort("similarity", descending=True, maintain_order=True)
    settled(page, f"{expected.height} of 300 pairs")
    with page.expect_download() as download:
        page.locator("button[data-action=save]").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    saved = pl.read_csv(path, separator="\t", infer_schema=False, quote_char=None)
    assert path.name == "list.tsv"
    assert saved["query_text"].to_list() == expected["query_text"].to_list()
    assert saved["query_id"].to_list() == expected["query_id"].to_list()
    assert saved["variant_no"].to_list() == [str(number) for number in expected["variant_no"]]


def test_a_saved_text_is_no_formula(browser, tmp_path):
    texts = ["=1+1", "+49 30", "-free food", "@home", "plain - text"]
    columns = (ListingColumn("query", "Query", texts), ListingColumn("n", "N", [-1.5] * len(texts), kind="number"))
    listing = Listing("list", "Pairs.", columns, ("pair", "pairs"))
    page_file = tmp_path / "page.html"
    page_file.write_text(Page("Saved", "", "", (), (Section("one", "One", (listing,)),)).html(), encoding="utf-8")
    page = opened(browser, page_file)
    with page.expect_download() as download:
        page.locator("button[data-action=save]").click()
    download.value.save_as(tmp_path / "list.tsv")
    rows = [line.split("\t") for line in (tmp_path / "list.tsv").read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == ["'=1+1", "'+49 30", "'-free food", "'@home", "plain - text"]
    assert {row[1] for row in rows} == {"-1.5"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone_needs_no_sideways_scrolling(browser, report, scheme):
    page = opened(browser, report, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    settled(page, "300 pairs; 1 to 10 shown.")
    page.locator(".filters summary").click()
    page.select_option("[data-sort]", "topic_id")
    topics = [int(topic) for topic in column(page, "Topic")]
    assert topics == sorted(topics)


@pytest.mark.slow
def test_a_hundred_thousand_rows_stay_quick(browser, tmp_path):
    rows = 100_000
    columns = (
        ListingColumn("topic", "Topic", [str(row % 250) for row in range(rows)], kind="label", filter="choose"),
        ListingColumn("left", "Topic text", [f"topic {row % 250}" for row in range(rows)], searched=True),
        ListingColumn("right", "Query", [f"query {row % 2000} of many" for row in range(rows)], searched=True),
        ListingColumn("id", "Query id", [f"q{row * 7919 % rows}" for row in range(rows)], kind="code"),
        ListingColumn(
            "similarity", "Similarity", [row % 997 / 997 for row in range(rows)], kind="number", filter="above"
        ),
    )
    listing = Listing("list", "Pairs.", columns, ("pair", "pairs"), compared=("left", "right"), whole="all.parquet")
    path = tmp_path / "large.html"
    path.write_text(Page("Large", "", "", (), (Section("one", "One", (listing,)),)).html(), encoding="utf-8")
    page = opened(browser, path)
    settled(page, "100,000 pairs; 1 to 25 shown.")
    click = "key => { const start = performance.now(); document.querySelector(`th[data-key=${key}] button`).click();"
    for key in ("topic", "right", "id", "similarity"):
        assert page.evaluate(click + "return performance.now() - start; }", key) < 5000
    found = sum("77" in f"{row % 250} {row % 2000}" for row in range(rows))
    page.fill("input[name=q]", "query 77 topic")
    settled(page, f"{found:,} of 100,000 pairs; 1 to 25 shown.")
    page.fill("input[name=q]", "")
    page.fill("input[name=similarity]", "0.501505")
    settled(page, f"{sum(row % 997 > 500 for row in range(rows)):,} of 100,000 pairs")
    page.locator("button[data-action=reset]").click()
    settled(page, "100,000 pairs; 1 to")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    settled(page, "100,000 pairs; the first 500 are printed. The whole list stands in all.parquet.")


def test_figures_are_saved_and_the_sentence_is_copied(browser, tmp_path):
    from truerank.core.page import Drawing

    svg = '<svg viewBox="0 0 200 100" width="200" height="100"><rect width="200" height="100" fill="#123456"/></svg>'
    section = Section("plot", "Plot", (Drawing(svg, "A figure."),))
    path = tmp_path / "page.html"
    path.write_text(Page("A is better", "truerank", "95% interval +0.1 to +0.2.", (), (section,)).html(), "utf-8")
    page = opened(browser, path, permissions=["clipboard-read", "clipboard-write"])
    for name, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        assert download.value.suggested_filename == f"plot-1.{name.lower()}"
        download.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for(timeout=5000)
    assert page.evaluate("navigator.clipboard.readText()") == "A is better (95% interval +0.1 to +0.2)."
    assert page.complaints == []
