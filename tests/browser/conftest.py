"""A Chromium of this machine, and a dashboard served in a thread. One browser for a module."""

import os
import shutil

import pytest

from codezero.views.web.app import make_app
from codezero.views.web.source import WatchedFolders
from tests.rollout_servers import served

WATCH = """
  const wait = setTimeout;  // pages look for news ten times as often
  window.setTimeout = (act, after, ...rest) => wait(act, after / 10, ...rest);
  window.seen = [];
  document.addEventListener("securitypolicyviolation", (event) => seen.push("csp: " + event.violatedDirective));
  addEventListener("error", (event) => seen.push("error: " + event.message), true);
"""


@pytest.fixture(scope="module")
def browser():
    if os.environ.get("CODEZERO_SKIP_BROWSER") == "1":
        pytest.skip("CODEZERO_SKIP_BROWSER=1: THE DASHBOARD'S PAGES ARE NOT TESTED IN A BROWSER")
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    assert path, "Chromium is missing: install it, or leave these tests out with CODEZERO_SKIP_BROWSER=1"
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=sandbox)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Opens pages that tell what goes wrong in them: `visit(url)`."""
    contexts = []

    def open_page(url, **settings):
        context = browser.new_context(viewport={"width": 1100, "height": 800}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.wrong = []
        page.add_init_script(WATCH)
        page.on("dialog", lambda dialog: (page.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: page.wrong.append(f"script: {error}"))
        page.on(
            "console", lambda said: said.type in ("error", "warning") and page.wrong.append(f"console: {said.text}")
        )
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        assert page.goto(url).ok
        return page

    yield open_page
    for context in contexts:
        context.close()


def wrong_in(page):
    """All that went wrong in it since it was opened."""
    return page.wrong + page.evaluate("window.seen")


def serving(*folders, board=None):
    """The URL of a dashboard of these folders."""
    return served(make_app(WatchedFolders(folders), board))
