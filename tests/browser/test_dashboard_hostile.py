"""What peers write is shown and nothing else: no script runs, no element appears, nobody is asked for anything."""

from collections import Counter
from urllib.parse import urlsplit

import pytest

from codezero.ledger.board import read_shared
from codezero.views.web.solutions import GROUPS_A_PAGE
from tests.browser.conftest import serving, wrong_in
from tests.browser.payloads import PAYLOADS
from tests.processes import wait_until
from tests.swarm_folder import add_round, ledger, proposer, scored_group, solver

BENIGN = "plain"
LISTS = (
    "/?node=node-1",
    "/rounds?node=node-1",
    "/rounds?node=node-1&page=2",
    "/peers?node=node-1",
    "/peers?node=node-1&page=2",
    "/leaderboard?node=node-1",
    "/leaderboard?node=node-1&page=2",
    "/?node=other-0",
    "/?node=writer-0",
    "/rounds?node=writer-1",
)
CENSUS = "[...document.querySelectorAll('*')].map((one) => one.namespaceURI.split('/').pop() + ' ' + one.localName)"
STRANGE = """[...document.querySelectorAll('head *, #live, #live *')].flatMap((one) =>
  [...one.attributes].filter(({ name, value }) => /^on|^style$|^srcdoc$|^formaction$/.test(name) ||
    (/href$|^src$|^action$/.test(name) && !/^[/#]/.test(value))).map(({ name }) => one.localName + ' ' + name))"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A swarm whose peers wrote the payloads, some a round, and one of the same shape with a plain word instead."""
    made = {}
    for kind, texts in (("hostile", PAYLOADS), ("benign", [BENIGN] * len(PAYLOADS))):
        folder = made[kind] = tmp_path_factory.mktemp(kind)
        logs = solver(folder / "node-1")
        for number, text in enumerate(texts, 1):
            first = (number - 1) * GROUPS_A_PAGE
            groups = [scored_group(one, num_rollouts=2) for one in texts[first : first + GROUPS_A_PAGE]]
            add_round(logs, number, text, groups)
        proposer(folder / "proposer-1")
        for number, text in enumerate(texts[:4]):
            solver(folder / f"other-{number}", 1, text, peer_id=text)
            proposer(folder / f"writer-{number}", 2, text)
        ledger(folder / "shared.sqlite", *(f"{number}{text}" for number, text in enumerate(texts)), rounds=1)
    return made


@pytest.fixture(scope="module")
def sites(folders):
    with (
        serving(folders["hostile"], board=lambda: read_shared(folders["hostile"] / "shared.sqlite")) as hostile,
        serving(folders["benign"], board=lambda: read_shared(folders["benign"] / "shared.sqlite")) as benign,
    ):
        yield hostile, benign


def opened(page):
    """Opens all that is closed, so that what is in there is laid out too."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    return Counter(page.evaluate(CENSUS))


def round_of(payload):
    return f"/rounds/{1 + PAYLOADS.index(payload) // GROUPS_A_PAGE}?node=node-1"


def asked_elsewhere(page, site):
    return [url for url in page.asked if urlsplit(url).netloc != urlsplit(site).netloc]


def test_there_are_many_of_them():
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 60


def test_rounds_full_of_payloads_have_the_elements_of_harmless_ones(sites, visit):
    hostile, benign = sites
    page = visit(f"{benign}/rounds/1?node=node-1")
    expected = opened(page)
    for number in range(1, len(PAYLOADS) // GROUPS_A_PAGE + 1):
        assert page.goto(f"{hostile}/rounds/{number}?node=node-1").ok
        assert opened(page) == expected
        assert page.evaluate(STRANGE) == []
        assert wrong_in(page) == []
    assert asked_elsewhere(page, hostile) == [url for url in page.asked if url.startswith(benign)]


def test_lists_of_payloads_have_no_element_of_theirs(sites, visit):
    hostile, benign = sites
    page = visit(benign)
    for path in LISTS:
        assert page.goto(benign + path).ok
        known = set(opened(page))
        assert page.goto(hostile + path).ok
        assert set(opened(page)) <= known | {"xhtml nav", "xhtml b", "xhtml small"}, path
        assert page.evaluate(STRANGE) == []
        assert wrong_in(page) == []
    assert {urlsplit(url).netloc for url in page.asked} == {urlsplit(site).netloc for site in sites}


def test_charts_whose_series_peers_named_are_charts_and_their_values_are_text(sites, visit):
    hostile, benign = sites
    known = set(opened(visit(f"{benign}/charts?node=other-0")))
    page = visit(f"{hostile}/charts?node=other-0")
    assert set(opened(page)) <= known
    told = set()
    for plot in page.locator(".plot").all():
        plot.hover()
        told.add(page.locator("#tip").text_content())
        assert page.locator("#tip *").count() == 0
    assert any(f"{PAYLOADS[0]}: 1" in text for text in told)
    assert page.evaluate(STRANGE) == []
    assert wrong_in(page) == []


def test_what_comes_while_the_page_is_open_is_text_too(tmp_path, visit):
    logs = solver(tmp_path / "node-1", 1)
    with serving(tmp_path) as site:
        page = visit(f"{site}/?node=node-1")
        known = set(page.evaluate(CENSUS))
        for number, payload in enumerate(PAYLOADS[::8], 2):
            add_round(logs, number, payload, [])
        page.get_by_role("heading", name=f"Round {number}").wait_for()
        assert set(page.evaluate(CENSUS)) <= known | {"xhtml ul", "xhtml li", "xhtml br"}
        assert page.evaluate(STRANGE) == []
        assert wrong_in(page) == []


def test_text_that_hides_or_turns_around_is_shown_as_escapes(sites, visit):
    hostile, _ = sites
    page = visit(hostile + round_of(next(text for text in PAYLOADS if "reversed" in text)))
    text = page.locator("main").text_content()
    assert "\\u202e reversed \\u2069" in text
    assert not set(text) & set("\u202e\u2066\u2067\u2068\u2069\u202c\u202d\x00")


def test_a_template_in_a_text_is_not_one(sites, visit):
    hostile, _ = sites
    page = visit(hostile + round_of("{{7*7}}"))
    text = page.locator("main").text_content()
    assert "{{7*7}}" in text
    assert "49" not in text


def test_even_a_script_that_got_into_the_page_would_not_run(tmp_path, visit):
    """The second wall: were the first one broken, the policy stops what would run."""
    solver(tmp_path / "node-1", 1)
    with serving(tmp_path) as site:
        page = visit(f"{site}/?node=node-1")
        page.evaluate("document.getElementById('main').innerHTML = '<img src=/nope onerror=\"window.ran = 1\">'")
        page.evaluate("const s = document.createElement('script'); s.text = 'window.ran = 1'; document.body.append(s)")
        wait_until(lambda: page.evaluate("seen.length") >= 2, 30)  # the policy forbids Playwright's own waiting
        assert page.evaluate("window.ran") is None
        assert all(one.startswith(("csp", "error")) for one in page.evaluate("seen"))
