"""The page in Chromium: what others wrote does nothing, it can be read by all, and it fits narrow screens and paper."""

import pytest

from tests.unit.views.report.test_page import compare, hostile, report

pytestmark = pytest.mark.slow


@pytest.fixture
def address(tmp_path):
    (tmp_path / "runs").mkdir()
    file = tmp_path / "report.html"
    file.write_text(report(tmp_path / "runs", compare(*hostile(tmp_path / "runs"))))
    return file.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_text_does_nothing_and_nothing_is_fetched(browser, address, scheme):
    page = browser.new_page(color_scheme=scheme)
    happened = []
    page.on("console", lambda message: happened.append(message.text))
    page.on("pageerror", lambda error: happened.append(str(error)))
    page.on("dialog", lambda dialog: (happened.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: happened.append(request.url))
    page.goto(address)
    page.wait_for_load_state()
    assert happened == [address]
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme]  # the policy lets the style in
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_by_all(browser, address, scheme):
    """axe runs as a script, which the page's policy forbids: here it is bypassed."""
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(address)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    context.close()


def test_it_fits_a_narrow_screen_and_paper_is_white(browser, address):
    page = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme="dark")
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.close()
