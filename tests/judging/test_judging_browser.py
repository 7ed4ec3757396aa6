"""Judging in a real browser: by keyboard, without scripts, by telephone, in the dark, and with an unsteady server."""

from __future__ import annotations

import json
import re

import pytest

import real_browser

pytest.importorskip("starlette", reason="the extra [web] is not installed: judging is not tried in a browser")
pytest.importorskip("uvicorn", reason="the extra [web] is not installed: judging is not tried in a browser")

from judging_web_sample import HOSTILE, make_store, pairs, served
from truerank import judge
from truerank.judging.items import Item, Text
from truerank.judging.store import Store

#: The hostile texts as they must be read: signs of writing direction as their code points.
READABLE = [re.sub("[\u200f\u202a-\u202e]", lambda sign: f"U+{ord(sign[0]):04X}", text) for text in HOSTILE]


@pytest.fixture(scope="module")
def chromium():
    with real_browser.chromium("judging is") as started:
        yield started


@pytest.fixture
def enter(chromium):
    """Opens a window in which somebody has entered, by keyboard; complaints of the browser fail the test."""
    contexts, complaints = [], []

    def entering(desk, name, **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(desk.addresses[0])
        page.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        page.get_by_role("navigation", name="Pages").wait_for()
        return page

    yield entering
    for context in contexts:
        context.close()
    assert [text for text in complaints if "Failed to load resource" not in text] == []


@pytest.fixture
def desk(tmp_path):
    make_store(tmp_path / "store", pairs(6)).close()
    with served(tmp_path / "store") as opened:
        yield opened


def heading(page, text):
    page.locator("h1", has_text=re.compile(f"^{text}$")).wait_for()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def standing(store, annotator):
    return {s.item_id: (s.kind, s.labels) for s in store.standing(annotator=annotator)}


def test_two_annotators_and_an_adjudicator_by_keyboard_only(enter, tmp_path):
    count = 20
    make_store(tmp_path / "store", pairs(count, HOSTILE)).close()
    with served(tmp_path / "store") as desk:
        ann, bob = enter(desk, "ann"), enter(desk, "bob")
        for number in range(1, count + 1):
            heading(ann, f"Item {number} of {count}")
            press(ann, "0" if number % 4 == 0 else "3", "Enter")
            if number == 5:
                heading(ann, f"Item 6 of {count}")
                press(ann, "u")
                heading(ann, f"Item 5 of {count}")
                assert ann.locator("#said").inner_text() == "Taken back."
                press(ann, "2", "Enter")
        heading(ann, "Nothing is left")
        for number in range(1, count + 1):
            heading(bob, f"Item {number} of {count}")
            if number == 10:
                press(bob, "4")
                bob.reload()
                heading(bob, f"Item {number} of {count}")
                assert bob.locator("#label input:checked").count() == 0
            if number == 12:
                press(bob, "s", "2", "Enter")
            elif number == 13:
                press(bob, "c")
                bob.keyboard.type("u s n 1: no key acts here")
                press(bob, "Escape", "3", "Enter")
            else:
                press(bob, "3", "Enter")
        heading(bob, "Nothing is left")
        judy = enter(desk, "judy")
        open_ones = len(desk.store.disagreements())
        assert open_ones == 5
        judy.get_by_role("link", name="Settle the first that is open").focus()
        press(judy, "Enter")
        for number in range(1, open_ones + 1):
            heading(judy, f"Disagreement {number} of {open_ones}")
            assert judy.locator(".who tbody tr").count() == 2
            press(judy, "4", "Enter")
        judy.get_by_text(f"{open_ones} settled, 0 open.").wait_for()
    with Store.open(tmp_path / "store") as store:
        expected = {
            f"pair <{n - 1}>": "Different Topic" if n % 4 == 0 else "Title-Specialization" for n in range(1, count + 1)
        }
        expected["pair <4>"] = "Title-Generalization"
        assert standing(store, "ann") == {item: ("label", (label,)) for item, label in expected.items()}
        kinds = [event.kind for event in store.events(annotator="ann")]
        assert (kinds.count("label"), kinds.count("undo")) == (count + 1, 1)
        bobs = standing(store, "bob")
        assert bobs.pop("pair <11>") == ("skip", ())
        assert set(bobs.values()) == {("label", ("Title-Specialization",))}
        assert len(bobs) == count - 1
        (comment,) = [event.comment for event in store.events(annotator="bob") if event.comment]
        assert comment == "u s n 1: no key acts here"
        assert all(event.seconds >= 0 for event in store.events())
        settled = standing(store, "judy")
        assert set(settled.values()) == {("adjudicate", ("Title-Reformulation",))}
        assert sorted(settled) == sorted(one.item_id for one in store.disagreements())
        assert judge.export(store, tmp_path / "labels.jsonl").written == 2 * count + open_ones
    exported = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    said = {(one["item_id"], one["annotator"]): one for one in exported}
    assert len(said) == len(exported) == 2 * count + open_ones
    assert all(said[item, "ann"]["labels"] == [label] for item, label in expected.items())
    assert all(said[item, "judy"]["labels"] == ["Title-Reformulation"] for item in settled)


def test_hostile_texts_are_read_and_never_run(enter, tmp_path):
    items = [Item(f"{n}", "1", text, text, text, text, (Text("query", text),)) for n, text in enumerate(HOSTILE)]
    store = make_store(tmp_path / "store", items)
    for item in items:
        store.record(item.item_id, "ann", "label", ["Title-Identical"], comment=item.title)
        store.record(item.item_id, "bob", "label", ["Different Topic"], comment=item.title)
    store.close()
    with served(tmp_path / "store") as desk:
        ann = enter(desk, "ann")
        for number, text in enumerate(READABLE, start=1):
            ann.goto(f"{desk.addresses[0]}judge/{number}")
            assert set(ann.locator(".shown .body").all_inner_texts()) == {text}
            assert ann.locator("#label textarea").input_value() == HOSTILE[number - 1]
            assert ann.locator("main").locator("script, img, svg").count() == 0
            assert ann.evaluate("window.pwned") is None
        ann.goto(f"{desk.addresses[0]}mine")
        assert ann.locator("td.text").all_inner_texts() == READABLE
        judy = enter(desk, "judy")
        judy.goto(f"{desk.addresses[0]}adjudicate/1")
        assert judy.locator(".who td p").all_inner_texts() == [READABLE[0]] * 2
        assert judy.evaluate("window.pwned") is None


def test_choices_exclude_each_other_and_are_taken_back(enter, desk):
    ann = enter(desk, "ann")
    ann.goto(f"{desk.addresses[0]}judge/2")
    chosen = ann.locator("#label input:checked")
    values = "inputs => inputs.map(input => input.value)"
    press(ann, "1", "Q")
    assert chosen.evaluate_all(values) == ["Title-Identical", "Variant-Identical"]
    press(ann, "0")
    assert chosen.evaluate_all(values) == ["Different Topic"]
    press(ann, "3")
    assert chosen.evaluate_all(values) == ["Title-Specialization"]
    assert ann.locator("#live").inner_text() == "specialization chosen"
    press(ann, "3")
    assert chosen.count() == 0
    press(ann, "Enter")
    ann.locator(".error").wait_for()
    assert "No label" in ann.locator(".error").inner_text()
    assert "No label" in ann.locator("#live").inner_text()
    assert list(desk.store.events()) == []


def test_confirming_at_once_and_keys_that_rest(enter, tmp_path):
    make_store(tmp_path / "store", pairs(3), "leak").close()
    with served(tmp_path / "store") as desk:
        ann = enter(desk, "ann")
        ann.locator("#quick").check()
        keys = [choice.key for choice in desk.store.scheme.choices]
        press(ann, "Escape", keys[0])
        heading(ann, "Item 2 of 3")
        press(ann, keys[1])
        heading(ann, "Item 3 of 3")
        press(ann, "?")
        ann.locator("#keys-on").uncheck()
        press(ann, "Escape", keys[0], "u", "n")
        assert ann.locator("#label .choice input:checked").count() == 0
        heading(ann, "Item 3 of 3")
        assert [event.labels for event in desk.store.events()] == [(c.name,) for c in desk.store.scheme.choices[:2]]


def test_an_answer_is_sent_until_it_is_kept_and_counts_once(enter, desk):
    ann = enter(desk, "ann")
    tries = []

    def unsteady(route):
        tries.append(route.request.method)
        if len(tries) == 1:
            route.abort()
        elif len(tries) == 2:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    ann.route("**/judge/1", unsteady)
    press(ann, "1", "Enter")
    ann.locator("#trouble", has_text="Not saved yet").wait_for()
    heading(ann, "Item 2 of 6")
    assert not ann.locator("#trouble").is_visible()
    assert tries == ["POST"] * 3
    assert [event.kind for event in desk.store.events()] == ["label"]


def test_a_link_with_a_token_takes_its_owner_in_and_leaves_no_token_behind(chromium, tmp_path):
    make_store(tmp_path / "store", pairs(3)).close()
    with served(tmp_path / "store", no_tokens=False) as desk:
        links, tokens = dict(desk.links), dict(desk.new_tokens)
        context = chromium.new_context()
        asked = []
        context.on("request", lambda request: asked.append(request.url))
        page = context.new_page()
        page.goto(links["ann"])
        heading(page, "Item 1 of 3")
        assert page.url == f"{desk.addresses[0]}judge/1"
        # A link to another name is shown, and its owner's click is needed.
        page.goto(links["bob"])
        page.get_by_role("button", name="Enter").wait_for()
        assert page.get_by_label("Name").input_value() == "bob"
        assert page.evaluate("location.hash") == ""
        page.get_by_role("button", name="Enter").click()
        heading(page, "Item 1 of 3")
        page.get_by_text("bob").wait_for()
        # What stands behind the # is not sent.
        assert not [url for url in asked for token in tokens.values() if token in url.partition("#")[0]]
        context.close()


def test_it_works_without_scripts(enter, desk):
    ann = enter(desk, "ann", java_script_enabled=False)
    heading(ann, "Item 1 of 6")
    ann.get_by_role("radio", name="identical").first.check()
    ann.get_by_label("Comment").fill("by hand")
    ann.get_by_role("button", name="Confirm").click()
    heading(ann, "Item 2 of 6")
    ann.get_by_role("button", name="Undo").click()
    heading(ann, "Item 1 of 6")
    ann.locator("#skipping summary").click()
    ann.get_by_label("I do not know the subject").check()
    ann.locator("#skip button").click()
    heading(ann, "Item 2 of 6")
    assert [(event.kind, event.comment) for event in desk.store.events()] == [
        ("label", "by hand"),
        ("undo", ""),
        ("skip", ""),
    ]


CONTRAST = """() => {
  const parse = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const faults = [];
  let seen = 0;
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen += 1;
    if (ratio < 4.5) faults.push(`${element.tagName}.${element.className}: ${ratio.toFixed(2)}`);
  }
  return [seen, faults];
}"""
NAMELESS = """() => [...document.querySelectorAll("main input:not([type=hidden]), main textarea, main button, main a")]
  .filter((one) => !(one.labels?.length || one.textContent.trim() || one.getAttribute("aria-label")))
  .map((one) => one.outerHTML)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_readable_and_fits_a_telephone(enter, desk, scheme):
    for name in ("ann", "bob"):
        for number, label in enumerate(("Title-Identical", "Different Topic")):
            said = "Title-Specialization" if name == "bob" and number else label
            desk.store.record(f"pair <{number}>", name, "label", [said], comment="a comment " * 8)
    desk.store.record("pair <1>", "tiny-model", "label", ["Different Topic"])
    options = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme, "is_mobile": True, "has_touch": True}
    for name, pages in (
        ("ann", ("judge/2", "judge/1?after=2", "mine", "overview", "help", "nowhere", "enter")),
        ("judy", ("adjudicate", "adjudicate/2")),
    ):
        page = enter(desk, name, **options)
        for path in pages:
            page.goto(desk.addresses[0] + path)
            assert page.evaluate("document.documentElement.scrollWidth") == 390, path
            seen, faults = page.evaluate(CONTRAST)
            assert seen >= 5
            assert faults == [], path
            assert page.evaluate(NAMELESS) == [], path
            assert page.locator("h1").count() == 1


def test_a_screen_reader_is_led(enter, desk):
    ann = enter(desk, "ann")
    press(ann, "1", "Enter")
    heading(ann, "Item 2 of 6")
    assert ann.evaluate("document.activeElement.id") == "heading"
    assert ann.locator("#live").inner_text() == (
        "Item 1: Title-Identical. Saved. Item 2 of 6. 1 labelled, 0 skipped, 5 left"
    )
    group = ann.get_by_role("group", name="Against the title")
    assert group.get_by_role("radio").count() == 4
    assert ann.get_by_role("region", name="How does the training query relate").count() == 1
    ann.goto(f"{desk.addresses[0]}judge/1")
    press(ann, "Tab")
    assert ann.evaluate("document.activeElement.textContent") == "Skip to the content"
