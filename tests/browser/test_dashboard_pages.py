"""The dashboard as people meet it: by eye, keyboard or screen reader, on a phone, without a script or a network."""

import base64
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import serving, wrong_in
from tests.swarm_folder import add_round, ledger, proposer, solver

PAGES = {
    "overview": "/?node=node-1",
    "charts": "/charts?node=node-1",
    "rounds": "/rounds?node=node-1",
    "round": "/rounds/24?node=node-1",
    "peers": "/peers?node=node-1",
    "leaderboard": "/leaderboard?node=node-1",
    "proposer": "/charts?node=proposer-1",
    "batches": "/rounds?node=proposer-1",
}
PHONE = {"width": 375, "height": 700}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two solvers and a proposer."""
    folder = tmp_path_factory.mktemp("swarm")
    for number, rounds in ((1, 24), (2, 2)):
        solver(folder / f"node-{number}", rounds, peer_id=f"QmNode{number}")
        ledger(folder / f"node-{number}" / "state" / "ledger.sqlite", f"QmNode{number}")
    proposer(folder / "proposer-1", 30)
    with serving(folder) as url:
        yield url


@pytest.fixture
def shots(tmp_path):
    folder = Path(os.environ.get("CODEZERO_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def brightness(page, png):
    """Of every 101st pixel of a picture, 0 to 255."""
    page.goto("about:blank")
    return page.evaluate(
        """async (data) => {
          const image = new Image();
          image.src = "data:image/png;base64," + data;
          await image.decode();
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [image.width, image.height];
          const drawing = canvas.getContext("2d");
          drawing.drawImage(image, 0, 0);
          const pixels = drawing.getImageData(0, 0, image.width, image.height).data, shades = [];
          for (let at = 0; at < pixels.length; at += 404) {
            shades.push(Math.round((pixels[at] + pixels[at + 1] + pixels[at + 2]) / 3));
          }
          return shades;
        }""",
        base64.b64encode(png).decode(),
    )


def open_all(page, most=99):
    page.evaluate(f"for (const one of [...document.querySelectorAll('details')].slice(0, {most})) one.open = true")


def faults(page, options):
    """axe-core's, of all its rules unless the options say which: WCAG 2 A and AA, and best practice."""
    return Axe().run(page, options=options).response


def told(violations):
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in violations]


@pytest.mark.parametrize(
    ("name", "scheme", "viewport"),
    [
        ("overview", "light", None),
        ("overview", "dark", None),
        ("overview", "light", PHONE),
        ("charts", "dark", None),
        ("round", "light", None),
        ("round", "dark", PHONE),
    ],
)
def test_a_picture_of_each_page_shows_something(site, visit, shots, name, scheme, viewport):
    page = visit(site + PAGES[name], color_scheme=scheme)
    if viewport:
        page.set_viewport_size(viewport)
    open_all(page)
    path = shots / f"dashboard-{name}-{scheme}{'-phone' if viewport else ''}.png"
    page.screenshot(path=path, full_page=name != "charts")
    shades = brightness(page, path.read_bytes())
    background = max(set(shades), key=shades.count)
    assert (background > 200) is (scheme == "light")
    assert sum(abs(shade - background) > 60 for shade in shades) > len(shades) / 100


def test_nothing_is_in_the_way_of_people_with_disabilities(site, visit):
    page = visit(site)
    for name in ("overview", "charts", "rounds", "round", "peers", "leaderboard"):
        page.goto(site + PAGES[name])
        open_all(page, 4)
        found = faults(page, {"resultTypes": ["violations", "passes"]})
        assert told(found["violations"]) == [], name
        assert len(found["passes"]) > 20


def test_a_dark_page_has_contrast_enough(site, visit):
    page = visit(site, color_scheme="dark")
    for name in ("overview", "round"):
        page.goto(site + PAGES[name])
        open_all(page, 4)
        found = faults(page, {"runOnly": ["color-contrast"]})
        assert told(found["violations"]) == [], name
        assert len(found["passes"][0]["nodes"]) > 20


def test_a_fault_is_found_by_what_looks_for_it(site, visit):
    page = visit(site + PAGES["round"])
    page.evaluate("document.getElementById('main').insertAdjacentHTML('beforeend', '<img src=/static/icon.svg>')")
    assert "image-alt" in dict(told(faults(page, {"runOnly": ["image-alt"]})["violations"]))


def test_a_phone_shows_each_page_without_scrolling_sideways(site, visit):
    page = visit(site)
    page.set_viewport_size(PHONE)
    for name, path in PAGES.items():
        page.goto(site + path)
        open_all(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], name


def test_no_page_asks_for_anything_of_anyone_else(site, visit):
    page = visit(site)
    page.context.route(
        "**/*",
        lambda route: route.continue_() if urlsplit(route.request.url).hostname == "127.0.0.1" else route.abort(),
    )
    for path in PAGES.values():
        page.goto(site + path)
    assert {urlsplit(url).netloc for url in page.asked} == {urlsplit(site).netloc}
    assert wrong_in(page) == []
    assert page.context.cookies() == []


def test_without_a_script_a_page_has_all_of_it(site, visit):
    page = visit(site + PAGES["charts"], java_script_enabled=False)
    assert page.locator("figure svg[role=img]").count() >= 10
    page.get_by_text("Values: Reward", exact=True).click()
    assert page.get_by_role("row").first.is_visible()
    assert "load it again for news" in page.locator("footer").text_content()


def test_a_round_that_ends_while_the_page_is_open_appears_and_nothing_else_moves(tmp_path, visit):
    logs = solver(tmp_path / "node-1", 30)
    with serving(tmp_path) as site:
        page = visit(site + PAGES["charts"])
        page.get_by_text("Values: Loss", exact=True).click()
        plot = page.get_by_role("slider", name="Gradient norm, values")
        plot.focus()
        before = page.evaluate("document.body.dataset.mark = 'kept'; scrollTo(0, 500); scrollY")
        add_round(logs, 31)
        page.locator("#chart-missing, [data-points*=' 31,']").first.wait_for(state="attached")
        assert page.evaluate("document.body.dataset.mark") == "kept"
        assert page.evaluate("scrollY") == before
        assert plot.evaluate("(one) => one === document.activeElement")
        loss = page.locator("details", has_text="Values: Loss")
        assert loss.get_attribute("open") is not None
        assert loss.get_by_role("rowheader", name="31", exact=True).count() == 1
        assert plot.get_attribute("aria-valuemax") == "31"
        assert wrong_in(page) == []


def test_updating_can_be_stopped_and_a_dashboard_that_is_gone_is_told(tmp_path, visit):
    solver(tmp_path / "node-1", 1)
    with serving(tmp_path) as site:
        page = visit(site)
        button = page.get_by_role("button", name="Stop updating")
        button.press("Enter")
        asked = len(page.asked)
        page.wait_for_timeout(900)
        assert len(page.asked) == asked
        page.get_by_role("button", name="Go on updating").press("Enter")
    page.get_by_role("status").get_by_text("does not answer").wait_for()
    assert page.get_by_role("heading", name="node-1").is_visible()


def test_charts_are_read_by_keyboard_and_by_pointer(site, visit):
    page = visit(site + PAGES["charts"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    plot = page.get_by_role("slider", name="Reward, values")
    assert plot.evaluate("(one) => one === document.activeElement")
    page.keyboard.press("Home")
    assert plot.get_attribute("aria-valuetext").startswith("round 1, reward: 0.14")
    page.keyboard.press("ArrowRight")
    assert plot.get_attribute("aria-valuenow") == "2"
    assert page.locator("#tip").text_content().startswith("round 2\n")
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    plot.blur()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 20)
    assert page.locator("#tip").text_content().startswith("round 24\nreward: ")
    page.mouse.move(2, 2)
    assert page.locator("#tip").is_hidden()
