"""Pictures of the report page as people see it: wide, on a tablet and on a phone, light and dark,
and on paper.

python docs/page_pictures.py FOLDER                      of three pages, in six minutes: the demo's
                                                         plan, what it brought, a problem file
python docs/page_pictures.py FOLDER --quick              of a demo that is hardly trained
python docs/page_pictures.py FOLDER --page report.html   of a page that is there
python docs/page_pictures.py FOLDER --link '#what-if:budget=900'
python docs/page_pictures.py FOLDER --readme             also draws those of README.md anew

They are for looking at and are compared with nothing; that is why only README's are kept here.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (1440, 768, 390)
PAPER = 794
"""pixels that a sheet of A4 is wide"""
PLANNED, BROUGHT, PROBLEM = "planned", "brought", "problem"
"""pages: the demo's plan, the same once it is bought and tried out, that of a problem file"""
COLOURS = 256
"""of a picture that is kept: a page has few"""


@dataclass(frozen=True)
class Kept:
    """A picture for README.md: a part of a page from its top, or from one of its sections."""

    page: str
    size: tuple[int, int]
    scheme: str = "light"
    link: str = ""
    begin: str = "body"


KEPT = {
    "report.png": Kept(PLANNED, (1240, 1080)),
    "report-pictures.png": Kept(BROUGHT, (1240, 860), "dark", begin="#pictures"),
    "report-phone.png": Kept(PLANNED, (390, 860), link="#what-if:budget=450", begin="#what-if"),
}
"""by their names in docs"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", type=Path, help="a report that is there already")
    parser.add_argument("--quick", action="store_true", help="few trainings of few steps")
    parser.add_argument("--link", default="", help="what is asked of it, as its link says it")
    parser.add_argument("--readme", action="store_true", help="draw the pictures of README.md, too")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.browser import NoBrowser, find_browser, launch

    try:
        find_browser()
    except NoBrowser as missing:
        sys.exit(f"error: {missing}")
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        pages = {"page": given.page} if given.page else make_pages(Path(place), given.quick)
        with launch() as browser:
            for name, page in pages.items():
                for made in draw(browser, page.resolve().as_uri() + given.link, given.folder, name):
                    print(made)
            for made in draw_kept(browser, pages) if given.readme and not given.page else ():
                print(made)


def make_pages(folder: Path, quick: bool) -> dict[str, Path]:
    """The three pages, by name."""
    from allotment.campaign.campaign import Campaign
    from allotment.cli.demo import DEMO_BASELINES, FULL_DEMO, QUICK_DEMO, write_settings
    from allotment.reports.page import write_page

    form = QUICK_DEMO if quick else FULL_DEMO
    campaign = Campaign.create(folder / "demo", write_settings(form, quick, seed=0))
    campaign.estimate(workers=2)
    pages = {PLANNED: write_page(campaign.report(), folder / "planned.html")}
    campaign.order(everything=True)
    campaign.buy()
    campaign.try_plans(repeats=form["repeats"], workers=2, beside=DEMO_BASELINES)
    pages[BROUGHT] = write_page(campaign.report(), folder / "brought.html")
    return pages | {PROBLEM: make_problem(folder / "problem.html")}


def make_problem(path: Path) -> Path:
    """The page of the problem that `allot example` prints."""
    import allotment as al
    from allotment.cli.files import read_example
    from allotment.problem_file import parse_problem
    from allotment.reports.page import write_page
    from allotment.reports.plans import collect_problem

    document = parse_problem(read_example("voc"))
    plan = al.allocate(document.problem, document.gains or {})
    return write_page(collect_problem(plan, "Labels for voc", is_neutral=False), path)


def draw(browser: Any, address: str, folder: Path, name: str) -> Iterator[Path]:
    """A page in every width, light and dark, and on paper."""
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            looks = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            page = browser.new_page(**looks, device_scale_factor=2 if width < 500 else 1)
            page.goto(address)
            made = folder / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=made, full_page=True)
            page.close()
            yield made
    page = browser.new_page(viewport={"width": PAPER, "height": 1123})
    page.goto(address)
    page.emulate_media(media="print")
    made = folder / f"{name}-print.pdf"
    page.pdf(path=made, format="A4", prefer_css_page_size=True)
    page.close()
    yield made


def draw_kept(browser: Any, pages: Mapping[str, Path]) -> Iterator[Path]:
    """The pictures of README.md, in few colours, since everybody who clones has them."""
    from PIL import Image

    for name, kept in KEPT.items():
        width, height = kept.size
        looks = {"viewport": {"width": width, "height": height}, "color_scheme": kept.scheme}
        page = browser.new_page(**looks)
        page.goto(pages[kept.page].resolve().as_uri() + kept.link)
        page.evaluate("(begin) => document.querySelector(begin).scrollIntoView()", kept.begin)
        drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        page.close()
        drawn.quantize(COLOURS).save(ROOT / "docs" / name, optimize=True)
        yield ROOT / "docs" / name


if __name__ == "__main__":
    main()
