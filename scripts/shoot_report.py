"""Pictures of a report for the docs: light, dark, telephone, whole page and paper.

    python scripts/shoot_report.py REPORT.html FOLDER [--height 900] [--only light=NAME.png] [--chromium PROGRAM]

Writes report-{light,dark,phone,print}.png, the whole page as report-{light,dark,phone}-whole.png, and report.pdf.
The picture of the README: `truerank check sample --out check`, then
`python scripts/shoot_report.py check/report.html docs/images --height 1330 --only light=check-light.png`.
Needs playwright, and a Chromium to start.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PAPER = {"width": 794, "height": 1123}
VIEWS = {"light": (DESKTOP, "light"), "dark": (DESKTOP, "dark"), "phone": (PHONE, "light")}


def shoot(browser: Browser, address: str, target: Path, view: tuple[str, int], only: str = "") -> None:
    """One view: what fits the window, and the whole page; a desktop is as high as the view says.

    With `only`, what fits the window is the one file.
    """
    name, height = view
    viewport, scheme = VIEWS[name]
    viewport = {**viewport, "height": height} if viewport is DESKTOP else viewport
    page = browser.new_page(viewport=viewport, color_scheme=scheme, device_scale_factor=2)  # type: ignore[arg-type]
    page.goto(address)
    page.screenshot(path=target / (only or f"report-{name}.png"))
    if not only:
        page.screenshot(path=target / f"report-{name}-whole.png", full_page=True, scale="css")
    page.close()


def shoot_paper(browser: Browser, address: str, target: Path) -> None:
    """The printed page as PDF, and its first sheet as a picture."""
    page = browser.new_page(viewport=PAPER)  # type: ignore[arg-type]
    page.goto(address)
    page.pdf(path=target / "report.pdf", format="A4", prefer_css_page_size=True)
    page.emulate_media(media="print")
    page.screenshot(path=target / "report-print.png")
    page.close()


def main() -> int:
    """Takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--height", type=int, default=DESKTOP["height"], help="pixels of the desktop that are shown")
    parser.add_argument("--only", help="one view and its file, such as light=check-light.png")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    if not options.report.is_file():
        print(f"{options.report}: no such file. give a report.html", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    address = options.report.resolve().as_uri()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        if options.only:
            name, _, file = options.only.partition("=")
            shoot(browser, address, options.folder, (name, options.height), file)
        else:
            for name in VIEWS:
                shoot(browser, address, options.folder, (name, options.height))
            shoot_paper(browser, address, options.folder)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
