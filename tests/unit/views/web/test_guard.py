import pytest
from starlette.testclient import TestClient

from codezero.config.multiaddr import is_loopback
from codezero.views.web.app import make_app
from codezero.views.web.guard import Guard
from codezero.views.web.source import WatchedFolders
from tests.swarm_folder import solver


@pytest.fixture
def client(tmp_path):
    solver(tmp_path / "node-1", 1)
    return TestClient(
        make_app(WatchedFolders([tmp_path])), base_url="http://127.0.0.1:7007", raise_server_exceptions=False
    )


@pytest.mark.parametrize("path", ["/", "/rounds/1", "/static/dashboard.js", "/api/nodes", "/nope", "/rounds/x"])
def test_every_answer_has_the_headers_that_hold_a_browser_back(client, path):
    headers = client.get(path).headers
    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
    assert not {"set-cookie", "server", "access-control-allow-origin"} & set(headers)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:7007", "localhost:1", "LOCALHOST", "[::1]:7007", "[::1]"])
def test_it_answers_under_the_names_of_this_machine(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:7007", "127.0.0.1.evil.example", "localhost.evil.example:7007", "192.168.1.5"),
        *("", "[::2]", "127.0.0.1@evil.example", "evil.example#127.0.0.1", "localhost:80:evil.example", "0.0.0.0"),
    ],
)
def test_a_foreign_name_is_refused(client, host):
    answer = client.get("/api/nodes", headers={"host": host})
    assert answer.status_code == 421
    assert "node-1" not in answer.text


def test_a_name_that_it_was_told_is_allowed_and_no_other():
    guard = Guard(None, ["Gpu-Box.lan"])
    assert guard.allows("gpu-box.lan:7007")
    assert guard.allows("localhost")
    assert not guard.allows("192.168.1.5")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_on_all_addresses_an_address_is_allowed_but_no_strangers_name(host):
    guard = Guard(None, [host])
    assert guard.allows("192.168.1.5:7007")
    assert guard.allows("[fe80::1]:7007")
    assert not guard.allows("evil.example:7007")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
@pytest.mark.parametrize("path", ["/", "/api/nodes", "/nope"])
def test_nothing_but_reading_is_possible(client, method, path):
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_has_no_body(client):
    answer = client.head("/")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 1000


def test_a_page_that_fails_says_nothing_of_the_inside(client, monkeypatch, caplog):
    def fails(_):
        raise RuntimeError("secret \x1b[2J /home/me")

    monkeypatch.setattr("codezero.views.web.page_data.overview", fails)
    answer = client.get("/")
    assert answer.status_code == 500
    assert answer.text == "This page could not be made. The dashboard's terminal says why.\n"
    assert "content-security-policy" in answer.headers
    assert "RuntimeError: secret \\x1b[2J" in caplog.text


@pytest.mark.parametrize(
    "path",
    ["/rounds/1?page=x", "/rounds/1?page=<script>", "/?node=" + "x" * 201, "/rounds/99999999999999999999x", "/?page"],
)
def test_a_strange_address_is_answered_without_repeating_it(client, path):
    answer = client.get(path)
    assert answer.status_code in (200, 400, 404)
    assert "<script>" not in answer.text


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/docs", "/redoc"],
)
def test_only_its_own_files_are_served(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("node", ["../node-1", "node-1/../node-1", "/etc", "nope", "\x00", "node-1\x00"])
def test_a_node_is_found_by_a_name_of_the_list_and_by_no_path(client, node):
    assert client.get("/", params={"node": node}).status_code == 404


def test_loopback():
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.5", "gpu-box")] == [False] * 4
