"""Pictures of the report page as people see it: wide, on a tablet and on a phone, light and dark,
and on paper.

python docs/page_pictures.py FOLDER                      of the demo's campaign, in three minutes
python docs/page_pictures.py FOLDER --quick              of one that is hardly trained
python docs/page_pictures.py FOLDER --page report.html   of a page that is there
python docs/page_pictures.py FOLDER --link '#what-if:budget=900'

They are for looking at and are compared with nothing; that is why none of them is kept here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (1440, 768, 390)
PAPER = 794
"""pixels that a sheet of A4 is wide"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", type=Path, help="a report that is there already")
    parser.add_argument("--quick", action="store_true", help="few trainings of few steps")
    parser.add_argument("--link", default="", help="what is asked of it, as its link says it")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.browser import NoBrowser, find_browser, launch

    try:
        find_browser()
    except NoBrowser as missing:
        sys.exit(f"error: {missing}")
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        page = given.page or make_demo(Path(place) / "demo", given.quick)
        with launch() as browser:
            for made in draw(browser, page.resolve().as_uri() + given.link, given.folder):
                print(made)


def make_demo(folder: Path, quick: bool) -> Path:
    """The report of the demo's campaign once it is planned."""
    from allotment.campaign.campaign import Campaign
    from allotment.cli.demo import FULL_DEMO, QUICK_DEMO, _write_settings
    from allotment.reports.page import write_page

    form = QUICK_DEMO if quick else FULL_DEMO
    campaign = Campaign.create(folder, _write_settings(form, quick, seed=0))
    campaign.estimate(workers=2)
    return write_page(campaign.report(), folder / "report.html")


def draw(browser: Any, address: str, folder: Path) -> list[Path]:
    made = []
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            looks = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            page = browser.new_page(**looks, device_scale_factor=2 if width < 500 else 1)
            page.goto(address)
            made.append(folder / f"page-{width}-{scheme}.png")
            page.screenshot(path=made[-1], full_page=True)
            page.close()
    page = browser.new_page(viewport={"width": PAPER, "height": 1123})
    page.goto(address)
    page.emulate_media(media="print")
    made += [folder / "page-print.png", folder / "page-print.pdf"]
    page.screenshot(path=made[-2], full_page=True)
    page.pdf(path=made[-1], format="A4", prefer_css_page_size=True)
    page.close()
    return made


if __name__ == "__main__":
    main()
