"""Pictures of the judging pages for the docs, from small annotations made for it.

    python scripts/shoot_judging.py FOLDER [--all] [--chromium /usr/bin/chromium]

Writes judging-{pair,versions,adjudicate,overview,phone,dark}.png; with --all every page in light, dark and at the width
of a telephone. Needs the extra [web], playwright, and a Chromium to start.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from truerank.judging import Annotator, Item, Store, Text, load_scheme
from truerank.judging.web import Serving, open_desk

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
VIEWS = {"light": (DESKTOP, "light"), "dark": (DESKTOP, "dark"), "phone": (PHONE, "light")}
NARRATIVE = (
    "A relevant document names a measure that was taken or proposed at an airport: a device, a procedure, a rule for "
    "staff or luggage. Documents that only report an incident are not relevant."
)
QUERIES = (
    ("airport security", "security at airports", "airport securing measures"),
    ("airport security", "airport security job description", ""),
    ("airport security", "how do airports keep travellers safe", "methods of securing airports"),
    ("airport security", "airports", ""),
    ("airport security", "cost of a security deposit", ""),
    ("airport security", "<b>airport</b> \u202eytiruces\u202c & “safety”", ""),
)
OLD = (
    "Lyme disease in dogs\n\nLyme disease is carried by ticks. Signs in dogs are fever, swollen joints and lameness "
    "that moves from leg to leg. Your veterinarian can test the blood four weeks after the bite.\n\nTreatment lasts "
    "thirty days with an antibiotic."
)
NEW = (
    "Lyme disease in dogs\n\nLyme disease is carried by ticks. Book a visit in one of our clinics today and save on "
    "your first checkup.\n\nOur shop has collars, sprays and tablets against ticks for dogs of every size."
)


def pairs() -> list[Item]:
    """Pairs as a leakage audit proposes them."""
    description = "What is done to make airports and flights more secure?"
    return [
        Item(
            f"pair-{number}", "341", title.title(), description, NARRATIVE, variant,
            (Text("query", query, f"q10{number}"),), "news", score=0.97 - number / 100,
        )
        for number, (title, query, variant) in enumerate(QUERIES, start=1)
    ]  # fmt: skip


def versions() -> list[Item]:
    """Two versions of one page."""
    address = "https://pets.example.org/lyme-disease"
    texts = (Text("V1", OLD, "D17", address), Text("V2", NEW, "msmarco_doc_03", address))
    return [Item("page-1", "1051", "signs of lyme disease in dogs", texts=texts, dataset="V1>V2 (FirstP)")]


def passages() -> list[Item]:
    """A query with the ten passages that were shown."""
    text = "Ticks that carry Lyme disease live in tall grass. Passage number {} tells something about them."
    texts = tuple(Text(f"passage {number}", text.format(number), f"{number}{number}07") for number in range(1, 11))
    return [Item("query-1", "88", "where do ticks that carry lyme disease live", texts=texts, dataset="dev")]


def leakage_store(folder: Path) -> Path:
    """Two people who do not always agree, a model, and an adjudicator."""
    items, path = pairs(), folder / "leakage.judged"
    order = {name: [item.item_id for item in items] for name in ("ann", "bob")}
    others = [Annotator("carol", "adjudicator"), Annotator("tiny-model", "model", "tiny-model, temperature 0")]
    said = {
        "ann": [
            "Title-Identical",
            "Title-Specialization",
            "Title-Reformulation",
            "Title-Generalization",
            "Different Topic",
        ],
        "bob": ["Title-Identical", "Different Topic", "Title-Reformulation", "Title-Generalization"],
        "tiny-model": ["Title-Identical", "Title-Specialization", "Title-Specialization"],
    }
    with Store.create(path, load_scheme("leakage"), items, order, annotators=others) as store:
        for name, labels in said.items():
            for item, label in zip(items, labels, strict=False):
                comment = "a job, not the measures" if (name, item.item_id) == ("bob", "pair-2") else ""
                store.record(item.item_id, name, "label", [label], comment=comment, seconds=6 + len(label) % 5)
    return path


def simple_store(folder: Path, scheme: str, items: list[Item]) -> Path:
    """One annotator."""
    path = folder / f"{scheme}.judged"
    Store.create(path, load_scheme(scheme), items, {"ann": [item.item_id for item in items]}).close()
    return path


@contextlib.contextmanager
def served(path: Path) -> Iterator[str]:
    """The address of a store that is being served."""
    desk = open_desk(path, Serving(port=0, no_tokens=True))
    thread = threading.Thread(target=desk.run)
    thread.start()
    try:
        yield desk.addresses[0]
    finally:
        desk.stop()
        thread.join()


def opened(browser: Browser, view: str, address: str, name: str) -> Page:
    """A page on which somebody has entered."""
    viewport, scheme = VIEWS[view]
    page = browser.new_page(
        viewport=viewport, color_scheme=scheme, device_scale_factor=1.5, has_touch=view == "phone",  # type: ignore[arg-type]
        is_mobile=view == "phone",
    )  # fmt: skip
    page.goto(address)
    page.get_by_role("button", name=name).click()
    page.wait_for_selector("header nav")
    return page


def small(path: Path) -> None:
    """Few colours are enough for a page of text, and make a small file."""
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def shoot_docs(browser: Browser, folder: Path, work: Path) -> None:
    """The pictures that the docs show."""
    with served(leakage_store(work)) as address:
        for view, name in (("light", "pair"), ("dark", "dark"), ("phone", "phone")):
            page = opened(browser, view, address, "bob")
            page.goto(f"{address}judge/3" if view == "light" else f"{address}judge/5")
            page.screenshot(path=folder / f"judging-{name}.png")
            page.close()
        page = opened(browser, "light", address, "carol")
        page.goto(f"{address}adjudicate/2")
        page.screenshot(path=folder / "judging-adjudicate.png")
        page.goto(f"{address}overview")
        page.screenshot(path=folder / "judging-overview.png")
        page.close()
    with served(simple_store(work, "transfer", versions())) as address:
        page = opened(browser, "light", address, "ann")
        page.screenshot(path=folder / "judging-versions.png")
        page.close()
    for path in folder.glob("judging-*.png"):
        small(path)


def shoot_all(browser: Browser, folder: Path, work: Path) -> None:
    """Every page in every view, whole."""
    stores = {
        leakage_store(work): [
            "judge/2",
            "judge/6",
            "mine",
            "overview",
            "help",
            "adjudicate",
            "adjudicate/2",
            "nowhere",
        ],
        simple_store(work, "transfer", versions()): ["judge/1"],
        simple_store(work, "answerability", passages()): ["judge/1"],
        simple_store(work, "survivorship", passages()): ["judge/1"],
    }
    for path, pages in stores.items():
        with served(path) as address:
            for view in VIEWS:
                page = opened(browser, view, address, "carol" if "adjudicate" in pages else "ann")
                for where in pages:
                    if where == "judge/2" or (where == "judge/6" and "adjudicate" in pages):
                        page.close()
                        page = opened(browser, view, address, "bob")
                    elif where.startswith("adjudicate"):
                        page.close()
                        page = opened(browser, view, address, "carol")
                    page.goto(address + where)
                    name = f"{path.stem}-{where.replace('/', '-')}-{view}.png"
                    page.screenshot(path=folder / name, full_page=True, scale="css")
                page.close()
                entrance = browser.new_page(viewport=VIEWS[view][0], color_scheme=VIEWS[view][1])  # type: ignore[arg-type]
                entrance.goto(address)
                entrance.screenshot(path=folder / f"{path.stem}-enter-{view}.png", scale="css")
                entrance.close()


def main() -> None:
    """Takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as work:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        (shoot_all if options.all else shoot_docs)(browser, options.folder, Path(work))
        browser.close()


if __name__ == "__main__":
    main()
